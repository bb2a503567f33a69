//! Transformers in f64 over all positions at once, from the formulas of their papers: RMSNorm (Zhang, Sennrich 2019),
//! rotary embeddings (Su and others 2021), grouped queries (Ainslie and others 2023), gated units (Shazeer 2020).
//!
//! It knows the names of tensors and the sizes of `made`, and nothing of plans, orders of sums or caches.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.
#![allow(dead_code)] // Each test file uses a part.

use super::made::{Made, Pair, WIDTH};
use zrt_engine::gguf::TensorKind;

/// Tokens of a sequence.
pub const TOKENS: [u32; 9] = [3, 14, 1, 5, 9, 2, 6, 5, 3];
const HEAD: usize = 64;
/// Query heads that share a key head.
const GROUP: usize = 2;
const LAYERS: u32 = 2;
const EPSILON: f64 = 1e-5;
/// Width of the feed-forward layer: no power of two, and not the width.
const FEED_FORWARD: u64 = 288;

/// A vector for each position.
type Rows = Vec<Vec<f64>>;

/// A model and what its tensors do not say.
pub struct Textbook {
    pub name: &'static str,
    pub made: Made,
    /// Rotated elements of a head; pairs are neighbours, or elements half of that apart.
    rotary: usize,
    has_neighbours: bool,
    /// The window of each layer, and the base of its rotary embedding.
    layers: [(usize, f64); LAYERS as usize],
    embedding_scale: f64,
    logit_cap: Option<f64>,
    gate: fn(f64) -> f64,
}

/// Number of the greatest logit, the first of equal ones.
pub fn largest(logits: &[f32]) -> usize {
    (0..logits.len()).rev().max_by(|one, other| logits[*one].total_cmp(&logits[*other])).unwrap()
}

fn silu(x: f64) -> f64 {
    x / (1.0 + (-x).exp())
}

fn gelu(x: f64) -> f64 {
    0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
}

fn made(architecture: &'static str, kind: TensorKind) -> Made {
    Made::new(architecture, kind)
        .with("feed_forward_length", Pair::Number(FEED_FORWARD as u32))
        .shaped("blk.0.ffn_gate.weight", &[WIDTH, FEED_FORWARD])
        .shaped("blk.0.ffn_up.weight", &[WIDTH, FEED_FORWARD])
        .shaped("blk.0.ffn_down.weight", &[FEED_FORWARD, WIDTH])
        .with_layers(LAYERS)
}

fn of(name: &'static str, made: Made) -> Textbook {
    Textbook {
        name,
        made,
        rotary: HEAD,
        has_neighbours: false,
        layers: [(usize::MAX, 10_000.0); LAYERS as usize],
        embedding_scale: 1.0,
        logit_cap: None,
        gate: silu,
    }
}

/// Half of each head is rotated, and the output matrix is not the embedding.
pub fn llama(kind: TensorKind) -> Textbook {
    let made = made("llama", kind)
        .with("rope.dimension_count", Pair::Number(32))
        .with_matrix("output.weight", WIDTH, 16)
        .filled(1);
    Textbook { rotary: 32, has_neighbours: true, ..of("llama", made) }
}

/// Biases.
pub fn qwen2() -> Textbook {
    of("qwen2", made("qwen2", TensorKind::F32).filled(2))
}

/// Norms of heads.
pub fn qwen3() -> Textbook {
    of("qwen3", made("qwen3", TensorKind::F32).filled(3))
}

/// Norms of heads and behind each part, a window and its own rotary embedding in the first layer, a scaled embedding, a
/// soft cap, GELU.
pub fn gemma3(kind: TensorKind) -> Textbook {
    let made = made("gemma3", kind)
        .with("attention.sliding_window", Pair::Number(3))
        .with("attention.sliding_window_pattern", Pair::Number(2))
        .with("rope.freq_base_swa", Pair::Float(100.0))
        .with("rope.freq_base", Pair::Float(1000.0))
        .with("final_logit_softcapping", Pair::Float(2.0))
        .filled(4);
    Textbook {
        layers: [(3, 100.0), (usize::MAX, 1000.0)],
        embedding_scale: 16.0,
        logit_cap: Some(2.0),
        gate: gelu,
        ..of("gemma3", made)
    }
}

