//! `zrt generate`.

use super::{write_document, write_text};
use crate::activations_option::ActivationsOption;
use crate::answer::{Answerer, end_tokens};
use crate::device_choice::DeviceOption;
use crate::error::ToolError;
use crate::generation::{self, Ending, Outcome, Request};
use crate::interrupt::Interrupt;
use crate::loaded_model::LoadedModel;
use crate::log_probabilities::table;
use crate::memory_option::MemoryOption;
use crate::sampling_options::SamplingArguments;
use crate::session::{Session, context_for};
use crate::text_input;
use clap::Args;
use std::io::Write;
use std::path::PathBuf;
use zrt_engine::chat::StopTexts;
use zrt_engine::sampling::{LogitBias, SamplingOptions};

/// Continues a text; Ctrl-C stops it and keeps what is there
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model file (GGUF) [default: the embedded model]
    #[arg(short, long)]
    pub model: Option<PathBuf>,
    /// Text to continue
    #[arg(short, long, required_unless_present = "file")]
    pub prompt: Option<String>,
    /// File with the text to continue; - is standard input
    #[arg(short, long, conflicts_with = "prompt")]
    pub file: Option<PathBuf>,
    /// Most tokens to generate
    #[arg(short = 'n', long, default_value_t = 128)]
    pub max_tokens: usize,
    /// Text that ends the generation and is not shown; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub sampling: SamplingArguments,
    /// Show the log-probability of each token and of the N most likely ones, at most 20, before temperature, penalties
    /// and filters
    #[arg(long, visible_alias = "n-probs", value_name = "N")]
    pub logprobs: Option<u32>,
    /// Continue after an end-of-text token
    #[arg(long)]
    pub ignore_eos: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceOption,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub memory: MemoryOption,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub activations: ActivationsOption,
    /// Write JSON: tokens, text, why it ended, the prompt's mean loss and the device's counters
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let defaults = SamplingOptions { log_probabilities: arguments.logprobs, ..SamplingOptions::default() };
    let sampling = arguments.sampling.or(&defaults)?;
    sampling.validate()?;
    let is_greedy = is_greedy(&sampling);
    let stops = StopTexts::new(&arguments.stop)?;
    let prompt = match (&arguments.prompt, &arguments.file) {
        (Some(prompt), _) => prompt.clone(),
        (None, Some(path)) => text_input::read(path)?,
        (None, None) => String::new(),
    };
    let loaded = LoadedModel::open(arguments.model.as_deref())?;
    let prompt_token_ids = loaded.tokenizer.encode(&prompt);
    let context = context_for(&loaded, prompt_token_ids.len(), arguments.max_tokens)?;
    let ends = if arguments.ignore_eos { Vec::new() } else { end_tokens(&loaded.tokenizer, None) };
    let request = Request {
        prompt: &prompt,
        prompt_token_ids: &prompt_token_ids,
        max_tokens: arguments.max_tokens,
        ends: &ends,
        stops: &stops,
        with_loss: arguments.json,
    };
    let (device, activations) = (arguments.device.device, arguments.activations.activations);
    let mut output = std::io::stdout();
    let outcome = if is_greedy {
        let mut session = Session::open(&loaded, device, context, activations, &arguments.memory)?;
        let sink = begin(&prompt, &mut output, arguments.json)?;
        let interrupt = Interrupt::install()?;
        interrupt.begin();
        generation::run(&loaded, &mut session, &request, &interrupt, sink)?
    } else {
        let mut answerer =
            Answerer::open(&loaded, device, context.max(CONTEXT_MIN), activations, &arguments.memory)?;
        let sink = begin(&prompt, &mut output, arguments.json)?;
        let interrupt = Interrupt::install()?;
        interrupt.begin();
        let outcome = generation::run_drawn(&loaded, &mut answerer, &request, sampling, &interrupt, sink)?;
        answerer.close()?;
        outcome
    };
    if arguments.json {
        write_document(&outcome)?;
    } else {
        write_text("\n")?;
        if let Some(tokens) = &outcome.log_probabilities {
            write_text(&table(tokens))?;
        }
        // The text is written; a closed standard error takes nothing from it.
        let _ = writeln!(std::io::stderr(), "{}", summary(&outcome));
    }
    Ok(true)
}

