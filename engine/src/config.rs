//! A model's dimensions and constants, read from its GGUF metadata.
//!
//! Contract: a value outside what can be run is an error that names its key, and so is a key that asks for what no
//! operation computes; nothing is guessed. Keys and defaults are those of llama.cpp (`llama-arch`, `llama-model`),
//! whose converters write the files. Reads metadata only.

pub(crate) mod gemma3;

use crate::architecture::Architecture;
use crate::gguf::{Gguf, Value};
use crate::model_error::{COLUMNS_MAX, LAYERS_MAX, ModelError};
use crate::rope::{Rope, RopeLayout, RopeScaling, Yarn};
use crate::weights::{WeightClass, WeightId};
use std::fmt;
use std::ops::RangeInclusive;
use zrt_protocol::HEAD_SIZE_MAX;

/// Largest context accepted, in positions; the rotary table's series hold that far.
const CONTEXT_MAX: u32 = 1 << 24;
/// Largest factor of a rotary scaling accepted.
const ROPE_FACTOR_MAX: f32 = 65536.0;
/// Largest multiplier among the parameters of YaRN accepted.
const ROPE_MULTIPLIER_MAX: f32 = 1024.0;
/// Soft caps that are accepted: 2 / cap is a number, and caps of published models are 30 to 50.
const LOGIT_CAPS: RangeInclusive<f32> = 0.001..=65536.0;

/// Attention over the last positions only, in some of the layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Positions that attention reads, the row's own included; at least 1.
    pub positions: u32,
    /// Every layer whose number plus 1 is a multiple of this has full attention; 0: none has.
    pub period: u32,
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
    /// The rotary embedding of layers with full attention.
    pub rope: Rope,
    /// The rotary embedding of layers with a window, if it is another one.
    pub local_rope: Option<Rope>,
    /// How elements are paired.
    pub rope_layout: RopeLayout,
    /// Layers whose attention has a window, if there are any.
    pub window: Option<Window>,
    /// What scores are multiplied by.
    pub attention_scale: f32,
    /// What the embedding is multiplied by, if by anything.
    pub embedding_scale: Option<f32>,
    /// Soft cap of the logits, if there is one.
    pub logit_cap: Option<f32>,
    /// RMS norm epsilon.
    pub rms_epsilon: f32,
}

