//! Golden traces: what another engine, or exact arithmetic, computed for a model.
//!
//! Contract: a file is untrusted bytes. [`Golden::parse`] returns a value or an error, takes memory in proportion to
//! the bytes, and what it returns is consistent: a margin for each token, and every number finite. Keys that are not
//! named here are skipped.

use serde::Deserialize;
use thiserror::Error;

/// Maximum size of a file in bytes: twenty times the largest existing one.
pub const GOLDEN_BYTES_MAX: usize = 1_048_576;

/// One golden trace file.
#[derive(Debug, Deserialize)]
pub struct Golden {
    /// One entry per prompt.
    pub traces: Vec<Trace>,
}

/// One prompt of a golden file.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Trace {
    pub prompt: String,
    pub prompt_token_ids: Vec<u32>,
    pub prompt_nll_mean: f64,
    pub greedy_token_ids: Vec<u32>,
    pub greedy_margins: Vec<f64>,
    pub reference_f64: Option<Reference>,
    /// The whole vocabulary's logits after the prompt, where the file has them.
    #[serde(default)]
    pub logits_after_prompt: Vec<f64>,
}

/// Exact arithmetic on the same weights, if the engine of the trace rounded activations.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)]
pub struct Reference {
    pub prompt_nll_mean: f64,
    pub greedy_token_ids: Vec<u32>,
    pub min_margin: f64,
    pub top5_after_prompt: Vec<(u32, f64)>,
}

/// Why bytes are not a golden trace file.
#[derive(Debug, Error)]
pub enum GoldenError {
    /// It is too long.
    #[error("a golden trace file has {bytes} bytes, and at most {GOLDEN_BYTES_MAX} are read")]
    Length {
        /// Its length.
        bytes: usize,
    },
    /// It is not JSON of this shape.
    #[error("not a golden trace file: {0}")]
    Json(#[from] serde_json::Error),
    /// A trace's number of margins is not its number of tokens.
    #[error("trace {trace} has {margins} margins for {tokens} greedy tokens")]
    Margins {
        /// Its number, from 0.
        trace: usize,
        /// Margins.
        margins: usize,
        /// Tokens.
        tokens: usize,
    },
}

impl Golden {
    /// Reads a file.
    pub fn parse(bytes: &[u8]) -> Result<Golden, GoldenError> {
        if bytes.len() > GOLDEN_BYTES_MAX {
            return Err(GoldenError::Length { bytes: bytes.len() });
        }
        let golden: Golden = serde_json::from_slice(bytes)?;
        for (index, trace) in golden.traces.iter().enumerate() {
            let [margins, tokens] = [trace.greedy_margins.len(), trace.greedy_token_ids.len()];
            if margins != tokens {
                return Err(GoldenError::Margins { trace: index, margins, tokens });
            }
        }
        Ok(golden)
    }
}

impl Trace {
    /// The loss of exact arithmetic.
    pub fn exact_loss(&self) -> f64 {
        self.reference_f64.as_ref().map_or(self.prompt_nll_mean, |reference| reference.prompt_nll_mean)
    }

    /// Greedy tokens of exact arithmetic, up to the first step whose margin is below `margin`.
    pub fn exact_tokens(&self, margin: f64) -> &[u32] {
        match &self.reference_f64 {
            Some(reference) if reference.min_margin >= margin => &reference.greedy_token_ids,
            Some(_) => &[],
            None => {
                let sure = self.greedy_margins.iter().position(|one| *one < margin);
                &self.greedy_token_ids[..sure.unwrap_or(self.greedy_token_ids.len())]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(tokens: &str, margins: &str) -> String {
        format!(
            r#"{{"model": "m", "traces": [{{"prompt": "a", "prompt_token_ids": [1], "prompt_nll_mean": 0.5,
            "greedy_token_ids": {tokens}, "greedy_margins": {margins}}}]}}"#
        )
    }

    #[test]
    fn tokens_are_sure_up_to_the_first_small_margin() {
        let golden = Golden::parse(file("[4, 5, 6]", "[1.0, 0.5, 2.0]").as_bytes()).unwrap();
        let trace = &golden.traces[0];
        assert_eq!((trace.exact_tokens(0.1), trace.exact_tokens(0.75)), (&[4, 5, 6][..], &[4][..]));
        // A margin that is as large as that is sure.
        assert_eq!(trace.exact_tokens(0.5), [4, 5, 6]);
        assert_eq!(trace.exact_loss(), 0.5);
    }

    #[test]
    fn exact_arithmetic_is_taken_before_an_engine_that_rounds() {
        let text = file("[4, 5]", "[1.0, 1.0]").replace(
            "}]}",
            r#", "reference_f64": {"prompt_nll_mean": 0.25, "greedy_token_ids": [4, 6], "min_margin": 0.5,
            "top5_after_prompt": []}}]}"#,
        );
        let golden = Golden::parse(text.as_bytes()).unwrap();
        let trace = &golden.traces[0];
        assert_eq!(trace.exact_loss(), 0.25);
        assert_eq!((trace.exact_tokens(0.5), trace.exact_tokens(0.51)), (&[4, 6][..], &[][..]));
    }

    #[test]
    fn what_does_not_agree_with_itself_is_refused() {
        let refusal = |text: &str| Golden::parse(text.as_bytes()).unwrap_err().to_string();
        // A small margin after the last token: there is no token to stop at.
        assert_eq!(refusal(&file("[4]", "[1.0, 1.0, 0.01]")), "trace 0 has 3 margins for 1 greedy tokens");
        assert_eq!(refusal(&file("[4, 5]", "[1.0]")), "trace 0 has 1 margins for 2 greedy tokens");
        for (tokens, margins) in
            [("[4]", "[1e999]"), ("[4]", "[null]"), ("[4294967296]", "[1]"), ("4", "[1]")]
        {
            assert!(
                refusal(&file(tokens, margins)).starts_with("not a golden trace file"),
                "{tokens} {margins}"
            );
        }
        assert!(refusal(&"[".repeat(100_000)).starts_with("not a golden trace file"));
        assert!(refusal(&" ".repeat(GOLDEN_BYTES_MAX + 1)).contains("at most 1048576"));
        let mut longest = file("[4]", "[1]").into_bytes();
        longest.resize(GOLDEN_BYTES_MAX, b' ');
        assert!(Golden::parse(&longest).is_ok());
    }
}
