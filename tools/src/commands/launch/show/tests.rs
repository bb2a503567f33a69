//! Reports of made-up outcomes, compared with what they must say.

use super::*;
use crate::commands::launch::task::Purpose;
use crate::launch::{Seen, Sequence};
use crate::prediction::kernel::{Bound, Bounds};
use crate::profile::{Bytes, Lds, PlaceCounts};
use zrt_device::Counters;

fn place(pc: u64, kernel: Option<&str>, offset: Option<u64>) -> Place {
    Place { pc, kernel: kernel.map(str::to_owned), offset, source: None, source_text: None }
}

fn finding(rule: &str, at: Place) -> Finding {
    Finding { rule: rule.to_owned(), place: Some(at), count: 1, ..Finding::default() }
}

/// A fault is reported by a finding of its instruction, wherever the code was on that schedule's device.
#[test]
fn a_fault_is_told_by_the_finding_of_its_instruction() {
    let fault = place(0x1008, Some("k"), Some(8));
    for (rule, at, expected) in [
        ("bounds", place(0x9008, Some("k"), Some(8)), true),
        ("advice", place(0x1008, Some("k"), Some(8)), false),
        ("bounds", place(0x1008, Some("other"), Some(8)), false),
        ("bounds", place(0x1008, Some("k"), Some(4)), false),
        ("bounds", place(0x1008, None, None), true),
        ("bounds", place(0x1004, None, None), false),
    ] {
        assert_eq!(tells(&finding(rule, at.clone()), &fault), expected, "{rule} {at:?}");
    }
}

/// Schedules that find the same: one finding each, however many there are and whatever addresses they had.
#[test]
fn findings_of_all_schedules_are_told_once() {
    let mut outcome = Outcome::default();
    for seed in 0..3 {
        let of = |number: usize| Located {
            finding: finding(
                "race",
                place(number as u64 + 0x1000 * seed, Some("k"), Some(4 * number as u64)),
            ),
            action: None,
            number,
        };
        outcome.add_findings((0..100).map(of).collect());
    }
    let counts: Vec<u64> = outcome.findings.iter().map(|located| located.finding.count).collect();
    assert_eq!(counts, [3; 100]);
    outcome.filter(|finding| finding.place.as_ref().is_some_and(|place| place.offset == Some(8)));
    assert_eq!(outcome.findings.len(), 1);
}

/// A place of a kernel in a line of `k.c`.
fn in_line(place: Place, line: u32, text: Option<&str>) -> Place {
    Place { source: Some(("k.c".to_owned(), line)), source_text: text.map(str::to_owned), ..place }
}

fn counts(place: Place, instruction: &str, count: u64, lanes: u64) -> PlaceCounts {
    PlaceCounts {
        pc: 0,
        place: Some(place),
        instruction: instruction.to_owned(),
        count,
        lanes,
        sectors: None,
        lds_passes: None,
        lds_conflicts: None,
    }
}

