//! A small model of random weights in which every type of weight occurs: a file as it comes from outside, made in
//! memory.
//!
//! Contract: the same bytes for a seed on every machine. Its scales are chosen so that all weights are about as large
//! as those of a trained model; it says nothing worth reading.

use std::sync::Arc;
use zrt_engine::gguf::{Gguf, TensorKind};
use zrt_engine::model::Model;
use zrt_engine::weights::WEIGHT_KINDS;
use zrt_needs::Random;

/// A row is a whole block of every type.
const WIDTH: u64 = 256;
const HEAD_SIZE: u64 = 64;
/// Every type occurs: there are seven matrices in a layer, the embedding and the output.
const LAYERS: u64 = 3;
/// Tokens of the model.
pub const VOCABULARY: u64 = 320;
/// Positions that it may have.
const CONTEXT: u64 = 128;
const ALIGNMENT: usize = 32;
/// GGUF's numbers of value types.
const U32: u32 = 4;
const F32: u32 = 6;
const TEXT: u32 = 8;

/// A file under construction.
#[derive(Default)]
struct File {
    pairs: Vec<u8>,
    pair_count: u64,
    tensors: Vec<u8>,
    tensor_count: u64,
    data: Vec<u8>,
}

impl File {
    fn pair(&mut self, key: &str, value_type: u32, value: &[u8]) {
        put_text(&mut self.pairs, key);
        self.pairs.extend(value_type.to_le_bytes());
        self.pairs.extend(value);
        self.pair_count += 1;
    }

    fn number(&mut self, key: &str, value: u64) {
        self.pair(&format!("llama.{key}"), U32, &(value as u32).to_le_bytes());
    }

    fn tensor(&mut self, name: &str, kind: TensorKind, dimensions: &[u64], bytes: &[u8]) {
        put_text(&mut self.tensors, &format!("{name}.weight"));
        self.tensors.extend((dimensions.len() as u32).to_le_bytes());
        dimensions.iter().for_each(|dimension| self.tensors.extend(dimension.to_le_bytes()));
        self.tensors.extend(kind.id().to_le_bytes());
        self.tensors.extend((self.data.len() as u64).to_le_bytes());
        self.data.extend(bytes);
        self.data.resize(self.data.len().next_multiple_of(ALIGNMENT), 0);
        self.tensor_count += 1;
    }

    fn finish(self) -> Vec<u8> {
        let mut bytes = b"GGUF\x03\0\0\0".to_vec();
        bytes.extend(self.tensor_count.to_le_bytes());
        bytes.extend(self.pair_count.to_le_bytes());
        bytes.extend(self.pairs);
        bytes.extend(self.tensors);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes.extend(self.data);
        bytes
    }
}

fn put_text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text.as_bytes());
}

/// Where a block has its f16 scales and what they are, so that a weight is about 0.05.
fn scales(kind: TensorKind) -> &'static [(usize, f32)] {
    match kind {
        TensorKind::Q8_0 => &[(0, 0.0007)],
        TensorKind::Q4_0 => &[(0, 0.01)],
        TensorKind::Q4_1 => &[(0, 0.01), (2, -0.075)],
        TensorKind::Q5_0 => &[(0, 0.005)],
        TensorKind::Q5_1 => &[(0, 0.005), (2, -0.078)],
        TensorKind::IQ4_NL => &[(0, 0.0007)],
        TensorKind::Q2_K => &[(80, 0.006), (82, 0.009)],
        TensorKind::Q3_K => &[(108, 0.001)],
        TensorKind::Q4_K => &[(0, 0.0002), (2, 0.0016)],
        TensorKind::Q5_K => &[(0, 0.0001), (2, 0.0016)],
        TensorKind::Q6_K => &[(208, 0.00004)],
        TensorKind::IQ4_XS => &[(0, 0.00004)],
        TensorKind::IQ2_XXS | TensorKind::IQ2_XS | TensorKind::IQ2_S => &[(0, 0.001)],
        TensorKind::IQ3_XXS => &[(0, 0.0005)],
        TensorKind::IQ3_S => &[(0, 0.0005)],
        _ => &[],
    }
}

/// One block, or one element of a float type.
fn block(kind: TensorKind, random: &mut Random) -> Vec<u8> {
    let uniform = (f64::from(random.word()) / f64::from(u32::MAX) - 0.5) as f32 / 6.0;
    match kind {
        TensorKind::F32 => return uniform.to_le_bytes().to_vec(),
        TensorKind::F16 => return half::f16::from_f32(uniform).to_le_bytes().to_vec(),
        TensorKind::BF16 => return half::bf16::from_f32(uniform).to_le_bytes().to_vec(),
        _ => {}
    }
    let mut bytes: Vec<u8> = (0..kind.block_bytes()).map(|_| random.word() as u8).collect();
    for (at, scale) in scales(kind) {
        // Scales differ by up to a factor of three.
        let scale = half::f16::from_f32(scale * (1.0 + uniform * 6.0));
        bytes[*at..at + 2].copy_from_slice(&scale.to_le_bytes());
    }
    match kind {
        TensorKind::MXFP4 => bytes[0] = 121 + (bytes[0] & 1),
        TensorKind::INT8 => bytes[..4].copy_from_slice(&(0.0007 * (1.0 + uniform * 6.0)).to_le_bytes()),
        TensorKind::FP8 => {
            bytes[..4].copy_from_slice(&(0.0007 * (1.0 + uniform * 6.0)).to_le_bytes());
            // All but NaN.
            bytes[4..].iter_mut().filter(|code| **code & 0x7f == 0x7f).for_each(|code| *code -= 1);
        }
        _ => {}
    }
    bytes
}

