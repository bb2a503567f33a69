//! v_wmma and v_swmmac: 16×16 tiles, D = A·B + C (instruction set reference §7.2 to §7.4).
//!
//! Contract: integer results are exact, modulo 2^32 or saturated once with clamp. Float results follow a **model**, as
//! the card's order, width and denormals are not documented: products are exact, and are added in f32 to C in ascending
//! k, each sum rounded to nearest even, denormals kept; a 16-bit result is rounded once more at the end. MODE has no
//! influence. A sparse operation adds the products of the kept elements only, in stored order. All lanes are read
//! whatever EXEC says, and the active ones are written; user code must have all of EXEC set. All sources are read
//! before anything is written.
//! Modifiers: `neg_lo` and `neg_hi` of A and B negate the elements with even and odd k (integers: `neg_lo` means
//! signed); those of C negate it after taking its absolute value.
//! Cost: 2 to 5 µs.
//!
//! [`multiply`] works on one bank of registers per 32 lanes: two make a wave64.

pub(crate) mod shape;
#[cfg(test)]
mod tests;

use zrt_isa::Instruction;

use self::shape::{DEPTH_MAX, Element, SHAPES, SIDE, Shape, Sum, index_bits, operand_place, sum_place};
use super::operand::{LANES_NONE, Packed, Parts};
use super::single::canonical;
use crate::shader::float::{bf8_to_single, fp8_to_single, half_to_single, single_to_half};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::wave::{EXEC_LO, LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation};

/// Canonical quiet NaN of bfloat16.
const BFLOAT_NAN: u32 = 0x7FC0;
/// Position of C among the sources (of the index for sparse operations).
const ADDEND: usize = 2;

/// The function of a matrix operation; `None` for any other. The shape's number becomes the immediate.
pub(super) fn bind(instruction: &Instruction, parts: &mut Parts, level: Level) -> Option<Executor> {
    let number = SHAPES.iter().position(|(opcode, _)| *opcode == instruction.opcode)?;
    if parts.modifiers.lanes() != LANES_NONE {
        return None;
    }
    let (_, shape) = SHAPES[number];
    parts.immediate = number as i32;
    if !shape.is_sparse {
        parts.set_source(ADDEND, instruction.sources[ADDEND], shape.sum.data_type());
        if let (Source::Constant(value), 16) = (parts.sources[ADDEND], shape.sum.bits()) {
            parts.sources[ADDEND] = Source::Constant(value & 0xFFFF | value << 16);
        }
    }
    Some(level.bind::<Multiply>())
}

/// The rows of the table of shapes that an operation has.
#[cfg(test)]
pub(super) fn rows_of(opcode: zrt_isa::Opcode) -> impl Iterator<Item = Shape> {
    SHAPES.into_iter().filter(move |(of, _)| *of == opcode).map(|(_, shape)| shape)
}

/// The function of a matrix operation for 64 lanes.
pub(crate) fn bind_wave64(level: Level) -> Executor {
    level.bind::<MultiplyWave64>()
}

struct MultiplyWave64;
impl Operation for MultiplyWave64 {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let exec = wave.scalar_pair(EXEC_LO);
        if let Some(high) = &mut wave.other_half {
            multiply(op, [&mut wave.vector, high], [exec as u32, (exec >> 32) as u32]);
        }
        Flow::Next
    }
}

struct Multiply;
impl Operation for Multiply {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        multiply(op, [&mut wave.vector], [exec]);
        Flow::Next
    }
}

