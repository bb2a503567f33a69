//! Exact models of floating-point arithmetic: every rounding and denormal mode of MODE, in integers.
//!
//! Contract: results are correctly rounded for the given environment and the same on every host. If MODE has its
//! usual value (round to nearest even, denormals kept), the fast paths of the ALU use the host's own arithmetic.
//! Otherwise they fall back to these models, which the tests also compare them with. NaN results are the canonical
//! quiet NaN.
//! Cost: about 20 ns per operation.

pub mod approximate;

/// A binary interchange format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    exponent_bits: u32,
    fraction_bits: u32,
}

/// binary16.
pub const HALF: Format = Format { exponent_bits: 5, fraction_bits: 10 };
/// binary32.
pub const SINGLE: Format = Format { exponent_bits: 8, fraction_bits: 23 };
/// binary64.
pub const DOUBLE: Format = Format { exponent_bits: 11, fraction_bits: 52 };
/// OCP E5M2, "bf8".
pub const BF8: Format = Format { exponent_bits: 5, fraction_bits: 2 };
/// The finite values of OCP E4M3, "fp8", treated as if its top exponent were ordinary: see [`single_to_fp8`].
const FP8_WIDE: Format = Format { exponent_bits: 5, fraction_bits: 3 };

/// Canonical quiet NaN of binary16.
pub const HALF_NAN: u32 = 0x7E00;
/// Canonical quiet NaN of binary32.
pub const SINGLE_NAN: u32 = 0x7FC0_0000;
/// Canonical quiet NaN of binary64.
pub const DOUBLE_NAN: u64 = 0x7FF8_0000_0000_0000;

/// Rounding direction, numbered as in MODE (instruction set reference §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To nearest, ties to even.
    NearestEven,
    /// Toward plus infinity.
    Up,
    /// Toward minus infinity.
    Down,
    /// Toward zero.
    Zero,
}

/// Rounding and denormal handling of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Environment {
    /// Rounding direction.
    pub round: Round,
    /// Denormal sources count as zero of their sign.
    pub flush_sources: bool,
    /// Denormal results become zero of their sign.
    pub flush_results: bool,
    /// A finite result too large for the format becomes the largest finite value (FP16_OVFL).
    pub saturate: bool,
}

impl Environment {
    /// IEEE defaults: nearest even, denormals kept.
    pub const DEFAULT: Environment = Environment {
        round: Round::NearestEven,
        flush_sources: false,
        flush_results: false,
        saturate: false,
    };
}

/// The MODE register's arithmetic fields (instruction set reference §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mode(pub u32);

/// FP16_OVFL in MODE; RSRC1 bit 26 sets it at launch (instruction set reference §10).
pub const MODE_FP16_OVERFLOW: u32 = 1 << 23;

impl Mode {
    /// Environment of f32 operations.
    pub fn single(self) -> Environment {
        Self::environment(self.0 & 3, self.0 >> 4 & 3, false)
    }

    /// Environment of f16 operations.
    pub fn half(self) -> Environment {
        Self::environment(self.0 >> 2 & 3, self.0 >> 6 & 3, self.0 & MODE_FP16_OVERFLOW != 0)
    }

    /// Environment of f64 operations.
    pub fn double(self) -> Environment {
        Self::environment(self.0 >> 2 & 3, self.0 >> 6 & 3, false)
    }

    fn environment(round: u32, denormal: u32, saturate: bool) -> Environment {
        let round = [Round::NearestEven, Round::Up, Round::Down, Round::Zero][round as usize & 3];
        // 0 flushes both, 1 results only, 2 sources only, 3 keeps all.
        Environment { round, flush_sources: denormal & 1 == 0, flush_results: denormal & 2 == 0, saturate }
    }
}

/// A number as sign, integer significand, and the power of two of its last bit.
#[derive(Clone, Copy, Debug)]
struct Number {
    negative: bool,
    significand: u128,
    exponent: i32,
}

#[derive(Clone, Copy, Debug)]
enum Decoded {
    Nan,
    Infinite { negative: bool },
    Finite(Number),
}

impl Format {
    /// Bits of the format.
    pub const fn bits(self) -> u32 {
        1 + self.exponent_bits + self.fraction_bits
    }

    const fn sign_bit(self) -> u64 {
        1 << (self.bits() - 1)
    }

