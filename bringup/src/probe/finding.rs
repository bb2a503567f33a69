//! What a question to silicon found out.
//!
//! Contract: plain values, read by other programs.

use serde::{Deserialize, Serialize};

/// What an answer means for the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The device does what the model says.
    Confirms,
    /// It does something else.
    Contradicts,
    /// There is no model: a number to know.
    Measured,
}

/// A measured value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    /// A number in the measure's unit.
    Number(f64),
    /// A word, a list or bits, in the measure's unit.
    Text(String),
}

/// One measured value with its unit.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// What was measured.
    pub name: String,
    /// How much.
    pub value: Quantity,
    /// `ns`, `cycles`, `count`, `bytes/s`, `MHz`, `dwords`, `hex`, `text`, `ulp` and so on.
    pub unit: String,
}

/// What a question found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Whether the model holds.
    pub verdict: Verdict,
    /// The answer in a sentence.
    pub summary: String,
    /// The answer as data.
    pub measures: Vec<Measure>,
}

impl Finding {
    /// A finding without measures.
    pub(super) fn new(verdict: Verdict, summary: String) -> Finding {
        Finding { verdict, summary, measures: Vec::new() }
    }

    /// A finding whose verdict is whether the model holds.
    pub(super) fn of_model(holds: bool, summary: String) -> Finding {
        Finding::new(if holds { Verdict::Confirms } else { Verdict::Contradicts }, summary)
    }

    /// Adds a number to six digits: further digits are noise, and would not survive a conversion to text.
    pub(super) fn number(&mut self, name: impl Into<String>, value: f64, unit: &str) {
        let value = match format!("{value:.5e}").parse() {
            Ok(rounded) if f64::is_finite(rounded) => Quantity::Number(rounded),
            _ => Quantity::Text("not a number".into()),
        };
        self.measures.push(Measure { name: name.into(), value, unit: unit.into() });
    }

    /// Adds a word, a list or bits.
    pub(super) fn text(&mut self, name: impl Into<String>, value: String, unit: &str) {
        self.measures.push(Measure { name: name.into(), value: Quantity::Text(value), unit: unit.into() });
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// All of a finding: verdict and summary, then a line for each measure.
    pub(in crate::probe) fn lines(finding: &Finding) -> String {
        let measure = |Measure { name, value, unit }: &Measure| match value {
            Quantity::Number(number) => format!("\n{name} {number} {unit}"),
            Quantity::Text(text) => format!("\n{name} {text:?} {unit}"),
        };
        let measures: String = finding.measures.iter().map(measure).collect();
        format!("{:?}: {}{measures}", finding.verdict, finding.summary)
    }

    #[test]
    fn numbers_have_six_digits_and_are_finite() {
        let mut finding = Finding::new(Verdict::Measured, "s".into());
        for value in [123_456.789, -0.001_234_564_9, 0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            finding.number("n", value, "ns");
        }
        finding.text("t", "w".into(), "text");
        let expected = "Measured: s\nn 123457 ns\nn -0.00123456 ns\nn 0 ns\nn \"not a number\" ns\n\
                        n \"not a number\" ns\nn \"not a number\" ns\nt \"w\" text";
        assert_eq!(lines(&finding), expected);
        assert_eq!(lines(&Finding::of_model(true, "yes".into())), "Confirms: yes");
        assert_eq!(lines(&Finding::of_model(false, "no".into())), "Contradicts: no");
    }
}
