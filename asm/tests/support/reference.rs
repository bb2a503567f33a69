//! The arithmetic of `docs/arithmetic.md` on the CPU, as plain as can be. Written from that page for these tests alone.

use super::weights::{Block, Scale};

/// v[l] = v[l] + v[l xor m] for m = 1, 2, 4, ... below the number of values, a power of two.
pub fn tree(values: &[f32]) -> f32 {
    let mut values = values.to_vec();
    let mut m = 1;
    while m < values.len() {
        values = (0..values.len()).map(|lane| values[lane] + values[lane ^ m]).collect();
        m *= 2;
    }
    values[0]
}

/// The exponential.
pub fn exp(x: f32) -> f32 {
    let x = x.clamp(-87.0, 80.0);
    let n = (x * f32::from_bits(0x3FB8_AA3B)).round_ties_even();
    let r = n.mul_add(-f32::from_bits(0x3F31_7200), x);
    let r = n.mul_add(-f32::from_bits(0x35BF_BE8E), r);
    let mut p = f32::from_bits(0x3AB6_0B61);
    for c in [0x3C08_8889, 0x3D2A_AAAB, 0x3E2A_AAAB, 0x3F00_0000, 0x3F80_0000, 0x3F80_0000] {
        p = p.mul_add(r, f32::from_bits(c));
    }
    // p is 0.7..1.5 and n -126..=116: the product in f64 is exact, and rounds once to f32.
    (f64::from(p) * 2f64.powi(n as i32)) as f32
}

/// Lanes that share a row of `columns`.
pub fn lanes_per_row(columns: usize) -> usize {
    columns.div_ceil(32).next_power_of_two().min(32)
}

/// dot(w, x) in MATMUL's order.
pub fn dot(weights: &[f32], x: &[f32]) -> f32 {
    let lanes = lanes_per_row(x.len());
    let chunk = |(w, x): (&[f32], &[f32])| w.iter().zip(x).fold(0.0f32, |sum, (w, x)| w.mul_add(*x, sum));
    let stretch = |(w, x): (&[f32], &[f32])| {
        let mut sums: Vec<f32> = w.chunks(32).zip(x.chunks(32)).map(chunk).collect();
        sums.resize(lanes, 0.0);
        tree(&sums)
    };
    let sums = weights.chunks(32 * lanes).zip(x.chunks(32 * lanes)).map(stretch);
    sums.reduce(|y, p| y + p).expect("a column")
}

/// A block of 32 activations as integers.
pub struct Activation {
    pub integers: Vec<i64>,
    pub factor: f32,
    pub negative_sum: f32,
}

/// QUANT of at most 32 elements to `limbs` bytes. The quotients are made in f64, which has room enough for them to be
/// rounded to f32 once (2 * 24 + 2 bits).
pub fn quantise(x: &[f32], limbs: u32) -> Activation {
    let largest = if limbs == 1 { 127.0 } else { 32512.0 };
    let amplitude = x.iter().fold(0.0f32, |amplitude, x| amplitude.max(x.abs()));
    let mut integers = vec![0; 32];
    if amplitude < 2f32.powi(-100) {
        return Activation { integers, factor: 0.0, negative_sum: -0.0 };
    }
    let factor = (f64::from(amplitude) / largest) as f32;
    let inverse = (1.0 / f64::from(factor)) as f32;
    for (integer, x) in integers.iter_mut().zip(x) {
        let product = x * inverse;
        let whole = f64::from(product.abs());
        let rounded = (whole + 0.5).floor() as i64;
        *integer = if product < 0.0 { -rounded } else { rounded };
    }
    let sum: i64 = integers.iter().sum();
    Activation { integers, factor, negative_sum: -(factor * sum as f32) }
}

/// QUANT of a row, block by block.
pub fn quantise_row(x: &[f32], limbs: u32) -> Vec<Activation> {
    x.chunks(32).map(|block| quantise(block, limbs)).collect()
}

