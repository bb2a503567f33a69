//! `cargo xtask pm4-test --probe`: asks the device's questions and prints the answers.
//!
//! Contract: front end only; the questions are `zrt_device::probe`. Times of the virtual device are marked as meaningless.

use zrt_device::Device;
use zrt_device::probe::{self, Answer, Outcome, Verdict};

/// Asks all questions, and prints each answer under its model.
pub fn run(device: &mut Device) -> Vec<Answer> {
    println!("asking {} questions", probe::QUESTIONS.len());
    let is_virtual = device.is_virtual();
    let answers = probe::run(device);
    if is_virtual {
        println!("(virtual device: its times say nothing about a card)");
    }
    for answer in &answers {
        let (word, text) = in_words(&answer.outcome);
        println!("{word:>11}  {:<24} {text}", answer.question);
        if word == "contradicts" {
            println!("{:37} the model: {}", "", answer.model);
        }
    }
    answers
}

/// One word for an outcome, and its sentence.
pub fn in_words(outcome: &Outcome) -> (&'static str, &str) {
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
