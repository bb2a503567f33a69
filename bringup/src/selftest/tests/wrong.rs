//! Every case on devices that do not do what it tests.

use super::super::bench::{Bench, Failure};
use super::super::order::CASES;
use super::super::{Extent, Outcome, run};
use super::texts::masked;
use crate::OpenOptions;
use std::time::Duration;
use zrt_device::{Attachment, Device};
use zrt_mem::ByteLen;
use zrt_vgpu::config::{Config, Inspection, Scheduler, VramFill};
use zrt_vgpu::{FaultInjection, Misreading, VirtualGpu};

const NOP: u32 = 0x10;
const DISPATCH_DIRECT: u32 = 0x15;
const WRITE_DATA: u32 = 0x37;
const WAIT_REG_MEM: u32 = 0x3c;
const COPY_DATA: u32 = 0x40;
const EVENT_WRITE: u32 = 0x46;
const RELEASE_MEM: u32 = 0x49;
const ACQUIRE_MEM: u32 = 0x58;
const SET_SH_REG: u32 = 0x76;
/// WR_ONE_ADDR of WRITE_DATA, and COUNT_SEL (64 bits) of COPY_DATA.
const BIT_16: u32 = 1 << 16;
/// DATA_SEL of RELEASE_MEM: 32 bits, and the GPU's clock.
const LOW_32: u32 = 1;
const CLOCK: u32 = 3;

/// Deadline of work that ends on a loaded host, and of work that does not end.
const PATIENCE: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(40);

/// Waves run when the command processor waits for them, and not before; VRAM holds a word of its own.
fn config() -> Config {
    let vram_fill = Some(VramFill::Pattern(0x7fc0_dead));
    Config { scheduler: Scheduler::Deterministic, vram_fill, ..Config::default() }
}

fn device(config: Config, misreads: Misreading) -> Device {
    let injection = FaultInjection { misreads: Some(misreads), ..FaultInjection::default() };
    let process = Attachment::over(VirtualGpu::with_injection(config, injection).unwrap()).unwrap();
    let options = OpenOptions { self_test: false, ring_bytes: ByteLen(4096), ..OpenOptions::default() };
    crate::open_over(&process, &options).unwrap()
}

/// What a case says, and whether it stops the run.
fn ended(device: &mut Device, case: &str, deadline: Duration) -> Result<String, (String, bool)> {
    let case = CASES.iter().find(|known| known.name == case).unwrap();
    let mut timings = Vec::new();
    let ended = Bench::new(device, &mut timings, deadline).and_then(|mut bench| (case.test)(&mut bench));
    ended.map_err(|Failure { text, is_stop }| (text, is_stop))
}

/// The text of a case that fails and stops nothing.
fn fails_on(config: Config, case: &str, misreads: Misreading) -> String {
    match ended(&mut device(config, misreads), case, PATIENCE) {
        Err((text, false)) => text,
        other => panic!("{case}: {other:?}"),
    }
}

/// A case, what the device takes packets for, and what the case says.
type Wrong = (&'static str, Misreading, &'static str);

fn check(wrong: &[Wrong]) {
    for (at, (case, misreads, expected)) in wrong.iter().enumerate() {
        assert_eq!(fails_on(config(), case, *misreads), *expected, "{case}, {at}");
    }
}

/// Packets of this opcode for which this holds have no effect.
fn ignore(opcode: &mut u32, body: &[u32], ignored: u32, holds: impl Fn(&[u32]) -> bool) {
    if *opcode == ignored && holds(body) {
        *opcode = NOP;
    }
}

/// Packets of this opcode for which this holds are changed before they take effect.
fn change(
    opcode: u32,
    body: &mut Vec<u32>,
    changed: u32,
    holds: impl Fn(&[u32]) -> bool,
    by: impl Fn(&mut Vec<u32>),
) {
    if opcode == changed && holds(body) {
        by(body);
    }
}

/// A launch of `from` workgroups in x launches `to`.
fn launch(opcode: u32, body: &mut [u32], from: u32, to: u32) {
    if opcode == DISPATCH_DIRECT && body[0] == from {
        body[0] = to;
    }
}

fn data_select(body: &[u32]) -> u32 {
    body[1] >> 29
}

