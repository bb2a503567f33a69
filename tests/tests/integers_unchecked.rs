//! Matmuls with activations as integers, in whole models: the oracle's bits in every buffer of a step, and its tokens in
//! every way to run, alone and among others. Unchecked devices; `checked` has steps on devices that check.

use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_engine::activations::Activations;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::session::{Mode, Session, SessionOptions};
use zrt_engine::validate::validate;
use zrt_tests::serving::{Asked, Told, expected_with};
use zrt_tests::{find_model, load, repository_model, virtual_executor_with};

const CONTEXT: u32 = 64;
const INTEGERS: [Activations; 2] = [Activations::A8, Activations::A16];

fn oracle(model: &Model, activations: Activations) -> Oracle {
    Oracle::new_with(model, CONTEXT, KvFormat::F32, activations).expect("the oracle takes the model")
}

fn check_steps(model: &Model, what: &str) {
    for activations in INTEGERS {
        let mut device = virtual_executor_with(model, CONTEXT, activations, &OpenOptions::default());
        validate(&mut oracle(model, activations), &mut device, &[1, 261, 17], 2, |_| {})
            .unwrap_or_else(|error| panic!("{what} {}: {error}", activations.name()));
    }
}

#[test]
fn steps_agree_with_the_oracle() {
    for name in ["tales-qwen3-Q4_0", "tales-llama-Q4_K_M"] {
        check_steps(&load(&repository_model(&format!("{name}.gguf"))), name);
    }
}

#[test]
fn steps_of_other_formats_agree_with_the_oracle() {
    for name in ["tales-llama-Q8_0", "stories260K-w256-Q6_K"] {
        let Some(path) = find_model(&format!("{name}.gguf")) else { continue };
        check_steps(&load(&path), name);
    }
}

/// However many matmuls read it.
#[test]
fn each_vector_is_quantised_once() {
    let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
    let plan = |activations| {
        let plan = zrt_engine::plan::ExecutionPlan::step(&model, CONTEXT, 1, activations).expect("planned");
        let quantises = |node: &zrt_engine::graph::Node| node.operation.name() == "quantise";
        plan.instructions.iter().filter(|one| quantises(&one.node)).count()
    };
    // Four vectors of a layer, and the one that the logits are made of.
    let layers = model.config.layers as usize;
    assert_eq!([Activations::F32, Activations::A8].map(plan), [0, 4 * layers + 1]);
}

/// Prompts in chunks and decoded tokens side by side, in steps of few rows, of a tile, and of several: what a request gives
/// does not depend on it.
fn check_session(mode: Mode, activations: Activations) {
    let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
    let asked = [
        Asked::greedy([1, 261, 17], 6),
        Asked::sampled(1..40, 4, 7),
        Asked::sampled([5], 8, 8),
        Asked::greedy(100..157, 3),
    ];
    let expected = expected_with(&model, CONTEXT, activations, &asked);
    for chunk_rows in [3, 100] {
        let tokens = serve(&model, mode, activations, chunk_rows, &asked);
        assert_eq!(tokens, expected, "{mode:?} {} {chunk_rows}", activations.name());
    }
}

fn serve(
    model: &Model,
    mode: Mode,
    activations: Activations,
    chunk_rows: u32,
    asked: &[Asked],
) -> Vec<Vec<u32>> {
    let options = SessionOptions {
        mode,
        activations,
        groups: Some(3),
        slots: 3,
        waiting_max: 4,
        context: CONTEXT,
        chunk_rows,
        output_entries: 128,
        page_order_seed: Some(3),
        ..SessionOptions::default()
    };
    let device =
        zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("the virtual device opens");
    let mut session = Session::open(device, model, &options, &mut |_, _| {}).expect("the session opens");
    let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
    let mut told = Told::new(asked.len());
    told.run(&mut session, &handles).unwrap_or_else(|error| panic!("{error}"));
    told.tokens
}

#[test]
fn dispatches_give_the_tokens_of_the_oracle() {
    check_session(Mode::Dispatch, Activations::A8);
}

#[test]
fn recorded_steps_give_the_tokens_of_the_oracle() {
    check_session(Mode::Graph, Activations::A16);
}

#[test]
fn the_megakernel_gives_the_tokens_of_the_oracle() {
    check_session(Mode::Mega, Activations::A8);
    check_session(Mode::Mega, Activations::A16);
}
