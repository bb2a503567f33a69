//! What a file's metadata and tensors make of a configuration: defaults, and sentences for what cannot be run.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod made;

use made::{Made, Pair, WIDTH};
use zrt_engine::activations::Activations;
use zrt_engine::config::{ModelConfig, Window};
use zrt_engine::gguf::TensorKind;
use zrt_engine::layers::decode_step;
use zrt_engine::rope::RopeLayout;
use zrt_engine::rope::{Rope, RopeScaling, Yarn};
use zrt_engine::rope_table::rope_tables;

fn file(architecture: &'static str) -> Made {
    Made::new(architecture, TensorKind::F32)
}

fn config(made: &Made) -> ModelConfig {
    made.load().unwrap_or_else(|error| panic!("{error}")).config
}

/// The sentence with which a file is refused.
fn refusal(made: &Made) -> String {
    made.load().expect_err("refused").to_string()
}

fn rope(base: f64, scaling: RopeScaling) -> Rope {
    Rope { base, dimensions: 64, scaling, attention_factor: 1.0 }
}

#[test]
fn defaults_are_those_of_the_format() {
    let llama = config(&file("llama"));
    assert_eq!(llama.rope, rope(10_000.0, RopeScaling::None));
    assert_eq!((llama.rope_layout, llama.window, llama.local_rope), (RopeLayout::Interleaved, None, None));
    assert_eq!((llama.attention_scale, llama.embedding_scale), (0.125, None));
    for other in ["qwen2", "qwen3", "gemma3"] {
        assert_eq!(config(&file(other)).rope_layout, RopeLayout::Halves, "{other}");
    }
}

#[test]
fn heads_need_not_be_the_width_divided_by_their_number() {
    let made = file("llama")
        .with("attention.key_length", Pair::Number(32))
        .with("attention.value_length", Pair::Number(32));
    let name = "tensor `blk.0.attn_q.weight` has shape [256, 256], expected [256, 128] (columns, rows)";
    assert_eq!(refusal(&made), name);
    let made = made.shaped("blk.0.attn_q.weight", &[WIDTH, 128]).shaped("blk.0.attn_k.weight", &[WIDTH, 64]);
    let made =
        made.shaped("blk.0.attn_v.weight", &[WIDTH, 64]).shaped("blk.0.attn_output.weight", &[128, WIDTH]);
    let config = config(&made);
    assert_eq!((config.head_size, config.query_elements(), config.kv_elements()), (32, 128, 64));
    assert_eq!(config.rope.dimensions, 32);
}

#[test]
fn rotary_scalings_are_read_as_llama_cpp_does() {
    let with = |pairs: Vec<(&'static str, Pair)>| {
        let made = pairs.into_iter().fold(file("qwen2"), |made, (key, value)| made.with(key, value));
        config(&made).rope
    };
    let yarn = Yarn {
        factor: 4.0,
        original_context: 32,
        extrapolation: 1.0,
        beta_fast: 32.0,
        beta_slow: 1.0,
        log_multiplier: 0.0,
    };
    let kind = |name| ("rope.scaling.type", Pair::Text(name));
    let factor = || ("rope.scaling.factor", Pair::Float(4.0));
    let context = || ("rope.scaling.original_context_length", Pair::Number(32));
    let linear = rope(1e4, RopeScaling::Linear { factor: 4.0 });
    assert_eq!(with(vec![kind("linear"), factor()]), linear);
    assert_eq!(with(vec![factor()]), linear, "a factor without a type");
    assert_eq!(with(vec![("rope.scale_linear", Pair::Float(4.0))]), linear, "the key of old files");
    assert_eq!(with(vec![kind("none"), factor()]), rope(1e4, RopeScaling::None));
    assert_eq!(
        with(vec![kind("linear"), ("rope.scaling.factor", Pair::Float(0.0))]),
        rope(1e4, RopeScaling::None)
    );
    assert_eq!(with(vec![kind("yarn"), factor(), context()]), rope(1e4, RopeScaling::Yarn(yarn.clone())));
    // Without its own key the original context is the model's.
    let whole = Yarn { original_context: 64, ..yarn.clone() };
    assert_eq!(with(vec![kind("yarn"), factor()]), rope(1e4, RopeScaling::Yarn(whole)));
    let all = with(vec![
        kind("yarn"),
        factor(),
        context(),
        ("rope.scaling.attn_factor", Pair::Float(0.5)),
        ("rope.scaling.yarn_ext_factor", Pair::Float(0.25)),
        ("rope.scaling.yarn_attn_factor", Pair::Float(3.0)),
        ("rope.scaling.yarn_beta_fast", Pair::Float(16.0)),
        ("rope.scaling.yarn_beta_slow", Pair::Float(2.0)),
        ("rope.scaling.yarn_log_multiplier", Pair::Float(0.125)),
    ]);
    let expected =
        Yarn { extrapolation: 0.25, beta_fast: 16.0, beta_slow: 2.0, log_multiplier: 0.125, ..yarn.clone() };
    let expected = Rope { attention_factor: 0.5, ..rope(1e4, RopeScaling::Yarn(expected)) };
    assert_eq!(all, expected, "with a ramp, YaRN's own magnitude replaces `yarn_attn_factor`");
    let flat = with(vec![
        kind("yarn"),
        factor(),
        ("rope.scaling.yarn_ext_factor", Pair::Float(0.0)),
        ("rope.scaling.yarn_attn_factor", Pair::Float(3.0)),
    ]);
    assert_eq!(flat.magnitude(), 3.0);
    // -1 is how llama.cpp says that the file does not say.
    let unsaid =
        with(vec![kind("yarn"), factor(), context(), ("rope.scaling.yarn_ext_factor", Pair::Float(-1.0))]);
    assert_eq!(unsaid, rope(1e4, RopeScaling::Yarn(yarn)));
    let both = with(vec![factor(), ("rope.scale_linear", Pair::Float(2.0))]);
    assert_eq!(both, linear, "the key of old files counts where it is alone");
}

