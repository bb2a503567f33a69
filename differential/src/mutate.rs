//! Mutants: machine code with one ordering or bound of its accesses removed.
//!
//! Contract: a mutant has the instructions of its program at the same offsets; a removed instruction becomes
//! `s_nop`. Every change is decoded again and differs from the original only in what its class says. Encodings:
//! instruction set reference §1, §4.

use crate::code::Placed;
use std::collections::BTreeSet;
use std::fmt;
use zrt_isa::effects::{Counter, Effects, Part, Registers, Role};
use zrt_isa::resources::WaveSize;
use zrt_isa::{Encoding, Instruction, Opcode, decode_for};

/// `s_nop 0`.
const NOP: u32 = 0xBF80_0000;
/// Most instructions between a barrier's signal and its wait.
const BARRIER_DISTANCE_MAX: usize = 64;
/// Instructions examined on either side of a wait.
const LOOK_MAX: usize = 400;
/// Scope field of the second word of a vector memory instruction.
const SCOPE_SHIFT: u32 = 18;
const SCOPE_MASK: u32 = 3 << SCOPE_SHIFT;
/// Highest count that a wait can name.
const WAIT_MAX: u32 = 63;
/// The largest offset of vector and scalar memory instructions, signed 24 bits.
const OFFSET_MAX: i64 = (1 << 23) - 1;
const LDS_OFFSET_MAX: i64 = 0xFFFF;

/// The kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A removed wait for a memory counter.
    WaitRemoved,
    /// A wait for a memory counter that lets one more operation be outstanding.
    WaitRaised,
    /// A removed `s_wait_alu`.
    AluWaitRemoved,
    /// A removed barrier: both signal and wait.
    BarrierRemoved,
    /// A narrower scope on a load, store or atomic.
    ScopeLowered,
    /// A removed `global_inv`.
    InvalidateRemoved,
    /// A removed `global_wb`.
    WriteBackRemoved,
    /// An access out of bounds: its offset is increased by the size of all the memory that it may access.
    OffsetMoved,
}

/// One change.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutant {
    /// Its class.
    pub class: Class,
    /// Index of the changed instruction.
    pub index: usize,
    /// Offsets of words from the image's start, and their new values.
    pub edits: Vec<(u64, u32)>,
}

impl Class {
    /// Every class.
    pub const ALL: [Class; 8] = [
        Class::WaitRemoved,
        Class::WaitRaised,
        Class::AluWaitRemoved,
        Class::BarrierRemoved,
        Class::ScopeLowered,
        Class::InvalidateRemoved,
        Class::WriteBackRemoved,
        Class::OffsetMoved,
    ];
}

impl fmt::Display for Class {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Class::WaitRemoved => "wait removed",
            Class::WaitRaised => "wait raised by one",
            Class::AluWaitRemoved => "s_wait_alu removed",
            Class::BarrierRemoved => "barrier removed",
            Class::ScopeLowered => "scope lowered",
            Class::InvalidateRemoved => "global_inv removed",
            Class::WriteBackRemoved => "global_wb removed",
            Class::OffsetMoved => "offset moved",
        })
    }
}

/// Every mutant of a class. `buffer_bytes` and `lds_bytes` are the largest sizes that accesses may use.
pub fn mutants(
    code: &[Placed],
    class: Class,
    wave_size: WaveSize,
    buffer_bytes: u64,
    lds_bytes: u64,
) -> Vec<Mutant> {
    let edits_of = |index: usize, placed: &Placed| match class {
        Class::WaitRemoved => memory_wait(&placed.instruction).map(|_| removed(placed)),
        Class::AluWaitRemoved => (placed.instruction.opcode == Opcode::SWaitAlu).then(|| removed(placed)),
        Class::WaitRaised => raised(placed),
        Class::BarrierRemoved => barrier(code, index),
        Class::ScopeLowered => lowered(placed, wave_size),
        Class::InvalidateRemoved => (placed.instruction.opcode == Opcode::GlobalInv).then(|| removed(placed)),
        Class::WriteBackRemoved => (placed.instruction.opcode == Opcode::GlobalWb).then(|| removed(placed)),
        Class::OffsetMoved => moved(placed, wave_size, buffer_bytes, lds_bytes),
    };
    let mutant = |(index, placed): (usize, &Placed)| {
        edits_of(index, placed).map(|edits| Mutant { class, index, edits })
    };
    code.iter().enumerate().filter_map(mutant).collect()
}

