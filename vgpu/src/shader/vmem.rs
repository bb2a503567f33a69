//! Vector loads and stores: global, flat, scratch and buffer (instruction set reference §1, §6).
//!
//! Contract: executed at issue; any alignment; lanes in ascending order. If one mapping holds the accesses of all
//! lanes, there is one range check and then a relaxed access per dword; otherwise lanes are handled one by one. A
//! refused access stops the wave and names the first lane; earlier lanes have stored.
//! Cost at AVX-512: about 30 ns for a dword per lane, 60 ns for four.

use std::hint::black_box;
use std::marker::PhantomData;
use std::sync::atomic::{Ordering, fence};

use zrt_isa::{Encoding, Instruction, Opcode, Operand};
use zrt_mem::SharedView;

use crate::memory::Rights;
use crate::shader::address::{
    AddressMode, BUFFER_INDEX_ENABLE, BUFFER_OFFSET_ENABLE, Buffer, Flat, LaneIndex, SCRATCH_VECTOR_OFFSET,
    ScalarBase, Scratch, VectorPair, all_within, are_consecutive, patch_inactive, vector_source,
};
use crate::shader::atomics;
use crate::shader::control::{OrderAccesses, blank};
use crate::shader::formatted;
use crate::shader::lane_access::{active, read_dwords, read_lane, write_dwords, write_lane, write_lanes};
use crate::shader::lane_transfer::LaneTransfer;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::tiles;
use crate::shader::wave::{LANES, NULL, Row, Wave};
use crate::simd::{Executor, Level, Operation};

/// Most bytes that a lane accesses.
const LANE_BYTES_MAX: usize = 16;
/// Bit of VBUFFER's address flags: report failed texels, which is not modelled.
const BUFFER_FAIL_FLAG: u16 = 4;

/// The micro operation of a VFLAT, VGLOBAL, VSCRATCH or VBUFFER instruction.
pub(crate) fn translate(instruction: &Instruction, level: Level) -> Option<MicroOp> {
    let executor = function(instruction, level)?;
    let mut op = blank(executor);
    if let Operand::Vector(register) = instruction.destination {
        op.destination = register;
    }
    for (source, operand) in op.sources.iter_mut().zip(instruction.sources) {
        *source = match operand {
            Operand::Vector(register) => Source::Vector(register),
            Operand::Scalar(code) => Source::Scalar(code),
            _ => Source::Scalar(NULL),
        };
    }
    op.immediate = instruction.immediate;
    match instruction.encoding {
        Encoding::Vscratch => op.immediate2 = u32::from(instruction.address_flags) & SCRATCH_VECTOR_OFFSET,
        Encoding::Vbuffer => {
            let enables = BUFFER_OFFSET_ENABLE | BUFFER_INDEX_ENABLE;
            op.immediate2 = u32::from(instruction.address_flags) & enables;
            op.wide[0] = match instruction.soffset {
                Operand::Scalar(code) => u32::from(code),
                _ => u32::from(NULL),
            };
        }
        _ => {}
    }
    if let Some(transfer) = LaneTransfer::of(instruction.opcode) {
        transfer.describe(&mut op);
    }
    atomics::describe(instruction, &mut op);
    formatted::describe(instruction, &mut op);
    Some(op)
}

