//! The virtual device really computes: it runs what is in memory, and faults planted there are found and named.

use std::collections::BTreeMap;
use zrt_bringup::{OpenOptions, VirtualOptions};
use zrt_engine::activations::Activations;
use zrt_engine::executor::Executor;
use zrt_engine::executor::device::DeviceExecutor;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::model::Model;
use zrt_engine::oracle::Oracle;
use zrt_engine::validate::{ValidateError, validate};
use zrt_isa::{Instruction, Operand};
use zrt_mem::ByteLen;
use zrt_tests::{load, repository_model, virtual_executor, virtual_executor_with};

const CONTEXT: u32 = 64;
const PROMPT: [u32; 3] = [3764, 654, 261];

fn default_model() -> Model {
    load(&repository_model("tales-qwen3-Q4_0.gguf"))
}

/// Code of a kernel in device memory, as dwords.
fn code(executor: &mut DeviceExecutor, name: &str) -> Vec<u32> {
    let (kernel, device) = executor.kernel(name).expect("a kernel of the plan");
    let mut bytes = vec![0; kernel.code_len().0 as usize];
    device.download(kernel.code(), ByteLen(0), &mut bytes).expect("readable");
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn patch(executor: &mut DeviceExecutor, name: &str, dword: usize, value: u32) {
    let (kernel, device) = executor.kernel(name).expect("a kernel of the plan");
    device.upload(kernel.code(), ByteLen(dword as u64 * 4), &value.to_le_bytes()).expect("writable");
}

/// Dword index and new value for each constant that can be changed: the lowest bit of a 32-bit literal's mantissa
/// moved by a lot, or an inline integer constant made another. Found by decoding, whatever the kernel is.
fn constants(code: &[u32]) -> Vec<(usize, u32)> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < code.len() {
        let Ok(instruction) = zrt_isa::decode(&code[at..]) else { break };
        let length = usize::from(instruction.dword_count);
        if let Some(patched) = changed_constant(&instruction, &code[at..at + length]) {
            found.push((at + patched.0, patched.1));
        }
        at += length;
    }
    found
}

fn changed_constant(instruction: &Instruction, words: &[u32]) -> Option<(usize, u32)> {
    let literal = instruction.sources.iter().find_map(|source| match source {
        Operand::Literal(value) => Some(*value),
        _ => None,
    })?;
    let last = words.len() - 1;
    (words[last] == literal).then_some((last, literal ^ 0x0041_0101))
}

#[test]
fn a_changed_instruction_word_changes_the_output() {
    let model = default_model();
    let mut device = virtual_executor(&model, CONTEXT, &OpenOptions::default());
    let mut oracle = Oracle::new(&model, CONTEXT).expect("the oracle takes the model");
    let logits_of = |executor: &mut DeviceExecutor| {
        executor.begin(&PROMPT).expect("fits");
        executor.step().expect("runs");
        let mut logits = vec![0f32; model.config.vocabulary as usize];
        executor.read_logits(&mut logits).expect("readable");
        logits
    };
    oracle.begin(&PROMPT).expect("fits");
    oracle.step().expect("runs");
    let mut expected = vec![0f32; model.config.vocabulary as usize];
    oracle.read_logits(&mut expected).expect("readable");
    assert_eq!(logits_of(&mut device), expected);

    let words = code(&mut device, "swiglu");
    let (dword, value) = *constants(&words).first().expect("the exponential has constants");
    patch(&mut device, "swiglu", dword, value);
    assert_ne!(logits_of(&mut device), expected, "the changed word was not executed");
    patch(&mut device, "swiglu", dword, words[dword]);
    assert_eq!(logits_of(&mut device), expected, "the restored word was not executed");
}

/// Several constants of a body are harmless alone (a guard for long rows, a padding lane), so of all changes to a body
/// at least one must be found, and every one that is found must be blamed on this body's operation. `is_of` chooses
/// among the operations.
fn check_wrong_constants(name: &str, activations: Activations, is_of: fn(&str) -> bool) {
    let model = load(&repository_model(name));
    let mut oracle =
        Oracle::new_with(&model, CONTEXT, KvFormat::F32, activations).expect("the oracle takes the model");
    let open = || virtual_executor_with(&model, CONTEXT, activations, &OpenOptions::default());
    let mut device = open();
    let operations: BTreeMap<&'static str, &'static str> = device
        .kernels_of_instructions()
        .map(|(kernel, index)| (kernel, device.plan().instructions[index].node.operation.name()))
        .collect();
    assert!(operations.values().any(|operation| is_of(operation)), "{operations:?}");
    for (kernel, operation) in operations.into_iter().filter(|(_, operation)| is_of(operation)) {
        let words = code(&mut device, kernel);
        let mut blamed = Vec::new();
        for (dword, value) in mutations(&words) {
            patch(&mut device, kernel, dword, value);
            let outcome = validate(&mut oracle, &mut device, &PROMPT[..2], 1, |_| {});
            // A store moved past the end of its buffer is a fault, which names the kernel; the device is lost then.
            if let Err(ValidateError::Executor(fault)) = &outcome
                && fault.to_string().contains(&format!("kernel {kernel}+"))
            {
                blamed.push((operation, fault.to_string()));
                device = open();
                continue;
            }
            patch(&mut device, kernel, dword, words[dword]);
            match outcome {
                Err(ValidateError::Difference(difference)) => {
                    blamed.push((difference.instruction.node.operation.name(), difference.to_string()));
                }
                Err(other) => panic!("{name}: {kernel} with a wrong constant did not finish: {other}"),
                Ok(_) => {}
            }
        }
        assert!(!blamed.is_empty(), "{name}: no wrong constant in {kernel} was found");
        assert!(blamed.iter().all(|one| one.0 == operation), "{name}: {kernel} was blamed on {blamed:#?}");
    }
    let sound = validate(&mut oracle, &mut device, &PROMPT[..2], 1, |_| {});
    assert!(sound.is_ok(), "{name}: restored kernels still differ: {sound:?}");
}