/// Zero and one more than the largest are refused by name, and the largest is taken.
#[test]
fn counts_have_limits() {
    let limits = [
        ("block_count", 1024),
        ("context_length", 1 << 24),
        ("embedding_length", 1 << 20),
        ("attention.head_count", 4096),
        ("attention.head_count_kv", 4),
        ("attention.key_length", 256),
        ("attention.value_length", 256),
        ("rope.dimension_count", 64),
        ("feed_forward_length", 1 << 20),
    ];
    let refusal_of = |key, value| {
        let made = file("llama").with(key, Pair::Number(value)).load();
        made.err().map(|error| error.to_string()).unwrap_or_default()
    };
    for (key, most) in limits {
        for wrong in [0, most + 1] {
            let wanted =
                format!("metadata key `llama.{key}` is {wrong}, outside what can be run: zero or too large");
            assert_eq!(refusal_of(key, wrong), wanted);
        }
        // What follows from it may be too large.
        let found = refusal_of(key, most);
        assert!(!found.contains(&format!("`llama.{key}` is")), "{found}");
    }
    assert_eq!(config(&file("llama").with("context_length", Pair::Number(1 << 24))).context, 16_777_216);
    for (epsilon, is_right) in [
        (0.0, false),
        (1e-31, false),
        (1e-30, true),
        (0.5, true),
        (1.0, false),
        (f32::INFINITY, false),
        (f32::NAN, false),
    ] {
        let made = file("llama").with("attention.layer_norm_rms_epsilon", Pair::Float(epsilon));
        assert_eq!(made.load().is_ok(), is_right, "{epsilon}");
        if !is_right {
            assert!(refusal(&made).ends_with("outside what can be run: must lie in 1e-30..1"));
        }
    }
}

#[test]
fn windows_are_those_of_the_metadata() {
    assert_eq!(config(&file("gemma3")).window, None);
    let made = file("gemma3").with("attention.sliding_window", Pair::Number(16));
    let gemma = config(&made);
    assert_eq!(gemma.window, Some(Window { positions: 16, period: 6 }));
    assert_eq!(gemma.local_rope, Some(rope(10_000.0, RopeScaling::None)));
    assert_eq!(
        [0, 4, 5, 6, 11].map(|layer| gemma.window_of(layer)),
        [Some(16), Some(16), None, Some(16), None]
    );
    assert_eq!([0, 4, 5, 6, 11].map(|layer| gemma.rope_of(layer)), [1, 1, 0, 1, 0]);
    assert_eq!((gemma.embedding_scale, gemma.attention_scale), (Some(16.0), 0.125));
    let made = made
        .with("attention.sliding_window_pattern", Pair::Number(0))
        .with("rope.freq_base", Pair::Float(1e6))
        .with("rope.freq_base_swa", Pair::Float(5e4))
        .with("rope.scaling.factor", Pair::Float(8.0));
    let gemma = config(&made);
    assert_eq!(gemma.window_of(5), Some(16), "a pattern of 0: every layer");
    assert_eq!(gemma.local_rope, Some(rope(5e4, RopeScaling::None)), "the scaling is the full layers'");
    assert_eq!(gemma.rope, rope(1e6, RopeScaling::Linear { factor: 8.0 }));
}

