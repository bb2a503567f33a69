//! Integer, bit and move operations.

use core::marker::PhantomData;

use zrt_isa::Opcode;

use super::access::{old, read, write};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::Wave;
use crate::simd::{Executor, Operation};

/// A function of two sources, the destination's old value and SCC.
trait Scalar {
    /// Which of the sources are 64 bits wide.
    const WIDE: [bool; 2];
    /// Whether the result is 64 bits wide.
    const WIDE_RESULT: bool;
    /// The result; may set SCC.
    fn compute(a: u64, b: u64, old: u64, scc: &mut bool) -> u64;
}

struct Shell<S, const SPECIAL: bool>(PhantomData<S>);
impl<S: Scalar, const SPECIAL: bool> Operation for Shell<S, SPECIAL> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let a = read::<SPECIAL>(wave, op, 0, S::WIDE[0]);
        let b = read::<SPECIAL>(wave, op, 1, S::WIDE[1]);
        let old = old(wave, op, S::WIDE_RESULT);
        let value = S::compute(a, b, old, &mut wave.scc);
        write(wave, op, S::WIDE_RESULT, value);
        Flow::Next
    }
}

/// A test of two sources that sets SCC.
trait Condition {
    const WIDE: [bool; 2];
    fn test(a: u64, b: u64) -> bool;
}

struct ConditionShell<C, const SPECIAL: bool>(PhantomData<C>);
impl<C: Condition, const SPECIAL: bool> Operation for ConditionShell<C, SPECIAL> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let a = read::<SPECIAL>(wave, op, 0, C::WIDE[0]);
        let b = read::<SPECIAL>(wave, op, 1, C::WIDE[1]);
        wave.scc = C::test(a, b);
        Flow::Next
    }
}

fn shell<S: Scalar>(special: bool) -> Executor {
    if special { Executor::baseline::<Shell<S, true>>() } else { Executor::baseline::<Shell<S, false>>() }
}

fn condition<C: Condition>(special: bool) -> Executor {
    if special {
        Executor::baseline::<ConditionShell<C, true>>()
    } else {
        Executor::baseline::<ConditionShell<C, false>>()
    }
}

/// The value; sets SCC to whether it is nonzero.
#[inline(always)]
fn nonzero(scc: &mut bool, value: u64) -> u64 {
    *scc = value != 0;
    value
}

/// Like [`nonzero`], for a 32-bit value.
#[inline(always)]
fn nonzero32(scc: &mut bool, value: u32) -> u64 {
    nonzero(scc, value as u64)
}

#[inline(always)]
fn add_with_carry(a: u64, b: u64, carry: bool, scc: &mut bool) -> u64 {
    let sum = a + b + carry as u64;
    *scc = sum >> 32 != 0;
    sum
}

#[inline(always)]
fn subtract_with_borrow(a: u64, b: u64, borrow: bool, scc: &mut bool) -> u64 {
    let difference = a.wrapping_sub(b).wrapping_sub(borrow as u64);
    *scc = b + borrow as u64 > a;
    difference
}

#[inline(always)]
fn shift_add(a: u64, b: u64, amount: u32, scc: &mut bool) -> u64 {
    let sum = (a << amount) + b;
    *scc = sum >> 32 != 0;
    sum
}

#[inline(always)]
fn signed_overflow(pair: (i32, bool), scc: &mut bool) -> u64 {
    *scc = pair.1;
    pair.0 as u32 as u64
}

/// Selects by a comparison that also sets SCC.
#[inline(always)]
fn choose(first: bool, a: u64, b: u64, scc: &mut bool) -> u64 {
    *scc = first;
    if first { a } else { b }
}

/// Offset and width of a bit field: bits 4:0 (5:0 for 64-bit fields) and 22:16.
#[inline(always)]
fn field(b: u64, bits: u32) -> (u32, u32) {
    (b as u32 & (bits - 1), b as u32 >> 16 & 127)
}

#[inline(always)]
fn extract(value: u64, (offset, width): (u32, u32)) -> u64 {
    let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
    value >> offset & mask
}

#[inline(always)]
fn extract_signed(value: i64, (offset, width): (u32, u32)) -> i64 {
    let shifted = value >> offset;
    match width {
        0 => 0,
        64.. => shifted,
        _ => shifted << (64 - width) >> (64 - width),
    }
}

