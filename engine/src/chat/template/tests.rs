//! Templates over a vocabulary made by hand: where a template comes from, what it finds, and what it may cost.

use super::*;
use crate::chat::{Json, ToolCall};
use std::time::UNIX_EPOCH;

/// GGUF's numbers of value types.
const U32: u32 = 4;
const I32: u32 = 5;
const F32: u32 = 6;
const TEXT: u32 = 8;
const ARRAY: u32 = 9;

fn put_text(file: &mut Vec<u8>, text: &str) {
    file.extend((text.len() as u64).to_le_bytes());
    file.extend(text.as_bytes());
}

fn put_key(file: &mut Vec<u8>, key: &str, types: &[u32], count: Option<usize>) {
    put_text(file, key);
    types.iter().for_each(|one| file.extend(one.to_le_bytes()));
    count.iter().for_each(|count| file.extend((*count as u64).to_le_bytes()));
}

/// Tokens with GGUF's numbers of their kinds: 1 normal, 2 unknown, 3 control.
const TOKENS: [(&str, i32); 8] = [
    ("<unk>", 2),
    ("<s>", 3),
    ("</s>", 3),
    ("<|ask|>", 3),
    ("<|end|>", 3),
    ("<|end|>\n<|stop|>", 3),
    ("\u{2581}", 1),
    ("x", 1),
];

/// A file with a vocabulary of SentencePiece, which begins texts with `<s>`, and a template of this type and value.
fn file(template: Option<(u32, &[u8])>) -> Gguf {
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    file.extend(0u64.to_le_bytes());
    file.extend((4 + u64::from(template.is_some())).to_le_bytes());
    put_key(&mut file, "tokenizer.ggml.model", &[TEXT], None);
    put_text(&mut file, "llama");
    put_key(&mut file, "tokenizer.ggml.tokens", &[ARRAY, TEXT], Some(TOKENS.len()));
    TOKENS.iter().for_each(|(text, _)| put_text(&mut file, text));
    put_key(&mut file, "tokenizer.ggml.token_type", &[ARRAY, I32], Some(TOKENS.len()));
    TOKENS.iter().for_each(|(_, kind)| file.extend(kind.to_le_bytes()));
    put_key(&mut file, "tokenizer.ggml.scores", &[ARRAY, F32], Some(TOKENS.len()));
    file.extend([0; 4 * TOKENS.len()]);
    if let Some((value_type, value)) = template {
        put_key(&mut file, "tokenizer.chat_template", &[value_type], None);
        file.extend(value);
    }
    Gguf::from_bytes(file).unwrap()
}

fn tokenizer() -> Tokenizer {
    Tokenizer::from_gguf(&file(None)).unwrap()
}

fn template(source: &str) -> ChatTemplate {
    ChatTemplate::new(source, &tokenizer()).unwrap()
}

fn render(source: &str, messages: &[Message]) -> Result<String, ChatError> {
    let conversation = Conversation { now: UNIX_EPOCH, ..Conversation::new(messages) };
    Ok(template(source).render(&conversation)?.text().into_owned())
}

#[test]
fn a_file_may_have_a_template_which_is_a_text() {
    let tokenizer = tokenizer();
    assert!(ChatTemplate::from_gguf(&file(None), &tokenizer).unwrap().is_none());
    let mut value = Vec::new();
    put_text(&mut value, "{{ bos_token }}{{ eos_token }}{{ messages[0].content }}");
    let found = ChatTemplate::from_gguf(&file(Some((TEXT, &value))), &tokenizer).unwrap().unwrap();
    let messages = [Message::new(Role::User, "x")];
    assert_eq!(found.render(&Conversation::new(&messages)).unwrap().text(), "<s></s>x");
    let error = ChatTemplate::from_gguf(&file(Some((U32, &[0; 4]))), &tokenizer).err().unwrap();
    assert!(matches!(&error, ChatError::Metadata(_)), "{error:?}");
    assert!(error.to_string().contains("tokenizer.chat_template"), "{error}");
}

/// `<s>` is in front once, whether the template writes it or not.
#[test]
fn a_conversation_begins_with_one_token_for_the_beginning() {
    let tokenizer = tokenizer();
    assert!(tokenizer.adds_bos());
    let messages = [Message::new(Role::User, "x<s>")];
    let tokens = |source: &str| template(source).tokens(&tokenizer, &Conversation::new(&messages)).unwrap();
    // A space in front of the text, and three characters that the vocabulary does not have.
    let content = [6, 7, 0, 0, 0];
    assert_eq!(tokens("{{ messages[0].content }}"), [&[1][..], &content].concat());
    assert_eq!(tokens("{{ bos_token }}{{ messages[0].content }}"), [&[1][..], &content].concat());
    assert_eq!(
        tokens("{{ bos_token }}{{ bos_token }}{{ messages[0].content }}"),
        [&[1, 1][..], &content].concat()
    );
    assert_eq!(tokens("<|ask|>{{ messages[0].content }}"), [&[1, 3][..], &content].concat());
}

