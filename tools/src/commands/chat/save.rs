//! `/save`: a conversation as JSON.
//!
//! Contract: `{"version": 1, "model": …, "messages": [{"role": …, "content": …}]}`, the form of messages that servers
//! take. The file is written whole and then takes the place of one that was there.

use crate::commands::output::DOCUMENT_VERSION;
use crate::error::ToolError;
use serde::Serialize;
use std::path::Path;
use zrt_engine::chat::Message;

#[derive(Serialize)]
struct Saved<'a> {
    version: u32,
    model: &'a str,
    messages: Vec<SavedMessage<'a>>,
}

#[derive(Serialize)]
struct SavedMessage<'a> {
    role: &'static str,
    content: &'a str,
}

/// Writes a conversation.
pub fn save(path: &Path, model: &str, messages: &[Message]) -> Result<(), ToolError> {
    let messages = messages
        .iter()
        .map(|message| SavedMessage { role: message.role.name(), content: &message.content })
        .collect();
    let mut text = serde_json::to_vec_pretty(&Saved { version: DOCUMENT_VERSION, model, messages })?;
    text.push(b'\n');
    let unwritten = |source| ToolError::Write { path: path.display().to_string(), source };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    std::fs::write(&beside, &text).and_then(|()| std::fs::rename(&beside, path)).map_err(unwritten)
}
