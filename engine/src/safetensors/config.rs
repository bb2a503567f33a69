//! `config.json` as the metadata of the GGUF file that a converter would write.
//!
//! Contract: keys are those of the transformers library's configurations of these models, and so is what a missing key
//! means; the library's releases 4.51 and 5 agree on it. Sizes that it takes from one published model must be there,
//! all but `head_dim` and `num_key_value_heads`. A key that asks for what no operation computes is an error that names
//! it. Ranges of numbers are checked by [`crate::config`], which reads the metadata.

use super::SafetensorsError;
use super::gguf_header::GgufHeader;
use crate::architecture::Architecture;
use crate::config::gemma3;
use crate::model_error::LAYERS_MAX;
use serde_json::{Map, Value};
use std::f64::consts::TAU;

/// The file.
pub(super) const FILE: &str = "config.json";
/// Longest `config.json` and `generation_config.json` accepted, in bytes: they become trees.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 18;
/// Rotary dimensions of a head that divisors are made for; above any head that runs.
const HEAD_SIZE_MAX: u32 = 1 << 12;
/// The window of a file that has no `sliding_window`, of types that have windows.
const WINDOW_DEFAULT: u32 = 4096;
/// What scales the scores of `gemma3_text` if the file does not say; whatever its heads are.
const SCALE_SIZE_DEFAULT: f64 = 256.0;

/// What the other readers need to know of it.
pub(super) struct Config {
    pub architecture: Architecture,
    pub layers: u32,
    pub heads: u32,
    pub kv_heads: u32,
    /// The output matrix is the embedding.
    pub is_tied: bool,
    /// Divisors of rotary frequencies; empty if there are none.
    pub rope_divisors: Vec<f32>,
    /// Rows and columns of a block with one scale.
    pub block_size: Option<[u32; 2]>,
    /// Tokens that end a generation, as this file has them.
    pub eos: Vec<u32>,
    pub bos: Option<u32>,
}

/// An object, with the way to it for messages.
#[derive(Clone)]
struct Keys<'a> {
    object: &'a Map<String, Value>,
    prefix: String,
}

impl<'a> Keys<'a> {
    fn name(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    fn wrong(&self, key: &str, wanted: impl Into<String>) -> SafetensorsError {
        let found = self.object.get(key).map(Value::to_string).unwrap_or_default();
        let found = found.chars().take(80).collect();
        SafetensorsError::Key { key: self.name(key), found, wanted: wanted.into() }
    }

    /// Whether the key is there, be it as `null`.
    fn has(&self, key: &str) -> bool {
        self.object.contains_key(key)
    }

    /// `null` is as good as nothing.
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.object.get(key).filter(|value| !value.is_null())
    }

    fn missing(&self, key: &str) -> SafetensorsError {
        SafetensorsError::KeyMissing { key: self.name(key) }
    }

    fn number(&self, key: &str) -> Result<Option<u32>, SafetensorsError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let number = value.as_u64().and_then(|number| u32::try_from(number).ok());
        number.map(Some).ok_or_else(|| self.wrong(key, "a whole number from 0 to 4294967295"))
    }

    fn need_number(&self, key: &str) -> Result<u32, SafetensorsError> {
        self.number(key)?.ok_or_else(|| self.missing(key))
    }

    fn float(&self, key: &str) -> Result<Option<f64>, SafetensorsError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_f64().map(Some).ok_or_else(|| self.wrong(key, "a number"))
    }

    fn need_float(&self, key: &str) -> Result<f64, SafetensorsError> {
        self.float(key)?.ok_or_else(|| self.missing(key))
    }

    fn flag(&self, key: &str, default: bool) -> Result<bool, SafetensorsError> {
        let Some(value) = self.get(key) else { return Ok(default) };
        value.as_bool().ok_or_else(|| self.wrong(key, "true or false"))
    }

    fn text(&self, key: &str) -> Result<Option<&'a str>, SafetensorsError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        value.as_str().map(Some).ok_or_else(|| self.wrong(key, "a string"))
    }

    fn object(&self, key: &str) -> Result<Option<Keys<'a>>, SafetensorsError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let object = value.as_object().ok_or_else(|| self.wrong(key, "an object"))?;
        Ok(Some(Keys { object, prefix: format!("{}{key}.", self.prefix) }))
    }

    /// An error unless the key is absent or has this value.
    fn only(
        &self,
        key: &str,
        is_right: impl Fn(&Value) -> bool,
        wanted: &str,
    ) -> Result<(), SafetensorsError> {
        match self.get(key) {
            Some(value) if !is_right(value) => Err(self.wrong(key, wanted)),
            _ => Ok(()),
        }
    }

    /// One id, or several.
    fn ids(&self, key: &str) -> Result<Vec<u32>, SafetensorsError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let one = std::slice::from_ref(value);
        let ids = value.as_array().map_or(one, Vec::as_slice).iter();
        let ids: Option<Vec<u32>> = ids.map(|id| id.as_u64().and_then(|id| u32::try_from(id).ok())).collect();
        ids.ok_or_else(|| self.wrong(key, "a token's number, or several"))
    }
}

