//! Golden traces: the oracle and the virtual device against exact arithmetic computed elsewhere, and against each
//! other to the bit.
//!
//! `cargo xtask test` runs the first trace of most models, `--long` the others.

use zrt_bringup::OpenOptions;
use zrt_engine::executor::Executor;
use zrt_engine::generate::loss;
use zrt_engine::oracle::Oracle;
use zrt_engine::validate::validate;
use zrt_tests::{Trace, golden, virtual_executor};

/// Positions that hold every trace: at most 124 prompt tokens and 96 generated ones.
const CONTEXT: u32 = 256;
/// Agreement of the prompt's mean loss with exact arithmetic.
const LOSS_TOLERANCE: f64 = 1e-4;
/// Greedy tokens must agree where the best logit leads by this much.
const MARGIN: f64 = 0.002;
/// llama.cpp takes GELU from a table of f16. A trace of a model with GELU stands this far from exact arithmetic, and
/// the exact losses are those of `tests/data/reference.py`; with such a table it comes to the trace's losses within
/// 4e-5.
const GELU_TABLE_TOLERANCE: f64 = 2e-4;
/// Traces of exact f64 arithmetic state their smallest margin only; ours is about 1e-5 from it.
const REFERENCE_MARGIN: f64 = 0.0002;

/// Runs a trace on one executor; passes the mean loss, the greedy tokens and every step's logits to `seen`.
fn run<E: Executor>(
    executor: &mut E,
    trace: &Trace,
    tokens: usize,
    mut seen: impl FnMut(usize, &[f32]),
) -> (f64, Vec<u32>) {
    let prompt = &trace.prompt_token_ids;
    executor.begin(prompt).expect("the prompt fits");
    let mut logits = vec![0f32; executor.plan().config.vocabulary as usize];
    let (mut sum, mut greedy) = (0.0, Vec::new());
    for step in 0..prompt.len() + tokens - 1 {
        let choice = executor.step().expect("a step runs");
        executor.read_logits(&mut logits).expect("logits are readable");
        seen(step, &logits);
        match prompt.get(step + 1) {
            Some(next) => sum += loss(&logits, *next),
            None => greedy.push(choice),
        }
    }
    (sum / (prompt.len() - 1) as f64, greedy)
}

/// Traces of a model.
#[derive(Clone, Copy, PartialEq)]
enum Traces {
    First,
    Further,
}

/// `losses`: of exact arithmetic, where the trace's are not.
fn check(name: &str, tokens: usize, losses: &[f64], traces: Traces) {
    let Some((model, golden)) = golden(name) else { return };
    let mut oracle = Oracle::new(&model, CONTEXT).expect("the oracle takes the model");
    let mut device = virtual_executor(&model, CONTEXT, &OpenOptions::default());
    assert!(losses.is_empty() || losses.len() == golden.traces.len(), "{name}");
    assert!(golden.traces.len() > 1, "{name} has further traces");
    let chosen = golden.traces.iter().enumerate();
    for (number, trace) in chosen.filter(|(number, _)| (*number == 0) == (traces == Traces::First)) {
        let mut expected = Vec::new();
        let bits = |logits: &[f32]| logits.iter().map(|logit| logit.to_bits()).collect::<Vec<u32>>();
        let (oracle_loss, oracle_tokens) =
            run(&mut oracle, trace, tokens, |_, logits| expected.push(bits(logits)));
        let (device_loss, device_tokens) = run(&mut device, trace, tokens, |step, logits| {
            let parted =
                bits(logits).iter().zip(&expected[step]).position(|(found, expected)| found != expected);
            assert_eq!(
                parted, None,
                "{name}, {:?}, step {step}: device and oracle logits part",
                trace.prompt
            );
        });
        assert_eq!(device_loss.to_bits(), oracle_loss.to_bits(), "{name}, {:?}: losses part", trace.prompt);
        assert_eq!(device_tokens, oracle_tokens, "{name}, {:?}: tokens part", trace.prompt);
        let exact = losses.get(number).copied().unwrap_or_else(|| trace.exact_loss());
        assert!((exact - trace.exact_loss()).abs() < GELU_TABLE_TOLERANCE, "{name}: {exact} is another loss");
        assert!(
            (device_loss - exact).abs() < LOSS_TOLERANCE,
            "{name}, {:?}: loss {device_loss}, exact {exact}",
            trace.prompt
        );
        let margin = if trace.reference_f64.is_some() { REFERENCE_MARGIN } else { MARGIN };
        let sure = trace.exact_tokens(margin);
        let compared = sure.len().min(tokens);
        assert_eq!(device_tokens[..compared], sure[..compared], "{name}, {:?}: greedy tokens", trace.prompt);
    }
    if traces == Traces::Further {
        return;
    }
    let prompt = &golden.traces[0].prompt_token_ids;
    let agreement = validate(&mut oracle, &mut device, prompt, 4, |_| {});
    let agreement = agreement.unwrap_or_else(|difference| panic!("{name}: {difference}"));
    assert!(agreement.elements > 10_000, "{name}: validation compared {agreement:?}");
}

macro_rules! golden_models {
    ($($case:ident: $name:literal, $tokens:literal $(, $loss:literal)*;)*) => {
        mod first_trace {
            use super::*;
            $(#[test] fn $case() { check($name, $tokens, &[$($loss),*], Traces::First); })*
        }
        mod further_traces {
            use super::*;
            $(#[test] fn $case() { check($name, $tokens, &[$($loss),*], Traces::Further); })*
        }
    };
}

golden_models! {
    tales_qwen3_q4_0: "tales-qwen3-Q4_0", 64;
    tales_llama_q4_k_m: "tales-llama-Q4_K_M", 64;
    tales_qwen3_q8_0: "tales-qwen3-Q8_0", 64;
    tales_qwen3_q4_k_m: "tales-qwen3-Q4_K_M", 64;
    tales_llama_q8_0: "tales-llama-Q8_0", 64;
    tales_gemma3_q8_0: "tales-gemma3-Q8_0", 64, 0.532_261, 3.414_018, 2.490_485, 2.079_605, 2.654_455;
    stories_f32: "stories260K-F32", 96;
    stories_f16: "stories260K-F16", 96;
    stories_bf16: "stories260K-ff192-BF16", 32;
    stories_q8_0: "stories260K-ff192-Q8_0", 32;
    stories_q4_0: "stories260K-ff192-Q4_0", 32;
    stories_q4_k_m: "stories260K-w256-Q4_K_M", 16;
    stories_q6_k: "stories260K-w256-Q6_K", 16;
    stories_q4_1: "stories260K-ff192-Q4_1", 32;
    stories_q5_0: "stories260K-ff192-Q5_0", 32;
    stories_q5_1: "stories260K-ff192-Q5_1", 32;
    stories_iq4_nl: "stories260K-ff192-IQ4_NL", 32;
    stories_q2_k: "stories260K-w256-Q2_K", 16;
    stories_q3_k_m: "stories260K-w256-Q3_K_M", 16;
    stories_q5_k_m: "stories260K-w256-Q5_K_M", 16;
    stories_iq4_xs: "stories260K-w256-IQ4_XS", 16;
}
