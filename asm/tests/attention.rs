//! ATTENTION and KV_WRITE on the virtual device's shader engine against a separate computation, bit for bit.

mod support;

use support::harness::Device;
use support::reference as cpu;
use support::weights::{self, Format, Random};
use support::{BIASES, assert_same, planes, step};
use zerocopy::IntoBytes;
use zrt_asm::params::{self, RowSet};

// --------------------------------------------------------------------------------------------------------- attention

struct AttentionCase {
    heads: usize,
    kv_heads: usize,
    head_size: usize,
    position: usize,
}

fn check_attention(case: &AttentionCase, bias: i32) {
    let AttentionCase { heads, kv_heads, head_size, position } = *case;
    let row = kv_heads * head_size;
    let mut random = Random::new((head_size * 1000 + position) as u64);
    let query: Vec<f32> = random.reals(heads * head_size).iter().map(|value| value * 4.0).collect();
    let keys: Vec<f32> = random.reals((position + 1) * row).iter().map(|value| value * 4.0).collect();
    let values = random.reals((position + 1) * row);
    let scale = (1.0 / (head_size as f64).sqrt()) as f32;

    let mut device = Device::new(bias);
    let output_va = device.allocate(heads * head_size * 4);
    let block = params::Attention {
        header: params::Attention::HEADER,
        state_va: state(&mut device, position as u32),
        query_va: device.upload(&query),
        key_cache_va: device.upload(&keys),
        value_cache_va: device.upload(&values),
        output_va,
        head_size: head_size as u32,
        row_elements: row as u32,
        group_size: (heads / kv_heads) as u32,
        scale: scale.to_bits(),
    };
    device.run("attention", block.as_bytes(), heads as u32);
    let mut expected = Vec::new();
    for head in 0..heads {
        let from = head / (heads / kv_heads) * head_size;
        let part = |cache: &'_ [f32]| -> Vec<Vec<f32>> {
            cache.chunks(row).map(|row| row[from..from + head_size].to_vec()).collect()
        };
        let (keys, values) = (part(&keys), part(&values));
        let keys: Vec<&[f32]> = keys.iter().map(Vec::as_slice).collect();
        let values: Vec<&[f32]> = values.iter().map(Vec::as_slice).collect();
        let q = &query[head * head_size..(head + 1) * head_size];
        expected.extend(cpu::attention(q, &keys, &values, scale));
    }
    let what = format!("{heads} heads over {kv_heads} of {head_size}, position {position}, bias {bias}");
    assert_same(&what, &device.floats(output_va, expected.len()), &expected);
}

#[test]
fn attention_over_positions() {
    for position in [0, 1, 6, 7, 8, 30, 31, 32, 33, 63, 95, 96, 127, 128, 130, 159, 160, 300] {
        check_attention(&AttentionCase { heads: 4, kv_heads: 2, head_size: 64, position }, 0);
        check_attention(&AttentionCase { heads: 8, kv_heads: 4, head_size: 8, position }, 0);
    }
}

#[test]
fn attention_over_shapes() {
    for bias in BIASES {
        for head_size in [4, 8, 20, 32, 36, 64, 80, 96, 128, 132, 192, 256] {
            check_attention(&AttentionCase { heads: 2, kv_heads: 1, head_size, position: 170 }, bias);
        }
        for (heads, kv_heads) in [(1, 1), (3, 3), (6, 2), (14, 2), (21, 3)] {
            check_attention(&AttentionCase { heads, kv_heads, head_size: 12, position: 45 }, bias);
        }
    }
}

/// Scores so far apart that later tiles scale earlier ones to almost nothing and back.
#[test]
fn attention_with_scores_far_apart() {
    let (head_size, position) = (8usize, 260usize);
    let mut random = Random::new(77);
    let query = vec![8.0f32; head_size];
    let keys: Vec<f32> = (0..=position)
        .flat_map(|j| vec![if j % 37 == 5 { 30.0 } else { -20.0 } + j as f32 / 16.0; head_size])
        .collect();
    let values = random.reals((position + 1) * head_size);
    let mut device = Device::new(1);
    let output_va = device.allocate(head_size * 4);
    let block = params::Attention {
        header: params::Attention::HEADER,
        state_va: state(&mut device, position as u32),
        query_va: device.upload(&query),
        key_cache_va: device.upload(&keys),
        value_cache_va: device.upload(&values),
        output_va,
        head_size: head_size as u32,
        row_elements: head_size as u32,
        group_size: 1,
        scale: 0.5f32.to_bits(),
    };
    device.run("attention", block.as_bytes(), 1);
    let keys: Vec<&[f32]> = keys.chunks(head_size).collect();
    let values: Vec<&[f32]> = values.chunks(head_size).collect();
    let expected = cpu::attention(&query, &keys, &values, 0.5);
    assert_same("scores far apart", &device.floats(output_va, head_size), &expected);
}

#[test]
fn kv_write() {
    for row in [8usize, 128, 256, 600] {
        let position = 3;
        let mut random = Random::new(row as u64);
        let (key, value) = (random.reals(row), random.reals(row));
        let before = random.reals(5 * row);
        let mut device = Device::new(0);
        let (key_cache_va, value_cache_va) = (device.upload(&before), device.upload(&before));
        let block = params::KvWrite {
            header: params::KvWrite::HEADER,
            state_va: state(&mut device, position as u32),
            key_va: device.upload(&key),
            value_va: device.upload(&value),
            key_cache_va,
            value_cache_va,
            row_elements: row as u32,
            reserved: 0,
        };
        device.run("kv_write", block.as_bytes(), (row as u32).div_ceil(256));
        for (address, written) in [(key_cache_va, &key), (value_cache_va, &value)] {
            let mut expected = before.clone();
            expected[position * row..(position + 1) * row].copy_from_slice(written);
            assert_same(&format!("row of {row}"), &device.floats(address, 5 * row), &expected);
        }
    }
}
