//! Text from a model: what `zrt generate` does and the first part of `zrt-bench`.
//!
//! Contract: text is written as soon as its characters are complete and no stop text can begin in it; nothing is
//! written if no sink is given. The user's wish to stop, and a sink that cannot be written to, end the generation
//! after the current token; what was generated until then is kept.

use crate::answer::{AnswerOptions, Answerer};
use crate::error::ToolError;
use crate::interrupt::Interrupt;
use crate::loaded_model::LoadedModel;
use crate::log_probabilities::GeneratedLogProbability;
use crate::progress::{Progress, Unit};
use crate::session::{Evidence, Session};
use serde::Serialize;
use std::io::Write;
use std::ops::ControlFlow;
use std::time::Instant;
use zrt_engine::chat::StopTexts;
use zrt_engine::generate::{GenerateOptions, Step, generate};
use zrt_engine::sampling::SamplingOptions;
use zrt_engine::tokenizer::{StreamDecoder, Tokenizer};

/// What to generate.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Prompt as text.
    pub prompt: &'a str,
    /// Its tokens.
    pub prompt_token_ids: &'a [u32],
    /// Maximum number of tokens to generate.
    pub max_tokens: usize,
    /// Tokens that end the text.
    pub ends: &'a [u32],
    /// Texts that end the text.
    pub stops: &'a StopTexts,
    /// Compute the prompt's loss.
    pub with_loss: bool,
}

/// Why a text ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// A token or a text that ends texts.
    Stop,
    /// It has as many tokens as were asked for, or the context is full.
    Length,
    /// The user stopped it.
    Interrupted,
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
    /// Their text, up to a stop text.
    pub text: String,
    /// Why it ended.
    pub finish_reason: Ending,
    /// Mean natural-log loss of the prompt's tokens after the first; null if not requested, if there are none, or if
    /// any option of sampling is used.
    pub prompt_nll_mean: Option<f64>,
    /// Of each generated token, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_probabilities: Option<Vec<GeneratedLogProbability>>,
    /// Time of the prompt in nanoseconds; reading logits back is included.
    pub prompt_ns: u64,
    /// Time of the generated tokens in nanoseconds. The first of them comes with the prompt's last step.
    pub generation_ns: u64,
    /// The device's own counts of this generation alone.
    #[serde(flatten)]
    pub evidence: Evidence,
}

/// Tokens on their way to text.
pub struct TextWriter<'a, 's> {
    tokenizer: &'a Tokenizer,
    sink: Option<&'s mut dyn Write>,
    ends: &'a [u32],
    stops: StopTexts,
    decoder: StreamDecoder,
    token_ids: Vec<u32>,
    text: String,
    written: std::io::Result<()>,
}

/// What was written.
pub struct WrittenText {
    /// Tokens, the one that ended the text included.
    pub token_ids: Vec<u32>,
    /// Their text, up to a stop text.
    pub text: String,
    /// True if a token or a text ended it.
    pub is_ended: bool,
}

impl<'a, 's> TextWriter<'a, 's> {
    /// A writer at the start of a text.
    pub fn new(
        tokenizer: &'a Tokenizer,
        sink: Option<&'s mut dyn Write>,
        ends: &'a [u32],
        stops: &StopTexts,
    ) -> TextWriter<'a, 's> {
        TextWriter {
            tokenizer,
            sink,
            ends,
            stops: stops.clone(),
            decoder: StreamDecoder::new(),
            token_ids: Vec::new(),
            text: String::new(),
            written: Ok(()),
        }
    }