    /// Encoding of plus infinity.
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << self.fraction_bits
    }

    /// The canonical quiet NaN.
    pub const fn nan(self) -> u64 {
        self.infinity() | 1 << (self.fraction_bits - 1)
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent_bits - 1)) - 1
    }

    const fn minimum_exponent(self) -> i32 {
        1 - self.bias()
    }

    /// True if the encoding is a NaN.
    pub fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign_bit() - 1) > self.infinity()
    }

    /// True if the encoding is a denormal number other than zero.
    pub fn is_denormal(self, bits: u64) -> bool {
        let magnitude = bits & (self.sign_bit() - 1);
        magnitude != 0 && magnitude < 1 << self.fraction_bits
    }

    /// The encoding, with a denormal replaced by zero of its sign if the environment flushes sources.
    pub fn flush_source(self, bits: u64, environment: Environment) -> u64 {
        if environment.flush_sources && self.is_denormal(bits) { bits & self.sign_bit() } else { bits }
    }

    /// The encoding, with a denormal replaced by zero of its sign if the environment flushes results.
    pub fn flush_result(self, bits: u64, environment: Environment) -> u64 {
        if environment.flush_results && self.is_denormal(bits) { bits & self.sign_bit() } else { bits }
    }

    fn decode(self, bits: u64, environment: Environment) -> Decoded {
        let bits = self.flush_source(bits, environment);
        let negative = bits & self.sign_bit() != 0;
        let magnitude = bits & (self.sign_bit() - 1);
        if magnitude > self.infinity() {
            return Decoded::Nan;
        }
        if magnitude == self.infinity() {
            return Decoded::Infinite { negative };
        }
        let field = (magnitude >> self.fraction_bits) as i32;
        let fraction = magnitude & ((1 << self.fraction_bits) - 1);
        let significand = if field == 0 { fraction } else { fraction | 1 << self.fraction_bits };
        let exponent = field.max(1) - self.bias() - self.fraction_bits as i32;
        Decoded::Finite(Number { negative, significand: significand as u128, exponent })
    }

    fn infinite(self, negative: bool) -> u64 {
        self.infinity() | if negative { self.sign_bit() } else { 0 }
    }

    /// Rounds a number; its last bit may be sticky, for anything below it.
    fn encode(self, number: Number, environment: Environment) -> u64 {
        let sign = if number.negative { self.sign_bit() } else { 0 };
        if number.significand == 0 {
            return sign;
        }
        let leading = number.exponent + 127 - number.significand.leading_zeros() as i32;
        let scale = leading.max(self.minimum_exponent());
        let last = scale - self.fraction_bits as i32;
        let kept =
            round_shift(number.significand, last - number.exponent, number.negative, environment.round);
        // The leading one of `kept` increments the exponent field; a carry moves into the next binade by itself.
        let magnitude = (((scale + self.bias() - 1) as u128) << self.fraction_bits) + kept;
        if magnitude >= self.infinity() as u128 {
            let to_infinity = match environment.round {
                Round::NearestEven => true,
                Round::Up => !number.negative,
                Round::Down => number.negative,
                Round::Zero => false,
            };
            let infinite = to_infinity && !environment.saturate;
            return sign | if infinite { self.infinity() } else { self.infinity() - 1 };
        }
        self.flush_result(sign | magnitude as u64, environment)
    }
}

/// Drops `shift` low bits (a negative shift appends zeros), rounding.
fn round_shift(significand: u128, shift: i32, negative: bool, round: Round) -> u128 {
    if shift <= 0 || significand == 0 {
        return significand << (-shift).max(0);
    }
    let (kept, rest, half) = if shift > 127 {
        (0, 1, 2)
    } else {
        (significand >> shift, significand & ((1 << shift) - 1), 1u128 << (shift - 1))
    };
    let up = match round {
        Round::NearestEven => rest > half || (rest == half && kept & 1 == 1),
        Round::Up => rest != 0 && !negative,
        Round::Down => rest != 0 && negative,
        Round::Zero => false,
    };
    kept + up as u128
}

/// The sum, exact except for a sticky last bit; `None` for an exact zero from unlike signs.
fn sum(left: Number, right: Number) -> Option<Number> {
    if left.significand == 0 && right.significand == 0 {
        return (left.negative == right.negative).then_some(left);
    }
    if left.significand == 0 {
        return Some(right);
    }
    if right.significand == 0 {
        return Some(left);
    }
    // Leading bits at position 125: space for a carry above, and at least 19 bits below the longest product (106
    // bits), so that a shift by one loses nothing and a longer one leaves the sticky bit far below the rounding
    // position.
    let normal = |number: Number| {
        let shift = number.significand.leading_zeros() as i32 - 2;
        Number { significand: number.significand << shift, exponent: number.exponent - shift, ..number }
    };
    let (mut large, mut small) = (normal(left), normal(right));
    if (large.exponent, large.significand) < (small.exponent, small.significand) {
        core::mem::swap(&mut large, &mut small);
    }
    let distance = (large.exponent - small.exponent) as u32;
    let shifted = if distance > 127 {
        1
    } else {
        let lost = small.significand & ((1u128 << distance) - 1) != 0;
        small.significand >> distance | lost as u128
    };
    let significand = if large.negative == small.negative {
        large.significand + shifted
    } else {
        large.significand - shifted
    };
    (significand != 0).then_some(Number { significand, ..large })
}

fn encode_sum(format: Format, total: Option<Number>, environment: Environment) -> u64 {
    match total {
        Some(number) => format.encode(number, environment),
        // x - x is +0, but -0 when rounding down (IEEE 754 §6.3).
        None if environment.round == Round::Down => format.sign_bit(),
        None => 0,
    }
}

