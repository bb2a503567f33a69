//! Folders of safetensors at the edges of what is read: each default, limit and sentence, and the first value beyond.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod folder;

use folder::{Made, byte_tokenizer, refusal, with_header, words};
use serde_json::{Value, json};
use std::f64::consts::TAU;
use zrt_engine::gguf::Gguf;
use zrt_engine::safetensors::{Folder, open};

const EMBEDDING: &str = "model.embed_tokens.weight";
/// What a file is refused for whose tensors are read and of which the first is not there.
const NO_EMBEDDING: &str = "tensor \"model.embed_tokens.weight\" is missing";

fn opened(made: &Made) -> Gguf {
    made.open().unwrap_or_else(|error| panic!("{}", words(&error)))
}

fn refused(made: &Made, wanted: &str) {
    let error = refusal(made);
    assert!(error.contains(wanted), "{error:?} for {wanted:?}");
}

/// Without a key of `config.json`.
fn lacking(mut made: Made, key: &str) -> Made {
    made.config.as_object_mut().unwrap().remove(key);
    made
}

fn ones(count: u64) -> Vec<u8> {
    1f32.to_le_bytes().repeat(count as usize)
}

/// The folder of a llama with what the layers of this type have besides.
fn of_type(model_type: &str) -> Made {
    let within = |name: &str| format!("model.layers.0.{name}");
    let mut made = Made::llama().with("model_type", json!(model_type));
    let more: &[(&str, u64)] = match model_type {
        "qwen2" => {
            &[("self_attn.q_proj.bias", 64), ("self_attn.k_proj.bias", 32), ("self_attn.v_proj.bias", 32)]
        }
        "qwen3" => &[("self_attn.q_norm.weight", 16), ("self_attn.k_norm.weight", 16)],
        "gemma3_text" => &[
            ("self_attn.q_norm.weight", 16),
            ("self_attn.k_norm.weight", 16),
            ("pre_feedforward_layernorm.weight", 64),
            ("post_feedforward_layernorm.weight", 64),
        ],
        _ => &[],
    };
    for (name, length) in more {
        made = made.tensor(&within(name), "F32", &[*length], ones(*length));
    }
    match model_type {
        "gemma3_text" => {
            lacking(made, "hidden_act").with("head_dim", json!(16)).with("query_pre_attn_scalar", json!(16))
        }
        _ => made,
    }
}

/// As the configurations of the transformers library have it, which take sizes from one published model each.
#[test]
fn heads_that_are_not_said_are_those_of_the_type() {
    for (model_type, kv_heads, head_size) in
        [("llama", 2, 32), ("mistral", 8, 32), ("qwen2", 32, 32), ("qwen3", 32, 128), ("gemma3_text", 4, 256)]
    {
        let prefix = match model_type {
            "mistral" => "llama",
            "gemma3_text" => "gemma3",
            other => other,
        };
        let number =
            |made: &Made, key: &str| opened(made).metadata.u32(&format!("{prefix}.attention.{key}")).unwrap();
        let made =
            of_type(model_type).with("num_attention_heads", json!(2)).with("num_key_value_heads", json!(1));
        assert_eq!(number(&made, "head_count_kv"), 1, "{model_type}");
        // `null` is as many as there are of queries.
        assert_eq!(number(&made.clone().with("num_key_value_heads", Value::Null), "head_count_kv"), 2);
        let made = lacking(made, "num_key_value_heads");
        assert_eq!(number(&made, "head_count_kv"), kv_heads, "{model_type}");
        let made = lacking(made, "head_dim");
        // The scale of gemma3's scores follows from the heads.
        let made = if prefix == "gemma3" { made.with("query_pre_attn_scalar", json!(256)) } else { made };
        assert_eq!(number(&made, "key_length"), head_size, "{model_type}");
        assert_eq!(number(&made, "value_length"), head_size, "{model_type}");
    }
}

#[test]
fn an_output_matrix_is_the_embedding_if_the_file_or_the_type_says_so() {
    for (model_type, is_tied) in [("llama", false), ("qwen2", false), ("qwen3", false), ("gemma3_text", true)]
    {
        let made = lacking(of_type(model_type), "tie_word_embeddings");
        let wanted = if is_tied { "" } else { "tensor \"lm_head.weight\" is missing" };
        assert_eq!(refusal(&made), wanted, "{model_type}");
        // A copy is no weight; an output matrix of its own is one.
        let made = made.tensor("lm_head.weight", "F32", &[8, 64], ones(512));
        assert_eq!(opened(&made).tensor("output.weight").is_some(), !is_tied, "{model_type}");
    }
}

