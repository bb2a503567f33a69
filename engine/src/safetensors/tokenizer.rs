//! `tokenizer.json` as GGUF's metadata of a tokenizer.
//!
//! Contract: two shapes are known, and what is neither is an error that names the part: byte-pair encoding of bytes,
//! whose pre-tokenizer is one of the published expressions, and byte-pair encoding of characters with a fallback to
//! bytes. As in GGUF's tokenizers no Unicode normalisation is done. Numbers without a token become place holders, up to
//! the rows of the embedding; an added token behind the last row is left out.
//!
//! Sources: the tokenizers library's serialisation; expressions from the published files of the models.

use super::SafetensorsError;
use super::config::{self, Config};
use super::folder::Folder;
use super::gguf_header::{GgufHeader, Texts};
use super::json::{Json, JsonError, Shape};

const FILE: &str = "tokenizer.json";
const CONFIG: &str = "tokenizer_config.json";
const GENERATION: &str = "generation_config.json";
const TEMPLATE: &str = "chat_template.jinja";

/// Longest `tokenizer.json` accepted, in bytes. Gemma 3's has 33 MB.
const FILE_BYTES_MAX: u64 = 1 << 28;
/// Longest `tokenizer_config.json` and template accepted, in bytes. Gemma 3's has 1.2 MB.
const TOKENIZER_CONFIG_BYTES_MAX: u64 = 1 << 24;
/// Most special tokens of a template. Published files have four at most.
const TEMPLATE_TOKENS_MAX: usize = 64;
/// What a space is written as.
const SPACE: &str = "\u{2581}";

/// Expressions of pre-tokenizers, with GGUF's names.
const EXPRESSIONS: &[(&str, &str)] = &[
    (
        "llama-bpe",
        concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|",
            r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
            r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
    ),
    (
        "qwen2",
        concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|",
            r"[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}|",
            r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
    ),
    (
        "qwen35",
        concat!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|",
            r"[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}|",
            r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
    ),
    (
        "tekken",
        concat!(
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|",
            r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|",
            r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        ),
    ),
];

/// GGUF's numbers of kinds of tokens.
const NORMAL: i32 = 1;
const CONTROL: i32 = 3;
const USER_DEFINED: i32 = 4;
const UNUSED: i32 = 5;
const BYTE: i32 = 6;

/// What the file says, as it is read.
#[derive(Default)]
struct Parts {
    model: Option<String>,
    unknown: Option<String>,
    falls_back: bool,
    takes_whole_words: bool,
    merges: Texts,
    /// A merge makes a symbol of a line feed and something else.
    merges_lines: bool,
    /// Parts of the normaliser and of the pre-tokenizer, in order, in words.
    normalizers: Vec<String>,
    pre_tokenizers: Vec<String>,
    /// The token that the post-processor puts in front.
    first: Option<u64>,
}

/// Tokens by number.
struct Tokens {
    text: String,
    /// Begin, end and kind; kind 0: there is none.
    entries: Vec<(u32, u32, i32)>,
    rows: u64,
}

impl Tokens {
    fn put(&mut self, id: u64, text: &str, kind: i32) -> Result<(), SafetensorsError> {
        if id >= self.rows {
            let (token, rows) = (text.chars().take(80).collect(), self.rows);
            return Err(SafetensorsError::TokenId { token, id, rows });
        }
        let index = id as usize;
        if self.entries.len() <= index {
            self.entries.resize(index + 1, (0, 0, 0));
        }
        // Texts have no more bytes than the file, which is shorter than 2^32.
        let begin = self.text.len() as u32;
        self.text.push_str(text);
        self.entries[index] = (begin, self.text.len() as u32, kind);
        Ok(())
    }

    fn text(&self, id: usize) -> Option<&str> {
        let (begin, end, kind) = *self.entries.get(id)?;
        (kind != 0).then(|| &self.text[begin as usize..end as usize])
    }

    fn id(&self, text: &str) -> Option<u32> {
        (0..self.entries.len()).find(|id| self.text(*id) == Some(text)).map(|id| id as u32)
    }
}

