//! LDS instructions and the cross-lane ones of the same class (instruction set reference §9).
//!
//! Contract: any alignment; all lanes' addresses are read before the destination is written; lanes in ascending
//! order. An access beyond the group's allocation stops the wave. Cost: 10 to 20 ns for a dword per lane.

use zrt_isa::{Instruction, Opcode, Operand};

use crate::shader::address::{patch_inactive, vector_source};
use crate::shader::atomics::{Kind, datum};
use crate::shader::control::blank;
use crate::shader::fault::WaveFaultKind;
use crate::shader::lane_access::{active, write_lanes};
use crate::shader::machine::{LDS_DWORDS_MAX, Lds, Machine};
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::wave::{LANES, M0, Row, Wave};
use crate::simd::{Executor, Level, Operation};

/// The micro operation of a VDS instruction.
pub(crate) fn translate(instruction: &Instruction, level: Level) -> Option<MicroOp> {
    let mut op = blank(function(instruction.opcode, level)?);
    if let Operand::Vector(register) = instruction.destination {
        op.destination = register;
    }
    for (source, operand) in op.sources.iter_mut().zip(instruction.sources) {
        if let Operand::Vector(register) = operand {
            *source = Source::Vector(register);
        }
    }
    op.immediate = instruction.immediate;
    if let Some((kind, wide)) = atomic(instruction.opcode) {
        let returns = matches!(instruction.destination, Operand::Vector(_));
        op.modifiers = kind as u32 | (wide as u32) << 8 | (returns as u32) << 9;
    }
    Some(op)
}

/// Kind and width of `ds_add_u32`, `ds_add_rtn_u32` and so on.
fn atomic(opcode: Opcode) -> Option<(Kind, bool)> {
    let name = opcode.mnemonic().strip_prefix("ds_")?;
    match name.split_once("rtn_") {
        Some((verb, data)) => Kind::parse(&format!("{verb}{data}")),
        None => Kind::parse(name),
    }
}

fn function(opcode: Opcode, level: Level) -> Option<Executor> {
    use Opcode::*;
    Some(match opcode {
        DsLoadB32 => level.bind::<Load<1>>(),
        DsLoadB64 => level.bind::<Load<2>>(),
        DsLoadB96 => level.bind::<Load<3>>(),
        DsLoadB128 => level.bind::<Load<4>>(),
        DsLoad2addrB32 => level.bind::<LoadTwo<1, 1>>(),
        DsLoad2addrStride64B32 => level.bind::<LoadTwo<1, 64>>(),
        DsLoad2addrB64 => level.bind::<LoadTwo<2, 1>>(),
        DsLoad2addrStride64B64 => level.bind::<LoadTwo<2, 64>>(),
        DsStoreB32 => level.bind::<Store<1>>(),
        DsStoreB64 => level.bind::<Store<2>>(),
        DsStoreB96 => level.bind::<Store<3>>(),
        DsStoreB128 => level.bind::<Store<4>>(),
        DsStore2addrB32 => level.bind::<StoreTwo<1, 1>>(),
        DsStore2addrStride64B32 => level.bind::<StoreTwo<1, 64>>(),
        DsStore2addrB64 => level.bind::<StoreTwo<2, 1>>(),
        DsStore2addrStride64B64 => level.bind::<StoreTwo<2, 64>>(),
        DsLoadU8 => plain::<LoadNarrow<1, 0, WHOLE>>(),
        DsLoadI8 => plain::<LoadNarrow<1, 24, WHOLE>>(),
        DsLoadU16 => plain::<LoadNarrow<2, 0, WHOLE>>(),
        DsLoadI16 => plain::<LoadNarrow<2, 16, WHOLE>>(),
        DsLoadU8D16 => plain::<LoadNarrow<1, 0, LOW>>(),
        DsLoadU8D16Hi => plain::<LoadNarrow<1, 0, HIGH>>(),
        DsLoadI8D16 => plain::<LoadNarrow<1, 24, LOW>>(),
        DsLoadI8D16Hi => plain::<LoadNarrow<1, 24, HIGH>>(),
        DsLoadU16D16 => plain::<LoadNarrow<2, 0, LOW>>(),
        DsLoadU16D16Hi => plain::<LoadNarrow<2, 0, HIGH>>(),
        DsStoreB8 => plain::<StoreNarrow<1, 0>>(),
        DsStoreB16 => plain::<StoreNarrow<2, 0>>(),
        DsStoreB8D16Hi => plain::<StoreNarrow<1, 16>>(),
        DsStoreB16D16Hi => plain::<StoreNarrow<2, 16>>(),
        DsLoadAddtidB32 => plain::<LoadByLane>(),
        DsStoreAddtidB32 => plain::<StoreByLane>(),
        DsStorexchg2addrRtnB32 => plain::<ExchangeTwo<false, 1>>(),
        DsStorexchg2addrStride64RtnB32 => plain::<ExchangeTwo<false, 64>>(),
        DsStorexchg2addrRtnB64 => plain::<ExchangeTwo<true, 1>>(),
        DsStorexchg2addrStride64RtnB64 => plain::<ExchangeTwo<true, 64>>(),
        DsPermuteB32 => plain::<Push>(),
        DsBpermuteB32 => level.bind::<Pull>(),
        DsSwizzleB32 => plain::<Swizzle>(),
        DsAppend => plain::<CountActive<true>>(),
        DsConsume => plain::<CountActive<false>>(),
        DsCondxchg32RtnB64 => plain::<ExchangeMarked>(),
        _ => {
            atomic(opcode)?;
            plain::<Atomic>()
        }
    })
}

