//! Copies to and from memory that the host cannot access.
//!
//! Contract: the copy kernel moves whole 16-byte units between a staging buffer in system memory and the buffer; a
//! range that begins or ends inside a unit is read, changed and written back. Set-up only: each piece is one submission
//! that is waited for. No submission in flight may use the bytes. While a resident kernel holds the queue, nothing is
//! submitted: the copy fails at once.

use crate::device::{Device, SETUP_DEADLINE};
use crate::error::DeviceError;
use crate::kernel::{Kernel, image};
use crate::memory::Buffer;
use zerocopy::IntoBytes;
use zrt_isa::zrt;
use zrt_mem::{ByteLen, GpuVa, Heap};
use zrt_pm4::Writer;
use zrt_protocol::params;

/// The kernel's name among the blobs.
const COPY_KERNEL: &str = "copy";
/// Unit of the kernel.
const UNIT_BYTES: usize = 16;
/// Units that one workgroup copies: 256 threads, one each (`zrt_protocol::params::Copy`).
const UNITS_PER_GROUP: u32 = 256;
/// Maximum number of bytes that one submission moves.
const STAGING_BYTES: usize = 1 << 20;
/// The parameter block precedes the staged bytes.
const STAGED_OFFSET: usize = params::PARAMETER_BYTES_MAX;
/// Dwords of a dispatch with its acquire.
const COPY_DWORDS: usize = 64;

/// The kernel and its staging memory.
pub(crate) struct CopyEngine {
    kernel: Kernel,
    staging: Buffer,
}

impl CopyEngine {
    /// Writes `bytes` into `buffer` from `start` on.
    pub(crate) fn upload(
        device: &mut Device,
        buffer: &Buffer,
        start: usize,
        bytes: &[u8],
    ) -> Result<(), DeviceError> {
        device.check_queue_is_free(buffer)?;
        CopyEngine::with(device, |engine, device| {
            for piece in pieces(start, bytes.len()) {
                if !piece.is_whole() {
                    engine.run(device, engine.staged_va(), buffer.va, piece, Direction::ToStaging)?;
                }
                let staged = STAGED_OFFSET + piece.start - piece.unit_start;
                let source = &bytes[piece.start - start..piece.end - start];
                engine.write(device, staged, source);
                engine.run(device, engine.staged_va(), buffer.va, piece, Direction::FromStaging)?;
            }
            Ok(())
        })
    }

    /// Reads from `buffer` at `start`.
    pub(crate) fn download(
        device: &mut Device,
        buffer: &Buffer,
        start: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        device.check_queue_is_free(buffer)?;
        let len = bytes.len();
        CopyEngine::with(device, |engine, device| {
            for piece in pieces(start, len) {
                engine.run(device, engine.staged_va(), buffer.va, piece, Direction::ToStaging)?;
                let staged = STAGED_OFFSET + piece.start - piece.unit_start;
                let destination = &mut bytes[piece.start - start..piece.end - start];
                // Staging memory is system memory, which is always mapped.
                assert!(
                    device.space().read_mapped(&engine.staging, staged, destination),
                    "staging memory is mapped"
                );
            }
            Ok(())
        })
    }

    /// Runs `work` with the engine, made at its first use.
    fn with(
        device: &mut Device,
        work: impl FnOnce(&CopyEngine, &mut Device) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let engine = match device.take_copy() {
            Some(engine) => engine,
            None => CopyEngine::new(device)?,
        };
        let outcome = work(&engine, device);
        device.put_copy(engine);
        outcome
    }

