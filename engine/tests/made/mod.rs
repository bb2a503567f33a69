//! GGUF files of one layer that tests make: any architecture, type of matrix, further keys and tensors; zeros for data.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.
#![allow(dead_code)] // Each test file uses a part.

use std::sync::Arc;
use zrt_engine::gguf::{Gguf, TensorKind};
use zrt_engine::model::Model;
use zrt_engine::model_error::ModelError;
use zrt_needs::Random;

/// Width, heads, heads of keys and values, rows of the embedding; a row is a whole block of every type.
pub const WIDTH: u64 = 256;
const HEADS: u64 = 4;
const KV_HEADS: u64 = 2;
const VOCABULARY: u64 = 16;
/// GGUF's numbers of value types.
const U32: u32 = 4;
const F32: u32 = 6;
pub const TEXT: u32 = 8;

/// A value of a key.
pub enum Pair {
    Number(u32),
    Float(f32),
    Text(&'static str),
}

/// A file to be made.
pub struct Made {
    architecture: &'static str,
    kind: TensorKind,
    pairs: Vec<(&'static str, Pair)>,
    tensors: Vec<Tensor>,
}

/// A tensor of a file; what its data lack is zeros.
#[derive(Clone)]
struct Tensor {
    name: String,
    dimensions: Vec<u64>,
    kind: TensorKind,
    data: Vec<u8>,
}

/// Writes text with its length before it.
pub fn put_text(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

pub fn put_pair(file: &mut Vec<u8>, key: &str, value_type: u32, value: &[u8]) {
    put_text(file, key);
    file.extend(value_type.to_le_bytes());
    file.extend(value);
}

impl Made {
    /// What a layer of the architecture has.
    pub fn new(architecture: &'static str, kind: TensorKind) -> Made {
        let head = WIDTH / HEADS;
        let matrices = [
            ("token_embd.weight", WIDTH, VOCABULARY),
            ("blk.0.attn_q.weight", WIDTH, WIDTH),
            ("blk.0.attn_k.weight", WIDTH, head * KV_HEADS),
            ("blk.0.attn_v.weight", WIDTH, head * KV_HEADS),
            ("blk.0.attn_output.weight", WIDTH, WIDTH),
            ("blk.0.ffn_gate.weight", WIDTH, WIDTH),
            ("blk.0.ffn_up.weight", WIDTH, WIDTH),
            ("blk.0.ffn_down.weight", WIDTH, WIDTH),
        ];
        let mut vectors = vec![
            ("blk.0.attn_norm.weight", WIDTH),
            ("blk.0.ffn_norm.weight", WIDTH),
            ("output_norm.weight", WIDTH),
        ];
        if ["qwen3", "gemma3"].contains(&architecture) {
            vectors.extend([("blk.0.attn_q_norm.weight", head), ("blk.0.attn_k_norm.weight", head)]);
        }
        if architecture == "gemma3" {
            vectors
                .extend([("blk.0.post_attention_norm.weight", WIDTH), ("blk.0.post_ffw_norm.weight", WIDTH)]);
        }
        if architecture == "qwen2" {
            let few = head * KV_HEADS;
            vectors.extend([
                ("blk.0.attn_q.bias", WIDTH),
                ("blk.0.attn_k.bias", few),
                ("blk.0.attn_v.bias", few),
            ]);
        }
        let pairs = vec![
            ("embedding_length", Pair::Number(WIDTH as u32)),
            ("attention.head_count", Pair::Number(HEADS as u32)),
            ("attention.head_count_kv", Pair::Number(KV_HEADS as u32)),
            ("block_count", Pair::Number(1)),
            ("feed_forward_length", Pair::Number(WIDTH as u32)),
            ("context_length", Pair::Number(64)),
            ("attention.layer_norm_rms_epsilon", Pair::Float(1e-5)),
        ];
        let mut made = Made { architecture, kind, pairs, tensors: Vec::new() };
        for (name, columns, rows) in matrices {
            made.put(name, vec![columns, rows], made.kind, &[]);
        }
        for (name, elements) in vectors {
            made.put(name, vec![elements], TensorKind::F32, &[]);
        }
        made
    }

    /// With this key, after the architecture's name; in place of one that is there.
    pub fn with(mut self, key: &'static str, value: Pair) -> Made {
        self.pairs.retain(|(other, _)| *other != key);
        self.pairs.push((key, value));
        self
    }

    /// With this vector.
    pub fn with_vector(mut self, name: &str, values: &[f32]) -> Made {
        self.put(name, vec![values.len() as u64], TensorKind::F32, values);
        self
    }

    fn put(&mut self, name: &str, dimensions: Vec<u64>, kind: TensorKind, values: &[f32]) {
        let data = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.tensors.push(Tensor { name: name.into(), dimensions, kind, data });
    }

    /// With random numbers in every tensor, of F32 or Q8_0: matrices keep vectors about as long as they are, and no two
    /// elements of a norm are alike.
    pub fn filled(mut self, seed: u64) -> Made {
        let mut random = Random::new(seed);
        for Tensor { dimensions, kind, data, .. } in &mut self.tensors {
            let count = dimensions.iter().product::<u64>() / kind.block_elements();
            let is_matrix = dimensions.len() > 1;
            *data = match (*kind, is_matrix) {
                (TensorKind::Q8_0, _) => (0..count).flat_map(|_| block_of_q8_0(&mut random)).collect(),
                (_, true) => floats(&mut random, count, -0.11, 0.11),
                (_, false) => floats(&mut random, count, 0.5, 1.5),
            };
        }
        self
    }

    /// What the weights of a tensor of F32 or Q8_0 are; `None`: there is none of this name.
    pub fn numbers(&self, name: &str) -> Option<Vec<f64>> {
        let Tensor { kind, data, .. } = self.tensors.iter().find(|tensor| tensor.name == name)?;
        Some(match kind {
            TensorKind::Q8_0 => data.chunks_exact(34).flat_map(numbers_of_q8_0).collect(),
            _ => data.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes).into()).collect(),
        })
    }

