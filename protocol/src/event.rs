//! An event: what the device reports about a request, one line of the output ring.
//!
//! | field of [`EventLine`] | written by | read by |
//! |---|---|---|
//! | `tag`, `trailer` | PLAN, the tag last, with system scope | the host's ring |
//! | `kind_slot`, `serial`, `token`, `index`, `reason` | PLAN | the host |
//! | `epoch` | PLAN | nobody; in a dump of the ring it shows the step |
//! | `zero` | PLAN, zero | the host, which refuses anything else |
//!
//! Contract: lines come from outside, so parsing is strict: a kind or a reason that does not exist, a slot that no
//! session has, or a nonzero dword that must be zero is an [`EventError`]. The session checks that request and index
//! are the expected ones.

use crate::layout::{layout, numbers};
use crate::slot::{FinishReason, SLOTS_MAX, Slot};

/// Dwords that must be zero: all from this one on in every line, and one of the other two in each kind.
const ZERO_DWORD: usize = core::mem::offset_of!(EventLine, zero) / 4;
const TOKEN_DWORD: usize = core::mem::offset_of!(EventLine, token) / 4;
const REASON_DWORD: usize = core::mem::offset_of!(EventLine, reason) / 4;
const HAS_TOPS_DWORD: usize = core::mem::offset_of!(EventLine, has_tops) / 4;

layout! {
    /// A line of the output ring: 64 bytes.
    EventLine {
        /// Belongs to the ring.
        tag: u32,
        /// [`EventKind`] in bits 7:0, the slot's number above.
        kind_slot: u32,
        /// Number of the request.
        serial: u32,
        /// Token: the token. Preempted: the position that the next row consumes. Finished: 0.
        token: u32,
        /// Token and Preempted: tokens that are known, less 1. Finished: tokens that are known.
        index: u32,
        /// Finished: [`FinishReason`] as a number. Else 0.
        reason: u32,
        /// The step that PLAN ended.
        epoch: u32,
        /// Token: 1 if [`TopTokens`](crate::TopTokens) come with it. Else 0.
        has_tops: u32,
        /// 0.
        zero: [u32; 7],
        /// Belongs to the ring.
        trailer: u32,
    }
}

numbers! {
    /// The number of an event.
    EventKind as "EVENT" {
        /// [`Event::Token`].
        Token = 1,
        /// [`Event::Finished`].
        Finished = 2,
        /// [`Event::Preempted`].
        Preempted = 3,
    }
}

/// What happened to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A token was chosen.
    Token {
        /// The slot.
        slot: Slot,
        /// The request's number.
        serial: u32,
        /// The token.
        token: u32,
        /// Its index in the sequence, prompt included.
        index: u32,
        /// Whether the entry's [`TopTokens`](crate::TopTokens) belong to it.
        has_tops: bool,
    },
    /// The request has ended; its slot is free.
    Finished {
        /// The slot.
        slot: Slot,
        /// The request's number.
        serial: u32,
        /// Why it has ended.
        reason: FinishReason,
        /// Tokens that are known, prompt included.
        known: u32,
    },
    /// The request was parked: it keeps its slot and its pages, and may be resumed.
    Preempted {
        /// The slot.
        slot: Slot,
        /// The request's number.
        serial: u32,
        /// The position that its next row consumes.
        position: u32,
        /// Index of the last token that is known.
        index: u32,
    },
}

/// Why a line is not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventError {
    /// No event is of this kind.
    Kind {
        /// Bits 7:0 of dword 1.
        kind: u32,
    },
    /// No session has this slot.
    Slot {
        /// Bits 31:8 of dword 1.
        slot: u32,
    },
    /// No request ends for this reason.
    Reason {
        /// Dword 5.
        reason: u32,
    },
    /// A dword that must be zero is not.
    NotZero {
        /// Index of the dword.
        dword: usize,
        /// What it holds.
        value: u32,
    },
}

impl core::fmt::Display for EventError {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            EventError::Kind { kind } => write!(formatter, "there is no event of kind {kind}"),
            EventError::Slot { slot } => write!(formatter, "slot {slot} is not one of {SLOTS_MAX}"),
            EventError::Reason { reason } => write!(formatter, "no request ends for reason {reason}"),
            EventError::NotZero { dword, value } => {
                write!(formatter, "dword {dword} is {value:#x} and must be zero")
            }
        }
    }
}

impl core::error::Error for EventError {}

impl TryFrom<[u32; 16]> for Event {
    type Error = EventError;