/// Instructions by their number and then by name; means for each wave instruction; lines of the source with theirs.
#[test]
fn a_profile_is_four_tables_and_two_sentences() {
    let first = in_line(place(0x10, Some("k"), Some(0)), 3, Some("a | b"));
    let places = vec![
        PlaceCounts { sectors: Some(6), ..counts(first, "v_add x | y", 4, 100) },
        PlaceCounts {
            lds_passes: Some(20),
            lds_conflicts: Some(4),
            ..counts(in_line(place(0x20, None, None), 9, None), "ds_load", 8, 256)
        },
    ];
    let profile = Profile {
        wave_instructions: 12,
        opcodes: [("s_nop", 3), ("v_add", 12), ("a", 3)].map(|(name, count)| (name.to_owned(), count)).into(),
        places,
        bytes: Bytes {
            vector_load: 1,
            vector_store: 2,
            atomic: 3,
            scalar_load: 4,
            scratch: 5,
            lds_load: 6,
            lds_store: 7,
        },
        lds: Lds { accesses: 8, cycles: 20, cycles_without_conflict: 16 },
    };
    let expected = "
| instruction | count |
| ----------- | ----: |
| v_add       |    12 |
| a           |     3 |
| s_nop       |     3 |

| place         | count | lanes | sectors | LDS passes | conflicts | instruction  |
| ------------- | ----: | ----: | ------: | ---------: | --------: | ------------ |
| k+0x0 (k.c:3) |     4 |  25.0 |     1.5 |            |           | v_add x \\| y |
| 0x20 (k.c:9)  |     8 |  32.0 |         |        2.5 |       0.5 | ds_load      |

| line  | count | lanes | sectors | LDS passes | conflicts | text   |
| ----- | ----: | ----: | ------: | ---------: | --------: | ------ |
| k.c:9 |     8 |  32.0 |         |        2.5 |       0.5 |        |
| k.c:3 |     4 |  25.0 |     1.5 |            |           | a \\| b |

| memory                 | bytes |
| ---------------------- | ----: |
| vector loads           |     1 |
| vector stores          |     2 |
| atomics                |     3 |
| scalar loads           |     4 |
| scratch                |     5 |
| LDS loads              |     6 |
| LDS stores and atomics |     7 |

LDS: 8 accesses, 4 conflict cycles of 20
";
    assert_eq!(profile_text(&profile, None), expected);
    let bounds = Bounds {
        issue_us: 0.1,
        lines_us: 0.2,
        lds_us: 0.3,
        latency_us: 0.4,
        gl2_us: 0.5,
        bandwidth_us: 0.6,
        time_us: 0.7,
        bound: Bound::Issue,
    };
    let prediction = KernelPrediction {
        predicted_us_low: 1.0,
        predicted_us: 2.0,
        predicted_us_high: 3.0,
        bound: Bound::Gl2,
        bounds,
        waves_per_simd: 4.0,
        bytes_in_flight: 800.0,
    };
    let expected = format!(
        "{expected}
predicted for an R9700, not measured: 1.000 .. 3.000 us, likeliest 2.000 us, bound by GL2
issue 0.100, lines 0.200, LDS 0.300, latency 0.400, GL2 0.500, bandwidth 0.600 us; 4.0 waves of a SIMD, \
         800 bytes in flight of a compute unit\n{FORMULA}\n"
    );
    assert_eq!(profile_text(&profile, Some(prediction)), expected);
}

/// Twenty of each are shown; of further opcodes the sum, of further places and lines nothing.
#[test]
fn long_profiles_are_cut() {
    let of = |count: u32| {
        let opcodes = (0..count).map(|number| (format!("op{number:02}"), 100 - u64::from(number)));
        let places =
            (0..count).map(|number| counts(in_line(place(0, None, None), number, None), "s_nop", 1, 32));
        let profile = Profile { opcodes: opcodes.collect(), places: places.collect(), ..Profile::default() };
        let text = profile_text(&profile, None);
        let rows = ["| op", "| 0x0 ", "| k.c:"].map(|start| text.matches(&format!("\n{start}")).count());
        let rest = text.lines().find(|line| line.contains("others")).map(str::to_owned);
        (rows, rest)
    };
    assert_eq!(of(20), ([20; 3], None));
    // 80 and 79.
    assert_eq!(of(22), ([20; 3], Some("| 2 others    |   159 |".to_owned())));
    // Without lines there is no table of them.
    let profile =
        Profile { places: vec![counts(place(0, None, None), "s_nop", 1, 32)], ..Profile::default() };
    assert!(!profile_text(&profile, None).contains("| line"));
}

/// A task that reads one buffer, which must be the same in every schedule.
fn task(subject: Subject) -> Task<'static> {
    let sequence = Sequence {
        programs: Vec::new(),
        buffers: Vec::new(),
        actions: Vec::new(),
        deadline: std::time::Duration::ZERO,
        pauses: None,
        placement: None,
    };
    let compared =
        Purpose { action: 0, of: Of::Argument(1), file: None, is_compared: true, expectation: None };
    let code = std::path::PathBuf::new();
    Task { sequence, subject, purposes: vec![compared], files: Vec::new(), code, trusts_compilers: false }
}

