//! `tokenizer.json` as GGUF's metadata: which tokenizers are taken, and which are refused and in what words.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod folder;

use folder::{Made, byte_tokenizer, folder_with, metadata_of, refusal, refusal_of, with, words};
use serde_json::{Value, json};
use std::io::Read;
use std::path::Path;
use zrt_engine::gguf::Gguf;
use zrt_engine::tokenizer::Tokenizer;

/// The expression of Llama 3's file.
const LLAMA: &str = concat!(
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
);

/// Those of Qwen 2 and of Qwen 3.5, which differ in single digits, and in marks that belong to words.
fn qwens() -> [String; 2] {
    let qwen2 = LLAMA.replace("{1,3}", "");
    let qwen35 =
        qwen2.replace(r"\p{L}+|", r"[\p{L}\p{M}]+|").replace(r"[^\s\p{L}\p{N}]", r"[^\s\p{L}\p{M}\p{N}]");
    [qwen2, qwen35]
}

/// A tokenizer of characters: a token for each byte from 3 on, then these.
fn of_characters(texts: &[&str], merges: &Value) -> Value {
    let mut vocab: serde_json::Map<String, Value> =
        (0..256).map(|byte| (format!("<0x{byte:02X}>"), json!(byte + 3))).collect();
    vocab.extend(texts.iter().zip(259..).map(|(text, id)| ((*text).to_owned(), json!(id))));
    json!({
        "added_tokens": [], "pre_tokenizer": null, "post_processor": null,
        "normalizer": {"type": "Sequence", "normalizers": [prepend(), replace()]},
        "model": {"type": "BPE", "fuse_unk": true, "byte_fallback": true, "vocab": vocab, "merges": merges}
    })
}

/// The normalisers of Llama 2's file: a space in front, and what spaces are written as.
fn prepend() -> Value {
    json!({"type": "Prepend", "prepend": "\u{2581}"})
}

fn replace() -> Value {
    json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"})
}

/// The vocabulary of a GGUF file as `tokenizer.json`.
fn tokenizer_json(
    gguf: &Gguf,
    pre_tokenizer: Value,
    normalizer: Value,
    takes_whole: bool,
    falls_back: bool,
) -> Value {
    let texts = gguf.metadata.strings("tokenizer.ggml.tokens").unwrap();
    let kinds = gguf.metadata.i32s("tokenizer.ggml.token_type").unwrap();
    let (mut vocab, mut added) = (serde_json::Map::new(), Vec::new());
    for (id, (text, kind)) in texts.iter().zip(kinds).enumerate() {
        match kind {
            2..=4 => added.push(json!({"id": id, "content": text, "special": *kind != 4,
                "single_word": false, "lstrip": false, "rstrip": false, "normalized": false})),
            5 => {}
            _ => drop(vocab.insert(text.to_owned(), json!(id))),
        }
    }
    // Newer files have a list of two for each merge.
    let merges: Vec<Value> = gguf
        .metadata
        .strings("tokenizer.ggml.merges")
        .unwrap()
        .iter()
        .enumerate()
        .map(|(index, merge)| {
            match merge.split_once(' ').filter(|(left, _)| !left.is_empty() && index % 2 == 0) {
                Some((left, right)) => json!([left, right]),
                None => json!(merge),
            }
        })
        .collect();
    json!({"version": "1.0", "truncation": null, "added_tokens": added, "normalizer": normalizer,
        "pre_tokenizer": pre_tokenizer, "decoder": {"type": "ByteLevel"},
        "post_processor": {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}]},
        "model": {"type": "BPE", "unk_token": null, "byte_fallback": falls_back, "ignore_merges": takes_whole,
            "vocab": vocab, "merges": merges}})
}

fn vocabulary(folder: &Path, name: &str) -> Gguf {
    let packed = folder.join("vocab").join(format!("{name}.gguf.gz"));
    let mut bytes = Vec::new();
    match std::fs::File::open(packed) {
        Ok(packed) => drop(flate2::read::GzDecoder::new(packed).read_to_end(&mut bytes).unwrap()),
        Err(_) => bytes = std::fs::read(folder.join("vocab").join(format!("{name}.gguf"))).unwrap(),
    }
    Gguf::from_bytes(bytes).unwrap()
}

fn split(expression: &str) -> Value {
    json!({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {"Regex": expression}, "behavior": "Isolated", "invert": false},
        {"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": false}]})
}

