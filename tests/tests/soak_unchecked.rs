//! A long session on a small ring: the ring wraps many times, memory does not grow, nothing stays mapped.
//!
//! `cargo xtask test` runs a thousand tokens, `--long` ten thousand.

use zrt_bringup::OpenOptions;
use zrt_engine::executor::Executor;
use zrt_mem::ByteLen;
use zrt_tests::{find_model, load, repository_model, virtual_executor};

/// One page: the smallest ring the driver takes.
const RING_BYTES: ByteLen = ByteLen(4096);
/// Tokens of the run with the repository's own, larger model.
const TOKENS_WITHOUT_MODELS: usize = 400;
/// Tokens per sequence.
const SEQUENCE: usize = 100;
/// Growth of the process that is still noise: allocator caches, thread stacks.
const GROWTH_MAX_BYTES: u64 = 16 << 20;

fn resident_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux");
    let pages: u64 =
        text.split_whitespace().nth(1).and_then(|field| field.parse().ok()).expect("statm has numbers");
    pages * 4096
}

#[test]
fn a_thousand_tokens_on_a_one_page_ring() {
    soak(1_000);
}

#[test]
fn ten_thousand_tokens_on_a_one_page_ring() {
    soak(10_000);
}

fn soak(tokens: usize) {
    let (path, tokens) = match find_model("stories260K-F16.gguf") {
        Some(path) => (path, tokens),
        None => (repository_model("tales-qwen3-Q4_0.gguf"), TOKENS_WITHOUT_MODELS),
    };
    let model = load(&path);
    let options = OpenOptions { ring_bytes: RING_BYTES, ..OpenOptions::default() };
    let mut device = virtual_executor(&model, SEQUENCE as u32 + 4, &options);
    let before = device.counters().expect("counters");
    let mut first: Option<Vec<u32>> = None;
    let mut settled = 0;
    for sequence in 0..tokens / SEQUENCE {
        device.begin(&[1, 2, 3]).expect("fits");
        let choices: Vec<u32> = (0..SEQUENCE).map(|_| device.step().expect("a step runs")).collect();
        let expected = first.get_or_insert_with(|| choices.clone());
        assert_eq!(&choices, expected, "sequence {sequence} differs from the first");
        if sequence == tokens / SEQUENCE / 4 {
            settled = resident_bytes();
        }
    }
    let growth = resident_bytes().saturating_sub(settled);
    assert!(growth < GROWTH_MAX_BYTES, "the process grew by {growth} bytes in the last three quarters");
    let after = device.counters().expect("counters");
    let steps = (tokens / SEQUENCE * SEQUENCE) as u64;
    assert_eq!(after.doorbells - before.doorbells, steps, "one doorbell per token");
    assert_eq!(after.submissions - before.submissions, steps, "one indirect buffer per token");
    assert_eq!(
        after.dispatches - before.dispatches,
        steps * device.dispatch_count() as u64,
        "the plan's dispatches"
    );
}
