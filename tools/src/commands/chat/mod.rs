//! `zrt chat`: a conversation with a model, typed or piped.
//!
//! Contract: answers go to standard output as they are generated, everything else (prompts, remarks, the context that
//! is used) to standard error. Ctrl-C stops an answer, whose text stays in the conversation; a second one leaves. A
//! closed pipe ends at once. If standard input is not a terminal, the first thing that goes wrong ends the command.
//!
//! Cost: each turn submits the whole conversation, of which a session computes what is new.

mod input;
mod save;

use super::write_text;
use crate::activations_option::ActivationsOption;
use crate::answer::{AnswerOptions, Answerer, end_tokens};
use crate::device_choice::DeviceOption;
use crate::error::{ToolError, sentence};
use crate::generation::TextWriter;
use crate::interrupt::Interrupt;
use crate::loaded_model::LoadedModel;
use crate::memory_option::MemoryOption;
use crate::sampling_options::SamplingArguments;
use crate::text_input;
use clap::{Args, ValueEnum};
use input::{Command, Input};
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use zrt_engine::chat::{ChatTemplate, Conversation, Message, Role, StopTexts};
use zrt_engine::sampling::SamplingOptions;

/// Positions that are opened if none are asked for: a cache of 32 bits for the longest contexts would not fit.
const CONTEXT_DEFAULT: u32 = 4096;
/// A session's context has at least this many tokens.
const CONTEXT_MIN: u32 = 2;

/// Talks with a model, by the chat template in its file; /help shows the commands
#[derive(Debug, Args)]
pub struct Arguments {
    /// Model file (GGUF) [default: the embedded model, which has no chat template]
    #[arg(short, long)]
    pub model: Option<PathBuf>,
    /// Instructions before the conversation
    #[arg(short, long, value_name = "TEXT")]
    pub system: Option<String>,
    /// Chat template (Jinja) to use instead of the file's
    #[arg(long, value_name = "FILE")]
    pub chat_template_file: Option<PathBuf>,
    /// Whether the model thinks before it answers, where its template asks [default: as the template has it]
    #[arg(long, value_name = "ON")]
    pub think: Option<Switch>,
    /// Context length in tokens [default: the model's, at most 4096]
    #[arg(short, long)]
    pub context: Option<u32>,
    /// Most tokens of an answer [default: what the context has room for]
    #[arg(short = 'n', long)]
    pub max_tokens: Option<u32>,
    /// Text that ends an answer and is not shown; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub stop: Vec<String>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub sampling: SamplingArguments,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceOption,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub memory: MemoryOption,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub activations: ActivationsOption,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum Switch {
    On,
    Off,
}

impl Switch {
    fn is_on(self) -> bool {
        match self {
            Switch::On => true,
            Switch::Off => false,
        }
    }
}

/// A conversation and what answers it.
struct Chat {
    loaded: LoadedModel,
    template: ChatTemplate,
    answerer: Answerer,
    context: u32,
    max_tokens: u32,
    ends: Vec<u32>,
    stops: StopTexts,
    sampling: SamplingOptions,
    thinks: Option<bool>,
    messages: Vec<Message>,
    interrupt: Interrupt,
    screen: Screen,
}

/// Where remarks and prompts go.
struct Screen {
    /// Someone types.
    is_typed: bool,
    /// Remarks may be dim, and prompts bold.
    has_colour: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let mut chat = Chat::open(arguments)?;
    chat.screen.remark(&format!(
        "{} on {}, context {}; /help shows the commands",
        chat.loaded.description(),
        chat.answerer.device(),
        chat.context
    ));
    let stdin = std::io::stdin();
    let mut reader = stdin.lock();
    loop {
        let input = input::read(&mut reader, |continues| chat.screen.prompt(continues));
        let input = match input {
            // A line that cannot be read does not end what was said so far.
            Err(error) if chat.screen.is_typed && error.kind() == ErrorKind::InvalidData => {
                chat.screen.remark(&format!("not sent: {error}"));
                continue;
            }
            input => input.map_err(|source| ToolError::Read { path: "standard input".into(), source })?,
        };
        let done = match input {
            Input::End => break,
            Input::Command(Command::Exit) => break,
            Input::Nothing => Ok(()),
            Input::Message(text) => chat.ask(text),
            Input::Command(command) => chat.obey(command),
            Input::Unknown(text) => Err(ToolError::BadInput {
                what: format!(
                    "{text:?} is no command; /help shows them, and // begins a message with a slash"
                ),
            }),
        };
        match done {
            Err(error) if chat.screen.is_typed && !error.is_closed_pipe() => {
                chat.screen.remark(&sentence(&error))
            }
            done => done?,
        }
    }
    chat.answerer.close()?;
    Ok(true)
}

