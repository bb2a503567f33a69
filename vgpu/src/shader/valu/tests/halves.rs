//! f16 arithmetic against its definition: the exact result as an integer, rounded by looking for its neighbours.

use crate::shader::valu::testing::{Random, code, half_value, run_all, wave};
use crate::shader::wave::LANES;

/// Bits after the point of an exact result: enough for a product (48) and for a small number times 2^-60.
const POINT: u32 = 84;
const ONE: i128 = 1 << POINT;
const INFINITY: u32 = 0x7C00;

/// A finite number: its value times 2^84, and the sign that it has if it is zero.
#[derive(Clone, Copy, Debug)]
struct Exact {
    value: i128,
    is_negative: bool,
}

impl Exact {
    fn new(value: i128, zero_is_negative: bool) -> Exact {
        Exact { value, is_negative: if value == 0 { zero_is_negative } else { value < 0 } }
    }

    fn of(bits: u32) -> Exact {
        let magnitude = magnitude(bits & 0x7FFF);
        let is_negative = bits & 0x8000 != 0;
        Exact { value: if is_negative { -magnitude } else { magnitude }, is_negative }
    }

    fn negated(self) -> Exact {
        Exact { value: -self.value, is_negative: !self.is_negative }
    }

    /// A sum of unlike signs that is exactly zero is negative only when rounding down.
    fn plus(self, other: Exact, is_down: bool) -> Exact {
        let zero = if self.is_negative == other.is_negative { self.is_negative } else { is_down };
        Exact::new(self.value + other.value, zero)
    }

    fn times(self, other: Exact) -> Exact {
        // Both are multiples of 2^-24.
        let product = (self.value >> 60) * (other.value >> 60);
        Exact::new(product << (POINT - 48), self.is_negative != other.is_negative)
    }

    fn floor(self) -> Exact {
        Exact::new(self.value.div_euclid(ONE) * ONE, self.is_negative)
    }

    fn ceil(self) -> Exact {
        self.negated().floor().negated()
    }

    fn trunc(self) -> Exact {
        if self.is_negative { self.ceil() } else { self.floor() }
    }

    fn nearest(self) -> Exact {
        let below = self.value.div_euclid(ONE);
        let twice = 2 * self.value.rem_euclid(ONE);
        let is_above = twice > ONE || (twice == ONE && below % 2 != 0);
        Exact::new((below + i128::from(is_above)) * ONE, self.is_negative)
    }

    /// Beyond 2^±60 every number overflows or vanishes.
    fn scaled(self, power: i16) -> Exact {
        let factor = 1i128 << power.unsigned_abs().min(60);
        let value =
            if power < 0 { self.value / factor } else { self.value.saturating_mul(factor).max(-i128::MAX) };
        Exact { value, ..self }
    }

    /// The f16 in a rounding mode as MODE numbers it.
    fn rounded(self, round: u32, saturates: bool) -> u32 {
        let sign = if self.is_negative { 0x8000 } else { 0 };
        let exact = self.value.abs();
        // Infinity's place is taken by 2^16, as if the format had one more exponent.
        let (mut low, mut high) = (0, INFINITY + 1);
        while high - low > 1 {
            let middle = (low + high) / 2;
            if magnitude(middle) <= exact { low = middle } else { high = middle }
        }
        let (below, above) = (magnitude(low), magnitude(low + 1));
        let outward = match round {
            0 if low == INFINITY => true,
            0 => 2 * exact > below + above || (2 * exact == below + above && low % 2 == 1),
            1 => (low == INFINITY || exact > below) && !self.is_negative,
            2 => (low == INFINITY || exact > below) && self.is_negative,
            _ => false,
        };
        let rounded = match (low == INFINITY, outward) {
            (true, true) => INFINITY,
            (true, false) => INFINITY - 1,
            (false, outward) => low + u32::from(outward),
        };
        sign | if rounded == INFINITY && saturates { INFINITY - 1 } else { rounded }
    }
}

