//! What goes wrong on a command line, said in one sentence with the remedy.
//!
//! Contract: [`sentence`] joins an error with its causes and what to do; text from lower layers is not repeated.

use std::error::Error;
use thiserror::Error;
use zrt_engine::chat::{ChatError, StopError};
use zrt_engine::executor_error::ExecutorError;
use zrt_engine::gguf::GgufError;
use zrt_engine::model_error::ModelError;
use zrt_engine::sampling::SamplingError;
use zrt_engine::session::SessionError;
use zrt_engine::tokenizer::TokenizerError;
use zrt_engine::validate::ValidateError;

/// Why a command failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ToolError {
    /// The model file cannot be read.
    #[error("the model {model} cannot be read")]
    Gguf {
        /// The model's path or name.
        model: String,
        /// What is wrong with it.
        source: GgufError,
    },
    /// The model is not of a kind that can be run.
    #[error("the model {model} cannot be run")]
    Model {
        /// The model's path or name.
        model: String,
        /// What it lacks.
        source: ModelError,
    },
    /// The model's tokenizer is not of a kind known here.
    #[error("the tokenizer of {model} cannot be used")]
    Tokenizer {
        /// The model's path or name.
        model: String,
        /// What it lacks.
        source: TokenizerError,
    },
    /// No device, or not the requested one.
    #[error("--device {device} failed")]
    Device {
        /// The requested name.
        device: &'static str,
        /// The device layer's error.
        source: zrt_bringup::OpenError,
    },
    /// Validation needs a device to compare with the CPU.
    #[error("validation compares a device with the CPU, so the device cannot be the CPU itself")]
    NothingToCompare,
    /// Validation compares bits, and this mode has none that are defined.
    #[error(
        "--activations f16 has no bits to compare: from 9 rows of a step on they are the card's own, and the steps of \
         validation, of one row, are those of f32"
    )]
    NoBitsToCompare,
    /// Running failed.
    #[error("the model stopped running")]
    Executor(#[from] ExecutorError),
    /// A session failed.
    #[error("the session stopped")]
    Session(#[from] SessionError),
    /// Oracle and device differ, or one of them failed.
    #[error("validation failed")]
    Validate(#[from] ValidateError),
    /// The prompt has no token.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// A request for one token ended without it.
    #[error("a measured request ended without its token")]
    NoToken,
    /// Prompt and tokens do not fit the model.
    #[error("{needed} tokens are needed, but the model's context is {context}")]
    Context {
        /// Tokens of the prompt and of the answer together.
        needed: u64,
        /// What the model was trained for.
        context: u32,
    },
    /// A number on the command line makes no sense.
    #[error("{option} is {value}, but must be {wanted}")]
    Option {
        /// Name of the option.
        option: &'static str,
        /// Its value.
        value: String,
        /// What is accepted.
        wanted: &'static str,
    },
    /// The model has no chat template.
    #[error("the model {model} has no chat template, so it cannot take part in a conversation")]
    NoChatTemplate {
        /// The model's path or name.
        model: String,
    },
    /// A conversation cannot be rendered.
    #[error("the conversation cannot be given to the model")]
    Chat(#[from] ChatError),
    /// The conversation fills the context.
    #[error("the conversation has {tokens} tokens, and the context of {context} has no room for an answer")]
    ConversationFull {
        /// Tokens of the conversation.
        tokens: usize,
        /// Tokens of the context.
        context: u32,
    },
    /// A stop text is refused.
    #[error("--stop")]
    Stop(#[from] StopError),
    /// A sampling option is out of range.
    #[error("the sampling options")]
    Sampling(#[from] SamplingError),
    /// A text is no UTF-8.
    #[error("{path} is not UTF-8 text")]
    NoText {
        /// The path.
        path: String,
    },
    /// A file is longer than such a file can sensibly be.
    #[error("{path} has more than {limit} bytes")]
    TooLong {
        /// The path.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// A file cannot be read.
    #[error("{path} cannot be read")]
    Read {
        /// The path.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// No kernel has that name.
    #[error("there is no kernel {name:?} and no such file")]
    Kernel {
        /// The requested name.
        name: String,
    },
    /// A kernel container is malformed.
    #[error("{path} is not a kernel")]
    Container {
        /// The path or name.
        path: String,
        /// What is wrong with it.
        source: zrt_isa::zrt::ZrtError,
    },
    /// A file has no machine code for us.
    #[error("{path} has no code for gfx1201")]
    Code {
        /// The path.
        path: String,
        /// What is wrong with it, and what to do.
        source: crate::machine_code::CodeError,
    },
    /// A line of standard input is not bytes.
    #[error("line {line} of standard input")]
    Bytes {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        source: crate::byte_lines::LineError,
    },
    /// A file does not have the kernel, or has none at all.
    #[error("{path} has no kernel{}; it has: {kernels}", .name.as_ref().map(|name| format!(" {name:?}")).unwrap_or_default())]
    NoKernel {
        /// The path.
        path: String,
        /// The requested name; `None` if any would do.
        name: Option<String>,
        /// Names of those that it has.
        kernels: String,
    },
    /// `--vram auto` on a device that does not say what is free.
    #[error("the driver does not say how much VRAM is free")]
    NoFreeVram,
    /// Something on the command line, or in a file that it names, makes no sense; reported in full.
    #[error("{what}")]
    BadInput {
        /// What, and what to do.
        what: String,
    },
    /// A form of `--arg` is none.
    #[error(transparent)]
    Refused(#[from] zrt_script::Refused),
    /// A kernel could not be launched, or failed.
    #[error(transparent)]
    Launch(#[from] crate::launch::LaunchError),
    /// The packet test failed.
    #[error(transparent)]
    Pm4Test(#[from] crate::commands::pm4_test::error::Pm4TestError),
    /// A file cannot be written.
    #[error("{path} cannot be written")]
    Write {
        /// The path.
        path: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// An error that the document on standard output has reported.
    #[error(transparent)]
    Told(Box<ToolError>),
    /// The output cannot be written.
    #[error("the output cannot be written")]
    Output(#[from] std::io::Error),
    /// JSON cannot be written.
    #[error("the output cannot be written as JSON")]
    Json(#[from] serde_json::Error),
}

impl ToolError {
    /// True if the reader of our output went away, which is not a failure of ours.
    pub fn is_closed_pipe(&self) -> bool {
        match self {
            ToolError::Output(source) => source.kind() == std::io::ErrorKind::BrokenPipe,
            ToolError::Json(source) => source.io_error_kind() == Some(std::io::ErrorKind::BrokenPipe),
            _ => false,
        }
    }

    /// The program's exit code: 2 if input cannot be understood and nothing ran, so that 1 can mean what the command
    /// looks for.
    pub fn exit_code(&self) -> u8 {
        let is_bad_input = match self.untold() {
            ToolError::Code { .. } | ToolError::Bytes { .. } | ToolError::NoKernel { .. } => true,
            ToolError::BadInput { .. } | ToolError::Refused(_) => true,
            ToolError::Launch(error) => error.is_bad_input(),
            ToolError::Pm4Test(error) => error.is_bad_input(),
            _ => false,
        };
        if is_bad_input { 2 } else { 1 }
    }

    /// The error itself, without [`ToolError::Told`].
    pub(crate) fn untold(&self) -> &ToolError {
        if let ToolError::Told(error) = self { error.untold() } else { self }
    }

    /// What to do about it; empty if the causes say it themselves.
    fn remedy(&self) -> &'static str {
        match self.untold() {
            ToolError::Told(_) => "",
            ToolError::Gguf { source: GgufError::Folder(_), .. } => {
                "give a folder with config.json, tokenizer.json and model.safetensors, or its shards, with --model"
            }
            ToolError::Gguf { .. } => "give a whole GGUF file with --model",
            ToolError::Model { .. } | ToolError::Tokenizer { .. } => "give another model with --model",
            ToolError::Device { .. } => "run `zrt doctor` to see what this machine has",
            ToolError::NothingToCompare => "use --device virtual or kfd",
            ToolError::NoBitsToCompare => "validate the same model and device with --activations f32",
            ToolError::NoToken => "run `zrt validate` with this model and device",
            ToolError::NoFreeVram => "give a size, as --vram 12GiB",
            ToolError::EmptyPrompt => "give some text with --prompt or --file",
            ToolError::NoChatTemplate { .. } => {
                "use `zrt generate`, or give a template with --chat-template-file"
            }
            ToolError::ConversationFull { .. } => "begin a new one with /clear, or give a larger --context",
            ToolError::NoText { .. } | ToolError::TooLong { .. } => "check the path",
            ToolError::Context { .. } => "shorten the prompt or ask for fewer tokens",
            ToolError::Read { .. } => "check the path and its permissions",
            ToolError::Kernel { .. } => "`zrt disasm` without a name lists the kernels",
            ToolError::Container { .. } => "give a .zrt file of version 2 or the name of a kernel",
            ToolError::NoKernel { .. } => "give the name of one with --kernel",
            ToolError::Code { .. } | ToolError::Bytes { .. } => "",
            ToolError::Output(_) | ToolError::Json(_) | ToolError::Write { .. } => {
                "check that the disk is not full"
            }
            ToolError::BadInput { .. }
            | ToolError::Refused(_)
            | ToolError::Launch(_)
            | ToolError::Pm4Test(_) => "",
            ToolError::Chat(_)
            | ToolError::Stop(_)
            | ToolError::Sampling(_)
            | ToolError::Session(_)
            | ToolError::Executor(_)
            | ToolError::Validate(_)
            | ToolError::Option { .. } => "",
        }
    }
}

/// Bad input, in words.
pub(crate) fn bad(what: String) -> ToolError {
    ToolError::BadInput { what }
}

/// The error, its causes and the remedy as one sentence.
pub fn sentence(error: &ToolError) -> String {
    let text = with_causes(error);
    match error.remedy() {
        "" => text,
        remedy => format!("{text}; {remedy}"),
    }
}

/// The error and its causes.
pub fn with_causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let addition = error.to_string();
        // A transparent wrapper prints its source's text: once is enough.
        if !text.contains(&addition) {
            text = format!("{text}: {addition}");
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn causes_and_remedy_follow_the_error() {
        let source = GgufError::Version { found: 9 };
        let error = ToolError::Gguf { model: "x.gguf".into(), source };
        let expected = "the model x.gguf cannot be read: GGUF version 9 at byte 4, where 2 or 3 is read; give a whole \
                        GGUF file with --model";
        assert_eq!(sentence(&error), expected);
    }

    /// The whole sentence of errors that say what to do.
    #[test]
    fn errors_end_with_what_to_do() {
        let name = || "x".to_owned();
        let io = || std::io::Error::other("denied");
        for (error, expected) in [
            (ToolError::NothingToCompare, "cannot be the CPU itself; use --device virtual or kfd"),
            (ToolError::NoToken, "without its token; run `zrt validate` with this model and device"),
            (ToolError::NoFreeVram, "how much VRAM is free; give a size, as --vram 12GiB"),
            (ToolError::EmptyPrompt, "the prompt is empty; give some text with --prompt or --file"),
            (
                ToolError::Context { needed: 9, context: 8 },
                "9 tokens are needed, but the model's context is 8; shorten the prompt or ask for fewer tokens",
            ),
            (ToolError::NoText { path: name() }, "x is not UTF-8 text; check the path"),
            (ToolError::TooLong { path: name(), limit: 7 }, "x has more than 7 bytes; check the path"),
            (
                ToolError::Read { path: name(), source: io() },
                "x cannot be read: denied; check the path and its permissions",
            ),
            (
                ToolError::Kernel { name: name() },
                "there is no kernel \"x\" and no such file; `zrt disasm` without a name lists the kernels",
            ),
            (
                ToolError::NoKernel { path: name(), name: None, kernels: "a, b".to_owned() },
                "x has no kernel; it has: a, b; give the name of one with --kernel",
            ),
            (
                ToolError::NoKernel { path: name(), name: Some("c".to_owned()), kernels: "a".to_owned() },
                "x has no kernel \"c\"; it has: a; give the name of one with --kernel",
            ),
            (
                ToolError::Write { path: name(), source: io() },
                "x cannot be written: denied; check that the disk is not full",
            ),
            (ToolError::Told(Box::new(bad("all".to_owned()))), "all"),
            (
                ToolError::ConversationFull { tokens: 9, context: 8 },
                "no room for an answer; begin a new one with /clear, or give a larger --context",
            ),
            (ToolError::NoBitsToCompare, "validate the same model and device with --activations f32"),
            (
                ToolError::NoChatTemplate { model: name() },
                "a conversation; use `zrt generate`, or give a template with --chat-template-file",
            ),
            (
                ToolError::Option { option: "--context", value: "1".to_owned(), wanted: "at least 2" },
                "--context is 1, but must be at least 2",
            ),
        ] {
            assert!(sentence(&error).ends_with(expected), "{}", sentence(&error));
        }
    }

    /// 2 for what cannot be understood, also if a document has said it.
    #[test]
    fn exit_codes_tell_bad_input_from_failure() {
        let code = |bytes| ToolError::Code { path: String::new(), source: bytes };
        let no_kernel = ToolError::NoKernel { path: String::new(), name: None, kernels: String::new() };
        let line = ToolError::Bytes { line: 1, source: crate::byte_lines::LineError::TooLong };
        let told = ToolError::Told(Box::new(ToolError::Told(Box::new(bad(String::new())))));
        let launch = crate::launch::LaunchError::NotVirtual { choice: "kfd" };
        for error in [code(crate::machine_code::CodeError::Empty), no_kernel, line, told, launch.into()] {
            assert_eq!(error.exit_code(), 2, "{error}");
        }
        let failed = std::io::Error::other("denied");
        for error in
            [ToolError::NoToken, ToolError::Output(failed), ToolError::Told(Box::new(ToolError::NoToken))]
        {
            assert_eq!(error.exit_code(), 1, "{error}");
        }
    }

    #[test]
    fn a_reader_that_went_away_is_no_failure() {
        let broken = || std::io::Error::from(std::io::ErrorKind::BrokenPipe);
        let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
        for (error, is_closed) in [
            (ToolError::Output(broken()), true),
            (ToolError::Output(full()), false),
            (ToolError::Json(serde_json::Error::io(broken())), true),
            (ToolError::Json(serde_json::Error::io(full())), false),
            (ToolError::Write { path: String::new(), source: broken() }, false),
        ] {
            assert_eq!(error.is_closed_pipe(), is_closed, "{error}");
        }
    }

    /// What a cause repeats is not said twice.
    #[test]
    fn causes_follow_each_other_once() {
        let wrapped = ToolError::Told(Box::new(ToolError::Read {
            path: "x".to_owned(),
            source: std::io::Error::other("denied"),
        }));
        assert_eq!(with_causes(&wrapped), "x cannot be read: denied");
    }
}
