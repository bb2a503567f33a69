//! The building blocks of `docs/arithmetic.md` in scalar f32.
//!
//! Contract: each function returns the bits that the page defines, for every finite input in its range. IEEE operations
//! only; `mul_add` is fused on every platform that Rust supports.

/// Lanes of a wave32, over which reductions are defined.
pub const LANES: usize = 32;

const LOG2_E: f32 = f32::from_bits(0x3FB8_AA3B);
const LN_2_HIGH: f32 = f32::from_bits(0x3F31_7200);
const LN_2_LOW: f32 = f32::from_bits(0x35BF_BE8E);
/// C6 down to C0.
const EXP_COEFFICIENTS: [u32; 7] =
    [0x3AB6_0B61, 0x3C08_8889, 0x3D2A_AAAB, 0x3E2A_AAAB, 0x3F00_0000, 0x3F80_0000, 0x3F80_0000];

/// tree(L): pairwise sums at distances 1, 2, 4, ... below `lanes` (a power of two, at most 32). On the device all lanes
/// end with the same value; here the first of each pair has its sum.
pub fn tree(mut values: [f32; LANES], lanes: usize) -> f32 {
    let mut distance = 1;
    while distance < lanes {
        for lane in (0..lanes).step_by(2 * distance) {
            values[lane] += values[lane + distance];
        }
        distance *= 2;
    }
    values[0]
}

/// 1/d, correctly rounded.
pub fn reciprocal(divisor: f32) -> f32 {
    1.0 / divisor
}

/// The square root, correctly rounded (IEEE-754 requires it of the host's).
pub fn square_root(value: f32) -> f32 {
    value.sqrt()
}

/// e^x by the polynomial of the definition; x is clamped to -87..=80.
pub fn exponential(x: f32) -> f32 {
    let x = x.clamp(-87.0, 80.0);
    let exponent = (x * LOG2_E).round_ties_even();
    let rest = (-exponent).mul_add(LN_2_HIGH, x);
    let rest = (-exponent).mul_add(LN_2_LOW, rest);
    let mut sum = f32::from_bits(EXP_COEFFICIENTS[0]);
    for coefficient in &EXP_COEFFICIENTS[1..] {
        sum = sum.mul_add(rest, f32::from_bits(*coefficient));
    }
    // -126 <= exponent <= 116 and 0.7 < sum < 1.5: the result is normal, so the multiplication is exact.
    sum * f32::from_bits(((127 + exponent as i32) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_adds_neighbours_first() {
        let mut values = [0.0; LANES];
        // 1 + 2^-24 rounds to 1 alone, but the two small ones added first survive.
        values[0] = 1.0;
        values[2] = 2f32.powi(-24);
        values[3] = 2f32.powi(-24);
        assert_eq!(tree(values, 32), 1.0 + 2f32.powi(-23));
        values[1] = values[3];
        values[3] = 0.0;
        assert_eq!(tree(values, 32), 1.0);
        assert_eq!(tree([1.0; LANES], 8), 8.0);
        // Each lane counts once, and lanes beyond are none.
        let powers = std::array::from_fn(|lane| if lane < 16 { (1u32 << lane) as f32 } else { f32::NAN });
        assert_eq!([1, 2, 4, 8, 16].map(|lanes| tree(powers, lanes)), [1.0, 3.0, 15.0, 255.0, 65535.0]);
    }

    #[test]
    fn the_exponential_is_within_two_units_and_exact_at_zero() {
        assert_eq!(exponential(0.0).to_bits(), 0x3F80_0000);
        for step in -87_000..80_000 {
            let x = step as f32 / 1000.0;
            let exact = f64::from(x).exp();
            assert!((f64::from(exponential(x)) / exact - 1.0).abs() < 2.0 / 8_388_608.0, "at {x}");
        }
        assert_eq!(exponential(-1e9), exponential(-87.0));
        assert_eq!(exponential(1e9), exponential(80.0));
    }
}
