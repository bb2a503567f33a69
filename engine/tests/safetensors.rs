//! Folders of safetensors: a folder and the GGUF file of the same numbers give the same bits, codes and scales are what
//! their definitions say, and what cannot be run is refused by name.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod folder;

use folder::{Made, byte_tokenizer, file, with_header, words};
use half::bf16;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zrt_engine::executor::Executor;
use zrt_engine::gguf::{Gguf, TensorInfo, TensorKind};
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::oracle::dequantise::dequantise;
use zrt_engine::safetensors::{Folder, open};
use zrt_engine::tokenizer::Tokenizer;

/// The random models, whose golden traces a reference in float64 has made.
fn random_model(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data").join(format!("{name}.gguf"))
}

/// GGUF's name of a tensor in the layers, and that of a folder.
const NAMES: [(&str, &str); 12] = [
    ("attn_norm.", "input_layernorm."),
    ("attn_q.", "self_attn.q_proj."),
    ("attn_k.", "self_attn.k_proj."),
    ("attn_v.", "self_attn.v_proj."),
    ("attn_q_norm.", "self_attn.q_norm."),
    ("attn_k_norm.", "self_attn.k_norm."),
    ("attn_output.", "self_attn.o_proj."),
    ("post_attention_norm.", "post_attention_layernorm."),
    ("post_ffw_norm.", "post_feedforward_layernorm."),
    ("ffn_gate.", "mlp.gate_proj."),
    ("ffn_up.", "mlp.up_proj."),
    ("ffn_down.", "mlp.down_proj."),
];

/// What the transformers library calls a tensor; none for divisors of frequencies, which it computes.
fn stored_name(name: &str, is_gemma: bool) -> Option<String> {
    match name {
        "token_embd.weight" => return Some("model.embed_tokens.weight".into()),
        "output_norm.weight" => return Some("model.norm.weight".into()),
        "output.weight" => return Some("lm_head.weight".into()),
        "rope_freqs.weight" => return None,
        _ => {}
    }
    let (layer, rest) = name.strip_prefix("blk.").unwrap().split_once('.').unwrap();
    let feed_forward = if is_gemma { "pre_feedforward_layernorm." } else { "post_attention_layernorm." };
    let names = NAMES.into_iter().chain([("ffn_norm.", feed_forward)]);
    let (gguf, stored) = names.into_iter().find(|(gguf, _)| rest.starts_with(gguf)).unwrap();
    Some(format!("model.layers.{layer}.{stored}{}", &rest[gguf.len()..]))
}

/// Rows of a matrix with rotary halves, of one with interleaved pairs: element 2j of a head becomes j, and 2j + 1
/// becomes j + half.
fn with_halves(bytes: &[u8], rows: usize, heads: usize) -> Vec<u8> {
    let (row_bytes, head, half) = (bytes.len() / rows, rows / heads, rows / heads / 2);
    let mut halves = vec![0; bytes.len()];
    for (row, from) in bytes.chunks(row_bytes).enumerate() {
        let (first, pair, side) = (row / head * head, row % head / 2, row % 2);
        let to = first + pair + side * half;
        halves[to * row_bytes..][..row_bytes].copy_from_slice(from);
    }
    halves
}