#[test]
fn functions_that_are_not_built_are_refused_by_their_key() {
    let gemma = || of_type("gemma3_text");
    opened(&gemma().with("hidden_activation", json!("gelu_pytorch_tanh")));
    refused(
        &gemma().with("hidden_activation", json!("gelu")),
        "`hidden_activation` is \"gelu\", but `gelu_pytorch_tanh` is needed",
    );
    opened(&gemma().with("hidden_act", json!("relu"))); // Not what gemma3 goes by.
    opened(&Made::llama().with("hidden_act", json!("swish")));
    for (value, wanted) in [
        (json!(false), ""),
        (json!(true), "`use_bidirectional_attention` is true, but false: it is not built is needed"),
    ] {
        let error = refusal(&gemma().with("use_bidirectional_attention", value));
        assert!(error.ends_with(wanted) && error.is_empty() == wanted.is_empty(), "{error}");
    }
    let most = Made::llama().with("num_hidden_layers", json!(1024));
    refused(&most, "tensor \"model.layers.1.input_layernorm.weight\" is missing");
    refused(
        &Made::llama().with("num_hidden_layers", json!(1025)),
        "`num_hidden_layers` is 1025, but a number up to 1024 is needed",
    );
}

#[test]
fn two_scalings_must_be_the_same_but_for_a_base_that_one_lacks() {
    let both = |older: Value, newer: Value| {
        refusal(&Made::llama().with("rope_scaling", older).with("rope_parameters", newer))
    };
    let linear = |mut more: Value| {
        more["rope_type"] = json!("linear");
        more["factor"] = json!(8.0);
        more
    };
    let differ = "`config.json` cannot be used: `rope_scaling` is ";
    assert_eq!(both(linear(json!({})), linear(json!({}))), "");
    assert_eq!(both(linear(json!({})), linear(json!({"rope_theta": 5e5}))), "");
    assert_eq!(both(linear(json!({"rope_theta": 5e5})), linear(json!({"rope_theta": 5e5}))), "");
    assert_eq!(both(linear(json!({"beta_fast": null})), linear(json!({"beta_slow": null}))), "");
    for (older, newer) in [
        (json!({"rope_theta": 4e5}), json!({"rope_theta": 5e5})),
        (json!({"rope_theta": 4e5}), json!({})),
        (json!({"beta_fast": 3}), json!({})),
        (json!({}), json!({"beta_fast": 3})),
    ] {
        let error = both(linear(older.clone()), linear(newer.clone()));
        assert!(error.starts_with(differ), "{older} and {newer}: {error:?}");
    }
}

#[test]
fn a_ramp_that_is_not_cut_to_whole_pairs_is_refused() {
    let yarn = |truncate: Value| {
        let scaling = json!({"rope_type": "yarn", "factor": 4.0, "truncate": truncate});
        refusal(&Made::llama().with("rope_scaling", scaling))
    };
    assert_eq!((yarn(json!(true)), yarn(Value::Null)), (String::new(), String::new()));
    assert!(
        yarn(json!(false))
            .ends_with("`rope_scaling.truncate` is false, but true: other ramps are not built is needed")
    );
}

fn llama3(low: f64, high: f64, factor: f64) -> Value {
    json!({"rope_type": "llama3", "factor": factor, "low_freq_factor": low, "high_freq_factor": high,
        "original_max_position_embeddings": 128})
}

#[test]
fn factors_of_llama3_must_be_a_ramp() {
    let refusal = |low, high, factor| refusal(&Made::llama().with("rope_scaling", llama3(low, high, factor)));
    for (low, high, factor) in [(1.0, 4.0, 8.0), (1.0, 4.0, 1.0), (0.001, 0.002, 8.0)] {
        assert_eq!(refusal(low, high, factor), "");
    }
    let wanted = "`rope_scaling.factor` is ";
    for (low, high, factor) in [
        (1.0, 4.0, 0.5),
        (1.0, 4.0, -8.0),
        (0.0, 4.0, 8.0),
        (-1.0, 4.0, 8.0),
        (4.0, 4.0, 8.0),
        (4.0, 1.0, 8.0),
        (-4.0, -1.0, 8.0),
    ] {
        assert!(refusal(low, high, factor).contains(wanted), "{low} {high} {factor}");
    }
    // Other types have no tensor for what it becomes.
    let qwen = of_type("qwen2").with("rope_scaling", llama3(1.0, 4.0, 8.0));
    refused(
        &qwen,
        "`rope_scaling.rope_type` is \"llama3\", but `default`, `linear`, `yarn` or, of llama, `llama3`",
    );
}

