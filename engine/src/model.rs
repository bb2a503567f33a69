//! A model: the configuration from its GGUF metadata, and its tensors by role.
//!
//! Contract: [`Model::load`] accepts a file only if every tensor in it has a role and every role has a tensor of the
//! shape that the configuration requires; nothing is guessed or ignored. It reads metadata only: weights are read when
//! an executor loads them. Allocates; not for the path of a token.

use crate::architecture::Architecture;
use crate::config::ModelConfig;
use crate::gguf::{Gguf, GgufError, TensorInfo, TensorKind};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;
use thiserror::Error;

/// Largest number of layers accepted; a bound for loops over hostile metadata.
pub const LAYERS_MAX: u32 = 1024;
/// Largest row length accepted, in elements.
pub const COLUMNS_MAX: u32 = 1 << 20;
/// The tensor with a divisor for the frequency of each rotary pair. Llama 3.1 has it: llama.cpp's converter makes it of
/// `low_freq_factor`, `high_freq_factor` and the factor of the file that it converts.
pub const ROPE_DIVISORS: &str = "rope_freqs.weight";

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

/// Why a file is not a model that can be run.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ModelError {
    #[error("architecture `{0}` is not supported; this build runs {names}", names = architectures())]
    Architecture(String),
    #[error("the model's metadata is incomplete; convert the file again")]
    Metadata(#[from] GgufError),
    #[error("metadata key `{key}` is {value}, outside what can be run: {reason}")]
    Range { key: String, value: String, reason: &'static str },
    #[error("tensor `{0}` is missing from the file")]
    TensorMissing(String),
    #[error(
        "tensor `{0}` has no place in a model of this architecture; running without it would give other results"
    )]
    TensorUnknown(String),
    #[error("tensor `{name}` has shape {found:?}, expected {expected:?} (columns, rows)")]
    Shape { name: String, found: Vec<u64>, expected: Vec<u64> },
    #[error(
        "the vocabulary has {tokens} tokens, but the embedding has {rows} rows: the file is damaged or cut"
    )]
    Vocabulary { tokens: usize, rows: u32 },
    #[error("tensor `{name}` divides a rotary frequency by {divisor}, which is no number from 1 on")]
    RopeDivisor { name: String, divisor: f32 },
    #[error("tensor `{name}` is of type {kind}, for which there is no kernel")]
    Kind { name: String, kind: String },
    #[error("tensor `{name}`: rows of {columns} elements do not divide into what type {kind} needs")]
    Columns { name: String, columns: u32, kind: String },
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

/// The names of the architectures that run, for a sentence.
fn architectures() -> String {
    let names: Vec<String> = Architecture::ALL.iter().map(|one| format!("`{}`", one.name())).collect();
    let (last, others) = names.split_last().unwrap_or((&names[0], &[]));
    format!("{} and {last}", others.join(", "))
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
