//! README.md's table of GGUF files matches the code: each cell is tested with a file that this test makes.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod made;

use made::{Made, TEXT, put_pair, put_text};
use std::collections::BTreeSet;
use zrt_engine::gguf::{Gguf, TensorKind};
use zrt_engine::model::Model;
use zrt_engine::model_error::ModelError;
use zrt_engine::tokenizer::Tokenizer;

const README: &str = include_str!("../../README.md");
const RUNS: &str = "runs";
const REFUSED: &str = "refused";
/// Names that GGUF files have, of which none may run without a row in the table.
const ARCHITECTURES: &[&str] = &[
    "llama4",
    "gemma2",
    "gemma4",
    "mistral3",
    "qwen3moe",
    "qwen3next",
    "qwen35",
    "phi3",
    "gpt-oss",
    "deepseek2",
];

fn model(architecture: &'static str, kind: TensorKind) -> Result<Model, ModelError> {
    Made::new(architecture, kind).load()
}

/// `runs`, or `refused` if the type or the architecture is the reason.
fn verdict(architecture: &'static str, kind: TensorKind) -> &'static str {
    match model(architecture, kind) {
        Ok(_) => RUNS,
        Err(ModelError::Kind { .. } | ModelError::Architecture(_)) => REFUSED,
        Err(error) => panic!("{architecture}, {kind}: {error}"),
    }
}

/// Words between backticks.
fn names(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// The table's rows as cells.
fn table() -> Vec<Vec<&'static str>> {
    let lines = README.lines().skip_while(|line| !line.starts_with("| `general.architecture` |"));
    let rows = lines.take_while(|line| line.starts_with('|'));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

#[test]
fn every_cell_of_the_table_is_what_happens() {
    let table = table();
    let [header, _, rows @ .., others] = &table[..] else { panic!("{table:?}") };
    let kind = |name: &&str| *TensorKind::ALL.iter().find(|kind| kind.name() == *name).unwrap();
    let [_, kinds @ .., other_kinds] = &header[..] else { panic!("{header:?}") };
    assert_eq!((*other_kinds, others[0]), ("every other type", "every other"));
    let kinds: Vec<Vec<TensorKind>> =
        kinds.iter().map(|cell| names(cell).iter().map(kind).collect()).collect();
    assert!(kinds.iter().all(|kinds| !kinds.is_empty()), "{header:?}");
    for row in rows {
        let architecture = row[0].trim_matches('`');
        for (kinds, cell) in kinds.iter().zip(&row[1..]) {
            for kind in kinds {
                assert_eq!(verdict(architecture, *kind), *cell, "{architecture}, {kind}");
            }
        }
        for kind in TensorKind::ALL.iter().filter(|kind| !kinds.iter().flatten().any(|known| known == *kind))
        {
            assert_eq!(verdict(architecture, *kind), row[row.len() - 1], "{architecture}, {kind}");
        }
    }
    assert!(others[1..].iter().all(|cell| *cell == REFUSED), "{others:?}");
}

#[test]
fn the_table_has_every_architecture_that_runs_and_no_other() {
    let table = table();
    let rows: BTreeSet<&str> = table[2..table.len() - 1].iter().map(|row| row[0].trim_matches('`')).collect();
    let error = model("no-such-architecture", TensorKind::F32).unwrap_err().to_string();
    let (_, known) = error.split_once("this build runs ").unwrap();
    assert_eq!(rows, names(known));
    for architecture in ARCHITECTURES.iter().filter(|name| !rows.contains(*name)) {
        assert_eq!(verdict(architecture, TensorKind::F32), REFUSED, "{architecture}");
    }
    let line = README.lines().find(|line| line.starts_with("Refused are for example ")).unwrap();
    assert!(names(line).is_disjoint(&rows) && !names(line).is_empty(), "{line}");
    for architecture in names(line) {
        assert_eq!(verdict(architecture, TensorKind::F32), REFUSED, "{architecture}");
    }
}

#[test]
fn the_pre_tokenizers_are_those_that_are_known() {
    let (_, after) = README.split_once("\nKnown pre-tokenizers are ").unwrap();
    let (line, _) = after.split_once("\n\n").unwrap();
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(0u64.to_le_bytes());
    file.extend(2u64.to_le_bytes());
    for (key, value) in [("tokenizer.ggml.model", "gpt2"), ("tokenizer.ggml.pre", "no-such-pre-tokenizer")] {
        let mut text = Vec::new();
        put_text(&mut text, value);
        put_pair(&mut file, key, TEXT, &text);
    }
    let gguf = Gguf::from_bytes(file).unwrap();
    let error = Tokenizer::from_gguf(&gguf).err().unwrap().to_string();
    let (_, known) = error.split_once("known are ").unwrap_or_else(|| panic!("{error}"));
    assert_eq!(names(line), known.split(", ").collect::<BTreeSet<&str>>());
}
