//! SAMPLE on the virtual device's shader engine against a separate computation, token for token.

#[path = "sampling/bounds.rs"]
mod bounds;
#[path = "sampling/expected.rs"]
mod expected;
#[path = "sampling/extras.rs"]
mod extras;
mod support;

use expected::{Extra, expected, expected_tops};
use support::harness::Device;
use support::step;
use support::weights::Random;
use zerocopy::IntoBytes;
use zrt_protocol::params::{self, RowSet};
use zrt_protocol::{Extras, SlotState, TopTokens};

/// Maximum number of tokens of a slot, in these tests.
const CONTEXT: usize = 48;
/// Bytes of logits after each row that are not the row's.
const ROW_GAP_BYTES: usize = 52;
/// What the adjusted rows hold before, and what is between them afterwards: as a logit it would win.
const GUARD: f32 = f32::INFINITY;

/// The parameters and logits by which one output row is sampled.
#[derive(Clone, Debug)]
struct Case {
    logits: Vec<f32>,
    tokens: Vec<u32>,
    temperature: f32,
    top_k: u32,
    top_p: u32,
    penalty: f32,
    window: u32,
    seed: u64,
    extra: Extra,
}

impl Case {
    fn greedy(logits: Vec<f32>) -> Case {
        Case {
            logits,
            tokens: vec![],
            temperature: 0.0,
            top_k: 0,
            top_p: 0,
            penalty: 1.0,
            window: 0,
            seed: 0,
            extra: Extra::default(),
        }
    }

    fn inverse_temperature(&self) -> f32 {
        if self.temperature == 0.0 { 0.0 } else { 1.0 / self.temperature }
    }

    /// Every field that SAMPLE must not use has a number that would show in the result.
    fn slot(&self, number: u32) -> SlotState {
        SlotState {
            phase: 1,
            serial: 1000 + number,
            position: 77,
            known: self.tokens.len() as u32,
            limit: 99,
            sampled: 0xDEAD_0000 + number,
            pending_token: 5,
            seed_low: self.seed as u32,
            seed_high: (self.seed >> 32) as u32,
            inverse_temperature: self.inverse_temperature().to_bits(),
            top_k: self.top_k,
            top_p: self.top_p,
            penalty: self.penalty.to_bits(),
            inverse_penalty: (1.0 / self.penalty).to_bits(),
            penalty_window: self.window,
            extras: self.extra.flags(),
            stop: [3; 8],
            ..SlotState::default()
        }
    }
}

// --------------------------------------------------------------------------------------------------- running

/// The slot of case `number`: neither in order nor without gaps.
fn slot_of(number: usize, cases: usize) -> usize {
    2 * (cases - 1 - number) + 1
}

struct Launch {
    block: params::Sample,
    slots_va: u64,
    slots: Vec<SlotState>,
    extras: Vec<Extras>,
    tops: Vec<TopTokens>,
    /// Of all rows of logits, with what lies between them.
    logits: Vec<f32>,
}

