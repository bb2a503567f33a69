//! One task of a step, run alone on a device: for whoever counts what its kernel does.
//!
//! Contract: the task is lowered as for a session and launched by its own kernel, with fewer units of work if that is
//! asked for. Nothing is uploaded but the step, the page table and the parameter block: weights and values are what
//! the memory held. So results mean nothing, and counts hold for kernels whose path does not depend on data. All slots
//! share one set of pages. Allocates the whole memory plan on every call; costs no host memory on a virtual device
//! that does not fill its VRAM.

use super::lowering::{Addresses, Planning, Task, lower, task_count};
use crate::executor_error::ExecutorError;
use crate::kv_format::KvFormat;
use crate::memory_plan::{AllocationId, Capacity, MemoryPlan};
use crate::model::Model;
use crate::placement::Placement;
use crate::plan::ExecutionPlan;
use std::collections::BTreeMap;
use std::mem::offset_of;
use std::time::Duration;
use zerocopy::{FromBytes, FromZeros, IntoBytes};
use zrt_device::{Buffer, Device};
use zrt_mem::{ByteLen, Heap};
use zrt_protocol::params::{Header, JOINED_SHIFT, KernelOpcode, Matmul, PARAMETER_BLOCKS, RowSet};
use zrt_protocol::{
    BAND_ROWS, Output, PAGE_TOKENS, Row, SLOTS_MAX, Step, TILED_ROWS_MIN, bands, float_tiles_rows_per_unit,
    joined_log2, matmul_rows_per_unit, tiled_weight_rows_per_unit,
};

pub use zrt_protocol::ROWS_MAX;

/// Longest time that a task may take. Generous, because a virtual device that counts is slow.
const TASK_DEADLINE: Duration = Duration::from_secs(600);
/// Entries of the rings, which are unused here.
const RING_ENTRIES: u32 = 4;

/// The rows of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum StepRows {
    /// One row of each of so many slots, each at this position, each with an output.
    Decode {
        /// Slots, 1..=64.
        slots: u32,
        /// Position of every row.
        position: u32,
    },
    /// So many consecutive rows of one slot's prompt; the last one has an output.
    Prompt {
        /// Rows, 1..=[`ROWS_MAX`].
        rows: u32,
        /// Position of the first.
        position: u32,
    },
}

/// How a task's units follow from a step's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskUnits {
    /// Units of the whole step.
    pub total: u32,
    /// Rows that each unit works on: 1 where a unit belongs to a row, and otherwise those of a band.
    pub rows_of_unit: u32,
    /// Bands of rows, each of which has all units.
    pub bands: u32,
    /// True if a unit belongs to a row.
    pub is_of_a_row: bool,
    /// log2 of how many of the header's units a unit stands for.
    pub joined_log2: u32,
}

impl TaskUnits {
    /// Those of a task over `rows`, lowered from a plan for as many rows, with so many workgroups.
    pub fn of(task: &Task, rows: StepRows, groups: u32) -> TaskUnits {
        let (set, units) = (task.header.rows & 0xff, task.header.units);
        let is = |one: RowSet| set == one as u32;
        let counted = match () {
            () if is(RowSet::EachOutput) || is(RowSet::AllOutputs) => rows.outputs(),
            () => rows.rows(),
        };
        let is_of_a_row = is(RowSet::EachActive) || is(RowSet::EachOutput);
        let is_of_one = is_of_a_row || is(RowSet::Once);
        let bands = if is_of_one { 1 } else { bands(counted) };
        if let Some(product) = matmul(task)
            && product.is_tiled(counted)
        {
            let rows_of_unit = of_first_band(counted);
            let (of_band, _) = product.tiled_units(rows_of_unit);
            return TaskUnits { total: of_band * bands, rows_of_unit, bands, is_of_a_row, joined_log2: 0 };
        }
        let times = if is_of_a_row { counted } else { bands };
        let all = units.saturating_mul(times);
        let joined_log2 = joined_log2(all, task.header.rows >> JOINED_SHIFT, groups);
        TaskUnits {
            total: all >> joined_log2,
            rows_of_unit: if is_of_one { 1 } else { of_first_band(counted) },
            bands,
            is_of_a_row,
            joined_log2,
        }
    }
}

/// Rows of the first band, which has most.
fn of_first_band(rows: u32) -> u32 {
    rows.min(BAND_ROWS as u32)
}

