//! Tests of the vector ALU across all operations; the tests of single families are in the modules below.

mod arithmetic;
mod comparisons;
mod conversions;
mod halves;
mod integers;
mod lanes;
mod modes;
mod pairs;
mod rules;
mod selections;
mod sources;

use zrt_isa::opcode::{OPCODES, RegisterFile};
use zrt_isa::{Encoding, Instruction, LaneSelect, Modifiers, Opcode, Operand};

use super::testing::{Random, assert_same, run_one, wave};
use super::translate;
use crate::simd::Level;

/// An instruction of the opcode with registers as operands: sources v1 and up, s4 and up, destination v0, mask vcc.
fn example(opcode: Opcode, encoding: Encoding) -> Instruction {
    let operands = opcode.operands();
    let operand = |index: usize| match operands.sources[index].file {
        RegisterFile::Absent => Operand::None,
        RegisterFile::Scalar | RegisterFile::ScalarRegister => Operand::Scalar(4 + 2 * index as u8),
        RegisterFile::Exec => Operand::Scalar(126),
        _ => Operand::Vector(4 + 4 * index as u8),
    };
    let destination = match operands.destination.file {
        RegisterFile::Absent => Operand::None,
        RegisterFile::Vector => Operand::Vector(0),
        RegisterFile::Exec => Operand::Scalar(126),
        _ => Operand::Scalar(20),
    };
    Instruction {
        encoding,
        opcode,
        dword_count: 2,
        destination,
        destination2: if operands.destination2.is_present() { Operand::Scalar(106) } else { Operand::None },
        sources: [operand(0), operand(1), operand(2)],
        soffset: Operand::None,
        modifiers: Modifiers { op_sel_hi: 7, ..Modifiers::default() },
        lanes: LaneSelect::None,
        immediate: 0,
        scope: 0,
        temporal_hint: 0,
        address_flags: 0,
        dual: None,
    }
}

fn vector_opcodes() -> impl Iterator<Item = Opcode> {
    use Encoding::*;
    OPCODES.iter().copied().filter(|op| matches!(op.encoding(), Vop1 | Vop2 | Vopc | Vop3 | Vop3sd | Vop3p))
}

#[test]
fn all_operations_are_executed() {
    let missing: Vec<&str> = vector_opcodes()
        .filter(|&opcode| translate(&example(opcode, opcode.encoding()), Level::BASELINE).is_none())
        .map(Opcode::mnemonic)
        .collect();
    assert_eq!(missing, ["v_nop"], "which is control's");
}

/// Every operation with random sources, modifiers, lane selects and EXEC: the result is the same at every level.
#[test]
fn all_levels_agree_on_every_operation() {
    let mut random = Random::new(7);
    for opcode in vector_opcodes() {
        for round in 0..24 {
            let mut instruction = example(opcode, opcode.encoding());
            if round >= 8 {
                randomise(&mut instruction, &mut random, round);
            }
            let mut start = wave();
            for register in 0..16 {
                start.vector[register] = random.row();
            }
            if round & 1 != 0 {
                start.scalar[126] = random.next();
            }
            if round >= 20 {
                start.mode = random.next() & 0x8000FF;
            }
            start.scalar[106] = random.next();
            let mut outcomes = Vec::new();
            for level in Level::supported() {
                let mut wave = start.clone();
                if let Some(op) = translate(&instruction, level) {
                    run_one(&mut wave, &op);
                }
                outcomes.push(wave);
            }
            for outcome in &outcomes[1..] {
                assert_same(&outcomes[0], outcome, &format!("{instruction:?}"));
            }
        }
    }
}