/// Uploads cases of one vocabulary, an output row each. Between the outputs lie rows without one.
fn prepare(device: &mut Device, cases: &[Case]) -> Launch {
    let vocabulary = cases[0].logits.len();
    let logits_stride = 4 * vocabulary + ROW_GAP_BYTES;
    let mut logits = Vec::new();
    let mut slots =
        vec![SlotState { sampled: 0x5107, known: 3, ..SlotState::default() }; 2 * cases.len() + 1];
    let mut tokens = vec![0xFFFF_FFF0u32; slots.len() * CONTEXT];
    let stale = TopTokens { count: 0x5107, difference: 0x5108, ..TopTokens::default() };
    let tops = vec![stale; slots.len()];
    // Where no flag is set, nothing of this may count.
    let mut extras = vec![extras::MISLEADING; slots.len()];
    let mut rows = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        logits.extend(&case.logits);
        logits.extend([GUARD; ROW_GAP_BYTES / 4]);
        let slot = slot_of(number, cases.len());
        slots[slot] = case.slot(slot as u32);
        if case.extra.flags() != 0 {
            extras[slot] = case.extra.written();
        }
        tokens[slot * CONTEXT..][..case.tokens.len()].copy_from_slice(&case.tokens);
        rows.push([2 * number as u32, 0, 0]);
        rows.push([slot as u32, 77, 0]);
    }
    // The last row ends with its elements: beyond it nothing is mapped.
    logits.truncate(logits.len() - ROW_GAP_BYTES / 4);
    let outputs: Vec<u32> = (0..cases.len() as u32).map(|number| 2 * number + 1).collect();
    let step_va = step(device, &rows, &outputs);
    let slots_va = device.upload(&slots);
    let block = params::Sample {
        header: params::Sample::header(step_va, 1, RowSet::EachOutput),
        logits_va: device.upload(&logits),
        slots_va,
        tokens_va: device.upload(&tokens),
        vocabulary: vocabulary as u32,
        logits_stride: logits_stride as u32,
        context: CONTEXT as u32,
        reserved: 0,
        adjusted_va: device.upload(&vec![GUARD; logits.len()]),
        extras_va: device.upload(&extras),
        tops_va: device.upload(&tops),
    };
    Launch { block, slots_va, slots, extras, tops, logits }
}

/// What the slot table must hold afterwards: `sampled` of the cases' slots, everything else as it was.
fn check_slots(device: &Device, launch: &Launch, cases: &[Case], what: &str) {
    let choices: Vec<u32> = cases.iter().map(expected).collect();
    for (slot, before) in launch.slots.iter().enumerate() {
        let bytes = device.bytes(launch.slots_va, launch.slots.len() * size_of::<SlotState>());
        let found = &bytes[slot * size_of::<SlotState>()..][..size_of::<SlotState>()];
        let mut after = *before;
        let case = (0..cases.len()).find(|number| slot_of(*number, cases.len()) == slot);
        if let Some(number) = case {
            after.sampled = choices[number];
            let sampled = u32::from_le_bytes(found[32..36].try_into().expect("4 bytes"));
            let brief = Case { logits: vec![], ..cases[number].clone() };
            assert_eq!(sampled, choices[number], "{what}, {} logits: {brief:?}", cases[number].logits.len());
        }
        assert_eq!(found, after.as_bytes(), "{what}: slot {slot}");
        let bytes = device.bytes_at(launch.block.tops_va, launch.tops.len() * size_of::<TopTokens>());
        let found = &bytes[slot * size_of::<TopTokens>()..][..size_of::<TopTokens>()];
        let tops = case.and_then(|number| expected_tops(&cases[number], choices[number], launch.tops[slot]));
        assert_eq!(found, tops.unwrap_or(launch.tops[slot]).as_bytes(), "{what}: most likely of slot {slot}");
    }
    check_others(device, launch, cases, what);
}

/// What a row may not change: its inputs, what lies between the adjusted rows, and those rows unless it adjusts logits.
fn check_others(device: &Device, launch: &Launch, cases: &[Case], what: &str) {
    let is = |va: u64, before: &[u8], of: &str| {
        assert!(device.bytes_at(va, before.len()) == before, "{what}: {of} changed");
    };
    is(launch.block.logits_va, launch.logits.as_bytes(), "logits");
    is(launch.block.extras_va, launch.extras.as_bytes(), "extras");
    let adjusted = device.words(launch.block.adjusted_va, launch.logits.len());
    for (number, row) in adjusted.chunks(launch.block.logits_stride as usize / 4).enumerate() {
        let extra = &cases[number].extra;
        let written = if extra.adjusts() || extra.typical_p != 0 { cases[number].logits.len() } else { 0 };
        let is_guard = |word: &u32| *word == GUARD.to_bits();
        assert!(row[written..].iter().all(is_guard), "{what}: outside the adjusted row of case {number}");
    }
}

fn check(what: &str, cases: &[Case], groups: u32) {
    checked(what, cases, groups);
}

