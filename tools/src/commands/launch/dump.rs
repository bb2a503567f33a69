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

#[cfg(test)]
mod tests {
    use super::*;

    /// The only name of `double`'s arguments is `data`, of the first.
    #[test]
    fn an_argument_is_given_by_number_or_name() {
        let bytes: Vec<u8> =
            crate::double_object::DOUBLE_OBJECT.iter().flat_map(|word| word.to_le_bytes()).collect();
        let program = zrt_loader::Program::parse(&bytes).unwrap();
        let parse = |text: &str| {
            let found = Dump::parse(text, &program.kernels()[0], &[true, false]);
            found.map(|dump| (dump.argument, dump.path.to_owned())).map_err(|error| error.to_string())
        };
        assert_eq!(parse("0=a.raw"), Ok((0, Path::new("a.raw").to_owned())));
        assert_eq!(parse("data=a=b"), Ok((0, Path::new("a=b").to_owned())));
        for text in ["", "0", "=a", "0="] {
            let told = format!("--dump is {text:?}, but must be ARGUMENT=FILE, as in 0=a.raw or name=a.npy");
            assert_eq!(parse(text), Err(told));
        }
        assert_eq!(parse("1=a"), Err("--dump is \"1=a\", but argument 1 is a value".to_owned()));
        for name in ["2", "x"] {
            let told = format!(
                "--dump is \"{name}=a\", but kernel double is given 2 arguments, and {name:?} is neither the number \
                 nor the name of one"
            );
            assert_eq!(parse(&format!("{name}=a")), Err(told));
        }
    }
}
