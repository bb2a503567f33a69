//! `zrt-bench --predict`: predicted speeds of whole steps, as a table or as JSON, with what others measured.
//!
//! Contract: every speed of ours is called predicted and is a range. Cost: some hundred samples on the virtual device,
//! some ten seconds for the three default models in a release build.

use super::card::{Card, Estimate};
use super::kernel::Bound;
use super::peers::{PEERS, Peer};
use super::samples::{Sampled, Samples, megakernel_residency};
use super::shapes::{QWEN3_0_6B_BF16, QWEN3_0_6B_Q8_0, QWEN3_8B_Q4_K_M, RELEASES, Shape};
use super::step::StepPrediction;
use crate::error::ToolError;
use crate::loaded_model::LoadedModel;
use crate::progress::Progress;
use crate::table::{Alignment, Table};
use crate::units;
use serde::Serialize;
use std::path::Path;
use zrt_engine::activations::Activations;
use zrt_engine::executor::alone::StepRows;
use zrt_engine::gguf::TensorKind;
use zrt_engine::kv_format::KvFormat;
use zrt_engine::model::Model;
use zrt_engine::session::CHUNK_ROWS_MAX;

/// Slots of the decoding steps.
const SLOTS: [u32; 3] = [1, 8, 32];
/// Positions of a sequence: decoding steps are at its end, and prompts are this long.
const CONTEXT: u32 = 512;

/// A model to predict.
pub struct Subject {
    /// Name and storage.
    pub name: String,
    /// Where its shape comes from.
    pub source: String,
    model: Model,
}

/// One predicted step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Record {
    /// `predicted`: none of this was measured.
    pub kind: &'static str,
    /// Model and storage.
    pub model: String,
    /// Where its shape comes from.
    pub model_source: String,
    /// Arithmetic of activations.
    pub activations: &'static str,
    /// Format of keys and values.
    pub type_kv: &'static str,
    /// Workgroups of the megakernel.
    pub groups: u32,
    /// `tg` or `pp512`, as llama-bench names them.
    pub test: String,
    /// Rows of the step: slots that decode, or rows of one prompt.
    pub rows: u32,
    /// Positions that the step looks back at.
    pub context: u32,
    /// Tokens per second of all slots, lower end of the range.
    pub predicted_ts_low: f64,
    /// With every parameter at its likeliest value.
    pub predicted_ts: f64,
    /// Upper end of the range.
    pub predicted_ts_high: f64,
    /// Bytes of weights, keys and values that a step reads.
    pub step_bytes: u64,
    /// Tokens per second if these bytes came at the memory's peak rate and nothing else took time.
    pub bus_limit_ts: f64,
    /// The step.
    pub step: StepPrediction,
}

/// Somebody's measurement among the records.
#[derive(Serialize)]
pub struct Published {
    /// `published`.
    pub kind: &'static str,
    /// The measurement.
    #[serde(flatten)]
    pub peer: Peer,
}

/// A record of either kind.
#[derive(Serialize)]
#[serde(untagged)]
pub enum AnyRecord<'a> {
    /// A prediction.
    Predicted(&'a Record),
    /// A measurement of somebody else.
    Published(Published),
}

impl Subject {
    /// The models of a command without a model.
    pub fn defaults() -> Result<Vec<Subject>, ToolError> {
        let of_shape = Subject::of_shape;
        Ok(vec![
            of_shape(QWEN3_8B_Q4_K_M)?,
            of_shape(QWEN3_0_6B_Q8_0)?,
            of_shape(QWEN3_0_6B_BF16)?,
            Subject::of_file(None)?,
        ])
    }

    /// Published models for cards of 16 and 32 GB.
    pub fn releases() -> Result<Vec<Subject>, ToolError> {
        RELEASES.into_iter().map(Subject::of_shape).collect()
    }

    fn of_shape(shape: Shape) -> Result<Subject, ToolError> {
        Ok(Subject { name: shape.name.into(), source: shape.source.into(), model: shape.model()? })
    }

    /// The model of a file, of which the beginning is enough, or the one inside the program.
    pub fn of_file(path: Option<&Path>) -> Result<Subject, ToolError> {
        let loaded = LoadedModel::open_beginning(path)?;
        Ok(Subject { name: loaded.description(), source: loaded.filename.clone(), model: loaded.model })
    }
}

