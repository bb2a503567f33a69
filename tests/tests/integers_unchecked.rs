//! Matmuls with activations as integers, in whole models: the oracle's bits in every buffer of a step, and its tokens
//! in every way to run, alone and among others. Unchecked devices; `checked` has steps on devices that check.

use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_engine::activations::Activations;
use zrt_engine::executor::{Cache, Executor};
use zrt_engine::kv_format::KvFormat;
use zrt_engine::memory_plan::AllocationId;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::session::{Mode, Session, SessionOptions};
use zrt_engine::validate::validate;
use zrt_protocol::PAGE_TOKENS;
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

/// However many matmuls read it, and by the kernel that makes it.
#[test]
fn each_vector_is_quantised_once_where_it_is_made() {
    let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
    let plan = |activations| {
        let plan = zrt_engine::plan::ExecutionPlan::step(&model, CONTEXT, 1, activations).expect("planned");
        let is_quantise = |node: &zrt_engine::graph::Node| node.operation.name() == "quantise";
        let alone = plan.instructions.iter().filter(|one| is_quantise(&one.node));
        let epilogues = plan.instructions.iter().filter_map(|one| one.epilogue).filter(is_quantise);
        [alone.count(), epilogues.count()]
    };
    // Four vectors of a layer, and the one that the logits are made of.
    let layers = model.config.layers as usize;
    assert_eq!([Activations::F32, Activations::A8].map(plan), [[0, 0], [0, 4 * layers + 1]]);
}

/// Prompts in chunks and decoded tokens side by side, in steps of few rows, of a tile, and of several: what a request
/// gives does not depend on it.
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

/// Three prompts in a step of 350 rows if the device meets all of them at once, as it does where the host submits each
/// step, else in several: three bands, the last one short.
fn check_bands(mode: Mode, activations: Activations) {
    const LONG_CONTEXT: u32 = 192;
    let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
    let asked =
        [Asked::greedy(1..151, 3), Asked::sampled(100..220, 3, 7), Asked::sampled((1..81).rev(), 2, 8)];
    let expected = expected_with(&model, LONG_CONTEXT, activations, &asked);
    let options = SessionOptions { context: LONG_CONTEXT, ..options(mode, activations, 400) };
    assert_eq!(serve_with(&model, &options, &asked), expected, "{mode:?} {}", activations.name());
}

#[test]
fn steps_of_several_bands_agree_with_the_oracle() {
    check_bands(Mode::Dispatch, Activations::A16);
}

/// Every layer's keys and values of a prompt that is taken in few steps are what the oracle makes of one token after
/// the other: so is what every layer before has made.
fn check_keys_and_values(of: &[Activations]) {
    let model = load(&repository_model("tales-llama-Q4_K_M.gguf"));
    let (config, prompt) = (&model.config, (100..157).collect::<Vec<u32>>());
    for activations in of.iter().copied() {
        let mut oracle = oracle(&model, activations);
        oracle.begin(&prompt).expect("begins");
        for _ in &prompt {
            oracle.step().expect("steps");
        }
        for chunk_rows in [20, 100] {
            let options = options(Mode::Graph, activations, chunk_rows);
            let mut session = open(&model, &SessionOptions { page_order_seed: None, ..options });
            let asked = Asked::greedy(prompt.iter().copied(), 1);
            let handle = asked.submit(&mut session);
            Told::new(1).run(&mut session, &[handle]).unwrap_or_else(|error| panic!("{error}"));
            for (layer, position) in (0..config.layers).flat_map(|layer| (0..57).map(move |at| (layer, at))) {
                for (side, cache) in [Cache::Key, Cache::Value].into_iter().enumerate() {
                    let expected = oracle.read_cache_row(cache, layer, position).expect("a row");
                    let found =
                        cache_row(&mut session, config.kv_elements(), 2 * layer + side as u32, position);
                    let expected: Vec<u8> = expected.iter().flat_map(|value| value.to_le_bytes()).collect();
                    assert!(
                        found == expected,
                        "{} {chunk_rows}: {cache:?}, layer {layer}, position {position}",
                        activations.name()
                    );
                }
            }
        }
    }
}

#[test]
fn keys_and_values_of_steps_of_tiles_are_the_oracles() {
    check_keys_and_values(&[Activations::A16]);
}

/// A row of the first request's keys or values, by docs/kernels.md: its pages come first and in order. `part`: of each
/// layer the keys, then the values.
fn cache_row(session: &mut Session, elements: u32, part: u32, position: u32) -> Vec<u8> {
    let resident = session.resident();
    let (page, token) = (u64::from(position / PAGE_TOKENS), u64::from(position % PAGE_TOKENS));
    let row = u64::from(part) * u64::from(PAGE_TOKENS) + token;
    let mut bytes = vec![0; elements as usize * 4];
    let offset = page * resident.memory.page_bytes + row * u64::from(elements) * 4;
    resident.download(AllocationId::KvPool, offset, &mut bytes).expect("in the pool");
    bytes
}

fn serve(
    model: &Model,
    mode: Mode,
    activations: Activations,
    chunk_rows: u32,
    asked: &[Asked],
) -> Vec<Vec<u32>> {
    serve_with(model, &options(mode, activations, chunk_rows), asked)
}

fn serve_with(model: &Model, options: &SessionOptions, asked: &[Asked]) -> Vec<Vec<u32>> {
    let mut session = open(model, options);
    let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
    let mut told = Told::new(asked.len());
    told.run(&mut session, &handles).unwrap_or_else(|error| panic!("{error}"));
    told.tokens
}

fn options(mode: Mode, activations: Activations, chunk_rows: u32) -> SessionOptions {
    SessionOptions {
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
    }
}

fn open(model: &Model, options: &SessionOptions) -> Session {
    let device =
        zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("the virtual device opens");
    Session::open(device, model, options, &mut |_, _| {}).expect("the session opens")
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
    check_session(Mode::Mega, Activations::A16);
}

/// The same in other modes. `cargo xtask test` leaves these to `--long`.
mod further_modes {
    use super::*;

    #[test]
    fn steps_of_several_bands() {
        check_bands(Mode::Graph, Activations::F32);
        check_bands(Mode::Mega, Activations::A16);
    }

    #[test]
    fn keys_and_values_of_steps_of_tiles() {
        let others = Activations::ALL.into_iter().filter(|one| *one != Activations::A16);
        check_keys_and_values(&others.collect::<Vec<_>>());
    }

    #[test]
    fn the_megakernel() {
        check_session(Mode::Mega, Activations::A8);
    }
}
