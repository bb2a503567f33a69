//! Kernels that are written down here, on devices of their own. Words of llvm-mc 22.

use super::*;
use crate::object::{Needs, object};

fn shape() -> Shape {
    Shape::new(64, false).unwrap()
}

/// What a kernel leaves behind, and what was found.
fn run(code: &[u32], needs: Needs, schedule: Option<u64>) -> (Outcome, Vec<Finding>) {
    run_within(Duration::from_millis(KERNEL_MS_MAX), code, needs, schedule)
}

/// The same with another limit.
fn run_within(limit: Duration, code: &[u32], needs: Needs, schedule: Option<u64>) -> (Outcome, Vec<Finding>) {
    let loaded = zrt_loader::Program::parse(&object(1, code, needs)).unwrap();
    let mut session = Session { kernel_limit: limit, ..Session::open(shape(), schedule).unwrap() };
    let kernel = loaded.kernel("p0").unwrap();
    assert_ne!(kernel.entry_offset, 0);
    let placed = session.load(&loaded, "programs", None).unwrap();
    let outcome = session.launch(shape(), kernel, &placed, 1, &vec![0x11; shape().in_bytes()]).unwrap();
    (outcome, session.findings().unwrap())
}

/// The first words of the output.
fn words(outcome: &Outcome) -> [u32; 3] {
    let Outcome::Ran(results) = outcome else { panic!("{outcome:?}") };
    assert_eq!(results.len(), shape().result_bytes());
    let words = words_of(&results[..12]);
    [words[0], words[1], words[2]]
}

/// Stores what the dispatch packet says: code from behind the kernel's first instruction, arguments from where they
/// are, and items.
const ASKS_PACKET: [u32; 26] = [
    0xBE8A_4700, // s_getpc_b64 s[10:11]
    0xF400_2101,
    0xF800_0008, // s_load_b64 s[4:5], s[2:3], 0x8
    0xF400_2180,
    0xF800_0020, // s_load_b64 s[6:7], s[0:1], 0x20
    0xF400_2200,
    0xF800_0028, // s_load_b64 s[8:9], s[0:1], 0x28
    0xF400_0300,
    0xF800_000C, // s_load_b32 s12, s[0:1], 0xc
    0xBFC7_0000, // s_wait_kmcnt 0x0
    0x8086_0A06, // s_sub_co_u32 s6, s6, s10
    0x8088_0208, // s_sub_co_u32 s8, s8, s2
    0x7E04_0280, // v_mov_b32_e32 v2, 0
    0x7E02_0206, // v_mov_b32_e32 v1, s6
    0x7E06_0208, // v_mov_b32_e32 v3, s8
    0x7E08_020C, // v_mov_b32_e32 v4, s12
    0xEE06_8004,
    0x0080_0000,
    0x0000_0002, // global_store_b32 v2, v1, s[4:5]
    0xEE06_8004,
    0x0180_0000,
    0x0000_0402, // global_store_b32 v2, v3, s[4:5] offset:4
    0xEE06_8004,
    0x0200_0000,
    0x0000_0802, // global_store_b32 v2, v4, s[4:5] offset:8
    0xBFB0_0000, // s_endpgm
];

#[test]
fn a_kernel_finds_itself_and_its_arguments_in_the_dispatch_packet() {
    let (outcome, _) = run(&ASKS_PACKET, Needs { has_packet: true, ..Needs::default() }, None);
    assert_eq!(words(&outcome), [4u32.wrapping_neg(), 0, 64]);
}

#[test]
fn a_kernel_that_does_nothing_leaves_zeros_and_the_fill() {
    for schedule in [None, Some(0)] {
        let (outcome, findings) = run(&[0xBFB0_0000], Needs::default(), schedule);
        let Outcome::Ran(results) = outcome else { panic!("{outcome:?}") };
        let (output, accumulator) = results.split_at(shape().out_bytes());
        assert!(
            output.iter().all(|byte| *byte == 0) && accumulator.iter().all(|byte| *byte == ACCUMULATOR_FILL)
        );
        assert_eq!(findings, []);
    }
}

/// Only a checking device looks for findings, and each names the schedule that it is of.
#[test]
fn a_broken_rule_is_found_under_the_seed_of_the_schedule() {
    let unwritten = [
        0xF400_2100,
        0xF800_0008, // s_load_b64 s[4:5], s[0:1], 0x8
        0x3004_0082, // v_lshlrev_b32_e32 v2, 2, v0
        0xBFC7_0000, // s_wait_kmcnt 0x0
        0xEE06_8004,
        0x0180_0000,
        0x0000_0002, // global_store_b32 v2, v3, s[4:5]
        0xBFB0_0000, // s_endpgm
    ];
    assert_eq!(run(&unwritten, Needs::default(), None).1, []);
    for seed in [0, 5] {
        let found = run(&unwritten, Needs::default(), Some(seed)).1;
        let told: Vec<_> = found.iter().map(|finding| (finding.rule.as_str(), finding.seed)).collect();
        assert_eq!(told, [("uninitialised", seed)]);
    }
}

/// Rules and what they say of a kernel under the checking mode.
fn found(code: &[u32], needs: Needs) -> Vec<String> {
    let findings = run(code, needs, Some(0)).1;
    findings.iter().map(|finding| format!("{}: {}", finding.rule, finding.what)).collect()
}

