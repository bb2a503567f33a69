//! Norms, rotary embedding, gate, addition, copy on the virtual device's shader engine against a separate computation,
//! bit for bit: over several rows of a step, of which some do not count, with rows further apart than they are long,
//! and on grids smaller and larger than the work. What lies between rows, and rows that do not count, stays unchanged.
//! Norms and gates also store integers.

#[path = "elementwise/rows.rs"]
mod rows;
mod support;

use rows::{
    ALL_ROWS, MANY_OUTPUTS, MANY_ROWS, NO_ROWS, PADDING, SCENE, Scene, lay_out, on_every_grid, random_rows,
    run, with_integers,
};
use support::harness::Device;
use support::integers::IntegerRows;
use support::reference as cpu;
use support::weights::Random;
use support::{BIASES, assert_same};
use zerocopy::IntoBytes;
use zrt_protocol::params::{self, RowSet};
use zrt_protocol::{Row, Step, norm_units};

// ----------------------------------------------------------------------------------------------------- norms

#[derive(Clone, Debug)]
struct RmsNormCase {
    count: usize,
    gap: usize,
    bias: i32,
    /// Bytes of the integers of each result; 0: none.
    limbs: u32,
    factor: f32,
    epsilon: f32,
    scene: Scene,
    change: Option<[u32; 2]>,
}

const RMS_NORM: RmsNormCase = RmsNormCase {
    count: 256,
    gap: 12,
    bias: 0,
    limbs: 0,
    factor: 1.0,
    epsilon: 1e-5,
    scene: SCENE,
    change: None,
};

impl RmsNormCase {
    /// Results and expected values over active rows or over output rows.
    fn results(&self, set: RowSet, groups: u32) -> (Vec<f32>, Vec<f32>) {
        let (rows, stride) = (self.scene.rows, self.count + self.gap);
        let mut random = Random::new((self.count + self.gap) as u64);
        let mut x = random_rows(&mut random, rows, self.count);
        x.iter_mut().flatten().for_each(|value| *value *= self.factor);
        let weight = random.reals(self.count);
        let mut device = Device::new(self.bias);
        let input_va = device.upload(&lay_out(&x, stride));
        let untouched = vec![vec![PADDING; self.count]; rows];
        let output_va = device.upload(&lay_out(&untouched, stride));
        let step_va = self.scene.step(&mut device);
        let set_rows = if set == RowSet::EachOutput { self.scene.outputs.len() } else { rows };
        let integers = IntegerRows::allocate(&mut device, set_rows, self.count, self.limbs);
        let units = norm_units(self.count.max(integers.elements()) as u32);
        let block = params::RmsNorm {
            header: self.scene.header(params::RmsNorm::header(step_va, units, set)),
            input_va,
            weight_va: device.upload(&weight),
            output_va,
            count: self.count as u32,
            inverse_count: ((1.0 / self.count as f64) as f32).to_bits(),
            epsilon: self.epsilon.to_bits(),
            stride: 4 * stride as u32,
            integers_va: integers.va,
            integers_stride: integers.stride,
            factors_offset: integers.factors_offset(),
            limbs: integers.limbs,
            reserved: 0,
        };
        run(&mut device, "rms_norm", self.change, block.as_bytes(), groups);
        let norm = |row: usize| cpu::rms_norm(&x[row], &weight, self.epsilon, 256);
        let results: Vec<Option<Vec<f32>>> = if set == RowSet::EachOutput {
            self.scene.outputs.iter().map(|row| Some(norm(*row))).collect()
        } else {
            (0..rows).map(|row| self.scene.counts(row).then(|| norm(row))).collect()
        };
        let mut expected = untouched;
        for (row, result) in expected.iter_mut().zip(&results) {
            if let Some(result) = result {
                row.clone_from(result);
            }
        }
        let expected = lay_out(&expected, stride);
        let found = device.floats(output_va, expected.len());
        with_integers(&device, &integers, &results, (found, expected))
    }
}

