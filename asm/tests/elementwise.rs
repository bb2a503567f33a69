//! Norms, rotary embedding, gate, addition, copy on the virtual device's shader engine against a separate computation, bit for bit.

mod support;

use support::harness::Device;
use support::reference as cpu;
use support::weights::{self, Format, Random};
use support::{BIASES, assert_same, planes, step};
use zerocopy::IntoBytes;
use zrt_asm::params::{self, RowSet};

// ------------------------------------------------------------------------------------------------------------- norms

/// Results and expected values of RMS_NORM, optionally with a dword of the code changed.
fn rms_norm_case(count: usize, bias: i32, in_place: bool, change: Option<[u32; 2]>) -> (Vec<f32>, Vec<f32>) {
    let mut random = Random::new(count as u64);
    let (x, weight) = (random.reals(count), random.reals(count));
    let mut device = Device::new(bias);
    let input_va = device.upload(&x);
    let output_va = if in_place { input_va } else { device.allocate(count * 4) };
    let block = params::RmsNorm {
        header: params::RmsNorm::HEADER,
        input_va,
        weight_va: device.upload(&weight),
        output_va,
        count: count as u32,
        inverse_count: ((1.0 / count as f64) as f32).to_bits(),
        epsilon: 1e-5f32.to_bits(),
        reserved: 0,
    };
    match change {
        None => device.run("rms_norm", block.as_bytes(), 1),
        Some(change) => device.run_changed("rms_norm", change, block.as_bytes(), 1),
    }
    (device.floats(output_va, count), cpu::rms_norm(&x, &weight, 1e-5, 256))
}

#[test]
fn rms_norm() {
    for bias in BIASES {
        for count in [4, 64, 172, 256, 300, 768, 1024, 1028, 4100] {
            for in_place in [false, true] {
                let (found, expected) = rms_norm_case(count, bias, in_place, None);
                assert_same(&format!("{count} elements, bias {bias}"), &found, &expected);
            }
        }
    }
}

/// Tiny inputs reach the scaled branch of the square root; large ones the other end.
#[test]
fn rms_norm_far_from_one() {
    for bias in BIASES {
        for factor in [1e-18f32, 1e-12, 1e12] {
            let mut random = Random::new(11);
            let x: Vec<f32> = random.reals(256).iter().map(|value| value * factor).collect();
            let weight = random.reals(256);
            let mut device = Device::new(bias);
            let vector_va = device.upload(&x);
            let block = params::RmsNorm {
                header: params::RmsNorm::HEADER,
                input_va: vector_va,
                weight_va: device.upload(&weight),
                output_va: vector_va,
                count: 256,
                inverse_count: (1.0f32 / 256.0).to_bits(),
                epsilon: 0,
                reserved: 0,
            };
            device.run("rms_norm", block.as_bytes(), 1);
            let expected = cpu::rms_norm(&x, &weight, 0.0, 256);
            assert_same(&format!("factor {factor:e}"), &device.floats(vector_va, 256), &expected);
        }
    }
}

#[test]
fn qk_norm() {
    for bias in BIASES {
        for head_size in [8, 32, 48, 64, 128, 256] {
            let heads = 3;
            let mut random = Random::new(head_size as u64);
            let (x, weight) = (random.reals(heads * head_size), random.reals(head_size));
            let mut device = Device::new(bias);
            let vector_va = device.upload(&x);
            let block = params::QkNorm {
                header: params::QkNorm::HEADER,
                vector_va,
                weight_va: device.upload(&weight),
                head_size: head_size as u32,
                inverse_head_size: ((1.0 / head_size as f64) as f32).to_bits(),
                epsilon: 1e-6f32.to_bits(),
                reserved: 0,
            };
            device.run("qk_norm", block.as_bytes(), heads as u32);
            let expected: Vec<f32> =
                x.chunks(head_size).flat_map(|head| cpu::rms_norm(head, &weight, 1e-6, 32)).collect();
            assert_same(&format!("head size {head_size}"), &device.floats(vector_va, x.len()), &expected);
        }
    }
}

// -------------------------------------------------------------------------------------------------------------- rope