fn plain<O: Operation>() -> Executor {
    Executor::baseline::<O>()
}

impl Lds {
    /// The fault for an access that is not possible, if it is not.
    #[inline(always)]
    pub fn check(&self, address: u32, width: u32) -> Result<(), WaveFaultKind> {
        match address.checked_add(width) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(WaveFaultKind::LdsOutOfRange { address, width, allocated: self.bytes }),
        }
    }

    #[inline(always)]
    fn byte(&self, address: u32) -> u8 {
        (self.words[address as usize / 4 % LDS_DWORDS_MAX] >> (address % 4 * 8)) as u8
    }

    #[inline(always)]
    fn set_byte(&mut self, address: u32, value: u8) {
        let word = &mut self.words[address as usize / 4 % LDS_DWORDS_MAX];
        let shift = address % 4 * 8;
        *word = *word & !(0xFF << shift) | u32::from(value) << shift;
    }

    /// Copies bytes out of a checked range.
    pub fn read_bytes(&self, address: u32, bytes: &mut [u8]) {
        for (at, byte) in (address..).zip(bytes) {
            *byte = self.byte(at);
        }
    }

    /// Copies bytes into a checked range.
    pub fn write_bytes(&mut self, address: u32, bytes: &[u8]) {
        for (at, byte) in (address..).zip(bytes) {
            self.set_byte(at, *byte);
        }
    }

    /// A dword of a checked range, at any alignment.
    #[inline(always)]
    fn load(&self, address: u32) -> u32 {
        if address % 4 == 0 {
            return self.words[address as usize / 4 % LDS_DWORDS_MAX];
        }
        let mut bytes = [0; 4];
        self.read_bytes(address, &mut bytes);
        u32::from_le_bytes(bytes)
    }

    #[inline(always)]
    fn store(&mut self, address: u32, value: u32) {
        if address % 4 == 0 {
            self.words[address as usize / 4 % LDS_DWORDS_MAX] = value;
        } else {
            self.write_bytes(address, &value.to_le_bytes());
        }
    }

    /// A read-modify-write in a checked range. Returns the old value.
    pub fn update(&mut self, address: u32, kind: Kind, wide: bool, data: u64, second: u64) -> u64 {
        let mut old = u64::from(self.load(address));
        if wide {
            old |= u64::from(self.load(address + 4)) << 32;
        }
        let new = kind.apply(wide, old, data, second);
        self.store(address, new as u32);
        if wide {
            self.store(address + 4, (new >> 32) as u32);
        }
        old
    }
}