/// Reads the tokenizer of a folder and writes its metadata. `rows` is the length of the embedding.
pub(super) fn read(
    folder: &Folder,
    config: &Config,
    rows: u64,
    header: &mut GgufHeader,
) -> Result<(), SafetensorsError> {
    let bytes = folder.need(FILE, FILE_BYTES_MAX)?;
    let mut tokens = Tokens { text: String::new(), entries: Vec::new(), rows };
    let parts = read_parts(&bytes, &mut tokens).map_err(|error| error.in_file(FILE))?;
    drop(bytes);
    let settings = match folder.read(CONFIG, TOKENIZER_CONFIG_BYTES_MAX)? {
        Some(bytes) => read_settings(&bytes).map_err(|error| error.in_file(CONFIG))?,
        None => Settings::default(),
    };
    write_kind(&parts, &mut tokens, header).map_err(|error| error.in_file(FILE))?;
    let generation = match folder.read(GENERATION, config::FILE_BYTES_MAX)? {
        Some(bytes) => config::generation_ids(&bytes).map_err(|error| error.in_file(GENERATION))?,
        None => (None, Vec::new()),
    };
    let id = |text: &Option<String>| text.as_deref().and_then(|text| tokens.id(text));
    let first =
        parts.first.map(|id| first_token(id, rows)).transpose().map_err(|error| error.in_file(FILE))?;
    let bos = first.or_else(|| id(&settings.bos)).or(generation.0).or(config.bos);
    let mut ends: Vec<u32> = id(&settings.eos).into_iter().collect();
    let listed = if generation.1.is_empty() { &config.eos } else { &generation.1 };
    ends.extend(listed);
    write_special(bos, &ends, id(&parts.unknown), header)?;
    header.flag("tokenizer.ggml.add_bos_token", first.is_some());
    write_tokens(&tokens, header);
    let template = match folder.read(TEMPLATE, TOKENIZER_CONFIG_BYTES_MAX)? {
        Some(bytes) => {
            let text = String::from_utf8(bytes);
            Some(text.map_err(|_| SafetensorsError::NotUtf8.in_file(TEMPLATE))?)
        }
        None => settings.template,
    };
    if let Some(template) = template {
        header.text("tokenizer.chat_template", &template);
    }
    Ok(())
}

/// The token that a template puts in front, which is one of the embedding's `rows`.
fn first_token(id: u64, rows: u64) -> Result<u32, SafetensorsError> {
    let token = u32::try_from(id).ok().filter(|_| id < rows);
    token.ok_or_else(|| not_built("post-processor", format!("a template with token {id} of {rows}")))
}

fn not_built(what: &'static str, found: impl Into<String>) -> SafetensorsError {
    let found: String = found.into();
    SafetensorsError::Tokenizer { what, found: found.chars().take(200).collect() }
}

fn read_parts(bytes: &[u8], tokens: &mut Tokens) -> Result<Parts, SafetensorsError> {
    let mut parts = Parts::default();
    let mut added = Vec::new();
    let mut json = Json::new(bytes)?;
    json.object(|json, key| {
        match key {
            "added_tokens" => json.array(|json| read_added(json, &mut added))?,
            "normalizer" => read_stages(json, "normalizers", &mut parts.normalizers)?,
            "pre_tokenizer" => read_stages(json, "pretokenizers", &mut parts.pre_tokenizers)?,
            "post_processor" => parts.first = read_first(json)?,
            "model" => read_model(json, &mut parts, tokens)?,
            _ => json.skip()?,
        }
        Ok::<(), SafetensorsError>(())
    })?;
    json.end()?;
    let rows = tokens.rows;
    // Gemma 3's files of text have one of images, behind the last row: no text becomes it. llama.cpp's converter leaves
    // such tokens out too.
    for (id, text, kind) in added.into_iter().filter(|(id, ..)| *id < rows) {
        tokens.put(id, &text, kind)?;
    }
    Ok(parts)
}

