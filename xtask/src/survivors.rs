//! `cargo xtask survivors`: all mutants of whole crates, compiled together, against the tests that come by them.
//!
//! Contract: cargo-mutants lists the mutants of the crates. They are all written into one copy of the repository, each
//! as a branch on a switch, and every test process chooses one of them by an environment variable. Constants are
//! computed without mutants, and what the compiler refuses is left out, with the reason. Everything is under
//! `target/survivors`: the copy and its build outputs, what became of each mutant (`CRATE.jsonl`), and what no test
//! notices (`CRATE.txt`; of a run about a part of the mutants `CRATE-part.txt`, so that the whole list stays). A
//! further run takes outcomes from there, as long as the files of the repository, the compiler and the crates whose
//! tests run are the same. The ledger (`docs/mutants`) names the mutants that no test can tell from the source, with
//! the reason; others that no test notices are an error. A second run at the same time is refused: both would write
//! into the same copy.
//!
//! Cost: some compilations of the crates, one of the tests, each case once alone, and for each mutant a few short
//! processes; for a crate minutes, where building anew for each mutant takes hours or days.

mod cases;
mod copy;
mod crates;
mod judged;
mod list;
mod places;
mod prune;
mod report;
mod results;
mod rewrite;
mod trial;

use crate::workers::{self, lock};
use cases::Cases;
use copy::Copy;
use crates::Workspace;
use indicatif::{ProgressBar, ProgressStyle};
use judged::Judged;
use list::{Mutant, Named};
use report::Settled;
use results::Results;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use trial::Trial;

/// Mutants that a run can have: numbers are from 1, and the switch has room for so many.
const MUTANTS_MAX: usize = (1 << 16) - 1;

/// Options of `xtask survivors`.
#[derive(clap::Args)]
pub struct SurvivorsArguments {
    /// Folders of the crates.
    #[arg(value_name = "CRATE", required = true)]
    folders: Vec<String>,
    /// Run the tests of the crates in these folders [default: of the same crates].
    #[arg(long, value_name = "CRATE", value_delimiter = ',')]
    tests_of: Vec<String>,
    /// Seconds of tests that a mutant is given beyond its first, by what they take without it.
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    budget_s: f64,
    /// Try only mutants of files whose path from the root begins so.
    #[arg(long, value_name = "PREFIX", value_delimiter = ',')]
    files: Vec<String>,
    /// Try only mutants that this file names, such as a list of survivors of an earlier run, wherever they are now.
    #[arg(long, value_name = "FILE")]
    named: Option<PathBuf>,
    /// Try only every so many mutants.
    #[arg(long, value_name = "NUMBER", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    every: u32,
    /// Test processes at a time [default: as many as cores].
    #[arg(long, value_name = "NUMBER")]
    jobs: Option<usize>,
    /// Take nothing from earlier runs.
    #[arg(long)]
    fresh: bool,
    /// The program cargo-mutants, version 27.1.
    #[arg(long, value_name = "PATH", default_value = "cargo-mutants")]
    cargo_mutants: PathBuf,
}

impl SurvivorsArguments {
    /// Whether a run is about a part of the crates' mutants.
    fn is_partial(&self) -> bool {
        !self.files.is_empty() || self.named.is_some() || self.every > 1
    }
}

/// What a run is about.
struct Plan {
    root: PathBuf,
    /// The folder of everything that is written.
    scratch: PathBuf,
    /// What comes after a crate's name in the name of its list.
    list_suffix: &'static str,
    workspace: Workspace,
    /// Folders of the crates that have mutants, and of those whose tests run.
    folders: Vec<String>,
    tests_of: Vec<String>,
    budget: Duration,
    jobs: usize,
    /// Whether outcomes of earlier runs hold.
    keep: bool,
}