/// The folder of a GGUF file, and the bytes of the file, with norms that 1 can be taken from and added to.
fn folder_of(path: &Path) -> (Made, Vec<u8>) {
    let mut whole = std::fs::read(path).unwrap();
    let gguf = Gguf::open(path).unwrap();
    let name = gguf.metadata.str("general.architecture").unwrap().to_owned();
    let is_gemma = name == "gemma3";
    let number = |key: &str| gguf.metadata.u32(&format!("{name}.{key}")).ok();
    let float = |key: &str| gguf.metadata.f32(&format!("{name}.{key}")).ok();
    let heads = number("attention.head_count").unwrap();
    let kv_heads = number("attention.head_count_kv").unwrap();
    let head = number("attention.key_length").unwrap_or(number("embedding_length").unwrap() / heads);
    let mut config = json!({
        "model_type": if is_gemma { "gemma3_text" } else { &name },
        "hidden_size": number("embedding_length"), "num_hidden_layers": number("block_count"),
        "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head,
        "intermediate_size": number("feed_forward_length"),
        "max_position_embeddings": number("context_length"),
        "rms_norm_eps": float("attention.layer_norm_rms_epsilon"),
        "rope_theta": float("rope.freq_base").unwrap_or(10000.0),
        "tie_word_embeddings": gguf.tensor("output.weight").is_none(),
    });
    let factor = float("rope.scaling.factor");
    if gguf.tensor("rope_freqs.weight").is_some() {
        // As tests/data/make_models.py has it.
        config["rope_scaling"] = json!({"rope_type": "llama3", "factor": LLAMA_3.0, "low_freq_factor": LLAMA_3.1,
            "high_freq_factor": LLAMA_3.2, "original_max_position_embeddings": LLAMA_3.3});
    } else if let Ok(kind) = gguf.metadata.str(&format!("{name}.rope.scaling.type")) {
        config["rope_scaling"] = json!({"rope_type": kind, "factor": factor,
            "original_max_position_embeddings": number("rope.scaling.original_context_length")});
    }
    if is_gemma {
        config["sliding_window"] = json!(number("attention.sliding_window"));
        config["sliding_window_pattern"] = json!(number("attention.sliding_window_pattern"));
        config["rope_local_base_freq"] = json!(float("rope.freq_base_swa"));
        config["query_pre_attn_scalar"] = json!(head);
        config["final_logit_softcapping"] = json!(float("final_logit_softcapping"));
    }
    let mut tensors = Vec::new();
    for tensor in gguf.tensors() {
        let Some(stored) = stored_name(&tensor.name, is_gemma) else { continue };
        let place = tensor.offset as usize..(tensor.offset + tensor.bytes) as usize;
        let mut bytes = whole[place.clone()].to_vec();
        if name == "llama" && tensor.name.contains("attn_q.") {
            bytes = with_halves(&bytes, tensor.rows() as usize, heads as usize);
        } else if name == "llama" && tensor.name.contains("attn_k.") {
            bytes = with_halves(&bytes, tensor.rows() as usize, kv_heads as usize);
        }
        if is_gemma && tensor.name.contains("norm") {
            let less = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes) - 1.0;
            let less: Vec<f32> = bytes.as_chunks().0.iter().map(less).collect();
            bytes = floats(&less);
            let back = floats(&less.iter().map(|less| less + 1.0).collect::<Vec<f32>>());
            whole[place].copy_from_slice(&back);
        }
        let dtype = if tensor.kind == TensorKind::F16 { "F16" } else { "F32" };
        let shape = tensor.dimensions.iter().rev().copied().collect();
        tensors.push((stored, dtype, shape, bytes));
    }
    (Made { config, tokenizer: byte_tokenizer(), tensors, files: Vec::new() }, whole)
}

/// Factor, low and high factor of frequencies, original context of `random-llama-3`.
const LLAMA_3: (f64, f64, f64, u32) = (8.0, 1.0, 4.0, 128);

fn logits(model: &Model, tokens: &[u32]) -> Vec<u32> {
    let mut oracle = Oracle::new(model, 64).unwrap();
    oracle.begin(tokens).unwrap();
    let mut logits = vec![0f32; model.config.vocabulary as usize];
    for _ in tokens {
        oracle.step().unwrap();
    }
    oracle.read_logits(&mut logits).unwrap();
    logits.into_iter().map(f32::to_bits).collect()
}