/// A token beside the model's: number, text and kind.
fn read_added(json: &mut Json<'_>, added: &mut Vec<(u64, Box<str>, i32)>) -> Result<(), SafetensorsError> {
    let (mut id, mut text, mut is_special) = (None, None, false);
    json.object(|json, key| {
        match key {
            "id" => id = Some(json.whole()?),
            "content" => text = Some(json.text()?.into_owned()),
            "special" => is_special = json.boolean()?,
            "single_word" | "lstrip" | "rstrip" if json.boolean()? => {
                return Err(not_built("property of an added token", key));
            }
            "single_word" | "lstrip" | "rstrip" => {}
            _ => json.skip()?,
        }
        Ok(())
    })?;
    let missing = |key: &str| SafetensorsError::KeyMissing { key: format!("added_tokens.{key}") };
    let kind = if is_special { CONTROL } else { USER_DEFINED };
    let text = text.ok_or_else(|| missing("content"))?;
    added.push((id.ok_or_else(|| missing("id"))?, text.into(), kind));
    Ok(())
}

fn read_model(json: &mut Json<'_>, parts: &mut Parts, tokens: &mut Tokens) -> Result<(), SafetensorsError> {
    json.object(|json, key| {
        match key {
            "type" => parts.model = Some(json.text()?.into_owned()),
            "unk_token" => parts.unknown = json.text_or_null()?.map(Into::into),
            "byte_fallback" => parts.falls_back = json.boolean()?,
            "ignore_merges" => parts.takes_whole_words = json.boolean()?,
            "continuing_subword_prefix" | "end_of_word_suffix" => {
                if let Some(text) = json.text_or_null()?.filter(|text| !text.is_empty()) {
                    return Err(not_built("mark of a word's parts", text));
                }
            }
            "dropout" if json.shape()? != Shape::Null => {
                return Err(not_built("way of encoding", "dropout"));
            }
            // Of other models it is an array.
            "vocab" if json.shape()? == Shape::Object => {
                json.object(|json, text| tokens.put(json.whole()?, text, NORMAL))?;
            }
            "merges" => json.array(|json| read_merge(json, parts))?,
            _ => json.skip()?,
        }
        Ok::<(), SafetensorsError>(())
    })
}

/// A merge, as `left right` or as a list of both.
fn read_merge(json: &mut Json<'_>, parts: &mut Parts) -> Result<(), SafetensorsError> {
    let merge = if json.shape()? == Shape::Text {
        json.text()?.into_owned()
    } else {
        let mut sides = Vec::new();
        json.array(|json| {
            let side = json.text()?;
            if sides.len() < 3 {
                sides.push(side.into_owned());
            }
            Ok::<(), JsonError>(())
        })?;
        match &sides[..] {
            [left, right] if !left.contains(' ') => format!("{left} {right}"),
            _ => return Err(not_built("merge", format!("{sides:?}"))),
        }
    };
    let line_feeds = merge.matches('\n').count();
    parts.merges_lines |= line_feeds > 0 && line_feeds + 1 < merge.chars().count();
    parts.merges.push(&merge);
    Ok(())
}

/// The parts of a normaliser or pre-tokenizer, each in words: its type and what is not as usual.
fn read_stages(json: &mut Json<'_>, list: &str, stages: &mut Vec<String>) -> Result<(), SafetensorsError> {
    if json.shape()? == Shape::Null {
        return Ok(json.skip()?);
    }
    let (mut kind, mut properties, mut inner) = (String::new(), Vec::new(), Vec::new());
    json.object(|json, key| {
        match key {
            "type" => kind = json.text()?.into_owned(),
            key if key == list => json.array(|json| read_stages(json, list, &mut inner))?,
            "pattern" => json.object(|json, form| {
                properties.push(format!("{form}={}", json.text()?));
                Ok::<(), SafetensorsError>(())
            })?,
            key => {
                let shown = match json.shape()? {
                    Shape::Text => json.text()?.into_owned(),
                    Shape::True | Shape::False => json.boolean()?.to_string(),
                    _ => {
                        json.skip()?;
                        "?".to_owned()
                    }
                };
                properties.push(format!("{key}={shown}"));
            }
        }
        Ok::<(), SafetensorsError>(())
    })?;
    if kind == "ByteLevel" && !properties.iter().any(|property| property.starts_with("use_regex=")) {
        // Files from before the key have none; it means this.
        properties.push("use_regex=true".to_owned());
    }
    if kind == "Sequence" {
        stages.append(&mut inner);
    } else {
        // By name, whatever their order in the file.
        properties.sort();
        let properties: String = properties.iter().map(|property| format!(" {property}")).collect();
        stages.push(format!("{kind}{properties}"));
    }
    Ok(())
}

