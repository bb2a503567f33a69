//! Log-probabilities as `zrt generate --logprobs` shows them: a table, or in JSON with the names that llama.cpp's
//! server gives them.
//!
//! Contract: of the model's own distribution, before temperature, penalties, biases and filters. JSON has no infinite
//! numbers: -inf is null.

use serde::Serialize;
use std::fmt::Write;
use zrt_engine::log_probabilities::{LogProbabilities, LogProbability};
use zrt_engine::tokenizer::Tokenizer;

/// A token with its log-probability.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenLogProbability {
    /// The token's id.
    pub id: u32,
    /// Its text; bytes that are no whole character are replaced.
    pub token: String,
    /// Natural logarithm of its probability.
    pub logprob: f32,
}

/// A generated token with the most likely ones in its place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GeneratedLogProbability {
    /// The token.
    #[serde(flatten)]
    pub chosen: TokenLogProbability,
    /// The most likely tokens, the first first.
    pub top_logprobs: Vec<TokenLogProbability>,
}

impl GeneratedLogProbability {
    /// With the tokens' texts.
    pub fn new(tokenizer: &Tokenizer, values: &LogProbabilities) -> GeneratedLogProbability {
        let named = |one: &LogProbability| TokenLogProbability {
            id: one.token,
            token: String::from_utf8_lossy(tokenizer.piece(one.token).unwrap_or_default()).into_owned(),
            logprob: one.value,
        };
        GeneratedLogProbability {
            chosen: named(&values.chosen()),
            top_logprobs: values.top().iter().map(named).collect(),
        }
    }
}

/// A line for each token: id, log-probability, text, then the most likely tokens.
pub fn table(tokens: &[GeneratedLogProbability]) -> String {
    let mut text = String::from("     id   logprob  token, and the most likely ones\n");
    for GeneratedLogProbability { chosen, top_logprobs } in tokens {
        let top: Vec<String> =
            top_logprobs.iter().map(|one| format!("{:?} {:.4}", one.token, one.logprob)).collect();
        let (separator, top) = (if top.is_empty() { "" } else { "  | " }, top.join(", "));
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:7} {:9.4}  {:?}{separator}{top}", chosen.id, chosen.logprob, chosen.token);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: u32, token: &str, logprob: f32) -> TokenLogProbability {
        TokenLogProbability { id, token: token.to_owned(), logprob }
    }

    #[test]
    fn a_line_for_each_token() {
        let tokens = [
            GeneratedLogProbability {
                chosen: one(262, " the", -0.5),
                top_logprobs: vec![one(262, " the", -0.5), one(64, "\n", -1.25)],
            },
            GeneratedLogProbability { chosen: one(5, "x", -12.0), top_logprobs: vec![] },
        ];
        let expected = "     id   logprob  token, and the most likely ones
    262   -0.5000  \" the\"  | \" the\" -0.5000, \"\\n\" -1.2500
      5  -12.0000  \"x\"
";
        assert_eq!(table(&tokens), expected);
        let json = serde_json::to_string(&tokens[0]).expect("plain values");
        let first = r#""id":262,"token":" the","logprob":-0.5"#;
        let second = r#""id":64,"token":"\n","logprob":-1.25"#;
        assert_eq!(json, format!("{{{first},\"top_logprobs\":[{{{first}}},{{{second}}}]}}"));
        let never = one(1, "a", f32::NEG_INFINITY);
        assert_eq!(
            serde_json::to_string(&never).expect("plain values"),
            r#"{"id":1,"token":"a","logprob":null}"#
        );
    }
}