#[test]
fn a_folder_and_its_gguf_file_give_the_same_bits() {
    let names = [
        "random-qwen2",
        "random-qwen2-yarn",
        "random-llama-3",
        "random-llama-linear",
        "random-llama-heads-of-12",
        "random-gemma3",
        "random-gemma3-capped",
    ];
    for name in names {
        let (made, whole) = folder_of(&random_model(name));
        let expected = Model::load(Arc::new(Gguf::from_bytes(whole).unwrap())).unwrap();
        let found = made.open().unwrap_or_else(|error| panic!("{name}: {}", words(&error)));
        let found = Model::load(Arc::new(found)).unwrap();
        assert_eq!(found.config, expected.config, "{name}");
        assert_eq!(found.rope_divisors().unwrap(), expected.rope_divisors().unwrap(), "{name}");
        for (id, weight) in expected.weights() {
            let read = |model: &Model, tensor: &TensorInfo| {
                (tensor.kind, model.gguf.read_tensor(tensor, 0..tensor.bytes).unwrap())
            };
            let other = &found.weight(id).tensor;
            assert_eq!(read(&found, other), read(&expected, &weight.tensor), "{name}: {id}");
            // In pieces that begin and end within rows.
            let pieces = [0, other.bytes / 3 + 1, other.bytes / 2 + 5, other.bytes];
            let pieces =
                pieces.windows(2).map(|ends| found.gguf.read_tensor(other, ends[0]..ends[1]).unwrap());
            assert_eq!(pieces.flatten().collect::<Vec<u8>>(), read(&found, other).1, "{name}: {id}");
        }
        assert_eq!(found.weights().count(), expected.weights().count());
        let tokens = [1, 5, 9, 2, 30, 7];
        assert_eq!(logits(&found, &tokens), logits(&expected, &tokens), "{name}");
    }
}

/// In shards, through an index, from a folder of the file system.
#[test]
fn shards_are_found_through_their_index() {
    let (made, _) = folder_of(&random_model("random-qwen2"));
    let whole = made.open().unwrap();
    let folder = zrt_needs::TemporaryFolder::new("shards");
    let mut map = serde_json::Map::new();
    for (number, part) in made.tensors.chunks(5).enumerate() {
        let name = format!("model-{number:05}.safetensors");
        part.iter().for_each(|(tensor, ..)| drop(map.insert(tensor.clone(), json!(name))));
        std::fs::write(folder.join(name), file(part)).unwrap();
    }
    let index = json!({"metadata": {"total_size": 1}, "weight_map": map}).to_string();
    std::fs::write(folder.join("model.safetensors.index.json"), index).unwrap();
    std::fs::write(folder.join("config.json"), made.config.to_string()).unwrap();
    let missing = words(&open(&Folder::Path(folder.to_path_buf())).err().unwrap());
    assert_eq!(missing, "the folder has no `tokenizer.json`");
    std::fs::write(folder.join("tokenizer.json"), made.tokenizer.to_string()).unwrap();
    let opened = zrt_engine::safetensors::open_model(&folder).unwrap();
    for tensor in whole.tensors() {
        let read =
            |gguf: &Gguf| gguf.read_tensor(gguf.tensor(&tensor.name).unwrap(), 0..tensor.bytes).unwrap();
        assert_eq!(read(&opened), read(&whole), "{}", tensor.name);
    }
}

/// A value of E4M3 by its definition.
fn e4m3(code: u8) -> f64 {
    let (exponent, fraction) = (i32::from(code / 8 % 16), f64::from(code % 8));
    let value =
        if exponent == 0 { fraction / 512.0 } else { (1.0 + fraction / 8.0) * 2f64.powi(exponent - 7) };
    if code >= 128 { -value } else { value }
}

/// The matrix of a tensor as f32, and what it should be: code times scale in float64, rounded once.
fn check_scaled(
    made: &Made,
    gguf_name: &str,
    codes: &[u8],
    scale: impl Fn(usize, usize) -> f64,
    is_fp8: bool,
) {
    let gguf = made.open().unwrap_or_else(|error| panic!("{}", words(&error)));
    let tensor = gguf.tensor(gguf_name).unwrap();
    let found = dequantise(tensor.kind, &gguf.read_tensor(tensor, 0..tensor.bytes).unwrap()).unwrap();
    let columns = tensor.columns() as usize;
    for (index, (found, code)) in found.iter().zip(codes).enumerate() {
        let value = if is_fp8 { e4m3(*code) } else { f64::from(*code as i8) };
        let expected = (value * scale(index / columns, index % columns)) as f32;
        assert_eq!(*found, expected, "{gguf_name}, element {index}");
    }
    assert_eq!(found.len(), codes.len());
}

