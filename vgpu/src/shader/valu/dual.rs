//! VOPD: two operations in one instruction.
//!
//! Contract: both halves read their sources before either writes (instruction set reference §6).

use zrt_isa::{Instruction, Opcode, Operand};

use super::access::store;
use super::operand::{Packed, Parts, destination, source};
use super::shell::{Lane, ModeFields};
use super::single::canonical;
use super::{integer, single};
use crate::shader::float::Mode;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::wave::{LANES, Row, VCC_LO, Wave};
use crate::simd::{Executor, Level, Operation, blend, splat};

/// What one half computes.
const FMA: u32 = 0;
const MULTIPLY: u32 = 1;
const ADD: u32 = 2;
const SUBTRACT: u32 = 3;
const SUBTRACT_REVERSED: u32 = 4;
const MULTIPLY_DX9: u32 = 5;
const MOVE: u32 = 6;
const SELECT: u32 = 7;
const MAXIMUM: u32 = 8;
const MINIMUM: u32 = 9;
const ADD_INTEGER: u32 = 10;
const SHIFT_LEFT: u32 = 11;
const AND: u32 = 12;

/// Positions of the second and third operand: vsrc1 and the destination, vsrc1 and the literal, the literal and
/// vsrc1.
const FORM_ACCUMULATE: u32 = 0;
const FORM_LITERAL_ADDED: u32 = 1;
const FORM_LITERAL_MULTIPLIED: u32 = 2;

/// One half in 15 bits of [`MicroOp::modifiers`]: kind 3:0, form 5:4, vsrc1 13:6. X is at bit 0, Y at bit 16. The
/// two sources 0 are `sources[0]` and `sources[1]`; the literal of fmaak and fmamk is `immediate2`.
fn encode_half(opcode: Opcode, sources: &[Operand; 3]) -> Option<(u32, Option<u32>)> {
    use Opcode::*;
    let kind = match opcode {
        VFmacF32 | VFmaakF32 | VFmamkF32 => FMA,
        VMulF32 => MULTIPLY,
        VAddF32 => ADD,
        VSubF32 => SUBTRACT,
        VSubrevF32 => SUBTRACT_REVERSED,
        VMulDx9ZeroF32 => MULTIPLY_DX9,
        VMovB32 => MOVE,
        VCndmaskB32 => SELECT,
        VMaxNumF32 => MAXIMUM,
        VMinNumF32 => MINIMUM,
        VAddNcU32 => ADD_INTEGER,
        VLshlrevB32 => SHIFT_LEFT,
        VAndB32 => AND,
        _ => return None,
    };
    let (form, vector, literal) = match opcode {
        VFmaakF32 => (FORM_LITERAL_ADDED, sources[1], Some(sources[2])),
        VFmamkF32 => (FORM_LITERAL_MULTIPLIED, sources[2], Some(sources[1])),
        _ => (FORM_ACCUMULATE, sources[1], None),
    };
    let register = match vector {
        Operand::Vector(register) => register as u32,
        // v_dual_mov has no vsrc1.
        _ => 0,
    };
    let literal = match literal {
        Some(Operand::Literal(value)) => Some(value),
        Some(_) => return None,
        None => None,
    };
    Some((kind | form << 4 | register << 6, literal))
}

/// The parts and the function of a VOPD instruction; `None` if a half is not executed.
pub(super) fn translate(instruction: &Instruction, level: Level) -> Option<(Parts, Executor)> {
    let dual = instruction.dual?;
    let (x, literal_x) = encode_half(instruction.opcode, &instruction.sources)?;
    let (y, literal_y) = encode_half(dual.opcode, &dual.sources)?;
    let type_of = |opcode: Opcode| opcode.operands().sources[0].data;
    let (source_x, _) = source(instruction.sources[0], type_of(instruction.opcode));
    let (source_y, _) = source(dual.sources[0], type_of(dual.opcode));
    let parts = Parts {
        destination: destination(instruction.destination),
        destination2: destination(dual.destination),
        sources: [source_x, source_y, Source::Constant(0)],
        wide: [0; 3],
        modifiers: Packed(x | y << 16),
        immediate: 0,
        // An instruction has one literal; both halves share it.
        immediate2: literal_x.or(literal_y).unwrap_or(0),
    };
    if parts.reads_special() {
        return None;
    }
    let accumulates = |code: u32| code & 15 == FMA && code >> 4 & 3 == FORM_ACCUMULATE;
    let vectors = matches!(parts.sources[..2], [Source::Vector(_), Source::Vector(_)]);
    let executor = if vectors && accumulates(x) && accumulates(y) {
        level.bind::<DualAccumulate>()
    } else {
        level.bind::<Dual>()
    };
    Some((parts, executor))
}

/// Two `fmac` of vector registers: the pair typical of sums of products. The results equal those of [`Dual`], but
/// the decision is made at decode time.
struct DualAccumulate;
impl Operation for DualAccumulate {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let (Source::Vector(first_x), Source::Vector(first_y)) = (op.sources[0], op.sources[1]) else {
            return execute_exactly(wave, op);
        };
        if ModeFields::SINGLE.deviates(wave.mode) {
            return execute_exactly(wave, op);
        }
        let x = accumulate(wave, first_x, (op.modifiers >> 6) as u8, op.destination);
        let y = accumulate(wave, first_y, (op.modifiers >> 22) as u8, op.destination2);
        store(wave, op.destination, &x);
        store(wave, op.destination2, &y);
        Flow::Next
    }
}