    /// The event in a line. Tag and trailer are ignored.
    fn try_from(dwords: [u32; 16]) -> Result<Event, EventError> {
        let line: EventLine = zerocopy::transmute!(dwords);
        let EventLine { kind_slot, serial, token, index, reason, has_tops, .. } = line;
        let (kind, number) = (kind_slot & 0xff, kind_slot >> 8);
        let kind = EventKind::from_number(kind).ok_or(EventError::Kind { kind })?;
        let slot = Slot::new(number).ok_or(EventError::Slot { slot: number })?;
        let (dword, value) = match kind {
            EventKind::Finished => (TOKEN_DWORD, token),
            EventKind::Token | EventKind::Preempted => (REASON_DWORD, reason),
        };
        if value != 0 {
            return Err(EventError::NotZero { dword, value });
        }
        let has_tops_max = u32::from(kind == EventKind::Token);
        if has_tops > has_tops_max {
            return Err(EventError::NotZero { dword: HAS_TOPS_DWORD, value: has_tops });
        }
        if let Some(place) = line.zero.iter().position(|value| *value != 0) {
            return Err(EventError::NotZero { dword: ZERO_DWORD + place, value: line.zero[place] });
        }
        Ok(match kind {
            EventKind::Token => Event::Token { slot, serial, token, index, has_tops: has_tops == 1 },
            EventKind::Finished => {
                let reason = FinishReason::from_number(reason).ok_or(EventError::Reason { reason })?;
                Event::Finished { slot, serial, reason, known: index }
            }
            EventKind::Preempted => Event::Preempted { slot, serial, position: token, index },
        })
    }
}

impl Event {
    /// The slot and the number of the request that the event is about.
    pub const fn request(&self) -> (Slot, u32) {
        match *self {
            Event::Token { slot, serial, .. }
            | Event::Finished { slot, serial, .. }
            | Event::Preempted { slot, serial, .. } => (slot, serial),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::written;

    #[test]
    fn an_event_line_lies_as_written_down() {
        let expected = "\
EventLine 64
   0 tag
   4 kind_slot
   8 serial
  12 token
  16 index
  20 reason
  24 epoch
  28 has_tops
  32 zero
  60 trailer
";
        assert_eq!(written(&EventLine::LAYOUT), expected);
        assert_eq!(EventKind::NUMBERS.values, [("Token", 1), ("Finished", 2), ("Preempted", 3)]);
    }

    #[test]
    fn every_event_is_read_from_the_dwords_written_down() {
        let line = |kind: u32, reason: u32| {
            let token = if kind == 2 { 0 } else { 103 };
            [9, 0x3f00 | kind, 102, token, 104, reason, 106, 0, 0, 0, 0, 0, 0, 0, 0, 9]
        };
        let (slot, serial) = (Slot::new(63).unwrap(), 102);
        let token = Event::Token { slot, serial, token: 103, index: 104, has_tops: false };
        assert_eq!(Event::try_from(line(1, 0)), Ok(token));
        let preempted = Event::Preempted { slot, serial, position: 103, index: 104 };
        assert_eq!(Event::try_from(line(3, 0)), Ok(preempted));
        for (number, reason) in
            [(1, FinishReason::Stop), (2, FinishReason::Length), (3, FinishReason::Cancelled)]
        {
            let finished = Event::Finished { slot, serial, reason, known: 104 };
            assert_eq!(Event::try_from(line(2, number)), Ok(finished));
            assert_eq!(finished.request(), (slot, serial));
        }
    }

    #[test]
    fn a_refusal_says_what_the_line_holds() {
        let text = |error: EventError| std::string::ToString::to_string(&error);
        assert_eq!(text(EventError::Kind { kind: 77 }), "there is no event of kind 77");
        assert_eq!(text(EventError::Slot { slot: 640 }), "slot 640 is not one of 64");
        assert_eq!(text(EventError::Reason { reason: 9 }), "no request ends for reason 9");
        assert_eq!(
            text(EventError::NotZero { dword: 12, value: 0xbeef }),
            "dword 12 is 0xbeef and must be zero"
        );
    }

    #[test]
    fn what_no_event_says_is_refused() {
        let parse = |at: usize, value: u32| {
            let mut line = [0, 1, 2, 3, 4, 0, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            line[at] = value;
            Event::try_from(line)
        };
        assert!(parse(1, 1).is_ok());
        for kind in (4..256).chain([0]) {
            assert_eq!(parse(1, kind), Err(EventError::Kind { kind }));
        }
        for slot in [64, 65, 127, 255, 256, (1 << 24) - 1] {
            assert_eq!(parse(1, 1 | slot << 8), Err(EventError::Slot { slot }));
        }
        for dword in 7..15 {
            assert_eq!(parse(dword, 9), Err(EventError::NotZero { dword, value: 9 }));
        }
        assert!(matches!(parse(7, 1), Ok(Event::Token { has_tops: true, .. })));
        for kind in [2, 3] {
            let line = [0, kind, 2, 0, 4, (kind & 1) ^ 1, 6, 1, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(Event::try_from(line), Err(EventError::NotZero { dword: 7, value: 1 }));
        }
        // A token or a park has no reason, and an end no token.
        for kind in [1, 3] {
            let line = [0, kind, 2, 3, 4, 1, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(Event::try_from(line), Err(EventError::NotZero { dword: 5, value: 1 }));
        }
        let line = [0, 2, 2, 3, 4, 1, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(Event::try_from(line), Err(EventError::NotZero { dword: 3, value: 3 }));
        for reason in [0, 4, u32::MAX] {
            let line = [0, 2, 2, 0, 4, reason, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            assert_eq!(Event::try_from(line), Err(EventError::Reason { reason }));
        }
    }
}
