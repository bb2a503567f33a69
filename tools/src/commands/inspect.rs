//! `zrt inspect`: what a model file or folder holds, and what of it runs here, from its header alone.
//!
//! Contract: no tensor byte is read, so a file that is still being downloaded is described too, with what is missing.
//! Only a header that cannot be read is an error; a model that does not run is a description. Texts of the file are
//! shown without control characters. A folder is opened whole: all its files must be there, and one that is refused has
//! no header to describe, which is an error.

use super::{write_document, write_text};
use crate::error::{ToolError, with_causes};
use crate::table::{Alignment, Table};
use crate::units;
use clap::Args;
use serde::Serialize;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use zrt_engine::chat::ChatTemplate;
use zrt_engine::gguf::limits::HEADER_BYTES_MAX;
use zrt_engine::gguf::{Gguf, GgufError, TensorInfo, TensorKind, Value};
use zrt_engine::model::Model;
use zrt_engine::safetensors::open_model;
use zrt_engine::tokenizer::Tokenizer;

/// Bytes of a file that are read first; then as many as have been read already, until the header is whole.
const HEAD_BYTES: u64 = 1 << 20;
/// Characters of a metadata text that the table shows.
const SHOWN_CHARACTERS: usize = 60;
/// A length that no tensor's end exceeds: where a file would end is not asked.
const ANY_LENGTH: u64 = 1 << 56;

/// Shows what a model file holds and what of it runs, from its header; a truncated file will do
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model file (GGUF)
    #[arg(value_name = "MODEL")]
    pub model: PathBuf,
    /// List every tensor too
    #[arg(long)]
    pub tensors: bool,
    /// Write JSON: all metadata but the elements of arrays, and every tensor
    #[arg(long)]
    pub json: bool,
}

/// The document; fields are only ever added.
#[derive(Debug, Serialize)]
struct Inspection {
    model_filename: String,
    file_bytes: u64,
    /// Bytes between the file's end and that of its last tensor.
    missing_bytes: u64,
    /// None of a folder.
    gguf_version: Option<u32>,
    architecture: Option<String>,
    name: Option<String>,
    parameters: u64,
    tensor_bytes: u64,
    runs: Verdict,
    tokenizer: TokenizerReport,
    chat_template: Option<TemplateReport>,
    tensor_types: Vec<TypeReport>,
    metadata: Vec<MetadataReport>,
    tensors: Vec<TensorReport>,
}

/// Whether something runs here.
#[derive(Debug, Serialize)]
struct Verdict {
    runs: bool,
    /// Why not.
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct TokenizerReport {
    kind: Option<String>,
    pre_tokenizer: Option<String>,
    tokens: Option<usize>,
    bos: Option<u32>,
    eos: Option<u32>,
    eot: Option<u32>,
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Debug, Serialize)]
struct TemplateReport {
    bytes: usize,
    /// The token that ends a turn.
    end_of_turn: Option<String>,
    #[serde(flatten)]
    verdict: Verdict,
}

#[derive(Debug, Serialize)]
struct TypeReport {
    kind: &'static str,
    tensors: usize,
    elements: u64,
    bytes: u64,
}

#[derive(Debug, Serialize)]
struct MetadataReport {
    key: String,
    kind: &'static str,
    /// Elements of an array.
    length: Option<usize>,
    /// Everything but arrays.
    value: Option<serde_json::Value>,
}

#[derive(Debug, Serialize)]
struct TensorReport {
    name: String,
    kind: &'static str,
    dimensions: Vec<u64>,
    offset: u64,
    bytes: u64,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let path = &arguments.model;
    let name = path.display().to_string();
    let (gguf, file_bytes) = read_head(path).map_err(|error| match error {
        HeadError::System(source) => ToolError::Read { path: name.clone(), source },
        HeadError::Gguf(source) => ToolError::Gguf { model: name.clone(), source },
    })?;
    let inspection = inspect(name, gguf, file_bytes);
    if arguments.json {
        write_document(&inspection)?;
    } else {
        write_text(&text(&inspection, arguments.tensors))?;
    }
    Ok(true)
}