#[test]
fn rms_norm_of_every_length() {
    for bias in BIASES {
        for count in [4, 64, 172, 256, 300, 768, 1024, 1028, 2048, 2300, 4100] {
            for limbs in 0..=2 {
                let case = RmsNormCase { count, bias, limbs, scene: ALL_ROWS, ..RMS_NORM };
                let (found, expected) = case.results(RowSet::EachActive, 2);
                assert_same(&format!("{case:?}"), &found, &expected);
            }
        }
    }
}

#[test]
fn rms_norm_of_rows_that_count() {
    for scene in [SCENE, SCENE.odd(), ALL_ROWS, NO_ROWS, MANY_ROWS, MANY_ROWS.odd()] {
        for (count, limbs) in [(300, 0), (1300, 1), (300, 2)] {
            let case = RmsNormCase { count, limbs, scene: scene.clone(), ..RMS_NORM };
            on_every_grid(&format!("{case:?}"), 2 * scene.rows, |groups| {
                case.results(RowSet::EachActive, groups)
            });
        }
    }
}

#[test]
fn rms_norm_of_output_rows() {
    for scene in [SCENE, SCENE.odd(), ALL_ROWS, NO_ROWS, MANY_ROWS, MANY_OUTPUTS] {
        for (count, gap, limbs) in [(300, 0, 0), (1300, 4, 0), (1300, 4, 1), (300, 0, 2)] {
            let case = RmsNormCase { count, gap, limbs, scene: scene.clone(), ..RMS_NORM };
            let outputs = 2 * scene.outputs.len();
            on_every_grid(&format!("{case:?}"), outputs, |groups| case.results(RowSet::EachOutput, groups));
        }
    }
}

/// Tiny inputs reach the scaled branch of the square root; large ones the other end.
#[test]
fn rms_norm_far_from_one() {
    for bias in BIASES {
        for factor in [1e-18f32, 1e-12, 1e12] {
            let case = RmsNormCase { bias, factor, epsilon: 0.0, ..RMS_NORM };
            let (found, expected) = case.results(RowSet::EachActive, 3);
            assert_same(&format!("{case:?}"), &found, &expected);
        }
    }
}

fn qk_norm_case(
    scene: &Scene,
    heads: usize,
    head_size: usize,
    bias: i32,
    groups: u32,
) -> (Vec<f32>, Vec<f32>) {
    let stride = heads * head_size + 20;
    let mut random = Random::new((heads + head_size) as u64);
    let (x, weight) = (random_rows(&mut random, scene.rows, heads * head_size), random.reals(head_size));
    let mut device = Device::new(bias);
    let vector_va = device.upload(&lay_out(&x, stride));
    let (step_va, units) = (scene.step(&mut device), heads.div_ceil(8) as u32);
    let block = params::QkNorm {
        header: scene.header(params::QkNorm::header(step_va, units, RowSet::EachActive)),
        vector_va,
        weight_va: device.upload(&weight),
        heads: heads as u32,
        head_size: head_size as u32,
        inverse_head_size: ((1.0 / head_size as f64) as f32).to_bits(),
        epsilon: 1e-6f32.to_bits(),
        stride: 4 * stride as u32,
        reserved: 0,
    };
    device.run("qk_norm", block.as_bytes(), groups);
    let norm = |head: &[f32]| cpu::rms_norm(head, &weight, 1e-6, 32);
    let expected = scene.expected(&x, |row| x[row].chunks(head_size).flat_map(norm).collect());
    let expected = lay_out(&expected, stride);
    (device.floats(vector_va, expected.len()), expected)
}

#[test]
fn qk_norm_of_every_head_size() {
    for bias in BIASES {
        for (heads, head_size) in [(3, 8), (1, 32), (9, 48), (8, 64), (16, 128), (17, 256)] {
            let (found, expected) = qk_norm_case(&ALL_ROWS, heads, head_size, bias, 4);
            assert_same(&format!("{heads} heads of {head_size}, bias {bias}"), &found, &expected);
        }
    }
}