fn function(instruction: &Instruction, level: Level) -> Option<Executor> {
    match instruction.encoding {
        Encoding::Vglobal => match (instruction.opcode, instruction.sources[2]) {
            (Opcode::GlobalInv | Opcode::GlobalWb | Opcode::GlobalWbinv, _) => {
                Some(Executor::baseline::<OrderAccesses>())
            }
            (Opcode::GlobalLoadAddtidB32, Operand::Scalar(_)) => {
                Some(Executor::baseline::<LoadWords<LaneIndex>>())
            }
            (Opcode::GlobalStoreAddtidB32, Operand::Scalar(_)) => {
                Some(Executor::baseline::<StoreWords<LaneIndex>>())
            }
            (_, Operand::Scalar(_)) => access::<ScalarBase>(instruction, level),
            _ => access::<VectorPair>(instruction, level),
        },
        Encoding::Vflat => access::<Flat>(instruction, level),
        Encoding::Vscratch => private_access(instruction, level),
        Encoding::Vbuffer if instruction.address_flags & BUFFER_FAIL_FLAG != 0 => None,
        Encoding::Vbuffer => {
            formatted::function(instruction).or_else(|| access::<Buffer>(instruction, level))
        }
        _ => None,
    }
}

/// The function of a load, store or atomic with an address mode.
fn access<A: AddressMode>(instruction: &Instruction, level: Level) -> Option<Executor> {
    let Some(transfer) = LaneTransfer::of(instruction.opcode) else {
        return atomics::function::<A>(instruction).or_else(|| tiles::function::<A>(instruction.opcode));
    };
    Some(match (transfer.is_store(), transfer.is_narrow()) {
        (false, false) => level.bind::<LoadWords<A>>(),
        (false, true) => level.bind::<LoadNarrow<A>>(),
        (true, false) => level.bind::<StoreWords<A>>(),
        (true, true) => level.bind::<StoreNarrow<A>>(),
    })
}

/// Like [`access`], in private memory. Consecutive dwords of one lane are a dword of every lane apart.
fn private_access(instruction: &Instruction, level: Level) -> Option<Executor> {
    let Some(transfer) = LaneTransfer::of(instruction.opcode) else {
        return atomics::function::<Scratch>(instruction)
            .or_else(|| tiles::function::<Scratch>(instruction.opcode));
    };
    Some(match (transfer.is_store(), transfer.is_narrow()) {
        (false, false) => level.bind::<ScratchLoad>(),
        (false, true) => Executor::baseline::<LoadNarrow<Scratch>>(),
        (true, false) => level.bind::<ScratchStore>(),
        (true, true) => Executor::baseline::<StoreNarrow<Scratch>>(),
    })
}

/// Memory that all lanes access in one mapping.
enum Reach<'port> {
    /// Every lane is active, with consecutive accesses from this offset on.
    Consecutive(&'port SharedView, usize),
    /// Offset of the lowest lane, and distances from it; inactive lanes have that of an active one.
    Scattered(&'port SharedView, usize, Row),
}

/// Finds the memory of the active lanes, of which there is at least one; `None` if they must be handled one by one.
#[inline(always)]
fn reach<'port, A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &'port mut Machine<'_>,
    bytes: u32,
    alignment: u32,
    access: Rights,
) -> Option<Reach<'port>> {
    let exec = wave.exec();
    let (base, offsets) = A::near(wave, op, exec, bytes)?;
    if exec == u32::MAX && are_consecutive(&offsets, bytes) {
        let first = base.wrapping_add(u64::from(offsets.0[0]));
        let last = first.wrapping_add(u64::from(LANES as u32 * bytes) - 1);
        if let Some((at, offset)) = machine.memory.place(first, last, access)
            && offset % u64::from(alignment) == 0
        {
            return machine.memory.placed(at).map(|view| Reach::Consecutive(view, offset as usize));
        }
    }
    scattered(machine, base, &offsets, bytes, alignment, access)
}