/// A magnitude times 2^84. That of infinity is 2^16.
fn magnitude(bits: u32) -> i128 {
    let (exponent, fraction) = (bits >> 10, i128::from(bits & 0x3FF));
    let units = if exponent == 0 { fraction } else { (1024 + fraction) << (exponent - 1) };
    units << (POINT - 24)
}

/// MODE's fields for f16.
#[derive(Clone, Copy)]
struct Mode {
    round: u32,
    flushes_sources: bool,
    flushes_results: bool,
    saturates: bool,
}

impl Mode {
    fn all() -> impl Iterator<Item = (u32, Mode)> {
        (0..32u32).map(|number| {
            let (round, denormals, saturates) = (number & 3, number >> 2 & 3, number >> 4 != 0);
            let bits = 0x30 | round << 2 | denormals << 6 | u32::from(saturates) << 23;
            let mode = Mode {
                round,
                // 0 flushes both, 1 results only, 2 sources only.
                flushes_sources: denormals == 0 || denormals == 2,
                flushes_results: denormals <= 1,
                saturates,
            };
            (bits, mode)
        })
    }
}

fn flushed(bits: u32, flushes: bool) -> u32 {
    let is_denormal = bits & 0x7C00 == 0;
    if flushes && is_denormal { bits & 0x8000 } else { bits }
}

/// Of the sources, their bits, and whether MODE rounds down.
type ExactResult = fn([Exact; 3], [u32; 3], bool) -> Exact;
type HostResult = fn([f64; 3]) -> f64;

/// An operation: the exact result, of the sources and whether MODE rounds down; and the same in f64, which decides
/// if a source is infinite or NaN.
struct Operation {
    text: &'static str,
    words: &'static [u32],
    /// The sources that are f16.
    floats: &'static [usize],
    exact: ExactResult,
    host: HostResult,
}

impl Operation {
    fn expected(&self, sources: [u32; 3], mode: Mode) -> u32 {
        let mut values = sources;
        for index in self.floats {
            values[*index] = flushed(values[*index], mode.flushes_sources);
        }
        if self.floats.iter().any(|index| values[*index] & 0x7FFF >= INFINITY) {
            let result = (self.host)(values.map(|bits| half_value(bits as u16)));
            return match (result.is_nan(), result > 0.0) {
                (true, _) => 0x7E00,
                (false, true) => INFINITY,
                (false, false) => INFINITY | 0x8000,
            };
        }
        let exact = (self.exact)(values.map(Exact::of), sources, mode.round == 2);
        let result = flushed(exact.rounded(mode.round, mode.saturates), mode.flushes_results);
        // What is next to 1 does not round to it.
        if self.text.starts_with("v_fract") && result == 0x3C00 { 0x3BFF } else { result }
    }
}

fn source(random: &mut Random) -> u32 {
    const EDGES: [u32; 24] = [
        0, 1, 2, 0x3FF, 0x400, 0x401, 0x3555, 0x37FF, 0x3800, 0x3801, 0x3BFF, 0x3C00, 0x3C01, 0x3E00, 0x4100,
        0x5800, 0x6400, 0x63FF, 0x77FF, 0x7800, 0x7BFF, 0x7C00, 0x7C01, 0x7E00,
    ];
    let bits = random.next();
    match random.next() % 8 {
        0..=2 => EDGES[bits as usize % EDGES.len()] | bits >> 16 & 0x8000,
        // Of about the same size, so that sums cancel.
        3 | 4 => bits & 0x83FF | (14 + (bits >> 20) % 3) << 10,
        5 => bits & 0x87FF,
        _ => bits & 0xFFFF,
    }
}

fn whole(value: i128) -> Exact {
    Exact::new(value * ONE, false)
}

