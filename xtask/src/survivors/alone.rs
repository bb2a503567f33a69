//! Mutants that the switch cannot choose, each compiled alone.
//!
//! Contract: what is computed when a crate is compiled, and what could not be written beside the others, is written
//! into a copy of its own, one mutant at a time and as cargo-mutants writes it. The tests of the mutant's crate are
//! compiled anew and run: first those of its library, some of the mutant's module before all, then those of other
//! binaries, the cheapest first. Groups of cases that do not pass together without a mutant are not used. The file is
//! put back before the next mutant.
//!
//! Cost: for each mutant a compilation of the library's tests, and if they pass of all, seconds to a minute.

use super::cases::{Case, Cases, Switch, Verdict};
use super::compile::Compiled;
use super::list::Mutant;
use super::results::Outcome;
use super::trial::{limit, module, noticed};
use crate::mirror::Mirror;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Longest that a first compilation may take.
const FIRST_LIMIT: Duration = Duration::from_secs(3600);
/// Longest that one with a mutant may take: what the compiler computes then need not come to an end.
const COMPILE_LIMIT: Duration = Duration::from_secs(240);
/// Cases of the mutant's module that run first, each alone.
const NEAR_MAX: usize = 6;
/// Cases in a process.
const GROUP_MAX: usize = 100;

/// A crate whose mutants are tried so.
pub struct Alone {
    mirror: Mirror,
    package: String,
    output: PathBuf,
    budget: Duration,
    cases: Cases,
    /// Cases of one binary each, the cheapest group first.
    groups: Vec<Vec<usize>>,
}

/// What was done with the time of a mutant.
struct Spent {
    left: Duration,
    /// Cases for which it was not enough.
    left_out: usize,
}

impl Alone {
    /// Compiles the tests of a package in a copy below `scratch`, and runs them without a mutant.
    pub fn new(
        root: &Path,
        scratch: &Path,
        package: &str,
        jobs: usize,
        budget: Duration,
    ) -> Result<Alone, Box<dyn Error>> {
        let output = scratch.join("output");
        fs::create_dir_all(&output)?;
        let mirror = Mirror::new(root, scratch)?;
        Alone::in_mirror(mirror, output, package, jobs, budget)
    }

    fn in_mirror(
        mirror: Mirror,
        output: PathBuf,
        package: &str,
        jobs: usize,
        budget: Duration,
    ) -> Result<Alone, Box<dyn Error>> {
        mirror.update(&|_| false)?;
        let cases = Cases { binaries: Vec::new(), cases: Vec::new() };
        let mut alone =
            Alone { mirror, package: package.to_owned(), output, budget, cases, groups: Vec::new() };
        let compiled = alone.compile("--tests", FIRST_LIMIT)?;
        if let Some(failure) = compiled.failure {
            return Err(
                format!("the tests of {package} without a mutant: {failure}: {}", compiled.said).into()
            );
        }
        alone.cases = Cases::record(compiled.binaries(), jobs, &alone.output)?;
        for group in groups(&alone.cases.cases) {
            if alone.look(&group)? == Verdict::Passed {
                alone.groups.push(group);
            } else {
                let binary = alone.cases.binaries[alone.cases.cases[group[0]].binary].name();
                println!("   {} cases of {binary} do not pass together and are not used", group.len());
            }
        }
        Ok(alone)
    }

    /// Writes a mutant into the copy, compiles, and runs cases until some fail. The copy is as before afterwards.
    pub fn run(&self, mutant: &Mutant) -> Result<Outcome, Box<dyn Error>> {
        let source = fs::read_to_string(self.mirror.root.join(&mutant.file))?;
        let path = self.mirror.copy.join(&mutant.file);
        let text = mutant.planted(&source).ok_or_else(|| format!("{}: no such place", mutant.name))?;
        fs::write(&path, text)?;
        let outcome = self.tried(mutant);
        fs::write(&path, source)?;
        outcome
    }

    fn tried(&self, mutant: &Mutant) -> Result<Outcome, Box<dyn Error>> {
        let mut spent = Spent { left: self.budget, left_out: 0 };
        let is_of_library =
            |group: &&Vec<usize>| self.cases.binaries[self.cases.cases[group[0]].binary].is_library;
        let (library, others): (Vec<_>, Vec<_>) = self.groups.iter().partition(is_of_library);
        for (tests, groups) in [("--lib", library), ("--tests", others)] {
            if groups.is_empty() {
                continue;
            }
            let compiled = self.compile(tests, COMPILE_LIMIT)?;
            if let Some(outcome) = refused(mutant, &compiled)? {
                return Ok(outcome);
            }
            let near = self.near(mutant, &groups);
            if let Some(outcome) = self.noticed(near.iter().chain(groups), &mut spent)? {
                return Ok(outcome);
            }
        }
        Ok(match spent.left_out {
            0 => Outcome::Survived,
            left_out => Outcome::OverBudget { left_out, budget_s: self.budget.as_secs_f64() },
        })
    }

