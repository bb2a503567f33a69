//! Crates whose mutants are compiled together: the way of their mutants from the list to the table.
//!
//! Contract: a mutant that an earlier run has settled is not tried again, as long as what its outcome depends on is the
//! same. Each outcome is kept at once, so a run that is ended loses none.

use super::alone::Alone;
use super::cases::Cases;
use super::copy::Copy;
use super::crates::{self, Workspace};
use super::judged::{self, Judged};
use super::list::{Mutant, Named};
use super::prune;
use super::report::{self, Column, Counts, Settled};
use super::results::Results;
use super::trial::Trial;
use crate::workers::{self, lock};
use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;

/// What is compiled together, and how it is tried.
pub struct Plan {
    pub root: PathBuf,
    /// The folder of everything that is written.
    pub scratch: PathBuf,
    /// What comes after a crate's name in the name of its list.
    pub list_suffix: &'static str,
    pub workspace: Workspace,
    /// Folders of the crates that have mutants, and of those whose tests run.
    pub folders: Vec<String>,
    pub tests_of: Vec<String>,
    pub budget: Budget,
    pub jobs: usize,
    /// Whether outcomes of earlier runs hold.
    pub keep: bool,
    /// Whether what the switch cannot choose is compiled alone.
    pub alone: bool,
}

/// The time of tests that a mutant is given beyond its first, by what they take without it.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// For one that the ledger judges: no test is expected to notice it.
    pub judged: Duration,
    /// For all others. Most are noticed long before.
    pub other: Duration,
}

impl Budget {
    /// What the mutant of this name is given, where the ledger judges these.
    fn of(&self, name: &str, judged: &Named) -> Duration {
        if judged.has(name) { self.judged } else { self.other }
    }
}

impl Plan {
    /// The packages that have mutants.
    pub fn packages(&self) -> Result<Vec<&str>, String> {
        self.workspace.packages(&self.folders)
    }

    /// Tries those of these mutants that are not settled, and reports. Returns the rows of the table.
    pub fn run(&self, mutants: &[Mutant]) -> Result<BTreeMap<String, Counts>, Box<dyn Error>> {
        let ledger = self.ledger()?;
        let judged = Named::parse(&ledger.values().map(String::as_str).collect::<Vec<_>>().join("\n"));
        let mut results = self.results(&judged)?;
        let open = open(mutants, &results);
        println!(
            "== {} mutants, {} of them settled by earlier runs",
            mutants.len(),
            mutants.len() - open.len()
        );
        self.settle(&open, &judged, &mut results)?;
        let mut alone = self.results_alone()?;
        if self.alone {
            let settled = self.settled(mutants, &ledger, &results, &alone)?;
            for (folder, settled) in &settled {
                let wanted: Vec<&Mutant> = settled.only_alone().collect();
                self.settle_alone(folder, &wanted, &mut alone)?;
            }
        }
        self.report(&self.settled(mutants, &ledger, &results, &alone)?)
    }

    /// The results of each crate, of which the ledger judges these.
    fn results(&self, judged: &Named) -> Result<BTreeMap<&str, Results>, Box<dyn Error>> {
        let budget = |name: &str| self.budget.of(name, judged);
        let open = |folder: &'_ String| self.open(&format!("{folder}.jsonl"), &self.tests_of, budget);
        self.folders.iter().map(|folder| Ok((folder.as_str(), open(folder)?))).collect()
    }

    /// Those of mutants that were compiled alone, with the tests of their crates.
    fn results_alone(&self) -> Result<BTreeMap<&str, Results>, Box<dyn Error>> {
        let open = |folder: &String| {
            let name = format!("{folder}-alone.jsonl");
            self.open(&name, std::slice::from_ref(folder), |_| self.budget.other)
        };
        self.folders.iter().map(|folder| Ok((folder.as_str(), open(folder)?))).collect()
    }

    fn open(
        &self,
        name: &str,
        tests_of: &[String],
        budget: impl Fn(&str) -> Duration,
    ) -> Result<Results, Box<dyn Error>> {
        let compiler = crates::compiler(&self.scratch.join("output"))?;
        let fingerprint = self.workspace.fingerprint(&compiler, tests_of)?;
        let budget_s = |name: &str| budget(name).as_secs_f64();
        Results::open(&self.scratch.join(name), fingerprint, self.keep, budget_s)
    }