enum HeadError {
    System(std::io::Error),
    Gguf(GgufError),
}

impl From<std::io::Error> for HeadError {
    fn from(error: std::io::Error) -> HeadError {
        HeadError::System(error)
    }
}

/// Reads as much of the file as its header needs; returns the file's length too. A folder is opened whole, and its
/// length is that of the GGUF file that it stands for.
fn read_head(path: &Path) -> Result<(Gguf, u64), HeadError> {
    if path.is_dir() {
        let gguf = open_model(path).map_err(HeadError::Gguf)?;
        let file_bytes = gguf.file_bytes();
        return Ok((gguf, file_bytes));
    }
    let mut file = File::open(path)?;
    let file_bytes = file.metadata()?.len();
    let mut head = Vec::new();
    loop {
        let more = HEAD_BYTES.max(head.len() as u64);
        let is_end = (&mut file).take(more).read_to_end(&mut head)? == 0;
        let is_all = is_end || head.len() as u64 >= HEADER_BYTES_MAX;
        let bytes: Arc<[u8]> = head.as_slice().into();
        match Gguf::from_bytes(bytes.clone()) {
            Ok(gguf) => return Ok((gguf, file_bytes)),
            // The header is whole: where its tensors lie is known, and nothing else is asked.
            Err(GgufError::Outside { .. }) => {
                let gguf = Gguf::from_head(bytes, ANY_LENGTH).map_err(HeadError::Gguf)?;
                return Ok((gguf, file_bytes));
            }
            Err(GgufError::Truncated { .. }) if !is_all => {}
            Err(error) => return Err(HeadError::Gguf(error)),
        }
    }
}

fn inspect(model_filename: String, gguf: Gguf, file_bytes: u64) -> Inspection {
    let metadata = &gguf.metadata;
    let word = |key: &str| metadata.str(key).ok().map(str::to_owned);
    let tokenizer = Tokenizer::from_gguf(&gguf);
    let end = gguf.tensors().iter().map(|tensor| tensor.offset + tensor.bytes).max().unwrap_or(0);
    let known = tokenizer.as_ref().ok();
    let special = known.map(Tokenizer::special_ids).unwrap_or_default();
    let tokenizer_report = TokenizerReport {
        kind: word("tokenizer.ggml.model"),
        pre_tokenizer: word("tokenizer.ggml.pre"),
        tokens: metadata.strings("tokenizer.ggml.tokens").ok().map(|list| list.len()),
        bos: special.bos,
        eos: special.eos,
        eot: special.eot,
        verdict: Verdict::of(tokenizer.as_ref().err().map(|error| with_causes(error))),
    };
    let chat_template = word("tokenizer.chat_template").map(|source| template_report(&source, known));
    let report = |(key, value): (&str, &Value)| MetadataReport {
        key: key.to_owned(),
        kind: value.type_name().split_once(' ').map_or("", |(_, name)| name),
        length: if let Value::Array(array) = value { Some(array.len()) } else { None },
        value: json(value),
    };
    let tensor = |tensor: &TensorInfo| TensorReport {
        name: tensor.name.to_string(),
        kind: tensor.kind.name(),
        dimensions: tensor.dimensions.clone(),
        offset: tensor.offset,
        bytes: tensor.bytes,
    };
    let mut inspection = Inspection {
        model_filename,
        file_bytes,
        missing_bytes: end.saturating_sub(file_bytes),
        gguf_version: (!gguf.is_made()).then_some(gguf.version),
        architecture: word("general.architecture"),
        name: word("general.name"),
        parameters: gguf.element_count_total(),
        tensor_bytes: gguf.tensor_bytes_total(),
        runs: Verdict::of(None),
        tokenizer: tokenizer_report,
        chat_template,
        tensor_types: types(gguf.tensors()),
        metadata: metadata.iter().map(report).collect(),
        tensors: gguf.tensors().iter().map(tensor).collect(),
    };
    let model = Model::load(Arc::new(gguf)).err().map(|error| with_causes(&error));
    let missing = match inspection.missing_bytes {
        0 => None,
        bytes => Some(format!("the file lacks {} of its tensors", units::bytes(bytes))),
    };
    let tokenizer = inspection.tokenizer.verdict.reason.clone();
    inspection.runs = Verdict::of(model.or(tokenizer).or(missing));
    inspection
}

