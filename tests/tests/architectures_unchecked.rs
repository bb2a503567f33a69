//! Architectures: small random models of each against a computation in float64 of its own (`tests/data`), and the
//! device against the oracle in every way to run, to the bit. `golden_unchecked` has the trained models.

use std::path::Path;
use std::time::Duration;
use zrt_bringup::{DeviceChoice, Inspect, OpenOptions};
use zrt_engine::activations::Activations;
use zrt_engine::config::Window;
use zrt_engine::executor::Executor;
use zrt_engine::generate::loss;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::session::{Mode, Session, SessionOptions};
use zrt_engine::validate::validate;
use zrt_engine::weights::{WeightClass, WeightId};
use zrt_tests::serving::{Asked, Told, checked_session, expected_with};
use zrt_tests::{Golden, Trace, find_model, load, virtual_executor};

/// Positions that hold the longer trace: 70 of the prompt and 24 more.
const CONTEXT: u32 = 96;
/// Agreement with float64: logits of these models are below 20, and f32 has 24 bits.
const LOGIT_TOLERANCE: f64 = 5e-5;
/// What a fault must change: a hundred times that.
const FAULT: f64 = 100.0 * LOGIT_TOLERANCE;
const NAMES: [&str; 7] = [
    "random-qwen2",
    "random-qwen2-yarn",
    "random-llama-3",
    "random-llama-linear",
    "random-llama-heads-of-12",
    "random-gemma3",
    "random-gemma3-capped",
];

fn model(name: &str) -> Model {
    load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/{name}.gguf")))
}

fn traces(name: &str) -> Vec<Trace> {
    read_traces(&format!("{name}.golden.json"))
}

fn read_traces(name: &str) -> Vec<Trace> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/{name}"));
    let bytes = std::fs::read(path).expect("in the repository");
    Golden::parse(&bytes).expect("a trace").traces
}

/// What the oracle makes of a trace's prompt: mean loss, logits after it, greedy tokens.
fn run(oracle: &mut Oracle, trace: &Trace) -> (f64, Vec<f32>, Vec<u32>) {
    let (prompt, tokens) = (&trace.prompt_token_ids, trace.greedy_token_ids.len());
    oracle.begin(prompt).expect("the prompt fits");
    let mut logits = vec![0f32; oracle.plan().config.vocabulary as usize];
    let (mut sum, mut after, mut greedy) = (0.0, Vec::new(), Vec::new());
    for step in 0..prompt.len() + tokens - 1 {
        let choice = oracle.step().expect("a step runs");
        oracle.read_logits(&mut logits).expect("logits are readable");
        if let Some(next) = prompt.get(step + 1) {
            sum += loss(&logits, *next);
            continue;
        }
        if greedy.is_empty() {
            after.clone_from(&logits);
        }
        greedy.push(choice);
    }
    (sum / (prompt.len() - 1) as f64, after, greedy)
}

/// The largest difference of the logits after a trace's prompt.
fn difference(oracle: &mut Oracle, trace: &Trace) -> f64 {
    let (_, logits, _) = run(oracle, trace);
    assert_eq!(logits.len(), trace.logits_after_prompt.len());
    let pairs = logits.iter().zip(&trace.logits_after_prompt);
    pairs.map(|(found, exact)| (f64::from(*found) - exact).abs()).fold(0.0, f64::max)
}

fn oracle(model: &Model) -> Oracle {
    Oracle::new(model, CONTEXT).expect("the oracle takes the model")
}

fn assert_agrees(name: &str, trace: &Trace) {
    let mut oracle = oracle(&model(name));
    let largest = difference(&mut oracle, trace);
    assert!(largest < LOGIT_TOLERANCE, "{name}, {}: logits differ by {largest}", trace.prompt);
    let (mean, _, greedy) = run(&mut oracle, trace);
    assert!((mean - trace.prompt_nll_mean).abs() < 1e-5, "{name}, {}: loss {mean}", trace.prompt);
    let sure = trace.exact_tokens(0.002);
    assert_eq!(greedy[..sure.len()], *sure, "{name}, {}", trace.prompt);
}

#[test]
fn the_oracle_agrees_with_float64() {
    for name in NAMES {
        traces(name).iter().for_each(|trace| assert_agrees(name, trace));
    }
}

/// Traces that llama.cpp made of the same files; its build has no gemma3 whose windows are not those of a release.
#[test]
fn the_oracle_agrees_with_llama_cpp() {
    for name in NAMES.into_iter().filter(|name| !name.starts_with("random-gemma3")) {
        read_traces(&format!("{name}.llama-cpp.json")).iter().for_each(|trace| assert_agrees(name, trace));
    }
}

