//! What the cross-crate cases share: finding models and golden traces, opening executors.
//!
//! Contract: two models and their traces are in the repository's `models` folder; the others come through the
//! environment variable `ZRT_MODELS`. With it set, a model that is missing fails the case; without it, the case is
//! recorded as skipped (`zrt_needs`).
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod assembly;
pub mod golden;
pub mod mixed_model;
pub mod serving;
pub mod workload;

pub use golden::{Golden, Trace};

use std::path::{Path, PathBuf};
use std::sync::Arc;
use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_engine::activations::Activations;
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::gguf::Gguf;
use zrt_engine::model::Model;

/// The repository's folder of models.
pub fn repository_models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models")
}

/// A model of the repository, by its file's name: the same on every machine.
pub fn repository_model(name: &str) -> PathBuf {
    let path = repository_models().join(name);
    assert!(path.exists(), "{} is missing", path.display());
    path
}

/// A file of the repository's models or of `ZRT_MODELS`. `None` if it is in neither and `ZRT_MODELS` is not set.
pub fn find_model(name: &str) -> Option<PathBuf> {
    let own = repository_models().join(name);
    if own.exists() {
        return Some(own);
    }
    zrt_needs::model(name)
}

/// A model with its golden traces, by name without extension.
pub fn golden(name: &str) -> Option<(Model, Golden)> {
    let model = find_model(&format!("{name}.gguf"))?;
    let trace = find_model(&format!("golden/{name}.golden.json"))?;
    let bytes = std::fs::read(trace).expect("a golden trace is readable");
    Some((load(&model), Golden::parse(&bytes).unwrap_or_else(|error| panic!("{name}: {error}"))))
}

/// Loads a model that must be sound.
pub fn load(path: &Path) -> Model {
    let gguf = Gguf::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Model::load(Arc::new(gguf)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A model resident on a fresh virtual device, with activations as they are.
pub fn virtual_executor(model: &Model, context: u32, options: &OpenOptions) -> DeviceExecutor {
    virtual_executor_with(model, context, Activations::F32, options)
}

/// A model resident on a fresh virtual device.
pub fn virtual_executor_with(
    model: &Model,
    context: u32,
    activations: Activations,
    options: &OpenOptions,
) -> DeviceExecutor {
    let device = zrt_bringup::open(DeviceChoice::Virtual, options).expect("the virtual device opens");
    DeviceExecutor::new(device, model, context, activations, &mut |_, _| {})
        .expect("the model becomes resident")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A case that does not find what is in the repository would say nothing.
    #[test]
    fn models_of_the_repository_are_found_with_their_traces() {
        for name in ["tales-llama-Q4_K_M", "tales-qwen3-Q4_0"] {
            let file = format!("{name}.gguf");
            assert_eq!(find_model(&file), Some(repository_model(&file)));
            let (model, golden) = golden(name).expect("in the repository");
            assert!(model.parameter_count() > 1_000_000 && !golden.traces.is_empty(), "{name}");
        }
    }
}