/// dot(w, x) in the order of MATMUL of integers, of a quantised row.
pub fn integer_dot(weights: &[Block], activations: &[Activation]) -> f32 {
    let segments = weights.chunks(8).zip(activations.chunks(8));
    let sums = segments.map(|(weights, activations)| {
        weights.iter().zip(activations).fold(0.0f32, |sum, (block, activation)| {
            let part = |from: usize, to: usize| -> i64 {
                (from..to).map(|at| block.integers[at] * activation.integers[at]).sum()
            };
            match block.scale {
                Scale::One(d) => (part(0, 32) as f32 * d).mul_add(activation.factor, sum),
                Scale::WithMinimum(d, minimum) => {
                    let sum = (part(0, 32) as f32 * d).mul_add(activation.factor, sum);
                    minimum.mul_add(activation.negative_sum, sum)
                }
                Scale::Halves(d, [low, high]) => {
                    let exact = low * part(0, 16) + high * part(16, 32);
                    (exact as f32 * d).mul_add(activation.factor, sum)
                }
                Scale::HalvesWithMinima(d, sc, dmin, m) => {
                    let of = |[low, high]: [i64; 2], part: &dyn Fn(usize, usize) -> i64| {
                        (low * part(0, 16) + high * part(16, 32)) as f32
                    };
                    let ones = |from: usize, to: usize| activation.integers[from..to].iter().sum();
                    let u = of(sc, &part) * d;
                    (-of(m, &ones)).mul_add(dmin, u).mul_add(activation.factor, sum)
                }
            }
        })
    });
    sums.reduce(|y, p| y + p).expect("a block")
}

/// Sum of squares of `x` by `threads` work-items: each strided and ascending, trees of 32, then waves ascending.
fn sum_of_squares(x: &[f32], threads: usize) -> f32 {
    let partial: Vec<f32> = (0..threads)
        .map(|thread| {
            x.iter().skip(thread).step_by(threads).fold(0.0f32, |sum, value| value.mul_add(*value, sum))
        })
        .collect();
    let waves: Vec<f32> = partial.chunks(32).map(tree).collect();
    waves.iter().skip(1).fold(waves[0], |sum, wave| sum + wave)
}

/// RMS norm with 256 (RMS_NORM) or 32 (QK_NORM) work-items.
pub fn rms_norm(x: &[f32], weight: &[f32], epsilon: f32, threads: usize) -> Vec<f32> {
    let inverse = (1.0 / x.len() as f64) as f32;
    let mean = sum_of_squares(x, threads) * inverse;
    let r = 1.0 / (mean + epsilon).sqrt();
    x.iter().zip(weight).map(|(x, w)| (x * r) * w).collect()
}

/// One head, in place. `table` holds (cos, sin) of this position.
pub fn rope(head: &mut [f32], table: &[[f32; 2]], interleaved: bool) {
    for (j, [c, s]) in table.iter().enumerate() {
        let (at_a, at_b) = if interleaved { (2 * j, 2 * j + 1) } else { (j, j + table.len()) };
        let (a, b) = (head[at_a], head[at_b]);
        head[at_a] = a.mul_add(*c, -(b * s));
        head[at_b] = a.mul_add(*s, b * c);
    }
}

/// State of one wave of attention.
struct WaveState {
    m: f32,
    l: f32,
    o: Vec<f32>,
}