    /// Runs groups until one fails twice, as far as the time allows.
    fn noticed<'a>(
        &self,
        groups: impl Iterator<Item = &'a Vec<usize>>,
        spent: &mut Spent,
    ) -> std::io::Result<Option<Outcome>> {
        for group in groups {
            let Some(left) = spent.left.checked_sub(self.time(group)) else {
                spent.left_out += group.len();
                continue;
            };
            spent.left = left;
            let verdict = self.look(group)?;
            if verdict != Verdict::Passed && self.look(group)? != Verdict::Passed {
                return Ok(Some(noticed(verdict, self.called(group))));
            }
        }
        Ok(None)
    }

    /// The cheapest cases of a mutant's module, each alone.
    fn near(&self, mutant: &Mutant, groups: &[&Vec<usize>]) -> Vec<Vec<usize>> {
        let module = module(&mutant.file);
        let mut near: Vec<usize> = groups.iter().copied().flatten().copied().collect();
        near.retain(|case| self.cases.cases[*case].name.starts_with(&module));
        near.sort_by_key(|case| self.time(&[*case]));
        near.into_iter().take(NEAR_MAX).map(|case| vec![case]).collect()
    }

    /// Compiles the tests of the library (`--lib`) or all (`--tests`).
    fn compile(&self, tests: &str, limit: Duration) -> Result<Compiled, Box<dyn Error>> {
        // Only the part of the crate that has changed is optimised anew, and little: most mutants are noticed at once.
        let profile = |setting: &str| format!("profile.dev.package.{}.{setting}", self.package);
        let mut command = self.mirror.cargo(&["test", "--no-run", tests, "--message-format=json"]);
        command.args(["--package", &self.package, "--config", &profile("codegen-units=256")]);
        command.args(["--config", &profile("opt-level=1")]).env("CARGO_INCREMENTAL", "1");
        Compiled::by(&mut command, &self.output.join("compile"), limit)
    }

    /// Runs cases of one binary.
    fn look(&self, group: &[usize]) -> std::io::Result<Verdict> {
        let names: Vec<&str> = group.iter().map(|case| self.cases.cases[*case].name.as_str()).collect();
        let binary = self.cases.cases[group[0]].binary;
        self.cases.run(binary, &names, Switch::Off, limit(self.time(group)))
    }

    /// What cases take without a mutant.
    fn time(&self, group: &[usize]) -> Duration {
        group.iter().map(|case| self.cases.cases[*case].time).sum()
    }

    fn called(&self, group: &[usize]) -> String {
        let first = &self.cases.cases[group[0]];
        let binary = self.cases.binaries[first.binary].name();
        match group {
            [_] => format!("{binary} {}", first.name),
            _ => format!("{binary}, one of {}", group.len()),
        }
    }
}

/// What became of a mutant that the compiler does not take; nothing of one that it does.
fn refused(mutant: &Mutant, compiled: &Compiled) -> Result<Option<Outcome>, Box<dyn Error>> {
    if compiled.took_too_long {
        return Ok(Some(Outcome::TimedOut { test: "the compiler".to_owned() }));
    }
    let Some(failure) = &compiled.failure else { return Ok(None) };
    match compiled.errors().find_map(|error| error["message"].as_str()) {
        Some(reason) => Ok(Some(Outcome::Unviable { reason: reason.to_owned() })),
        None => Err(format!("{}: {failure}: {}", mutant.name, compiled.said).into()),
    }
}

/// The cases that pass, by binary in groups that one process can run, the cheapest first.
fn groups(cases: &[Case]) -> Vec<Vec<usize>> {
    let mut by_binary: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let passing = cases.iter().enumerate().filter(|(_, case)| case.verdict == Verdict::Passed);
    passing.for_each(|(index, case)| by_binary.entry(case.binary).or_default().push(index));
    let time = |group: &Vec<usize>| group.iter().map(|case| cases[*case].time).sum::<Duration>();
    let mut groups = Vec::new();
    for mut of_binary in by_binary.into_values() {
        of_binary.sort_by_key(|case| (cases[*case].time, *case));
        groups.extend(of_binary.chunks(GROUP_MAX).map(<[usize]>::to_vec));
    }
    groups.sort_by_key(time);
    groups
}

