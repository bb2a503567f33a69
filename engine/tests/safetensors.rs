//! Folders of safetensors: a folder and the GGUF file of the same numbers give the same bits, codes and scales are what
//! their definitions say, and what cannot be run is refused by name.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod folder;

use folder::{Made, byte_tokenizer, file, with_header, words};
use half::bf16;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Read;
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
    let values: Vec<bf16> = (0..64).map(|index| bf16::from_f32(0.1 * index as f32 - 3.0)).collect();
    let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let gguf = Made::llama().tensor("model.norm.weight", "BF16", &[64], bytes).open().unwrap();
    let tensor = gguf.tensor("output_norm.weight").unwrap();
    let found = gguf.read_tensor(tensor, 0..tensor.bytes).unwrap();
    let expected: Vec<u8> = values.iter().flat_map(|value| value.to_f32().to_le_bytes()).collect();
    assert_eq!((tensor.kind, found), (TensorKind::F32, expected));
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
fn headers_whose_parts_do_not_fit_are_refused() {
    let with = |bytes: Vec<u8>| {
        let mut files = Made::llama().files();
        files.insert("model.safetensors".into(), bytes.into());
        words(&open(&Folder::Memory(files)).err().unwrap())
    };
    let entry = |name: &str, dtype: &str, shape: &str, offsets: &str| {
        format!("{name:?}:{{\"dtype\":{dtype:?},\"shape\":{shape},\"data_offsets\":{offsets}}}")
    };
    let one = |dtype: &str, shape: &str, offsets: &str| {
        with(with_header(&format!("{{{}}}", entry("a", dtype, shape, offsets)), &[0; 16]))
    };
    for (found, wanted) in [
        (with(Vec::new()), "it is cut: a header of 0 bytes does not fit into 0"),
        (with(vec![200, 0, 0, 0, 0, 0, 0, 0, b'{']), "a header of 200 bytes does not fit into 9"),
        (with(vec![0xff; 16]), "above the limit of 100000000"),
        (with(with_header("[]", &[])), "an object is needed"),
        (with(with_header("{} x", &[])), "the end of the file is needed"),
        (with(with_header("{\"a\": {\"dtype\": \"F32\"}}", &[])), "tensor \"a\" has no `shape`"),
        (one("F12", "[4]", "[0,16]"), "the unknown type \"F12\""),
        (one("F32", "[4]", "[0,12]"), "which is not its size"),
        (one("F32", "[4]", "[16,0]"), "which is not its size"),
        (one("F32", "[5]", "[0,20]"), "ends at byte 20 of 16"),
        (one("F32", "[4294967296,4294967296]", "[0,0]"), "which is not its size"),
        (one("F32", "[-1]", "[0,16]"), "a whole number from 0"),
        (one("F32", "[4]", "[0,16,32]"), "has no two `data_offsets`"),
        (
            with(with_header(
                &format!("{{{},{}}}", entry("a", "I8", "[9]", "[0,9]"), entry("b", "I8", "[8]", "[8,16]")),
                &[0; 16],
            )),
            "tensors \"a\" and \"b\" share bytes",
        ),
        (
            with(with_header(
                &format!("{{{},{}}}", entry("a", "I8", "[8]", "[0,8]"), entry("a", "I8", "[8]", "[8,16]")),
                &[0; 16],
            )),
            "tensor \"a\" occurs twice",
        ),
    ] {
        assert!(found.contains(wanted), "{found:?} for {wanted:?}");
    }
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

/// The vocabulary of a GGUF file as `tokenizer.json`.
fn tokenizer_json(
    gguf: &Gguf,
    pre_tokenizer: Value,
    normalizer: Value,
    takes_whole: bool,
    falls_back: bool,
) -> Value {
    let texts = gguf.metadata.strings("tokenizer.ggml.tokens").unwrap();
    let kinds = gguf.metadata.i32s("tokenizer.ggml.token_type").unwrap();
    let (mut vocab, mut added) = (serde_json::Map::new(), Vec::new());
    for (id, (text, kind)) in texts.iter().zip(kinds).enumerate() {
        match kind {
            2..=4 => added.push(json!({"id": id, "content": text, "special": *kind != 4,
                "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})),
            5 => {}
            _ => drop(vocab.insert(text.to_owned(), json!(id))),
        }
    }
    // Newer files have a list of two for each merge.
    let merges: Vec<Value> = gguf
        .metadata
        .strings("tokenizer.ggml.merges")
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, merge)| {
            match merge.split_once(' ').filter(|(left, _)| !left.is_empty() && index % 2 == 0) {
                Some((left, right)) => json!([left, right]),
                None => json!(merge),
            }
        })
        .collect();
    json!({"version": "1.0", "truncation": null, "added_tokens": added, "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer, "decoder": {"type": "ByteLevel"},
        "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}]},
        "model": {"type": "BPE", "unk_token": null, "byte_fallback": falls_back, "ignore_merges": takes_whole,
            "vocab": vocab, "merges": merges}})
}

/// A folder with a tokenizer, and an embedding of as many rows as it has tokens.
fn folder_with(tokenizer: Value, tokens: usize) -> Made {
    let embedding = vec![0; tokens * 64 * 4];
    let made = Made::llama().tensor("model.embed_tokens.weight", "F32", &[tokens as u64, 64], embedding);
    Made { tokenizer, ..made }
}

fn vocabulary(folder: &Path, name: &str) -> Gguf {
    let packed = folder.join("vocab").join(format!("{name}.gguf.gz"));
    let mut bytes = Vec::new();
    match std::fs::File::open(packed) {
        Ok(packed) => drop(flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap()),
        Err(_) => bytes = std::fs::read(folder.join("vocab").join(format!("{name}.gguf"))).unwrap(),
    }
    Gguf::from_bytes(bytes).unwrap()
}

fn split(expression: &str) -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})
}

