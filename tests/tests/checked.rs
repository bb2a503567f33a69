//! Every kernel of the project in whole decode steps under the checking mode: no finding, and the oracle's bits, on
//! every schedule.

use zrt_device::{OpenOptions, VirtualOptions};
use zrt_engine::executor::Executor;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_tests::{find, load, virtual_executor};

const CONTEXT: u32 = 64;
/// Schedules of each model.
const SEEDS: u64 = 32;
const PROMPT: [u32; 2] = [1, 261];

fn logits(executor: &mut dyn Executor, model: &Model) -> Vec<f32> {
    executor.begin(&PROMPT).expect("fits");
    for _ in &PROMPT {
        executor.step().expect("runs");
    }
    let mut logits = vec![0.0; model.config.vocabulary as usize];
    executor.read_logits(&mut logits).expect("readable");
    logits
}

/// A decode step on [`SEEDS`] schedules.
fn check(name: &str) {
    let Some(path) = find(&format!("{name}.gguf")) else { return };
    let model = load(&path);
    let mut oracle = Oracle::new(&model, CONTEXT).expect("the oracle takes the model");
    let expected = logits(&mut oracle, &model);
    for seed in 0..SEEDS {
        let virtual_device =
            VirtualOptions { check: true, scheduler_seed: Some(seed), ..VirtualOptions::default() };
        let options = OpenOptions { virtual_device, ..OpenOptions::default() };
        let mut executor = virtual_executor(&model, CONTEXT, &options);
        let bits = logits(&mut executor, &model);
        let findings = executor.device().findings().expect("readable");
        assert!(
            findings.is_empty(),
            "{name}, seed {seed}: {} findings, first:\n{}",
            findings.len(),
            findings[0]
        );
        assert_eq!(bits, expected, "{name}, seed {seed}");
    }
}

#[test]
fn a_decode_step_of_a_qwen_model_is_clean_on_every_schedule() {
    check("tales-qwen3-Q4_0");
}

#[test]
fn a_decode_step_of_a_llama_model_is_clean_on_every_schedule() {
    check("tales-llama-Q4_K_M");
}
