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
use crate::shader::lane_access::{active, read_lane, write_lane, write_lanes};
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
    atomics::describe(instruction, &mut op);
    formatted::describe(instruction, &mut op);
    Some(op)
}

fn function(instruction: &Instruction, level: Level) -> Option<Executor> {
    match instruction.encoding {
        Encoding::Vglobal => match (instruction.opcode, instruction.sources[2]) {
            (Opcode::GlobalInv | Opcode::GlobalWb | Opcode::GlobalWbinv, _) => {
                Some(Level::BASELINE.bind::<OrderAccesses>())
            }
            (Opcode::GlobalLoadAddtidB32 | Opcode::GlobalStoreAddtidB32, Operand::Scalar(_)) => {
                access::<LaneIndex>(instruction, level)
            }
            (_, Operand::Scalar(_)) => access::<ScalarBase>(instruction, level),
            _ => access::<VectorPair>(instruction, level),
        },
        Encoding::Vflat => access::<Flat>(instruction, level),
        Encoding::Vscratch => scratch(instruction, level).or_else(|| access::<Scratch>(instruction, level)),
        Encoding::Vbuffer if instruction.address_flags & BUFFER_FAIL_FLAG != 0 => None,
        Encoding::Vbuffer => {
            formatted::function(instruction).or_else(|| access::<Buffer>(instruction, level))
        }
        _ => None,
    }
}

/// Loads and stores of at least one private dword: consecutive dwords of one lane are a dword of every lane apart.
fn scratch(instruction: &Instruction, level: Level) -> Option<Executor> {
    Some(match instruction.opcode {
        Opcode::ScratchLoadB32 => level.bind::<ScratchLoad<1>>(),
        Opcode::ScratchLoadB64 => level.bind::<ScratchLoad<2>>(),
        Opcode::ScratchLoadB96 => level.bind::<ScratchLoad<3>>(),
        Opcode::ScratchLoadB128 => level.bind::<ScratchLoad<4>>(),
        Opcode::ScratchStoreB32 => level.bind::<ScratchStore<1>>(),
        Opcode::ScratchStoreB64 => level.bind::<ScratchStore<2>>(),
        Opcode::ScratchStoreB96 => level.bind::<ScratchStore<3>>(),
        Opcode::ScratchStoreB128 => level.bind::<ScratchStore<4>>(),
        _ => return None,
    })
}

/// The function of a load, store or atomic with an address mode. The four families use the same names.
fn access<A: AddressMode>(instruction: &Instruction, level: Level) -> Option<Executor> {
    let mnemonic = instruction.opcode.mnemonic();
    let (_, operation) = mnemonic.split_once('_')?;
    Some(match operation {
        "load_u8" => level.bind::<LoadNarrow<A, U8>>(),
        "load_i8" => level.bind::<LoadNarrow<A, I8>>(),
        "load_u16" => level.bind::<LoadNarrow<A, U16>>(),
        "load_i16" => level.bind::<LoadNarrow<A, I16>>(),
        "load_d16_u8" => level.bind::<LoadNarrow<A, Low<U8>>>(),
        "load_d16_i8" => level.bind::<LoadNarrow<A, Low<I8>>>(),
        "load_d16_b16" => level.bind::<LoadNarrow<A, Low<U16>>>(),
        "load_d16_hi_u8" => level.bind::<LoadNarrow<A, High<U8>>>(),
        "load_d16_hi_i8" => level.bind::<LoadNarrow<A, High<I8>>>(),
        "load_d16_hi_b16" => level.bind::<LoadNarrow<A, High<U16>>>(),
        "load_b32" | "load_addtid_b32" => level.bind::<LoadWords<A, 1>>(),
        "load_b64" => level.bind::<LoadWords<A, 2>>(),
        "load_b96" => level.bind::<LoadWords<A, 3>>(),
        "load_b128" => level.bind::<LoadWords<A, 4>>(),
        "store_b8" => level.bind::<StoreNarrow<A, 1, 0>>(),
        "store_b16" => level.bind::<StoreNarrow<A, 2, 0>>(),
        "store_d16_hi_b8" => level.bind::<StoreNarrow<A, 1, 16>>(),
        "store_d16_hi_b16" => level.bind::<StoreNarrow<A, 2, 16>>(),
        "store_b32" | "store_addtid_b32" => level.bind::<StoreWords<A, 1>>(),
        "store_b64" => level.bind::<StoreWords<A, 2>>(),
        "store_b96" => level.bind::<StoreWords<A, 3>>(),
        "store_b128" => level.bind::<StoreWords<A, 4>>(),
        _ => return atomics::function::<A>(instruction).or_else(|| tiles::function::<A>(instruction.opcode)),
    })
}