/// Two tables, one after the other: the first of the layers with full attention.
#[test]
fn each_rotary_embedding_has_its_table() {
    let made = file("gemma3")
        .with("attention.sliding_window", Pair::Number(16))
        .with("rope.freq_base", Pair::Float(1e6));
    let tables = rope_tables(&made.load().unwrap(), 3).unwrap();
    assert_eq!(tables.len(), 2 * 3 * 64);
    // Pair 1 at position 1: cos and sin of base^(-2/64), from mpmath.
    let at = |table: usize| [tables[(table * 3 + 1) * 64 + 2], tables[(table * 3 + 1) * 64 + 3]];
    assert_eq!(at(0), [0.796_457_9, 0.604_694]);
    assert_eq!(at(1), [0.731_761, 0.681_561_35]);
}

#[test]
fn divisors_of_frequencies_are_checked() {
    let divisors: Vec<f32> = (0..32).map(|pair| 1.0 + pair as f32).collect();
    let model = file("llama").with_vector("rope_freqs.weight", &divisors).load().unwrap();
    assert_eq!(model.rope_divisors().unwrap(), divisors);
    let short = file("llama").with_vector("rope_freqs.weight", &divisors[..16]);
    assert_eq!(refusal(&short), "tensor `rope_freqs.weight` has shape [16], expected [32] (columns, rows)");
    for wrong in [0.5, -1.0, f32::NAN, f32::INFINITY] {
        let mut divisors = divisors.clone();
        divisors[7] = wrong;
        let model = file("llama").with_vector("rope_freqs.weight", &divisors).load().unwrap();
        let error = model.rope_divisors().unwrap_err().to_string();
        assert!(error.contains(&format!("by {wrong}, which is no number from 1 on")), "{error}");
    }
    assert!(refusal(&file("qwen3").with_vector("rope_freqs.weight", &divisors)).contains("has no place"));
}

#[test]
fn what_cannot_be_run_is_named() {
    let error = refusal(&file("mistral3"));
    assert_eq!(
        error,
        "architecture `mistral3` is not supported; this build runs `llama`, `qwen2`, `qwen3` and `gemma3`"
    );
    let cases: [(&'static str, &'static str, Pair, &str); 14] = [
        (
            "llama",
            "rope.scaling.type",
            Pair::Text("longrope"),
            "the scalings that run are `none`, `linear` and `yarn`",
        ),
        ("llama", "rope.scaling.factor", Pair::Float(0.5), "must be 0 (none) or from 1 to 65536"),
        ("llama", "rope.scaling.factor", Pair::Float(f32::NAN), "must be 0 (none) or from 1 to 65536"),
        ("llama", "rope.scaling.attn_factor", Pair::Float(0.0), "must be above 0 and at most 1024"),
        ("llama", "rope.freq_base", Pair::Float(1.0), "must be finite and above 1"),
        (
            "gemma3",
            "attn_logit_softcapping",
            Pair::Float(50.0),
            "a soft cap of attention scores is not built",
        ),
        (
            "llama",
            "final_logit_softcapping",
            Pair::Float(30.0),
            "a soft cap of logits is built for `gemma3` only",
        ),
        ("gemma3", "final_logit_softcapping", Pair::Float(-1.0), "must be 0 (none) or from 0.001"),
        ("gemma3", "final_logit_softcapping", Pair::Float(f32::NAN), "must be 0 (none) or from 0.001"),
        ("llama", "expert_count", Pair::Number(8), "mixtures of experts are not built"),
        (
            "llama",
            "attention.sliding_window",
            Pair::Number(32),
            "a sliding window is built for `gemma3` only",
        ),
        (
            "llama",
            "attention.value_length",
            Pair::Number(32),
            "must be a multiple of 4 and equal value_length",
        ),
        ("llama", "rope.dimension_count", Pair::Number(63), "must be even"),
        ("llama", "attention.head_count_kv", Pair::Number(3), "does not divide the query heads"),
    ];
    for (architecture, key, value, reason) in cases {
        let error = refusal(&file(architecture).with(key, value));
        let key = if key == "attention.value_length" { "attention.key_length" } else { key };
        assert!(error.contains(&format!("`{architecture}.{key}`")) && error.contains(reason), "{error}");
    }
    // What asks for nothing is no reason.
    for (key, value) in [
        ("final_logit_softcapping", Pair::Float(0.0)),
        ("expert_count", Pair::Number(0)),
        ("attention.sliding_window", Pair::Number(64)),
    ] {
        config(&file("llama").with(key, value));
    }
}

