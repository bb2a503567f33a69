//! A command: what the host asks of the device, one line of the input ring.
//!
//! | field of [`CommandLine`] | written by | read by |
//! |---|---|---|
//! | `tag`, `trailer` | the host's ring, the tag last | PLAN |
//! | `kind_slot` to `position`, `seed_low` to `extras` | the host | PLAN; SAMPLE what PLAN copies into the slot |
//!
//! PLAN consumes at most 8 commands between two steps, in their order. [`Command`] says what it does with each.

use crate::layout::{layout, numbers};
use crate::slot::{Slot, SlotState};
use core::mem::offset_of;

layout! {
    /// A line of the input ring: 64 bytes.
    CommandLine {
        /// Belongs to the ring.
        tag: u32,
        /// [`CommandKind`] in bits 7:0, the slot's number above; 0 if the kind has no slot.
        kind_slot: u32,
        /// Number of the request.
        serial: u32,
        /// Admit: tokens of the request. Resume: the position that its next row consumes.
        known: u32,
        /// Admit: the sequence ends when this many tokens are known.
        limit: u32,
        /// Admit: the position that the first row consumes.
        position: u32,
        /// Admit: [`Draws::seed`], low half. The next eight fields are for Admit, too.
        seed_low: u32,
        /// [`Draws::seed`], high half.
        seed_high: u32,
        /// [`Draws::inverse_temperature`].
        inverse_temperature: u32,
        /// [`Draws::top_k`].
        top_k: u32,
        /// [`Draws::top_p`].
        top_p: u32,
        /// [`Draws::penalty`].
        penalty: u32,
        /// [`Draws::inverse_penalty`].
        inverse_penalty: u32,
        /// [`Draws::penalty_window`].
        penalty_window: u32,
        /// [`Draws::extras`].
        extras: u32,
        /// Belongs to the ring.
        trailer: u32,
    }
}

/// PLAN copies the nine dwords of the draws into the slot as they are.
const _: () = assert!(
    offset_of!(CommandLine, extras) - offset_of!(CommandLine, seed_low) == 32
        && offset_of!(SlotState, extras) - offset_of!(SlotState, seed_low) == 32
        && offset_of!(CommandLine, penalty_window) - offset_of!(CommandLine, seed_low) == 28
        && offset_of!(SlotState, penalty_window) - offset_of!(SlotState, seed_low) == 28
        && offset_of!(CommandLine, inverse_temperature) - offset_of!(CommandLine, seed_low)
            == offset_of!(SlotState, inverse_temperature) - offset_of!(SlotState, seed_low)
        && offset_of!(CommandLine, top_p) - offset_of!(CommandLine, seed_low)
            == offset_of!(SlotState, top_p) - offset_of!(SlotState, seed_low)
);

numbers! {
    /// The number of a command.
    CommandKind as "COMMAND" {
        /// [`Command::Admit`].
        Admit = 1,
        /// [`Command::Resume`].
        Resume = 2,
        /// [`Command::Drain`].
        Drain = 3,
        /// [`Command::Stop`].
        Stop = 4,
    }
}

/// How the tokens of a request are drawn: what a command, a slot and SAMPLE hold as dwords.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Draws {
    /// Seed of the draws.
    pub seed: u64,
    /// f32 bits of 1/temperature; 0: the largest logit wins.
    pub inverse_temperature: u32,
    /// Maximum number of candidates kept; 0: all.
    pub top_k: u32,
    /// Share of the weight that is kept, in units of 2^-32; 0: all.
    pub top_p: u32,
    /// f32 bits of the repetition penalty.
    pub penalty: u32,
    /// f32 bits of 1/penalty, rounded once.
    pub inverse_penalty: u32,
    /// Last known tokens that are penalised; 0: none.
    pub penalty_window: u32,
    /// [`EXTRAS_ADJUST`](crate::EXTRAS_ADJUST), [`EXTRAS_FILTER`](crate::EXTRAS_FILTER) and
    /// [`EXTRAS_TOPS`](crate::EXTRAS_TOPS): what of the slot's [`Extras`](crate::Extras) counts; 0: nothing.
    pub extras: u32,
}

