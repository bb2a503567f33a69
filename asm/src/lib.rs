//! gfx1201 kernels: sources in `gfx1201/`, assembled blobs in `blobs/` with a manifest, and one parameter-block type
//! per kernel.
//!
//! Contract: data only; no `unsafe`, no allocation. Blobs are made by `cargo xtask asm` and tested for drift.
#![no_std]
#![forbid(unsafe_code)]

pub mod params;
pub mod session;
pub mod source;

/// Weight rows that one lane of a MATMUL kernel works on at once, so that each loaded input value is used for all of
/// them. Generated into the kernels' includes.
pub const MATMUL_ROWS_PER_LANE: u32 = 4;
/// Waves of every kernel's workgroup.
pub const GROUP_WAVES: u32 = session::GROUP_ITEMS / 32;

/// Weight rows that one unit of a MATMUL kernel makes, with 2^`lanes_per_row_log2` (0..=5) lanes on a row.
pub const fn matmul_rows_per_unit(lanes_per_row_log2: u32) -> u32 {
    GROUP_WAVES * (32 >> lanes_per_row_log2) * MATMUL_ROWS_PER_LANE
}

/// Units of KV_WRITE for each row: one for every 256 elements of the row.
pub const fn kv_write_units(row_elements: u32) -> u32 {
    row_elements.div_ceil(session::GROUP_ITEMS)
}

macro_rules! kernels {
    ($($name:literal),* $(,)?) => {
        /// The assembled containers (`.zrt`, see `docs/zrt-format.md`), sorted by name.
        pub const KERNELS: &[(&str, &[u8])] = &[$(($name, include_bytes!(concat!("../blobs/", $name, ".zrt")))),*];
    };
}

kernels![
    "attention_f16",
    "attention_f32",
    "attention_q8_0",
    "boundary",
    "copy",
    "embed_bf16",
    "embed_f16",
    "embed_f32",
    "embed_q4_0",
    "embed_q4_k",
    "embed_q6_k",
    "embed_q8_0",
    "kv_write_f16",
    "kv_write_f32",
    "kv_write_q8_0",
    "matmul_bf16",
    "matmul_f16",
    "matmul_f32",
    "matmul_q4_0",
    "matmul_q4_k",
    "matmul_q6_k",
    "matmul_q8_0",
    "mega",
    "plan",
    "qk_norm",
    "residual_add",
    "rms_norm",
    "rope_halves",
    "rope_interleaved",
    "sample",
    "swiglu",
];

/// The container of a kernel.
pub fn blob(name: &str) -> Option<&'static [u8]> {
    KERNELS.iter().find(|(kernel, _)| *kernel == name).map(|(_, blob)| *blob)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_isa::resources::Rsrc1;
    use zrt_isa::zrt::Kernel;

    /// Groups of the megakernel wait for one another: an older wave that spins must not keep a younger one back.
    #[test]
    fn waves_of_every_kernel_come_to_their_turn() {
        for (name, container) in KERNELS {
            let kernel = Kernel::parse(container).expect("a sound container");
            let words = Rsrc1::parse(kernel.rsrc1).expect("register words");
            assert!(words.forward_progress && words.memory_ordered, "{name}");
        }
    }
}
