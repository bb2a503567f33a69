//! The megakernel under the checking mode: no finding, and the oracle's tokens, on every schedule.

use std::time::{Duration, Instant};
use zrt_engine::session::{Mode, SessionOptions};
use zrt_tests::serving::{Asked, Told, checked_session, expected};
use zrt_tests::{find, load};

const CONTEXT: u32 = 48;
/// Longest that a device may take to leave.
const LEAVE: Duration = Duration::from_secs(30);

fn options(mode: Mode, groups: u32) -> SessionOptions {
    SessionOptions {
        mode,
        groups: Some(groups),
        slots: 2,
        waiting_max: 2,
        context: CONTEXT,
        chunk_rows: 5,
        output_entries: 128,
        page_order_seed: Some(3),
        ..SessionOptions::default()
    }
}

/// Runs requests with a number of workgroups on each of the schedules.
fn check(name: &str, mode: Mode, groups: u32, seeds: std::ops::Range<u64>, asked: &[Asked]) {
    let Some(path) = find(&format!("{name}.gguf")) else { return };
    let model = load(&path);
    let expected = expected(&model, CONTEXT, asked);
    for seed in seeds {
        let started = Instant::now();
        let mut session = checked_session(&model, &options(mode, groups), seed);
        session.start().expect("starts");
        let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
        let mut told = Told::new(asked.len());
        told.run(&mut session, &handles).expect("the session runs");
        let device = session.close(LEAVE).expect("the device leaves");
        let findings = device.findings().expect("readable");
        let instructions = device.counters().expect("readable").wave_instructions.unwrap_or(0);
        eprintln!("{name}, {mode:?}, {groups} groups, seed {seed}: {instructions} instructions in {:?}", started.elapsed());
        assert!(
            findings.is_empty(),
            "{name}, {mode:?}, {groups} groups, seed {seed}: {} findings, first:\n{}",
            findings.len(),
            findings.iter().map(|one| one.to_string()).collect::<Vec<_>>().join("\n\n")
        );
        assert_eq!(told.tokens, expected, "{name}, {mode:?}, {groups} groups, seed {seed}");
    }
}

fn three() -> [Asked; 3] {
    [Asked::greedy([1, 261, 17], 2), Asked::sampled(1..19, 2, 7), Asked::sampled([5], 3, 8)]
}

#[test]
fn small_one() {
    check("stories260K-ff192-Q4_0", Mode::Mega, 1, 0..2, &three());
}
#[test]
fn small_three() {
    check("stories260K-ff192-Q4_0", Mode::Mega, 3, 0..2, &three());
}
#[test]
fn small_graph() {
    check("stories260K-ff192-Q4_0", Mode::Graph, 3, 0..2, &three());
}