/// Runs these cases and checks what they leave. The device has what the run cost.
fn checked(what: &str, cases: &[Case], groups: u32) -> Device {
    let mut device = Device::new(0);
    let launch = prepare(&mut device, cases);
    device.run("sample", launch.block.as_bytes(), groups);
    check_slots(&device, &launch, cases, what);
    device
}

/// Fails unless a case costs less than this, in wave instructions for 32 logits of a vocabulary of 32768, with what
/// belongs to the row shared out.
fn check_cost(what: &str, ceiling: f64, case: Case) {
    assert_eq!(case.logits.len(), 32_768);
    let cost = checked(what, &[case], 1).wave_instructions() as f64 / (32_768 / 32) as f64;
    println!("{what}: {cost:.1}");
    assert!(cost < ceiling, "{what}: {cost:.1} instructions for 32 logits");
}

// ----------------------------------------------------------------------------------------------------- tests

/// Logits of about the spread that models have.
fn logits(count: usize, random: &mut Random) -> Vec<f32> {
    (0..count).map(|_| 6.0 * (random.real() + random.real())).collect()
}

/// Few different values, so that most decisions are between equals.
fn coarse(count: usize, random: &mut Random) -> Vec<f32> {
    (0..count).map(|_| random.below(4) as f32 - 1.0).collect()
}

/// Troublesome logits of each length, with the name of the trouble.
fn shapes(count: usize, random: &mut Random) -> Vec<(&'static str, Vec<f32>)> {
    let plain = logits(count, random);
    let with = |place: usize, value: f32| {
        let mut logits = plain.clone();
        logits[place % count] = value;
        logits
    };
    let mut holes = plain.clone();
    holes.iter_mut().step_by(2).for_each(|logit| *logit = f32::NEG_INFINITY);
    holes.iter_mut().skip(1).step_by(3).for_each(|logit| *logit = f32::NAN);
    let mut zeros = vec![0.0; count];
    zeros.iter_mut().step_by(2).for_each(|logit| *logit = -0.0);
    let mut late = vec![-3.0; count];
    late[count - 1] = 2.0;
    vec![
        ("plain", plain.clone()),
        ("ties", coarse(count, random)),
        ("all equal", vec![-3.0; count]),
        ("one huge", with(count / 2, 1e30)),
        ("one infinite", with(count / 3, f32::INFINITY)),
        ("one NaN", with(count / 2, f32::NAN)),
        ("one NaN first", with(0, f32::NAN)),
        ("holes", holes),
        ("zeros of both signs", zeros),
        ("the last", late),
        ("all -inf", vec![f32::NEG_INFINITY; count]),
        ("all NaN", vec![f32::NAN; count]),
        ("lowest", vec![-f32::MAX; count]),
        ("huge ties", (0..count).map(|id| if id % 3 == 0 { 3e38 } else { -3e38 }).collect()),
        ("denormals", (0..count).map(|id| f32::from_bits((id as u32 % 5) | (id as u32 % 2) << 31)).collect()),
    ]
}

/// The case after each number of known tokens, all of them token 0: so many draws.
fn draws(case: &Case) -> Vec<Case> {
    (0..CONTEXT).map(|known| Case { tokens: vec![0; known], ..case.clone() }).collect()
}

/// The choices of these cases, each once, in order.
fn choices(cases: &[Case]) -> Vec<u32> {
    let choices: std::collections::BTreeSet<u32> = cases.iter().map(expected).collect();
    choices.into_iter().collect()
}

/// Everything at random but what few requests ask for. Known tokens are below `most`.
fn random_case(shape: &[f32], most: u32, random: &mut Random) -> Case {
    let count = shape.len() as u32;
    Case {
        tokens: (0..random.below(CONTEXT as u32)).map(|_| random.below(most)).collect(),
        temperature: 2f32.powi(random.below(6) as i32 - 3) * (1.0 + random.real() / 2.0),
        top_k: random.below(2) * random.below(count + 9),
        top_p: random.below(2) * random.word(),
        penalty: 1.0 + random.real().abs(),
        window: random.below(2) * random.below(60),
        seed: u64::from(random.word()) << 32 | u64::from(random.word()),
        ..Case::greedy(shape.to_vec())
    }
}

