//! What few requests ask of SAMPLE, through sessions: biases, presence and frequency penalties, typical-p, min-p and
//! log-probabilities. The oracle's tokens and the oracle's log-probabilities to the bit, in every mode; on a device
//! that checks, no finding.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use zrt_bringup::{DeviceChoice, Inspect, OpenOptions};
use zrt_engine::activations::Activations;
use zrt_engine::log_probabilities::LogProbabilities;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::sampling::{LogitBias, SamplingOptions};
use zrt_engine::session::{Event, Handle, Mode, Request, Session, SessionError, SessionOptions};
use zrt_tests::serving::checked_session;
use zrt_tests::{load, repository_model};

const CONTEXT: u32 = 48;
/// Longest that a session may take.
const DEADLINE: Duration = Duration::from_secs(120);

/// What a request receives: each token, with its log-probabilities.
type Received = Vec<(u32, Option<LogProbabilities>)>;

fn model() -> Model {
    load(&repository_model("tales-qwen3-Q4_0.gguf"))
}

fn options(mode: Mode) -> SessionOptions {
    SessionOptions {
        mode,
        slots: 3,
        groups: Some(2),
        waiting_max: 16,
        context: CONTEXT,
        output_entries: 128,
        activations: Activations::F32,
        ..SessionOptions::default()
    }
}

/// Prompts with options: each new one alone, all together, and requests without any among them.
fn asked() -> Vec<(Vec<u32>, SamplingOptions)> {
    let drawn = SamplingOptions { temperature: 1.2, seed: 11, ..SamplingOptions::default() };
    let bias = LogitBias::new(&[(261, -3.0), (17, f32::NEG_INFINITY), (300, 2.5)]).expect("in range");
    let all = SamplingOptions {
        top_k: 200,
        top_p: 0.95,
        repetition_penalty: 1.1,
        penalty_window: 20,
        min_p: 0.02,
        typical_p: 0.9,
        presence_penalty: 0.4,
        frequency_penalty: 0.3,
        logit_bias: bias,
        log_probabilities: Some(3),
        ..drawn
    };
    let window = 64;
    vec![
        (vec![1, 261, 17], SamplingOptions { min_p: 0.1, ..drawn }),
        (vec![5, 9], drawn),
        (vec![1, 261, 17], SamplingOptions { typical_p: 0.6, log_probabilities: Some(20), ..drawn }),
        (vec![7, 7, 8, 7], SamplingOptions { presence_penalty: 2.0, penalty_window: window, ..drawn }),
        (vec![3], SamplingOptions { log_probabilities: Some(5), ..SamplingOptions::default() }),
        (
            vec![7, 7, 8, 7],
            SamplingOptions { frequency_penalty: 1.5, penalty_window: window, ..SamplingOptions::default() },
        ),
        (vec![2, 40], SamplingOptions { logit_bias: bias, log_probabilities: Some(0), ..drawn }),
        (vec![1, 261, 17, 99], all),
        (vec![5, 10], SamplingOptions::default()),
        (vec![6, 11], SamplingOptions { seed: 12, top_k: 40, min_p: 0.05, ..all }),
    ]
}

const TOKENS: u32 = 6;

fn expected(model: &Model) -> Vec<Received> {
    let mut oracle = Oracle::new(model, CONTEXT).expect("the oracle takes the model");
    let run = |(prompt, sampling): (Vec<u32>, SamplingOptions)| {
        let sampling = sampling.validate().expect("in range");
        let mut received = Vec::new();
        oracle
            .complete_with(&prompt, TOKENS, &sampling, &[], |token| {
                received.extend(token);
                ControlFlow::Continue(())
            })
            .expect("the oracle runs");
        received
    };
    asked().into_iter().map(run).collect()
}