#[test]
fn qk_norm_of_rows_that_count() {
    for scene in [SCENE, SCENE.odd(), NO_ROWS, MANY_ROWS] {
        for heads in [2usize, 8, 11] {
            let units = scene.rows * heads.div_ceil(8);
            on_every_grid(&format!("{heads} heads, {scene:?}"), units, |groups| {
                qk_norm_case(&scene, heads, 32, 0, groups)
            });
        }
    }
}

// ------------------------------------------------------------------------------------------------------ rope

#[derive(Clone, Debug)]
struct RopeCase {
    is_interleaved: bool,
    heads: usize,
    head_size: usize,
    rotary_dimensions: usize,
    scene: Scene,
    change: Option<[u32; 2]>,
}

const ROPE: RopeCase = RopeCase {
    is_interleaved: false,
    heads: 11,
    head_size: 20,
    rotary_dimensions: 12,
    scene: SCENE,
    change: None,
};

impl RopeCase {
    fn results(&self, groups: u32) -> (Vec<f32>, Vec<f32>) {
        let (pairs, stride) = (self.rotary_dimensions / 2, self.heads * self.head_size + 8);
        let mut random = Random::new(self.head_size as u64);
        let x = random_rows(&mut random, self.scene.rows, self.heads * self.head_size);
        // One row of the table more than there are positions.
        let table: Vec<[f32; 2]> = (0..12 * pairs).map(|_| [random.real(), random.real()]).collect();
        let mut device = Device::new(0);
        let vector_va = device.upload(&lay_out(&x, stride));
        let (step_va, units) = (self.scene.step(&mut device), self.heads.div_ceil(8) as u32);
        let block = params::Rope {
            header: self.scene.header(params::Rope::header(step_va, units, RowSet::EachActive)),
            vector_va,
            table_va: device.upload(&table),
            heads: self.heads as u32,
            head_size: self.head_size as u32,
            rotary_dimensions: self.rotary_dimensions as u32,
            stride: 4 * stride as u32,
        };
        let name = if self.is_interleaved { "rope_interleaved" } else { "rope_halves" };
        run(&mut device, name, self.change, block.as_bytes(), groups);
        let expected = self.scene.expected(&x, |row| {
            let mut heads = x[row].clone();
            for head in heads.chunks_mut(self.head_size) {
                cpu::rope(head, &table[Scene::position(row) * pairs..][..pairs], self.is_interleaved);
            }
            heads
        });
        let expected = lay_out(&expected, stride);
        (device.floats(vector_va, expected.len()), expected)
    }
}

#[test]
fn rope_of_every_head_size() {
    for is_interleaved in [false, true] {
        for (head_size, rotary_dimensions) in [(8, 8), (64, 64), (64, 32), (80, 20), (128, 128), (256, 256)] {
            let case = RopeCase { is_interleaved, head_size, rotary_dimensions, scene: ALL_ROWS, ..ROPE };
            let (found, expected) = case.results(4);
            assert_same(&format!("{case:?}"), &found, &expected);
        }
    }
}

#[test]
fn rope_of_rows_that_count() {
    for is_interleaved in [false, true] {
        for scene in [SCENE, SCENE.odd(), NO_ROWS, MANY_ROWS] {
            for heads in [2usize, 8, 11] {
                let case = RopeCase { is_interleaved, heads, scene: scene.clone(), ..ROPE };
                let units = scene.rows * heads.div_ceil(8);
                on_every_grid(&format!("{case:?}"), units, |groups| case.results(groups));
            }
        }
    }
}

// ---------------------------------------------------------------------------------------- element by element

