//! gfx1201 kernels: sources in `gfx1201/`, assembled blobs in `blobs/` with a manifest.
//!
//! Contract: data only; no `unsafe`, no allocation. Blobs are made by `cargo xtask asm` and tested for drift. What
//! kernels share with the host is in the crate `protocol`.
#![doc = include_str!("../README.md")]
#![no_std]
#![forbid(unsafe_code)]

pub mod source;

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
    "embed_fp8",
    "embed_int8",
    "embed_iq4_nl",
    "embed_iq4_xs",
    "embed_iq_codes",
    "embed_mxfp4",
    "embed_q2_k",
    "embed_q3_k",
    "embed_q4_0",
    "embed_q4_1",
    "embed_q4_k",
    "embed_q5_0",
    "embed_q5_1",
    "embed_q5_k",
    "embed_q6_k",
    "embed_q8_0",
    "geglu",
    "kv_write_f16",
    "kv_write_f32",
    "kv_write_q8_0",
    "matmul_bf16",
    "matmul_bf16_w16",
    "matmul_f16",
    "matmul_f16_w16",
    "matmul_f32",
    "matmul_fp8",
    "matmul_int8",
    "matmul_int8_a16",
    "matmul_int8_a8",
    "matmul_iq4_nl",
    "matmul_iq4_nl_a16",
    "matmul_iq4_nl_a8",
    "matmul_iq4_xs",
    "matmul_iq4_xs_a16",
    "matmul_iq4_xs_a8",
    "matmul_iq_codes",
    "matmul_iq_codes_a16",
    "matmul_iq_codes_a8",
    "matmul_mxfp4",
    "matmul_mxfp4_a16",
    "matmul_mxfp4_a8",
    "matmul_q2_k",
    "matmul_q2_k_a16",
    "matmul_q2_k_a8",
    "matmul_q3_k",
    "matmul_q3_k_a16",
    "matmul_q3_k_a8",
    "matmul_q4_0",
    "matmul_q4_0_a16",
    "matmul_q4_0_a8",
    "matmul_q4_1",
    "matmul_q4_1_a16",
    "matmul_q4_1_a8",
    "matmul_q4_k",
    "matmul_q4_k_a16",
    "matmul_q4_k_a8",
    "matmul_q5_0",
    "matmul_q5_0_a16",
    "matmul_q5_0_a8",
    "matmul_q5_1",
    "matmul_q5_1_a16",
    "matmul_q5_1_a8",
    "matmul_q5_k",
    "matmul_q5_k_a16",
    "matmul_q5_k_a8",
    "matmul_q6_k",
    "matmul_q6_k_a16",
    "matmul_q6_k_a8",
    "matmul_q8_0",
    "matmul_q8_0_a16",
    "matmul_q8_0_a8",
    "mega",
    "plan",
    "qk_norm",
    "quantise_a16",
    "quantise_a8",
    "residual_add",
    "rms_norm",
    "rope_halves",
    "rope_interleaved",
    "sample",
    "scale",
    "soft_cap",
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