impl Plan {
    fn new(arguments: &SurvivorsArguments) -> Result<Plan, Box<dyn Error>> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        let scratch = root.join("target/survivors");
        let folders = names(&arguments.folders);
        let tests_of =
            if arguments.tests_of.is_empty() { folders.clone() } else { names(&arguments.tests_of) };
        let budget = Duration::try_from_secs_f64(arguments.budget_s)
            .map_err(|error| format!("--budget-s {}: {error}", arguments.budget_s))?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = arguments.jobs.unwrap_or(cores);
        let workspace = Workspace::read(&root)?;
        let list_suffix = if arguments.is_partial() { "-part" } else { "" };
        let keep = !arguments.fresh;
        Ok(Plan { root, scratch, list_suffix, workspace, folders, tests_of, budget, jobs, keep })
    }

    /// The results of each crate.
    fn results(&self) -> Result<BTreeMap<&str, Results>, Box<dyn Error>> {
        let compiler = crates::compiler(&self.scratch.join("output"))?;
        let fingerprint = self.workspace.fingerprint(&compiler, &self.tests_of)?;
        let open = |folder: &String| -> Result<Results, Box<dyn Error>> {
            let path = self.scratch.join(format!("{folder}.jsonl"));
            Results::open(&path, fingerprint, self.budget.as_secs_f64(), self.keep)
        };
        self.folders.iter().map(|folder| Ok((folder.as_str(), open(folder)?))).collect()
    }

    /// Settles these mutants, by their numbers.
    fn settle(
        &self,
        mutants: &[(u32, &Mutant)],
        results: &mut BTreeMap<&str, Results>,
    ) -> Result<(), Box<dyn Error>> {
        if mutants.is_empty() {
            return Ok(());
        }
        let (mutated, tested) =
            (self.workspace.packages(&self.folders)?, self.workspace.packages(&self.tests_of)?);
        let copy = Copy::new(&self.root, &self.scratch, &self.folders, mutants)?;
        println!("== compiling");
        let pruned = prune::prune(&copy, mutants, &mutated, &tested)?;
        let cases = Cases::record(pruned.binaries, self.jobs, &self.scratch.join("output"))?;
        let trial = Trial::new(&cases, self.budget);
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
        let bar = progress(tried.len(), "mutants");
        workers::each(self.jobs, tried.len(), |index| {
            let (number, mutant) = tried[index];
            bar.inc(1);
            let outcome = trial.run(*number, mutant).map_err(|error| format!("{}: {error}", mutant.name))?;
            match lock(&results).get_mut(mutant.folder()) {
                Some(results) => results.enter(&mutant.name, outcome).map_err(|error| error.to_string()),
                None => Ok(()),
            }
        })?;
        bar.finish_and_clear();
        Ok(())
    }

    /// Prints the table and what no test notices, and writes the latter. Returns how many of those nobody has judged.
    fn report(&self, mutants: &[Mutant], results: &BTreeMap<&str, Results>) -> Result<usize, Box<dyn Error>> {
        let ledger = results.keys().map(|folder| Ok((*folder, judged::read(&self.root, folder)?)));
        let ledger = ledger.collect::<Result<BTreeMap<&str, String>, Box<dyn Error>>>()?;
        let mut crates: BTreeMap<&str, Settled<'_>> = BTreeMap::new();
        for (folder, text) in &ledger {
            let own = mutants.iter().filter(|mutant| mutant.folder() == *folder);
            let settled = own.filter_map(|mutant| Some((mutant, results[folder].get(&mutant.name)?)));
            let judged = Judged::parse(&format!("docs/mutants/{folder}.txt"), text)?;
            crates.insert(folder, Settled::new(settled, judged));
        }
        println!("\n{}", report::table(&crates));
        for (folder, settled) in &crates {
            let text = report::survivors(settled);
            std::fs::write(self.scratch.join(format!("{folder}{}.txt", self.list_suffix)), &text)?;
            print!("{text}");
            if self.list_suffix.is_empty() {
                print!("{}", report::judged_without_need(settled));
            }
        }
        Ok(crates.values().map(Settled::left).sum())
    }
}

/// Runs the command.
pub fn run(arguments: &SurvivorsArguments) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let plan = Plan::new(arguments)?;
    let named = arguments.named.as_deref().map(named).transpose()?;
    let packages = plan.workspace.packages(&plan.folders)?;
    plan.workspace.packages(&plan.tests_of)?;
    let _alone = alone(&plan.scratch)?;
    std::fs::create_dir_all(plan.scratch.join("output"))?;
    let listed = list::list(&arguments.cargo_mutants, &plan.root, &packages, &plan.scratch.join("output"))?;
    let mutants = chosen(listed, named.as_ref(), arguments)?;
    let mut results = plan.results()?;
    let open = open(&mutants, &results);
    println!("== {} mutants, {} of them settled by earlier runs", mutants.len(), mutants.len() - open.len());
    plan.settle(&open, &mut results)?;
    let left = plan.report(&mutants, &results)?;
    println!("== {} s", started.elapsed().as_secs());
    match left {
        0 => Ok(()),
        left => Err(format!("no test notices {left} mutants, and docs/mutants says nothing of them").into()),
    }
}