/// The texts of llama.cpp's vectors become the same tokens.
#[test]
fn vocabularies_encode_the_vectors_through_tokenizer_json() {
    let Some(folder) = zrt_needs::models() else { return };
    const LLAMA: &str = concat!(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    );
    let qwen2 = LLAMA.replace("{1,3}", "");
    let qwen35 =
        qwen2.replace(r"\p{L}+|", r"[\p{L}\p{M}]+|").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]");
    let bytes =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let spaces = json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
    let cases = [
        ("ggml-vocab-gpt-2", bytes, Value::Null, false, false, 47),
        ("ggml-vocab-llama-bpe", split(LLAMA), Value::Null, true, false, 47),
        ("ggml-vocab-qwen2", split(&qwen2), json!({"type": "NFC"}), false, false, 47),
        ("ggml-vocab-qwen35", split(&qwen35), json!({"type": "NFC"}), false, false, 51),
        ("ggml-vocab-gemma-4", Value::Null, spaces, false, true, 46),
    ];
    for (name, pre_tokenizer, normalizer, takes_whole, falls_back, count) in cases {
        let gguf = vocabulary(&folder, name);
        let tokens = gguf.metadata.strings("tokenizer.ggml.tokens").unwrap().len();
        let tokenizer = tokenizer_json(&gguf, pre_tokenizer, normalizer, takes_whole, falls_back);
        let made = folder_with(tokenizer, tokens).open();
        let made = made.unwrap_or_else(|error| panic!("{name}: {}", words(&error)));
        let tokenizer = Tokenizer::from_gguf(&made).unwrap();
        let read = |ending: &str| {
            std::fs::read_to_string(folder.join("vocab").join(format!("{name}.gguf.{ending}")))
        };
        let (inputs, outputs) = (read("inp").unwrap(), read("out").unwrap());
        let cases = inputs.split("\n__ggml_vocab_test__\n").zip(outputs.split('\n'));
        let mut checked = 0;
        for (input, output) in cases {
            let expected: Vec<u32> = output.split_whitespace().map(|id| id.parse().unwrap()).collect();
            assert_eq!(tokenizer.encode_plain(input), expected, "{name}: {input:?}");
            checked += 1;
        }
        assert_eq!(checked, count, "{name}");
    }
}

