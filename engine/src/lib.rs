//! GGUF models to verified plans, executed by the device or by the CPU oracle.
//!
//! The path of a model: [`gguf`] file → [`model::Model`] → [`graph::Graph`] → [`graph::VerifiedGraph`] →
//! [`plan::ExecutionPlan`] → an [`executor::Executor`]: [`executor::device::DeviceExecutor`] or [`oracle::Oracle`].
//!
//! Contract: knows no packets, rings or ioctls. The oracle knows no kernels. No `unsafe`.
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod activations;
pub mod architecture;
pub mod chat;
pub mod config;
pub mod executor;
pub mod executor_error;
pub mod generate;
pub mod gguf;
pub mod graph;
pub mod kv_format;
pub mod layers;
pub mod layout;
pub mod log_probabilities;
pub mod memory_plan;
pub mod model;
pub mod model_error;
pub mod oracle;
pub mod placement;
pub mod plan;
pub mod quality;
pub mod rope;
pub mod rope_table;
pub mod safetensors;
pub mod sampling;
mod series;
pub mod session;
pub mod tokenizer;
pub mod validate;
pub mod weights;
