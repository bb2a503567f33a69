//! The families of models: for each the tensors that its layers have, and the operations of a layer.
//!
//! Contract: an architecture is a function that appends one layer to a step out of the shared operations of
//! [`step::Step`], a list of the tensors that it has besides those of every architecture, and a line in each `match` of
//! this file. What its metadata add is read in [`crate::config`]. Nothing else asks which architecture a model has.

pub(crate) mod gemma3;
mod llama;
mod qwen2;
mod qwen3;
pub mod step;

use crate::config::RopeLayout;
use crate::graph::ValueId;
use crate::model::{ModelError, WeightClass};
use step::Step;

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

    /// The architecture of this name; an error that names those that run.
    pub fn parse(name: &str) -> Result<Architecture, ModelError> {
        let found = Architecture::ALL.into_iter().find(|architecture| architecture.name() == name);
        found.ok_or_else(|| ModelError::Architecture(name.to_owned()))
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
            Architecture::Qwen2 => qwen2::CLASSES,
            Architecture::Qwen3 => qwen3::CLASSES,
            Architecture::Gemma3 => gemma3::CLASSES,
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

    /// Appends one layer; `hidden` is the residual stream.
    pub(crate) fn layer(self, step: &mut Step<'_>, hidden: ValueId) {
        match self {
            Architecture::Llama => llama::layer(step, hidden),
            Architecture::Qwen2 => qwen2::layer(step, hidden),
            Architecture::Qwen3 => qwen3::layer(step, hidden),
            Architecture::Gemma3 => gemma3::layer(step, hidden),
        }
    }
}