#[inline(always)]
fn accumulate(wave: &Wave, first: u8, second: u8, destination: u8) -> Row {
    let [first, second, sum] = [first, second, destination].map(|register| &wave.vector[register as usize].0);
    let mut result = Row([0; LANES]);
    for lane in 0..LANES {
        let (a, b, c) =
            (f32::from_bits(first[lane]), f32::from_bits(second[lane]), f32::from_bits(sum[lane]));
        result.0[lane] = canonical(a.mul_add(b, c));
    }
    result
}

struct Dual;
impl Operation for Dual {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        if ModeFields::SINGLE.deviates(wave.mode) {
            return execute_exactly(wave, op);
        }
        let x = half(wave, op, 0, op.modifiers & 0xFFFF, op.destination);
        let y = half(wave, op, 1, op.modifiers >> 16, op.destination2);
        store(wave, op.destination, &x);
        store(wave, op.destination2, &y);
        Flow::Next
    }
}

/// Operands of one half: source 0, and the second and third operand.
#[inline(always)]
fn operands(wave: &Wave, op: &MicroOp, index: usize, code: u32, destination: u8) -> [Row; 3] {
    let first = match op.sources[index] {
        Source::Vector(register) => wave.vector[register as usize],
        Source::Scalar(code) => splat(wave.scalar[code as usize]),
        Source::Constant(value) => splat(value),
    };
    let vector = wave.vector[(code >> 6 & 0xFF) as usize];
    match code >> 4 & 3 {
        FORM_LITERAL_ADDED => [first, vector, splat(op.immediate2)],
        FORM_LITERAL_MULTIPLIED => [first, splat(op.immediate2), vector],
        _ => [first, vector, wave.vector[destination as usize]],
    }
}

#[inline(always)]
fn map(rows: &[Row; 3], function: impl Fn(u32, u32, u32) -> u32) -> Row {
    let mut result = Row([0; LANES]);
    for lane in 0..LANES {
        result.0[lane] = function(rows[0].0[lane], rows[1].0[lane], rows[2].0[lane]);
    }
    result
}

#[inline(always)]
fn half(wave: &Wave, op: &MicroOp, index: usize, code: u32, destination: u8) -> Row {
    let rows = operands(wave, op, index, code, destination);
    let float = |function: fn(f32, f32, f32) -> f32| {
        move |a: u32, b: u32, c: u32| {
            canonical(function(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c)))
        }
    };
    match code & 15 {
        FMA => {
            map(&rows, |a, b, c| canonical(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c))))
        }
        MULTIPLY => map(&rows, |a, b, _| canonical(f32::from_bits(a) * f32::from_bits(b))),
        ADD => map(&rows, |a, b, _| canonical(f32::from_bits(a) + f32::from_bits(b))),
        SUBTRACT => map(&rows, |a, b, _| canonical(f32::from_bits(a) - f32::from_bits(b))),
        SUBTRACT_REVERSED => map(&rows, float(|a, b, _| b - a)),
        MULTIPLY_DX9 => map(&rows, single::mixed::VMulDx9ZeroF32::compute),
        MOVE => rows[0],
        SELECT => blend(wave.scalar[VCC_LO as usize], &rows[1], &rows[0]),
        MAXIMUM => map(&rows, single::selection::VMaxNumF32::compute),
        MINIMUM => map(&rows, single::selection::VMinNumF32::compute),
        ADD_INTEGER => map(&rows, integer::VAddNcU32::compute),
        SHIFT_LEFT => map(&rows, integer::VLshlrevB32::compute),
        _ => map(&rows, integer::VAndB32::compute),
    }
}

#[cold]
#[inline(never)]
fn execute_exactly(wave: &mut Wave, op: &MicroOp) -> Flow {
    let x = exact_half(wave, op, 0, op.modifiers & 0xFFFF, op.destination);
    let y = exact_half(wave, op, 1, op.modifiers >> 16, op.destination2);
    store(wave, op.destination, &x);
    store(wave, op.destination2, &y);
    Flow::Next
}

fn exact_half(wave: &Wave, op: &MicroOp, index: usize, code: u32, destination: u8) -> Row {
    let rows = operands(wave, op, index, code, destination);
    let mode = Mode(wave.mode);
    let exact = |function: fn(u32, u32, u32, Mode) -> u32| map(&rows, |a, b, c| function(a, b, c, mode));
    match code & 15 {
        FMA => exact(single::arithmetic::VFmaF32::exact),
        MULTIPLY => exact(single::arithmetic::VMulF32::exact),
        ADD => exact(single::arithmetic::VAddF32::exact),
        SUBTRACT => exact(single::arithmetic::VSubF32::exact),
        SUBTRACT_REVERSED => exact(single::arithmetic::VSubrevF32::exact),
        MULTIPLY_DX9 => exact(single::mixed::VMulDx9ZeroF32::exact),
        MAXIMUM => exact(single::selection::VMaxNumF32::exact),
        MINIMUM => exact(single::selection::VMinNumF32::exact),
        _ => half(wave, op, index, code, destination),
    }
}
