//! Arbitrary text as a chat template, and after its first zero byte as a message: rendering ends in a value or an error
//! within its fuel, and whatever the message is, a template that only repeats it gives no control token.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::sync::LazyLock;
use zrt_engine::chat::{ChatTemplate, Conversation, Message, Role};
use zrt_engine::gguf::Gguf;
use zrt_engine::tokenizer::{TokenKind, Tokenizer};

/// The model that `zrt` has inside of it.
static MODEL: &[u8] = include_bytes!("../../models/tales-qwen3-Q4_0.gguf");

static TOKENIZER: LazyLock<Tokenizer> = LazyLock::new(|| {
    let gguf = Gguf::from_bytes(MODEL).expect("the embedded model is whole");
    Tokenizer::from_gguf(&gguf).expect("the embedded model has a tokenizer")
});

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let (source, content) = text.split_once('\0').unwrap_or((&text, "<|endoftext|>"));
    let messages = [Message::new(Role::User, content), Message::new(Role::Assistant, content)];
    let conversation = Conversation::new(&messages);
    match ChatTemplate::new(source, &TOKENIZER) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(template) => match template.render(&conversation) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok(rendered) => drop(rendered.encode(&TOKENIZER)),
        },
    }
    let repeats = "{{ messages[0].content }}{{ messages[1].content | trim }}";
    let template = ChatTemplate::new(repeats, &TOKENIZER).expect("the template is right");
    let tokens = template.tokens(&TOKENIZER, &conversation).expect("a message is within the limits");
    assert!(tokens.iter().all(|id| TOKENIZER.kind(*id) != Some(TokenKind::Control)));
});