#[inline(always)]
fn scattered<'port>(
    machine: &'port mut Machine<'_>,
    base: u64,
    offsets: &Row,
    bytes: u32,
    alignment: u32,
    access: Rights,
) -> Option<Reach<'port>> {
    let (view, va, len) = machine.memory.around(base.wrapping_add(u64::from(offsets.0[0])), access)?;
    // The range of offsets within the mapping.
    let start = va.wrapping_sub(base) as i64;
    let last = start.checked_add_unsigned(len.checked_sub(u64::from(bytes))?)?;
    let low = start.max(0);
    let high = last.min(i64::from(u32::MAX));
    if low > high {
        return None;
    }
    let offset = (low - start) as u64;
    let (low, high) = (low as u32, high as u32);
    let mut deltas = *offsets;
    for lane in 0..LANES {
        deltas.0[lane] = deltas.0[lane].wrapping_sub(low);
    }
    if offset % u64::from(alignment) != 0
        || !all_within(offsets, low, high, 1)
        || !all_within(&deltas, 0, u32::MAX, alignment)
    {
        return None;
    }
    // Used lane by lane from here on: that is cheaper in memory than in vector registers.
    Some(Reach::Scattered(view, offset as usize, black_box(deltas)))
}

/// Calls `$function::<ROWS>` with the row count of a transfer, so that its loops have constant bounds.
macro_rules! with_rows {
    ($rows:expr, $function:ident($($argument:expr),*)) => {
        match $rows {
            1 => $function::<1>($($argument),*),
            2 => $function::<2>($($argument),*),
            3 => $function::<3>($($argument),*),
            _ => $function::<4>($($argument),*),
        }
    };
}

struct LoadWords<A>(PhantomData<A>);
impl<A: AddressMode> Operation for LoadWords<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        if wave.exec() == 0 {
            return Flow::Next;
        }
        let (first, rows) = (op.destination as usize, LaneTransfer::in_op(op).rows());
        match reach::<A>(wave, op, machine, 4 * rows as u32, 4, Rights::READ) {
            Some(Reach::Consecutive(view, offset)) => {
                with_rows!(rows, load_run(wave, first, view, offset));
                Flow::Next
            }
            Some(Reach::Scattered(view, offset, deltas)) => {
                with_rows!(rows, load_scattered(wave, first, view, offset, &deltas));
                Flow::Next
            }
            None => load_by_lane::<A>(wave, op, machine),
        }
    }
}

#[inline(always)]
fn load_run<const ROWS: usize>(wave: &mut Wave, first: usize, view: &SharedView, offset: usize) {
    view.load_interleaved(offset, &mut wave.vector[first..first + ROWS]);
    fence(Ordering::Acquire);
}

#[inline(always)]
fn load_scattered<const ROWS: usize>(
    wave: &mut Wave,
    first: usize,
    view: &SharedView,
    offset: usize,
    deltas: &Row,
) {
    let mut rows = [[0; LANES]; ROWS];
    view.gather_u32(offset, &deltas.0, &mut rows);
    fence(Ordering::Acquire);
    let exec = wave.exec();
    for (index, row) in rows.iter().enumerate() {
        write_lanes(wave, first + index, exec, row);
    }
}

#[cold]
#[inline(never)]
fn load_by_lane<A: AddressMode>(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
    let exec = wave.exec();
    let transfer = LaneTransfer::in_op(op);
    let mut rows = [[0; LANES]; LANE_BYTES_MAX / 4];
    for lane in active(exec) {
        let mut bytes = [0; LANE_BYTES_MAX];
        let bytes = &mut bytes[..transfer.bytes()];
        if let Err(kind) = read_dwords::<A>(wave, op, machine, lane, bytes) {
            return machine.fail_lane(kind, lane);
        }
        for (row, word) in rows.iter_mut().zip(bytes.chunks_exact(4)) {
            row[lane] = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        }
    }
    for (index, row) in rows.iter().take(transfer.rows()).enumerate() {
        write_lanes(wave, op.destination as usize + index, exec, row);
    }
    Flow::Next
}