const WRITES: &[Wrong] = &[
    (
        "write-data",
        |op, body| ignore(op, body, WRITE_DATA, |body| body.len() == 4),
        "the single dword is 0xdeadbeef (untouched), expected 0x01234567",
    ),
    (
        "write-data",
        |op, body| change(*op, body, WRITE_DATA, |body| body.len() == 8, |body| body[5] ^= 1),
        "dword 2 of five is 0x33330002, expected 0x33330003",
    ),
    (
        "write-data",
        |op, body| change(*op, body, WRITE_DATA, |body| body.len() == 4, |body| body.push(7)),
        "the dword after the single one is 0x00000007, expected 0xdeadbeef",
    ),
    (
        "write-data",
        |op, body| change(*op, body, WRITE_DATA, |body| body.len() == 8, |body| body.push(7)),
        "the dword after the five is 0x00000007, expected 0xdeadbeef",
    ),
    (
        "write-data-no-increment",
        |op, body| change(*op, body, WRITE_DATA, |_| true, |body| body[0] &= !BIT_16),
        "the dword written three times is 0x00000001, expected 0x00000003",
    ),
    (
        "write-data-no-increment",
        |op, body| {
            if *op == WRITE_DATA {
                body[0] &= !BIT_16;
                body[3] = 3;
            }
        },
        "the dword after it is 0x00000002, expected 0xdeadbeef",
    ),
    (
        "write-data-vram",
        |op, body| ignore(op, body, WRITE_DATA, |_| true),
        "the dword in VRAM is 0x7fc0dead, expected 0x0a0a0001",
    ),
    (
        "write-data-vram",
        |op, body| ignore(op, body, WRITE_DATA, |body| body[3] == 0x0b0b_0002),
        "the dword in VRAM is 0x0a0a0001, expected 0x0b0b0002",
    ),
    (
        "acquire-mem",
        |op, body| ignore(op, body, WRITE_DATA, |_| true),
        "the dword written behind it is 0xdeadbeef (untouched), expected 0x00000001",
    ),
    (
        "ring-wrap",
        |op, body| ignore(op, body, WRITE_DATA, |body| body[3] == 153),
        "the dword of submission 153 is 0x00000059, expected 0x00000099",
    ),
    (
        "ring-wrap",
        |op, body| ignore(op, body, WRITE_DATA, |body| body[3] == 90),
        "the dword of submission 90 is 0x0000001a, expected 0x0000005a",
    ),
];

#[test]
fn writes_that_are_not_what_they_should_be_are_seen() {
    check(WRITES);
}

const RELEASES: &[Wrong] = &[
    (
        "release-mem-low-32",
        |op, body| ignore(op, body, RELEASE_MEM, |body| data_select(body) == LOW_32),
        "the 32-bit fence is 0xdeadbeef (untouched), expected 0x0badcafe",
    ),
    (
        "release-mem-low-32",
        |op, body| {
            change(*op, body, RELEASE_MEM, |body| data_select(body) == LOW_32, |body| body[1] += 1 << 29)
        },
        "the dword after it is 0x00000000, expected 0xdeadbeef",
    ),
    (
        "release-mem-timestamp",
        |op, body| ignore(op, body, RELEASE_MEM, |body| data_select(body) == CLOCK),
        "two timestamps in a row read 16045690984833335023 and 16045690984833335023",
    ),
];

#[test]
fn releases_that_are_not_what_they_should_be_are_seen() {
    check(RELEASES);
    // Each of the two alone: what the other read is a time.
    let first = fails_on(config(), "release-mem-timestamp", |op, body| {
        ignore(op, body, RELEASE_MEM, |body| data_select(body) == CLOCK && body[2] & 8 == 0);
    });
    assert!(first.starts_with("two timestamps in a row read 16045690984833335023 and "), "{first}");
    let second = fails_on(config(), "release-mem-timestamp", |op, body| {
        ignore(op, body, RELEASE_MEM, |body| data_select(body) == CLOCK && body[2] & 8 == 8);
    });
    assert!(second.ends_with(" and 16045690984833335023"), "{second}");
    // An interrupt that does not come ends the run: the next wait would be for nothing too.
    let mut silent = device(config(), |op, body| {
        change(*op, body, RELEASE_MEM, |body| data_select(body) == LOW_32, |body| body[1] &= !(7 << 24))
    });
    let text = "the fence came, and no interrupt within 40 ms of it";
    assert_eq!(ended(&mut silent, "release-mem-interrupt", SHORT), Err((text.into(), true)));
}

