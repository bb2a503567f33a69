//! The model of a command: a file or folder given by `--model`, or the model inside the program.
//!
//! Contract: reads metadata only; weights are read when a session loads them.

use crate::error::ToolError;
use std::path::Path;
use std::sync::Arc;
use zrt_engine::gguf::{Gguf, GgufError, TensorKind};
use zrt_engine::model::Model;
use zrt_engine::safetensors::open_model;
use zrt_engine::tokenizer::Tokenizer;

/// Name of the model inside the program.
pub const DEFAULT_MODEL_NAME: &str = "tales-qwen3-Q4_0.gguf";

/// The model inside the program: 7.35 million parameters, trained for this project on stories.
static DEFAULT_MODEL: &[u8] =
    include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../models/tales-qwen3-Q4_0.gguf"));

/// A model with its tokenizer.
pub struct LoadedModel {
    /// The path given, or [`DEFAULT_MODEL_NAME`].
    pub filename: String,
    /// The checked model.
    pub model: Model,
    /// Its tokenizer.
    pub tokenizer: Tokenizer,
}

impl LoadedModel {
    /// Opens the GGUF file or the folder of safetensors at `path`, or the model inside the program.
    pub fn open(path: Option<&Path>) -> Result<LoadedModel, ToolError> {
        let filename = path.map_or(DEFAULT_MODEL_NAME.to_owned(), |path| path.display().to_string());
        LoadedModel::of(filename, path.map_or_else(|| Gguf::from_bytes(DEFAULT_MODEL), open_model))
    }

    /// The same, but of a file only the beginning need be there. Weights that are not there cannot be read.
    pub fn open_beginning(path: Option<&Path>) -> Result<LoadedModel, ToolError> {
        let filename = path.map_or(DEFAULT_MODEL_NAME.to_owned(), |path| path.display().to_string());
        let open = |path: &Path| if path.is_dir() { open_model(path) } else { Gguf::open_beginning(path) };
        LoadedModel::of(filename, path.map_or_else(|| Gguf::from_bytes(DEFAULT_MODEL), open))
    }

    fn of(filename: String, gguf: Result<Gguf, GgufError>) -> Result<LoadedModel, ToolError> {
        let gguf = gguf.map_err(|source| ToolError::Gguf { model: filename.clone(), source })?;
        let tokenizer = Tokenizer::from_gguf(&gguf)
            .map_err(|source| ToolError::Tokenizer { model: filename.clone(), source })?;
        let model = Model::load(Arc::new(gguf))
            .map_err(|source| ToolError::Model { model: filename.clone(), source })?;
        Ok(LoadedModel { filename, model, tokenizer })
    }

    /// Architecture, size and storage type in a few words, in the manner of llama-bench: `qwen3 7.35 M Q4_0`.
    pub fn description(&self) -> String {
        let architecture = self.model.config.architecture.name();
        format!("{architecture} {} {}", crate::units::count(self.model.parameter_count()), self.storage())
    }

    /// The file's own name for its quantisation, else the type of most of its bytes.
    fn storage(&self) -> String {
        let declared = self.model.gguf.metadata.u32("general.file_type").ok().and_then(file_type_name);
        declared
            .map_or_else(|| self.dominant_kind().map_or("empty", TensorKind::name).to_owned(), str::to_owned)
    }

    fn dominant_kind(&self) -> Option<TensorKind> {
        let tensors = self.model.gguf.tensors();
        let bytes_of = |kind: &TensorKind| -> u64 {
            tensors.iter().filter(|tensor| tensor.kind == *kind).map(|tensor| tensor.bytes).sum()
        };
        TensorKind::ALL.iter().copied().max_by_key(bytes_of)
    }
}

/// Names of `general.file_type` (`llama_ftype` in `llama.h`, and the names llama.cpp prints for them).
fn file_type_name(number: u32) -> Option<&'static str> {
    Some(match number {
        0 => "all F32",
        1 => "F16",
        2 => "Q4_0",
        3 => "Q4_1",
        7 => "Q8_0",
        8 => "Q5_0",
        9 => "Q5_1",
        10 => "Q2_K - Medium",
        11 => "Q3_K - Small",
        12 => "Q3_K - Medium",
        13 => "Q3_K - Large",
        14 => "Q4_K - Small",
        15 => "Q4_K - Medium",
        16 => "Q5_K - Small",
        17 => "Q5_K - Medium",
        18 => "Q6_K",
        25 => "IQ4_NL - 4.5 bpw",
        30 => "IQ4_XS - 4.25 bpw",
        32 => "BF16",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_inside_the_program_loads_and_describes_itself() {
        let loaded = LoadedModel::open(None).unwrap();
        assert_eq!(loaded.description(), "qwen3 7.35 M Q4_0");
        assert_eq!(loaded.filename, DEFAULT_MODEL_NAME);
    }

    #[test]
    fn a_folder_without_a_model_is_named_with_the_remedy() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let text = crate::error::sentence(&LoadedModel::open(Some(folder)).err().expect("it has no model"));
        assert!(text.contains("the folder has no `config.json`; give a folder with config.json"), "{text}");
    }

    #[test]
    fn a_missing_file_is_named_with_the_remedy() {
        let error = LoadedModel::open(Some(Path::new("no/model.gguf"))).err().expect("there is no such file");
        let text = crate::error::sentence(&error);
        assert!(text.contains("no/model.gguf") && text.contains("--model"), "{text}");
    }

    /// Numbers of `llama_ftype` in llama.cpp's llama.h; those that were taken back, and ones that nobody knows, have no
    /// name.
    #[test]
    fn file_types_have_llama_cpps_names() {
        let names = [
            (0, "all F32"),
            (1, "F16"),
            (2, "Q4_0"),
            (3, "Q4_1"),
            (7, "Q8_0"),
            (8, "Q5_0"),
            (9, "Q5_1"),
            (10, "Q2_K - Medium"),
            (11, "Q3_K - Small"),
            (12, "Q3_K - Medium"),
            (13, "Q3_K - Large"),
            (14, "Q4_K - Small"),
            (15, "Q4_K - Medium"),
            (16, "Q5_K - Small"),
            (17, "Q5_K - Medium"),
            (18, "Q6_K"),
            (25, "IQ4_NL - 4.5 bpw"),
            (30, "IQ4_XS - 4.25 bpw"),
            (32, "BF16"),
        ];
        let found: Vec<(u32, &str)> =
            (0..64).filter_map(|number| Some((number, file_type_name(number)?))).collect();
        assert_eq!(found, names);
    }

    /// Most bytes of the model inside the program are of its matrices.
    #[test]
    fn the_type_of_most_bytes_is_that_of_the_matrices() {
        assert_eq!(LoadedModel::open(None).unwrap().dominant_kind(), Some(TensorKind::Q4_0));
    }
}