/// What a schedule left that read these bytes.
fn left(task: &Task<'_>, bytes: &[u8], unexpected: &[&str]) -> (Report, Left) {
    let report = Report {
        device: "card".to_owned(),
        is_virtual: true,
        counters: Counters::default(),
        findings: Vec::new(),
        profile: None,
        printed: Printed::default(),
        unprinted: None,
    };
    let (result, mut left) = task.carry_out(
        |_| (),
        |_, observe| {
            observe(Seen::Read { action: 0, bytes: bytes.to_vec() });
            Ok(report)
        },
    );
    left.unexpected = unexpected.iter().map(|line| (*line).to_owned()).collect();
    (result.unwrap(), left)
}

fn located(finding: Finding, action: Option<usize>) -> Located {
    Located { finding, action, number: 0 }
}

fn failure(seed: u64, text: &str, fault: Option<(Place, Option<String>)>) -> Failure {
    let timeout = Unfinished::Endless(std::time::Duration::ZERO);
    let error = ErrorReport::of_schedule(text.to_owned(), &timeout, &Waves::default());
    Failure {
        seed,
        text: text.to_owned(),
        error,
        fault,
        printed: "before\n".to_owned(),
        is_first: false,
        waves: Waves::default(),
    }
}

/// Of several schedules the first that differs, or fails, or is not as expected, is told.
#[test]
fn schedules_are_counted_and_the_first_of_each_kind_is_told() {
    let task = task(Subject::Launch("k".to_owned()));
    let mut outcome = Outcome::default();
    let add = |outcome: &mut Outcome, bytes: &[u8], unexpected: &[&str], seed| {
        let (report, left) = left(&task, bytes, unexpected);
        outcome.add(&task, report, left, Some(seed));
    };
    add(&mut outcome, b"same", &[], 5);
    add(&mut outcome, b"same", &[], 6);
    assert_eq!((outcome.ended, outcome.different, outcome.is_clean(true)), (2, None, true));
    assert_eq!(outcome.printed(), "");
    add(&mut outcome, b"other", &["buffer x is not y"], 7);
    add(&mut outcome, b"others", &["and not z"], 8);
    assert_eq!((outcome.ended, outcome.different), (4, Some(7)));
    assert_eq!(outcome.unexpected, ["buffer x is not y (--seed 7)"]);
    for seed in [9, 10] {
        let mut left = Left::default();
        left.unexpected.push("never told".to_owned());
        outcome.add_failed(seed, || failure(seed, "why", None), Vec::new(), left);
    }
    let told = outcome.failure.as_ref().map(|failure| (failure.seed, failure.is_first));
    assert_eq!((outcome.failed, told, outcome.unexpected.len()), (2, Some((9, false)), 1));
    assert_eq!(outcome.printed(), "", "of the first schedule, which ended");
    let mut failed = Outcome::default();
    failed.add_failed(3, || failure(3, "why", None), Vec::new(), Left::default());
    assert!(failed.failure.as_ref().is_some_and(|failure| failure.is_first));
    assert_eq!((failed.printed().as_str(), failed.is_clean(false)), ("before\n", false));
    // Without a seed nothing is said about it.
    let mut single = Outcome::default();
    let (report, left) = left(&task, b"x", &["no"]);
    single.add(&task, report, left, None);
    assert_eq!((single.unexpected, single.different), (vec!["no".to_owned()], None));
}

#[test]
fn an_outcome_is_clean_if_nothing_is_told_that_counts() {
    let with = |rule: &str| Outcome {
        findings: vec![located(finding(rule, place(0, None, None)), None)],
        ..Outcome::default()
    };
    assert_eq!((with("advice").is_clean(false), with("advice").is_clean(true)), (true, false));
    assert_eq!((with("race").is_clean(false), with("race").is_clean(true)), (false, false));
    assert!(Outcome::default().is_clean(true));
    assert!(!Outcome { different: Some(1), ..Outcome::default() }.is_clean(false));
    assert!(!Outcome { failed: 1, ..Outcome::default() }.is_clean(false));
    assert!(!Outcome { unexpected: vec![String::new()], ..Outcome::default() }.is_clean(false));
}