/// The special token with which a template of the post-processor begins, if there is one. The template has only its
/// name, and `special_tokens` its number: no text is looked up.
fn read_first(json: &mut Json<'_>) -> Result<Option<u64>, SafetensorsError> {
    if json.shape()? == Shape::Null {
        json.skip()?;
        return Ok(None);
    }
    let (mut inner, mut name, mut kind) = (None, None, String::new());
    let mut numbers = Vec::new();
    json.object(|json, key| {
        match key {
            "type" => kind = json.text()?.into_owned(),
            "processors" => json.array(|json| {
                let first = read_first(json)?;
                inner = inner.or(first);
                Ok::<(), SafetensorsError>(())
            })?,
            "single" => name = read_template(json)?,
            "special_tokens" => read_numbers(json, &mut numbers)?,
            _ => json.skip()?,
        }
        Ok::<(), SafetensorsError>(())
    })?;
    match kind.as_str() {
        "TemplateProcessing" => {
            let Some(name) = name else { return Ok(None) };
            let number = numbers.iter().find(|(named, _)| *named == name).and_then(|(_, number)| *number);
            let missing =
                || not_built("post-processor", format!("a template with {name:?}, which is not one token"));
            number.map(Some).ok_or_else(missing)
        }
        "Sequence" => Ok(inner),
        "ByteLevel" => Ok(None),
        _ => Err(not_built("post-processor", kind)),
    }
}

/// The names of a template's special tokens, and the number of each that is one token.
fn read_numbers(
    json: &mut Json<'_>,
    numbers: &mut Vec<(String, Option<u64>)>,
) -> Result<(), SafetensorsError> {
    json.object(|json, name| {
        let (name, mut ids, mut last) = (name.to_owned(), 0, None);
        json.object(|json, key| {
            match key {
                "ids" => json.array(|json| {
                    (ids, last) = (ids + 1, Some(json.whole()?));
                    Ok::<(), SafetensorsError>(())
                })?,
                _ => json.skip()?,
            }
            Ok::<(), SafetensorsError>(())
        })?;
        if numbers.len() == TEMPLATE_TOKENS_MAX {
            let found = format!("a template with more than {TEMPLATE_TOKENS_MAX} special tokens");
            return Err(not_built("post-processor", found));
        }
        numbers.push((name, last.filter(|_| ids == 1)));
        Ok::<(), SafetensorsError>(())
    })
}

/// A template is special tokens and the text: at most one token, in front.
fn read_template(json: &mut Json<'_>) -> Result<Option<String>, SafetensorsError> {
    let mut pieces = Vec::new();
    json.array(|json| {
        json.object(|json, kind| {
            let mut id = String::new();
            json.object(|json, key| {
                match key {
                    "id" => id = json.text()?.into_owned(),
                    _ => json.skip()?,
                }
                Ok::<(), SafetensorsError>(())
            })?;
            if pieces.len() < 3 {
                pieces.push((kind == "SpecialToken", id));
            }
            Ok::<(), SafetensorsError>(())
        })
    })?;
    match &pieces[..] {
        [(false, _)] => Ok(None),
        [(true, first), (false, _)] => Ok(Some(first.clone())),
        _ => Err(not_built("post-processor", format!("a template {pieces:?}"))),
    }
}