/// Address of every lane; inactive lanes have that of an active one.
#[inline(always)]
fn addresses(wave: &Wave, op: &MicroOp, exec: u32, offset: u32) -> Row {
    let mut row = patch_inactive(&wave.vector[vector_source(op, 0) & 255], exec);
    for lane in 0..LANES {
        row.0[lane] = row.0[lane].wrapping_add(offset);
    }
    row
}

/// True if all accesses are inside and aligned to dwords.
#[inline(always)]
fn all_inside(addresses: &Row, width: u32, allocated: u32) -> bool {
    let (mut highest, mut bits) = (0, 0);
    for lane in 0..LANES {
        highest = highest.max(addresses.0[lane]);
        bits |= addresses.0[lane];
    }
    width <= allocated && highest <= allocated - width && bits % 4 == 0
}

/// Reads `ROWS` dwords per lane. Returns false if the wave was stopped.
#[inline(always)]
fn load_rows<const ROWS: usize>(
    machine: &mut Machine<'_>,
    addresses: &Row,
    exec: u32,
    rows: &mut [[u32; LANES]],
) -> bool {
    if all_inside(addresses, 4 * ROWS as u32, machine.lds.bytes) {
        for (index, row) in rows.iter_mut().enumerate().take(ROWS) {
            for (value, address) in row.iter_mut().zip(&addresses.0) {
                *value = machine.lds.words[(*address as usize / 4 + index) % LDS_DWORDS_MAX];
            }
        }
        return true;
    }
    for lane in active(exec) {
        let address = addresses.0[lane];
        if let Err(kind) = machine.lds.check(address, 4 * ROWS as u32) {
            machine.fail_lane(kind, lane);
            return false;
        }
        for (index, row) in rows.iter_mut().enumerate().take(ROWS) {
            row[lane] = machine.lds.load(address + 4 * index as u32);
        }
    }
    true
}

/// Writes `ROWS` dwords per lane from the registers at `data`. Returns false if the wave was stopped.
#[inline(always)]
fn store_rows<const ROWS: usize>(
    wave: &Wave,
    machine: &mut Machine<'_>,
    addresses: &Row,
    exec: u32,
    data: usize,
) -> bool {
    if exec == u32::MAX && all_inside(addresses, 4 * ROWS as u32, machine.lds.bytes) {
        for lane in 0..LANES {
            for index in 0..ROWS {
                machine.lds.words[(addresses.0[lane] as usize / 4 + index) % LDS_DWORDS_MAX] =
                    wave.vector[(data + index) & 255].0[lane];
            }
        }
        return true;
    }
    for lane in active(exec) {
        let address = addresses.0[lane];
        if let Err(kind) = machine.lds.check(address, 4 * ROWS as u32) {
            machine.fail_lane(kind, lane);
            return false;
        }
        for index in 0..ROWS {
            machine.lds.store(address + 4 * index as u32, wave.vector[(data + index) & 255].0[lane]);
        }
    }
    true
}

/// The two offsets of a `2addr` form, in bytes.
#[inline(always)]
fn two_offsets(op: &MicroOp, element_bytes: u32, stride: u32) -> [u32; 2] {
    let offsets = [op.immediate as u32 & 0xFF, op.immediate as u32 >> 8 & 0xFF];
    offsets.map(|offset| offset * element_bytes * stride)
}

struct Load<const ROWS: usize>;
impl<const ROWS: usize> Operation for Load<ROWS> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        let addresses = addresses(wave, op, exec, op.immediate as u32);
        let mut rows = [[0; LANES]; ROWS];
        if !load_rows::<ROWS>(machine, &addresses, exec, &mut rows) {
            return Flow::Fault;
        }
        for (index, row) in rows.iter().enumerate() {
            write_lanes(wave, op.destination as usize + index, exec, row);
        }
        Flow::Next
    }
}

