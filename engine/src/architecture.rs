//! The families of models: what is known of each before a file is read.
//!
//! Contract: facts alone. An architecture has its name, the layout of its rotary pairs, and a list of the weights that
//! its layers have besides those of every architecture. What its metadata add is read in [`crate::config`]; the
//! operations of a layer are in [`crate::layers`]. Nothing else asks which architecture a model has.

use crate::rope::RopeLayout;
use crate::weights::WeightClass;

/// The families of models that can be built into a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// `llama`: interleaved rotary pairs, no norm of heads.
    Llama,
    /// `qwen2`: rotary halves, a bias on query, key and value.
    Qwen2,
    /// `qwen3`: rotary halves, RMS norm on each query and key head.
    Qwen3,
    /// `gemma3`: rotary halves, norms around everything, GELU as gate, windows.
    Gemma3,
}

impl Architecture {
    /// Every architecture.
    pub const ALL: [Architecture; 4] =
        [Architecture::Llama, Architecture::Qwen2, Architecture::Qwen3, Architecture::Gemma3];

    /// The name in `general.architecture`.
    pub const fn name(self) -> &'static str {
        match self {
            Architecture::Llama => "llama",
            Architecture::Qwen2 => "qwen2",
            Architecture::Qwen3 => "qwen3",
            Architecture::Gemma3 => "gemma3",
        }
    }

    /// The architecture of this name, if it is one that runs.
    pub fn parse(name: &str) -> Option<Architecture> {
        Architecture::ALL.into_iter().find(|architecture| architecture.name() == name)
    }

    /// How rotary pairs lie in a head.
    pub const fn rope_layout(self) -> RopeLayout {
        match self {
            Architecture::Llama => RopeLayout::Interleaved,
            Architecture::Qwen2 | Architecture::Qwen3 | Architecture::Gemma3 => RopeLayout::Halves,
        }
    }

    /// The classes of a layer that not every architecture has.
    pub const fn classes(self) -> &'static [WeightClass] {
        match self {
            Architecture::Llama => &[],
            Architecture::Qwen2 => &[WeightClass::QueryBias, WeightClass::KeyBias, WeightClass::ValueBias],
            Architecture::Qwen3 => &[WeightClass::QueryNorm, WeightClass::KeyNorm],
            Architecture::Gemma3 => &[
                WeightClass::QueryNorm,
                WeightClass::KeyNorm,
                WeightClass::AttentionPostNorm,
                WeightClass::FeedForwardPostNorm,
            ],
        }
    }

    /// Whether it has tensors of this class.
    pub fn has_class(self, class: WeightClass) -> bool {
        class.is_common() || self.classes().contains(&class)
    }

    /// Whether a file may divide rotary frequencies by a tensor ([`crate::model::ROPE_DIVISORS`]).
    pub const fn has_rope_divisors(self) -> bool {
        matches!(self, Architecture::Llama)
    }
}