/// Whether the most likely token is always taken: without a temperature, a change of logits and a list of
/// log-probabilities no other option has an effect.
fn is_greedy(sampling: &SamplingOptions) -> bool {
    sampling.temperature == 0.0
        && sampling.repetition_penalty == 1.0
        && sampling.presence_penalty == 0.0
        && sampling.frequency_penalty == 0.0
        && sampling.logit_bias == LogitBias::default()
        && sampling.log_probabilities.is_none()
}

/// Shows the prompt that the text continues; returns where the text goes, which is nowhere with JSON.
fn begin<'a>(
    prompt: &str,
    output: &'a mut dyn Write,
    is_json: bool,
) -> Result<Option<&'a mut dyn Write>, ToolError> {
    if is_json {
        return Ok(None);
    }
    write_text(prompt)?;
    Ok(Some(output))
}

/// A session's context has at least this many tokens.
const CONTEXT_MIN: u32 = 2;

/// Speed and counts in one line.
pub fn summary(outcome: &Outcome) -> String {
    let evidence = &outcome.evidence;
    let speed = |tokens: usize, nanoseconds: u64| tokens as f64 * 1e9 / nanoseconds.max(1) as f64;
    // The first generated token comes with the prompt's last step.
    let decoded = outcome.token_ids.len().saturating_sub(1);
    format!(
        "[{}{}: prompt {} tokens at {:.1} t/s, then {decoded} at {:.1} t/s; {} doorbells, {} packets, {} dispatches]",
        if outcome.finish_reason == Ending::Interrupted { "stopped; " } else { "" },
        evidence.device,
        outcome.prompt_token_ids.len(),
        speed(outcome.prompt_token_ids.len(), outcome.prompt_ns),
        speed(decoded, outcome.generation_ns),
        evidence.doorbells,
        evidence.packets,
        evidence.dispatches,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::Evidence;

    /// By hand: 5 tokens in 2 s; of 4 generated ones the first comes with the prompt, so 3 in half a second.
    #[test]
    fn a_summary_has_speeds_and_counts() {
        let outcome = Outcome {
            model_filename: String::new(),
            prompt: String::new(),
            prompt_token_ids: vec![1; 5],
            token_ids: vec![2; 4],
            text: String::new(),
            finish_reason: Ending::Length,
            prompt_nll_mean: None,
            log_probabilities: None,
            prompt_ns: 2_000_000_000,
            generation_ns: 500_000_000,
            evidence: Evidence {
                device: "card".to_owned(),
                doorbells: 7,
                packets: 8,
                dispatches: 9,
                submissions: 10,
                wave_instructions: None,
            },
        };
        let line =
            "card: prompt 5 tokens at 2.5 t/s, then 3 at 6.0 t/s; 7 doorbells, 8 packets, 9 dispatches]";
        assert_eq!(summary(&outcome), format!("[{line}"));
        let stopped = Outcome { finish_reason: Ending::Interrupted, ..outcome };
        assert_eq!(summary(&stopped), format!("[stopped; {line}"));
        // What took no time counts as a nanosecond.
        let none = Outcome { token_ids: Vec::new(), generation_ns: 0, ..stopped };
        assert!(summary(&none).contains("then 0 at 0.0 t/s"), "{}", summary(&none));
    }

    /// Each option that changes or lists probabilities makes it a drawn text; filters alone do not.
    #[test]
    fn a_text_is_greedy_unless_an_option_changes_its_tokens() {
        let plain = SamplingOptions::default();
        let filters = SamplingOptions { top_k: 3, top_p: 0.5, min_p: 0.5, seed: 9, ..plain };
        assert!(is_greedy(&plain) && is_greedy(&filters));
        for (name, drawn) in [
            ("temperature", SamplingOptions { temperature: 0.5, ..plain }),
            ("repetition", SamplingOptions { repetition_penalty: 1.5, ..plain }),
            ("presence", SamplingOptions { presence_penalty: -1.0, ..plain }),
            ("frequency", SamplingOptions { frequency_penalty: 0.5, ..plain }),
            ("bias", SamplingOptions { logit_bias: LogitBias::new(&[(1, 2.0)]).unwrap(), ..plain }),
            ("list", SamplingOptions { log_probabilities: Some(0), ..plain }),
        ] {
            assert!(!is_greedy(&drawn), "{name}");
        }
    }

    #[test]
    fn json_has_no_text_beside_it() {
        let mut output = Vec::new();
        assert!(begin("prompt", &mut output, true).unwrap().is_none());
    }
}
