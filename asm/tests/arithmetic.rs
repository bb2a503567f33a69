//! The repair sequences of `gfx1201/include/math.inc`, step by step on the CPU: whatever the approximate instruction
//! returns within one unit in the last place, the result is correctly rounded.

/// RECIP with a seed `error` units away from the best.
fn repaired_reciprocal(d: f32, error: i32) -> f32 {
    let seed = f32::from_bits(((1.0 / d).to_bits() as i32 + error) as u32);
    // Products of two f32 are exact in f64, and so is a residual near 0: these are fmas with one rounding.
    let residual = |r: f32| (1.0 - f64::from(d) * f64::from(r)) as f32;
    let newton = residual(seed).mul_add(seed, seed);
    let first = residual(newton);
    let step = if first.is_sign_negative() { -1 } else { 1 };
    let neighbour = f32::from_bits((newton.to_bits() as i32 + step) as u32);
    if residual(neighbour).abs() < first.abs() { neighbour } else { newton }
}

/// SQRT with a seed `error` units away from the best.
fn repaired_square_root(x: f32, error: i32) -> f32 {
    let scale = if x < f32::from_bits(0x0F80_0000) { 32 } else { 0 };
    let x = (f64::from(x) * 2f64.powi(scale)) as f32;
    let seed = f32::from_bits((x.sqrt().to_bits() as i32 + error) as u32);
    let below = f32::from_bits(seed.to_bits().wrapping_sub(1));
    let above = f32::from_bits(seed.to_bits().wrapping_add(1));
    let residual = |s: f32| f64::from(x) - f64::from(s) * f64::from(seed);
    let mut root = seed;
    if residual(below) <= 0.0 {
        root = below;
    } else if residual(above) > 0.0 {
        root = above;
    }
    (f64::from(root) / 2f64.powi(scale / 2)) as f32
}

/// Every mantissa. Other exponents are the same up to powers of two, as long as nothing is denormal.
#[test]
fn reciprocal_is_correctly_rounded_for_every_mantissa_and_seed_error() {
    for mantissa in 0..1u32 << 23 {
        let d = f32::from_bits(0x3F80_0000 | mantissa);
        for error in -1..=1 {
            let found = repaired_reciprocal(d, error);
            assert_eq!(found.to_bits(), (1.0 / d).to_bits(), "1 / {d:e} with a seed off by {error}");
        }
    }
}

#[test]
fn reciprocal_holds_at_the_ends_of_its_range() {
    for exponent in [-100, -64, -1, 0, 1, 63, 100, 115] {
        for mantissa in (0..1u32 << 23).step_by(4099) {
            let d = f32::from_bits(((127 + exponent) as u32) << 23 | mantissa);
            for error in -1..=1 {
                let found = repaired_reciprocal(d, error);
                assert_eq!(found.to_bits(), (1.0 / d).to_bits(), "1 / {d:e} with a seed off by {error}");
            }
        }
    }
}

/// Every mantissa at both parities of the exponent: [1, 4).
#[test]
fn square_root_is_correctly_rounded_for_every_mantissa_and_seed_error() {
    for bits in 0x3F80_0000u32..0x4080_0000 {
        let x = f32::from_bits(bits);
        for error in -1..=1 {
            let found = repaired_square_root(x, error);
            assert_eq!(found.to_bits(), x.sqrt().to_bits(), "sqrt({x:e}) with a seed off by {error}");
        }
    }
}

#[test]
fn square_root_is_scaled_where_the_argument_is_tiny() {
    for bits in (0x0000_0001u32..0x1000_0000).step_by(10_007) {
        let x = f32::from_bits(bits);
        for error in -1..=1 {
            let found = repaired_square_root(x, error);
            assert_eq!(found.to_bits(), x.sqrt().to_bits(), "sqrt({x:e}) with a seed off by {error}");
        }
    }
}

/// The exponential is a polynomial of ours; this bounds how far it is from e^x, so that a wrong constant shows.
#[test]
fn constants_of_the_exponential_are_the_documented_fractions() {
    let constants = [
        (0x3AB6_0B61u32, 720.0),
        (0x3C08_8889, 120.0),
        (0x3D2A_AAAB, 24.0),
        (0x3E2A_AAAB, 6.0),
        (0x3F00_0000, 2.0),
    ];
    for (bits, denominator) in constants {
        assert_eq!(f32::from_bits(bits), (1.0f64 / denominator) as f32);
    }
    let high = f64::from(f32::from_bits(0x3F31_7200));
    let low = f64::from(f32::from_bits(0x35BF_BE8E));
    assert!((high + low - core::f64::consts::LN_2).abs() < 1e-13);
    assert_eq!(f32::from_bits(0x3FB8_AA3B), core::f32::consts::LOG2_E);
    assert_eq!(0x3F31_7200 & 0x1FF, 0, "the high part keeps 15 significant bits, so n times it is exact");
}
