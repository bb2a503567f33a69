//! Folders of safetensors that tests make, in memory.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.
#![allow(dead_code)] // Each test file uses a part.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use zrt_engine::gguf::{Bytes, Gguf};
use zrt_engine::safetensors::{Folder, SafetensorsError, open};

/// A tensor of a file: name, type, shape, bytes.
pub type Tensor = (String, &'static str, Vec<u64>, Vec<u8>);

/// A file of tensors, as the format's description has it.
pub fn file(tensors: &[Tensor]) -> Vec<u8> {
    let (mut header, mut data) = (Map::new(), Vec::new());
    header.insert("__metadata__".into(), json!({"format": "pt"}));
    for (name, dtype, shape, bytes) in tensors {
        let offsets = [data.len(), data.len() + bytes.len()];
        header.insert(name.clone(), json!({"dtype": dtype, "shape": shape, "data_offsets": offsets}));
        data.extend(bytes);
    }
    with_header(&Value::Object(header).to_string(), &data)
}

/// The same with any text as header.
pub fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
}

/// A folder under construction.
#[derive(Clone)]
pub struct Made {
    pub config: Value,
    pub tokenizer: Value,
    pub tensors: Vec<Tensor>,
    /// Further files.
    pub files: Vec<(&'static str, Vec<u8>)>,
}

impl Made {
    /// A llama of one layer, width 64, four heads of 16, two of keys and values, 8 tokens; every number is 0.25.
    pub fn llama() -> Made {
        let config = json!({
            "model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_key_value_heads": 2,
            "num_hidden_layers": 1, "intermediate_size": 96, "max_position_embeddings": 128,
            "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": true, "vocab_size": 8
        });
        let layer = |name: &str| format!("model.layers.0.{name}.weight");
        let mut tensors = Vec::new();
        for (name, shape) in [
            ("model.embed_tokens.weight".to_owned(), vec![8u64, 64]),
            ("model.norm.weight".to_owned(), vec![64]),
            (layer("input_layernorm"), vec![64]),
            (layer("post_attention_layernorm"), vec![64]),
            (layer("self_attn.q_proj"), vec![64, 64]),
            (layer("self_attn.k_proj"), vec![32, 64]),
            (layer("self_attn.v_proj"), vec![32, 64]),
            (layer("self_attn.o_proj"), vec![64, 64]),
            (layer("mlp.gate_proj"), vec![96, 64]),
            (layer("mlp.up_proj"), vec![96, 64]),
            (layer("mlp.down_proj"), vec![64, 96]),
        ] {
            let count = shape.iter().product::<u64>() as usize;
            tensors.push((name, "F32", shape, 0.25f32.to_le_bytes().repeat(count)));
        }
        Made { config, tokenizer: byte_tokenizer(), tensors, files: Vec::new() }
    }

    /// With a key of `config.json`.
    pub fn with(mut self, key: &str, value: Value) -> Made {
        self.config[key] = value;
        self
    }

    /// With a tensor, in place of one that has its name.
    pub fn tensor(mut self, name: &str, dtype: &'static str, shape: &[u64], bytes: Vec<u8>) -> Made {
        self.tensors.retain(|(other, ..)| other != name);
        self.tensors.push((name.to_owned(), dtype, shape.to_vec(), bytes));
        self
    }

    /// Without a tensor.
    pub fn without(mut self, name: &str) -> Made {
        self.tensors.retain(|(other, ..)| other != name);
        self
    }

    pub fn files(&self) -> BTreeMap<String, Bytes> {
        let mut files = BTreeMap::from([
            ("config.json".to_owned(), self.config.to_string().into_bytes().into()),
            ("tokenizer.json".to_owned(), self.tokenizer.to_string().into_bytes().into()),
            ("model.safetensors".to_owned(), file(&self.tensors).into()),
        ]);
        files.extend(self.files.iter().map(|(name, bytes)| ((*name).to_owned(), bytes.clone().into())));
        files
    }

    pub fn open(&self) -> Result<Gguf, SafetensorsError> {
        open(&Folder::Memory(self.files()))
    }
}

/// A tokenizer without tokens: all numbers are place holders.
pub fn byte_tokenizer() -> Value {
    json!({
        "added_tokens": [], "normalizer": null, "post_processor": null,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true},
        "model": {"type": "BPE", "dropout": null, "unk_token": null, "byte_fallback": false,
                  "ignore_merges": false, "vocab": {}, "merges": []}
    })
}

/// An error with its causes.
pub fn words(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// A folder with a tokenizer, and an embedding of as many rows as it has tokens.
pub fn folder_with(tokenizer: Value, tokens: usize) -> Made {
    let embedding = vec![0; tokens * 64 * 4];
    let made = Made::llama().tensor("model.embed_tokens.weight", "F32", &[tokens as u64, 64], embedding);
    Made { tokenizer, ..made }
}

/// What a folder is refused with; nothing if it is taken.
pub fn refusal(made: &Made) -> String {
    made.open().err().map(|error| words(&error)).unwrap_or_default()
}

/// The same of a tokenizer, for an embedding of 300 rows, after the name of its file.
pub fn refusal_of(tokenizer: Value) -> String {
    let error = refusal(&folder_with(tokenizer, 300));
    let of_file = error.strip_prefix("`tokenizer.json` cannot be used: ");
    of_file.map_or_else(|| error.clone(), str::to_owned)
}

/// A tokenizer with another part.
pub fn with(mut tokenizer: Value, path: &[&str], value: &Value) -> Value {
    *path.iter().fold(&mut tokenizer, |value, key| &mut value[*key]) = value.clone();
    tokenizer
}

/// The metadata that a tokenizer becomes, with place holders up to 300 tokens.
pub fn metadata_of(tokenizer: Value) -> Gguf {
    folder_with(tokenizer, 300).open().unwrap_or_else(|error| panic!("{}", words(&error)))
}
