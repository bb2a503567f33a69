//! Conversations: from messages to the tokens that a model was trained on, by the template in its file.
//!
//! The template is a program in Jinja's language that comes with the model, so it is as untrusted as the file. It is
//! rendered by minijinja within the limits of [`limits`]: instructions and bytes cost fuel, calls have a depth, data
//! that a loop keeps is copied flat (`guard`, `functions`). Contents of messages come from somewhere else again: they
//! never become control tokens, whatever they spell (`shield`).
//!
//! Contract: [`ChatTemplate::new`] compiles once; [`ChatTemplate::tokens`] is a function of the conversation. Both end
//! for every template and every conversation, with a value or a [`ChatError`]; neither panics. What rendering costs in
//! memory and time follows the fuel ([`limits`]), which follows the conversation, not the template. Rendering runs on a
//! thread of its own, whose stack is known.

mod clock;
mod error;
mod functions;
mod guard;
mod renderer_error;
mod shield;
mod stops;
mod template;

pub use error::ChatError;
pub use stops::{StopError, StopTexts};
pub use template::{ChatTemplate, Rendered};

use minijinja::Value;
use std::time::SystemTime;

/// Upper limits on templates and conversations. Known templates have at most a third of what is accepted.
pub mod limits {
    /// Bytes of a template; the longest known ones have 20,000.
    pub const TEMPLATE_BYTES_MAX: usize = 1 << 16;
    /// Tokens between the brackets of one tag. Folding constants takes the square of it.
    pub const TAG_TOKENS_MAX: usize = 1 << 8;
    /// Bytes of all contents of a conversation.
    pub const CONVERSATION_BYTES_MAX: usize = 1 << 24;
    /// Fuel of a conversation without messages. One fuel pays for an instruction, or for 64 bytes of text.
    pub const FUEL_BASE: u64 = 20_000;
    /// Fuel for each message.
    pub const FUEL_PER_MESSAGE: u64 = 1_000;
    /// Bytes of contents that bring one more fuel: each byte may be copied 32 times, and published templates do about
    /// half of that.
    pub const BYTES_PER_FUEL: u64 = 2;
    /// Depth of calls of macros, and of recursive loops.
    pub const RECURSION_MAX: usize = 64;
    /// Depth of nested lists and maps that a namespace keeps, and that are written as JSON.
    pub const NESTING_MAX: usize = 32;
    /// Spaces of one level of indented JSON.
    pub const INDENT_MAX: usize = 16;
    /// Stack of the thread that renders. A level of nesting in the template's own text takes less than 4 KiB.
    pub const STACK_BYTES: usize = 64 << 20;
    /// Bytes of a message that the template raises, or that an error quotes.
    pub const MESSAGE_BYTES_MAX: usize = 500;
    /// Different characters with which control tokens begin.
    pub const BEGINNINGS_MAX: usize = 256;
    /// Maximum number of members of an object in a tool's description or arguments.
    pub const MEMBERS_MAX: usize = 512;
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions before the conversation.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// The result of a tool that the model called.
    Tool,
}

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said.
    pub content: String,
    /// What the model thought before it said it, if that is known apart.
    pub reasoning: Option<String>,
    /// Tools that the model called.
    pub tool_calls: Vec<ToolCall>,
}

/// The call of a tool by the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The tool.
    pub name: String,
    /// What it was called with.
    pub arguments: Json,
}

/// A JSON value, its keys in their order: descriptions of tools, and arguments of calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Json {
    pub(crate) value: Value,
    /// Bytes of its text.
    bytes: usize,
}

/// What a template renders.
#[derive(Clone, Copy, Debug)]
pub struct Conversation<'a> {
    /// Messages, the oldest first.
    pub messages: &'a [Message],
    /// Tools that the model may call.
    pub tools: &'a [Json],
    /// End with the beginning of the model's next turn.
    pub add_generation_prompt: bool,
    /// Whether the model thinks before it answers, for templates that ask; `None`: as they have it.
    pub enable_thinking: Option<bool>,
    /// The time that the template may ask for, in UTC.
    pub now: SystemTime,
}

impl Role {
    /// Its name in templates.
    pub const fn name(self) -> &'static str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        }
    }
}

impl Message {
    /// A message of text alone.
    pub fn new(role: Role, content: impl Into<String>) -> Message {
        Message { role, content: content.into(), reasoning: None, tool_calls: Vec::new() }
    }
}

impl Json {
    /// Reads JSON. What is no JSON, is nested more than 128 deep, or has an object of more than
    /// [`limits::MEMBERS_MAX`] members, is an error in words.
    pub fn parse(text: &str) -> Result<Json, ChatError> {
        let error = |error: serde_json::Error| ChatError::Json { detail: error.to_string() };
        let parsed: serde_json::Value = serde_json::from_str(text).map_err(error)?;
        if has_large_object(&parsed) {
            let detail = format!("an object has more than {} members", limits::MEMBERS_MAX);
            return Err(ChatError::Json { detail });
        }
        // Again, because the first reading has lost the order of members.
        Ok(Json { value: serde_json::from_str(text).map_err(error)?, bytes: text.len() })
    }
}

fn has_large_object(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Array(items) => items.iter().any(has_large_object),
        serde_json::Value::Object(members) => {
            members.len() > limits::MEMBERS_MAX || members.values().any(has_large_object)
        }
        _ => false,
    }
}

impl<'a> Conversation<'a> {
    /// Messages that the model is to answer, without tools, at the current time.
    pub fn new(messages: &'a [Message]) -> Conversation<'a> {
        Conversation {
            messages,
            tools: &[],
            add_generation_prompt: true,
            enable_thinking: None,
            now: SystemTime::now(),
        }
    }

    /// Bytes of everything in it.
    fn bytes(&self) -> usize {
        let calls = |message: &Message| {
            message.tool_calls.iter().map(|call| call.name.len() + call.arguments.bytes).sum::<usize>()
        };
        let message = |message: &Message| {
            message.content.len() + message.reasoning.as_ref().map_or(0, String::len) + calls(message)
        };
        self.messages.iter().map(message).sum::<usize>()
            + self.tools.iter().map(|tool| tool.bytes).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::Role;

    #[test]
    fn roles_have_the_names_that_templates_compare() {
        let roles = [Role::System, Role::User, Role::Assistant, Role::Tool];
        assert_eq!(roles.map(Role::name), ["system", "user", "assistant", "tool"]);
    }
}
