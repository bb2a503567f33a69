//! Tokenizers against golden prompts, llama.cpp's vocabulary vectors, and small vocabularies made by hand.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use proptest::prelude::*;
use serde_json::Value as Json;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use zrt_engine::gguf::Gguf;
use zrt_engine::tokenizer::{SpecialIds, StreamDecoder, TokenKind, Tokenizer, TokenizerError};

fn repository_models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../models")
}

fn tokenizer_of(path: &Path) -> Tokenizer {
    let gguf = Gguf::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    Tokenizer::from_gguf(&gguf).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn ids(json: &Json) -> Vec<u32> {
    json.as_array().unwrap().iter().map(|id| u32::try_from(id.as_u64().unwrap()).unwrap()).collect()
}

/// Checks every prompt and every greedy text of a golden trace; returns how many.
fn check_golden(model: &Path, golden: &Path) -> usize {
    let name = golden.display();
    let tokenizer = tokenizer_of(model);
    let trace: Json = serde_json::from_slice(&std::fs::read(golden).unwrap()).unwrap();
    assert_eq!(trace["n_vocab"].as_u64(), Some(tokenizer.token_count() as u64), "{name}");
    let cases = trace["traces"].as_array().unwrap();
    for case in cases {
        let prompt = case["prompt"].as_str().unwrap();
        assert_eq!(tokenizer.encode(prompt), ids(&case["prompt_token_ids"]), "{name}: {prompt:?}");
        let greedy = ids(&case["greedy_token_ids"]);
        assert_eq!(tokenizer.decode(&greedy), case["greedy_text"].as_str().unwrap(), "{name}: {prompt:?}");
    }
    cases.len()
}

#[test]
fn golden_prompts_of_the_models_in_the_repository() {
    let folder = repository_models();
    for name in ["tales-qwen3-Q4_0", "tales-llama-Q4_K_M"] {
        let golden = folder.join(format!("golden/{name}.golden.json"));
        assert_eq!(check_golden(&folder.join(format!("{name}.gguf")), &golden), 5);
    }
}

/// Traces that the folder of further models held when this was written; it may grow, and every one is checked.
const GOLDEN_FILES_MIN: usize = 26;

#[test]
fn golden_prompts_of_all_models() {
    let Some(folder) = zrt_needs::models() else { return };
    let mut files = 0;
    for entry in std::fs::read_dir(folder.join("golden")).unwrap() {
        let golden = entry.unwrap().path();
        let name =
            golden.file_name().unwrap().to_str().unwrap().strip_suffix(".golden.json").unwrap().to_owned();
        // The one trace whose model is not in the folder for its size.
        if name != "SmolLM2-135M-Instruct-Q4_1" {
            assert_eq!(check_golden(&folder.join(format!("{name}.gguf")), &golden), 5);
            files += 1;
        }
    }
    assert!(files >= GOLDEN_FILES_MIN, "{files} traces only");
}

/// Checks the vectors of one vocabulary file; returns how many.
fn check_vectors(folder: &Path, name: &str, gzipped: bool) -> usize {
    let vocabulary = folder.join("vocab").join(format!("{name}.gguf"));
    let tokenizer = if gzipped {
        let packed = std::fs::File::open(vocabulary.with_extension("gguf.gz")).unwrap();
        let mut bytes = Vec::new();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap();
        Tokenizer::from_gguf(&Gguf::from_bytes(bytes).unwrap()).unwrap()
    } else {
        tokenizer_of(&vocabulary)
    };
    let inputs = std::fs::read_to_string(vocabulary.with_extension("gguf.inp")).unwrap();
    let outputs = std::fs::read_to_string(vocabulary.with_extension("gguf.out")).unwrap();
    let inputs: Vec<&str> = inputs.split("\n__ggml_vocab_test__\n").collect();
    // The last text is empty, and so is its line after the last line feed.
    let outputs: Vec<&str> = outputs.split('\n').collect();
    let mut cases = 0;
    for (input, output) in inputs.iter().zip(&outputs) {
        let expected: Vec<u32> = output.split_whitespace().map(|id| id.parse().unwrap()).collect();
        let found = tokenizer.encode_plain(input);
        assert_eq!(found, expected, "{name}: {input:?}");
        // A byte-level vocabulary returns every byte; SentencePiece also returns its space in front.
        let text = tokenizer.decode(&found);
        assert_eq!(text.strip_prefix(' ').filter(|_| name.ends_with("spm")).unwrap_or(&text), *input);
        cases += 1;
    }
    cases
}

#[test]
fn llama_cpp_vectors() {
    let Some(folder) = zrt_needs::models() else { return };
    assert_eq!(check_vectors(&folder, "ggml-vocab-gpt-2", false), 47);
    assert_eq!(check_vectors(&folder, "ggml-vocab-llama-spm", false), 47);
    assert_eq!(check_vectors(&folder, "ggml-vocab-qwen2", true), 47);
    assert_eq!(check_vectors(&folder, "ggml-vocab-llama-bpe", true), 47);
    assert_eq!(check_vectors(&folder, "ggml-vocab-qwen35", true), 51);
    assert_eq!(check_vectors(&folder, "ggml-vocab-gemma-4", true), 46);
}

/// A unigram vocabulary that the repository keeps, with what llama.cpp makes of texts with it (`tests/data`).
#[test]
fn unigram_vectors_by_llama_cpp() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/data");
    let vectors: Json =
        serde_json::from_slice(&std::fs::read(folder.join("unigram.vectors.json")).unwrap()).unwrap();
    for name in ["unigram", "unigram-spaces", "unigram-unsaid"] {
        let tokenizer = tokenizer_of(&folder.join(format!("{name}.gguf")));
        let cases = vectors[name].as_array().unwrap();
        assert_eq!(cases.len(), 36);
        for case in cases {
            let text = case["text"].as_str().unwrap();
            assert_eq!(tokenizer.encode(text), ids(&case["ids"]), "{name}: {text:?}");
            assert_eq!(tokenizer.encode_plain(text), ids(&case["plain"]), "{name}, plain: {text:?}");
        }
    }
}

