//! A model: the configuration from its GGUF metadata, and its tensors by role.
//!
//! Contract: [`Model::load`] accepts a file only if every tensor in it has a role and every role has a tensor of the
//! shape that the configuration requires; nothing is guessed or ignored. It reads metadata only: weights are read when
//! an executor loads them. Allocates; not for the path of a token.

use crate::gguf::{Gguf, GgufError, TensorInfo, TensorKind};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use thiserror::Error;
use zrt_protocol::HEAD_SIZE_MAX;

/// Largest number of layers accepted; a bound for loops over hostile metadata.
pub const LAYERS_MAX: u32 = 1024;
/// Largest row length accepted, in elements.
pub const COLUMNS_MAX: u32 = 1 << 20;

/// Types of weights other than norms' that products and embeddings take.
pub const WEIGHT_KINDS: [TensorKind; 21] = [
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
];

/// The families of models that can be built into a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// `llama`: interleaved rotary pairs, no QK norm.
    Llama,
    /// `qwen3`: rotary halves, RMS norm on each query and key head.
    Qwen3,
}

/// How rotary pairs lie in a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RopeLayout {
    /// Elements (2j, 2j + 1).
    Interleaved,
    /// Elements (j, j + R/2).
    Halves,
}

/// Dimensions and constants of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelConfig {
    /// Family.
    pub architecture: Architecture,
    /// Transformer blocks.
    pub layers: u32,
    /// Width of the residual stream, in elements.
    pub width: u32,
    /// Query heads.
    pub heads: u32,
    /// Key and value heads; divides `heads`.
    pub kv_heads: u32,
    /// Elements per head: a multiple of 4, at most [`HEAD_SIZE_MAX`].
    pub head_size: u32,
    /// Width of the feed-forward layer.
    pub feed_forward: u32,
    /// Tokens in the vocabulary.
    pub vocabulary: u32,
    /// Positions that the model was trained for.
    pub context: u32,
    /// Rotary base frequency.
    pub rope_base: f64,
    /// Rotated elements per head, even.
    pub rotary_dimensions: u32,
    /// How elements are paired.
    pub rope_layout: RopeLayout,
    /// RMS norm epsilon.
    pub rms_epsilon: f32,
}

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
    /// RMS norm on query heads.
    QueryNorm,
    /// RMS norm on key heads.
    KeyNorm,
    /// Projection of the attention result.
    AttentionOutput,
    /// RMS norm before the feed-forward layer.
    FeedForwardNorm,
    /// Gate projection.
    Gate,
    /// Up projection.
    Up,
    /// Down projection.
    Down,
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
    /// Output length (1 for norms).
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
    weights: BTreeMap<WeightId, Weight>,
}

/// Why a file is not a model that can be run.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum ModelError {
    #[error("architecture `{0}` is not supported; this build runs `llama` and `qwen3`")]
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
    #[error("tensor `{name}` is of type {kind}, for which there is no kernel")]
    Kind { name: String, kind: String },
    #[error("tensor `{name}`: rows of {columns} elements do not divide into what type {kind} needs")]
    Columns { name: String, columns: u32, kind: String },
}

impl Architecture {
    /// The name in `general.architecture`.
    pub const fn name(self) -> &'static str {
        match self {
            Architecture::Llama => "llama",
            Architecture::Qwen3 => "qwen3",
        }
    }

    fn parse(name: &str) -> Result<Architecture, ModelError> {
        match name {
            "llama" => Ok(Architecture::Llama),
            "qwen3" => Ok(Architecture::Qwen3),
            other => Err(ModelError::Architecture(other.to_owned())),
        }
    }
}

impl WeightClass {
    /// Every class, in the order of allocation.
    pub const ALL: [WeightClass; 14] = [
        WeightClass::Embedding,
        WeightClass::AttentionNorm,
        WeightClass::Query,
        WeightClass::Key,
        WeightClass::Value,
        WeightClass::QueryNorm,
        WeightClass::KeyNorm,
        WeightClass::AttentionOutput,
        WeightClass::FeedForwardNorm,
        WeightClass::Gate,
        WeightClass::Up,
        WeightClass::Down,
        WeightClass::OutputNorm,
        WeightClass::Output,
    ];

    /// The tensor's name without `blk.N.` and `.weight`.
    pub const fn name(self) -> &'static str {
        match self {
            WeightClass::Embedding => "token_embd",
            WeightClass::AttentionNorm => "attn_norm",
            WeightClass::Query => "attn_q",
            WeightClass::Key => "attn_k",
            WeightClass::Value => "attn_v",
            WeightClass::QueryNorm => "attn_q_norm",
            WeightClass::KeyNorm => "attn_k_norm",
            WeightClass::AttentionOutput => "attn_output",
            WeightClass::FeedForwardNorm => "ffn_norm",
            WeightClass::Gate => "ffn_gate",
            WeightClass::Up => "ffn_up",
            WeightClass::Down => "ffn_down",
            WeightClass::OutputNorm => "output_norm",
            WeightClass::Output => "output",
        }
    }

    /// True for classes of which every layer has one.
    pub const fn is_per_layer(self) -> bool {
        !matches!(self, WeightClass::Embedding | WeightClass::OutputNorm | WeightClass::Output)
    }

    /// True for norm vectors, which are F32 in every file.
    pub const fn is_norm(self) -> bool {
        matches!(
            self,
            WeightClass::AttentionNorm
                | WeightClass::QueryNorm
                | WeightClass::KeyNorm
                | WeightClass::FeedForwardNorm
                | WeightClass::OutputNorm
        )
    }
}