/// Logits of some length, every third time with many ties.
fn random_shape(random: &mut Random) -> Vec<f32> {
    let count = random.below(1200) as usize + 1;
    if random.below(3) == 0 { coarse(count, random) } else { logits(count, random) }
}

/// Parameters that select differently, the first greedy.
fn variants(logits: &[f32], random: &mut Random) -> Vec<Case> {
    let count = logits.len() as u32;
    let tokens =
        |known: u32, random: &mut Random| -> Vec<u32> { (0..known).map(|_| random.below(count)).collect() };
    let mut cases = vec![Case::greedy(logits.to_vec())];
    let half = 1u32 << 31;
    for (temperature, top_k, top_p, window) in [
        (1.0, 0, 0, 0),
        (0.7, 1, 0, 0),
        (0.7, 2, 0, 1),
        (1.3, 40, 0, 7),
        (1.0, count, 0, 40),
        (1.0, count.saturating_sub(1), half, 0),
        (1.0, u32::MAX, 1, 0),
        (2.5, 0, u32::MAX, 3),
        (100.0, 0, half, 0),
        (0.01, 0, half, 1000),
        (0.9, 17, 0xE666_6666, 5),
        (0.0, 3, half, 40),
    ] {
        let known = random.below(CONTEXT as u32 - 1) + 1;
        cases.push(Case {
            logits: logits.to_vec(),
            tokens: tokens(known, random),
            temperature,
            top_k,
            top_p,
            penalty: [1.5, 0.75][random.below(2) as usize],
            window,
            seed: u64::from(random.word()) << 32 | u64::from(random.word()),
            extra: Extra::default(),
        });
    }
    cases
}

fn check_vocabulary(count: usize) {
    let mut random = Random::new(count as u64);
    for (what, logits) in shapes(count, &mut random) {
        let cases = variants(&logits, &mut random);
        check(what, &cases, cases.len() as u32);
    }
}

#[test]
fn one_token() {
    check_vocabulary(1);
}

#[test]
fn two_tokens() {
    check_vocabulary(2);
}

#[test]
fn less_than_a_wave() {
    check_vocabulary(31);
}

#[test]
fn a_wave() {
    check_vocabulary(32);
}

#[test]
fn more_than_a_group() {
    check_vocabulary(257);
}

#[test]
fn two_groups_wide() {
    check_vocabulary(512);
}

#[test]
fn whole_rounds() {
    check_vocabulary(4096);
}

#[test]
fn a_large_vocabulary() {
    let mut random = Random::new(9);
    let cases = variants(&logits(32_000, &mut random), &mut random);
    check("large", &[cases[3].clone(), cases[7].clone(), cases[11].clone()], 3);
    // More than 2^16 ids, and all equal: every byte of the id is looked for.
    let equal = vec![0.25; 70_000];
    let case = Case { temperature: 1.0, seed: 77, tokens: vec![1, 69_999], window: 2, ..Case::greedy(equal) };
    let case = Case { penalty: 1.25, top_k: 66_000, top_p: 0xF000_0000, ..case };
    assert!(expected(&case) > 256);
    check("ties over three bytes", &[case], 1);
}

#[test]
fn the_largest_vocabulary() {
    let mut logits = vec![-1.0; 262_144];
    logits[262_143] = 4.0;
    let greedy = Case { tokens: vec![5, 262_143, 262_143], window: 2, penalty: 2.0, ..Case::greedy(logits) };
    let unpenalised = Case { penalty: 1.0, ..greedy.clone() };
    let flipped = Case { penalty: 8.0, logits: vec![-1.0; 262_144], ..greedy.clone() };
    check("largest", &[greedy, unpenalised, flipped], 2);
}

