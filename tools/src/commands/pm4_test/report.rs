//! The report of a packet test: one Markdown file for people, with the same as JSON inside for programs.
//!
//! Contract: [`Report::to_markdown`] and [`Report::parse`] are inverses. Names of this machine and its user, and paths
//! below their home, are removed from every text of the whole report, and from the names of what was found, before it
//! is written ([`Secrets`]). Parsing takes untrusted bytes: it returns an error, never a panic.

use super::probe::in_words;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::PathBuf;
use zrt_bringup::probe::{Answer, Environment};

/// Version of the JSON's form.
const FORMAT_VERSION: u32 = 1;
/// What opens and closes the JSON.
const FENCE_OPEN: &str = "```json\n";
const FENCE_CLOSE: &str = "\n```\n";
/// The replacement of a name.
const REMOVED: &str = "(removed)";
/// Fields whose keys are names of things on the machine; all other keys are words of the form.
const KEYED_BY_NAME: [&str; 4] = ["firmware", "driver_options", "topology", "timings_ns"];
/// Names shorter than this are words of any text.
const SECRET_BYTES_MIN: usize = 3;

/// What one run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Version of this form: 1.
    pub format_version: u32,
    /// Version of zrt.
    pub zrt: String,
    /// Device, driver, firmware.
    pub environment: Environment,
    /// The packet test, in the form of `--json`.
    pub conformance: Value,
    /// The probe's answers; empty if it was not requested.
    pub probes: Vec<Answer>,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// No JSON is in it.
    #[error("the file has no JSON block: attach the whole file that --report wrote")]
    NoBlock,
    /// The JSON is not a report's.
    #[error("the JSON block is not a report's: {0}")]
    Form(#[from] serde_json::Error),
    /// Another version's report.
    #[error("the report has format {found}, this program reads {FORMAT_VERSION}")]
    Version {
        /// The version that it states.
        found: u32,
    },
}

/// What must not be in a report: names of the machine and its user, their folders.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Vec<String>);

impl Secrets {
    /// Those of this process, the longest first.
    pub fn of_this_machine() -> Secrets {
        let variables = ["HOSTNAME", "HOST", "USER", "LOGNAME", "HOME"];
        let mut names: Vec<String> = variables.iter().filter_map(|name| std::env::var(name).ok()).collect();
        names.extend(std::fs::read_to_string("/proc/sys/kernel/hostname").ok());
        names.extend(std::env::current_dir().ok().map(|folder| folder.to_string_lossy().into_owned()));
        Secrets::new(names)
    }

    /// These words.
    pub fn new(names: Vec<String>) -> Secrets {
        let mut names: Vec<String> = names.iter().map(|name| name.trim().to_owned()).collect();
        names.retain(|name| name.len() >= SECRET_BYTES_MIN);
        names.sort_by_key(|name| std::cmp::Reverse(name.len()));
        Secrets(names)
    }

    /// Removes them, unless they are a part of a longer word.
    fn scrub(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, name| replace_word(&text, name))
    }

    fn scrub_value(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.scrub(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.scrub_value(value)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.scrub_value(value);
                    if KEYED_BY_NAME.contains(&key.as_str()) {
                        self.scrub_keys(value);
                    }
                }
            }
            _ => {}
        }
    }

    fn scrub_keys(&self, value: &mut Value) {
        if let Value::Object(fields) = value {
            *fields =
                std::mem::take(fields).into_iter().map(|(key, value)| (self.scrub(&key), value)).collect();
        }
    }
}

/// Replaces a word by [`REMOVED`].
fn replace_word(text: &str, word: &str) -> String {
    let is_inner =
        |letter: Option<char>| letter.is_some_and(|letter| letter.is_alphanumeric() || letter == '_');
    let mut result = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        result.push_str(before);
        let is_part = is_inner(result.chars().next_back()) || is_inner(after.chars().next());
        result.push_str(if is_part { word } else { REMOVED });
        rest = after;
    }
    result + rest
}

impl Report {
    /// A report without the secrets: they are removed from the whole of it, in its form as JSON.
    ///
    /// # Errors
    /// If a number cannot be written as JSON, or one of the secrets is a word that the form has for a value.
    pub fn new(
        environment: Environment,
        conformance: Value,
        probes: Vec<Answer>,
        secrets: &Secrets,
    ) -> Result<Report, ReportError> {
        let zrt = crate::VERSION.into();
        let report = Report { format_version: FORMAT_VERSION, zrt, environment, conformance, probes };
        let mut value = serde_json::to_value(report)?;
        secrets.scrub_value(&mut value);
        Ok(serde_json::from_value(value)?)
    }

