//! Tokens with a meaning in folders of safetensors: which file says what, and what is said of added tokens.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod folder;

use folder::{Made, byte_tokenizer, folder_with, metadata_of, refusal, refusal_of, with, words};
use serde_json::{Value, json};
use zrt_engine::tokenizer::{SpecialIds, Tokenizer};

/// Pieces of a post-processor's template.
fn template(pieces: &[Value]) -> Value {
    let numbers = json!({
        "<s>": {"id": "<s>", "ids": [0], "tokens": ["<s>"]},
        "</s>": {"id": "</s>", "ids": [1], "tokens": ["</s>"]},
        "<begin>": {"id": "<begin>", "ids": [3], "tokens": ["<begin>"]},
        "<name>": {"id": "<name>", "ids": [2], "tokens": ["no text of it"]},
        "<two>": {"id": "<two>", "ids": [0, 1], "tokens": ["<s>", "</s>"]},
        "<none>": {"id": "<none>", "ids": [], "tokens": []},
        "<far>": {"id": "<far>", "ids": [300], "tokens": ["<far>"]},
    });
    json!({"type": "TemplateProcessing", "single": pieces, "pair": [], "special_tokens": numbers})
}

fn special(token: &str) -> Value {
    json!({"SpecialToken": {"id": token, "type_id": 0}})
}

fn text() -> Value {
    json!({"Sequence": {"id": "A", "type_id": 0}})
}

/// Added tokens from 0 on.
fn with_added(tokenizer: Value, texts: &[&str]) -> Value {
    let added: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(id, text)| json!({"id": id, "content": text, "special": true}))
        .collect();
    with(tokenizer, &["added_tokens"], &json!(added))
}

