//! Tables of operations.
//!
//! A row names the opcode, what one lane computes, and how the function is selected: `hot` operations have functions
//! for the common operand kinds at the vector levels, `cold` ones go through `access`. Each macro makes one unit struct
//! per row, its lane function, and the table's `bind`.

/// The function of a row.
macro_rules! function_of_class {
    (hot 1 $name:ident $parts:ident $level:ident) => {
        $crate::shader::valu::shell::hot1::<$name>($parts, $level)
    };
    (hot 2 $name:ident $parts:ident $level:ident) => {
        $crate::shader::valu::shell::hot2::<$name>($parts, $level)
    };
    (hot 3 $name:ident $parts:ident $level:ident) => {
        $crate::shader::valu::shell::hot3::<$name>($parts, $level)
    };
    (cold $count:tt $name:ident $parts:ident $level:ident) => {
        $crate::shader::valu::shell::cold::<$name>($parts, $level)
    };
    (saturating $count:tt $name:ident $parts:ident $level:ident) => {
        $crate::shader::valu::shell::saturating::<$name>($parts, $level)
    };
}

macro_rules! binder {
    ($($class:ident $count:tt $name:ident)*) => {
        /// The function for an opcode of this table.
        pub(in crate::shader::valu) fn bind(
            opcode: zrt_isa::Opcode,
            parts: &$crate::shader::valu::operand::Parts,
            level: $crate::simd::Level,
        ) -> Option<$crate::simd::Executor> {
            match opcode {
                $(zrt_isa::Opcode::$name => function_of_class!($class $count $name parts level),)*
                _ => None,
            }
        }
    };
}

/// One row as a [`Lane`](super::shell::Lane): mode fields, result kind, the usual value, the exact value.
macro_rules! lane {
    ($name:ident $count:tt $mode:ident $result:ident
        |$a:pat_param, $b:pat_param, $c:pat_param| $value:expr,
        |$mode_name:pat_param, $x:pat_param, $y:pat_param, $z:pat_param| $exact:expr) => {
        pub(crate) struct $name;
        impl $crate::shader::valu::shell::Lane for $name {
            const SOURCES: usize = $count;
            const MODE: $crate::shader::valu::shell::ModeFields =
                $crate::shader::valu::shell::ModeFields::$mode;
            const RESULT: $crate::shader::valu::shell::ResultKind =
                $crate::shader::valu::shell::ResultKind::$result;
            #[inline(always)]
            fn compute($a: u32, $b: u32, $c: u32) -> u32 {
                $value
            }
            fn exact($x: u32, $y: u32, $z: u32, $mode_name: $crate::shader::float::Mode) -> u32 {
                $exact
            }
        }
    };
}

/// `class count Name |a, b, c| value;` on bits.
macro_rules! bits_operations {
    ($($class:ident $count:tt $name:ident |$a:pat_param, $b:pat_param, $c:pat_param| $value:expr;)*) => {
        $(lane! { $name $count NONE Bits |$a, $b, $c| $value,
            |_, x, y, z| <$name as $crate::shader::valu::shell::Lane>::compute(x, y, z) })*
        binder! { $($class $count $name)* }
    };
}

/// `class count Name |x, y, z| value of f32, |environment, a, b, c| exact value of u64;`
macro_rules! single_arithmetic {
    ($($class:ident $count:tt $name:ident
        |$a:pat_param, $b:pat_param, $c:pat_param| $value:expr,
        |$m:pat_param, $x:pat_param, $y:pat_param, $z:pat_param| $exact:expr;)*) => {
        pub(crate) mod arithmetic {
            use super::*;
            $(lane! { $name $count SINGLE Single
                |a, b, c| {
                    let ($a, $b, $c) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
                    canonical($value)
                },
                |mode, x, y, z| {
                    let ($m, $x, $y, $z) = (mode.single(), x as u64, y as u64, z as u64);
                    let exact: u64 = $exact;
                    exact as u32
                } })*
            binder! { $($class $count $name)* }
        }
    };
}

/// `class count Name |a, b, c| value of bits;`: a selection among f32 sources, which are flushed according to MODE. The
/// result is not: a denormal source that is kept may be selected, whatever MODE says of results (RDNA4 instruction set
/// guide, V_MIN_NUM_F32 and its like). That medians, v_div_fixup, v_cubesc and v_cubetc do the same is a **model**.
macro_rules! single_selection {
    ($($class:ident $count:tt $name:ident |$a:pat_param, $b:pat_param, $c:pat_param| $value:expr;)*) => {
        pub(crate) mod selection {
            use super::*;
            $(lane! { $name $count SINGLE Single |$a, $b, $c| $value,
                |mode, x, y, z| {
                    let m = mode.single();
                    let flushed = |bits: u32| SINGLE.flush_source(bits as u64, m) as u32;
                    <$name as Lane>::compute(flushed(x), flushed(y), flushed(z))
                } })*
            binder! { $($class $count $name)* }
        }
    };
}

