//! Sessions under a random load, and what must not change whatever goes on around a request.

use std::path::PathBuf;
use std::time::Duration;
use zrt_device::{Device, DeviceChoice, OpenOptions};
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::session::{Mode, Session, SessionOptions};
use zrt_tests::workload::{Clients, Random, Report, Shape, drive, shape};
use zrt_tests::{find, load};

/// The smallest model: 5 layers of width 64.
const MODEL: &str = "stories260K-ff192-Q4_0.gguf";
/// Tokens of a sequence at most: prompts of 40 and 12 more fit.
const CONTEXT: u32 = 64;
/// Requests of the random workload, over all its seeds.
const REQUESTS: usize = 200;
/// Requests of one seed in a long run.
const REQUESTS_PER_SEED: usize = 250;
/// Shapes of requests of one seed: each is run many times, in different company.
const SHAPES: usize = 24;
/// Longest that a device may take to leave.
const CLOSE_DEADLINE: Duration = Duration::from_secs(30);

fn environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().expect("a number"))
}

fn model() -> Option<(PathBuf, Model)> {
    let path = find(MODEL)?;
    Some((path.clone(), load(&path)))
}

fn open(model: &Model, options: &SessionOptions) -> Session {
    let device =
        Device::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("the virtual device opens");
    Session::open(device, model, options, &mut |_, _| {}).expect("the session opens")
}

fn shapes(model: &Model, random: &mut Random, count: usize, prompt_max: u32, tokens_max: u32) -> Vec<Shape> {
    let mut oracle = Oracle::new(model, CONTEXT).expect("the oracle takes the model");
    (0..count).map(|_| shape(random, &mut oracle, prompt_max, tokens_max)).collect()
}

/// One seed: everything about the session but the model is drawn too.
fn stress(model: &Model, seed: u64, requests: usize) -> Report {
    let mut random = Random(seed);
    let shapes = shapes(model, &mut random, SHAPES, 40, 12);
    let options = SessionOptions {
        mode: Mode::Mega,
        context: CONTEXT,
        // The largest request takes 4; all 64 at once would take about 130.
        pages: Some(random.range(8, 60)),
        chunk_rows: random.range(1, 64),
        groups: Some(random.range(1, 8)),
        waiting_max: random.range(0, 16),
        output_entries: 128,
        page_order_seed: Some(random.next()),
        ..SessionOptions::default()
    };
    let mut session = open(model, &options);
    let deadline = Duration::from_secs(60 + requests as u64);
    let clients = Clients { requests, at_once: 80, are_unruly: true, deadline };
    let report = drive(&mut session, &shapes, clients, random.next());
    session.close(CLOSE_DEADLINE).expect("the device leaves");
    let SessionOptions { pages, chunk_rows, groups, waiting_max, .. } = options;
    eprintln!("seed {seed}: {pages:?} pages, {chunk_rows} rows, {groups:?} groups, {waiting_max} wait: {report:?}");
    report
}

#[test]
fn a_random_workload_gives_everyone_the_tokens_of_the_oracle() {
    let Some((_, model)) = model() else { return };
    let total = environment("ZRT_STRESS_REQUESTS").map_or(REQUESTS, |count| count as usize);
    let first = environment("ZRT_STRESS_SEED").unwrap_or(1);
    let per_seed = total.div_ceil(3).min(REQUESTS_PER_SEED);
    let mut sum = Report::default();
    let mut seed = first;
    while sum.requests < total {
        let report = stress(&model, seed, per_seed.min(total - sum.requests));
        sum.requests += report.requests;
        sum.tokens += report.tokens;
        sum.stopped += report.stopped;
        sum.full += report.full;
        sum.cancelled += report.cancelled;
        sum.parked += report.parked;
        sum.held += report.held;
        sum.requeued += report.requeued;
        sum.steps += report.steps;
        sum.took += report.took;
        seed += 1;
    }
    eprintln!("seeds {first} to {}: {sum:?}", seed - 1);
    // A workload without these would not be one.
    let kinds = [sum.stopped, sum.full, sum.cancelled, sum.parked, sum.held, sum.requeued];
    assert!(total < REQUESTS || kinds.iter().all(|count| *count > 0), "{sum:?}");
}
