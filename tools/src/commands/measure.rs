//! The command line of `zrt-bench`: a text and its speed; then, or alone, sessions of many requests.
//!
//! Contract: as [`super`]; `--json` is an array of records, or nothing if there is no result.

use super::{generate, kv_format, write_json, write_text};
use crate::activations_option::ActivationsOption;
use crate::answer::end_tokens;
use crate::bench::{self, Record, Test};
use crate::device_choice::DeviceOption;
use crate::error::ToolError;
use crate::generation::{self, Request};
use crate::interrupt::Interrupt;
use crate::loaded_model::LoadedModel;
use crate::memory_option::MemoryOption;
use crate::prediction::report::{self, Subject};
use crate::prompt_bench;
use crate::session::{Session, context_for};
use crate::session_bench::{self, Choices, SessionRecord};
use crate::workload::Workload;
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;
use zrt_bringup::DeviceChoice;
use zrt_engine::chat::StopTexts;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::session::{CHUNK_ROWS_MAX, Mode};

/// Writes a text with a model and measures how fast it reads and writes
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model file (GGUF) [default: the embedded model]
    #[arg(short, long)]
    pub model: Option<PathBuf>,
    /// Prompt lengths to measure, in tokens; 0 for none
    #[arg(short = 'p', long, value_delimiter = ',', default_values_t = [64])]
    pub n_prompt: Vec<u32>,
    /// Generation lengths to measure, in tokens; 0 for none
    #[arg(short = 'n', long, value_delimiter = ',', default_values_t = [64])]
    pub n_gen: Vec<u32>,
    /// Repetitions of each test
    #[arg(short, long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repetitions: u32,
    /// Text to continue before measuring
    #[arg(long, default_value = "Once upon a time there was a")]
    pub prompt: String,
    /// Tokens to generate for that text
    #[arg(long, default_value_t = 128)]
    pub text_tokens: usize,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceOption,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub memory: MemoryOption,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub activations: ActivationsOption,
    /// Measure sessions in these modes: dispatch, graph, mega [default: all three with one slot, mega with more]
    #[arg(long, value_delimiter = ',', value_parser = mode)]
    pub mode: Vec<Mode>,
    /// Measure sessions with this many slots, 1 to 64
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=64))]
    pub slots: Vec<u32>,
    /// Measure sessions under this workload: W1 (256 + 256 tokens in each slot), W2 (16 requests of mixed lengths), W3
    /// (16 requests that share a long prompt)
    #[arg(long, value_parser = Workload::parse)]
    pub workload: Option<Workload>,
    /// Factor on the workload's lengths [default: 1, on the virtual device 1/16]
    #[arg(long, value_parser = scale)]
    pub scale: Option<f64>,
    /// Format of a session's keys and values: f32, f16 or q8_0 [default: f32]
    #[arg(long, value_parser = kv_format)]
    pub kv: Option<KvFormat>,
    /// Workgroups of a session, or of the prediction [default: as many as are resident, on the virtual device 16]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub groups: Option<u32>,
    /// Most prompt rows in a step of a session
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(CHUNK_ROWS_MAX)))]
    pub chunk: Option<u32>,
    /// Predict the speed on an R9700 instead of measuring: of the model that is given, or of four models. The real
    /// kernels run on the virtual device, a few units of each; `docs/prediction.md` describes the model
    #[arg(long, conflicts_with_all = [
        "mode", "slots", "workload", "scale", "chunk", "n_prompt", "n_gen", "repetitions", "prompt", "text_tokens",
        "activations", "vram", "load_threads",
    ])]
    pub predict: bool,
    /// Predict Llama 3.1 8B, Gemma 3 12B, Devstral 24B and Qwen3-32B in Q4_K_M
    #[arg(long, requires = "predict", conflicts_with = "model")]
    pub releases: bool,
    /// Write a JSON array of records with llama-bench's field names instead of text and tables
    #[arg(long)]
    pub json: bool,
}

