//! The probe on the virtual device: its answers are those of its model, and change if another model is planted.
//!
//! Expected values here come from the model's definition (docs/arithmetic.md, `vgpu::config`), not from the probe's
//! fit.

use super::*;
use crate::{Inspect, OpenOptions, VirtualOptions, virtual_config};
use zrt_device::{Attachment, Device};
use zrt_vgpu::config::VramFill;
use zrt_vgpu::{Config, FaultInjection, Misreading, PlantedFault, VirtualGpu};

pub(super) const DEADLINE: Duration = Duration::from_secs(60);

pub(super) fn device_of(config: Config, injection: FaultInjection) -> Device {
    let gpu = VirtualGpu::with_injection(config, injection).unwrap();
    let attachment = Attachment::over(gpu).unwrap();
    crate::open_over(&attachment, &OpenOptions { self_test: false, ..OpenOptions::default() }).unwrap()
}

fn device() -> Device {
    device_of(Config::default(), FaultInjection::default())
}

fn question(name: &str) -> Question {
    *QUESTIONS.iter().find(|question| question.name == name).unwrap()
}

/// The answer to one question.
fn ask(device: &mut Device, name: &str) -> Answer {
    run_questions(device, &[question(name)], DEADLINE).pop().unwrap()
}

fn verdict(answer: &Answer) -> Verdict {
    answer.finding().unwrap_or_else(|| panic!("{answer:#?}")).verdict
}

fn number(answer: &Answer, name: &str) -> f64 {
    match answer.measure(name) {
        Some(Quantity::Number(value)) => *value,
        other => panic!("{name}: {other:?} in {answer:#?}"),
    }
}

fn text<'a>(answer: &'a Answer, name: &str) -> &'a str {
    match answer.measure(name) {
        Some(Quantity::Text(value)) => value,
        other => panic!("{name}: {other:?} in {answer:#?}"),
    }
}

#[test]
fn every_question_is_answered_in_time() {
    let mut device = device();
    let start = Instant::now();
    let answers = run(&mut device);
    assert_eq!(answers.len(), QUESTIONS.len());
    for (answer, question) in answers.iter().zip(&QUESTIONS) {
        let finding = answer.finding().unwrap_or_else(|| panic!("{answer:#?}"));
        assert!(!finding.summary.is_empty() && !finding.measures.is_empty(), "{answer:#?}");
        assert_eq!(finding.verdict == Verdict::Measured, question.model == "none", "{answer:#?}");
        assert_ne!(finding.verdict, Verdict::Contradicts, "{answer:#?}");
        println!("{:24} {:>8} µs  {}", answer.question, answer.duration_us, finding.summary);
    }
    assert!(start.elapsed() < Duration::from_secs(120), "{:?}", start.elapsed());
    device.close().unwrap();
}

#[test]
fn mode_is_what_rsrc1_says() {
    let answer = ask(&mut device(), "mode-at-launch");
    assert_eq!(text(&answer, "mode"), "0x000000f0");
    assert_eq!(number(&answer, "scalar_prefetch_en"), 0.0);
}

#[test]
fn a_chip_with_half_the_compute_units_shows() {
    let whole = ask(&mut device(), "placement");
    assert_eq!(verdict(&whole), Verdict::Confirms);
    assert_eq!([number(&whole, "compute_units"), number(&whole, "wgps")], [64.0, 32.0]);
    assert_eq!(number(&whole, "groups_on_one_unit_most"), 1.0);
    assert_eq!(number(&whole, "groups_that_saw_all"), 64.0);
    let config = Config { compute_units: 32, ..Config::default() };
    let half = ask(&mut device_of(config, FaultInjection::default()), "placement");
    assert_eq!(verdict(&half), Verdict::Contradicts);
    assert_eq!([number(&half, "compute_units"), number(&half, "wgps")], [32.0, 16.0]);
    // 40 KiB of LDS leave room for one group on a unit: the first 32 waited in vain.
    assert!(number(&half, "groups_that_saw_all") <= 32.0);
}