    /// Settles these mutants, by their numbers. The ledger judges some of them.
    fn settle(
        &self,
        mutants: &[(u32, &Mutant)],
        judged: &Named,
        results: &mut BTreeMap<&str, Results>,
    ) -> Result<(), Box<dyn Error>> {
        if mutants.is_empty() {
            return Ok(());
        }
        let (mutated, tested) = (self.packages()?, self.workspace.packages(&self.tests_of)?);
        let copy = Copy::new(&self.root, &self.scratch, &self.folders, mutants)?;
        println!("== compiling");
        let pruned = prune::prune(&copy, mutants, &mutated, &tested)?;
        let cases = Cases::record(pruned.binaries, self.jobs, &self.scratch.join("output"))?;
        let trial = Trial::new(&cases);
        let tried: Vec<&(u32, &Mutant)> =
            mutants.iter().filter(|(number, _)| !pruned.left_out.contains_key(number)).collect();
        for (number, mutant) in mutants {
            if let (Some(outcome), Some(results)) =
                (pruned.left_out.get(number), results.get_mut(mutant.folder()))
            {
                results.enter(&mutant.name, outcome.clone())?;
            }
        }
        let reached = tried.iter().filter(|(number, _)| trial.is_reached(*number)).count();
        println!("== {} mutants, of which some case comes by {reached}", tried.len());
        let results = Mutex::new(results);
        let bar = super::progress(tried.len(), "mutants");
        workers::each(self.jobs, tried.len(), |index| {
            let (number, mutant) = tried[index];
            bar.inc(1);
            let budget = self.budget.of(&mutant.name, judged);
            let outcome =
                trial.run(*number, mutant, budget).map_err(|error| format!("{}: {error}", mutant.name))?;
            match lock(&results).get_mut(mutant.folder()) {
                Some(results) => results.enter(&mutant.name, outcome).map_err(|error| error.to_string()),
                None => Ok(()),
            }
        })?;
        bar.finish_and_clear();
        Ok(())
    }

    /// Settles mutants of a crate by compiling each alone.
    fn settle_alone(
        &self,
        folder: &str,
        mutants: &[&Mutant],
        results: &mut BTreeMap<&str, Results>,
    ) -> Result<(), Box<dyn Error>> {
        let (Some(results), false) = (results.get_mut(folder), mutants.is_empty()) else { return Ok(()) };
        println!("== {} mutants of {folder}, each compiled alone", mutants.len());
        let packages = self.workspace.packages(&[folder.to_owned()])?;
        let scratch = self.scratch.join("alone");
        let alone = Alone::new(&self.root, &scratch, packages[0], self.jobs, self.budget.other)?;
        let bar = super::progress(mutants.len(), "mutants");
        for mutant in mutants {
            bar.inc(1);
            results.enter(&mutant.name, alone.run(mutant)?)?;
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// The text of each crate's file in the ledger.
    fn ledger(&self) -> Result<BTreeMap<&str, String>, Box<dyn Error>> {
        self.folders.iter().map(|folder| Ok((folder.as_str(), judged::read(&self.root, folder)?))).collect()
    }

    /// The mutants of each crate with what became of them.
    fn settled<'a>(
        &self,
        mutants: &'a [Mutant],
        ledger: &'a BTreeMap<&str, String>,
        results: &'a BTreeMap<&str, Results>,
        alone: &BTreeMap<&str, Results>,
    ) -> Result<BTreeMap<&'a str, Settled<'a>>, String> {
        let settled = |(folder, text): (&&'a str, &'a String)| {
            let own = mutants.iter().filter(|mutant| mutant.folder() == *folder);
            let outcomes = own.filter_map(|mutant| Some((mutant, results[folder].get(&mutant.name)?)));
            let alone =
                |mutant: &Mutant| -> Option<Column> { alone[folder].get(&mutant.name).map(report::column) };
            let judged = Judged::parse(&format!("docs/mutants/{folder}.txt"), text)?;
            Ok((*folder, Settled::new(outcomes, alone, judged)))
        };
        ledger.iter().map(settled).collect()
    }

    /// Prints the table and what no test notices, and writes the latter. Returns the rows of the table.
    fn report(
        &self,
        crates: &BTreeMap<&str, Settled<'_>>,
    ) -> Result<BTreeMap<String, Counts>, Box<dyn Error>> {
        let counts =
            crates.iter().map(|(folder, settled)| ((*folder).to_owned(), settled.counts())).collect();
        println!("\n{}", report::table(&counts));
        for (folder, settled) in crates {
            let text = report::survivors(settled);
            std::fs::write(self.scratch.join(format!("{folder}{}.txt", self.list_suffix)), &text)?;
            print!("{text}");
            if self.list_suffix.is_empty() {
                print!("{}", report::judged_without_need(settled));
            }
        }
        Ok(counts)
    }
}

/// The mutants without a result, numbered from 1.
fn open<'a>(mutants: &'a [Mutant], results: &BTreeMap<&str, Results>) -> Vec<(u32, &'a Mutant)> {
    let is_open = |mutant: &&Mutant| {
        results.get(mutant.folder()).is_some_and(|results| results.get(&mutant.name).is_none())
    };
    (1..).zip(mutants.iter().filter(is_open)).collect()
}