fn codes(count: usize) -> Vec<u8> {
    (0..count)
        .map(|index| (index * 37 + index / 96 * 5) as u8)
        .map(|code| if code & 127 == 127 { code - 1 } else { code })
        .collect()
}

fn floats(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// As DeepSeek's and Qwen3's files: blocks of 128 by 128, of which the last ones are cut.
#[test]
fn fp8_in_blocks_has_the_scale_of_its_block() {
    let (rows, columns) = (160, 192);
    let made = Made::llama()
        .with("intermediate_size", json!(rows))
        .with("hidden_size", json!(columns))
        .with("num_attention_heads", json!(12))
        .with("num_key_value_heads", json!(12))
        .with(
            "quantization_config",
            json!({"quant_method": "fp8", "weight_block_size": [128, 128], "fmt": "e4m3"}),
        );
    let codes = codes(rows * columns);
    let scales = [0.37f32, 1.25e-3, 3.0, 0.011];
    let name = "model.layers.0.mlp.gate_proj.weight";
    let made = resized(made, rows as u64, columns as u64)
        .tensor(name, "F8_E4M3", &[rows as u64, columns as u64], codes.clone())
        .tensor(&format!("{name}_scale_inv"), "F32", &[2, 2], floats(&scales));
    let scale = |row: usize, column: usize| f64::from(scales[row / 128 * 2 + column / 128]);
    check_scaled(&made, "blk.0.ffn_gate.weight", &codes, scale, true);
}

/// All tensors of a llama with these lengths; zeros.
fn resized(made: Made, feed_forward: u64, width: u64) -> Made {
    let tensors = made.tensors.iter().map(|(name, _, shape, _)| {
        let length = |length: &u64| match length {
            96 => feed_forward,
            64 | 32 => width,
            other => *other,
        };
        let shape: Vec<u64> = shape.iter().map(length).collect();
        let bytes = vec![0; shape.iter().product::<u64>() as usize * 4];
        (name.clone(), "F32", shape, bytes)
    });
    Made { tensors: tensors.collect(), ..made }
}

fn compressed(format: &str) -> Value {
    json!({"quant_method": "compressed-tensors", "format": format,
        "config_groups": {"group_0": {"weights": {"num_bits": 8, "symmetric": true, "strategy": "channel"}}}})
}

/// As compressed-tensors writes: a scale for each row, in bf16, and one for the whole matrix.
#[test]
fn fp8_and_int8_have_the_scales_of_their_rows_or_of_all() {
    let name = "model.layers.0.mlp.down_proj.weight";
    let codes = codes(64 * 96);
    let of_rows: Vec<bf16> = (0..64).map(|row| bf16::from_f32(0.001 * (row + 1) as f32)).collect();
    let bytes: Vec<u8> = of_rows.iter().flat_map(|scale| scale.to_le_bytes()).collect();
    for (dtype, format, is_fp8) in [("F8_E4M3", "float-quantized", true), ("I8", "int-quantized", false)] {
        let made = Made::llama().with("quantization_config", compressed(format)).tensor(
            name,
            dtype,
            &[64, 96],
            codes.clone(),
        );
        let scale = |row: usize, _: usize| of_rows[row].to_f64();
        for shape in [&[64u64, 1][..], &[64]] {
            let made = made.clone().tensor(&format!("{name}_scale"), "BF16", shape, bytes.clone());
            check_scaled(&made, "blk.0.ffn_down.weight", &codes, scale, is_fp8);
        }
        for shape in [&[][..], &[1], &[1, 1]] {
            let made = made.clone().tensor(&format!("{name}_scale"), "F32", shape, floats(&[0.037]));
            check_scaled(&made, "blk.0.ffn_down.weight", &codes, |_, _| f64::from(0.037f32), is_fp8);
        }
        // Three scales for a row: groups of 32 columns.
        let groups: Vec<f32> = (0..192).map(|index| 0.01 + index as f32).collect();
        let grouped = made.clone().tensor(&format!("{name}_scale"), "F32", &[64, 3], floats(&groups));
        let of_group = |row: usize, column: usize| f64::from(groups[row * 3 + column / 32]);
        check_scaled(&grouped, "blk.0.ffn_down.weight", &codes, of_group, is_fp8);
    }
}

/// Queries and keys of llama change places row by row, each with its scale.
#[test]
fn rows_that_change_places_keep_their_scales() {
    let name = "model.layers.0.self_attn.k_proj.weight";
    let codes = codes(32 * 64);
    let scales: Vec<f32> = (0..32).map(|row| 0.5 + row as f32).collect();
    let made = Made::llama()
        .with("quantization_config", compressed("int-quantized"))
        .tensor(name, "I8", &[32, 64], codes.clone())
        .tensor(&format!("{name}_scale"), "F32", &[32, 1], floats(&scales));
    // Two heads of 16: rows 0, 8, 1, 9, ...
    let from = |row: usize| row / 16 * 16 + row % 2 * 8 + row % 16 / 2;
    let expected: Vec<u8> = (0..32).flat_map(|row| codes[from(row) * 64..][..64].to_vec()).collect();
    check_scaled(&made, "blk.0.attn_k.weight", &expected, |row, _| f64::from(scales[from(row)]), false);
}

#[test]
fn codes_and_scales_that_are_no_numbers_are_refused_when_they_are_read() {
    let name = "model.layers.0.mlp.down_proj.weight";
    let scale_name = format!("{name}_scale");
    let base = Made::llama().with("quantization_config", compressed("float-quantized"));
    let mut nan = codes(64 * 96);
    nan[96 * 3 + 7] = 0xff;
    for (codes, scale, wanted) in [
        (nan, 1.0, format!("tensor {name:?} has a NaN in row 3, column 7")),
        (codes(64 * 96), f32::NAN, format!("tensor {scale_name:?} has the scale NaN")),
        (codes(64 * 96), f32::INFINITY, format!("tensor {scale_name:?} has the scale inf")),
        (codes(64 * 96), 2f32.powi(97), format!("tensor {scale_name:?} has the scale 158456")),
    ] {
        let made = base.clone().tensor(name, "F8_E4M3", &[64, 96], codes);
        let gguf = made.tensor(&scale_name, "F32", &[1], floats(&[scale])).open().unwrap();
        let tensor = gguf.tensor("blk.0.ffn_down.weight").unwrap();
        let found = words(&gguf.read_tensor(tensor, 0..tensor.bytes).unwrap_err());
        assert!(found.contains(&wanted), "{found}");
    }
}

/// Old vectors in bf16 and f16 become f32 without a change.
#[test]
fn vectors_become_f32_exactly() {
    let check = |dtype: &'static str, bytes: Vec<u8>, values: &[f32]| {
        let gguf = Made::llama().tensor("model.norm.weight", dtype, &[64], bytes).open().unwrap();
        let tensor = gguf.tensor("output_norm.weight").unwrap();
        let found = gguf.read_tensor(tensor, 0..tensor.bytes).unwrap();
        assert_eq!((tensor.kind, found), (TensorKind::F32, floats(values)), "{dtype}");
    };
    // By the definitions: 1.5 · 2^k has the exponent k + 15 or k + 127, and the first bit of the fraction.
    let powers = |from: i32| (0..64).map(move |index| from + index % 25);
    let words = |words: Vec<u16>| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let values: Vec<f32> = powers(-14).map(|power| 1.5 * 2f32.powi(power)).collect();
    check("F16", words(powers(-14).map(|power| ((power + 15) as u16) << 10 | 1 << 9).collect()), &values);
    let values: Vec<f32> = powers(-60).map(|power| -1.5 * 2f32.powi(power)).collect();
    let brains = powers(-60).map(|power| 1 << 15 | ((power + 127) as u16) << 7 | 1 << 6);
    check("BF16", words(brains.collect()), &values);
}

