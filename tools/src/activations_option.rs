//! The option of commands that run a model: how matmuls take their activations.

use clap::Args;
use zrt_engine::activations::Activations;

/// The option.
#[derive(Clone, Copy, Debug, Args)]
pub struct ActivationsOption {
    /// Arithmetic of activations: f32, a8 or a16
    #[arg(long, value_name = "ARITHMETIC", default_value = "f32", value_parser = parse)]
    pub activations: Activations,
}

/// The mode of this name.
pub fn parse(name: &str) -> Result<Activations, String> {
    Activations::parse(name).ok_or_else(|| "there are f32, a8 and a16".to_owned())
}