impl Arguments {
    /// True if only sessions are requested.
    fn is_of_sessions(&self) -> bool {
        let is_sized = self.scale.is_some() || self.groups.is_some() || self.chunk.is_some();
        let is_chosen = !self.mode.is_empty() || !self.slots.is_empty() || self.workload.is_some();
        is_chosen || is_sized || self.kv.is_some()
    }
}

fn mode(name: &str) -> Result<Mode, String> {
    Mode::parse(name).ok_or_else(|| "there are dispatch, graph and mega".to_owned())
}

/// A factor that makes no length longer than it is on a card.
fn scale(text: &str) -> Result<f64, String> {
    let value: Option<f64> = text.parse().ok().filter(|value| *value > 0.0 && *value <= 1.0);
    value.ok_or_else(|| "it must be above 0 and at most 1".to_owned())
}

/// A record of either kind, for the one JSON array.
#[derive(Serialize)]
#[serde(untagged)]
enum AnyRecord<'a> {
    Steps(&'a Record),
    Session(&'a SessionRecord),
}

/// Runs the program.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    if arguments.predict {
        return predict(arguments);
    }
    let loaded = LoadedModel::open(arguments.model.as_deref())?;
    if arguments.is_of_sessions() {
        return run_sessions(arguments, &loaded);
    }
    let tests = tests(arguments);
    let prompt = loaded.tokenizer.encode(&arguments.prompt);
    let longest = tests.iter().map(|test| test.tokens()).max().unwrap_or(0);
    let for_tests = context_for(&loaded, 1, longest.saturating_sub(1) as usize)?;
    let context = context_for(&loaded, prompt.len(), arguments.text_tokens)?.max(for_tests);
    let mut session = Session::open(
        &loaded,
        arguments.device.device,
        context,
        arguments.activations.activations,
        &arguments.memory,
    )?;

    write_story(arguments, &loaded, &mut session, &prompt)?;
    let (is_cpu, is_virtual) = (session.is_cpu(), session.is_virtual());
    let (in_session, by_step): (Vec<Test>, Vec<Test>) =
        tests.into_iter().partition(|test| is_in_session(test, is_cpu));
    let mut steps: Vec<Record> = Vec::with_capacity(by_step.len());
    for test in by_step {
        steps.push(bench::run(&loaded, &mut session, test, arguments.repetitions)?);
    }
    let remarks = remarks(is_cpu, is_virtual, session.device());
    // Its device is released before sessions open theirs.
    drop(session);
    // `auto` has looked for a card already.
    let device = if is_virtual { DeviceChoice::Virtual } else { arguments.device.device };
    let of_prompts = prompt_bench::Choices {
        device,
        activations: arguments.activations.activations,
        repetitions: arguments.repetitions,
        memory: arguments.memory,
    };
    let mut records: Vec<Record> = Vec::with_capacity(in_session.len() + steps.len());
    for test in in_session {
        records.push(prompt_bench::run(&loaded, &of_prompts, test)?);
    }
    records.append(&mut steps);
    if !arguments.json {
        write_text(&format!("{}{remarks}", bench::table(&records)))?;
    }
    let activations = arguments.activations.activations;
    let overview = || session_bench::overview(&loaded, device, activations, is_virtual, arguments.memory);
    let sessions = (!is_cpu).then(overview).transpose()?;
    if arguments.json {
        let steps = records.iter().map(AnyRecord::Steps);
        write_json(&steps.chain(sessions.iter().flatten().map(AnyRecord::Session)).collect::<Vec<_>>())?;
    } else if let Some(sessions) = sessions {
        write_text(&format!("\nSessions:\n\n{}", session_bench::table(&sessions)))?;
    }
    Ok(true)
}

/// The prediction in place of any measurement.
fn predict(arguments: &Arguments) -> Result<bool, ToolError> {
    let records = report::predict(&subjects(arguments)?, arguments.kv.unwrap_or_default(), arguments.groups)?;
    if arguments.json {
        write_json(&report::json(&records))?;
    } else {
        write_text(&report::text(&records))?;
    }
    Ok(true)
}

