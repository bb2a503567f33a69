//! The answers of `zrt pm4-test --probe` as text.
//!
//! Contract: the questions are `zrt_bringup::probe`. Times of the virtual device are marked as meaningless.

use zrt_bringup::probe::{Answer, Outcome, QUESTIONS, Verdict};

/// The heading of the answers.
pub(super) fn headline(is_virtual: bool) -> String {
    let times = if is_virtual { "(virtual device: its times say nothing about a card)\n" } else { "" };
    format!("asking {} questions\n{times}", QUESTIONS.len())
}

/// An answer, and the model if the answer contradicts it.
pub(super) fn answer_text(answer: &Answer) -> String {
    let (word, text) = in_words(&answer.outcome);
    let model = match word {
        "contradicts" => format!("{:37} the model: {}\n", "", answer.model),
        _ => String::new(),
    };
    format!("{word:>11}  {:<24} {text}\n{model}", answer.question)
}

/// One word for an outcome, and its sentence.
pub(super) fn in_words(outcome: &Outcome) -> (&'static str, &str) {
    match outcome {
        Outcome::Answered(finding) => {
            let word = match finding.verdict {
                Verdict::Confirms => "confirms",
                Verdict::Contradicts => "contradicts",
                Verdict::Measured => "measured",
            };
            (word, &finding.summary)
        }
        Outcome::Failed(reason) => ("FAILED", reason),
        Outcome::NotRun(reason) => ("not run", reason),
    }
}
