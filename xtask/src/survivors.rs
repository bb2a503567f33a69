//! `cargo xtask survivors`: all mutants of whole crates, compiled together, against the tests that come by them.
//!
//! Contract: cargo-mutants lists the mutants of the crates. They are all written into one copy of the repository, each
//! as a branch on a switch, and every test process chooses one of them by an environment variable. Constants are
//! computed without mutants, and what the compiler refuses is left out, with the reason. Everything is under
//! `target/survivors`: the copy and its build outputs, what became of each mutant (`CRATE.jsonl`), and what no test
//! notices (`CRATE.txt`; of a run about a part of the mutants `CRATE-part.txt`, so that the whole list stays). A
//! further run takes outcomes from there, as long as the files of the repository, the compiler and the crates whose
//! tests run are the same. The ledger (`docs/mutants`) names the mutants that no test can tell from the source, with
//! the reason; others that no test notices are an error. Without a crate at the prompt all are tried, group after group
//! (`whole.rs`), and one table is printed at the end. A second run at the same time is refused: both would write into
//! the same copy.
//!
//! Cost: some compilations of the crates, one of the tests, each case once alone, and for each mutant a few short
//! processes; for a crate minutes, where building anew for each mutant takes hours or days.

mod alone;
mod cases;
mod compile;
mod copy;
mod crates;
mod judged;
mod list;
mod places;
mod plan;
mod prune;
mod report;
mod results;
mod rewrite;
mod trial;
mod whole;

use crates::Workspace;
use indicatif::{ProgressBar, ProgressStyle};
use list::{Mutant, Named};
use plan::{Budget, Plan};
use report::Counts;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use whole::{GROUPS, Group};

/// Mutants that a run can have: numbers are from 1, and the switch has room for so many.
const MUTANTS_MAX: usize = (1 << 16) - 1;

/// Options of `xtask survivors`.
#[derive(clap::Args)]
pub struct SurvivorsArguments {
    /// Folders of the crates, which are compiled together [default: all crates, in groups].
    #[arg(value_name = "CRATE")]
    folders: Vec<String>,
    /// Run the tests of the crates in these folders [default: of the same crates].
    #[arg(long, value_name = "CRATE", value_delimiter = ',', requires = "folders")]
    tests_of: Vec<String>,
    /// Seconds of tests that a mutant is given beyond its first, by what they take without it.
    #[arg(long, value_name = "SECONDS", default_value = "60")]
    budget_s: f64,
    /// The same for a mutant that the ledger judges: no test is expected to notice it.
    #[arg(long, value_name = "SECONDS", default_value = "2")]
    budget_judged_s: f64,
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
    /// Compile each mutant alone that cannot be chosen when the tests run: constants, and what was not placed.
    #[arg(long)]
    alone: bool,
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

/// Runs the command.
pub fn run(arguments: &SurvivorsArguments) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
    let scratch = root.join("target/survivors");
    let plans = plans(arguments, &root, &scratch)?;
    let named = arguments.named.as_deref().map(named).transpose()?;
    let _alone = alone(&scratch)?;
    std::fs::create_dir_all(scratch.join("output"))?;
    let mut crates = BTreeMap::new();
    for plan in &plans {
        println!("== {}", plan.folders.join(", "));
        let listed = list::list(&arguments.cargo_mutants, &root, &plan.packages()?, &scratch.join("output"))?;
        crates.extend(plan.run(&chosen(listed, named.as_ref(), arguments)?)?);
    }
    print!("{}", of_all(plans.len(), &crates));
    println!("== {} s", started.elapsed().as_secs());
    match crates.values().map(Counts::left).sum() {
        0_usize => Ok(()),
        left => Err(format!("no test notices {left} mutants, and docs/mutants says nothing of them").into()),
    }
}

/// A plan for the crates at the prompt; without any, one for each group of the workspace.
fn plans(arguments: &SurvivorsArguments, root: &Path, scratch: &Path) -> Result<Vec<Plan>, Box<dyn Error>> {
    let workspace = Workspace::read(root)?;
    let budget = Budget {
        judged: seconds("--budget-judged-s", arguments.budget_judged_s)?,
        other: seconds("--budget-s", arguments.budget_s)?,
    };
    let plan = |folders: Vec<String>, tests_of: Vec<String>| {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        workspace.packages(&folders)?;
        workspace.packages(&tests_of)?;
        Ok(Plan {
            root: root.to_owned(),
            scratch: scratch.to_owned(),
            list_suffix: if arguments.is_partial() { "-part" } else { "" },
            workspace: workspace.clone(),
            folders,
            tests_of,
            budget,
            jobs: arguments.jobs.unwrap_or(cores),
            keep: !arguments.fresh,
            alone: arguments.alone,
        })
    };
    let of_group = |group: &Group| plan(names(group.folders.iter().copied()), names(group.tests_of()));
    if arguments.folders.is_empty() {
        return GROUPS.iter().map(of_group).collect();
    }
    let folders = names(arguments.folders.iter().map(String::as_str));
    let tests_of = names(arguments.tests_of.iter().map(String::as_str));
    let tests_of = if tests_of.is_empty() { folders.clone() } else { tests_of };
    Ok(vec![plan(folders, tests_of)?])
}