#[cfg(test)]
pub mod tests {
    use super::super::list::{Extent, Genre, Position};
    use super::super::results::Outcome;
    use super::super::rewrite::tests::mutant;
    use super::super::{MUTANTS_MAX, copy, names};
    use super::*;
    use zrt_needs::TemporaryFolder;

    /// A run about these crates of a repository that has these files.
    fn plan(folder: &TemporaryFolder, folders: &[&str], files: &[(&str, &str)]) -> Plan {
        let (root, scratch) = (folder.join("root"), folder.join("scratch"));
        std::fs::create_dir_all(scratch.join("output")).unwrap();
        for (file, text) in files {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), text).unwrap();
        }
        let workspace = crates::tests::workspace(&root);
        let folders = names(folders.iter().copied());
        let tests_of = folders.clone();
        let budget = Budget { judged: Duration::from_secs(1), other: Duration::from_secs(60) };
        Plan {
            root,
            scratch,
            list_suffix: "",
            workspace,
            folders,
            tests_of,
            budget,
            jobs: 1,
            keep: true,
            alone: false,
        }
    }

    #[test]
    fn each_crate_has_its_results_as_long_as_no_file_changes() {
        let folder = TemporaryFolder::new("plan-results");
        let mut plan = plan(&folder, &["ring", "mem"], &[("mem/src/a.rs", "first")]);
        let kept = |plan: &Plan| {
            let results = plan.results(&Named::parse("")).unwrap();
            assert!(results.keys().eq(&["mem", "ring"]));
            ["mem", "ring"].map(|folder| results[folder].get("a").cloned())
        };
        let enter = |plan: &Plan| {
            let mut results = plan.results(&Named::parse("")).unwrap();
            results.get_mut("ring").unwrap().enter("a", Outcome::Survived).unwrap();
        };
        assert_eq!(kept(&plan), [None, None]);
        enter(&plan);
        assert_eq!(kept(&plan), [None, Some(Outcome::Survived)]);
        std::fs::write(plan.root.join("mem/src/a.rs"), "second").unwrap();
        assert_eq!(kept(&plan), [None, None]);
        enter(&plan);
        plan.keep = false;
        assert_eq!(kept(&plan), [None, None]);
    }

    #[test]
    fn what_the_ledger_judges_has_its_own_budget_and_is_tried_again_when_it_judges_it_no_more() {
        let folder = TemporaryFolder::new("plan-budget");
        let plan = plan(&folder, &["mem"], &[("mem/src/a.rs", "")]);
        let name = "mem/src/a.rs:1:1: change 1";
        let (judged, not) = (Named::parse("mem/src/a.rs:7:7: change 1"), Named::parse(""));
        assert_eq!(plan.budget.of(name, &judged), plan.budget.judged);
        assert_eq!(plan.budget.of(name, &not), plan.budget.other);
        let over = Outcome::OverBudget { left_out: 1, budget_s: 1.0 };
        plan.results(&judged).unwrap().get_mut("mem").unwrap().enter(name, over.clone()).unwrap();
        assert_eq!(plan.results(&judged).unwrap()["mem"].get(name), Some(&over));
        assert_eq!(plan.results(&not).unwrap()["mem"].get(name), None);
    }

    /// Mutants of a file, by their numbers.
    pub fn mutants(file: &str, numbers: std::ops::Range<usize>) -> Vec<Mutant> {
        let mutant = |number| Mutant {
            name: format!("{file}:1:1: change {number}"),
            file: file.to_owned(),
            function: None,
            genre: Genre::BinaryOperator,
            replacement: String::new(),
            extent: Extent { start: Position { line: 1, column: 1 }, end: Position { line: 1, column: 1 } },
        };
        numbers.map(mutant).collect()
    }

    #[test]
    fn mutants_without_a_result_are_numbered_from_one() {
        let folder = TemporaryFolder::new("plan-open");
        let plan = plan(&folder, &["mem"], &[("mem/src/a.rs", "")]);
        let mut results = plan.results(&Named::parse("")).unwrap();
        results.get_mut("mem").unwrap().enter("mem/src/a.rs:1:1: change 1", Outcome::Survived).unwrap();
        let listed = [mutants("mem/src/a.rs", 0..3), mutants("ring/src/b.rs", 0..1)].concat();
        let open: Vec<(u32, &str)> =
            open(&listed, &results).into_iter().map(|(number, one)| (number, one.name.as_str())).collect();
        assert_eq!(open, [(1, "mem/src/a.rs:1:1: change 0"), (2, "mem/src/a.rs:1:1: change 2")]);
    }

    #[test]
    fn what_no_test_notices_is_written_for_each_crate() {
        let folder = TemporaryFolder::new("plan-report");
        let all = plan(&folder, &["mem", "ring"], &[("mem/src/a.rs", "")]);
        let mutants = ["mem/src/a.rs", "ring/src/b.rs"].map(|file| Mutant {
            name: format!("{file}:1:1: replace + with - in f"),
            file: file.into(),
            ..mutant("+", Genre::BinaryOperator, "+", "-")
        });
        let mut results = all.results(&Named::parse("")).unwrap();
        for (mutant, outcome) in mutants.iter().zip([Outcome::Survived, Outcome::Unreached]) {
            results.get_mut(mutant.folder()).unwrap().enter(&mutant.name, outcome).unwrap();
        }
        let ledger = all.root.join("docs/mutants");
        std::fs::create_dir_all(&ledger).unwrap();
        std::fs::write(ledger.join("ring.txt"), "# constant: x\nring/src/c.rs:1:1: replace + with -\n")
            .unwrap();
        let reported = |plan: &Plan, mutants: &[Mutant]| {
            let (ledger, alone) = (plan.ledger()?, plan.results_alone()?);
            plan.report(&plan.settled(mutants, &ledger, &results, &alone)?)
        };
        let left = |plan: &Plan, mutants: &[Mutant]| -> usize {
            reported(plan, mutants).unwrap().values().map(Counts::left).sum()
        };
        assert_eq!(left(&all, &mutants), 2);
        let written = |name| std::fs::read_to_string(all.scratch.join(name)).unwrap();
        let line = "mem/src/a.rs:1:1: replace + with - in f";
        assert_eq!(written("mem.txt"), format!("# survived: all tests that come by pass (1)\n{line}\n"));
        let line = "ring/src/b.rs:1:1: replace + with - in f";
        assert_eq!(written("ring.txt"), format!("# unreached: no test comes by (1)\n{line}\n"));
        // A run about a part leaves the whole list as it is.
        let part = Plan { list_suffix: "-part", ..plan(&folder, &["mem", "ring"], &[]) };
        assert_eq!(left(&part, &mutants[1..]), 1);
        assert_eq!(written("mem-part.txt"), "");
        assert_eq!(written("ring-part.txt"), written("ring.txt"));
        assert_ne!(written("mem.txt"), "");
        // What the ledger has a reason for is not left.
        std::fs::write(ledger.join("mem.txt"), "# equivalent: x\nmem/src/a.rs:2:2: replace + with - in f\n")
            .unwrap();
        assert_eq!(left(&all, &mutants), 1);
        assert_eq!(written("mem.txt"), "");
        // A constant that was compiled alone is what it was then.
        let constant = "# constant: x\nmem/src/a.rs:2:2: replace + with - in f\n";
        std::fs::write(ledger.join("mem.txt"), constant).unwrap();
        let cells = || reported(&all, &mutants).unwrap()["mem"];
        let (before, mut alone) = (cells(), all.results_alone().unwrap());
        assert_eq!(before.left(), 0);
        alone.get_mut("mem").unwrap().enter(&mutants[0].name, Outcome::Survived).unwrap();
        assert_eq!(cells().left(), 1);
        std::fs::write(ledger.join("mem.txt"), "nothing").unwrap();
        let error = reported(&all, &mutants).unwrap_err().to_string();
        assert!(error.starts_with("docs/mutants/mem.txt:1: "), "{error}");
    }

    /// Everything but the list: the copy, cargo, the cases and the trials, for a crate with one test.
    #[test]
    fn each_mutant_of_a_crate_is_settled() {
        const SOURCE: &str = "\
pub fn sum(a: u8, b: u8) -> u8 { a + b }
pub fn is_more(a: u8) -> bool { a > 1 }
pub fn is_less(a: u8) -> bool { a < 9 }
pub fn alone() -> u8 { 7 }
#[test]
fn sums() { assert_eq!(sum(2, 3), 5); assert!(is_more(2) && is_less(2)); }
#[test]
fn compares() { assert!(is_more(2) && is_less(2)); }
";
        let manifest = "[package]\nname = \"zrt-mem\"\nedition = \"2024\"\n[lib]\npath = \"src/a.rs\"\n";
        let folder = TemporaryFolder::new("plan-settle");
        let files = [
            ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"mem\"]\n"),
            ("mem/Cargo.toml", manifest),
            ("mem/src/a.rs", SOURCE),
        ];
        let mut plan = plan(&folder, &["mem"], &files);
        plan.budget.judged = Duration::ZERO;
        let mutants = [
            mutant(SOURCE, Genre::BinaryOperator, "+ b", "-"),
            Mutant {
                name: "mem/src/a.rs:2:35: replace > with >=".into(),
                ..mutant(SOURCE, Genre::BinaryOperator, "> 1", ">=")
            },
            mutant(SOURCE, Genre::BinaryOperator, "< 9", "<="),
            mutant(SOURCE, Genre::FnValue, "7", "1"),
            mutant(SOURCE, Genre::FnValue, "a > 1", "String::new()"),
        ];
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(&mutants).collect();
        let mut results = plan.results(&Named::parse("")).unwrap();
        let judged = Named::parse(&mutants[1].name);
        plan.settle(&numbered, &judged, &mut results).unwrap();
        let outcomes = mutants.each_ref().map(|mutant| results["mem"].get(&mutant.name).cloned());
        let expected = [
            Outcome::Killed { test: "mem/zrt_mem sums".into() },
            Outcome::OverBudget { left_out: 1, budget_s: 0.0 },
            Outcome::Survived,
            Outcome::Unreached,
            Outcome::Unviable { reason: "mismatched types".into() },
        ];
        assert_eq!(outcomes, expected.map(Some));
    }

    /// Everything but the list, for a constant.
    #[test]
    fn a_constant_is_settled_alone_if_that_is_asked_for() {
        const SOURCE: &str = "\
pub const LIMIT: u8 = 3 << 1;
#[test]
fn limits() { assert_eq!(LIMIT, 6); }
";
        let name = "mem/src/a.rs:1:25: replace << with >>";
        let constant = format!("# constant: x\n{name}\n");
        let manifest = "[package]\nname = \"zrt-mem\"\nedition = \"2024\"\n[lib]\npath = \"src/a.rs\"\n";
        let folder = TemporaryFolder::new("plan-alone");
        std::fs::create_dir_all(folder.join("root/docs/mutants")).unwrap();
        let files = [
            ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"mem\"]\n"),
            ("mem/Cargo.toml", manifest),
            ("mem/src/a.rs", SOURCE),
            ("docs/mutants/mem.txt", constant.as_str()),
        ];
        let mut plan = plan(&folder, &["mem"], &files);
        let listed = [Mutant {
            name: name.into(),
            file: "mem/src/a.rs".into(),
            ..mutant(SOURCE, Genre::BinaryOperator, "<<", ">>")
        }];
        plan.run(&listed).unwrap();
        assert!(plan.results_alone().unwrap()["mem"].get(name).is_none());
        plan.alone = true;
        plan.run(&listed).unwrap();
        let killed = Outcome::Killed { test: "mem/zrt_mem limits".into() };
        assert_eq!(plan.results_alone().unwrap()["mem"].get(name), Some(&killed));
        // What is settled is not compiled again: without its crate it could not be.
        std::fs::remove_dir_all(folder.join("scratch/alone")).unwrap();
        plan.run(&listed).unwrap();
        assert!(!folder.join("scratch/alone").exists());
    }

    #[test]
    fn the_switch_has_room_for_as_many_mutants_as_a_run_can_have() {
        assert!(copy::SWITCH.contains("const NUMBERS_MAX: usize = 1 << 16;"));
        assert_eq!(MUTANTS_MAX + 1, 1 << 16);
    }
}