/// What the host asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Put a request into a free slot, with tokens and stop tokens that were written before. Ignored if the slot is
    /// taken, and after [`Command::Drain`].
    Admit {
        /// The slot.
        slot: Slot,
        /// The request's number, not 0.
        serial: u32,
        /// Tokens of the request.
        known: u32,
        /// The sequence ends when this many tokens are known.
        limit: u32,
        /// The position that its first row consumes, below `known`: its first pages, granted before, hold the keys and
        /// values of the positions before it.
        position: u32,
        /// How tokens are drawn.
        draws: Draws,
    },
    /// Resume a parked request at a position. At position 0 its pages are granted anew; at any other it keeps those
    /// that it has. Ignored if the slot holds no parked request with this number.
    Resume {
        /// The slot.
        slot: Slot,
        /// The request's number.
        serial: u32,
        /// The position that its next row consumes.
        position: u32,
    },
    /// Admit nothing more, and leave when no slot holds a request; a parked request holds its slot.
    Drain,
    /// Leave now: the previous step is ended and its events are sent as far as there is room; no further step runs.
    Stop,
}

impl From<&Command> for CommandLine {
    fn from(command: &Command) -> CommandLine {
        let kind_slot = |kind: CommandKind, slot: Slot| kind as u32 | slot.number() << 8;
        match *command {
            Command::Admit { slot, serial, known, limit, position, draws } => CommandLine {
                kind_slot: kind_slot(CommandKind::Admit, slot),
                serial,
                known,
                limit,
                position,
                seed_low: draws.seed as u32,
                seed_high: (draws.seed >> 32) as u32,
                inverse_temperature: draws.inverse_temperature,
                top_k: draws.top_k,
                top_p: draws.top_p,
                penalty: draws.penalty,
                inverse_penalty: draws.inverse_penalty,
                penalty_window: draws.penalty_window,
                extras: draws.extras,
                ..CommandLine::default()
            },
            Command::Resume { slot, serial, position } => CommandLine {
                kind_slot: kind_slot(CommandKind::Resume, slot),
                serial,
                known: position,
                ..CommandLine::default()
            },
            Command::Drain => CommandLine { kind_slot: CommandKind::Drain as u32, ..CommandLine::default() },
            Command::Stop => CommandLine { kind_slot: CommandKind::Stop as u32, ..CommandLine::default() },
        }
    }
}

/// The dwords of a command's line; tag and trailer are 0.
impl From<&Command> for [u32; 16] {
    fn from(command: &Command) -> [u32; 16] {
        zerocopy::transmute!(CommandLine::from(command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::written;

    #[test]
    fn a_command_line_lies_as_written_down() {
        let expected = "\
CommandLine 64
   0 tag
   4 kind_slot
   8 serial
  12 known
  16 limit
  20 position
  24 seed_low
  28 seed_high
  32 inverse_temperature
  36 top_k
  40 top_p
  44 penalty
  48 inverse_penalty
  52 penalty_window
  56 extras
  60 trailer
";
        assert_eq!(written(&CommandLine::LAYOUT), expected);
        assert_eq!(CommandKind::NUMBERS.values, [("Admit", 1), ("Resume", 2), ("Drain", 3), ("Stop", 4)]);
    }

    #[test]
    fn every_command_has_the_dwords_written_down() {
        let slot = Slot::new(63).unwrap();
        let draws = Draws {
            seed: 0x1107_0000_0106,
            inverse_temperature: 108,
            top_k: 109,
            top_p: 110,
            penalty: 111,
            inverse_penalty: 112,
            penalty_window: 113,
            extras: 114,
        };
        let admit = Command::Admit { slot, serial: 102, known: 103, limit: 104, position: 105, draws };
        let line = [0, 0x3f01, 102, 103, 104, 105, 0x106, 0x1107, 108, 109, 110, 111, 112, 113, 114, 0];
        assert_eq!(<[u32; 16]>::from(&admit), line);
        let resume = Command::Resume { slot: Slot::new(5).unwrap(), serial: 102, position: 103 };
        let line = [0, 0x0502, 102, 103, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(<[u32; 16]>::from(&resume), line);
        for (command, number) in [(Command::Drain, 3), (Command::Stop, 4)] {
            let line: [u32; 16] = core::array::from_fn(|at| if at == 1 { number } else { 0 });
            assert_eq!(<[u32; 16]>::from(&command), line);
        }
    }
}