fn seconds(option: &str, seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{option} {seconds}: {error}"))
}

/// The table of all crates; nothing if one plan has printed it.
fn of_all(plans: usize, crates: &BTreeMap<String, Counts>) -> String {
    match plans {
        0 | 1 => String::new(),
        _ => format!("== all crates\n\n{}\n", report::table(crates)),
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
        is_in(&mutant.file, &arguments.files) && named.is_none_or(|named| named.has(&mutant.name))
    };
    let mutants: Vec<Mutant> =
        listed.into_iter().filter(is_wanted).step_by(arguments.every as usize).collect();
    match mutants.len() {
        0..=MUTANTS_MAX => Ok(mutants),
        count => Err(format!("{count} mutants are more than {MUTANTS_MAX}: name fewer crates")),
    }
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
fn names<'a>(folders: impl Iterator<Item = &'a str>) -> Vec<String> {
    let names: BTreeSet<&str> = folders.map(|folder| folder.trim_end_matches('/')).collect();
    names.into_iter().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::plan::tests::mutants;
    use super::*;
    use clap::Parser;
    use zrt_needs::TemporaryFolder;

    /// The options as they are written at a prompt.
    #[derive(Parser)]
    struct Prompt {
        #[command(flatten)]
        arguments: SurvivorsArguments,
    }

    #[test]
    fn a_budget_that_is_no_time_is_refused() {
        for option in ["--budget-s", "--budget-judged-s"] {
            let prompt = Prompt::parse_from(["survivors", "mem", &format!("{option}=-1")]);
            let error = run(&prompt.arguments).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{option} -1: ")), "{error}");
        }
    }

    /// The plans of a prompt, for this repository.
    fn plans_of(options: &[&str]) -> Vec<Plan> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
        plans(&Prompt::parse_from(options).arguments, &root, Path::new("scratch")).unwrap()
    }

    #[test]
    fn earlier_outcomes_hold_unless_the_run_is_to_be_fresh_and_a_part_has_a_list_of_its_own() {
        let plan = |options: &[&str]| {
            let plans = plans_of(options);
            assert_eq!(plans.len(), 1);
            (plans[0].keep, plans[0].list_suffix)
        };
        assert_eq!(plan(&["survivors", "mem"]), (true, ""));
        assert_eq!(plan(&["survivors", "mem", "--fresh"]), (false, ""));
        assert_eq!(plan(&["survivors", "mem", "--every=2"]), (true, "-part"));
    }

    #[test]
    fn named_crates_are_one_plan_and_otherwise_each_group_is() {
        let named = plans_of(&["survivors", "ring", "mem", "--tests-of=mem,kmd"]);
        assert_eq!(named.len(), 1);
        assert_eq!(
            (named[0].folders.join(","), named[0].tests_of.join(",")),
            ("mem,ring".into(), "kmd,mem".into())
        );
        assert_eq!(named[0].packages().unwrap(), ["zrt-mem", "zrt-ring"]);
        assert_eq!((named[0].budget.other.as_secs(), named[0].budget.judged.as_secs()), (60, 2));
        assert_eq!(plans_of(&["survivors", "ring"])[0].tests_of, ["ring"]);
        let all = plans_of(&["survivors"]);
        assert_eq!(all.len(), GROUPS.len());
        for (plan, group) in all.iter().zip(&GROUPS) {
            assert_eq!(plan.folders, group.folders);
            assert_eq!(plan.tests_of, names(group.tests_of()));
        }
        let given = &plans_of(&["survivors", "--budget-s=3", "--budget-judged-s=1"])[8].budget;
        assert_eq!((given.other.as_secs(), given.judged.as_secs()), (3, 1));
        let error = Prompt::try_parse_from(["survivors", "--tests-of=mem"]).map(|_| ()).unwrap_err();
        assert_eq!(error.kind(), clap::error::ErrorKind::MissingRequiredArgument);
    }

    #[test]
    fn files_are_chosen_by_how_their_path_begins() {
        let prefixes = ["vgpu/src/check/".to_owned(), "vgpu/src/simd".to_owned()];
        assert!(is_in("vgpu/src/check/wave.rs", &prefixes) && is_in("vgpu/src/simd.rs", &prefixes));
        assert!(!is_in("vgpu/src/checks.rs", &prefixes));
        assert!(is_in("vgpu/src/checks.rs", &[]));
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
                budget_s: 0.0,
                budget_judged_s: 0.0,
                files: files.iter().map(|file| (*file).to_owned()).collect(),
                named: named.then(|| list.clone()),
                every,
                jobs: None,
                fresh: false,
                alone: false,
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
    fn the_table_of_several_plans_has_all_crates() {
        let crates = BTreeMap::from(["mem", "ring"].map(|name| (name.to_owned(), Counts::default())));
        assert_eq!([of_all(0, &crates), of_all(1, &crates)], ["", ""]);
        let table = of_all(2, &crates);
        assert!(table.contains("| `mem` | 0 |") && table.contains("| all | 0 |"), "{table}");
    }

    #[test]
    fn a_folder_may_end_in_a_slash_and_counts_once() {
        assert_eq!(names(["pm4/", "mem", "pm4"].into_iter()), ["mem", "pm4"]);
    }
}