#[test]
fn beginning_of_text_is_added_where_the_model_asks() {
    let Some(folder) = zrt_needs::models() else { return };
    let stories = tokenizer_of(&folder.join("stories260K-F32.gguf"));
    assert!(stories.adds_bos());
    assert_eq!(stories.special_ids().bos, Some(1));
    assert!(stories.is_end(2) && !stories.is_end(1));
    assert_eq!(stories.encode("")[..], [1]);
    assert!(stories.encode_plain("").is_empty());
    // Byte fallback: the vocabulary of 512 has no such letter; byte tokens are 3..=258.
    let tokens = stories.encode_plain("天");
    assert!(tokens.ends_with(&[3 + 0xe5, 3 + 0xa4, 3 + 0xa9]), "{tokens:?}");
    assert_eq!(stories.decode(&tokens), " 天");
}

static TALES: LazyLock<Tokenizer> =
    LazyLock::new(|| tokenizer_of(&repository_models().join("tales-qwen3-Q4_0.gguf")));

#[test]
fn special_tokens_are_parsed_in_prompts_only() {
    assert_eq!(TALES.token_text(0), Some("<|endoftext|>"));
    assert_eq!((TALES.kind(0), TALES.is_end(0)), (Some(TokenKind::Control), true));
    let parsed = TALES.encode("a<|endoftext|><|endoftext|>b");
    assert_eq!(parsed.iter().filter(|id| **id == 0).count(), 2);
    assert_eq!(parsed[1..3], [0, 0]);
    let plain = TALES.encode_plain("a<|endoftext|>b");
    assert!(!plain.contains(&0));
    assert_eq!(TALES.decode(&plain), "a<|endoftext|>b");
    assert_eq!(TALES.decode(&parsed), "ab");
}

#[test]
fn ids_outside_the_vocabulary_decode_to_a_replacement() {
    assert_eq!(TALES.piece(4096), None);
    assert_eq!(TALES.decode(&[4096, u32::MAX]), "\u{fffd}\u{fffd}");
}

#[test]
fn streamed_text_waits_for_whole_characters() {
    let tokens = TALES.encode_plain("é天🦙");
    let mut decoder = StreamDecoder::new();
    let mut parts: Vec<String> = tokens.iter().map(|id| decoder.push(&TALES, *id)).collect();
    assert!(parts.iter().all(|part| !part.contains('\u{fffd}')), "{parts:?}");
    parts.push(decoder.finish());
    assert_eq!(parts.concat(), "é天🦙");
    // Cut inside the last character: what is missing shows only at the end.
    let mut decoder = StreamDecoder::new();
    let cut: String = tokens[..tokens.len() - 1].iter().map(|id| decoder.push(&TALES, *id)).collect();
    assert_eq!(cut, "é天");
    assert_eq!(decoder.finish(), "\u{fffd}");
}