struct LoadNarrow<A>(PhantomData<A>);
impl<A: AddressMode> Operation for LoadNarrow<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        let transfer = LaneTransfer::in_op(op);
        let bytes = transfer.bytes() as u32;
        let mut raw = [0; LANES];
        match reach::<A>(wave, op, machine, bytes, bytes, Rights::READ) {
            Some(Reach::Consecutive(view, offset)) if bytes == 1 => view.load_u8_run(offset, &mut raw),
            Some(Reach::Consecutive(view, offset)) => view.load_u16_run(offset, &mut raw),
            Some(Reach::Scattered(view, offset, deltas)) if bytes == 1 => {
                view.gather_u8(offset, &deltas.0, &mut raw);
            }
            Some(Reach::Scattered(view, offset, deltas)) => view.gather_u16(offset, &deltas.0, &mut raw),
            None => {
                if !read_narrow::<A>(wave, op, machine, &mut raw) {
                    return Flow::Fault;
                }
            }
        }
        fence(Ordering::Acquire);
        transfer.place(&mut raw, &wave.vector[op.destination as usize].0);
        write_lanes(wave, op.destination as usize, exec, &raw);
        Flow::Next
    }
}

#[cold]
#[inline(never)]
fn read_narrow<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    raw: &mut [u32; LANES],
) -> bool {
    let width = LaneTransfer::in_op(op).bytes();
    for lane in active(wave.exec()) {
        let mut bytes = [0; 4];
        if let Err(kind) = read_lane::<A>(wave, op, machine, lane, &mut bytes[..width]) {
            machine.fail_lane(kind, lane);
            return false;
        }
        raw[lane] = u32::from_le_bytes(bytes);
    }
    true
}

struct StoreWords<A>(PhantomData<A>);
impl<A: AddressMode> Operation for StoreWords<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        if wave.exec() == 0 {
            return Flow::Next;
        }
        fence(Ordering::Release);
        let (data, rows) = (vector_source(op, 1), LaneTransfer::in_op(op).rows());
        match reach::<A>(wave, op, machine, 4 * rows as u32, 4, Rights::WRITE) {
            Some(Reach::Consecutive(view, offset)) => {
                with_rows!(rows, store_run(wave, data, view, offset));
                Flow::Next
            }
            Some(Reach::Scattered(view, offset, deltas)) => {
                with_rows!(rows, store_scattered(wave, data, view, offset, &deltas));
                Flow::Next
            }
            None => store_by_lane::<A>(wave, op, machine),
        }
    }
}

#[inline(always)]
fn store_run<const ROWS: usize>(wave: &Wave, data: usize, view: &SharedView, offset: usize) {
    view.store_interleaved(offset, &wave.vector[data..data + ROWS]);
}

#[inline(always)]
fn store_scattered<const ROWS: usize>(
    wave: &Wave,
    data: usize,
    view: &SharedView,
    offset: usize,
    deltas: &Row,
) {
    let mut rows = [[0; LANES]; ROWS];
    for (index, row) in rows.iter_mut().enumerate() {
        *row = wave.vector[(data + index) & 255].0;
    }
    view.scatter_u32(offset, &deltas.0, wave.exec(), &rows);
}

#[cold]
#[inline(never)]
fn store_by_lane<A: AddressMode>(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
    let data = vector_source(op, 1);
    for lane in active(wave.exec()) {
        let mut bytes = [0; LANE_BYTES_MAX];
        let bytes = &mut bytes[..LaneTransfer::in_op(op).bytes()];
        for (index, word) in bytes.chunks_exact_mut(4).enumerate() {
            word.copy_from_slice(&wave.vector[(data + index) & 255].0[lane].to_le_bytes());
        }
        if let Err(kind) = write_dwords::<A>(wave, op, machine, lane, bytes) {
            return machine.fail_lane(kind, lane);
        }
    }
    Flow::Next
}

