//! `zrt pm4-test` as its users run it: an installed program, in any folder.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::Folder;
use serde_json::Value as Json;
use std::process::{Command, Output};
use zrt_bringup::selftest::{Extent, case_count};

/// Runs it in a folder.
fn pm4_test(folder: &Folder, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.arg("pm4-test").args(arguments).current_dir(folder.path(".")).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_sound_device_passes_every_case() {
    let folder = Folder::new("pm4-sound");
    let output = pm4_test(&folder, &[]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    assert!(said.starts_with("Virtual R9700 (gfx1201): gpu_id "), "{said}");
    let cases = case_count(Extent::Full);
    let told = said.lines().filter(|line| {
        ["     ok  ", "  noted  ", "skipped  "].iter().any(|outcome| line.starts_with(outcome))
    });
    assert_eq!(told.count(), cases, "{said}");
    assert!(
        said.lines().last().unwrap().contains(&format!("of {cases} cases passed, none failed")),
        "{said}"
    );
    assert_eq!(folder.names(), [""; 0], "no file unless asked");
}

#[test]
fn a_broken_device_fails_in_words_and_in_the_document() {
    let folder = Folder::new("pm4-broken");
    let broken = ["--plant", "end-of-pipe-never-writes"];
    let output = pm4_test(&folder, &broken);
    let (said, error) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(1), "{said}{error}");
    assert!(said.contains(" FAILED  fence ") && said.contains("not run  nop "), "{said}");
    assert!(error.starts_with("error: 1 of ") && error.contains("first \"fence\""), "{error}");

    let output = pm4_test(&folder, &[&broken[..], &["--json"]].concat());
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &document["version"]), (Some(1), &Json::from(1)), "{document}");
    assert_eq!(document["error"]["exit_code"], 1);
    let sentence = document["error"]["message"].as_str().unwrap();
    assert_eq!(error, format!("error: {sentence}\n"));
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len() as u64, document["cases_expected"].as_u64().unwrap());
    let failed: Vec<&Json> = cases.iter().filter(|case| case["outcome"] == "failed").collect();
    assert!(failed.len() == 1 && failed[0]["case"] == "fence", "{failed:?}");
}

#[test]
fn the_report_has_cases_and_answers() {
    let folder = Folder::new("pm4-report");
    let output = pm4_test(&folder, &["--probe", "--json"]);
    let document: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((output.status.code(), &document["error"]), (Some(0), &Json::Null), "{document}");
    assert_eq!(
        (document["report"].as_str(), folder.names()),
        (Some("zrt-report-virtual.md"), vec!["zrt-report-virtual.md".to_owned()])
    );
    let written = std::fs::read_to_string(folder.path("zrt-report-virtual.md")).unwrap();
    let (_, json) = written.split_once("```json\n").unwrap();
    let report: Json = serde_json::from_str(json.split_once("\n```").unwrap().0).unwrap();
    assert_eq!(report["conformance"]["cases"], document["cases"]);
    assert_eq!(report["probes"], document["probes"]);
    assert!(!document["probes"].as_array().unwrap().is_empty());
    assert!(report["zrt"].as_str().unwrap().starts_with("0.1.0 ("), "{}", report["zrt"]);
}

#[test]
fn what_makes_no_sense_runs_nothing() {
    let folder = Folder::new("pm4-refused");
    let cases = [
        (&["--device", "kfd", "--seed", "3"][..], 2, "--seed configures the virtual device"),
        (&["--device", "cpu"], 1, "choose auto, virtual or kfd"),
        (&["--plant", "nothing"], 2, "end-of-pipe-never-writes"),
    ];
    for (arguments, code, part) in cases {
        let output = pm4_test(&folder, arguments);
        let error = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {error}");
        assert!(output.stdout.is_empty() && error.contains(part), "{arguments:?}: {error}");
    }
    let file = pm4_test(&folder, &["--report", "no/such/folder/report.md"]);
    let error = text(&file.stderr);
    assert!(file.status.code() == Some(2) && error.contains("no/such/folder/report.md"), "{error}");
    assert!(file.stdout.is_empty(), "no case has run: {}", text(&file.stdout));
}
