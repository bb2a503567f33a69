//! The weights of a model by role: their classes, their names in a file, and the types of tensors that they may have.
//!
//! Contract: names are those of llama.cpp's converters. No class knows which architecture has it, or its shape.

use crate::gguf::{TensorInfo, TensorKind};
use std::fmt;

/// Types of weights other than norms' that products and embeddings take.
pub const WEIGHT_KINDS: [TensorKind; 23] = [
    TensorKind::F32,
    TensorKind::F16,
    TensorKind::BF16,
    TensorKind::Q8_0,
    TensorKind::Q4_0,
    TensorKind::Q4_1,
    TensorKind::Q5_0,
    TensorKind::Q5_1,
    TensorKind::Q2_K,
    TensorKind::Q3_K,
    TensorKind::Q4_K,
    TensorKind::Q5_K,
    TensorKind::Q6_K,
    TensorKind::IQ4_NL,
    TensorKind::IQ4_XS,
    TensorKind::MXFP4,
    TensorKind::IQ2_XXS,
    TensorKind::IQ2_XS,
    TensorKind::IQ2_S,
    TensorKind::IQ3_XXS,
    TensorKind::IQ3_S,
    TensorKind::INT8,
    TensorKind::FP8,
];

/// What a tensor is for. Tensors of one class lie in one device allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WeightClass {
    /// Token embedding; also the output matrix if the file has none.
    Embedding,
    /// RMS norm before attention.
    AttentionNorm,
    /// Query projection.
    Query,
    /// Key projection.
    Key,
    /// Value projection.
    Value,
    /// Bias of the query projection.
    QueryBias,
    /// Bias of the key projection.
    KeyBias,
    /// Bias of the value projection.
    ValueBias,
    /// RMS norm on query heads.
    QueryNorm,
    /// RMS norm on key heads.
    KeyNorm,
    /// Projection of the attention result.
    AttentionOutput,
    /// RMS norm of what attention adds to the residual stream.
    AttentionPostNorm,
    /// RMS norm before the feed-forward layer.
    FeedForwardNorm,
    /// Gate projection.
    Gate,
    /// Up projection.
    Up,
    /// Down projection.
    Down,
    /// RMS norm of what the feed-forward layer adds to the residual stream.
    FeedForwardPostNorm,
    /// Final RMS norm.
    OutputNorm,
    /// Output matrix.
    Output,
}

/// One weight: class and layer (0 for weights outside the layers).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WeightId {
    /// Role.
    pub class: WeightClass,
    /// Layer.
    pub layer: u32,
}

/// A weight's tensor, with its shape as rows of columns.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Where it is in the file.
    pub tensor: TensorInfo,
    /// Output length (1 for vectors).
    pub rows: u32,
    /// Input length.
    pub columns: u32,
}

impl WeightClass {
    /// Every class, in the order of allocation.
    pub const ALL: [WeightClass; 19] = [
        WeightClass::Embedding,
        WeightClass::AttentionNorm,
        WeightClass::Query,
        WeightClass::Key,
        WeightClass::Value,
        WeightClass::QueryBias,
        WeightClass::KeyBias,
        WeightClass::ValueBias,
        WeightClass::QueryNorm,
        WeightClass::KeyNorm,
        WeightClass::AttentionOutput,
        WeightClass::AttentionPostNorm,
        WeightClass::FeedForwardNorm,
        WeightClass::Gate,
        WeightClass::Up,
        WeightClass::Down,
        WeightClass::FeedForwardPostNorm,
        WeightClass::OutputNorm,
        WeightClass::Output,
    ];

    /// The tensor's name without `blk.N.`, `.weight` and `.bias`.
    pub const fn name(self) -> &'static str {
        match self {
            WeightClass::Embedding => "token_embd",
            WeightClass::AttentionNorm => "attn_norm",
            WeightClass::Query | WeightClass::QueryBias => "attn_q",
            WeightClass::Key | WeightClass::KeyBias => "attn_k",
            WeightClass::Value | WeightClass::ValueBias => "attn_v",
            WeightClass::QueryNorm => "attn_q_norm",
            WeightClass::KeyNorm => "attn_k_norm",
            WeightClass::AttentionOutput => "attn_output",
            WeightClass::AttentionPostNorm => "post_attention_norm",
            WeightClass::FeedForwardNorm => "ffn_norm",
            WeightClass::Gate => "ffn_gate",
            WeightClass::Up => "ffn_up",
            WeightClass::Down => "ffn_down",
            WeightClass::FeedForwardPostNorm => "post_ffw_norm",
            WeightClass::OutputNorm => "output_norm",
            WeightClass::Output => "output",
        }
    }

    /// True for classes of which every layer has one.
    pub const fn is_per_layer(self) -> bool {
        !matches!(self, WeightClass::Embedding | WeightClass::OutputNorm | WeightClass::Output)
    }

    /// True for classes that every architecture has.
    pub const fn is_common(self) -> bool {
        !matches!(
            self,
            WeightClass::QueryNorm
                | WeightClass::KeyNorm
                | WeightClass::AttentionPostNorm
                | WeightClass::FeedForwardPostNorm
        ) && !self.is_bias()
    }

    /// True for biases.
    pub const fn is_bias(self) -> bool {
        matches!(self, WeightClass::QueryBias | WeightClass::KeyBias | WeightClass::ValueBias)
    }

    /// True for norms and biases: vectors, which are F32 in every file.
    pub const fn is_vector(self) -> bool {
        matches!(
            self,
            WeightClass::AttentionNorm
                | WeightClass::AttentionPostNorm
                | WeightClass::FeedForwardPostNorm
                | WeightClass::QueryNorm
                | WeightClass::KeyNorm
                | WeightClass::FeedForwardNorm
                | WeightClass::OutputNorm
        ) || self.is_bias()
    }
}

impl WeightId {
    /// A weight of a layer.
    pub const fn new(class: WeightClass, layer: u32) -> WeightId {
        WeightId { class, layer }
    }

    /// The tensor's name in the file.
    pub fn tensor_name(self) -> String {
        let suffix = if self.class.is_bias() { "bias" } else { "weight" };
        if self.class.is_per_layer() {
            format!("blk.{}.{}.{suffix}", self.layer, self.class.name())
        } else {
            format!("{}.{suffix}", self.class.name())
        }
    }
}

impl fmt::Display for WeightId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.tensor_name())
    }
}
