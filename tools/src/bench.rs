//! The tests of `zrt-bench` and their records.
//!
//! Contract: the fields that llama-bench has keep its names and meanings; ours are added to them. A speed measured on
//! the virtual device is that of this host's processor and is never shown as the card's. On a device `pp N` is measured
//! by [`crate::prompt_bench`]; the CPU takes a prompt's tokens one at a time.

use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::progress::{Progress, Unit};
use crate::session::{Evidence, Session};
use crate::statistics::{mean, standard_deviation};
use crate::table::{Alignment, Table};
use crate::{machine, timestamp, units};
use serde::Serialize;
use std::time::Instant;
use zrt_engine::activations::Activations;
use zrt_engine::executor::Executor;

/// One test: tokens of prompt or tokens of generation, one of them zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Test {
    /// Tokens of the prompt.
    pub prompt_tokens: u32,
    /// Tokens to generate.
    pub generated_tokens: u32,
}

/// The result of one test; the fields of `zrt-bench --json`.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)] // The first block is llama-bench's, by its names.
pub struct Record {
    pub build_commit: &'static str,
    pub build_number: u32,
    pub cpu_info: String,
    pub gpu_info: String,
    pub backends: &'static str,
    pub model_filename: String,
    pub model_type: String,
    pub model_size: u64,
    pub model_n_params: u64,
    pub n_batch: u32,
    pub n_ubatch: u32,
    pub n_threads: usize,
    pub type_k: &'static str,
    pub type_v: &'static str,
    pub activations: &'static str,
    pub n_gpu_layers: u32,
    pub n_prompt: u32,
    pub n_gen: u32,
    pub n_depth: u32,
    pub test_time: String,
    pub avg_ns: u64,
    pub stddev_ns: u64,
    pub avg_ts: f64,
    pub stddev_ts: f64,
    pub samples_ns: Vec<u64>,
    pub samples_ts: Vec<f64>,
    /// Ours from here on: the version of zrt.
    pub zrt_version: &'static str,
    /// What all timed repetitions together made the device do.
    #[serde(flatten)]
    pub evidence: Evidence,
    /// Tokens of the timed repetitions together: what to divide the counts by.
    pub tokens: u64,
    /// Bytes that a token reads and writes by the plan: weights, and keys and values at the test's mean position.
    /// Calculated from the plan, not measured.
    pub bytes_per_token: u64,
}

/// What a test ran on, and how.
#[derive(Clone, Debug)]
pub struct Setting {
    /// `cpu`, or the device's name.
    pub device: String,
    /// True if the CPU oracle ran it.
    pub is_cpu: bool,
    /// Arithmetic of activations.
    pub activations: Activations,
    /// Most tokens of a prompt in a step.
    pub batch_rows: u32,
}

impl Test {
    /// Tokens of either kind.
    pub fn tokens(self) -> u32 {
        self.prompt_tokens + self.generated_tokens
    }

    /// Tokens of so many repetitions.
    pub fn tokens_of(self, repetitions: u32) -> u64 {
        u64::from(self.tokens()) * u64::from(repetitions)
    }

    /// The name in the table.
    pub fn name(self) -> String {
        match self {
            Test { prompt_tokens: 0, generated_tokens } => format!("tg{generated_tokens}"),
            Test { prompt_tokens, .. } => format!("pp{prompt_tokens}"),
        }
    }
}

/// Runs one test `repetitions` times and records it.
pub fn run(
    loaded: &LoadedModel,
    session: &mut Session,
    test: Test,
    repetitions: u32,
) -> Result<Record, ToolError> {
    let tokens = test.tokens();
    let prompt = prompt_for(session.plan().config.vocabulary, test);
    let progress = Progress::new("measuring", test.tokens_of(repetitions), Unit::Tokens);
    let test_time = timestamp::now();
    let before = session.evidence()?;
    let mut samples_ns = Vec::with_capacity(repetitions as usize);
    for _ in 0..repetitions {
        session.begin(&prompt)?;
        let started = Instant::now();
        for _ in 0..tokens {
            session.step()?;
        }
        samples_ns.push(u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX));
        progress.advance(tokens.into());
    }
    let evidence = session.evidence()?.since(&before);
    let setting = Setting {
        device: session.device().to_owned(),
        is_cpu: session.is_cpu(),
        activations: session.activations(),
        batch_rows: 1,
    };
    Ok(record(loaded, &setting, test, test_time, samples_ns, evidence))
}

/// The tokens that a test starts with. Which they are does not matter to the time; they are spread over the
/// vocabulary so that embedding rows differ.
pub fn prompt_for(vocabulary: u32, test: Test) -> Vec<u32> {
    /// A prime, so that the sequence visits every row of a vocabulary that it does not divide.
    const STRIDE: u64 = 7919;
    let token = |index: u64| (index * STRIDE % u64::from(vocabulary)) as u32;
    (0..u64::from(test.prompt_tokens.max(1))).map(token).collect()
}