/// The lock of what is under `scratch`, as long as the file is open.
fn alone(scratch: &Path) -> Result<File, Box<dyn Error>> {
    std::fs::create_dir_all(scratch)?;
    let lock = File::create(scratch.join("lock"))?;
    lock.try_lock().map_err(|error| format!("another run writes into {}: {error}", scratch.display()))?;
    Ok(lock)
}

/// The mutants that a run is about, of those that are listed.
fn chosen(
    listed: Vec<Mutant>,
    named: Option<&Named>,
    arguments: &SurvivorsArguments,
) -> Result<Vec<Mutant>, String> {
    let is_wanted = |mutant: &Mutant| {
        is_in(&mutant.file, &arguments.files) && named.is_none_or(|named| named.has(mutant))
    };
    let mutants: Vec<Mutant> =
        listed.into_iter().filter(is_wanted).step_by(arguments.every as usize).collect();
    match mutants.len() {
        0..=MUTANTS_MAX => Ok(mutants),
        count => Err(format!("{count} mutants are more than {MUTANTS_MAX}: name fewer crates")),
    }
}

/// The mutants without a result, numbered from 1.
fn open<'a>(mutants: &'a [Mutant], results: &BTreeMap<&str, Results>) -> Vec<(u32, &'a Mutant)> {
    let is_open = |mutant: &&Mutant| {
        results.get(mutant.folder()).is_some_and(|results| results.get(&mutant.name).is_none())
    };
    (1..).zip(mutants.iter().filter(is_open)).collect()
}

/// Whether a file's path begins with one of these; without any, every one is wanted.
fn is_in(file: &str, prefixes: &[String]) -> bool {
    prefixes.is_empty() || prefixes.iter().any(|prefix| file.starts_with(prefix.as_str()))
}

fn named(path: &Path) -> Result<Named, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let named = Named::parse(&text);
    if named.is_empty() {
        return Err(format!(
            "{}: names no mutant; a line names one as FILE:LINE:COLUMN: CHANGE, as the lists of this command do",
            path.display(),
        ));
    }
    Ok(named)
}

/// A bar that shows how many of `count` are done.
fn progress(count: usize, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(count as u64).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len}, {elapsed}") {
        bar.set_style(style);
    }
    bar
}

