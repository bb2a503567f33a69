//! Scripts of `zrt run` and the forms of `--arg`: from text to what is asked for.
//!
//! # Contract
//! [`Script::parse`] and [`ArgumentSpec::parse`] take any text, touch no file, and cost time and memory in proportion
//! to the text's length, of which a script may have [`SCRIPT_BYTES_MAX`] bytes. What they refuse is a sentence, in a
//! script with line and column. `tools` reads the files that a script names, and unrolls its loops; its README says
//! what a script may contain.
//!
//! ```
//! use zrt_script::{Script, Work};
//!
//! let script = Script::parse("buffers.a = 'zero:4k'\n[[step]]\nwrite = { buffer = 'a+8', value = 'u32:7' }")?;
//! assert!(matches!(script.steps[0].work, Work::Write { buffer: 0, .. }));
//! let error = Script::parse("[[step]]\nfill = 1").unwrap_err();
//! assert!(error.to_string().starts_with("2:1: there is no key"), "{error}");
//! # Ok::<(), zrt_script::ScriptError>(())
//! ```
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod argument;
pub mod content;
mod element;
mod expression;
mod parse;
mod reader;
mod size;

pub use argument::{ArgumentSpec, Refused, value_of};
pub use element::ElementType;
pub use expression::Expression;
pub use reader::{Position, ScriptError};
pub use size::{BUFFER_BYTES_MAX, Size};

use std::path::PathBuf;
use zrt_isa::resources::WaveSize;
use zrt_loader::DynamicLds;

/// Longest script.
pub const SCRIPT_BYTES_MAX: u64 = 256 << 10;
/// Maximum number of buffers.
pub const BUFFERS_MAX: usize = 256;
/// Maximum number of steps as written; those of loops count once.
pub const STEPS_MAX: usize = 4096;
/// Maximum number of steps as executed.
pub const EXECUTED_STEPS_MAX: usize = 16_384;
/// Maximum number of turns of a loop.
pub const TIMES_MAX: u64 = 65_536;
/// Maximum number of nested loops.
pub const NESTING_MAX: usize = 8;
/// Maximum number of arguments of a launch.
pub const ARGUMENTS_MAX: usize = 256;
/// Minimum and maximum number of vector registers of raw code.
pub const VGPRS: [u32; 2] = [1, 256];
/// Minimum and maximum number of user SGPRs of raw code.
pub const USER_SGPRS: [u32; 2] = [2, 16];

/// A script as it is written.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Script {
    pub buffers: Vec<ScriptBuffer>,
    pub steps: Vec<Step>,
}

/// A buffer.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ScriptBuffer {
    pub name: String,
    pub spec: ArgumentSpec,
    pub at: Position,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Step {
    pub work: Work,
    pub at: Position,
}

/// What a step does. Buffers are their numbers.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Work {
    Launch(Launch),
    Repeat { times: u64, variable: Option<String>, steps: Vec<Step> },
    Check { buffer: usize, wanted: Wanted, tolerance: Option<f64> },
    Copy { from: (usize, Expression), to: (usize, Expression), bytes: Option<u64> },
    Write { buffer: usize, offset: Expression, value: Number },
    Dump { buffer: usize, file: Vec<Piece> },
}

/// A file with a program, and what its user states about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProgramFile {
    /// The file.
    pub path: PathBuf,
    /// Name of the kernel; not needed if there is only one.
    pub kernel: Option<String>,
    /// Lanes of a wave: of raw code, or expected of others.
    pub wave_size: Option<WaveSize>,
    /// Vector registers of raw code.
    pub vgprs: Option<u32>,
    /// User SGPRs of raw code.
    pub user_sgprs: Option<u32>,
}

/// A launch.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Launch {
    pub file: ProgramFile,
    pub groups: [u32; 3],
    pub group: Option<[u32; 3]>,
    pub dynamic_lds: DynamicLds,
    pub arguments: Vec<LaunchedWith>,
    pub waits: bool,
}

/// An argument of a launch.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum LaunchedWith {
    Buffer(usize, Expression),
    Number(Number),
}

/// A number or another value.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Number {
    /// As in `--arg`.
    Fixed(ArgumentSpec),
    /// A different one in each turn.
    Moving { element: ElementType, value: Expression, text: String },
}

/// What a buffer is checked against.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Wanted {
    File(PathBuf),
    /// Every element is this.
    Equals(Number),
}