const COPIES: &[Wrong] = &[
    (
        "copy-data-immediate",
        |op, body| ignore(op, body, COPY_DATA, |body| body[0] & BIT_16 == 0),
        "the 32-bit immediate is 0xdeadbeef (untouched), expected 0x89abcdef",
    ),
    (
        "copy-data-immediate",
        |op, body| change(*op, body, COPY_DATA, |_| true, |body| body[0] |= BIT_16),
        "the dword after it is 0x00000000, expected 0xdeadbeef",
    ),
    (
        "copy-data-immediate",
        |op, body| ignore(op, body, COPY_DATA, |body| body[0] & BIT_16 != 0),
        "the 64-bit immediate's low half is 0xdeadbeef (untouched), expected 0x89abcdef",
    ),
    (
        "copy-data-immediate",
        |op, body| change(*op, body, COPY_DATA, |_| true, |body| body[0] &= !BIT_16),
        "the 64-bit immediate's high half is 0xdeadbeef (untouched), expected 0x01234567",
    ),
    (
        "copy-data-memory",
        |op, body| ignore(op, body, COPY_DATA, |body| body[0] & BIT_16 == 0),
        "the copied dword is 0xdeadbeef (untouched), expected 0x55667788",
    ),
    (
        "copy-data-memory",
        |op, body| change(*op, body, COPY_DATA, |_| true, |body| body[0] |= BIT_16),
        "the dword after it is 0x11223344, expected 0xdeadbeef",
    ),
    (
        "copy-data-memory",
        |op, body| ignore(op, body, COPY_DATA, |body| body[0] & BIT_16 != 0),
        "the copied quadword's low half is 0xdeadbeef (untouched), expected 0x55667788",
    ),
    (
        "copy-data-memory",
        |op, body| change(*op, body, COPY_DATA, |_| true, |body| body[0] &= !BIT_16),
        "the copied quadword's high half is 0xdeadbeef (untouched), expected 0x11223344",
    ),
    (
        "event-write-partial-flush",
        |op, body| ignore(op, body, EVENT_WRITE, |_| true),
        "the last lane's value, copied after the flush is 0xdeadbeef (untouched), expected 0x00c0f411",
    ),
    (
        "event-write-partial-flush",
        |op, body| launch(*op, body, 96, 95),
        "the last lane's value, copied after the flush is 0xdeadbeef (untouched), expected 0x00c0f411",
    ),
];

#[test]
fn copies_that_are_not_what_they_should_be_are_seen() {
    check(COPIES);
    let text = fails_on(config(), "copy-data-clock", |op, body| ignore(op, body, COPY_DATA, |_| true));
    let expected = "the clock went from 16045690984833335023 to 16045690984833335023: # s at 100 MHz, but # to # s passed";
    assert_eq!(masked(&text), expected);
}