impl Verdict {
    fn of(reason: Option<String>) -> Verdict {
        Verdict { runs: reason.is_none(), reason }
    }
}

fn template_report(source: &str, tokenizer: Option<&Tokenizer>) -> TemplateReport {
    let Some(tokenizer) = tokenizer else {
        let verdict = Verdict::of(Some("without its tokenizer it cannot be looked at".into()));
        return TemplateReport { bytes: source.len(), end_of_turn: None, verdict };
    };
    let template = ChatTemplate::new(source, tokenizer);
    let end = template.as_ref().ok().and_then(|template| template.end_of_turn(tokenizer));
    TemplateReport {
        bytes: source.len(),
        end_of_turn: end.and_then(|id| tokenizer.token_text(id)).map(str::to_owned),
        verdict: Verdict::of(template.err().map(|error| with_causes(&error))),
    }
}

/// Types with what they hold, the one with most bytes first.
fn types(tensors: &[TensorInfo]) -> Vec<TypeReport> {
    let of = |kind: &TensorKind| {
        let all = || tensors.iter().filter(|tensor| tensor.kind == *kind);
        TypeReport {
            kind: kind.name(),
            tensors: all().count(),
            elements: all().map(TensorInfo::element_count).fold(0, u64::saturating_add),
            bytes: all().map(|tensor| tensor.bytes).fold(0, u64::saturating_add),
        }
    };
    let mut types: Vec<TypeReport> =
        TensorKind::ALL.iter().map(of).filter(|report| report.tensors > 0).collect();
    types.sort_by_key(|report| std::cmp::Reverse(report.bytes));
    types
}

/// A value that is no array. Infinite floats and NaN have no JSON.
fn json(value: &Value) -> Option<serde_json::Value> {
    Some(match value {
        Value::U8(number) => (*number).into(),
        Value::I8(number) => (*number).into(),
        Value::U16(number) => (*number).into(),
        Value::I16(number) => (*number).into(),
        Value::U32(number) => (*number).into(),
        Value::I32(number) => (*number).into(),
        Value::U64(number) => (*number).into(),
        Value::I64(number) => (*number).into(),
        // Its shortest decimal, not that of the f64 with the same value.
        Value::F32(number) => {
            number.to_string().parse::<f64>().ok().filter(|number| number.is_finite())?.into()
        }
        Value::F64(number) => Some(*number).filter(|number| number.is_finite())?.into(),
        Value::Bool(flag) => (*flag).into(),
        Value::String(text) => text.to_string().into(),
        Value::Array(_) => return None,
    })
}