/// Which of the two shapes it is, and what belongs to it.
fn write_kind(parts: &Parts, tokens: &mut Tokens, header: &mut GgufHeader) -> Result<(), SafetensorsError> {
    match parts.model.as_deref() {
        Some("BPE") => {}
        found => return Err(not_built("model of a tokenizer", found.unwrap_or("none"))),
    }
    header.texts("tokenizer.ggml.merges", &parts.merges);
    if parts.falls_back {
        return write_characters(parts, tokens, header);
    }
    for normalizer in &parts.normalizers {
        // GGUF's tokenizers normalise nothing; texts are in this form as a rule.
        if normalizer != "NFC" {
            return Err(not_built("normaliser", normalizer));
        }
    }
    let name = pre_tokenizer(&parts.pre_tokenizers)?;
    // GGUF's name implies it.
    if parts.takes_whole_words != matches!(name, "llama-bpe" | "tekken") {
        return Err(not_built("`ignore_merges`", format!("{} of {name}", parts.takes_whole_words)));
    }
    header.text("tokenizer.ggml.model", "gpt2");
    header.text("tokenizer.ggml.pre", name);
    Ok(())
}

/// GGUF's name for a pre-tokenizer of bytes.
fn pre_tokenizer(stages: &[String]) -> Result<&'static str, SafetensorsError> {
    let unknown = || not_built("pre-tokenizer", stages.join(", then "));
    // The alphabet of bytes, without a space in front.
    let bytes = |stage: &str, regex: bool| {
        stage.starts_with("ByteLevel add_prefix_space=false")
            && stage.ends_with(&format!("use_regex={regex}"))
    };
    match stages {
        [only] if bytes(only, true) => Ok("gpt-2"),
        [digits, last] if digits == "Digits individual_digits=true" && bytes(last, true) => Ok("smollm"),
        [split, last] if bytes(last, false) => {
            let expression = split.strip_prefix("Split Regex=");
            let expression = expression.and_then(|rest| rest.strip_suffix(" behavior=Isolated invert=false"));
            let known = EXPRESSIONS.iter().find(|(_, known)| Some(*known) == expression);
            known.map(|(name, _)| *name).ok_or_else(unknown)
        }
        _ => Err(unknown()),
    }
}

/// Merges of characters, spaces as U+2581, and bytes for what is no token.
fn write_characters(
    parts: &Parts,
    tokens: &mut Tokens,
    header: &mut GgufHeader,
) -> Result<(), SafetensorsError> {
    let (prepend, replace) =
        (format!("Prepend prepend={SPACE}"), format!("Replace String=  content={SPACE}"));
    let normalizers: Vec<&str> = parts.normalizers.iter().map(String::as_str).collect();
    let has_prefix = match normalizers[..] {
        [first, second] if first == prepend && second == replace => true,
        [only] if only == replace => false,
        _ => return Err(not_built("normaliser", parts.normalizers.join(", then "))),
    };
    // There is no space left to split at.
    let is_idle = |stage: &String| stage == "Split String=  behavior=MergedWithPrevious invert=false";
    if !parts.pre_tokenizers.iter().all(is_idle) {
        return Err(not_built("pre-tokenizer", parts.pre_tokenizers.join(", then ")));
    }
    if parts.takes_whole_words || parts.merges_lines {
        // The tokenizer of characters keeps line feeds apart from the rest.
        return Err(not_built("merge", "of a line feed with other characters, or `ignore_merges`"));
    }
    let mut is_there = [false; 256];
    for id in 0..tokens.entries.len() {
        let byte = tokens.text(id).and_then(byte_of);
        if let Some(byte) = byte {
            is_there[usize::from(byte)] = true;
            tokens.entries[id].2 = BYTE;
        }
    }
    if let Some(byte) = is_there.iter().position(|is_there| !is_there) {
        return Err(not_built("fallback to bytes", format!("there is no token <0x{byte:02X}>")));
    }
    header.text("tokenizer.ggml.model", "gemma4");
    header.flag("tokenizer.ggml.add_space_prefix", has_prefix);
    Ok(())
}

