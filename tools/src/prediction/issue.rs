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

    /// One of each family, as the assembler names them.
    #[test]
    fn every_family_of_instructions_has_its_class() {
        let [wide, quarter, full] = [Vector::Wide, Vector::Quarter, Vector::Full].map(Class::Vector);
        for (class, names) in [
            (
                quarter,
                "v_rsq_f32 v_sqrt_f32 v_exp_f32 v_log_f32 v_sin_f32 v_cos_f32 v_mul_hi_u32 v_mad_co_u64_u32",
            ),
            (wide, "v_lshl_add_u64 v_ashrrev_i64 v_mov_b64_e32"),
            (full, "v_cmp_lt_u64_e32 v_cmp_eq_i64_e64 v_cmpx_ne_u64_e32 v_mul_u32_u24_e32 v_readlane_b32"),
            (Class::Branch, "s_branch s_cbranch_vccz s_setpc_b64 s_swappc_b64 s_call_b64"),
            (Class::Scalar, "s_buffer_load_b128 s_getpc_b64 s_cmp_eq_u32 s_and_saveexec_b32"),
            (
                Class::VectorMemory,
                "flat_load_b32 buffer_store_b32 scratch_load_b32 tbuffer_load_format_x image_load",
            ),
            (Class::VectorMemory, "global_atomic_add_u32 global_store_b8"),
            (
                Class::Other,
                "s_nop s_delay_alu s_sleep s_barrier_signal s_clause s_endpgm s_sendmsg s_icache_inv",
            ),
            (Class::Other, "s_prefetch_data s_setprio s_wait_dscnt global_wb global_wbinv export"),
        ] {
            for name in names.split(' ') {
                assert_eq!(Class::of(name), class, "{name}");
            }
        }
    }

    #[test]
    fn each_rate_costs_what_the_card_says() {
        let card = Card {
            wide_clocks: 3.0,
            quarter_rate_clocks: 5.0,
            double_clocks: 33.0,
            ..Card::at(Estimate::Typical)
        };
        let clocks =
            [Vector::Full, Vector::Wide, Vector::Quarter, Vector::Double].map(|one| one.clocks(&card));
        assert_eq!(clocks, [1.0, 3.0, 5.0, 33.0]);
        let of = |name| matrix(name).clocks(&card);
        assert_eq!([of("v_swmmac_i32_16x16x128_iu4"), of("v_wmma_f32_16x16x16_bf8_fp8")], [16.0, 8.0]);
        // Four products, as newer chips have them in one instruction.
        assert_eq!(of("v_wmma_f32_16x16x64_fp8_bf8"), 32.0);
    }
}
