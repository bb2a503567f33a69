//! The programs by their names.
//!
//! Contract: a plain value; `command_line` says how their command lines look.

use clap::ValueEnum;

/// One of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Program {
    /// `zrt`
    Zrt,
    /// `zrt-bench`
    ZrtBench,
}

impl Program {
    /// Both.
    pub const ALL: [Program; 2] = [Program::Zrt, Program::ZrtBench];
}
