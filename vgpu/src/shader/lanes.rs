//! Lane selection: DPP patterns, and the instructions that move values between lanes, and between lanes and scalar
//! registers.
//!
//! Contract: all sources are read before anything is written. A row is 16 lanes (instruction set reference §1, §9).

use zrt_isa::Opcode;

use super::machine::Machine;
use super::micro::{Flow, MicroOp, Source};
use super::valu::operand::{LANES_DPP8, LANES_DPP16, Packed, Parts, read_scalar};
use super::wave::{LANES, M0, Row, Wave};
use crate::simd::{Executor, Level, Operation, blend, collect, merge_half, permute, spread};

/// Source lane of every lane, and the lanes whose source lies within the row.
#[derive(Clone, Copy)]
struct Pattern {
    source: [u8; LANES],
    valid: u32,
}

/// One pattern per dpp_ctrl value.
static PATTERNS: [Pattern; 512] = patterns();

const fn patterns() -> [Pattern; 512] {
    let mut table = [Pattern { source: [0; LANES], valid: 0 }; 512];
    let mut control = 0;
    while control < 512 {
        let mut lane = 0;
        while lane < LANES {
            if let Some(source) = dpp_source(control, lane as u32) {
                table[control as usize].source[lane] = source as u8;
                table[control as usize].valid |= 1 << lane;
            }
            lane += 1;
        }
        control += 1;
    }
    table
}

/// The lane that `lane` reads under dpp_ctrl `control`; `None` outside the row or for a reserved control.
const fn dpp_source(control: u32, lane: u32) -> Option<u32> {
    let row = lane & !15;
    let place = lane & 15;
    let amount = control & 15;
    let source = match control {
        0x000..=0x0FF => (place & !3) + (control >> ((place & 3) * 2) & 3),
        0x101..=0x10F => place + amount,
        0x111..=0x11F => place.wrapping_sub(amount),
        0x121..=0x12F => place.wrapping_sub(amount) & 15,
        0x140 => 15 - place,
        0x141 => place ^ 7,
        0x150..=0x15F => amount,
        0x160..=0x16F => place ^ amount,
        _ => return None,
    };
    if source < 16 { Some(row + source) } else { None }
}

/// The lanes that an instruction may write: the active ones, some of which DPP may exclude.
#[inline(always)]
pub(crate) fn writable(wave: &Wave, op: &MicroOp) -> u32 {
    let exec = wave.exec();
    if Packed(op.modifiers).lanes() == LANES_DPP16 {
        exec & dpp16_writable(op.immediate2, exec)
    } else {
        exec
    }
}

#[inline(never)]
fn dpp16_writable(control: u32, exec: u32) -> u32 {
    let (fetch_inactive, bound_control) = (control >> 9 & 1 != 0, control >> 10 & 1 != 0);
    let mask = row_and_bank_mask(control >> 15 & 15, control >> 11 & 15);
    if bound_control {
        return mask;
    }
    let pattern = &PATTERNS[control as usize & 511];
    mask & pattern.valid & if fetch_inactive { u32::MAX } else { active_sources(&pattern.source, exec) }
}

/// A row of registers as seen by the lanes of a DPP instruction. Lanes without a source see zero.
#[inline(never)]
pub(crate) fn select_lanes(wave: &Wave, op: &MicroOp, row: &Row, room: &mut Row) {
    let control = op.immediate2;
    let exec = wave.exec();
    match Packed(op.modifiers).lanes() {
        LANES_DPP16 => {
            let pattern = &PATTERNS[control as usize & 511];
            let fetch_inactive = control >> 9 & 1 != 0;
            let active = if fetch_inactive { u32::MAX } else { active_sources(&pattern.source, exec) };
            gather(row, &pattern.source, pattern.valid & active, room);
        }
        LANES_DPP8 => {
            let mut source = [0; LANES];
            for (lane, source) in source.iter_mut().enumerate() {
                *source = (lane & !7) as u8 + (control >> ((lane & 7) as u32 * 3) & 7) as u8;
            }
            let fetch_inactive = control >> 24 & 1 != 0;
            let active = if fetch_inactive { u32::MAX } else { active_sources(&source, exec) };
            gather(row, &source, active, room);
        }
        _ => *room = *row,
    }
}

