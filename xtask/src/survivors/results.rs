//! What became of each mutant, kept from one run to the next.
//!
//! Contract: a file for each crate, a line of JSON for each mutant that is settled, by its name. The first line has the
//! fingerprint of everything that outcomes depend on: with another one nothing of the file is taken.
//! A mutant whose tests took too long is tried again if more time is given.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// What became of a mutant.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Outcome {
    /// This test failed, or one of this binary.
    Killed { test: String },
    /// It did not end in time, or took too much memory.
    TimedOut { test: String },
    /// Every test that comes by it passed.
    Survived,
    /// Every test that the budget allowed passed, and some were left out.
    OverBudget { left_out: usize, budget_s: f64 },
    /// No test comes by it.
    Unreached,
    /// It does not compile.
    Unviable { reason: String },
    /// It could not be written into the file beside the others.
    NotPlaced { reason: String },
}

/// One line of the file.
#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    outcome: Outcome,
}

/// The first line of the file.
#[derive(PartialEq, Serialize, Deserialize)]
struct Head {
    fingerprint: u64,
}

/// The outcomes of a crate.
pub struct Results {
    file: File,
    outcomes: BTreeMap<String, Outcome>,
}

impl Results {
    /// Takes what a file has, if it is for this fingerprint, and goes on in it; without `keep` nothing. `budget_s` is
    /// what a mutant of a name is given now.
    pub fn open(
        path: &Path,
        fingerprint: u64,
        keep: bool,
        budget_s: impl Fn(&str) -> f64,
    ) -> Result<Results, Box<dyn Error>> {
        let old = if keep { fs::read_to_string(path).unwrap_or_default() } else { String::new() };
        let outcomes = taken(&old, &Head { fingerprint }, budget_s);
        let mut text = serde_json::to_string(&Head { fingerprint })? + "\n";
        for (name, outcome) in &outcomes {
            text += &line(name, outcome)?;
        }
        // The old file is there until the new one is whole.
        let new = path.with_extension("new");
        fs::write(&new, text)?;
        fs::rename(&new, path)?;
        Ok(Results { file: OpenOptions::new().append(true).open(path)?, outcomes })
    }

    /// What became of a mutant, if it is settled.
    pub fn get(&self, name: &str) -> Option<&Outcome> {
        self.outcomes.get(name)
    }

    /// Settles a mutant.
    pub fn enter(&mut self, name: &str, outcome: Outcome) -> Result<(), Box<dyn Error>> {
        self.file.write_all(line(name, &outcome)?.as_bytes())?;
        self.outcomes.insert(name.to_owned(), outcome);
        Ok(())
    }
}

fn line(name: &str, outcome: &Outcome) -> Result<String, serde_json::Error> {
    let line = Line { name: name.to_owned(), outcome: outcome.clone() };
    Ok(serde_json::to_string(&line)? + "\n")
}

/// The outcomes that a file with this text still says. A line that was cut short says nothing.
fn taken(text: &str, head: &Head, budget_s: impl Fn(&str) -> f64) -> BTreeMap<String, Outcome> {
    let mut lines = text.lines();
    let old: Option<Head> = lines.next().and_then(|line| serde_json::from_str(line).ok());
    if old.as_ref() != Some(head) {
        return BTreeMap::new();
    }
    let lines = lines.filter_map(|line| serde_json::from_str::<Line>(line).ok());
    let has_more_time = |line: &Line| matches!(line.outcome, Outcome::OverBudget { budget_s: had_s, .. } if had_s < budget_s(&line.name));
    lines.filter(|line| !has_more_time(line)).map(|line| (line.name, line.outcome)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_are_kept_for_the_same_sources() {
        let folder = zrt_needs::TemporaryFolder::new("results");
        let path = folder.join("mem.jsonl");
        let open = |fingerprint, budget_s, keep| {
            let budget_s = |name: &str| if name == "judged" { 1.0 } else { budget_s };
            Results::open(&path, fingerprint, keep, budget_s).unwrap()
        };
        let over = Outcome::OverBudget { left_out: 2, budget_s: 3.0 };
        let mut results = open(1, 3.0, true);
        results.enter("a", Outcome::Survived).unwrap();
        results.enter("b", over.clone()).unwrap();
        results.enter("judged", over.clone()).unwrap();
        drop(results);
        // What was being written when the run was ended.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"name\":\"c").unwrap();
        let mut results = open(1, 3.0, true);
        assert_eq!((results.get("a"), results.get("b")), (Some(&Outcome::Survived), Some(&over)));
        assert_eq!(results.get("c"), None);
        results.enter("c", Outcome::Unreached).unwrap();
        drop(results);
        // More time settles what had too little, if it is given more.
        let results = open(1, 4.0, true);
        assert_eq!(results.get("judged"), Some(&over));
        assert_eq!((results.get("b"), results.get("c")), (None, Some(&Outcome::Unreached)));
        assert_eq!(open(2, 4.0, true).get("a"), None);
        open(2, 4.0, true).enter("a", Outcome::Survived).unwrap();
        assert_eq!(open(2, 4.0, false).get("a"), None);
    }
}
