//! Vector ALU: VOP1, VOP2, VOPC, VOP3, VOP3SD, VOP3P and VOPD, with DPP, for 32 lanes (`wave64` runs them twice).
//!
//! Contract: [`translate`] resolves everything that does not change between executions. An unknown instruction, or
//! a modifier that has no meaning for the operation, returns `None`, and the caller reports the opcode. Results are
//! bit-identical at every level; those of float matrix operations and dot products follow a model (`matrix`,
//! `dot`). Cost: 3 to 6 ns for a common operation without modifiers at AVX-512; 10 to 20 ns in general.
//!
//! Overview: `operand` resolves operands, `access` reads and writes them in full generality, `shell` turns lane
//! functions into register functions, `macros` makes the tables; the other files are the tables.

#[macro_use]
mod macros;

pub(crate) mod access;
pub(crate) mod compare;
pub(crate) mod convert;
mod difference;
mod division;
mod dot;
mod double;
mod dual;
pub(crate) mod half;
mod integer;
pub(crate) mod matrix;
pub(crate) mod operand;
mod rare;
pub(crate) mod shell;
pub(crate) mod single;
mod special;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use zrt_isa::{Encoding, Instruction, Opcode};

use crate::shader::float::approximate;
use crate::shader::lanes;
use crate::shader::micro::MicroOp;
use crate::shader::wave::VCC_LO;
use crate::simd::{Executor, Level};
use operand::Parts;
use shell::{Approximation, ResultKind, packed};

/// The micro operation of a vector ALU instruction. The caller fills `code_dword` and `dword_count`.
pub fn translate(instruction: &Instruction, level: Level) -> Option<MicroOp> {
    use Encoding::*;
    match instruction.encoding {
        Vop1 | Vop2 | Vopc | Vop3 | Vop3sd | Vop3p => {}
        Vopd => return dual::translate(instruction, level).map(|(parts, executor)| parts.finish(executor)),
        _ => return None,
    }
    let opcode = instruction.opcode;
    let mut parts = Parts::new(instruction);
    match opcode {
        Opcode::VFmacF32 | Opcode::VFmacF16 => parts.accumulate(),
        Opcode::VPkFmacF16 => {
            parts.accumulate();
            // VOP2 has neither op_sel nor op_sel_hi: low halves produce the low result, high halves the high one.
            parts.modifiers.0 |= 0x7 << 10;
        }
        Opcode::VDivFmasF32 | Opcode::VDivFmasF64 => parts.destination2 = VCC_LO,
        _ => {}
    }
    let executor =
        matrix::bind(instruction, &mut parts, level).or_else(|| function(opcode, &mut parts, level))?;
    Some(parts.finish(executor))
}

fn function(opcode: Opcode, parts: &mut Parts, level: Level) -> Option<Executor> {
    // Some operations have a second function for clamped results.
    let saturated =
        if parts.modifiers.clamp() { integer::saturating::bind(opcode, parts, level) } else { None };
    saturated.or_else(|| TABLES.iter().find_map(|(_, bind)| bind(opcode, parts, level)))
}

/// A table of lane functions: returns an operation's function, or `None` for operations of other tables.
type Table = fn(Opcode, &mut Parts, Level) -> Option<Executor>;

/// All tables with their names. An operation is in only one (`shader::tests::binding`), so their order does not
/// matter.
const TABLES: &[(&str, Table)] = &[
    ("lanes", lanes::bind),
    ("division", |opcode, _, level| division::bind(opcode, level)),
    ("special", |opcode, parts, level| special::bind(opcode, parts, level)),
    ("integer", |opcode, parts, level| integer::bind(opcode, parts, level)),
    ("single::arithmetic", |opcode, parts, level| single::arithmetic::bind(opcode, parts, level)),
    ("single::selection", |opcode, parts, level| single::selection::bind(opcode, parts, level)),
    ("single::mixed", |opcode, parts, level| single::mixed::bind(opcode, parts, level)),
    ("convert", |opcode, parts, level| convert::bind(opcode, parts, level)),
    ("convert::from_bytes", |opcode, _, level| convert::bind_from_bytes(opcode, level)),
    ("compare", |opcode, parts, level| compare::bind(opcode, parts, level)),
    ("half::arithmetic", |opcode, parts, level| half::arithmetic::bind(opcode, parts, level)),
    ("half::selection", |opcode, parts, level| half::selection::bind(opcode, parts, level)),
    ("double", |opcode, parts, level| double::bind(opcode, parts, level)),
    ("packed", |opcode, parts, level| bind_packed(opcode, parts, level)),
    ("approximate", |opcode, parts, level| bind_approximate(opcode, parts, level)),
    ("dot", |opcode, parts, level| dot::bind(opcode, parts, level)),
    ("difference", |opcode, parts, level| difference::bind(opcode, parts, level)),
    ("rare", |opcode, parts, level| rare::bind(opcode, parts, level)),
    ("rare::stochastic", |opcode, _, level| rare::bind_stochastic(opcode, level)),
];

/// The tables that have the instruction's operation; for matrix shapes, one name per row.
#[cfg(test)]
pub(crate) fn tables_with(instruction: &Instruction) -> Vec<&'static str> {
    let opcode = instruction.opcode;
    let has = |bind: &Table| bind(opcode, &mut Parts::new(instruction), Level::BASELINE).is_some();
    let tables = TABLES.iter().filter(|(_, bind)| has(bind)).map(|(name, _)| *name);
    tables.chain(matrix::rows_of(opcode).map(|_| "matrix")).collect()
}

