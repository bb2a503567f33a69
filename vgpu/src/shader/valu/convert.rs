//! Conversions between formats and integers of up to 32 bits.
//!
//! Contract: conversions to an integer truncate and saturate, and convert NaN to 0; conversions to a float round by
//! MODE unless the name says otherwise (instruction set reference §8.1).

use super::access::{clamp_single, commit_wide, fetch_raw};
use super::operand::Packed;
use super::shell::{ResultKind, finish, multiply_result};
use super::single::canonical;
use crate::shader::float::{
    Environment, HALF, Mode, Round, SINGLE, add, bf8_to_single, convert, fp8_to_single, from_integer,
    half_to_single, single_to_bf8, single_to_fp8, single_to_half, single_to_half_toward_zero,
};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation, truncate_to_i32, truncate_to_u32};
use zrt_isa::Opcode;

#[inline(always)]
fn single(a: u32) -> f32 {
    f32::from_bits(a)
}

#[inline(always)]
fn half(a: u32) -> f32 {
    f32::from_bits(half_to_single(a))
}

/// To a signed integer of 16 bits.
#[inline(always)]
fn to_i16(x: f32) -> u32 {
    truncate_to_i32(x).clamp(-32768, 32767) as u32 & 0xFFFF
}

/// To an unsigned integer of 16 bits.
#[inline(always)]
fn to_u16(x: f32) -> u32 {
    truncate_to_i32(x).clamp(0, 65535) as u32
}

/// -1..=1 to the signed 16-bit range, to nearest even.
#[inline(always)]
fn signed_norm(x: f32) -> u32 {
    to_i16((f64::from(x.clamp(-1.0, 1.0)) * 32767.0).round_ties_even() as f32)
}

/// 0..=1 to the unsigned 16-bit range, to nearest even.
#[inline(always)]
fn unsigned_norm(x: f32) -> u32 {
    to_u16((f64::from(x.clamp(0.0, 1.0)) * 65535.0).round_ties_even() as f32)
}

fn exact_half(a: u32, m: Mode, round: Option<Round>) -> u32 {
    let result = m.half();
    let result = Environment { round: round.unwrap_or(result.round), ..result };
    convert(SINGLE, HALF, a as u64, m.single(), result) as u32
}

fn saturates(m: Mode) -> bool {
    m.half().saturate
}

conversions! {
    hot 1 SINGLE Single VCvtF32I32 |a, _, _| (a as i32 as f32).to_bits(),
        |m, a, _, _| from_integer(SINGLE, a as i32 as i128, m.single()) as u32;
    hot 1 SINGLE Single VCvtF32U32 |a, _, _| (a as f32).to_bits(),
        |m, a, _, _| from_integer(SINGLE, a as i128, m.single()) as u32;
    hot 1 NONE Bits VCvtU32F32 |a, _, _| truncate_to_u32(single(a)), |_, a, _, _| truncate_to_u32(single(a));
    hot 1 NONE Bits VCvtI32F32 |a, _, _| truncate_to_i32(single(a)) as u32,
        |_, a, _, _| truncate_to_i32(single(a)) as u32;
    cold 1 ALL Half VCvtF16F32 |a, _, _| single_to_half(a), |m, a, _, _| exact_half(a, m, None);
    hot 1 ALL Single VCvtF32F16 |a, _, _| half_to_single(a),
        |m, a, _, _| convert(HALF, SINGLE, a as u64, m.half(), m.single()) as u32;
    cold 1 SINGLE Bits VCvtNearestI32F32 |a, _, _| truncate_to_i32((single(a) + 0.5).floor()) as u32,
        |m, a, _, _| {
            let sum = add(SINGLE, a as u64, 0.5f32.to_bits() as u64, m.single()) as u32;
            truncate_to_i32(single(sum).floor()) as u32
        };
    cold 1 SINGLE Bits VCvtFloorI32F32 |a, _, _| truncate_to_i32(single(a).floor()) as u32,
        |m, a, _, _| {
            let a = SINGLE.flush_source(a as u64, m.single()) as u32;
            truncate_to_i32(single(a).floor()) as u32
        };
    // A signed nibble in sixteenths.
    cold 1 NONE Single VCvtOffF32I4 |a, _, _| (((a << 28) as i32 >> 28) as f32 / 16.0).to_bits(),
        |_, a, _, _| (((a << 28) as i32 >> 28) as f32 / 16.0).to_bits();
    hot 1 NONE Single VCvtF32Ubyte0 |a, _, _| ((a & 0xFF) as f32).to_bits(),
        |_, a, _, _| ((a & 0xFF) as f32).to_bits();
    hot 1 NONE Single VCvtF32Ubyte1 |a, _, _| ((a >> 8 & 0xFF) as f32).to_bits(),
        |_, a, _, _| ((a >> 8 & 0xFF) as f32).to_bits();
    hot 1 NONE Single VCvtF32Ubyte2 |a, _, _| ((a >> 16 & 0xFF) as f32).to_bits(),
        |_, a, _, _| ((a >> 16 & 0xFF) as f32).to_bits();
    hot 1 NONE Single VCvtF32Ubyte3 |a, _, _| ((a >> 24) as f32).to_bits(),
        |_, a, _, _| ((a >> 24) as f32).to_bits();
    cold 1 HALF Half VCvtF16U16 |a, _, _| single_to_half((a as f32).to_bits()),
        |m, a, _, _| from_integer(HALF, a as i128, m.half()) as u32;
    cold 1 HALF Half VCvtF16I16 |a, _, _| single_to_half((a as i16 as f32).to_bits()),
        |m, a, _, _| from_integer(HALF, a as i16 as i128, m.half()) as u32;
    cold 1 NONE Bits VCvtU16F16 |a, _, _| to_u16(half(a)), |_, a, _, _| to_u16(half(a));
    cold 1 NONE Bits VCvtI16F16 |a, _, _| to_i16(half(a)), |_, a, _, _| to_i16(half(a));
    cold 1 NONE Bits VCvtNormI16F16 |a, _, _| signed_norm(half(a)), |_, a, _, _| signed_norm(half(a));
    cold 1 NONE Bits VCvtNormU16F16 |a, _, _| unsigned_norm(half(a)), |_, a, _, _| unsigned_norm(half(a));
    hot 2 ALL Bits VCvtPkRtzF16F32
        |a, b, _| single_to_half_toward_zero(a) | single_to_half_toward_zero(b) << 16,
        |m, a, b, _| exact_half(a, m, Some(Round::Zero)) | exact_half(b, m, Some(Round::Zero)) << 16;
    cold 2 NONE Bits VCvtPkI16F32 |a, b, _| to_i16(single(a)) | to_i16(single(b)) << 16,
        |_, a, b, _| to_i16(single(a)) | to_i16(single(b)) << 16;
    cold 2 NONE Bits VCvtPkU16F32 |a, b, _| to_u16(single(a)) | to_u16(single(b)) << 16,
        |_, a, b, _| to_u16(single(a)) | to_u16(single(b)) << 16;
    cold 2 NONE Bits VCvtPkNormI16F32 |a, b, _| signed_norm(single(a)) | signed_norm(single(b)) << 16,
        |_, a, b, _| signed_norm(single(a)) | signed_norm(single(b)) << 16;
    cold 2 NONE Bits VCvtPkNormU16F32 |a, b, _| unsigned_norm(single(a)) | unsigned_norm(single(b)) << 16,
        |_, a, b, _| unsigned_norm(single(a)) | unsigned_norm(single(b)) << 16;
    cold 2 NONE Bits VCvtPkNormI16F16 |a, b, _| signed_norm(half(a)) | signed_norm(half(b)) << 16,
        |_, a, b, _| signed_norm(half(a)) | signed_norm(half(b)) << 16;
    cold 2 NONE Bits VCvtPkNormU16F16 |a, b, _| unsigned_norm(half(a)) | unsigned_norm(half(b)) << 16,
        |_, a, b, _| unsigned_norm(half(a)) | unsigned_norm(half(b)) << 16;
    cold 3 NONE Bits VCvtPkU8F32
        |a, b, c| {
            let shift = (b & 3) * 8;
            c & !(0xFF << shift) | (truncate_to_i32(single(a)).clamp(0, 255) as u32) << shift
        },
        |_, a, b, c| {
            let shift = (b & 3) * 8;
            c & !(0xFF << shift) | (truncate_to_i32(single(a)).clamp(0, 255) as u32) << shift
        };
    // Always to nearest even; FP16_OVFL saturates.
    cold 2 HALF Bits VCvtPkFp8F32 |a, b, _| single_to_fp8(a, false) | single_to_fp8(b, false) << 8,
        |m, a, b, _| single_to_fp8(a, saturates(m)) | single_to_fp8(b, saturates(m)) << 8;
    cold 2 HALF Bits VCvtPkBf8F32 |a, b, _| single_to_bf8(a, false) | single_to_bf8(b, false) << 8,
        |m, a, b, _| single_to_bf8(a, saturates(m)) | single_to_bf8(b, saturates(m)) << 8;
}