/// A MATMUL.
struct Product {
    block: Matmul,
    /// Whether its kernel has matrix instructions of 16-bit floats.
    is_of_halves: bool,
}

fn matmul(task: &Task) -> Option<Product> {
    let is_matmul = task.header.opcode == KernelOpcode::Matmul as u16;
    let block = is_matmul.then(|| Matmul::read_from_bytes(&task.parameters).ok()).flatten()?;
    Some(Product { block, is_of_halves: task.kernel.ends_with("_w16") })
}

impl Product {
    fn is_tiled(&self, rows: u32) -> bool {
        (self.block.factors_offset != 0 || self.is_of_halves) && rows >= TILED_ROWS_MIN
    }

    fn tiled_rows_per_unit(&self, rows: u32) -> u32 {
        match self.is_of_halves {
            true => float_tiles_rows_per_unit(rows),
            false => tiled_weight_rows_per_unit(rows, self.block.chunks, self.block.tile_parts_log2),
        }
    }

    /// Units of a product of tiles that have weight rows, and the turns that each takes: a unit of the tape goes on
    /// where there are fewer of them than tiles need.
    fn tiled_units(&self, rows: u32) -> (u32, u32) {
        let needed = self.block.weight_rows.div_ceil(self.tiled_rows_per_unit(rows)).max(1);
        let units = needed.min(self.block.header.units.max(1));
        (units, needed.div_ceil(units))
    }
}

/// Leaves a task so many of its first units; a product so many of its weight rows, because a unit of tiles goes on
/// where there are more of them than all units have. The one workgroup joins as many of the header's units as it may:
/// 2^`joined_log2` are left to it.
fn cut(task: &mut Task, rows: StepRows, (units, joined_log2): (u32, u32)) {
    let units = (task.header.units >> joined_log2).min(units).max(1) << joined_log2;
    let product = matmul(task);
    let mut write = |at: usize, value: u32| {
        task.parameters[at..at + size_of::<u32>()].copy_from_slice(&value.to_le_bytes());
    };
    write(offset_of!(Header, units), units);
    let others = task.header.rows & ((1 << JOINED_SHIFT) - 1);
    write(offset_of!(Header, rows), others | joined_log2 << JOINED_SHIFT);
    if let Some(product) = product {
        let block = product.block;
        let counted =
            if block.header.rows & 0xff == RowSet::AllOutputs as u32 { rows.outputs() } else { rows.rows() };
        let of_band = of_first_band(counted);
        let of_unit = match product.is_tiled(counted) {
            true => product.tiled_rows_per_unit(of_band) * product.tiled_units(of_band).1,
            false => matmul_rows_per_unit(block.lanes_per_row_log2),
        };
        write(offset_of!(Matmul, weight_rows), block.weight_rows.min(units * of_unit));
    }
}

/// What of a task's parameter block decides what a unit does: the block without addresses and number of units; for a
/// product also without the number of weight rows, of which a unit has a fixed share. Odd and even layers are alike.
pub fn shape(task: &Task) -> Vec<u8> {
    let mut shape = task.parameters.clone();
    let mut clear = |at: usize, bytes: usize| {
        if let Some(part) = shape.get_mut(at..at + bytes) {
            part.fill(0);
        }
    };
    clear(offset_of!(Header, step_va), size_of::<u64>());
    clear(offset_of!(Header, units), size_of::<u32>());
    // Bits 15:8 say which snapshot of rows counts.
    clear(offset_of!(Header, rows) + 1, 1);
    let block = PARAMETER_BLOCKS.iter().find(|block| block.opcode as u16 == task.header.opcode);
    for (name, at, bytes) in block.map_or(&[][..], |block| block.layout.fields) {
        if name.ends_with("_va") || *name == "snapshot" {
            clear(*at, *bytes);
        }
    }
    if task.header.opcode == KernelOpcode::Matmul as u16 {
        clear(offset_of!(Matmul, weight_rows), size_of::<u32>());
        clear(offset_of!(Matmul, output_stride), size_of::<u32>());
        // Whether the rows are outputs: that only says how many there are.
        clear(offset_of!(Header, rows), 1);
    }
    shape
}

impl StepRows {
    /// Active rows.
    pub const fn rows(self) -> u32 {
        match self {
            StepRows::Decode { slots, .. } => slots,
            StepRows::Prompt { rows, .. } => rows,
        }
    }

