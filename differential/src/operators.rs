//! The operations of `support/differential.h` with their types.
//!
//! Contract: constant once initialised; every name is a function of the header that is defined for all operands.

use crate::types::Type;
use std::sync::LazyLock;

/// One function of the header.
#[derive(Debug, PartialEq, Eq)]
pub struct Operator {
    /// Name of the function.
    pub name: String,
    /// Type of its value.
    pub result: Type,
    /// Types of its operands.
    pub operands: Vec<Type>,
}

use Type::{F16, F32, F64, I32, I64, U8, U16, U32, U64};

/// Integer types.
const INTEGERS: [Type; 6] = [U8, U16, I32, U32, I64, U64];
/// Floating-point types.
const FLOATS: [Type; 3] = [F16, F32, F64];
/// Binary operations that the header defines for each integer type.
const INTEGER_BINARY: &[&str] = &["add", "sub", "mul", "and", "or", "xor", "min", "max", "div", "rem"];
/// Saturating operations, for types up to 32 bits only: clang 22 takes the carry of a saturating 64-bit addition
/// from a sum that also contains the last addition of a 64-bit product (README, "Errors of the compiler").
const SATURATING: &[&str] = &["addsat", "subsat"];
/// Binary operations for each floating-point type.
const FLOAT_BINARY: &[&str] = &["add", "sub", "mul", "div", "min", "max", "copysign"];
const FLOAT_UNARY: &[&str] = &["neg", "abs", "sqrt", "floor", "ceil", "trunc", "rint"];
const FLOAT_COMPARE: &[&str] = &["eq", "lt", "le", "nge", "unordered"];
/// Single functions: stem, result (which ends the name), operands.
const SINGLE: &[(&str, Type, &[Type])] = &[
    ("mulhi", U32, &[U32, U32]),
    ("mulhi", I32, &[I32, I32]),
    ("mulhi", U64, &[U64, U64]),
    ("wide", U64, &[U32, U32, U64]),
    ("wide", I64, &[I32, I32, I64]),
    ("mul24", U32, &[U32, U32, U32]),
    ("mul24", I32, &[I32, I32, I32]),
    ("add3", U32, &[U32, U32, U32]),
    ("lshladd", U32, &[U32, U32, U32]),
    ("addlshl", U32, &[U32, U32, U32]),
    ("lshlor", U32, &[U32, U32, U32]),
    ("xor3", U32, &[U32, U32, U32]),
    ("or3", U32, &[U32, U32, U32]),
    ("xorzadd", U32, &[U32, U32, U32]),
    ("median", I32, &[I32, I32, I32]),
    ("median", U32, &[U32, U32, U32]),
    ("max3", I32, &[I32, I32, I32]),
    ("min3", U32, &[U32, U32, U32]),
    ("abs", I32, &[I32]),
    ("abs", I64, &[I64]),
    ("extract", U32, &[U32, U32, U32]),
    ("extract", I32, &[I32, U32, U32]),
    ("carry", U32, &[U32, U32, U32]),
    ("pairadd", U32, &[U32, U32]),
    ("pairsub", U32, &[U32, U32]),
    ("pairmul", U32, &[U32, U32]),
    ("pairshl", U32, &[U32, U32]),
    ("pairshr", U32, &[U32, U32]),
    ("pairsar", U32, &[U32, U32]),
    ("pairmin", U32, &[U32, U32]),
    ("pairmax", U32, &[U32, U32]),
    ("pairaddsat", U32, &[U32, U32]),
    ("pairsubsat", U32, &[U32, U32]),
    ("pairaddf", U32, &[U32, U32]),
    ("pairmulf", U32, &[U32, U32]),
    ("permute", U32, &[U32, U32, U32]),
    ("sad", U32, &[U32, U32, U32]),
    ("sad16", U32, &[U32, U32, U32]),
    ("alignbit", U32, &[U32, U32, U32]),
    ("alignbyte", U32, &[U32, U32, U32]),
    ("lerp", U32, &[U32, U32, U32]),
    ("dot4", U32, &[U32, U32, U32]),
    ("dot8", U32, &[U32, U32, U32]),
    ("dot4", I32, &[I32, I32, I32]),
    ("dot4_mixed", I32, &[I32, I32, I32]),
    ("fma", F32, &[F32, F32, F32]),
    ("fma", F64, &[F64, F64, F64]),
    ("ldexp", F32, &[F32, I32]),
    ("ldexp", F64, &[F64, I32]),
    ("make", F16, &[U16]),
    ("make", F32, &[U32]),
    ("make", F64, &[U64]),
    ("signed8", I32, &[U8]),
    ("signed16", I32, &[U16]),
    ("padded", U64, &[U32, U64, U32]),
    ("triple", U32, &[U32, U32, U32]),
    ("deep", U32, &[U32, U32]),
];
/// Functions named `to_RESULT_from_OPERAND` beyond those of [`INTEGERS`] and of f32 and f64 from an integer.
const CONVERSIONS: &[(Type, Type)] = &[
    (F16, U8),
    (F16, U16),
    (F16, F32),
    (F32, F16),
    (F32, F64),
    (F64, F32),
    (U16, F16),
    (I32, F16),
    (I32, F32),
    (U32, F32),
    (I64, F32),
    (U64, F32),
    (U8, F32),
    (I32, F64),
    (U32, F64),
    (I64, F64),
    (U64, F64),
];

