//! Model → graph: one decode step, layer after layer.
//!
//! Contract: a layer is a function that appends its operations to a step out of the shared parts of `step::Step`. Each
//! architecture has one, and a line in the `match` of this file. Which weights its layers have is said in
//! [`crate::architecture`]. Allocates; not for the path of a token.

mod gemma3;
mod llama;
mod qwen2;
mod qwen3;
mod step;

use crate::activations::Activations;
use crate::architecture::Architecture;
use crate::graph::{Graph, ValueId};
use crate::model::Model;
use step::Step;

/// The graph of one decode step of a model, not yet verified.
pub fn decode_step(model: &Model, activations: Activations) -> Graph {
    let mut step = Step::new(model, activations);
    let hidden = step.embed();
    for layer in 0..model.config.layers {
        step.begin_layer(layer);
        append(model.config.architecture, &mut step, hidden);
    }
    step.finish(hidden)
}

/// Appends one layer; `hidden` is the residual stream.
fn append(architecture: Architecture, step: &mut Step<'_>, hidden: ValueId) {
    match architecture {
        Architecture::Llama => llama::layer(step, hidden),
        Architecture::Qwen2 => qwen2::layer(step, hidden),
        Architecture::Qwen3 => qwen3::layer(step, hidden),
        Architecture::Gemma3 => gemma3::layer(step, hidden),
    }
}