/// The counters of a wait, each with the count it waits down to.
fn memory_wait(instruction: &Instruction) -> Option<Vec<(Waited, u32)>> {
    let immediate = instruction.immediate as u32;
    let (high, low) = (immediate >> 8 & WAIT_MAX, immediate & WAIT_MAX);
    Some(match instruction.opcode {
        Opcode::SWaitLoadcnt => vec![(Waited::Load, low)],
        Opcode::SWaitStorecnt => vec![(Waited::Store, low)],
        Opcode::SWaitDscnt => vec![(Waited::Ds, low)],
        Opcode::SWaitKmcnt => vec![(Waited::Km, low)],
        Opcode::SWaitLoadcntDscnt => vec![(Waited::Load, high), (Waited::Ds, low)],
        Opcode::SWaitStorecntDscnt => vec![(Waited::Store, high), (Waited::Ds, low)],
        _ => return None,
    })
}

/// Counters of memory operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    Load,
    Store,
    Ds,
    Km,
}

fn removed(placed: &Placed) -> Vec<(u64, u32)> {
    let words = u64::from(placed.instruction.dword_count);
    (0..words).map(|word| (placed.offset + 4 * word, NOP)).collect()
}

fn raised(placed: &Placed) -> Option<Vec<(u64, u32)>> {
    let waits = memory_wait(&placed.instruction)?;
    let step = if waits.len() == 2 { 0x101 } else { 1 };
    waits.iter().all(|(_, count)| *count < WAIT_MAX).then(|| vec![(placed.offset, placed.words[0] + step)])
}

fn barrier(code: &[Placed], index: usize) -> Option<Vec<(u64, u32)>> {
    let is_signal = code[index].instruction.opcode == Opcode::SBarrierSignal;
    let mut rest = code[index + 1..].iter().take(BARRIER_DISTANCE_MAX);
    let wait = rest.find(|placed| placed.instruction.opcode == Opcode::SBarrierWait).filter(|_| is_signal)?;
    Some([removed(&code[index]), removed(wait)].concat())
}

fn lowered(placed: &Placed, wave_size: WaveSize) -> Option<Vec<(u64, u32)>> {
    let instruction = &placed.instruction;
    let is_cache = matches!(instruction.opcode, Opcode::GlobalInv | Opcode::GlobalWb | Opcode::GlobalWbinv);
    if !matches!(instruction.encoding, Encoding::Vglobal | Encoding::Vflat)
        || is_cache
        || instruction.scope == 0
    {
        return None;
    }
    let mut words = placed.words;
    words[1] &= !SCOPE_MASK;
    let expected = Instruction { scope: 0, ..*instruction };
    is_instruction(&words, wave_size, &expected).then(|| vec![(placed.offset + 4, words[1])])
}

fn moved(placed: &Placed, wave_size: WaveSize, buffer_bytes: u64, lds_bytes: u64) -> Option<Vec<(u64, u32)>> {
    let instruction = &placed.instruction;
    let mut words = placed.words;
    let offset = i64::from(instruction.immediate);
    let is_access = instruction.opcode.mnemonic().contains("_load_")
        || instruction.opcode.mnemonic().contains("_store_")
        || instruction.opcode.mnemonic().contains("_atomic_");
    let (word, value) = match instruction.encoding {
        Encoding::Vglobal | Encoding::Smem if is_access => {
            let value = offset + buffer_bytes as i64;
            let word = if instruction.encoding == Encoding::Smem { 1 } else { 2 };
            let shift = if word == 1 { 0 } else { 8 };
            words[word] = words[word] & !(0x00FF_FFFF << shift) | (value as u32 & 0x00FF_FFFF) << shift;
            (word, Some(value).filter(|value| *value <= OFFSET_MAX)?)
        }
        Encoding::Vds if is_lds_access(instruction) => {
            let value = offset + lds_bytes as i64;
            words[0] = words[0] & !0xFFFF | value as u32 & 0xFFFF;
            (0, Some(value).filter(|value| *value <= LDS_OFFSET_MAX)?)
        }
        _ => return None,
    };
    let expected = Instruction { immediate: value as i32, ..*instruction };
    is_instruction(&words, wave_size, &expected).then(|| vec![(placed.offset + 4 * word as u64, words[word])])
}