    /// With a matrix of zeros.
    pub fn with_matrix(mut self, name: &str, columns: u64, rows: u64) -> Made {
        self.put(name, vec![columns, rows], self.kind, &[]);
        self
    }

    /// With so many layers that are like the first.
    pub fn with_layers(mut self, count: u32) -> Made {
        let first: Vec<Tensor> =
            self.tensors.iter().filter(|tensor| tensor.name.starts_with("blk.0.")).cloned().collect();
        for (layer, tensor) in (1..count).flat_map(|layer| first.iter().map(move |tensor| (layer, tensor))) {
            let name = tensor.name.replacen("blk.0.", &format!("blk.{layer}."), 1);
            self.tensors.push(Tensor { name, ..tensor.clone() });
        }
        self.with("block_count", Pair::Number(count))
    }

    /// Without this tensor.
    pub fn without(mut self, name: &str) -> Made {
        self.tensors.retain(|tensor| tensor.name != name);
        self
    }

    /// The shape of a tensor, columns first.
    pub fn shaped(mut self, name: &str, dimensions: &[u64]) -> Made {
        let tensor = self.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap();
        tensor.dimensions = dimensions.to_vec();
        self
    }

    /// The type of a tensor.
    pub fn of_kind(mut self, name: &str, kind: TensorKind) -> Made {
        self.tensors.iter_mut().find(|tensor| tensor.name == name).unwrap().kind = kind;
        self
    }

    pub fn load(&self) -> Result<Model, ModelError> {
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend((self.tensors.len() as u64).to_le_bytes());
        file.extend((self.pairs.len() as u64 + 1).to_le_bytes());
        let mut text = Vec::new();
        put_text(&mut text, self.architecture);
        put_pair(&mut file, "general.architecture", TEXT, &text);
        for (key, value) in &self.pairs {
            let key = format!("{}.{key}", self.architecture);
            match value {
                Pair::Number(number) => put_pair(&mut file, &key, U32, &number.to_le_bytes()),
                Pair::Float(float) => put_pair(&mut file, &key, F32, &float.to_le_bytes()),
                Pair::Text(value) => {
                    text.clear();
                    put_text(&mut text, value);
                    put_pair(&mut file, &key, TEXT, &text);
                }
            }
        }
        let mut data = Vec::new();
        for Tensor { name, dimensions, kind, data: own } in &self.tensors {
            put_text(&mut file, name);
            file.extend((dimensions.len() as u32).to_le_bytes());
            dimensions.iter().for_each(|dimension| file.extend(dimension.to_le_bytes()));
            file.extend(kind.id().to_le_bytes());
            file.extend((data.len() as u64).to_le_bytes());
            let elements: u64 = dimensions.iter().product();
            let end = data.len() + (elements / kind.block_elements() * kind.block_bytes()) as usize;
            data.extend(own);
            data.resize(end.next_multiple_of(32), 0);
        }
        file.resize(file.len().next_multiple_of(32), 0);
        file.extend(data);
        Model::load(Arc::new(Gguf::from_bytes(file).unwrap()))
    }
}

fn floats(random: &mut Random, count: u64, low: f32, high: f32) -> Vec<u8> {
    let share = |random: &mut Random| (random.word() >> 8) as f32 / (1 << 24) as f32;
    (0..count).flat_map(|_| (low + (high - low) * share(random)).to_le_bytes()).collect()
}

/// A scale from 2^-11 to 2^-10 as f16, and 32 integers.
fn block_of_q8_0(random: &mut Random) -> Vec<u8> {
    let scale = 0x1000 | (random.word() & 0x3ff) as u16;
    let integers = (0..32).map(|_| random.word() as u8);
    scale.to_le_bytes().into_iter().chain(integers).collect()
}

fn numbers_of_q8_0(block: &[u8]) -> Vec<f64> {
    // Of such a scale the exponent is -11.
    let mantissa = u16::from_le_bytes([block[0], block[1]]) & 0x3ff;
    let scale = (1.0 + f64::from(mantissa) / 1024.0) / 2048.0;
    block[2..].iter().map(|integer| f64::from(*integer as i8) * scale).collect()
}
