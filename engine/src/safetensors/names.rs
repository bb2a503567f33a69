//! Names of tensors in safetensors files, as the transformers library gives them.
//!
//! Contract: one name for each weight of an architecture.

use crate::architecture::Architecture;
use crate::weights::{WeightClass, WeightId};

/// The name of a weight.
pub(super) fn stored_name(architecture: Architecture, id: WeightId) -> String {
    let is_gemma = architecture == Architecture::Gemma3;
    let within = match id.class {
        WeightClass::Embedding => return "model.embed_tokens.weight".to_owned(),
        WeightClass::OutputNorm => return "model.norm.weight".to_owned(),
        WeightClass::Output => return "lm_head.weight".to_owned(),
        WeightClass::AttentionNorm => "input_layernorm.weight",
        WeightClass::Query => "self_attn.q_proj.weight",
        WeightClass::Key => "self_attn.k_proj.weight",
        WeightClass::Value => "self_attn.v_proj.weight",
        WeightClass::QueryBias => "self_attn.q_proj.bias",
        WeightClass::KeyBias => "self_attn.k_proj.bias",
        WeightClass::ValueBias => "self_attn.v_proj.bias",
        WeightClass::QueryNorm => "self_attn.q_norm.weight",
        WeightClass::KeyNorm => "self_attn.k_norm.weight",
        WeightClass::AttentionOutput => "self_attn.o_proj.weight",
        // Only with norms on both sides is it what its name says.
        WeightClass::AttentionPostNorm => "post_attention_layernorm.weight",
        WeightClass::FeedForwardNorm if is_gemma => "pre_feedforward_layernorm.weight",
        WeightClass::FeedForwardNorm => "post_attention_layernorm.weight",
        WeightClass::Gate => "mlp.gate_proj.weight",
        WeightClass::Up => "mlp.up_proj.weight",
        WeightClass::Down => "mlp.down_proj.weight",
        WeightClass::FeedForwardPostNorm => "post_feedforward_layernorm.weight",
    };
    format!("model.layers.{}.{within}", id.layer)
}

/// Whether results do not depend on a tensor: the rotary frequencies that old files have, the scales of activations,
/// which are quantised by the mode of MATMUL and not by the file, and the copy of an output matrix that is the
/// embedding.
pub(super) fn is_unused(name: &str, is_tied: bool) -> bool {
    name.ends_with(".rotary_emb.inv_freq")
        || name.ends_with(".input_scale")
        || name.ends_with(".activation_scale")
        || (is_tied && name == "lm_head.weight")
}
