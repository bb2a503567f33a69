//! Operations without relatives: v_trig_preop_f64, and conversions to bytes with stochastic rounding.
//!
//! Contract: v_trig_preop_f64 is exact except for denormal results. v_cvt_sr_fp8_f32 and v_cvt_sr_bf8_f32 are a
//! **model**: the magnitude rounds up if the discarded part, in units of the last place kept, and the random number
//! over 2^32 add up to 1 or more, even for denormal results. A result that is too large is that of the conversion
//! to nearest.

use zrt_isa::Opcode;

use super::access::{View, commit, raw_source};
use super::operand::Packed;
use crate::shader::float::{DOUBLE, Environment, Mode, scale, single_to_bf8, single_to_fp8};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation};

/// The first 1201 bits of the fraction of 2/π, the most significant first; the last 15 bits are not used.
const TWO_OVER_PI: [u64; 19] = [
    0xA2F9_836E_4E44_1529,
    0xFC27_57D1_F534_DDC0,
    0xDB62_9599_3C43_9041,
    0xFE51_63AB_DEBB_C561,
    0xB724_6E3A_424D_D2E0,
    0x0649_2EEA_09D1_921C,
    0xFE1D_EB1C_B129_A73E,
    0xE882_35F5_2EBB_4484,
    0xE99C_7026_B45F_7E41,
    0x3991_D639_8353_39F4,
    0x9C84_5F8B_BDF9_283B,
    0x1FF8_97FF_DE05_980F,
    0xEF2F_118B_5A0A_6D1F,
    0x6D36_7ECF_27CB_09B7,
    0x4F46_3F66_9E5F_EA2D,
    0x7527_BAC7_EBE5_F17B,
    0x3D07_39F7_8A52_92EA,
    0x6BFB_5FB1_1F8D_5D08,
    0x5603_3046_FC7B_0000,
];
/// Bits of 2/π that an instruction delivers.
const SEGMENT_BITS: u32 = 53;

/// Segment `number` (5 bits) of 2/π for the reduction of `x`: the larger x is, the further down the fraction.
fn trigonometric_segment(x: u64, number: u64, environment: Environment) -> u64 {
    let exponent = (x >> 52 & 0x7FF) as u32;
    // From 2^55 on, the high bits of 2/π contribute only whole turns.
    let shift = (number as u32 & 31) * SEGMENT_BITS + exponent.saturating_sub(1077);
    let (first, offset) = ((shift / 64) as usize, shift % 64);
    let word = |index: usize| u128::from(TWO_OVER_PI.get(index).copied().unwrap_or(0));
    let window = (word(first) << 64 | word(first + 1)) << offset;
    let segment = (window >> (128 - SEGMENT_BITS)) as u64;
    // Results for the largest arguments would be denormal: they are scaled up, as v_ldexp scales x down.
    let up = if exponent >= 1968 { 128 } else { 0 };
    scale(DOUBLE, (segment as f64).to_bits(), up - SEGMENT_BITS as i32 - shift as i32, environment)
}

wide_operations! {
    VTrigPreopF64 [true, false] true DOUBLE Double
        |a, b, _| trigonometric_segment(a, b, Environment::DEFAULT),
        |m, a, b, _| trigonometric_segment(a, b, m.double());
}

/// The functions of conversions with stochastic rounding.
pub(super) fn bind_stochastic(opcode: Opcode, level: Level) -> Option<Executor> {
    Some(match opcode {
        Opcode::VCvtSrFp8F32 => level.bind::<Stochastic<false>>(),
        Opcode::VCvtSrBf8F32 => level.bind::<Stochastic<true>>(),
        _ => return None,
    })
}