/// Base 10000, heads of 16: pair j has a wave of 2 pi 10000^(j / 8), so 128 positions are 20.4, 6.4, 2.04, 0.64, ...
/// turns. Of more than 4 nothing is divided, of fewer than 1 by 8, and between them a ramp.
#[test]
fn divisors_of_llama3_follow_from_the_turns_of_a_pair() {
    let gguf = opened(&Made::llama().with("rope_scaling", llama3(1.0, 4.0, 8.0)));
    let tensor = gguf.tensor("rope_freqs.weight").unwrap();
    let bytes = gguf.read_tensor(tensor, 0..tensor.bytes).unwrap();
    let found: Vec<f32> = bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
    let share = (128.0 / (TAU * 10.0) - 1.0) / 3.0;
    let ramp = (1.0 / ((1.0 - share) / 8.0 + share)) as f32;
    assert!((2.3..2.6).contains(&ramp));
    assert_eq!(found, [1.0, 1.0, ramp, 8.0, 8.0, 8.0, 8.0, 8.0]);
}

/// A pair with just as many turns as the ramp begins with is on it: there the factor is rounded twice.
#[test]
fn the_ramp_of_llama3_has_its_lower_end() {
    // Turns that the file's reader keeps to the last bit.
    let is_kept = |turns: f64| serde_json::from_str::<f64>(&json!(turns).to_string()).unwrap() == turns;
    let context = (1..64).find(|context| is_kept(f64::from(*context) / TAU)).unwrap();
    for factor in [12_582_939.5, 14_000_009.5] {
        let scaling = json!({"rope_type": "llama3", "factor": factor, "low_freq_factor": f64::from(context) / TAU,
            "high_freq_factor": 64.0, "original_max_position_embeddings": context});
        let gguf = opened(&Made::llama().with("rope_scaling", scaling));
        let tensor = gguf.tensor("rope_freqs.weight").unwrap();
        let bytes = gguf.read_tensor(tensor, 0..4).unwrap();
        let found = f32::from_le_bytes(bytes.try_into().unwrap());
        let on_the_ramp = (1.0_f64 / (1.0 / factor)) as f32;
        assert_ne!(on_the_ramp, factor as f32, "the two can be told apart");
        assert_eq!(found, on_the_ramp);
    }
}

/// The last of each so many layers has full attention, or none.
#[test]
fn types_of_layers_have_a_period() {
    let (full, local) = ("full_attention", "sliding_attention");
    let gemma = |types: &[&str]| {
        let mut made =
            of_type("gemma3_text").with("sliding_window", json!(5)).with("layer_types", json!(types));
        let layer: Vec<_> =
            made.tensors.iter().filter(|(name, ..)| name.contains(".layers.0.")).cloned().collect();
        for number in 1..types.len() {
            for (name, dtype, shape, bytes) in layer.clone() {
                let name = name.replace(".layers.0.", &format!(".layers.{number}."));
                made.tensors.push((name, dtype, shape, bytes));
            }
        }
        made.with("num_hidden_layers", json!(types.len()))
    };
    for (types, period) in [
        (&[full][..], 1),
        (&[local], 0),
        (&[local, full], 2),
        (&[local, full, local, full], 2),
        (&[local, local, full, local], 3),
        (&[local, local, local], 0),
    ] {
        let metadata = opened(&gemma(types)).metadata;
        assert_eq!(metadata.u32("gemma3.attention.sliding_window_pattern").unwrap(), period, "{types:?}");
    }
    for types in [
        &[full, local][..],
        &[local, full, full],
        &[local, full, local, local],
        &[local, "chunked_attention"],
    ] {
        refused(
            &gemma(types),
            "but `full_attention` after each same number of `sliding_attention` is needed",
        );
    }
    opened(&Made::llama().with("layer_types", json!([full])));
    refused(&Made::llama().with("layer_types", json!([local])), "windows are built for `gemma3_text`");
}