/// Executes the matrix operation on a wave of 32 · `BANKS` lanes (1 or 2 banks). Bank `b` has the registers of lanes
/// 32·b on, and `exec[b]` its active lanes.
#[inline(always)]
pub(crate) fn multiply<const BANKS: usize>(
    op: &MicroOp,
    banks: [&mut [Row; 256]; BANKS],
    exec: [u32; BANKS],
) {
    let (_, shape) = SHAPES[op.immediate as usize % SHAPES.len()];
    let mut tile = Tile { op, shape, banks };
    let results = if shape.sum == Sum::I32 {
        let (a, b, mut sums) = tile.integers();
        for (row, sums) in a.iter().zip(&mut sums) {
            for (value, at) in &row[..shape.depth()] {
                for (sum, other) in sums.iter_mut().zip(&b[*at]) {
                    *sum += i64::from(value * other);
                }
            }
        }
        narrow(sums, Packed(op.modifiers).clamp())
    } else {
        let (a, b, mut sums) = tile.floats();
        for (row, sums) in a.iter().zip(&mut sums) {
            for (value, at) in &row[..shape.depth()] {
                for (sum, other) in sums.iter_mut().zip(&b[*at]) {
                    *sum = value.mul_add(*other, *sum);
                }
            }
        }
        encode(sums, shape.sum)
    };
    tile.write(&results, exec);
}

/// Stored elements of the rows of A, each with the row of B that it meets.
type Left<T> = [[(T, usize); DEPTH_MAX]; SIDE];
/// Rows of B.
type Right<T> = [[T; SIDE]; DEPTH_MAX];
/// C and D.
type Square<T> = [[T; SIDE]; SIDE];

/// The operands of one execution.
struct Tile<'a, const BANKS: usize> {
    op: &'a MicroOp,
    shape: Shape,
    banks: [&'a mut [Row; 256]; BANKS],
}

impl<const BANKS: usize> Tile<'_, BANKS> {
    const IS_WAVE64: bool = BANKS > 1;

    /// A lane's part of the register `offset` behind that of a source.
    fn dword(&self, source: Source, offset: usize, lane: usize) -> u32 {
        match source {
            Source::Vector(register) => {
                self.banks[lane / LANES % BANKS][(register as usize + offset) & 255].0[lane % LANES]
            }
            Source::Constant(value) => value,
            Source::Scalar(_) => 0,
        }
    }

    /// The bits of an element of A (`index` 0) or B.
    fn operand(&self, index: usize, element: Element, depth: usize, line: usize, k: usize) -> u32 {
        let bits = element.bits();
        let place = operand_place(bits, depth, line, k, Self::IS_WAVE64);
        let dword = self.dword(self.op.sources[index], place.register(bits), place.lane);
        dword >> place.shift(bits) & (u32::MAX >> (32 - bits))
    }

    /// Where C is: sparse operations add to the destination.
    fn addend(&self) -> Source {
        if self.shape.is_sparse { Source::Vector(self.op.destination) } else { self.op.sources[ADDEND] }
    }

    /// Row of B that stored element `k` of row `row` of A meets.
    fn meets(&self, row: usize, k: usize) -> usize {
        if !self.shape.is_sparse {
            return k;
        }
        let (bits, depth) = (self.shape.a.bits(), self.shape.depth());
        let place = operand_place(bits, depth, row, k, Self::IS_WAVE64);
        // index_key is in the bits of op_sel.
        let key = (self.op.modifiers >> 6 & 3) as usize;
        let shift = key * index_bits(bits, depth, Self::IS_WAVE64) + 2 * place.slot;
        let index = self.dword(self.op.sources[ADDEND], 0, place.lane);
        4 * (k / 2) + (index >> (shift % 32) & 3) as usize
    }

    /// A, B and C with the elements that the functions make of the bits; the first also gets source and k.
    #[inline(always)]
    fn gather<T: Copy + Default, S: Copy + Default>(
        &self,
        operand: impl Fn(Element, usize, usize, u32) -> T,
        addend: impl Fn(u32) -> S,
    ) -> (Left<T>, Right<T>, Square<S>) {
        let shape = self.shape;
        let mut a = [[(T::default(), 0); DEPTH_MAX]; SIDE];
        let mut b = [[T::default(); SIDE]; DEPTH_MAX];
        let mut c = [[S::default(); SIDE]; SIDE];
        let bits = shape.sum.bits();
        for (line, (stored_row, sums)) in a.iter_mut().zip(&mut c).enumerate() {
            for (k, stored) in stored_row.iter_mut().enumerate().take(shape.depth()) {
                let value = operand(shape.a, 0, k, self.operand(0, shape.a, shape.depth(), line, k));
                *stored = (value, self.meets(line, k) % DEPTH_MAX);
            }
            for (k, row) in b.iter_mut().enumerate().take(shape.inner) {
                row[line] = operand(shape.b, 1, k, self.operand(1, shape.b, shape.inner, line, k));
            }
            for (column, value) in sums.iter_mut().enumerate() {
                let place = sum_place(bits, line, column, Self::IS_WAVE64);
                let dword = self.dword(self.addend(), place.register(bits), place.lane);
                *value = addend(dword >> place.shift(bits) & (u32::MAX >> (32 - bits)));
            }
        }
        (a, b, c)
    }

    #[inline(never)]
    fn floats(&self) -> (Left<f32>, Right<f32>, Square<f32>) {
        let modifiers = Packed(self.op.modifiers);
        let sum = self.shape.sum;
        let sign = |flip: bool| if flip { 1 << 31 } else { 0 };
        let adjust_addend = !self.shape.is_sparse;
        let (clear, flip) = (
            sign(adjust_addend && modifiers.absolute(ADDEND)),
            sign(adjust_addend && modifiers.negate(ADDEND)),
        );
        self.gather(
            |element, source, k, bits| {
                let is_negated =
                    if k % 2 == 0 { modifiers.negate(source) } else { modifiers.absolute(source) };
                f32::from_bits(widen(element, bits) ^ sign(is_negated))
            },
            |bits| {
                let value = match sum {
                    Sum::F16 => half_to_single(bits),
                    Sum::Bf16 => bits << 16,
                    Sum::F32 | Sum::I32 => bits,
                };
                f32::from_bits(value & !clear ^ flip)
            },
        )
    }

    #[inline(never)]
    fn integers(&self) -> (Left<i32>, Right<i32>, Square<i64>) {
        let modifiers = Packed(self.op.modifiers);
        self.gather(
            |element, source, _, bits| {
                let up = 32 - element.bits() as u32;
                if modifiers.negate(source) { (bits << up) as i32 >> up } else { bits as i32 }
            },
            |bits| i64::from(bits as i32),
        )
    }

    #[inline(never)]
    fn write(&mut self, results: &Square<u32>, exec: [u32; BANKS]) {
        let bits = self.shape.sum.bits();
        for (row, values) in results.iter().enumerate() {
            for (column, value) in values.iter().enumerate() {
                let place = sum_place(bits, row, column, Self::IS_WAVE64);
                let (bank, lane) = (place.lane / LANES % BANKS, place.lane % LANES);
                if exec[bank] >> lane & 1 == 0 {
                    continue;
                }
                let register = (self.op.destination as usize + place.register(bits)) & 255;
                let target = &mut self.banks[bank][register].0[lane];
                let mask = u32::MAX >> (32 - bits) << place.shift(bits);
                *target = *target & !mask | value << place.shift(bits) & mask;
            }
        }
    }
}

