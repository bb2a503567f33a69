//! `zrt-bench`: a text and the speed it came at.
#![forbid(unsafe_code)]

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use zrt_tools::bench::{self, Record, Test};
use zrt_tools::commands::{finish, generate, write_json, write_text};
use zrt_tools::device_choice::DeviceOption;
use zrt_tools::error::ToolError;
use zrt_tools::generation::{self, Request};
use zrt_tools::loaded_model::LoadedModel;
use zrt_tools::session::{Session, context_for};

/// Writes a text with a model and measures how fast it reads and writes
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    /// Model file (GGUF); without it the model inside the program
    #[arg(short, long)]
    model: Option<PathBuf>,
    /// Prompt lengths to measure, in tokens; 0 for none
    #[arg(short = 'p', long, value_delimiter = ',', default_values_t = [64])]
    n_prompt: Vec<u32>,
    /// Numbers of generated tokens to measure; 0 for none
    #[arg(short = 'n', long, value_delimiter = ',', default_values_t = [64])]
    n_gen: Vec<u32>,
    /// Times to run each test
    #[arg(short, long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    repetitions: u32,
    /// Text to continue before measuring
    #[arg(long, default_value = "Once upon a time there was a")]
    prompt: String,
    /// Tokens of that text
    #[arg(long, default_value_t = 128)]
    text_tokens: usize,
    #[command(flatten)]
    device: DeviceOption,
    /// Write a JSON array of records with llama-bench's field names instead of text and table
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse()))
}

fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let loaded = LoadedModel::open(arguments.model.as_deref())?;
    let tests = tests(arguments);
    let prompt = loaded.tokenizer.encode(&arguments.prompt);
    let longest = tests.iter().map(|test| test.tokens()).max().unwrap_or(0);
    let for_tests = context_for(&loaded, 1, longest.saturating_sub(1) as usize)?;
    let context = context_for(&loaded, prompt.len(), arguments.text_tokens)?.max(for_tests);
    let mut session = Session::open(&loaded, arguments.device.device, context)?;

    write_story(arguments, &loaded, &mut session, &prompt)?;
    let mut records: Vec<Record> = Vec::with_capacity(tests.len());
    for test in tests {
        records.push(bench::run(&loaded, &mut session, test, arguments.repetitions)?);
    }
    if arguments.json {
        write_json(&records)?;
    } else {
        write_text(&format!("{}{}", bench::table(&records), remarks(&session)))?;
    }
    Ok(true)
}

fn tests(arguments: &Arguments) -> Vec<Test> {
    let prompts = arguments.n_prompt.iter().map(|n| Test { prompt_tokens: *n, generated_tokens: 0 });
    let generations = arguments.n_gen.iter().map(|n| Test { prompt_tokens: 0, generated_tokens: *n });
    prompts.chain(generations).filter(|test| test.tokens() > 0).collect()
}

/// The text comes first: it shows what the model can do, and warms everything up. With JSON it runs silently.
fn write_story(
    arguments: &Arguments,
    loaded: &LoadedModel,
    session: &mut Session,
    prompt: &[u32],
) -> Result<(), ToolError> {
    let request = Request {
        prompt: &arguments.prompt,
        max_tokens: arguments.text_tokens,
        ignore_end: false,
        with_loss: false,
    };
    if arguments.json {
        return generation::run(loaded, session, &request, prompt, None).map(drop);
    }
    write_text(&arguments.prompt)?;
    let outcome = generation::run(loaded, session, &request, prompt, Some(&mut std::io::stdout()))?;
    write_text(&format!("\n\n{}\n\n", generate::summary(&outcome)))
}

/// What a reader of the table must know.
fn remarks(session: &Session) -> String {
    let device = if session.is_cpu() {
        "cpu: the reference implementation, written for exactness and not for speed.".to_owned()
    } else if session.is_virtual() {
        "virtual: the speed of a simulated card on this machine's processor; it says nothing about a real one."
            .to_owned()
    } else {
        format!("{}: measured on the card.", session.device())
    };
    format!("\n{device}\npp: prompt tokens are taken in one at a time in this version.\n")
}
