//! A model's chat template: compiled once, rendered for each conversation.
//!
//! Contract and cost: see [`super`]. What a template finds: `messages` (maps with `role` and `content`, and
//! `reasoning_content` and `tool_calls` where there are any), `tools` (none if there are none), `bos_token`,
//! `eos_token`, `add_generation_prompt`, `enable_thinking` (undefined unless set), `raise_exception`, `strftime_now`,
//! and `tojson` as Python's `json.dumps` with `ensure_ascii=False`. Line feeds after tags and blanks before them are
//! removed, as the libraries that train with templates do.

use super::error::MetadataError;
use super::functions::{self, Record};
use super::guard::{self, Guarded, KEEP, KEEP_DATA};
use super::renderer_error::{detail, shortened, syntax};
use super::shield::{Shield, StandIns, texts_of};
use super::{ChatError, Conversation, Message, Role, clock, limits};
use crate::gguf::{Gguf, GgufError};
use crate::tokenizer::Tokenizer;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, State, Value};
use std::borrow::Cow;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

/// The metadata key of the template.
const KEY: &str = "tokenizer.chat_template";

/// A chat template with the vocabulary's control tokens.
pub struct ChatTemplate {
    source: String,
    bos: String,
    eos: String,
    shield: Shield,
}

/// A rendered conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// With stand-ins.
    covered: String,
    stand_ins: StandIns,
}

impl ChatTemplate {
    /// The template in a model file; `None` if it has none.
    pub fn from_gguf(gguf: &Gguf, tokenizer: &Tokenizer) -> Result<Option<ChatTemplate>, ChatError> {
        match gguf.metadata.str(KEY) {
            Ok(source) => ChatTemplate::new(source, tokenizer).map(Some),
            Err(GgufError::MissingKey { .. }) => Ok(None),
            Err(error) => Err(MetadataError(error.to_string()).into()),
        }
    }

    /// A template for a vocabulary.
    pub fn new(source: &str, tokenizer: &Tokenizer) -> Result<ChatTemplate, ChatError> {
        // As Jinja reads a template, whatever system wrote it.
        let source = source.replace("\r\n", "\n").replace('\r', "\n");
        let Guarded { source, literals } = guard::guard(&source)?;
        let special = tokenizer.special_ids();
        let text =
            |id: Option<u32>| id.and_then(|id| tokenizer.token_text(id)).unwrap_or_default().to_owned();
        let (bos, eos) = (text(special.bos), text(special.eos));
        let template = ChatTemplate { source, bos, eos, shield: Shield::new(tokenizer, &literals)? };
        on_known_stack(|| environment(limits::FUEL_BASE).template_from_str(&template.source).map(|_| ()))?
            .map_err(|error| syntax(&error))?;
        Ok(template)
    }

    /// Renders a conversation.
    pub fn render(&self, conversation: &Conversation<'_>) -> Result<Rendered, ChatError> {
        let (bytes, limit) = (conversation.bytes(), limits::CONVERSATION_BYTES_MAX);
        if bytes > limit {
            return Err(ChatError::Conversation { bytes, limit });
        }
        let stand_ins = self.stand_ins(conversation)?;
        let context = self.context(conversation, &stand_ins);
        let fuel = limits::FUEL_BASE
            + limits::FUEL_PER_MESSAGE * conversation.messages.len() as u64
            + bytes as u64 / limits::BYTES_PER_FUEL;
        let raised = Arc::new(Mutex::new(None));
        let rendered = on_known_stack(|| {
            let mut environment = environment(fuel);
            add_functions(&mut environment, conversation.now, raised.clone());
            let result = environment.template_from_str(&self.source).and_then(|one| one.render(context));
            result.map_err(|error| failure(&error, fuel))
        })?;
        match (rendered, raised.lock().map(|mut raised| raised.take())) {
            (Ok(covered), _) => Ok(Rendered { covered, stand_ins }),
            (Err(_), Ok(Some(message))) => Err(ChatError::Raised { message }),
            (Err(error), _) => Err(error),
        }
    }

    /// The tokens of a conversation: control tokens of the template's own text, and contents as plain text.
    pub fn tokens(
        &self,
        tokenizer: &Tokenizer,
        conversation: &Conversation<'_>,
    ) -> Result<Vec<u32>, ChatError> {
        Ok(self.render(conversation)?.encode(tokenizer))
    }

    /// The control token that the template writes after an answer, which ends the model's turn; `None` if it writes
    /// none, or does not render a question with its answer.
    pub fn end_of_turn(&self, tokenizer: &Tokenizer) -> Option<u32> {
        const ANSWER: &str = "the answer is here";
        let messages = [Message::new(Role::User, "a question"), Message::new(Role::Assistant, ANSWER)];
        let conversation = Conversation { add_generation_prompt: false, ..Conversation::new(&messages) };
        let text = self.render(&conversation).ok()?.text().into_owned();
        let rest = text.rsplit_once(ANSWER)?.1.trim_start();
        let end =
            self.shield.controls().filter(|control| rest.starts_with(control)).max_by_key(|one| one.len())?;
        tokenizer.encode(end).into_iter().find(|id| tokenizer.token_text(*id) == Some(end))
    }

