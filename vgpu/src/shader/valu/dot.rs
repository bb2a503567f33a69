//! Dot products of floats (instruction set reference §7.1).
//!
//! Contract: a **model**, because the card's order, width and (except for v_dot2_f32_f16) denormals are not
//! documented. Products are exact and are added in f32 to the addend, low element first, each sum rounded to
//! nearest even; a 16-bit result is rounded once more at the end. MODE has no influence. v_dot2_f32_f16 flushes f32
//! denormals; the others keep them. Modifiers: VOP3P's op_sel and neg_lo apply to the first product, op_sel_hi and
//! neg_hi to the second; for the addend, neg_lo negates, and for bytes neg_hi takes the absolute value. In VOP3
//! forms neg and abs apply to both halves.

use zrt_isa::Opcode;

use super::access::{View, raw_source};
use super::matrix::convert::{single_to_bfloat, widen};
use super::matrix::shape::Element;
use super::operand::{Packed, Parts};
use super::shell::{ResultKind, finish};
use super::single::canonical;
use crate::shader::float::single_to_half;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation};

const SIGN: u32 = 1 << 31;
const EXPONENT: u32 = 0x7F80_0000;

/// The functions of this file.
pub(super) fn bind(opcode: Opcode, _parts: &Parts, level: Level) -> Option<Executor> {
    Some(match opcode {
        Opcode::VDot2F32F16 => level.bind::<PairDot<false>>(),
        Opcode::VDot2F32Bf16 => level.bind::<PairDot<true>>(),
        Opcode::VDot4F32Fp8Fp8 => level.bind::<ByteDot<false, false>>(),
        Opcode::VDot4F32Fp8Bf8 => level.bind::<ByteDot<false, true>>(),
        Opcode::VDot4F32Bf8Fp8 => level.bind::<ByteDot<true, false>>(),
        Opcode::VDot4F32Bf8Bf8 => level.bind::<ByteDot<true, true>>(),
        Opcode::VDot2F16F16 => level.bind::<HalfDot<false>>(),
        Opcode::VDot2Bf16Bf16 => level.bind::<HalfDot<true>>(),
        _ => return None,
    })
}

/// A value per lane. Loops over these are short, so that the compiler vectorises each one.
type Singles = [f32; LANES];

/// The floats at bit `shift` of each lane, with the sign bits in `clear` cleared, then those in `flip` flipped.
#[inline(always)]
fn elements(row: &Row, element: Element, shift: u32, clear: u32, flip: u32) -> Singles {
    let mut values = [0.0; LANES];
    for (value, bits) in values.iter_mut().zip(&row.0) {
        *value = f32::from_bits(widen(element, bits >> shift) & !clear ^ flip);
    }
    values
}

#[inline(always)]
fn add_products(sums: &mut Singles, left: &Singles, right: &Singles) {
    for lane in 0..LANES {
        sums[lane] = left[lane].mul_add(right[lane], sums[lane]);
    }
}

/// Replaces denormals by zeros of their sign.
#[inline(always)]
fn flush(values: &mut Singles) {
    for value in values {
        let bits = value.to_bits();
        *value = f32::from_bits(if bits & EXPONENT == 0 { bits & SIGN } else { bits });
    }
}

#[inline(always)]
fn results(sums: &Singles, bits: impl Fn(f32) -> u32) -> Row {
    let mut row = Row([0; LANES]);
    for (result, sum) in row.0.iter_mut().zip(sums) {
        *result = bits(*sum);
    }
    row
}

#[inline(always)]
const fn sign_if(is_set: bool) -> u32 {
    if is_set { SIGN } else { 0 }
}

#[inline(always)]
const fn half(is_bfloat: bool) -> Element {
    if is_bfloat { Element::Bf16 } else { Element::F16 }
}

/// v_dot2_f32_f16 and v_dot2_f32_bf16.
struct PairDot<const BFLOAT: bool>;
impl<const BFLOAT: bool> Operation for PairDot<BFLOAT> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let mut sums = [0.0; LANES];
        {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [Row([0; LANES]); 3];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            let c = raw_source(wave, op, 2, &mut room_c);
            let factor = |row: &Row, source: usize, is_second: bool| {
                let (high, negated) = if is_second {
                    (modifiers.high_selects_high(source), modifiers.absolute(source))
                } else {
                    (modifiers.selects_high(source), modifiers.negate(source))
                };
                elements(row, half(BFLOAT), if high { 16 } else { 0 }, 0, sign_if(negated))
            };
            let flip = sign_if(modifiers.negate(2));
            for (sum, addend) in sums.iter_mut().zip(&c.0) {
                *sum = f32::from_bits(addend ^ flip);
            }
            if !BFLOAT {
                flush(&mut sums);
            }
            for is_second in [false, true] {
                add_products(&mut sums, &factor(a, 0, is_second), &factor(b, 1, is_second));
                if !BFLOAT {
                    flush(&mut sums);
                }
            }
        }
        finish(wave, op, results(&sums, canonical), ResultKind::Single)
    }
}