/// The f32 that the format can represent, next to or at `bits`; beyond its largest value as if its range continued.
fn round_stochastically(bits: u32, random: u32, fraction_bits: u32, minimum_exponent: i32) -> u32 {
    let exponent = (bits >> 23 & 0xFF) as i32 - 127;
    if exponent == 128 {
        return bits;
    }
    // Nothing is left of zeros and denormals: even with a leading one they are far below the smallest number of
    // either format.
    let significand = bits & 0x7F_FFFF | 1 << 23;
    let place = exponent.max(minimum_exponent) - fraction_bits as i32;
    // At most 23 + 127 bits apart; any distance above 60 leaves a fraction of zero.
    let shift = (place - (exponent - 23)).min(60);
    let (kept, rest) = (u64::from(significand) >> shift, u64::from(significand) & ((1 << shift) - 1));
    let fraction = (u128::from(rest) << 32 >> shift) as u64;
    let rounded = kept + ((fraction + u64::from(random)) >> 32);
    let magnitude = rounded as f32 * f32::from_bits(((place + 127) as u32) << 23);
    bits & 1 << 31 | magnitude.to_bits()
}

/// v_cvt_sr_fp8_f32 and v_cvt_sr_bf8_f32: replaces the byte numbered by op_sel's upper two bits.
struct Stochastic<const BF8: bool>;
impl<const BF8: bool> Operation for Stochastic<BF8> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let shift = 8 * (modifiers.selects_high(2) as u32 + 2 * modifiers.result_high() as u32);
        let saturate = Mode(wave.mode).half().saturate;
        let mut result = wave.vector[op.destination as usize];
        {
            let wave = &*wave;
            let [mut room_a, mut room_b] = [Row([0; LANES]); 2];
            let a = View::new(wave, op, 0, &mut room_a);
            let random = raw_source(wave, op, 1, &mut room_b);
            for lane in 0..LANES {
                let byte = if BF8 {
                    single_to_bf8(round_stochastically(a.get(lane), random.0[lane], 2, -14), saturate)
                } else {
                    single_to_fp8(round_stochastically(a.get(lane), random.0[lane], 3, -6), saturate)
                };
                result.0[lane] = result.0[lane] & !(0xFF << shift) | byte << shift;
            }
        }
        commit(wave, op, &result);
        Flow::Next
    }
}

#[cfg(test)]
mod tests {
    use crate::shader::valu::testing::{code, run_all, wave};

    #[test]
    fn segments_add_up_to_two_over_pi() {
        let words = code("v_trig_preop_f64 v[0:1], v[2:3], v4", &[0xD72F_0000, 0x0002_0902]);
        let segment = |x: f64, number: u32| {
            let mut start = wave();
            start.vector[2].0 = [x.to_bits() as u32; 32];
            start.vector[3].0 = [(x.to_bits() >> 32) as u32; 32];
            start.vector[4].0 = [number; 32];
            let end = run_all(&start, words);
            f64::from_bits(u64::from(end.vector[0].0[1]) | u64::from(end.vector[1].0[1]) << 32)
        };
        // 2/π truncated to 53 bits, and the remainder up to 0.6366197723675813430755350534900574481378...
        let high = segment(1.0, 0);
        assert_eq!(high.to_bits(), 0x3FE4_5F30_6DC9_C882);
        let low = segment(1.0, 1);
        let difference = core::f64::consts::FRAC_2_PI - high;
        assert!((low - difference).abs() < 2f64.powi(-54) && low > 0.0);
        // The known hexadecimal digits of 2/π; these are bits 53 to 105.
        let digits = 0xA2F9_836E_4E44_1529_FC27_57D1_F534_DDC0u128;
        assert_eq!(low, (digits >> 22 & ((1 << 53) - 1)) as f64 * 2f64.powi(-106));
        // With x = 2^60 (exponent field 1083) the window advances by six bits.
        let window = (digits << 6 >> (128 - 53)) as f64;
        assert_eq!(segment(2f64.powi(60), 0), window * 2f64.powi(-59));
        assert_eq!(segment(1.0, 31), 0.0, "beyond the table");
    }