/// A vocabulary of bytes and a few merges, with a space in front, as Llama 2's files have it. By hand: `▁a` is joined
/// first, then `▁ab`; `é` is no token and becomes its bytes.
#[test]
fn characters_with_a_space_in_front_and_bytes_for_the_rest() {
    let mut vocab = serde_json::Map::new();
    (0..256).for_each(|byte| drop(vocab.insert(format!("<0x{byte:02X}>"), json!(byte + 3))));
    // The last one is no byte.
    let texts = ["\u{2581}", "a", "b", "\u{2581}a", "\u{2581}ab", "bb", "<0x+F>"];
    for (id, text) in texts.iter().enumerate() {
        vocab.insert((*text).into(), json!(id + 259));
    }
    let special = |id: u32, text: &str| json!({"id": id, "content": text, "special": true});
    let tokenizer = json!({
        // The last one is behind the last row, as Gemma 3's token of images.
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>"), special(300, "<image>")],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "\u{2581}"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"}]},
        "pre_tokenizer": null,
        "post_processor": {"type": "TemplateProcessing", "single": [
            {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": true, "vocab": vocab,
            "merges": ["\u{2581} a", "\u{2581}a b", "b b"]}
    });
    let mut made = folder_with(tokenizer, 300);
    made.files.push(("generation_config.json", br#"{"eos_token_id": [2, 7]}"#.to_vec()));
    made.files.push(("tokenizer_config.json", br#"{"chat_template": "{{ messages }}"}"#.to_vec()));
    let gguf = made.open().unwrap();
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    assert_eq!(tokenizer.encode("ab"), [1, 263]);
    // The end token is plain text: its four bytes.
    let bytes = b"</s>".map(|byte| u32::from(byte) + 3);
    let expected = [&[263, 263, 261][..], &bytes, &[261]].concat();
    assert_eq!(tokenizer.encode_plain("ab abb</s>b"), expected);
    assert_eq!(tokenizer.encode_plain("bb"), [259, 264]);
    assert_eq!(tokenizer.encode_plain("\u{e9}"), [259, 0xc3 + 3, 0xa9 + 3]);
    assert_eq!(tokenizer.encode("<s>a"), [1, 1, 262]);
    assert!(tokenizer.is_end(2) && tokenizer.is_end(7) && !tokenizer.is_end(3));
    assert_eq!(tokenizer.token_text(299), Some("[PAD299]"));
    assert_eq!(tokenizer.token_count(), 300);
    let kinds = gguf.metadata.i32s("tokenizer.ggml.token_type").unwrap();
    assert_eq!((kinds[15 + 3], kinds[265]), (6, 1), "a byte, and text that is like one");
    assert_eq!(gguf.metadata.str("tokenizer.chat_template").unwrap(), "{{ messages }}");
    made.files.push(("chat_template.jinja", b"{{ bos_token }}".to_vec()));
    assert_eq!(made.open().unwrap().metadata.str("tokenizer.chat_template").unwrap(), "{{ bos_token }}");
    made.files.push(("chat_template.jinja", b"{{ \xff }}".to_vec()));
    refused(made, "`chat_template.jinja` cannot be used: it is not UTF-8");
}

/// Files from before the key have no `use_regex`, and the tokenizers library takes it for true.
#[test]
fn a_pre_tokenizer_of_bytes_splits_if_it_does_not_say() {
    let mut made = Made::llama();
    made.tokenizer["pre_tokenizer"] =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true});
    assert_eq!(made.open().unwrap().metadata.str("tokenizer.ggml.pre").unwrap(), "gpt-2");
}

#[test]
fn tokenizers_that_are_not_built_are_refused_by_part() {
    let refused = |path: &[&str], value: Value, wanted: &str| {
        let mut made = Made::llama();
        let place = path.iter().fold(&mut made.tokenizer, |value, key| &mut value[*key]);
        *place = value;
        let error = made.open().err().map(|error| words(&error)).unwrap_or_default();
        assert!(
            error.starts_with("`tokenizer.json` cannot be used: ") && error.contains(wanted),
            "{error:?}"
        );
    };
    refused(&["model", "type"], json!("Unigram"), "this model of a tokenizer is not built: Unigram");
    refused(&["model", "dropout"], json!(0.1), "dropout");
    refused(&["model", "end_of_word_suffix"], json!("</w>"), "</w>");
    refused(&["model", "ignore_merges"], json!(true), "`ignore_merges` is not built: true of gpt-2");
    refused(
        &["model", "vocab"],
        json!({"a": 8}),
        "token \"a\" has the number 8, but the embedding has 8 rows",
    );
    refused(&["model", "merges"], json!([["a b", "c"]]), "this merge is not built");
    refused(&["normalizer"], json!({"type": "Lowercase"}), "this normaliser is not built: Lowercase");
    refused(&["pre_tokenizer"], json!({"type": "Whitespace"}), "this pre-tokenizer is not built: Whitespace");
    refused(&["pre_tokenizer"], split(r"\w+"), r"Split Regex=\w+");
    refused(
        &["post_processor"],
        json!({"type": "BertProcessing"}),
        "this post-processor is not built: BertProcessing",
    );
    refused(&["added_tokens"], json!([{"id": 1, "content": "x", "lstrip": true}]), "lstrip");
    refused(&["model", "byte_fallback"], json!(true), "this normaliser is not built");
}
