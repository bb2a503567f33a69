//! What runs are made, and the table of made-up ones.

use super::*;
use crate::table::cells;

#[test]
fn benchmark_percentiles_are_nearest_ranks() {
    // The usual example of the definition: ranks 1, 2, 3 and 5 of five.
    let samples = [15, 20, 35, 40, 50];
    assert_eq!([5, 30, 50, 100].map(|percent| percentile(&samples, percent)), [15, 20, 35, 50]);
    assert_eq!(percentile(&[], 50), 0);
    assert_eq!(percentile(&[7], 95), 7);
}

#[test]
fn benchmark_modes_default_to_all_for_one_slot_and_to_mega_for_more() {
    let all = [(Mode::Dispatch, 1), (Mode::Graph, 1), (Mode::Mega, 1)];
    assert_eq!(runs(&[], &[]), all);
    assert_eq!(runs(&[], &[1, 8]), [&all[..], &[(Mode::Mega, 8)]].concat());
    assert_eq!(runs(&[Mode::Graph], &[1, 8]), [(Mode::Graph, 1), (Mode::Graph, 8)]);
}

#[test]
fn benchmark_waiting_loops_have_the_lengths_that_are_divided_by() {
    let source = include_str!("../../../asm/gfx1201/mega.s");
    // Instructions of a loop: its lines, less labels, plus the branch back.
    let length = |from: &str, back: &str| -> u64 {
        let body = &source[source.find(from).expect("the loop begins") + from.len()..];
        let body = &body[..body.find(back).expect("the loop ends")];
        let is_instruction = |line: &&str| !line.is_empty() && !line.starts_with(['.', '/']);
        body.lines().map(str::trim).filter(is_instruction).count() as u64 + 1
    };
    let poll = length(".Llook\\@:", "s_branch .Llook\\@");
    let step = length(".Llook_step:", "s_branch .Llook_step");
    assert_eq!([poll, step], LOOK_INSTRUCTIONS);
}

#[test]
fn benchmark_scales_are_written_as_fractions() {
    let scales = [1.0 / 16.0, 1.0 / 3.0, 1.0, 0.3, 0.333_333_333_3];
    assert_eq!(scales.map(scale_text), ["1/16", "1/3", "1", "0.3", "0.3333333333"]);
}

/// A kernel that beats is looked at no further; one that never does is given up.
#[test]
fn benchmarks_begin_when_the_megakernel_looks_for_work() {
    let looks = |first_beat: usize, at_most| {
        let mut looks = 0;
        let mut heartbeat = || {
            looks += 1;
            Ok(u32::from(looks >= first_beat))
        };
        await_start(&mut heartbeat, at_most).unwrap();
        looks
    };
    assert_eq!([1, 2, 4].map(|first_beat| looks(first_beat, START_DEADLINE)), [1, 2, 4]);
    assert_eq!(looks(4, Duration::ZERO), 1);
    let failed = await_start(|| Err(ToolError::NoToken), START_DEADLINE);
    assert!(matches!(failed, Err(ToolError::NoToken)), "{failed:?}");
}

#[test]
fn polls_pause_only_where_the_device_needs_the_hosts_processor() {
    let pauses = [(0, true), (1, true), (0, false), (1, false)];
    let expected = [Some(VIRTUAL_POLL_EVERY), None, None, None];
    assert_eq!(pauses.map(|(events, is_virtual)| pause_after(events, is_virtual)), expected);
}

#[test]
fn benchmark_of_a_session_on_the_cpu_is_refused() {
    let loaded = LoadedModel::open(None).unwrap();
    let error = overview(&loaded, DeviceChoice::Cpu, Activations::F32, false, MemoryOption::default())
        .map(|_| ())
        .expect_err("no session runs there");
    assert!(crate::error::sentence(&error).contains("virtual or kfd"), "{error}");
}

fn record(is_virtual: bool, workload: &'static str) -> SessionRecord {
    SessionRecord {
        build_commit: "",
        model_filename: String::new(),
        model_type: String::new(),
        model_size: 0,
        model_n_params: 0,
        type_k: "f16",
        type_v: "f16",
        activations: "a8",
        test_time: String::new(),
        avg_ns: 0,
        avg_ts: 12.345,
        zrt_version: "",
        device: "card".to_owned(),
        is_virtual,
        mode: "mega",
        slots: 8,
        groups: 128,
        chunk_rows: 64,
        workload,
        scale: 0.0625,
        requests: 8,
        prompt_tokens: 100,
        tokens: 40,
        steps: 9,
        first_token_p50_ns: 1_000_000,
        first_token_p95_ns: 2_500_000,
        inter_token_p50_ns: 300_000,
        inter_token_p95_ns: 400_000,
        submissions: 10,
        packets: 80,
        doorbells: 30,
        step_weight_bytes: 0,
        step_host_weight_bytes: 0,
        weight_bytes_per_token: 2048,
        wave_instructions: Some(60_000),
        spins: 0,
        spin_share_max: Some(0.125),
        spin_share_min: None,
    }
}

