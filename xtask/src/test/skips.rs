//! What did not run, and why.
//!
//! Contract: a binary of cases appends a line `case<TAB>reason` to the file that [`VARIABLE`] names (`zrt_needs` does);
//! a stage of the suite that cannot run is recorded here directly. Printed, it is a line for each case that ran in no
//! pass, and their number, even if that is 0. A case that only a further pass skipped, because the pass takes away what
//! it needs, is counted for the pass.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The environment variable that names the file; `zrt_needs::SKIPS` is the same.
pub const VARIABLE: &str = "ZRT_SKIPS";

/// The record of a run of the suite.
#[derive(Default)]
pub struct Skips {
    /// Passes that ran the cases of whole binaries, in order, with what they skipped.
    passes: Vec<Recorded>,
    /// Cases that only a long run starts.
    left_out: usize,
    /// Stages and their reasons.
    stages: Vec<(String, String)>,
}

/// A binary that ran.
#[derive(Debug, PartialEq, Eq)]
pub struct RanBinary {
    /// `folder/target`.
    pub name: String,
    /// True if no argument selected among its cases but those that are left out.
    pub is_whole: bool,
    /// Parts of the names of cases that only a long run starts.
    pub left_out: &'static [&'static str],
    /// The text of its file.
    pub skips: String,
}

/// What one pass skipped.
struct Recorded {
    pass: String,
    /// Binaries of which all cases were started, as `folder/target`, but those with these parts of names.
    whole: BTreeMap<String, &'static [&'static str]>,
    /// Case and reason: `folder/target::case`.
    cases: BTreeMap<String, String>,
}

impl Skips {
    /// Records a stage that did not run.
    pub fn stage(&mut self, name: &str, reason: &str) {
        self.stages.push((name.to_owned(), reason.to_owned()));
    }

    /// Adds what another thread recorded.
    pub fn join(&mut self, other: Skips) {
        self.passes.extend(other.passes);
        self.stages.extend(other.stages);
    }

    /// Records how many cases wait for a long run.
    pub fn left_out(&mut self, cases: usize) {
        self.left_out = cases;
    }

    /// Records what a pass ran.
    pub fn pass(&mut self, name: &str, binaries: &[RanBinary]) {
        let cases = binaries.iter().flat_map(|ran| {
            ran.skips.lines().map(|line| {
                let (case, reason) = line.split_once('\t').unwrap_or((line, "no reason given"));
                (format!("{}::{case}", ran.name), reason.to_owned())
            })
        });
        let cases = cases.collect();
        let whole = binaries.iter().filter(|ran| ran.is_whole);
        let whole = whole.map(|ran| (ran.name.clone(), ran.left_out)).collect();
        self.passes.push(Recorded { pass: name.to_owned(), whole, cases });
    }

    /// Cases that ran in no pass, and stages, with their reasons.
    fn never(&self) -> Vec<(&str, &str)> {
        let mut never: Vec<(&str, &str)> =
            self.stages.iter().map(|(name, reason)| (name.as_str(), reason.as_str())).collect();
        let mut seen = BTreeSet::new();
        for (at, recorded) in self.passes.iter().enumerate() {
            for (case, reason) in &recorded.cases {
                if seen.insert(case) && !self.ran_elsewhere(at, case) {
                    never.push((case, reason));
                }
            }
        }
        never
    }

    /// Whether a case that pass number `skipped_in` skipped ran in another one.
    fn ran_elsewhere(&self, skipped_in: usize, case: &str) -> bool {
        let binary = case.split("::").next().unwrap_or(case);
        let others = self.passes.iter().enumerate().filter(|(at, _)| *at != skipped_in);
        let started = |left_out: &&[&str]| !left_out.iter().any(|name| case.contains(name));
        others
            .into_iter()
            .any(|(_, other)| other.whole.get(binary).is_some_and(started) && !other.cases.contains_key(case))
    }
}