/// With integers, bodies go on to the end of their code.
#[test]
fn a_wrong_constant_in_any_body_is_found_and_named() {
    check_wrong_constants("tales-llama-Q4_K_M.gguf", Activations::A8, |_| true);
}

#[test]
fn a_wrong_constant_in_a_product_of_floats_is_found_and_named() {
    check_wrong_constants("tales-qwen3-Q4_0.gguf", Activations::F32, |operation| operation == "matmul");
}

/// `cargo xtask test` leaves this to `--long`.
#[test]
fn a_wrong_constant_in_any_body_beside_floats_is_found_and_named() {
    check_wrong_constants("tales-qwen3-Q4_0.gguf", Activations::F32, |_| true);
}

/// Wrong constants in a body, the first and the last few of each kind: an f32 literal, and the offset of a store (moved
/// by one element). SAMPLE begins with what only few requests ask of it.
fn mutations(code: &[u32]) -> Vec<(usize, u32)> {
    const EACH_MAX: usize = 4;
    /// VGLOBAL's signed 24-bit offset starts at bit 72 (instruction set reference §1).
    const ONE_ELEMENT: u32 = 4 << 8;
    let (mut literals, mut offsets) = (Vec::new(), Vec::new());
    let mut at = 0;
    while at < code.len() {
        let Ok(instruction) = zrt_isa::decode(&code[at..]) else { break };
        let words = &code[at..at + usize::from(instruction.dword_count)];
        let mnemonic = instruction.opcode.mnemonic();
        if mnemonic.starts_with("v_") && mnemonic.ends_with("_f32") {
            literals
                .extend(changed_constant(&instruction, words).map(|(offset, value)| (at + offset, value)));
        }
        if mnemonic.starts_with("global_store_") {
            offsets.push((at + 2, words[2] ^ ONE_ELEMENT));
        }
        at += words.len();
    }
    for all in [&mut literals, &mut offsets] {
        let last = all.len().saturating_sub(EACH_MAX).max(EACH_MAX.min(all.len()));
        all.drain(EACH_MAX.min(all.len())..last);
    }
    literals.into_iter().chain(offsets).collect()
}

#[test]
fn results_do_not_depend_on_the_last_bit_of_approximate_instructions() {
    let model = default_model();
    let mut all = Vec::new();
    for approximation_bias in [-1, 0, 1] {
        let virtual_device = VirtualOptions { approximation_bias, ..VirtualOptions::default() };
        let options = OpenOptions { virtual_device, ..OpenOptions::default() };
        let mut device = virtual_executor(&model, CONTEXT, &options);
        device.begin(&PROMPT).expect("fits");
        let mut logits = vec![0f32; model.config.vocabulary as usize];
        for _ in 0..6 {
            device.step().expect("runs");
        }
        device.read_logits(&mut logits).expect("readable");
        all.push(logits.iter().map(|logit| logit.to_bits()).collect::<Vec<u32>>());
    }
    assert!(all[0] == all[1] && all[1] == all[2]);
}

#[test]
fn seeded_schedules_and_the_small_bar_give_the_same_bits() {
    let model = default_model();
    let variants = [
        VirtualOptions::default(),
        VirtualOptions { scheduler_seed: Some(7), ..VirtualOptions::default() },
        VirtualOptions { scheduler_seed: Some(8), ..VirtualOptions::default() },
        VirtualOptions { small_bar: true, ..VirtualOptions::default() },
        VirtualOptions { threads: Some(1), ..VirtualOptions::default() },
    ];
    let mut all = Vec::new();
    for virtual_device in variants {
        let mut device =
            virtual_executor(&model, CONTEXT, &OpenOptions { virtual_device, ..OpenOptions::default() });
        device.begin(&PROMPT).expect("fits");
        let choices: Vec<u32> = (0..8).map(|_| device.step().expect("runs")).collect();
        let mut logits = vec![0f32; model.config.vocabulary as usize];
        device.read_logits(&mut logits).expect("readable");
        all.push((choices, logits.iter().map(|logit| logit.to_bits()).collect::<Vec<u32>>()));
    }
    assert!(all.iter().all(|one| *one == all[0]));
}