/// A part of the name of a dump's file.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Piece {
    Text(String),
    /// The turn of a loop, by depth from the outermost.
    Turn(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The fuzzer's seeds: every kind of step, and loops.
    const SEEDS: [&str; 2] =
        [include_str!("../../fuzz/seeds/script/steps"), include_str!("../../fuzz/seeds/script/loops")];

    #[test]
    fn every_kind_of_step_is_read() {
        let [steps, loops] = SEEDS.map(|seed| Script::parse(seed).unwrap());
        assert_eq!((steps.buffers.len(), steps.steps.len()), (4, 7));
        let Work::Launch(launch) = &steps.steps[0].work else { panic!("{steps:?}") };
        assert_eq!(
            (launch.groups, launch.group, launch.dynamic_lds),
            ([4, 2, 1], Some([64, 1, 1]), DynamicLds::of(256))
        );
        assert!(launch.waits && launch.arguments.len() == 3);
        let Work::Launch(raw) = &steps.steps[1].work else { panic!("{steps:?}") };
        assert_eq!((raw.waits, raw.file.vgprs, raw.file.user_sgprs), (false, Some(8), Some(2)));
        let Work::Check { buffer: 1, tolerance: Some(0.5), .. } = &steps.steps[2].work else {
            panic!("{steps:?}")
        };
        let Work::Copy { bytes: Some(1024), to: (2, _), .. } = &steps.steps[4].work else {
            panic!("{steps:?}")
        };
        let Work::Repeat { times: 3, steps: outer, .. } = &loops.steps[0].work else { panic!("{loops:?}") };
        let Work::Repeat { times: 2, variable, steps: inner } = &outer[1].work else { panic!("{loops:?}") };
        assert_eq!((variable.as_deref(), inner.len(), outer[1].at.line), (Some("turn"), 2, 8));
    }

    /// Reads a script; a complaint is one line, about a place in the text.
    fn read(text: &str) {
        let Err(error) = Script::parse(text) else { return };
        let line = text.split('\n').nth(error.at.line - 1).unwrap();
        assert!((1..=line.chars().count() + 1).contains(&error.at.column), "{error} in {text:?}");
        assert!(!error.what.is_empty() && !error.what.contains('\n'), "{error:?}");
    }

    proptest! {
        #[test]
        fn any_text_is_a_script_or_a_complaint(text in ".{0,200}") {
            read(&text);
        }

        #[test]
        fn changed_scripts_are_scripts_or_complaints(
            seed in 0..SEEDS.len(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), 0..4u8, ".{0,4}"), 1..6),
        ) {
            let mut text: Vec<char> = SEEDS[seed].chars().collect();
            for (at, kind, with) in changes {
                let at = at.index(text.len());
                let end = if kind == 0 { at } else { (at + usize::from(kind)).min(text.len()) };
                text.splice(at..end, with.chars());
                if text.is_empty() {
                    break;
                }
            }
            read(&text.into_iter().collect::<String>());
        }
    }

    /// A line of as many keys as a script has room for: reading a key does not scan everything before it.
    #[test]
    fn a_long_line_is_read_in_time_that_follows_its_length() {
        let keys: String = (0..25_000).map(|index| format!("k{index}=0,")).collect();
        let text = format!("step = [{{ {}k=0 }}]", keys);
        assert!((200_000..SCRIPT_BYTES_MAX as usize).contains(&text.len()), "{}", text.len());
        let start = std::time::Instant::now();
        let error = Script::parse(&text).unwrap_err();
        // Some milliseconds; scanning everything before each key would take seconds.
        assert!(start.elapsed() < std::time::Duration::from_secs(1), "{:?}", start.elapsed());
        assert_eq!((error.at.line, error.at.column), (1, 11), "{error}");
    }

    /// Deep and long texts end soon: the limits are reached before memory is exhausted.
    #[test]
    fn large_scripts_are_refused_in_a_line() {
        let brackets = "[".repeat(100_000);
        let step = "[[step]]\ncopy = { from = \"a\", to = \"a\" }\n";
        let steps = format!("buffers.a = \"zero:4\"\n{}", step.repeat(STEPS_MAX + 1));
        let buffers: String = (0..=BUFFERS_MAX).map(|index| format!("b{index} = \"zero:4\"\n")).collect();
        let buffers = format!("[buffers]\n{buffers}[[step]]\n");
        let expression = format!(
            "buffers.a = \"zero:4\"\n[[step]]\nwrite = {{ buffer = \"a+{}1\", value = \"u8:1\" }}",
            "1+".repeat(100_000)
        );
        for (text, part) in [
            (format!("step = {brackets}"), "not TOML"),
            (format!("step = {}", "{a=".repeat(50_000)), "not TOML"),
            (steps, "at most 4096"),
            (buffers, "at most 256 buffers"),
            (" ".repeat(SCRIPT_BYTES_MAX as usize + 1), "may have at most 262144"),
        ] {
            let error = Script::parse(&text).unwrap_err();
            assert!(error.what.contains(part), "{error}");
        }
        assert!(Script::parse(&expression).is_ok());
    }
}