/// Bits of penalised tokens are in LDS for 196608 ids at once: tokens on both sides of that, in every pass of a draw.
#[test]
fn penalised_tokens_of_several_stretches() {
    const STRETCH: usize = 196_608;
    let mut random = Random::new(12);
    for count in [STRETCH, STRETCH + 1, STRETCH + 2500] {
        let mut logits = logits(count, &mut random);
        let penalised = [17, STRETCH - 1, STRETCH.min(count - 1), count - 1];
        for (rank, token) in penalised.into_iter().enumerate() {
            logits[token] = 40.0 + rank as f32;
        }
        let tokens: Vec<u32> = penalised.map(|token| token as u32).to_vec();
        let greedy = Case { tokens, window: 4, penalty: 64.0, ..Case::greedy(logits) };
        let drawn = Case { temperature: 9.0, seed: 5, top_k: 3000, top_p: 0xE000_0000, ..greedy.clone() };
        let few = Case { temperature: 3.0, seed: 6, top_k: 40, ..greedy.clone() };
        let unpenalised = Case { window: 0, ..greedy.clone() };
        assert_ne!(expected(&greedy), expected(&unpenalised));
        check("stretches", &[greedy, drawn, few, unpenalised], 2);
    }
}

#[test]
fn draws_of_many_steps_agree() {
    let mut random = Random::new(4);
    for (count, top_p) in [(33usize, 0), (300, 3 << 30), (300, 0)] {
        let logits = logits(count, &mut random);
        let cases =
            draws(&Case { temperature: 1.5, top_p, seed: 0x0123_4567_89AB_CDEF, ..Case::greedy(logits) });
        check("draws", &cases, 4);
        assert!(choices(&cases).len() > 5, "the draws differ");
    }
}

#[test]
fn top_p_ends_exactly_at_its_share() {
    // Four equal weights: shares of a quarter each, to the unit of 2^-32.
    let quarter = 1u32 << 30;
    for (top_p, kept) in
        [(1, 1), (quarter, 1), (quarter + 1, 2), (2 * quarter, 2), (3 * quarter, 3), (u32::MAX, 4)]
    {
        let cases = draws(&Case { temperature: 1.0, top_p, seed: 3, ..Case::greedy(vec![1.0; 4]) });
        check("shares", &cases, 8);
        assert_eq!(choices(&cases).last(), Some(&(kept - 1)), "{top_p}");
    }
}

#[test]
fn the_penalty_counts_once_and_knows_its_window() {
    // 4 twice, then 2: greedy with penalty 2 halves each once.
    let tokens = vec![4, 4, 2];
    let case = |window: u32, logits: &[f32]| Case {
        tokens: tokens.clone(),
        window,
        penalty: 2.0,
        ..Case::greedy(logits.to_vec())
    };
    let cases = [
        (case(0, &[0.0, 1.0, 3.0, 0.0, 2.0]), 2),
        (case(1, &[0.0, 1.0, 3.0, 0.0, 2.0]), 4),
        (case(3, &[0.0, 1.0, 3.0, 0.0, 2.0]), 2),
        (case(9, &[0.0, 1.25, 2.25, 0.0, 2.0]), 1),
        (case(9, &[-9.0, -9.0, -3.0, -9.0, -2.0]), 4),
        (case(2, &[-9.0, -9.0, -3.0, -7.0, -4.0]), 2),
    ];
    for (case, choice) in &cases {
        assert_eq!(expected(case), *choice);
    }
    let cases: Vec<Case> = cases.into_iter().map(|(case, _)| case).collect();
    check("penalty", &cases, 2);
    // Ids that no logit has, and the highest: nothing happens.
    let odd = Case { tokens: vec![5, u32::MAX, 1 << 18], ..case(3, &[0.0, 0.5, 1.0]) };
    check("ids outside", &[odd], 1);
}

