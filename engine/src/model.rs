//! A model: the configuration from its GGUF metadata, and its tensors by role.
//!
//! Contract: [`Model::load`] accepts a file only if every tensor in it has a role and every role has a tensor of the
//! shape that the configuration requires; nothing is guessed or ignored. It reads metadata only: weights are read when
//! an executor loads them. Allocates; not for the path of a token.

use crate::config::ModelConfig;
use crate::gguf::{Gguf, TensorInfo, TensorKind};
use crate::model_error::ModelError;
use crate::weights::{WEIGHT_KINDS, Weight, WeightClass, WeightId};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// The tensor with a divisor for the frequency of each rotary pair. Llama 3.1 has it: llama.cpp's converter makes it of
/// `low_freq_factor`, `high_freq_factor` and the factor of the file that it converts.
pub const ROPE_DIVISORS: &str = "rope_freqs.weight";

/// A checked model file.
#[derive(Debug)]
pub struct Model {
    /// The file.
    pub gguf: Arc<Gguf>,
    /// Its configuration.
    pub config: ModelConfig,
    rope_divisors: Option<TensorInfo>,
    weights: BTreeMap<WeightId, Weight>,
}

impl Model {
    /// Checks a file and assigns a role to each tensor.
    pub fn load(gguf: Arc<Gguf>) -> Result<Model, ModelError> {
        let config = ModelConfig::read(&gguf)?;
        check_vocabulary(&gguf, &config)?;
        let mut weights = BTreeMap::new();
        for class in WeightClass::ALL.into_iter().filter(|class| config.architecture.has_class(*class)) {
            let layers = if class.is_per_layer() { config.layers } else { 1 };
            for layer in 0..layers {
                let id = WeightId::new(class, layer);
                match gguf.tensor(&id.tensor_name()) {
                    Some(tensor) => {
                        weights.insert(id, check_weight(&config, id, tensor)?);
                    }
                    None if class == WeightClass::Output => {}
                    None => return Err(ModelError::TensorMissing(id.tensor_name())),
                }
            }
        }
        let rope_divisors = rope_divisors(&gguf, &config)?;
        let mut named: HashSet<String> = weights.keys().map(|id| id.tensor_name()).collect();
        named.extend(rope_divisors.iter().map(|tensor| tensor.name.to_string()));
        for tensor in gguf.tensors() {
            if !named.contains(&*tensor.name) {
                return Err(ModelError::TensorUnknown(tensor.name.to_string()));
            }
        }
        Ok(Model { gguf, config, rope_divisors, weights })
    }

    /// A weight of the configuration. Panics if the configuration has no such weight (a bug of ours).
    pub fn weight(&self, id: WeightId) -> &Weight {
        &self.weights[&id]
    }

    /// All weights, by class and layer.
    pub fn weights(&self) -> impl Iterator<Item = (WeightId, &Weight)> {
        self.weights.iter().map(|(id, weight)| (*id, weight))
    }

    /// A divisor for each rotary pair's frequency, if the file has them. Fails if they cannot be read or one is no
    /// number from 1 on.
    pub fn rope_divisors(&self) -> Result<Vec<f32>, ModelError> {
        let Some(tensor) = &self.rope_divisors else { return Ok(Vec::new()) };
        let bytes = self.gguf.read_tensor(tensor, 0..tensor.bytes)?;
        let divisors: Vec<f32> = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        match divisors.iter().find(|divisor| !(divisor.is_finite() && **divisor >= 1.0)) {
            Some(divisor) => {
                Err(ModelError::RopeDivisor { name: tensor.name.to_string(), divisor: *divisor })
            }
            None => Ok(divisors),
        }
    }

    /// The output matrix: the file's own or the tied embedding.
    pub fn output(&self) -> WeightId {
        let own = WeightId::new(WeightClass::Output, 0);
        if self.weights.contains_key(&own) { own } else { WeightId::new(WeightClass::Embedding, 0) }
    }

    /// Number of parameters; tied weights count once.
    pub fn parameter_count(&self) -> u64 {
        self.weights.values().map(|weight| u64::from(weight.rows) * u64::from(weight.columns)).sum()
    }

    /// Bytes of all tensors in the file.
    pub fn weight_bytes(&self) -> u64 {
        self.weights.values().map(|weight| weight.tensor.bytes).sum()
    }
}

/// If the file lists its tokens, the embedding must have a row for each: whatever a tokenizer returns is then in the
/// embedding.
fn check_vocabulary(gguf: &Gguf, config: &ModelConfig) -> Result<(), ModelError> {
    const KEY: &str = "tokenizer.ggml.tokens";
    if gguf.metadata.get(KEY).is_none() {
        return Ok(());
    }
    let (tokens, rows) = (gguf.metadata.strings(KEY)?.len(), config.vocabulary);
    if tokens != rows as usize { Err(ModelError::Vocabulary { tokens, rows }) } else { Ok(()) }
}

/// The tensor of divisors, if the file has one and the architecture may.
fn rope_divisors(gguf: &Gguf, config: &ModelConfig) -> Result<Option<TensorInfo>, ModelError> {
    let tensor = gguf.tensor(ROPE_DIVISORS).filter(|_| config.architecture.has_rope_divisors());
    let Some(tensor) = tensor else { return Ok(None) };
    let name = || tensor.name.to_string();
    let expected = vec![u64::from(config.rope.dimensions / 2)];
    if tensor.dimensions != expected {
        return Err(ModelError::Shape { name: name(), found: tensor.dimensions.clone(), expected });
    }
    match tensor.kind {
        TensorKind::F32 => Ok(Some(tensor.clone())),
        kind => Err(ModelError::Kind { name: name(), kind: kind.to_string() }),
    }
}

fn check_weight(config: &ModelConfig, id: WeightId, tensor: &TensorInfo) -> Result<Weight, ModelError> {
    let (rows, columns) = config.shape(id.class);
    let expected: Vec<u64> =
        if id.class.is_vector() { vec![columns.into()] } else { vec![columns.into(), rows.into()] };
    if tensor.dimensions != expected || rows == 0 {
        return Err(ModelError::Shape {
            name: tensor.name.to_string(),
            found: tensor.dimensions.clone(),
            expected,
        });
    }
    let kind = tensor.kind;
    let multiple = match kind {
        TensorKind::F32 if id.class.is_vector() => 1,
        TensorKind::F32 | TensorKind::F16 | TensorKind::BF16 if !id.class.is_vector() => 4,
        _ if WEIGHT_KINDS.contains(&kind) && !id.class.is_vector() => kind.block_elements() as u32,
        _ => return Err(ModelError::Kind { name: tensor.name.to_string(), kind: kind.to_string() }),
    };
    if columns % multiple != 0 {
        return Err(ModelError::Columns { name: tensor.name.to_string(), columns, kind: kind.to_string() });
    }
    Ok(Weight { tensor: tensor.clone(), rows, columns })
}
