//! What an instruction costs where: its class by its mnemonic, and the cycles that it occupies a SIMD.
//!
//! Contract: pure. The class follows from the name alone, so that a kernel nobody has seen yet is counted too.

use super::card::Card;

/// Where an instruction goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The vector unit.
    Vector(Vector),
    /// The scalar unit, scalar loads included.
    Scalar,
    /// A branch.
    Branch,
    /// Loads, stores and atomics of lanes.
    VectorMemory,
    /// LDS.
    Lds,
    /// A barrier's wait.
    Barrier,
    /// What only takes the wave's time: waits, hints, cache operations.
    Other,
}

/// Rates of the vector unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vector {
    /// One pass; a pair (`v_dual_*`) is one too.
    Full,
    /// Operations on 64 bits.
    Wide,
    /// Transcendental operations and full 32-bit products.
    Quarter,
    /// binary64.
    Double,
    /// Matrices of integers or bytes; with the number of 16 × 16 × 16 products, of which those of 4 bits count half.
    MatrixInteger {
        /// Halves of a product of 8-bit elements.
        halves: u32,
    },
    /// Matrices of 16-bit floats.
    MatrixFloat,
}

impl Class {
    /// The class of a mnemonic.
    pub fn of(mnemonic: &str) -> Class {
        let starts = |all: &[&str]| all.iter().any(|start| mnemonic.starts_with(start));
        if starts(&["v_wmma", "v_swmmac"]) {
            return Class::Vector(matrix(mnemonic));
        }
        if starts(&["v_"]) {
            return Class::Vector(vector(mnemonic));
        }
        if starts(&["s_barrier_wait"]) {
            Class::Barrier
        } else if starts(&["s_cbranch", "s_branch", "s_setpc", "s_swappc", "s_call"]) {
            Class::Branch
        } else if starts(&[
            "s_wait",
            "s_nop",
            "s_delay_alu",
            "s_sleep",
            "s_barrier",
            "s_clause",
            "s_endpgm",
            "s_sendmsg",
            "s_prefetch",
            "s_setprio",
            "s_icache",
            "s_set_gpr",
            "global_inv",
            "global_wb",
        ]) {
            Class::Other
        } else if starts(&["s_"]) {
            Class::Scalar
        } else if starts(&["ds_"]) {
            Class::Lds
        } else if starts(&["global_", "flat_", "buffer_", "scratch_", "tbuffer_", "image_"]) {
            Class::VectorMemory
        } else {
            Class::Other
        }
    }
}

impl Vector {
    /// Cycles of the SIMD for a wave of 32 lanes.
    pub fn clocks(self, card: &Card) -> f64 {
        match self {
            Vector::Full => 1.0,
            Vector::Wide => card.wide_clocks,
            Vector::Quarter => card.quarter_rate_clocks,
            Vector::Double => card.double_clocks,
            Vector::MatrixInteger { halves } => card.wmma_integer_clocks * f64::from(halves) / 2.0,
            Vector::MatrixFloat => card.wmma_float_clocks,
        }
    }
}

/// A sparse matrix instruction takes as long as the dense one of half its K.
fn matrix(mnemonic: &str) -> Vector {
    let is_sparse = mnemonic.starts_with("v_swmmac");
    let depth = ["16x16x128", "16x16x64", "16x16x32"].iter().zip([8, 4, 2]);
    let depth = depth.into_iter().find(|(shape, _)| mnemonic.contains(*shape)).map_or(1, |(_, depth)| depth);
    let dense = if is_sparse { depth / 2 } else { depth }.max(1);
    let is_nibbles = mnemonic.contains("iu4");
    if is_nibbles {
        Vector::MatrixInteger { halves: dense }
    } else if ["iu8", "fp8", "bf8"].iter().any(|kind| mnemonic.contains(kind)) {
        Vector::MatrixInteger { halves: 2 * dense }
    } else {
        Vector::MatrixFloat
    }
}

fn vector(mnemonic: &str) -> Vector {
    let has = |parts: &[&str]| parts.iter().any(|part| mnemonic.contains(part));
    if has(&["_f64"]) {
        Vector::Double
    } else if has(&[
        "v_rcp_",
        "v_rsq_",
        "v_sqrt_",
        "v_exp_",
        "v_log_",
        "v_sin_",
        "v_cos_",
        "v_mul_lo_u32",
        "v_mul_hi_",
        "v_mad_co_u64",
        "v_mad_co_i64",
        "v_mad_nc_u64",
        "v_mad_u64",
        "v_mad_i64",
    ]) {
        Vector::Quarter
    } else if has(&["_b64", "_u64", "_i64"]) && !has(&["v_cmp"]) {
        Vector::Wide
    } else {
        Vector::Full
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prediction::card::Estimate;

    #[test]
    fn classes_follow_from_names() {
        for (name, class) in [
            ("v_dual_fmac_f32", Class::Vector(Vector::Full)),
            ("v_dot4_i32_iu8", Class::Vector(Vector::Full)),
            ("v_lshlrev_b64_e32", Class::Vector(Vector::Wide)),
            ("v_rcp_f32_e32", Class::Vector(Vector::Quarter)),
            ("v_mul_lo_u32", Class::Vector(Vector::Quarter)),
            ("v_fma_f64", Class::Vector(Vector::Double)),
            ("s_wait_loadcnt", Class::Other),
            ("s_barrier_wait", Class::Barrier),
            ("s_cbranch_scc1", Class::Branch),
            ("s_load_b128", Class::Scalar),
            ("s_add_co_u32", Class::Scalar),
            ("global_load_b128", Class::VectorMemory),
            ("global_inv", Class::Other),
            ("ds_load_b128", Class::Lds),
        ] {
            assert_eq!(Class::of(name), class, "{name}");
        }
    }

    /// By hand, from 2048 operations of 8 bits in a clock and compute unit, twice that of 4 bits, half of 16 bits.
    #[test]
    fn matrices_cost_what_their_products_do() {
        let card = Card::at(Estimate::Typical);
        for (name, clocks) in [
            ("v_wmma_i32_16x16x16_iu8", 8.0),
            ("v_wmma_i32_16x16x16_iu4", 4.0),
            ("v_wmma_i32_16x16x32_iu4", 8.0),
            ("v_wmma_f32_16x16x16_fp8_bf8", 8.0),
            ("v_wmma_f32_16x16x16_f16", 16.0),
            ("v_swmmac_i32_16x16x32_iu8", 8.0),
            ("v_swmmac_i32_16x16x64_iu4", 8.0),
            ("v_swmmac_f32_16x16x32_bf16", 16.0),
        ] {
            let Class::Vector(vector) = Class::of(name) else { panic!("{name}") };
            assert_eq!(vector.clocks(&card), clocks, "{name}");
        }
    }
}