/// What can be no character whatever follows comes out at once.
#[test]
fn streamed_text_waits_for_nothing_else() {
    let byte =
        |wanted: u8| (0..4096).find(|id| TALES.piece(*id) == Some(&[wanted][..])).expect("a token of each");
    let mut decoder = StreamDecoder::new();
    let mut push = |id: u32| decoder.push(&TALES, id);
    assert_eq!([push(byte(0xff)), push(4096)], ["\u{fffd}", "\u{fffd}"]);
    assert_eq!([push(byte(b'a')), push(byte(0x80))], ["a", "\u{fffd}"]);
    // The beginning of a character, and then what does not continue it.
    assert_eq!([push(byte(0xc3)), push(byte(b'b'))], ["", "\u{fffd}b"]);
    assert_eq!([push(byte(0xe5)), push(byte(0xa4)), push(byte(0xff))], ["", "", "\u{fffd}\u{fffd}"]);
    assert_eq!([push(byte(0xf0)), push(byte(0x9f)), push(byte(0xa6)), push(byte(0x99))], ["", "", "", "🦙"]);
    assert_eq!(decoder.finish(), "");
}

#[test]
fn long_words_take_no_quadratic_time() {
    let started = std::time::Instant::now();
    for text in [
        "a".repeat(400_000),
        "1".repeat(400_000),
        " ".repeat(400_000),
        "\n".repeat(400_000),
        "!?".repeat(200_000),
    ] {
        assert_eq!(TALES.decode(&TALES.encode_plain(&text)), text);
    }
    // A quadratic step over 400,000 characters is 10^11 operations, minutes; linear ones take well under a second.
    assert!(started.elapsed().as_secs() < 20);
}

proptest! {
    #[test]
    fn byte_level_text_survives_the_round_trip(text in any::<String>()) {
        prop_assert_eq!(TALES.decode(&TALES.encode_plain(&text)), text);
    }

    #[test]
    fn words_and_blanks_survive_the_round_trip(text in "[a-zA-Z0-9 \n\t'.,!éж天\u{301}]{0,80}") {
        prop_assert_eq!(TALES.decode(&TALES.encode_plain(&text)), text);
    }

    #[test]
    fn streaming_equals_decoding_at_once(ids in prop::collection::vec(0..4100u32, 0..60)) {
        let bytes: Vec<u8> = ids
            .iter()
            .filter(|id| TALES.kind(**id) != Some(TokenKind::Control))
            .flat_map(|id| TALES.piece(*id).map_or(vec![0xff], <[u8]>::to_vec))
            .collect();
        prop_assert_eq!(TALES.decode(&ids), String::from_utf8_lossy(&bytes));
    }
}

/// A GGUF of metadata only.
struct Header {
    pairs: u64,
    bytes: Vec<u8>,
}

impl Header {
    fn new(model: &str) -> Header {
        Header { pairs: 0, bytes: Vec::new() }.text("tokenizer.ggml.model", model)
    }

    fn put_text(&mut self, text: &str) {
        self.bytes.extend((text.len() as u64).to_le_bytes());
        self.bytes.extend(text.as_bytes());
    }

    fn value(mut self, key: &str, value_type: u32, value: &[u8]) -> Header {
        self.pairs += 1;
        self.put_text(key);
        self.bytes.extend(value_type.to_le_bytes());
        self.bytes.extend(value);
        self
    }

    fn text(mut self, key: &str, text: &str) -> Header {
        self = self.value(key, 8, &[]);
        self.put_text(text);
        self
    }

    fn u32(self, key: &str, value: u32) -> Header {
        self.value(key, 4, &value.to_le_bytes())
    }

    fn bool(self, key: &str, value: bool) -> Header {
        self.value(key, 7, &[u8::from(value)])
    }

    fn texts(mut self, key: &str, texts: &[&str]) -> Header {
        self = self.value(key, 9, &8u32.to_le_bytes());
        self.bytes.extend((texts.len() as u64).to_le_bytes());
        texts.iter().for_each(|text| self.put_text(text));
        self
    }