    fn stand_ins(&self, conversation: &Conversation<'_>) -> Result<StandIns, ChatError> {
        let mut more = Vec::new();
        conversation.tools.iter().for_each(|tool| texts_of(&tool.value, &mut more));
        for call in conversation.messages.iter().flat_map(|message| &message.tool_calls) {
            more.push(call.name.clone());
            texts_of(&call.arguments.value, &mut more);
        }
        let contents = conversation.messages.iter().flat_map(|message| {
            [Some(message.content.as_str()), message.reasoning.as_deref()].into_iter().flatten()
        });
        let texts = [self.source.as_str(), &self.bos, &self.eos].into_iter();
        self.shield.stand_ins(texts.chain(contents).chain(more.iter().map(String::as_str)))
    }

    /// What the template finds by name.
    fn context(&self, conversation: &Conversation<'_>, stand_ins: &StandIns) -> Value {
        let cover = |text: &str| Value::from(self.shield.cover(text, stand_ins));
        let cover_value = |value: &Value| self.shield.cover_value(value, stand_ins);
        let message = |message: &Message| {
            let mut pairs =
                vec![("role", Value::from(message.role.name())), ("content", cover(&message.content))];
            if let Some(reasoning) = &message.reasoning {
                pairs.push(("reasoning_content", cover(reasoning)));
            }
            let call = |call: &super::ToolCall| {
                let function =
                    [("name", cover(&call.name)), ("arguments", cover_value(&call.arguments.value))];
                record([("type", Value::from("function")), ("function", record(function))])
            };
            if !message.tool_calls.is_empty() {
                pairs.push(("tool_calls", message.tool_calls.iter().map(call).collect()));
            }
            record(pairs)
        };
        let tools = match conversation.tools {
            [] => Value::from(()),
            tools => tools.iter().map(|tool| cover_value(&tool.value)).collect(),
        };
        let mut pairs = vec![
            ("messages", conversation.messages.iter().map(message).collect()),
            ("tools", tools),
            ("bos_token", Value::from(self.bos.as_str())),
            ("eos_token", Value::from(self.eos.as_str())),
            ("add_generation_prompt", Value::from(conversation.add_generation_prompt)),
        ];
        if let Some(thinks) = conversation.enable_thinking {
            pairs.push(("enable_thinking", Value::from(thinks)));
        }
        record(pairs)
    }
}

impl Rendered {
    /// The text.
    pub fn text(&self) -> Cow<'_, str> {
        self.stand_ins.uncover(&self.covered)
    }

    /// Its tokens.
    pub fn encode(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        tokenizer.encode_covered(&self.covered, |part| self.stand_ins.uncover(part))
    }
}

fn record(pairs: impl IntoIterator<Item = (&'static str, Value)>) -> Value {
    Record::value(pairs.into_iter().map(|(key, value)| (Value::from(key), value)).collect())
}

/// Runs `work` where deep recursion over values that a template nests has room.
fn on_known_stack<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, ChatError> {
    let internal = |detail: String| ChatError::Internal { detail };
    std::thread::scope(|scope| {
        let builder =
            std::thread::Builder::new().name("chat template".into()).stack_size(limits::STACK_BYTES);
        let thread = builder.spawn_scoped(scope, work).map_err(|error| internal(error.to_string()))?;
        thread.join().map_err(|_| internal("the renderer panicked".into()))
    })
}

/// The renderer with its limits, and with the names that a compilation looks at.
fn environment(fuel: u64) -> Environment<'static> {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    // The builder refuses delimiters only, and these are the usual ones.
    if let Ok(syntax) = syntax {
        environment.set_syntax(syntax);
    }
    environment.set_fuel(Some(fuel));
    environment.set_recursion_limit(limits::RECURSION_MAX);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_unknown_method_callback(functions::method);
    // Fuel does not pay for the lists that a sum of lists makes on its way, nor for pretty printing.
    environment.remove_filter("sum");
    environment.remove_filter("pprint");
    environment.add_filter("tojson", functions::to_json);
    environment.add_filter("join", functions::join);
    environment.add_filter("string", functions::string);
    environment.add_function(KEEP, functions::keep);
    environment.add_function(KEEP_DATA, functions::keep_data);
    environment
}

fn add_functions(environment: &mut Environment<'_>, now: SystemTime, raised: Arc<Mutex<Option<String>>>) {
    environment.add_function("raise_exception", move |message: Value| -> Result<Value, Error> {
        let text = shortened(message.as_str().unwrap_or("no reason is given"));
        if let Ok(mut raised) = raised.lock() {
            *raised = Some(text);
        }
        Err(Error::new(ErrorKind::InvalidOperation, "the template raised an exception"))
    });
    let time = move |state: &State<'_, '_>, format: &str| -> Result<String, Error> {
        // The longest conversion, %A or %B, makes nine bytes of two.
        state.consume_fuel(format.len() as u64)?;
        Ok(clock::format_time(format, now))
    };
    environment.add_function("strftime_now", time);
}

fn failure(error: &Error, fuel: u64) -> ChatError {
    match error.kind() {
        ErrorKind::OutOfFuel => ChatError::Fuel { fuel },
        _ => ChatError::Render { line: error.line().unwrap_or(1), detail: detail(error) },
    }
}

#[cfg(test)]
mod tests;