/// `a + b`.
pub fn add(format: Format, a: u64, b: u64, environment: Environment) -> u64 {
    use Decoded::*;
    match (format.decode(a, environment), format.decode(b, environment)) {
        (Nan, _) | (_, Nan) => format.nan(),
        (Infinite { negative: x }, Infinite { negative: y }) if x != y => format.nan(),
        (Infinite { negative }, _) | (_, Infinite { negative }) => format.infinite(negative),
        (Finite(x), Finite(y)) => encode_sum(format, sum(x, y), environment),
    }
}

/// `a * b`.
pub fn multiply(format: Format, a: u64, b: u64, environment: Environment) -> u64 {
    use Decoded::*;
    match (format.decode(a, environment), format.decode(b, environment)) {
        (Nan, _) | (_, Nan) => format.nan(),
        (Infinite { negative: x }, Infinite { negative: y }) => format.infinite(x != y),
        (Infinite { negative }, Finite(number)) | (Finite(number), Infinite { negative }) => {
            if number.significand == 0 { format.nan() } else { format.infinite(negative != number.negative) }
        }
        (Finite(x), Finite(y)) => format.encode(product(x, y), environment),
    }
}

fn product(x: Number, y: Number) -> Number {
    Number {
        negative: x.negative != y.negative,
        significand: x.significand * y.significand,
        exponent: x.exponent + y.exponent,
    }
}

/// `(a * b + c) * 2^scale`, rounded once.
pub fn multiply_add_scaled(format: Format, [a, b, c]: [u64; 3], scale: i32, environment: Environment) -> u64 {
    use Decoded::*;
    let (x, y, z) =
        (format.decode(a, environment), format.decode(b, environment), format.decode(c, environment));
    let infinite_product = match (x, y) {
        (Nan, _) | (_, Nan) => return format.nan(),
        (Infinite { negative: x }, Infinite { negative: y }) => Some(x != y),
        (Infinite { negative }, Finite(number)) | (Finite(number), Infinite { negative }) => {
            if number.significand == 0 {
                return format.nan();
            }
            Some(negative != number.negative)
        }
        (Finite(_), Finite(_)) => None,
    };
    match (infinite_product, x, y, z) {
        (_, _, _, Nan) => format.nan(),
        (Some(negative), _, _, Infinite { negative: other }) if negative != other => format.nan(),
        (Some(negative), ..) | (None, _, _, Infinite { negative }) => format.infinite(negative),
        (None, Finite(x), Finite(y), Finite(z)) => {
            let total = sum(product(x, y), z).map(|n| Number { exponent: n.exponent + scale, ..n });
            encode_sum(format, total, environment)
        }
        // The sources are finite if the product is.
        _ => format.nan(),
    }
}

/// `a * b + c`, rounded once.
pub fn multiply_add(format: Format, sources: [u64; 3], environment: Environment) -> u64 {
    multiply_add_scaled(format, sources, 0, environment)
}

/// `a * 2^power`, rounded once.
pub fn scale(format: Format, a: u64, power: i32, environment: Environment) -> u64 {
    match format.decode(a, environment) {
        Decoded::Nan => format.nan(),
        Decoded::Infinite { negative } => format.infinite(negative),
        Decoded::Finite(number) => {
            // Beyond 5000 every format has overflowed or vanished; the clamp keeps the sum from wrapping.
            let power = power.clamp(-5000, 5000);
            format.encode(Number { exponent: number.exponent + power, ..number }, environment)
        }
    }
}

/// Converts between formats; sources are flushed by the first environment, results rounded by the second.
pub fn convert(from: Format, to: Format, a: u64, source: Environment, result: Environment) -> u64 {
    match from.decode(a, source) {
        Decoded::Nan => to.nan(),
        Decoded::Infinite { negative } => to.infinite(negative),
        Decoded::Finite(number) => to.encode(number, result),
    }
}

/// Converts an integer.
pub fn from_integer(format: Format, value: i128, environment: Environment) -> u64 {
    let number = Number { negative: value < 0, significand: value.unsigned_abs(), exponent: 0 };
    if value == 0 { 0 } else { format.encode(number, environment) }
}

/// Rounds to an integral value of the same format. The result is exact, so it has no denormals.
pub fn round_to_integral(format: Format, a: u64, round: Round, environment: Environment) -> u64 {
    match format.decode(a, environment) {
        Decoded::Nan => format.nan(),
        Decoded::Infinite { negative } => format.infinite(negative),
        Decoded::Finite(number) if number.exponent >= 0 => format.encode(number, environment),
        Decoded::Finite(number) => {
            let significand = round_shift(number.significand, -number.exponent, number.negative, round);
            format.encode(Number { significand, exponent: 0, ..number }, environment)
        }
    }
}

