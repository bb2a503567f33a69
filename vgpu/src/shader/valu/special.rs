//! Operations that need more than one lane's sources: masks in or out, carries, lane numbers, mixed widths, dot
//! products.
//!
//! Contract: masks are read before they are written; a mask result has zeros in inactive lanes.

use core::marker::PhantomData;

use zrt_isa::Opcode;

use super::access::{View, commit, commit_wide, mask_source, raw_source, store};
use super::operand::{Packed, Parts};
use super::shell::{ModeFields, WideSource};
use super::single::canonical;
use crate::shader::float::{
    Environment, HALF, Mode, SINGLE, convert, half_to_single, multiply_add, single_to_half,
};
use crate::shader::lanes::writable;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation, add_byte_products, blend, collect, merge_half, spread};

/// The functions of this file.
pub(super) fn bind(opcode: Opcode, parts: &Parts, level: Level) -> Option<Executor> {
    use Opcode::*;
    let clamp = parts.modifiers.clamp();
    let executor = match opcode {
        VPipeflush => Executor::baseline::<Nothing>(),
        VCndmaskB32 if parts.modifiers.is_plain() => level.bind::<Select<true>>(),
        VCndmaskB32 | VCndmaskB16 => level.bind::<Select<false>>(),
        VAddCoU32 => level.bind::<Carry<Add, false>>(),
        VSubCoU32 => level.bind::<Carry<Subtract, false>>(),
        VSubrevCoU32 => level.bind::<Carry<SubtractReversed, false>>(),
        VAddCoCiU32 => level.bind::<Carry<Add, true>>(),
        VSubCoCiU32 => level.bind::<Carry<Subtract, true>>(),
        VSubrevCoCiU32 => level.bind::<Carry<SubtractReversed, true>>(),
        VMadCoU64U32 if !clamp => level.bind::<MultiplyAddWide<false>>(),
        VMadCoI64I32 if !clamp => level.bind::<MultiplyAddWide<true>>(),
        VMbcntLoU32B32 => level.bind::<MaskedBitCount<true>>(),
        VMbcntHiU32B32 => level.bind::<MaskedBitCount<false>>(),
        VFmaMixF32 => level.bind::<Mix<MIX_SINGLE>>(),
        VFmaMixloF16 => level.bind::<Mix<MIX_LOW>>(),
        VFmaMixhiF16 => level.bind::<Mix<MIX_HIGH>>(),
        VDot4I32Iu8 => level.bind::<Dot<8, true>>(),
        VDot4U32U8 => level.bind::<Dot<8, false>>(),
        VDot8I32Iu4 => level.bind::<Dot<4, true>>(),
        VDot8U32U4 => level.bind::<Dot<4, false>>(),
        _ => return None,
    };
    Some(executor)
}

struct Nothing;
impl Operation for Nothing {
    #[inline(always)]
    fn execute(_wave: &mut Wave, _op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        Flow::Next
    }
}

/// v_cndmask. `PLAIN`: no modifiers, a 32-bit result.
struct Select<const PLAIN: bool>;
impl<const PLAIN: bool> Operation for Select<PLAIN> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let mut result = Row([0; LANES]);
        {
            let wave = &*wave;
            let mask = mask_source(wave, op, 2);
            let [mut room_a, mut room_b] = [Row([0; LANES]); 2];
            if PLAIN {
                let a = raw_source(wave, op, 0, &mut room_a);
                let b = raw_source(wave, op, 1, &mut room_b);
                result = blend(mask, b, a);
            } else {
                let a = View::new(wave, op, 0, &mut room_a);
                let b = View::new(wave, op, 1, &mut room_b);
                let chosen = spread(mask);
                for lane in 0..LANES {
                    result.0[lane] = b.get(lane) & chosen.0[lane] | a.get(lane) & !chosen.0[lane];
                }
            }
        }
        if PLAIN {
            store(wave, op.destination, &result);
        } else {
            commit(wave, op, &result);
        }
        Flow::Next
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Carries

trait CarryKind {
    /// The result with clamp if there is a carry or borrow.
    const SATURATED: u32;
    /// The sum or difference and the carry or borrow, both 0 or 1.
    fn compute(a: u32, b: u32, carry: u32) -> (u32, u32);
}

struct Add;
impl CarryKind for Add {
    const SATURATED: u32 = u32::MAX;
    #[inline(always)]
    fn compute(a: u32, b: u32, carry: u32) -> (u32, u32) {
        let sum = a.wrapping_add(b).wrapping_add(carry);
        // It wrapped if the sum is below a, or equals a because b plus the carry is 2^32.
        (sum, (sum < a || (sum == a && carry == 1)) as u32)
    }
}