/// Packed forms of the 16-bit operations.
fn bind_packed(opcode: Opcode, parts: &Parts, level: Level) -> Option<Executor> {
    use Opcode::*;
    use half::{arithmetic, selection};
    use integer::saturating;
    if parts.modifiers.clamp() {
        let saturated = match opcode {
            VPkMadI16 => Some(shell::saturating_halves::<saturating::VMadI16>(level)),
            VPkMadU16 => Some(shell::saturating_halves::<saturating::VMadU16>(level)),
            VPkAddI16 => Some(shell::saturating_halves::<saturating::VAddNcI16>(level)),
            VPkAddU16 => Some(shell::saturating_halves::<saturating::VAddNcU16>(level)),
            VPkSubI16 => Some(shell::saturating_halves::<saturating::VSubNcI16>(level)),
            VPkSubU16 => Some(shell::saturating_halves::<saturating::VSubNcU16>(level)),
            _ => None,
        };
        if saturated.is_some() {
            return saturated;
        }
    }
    match opcode {
        VPkMadI16 => packed::<integer::VMadI16>(parts, level),
        VPkMadU16 => packed::<integer::VMadU16>(parts, level),
        VPkMulLoU16 => packed::<integer::VMulLoU16>(parts, level),
        VPkAddI16 => packed::<integer::VAddNcI16>(parts, level),
        VPkAddU16 => packed::<integer::VAddNcU16>(parts, level),
        VPkSubI16 => packed::<integer::VSubNcI16>(parts, level),
        VPkSubU16 => packed::<integer::VSubNcU16>(parts, level),
        VPkLshlrevB16 => packed::<integer::VLshlrevB16>(parts, level),
        VPkLshrrevB16 => packed::<integer::VLshrrevB16>(parts, level),
        VPkAshrrevI16 => packed::<integer::VAshrrevI16>(parts, level),
        VPkMaxI16 => packed::<integer::VMaxI16>(parts, level),
        VPkMinI16 => packed::<integer::VMinI16>(parts, level),
        VPkMaxU16 => packed::<integer::VMaxU16>(parts, level),
        VPkMinU16 => packed::<integer::VMinU16>(parts, level),
        VPkFmaF16 | VPkFmacF16 => packed::<arithmetic::VFmaF16>(parts, level),
        VPkAddF16 => packed::<arithmetic::VAddF16>(parts, level),
        VPkMulF16 => packed::<arithmetic::VMulF16>(parts, level),
        VPkMinNumF16 => packed::<selection::VMinNumF16>(parts, level),
        VPkMaxNumF16 => packed::<selection::VMaxNumF16>(parts, level),
        VPkMinimumF16 => packed::<selection::VMinimumF16>(parts, level),
        VPkMaximumF16 => packed::<selection::VMaximumF16>(parts, level),
        _ => None,
    }
}

macro_rules! approximations {
    (@ lane $function:path, $x:ident) => {{
        let mut result = $x;
        for value in &mut result {
            *value = $function(*value);
        }
        result
    }};
    (@ row $function:path, $x:ident) => {
        $function($x)
    };
    ($($name:ident $result:ident $way:ident $function:path, [$($vector:ident)*] [$($scalar:ident)*];)*) => {
        $(struct $name;
        impl Approximation for $name {
            const RESULT: ResultKind = ResultKind::$result;
            #[inline(always)]
            fn compute<const N: usize>(x: [u32; N]) -> [u32; N] {
                approximations!(@ $way $function, x)
            }
        })*

        fn bind_approximate(opcode: Opcode, parts: &Parts, level: Level) -> Option<Executor> {
            use Opcode::*;
            match opcode {
                $($($vector => shell::vector_approximation::<$name>(parts, level),)*
                $($scalar => shell::scalar_approximation::<$name>(parts, level),)*)*
                _ => None,
            }
        }
    };
}

approximations! {
    Reciprocal Single lane approximate::reciprocal, [VRcpF32 VRcpIflagF32] [VSRcpF32];
    SquareRoot Single lane approximate::square_root, [VSqrtF32] [VSSqrtF32];
    ReciprocalSquareRoot Single row approximate::reciprocal_square_root, [VRsqF32] [VSRsqF32];
    Exponential Single row approximate::exponential, [VExpF32] [VSExpF32];
    Logarithm Single row approximate::logarithm, [VLogF32] [VSLogF32];
    Sine Single lane approximate::sine, [VSinF32] [];
    Cosine Single lane approximate::cosine, [VCosF32] [];
    HalfReciprocal Half lane approximate::half::reciprocal, [VRcpF16] [VSRcpF16];
    HalfSquareRoot Half lane approximate::half::square_root, [VSqrtF16] [VSSqrtF16];
    HalfReciprocalSquareRoot Half lane approximate::half::reciprocal_square_root, [VRsqF16] [VSRsqF16];
    HalfExponential Half lane approximate::half::exponential, [VExpF16] [VSExpF16];
    HalfLogarithm Half lane approximate::half::logarithm, [VLogF16] [VSLogF16];
    HalfSine Half lane approximate::half::sine, [VSinF16] [];
    HalfCosine Half lane approximate::half::cosine, [VCosF16] [];
}
