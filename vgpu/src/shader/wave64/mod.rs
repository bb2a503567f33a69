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
    use Encoding::{Smem, Sop1, Sop2, Sopc, Sopk, Sopp};
    let opcode = instruction.opcode;
    let mnemonic = opcode.mnemonic();
    if matches!(instruction.encoding, Sop1 | Sop2 | Sopc | Sopk | Sopp | Smem) {
        return Passes::One;
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

    fn ops(words: &[u32]) -> [MicroOp; OPS_OF_HALVES] {
        let instruction = zrt_isa::decode_for(words, zrt_isa::resources::WaveSize::Wave64).unwrap();
        let Ok(ops) = translate(&instruction, Level::BASELINE).unwrap().try_into() else {
            panic!("{words:x?}")
        };
        ops
    }

    /// Slots of results are 129 for the low half's mask, and of exec 130 and 131 while the halves are exchanged.
    #[test]
    fn masks_of_halves_are_the_two_scalars_of_a_pair() {
        for (words, low, high, last) in [
            // v_cmp_lt_u32_e64 exec, s10, v0; v_cmpx_lt_u32_e64 s10, v0: exec_hi is in exec_lo's place
            ([0xD449_007E, 0x0002_000A], 129, 126, 126),
            ([0xD4C9_007E, 0x0002_000A], 129, 126, 126),
            // null, s10, v0: nothing is kept
            ([0xD449_007C, 0x0002_000A], 128, 128, 128),
        ] {
            let ops = ops(&words);
            let destinations = [ops[0].destination, ops[2].destination, ops[3].destination];
            assert_eq!(destinations, [low, high, last], "{words:x?}");
        }
        for (words, carries) in [
            // v_add_co_ci_u32_e64 v0, s[10:11], v1, v2, s[12:13]; v0, null, v1, v2, vcc
            ([0xD520_0A00, 0x0032_0501], [129, 11, 10]),
            ([0xD520_7C00, 0x01AA_0501], [128, 128, 128]),
            // v_div_scale_f32 v0, s[10:11], v1, v2, v3
            ([0xD6FC_0A00, 0x040E_0501], [129, 11, 10]),
        ] {
            let ops = ops(&words);
            assert_eq!([ops[0].destination2, ops[2].destination2, ops[3].destination], carries, "{words:x?}");
            assert_eq!([ops[0].destination, ops[2].destination], [0, 0]);
        }
        // Carries in: s[12:13], vcc; selectors: s[10:11].
        for (words, sources) in [
            ([0xD520_0A00, 0x0032_0501], [12, 13]),
            ([0xD520_7C00, 0x01AA_0501], [106, 107]),
            ([0xD501_0000, 0x002A_0501], [10, 11]),
        ] {
            let ops = ops(&words);
            let expected = sources.map(Source::Scalar);
            assert_eq!([ops[0].sources[2], ops[2].sources[2]], expected, "{words:x?}");
        }
        // v_div_fmas_f32 reads vcc.
        let fmas = ops(&[0xD637_0000, 0x040E_0501]);
        assert_eq!([fmas[0].destination2, fmas[2].destination2], [106, 107]);
        // v_mov_b32 v0, exec_lo; exec_hi
        for (word, sources) in [(0x7E00_027E, [126, 130]), (0x7E00_027F, [127, 131])] {
            let ops = ops(&[word]);
            assert_eq!([ops[0].sources[0], ops[2].sources[0]], sources.map(Source::Scalar));
        }
    }

    #[test]
    fn constants_are_the_same_in_both_halves() {
        // v_add_f64_e64 v[0:1], 1.0, v[2:3]: the high dword of 1.0 is beside the source.
        let ops_of_sum = ops(&[0xD502_0000, 0x0002_04F2]);
        for op in [&ops_of_sum[0], &ops_of_sum[2]] {
            assert_eq!((op.sources[0], op.wide[0]), (Source::Constant(0), 0x3FF0_0000));
        }
        // buffer_load_b32 v20, v10, s[8:11], exec_lo offen, and s12: soffset
        for (words, soffsets) in
            [([0xC405_007E, 0x4080_1014, 0x80A], [126, 130]), ([0xC405_000C, 0x4080_1014, 0x80A], [12, 12])]
        {
            let ops = ops(&words);
            assert_eq!([ops[0].wide[0], ops[2].wide[0]], soffsets);
        }
        // -1 to -16 are extended by their sign; 0, 64 and 0.5 have no high dword of a mask.
        for (code, high) in [(192, 0), (193, u32::MAX), (208, u32::MAX), (128, 0), (240, 0)] {
            assert_eq!(
                second_of_pair(Source::Constant(9), Operand::Inline(code)),
                Source::Constant(high),
                "{code}"
            );
        }
    }

    /// Lanes 32 to 63 of the wave are lanes 0 to 31 of their half.
    #[test]
    fn lane_numbers_of_the_high_half_go_on() {
        // ds_load_addtid_b32, global_load_addtid_b32 and global_store_addtid_b32 with offset:8
        for words in
            [&[0xDAC4_0008, 0x1400_0000][..], &[0xEE0A_0008, 0x14, 0x800], &[0xEE0A_4008, 0x0A00_0000, 0x800]]
        {
            let ops = ops(words);
            assert_eq!([ops[0].immediate, ops[2].immediate], [8, 8 + 32 * 4], "{words:x?}");
        }
        let wave = |low: u32, high: u32| {
            let mut wave = Wave::new();
            wave.other_half = Some(crate::shader::wave::vector_bank());
            (wave.scalar[126], wave.scalar[127]) = (u32::MAX, u32::MAX);
            (wave.scalar[8], wave.scalar[9]) = (low, high);
            (0..64).for_each(|lane| wave.set_lane(1, lane, 1000));
            wave
        };
        // v_mbcnt_lo_u32_b32 v0, s8, v1; v_mbcnt_hi_u32_b32 v0, s9, v1: set bits of the mask below the lane
        for (words, is_high) in [([0xD71F_0000, 0x0002_0208], false), ([0xD720_0000, 0x0002_0209], true)] {
            let mask = 0xA5A5_1234u32;
            let mut after = wave(mask, mask);
            crate::shader::machine::with_machine(|machine| {
                for op in ops(&words) {
                    assert_eq!(op.executor.call(&mut after, &op, machine), Flow::Next);
                }
            });
            for lane in 0..64u32 {
                let below = if is_high { lane.saturating_sub(32) } else { lane.min(32) };
                let count = (0..below).filter(|bit| mask >> bit & 1 != 0).count() as u32;
                assert_eq!(after.lane(0, lane as usize), 1000 + count, "lane {lane}, high {is_high}");
            }
            assert!(!after.is_high);
        }
        // v_mov_b32_dpp v0, v1 row_shl:1 row_mask:0xb bank_mask:0xf: row 2 of four is not written.
        let mut after = wave(0, 0);
        (0..64).for_each(|lane| after.set_lane(1, lane, 100 + lane as u32));
        crate::shader::machine::with_machine(|machine| {
            for op in ops(&[0x7E00_02FA, 0xBF01_0101]) {
                op.executor.call(&mut after, &op, machine);
            }
        });
        for lane in 0..64u32 {
            // The last lane of a row has no source and stays.
            let is_written = lane / 16 != 2 && lane % 16 != 15;
            assert_eq!(after.lane(0, lane as usize), if is_written { 101 + lane } else { 0 }, "lane {lane}");
        }
    }

    #[test]
    fn whole_operations_reach_all_lanes() {
        let run = |wave: &mut Wave, words: &[u32]| {
            let ops = translate(&zrt_isa::decode(words).unwrap(), Level::BASELINE).unwrap();
            let [op] = &ops[..] else { panic!("{words:x?}") };
            crate::shader::machine::with_machine(|machine| op.executor.call(wave, op, machine));
        };
        let mut wave = Wave::new();
        wave.other_half = Some(crate::shader::wave::vector_bank());
        (0..64).for_each(|lane| wave.set_lane(1, lane, 100 + lane as u32));
        // v_readlane_b32 s0, v1, s2; numbers count modulo 64
        for (number, value) in [(0, 100), (31, 131), (32, 132), (63, 163), (64, 100), (u32::MAX, 163)] {
            wave.scalar[2] = number;
            run(&mut wave, &[0xD760_0000, 0x0000_0501]);
            assert_eq!(wave.scalar[0], value, "{number}");
        }
        // v_readfirstlane_b32 s0, v1: the first active lane, or lane 0
        for (exec, value) in [(1u64 << 40, 140), (0x3000_0000_0000_0000, 160), (6, 101), (0, 100)] {
            wave.set_scalar_pair(126, exec);
            run(&mut wave, &[0x7E00_0501]);
            assert_eq!(wave.scalar[0], value, "{exec:#x}");
        }
        // v_writelane_b32 v0, s1, 40, whatever is active; its number modulo 64: v_writelane_b32 v0, s1, s2
        wave.scalar[1] = 7;
        run(&mut wave, &[0xD761_0000, 0x0001_5001]);
        wave.scalar[2] = 64 + 3;
        run(&mut wave, &[0xD761_0000, 0x0000_0401]);
        for lane in 0..64 {
            assert_eq!(wave.lane(0, lane), if lane == 40 || lane == 3 { 7 } else { 0 }, "lane {lane}");
        }
    }
}