#[derive(Clone, Debug)]
struct SwigluCase {
    count: usize,
    bias: i32,
    in_place: bool,
    /// Bytes of the integers of each result; 0: none.
    limbs: u32,
    scene: Scene,
    change: Option<[u32; 2]>,
    kernel: &'static str,
    expected: fn(f32, f32) -> f32,
}

const SWIGLU: SwigluCase = SwigluCase {
    count: 300,
    bias: 0,
    in_place: true,
    limbs: 0,
    scene: SCENE,
    change: None,
    kernel: "swiglu",
    expected: cpu::swiglu,
};
const GEGLU: SwigluCase = SwigluCase { kernel: "geglu", expected: cpu::geglu, ..SWIGLU };

impl SwigluCase {
    fn results(&self, groups: u32) -> (Vec<f32>, Vec<f32>) {
        let (rows, stride) = (self.scene.rows, self.count + 8);
        let mut random = Random::new(self.count as u64);
        let mut gate = random_rows(&mut random, rows, self.count);
        for row in &mut gate {
            row.iter_mut().for_each(|value| *value *= 20.0);
            row[..4].copy_from_slice(&[0.0, -100.0, 100.0, -0.0]);
        }
        let up = random_rows(&mut random, rows, self.count);
        let mut device = Device::new(self.bias);
        let gate_va = device.upload(&lay_out(&gate, stride));
        let untouched = vec![vec![PADDING; self.count]; rows];
        let output_va = if self.in_place { gate_va } else { device.upload(&lay_out(&untouched, stride)) };
        let step_va = self.scene.step(&mut device);
        let integers = IntegerRows::allocate(&mut device, rows, self.count, self.limbs);
        let units = self.count.max(integers.elements()).div_ceil(256) as u32;
        let block = params::SwiGlu {
            header: self.scene.header(params::SwiGlu::header(step_va, units, RowSet::EachActive)),
            gate_va,
            up_va: device.upload(&lay_out(&up, stride)),
            output_va,
            count: self.count as u32,
            stride: 4 * stride as u32,
            integers_va: integers.va,
            integers_stride: integers.stride,
            factors_offset: integers.factors_offset(),
            limbs: integers.limbs,
            reserved: 0,
        };
        run(&mut device, self.kernel, self.change, block.as_bytes(), groups);
        let result = |row: usize| -> Vec<f32> {
            gate[row].iter().zip(&up[row]).map(|(gate, up)| (self.expected)(*gate, *up)).collect()
        };
        let expected = self.scene.expected(if self.in_place { &gate } else { &untouched }, result);
        let expected = lay_out(&expected, stride);
        let found = device.floats(output_va, expected.len());
        let results: Vec<_> = (0..rows).map(|row| self.scene.counts(row).then(|| result(row))).collect();
        with_integers(&device, &integers, &results, (found, expected))
    }
}

#[test]
fn gates_of_every_length() {
    for gate in [SWIGLU, GEGLU] {
        for bias in BIASES {
            for count in [4usize, 172, 256, 768, 1000, 1028] {
                for (in_place, limbs) in [(false, 0), (true, 0), (true, 1), (false, 2)] {
                    let case = SwigluCase { count, bias, in_place, limbs, scene: ALL_ROWS, ..gate.clone() };
                    let (found, expected) = case.results(2);
                    assert_same(&format!("{case:?}"), &found, &expected);
                }
            }
        }
    }
}

#[test]
fn gates_of_rows_that_count() {
    for gate in [SWIGLU, GEGLU] {
        for scene in [SCENE, SCENE.odd(), NO_ROWS, MANY_ROWS] {
            for limbs in 0..=2 {
                let case = SwigluCase { limbs, scene: scene.clone(), ..gate.clone() };
                on_every_grid(&format!("{case:?}"), 2 * scene.rows, |groups| case.results(groups));
            }
        }
    }
}

