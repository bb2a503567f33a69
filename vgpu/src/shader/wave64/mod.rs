//! Wave64: 64 lanes on the rows and functions of 32 (instruction set reference §2, §6, §9).
//!
//! A wave64 has a second bank of vector registers. An instruction of the vector ALU, of vector memory or of LDS
//! becomes four micro operations: its function on lanes 0 to 31, [`EnterHighHalf`], its function on lanes 32 to 63,
//! [`LeaveHighHalf`]. In between, the banks and the halves of EXEC are exchanged, so that the functions of wave32
//! see a wave32. Scalar instructions run once, and so do operations that move values between any two of the 64
//! lanes (`whole`).
//!
//! Contract: the high half reads the state from before the low half wrote. Vector registers are separate banks; a
//! mask produced by the low half waits in a slot until the high half is done; exec as an operand is read from a
//! copy. Lanes are in ascending order across the halves. The banks are exchanged only between the two operations,
//! and in a wave that stopped there; [`Wave::is_high`] says so. The last of the four counts the instruction, and
//! the others count nothing; all four have its address. Wave32 programs are not affected.
//! Cost: twice that of the wave32 function plus about 4 ns.
//!
//! Matrix instructions see all 64 lanes at once: they find the low half in [`Wave::vector`] and the high half in
//! [`Wave::other_half`]. Transposing loads are not executed.

mod whole;
mod zero;

use zrt_isa::opcode::{DataType, OperandKind, RegisterFile};
use zrt_isa::{Encoding, Instruction, LaneSelect, Opcode, Operand};

use crate::shader::control;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::translate::translate as translate_wave32;
use crate::shader::wave::{EXEC_LO, LANES, NULL, NULL_SINK, Wave};
use crate::simd::{Executor, Level, Operation};

/// Distance in bytes between the first lanes of the two halves, in scratch and in memory for `addtid` forms.
pub(crate) const HALF_BYTES: u32 = 4 * LANES as u32;
/// Micro operations of an instruction that runs once per half.
pub(crate) const OPS_OF_HALVES: usize = 4;
/// Scalar slots that no operand code names (129 to 234 are constants): the low half's mask result, and the
/// unexchanged exec.
const LOW_RESULT: u8 = 129;
const EXEC_COPY: u8 = 130;
/// Codes of the inline constants -1 to -16.
const NEGATIVE_INTEGERS: std::ops::RangeInclusive<u8> = 193..=208;
/// Row masks of DPP16: rows 2 and 3 are those of the high half.
const ROWS_OF_A_HALF: u8 = 2;

/// How an instruction runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passes {
    /// Once, with the function of wave32: it does not depend on lanes.
    One,
    /// Once, with a function that sees all lanes.
    Whole,
    /// Like `Whole`, in the matrix units.
    Matrix,
    /// Once per half.
    Halves,
    /// It cannot run as two halves, and is not modelled.
    NotModelled,
}

/// The micro operations of an instruction; `None` if it is not supported. The caller fills offset and length in the
/// code; weights are set.
pub(crate) fn translate(instruction: &Instruction, level: Level) -> Option<Vec<MicroOp>> {
    match passes(instruction) {
        Passes::One => {
            let mut op = translate_wave32(instruction, level)?;
            zero::test_both_halves(instruction, &mut op);
            Some(vec![op])
        }
        Passes::Whole => Some(vec![whole::translate(instruction, level)?]),
        // They recognise the number of lanes by the wave (instruction set reference §7.4).
        Passes::Matrix => Some(vec![translate_wave32(instruction, level)?]),
        Passes::Halves => halves(instruction, level),
        Passes::NotModelled => None,
    }
}

/// Whether the instruction exists in wave32 only: VOPD (instruction set reference §6).
pub(crate) fn is_wave32_only(instruction: &Instruction) -> bool {
    instruction.encoding == Encoding::Vopd
}

