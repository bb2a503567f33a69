//! Each operation of `docs/arithmetic.md` on plain slices, in the written order.
//!
//! Contract: scalar code that anyone can check against the page; no knowledge of kernels, layouts or devices. Slices
//! have the lengths that the verified graph guarantees. The only concern for speed is that `matvec` keeps
//! independent chains side by side.

use super::arithmetic::{LANES, exponential, reciprocal, square_root, tree};
use std::ops::Range;

/// Threads of RMS_NORM.
const NORM_THREADS: usize = 256;
/// Positions of an attention tile.
const TILE: usize = 32;
/// Waves among which attention tiles are distributed.
const ATTENTION_WAVES: usize = 8;
/// Columns of a chunk of MATMUL.
const CHUNK: usize = 32;

/// C0 of GEGLU: 2 √(2/π).
const GELU_LINEAR: f32 = f32::from_bits(0x3FCC_422A);
/// C1 of GEGLU: 0.044715 times that.
const GELU_CUBIC: f32 = f32::from_bits(0x3D92_2279);

/// RMS_NORM.
pub fn rms_norm(input: &[f32], weight: &[f32], epsilon: f32, output: &mut [f32]) {
    let mut partial = [0f32; NORM_THREADS];
    for (index, x) in input.iter().enumerate() {
        let sum = &mut partial[index % NORM_THREADS];
        *sum = x.mul_add(*x, *sum);
    }
    let mut waves = partial.as_chunks::<LANES>().0.iter().map(|lanes| tree(*lanes, LANES));
    let first = waves.next().unwrap_or(0.0);
    let sum = waves.fold(first, |sum, wave| sum + wave);
    normalise(input, weight, epsilon, sum, output);
}

/// QK_NORM of one head, in place.
pub fn qk_norm(head: &mut [f32], weight: &[f32], epsilon: f32) {
    let mut partial = [0f32; LANES];
    for (index, x) in head.iter().enumerate() {
        partial[index % LANES] = x.mul_add(*x, partial[index % LANES]);
    }
    let input = head.to_vec();
    normalise(&input, weight, epsilon, tree(partial, LANES), head);
}

fn normalise(input: &[f32], weight: &[f32], epsilon: f32, sum: f32, output: &mut [f32]) {
    let inverse_count = (1.0 / input.len() as f64) as f32;
    let mean = sum * inverse_count;
    let factor = reciprocal(square_root(mean + epsilon));
    for ((y, x), w) in output.iter_mut().zip(input).zip(weight) {
        *y = (x * factor) * w;
    }
}

/// MATMUL with the vector of one row: weight rows of `input.len()` columns.
pub fn matmul(weights: &[f32], input: &[f32], output: &mut [f32]) {
    for (y, row) in output.iter_mut().zip(weights.chunks_exact(input.len())) {
        *y = dot(row, input);
    }
}

fn dot(row: &[f32], input: &[f32]) -> f32 {
    let lanes = input.len().div_ceil(CHUNK).next_power_of_two().min(LANES);
    let stretch = lanes * CHUNK;
    let mut parts =
        row.chunks(stretch).zip(input.chunks(stretch)).map(|(row, input)| part(row, input, lanes));
    let first = parts.next().unwrap_or(0.0);
    parts.fold(first, |sum, part| sum + part)
}

/// The sum of one stretch: a chunk for each lane.
fn part(row: &[f32], input: &[f32], lanes: usize) -> f32 {
    let mut sums = [0f32; LANES];
    if row.len() == lanes * CHUNK {
        for element in 0..CHUNK {
            for (lane, sum) in sums[..lanes].iter_mut().enumerate() {
                let at = lane * CHUNK + element;
                *sum = row[at].mul_add(input[at], *sum);
            }
        }
    } else {
        for (at, (w, x)) in row.iter().zip(input).enumerate() {
            sums[at / CHUNK] = w.mul_add(*x, sums[at / CHUNK]);
        }
    }
    tree(sums, lanes)
}

/// ROPE of one head in place; `angles` holds (cos, sin) of this position.
pub fn rope(head: &mut [f32], angles: &[f32], interleaved: bool) {
    let pairs = angles.len() / 2;
    for pair in 0..pairs {
        let (cosine, sine) = (angles[2 * pair], angles[2 * pair + 1]);
        let (first, second) = if interleaved { (2 * pair, 2 * pair + 1) } else { (pair, pair + pairs) };
        let (a, b) = (head[first], head[second]);
        head[first] = a.mul_add(cosine, -(b * sine));
        head[second] = a.mul_add(sine, b * cosine);
    }
}

