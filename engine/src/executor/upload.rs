//! Weights from the file to the device: read, repacked and written by several threads at once.
//!
//! Contract: the device holds the bytes of `WeightLayout::pack`, the zeros between planes included. A weight is cut
//! into pieces of whole rows. A piece is packed by the layout of its own rows, each plane of which is a part of the
//! weight's plane, because pieces but the last fill tiles of rows and lines of 256 bytes. At most [`THREADS_MAX`]
//! threads hold a piece each, and as many packed ones wait where the host has no mapping of a buffer: a few MiB,
//! whatever the model's size, for rows of usual length. Pieces are taken in the order of the file. A thread has emptied
//! its write-combining buffers when it reports a piece. An error ends all threads.
//!
//! Cost: the file is read once, through its mapping; every byte is copied three times (file, planes, device).

use crate::executor_error::ExecutorError;
use crate::gguf::TensorKind;
use crate::layout::WeightLayout;
use crate::memory_plan::{AllocationId, MemoryPlan};
use crate::model::Model;
use crate::weights::WeightId;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use zrt_device::{Buffer, Device};
use zrt_mem::ByteLen;
use zrt_mem::shared::fence_stores;
use zrt_protocol::TILE_ROWS;

/// Most threads that load weights.
pub const THREADS_MAX: usize = 64;
/// Threads of a host with as many cores or more: beyond them memory is the limit.
const THREADS_DEFAULT: usize = 16;
/// Bytes of a file that a thread takes at once, or 128 rows: a core's second cache holds them and what
/// becomes of them.
pub const PIECE_BYTES_DEFAULT: u64 = 1 << 20;
/// Rows in which pieces are counted: of every type, 8 tiles fill whole lines in every plane.
const PIECE_ROWS: u64 = 8 * TILE_ROWS as u64;

/// Called while weights are uploaded, with the bytes done and the total.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// How weights are loaded.
pub struct Loading<'a> {
    /// Threads, 1 to [`THREADS_MAX`]; `None`: one for each core, at most 16.
    pub threads: Option<usize>,
    /// Bytes of the file that a thread takes at once: at least one, rounded up to whole lines of every plane.
    pub piece_bytes: u64,
    /// Is told how many bytes are on the device, and of how many.
    pub progress: Progress<'a>,
}

/// Consecutive rows of a weight.
struct Piece {
    weight: WeightId,
    rows: Range<u64>,
}

/// A packed piece: runs of bytes, with their offsets in the weight.
struct Packed {
    bytes: Vec<u8>,
    runs: Vec<(u64, Range<usize>)>,
}

/// A piece that a thread is done with.
struct Done {
    bytes: u64,
    /// What is still to be written, if the thread cannot.
    left: Option<(WeightId, Packed)>,
}

/// What all threads read.
struct Source<'a> {
    model: &'a Model,
    memory: &'a MemoryPlan,
    buffers: &'a BTreeMap<AllocationId, Buffer>,
    pieces: Vec<Piece>,
    next: AtomicUsize,
}

