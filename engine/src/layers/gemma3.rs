//! `gemma3`: norms before and after attention and feed-forward layer, a norm of heads, the tanh form of GELU as gate,
//! an embedding scaled by the root of the width, and attention over a window in most layers.

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
    let normed = step.norm(output, WeightClass::AttentionPostNorm);
    step.residual_add(hidden, normed);

    let normed = step.norm(hidden, WeightClass::FeedForwardNorm);
    let (gate, up) = step.gate_up(normed);
    let gated = step.geglu(gate, up);
    let output = step.down(gated);
    let normed = step.norm(output, WeightClass::FeedForwardPostNorm);
    step.residual_add(hidden, normed);
}
