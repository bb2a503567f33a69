//! `zrt perplexity`: how well a model expects a text, with each arithmetic of its matmuls.
//!
//! Contract: runs the oracle, which has every arithmetic; no device is used. Divergences are relative to f32
//! activations of the same model, or to a base that another run has saved. Cost: a pass over the text for each
//! arithmetic, at the oracle's speed, and the probabilities of two passes in memory.

mod base;

use super::launch::outputs::BegunFile;
use super::{write_document, write_text};
use crate::bounded_read::{self, ReadError};
use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::progress::{Progress, Unit};
use crate::session::context_for;
use crate::table::{Alignment, Table};
use clap::Args;
use serde::Serialize;
use std::path::{Path, PathBuf};
use zrt_engine::activations::Activations;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::oracle::Oracle;
use zrt_engine::quality::{Expectations, Quality};

/// Longest text, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;

/// Measures how well a model expects a text, and what integer arithmetic costs, on the CPU
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model file (GGUF); without it the model inside the program
    #[arg(short, long)]
    pub model: Option<PathBuf>,
    /// File with the text (UTF-8, at most 1 MiB); what goes beyond the model's context, or beyond 2^27 probabilities
    /// (tokens × vocabulary), is left out
    pub text: PathBuf,
    /// Saves what the model expects with f32 activations, for --base: 4 bytes for each probability
    #[arg(long, value_name = "FILE")]
    pub save_base: Option<PathBuf>,
    /// Compares with what another run saved, of any model with the same tokens: a quantised model with its original
    #[arg(long, value_name = "FILE", conflicts_with = "save_base")]
    pub base: Option<PathBuf>,
    /// Arithmetics of activations: f32, a8, a16
    #[arg(long, value_delimiter = ',', default_value = "f32,a8,a16", value_parser = crate::activations_option::parse_defined)]
    pub activations: Vec<Activations>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// The result as JSON.
#[derive(Debug, Serialize)]
struct Report {
    model_filename: String,
    tokens: usize,
    /// Tokens of the text after these.
    tokens_left_out: usize,
    /// File that divergences are relative to; none: f32 activations of the same model.
    base: Option<String>,
    runs: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    activations: &'static str,
    /// Mean negative log-probability of each token, in nats.
    loss: f64,
    perplexity: f64,
    /// Divergence of the probabilities from those of the base, in nats.
    mean_divergence: f64,
    p99_divergence: f64,
    /// Share of the places where the most probable token is that of the base.
    same_best: f64,
}

/// What a run needs before its first pass.
struct Prepared {
    loaded: LoadedModel,
    /// The tokens that are measured.
    text: Vec<u32>,
    tokens_left_out: usize,
    /// What another run saved.
    saved: Option<Expectations>,
    /// Where this run saves what it expects.
    begun: Option<BegunFile>,
}

/// Reads and checks everything that can be refused; nothing is computed.
fn prepare(arguments: &Arguments) -> Result<Prepared, ToolError> {
    let loaded = LoadedModel::open(arguments.model.as_deref())?;
    let mut text = loaded.tokenizer.encode(&read(&arguments.text)?);
    let config = &loaded.model.config;
    let tokens_max = tokens_max(config.vocabulary, config.context);
    let tokens_left_out = text.len().saturating_sub(tokens_max);
    text.truncate(tokens_max);
    if text.len() < 2 {
        let what = "a text of fewer than two tokens has nothing to predict: give a longer one".to_owned();
        return Err(ToolError::BadInput { what });
    }
    eprint!("{}", remark(text.len(), tokens_left_out));
    let saved = arguments.base.as_deref().map(|path| saved_for(path, &loaded, &text)).transpose()?;
    let begun = arguments.save_base.as_deref().map(BegunFile::new).transpose()?;
    Ok(Prepared { loaded, text, tokens_left_out, saved, begun })
}

/// How many tokens of a text are measured: those that the context holds, and whose probabilities are kept.
fn tokens_max(vocabulary: u32, context: u32) -> usize {
    let kept = base::PROBABILITIES_MAX / u64::from(vocabulary).max(1);
    kept.min(u64::from(context)) as usize
}

