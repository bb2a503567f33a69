//! Sessions: every request gets the tokens that the oracle produces for it alone, in every mode, and nothing is lost.

use std::path::Path;
use std::time::Duration;
use zrt_bringup::{DeviceChoice, Inspect, OpenOptions, VirtualOptions};
use zrt_engine::activations::Activations;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::session::{Mode, Session, SessionOptions};
use zrt_engine::validate::validate;
use zrt_mem::Heap;
use zrt_tests::serving::{Asked, Told, checked_session, expected};
use zrt_tests::{load, repository_model, virtual_executor};

const MODEL: &str = "tales-qwen3-Q4_0.gguf";

fn model() -> Model {
    load(&repository_model(MODEL))
}

fn session(model: &Model, options: &SessionOptions, open: &OpenOptions) -> Session {
    let device = zrt_bringup::open(DeviceChoice::Virtual, open).expect("the virtual device opens");
    Session::open(device, model, options, &mut |_, _| {}).expect("the session opens")
}

#[test]
fn the_step_executor_agrees_with_the_oracle() {
    let model = model();
    let mut oracle = Oracle::new(&model, 64).expect("the oracle takes the model");
    let mut device = virtual_executor(&model, 64, &OpenOptions::default());
    validate(&mut oracle, &mut device, &[1, 261, 17], 2, |_| {}).unwrap_or_else(|error| panic!("{error}"));
}

/// Requests of different lengths, greedy and sampled.
fn requests() -> [Asked; 4] {
    [
        Asked::greedy([1, 261, 17], 6),
        Asked::sampled(1..40, 4, 7),
        Asked::sampled([5], 8, 8),
        Asked::greedy(100..117, 3),
    ]
}

fn check(mode: Mode, groups: Option<u32>) {
    check_on(mode, groups, Heap::Host, &OpenOptions::default());
}

fn check_on(mode: Mode, groups: Option<u32>, output_heap: Heap, open: &OpenOptions) {
    let model = model();
    let options = SessionOptions {
        mode,
        groups,
        slots: 3,
        waiting_max: 4,
        context: 64,
        chunk_rows: 8,
        output_entries: 128,
        output_heap,
        page_order_seed: Some(3),
        activations: Activations::F32,
        ..SessionOptions::default()
    };
    let mut session = session(&model, &options, open);
    let requests = requests();
    let handles: Vec<_> = requests.iter().map(|one| one.submit(&mut session)).collect();
    let mut told = Told::new(requests.len());
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!(told.tokens, expected(&model, 64, &requests), "{mode:?}");
    assert_eq!(told.ends, [1; 4], "{mode:?}");
    session.close(Duration::from_secs(30)).expect("the device leaves");
}

#[test]
fn requests_run_with_one_submission_for_each_step() {
    check(Mode::Graph, None);
}

#[test]
fn requests_run_with_one_submission_for_each_task() {
    check(Mode::Dispatch, None);
}

#[test]
fn requests_run_in_the_megakernel() {
    check(Mode::Mega, Some(3));
}

/// `cargo xtask test` leaves this to `--long`.
#[test]
fn requests_run_in_the_megakernel_of_one_workgroup_and_of_many() {
    for groups in [1, 16] {
        check(Mode::Mega, Some(groups));
    }
}

/// The output ring in VRAM, and every host-written structure in system memory if the BAR is small.
#[test]
fn rings_lie_where_they_are_asked_for_and_where_the_bar_allows() {
    check_on(Mode::Mega, Some(2), Heap::HostShared, &OpenOptions::default());
    let virtual_device = VirtualOptions { small_bar: true, ..VirtualOptions::default() };
    check_on(Mode::Mega, Some(2), Heap::Host, &OpenOptions { virtual_device, ..OpenOptions::default() });
}

/// A conversation of three turns beside requests that mix up the pages; then another answer to an edited second turn.
/// Each turn receives the tokens of the oracle, which computes the whole of it.
fn converse(model: &Model, options: &SessionOptions, open: &OpenOptions) {
    let mut session = session(model, options, open);
    let mut oracle = Oracle::new_with(model, options.context, options.kv_format, Activations::F32)
        .expect("the oracle takes the model");
    let mut say = |prompt: &[u32], found: u32| {
        let asked = [Asked::greedy(prompt.iter().copied(), 5), Asked::greedy([9, 8, prompt[0]], 4)];
        let handles = asked.each_ref().map(|one| one.submit(&mut session));
        assert_eq!(session.found_positions(handles[0]).expect("it has a slot"), found);
        let mut told = Told::new(2);
        told.run_to_the_ends(&mut session, &handles).expect("the session runs");
        let expected = asked.each_ref().map(|one| one.expected(&mut oracle));
        assert_eq!(told.tokens, expected, "{:?} {:?}, found {found}", options.mode, options.kv_format);
        told.tokens.swap_remove(0)
    };
    let first: Vec<u32> = (0..19).map(|at| 11 * at % 61).collect();
    let answer = say(&first, 0);
    let second = [&first, &answer[..], &[40, 41, 42]].concat();
    let answer = say(&second, 23);
    let third = [&second, &answer[..], &[50]].concat();
    say(&third, 31);
    // The conversation up to the middle of the second answer, and another turn.
    say(&[&third[..29], &[3, 2, 1]].concat(), 29);
    session.forget_kept();
    assert!(session.audit().is_clean());
    session.close(Duration::from_secs(30)).expect("the device leaves");
}

/// Gemma's windows of 20 positions end in what was computed for the turn before.
#[test]
fn a_conversation_is_computed_once_and_its_tokens_do_not_show_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/random-gemma3.gguf");
    let model = load(&path);
    for mode in Mode::ALL {
        for kv_format in KvFormat::ALL {
            let options = SessionOptions {
                mode,
                kv_format,
                groups: Some(3),
                slots: 2,
                waiting_max: 2,
                kept: 2,
                context: 64,
                chunk_rows: 7,
                output_entries: 128,
                page_order_seed: Some(5),
                activations: Activations::F32,
                ..SessionOptions::default()
            };
            converse(&model, &options, &OpenOptions::default());
        }
    }
}

/// Likewise on a device that checks.
#[test]
fn a_conversation_is_clean_on_several_schedules() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/random-qwen2.gguf");
    let model = load(&path);
    let mut oracle = Oracle::new(&model, 64).expect("the oracle takes the model");
    for seed in 0..4 {
        let options = SessionOptions {
            groups: Some(2),
            slots: 2,
            waiting_max: 2,
            kept: 2,
            context: 64,
            output_entries: 128,
            activations: Activations::F32,
            ..SessionOptions::default()
        };
        let mut session = checked_session(&model, &options, seed);
        session.start().expect("it starts");
        let mut prompt: Vec<u32> = (1..20).collect();
        for found in [0, 22] {
            let asked = Asked::greedy(prompt.iter().copied(), 4);
            let handle = asked.submit(&mut session);
            assert_eq!(session.found_positions(handle).expect("it has a slot"), found);
            let mut told = Told::new(1);
            told.run_to_the_ends(&mut session, &[handle]).expect("the session runs");
            assert_eq!(told.tokens[0], asked.expected(&mut oracle), "seed {seed}");
            prompt.extend(&told.tokens[0]);
            prompt.push(7);
        }
        let findings = session.resident().device.findings().expect("readable");
        assert!(findings.is_empty(), "seed {seed}: {}", findings[0]);
        session.close(Duration::from_secs(60)).expect("the device leaves");
    }
}