fn text(inspection: &Inspection, with_tensors: bool) -> String {
    use Alignment::{Left, Right};
    let mut metadata = Table::new(&[("key", Left), ("type", Left), ("value", Left)]);
    for pair in &inspection.metadata {
        let value = match (&pair.value, pair.length) {
            (Some(serde_json::Value::String(text)), _) => shown(text),
            (Some(value), _) => value.to_string(),
            (None, Some(length)) => format!("{length} elements"),
            (None, None) => "not a number".to_owned(),
        };
        metadata.row(vec![shown(&pair.key), pair.kind.to_owned(), value]);
    }
    let mut types = Table::new(&[("type", Left), ("tensors", Right), ("elements", Right), ("size", Right)]);
    for one in &inspection.tensor_types {
        let counts = [one.tensors.to_string(), units::count(one.elements), units::bytes(one.bytes)];
        types.row([one.kind.to_owned()].into_iter().chain(counts).collect());
    }
    let mut tensors = Table::new(&[("tensor", Left), ("type", Left), ("dimensions", Left), ("size", Right)]);
    for one in inspection.tensors.iter().filter(|_| with_tensors) {
        let dimensions = one.dimensions.iter().map(u64::to_string).collect::<Vec<_>>().join(" × ");
        tensors.row(vec![shown(&one.name), one.kind.to_owned(), dimensions, units::bytes(one.bytes)]);
    }
    let tensors = if with_tensors { format!("\n{tensors}") } else { String::new() };
    format!("{}\n{metadata}\n{types}{tensors}\n{}", heading(inspection), verdicts(inspection))
}

fn heading(inspection: &Inspection) -> String {
    let missing = match inspection.missing_bytes {
        0 => String::new(),
        bytes => format!(", {} missing", units::bytes(bytes)),
    };
    let format = match inspection.gguf_version {
        Some(version) => format!("GGUF version {version}"),
        None => "safetensors, as the GGUF file that it stands for".to_owned(),
    };
    format!(
        "{}: {format}, {}{missing}\n{} {}, {} parameters in {}\n",
        inspection.model_filename,
        units::bytes(inspection.file_bytes),
        shown(inspection.architecture.as_deref().unwrap_or("no architecture")),
        shown(inspection.name.as_deref().unwrap_or("without a name")),
        units::count(inspection.parameters),
        units::bytes(inspection.tensor_bytes),
    )
}

fn verdicts(inspection: &Inspection) -> String {
    let line = |what: &str, verdict: &Verdict| match &verdict.reason {
        None => format!("{what}: yes\n"),
        Some(reason) => format!("{what}: no: {}\n", reason.replace(char::is_control, " ")),
    };
    let tokenizer = &inspection.tokenizer;
    let tokenizer_name = format!(
        "tokenizer runs ({}{}, {} tokens)",
        shown(tokenizer.kind.as_deref().unwrap_or("none")),
        tokenizer.pre_tokenizer.as_ref().map(|pre| format!(" {}", shown(pre))).unwrap_or_default(),
        tokenizer.tokens.unwrap_or(0),
    );
    let template = match &inspection.chat_template {
        None => "chat template: none in the file\n".to_owned(),
        Some(template) => {
            let end = template.end_of_turn.as_ref().map(|end| format!(", turns end with {}", shown(end)));
            let what = format!("chat template renders ({} bytes{})", template.bytes, end.unwrap_or_default());
            line(&what, &template.verdict)
        }
    };
    line("model runs", &inspection.runs) + &line(&tokenizer_name, &tokenizer.verdict) + &template
}

