//! `qwen2`: a layer of `llama` with a bias on query, key and value; Qwen2 and Qwen2.5 are stored under this name.

use super::step::Step;
use crate::graph::ValueId;
use crate::weights::WeightClass;

/// Appends a layer.
pub(super) fn layer(step: &mut Step<'_>, hidden: ValueId) {
    let normed = step.norm(hidden, WeightClass::AttentionNorm);
    let [query, key, value] = step.query_key_value(normed);
    step.bias_add(query, WeightClass::QueryBias);
    step.bias_add(key, WeightClass::KeyBias);
    step.bias_add(value, WeightClass::ValueBias);
    let attended = step.attention(query, key, value);
    let output = step.attention_output(attended);
    step.residual_add(hidden, output);

    let normed = step.norm(hidden, WeightClass::FeedForwardNorm);
    let (gate, up) = step.gate_up(normed);
    let gated = step.swiglu(gate, up);
    let output = step.down(gated);
    step.residual_add(hidden, output);
}
