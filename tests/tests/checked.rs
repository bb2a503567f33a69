//! Every kernel of the project in whole decode steps under the checking mode: no finding, and the oracle's bits, on
//! every schedule.
//!
//! `cargo xtask test` runs the first schedules of each, `--long` the others.

use std::ops::Range;
use std::path::Path;
use std::time::{Duration, Instant};
use zrt_bringup::{Inspect, OpenOptions, VirtualOptions, virtual_config};
use zrt_device::Attachment;
use zrt_engine::activations::Activations;
use zrt_engine::executor::Executor;
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_tests::mixed_model::mixed_model;
use zrt_tests::{load, repository_model};
use zrt_vgpu::VirtualGpu;

const CONTEXT: u32 = 64;
/// Schedules of each model.
const SEEDS: u64 = 32;
/// Of them those of every run.
const FEW_SEEDS: u64 = 3;
const PROMPT: [u32; 2] = [1, 261];

fn logits(executor: &mut dyn Executor, model: &Model, prompt: &[u32]) -> Vec<f32> {
    executor.begin(prompt).expect("fits");
    for _ in prompt {
        executor.step().expect("runs");
    }
    let mut logits = vec![0.0; model.config.vocabulary as usize];
    executor.read_logits(&mut logits).expect("readable");
    logits
}

/// A model on a device that checks, and that knows every allocation: an access outside of all of them is a finding.
fn checked_executor(model: &Model, activations: Activations, seed: u64) -> DeviceExecutor {
    let virtual_device =
        VirtualOptions { check: true, scheduler_seed: Some(seed), ..VirtualOptions::default() };
    let options = OpenOptions { virtual_device, ..OpenOptions::default() };
    let gpu = VirtualGpu::new(virtual_config(&options)).expect("powers up");
    let process = Attachment::over(gpu.clone()).expect("the board's one process");
    let device = zrt_bringup::open_over(&process, &options).expect("opens");
    let mut executor =
        DeviceExecutor::new(device, model, CONTEXT, activations, &mut |_, _| {}).expect("resident");
    for (name, va, len) in executor.device().allocations() {
        gpu.watch_region(&name, va.0, len.0);
    }
    executor
}

fn check(name: &str, activations: Activations, seeds: Range<u64>) {
    check_prompt(name, &load(&repository_model(&format!("{name}.gguf"))), activations, &PROMPT, seeds);
}

/// A decode step on the schedule of each seed.
fn check_prompt(name: &str, model: &Model, activations: Activations, prompt: &[u32], seeds: Range<u64>) {
    let mode = activations.name();
    let mut oracle =
        Oracle::new_with(model, CONTEXT, KvFormat::F32, activations).expect("the oracle takes it");
    let expected = logits(&mut oracle, model, prompt);
    let (mut instructions, mut elapsed) = (0, Duration::ZERO);
    for seed in seeds {
        let mut executor = checked_executor(model, activations, seed);
        let before = executor.counters().expect("readable").wave_instructions.unwrap_or(0);
        let started = Instant::now();
        let bits = logits(&mut executor, model, prompt);
        elapsed += started.elapsed();
        instructions += executor.counters().expect("readable").wave_instructions.unwrap_or(0) - before;
        let findings = executor.device().findings().expect("readable");
        assert!(
            findings.is_empty(),
            "{name} {mode}, seed {seed}: {} findings, first:\n{}",
            findings.len(),
            findings[0]
        );
        assert_eq!(bits, expected, "{name} {mode}, seed {seed}");
    }
    let rate = instructions as f64 / elapsed.as_secs_f64() / 1e6;
    eprintln!("{name} {mode}: {instructions} wave instructions checked at {rate:.1} M/s");
}

fn qwen(seeds: Range<u64>) {
    check("tales-qwen3-Q4_0", Activations::F32, seeds);
}

fn llama(seeds: Range<u64>) {
    check("tales-llama-Q4_K_M", Activations::F32, seeds);
}

/// Biases; gates, norms and windows of gemma3, to positions that its window of 20 leaves out.
fn other_architectures(seeds: Range<u64>) {
    let prompt: Vec<u32> = (0..24).map(|position| 5 * position % 64).collect();
    for (name, prompt) in [("random-qwen2", &prompt[..2]), ("random-gemma3", &prompt)] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("data/{name}.gguf"));
        check_prompt(name, &load(&path), Activations::F32, prompt, seeds.clone());
    }
}

fn qwen_with_a8(seeds: Range<u64>) {
    check("tales-qwen3-Q4_0", Activations::A8, seeds);
}

fn llama_with_a16(seeds: Range<u64>) {
    check("tales-llama-Q4_K_M", Activations::A16, seeds);
}

/// Every type of weight, with activations as they are and as integers.
fn every_format(seeds: Range<u64>) {
    for (first, activations) in [(4, Activations::F32), (8, Activations::A8), (13, Activations::A16)] {
        check_prompt("every format", &mixed_model(first), activations, &PROMPT, seeds.clone());
    }
}

/// The cases of a module, each with its steps on these schedules.
macro_rules! clean_on {
    ($module:ident, $seeds:expr) => {
        mod $module {
            #[test]
            fn a_decode_step_of_a_qwen_model_is_clean() {
                super::qwen($seeds);
            }

            #[test]
            fn a_decode_step_of_a_llama_model_is_clean() {
                super::llama($seeds);
            }

            #[test]
            fn steps_of_other_architectures_are_clean() {
                super::other_architectures($seeds);
            }

            #[test]
            fn a_decode_step_with_a8_is_clean() {
                super::qwen_with_a8($seeds);
            }

            #[test]
            fn a_decode_step_with_a16_is_clean() {
                super::llama_with_a16($seeds);
            }

            #[test]
            fn a_decode_step_of_every_format_is_clean() {
                super::every_format($seeds);
            }
        }
    };
}

clean_on!(few_schedules, 0..super::FEW_SEEDS);
clean_on!(further_schedules, super::FEW_SEEDS..super::SEEDS);