/// Each item stores 3 in a word of its own, from the beginning of the buffer that the argument at `offset` is.
fn stores_to(offset: u32) -> [u32; 9] {
    [
        0xF400_2100,
        0xF800_0000 | offset, // s_load_b64 s[4:5], s[0:1], offset
        0x7E02_0283,          // v_mov_b32_e32 v1, 3
        0x3004_0082,          // v_lshlrev_b32_e32 v2, 2, v0
        0xBFC7_0000,          // s_wait_kmcnt 0x0
        0xEE06_8004,
        0x0080_0000,
        0x0000_0002, // global_store_b32 v2, v1, s[4:5]
        0xBFB0_0000, // s_endpgm
    ]
}

#[test]
fn output_and_accumulator_may_be_written_and_the_input_may_not() {
    assert!(found(&stores_to(0), Needs::default())[0].starts_with("bounds: "));
    assert_eq!(found(&stores_to(8), Needs::default()), [] as [&str; 0]);
    assert_eq!(found(&stores_to(16), Needs::default()), [] as [&str; 0]);
}

/// Each of 64 items stores a word of its own to LDS.
const STORES_TO_LDS: [u32; 5] = [
    0x3002_0082, // v_lshlrev_b32_e32 v1, 2, v0
    0x7E04_0281, // v_mov_b32_e32 v2, 1
    0xD834_0000,
    0x0000_0201, // ds_store_b32 v1, v2
    0xBFB0_0000, // s_endpgm
];

#[test]
fn lds_ends_where_the_kernel_says() {
    let of = |lds_bytes| found(&STORES_TO_LDS, Needs { lds_bytes, ..Needs::default() });
    assert_eq!(of(256), [] as [&str; 0]);
    assert!(of(252)[0].starts_with("bounds: "));
}

/// Stores a word to scratch at 64.
const STORES_TO_SCRATCH: [u32; 5] = [
    0x7E02_0290, // v_mov_b32_e32 v1, 16
    0xED06_807C,
    0x0080_0000,
    0x0000_4000, // scratch_store_b32 off, v1, off offset:64
    0xBFB0_0000, // s_endpgm
];

/// Calls may need more than was counted.
#[test]
fn scratch_ends_where_the_kernel_says_unless_its_stack_is_dynamic() {
    let of = |scratch_bytes, has_dynamic_stack| {
        found(&STORES_TO_SCRATCH, Needs { scratch_bytes, has_dynamic_stack, ..Needs::default() })
    };
    assert_eq!(of(68, false), [] as [&str; 0]);
    assert!(of(64, false)[0].starts_with("bounds: "));
    assert_eq!(of(64, true), [] as [&str; 0]);
}

/// A wave that has faulted does not end, and is not waited for.
#[test]
fn a_fault_is_told_at_once() {
    for schedule in [None, Some(0)] {
        let (outcome, _) = run(&[0xBF90_0002, 0xBFB0_0000], Needs::default(), schedule); // s_trap 2
        assert!(matches!(&outcome, Outcome::Fault(text) if text.contains("trap")), "{outcome:?}");
    }
}

/// It takes longer than the interval at which the device's log is read.
const COUNTS_DOWN: [u32; 6] = [
    0xBE88_00FF,
    0x0020_0000, // s_mov_b32 s8, 0x200000
    0x8088_8108, // s_sub_co_u32 s8, s8, 1
    0xBF07_8008, // s_cmp_lg_u32 s8, 0
    0xBFA2_FFFD, // s_cbranch_scc1 back to the subtraction
    0xBFB0_0000, // s_endpgm
];

#[test]
fn a_kernel_that_takes_long_is_waited_for() {
    assert!(matches!(run(&COUNTS_DOWN, Needs::default(), None).0, Outcome::Ran(_)));
}

#[test]
fn a_kernel_that_takes_longer_than_its_limit_is_told() {
    let (outcome, _) = run_within(Duration::ZERO, &COUNTS_DOWN, Needs::default(), None);
    let Outcome::Fault(text) = outcome else { panic!("{outcome:?}") };
    assert!(text.starts_with("the device did not finish within "), "{text}");
}

/// Offsets of changed words count from the segment's beginning, and the segment's from the image's.
#[test]
fn code_can_be_changed_before_it_runs() {
    let loaded = zrt_loader::Program::parse(&object(1, &stores_to(8), Needs::default())).unwrap();
    let kernel = loaded.kernel("p0").unwrap();
    let changed = |offset: u64, word: u32| {
        let change = move |start: u64, words: &mut [u32]| {
            assert_eq!((start, &*words), (kernel.entry_offset, &stores_to(8)[..]));
            words[offset as usize / 4] = word;
        };
        let mut session = Session::open(shape(), None).unwrap();
        let code = session.load(&loaded, "programs", Some(&change)).unwrap();
        words(&session.launch(shape(), kernel, &code, 1, &[0; 64 * 64]).unwrap())[0]
    };
    assert_eq!(changed(8, 0x7E02_0287), 7); // v_mov_b32_e32 v1, 7
    assert_eq!(changed(12, 0x7E04_0284), 0); // v_mov_b32_e32 v2, 4
}

/// What a schedule is drawn for is the kernel alone, and what it does not write is 0.
#[test]
fn a_session_with_a_schedule_begins_with_nothing_run_and_zeros() {
    let mut session = Session::open(shape(), Some(0)).unwrap();
    assert_eq!(session.device.counters().unwrap().dispatches, 0);
    let len = ARGUMENT_BYTES_MAX as usize + DISPATCH_PACKET_BYTES;
    assert_eq!(session.arguments.len.0, len as u64);
    let mut bytes = vec![1; len];
    session.device.download(&session.arguments, ByteLen(0), &mut bytes).unwrap();
    assert!(bytes.iter().all(|byte| *byte == 0));
}
