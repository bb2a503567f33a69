//! Sessions: every request gets what the oracle gives it alone, in every mode, and nothing is lost.

use std::time::{Duration, Instant};
use zrt_device::{Device, DeviceChoice, OpenOptions, VirtualOptions};
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::session::{Event, Handle, Mode, Request, Session, SessionOptions};
use zrt_engine::validate::validate;
use zrt_mem::Heap;
use zrt_tests::{find, load, virtual_executor};

const MODEL: &str = "tales-qwen3-Q4_0.gguf";
/// Longest that a test's session may take.
const DEADLINE: Duration = Duration::from_secs(300);

fn model() -> Model {
    load(&find(MODEL).expect("the model is in the repository"))
}

fn session(model: &Model, options: &SessionOptions, open: &OpenOptions) -> Session {
    let device = Device::open(DeviceChoice::Virtual, open).expect("the virtual device opens");
    Session::open(device, model, options, &mut |_, _| {}).expect("the session opens")
}

/// Polls until every request has ended; the tokens that each was told.
fn run(session: &mut Session, handles: &[Handle]) -> Vec<Vec<u32>> {
    let mut told: Vec<Vec<u32>> = vec![Vec::new(); handles.len()];
    let mut ended = vec![0; handles.len()];
    let mut events = [Event::default(); 16];
    let start = Instant::now();
    while session.unfinished_count() > 0 {
        assert!(start.elapsed() < DEADLINE, "the session does not end: {:?}", session.standings());
        let count = session.poll(&mut events).expect("the session runs");
        for event in &events[..count] {
            let at = |handle: &Handle| handles.iter().position(|one| one == handle).expect("a known handle");
            match event {
                Event::Token { handle, token, .. } => told[at(handle)].push(*token),
                Event::Finished { handle, .. } => ended[at(handle)] += 1,
                Event::Parked { .. } => {}
            }
        }
        if count == 0 {
            std::thread::yield_now();
        }
    }
    assert!(ended.iter().all(|count| *count == 1), "one end each: {ended:?}");
    assert!(session.audit().is_clean(), "pages leak: {:?}", session.audit());
    told
}

#[test]
fn the_step_executor_agrees_with_the_oracle() {
    let model = model();
    let mut oracle = Oracle::new(&model, 64).expect("the oracle takes the model");
    let mut device = virtual_executor(&model, 64, &OpenOptions::default());
    validate(&mut oracle, &mut device, &[1, 261, 17], 2, |_| {}).unwrap_or_else(|error| panic!("{error}"));
}

/// Requests of different lengths, greedy and sampled.
fn requests() -> Vec<(Vec<u32>, u32, SamplingOptions)> {
    let sampled = |seed| SamplingOptions {
        temperature: 0.9,
        top_k: 40,
        top_p: 0.9,
        repetition_penalty: 1.1,
        penalty_window: 32,
        seed,
    };
    vec![
        (vec![1, 261, 17], 6, SamplingOptions::default()),
        ((1..40).collect(), 4, sampled(7)),
        (vec![5], 8, sampled(8)),
        ((100..117).collect(), 3, SamplingOptions::default()),
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
    let submit = |(prompt, tokens_max, sampling): &(Vec<u32>, u32, SamplingOptions)| {
        let request = Request { prompt, tokens_max: *tokens_max, sampling: *sampling, stops: &[] };
        session.submit(&request).expect("there is room")
    };
    let handles: Vec<Handle> = requests.iter().map(submit).collect();
    let told = run(&mut session, &handles);
    let mut oracle = Oracle::new(&model, 64).expect("the oracle takes the model");
    for ((prompt, tokens_max, sampling), told) in requests.iter().zip(told) {
        let sampling = sampling.validate().expect("in range");
        let expected = oracle.complete(prompt, *tokens_max, &sampling, &[]).expect("the oracle runs");
        assert_eq!(told, expected, "{mode:?}, prompt {prompt:?}");
    }
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

/// The output ring in VRAM, and every host-written structure in system memory where the BAR is small.
#[test]
fn rings_lie_where_they_are_asked_for_and_where_the_bar_allows() {
    check_on(Mode::Mega, Some(2), Heap::HostVisible, &OpenOptions::default());
    let virtual_device = VirtualOptions { small_bar: true, ..VirtualOptions::default() };
    check_on(Mode::Mega, Some(2), Heap::Host, &OpenOptions { virtual_device, ..OpenOptions::default() });
}