/// Predicts the steps of every subject, with so many workgroups of the megakernel, or with as many as are resident.
pub fn predict(
    subjects: &[Subject],
    kv_format: KvFormat,
    groups: Option<u32>,
) -> Result<Vec<Record>, ToolError> {
    let resident = megakernel_residency()?.0 * Card::at(Estimate::Typical).compute_units;
    let groups = groups.unwrap_or(resident as u32);
    let _progress = Progress::spinner("running samples of kernels");
    let mut samples = Samples::default();
    let mut records = Vec::new();
    for subject in subjects {
        let context = subject.model.config.context.min(CONTEXT);
        for activations in modes(&subject.model) {
            for slots in SLOTS {
                let rows = StepRows::Decode { slots, position: context - 1 };
                records.push(record(
                    &mut samples,
                    subject,
                    activations,
                    (kv_format, groups),
                    (context, rows),
                )?);
            }
            let rows = middle_step(context);
            records.push(record(&mut samples, subject, activations, (kv_format, groups), (context, rows))?);
        }
    }
    Ok(records)
}

/// Of a prompt that fills a context, in as few steps as a session can take, of equal length: the one in the middle
/// stands for all of them.
fn middle_step(context: u32) -> StepRows {
    let rows = context.div_ceil(context.div_ceil(CHUNK_ROWS_MAX));
    StepRows::Prompt { rows, position: (context - rows) / 2 }
}

/// The modes in which the steps of a model differ: f16 is as f32 where no weight is of 16-bit floats, and so are a8 and
/// a16 where none has integers.
fn modes(model: &Model) -> impl Iterator<Item = Activations> {
    let has = |of: &dyn Fn(TensorKind) -> bool| model.weights().any(|(_, weight)| of(weight.tensor.kind));
    Activations::ALL.into_iter().filter(move |mode| match mode {
        Activations::F32 => true,
        Activations::A8 | Activations::A16 => has(&TensorKind::has_integers),
        Activations::F16 => has(&|kind| mode.of_floats(kind) == Activations::F16),
    })
}

fn record(
    samples: &mut Samples,
    subject: &Subject,
    activations: Activations,
    (kv_format, groups): (KvFormat, u32),
    (context, rows): (u32, StepRows),
) -> Result<Record, ToolError> {
    let sampled = Sampled::new(&subject.model, context, rows, activations, kv_format)?;
    let card = Card::at(Estimate::Typical);
    let work = samples.step(&sampled, groups)?;
    let step = work.predict();
    let per_second = |step_us: f64| f64::from(rows.rows()) / step_us * 1e6;
    let step_bytes = work.stream_bytes();
    Ok(Record {
        kind: "predicted",
        model: subject.name.clone(),
        model_source: subject.source.clone(),
        activations: activations.name(),
        type_kv: kv_format.name(),
        groups,
        test: match rows {
            StepRows::Decode { .. } => "tg".into(),
            StepRows::Prompt { .. } => format!("pp{context}"),
        },
        rows: rows.rows(),
        context: rows.context(),
        predicted_ts_low: per_second(step.predicted_us_high),
        predicted_ts: per_second(step.predicted_us),
        predicted_ts_high: per_second(step.predicted_us_low),
        step_bytes: step_bytes as u64,
        bus_limit_ts: per_second(step_bytes / (card.memory_peak_gb_per_s * 1000.0)),
        step,
    })
}

/// The records for JSON: predictions, then what others measured.
pub fn json(records: &[Record]) -> Vec<AnyRecord<'_>> {
    let published =
        PEERS.iter().map(|peer| AnyRecord::Published(Published { kind: "published", peer: *peer }));
    records.iter().map(AnyRecord::Predicted).chain(published).collect()
}

/// Both tables, with what a reader must know.
pub fn text(records: &[Record]) -> String {
    use Alignment::{Left, Right};
    let mut table = Table::new(&[
        ("model", Left),
        ("activations", Left),
        ("test", Left),
        ("rows", Right),
        ("predicted t/s", Right),
        ("low .. high", Right),
        ("bound by", Left),
        ("predicted step ms", Right),
        ("bytes/step", Right),
        ("bus limit t/s", Right),
    ]);
    for one in records {
        table.row(vec![
            one.model.clone(),
            one.activations.to_owned(),
            one.test.clone(),
            one.rows.to_string(),
            speed(one.predicted_ts),
            format!("{} .. {}", speed(one.predicted_ts_low), speed(one.predicted_ts_high)),
            bounds(&one.step),
            format!("{:.2}", one.step.predicted_us / 1000.0),
            units::bytes(one.step_bytes),
            speed(one.bus_limit_ts),
        ]);
    }
    let mut peers = Table::new(&[
        ("measured by others", Left),
        ("model", Left),
        ("card", Left),
        ("test", Left),
        ("t/s", Right),
        ("source", Left),
    ]);
    for peer in PEERS {
        peers.row(vec![
            peer.program.to_owned(),
            peer.model.to_owned(),
            peer.card.to_owned(),
            peer.test.to_owned(),
            speed(peer.tokens_per_second),
            peer.source.to_owned(),
        ]);
    }
    let kv = records.first().map_or("", |one| one.type_kv);
    let groups = records.first().map_or(0, |one| one.groups);
    format!(
        "{table}\n\
         predicted: for an R9700, by a model (docs/prediction.md), from counts of the kernels on the virtual device. \
         Nothing here was measured on a card.\n\
         rows: slots that decode at position {}, or rows of one prompt in a step. Keys and values: {kv}. \
         Workgroups: {groups}.\n\
         low .. high: the model's numbers are ranges, which are taken to err independently of each other.\n\
         bound by: the two largest shares of the critical path of the likeliest time. \
         bus limit: bytes/step at {} GB/s and nothing else.\n\n\
         {peers}\n\
         These are other people's measurements, of other programs; the model does not use them.\n",
        CONTEXT - 1,
        Card::at(Estimate::Typical).memory_peak_gb_per_s,
    )
}

