//! `--dump ARGUMENT=FILE`: any buffer, as it is after the kernel has ended.
//!
//! Contract: parsing is pure; an argument is given by its number, or by its name if the kernel has one.

use crate::error::{ToolError, bad};
use crate::launch::argument_name;
use std::path::Path;
use zrt_loader::Kernel;

/// What to write where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dump<'a> {
    /// Index of the argument.
    pub argument: usize,
    /// The file.
    pub path: &'a Path,
}

impl<'a> Dump<'a> {
    /// Reads one. `buffers`: whether each argument of the launch is a buffer.
    pub fn parse(text: &'a str, kernel: &Kernel, buffers: &[bool]) -> Result<Dump<'a>, ToolError> {
        let refuse = |why: String| bad(format!("--dump is {text:?}, but {why}"));
        let (name, path) =
            text.split_once('=')
                .filter(|(name, path)| !name.is_empty() && !path.is_empty())
                .ok_or_else(|| refuse("must be ARGUMENT=FILE, as in 0=a.raw or name=a.npy".into()))?;
        let by_name = || (0..buffers.len()).find(|index| argument_name(kernel, *index) == Some(name));
        let argument = name.parse().ok().or_else(by_name);
        match argument.map(|argument| (argument, buffers.get(argument))) {
            Some((argument, Some(true))) => Ok(Dump { argument, path: Path::new(path) }),
            Some((argument, Some(false))) => Err(refuse(format!("argument {argument} is a value"))),
            _ => Err(refuse(format!(
                "kernel {} is given {} arguments, and {name:?} is neither the number nor the name of one",
                kernel.name,
                buffers.len()
            ))),
        }
    }
}