#[test]
fn what_cannot_be_run_is_refused_by_name() {
    let base = Made::llama;
    refused(
        base().with("model_type", json!("mixtral")),
        "`config.json` cannot be used: `model_type` is \"mixtral\"",
    );
    refused(base().with("hidden_act", json!("relu")), "`hidden_act` is \"relu\", but `silu`");
    refused(base().with("hidden_size", json!(-1)), "`hidden_size` is -1");
    refused(base().with("rms_norm_eps", Value::Null), "`rms_norm_eps` is missing");
    refused(base().with("num_hidden_layers", json!(100_000)), "`num_hidden_layers` is 100000");
    refused(
        base().with("num_hidden_layers", json!(2)),
        "tensor \"model.layers.1.input_layernorm.weight\" is missing",
    );
    refused(
        base().with("rope_scaling", json!({"rope_type": "longrope"})),
        "`rope_scaling.rope_type` is \"longrope\"",
    );
    let yarn = json!({"type": "yarn", "factor": 4, "mscale": 0.7});
    refused(base().with("rope_scaling", yarn), "`rope_scaling.mscale` is 0.7");
    refused(base().with("tie_word_embeddings", json!(false)), "tensor \"lm_head.weight\" is missing");
    refused(
        base().with("quantization_config", json!({"quant_method": "gptq"})),
        "`quantization_config.quant_method` is \"gptq\"",
    );
    refused(base().with("quantization_config", compressed("pack-quantized")), "`quantization_config.format`");
    refused(
        base().tensor("model.layers.0.self_attn.q_proj.bias", "F32", &[64], vec![0; 256]),
        "q_proj.bias\" has no place",
    );
    refused(
        base().tensor("model.norm.weight", "I8", &[64], vec![0; 64]),
        "\"model.norm.weight\" is of type I8",
    );
    refused(
        base().tensor("model.layers.0.mlp.up_proj.weight", "U8", &[96, 64], vec![0; 96 * 64]),
        "is of type U8",
    );
    let codes = base().tensor("model.layers.0.mlp.up_proj.weight", "I8", &[96, 64], vec![0; 96 * 64]);
    refused(codes.clone(), "tensor \"model.layers.0.mlp.up_proj.weight_scale\" is missing");
    let scale = "model.layers.0.mlp.up_proj.weight_scale";
    refused(codes.clone().tensor(scale, "F32", &[5, 1], vec![0; 20]), "has shape [5, 1]");
    let all = codes.clone().tensor(scale, "F32", &[], floats(&[1.0]));
    all.tensor("model.layers.0.mlp.up_proj.activation_scale", "F32", &[], floats(&[1.0])).open().unwrap();
    refused(codes.tensor(scale, "F8_E8M0", &[96, 1], vec![0; 96]), "is of type F8_E8M0");
    refused(
        base().tensor("model.embed_tokens.weight", "F32", &[512], vec![0; 2048]),
        "a matrix with rows of at least 32",
    );
    refused(
        base().tensor("model.embed_tokens.weight", "F32", &[1 << 20, 0], Vec::new()),
        "a matrix with rows of at least 32",
    );
    let sliding =
        base().with("model_type", json!("mistral")).with("sliding_window", json!(16)).open().unwrap();
    let error = words(&Model::load(Arc::new(sliding)).unwrap_err());
    assert!(error.contains("a sliding window is built for `gemma3` only"), "{error}");
}