#[test]
fn approximations_are_as_far_off_as_the_device_is_built() {
    let biased = |bias| {
        let config = Config { approximation_bias: bias, ..Config::default() };
        ask(&mut device_of(config, FaultInjection::default()), "approximations")
    };
    let exact = biased(0);
    let above = biased(1);
    let below = biased(-1);
    for name in ["rcp", "rsq", "sqrt", "exp", "log", "sin", "cos"] {
        let share = |answer: &Answer, error: i32| {
            let counts: Vec<f64> =
                (-3..=3).map(|error| number(answer, &format!("{name}.error_{error}"))).collect();
            let all = counts.iter().sum::<f64>() + number(answer, &format!("{name}.error_beyond"));
            assert!(all > 200.0, "{name}: {all} inputs are no sample");
            counts[(error + 3) as usize] / all
        };
        assert!(share(&exact, 0) > 0.999, "{name}: {}", share(&exact, 0));
        // The bias moves bits: away from zero, so that negative results go down.
        assert!(share(&above, 1) + share(&above, -1) > 0.999, "{name}");
        assert!(share(&below, 1) + share(&below, -1) > 0.999, "{name}");
        assert_eq!(number(&exact, &format!("{name}.error_largest")), 0.0, "{name}");
    }
    assert_eq!([&exact, &above, &below].map(verdict), [Verdict::Confirms; 3]);
    assert!(number(&exact, "rcp.denormal_inputs_flushed") > 10.0);
    assert!(number(&exact, "rcp.denormal_results_flushed") > 10.0);
}

#[test]
fn caches_that_keep_lines_show() {
    // Without checking there are no caches; with it, a copy is kept until it is dropped.
    let flat = ask(&mut device(), "host-writes");
    assert_eq!(verdict(&flat), Verdict::Confirms);
    let ways = ["cu", "cu_after_inv_dev", "sys", "cu_after_inv_sys"];
    let seen =
        |answer: &Answer, kind: &str| ways.map(|way| text(answer, &format!("{kind}.{way}")).to_owned());
    for kind in ["host_shared", "host", "host_visible"] {
        assert_eq!(seen(&flat, kind), ["fresh"; 4], "{kind}");
    }
    let options = OpenOptions {
        virtual_device: VirtualOptions { check: true, ..VirtualOptions::default() },
        ..OpenOptions::default()
    };
    let cached = ask(&mut device_of(virtual_config(&options), FaultInjection::default()), "host-writes");
    assert_eq!(verdict(&cached), Verdict::Confirms);
    // docs/checking.md: the vector cache keeps all three until it is invalidated, and what the host writes to shared
    // VRAM asks for an invalidation of system scope, as system memory does; GL2 keeps lines of VRAM whatever a kernel
    // does.
    assert_eq!(seen(&cached, "host_shared"), ["stale", "stale", "fresh", "fresh"]);
    assert_eq!(seen(&cached, "host"), ["stale", "stale", "fresh", "fresh"]);
    assert_eq!(seen(&cached, "host_visible"), ["stale"; 4]);
}

#[test]
fn a_lazy_read_pointer_shows() {
    let prompt = ask(&mut device(), "read-pointer");
    assert_eq!(verdict(&prompt), Verdict::Confirms);
    assert_eq!(number(&prompt, "lag_after_wait_most"), 0.0);
    let injection = FaultInjection { read_pointer_block_dwords: Some(512), ..FaultInjection::default() };
    let lazy = ask(&mut device_of(Config::default(), injection), "read-pointer");
    assert_eq!(verdict(&lazy), Verdict::Contradicts);
    let lag = number(&lazy, "lag_after_wait_most");
    assert!((400.0..=512.0).contains(&lag), "{lag}");
}

/// A device that takes every launch for a NOP.
fn launches_nothing(planted: Option<PlantedFault>) -> Device {
    let misreads: Misreading = |opcode, _| {
        if *opcode == 0x15 {
            *opcode = 0x10;
        }
    };
    let config = Config { vram_fill: Some(VramFill::Pattern(0x7fc0_dead)), ..Config::default() };
    device_of(config, FaultInjection { planted, misreads: Some(misreads), ..FaultInjection::default() })
}

/// What memory held before is no answer.
#[test]
fn a_device_that_launches_nothing_is_told_by_each_question() {
    let mut device = launches_nothing(None);
    for (name, reason) in [
        ("mode-at-launch", "the kernel ended without storing MODE"),
        ("placement", "a wave ended without storing where it was"),
        ("host-writes", "the kernel gave up waiting for the host's word"),
        ("memory-latency", "the chase of 16_kib ended at byte 3735928559, not at its node"),
        ("copy-bandwidth", "the copy's last bytes are [ad, de, c0, 7f], not [34, 12, 5a, 5a]"),
        ("flag-hand-over", "the number reached 3735928559 of 1000: no room for both?"),
        ("barrier", "the kernel ended without storing its times"),
    ] {
        assert_eq!(ask(&mut device, name).outcome, Outcome::Failed(reason.into()), "{name}");
    }
    for (name, summary) in [
        ("integer-matrix", "8192 of 8192 sums differ from the host's"),
        ("matrix-sums", "wmma_f16: no model fits; wmma_bf16: no model fits; wmma_fp8: no model fits"),
        ("dot-sums", "dot2_f16: no model fits; dot2_bf16: no model fits; dot4_fp8: no model fits"),
    ] {
        let answer = ask(&mut device, name);
        let finding = answer.finding().unwrap();
        assert_eq!((finding.verdict, finding.summary.as_str()), (Verdict::Contradicts, summary));
    }
}