impl Window {
    /// The window of a layer; none if it has full attention.
    pub const fn of_layer(self, layer: u32) -> Option<u32> {
        let is_full = self.period != 0 && layer % self.period == self.period - 1;
        if is_full { None } else { Some(self.positions) }
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

    fn float_or(
        &self,
        key: &str,
        default: f32,
        range: RangeInclusive<f32>,
        reason: &'static str,
    ) -> Result<f64, ModelError> {
        let value = self.gguf.metadata.f32_or(&self.name(key), default)?;
        if !range.contains(&value) {
            return Err(self.range(key, value, reason));
        }
        Ok(f64::from(value))
    }

    fn range(&self, key: &str, value: impl fmt::Display, reason: &'static str) -> ModelError {
        ModelError::Range { key: self.name(key), value: value.to_string(), reason }
    }

    /// An error if the key is there and is not 0: the model asks for what is not built.
    fn refuse(&self, key: &str, reason: &'static str) -> Result<(), ModelError> {
        let Some(value) = self.gguf.metadata.get(&self.name(key)) else { return Ok(()) };
        let asked = match value {
            Value::F32(float) => f64::from(*float),
            Value::F64(float) => *float,
            other => other.integer().map_or(1.0, |integer| integer as f64),
        };
        if asked == 0.0 { Ok(()) } else { Err(self.range(key, asked, reason)) }
    }

    /// The base of a rotary embedding.
    fn rope_base(&self, key: &str) -> Result<f64, ModelError> {
        let base = self.gguf.metadata.f32_or(&self.name(key), 10_000.0)?;
        if !(base.is_finite() && base > 1.0) {
            return Err(self.range(key, base, "must be finite and above 1"));
        }
        Ok(f64::from(base))
    }

    /// The rotary embedding of layers with full attention. A file with a factor and no type means linear scaling.
    fn rope(&self, dimensions: u32, context: u32) -> Result<Rope, ModelError> {
        let base = self.rope_base("rope.freq_base")?;
        let kind = self.gguf.metadata.str_or(&self.name("rope.scaling.type"), "linear")?;
        let factor = self.rope_factor()?;
        let scaling = match kind {
            "none" => RopeScaling::None,
            "linear" if factor == 1.0 => RopeScaling::None,
            "linear" => RopeScaling::Linear { factor },
            "yarn" => RopeScaling::Yarn(self.yarn(factor, context)?),
            other => {
                let reason = "the scalings that run are `none`, `linear` and `yarn`";
                return Err(self.range("rope.scaling.type", other, reason));
            }
        };
        let positive = f32::MIN_POSITIVE..=ROPE_MULTIPLIER_MAX;
        const REASON: &str = "must be above 0 and at most 1024";
        let mut attention_factor =
            self.float_or("rope.scaling.attn_factor", 1.0, positive.clone(), REASON)?;
        // With its ramp on, YaRN's own magnitude replaces this key.
        if matches!(&scaling, RopeScaling::Yarn(yarn) if yarn.extrapolation == 0.0) {
            attention_factor *= self.float_or("rope.scaling.yarn_attn_factor", 1.0, positive, REASON)?;
        }
        Ok(Rope { base, dimensions, scaling, attention_factor })
    }

    /// The factor of a scaling, under its name or the one of old files; 0 means none.
    fn rope_factor(&self) -> Result<f64, ModelError> {
        let has = |key: &str| self.gguf.metadata.get(&self.name(key)).is_some();
        let is_old = !has("rope.scaling.factor") && has("rope.scale_linear");
        let key = if is_old { "rope.scale_linear" } else { "rope.scaling.factor" };
        if self.gguf.metadata.f32_or(&self.name(key), 1.0)? == 0.0 {
            return Ok(1.0);
        }
        self.float_or(key, 1.0, 1.0..=ROPE_FACTOR_MAX, "must be 0 (none) or from 1 to 65536")
    }

    fn yarn(&self, factor: f64, context: u32) -> Result<Yarn, ModelError> {
        let turns = f32::MIN_POSITIVE..=ROPE_MULTIPLIER_MAX;
        const TURNS: &str = "must be above 0 and at most 1024";
        let extrapolation = self.gguf.metadata.f32_or(&self.name("rope.scaling.yarn_ext_factor"), 1.0)?;
        Ok(Yarn {
            factor,
            original_context: self.count_or("rope.scaling.original_context_length", context, CONTEXT_MAX)?,
            // Below 0 means that the file says nothing, and the scaling is YaRN.
            extrapolation: match extrapolation {
                unsaid if unsaid < 0.0 => 1.0,
                _ => self.float_or("rope.scaling.yarn_ext_factor", 1.0, 0.0..=1.0, "must be at most 1")?,
            },
            beta_fast: self.float_or("rope.scaling.yarn_beta_fast", 32.0, turns.clone(), TURNS)?,
            beta_slow: self.float_or("rope.scaling.yarn_beta_slow", 1.0, turns, TURNS)?,
            log_multiplier: self.float_or(
                "rope.scaling.yarn_log_multiplier",
                0.0,
                0.0..=ROPE_MULTIPLIER_MAX,
                "must be from 0 to 1024",
            )?,
        })
    }

    /// What `gemma3` has besides: the window and the rotary embedding of the layers that have it. A scaling is that of
    /// the layers with full attention.
    fn gemma3(&self, config: &mut ModelConfig) -> Result<(), ModelError> {
        let size = gemma3::scale_size(config.layers, config.width, config.heads, config.head_size);
        config.attention_scale = (1.0 / size.sqrt()) as f32;
        config.embedding_scale = Some((f64::from(config.width)).sqrt() as f32);
        config.logit_cap = self.logit_cap()?;
        let positions = self.gguf.metadata.u32_or(&self.name("attention.sliding_window"), 0)?;
        if positions > 0 {
            let key = "attention.sliding_window_pattern";
            let period = self.gguf.metadata.u32_or(&self.name(key), gemma3::PERIOD)?;
            config.window = Some(Window { positions, period });
            config.local_rope = Some(Rope {
                base: self.rope_base("rope.freq_base_swa")?,
                dimensions: config.rope.dimensions,
                scaling: RopeScaling::None,
                attention_factor: 1.0,
            });
        }
        Ok(())
    }

    /// The soft cap of logits; 0 is none.
    fn logit_cap(&self) -> Result<Option<f32>, ModelError> {
        let key = "final_logit_softcapping";
        match self.gguf.metadata.f32_or(&self.name(key), 0.0)? {
            0.0 => Ok(None),
            cap if LOGIT_CAPS.contains(&cap) => Ok(Some(cap)),
            cap => Err(self.range(key, cap, "must be 0 (none) or from 0.001 to 65536")),
        }
    }

    /// An error if the file asks for what only `gemma3` has: a soft cap of logits, or a window that is shorter than its
    /// context.
    fn refuse_gemmas(&self, context: u32) -> Result<(), ModelError> {
        self.refuse("final_logit_softcapping", "a soft cap of logits is built for `gemma3` only")?;
        let key = "attention.sliding_window";
        match self.gguf.metadata.u32_or(&self.name(key), 0)? {
            0 => Ok(()),
            window if window >= context => Ok(()),
            window => Err(self.range(key, window, "a sliding window is built for `gemma3` only")),
        }
    }

    /// Keys of functions that no operation computes.
    fn refuse_unbuilt(&self) -> Result<(), ModelError> {
        self.refuse("attn_logit_softcapping", "a soft cap of attention scores is not built")?;
        self.refuse("expert_count", "mixtures of experts are not built")
    }
}

impl ModelConfig {
    /// Reads the configuration from metadata and the embedding's shape.
    pub fn read(gguf: &Gguf) -> Result<ModelConfig, ModelError> {
        let name = gguf.metadata.str("general.architecture")?;
        let architecture =
            Architecture::parse(name).ok_or_else(|| ModelError::Architecture(name.to_owned()))?;
        let keys = Keys { gguf, prefix: architecture.name() };
        keys.refuse_unbuilt()?;
        let layers = keys.count("block_count", LAYERS_MAX)?;
        let context = keys.count("context_length", CONTEXT_MAX)?;
        let width = keys.count("embedding_length", COLUMNS_MAX)?;
        let heads = keys.count("attention.head_count", 4096)?;
        let kv_heads = keys.count_or("attention.head_count_kv", heads, heads)?;
        let head_size = keys.count_or("attention.key_length", width / heads.max(1), HEAD_SIZE_MAX)?;
        let value_size = keys.count_or("attention.value_length", head_size, HEAD_SIZE_MAX)?;
        let rotary_dimensions = keys.count_or("rope.dimension_count", head_size, head_size)?;
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
        if !(1e-30..1.0).contains(&rms_epsilon) {
            return Err(keys.range("attention.layer_norm_rms_epsilon", rms_epsilon, "must lie in 1e-30..1"));
        }
        let embedding = WeightId::new(WeightClass::Embedding, 0).tensor_name();
        let table = gguf.tensor(&embedding).ok_or(ModelError::TensorMissing(embedding))?;
        let vocabulary = table.dimensions.get(1).copied().unwrap_or(0).min(u64::from(u32::MAX)) as u32;
        let mut config = ModelConfig {
            architecture,
            layers,
            width,
            heads,
            kv_heads,
            head_size,
            feed_forward: keys.count("feed_forward_length", COLUMNS_MAX)?,
            vocabulary,
            context,
            rope: keys.rope(rotary_dimensions, context)?,
            local_rope: None,
            rope_layout: architecture.rope_layout(),
            window: None,
            attention_scale: (1.0 / f64::from(head_size).sqrt()) as f32,
            embedding_scale: None,
            logit_cap: None,
            rms_epsilon,
        };
        match architecture {
            Architecture::Gemma3 => keys.gemma3(&mut config)?,
            _ => keys.refuse_gemmas(context)?,
        }
        Ok(config)
    }

