//! What the cross-crate cases share: finding models and golden traces, opening executors.
//!
//! Contract: two models and their traces are in the repository's `models` folder; the others come by the environment
//! variable `ZRT_MODELS`. With it set, a model that is missing fails the case; without it, the case is recorded as
//! skipped (`zrt_needs`).
#![forbid(unsafe_code)]

pub mod assembly;
pub mod serving;
pub mod workload;

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zrt_device::{Device, DeviceChoice, OpenOptions};
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::gguf::Gguf;
use zrt_engine::model::Model;

/// One golden trace file.
#[derive(Deserialize)]
pub struct Golden {
    /// One entry per prompt.
    pub traces: Vec<Trace>,
}

/// One prompt of a golden file.
#[derive(Deserialize)]
#[allow(missing_docs)]
pub struct Trace {
    pub prompt: String,
    pub prompt_token_ids: Vec<u32>,
    pub prompt_nll_mean: f64,
    pub greedy_token_ids: Vec<u32>,
    pub greedy_margins: Vec<f64>,
    pub reference_f64: Option<Reference>,
}

/// Exact arithmetic on the same weights, where the engine of the trace rounded activations.
#[derive(Deserialize)]
#[allow(missing_docs)]
pub struct Reference {
    pub prompt_nll_mean: f64,
    pub greedy_token_ids: Vec<u32>,
    pub min_margin: f64,
    pub top5_after_prompt: Vec<(u32, f64)>,
}

impl Trace {
    /// The loss of exact arithmetic.
    pub fn exact_loss(&self) -> f64 {
        self.reference_f64.as_ref().map_or(self.prompt_nll_mean, |reference| reference.prompt_nll_mean)
    }

    /// Greedy tokens of exact arithmetic, up to the first step whose margin is below `margin`.
    pub fn exact_tokens(&self, margin: f64) -> &[u32] {
        match &self.reference_f64 {
            Some(reference) if reference.min_margin >= margin => &reference.greedy_token_ids,
            Some(_) => &[],
            None => {
                let sure = self.greedy_margins.iter().position(|one| *one < margin);
                &self.greedy_token_ids[..sure.unwrap_or(self.greedy_token_ids.len())]
            }
        }
    }
}

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

/// A file of the repository's models or of `ZRT_MODELS`. `None` where it is in neither and `ZRT_MODELS` is not set.
pub fn find_model(name: &str) -> Option<PathBuf> {
    let own = repository_models().join(name);
    if own.exists() {
        return Some(own);
    }
    zrt_needs::model(name)
}

/// A model with its golden traces, by name without ending.
pub fn golden(name: &str) -> Option<(Model, Golden)> {
    let model = find_model(&format!("{name}.gguf"))?;
    let trace = find_model(&format!("golden/{name}.golden.json"))?;
    let text = std::fs::read_to_string(trace).expect("a golden trace is readable");
    Some((load(&model), serde_json::from_str(&text).expect("a golden trace is JSON of this shape")))
}

/// Loads a model that must be sound.
pub fn load(path: &Path) -> Model {
    let gguf = Gguf::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Model::load(Arc::new(gguf)).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A model resident on a fresh virtual device.
pub fn virtual_executor(model: &Model, context: u32, options: &OpenOptions) -> DeviceExecutor {
    let device = Device::open(DeviceChoice::Virtual, options).expect("the virtual device opens");
    DeviceExecutor::new(device, model, context, &mut |_, _| {}).expect("the model becomes resident")
}