#[test]
fn the_token_in_front_is_that_of_the_template() {
    let of = |processor: &Value| {
        with(with_added(byte_tokenizer(), &["<s>", "</s>"]), &["post_processor"], processor)
    };
    let bytes = || json!({"type": "ByteLevel", "trim_offsets": true});
    let several = |processors: &[Value]| json!({"type": "Sequence", "processors": processors});
    let [begun, ended] = ["<s>", "</s>"].map(|token| template(&[special(token), text()]));
    for (processor, front) in [
        (Value::Null, None),
        (bytes(), None),
        (template(&[text()]), None),
        (begun.clone(), Some(0)),
        (several(&[]), None),
        (several(&[bytes()]), None),
        // As Llama 3's file has it.
        (several(&[bytes(), begun.clone()]), Some(0)),
        (several(&[begun.clone(), bytes()]), Some(0)),
        (several(&[ended.clone(), begun]), Some(1)),
        (several(&[template(&[text()]), ended]), Some(1)),
        // The number counts, whatever the text of its token is.
        (template(&[special("<name>"), text()]), Some(2)),
    ] {
        let tokenizer = Tokenizer::from_gguf(&metadata_of(of(&processor))).unwrap();
        assert_eq!(
            (tokenizer.special_ids().bos, tokenizer.adds_bos()),
            (front, front.is_some()),
            "{processor}"
        );
    }
    for (processor, told) in [
        (json!({"type": "RobertaProcessing", "sep": ["</s>", 2]}), "RobertaProcessing"),
        (template(&[]), "a template []"),
        (template(&[special("<s>")]), r#"a template [(true, "<s>")]"#),
        (template(&[text(), special("</s>")]), r#"a template [(false, "A"), (true, "</s>")]"#),
        (
            template(&[special("<s>"), text(), special("</s>")]),
            r#"a template [(true, "<s>"), (false, "A"), (true, "</s>")]"#,
        ),
        (
            template(&[text(), text(), text(), special("<s>"), special("</s>")]),
            r#"a template [(false, "A"), (false, "A"), (false, "A")]"#,
        ),
        (several(&[json!({"type": "BertProcessing"})]), "BertProcessing"),
        // Nothing else is put in front in its place.
        (template(&[special("<strange>"), text()]), r#"a template with "<strange>", which is not one token"#),
        (template(&[special("<two>"), text()]), r#"a template with "<two>", which is not one token"#),
        (template(&[special("<none>"), text()]), r#"a template with "<none>", which is not one token"#),
        (template(&[special("<far>"), text()]), "a template with token 300 of 300"),
    ] {
        assert_eq!(refusal_of(of(&processor)), format!("this post-processor is not built: {told}"));
    }
    // Names of special tokens are kept while the file is read: 64 of them, and no more.
    let numbered = |count: u64| {
        let numbers = (0..count).map(|id| (format!("<{id}>"), json!({"ids": [id % 8]})));
        let mut processor = template(&[special("<9>"), text()]);
        processor["special_tokens"] = numbers.collect();
        of(&processor)
    };
    assert_eq!(Tokenizer::from_gguf(&metadata_of(numbered(64))).unwrap().special_ids().bos, Some(1));
    let wanted = "this post-processor is not built: a template with more than 64 special tokens";
    assert_eq!(refusal_of(numbered(65)), wanted);
    // One that is no list is not taken for one that puts nothing in front.
    let wanted = "it is not the JSON that is needed: ";
    let error = refusal_of(of(&json!({"type": "TemplateProcessing", "single": "<s> $A"})));
    assert!(error.starts_with(wanted) && error.ends_with("an array is needed"), "{error}");
}

#[test]
fn added_tokens_are_parsed_in_prompts_or_everywhere_and_have_no_other_properties() {
    let of = |added: Value| with(byte_tokenizer(), &["added_tokens"], &json!([added]));
    let plain = json!({"id": 2, "content": "<x>", "single_word": false, "lstrip": false, "rstrip": false,
        "normalized": true, "special": true});
    for (is_special, kind) in [(true, 3), (false, 4)] {
        let mut added = plain.clone();
        added["special"] = json!(is_special);
        let gguf = metadata_of(of(added));
        assert_eq!(gguf.metadata.i32s("tokenizer.ggml.token_type").unwrap()[1..4], [5, kind, 5]);
        let texts = gguf.metadata.strings("tokenizer.ggml.tokens").unwrap();
        assert_eq!([1, 2, 3].map(|id| texts.get(id)), [Some("[PAD1]"), Some("<x>"), Some("[PAD3]")]);
    }
    for property in ["single_word", "lstrip", "rstrip"] {
        let mut added = plain.clone();
        added[property] = json!(true);
        let wanted = format!("this property of an added token is not built: {property}");
        assert_eq!(refusal_of(of(added)), wanted);
    }
    for key in ["id", "content"] {
        let mut added = plain.clone();
        added.as_object_mut().unwrap().remove(key);
        assert_eq!(refusal_of(of(added)), format!("`added_tokens.{key}` is missing"));
    }
}

/// Tokens with a meaning, by `tokenizer.json`, `tokenizer_config.json`, `generation_config.json` and `config.json`.
fn meanings(tokenizer: &Value, settings: Value, generation: Value, config: [Value; 2]) -> SpecialIds {
    let texts = ["<unk>", "<s>", "</s>", "<begin>"];
    let [bos, eos] = config;
    let made = folder_with(with_added(tokenizer.clone(), &texts), 16);
    let mut made = made.with("bos_token_id", bos).with("eos_token_id", eos);
    made.files.push(("tokenizer_config.json", settings.to_string().into_bytes()));
    made.files.push(("generation_config.json", generation.to_string().into_bytes()));
    let gguf = made.open().unwrap_or_else(|error| panic!("{}", words(&error)));
    Tokenizer::from_gguf(&gguf).unwrap().special_ids()
}

#[test]
fn the_file_nearest_to_the_texts_says_which_token_begins_them() {
    let plain = byte_tokenizer();
    let front = with(plain.clone(), &["post_processor"], &template(&[special("<begin>"), text()]));
    let (none, generation) = (Value::Null, json!({"bos_token_id": 5}));
    for (tokenizer, settings, generation, config, bos) in [
        (&plain, json!({}), json!({}), &none, None),
        (&plain, json!({}), json!({}), &json!(6), Some(6)),
        (&plain, json!({}), generation.clone(), &json!(6), Some(5)),
        (&plain, json!({"bos_token": "<s>"}), generation.clone(), &json!(6), Some(1)),
        (&plain, json!({"bos_token": {"content": "<s>", "lstrip": false}}), json!({}), &none, Some(1)),
        (&plain, json!({"bos_token": null}), generation.clone(), &none, Some(5)),
        (&plain, json!({"bos_token": {"lstrip": false}}), generation.clone(), &none, Some(5)),
        (&plain, json!({"bos_token": "<strange>"}), generation.clone(), &none, Some(5)),
        (&front, json!({"bos_token": "<s>"}), generation, &none, Some(3)),
    ] {
        let found = meanings(tokenizer, settings.clone(), generation, [config.clone(), none.clone()]);
        assert_eq!(found, SpecialIds { bos, ..SpecialIds::default() }, "{settings}");
    }
}

#[test]
fn every_file_may_name_a_token_that_ends() {
    let (plain, none) = (byte_tokenizer(), Value::Null);
    let of = |settings: Value, generation: Value, config: Value| {
        let found = meanings(&plain, settings, generation, [none.clone(), config]);
        assert_eq!((found.bos, found.unknown), (None, None));
        [found.eos, found.eot, found.eom]
    };
    let text = || json!({"eos_token": "</s>"});
    let ids = |ids: Value| json!({"eos_token_id": ids});
    assert_eq!(of(json!({}), json!({}), none.clone()), [None; 3]);
    assert_eq!(of(json!({}), json!({}), json!(7)), [Some(7), None, None]);
    assert_eq!(of(text(), json!({}), json!(7)), [Some(2), Some(7), None]);
    // What is meant for generation replaces what the model's own file has.
    assert_eq!(of(json!({}), ids(json!([5, 6])), json!(7)), [Some(5), Some(6), None]);
    assert_eq!(of(text(), ids(json!([5, 6])), json!(7)), [Some(2), Some(5), Some(6)]);
    assert_eq!(of(text(), ids(json!([5, 2, 5, 6, 2])), json!(7)), [Some(2), Some(5), Some(6)]);
    assert_eq!(
        of(json!({"eos_token": {"content": "</s>"}}), ids(json!(2)), none.clone()),
        [Some(2), None, None]
    );

    let mut made = folder_with(plain.clone(), 16);
    made.files.push(("generation_config.json", ids(json!([1, 2, 3, 4])).to_string().into_bytes()));
    let wanted = "this number of tokens that end a generation is not built: [1, 2, 3, 4]";
    assert_eq!(refusal(&made), wanted);
}

#[test]
fn the_unknown_token_is_named_by_the_model() {
    let of = |unknown: Value| {
        let tokenizer = with(byte_tokenizer(), &["model", "unk_token"], &unknown);
        meanings(&tokenizer, json!({}), json!({}), [Value::Null, Value::Null]).unknown
    };
    assert_eq!((of(json!("<unk>")), of(json!("</s>"))), (Some(0), Some(2)));
    assert_eq!((of(Value::Null), of(json!("<strange>"))), (None, None));
}

#[test]
fn of_several_templates_the_default_one_counts() {
    let of = |templates: Value| {
        let mut made = Made::llama();
        let settings = json!({"chat_template": templates});
        made.files.push(("tokenizer_config.json", settings.to_string().into_bytes()));
        let gguf = made.open().unwrap_or_else(|error| panic!("{}", words(&error)));
        gguf.metadata.str("tokenizer.chat_template").ok().map(str::to_owned)
    };
    let one = |name: &str| json!({"name": name, "template": format!("{{{{ {name} }}}}"), "more": [1]});
    let default = Some("{{ default }}".to_owned());
    assert_eq!(of(json!("{{ default }}")), default);
    assert_eq!(of(json!([one("tool_use"), one("default"), one("rag")])), default);
    assert_eq!(of(json!([one("default")])), default);
    for none in
        [Value::Null, json!([]), json!([one("tool_use")]), json!([{"template": "x"}, {"name": "default"}])]
    {
        assert_eq!(of(none), None);
    }
}