impl<'a> Loading<'a> {
    /// As suits the host.
    pub fn new(progress: Progress<'a>) -> Loading<'a> {
        Loading { threads: None, piece_bytes: PIECE_BYTES_DEFAULT, progress }
    }

    fn thread_count(&self) -> Result<usize, ExecutorError> {
        match self.threads {
            Some(threads) if (1..=THREADS_MAX).contains(&threads) => Ok(threads),
            Some(threads) => Err(ExecutorError::Threads { threads, most: THREADS_MAX }),
            None => Ok(thread::available_parallelism().map_or(1, |cores| cores.get().min(THREADS_DEFAULT))),
        }
    }
}

impl Packed {
    /// Packs the rows `rows` of a weight of `total` rows of `columns` columns of `kind`, whose layout is `whole`.
    fn new(
        (kind, total, columns): (TensorKind, u64, u64),
        whole: &WeightLayout,
        rows: &Range<u64>,
        file: &[u8],
    ) -> Option<Packed> {
        let layout_of = |rows| WeightLayout::in_order(kind, rows, columns, whole.order);
        let piece = layout_of(rows.end - rows.start)?;
        // A plane of a fixed length belongs to the whole weight.
        let (before, fixed) = (layout_of(rows.start)?, layout_of(0)?);
        let mut runs = Vec::new();
        for (index, plane) in piece.planes.iter().enumerate() {
            let (Some(plane), Some(whole), Some(before), Some(fixed)) =
                (plane, whole.planes[index], before.planes[index], fixed.planes[index])
            else {
                continue;
            };
            if fixed.len.0 > 0 && rows.start > 0 {
                continue;
            }
            let start = plane.offset.0;
            let following =
                piece.planes.iter().flatten().map(|plane| plane.offset.0).find(|next| *next > start);
            // The last piece of a plane has what lies behind it too.
            let is_last = rows.end == total || fixed.len.0 > 0;
            let end = if is_last { following.unwrap_or(piece.len.0) } else { start + plane.len.0 };
            runs.push((whole.offset.0 + before.len.0 - fixed.len.0, start as usize..end as usize));
        }
        Some(Packed { bytes: piece.pack(kind, columns, file), runs })
    }

    fn len(&self) -> u64 {
        self.runs.iter().map(|(_, range)| range.len() as u64).sum()
    }
}

impl Source<'_> {
    /// Packs pieces until there are none, one fails, or nobody listens.
    fn work(&self, done: &SyncSender<Result<Done, ExecutorError>>) {
        let mut file = Vec::new();
        while let Some(piece) = self.pieces.get(self.next.fetch_add(1, Ordering::Relaxed)) {
            let outcome = self.load(piece, &mut file);
            let is_over = outcome.is_err();
            if done.send(outcome).is_err() || is_over {
                break;
            }
        }
    }

    /// Reads and packs a piece; writes it, if the host has a mapping of the buffer.
    fn load(&self, piece: &Piece, file: &mut Vec<u8>) -> Result<Done, ExecutorError> {
        let (tensor, place) = (&self.model.weight(piece.weight).tensor, &self.memory.weights[&piece.weight]);
        file.resize(((piece.rows.end - piece.rows.start) * tensor.row_bytes()) as usize, 0);
        let read = self.model.gguf.read_tensor_into(tensor, piece.rows.start * tensor.row_bytes(), file);
        read.map_err(|source| ExecutorError::Weight { weight: piece.weight, source })?;
        let packed =
            Packed::new((tensor.kind, tensor.rows(), tensor.columns()), &place.layout, &piece.rows, file);
        let packed = packed.ok_or(ExecutorError::Overflow { what: "weights" })?;
        let bytes = packed.len();
        match &self.buffers[&place.allocation].view {
            None => Ok(Done { bytes, left: Some((piece.weight, packed)) }),
            Some(view) => {
                for (offset, range) in &packed.runs {
                    view.write_bytes((place.offset.0 + offset) as usize, &packed.bytes[range.clone()]);
                }
                // A processor empties its own write-combining buffers only; the last flush is another thread's.
                fence_stores();
                Ok(Done { bytes, left: None })
            }
        }
    }

    /// Writes what a thread could not.
    fn write(&self, device: &mut Device, weight: WeightId, packed: &Packed) -> Result<(), ExecutorError> {
        let place = &self.memory.weights[&weight];
        for (offset, range) in &packed.runs {
            let at = ByteLen(place.offset.0 + offset);
            device.upload(&self.buffers[&place.allocation], at, &packed.bytes[range.clone()])?;
        }
        Ok(())
    }
}