/// The texts of llama.cpp's vectors become the same tokens.
#[test]
fn vocabularies_encode_the_vectors_through_tokenizer_json() {
    let Some(folder) = zrt_needs::models() else { return };
    let [qwen2, qwen35] = qwens();
    let bytes =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": true});
    let spaces = json!({"type": "Replace", "pattern": {"String": " "}, "content": "\u{2581}"});
    let cases = [
        ("ggml-vocab-gpt-2", bytes, Value::Null, false, false, 47),
        ("ggml-vocab-llama-bpe", split(LLAMA), Value::Null, true, false, 47),
        ("ggml-vocab-qwen2", split(&qwen2), json!({"type": "NFC"}), false, false, 47),
        ("ggml-vocab-qwen35", split(&qwen35), json!({"type": "NFC"}), false, false, 51),
        ("ggml-vocab-gemma-4", Value::Null, spaces, false, true, 46),
    ];
    for (name, pre_tokenizer, normalizer, takes_whole, falls_back, count) in cases {
        let gguf = vocabulary(&folder, name);
        let tokens = gguf.metadata.strings("tokenizer.ggml.tokens").unwrap().len();
        let tokenizer = tokenizer_json(&gguf, pre_tokenizer, normalizer, takes_whole, falls_back);
        let made = folder_with(tokenizer, tokens).open();
        let made = made.unwrap_or_else(|error| panic!("{name}: {}", words(&error)));
        let tokenizer = Tokenizer::from_gguf(&made).unwrap();
        let read = |ending: &str| {
            std::fs::read_to_string(folder.join("vocab").join(format!("{name}.gguf.{ending}")))
        };
        let (inputs, outputs) = (read("inp").unwrap(), read("out").unwrap());
        let cases = inputs.split("\n__ggml_vocab_test__\n").zip(outputs.split('\n'));
        let mut checked = 0;
        for (input, output) in cases {
            let expected: Vec<u32> = output.split_whitespace().map(|id| id.parse().unwrap()).collect();
            assert_eq!(tokenizer.encode_plain(input), expected, "{name}: {input:?}");
            checked += 1;
        }
        assert_eq!(checked, count, "{name}");
    }
}