/// How a narrow load transforms the bytes.
trait Narrow {
    const BYTES: usize;
    /// The new value of the register from the zero-extended bytes and its old value.
    fn place(raw: u32, old: u32) -> u32;
}

macro_rules! narrow {
    ($($name:ident $bytes:literal $raw:ident $value:expr;)*) => {
        $(struct $name;
        impl Narrow for $name {
            const BYTES: usize = $bytes;
            #[inline(always)]
            fn place($raw: u32, _old: u32) -> u32 {
                $value
            }
        })*
    };
}

narrow! {
    U8 1 raw raw;
    I8 1 raw raw as i8 as i32 as u32;
    U16 2 raw raw;
    I16 2 raw raw as i16 as i32 as u32;
}

/// Replaces the low half of the register.
struct Low<N>(PhantomData<N>);
impl<N: Narrow> Narrow for Low<N> {
    const BYTES: usize = N::BYTES;
    #[inline(always)]
    fn place(raw: u32, old: u32) -> u32 {
        old & 0xFFFF_0000 | N::place(raw, old) & 0xFFFF
    }
}

/// Replaces the high half of the register.
struct High<N>(PhantomData<N>);
impl<N: Narrow> Narrow for High<N> {
    const BYTES: usize = N::BYTES;
    #[inline(always)]
    fn place(raw: u32, old: u32) -> u32 {
        old & 0xFFFF | N::place(raw, old) << 16
    }
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

struct LoadWords<A, const ROWS: usize>(PhantomData<A>);
impl<A: AddressMode, const ROWS: usize> Operation for LoadWords<A, ROWS> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        let first = op.destination as usize;
        match reach::<A>(wave, op, machine, 4 * ROWS as u32, 4, Rights::READ) {
            Some(Reach::Consecutive(view, offset)) if first + ROWS <= wave.vector.len() => {
                view.load_interleaved(offset, &mut wave.vector[first..first + ROWS]);
                fence(Ordering::Acquire);
                Flow::Next
            }
            Some(Reach::Scattered(view, offset, deltas)) => {
                let mut rows = [[0; LANES]; ROWS];
                view.gather_u32(offset, &deltas.0, &mut rows);
                fence(Ordering::Acquire);
                for (index, row) in rows.iter().enumerate() {
                    write_lanes(wave, first + index, exec, row);
                }
                Flow::Next
            }
            _ => load_by_lane::<A, ROWS>(wave, op, machine),
        }
    }
}

#[cold]
#[inline(never)]
fn load_by_lane<A: AddressMode, const ROWS: usize>(
    wave: &mut Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
) -> Flow {
    let exec = wave.exec();
    let mut rows = [[0; LANES]; ROWS];
    for lane in active(exec) {
        let mut bytes = [0; LANE_BYTES_MAX];
        let bytes = &mut bytes[..4 * ROWS];
        if let Err(kind) = read_lane::<A>(wave, op, machine, lane, bytes) {
            return machine.fail_lane(kind, lane);
        }
        for (row, word) in rows.iter_mut().zip(bytes.chunks_exact(4)) {
            row[lane] = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        }
    }
    for (index, row) in rows.iter().enumerate() {
        write_lanes(wave, op.destination as usize + index, exec, row);
    }
    Flow::Next
}

struct LoadNarrow<A, N>(PhantomData<(A, N)>);
impl<A: AddressMode, N: Narrow> Operation for LoadNarrow<A, N> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        let mut raw = [0; LANES];
        match reach::<A>(wave, op, machine, N::BYTES as u32, N::BYTES as u32, Rights::READ) {
            Some(Reach::Consecutive(view, offset)) if N::BYTES == 1 => view.load_u8_run(offset, &mut raw),
            Some(Reach::Consecutive(view, offset)) => view.load_u16_run(offset, &mut raw),
            Some(Reach::Scattered(view, offset, deltas)) if N::BYTES == 1 => {
                view.gather_u8(offset, &deltas.0, &mut raw);
            }
            Some(Reach::Scattered(view, offset, deltas)) => view.gather_u16(offset, &deltas.0, &mut raw),
            None => {
                if !read_narrow::<A>(wave, op, machine, N::BYTES, &mut raw) {
                    return Flow::Fault;
                }
            }
        }
        fence(Ordering::Acquire);
        let old = wave.vector[op.destination as usize].0;
        for lane in 0..LANES {
            raw[lane] = N::place(raw[lane], old[lane]);
        }
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
    width: usize,
    raw: &mut [u32; LANES],
) -> bool {
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

struct StoreWords<A, const ROWS: usize>(PhantomData<A>);
impl<A: AddressMode, const ROWS: usize> Operation for StoreWords<A, ROWS> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        fence(Ordering::Release);
        let data = vector_source(op, 1);
        match reach::<A>(wave, op, machine, 4 * ROWS as u32, 4, Rights::WRITE) {
            Some(Reach::Consecutive(view, offset)) if data + ROWS <= wave.vector.len() => {
                view.store_interleaved(offset, &wave.vector[data..data + ROWS]);
                Flow::Next
            }
            Some(Reach::Scattered(view, offset, deltas)) => {
                let mut rows = [[0; LANES]; ROWS];
                for (index, row) in rows.iter_mut().enumerate() {
                    *row = wave.vector[(data + index) & 255].0;
                }
                view.scatter_u32(offset, &deltas.0, exec, &rows);
                Flow::Next
            }
            _ => store_by_lane::<A, ROWS>(wave, op, machine),
        }
    }
}

