//! Bytes of weights that a step loads, counted by the device under the checking mode: they do not grow with the number
//! of requests, because a product takes all rows of the step through the weights that it holds in registers. What
//! workgroups prefetch is loaded twice, the second time out of GL2; it is counted as often as it is loaded, and depends
//! on the matrix and the number of workgroups alone.

use std::collections::BTreeMap;
use std::time::Duration;
use zrt_engine::activations::Activations;
use zrt_engine::memory_plan::AllocationId;
use zrt_engine::model::Model;
use zrt_engine::session::{Mode, SessionOptions};
use zrt_engine::weights::{WeightClass, WeightId};
use zrt_tests::serving::{Asked, Told, checked_session_on};
use zrt_tests::{load, repository_model};

/// The matrices of each layer. Norms and rows of the embedding are read for each row.
const MATRICES: [WeightClass; 7] = [
    WeightClass::Query,
    WeightClass::Key,
    WeightClass::Value,
    WeightClass::AttentionOutput,
    WeightClass::Gate,
    WeightClass::Up,
    WeightClass::Down,
];
/// Workgroups.
const GROUPS: u32 = 2;
/// Longest that the device may take to leave.
const LEAVE: Duration = Duration::from_secs(60);

/// Steps, and bytes loaded from each allocation, of `slots` requests at once.
fn loads(model: &Model, slots: u32) -> (u64, BTreeMap<String, u64>) {
    let options = SessionOptions {
        mode: Mode::Mega,
        slots,
        groups: Some(GROUPS),
        context: 16,
        output_entries: 128,
        activations: Activations::F32,
        ..SessionOptions::default()
    };
    let (mut session, gpu) = checked_session_on(model, &options, 1);
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

/// Bytes of a Q4_0 matrix that the workgroups prefetch: of the first unit of each, for 8 waves and 4 rows of each lane,
/// the first 512 bytes of the weight rows that 32 lanes share (`docs/megakernel.md`).
fn ahead(rows: u32, columns: u32) -> u64 {
    let chunks = columns.div_ceil(32);
    let rows_of_piece = 32 / chunks.next_power_of_two().min(32);
    let units = rows.div_ceil(32 * rows_of_piece);
    let whole = rows / rows_of_piece;
    let pieces: u32 = (0..GROUPS.min(units)).map(|unit| whole.saturating_sub(32 * unit).min(32)).sum();
    u64::from(pieces) * u64::from((16 * chunks * rows_of_piece).min(512))
}

/// With each of these numbers of slots.
fn check(slots: &[u32]) {
    let model = load(&repository_model("tales-qwen3-Q4_0.gguf"));
    let layers = 0..model.config.layers;
    let in_file = |class| -> u64 {
        layers.clone().map(|layer| model.weight(WeightId::new(class, layer)).tensor.bytes).sum()
    };
    let ahead_of = |class| -> u64 {
        let weights = layers.clone().map(|layer| model.weight(WeightId::new(class, layer)));
        weights.map(|weight| ahead(weight.rows, weight.columns)).sum()
    };
    for slots in slots.iter().copied() {
        let (steps, bytes) = loads(&model, slots);
        let (mut once, mut twice) = (0, 0);
        for class in MATRICES {
            let loaded = bytes[&AllocationId::Weights(class).name()];
            let expected = in_file(class) + ahead_of(class);
            assert_eq!(loaded, steps * expected, "{slots} slots, {steps} steps, {}", class.name());
            assert!(ahead_of(class) > 0, "{}", class.name());
            once += in_file(class);
            twice += ahead_of(class);
        }
        eprintln!(
            "{slots} slots: {steps} steps, {once} bytes of layer matrices in each, {twice} of them twice"
        );
    }
}

#[test]
fn a_step_loads_each_weight_once_for_all_requests() {
    check(&[1, 8]);
}

/// As many as there are. `cargo xtask test` leaves this to `--long`.
#[test]
fn a_step_of_the_most_requests_loads_each_weight_once() {
    check(&[64]);
}