#[cfg(test)]
pub mod tests {
    use super::super::cases::tests::artifact;
    use super::super::list::Genre;
    use super::super::rewrite::tests::mutant;
    use super::*;
    use zrt_needs::TemporaryFolder;

    /// The source whose constants have mutants.
    const SOURCE: &str = "const A: u8 = 1 + 2;\n";
    /// Instead of cargo: it notes how it is called, and what stands in the file is what the compiler says.
    const CARGO: &str = r#"echo "$*" $CARGO_INCREMENTAL >> ../called
        cat ../messages
        if grep -q "%" mem/src/a.rs; then
            echo '{"reason":"compiler-message","message":{"level":"error","message":"refused"}}'; exit 101
        fi
        ! grep -q "/" mem/src/a.rs"#;
    /// The tests: one of the module is there, and others notice some operators.
    const TESTS: &str = r#"case "$*" in
        *--ignored*) ;;
        *--list*) printf 'a::near: test\nb::far: test\nb::bad: test\n';;
        *a::near*b::far*|*b::far*a::near*) ! grep -q "[-*]" scratch/tree/mem/src/a.rs;;
        *a::near*) ! grep -q "-" scratch/tree/mem/src/a.rs || exit 1
            ! grep -q "\^" scratch/tree/mem/src/a.rs || test -e once || { touch once; exit 1; };;
        *b::bad*) exit 1;;
        esac"#;

    /// A crate `mem` with these tests, whose mutants are tried so.
    fn alone(folder: &Path, tests: &str, budget: Duration) -> Result<Alone, Box<dyn Error>> {
        let (root, scratch) = (folder.join("root"), folder.join("scratch"));
        fs::create_dir_all(root.join("mem/src")).unwrap();
        fs::create_dir_all(scratch.join("output")).unwrap();
        fs::write(root.join("mem/src/a.rs"), SOURCE).unwrap();
        let messages = scratch.join("messages");
        if !messages.exists() {
            fs::write(messages, format!("{}\n", artifact(folder))).unwrap();
        }
        zrt_needs::write_program(&folder.join("binary"), &format!("cd {}\n{tests}", folder.display()));
        zrt_needs::write_program(&folder.join("cargo"), CARGO);
        let mut mirror = Mirror::new(&root, &scratch).unwrap();
        mirror.program = folder.join("cargo").to_str().unwrap().to_owned();
        Alone::in_mirror(mirror, scratch.join("output"), "zrt-mem", 1, budget)
    }

    fn operator(replacement: &str) -> Mutant {
        Mutant { file: "mem/src/a.rs".into(), ..mutant(SOURCE, Genre::BinaryOperator, "+", replacement) }
    }

    #[test]
    fn a_mutant_is_compiled_and_run_alone_and_taken_out_again() {
        let folder = TemporaryFolder::new("alone");
        let alone = alone(&folder, TESTS, Duration::from_secs(60)).unwrap();
        let outcome = |replacement| alone.run(&operator(replacement)).unwrap();
        let by = |test: &str| Outcome::Killed { test: format!("{}{test}", alone.cases.binaries[0].name()) };
        assert_eq!([outcome("-"), outcome("*")], [by(" a::near"), by(", one of 2")]);
        assert_eq!(outcome("%"), Outcome::Unviable { reason: "refused".into() });
        assert_eq!(outcome("|"), Outcome::Survived);
        assert_eq!(outcome("^"), Outcome::Survived, "it fails once and not again");
        let error = alone.run(&operator("/")).unwrap_err().to_string();
        assert!(error.contains("exit status: 1"), "{error}");
        assert_eq!(fs::read_to_string(folder.join("scratch/tree/mem/src/a.rs")).unwrap(), SOURCE);
        let called = fs::read_to_string(folder.join("scratch/called")).unwrap();
        let line = "test --no-run --tests --message-format=json --package zrt-mem --config \
                    profile.dev.package.zrt-mem.codegen-units=256 --config \
                    profile.dev.package.zrt-mem.opt-level=1 1";
        assert!(called.lines().count() == 7 && called.lines().all(|called| called == line), "{called}");
    }

    #[test]
    fn the_tests_of_other_binaries_are_compiled_only_for_what_those_of_the_library_do_not_notice() {
        let folder = TemporaryFolder::new("alone-library");
        let others = r#"case "$*" in
            *--ignored*) ;;
            *--list*) echo 'other: test';;
            *) ! grep -q "|" scratch/tree/mem/src/a.rs;;
            esac"#;
        let mut library = artifact(&folder);
        library["target"] = serde_json::json!({ "name": "library", "kind": ["lib"] });
        library["executable"] = folder.join("library").to_str().unwrap().into();
        fs::create_dir_all(folder.join("scratch")).unwrap();
        let messages = format!("{}\n{library}\n", artifact(&folder));
        fs::write(folder.join("scratch/messages"), &messages).unwrap();
        zrt_needs::write_program(&folder.join("library"), &format!("cd {}\n{TESTS}", folder.display()));
        let alone = alone(&folder, others, Duration::from_secs(60)).unwrap();
        let called = folder.join("scratch/called");
        let outcome = |replacement| {
            fs::remove_file(&called).unwrap();
            let outcome = alone.run(&operator(replacement)).unwrap();
            let called = fs::read_to_string(&called).unwrap();
            let tests = called.lines().map(|line| line.split(' ').nth(2).unwrap().to_owned());
            (outcome, tests.collect::<Vec<_>>().join(" "))
        };
        let by = |binary: usize, test: &str| Outcome::Killed {
            test: format!("{} {test}", alone.cases.binaries[binary].name()),
        };
        assert_eq!(outcome("-"), (by(1, "a::near"), "--lib".into()));
        assert_eq!(outcome("|"), (by(0, "other"), "--lib --tests".into()));
        assert_eq!(outcome("%"), (Outcome::Unviable { reason: "refused".into() }, "--lib".into()));
        assert_eq!(outcome("<<"), (Outcome::Survived, "--lib --tests".into()));
    }

    #[test]
    fn what_the_budget_leaves_out_is_counted() {
        let folder = TemporaryFolder::new("alone-budget");
        let alone = alone(&folder, TESTS, Duration::ZERO).unwrap();
        // One of the module, and both in a group.
        assert_eq!(alone.run(&operator("-")).unwrap(), Outcome::OverBudget { left_out: 3, budget_s: 0.0 });
    }

    #[test]
    fn cases_that_do_not_pass_together_are_not_used() {
        let folder = TemporaryFolder::new("alone-together");
        let tests = TESTS.replace("*a::near*b::far*|", "*near*far*|*far*near*) exit 1;;\n*a::near*b::far*|");
        let alone = alone(&folder, &tests, Duration::from_secs(60)).unwrap();
        assert_eq!(alone.run(&operator("-")).unwrap(), Outcome::Survived);
    }

    #[test]
    fn tests_that_do_not_compile_without_a_mutant_end_it() {
        let folder = TemporaryFolder::new("alone-without");
        fs::create_dir_all(folder.join("root/mem/src")).unwrap();
        fs::write(folder.join("root/mem/src/b.rs"), "").unwrap();
        zrt_needs::write_program(&folder.join("cargo"), "echo because >&2; exit 101");
        fs::create_dir_all(folder.join("scratch/output")).unwrap();
        let mut mirror = Mirror::new(&folder.join("root"), &folder.join("scratch")).unwrap();
        mirror.program = folder.join("cargo").to_str().unwrap().to_owned();
        let output = folder.join("scratch/output");
        let alone = Alone::in_mirror(mirror, output, "zrt-mem", 1, Duration::ZERO).map(|_| ());
        let error = alone.unwrap_err().to_string();
        assert!(error.contains("zrt-mem") && error.contains("because"), "{error}");
    }

    #[test]
    fn groups_are_of_one_binary_and_of_cases_that_pass() {
        let case = |binary, ms, verdict| Case {
            binary,
            name: String::new(),
            time: Duration::from_millis(ms),
            verdict,
            reached: Vec::new(),
        };
        let mut cases = vec![
            case(0, 50, Verdict::Passed),
            case(1, 9, Verdict::Passed),
            case(0, 1, Verdict::Failed),
            case(0, 10, Verdict::Passed),
            case(1, 8, Verdict::TookTooMuch),
        ];
        assert_eq!(groups(&cases), [vec![1], vec![3, 0]]);
        cases.extend(std::iter::repeat_n(case(2, 0, Verdict::Passed), GROUP_MAX + 1));
        assert_eq!(groups(&cases).iter().map(Vec::len).collect::<Vec<_>>(), [GROUP_MAX, 1, 1, 2]);
    }
}