#[test]
fn tensors_that_are_missing_or_have_no_place_are_named() {
    let error = refusal(&file("qwen2").without("blk.0.attn_k.bias"));
    assert_eq!(error, "tensor `blk.0.attn_k.bias` is missing from the file");
    let error = refusal(&file("gemma3").without("blk.0.post_ffw_norm.weight"));
    assert_eq!(error, "tensor `blk.0.post_ffw_norm.weight` is missing from the file");
    let error = refusal(&file("llama").with_vector("blk.0.attn_q.bias", &[0.0; WIDTH as usize]));
    assert!(
        error.starts_with("tensor `blk.0.attn_q.bias` has no place in a model of this architecture"),
        "{error}"
    );
}

/// Of what a layer consists, by llama.cpp's graphs of the architectures.
#[test]
fn layers_are_those_of_the_architectures() {
    let projections = "rms_norm blk.0.attn_norm.weight\nmatmul blk.0.attn_q.weight\nmatmul blk.0.attn_k.weight\n\
        matmul blk.0.attn_v.weight\n";
    let attention = "rope of layer 0\nrope of layer 0\nkv_write of layer 0\nattention of layer 0\n\
        matmul blk.0.attn_output.weight\n";
    let feed_forward = "residual_add of layer 0\nrms_norm blk.0.ffn_norm.weight\nmatmul blk.0.ffn_gate.weight\n\
        matmul blk.0.ffn_up.weight\n";
    let down = "matmul blk.0.ffn_down.weight\n";
    let [swiglu, geglu] = ["swiglu", "geglu"].map(|gate| format!("{gate} of layer 0\n{down}"));
    let biases = "bias_add blk.0.attn_q.bias\nbias_add blk.0.attn_k.bias\nbias_add blk.0.attn_v.bias\n";
    let norms = "qk_norm blk.0.attn_q_norm.weight\nqk_norm blk.0.attn_k_norm.weight\n";
    let [after_attention, after_feed_forward] =
        ["attention", "ffw"].map(|part| format!("rms_norm blk.0.post_{part}_norm.weight\n"));
    let layers = [
        ("llama", format!("{projections}{attention}{feed_forward}{swiglu}")),
        ("qwen2", format!("{projections}{biases}{attention}{feed_forward}{swiglu}")),
        ("qwen3", format!("{projections}{norms}{attention}{feed_forward}{swiglu}")),
        (
            "gemma3",
            format!(
                "scale\n{projections}{norms}{attention}{after_attention}{feed_forward}{geglu}{after_feed_forward}"
            ),
        ),
    ];
    for (architecture, layer) in layers {
        let graph = decode_step(&file(architecture).load().unwrap(), Activations::F32);
        let found: Vec<String> = graph.nodes.iter().map(ToString::to_string).collect();
        let wanted = format!(
            "embed token_embd.weight\n{layer}residual_add of layer 0\nrms_norm output_norm.weight\n\
             matmul token_embd.weight\nsample"
        );
        assert_eq!(found.join("\n"), wanted, "{architecture}");
    }
}

/// By hand: an embedding of 16 rows, matrices of 256 by 256 and, of keys and values, by 128; three norms.
#[test]
fn parameters_are_the_elements_of_all_weights() {
    let tied = 16 * 256 + 5 * 256 * 256 + 2 * 128 * 256 + 3 * 256;
    assert_eq!(file("llama").load().unwrap().parameter_count(), tied);
    let own = file("llama").with_matrix("output.weight", WIDTH, 16).load().unwrap();
    assert_eq!((own.parameter_count(), own.weight_bytes()), (tied + 16 * 256, (tied + 16 * 256) * 4));
}

/// Vectors are of F32; rows of floats are read in fours.
#[test]
fn types_of_tensors_and_lengths_of_rows_are_those_that_kernels_read() {
    for kind in [TensorKind::F16, TensorKind::BF16, TensorKind::Q8_0] {
        let made = file("llama").of_kind("blk.0.ffn_norm.weight", kind);
        let wanted =
            format!("tensor `blk.0.ffn_norm.weight` is of type {kind}, for which there is no kernel");
        assert_eq!(refusal(&made), wanted);
    }
    for kind in [TensorKind::F32, TensorKind::F16, TensorKind::BF16] {
        let with_columns = |columns: u64| {
            Made::new("llama", kind)
                .with("feed_forward_length", Pair::Number(columns as u32))
                .shaped("blk.0.ffn_gate.weight", &[WIDTH, columns])
                .shaped("blk.0.ffn_up.weight", &[WIDTH, columns])
                .shaped("blk.0.ffn_down.weight", &[columns, WIDTH])
        };
        config(&with_columns(100));
        for columns in [97, 98, 99] {
            let wanted = format!(
                "tensor `blk.0.ffn_down.weight`: rows of {columns} elements do not divide into what type {kind} \
                 needs"
            );
            assert_eq!(refusal(&with_columns(columns)), wanted);
        }
    }
}
