//! Parameter blocks: what each kernel is told. Layout and meaning are in `docs/kernels.md`.
//!
//! Contract: plain little-endian structures, at most [`PARAMETER_BYTES_MAX`] bytes, no padding bytes. Every `*_va` is
//! a GPU virtual address. Validated once when a plan is lowered, never parsed on the path of a token.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Largest parameter block in bytes.
pub const PARAMETER_BYTES_MAX: usize = 256;
/// Version in every header.
pub const PARAMETER_VERSION: u16 = 1;

/// The first eight bytes of every block.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct Header {
    /// [`PARAMETER_VERSION`].
    pub version: u16,
    /// [`KernelOpcode`] as a number.
    pub opcode: u16,
    /// Length of the whole block, header included.
    pub bytes: u32,
}

/// What a kernel does; the number in the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
#[allow(missing_docs)]
pub enum KernelOpcode {
    Embed = 1,
    RmsNorm = 2,
    QkNorm = 3,
    Matvec = 4,
    Rope = 5,
    KvWrite = 6,
    Attention = 7,
    SwiGlu = 8,
    ResidualAdd = 9,
    Argmax = 10,
    Copy = 11,
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
            pub const HEADER: Header = Header {
                version: PARAMETER_VERSION,
                opcode: KernelOpcode::$opcode as u16,
                bytes: size_of::<$name>() as u32,
            };
            /// Field names with byte offset and size, for the assembler's include file.
            pub const FIELDS: &'static [(&'static str, usize, usize)] =
                &[$((stringify!($field), core::mem::offset_of!($name, $field), size_of::<$ty>())),*];
        }
        const _: () = assert!(size_of::<$name>() <= PARAMETER_BYTES_MAX && size_of::<$name>() % 8 == 0);
    };
}

