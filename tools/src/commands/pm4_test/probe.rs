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

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_bringup::probe::Finding;

    #[test]
    fn answers_have_a_word_and_the_model_where_they_contradict_it() {
        let told = |outcome| {
            let answer = Answer {
                question: "latency".to_owned(),
                asks: String::new(),
                model: "12 ns".to_owned(),
                outcome,
                duration_us: 0,
            };
            answer_text(&answer)
        };
        let answered = |verdict| {
            Outcome::Answered(Finding { verdict, summary: "it is 13".to_owned(), measures: Vec::new() })
        };
        assert_eq!(told(answered(Verdict::Confirms)), "   confirms  latency                  it is 13\n");
        assert_eq!(told(answered(Verdict::Measured)), "   measured  latency                  it is 13\n");
        let contradiction =
            format!("contradicts  latency                  it is 13\n{}the model: 12 ns\n", " ".repeat(38));
        assert_eq!(told(answered(Verdict::Contradicts)), contradiction);
        assert_eq!(told(Outcome::Failed("no".to_owned())), "     FAILED  latency                  no\n");
        assert_eq!(told(Outcome::NotRun("no".to_owned())), "    not run  latency                  no\n");
    }

    #[test]
    fn times_of_the_virtual_device_are_called_meaningless() {
        let count = QUESTIONS.len();
        assert_eq!(headline(false), format!("asking {count} questions\n"));
        let marked =
            format!("asking {count} questions\n(virtual device: its times say nothing about a card)\n");
        assert_eq!(headline(true), marked);
    }
}
