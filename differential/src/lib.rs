//! Independent evidence for the semantics of the virtual device: random programs, compiled for gfx1201 and for the
//! host by a compiler that knows nothing about either, run on many inputs, and compared bit for bit.
//!
//! # Contract
//! - The host's side is compiled C; nothing interprets the trees of [`program`].
//! - Programs are free of undefined behaviour, and of results on which two correct machines may differ: every
//!   difference is a bug of the device (or of a compiler).
//! - A seed is enough to reproduce a program, its inputs and its optimisation level.
//! - Needs clang-22 and lld-22. No card is used.
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod alarms;
pub mod batch;
pub mod campaign;
pub mod code;
pub mod error;
pub mod generate;
pub mod minimise;
pub mod mutants;
pub mod mutate;
pub mod operators;
pub mod program;
pub mod random;
pub mod report;
pub mod runner;
pub mod session;
mod share;
pub mod text;
pub mod toolchain;
pub mod types;

#[cfg(test)]
#[path = "../tests/object/mod.rs"]
mod object;