fn residual_add_case(
    scene: &Scene,
    count: usize,
    groups: u32,
    change: Option<[u32; 2]>,
    addend_gap: Option<usize>,
) -> (Vec<f32>, Vec<f32>) {
    let stride = count + 28;
    let addend_stride = addend_gap.map_or(0, |gap| count + gap);
    let mut random = Random::new(count as u64);
    let hidden = random_rows(&mut random, scene.rows, count);
    let addend = match addend_gap {
        Some(_) => random_rows(&mut random, scene.rows, count),
        None => vec![random.reals(count); scene.rows],
    };
    let addends = match addend_gap {
        Some(_) => lay_out(&addend, addend_stride),
        None => addend.first().cloned().unwrap_or_else(|| vec![PADDING; count]),
    };
    let mut device = Device::new(0);
    let hidden_va = device.upload(&lay_out(&hidden, stride));
    let (step_va, units) = (scene.step(&mut device), count.div_ceil(256) as u32);
    let block = params::ResidualAdd {
        header: scene.header(params::ResidualAdd::header(step_va, units, RowSet::EachActive)),
        hidden_va,
        addend_va: device.upload(&addends),
        count: count as u32,
        stride: 4 * stride as u32,
        addend_stride: 4 * addend_stride as u32,
        reserved: 0,
    };
    run(&mut device, "residual_add", change, block.as_bytes(), groups);
    let sums = |row: usize| hidden[row].iter().zip(&addend[row]).map(|(a, b)| a + b).collect();
    let expected = lay_out(&scene.expected(&hidden, sums), stride);
    (device.floats(hidden_va, expected.len()), expected)
}

#[test]
fn residual_add() {
    for scene in [SCENE, SCENE.odd(), ALL_ROWS, NO_ROWS, MANY_ROWS, MANY_ROWS.odd()] {
        for count in [1usize, 64, 256, 700] {
            let units = scene.rows * count.div_ceil(256);
            // Addends at the stride of what they are added to, at another one, and one for all rows.
            for addend_gap in [Some(28), Some(4), None] {
                on_every_grid(&format!("{count} elements, {addend_gap:?}, {scene:?}"), units, |groups| {
                    residual_add_case(&scene, count, groups, None, addend_gap)
                });
            }
        }
    }
}

fn scale_case(scene: &Scene, count: usize, groups: u32) -> (Vec<f32>, Vec<f32>) {
    let (stride, factor) = (count + 12, 16.970_562f32);
    let vectors = random_rows(&mut Random::new(count as u64), scene.rows, count);
    let mut device = Device::new(0);
    let vector_va = device.upload(&lay_out(&vectors, stride));
    let (step_va, units) = (scene.step(&mut device), count.div_ceil(256) as u32);
    let block = params::Scale {
        header: scene.header(params::Scale::header(step_va, units, RowSet::EachActive)),
        vector_va,
        count: count as u32,
        stride: 4 * stride as u32,
        factor: factor.to_bits(),
        reserved: 0,
    };
    run(&mut device, "scale", None, block.as_bytes(), groups);
    let scaled = |row: usize| vectors[row].iter().map(|x| x * factor).collect();
    let expected = lay_out(&scene.expected(&vectors, scaled), stride);
    (device.floats(vector_va, expected.len()), expected)
}

#[test]
fn scale() {
    for scene in [SCENE, SCENE.odd(), ALL_ROWS, NO_ROWS, MANY_ROWS] {
        for count in [1usize, 256, 700] {
            let units = scene.rows * count.div_ceil(256);
            on_every_grid(&format!("{count} elements, {scene:?}"), units, |groups| {
                scale_case(&scene, count, groups)
            });
        }
    }
}

