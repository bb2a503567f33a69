//! Reading sources and writing results in full generality: any operand kind, sign modifiers, halves, lane selects,
//! partial EXEC.
//!
//! Contract: every source is read before anything is written. Functions marked `inline(always)` are compiled with
//! each operation at its vector level; the others are compiled once, for the baseline.

use super::operand::{LANES_NONE, Packed, read_scalar};
use crate::shader::lanes::{select_lanes, writable};
use crate::shader::micro::{MicroOp, Source};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{blend, merge_half, splat};

/// How a source's bits become the operand: the half that op_sel selects, absolute value, negation.
#[derive(Clone, Copy)]
pub(super) struct Adjust {
    shift: u32,
    keep: u32,
    flip: u32,
}

impl Adjust {
    /// For a 32-bit or 16-bit source of an instruction.
    #[inline(always)]
    pub fn of(modifiers: Packed, index: usize) -> Self {
        let half = modifiers.half_source(index);
        let (mask, sign) = if half { (0xFFFF, 1 << 15) } else { (u32::MAX, 1 << 31) };
        Adjust {
            shift: if half && modifiers.selects_high(index) { 16 } else { 0 },
            keep: if modifiers.absolute(index) { mask & !sign } else { mask },
            flip: if modifiers.negate(index) { sign } else { 0 },
        }
    }

    /// For one half of a packed source (VOP3P), in which the bits of abs are those of neg_hi.
    #[inline(always)]
    pub fn of_half(modifiers: Packed, index: usize, high: bool, float: bool) -> Self {
        let select = if high { modifiers.high_selects_high(index) } else { modifiers.selects_high(index) };
        let negate = if high { modifiers.absolute(index) } else { modifiers.negate(index) };
        Adjust {
            shift: if select { 16 } else { 0 },
            keep: 0xFFFF,
            flip: if float && negate { 1 << 15 } else { 0 },
        }
    }

    /// For the high dword of a 64-bit source.
    #[inline(always)]
    pub fn of_high_dword(modifiers: Packed, index: usize) -> Self {
        Adjust {
            shift: 0,
            keep: if modifiers.absolute(index) { u32::MAX >> 1 } else { u32::MAX },
            flip: if modifiers.negate(index) { 1 << 31 } else { 0 },
        }
    }

    #[inline(always)]
    pub fn apply(self, bits: u32) -> u32 {
        bits >> self.shift & self.keep ^ self.flip
    }

    /// A source that is shifted is a half, of which less is kept.
    fn changes_nothing(self) -> bool {
        self.keep == u32::MAX && self.flip == 0
    }
}

/// A source before adjustment: the register in place, or in `room` a value that is uniform or comes from other
/// lanes.
#[inline(always)]
pub(super) fn raw_source<'a>(wave: &'a Wave, op: &MicroOp, index: usize, room: &'a mut Row) -> &'a Row {
    if index == 0 && Packed(op.modifiers).lanes() != LANES_NONE {
        fetch_raw(wave, op, 0, room);
        return room;
    }
    match op.sources[index] {
        Source::Vector(register) => return &wave.vector[register as usize],
        Source::Scalar(code) => *room = splat(read_scalar(wave, code)),
        Source::Constant(value) => *room = splat(value),
    }
    room
}

/// The first `count` sources before adjustment; an absent one is the first. See [`raw_source`].
#[inline(never)]
pub(super) fn raw_sources<'a>(
    wave: &'a Wave,
    op: &MicroOp,
    count: usize,
    rooms: &'a mut [Row; 3],
) -> [&'a Row; 3] {
    up_to_three(count, rooms, |index, room| raw_source(wave, op, index, room))
}

/// The first `count` 32-bit or 16-bit sources with all adjustments; an absent one is the first.
#[inline(never)]
pub(super) fn sources<'a>(
    wave: &'a Wave,
    op: &MicroOp,
    count: usize,
    rooms: &'a mut [Row; 3],
) -> [&'a Row; 3] {
    up_to_three(count, rooms, |index, room| source(wave, op, index, room))
}

#[inline(always)]
fn up_to_three<'a>(
    count: usize,
    [room_a, room_b, room_c]: &'a mut [Row; 3],
    read: impl Fn(usize, &'a mut Row) -> &'a Row,
) -> [&'a Row; 3] {
    let a = read(0, room_a);
    let b = if count > 1 { read(1, room_b) } else { a };
    let c = if count > 2 { read(2, room_c) } else { a };
    [a, b, c]
}

/// A 32-bit or 16-bit source with all adjustments. A register that needs none is read in place.
pub(super) fn source<'a>(wave: &'a Wave, op: &MicroOp, index: usize, room: &'a mut Row) -> &'a Row {
    if Adjust::of(Packed(op.modifiers), index).changes_nothing() {
        return raw_source(wave, op, index, room);
    }
    *room = fetch(wave, op, index);
    room
}

/// A 32-bit or 16-bit source, adjusted as it is read.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    row: &'a Row,
    adjust: Adjust,
}

impl<'a> View<'a> {
    /// Source `index` of an instruction.
    #[inline(always)]
    pub fn new(wave: &'a Wave, op: &MicroOp, index: usize, room: &'a mut Row) -> Self {
        View { row: raw_source(wave, op, index, room), adjust: Adjust::of(Packed(op.modifiers), index) }
    }

    /// The value in one lane.
    #[inline(always)]
    pub fn get(&self, lane: usize) -> u32 {
        self.adjust.apply(self.row.0[lane])
    }
}