impl fmt::Display for Skips {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, recorded) in self.passes.iter().enumerate() {
            let elsewhere = recorded.cases.keys().filter(|case| self.ran_elsewhere(at, case)).count();
            if elsewhere > 0 {
                writeln!(
                    formatter,
                    "   {}: {elsewhere} cases skipped that ran in another pass",
                    recorded.pass
                )?;
            }
        }
        if self.left_out > 0 {
            writeln!(formatter, "   left to `cargo xtask test --long`: {} cases", self.left_out)?;
        }
        let never = self.never();
        for (case, reason) in &never {
            writeln!(formatter, "   skipped: {case}: {reason}")?;
        }
        writeln!(formatter, "== skipped: {}", never.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(binaries: &[(&str, &str)]) -> Vec<RanBinary> {
        let ran = |(name, skips): &(&str, &str)| RanBinary {
            name: (*name).to_owned(),
            is_whole: true,
            left_out: &[],
            skips: (*skips).to_owned(),
        };
        binaries.iter().map(ran).collect()
    }

    #[test]
    fn nothing_skipped_is_said_too() {
        let mut skips = Skips::default();
        assert_eq!(skips.to_string(), "== skipped: 0\n");
        skips.pass("all", &ran(&[("a/one", "")]));
        assert_eq!(skips.to_string(), "== skipped: 0\n");
    }

    #[test]
    fn each_case_that_never_ran_has_a_line() {
        let mut skips = Skips::default();
        skips.stage("kernel drift", "llvm-mc-19 is not installed");
        skips.pass("all", &ran(&[("a/one", "big\tno model\nother::small\tno tool\n"), ("a/two", "")]));
        skips.pass("bare", &ran(&[("a/one", "big\tno model\nother::small\tno tool\nthird\tno tool\n")]));
        let expected = "   bare: 1 cases skipped that ran in another pass\n   \
                        skipped: kernel drift: llvm-mc-19 is not installed\n   \
                        skipped: a/one::big: no model\n   \
                        skipped: a/one::other::small: no tool\n\
                        == skipped: 3\n";
        assert_eq!(skips.to_string(), expected);
    }

    #[test]
    fn a_pass_alone_names_all_it_skipped() {
        let mut skips = Skips::default();
        skips.pass("bare", &ran(&[("a/one", "big\tno model\nno reason at all\n")]));
        let text = skips.to_string();
        assert!(text.contains("skipped: a/one::big: no model"), "{text}");
        assert!(text.contains("skipped: a/one::no reason at all: no reason given"), "{text}");
        assert!(text.ends_with("== skipped: 2\n"), "{text}");
    }

    #[test]
    fn a_pass_without_the_binary_or_with_part_of_it_is_no_proof_that_a_case_ran() {
        let mut skips = Skips::default();
        skips.pass("all", &ran(&[("a/one", "big\tno model")]));
        skips.pass("fill", &ran(&[("a/two", "")]));
        let part = RanBinary { name: "a/one".into(), is_whole: false, left_out: &[], skips: String::new() };
        skips.pass("part", &[part]);
        assert!(skips.to_string().ends_with("skipped: a/one::big: no model\n== skipped: 1\n"));
    }
    #[test]
    fn a_case_that_is_left_out_is_counted_and_did_not_run() {
        let mut skips = Skips::default();
        skips.pass("bare", &ran(&[("a/one", "long::big\tno model\nsmall\tno model")]));
        let rest =
            RanBinary { name: "a/one".into(), is_whole: true, left_out: &["long::"], skips: String::new() };
        skips.pass("all", &[rest]);
        skips.left_out(1);
        let expected = "   bare: 1 cases skipped that ran in another pass\n   \
                        left to `cargo xtask test --long`: 1 cases\n   \
                        skipped: a/one::long::big: no model\n\
                        == skipped: 1\n";
        assert_eq!(skips.to_string(), expected);
    }
}
