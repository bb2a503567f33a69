//! README.md's table of GGUF files matches the code: each cell is tested with a file that this test makes.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use std::collections::BTreeSet;
use std::sync::Arc;
use zrt_engine::gguf::{Gguf, TensorKind};
use zrt_engine::model::{Model, ModelError};
use zrt_engine::tokenizer::Tokenizer;

const README: &str = include_str!("../../README.md");
const RUNS: &str = "runs";
const REFUSED: &str = "refused";
/// Names that GGUF files have, of which none may run without a row in the table.
const ARCHITECTURES: &[&str] =
    &["llama4", "gemma3", "qwen2", "qwen3moe", "qwen3next", "qwen35", "phi3", "gpt-oss", "deepseek2"];
/// Width, heads, heads of keys and values, rows of the embedding; a row is a whole block of every type.
const WIDTH: u64 = 256;
const HEADS: u64 = 4;
const KV_HEADS: u64 = 2;
const VOCABULARY: u64 = 16;
/// GGUF's numbers of value types.
const U32: u32 = 4;
const F32: u32 = 6;
const TEXT: u32 = 8;

/// Writes text with its length before it.
fn put_text(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

fn put_pair(file: &mut Vec<u8>, key: &str, value_type: u32, value: &[u8]) {
    put_text(file, key);
    file.extend(value_type.to_le_bytes());
    file.extend(value);
}

/// A model of one layer with all its matrices of one type, and zeros for data.
fn model(architecture: &str, kind: TensorKind) -> Result<Model, ModelError> {
    let matrices: &[(&str, u64, u64)] = &[
        ("token_embd", WIDTH, VOCABULARY),
        ("blk.0.attn_q", WIDTH, WIDTH),
        ("blk.0.attn_k", WIDTH, WIDTH / HEADS * KV_HEADS),
        ("blk.0.attn_v", WIDTH, WIDTH / HEADS * KV_HEADS),
        ("blk.0.attn_output", WIDTH, WIDTH),
        ("blk.0.ffn_gate", WIDTH, WIDTH),
        ("blk.0.ffn_up", WIDTH, WIDTH),
        ("blk.0.ffn_down", WIDTH, WIDTH),
    ];
    let mut norms = vec![("blk.0.attn_norm", WIDTH), ("blk.0.ffn_norm", WIDTH), ("output_norm", WIDTH)];
    if architecture == "qwen3" {
        norms.extend([("blk.0.attn_q_norm", WIDTH / HEADS), ("blk.0.attn_k_norm", WIDTH / HEADS)]);
    }
    let numbers = [
        ("embedding_length", WIDTH),
        ("attention.head_count", HEADS),
        ("attention.head_count_kv", KV_HEADS),
        ("block_count", 1),
        ("feed_forward_length", WIDTH),
        ("context_length", 64),
    ];
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(((matrices.len() + norms.len()) as u64).to_le_bytes());
    file.extend((numbers.len() as u64 + 2).to_le_bytes());
    let mut name = Vec::new();
    put_text(&mut name, architecture);
    put_pair(&mut file, "general.architecture", TEXT, &name);
    for (key, value) in numbers {
        put_pair(&mut file, &format!("{architecture}.{key}"), U32, &(value as u32).to_le_bytes());
    }
    let epsilon = format!("{architecture}.attention.layer_norm_rms_epsilon");
    put_pair(&mut file, &epsilon, F32, &1e-5f32.to_le_bytes());
    let matrices = matrices.iter().map(|(name, columns, rows)| (*name, vec![*columns, *rows], kind));
    let norms = norms.into_iter().map(|(name, columns)| (name, vec![columns], TensorKind::F32));
    let mut data = 0u64;
    for (name, dimensions, kind) in matrices.chain(norms) {
        put_text(&mut file, &format!("{name}.weight"));
        file.extend((dimensions.len() as u32).to_le_bytes());
        dimensions.iter().for_each(|dimension| file.extend(dimension.to_le_bytes()));
        file.extend(kind.id().to_le_bytes());
        file.extend(data.to_le_bytes());
        let elements: u64 = dimensions.iter().product();
        data = (data + elements / kind.block_elements() * kind.block_bytes()).next_multiple_of(32);
    }
    file.resize(file.len().next_multiple_of(32) + data as usize, 0);
    Model::load(Arc::new(Gguf::from_bytes(file).unwrap()))
}

/// `runs`, or `refused` if the type or the architecture is the reason.
fn verdict(architecture: &str, kind: TensorKind) -> &'static str {
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
    let kind = |cell: &str| *TensorKind::ALL.iter().find(|kind| format!("`{kind}`") == cell).unwrap();
    let [_, kinds @ .., other_kinds] = &header[..] else { panic!("{header:?}") };
    assert_eq!((*other_kinds, others[0]), ("every other type", "every other"));
    let kinds: Vec<TensorKind> = kinds.iter().map(|cell| kind(cell)).collect();
    for row in rows {
        let architecture = row[0].trim_matches('`');
        let expected: Vec<&str> = kinds.iter().map(|kind| verdict(architecture, *kind)).collect();
        assert_eq!(row[1..row.len() - 1], expected, "{architecture}");
        for kind in TensorKind::ALL.iter().filter(|kind| !kinds.contains(kind)) {
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