    /// The file's text.
    ///
    /// # Errors
    /// If a number cannot be written as JSON.
    pub fn to_markdown(&self) -> Result<String, ReportError> {
        let environment = &self.environment;
        let mut text = format!("# zrt on {}\n\nzrt {}", environment.device, self.zrt);
        if !environment.kernel.is_empty() {
            text.push_str(&format!(", Linux {}", environment.kernel));
        }
        text.push_str(".\n");
        if environment.is_virtual {
            text.push_str("\nThis is the virtual device: its times say nothing about a card.\n");
        }
        text.push_str("\n## Machine\n\n| what | value |\n|---|---|\n");
        for (name, value) in environment.firmware.iter().chain(&environment.driver_options) {
            text.push_str(&row(&[name, value]));
        }
        for (name, value) in &environment.topology {
            text.push_str(&row(&[name, &value.to_string()]));
        }
        text.push_str(&self.cases());
        text.push_str("\n## Questions\n\n| question | outcome | answer | the model |\n|---|---|---|---|\n");
        for answer in &self.probes {
            let (word, summary) = in_words(&answer.outcome);
            text.push_str(&row(&[&answer.question, word, summary, &answer.model]));
        }
        text.push_str("\n## The same for programs\n\n");
        text.push_str(FENCE_OPEN);
        text.push_str(&serde_json::to_string_pretty(self)?);
        text.push_str(FENCE_CLOSE);
        Ok(text)
    }

    /// The file's text, which has been read back.
    ///
    /// # Errors
    /// If it does not read back.
    pub fn checked_text(&self) -> Result<String, ReportError> {
        let text = self.to_markdown()?;
        Report::parse(&text)?;
        Ok(text)
    }

    /// The table of the packet test: every field of a case that is a text or a truth value.
    fn cases(&self) -> String {
        let mut text = String::from("\n## Packet conformance\n\n| case | result |\n|---|---|\n");
        let cases = self.conformance.get("cases").and_then(Value::as_array);
        for case in cases.into_iter().flatten() {
            let Some(name) = case.get("case").and_then(Value::as_str) else { continue };
            let fields = case.as_object().into_iter().flatten().filter(|(field, _)| *field != "case");
            let words = fields.filter_map(|(field, value)| match value {
                Value::String(text) => Some(text.clone()),
                Value::Bool(holds) => Some(format!("{field}: {}", if *holds { "yes" } else { "no" })),
                _ => None,
            });
            text.push_str(&row(&[name, &words.collect::<Vec<_>>().join("; ")]));
        }
        text
    }

    /// Reads a report back.
    ///
    /// # Errors
    /// [`ReportError`] if the text is not a report.
    pub fn parse(text: &str) -> Result<Report, ReportError> {
        let text = text.replace("\r\n", "\n");
        let (_, rest) = text.split_once(FENCE_OPEN).ok_or(ReportError::NoBlock)?;
        let (json, _) = rest.split_once(FENCE_CLOSE).ok_or(ReportError::NoBlock)?;
        let value: Value = serde_json::from_str(json)?;
        match value.get("format_version").and_then(Value::as_u64) {
            Some(version) if version != u64::from(FORMAT_VERSION) => {
                Err(ReportError::Version { found: u32::try_from(version).unwrap_or(u32::MAX) })
            }
            _ => Ok(serde_json::from_value(value)?),
        }
    }
}

/// A row of a Markdown table: bars and line ends in cells are replaced.
fn row(cells: &[&str]) -> String {
    let clean = |cell: &&str| cell.replace('|', "/").replace(['\n', '\r'], " ").replace("```", "'''");
    format!("| {} |\n", cells.iter().map(clean).collect::<Vec<_>>().join(" | "))
}

