//! Comparisons: one bit per lane to a scalar register, or to EXEC (`v_cmpx`, which has no other destination).
//!
//! Contract: inactive lanes return 0. A comparison is a set of relations for which it is true; a comparison with
//! NaN is unordered.

use zrt_isa::Opcode;

use relations::*;

use super::operand::Parts;
use super::shell::{Test, cold_test, test};
use crate::shader::float::{DOUBLE, Format, HALF, SINGLE, half_to_single};
use crate::simd::{Executor, Level};

/// Relations for which a comparison is true, a bit each: less, equal, greater, unordered. The number is that of a
/// comparison of floats in its opcode's low four bits (RDNA4 ISA, opcodes of VOPC).
#[rustfmt::skip]
pub(crate) mod relations {
    pub(crate) const LESS: u8                 = 0b0001;
    pub(crate) const EQUAL: u8                = 0b0010;
    pub(crate) const LESS_OR_EQUAL: u8        = 0b0011;
    pub(crate) const GREATER: u8              = 0b0100;
    pub(crate) const LESS_OR_GREATER: u8      = 0b0101;
    pub(crate) const GREATER_OR_EQUAL: u8     = 0b0110;
    pub(crate) const ORDERED: u8              = 0b0111;
    pub(crate) const UNORDERED: u8            = 0b1000;
    pub(crate) const NOT_GREATER_OR_EQUAL: u8 = 0b1001;
    pub(crate) const NOT_LESS_OR_GREATER: u8  = 0b1010;
    pub(crate) const NOT_GREATER: u8          = 0b1011;
    pub(crate) const NOT_LESS_OR_EQUAL: u8    = 0b1100;
    pub(crate) const NOT_EQUAL: u8            = 0b1101;
    pub(crate) const NOT_LESS: u8             = 0b1110;
}

#[inline(always)]
fn passes<T: PartialOrd>(relations: u8, a: T, b: T) -> bool {
    let ordered = a <= b || a >= b;
    (relations & LESS != 0 && a < b)
        || (relations & EQUAL != 0 && a == b)
        || (relations & GREATER != 0 && a > b)
        || (relations & UNORDERED != 0 && !ordered)
}

macro_rules! comparisons {
    ($($name:ident $wide:literal $format:expr, |$bits:ident| $value:expr;)*) => {$(
        pub(crate) struct $name<const RELATIONS: u8>;
        impl<const RELATIONS: u8> Test for $name<RELATIONS> {
            const WIDE: [bool; 2] = [$wide; 2];
            const FORMAT: Option<Format> = $format;
            #[inline(always)]
            fn test(a: u64, b: u64) -> bool {
                let value = |$bits: u64| $value;
                passes(RELATIONS, value(a), value(b))
            }
        }
    )*};
}

comparisons! {
    Half false Some(HALF), |bits| f32::from_bits(half_to_single(bits as u32));
    Single false Some(SINGLE), |bits| f32::from_bits(bits as u32);
    Double true Some(DOUBLE), |bits| f64::from_bits(bits);
    Signed16 false None, |bits| bits as i16;
    Unsigned16 false None, |bits| bits as u16;
    Signed32 false None, |bits| bits as i32;
    Unsigned32 false None, |bits| bits as u32;
    Signed64 true None, |bits| bits as i64;
    Unsigned64 true None, |bits| bits;
}

/// The classes of values; a class's number is its bit in the mask of v_cmp_class.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Class {
    SignallingNan = 0,
    QuietNan = 1,
    NegativeInfinity = 2,
    NegativeNormal = 3,
    NegativeDenormal = 4,
    NegativeZero = 5,
    Zero = 6,
    Denormal = 7,
    Normal = 8,
    Infinity = 9,
}

