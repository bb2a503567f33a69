//! Which lanes of a source are read and which lanes of a result are written, where these are not the active ones.
//!
//! Contract: lanes come from scalar operands, immediates and EXEC; where vector registers choose them
//! (`v_permlane16_var`, `ds_bpermute`), every active lane counts as chosen. Patterns: instruction set reference §1, §9.

use zrt_isa::{Instruction, LaneSelect, Opcode, Operand};

use super::View;

const ROW_LANES: u32 = 16;
const BANK_LANES: u32 = 4;
/// First code and value of the inline integers.
const INLINE_ZERO: u8 = 128;
const INLINE_LAST: u8 = 192;

/// How source 0 is read, or the result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneRule {
    /// The first active lane, or lane 0.
    First,
    /// The lane that the operand names; everything else as usual.
    Read(Operand),
    /// That lane is written, whatever EXEC says.
    Write(Operand),
    /// From within a row or group of eight.
    Select(LaneSelect),
    /// From the own row, or (`crosses`) the other row of the pair, by selectors in scalar operands.
    Rows { crosses: bool, fetch_inactive: bool, bound_control: bool, selectors: [Operand; 2] },
    /// The other half of the wave; nothing in wave32.
    Halves,
}

/// Lanes of source 0 that are read, and lanes that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes {
    pub(super) source: u64,
    pub(super) written: u64,
}

impl LaneRule {
    pub(super) fn of(instruction: &Instruction) -> Option<Self> {
        let op_sel = instruction.modifiers.op_sel;
        Some(match instruction.opcode {
            Opcode::VReadfirstlaneB32 => Self::First,
            Opcode::VReadlaneB32 => Self::Read(instruction.sources[1]),
            Opcode::VWritelaneB32 => Self::Write(instruction.sources[1]),
            Opcode::VPermlane64B32 => Self::Halves,
            Opcode::VPermlane16B32 | Opcode::VPermlanex16B32 => Self::Rows {
                crosses: instruction.opcode == Opcode::VPermlanex16B32,
                fetch_inactive: op_sel & 1 != 0,
                bound_control: op_sel & 2 != 0,
                selectors: [instruction.sources[1], instruction.sources[2]],
            },
            _ if instruction.lanes != LaneSelect::None => Self::Select(instruction.lanes),
            _ => return None,
        })
    }

    /// The lanes in a wave of `lane_count` with active lanes `exec`.
    pub(super) fn lanes(&self, exec: u64, lane_count: u32, view: &View<'_>) -> Lanes {
        let active = Lanes { source: exec, written: exec };
        match *self {
            Self::First => {
                let first = if exec == 0 { 1 } else { exec & exec.wrapping_neg() };
                Lanes { source: first, ..active }
            }
            Self::Read(operand) => match value(operand, view) {
                Some(lane) => Lanes { source: 1 << (lane % lane_count), ..active },
                None => active,
            },
            Self::Write(operand) => match value(operand, view) {
                Some(lane) => Lanes { written: 1 << (lane % lane_count), ..active },
                None => active,
            },
            Self::Halves if lane_count == 64 => Lanes { source: exec.rotate_left(32), ..active },
            Self::Halves => Lanes { source: 0, written: 0 },
            Self::Select(LaneSelect::None) => active,
            Self::Select(LaneSelect::Dpp8 { selectors, fetch_inactive }) => {
                gather(exec, fetch_inactive, true, |lane| Some(lane & !7 | selectors >> (lane % 8 * 3) & 7))
            }
            Self::Select(LaneSelect::Dpp16 {
                control,
                fetch_inactive,
                bound_control,
                bank_mask,
                row_mask,
            }) => {
                let enabled = (0..lane_count)
                    .filter(|lane| {
                        let bank = lane % ROW_LANES / BANK_LANES;
                        row_mask >> (lane / ROW_LANES) & 1 != 0 && bank_mask >> bank & 1 != 0
                    })
                    .fold(0, |lanes, lane| lanes | 1 << lane);
                let lanes = gather_from(exec & enabled, exec, fetch_inactive, bound_control, |lane| {
                    row_source(control.into(), lane)
                });
                Lanes { source: lanes.source, written: lanes.written }
            }
            Self::Rows { crosses, fetch_inactive, bound_control, selectors } => {
                let Some(low) = value(selectors[0], view) else { return active };
                let Some(high) = value(selectors[1], view) else { return active };
                gather(exec, fetch_inactive, bound_control, |lane| {
                    let place = lane % ROW_LANES;
                    let selector = if place < 8 { low } else { high };
                    let row = lane & !(ROW_LANES - 1);
                    let row = if crosses { row ^ ROW_LANES } else { row };
                    Some(row | selector >> (place % 8 * 4) & 0xf)
                })
            }
        }
    }
}

/// Each active lane reads the lane that `source` tells.
fn gather(
    exec: u64,
    fetch_inactive: bool,
    bound_control: bool,
    source: impl Fn(u32) -> Option<u32>,
) -> Lanes {
    gather_from(exec, exec, fetch_inactive, bound_control, source)
}

fn gather_from(
    readers: u64,
    exec: u64,
    fetch_inactive: bool,
    bound_control: bool,
    source: impl Fn(u32) -> Option<u32>,
) -> Lanes {
    let mut lanes = Lanes { source: 0, written: 0 };
    for lane in (0..64).filter(|lane| readers >> lane & 1 != 0) {
        match source(lane).filter(|source| fetch_inactive || exec >> source & 1 != 0) {
            Some(source) => {
                lanes.source |= 1 << source;
                lanes.written |= 1 << lane;
            }
            None if bound_control => lanes.written |= 1 << lane,
            None => {}
        }
    }
    lanes
}

/// The lane that `lane` reads under a 9-bit dpp_ctrl; `None` off the row.
fn row_source(control: u32, lane: u32) -> Option<u32> {
    let (row, place, amount) = (lane & !(ROW_LANES - 1), lane % ROW_LANES, control & 0xf);
    let source = match control {
        0..=0xff => place & !3 | control >> (place % 4 * 2) & 3,
        0x101..=0x10f => place + amount,
        0x111..=0x11f => place.checked_sub(amount)?,
        0x121..=0x12f => place.wrapping_sub(amount) % ROW_LANES,
        0x140 => ROW_LANES - 1 - place,
        0x141 => place ^ 7,
        0x150..=0x15f => amount,
        0x160..=0x16f => place ^ amount,
        _ => return None,
    };
    (source < ROW_LANES).then_some(row + source)
}

/// The value of a scalar operand, where it can be told.
fn value(operand: Operand, view: &View<'_>) -> Option<u32> {
    match operand {
        Operand::Scalar(code) => view.scalar.get(usize::from(code)).copied(),
        Operand::Inline(code @ INLINE_ZERO..=INLINE_LAST) => Some(u32::from(code - INLINE_ZERO)),
        Operand::Inline(code @ 193..=208) => Some((i32::from(INLINE_LAST) - i32::from(code)) as u32),
        Operand::Literal(literal) => Some(literal),
        _ => None,
    }
}
