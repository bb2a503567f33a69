//! gfx1201 kernels: sources in `gfx1201/`, assembled blobs in `blobs/` with a manifest, and one parameter-block type
//! per kernel.
//!
//! Contract: data only; no `unsafe`, no allocation. Blobs are made by `cargo xtask asm` and tested for drift.
#![no_std]
#![forbid(unsafe_code)]

pub mod params;
pub mod source;

/// Rows that one lane of a MATVEC kernel works on at once, so that each loaded input value is used for all of them. A
/// workgroup of MATVEC makes 4 waves × (32 / lanes per row) × this many rows. Generated into the kernels' includes.
pub const MATVEC_ROWS_PER_LANE: u32 = 4;
/// Waves of a MATVEC workgroup.
pub const MATVEC_WAVES_PER_GROUP: u32 = 4;

/// Rows that one workgroup of a MATVEC kernel makes, with 2^`lanes_per_row_log2` (0..=5) lanes on a row. The grid is
/// the number of rows divided by this, rounded up.
pub const fn matvec_rows_per_group(lanes_per_row_log2: u32) -> u32 {
    MATVEC_WAVES_PER_GROUP * (32 >> lanes_per_row_log2) * MATVEC_ROWS_PER_LANE
}

macro_rules! kernels {
    ($($name:literal),* $(,)?) => {
        /// The assembled containers (`.zrt`, see `docs/zrt-format.md`), sorted by name.
        pub const KERNELS: &[(&str, &[u8])] = &[$(($name, include_bytes!(concat!("../blobs/", $name, ".zrt")))),*];
    };
}

kernels![
    "argmax",
    "attention",
    "copy",
    "embed_bf16",
    "embed_f16",
    "embed_f32",
    "embed_q4_0",
    "embed_q4_k",
    "embed_q6_k",
    "embed_q8_0",
    "kv_write",
    "matvec_bf16",
    "matvec_f16",
    "matvec_f32",
    "matvec_q4_0",
    "matvec_q4_k",
    "matvec_q6_k",
    "matvec_q8_0",
    "qk_norm",
    "residual_add",
    "rms_norm",
    "rope_halves",
    "rope_interleaved",
    "swiglu",
];

/// The container of a kernel.
pub fn blob(name: &str) -> Option<&'static [u8]> {
    KERNELS.iter().find(|(kernel, _)| *kernel == name).map(|(_, blob)| *blob)
}
