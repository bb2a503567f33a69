//! The options of commands that draw tokens, by the names that llama.cpp gives them.
//!
//! Contract: ranges are those of [`SamplingOptions`], which checks them.

use crate::error::ToolError;
use clap::Args;
use zrt_engine::sampling::{LogitBias, SamplingOptions};
use zrt_engine::session::SessionError;

/// The options. What is not given is the command's own default.
#[derive(Clone, Debug, Default, Args)]
pub struct SamplingArguments {
    /// 0 takes the most likely token; more is more varied [default: 0 of generate, 0.8 of chat]
    #[arg(long, visible_alias = "temp", value_name = "T")]
    pub temperature: Option<f32>,
    /// Draw from the K most likely tokens; 0: from all [default: 0 of generate, 40 of chat]
    #[arg(long, value_name = "K")]
    pub top_k: Option<u32>,
    /// Draw from the most likely tokens that have this share together [default: 1 of generate, 0.95 of chat]
    #[arg(long, value_name = "P")]
    pub top_p: Option<f32>,
    /// Factor by which recent tokens become less likely; 1: none
    #[arg(long, value_name = "FACTOR", default_value_t = 1.0)]
    pub repeat_penalty: f32,
    /// How many of the last tokens are recent, for all three penalties
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub repeat_last_n: u32,
    /// Draw from tokens that have at least P of the most likely one's probability [default: 0, no limit]
    #[arg(long, value_name = "P")]
    pub min_p: Option<f32>,
    /// Draw from the most typical tokens that have this share together [default: 1, all]
    #[arg(long, visible_alias = "typical", value_name = "P")]
    pub typical_p: Option<f32>,
    /// Subtracted from the logit of every recent token
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub presence_penalty: f32,
    /// Subtracted from the logit of a recent token for each time that it occurs
    #[arg(long, value_name = "X", default_value_t = 0.0, allow_negative_numbers = true)]
    pub frequency_penalty: f32,
    /// Added to the logit of a token, by its id; -inf bans it unless all others are banned too; may be repeated
    #[arg(long, value_name = "TOKEN=VALUE", value_parser = token_and_value)]
    pub logit_bias: Vec<(u32, f32)>,
    /// The same seed gives the same text [default: 0 of generate, from the clock of chat]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl SamplingArguments {
    /// The options, with a command's defaults for what is not given.
    ///
    /// # Errors
    /// Biases that no request can have. Everything else is checked by [`SamplingOptions::validate`].
    pub fn or(&self, defaults: &SamplingOptions) -> Result<SamplingOptions, ToolError> {
        Ok(SamplingOptions {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            top_k: self.top_k.unwrap_or(defaults.top_k),
            top_p: self.top_p.unwrap_or(defaults.top_p),
            repetition_penalty: self.repeat_penalty,
            penalty_window: self.repeat_last_n,
            min_p: self.min_p.unwrap_or(defaults.min_p),
            typical_p: self.typical_p.unwrap_or(defaults.typical_p),
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
            logit_bias: LogitBias::new(&self.logit_bias).map_err(SessionError::from)?,
            log_probabilities: defaults.log_probabilities,
            seed: self.seed.unwrap_or(defaults.seed),
        })
    }
}

/// A token's id and a value, as TOKEN=VALUE.
fn token_and_value(text: &str) -> Result<(u32, f32), String> {
    let (token, value) = text.split_once('=').ok_or("TOKEN=VALUE is needed")?;
    let token = token.parse().map_err(|_| format!("{token:?} is no token id"))?;
    let value = value.parse().map_err(|_| format!("{value:?} is no number"))?;
    Ok((token, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn biases_are_read_as_written() {
        assert_eq!(token_and_value("15=-1.5"), Ok((15, -1.5)));
        assert_eq!(token_and_value("0=-inf"), Ok((0, f32::NEG_INFINITY)));
        assert_eq!(token_and_value("7=+2"), Ok((7, 2.0)));
        for text in ["", "15", "=1", "15=", "-1=1", "4294967296=1", "a=1", "1=b", "1=1=1"] {
            assert!(token_and_value(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn options_come_from_arguments_and_defaults() {
        let defaults =
            SamplingOptions { min_p: 0.25, log_probabilities: Some(3), ..SamplingOptions::default() };
        let given = SamplingArguments {
            typical_p: Some(0.5),
            presence_penalty: 1.0,
            frequency_penalty: -1.0,
            logit_bias: vec![(3, 2.0)],
            repeat_penalty: 1.0,
            ..SamplingArguments::default()
        };
        let options = given.or(&defaults).unwrap();
        assert_eq!((options.min_p, options.typical_p), (0.25, 0.5));
        assert_eq!((options.presence_penalty, options.frequency_penalty), (1.0, -1.0));
        assert_eq!(options.logit_bias.entries(), [(3, 2.0)]);
        assert_eq!(options.log_probabilities, Some(3));
        let twice = SamplingArguments { logit_bias: vec![(3, 2.0), (3, 1.0)], ..given };
        assert!(twice.or(&defaults).is_err());
    }

    #[test]
    fn what_is_given_goes_before_the_command_s_own_choice() {
        let defaults = SamplingOptions {
            temperature: 0.8,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.1,
            typical_p: 0.9,
            seed: 7,
            ..SamplingOptions::default()
        };
        let plain =
            SamplingArguments { repeat_penalty: 1.5, repeat_last_n: 9, ..SamplingArguments::default() };
        let found = plain.or(&defaults).unwrap();
        assert_eq!((found.temperature, found.top_k, found.top_p), (0.8, 40, 0.95));
        assert_eq!((found.min_p, found.typical_p, found.seed), (0.1, 0.9, 7));
        assert_eq!((found.repetition_penalty, found.penalty_window), (1.5, 9));
        let given = SamplingArguments {
            temperature: Some(0.0),
            top_k: Some(3),
            top_p: Some(0.5),
            min_p: Some(0.25),
            seed: Some(11),
            ..plain
        };
        let found = given.or(&defaults).unwrap();
        assert_eq!((found.temperature, found.top_k, found.top_p), (0.0, 3, 0.5));
        assert_eq!((found.min_p, found.seed), (0.25, 11));
    }
}