fn soft_cap_case(scene: &Scene, count: usize, groups: u32) -> (Vec<f32>, Vec<f32>) {
    let (stride, cap) = (count + 12, 30.0f32);
    // Small values, where tanh is its argument, and such as are cut.
    let mut vectors = random_rows(&mut Random::new(count as u64), scene.rows, count);
    for row in &mut vectors {
        let scales = [1e-6f32, 1.0, 30.0, 1000.0, -1e30, 0.0, -0.0, f32::INFINITY];
        row.iter_mut().zip(scales.iter().cycle()).for_each(|(x, scale)| *x *= scale);
        // 0 times infinity.
        row.iter_mut().filter(|x| x.is_nan()).for_each(|x| *x = f32::NEG_INFINITY);
        row[count / 2] = f32::from_bits(0x7FC0_1234);
    }
    let mut device = Device::new(0);
    let vector_va = device.upload(&lay_out(&vectors, stride));
    let (step_va, units) = (scene.step(&mut device), count.div_ceil(256) as u32);
    let block = params::SoftCap {
        header: scene.header(params::SoftCap::header(step_va, units, RowSet::EachActive)),
        vector_va,
        count: count as u32,
        stride: 4 * stride as u32,
        steepness: (2.0f32 / cap).to_bits(),
        cap: cap.to_bits(),
    };
    run(&mut device, "soft_cap", None, block.as_bytes(), groups);
    let capped = |row: usize| vectors[row].iter().map(|x| cpu::soft_cap(*x, cap)).collect();
    let expected = lay_out(&scene.expected(&vectors, capped), stride);
    // Which NaN it is, is not defined.
    let without_bits = |values: Vec<f32>| -> Vec<f32> {
        values.into_iter().map(|x| if x.is_nan() { f32::NAN } else { x }).collect()
    };
    (without_bits(device.floats(vector_va, expected.len())), without_bits(expected))
}

#[test]
fn soft_cap() {
    for scene in [SCENE, SCENE.odd(), ALL_ROWS, NO_ROWS, MANY_ROWS] {
        for count in [1usize, 256, 700] {
            let units = scene.rows * count.div_ceil(256);
            on_every_grid(&format!("{count} elements, {scene:?}"), units, |groups| {
                soft_cap_case(&scene, count, groups)
            });
        }
    }
}

/// The tests' own definition is the function that it stands for.
#[test]
fn a_soft_cap_is_a_hyperbolic_tangent() {
    for x in [0.0f32, 1e-8, 0.003, -0.7, 5.0, -29.0, 31.0, 90.0, -500.0, f32::INFINITY] {
        let exact = 30.0 * (f64::from(x) / 30.0).tanh();
        let found = f64::from(cpu::soft_cap(x, 30.0));
        assert!((found - exact).abs() < 4e-6, "{x}: {found}, {exact}");
    }
}

#[test]
fn copy() {
    for pieces in [1usize, 255, 256, 700] {
        let mut random = Random::new(pieces as u64);
        let source = random.reals(pieces * 4);
        let units = pieces.div_ceil(256);
        on_every_grid(&format!("{pieces} pieces"), units, |groups| {
            let mut device = Device::new(0);
            let destination_va = device.upload(&vec![PADDING; pieces * 4 + 4]);
            let block = params::Copy {
                // No step: nothing of it may be read.
                header: params::Copy::header(0, units as u32, RowSet::Once),
                source_va: device.upload(&source),
                destination_va,
                count: pieces as u32,
                reserved: 0,
            };
            device.run("copy", block.as_bytes(), groups);
            let expected = [source.as_slice(), &[PADDING; 4]].concat();
            (device.floats(destination_va, expected.len()), expected)
        });
    }
}

// ---------------------------------------------------------------------------------------------------- faults

fn differs((found, expected): (Vec<f32>, Vec<f32>)) -> bool {
    found.iter().map(|value| value.to_bits()).ne(expected.iter().map(|value| value.to_bits()))
}