/// A vocabulary of bytes and a few merges, with a space in front, as Llama 2's files have it. By hand: `▁a` is joined
/// first, then `▁ab`; `é` is no token and becomes its bytes.
#[test]
fn characters_with_a_space_in_front_and_bytes_for_the_rest() {
    // The last one is no byte.
    let texts = ["\u{2581}", "a", "b", "\u{2581}a", "\u{2581}ab", "bb", "<0x+F>"];
    let special = |id: u32, text: &str| json!({"id": id, "content": text, "special": true});
    let mut tokenizer = of_characters(&texts, &json!(["\u{2581} a", "\u{2581}a b", "b b"]));
    // The last one is behind the last row, as Gemma 3's token of images.
    tokenizer["added_tokens"] =
        json!([special(0, "<unk>"), special(1, "<s>"), special(2, "</s>"), special(300, "<image>")]);
    tokenizer["post_processor"] = json!({"type": "TemplateProcessing", "single": [
        {"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}});
    tokenizer["model"]["unk_token"] = json!("<unk>");
    let mut made = folder_with(tokenizer, 300);
    made.files.push(("generation_config.json", br#"{"eos_token_id": [2, 7]}"#.to_vec()));
    made.files.push(("tokenizer_config.json", br#"{"chat_template": "{{ messages }}"}"#.to_vec()));
    let gguf = made.open().unwrap();
    let tokenizer = Tokenizer::from_gguf(&gguf).unwrap();
    assert_eq!(tokenizer.encode("ab"), [1, 263]);
    // The end token is plain text: its four bytes.
    let bytes = b"</s>".map(|byte| u32::from(byte) + 3);
    let expected = [&[263, 263, 261][..], &bytes, &[261]].concat();
    assert_eq!(tokenizer.encode_plain("ab abb</s>b"), expected);
    assert_eq!(tokenizer.encode_plain("bb"), [259, 264]);
    assert_eq!(tokenizer.encode_plain("\u{e9}"), [259, 0xc3 + 3, 0xa9 + 3]);
    assert_eq!(tokenizer.encode("<s>a"), [1, 1, 262]);
    assert!(tokenizer.is_end(2) && tokenizer.is_end(7) && !tokenizer.is_end(3));
    assert_eq!(tokenizer.token_text(299), Some("[PAD299]"));
    assert_eq!(tokenizer.token_count(), 300);
    let kinds = gguf.metadata.i32s("tokenizer.ggml.token_type").unwrap();
    assert_eq!((kinds[15 + 3], kinds[265]), (6, 1), "a byte, and text that is like one");
    assert_eq!(gguf.metadata.str("tokenizer.chat_template").unwrap(), "{{ messages }}");
    made.files.push(("chat_template.jinja", b"{{ bos_token }}".to_vec()));
    assert_eq!(made.open().unwrap().metadata.str("tokenizer.chat_template").unwrap(), "{{ bos_token }}");
    made.files.push(("chat_template.jinja", b"{{ \xff }}".to_vec()));
    assert_eq!(refusal(&made), "`chat_template.jinja` cannot be used: it is not UTF-8");
}

/// Files from before the key have no `use_regex`, and the tokenizers library takes it for true.
#[test]
fn a_pre_tokenizer_of_bytes_splits_if_it_does_not_say() {
    let mut made = Made::llama();
    made.tokenizer["pre_tokenizer"] =
        json!({"type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true});
    assert_eq!(made.open().unwrap().metadata.str("tokenizer.ggml.pre").unwrap(), "gpt-2");
}

/// Normalisers or pre-tokenizers one after another.
fn sequence(key: &str, stages: &[Value]) -> Value {
    json!({"type": "Sequence", key: stages})
}

#[test]
fn models_that_are_not_built_are_refused_by_part() {
    let (array, whole) = (json!([["a", 0.5]]), "this `ignore_merges` is not built");
    for (key, value, wanted) in [
        ("type", json!("Unigram"), "this model of a tokenizer is not built: Unigram".to_owned()),
        ("type", json!("WordLevel"), "this model of a tokenizer is not built: WordLevel".to_owned()),
        ("dropout", json!(0.1), "this way of encoding is not built: dropout".to_owned()),
        ("end_of_word_suffix", json!("</w>"), "this mark of a word's parts is not built: </w>".to_owned()),
        ("continuing_subword_prefix", json!("##"), "this mark of a word's parts is not built: ##".to_owned()),
        ("end_of_word_suffix", json!(""), String::new()),
        ("ignore_merges", json!(true), format!("{whole}: true of gpt-2")),
        ("byte_fallback", json!(true), "this normaliser is not built: ".to_owned()),
        ("vocab", json!({"a": 299}), String::new()),
        (
            "vocab",
            json!({"a": 300}),
            "token \"a\" has the number 300, but the embedding has 300 rows".to_owned(),
        ),
        // Other models have an array; they are refused for what they are.
        ("vocab", array.clone(), String::new()),
    ] {
        assert_eq!(refusal_of(with(byte_tokenizer(), &["model", key], &value)), wanted, "{key} {value}");
    }
    let unigram =
        with(with(byte_tokenizer(), &["model", "vocab"], &array), &["model", "type"], &json!("Unigram"));
    assert_eq!(refusal_of(unigram), "this model of a tokenizer is not built: Unigram");
    let mut untyped = byte_tokenizer();
    untyped["model"].as_object_mut().unwrap().remove("type");
    assert_eq!(refusal_of(untyped), "this model of a tokenizer is not built: none");
}

#[test]
fn merges_are_texts_or_lists_of_two() {
    let of = |merges: Value| with(byte_tokenizer(), &["model", "merges"], &merges);
    let gguf = metadata_of(of(json!(["a b", ["c", "d"], ["e", "f g"], "\u{120} h"])));
    let merges = gguf.metadata.strings("tokenizer.ggml.merges").unwrap();
    assert_eq!(merges.iter().collect::<Vec<_>>(), ["a b", "c d", "e f g", "\u{120} h"]);
    // A space would end the left one elsewhere. Of a long list the beginning is told.
    for (merge, told) in [
        (json!(["a b", "c"]), r#"["a b", "c"]"#),
        (json!([]), "[]"),
        (json!(["a"]), r#"["a"]"#),
        (json!(["a", "b", "c"]), r#"["a", "b", "c"]"#),
        (json!(["a", "b", "c", "d", "e"]), r#"["a", "b", "c"]"#),
    ] {
        assert_eq!(refusal_of(of(json!(["a b", merge]))), format!("this merge is not built: {told}"));
    }
}

/// The tokenizer of characters cuts between line feeds and the rest before it merges.
#[test]
fn line_feeds_merge_with_line_feeds_only() {
    let of = |merges: &[&str]| of_characters(&["a", "\n", "\n\n"], &json!(merges));
    for merges in [&["\n \n"][..], &["\n\n \n", "a b"], &["a b", "\n \n\n"]] {
        assert_eq!(refusal_of(of(merges)), "", "{merges:?}");
    }
    let wanted = "this merge is not built: of a line feed with other characters, or `ignore_merges`";
    for merges in [
        &["\n a"][..],
        &["a \n"],
        &["\n\n a"],
        &["\na b"],
        &["\n a", "a b"],
        &["a b", "b \n"],
        &["\n a", "\n b"],
    ] {
        assert_eq!(refusal_of(of(merges)), wanted, "{merges:?}");
    }
    assert_eq!(refusal_of(with(of(&[]), &["model", "ignore_merges"], &json!(true))), wanted);
}

#[test]
fn characters_need_a_token_for_each_byte() {
    for byte in ["<0x00>", "<0x41>", "<0xFF>"] {
        let mut tokenizer = of_characters(&["a"], &json!([]));
        tokenizer["model"]["vocab"].as_object_mut().unwrap().remove(byte);
        let wanted = format!("this fallback to bytes is not built: there is no token {byte}");
        assert_eq!(refusal_of(tokenizer), wanted);
    }
}

#[test]
fn normalisers_of_characters_write_spaces_and_may_put_one_in_front() {
    let of = |normalizer: &Value| with(of_characters(&["a"], &json!([])), &["normalizer"], normalizer);
    let several = |stages: &[Value]| sequence("normalizers", stages);
    let in_front = |normalizer: &Value| {
        let gguf = metadata_of(of(normalizer));
        let flag = |default| gguf.metadata.bool_or("tokenizer.ggml.add_space_prefix", default).unwrap();
        assert_eq!(flag(true), flag(false), "it is said");
        flag(true)
    };
    assert!(in_front(&several(&[prepend(), replace()])));
    assert!(!in_front(&replace()));
    assert!(!in_front(&several(&[replace()])));
    let (put, write) = ("Prepend prepend=\u{2581}", "Replace String=  content=\u{2581}");
    let underscore = json!({"type": "Replace", "pattern": {"String": " "}, "content": "_"});
    for (normalizer, told) in [
        (Value::Null, String::new()),
        (prepend(), put.to_owned()),
        (several(&[replace(), prepend()]), format!("{write}, then {put}")),
        (several(&[prepend(), prepend()]), format!("{put}, then {put}")),
        (several(&[replace(), replace()]), format!("{write}, then {write}")),
        (
            several(&[prepend(), replace(), json!({"type": "NFKC"})]),
            format!("{put}, then {write}, then NFKC"),
        ),
        (underscore, "Replace String=  content=_".to_owned()),
        (json!({"type": "NFC"}), "NFC".to_owned()),
    ] {
        assert_eq!(refusal_of(of(&normalizer)), format!("this normaliser is not built: {told}"));
    }
}

#[test]
fn normalisers_of_bytes_are_the_form_that_texts_have() {
    let of = |normalizer: &Value| refusal_of(with(byte_tokenizer(), &["normalizer"], normalizer));
    let nfc = json!({"type": "NFC"});
    assert_eq!(
        (of(&nfc), of(&sequence("normalizers", &[nfc.clone(), nfc.clone()]))),
        (String::new(), String::new())
    );
    assert_eq!(of(&json!({"type": "Lowercase"})), "this normaliser is not built: Lowercase");
    let both = sequence("normalizers", &[nfc, json!({"type": "NFD"})]);
    assert_eq!(of(&both), "this normaliser is not built: NFD");
}

/// As Gemma's files have it: where spaces are written otherwise, there is none to cut at.
#[test]
fn a_pre_tokenizer_of_characters_does_nothing() {
    let of = |stage: &Value| refusal_of(with(of_characters(&["a"], &json!([])), &["pre_tokenizer"], stage));
    let split = |behaviour: &str| {
        let mut split = split_by("", behaviour);
        split["pattern"] = json!({"String": " "});
        split
    };
    let idle = split("MergedWithPrevious");
    assert_eq!((of(&Value::Null), of(&idle)), (String::new(), String::new()));
    let told = "this pre-tokenizer is not built: Split String=  behavior";
    assert_eq!(of(&split("Isolated")), format!("{told}=Isolated invert=false"));
    let both = sequence("pretokenizers", &[idle, json!({"type": "Whitespace"})]);
    assert_eq!(of(&both), format!("{told}=MergedWithPrevious invert=false, then Whitespace"));
}

fn byte_level(has_space: bool, splits: bool) -> Value {
    json!({"type": "ByteLevel", "add_prefix_space": has_space, "trim_offsets": true, "use_regex": splits})
}

fn split_by(expression: &str, behaviour: &str) -> Value {
    json!({"type": "Split", "pattern": {"Regex": expression}, "behavior": behaviour, "invert": false})
}

/// The expression of Mistral's file is that of Llama 3's with words that end between cases, single digits, and slashes
/// after signs.
fn tekken() -> String {
    let (upper, lower) = (r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]");
    let lead = r"[^\r\n\p{L}\p{N}]?";
    let words = format!("{lead}{upper}*{lower}+|{lead}{upper}+{lower}*");
    format!(r"{words}|\p{{N}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
}

#[test]
fn pre_tokenizers_of_bytes_have_names() {
    let of = |stages: &Value, takes_whole: bool| {
        let tokenizer = with(byte_tokenizer(), &["pre_tokenizer"], stages);
        with(tokenizer, &["model", "ignore_merges"], &json!(takes_whole))
    };
    let digits = json!({"type": "Digits", "individual_digits": true});
    let smollm = sequence("pretokenizers", &[digits, byte_level(false, true)]);
    let [qwen2, qwen35] = qwens();
    for (stages, takes_whole, name) in [
        (byte_level(false, true), false, "gpt-2"),
        (smollm, false, "smollm"),
        (split(LLAMA), true, "llama-bpe"),
        (split(&tekken()), true, "tekken"),
        (split(&qwen2), false, "qwen2"),
        (split(&qwen35), false, "qwen35"),
    ] {
        let gguf = metadata_of(of(&stages, takes_whole));
        assert_eq!(gguf.metadata.str("tokenizer.ggml.pre").unwrap(), name);
        assert_eq!(gguf.metadata.str("tokenizer.ggml.model").unwrap(), "gpt2");
        // The name says whether words that are tokens are looked up first.
        let wanted = format!("this `ignore_merges` is not built: {} of {name}", !takes_whole);
        assert_eq!(refusal_of(of(&stages, !takes_whole)), wanted);
    }
}

#[test]
fn pre_tokenizers_of_bytes_that_only_look_alike_are_refused() {
    let told = |has_space: bool, splits: bool| {
        format!("ByteLevel add_prefix_space={has_space} trim_offsets=true use_regex={splits}")
    };
    let told_by = |expression: &str, behaviour: &str| {
        format!("Split Regex={expression} behavior={behaviour} invert=false")
    };
    let digits = |each: bool| json!({"type": "Digits", "individual_digits": each});
    let cases = [
        (vec![], String::new()),
        (vec![byte_level(false, false)], told(false, false)),
        (vec![byte_level(true, true)], told(true, true)),
        (vec![json!({"type": "Whitespace", "use_regex": true})], "Whitespace use_regex=true".to_owned()),
        (
            vec![byte_level(false, true), byte_level(false, true)],
            format!("{}, then {}", told(false, true), told(false, true)),
        ),
        (
            vec![digits(false), byte_level(false, true)],
            format!("Digits individual_digits=false, then {}", told(false, true)),
        ),
        (
            vec![digits(true), byte_level(false, false)],
            format!("Digits individual_digits=true, then {}", told(false, false)),
        ),
        (
            vec![digits(true), byte_level(true, true)],
            format!("Digits individual_digits=true, then {}", told(true, true)),
        ),
        (
            vec![split_by(r"\w+", "Isolated"), byte_level(false, false)],
            format!("{}, then {}", told_by(r"\w+", "Isolated"), told(false, false)),
        ),
        (
            vec![split_by(r"\w+", "Removed"), byte_level(false, true)],
            format!("{}, then {}", told_by(r"\w+", "Removed"), told(false, true)),
        ),
    ];
    let of = |stages: &[Value]| {
        refusal_of(with(byte_tokenizer(), &["pre_tokenizer"], &sequence("pretokenizers", stages)))
    };
    for (stages, told) in cases {
        assert_eq!(of(&stages), format!("this pre-tokenizer is not built: {told}"));
    }
    // A known expression with something else about it; of a long text the first 200 characters are told.
    for (behaviour, has_space, splits) in
        [("Isolated", false, true), ("Isolated", true, false), ("Removed", false, false)]
    {
        let told = format!("{}, then {}", told_by(LLAMA, behaviour), told(has_space, splits));
        let told: String = told.chars().take(200).collect();
        let found = of(&[split_by(LLAMA, behaviour), byte_level(has_space, splits)]);
        assert_eq!(found, format!("this pre-tokenizer is not built: {told}"));
    }
}
