//! What the entries of the token rings say, and where in the line each field lies.
//!
//! Contract: entries come from outside, so parsing is strict: a kind that does not exist, a slot that no
//! session has or a dword that must be zero and is not gives an [`EntryError`]. Numbers that only a session
//! can judge (tokens, reasons, serials) pass as they are. Dword 0 (tag) and dword 15 (trailer) belong to the
//! ring and are not looked at here.

use super::line::LINE_DWORDS;

/// Slots of a session at most.
pub const RING_SLOTS_MAX: u32 = 64;
/// Dwords of an entry.
pub const ENTRY_DWORDS: usize = LINE_DWORDS;
/// Bytes of an entry: a cache line, and what a write-combining buffer holds.
pub const ENTRY_BYTES: usize = ENTRY_DWORDS * 4;

/// Dwords of an [`InputEntry`] by field; 0 is the tag, 15 the trailer.
pub mod input_dword {
    /// Kind in bits 7:0, slot above.
    pub const KIND_SLOT: usize = 1;
    /// Serial number of the request.
    pub const SERIAL: usize = 2;
    /// Tokens in the history.
    pub const KNOWN: usize = 3;
    /// Tokens at which the sequence ends.
    pub const LIMIT: usize = 4;
    /// Index of the slot's first token in the token buffer.
    pub const TOKENS_OFFSET: usize = 5;
    /// Seed, low half.
    pub const SEED_LOW: usize = 6;
    /// Seed, high half.
    pub const SEED_HIGH: usize = 7;
    /// f32 bits of 1/temperature.
    pub const INVERSE_TEMPERATURE: usize = 8;
    /// Candidates kept.
    pub const TOP_K: usize = 9;
    /// Share of the weight kept.
    pub const TOP_P: usize = 10;
    /// f32 bits of the repetition penalty.
    pub const PENALTY: usize = 11;
    /// f32 bits of 1/penalty.
    pub const INVERSE_PENALTY: usize = 12;
    /// Tokens that are penalised.
    pub const PENALTY_WINDOW: usize = 13;
    /// Stop tokens.
    pub const STOP_COUNT: usize = 14;
}

/// Dwords of an [`OutputEntry`] by field; 0 is the tag, 7 to 14 are zero, 15 is the trailer.
pub mod output_dword {
    /// Kind in bits 7:0, slot above.
    pub const KIND_SLOT: usize = 1;
    /// Serial number of the request.
    pub const SERIAL: usize = 2;
    /// The token.
    pub const TOKEN: usize = 3;
    /// The token's index in its sequence.
    pub const INDEX: usize = 4;
    /// Why the request ended.
    pub const REASON: usize = 5;
    /// Number of the step.
    pub const EPOCH: usize = 6;
    /// First of the dwords that are zero; the trailer ends them.
    pub const ZERO: usize = 7;
}

/// What the host asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum InputKind {
    /// Put a request into a free slot.
    Admit = 1,
    /// Put a preempted request back, with the tokens it has.
    Resume = 2,
    /// Make what is in the slots, then say so.
    Drain = 3,
    /// Leave at the end of the step.
    Stop = 4,
}

/// What the device tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum OutputKind {
    /// A token was chosen.
    Token = 1,
    /// A request ended; its slot is free.
    Finished = 2,
    /// A request was taken out of its slot and may be resumed.
    Preempted = 3,
    /// All slots are free, as was asked.
    Drained = 4,
}

/// Host to device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InputEntry {
    /// What is asked.
    pub kind: InputKind,
    /// Slot, below [`RING_SLOTS_MAX`]; 0 where the kind has none.
    pub slot: u32,
    /// Serial number of the request.
    pub serial: u32,
    /// Tokens in the history.
    pub known: u32,
    /// The sequence ends when this many tokens are known.
    pub limit: u32,
    /// Index of the slot's first token in the token buffer.
    pub tokens_offset: u32,
    /// Seed of the draws.
    pub seed: u64,
    /// f32 bits of 1/temperature; 0: the largest logit wins.
    pub inverse_temperature: u32,
    /// Candidates kept at most; 0: all.
    pub top_k: u32,
    /// Share of the weight that is kept, in units of 2^-32; 0: all.
    pub top_p: u32,
    /// f32 bits of the repetition penalty.
    pub penalty: u32,
    /// f32 bits of 1/penalty, rounded once.
    pub inverse_penalty: u32,
    /// Last known tokens that are penalised; 0: none.
    pub penalty_window: u32,
    /// Stop tokens.
    pub stop_count: u32,
}

