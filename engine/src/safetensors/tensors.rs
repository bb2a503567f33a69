//! Tensors as GGUF has them, made of a folder's when they are read.
//!
//! Contract: which tensor becomes which is settled by [`Tensors::new`] from names, types and shapes; bytes are made row
//! by row when they are asked for, in any order and from any thread. No number is rounded: rows of queries and keys
//! change places for interleaved rotary pairs, vectors become F32, gemma3's norms get the 1 that their layer adds (one
//! rounding, as in llama.cpp's converter), and codes get the scale of their block in front. Codes that are NaN
//! are refused, and so are scales that are no numbers or above 2^96.

use super::SafetensorsError;
use super::config::Config;
use super::folder::Content;
use super::gguf_header::GgufHeader;
use super::header::{Dtype, Stored};
use super::names;
use crate::architecture::Architecture;
use crate::gguf::{Made, TensorKind};
use crate::model::ROPE_DIVISORS;
use crate::oracle::blocks::e4m3;
use crate::weights::{WeightClass, WeightId};
use half::{bf16, f16};
use std::collections::HashMap;
use std::error::Error;

/// Columns of a block with a scale.
const BLOCK_COLUMNS: u64 = 32;
/// Largest scale accepted, 2^96: a weight, which is at most 448 times as much, is finite.
const SCALE_MAX: f32 = 79_228_162_514_264_337_593_543_950_336.0;

/// How the bytes of a tensor come about.
enum Recipe {
    /// As they are here.
    Given(Vec<u8>),
    /// As stored.
    Rows,
    /// A vector as F32, with `add` on top.
    Vector { add: f32 },
    /// Codes of one byte with scales.
    Scaled(Scales),
}

/// The scales of a matrix.
struct Scales {
    tensor: Stored,
    /// Rows and columns that share one.
    rows: u64,
    columns: u64,
    /// Scales of a row of the matrix.
    per_row: u64,
}

/// A tensor of the GGUF file.
struct Tensor {
    /// What it is made of, and the name for messages.
    stored: Option<Stored>,
    recipe: Recipe,
    /// Heads whose rows change places; 0: none do.
    heads: u64,
    /// First byte, from the start of the data.
    offset: u64,
    rows: u64,
    row_bytes: u64,
}

/// All tensors of a model.
pub(super) struct Tensors {
    files: Vec<Content>,
    /// By offset.
    tensors: Vec<Tensor>,
    data_bytes: u64,
}

impl Tensors {
    /// Settles which tensor becomes which, and writes their entries. Fails if one is missing, without a place, or of a
    /// type or shape that cannot be read.
    pub(super) fn new(
        files: Vec<Content>,
        mut by_name: HashMap<String, Stored>,
        config: &Config,
        header: &mut GgufHeader,
    ) -> Result<Tensors, SafetensorsError> {
        let mut tensors = Vec::new();
        for class in WeightClass::ALL.into_iter().filter(|class| config.architecture.has_class(*class)) {
            if class == WeightClass::Output && config.is_tied {
                continue;
            }
            let layers = if class.is_per_layer() { config.layers } else { 1 };
            for layer in 0..layers {
                let id = WeightId::new(class, layer);
                let name = names::stored_name(config.architecture, id);
                let stored = by_name.remove(&name).ok_or(SafetensorsError::TensorMissing(name))?;
                tensors.push(weight(config, id, stored, &mut by_name, header)?);
            }
        }
        if !config.rope_divisors.is_empty() {
            let bytes: Vec<u8> =
                config.rope_divisors.iter().flat_map(|divisor| divisor.to_le_bytes()).collect();
            let (count, len) = (config.rope_divisors.len() as u64, bytes.len() as u64);
            let offset = header.tensor(ROPE_DIVISORS, TensorKind::F32, &[count], len);
            let recipe = Recipe::Given(bytes);
            tensors.push(Tensor { stored: None, recipe, heads: 0, offset, rows: 1, row_bytes: len });
        }
        let is_left = |name: &&String| !names::is_unused(name, config.is_tied);
        if let Some(name) = by_name.keys().filter(is_left).min() {
            return Err(SafetensorsError::TensorUnknown(name.clone()));
        }
        let data_bytes = tensors.last().map_or(0, |last| last.offset + last.rows * last.row_bytes);
        Ok(Tensors { files, tensors, data_bytes })
    }

    /// Row `row` of a tensor, as GGUF has it.
    fn make_row(&self, tensor: &Tensor, row: u64, out: &mut [u8]) -> Result<(), SafetensorsError> {
        let Some(stored) = &tensor.stored else {
            if let Recipe::Given(bytes) = &tensor.recipe {
                out.copy_from_slice(bytes);
            }
            return Ok(());
        };
        let row = stored_row(row, tensor.rows, tensor.heads);
        match &tensor.recipe {
            Recipe::Given(_) => Ok(()),
            Recipe::Rows => self.read(stored, row * tensor.row_bytes, out),
            Recipe::Vector { add } => {
                let mut bytes = vec![0; stored.bytes() as usize]; // No more than `out` has.
                self.read(stored, 0, &mut bytes)?;
                let width = stored.dtype.bytes() as usize;
                for (place, element) in out.chunks_exact_mut(4).zip(bytes.chunks_exact(width)) {
                    // Nothing is added where nothing is to be: -0 stays as it is.
                    let value = float(stored.dtype, element);
                    let value = if *add == 0.0 { value } else { value + add };
                    place.copy_from_slice(&value.to_le_bytes());
                }
                Ok(())
            }
            Recipe::Scaled(scales) => self.make_blocks(stored, scales, row, out),
        }
    }