/// Without a key of `config.json`.
fn lacking(mut made: Made, key: &str) -> Made {
    made.config.as_object_mut().unwrap().remove(key);
    made
}

fn refused(made: Made, wanted: &str) {
    let error = made.open().err().map(|error| words(&error)).unwrap_or_default();
    assert!(error.contains(wanted), "{error:?} for {wanted:?}");
}

/// Defaults and ranges by the transformers library's `configuration_gemma3.py`.
#[test]
fn keys_of_gemma3_that_are_missing_mean_what_they_mean_to_the_library() {
    let base = || folder_of(&random_model("random-gemma3")).0;
    let layers = base().config["num_hidden_layers"].as_u64().unwrap() as usize;
    let window = |made: Made| {
        let gguf = made.open().unwrap_or_else(|error| panic!("{}", words(&error)));
        gguf.metadata.u32("gemma3.attention.sliding_window").unwrap()
    };
    assert_eq!(window(lacking(base(), "sliding_window")), 4096);
    assert_eq!(window(base().with("sliding_window", json!(5)).with("use_sliding_window", json!(false))), 5);
    refused(base().with("sliding_window", Value::Null), "`sliding_window` is null, but a number");
    refused(base().with("sliding_window", json!(0)), "`sliding_window` is 0, but a number above 0");
    let types = |count: usize| json!(vec!["sliding_attention"; count]);
    let local = base().with("layer_types", types(layers)).open().unwrap();
    assert_eq!(local.metadata.u32("gemma3.attention.sliding_window_pattern").unwrap(), 0);
    refused(base().with("layer_types", types(layers + 1)), "one for each layer");
    refused(lacking(base(), "query_pre_attn_scalar"), "`query_pre_attn_scalar` is absent, which means 256");
    refused(base().with("query_pre_attn_scalar", json!(77)), "`query_pre_attn_scalar` is 77");
    refused(base().with("attn_logit_softcapping", json!(50.0)), "`attn_logit_softcapping` is 50.0");
    refused(base().with("final_logit_softcapping", json!(0)), "`final_logit_softcapping` is 0");
    let parameters =
        |full: Value| json!({"full_attention": full, "sliding_attention": {"rope_type": "default"}});
    let made = lacking(base(), "rope_scaling")
        .with("rope_theta", json!(7e5))
        .with("rope_local_base_freq", json!(3e4));
    let gguf = made.with("rope_parameters", parameters(json!({"rope_type": "default"}))).open().unwrap();
    assert_eq!(gguf.metadata.f32("gemma3.rope.freq_base").unwrap(), 7e5);
    assert_eq!(gguf.metadata.f32("gemma3.rope.freq_base_swa").unwrap(), 3e4);
    refused(base().with("rope_parameters", json!({})), "`rope_parameters.full_attention` is missing");
    let head = lacking(base(), "head_dim").with("query_pre_attn_scalar", json!(256));
    assert_eq!(head.open().unwrap().metadata.u32("gemma3.attention.key_length").unwrap(), 256);
}