/// The class of a value.
fn class(bits: u64, exponent_bits: u32, fraction_bits: u32) -> Class {
    let fraction = bits & ((1 << fraction_bits) - 1);
    let exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    let is_negative = bits >> (exponent_bits + fraction_bits) & 1 != 0;
    let top = (1 << exponent_bits) - 1;
    let is_quiet = fraction >> (fraction_bits - 1) != 0;
    let (positive, negative) = match (exponent, fraction) {
        (field, 1..) if field == top && is_quiet => (Class::QuietNan, Class::QuietNan),
        (field, 1..) if field == top => (Class::SignallingNan, Class::SignallingNan),
        (field, 0) if field == top => (Class::Infinity, Class::NegativeInfinity),
        (0, 0) => (Class::Zero, Class::NegativeZero),
        (0, _) => (Class::Denormal, Class::NegativeDenormal),
        _ => (Class::Normal, Class::NegativeNormal),
    };
    if is_negative { negative } else { positive }
}

macro_rules! classes {
    ($($name:ident $wide:literal $exponent:literal $fraction:literal;)*) => {$(
        struct $name;
        impl Test for $name {
            const WIDE: [bool; 2] = [$wide, false];
            // The class of a denormal is recognised whatever MODE says.
            const FORMAT: Option<Format> = None;
            #[inline(always)]
            fn test(a: u64, b: u64) -> bool {
                b >> class(a, $exponent, $fraction) as u32 & 1 != 0
            }
        }
    )*};
}

classes! {
    ClassHalf false 5 10;
    ClassSingle false 8 23;
    ClassDouble true 11 52;
}