/// The models that are predicted.
fn subjects(arguments: &Arguments) -> Result<Vec<Subject>, ToolError> {
    match &arguments.model {
        Some(path) => Ok(vec![Subject::of_file(Some(path))?]),
        None if arguments.releases => Subject::releases(),
        None => Subject::defaults(),
    }
}

/// Only the sessions that were requested.
fn run_sessions(arguments: &Arguments, loaded: &LoadedModel) -> Result<bool, ToolError> {
    let choices = Choices {
        device: arguments.device.device,
        workload: arguments.workload.unwrap_or(Workload::W1),
        scale: arguments.scale,
        kv_format: arguments.kv.unwrap_or_default(),
        activations: arguments.activations.activations,
        groups: arguments.groups,
        chunk_rows: arguments.chunk,
        memory: arguments.memory,
    };
    let runs = session_bench::runs(&arguments.mode, &arguments.slots);
    let records = session_bench::run_all(loaded, &choices, &runs)?;
    if arguments.json {
        write_json(&records)?;
    } else {
        write_text(&session_bench::table(&records))?;
    }
    Ok(true)
}

fn tests(arguments: &Arguments) -> Vec<Test> {
    let prompts = arguments.n_prompt.iter().map(|n| Test { prompt_tokens: *n, generated_tokens: 0 });
    let generations = arguments.n_gen.iter().map(|n| Test { prompt_tokens: 0, generated_tokens: *n });
    prompts.chain(generations).filter(|test| test.tokens() > 0).collect()
}

/// Whether a test runs in a session: prompts do, on a device.
fn is_in_session(test: &Test, is_cpu: bool) -> bool {
    test.prompt_tokens > 0 && !is_cpu
}

/// The text comes first: it shows what the model can do, and warms everything up. With JSON it runs silently.
fn write_story(
    arguments: &Arguments,
    loaded: &LoadedModel,
    session: &mut Session,
    prompt: &[u32],
) -> Result<(), ToolError> {
    let (ends, stops) = (end_tokens(&loaded.tokenizer, None), StopTexts::default());
    let request = Request {
        prompt: &arguments.prompt,
        prompt_token_ids: prompt,
        max_tokens: arguments.text_tokens,
        ends: &ends,
        stops: &stops,
        with_loss: false,
    };
    let interrupt = Interrupt::ignored();
    if arguments.json {
        return generation::run(loaded, session, &request, &interrupt, None).map(drop);
    }
    write_text(&arguments.prompt)?;
    let outcome = generation::run(loaded, session, &request, &interrupt, Some(&mut std::io::stdout()))?;
    write_text(&format!("\n\n{}\n\n", generate::summary(&outcome)))
}