/// Names of folders as they are written at a prompt, each once.
fn names(folders: &[String]) -> Vec<String> {
    let names: BTreeSet<&str> = folders.iter().map(|folder| folder.trim_end_matches('/')).collect();
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::list::Genre;
    use super::results::Outcome;
    use super::rewrite::tests::mutant;
    use super::*;
    use clap::Parser;
    use zrt_needs::TemporaryFolder;

    /// The options as they are written at a prompt.
    #[derive(Parser)]
    struct Prompt {
        #[command(flatten)]
        arguments: SurvivorsArguments,
    }

    /// A run about these crates of a repository that has these files.
    fn plan(folder: &TemporaryFolder, folders: &[&str], files: &[(&str, &str)]) -> Plan {
        let (root, scratch) = (folder.join("root"), folder.join("scratch"));
        std::fs::create_dir_all(scratch.join("output")).unwrap();
        for (file, text) in files {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), text).unwrap();
        }
        let workspace = crates::tests::workspace(&root);
        let folders = names(&folders.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        let tests_of = folders.clone();
        let budget = Duration::from_secs(60);
        Plan { root, scratch, list_suffix: "", workspace, folders, tests_of, budget, jobs: 1, keep: true }
    }

    #[test]
    fn a_budget_that_is_no_time_is_refused() {
        let prompt = Prompt::parse_from(["survivors", "mem", "--budget-s=-1"]);
        let error = run(&prompt.arguments).unwrap_err().to_string();
        assert!(error.starts_with("--budget-s -1: "), "{error}");
    }

    #[test]
    fn each_crate_has_its_results_as_long_as_no_file_changes() {
        let folder = TemporaryFolder::new("plan-results");
        let mut plan = plan(&folder, &["ring", "mem"], &[("mem/src/a.rs", "first")]);
        let kept = |plan: &Plan| {
            let results = plan.results().unwrap();
            assert!(results.keys().eq(&["mem", "ring"]));
            ["mem", "ring"].map(|folder| results[folder].get("a").cloned())
        };
        let enter = |plan: &Plan| {
            plan.results().unwrap().get_mut("ring").unwrap().enter("a", Outcome::Survived).unwrap();
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
    fn earlier_outcomes_hold_unless_the_run_is_to_be_fresh_and_a_part_has_a_list_of_its_own() {
        let plan = |options: &[&str]| {
            let plan = Plan::new(&Prompt::parse_from(options).arguments).unwrap();
            (plan.keep, plan.list_suffix)
        };
        assert_eq!(plan(&["survivors", "mem"]), (true, ""));
        assert_eq!(plan(&["survivors", "mem", "--fresh"]), (false, ""));
        assert_eq!(plan(&["survivors", "mem", "--every=2"]), (true, "-part"));
    }

    #[test]
    fn mutants_without_a_result_are_numbered_from_one() {
        let folder = TemporaryFolder::new("plan-open");
        let plan = plan(&folder, &["mem"], &[("mem/src/a.rs", "")]);
        let mut results = plan.results().unwrap();
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
        let mut results = all.results().unwrap();
        for (mutant, outcome) in mutants.iter().zip([Outcome::Survived, Outcome::Unreached]) {
            results.get_mut(mutant.folder()).unwrap().enter(&mutant.name, outcome).unwrap();
        }
        let ledger = all.root.join("docs/mutants");
        std::fs::create_dir_all(&ledger).unwrap();
        std::fs::write(ledger.join("ring.txt"), "# constant: x\nring/src/c.rs:1:1: replace + with -\n")
            .unwrap();
        assert_eq!(all.report(&mutants, &results).unwrap(), 2);
        let written = |name| std::fs::read_to_string(all.scratch.join(name)).unwrap();
        let line = "mem/src/a.rs:1:1: replace + with - in f";
        assert_eq!(written("mem.txt"), format!("# survived: all tests that come by pass (1)\n{line}\n"));
        let line = "ring/src/b.rs:1:1: replace + with - in f";
        assert_eq!(written("ring.txt"), format!("# unreached: no test comes by (1)\n{line}\n"));
        // A run about a part leaves the whole list as it is.
        let part = Plan { list_suffix: "-part", ..plan(&folder, &["mem", "ring"], &[]) };
        assert_eq!(part.report(&mutants[1..], &results).unwrap(), 1);
        assert_eq!(written("mem-part.txt"), "");
        assert_eq!(written("ring-part.txt"), written("ring.txt"));
        assert_ne!(written("mem.txt"), "");
        // What the ledger has a reason for is not left.
        std::fs::write(ledger.join("mem.txt"), "# equivalent: x\nmem/src/a.rs:2:2: replace + with - in f\n")
            .unwrap();
        assert_eq!(all.report(&mutants, &results).unwrap(), 1);
        assert_eq!(written("mem.txt"), "");
        std::fs::write(ledger.join("mem.txt"), "nothing").unwrap();
        let error = all.report(&mutants, &results).unwrap_err().to_string();
        assert!(error.starts_with("docs/mutants/mem.txt:1: "), "{error}");
    }

    /// Everything but the list: the copy, cargo, the cases and the trials, for a crate with one test.
    #[test]
    fn each_mutant_of_a_crate_is_settled() {
        const SOURCE: &str = "\
pub fn sum(a: u8, b: u8) -> u8 { a + b }
pub fn is_more(a: u8) -> bool { a > 1 }
pub fn alone() -> u8 { 7 }
#[test]
fn sums() { assert_eq!(sum(2, 3), 5); assert!(is_more(2)); }
";
        let manifest = "[package]\nname = \"zrt-mem\"\nedition = \"2024\"\n[lib]\npath = \"src/a.rs\"\n";
        let folder = TemporaryFolder::new("plan-settle");
        let files = [
            ("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"mem\"]\n"),
            ("mem/Cargo.toml", manifest),
            ("mem/src/a.rs", SOURCE),
        ];
        let plan = plan(&folder, &["mem"], &files);
        let mutants = [
            mutant(SOURCE, Genre::BinaryOperator, "+ b", "-"),
            mutant(SOURCE, Genre::BinaryOperator, "> 1", ">="),
            mutant(SOURCE, Genre::FnValue, "7", "1"),
            mutant(SOURCE, Genre::FnValue, "a > 1", "String::new()"),
        ];
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(&mutants).collect();
        let mut results = plan.results().unwrap();
        plan.settle(&numbered, &mut results).unwrap();
        let outcomes = mutants.each_ref().map(|mutant| results["mem"].get(&mutant.name).cloned());
        let expected = [
            Outcome::Killed { test: "mem/zrt_mem sums".into() },
            Outcome::Survived,
            Outcome::Unreached,
            Outcome::Unviable { reason: "mismatched types".into() },
        ];
        assert_eq!(outcomes, expected.map(Some));
    }

    #[test]
    fn the_switch_has_room_for_as_many_mutants_as_a_run_can_have() {
        assert!(copy::SWITCH.contains("const NUMBERS_MAX: usize = 1 << 16;"));
        assert_eq!(MUTANTS_MAX + 1, 1 << 16);
    }

    #[test]
    fn files_are_chosen_by_how_their_path_begins() {
        let prefixes = ["vgpu/src/check/".to_owned(), "vgpu/src/simd".to_owned()];
        assert!(is_in("vgpu/src/check/wave.rs", &prefixes) && is_in("vgpu/src/simd.rs", &prefixes));
        assert!(!is_in("vgpu/src/checks.rs", &prefixes));
        assert!(is_in("vgpu/src/checks.rs", &[]));
    }

    /// Mutants of a file, by their numbers.
    fn mutants(file: &str, numbers: std::ops::Range<usize>) -> Vec<Mutant> {
        let mutant = |number| Mutant {
            name: format!("{file}:1:1: change {number}"),
            file: file.to_owned(),
            function: None,
            genre: list::Genre::BinaryOperator,
            replacement: String::new(),
            extent: list::Extent { start: list::Position { line: 1, column: 1 } },
        };
        numbers.map(mutant).collect()
    }

    #[test]
    fn a_run_is_about_what_its_options_leave() {
        let folder = zrt_needs::TemporaryFolder::new("chosen");
        let list = folder.join("list");
        std::fs::write(&list, "a.rs:7:7: change 1\nb.rs:7:7: change 0\n").unwrap();
        let of = |listed, files: &[&str], named: bool, every| {
            let arguments = SurvivorsArguments {
                folders: Vec::new(),
                tests_of: Vec::new(),
                budget_s: 1.0,
                files: files.iter().map(|file| (*file).to_owned()).collect(),
                named: named.then(|| list.clone()),
                every,
                jobs: None,
                fresh: false,
                cargo_mutants: PathBuf::new(),
            };
            assert_eq!(arguments.is_partial(), named || !files.is_empty() || every > 1);
            chosen(listed, named.then(|| super::named(&list).unwrap()).as_ref(), &arguments)
        };
        let both = || [mutants("a.rs", 0..3), mutants("b.rs", 0..3)].concat();
        let names = |files: &[&str], named, every| -> Vec<String> {
            let changes = of(both(), files, named, every).unwrap();
            changes.into_iter().map(|one| one.name.replace(":1:1: change", "")).collect()
        };
        assert_eq!(names(&[], false, 1).len(), 6);
        assert_eq!(names(&["b"], false, 1), ["b.rs 0", "b.rs 1", "b.rs 2"]);
        assert_eq!(names(&[], true, 1), ["a.rs 1", "b.rs 0"]);
        assert_eq!(names(&["a"], true, 1), ["a.rs 1"]);
        assert_eq!(names(&[], false, 4), ["a.rs 0", "b.rs 1"]);
        let count = |count| of(mutants("a.rs", 0..count), &[], false, 1).map(|chosen| chosen.len());
        assert_eq!(count(65_535), Ok(65_535));
        assert_eq!(count(65_536), Err("65536 mutants are more than 65535: name fewer crates".to_owned()));
    }

    #[test]
    fn a_file_that_is_missing_or_names_no_mutant_is_refused_before_anything_is_listed() {
        let folder = TemporaryFolder::new("named");
        let list = folder.join("list");
        let refusal = || {
            let option = format!("--named={}", list.display());
            let prompt = Prompt::parse_from(["survivors", "mem", "--cargo-mutants=none", &option]);
            run(&prompt.arguments).unwrap_err().to_string()
        };
        let path = list.display().to_string();
        assert!(refusal().starts_with(&format!("{path}: No such file")), "{}", refusal());
        std::fs::write(&list, "# survived: all tests that come by pass (0)\n").unwrap();
        assert!(refusal().starts_with(&format!("{path}: names no mutant;")), "{}", refusal());
    }

    #[test]
    fn a_second_run_at_the_same_time_is_refused() {
        let folder = TemporaryFolder::new("alone");
        let scratch = folder.join("scratch");
        let first = alone(&scratch).unwrap();
        let error = alone(&scratch).unwrap_err().to_string();
        assert!(error.starts_with(&format!("another run writes into {}: ", scratch.display())), "{error}");
        drop(first);
        // A child of another case has the file too, until it has become another program.
        let deadline = Instant::now() + Duration::from_secs(60);
        while let Err(error) = alone(&scratch) {
            assert!(Instant::now() < deadline, "{error}");
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_folder_may_end_in_a_slash_and_counts_once() {
        assert_eq!(names(&["pm4/".into(), "mem".into(), "pm4".into()]), ["mem", "pm4"]);
    }
}