/// Beginning of text and ends in `generation_config.json`.
pub(super) fn generation_ids(bytes: &[u8]) -> Result<(Option<u32>, Vec<u32>), SafetensorsError> {
    let value: Value = serde_json::from_slice(bytes)?;
    let nothing = Map::new();
    let keys = Keys { object: value.as_object().unwrap_or(&nothing), prefix: String::new() };
    Ok((keys.ids("bos_token_id")?.first().copied(), keys.ids("eos_token_id")?))
}

/// Reads the file and writes its metadata.
pub(super) fn read(bytes: &[u8], header: &mut GgufHeader) -> Result<Config, SafetensorsError> {
    let value: Value = serde_json::from_slice(bytes)?;
    let Some(object) = value.as_object() else {
        return Err(SafetensorsError::KeyMissing { key: "model_type".to_owned() });
    };
    let keys = Keys { object, prefix: String::new() };
    let model_type = keys.text("model_type")?.ok_or_else(|| keys.missing("model_type"))?;
    let architecture = architecture(&keys, model_type)?;
    refuse_unbuilt(&keys, architecture)?;
    let name = |key: &str| format!("{}.{key}", architecture.name());
    header.text("general.architecture", architecture.name());
    let (width, heads) = (keys.need_number("hidden_size")?, keys.need_number("num_attention_heads")?);
    let layers = keys.need_number("num_hidden_layers")?;
    if layers > LAYERS_MAX {
        return Err(keys.wrong("num_hidden_layers", format!("a number up to {LAYERS_MAX}")));
    }
    let kv_heads = keys.number("num_key_value_heads")?.unwrap_or(match model_type {
        _ if keys.has("num_key_value_heads") => heads,
        "mistral" => 8,
        "qwen2" | "qwen3" => 32,
        "gemma3_text" => 4,
        _ => heads,
    });
    let head_size = keys.number("head_dim")?.unwrap_or(match architecture {
        Architecture::Qwen3 => 128,
        Architecture::Gemma3 => 256,
        _ => width / heads.max(1),
    });
    let context = keys.need_number("max_position_embeddings")?;
    for (key, value) in [
        ("block_count", layers),
        ("context_length", context),
        ("embedding_length", width),
        ("feed_forward_length", keys.need_number("intermediate_size")?),
        ("attention.head_count", heads),
        ("attention.head_count_kv", kv_heads),
        ("attention.key_length", head_size),
        ("attention.value_length", head_size),
        ("rope.dimension_count", head_size),
    ] {
        header.number(&name(key), value);
    }
    header.float(&name("attention.layer_norm_rms_epsilon"), keys.need_float("rms_norm_eps")? as f32);
    if architecture == Architecture::Gemma3 {
        check_scale(&keys, gemma3::scale_size(layers, width, heads.max(1), head_size))?;
        write_cap(&keys, &name("final_logit_softcapping"), header)?;
    }
    let rope = Ropes::new(&keys, architecture)?;
    header.float(&name("rope.freq_base"), rope.base as f32);
    let rope_divisors = match &rope.scaling {
        Some(scaling) => write_scaling(scaling, &rope, head_size, architecture, header)?,
        None => Vec::new(),
    };
    write_window(&keys, &rope, model_type, architecture, layers, header)?;
    Ok(Config {
        architecture,
        layers,
        heads,
        kv_heads,
        is_tied: keys.flag("tie_word_embeddings", architecture == Architecture::Gemma3)?,
        rope_divisors,
        block_size: quantisation(&keys)?,
        eos: keys.ids("eos_token_id")?,
        bos: keys.ids("bos_token_id")?.first().copied(),
    })
}

/// The architecture of a `model_type`.
fn architecture(keys: &Keys<'_>, model_type: &str) -> Result<Architecture, SafetensorsError> {
    Ok(match model_type {
        "llama" | "mistral" => Architecture::Llama,
        "qwen2" => Architecture::Qwen2,
        "qwen3" => Architecture::Qwen3,
        "gemma3_text" => Architecture::Gemma3,
        _ => {
            let wanted = "`llama`, `mistral`, `qwen2`, `qwen3` or `gemma3_text`";
            return Err(keys.wrong("model_type", wanted));
        }
    })
}

