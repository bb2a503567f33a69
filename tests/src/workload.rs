//! A random workload for a session, as a server's clients would make it, and the checks of what each client receives.
//!
//! Contract: everything is drawn from the seed. Expected tokens come from the oracle, which runs each shape of a
//! request alone. [`drive`] panics at the first thing that a client must not see, and when the deadline passes, with
//! the standings of the megakernel.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};
use zrt_engine::memory_plan::AllocationId;
use zrt_engine::oracle::Oracle;
use zrt_engine::sampling::{LogitBias, SamplingOptions};
use zrt_engine::session::{Event, Handle, Request, Session, SessionError};
use zrt_needs::Random;
use zrt_protocol::{Control, FinishReason};

/// How long a client waits when there is nothing for it: the virtual device needs the host's cores.
const PAUSE: Duration = Duration::from_micros(100);

/// A request, and what it must produce.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Known tokens.
    pub prompt: Vec<u32>,
    /// Tokens to generate.
    pub tokens_max: u32,
    /// How they are drawn.
    pub sampling: SamplingOptions,
    /// The tokens that end it early.
    pub stops: Vec<u32>,
    /// The oracle's answer.
    pub expected: Vec<u32>,
}

/// Draws a shape: half are sampled, a third have stop tokens of which most are met. Short prompts are more frequent.
pub fn shape(
    random: &mut Random,
    oracle: &mut Oracle,
    prompt_max: u32,
    tokens: RangeInclusive<u32>,
) -> Shape {
    let vocabulary = zrt_engine::executor::Executor::plan(oracle).config.vocabulary;
    let longest = random.range(1, prompt_max);
    let prompt_length = random.range(1, longest);
    let prompt: Vec<u32> = (0..prompt_length).map(|_| random.range(1, vocabulary - 1)).collect();
    let tokens_max = random.range(*tokens.start(), *tokens.end());
    let sampling = match random.one_in(2) {
        true => SamplingOptions::default(),
        false => SamplingOptions {
            temperature: random.range(5, 15) as f32 / 10.0,
            top_k: random.range(0, 50),
            top_p: random.range(5, 10) as f32 / 10.0,
            repetition_penalty: random.range(8, 14) as f32 / 10.0,
            penalty_window: random.range(0, 32),
            seed: random.bits(),
            ..extras(random, vocabulary)
        },
    };
    let checked = sampling.validate().expect("options are in range");
    let mut complete = |stops: &[u32]| {
        oracle.complete(&prompt, tokens_max, &checked, stops).expect("the oracle runs a request")
    };
    let mut expected = complete(&[]);
    let mut stops = Vec::new();
    if random.one_in(3) {
        stops = vec![
            expected[random.range(0, expected.len() as u32 - 1) as usize],
            random.range(1, vocabulary - 1),
        ];
        expected = complete(&stops);
    }
    Shape { prompt, tokens_max, sampling, stops, expected }
}

/// What few requests ask for: nothing in two of three cases, else a bit of everything.
fn extras(random: &mut Random, vocabulary: u32) -> SamplingOptions {
    let none = SamplingOptions::default();
    if !random.one_in(3) {
        return none;
    }
    let bias = [(random.range(0, vocabulary - 1), random.range(0, 80) as f32 / 10.0 - 4.0)];
    SamplingOptions {
        min_p: random.range(0, 2) as f32 / 20.0,
        typical_p: random.range(7, 10) as f32 / 10.0,
        presence_penalty: random.range(0, 4) as f32 / 4.0,
        frequency_penalty: random.range(0, 4) as f32 / 4.0,
        logit_bias: LogitBias::new(&bias).expect("in range"),
        log_probabilities: random.one_in(2).then_some(random.range(0, 20)),
        ..none
    }
}

/// How clients behave.
#[derive(Clone, Copy, Debug)]
pub struct Clients {
    /// Total number of requests.
    pub requests: usize,
    /// Maximum number of requests that have not ended at a time.
    pub at_once: usize,
    /// Mean number of PLAN's looks after which one of them cancels, parks or holds; with any, they take their events
    /// slowly, too. 0: none does.
    pub whim_looks: u32,
    /// Longest that all may take.
    pub deadline: Duration,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Requests that have ended.
    pub requests: usize,
    /// Tokens that were delivered.
    pub tokens: u64,
    /// Ends by a stop token.
    pub stopped: u64,
    /// Ends by length.
    pub full: u64,
    /// Ends by a cancel.
    pub cancelled: u64,
    /// Requests that were parked.
    pub parked: u64,
    /// Holds.
    pub held: u64,
    /// Holds that lasted until nothing more of the request could come.
    pub quiet: u64,
    /// Times that no place was free.
    pub refused: u64,
    /// Requests that were put into a slot once more, at least.
    pub requeued: u64,
    /// Steps.
    pub steps: u32,
    /// Unsuccessful polls by workgroups.
    pub spins: u64,
    /// How long it took.
    pub took: Duration,
}