/// A line on what is left out, if anything is.
fn remark(tokens: usize, left_out: usize) -> String {
    match left_out {
        0 => String::new(),
        _ => format!("the first {tokens} tokens are measured, {left_out} are left out\n"),
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let Prepared { loaded, text, tokens_left_out, saved, begun } = prepare(arguments)?;
    let reference = match saved {
        Some(saved) => saved,
        None => pass(&loaded, Activations::F32, &text)?,
    };
    if let Some(begun) = begun {
        begun.finish(|output| base::write(output, &text, &reference))?;
    }
    let mut runs = Vec::new();
    for &mode in &arguments.activations {
        let quality = match (mode, &arguments.base) {
            (Activations::F32, None) => reference.against(&reference, &text),
            _ => pass(&loaded, mode, &text)?.against(&reference, &text),
        };
        runs.push(row(mode, &quality));
    }
    let report = Report {
        model_filename: loaded.filename.clone(),
        tokens: text.len().saturating_sub(1),
        tokens_left_out,
        base: arguments.base.as_ref().map(|path| path.display().to_string()),
        runs,
    };
    match arguments.json {
        true => write_document(&report)?,
        false => write_text(&table(&loaded.description(), &report).to_string())?,
    }
    Ok(true)
}

/// A saved base, if it is of this text in these tokens.
fn saved_for(path: &Path, loaded: &LoadedModel, text: &[u32]) -> Result<Expectations, ToolError> {
    let base = base::read(path)?;
    let (found, own) = (base.expectations.vocabulary(), loaded.model.config.vocabulary as usize);
    let what = if found != own {
        format!("it is of a vocabulary of {found} tokens, the model's has {own}")
    } else if base.text != text {
        "it is of another text, or its model has other tokens".to_owned()
    } else {
        return Ok(base.expectations);
    };
    let source = std::io::Error::new(std::io::ErrorKind::InvalidData, what);
    Err(ToolError::Read { path: path.display().to_string(), source })
}

fn read(path: &Path) -> Result<String, ToolError> {
    let refuse = |source| ToolError::Read { path: path.display().to_string(), source };
    let bytes = bounded_read::read(path, TEXT_BYTES_MAX).map_err(|error| match error {
        ReadError::System(source) => refuse(source),
        ReadError::TooLong => {
            refuse(std::io::Error::other(format!("it has more than {TEXT_BYTES_MAX} bytes")))
        }
    })?;
    String::from_utf8(bytes).map_err(|error| refuse(std::io::Error::other(error)))
}

/// One pass over the text.
fn pass(loaded: &LoadedModel, mode: Activations, text: &[u32]) -> Result<Expectations, ToolError> {
    let context = context_for(loaded, text.len(), 0)?;
    let mut oracle = {
        let _progress = Progress::spinner("dequantising weights");
        Oracle::new_with(&loaded.model, context, KvFormat::F32, mode)?
    };
    let progress = Progress::new(mode.name(), text.len().saturating_sub(1) as u64, Unit::Tokens);
    Ok(Expectations::of(&mut oracle, text, |done| progress.set(done))?)
}

fn row(mode: Activations, quality: &Quality) -> Row {
    Row {
        activations: mode.name(),
        loss: quality.loss,
        perplexity: quality.loss.exp(),
        mean_divergence: quality.divergence,
        p99_divergence: quality.divergence_p99,
        same_best: quality.same_best,
    }
}

fn table(model: &str, report: &Report) -> Table {
    let mut table = Table::new(&[
        ("model", Alignment::Left),
        ("activations", Alignment::Left),
        ("tokens", Alignment::Right),
        ("perplexity", Alignment::Right),
        ("loss", Alignment::Right),
        ("mean KL", Alignment::Right),
        ("p99 KL", Alignment::Right),
        ("same top-1", Alignment::Right),
    ]);
    for run in &report.runs {
        table.row(vec![
            model.to_owned(),
            run.activations.to_owned(),
            report.tokens.to_string(),
            format!("{:.4}", run.perplexity),
            format!("{:.5}", run.loss),
            format!("{:.2e}", run.mean_divergence),
            format!("{:.2e}", run.p99_divergence),
            format!("{:.2} %", 100.0 * run.same_best),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arguments(text: &Path, save_base: &Path) -> Arguments {
        Arguments {
            model: None,
            text: text.to_owned(),
            save_base: Some(save_base.to_owned()),
            base: None,
            activations: vec![Activations::F32],
            json: true,
        }
    }

    /// Before a pass is made, a place that cannot be written is refused, and a file that is there is as it was.
    #[test]
    fn where_a_base_is_saved_is_known_before_the_pass() {
        let folder = zrt_needs::TemporaryFolder::new("save-base");
        let text = folder.join("text");
        std::fs::write(&text, "The dog ran over the hill.").expect("written");
        for (place, told) in [("no/base", "no/base"), (".", "it is a folder"), ("/dev/null", "regular")] {
            let Err(error) = prepare(&arguments(&text, &folder.join(place))) else { panic!("{place}") };
            let error = error.to_string();
            assert!(error.contains("cannot be written") && error.contains(told), "{error}");
        }
        let files = || std::fs::read_dir(&folder).expect("ours").count();
        let base = folder.join("base");
        std::fs::write(&base, "before").expect("written");
        let kept = || std::fs::read_to_string(&base).expect("there");
        let prepared = prepare(&arguments(&text, &base)).expect("it can be written");
        assert_eq!((kept().as_str(), files()), ("before", 3));
        drop(prepared);
        assert_eq!((kept().as_str(), files()), ("before", 2), "what was begun is gone");
        let begun = prepare(&arguments(&text, &base)).expect("it can be written").begun.expect("asked for");
        begun.finish(|output| output.write_all(b"after")).expect("there is room");
        assert_eq!((kept().as_str(), files()), ("after", 2));
    }

    /// e to the power of ln 2 is 2; shares are per cent.
    #[test]
    fn a_row_has_the_numbers_of_its_pass() {
        let quality = Quality {
            tokens: 9,
            loss: std::f64::consts::LN_2,
            divergence: 0.00123,
            divergence_p99: 0.0456,
            same_best: 0.875,
        };
        let report = Report {
            model_filename: String::new(),
            tokens: 9,
            tokens_left_out: 0,
            base: None,
            runs: vec![row(Activations::A8, &quality)],
        };
        let expected = "\
| model | activations | tokens | perplexity |    loss | mean KL |  p99 KL | same top-1 |
| ----- | ----------- | -----: | ---------: | ------: | ------: | ------: | ---------: |
| m     | a8          |      9 |     2.0000 | 0.69315 | 1.23e-3 | 4.56e-2 |    87.50 % |
";
        assert_eq!(table("m", &report).to_string(), expected);
    }

    /// 2^27 probabilities are kept, so of 2^20 tokens those of 128 places.
    #[test]
    fn a_large_vocabulary_leaves_few_places() {
        assert_eq!(tokens_max(1 << 20, 4096), 128);
        assert_eq!(tokens_max(1 << 20, 100), 100);
        assert_eq!(tokens_max(32_000, 4096), 4096);
        assert_eq!(tokens_max(0, 7), 7);
        assert_eq!(remark(128, 0), "");
        assert_eq!(remark(128, 2), "the first 128 tokens are measured, 2 are left out\n");
    }

    /// As many tokens as the model's context has are measured.
    #[test]
    fn a_text_that_is_too_long_is_cut_and_a_short_one_refused() {
        let folder = zrt_needs::TemporaryFolder::new("perplexity-texts");
        let (text, base) = (folder.join("text"), folder.join("base"));
        let of = |written: &str| {
            std::fs::write(&text, written).unwrap();
            prepare(&arguments(&text, &base)).map(|found| (found.text.len(), found.tokens_left_out))
        };
        let loaded = LoadedModel::open(None).unwrap();
        let context = loaded.model.config.context as usize;
        let long = "a dog ran. ".repeat(context);
        let tokens = loaded.tokenizer.encode(&long).len();
        assert_eq!(of(&long).unwrap(), (context, tokens - context));
        assert!(of("").unwrap_err().to_string().starts_with("a text of fewer than two tokens"));
        let (two, left_out) = of("a dog").unwrap();
        assert!(two >= 2 && left_out == 0);
    }
}