/// Every operation.
pub static OPERATORS: LazyLock<Vec<Operator>> = LazyLock::new(all);

fn all() -> Vec<Operator> {
    let mut list = Vec::new();
    let mut put = |name: String, result: Type, operands: &[Type]| {
        list.push(Operator { name, result, operands: operands.into() });
    };
    let named = |stem: &str, kind: Type| format!("{stem}_{}", kind.name());
    for kind in INTEGERS {
        INTEGER_BINARY.iter().for_each(|stem| put(named(stem, kind), kind, &[kind, kind]));
        if kind.width_bits() <= 32 {
            SATURATING.iter().for_each(|stem| put(named(stem, kind), kind, &[kind, kind]));
        }
        ["not", "neg"].iter().for_each(|stem| put(named(stem, kind), kind, &[kind]));
        ["shl", "shr"].iter().for_each(|stem| put(named(stem, kind), kind, &[kind, U32]));
        ["eq", "lt", "le"].iter().for_each(|stem| put(named(stem, kind), U32, &[kind, kind]));
        put(named("select", kind), kind, &[U32, kind, kind]);
    }
    for kind in [U16, U32, U64] {
        let unary = ["clz", "ctz", "popcount", "bswap", "reverse"];
        unary.iter().for_each(|stem| put(named(stem, kind), kind, &[kind]));
        put(named("rotate", kind), kind, &[kind, U32]);
        put(named("insert", kind), kind, &[kind, kind, kind]);
    }
    for (kind, bits) in FLOATS.into_iter().zip([U16, U32, U64]) {
        FLOAT_BINARY.iter().for_each(|stem| put(named(stem, kind), kind, &[kind, kind]));
        FLOAT_UNARY.iter().for_each(|stem| put(named(stem, kind), kind, &[kind]));
        FLOAT_COMPARE.iter().for_each(|stem| put(named(stem, kind), U32, &[kind, kind]));
        put(named("select", kind), kind, &[U32, kind, kind]);
        put(named("bits", kind), bits, &[kind]);
    }
    for (stem, result, operands) in SINGLE {
        put(named(stem, *result), *result, operands);
    }
    let mut convert = |result: Type, operand: Type| {
        put(format!("to_{}_from_{}", result.name(), operand.name()), result, &[operand]);
    };
    for operand in INTEGERS {
        for result in INTEGERS.into_iter().chain([F32, F64]).filter(|result| *result != operand) {
            convert(result, operand);
        }
    }
    CONVERSIONS.iter().for_each(|(result, operand)| convert(*result, *operand));
    list
}

/// The operations that return a type.
pub fn operators_of(result: Type) -> &'static [&'static Operator] {
    static BY_RESULT: LazyLock<Vec<Vec<&'static Operator>>> = LazyLock::new(|| {
        Type::ALL.map(|kind| OPERATORS.iter().filter(|operator| operator.result == kind).collect()).into()
    });
    &BY_RESULT[result as usize]
}

