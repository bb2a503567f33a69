//! `llama`: the plain decoder layer. Llama 1 to 3, Mistral, SmolLM and others are stored under this name.

use super::step::Step;
use crate::graph::ValueId;
use crate::weights::WeightClass;

/// Appends a layer.
pub(super) fn layer(step: &mut Step<'_>, hidden: ValueId) {
    let normed = step.norm(hidden, WeightClass::AttentionNorm);
    let [query, key, value] = step.query_key_value(normed);
    let attended = step.attention(query, key, value);
    let output = step.attention_output(attended);
    step.residual_add(hidden, output);

    let normed = step.norm(hidden, WeightClass::FeedForwardNorm);
    let (gate, up) = step.gate_up(normed);
    let gated = step.swiglu(gate, up);
    let output = step.down(gated);
    step.residual_add(hidden, output);
}
