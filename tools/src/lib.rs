//! What the programs `zrt` and `zrt-bench` are made of.
//!
//! Contract: results go to standard output, progress and remarks to standard error; an error is one sentence with its
//! remedy, and the exit code says it too. No `unsafe`.
#![forbid(unsafe_code)]

pub mod bench;
mod bounded_read;
pub mod byte_lines;
pub mod commands;
pub mod device_choice;
pub mod doctor;
mod element;
pub mod error;
pub mod generation;
pub mod launch;
pub mod listing;
pub mod loaded_model;
pub mod machine;
pub mod machine_code;
pub mod open_device;
pub mod progress;
pub mod roofline;
pub mod session;
pub mod session_bench;
pub mod source_text;
pub mod statistics;
pub mod step;
pub mod suppression;
pub mod table;
pub mod timestamp;
pub mod units;
pub mod workload;