    /// Rows with an output.
    pub const fn outputs(self) -> u32 {
        match self {
            StepRows::Decode { slots, .. } => slots,
            StepRows::Prompt { .. } => 1,
        }
    }

    /// Positions that a sequence must have room for.
    pub const fn context(self) -> u32 {
        match self {
            StepRows::Decode { position, .. } => position + 1,
            StepRows::Prompt { rows, position } => position + rows,
        }
    }

    fn slots(self) -> u32 {
        match self {
            StepRows::Decode { slots, .. } => slots,
            StepRows::Prompt { .. } => 1,
        }
    }

    /// The step as PLAN would write it.
    fn step(self) -> Step {
        let mut step = Step::new_zeroed();
        let rows = self.rows().min(ROWS_MAX as u32);
        (step.epoch, step.rows, step.outputs) = (1, rows, self.outputs().min(SLOTS_MAX as u32));
        for row in 0..rows {
            step.alive.iter_mut().for_each(|alive| alive[(row / 32) as usize] |= 1 << (row % 32));
        }
        for (index, row) in (0..rows).zip(&mut step.row) {
            *row = match self {
                StepRows::Decode { position, .. } => {
                    Row { slot: index, position, token: index, output: index }
                }
                StepRows::Prompt { position, .. } => {
                    let output = if index + 1 == rows { 0 } else { u32::MAX };
                    Row { slot: 0, position: position + index, token: index, output }
                }
            };
        }
        for (index, output) in (0..step.outputs).zip(&mut step.output) {
            *output = match self {
                StepRows::Decode { .. } => Output { row: index, slot: index },
                StepRows::Prompt { .. } => Output { row: rows - 1, slot: 0 },
            };
        }
        step
    }

    fn capacity(self, plan: &ExecutionPlan, kv_format: KvFormat) -> Capacity {
        Capacity {
            slots: self.slots(),
            pages: plan.context.div_ceil(PAGE_TOKENS),
            kv_format,
            tasks: task_count(plan),
            input_entries: RING_ENTRIES,
            output_entries: RING_ENTRIES,
            output_heap: Heap::Host,
            placement: Placement::default(),
        }
    }
}

/// The tasks of a step at address 0: their kernels, units and waits, for whoever needs no device.
pub fn tasks(
    model: &Model,
    plan: &ExecutionPlan,
    rows: StepRows,
    kv_format: KvFormat,
) -> Result<Vec<Task>, ExecutorError> {
    let memory = MemoryPlan::new(model, plan, &rows.capacity(plan, kv_format))?;
    lowered(model, plan, &memory, &BTreeMap::new(), kv_format)
}

/// Runs task number `index` over `rows`, with at most `units` units (of each row, where it has units for each row),
/// each of 2^`joined_log2` of the header's, in one workgroup.
///
/// # Errors
/// What the device says; `NoAdapter` and `Overflow` as for a session; `Kernel` if there is no such task.
pub fn run(
    device: &mut Device,
    model: &Model,
    plan: &ExecutionPlan,
    rows: StepRows,
    kv_format: KvFormat,
    (index, units, joined_log2): (usize, u32, u32),
) -> Result<(), ExecutorError> {
    let memory = MemoryPlan::new(model, plan, &rows.capacity(plan, kv_format))?;
    let mut buffers: BTreeMap<AllocationId, Buffer> = BTreeMap::new();
    for allocation in &memory.allocations {
        let buffer = device.allocate(allocation.heap, allocation.len, &allocation.id.name())?;
        buffers.insert(allocation.id, buffer);
    }
    let mut task = lowered(model, plan, &memory, &buffers, kv_format)?
        .into_iter()
        .nth(index)
        .ok_or(ExecutorError::Kernel { kernel: "task", reason: format!("there is no task {index}") })?;
    cut(&mut task, rows, (units, joined_log2));

    device.upload(&buffers[&AllocationId::Step], ByteLen(0), rows.step().as_bytes())?;
    let pages: Vec<u32> = (0..rows.slots()).flat_map(|_| 0..memory.pages_per_slot).collect();
    device.upload(&buffers[&AllocationId::Pages], ByteLen(0), pages.as_bytes())?;
    let parameters = &buffers[&AllocationId::Parameters];
    device.upload(parameters, ByteLen(0), &task.parameters)?;
    let blob = zrt_asm::blob(task.kernel).ok_or_else(|| ExecutorError::Kernel {
        kernel: task.kernel,
        reason: "it is not among the blobs".into(),
    })?;
    let kernel = device.load_kernel(blob)?;
    let mut recorder = device.recorder(1)?;
    recorder.dispatch(&kernel, parameters.va, [1, 1, 1])?;
    let graph = recorder.finish()?;
    let ticket = device.submit(&graph)?;
    Ok(device.wait(ticket, TASK_DEADLINE)?)
}

