//! `zrt-bench --predict`: ranges that are called predicted, and others' measurements that are called theirs.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use serde_json::Value as Json;
use std::process::{Command, Output};

const MODEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tales-qwen3-Q4_0.gguf");

fn predict(more: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt-bench"));
    command.args(["--predict", "--model", MODEL]).args(more).env_remove("ZRT_DEVICE").output().unwrap()
}

#[test]
fn records_are_predictions_and_then_measurements_of_others() {
    let output = predict(&["--json"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let records: Vec<Json> = serde_json::from_slice(&output.stdout).unwrap();
    let of = |kind: &str| records.iter().filter(|one| one["kind"] == kind).collect::<Vec<_>>();
    let (predicted, published) = (of("predicted"), of("published"));
    assert_eq!(predicted.len() + published.len(), records.len());
    // Three arithmetics, each with three numbers of slots and a prompt.
    let told: Vec<_> = predicted.iter().map(|one| (one["test"].clone(), one["rows"].as_u64())).collect();
    let of_one = [("tg", 1), ("tg", 8), ("tg", 32), ("pp512", 512)];
    let of_one = of_one.map(|(test, rows)| (Json::from(test), Some(rows)));
    assert_eq!(told, [of_one.clone(), of_one.clone(), of_one].concat());
    for one in &predicted {
        let speed = |name: &str| one[name].as_f64().unwrap();
        assert!(speed("predicted_ts_low") < speed("predicted_ts"), "{one}");
        assert!(speed("predicted_ts") < speed("predicted_ts_high"), "{one}");
        let shares = one["step"]["shares"].as_object().unwrap();
        let whole: f64 = shares.values().map(|share| share.as_f64().unwrap()).sum();
        assert!((whole - 1.0).abs() < 1e-6, "{one}");
    }
    // The kernels are those of the arithmetic.
    let has = |index: usize, kernel: &str| predicted[index]["step"]["kernels"].get(kernel).is_some();
    assert!(has(0, "matmul_q4_0") && has(4, "matmul_q4_0_a8") && has(8, "matmul_q4_0_a16"));
    // Vectors become integers where they are made.
    assert!(!has(4, "quantise_a8") && !has(8, "quantise_a16"));
    assert!(published.iter().all(|one| one["source"].is_string() && one.get("predicted_ts").is_none()));
}

#[test]
fn the_table_says_what_it_is() {
    let output = predict(&["--kv", "f16"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    for part in ["predicted t/s", "bound by", "Nothing here was measured on a card", "Keys and values: f16"] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert!(text.contains("These are other people's measurements"));
}

#[test]
fn options_of_measurements_are_refused() {
    for option in [["--slots", "8"], ["--activations", "a8"], ["--n-prompt", "64"]] {
        let output = predict(&option);
        assert_eq!(output.status.code(), Some(2), "{option:?}");
        assert!(output.stdout.is_empty());
    }
}
