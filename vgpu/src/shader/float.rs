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
    fn flush_result(self, bits: u64, environment: Environment) -> u64 {
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
mod tests;