#[test]
fn blocks_have_two_lengths_above_zero() {
    let made = |size: Value| {
        Made::llama().with("quantization_config", json!({"quant_method": "fp8", "weight_block_size": size}))
    };
    opened(&made(json!([1, 32])));
    opened(&made(Value::Null));
    for wrong in [
        json!([0, 128]),
        json!([128, 0]),
        json!([0, 0]),
        json!([128]),
        json!([]),
        json!([128, 128, 1]),
        json!([128, -1]),
        json!([4_294_967_296u64, 1]),
        json!(128),
        json!("128"),
    ] {
        let wanted = format!(
            "`quantization_config.weight_block_size` is {wrong}, but two lengths of a block, rows and columns is needed"
        );
        refused(&made(wrong), &wanted);
    }
}

/// A small file is read whole, up to its limit of 262144 bytes.
#[test]
fn files_of_keys_have_a_limit() {
    let open_with = |length: usize| {
        let mut files = Made::llama().files();
        let mut config = Made::llama().config.to_string().into_bytes();
        config.resize(length, b' ');
        files.insert("config.json".into(), config.into());
        open(&Folder::Memory(files)).err().map(|error| words(&error))
    };
    assert_eq!(open_with(262_144), None);
    let wanted = "`config.json` has 262145 bytes; at most 262144 are accepted";
    assert_eq!(open_with(262_145).as_deref(), Some(wanted));
}

/// A file that is there and cannot be read is not told as one that is missing.
#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = zrt_needs::TemporaryFolder::new("unreadable");
    let error = || words(&open(&Folder::Path(folder.to_path_buf())).err().unwrap());
    assert_eq!(error(), "the folder has no `config.json`");
    std::fs::create_dir(folder.join("config.json")).unwrap();
    assert!(error().starts_with("`config.json` cannot be read: "), "{}", error());
}

fn with_file(bytes: Vec<u8>) -> String {
    let mut files = Made::llama().files();
    files.insert("model.safetensors".into(), bytes.into());
    words(&open(&Folder::Memory(files)).err().unwrap())
}