/// v_dot4_f32_*: four bytes of each source.
struct ByteDot<const LEFT_BF8: bool, const RIGHT_BF8: bool>;
impl<const LEFT_BF8: bool, const RIGHT_BF8: bool> Operation for ByteDot<LEFT_BF8, RIGHT_BF8> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let mut sums = [0.0; LANES];
        {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [Row([0; LANES]); 3];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            let c = View::new(wave, op, 2, &mut room_c);
            let byte = |is_bf8: bool| if is_bf8 { Element::Bf8 } else { Element::Fp8 };
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = f32::from_bits(c.get(lane));
            }
            for shift in [0, 8, 16, 24] {
                let (left, right) =
                    (elements(a, byte(LEFT_BF8), shift, 0, 0), elements(b, byte(RIGHT_BF8), shift, 0, 0));
                add_products(&mut sums, &left, &right);
            }
        }
        finish(wave, op, results(&sums, canonical), ResultKind::Single)
    }
}

/// v_dot2_f16_f16 and v_dot2_bf16_bf16.
struct HalfDot<const BFLOAT: bool>;
impl<const BFLOAT: bool> Operation for HalfDot<BFLOAT> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let mut sums = [0.0; LANES];
        {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [Row([0; LANES]); 3];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            let c = View::new(wave, op, 2, &mut room_c);
            let factor = |row: &Row, source: usize, shift: u32| {
                let (clear, flip) = (sign_if(modifiers.absolute(source)), sign_if(modifiers.negate(source)));
                elements(row, half(BFLOAT), shift, clear, flip)
            };
            for (lane, sum) in sums.iter_mut().enumerate() {
                *sum = f32::from_bits(widen(half(BFLOAT), c.get(lane)));
            }
            for shift in [0, 16] {
                add_products(&mut sums, &factor(a, 0, shift), &factor(b, 1, shift));
            }
        }
        let bits = |sum: f32| {
            if BFLOAT { single_to_bfloat(sum.to_bits()) } else { single_to_half(sum.to_bits()) }
        };
        finish(wave, op, results(&sums, bits), ResultKind::Half)
    }
}

#[cfg(test)]
mod tests {
    use crate::shader::valu::testing::{code, run_all, wave};

    /// One lane of v0 after executing the words, with the given v1, v2 and v3.
    fn result(words: &[u32], a: u32, b: u32, c: u32) -> u32 {
        let mut start = wave();
        for (register, value) in [(1, a), (2, b), (3, c)] {
            start.vector[register].0 = [value; 32];
        }
        run_all(&start, words).vector[0].0[7]
    }

    #[test]
    fn pairs_of_halves() {
        let plain = code("v_dot2_f32_f16 v0, v1, v2, v3", &[0xCC13_4000, 0x1C0E_0501]);
        // 2·4 + 3·5 + 0.5: f16 2 is 0x4000, 3 is 0x4200, 4 is 0x4400, 5 is 0x4500.
        let (a, b) = (0x4200_4000, 0x4500_4400);
        assert_eq!(result(plain, a, b, 0.5f32.to_bits()), 23.5f32.to_bits());
        // 2·5 + 3·4 - 0.5 with the halves of b exchanged and the addend negated; then the second product negated.
        let crossed = code(
            "v_dot2_f32_f16 v0, v1, v2, v3 op_sel:[0,1,0] op_sel_hi:[1,0,1] neg_lo:[0,0,1]",
            &[0xCC13_5000, 0x8C0E_0501],
        );
        assert_eq!(result(crossed, a, b, 0.5f32.to_bits()), 21.5f32.to_bits());
        let negated = code("v_dot2_f32_f16 v0, v1, v2, v3 neg_hi:[1,0,0]", &[0xCC13_4100, 0x1C0E_0501]);
        assert_eq!(result(negated, a, b, 0.5f32.to_bits()), (-6.5f32).to_bits());
        // Denormal f16 count, denormal f32 do not: 2^-24 · 2^-24 = 2^-48 is kept, a denormal addend is flushed.
        assert_eq!(result(plain, 1, 1, 0x0000_0123), f32::to_bits(2f32.powi(-48)));
        assert_eq!(result(plain, 0, 0, 0x8000_0123), 0, "-0 + 0 + 0 is +0");
    }