    fn numbers<T, const N: usize>(
        mut self,
        key: &str,
        element_type: u32,
        of: &[T],
        to: fn(&T) -> [u8; N],
    ) -> Header {
        self = self.value(key, 9, &element_type.to_le_bytes());
        self.bytes.extend((of.len() as u64).to_le_bytes());
        of.iter().for_each(|number| self.bytes.extend(to(number)));
        self
    }

    fn types(self, types: &[i32]) -> Header {
        self.numbers("tokenizer.ggml.token_type", 5, types, |number| number.to_le_bytes())
    }

    fn scores(self, scores: &[f32]) -> Header {
        self.numbers("tokenizer.ggml.scores", 6, scores, |number| number.to_le_bytes())
    }

    fn bytes(self, key: &str, bytes: &[u8]) -> Header {
        self.numbers(key, 0, bytes, |byte| [*byte])
    }

    fn build(self) -> Result<Tokenizer, TokenizerError> {
        let mut file = b"GGUF".to_vec();
        file.extend(3u32.to_le_bytes());
        file.extend(0u64.to_le_bytes());
        file.extend(self.pairs.to_le_bytes());
        file.extend(self.bytes);
        Tokenizer::from_gguf(&Gguf::from_bytes(file).unwrap())
    }
}

/// Seven tokens, two of them special, and three merges.
fn small_bpe(merges: &[&str]) -> Header {
    Header::new("gpt2")
        .text("tokenizer.ggml.pre", "gpt-2")
        .texts("tokenizer.ggml.tokens", &["a", "b", "c", "ab", "bc", "<x>", "<xy>", "Ġ"])
        .types(&[1, 1, 1, 1, 1, 3, 4, 1])
        .texts("tokenizer.ggml.merges", merges)
}

/// The token that begins texts is number 1 where a file of SentencePiece names none.
#[test]
fn a_vocabulary_without_the_token_puts_nothing_in_front() {
    for (tokens, in_front) in [(&["<unk>"][..], &[][..]), (&["<unk>", "<s>"], &[1])] {
        let header = Header::new("llama").texts("tokenizer.ggml.tokens", tokens);
        let tokenizer = header.scores(&vec![0.0; tokens.len()]).build().unwrap();
        assert_eq!(tokenizer.adds_bos(), !in_front.is_empty(), "{tokens:?}");
        assert_eq!(tokenizer.encode(""), in_front, "{tokens:?}");
    }
}

#[test]
fn merges_apply_by_rank_and_then_from_the_left() {
    let encode = |merges: &[&str], text: &str| small_bpe(merges).build().unwrap().encode_plain(text);
    assert_eq!(encode(&["a b", "b c"], "abc"), [3, 2]);
    assert_eq!(encode(&["b c", "a b"], "abc"), [0, 4]);
    assert_eq!(encode(&["a b"], "abab b"), [3, 3, 7, 1]);
    // "abc" is reached by merging but is not a token: it is split into bytes.
    assert_eq!(encode(&["a b", "ab c"], "abc"), [0, 1, 2]);
    // A byte without a token is left out if there is no unknown token either.
    assert_eq!(encode(&[], "azb"), [0, 1]);
}

#[test]
fn user_defined_tokens_are_always_parsed_and_the_longer_one_wins() {
    let tokenizer = small_bpe(&["a b"]).build().unwrap();
    assert_eq!(tokenizer.encode_plain("ab<xy>ab"), [3, 6, 3]);
    assert_eq!(tokenizer.encode("<xy><x>a"), [6, 5, 0]);
    assert_eq!(tokenizer.decode(&[6, 5, 0]), "<xy>a");
}

#[test]
fn characters_merge_by_rank_and_unknown_ones_become_bytes() {
    // What the rules say, by hand: spaces are ▁ and merge too, line feeds do not merge with other characters.
    let tokens = ["<unk>", "<bos>", "a", "b", "▁", "ab", "▁ab", "\n", "\n\n", "<0xC3>", "<0xA9>", "bx"];
    let tokenizer = Header::new("gemma4")
        .texts("tokenizer.ggml.tokens", &tokens)
        .types(&[3, 3, 1, 1, 1, 1, 1, 1, 1, 6, 6, 1])
        .texts("tokenizer.ggml.merges", &["\n \n", "a b", "▁ ab", "b x", "x y"])
        .u32("tokenizer.ggml.bos_token_id", 1)
        .u32("tokenizer.ggml.unknown_token_id", 0)
        .build()
        .unwrap();
    assert_eq!(tokenizer.encode("ab"), [1, 5]);
    assert_eq!(tokenizer.encode_plain(" ab  b"), [6, 4, 4, 3]);
    assert_eq!(tokenizer.encode_plain("a\n\n\nb"), [2, 8, 7, 3]);
    // x occurs in the merges, but alone is no token; é is none at all; z has no byte token either.
    assert_eq!(tokenizer.encode_plain("bxéz"), [11, 9, 10, 0]);
    assert_eq!(tokenizer.encode_plain("xy"), [0, 0]);
    assert_eq!(tokenizer.decode(&[6, 9, 10, 7]), " abé\n");
}