/// Running state of one attention wave.
struct WaveState {
    maximum: f32,
    sum: f32,
    output: Vec<f32>,
}

/// The caches of a layer, as one head sees them.
pub struct HeadCache<'a> {
    /// Rows of keys by position.
    pub keys: &'a [f32],
    /// Rows of values by position.
    pub values: &'a [f32],
    /// Elements from one row to the next.
    pub row: usize,
    /// Elements of a row before this head's part.
    pub offset: usize,
}

impl HeadCache<'_> {
    fn start(&self, position: usize) -> usize {
        position * self.row + self.offset
    }
}

/// ATTENTION of one query head over these positions, of which the last is the row's own.
pub fn attention(
    query: &[f32],
    cache: &HeadCache<'_>,
    positions: Range<usize>,
    scale: f32,
    output: &mut [f32],
) {
    let size = query.len();
    let mut waves: Vec<WaveState> = Vec::with_capacity(ATTENTION_WAVES);
    let first_tile = positions.start / TILE;
    for tile in first_tile..positions.end.div_ceil(TILE) {
        let first = tile * TILE;
        let count = (positions.end - first).min(TILE);
        let left_out = positions.start.saturating_sub(first);
        let mut scores = [0f32; TILE];
        for (lane, score) in scores[..count].iter_mut().enumerate().skip(left_out) {
            let key = &cache.keys[cache.start(first + lane)..][..size];
            let sum = query.iter().zip(key).fold(0f32, |sum, (q, k)| q.mul_add(*k, sum));
            *score = sum * scale;
        }
        let counted = &scores[left_out..count];
        let tile_maximum = counted[1..].iter().fold(counted[0], |maximum, score| maximum.max(*score));
        let wave = (tile - first_tile) % ATTENTION_WAVES;
        let maximum = waves.get(wave).map_or(tile_maximum, |state| state.maximum.max(tile_maximum));
        let mut exponentials = [0f32; TILE];
        for (e, score) in exponentials[left_out..count].iter_mut().zip(counted) {
            *e = exponential(score - maximum);
        }
        let tile_sum = tree(exponentials, LANES);
        if waves.len() <= wave {
            waves.push(WaveState { maximum, sum: tile_sum, output: vec![0.0; size] });
        } else {
            let state = &mut waves[wave];
            let factor = exponential(state.maximum - maximum);
            state.sum = state.sum.mul_add(factor, tile_sum);
            state.output.iter_mut().for_each(|o| *o *= factor);
            state.maximum = maximum;
        }
        let state = &mut waves[wave];
        for (lane, e) in exponentials[..count].iter().enumerate() {
            let value = &cache.values[cache.start(first + lane)..][..size];
            for (o, v) in state.output.iter_mut().zip(value) {
                *o = e.mul_add(*v, *o);
            }
        }
    }
    merge(&waves, output);
}

fn merge(waves: &[WaveState], output: &mut [f32]) {
    let maximum = waves[1..].iter().fold(waves[0].maximum, |maximum, wave| maximum.max(wave.maximum));
    let mut sum = 0f32;
    for (index, wave) in waves.iter().enumerate() {
        let factor = exponential(wave.maximum - maximum);
        if index == 0 {
            sum = wave.sum * factor;
            output.iter_mut().zip(&wave.output).for_each(|(o, w)| *o = w * factor);
        } else {
            sum = wave.sum.mul_add(factor, sum);
            output.iter_mut().zip(&wave.output).for_each(|(o, w)| *o = w.mul_add(factor, *o));
        }
    }
    let inverse = reciprocal(sum);
    output.iter_mut().for_each(|o| *o *= inverse);
}

/// SWIGLU.
pub fn swiglu(gate: &[f32], up: &[f32], output: &mut [f32]) {
    for ((y, g), u) in output.iter_mut().zip(gate).zip(up) {
        let e = exponential(-g);
        *y = (g * reciprocal(1.0 + e)) * u;
    }
}

/// GEGLU.
pub fn geglu(gate: &[f32], up: &[f32], output: &mut [f32]) {
    for ((y, g), u) in output.iter_mut().zip(gate).zip(up) {
        let t = (g * g).mul_add(GELU_CUBIC, GELU_LINEAR);
        let e = exponential(-(g * t));
        *y = (g * reciprocal(1.0 + e)) * u;
    }
}