/// The default path of the report: a name by device, in the working folder.
pub fn default_path(is_virtual: bool) -> PathBuf {
    PathBuf::from(if is_virtual { "zrt-report-virtual.md" } else { "zrt-report-kfd.md" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use zrt_bringup::probe::{Finding, Measure, Outcome, Quantity, Verdict};

    fn answer(question: &str, outcome: Outcome) -> Answer {
        Answer {
            question: question.into(),
            asks: "what".into(),
            model: "a | b".into(),
            outcome,
            duration_us: 7,
        }
    }

    fn report(secrets: &Secrets) -> Report {
        let measure = |name: &str, value, unit: &str| Measure { name: name.into(), value, unit: unit.into() };
        let finding = Finding {
            verdict: Verdict::Contradicts,
            summary: "seen on workbench by alice: ```json 1 | 2".into(),
            measures: vec![
                measure("latency", Quantity::Number(12.5), "ns"),
                measure("mode", Quantity::Text("0xf0".into()), "hex"),
            ],
        };
        let mut environment = Environment { kernel: "6.16.3-1".into(), ..Environment::default() };
        environment.device = "Radeon R9700 (gfx1201)".into();
        environment.firmware.insert("mec_fw_version".into(), "0x0c0b".into());
        environment.topology.insert("compute_units".into(), 64);
        let conformance = json!({"cases": [
            {"case": "fence", "passed": true, "observed": "it came", "timings_ns": {"x": 1.5}},
            {"case": "nop", "passed": false, "observed": "read /srv/alice/zrt/notes and malice"},
        ]});
        let probes = vec![
            answer("mode-at-launch", Outcome::Answered(finding)),
            answer("placement", Outcome::Failed("the device did not finish".into())),
            answer("barrier", Outcome::NotRun("the device stopped in placement".into())),
        ];
        Report::new(environment, conformance, probes, secrets).unwrap()
    }

    #[test]
    fn a_report_parses_back() {
        let report = report(&Secrets::default());
        let text = report.to_markdown().unwrap();
        assert_eq!(Report::parse(&text).unwrap(), report);
        // As a web form sends it.
        assert_eq!(Report::parse(&text.replace('\n', "\r\n")).unwrap(), report);
        let heading = format!("# zrt on Radeon R9700 (gfx1201)\n\nzrt {}, Linux 6.16.3-1.\n", report.zrt);
        assert!(text.starts_with(&heading), "{text}");
        for line in [
            "| fence | it came; passed: yes |",
            "| barrier | not run | the device stopped in placement | a / b |",
            "| mec_fw_version | 0x0c0b |",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    /// The virtual device has no kernel, and says what it is.
    #[test]
    fn a_report_without_a_kernel_names_none() {
        let environment =
            Environment { device: "virtual".into(), is_virtual: true, ..Environment::default() };
        let report = Report::new(environment, json!({}), Vec::new(), &Secrets::default()).unwrap();
        let heading = format!(
            "# zrt on virtual\n\nzrt {}.\n\nThis is the virtual device: its times say nothing about a card.\n\n",
            report.zrt
        );
        let text = report.to_markdown().unwrap();
        assert!(text.starts_with(&heading), "{text}");
    }

    #[test]
    fn names_of_the_machine_are_taken_out() {
        let secrets = ["alice", "workbench\n", "/srv/alice/zrt", "x"].map(String::from).to_vec();
        let text = report(&Secrets::new(secrets)).to_markdown().unwrap();
        assert!(text.contains("seen on (removed) by (removed)"), "{text}");
        assert!(text.contains("read (removed)/notes and malice"), "whole words only: {text}");
        assert!(!text.contains("/srv/"), "{text}");
        let folder = std::env::current_dir().unwrap().to_string_lossy().into_owned();
        let own = Secrets::of_this_machine();
        assert_eq!(own.scrub(&format!("cannot read {folder}/x")), "cannot read (removed)/x");
    }

    /// Every text of a report, and every name that is not the form's, with the secret in it.
    #[test]
    fn no_field_keeps_a_name_of_the_machine() {
        let secret = || "on alice 1".to_owned();
        let environment = Environment {
            device: secret(),
            is_virtual: false,
            kernel: secret(),
            firmware: [(secret(), secret())].into(),
            driver_options: [(secret(), secret())].into(),
            topology: [(secret(), 7)].into(),
        };
        let measure = Measure { name: secret(), value: Quantity::Text(secret()), unit: secret() };
        let finding = Finding { verdict: Verdict::Contradicts, summary: secret(), measures: vec![measure] };
        let answers = [Outcome::Answered(finding), Outcome::Failed(secret()), Outcome::NotRun(secret())];
        let probes = answers.map(|outcome| Answer {
            question: secret(),
            asks: secret(),
            model: secret(),
            outcome,
            duration_us: 7,
        });
        let conformance =
            json!({"cases": [{"case": secret(), "deep": [secret()], "timings_ns": {secret(): 1.5}}]});
        let secrets = Secrets::new(vec!["alice".into()]);
        let report = Report::new(environment, conformance, probes.into(), &secrets).unwrap();
        let text = report.checked_text().unwrap();
        assert!(!text.contains("alice"), "{text}");
        assert!(report.environment.topology.contains_key("on (removed) 1"), "{text}");
    }

    #[test]
    fn what_is_no_report_is_refused() {
        assert!(matches!(Report::parse("# zrt"), Err(ReportError::NoBlock)));
        assert!(matches!(Report::parse("```json\n{}"), Err(ReportError::NoBlock)));
        assert!(matches!(Report::parse("```json\n{}\n```\n"), Err(ReportError::Form(_))));
        assert!(matches!(Report::parse("```json\n[1,\n```\n"), Err(ReportError::Form(_))));
        let other = "```json\n{\"format_version\": 99999999999}\n```\n";
        assert!(matches!(Report::parse(other), Err(ReportError::Version { found: u32::MAX })));
    }
}