    #[test]
    fn the_random_number_decides_how_it_rounds() {
        let words = code("v_cvt_sr_fp8_f32 v0, v1, v2", &[0xD76B_0000, 0x0002_0501]);
        let upper = code("v_cvt_sr_bf8_f32 v0, v1, v2 byte_sel:2", &[0xD76C_4000, 0x0002_0501]);
        let convert = |words: &[u32], value: f32, random: u32| {
            let mut start = wave();
            let rows = [(0, 0xAABB_CCDD), (1, value.to_bits()), (2, random)];
            rows.into_iter().for_each(|(register, value)| start.vector[register].0 = [value; 32]);
            run_all(&start, words).vector[0].0[2]
        };
        // fp8 has 1.0 (0x38) and 1.125 (0x39): 1.03125 is a quarter of the way.
        assert_eq!(convert(words, 1.03125, 0xBFFF_FFFF), 0xAABB_CC38);
        assert_eq!(convert(words, 1.03125, 0xC000_0000), 0xAABB_CC39);
        assert_eq!(convert(words, -1.03125, 0xC000_0000), 0xAABB_CCB9);
        assert_eq!(convert(words, 1.125, 0xFFFF_FFFF), 0xAABB_CC39, "exact values stay");
        // Denormals have places of 2^-9. 2^-10 is half a place.
        assert_eq!(convert(words, 2f32.powi(-10), 0x7FFF_FFFF), 0xAABB_CC00);
        assert_eq!(convert(words, 2f32.powi(-10), 0x8000_0000), 0xAABB_CC01);
        assert_eq!(convert(words, f32::from_bits(1), 0xFFFF_FFFF), 0xAABB_CC00);
        assert_eq!(convert(words, 1000.0, 0), 0xAABB_CC7F, "no infinity: NaN");
        // bf8 has 1.0 (0x3C) and 1.25 (0x3D).
        assert_eq!(convert(upper, 1.125, 0x7FFF_FFFF), 0xAA3C_CCDD);
        assert_eq!(convert(upper, 1.125, 0x8000_0000), 0xAA3D_CCDD);
    }

