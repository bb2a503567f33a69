//! Every type of weight in one model, in every place that a weight has: embeddings, products of every mode, steps of
//! few rows and of tiles, and every way to run. Unchecked devices; `checked` has steps of the model on devices that
//! check.

use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_engine::activations::Activations;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::session::{Mode, Session, SessionOptions};
use zrt_engine::validate::validate;
use zrt_engine::weights::WEIGHT_KINDS;
use zrt_tests::mixed_model::mixed_model;
use zrt_tests::serving::{Asked, Told, expected_with};
use zrt_tests::virtual_executor_with;

const CONTEXT: u32 = 64;

/// With every type as the embedding's, and every mode with some.
#[test]
fn steps_agree_with_the_oracle() {
    for first in 0..WEIGHT_KINDS.len() {
        let model = mixed_model(first);
        let activations = Activations::ALL[first % Activations::ALL.len()];
        let mut oracle = Oracle::new_with(&model, CONTEXT, KvFormat::F32, activations).expect("taken");
        let mut device = virtual_executor_with(&model, CONTEXT, activations, &OpenOptions::default());
        validate(&mut oracle, &mut device, &[1, 261, 17], 1, |_| {})
            .unwrap_or_else(|error| panic!("{first}, {}: {error}", activations.name()));
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

fn check_session(mode: Mode) {
    let model = mixed_model(0);
    let asked = [Asked::greedy([1, 261, 17], 6), Asked::sampled(1..40, 4, 7), Asked::greedy(100..157, 3)];
    for activations in Activations::DEFINED {
        let expected = expected_with(&model, CONTEXT, activations, &asked);
        for chunk_rows in [3, 100] {
            let tokens = serve(&model, mode, activations, chunk_rows, &asked);
            assert_eq!(tokens, expected, "{mode:?} {} {chunk_rows}", activations.name());
        }
    }
}

#[test]
fn dispatches_give_the_tokens_of_the_oracle() {
    check_session(Mode::Dispatch);
}

#[test]
fn recorded_steps_give_the_tokens_of_the_oracle() {
    check_session(Mode::Graph);
}

#[test]
fn the_megakernel_gives_the_tokens_of_the_oracle() {
    check_session(Mode::Mega);
}