/// Device to host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OutputEntry {
    /// What is told.
    pub kind: OutputKind,
    /// Slot, below [`RING_SLOTS_MAX`]; 0 where the kind has none.
    pub slot: u32,
    /// Serial number of the request.
    pub serial: u32,
    /// The token.
    pub token: u32,
    /// The token's index in its sequence.
    pub index: u32,
    /// Why the request ended, as the session numbers it.
    pub reason: u32,
    /// Number of the step.
    pub epoch: u32,
}

/// Why a line is no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// No entry is of this kind.
    #[error("there is no entry of kind {kind}")]
    Kind {
        /// Bits 7:0 of dword 1.
        kind: u32,
    },
    /// No session has this slot.
    #[error("slot {slot} is not one of {RING_SLOTS_MAX}")]
    Slot {
        /// The slot.
        slot: u32,
    },
    /// A dword that must be zero is not.
    #[error("dword {dword} is {value:#x} and must be zero")]
    NotZero {
        /// Which.
        dword: usize,
        /// What it holds.
        value: u32,
    },
}

impl InputKind {
    const ALL: [InputKind; 4] = [InputKind::Admit, InputKind::Resume, InputKind::Drain, InputKind::Stop];
}

impl OutputKind {
    const ALL: [OutputKind; 4] =
        [OutputKind::Token, OutputKind::Finished, OutputKind::Preempted, OutputKind::Drained];
}

const fn check_slot(slot: u32) -> Result<u32, EntryError> {
    if slot < RING_SLOTS_MAX { Ok(slot) } else { Err(EntryError::Slot { slot }) }
}

impl InputEntry {
    /// An entry of `kind` that says nothing else.
    pub const fn new(kind: InputKind) -> InputEntry {
        InputEntry {
            kind,
            slot: 0,
            serial: 0,
            known: 0,
            limit: 0,
            tokens_offset: 0,
            seed: 0,
            inverse_temperature: 0,
            top_k: 0,
            top_p: 0,
            penalty: 0,
            inverse_penalty: 0,
            penalty_window: 0,
            stop_count: 0,
        }
    }

    /// The entry as it lies in a line; tag and trailer are zero.
    pub fn to_dwords(&self) -> Result<[u32; ENTRY_DWORDS], EntryError> {
        use input_dword as at;
        let mut line = [0; ENTRY_DWORDS];
        line[at::KIND_SLOT] = self.kind as u32 | check_slot(self.slot)? << 8;
        line[at::SERIAL] = self.serial;
        line[at::KNOWN] = self.known;
        line[at::LIMIT] = self.limit;
        line[at::TOKENS_OFFSET] = self.tokens_offset;
        line[at::SEED_LOW] = self.seed as u32;
        line[at::SEED_HIGH] = (self.seed >> 32) as u32;
        line[at::INVERSE_TEMPERATURE] = self.inverse_temperature;
        line[at::TOP_K] = self.top_k;
        line[at::TOP_P] = self.top_p;
        line[at::PENALTY] = self.penalty;
        line[at::INVERSE_PENALTY] = self.inverse_penalty;
        line[at::PENALTY_WINDOW] = self.penalty_window;
        line[at::STOP_COUNT] = self.stop_count;
        Ok(line)
    }

    /// The entry in a line.
    pub fn from_dwords(line: &[u32; ENTRY_DWORDS]) -> Result<InputEntry, EntryError> {
        use input_dword as at;
        let kind = line[at::KIND_SLOT] & 0xff;
        Ok(InputEntry {
            kind: *InputKind::ALL
                .iter()
                .find(|known| **known as u32 == kind)
                .ok_or(EntryError::Kind { kind })?,
            slot: check_slot(line[at::KIND_SLOT] >> 8)?,
            serial: line[at::SERIAL],
            known: line[at::KNOWN],
            limit: line[at::LIMIT],
            tokens_offset: line[at::TOKENS_OFFSET],
            seed: u64::from(line[at::SEED_LOW]) | u64::from(line[at::SEED_HIGH]) << 32,
            inverse_temperature: line[at::INVERSE_TEMPERATURE],
            top_k: line[at::TOP_K],
            top_p: line[at::TOP_P],
            penalty: line[at::PENALTY],
            inverse_penalty: line[at::INVERSE_PENALTY],
            penalty_window: line[at::PENALTY_WINDOW],
            stop_count: line[at::STOP_COUNT],
        })
    }
}

impl OutputEntry {
    /// The entry as it lies in a line; tag and trailer are zero.
    pub fn to_dwords(&self) -> Result<[u32; ENTRY_DWORDS], EntryError> {
        use output_dword as at;
        let mut line = [0; ENTRY_DWORDS];
        line[at::KIND_SLOT] = self.kind as u32 | check_slot(self.slot)? << 8;
        line[at::SERIAL] = self.serial;
        line[at::TOKEN] = self.token;
        line[at::INDEX] = self.index;
        line[at::REASON] = self.reason;
        line[at::EPOCH] = self.epoch;
        Ok(line)
    }

