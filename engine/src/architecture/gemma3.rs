//! `gemma3`: norms before and after attention and feed-forward layer, a norm of heads, the tanh form of GELU as gate,
//! an embedding scaled by the root of the width, and attention over a window in most layers.

use super::step::Step;
use crate::graph::ValueId;
use crate::model::WeightClass;

/// What a layer has besides the tensors of every architecture.
pub(super) const CLASSES: &[WeightClass] = &[
    WeightClass::QueryNorm,
    WeightClass::KeyNorm,
    WeightClass::AttentionPostNorm,
    WeightClass::FeedForwardPostNorm,
];

/// One layer of so many has full attention, if the file does not say: llama.cpp's default.
pub(crate) const PERIOD: u32 = 6;

/// The layers of Gemma 3 27B, whose scores are scaled by the width of a head that its heads do not have. The format has
/// no key for it: llama.cpp goes by the number of layers.
const LAYERS_WITH_WIDE_SCALE: u32 = 62;

/// The head size whose root divides the scores.
pub(crate) fn scale_size(layers: u32, width: u32, heads: u32, head_size: u32) -> f64 {
    if layers == LAYERS_WITH_WIDE_SCALE { f64::from(width) / f64::from(heads) } else { f64::from(head_size) }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    /// The published sizes of 12B and 27B: heads of 256 and 128, and a scale of 1/sqrt(256) and 1/sqrt(5376/32).
    #[test]
    fn the_largest_model_scales_by_another_size() {
        assert_eq!(scale_size(48, 3840, 16, 256), 256.0);
        assert_eq!(scale_size(62, 5376, 32, 128), 168.0);
    }
}