/// The function of a comparison.
pub(super) fn bind(opcode: Opcode, parts: &Parts, level: Level) -> Option<Executor> {
    use Opcode::*;
    match opcode {
        VCmpLtF16 | VCmpxLtF16 => cold_test::<Half<LESS>>(parts, level),
        VCmpEqF16 | VCmpxEqF16 => cold_test::<Half<EQUAL>>(parts, level),
        VCmpLeF16 | VCmpxLeF16 => cold_test::<Half<LESS_OR_EQUAL>>(parts, level),
        VCmpGtF16 | VCmpxGtF16 => cold_test::<Half<GREATER>>(parts, level),
        VCmpLgF16 | VCmpxLgF16 => cold_test::<Half<LESS_OR_GREATER>>(parts, level),
        VCmpGeF16 | VCmpxGeF16 => cold_test::<Half<GREATER_OR_EQUAL>>(parts, level),
        VCmpOF16 | VCmpxOF16 => cold_test::<Half<ORDERED>>(parts, level),
        VCmpUF16 | VCmpxUF16 => cold_test::<Half<UNORDERED>>(parts, level),
        VCmpNgeF16 | VCmpxNgeF16 => cold_test::<Half<NOT_GREATER_OR_EQUAL>>(parts, level),
        VCmpNlgF16 | VCmpxNlgF16 => cold_test::<Half<NOT_LESS_OR_GREATER>>(parts, level),
        VCmpNgtF16 | VCmpxNgtF16 => cold_test::<Half<NOT_GREATER>>(parts, level),
        VCmpNleF16 | VCmpxNleF16 => cold_test::<Half<NOT_LESS_OR_EQUAL>>(parts, level),
        VCmpNeqF16 | VCmpxNeqF16 => cold_test::<Half<NOT_EQUAL>>(parts, level),
        VCmpNltF16 | VCmpxNltF16 => cold_test::<Half<NOT_LESS>>(parts, level),
        VCmpLtF32 | VCmpxLtF32 => test::<Single<LESS>>(parts, level),
        VCmpEqF32 | VCmpxEqF32 => test::<Single<EQUAL>>(parts, level),
        VCmpLeF32 | VCmpxLeF32 => test::<Single<LESS_OR_EQUAL>>(parts, level),
        VCmpGtF32 | VCmpxGtF32 => test::<Single<GREATER>>(parts, level),
        VCmpLgF32 | VCmpxLgF32 => test::<Single<LESS_OR_GREATER>>(parts, level),
        VCmpGeF32 | VCmpxGeF32 => test::<Single<GREATER_OR_EQUAL>>(parts, level),
        VCmpOF32 | VCmpxOF32 => test::<Single<ORDERED>>(parts, level),
        VCmpUF32 | VCmpxUF32 => test::<Single<UNORDERED>>(parts, level),
        VCmpNgeF32 | VCmpxNgeF32 => test::<Single<NOT_GREATER_OR_EQUAL>>(parts, level),
        VCmpNlgF32 | VCmpxNlgF32 => test::<Single<NOT_LESS_OR_GREATER>>(parts, level),
        VCmpNgtF32 | VCmpxNgtF32 => test::<Single<NOT_GREATER>>(parts, level),
        VCmpNleF32 | VCmpxNleF32 => test::<Single<NOT_LESS_OR_EQUAL>>(parts, level),
        VCmpNeqF32 | VCmpxNeqF32 => test::<Single<NOT_EQUAL>>(parts, level),
        VCmpNltF32 | VCmpxNltF32 => test::<Single<NOT_LESS>>(parts, level),
        VCmpLtF64 | VCmpxLtF64 => cold_test::<Double<LESS>>(parts, level),
        VCmpEqF64 | VCmpxEqF64 => cold_test::<Double<EQUAL>>(parts, level),
        VCmpLeF64 | VCmpxLeF64 => cold_test::<Double<LESS_OR_EQUAL>>(parts, level),
        VCmpGtF64 | VCmpxGtF64 => cold_test::<Double<GREATER>>(parts, level),
        VCmpLgF64 | VCmpxLgF64 => cold_test::<Double<LESS_OR_GREATER>>(parts, level),
        VCmpGeF64 | VCmpxGeF64 => cold_test::<Double<GREATER_OR_EQUAL>>(parts, level),
        VCmpOF64 | VCmpxOF64 => cold_test::<Double<ORDERED>>(parts, level),
        VCmpUF64 | VCmpxUF64 => cold_test::<Double<UNORDERED>>(parts, level),
        VCmpNgeF64 | VCmpxNgeF64 => cold_test::<Double<NOT_GREATER_OR_EQUAL>>(parts, level),
        VCmpNlgF64 | VCmpxNlgF64 => cold_test::<Double<NOT_LESS_OR_GREATER>>(parts, level),
        VCmpNgtF64 | VCmpxNgtF64 => cold_test::<Double<NOT_GREATER>>(parts, level),
        VCmpNleF64 | VCmpxNleF64 => cold_test::<Double<NOT_LESS_OR_EQUAL>>(parts, level),
        VCmpNeqF64 | VCmpxNeqF64 => cold_test::<Double<NOT_EQUAL>>(parts, level),
        VCmpNltF64 | VCmpxNltF64 => cold_test::<Double<NOT_LESS>>(parts, level),
        VCmpLtI16 | VCmpxLtI16 => cold_test::<Signed16<LESS>>(parts, level),
        VCmpEqI16 | VCmpxEqI16 => cold_test::<Signed16<EQUAL>>(parts, level),
        VCmpLeI16 | VCmpxLeI16 => cold_test::<Signed16<LESS_OR_EQUAL>>(parts, level),
        VCmpGtI16 | VCmpxGtI16 => cold_test::<Signed16<GREATER>>(parts, level),
        VCmpNeI16 | VCmpxNeI16 => cold_test::<Signed16<LESS_OR_GREATER>>(parts, level),
        VCmpGeI16 | VCmpxGeI16 => cold_test::<Signed16<GREATER_OR_EQUAL>>(parts, level),
        VCmpLtU16 | VCmpxLtU16 => cold_test::<Unsigned16<LESS>>(parts, level),
        VCmpEqU16 | VCmpxEqU16 => cold_test::<Unsigned16<EQUAL>>(parts, level),
        VCmpLeU16 | VCmpxLeU16 => cold_test::<Unsigned16<LESS_OR_EQUAL>>(parts, level),
        VCmpGtU16 | VCmpxGtU16 => cold_test::<Unsigned16<GREATER>>(parts, level),
        VCmpNeU16 | VCmpxNeU16 => cold_test::<Unsigned16<LESS_OR_GREATER>>(parts, level),
        VCmpGeU16 | VCmpxGeU16 => cold_test::<Unsigned16<GREATER_OR_EQUAL>>(parts, level),
        VCmpLtI32 | VCmpxLtI32 => test::<Signed32<LESS>>(parts, level),
        VCmpEqI32 | VCmpxEqI32 => test::<Signed32<EQUAL>>(parts, level),
        VCmpLeI32 | VCmpxLeI32 => test::<Signed32<LESS_OR_EQUAL>>(parts, level),
        VCmpGtI32 | VCmpxGtI32 => test::<Signed32<GREATER>>(parts, level),
        VCmpNeI32 | VCmpxNeI32 => test::<Signed32<LESS_OR_GREATER>>(parts, level),
        VCmpGeI32 | VCmpxGeI32 => test::<Signed32<GREATER_OR_EQUAL>>(parts, level),
        VCmpLtU32 | VCmpxLtU32 => test::<Unsigned32<LESS>>(parts, level),
        VCmpEqU32 | VCmpxEqU32 => test::<Unsigned32<EQUAL>>(parts, level),
        VCmpLeU32 | VCmpxLeU32 => test::<Unsigned32<LESS_OR_EQUAL>>(parts, level),
        VCmpGtU32 | VCmpxGtU32 => test::<Unsigned32<GREATER>>(parts, level),
        VCmpNeU32 | VCmpxNeU32 => test::<Unsigned32<LESS_OR_GREATER>>(parts, level),
        VCmpGeU32 | VCmpxGeU32 => test::<Unsigned32<GREATER_OR_EQUAL>>(parts, level),
        VCmpLtI64 | VCmpxLtI64 => cold_test::<Signed64<LESS>>(parts, level),
        VCmpEqI64 | VCmpxEqI64 => cold_test::<Signed64<EQUAL>>(parts, level),
        VCmpLeI64 | VCmpxLeI64 => cold_test::<Signed64<LESS_OR_EQUAL>>(parts, level),
        VCmpGtI64 | VCmpxGtI64 => cold_test::<Signed64<GREATER>>(parts, level),
        VCmpNeI64 | VCmpxNeI64 => cold_test::<Signed64<LESS_OR_GREATER>>(parts, level),
        VCmpGeI64 | VCmpxGeI64 => cold_test::<Signed64<GREATER_OR_EQUAL>>(parts, level),
        VCmpLtU64 | VCmpxLtU64 => cold_test::<Unsigned64<LESS>>(parts, level),
        VCmpEqU64 | VCmpxEqU64 => cold_test::<Unsigned64<EQUAL>>(parts, level),
        VCmpLeU64 | VCmpxLeU64 => cold_test::<Unsigned64<LESS_OR_EQUAL>>(parts, level),
        VCmpGtU64 | VCmpxGtU64 => cold_test::<Unsigned64<GREATER>>(parts, level),
        VCmpNeU64 | VCmpxNeU64 => cold_test::<Unsigned64<LESS_OR_GREATER>>(parts, level),
        VCmpGeU64 | VCmpxGeU64 => cold_test::<Unsigned64<GREATER_OR_EQUAL>>(parts, level),
        VCmpClassF16 | VCmpxClassF16 => cold_test::<ClassHalf>(parts, level),
        VCmpClassF32 | VCmpxClassF32 => cold_test::<ClassSingle>(parts, level),
        VCmpClassF64 | VCmpxClassF64 => cold_test::<ClassDouble>(parts, level),
        _ => None,
    }
}