struct StoreNarrow<A>(PhantomData<A>);
impl<A: AddressMode> Operation for StoreNarrow<A> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        fence(Ordering::Release);
        let transfer = LaneTransfer::in_op(op);
        let bytes = transfer.bytes();
        let mut data = wave.vector[vector_source(op, 1) & 255].0;
        if transfer.is_in_high_half() {
            data.iter_mut().for_each(|value| *value >>= 16);
        }
        match reach::<A>(wave, op, machine, bytes as u32, bytes as u32, Rights::WRITE) {
            Some(Reach::Consecutive(view, offset)) if bytes == 1 => {
                for (lane, value) in data.iter().enumerate() {
                    view.store_u8(offset + lane, *value as u8);
                }
            }
            Some(Reach::Consecutive(view, offset)) => {
                for (lane, value) in data.iter().enumerate() {
                    view.store_u16(offset + 2 * lane, *value as u16);
                }
            }
            Some(Reach::Scattered(view, offset, deltas)) => {
                for lane in active(exec) {
                    let at = offset + deltas.0[lane] as usize;
                    if bytes == 1 {
                        view.store_u8(at, data[lane] as u8);
                    } else {
                        view.store_u16(at, data[lane] as u16);
                    }
                }
            }
            None => return store_narrow_by_lane::<A>(wave, op, machine, &data),
        }
        Flow::Next
    }
}

#[cold]
#[inline(never)]
fn store_narrow_by_lane<A: AddressMode>(
    wave: &Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
    data: &[u32; LANES],
) -> Flow {
    for lane in active(wave.exec()) {
        let bytes = data[lane].to_le_bytes();
        if let Err(kind) = write_lane::<A>(wave, op, machine, lane, &bytes[..LaneTransfer::in_op(op).bytes()])
        {
            return machine.fail_lane(kind, lane);
        }
    }
    Flow::Next
}

/// Offsets of a private dword in all lanes, as deltas from the wave's scratch; `None` if any is unaligned or beyond
/// the segment.
#[inline(always)]
fn private_deltas(wave: &Wave, op: &MicroOp, machine: &Machine<'_>, exec: u32, rows: u32) -> Option<Row> {
    let mut deltas = patch_inactive(&Scratch::offsets(wave, op), exec);
    let limit = machine.scratch.lane_bytes.checked_sub(4 * rows)?;
    if !all_within(&deltas, 0, limit, 4) {
        return None;
    }
    for lane in 0..LANES {
        deltas.0[lane] = (deltas.0[lane] << machine.scratch.lanes_log2) + 4 * lane as u32;
    }
    Some(deltas)
}

struct ScratchLoad;
impl Operation for ScratchLoad {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        let rows = LaneTransfer::in_op(op).rows();
        if let Some(deltas) = private_deltas(wave, op, machine, exec, rows as u32) {
            let first = machine.scratch.wave_va;
            let last = machine.scratch.last_va();
            let stride = machine.scratch.dword_stride() as usize;
            if let Some((view, offset)) = machine.memory.range(first, last, Rights::READ) {
                for index in 0..rows {
                    let mut row = [[0; LANES]];
                    view.gather_u32(offset as usize + index * stride, &deltas.0, &mut row);
                    write_lanes(wave, op.destination as usize + index, exec, &row[0]);
                }
                return Flow::Next;
            }
        }
        load_by_lane::<Scratch>(wave, op, machine)
    }
}

struct ScratchStore;
impl Operation for ScratchStore {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        let rows = LaneTransfer::in_op(op).rows();
        if let Some(deltas) = private_deltas(wave, op, machine, exec, rows as u32) {
            let first = machine.scratch.wave_va;
            let last = machine.scratch.last_va();
            let stride = machine.scratch.dword_stride() as usize;
            if let Some((view, offset)) = machine.memory.range(first, last, Rights::WRITE) {
                for index in 0..rows {
                    let row = [wave.vector[(vector_source(op, 1) + index) & 255].0];
                    view.scatter_u32(offset as usize + index * stride, &deltas.0, exec, &row);
                }
                return Flow::Next;
            }
        }
        store_by_lane::<Scratch>(wave, op, machine)
    }
}

#[cfg(test)]
pub(crate) mod tests;
