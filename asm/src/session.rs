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
/// Looks of an idle PLAN between two stores of its status, where nothing else changes: a power of two. The heartbeat is
/// late by less than this.
pub const STATUS_LOOKS: usize = 32;
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
        /// The output rows.
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
        /// Rows that the step at hand takes from this slot. BOUNDARY sets it to 0 when it drops them.
        step_rows: u32,
        /// 1 + the number of the output that the step at hand makes for this slot; 0: none, or dropped.
        step_output: u32,
        /// SAMPLE's choice.
        sampled: u32,
        /// [`EventKind`] of the event that waits for room in the output ring; 0: none.
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
        /// 0.
        reserved: [u32; 4],
        /// Tokens that end the sequence; unused places hold `u32::MAX`.
        stop: [u32; STOP_TOKENS_MAX],
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

layout! {
    /// What the host tells the device about a slot at any time. Written by the host only. A field that names a serial
    /// counts while that request holds the slot.
    Control {
        /// Cancel this request.
        cancel_serial: u32,
        /// Park this request.
        preempt_serial: u32,
        /// Give this request no rows.
        hold_serial: u32,
        /// Entries of the host's page table that are valid, for the request `granted_serial`.
        granted_pages: u32,
        /// Whose pages they are.
        granted_serial: u32,
        /// 0.
        reserved: [u32; 11],
    }
}

layout! {
    /// PLAN's own memory between steps. Written by the device only.
    PlanState {
        /// The newest step.
        epoch: u32,
        /// Entries taken from the input ring, modulo 2^32.
        input_index: u32,
        /// Tag of the next entry of the input ring.
        input_tag: u32,
        /// Entries put into the output ring, modulo 2^32.
        output_index: u32,
        /// Tag of the next entry of the output ring.
        output_tag: u32,
        /// 1: no request is admitted any more.
        draining: u32,
        /// Times that PLAN has looked for work.
        heartbeat: u32,
        /// 1: leave.
        leave: u32,
        /// The slot that the next step begins with.
        first_slot: u32,
        /// 0.
        reserved: [u32; 3],
    }
}

layout! {
    /// What PLAN tells the host. Written by the device only.
    Status {
        /// Entries taken from the input ring, modulo 2^32.
        input_consumed: u32,
        /// Times that PLAN has looked for work: grows while the device is alive, idle or not.
        heartbeat: u32,
        /// The newest step.
        epoch: u32,
        /// Bit 0: the device has left or is leaving. Bits 15:8: slots in use.
        flags: u32,
    }
}

layout! {
    /// One task of the megakernel's tape: 64 bytes, written by the host before the kernel starts.
    TapeEntry {
        /// Which body: its place in [`BODIES`]; [`TAPE_END`] behind the last task.
        body: u32,
        /// Number of the task, for breadcrumbs.
        task: u32,
        /// The body's parameter block.
        parameters_va: u64,
        /// Byte offset of the task's own counter in the counters.
        signal: u32,
        /// What must be done first.
        wait: [TapeWait; TAPE_WAITS_MAX],
        /// Bytes of a piece of the first weight plane: of the weight rows that the lanes of a wave work on at once. At
        /// least 16.
        piece_bytes: u32,
        /// The plane.
        plane_va: u64,
        /// Whole pieces of the plane; 0: nothing is fetched ahead.
        pieces: u32,
        /// 0.
        reserved: u32,
    }
}

layout! {
    /// A task that must be complete first.
    TapeWait {
        /// Byte offset of its counter; its [`crate::params::RowSet`] in bits 31:28.
        counter: u32,
        /// Its units; 0: no wait.
        units: u32,
    }
}

layout! {
    /// Where a workgroup of the megakernel stands. Written by the device only.
    Breadcrumb {
        /// The step.
        epoch: u32,
        /// The task.
        task: u32,
        /// Times that the group has looked in vain while it waited.
        spins: u32,
        /// 0.
        reserved: [u32; 13],
    }
}

/// Waits of a task at most.
pub const TAPE_WAITS_MAX: usize = 3;
/// The body number behind the last task.
pub const TAPE_END: u32 = u32::MAX;
/// Where the counters of tasks start.
pub const COUNTERS_OFFSET: u32 = 256;

/// The bodies that the megakernel holds, by their number in the tape. The same list stands in `mega.s`.
pub const BODIES: &[&str] = &[
    "boundary",
    "embed_f32",
    "embed_f16",
    "embed_bf16",
    "embed_q8_0",
    "embed_q4_0",
    "embed_q4_k",
    "embed_q6_k",
    "matmul_f32",
    "matmul_f16",
    "matmul_bf16",
    "matmul_q8_0",
    "matmul_q4_0",
    "matmul_q4_k",
    "matmul_q6_k",
    "rms_norm",
    "qk_norm",
    "rope_interleaved",
    "rope_halves",
    "kv_write_f32",
    "kv_write_f16",
    "kv_write_q8_0",
    "attention_f32",
    "attention_f16",
    "attention_q8_0",
    "swiglu",
    "residual_add",
    "sample",
];

/// What an entry of the output ring tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum EventKind {
    /// A token.
    Token = 1,
    /// The end of a request.
    Finished = 2,
    /// A request was parked.
    Preempted = 3,
}

/// What an entry of the input ring asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum CommandKind {
    /// Put a request into a free slot.
    Admit = 1,
    /// Go on with a parked request, from the position in the entry's field `known` (0: its pages are new).
    Resume = 2,
    /// Leave when every slot is free.
    Drain = 3,
    /// Leave now.
    Stop = 4,
}

/// The shared structures.
pub const LAYOUTS: &[Layout] = &[
    Row::LAYOUT,
    Output::LAYOUT,
    Step::LAYOUT,
    SlotState::LAYOUT,
    Control::LAYOUT,
    PlanState::LAYOUT,
    Status::LAYOUT,
    TapeEntry::LAYOUT,
    TapeWait::LAYOUT,
    Breadcrumb::LAYOUT,
];

const _: () = assert!(
    size_of::<SlotState>() == 128
        && size_of::<Control>() == 64
        && size_of::<TapeEntry>() == 64
        && size_of::<Step>() % 256 == 0
);