fn refuse_unbuilt(keys: &Keys<'_>, architecture: Architecture) -> Result<(), SafetensorsError> {
    let is = |wanted: &'static [&'static str]| move |value: &Value| wanted.iter().any(|one| value == one);
    match architecture {
        Architecture::Gemma3 => {
            keys.only("hidden_activation", is(&["gelu_pytorch_tanh"]), "`gelu_pytorch_tanh`")?;
        }
        _ => keys.only("hidden_act", is(&["silu", "swish"]), "`silu`")?,
    }
    refuse_partial(keys)?;
    keys.only("attn_logit_softcapping", |_| false, "null: soft caps of scores are not built")?;
    if architecture != Architecture::Gemma3 {
        keys.only("final_logit_softcapping", |_| false, "null: it is built for `gemma3_text` only")?;
    }
    let is_false = |value: &Value| value == &Value::Bool(false);
    keys.only("use_bidirectional_attention", is_false, "false: it is not built")
}

/// An error if only a part of a head is rotated.
fn refuse_partial(keys: &Keys<'_>) -> Result<(), SafetensorsError> {
    let is_whole = |value: &Value| value.as_f64() == Some(1.0);
    keys.only("partial_rotary_factor", is_whole, "1: partly rotated heads are not built")
}

/// Metadata has no key for what scales the scores of `gemma3`: it follows from the sizes.
fn check_scale(keys: &Keys<'_>, size: f64) -> Result<(), SafetensorsError> {
    const KEY: &str = "query_pre_attn_scalar";
    let asked = keys.float(KEY)?;
    if asked.unwrap_or(SCALE_SIZE_DEFAULT) == size {
        return Ok(());
    }
    let found = asked.map_or(format!("absent, which means {SCALE_SIZE_DEFAULT}"), |asked| asked.to_string());
    let wanted = format!("{size}: another scale is not built");
    Err(SafetensorsError::Key { key: keys.name(KEY), found, wanted })
}

/// The soft cap of logits. Metadata's 0 is none, so that a cap of 0 cannot be said.
fn write_cap(keys: &Keys<'_>, name: &str, header: &mut GgufHeader) -> Result<(), SafetensorsError> {
    const KEY: &str = "final_logit_softcapping";
    match keys.float(KEY)?.map(|cap| cap as f32) {
        Some(cap) if cap > 0.0 => header.float(name, cap),
        Some(_) => return Err(keys.wrong(KEY, "null or a number above 0")),
        None => {}
    }
    Ok(())
}

/// The rotary embedding: base, scaling, and the base of layers with a window.
struct Ropes<'a> {
    base: f64,
    local_base: f64,
    scaling: Option<Keys<'a>>,
}

impl<'a> Ropes<'a> {
    /// From `rope_theta` and `rope_scaling`, or from `rope_parameters`, which newer files have for both; those of
    /// gemma3 have one for each type of layer. A base that is not in there is where older files have it.
    fn new(keys: &Keys<'a>, architecture: Architecture) -> Result<Ropes<'a>, SafetensorsError> {
        const FULL: &str = "full_attention";
        let is_gemma = architecture == Architecture::Gemma3;
        let older = keys.object("rope_scaling")?;
        let (mut scaling, mut local) = (older.clone(), None);
        if let Some(parameters) = keys.object("rope_parameters")? {
            let newer = if is_gemma {
                local = parameters.object("sliding_attention")?;
                parameters.object(FULL)?.ok_or_else(|| parameters.missing(FULL))?
            } else {
                parameters.only(FULL, |_| false, "nothing: all layers have the same rotary embedding")?;
                parameters
            };
            if older.is_some_and(|older| !is_same_scaling(older.object, newer.object)) {
                return Err(keys.wrong("rope_scaling", "what `rope_parameters` has, or neither of them"));
            }
            scaling = Some(newer);
        }
        for part in scaling.iter().chain(&local) {
            refuse_partial(part)?;
        }
        for key in ["rope_type", "type"] {
            let local = local.as_ref().map(|local| {
                local.only(key, |value| value == "default", "`default`: windows have no scaling")
            });
            local.transpose()?;
        }
        let base = |part: &Option<Keys<'_>>, key: &str, default: f64| {
            let inside = part.as_ref().map(|part| part.float("rope_theta")).transpose()?.flatten();
            let base = if inside.is_some() { inside } else { keys.float(key)? };
            Ok::<f64, SafetensorsError>(base.unwrap_or(default))
        };
        Ok(Ropes {
            base: base(&scaling, "rope_theta", if is_gemma { 1e6 } else { 1e4 })?,
            local_base: base(&local, "rope_local_base_freq", 1e4)?,
            scaling,
        })
    }
}

