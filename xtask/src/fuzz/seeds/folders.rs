//! Folders of safetensors as seeds: their files one after another, with a zero byte between.

use serde_json::{Map, Value, json};

/// Width, tokens.
const WIDTH: u64 = 32;
const TOKENS: u64 = 264;

/// A llama in FP8 and INT8 with a tokenizer of bytes.
pub(super) fn bytes() -> Vec<u8> {
    let groups = json!({"a": {"weights": {"num_bits": 8, "symmetric": true}}});
    let config = json!({
        "model_type": "llama", "rope_scaling": {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
            "high_freq_factor": 4.0, "original_max_position_embeddings": 32},
        "quantization_config": {"quant_method": "compressed-tensors", "format": "naive-quantized",
            "config_groups": groups}
    });
    let tokenizer = json!({
        "added_tokens": [{"id": 3, "content": "<s>", "special": true}],
        "normalizer": {"type": "NFC"},
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [
            {"type": "Digits", "individual_digits": true},
            {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true}]},
        "post_processor": {"type": "TemplateProcessing", "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [3], "tokens": ["<s>"]}}},
        "model": {"type": "BPE", "vocab": {"O": 0, "n": 1, "On": 2}, "merges": [["O", "n"]]}
    });
    let names = ["input_layernorm", "post_attention_layernorm"];
    folder(config, &tokenizer, &names, |name| if name.contains("mlp") { "I8" } else { "F8_E4M3" })
}

/// A gemma in BF16 with a tokenizer of characters.
pub(super) fn characters() -> Vec<u8> {
    let config = json!({
        "model_type": "gemma3_text", "sliding_window": 16, "query_pre_attn_scalar": 16,
        "layer_types": ["full_attention"],
        "rope_parameters": {"full_attention": {"rope_type": "yarn", "factor": 2.0, "rope_theta": 1e6},
            "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
    });
    let mut vocabulary: Map<String, Value> =
        (0..256).map(|byte| (format!("<0x{byte:02X}>"), json!(byte))).collect();
    for (id, text) in [(256, "O"), (257, "n"), (258, "On")] {
        vocabulary.insert(text.to_owned(), json!(id));
    }
    let tokenizer = json!({
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"},
        "model": {"type": "BPE", "byte_fallback": true, "vocab": vocabulary, "merges": ["O n"]}
    });
    let names = [
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
        "self_attn.q_norm",
        "self_attn.k_norm",
    ];
    folder(config, &tokenizer, &names, |_| "BF16")
}

/// One layer with two heads of 16. Matrices have 32 rows, the embedding one for each token.
fn folder(
    mut config: Value,
    tokenizer: &Value,
    norms: &[&str],
    dtype: impl Fn(&str) -> &'static str,
) -> Vec<u8> {
    for (key, value) in [
        ("hidden_size", json!(WIDTH)),
        ("num_attention_heads", json!(2)),
        ("num_key_value_heads", json!(2)),
        ("head_dim", json!(16)),
        ("num_hidden_layers", json!(1)),
        ("intermediate_size", json!(WIDTH)),
        ("max_position_embeddings", json!(64)),
        ("rms_norm_eps", json!(1e-5)),
        ("tie_word_embeddings", json!(true)),
    ] {
        config[key] = value;
    }
    let projections = ["q_proj", "k_proj", "v_proj", "o_proj"].map(|name| format!("self_attn.{name}"));
    let feed_forward = ["gate_proj", "up_proj", "down_proj"].map(|name| format!("mlp.{name}"));
    let (mut header, mut data) = (Map::new(), Vec::new());
    let mut put = |name: String, dtype: &str, shape: &[u64]| {
        let (bytes, element): (u64, &[u8]) = match dtype {
            "F32" => (4, &[0, 0, 0, 0x3f]),
            "BF16" => (2, &[0, 0x3f]),
            _ => (1, &[0x31]),
        };
        let len = shape.iter().product::<u64>() * bytes;
        let begin = data.len() as u64;
        header.insert(name, json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, begin + len]}));
        data.extend(element.iter().cycle().take(len as usize));
    };
    put("model.embed_tokens.weight".to_owned(), "BF16", &[TOKENS, WIDTH]);
    put("model.norm.weight".to_owned(), "BF16", &[WIDTH]);
    for name in norms {
        let length = if name.contains("self_attn") { 16 } else { WIDTH };
        put(format!("model.layers.0.{name}.weight"), "F32", &[length]);
    }
    for name in projections.into_iter().chain(feed_forward) {
        let name = format!("model.layers.0.{name}.weight");
        let dtype = dtype(&name);
        put(name.clone(), dtype, &[WIDTH, WIDTH]);
        if matches!(dtype, "I8" | "F8_E4M3") {
            put(format!("{name}_scale"), "F32", &[WIDTH, 1]);
        }
    }
    let header = Value::Object(header).to_string();
    [config.to_string().as_bytes(), &[0], tokenizer.to_string().as_bytes(), &[0]]
        .concat()
        .into_iter()
        .chain((header.len() as u64).to_le_bytes())
        .chain(header.into_bytes())
        .chain(data)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use zrt_engine::gguf::Bytes;
    use zrt_engine::model::Model;
    use zrt_engine::safetensors::{Folder, open};
    use zrt_engine::tokenizer::Tokenizer;

    #[test]
    fn folders_open_and_their_tensors_are_read() {
        for seed in [bytes(), characters()] {
            let parts = seed.splitn(3, |byte| *byte == 0).map(|part| Bytes::from(part.to_vec()));
            let names = ["config.json", "tokenizer.json", "model.safetensors"].map(str::to_owned);
            let gguf = open(&Folder::Memory(names.into_iter().zip(parts).collect())).unwrap();
            for tensor in gguf.tensors() {
                assert!(gguf.read_tensor(tensor, 0..tensor.bytes).is_ok(), "{}", tensor.name);
            }
            let tokens = Tokenizer::from_gguf(&gguf).unwrap().encode_plain("On");
            assert_eq!(tokens.len(), 1);
            assert_eq!(u64::from(Model::load(Arc::new(gguf)).unwrap().config.vocabulary), TOKENS);
        }
    }
}
