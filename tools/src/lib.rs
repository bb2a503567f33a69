//! What the programs `zrt` and `zrt-bench` are made of.
//!
//! Contract: results go to standard output, progress and remarks to standard error; an error is one sentence with its
//! remedy, and the exit code says it too. No `unsafe`.
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod activations_option;
pub mod answer;
pub mod bench;
mod bounded_read;
pub mod byte_lines;
pub mod command_line;
pub mod commands;
pub mod device_choice;
pub mod doctor;
pub mod error;
pub mod generation;
pub mod interrupt;
pub mod launch;
pub mod listing;
pub mod loaded_model;
pub mod log_probabilities;
pub mod machine;
pub mod machine_code;
pub mod memory_option;
pub mod open_device;
pub mod prediction;
pub mod profile;
pub mod program;
pub mod progress;
pub mod prompt_bench;
pub mod sampling_options;
pub mod session;
pub mod session_bench;
pub mod source_text;
pub mod statistics;
pub mod step;
pub mod suppression;
pub mod table;
pub mod text_input;
pub mod timestamp;
pub mod units;
pub mod workload;

/// What `--version` says after the program's name: version, commit and its date, as in `0.1.0 (1a2b3c4d 2026-11-22)`.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), " (", env!("ZRT_BUILD"), ")");

#[cfg(test)]
#[path = "../../loader/tests/data/double_object.rs"]
mod double_object;
#[cfg(test)]
#[path = "../../loader/tests/data/elf_file.rs"]
#[allow(dead_code)]
mod elf_file;
#[cfg(test)]
#[path = "../../loader/tests/data/message_pack.rs"]
mod message_pack;