impl WeightId {
    /// A weight of a layer.
    pub const fn new(class: WeightClass, layer: u32) -> WeightId {
        WeightId { class, layer }
    }

    /// The tensor's name in the file.
    pub fn tensor_name(self) -> String {
        if self.class.is_per_layer() {
            format!("blk.{}.{}.weight", self.layer, self.class.name())
        } else {
            format!("{}.weight", self.class.name())
        }
    }
}

impl fmt::Display for WeightId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.tensor_name())
    }
}

/// Metadata access with the architecture's prefix.
struct Keys<'a> {
    gguf: &'a Gguf,
    prefix: &'static str,
}

impl Keys<'_> {
    fn name(&self, key: &str) -> String {
        format!("{}.{key}", self.prefix)
    }

    fn count(&self, key: &str, maximum: u32) -> Result<u32, ModelError> {
        self.check(key, self.gguf.metadata.u32(&self.name(key))?, maximum)
    }

    fn count_or(&self, key: &str, default: u32, maximum: u32) -> Result<u32, ModelError> {
        self.check(key, self.gguf.metadata.u32_or(&self.name(key), default)?, maximum)
    }

    fn check(&self, key: &str, value: u32, maximum: u32) -> Result<u32, ModelError> {
        if value == 0 || value > maximum {
            return Err(self.range(key, value, "zero or too large"));
        }
        Ok(value)
    }

    fn range(&self, key: &str, value: impl fmt::Display, reason: &'static str) -> ModelError {
        ModelError::Range { key: self.name(key), value: value.to_string(), reason }
    }
}

impl ModelConfig {
    /// Reads the configuration from metadata and the embedding's shape.
    pub fn read(gguf: &Gguf) -> Result<ModelConfig, ModelError> {
        let architecture = Architecture::parse(gguf.metadata.str("general.architecture")?)?;
        let keys = Keys { gguf, prefix: architecture.name() };
        let width = keys.count("embedding_length", COLUMNS_MAX)?;
        let heads = keys.count("attention.head_count", 4096)?;
        let kv_heads = keys.count_or("attention.head_count_kv", heads, heads)?;
        let head_size = keys.count_or("attention.key_length", width / heads.max(1), HEAD_SIZE_MAX)?;
        let value_size = keys.count_or("attention.value_length", head_size, HEAD_SIZE_MAX)?;
        let rotary_dimensions = keys.count_or("rope.dimension_count", head_size, head_size)?;
        let rope_base = gguf.metadata.f32_or(&keys.name("rope.freq_base"), 10_000.0)?;
        let rms_epsilon = gguf.metadata.f32(&keys.name("attention.layer_norm_rms_epsilon"))?;
        if heads % kv_heads != 0 {
            return Err(keys.range("attention.head_count_kv", kv_heads, "does not divide the query heads"));
        }
        if head_size % 4 != 0 || value_size != head_size {
            return Err(keys.range(
                "attention.key_length",
                head_size,
                "must be a multiple of 4 and equal value_length",
            ));
        }
        if rotary_dimensions % 2 != 0 {
            return Err(keys.range("rope.dimension_count", rotary_dimensions, "must be even"));
        }
        if !(rope_base.is_finite() && rope_base > 1.0) {
            return Err(keys.range("rope.freq_base", rope_base, "must be finite and above 1"));
        }
        if !(rms_epsilon.is_finite() && (1e-30..1.0).contains(&rms_epsilon)) {
            return Err(keys.range("attention.layer_norm_rms_epsilon", rms_epsilon, "must lie in 1e-30..1"));
        }
        let scaling = gguf.metadata.str_or(&keys.name("rope.scaling.type"), "none")?;
        if scaling != "none" {
            return Err(keys.range("rope.scaling.type", scaling, "rotary scaling is not built yet"));
        }
        let embedding = WeightId::new(WeightClass::Embedding, 0).tensor_name();
        let table = gguf.tensor(&embedding).ok_or(ModelError::TensorMissing(embedding))?;
        let vocabulary = table.dimensions.get(1).copied().unwrap_or(0).min(u64::from(u32::MAX)) as u32;
        Ok(ModelConfig {
            architecture,
            layers: keys.count("block_count", LAYERS_MAX)?,
            width,
            heads,
            kv_heads,
            head_size,
            feed_forward: keys.count("feed_forward_length", COLUMNS_MAX)?,
            vocabulary,
            context: keys.count("context_length", 1 << 24)?,
            rope_base: f64::from(rope_base),
            rotary_dimensions,
            rope_layout: match architecture {
                Architecture::Llama => RopeLayout::Interleaved,
                Architecture::Qwen3 => RopeLayout::Halves,
            },
            rms_epsilon,
        })
    }

