//! Tiles as planes: one value for each of 16 lines, stored adjacently, so that loops over lines are vector code.
//!
//! Contract: reads use all lanes, writes obey EXEC. Elements become f32, which is exact for every format: the
//! integers of A and B have at most 8 bits. The planes of a tile are ordered by their elements' place in a dword,
//! then by dword, as defined by [`Order`]. Everything is inlined into the operation, at its vector level.

use super::convert::{single_to_bfloat, widen};
use super::layout::{Layout, Run};
use super::shape::{Element, SIDE, Shape, Sum, index_bits};
use crate::shader::float::{half_to_single, single_to_half};
use crate::shader::micro::{MicroOp, Source};
use crate::shader::valu::operand::Packed;
use crate::shader::valu::single::canonical;
use crate::shader::wave::{EXEC_LO, Row, Wave};
use crate::simd::truncate_to_i32;

/// Position of C (for sparse operations, of the index) among the sources.
pub(super) const ADDEND: usize = 2;

/// One value per line.
pub(super) type Plane<T> = [T; SIDE];
/// C and D.
pub(super) type Square<T> = [Plane<T>; SIDE];

/// The order of a tile's planes, for lines of `1 << dwords` dwords with `1 << elements` elements each.
#[derive(Clone, Copy)]
pub(super) struct Order {
    dwords: u32,
    elements: u32,
}

impl Order {
    /// The order for lines of `count` elements of `bits`.
    #[inline(always)]
    pub fn new(bits: usize, count: usize) -> Order {
        let elements = (u32::BITS as usize / bits).trailing_zeros();
        Order { dwords: count.trailing_zeros() - elements, elements }
    }

    /// Number of the plane that holds an element of the lines.
    #[inline(always)]
    pub fn plane(self, k: u32) -> u32 {
        (k & ((1 << self.elements) - 1)) << self.dwords | k >> self.elements
    }

    /// The inverse of [`Order::plane`].
    #[inline(always)]
    pub fn element(self, plane: u32) -> u32 {
        (plane & ((1 << self.dwords) - 1)) << self.elements | plane >> self.dwords
    }
}

/// The dwords of runs.
#[inline(always)]
fn read(wave: &Wave, source: Source, runs: &[Run], dwords: &mut [Plane<u32>]) {
    for (plane, run) in dwords.iter_mut().zip(runs) {
        *plane = match source {
            Source::Vector(first) => {
                let (halves, _) = bank(wave, *run)[first.wrapping_add(run.register) as usize].0.as_chunks();
                halves[run.half as usize % 2]
            }
            Source::Constant(value) => [value; SIDE],
            Source::Scalar(_) => [0; SIDE],
        };
    }
}

#[inline(always)]
fn bank(wave: &Wave, run: Run) -> &[Row; 256] {
    match &wave.other_half {
        Some(upper) if run.is_upper => upper,
        _ => &wave.vector,
    }
}

/// The elements of A (`index` 0) or B.
#[inline(always)]
pub(super) fn read_operand(
    wave: &Wave,
    op: &MicroOp,
    index: usize,
    element: Element,
    runs: &[Run],
    planes: &mut [Plane<f32>],
) {
    let mut dwords = [[0; SIDE]; SIDE];
    read(wave, op.sources[index], runs, &mut dwords);
    let dwords = &dwords[..runs.len().min(SIDE)];
    let modifiers = Packed(op.modifiers);
    let sign = |is_negated: bool| if is_negated { 1 << 31 } else { 0 };
    // The bits for abs are those of neg_hi. Floats of 8 bits have neither.
    let flips = [sign(modifiers.negate(index)), sign(modifiers.absolute(index))];
    match element {
        Element::F16 => unpack(dwords, 16, planes, |k, bits| widen(Element::F16, bits) ^ flips[k % 2]),
        Element::Bf16 => unpack(dwords, 16, planes, |k, bits| widen(Element::Bf16, bits) ^ flips[k % 2]),
        Element::Fp8 => unpack(dwords, 8, planes, |_, bits| widen(Element::Fp8, bits)),
        Element::Bf8 => unpack(dwords, 8, planes, |_, bits| widen(Element::Bf8, bits)),
        Element::Byte | Element::Nibble => {
            let bits = element.bits();
            let sign = if modifiers.negate(index) { 1 << (bits - 1) } else { 0u32 };
            unpack(dwords, bits, planes, |_, bits| {
                ((bits ^ sign).wrapping_sub(sign) as i32 as f32).to_bits()
            });
        }
    }
}

/// Unpacks elements. `value` receives the place in the dword and the bits of an element.
#[inline(always)]
fn unpack(dwords: &[Plane<u32>], bits: usize, planes: &mut [Plane<f32>], value: impl Fn(usize, u32) -> u32) {
    // One loop over all lines of all dwords: the compiler turns it into short vector code.
    let dwords = dwords.as_flattened();
    let mask = u32::MAX >> (32 - bits);
    for (place, planes) in planes.as_flattened_mut().chunks_exact_mut(dwords.len()).enumerate() {
        let shift = bits * place;
        if shift >= u32::BITS as usize {
            break;
        }
        for (element, dword) in planes.iter_mut().zip(dwords) {
            *element = f32::from_bits(value(place, dword >> shift & mask));
        }
    }
}