/// SOFT_CAP.
pub fn soft_cap(vector: &mut [f32], cap: f32) {
    let steepness = 2.0 / cap;
    for x in vector {
        let e = exponential(-(*x * steepness).abs());
        *x = (((1.0 - e) * reciprocal(1.0 + e)) * cap).copysign(*x);
    }
}

/// RESIDUAL_ADD and BIAS_ADD.
pub fn residual_add(hidden: &mut [f32], addend: &[f32]) {
    for (h, y) in hidden.iter_mut().zip(addend) {
        *h += y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matvec_sums_chunks_by_lane_then_tree() {
        // 96 columns: three chunks on four lanes. Lane sums 1, 2^-24, 2^-24, 0: (1 + 2^-24) + (2^-24 + 0) = 1.
        let mut row = vec![0f32; 96];
        row[0] = 1.0;
        row[32] = 2f32.powi(-24);
        row[64] = 2f32.powi(-24);
        let mut output = [0f32];
        matmul(&row, &vec![1.0; 96], &mut output);
        assert_eq!(output[0], 1.0);
        // Within a lane the order is ascending: two small values that come first survive.
        row[0] = 2f32.powi(-24);
        row[1] = 2f32.powi(-24);
        row[2] = 1.0;
        row[32] = 0.0;
        row[64] = 0.0;
        matmul(&row, &vec![1.0; 96], &mut output);
        assert_eq!(output[0], 1.0 + 2f32.powi(-23));
    }

    #[test]
    fn matvec_adds_the_sums_of_stretches_of_1024_columns() {
        // Ascending: (1 + 2^-24) + 2^-24 keeps neither, (2^-24 + 2^-24) + 1 keeps both.
        let sum = |values: [f32; 3]| {
            let mut row = vec![0f32; 2052];
            for (stretch, value) in values.into_iter().enumerate() {
                row[1024 * stretch] = value;
            }
            let mut output = [0f32];
            matmul(&row, &vec![1.0; 2052], &mut output);
            output[0]
        };
        let small = 2f32.powi(-24);
        assert_eq!(sum([1.0, small, small]), 1.0);
        assert_eq!(sum([small, small, 1.0]), 1.0 + 2.0 * small);
        // A stretch is summed by itself: 1 + 2^-24 is 1. One sum for the lane would be (-1 + 1) + 2^-24.
        let mut row = vec![0f32; 2048];
        row[0] = -1.0;
        row[1024] = 1.0;
        row[1025] = small;
        let mut output = [0f32];
        matmul(&row, &vec![1.0; 2048], &mut output);
        assert_eq!(output[0], 0.0);
    }

    /// Every number of columns is summed whole, and no weight of the next row: sums of ones are exact.
    #[test]
    fn matvec_counts_the_columns_of_every_length() {
        for columns in (1..=70).chain(1000..=1100).chain([2048, 2049, 2112]) {
            let mut output = [0f32; 2];
            matmul(&[vec![1.0; columns], vec![2.0; columns]].concat(), &vec![3.0; columns], &mut output);
            assert_eq!(output, [3.0 * columns as f32, 6.0 * columns as f32], "{columns} columns");
        }
    }

    /// 32 chunks are a stretch: 2^-24 of chunks 4 and 6 meet in the tree before 1 of chunk 0 comes to them. Added to 1
    /// one after the other, both are lost.
    #[test]
    fn matvec_takes_1024_columns_as_one_stretch() {
        let mut row = vec![0f32; 1024];
        (row[0], row[128], row[192]) = (1.0, 2f32.powi(-24), 2f32.powi(-24));
        let mut output = [0f32];
        matmul(&row, &vec![1.0; 1024], &mut output);
        assert_eq!(output[0], 1.0 + 2f32.powi(-23));
    }

    /// Squares of 1 and of 2^-12: in a sum of one thread each 2^-24 beside 1 is lost. Of 256 threads only the one next
    /// to the first is, and 254 remain: the mean is (1 + 127 * 2^-23) / 256. Its root, rounded, is
    /// (1 + 63 * 2^-23) / 16, and the factor 16 * (1 - 126 * 2^-24).
    #[test]
    fn rms_norm_has_a_sum_for_each_of_256_threads() {
        let mut input = [2f32.powi(-12); 256];
        input[0] = 1.0;
        let mut output = [0f32; 256];
        rms_norm(&input, &[1.0; 256], 0.0, &mut output);
        assert_eq!(output[0], 16.0 * (1.0 - 126.0 * 2f32.powi(-24)));
    }

    #[test]
    fn qk_norm_divides_by_the_root_of_the_mean_square() {
        for size in [32usize, 36, 64, 256] {
            let mut head: Vec<f32> = (0..size).map(|at| (at * 7 % 11) as f32 - 4.5).collect();
            let sum: f64 = head.iter().map(|x| f64::from(*x).powi(2)).sum();
            let expected = f64::from(head[5]) * 2.0 / (sum / size as f64 + 1e-5).sqrt();
            qk_norm(&mut head, &vec![2.0; size], 1e-5);
            assert!((f64::from(head[5]) - expected).abs() < 1e-6, "{size} elements");
        }
    }

    /// Scores of 70 and 69: weights are relative to the greatest, since the exponential of a sum of two such is not
    /// defined.
    #[test]
    fn attention_weighs_tiles_by_how_far_they_are_below_the_greatest() {
        let (size, end) = (4usize, 64usize);
        let mut keys = vec![0f32; end * size];
        let mut values = vec![0f32; end * size];
        (keys[0], keys[32 * size], values[32 * size]) = (70.0, 69.0, 1.0);
        let cache = HeadCache { keys: &keys, values: &values, row: size, offset: 0 };
        let mut output = vec![0f32; size];
        attention(&[1.0, 0.0, 0.0, 0.0], &cache, 0..end, 1.0, &mut output);
        // 1 / (1 + e)
        assert!((f64::from(output[0]) - 0.268_941_421_369_995_1).abs() < 1e-6, "{}", output[0]);
    }

    /// cap * tanh(x / cap); tanh from a table. Far out it is the cap itself; a zero keeps its sign, a NaN is one.
    #[test]
    fn soft_cap_is_a_scaled_tanh() {
        let tanh = [
            (0.5f32, 0.462_117_157_260_009_8),
            (1.0, 0.761_594_155_955_764_9),
            (2.0, 0.964_027_580_075_816_9),
            (4.0, 0.999_329_299_739_067_1),
        ];
        for cap in [0.5f32, 1.0, 30.0] {
            for (share, exact) in tanh {
                let mut vector = [cap * share, -cap * share];
                soft_cap(&mut vector, cap);
                let found = f64::from(vector[0] / cap);
                assert!((found - exact).abs() < 4e-7, "{share} of {cap}: {found} against {exact}");
                assert_eq!(vector[1], -vector[0]);
            }
        }
        let mut vector = [0.0, -0.0, 1e30, -1e30, f32::NAN];
        soft_cap(&mut vector, 30.0);
        assert_eq!(
            vector[..4].iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
            [0, 0x8000_0000, 30f32.to_bits(), (-30f32).to_bits()]
        );
        assert!(vector[4].is_nan());
    }

    #[test]
    fn residual_add_is_the_sum() {
        let mut hidden = [1.0, -2.0, 3.0];
        residual_add(&mut hidden, &[0.5, 0.25, -4.0]);
        assert_eq!(hidden, [1.5, -1.75, -1.0]);
    }

    /// Over all positions, nine tiles and a bit; and over windows that begin within a tile, at one, and with the row's
    /// own position.
    #[test]
    fn attention_agrees_with_the_textbook_in_f64() {
        let (size, end, row) = (8usize, 310usize, 16usize);
        let wave = |index: usize, factor: f64| ((index as f64 * factor).sin()) as f32;
        let query: Vec<f32> = (0..size).map(|i| wave(i, 1.3)).collect();
        let keys: Vec<f32> = (0..end * row).map(|i| wave(i, 0.37)).collect();
        let values: Vec<f32> = (0..end * row).map(|i| wave(i, 0.73)).collect();
        let scale = (1.0 / (size as f64).sqrt()) as f32;
        let cache = HeadCache { keys: &keys, values: &values, row, offset: 8 };
        let score = |p: usize| -> f64 {
            let products = (0..size).map(|d| f64::from(query[d]) * f64::from(keys[p * row + 8 + d]));
            products.sum::<f64>() / (size as f64).sqrt()
        };
        for first in [0, 1, 31, 32, 181, 288, 309] {
            let mut output = vec![0f32; size];
            attention(&query, &cache, first..end, scale, &mut output);
            let total: f64 = (first..end).map(|p| score(p).exp()).sum();
            for d in 0..size {
                let sum: f64 =
                    (first..end).map(|p| score(p).exp() * f64::from(values[p * row + 8 + d])).sum();
                let (found, exact) = (f64::from(output[d]), sum / total);
                assert!((found - exact).abs() < 1e-6, "from {first}, element {d}: {found} against {exact}");
            }
        }
    }

    /// 8 tiles from tile 1 on: the last one is the eighth wave's, not the first's.
    #[test]
    fn attention_deals_tiles_from_the_window_on() {
        let (size, end) = (4usize, 288usize);
        let small = 2f32.powi(-24);
        let mut values = vec![0f32; end * size];
        for (tile, value) in [(1, 1.0), (8, small), (2, small)] {
            values[tile * TILE * size] = value;
        }
        let keys = vec![0.0; end * size];
        let cache = HeadCache { keys: &keys, values: &values, row: size, offset: 0 };
        let mut output = vec![0f32; size];
        attention(&[0.0; 4], &cache, 32..end, 0.5, &mut output);
        // 1, 2^-24 and 2^-24 of waves 0, 1 and 7, ascending: both are lost. Dealt from tile 0 on, tile 8 would be the
        // first to be added.
        assert_eq!(output[0], 1.0 / 256.0);
    }

    #[test]
    fn attention_deals_tiles_to_eight_waves() {
        // All weights are 1 and the result is the sum of the values times 1/512. Added to 1 one after the other, 2^-24
        // and 2^-24 are lost, but two of the same wave add up first.
        let (size, positions) = (4usize, 512usize);
        let small = 2f32.powi(-24);
        let mut values = vec![0f32; positions * size];
        let mut put = |tile: usize, element: usize, value: f32| values[tile * TILE * size + element] = value;
        for element in 0..size {
            put(0, element, 1.0);
            put(1, element, small);
        }
        put(5, 0, small);
        put(9, 1, small);
        put(13, 2, small);
        let mut output = vec![0f32; size];
        let keys = vec![0.0; positions * size];
        let cache = HeadCache { keys: &keys, values: &values, row: size, offset: 0 };
        attention(&[0.0; 4], &cache, 0..positions, 0.5, &mut output);
        let expected = [1.0, 1.0 + 2f32.powi(-23), 1.0, 1.0].map(|sum| sum / 512.0);
        assert_eq!(output, expected);
    }

    #[test]
    fn rope_turns_both_layouts_by_the_angle() {
        let angles = [0.6f32, 0.8, 0.0, 1.0];
        let mut interleaved = [1.0f32, 0.0, 2.0, 3.0];
        rope(&mut interleaved, &angles, true);
        assert_eq!(interleaved, [0.6, 0.8, -3.0, 2.0]);
        let mut halves = [1.0f32, 2.0, 0.0, 3.0];
        rope(&mut halves, &angles, false);
        assert_eq!(halves, [0.6, -3.0, 0.8, 2.0]);
    }

    /// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), from mpmath with 40 digits; far out it is x and 0.
    #[test]
    fn geglu_is_the_tanh_form_of_gelu() {
        let expected = [
            (-3.0f32, -0.003_637_392_081_773_019),
            (-0.75, -0.170_039_444_834_379_7),
            (0.0, 0.0),
            (0.5, 0.345_714_009_825_143_9),
            (1.0, 0.841_191_990_608_276_7),
            (4.0, 3.999_929_754_051_807_6),
            (60.0, 60.0),
            (-60.0, 0.0),
        ];
        for (gate, exact) in expected {
            let mut output = [0f32];
            geglu(&[gate], &[2.0], &mut output);
            let found = f64::from(output[0]) / 2.0;
            assert!((found - exact).abs() <= 1e-6 * f64::abs(exact).max(1e-6), "{gate}: {found}, {exact}");
        }
    }

    #[test]
    fn swiglu_and_norms_follow_their_formulas() {
        let mut output = [0f32; 2];
        swiglu(&[0.0, 2.0], &[5.0, 3.0], &mut output);
        let exact = 2.0 / (1.0 + (-2f64).exp()) * 3.0;
        assert_eq!(output[0], 0.0);
        assert!((f64::from(output[1]) - exact).abs() < 1e-6);
        let input: Vec<f32> = (0..300).map(|i| (i % 7) as f32 - 3.0).collect();
        let mean: f64 = input.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() / 300.0;
        let mut normed = vec![0f32; 300];
        rms_norm(&input, &vec![2.0; 300], 1e-5, &mut normed);
        assert!((f64::from(normed[0]) - f64::from(input[0]) * 2.0 / (mean + 1e-5).sqrt()).abs() < 1e-6);
    }
}