    /// Takes a token; breaks off after a stop text, or if the sink cannot be written to.
    pub fn push(&mut self, token: u32) -> ControlFlow<()> {
        self.token_ids.push(token);
        if !self.ends.contains(&token) {
            let part = self.decoder.push(self.tokenizer, token);
            let part = self.stops.push(&part);
            self.write(&part);
        }
        match self.stops.is_found() || self.written.is_err() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Ends the text.
    ///
    /// # Errors
    /// What went wrong in writing.
    pub fn finish(mut self) -> std::io::Result<WrittenText> {
        let rest = self.decoder.finish();
        let rest = self.stops.push(&rest) + &self.stops.finish();
        self.write(&rest);
        self.written?;
        let is_ended =
            self.stops.is_found() || self.token_ids.last().is_some_and(|last| self.ends.contains(last));
        Ok(WrittenText { token_ids: self.token_ids, text: self.text, is_ended })
    }

    /// Writes and flushes, unless an earlier write failed: then nothing more is tried.
    fn write(&mut self, part: &str) {
        self.text.push_str(part);
        if let Some(sink) = &mut self.sink
            && self.written.is_ok()
            && !part.is_empty()
        {
            self.written = sink.write_all(part.as_bytes()).and_then(|()| sink.flush());
        }
    }
}

/// Runs one greedy request. `sink` receives the text as it is generated; an error in writing ends the generation.
pub fn run(
    loaded: &LoadedModel,
    session: &mut Session,
    request: &Request<'_>,
    interrupt: &Interrupt,
    sink: Option<&mut dyn Write>,
) -> Result<Outcome, ToolError> {
    let prompt = request.prompt_token_ids;
    let options = GenerateOptions {
        tokens_max: request.max_tokens,
        end_tokens: request.ends,
        with_loss: request.with_loss,
    };
    let before = session.evidence()?;
    let mut progress = Some(Progress::new("reading the prompt", prompt.len() as u64, Unit::Tokens));
    let mut writer = TextWriter::new(&loaded.tokenizer, sink, request.ends, request.stops);
    let started = Instant::now();
    let mut prompt_done = started;
    let generation = generate(session, prompt, options, |step| {
        let flow = match step {
            Step::Prompt { done, .. } => {
                if let Some(progress) = &progress {
                    progress.set(done as u64);
                }
                prompt_done = Instant::now();
                ControlFlow::Continue(())
            }
            Step::Token(token) => {
                progress = None;
                writer.push(token)
            }
        };
        if interrupt.is_asked() { ControlFlow::Break(()) } else { flow }
    })?;
    let times = [started, prompt_done, Instant::now()];
    let written = writer.finish()?;
    let evidence = session.evidence()?.since(&before);
    let asked = generation.is_broken_off;
    Ok(outcome(loaded, request, written, asked, generation.prompt_loss_mean, times, evidence))
}

/// The same with drawn tokens, and without a loss.
pub fn run_drawn(
    loaded: &LoadedModel,
    answerer: &mut Answerer,
    request: &Request<'_>,
    sampling: SamplingOptions,
    interrupt: &Interrupt,
    sink: Option<&mut dyn Write>,
) -> Result<Outcome, ToolError> {
    let before = answerer.evidence()?;
    let mut writer = TextWriter::new(&loaded.tokenizer, sink, request.ends, request.stops);
    let tokens_max = u32::try_from(request.max_tokens).unwrap_or(u32::MAX);
    let options = AnswerOptions { tokens_max, sampling, stops: request.ends };
    let started = Instant::now();
    let mut first = None;
    let mut log_probabilities = sampling.log_probabilities.map(|_| Vec::new());
    let asked = answerer.answer(request.prompt_token_ids, &options, interrupt, &mut |token, values| {
        first.get_or_insert_with(Instant::now);
        if let (Some(list), Some(values)) = (&mut log_probabilities, values) {
            list.push(GeneratedLogProbability::new(&loaded.tokenizer, values));
        }
        writer.push(token)
    })?;
    let ended = Instant::now();
    let written = writer.finish()?;
    let evidence = answerer.evidence()?.since(&before);
    let times = [started, first.unwrap_or(ended), ended];
    let outcome = outcome(loaded, request, written, asked, None, times, evidence);
    Ok(Outcome { log_probabilities, ..outcome })
}

fn outcome(
    loaded: &LoadedModel,
    request: &Request<'_>,
    written: WrittenText,
    is_broken_off: bool,
    prompt_nll_mean: Option<f64>,
    [started, prompt_done, ended]: [Instant; 3],
    evidence: Evidence,
) -> Outcome {
    let finish_reason = match (written.is_ended, is_broken_off) {
        (true, _) => Ending::Stop,
        (false, true) => Ending::Interrupted,
        (false, false) => Ending::Length,
    };
    Outcome {
        model_filename: loaded.filename.clone(),
        prompt: request.prompt.to_owned(),
        prompt_token_ids: request.prompt_token_ids.to_vec(),
        token_ids: written.token_ids,
        text: written.text,
        finish_reason,
        prompt_nll_mean,
        log_probabilities: None,
        prompt_ns: nanoseconds(started, prompt_done),
        generation_ns: nanoseconds(prompt_done, ended),
        evidence,
    }
}

fn nanoseconds(from: Instant, to: Instant) -> u64 {
    u64::try_from(to.duration_since(from).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sink that takes so many bytes, and then fails.
    struct Sink(usize, String);

    impl Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(std::io::Error::other("full"));
            }
            self.0 -= bytes.len();
            self.1.push_str(std::str::from_utf8(bytes).unwrap());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    /// Each token is written at once; a token that ends the text, or a text that does, is counted and not shown.
    #[test]
    fn text_is_written_up_to_what_ends_it() {
        let loaded = LoadedModel::open(None).unwrap();
        let tokens = loaded.tokenizer.encode("The dog ran over the hill.");
        assert!(tokens.len() > 3, "{tokens:?}");
        let written = |ends: &[u32], stops: &[&str], room| {
            let stops: Vec<String> = stops.iter().map(|stop| (*stop).to_owned()).collect();
            let stops = StopTexts::new(&stops).unwrap();
            let mut sink = Sink(room, String::new());
            let mut writer = TextWriter::new(&loaded.tokenizer, Some(&mut sink), ends, &stops);
            let taken = tokens.iter().take_while(|token| writer.push(**token).is_continue()).count();
            let finished = writer.finish().map(|text| (text.token_ids.len(), text.text, text.is_ended));
            (taken, finished.map_err(|error| error.to_string()), sink.1)
        };
        let (all, text) = (tokens.len(), "The dog ran over the hill.".to_owned());
        assert_eq!(written(&[], &[], 100), (all, Ok((all, text.clone(), false)), text.clone()));
        let ended = written(&[tokens[all - 1]], &[], 100);
        assert_eq!(
            (ended.0, ended.1.as_ref().map(|(count, _, is_ended)| (*count, *is_ended))),
            (all, Ok((all, true)))
        );
        assert!(text.starts_with(&ended.2) && ended.2.len() < text.len(), "{ended:?}");
        let (_, stopped, shown) = written(&[], &[" over"], 100);
        assert_eq!(stopped.map(|(_, text, is_ended)| (text, is_ended)), Ok(("The dog ran".to_owned(), true)));
        assert_eq!(shown, "The dog ran");
        // Nothing more is tried after the sink is full.
        let (taken, failed, shown) = written(&[], &[], 4);
        assert_eq!(failed.map(|_| ()), Err("full".to_owned()));
        assert!(taken < all && text.starts_with(&shown), "{taken} {shown}");
    }

    #[test]
    fn an_ending_is_told_by_what_came_first() {
        let loaded = LoadedModel::open(None).unwrap();
        let stops = StopTexts::default();
        let request = Request {
            prompt: "a",
            prompt_token_ids: &[1],
            max_tokens: 9,
            ends: &[],
            stops: &stops,
            with_loss: false,
        };
        let start = Instant::now();
        let at = |nanoseconds| start + std::time::Duration::from_nanos(nanoseconds);
        let of = |is_ended, is_broken_off| {
            let written = WrittenText { token_ids: vec![2, 3], text: "b".to_owned(), is_ended };
            let times = [start, at(70), at(100)];
            outcome(&loaded, &request, written, is_broken_off, Some(0.5), times, Evidence::of("cpu", None))
        };
        let reasons = [of(true, true), of(true, false), of(false, true), of(false, false)];
        let reasons = reasons.map(|outcome| outcome.finish_reason);
        assert_eq!(reasons, [Ending::Stop, Ending::Stop, Ending::Interrupted, Ending::Length]);
        let found = of(false, false);
        assert_eq!((found.prompt_ns, found.generation_ns, found.prompt_nll_mean), (70, 30, Some(0.5)));
        assert_eq!((found.token_ids, found.prompt_token_ids), (vec![2, 3], vec![1]));
    }
}
