//! What hostile folders of safetensors cost: memory at most eight times the files plus 16 MiB.
//!
//! Every count, length and nesting that the files can state has a case. Memory is the peak of a counting allocator over
//! opening the folder, building its tokenizer and naming its tensors; the files lie in memory before.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod folder;

use folder::{Made, byte_tokenizer, file, with_header, words};
use serde_json::json;
use std::sync::Arc;
use zrt_engine::gguf::Bytes;
use zrt_engine::model::Model;
use zrt_engine::safetensors::{Folder, open};
use zrt_engine::tokenizer::Tokenizer;

/// Bytes of memory for each byte of the files, and in addition to that.
const BYTES_PER_BYTE: u64 = 8;
const BYTES_MORE: u64 = 16 << 20;
const MIB: usize = 1 << 20;

/// Opens a folder of which one file is another; returns the outcome in words.
fn bounded(name: &str, replaced: &str, bytes: Vec<u8>) -> String {
    let mut files = Made::llama().files();
    let length = bytes.len();
    if replaced == "model.safetensors.index.json" {
        // The one file would win over it.
        files.remove("model.safetensors");
    }
    files.insert(replaced.to_owned(), Bytes::from(bytes));
    let folder = Folder::Memory(files);
    let mut outcome = String::new();
    let counted = allocation_counter::measure(|| {
        outcome = match open(&folder) {
            Err(error) => words(&error),
            Ok(gguf) => {
                let tokenizer = Tokenizer::from_gguf(&gguf).map(|one| one.token_count());
                let model = Model::load(Arc::new(gguf)).map(|_| ());
                format!("{tokenizer:?}; {model:?}")
            }
        }
    });
    let limit = BYTES_PER_BYTE * length as u64 + BYTES_MORE;
    let peak = counted.bytes_max;
    println!(
        "{name}: {:.1} MiB of file, {:.1} of memory: {outcome:.100}",
        length as f64 / MIB as f64,
        peak as f64 / MIB as f64
    );
    assert!(peak <= limit, "{name}: {peak} bytes for a file of {length}, at most {limit}");
    outcome
}