/// For each plane of a sparse A, the planes of B that its rows are multiplied with.
#[inline(always)]
pub(super) fn read_index(wave: &Wave, op: &MicroOp, shape: Shape, runs: &[Run], meets: &mut [Plane<u32>]) {
    let bits = shape.a.bits();
    let elements = u32::BITS as usize / bits;
    let order_of_b = Order::new(bits, shape.inner);
    // index_key is stored in the bits of op_sel.
    let key = (op.modifiers >> 6 & 3) as usize * index_bits(bits, shape.depth(), wave.is_wave64());
    for (dword, run) in runs.iter().enumerate() {
        let mut index = [[0; SIDE]];
        read(wave, op.sources[ADDEND], &[Run { register: 0, ..*run }], &mut index);
        for place in 0..elements {
            let shift = (key + 2 * (run.register as usize * elements + place)) % 32;
            let group = 4 * ((dword * elements + place) / 2) as u32;
            for (row, index) in meets[place * runs.len() + dword].iter_mut().zip(&index[0]) {
                *row = order_of_b.plane(group + (index >> shift & 3));
            }
        }
    }
}

/// The rows of C as f32; sparse operations accumulate into the destination.
#[inline(always)]
pub(super) fn read_addend(wave: &Wave, op: &MicroOp, shape: Shape, layout: &Layout) -> Square<f32> {
    let modifiers = Packed(op.modifiers);
    let sign = |is_set: bool| if is_set && !shape.is_sparse { 1 << 31 } else { 0 };
    let (clear, flip) = (sign(modifiers.absolute(ADDEND)), sign(modifiers.negate(ADDEND)));
    let adjust = |bits: u32| bits & !clear ^ flip;
    let dwords = read_sums(wave, op, shape, layout);
    let dwords = &dwords[..layout.sum(shape).len().min(SIDE)];
    let mut rows = [[0.0; SIDE]; SIDE];
    match shape.sum {
        Sum::F32 | Sum::I32 => unpack(dwords, 32, &mut rows, |_, bits| adjust(bits)),
        Sum::F16 => unpack(dwords, 16, &mut rows, |_, bits| adjust(half_to_single(bits))),
        Sum::Bf16 => unpack(dwords, 16, &mut rows, |_, bits| adjust(bits << 16)),
    }
    rows
}

/// The dwords of C.
#[inline(always)]
fn read_sums(wave: &Wave, op: &MicroOp, shape: Shape, layout: &Layout) -> Square<u32> {
    let source = if shape.is_sparse { Source::Vector(op.destination) } else { op.sources[ADDEND] };
    let mut dwords = [[0; SIDE]; SIDE];
    read(wave, source, layout.sum(shape), &mut dwords);
    dwords
}

/// Writes float sums, rounded once more if D has 16 bits.
#[inline(always)]
pub(super) fn write_floats(wave: &mut Wave, op: &MicroOp, shape: Shape, layout: &Layout, sums: &Square<f32>) {
    let mut results = [[0; SIDE]; SIDE];
    match shape.sum {
        Sum::F32 | Sum::I32 => {
            for (result, sum) in results.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
                *result = canonical(*sum);
            }
        }
        Sum::F16 => pack(sums, single_to_half, &mut results),
        Sum::Bf16 => pack(sums, single_to_bfloat, &mut results),
    }
    write(wave, op, layout.sum(shape), &results);
}

/// Packs two rows into each dword.
#[inline(always)]
fn pack(rows: &Square<f32>, bits: impl Fn(u32) -> u32, dwords: &mut Square<u32>) {
    let (low, high) = rows.as_flattened().split_at(SIDE * SIDE / 2);
    for ((dword, low), high) in dwords.as_flattened_mut().iter_mut().zip(low).zip(high) {
        *dword = bits(low.to_bits()) | bits(high.to_bits()) << 16;
    }
}

/// Adds sums of integer products, which are exact in f32, to C and writes them.
#[inline(always)]
pub(super) fn write_integers(
    wave: &mut Wave,
    op: &MicroOp,
    shape: Shape,
    layout: &Layout,
    sums: &Square<f32>,
) {
    let mut results = read_sums(wave, op, shape, layout);
    let is_clamped = Packed(op.modifiers).clamp();
    for (result, sum) in results.as_flattened_mut().iter_mut().zip(sums.as_flattened()) {
        let (addend, sum) = (*result as i32, truncate_to_i32(*sum));
        let saturated = addend.saturating_add(sum);
        *result = if is_clamped { saturated } else { addend.wrapping_add(sum) } as u32;
    }
    write(wave, op, layout.sum(shape), &results);
}

#[inline(always)]
fn write(wave: &mut Wave, op: &MicroOp, runs: &[Run], planes: &Square<u32>) {
    let exec = match wave.other_half {
        Some(_) => wave.scalar_pair(EXEC_LO),
        None => wave.exec().into(),
    };
    for (run, plane) in runs.iter().zip(planes) {
        let bank = match &mut wave.other_half {
            Some(upper) if run.is_upper => upper,
            _ => &mut wave.vector,
        };
        let (halves, _) = bank[op.destination.wrapping_add(run.register) as usize].0.as_chunks_mut();
        let target = &mut halves[run.half as usize % 2];
        let active = (exec >> run.first_lane()) as u16;
        if active == u16::MAX { *target = *plane } else { write_active(target, plane, active) }
    }
}

#[cold]
#[inline(never)]
fn write_active(target: &mut Plane<u32>, plane: &Plane<u32>, active: u16) {
    for (lane, (old, new)) in target.iter_mut().zip(plane).enumerate() {
        if active >> lane & 1 != 0 {
            *old = *new;
        }
    }
}
