//! Sessions: every request gets the tokens that the oracle produces for it alone, in every mode, and nothing is lost.

use std::time::Duration;
use zrt_bringup::{DeviceChoice, OpenOptions, VirtualOptions};
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::session::{Mode, Session, SessionOptions};
use zrt_engine::validate::validate;
use zrt_mem::Heap;
use zrt_tests::serving::{Asked, Told, expected};
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
    for groups in [1, 3, 16] {
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