/// `class count Kind Name |a, b, c| value of bits, |environment, a, b, c| exact value of bits;` of f32.
macro_rules! single_mixed {
    ($($class:ident $count:tt $result:ident $name:ident
        |$a:pat_param, $b:pat_param, $c:pat_param| $value:expr,
        |$m:pat_param, $x:pat_param, $y:pat_param, $z:pat_param| $exact:expr;)*) => {
        pub(crate) mod mixed {
            use super::*;
            $(lane! { $name $count SINGLE $result |$a, $b, $c| $value,
                |mode, $x, $y, $z| {
                    let $m = mode.single();
                    $exact
                } })*
            binder! { $($class $count $name)* }
        }
    };
}

/// `class count Name |a, b, c| value of bits, |environment, a, b, c| exact value of u64;` of f16.
macro_rules! half_arithmetic {
    ($($class:ident $count:tt $name:ident
        |$a:pat_param, $b:pat_param, $c:pat_param| $value:expr,
        |$m:pat_param, $x:pat_param, $y:pat_param, $z:pat_param| $exact:expr;)*) => {
        pub(crate) mod arithmetic {
            use super::*;
            $(lane! { $name $count HALF Half |$a, $b, $c| $value,
                |mode, x, y, z| {
                    let ($m, $x, $y) = (mode.half(), x as u64, y as u64);
                    let $z = z as u64;
                    let exact: u64 = $exact;
                    exact as u32
                } })*
            binder! { $($class $count $name)* }
        }
    };
}

/// `class count Kind Name |a, b, c| value of bits;`: a selection among f16 sources, which are flushed according to
/// MODE; the result is not, as for f32.
macro_rules! half_selection {
    ($($class:ident $count:tt $result:ident $name:ident
        |$a:pat_param, $b:pat_param, $c:pat_param| $value:expr;)*) => {
        pub(crate) mod selection {
            use super::*;
            $(lane! { $name $count HALF $result |$a, $b, $c| $value,
                |mode, x, y, z| {
                    let m = mode.half();
                    let flushed = |bits: u32| HALF.flush_source(bits as u64, m) as u32;
                    <$name as Lane>::compute(flushed(x), flushed(y), flushed(z))
                } })*
            binder! { $($class $count $name)* }
        }
    };
}

/// `class count Mode Kind Name |a, b, c| value of bits, |mode, a, b, c| exact value of bits;`
macro_rules! conversions {
    ($($class:ident $count:tt $mode:ident $result:ident $name:ident
        |$a:pat_param, $b:pat_param, $c:pat_param| $value:expr,
        |$m:pat_param, $x:pat_param, $y:pat_param, $z:pat_param| $exact:expr;)*) => {
        $(lane! { $name $count $mode $result |$a, $b, $c| $value, |$m, $x, $y, $z| $exact })*
        binder! { $($class $count $name)* }
    };
}

/// `Name [wide?, ...] wide? Mode Kind |a, b, c| value of u64, |mode, a, b, c| exact value of u64;`
macro_rules! wide_operations {
    ($($name:ident [$($wide:literal),*] $wide_result:literal $mode:ident $result:ident
        |$a:pat_param, $b:pat_param, $c:pat_param| $value:expr,
        |$m:pat_param, $x:pat_param, $y:pat_param, $z:pat_param| $exact:expr;)*) => {
        $(pub(crate) struct $name;
        impl $crate::shader::valu::shell::WideLane for $name {
            const SOURCES: &'static [bool] = &[$($wide),*];
            const WIDE_RESULT: bool = $wide_result;
            const MODE: $crate::shader::valu::shell::ModeFields = $crate::shader::valu::shell::ModeFields::$mode;
            const RESULT: $crate::shader::valu::shell::ResultKind = $crate::shader::valu::shell::ResultKind::$result;
            #[inline(always)]
            fn compute($a: u64, $b: u64, $c: u64) -> u64 {
                $value
            }
            fn exact($x: u64, $y: u64, $z: u64, $m: $crate::shader::float::Mode) -> u64 {
                $exact
            }
        })*
        /// The function for an opcode of this table.
        pub(in crate::shader::valu) fn bind(
            opcode: zrt_isa::Opcode,
            parts: &$crate::shader::valu::operand::Parts,
            level: $crate::simd::Level,
        ) -> Option<$crate::simd::Executor> {
            match opcode {
                $(zrt_isa::Opcode::$name => $crate::shader::valu::shell::wide::<$name>(parts, level),)*
                _ => None,
            }
        }
    };
}