/// fp8 (E4M3) from f32, to nearest even. fp8 has no infinity: a value that is too large becomes NaN, or the largest
/// finite value if `saturate`.
pub fn single_to_fp8(bits: u32, saturate: bool) -> u32 {
    let sign = bits >> 24 & 0x80;
    // The wide format has bias 15 where fp8 has 7: scaling by 2^-8 makes the exponent fields equal.
    let wide = match SINGLE.decode(bits as u64, Environment::DEFAULT) {
        Decoded::Nan => return sign | 0x7F,
        Decoded::Infinite { .. } => 0x100,
        Decoded::Finite(number) => {
            let number = Number { exponent: number.exponent - 8, negative: false, ..number };
            FP8_WIDE.encode(number, Environment::DEFAULT) as u32
        }
    };
    if wide < 0x7F { sign | wide } else { sign | if saturate { 0x7E } else { 0x7F } }
}

/// f32 from fp8 (E4M3).
#[inline(always)]
pub fn fp8_to_single(bits: u32) -> u32 {
    let sign = (bits & 0x80) << 24;
    let magnitude = bits & 0x7F;
    // The fields are moved into place and the bias corrected by an exact multiplication, which also fits denormals.
    let number = (f32::from_bits(magnitude << 20) * f32::from_bits((127 + 120) << 23)).to_bits();
    if magnitude == 0x7F { SINGLE_NAN } else { sign | number }
}

/// bf8 (E5M2) from f32, to nearest even.
pub fn single_to_bf8(bits: u32, saturate: bool) -> u32 {
    let environment = Environment { saturate, ..Environment::DEFAULT };
    convert(SINGLE, BF8, bits as u64, environment, environment) as u32
}

/// f32 from bf8 (E5M2), which is the upper byte of an f16.
#[inline(always)]
pub fn bf8_to_single(bits: u32) -> u32 {
    half_to_single((bits & 0xFF) << 8)
}

/// f32 from the f16 in the low half; exact.
#[inline(always)]
pub fn half_to_single(bits: u32) -> u32 {
    let magnitude = bits & 0x7FFF;
    let sign = (bits & 0x8000) << 16;
    // Shifted into place, the exponent is too small by 112; the product is exact and makes denormals normal.
    let scaled = (f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = if magnitude > 0x7C00 { SINGLE_NAN } else { 0x7F80_0000 | sign };
    if magnitude >= 0x7C00 { special } else { scaled | sign }
}

/// f16 from f32, to nearest even, denormals kept.
#[inline(always)]
pub fn single_to_half(bits: u32) -> u32 {
    let sign = bits >> 16 & 0x8000;
    let magnitude = bits & 0x7FFF_FFFF;
    // Below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24 in the low bits.
    let denormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0x3F00_0000);
    let normal = (magnitude.wrapping_add(0xFFF + (magnitude >> 13 & 1)).wrapping_sub(112 << 23)) >> 13;
    let finite = if magnitude < 0x3880_0000 { denormal } else { normal };
    let finite_or_infinite = if magnitude >= 0x477F_F000 { 0x7C00 } else { finite };
    if magnitude > 0x7F80_0000 { HALF_NAN } else { finite_or_infinite | sign }
}

/// f16 from f32, toward zero, denormals kept.
#[inline(always)]
pub fn single_to_half_toward_zero(bits: u32) -> u32 {
    let sign = bits >> 16 & 0x8000;
    let magnitude = bits & 0x7FFF_FFFF;
    let denormal = crate::simd::truncate_to_i32(f32::from_bits(magnitude) * 16_777_216.0) as u32;
    let normal = magnitude.wrapping_sub(112 << 23) >> 13;
    let finite = if magnitude < 0x3880_0000 { denormal } else { normal };
    let finite = if magnitude >= 0x4780_0000 { 0x7BFF } else { finite };
    let number = if magnitude == 0x7F80_0000 { 0x7C00 } else { finite };
    if magnitude > 0x7F80_0000 { HALF_NAN } else { number | sign }
}