fn passes(instruction: &Instruction) -> Passes {
    use Encoding::{Smem, Sop1, Sop2, Sopc, Sopk, Sopp, Vopd};
    let opcode = instruction.opcode;
    let mnemonic = opcode.mnemonic();
    match instruction.encoding {
        Sop1 | Sop2 | Sopc | Sopk | Sopp | Smem => return Passes::One,
        Vopd => return Passes::NotModelled,
        _ => {}
    }
    if whole::is_whole(mnemonic) {
        return Passes::Whole;
    }
    if mnemonic.starts_with("v_wmma_") || mnemonic.starts_with("v_swmmac_") {
        return Passes::Matrix;
    }
    // They pass values from lane to lane, across both halves.
    if mnemonic.contains("_load_tr_") {
        return Passes::NotModelled;
    }
    // They count the active lanes of the wave.
    if matches!(mnemonic, "ds_append" | "ds_consume") {
        return Passes::NotModelled;
    }
    let is_fence = matches!(opcode, Opcode::GlobalInv | Opcode::GlobalWb | Opcode::GlobalWbinv);
    let destination = opcode.operands().destination;
    // v_s_exp_f32 and its like.
    let is_scalar = destination.file == RegisterFile::Scalar && !is_mask(destination);
    if is_fence || is_scalar || control::is_without_effect(instruction) {
        Passes::One
    } else {
        Passes::Halves
    }
}

fn is_mask(kind: OperandKind) -> bool {
    kind.data == DataType::Mask && kind.file != RegisterFile::Absent
}

/// The four micro operations of an instruction that runs once per half.
fn halves(instruction: &Instruction, level: Level) -> Option<Vec<MicroOp>> {
    let operands = instruction.opcode.operands();
    let mut low = translate_wave32(instruction, level)?;
    let mut high = translate_wave32(&of_high_half(instruction), level)?;
    zero::test_both_halves(instruction, &mut low);
    zero::test_both_halves(instruction, &mut high);
    for (index, source) in high.sources.iter_mut().enumerate() {
        if operands.sources[index].data == DataType::Mask {
            *source = second_of_pair(*source, instruction.sources[index]);
        }
        if let Source::Scalar(code) = source {
            *code = outside_exec(*code);
        }
    }
    match instruction.opcode {
        // The mask is implicit.
        Opcode::VDivFmasF32 | Opcode::VDivFmasF64 => high.destination2 += 1,
        // The code of soffset.
        _ if instruction.encoding == Encoding::Vbuffer => {
            high.wide[0] = u32::from(outside_exec(high.wide[0] as u8));
        }
        _ => {}
    }
    let mut leave = control::blank(Executor::baseline::<LeaveHighHalf>());
    leave.destination = NULL_SINK;
    if is_mask(operands.destination) {
        leave.destination = split_mask(&mut low.destination, &mut high.destination);
    } else if is_mask(operands.destination2) {
        leave.destination = split_mask(&mut low.destination2, &mut high.destination2);
    }
    let enter = control::blank(Executor::baseline::<EnterHighHalf>());
    let mut ops = vec![low, enter, high, leave];
    ops[..3].iter_mut().for_each(|op| op.weight = 0);
    Some(ops)
}

/// The instruction for lanes 32 to 63 of the wave, expressed in terms of lanes 0 to 31.
fn of_high_half(instruction: &Instruction) -> Instruction {
    let mut high = *instruction;
    match instruction.opcode {
        // All lanes of the low half are below, and those below in the half of exec_hi.
        Opcode::VMbcntLoU32B32 => high.opcode = Opcode::VBcntU32B32,
        Opcode::VMbcntHiU32B32 => high.opcode = Opcode::VMbcntLoU32B32,
        Opcode::DsLoadAddtidB32
        | Opcode::DsStoreAddtidB32
        | Opcode::GlobalLoadAddtidB32
        | Opcode::GlobalStoreAddtidB32 => high.immediate += HALF_BYTES as i32,
        _ => {}
    }
    if let LaneSelect::Dpp16 { row_mask, .. } = &mut high.lanes {
        *row_mask >>= ROWS_OF_A_HALF;
    }
    high
}

/// The high dword of a 64-bit mask operand.
fn second_of_pair(low: Source, operand: Operand) -> Source {
    match (low, operand) {
        (Source::Scalar(NULL), _) => low,
        (Source::Scalar(code), _) => Source::Scalar(code + 1),
        // A 64-bit integer constant is sign-extended.
        (_, Operand::Inline(code)) if NEGATIVE_INTEGERS.contains(&code) => Source::Constant(u32::MAX),
        _ => Source::Constant(0),
    }
}

