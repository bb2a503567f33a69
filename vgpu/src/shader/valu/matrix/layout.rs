//! The dwords of tiles: the places of [`shape`](super::shape) as runs of lanes.
//!
//! Contract: tables computed at compile time from [`operand_place`] and [`sum_place`]. They are valid because line
//! `l` is always in lane `l` of 16 adjacent lanes, and a dword contains only neighbours in k (or two rows of a
//! 16-bit result).

use super::shape::{Element, SHAPES, SIDE, Shape, operand_place, sum_place};
use crate::shader::wave::LANES;

/// Most dwords of a row of A.
const A_DWORDS: usize = 8;
/// Most dwords of a column of B.
const B_DWORDS: usize = 16;

/// One dword of each of 16 lines: 16 adjacent lanes of one register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Distance from the operand's first register.
    pub register: u8,
    /// Whether it is in lanes 32 to 63.
    pub is_upper: bool,
    /// Whether it is in the second 16 of those 32 lanes.
    pub half: u8,
}

impl Run {
    const fn new(lane: usize, register: usize) -> Run {
        Run { register: register as u8, is_upper: lane >= LANES, half: (lane % LANES / SIDE) as u8 }
    }

    /// The first of its lanes in the wave.
    pub const fn first_lane(self) -> usize {
        (if self.is_upper { LANES } else { 0 }) + self.half as usize * SIDE
    }
}

/// The runs of one operation.
#[derive(Clone, Copy)]
pub(super) struct Layout {
    a: [Run; A_DWORDS],
    b: [Run; B_DWORDS],
    sum: [Run; SIDE],
}

impl Layout {
    pub const fn new(shape: Shape, is_wave64: bool) -> Layout {
        let mut layout = Layout {
            a: [Run::new(0, 0); A_DWORDS],
            b: [Run::new(0, 0); B_DWORDS],
            sum: [Run::new(0, 0); SIDE],
        };
        fill_operand(&mut layout.a, shape.a, shape.depth(), is_wave64);
        fill_operand(&mut layout.b, shape.b, shape.inner, is_wave64);
        let bits = shape.sum.bits();
        let mut number = 0;
        while number < SIDE * bits / u32::BITS as usize {
            let place = sum_place(bits, number * u32::BITS as usize / bits, 0, is_wave64);
            layout.sum[number] = Run::new(place.lane, place.register(bits));
            number += 1;
        }
        layout
    }

    /// The dwords of a row of A, in ascending order of k.
    #[inline(always)]
    pub fn a(&self, shape: Shape) -> &[Run] {
        &self.a[..(shape.depth() * shape.a.bits() / u32::BITS as usize).min(A_DWORDS)]
    }

    /// The dwords of a column of B, in ascending order of k.
    #[inline(always)]
    pub fn b(&self, shape: Shape) -> &[Run] {
        &self.b[..(shape.inner * shape.b.bits() / u32::BITS as usize).min(B_DWORDS)]
    }

    /// The dwords of a column of C and D, in ascending order of rows.
    #[inline(always)]
    pub fn sum(&self, shape: Shape) -> &[Run] {
        &self.sum[..(SIDE * shape.sum.bits() / u32::BITS as usize).min(SIDE)]
    }
}

const fn fill_operand(runs: &mut [Run], element: Element, depth: usize, is_wave64: bool) {
    let bits = element.bits();
    let mut number = 0;
    while number < depth * bits / u32::BITS as usize {
        let place = operand_place(bits, depth, 0, number * u32::BITS as usize / bits, is_wave64);
        runs[number] = Run::new(place.lane, place.register(bits));
        number += 1;
    }
}

/// The layouts of [`SHAPES`], in wave32 and in wave64.
pub(super) static LAYOUTS: [[Layout; 2]; SHAPES.len()] = {
    let mut layouts = [[Layout::new(SHAPES[0].1, false); 2]; SHAPES.len()];
    let mut number = 0;
    while number < SHAPES.len() {
        layouts[number] = [Layout::new(SHAPES[number].1, false), Layout::new(SHAPES[number].1, true)];
        number += 1;
    }
    layouts
};
