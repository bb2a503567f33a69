//! What a run tells, word for word.

use super::super::bench::{Bench, Failure, equal};
use super::super::{CaseReport, Extent, Outcome, case_count, run, run_within};
use crate::{DeviceChoice, OpenOptions, PlantedFault, VirtualOptions};
use std::time::Duration;
use zrt_device::{Device, DeviceError};
use zrt_mem::ByteLen;

/// A device with a short ring.
fn open(virtual_device: VirtualOptions) -> Device {
    let options =
        OpenOptions { virtual_device, self_test: false, ring_bytes: ByteLen(4096), ..OpenOptions::default() };
    crate::open(DeviceChoice::Virtual, &options).unwrap()
}

/// A text without what differs from run to run: addresses, fractions, and counts of microseconds and ticks.
pub(super) fn masked(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let mask = |(at, word): (usize, &&str)| {
        let number = word.trim_end_matches([',', ';', ':']);
        let is_measured = matches!(words.get(at + 1), Some(&("µs" | "ticks")));
        let is_fraction = number.contains('.') && number.parse::<f64>().is_ok();
        let is_masked = number.starts_with("0x") || is_fraction || is_measured;
        if is_masked { word.replacen(number, "#", 1) } else { (*word).to_owned() }
    };
    words.iter().enumerate().map(mask).collect::<Vec<_>>().join(" ")
}

const PASSED: [(&str, &str); 36] = [
    ("map-and-flush", "system memory is mapped at #, VRAM at #, writes to it were flushed"),
    ("fence", "a 64-bit fence arrived after # µs"),
    ("nop", "NOPs of 1, 2, 4, 33 and 200 dwords were skipped exactly"),
    ("write-data", "1 and 5 dwords arrived, neighbours untouched"),
    ("write-data-no-increment", "3 dwords to one address: the last one stays"),
    ("release-mem-low-32", "a 32-bit fence wrote 4 bytes"),
    ("release-mem-timestamp", "two timestamps in a row are # ticks of 10 ns apart"),
    ("release-mem-interrupt", "the event was signalled after # µs"),
    ("write-data-vram", "two values that the GPU wrote to VRAM were read through the BAR"),
    ("acquire-mem", "every cache was invalidated, and the queue went on"),
    (
        "indirect-buffer-gtt",
        "one packet of an indirect buffer in system memory was executed, and the ring went on",
    ),
    ("indirect-buffer-vram", "one packet of an indirect buffer in VRAM was executed, and the ring went on"),
    ("dispatch-end", "one wave began and ended"),
    ("dispatch-store", "one lane stored a constant"),
    ("dispatch-ttmp9", "7 workgroups found their ids"),
    ("dispatch-s-load", "a dword went through a scalar load"),
    ("dispatch-code-vram", "the same code ran from device-local memory"),
    ("dispatch-indirect-buffer", "3072 lanes of 96 workgroups stored their value"),
    ("set-sh-reg-dispatch-direct", "registers and launch in the ring itself"),
    ("workgroup-ids", "105 workgroups of a 5 x 3 x 7 grid found their ids"),
    ("copy-data-immediate", "32 and 64 bits arrived"),
    ("copy-data-memory", "32 and 64 bits were copied between addresses"),
    ("copy-data-clock", "the GPU clock of 100 MHz advanced # s while # to # s passed"),
    ("wait-reg-mem", "all seven comparisons let a value pass that satisfies them"),
    ("wait-reg-mem-host", "the queue was held for 3 ms and released by the host"),
    ("event-write-partial-flush", "a copy behind the flush saw the last wave's store"),
    ("acquire-scalar-cache", "8 changed values were seen through the scalar cache"),
    ("dispatch-chain-barrier", "40 dependent dispatches over 2048 elements gave the same as the host"),
    ("lds-workgroup-barrier", "6 workgroups of 8 waves exchanged 256 dwords through LDS"),
    ("global-atomics", "32000 atomic additions were counted"),
    ("graph-replay", "50 replays: one doorbell, one indirect buffer and one dispatch each"),
    ("device-local-transfers", "2101251 bytes and six odd ranges arrived through the BAR"),
    ("submissions-in-flight", "500 submissions without waiting ran in order"),
    ("round-trip", "doorbell to fence: # µs at least, # µs median"),
    ("global-atomics-gtt", "32000 atomic additions to system memory were counted"),
    ("ring-wrap", "154 submissions went 3 times round a ring of 1024 dwords"),
];

const TIMINGS: [(&str, &[&str]); 6] = [
    ("dispatch-indirect-buffer", &["one dispatch of 96 waves"]),
    ("wait-reg-mem-host", &["host store to fence"]),
    ("dispatch-chain-barrier", &["dispatch and barrier in a chain"]),
    ("device-local-transfers", &["upload of 2 MiB"]),
    ("submissions-in-flight", &["submission of a graph, ring full at times"]),
    ("round-trip", &["round trip, least", "round trip, median"]),
];