/// A request that has not ended.
#[derive(Default)]
struct Client {
    shape: usize,
    told: usize,
    is_parked: bool,
    /// Round in which it is resumed.
    parked_until: Option<u64>,
    held_until: Option<u64>,
    cancelled: Option<Quiet>,
    held: Option<Quiet>,
}

/// What must no longer come after something was asked for. PLAN may be in the middle of a look and the ring full of
/// tokens, so this counts only from the second empty ring on, each found [`LOOKS`] looks after the asking or after the
/// other.
#[derive(Clone, Copy, Debug)]
enum Quiet {
    /// Asked for in this round.
    Asked(u64),
    /// The ring was empty in this round, at least [`LOOKS`] looks later.
    Empty(u64),
    /// It counts.
    Yes,
}

/// Looks of PLAN after which what was asked for before the first is seen, and what that look produced is in the ring.
const LOOKS: u64 = 3;

impl Quiet {
    fn note_empty(&mut self, round: u64) {
        *self = match *self {
            Quiet::Asked(since) if round >= since + LOOKS => Quiet::Empty(round),
            Quiet::Empty(since) if round >= since + LOOKS => Quiet::Yes,
            same => same,
        };
    }
}

/// Runs requests of these shapes until all have ended.
pub fn drive(session: &mut Session, shapes: &[Shape], clients: Clients, seed: u64) -> Report {
    let mut random = Random::new(seed);
    let mut live: BTreeMap<Handle, Client> = BTreeMap::new();
    let mut report = Report::default();
    // Time is counted in PLAN's looks for work: about the same as steps while there are any.
    let (mut submitted, mut round, mut deaf_until) = (0, 0u64, 0u64);
    let is_unruly = clients.whim_looks > 0;
    let mut events = [Event::default(); 32];
    let start = Instant::now();
    let mut next_shape = random.range(0, shapes.len() as u32 - 1) as usize;
    while submitted < clients.requests || !live.is_empty() {
        let looks = u64::from(session.status().expect("the status is mapped").heartbeat);
        let is_later = std::mem::replace(&mut round, looks) != looks;
        if start.elapsed() > clients.deadline {
            let standings = session.standings();
            panic!(
                "seed {seed}: {} live after {report:?}: {:?}, {standings:?}",
                live.len(),
                session.status()
            );
        }
        while is_later && submitted < clients.requests && live.len() < clients.at_once {
            let shape = &shapes[next_shape];
            let (tokens_max, sampling) = (shape.tokens_max, shape.sampling);
            let request = Request { prompt: &shape.prompt, tokens_max, sampling, stops: &shape.stops };
            match session.submit(&request) {
                Ok(handle) => {
                    let client = Client { shape: next_shape, ..Client::default() };
                    assert!(live.insert(handle, client).is_none(), "a handle was used twice");
                    submitted += 1;
                    next_shape = random.range(0, shapes.len() as u32 - 1) as usize;
                }
                Err(SessionError::Full { .. }) => {
                    report.refused += 1;
                    break;
                }
                Err(error) => panic!("seed {seed}: {error}"),
            }
            if is_unruly && random.one_in(4) {
                break;
            }
        }
        if is_unruly && is_later {
            act(session, &mut random, &mut live, &mut report, round, clients.whim_looks);
        }
        if round < deaf_until {
            std::thread::sleep(PAUSE);
            continue;
        }
        if is_unruly && is_later && random.one_in(20) {
            deaf_until = round + u64::from(random.range(1, 60));
        }
        let places = if is_unruly && !random.one_in(4) { 1 } else { events.len() };
        let count =
            session.poll(&mut events[..places]).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        for event in &events[..count] {
            hear(*event, shapes, &mut live, &mut report, round, &mut random);
        }
        if count == 0 {
            note_empty(&mut live, &mut report, round);
            std::thread::sleep(PAUSE);
        }
    }
    report.took = start.elapsed();
    settle(session, &mut events);
    report.steps = session.status().expect("the status is mapped").epoch;
    report.spins = session.spins().expect("breadcrumbs are read");
    report.requeued = u64::from(admissions(session)).saturating_sub(report.requests as u64);
    report
}

/// The ring was empty in this round.
fn note_empty(live: &mut BTreeMap<Handle, Client>, report: &mut Report, round: u64) {
    for (handle, client) in live {
        if let Some(quiet) = &mut client.cancelled {
            quiet.note_empty(round);
            assert!(!matches!(quiet, Quiet::Yes), "{handle:?}: no end after a cancel");
        }
        if let Some(quiet) = &mut client.held {
            let before = matches!(quiet, Quiet::Yes);
            quiet.note_empty(round);
            report.quiet += u64::from(!before && matches!(quiet, Quiet::Yes));
        }
    }
}