struct Subtract;
impl CarryKind for Subtract {
    const SATURATED: u32 = 0;
    #[inline(always)]
    fn compute(a: u32, b: u32, borrow: u32) -> (u32, u32) {
        (a.wrapping_sub(b).wrapping_sub(borrow), (a < b || (a == b && borrow == 1)) as u32)
    }
}

struct SubtractReversed;
impl CarryKind for SubtractReversed {
    const SATURATED: u32 = 0;
    #[inline(always)]
    fn compute(a: u32, b: u32, borrow: u32) -> (u32, u32) {
        Subtract::compute(b, a, borrow)
    }
}

struct Carry<C, const IN: bool>(PhantomData<C>);
impl<C: CarryKind, const IN: bool> Operation for Carry<C, IN> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let (mut result, mut flags) = (Row([0; LANES]), Row([0; LANES]));
        {
            let wave = &*wave;
            let carries = spread(if IN { mask_source(wave, op, 2) } else { 0 });
            let [mut room_a, mut room_b] = [Row([0; LANES]); 2];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            for lane in 0..LANES {
                let carry = if IN { carries.0[lane] & 1 } else { 0 };
                let (sum, out) = C::compute(a.0[lane], b.0[lane], carry);
                result.0[lane] = sum;
                flags.0[lane] = out.wrapping_neg();
            }
        }
        if Packed(op.modifiers).clamp() {
            for (value, flag) in result.0.iter_mut().zip(&flags.0) {
                *value = if *flag != 0 { C::SATURATED } else { *value };
            }
        }
        let lanes = writable(wave, op);
        wave.scalar[op.destination2 as usize] = collect(flags) & lanes;
        commit(wave, op, &result);
        Flow::Next
    }
}

/// v_mad_co_u64_u32 and v_mad_co_i64_i32.
struct MultiplyAddWide<const SIGNED: bool>;
impl<const SIGNED: bool> Operation for MultiplyAddWide<SIGNED> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let (mut result, mut flags) = ([Row([0; LANES]); 2], Row([0; LANES]));
        {
            let wave = &*wave;
            let [mut room_a, mut room_b] = [Row([0; LANES]); 2];
            let mut room_c = [Row([0; LANES]); 2];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            let c = WideSource::new(wave, op, 2, &mut room_c);
            for lane in 0..LANES {
                let (x, y, z) = (a.0[lane], b.0[lane], c.get(lane));
                let (sum, carry) = if SIGNED {
                    // Bit 64 of the 65-bit sum is its true sign.
                    let (sum, wrapped) = (x as i32 as i64 * y as i32 as i64).overflowing_add(z as i64);
                    (sum as u64, (sum < 0) != wrapped)
                } else {
                    (x as u64 * y as u64).overflowing_add(z)
                };
                result[0].0[lane] = sum as u32;
                result[1].0[lane] = (sum >> 32) as u32;
                flags.0[lane] = if carry { u32::MAX } else { 0 };
            }
        }
        let lanes = writable(wave, op);
        wave.scalar[op.destination2 as usize] = collect(flags) & lanes;
        commit_wide(wave, op, &result);
        Flow::Next
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// Lane numbers, mixed precision, dot products

/// v_mbcnt_lo and _hi: the number of mask bits set below the lane, added to source 1. No lane of a wave32 is above
/// bit 31 of the high mask.
struct MaskedBitCount<const LOW: bool>;
impl<const LOW: bool> Operation for MaskedBitCount<LOW> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let mut result = Row([0; LANES]);
        {
            let wave = &*wave;
            let [mut room_a, mut room_b] = [Row([0; LANES]); 2];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            for lane in 0..LANES {
                let below = if LOW { a.0[lane] & ((1u32 << lane) - 1) } else { 0 };
                result.0[lane] = b.0[lane].wrapping_add(below.count_ones());
            }
        }
        commit(wave, op, &result);
        Flow::Next
    }
}

const MIX_SINGLE: u8 = 0;
const MIX_LOW: u8 = 1;
const MIX_HIGH: u8 = 2;

/// v_fma_mix: each source is f32, or, if op_sel_hi is set, the half that op_sel selects; the bits of neg_hi mean
/// abs.
struct Mix<const RESULT: u8>;

#[inline(always)]
fn mix_source(wave: &Wave, op: &MicroOp, index: usize) -> Row {
    let modifiers = Packed(op.modifiers);
    let mut room = Row([0; LANES]);
    let row = *raw_source(wave, op, index, &mut room);
    let mut result = row;
    if modifiers.high_selects_high(index) {
        let shift = if modifiers.selects_high(index) { 16 } else { 0 };
        for lane in 0..LANES {
            result.0[lane] = half_to_single(row.0[lane] >> shift);
        }
    }
    let clear = if modifiers.absolute(index) { 1u32 << 31 } else { 0 };
    let flip = if modifiers.negate(index) { 1u32 << 31 } else { 0 };
    for lane in 0..LANES {
        result.0[lane] = result.0[lane] & !clear ^ flip;
    }
    result
}

