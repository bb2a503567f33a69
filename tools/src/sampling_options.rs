//! The options of commands that draw tokens, by the names that llama.cpp gives them.
//!
//! Contract: ranges are those of [`SamplingOptions`], which checks them.

use clap::Args;
use zrt_engine::sampling::SamplingOptions;

/// The options. What is not given is the command's own default.
#[derive(Clone, Copy, Debug, Default, Args)]
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
    /// How many of the last tokens are recent
    #[arg(long, value_name = "N", default_value_t = 64)]
    pub repeat_last_n: u32,
    /// The same seed gives the same text [default: 0 of generate, from the clock of chat]
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
}

impl SamplingArguments {
    /// The options, with a command's defaults for what is not given.
    pub fn or(&self, defaults: &SamplingOptions) -> SamplingOptions {
        SamplingOptions {
            temperature: self.temperature.unwrap_or(defaults.temperature),
            top_k: self.top_k.unwrap_or(defaults.top_k),
            top_p: self.top_p.unwrap_or(defaults.top_p),
            repetition_penalty: self.repeat_penalty,
            penalty_window: self.repeat_last_n,
            seed: self.seed.unwrap_or(defaults.seed),
        }
    }
}