/// The model; `first`: which of the types the embedding has, the others follow in their order.
pub fn mixed_model(first: usize) -> Model {
    model(mixed_file(first, WIDTH, LAYERS))
}

/// A model whose matrices have these types in turn.
pub fn model_of(kinds: &[TensorKind]) -> Model {
    model(file(kinds.iter().copied().cycle(), 1, WIDTH, LAYERS))
}

fn model(file: Vec<u8>) -> Model {
    let gguf = Gguf::from_bytes(file).unwrap_or_else(|error| panic!("a mixed model: {error}"));
    Model::load(Arc::new(gguf)).unwrap_or_else(|error| panic!("a mixed model: {error}"))
}

/// The file of such a model with rows of `width` elements, a multiple of 256, and so many layers.
pub fn mixed_file(first: usize, width: u64, layers: u64) -> Vec<u8> {
    file(WEIGHT_KINDS.into_iter().cycle().skip(first), first as u64 + 1, width, layers)
}

fn file(mut kinds: impl Iterator<Item = TensorKind>, seed: u64, width: u64, layers: u64) -> Vec<u8> {
    let mut file = File::default();
    let mut architecture = Vec::new();
    put_text(&mut architecture, "llama");
    file.pair("general.architecture", TEXT, &architecture);
    for (key, value) in [
        ("embedding_length", width),
        ("attention.head_count", width / HEAD_SIZE),
        ("attention.head_count_kv", width / HEAD_SIZE / 2),
        ("block_count", layers),
        ("feed_forward_length", width),
        ("context_length", CONTEXT),
    ] {
        file.number(key, value);
    }
    file.pair("llama.attention.layer_norm_rms_epsilon", F32, &1e-5f32.to_le_bytes());
    let mut random = Random::new(seed);
    let mut matrix = |file: &mut File, name: &str, rows: u64| {
        let kind = kinds.next().unwrap_or(TensorKind::F32);
        let count = rows * width / kind.block_elements();
        let bytes: Vec<u8> = (0..count).flat_map(|_| block(kind, &mut random)).collect();
        file.tensor(name, kind, &[width, rows], &bytes);
    };
    let norm = |file: &mut File, name: &str| {
        file.tensor(name, TensorKind::F32, &[width], &1f32.to_le_bytes().repeat(width as usize));
    };
    matrix(&mut file, "token_embd", VOCABULARY);
    matrix(&mut file, "output", VOCABULARY);
    norm(&mut file, "output_norm");
    for layer in 0..layers {
        let of = |name: &str| format!("blk.{layer}.{name}");
        for (name, rows) in [
            ("attn_q", width),
            ("attn_k", width / 2),
            ("attn_v", width / 2),
            ("attn_output", width),
            ("ffn_gate", width),
            ("ffn_up", width),
            ("ffn_down", width),
        ] {
            matrix(&mut file, &of(name), rows);
        }
        norm(&mut file, &of("attn_norm"));
        norm(&mut file, &of("ffn_norm"));
    }
    file.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_asm::source::fingerprint;
    use zrt_engine::oracle::Oracle;
    use zrt_engine::weights::{WeightClass, WeightId};

    #[test]
    fn weights_of_every_type_are_as_large_as_trained_ones() {
        for kind in WEIGHT_KINDS {
            let mut oracle = Oracle::new(&model_of(&[kind]), 16).expect("the oracle takes the model");
            let output = WeightId { class: WeightClass::Output, layer: 0 };
            let weights = oracle.weight_mut(output).expect("a matrix");
            let squares: f64 = weights.iter().map(|weight| f64::from(*weight).powi(2)).sum();
            let root_mean_square = (squares / weights.len() as f64).sqrt();
            assert!((0.04..0.1).contains(&root_mean_square), "{kind:?}: {root_mean_square}");
        }
    }

    /// What a case finds is found again only as long as a seed gives the same model. A change that is meant changes
    /// these numbers, too.
    #[test]
    fn a_seed_gives_the_same_file() {
        assert_eq!(
            [fingerprint(&mixed_file(0, WIDTH, LAYERS)), fingerprint(&mixed_file(3, 512, 1))],
            [0xffa8_dcae_0b22_ccf5, 0x380d_eae8_064b_c28d]
        );
    }
}