/// Two elements of `ROWS` dwords each.
struct LoadTwo<const ROWS: usize, const STRIDE: u32>;
impl<const ROWS: usize, const STRIDE: u32> Operation for LoadTwo<ROWS, STRIDE> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        let mut rows = [[[0; LANES]; ROWS]; 2];
        for (element, offset) in two_offsets(op, 4 * ROWS as u32, STRIDE).into_iter().enumerate() {
            let addresses = addresses(wave, op, exec, offset);
            if !load_rows::<ROWS>(machine, &addresses, exec, &mut rows[element]) {
                return Flow::Fault;
            }
        }
        for (index, row) in rows.iter().flatten().enumerate() {
            write_lanes(wave, op.destination as usize + index, exec, row);
        }
        Flow::Next
    }
}

struct Store<const ROWS: usize>;
impl<const ROWS: usize> Operation for Store<ROWS> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        let addresses = addresses(wave, op, exec, op.immediate as u32);
        let stored = store_rows::<ROWS>(wave, machine, &addresses, exec, vector_source(op, 1));
        if stored { Flow::Next } else { Flow::Fault }
    }
}

struct StoreTwo<const ROWS: usize, const STRIDE: u32>;
impl<const ROWS: usize, const STRIDE: u32> Operation for StoreTwo<ROWS, STRIDE> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        for (element, offset) in two_offsets(op, 4 * ROWS as u32, STRIDE).into_iter().enumerate() {
            let addresses = addresses(wave, op, exec, offset);
            let data = vector_source(op, 1 + element);
            if !store_rows::<ROWS>(wave, machine, &addresses, exec, data) {
                return Flow::Fault;
            }
        }
        Flow::Next
    }
}

/// The part of the register that a narrow load replaces.
const WHOLE: u8 = 0;
const LOW: u8 = 1;
const HIGH: u8 = 2;

/// Loads of 1 and 2 bytes. `SIGN_SHIFT`: 32 minus the width if the value is signed, else 0.
struct LoadNarrow<const BYTES: u32, const SIGN_SHIFT: u32, const PART: u8>;
impl<const BYTES: u32, const SIGN_SHIFT: u32, const PART: u8> Operation
    for LoadNarrow<BYTES, SIGN_SHIFT, PART>
{
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        let source = wave.vector[vector_source(op, 0) & 255].0;
        let mut values = wave.vector[op.destination as usize].0;
        for lane in active(exec) {
            let address = source[lane].wrapping_add(op.immediate as u32);
            if let Err(kind) = machine.lds.check(address, BYTES) {
                return machine.fail_lane(kind, lane);
            }
            let mut raw = u32::from(machine.lds.byte(address));
            if BYTES == 2 {
                raw |= u32::from(machine.lds.byte(address + 1)) << 8;
            }
            let value = ((raw << SIGN_SHIFT) as i32 >> SIGN_SHIFT) as u32;
            values[lane] = match PART {
                LOW => values[lane] & 0xFFFF_0000 | value & 0xFFFF,
                HIGH => values[lane] & 0xFFFF | value << 16,
                _ => value,
            };
        }
        wave.vector[op.destination as usize].0 = values;
        Flow::Next
    }
}

/// Stores of 1 and 2 bytes from bit `SHIFT` of the register.
struct StoreNarrow<const BYTES: u32, const SHIFT: u32>;
impl<const BYTES: u32, const SHIFT: u32> Operation for StoreNarrow<BYTES, SHIFT> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        for lane in active(wave.exec()) {
            let address = wave.vector[vector_source(op, 0) & 255].0[lane].wrapping_add(op.immediate as u32);
            if let Err(kind) = machine.lds.check(address, BYTES) {
                return machine.fail_lane(kind, lane);
            }
            let bytes = (wave.vector[vector_source(op, 1) & 255].0[lane] >> SHIFT).to_le_bytes();
            machine.lds.write_bytes(address, &bytes[..BYTES as usize]);
        }
        Flow::Next
    }
}

