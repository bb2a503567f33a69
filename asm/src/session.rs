//! Structures of a session in device memory: the step that is being made, the slot table, ring entries. Their meaning and
//! who writes which is in `docs/megakernel.md`.
//!
//! Contract: plain little-endian structures without padding. A structure is written either by the host or by the device,
//! never by both, and starts on a line of its own. Offsets are generated into the assembler's include file.

use crate::params::Layout;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Slots of a session at most.
pub const SLOTS_MAX: usize = 64;
/// Rows of a step at most: a decoding row of every slot, and as many of prompts.
pub const ROWS_MAX: usize = 128;
/// Stop tokens of a request at most.
pub const STOP_TOKENS_MAX: usize = 8;
/// Tokens of a page of the key-value cache.
pub const PAGE_TOKENS: u32 = 16;
/// Work-items of every kernel's workgroup.
pub const GROUP_ITEMS: u32 = 256;

macro_rules! layout {
    ($(#[$meta:meta])* $name:ident { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        pub struct $name {
            $($(#[$field_meta])* pub $field: $ty,)*
        }

        impl $name {
            /// Field names with byte offset and size, for the assembler's include file.
            pub const LAYOUT: Layout = Layout {
                name: stringify!($name),
                bytes: size_of::<$name>(),
                fields: &[$((stringify!($field), core::mem::offset_of!($name, $field), size_of::<$ty>())),*],
            };
        }

        impl Default for $name {
            fn default() -> $name {
                zerocopy::FromZeros::new_zeroed()
            }
        }
    };
}

layout! {
    /// One (slot, position) of a step.
    Row {
        /// Slot.
        slot: u32,
        /// Absolute position of the token in its sequence.
        position: u32,
        /// The token.
        token: u32,
        /// Number of the output that this row has, or `u32::MAX`: only the last known token of a sequence has one.
        output: u32,
    }
}

layout! {
    /// A row whose logits are wanted.
    Output {
        /// Number of the active row.
        row: u32,
        /// Its slot.
        slot: u32,
    }
}

layout! {
    /// What a step works on. Written by PLAN (`alive`: by BOUNDARY too), read by every body.
    Step {
        /// Number of the step, from 1.
        epoch: u32,
        /// Active rows, 0..=[`ROWS_MAX`].
        rows: u32,
        /// Output rows, 0..=[`SLOTS_MAX`].
        outputs: u32,
        /// Bit 0: leave; there is no further step.
        flags: u32,
        /// Which rows still count, one bit each: two snapshots, of even and of odd layers.
        alive: [[u32; 4]; 2],
        /// 0.
        reserved: [u32; 52],
        /// The active rows.
        row: [Row; ROWS_MAX],
        /// The output rows, in ascending order of their active row.
        output: [Output; SLOTS_MAX],
    }
}

layout! {
    /// A slot, as the device keeps it. Written by the device only.
    SlotState {
        /// [`SlotPhase`] as a number.
        phase: u32,
        /// Number of the request that holds the slot; never 0 while one does.
        serial: u32,
        /// The position that the next row takes in.
        position: u32,
        /// Tokens of the sequence that are known: prompt and choices.
        known: u32,
        /// The sequence ends when this many tokens are known.
        limit: u32,
        /// Pages in the device's page table.
        pages: u32,
        /// Rows that the step at hand takes from this slot.
        step_rows: u32,
        /// 1 + the number of the output that the step at hand makes for this slot; 0: none.
        step_output: u32,
        /// SAMPLE's choice.
        sampled: u32,
        /// 1 where an event waits for room in the output ring.
        pending: u32,
        /// The token that waits.
        pending_token: u32,
        /// [`FinishReason`] as a number; 0 while the request runs.
        reason: u32,
        /// Seed of the draws, low half.
        seed_low: u32,
        /// Seed of the draws, high half.
        seed_high: u32,
        /// f32 bits of 1/temperature; 0: the largest logit wins.
        inverse_temperature: u32,
        /// Candidates kept at most; 0: all.
        top_k: u32,
        /// Share of the weight that is kept, in units of 2^-32; 0: all.
        top_p: u32,
        /// f32 bits of the repetition penalty.
        penalty: u32,
        /// f32 bits of 1/penalty, rounded once.
        inverse_penalty: u32,
        /// Last known tokens that are penalised; 0: none.
        penalty_window: u32,
        /// Stop tokens.
        stop_count: u32,
        /// 0.
        reserved: u32,
        /// The stop tokens.
        stop: [u32; STOP_TOKENS_MAX],
        /// 0.
        reserved_end: [u32; 2],
    }
}

/// What a slot is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum SlotPhase {
    /// Nothing; a request may be put in.
    Free = 0,
    /// Its request takes part in steps.
    Active = 1,
    /// Its request was preempted and waits to be resumed.
    Parked = 2,
}

/// Why a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FinishReason {
    /// A stop token was chosen.
    Stop = 1,
    /// As many tokens are known as were allowed.
    Length = 2,
    /// The host cancelled it.
    Cancelled = 3,
}

/// The shared structures.
pub const LAYOUTS: &[Layout] = &[Row::LAYOUT, Output::LAYOUT, Step::LAYOUT, SlotState::LAYOUT];

const _: () = assert!(size_of::<SlotState>() == 128 && size_of::<Step>() % 256 == 0);