impl Textbook {
    /// The logits of each position.
    pub fn logits(&self, tokens: &[u32]) -> Rows {
        let mut hidden = self.embedded(tokens);
        for layer in 0..LAYERS as usize {
            let name = |part: &str| format!("blk.{layer}.{part}");
            let normed = self.norm(&hidden, &name("attn_norm"));
            let [mut query, mut key, value] =
                ["attn_q", "attn_k", "attn_v"].map(|part| self.product(&normed, &name(part)));
            for (heads, norm) in [(&mut query, "attn_q_norm"), (&mut key, "attn_k_norm")] {
                self.norm_heads(heads, &name(norm));
                self.rotate(heads, self.layers[layer].1);
            }
            let attended = attention(&query, &key, &value, self.layers[layer].0);
            let output = self.product(&attended, &name("attn_output"));
            add(&mut hidden, &self.norm_if_any(output, &name("post_attention_norm")));

            let normed = self.norm(&hidden, &name("ffn_norm"));
            let [mut gate, up] = ["ffn_gate", "ffn_up"].map(|part| self.product(&normed, &name(part)));
            for (gate, up) in gate.iter_mut().flatten().zip(up.iter().flatten()) {
                *gate = (self.gate)(*gate) * up;
            }
            let output = self.product(&gate, &name("ffn_down"));
            add(&mut hidden, &self.norm_if_any(output, &name("post_ffw_norm")));
        }
        let has_output = self.made.numbers("output.weight").is_some();
        let table = if has_output { "output" } else { "token_embd" };
        let mut logits = self.product(&self.norm(&hidden, "output_norm"), table);
        if let Some(cap) = self.logit_cap {
            logits.iter_mut().flatten().for_each(|logit| *logit = cap * (*logit / cap).tanh());
        }
        logits
    }

    fn embedded(&self, tokens: &[u32]) -> Rows {
        let table = self.made.numbers("token_embd.weight").unwrap();
        let row = |token: &u32| &table[*token as usize * WIDTH as usize..][..WIDTH as usize];
        tokens.iter().map(|token| row(token).iter().map(|x| x * self.embedding_scale).collect()).collect()
    }

    /// A matrix times each vector, and the bias if there is one.
    fn product(&self, rows: &Rows, name: &str) -> Rows {
        let matrix = self.made.numbers(&format!("{name}.weight")).unwrap();
        let bias = self.made.numbers(&format!("{name}.bias"));
        let of = |row: &Vec<f64>| {
            let products = matrix.chunks_exact(row.len()).enumerate().map(|(number, weights)| {
                let bias = bias.as_ref().map_or(0.0, |bias| bias[number]);
                weights.iter().zip(row).map(|(w, x)| w * x).sum::<f64>() + bias
            });
            products.collect()
        };
        rows.iter().map(of).collect()
    }

    fn norm(&self, rows: &Rows, name: &str) -> Rows {
        let weight = self.made.numbers(&format!("{name}.weight")).unwrap();
        rows.iter().map(|row| normed(row, &weight)).collect()
    }

    fn norm_if_any(&self, rows: Rows, name: &str) -> Rows {
        if self.made.numbers(&format!("{name}.weight")).is_some() { self.norm(&rows, name) } else { rows }
    }

    fn norm_heads(&self, rows: &mut Rows, name: &str) {
        let Some(weight) = self.made.numbers(&format!("{name}.weight")) else { return };
        for head in rows.iter_mut().flat_map(|row| row.chunks_exact_mut(HEAD)) {
            head.copy_from_slice(&normed(head, &weight));
        }
    }

    fn rotate(&self, rows: &mut Rows, base: f64) {
        for (position, row) in rows.iter_mut().enumerate() {
            for head in row.chunks_exact_mut(HEAD) {
                for pair in 0..self.rotary / 2 {
                    let angle = position as f64 * base.powf(-2.0 * pair as f64 / self.rotary as f64);
                    let (one, other) = match self.has_neighbours {
                        true => (2 * pair, 2 * pair + 1),
                        false => (pair, pair + self.rotary / 2),
                    };
                    let (a, b) = (head[one], head[other]);
                    head[one] = a * angle.cos() - b * angle.sin();
                    head[other] = a * angle.sin() + b * angle.cos();
                }
            }
        }
    }
}

fn normed(row: &[f64], weight: &[f64]) -> Vec<f64> {
    let mean = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
    row.iter().zip(weight).map(|(x, w)| x / (mean + EPSILON).sqrt() * w).collect()
}

fn add(rows: &mut Rows, addends: &Rows) {
    rows.iter_mut().flatten().zip(addends.iter().flatten()).for_each(|(x, y)| *x += y);
}

/// Softmax of the scores of the last `window` positions, times their values.
fn attention(query: &Rows, key: &Rows, value: &Rows, window: usize) -> Rows {
    let attend = |(position, query): (usize, &Vec<f64>)| -> Vec<f64> {
        let seen = (position + 1).saturating_sub(window)..=position;
        let of_head = |head: usize| -> Vec<f64> {
            let part = |row: &[f64], head: usize| row[head * HEAD..][..HEAD].to_vec();
            let query = part(query, head);
            let likely = seen.clone().map(|at| {
                let products = query.iter().zip(part(&key[at], head / GROUP)).map(|(q, k)| q * k);
                (products.sum::<f64>() / (HEAD as f64).sqrt()).exp()
            });
            let likely: Vec<f64> = likely.collect();
            let total: f64 = likely.iter().sum();
            let element = |at: usize| {
                let of = |(likely, row): (&f64, usize)| likely * value[row][head / GROUP * HEAD + at];
                likely.iter().zip(seen.clone()).map(of).sum::<f64>() / total
            };
            (0..HEAD).map(element).collect()
        };
        (0..query.len() / HEAD).flat_map(of_head).collect()
    };
    query.iter().enumerate().map(attend).collect()
}