fn operations() -> Vec<Operation> {
    let new = |text, words, floats, exact: ExactResult, host: HostResult| Operation {
        text,
        words,
        floats,
        exact,
        host,
    };
    vec![
        new(
            "v_add_f16 v0, v1, v2",
            &[0x6400_0501],
            &[0, 1],
            |[a, b, _], _, d| a.plus(b, d),
            |[a, b, _]| a + b,
        ),
        new(
            "v_sub_f16 v0, v1, v2",
            &[0x6600_0501],
            &[0, 1],
            |[a, b, _], _, d| a.plus(b.negated(), d),
            |[a, b, _]| a - b,
        ),
        new(
            "v_subrev_f16 v0, v1, v2",
            &[0x6800_0501],
            &[0, 1],
            |[a, b, _], _, d| b.plus(a.negated(), d),
            |[a, b, _]| b - a,
        ),
        new("v_mul_f16 v0, v1, v2", &[0x6A00_0501], &[0, 1], |[a, b, _], _, _| a.times(b), |[a, b, _]| a * b),
        new(
            "v_fma_f16 v0, v1, v2, v3",
            &[0xD648_0000, 0x040E_0501],
            &[0, 1, 2],
            |[a, b, c], _, d| a.times(b).plus(c, d),
            |[a, b, c]| a * b + c,
        ),
        new(
            "v_fmac_f16 v0, v1, v2",
            &[0x6C00_0501],
            &[0, 1, 2],
            |[a, b, c], _, d| a.times(b).plus(c, d),
            |[a, b, c]| a * b + c,
        ),
        new(
            "v_fmaak_f16 v0, v1, v2, 0x3c01",
            &[0x7000_0501, 0x3C01],
            &[0, 1],
            |[a, b, _], _, d| a.times(b).plus(Exact::of(0x3C01), d),
            |[a, b, _]| a * b + 1.0,
        ),
        new(
            "v_fmamk_f16 v0, v1, 0x3c01, v3",
            &[0x6E00_0701, 0x3C01],
            &[0, 2],
            |[a, _, c], _, d| a.times(Exact::of(0x3C01)).plus(c, d),
            |[a, _, c]| a + c,
        ),
        new("v_ceil_f16 v0, v1", &[0x7E00_B901], &[0], |[a, ..], _, _| a.ceil(), |[a, ..]| a),
        new("v_floor_f16 v0, v1", &[0x7E00_B701], &[0], |[a, ..], _, _| a.floor(), |[a, ..]| a),
        new("v_trunc_f16 v0, v1", &[0x7E00_BB01], &[0], |[a, ..], _, _| a.trunc(), |[a, ..]| a),
        new("v_rndne_f16 v0, v1", &[0x7E00_BD01], &[0], |[a, ..], _, _| a.nearest(), |[a, ..]| a),
        new(
            "v_fract_f16 v0, v1",
            &[0x7E00_BF01],
            &[0],
            |[a, ..], _, d| a.plus(a.floor().negated(), d),
            |[a, ..]| a - a.floor(),
        ),
        new(
            "v_ldexp_f16 v0, v1, v2",
            &[0x7600_0501],
            &[0],
            |[a, ..], [_, n, _], _| a.scaled(n as i16),
            |[a, ..]| a,
        ),
        new("v_cvt_f16_u16 v0, v1", &[0x7E00_A101], &[], |_, [a, ..], _| whole(a.into()), |[a, ..]| a),
        new(
            "v_cvt_f16_i16 v0, v1",
            &[0x7E00_A301],
            &[],
            |_, [a, ..], _| whole((a as i16).into()),
            |[a, ..]| a,
        ),
    ]
}