/// Neither the kernel's word nor its fence comes: the host's own wait for the word ends too.
#[test]
fn a_kernel_that_says_nothing_is_waited_for_until_the_deadline() {
    let mut device = launches_nothing(Some(PlantedFault::EndOfPipeNeverWrites));
    let questions = [question("host-writes"), question("barrier")];
    let answers = run_questions(&mut device, &questions, Duration::from_millis(50));
    let Outcome::Failed(reason) = &answers[0].outcome else { panic!("{:#?}", answers[0]) };
    assert!(reason.starts_with("the device did not finish within 5"), "{reason}");
    assert_eq!(answers[1].outcome, Outcome::NotRun("the device stopped in host-writes".into()));
    let labels: Vec<String> = device.allocations().into_iter().map(|(label, ..)| label).collect();
    assert!(labels.iter().any(|label| label == "probe lines"), "{labels:?}");
}

/// A recording is run once before it counts; the longer ones have 200 dispatches more.
#[test]
fn a_dispatch_costs_what_two_hundred_more_take() {
    let mut device = device();
    let before = device.counters().unwrap();
    let answer = ask(&mut device, "indirect-dispatch");
    let after = device.counters().unwrap();
    assert_eq!(after.dispatches - before.dispatches, 2 * 2 * (1 + 201));
    assert_eq!(after.submissions - before.submissions, 2 * 2 * 2);
    let names: Vec<&str> =
        answer.finding().unwrap().measures.iter().map(|measure| measure.name.as_str()).collect();
    assert_eq!(
        names,
        ["dispatch_plain", "submission_plain", "dispatch_with_barrier", "submission_with_barrier"]
    );
}

/// Hardware reference §5: RSRC1 has the blocks of 8 VGPRs less one in bits 5:0; RSRC2 the user SGPRs in 5:1, TGID_X_EN
/// in bit 7 and the LDS in blocks of 512 bytes from bit 15 on; RSRC3 (0x228) the lines of code, of 128 bytes, from bit
/// 4 on.
#[test]
fn kernels_ask_for_what_their_table_says() {
    let mut device = device();
    for (kernel, vgpr_blocks, rsrc2, lines) in [
        (kernels::EMPTY, 1, 0x84, 1),
        (kernels::COPY, 3, 0x84, 2),
        (kernels::ORDER, 1, 0x84, 3),
        (kernels::PLACEMENT, 24, 0x84 + (80 << 15), 2),
    ] {
        let loaded = kernel.load(&mut device).unwrap();
        let words = loaded.state().words();
        let after = |register: u32| words.iter().skip_while(move |word| **word != register).skip(1);
        let [rsrc1, second] = [0, 1].map(|at| *after(0x212).nth(at).unwrap());
        assert_eq!((rsrc1 & 0x3f, second), (vgpr_blocks - 1, rsrc2), "{}", kernel.name);
        assert_eq!(after(0x228).next(), Some(&(lines << 4)), "{}", kernel.name);
    }
}

#[test]
fn float_sums_are_those_of_the_documented_model() {
    let mut device = device();
    let tiles = ask(&mut device, "matrix-sums");
    let dots = ask(&mut device, "dot-sums");
    let ours = "1 at a time, ascending, exact, to nearest even, addend first, denormal sums kept, denormal factors kept";
    for (answer, name, expected) in [
        (&tiles, "wmma_f16", ours.to_owned()),
        (&tiles, "wmma_bf16", ours.to_owned()),
        (&tiles, "wmma_fp8", ours.to_owned()),
        (&dots, "dot2_bf16", ours.to_owned()),
        (&dots, "dot4_fp8", ours.to_owned()),
        (&dots, "dot2_f16", ours.replace("sums kept", "sums flushed")),
    ] {
        assert_eq!(text(answer, &format!("{name}.our_model_survives")), "yes", "{answer:#?}");
        assert_eq!(number(answer, &format!("{name}.survivors")), 1.0, "{name}: {answer:#?}");
        assert_eq!(text(answer, &format!("{name}.survivor_0")), expected, "{name}");
    }
}

