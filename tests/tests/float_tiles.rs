//! Mode f16 in whole models with weights in F16 and BF16, on devices that check: no finding in any way to run, keys and
//! values of steps of tiles near the oracle's, and its bits where steps have fewer rows.

use std::time::Duration;
use zrt_bringup::Inspect;
use zrt_engine::activations::Activations;
use zrt_engine::executor::{Cache, Executor};
use zrt_engine::gguf::TensorKind;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::AllocationId;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::session::{Mode, Session, SessionOptions};
use zrt_protocol::PAGE_TOKENS;
use zrt_tests::mixed_model::model_of;
use zrt_tests::serving::{Asked, Told, checked_session};

const CONTEXT: u32 = 64;
/// Rows of the prompt: two tiles and a part of one.
const ROWS: u32 = 41;

/// Keys and values of a prompt by the oracle, which computes f16 as f32: of each layer the keys of all positions, then
/// the values.
fn expected(model: &Model, prompt: &[u32]) -> Vec<f32> {
    let mut oracle = Oracle::new_with(model, CONTEXT, KvFormat::F32, Activations::F16).expect("taken");
    oracle.begin(prompt).expect("begins");
    prompt.iter().for_each(|_| {
        oracle.step().expect("steps");
    });
    let mut rows = Vec::new();
    for (layer, cache) in
        (0..model.config.layers).flat_map(|layer| [Cache::Key, Cache::Value].map(|cache| (layer, cache)))
    {
        for position in 0..prompt.len() as u32 {
            rows.extend(oracle.read_cache_row(cache, layer, position).expect("a row"));
        }
    }
    rows
}

/// The same of a session's first request, by docs/kernels.md: its pages come first and in order.
fn found(session: &mut Session, model: &Model, rows: u32) -> Vec<f32> {
    let elements = model.config.kv_elements();
    let resident = session.resident();
    let mut values = Vec::new();
    for (part, position) in (0..2 * model.config.layers).flat_map(|part| (0..rows).map(move |at| (part, at)))
    {
        let (page, token) = (position / PAGE_TOKENS, position % PAGE_TOKENS);
        let row = u64::from(part * PAGE_TOKENS + token);
        let offset = u64::from(page) * resident.memory.page_bytes + row * u64::from(elements) * 4;
        let mut bytes = vec![0; elements as usize * 4];
        resident.download(AllocationId::KvPool, offset, &mut bytes).expect("in the pool");
        values.extend(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
    }
    values
}

/// Keys and values of the prompt as a session makes them in steps of so many rows, and how many tokens it told.
fn run(model: &Model, mode: Mode, chunk_rows: u32, seed: u64) -> (Vec<f32>, usize) {
    let options = SessionOptions {
        mode,
        activations: Activations::F16,
        groups: Some(3),
        slots: 2,
        waiting_max: 2,
        context: CONTEXT,
        chunk_rows,
        output_entries: 128,
        ..SessionOptions::default()
    };
    let mut session = checked_session(model, &options, seed);
    session.start().expect("starts");
    let asked = Asked::greedy(prompt(), 3);
    let handle = asked.submit(&mut session);
    let mut told = Told::new(1);
    told.run(&mut session, &[handle]).unwrap_or_else(|error| panic!("{error}"));
    let values = found(&mut session, model, ROWS);
    let device = session.close(Duration::from_secs(30)).expect("the device leaves");
    let findings = device.findings().expect("readable");
    assert!(findings.is_empty(), "{mode:?} {chunk_rows}: {}", findings[0]);
    (values, told.tokens[0].len())
}

fn prompt() -> Vec<u32> {
    (0..ROWS).map(|position| 7 * position % 320).collect()
}

/// Root of the mean square of the difference, relative to that of what is expected.
fn distance(found: &[f32], expected: &[f32]) -> f64 {
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
    let difference = found.iter().zip(expected).map(|(found, expected)| f64::from(found - expected));
    let size = expected.iter().map(|value| f64::from(*value));
    (square(&mut difference.into_iter()) / square(&mut size.into_iter())).sqrt()
}

/// An x is off by at most 2^-11 of its size in F16 and 2^-8 in BF16, and by some 0.4 of that in the mean square; so is
/// a product of many, and three layers of matmuls add a few of these up. The bounds are twice 2^-11 and 2^-8. A product
/// that lacks one of its 256 columns is off by 2^-4.
fn check(mode: Mode, kind: TensorKind, within: f64) {
    let model = model_of(&[kind]);
    let expected = expected(&model, &prompt());
    for (chunk_rows, seed) in [(ROWS, 1), (16, 2)] {
        let (found, tokens) = run(&model, mode, chunk_rows, seed);
        let distance = distance(&found, &expected);
        assert!(0.0 < distance && distance < within, "{mode:?} {kind} {chunk_rows}: {distance:e}");
        assert_eq!(tokens, 3, "{mode:?} {kind} {chunk_rows}");
    }
    // The prompt's steps and those of single tokens are f32's here.
    let (found, _) = run(&model, mode, 8, 3);
    assert!(found == expected, "{mode:?} {kind}: steps of few rows");
}

const F16_WITHIN: f64 = 1.0 / 1024.0;
const BF16_WITHIN: f64 = 1.0 / 128.0;

#[test]
fn dispatches_are_near_the_oracle() {
    check(Mode::Dispatch, TensorKind::F16, F16_WITHIN);
}

#[test]
fn recorded_steps_are_near_the_oracle() {
    check(Mode::Graph, TensorKind::BF16, BF16_WITHIN);
}

#[test]
fn the_megakernel_is_near_the_oracle() {
    check(Mode::Mega, TensorKind::F16, F16_WITHIN);
    check(Mode::Mega, TensorKind::BF16, BF16_WITHIN);
}