/// Whether both ask for the same, but for the base, which `rope_scaling` need not have.
fn is_same_scaling(older: &Map<String, Value>, newer: &Map<String, Value>) -> bool {
    const BASE: &str = "rope_theta";
    let has_all = |all: &Map<String, Value>, of: &Map<String, Value>| {
        of.iter().all(|(key, value)| key == BASE || value.is_null() || all.get(key) == Some(value))
    };
    let is_same_base = older.get(BASE).is_none_or(|base| newer.get(BASE) == Some(base));
    is_same_base && has_all(older, newer) && has_all(newer, older)
}

/// Writes a scaling; returns the divisors of frequencies that one of the kinds becomes.
fn write_scaling(
    scaling: &Keys<'_>,
    rope: &Ropes<'_>,
    head_size: u32,
    architecture: Architecture,
    header: &mut GgufHeader,
) -> Result<Vec<f32>, SafetensorsError> {
    let name = |key: &str| format!("{}.rope.scaling.{key}", architecture.name());
    let kind_key = if scaling.get("rope_type").is_some() { "rope_type" } else { "type" };
    match scaling.text(kind_key)?.unwrap_or("default") {
        "default" => {}
        "linear" => {
            header.text(&name("type"), "linear");
            header.float(&name("factor"), scaling.need_float("factor")? as f32);
        }
        "yarn" => {
            let is_true = |value: &Value| value == &Value::Bool(true);
            scaling.only("truncate", is_true, "true: other ramps are not built")?;
            for key in ["attention_factor", "mscale", "mscale_all_dim"] {
                scaling.only(key, |_| false, "null: YaRN's own magnitude is what is built")?;
            }
            header.text(&name("type"), "yarn");
            header.float(&name("factor"), scaling.need_float("factor")? as f32);
            if let Some(original) = scaling.number("original_max_position_embeddings")? {
                header.number(&name("original_context_length"), original);
            }
            for (key, gguf_key) in [("beta_fast", "yarn_beta_fast"), ("beta_slow", "yarn_beta_slow")] {
                if let Some(beta) = scaling.float(key)? {
                    header.float(&name(gguf_key), beta as f32);
                }
            }
        }
        "llama3" if architecture.has_rope_divisors() => {
            return llama3_divisors(scaling, rope.base, head_size);
        }
        _ => {
            return Err(scaling.wrong(kind_key, "`default`, `linear`, `yarn` or, of llama, `llama3`"));
        }
    }
    Ok(Vec::new())
}

/// Llama 3.1's scaling: short waves as they are, long ones by the factor, a ramp between (the transformers library,
/// `_compute_llama3_parameters`). A divisor for each pair.
fn llama3_divisors(scaling: &Keys<'_>, base: f64, head_size: u32) -> Result<Vec<f32>, SafetensorsError> {
    let factor = scaling.need_float("factor")?;
    let [low, high] = [scaling.need_float("low_freq_factor")?, scaling.need_float("high_freq_factor")?];
    let context = f64::from(scaling.need_number("original_max_position_embeddings")?);
    // Numbers of JSON are finite.
    if factor < 1.0 || low <= 0.0 || low >= high {
        return Err(scaling.wrong("factor", "at least 1, with `low_freq_factor` below `high_freq_factor`"));
    }
    let divisor = |pair: u32| {
        let wave = TAU * base.powf(f64::from(2 * pair) / f64::from(head_size));
        let turns = context / wave;
        if turns > high {
            1.0
        } else if turns < low {
            factor
        } else {
            let ramp = (turns - low) / (high - low);
            1.0 / ((1.0 - ramp) / factor + ramp)
        }
    };
    Ok((0..head_size.min(HEAD_SIZE_MAX) / 2).map(|pair| divisor(pair) as f32).collect())
}