impl Chat {
    fn open(arguments: &Arguments) -> Result<Chat, ToolError> {
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
        let defaults = SamplingOptions {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            seed: clock,
            ..SamplingOptions::default()
        };
        let sampling = arguments.sampling.or(&defaults)?;
        sampling.validate()?;
        let stops = StopTexts::new(&arguments.stop)?;
        if arguments.max_tokens == Some(0) {
            return Err(ToolError::Option {
                option: "--max-tokens",
                value: "0".into(),
                wanted: "at least 1",
            });
        }
        let loaded = LoadedModel::open(arguments.model.as_deref())?;
        let template = open_template(&loaded, arguments.chat_template_file.as_deref())?;
        let trained = loaded.model.config.context;
        let context = arguments.context.unwrap_or(trained.min(CONTEXT_DEFAULT));
        if context < CONTEXT_MIN {
            let value = context.to_string();
            return Err(ToolError::Option { option: "--context", value, wanted: "at least 2" });
        }
        if context > trained {
            return Err(ToolError::Context { needed: u64::from(context), context: trained });
        }
        let ends = end_tokens(&loaded.tokenizer, template.end_of_turn(&loaded.tokenizer));
        let system = arguments.system.as_ref().map(|text| Message::new(Role::System, text.as_str()));
        let (device, activations) = (arguments.device.device, arguments.activations.activations);
        let answerer = Answerer::open(&loaded, device, context, activations, &arguments.memory)?;
        Ok(Chat {
            template,
            answerer,
            context,
            max_tokens: arguments.max_tokens.unwrap_or(context),
            ends,
            stops,
            sampling,
            thinks: arguments.think.map(Switch::is_on),
            messages: system.into_iter().collect(),
            interrupt: Interrupt::install()?,
            screen: Screen::new(),
            loaded,
        })
    }

    /// Answers a message. If that fails, the message is not part of the conversation.
    fn ask(&mut self, text: String) -> Result<(), ToolError> {
        let before = self.messages.len();
        self.messages.push(Message::new(Role::User, text));
        let result = self.answer();
        if result.is_err() {
            self.messages.truncate(before);
        }
        result
    }

    /// Answers the conversation, whose last message is the user's.
    fn answer(&mut self) -> Result<(), ToolError> {
        let prompt = self.tokens(true)?;
        if prompt.len() >= self.context as usize {
            return Err(ToolError::ConversationFull { tokens: prompt.len(), context: self.context });
        }
        self.interrupt.begin();
        let mut output = std::io::stdout();
        let mut writer = TextWriter::new(&self.loaded.tokenizer, Some(&mut output), &self.ends, &self.stops);
        let options =
            AnswerOptions { tokens_max: self.max_tokens, sampling: self.sampling, stops: &self.ends };
        let started = Instant::now();
        let mut first = None;
        let result = self.answerer.answer(&prompt, &options, &self.interrupt, &mut |token, _| {
            first.get_or_insert_with(Instant::now);
            writer.push(token)
        });
        self.interrupt.end();
        // What is there is shown whole, whatever ended it.
        let written = writer.finish()?;
        write_text("\n")?;
        let is_broken_off = result?;
        let used = prompt.len() + written.token_ids.len();
        let ending = match (written.is_ended, is_broken_off) {
            (true, _) => "",
            (false, true) => "stopped; ",
            (false, false) if used >= self.context as usize => "the context is full; ",
            (false, false) => "--max-tokens is reached; ",
        };
        let rest = first.map_or(0.0, |first| first.elapsed().as_secs_f64());
        let before = first.map_or(started, |first| first) - started;
        self.screen.remark(&format!(
            "{ending}context {used} of {}; prompt {} tokens, {} of them new, in {:.1} s, then {} at {:.1} t/s",
            self.context,
            prompt.len(),
            prompt.len() - self.answerer.found_positions() as usize,
            before.as_secs_f64(),
            written.token_ids.len(),
            // The first token comes with the prompt.
            written.token_ids.len().saturating_sub(1) as f64 / rest.max(1e-9),
        ));
        self.messages.push(Message::new(Role::Assistant, written.text));
        Ok(())
    }