/// Offset plus m0 plus four bytes per lane.
fn by_lane(wave: &Wave, op: &MicroOp, lane: usize) -> u32 {
    op.immediate as u32 + (wave.scalar[M0 as usize] & 0xFFFF) + 4 * lane as u32
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($wave:ident, $op:ident, $machine:ident) $body:block)*) => {
        $($(#[$doc])* struct $name;
        impl Operation for $name {
            #[inline(always)]
            fn execute($wave: &mut Wave, $op: &MicroOp, $machine: &mut Machine<'_>) -> Flow $body
        })*
    };
}

operations! {
    LoadByLane(wave, op, machine) {
        for lane in active(wave.exec()) {
            let address = by_lane(wave, op, lane);
            if let Err(kind) = machine.lds.check(address, 4) {
                return machine.fail_lane(kind, lane);
            }
            wave.vector[op.destination as usize].0[lane] = machine.lds.load(address);
        }
        Flow::Next
    }

    StoreByLane(wave, op, machine) {
        for lane in active(wave.exec()) {
            let address = by_lane(wave, op, lane);
            if let Err(kind) = machine.lds.check(address, 4) {
                return machine.fail_lane(kind, lane);
            }
            machine.lds.store(address, wave.vector[vector_source(op, 1) & 255].0[lane]);
        }
        Flow::Next
    }

    Atomic(wave, op, machine) {
        let exec = wave.exec();
        let (kind, wide, returns) = (Kind::of(op), op.modifiers >> 8 & 1 != 0, op.modifiers >> 9 & 1 != 0);
        let mut old = [[0; LANES]; 2];
        for lane in active(exec) {
            let address = wave.vector[vector_source(op, 0) & 255].0[lane].wrapping_add(op.immediate as u32);
            if let Err(kind) = machine.lds.check(address, if wide { 8 } else { 4 }) {
                return machine.fail_lane(kind, lane);
            }
            let data = datum(wave, vector_source(op, 1), lane, wide);
            let second = datum(wave, vector_source(op, 2), lane, wide);
            let value = machine.lds.update(address, kind, wide, data, second);
            (old[0][lane], old[1][lane]) = (value as u32, (value >> 32) as u32);
        }
        if returns {
            for (index, row) in old.iter().enumerate().take(1 + wide as usize) {
                write_lanes(wave, op.destination as usize + index, exec, row);
            }
        }
        Flow::Next
    }

    /// `ds_permute`: lanes send; the highest sender wins; lanes without a sender receive zero.
    Push(wave, op, _machine) {
        let exec = wave.exec();
        let mut values = [0; LANES];
        for lane in active(exec) {
            let address = wave.vector[vector_source(op, 0) & 255].0[lane].wrapping_add(op.immediate as u32);
            values[address as usize / 4 % LANES] = wave.vector[vector_source(op, 1) & 255].0[lane];
        }
        write_lanes(wave, op.destination as usize, exec, &values);
        Flow::Next
    }

    /// `ds_bpermute`: lanes fetch; an inactive source returns zero.
    Pull(wave, op, _machine) {
        let exec = wave.exec();
        let addresses = wave.vector[vector_source(op, 0) & 255];
        let mut data = wave.vector[vector_source(op, 1) & 255];
        if exec != u32::MAX {
            data = crate::simd::blend(exec, &data, &Row([0; LANES]));
        }
        let mut values = [0; LANES];
        for (value, address) in values.iter_mut().zip(&addresses.0) {
            let address = address.wrapping_add(op.immediate as u32);
            *value = data.0[address as usize / 4 % LANES];
        }
        write_lanes(wave, op.destination as usize, exec, &values);
        Flow::Next
    }

    Swizzle(wave, op, _machine) {
        let exec = wave.exec();
        let data = wave.vector[vector_source(op, 0) & 255].0;
        let mut values = [0; LANES];
        for (lane, value) in values.iter_mut().enumerate() {
            let source = swizzle_source(op.immediate as u32, lane as u32) as usize % LANES;
            *value = if exec >> source & 1 != 0 { data[source] } else { 0 };
        }
        write_lanes(wave, op.destination as usize, exec, &values);
        Flow::Next
    }
}

/// `ds_append` and `ds_consume`: the number of active lanes is added to (subtracted from) the dword at M0[15:0]
/// plus the offset; all active lanes receive the old value. Nothing happens without active lanes.
struct CountActive<const UP: bool>;
impl<const UP: bool> Operation for CountActive<UP> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        if exec == 0 {
            return Flow::Next;
        }
        let address = (wave.scalar[M0 as usize] & 0xFFFF) + op.immediate as u32;
        if let Err(kind) = machine.lds.check(address, 4) {
            return machine.fail(kind);
        }
        let kind = if UP { Kind::Add } else { Kind::Subtract };
        let old = machine.lds.update(address, kind, false, u64::from(exec.count_ones()), 0);
        write_lanes(wave, op.destination as usize, exec, &[old as u32; LANES]);
        Flow::Next
    }
}