/// Three digits or whole numbers.
fn speed(tokens_per_second: f64) -> String {
    if tokens_per_second < 100.0 {
        format!("{tokens_per_second:.1}")
    } else {
        format!("{tokens_per_second:.0}")
    }
}

/// The two largest shares: `bandwidth 61 %, hand-over 20 %`.
fn bounds(step: &StepPrediction) -> String {
    let mut shares: Vec<(&Bound, &f64)> = step.shares.iter().collect();
    shares.sort_by(|one, other| other.1.total_cmp(one.1));
    let told = shares.into_iter().take(2).filter(|(_, share)| **share >= 0.05);
    told.map(|(bound, share)| format!("{} {:.0} %", bound.name(), share * 100.0))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::cells;

    #[test]
    fn modes_that_change_nothing_are_left_out() {
        use Activations::{A8, A16, F16, F32};
        let of = |shape: Shape| modes(&shape.model().unwrap()).collect::<Vec<_>>();
        assert_eq!(of(QWEN3_0_6B_BF16), [F32, F16]);
        assert_eq!(of(QWEN3_0_6B_Q8_0), [F32, A8, A16]);
    }

    /// A session takes at most 512 rows in a step.
    #[test]
    fn the_step_in_the_middle_stands_for_a_prompt() {
        let of = |rows, position| StepRows::Prompt { rows, position };
        assert_eq!([512, 2048, 1000].map(middle_step), [of(512, 0), of(512, 768), of(500, 250)]);
    }

    /// The model inside the program is small enough for a test: all its steps, from the real kernels.
    #[test]
    fn the_embedded_model_is_predicted_in_order() {
        let subjects = [Subject::of_file(None).unwrap()];
        let records = predict(&subjects, KvFormat::F32, None).unwrap();
        assert_eq!(records.len(), 3 * 4);
        for one in &records {
            assert!(one.predicted_ts_low < one.predicted_ts, "{}", one.test);
            assert!(one.predicted_ts < one.predicted_ts_high, "{}", one.test);
        }
        // More slots, more tokens together.
        assert!(records[1].predicted_ts > records[0].predicted_ts);
        let weights = zrt_engine::memory_plan::step_weight_bytes(&subjects[0].model);
        // 8 layers, 2 heads of 64 elements, keys and values of the whole context in f32.
        let cache = 8 * 2 * 64 * 4 * 2 * u64::from(records[0].context);
        assert_eq!(records[0].step_bytes, weights + cache);
        // Two workgroups of the megakernel on each of 64 compute units; 640,000 bytes in a microsecond.
        for one in &records {
            let rows = f64::from(one.rows);
            let is_near = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-9;
            assert!(is_near(one.predicted_ts, rows / one.step.predicted_us * 1e6), "{one:?}");
            assert!(is_near(one.predicted_ts_low, rows / one.step.predicted_us_high * 1e6), "{one:?}");
            assert!(is_near(one.bus_limit_ts, rows / (one.step_bytes as f64 / 640_000.0) * 1e6), "{one:?}");
            assert_eq!((one.groups, one.context), (128, 512));
        }
        let told: Vec<_> = records.iter().map(|one| (one.activations, one.test.as_str(), one.rows)).collect();
        let of = |mode| [(mode, "tg", 1), (mode, "tg", 8), (mode, "tg", 32), (mode, "pp512", 512)];
        assert_eq!(told, [of("f32"), of("a8"), of("a16")].concat());
        let shown = text(&records);
        assert!(shown.contains("predicted t/s") && shown.contains("Nothing here was measured"), "{shown}");
        assert!(shown.contains("other people's measurements"));
    }

    /// A record of a model that does not exist.
    fn made_up(test: &str, rows: u32, speeds: [f64; 3], shares: &[(Bound, f64)]) -> Record {
        let [predicted_ts_low, predicted_ts, predicted_ts_high] = speeds;
        let predicted_us = f64::from(rows) / predicted_ts * 1e6;
        Record {
            kind: "predicted",
            model: "tiny".to_owned(),
            model_source: "nowhere".to_owned(),
            activations: "a8",
            type_kv: "f16",
            groups: 96,
            test: test.to_owned(),
            rows,
            context: 512,
            predicted_ts_low,
            predicted_ts,
            predicted_ts_high,
            step_bytes: 1536,
            bus_limit_ts: 133.4,
            step: StepPrediction {
                predicted_us_low: 0.0,
                predicted_us,
                predicted_us_high: 0.0,
                bound: Bound::Issue,
                shares: shares.iter().copied().collect(),
                kernels: std::collections::BTreeMap::new(),
            },
        }
    }

    /// Speeds have three digits or are whole; of the shares the two largest are told, if they are a twentieth.
    #[test]
    fn the_text_has_a_row_for_each_step_and_says_what_is_in_it() {
        let records = [
            made_up(
                "tg",
                1,
                [85.2, 99.9, 100.0],
                &[(Bound::Issue, 0.09), (Bound::Bandwidth, 0.81), (Bound::HandOver, 0.1)],
            ),
            made_up("pp512", 512, [3711.0, 6400.0, 7700.0], &[(Bound::Issue, 0.04), (Bound::Latency, 0.96)]),
            made_up("tg", 8, [1.0, 1000.0, 2.0], &[(Bound::Gl2, 0.95), (Bound::Lds, 0.05)]),
        ];
        let found = text(&records);
        let rows = cells(&found);
        let joined: Vec<String> = rows.iter().map(|row| row.join("; ")).collect();
        let expected = [
            "tiny; a8; tg; 1; 99.9; 85.2 .. 100; bandwidth 81 %, hand-over 10 %; 10.01; 1.50 KiB; 133",
            "tiny; a8; pp512; 512; 6400; 3711 .. 7700; latency 96 %; 80.00; 1.50 KiB; 133",
            "tiny; a8; tg; 8; 1000; 1.0 .. 2.0; GL2 95 %, LDS 5 %; 8.00; 1.50 KiB; 133",
            "measured by others; model; card; test; t/s; source",
        ];
        assert_eq!(joined[2..6], expected);
        let headings = "model; activations; test; rows; predicted t/s; low .. high; bound by; predicted step ms; \
                        bytes/step; bus limit t/s";
        assert_eq!(joined[0], headings);
        let peer = "hipfire; Qwen3.5-9B MFP4; R9700; decode; 87.5; hipfire PR 235";
        assert!(joined.iter().any(|row| row == peer), "{found}");
        let middle = "\n\n\
            predicted: for an R9700, by a model (docs/prediction.md), from counts of the kernels on the virtual \
            device. Nothing here was measured on a card.\n\
            rows: slots that decode at position 511, or rows of one prompt in a step. Keys and values: f16. \
            Workgroups: 96.\n\
            low .. high: the model's numbers are ranges, which are taken to err independently of each other.\n\
            bound by: the two largest shares of the critical path of the likeliest time. \
            bus limit: bytes/step at 640 GB/s and nothing else.\n\n| measured by others";
        assert!(found.contains(middle), "{found}");
        let end =
            "\n\nThese are other people's measurements, of other programs; the model does not use them.\n";
        assert!(found.ends_with(end), "{found}");
        // Predictions come before what others measured.
        let kinds: Vec<&str> = json(&records[..2])
            .iter()
            .map(|one| match one {
                AnyRecord::Predicted(record) => record.kind,
                AnyRecord::Published(published) => published.kind,
            })
            .collect();
        assert_eq!(kinds, [vec!["predicted"; 2], vec!["published"; PEERS.len()]].concat());
    }

    #[test]
    fn subjects_are_the_published_shapes_and_the_model_inside() {
        let names = |subjects: Vec<Subject>| subjects.into_iter().map(|one| one.name).collect::<Vec<_>>();
        assert_eq!(
            names(Subject::defaults().unwrap()),
            ["Qwen3-8B Q4_K_M", "Qwen3-0.6B Q8_0", "Qwen3-0.6B BF16", "qwen3 7.35 M Q4_0"]
        );
        assert_eq!(
            names(Subject::releases().unwrap()),
            ["Llama-3.1-8B Q4_K_M", "Gemma-3-12B Q4_K_M", "Devstral-24B Q4_K_M", "Qwen3-32B Q4_K_M"]
        );
    }
}