/// Writes all weights to their buffers.
///
/// # Errors
/// [`ExecutorError::Weight`] if the file cannot be read, [`ExecutorError::Threads`], and what the device says.
pub(super) fn upload_weights(
    device: &mut Device,
    model: &Model,
    memory: &MemoryPlan,
    buffers: &BTreeMap<AllocationId, Buffer>,
    loading: Loading<'_>,
) -> Result<(), ExecutorError> {
    let total = memory.weights.values().map(|place| place.layout.len.0).sum();
    let source = Source {
        model,
        memory,
        buffers,
        pieces: pieces(model, loading.piece_bytes),
        next: AtomicUsize::new(0),
    };
    let threads = loading.thread_count()?.min(source.pieces.len().max(1));
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(threads);
        start(threads, || {
            let (source, sender) = (&source, sender.clone());
            thread::Builder::new().spawn_scoped(scope, move || source.work(&sender)).map(|_| ())
        })?;
        drop(sender);
        let mut written = 0;
        // Leaving the loop drops the receiver, which ends the threads.
        for done in receiver {
            let Done { bytes, left } = done?;
            if let Some((weight, packed)) = left {
                source.write(device, weight, &packed)?;
            }
            written += bytes;
            (loading.progress)(written, total);
        }
        Ok::<(), ExecutorError>(())
    })?;
    device.flush();
    Ok(())
}

/// Starts `threads` of them. Where the system refuses one, those before it do the same work.
fn start(threads: usize, mut one: impl FnMut() -> std::io::Result<()>) -> Result<(), ExecutorError> {
    for started in 0..threads {
        match one() {
            Ok(()) => {}
            Err(_) if started > 0 => break,
            Err(source) => return Err(ExecutorError::NoThread { source }),
        }
    }
    Ok(())
}