#[test]
fn the_token_after_an_answer_ends_the_turn() {
    let tokenizer = tokenizer();
    let end = |source: &str| template(source).end_of_turn(&tokenizer);
    let turns = "{% for m in messages %}<|ask|>{{ m.content }}END{% endfor %}";
    assert_eq!(end(&turns.replace("END", "<|end|>")), Some(4));
    assert_eq!(end(&turns.replace("END", "\n <|end|>x")), Some(4));
    assert_eq!(end(&turns.replace("END", "{{ eos_token }}")), Some(2));
    assert_eq!(end(&turns.replace("END", "<|end|>\n<|stop|>")), Some(5), "the longest counts");
    assert_eq!(end(&turns.replace("END", "x<|end|>")), None);
    assert_eq!(end("<|end|>"), None, "the answer is not there");
    assert_eq!(end("{{ raise_exception('no') }}"), None);
    // Without the beginning of another turn, which would stand in between.
    let asks = format!("{turns}{{% if add_generation_prompt %}}<|ask|>{{% else %}}<|end|>{{% endif %}}");
    assert_eq!(end(&asks.replace("END", "")), Some(4));
}

#[test]
fn a_template_finds_what_a_message_has_and_nothing_else() {
    let source = "{% for m in messages %}{{ m.role }} {{ m.content }} {{ m.reasoning_content is defined }} \
                  {{ m.tool_calls is defined }} {% endfor %}";
    let call = ToolCall { name: "f".into(), arguments: Json::parse(r#"{"k": [1, "<s>"]}"#).unwrap() };
    let full = Message {
        reasoning: Some("why".into()),
        tool_calls: vec![call],
        ..Message::new(Role::Assistant, "b")
    };
    let messages = [
        Message::new(Role::System, "s"),
        Message::new(Role::User, "a"),
        full,
        Message::new(Role::Tool, "<|end|>"),
    ];
    let expected = "system s False False user a False False assistant b True True tool <|end|> False False ";
    assert_eq!(render(source, &messages).unwrap(), expected);
    let source = "{{ messages[2].reasoning_content }} {{ messages[2].tool_calls | tojson }}";
    let expected = r#"why [{"type": "function", "function": {"name": "f", "arguments": {"k": [1, "<s>"]}}}]"#;
    assert_eq!(render(source, &messages).unwrap(), expected);
    assert_eq!(render("{{ strftime_now('%Y') }}", &messages).unwrap(), "1970");
    let raised = |message: &str| Err(ChatError::Raised { message: message.into() });
    assert_eq!(render("{{ raise_exception('a\nb') }}", &messages), raised("a b"));
    assert_eq!(render("{{ raise_exception(1) }}", &messages), raised("no reason is given"));
    let failed = ChatError::Render { line: 2, detail: "undefined value".into() };
    assert_eq!(render("\n{{ a.b }}", &messages), Err(failed));
}

/// 20,000 units, 1,000 for each message and one for each two bytes; a list of 100,000 parts takes more.
#[test]
fn a_template_may_take_what_its_conversation_brings() {
    let messages = ["x".repeat(2001), "y".repeat(3000), String::new()];
    let messages = messages.map(|content| Message::new(Role::User, content));
    let found = render("{% for i in range(100000) %}{% endfor %}", &messages);
    assert_eq!(found, Err(ChatError::Fuel { fuel: 20_000 + 3_000 + 2_500 }));
    let found = render("{% for i in range(100000) %}{% endfor %}", &[]);
    assert_eq!(found, Err(ChatError::Fuel { fuel: 20_000 }));
}

#[test]
fn a_conversation_has_16_mib_at_most() {
    let one = |bytes: usize| Json { value: Value::from(1), bytes };
    let render = |bytes: usize| {
        let messages = [Message::new(Role::User, "x")];
        let tools = [one(bytes)];
        template("y").render(&Conversation { tools: &tools, ..Conversation::new(&messages) })
    };
    let limit = 16 << 20;
    assert_eq!(render(limit - 1).unwrap().text(), "y");
    assert_eq!(render(limit).unwrap_err(), ChatError::Conversation { bytes: limit + 1, limit });
}

/// 3 + 5 of the first message; 1, 7 + 100 and 2 + 1000 of the second; 10,000 and 20,000 of tools.
#[test]
fn bytes_of_a_conversation_are_those_of_all_its_parts() {
    let json = |bytes: usize| Json { value: Value::from(1), bytes };
    let call = |name: &str, bytes: usize| ToolCall { name: name.into(), arguments: json(bytes) };
    let messages = [
        Message { reasoning: Some("12345".into()), ..Message::new(Role::User, "123") },
        Message {
            tool_calls: vec![call("1234567", 100), call("12", 1000)],
            ..Message::new(Role::Assistant, "1")
        },
    ];
    let tools = [json(10_000), json(20_000)];
    let conversation = Conversation { tools: &tools, ..Conversation::new(&messages) };
    assert_eq!(conversation.bytes(), 8 + 1 + 107 + 1002 + 30_000);
    assert_eq!(Conversation::new(&messages[..1]).bytes(), 8);
    assert_eq!(Json::parse(r#" {"a": "é"} "#).unwrap().bytes, 13);
}