/// Whether it is an LDS access with one offset.
fn is_lds_access(instruction: &Instruction) -> bool {
    let name = instruction.opcode.mnemonic();
    let is_access =
        ["ds_load_", "ds_store_", "ds_add_", "ds_sub_", "ds_and_", "ds_or_", "ds_xor_", "ds_min_", "ds_max_"]
            .iter()
            .any(|start| name.starts_with(start));
    is_access && !name.contains("2addr") && !name.contains("addtid")
}

fn is_instruction(words: &[u32; 4], wave_size: WaveSize, expected: &Instruction) -> bool {
    decode_for(words, wave_size).as_ref() == Ok(expected)
}

/// Why a mutant may have had no effect, as far as the surrounding instructions show. `known` are the offsets at which
/// the program has findings of its own.
pub fn explain(code: &[Placed], mutant: &Mutant, wave_size: WaveSize, known: &BTreeSet<u64>) -> &'static str {
    let Some(waits) = memory_wait(&code[mutant.index].instruction) else {
        return match mutant.class {
            Class::AluWaitRemoved => "a wait that the path or the lenient rule does not need",
            Class::BarrierRemoved => "no conflict between its sides, or another barrier",
            Class::ScopeLowered => "sides on one compute unit, or ordered by what stands beside it",
            Class::InvalidateRemoved => "nothing stale is loaded behind it, or another one",
            Class::WriteBackRemoved => "no host looks on",
            _ => "never executed by a lane, or unexplained",
        };
    };
    let targets = branch_targets(code);
    let reasons = waits.iter().map(|wait| {
        let (reason, place) = explain_wait(code, mutant, *wait, &targets, wave_size);
        if reason == UNEXPLAINED && known.contains(&place) { SHADOWED } else { reason }
    });
    // The most serious reason is the last in the list.
    reasons.max_by_key(|reason| WAIT_REASONS.iter().position(|known| known == reason)).unwrap_or(UNKNOWN)
}

const NOTHING_OUTSTANDING: &str = "wait with nothing outstanding on this path";
const LATER_WAIT: &str = "a later wait comes before the first use";
const NO_SIGNAL: &str = "stores that no signal, flag or end of this path publishes";
const UNKNOWN: &str = "wait at a branch or call: path unknown";
const NOBODYS: &str = "operations before a signal, which nobody meets behind it";
const SHADOWED: &str = "its program has a finding at the same place";
/// Not a reason: the device has no delay that would show a missing wait, so a rule must have detected it.
pub const UNEXPLAINED: &str = "a result under way is used";
const WAIT_REASONS: [&str; 7] =
    [NOTHING_OUTSTANDING, LATER_WAIT, NO_SIGNAL, UNKNOWN, NOBODYS, SHADOWED, UNEXPLAINED];