/// Counts are for each generated token; what the device does not count is a stroke.
#[test]
fn benchmark_tables_have_a_row_for_each_run() {
    let silent =
        SessionRecord { wave_instructions: None, spin_share_max: None, tokens: 0, ..record(false, "W1") };
    let found = table(&[record(false, "W1"), silent]);
    let rows = cells(&found);
    let headings = [
        "device",
        "work",
        "mode",
        "slots",
        "groups",
        "kv",
        "tokens",
        "t/s",
        "first p50/p95 ms",
        "next p50/p95 ms",
        "submissions/t",
        "packets/t",
        "doorbells/t",
        "steps",
        "weights/t",
        "waves/t",
        "spin",
    ];
    assert_eq!(rows[0], headings);
    let both = ["card", "W1 × 1/16", "mega", "8", "128", "f16"];
    let times = ["12.35", "1.0 / 2.5", "0.3 / 0.4"];
    let counted = ["0.25", "2.00", "0.75", "9", "2.00 KiB", "1.50 K", "12.5 %"];
    assert_eq!(rows[2], [&both[..], &["100 + 40"], &times, &counted].concat());
    let silent = ["10.00", "80.00", "30.00", "9", "2.00 KiB", "-", "-"];
    assert_eq!(rows[3], [&both[..], &["100 + 0"], &times, &silent].concat());
    assert!(
        found.contains("\ntokens: of all prompts + generated, of all requests; what is per token"),
        "{found}"
    );
    assert!(!found.contains("virtual:") && !found.contains("W3:"), "{found}");
    assert!(
        table(&[record(false, "W1"), record(true, "W1")]).contains("virtual: the speed of a simulated card")
    );
    assert!(table(&[record(false, "W1"), record(false, "W3")]).contains("W3: this version computes"));
}

/// The longest request, prompt and answer; a session has at least two positions.
#[test]
fn benchmark_contexts_hold_the_longest_request() {
    let loaded = LoadedModel::open(None).unwrap();
    let of = |lengths: &[(usize, u32)]| {
        let request = |(prompt, tokens_max): &(usize, u32)| Sequence {
            prompt: vec![1; *prompt],
            tokens_max: *tokens_max,
        };
        context(&loaded, &lengths.iter().map(request).collect::<Vec<_>>()).ok()
    };
    let trained = loaded.model.config.context;
    assert_eq!([of(&[]), of(&[(1, 0)]), of(&[(3, 4), (5, 1), (1, 2)])], [Some(2), Some(2), Some(7)]);
    assert_eq!([of(&[(1, trained - 1)]), of(&[(1, trained)])], [Some(trained), None]);
}

/// The first token is waited for from the submission on, each further one from the one before.
#[test]
fn latencies_are_those_of_each_request() {
    let (one, other) = ("one", "other");
    let start = Instant::now();
    let at = |ns| start + Duration::from_nanos(ns);
    let mut latencies = Latencies::new(2, 4);
    latencies.submitted(one, at(0));
    latencies.submitted(other, at(10));
    for (request, ns) in [(other, 30), (one, 100), (one, 107), (other, 40), (one, 107)] {
        latencies.token(request, at(ns));
    }
    // Of a request that was not submitted here.
    latencies.token("third", at(9));
    assert_eq!(latencies.tokens(), 5);
    let times = latencies.times(Duration::from_nanos(200));
    assert_eq!(times.elapsed, Duration::from_nanos(200));
    assert_eq!((times.first_token, times.inter_token), (vec![20, 100], vec![0, 7, 10]));
}

/// A weight is read once in a step; a poll in vain takes 9 or 13 instructions; the host submits each step of a graph.
#[test]
fn benchmark_records_count_what_a_session_did() {
    let loaded = LoadedModel::open(None).unwrap();
    let choices = Choices {
        device: DeviceChoice::Virtual,
        workload: Workload::W1,
        // 256 × 0.01, rounded: prompts of three tokens and three to generate.
        scale: Some(0.01),
        kv_format: KvFormat::F16,
        activations: Activations::A8,
        groups: Some(2),
        chunk_rows: Some(4),
        memory: MemoryOption::default(),
    };
    let records = run_all(&loaded, &choices, &[(Mode::Mega, 2), (Mode::Graph, 1)]).unwrap();
    for (one, (mode, slots)) in records.iter().zip([("mega", 2), ("graph", 1)]) {
        assert_eq!((one.mode, one.slots, one.groups, one.chunk_rows), (mode, slots, 2, 4));
        let tokens = 3 * u64::from(slots);
        assert_eq!((one.requests, one.prompt_tokens, one.tokens), (slots.into(), tokens, tokens));
        assert_eq!((one.type_k, one.type_v, one.activations, one.scale), ("f16", "f16", "a8", 0.01));
        assert!(one.is_virtual && one.device.contains("Virtual R9700"), "{one:?}");
        // One step for a prompt of three, then one for each further token.
        assert!(one.steps >= 3, "{one:?}");
        assert_eq!(one.weight_bytes_per_token, one.step_weight_bytes * one.steps / tokens);
        assert_eq!((one.step_weight_bytes > 0, one.step_host_weight_bytes), (true, 0));
        let speed = tokens as f64 / (one.avg_ns as f64 / 1e9);
        assert!((one.avg_ts / speed - 1.0).abs() < 1e-3, "{one:?}");
        assert!(
            one.first_token_p50_ns <= one.first_token_p95_ns && one.first_token_p95_ns <= one.avg_ns,
            "{one:?}"
        );
        // Tokens that one poll brings have no time between them.
        assert!(one.inter_token_p50_ns <= one.inter_token_p95_ns, "{one:?}");
    }
    let (mega, graph) = (&records[0], &records[1]);
    let share = |look: u64| (mega.spins * look) as f64 / mega.wave_instructions.unwrap() as f64;
    assert_eq!((mega.spin_share_min, mega.spin_share_max), (Some(share(9)), Some(share(13))));
    assert_eq!((mega.submissions, graph.spin_share_min, graph.spin_share_max), (0, None, None));
    assert!(graph.submissions >= 3 && graph.packets >= graph.submissions, "{graph:?}");
    assert!(graph.submissions <= graph.steps + 1 && graph.doorbells > 0, "{graph:?}");
}