/// The same by the configurations of the other types.
#[test]
fn keys_that_are_missing_mean_what_they_mean_to_the_library() {
    let number = |made: Made, key: &str| {
        let gguf = made.open().unwrap_or_else(|error| panic!("{}", words(&error)));
        gguf.metadata.u32(key).ok()
    };
    let mistral = || Made::llama().with("model_type", json!("mistral"));
    assert_eq!(number(mistral(), "llama.attention.sliding_window"), Some(4096));
    let none = mistral().with("sliding_window", Value::Null);
    assert_eq!(number(none, "llama.attention.sliding_window"), None);
    assert_eq!(number(Made::llama(), "llama.attention.sliding_window"), None);
    let kv_heads = |made: Made| number(lacking(made, "num_key_value_heads"), "llama.attention.head_count_kv");
    // Eight heads of keys have no even rows here, which is said by name.
    assert_eq!(kv_heads(Made::llama()), Some(4));
    assert_eq!(kv_heads(mistral()), Some(8));
    let qwen = || folder_of(&random_model("random-qwen2")).0.with("sliding_window", json!(4));
    assert_eq!(number(qwen(), "qwen2.attention.sliding_window"), None);
    let used = qwen().with("use_sliding_window", json!(true));
    assert_eq!(number(used, "qwen2.attention.sliding_window"), Some(4));
    let count = qwen().config["num_hidden_layers"].as_u64().unwrap() as usize;
    let types = vec!["sliding_attention"; count];
    refused(qwen().with("layer_types", json!(types)), "windows are built for `gemma3_text`");
    refused(qwen().with("final_logit_softcapping", json!(30.0)), "`final_logit_softcapping` is 30.0");

    let linear = json!({"rope_type": "linear", "factor": 8.0});
    let with_base = json!({"rope_type": "linear", "factor": 8.0, "rope_theta": 5e5});
    let both = Made::llama().with("rope_scaling", linear.clone()).with("rope_parameters", with_base);
    assert_eq!(both.open().unwrap().metadata.f32("llama.rope.freq_base").unwrap(), 5e5);
    let four = json!({"rope_type": "linear", "factor": 4.0});
    let differ = Made::llama().with("rope_scaling", linear.clone()).with("rope_parameters", four);
    refused(differ, "what `rope_parameters` has");
    let outside = Made::llama().with("rope_theta", json!(6e5)).with("rope_parameters", linear);
    assert_eq!(outside.open().unwrap().metadata.f32("llama.rope.freq_base").unwrap(), 6e5);
    let half = json!({"rope_type": "default", "partial_rotary_factor": 0.5});
    refused(Made::llama().with("rope_parameters", half), "`rope_parameters.partial_rotary_factor` is 0.5");
    let quantised = |transforms: Value| {
        let mut value = compressed("int-quantized");
        value["transform_config"] = transforms;
        Made::llama().with("quantization_config", value)
    };
    quantised(json!({})).open().unwrap();
    refused(quantised(json!({"config_groups": {"R1": {}}})), "`quantization_config.transform_config` is {");
}