/// Exchanges between lanes: `device_…` and `host_…` of the header.
pub const CROSSES: &[&str] = &[
    "readlane",
    "readlane_at",
    "readfirstlane",
    "bpermute",
    "permute",
    "swizzle",
    "swizzle_quad",
    "permlane16",
    "permlanex16",
    "permlane16_var",
    "permlanex16_var",
    "quad_perm",
    "row_shl",
    "row_shl_zero",
    "row_shr",
    "row_ror",
    "row_mirror",
    "row_half_mirror",
    "row_share",
    "row_xmask",
    "dpp8",
    "ballot",
    "mbcnt",
];

/// What waves and workgroups do together through atomics: macros of the header.
pub const MEETINGS: &[&str] = &["HANDOVER", "LANES", "LAST", "LOCK", "TICKET"];
/// Ways to order those atomics, and their scopes. A [`MEETINGS`] macro within one group may use workgroup scope.
pub const ORDERS: &[&str] =
    &["direct_device", "fence_device", "swap_device", "direct_system", "fence_system", "swap_system"];
/// The same with workgroup scope.
pub const GROUP_ORDERS: &[&str] = &["direct_workgroup", "fence_workgroup", "swap_workgroup"];
/// What the waves of a workgroup do together through barriers, and each wave as a unit: macros of the header.
pub const GATHERINGS: &[&str] = &[
    "DOUBLE_BUFFER",
    "SOME_STORE",
    "REDUCE",
    "EITHER_STORE",
    "EITHER_ATOMIC",
    "RECORDS",
    "TRIPLES",
    "MATRIX",
];

/// Global atomics, by type.
pub const ATOMICS: &[&str] = &["add", "sub", "and", "or", "xor", "min", "max"];
/// Types that `min` and `max` support, and types of the others.
pub const ATOMIC_TYPES: [Type; 4] = [U32, U64, I32, I64];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::HEADER;
    use std::collections::BTreeSet;

    #[test]
    fn an_operation_is_found_by_its_result() {
        let mut found = 0;
        for kind in Type::ALL {
            let of_kind = operators_of(kind);
            assert!(
                !of_kind.is_empty() && of_kind.iter().all(|operator| operator.result == kind),
                "{kind:?}"
            );
            found += of_kind.len();
        }
        assert_eq!(found, OPERATORS.len());
        assert_eq!(OPERATORS.iter().map(|operator| &operator.name).collect::<BTreeSet<_>>().len(), found);
    }

    /// All integers into one another and into f32 and f64; floats as the header has them.
    #[test]
    fn a_conversion_is_between_two_types() {
        let conversions: BTreeSet<(Type, Type)> = OPERATORS
            .iter()
            .filter(|operator| operator.name.starts_with("to_"))
            .map(|operator| (operator.result, operator.operands[0]))
            .collect();
        for operand in INTEGERS {
            for result in INTEGERS {
                assert_eq!(
                    conversions.contains(&(result, operand)),
                    result != operand,
                    "{result:?} {operand:?}"
                );
            }
            assert!([F32, F64].iter().all(|result| conversions.contains(&(*result, operand))));
        }
        assert_eq!(conversions.len(), 6 * 7 + CONVERSIONS.len());
        assert!(conversions.iter().all(|(result, operand)| result != operand));
    }

    #[test]
    fn wide_integers_do_not_saturate() {
        let saturating: BTreeSet<&str> = OPERATORS
            .iter()
            .filter(|operator| operator.name.starts_with("addsat") || operator.name.starts_with("subsat"))
            .map(|operator| operator.name.as_str())
            .collect();
        let expected =
            ["u8", "u16", "i32", "u32"].map(|kind| [format!("addsat_{kind}"), format!("subsat_{kind}")]);
        assert_eq!(saturating, expected.iter().flatten().map(String::as_str).collect());
    }

    /// Of those that the header does not make by macros of a type.
    #[test]
    fn single_operations_are_functions_of_the_header_with_these_types() {
        let mut found = 0;
        for (stem, result, operands) in SINGLE {
            let start = format!("{} {stem}_{}(", result.name(), result.name());
            let Some((_, rest)) = HEADER.split_once(&start) else { continue };
            let parameters = rest.split_once(')').unwrap().0.split(',');
            let types: Vec<&str> = parameters.filter_map(|one| one.split_whitespace().next()).collect();
            let expected: Vec<&str> = operands.iter().map(|kind| kind.name()).collect();
            assert_eq!(types, expected, "{start}");
            found += 1;
        }
        assert!(found > SINGLE.len() / 2, "{found}");
    }
}