/// All pieces of all weights, of at least `piece_bytes`, in the order of the file.
fn pieces(model: &Model, piece_bytes: u64) -> Vec<Piece> {
    let mut weights: Vec<_> = model.weights().collect();
    weights.sort_by_key(|(_, weight)| weight.tensor.offset);
    let mut pieces = Vec::new();
    for (id, weight) in weights {
        let (total, row_bytes) = (weight.tensor.rows(), weight.tensor.row_bytes().max(1));
        let step = piece_bytes.div_ceil(row_bytes).clamp(1, total.max(1)).next_multiple_of(PIECE_ROWS);
        for first in (0..total).step_by(step as usize) {
            pieces.push(Piece { weight: id, rows: first..(first + step).min(total) });
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activations::Activations;
    use crate::executor::device::DeviceExecutor;
    use crate::gguf::Gguf;
    use crate::kv_format::KvFormat;
    use crate::memory_plan::Allocation;
    use crate::plan::ExecutionPlan;
    use crate::weights::WEIGHT_KINDS;
    use std::path::Path;
    use std::sync::Arc;
    use zrt_bringup::{DeviceChoice, OpenOptions};

    fn model() -> Model {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/tales-llama-Q4_K_M.gguf");
        Model::load(Arc::new(Gguf::open(&path).expect("in the repository"))).expect("sound")
    }

    #[test]
    fn threads_are_those_asked_for_or_as_suits_the_host() {
        let count = |threads| Loading { threads, ..Loading::new(&mut |_, _| {}) }.thread_count();
        assert_eq!([1, 2, 64].map(|threads| count(Some(threads)).ok()), [Some(1), Some(2), Some(64)]);
        for threads in [0, 65] {
            let error = count(Some(threads)).expect_err("out of range");
            assert!(matches!(error, ExecutorError::Threads { threads: found, most: 64 } if found == threads));
        }
        let cores = thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(count(None).ok(), Some(cores.min(16)));
    }

    /// Every row once and in order, weights in the order of the file, and each piece but a weight's last has the
    /// bytes at least, in whole groups of 128 rows, and no group more than it needs.
    #[test]
    fn pieces_are_the_file_cut_at_whole_lines() {
        let model = model();
        for bytes in [1, 5000, 100_000, 1 << 20, u64::MAX] {
            let mut after = (0, 0);
            let mut rows = BTreeMap::new();
            for Piece { weight, rows: Range { start, end } } in pieces(&model, bytes) {
                let tensor = &model.weight(weight).tensor;
                let done = rows.entry(weight).or_insert(0);
                assert!(start < end && start == *done && (tensor.offset, start) >= after, "{weight}");
                (*done, after) = (end, (tensor.offset, start));
                if end < tensor.rows() {
                    let (count, row) = (end - start, u128::from(tensor.row_bytes()));
                    assert_eq!(count % 128, 0);
                    let needed = |count: u64| u128::from(count) * row >= u128::from(bytes);
                    assert!(needed(count) && (count == 128 || !needed(count - 128)), "{weight}: {count}");
                }
            }
            let whole: BTreeMap<_, _> =
                model.weights().map(|(id, weight)| (id, weight.tensor.rows())).collect();
            assert_eq!(rows, whole, "pieces of {bytes} bytes");
        }
    }

    #[test]
    fn threads_that_the_system_refuses_are_missed_only_if_there_is_no_other() {
        let starts = |allowed: usize| {
            let mut asked = 0;
            let result = start(4, || {
                asked += 1;
                if asked > allowed { Err(std::io::Error::other("no more")) } else { Ok(()) }
            });
            (result.map_err(|error| matches!(error, ExecutorError::NoThread { .. })), asked)
        };
        assert_eq!(starts(0), (Err(true), 1));
        assert_eq!(starts(1), (Ok(()), 2));
        assert_eq!(starts(3), (Ok(()), 4));
        assert_eq!(starts(4), (Ok(()), 4));
    }

    /// Nobody waits for what a thread would do after the first piece that it cannot hand over.
    #[test]
    fn a_thread_that_nobody_listens_to_ends() {
        let model = model();
        let plan = ExecutionPlan::step(&model, 16, 1, Activations::F32).expect("planned");
        let capacity = DeviceExecutor::capacity(&plan, KvFormat::F32);
        let memory = MemoryPlan::new(&model, &plan, &capacity).expect("planned");
        let options = OpenOptions { self_test: false, ..OpenOptions::default() };
        let mut device = zrt_bringup::open(DeviceChoice::Virtual, &options).expect("opens");
        let allocate =
            |one: &Allocation| (one.id, device.allocate(one.heap, one.len, "weights").expect("room"));
        let buffers = memory.allocations.iter().map(allocate).collect();
        let source = Source {
            model: &model,
            memory: &memory,
            buffers: &buffers,
            pieces: pieces(&model, 1),
            next: AtomicUsize::new(0),
        };
        assert!(source.pieces.len() > 2);
        let (sender, receiver) = sync_channel(1);
        drop(receiver);
        source.work(&sender);
        assert_eq!(source.next.into_inner(), 1);
    }

    /// In pieces of every number of lines, with a rest, a weight has the bytes that it has in one: rows of whole
    /// segments and of others, a last piece that is whole and one that is not.
    #[test]
    fn pieces_have_the_bytes_of_the_whole() {
        let mut random = zrt_needs::Random::new(7);
        for kind in WEIGHT_KINDS {
            let block_elements = kind.block_elements();
            for (columns, rows) in [(256, 3 * PIECE_ROWS + 37), (5 * block_elements, 2 * PIECE_ROWS)] {
                let row_bytes = (columns / block_elements * kind.block_bytes()) as usize;
                let file: Vec<u8> = (0..rows as usize * row_bytes).map(|_| random.word() as u8).collect();
                let layout = WeightLayout::new(kind, rows, columns).expect("packed type");
                let expected = layout.pack(kind, columns, &file);
                for lines in [1, 2, 3, 4] {
                    let step = lines * PIECE_ROWS as usize;
                    // What nobody writes must show.
                    let mut found = vec![0xa5; expected.len()];
                    let mut written = 0;
                    for (index, part) in file.chunks(step * row_bytes).enumerate() {
                        let first = (index * step) as u64;
                        let of = first..(first + step as u64).min(rows);
                        let packed = Packed::new((kind, rows, columns), &layout, &of, part).expect("small");
                        written += packed.len();
                        for (offset, range) in &packed.runs {
                            found[*offset as usize..][..range.len()]
                                .copy_from_slice(&packed.bytes[range.clone()]);
                        }
                    }
                    assert!(found == expected, "{kind} of {columns} columns in pieces of {lines}");
                    assert_eq!(written, layout.len.0, "{kind} of {columns} columns in pieces of {lines}");
                }
            }
        }
    }
}