/// Layers with a window; of architectures that have none, the window that the metadata's reader refuses.
fn write_window(
    keys: &Keys<'_>,
    rope: &Ropes<'_>,
    model_type: &str,
    architecture: Architecture,
    layers: u32,
    header: &mut GgufHeader,
) -> Result<(), SafetensorsError> {
    const KEY: &str = "sliding_window";
    const TYPES: &str = "layer_types";
    let is_gemma = architecture == Architecture::Gemma3;
    let types = keys.get(TYPES);
    let is_long = |types: &Value| types.as_array().is_some_and(|types| types.len() == layers as usize);
    keys.only(TYPES, is_long, &format!("a list of {layers} types, one for each layer"))?;
    if !is_gemma && types.is_some_and(|types| period_of(types) != Some(1)) {
        return Err(keys.wrong(TYPES, "`full_attention` only: windows are built for `gemma3_text`"));
    }
    let is_used = match architecture {
        Architecture::Qwen2 | Architecture::Qwen3 => keys.flag("use_sliding_window", false)?,
        _ => true,
    };
    if !is_used {
        return Ok(());
    }
    keys.only(KEY, |window| window != 0, "a number above 0")?;
    let window = match keys.number(KEY)? {
        // Where it is null, there is none.
        None if model_type != "llama" && !keys.has(KEY) => Some(WINDOW_DEFAULT),
        window => window,
    };
    let name = |key: &str| format!("{}.{key}", architecture.name());
    match window {
        Some(window) => header.number(&name("attention.sliding_window"), window),
        None if is_gemma => return Err(keys.wrong(KEY, "a number: most layers have a window")),
        None => {}
    }
    if is_gemma {
        let period = match types {
            Some(types) => period_of(types).ok_or_else(|| {
                keys.wrong(TYPES, "`full_attention` after each same number of `sliding_attention`")
            })?,
            None => keys.number("sliding_window_pattern")?.unwrap_or(gemma3::PERIOD),
        };
        header.number(&name("attention.sliding_window_pattern"), period);
        header.float(&name("rope.freq_base_swa"), rope.local_base as f32);
    }
    Ok(())
}

/// The period of full attention in a list of layers; 0 if there is none.
fn period_of(types: &Value) -> Option<u32> {
    let is_full: Option<Vec<bool>> = types
        .as_array()?
        .iter()
        .map(|one| match one.as_str() {
            Some("full_attention") => Some(true),
            Some("sliding_attention") => Some(false),
            _ => None,
        })
        .collect();
    let is_full = is_full?;
    let period = is_full.iter().position(|full| *full).map_or(0, |first| first + 1);
    let fits = |(layer, full): (usize, &bool)| *full == (period > 0 && (layer + 1) % period == 0);
    is_full.iter().enumerate().all(fits).then_some(period as u32)
}

/// How codes and scales go together, and the block of one scale if there are blocks. Types and shapes of the tensors
/// say the rest.
fn quantisation(keys: &Keys<'_>) -> Result<Option<[u32; 2]>, SafetensorsError> {
    let Some(quantisation) = keys.object("quantization_config")? else { return Ok(None) };
    let is_empty = |value: &Value| value.as_object().is_some_and(Map::is_empty);
    quantisation.only("transform_config", is_empty, "null or empty: transforms are not built")?;
    let method = quantisation.text("quant_method")?.unwrap_or_default();
    match method {
        "fp8" => {
            let is_e4m3 = |value: &Value| value == "e4m3";
            quantisation.only("fmt", is_e4m3, "`e4m3`")?;
            block_size(&quantisation, "weight_block_size")
        }
        "compressed-tensors" => {
            let formats = ["float-quantized", "int-quantized", "naive-quantized"];
            let is_known = |value: &Value| formats.iter().any(|known| value == known);
            quantisation.only(
                "format",
                is_known,
                "`float-quantized`, `int-quantized` or `naive-quantized`",
            )?;
            let mut size = None;
            for group in
                quantisation.object("config_groups")?.iter().flat_map(|groups| groups.object.values())
            {
                let Some(weights) = group.get("weights").and_then(Value::as_object) else { continue };
                let weights = Keys { object: weights, prefix: "quantization_config.weights.".to_owned() };
                let is_true = |value: &Value| value == &Value::Bool(true);
                weights.only("symmetric", is_true, "true: zero points are not built")?;
                weights.only("num_bits", |value| value == 8, "8")?;
                size = block_size(&weights, "block_structure")?.or(size);
            }
            Ok(size)
        }
        _ => Err(quantisation.wrong("quant_method", "`fp8` or `compressed-tensors`")),
    }
}

fn block_size(keys: &Keys<'_>, key: &str) -> Result<Option<[u32; 2]>, SafetensorsError> {
    let Some(value) = keys.get(key) else { return Ok(None) };
    let lengths = value.as_array().map(Vec::as_slice).unwrap_or_default();
    let length = |value: &Value| value.as_u64().and_then(|length| u32::try_from(length).ok());
    match lengths.iter().map(length).collect::<Option<Vec<u32>>>().as_deref() {
        Some([rows, columns]) if *rows > 0 && *columns > 0 => Ok(Some([*rows, *columns])),
        _ => Err(keys.wrong(key, "two lengths of a block, rows and columns")),
    }
}