fn check_rope(interleaved: bool, head_size: usize, rotary_dimensions: usize) {
    let (heads, context, position) = (3, 6, 4);
    let pairs = rotary_dimensions / 2;
    let mut random = Random::new(head_size as u64);
    let x = random.reals(heads * head_size);
    let table: Vec<[f32; 2]> = (0..context * pairs).map(|_| [random.real(), random.real()]).collect();
    let mut device = Device::new(0);
    let vector_va = device.upload(&x);
    let block = params::Rope {
        header: params::Rope::HEADER,
        state_va: state(&mut device, position as u32),
        vector_va,
        table_va: device.upload(&table),
        head_size: head_size as u32,
        rotary_dimensions: rotary_dimensions as u32,
    };
    device.run(if interleaved { "rope_interleaved" } else { "rope_halves" }, block.as_bytes(), heads as u32);
    let mut expected = x;
    for head in expected.chunks_mut(head_size) {
        cpu::rope(head, &table[position * pairs..(position + 1) * pairs], interleaved);
    }
    let what = format!("head size {head_size}, {rotary_dimensions} rotated, interleaved {interleaved}");
    assert_same(&what, &device.floats(vector_va, expected.len()), &expected);
}

#[test]
fn rope_in_both_layouts() {
    for interleaved in [false, true] {
        for (head_size, rotary_dimensions) in [(8, 8), (64, 64), (64, 32), (80, 20), (128, 128), (256, 256)] {
            check_rope(interleaved, head_size, rotary_dimensions);
        }
    }
}

fn swiglu_case(count: usize, bias: i32, change: Option<[u32; 2]>) -> (Vec<f32>, Vec<f32>) {
    let mut random = Random::new(count as u64);
    let mut gate: Vec<f32> = random.reals(count).iter().map(|value| value * 20.0).collect();
    gate[..4].copy_from_slice(&[0.0, -100.0, 100.0, -0.0]);
    let up = random.reals(count);
    let mut device = Device::new(bias);
    let gate_va = device.upload(&gate);
    let block = params::SwiGlu {
        header: params::SwiGlu::HEADER,
        gate_va,
        up_va: device.upload(&up),
        output_va: gate_va,
        count: count as u32,
        reserved: 0,
    };
    let groups = (count as u32).div_ceil(256);
    match change {
        None => device.run("swiglu", block.as_bytes(), groups),
        Some(change) => device.run_changed("swiglu", change, block.as_bytes(), groups),
    }
    let expected = gate.iter().zip(&up).map(|(gate, up)| cpu::swiglu(*gate, *up)).collect();
    (device.floats(gate_va, count), expected)
}

#[test]
fn swiglu() {
    for bias in BIASES {
        for count in [4usize, 172, 256, 768, 1000] {
            let (found, expected) = swiglu_case(count, bias, None);
            assert_same(&format!("{count} elements, bias {bias}"), &found, &expected);
        }
    }
}

/// The comparisons see faults: one constant wrong in its fifth digit, and an approximate instruction that is not repaired.
#[test]
fn planted_faults_are_seen() {
    let (found, expected) = swiglu_case(1000, 0, Some([0x3E2A_AAAB, 0x3E2A_AA00]));
    assert!(found != expected, "another C3");
    const V_ADD_NC_U32_V6_V6_V7: u32 = 0x4A0C_0F06;
    const S_NOP_0: u32 = 0xBF80_0000;
    for bias in BIASES {
        let (found, expected) = rms_norm_case(256, bias, false, Some([V_ADD_NC_U32_V6_V6_V7, S_NOP_0]));
        assert_eq!(found == expected, bias == 0, "a square root without its correction, bias {bias}");
    }
}

#[test]
fn residual_add() {
    for count in [1usize, 64, 256, 1000] {
        let mut random = Random::new(count as u64);
        let (hidden, addend) = (random.reals(count), random.reals(count));
        let mut device = Device::new(0);
        let hidden_va = device.upload(&hidden);
        let block = params::ResidualAdd {
            header: params::ResidualAdd::HEADER,
            hidden_va,
            addend_va: device.upload(&addend),
            count: count as u32,
            reserved: 0,
        };
        device.run("residual_add", block.as_bytes(), (count as u32).div_ceil(256));
        let expected: Vec<f32> = hidden.iter().zip(&addend).map(|(a, b)| a + b).collect();
        assert_same(&format!("{count} elements"), &device.floats(hidden_va, count), &expected);
    }
}

#[test]
fn copy() {
    for units in [1usize, 255, 256, 700] {
        let mut random = Random::new(units as u64);
        let source = random.reals(units * 4);
        let mut device = Device::new(0);
        let destination_va = device.upload(&vec![-1.0f32; units * 4 + 4]);
        let block = params::Copy {
            header: params::Copy::HEADER,
            source_va: device.upload(&source),
            destination_va,
            count: units as u32,
            reserved: 0,
        };
        device.run("copy", block.as_bytes(), (units as u32).div_ceil(256));
        let expected = [source.as_slice(), &[-1.0; 4]].concat();
        assert_same(&format!("{units} units"), &device.floats(destination_va, expected.len()), &expected);
    }
}