/// What merges make and what is no token falls apart into its characters, of which each may be one.
#[test]
fn a_symbol_that_is_no_token_is_its_characters() {
    let tokens = ["<unk>", "a", "<0x62>", "c", "<0x61>"];
    let tokenizer = Header::new("gemma4")
        .texts("tokenizer.ggml.tokens", &tokens)
        .types(&[2, 1, 6, 1, 6])
        .texts("tokenizer.ggml.merges", &["a b", "ab c"])
        .u32("tokenizer.ggml.unknown_token_id", 0)
        .build()
        .unwrap();
    assert_eq!(tokenizer.encode_plain("ab"), [1, 2]);
    assert_eq!(tokenizer.encode_plain("abcd"), [1, 2, 3, 0]);
}

/// GGUF's numbers of types; others are text.
#[test]
fn kinds_of_tokens_are_those_of_their_numbers() {
    use TokenKind::{Byte, Control, Normal, Unknown, Unused, UserDefined};
    let numbers = [-1, 0, 1, 2, 3, 4, 5, 6, 7];
    let kinds = [Normal, Normal, Normal, Unknown, Control, UserDefined, Unused, Byte, Normal];
    let texts: Vec<String> = numbers.iter().map(|number| format!("<{number}>")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let header =
        Header::new("gpt2").text("tokenizer.ggml.pre", "gpt-2").texts("tokenizer.ggml.tokens", &texts);
    let tokenizer = header.types(&numbers).texts("tokenizer.ggml.merges", &[]).build().unwrap();
    for (id, kind) in kinds.into_iter().enumerate() {
        assert_eq!(tokenizer.kind(id as u32), Some(kind));
        // Found in prompts are those that are no text, and everywhere those that users define.
        let is_found = |tokens: Vec<u32>| tokens == [id as u32];
        let is_special = matches!(kind, Unknown | Control | UserDefined);
        assert_eq!(is_found(tokenizer.encode(texts[id])), is_special, "{}", texts[id]);
        assert_eq!(is_found(tokenizer.encode_plain(texts[id])), kind == UserDefined, "{}", texts[id]);
    }
    assert_eq!(tokenizer.kind(9), None);
}

/// The first counts in prompts; in plain text the first that is always parsed.
#[test]
fn of_special_tokens_with_one_text_the_one_that_may_be_parsed_counts() {
    for (types, parsed, plain) in [
        ([1, 3, 4, 4], vec![1], vec![2]),
        ([1, 4, 3, 4], vec![1], vec![1]),
        ([1, 3, 3, 3], vec![1], vec![0, 0, 0]),
    ] {
        let header = Header::new("gpt2").text("tokenizer.ggml.pre", "gpt-2").types(&types);
        let header = header.texts("tokenizer.ggml.tokens", &["x", "xxx", "xxx", "xxx"]);
        let tokenizer = header.texts("tokenizer.ggml.merges", &[]).build().unwrap();
        assert_eq!((tokenizer.encode("xxx"), tokenizer.encode_plain("xxx")), (parsed, plain), "{types:?}");
    }
}

fn small_spm() -> Header {
    let tokens = ["<unk>", "<s>", "</s>", "<0x7A>", "▁", "a", "b", "ab", "▁a", "ba"];
    Header::new("llama")
        .texts("tokenizer.ggml.tokens", &tokens)
        .types(&[2, 3, 3, 6, 1, 1, 1, 1, 1, 1])
        .scores(&[0.0, 0.0, 0.0, 0.0, -1.0, -1.0, -1.0, -2.0, -3.0, -2.0])
}

#[test]
fn scores_decide_and_ties_go_to_the_left() {
    let tokenizer = small_spm().build().unwrap();
    assert!(tokenizer.adds_bos());
    // "▁ab": ab (-2) is joined before ▁a (-3).
    assert_eq!(tokenizer.encode("ab"), [1, 4, 7]);
    // "▁aba": ab and ba tie; the left one is joined, then nothing joins with it.
    assert_eq!(tokenizer.encode_plain("aba"), [4, 7, 5]);
    // A byte token, and a byte that has none.
    assert_eq!(tokenizer.encode_plain("zé"), [4, 3, 0, 0]);
    // Spaces between words are written like the one in front: "▁a▁b" and "▁▁▁a▁", of which ▁a is joined.
    assert_eq!(tokenizer.encode_plain("a b"), [8, 4, 6]);
    assert_eq!(tokenizer.encode_plain("  a "), [4, 4, 8, 4]);
    // The space in front comes again after a special token.
    assert_eq!(tokenizer.encode("a</s>a"), [1, 8, 2, 8]);
    assert_eq!(tokenizer.decode(&[1, 8, 2, 3, 4, 6]), " az b");
    let bare = small_spm().bool("tokenizer.ggml.add_space_prefix", false);
    let bare = bare.bool("tokenizer.ggml.add_bos_token", false).build().unwrap();
    assert_eq!(bare.encode("ab"), [7]);
    let defaults = SpecialIds { bos: Some(1), eos: Some(2), eot: None, eom: None, unknown: Some(0) };
    assert_eq!(bare.special_ids(), defaults);
}

/// Of the kind `t5`: an unknown token, then these.
fn unigram(pieces: &[(&str, i32, f32)]) -> Header {
    let texts: Vec<&str> = ["<unk>"].into_iter().chain(pieces.iter().map(|piece| piece.0)).collect();
    let types: Vec<i32> = [2].into_iter().chain(pieces.iter().map(|piece| piece.1)).collect();
    let scores: Vec<f32> = [0.0].into_iter().chain(pieces.iter().map(|piece| piece.2)).collect();
    let header = Header::new("t5").texts("tokenizer.ggml.tokens", &texts).types(&types).scores(&scores);
    header.u32("tokenizer.ggml.unknown_token_id", 0)
}

/// A piece is looked up for each pair of neighbours that it may join, so its length is part of the time.
#[test]
fn a_piece_has_1024_bytes_at_most() {
    let runs: Vec<String> = (0..=10).map(|power| "a".repeat(1 << power)).collect();
    let pieces: Vec<&str> = runs.iter().map(String::as_str).collect();
    let scores: Vec<f32> = (0..=11).map(|piece| piece as f32).collect();
    let sentence_piece = |pieces: &[&str]| {
        let header = Header::new("llama").texts("tokenizer.ggml.tokens", pieces);
        let header = header.types(&vec![1; pieces.len()]).scores(&scores[..pieces.len()]);
        header.bool("tokenizer.ggml.add_space_prefix", false).build()
    };
    let tokenizer = sentence_piece(&pieces).unwrap();
    assert_eq!(tokenizer.encode_plain(&"a".repeat(1024)), [10]);
    assert_eq!(tokenizer.encode_plain(&"a".repeat(2049)), [10, 10, 0]);
    let long = "a".repeat(1025);
    let error = sentence_piece(&[&pieces[..], &[&long]].concat()).err().unwrap();
    assert!(matches!(error, TokenizerError::PieceLength { id: 11, bytes: 1025, limit: 1024 }), "{error}");
    let error = unigram(&[(&long[..1024], 1, -1.0), (&long, 1, -1.0)]).build().err().unwrap();
    assert!(matches!(error, TokenizerError::PieceLength { id: 2, bytes: 1025, limit: 1024 }), "{error}");
}

/// An unknown character counts 10 less than the worst ordinary piece, here -60.
#[test]
fn a_character_is_unknown_only_if_it_is_no_piece() {
    let pieces = [("ab", 1, -50.0), ("bc", 1, -1.0), ("u", 5, -1000.0)];
    let tokenizer = unigram(&pieces).build().unwrap();
    // -60 - 1 is more than -50 - 60.
    assert_eq!(tokenizer.encode("abc"), [0, 2]);
    assert_eq!(tokenizer.encode("ab"), [1]);
    // A piece, however bad.
    assert_eq!(tokenizer.encode("u"), [3]);
    assert_eq!(tokenizer.encode("u!?u"), [3, 0, 3]);
}

/// Each of a text's spaces is written; one more is put before the first word.
#[test]
fn a_space_is_put_in_front_once_where_spaces_are_kept() {
    let pieces = [("\u{2581}", 1, -1.0), ("a", 1, -1.0), ("b", 1, -1.0)];
    let with = |prefix: bool, merges: bool| {
        let header = unigram(&pieces).bool("tokenizer.ggml.add_space_prefix", prefix);
        header.bool("tokenizer.ggml.remove_extra_whitespaces", merges).build().unwrap()
    };
    for (prefix, merges, one, several) in [
        (false, false, &[2, 1, 3][..], &[1, 1, 2, 1, 1, 3, 1][..]),
        (true, false, &[1, 2, 1, 3], &[1, 1, 1, 2, 1, 1, 3, 1]),
        (false, true, &[1, 2, 1, 3], &[1, 2, 1, 3]),
        (true, true, &[1, 2, 1, 3], &[1, 2, 1, 3]),
    ] {
        let tokenizer = with(prefix, merges);
        assert_eq!(tokenizer.encode("a b"), one, "{prefix} {merges}");
        assert_eq!(tokenizer.encode("  a  b "), several, "{prefix} {merges}");
    }
}

/// The map of one replacement, by hand: the root's children lie at 8 ^ byte; 'A' is there, and at 16 where it begins.
#[test]
fn replacements_stop_when_a_text_is_sixteen_times_as_long() {
    let mut nodes = vec![0u32; 128];
    let place = 8 ^ usize::from(b'A');
    (nodes[0], nodes[16]) = (8 << 10, 1 << 31);
    nodes[place] = u32::from(b'A') | 1 << 8 | ((place ^ 16) as u32) << 10;
    let mut map = (4 * nodes.len() as u32).to_le_bytes().to_vec();
    nodes.iter().for_each(|node| map.extend(node.to_le_bytes()));
    map.extend([&[b'x'; 32][..], b"\0"].concat());
    let pieces = [("x", 1, -1.0), ("A", 1, -1.0), ("b", 1, -1.0)];
    let tokenizer = unigram(&pieces).bytes("tokenizer.ggml.precompiled_charsmap", &map).build().unwrap();
    // Four bytes become 64: that is reached after two of them.
    let x = "x".repeat(32);
    for (text, normalised) in [
        ("A", x.clone()),
        ("AA", format!("{x}A")),
        ("AAAA", format!("{x}{x}AA")),
        ("AAAAA", format!("{x}{x}{x}AA")),
        ("AbbA", format!("{x}bb{x}")),
    ] {
        let id = |letter| pieces.iter().position(|piece| piece.0 == letter).unwrap() as u32 + 1;
        let wanted: Vec<u32> = normalised.split("").filter(|letter| !letter.is_empty()).map(id).collect();
        assert_eq!(tokenizer.encode(text), wanted, "{text}");
    }
}

#[test]
fn what_cannot_be_a_tokenizer_is_refused_by_name() {
    let error = |header: Header| header.build().err().expect("the header is refused");
    assert!(matches!(error(Header::new("bert")), TokenizerError::Kind { found } if &*found == "bert"));
    let strange = Header::new("gpt2").text("tokenizer.ggml.pre", "viking");
    assert!(matches!(error(strange), TokenizerError::PreTokenizer { .. }));
    assert!(matches!(error(Header::new("gpt2")), TokenizerError::Metadata(_)));
    assert!(matches!(error(Header::new("llama").texts("tokenizer.ggml.tokens", &[])), TokenizerError::Empty));
    for merge in ["ab", "", " b", "a "] {
        assert!(
            matches!(error(small_bpe(&["a b", merge])), TokenizerError::Merge { index: 1, .. }),
            "{merge:?}"
        );
    }
    let short = Header::new("llama").texts("tokenizer.ggml.tokens", &["a", "b"]);
    assert!(matches!(error(short.scores(&[1.0])), TokenizerError::Length { found: 1, tokens: 2, .. }));
    let outside = small_spm().u32("tokenizer.ggml.eos_token_id", 10);
    assert!(matches!(error(outside), TokenizerError::TokenId { found: 10, tokens: 10, .. }));
    let text = error(small_spm().u32("tokenizer.ggml.eos_token_id", 10)).to_string();
    assert_eq!(text, "tokenizer.ggml.eos_token_id is 10, but the vocabulary has 10 tokens");
}