/// `ds_condxchg32_rtn_b64`: two dwords at a multiple of 8. Each is replaced by the low 31 bits of its datum if bit
/// 31 of the datum is set.
struct ExchangeMarked;
impl Operation for ExchangeMarked {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        let mut old = [[0; LANES]; 2];
        for lane in active(exec) {
            let base = wave.vector[vector_source(op, 0) & 255].0[lane];
            let address = base.wrapping_add(op.immediate as u32) & !7;
            if let Err(kind) = machine.lds.check(address, 8) {
                return machine.fail_lane(kind, lane);
            }
            for (index, row) in old.iter_mut().enumerate() {
                let at = address + 4 * index as u32;
                let datum = wave.vector[(vector_source(op, 1) + index) & 255].0[lane];
                row[lane] = machine.lds.load(at);
                if datum >> 31 != 0 {
                    machine.lds.store(at, datum & 0x7FFF_FFFF);
                }
            }
        }
        for (index, row) in old.iter().enumerate() {
            write_lanes(wave, op.destination as usize + index, exec, row);
        }
        Flow::Next
    }
}

/// Exchanges two elements.
struct ExchangeTwo<const WIDE: bool, const STRIDE: u32>;
impl<const WIDE: bool, const STRIDE: u32> Operation for ExchangeTwo<WIDE, STRIDE> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        let bytes = if WIDE { 8 } else { 4 };
        let mut rows = [[0; LANES]; 4];
        for lane in active(exec) {
            let base = wave.vector[vector_source(op, 0) & 255].0[lane];
            for (element, offset) in two_offsets(op, bytes, STRIDE).into_iter().enumerate() {
                let address = base.wrapping_add(offset);
                if let Err(kind) = machine.lds.check(address, bytes) {
                    return machine.fail_lane(kind, lane);
                }
                let data = datum(wave, vector_source(op, 1 + element), lane, WIDE);
                let old = machine.lds.update(address, Kind::Swap, WIDE, data, 0);
                let first = element * (1 + WIDE as usize);
                rows[first][lane] = old as u32;
                if WIDE {
                    rows[first + 1][lane] = (old >> 32) as u32;
                }
            }
        }
        for (index, row) in rows.iter().enumerate().take(2 + 2 * WIDE as usize) {
            write_lanes(wave, op.destination as usize + index, exec, row);
        }
        Flow::Next
    }
}

/// Lane that `ds_swizzle` fetches from (instruction set reference §9).
fn swizzle_source(offset: u32, lane: u32) -> u32 {
    match offset {
        0xE000.. => fft_source(offset, lane),
        0xC000..=0xDFFF => {
            // Rotation by 9:5, to the right if bit 10 is set, within the lanes that differ only outside the mask 4:0.
            let (mask, amount) = (offset & 31, offset >> 5 & 31);
            let turned = if offset >> 10 & 1 != 0 { lane.wrapping_sub(amount) } else { lane + amount };
            lane & mask | turned & !mask & 31
        }
        0x8000..=0xBFFF => lane & !3 | offset >> (2 * (lane & 3)) & 3,
        _ => (lane & (offset & 31) | offset >> 5 & 31) ^ (offset >> 10 & 31),
    }
}

/// Bit reversal of the lane number under the mask 4:0.
fn fft_source(offset: u32, lane: u32) -> u32 {
    let mask = offset & 31;
    let reversed = lane.reverse_bits() >> 27;
    reversed >> mask.count_ones() | lane & mask
}

#[cfg(test)]
mod tests;