/// Every buffer of every step of the long prompt, which is longer than the window, and of two more steps.
#[test]
fn the_device_has_the_oracles_bits() {
    for name in NAMES {
        let model = model(name);
        let mut device = virtual_executor(&model, CONTEXT, &OpenOptions::default());
        let prompt = &traces(name)[1].prompt_token_ids;
        validate(&mut oracle(&model), &mut device, prompt, 2, |_| {})
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

fn options(mode: Mode, activations: Activations, context: u32) -> SessionOptions {
    SessionOptions {
        mode,
        activations,
        groups: Some(3),
        slots: 2,
        waiting_max: 4,
        context,
        chunk_rows: 33,
        output_entries: 128,
        page_order_seed: Some(3),
        ..SessionOptions::default()
    }
}

fn serve(
    model: &Model,
    mode: Mode,
    activations: Activations,
    context: u32,
    asked: &[Asked],
) -> Vec<Vec<u32>> {
    let options = options(mode, activations, context);
    let device =
        zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("the virtual device opens");
    let mut session = Session::open(device, model, &options, &mut |_, _| {}).expect("the session opens");
    let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
    let mut told = Told::new(asked.len());
    told.run(&mut session, &handles).unwrap_or_else(|error| panic!("{error}"));
    told.tokens
}

/// Prompts in chunks of 33, so that a window begins in the chunk before, and decoded tokens side by side.
#[test]
fn requests_get_the_oracles_tokens_in_every_mode() {
    for name in NAMES {
        let model = model(name);
        let long = traces(name)[1].prompt_token_ids.clone();
        let asked =
            [Asked::greedy(long.clone(), 6), Asked::sampled([3, 1, 4], 40, 7), Asked::sampled(long, 8, 9)];
        let expected = expected_with(&model, CONTEXT, Activations::F32, &asked);
        for mode in [Mode::Dispatch, Mode::Graph, Mode::Mega] {
            let found = serve(&model, mode, Activations::F32, CONTEXT, &asked);
            assert_eq!(found, expected, "{name}, {mode:?}");
        }
    }
}

/// The megakernel on a device that checks: no finding.
#[test]
fn the_megakernel_is_clean_with_every_architecture() {
    for name in ["random-qwen2", "random-gemma3"] {
        let model = model(name);
        let asked =
            [Asked::greedy(traces(name)[1].prompt_token_ids[..40].to_vec(), 2), Asked::greedy([9], 5)];
        let expected = expected_with(&model, CONTEXT, Activations::F32, &asked);
        let options = options(Mode::Mega, Activations::F32, CONTEXT);
        let mut session = checked_session(&model, &options, 5);
        session.start().expect("starts");
        let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
        let mut told = Told::new(asked.len());
        told.run(&mut session, &handles).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(told.tokens, expected, "{name}");
        let findings =
            session.close(Duration::from_secs(30)).expect("the device leaves").findings().expect("readable");
        assert!(findings.is_empty(), "{name}: {}", findings[0]);
    }
}

/// The trained model with a window of 128, at prompts longer than that.
fn check_gemma3(modes: &[(Mode, Activations)]) {
    let Some(path) = find_model("tales-gemma3-Q8_0.gguf") else { return };
    let model = load(&path);
    let asked = [Asked::greedy((0..150).map(|i| 7 * i % 4096), 4), Asked::sampled([5, 99], 6, 8)];
    for (mode, activations) in modes.iter().copied() {
        let expected = expected_with(&model, 160, activations, &asked);
        let found = serve(&model, mode, activations, 160, &asked);
        assert_eq!(found, expected, "{mode:?} {}", activations.name());
    }
}

#[test]
fn gemma3_gets_the_oracles_tokens() {
    check_gemma3(&[(Mode::Mega, Activations::A8)]);
}

/// `cargo xtask test` leaves this to `--long`.
#[test]
fn gemma3_gets_the_oracles_tokens_in_further_modes() {
    check_gemma3(&[
        (Mode::Dispatch, Activations::F32),
        (Mode::Graph, Activations::A16),
        (Mode::Mega, Activations::F32),
    ]);
}

// ------------------------------------------------------------------------------------------------------- faults

/// How far a model that is changed stands from its trace.
fn with_fault(name: &str, change: impl Fn(&mut Model)) -> f64 {
    let mut model = model(name);
    change(&mut model);
    difference(&mut oracle(&model), &traces(name)[1])
}

#[test]
fn a_window_one_position_off_is_seen() {
    for positions in [19, 21] {
        let largest = with_fault("random-gemma3", |model| {
            assert_eq!(model.config.window, Some(Window { positions: 20, period: 3 }));
            model.config.window = Some(Window { positions, period: 3 });
        });
        assert!(largest > FAULT, "a window of {positions}: {largest}");
    }
}

#[test]
fn another_layer_with_full_attention_is_seen() {
    let largest = with_fault("random-gemma3", |model| {
        model.config.window = Some(Window { positions: 20, period: 4 });
    });
    assert!(largest > FAULT, "{largest}");
}

#[test]
fn rotary_bases_that_are_swapped_are_seen() {
    let largest = with_fault("random-gemma3", |model| {
        let local = model.config.local_rope.as_mut().expect("two bases");
        std::mem::swap(local, &mut model.config.rope);
    });
    assert!(largest > FAULT, "{largest}");
}

#[test]
fn an_embedding_that_is_not_scaled_is_seen() {
    let largest = with_fault("random-gemma3", |model| model.config.embedding_scale = None);
    assert!(largest > FAULT, "{largest}");
}

#[test]
fn a_bias_that_is_dropped_is_seen() {
    let trace = &traces("random-qwen2")[1];
    for class in [WeightClass::QueryBias, WeightClass::KeyBias, WeightClass::ValueBias] {
        let mut oracle = oracle(&model("random-qwen2"));
        oracle.weight_mut(WeightId::new(class, 1)).expect("a bias").fill(0.0);
        let largest = difference(&mut oracle, trace);
        assert!(largest > FAULT, "{class:?}: {largest}");
    }
}

#[test]
fn a_rotary_scaling_that_is_dropped_is_seen() {
    for name in ["random-qwen2-yarn", "random-llama-linear"] {
        let largest =
            with_fault(name, |model| model.config.rope.scaling = zrt_engine::rope::RopeScaling::None);
        assert!(largest > FAULT, "{name}: {largest}");
    }
}