/// Both dwords of a 64-bit source before adjustment. No operation with a lane select has one.
#[inline(always)]
pub(super) fn raw_wide_source<'a>(
    wave: &'a Wave,
    op: &MicroOp,
    index: usize,
    room: &'a mut [Row; 2],
) -> [&'a Row; 2] {
    if let Source::Vector(register) = op.sources[index] {
        return [&wave.vector[register as usize], &wave.vector[register.wrapping_add(1) as usize]];
    }
    *room = fetch_raw_wide(wave, op, index);
    [&room[0], &room[1]]
}

/// One 32-bit or 16-bit source with all adjustments. 16-bit values are in the low half; the high half is zero.
#[inline(never)]
pub(super) fn fetch(wave: &Wave, op: &MicroOp, index: usize) -> Row {
    let adjust = Adjust::of(Packed(op.modifiers), index);
    let mut row = Row([0; LANES]);
    fetch_raw(wave, op, index, &mut row);
    for value in &mut row.0 {
        *value = adjust.apply(*value);
    }
    row
}

/// One dword per lane into `room`, with the lane select applied to source 0 and no other modifier.
#[inline(never)]
pub(super) fn fetch_raw(wave: &Wave, op: &MicroOp, index: usize, room: &mut Row) {
    match op.sources[index] {
        Source::Vector(register) if index == 0 => {
            select_lanes(wave, op, &wave.vector[register as usize], room);
        }
        Source::Vector(register) => *room = wave.vector[register as usize],
        Source::Scalar(code) => *room = splat(read_scalar(wave, code)),
        Source::Constant(value) => *room = splat(value),
    }
}

/// One 64-bit source with all adjustments: low and high dwords.
#[inline(never)]
pub(super) fn fetch_wide(wave: &Wave, op: &MicroOp, index: usize) -> [Row; 2] {
    let adjust = Adjust::of_high_dword(Packed(op.modifiers), index);
    let mut rows = fetch_raw_wide(wave, op, index);
    for value in &mut rows[1].0 {
        *value = adjust.apply(*value);
    }
    rows
}

#[inline(never)]
fn fetch_raw_wide(wave: &Wave, op: &MicroOp, index: usize) -> [Row; 2] {
    match op.sources[index] {
        Source::Vector(register) => {
            [wave.vector[register as usize], wave.vector[register.wrapping_add(1) as usize]]
        }
        Source::Scalar(code) => [splat(read_scalar(wave, code)), splat(read_scalar_high(wave, code))],
        Source::Constant(value) => [splat(value), splat(op.wide[index])],
    }
}

/// The high dword of a 64-bit scalar operand: zero above `null` and the computed codes.
pub(crate) fn read_scalar_high(wave: &Wave, code: u8) -> u32 {
    match code {
        crate::shader::wave::NULL | 249..=253 => 0,
        _ => wave.scalar[code as usize + 1],
    }
}

/// A mask operand: one bit per lane.
#[inline(always)]
pub(super) fn mask_source(wave: &Wave, op: &MicroOp, index: usize) -> u32 {
    match op.sources[index] {
        Source::Scalar(code) => read_scalar(wave, code),
        Source::Constant(value) => value,
        Source::Vector(_) => 0,
    }
}

/// Writes the active lanes of a register.
#[inline(always)]
pub(super) fn store(wave: &mut Wave, register: u8, row: &Row) {
    let exec = wave.exec();
    let register = register as usize;
    wave.vector[register] = if exec == u32::MAX { *row } else { blend(exec, row, &wave.vector[register]) };
}

/// Writes a 32-bit result, or a 16-bit result to its half of the register.
#[inline(always)]
pub(super) fn commit(wave: &mut Wave, op: &MicroOp, result: &Row) {
    let modifiers = Packed(op.modifiers);
    let lanes = writable(wave, op);
    let old = &wave.vector[op.destination as usize];
    let new =
        if modifiers.half_result() { merge_half(result, old, modifiers.result_high()) } else { *result };
    wave.vector[op.destination as usize] = if lanes == u32::MAX { new } else { blend(lanes, &new, old) };
}

/// Writes a 64-bit result.
#[inline(always)]
pub(super) fn commit_wide(wave: &mut Wave, op: &MicroOp, result: &[Row; 2]) {
    let lanes = writable(wave, op);
    for (offset, row) in result.iter().enumerate() {
        let register = op.destination.wrapping_add(offset as u8) as usize;
        wave.vector[register] =
            if lanes == u32::MAX { *row } else { blend(lanes, row, &wave.vector[register]) };
    }
}

/// Clamps to 0..=1; NaN becomes 0 (instruction set reference §8.1).
#[inline(never)]
pub(super) fn clamp_single(row: &mut Row) {
    for value in &mut row.0 {
        *value = clamp_single_lane(*value);
    }
}

/// Like [`clamp_single`], for one value.
pub(crate) fn clamp_single_lane(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    let below = if value > 0.0 { value } else { 0.0 };
    (if below < 1.0 { below } else { 1.0 }).to_bits()
}

/// Clamps f16 values in the low halves.
#[inline(never)]
pub(super) fn clamp_half(row: &mut Row) {
    for value in &mut row.0 {
        *value = clamp_half_lane(*value);
    }
}

/// Like [`clamp_half`], for one value. Positive finite f16 compare as integers.
pub(crate) fn clamp_half_lane(bits: u32) -> u32 {
    let bits = bits & 0xFFFF;
    if bits > 0x7C00 { 0 } else { bits.min(0x3C00) }
}

/// Clamps f64 values.
pub(super) fn clamp_double_lane(bits: u64) -> u64 {
    let value = f64::from_bits(bits);
    let below = if value > 0.0 { value } else { 0.0 };
    (if below < 1.0 { below } else { 1.0 }).to_bits()
}
