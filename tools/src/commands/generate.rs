//! `zrt generate`.

use super::{write_document, write_text};
use crate::activations_option::ActivationsOption;
use crate::device_choice::DeviceOption;
use crate::error::ToolError;
use crate::generation::{self, Outcome, Request};
use crate::loaded_model::LoadedModel;
use crate::session::{Session, context_for};
use clap::Args;
use std::path::PathBuf;

/// Continues a text by greedy decoding
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model file (GGUF) [default: the embedded model]
    #[arg(short, long)]
    pub model: Option<PathBuf>,
    /// Text to continue
    #[arg(short, long)]
    pub prompt: String,
    /// Most tokens to generate
    #[arg(short = 'n', long, default_value_t = 128)]
    pub max_tokens: usize,
    /// Continue after an end-of-text token
    #[arg(long)]
    pub ignore_eos: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceOption,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub activations: ActivationsOption,
    /// Write JSON: tokens, text, the prompt's mean loss and the device's counters
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let loaded = LoadedModel::open(arguments.model.as_deref())?;
    let prompt_token_ids = loaded.tokenizer.encode(&arguments.prompt);
    let context = context_for(&loaded, prompt_token_ids.len(), arguments.max_tokens)?;
    let mut session =
        Session::open(&loaded, arguments.device.device, context, arguments.activations.activations)?;
    let request = Request {
        prompt: &arguments.prompt,
        max_tokens: arguments.max_tokens,
        ignore_end: arguments.ignore_eos,
        with_loss: arguments.json,
    };
    if arguments.json {
        let outcome = generation::run(&loaded, &mut session, &request, &prompt_token_ids, None)?;
        write_document(&outcome)?;
        return Ok(true);
    }
    write_text(&arguments.prompt)?;
    let mut output = std::io::stdout();
    let outcome = generation::run(&loaded, &mut session, &request, &prompt_token_ids, Some(&mut output))?;
    write_text("\n")?;
    eprintln!("{}", summary(&outcome));
    Ok(true)
}

/// Speed and counts in one line.
pub fn summary(outcome: &Outcome) -> String {
    let evidence = &outcome.evidence;
    let speed = |tokens: usize, nanoseconds: u64| tokens as f64 * 1e9 / nanoseconds.max(1) as f64;
    // The first generated token comes with the prompt's last step.
    let decoded = outcome.token_ids.len().saturating_sub(1);
    format!(
        "[{}: prompt {} tokens at {:.1} t/s, then {decoded} at {:.1} t/s; {} doorbells, {} packets, {} dispatches]",
        evidence.device,
        outcome.prompt_token_ids.len(),
        speed(outcome.prompt_token_ids.len(), outcome.prompt_ns),
        speed(decoded, outcome.generation_ns),
        evidence.doorbells,
        evidence.packets,
        evidence.dispatches,
    )
}