const LAUNCHES: &[Wrong] = &[
    (
        "indirect-buffer-gtt",
        |op, body| ignore(op, body, WRITE_DATA, |body| body[3] == 0x1b1b_0001),
        "the dword that the indirect buffer writes is 0xdeadbeef (untouched), expected 0x1b1b0001",
    ),
    (
        "indirect-buffer-gtt",
        |op, body| ignore(op, body, WRITE_DATA, |body| body[3] == 0x1b1b_0002),
        "the dword that the ring writes behind it is 0xdeadbeef (untouched), expected 0x1b1b0002",
    ),
    (
        "indirect-buffer-vram",
        |op, body| ignore(op, body, WRITE_DATA, |body| body[3] == 0x1b1b_0001),
        "the dword that the indirect buffer writes is 0xdeadbeef (untouched), expected 0x1b1b0001",
    ),
    (
        "dispatch-store",
        |op, body| launch(*op, body, 1, 0),
        "the dword that lane 0 stores is 0xdeadbeef (untouched), expected 0x600df00d",
    ),
    (
        "dispatch-ttmp9",
        |op, body| launch(*op, body, 7, 6),
        "ttmp9 of workgroup 6 is 0xdeadbeef (untouched), expected 0x00000006",
    ),
    (
        "dispatch-ttmp9",
        |op, body| launch(*op, body, 7, 8),
        "the dword after the last workgroup is 0x00000007, expected 0xdeadbeef",
    ),
    (
        "dispatch-s-load",
        |op, body| launch(*op, body, 1, 0),
        "the dword that a scalar load read is 0xdeadbeef (untouched), expected 0x10aded01",
    ),
    (
        "dispatch-code-vram",
        |op, body| launch(*op, body, 1, 0),
        "the dword that a scalar load read is 0xdeadbeef (untouched), expected 0x10aded01",
    ),
    (
        "dispatch-indirect-buffer",
        |op, body| launch(*op, body, 96, 95),
        "element 3040 is 0xdeadbeef (untouched), expected 0x5a5a0410",
    ),
    (
        "dispatch-indirect-buffer",
        |op, body| launch(*op, body, 96, 97),
        "the dword after the last element is 0x5a5a03f0, expected 0xdeadbeef",
    ),
    (
        "set-sh-reg-dispatch-direct",
        |op, body| launch(*op, body, 96, 95),
        "element 3040 is 0xdeadbeef (untouched), expected 0x1357903f",
    ),
    (
        "set-sh-reg-dispatch-direct",
        |op, body| launch(*op, body, 96, 97),
        "the dword after the last element is 0x135797df, expected 0xdeadbeef",
    ),
    (
        "workgroup-ids",
        |op, body| change(*op, body, DISPATCH_DIRECT, |_| true, |body| body[2] = 6),
        "ttmp9 of workgroup (0, 0, 6) is 0xdeadbeef (untouched), expected 0x00000000",
    ),
    (
        "workgroup-ids",
        |op, body| change(*op, body, DISPATCH_DIRECT, |_| true, |body| body[2] = 8),
        "the dword after the last workgroup is 0x00000000, expected 0xdeadbeef",
    ),
    // As many workgroups, in one plane.
    (
        "workgroup-ids",
        |op, body| change(*op, body, DISPATCH_DIRECT, |_| true, |body| body[1..3].copy_from_slice(&[21, 1])),
        "ttmp7 of workgroup (0, 0, 1) is 0x00000003, expected 0x00010000",
    ),
];

#[test]
fn launches_that_are_not_what_they_should_be_are_seen() {
    check(LAUNCHES);
}

const WORK: &[Wrong] = &[
    (
        "dispatch-chain-barrier",
        |op, body| launch(*op, body, 64, 63),
        "element 2016 after 40 steps is 0x000007e0, expected 0x15eb8878",
    ),
    (
        "lds-workgroup-barrier",
        |op, body| launch(*op, body, 6, 5),
        "element 1280 is 0xdeadbeef (untouched), expected 0x050504aa",
    ),
    (
        "global-atomics",
        |op, body| launch(*op, body, 1000, 999),
        "the copied counter is 0x00007ce0, expected 0x00007d00",
    ),
    (
        "global-atomics-gtt",
        |op, body| launch(*op, body, 1000, 999),
        "31968 of 32000 additions to system memory arrived: the way to it routes no PCIe AtomicOps; nothing needs them",
    ),
    ("graph-replay", |op, body| launch(*op, body, 1, 0), "lane 0 is 0x00000000, expected 0xf9ef9202"),
    (
        "submissions-in-flight",
        |op, body| launch(*op, body, 1, 0),
        "lane 31 after all steps is 0x00000000, expected 0xceadedac",
    ),
    (
        "wait-reg-mem",
        |op, body| ignore(op, body, WRITE_DATA, |body| body[3] == 3),
        "the mark after comparison 3 is 0xdeadbeef (untouched), expected 0x00000003",
    ),
    (
        "wait-reg-mem-host",
        |op, body| ignore(op, body, WRITE_DATA, |_| true),
        "the mark after the wait is 0x00000000, expected 0x00000001",
    ),
];

#[test]
fn work_that_is_not_what_it_should_be_is_seen() {
    check(WORK);
}

/// The copy kernel's workgroups of 4 KiB: the last one of each MiB does not run, neither on the way there nor back. So
/// what was staged for the second MiB comes back for the first: 7 * index + (index >> 8) + (index >> 16), modulo 256.
#[test]
fn a_piece_of_a_transfer_that_is_another_one_is_seen() {
    let config = Config { large_bar: false, ..config() };
    let text = fails_on(config, "device-local-transfers", |op, body| launch(*op, body, 256, 255));
    assert_eq!(text, "byte 1044480 came back as 0x0f, expected 0xff");
    // A copy of less than 4 KiB: the first of the odd ranges, one byte.
    let text = fails_on(config, "device-local-transfers", |op, body| launch(*op, body, 1, 0));
    assert_eq!(text, "byte 0 came back as 0x00, expected 0xa5");
}