    /// The entry in a line.
    pub fn from_dwords(line: &[u32; ENTRY_DWORDS]) -> Result<OutputEntry, EntryError> {
        use output_dword as at;
        let kind = line[at::KIND_SLOT] & 0xff;
        let known = OutputKind::ALL.iter().find(|known| **known as u32 == kind);
        let kind = *known.ok_or(EntryError::Kind { kind })?;
        let slot = check_slot(line[at::KIND_SLOT] >> 8)?;
        let zero = line.iter().enumerate().take(ENTRY_DWORDS - 1).skip(at::ZERO);
        if let Some((dword, value)) = zero.into_iter().find(|(_, value)| **value != 0) {
            return Err(EntryError::NotZero { dword, value: *value });
        }
        Ok(OutputEntry {
            kind,
            slot,
            serial: line[at::SERIAL],
            token: line[at::TOKEN],
            index: line[at::INDEX],
            reason: line[at::REASON],
            epoch: line[at::EPOCH],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field another number, in the order in which the fields lie.
    fn input() -> InputEntry {
        InputEntry {
            kind: InputKind::Resume,
            slot: 63,
            serial: 102,
            known: 103,
            limit: 104,
            tokens_offset: 105,
            seed: 0x1107_0000_0106,
            inverse_temperature: 108,
            top_k: 109,
            top_p: 110,
            penalty: 111,
            inverse_penalty: 112,
            penalty_window: 113,
            stop_count: 114,
        }
    }

    #[test]
    fn an_input_entry_lies_as_written_down() {
        let line = [0, 0x3f02, 102, 103, 104, 105, 0x106, 0x1107, 108, 109, 110, 111, 112, 113, 114, 0];
        assert_eq!(input().to_dwords(), Ok(line));
        assert_eq!(InputEntry::from_dwords(&line), Ok(input()));
        let kinds =
            [(InputKind::Admit, 1), (InputKind::Resume, 2), (InputKind::Drain, 3), (InputKind::Stop, 4)];
        for (kind, number) in kinds {
            let line = InputEntry::new(kind).to_dwords().unwrap();
            assert_eq!(line, core::array::from_fn(|at| if at == 1 { number } else { 0 }));
            assert_eq!(InputEntry::from_dwords(&line).map(|entry| entry.kind), Ok(kind));
        }
    }

    #[test]
    fn an_output_entry_lies_as_written_down() {
        let line = [0, 0x0501, 102, 103, 104, 105, 106, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut entry = OutputEntry {
            kind: OutputKind::Token,
            slot: 5,
            serial: 102,
            token: 103,
            index: 104,
            reason: 105,
            epoch: 106,
        };
        assert_eq!(entry.to_dwords(), Ok(line));
        assert_eq!(OutputEntry::from_dwords(&line), Ok(entry));
        let kinds = [
            (OutputKind::Token, 1),
            (OutputKind::Finished, 2),
            (OutputKind::Preempted, 3),
            (OutputKind::Drained, 4),
        ];
        for (kind, number) in kinds {
            entry.kind = kind;
            let line = entry.to_dwords().unwrap();
            assert_eq!(line[1], 0x500 | number);
            assert_eq!(OutputEntry::from_dwords(&line), Ok(entry));
        }
    }

    #[test]
    fn what_no_entry_says_is_refused() {
        let good = input().to_dwords().unwrap();
        let parse = |at: usize, value: u32| {
            let mut line = good;
            line[at] = value;
            (InputEntry::from_dwords(&line), OutputEntry::from_dwords(&line))
        };
        for kind in (5..256).chain([0]) {
            let refused = EntryError::Kind { kind };
            assert_eq!(parse(1, kind), (Err(refused), Err(refused)));
        }
        for slot in [64, 65, 127, 255, 256, (1 << 24) - 1] {
            let refused = EntryError::Slot { slot };
            assert_eq!(parse(1, 1 | slot << 8), (Err(refused), Err(refused)));
        }
        assert_eq!(InputEntry { slot: 64, ..input() }.to_dwords(), Err(EntryError::Slot { slot: 64 }));
        for dword in 7..15 {
            let mut line = [0; ENTRY_DWORDS];
            (line[1], line[dword]) = (1, 9);
            assert_eq!(OutputEntry::from_dwords(&line), Err(EntryError::NotZero { dword, value: 9 }));
        }
    }
}