/// Lanes whose source is active.
#[inline(always)]
fn active_sources(source: &[u8; LANES], exec: u32) -> u32 {
    if exec == u32::MAX {
        return u32::MAX;
    }
    let mut active = Row([0; LANES]);
    permute(&spread(exec), source, &mut active);
    collect(active)
}

#[inline(always)]
fn gather(row: &Row, source: &[u8; LANES], readable: u32, room: &mut Row) {
    permute(row, source, room);
    if readable != u32::MAX {
        *room = blend(readable, room, &Row([0; LANES]));
    }
}

fn row_and_bank_mask(row_mask: u32, bank_mask: u32) -> u32 {
    // One bit per bank, times 0xF: four lanes each.
    let banks = (0..4).fold(0, |mask, bank| mask | ((bank_mask >> bank & 1) * (0xF << (bank * 4))));
    ((row_mask & 1) * banks) | ((row_mask >> 1 & 1) * (banks << 16))
}

/// Functions of the cross-lane instructions.
pub(crate) fn bind(opcode: Opcode, parts: &mut Parts, level: Level) -> Option<Executor> {
    Some(match opcode {
        Opcode::VReadfirstlaneB32 => Executor::baseline::<ReadFirstLane>(),
        Opcode::VReadlaneB32 => Executor::baseline::<ReadLane>(),
        Opcode::VWritelaneB32 => Executor::baseline::<WriteLane>(),
        Opcode::VPermlane16B32 | Opcode::VPermlane16VarB32 => level.bind::<PermuteRows<false>>(),
        Opcode::VPermlanex16B32 | Opcode::VPermlanex16VarB32 => level.bind::<PermuteRows<true>>(),
        // Exchanges the halves of a wave64; nothing in wave32.
        Opcode::VPermlane64B32 => Executor::baseline::<Nothing>(),
        Opcode::VSwapB32 => level.bind::<Swap>(),
        Opcode::VSwapB16 => level.bind::<SwapHalves>(),
        Opcode::VSwaprelB32 => level.bind::<SwapRelative>(),
        Opcode::VMovreldB32 => level.bind::<MoveRelative<false, true, false>>(),
        Opcode::VMovrelsB32 => level.bind::<MoveRelative<true, false, false>>(),
        Opcode::VMovrelsdB32 => level.bind::<MoveRelative<true, true, false>>(),
        Opcode::VMovrelsd2B32 => level.bind::<MoveRelative<true, true, true>>(),
        _ => return None,
    })
    .filter(|_| parts.modifiers.lanes() == 0)
}

/// Value of source `index`, which must be the same in every lane.
#[inline(always)]
fn uniform(wave: &Wave, op: &MicroOp, index: usize) -> u32 {
    match op.sources[index] {
        Source::Constant(value) => value,
        Source::Scalar(code) => read_scalar(wave, code),
        Source::Vector(register) => wave.vector[register as usize].0[0],
    }
}

/// Value of source 0 in one lane.
#[inline(always)]
fn in_lane(wave: &Wave, op: &MicroOp, lane: usize) -> u32 {
    match op.sources[0] {
        Source::Vector(register) => wave.vector[register as usize].0[lane & (LANES - 1)],
        _ => uniform(wave, op, 0),
    }
}

struct Nothing;
impl Operation for Nothing {
    #[inline(always)]
    fn execute(_wave: &mut Wave, _op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        Flow::Next
    }
}

struct ReadFirstLane;
impl Operation for ReadFirstLane {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        // If no lane is active, it is lane 0; 32 & 31 is 0.
        let lane = wave.exec().trailing_zeros() as usize;
        wave.scalar[op.destination as usize] = in_lane(wave, op, lane);
        Flow::Next
    }
}

struct ReadLane;
impl Operation for ReadLane {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let lane = uniform(wave, op, 1) as usize;
        wave.scalar[op.destination as usize] = in_lane(wave, op, lane);
        Flow::Next
    }
}

struct WriteLane;
impl Operation for WriteLane {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let value = uniform(wave, op, 0);
        let lane = uniform(wave, op, 1) as usize;
        wave.vector[op.destination as usize].0[lane & (LANES - 1)] = value;
        Flow::Next
    }
}

