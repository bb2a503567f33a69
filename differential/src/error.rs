//! Reasons why a comparison could not be made.
//!
//! Contract: a difference between device and host is a result ([`crate::batch::Verdict`]), not an error.

use std::path::PathBuf;
use thiserror::Error;

/// Why programs could not be compiled or run.
#[derive(Debug, Error)]
#[allow(missing_docs)]
pub enum DifferentialError {
    #[error("{tool} could not be started ({source}); install LLVM (packages clang-22, clang-19 and lld-22)")]
    ToolMissing { tool: String, source: std::io::Error },
    #[error("{tool} failed on the programs of seeds {seeds}; this is an error of the generator:\n{output}")]
    Tool { tool: String, seeds: String, output: String },
    #[error("cannot read or write {}: {source}; check free space and TMPDIR", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error(
        "the host program of seeds {seeds} ended with {status} after {bytes} of {expected} bytes of results"
    )]
    Host { seeds: String, status: String, bytes: usize, expected: usize },
    #[error("the pipe to the host program broke: {0}")]
    Pipe(#[from] std::io::Error),
    #[error("the device cannot be opened: {0}")]
    Open(#[from] zrt_bringup::OpenError),
    #[error("the device cannot be used: {0}")]
    Device(#[from] zrt_device::DeviceError),
    #[error("the code object of seeds {seeds} cannot be loaded: {source}")]
    Load { seeds: String, source: zrt_loader::LoadError },
    #[error("the kernel of seed {seed} cannot be launched: {reason}")]
    Launch { seed: u64, reason: String },
    #[error("{inputs} inputs: it must be a power of two from 64 to {max}")]
    Inputs { inputs: u32, max: u32 },
}