block! {
    /// Dequantises row `tokens[state.position]` of the table. Grid: ceil(chunks / 32) workgroups of one wave; lane = chunk.
    Embed = Embed {
        /// Step state.
        state_va: u64,
        /// Token ids, u32.
        tokens_va: u64,
        /// Weight planes (unused ones 0).
        plane_va: [u64; 4],
        /// Output, f32[columns].
        output_va: u64,
        /// Row length.
        columns: u32,
        /// ceil(columns / 32).
        chunks: u32,
        /// Vocabulary size; a token id at or beyond it reads row 0.
        rows: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// RMS norm of one vector. Grid: 1 workgroup of 256 threads.
    RmsNorm = RmsNorm {
        /// f32[count].
        input_va: u64,
        /// f32[count].
        weight_va: u64,
        /// f32[count]; may equal the input.
        output_va: u64,
        /// Elements.
        count: u32,
        /// f32 bits of 1/count.
        inverse_count: u32,
        /// f32 bits.
        epsilon: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// RMS norm of each head in place. Grid: one workgroup of one wave per head.
    QkNorm = QkNorm {
        /// f32[heads][head_size], in place.
        vector_va: u64,
        /// f32[head_size].
        weight_va: u64,
        /// Elements per head.
        head_size: u32,
        /// f32 bits of 1/head_size.
        inverse_head_size: u32,
        /// f32 bits.
        epsilon: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// Matrix times vector. Grid: ceil(rows / rows_per_group) workgroups of 4 waves; the kernel's rows per group is
    /// 4 waves × (32 / lanes_per_row) × `MATVEC_ROWS_PER_LANE`.
    Matvec = Matvec {
        /// Weight planes (unused ones 0).
        plane_va: [u64; 4],
        /// f32[columns].
        input_va: u64,
        /// f32[rows].
        output_va: u64,
        /// Output length.
        rows: u32,
        /// Row length.
        columns: u32,
        /// ceil(columns / 32).
        chunks: u32,
        /// log2 of the lanes that share a row (0..=5).
        lanes_per_row_log2: u32,
    }
}

block! {
    /// Rotary embedding in place. Grid: one workgroup of one wave per head.
    Rope = Rope {
        /// Step state.
        state_va: u64,
        /// f32[heads][head_size], in place.
        vector_va: u64,
        /// (cos, sin) pairs, f32[context][rotary_dimensions / 2][2].
        table_va: u64,
        /// Elements per head.
        head_size: u32,
        /// Rotated elements per head, even.
        rotary_dimensions: u32,
    }
}

block! {
    /// Stores this position's key and value rows. Grid: ceil(row_elements / 256) workgroups of 256 threads.
    KvWrite = KvWrite {
        /// Step state.
        state_va: u64,
        /// f32[row_elements].
        key_va: u64,
        /// f32[row_elements].
        value_va: u64,
        /// f32[context][row_elements] of this layer.
        key_cache_va: u64,
        /// f32[context][row_elements] of this layer.
        value_cache_va: u64,
        /// kv_heads × head_size.
        row_elements: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// Attention of one token over the cache. Grid: one workgroup of 4 waves per query head.
    Attention = Attention {
        /// Step state.
        state_va: u64,
        /// f32[heads][head_size].
        query_va: u64,
        /// f32[context][kv_heads × head_size] of this layer.
        key_cache_va: u64,
        /// f32[context][kv_heads × head_size] of this layer.
        value_cache_va: u64,
        /// f32[heads][head_size].
        output_va: u64,
        /// Elements per head: a multiple of 4, at most 256.
        head_size: u32,
        /// kv_heads × head_size.
        row_elements: u32,
        /// Query heads per key head.
        group_size: u32,
        /// f32 bits of 1/sqrt(head_size).
        scale: u32,
    }
}

block! {
    /// Gate. Grid: ceil(count / 256) workgroups of 256 threads.
    SwiGlu = SwiGlu {
        /// f32[count].
        gate_va: u64,
        /// f32[count].
        up_va: u64,
        /// f32[count]; may equal the gate.
        output_va: u64,
        /// Elements.
        count: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// hidden += addend. Grid: ceil(count / 256) workgroups of 256 threads.
    ResidualAdd = ResidualAdd {
        /// f32[count], in place.
        hidden_va: u64,
        /// f32[count].
        addend_va: u64,
        /// Elements.
        count: u32,
        /// 0.
        reserved: u32,
    }
}

block! {
    /// Picks the next token and advances the step state. Grid: 1 workgroup of 256 threads.
    Argmax = Argmax {
        /// Step state.
        state_va: u64,
        /// Token ids, u32[context].
        tokens_va: u64,
        /// f32[count].
        logits_va: u64,
        /// Vocabulary size.
        count: u32,
        /// Capacity of `tokens`.
        context: u32,
    }
}

block! {
    /// Copies dwords × 4. Grid: ceil(count / 256) workgroups of 256 threads, one 16-byte unit each.
    Copy = Copy {
        /// 16-byte aligned.
        source_va: u64,
        /// 16-byte aligned.
        destination_va: u64,
        /// 16-byte units.
        count: u32,
        /// 0.
        reserved: u32,
    }
}

/// One parameter-block type, as the assembler's include file and the kernel containers describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterBlock {
    /// The type's name.
    pub name: &'static str,
    /// The header that a block carries.
    pub header: Header,
    /// Field names with byte offset and size.
    pub fields: &'static [(&'static str, usize, usize)],
}

macro_rules! blocks {
    ($($name:ident),* $(,)?) => {
        /// Every parameter-block type.
        pub const PARAMETER_BLOCKS: &[ParameterBlock] = &[$(ParameterBlock {
            name: stringify!($name),
            header: $name::HEADER,
            fields: $name::FIELDS,
        }),*];
    };
}

blocks!(Embed, RmsNorm, QkNorm, Matvec, Rope, KvWrite, Attention, SwiGlu, ResidualAdd, Argmax, Copy);

/// The step state in device memory (`docs/kernels.md`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
pub struct StepState {
    /// Position of the token that the next step takes in.
    pub position: u32,
    /// Tokens given by the host.
    pub prompt_length: u32,
    /// The last step's choice.
    pub last_token: u32,
    /// Steps taken.
    pub step_count: u32,
    /// 0.
    pub reserved: [u32; 12],
}