impl<const RESULT: u8> Operation for Mix<RESULT> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let (a, b, c) = (mix_source(wave, op, 0), mix_source(wave, op, 1), mix_source(wave, op, 2));
        let mut result = Row([0; LANES]);
        if ModeFields::ALL.deviates(wave.mode) {
            exact_mix::<RESULT>(&[a, b, c], Mode(wave.mode), &mut result);
        } else {
            for lane in 0..LANES {
                let [a, b, c] = [a.0[lane], b.0[lane], c.0[lane]].map(f32::from_bits);
                let sum = canonical(a.mul_add(b, c));
                result.0[lane] = if RESULT == MIX_SINGLE { sum } else { single_to_half(sum) };
            }
        }
        mix_finish::<RESULT>(wave, op, result)
    }
}

#[cold]
#[inline(never)]
fn exact_mix<const RESULT: u8>(sources: &[Row; 3], mode: Mode, result: &mut Row) {
    for lane in 0..LANES {
        let values = [0, 1, 2].map(|index: usize| sources[index].0[lane] as u64);
        let sum = multiply_add(SINGLE, values, mode.single());
        let kept = Environment { flush_sources: false, ..mode.single() };
        result.0[lane] = if RESULT == MIX_SINGLE {
            sum as u32
        } else {
            convert(SINGLE, HALF, sum, kept, mode.half()) as u32
        };
    }
}

#[inline(always)]
fn mix_finish<const RESULT: u8>(wave: &mut Wave, op: &MicroOp, mut result: Row) -> Flow {
    if RESULT == MIX_SINGLE {
        if Packed(op.modifiers).clamp() {
            super::access::clamp_single(&mut result);
        }
    } else {
        if Packed(op.modifiers).clamp() {
            super::access::clamp_half(&mut result);
        }
        result = merge_half(&result, &wave.vector[op.destination as usize], RESULT == MIX_HIGH);
    }
    let lanes = writable(wave, op);
    let register = op.destination as usize;
    wave.vector[register] =
        if lanes == u32::MAX { result } else { blend(lanes, &result, &wave.vector[register]) };
    Flow::Next
}

/// Integer dot products of bytes or nibbles. `MIXED`: negate bits 0 and 1 select which side is signed, and the sum
/// is signed (instruction set reference §6). Clamp saturates the exact sum.
struct Dot<const BITS: u32, const MIXED: bool>;
impl<const BITS: u32, const MIXED: bool> Operation for Dot<BITS, MIXED> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let is_signed = [0, 1].map(|source: usize| MIXED && modifiers.negate(source));
        let result = {
            let wave = &*wave;
            let [mut room_a, mut room_b, mut room_c] = [Row([0; LANES]); 3];
            let a = raw_source(wave, op, 0, &mut room_a);
            let b = raw_source(wave, op, 1, &mut room_b);
            let c = raw_source(wave, op, 2, &mut room_c);
            let mut sums = [0; LANES];
            if BITS == 8 {
                add_byte_products(a, b, is_signed, &mut sums);
            } else {
                for shift in [0, 4] {
                    let (a, b) = (nibbles(a, shift, is_signed[0]), nibbles(b, shift, is_signed[1]));
                    add_byte_products(&a, &b, is_signed, &mut sums);
                }
            }
            let mut result = Row([0; LANES]);
            for (lane, &sum) in sums.iter().enumerate() {
                result.0[lane] = if !modifiers.clamp() {
                    c.0[lane].wrapping_add(sum as u32)
                } else if MIXED {
                    (c.0[lane] as i32).saturating_add(sum) as u32
                } else {
                    c.0[lane].saturating_add(sum as u32)
                };
            }
            result
        };
        commit(wave, op, &result);
        Flow::Next
    }
}

/// The nibbles at bit `shift` of every byte, as bytes.
#[inline(always)]
fn nibbles(row: &Row, shift: u32, is_signed: bool) -> Row {
    let signs = if is_signed { 0x0808_0808 } else { 0 };
    let mut bytes = Row([0; LANES]);
    for (bytes, nibbles) in bytes.0.iter_mut().zip(&row.0) {
        let nibbles = nibbles >> shift & 0x0F0F_0F0F;
        // 0xF0 is 30 times the sign bit.
        *bytes = nibbles | ((nibbles & signs) * 30);
    }
    bytes
}