#[test]
fn integers_and_transposing_loads_are_exact() {
    let mut device = device();
    let integers = ask(&mut device, "integer-matrix");
    assert_eq!(verdict(&integers), Verdict::Confirms, "{integers:#?}");
    let lanes = ask(&mut device, "transposing-loads");
    assert_eq!(verdict(&lanes), Verdict::Confirms, "{lanes:#?}");
    let map = |name: &str| -> Vec<usize> {
        text(&lanes, &format!("{name}.source_of_element"))
            .split(' ')
            .map(|word| word.parse().unwrap())
            .collect()
    };
    // Column 0 of the tile is the first element of lanes 0 to 15: lane 0 has rows 0..4 and 8..12, lane 16 the others.
    let wide = map("b128");
    assert_eq!(wide[..8], [0, 8, 16, 24, 64, 72, 80, 88]);
    assert_eq!(wide[128..136], [32, 40, 48, 56, 96, 104, 112, 120]);
    // Column 9 is the second element of lanes 16 to 31.
    assert_eq!(wide[72..76], [129, 137, 145, 153]);
    let narrow = map("b64");
    assert_eq!(narrow[..8], [0, 8, 16, 24, 32, 40, 48, 56]);
    assert_eq!(narrow[128..132], [64, 72, 80, 88]);
}

#[test]
fn the_clocks_are_those_of_the_virtual_board() {
    let mut device = device();
    let answer = ask(&mut device, "clocks");
    // The virtual board counts 23 shader cycles per tick; both clocks are read one after the other.
    for name in ["cycles_per_tick_first", "cycles_per_tick_last"] {
        assert!((number(&answer, name) / 23.0 - 1.0).abs() < 0.25, "{answer:#?}");
    }
    assert_eq!(text(&answer, "shader_clock_by_window").split(' ').count(), 8, "{answer:#?}");
    let clock = ask(&mut device, "reference-clock");
    assert!(number(&clock, "rate_least") < 100.0 && number(&clock, "rate_most") > 100.0, "{clock:#?}");
}

#[test]
fn a_hang_is_survived_and_what_was_not_asked_says_so() {
    fn hangs(bench: &mut Bench<'_>) -> Result<Finding, Stop> {
        let kernel = crate::selftest::kernels::ENDLESS.load(bench.device)?;
        let mut recorder = bench.device.recorder(1)?;
        recorder.dispatch(&kernel, zrt_mem::GpuVa(0), [1, 1, 1])?;
        let graph = recorder.finish()?;
        bench.page(4096, "page of the endless kernel")?;
        let (_, graph) = (bench.hold(kernel), bench.hold(graph));
        let ticket = bench.device.submit(&graph)?;
        bench.wait(ticket)?;
        unreachable!("the kernel does not end");
    }
    let endless = Question { name: "endless", asks: "nothing", model: "none", ask: hangs };
    let questions = [question("mode-at-launch"), endless, question("placement"), question("barrier")];
    let mut device = device();
    let start = Instant::now();
    let answers = run_questions(&mut device, &questions, Duration::from_secs(3));
    assert!(start.elapsed() < Duration::from_secs(30));
    assert!(answers[0].finding().is_some());
    let Outcome::Failed(reason) = &answers[1].outcome else { panic!("{:#?}", answers[1]) };
    assert!(reason.contains("the device did not finish within"), "{reason}");
    for answer in &answers[2..] {
        assert_eq!(answer.outcome, Outcome::NotRun("the device stopped in endless".into()));
    }
    // The first question's memory is gone; what the kernel may still touch stays until the queue is gone.
    let labels: Vec<String> = device.allocations().into_iter().map(|(label, ..)| label).collect();
    assert!(!labels.iter().any(|label| label == "probe mode"), "{labels:?}");
    assert!(labels.iter().any(|label| label == "page of the endless kernel"), "{labels:?}");
    assert!(labels.iter().any(|label| label.contains("endless") && !label.contains("page")), "{labels:?}");
}

/// The probe's kernels break no rule of the checking mode, except that host-writes reads stale copies on purpose.
#[test]
fn the_kernels_keep_the_rules() {
    let options = OpenOptions {
        virtual_device: VirtualOptions { check: true, ..VirtualOptions::default() },
        ..OpenOptions::default()
    };
    let mut device = device_of(virtual_config(&options), FaultInjection::default());
    let names = [
        "mode-at-launch",
        "placement",
        "transposing-loads",
        "integer-matrix",
        "dot-sums",
        "matrix-sums",
        "approximations",
        "flag-hand-over",
        "barrier",
    ];
    let questions = names.map(question);
    for answer in run_questions(&mut device, &questions, DEADLINE) {
        assert!(answer.finding().is_some(), "{answer:#?}");
        let findings = device.findings().unwrap();
        assert!(findings.is_empty(), "{}: {findings:#?}", answer.question);
    }
}