    fn new(device: &mut Device) -> Result<CopyEngine, DeviceError> {
        let blob = zrt_asm::blob(COPY_KERNEL).ok_or(DeviceError::KernelNeeds {
            kernel: COPY_KERNEL.into(),
            reason: "it is not among the blobs; run `cargo xtask asm`",
        })?;
        let container = zrt::Kernel::parse(blob)?;
        // In system memory: nothing else could bring it to device-local memory.
        let kernel = Kernel::new(device.space(), &container, Heap::Host)?;
        assert!(device.space().write_mapped(kernel.code(), 0, &image(&container)), "system memory is mapped");
        let len = ByteLen((STAGED_OFFSET + STAGING_BYTES) as u64);
        let staging = device.allocate(Heap::Host, len, "staging")?;
        device.space().registry.set_own(staging.entry());
        Ok(CopyEngine { kernel, staging })
    }

    fn staged_va(&self) -> GpuVa {
        GpuVa(self.staging.va.0 + STAGED_OFFSET as u64)
    }

    fn write(&self, device: &Device, offset: usize, bytes: &[u8]) {
        // Staging memory is system memory, which is always mapped.
        assert!(device.space().write_mapped(&self.staging, offset, bytes), "staging memory is mapped");
    }

    /// Copies a piece's units one way and waits.
    fn run(
        &self,
        device: &mut Device,
        staged: GpuVa,
        buffer: GpuVa,
        piece: Piece,
        direction: Direction,
    ) -> Result<(), DeviceError> {
        let there = buffer.0 + piece.unit_start as u64;
        let (source_va, destination_va) = match direction {
            Direction::ToStaging => (there, staged.0),
            Direction::FromStaging => (staged.0, there),
        };
        let count = ((piece.unit_end - piece.unit_start) / UNIT_BYTES) as u32;
        let units = count.div_ceil(UNITS_PER_GROUP);
        let header = params::Copy::header(0, units, params::RowSet::Once);
        let block = params::Copy { header, source_va, destination_va, count, reserved: 0 };
        self.write(device, 0, block.as_bytes());
        let mut words = [0; COPY_DWORDS];
        let mut writer = Writer::new(&mut words);
        writer.acquire_everything()?;
        let parameters = self.staging.va;
        let user_data = [parameters.low(), parameters.high(), units];
        writer.dispatch(&self.kernel.state, &user_data, [units, 1, 1])?;
        let used = writer.len();
        let ticket = device.submit_words(&words[..used])?;
        device.wait(ticket, SETUP_DEADLINE)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    ToStaging,
    FromStaging,
}

/// A part of a range that one submission moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    /// The requested bytes.
    start: usize,
    end: usize,
    /// The units that hold them.
    unit_start: usize,
    unit_end: usize,
}

impl Piece {
    fn is_whole(&self) -> bool {
        self.start == self.unit_start && self.end == self.unit_end
    }
}

/// Cuts a range into pieces of at most [`STAGING_BYTES`], at unit boundaries.
fn pieces(start: usize, len: usize) -> impl Iterator<Item = Piece> {
    let end = start + len;
    let mut at = start;
    core::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let unit_start = at - at % UNIT_BYTES;
        let piece_end = end.min(unit_start + STAGING_BYTES);
        let unit_end = piece_end.next_multiple_of(UNIT_BYTES);
        let piece = Piece { start: at, end: piece_end, unit_start, unit_end };
        at = piece_end;
        Some(piece)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_a_range_once() {
        for start in [0, 1, 15, 16, 17, STAGING_BYTES - 1, STAGING_BYTES] {
            for len in
                [0, 1, 15, 16, 17, STAGING_BYTES - 1, STAGING_BYTES, STAGING_BYTES + 1, 3 * STAGING_BYTES + 5]
            {
                let mut at = start;
                for piece in pieces(start, len) {
                    assert_eq!(piece.start, at);
                    assert!(piece.unit_start <= piece.start && piece.end <= piece.unit_end);
                    assert!(piece.unit_end - piece.unit_start <= STAGING_BYTES);
                    assert_eq!((piece.unit_start % UNIT_BYTES, piece.unit_end % UNIT_BYTES), (0, 0));
                    at = piece.end;
                }
                assert_eq!(at, start + len);
            }
        }
    }
}