    /// Elements of all query heads.
    pub const fn query_elements(&self) -> u32 {
        self.heads * self.head_size
    }

    /// Elements of all key (or value) heads: one row of the cache.
    pub const fn kv_elements(&self) -> u32 {
        self.kv_heads * self.head_size
    }

    /// True if each head is normalised before the rotary embedding.
    pub const fn has_qk_norm(&self) -> bool {
        matches!(self.architecture, Architecture::Qwen3)
    }

    /// Rows and columns of a class.
    pub const fn shape(&self, class: WeightClass) -> (u32, u32) {
        match class {
            WeightClass::Embedding | WeightClass::Output => (self.vocabulary, self.width),
            WeightClass::AttentionNorm | WeightClass::FeedForwardNorm | WeightClass::OutputNorm => {
                (1, self.width)
            }
            WeightClass::QueryNorm | WeightClass::KeyNorm => (1, self.head_size),
            WeightClass::Query => (self.query_elements(), self.width),
            WeightClass::Key | WeightClass::Value => (self.kv_elements(), self.width),
            WeightClass::AttentionOutput => (self.width, self.query_elements()),
            WeightClass::Gate | WeightClass::Up => (self.feed_forward, self.width),
            WeightClass::Down => (self.width, self.feed_forward),
        }
    }

    fn has_class(&self, class: WeightClass) -> bool {
        self.has_qk_norm() || !matches!(class, WeightClass::QueryNorm | WeightClass::KeyNorm)
    }
}

impl Model {
    /// Checks a file and assigns a role to each tensor.
    pub fn load(gguf: Arc<Gguf>) -> Result<Model, ModelError> {
        let config = ModelConfig::read(&gguf)?;
        check_vocabulary(&gguf, &config)?;
        let mut weights = BTreeMap::new();
        for class in WeightClass::ALL.into_iter().filter(|class| config.has_class(*class)) {
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
        let named: std::collections::HashSet<String> = weights.keys().map(|id| id.tensor_name()).collect();
        for tensor in gguf.tensors() {
            if !named.contains(&*tensor.name) {
                return Err(ModelError::TensorUnknown(tensor.name.to_string()));
            }
        }
        Ok(Model { gguf, config, weights })
    }

    /// A weight of the configuration. Panics if the configuration has no such weight (a bug of ours).
    pub fn weight(&self, id: WeightId) -> &Weight {
        &self.weights[&id]
    }

    /// All weights, by class and layer.
    pub fn weights(&self) -> impl Iterator<Item = (WeightId, &Weight)> {
        self.weights.iter().map(|(id, weight)| (*id, weight))
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

    /// Weight bytes that one decode step reads: every matrix once, but only one row of an untied embedding.
    pub fn step_weight_bytes(&self) -> u64 {
        let output = self.output();
        let embedding = WeightId::new(WeightClass::Embedding, 0);
        let row = |weight: &Weight| weight.tensor.bytes / u64::from(weight.rows);
        self.weights
            .iter()
            .map(|(id, weight)| match *id {
                id if id == embedding && id != output => row(weight),
                id if id == embedding => weight.tensor.bytes + row(weight),
                _ => weight.tensor.bytes,
            })
            .sum()
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

fn check_weight(config: &ModelConfig, id: WeightId, tensor: &TensorInfo) -> Result<Weight, ModelError> {
    let (rows, columns) = config.shape(id.class);
    let expected: Vec<u64> =
        if id.class.is_norm() { vec![columns.into()] } else { vec![columns.into(), rows.into()] };
    if tensor.dimensions != expected || rows == 0 {
        return Err(ModelError::Shape {
            name: tensor.name.to_string(),
            found: tensor.dimensions.clone(),
            expected,
        });
    }
    let kind = tensor.kind;
    let multiple = match kind {
        TensorKind::F32 if id.class.is_norm() => 1,
        TensorKind::F32 | TensorKind::F16 | TensorKind::BF16 if !id.class.is_norm() => 4,
        _ if WEIGHT_KINDS.contains(&kind) && !id.class.is_norm() => kind.block_elements() as u32,
        _ => return Err(ModelError::Kind { name: tensor.name.to_string(), kind: kind.to_string() }),
    };
    if columns % multiple != 0 {
        return Err(ModelError::Columns { name: tensor.name.to_string(), columns, kind: kind.to_string() });
    }
    Ok(Weight { tensor: tensor.clone(), rows, columns })
}