    #[test]
    fn sums_are_rounded_one_by_one_in_f32() {
        let plain = code("v_dot2_f32_f16 v0, v1, v2, v3", &[0xCC13_4000, 0x1C0E_0501]);
        // 2^24 + 1·1 is a tie and rounds to even; so is the next. One addition of 2 would be exact.
        assert_eq!(result(plain, 0x3C00_3C00, 0x3C00_3C00, 16_777_216f32.to_bits()), 16_777_216f32.to_bits());
        assert_eq!(result(plain, 0x3C00_4000, 0x3C00_3C00, 16_777_216f32.to_bits()), 16_777_220f32.to_bits());
    }

    #[test]
    fn pairs_of_bfloats() {
        let plain = code("v_dot2_f32_bf16 v0, v1, v2, v3", &[0xCC1A_4000, 0x1C0E_0501]);
        // 1.5·2 + -4·0.25 + 10.
        assert_eq!(result(plain, 0xC080_3FC0, 0x3E80_4000, 10f32.to_bits()), 12f32.to_bits());
        assert_eq!(result(plain, 0, 0, 0x0000_0123), 0x0000_0123, "denormals stay");
        let narrow = code("v_dot2_bf16_bf16 v0, v1, v2, v3", &[0xD667_0000, 0x040E_0501]);
        // The result preserves the other half of the register; the addend is 10 (0x4120), the sum 12 (0x4140).
        let mut start = wave();
        let rows = [(0, 0xABCD_1234), (1, 0xC080_3FC0), (2, 0x3E80_4000), (3, 0x4120)];
        rows.into_iter().for_each(|(register, value)| start.vector[register].0 = [value; 32]);
        assert_eq!(run_all(&start, narrow).vector[0].0[3], 0xABCD_4140);
    }

    #[test]
    fn halves_are_rounded_once_at_the_end() {
        let plain = code("v_dot2_f16_f16 v0, v1, v2, v3", &[0xD666_0000, 0x040E_0501]);
        // 2048 + 1 + 1 is 2050 with one rounding at the end, 2048 with one after each sum.
        assert_eq!(result(plain, 0x3C00_3C00, 0x3C00_3C00, 0x6800) & 0xFFFF, 0x6801);
        // |−3|·5 + |2|·4 with abs on a, and −(…) with neg on b.
        let absolute = code("v_dot2_f16_f16 v0, |v1|, -v2, v3", &[0xD666_0100, 0x440E_0501]);
        assert_eq!(result(absolute, 0xC200_4000, 0x4500_4400, 0) & 0xFFFF, 0xCDC0);
    }

    #[test]
    fn bytes() {
        // fp8 1.0 is 0x38, 2.0 is 0x40, -0.5 is 0xB0, 448 is 0x7E; bf8 1.0 is 0x3C, 2.0 is 0x40, 3.0 is 0x42.
        let mixed = code("v_dot4_f32_fp8_bf8 v0, v1, v2, v3", &[0xCC24_4000, 0x1C0E_0501]);
        // 1·1 + 2·2 + -0.5·3 + 448·1 + 0.25
        assert_eq!(result(mixed, 0x7EB0_4038, 0x3C42_403C, 0.25f32.to_bits()), 451.75f32.to_bits());
        let reverse = code("v_dot4_f32_bf8_fp8 v0, v1, v2, v3", &[0xCC25_4000, 0x1C0E_0501]);
        assert_eq!(result(reverse, 0x3C42_403C, 0x7EB0_4038, 0.25f32.to_bits()), 451.75f32.to_bits());
        let absolute = code(
            "v_dot4_f32_fp8_fp8 v0, v1, v2, v3 neg_lo:[0,0,1] neg_hi:[0,0,1]",
            &[0xCC26_4400, 0x9C0E_0501],
        );
        // 2·2 - |-0.25|
        assert_eq!(result(absolute, 0x40, 0x40, (-0.25f32).to_bits()), 3.75f32.to_bits());
        let same = code("v_dot4_f32_bf8_bf8 v0, v1, v2, v3", &[0xCC27_4000, 0x1C0E_0501]);
        // 3·3 + NaN
        assert_eq!(result(same, 0x7F42, 0x3C42, 0), 0x7FC0_0000);
    }
}