#[test]
fn any_number_of_groups_gives_the_same() {
    let mut random = Random::new(11);
    let logits = logits(100, &mut random);
    let cases = variants(&logits, &mut random);
    for groups in [1, 3, 40] {
        check("groups", &cases, groups);
    }
}

/// Everything at random, several vocabularies.
#[test]
fn random_parameters() {
    let mut random = Random::new(31);
    for _ in 0..12 {
        let shape = random_shape(&mut random);
        let most = shape.len() as u32;
        let cases: Vec<Case> = (0..16).map(|_| random_case(&shape, most, &mut random)).collect();
        check("random", &cases, 5);
    }
}

/// A step without outputs.
#[test]
fn no_output_no_work() {
    let mut device = Device::new(0);
    let case = Case::greedy(vec![1.0, 2.0]);
    let mut launch = prepare(&mut device, &[case]);
    launch.block.header.step_va = step(&mut device, &[[1, 0, 0]], &[]);
    device.run("sample", launch.block.as_bytes(), 2);
    let bytes = device.bytes(launch.slots_va, launch.slots.len() * size_of::<SlotState>());
    assert_eq!(bytes, launch.slots.as_bytes());
}

/// Runs these cases on a kernel with one instruction changed.
fn check_changed(what: &str, change: [u32; 2], cases: &[Case]) {
    let mut device = Device::new(0);
    let launch = prepare(&mut device, cases);
    device.run_changed("sample", change, launch.block.as_bytes(), 2);
    check_slots(&device, &launch, cases, what);
}

/// A kernel with another first Philox multiplier draws other tokens, and this comparison detects it.
#[test]
#[should_panic(expected = "another multiplier")]
fn a_wrong_multiplier_is_seen() {
    let mut random = Random::new(12);
    let logits = logits(64, &mut random);
    let cases = draws(&Case { temperature: 2.0, ..Case::greedy(logits) });
    check_changed("another multiplier", [0xD251_1F53, 0xD251_1F55], &cases);
}

/// `v_add_f32 v18, 0, v18`, which makes +0 of -0, becomes `v_mov_b32 v18, v18`: zeros of both signs are no longer ties.
#[test]
#[should_panic(expected = "zeros apart")]
fn zeros_that_differ_by_sign_are_seen() {
    let case = Case { temperature: 1.0, top_k: 1, ..Case::greedy(vec![-0.0, 0.0, -0.0]) };
    check_changed("zeros apart", [0x0624_2480, 0x7E24_0312], &[case]);
}

/// `s_cselect_b32 s4, -1, 0`, which takes 1 off `need` if it was not rounded up, becomes `s_cselect_b32 s4, 0, 0`: one
/// token too many is kept if a share is met exactly.
#[test]
#[should_panic(expected = "one too many")]
fn a_share_that_is_missed_by_one_unit_is_seen() {
    let cases = draws(&Case { temperature: 1.0, top_p: 1 << 31, ..Case::greedy(vec![1.0; 4]) });
    check_changed("one too many", [0x9804_80C1, 0x9804_8080], &cases);
}

/// The ceilings are a tenth above what `docs/kernels.md` states.
#[test]
fn the_cost_of_a_choice() {
    let mut random = Random::new(21);
    let base =
        Case { temperature: 1.0, seed: 5, tokens: vec![1; 9], ..Case::greedy(logits(32_768, &mut random)) };
    let top_p = 0xE666_6666;
    for (what, ceiling, case) in [
        ("greedy", 9.0, Case { temperature: 0.0, ..base.clone() }),
        ("greedy, penalty", 15.0, Case { temperature: 0.0, penalty: 1.5, window: 9, ..base.clone() }),
        ("draw", 149.0, base.clone()),
        ("top-p", 204.0, Case { top_p, ..base.clone() }),
        ("top-k 40", 124.0, Case { top_k: 40, ..base.clone() }),
        ("top-k 40, top-p", 130.0, Case { top_k: 40, top_p, ..base.clone() }),
    ] {
        check_cost(what, ceiling, case);
    }
}