/// After the last end: no event, no page, no request.
fn settle(session: &mut Session, events: &mut [Event]) {
    for _ in 0..20 {
        assert_eq!(
            session.poll(events).expect("an idle session is polled"),
            0,
            "an event after the last end"
        );
        std::thread::yield_now();
    }
    assert_eq!(session.unfinished_count(), 0);
    session.forget_kept();
    assert!(session.audit().is_clean(), "pages leak: {:?}", session.audit());
}

/// Clients do something, now and then.
fn act(
    session: &mut Session,
    random: &mut Random,
    live: &mut BTreeMap<Handle, Client>,
    report: &mut Report,
    round: u64,
    whim_looks: u32,
) {
    for (handle, client) in live.iter_mut() {
        if client.is_parked && client.parked_until.is_some_and(|until| until <= round) {
            session.resume(*handle).expect("a parked request is resumed");
            (client.is_parked, client.parked_until) = (false, None);
        }
        if client.held_until.is_some_and(|until| until <= round) {
            session.hold(*handle, false).expect("a held request is released");
            (client.held_until, client.held) = (None, None);
        }
    }
    if live.is_empty() || !random.one_in(whim_looks) {
        return;
    }
    let chosen = random.range(0, live.len() as u32 - 1) as usize;
    let Some((handle, client)) = live.iter_mut().nth(chosen) else { return };
    match random.range(0, 9) {
        // If whims are rare, requests that go back to the queue are counted: nobody is cancelled before it has had a
        // slot.
        0 if whim_looks <= 2 || client.told > 0 => {
            session.cancel(*handle).expect("a live request is cancelled");
            client.cancelled.get_or_insert(Quiet::Asked(round));
        }
        // A parked one is parked again, too: nothing happens.
        1..=5 => session.park(*handle).expect("a live request is parked"),
        _ => {
            session.hold(*handle, true).expect("a live request is held");
            client.held_until = Some(round + u64::from(random.range(1, 40)));
            client.held.get_or_insert(Quiet::Asked(round));
            report.held += 1;
        }
    }
}

/// A client receives an event.
fn hear(
    event: Event,
    shapes: &[Shape],
    live: &mut BTreeMap<Handle, Client>,
    report: &mut Report,
    round: u64,
    random: &mut Random,
) {
    match event {
        Event::Token { handle, token, index } => {
            let client = live.get_mut(&handle).expect("a token of a request that has not ended");
            let shape = &shapes[client.shape];
            assert_eq!(index as usize, shape.prompt.len() + client.told, "{handle:?}: a gap, or told twice");
            assert_eq!(
                Some(&token),
                shape.expected.get(client.told),
                "{handle:?}: token {} of {shape:?}",
                client.told
            );
            assert!(!client.is_parked, "{handle:?}: a token while it is parked");
            assert!(!matches!(client.held, Some(Quiet::Yes)), "{handle:?}: a token while it is held");
            client.told += 1;
            report.tokens += 1;
        }
        Event::Parked { handle } => {
            let client = live.get_mut(&handle).expect("a request that has not ended is parked");
            assert!(!client.is_parked, "{handle:?}: parked twice");
            client.is_parked = true;
            client.parked_until = Some(round + u64::from(random.range(1, 40)));
            report.parked += 1;
        }
        Event::Finished { handle, reason } => {
            let client = live.remove(&handle).expect("one end of each request");
            let shape = &shapes[client.shape];
            let is_stop = shape.expected.last().is_some_and(|token| shape.stops.contains(token));
            match reason {
                FinishReason::Cancelled => {
                    assert!(client.cancelled.is_some(), "{handle:?}: nobody has cancelled it");
                    report.cancelled += 1;
                }
                FinishReason::Stop => {
                    assert!(is_stop, "{handle:?}: no stop token in {shape:?}");
                    report.stopped += 1;
                }
                FinishReason::Length => {
                    assert!(!is_stop, "{handle:?}: a stop token ends {shape:?}");
                    report.full += 1;
                }
            }
            if reason != FinishReason::Cancelled {
                assert_eq!(client.told, shape.expected.len(), "{handle:?}: tokens are missing");
            }
            report.requests += 1;
        }
    }
}

/// Slots that were taken: each time takes the next serial number, and gets its first page under it.
pub fn admissions(session: &mut Session) -> u32 {
    let mut lines = vec![0u8; zrt_protocol::SLOTS_MAX * size_of::<Control>()];
    session.resident().download(AllocationId::Control, 0, &mut lines).expect("control lines are read");
    let at = std::mem::offset_of!(Control, granted_serial);
    let serial = |line: &[u8]| line[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    lines.chunks_exact(size_of::<Control>()).map(serial).max().unwrap_or(0)
}