/// The byte of `<0xNN>`: two digits with capital letters, as the tokenizers library writes what it looks up.
fn byte_of(text: &str) -> Option<u8> {
    let digits = text.strip_prefix("<0x")?.strip_suffix('>').filter(|digits| digits.len() == 2)?;
    let is_digit = |digit: u8| matches!(digit, b'0'..=b'9' | b'A'..=b'F');
    digits.bytes().all(is_digit).then(|| u8::from_str_radix(digits, 16).ok())?
}

/// GGUF has three places for tokens that end a generation.
fn write_special(
    bos: Option<u32>,
    ends: &[u32],
    unknown: Option<u32>,
    header: &mut GgufHeader,
) -> Result<(), SafetensorsError> {
    let mut distinct: Vec<u32> = Vec::new();
    ends.iter().for_each(|id| {
        if !distinct.contains(id) {
            distinct.push(*id)
        }
    });
    if distinct.len() > 3 {
        return Err(not_built("number of tokens that end a generation", format!("{distinct:?}")));
    }
    let keys = ["eos", "eot", "eom"].into_iter().zip(distinct.into_iter().map(Some));
    for (key, id) in keys.chain([("bos", bos), ("unknown", unknown)]) {
        if let Some(id) = id {
            header.number(&format!("tokenizer.ggml.{key}_token_id"), id);
        }
    }
    Ok(())
}

fn write_tokens(tokens: &Tokens, header: &mut GgufHeader) {
    let mut texts = Texts::default();
    let mut kinds = Vec::with_capacity(tokens.rows as usize);
    for id in 0..tokens.rows as usize {
        match tokens.text(id) {
            Some(text) => texts.push(text),
            None => texts.push(&format!("[PAD{id}]")),
        }
        kinds.push(
            tokens.entries.get(id).map_or(UNUSED, |(_, _, kind)| if *kind == 0 { UNUSED } else { *kind }),
        );
    }
    header.texts("tokenizer.ggml.tokens", &texts);
    header.integers("tokenizer.ggml.token_type", &kinds);
}

/// What `tokenizer_config.json` has.
#[derive(Default)]
struct Settings {
    bos: Option<String>,
    eos: Option<String>,
    template: Option<String>,
}

fn read_settings(bytes: &[u8]) -> Result<Settings, SafetensorsError> {
    let mut settings = Settings::default();
    let mut json = Json::new(bytes)?;
    json.object(|json, key| {
        match key {
            "bos_token" => settings.bos = read_token(json)?,
            "eos_token" => settings.eos = read_token(json)?,
            "chat_template" if json.shape()? == Shape::Array => settings.template = read_templates(json)?,
            "chat_template" => settings.template = json.text_or_null()?.map(Into::into),
            _ => json.skip()?,
        }
        Ok::<(), SafetensorsError>(())
    })?;
    json.end()?;
    Ok(settings)
}

/// A token as text, or as an object with its `content`.
fn read_token(json: &mut Json<'_>) -> Result<Option<String>, SafetensorsError> {
    if json.shape()? != Shape::Object {
        return Ok(json.text_or_null()?.map(Into::into));
    }
    let mut content = None;
    json.object(|json, key| {
        match key {
            "content" => content = Some(json.text()?.into_owned()),
            _ => json.skip()?,
        }
        Ok::<(), SafetensorsError>(())
    })?;
    Ok(content)
}

/// Several templates by name: the one called `default`.
fn read_templates(json: &mut Json<'_>) -> Result<Option<String>, SafetensorsError> {
    let mut default = None;
    json.array(|json| {
        let (mut name, mut template) = (None, None);
        json.object(|json, key| {
            match key {
                "name" => name = Some(json.text()?),
                "template" => template = Some(json.text()?),
                _ => json.skip()?,
            }
            Ok::<(), SafetensorsError>(())
        })?;
        if name.as_deref() == Some("default") {
            default = template.map(Into::into);
        }
        Ok::<(), SafetensorsError>(())
    })?;
    Ok(default)
}