#[cold]
#[inline(never)]
fn store_by_lane<A: AddressMode, const ROWS: usize>(
    wave: &mut Wave,
    op: &MicroOp,
    machine: &mut Machine<'_>,
) -> Flow {
    let data = vector_source(op, 1);
    for lane in active(wave.exec()) {
        let mut bytes = [0; LANE_BYTES_MAX];
        for (index, word) in bytes[..4 * ROWS].chunks_exact_mut(4).enumerate() {
            word.copy_from_slice(&wave.vector[(data + index) & 255].0[lane].to_le_bytes());
        }
        if let Err(kind) = write_lane::<A>(wave, op, machine, lane, &bytes[..4 * ROWS]) {
            return machine.fail_lane(kind, lane);
        }
    }
    Flow::Next
}

/// Stores of 1 and 2 bytes from bit `SHIFT` of the register.
struct StoreNarrow<A, const BYTES: usize, const SHIFT: u32>(PhantomData<A>);
impl<A: AddressMode, const BYTES: usize, const SHIFT: u32> Operation for StoreNarrow<A, BYTES, SHIFT> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        fence(Ordering::Release);
        let data = wave.vector[vector_source(op, 1) & 255].0;
        match reach::<A>(wave, op, machine, BYTES as u32, BYTES as u32, Rights::WRITE) {
            Some(Reach::Consecutive(view, offset)) => {
                for (lane, value) in data.iter().enumerate() {
                    store_narrow::<BYTES>(view, offset + BYTES * lane, value >> SHIFT);
                }
                return Flow::Next;
            }
            Some(Reach::Scattered(view, offset, deltas)) => {
                for lane in active(exec) {
                    store_narrow::<BYTES>(view, offset + deltas.0[lane] as usize, data[lane] >> SHIFT);
                }
                return Flow::Next;
            }
            None => {}
        }
        for lane in active(exec) {
            let bytes = (data[lane] >> SHIFT).to_le_bytes();
            if let Err(kind) = write_lane::<A>(wave, op, machine, lane, &bytes[..BYTES]) {
                return machine.fail_lane(kind, lane);
            }
        }
        Flow::Next
    }
}

#[inline(always)]
fn store_narrow<const BYTES: usize>(view: &SharedView, at: usize, value: u32) {
    if BYTES == 1 {
        view.store_u8(at, value as u8);
    } else {
        view.store_u16(at, value as u16);
    }
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

struct ScratchLoad<const ROWS: usize>;
impl<const ROWS: usize> Operation for ScratchLoad<ROWS> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        if let Some(deltas) = private_deltas(wave, op, machine, exec, ROWS as u32) {
            let first = machine.scratch.wave_va;
            let last = machine.scratch.last_va();
            let stride = machine.scratch.dword_stride() as usize;
            if let Some((view, offset)) = machine.memory.range(first, last, Rights::READ)
                && offset % 4 == 0
            {
                for index in 0..ROWS {
                    let mut row = [[0; LANES]];
                    view.gather_u32(offset as usize + index * stride, &deltas.0, &mut row);
                    write_lanes(wave, op.destination as usize + index, exec, &row[0]);
                }
                return Flow::Next;
            }
        }
        load_by_lane::<Scratch, ROWS>(wave, op, machine)
    }
}

struct ScratchStore<const ROWS: usize>;
impl<const ROWS: usize> Operation for ScratchStore<ROWS> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        if let Some(deltas) = private_deltas(wave, op, machine, exec, ROWS as u32) {
            let first = machine.scratch.wave_va;
            let last = machine.scratch.last_va();
            let stride = machine.scratch.dword_stride() as usize;
            if let Some((view, offset)) = machine.memory.range(first, last, Rights::WRITE)
                && offset % 4 == 0
            {
                for index in 0..ROWS {
                    let row = [wave.vector[(vector_source(op, 1) + index) & 255].0];
                    view.scatter_u32(offset as usize + index * stride, &deltas.0, exec, &row);
                }
                return Flow::Next;
            }
        }
        store_by_lane::<Scratch, ROWS>(wave, op, machine)
    }
}