/// The record of a test whose repetitions took `samples_ns`.
pub fn record(
    loaded: &LoadedModel,
    setting: &Setting,
    test: Test,
    test_time: String,
    samples_ns: Vec<u64>,
    evidence: Evidence,
) -> Record {
    let times: Vec<f64> = samples_ns.iter().map(|sample| *sample as f64).collect();
    let samples_ts: Vec<f64> = times.iter().map(|time| f64::from(test.tokens()) * 1e9 / time).collect();
    Record {
        build_commit: env!("ZRT_BUILD_COMMIT"),
        build_number: 0,
        cpu_info: machine::processor_name(),
        gpu_info: if setting.is_cpu { String::new() } else { setting.device.clone() },
        backends: if setting.is_cpu { "CPU" } else { "zrt" },
        model_filename: loaded.filename.clone(),
        model_type: loaded.description(),
        model_size: loaded.model.weight_bytes(),
        model_n_params: loaded.model.parameter_count(),
        n_batch: setting.batch_rows,
        n_ubatch: setting.batch_rows,
        n_threads: machine::threads(),
        type_k: "f32",
        type_v: "f32",
        activations: setting.activations.name(),
        n_gpu_layers: if setting.is_cpu { 0 } else { loaded.model.config.layers },
        n_prompt: test.prompt_tokens,
        n_gen: test.generated_tokens,
        n_depth: 0,
        test_time,
        avg_ns: mean(&times) as u64,
        stddev_ns: standard_deviation(&times) as u64,
        avg_ts: mean(&samples_ts),
        stddev_ts: standard_deviation(&samples_ts),
        tokens: test.tokens_of(samples_ns.len() as u32),
        samples_ns,
        samples_ts,
        zrt_version: env!("CARGO_PKG_VERSION"),
        evidence,
        bytes_per_token: bytes_per_token(loaded, test.tokens(), setting.batch_rows),
    }
}

/// Weights, once for each step of at most `batch_rows` tokens (a prompt's steps before its last one do not read the
/// output weights, which are counted all the same), plus keys and values: at position p a layer reads p + 1 rows
/// of each and writes one. The mean over positions 0 to `tokens` - 1 of p + 2 is (tokens + 3) / 2.
fn bytes_per_token(loaded: &LoadedModel, tokens: u32, batch_rows: u32) -> u64 {
    let config = &loaded.model.config;
    let row_bytes = u64::from(config.kv_elements()) * 4;
    let rows_twice = u64::from(tokens) + 3;
    let steps = u64::from(tokens.div_ceil(batch_rows.max(1)));
    zrt_engine::memory_plan::step_weight_bytes(&loaded.model) * steps / u64::from(tokens.max(1))
        + u64::from(config.layers) * row_bytes * rows_twice
}