/// The reason for one counter of a wait, given the count it waits down to, and the offset of the instruction
/// concerned.
fn explain_wait(
    code: &[Placed],
    mutant: &Mutant,
    (counter, count): (Waited, u32),
    targets: &[u64],
    wave_size: WaveSize,
) -> (&'static str, u64) {
    let is_target = |placed: &Placed| targets.binary_search(&placed.offset).is_ok();
    // The registers of each outstanding operation, the youngest first.
    let mut outstanding: Vec<Vec<(Registers, Part)>> = Vec::new();
    let mut outstanding_max = usize::MAX;
    let mut end = None;
    for placed in code[..mutant.index].iter().rev().take(LOOK_MAX) {
        if let Some(left) = left_by(&placed.instruction, counter) {
            outstanding_max = outstanding_max.min(outstanding.len() + left as usize);
        }
        if outstanding.len() >= outstanding_max {
            break;
        }
        if leaves(&placed.instruction) {
            end = Some(placed.offset);
            break;
        }
        if raises(&placed.instruction, counter, wave_size) {
            let effects = Effects::of(&placed.instruction, wave_size);
            outstanding.push(effects.writes.iter().map(|&registers| (registers, effects.moved)).collect());
        }
        if is_target(placed) {
            end = Some(placed.offset);
            break;
        }
    }
    // The operations guarded by the wait: all but the youngest; a raised wait lets one more be outstanding. Scalar
    // loads return in any order, so it may be any of them.
    let is_in_order = counter != Waited::Km;
    let guarded = outstanding.into_iter().enumerate().skip(if is_in_order { count as usize } else { 0 });
    let guarded_max = if mutant.class == Class::WaitRaised && is_in_order { 1 } else { usize::MAX };
    let mut guarded: Vec<(usize, Vec<(Registers, Part)>)> = guarded.take(guarded_max).collect();
    if guarded.is_empty() {
        return end.map_or((NOTHING_OUTSTANDING, 0), |place| (UNKNOWN, place));
    }
    let mut younger = 0;
    for placed in code[mutant.index + 1..].iter().take(LOOK_MAX) {
        let instruction = &placed.instruction;
        if let Some(left) = left_by(instruction, counter) {
            guarded.retain(|(index, _)| index + younger < left as usize);
            if guarded.is_empty() {
                return (LATER_WAIT, placed.offset);
            }
        }
        let is_flag = counter == Waited::Store && instruction.scope > 0;
        if instruction.opcode == Opcode::SBarrierSignal || is_flag {
            return (NOBODYS, placed.offset);
        }
        let effects = Effects::of(instruction, wave_size);
        let meets = |registers: &Registers, part: Part| {
            let (range, halves) = (registers.range(), part.halves());
            let mut written = guarded.iter().flat_map(|(_, written)| written);
            written.any(|(one, moved)| {
                let is_same_half = moved.halves().start < halves.end && halves.start < moved.halves().end;
                is_same_half && one.range().start < range.end && range.start < one.range().end
            })
        };
        let is_ordered = counter == Waited::Ds && effects.in_order_counter().is_some();
        let part_of = |role| if role == Role::Data { effects.moved } else { Part::Whole };
        if effects.reads.iter().any(|read| meets(&read.registers, part_of(read.role)))
            || !is_ordered && effects.writes.iter().any(|registers| meets(registers, effects.moved))
        {
            return (UNEXPLAINED, placed.offset);
        }
        younger += usize::from(raises(instruction, counter, wave_size));
        if leaves(instruction) || is_target(placed) {
            break;
        }
    }
    (if counter == Waited::Store { NO_SIGNAL } else { UNKNOWN }, 0)
}

/// Operations of a counter that may be outstanding after an instruction, if it waits for that counter. A wait that
/// leaves some of several scalar loads open guards none of them.
fn left_by(instruction: &Instruction, counter: Waited) -> Option<u32> {
    waited_down_to(instruction, counter).filter(|left| counter != Waited::Km || *left == 0)
}

fn waited_down_to(instruction: &Instruction, counter: Waited) -> Option<u32> {
    if instruction.opcode == Opcode::SWaitIdle {
        return Some(0);
    }
    let waits = memory_wait(instruction)?;
    waits.iter().find(|(waited, _)| *waited == counter).map(|(_, count)| *count)
}

fn raises(instruction: &Instruction, counter: Waited, wave_size: WaveSize) -> bool {
    let effects = Effects::of(instruction, wave_size);
    match counter {
        Waited::Load => effects.counters.contains(&Counter::Load),
        Waited::Ds => effects.counters.contains(&Counter::Ds),
        Waited::Km => effects.counters.contains(&Counter::Km),
        Waited::Store => effects.is_store,
    }
}

/// Branches, calls and program ends.
fn leaves(instruction: &Instruction) -> bool {
    let name = instruction.opcode.mnemonic();
    ["s_branch", "s_cbranch", "s_swappc", "s_setpc", "s_call", "s_endpgm"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Targets of branches, ascending.
fn branch_targets(code: &[Placed]) -> Vec<u64> {
    let branches = code.iter().filter(|placed| placed.instruction.opcode.mnemonic().contains("branch"));
    let target = |placed: &Placed| {
        let distance = i64::from(placed.instruction.immediate as i16) * 4;
        placed.offset.wrapping_add(4).wrapping_add_signed(distance)
    };
    let mut targets: Vec<u64> = branches.map(target).collect();
    targets.sort_unstable();
    targets
}

#[cfg(test)]
mod tests;
