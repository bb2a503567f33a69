//! v_wmma and v_swmmac: 16×16 tiles, D = A·B + C (instruction set reference §7.2 to §7.4).
//!
//! Contract: integer results are exact, modulo 2^32, or saturated once with clamp. Float results follow a
//! **model**, because the card's order, width and denormals are not documented: products are exact, and are added
//! in f32 to C in ascending k, each sum rounded to nearest even, denormals kept; a 16-bit result is rounded once
//! more at the end. MODE has no influence. A sparse operation adds only the products of the kept elements, in
//! stored order. All lanes are read whatever EXEC says, and the active ones are written; user code must have all of
//! EXEC set. All sources are read before anything is written.
//! Modifiers: `neg_lo` and `neg_hi` of A and B negate the elements with even and odd k (integers: `neg_lo` means
//! signed); those of C negate it after taking its absolute value.
//! Cost: 0.4 to 1.3 µs on hosts with AVX2.
//!
//! The work is done on planes, which hold one value for each of 16 lines (`planes`): `layout` defines their
//! positions, the widened elements of A and B are laid out once, and [`add_products`] is the same for all formats.
//! Integers are multiplied as f32, which can hold their sums: they are below 2^24.

pub(super) mod convert;
mod layout;
mod planes;
pub(crate) mod shape;
#[cfg(test)]
mod tests;

use zrt_isa::Instruction;

use self::layout::LAYOUTS;
use self::planes::{ADDEND, Order, Plane, Square};
use self::shape::{SHAPES, SIDE, Shape, Sum};
use super::operand::{LANES_NONE, Parts};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::wave::Wave;
use crate::simd::{Executor, Level, Operation};

/// Most stored elements of a row of A (4-bit).
const DEPTH_MAX: usize = 32;
/// Most inner elements of an operation (4-bit sparse).
const INNER_MAX: usize = 64;
/// Rows of D whose sums are held in the host's registers at a time.
const BLOCK: usize = 4;

// Every sum of products of bytes is an integer that f32 represents exactly.
const _: () = assert!(DEPTH_MAX * 255 * 255 < 1 << f32::MANTISSA_DIGITS);

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

/// The rows of the shape table for an operation.
#[cfg(test)]
pub(super) fn rows_of(opcode: zrt_isa::Opcode) -> impl Iterator<Item = Shape> {
    SHAPES.into_iter().filter(move |(of, _)| *of == opcode).map(|(_, shape)| shape)
}

/// For a wave32, and for all 64 lanes of a wave64.
struct Multiply;
impl Operation for Multiply {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let number = op.immediate as usize % SHAPES.len();
        let (_, shape) = SHAPES[number];
        let layout = &LAYOUTS[number][usize::from(wave.is_wave64())];
        let mut a = [[0.0; SIDE]; DEPTH_MAX];
        let mut b = [[0.0; SIDE]; INNER_MAX];
        planes::read_operand(wave, op, 0, shape.a, layout.a(shape), &mut a);
        planes::read_operand(wave, op, 1, shape.b, layout.b(shape), &mut b);
        let mut sums = match shape.sum {
            Sum::I32 => [[0.0; SIDE]; SIDE],
            Sum::F32 | Sum::F16 | Sum::Bf16 => planes::read_addend(wave, op, shape, layout),
        };
        if shape.is_sparse {
            let mut meets = [[0; SIDE]; DEPTH_MAX];
            planes::read_index(wave, op, shape, layout.a(shape), &mut meets);
            multiply(shape, &a, &b, &mut sums, |plane, row| meets[plane][row] as usize);
        } else {
            multiply(shape, &a, &b, &mut sums, |plane, _| plane);
        }
        match shape.sum {
            Sum::I32 => planes::write_integers(wave, op, shape, layout, &sums),
            Sum::F32 | Sum::F16 | Sum::Bf16 => planes::write_floats(wave, op, shape, layout, &sums),
        }
        Flow::Next
    }
}

#[inline(always)]
fn multiply(
    shape: Shape,
    a: &[Plane<f32>; DEPTH_MAX],
    b: &[Plane<f32>; INNER_MAX],
    sums: &mut Square<f32>,
    meets: impl Fn(usize, usize) -> usize,
) {
    if shape.has_exact_products() {
        // The same sum as with a fused instruction, which not all hosts have.
        add_products(shape, a, b, sums, meets, |x, y, sum| x * y + sum);
    } else {
        add_products(shape, a, b, sums, meets, f32::mul_add);
    }
}

/// Adds the products of A with the matching rows of B, in ascending k. `meets` returns the plane of B for a plane
/// of A and its row.
#[inline(always)]
fn add_products(
    shape: Shape,
    a: &[Plane<f32>; DEPTH_MAX],
    b: &[Plane<f32>; INNER_MAX],
    sums: &mut Square<f32>,
    meets: impl Fn(usize, usize) -> usize,
    multiply_add: impl Fn(f32, f32, f32) -> f32,
) {
    let (order, order_of_rows) =
        (Order::new(shape.a.bits(), shape.depth()), Order::new(shape.sum.bits(), SIDE));
    for (number, sums) in sums.chunks_exact_mut(BLOCK).enumerate() {
        let rows: [usize; BLOCK] =
            std::array::from_fn(|row| order_of_rows.element((BLOCK * number + row) as u32) as usize % SIDE);
        let mut block = [[0.0; SIDE]; BLOCK];
        block.copy_from_slice(sums);
        for k in 0..shape.depth() as u32 {
            let plane = order.plane(k) as usize % DEPTH_MAX;
            for (sums, row) in block.iter_mut().zip(rows) {
                let value = a[plane][row];
                for (sum, other) in sums.iter_mut().zip(&b[meets(plane, row) % INNER_MAX]) {
                    *sum = multiply_add(value, *other, *sum);
                }
            }
        }
        sums.copy_from_slice(&block);
    }
}
