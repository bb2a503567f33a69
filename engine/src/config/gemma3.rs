//! What the metadata of `gemma3` leave unsaid: the period of its windows, and the size by which scores are scaled.
//!
//! Contract: as llama.cpp has it, whose converters write the files.

/// One layer of so many has full attention, if the file does not say: llama.cpp's default.
pub(crate) const PERIOD: u32 = 6;

/// The layers of Gemma 3 27B, whose scores are scaled by the width of a head that its heads do not have. The format has
/// no key for it: llama.cpp goes by the number of layers.
const LAYERS_WITH_WIDE_SCALE: u32 = 62;

/// The head size whose root divides the scores.
pub(crate) fn scale_size(layers: u32, width: u32, heads: u32, head_size: u32) -> f64 {
    if layers == LAYERS_WITH_WIDE_SCALE { f64::from(width) / f64::from(heads) } else { f64::from(head_size) }
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