/// Submits every request and takes what comes, `at_once` events with a poll.
fn serve(session: &mut Session, at_once: usize) -> Vec<Received> {
    let asked = asked();
    let submit = |(prompt, sampling): &(Vec<u32>, SamplingOptions)| {
        let request = Request { prompt, tokens_max: TOKENS, sampling: *sampling, stops: &[] };
        session.submit(&request).expect("there is room")
    };
    let handles: Vec<Handle> = asked.iter().map(submit).collect();
    let mut received: Vec<Received> = vec![Vec::new(); handles.len()];
    let mut events = vec![Event::default(); at_once];
    let start = Instant::now();
    while session.unfinished_count() > 0 {
        assert!(start.elapsed() < DEADLINE, "the session does not end: {:?}", session.standings());
        let count = session.poll(&mut events).expect("the session runs");
        for event in &events[..count] {
            if let Event::Token { handle, token, index } = *event {
                let at = handles.iter().position(|one| *one == handle).expect("a known handle");
                assert_eq!(index as usize, asked[at].0.len() + received[at].len());
                received[at].push((token, session.log_probabilities(handle, index).copied()));
                assert_eq!(session.log_probabilities(handle, index + 1000), None);
            }
        }
        if count == 0 {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    received
}

#[test]
fn requests_get_the_oracles_tokens_and_log_probabilities_in_every_mode() {
    let model = model();
    let expected = expected(&model);
    for (mode, at_once) in [(Mode::Dispatch, 1), (Mode::Graph, 64), (Mode::Mega, 5)] {
        let device = zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("opens");
        let mut session =
            Session::open(device, &model, &options(mode), &mut |_, _| {}).expect("the session opens");
        // Twice: a slot's second request has nothing of its first one's.
        for round in 0..2 {
            assert_eq!(serve(&mut session, at_once), expected, "{mode:?}, round {round}");
        }
    }
    // The options had an effect: nothing that is like a request without them, and lists of the lengths asked for.
    let lengths: Vec<_> = expected
        .iter()
        .map(|received| received[0].1.map(|values| (values.top().len(), received.len())))
        .collect();
    let tokens = TOKENS as usize;
    let some = |count: usize| Some((count, tokens));
    assert_eq!(
        lengths,
        [None, None, some(20), None, some(5), None, some(0), some(3), None, some(3)],
        "log-probabilities come where they are asked for"
    );
    let greedy = &expected[4];
    assert!(
        greedy.iter().all(|(token, values)| values.is_some_and(|values| values.top()[0].token == *token))
    );
    assert!(expected[6].iter().chain(&expected[7]).all(|(token, _)| *token != 17), "a banned token");
}

/// The same on a device that checks. `cargo xtask test` leaves the second schedule to `--long`.
fn check(seed: u64) {
    let model = model();
    let expected = expected(&model);
    let mut session = checked_session(&model, &options(Mode::Mega), seed);
    session.start().expect("starts");
    assert_eq!(serve(&mut session, 16), expected, "schedule {seed}");
    let device = session.close(DEADLINE).expect("the device leaves");
    assert_eq!(device.findings().expect("readable"), []);
}

#[test]
fn a_device_that_checks_finds_nothing() {
    check(3);
}

#[test]
fn a_device_that_checks_finds_nothing_on_another_schedule() {
    check(4);
}

/// Biases name tokens of the vocabulary.
#[test]
fn a_bias_of_no_token_is_refused() {
    let model = model();
    let vocabulary = model.config.vocabulary;
    let device = zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("opens");
    let mut session =
        Session::prepare(device, &model, &options(Mode::Graph), &mut |_, _| {}).expect("it is resident");
    let mut submit = |token: u32| {
        let logit_bias = LogitBias::new(&[(1, 1.0), (token, 1.0)]).expect("in range");
        let sampling = SamplingOptions { logit_bias, ..SamplingOptions::default() };
        session.submit(&Request { prompt: &[1], tokens_max: 1, sampling, stops: &[] })
    };
    assert!(submit(vocabulary - 1).is_ok());
    let refused = submit(vocabulary).expect_err("no such token");
    assert!(matches!(refused, SessionError::Token { token, .. } if token == vocabulary), "{refused}");
}
