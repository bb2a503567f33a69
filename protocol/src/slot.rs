//! A slot: the place of a running request, as the device keeps it.
//!
//! | field of [`SlotState`] | written by | read by |
//! |---|---|---|
//! | `phase`, `serial`, `position`, `known`, `pages`, `pending`, `pending_token`, `reason` | PLAN | PLAN; BOUNDARY the serial |
//! | `limit` | PLAN, from the command | PLAN |
//! | `step_rows`, `step_output` | PLAN; BOUNDARY clears them | PLAN, BOUNDARY the rows |
//! | `sampled` | SAMPLE; PLAN stores it back unchanged | PLAN |
//! | `seed_low` to `penalty_window` | PLAN, from the command | SAMPLE |
//! | `extras` | PLAN, from the command | SAMPLE, PLAN |
//! | `stop` | PLAN, from the host's list of stop tokens | PLAN |
//! | `reserved` | the host, zero, before the kernel starts | nobody |
//!
//! The host writes the whole table as zeros before the first step and does not touch it afterwards.

use crate::layout::{layout, numbers};

/// Maximum number of slots of a session.
pub const SLOTS_MAX: usize = 64;
/// Maximum number of stop tokens of a request.
pub const STOP_TOKENS_MAX: usize = 8;
/// Tokens of a page of the key-value cache.
pub const PAGE_TOKENS: u32 = 16;

/// The number of a slot, below [`SLOTS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Slot(u8);

impl Slot {
    /// The slot with this number; `None` if no session has such a slot.
    pub const fn new(number: u32) -> Option<Slot> {
        if number < SLOTS_MAX as u32 { Some(Slot(number as u8)) } else { None }
    }

    /// The first `count` slots, at most [`SLOTS_MAX`], in ascending order.
    pub fn first(count: u32) -> impl Iterator<Item = Slot> {
        (0..count).map_while(Slot::new)
    }

    /// Its number.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }

    /// Its number, as the index of a table with an entry for each slot.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

layout! {
    /// A slot, as the device keeps it: 128 bytes, written by the device only.
    SlotState {
        /// [`SlotPhase`] as a number.
        phase: u32,
        /// Number of the request that holds the slot; never 0 while one does.
        serial: u32,
        /// The position that the next row consumes.
        position: u32,
        /// Tokens of the sequence that are known: prompt and choices.
        known: u32,
        /// The sequence ends when this many tokens are known.
        limit: u32,
        /// Pages in the device's page table.
        pages: u32,
        /// Rows of the current step that come from this slot. BOUNDARY sets it to 0 when it drops them.
        step_rows: u32,
        /// 1 + the number of the output that the current step makes for this slot; 0: none, or dropped.
        step_output: u32,
        /// SAMPLE's choice.
        sampled: u32,
        /// [`EventKind`](crate::EventKind) of the event that waits for room in the output ring; 0: none.
        pending: u32,
        /// The token of that event, or the position of a preempted request.
        pending_token: u32,
        /// [`FinishReason`] as a number; 0 while the request runs.
        reason: u32,
        /// [`Draws::seed`](crate::Draws::seed), low half.
        seed_low: u32,
        /// [`Draws::seed`](crate::Draws::seed), high half.
        seed_high: u32,
        /// [`Draws::inverse_temperature`](crate::Draws::inverse_temperature).
        inverse_temperature: u32,
        /// [`Draws::top_k`](crate::Draws::top_k).
        top_k: u32,
        /// [`Draws::top_p`](crate::Draws::top_p).
        top_p: u32,
        /// [`Draws::penalty`](crate::Draws::penalty).
        penalty: u32,
        /// [`Draws::inverse_penalty`](crate::Draws::inverse_penalty).
        inverse_penalty: u32,
        /// [`Draws::penalty_window`](crate::Draws::penalty_window).
        penalty_window: u32,
        /// [`Draws::extras`](crate::Draws::extras).
        extras: u32,
        /// 0.
        reserved: [u32; 3],
        /// Tokens that end the sequence; unused places hold `u32::MAX`.
        stop: [u32; STOP_TOKENS_MAX],
    }
}

numbers! {
    /// What a slot is doing.
    SlotPhase as "PHASE" {
        /// Nothing; a request may be put in.
        Free = 0,
        /// Its request takes part in steps.
        Active = 1,
        /// Its request was preempted and waits to be resumed.
        Parked = 2,
    }
}

numbers! {
    /// Why a request ended.
    FinishReason as "REASON" {
        /// A stop token was chosen.
        Stop = 1,
        /// The limit of known tokens was reached.
        Length = 2,
        /// The host cancelled it.
        Cancelled = 3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::written;

    #[test]
    fn a_slot_lies_as_written_down() {
        let expected = "\
SlotState 128
   0 phase
   4 serial
   8 position
  12 known
  16 limit
  20 pages
  24 step_rows
  28 step_output
  32 sampled
  36 pending
  40 pending_token
  44 reason
  48 seed_low
  52 seed_high
  56 inverse_temperature
  60 top_k
  64 top_p
  68 penalty
  72 inverse_penalty
  76 penalty_window
  80 extras
  84 reserved
  96 stop
";
        assert_eq!(written(&SlotState::LAYOUT), expected);
    }

    #[test]
    fn phases_and_reasons_have_the_numbers_written_down() {
        assert_eq!(SlotPhase::NUMBERS.values, [("Free", 0), ("Active", 1), ("Parked", 2)]);
        assert_eq!(FinishReason::NUMBERS.values, [("Stop", 1), ("Length", 2), ("Cancelled", 3)]);
        let reasons = [FinishReason::Stop, FinishReason::Length, FinishReason::Cancelled];
        assert_eq!([1, 2, 3].map(FinishReason::from_number), reasons.map(Some));
        assert_eq!([0, 4, u32::MAX].map(FinishReason::from_number), [None; 3]);
    }

    #[test]
    fn there_are_sixty_four_slots() {
        assert_eq!(
            Slot::first(u32::MAX).map(Slot::number).collect::<std::vec::Vec<_>>(),
            (0..64).collect::<std::vec::Vec<_>>()
        );
        assert_eq!(Slot::first(3).map(Slot::index).collect::<std::vec::Vec<_>>(), [0, 1, 2]);
        assert_eq!([64, 256, u32::MAX].map(Slot::new), [None; 3]);
    }
}