/// f32 of an element; exact.
pub(super) fn widen(element: Element, bits: u32) -> u32 {
    match element {
        Element::F16 => half_to_single(bits),
        Element::Bf16 => bits << 16,
        Element::Fp8 => fp8_to_single(bits),
        Element::Bf8 => bf8_to_single(bits),
        Element::Byte | Element::Nibble => (bits as f32).to_bits(),
    }
}

/// bfloat16 of an f32, to nearest even.
pub(super) fn single_to_bfloat(bits: u32) -> u32 {
    if bits & 0x7FFF_FFFF > 0x7F80_0000 { BFLOAT_NAN } else { (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 }
}

#[inline(never)]
fn encode(sums: Square<f32>, sum: Sum) -> Square<u32> {
    sums.map(|row| {
        row.map(|value| match sum {
            Sum::F16 => single_to_half(value.to_bits()),
            Sum::Bf16 => single_to_bfloat(value.to_bits()),
            Sum::F32 | Sum::I32 => canonical(value),
        })
    })
}

#[inline(never)]
fn narrow(sums: Square<i64>, clamp: bool) -> Square<u32> {
    sums.map(|row| {
        row.map(|value| {
            let value = if clamp { value.clamp(i32::MIN.into(), i32::MAX.into()) } else { value };
            value as u32
        })
    })
}