/// The comparisons detect faults of the arithmetic: one constant wrong in its fifth digit, and an approximate
/// instruction that is not repaired.
#[test]
fn planted_faults_of_the_arithmetic_are_seen() {
    let case = SwigluCase { count: 1000, scene: ALL_ROWS, ..SWIGLU };
    assert!(!differs(case.results(2)));
    let change = Some([0x3E2A_AAAB, 0x3E2A_AA00]);
    assert!(differs(SwigluCase { change, ..case }.results(2)), "another C3");
    let case = SwigluCase { count: 1000, scene: ALL_ROWS, ..GEGLU };
    assert!(!differs(case.results(2)));
    let change = Some([0xBD92_2279, 0xBD92_2679]);
    assert!(differs(SwigluCase { change, ..case }.results(2)), "another C1 of GEGLU");
    const V_ADD_NC_U32_V6_V6_V7: u32 = 0x4A0C_0F06;
    const S_NOP_0: u32 = 0xBF80_0000;
    for bias in BIASES {
        let change = Some([V_ADD_NC_U32_V6_V6_V7, S_NOP_0]);
        let case = RmsNormCase { bias, change, ..RMS_NORM };
        let is_seen = differs(case.results(RowSet::EachActive, 1));
        assert_eq!(is_seen, bias != 0, "a square root without its correction, bias {bias}");
    }
}

/// The comparisons detect faults of the integers: a 127th of another number, and a segment stored where the one before
/// is.
#[test]
fn planted_faults_of_the_integers_are_seen() {
    const MINUS_127: u32 = 0xC2FE_0000;
    for limbs in [1, 2] {
        let norm = RmsNormCase { count: 1300, limbs, scene: ALL_ROWS, ..RMS_NORM };
        assert!(!differs(norm.results(RowSet::EachActive, 1)));
        // s_add_co_u32 s28, s28, 0x100 becomes s_add_co_u32 s28, s29, 0x100.
        for change in [[MINUS_127, MINUS_127 + 0x1000], [0x801C_FF1C, 0x801C_FF1D]] {
            let case = RmsNormCase { change: Some(change), ..norm.clone() };
            assert!(differs(case.results(RowSet::EachActive, 1)), "norm, {limbs} limbs, {change:#x?}");
        }
        let gate = SwigluCase { count: 1300, limbs, scene: ALL_ROWS, ..SWIGLU };
        assert!(!differs(gate.results(1)));
        let change = Some([MINUS_127, MINUS_127 + 0x1000]);
        assert!(differs(SwigluCase { change, ..gate }.results(1)), "gate, {limbs} limbs");
    }
}

/// The comparisons detect the use of a row that does not count, a row of another number, and a position of another row.
#[test]
fn planted_faults_of_the_rows_are_seen() {
    const S_CMP_EQ_U32_S3_S3: u32 = 0xBF06_0303;
    const S_BITCMP1_B64_S96_S3: u32 = 0xBF0F_0360;
    assert!(!differs(residual_add_case(&SCENE, 300, 3, None, Some(28))));
    let change = Some([S_BITCMP1_B64_S96_S3, S_CMP_EQ_U32_S3_S3]);
    assert!(differs(residual_add_case(&SCENE, 300, 3, change, Some(28))), "rows that do not count");

    const S_CMP_LG_U32_S20_2: u32 = 0xBF07_8214;
    const S_CMP_LG_U32_S20_9: u32 = 0xBF07_8914;
    let change = Some([S_CMP_LG_U32_S20_2, S_CMP_LG_U32_S20_9]);
    let case = RmsNormCase { change, ..RMS_NORM };
    assert!(differs(case.results(RowSet::EachOutput, 3)), "the output's number taken as its row");

    // Last dwords of the load of the position: offset in bits 31:8, address register below.
    let offset_of = |field: usize| ((core::mem::offset_of!(Step, row) + field) as u32) << 8 | 1;
    let change = Some([offset_of(core::mem::offset_of!(Row, position)), offset_of(size_of::<Row>() + 4)]);
    assert!(!differs(ROPE.results(3)));
    assert!(differs(RopeCase { change, ..ROPE }.results(3)), "the next row's position");
}