/// The functions of conversions from bytes that op_sel selects.
pub(super) fn bind_from_bytes(opcode: Opcode, level: Level) -> Option<Executor> {
    Some(match opcode {
        Opcode::VCvtF32Fp8 => level.bind::<FromByte<false>>(),
        Opcode::VCvtF32Bf8 => level.bind::<FromByte<true>>(),
        Opcode::VCvtPkF32Fp8 => level.bind::<FromBytes<false>>(),
        Opcode::VCvtPkF32Bf8 => level.bind::<FromBytes<true>>(),
        _ => return None,
    })
}

fn byte_to_single(byte: u32, is_bf8: bool) -> u32 {
    if is_bf8 { canonical(single(bf8_to_single(byte))) } else { fp8_to_single(byte) }
}

/// v_cvt_f32_fp8 and _bf8. The byte number is op_sel with its two bits reversed (instruction set reference §8.1).
struct FromByte<const BF8: bool>;
impl<const BF8: bool> Operation for FromByte<BF8> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let shift = modifiers.selects_high(0) as u32 * 16 + modifiers.selects_high(1) as u32 * 8;
        let mut row = Row([0; LANES]);
        fetch_raw(wave, op, 0, &mut row);
        for value in &mut row.0 {
            *value = byte_to_single(*value >> shift & 0xFF, BF8);
        }
        finish(wave, op, row, ResultKind::Single)
    }
}

/// v_cvt_pk_f32_fp8 and _bf8: two bytes of the half that op_sel selects.
struct FromBytes<const BF8: bool>;
impl<const BF8: bool> Operation for FromBytes<BF8> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let shift = if Packed(op.modifiers).selects_high(0) { 16 } else { 0 };
        let mut row = Row([0; LANES]);
        fetch_raw(wave, op, 0, &mut row);
        let mut result = [Row([0; LANES]); 2];
        for lane in 0..LANES {
            for (index, result) in result.iter_mut().enumerate() {
                let value = byte_to_single(row.0[lane] >> (shift + 8 * index) & 0xFF, BF8).into();
                result.0[lane] = multiply_result(op, value, ResultKind::Single, Mode(wave.mode)) as u32;
            }
        }
        if Packed(op.modifiers).clamp() {
            result.iter_mut().for_each(clamp_single);
        }
        commit_wide(wave, op, &result);
        Flow::Next
    }
}