#[inline(always)]
fn first(count: u32, bits: u32) -> u64 {
    if count == bits { u32::MAX as u64 } else { count as u64 }
}

fn quad_mask(value: u64) -> u64 {
    (0..16).fold(0, |mask, quad| mask | ((value >> (quad * 4) & 15 != 0) as u64) << quad)
}

/// All four bits of every quad that has at least one bit set.
fn whole_quads(value: u64) -> u64 {
    (0..16).fold(0, |mask, quad| mask | if value >> (quad * 4) & 15 != 0 { 15 << (quad * 4) } else { 0 })
}

fn replicate_bits(value: u64) -> u64 {
    (0..32).fold(0, |result, bit| result | (((value >> bit & 1) * 3) << (bit * 2)))
}

macro_rules! scalar_operations {
    (operations { $($name:ident [$a_wide:literal, $b_wide:literal] $wide:literal
        |$a:pat_param, $b:pat_param, $old:pat_param, $scc:pat_param| $value:expr;)* }
     conditions { $($test:ident [$ta_wide:literal, $tb_wide:literal] |$ta:pat_param, $tb:pat_param| $tested:expr;)* }) => {
        $(struct $name;
        impl Scalar for $name {
            const WIDE: [bool; 2] = [$a_wide, $b_wide];
            const WIDE_RESULT: bool = $wide;
            #[inline(always)]
            fn compute($a: u64, $b: u64, $old: u64, $scc: &mut bool) -> u64 {
                $value
            }
        })*
        $(struct $test;
        impl Condition for $test {
            const WIDE: [bool; 2] = [$ta_wide, $tb_wide];
            #[inline(always)]
            fn test($ta: u64, $tb: u64) -> bool {
                $tested
            }
        })*

        /// The function of an operation of this file.
        pub(super) fn bind(opcode: Opcode, special: bool) -> Option<Executor> {
            Some(match opcode {
                $(Opcode::$name => shell::<$name>(special),)*
                $(Opcode::$test => condition::<$test>(special),)*
                _ => return None,
            })
        }
    };
}