/// One entry of a header: name, type, shape, where its bytes lie.
fn entry(name: &str, dtype: &str, shape: &[u64], begin: u64, end: u64) -> String {
    format!("{name:?}:{}", json!({"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}))
}

#[test]
fn headers_are_read_up_to_their_limits() {
    let length = |header: u64| with_file([&header.to_le_bytes()[..], b"{"].concat());
    assert!(length(100_000_000).ends_with("it is cut: a header of 100000000 bytes does not fit into 9"));
    assert!(length(100_000_001).ends_with("the header's 100000001 bytes are above the limit of 100000000"));
    assert_eq!(with_file(with_header("{}", &[])), NO_EMBEDDING, "a file may end with its header");

    let one = |dtype, shape: &[u64], begin, end| {
        with_file(with_header(&format!("{{{}}}", entry("a", dtype, shape, begin, end)), &[0; 16]))
    };
    let size = "which is not its size";
    assert_eq!(one("I8", &[1, 1, 1, 1, 1, 1, 1, 16], 0, 16), NO_EMBEDDING);
    assert!(one("I8", &[1, 1, 1, 1, 1, 1, 1, 1, 16], 0, 16).ends_with(size), "nine dimensions");
    assert_eq!(one("I8", &[], 15, 16), NO_EMBEDDING, "a single element has no dimensions");
    // Neither the product nor the length exists: that makes them no more equal.
    assert!(one("F32", &[1 << 32, 1 << 32], 16, 0).ends_with(size));
    assert!(one("I8", &[17], 0, 17).ends_with("tensor \"a\" ends at byte 17 of 16 bytes of data"));
    assert_eq!(one("I8", &[0], 16, 16), NO_EMBEDDING);
}

#[test]
fn headers_whose_parts_do_not_fit_are_refused() {
    let entry = |name: &str, dtype: &str, shape: &str, offsets: &str| {
        format!("{name:?}:{{\"dtype\":{dtype:?},\"shape\":{shape},\"data_offsets\":{offsets}}}")
    };
    let one = |dtype: &str, shape: &str, offsets: &str| {
        with_file(with_header(&format!("{{{}}}", entry("a", dtype, shape, offsets)), &[0; 16]))
    };
    for (found, wanted) in [
        (with_file(Vec::new()), "it is cut: a header of 0 bytes does not fit into 0"),
        (with_file(vec![200, 0, 0, 0, 0, 0, 0, 0, b'{']), "a header of 200 bytes does not fit into 9"),
        (with_file(vec![0xff; 16]), "above the limit of 100000000"),
        (with_file(with_header("[]", &[])), "an object is needed"),
        (with_file(with_header("{} x", &[])), "the end of the file is needed"),
        (with_file(with_header("{\"a\": {\"dtype\": \"F32\"}}", &[])), "tensor \"a\" has no `shape`"),
        (one("F12", "[4]", "[0,16]"), "the unknown type \"F12\""),
        (one("F32", "[4]", "[0,12]"), "which is not its size"),
        (one("F32", "[4]", "[16,0]"), "which is not its size"),
        (one("F32", "[5]", "[0,20]"), "ends at byte 20 of 16"),
        (one("F32", "[4294967296,4294967296]", "[0,0]"), "which is not its size"),
        (one("F32", "[-1]", "[0,16]"), "a whole number from 0"),
        (one("F32", "[4]", "[0,16,32]"), "has no two `data_offsets`"),
        (
            with_file(with_header(
                &format!("{{{},{}}}", entry("a", "I8", "[9]", "[0,9]"), entry("b", "I8", "[8]", "[8,16]")),
                &[0; 16],
            )),
            "tensors \"a\" and \"b\" share bytes",
        ),
        (
            with_file(with_header(
                &format!("{{{},{}}}", entry("a", "I8", "[8]", "[0,8]"), entry("a", "I8", "[8]", "[8,16]")),
                &[0; 16],
            )),
            "tensor \"a\" occurs twice",
        ),
    ] {
        assert!(found.contains(wanted), "{found:?} for {wanted:?}");
    }
}

/// Tensors may touch, and one without elements lies nowhere.
#[test]
fn tensors_share_no_byte() {
    let two = |one: [u64; 2], other: [u64; 2]| {
        let entry = |name, [begin, end]: [u64; 2]| entry(name, "I8", &[end - begin], begin, end);
        with_file(with_header(&format!("{{{},{}}}", entry("a", one), entry("b", other)), &[0; 16]))
    };
    for (one, other) in
        [([0, 8], [8, 16]), ([8, 16], [0, 8]), ([0, 4], [9, 16]), ([0, 16], [8, 8]), ([8, 8], [0, 16])]
    {
        assert_eq!(two(one, other), NO_EMBEDDING, "{one:?} {other:?}");
    }
    for (one, other, names) in [
        ([0, 9], [8, 16], ["a", "b"]),
        ([8, 16], [0, 9], ["b", "a"]),
        ([0, 16], [4, 5], ["a", "b"]),
        ([3, 7], [3, 7], ["a", "b"]),
    ] {
        let wanted = format!("tensors {:?} and {:?} share bytes", names[0], names[1]);
        assert!(two(one, other).ends_with(&wanted), "{one:?} {other:?}");
    }
}

/// A token takes memory, so that its row has at least 32 bytes, and rows are at most as many as an array of GGUF has
/// elements. A file with holes: it is only mapped.
#[test]
fn rows_of_an_embedding_have_a_least_length_and_a_largest_number() {
    let wanted = "but a matrix with rows of at least 32 bytes is needed";
    let short = Made::llama().tensor(EMBEDDING, "I8", &[8, 31], vec![0; 8 * 31]);
    assert!(refusal(&short).ends_with(wanted));
    let long = Made::llama().tensor(EMBEDDING, "I8", &[8, 32], vec![0; 8 * 32]);
    refused(&long, "tensor \"model.embed_tokens.weight_scale\" is missing");
    for shape in [&[0, 64][..], &[8, 0], &[64], &[8, 8, 8]] {
        let count = shape.iter().product::<u64>() as usize;
        assert!(
            refusal(&Made::llama().tensor(EMBEDDING, "F32", shape, ones(count as u64))).ends_with(wanted),
            "{shape:?}"
        );
    }
    let folder = zrt_needs::TemporaryFolder::new("most-rows");
    std::fs::write(folder.join("config.json"), Made::llama().config.to_string()).unwrap();
    std::fs::write(folder.join("tokenizer.json"), byte_tokenizer().to_string()).unwrap();
    let with_rows = |rows: u64| {
        let bytes = with_header(&format!("{{{}}}", entry(EMBEDDING, "I8", &[rows, 1], 0, rows)), &[]);
        std::fs::write(folder.join("model.safetensors"), &bytes).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(folder.join("model.safetensors")).unwrap();
        file.set_len(bytes.len() as u64 + rows).unwrap();
        words(&open(&Folder::Path(folder.to_path_buf())).err().unwrap())
    };
    assert!(with_rows(1 << 26).ends_with(wanted));
    assert_eq!(with_rows((1 << 26) + 1), "there are more than 67108864 rows of the embedding");
}

#[test]
fn tensors_on_which_no_result_depends_are_passed_over() {
    for name in ["self_attn.rotary_emb.inv_freq", "mlp.up_proj.input_scale", "mlp.up_proj.activation_scale"] {
        opened(&Made::llama().tensor(&format!("model.layers.0.{name}"), "F32", &[], ones(1)));
    }
    refused(
        &Made::llama().tensor("model.layers.0.mlp.up_proj.output_scale", "F32", &[], ones(1)),
        "tensor \"model.layers.0.mlp.up_proj.output_scale\" has no place",
    );
}

/// What it stands for is a file of a header, and tensors one after the other from multiples of 32 on.
#[test]
fn a_folder_is_as_long_as_the_file_that_it_stands_for() {
    let made = Made::llama();
    let gguf = opened(&made);
    assert!(gguf.is_made());
    assert!(!Gguf::from_bytes(b"GGUF\x03\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec()).unwrap().is_made());
    let begin = gguf.tensors().iter().map(|tensor| tensor.offset).min().unwrap();
    // F32 throughout, of lengths that are multiples of 32 bytes.
    let data: u64 = made.tensors.iter().map(|(_, _, _, bytes)| bytes.len() as u64).sum();
    assert_eq!((begin % 32, gguf.file_bytes()), (0, begin + data));
    assert_eq!(gguf.tensor_bytes_total(), data);
}

#[test]
fn weights_have_the_shapes_of_vectors_and_of_matrices() {
    let of = |name: &str, shape: &[u64]| {
        let made = Made::llama().tensor(name, "F32", shape, ones(shape.iter().product()));
        (refusal(&made), format!("tensor {name:?} has shape {shape:?}, but a"))
    };
    for shape in [&[][..], &[0], &[1, 64], &[64, 1], &[0, 64]] {
        let (error, wanted) = of("model.norm.weight", shape);
        assert_eq!(error, format!("{wanted} vector is needed"));
    }
    for shape in [&[][..], &[0], &[6144], &[0, 64], &[96, 0], &[96, 64, 1], &[1, 96, 64]] {
        let (error, wanted) = of("model.layers.0.mlp.up_proj.weight", shape);
        assert_eq!(error, format!("{wanted} matrix is needed"));
    }
}

/// A pair of llama's heads becomes two rows that lie side by side.
#[test]
fn heads_of_queries_and_keys_have_even_numbers_of_rows() {
    for (part, heads, rows) in [("q_proj", 4, [56, 64, 72]), ("k_proj", 2, [28, 32, 36])] {
        let name = format!("model.layers.0.self_attn.{part}.weight");
        let with_rows = |rows: u64| Made::llama().tensor(&name, "F32", &[rows, 64], ones(rows * 64));
        for rows in rows {
            opened(&with_rows(rows));
            for odd in [rows - 1, rows + 1, rows + heads] {
                let wanted = format!(
                    "tensor {name:?} has shape [{odd}, 64], but an even number of rows for each of {heads} heads \
                     is needed"
                );
                assert_eq!(refusal(&with_rows(odd)), wanted);
            }
        }
    }
    // Nothing changes places in values, and in other types.
    let name = "model.layers.0.self_attn.v_proj.weight";
    opened(&Made::llama().tensor(name, "F32", &[31, 64], ones(31 * 64)));
    let name = "model.layers.0.self_attn.k_proj.weight";
    opened(&of_type("qwen2").tensor(name, "F32", &[31, 64], ones(31 * 64)));
}

#[test]
fn scales_of_a_row_share_its_columns_evenly() {
    let name = "model.layers.0.mlp.down_proj.weight";
    let codes = Made::llama().tensor(name, "I8", &[64, 96], vec![0; 64 * 96]);
    let with_scales = |shape: &[u64]| {
        let count = shape.iter().product();
        refusal(&codes.clone().tensor(&format!("{name}_scale"), "F32", shape, ones(count)))
    };
    for shape in [&[64, 1][..], &[64, 3], &[64], &[], &[1], &[1, 1]] {
        assert_eq!(with_scales(shape), "", "{shape:?}");
    }
    // 0 scales; 2, for 48 columns each; 4; 6, for 16 each; other numbers of rows and dimensions.
    for shape in [&[64, 0][..], &[64, 2], &[64, 4], &[64, 6], &[63, 1], &[1, 64], &[0], &[64, 1, 1]] {
        let wanted = "but scales of 64 x 96 for blocks of whole 32 columns is needed";
        assert_eq!(with_scales(shape), format!("tensor \"{name}_scale\" has shape {shape:?}, {wanted}"));
    }
}