/// Findings with the step of a script that shows them, then what failed, what differs, and the counts.
#[test]
fn a_verdict_says_all_that_is_wrong_in_order() {
    let origin = Origin { step: "2.1".to_owned(), line: 7, turns: vec![3, 0] };
    let task = task(Subject::Script("s".to_owned(), vec![None, Some(origin)]));
    let [race, advice] = ["race", "advice"].map(|rule| finding(rule, place(0x20, Some("k"), Some(8))));
    let outcome = Outcome {
        findings: vec![located(race.clone(), Some(1)), located(advice.clone(), Some(0))],
        failed: 2,
        failure: Some(failure(4, "time was up", None)),
        skipped: 3,
        different: Some(5),
        unexpected: vec!["buffer x is not y".to_owned()],
        ..Outcome::default()
    };
    let expected = |end: &str| {
        format!(
            "\n{race}\n    in step 2.1 turn 3,0 (line 7)\n\n{advice}\n\n\
             2 schedule(s) did not end, first that of --seed 4: time was up\n\
             3 further schedule(s) were not run\n\n\
             the outputs depend on the schedule: --seed 5 gives others\n\n\
             buffer x is not y\n\n1 finding(s)\n\n1 advice finding(s){end}\n"
        )
    };
    assert_eq!(verdict(&task, &outcome, true), expected(", which --strict counts"));
    assert_eq!(verdict(&task, &outcome, false), expected("; no rule is broken"));
    assert_eq!(verdict(&task, &Outcome::default(), true), "");
    // A fault that is among the findings is not told twice.
    let fault = Some((place(0x9020, Some("k"), Some(8)), Some("a remark".to_owned())));
    let outcome = Outcome {
        findings: vec![located(race, None)],
        failed: 1,
        failure: Some(failure(4, "why", fault)),
        ..Outcome::default()
    };
    let end = "\n1 schedule(s) did not end, first that of --seed 4: \
               the race finding at k+0x8; a remark\n\n1 finding(s)\n";
    assert!(verdict(&task, &outcome, true).ends_with(end), "{}", verdict(&task, &outcome, true));
}

/// The numbers of a document are those of the first schedule that ended, and of all schedules together.
#[test]
fn a_document_has_what_the_text_says() {
    let task = task(Subject::Launch("k".to_owned()));
    let (mut report, rest) = left(&task, b"", &[]);
    report.counters =
        Counters { doorbells: 1, packets: 2, dispatches: 3, submissions: 4, wave_instructions: Some(5) };
    let mut outcome =
        Outcome { skipped: 6, different: Some(7), unexpected: vec!["no".to_owned()], ..Outcome::default() };
    outcome.report = Some((report, rest));
    (outcome.ended, outcome.failed, outcome.failure) = (8, 9, Some(failure(10, "why", None)));
    let (argument, buffer) = (Of::Argument(1), Of::Buffer("b".to_owned(), None));
    let outputs = vec![(&argument, "one".to_owned(), 11), (&buffer, "two".to_owned(), 12)];
    let found = serde_json::to_value(document(&task, &outcome, outputs, "text", None)).unwrap();
    for (key, value) in [
        ("device", serde_json::json!("card")),
        ("kernel", serde_json::json!("k")),
        ("packets", serde_json::json!(2)),
        ("dispatches", serde_json::json!(3)),
        ("submissions", serde_json::json!(4)),
        ("wave_instructions", serde_json::json!(5)),
        ("skipped_schedules", serde_json::json!(6)),
        ("differing_seed", serde_json::json!(7)),
        ("schedules", serde_json::json!(17)),
        ("failed_schedules", serde_json::json!(9)),
        ("failed_seed", serde_json::json!(10)),
        ("failure", serde_json::json!("why")),
        ("unexpected", serde_json::json!(["no"])),
        ("printed", serde_json::json!("text")),
        (
            "outputs",
            serde_json::json!([
                {"argument": 1, "path": "one", "bytes": 11},
                {"buffer": "b", "step": null, "path": "two", "bytes": 12},
            ]),
        ),
    ] {
        assert_eq!(found[key], value, "{key}");
    }
    assert!(found["error"].to_string().contains("why") && found["profile"].is_null(), "{found}");
}