#[test]
fn headers_cost_what_they_are_long() {
    let entries = |count: usize, entry: &dyn Fn(usize) -> String| {
        let entries: Vec<String> = (0..count).map(entry).collect();
        with_header(&format!("{{{}}}", entries.join(",")), &[])
    };
    let model = "model.safetensors";
    let empty =
        |index: usize| format!("\"{index}\":{{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    assert!(bounded("tensors", model, entries(200_000, &empty)).contains("is missing"));
    let same = |_| "\"a\":{\"dtype\":\"I8\",\"shape\":[0],\"data_offsets\":[0,0]}".to_owned();
    bounded("tensors of one name", model, entries(200_000, &same));
    let shape = format!(
        "{{\"a\":{{\"dtype\":\"I8\",\"shape\":[{}1],\"data_offsets\":[0,1]}}}}",
        "1,".repeat(8 * MIB)
    );
    bounded("a long shape", model, with_header(&shape, &[0]));
    let nested = format!("{{\"__metadata__\":{}", "[".repeat(16 * MIB));
    assert!(bounded("nesting", model, with_header(&nested, &[])).contains("nested more than 64 deep"));
    bounded("a long name", model, with_header(&format!("{{\"{}\":1}}", "\\u0041".repeat(4 * MIB)), &[]));
    let mut claimed = file(&Made::llama().tensors);
    claimed[..8].copy_from_slice(&90_000_000u64.to_le_bytes());
    assert!(bounded("a header that is not there", model, claimed).contains("it is cut"));
}

/// Rows of the embedding become place holders in the vocabulary.
#[test]
fn rows_of_an_embedding_cost_what_they_are_long() {
    let rows = |rows: u64, columns: u64| {
        let bytes = vec![0; (rows * columns) as usize];
        file(&Made::llama().tensor("model.embed_tokens.weight", "F8_E4M3", &[rows, columns], bytes).tensors)
    };
    let model = "model.safetensors";
    bounded("many short rows", model, rows(1 << 20, 32));
    assert!(
        bounded("rows that are too short", model, rows(1 << 22, 8)).contains("rows of at least 32 bytes")
    );
}

#[test]
fn tokenizers_cost_what_they_are_long() {
    let name = "tokenizer.json";
    let with = |key: &str, text: String| {
        let mut tokenizer = byte_tokenizer();
        tokenizer["model"][key] = json!("HERE");
        tokenizer.to_string().replace("\"HERE\"", &text).into_bytes()
    };
    let list = |count: usize, one: &str| format!("[{}{one}]", format!("{one},").repeat(count));
    bounded("merges", name, with("merges", list(MIB, "\"a b\"")));
    bounded("merges as lists", name, with("merges", list(MIB, "[\"a\",\"b\"]")));
    bounded("a merge of many sides", name, with("merges", format!("[{}]", list(4 * MIB, "\"\""))));
    bounded("one token many times", name, with("vocab", format!("{{{}\"a\":1}}", "\"a\":1,".repeat(MIB))));
    let outside = bounded("a high number", name, with("vocab", "{\"a\":4000000000}".into()));
    assert!(outside.contains("has the number 4000000000"), "{outside}");
    let mut added = byte_tokenizer();
    added["added_tokens"] = json!("HERE");
    let many = list(500_000, "{\"id\":1,\"content\":\"\"}");
    bounded("added tokens", name, added.to_string().replace("\"HERE\"", &many).into_bytes());
    let stages = list(500_000, "{\"type\":\"\"}");
    let mut normal = byte_tokenizer();
    normal["normalizer"] = json!({"type": "Sequence", "normalizers": "HERE"});
    bounded("normalisers", name, normal.to_string().replace("\"HERE\"", &stages).into_bytes());
}

#[test]
fn configurations_are_short() {
    let long = format!("{{\"a\":[{}0]}}", "0,".repeat(120_000));
    bounded("a long configuration", "config.json", long.into_bytes());
    let longer = vec![b' '; 1 << 19];
    assert!(bounded("too long", "config.json", longer).contains("at most 262144 are accepted"));
    let names = format!("{{\"weight_map\":{{{}\"a\":\"b\"}}}}", "\"a\":\"b\",".repeat(MIB));
    let index = bounded("an index", "model.safetensors.index.json", names.into_bytes());
    assert!(index.contains("has no `b`"), "{index}");
}

#[test]
fn what_lies_beside_a_tokenizer_costs_what_it_is_long() {
    let template = "chat_template.jinja";
    let taken = bounded("a long template", template, vec![b'a'; 12 * MIB]);
    assert!(taken.starts_with("Ok("), "{taken}");
    assert!(bounded("a template that is no text", template, vec![0xff; 12 * MIB]).contains("not UTF-8"));
    assert!(bounded("too long a template", template, vec![b'a'; 17 * MIB]).contains("at most 16777216"));
    let settings = "tokenizer_config.json";
    let text = |text: String| format!("{{\"chat_template\":\"{text}\"}}").into_bytes();
    bounded("a template within", settings, text("a".repeat(12 * MIB)));
    bounded("a template of escapes", settings, text("\\u0041".repeat(2 * MIB)));
    let templates = "{\"name\":\"default\",\"template\":\"\"},".repeat(300_000);
    let templates = format!("{{\"chat_template\":[{templates}{{}}]}}");
    bounded("many templates", settings, templates.into_bytes());
    bounded("a long token", settings, format!("{{\"eos_token\":\"{}\"}}", "a".repeat(12 * MIB)).into_bytes());
    let ends = format!("{{\"eos_token_id\":[{}0]}}", "0,".repeat(120_000));
    bounded("many ends", "generation_config.json", ends.into_bytes());
    let ends: Vec<String> = (0..30_000).map(|id: u32| id.to_string()).collect();
    let ends = format!("{{\"eos_token_id\":[{}]}}", ends.join(","));
    assert!(bounded("many other ends", "generation_config.json", ends.into_bytes()).contains("is not built"));
}