/// More rows than GGUF has elements of an array: a file of two gigabytes with holes, as it is only mapped.
#[test]
fn an_embedding_of_too_many_rows_is_refused_before_they_are_counted_out() {
    let rows = (1u64 << 26) + 1;
    let header = json!({"model.embed_tokens.weight":
        {"dtype": "I8", "shape": [rows, 32], "data_offsets": [0, rows * 32]}});
    let bytes = with_header(&header.to_string(), &[]);
    let folder = zrt_needs::TemporaryFolder::new("rows");
    let path = folder.join("model.safetensors");
    std::fs::write(&path, &bytes).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(bytes.len() as u64 + rows * 32).unwrap();
    std::fs::write(folder.join("config.json"), Made::llama().config.to_string()).unwrap();
    std::fs::write(folder.join("tokenizer.json"), byte_tokenizer().to_string()).unwrap();
    let error = open(&Folder::Path(folder.to_path_buf())).err().map(|error| words(&error));
    assert_eq!(error.as_deref(), Some("there are more than 67108864 rows of the embedding"));
}

#[test]
fn an_index_names_files_of_its_folder_only() {
    for name in ["../model.safetensors", "/etc/passwd", "", ".hidden"] {
        let mut made = Made::llama();
        let index = json!({"weight_map": {"a": name}}).to_string();
        made.files.push(("model.safetensors.index.json", index.into_bytes()));
        // The one file wins over a stale index.
        made.open().unwrap();
        let mut files = made.files();
        files.remove("model.safetensors");
        let error = words(&open(&Folder::Memory(files)).err().unwrap());
        assert!(error.contains("is no name of a file in the folder"), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// One byte of one file is another: opening and reading end in a value or an error.
    #[test]
    fn damaged_folders_end_in_a_value_or_an_error(which in 0..3usize, at in any::<prop::sample::Index>(), byte: u8) {
        let mut files = Made::llama().files();
        let name = ["config.json", "tokenizer.json", "model.safetensors"][which];
        let mut bytes = match which {
            0 => Made::llama().config.to_string().into_bytes(),
            1 => Made::llama().tokenizer.to_string().into_bytes(),
            _ => file(&Made::llama().tensors),
        };
        // Of the file of tensors the header.
        let range = if which == 2 { bytes.len().min(1200) } else { bytes.len() };
        let at = at.index(range);
        bytes[at] = byte;
        files.insert(name.into(), bytes.into());
        if let Ok(gguf) = open(&Folder::Memory(files)) {
            for tensor in gguf.tensors() {
                let _ = gguf.read_tensor(tensor, 0..tensor.bytes);
            }
            let _ = Tokenizer::from_gguf(&gguf);
            let _ = Model::load(Arc::new(gguf));
        }
    }
}