/// Operations that return a 16-bit half of v0; v_fmac adds what is there, the other half stays.
#[test]
fn every_mode_rounds_the_exact_result() {
    let mut random = Random::new(59);
    for operation in operations() {
        for (bits, mode) in Mode::all() {
            let mut start = wave();
            start.mode = bits;
            for lane in 0..LANES {
                for register in 1..4 {
                    start.vector[register].0[lane] = source(&mut random) | random.next() << 16;
                }
                // Small powers of two, mostly.
                if operation.text.starts_with("v_ldexp") && lane % 4 != 0 {
                    start.vector[2].0[lane] = (random.next() % 64).wrapping_sub(32);
                }
                start.vector[0].0[lane] = random.next() << 16 | start.vector[3].0[lane] & 0xFFFF;
            }
            let end = run_all(&start, operation.words);
            for lane in 0..LANES {
                let sources = [1, 2, 3].map(|register: usize| start.vector[register].0[lane] & 0xFFFF);
                let expected = start.vector[0].0[lane] & 0xFFFF_0000 | operation.expected(sources, mode);
                let result = end.vector[0].0[lane];
                assert_eq!(
                    result, expected,
                    "{} of {sources:x?}, mode {bits:#x}: {result:#x}",
                    operation.text
                );
            }
        }
    }
}

/// The scalar and the packed forms.
#[test]
fn scalars_and_pairs_round_like_vectors() {
    let all = operations();
    let like = |text: &str| all.iter().find(|operation| operation.text.starts_with(text)).unwrap();
    let packed: [(&Operation, &[u32]); 3] = [
        (like("v_add_f16"), code("v_pk_add_f16 v0, v1, v2", &[0xCC0F_4000, 0x1802_0501])),
        (like("v_mul_f16"), code("v_pk_mul_f16 v0, v1, v2", &[0xCC10_4000, 0x1802_0501])),
        (like("v_fma_f16"), code("v_pk_fma_f16 v0, v1, v2, v3", &[0xCC0E_4000, 0x1C0E_0501])),
    ];
    let scalar: [(&Operation, &[u32]); 8] = [
        (like("v_add_f16"), code("s_add_f16 s16, s4, s6", &[0xA490_0604])),
        (like("v_sub_f16"), code("s_sub_f16 s16, s4, s6", &[0xA510_0604])),
        (like("v_mul_f16"), code("s_mul_f16 s16, s4, s6", &[0xA690_0604])),
        (like("v_fmac_f16"), code("s_fmac_f16 s16, s4, s6", &[0xA710_0604])),
        (like("v_ceil_f16"), code("s_ceil_f16 s16, s4", &[0xBE90_6B04])),
        (like("v_floor_f16"), code("s_floor_f16 s16, s4", &[0xBE90_6C04])),
        (like("v_trunc_f16"), code("s_trunc_f16 s16, s4", &[0xBE90_6D04])),
        (like("v_rndne_f16"), code("s_rndne_f16 s16, s4", &[0xBE90_6E04])),
    ];
    let mut random = Random::new(61);
    for (bits, mode) in Mode::all() {
        let mut start = wave();
        start.mode = bits;
        for (operation, words) in packed {
            for register in 1..4 {
                start.vector[register].0.fill_with(|| source(&mut random) | source(&mut random) << 16);
            }
            let end = run_all(&start, words);
            for lane in 0..LANES {
                let half = |shift: u32| {
                    let sources =
                        [1, 2, 3].map(|register: usize| start.vector[register].0[lane] >> shift & 0xFFFF);
                    operation.expected(sources, mode)
                };
                assert_eq!(end.vector[0].0[lane], half(0) | half(16) << 16, "{words:x?}, mode {bits:#x}");
            }
        }
        for (operation, words) in scalar {
            let sources = [source(&mut random), source(&mut random), source(&mut random)];
            for (register, value) in [4, 6, 16].into_iter().zip(sources) {
                start.scalar[register] = value | random.next() << 16;
            }
            let result = run_all(&start, words).scalar[16];
            // The high half of a scalar result is zero.
            assert_eq!(
                result,
                operation.expected(sources, mode),
                "{words:x?} of {sources:x?}, mode {bits:#x}"
            );
        }
    }
}