fn lowered(
    model: &Model,
    plan: &ExecutionPlan,
    memory: &MemoryPlan,
    buffers: &BTreeMap<AllocationId, Buffer>,
    kv_format: KvFormat,
) -> Result<Vec<Task>, ExecutorError> {
    let bases = buffers.iter().map(|(id, buffer)| (*id, buffer.va)).collect();
    let planning =
        Planning { input_entries: RING_ENTRIES, output_entries: RING_ENTRIES, chunk_rows: 1, waits: false };
    lower(&Addresses { model, plan, memory, bases: &bases, kv_format }, &planning)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_protocol::params::{Boundary, RmsNorm, SwiGlu};

    fn first_dword(value: u32) -> [u32; ROWS_MAX / 32] {
        let mut dwords = [0; ROWS_MAX / 32];
        dwords[0] = value;
        dwords
    }

    #[test]
    fn a_decoding_step_has_a_row_and_an_output_of_each_slot() {
        let step = StepRows::Decode { slots: 3, position: 9 }.step();
        assert_eq!((step.rows, step.outputs, step.alive), (3, 3, [first_dword(7); 2]));
        assert_eq!(step.row[2], Row { slot: 2, position: 9, token: 2, output: 2 });
        assert_eq!(step.output[2], Output { row: 2, slot: 2 });
    }

    #[test]
    fn slots_and_context_are_what_the_rows_take() {
        let decode = StepRows::Decode { slots: 3, position: 9 };
        let prompt = StepRows::Prompt { rows: 7, position: 9 };
        assert_eq!([decode, prompt].map(StepRows::slots), [3, 1]);
        assert_eq!([decode, prompt].map(StepRows::context), [10, 16]);
    }

    /// A task of an operation without products.
    fn gate(units: u32, rows: u32) -> Task {
        let mut block = SwiGlu::new_zeroed();
        block.header = Header { rows, ..SwiGlu::header(77, units, RowSet::Once) };
        let mut task = product(Matmul::new_zeroed());
        (task.kernel, task.header, task.parameters) = ("swiglu", block.header, block.as_bytes().to_vec());
        task
    }

    fn product(block: Matmul) -> Task {
        Task {
            kernel: "matmul_q4_k_a8",
            parameters: block.as_bytes().to_vec(),
            header: block.header,
            weight_pieces: None,
            units_max: 128,
            barrier_before: false,
            instruction: None,
        }
    }

    /// Bits 15:0 of the rows stay, and say which rows and which snapshot; bits 31:16 say how many units are one. As
    /// many units as asked for remain, each of all that are joined, but never none and never more than there were.
    #[test]
    fn a_cut_task_has_the_first_units_and_joins_them() {
        for (asked, joined_log2, units) in [
            (1, 0, 1),
            (5, 0, 5),
            (99, 0, 12),
            (0, 0, 1),
            (1, 1, 2),
            (5, 1, 10),
            (99, 1, 12),
            (99, 2, 12),
            (2, 2, 8),
        ] {
            let mut task = gate(12, 2 << 16 | 1 << 8 | RowSet::EachActive as u32);
            cut(&mut task, StepRows::Prompt { rows: 64, position: 0 }, (asked, joined_log2));
            let block = SwiGlu::read_from_bytes(&task.parameters).expect("a block of a gate");
            let rows = joined_log2 << 16 | 0x101;
            let expected = Header { units, rows, ..SwiGlu::header(77, units, RowSet::EachActive) };
            assert_eq!(block, SwiGlu { header: expected, ..SwiGlu::new_zeroed() }, "{asked}, {joined_log2}");
        }
    }

    /// 4096 rows of 4096 columns: 32 for each unit of the tape, 64 for each of tiles of three or more.
    #[test]
    fn a_cut_product_has_the_weight_rows_of_its_units() {
        let rows_of = |block: Matmul, set: RowSet, rows, units| {
            let mut task = product(Matmul { header: Matmul::header(0, block.header.units, set), ..block });
            cut(&mut task, rows, (units, 0));
            matmul(&task).expect("a matmul").block.weight_rows
        };
        let mut block = Matmul::new_zeroed();
        block.header = Matmul::header(0, 128, RowSet::AllActive);
        (block.weight_rows, block.columns, block.chunks) = (4096, 4096, 128);
        (block.lanes_per_row_log2, block.factors_offset) = (5, 4096);
        let (prompt, decode) =
            (StepRows::Prompt { rows: 64, position: 0 }, StepRows::Decode { slots: 64, position: 0 });
        assert_eq!(rows_of(block, RowSet::AllActive, prompt, 3), 192);
        assert_eq!(rows_of(block, RowSet::AllActive, prompt, 500), 4096);
        // A prompt has one output, and so no tiles; 64 slots have 64.
        assert_eq!(rows_of(block, RowSet::AllOutputs, prompt, 3), 96);
        assert_eq!(rows_of(block, RowSet::AllOutputs, decode, 3), 192);
        // Without factors there are no tiles.
        assert_eq!(rows_of(Matmul { factors_offset: 0, ..block }, RowSet::AllActive, prompt, 3), 96);
        // 128 rows of 256 columns are one unit of the tape, which tiles take in two turns of 64.
        let header = Matmul::header(0, 1, RowSet::AllActive);
        let short = Matmul { header, weight_rows: 128, chunks: 8, lanes_per_row_log2: 3, ..block };
        assert_eq!(rows_of(short, RowSet::AllActive, prompt, 1), 128);
    }

    #[test]
    fn products_of_floats_have_no_tiles() {
        let mut block = Matmul::new_zeroed();
        block.header = Matmul::header(0, 128, RowSet::AllActive);
        (block.weight_rows, block.chunks, block.lanes_per_row_log2) = (4096, 128, 5);
        let total = |kernel, rows| {
            let task = Task { kernel, ..product(block) };
            TaskUnits::of(&task, StepRows::Prompt { rows, position: 0 }, 128).total
        };
        assert_eq!([8, 9, 33].map(|rows| total("matmul_f16", rows)), [128; 3]);
        // Those of mode f16 have tiles from 9 rows on, and half as many units from 33 on.
        assert_eq!([8, 9, 33].map(|rows| total("matmul_f16_w16", rows)), [128, 128, 64]);
    }

    /// What stays of a block of a norm: everything but addresses, the number of units and the snapshot.
    #[test]
    fn a_shape_is_the_block_without_addresses_units_and_snapshot() {
        let header = Header { rows: 0x3_0101, ..RmsNorm::header(1 << 40, 7, RowSet::EachActive) };
        let block = RmsNorm {
            header,
            input_va: 2,
            weight_va: 3,
            output_va: 4,
            count: 5,
            inverse_count: 6,
            epsilon: 7,
            stride: 8,
            integers_va: 9,
            integers_stride: 10,
            factors_offset: 11,
            limbs: 1,
            reserved: 0,
        };
        let mut task = product(Matmul::new_zeroed());
        (task.header, task.parameters) = (header, block.as_bytes().to_vec());
        let header = Header { rows: 0x3_0001, ..RmsNorm::header(0, 0, RowSet::Once) };
        let expected = RmsNorm { header, input_va: 0, weight_va: 0, output_va: 0, integers_va: 0, ..block };
        assert_eq!(shape(&task), expected.as_bytes());
        // A BOUNDARY has its snapshot as a field.
        let mut block = Boundary::new_zeroed();
        (block.header, block.slots_va) = (Boundary::header(1, 1, RowSet::Once), 4);
        (block.control_va, block.snapshot) = (5, 1);
        (task.header, task.parameters) = (block.header, block.as_bytes().to_vec());
        let header = Boundary::header(0, 0, RowSet::Once);
        assert_eq!(shape(&task), Boundary { header, ..Boundary::new_zeroed() }.as_bytes());
    }

    #[test]
    fn units_of_rows_are_told_from_units_of_all_rows() {
        let task = |set: RowSet, units| Task {
            kernel: "copy",
            parameters: Vec::new(),
            header: Matmul::header(0, units, set),
            weight_pieces: None,
            units_max: units,
            barrier_before: false,
            instruction: None,
        };
        let rows = StepRows::Prompt { rows: 20, position: 0 };
        let of = |set| TaskUnits::of(&task(set, 3), rows, 128);
        let units = |total, rows_of_unit, is_of_a_row| TaskUnits {
            total,
            rows_of_unit,
            bands: 1,
            is_of_a_row,
            joined_log2: 0,
        };
        assert_eq!(of(RowSet::EachActive), units(60, 1, true));
        assert_eq!(of(RowSet::EachOutput), units(3, 1, true));
        assert_eq!(of(RowSet::AllActive), units(3, 20, false));
        assert_eq!(of(RowSet::AllOutputs), units(3, 1, false));
        assert_eq!(of(RowSet::Once), units(3, 1, false));
        // 20 rows of 8 units, up to 4 of which are one: of 160 with 40 groups, of 80 with 41.
        let mut joined = task(RowSet::EachActive, 8);
        joined.header.rows |= 2 << JOINED_SHIFT;
        let of_groups = |groups| {
            let units = TaskUnits::of(&joined, rows, groups);
            (units.total, units.joined_log2)
        };
        assert_eq!([40, 41, 81, 1].map(of_groups), [(40, 2), (80, 1), (160, 0), (40, 2)]);
    }

    /// A unit of tiles has 32 or 64 weight rows of 4096 columns, and more where units are few: a sample has no more
    /// rows than units.
    #[test]
    fn units_of_tiles_are_not_those_of_the_tape() {
        let mut block = Matmul::new_zeroed();
        block.header = Matmul::header(0, 128, RowSet::AllActive);
        (block.weight_rows, block.columns, block.chunks) = (4096, 4096, 128);
        (block.lanes_per_row_log2, block.factors_offset) = (5, 4096);
        let of =
            |block, rows| TaskUnits::of(&product(block), StepRows::Prompt { rows, position: 0 }, 128).total;
        assert_eq!([8, 9, 32, 33, 128].map(|rows| of(block, rows)), [128, 128, 128, 64, 64]);
        // 64 units for each band of rows.
        assert_eq!([129, 256, 257, 512].map(|rows| of(block, rows)), [128, 128, 192, 256]);
        let divided = Matmul { tile_parts_log2: 1, ..block };
        assert_eq!([9, 32, 33, 128].map(|rows| of(divided, rows)), [128; 4]);
        // 128 weight rows of 256 columns are one unit of the tape, and two turns of tiles.
        let short =
            Matmul { header: Matmul::header(0, 1, RowSet::AllActive), weight_rows: 128, chunks: 8, ..block };
        let of_integers = Product { block: short, is_of_halves: false };
        assert_eq!([32, 33].map(|rows| of_integers.tiled_units(rows)), [(1, 1), (1, 2)]);
        let of_halves = Product { block: short, is_of_halves: true };
        assert_eq!([32, 33].map(|rows| of_halves.tiled_units(rows)), [(1, 4), (1, 2)]);
        let mut task = product(block);
        cut(&mut task, StepRows::Prompt { rows: 128, position: 0 }, (2, 0));
        let block = matmul(&task).expect("a matmul").block;
        assert_eq!((block.header.units, block.weight_rows), (2, 128));
    }

    /// Addresses and the number of weight rows do not matter, the number of columns does.
    #[test]
    fn products_of_equal_rows_have_one_shape() {
        let task = |weight_rows, columns, va| {
            let mut block = Matmul::new_zeroed();
            block.header = Matmul::header(va, weight_rows / 32, RowSet::AllActive);
            (block.plane_va, block.weight_rows, block.columns) = ([va; 4], weight_rows, columns);
            product(block)
        };
        assert_eq!(shape(&task(64, 4096, 1)), shape(&task(96, 4096, 2)));
        assert_ne!(shape(&task(64, 4096, 1)), shape(&task(64, 2048, 1)));
    }

    #[test]
    fn a_prompt_has_consecutive_positions_and_one_output() {
        let rows = StepRows::Prompt { rows: 128, position: 64 };
        let step = rows.step();
        assert_eq!((step.rows, step.outputs, rows.context()), (128, 1, 192));
        assert_eq!(step.row[5], Row { slot: 0, position: 69, token: 5, output: u32::MAX });
        assert_eq!((step.row[127].output, step.output[0]), (0, Output { row: 127, slot: 0 }));
    }
}