    /// A row of blocks: scale, codes.
    fn make_blocks(
        &self,
        stored: &Stored,
        scales: &Scales,
        row: u64,
        out: &mut [u8],
    ) -> Result<(), SafetensorsError> {
        let block_bytes = (4 + BLOCK_COLUMNS) as usize;
        let columns = (out.len() / block_bytes) as u64 * BLOCK_COLUMNS;
        let mut codes = vec![0; columns as usize];
        self.read(stored, row * columns, &mut codes)?;
        if stored.dtype == Dtype::F8E4M3
            && let Some(column) = codes.iter().position(|code| e4m3::is_nan(*code))
        {
            return Err(SafetensorsError::Nan { name: stored.name.clone(), row, column: column as u64 });
        }
        let width = scales.tensor.dtype.bytes();
        let mut of_row = vec![0; (scales.per_row * width) as usize];
        self.read(&scales.tensor, row / scales.rows * scales.per_row * width, &mut of_row)?;
        for (index, (block, codes)) in
            out.chunks_exact_mut(block_bytes).zip(codes.chunks_exact(BLOCK_COLUMNS as usize)).enumerate()
        {
            let at = (index as u64 * BLOCK_COLUMNS / scales.columns * width) as usize;
            let scale = float(scales.tensor.dtype, &of_row[at..at + width as usize]);
            if !(0.0..=SCALE_MAX).contains(&scale.abs()) {
                return Err(SafetensorsError::Scale { name: scales.tensor.name.clone(), scale });
            }
            let (first, rest) = block.split_at_mut(4);
            first.copy_from_slice(&scale.to_le_bytes());
            rest.copy_from_slice(codes);
        }
        Ok(())
    }

    /// Bytes of a stored tensor from `begin` on.
    fn read(&self, stored: &Stored, begin: u64, out: &mut [u8]) -> Result<(), SafetensorsError> {
        let is_inside = begin + out.len() as u64 <= stored.bytes();
        if is_inside && self.files[stored.file].read_at(stored.begin + begin, out) {
            return Ok(());
        }
        Err(SafetensorsError::Changed { name: stored.name.clone() })
    }

    /// Fills `out` from byte `begin` of a tensor on.
    fn make(&self, tensor: &Tensor, begin: u64, mut out: &mut [u8]) -> Result<(), SafetensorsError> {
        let mut row = begin / tensor.row_bytes;
        let mut skipped = (begin % tensor.row_bytes) as usize;
        let mut whole = Vec::new();
        while !out.is_empty() {
            let (here, rest) = out.split_at_mut(out.len().min(tensor.row_bytes as usize - skipped));
            if here.len() as u64 == tensor.row_bytes {
                self.make_row(tensor, row, here)?;
            } else {
                whole.resize(tensor.row_bytes as usize, 0);
                self.make_row(tensor, row, &mut whole)?;
                here.copy_from_slice(&whole[skipped..skipped + here.len()]);
            }
            (row, skipped, out) = (row + 1, 0, rest);
        }
        Ok(())
    }
}

impl Made for Tensors {
    fn len(&self) -> u64 {
        self.data_bytes
    }

    fn read_at(&self, offset: u64, destination: &mut [u8]) -> Result<bool, Box<dyn Error + Send + Sync>> {
        let after = self.tensors.partition_point(|tensor| tensor.offset <= offset);
        let Some(tensor) = after.checked_sub(1).map(|index| &self.tensors[index]) else { return Ok(false) };
        let begin = offset - tensor.offset;
        if begin + destination.len() as u64 > tensor.rows * tensor.row_bytes {
            return Ok(false);
        }
        self.make(tensor, begin, destination)?;
        Ok(true)
    }
}

/// The row of the file that becomes row `row`. GGUF's interleaved pairs are elements 2j and 2j + 1 of a head; those of
/// safetensors files are j and j + half.
fn stored_row(row: u64, rows: u64, heads: u64) -> u64 {
    if heads == 0 {
        return row;
    }
    let head_size = rows / heads;
    let (head, element) = (row / head_size, row % head_size);
    head * head_size + element % 2 * (head_size / 2) + element / 2
}

/// An element of one of the float types.
fn float(dtype: Dtype, bytes: &[u8]) -> f32 {
    let pair = || std::array::from_fn(|byte| bytes[byte]);
    match dtype {
        Dtype::F16 => f16::from_le_bytes(pair()).to_f32(),
        Dtype::BF16 => bf16::from_le_bytes(pair()).to_f32(),
        _ => f32::from_le_bytes(std::array::from_fn(|byte| bytes[byte])),
    }
}

