//! What host and kernels share: slots, steps, commands, events, control lines, tape, parameter blocks, limits.
//!
//! Contract: plain little-endian structures and numbers, one subject per file, each with a table of who writes a field
//! and who reads it and a golden test of its offsets. The assembler's include file is generated from [`LAYOUTS`],
//! [`NUMBERS`], [`CONSTANTS`], [`BODIES`] and [`params::PARAMETER_BLOCKS`]. Nothing here allocates; events, which come
//! from outside, are parsed strictly.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod command;
mod control;
mod event;
mod extras;
mod layout;
pub mod params;
mod plan_state;
mod slot;
mod step;
mod tape;
mod units;

pub use command::{Command, CommandKind, CommandLine, Draws};
pub use control::Control;
pub use event::{Event, EventError, EventKind, EventLine};
pub use extras::{
    BIASES_MAX, Bias, COUNTED_TOKENS_MAX, EXTRAS_ADJUST, EXTRAS_FILTER, EXTRAS_TOPS, Extras, TOPS_MAX,
    TopToken, TopTokens,
};
pub use layout::{Layout, Numbers};
pub use plan_state::{PlanState, STATUS_LOOKS, Status};
pub use slot::{FinishReason, PAGE_TOKENS, SLOTS_MAX, STOP_TOKENS_MAX, Slot, SlotPhase, SlotState};
pub use step::{BAND_ROWS, Output, ROWS_MAX, Row, Step, bands};
pub use tape::{
    ARRIVALS_OFFSET, ARRIVED_OFFSET, BODIES, Breadcrumb, COUNTERS_OFFSET, Start, TAPE_END,
    TAPE_WAIT_OFFSET_BITS, TAPE_WAITS_MAX, TapeEntry, TapeWait,
};
pub use units::{
    CHUNK_COLUMNS, FLOAT_PIECE_BYTES, GROUP_ITEMS, GROUP_WAVES, HEAD_SIZE_MAX, MATMUL_ROWS_PER_LANE,
    NORM_UNIT_ELEMENTS, SEGMENT_BLOCKS, TILE_ROWS, TILED_ROWS_MIN, WAVE_LANES, attention_joined_log2_max,
    attention_units, float_tiles_rows_per_unit, integer_lanes_per_row_log2, joined_log2, kv_write_units,
    lanes_per_row_log2, matmul_rows_per_unit, norm_units, quantised_factors_offset, quantised_row_bytes,
    quantised_rows_held, quantised_segments, tile_parts_log2, tiled_weight_rows_per_unit,
};

/// Every structure that kernels read or write, except the parameter blocks ([`params::PARAMETER_BLOCKS`]).
pub const LAYOUTS: &[Layout] = &[
    params::Header::LAYOUT,
    Row::LAYOUT,
    Output::LAYOUT,
    Step::LAYOUT,
    SlotState::LAYOUT,
    Control::LAYOUT,
    PlanState::LAYOUT,
    Status::LAYOUT,
    CommandLine::LAYOUT,
    EventLine::LAYOUT,
    TapeEntry::LAYOUT,
    TapeWait::LAYOUT,
    Breadcrumb::LAYOUT,
    Start::LAYOUT,
    Bias::LAYOUT,
    Extras::LAYOUT,
    TopToken::LAYOUT,
    TopTokens::LAYOUT,
];

/// Every enumeration whose numbers kernels know.
pub const NUMBERS: &[Numbers] = &[
    SlotPhase::NUMBERS,
    FinishReason::NUMBERS,
    CommandKind::NUMBERS,
    EventKind::NUMBERS,
    params::RowSet::NUMBERS,
];

/// Every further number that kernels know.
pub const CONSTANTS: &[(&str, u32)] = &[
    ("ARRIVALS_OFFSET", ARRIVALS_OFFSET),
    ("ARRIVED_OFFSET", ARRIVED_OFFSET),
    ("BAND_ROWS", BAND_ROWS as u32),
    ("BIASES_MAX", BIASES_MAX as u32),
    ("CHUNK_COLUMNS", CHUNK_COLUMNS),
    ("COUNTED_TOKENS_MAX", COUNTED_TOKENS_MAX),
    ("COUNTERS_OFFSET", COUNTERS_OFFSET),
    ("EXTRAS_ADJUST", EXTRAS_ADJUST),
    ("EXTRAS_FILTER", EXTRAS_FILTER),
    ("EXTRAS_TOPS_FLAG", EXTRAS_TOPS),
    ("GROUP_ITEMS", GROUP_ITEMS),
    ("HEAD_SIZE_MAX", HEAD_SIZE_MAX),
    ("MATMUL_ROWS_PER_LANE", MATMUL_ROWS_PER_LANE),
    ("NORM_UNIT_ELEMENTS", NORM_UNIT_ELEMENTS),
    ("PAGE_TOKENS", PAGE_TOKENS),
    ("FLOAT_PIECE_BYTES", FLOAT_PIECE_BYTES),
    ("ROWS_MAX", ROWS_MAX as u32),
    ("SEGMENT_BLOCKS", SEGMENT_BLOCKS),
    ("SLOTS_MAX", SLOTS_MAX as u32),
    ("SNAPSHOT_SHIFT", params::SNAPSHOT_SHIFT),
    ("JOINED_SHIFT", params::JOINED_SHIFT),
    ("STATUS_LOOKS", STATUS_LOOKS as u32),
    ("STOP_TOKENS_MAX", STOP_TOKENS_MAX as u32),
    ("TAPE_WAIT_OFFSET_BITS", TAPE_WAIT_OFFSET_BITS),
    ("TILED_ROWS_MIN", TILED_ROWS_MIN),
    ("TILE_ROWS", TILE_ROWS),
    ("TOPS_MAX", TOPS_MAX as u32),
];

/// The README's example, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
