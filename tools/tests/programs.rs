//! The programs as their users run them: arguments in, text or JSON and an exit code out.
//!
//! They run on the CPU here, which needs no device; the golden values are llama.cpp's (`models/golden`).

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use serde_json::Value as Json;
use std::path::Path;
use std::process::{Command, Output};

fn zrt(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_zrt")).args(arguments).env_remove("ZRT_DEVICE").output().unwrap()
}

fn json(output: &Output) -> Json {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Checks that a command fails with exit code 1 and one line that contains all of `parts`.
fn check_failure(arguments: &[&str], parts: &[&str]) {
    check_exit(1, arguments, parts);
}

/// The same with this exit code.
fn check_exit(code: i32, arguments: &[&str], parts: &[&str]) {
    let output = zrt(arguments);
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {text}");
    assert_eq!(text.trim_end().lines().count(), 1, "{text}");
    for part in parts {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    assert!(output.stdout.is_empty(), "{arguments:?} wrote to standard output");
}

fn golden() -> Json {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../models/golden/tales-qwen3-Q4_0.golden.json");
    let trace: Json = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    trace["traces"][0].clone()
}

#[test]
fn generate_gives_the_golden_tokens_and_loss() {
    let golden = golden();
    let prompt = golden["prompt"].as_str().unwrap();
    let result =
        json(&zrt(&["generate", "--device", "cpu", "--prompt", prompt, "--max-tokens", "9", "--json"]));
    assert_eq!(result["prompt_token_ids"], golden["prompt_token_ids"]);
    let expected: Vec<Json> = golden["greedy_token_ids"].as_array().unwrap()[..9].to_vec();
    assert_eq!(result["token_ids"].as_array().unwrap(), &expected);
    let text = result["text"].as_str().unwrap();
    assert!(!text.is_empty() && golden["greedy_text"].as_str().unwrap().starts_with(text), "{text:?}");
    let loss = result["prompt_nll_mean"].as_f64().unwrap();
    assert!((loss - golden["prompt_nll_mean"].as_f64().unwrap()).abs() < 1e-4, "{loss}");
    assert_eq!((&result["device"], &result["doorbells"]), (&Json::from("cpu"), &Json::from(0)));
}

/// Under a limit below the model's 4 MiB, and in a session where tokens are drawn; a limit that is too low names
/// itself.
#[test]
fn layers_in_host_memory_give_the_golden_tokens() {
    let golden = golden();
    let prompt = golden["prompt"].as_str().unwrap();
    let expected: Vec<Json> = golden["greedy_token_ids"].as_array().unwrap()[..3].to_vec();
    let generate = ["generate", "--device", "virtual", "--prompt", prompt, "-n", "3", "--json"];
    let drawn = ["--temperature", "1", "--top-k", "1"];
    for more in [&["--vram", "3MiB", "--load-threads", "3"][..], &["--vram", "auto"], &["--vram", "4MiB"]] {
        let sampling: &[&str] = if more.contains(&"4MiB") { &drawn } else { &[] };
        let result = json(&zrt(&[&generate[..], more, sampling].concat()));
        assert_eq!(result["token_ids"].as_array().unwrap(), &expected, "{more:?}");
    }
    let (as_text, too_low) = (&generate[..generate.len() - 1], &["--vram", "1KiB"][..]);
    check_failure(&[as_text, too_low].concat(), &["1024 B", "host memory"]);
    check_failure(&[as_text, too_low, &drawn].concat(), &["1024 B", "no session"]);
}

#[test]
fn generate_as_text_writes_prompt_and_continuation_only() {
    let output = zrt(&["generate", "--device", "cpu", "--prompt", "Once upon a time", "-n", "3"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Once upon a time") && text.len() > "Once upon a time\n".len(), "{text:?}");
    assert_eq!(text.lines().count(), 1, "{text:?}");
}

#[test]
fn the_device_can_be_set_by_the_environment() {
    let run = |device: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
        command.args(["generate", "--prompt", "A", "-n", "1", "--json"]).env("ZRT_DEVICE", device);
        command.output().unwrap()
    };
    assert_eq!(json(&run("cpu"))["device"], "cpu");
    let wrong = run("vulkan");
    assert!(!wrong.status.success());
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("vulkan"));
}

#[test]
fn failures_are_one_sentence_with_the_remedy() {
    let generate = |arguments: &[&'static str]| [&["generate", "--device", "cpu"], arguments].concat();
    let missing = generate(&["--model", "no/such.gguf", "--prompt", "A"]);
    check_failure(&missing, &["no/such.gguf", "--model"]);
    let no_model =
        generate(&["--model", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"), "--prompt", "A"]);
    check_failure(&no_model, &["Cargo.toml", "not a GGUF file"]);
    check_failure(&generate(&["--prompt", ""]), &["prompt is empty", "--prompt"]);
    check_failure(&generate(&["--prompt", "A", "-n", "2048"]), &["2049 tokens", "2048", "fewer"]);
    check_failure(&["validate", "--device", "cpu", "--prompt", "A"], &["the CPU itself", "--device virtual"]);
    check_failure(
        &["validate", "--device", "virtual", "--prompt", "A", "--activations", "f16"],
        &["no bits to compare", "--activations f32"],
    );
    check_failure(&["plan", "--context", "4096"], &["4096", "2048"]);
    check_failure(&["plan", "--context", "0"], &["--context is 0"]);
    check_failure(&["disasm", "no_such_kernel"], &["no_such_kernel", "lists the kernels"]);
}

#[test]
fn doctor_and_plan_write_json() {
    let report = json(&zrt(&["doctor", "--json"]));
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["subject"] == "/dev/kfd"));
    assert!(report["card_is_usable"].is_boolean());

    let plan = json(&zrt(&["plan", "--context", "32", "--json"]));
    assert_eq!(plan["context"], 32);
    let caches = plan["allocations"].as_array().unwrap().iter().filter(|one| one["name"] == "kv_pool");
    // Keys and values: 8 layers × 32 positions × 2 heads × 64 elements × 4 bytes.
    assert_eq!(
        caches.map(|one| one["bytes"].as_u64().unwrap()).collect::<Vec<_>>(),
        [2 * 8 * 32 * 2 * 64 * 4]
    );
    assert_eq!(plan["instructions"][0]["operation"].as_str().unwrap().split(' ').next(), Some("embed"));
}

#[test]
fn bench_writes_records_with_llama_bench_fields() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt-bench"));
    command.args(["--device", "cpu", "-p", "2", "-n", "1,3", "-r", "2", "--text-tokens", "1", "--json"]);
    let records = json(&command.output().unwrap());
    let records = records.as_array().unwrap();
    let tests: Vec<(u64, u64)> = records
        .iter()
        .map(|record| (record["n_prompt"].as_u64().unwrap(), record["n_gen"].as_u64().unwrap()))
        .collect();
    assert_eq!(tests, [(2, 0), (0, 1), (0, 3)]);
    // The names that llama-bench prints with `-o json` and that scripts read.
    let fields = [
        "build_commit",
        "build_number",
        "cpu_info",
        "gpu_info",
        "backends",
        "model_filename",
        "model_type",
        "model_size",
        "model_n_params",
        "n_batch",
        "n_ubatch",
        "n_threads",
        "type_k",
        "type_v",
        "n_gpu_layers",
        "n_prompt",
        "n_gen",
        "n_depth",
        "test_time",
        "avg_ns",
        "stddev_ns",
        "avg_ts",
        "stddev_ts",
        "samples_ns",
        "samples_ts",
    ];
    let ours = [
        "device",
        "doorbells",
        "packets",
        "dispatches",
        "submissions",
        "wave_instructions",
        "bytes_per_token",
    ];
    for field in fields.iter().chain(&ours) {
        assert!(records[0].get(field).is_some(), "{field}");
    }
    let record = &records[2];
    assert_eq!((&record["model_n_params"], &record["tokens"]), (&Json::from(7_345_408), &Json::from(6)));
    assert_eq!(record["samples_ns"].as_array().unwrap().len(), 2);
    let speed = 3e9 / record["samples_ns"][0].as_f64().unwrap();
    assert!((record["samples_ts"][0].as_f64().unwrap() / speed - 1.0).abs() < 1e-9);
}

#[test]
fn bench_as_text_shows_the_text_and_the_table() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt-bench"));
    command.args(["--device", "cpu", "-p", "1", "-n", "1", "-r", "1", "--text-tokens", "4"]);
    let text = String::from_utf8(command.output().unwrap().stdout).unwrap();
    assert!(text.starts_with("Once upon a time"), "{text}");
    assert!(
        text.contains("| qwen3 7.35 M Q4_0 |") && text.contains("pp1 |") && text.contains("tg1 |"),
        "{text}"
    );
}

#[test]
fn bench_of_sessions_counts_what_each_mode_submits() {
    let bench = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_zrt-bench"));
        command.args(["--scale", "0.01", "--groups", "4", "--device"]).args(arguments);
        command.output().unwrap()
    };
    let records = json(&bench(&["virtual", "--slots", "1,3", "--mode", "dispatch,graph,mega", "--json"]));
    let records = records.as_array().unwrap();
    let runs: Vec<(&str, u64)> = records
        .iter()
        .map(|record| (record["mode"].as_str().unwrap(), record["slots"].as_u64().unwrap()))
        .collect();
    assert_eq!(
        runs,
        [("dispatch", 1), ("graph", 1), ("mega", 1), ("dispatch", 3), ("graph", 3), ("mega", 3)]
    );
    for record in records {
        let count = |name: &str| record[name].as_u64().unwrap();
        // 256 × 0.01, rounded, in each slot: prompt and generated.
        assert_eq!((count("prompt_tokens"), count("tokens")), (3 * count("slots"), 3 * count("slots")));
        // The prompt is one step, which makes the first token. Requests may miss each other's first step.
        assert!(count("steps") >= 3 && count("steps") <= 12, "{record}");
        assert!(count("first_token_p50_ns") > 0 && count("inter_token_p50_ns") > 0, "{record}");
        assert!(count("first_token_p95_ns") >= count("first_token_p50_ns"));
        assert_eq!(
            count("weight_bytes_per_token"),
            count("step_weight_bytes") * count("steps") / count("tokens")
        );
        assert!(count("wave_instructions") > 0);
        match record["mode"].as_str().unwrap() {
            "mega" => assert_eq!((count("submissions"), count("doorbells")), (0, 0), "{record}"),
            "graph" => assert!(count("submissions") >= count("steps") && count("spins") == 0, "{record}"),
            _ => assert!(count("submissions") > 100 * count("steps"), "one for each task: {record}"),
        }
        let share = &record["spin_share_min"];
        assert_eq!(share.is_null(), record["mode"] != "mega");
        assert!(share.is_null() || (0.0..1.0).contains(&share.as_f64().unwrap()), "{record}");
    }

    let text = String::from_utf8(bench(&["virtual", "--mode", "graph", "--kv", "q8_0"]).stdout).unwrap();
    assert!(text.contains("| W1 × 1/100 | graph |") && text.contains("| q8_0 |"), "{text}");
    assert!(text.contains("it says nothing about a real one"), "{text}");
    let refused = bench(&["cpu"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("use virtual or kfd"));
}

#[test]
fn the_virtual_device_agrees_with_the_cpu_and_counts_its_work() {
    let prompt = ["--prompt", "Once upon", "-n", "2", "--json"];
    let verdict = json(&zrt(&[&["validate", "--device", "virtual"], &prompt[..]].concat()));
    assert_eq!(verdict["identical"], true, "{verdict}");
    assert!(verdict["elements"].as_u64().unwrap() > 0);

    let result = json(&zrt(&[&["generate", "--device", "virtual"], &prompt[..]].concat()));
    let on_cpu = json(&zrt(&[&["generate", "--device", "cpu"], &prompt[..]].concat()));
    assert_eq!(result["token_ids"], on_cpu["token_ids"]);
    assert_eq!(result["prompt_nll_mean"], on_cpu["prompt_nll_mean"]);
    // The first generated token comes with the prompt's last step.
    let steps = (result["prompt_token_ids"].as_array().unwrap().len() + 2 - 1) as u64;
    let instructions = json(&zrt(&["plan", "--json"]))["instructions"].as_array().unwrap().len() as u64;
    let count = |name: &str| result[name].as_u64().unwrap();
    assert_eq!((count("doorbells"), count("submissions")), (steps, steps), "one of each per token");
    // PLAN, and a boundary between two of the 8 layers.
    assert_eq!(count("dispatches"), steps * (instructions + 1 + 7));
    assert!(count("packets") > count("dispatches"));
    assert!(count("wave_instructions") > 0);
}

/// The bounds are three times what was measured: a mean divergence of 2.96e-4 with a8, of 2.39e-8 with a16.
#[test]
fn integer_activations_cost_little_and_sixteen_bits_almost_nothing() {
    let folder = zrt_needs::TemporaryFolder::new("perplexity");
    let text = folder.join("text");
    std::fs::write(
        &text,
        "Once upon a time there was a little girl who lived in a small house near the woods.",
    )
    .unwrap();
    let report = json(&zrt(&["perplexity", text.to_str().unwrap(), "--json"]));
    let runs = report["runs"].as_array().unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run["activations"].as_str().unwrap()).collect();
    assert_eq!(names, ["f32", "a8", "a16"]);
    let divergence = |run: usize| runs[run]["mean_divergence"].as_f64().unwrap();
    assert_eq!((divergence(0), runs[0]["same_best"].as_f64()), (0.0, Some(1.0)));
    assert!(divergence(1) > 0.0 && divergence(1) < 9e-4, "{report}");
    assert!(divergence(2) > 0.0 && divergence(2) < 7.2e-8, "{report}");
    check_failure(&["perplexity", "no/such.txt"], &["no/such.txt", "check the path"]);
    let refused = zrt(&["perplexity", text.to_str().unwrap(), "--activations", "f16"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("the CPU would compute f32"));
}

/// A saved base is what the same run compares with: nothing from itself, and the same from it as within one run. Of
/// another text it is refused.
#[test]
fn a_base_that_was_saved_is_what_later_runs_are_compared_with() {
    let folder = zrt_needs::TemporaryFolder::new("bases");
    let path = |name: &str| folder.join(name).display().to_string();
    let (text, other, base) = (path("text"), path("other"), path("base"));
    std::fs::write(&text, "The dog ran over the hill to the sea.").unwrap();
    std::fs::write(&other, "The cat slept.").unwrap();
    let saved = json(&zrt(&["perplexity", &text, "--json", "--activations", "a8", "--save-base", &base]));
    let compared = json(&zrt(&["perplexity", &text, "--json", "--activations", "f32,a8", "--base", &base]));
    assert_eq!(compared["base"].as_str(), Some(base.as_str()));
    assert_eq!(compared["runs"][0]["mean_divergence"].as_f64(), Some(0.0), "f32 is what was saved");
    assert_eq!(compared["runs"][1], saved["runs"][0], "a8 as within one run");
    check_failure(&["perplexity", &other, "--base", &base], &["another text"]);
    check_failure(&["perplexity", &text, "--base", &text], &["no base"]);
    // Nothing has run.
    let nowhere = path("no/base");
    check_exit(2, &["perplexity", &text, "--save-base", &nowhere], &["no/base", "cannot be written"]);
    assert_eq!(names(&folder), ["base", "other", "text"], "what was begun has its place");
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Sampling's options as their users give them: the CPU and the virtual device agree, a banned token does not come, and
/// each token has its log-probabilities.
#[test]
fn log_probabilities_and_biases_are_the_same_on_every_device() {
    let generate = |device: &str, more: &[&str]| {
        let fixed = ["generate", "--prompt", "The dog", "--max-tokens", "4", "--json", "--logprobs", "2"];
        let arguments: Vec<&str> =
            fixed.iter().copied().chain(["--device", device]).chain(more.iter().copied()).collect();
        json(&zrt(&arguments))
    };
    let free = generate("cpu", &[]);
    let banned = free["token_ids"][0].as_u64().unwrap();
    let bias = format!("{banned}=-inf");
    let drawn = [
        "--temperature",
        "0.9",
        "--min-p",
        "0.02",
        "--typical-p",
        "0.95",
        "--presence-penalty",
        "0.3",
        "--frequency-penalty",
        "0.2",
        "--seed",
        "5",
        "--logit-bias",
        &bias,
    ];
    for options in [&[][..], &drawn] {
        let runs = ["cpu", "virtual"].map(|device| generate(device, options));
        for field in ["token_ids", "text", "log_probabilities"] {
            assert_eq!(runs[0][field], runs[1][field], "{field} of {options:?}");
        }
        let tokens = runs[0]["token_ids"].as_array().unwrap();
        let told = runs[0]["log_probabilities"].as_array().unwrap();
        assert_eq!(told.len(), tokens.len());
        for (one, token) in told.iter().zip(tokens) {
            assert_eq!(&one["id"], token);
            assert_eq!(one["top_logprobs"].as_array().unwrap().len(), 2);
            assert!(one["logprob"].as_f64().unwrap() <= 0.0);
        }
        if !options.is_empty() {
            assert!(tokens.iter().all(|token| token.as_u64() != Some(banned)), "{banned} was banned");
        }
    }
    for device in ["cpu", "virtual"] {
        let output = zrt(&["generate", "--prompt", "a", "--device", device, "--logit-bias", "99999999=1"]);
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{device}: {text}");
        assert!(text.contains("99999999"), "{device}: {text}");
    }
}