fn randomise(instruction: &mut Instruction, random: &mut Random, round: u32) {
    let bits = random.next();
    let operands = instruction.opcode.operands();
    for index in 0..3 {
        if operands.sources[index].file == RegisterFile::Any && random.next().is_multiple_of(3) {
            instruction.sources[index] = match random.next() % 4 {
                0 => Operand::Scalar(random.next() as u8 % 100),
                1 => Operand::Inline(128 + random.next() as u8 % 81),
                2 => Operand::Inline(240 + random.next() as u8 % 9),
                _ => Operand::Literal(random.bits()),
            };
        }
    }
    instruction.modifiers = Modifiers {
        negate: bits as u8 & 7,
        absolute: (bits >> 3) as u8 & 7,
        op_sel: (bits >> 6) as u8 & 15,
        op_sel_hi: (bits >> 10) as u8 & 7,
        clamp: bits >> 13 & 7 == 0,
        omod: (bits >> 16) as u8 & 3,
    };
    let lane_crossing = instruction.opcode.mnemonic().contains("lane");
    if round % 4 == 3 && matches!(instruction.sources[0], Operand::Vector(_)) && !lane_crossing {
        instruction.lanes = if bits >> 20 & 1 == 0 {
            let controls = [0x1B, 0x101, 0x113, 0x125, 0x140, 0x141, 0x157, 0x16A];
            LaneSelect::Dpp16 {
                control: controls[(bits >> 21) as usize & 7],
                fetch_inactive: bits >> 24 & 1 != 0,
                bound_control: bits >> 25 & 1 != 0,
                bank_mask: if bits >> 26 & 1 != 0 { 15 } else { 0b0110 },
                row_mask: if bits >> 27 & 1 != 0 { 3 } else { 2 },
            }
        } else {
            LaneSelect::Dpp8 { selectors: random.next() & 0xFF_FFFF, fetch_inactive: bits >> 24 & 1 != 0 }
        };
    }
}

/// The specialised functions and the general one (reached by a lane select without effect) return the same.
#[test]
fn plain_and_general_functions_agree() {
    let mut random = Random::new(11);
    for opcode in vector_opcodes() {
        let mut instruction = example(opcode, opcode.encoding());
        if !matches!(instruction.sources[0], Operand::Vector(_)) || opcode.mnemonic().contains("lane") {
            continue;
        }
        for round in 0..6u32 {
            for index in 1..3 {
                if opcode.operands().sources[index].file == RegisterFile::Any {
                    instruction.sources[index] = match round >> (index - 1) & 1 {
                        0 => Operand::Vector(4 + 4 * index as u8),
                        _ => Operand::Inline(128 + random.next() as u8 % 64),
                    };
                }
            }
            instruction.lanes = LaneSelect::None;
            let Some(plain) = translate(&instruction, Level::detect()) else { continue };
            instruction.lanes = LaneSelect::Dpp16 {
                control: 0xE4,
                fetch_inactive: false,
                bound_control: true,
                bank_mask: 15,
                row_mask: 15,
            };
            let Some(general) = translate(&instruction, Level::detect()) else { continue };
            let mut left = wave();
            for register in 0..16 {
                left.vector[register] = random.row();
            }
            left.scalar[106] = random.next();
            if round & 1 == 0 {
                left.scalar[126] = random.next();
            }
            let mut right = left.clone();
            run_one(&mut left, &plain);
            run_one(&mut right, &general);
            assert_same(&left, &right, &format!("{instruction:?}"));
        }
    }
}

/// The exact model equals the usual arithmetic: flushing modes change nothing if nothing is denormal.
#[test]
fn exact_models_agree_with_the_usual_arithmetic() {
    let mut random = Random::new(13);
    // Exponents far from both ends in f32, f16 (both halves) and f64.
    let mut moderate = || random.next() & 0x83FF_83FF | 0x3C00_3C00;
    for opcode in vector_opcodes() {
        let instruction = example(opcode, opcode.encoding());
        let Some(op) = translate(&instruction, Level::detect()) else { continue };
        for _ in 0..20 {
            let mut left = wave();
            for register in 0..16 {
                left.vector[register].0.fill_with(&mut moderate);
            }
            // Integer sources of ldexp, and the number of a segment.
            if ["ldexp", "trig_preop"].iter().any(|part| opcode.mnemonic().contains(part)) {
                left.vector[8].0.fill(3);
            }
            let mut right = left.clone();
            right.mode = 0;
            run_one(&mut left, &op);
            run_one(&mut right, &op);
            assert_same(&left, &right, opcode.mnemonic());
        }
    }
}
