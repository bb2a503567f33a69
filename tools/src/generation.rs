//! Text from a model: what `zrt generate` does and the first part of `zrt-bench`.
//!
//! Contract: greedy. Text is written as soon as its characters are complete; nothing is written if no sink is given.

use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::progress::{Progress, Unit};
use crate::session::{Evidence, Session};
use serde::Serialize;
use std::io::Write;
use std::time::Instant;
use zrt_engine::generate::{GenerateOptions, Step, generate};
use zrt_engine::tokenizer::StreamDecoder;

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Prompt as text.
    pub prompt: &'a str,
    /// Maximum number of tokens to generate.
    pub max_tokens: usize,
    /// Continue after an end token.
    pub ignore_end: bool,
    /// Compute the prompt's loss.
    pub with_loss: bool,
}

/// The result; the fields of `zrt generate --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// The model's file.
    pub model_filename: String,
    /// The prompt as it was given.
    pub prompt: String,
    /// Its tokens.
    pub prompt_token_ids: Vec<u32>,
    /// Generated tokens.
    pub token_ids: Vec<u32>,
    /// Their text.
    pub text: String,
    /// Mean natural-log loss of the prompt's tokens after the first; null if not requested or there are none.
    pub prompt_nll_mean: Option<f64>,
    /// Time of the prompt in nanoseconds; reading logits back is included.
    pub prompt_ns: u64,
    /// Time of the generated tokens in nanoseconds. The first of them comes with the prompt's last step.
    pub generation_ns: u64,
    /// The device's own counts of this generation alone.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// Runs one request. `sink` receives the text as it is generated; an error in writing ends the generation.
pub fn run(
    loaded: &LoadedModel,
    session: &mut Session,
    request: &Request<'_>,
    prompt_token_ids: &[u32],
    mut sink: Option<&mut dyn Write>,
) -> Result<Outcome, ToolError> {
    let tokenizer = &loaded.tokenizer;
    let special = tokenizer.special_ids();
    let options = GenerateOptions {
        tokens_max: request.max_tokens,
        end_token: special.eos.or(special.eot).filter(|_| !request.ignore_end),
        with_loss: request.with_loss,
    };
    let before = session.evidence()?;
    let mut progress = Some(Progress::new("reading the prompt", prompt_token_ids.len() as u64, Unit::Tokens));
    let mut decoder = StreamDecoder::new();
    let mut text = String::new();
    let mut written = Ok(());
    let started = Instant::now();
    let mut prompt_done = started;
    let generation = generate(session, prompt_token_ids, options, |step| match step {
        Step::Prompt { done, total } => {
            if let Some(progress) = &progress {
                progress.set(done as u64);
            }
            if done == total {
                progress = None;
                prompt_done = Instant::now();
            }
        }
        Step::Token(token) => {
            let part = decoder.push(tokenizer, token);
            write_part(&mut sink, &part, &mut written);
            text.push_str(&part);
        }
    })?;
    let ended = Instant::now();
    let rest = decoder.finish();
    write_part(&mut sink, &rest, &mut written);
    text.push_str(&rest);
    written?;
    Ok(Outcome {
        model_filename: loaded.filename.clone(),
        prompt: request.prompt.to_owned(),
        prompt_token_ids: prompt_token_ids.to_vec(),
        token_ids: generation.tokens,
        text,
        prompt_nll_mean: generation.prompt_loss_mean,
        prompt_ns: nanoseconds(started, prompt_done),
        generation_ns: nanoseconds(prompt_done, ended),
        evidence: session.evidence()?.since(&before),
    })
}

/// Writes and flushes, unless an earlier write failed: then nothing more is tried.
fn write_part(sink: &mut Option<&mut dyn Write>, part: &str, written: &mut std::io::Result<()>) {
    if let Some(sink) = sink
        && written.is_ok()
        && !part.is_empty()
    {
        *written = sink.write_all(part.as_bytes()).and_then(|()| sink.flush());
    }
}

fn nanoseconds(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}
