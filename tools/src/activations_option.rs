//! The option of commands that run a model: how matmuls take their activations.

use clap::Args;
use zrt_engine::activations::Activations;

/// The option.
#[derive(Clone, Copy, Debug, Args)]
pub struct ActivationsOption {
    /// Arithmetic of activations: f32, a8, a16, or f16, whose bits are the card's own
    #[arg(long, value_name = "ARITHMETIC", default_value = Activations::default().name(), value_parser = parse)]
    pub activations: Activations,
}

/// The mode of this name.
pub fn parse(name: &str) -> Result<Activations, String> {
    Activations::parse(name).ok_or_else(|| "there are f32, a8, a16 and f16".to_owned())
}

/// A mode of this name whose bits are defined, so that the CPU can compute it.
pub fn parse_defined(name: &str) -> Result<Activations, String> {
    let mode = parse(name)?;
    let is_defined = Activations::DEFINED.contains(&mode);
    is_defined.then_some(mode).ok_or_else(|| {
        "the bits of f16 are the card's own, and the CPU would compute f32: there are f32, a8 and a16"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use zrt_engine::session::SessionOptions;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        option: ActivationsOption,
    }

    /// Decision 35: integers of 16 bits, in sessions and in commands.
    #[test]
    fn without_the_option_activations_have_16_bits() {
        let line = Line::parse_from(["zrt"]);
        let session = SessionOptions::default();
        assert_eq!([line.option.activations, session.activations], [Activations::A16; 2]);
        assert_eq!(Line::parse_from(["zrt", "--activations", "f32"]).option.activations, Activations::F32);
    }

    #[test]
    fn the_cpu_has_the_modes_whose_bits_are_defined() {
        let names = ["f32", "a8", "a16", "f16", "f8"];
        let found = names.map(|name| parse(name).ok());
        use Activations::{A8, A16, F16, F32};
        assert_eq!(found, [Some(F32), Some(A8), Some(A16), Some(F16), None]);
        assert_eq!(names.map(|name| parse_defined(name).ok()), [Some(F32), Some(A8), Some(A16), None, None]);
        assert!(parse_defined("f16").unwrap_err().starts_with("the bits of f16 are the card's own"));
        assert_eq!(parse_defined("f8").unwrap_err(), "there are f32, a8, a16 and f16");
    }
}