/// Under the checking mode the scalar cache keeps what it has read, until it is told otherwise.
#[test]
fn a_cache_that_is_not_invalidated_is_seen() {
    let inspection = Inspection { check: true, ..Inspection::default() };
    let text = fails_on(Config { inspection, ..config() }, "acquire-scalar-cache", |op, body| {
        ignore(op, body, ACQUIRE_MEM, |_| true);
    });
    assert_eq!(text, "the value read in round 1 is 0x00007000, expected 0x00007001");
    let text = fails_on(config(), "acquire-scalar-cache", |op, body| launch(*op, body, 1, 0));
    assert_eq!(text, "the value read in round 0 is 0xdeadbeef (untouched), expected 0x00007000");
}

/// How soon a device comes to a wait that does not hold it is its own affair: one that does not wait is seen sooner or
/// later.
#[test]
fn a_wait_that_does_not_hold_is_seen() {
    let misread: [Misreading; 2] = [
        |op, body| ignore(op, body, WAIT_REG_MEM, |_| true),
        // All of the value is compared, not what the mask leaves.
        |op, body| change(*op, body, WAIT_REG_MEM, |_| true, |body| body[4] = u32::MAX),
    ];
    let text = "the mark while the wait must hold is 0x00000001, expected 0x00000000";
    for (at, misread) in misread.into_iter().enumerate() {
        let mut device = device(config(), misread);
        let is_seen = |device: &mut Device| match ended(device, "wait-reg-mem-host", PATIENCE) {
            Ok(_) => false,
            Err(failure) => {
                assert_eq!(failure, (text.to_owned(), false), "{at}");
                true
            }
        };
        assert!((0..200).any(|_| is_seen(&mut device)), "{at}");
    }
}

/// What makes a queue stop is seen at the deadline, and stops the run.
#[test]
fn a_queue_that_stops_is_seen() {
    let stops: [(&str, Misreading); 6] = [
        ("nop", |op, _| {
            if *op == NOP {
                *op = 0xff
            }
        }),
        ("round-trip", |op, _| {
            if *op == NOP {
                *op = 0xff
            }
        }),
        ("dispatch-end", |op, _| {
            if *op == DISPATCH_DIRECT {
                *op = 0xff
            }
        }),
        // No LDS.
        ("lds-workgroup-barrier", |op, body| {
            change(*op, body, SET_SH_REG, |body| body[0] == 0x212, |body| body[2] &= !(0x1ff << 15))
        }),
        // Every comparison but the first, of all, is taken for its opposite: less for greater or equal, and so on.
        ("wait-reg-mem", |op, body| {
            change(
                *op,
                body,
                WAIT_REG_MEM,
                |body| body[0] & 7 != 0,
                |body| body[0] = body[0] & !7 | [0, 5, 6, 4, 3, 1, 2][body[0] as usize & 7],
            )
        }),
        // Not equal is taken for greater.
        ("wait-reg-mem", |op, body| {
            change(*op, body, WAIT_REG_MEM, |body| body[0] & 7 == 4, |body| body[0] = body[0] & !7 | 6)
        }),
    ];
    for (case, misreads) in stops {
        let (text, is_stop) = ended(&mut device(config(), misreads), case, SHORT).unwrap_err();
        assert!(text.starts_with("the device did not finish within 4") && is_stop, "{case}: {text}");
    }
}

/// A case that only notes what it saw does not fail the device, and a run of everything goes on after a failure.
#[test]
fn a_failure_that_stops_nothing_is_one_of_a_whole_run() {
    // The clock is one of time here.
    let mut device = device(Config::default(), |op, body| launch(*op, body, 1000, 999));
    let reports = run(&mut device, Extent::Full);
    let others: Vec<_> = reports
        .iter()
        .filter(|report| !matches!(report.outcome, Outcome::Passed(_)))
        .map(|report| (report.case, report.outcome.word()))
        .collect();
    assert_eq!(others, [("global-atomics", "failed"), ("global-atomics-gtt", "noted")]);
}
