//! The types that values of programs have.
//!
//! Contract: constant; names are those of `support/differential.h`.

/// Types of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)]
pub enum Type {
    U8,
    U16,
    I32,
    U32,
    I64,
    U64,
    F16,
    F32,
    F64,
}

impl Type {
    /// Every type.
    pub const ALL: [Type; 9] =
        [Type::U8, Type::U16, Type::I32, Type::U32, Type::I64, Type::U64, Type::F16, Type::F32, Type::F64];

    /// Its name in C.
    pub const fn name(self) -> &'static str {
        match self {
            Type::U8 => "u8",
            Type::U16 => "u16",
            Type::I32 => "i32",
            Type::U32 => "u32",
            Type::I64 => "i64",
            Type::U64 => "u64",
            Type::F16 => "f16",
            Type::F32 => "f32",
            Type::F64 => "f64",
        }
    }

    /// Bits of a value.
    pub const fn width_bits(self) -> u32 {
        match self {
            Type::U8 => 8,
            Type::U16 | Type::F16 => 16,
            Type::I32 | Type::U32 | Type::F32 => 32,
            Type::I64 | Type::U64 | Type::F64 => 64,
        }
    }
}
