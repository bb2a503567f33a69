//! Folders of safetensors, in the layout of the Hugging Face hub, as models.
//!
//! A folder is presented as a GGUF file: its configuration and tokenizer as metadata under GGUF's keys, its tensors
//! under GGUF's names, made row by row when they are read. So everything behind [`crate::gguf`] knows one format. With
//! weights in F32, F16 or BF16, a GGUF file of the same numbers and tokens gives the same bits; decision 40 says where
//! the file of llama.cpp's converter is another one.
//!
//! Contract: the files are untrusted. Opening ends in a value or a [`SafetensorsError`] that says what is wrong and in
//! which file; memory is at most eight times the files plus 16 MiB, and no byte of a tensor is read. Reading a tensor
//! can still fail: a code or a scale may be no number.
//!
//! Files: `config.json` and `tokenizer.json`; `model.safetensors`, or else `model.safetensors.index.json` and what it
//! names; and, where they are there, `generation_config.json`, `tokenizer_config.json` and `chat_template.jinja`.

mod config;
mod error;
mod folder;
mod gguf_header;
pub mod header;
mod json;
mod names;
mod tensors;
mod tokenizer;

pub use error::SafetensorsError;
pub use folder::Folder;
pub use json::JsonError;

use crate::architecture::Architecture;
use crate::gguf::limits::ARRAY_ELEMENTS_MAX;
use crate::gguf::{Gguf, GgufError};
use crate::weights::{WeightClass, WeightId};
use folder::Content;
use gguf_header::GgufHeader;
use header::Stored;
use json::Json;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

/// Longest index accepted, in bytes.
const INDEX_BYTES_MAX: u64 = 1 << 28;
/// Files of tensors.
const FILES_MAX: u64 = 4096;

/// Shortest row of an embedding, in bytes: what a token takes is at most eight times as much.
const ROW_BYTES_MIN: u64 = 32;

const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Opens a GGUF file, or a folder of safetensors.
pub fn open_model(path: &Path) -> Result<Gguf, GgufError> {
    if !path.is_dir() {
        return Gguf::open(path);
    }
    open(&Folder::Path(path.to_path_buf())).map_err(|error| GgufError::Folder(Box::new(error)))
}

/// Opens a folder.
pub fn open(folder: &Folder) -> Result<Gguf, SafetensorsError> {
    let mut header = GgufHeader::default();
    let bytes = folder.need(config::FILE, config::FILE_BYTES_MAX)?;
    let config = config::read(&bytes, &mut header).map_err(|error| error.in_file(config::FILE))?;
    drop(bytes);
    let (files, stored) = read_headers(folder)?;
    tokenizer::read(folder, &config, embedding_rows(&stored, config.architecture)?, &mut header)?;
    let tensors = tensors::Tensors::new(files, stored, &config, &mut header)?;
    let (head, _) = header.finish();
    Ok(Gguf::from_made(head, Box::new(tensors))?)
}

/// Rows of the embedding: a token each, which takes memory too.
fn embedding_rows(
    stored: &HashMap<String, Stored>,
    architecture: Architecture,
) -> Result<u64, SafetensorsError> {
    let name = names::stored_name(architecture, WeightId::new(WeightClass::Embedding, 0));
    let Some(embedding) = stored.get(&name) else {
        return Err(SafetensorsError::TensorMissing(name));
    };
    match embedding.shape[..] {
        [rows, _] if rows > ARRAY_ELEMENTS_MAX => {
            Err(SafetensorsError::Limit { what: "rows of the embedding", limit: ARRAY_ELEMENTS_MAX })
        }
        [rows, _] if rows > 0 && embedding.bytes() / rows >= ROW_BYTES_MIN => Ok(rows),
        _ => Err(SafetensorsError::Shape {
            name,
            found: embedding.shape.clone(),
            wanted: format!("a matrix with rows of at least {ROW_BYTES_MIN} bytes"),
        }),
    }
}

/// The files of tensors and what they hold, by name.
fn read_headers(folder: &Folder) -> Result<(Vec<Content>, HashMap<String, Stored>), SafetensorsError> {
    let (mut files, mut stored) = (Vec::new(), Vec::new());
    for name in file_names(folder)? {
        let content = folder.map(&name)?;
        header::read(&content, files.len(), &mut stored).map_err(|error| error.in_file(&name))?;
        files.push(content);
    }
    let mut by_name = HashMap::with_capacity(stored.len());
    for tensor in stored {
        if let Some(first) = by_name.insert(tensor.name.clone(), tensor) {
            return Err(SafetensorsError::DuplicateTensor { name: first.name });
        }
    }
    Ok((files, by_name))
}

/// The one file, or those of the index. As in the transformers library, an index beside the one file is a stale one.
fn file_names(folder: &Folder) -> Result<BTreeSet<String>, SafetensorsError> {
    let missing = match folder.map(WHOLE) {
        Err(missing @ SafetensorsError::FileMissing { .. }) => missing,
        other => return other.map(|_| BTreeSet::from([WHOLE.to_owned()])),
    };
    let index = folder.read(INDEX, INDEX_BYTES_MAX)?.ok_or(missing)?;
    indexed_names(&index).map_err(|error| error.in_file(INDEX))
}

/// The files that an index names. Which tensor is in which, the files say themselves.
fn indexed_names(index: &[u8]) -> Result<BTreeSet<String>, SafetensorsError> {
    let mut names = BTreeSet::new();
    let mut json = Json::new(index)?;
    json.object(|json, key| {
        if key != "weight_map" {
            return Ok(json.skip()?);
        }
        json.object(|json, _| {
            let name = json.text()?;
            if !names.contains(&*name) {
                if name.is_empty() || name.contains(['/', '\\', '\0']) || name.starts_with('.') {
                    return Err(SafetensorsError::FileName { name: name.into_owned() });
                }
                if names.len() as u64 == FILES_MAX {
                    return Err(SafetensorsError::Limit { what: "files of tensors", limit: FILES_MAX });
                }
                names.insert(name.into_owned());
            }
            Ok(())
        })
    })?;
    json.end()?;
    if names.is_empty() {
        return Err(SafetensorsError::KeyMissing { key: "weight_map".to_owned() });
    }
    Ok(names)
}