fn is_float(dtype: Dtype) -> bool {
    matches!(dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16)
}

/// A weight of the model, with its entry in the header.
fn weight(
    config: &Config,
    id: WeightId,
    stored: Stored,
    others: &mut HashMap<String, Stored>,
    header: &mut GgufHeader,
) -> Result<Tensor, SafetensorsError> {
    let is_vector = id.class.is_vector();
    let shape = |wanted: &str| SafetensorsError::Shape {
        name: stored.name.clone(),
        found: stored.shape.clone(),
        wanted: wanted.to_owned(),
    };
    let (rows, columns) = match stored.shape[..] {
        [columns] if is_vector && columns > 0 => (1, columns),
        [rows, columns] if !is_vector && rows > 0 && columns > 0 => (rows, columns),
        _ if is_vector => return Err(shape("a vector")),
        _ => return Err(shape("a matrix")),
    };
    let (kind, recipe) = match stored.dtype {
        dtype if is_vector && is_float(dtype) => {
            let is_norm = !id.class.is_bias();
            let add = if is_norm && config.architecture == Architecture::Gemma3 { 1.0 } else { 0.0 };
            (TensorKind::F32, Recipe::Vector { add })
        }
        Dtype::F32 => (TensorKind::F32, Recipe::Rows),
        Dtype::F16 => (TensorKind::F16, Recipe::Rows),
        Dtype::BF16 => (TensorKind::BF16, Recipe::Rows),
        Dtype::F8E4M3 | Dtype::I8 if !is_vector => {
            if columns % BLOCK_COLUMNS != 0 {
                return Err(shape("a multiple of 32 columns"));
            }
            let kind = if stored.dtype == Dtype::I8 { TensorKind::INT8 } else { TensorKind::FP8 };
            (kind, Recipe::Scaled(scales(config, &stored, rows, columns, others)?))
        }
        dtype => {
            let wanted = if is_vector { "F32, F16 or BF16" } else { "F32, F16, BF16, F8_E4M3 or I8" };
            let (name, dtype) = (stored.name.clone(), dtype.name());
            return Err(SafetensorsError::TensorType { name, dtype, wanted });
        }
    };
    let heads = match id.class {
        WeightClass::Query if config.architecture == Architecture::Llama => u64::from(config.heads),
        WeightClass::Key if config.architecture == Architecture::Llama => u64::from(config.kv_heads),
        _ => 0,
    };
    if heads > 0 && rows % (2 * heads) != 0 {
        return Err(shape(&format!("an even number of rows for each of {heads} heads")));
    }
    let row_bytes = columns / kind.block_elements() * kind.block_bytes();
    let dimensions = [columns, rows];
    let dimensions = if is_vector { &dimensions[..1] } else { &dimensions[..] };
    // Below 2^64: four times the bytes of a tensor that is there.
    let offset = header.tensor(&id.tensor_name(), kind, dimensions, rows * row_bytes);
    Ok(Tensor { stored: Some(stored), recipe, heads, offset, rows, row_bytes })
}

/// The scales of a matrix of codes: one for all, for each row, or for each block of `weight_block_size`, or of equal
/// parts of each row.
fn scales(
    config: &Config,
    stored: &Stored,
    rows: u64,
    columns: u64,
    others: &mut HashMap<String, Stored>,
) -> Result<Scales, SafetensorsError> {
    let inverse = format!("{}_scale_inv", stored.name);
    let plain = format!("{}_scale", stored.name);
    let tensor = others.remove(&inverse).or_else(|| others.remove(&plain));
    let tensor = tensor.ok_or(SafetensorsError::TensorMissing(plain))?;
    if !is_float(tensor.dtype) {
        let (name, dtype) = (tensor.name, tensor.dtype.name());
        return Err(SafetensorsError::TensorType { name, dtype, wanted: "F32, F16 or BF16" });
    }
    let [block_rows, block_columns] = config.block_size.unwrap_or([0, 0]).map(u64::from);
    let is_blocks = |found: [u64; 2]| {
        block_rows > 0 && found == [rows.div_ceil(block_rows), columns.div_ceil(block_columns)]
    };
    let found = match tensor.shape[..] {
        [] => [1, 1],
        [first] => [first, 1],
        [first, second] => [first, second],
        _ => [0, 0],
    };
    let parts = match found {
        found if is_blocks(found) => Some((block_rows, block_columns)),
        [1, 1] => Some((rows, columns)),
        [first, groups] if first == rows && groups > 0 && columns % groups == 0 => {
            Some((1, columns / groups))
        }
        _ => None,
    };
    // A block of 32 columns has one scale.
    match parts.filter(|(_, columns)| columns % BLOCK_COLUMNS == 0) {
        Some((rows, columns)) => Ok(Scales { tensor, rows, columns, per_row: found[1] }),
        None => Err(SafetensorsError::Shape {
            wanted: format!("scales of {rows} x {columns} for blocks of whole 32 columns"),
            name: tensor.name,
            found: tensor.shape,
        }),
    }
}