    /// The tokens of the conversation.
    fn tokens(&self, add_generation_prompt: bool) -> Result<Vec<u32>, ToolError> {
        let conversation = Conversation {
            add_generation_prompt,
            enable_thinking: self.thinks,
            ..Conversation::new(&self.messages)
        };
        Ok(self.template.tokens(&self.loaded.tokenizer, &conversation)?)
    }

    fn obey(&mut self, command: Command) -> Result<(), ToolError> {
        match command {
            Command::Help => self.screen.show(input::HELP),
            Command::Clear => {
                self.messages.retain(|message| message.role == Role::System);
                self.screen.remark("the conversation is forgotten");
            }
            Command::System(None) => {
                let system = self.messages.first().filter(|message| message.role == Role::System);
                self.screen.remark(system.map_or("there are no instructions", |message| &message.content));
            }
            Command::System(Some(text)) => {
                self.messages = vec![Message::new(Role::System, text)];
                self.screen.remark("the instructions are set, and the conversation is forgotten");
            }
            Command::Context => {
                let is_empty = self.messages.iter().all(|message| message.role == Role::System);
                let used = if is_empty { 0 } else { self.tokens(false)?.len() };
                self.screen.remark(&format!("context {used} of {} tokens", self.context));
            }
            Command::Again => return self.answer_again(),
            Command::Think(thinks) => {
                self.thinks = Some(thinks);
                self.screen.remark(if thinks { "thinking is on" } else { "thinking is off" });
            }
            Command::Save(path) => {
                save::save(Path::new(&path), &self.loaded.filename, &self.messages)?;
                self.screen.remark(&format!("{} messages are in {path}", self.messages.len()));
            }
            Command::Exit => {}
        }
        Ok(())
    }

    /// Answers the last message again, with another seed.
    fn answer_again(&mut self) -> Result<(), ToolError> {
        let Some(last) = self.messages.pop_if(|message| message.role == Role::Assistant) else {
            return Err(ToolError::BadInput { what: "there is no answer to give again".into() });
        };
        self.sampling.seed = self.sampling.seed.wrapping_add(1);
        let before = self.messages.len();
        let result = self.answer();
        if result.is_err() {
            self.messages.truncate(before);
            self.messages.push(last);
        }
        result
    }
}

/// The template that was given, or else the file's.
fn open_template(loaded: &LoadedModel, path: Option<&Path>) -> Result<ChatTemplate, ToolError> {
    let template = match path {
        Some(path) => Some(ChatTemplate::new(&text_input::read(path)?, &loaded.tokenizer)?),
        None => ChatTemplate::from_gguf(&loaded.model.gguf, &loaded.tokenizer)?,
    };
    template.ok_or_else(|| ToolError::NoChatTemplate { model: loaded.filename.clone() })
}

impl Screen {
    fn new() -> Screen {
        let forbids = |name: &str, value: fn(&str) -> bool| {
            std::env::var_os(name).is_some_and(|found| value(&found.to_string_lossy()))
        };
        // https://no-color.org: present and not empty.
        let is_plain =
            forbids("NO_COLOR", |value| !value.is_empty()) || forbids("TERM", |value| value == "dumb");
        Screen {
            is_typed: std::io::stdin().is_terminal(),
            has_colour: std::io::stderr().is_terminal() && !is_plain,
        }
    }

    /// Asks for a line, if someone types.
    fn prompt(&self, continues: bool) -> std::io::Result<()> {
        if !self.is_typed {
            return Ok(());
        }
        let text = if continues { "... " } else { "> " };
        let mut output = std::io::stderr();
        match self.has_colour {
            true => write!(output, "\x1b[1m{text}\x1b[0m")?,
            false => write!(output, "{text}")?,
        }
        output.flush()
    }

    /// A remark. If standard error is closed, nobody reads it.
    fn remark(&self, text: &str) {
        let _ = match self.has_colour {
            true => writeln!(std::io::stderr(), "\x1b[2m[{text}]\x1b[0m"),
            false => writeln!(std::io::stderr(), "[{text}]"),
        };
    }

    fn show(&self, text: &str) {
        let _ = write!(std::io::stderr(), "{text}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_is_on_or_off() {
        let parsed = |text| Switch::from_str(text, false).map(Switch::is_on);
        assert_eq!([parsed("on"), parsed("off")], [Ok(true), Ok(false)]);
    }
}
