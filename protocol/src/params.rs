//! Parameter blocks: the arguments of each kernel. Layout and meaning are in `docs/kernels.md`.
//!
//! Contract: plain little-endian structures, at most [`PARAMETER_BYTES_MAX`] bytes, no padding bytes. Every `*_va` is a
//! GPU virtual address. Written by the host when a plan is lowered, before the first step, and validated there; read by
//! the caller of a body (the header) and by the body (the rest). Fields called `reserved` are 0 and nobody reads them.
//! Kernels do not read `version`, `opcode` and `block_bytes` of the header either: they are for whoever inspects device
//! memory.

use crate::layout::{Layout, layout, numbers};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Largest parameter block in bytes.
pub const PARAMETER_BYTES_MAX: usize = 256;
/// Version in every header.
pub const PARAMETER_VERSION: u16 = 2;

layout! {
    /// The common header of every block. The caller of a body (dispatch wrapper or megakernel) reads it to find the
    /// units of work of this step; the body reads what follows it.
    Header {
        /// [`PARAMETER_VERSION`].
        version: u16,
        /// [`KernelOpcode`] as a number.
        opcode: u16,
        /// Length of the whole block in bytes, header included.
        block_bytes: u32,
        /// [`Step`](crate::Step): what this step works on. Not read with [`RowSet::Once`].
        step_va: u64,
        /// Units of work: of each row, or of the whole operation, as `rows` says.
        units: u32,
        /// [`RowSet`] as a number; the bit at [`SNAPSHOT_SHIFT`] is set if the odd snapshot of
        /// [`Step::alive`](crate::Step::alive) applies; from [`JOINED_SHIFT`] on the log2 of how many units one may
        /// stand for in a step of many rows ([`crate::joined_log2`]), of which `units` is a multiple.
        rows: u32,
    }
}

/// The bit of [`Header::rows`] that says which snapshot applies.
pub const SNAPSHOT_SHIFT: u32 = 8;
/// The lowest bit of [`Header::rows`] that says how many units may be joined.
pub const JOINED_SHIFT: u32 = 16;

numbers! {
    /// Which rows of the step an operation runs over, and so how many units it has.
    RowSet as "ROW_SET" {
        /// `units` in all; the operation knows nothing of rows.
        Once = 0,
        /// `units` for each active row.
        EachActive = 1,
        /// `units` for each output row.
        EachOutput = 2,
        /// `units` for each band of active rows ([`crate::bands`]), each for all rows of the band.
        AllActive = 3,
        /// `units` in all, each for every output row; none if there is no output row. Outputs fit one band.
        AllOutputs = 4,
    }
}

/// What a kernel does; the number in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
#[allow(missing_docs)]
pub enum KernelOpcode {
    Embed = 1,
    RmsNorm = 2,
    QkNorm = 3,
    Matmul = 4,
    Rope = 5,
    KvWrite = 6,
    Attention = 7,
    SwiGlu = 8,
    ResidualAdd = 9,
    Sample = 10,
    Copy = 11,
    Plan = 12,
    Boundary = 13,
    Mega = 14,
    Quantise = 15,
    Scale = 16,
    SoftCap = 17,
}