    /// Every value between two neighbours of either format, at both ends of what makes it round up.
    #[test]
    fn the_sum_of_fraction_and_random_number_decides() {
        // Value of a code from its fields.
        let value = |code: u32, exponent_bits: i32| {
            let fraction_bits = 7 - exponent_bits;
            let (exponent, fraction) = ((code >> fraction_bits) as i32, code & ((1 << fraction_bits) - 1));
            let significand = if exponent == 0 { fraction } else { fraction | 1 << fraction_bits };
            let place = exponent.max(1) - (1 << (exponent_bits - 1)) + 1 - fraction_bits;
            f64::from(significand) * 2f64.powi(place)
        };
        for (opcode, exponent_bits, largest) in [(0xD76B_0000u32, 4, 0x7E), (0xD76C_0000, 5, 0x7B)] {
            let mut cases = Vec::new();
            for code in 0..largest {
                let (low, high) = (value(code, exponent_bits), value(code + 1, exponent_bits));
                for (weight, divisor) in
                    [(0, 1), (1, 1 << 18), (1, 4), (1, 2), (3, 4), ((1 << 18) - 1, 1 << 18)]
                {
                    let fraction = f64::from(weight) / f64::from(divisor);
                    let bits = ((low + (high - low) * fraction) as f32).to_bits();
                    let enough = ((1.0 - fraction) * 2f64.powi(32)) as u64;
                    for (random, expected) in [(enough - 1, code), (enough, code + 1), (0, code)] {
                        if let Ok(random) = u32::try_from(random) {
                            cases.push((bits, random, expected));
                            cases.push((bits | 1 << 31, random, expected | 0x80));
                        }
                    }
                }
            }
            for (number, cases) in cases.chunks(32).enumerate() {
                // Bits 13 and 14 are the number of the byte.
                let byte = number as u32 % 4;
                let mut start = wave();
                for (lane, (bits, random, _)) in cases.iter().enumerate() {
                    (start.vector[1].0[lane], start.vector[2].0[lane]) = (*bits, *random);
                }
                let end = run_all(&start, &[opcode | byte << 13, 0x0002_0501]);
                for (lane, (bits, random, expected)) in cases.iter().enumerate() {
                    let mut bytes = start.vector[0].0[lane].to_le_bytes();
                    bytes[byte as usize] = *expected as u8;
                    let what = (f32::from_bits(*bits), random);
                    assert_eq!(
                        end.vector[0].0[lane],
                        u32::from_le_bytes(bytes),
                        "{opcode:#x} {byte} {what:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_too_large_becomes_what_the_nearest_conversion_says() {
        let of = |opcode: u32, mode: u32, value: f32| {
            let mut start = wave();
            start.mode = mode;
            for (register, value) in [(0, 0), (1, value.to_bits()), (2, 0)] {
                start.vector[register].0 = [value; 32];
            }
            run_all(&start, &[opcode, 0x0002_0501]).vector[0].0[0]
        };
        for (value, fp8, bf8) in [
            (1e9, [0x7F, 0x7E], [0x7C, 0x7B]),
            (-1e9, [0xFF, 0xFE], [0xFC, 0xFB]),
            (f32::MAX, [0x7F, 0x7E], [0x7C, 0x7B]),
            (2f32.powi(-127), [0; 2], [0; 2]),
            (f32::INFINITY, [0x7F, 0x7E], [0x7C, 0x7C]),
            (f32::NEG_INFINITY, [0xFF, 0xFE], [0xFC, 0xFC]),
            (f32::NAN, [0x7F; 2], [0x7E; 2]),
            (0.0, [0; 2], [0; 2]),
            (-0.0, [0x80; 2], [0x80; 2]),
        ] {
            // FP16_OVFL saturates.
            let modes = [0xF0, 0xF0 | 1 << 23];
            assert_eq!(modes.map(|mode| of(0xD76B_0000, mode, value)), fp8, "{value}");
            assert_eq!(modes.map(|mode| of(0xD76C_0000, mode, value)), bf8, "{value}");
        }
    }

    /// 2/π in digits of 24 bits, the most significant first.
    const DIGITS: [u32; 20] = [
        0xA2_F983, 0x6E_4E44, 0x15_29FC, 0x27_57D1, 0xF5_34DD, 0xC0_DB62, 0x95_993C, 0x43_9041, 0xFE_5163,
        0xAB_DEBB, 0xC5_61B7, 0x24_6E3A, 0x42_4DD2, 0xE0_0649, 0x2E_EA09, 0xD1_921C, 0xFE_1DEB, 0x1C_B129,
        0xA7_3EE8, 0x82_35F5,
    ];

    /// "Large floating point inputs are scaled to avoid loss of precision through denormalization."
    #[test]
    fn segments_of_every_exponent_are_windows_of_the_digits() {
        let words = code("v_trig_preop_f64 v[0:1], v[2:3], v4", &[0xD72F_0000, 0x0002_0902]);
        let bit = |index: usize| u64::from(DIGITS[index / 24] >> (23 - index % 24) & 1);
        for exponent in [0, 1, 1023, 1077, 1078, 1079, 1090, 1130, 1131, 1141, 1200, 1400] {
            for number in [0u32, 1, 2, 32, 33] {
                let shift = 53 * (number as usize % 32) + usize::saturating_sub(exponent, 1077);
                if shift + 53 > 480 {
                    continue;
                }
                let window = (0..53).fold(0, |window, index| window << 1 | bit(shift + index));
                let mut start = wave();
                // A negative source with other bits below: only the exponent counts.
                let x = 1u64 << 63 | (exponent as u64) << 52 | 0x000A_BCDE_0123_4567;
                for (register, value) in [(2, x as u32), (3, (x >> 32) as u32), (4, number)] {
                    start.vector[register].0 = [value; 32];
                }
                let end = run_all(&start, words);
                let found =
                    f64::from_bits(u64::from(end.vector[0].0[1]) | u64::from(end.vector[1].0[1]) << 32);
                assert_eq!(found, window as f64 * 2f64.powi(-53 - shift as i32), "{exponent} {number}");
            }
        }
        // From the exponent 1968 on, results are 2^128 times as large.
        let at = |exponent: u64, number: u32| {
            let mut start = wave();
            for (register, value) in [(2, 0), (3, (exponent << 20) as u32), (4, number)] {
                start.vector[register].0 = [value; 32];
            }
            let end = run_all(&start, words);
            f64::from_bits(u64::from(end.vector[0].0[1]) | u64::from(end.vector[1].0[1]) << 32)
        };
        // Windows that begin at bits 890 and 891.
        let (below, above) = (at(1967, 0), at(1968, 0) * 2f64.powi(-128));
        let (below, above) = (below * 2f64.powi(890 + 53), above * 2f64.powi(891 + 53));
        assert_eq!(below % 2f64.powi(52), (above - above % 2.0) / 2.0, "the next window is one bit further");
    }
}
