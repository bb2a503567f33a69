//! `qwen3`: a layer of `llama` with an RMS norm of each query and key head before the rotary embedding.

use super::step::Step;
use crate::graph::ValueId;
use crate::weights::WeightClass;

/// Appends a layer.
pub(super) fn layer(step: &mut Step<'_>, hidden: ValueId) {
    let normed = step.norm(hidden, WeightClass::AttentionNorm);
    let [query, key, value] = step.query_key_value(normed);
    step.head_norm(query, WeightClass::QueryNorm);
    step.head_norm(key, WeightClass::KeyNorm);
    let attended = step.attention(query, key, value);
    let output = step.attention_output(attended);
    step.residual_add(hidden, output);

    let normed = step.norm(hidden, WeightClass::FeedForwardNorm);
    let (gate, up) = step.gate_up(normed);
    let gated = step.swiglu(gate, up);
    let output = step.down(gated);
    step.residual_add(hidden, output);
}