fn told(reports: &[CaseReport]) -> Vec<(&'static str, &'static str, String)> {
    let told = |report: &CaseReport| (report.case, report.outcome.word(), masked(report.outcome.text()));
    reports.iter().map(told).collect()
}

#[test]
fn every_case_says_what_it_saw_and_what_it_measured() {
    let mut device = open(VirtualOptions::default());
    let reports = run(&mut device, Extent::Full);
    let expected = PASSED.map(|(case, text)| (case, "passed", text.to_owned()));
    assert_eq!(told(&reports), expected);
    let timed = |report: &CaseReport| {
        assert!(report.timings.iter().all(|timing| timing.nanoseconds > 0.0), "{report:?}");
        let names: Vec<&str> = report.timings.iter().map(|timing| timing.name).collect();
        (!names.is_empty()).then_some((report.case, names))
    };
    let timed: Vec<_> = reports.iter().filter_map(timed).collect();
    assert_eq!(timed, TIMINGS.map(|(case, names)| (case, names.to_vec())));
}

/// On a small BAR nothing in VRAM is seen by the host, and a clock that counts work is not compared with time.
#[test]
fn what_a_machine_lacks_is_skipped_and_said() {
    let virtual_device =
        VirtualOptions { small_bar: true, scheduler_seed: Some(3), ..VirtualOptions::default() };
    let reports = run(&mut open(virtual_device), Extent::Full);
    let no_vram = "the host sees no VRAM: a small BAR, or no page to flush writes through it";
    let mut expected = PASSED.map(|(case, text)| (case, "passed", text.to_owned()));
    for (case, word, text) in &mut expected {
        match *case {
            "map-and-flush" => *text = "a page of system memory is mapped at #; the host sees no VRAM".into(),
            "write-data-vram" | "indirect-buffer-vram" => (*word, *text) = ("skipped", no_vram.into()),
            "device-local-transfers" => *text = text.replace("through the BAR", "by staging copies"),
            "copy-data-clock" => *text = "the GPU clock counts work, not time, and went from # to #".into(),
            _ => {}
        }
    }
    let mut seen = told(&reports);
    let clock = seen.iter_mut().find(|(case, ..)| *case == "copy-data-clock").unwrap();
    let numbers: Vec<u64> = clock.2.split(' ').filter_map(|word| word.parse().ok()).collect();
    assert!(numbers.len() == 2 && numbers[0] <= numbers[1], "{numbers:?}");
    numbers.iter().for_each(|number| clock.2 = clock.2.replacen(&number.to_string(), "#", 1));
    assert_eq!(seen, expected);
}

/// A wait that ended at its deadline ends the run, whatever its extent.
#[test]
fn nothing_is_run_after_a_hang() {
    for extent in [Extent::Full, Extent::Short] {
        let planted = Some(PlantedFault::EndOfPipeNeverWrites);
        let mut device = open(VirtualOptions { planted, ..VirtualOptions::default() });
        let mut heard = Vec::new();
        let mut hear = |report: &CaseReport| heard.push(report.outcome.word());
        let reports = run_within(&mut device, extent, Duration::from_millis(50), &mut hear);
        assert_eq!(reports.len(), case_count(extent));
        assert!(reports[1].outcome.failure().unwrap().starts_with("the device did not finish within 5"));
        assert_eq!(heard[..3], ["passed", "failed", "not run"]);
        assert!(reports[2..].iter().all(|report| report.outcome == Outcome::NotRun));
        assert_eq!(reports[2].outcome.text(), "a case before it stopped the run");
    }
}

#[test]
fn times_are_shares_of_what_was_measured() {
    let mut device = open(VirtualOptions::default());
    let mut timings = Vec::new();
    let Ok(mut bench) = Bench::new(&mut device, &mut timings, Duration::from_secs(1)) else {
        panic!("a page")
    };
    bench.time("four", Duration::from_nanos(10), 4);
    bench.time("none", Duration::from_nanos(10), 0);
    let times: Vec<_> = timings.iter().map(|timing| (timing.name, timing.nanoseconds)).collect();
    assert_eq!(times, [("four", 2.5), ("none", 10.0)]);
}

#[test]
fn a_difference_says_both_values_and_whether_anything_was_written() {
    let text = |observed, expected| equal("the dword", observed, expected).err().map(|failure| failure.text);
    assert_eq!(text(7, 7), None);
    assert_eq!(text(7, 0x10).unwrap(), "the dword is 0x00000007, expected 0x00000010");
    assert_eq!(text(0xdead_beef, 0).unwrap(), "the dword is 0xdeadbeef (untouched), expected 0x00000000");
    assert_eq!(text(0xdead_beef, 0xdead_beef), None);
    let failure = Failure::from(DeviceError::EmptyGraph);
    assert!(!failure.is_stop && Failure::from(DeviceError::Lost).is_stop);
}