    /// The rotary embeddings, in the order of their tables.
    pub fn ropes(&self) -> impl Iterator<Item = &Rope> {
        std::iter::once(&self.rope).chain(&self.local_rope)
    }

    /// The window of a layer; none if its attention reads all positions.
    pub fn window_of(&self, layer: u32) -> Option<u32> {
        self.window.and_then(|window| window.of_layer(layer))
    }

    /// The number of a layer's rotary embedding among [`ModelConfig::ropes`].
    pub fn rope_of(&self, layer: u32) -> u32 {
        u32::from(self.local_rope.is_some() && self.window_of(layer).is_some())
    }

    /// Elements of all query heads.
    pub const fn query_elements(&self) -> u32 {
        self.heads * self.head_size
    }

    /// Elements of all key (or value) heads: one row of the cache.
    pub const fn kv_elements(&self) -> u32 {
        self.kv_heads * self.head_size
    }

    /// Rows and columns of a class.
    pub const fn shape(&self, class: WeightClass) -> (u32, u32) {
        match class {
            WeightClass::Embedding | WeightClass::Output => (self.vocabulary, self.width),
            WeightClass::AttentionNorm
            | WeightClass::AttentionPostNorm
            | WeightClass::FeedForwardNorm
            | WeightClass::FeedForwardPostNorm
            | WeightClass::OutputNorm => (1, self.width),
            WeightClass::QueryBias => (1, self.query_elements()),
            WeightClass::KeyBias | WeightClass::ValueBias => (1, self.kv_elements()),
            WeightClass::QueryNorm | WeightClass::KeyNorm => (1, self.head_size),
            WeightClass::Query => (self.query_elements(), self.width),
            WeightClass::Key | WeightClass::Value => (self.kv_elements(), self.width),
            WeightClass::AttentionOutput => (self.width, self.query_elements()),
            WeightClass::Gate | WeightClass::Up => (self.feed_forward, self.width),
            WeightClass::Down => (self.width, self.feed_forward),
        }
    }
}