/// The table of all records.
pub fn table(records: &[Record]) -> Table {
    use Alignment::{Left, Right};
    let mut table = Table::new(&[
        ("model", Left),
        ("size", Right),
        ("params", Right),
        ("device", Left),
        ("test", Right),
        ("t/s", Right),
        ("dispatches/t", Right),
        ("packets/t", Right),
        ("submissions/t", Right),
        ("bytes/t", Right),
    ]);
    for record in records {
        let per_token = |count: u64| format!("{:.2}", count as f64 / record.tokens.max(1) as f64);
        let test = Test { prompt_tokens: record.n_prompt, generated_tokens: record.n_gen };
        table.row(vec![
            record.model_type.clone(),
            units::bytes(record.model_size),
            units::count(record.model_n_params),
            record.evidence.device.clone(),
            test.name(),
            format!("{:.2} ± {:.2}", record.avg_ts, record.stddev_ts),
            per_token(record.evidence.dispatches),
            per_token(record.evidence.packets),
            per_token(record.evidence.submissions),
            units::bytes(record.bytes_per_token),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_named_as_llama_bench_names_them() {
        assert_eq!(Test { prompt_tokens: 512, generated_tokens: 0 }.name(), "pp512");
        assert_eq!(Test { prompt_tokens: 0, generated_tokens: 128 }.name(), "tg128");
    }

    #[test]
    fn a_test_has_the_tokens_of_all_its_repetitions() {
        let test = Test { prompt_tokens: 3, generated_tokens: 4 };
        assert_eq!((test.tokens(), test.tokens_of(5)), (7, 35));
        let most = Test { prompt_tokens: u32::MAX, generated_tokens: 0 };
        assert_eq!(most.tokens_of(u32::MAX), 0xffff_fffe_0000_0001);
    }

    #[test]
    fn prompts_lie_in_the_vocabulary_and_are_never_empty() {
        let prompt = prompt_for(512, Test { prompt_tokens: 600, generated_tokens: 0 });
        assert_eq!(prompt.len(), 600);
        assert!(prompt.iter().all(|token| *token < 512));
        assert_eq!(prompt_for(512, Test { prompt_tokens: 0, generated_tokens: 9 }), [0]);
    }

    #[test]
    fn bytes_per_token_are_weights_and_cache_rows() {
        let loaded = LoadedModel::open(None).unwrap();
        // 8 layers of 2 key heads of 64 elements of 4 bytes; keys and values. One token: one row read, one written.
        let cache = 8 * 2 * 64 * 4 * 2 * 2;
        let weights = zrt_engine::memory_plan::step_weight_bytes(&loaded.model);
        assert_eq!(bytes_per_token(&loaded, 1, 1), weights + cache);
        // A third of the weights for each of 30 tokens in ten steps; 33 rows of the cache for two tokens.
        assert_eq!(bytes_per_token(&loaded, 30, 3), weights * 10 / 30 + cache / 4 * 33);
    }

    fn evidence() -> Evidence {
        Evidence {
            device: "card".to_owned(),
            doorbells: 1,
            packets: 20,
            dispatches: 10,
            submissions: 5,
            wave_instructions: None,
        }
    }

    /// Two repetitions of 10 tokens in 1 and 3 seconds: 10 and 10/3 tokens in a second, 2 s on average; the deviation
    /// of two samples is their distance by the root of 2.
    #[test]
    fn a_record_has_means_and_deviations_of_its_samples() {
        let loaded = LoadedModel::open(None).unwrap();
        let test = Test { prompt_tokens: 10, generated_tokens: 0 };
        let of = |is_cpu| {
            let setting =
                Setting { device: "card".to_owned(), is_cpu, activations: Activations::A8, batch_rows: 4 };
            let samples = vec![1_000_000_000, 3_000_000_000];
            record(&loaded, &setting, test, "then".to_owned(), samples, evidence())
        };
        let found = of(false);
        assert_eq!((found.avg_ns, found.stddev_ns), (2_000_000_000, 1_414_213_562));
        assert!((found.avg_ts - 20.0 / 3.0).abs() < 1e-12, "{}", found.avg_ts);
        assert!((found.stddev_ts - 20.0 / 3.0 / 2f64.sqrt()).abs() < 1e-12, "{}", found.stddev_ts);
        assert_eq!((found.samples_ts[0], found.samples_ts.len(), found.tokens), (10.0, 2, 20));
        assert_eq!((found.n_prompt, found.n_gen, found.n_batch, found.n_ubatch), (10, 0, 4, 4));
        assert_eq!((found.backends, found.gpu_info.as_str(), found.n_gpu_layers), ("zrt", "card", 8));
        assert_eq!((found.activations, found.test_time.as_str()), ("a8", "then"));
        // Ten tokens in three steps.
        assert_eq!(found.bytes_per_token, bytes_per_token(&loaded, 10, 4));
        let on_cpu = of(true);
        assert_eq!((on_cpu.backends, on_cpu.gpu_info.as_str(), on_cpu.n_gpu_layers), ("CPU", "", 0));
    }

    #[test]
    fn the_table_divides_counts_by_tokens() {
        let loaded = LoadedModel::open(None).unwrap();
        let setting = Setting {
            device: "card".to_owned(),
            is_cpu: false,
            activations: Activations::F32,
            batch_rows: 1,
        };
        let test = Test { prompt_tokens: 0, generated_tokens: 4 };
        let one = record(&loaded, &setting, test, String::new(), vec![1_000_000_000; 2], evidence());
        let one = Record {
            model_type: "m".to_owned(),
            model_size: 2048,
            model_n_params: 1_500_000,
            bytes_per_token: 3 << 20,
            ..one
        };
        let none = Record { tokens: 0, n_prompt: 7, n_gen: 0, ..one.clone() };
        let expected = "\
| model |     size | params | device | test |         t/s | dispatches/t | packets/t | submissions/t |  bytes/t |
| ----- | -------: | -----: | ------ | ---: | ----------: | -----------: | --------: | ------------: | -------: |
| m     | 2.00 KiB | 1.50 M | card   |  tg4 | 4.00 ± 0.00 |         1.25 |      2.50 |          0.62 | 3.00 MiB |
| m     | 2.00 KiB | 1.50 M | card   |  pp7 | 4.00 ± 0.00 |        10.00 |     20.00 |          5.00 | 3.00 MiB |
";
        assert_eq!(table(&[one, none]).to_string(), expected);
    }

    /// The stride visits the vocabulary: three of it are 23,757, which is 1 after 23,756.
    #[test]
    fn prompts_go_through_the_vocabulary_in_strides() {
        let of = |vocabulary| prompt_for(vocabulary, Test { prompt_tokens: 4, generated_tokens: 0 });
        assert_eq!((of(100_000), of(23_756)), (vec![0, 7919, 15_838, 23_757], vec![0, 7919, 15_838, 1]));
    }
}