/// The slot of a scalar source for the high half, for which exec is exchanged.
fn outside_exec(code: u8) -> u8 {
    match code {
        EXEC_LO => EXEC_COPY,
        _ if code == EXEC_LO + 1 => EXEC_COPY + 1,
        _ => code,
    }
}

/// Splits a mask result: the low half's result waits in its slot. Returns the code of its final destination.
fn split_mask(low: &mut u8, high: &mut u8) -> u8 {
    let code = *low;
    if code == NULL_SINK {
        return code;
    }
    *low = LOW_RESULT;
    // exec_hi is in exec_lo's place.
    *high = if code == EXEC_LO { EXEC_LO } else { code + 1 };
    code
}

/// Makes the wave's lanes 32 to 63 its lanes 0 to 31.
struct EnterHighHalf;
impl Operation for EnterHighHalf {
    #[inline(always)]
    fn execute(wave: &mut Wave, _op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let exec = wave.scalar_pair(EXEC_LO);
        wave.set_scalar_pair(EXEC_COPY, exec);
        wave.exchange_halves();
        machine.scratch.wave_va = machine.scratch.wave_va.wrapping_add(u64::from(HALF_BYTES));
        Flow::Next
    }
}

/// Undoes [`EnterHighHalf`] and writes the low half's mask.
struct LeaveHighHalf;
impl Operation for LeaveHighHalf {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        wave.exchange_halves();
        machine.scratch.wave_va = machine.scratch.wave_va.wrapping_sub(u64::from(HALF_BYTES));
        wave.scalar[op.destination as usize] = wave.scalar[LOW_RESULT as usize];
        Flow::Next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes_of(words: &[u32]) -> Passes {
        passes(&zrt_isa::decode(words).unwrap())
    }

    /// Words of llvm-mc 19.
    #[test]
    fn instructions_run_as_often_as_they_look_at_lanes() {
        for (words, expected) in [
            // v_add_f32 v0, v1, v2; v_cmp_eq_u32 vcc, v0, v1; global_load_b32 v1, v0, s[4:5]
            (&[0x0600_0501][..], Passes::Halves),
            (&[0x7C94_0300], Passes::Halves),
            (&[0xEE05_0004, 1, 0], Passes::Halves),
            // s_endpgm; v_s_exp_f32 s0, s1; global_inv scope:SCOPE_DEV
            (&[0xBFB0_0000], Passes::One),
            (&[0xD680_0000, 0x0000_0001], Passes::One),
            (&[0xEE0A_C07C, 0x0008_0000, 0], Passes::One),
            // v_readlane_b32 s0, v1, s2; ds_bpermute_b32 v0, v1, v2
            (&[0xD760_0000, 0x0000_0501], Passes::Whole),
            (&[0xDACC_0000, 0x0000_0201], Passes::Whole),
            // v_wmma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[8:11]; global_load_tr_b128 v[0:1], v[4:5], off
            (&[0xCC40_4008, 0x1C22_0500], Passes::Matrix),
            (&[0xEE15_C07C, 0, 4], Passes::NotModelled),
        ] {
            assert_eq!(passes_of(words), expected, "{words:08x?}");
        }
    }

    #[test]
    fn a_mask_operand_is_64_bits_wide() {
        assert_eq!(second_of_pair(Source::Scalar(4), Operand::Scalar(4)), Source::Scalar(5));
        assert_eq!(second_of_pair(Source::Scalar(NULL), Operand::Scalar(NULL)), Source::Scalar(NULL));
        assert_eq!(
            second_of_pair(Source::Constant(u32::MAX), Operand::Inline(193)),
            Source::Constant(u32::MAX)
        );
        assert_eq!(second_of_pair(Source::Constant(64), Operand::Inline(192)), Source::Constant(0));
    }

    #[test]
    fn four_operations_count_as_one() {
        // v_cmp_lt_u32_e64 s[10:11], s10, v0
        let instruction = zrt_isa::decode(&[0xD449_000A, 0x0002_000A]).unwrap();
        let ops = translate(&instruction, Level::BASELINE).unwrap();
        assert_eq!(ops.iter().map(|op| op.weight).collect::<Vec<_>>(), [0, 0, 0, 1]);
        assert_eq!([ops[0].destination, ops[2].destination, ops[3].destination], [LOW_RESULT, 11, 10]);
    }
}