/// What a reader of the table must know.
fn remarks(is_cpu: bool, is_virtual: bool, device: &str) -> String {
    let device = if is_cpu {
        "cpu: the reference implementation, written for exactness and not for speed.".to_owned()
    } else if is_virtual {
        "virtual: the speed of a simulated card on this machine's processor; it says nothing about a real one."
            .to_owned()
    } else {
        format!("{device}: measured on the card.")
    };
    let prompts = if is_cpu {
        "pp: one token after the other."
    } else {
        "pp: steps of many prompt tokens in the megakernel, up to the first token; tg: recorded steps of one token."
    };
    format!("\n{device}\n{prompts}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    fn parse(words: &str) -> Arguments {
        let words = ["zrt-bench", "--device", "virtual"].into_iter().chain(words.split_whitespace());
        Line::try_parse_from(words).unwrap().arguments
    }

    /// What only sessions have asks for sessions alone.
    #[test]
    fn each_option_of_sessions_asks_for_them() {
        for words in [
            "--mode mega",
            "--slots 2",
            "--workload w2",
            "--scale 0.5",
            "--groups 3",
            "--chunk 4",
            "--kv f16",
        ] {
            assert!(parse(words).is_of_sessions(), "{words}");
        }
        for words in ["", "-p 3", "-n 3", "--activations a8", "--repetitions 9", "--vram 1GiB", "--json"] {
            assert!(!parse(words).is_of_sessions(), "{words}");
        }
    }

    /// Prompts first, and none of no tokens.
    #[test]
    fn tests_are_prompts_and_generations_of_some_tokens() {
        let of =
            |words: &str| -> Vec<String> { tests(&parse(words)).iter().map(|test| test.name()).collect() };
        assert_eq!(of(""), ["pp64", "tg64"]);
        assert_eq!(of("-p 0,3,512 -n 4,0"), ["pp3", "pp512", "tg4"]);
        assert_eq!(of("-p 0 -n 0"), [""; 0]);
    }

    /// A device reads a prompt in a session, and the CPU token by token; tokens are generated by steps on both.
    #[test]
    fn prompts_are_read_in_sessions_of_a_device() {
        let found = [(1, 0), (64, 0), (0, 64)].map(|(prompt_tokens, generated_tokens)| {
            let test = Test { prompt_tokens, generated_tokens };
            (is_in_session(&test, false), is_in_session(&test, true))
        });
        assert_eq!(found, [(true, false), (true, false), (false, false)]);
    }

    /// Whose speed it is, and how prompts are read.
    #[test]
    fn remarks_say_what_was_measured() {
        let steps = "pp: steps of many prompt tokens in the megakernel, up to the first token; \
                     tg: recorded steps of one token.";
        let cpu = "cpu: the reference implementation, written for exactness and not for speed.";
        assert_eq!(remarks(true, false, "cpu"), format!("\n{cpu}\npp: one token after the other.\n"));
        let simulated = "virtual: the speed of a simulated card on this machine's processor; \
                         it says nothing about a real one.";
        assert_eq!(remarks(false, true, "virtual"), format!("\n{simulated}\n{steps}\n"));
        assert_eq!(remarks(false, false, "R9700"), format!("\nR9700: measured on the card.\n{steps}\n"));
    }

    /// Without a model there are two lists of them, of which `--releases` chooses the second.
    #[test]
    fn a_prediction_is_of_the_models_that_were_asked_for() {
        let of = |words: &str| -> Vec<String> {
            subjects(&parse(words)).unwrap().into_iter().map(|subject| subject.name).collect()
        };
        let begins = |found: Vec<String>, expected: &[&str]| {
            assert_eq!(found.len(), 4, "{found:?}");
            for begin in expected {
                assert!(found.iter().any(|name| name.starts_with(begin)), "{begin} in {found:?}");
            }
        };
        begins(of("--predict"), &["Qwen3-8B Q4_K_M", "Qwen3-0.6B Q8_0", "Qwen3-0.6B BF16"]);
        begins(of("--predict --releases"), &["Llama-3.1-8B", "Gemma-3-12B", "Devstral-24B", "Qwen3-32B"]);
    }

    /// A factor that makes nothing longer; modes by their names.
    #[test]
    fn factors_and_modes_are_checked() {
        let factors = ["1", "0.0625", "1e-9", "0", "-0.5", "1.001", "NaN", "inf", "x", ""];
        let found = factors.map(|text| scale(text).ok());
        assert_eq!(found[..3], [Some(1.0), Some(0.0625), Some(1e-9)]);
        assert_eq!(found[3..], [None; 7]);
        assert_eq!(scale("2"), Err("it must be above 0 and at most 1".to_owned()));
        let modes = ["dispatch", "graph", "mega"].map(mode);
        assert_eq!(modes, [Ok(Mode::Dispatch), Ok(Mode::Graph), Ok(Mode::Mega)]);
        assert_eq!(mode("all"), Err("there are dispatch, graph and mega".to_owned()));
        let refused =
            ["--slots 0", "--slots 65", "--groups 0", "--chunk 0", "--repetitions 0", "--repetitions 1001"];
        for words in refused {
            assert!(
                Line::try_parse_from(["zrt-bench"].into_iter().chain(words.split(' '))).is_err(),
                "{words}"
            );
        }
    }
}