scalar_operations! {
operations {
    SMovB32 [false, false] false |a, _, _, _| a;
    SMovB64 [true, false] true |a, _, _, _| a;
    SCmovB32 [false, false] false |a, _, old, scc| if *scc { a } else { old };
    SCmovB64 [true, false] true |a, _, old, scc| if *scc { a } else { old };
    SMovkI32 [false, false] false |a, _, _, _| a;
    SCmovkI32 [false, false] false |a, _, old, scc| if *scc { a } else { old };
    SAddkCoI32 [false, false] false |a, _, old, scc| signed_overflow((old as i32).overflowing_add(a as i32), scc);
    SMulkI32 [false, false] false |a, _, old, _| (old as u32).wrapping_mul(a as u32) as u64;
    SBrevB32 [false, false] false |a, _, _, _| (a as u32).reverse_bits() as u64;
    SBrevB64 [true, false] true |a, _, _, _| a.reverse_bits();
    SCtzI32B32 [false, false] false |a, _, _, _| first((a as u32).trailing_zeros(), 32);
    SCtzI32B64 [true, false] false |a, _, _, _| first(a.trailing_zeros(), 64);
    SClzI32U32 [false, false] false |a, _, _, _| first((a as u32).leading_zeros(), 32);
    SClzI32U64 [true, false] false |a, _, _, _| first(a.leading_zeros(), 64);
    SClsI32 [false, false] false |a, _, _, _| {
        let a = a as u32;
        first((a ^ ((a as i32) >> 31) as u32).leading_zeros(), 32)
    };
    SClsI32I64 [true, false] false |a, _, _, _| first((a ^ ((a as i64) >> 63) as u64).leading_zeros(), 64);
    SSextI32I8 [false, false] false |a, _, _, _| a as i8 as i32 as u32 as u64;
    SSextI32I16 [false, false] false |a, _, _, _| a as i16 as i32 as u32 as u64;
    SBitset0B32 [false, false] false |a, _, old, _| old & !(1 << (a & 31));
    SBitset0B64 [false, false] true |a, _, old, _| old & !(1 << (a & 63));
    SBitset1B32 [false, false] false |a, _, old, _| old | 1 << (a & 31);
    SBitset1B64 [false, false] true |a, _, old, _| old | 1 << (a & 63);
    SBitreplicateB64B32 [false, false] true |a, _, _, _| replicate_bits(a);
    SAbsI32 [false, false] false |a, _, _, scc| nonzero32(scc, (a as i32).wrapping_abs() as u32);
    SBcnt0I32B32 [false, false] false |a, _, _, scc| nonzero32(scc, (a as u32).count_zeros());
    SBcnt0I32B64 [true, false] false |a, _, _, scc| nonzero32(scc, a.count_zeros());
    SBcnt1I32B32 [false, false] false |a, _, _, scc| nonzero32(scc, a.count_ones());
    SBcnt1I32B64 [true, false] false |a, _, _, scc| nonzero32(scc, a.count_ones());
    SQuadmaskB32 [false, false] false |a, _, _, scc| nonzero(scc, quad_mask(a));
    SQuadmaskB64 [true, false] true |a, _, _, scc| nonzero(scc, quad_mask(a));
    SWqmB32 [false, false] false |a, _, _, scc| nonzero(scc, whole_quads(a));
    SWqmB64 [true, false] true |a, _, _, scc| nonzero(scc, whole_quads(a));
    SNotB32 [false, false] false |a, _, _, scc| nonzero32(scc, !a as u32);
    SNotB64 [true, false] true |a, _, _, scc| nonzero(scc, !a);

    SAddCoU32 [false, false] false |a, b, _, scc| add_with_carry(a, b, false, scc);
    SSubCoU32 [false, false] false |a, b, _, scc| subtract_with_borrow(a, b, false, scc);
    SAddCoI32 [false, false] false |a, b, _, scc| signed_overflow((a as i32).overflowing_add(b as i32), scc);
    SSubCoI32 [false, false] false |a, b, _, scc| signed_overflow((a as i32).overflowing_sub(b as i32), scc);
    SAddCoCiU32 [false, false] false |a, b, _, scc| add_with_carry(a, b, *scc, scc);
    SSubCoCiU32 [false, false] false |a, b, _, scc| subtract_with_borrow(a, b, *scc, scc);
    SAbsdiffI32 [false, false] false |a, b, _, scc| {
        nonzero32(scc, (a as i32).wrapping_sub(b as i32).wrapping_abs() as u32)
    };
    SLshlB32 [false, false] false |a, b, _, scc| nonzero32(scc, (a as u32) << (b & 31));
    SLshlB64 [true, false] true |a, b, _, scc| nonzero(scc, a << (b & 63));
    SLshrB32 [false, false] false |a, b, _, scc| nonzero(scc, a >> (b & 31));
    SLshrB64 [true, false] true |a, b, _, scc| nonzero(scc, a >> (b & 63));
    SAshrI32 [false, false] false |a, b, _, scc| nonzero32(scc, ((a as i32) >> (b & 31)) as u32);
    SAshrI64 [true, false] true |a, b, _, scc| nonzero(scc, ((a as i64) >> (b & 63)) as u64);
    SLshl1AddU32 [false, false] false |a, b, _, scc| shift_add(a, b, 1, scc);
    SLshl2AddU32 [false, false] false |a, b, _, scc| shift_add(a, b, 2, scc);
    SLshl3AddU32 [false, false] false |a, b, _, scc| shift_add(a, b, 3, scc);
    SLshl4AddU32 [false, false] false |a, b, _, scc| shift_add(a, b, 4, scc);
    SMinI32 [false, false] false |a, b, _, scc| choose((a as i32) < b as i32, a, b, scc);
    SMinU32 [false, false] false |a, b, _, scc| choose(a < b, a, b, scc);
    SMaxI32 [false, false] false |a, b, _, scc| choose(a as i32 >= b as i32, a, b, scc);
    SMaxU32 [false, false] false |a, b, _, scc| choose(a >= b, a, b, scc);
    SAndB32 [false, false] false |a, b, _, scc| nonzero(scc, a & b);
    SAndB64 [true, true] true |a, b, _, scc| nonzero(scc, a & b);
    SOrB32 [false, false] false |a, b, _, scc| nonzero(scc, a | b);
    SOrB64 [true, true] true |a, b, _, scc| nonzero(scc, a | b);
    SXorB32 [false, false] false |a, b, _, scc| nonzero(scc, a ^ b);
    SXorB64 [true, true] true |a, b, _, scc| nonzero(scc, a ^ b);
    SNandB32 [false, false] false |a, b, _, scc| nonzero32(scc, !(a & b) as u32);
    SNandB64 [true, true] true |a, b, _, scc| nonzero(scc, !(a & b));
    SNorB32 [false, false] false |a, b, _, scc| nonzero32(scc, !(a | b) as u32);
    SNorB64 [true, true] true |a, b, _, scc| nonzero(scc, !(a | b));
    SXnorB32 [false, false] false |a, b, _, scc| nonzero32(scc, !(a ^ b) as u32);
    SXnorB64 [true, true] true |a, b, _, scc| nonzero(scc, !(a ^ b));
    SAndNot1B32 [false, false] false |a, b, _, scc| nonzero(scc, a & !b);
    SAndNot1B64 [true, true] true |a, b, _, scc| nonzero(scc, a & !b);
    SOrNot1B32 [false, false] false |a, b, _, scc| nonzero32(scc, (a | !b) as u32);
    SOrNot1B64 [true, true] true |a, b, _, scc| nonzero(scc, a | !b);
    SBfeU32 [false, false] false |a, b, _, scc| nonzero(scc, extract(a, field(b, 32)));
    SBfeI32 [false, false] false |a, b, _, scc| {
        nonzero32(scc, extract_signed(a as i32 as i64, field(b, 32)) as u32)
    };
    SBfeU64 [true, false] true |a, b, _, scc| nonzero(scc, extract(a, field(b, 64)));
    SBfeI64 [true, false] true |a, b, _, scc| nonzero(scc, extract_signed(a as i64, field(b, 64)) as u64);
    SBfmB32 [false, false] false |a, b, _, _| ((1u64 << (a & 31)) - 1) << (b & 31);
    SBfmB64 [false, false] true |a, b, _, _| ((1u64 << (a & 63)) - 1) << (b & 63);
    SMulI32 [false, false] false |a, b, _, _| (a as u32).wrapping_mul(b as u32) as u64;
    SMulHiU32 [false, false] false |a, b, _, _| (a * b) >> 32;
    SMulHiI32 [false, false] false |a, b, _, _| ((a as i32 as i64 * b as i32 as i64) >> 32) as u64;
    SCselectB32 [false, false] false |a, b, _, scc| if *scc { a } else { b };
    SCselectB64 [true, true] true |a, b, _, scc| if *scc { a } else { b };
    SPackLlB32B16 [false, false] false |a, b, _, _| a & 0xFFFF | b << 16;
    SPackLhB32B16 [false, false] false |a, b, _, _| a & 0xFFFF | b & 0xFFFF_0000;
    SPackHhB32B16 [false, false] false |a, b, _, _| a >> 16 | b & 0xFFFF_0000;
    SPackHlB32B16 [false, false] false |a, b, _, _| a >> 16 | b << 16;
    SAddNcU64 [true, true] true |a, b, _, _| a.wrapping_add(b);
    SSubNcU64 [true, true] true |a, b, _, _| a.wrapping_sub(b);
    SMulU64 [true, true] true |a, b, _, _| a.wrapping_mul(b);

}
conditions {
    SBitcmp0B32 [false, false] |a, b| a >> (b & 31) & 1 == 0;
    SBitcmp1B32 [false, false] |a, b| a >> (b & 31) & 1 == 1;
    SBitcmp0B64 [true, false] |a, b| a >> (b & 63) & 1 == 0;
    SBitcmp1B64 [true, false] |a, b| a >> (b & 63) & 1 == 1;
    SCmpEqI32 [false, false] |a, b| a == b;
    SCmpLgI32 [false, false] |a, b| a != b;
    SCmpGtI32 [false, false] |a, b| a as i32 > b as i32;
    SCmpGeI32 [false, false] |a, b| a as i32 >= b as i32;
    SCmpLtI32 [false, false] |a, b| (a as i32) < b as i32;
    SCmpLeI32 [false, false] |a, b| a as i32 <= b as i32;
    SCmpEqU32 [false, false] |a, b| a == b;
    SCmpLgU32 [false, false] |a, b| a != b;
    SCmpGtU32 [false, false] |a, b| a > b;
    SCmpGeU32 [false, false] |a, b| a >= b;
    SCmpLtU32 [false, false] |a, b| a < b;
    SCmpLeU32 [false, false] |a, b| a <= b;
    SCmpEqU64 [true, true] |a, b| a == b;
    SCmpLgU64 [true, true] |a, b| a != b;
}
}