/// One query head over the rows of keys and values that exist (positions 0..=p, each of the head's size), of which the
/// last `window` count.
pub fn attention(q: &[f32], keys: &[&[f32]], values: &[&[f32]], scale: f32, window: usize) -> Vec<f32> {
    let first = keys.len().saturating_sub(window);
    let (begin, tiles) = (first / 32, keys.len().div_ceil(32));
    let mut waves: Vec<WaveState> = Vec::new();
    for wave in 0..(tiles - begin).min(8) {
        let mut state: Option<WaveState> = None;
        for tile in (begin + wave..tiles).step_by(8) {
            let range = 32 * tile..keys.len().min(32 * tile + 32);
            let left_out = first.saturating_sub(32 * tile);
            state = Some(attention_tile(state, q, &keys[range.clone()], &values[range], scale, left_out));
        }
        waves.extend(state);
    }
    let largest = waves.iter().map(|wave| wave.m).fold(f32::NEG_INFINITY, f32::max);
    let g = exp(waves[0].m - largest);
    let mut l = waves[0].l * g;
    let mut o: Vec<f32> = waves[0].o.iter().map(|o| o * g).collect();
    for wave in &waves[1..] {
        let g = exp(wave.m - largest);
        l = wave.l.mul_add(g, l);
        o = o.iter().zip(&wave.o).map(|(sum, o)| o.mul_add(g, *sum)).collect();
    }
    let r = 1.0 / l;
    o.iter().map(|o| o * r).collect()
}

fn attention_tile(
    before: Option<WaveState>,
    q: &[f32],
    keys: &[&[f32]],
    values: &[&[f32]],
    scale: f32,
    left_out: usize,
) -> WaveState {
    let score = |key: &&[f32]| q.iter().zip(*key).fold(0.0f32, |sum, (q, k)| q.mul_add(*k, sum)) * scale;
    let scores: Vec<f32> = keys.iter().map(score).collect();
    let tile_max = scores[left_out..].iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let m = before.as_ref().map_or(tile_max, |before| before.m.max(tile_max));
    let mut weights = [0.0f32; 32];
    for (weight, score) in weights.iter_mut().zip(&scores).skip(left_out) {
        *weight = exp(score - m);
    }
    let total = tree(&weights);
    let (l, mut o) = match before {
        None => (total, vec![0.0; q.len()]),
        Some(before) => {
            let f = exp(before.m - m);
            (before.l.mul_add(f, total), before.o.iter().map(|o| o * f).collect())
        }
    };
    for (weight, value) in weights.iter().zip(values) {
        for (o, v) in o.iter_mut().zip(*value) {
            *o = weight.mul_add(*v, *o);
        }
    }
    WaveState { m, l, o }
}

/// One element of the gate.
pub fn swiglu(gate: f32, up: f32) -> f32 {
    (gate * (1.0 / (1.0 + exp(-gate)))) * up
}

/// One element of the gate with GELU in its tanh form.
pub fn geglu(gate: f32, up: f32) -> f32 {
    let linear = (2.0 * (2.0 / std::f64::consts::PI).sqrt()) as f32;
    let cubic = (0.044715 * 2.0 * (2.0 / std::f64::consts::PI).sqrt()) as f32;
    let exponent = gate * (gate * gate).mul_add(cubic, linear);
    (gate * (1.0 / (1.0 + exp(-exponent)))) * up
}

/// A soft cap of one element.
pub fn soft_cap(x: f32, cap: f32) -> f32 {
    let e = exp(-(x * (2.0 / f64::from(cap)) as f32).abs());
    (((1.0 - e) * (1.0 / (1.0 + e))) * cap).copysign(x)
}

/// `a + b`, rounded to f32 once. The sum in f64 is made odd where it is not exact, so that the second rounding is
/// right.
pub fn sum_rounded_once(a: f64, b: f64) -> f32 {
    let sum = a + b;
    let rest = (a - (sum - (sum - a))) + (b - (sum - a));
    let is_even = sum.to_bits() & 1 == 0;
    let odd = match (rest == 0.0 || !is_even, (rest > 0.0) == (sum > 0.0)) {
        (true, _) => sum,
        (false, true) => f64::from_bits(sum.to_bits() + 1),
        (false, false) => f64::from_bits(sum.to_bits() - 1),
    };
    odd as f32
}

/// The largest logit, the first of equals; NaN never wins.
pub fn argmax(logits: &[f32]) -> u32 {
    let mut best = (f32::NEG_INFINITY, 0);
    for (id, logit) in logits.iter().enumerate() {
        if *logit > best.0 {
            best = (*logit, id as u32);
        }
    }
    best.1
}
