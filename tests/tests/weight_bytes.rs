//! Bytes of weights that a step loads, counted by the device under the checking mode: they do not grow with the number of
//! requests, because a product takes all rows of the step through the weights that it holds in registers.

use std::collections::BTreeMap;
use std::time::Duration;
use zrt_engine::session::{Mode, SessionOptions};
use zrt_tests::serving::{Asked, Told, checked_session_on};
use zrt_tests::{find, load};

/// The matrices of each layer, by the name of their allocation. Norms and rows of the embedding are read for each row.
const MATRICES: [&str; 7] = ["attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"];
/// Slots that are compared: one row, some, and as many as there are.
const SLOTS: [u32; 3] = [1, 8, 64];
/// Longest that the device may take to leave.
const LEAVE: Duration = Duration::from_secs(60);

/// Steps, and bytes loaded from each allocation, of `slots` requests at once.
fn loads(slots: u32) -> (u64, BTreeMap<String, u64>) {
    let model = load(&find("tales-qwen3-Q4_0.gguf").expect("the model is in the repository"));
    let options = SessionOptions {
        mode: Mode::Mega,
        slots,
        groups: Some(2),
        context: 16,
        output_entries: 128,
        ..SessionOptions::default()
    };
    let (mut session, gpu) = checked_session_on(&model, &options, 1);
    let asked: Vec<Asked> = (0..slots).map(|slot| Asked::greedy([slot + 3], 2)).collect();
    let handles: Vec<_> = asked.iter().map(|one| one.submit(&mut session)).collect();
    session.start().expect("starts");
    let mut told = Told::new(asked.len());
    told.run(&mut session, &handles).expect("the session runs");
    assert_eq!(told.tokens.iter().map(Vec::len).sum::<usize>(), 2 * slots as usize);
    let steps = session.status().expect("readable").epoch;
    let bytes = gpu.region_read_bytes().into_iter().collect();
    session.close(LEAVE).expect("the device leaves");
    (u64::from(steps), bytes)
}

#[test]
fn a_step_loads_each_weight_once_for_all_requests() {
    let mut first = None;
    for slots in SLOTS {
        let (steps, bytes) = loads(slots);
        let of = |name: &&str| bytes[&format!("weights.{name}")];
        let per_step: Vec<u64> = MATRICES.iter().map(of).map(|all| all / steps).collect();
        let sum: u64 = per_step.iter().sum();
        eprintln!("{slots} slots: {steps} steps, {sum} bytes of layer matrices in each");
        assert!(MATRICES.iter().all(|name| of(name) % steps == 0), "{slots} slots: steps differ");
        assert_eq!(&per_step, first.get_or_insert_with(|| per_step.clone()), "{slots} slots");
    }
}