/// The beginning of a text, without control characters.
fn shown(text: &str) -> String {
    let mut characters = text.chars();
    let mut begin: String = characters.by_ref().take(SHOWN_CHARACTERS).collect::<String>();
    if characters.next().is_some() {
        begin.push('…');
    }
    begin.escape_debug().to_string().replace("\\\"", "\"").replace("\\'", "'")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file with some of everything, and nothing that must be in a file.
    fn inspection() -> Inspection {
        let pair =
            |key: &str, kind, length, value| MetadataReport { key: key.to_owned(), kind, length, value };
        Inspection {
            model_filename: "m.gguf".to_owned(),
            file_bytes: 3 << 20,
            missing_bytes: 2048,
            gguf_version: Some(3),
            architecture: Some("qwen3".to_owned()),
            name: Some("a \"name\"\u{1b}".to_owned()),
            parameters: 1_500_000,
            tensor_bytes: 4 << 20,
            runs: Verdict::of(Some("it lacks\nsomething".to_owned())),
            tokenizer: TokenizerReport {
                kind: Some("gpt2".to_owned()),
                pre_tokenizer: Some("qwen2".to_owned()),
                tokens: Some(9),
                bos: None,
                eos: None,
                eot: None,
                verdict: Verdict::of(None),
            },
            chat_template: Some(TemplateReport {
                bytes: 12,
                end_of_turn: Some("<|im_end|>".to_owned()),
                verdict: Verdict::of(None),
            }),
            tensor_types: vec![TypeReport { kind: "Q4_0", tensors: 2, elements: 1_500_000, bytes: 4 << 20 }],
            metadata: vec![
                pair("a.text", "string", None, Some("it's".into())),
                pair("a.list", "array", Some(7), None),
                pair("a.number", "u32", None, Some(5.into())),
                pair("a.nan", "f32", None, None),
            ],
            tensors: vec![TensorReport {
                name: "t".to_owned(),
                kind: "Q4_0",
                dimensions: vec![32, 2],
                offset: 0,
                bytes: 36,
            }],
        }
    }

    #[test]
    fn the_text_is_heading_tables_and_verdicts() {
        let heading = "\
m.gguf: GGUF version 3, 3.00 MiB, 2.00 KiB missing
qwen3 a \"name\"\\u{1b}, 1.50 M parameters in 4.00 MiB

| key      | type   | value        |
| -------- | ------ | ------------ |
| a.text   | string | it's         |
| a.list   | array  | 7 elements   |
| a.number | u32    | 5            |
| a.nan    | f32    | not a number |

| type | tensors | elements |     size |
| ---- | ------: | -------: | -------: |
| Q4_0 |       2 |   1.50 M | 4.00 MiB |
";
        let tensors = "
| tensor | type | dimensions | size |
| ------ | ---- | ---------- | ---: |
| t      | Q4_0 | 32 × 2     | 36 B |
";
        let verdicts = "
model runs: no: it lacks something
tokenizer runs (gpt2 qwen2, 9 tokens): yes
chat template renders (12 bytes, turns end with <|im_end|>): yes
";
        assert_eq!(text(&inspection(), false), format!("{heading}{verdicts}"));
        assert_eq!(text(&inspection(), true), format!("{heading}{tensors}{verdicts}"));
    }

    #[test]
    fn what_a_file_does_not_say_is_said() {
        let bare = Inspection {
            missing_bytes: 0,
            gguf_version: None,
            architecture: None,
            name: None,
            runs: Verdict::of(None),
            tokenizer: TokenizerReport {
                kind: None,
                pre_tokenizer: None,
                tokens: None,
                bos: None,
                eos: None,
                eot: None,
                verdict: Verdict::of(Some("none".to_owned())),
            },
            chat_template: None,
            ..inspection()
        };
        let expected = "m.gguf: safetensors, as the GGUF file that it stands for, 3.00 MiB\n\
                        no architecture without a name, 1.50 M parameters in 4.00 MiB\n";
        assert_eq!(heading(&bare), expected);
        let expected =
            "model runs: yes\ntokenizer runs (none, 0 tokens): no: none\nchat template: none in the file\n";
        assert_eq!(verdicts(&bare), expected);
        let report = template_report("{{ x }}", None);
        assert_eq!((report.bytes, report.end_of_turn, report.verdict.runs), (7, None, false));
    }

    fn text_bytes(text: &str) -> Vec<u8> {
        [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat()
    }

    /// A file of version 3 without its data: a metadata text of so many bytes, and tensors of 32 elements of a kind.
    fn header(text: usize, kinds: &[u32]) -> Vec<u8> {
        const TYPE_STRING: u32 = 8;
        let mut file = b"GGUF\x03\0\0\0".to_vec();
        file.extend((kinds.len() as u64).to_le_bytes());
        file.extend(1u64.to_le_bytes());
        file.extend(text_bytes("general.description"));
        file.extend(TYPE_STRING.to_le_bytes());
        file.extend(text_bytes(&"x".repeat(text)));
        for (index, kind) in kinds.iter().enumerate() {
            file.extend(text_bytes(&format!("t{index}")));
            file.extend(1u32.to_le_bytes());
            file.extend(32u64.to_le_bytes());
            file.extend(kind.to_le_bytes());
            // Each where data is aligned to 32 bytes, with room for 32 elements of 4 bytes.
            file.extend((index as u64 * 128).to_le_bytes());
        }
        file
    }

    /// However long the header is, it is read whole; one that is cut is refused, wherever the cut is.
    #[test]
    fn a_header_is_read_as_far_as_it_goes() {
        let folder = zrt_needs::TemporaryFolder::new("inspect-heads");
        let path = folder.join("model.gguf");
        let first = HEAD_BYTES as usize;
        for text in [10, first - 100, first, 2 * first, 5 * first] {
            let file = header(text, &[0, 1]);
            std::fs::write(&path, &file).unwrap();
            let Ok((gguf, file_bytes)) = read_head(&path) else { panic!("{text}") };
            assert_eq!((gguf.tensors().len(), file_bytes), (2, file.len() as u64), "{text}");
            std::fs::write(&path, &file[..file.len() - 1]).unwrap();
            let cut = read_head(&path).err();
            assert!(matches!(cut, Some(HeadError::Gguf(GgufError::Truncated { .. }))), "{text}");
        }
        // The first read ends where the file does.
        std::fs::write(&path, &header(2 * first, &[])[..first]).unwrap();
        assert!(matches!(read_head(&path), Err(HeadError::Gguf(GgufError::Truncated { .. }))));
    }

    /// 32 elements of F32 (kind 0) have 128 bytes, of F16 (kind 1) 64.
    #[test]
    fn types_are_counted_and_the_largest_is_first() {
        let gguf = Gguf::from_head(header(1, &[1, 0, 1, 0]), ANY_LENGTH).unwrap();
        let inspection = inspect("m".to_owned(), gguf, 0);
        let found: Vec<_> = inspection
            .tensor_types
            .iter()
            .map(|one| (one.kind, one.tensors, one.elements, one.bytes))
            .collect();
        assert_eq!(found, [("F32", 2, 64, 256), ("F16", 2, 64, 128)]);
        assert_eq!(inspection.gguf_version, Some(3));
    }

    /// Sixty characters, not bytes.
    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shown(&"é".repeat(60)), "é".repeat(60));
        assert_eq!(shown(&"é".repeat(61)), format!("{}…", "é".repeat(60)));
        assert_eq!(shown("a\n\"b\"\t'c'"), "a\\n\"b\"\\t'c'");
    }

    #[test]
    fn values_are_json_unless_it_has_no_word_for_them() {
        for (value, expected) in [
            (Value::U8(200), "200"),
            (Value::I8(-3), "-3"),
            (Value::U16(60_000), "60000"),
            (Value::I16(-30_000), "-30000"),
            (Value::U32(4_000_000_000), "4000000000"),
            (Value::I32(-2_000_000_000), "-2000000000"),
            (Value::U64(u64::MAX), "18446744073709551615"),
            (Value::I64(i64::MIN), "-9223372036854775808"),
            (Value::F32(0.1), "0.1"),
            (Value::F64(0.25), "0.25"),
            (Value::Bool(true), "true"),
            (Value::String("x\"y".into()), "\"x\\\"y\""),
        ] {
            assert_eq!(json(&value).map(|value| value.to_string()).as_deref(), Some(expected));
        }
        let none = [Value::F32(f32::NAN), Value::F32(f32::INFINITY), Value::F64(f64::NEG_INFINITY)];
        assert!(none.iter().all(|value| json(value).is_none()));
    }
}