/// v_permlane16 and v_permlanex16; selectors from two scalars, or from a vector register in the forms with `_var`.
struct PermuteRows<const OTHER_ROW: bool>;
impl<const OTHER_ROW: bool> Operation for PermuteRows<OTHER_ROW> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let exec = wave.exec();
        let mut source = [0; LANES];
        let selectors = uniform(wave, op, 1) as u64 | (uniform(wave, op, 2) as u64) << 32;
        for (lane, source) in source.iter_mut().enumerate() {
            let place = match op.sources[1] {
                Source::Vector(register) => wave.vector[register as usize].0[lane] as u8,
                _ => (selectors >> ((lane & 15) * 4)) as u8,
            };
            *source = (lane as u8 & 16 ^ (OTHER_ROW as u8) << 4) | place & 15;
        }
        // op_sel bit 0 reads inactive lanes; bit 1 lets a lane with an inactive source read zero.
        let modifiers = Packed(op.modifiers);
        let readable = if modifiers.selects_high(0) { u32::MAX } else { active_sources(&source, exec) };
        let writable = if modifiers.selects_high(1) { exec } else { exec & readable };
        let mut result = Row([uniform(wave, op, 0); LANES]);
        if let Source::Vector(register) = op.sources[0] {
            gather(&wave.vector[register as usize], &source, readable, &mut result);
        }
        store(wave, op.destination, &result, writable);
        Flow::Next
    }
}

#[inline(always)]
fn store(wave: &mut Wave, register: u8, row: &Row, lanes: u32) {
    let old = wave.vector[register as usize];
    wave.vector[register as usize] = blend(lanes, row, &old);
}

#[inline(always)]
fn exchange(wave: &mut Wave, left: u8, right: u8) {
    let exec = wave.exec();
    let (old_left, old_right) = (wave.vector[left as usize], wave.vector[right as usize]);
    store(wave, left, &old_right, exec);
    store(wave, right, &old_left, exec);
}

fn vector_source(op: &MicroOp) -> u8 {
    match op.sources[0] {
        Source::Vector(register) => register,
        _ => 0,
    }
}

struct Swap;
impl Operation for Swap {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        exchange(wave, op.destination, vector_source(op));
        Flow::Next
    }
}

/// v_swap_b16: exchanges the halves that op_sel names and preserves the others. Both may be of one register.
struct SwapHalves;
impl Operation for SwapHalves {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let lanes = wave.exec();
        let places =
            [(op.destination, modifiers.result_high()), (vector_source(op), modifiers.selects_high(0))];
        let [left, right] = places.map(|(register, is_high)| half(&wave.vector[register as usize], is_high));
        for ((register, is_high), value) in places.into_iter().zip([right, left]) {
            let merged = merge_half(&value, &wave.vector[register as usize], is_high);
            store(wave, register, &merged, lanes);
        }
        Flow::Next
    }
}

/// One half of every lane, in the low half.
#[inline(always)]
fn half(row: &Row, is_high: bool) -> Row {
    let shift = if is_high { 16 } else { 0 };
    Row(row.0.map(|value| value >> shift & 0xFFFF))
}

/// A register number plus an offset; `None` beyond the wave's allocation.
fn relative(wave: &Wave, register: u8, offset: u32) -> Option<u8> {
    let index = (register as u32).checked_add(offset)?;
    (index < wave.vector_count).then_some(index as u8)
}

struct SwapRelative;
impl Operation for SwapRelative {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let offsets = wave.scalar[M0 as usize];
        let source = relative(wave, vector_source(op), offsets & 0x3FF);
        let destination = relative(wave, op.destination, offsets >> 16 & 0x3FF);
        if let (Some(source), Some(destination)) = (source, destination) {
            exchange(wave, destination, source);
        }
        Flow::Next
    }
}