macro_rules! block {
    ($(#[$meta:meta])* $name:ident = $opcode:ident { $($(#[$field_meta:meta])* $field:ident : $ty:ty),* $(,)? }) => {
        $(#[$meta])*
        #[repr(C)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
        pub struct $name {
            /// The common header.
            pub header: Header,
            $($(#[$field_meta])* pub $field: $ty,)*
        }

        impl $name {
            /// The header that a block of this type carries.
            pub const fn header(step_va: u64, units: u32, rows: RowSet) -> Header {
                Header {
                    version: PARAMETER_VERSION,
                    opcode: KernelOpcode::$opcode as u16,
                    block_bytes: size_of::<$name>() as u32,
                    step_va,
                    units,
                    rows: rows as u32,
                }
            }
            /// Field names with byte offset and size, for the assembler's include file.
            pub const FIELDS: &'static [(&'static str, usize, usize)] =
                &[$((stringify!($field), core::mem::offset_of!($name, $field), size_of::<$ty>())),*];
        }
        const _: () = assert!(size_of::<$name>() <= PARAMETER_BYTES_MAX && size_of::<$name>() % 8 == 0);
    };
}

block! {
    /// Dequantises row `token` of the table for each active row. Units: ceil(chunks / 256); work-item = chunk.
    Embed = Embed {
        /// Weight planes (unused ones 0).
        plane_va: [u64; 4],
        /// `f32[rows_max][columns]`, rows `output_stride` bytes apart.
        output_va: u64,
        /// Row length.
        columns: u32,
        /// ceil(columns / 32).
        chunks: u32,
        /// Vocabulary size; a token id at or beyond it reads row 0.
        vocabulary: u32,
        /// Bytes from one output row to the next.
        output_stride: u32,
    }
}

block! {
    /// RMS norm of one row. Units: [`crate::norm_units`]. Over output rows the input is the active row that the output
    /// names, and the result's row is the output's number.
    RmsNorm = RmsNorm {
        /// `f32[count]` for each row.
        input_va: u64,
        /// `f32[count]`.
        weight_va: u64,
        /// `f32[count]` for each row. Not the input, which every unit reads whole.
        output_va: u64,
        /// Elements.
        count: u32,
        /// f32 bits of 1/count.
        inverse_count: u32,
        /// f32 bits.
        epsilon: u32,
        /// Bytes from one row to the next, of input and output.
        stride: u32,
        /// For each row the integers of its segments, then their factors, as [`Quantise`] makes them of the result.
        integers_va: u64,
        /// Bytes from one row of integers to the next.
        integers_stride: u32,
        /// Bytes from a row of integers to its factors.
        factors_offset: u32,
        /// Bytes of an integer, 1 or 2; 0: there are none.
        limbs: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// RMS norm of each head in place. Units: ceil(heads / 8); each wave does one head.
    QkNorm = QkNorm {
        /// `f32[heads][head_size]` for each row, in place.
        vector_va: u64,
        /// `f32[head_size]`.
        weight_va: u64,
        /// Heads.
        heads: u32,
        /// Elements per head.
        head_size: u32,
        /// f32 bits of 1/head_size.
        inverse_head_size: u32,
        /// f32 bits.
        epsilon: u32,
        /// Bytes from one row to the next.
        stride: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// Matrix times the vectors of all rows. Units: ceil(weight_rows / [`crate::matmul_rows_per_unit`]).
    Matmul = Matmul {
        /// Weight planes (unused ones 0).
        plane_va: [u64; 4],
        /// `f32[columns]` for each row, or a quantised row, or tiles of them, if `factors_offset` is not 0.
        input_va: u64,
        /// `f32[weight_rows]` for each row.
        output_va: u64,
        /// `f32[weight_rows]` for each row, at the output's stride, added to the product; may equal the output. 0:
        /// none.
        addend_va: u64,
        /// Output length.
        weight_rows: u32,
        /// Row length.
        columns: u32,
        /// ceil(columns / 32).
        chunks: u32,
        /// log2 of the lanes that share a weight row (0..=5).
        lanes_per_row_log2: u32,
        /// Bytes from one input row to the next.
        input_stride: u32,
        /// Bytes from one output row to the next.
        output_stride: u32,
        /// Bytes from an input row of integers to its factors; 0 for `f32`.
        factors_offset: u32,
        /// log2 of the parts among which the segments of a row are dealt out in steps of three tiles or more, 0 or 1
        /// ([`crate::tile_parts_log2`]).
        tile_parts_log2: u32,
    }
}

block! {
    /// A row of f32 as blocks of 32 integers with a factor and a sum. Units: segments of the result, 256 elements each
    /// ([`crate::quantised_segments`]).
    Quantise = Quantise {
        /// `f32[count]` for each row.
        input_va: u64,
        /// Elements.
        count: u32,
        /// Bytes from one input row to the next.
        input_stride: u32,
        /// For each row the integers of its segments, then their factors (`docs/kernels.md`).
        integers_va: u64,
        /// Bytes from one row of integers to the next.
        integers_stride: u32,
        /// Bytes from a row of integers to its factors.
        factors_offset: u32,
    }
}

block! {
    /// Rotary embedding in place. Units: ceil(heads / 8); each wave does one head.
    Rope = Rope {
        /// `f32[heads][head_size]` for each row, in place.
        vector_va: u64,
        /// (cos, sin) pairs, `f32[context][rotary_dimensions / 2][2]`.
        table_va: u64,
        /// Heads.
        heads: u32,
        /// Elements per head.
        head_size: u32,
        /// Rotated elements per head, even.
        rotary_dimensions: u32,
        /// Bytes from one row to the next.
        stride: u32,
    }
}

block! {
    /// Stores the key and value rows of each active row into its page, in the format of the cache. Units: the kernel's
    /// own number for the row length ([`crate::kv_write_units`]).
    KvWrite = KvWrite {
        /// `f32[row_elements]` for each row.
        key_va: u64,
        /// `f32[row_elements]` for each row.
        value_va: u64,
        /// `u32[slots][pages_per_slot]`: page numbers, device copy.
        page_table_va: u64,
        /// First page, plus this layer's offset within a page (keys of 16 tokens, then values of 16 tokens).
        pool_va: u64,
        /// Bytes of a page.
        page_bytes: u64,
        /// Entries of a slot in the page table.
        pages_per_slot: u32,
        /// kv_heads × head_size.
        row_elements: u32,
        /// Bytes of one token's key (or value) row as stored.
        row_bytes: u32,
        /// Bytes from one input row to the next, of keys and values.
        stride: u32,
    }
}

block! {
    /// Attention of each active row over its slot's pages. Units: heads, and where they may be joined, for each key
    /// head as many as a multiple of what may be joined ([`crate::attention_units`]).
    Attention = Attention {
        /// `f32[heads][head_size]` for each row.
        query_va: u64,
        /// `f32[heads][head_size]` for each row.
        output_va: u64,
        /// As in [`KvWrite`].
        page_table_va: u64,
        /// As in [`KvWrite`].
        pool_va: u64,
        /// As in [`KvWrite`].
        page_bytes: u64,
        /// As in [`KvWrite`].
        pages_per_slot: u32,
        /// kv_heads × head_size.
        row_elements: u32,
        /// As in [`KvWrite`].
        row_bytes: u32,
        /// Bytes from one row of query and output to the next.
        stride: u32,
        /// Elements per head: a multiple of 4, at most 256.
        head_size: u32,
        /// Query heads per key head.
        group_size: u32,
        /// f32 bits of what scores are multiplied by.
        scale: u32,
        /// Positions that are read at most, the row's own included: at least 1; `u32::MAX`: all.
        window: u32,
        /// For each row the integers of its segments, then their factors, as [`Quantise`] makes them of the result.
        /// Heads must then be whole blocks, and make all segments of a row ([`crate::quantised_segments`]).
        integers_va: u64,
        /// Bytes from one row of integers to the next.
        integers_stride: u32,
        /// Bytes from a row of integers to its factors.
        factors_offset: u32,
        /// Bytes of an integer, 1 or 2; 0: there are none.
        limbs: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// Gate, SWIGLU or GEGLU. Units: ceil(count / 256), or the segments of its integers.
    SwiGlu = SwiGlu {
        /// `f32[count]` for each row.
        gate_va: u64,
        /// `f32[count]` for each row.
        up_va: u64,
        /// `f32[count]` for each row; may equal the gate.
        output_va: u64,
        /// Elements.
        count: u32,
        /// Bytes from one row to the next, of all three.
        stride: u32,
        /// For each row the integers of its segments, then their factors, as [`Quantise`] makes them of the result.
        integers_va: u64,
        /// Bytes from one row of integers to the next.
        integers_stride: u32,
        /// Bytes from a row of integers to its factors.
        factors_offset: u32,
        /// Bytes of an integer, 1 or 2; 0: there are none.
        limbs: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// hidden += addend. Units: ceil(count / 256).
    ResidualAdd = ResidualAdd {
        /// `f32[count]` for each row, in place.
        hidden_va: u64,
        /// `f32[count]` for each row, or for all of them.
        addend_va: u64,
        /// Elements.
        count: u32,
        /// Bytes from one row of `hidden` to the next.
        stride: u32,
        /// Bytes from one row of addends to the next; 0: all rows have the same.
        addend_stride: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// vector × factor in place. Units: ceil(count / 256).
    Scale = Scale {
        /// `f32[count]` for each row, in place.
        vector_va: u64,
        /// Elements.
        count: u32,
        /// Bytes from one row to the next.
        stride: u32,
        /// f32 bits.
        factor: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// cap × tanh(vector / cap) in place. Units: ceil(count / 256).
    SoftCap = SoftCap {
        /// `f32[count]` for each row, in place.
        vector_va: u64,
        /// Elements.
        count: u32,
        /// Bytes from one row to the next.
        stride: u32,
        /// f32 bits of 2 / cap, rounded once.
        steepness: u32,
        /// f32 bits.
        cap: u32,
    }
}

block! {
    /// Chooses the next token of each output row by the row's slot's sampling parameters and stores it to
    /// [`crate::SlotState::sampled`]. Units: 1.
    Sample = Sample {
        /// `f32[vocabulary]` for each output row.
        logits_va: u64,
        /// [`crate::SlotState`] for each slot.
        slots_va: u64,
        /// `u32[slots][context]`: prompt and choices of each slot.
        tokens_va: u64,
        /// Elements.
        vocabulary: u32,
        /// Bytes from one row of logits to the next, and from one row of adjusted logits.
        logits_stride: u32,
        /// Capacity of a slot in `tokens`.
        context: u32,
        /// 0.
        reserved: u32,
        /// `f32[vocabulary]` for each output row: logits after penalties, biases and typical-p, of rows that have such.
        adjusted_va: u64,
        /// [`crate::Extras`] for each slot, written by the host.
        extras_va: u64,
        /// [`crate::TopTokens`] for each slot.
        tops_va: u64,
    }
}

block! {
    /// Copies dwords × 4. Units: ceil(count / 256), one 16-byte piece for each work-item.
    Copy = Copy {
        /// 16-byte aligned.
        source_va: u64,
        /// 16-byte aligned.
        destination_va: u64,
        /// 16-byte pieces.
        count: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// Ends the last step and makes the next one from the slot table: events to the output ring, commands from the
    /// input ring, cancels, grants, rows. Units: 1, once.
    Plan = Plan {
        /// [`crate::SlotState`] for each slot.
        slots_va: u64,
        /// [`crate::Control`] for each slot, written by the host.
        control_va: u64,
        /// `u32[slots][context]`: prompt (written by the host) and choices (written by PLAN) of each slot.
        tokens_va: u64,
        /// `u32[slots][pages_per_slot]`: page numbers as the host wrote them.
        host_pages_va: u64,
        /// `u32[slots][pages_per_slot]`: the device's copy, which the bodies read.
        pages_va: u64,
        /// [`crate::PlanState`].
        plan_state_va: u64,
        /// Entries of 64 bytes that the host writes.
        input_va: u64,
        /// Entries of 64 bytes that PLAN writes.
        output_va: u64,
        /// `u32[slots][8]`: stop tokens as the host wrote them, `u32::MAX` in unused places.
        stops_va: u64,
        /// u32: entries that the host has consumed from the output ring, modulo 2^32.
        consumed_va: u64,
        /// [`crate::Status`].
        status_va: u64,
        /// Capacity of a slot in `tokens`.
        context: u32,
        /// Entries of a slot in the page tables.
        pages_per_slot: u32,
        /// Entries of the input ring, a power of two, less 1.
        input_mask: u32,
        /// Entries of the output ring, a power of two at least twice the slots, less 1.
        output_mask: u32,
        /// Maximum number of prompt rows of a step.
        chunk_rows: u32,
        /// 1: poll until there is a row or the end; 0: a step may have no row.
        waits: u32,
        /// [`crate::TopTokens`] for each slot, written by SAMPLE.
        tops_va: u64,
        /// [`crate::TopTokens`] for each entry of the output ring.
        output_tops_va: u64,
    }
}

block! {
    /// Samples the cancel flags into one of the step's snapshots of rows that still count. Units: 1, once.
    Boundary = Boundary {
        /// [`crate::SlotState`] for each slot.
        slots_va: u64,
        /// [`crate::Control`] for each slot, written by the host.
        control_va: u64,
        /// 0 or 1: which snapshot.
        snapshot: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// The megakernel: runs the tape once for every step until PLAN says leave. Any number of workgroups may be
    /// dispatched; [`crate::Start`] says how many take part, of those that are resident.
    Mega = Mega {
        /// [`crate::TapeEntry`] for each task, then one with the body [`crate::TAPE_END`].
        tape_va: u64,
        /// Workgroups that have ended the step (u32, never reset); at [`crate::ARRIVALS_OFFSET`] those that have begun
        /// (u32), and from [`crate::COUNTERS_OFFSET`] on the units done of each task (u32).
        counters_va: u64,
        /// [`crate::Breadcrumb`] for each workgroup.
        breadcrumbs_va: u64,
        /// PLAN's parameter block.
        plan_va: u64,
        /// [`crate::Start`], written by the host once workgroups have arrived, and what says that they have.
        start_va: u64,
        /// Tasks.
        tasks: u32,
        /// 0.
        reserved: u32,
    }
}

/// One parameter-block type, as the assembler's include file and the kernel containers describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterBlock {
    /// Names, offsets and sizes.
    pub layout: Layout,
    /// The number in the header.
    pub opcode: KernelOpcode,
}

macro_rules! blocks {
    ($($name:ident = $opcode:ident),* $(,)?) => {
        /// Every parameter-block type.
        pub const PARAMETER_BLOCKS: &[ParameterBlock] = &[$(ParameterBlock {
            layout: Layout { name: stringify!($name), bytes: size_of::<$name>(), fields: $name::FIELDS },
            opcode: KernelOpcode::$opcode,
        }),*];
    };
}

blocks!(
    Embed = Embed,
    RmsNorm = RmsNorm,
    QkNorm = QkNorm,
    Matmul = Matmul,
    Rope = Rope,
    KvWrite = KvWrite,
    Attention = Attention,
    SwiGlu = SwiGlu,
    ResidualAdd = ResidualAdd,
    Sample = Sample,
    Copy = Copy,
    Plan = Plan,
    Boundary = Boundary,
    Mega = Mega,
    Quantise = Quantise,
    Scale = Scale,
    SoftCap = SoftCap,
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::written;
    use std::string::String;

    #[test]
    fn the_header_lies_as_written_down() {
        let expected = "\
Header 24
   0 version
   2 opcode
   4 block_bytes
   8 step_va
  16 units
  20 rows
";
        assert_eq!(written(&Header::LAYOUT), expected);
        let sets = [("Once", 0), ("EachActive", 1), ("EachOutput", 2), ("AllActive", 3), ("AllOutputs", 4)];
        assert_eq!(RowSet::NUMBERS.values, sets);
    }

    /// Every block follows the header of 24 bytes.
    #[test]
    fn the_blocks_lie_as_written_down() {
        let blocks: String = PARAMETER_BLOCKS.iter().map(|block| written(&block.layout)).collect();
        assert_eq!(blocks, BLOCKS);
        let numbers: std::vec::Vec<u16> = PARAMETER_BLOCKS.iter().map(|block| block.opcode as u16).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]);
    }

    const BLOCKS: &str = "\
Embed 80
  24 plane_va
  56 output_va
  64 columns
  68 chunks
  72 vocabulary
  76 output_stride
RmsNorm 88
  24 input_va
  32 weight_va
  40 output_va
  48 count
  52 inverse_count
  56 epsilon
  60 stride
  64 integers_va
  72 integers_stride
  76 factors_offset
  80 limbs
  84 reserved
QkNorm 64
  24 vector_va
  32 weight_va
  40 heads
  44 head_size
  48 inverse_head_size
  52 epsilon
  56 stride
  60 reserved
Matmul 112
  24 plane_va
  56 input_va
  64 output_va
  72 addend_va
  80 weight_rows
  84 columns
  88 chunks
  92 lanes_per_row_log2
  96 input_stride
 100 output_stride
 104 factors_offset
 108 tile_parts_log2
Rope 56
  24 vector_va
  32 table_va
  40 heads
  44 head_size
  48 rotary_dimensions
  52 stride
KvWrite 80
  24 key_va
  32 value_va
  40 page_table_va
  48 pool_va
  56 page_bytes
  64 pages_per_slot
  68 row_elements
  72 row_bytes
  76 stride
Attention 120
  24 query_va
  32 output_va
  40 page_table_va
  48 pool_va
  56 page_bytes
  64 pages_per_slot
  68 row_elements
  72 row_bytes
  76 stride
  80 head_size
  84 group_size
  88 scale
  92 window
  96 integers_va
 104 integers_stride
 108 factors_offset
 112 limbs
 116 reserved
SwiGlu 80
  24 gate_va
  32 up_va
  40 output_va
  48 count
  52 stride
  56 integers_va
  64 integers_stride
  68 factors_offset
  72 limbs
  76 reserved
ResidualAdd 56
  24 hidden_va
  32 addend_va
  40 count
  44 stride
  48 addend_stride
  52 reserved
Sample 88
  24 logits_va
  32 slots_va
  40 tokens_va
  48 vocabulary
  52 logits_stride
  56 context
  60 reserved
  64 adjusted_va
  72 extras_va
  80 tops_va
Copy 48
  24 source_va
  32 destination_va
  40 count
  44 reserved
Plan 152
  24 slots_va
  32 control_va
  40 tokens_va
  48 host_pages_va
  56 pages_va
  64 plan_state_va
  72 input_va
  80 output_va
  88 stops_va
  96 consumed_va
 104 status_va
 112 context
 116 pages_per_slot
 120 input_mask
 124 output_mask
 128 chunk_rows
 132 waits
 136 tops_va
 144 output_tops_va
Boundary 48
  24 slots_va
  32 control_va
  40 snapshot
  44 reserved
Mega 72
  24 tape_va
  32 counters_va
  40 breadcrumbs_va
  48 plan_va
  56 start_va
  64 tasks
  68 reserved
Quantise 56
  24 input_va
  32 count
  36 input_stride
  40 integers_va
  48 integers_stride
  52 factors_offset
Scale 48
  24 vector_va
  32 count
  36 stride
  40 factor
  44 reserved
SoftCap 48
  24 vector_va
  32 count
  36 stride
  40 steepness
  44 cap
";
}