/// f16 from f64, to nearest even, denormals kept.
#[inline(always)]
pub fn double_to_half(bits: u64) -> u32 {
    let sign = (bits >> 48) as u32 & 0x8000;
    let magnitude = bits & (u64::MAX >> 1);
    // As in `single_to_half`: 2^28 has 2^-24 as its last place.
    let magic = 268_435_456.0f64;
    let denormal = (f64::from_bits(magnitude) + magic).to_bits().wrapping_sub(magic.to_bits());
    let rounding = ((1u64 << 41) - 1) + (magnitude >> 42 & 1);
    let normal = magnitude.wrapping_add(rounding).wrapping_sub(1008 << 52) >> 42;
    let finite = if magnitude < 1009 << 52 { denormal } else { normal } as u32;
    let finite_or_infinite = if magnitude >= 0x40EF_FE00_0000_0000 { 0x7C00 } else { finite };
    if magnitude > 0x7FF0_0000_0000_0000 { HALF_NAN } else { finite_or_infinite | sign }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEFAULT: Environment = Environment::DEFAULT;

    fn same32(soft: u64, host: f32) -> bool {
        if host.is_nan() { soft == SINGLE_NAN as u64 } else { soft == host.to_bits() as u64 }
    }

    fn same64(soft: u64, host: f64) -> bool {
        if host.is_nan() { soft == DOUBLE_NAN } else { soft == host.to_bits() }
    }

    /// Random bits that include many boundary values.
    fn bits32() -> impl Strategy<Value = u32> {
        prop_oneof![
            any::<u32>(),
            (any::<bool>(), 0u32..256, 0u32..4, any::<bool>()).prop_map(|(sign, exponent, low, top)| {
                let fraction = if top { 0x7F_FFFF - low } else { low };
                (sign as u32) << 31 | exponent << 23 | fraction
            }),
            // Close exponents, so that sums cancel.
            (any::<bool>(), 120u32..136, any::<u32>())
                .prop_map(|(sign, exponent, fraction)| (sign as u32) << 31 | exponent << 23 | fraction >> 9),
        ]
    }

    fn bits64() -> impl Strategy<Value = u64> {
        prop_oneof![
            any::<u64>(),
            (any::<bool>(), 0u64..2048, 0u64..4, any::<bool>()).prop_map(|(sign, exponent, low, top)| {
                let fraction = if top { (1 << 52) - 1 - low } else { low };
                (sign as u64) << 63 | exponent << 52 | fraction
            }),
            (any::<bool>(), 1010u64..1036, any::<u64>())
                .prop_map(|(sign, exponent, fraction)| (sign as u64) << 63 | exponent << 52 | fraction >> 12),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn default_environment_agrees_with_the_host_in_single(a in bits32(), b in bits32(), c in bits32()) {
            let (x, y, z) = (f32::from_bits(a), f32::from_bits(b), f32::from_bits(c));
            let (a, b, c) = (a as u64, b as u64, c as u64);
            prop_assert!(same32(add(SINGLE, a, b, DEFAULT), x + y));
            prop_assert!(same32(multiply(SINGLE, a, b, DEFAULT), x * y));
            prop_assert!(same32(multiply_add(SINGLE, [a, b, c], DEFAULT), x.mul_add(y, z)));
            prop_assert!(same32(round_to_integral(SINGLE, a, Round::NearestEven, DEFAULT), x.round_ties_even()));
            prop_assert!(same32(round_to_integral(SINGLE, a, Round::Down, DEFAULT), x.floor()));
            prop_assert!(same32(round_to_integral(SINGLE, a, Round::Up, DEFAULT), x.ceil()));
            prop_assert!(same32(round_to_integral(SINGLE, a, Round::Zero, DEFAULT), x.trunc()));
        }

        #[test]
        fn default_environment_agrees_with_the_host_in_double(a in bits64(), b in bits64(), c in bits64()) {
            let (x, y, z) = (f64::from_bits(a), f64::from_bits(b), f64::from_bits(c));
            prop_assert!(same64(add(DOUBLE, a, b, DEFAULT), x + y));
            prop_assert!(same64(multiply(DOUBLE, a, b, DEFAULT), x * y));
            prop_assert!(same64(multiply_add(DOUBLE, [a, b, c], DEFAULT), x.mul_add(y, z)));
            prop_assert!(same32(convert(DOUBLE, SINGLE, a, DEFAULT, DEFAULT), x as f32));
        }

        #[test]
        fn integers_agree_with_the_host(a in any::<i32>(), b in any::<u32>(), c in any::<i64>()) {
            prop_assert!(same32(from_integer(SINGLE, a as i128, DEFAULT), a as f32));
            prop_assert!(same32(from_integer(SINGLE, b as i128, DEFAULT), b as f32));
            prop_assert!(same64(from_integer(DOUBLE, c as i128, DEFAULT), c as f64));
        }

        /// Directed results enclose the exact one: one step apart when inexact, equal when exact.
        #[test]
        fn directed_rounding_encloses(a in bits32(), b in bits32(), c in bits32()) {
            let with = |round| {
                let environment = Environment { round, ..DEFAULT };
                f32::from_bits(multiply_add(SINGLE, [a as u64, b as u64, c as u64], environment) as u32)
            };
            let (near, up, down, zero) =
                (with(Round::NearestEven), with(Round::Up), with(Round::Down), with(Round::Zero));
            if near.is_nan() {
                prop_assert!(up.is_nan() && down.is_nan() && zero.is_nan());
            } else {
                prop_assert!(down <= near && near <= up);
                prop_assert!(up == down || up == down.next_up());
                prop_assert!(near == up || near == down);
                let inward = if near > 0.0 || up > 0.0 { down } else { up };
                prop_assert!(zero == inward);
            }
        }

        #[test]
        fn fast_conversions_agree_with_the_model(a in bits32(), b in bits64()) {
            let toward_zero = Environment { round: Round::Zero, ..DEFAULT };
            prop_assert_eq!(single_to_half(a) as u64, convert(SINGLE, HALF, a as u64, DEFAULT, DEFAULT));
            prop_assert_eq!(
                single_to_half_toward_zero(a) as u64,
                convert(SINGLE, HALF, a as u64, DEFAULT, toward_zero)
            );
            prop_assert_eq!(double_to_half(b) as u64, convert(DOUBLE, HALF, b, DEFAULT, DEFAULT));
        }
    }

    #[test]
    fn every_half_converts_exactly_and_back() {
        for half in 0..0x1_0000u32 {
            let single = half_to_single(half);
            assert_eq!(single as u64, convert(HALF, SINGLE, half as u64, DEFAULT, DEFAULT));
            if half & 0x7FFF <= 0x7C00 {
                assert_eq!(single_to_half(single), half);
                assert_eq!(single_to_half_toward_zero(single), half);
            }
        }
        // Values by hand: 1.0, the largest, the smallest denormal, -2.
        assert_eq!(half_to_single(0x3C00), 1.0f32.to_bits());
        assert_eq!(half_to_single(0x7BFF), 65504.0f32.to_bits());
        assert_eq!(half_to_single(0x0001), 2f32.powi(-24).to_bits());
        assert_eq!(half_to_single(0xC000), (-2.0f32).to_bits());
    }

    #[test]
    fn halves_round_ties_to_even_and_overflow_by_mode() {
        let convert = |value: f32, round, saturate| {
            let environment = Environment { round, saturate, ..DEFAULT };
            super::convert(SINGLE, HALF, value.to_bits() as u64, DEFAULT, environment)
        };
        assert_eq!(convert(2049.0, Round::NearestEven, false), 0x6800); // 2048
        assert_eq!(convert(2051.0, Round::NearestEven, false), 0x6802); // 2052
        assert_eq!(convert(2049.0, Round::Up, false), 0x6801);
        assert_eq!(convert(65520.0, Round::NearestEven, false), 0x7C00);
        assert_eq!(convert(65519.0, Round::NearestEven, false), 0x7BFF);
        assert_eq!(convert(1e9, Round::Zero, false), 0x7BFF);
        assert_eq!(convert(1e9, Round::NearestEven, true), 0x7BFF);
        assert_eq!(convert(f32::INFINITY, Round::NearestEven, true), 0x7C00);
        assert_eq!(convert(-1e9, Round::Up, false), 0xFBFF);
        assert_eq!(convert(-1e9, Round::Down, false), 0xFC00);
    }

    #[test]
    fn flushing_takes_each_side_by_itself() {
        let denormal = 1u64;
        let mode = |denorm: u32| Mode(denorm << 4).single();
        // denormal * 1.0
        let one = 1.0f32.to_bits() as u64;
        assert_eq!(multiply(SINGLE, denormal, one, mode(3)), 1);
        for denorm in 0..3 {
            assert_eq!(multiply(SINGLE, denormal | 1 << 31, one, mode(denorm)), 1 << 31, "mode {denorm}");
        }
        // A denormal source with a normal result (2^-149 * 2^100): kept by mode 1, flushed by mode 2.
        let large = 2f32.powi(100).to_bits() as u64;
        assert_eq!(multiply(SINGLE, denormal, large, mode(1)), 2f32.powi(-49).to_bits() as u64);
        assert_eq!(multiply(SINGLE, denormal, large, mode(2)), 0);
        // A denormal result of normal sources: kept by mode 2, flushed by mode 1.
        let small = 2f32.powi(-100).to_bits() as u64;
        let smaller = 2f32.powi(-40).to_bits() as u64;
        assert_eq!(multiply(SINGLE, small, smaller, mode(2)), 1 << 9);
        assert_eq!(multiply(SINGLE, small, smaller, mode(1)), 0);
    }

    #[test]
    fn zero_sums_have_the_right_sign() {
        let one = 1.0f32.to_bits() as u64;
        let minus = (-1.0f32).to_bits() as u64;
        let down = Environment { round: Round::Down, ..DEFAULT };
        assert_eq!(add(SINGLE, one, minus, DEFAULT), 0);
        assert_eq!(add(SINGLE, one, minus, down), 1 << 31);
        assert_eq!(add(SINGLE, 1 << 31, 1 << 31, DEFAULT), 1 << 31);
        assert_eq!(add(SINGLE, 1 << 31, 0, DEFAULT), 0);
    }

    #[test]
    fn fp8_and_bf8_match_the_published_values() {
        // OCP 8-bit formats: largest finite 448 and 57344, smallest denormals 2^-9 and 2^-16.
        for (value, code) in [(448.0, 0x7E), (1.0, 0x38), (2f32.powi(-9), 0x01), (-0.0, 0x80), (0.875, 0x36)]
        {
            assert_eq!(single_to_fp8(f32::to_bits(value), false), code, "{value}");
            assert_eq!(f32::from_bits(fp8_to_single(code)), value);
        }
        for (value, code) in [(57344.0, 0x7B), (1.0, 0x3C), (2f32.powi(-16), 0x01), (-2.0, 0xC0)] {
            assert_eq!(single_to_bf8(f32::to_bits(value), false), code, "{value}");
            assert_eq!(f32::from_bits(bf8_to_single(code)), value);
        }
        assert_eq!(single_to_fp8(1e6f32.to_bits(), false), 0x7F);
        assert_eq!(single_to_fp8((-1e6f32).to_bits(), true), 0xFE);
        assert_eq!(single_to_fp8(464f32.to_bits(), false), 0x7E); // tie between 448 and 480: even is 448
        assert_eq!(single_to_bf8(1e6f32.to_bits(), false), 0x7C);
        assert_eq!(single_to_bf8(1e6f32.to_bits(), true), 0x7B);
        for code in 0..256 {
            let value = fp8_to_single(code);
            if code & 0x7F != 0x7F {
                assert_eq!(single_to_fp8(value, false), code);
            }
        }
    }

    /// The value of an 8-bit float, from its fields.
    fn byte_value(code: u32, exponent_bits: u32) -> f32 {
        let fraction_bits = 7 - exponent_bits;
        let (exponent, fraction) = ((code & 0x7F) >> fraction_bits, code & ((1 << fraction_bits) - 1));
        let significand = if exponent == 0 { fraction } else { fraction | 1 << fraction_bits };
        let place = exponent.max(1) as i32 - (1 << (exponent_bits - 1)) + 1 - fraction_bits as i32;
        let magnitude = significand as f32 * 2f32.powi(place);
        if code & 0x80 != 0 { -magnitude } else { magnitude }
    }

    /// What lies between two neighbours rounds to the nearer one, and from the middle to the even one.
    #[test]
    fn bytes_round_to_the_nearest_value_for_every_pair_of_neighbours() {
        type Conversions = (u32, u32, fn(u32) -> u32, fn(u32, bool) -> u32);
        let formats: [Conversions; 2] =
            [(4, 0x7E, fp8_to_single, single_to_fp8), (5, 0x7B, bf8_to_single, single_to_bf8)];
        for (exponent_bits, largest, widen, narrow) in formats {
            for sign in [0, 0x80] {
                for code in 0..=largest {
                    let value = byte_value(code | sign, exponent_bits);
                    assert_eq!(widen(code | sign), value.to_bits(), "{code:#x}");
                    if code == largest {
                        break;
                    }
                    let middle = (value + byte_value((code + 1) | sign, exponent_bits)) / 2.0;
                    // The f32 next to the middle, toward zero and away from it.
                    let (below, above) = (middle.to_bits() - 1, middle.to_bits() + 1);
                    for saturate in [false, true] {
                        assert_eq!(narrow(below, saturate), code | sign, "below {middle}");
                        assert_eq!(narrow(middle.to_bits(), saturate), code + (code & 1) | sign, "{middle}");
                        assert_eq!(narrow(above, saturate), (code + 1) | sign, "above {middle}");
                    }
                }
            }
        }
        // Half a place above the largest value is too large, except that E4M3's is a tie with an odd neighbour.
        for (value, saturate, fp8, bf8) in [
            (464.0, false, 0x7E, 0x5F),
            (464.000_03, false, 0x7F, 0x5F),
            (464.000_03, true, 0x7E, 0x5F),
            (61_439.0, false, 0x7F, 0x7B),
            (61_440.0, false, 0x7F, 0x7C),
            (61_440.0, true, 0x7E, 0x7B),
            (f32::INFINITY, false, 0x7F, 0x7C),
        ] {
            for sign in [0, 0x80] {
                let bits = f32::to_bits(value) | sign << 24;
                assert_eq!(single_to_fp8(bits, saturate), fp8 | sign, "{value}");
                assert_eq!(single_to_bf8(bits, saturate), bf8 | sign, "{value}");
            }
        }
        // NaN: E4M3 has one for each sign.
        assert_eq!([single_to_fp8(0x7F80_0001, true), single_to_fp8(0xFFC0_0000, false)], [0x7F, 0xFF]);
        assert_eq!([fp8_to_single(0x7F), fp8_to_single(0xFF)], [SINGLE_NAN; 2]);
        assert!([0x7D, 0x7E, 0x7F, 0xFD].iter().all(|code| f32::from_bits(bf8_to_single(*code)).is_nan()));
        assert_eq!([bf8_to_single(0x7C), bf8_to_single(0xFC)], [0x7F80_0000, 0xFF80_0000]);
    }

    #[test]
    fn mode_has_fields_for_single_and_for_the_others() {
        let rounds = [Round::NearestEven, Round::Up, Round::Down, Round::Zero];
        for (number, round) in (0..).zip(rounds) {
            for (denormals, flush_sources, flush_results) in
                [(0, true, true), (1, false, true), (2, true, false), (3, false, false)]
            {
                let plain = Environment { round, flush_sources, flush_results, saturate: false };
                // The other fields have other values.
                let (single, other) = (number | denormals << 4, (number ^ 3) | (denormals ^ 3) << 4);
                assert_eq!(Mode(single | other << 2 | MODE_FP16_OVERFLOW).single(), plain);
                assert_eq!(Mode(single << 2 | other | MODE_FP16_OVERFLOW).double(), plain);
                assert_eq!(Mode(single << 2 | other).half(), plain);
                let saturating = Environment { saturate: true, ..plain };
                assert_eq!(Mode(single << 2 | other | 1 << 23).half(), saturating);
            }
        }
    }

    #[test]
    fn scaling_by_a_power_of_two_rounds_once() {
        let scaled = |value: f32, power| scale(SINGLE, value.to_bits().into(), power, DEFAULT) as u32;
        for (value, power, expected) in [
            (1.5, 3, f32::to_bits(12.0)),
            (-1.0, -149, 0x8000_0001),
            // Half of the smallest number is a tie and becomes zero; more than half does not.
            (1.0, -150, 0),
            (-1.0, -150, 0x8000_0000),
            (1.000_000_1, -150, 1),
            (1.0, 127, 0x7F00_0000),
            (-1.0, 128, 0xFF80_0000),
            (f32::from_bits(1), 149, f32::to_bits(1.0)),
            (f32::from_bits(1), 277, 0x7F80_0000),
            (f32::from_bits(1), 276, 0x7F00_0000),
            (1.0, i32::MAX, 0x7F80_0000),
            (-1.0, i32::MIN, 0x8000_0000),
            (-0.0, i32::MAX, 0x8000_0000),
            (f32::NEG_INFINITY, i32::MIN, 0xFF80_0000),
            (f32::NAN, 0, SINGLE_NAN),
        ] {
            assert_eq!(scaled(value, power), expected, "{value} {power}");
        }
        let double = |value: f64, power| f64::from_bits(scale(DOUBLE, value.to_bits(), power, DEFAULT));
        assert_eq!(double(f64::from_bits(1), 2097), 2f64.powi(1023));
        assert_eq!(double(f64::from_bits(1), 2098), f64::INFINITY);
        assert_eq!(double(f64::MAX, -2098), f64::from_bits(1));
        assert_eq!(double(f64::MAX, -2099), 0.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn doubles_become_integral_as_on_the_host(a in bits64()) {
            let x = f64::from_bits(a);
            let rounded = |round| round_to_integral(DOUBLE, a, round, DEFAULT);
            prop_assert!(same64(rounded(Round::NearestEven), x.round_ties_even()));
            prop_assert!(same64(rounded(Round::Down), x.floor()));
            prop_assert!(same64(rounded(Round::Up), x.ceil()));
            prop_assert!(same64(rounded(Round::Zero), x.trunc()));
        }

        /// As for f32: directed results of doubles are at most a step apart, on both sides of the nearest.
        #[test]
        fn directed_rounding_encloses_doubles(a in bits64(), b in bits64(), c in bits64()) {
            type Function = fn([u64; 3], Environment) -> u64;
            let functions: [Function; 3] = [
                |[a, b, _], e| add(DOUBLE, a, b, e),
                |[a, b, _], e| multiply(DOUBLE, a, b, e),
                |sources, e| multiply_add(DOUBLE, sources, e),
            ];
            for function in functions {
                let with = |round| f64::from_bits(function([a, b, c], Environment { round, ..DEFAULT }));
                let (near, up, down) = (with(Round::NearestEven), with(Round::Up), with(Round::Down));
                if near.is_nan() {
                    prop_assert!(up.is_nan() && down.is_nan());
                    continue;
                }
                prop_assert!(down <= near && near <= up && (near == up || near == down));
                prop_assert!(up == down || up == down.next_up());
                let inward = if near > 0.0 || up > 0.0 { down } else { up };
                prop_assert!(with(Round::Zero) == inward);
            }
        }
    }

    #[test]
    fn formats_know_their_special_values() {
        for (format, sign, infinity, nan) in [
            (HALF, 0x8000, 0x7C00, HALF_NAN.into()),
            (SINGLE, 1 << 31, 0x7F80_0000, SINGLE_NAN.into()),
            (DOUBLE, 1 << 63, 0x7FF0_0000_0000_0000, DOUBLE_NAN),
            (BF8, 0x80, 0x7C, 0x7E),
        ] {
            assert_eq!((format.infinity(), format.nan()), (infinity, nan));
            assert_eq!(format.bits(), 64 - u64::leading_zeros(sign));
            let smallest_normal = infinity & !(infinity << 1);
            for (bits, is_nan, is_denormal) in [
                (0, false, false),
                (1, false, true),
                (smallest_normal - 1, false, true),
                (smallest_normal, false, false),
                (infinity, false, false),
                (infinity + 1, true, false),
                (nan, true, false),
            ] {
                for bits in [bits, bits | sign] {
                    assert_eq!(
                        (format.is_nan(bits), format.is_denormal(bits)),
                        (is_nan, is_denormal),
                        "{bits:#x}"
                    );
                }
            }
        }
    }
}