/// v_movrels/d/sd: register numbers moved by m0 (`SPLIT`: source by bits 9:0, destination by bits 25:16). A source
/// beyond the allocation reads v0, a destination beyond it is not written.
struct MoveRelative<const SOURCE: bool, const DESTINATION: bool, const SPLIT: bool>;
impl<const SOURCE: bool, const DESTINATION: bool, const SPLIT: bool> Operation
    for MoveRelative<SOURCE, DESTINATION, SPLIT>
{
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let offset = wave.scalar[M0 as usize];
        let (source_offset, destination_offset) =
            if SPLIT { (offset & 0x3FF, offset >> 16 & 0x3FF) } else { (offset, offset) };
        let row = match op.sources[0] {
            Source::Vector(register) if SOURCE => {
                wave.vector[relative(wave, register, source_offset).unwrap_or(0) as usize]
            }
            Source::Vector(register) => wave.vector[register as usize],
            _ => Row([uniform(wave, op, 0); LANES]),
        };
        let destination = if DESTINATION {
            relative(wave, op.destination, destination_offset)
        } else {
            Some(op.destination)
        };
        if let Some(destination) = destination {
            let exec = wave.exec();
            store(wave, destination, &row, exec);
        }
        Flow::Next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dpp_patterns_follow_the_control_table() {
        // quad_perm:[3,2,1,0]
        assert_eq!(dpp_source(0x1B, 0), Some(3));
        assert_eq!(dpp_source(0x1B, 18), Some(17));
        // row_shl:1 reads the lane above, row_shr:1 the lane below, and both end at the row.
        assert_eq!(dpp_source(0x101, 14), Some(15));
        assert_eq!(dpp_source(0x101, 15), None);
        assert_eq!(dpp_source(0x111, 16), None);
        assert_eq!(dpp_source(0x111, 17), Some(16));
        // row_ror:1 wraps.
        assert_eq!(dpp_source(0x121, 16), Some(31));
        assert_eq!(dpp_source(0x140, 1), Some(14));
        assert_eq!(dpp_source(0x141, 9), Some(14));
        assert_eq!(dpp_source(0x153, 30), Some(19));
        assert_eq!(dpp_source(0x168, 20), Some(28));
        assert_eq!(dpp_source(0x130, 0), None, "wave shifts do not exist");
    }

    /// The lane that a pattern names, by its place in its row of 16; `None` outside.
    #[test]
    fn every_pattern_names_a_lane_of_the_same_row() {
        for lane in 0..LANES as u32 {
            let (row, place) = (lane / 16 * 16, lane as i32 % 16);
            let in_row = |place: i32| (0..16).contains(&place).then(|| row + place as u32);
            let mut known = Vec::new();
            let mut check = |control: u32, source: Option<u32>| {
                assert_eq!(dpp_source(control, lane), source, "{control:#x} of lane {lane}");
                known.push(control);
            };
            for selectors in 0..256u32 {
                check(selectors, Some(lane / 4 * 4 + selectors / 4u32.pow(lane % 4) % 4));
            }
            for amount in 1..16 {
                check(0x100 + amount as u32, in_row(place + amount));
                check(0x110 + amount as u32, in_row(place - amount));
                check(0x120 + amount as u32, in_row((place + 16 - amount) % 16));
            }
            check(0x140, in_row(15 - place));
            check(0x141, in_row(place / 8 * 8 + 7 - place % 8));
            for amount in 0..16 {
                check(0x150 + amount as u32, in_row(amount));
                check(0x160 + amount as u32, in_row(place ^ amount));
            }
            // The others are reserved.
            for control in (0..512).filter(|control| !known.contains(control)) {
                assert_eq!(dpp_source(control, lane), None, "{control:#x} of lane {lane}");
            }
            for control in 0..512 {
                let pattern = &PATTERNS[control as usize];
                let source = (pattern.valid >> lane & 1 != 0).then(|| pattern.source[lane as usize].into());
                assert_eq!(source, dpp_source(control, lane), "{control:#x} of lane {lane}");
            }
        }
    }

    /// Row r is lanes 16 r to 16 r + 15, bank b of a row its lanes 4 b to 4 b + 3; a wave32 has rows 0 and 1.
    #[test]
    fn a_lane_is_written_if_its_row_and_its_bank_are() {
        for (row_mask, bank_mask) in (0..16).flat_map(|row| (0..16).map(move |bank| (row, bank))) {
            let expected = (0..LANES as u32)
                .filter(|lane| row_mask >> (lane / 16) & bank_mask >> (lane % 16 / 4) & 1 != 0);
            let mask = row_and_bank_mask(row_mask, bank_mask);
            assert_eq!(mask, expected.fold(0, |mask, lane| mask | 1 << lane), "{row_mask:#x} {bank_mask:#x}");
        }
    }
}
