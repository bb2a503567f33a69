//! One mutant against the tests that come by it.
//!
//! Contract: cases are run until one fails. The first are those most likely to, each in a process of its own: cases
//! that have killed others of the function or file, those of the mutant's crate and module, short ones. The rest run
//! many in a process, cheapest first, as far as the budget goes. A mutant has survived only if all cases passed that
//! come by it; one that fails or takes too long without a mutant counts as left out. Nor does a failure count that is
//! not the mutant's: a case must fail twice, and several in one process must pass there without it.

use super::cases::{Cases, Switch, Verdict};
use super::list::Mutant;
use super::results::Outcome;
use crate::workers::lock;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Cases that run alone.
const ALONE_MAX: usize = 6;
/// Cases in a process.
const GROUP_MAX: usize = 100;
/// A case may take as many times what it took without a mutant, and so much more.
const TIME_FACTOR: u32 = 6;
const TIME_MORE: Duration = Duration::from_secs(3);
/// What a case of the function that killed a mutant counts, in cases of the file.
const FUNCTION_WEIGHT: usize = 10;

/// A function: its file, and its name.
type FunctionKey = (String, String);

/// How often each case has killed a mutant.
#[derive(Default)]
struct Killers {
    of_file: HashMap<String, HashMap<usize, usize>>,
    of_function: HashMap<FunctionKey, HashMap<usize, usize>>,
}

/// Tries mutants.
pub struct Trial<'a> {
    cases: &'a Cases,
    /// Cases that pass, by the mutants that they come by.
    reaching: HashMap<u32, Vec<usize>>,
    /// How many cannot be used, by the same.
    unused: HashMap<u32, usize>,
    killers: Mutex<Killers>,
}

/// What cases say of a mutant.
#[derive(Debug, PartialEq)]
enum Look {
    Passed,
    Noticed(Outcome),
    /// They failed, but not for the mutant.
    Doubtful,
}

/// What the budget leaves of cases.
#[derive(Debug, PartialEq, Eq)]
struct Grouped {
    /// Cases of one binary each.
    groups: Vec<Vec<usize>>,
    left_out: usize,
}

impl<'a> Trial<'a> {
    /// Knows which cases come by which mutant.
    pub fn new(cases: &'a Cases) -> Trial<'a> {
        let (mut reaching, mut unused) = (HashMap::<u32, Vec<usize>>::new(), HashMap::new());
        for (index, case) in cases.cases.iter().enumerate() {
            for number in &case.reached {
                match case.verdict {
                    Verdict::Passed => reaching.entry(*number).or_default().push(index),
                    Verdict::TookTooMuch | Verdict::Failed => *unused.entry(*number).or_default() += 1,
                }
            }
        }
        Trial { cases, reaching, unused, killers: Mutex::default() }
    }

    /// Whether any case comes by a mutant.
    pub fn is_reached(&self, number: u32) -> bool {
        self.reaching.contains_key(&number)
    }

    /// Runs cases until one fails. Those behind the first may take `budget`.
    pub fn run(&self, number: u32, mutant: &Mutant, budget: Duration) -> std::io::Result<Outcome> {
        let order = self.order(number, mutant);
        let mut unused = self.unused.get(&number).copied().unwrap_or(0);
        if order.is_empty() && unused == 0 {
            return Ok(Outcome::Unreached);
        }
        let mut left = budget;
        let mut rest = order.as_slice();
        for place in 0..ALONE_MAX {
            let Some((case, others)) = rest.split_first() else { break };
            if place > 0 && self.cases.cases[*case].time > left {
                break;
            }
            rest = others;
            let started = Instant::now();
            match self.look(number, &[*case])? {
                Look::Noticed(outcome) => {
                    self.remember(mutant, *case);
                    return Ok(outcome);
                }
                Look::Doubtful => unused += 1,
                Look::Passed => {}
            }
            if place > 0 {
                left = left.saturating_sub(started.elapsed());
            }
        }
        let Grouped { groups, left_out } = self.grouped(rest, left);
        for group in groups {
            match self.look(number, &group)? {
                Look::Noticed(outcome) => return Ok(outcome),
                Look::Doubtful => unused += group.len(),
                Look::Passed => {}
            }
        }
        Ok(match left_out + unused {
            0 => Outcome::Survived,
            left_out => Outcome::OverBudget { left_out, budget_s: budget.as_secs_f64() },
        })
    }

    /// What these cases, all of one binary, say of a mutant.
    fn look(&self, number: u32, group: &[usize]) -> std::io::Result<Look> {
        let cases: Vec<_> = group.iter().map(|case| &self.cases.cases[*case]).collect();
        let [first, ..] = cases.as_slice() else { return Ok(Look::Passed) };
        let names: Vec<&str> = cases.iter().map(|case| case.name.as_str()).collect();
        let limit = limit(cases.iter().map(|case| case.time).sum());
        let run = |switch| self.cases.run(first.binary, &names, switch, limit);
        let verdict = run(Switch::Chosen(number))?;
        if verdict == Verdict::Passed {
            return Ok(Look::Passed);
        }
        let is_its_own = match names.as_slice() {
            [_] => run(Switch::Chosen(number))? != Verdict::Passed,
            _ => run(Switch::Off)? == Verdict::Passed,
        };
        let binary = self.cases.binaries[first.binary].name();
        let test = match names.as_slice() {
            [name] => format!("{binary} {name}"),
            _ => format!("{binary}, one of {}", names.len()),
        };
        Ok(if is_its_own { Look::Noticed(noticed(verdict, test)) } else { Look::Doubtful })
    }

    /// The cases that come by a mutant, the most promising first.
    fn order(&self, number: u32, mutant: &Mutant) -> Vec<usize> {
        let mut order = self.reaching.get(&number).cloned().unwrap_or_default();
        let module = module(&mutant.file);
        let killers = lock(&self.killers);
        let (file, function) =
            (killers.of_file.get(&mutant.file), killers.of_function.get(&function(mutant)));
        let count = |killed: Option<&HashMap<usize, usize>>, case: &usize| {
            killed.and_then(|killed| killed.get(case)).copied().unwrap_or(0)
        };
        order.sort_by_cached_key(|index| {
            let case = &self.cases.cases[*index];
            let is_near = case.name.starts_with(&module);
            let is_own = self.cases.binaries[case.binary].folder == mutant.folder();
            let killed = count(function, index) * FUNCTION_WEIGHT + count(file, index);
            (Reverse(killed), !is_own, !is_near, case.time, *index)
        });
        order
    }

    fn remember(&self, mutant: &Mutant, case: usize) {
        let mut killers = lock(&self.killers);
        *killers.of_file.entry(mutant.file.clone()).or_default().entry(case).or_default() += 1;
        *killers.of_function.entry(function(mutant)).or_default().entry(case).or_default() += 1;
    }

    /// The cheapest of these cases that fit, by binary; binaries whose cases take least come first.
    fn grouped(&self, cases: &[usize], mut left: Duration) -> Grouped {
        let time = |case: &usize| self.cases.cases[*case].time;
        let mut cheapest = cases.to_vec();
        cheapest.sort_by_key(|case| (time(case), *case));
        let mut by_binary: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        let mut left_out = 0;
        for case in cheapest {
            match left.checked_sub(time(&case)) {
                Some(less) => {
                    left = less;
                    by_binary.entry(self.cases.cases[case].binary).or_default().push(case);
                }
                None => left_out += 1,
            }
        }
        let mut groups: Vec<Vec<usize>> = by_binary.into_values().collect();
        groups.sort_by_key(|group| group.iter().map(time).sum::<Duration>());
        let groups = groups.iter().flat_map(|group| group.chunks(GROUP_MAX)).map(<[usize]>::to_vec).collect();
        Grouped { groups, left_out }
    }
}

/// What cases that take so long without a mutant may take with one.
pub fn limit(time: Duration) -> Duration {
    time * TIME_FACTOR + TIME_MORE
}

/// What becomes of a mutant with which a test does not pass.
pub fn noticed(verdict: Verdict, test: String) -> Outcome {
    match verdict {
        Verdict::TookTooMuch => Outcome::TimedOut { test },
        Verdict::Failed | Verdict::Passed => Outcome::Killed { test },
    }
}

fn function(mutant: &Mutant) -> FunctionKey {
    let name = mutant.function.as_ref().map(|function| function.name.clone()).unwrap_or_default();
    (mutant.file.clone(), name)
}

/// What the names of unit tests of a file begin with: `a::b::` for `crate/src/a/b.rs` and for `crate/src/a/b/mod.rs`.
pub fn module(file: &str) -> String {
    let inside = file.split_once("/src/").map_or(file, |(_, inside)| inside);
    let path = inside.trim_end_matches(".rs").trim_end_matches("/mod");
    format!("{}::", path.replace('/', "::"))
}

#[cfg(test)]
mod tests {
    use super::super::cases::Case;
    use super::super::cases::tests::script;
    use super::super::list::{Function, Genre};
    use super::super::rewrite;
    use super::*;
    use std::path::Path;

    fn mutant(file: &str, function: &str) -> Mutant {
        let function = Some(Function { name: function.into() });
        Mutant { file: file.into(), function, ..rewrite::tests::mutant("+", Genre::Other, "+", "-") }
    }

    fn case(binary: usize, name: &str, ms: u64) -> Case {
        let time = Duration::from_millis(ms);
        Case { binary, name: name.into(), time, verdict: Verdict::Passed, reached: vec![1] }
    }

    /// A binary of a crate `mem` and one of a crate `ring`, which fail where `fails` says.
    fn cases(folder: &Path, fails: &str, cases: Vec<Case>) -> Cases {
        let binaries = ["mem", "ring"].map(|name| {
            std::fs::create_dir_all(folder.join(name)).unwrap();
            script(
                &folder.join(name),
                &format!("echo \"$*\" >> ../ran; case \"$* $ZRT_SWITCH\" in {fails}) exit 1;; esac"),
            )
        });
        Cases { binaries: binaries.into(), cases }
    }

    fn ran(folder: &Path) -> Vec<String> {
        let text = std::fs::read_to_string(folder.join("ran")).unwrap_or_default();
        text.lines().map(|line| line.replace("--exact ", "").replace(" --test-threads 1", "")).collect()
    }

    #[test]
    fn likely_cases_come_first_and_those_that_kill_before_them() {
        let folder = zrt_needs::TemporaryFolder::new("order");
        let all = vec![
            case(1, "a::far", 1),
            case(0, "slow", 20),
            case(0, "fast", 10),
            case(0, "a::near", 30),
            Case { verdict: Verdict::Failed, ..case(0, "a::useless", 1) },
            Case { reached: vec![2], ..case(0, "a::elsewhere", 1) },
        ];
        let cases = cases(&folder, "never", all);
        let trial = Trial::new(&cases);
        assert_eq!(trial.order(1, &mutant("mem/src/a.rs", "f")), [3, 2, 1, 0]);
        assert!(trial.is_reached(2) && !trial.is_reached(3));
        trial.remember(&mutant("mem/src/a.rs", "g"), 0);
        assert_eq!(trial.order(1, &mutant("mem/src/a.rs", "f")), [0, 3, 2, 1]);
        trial.remember(&mutant("mem/src/a.rs", "f"), 1);
        assert_eq!(trial.order(1, &mutant("mem/src/a.rs", "f")), [1, 0, 3, 2]);
        assert_eq!(trial.order(1, &mutant("mem/src/b.rs", "f")), [2, 1, 3, 0]);
    }

    #[test]
    fn a_case_that_killed_in_the_function_comes_before_one_that_killed_often_in_the_file() {
        let folder = zrt_needs::TemporaryFolder::new("killers");
        let cases = cases(&folder, "never", vec![case(0, "other", 1), case(0, "function", 2)]);
        let trial = Trial::new(&cases);
        (0..5).for_each(|_| trial.remember(&mutant("mem/src/a.rs", "g"), 0));
        trial.remember(&mutant("mem/src/a.rs", "f"), 1);
        assert_eq!(trial.order(1, &mutant("mem/src/a.rs", "f")), [1, 0]);
        assert_eq!(trial.order(1, &mutant("mem/src/a.rs", "h")), [0, 1]);
    }

    #[test]
    fn cases_may_take_some_times_what_they_took_and_more_and_a_late_one_is_no_failure() {
        let seconds = Duration::from_secs;
        assert_eq!([0, 1, 10].map(|time| limit(seconds(time))), [3, 9, 63].map(seconds));
        let test = || String::from("mem/made_up a");
        assert_eq!(noticed(Verdict::Failed, test()), Outcome::Killed { test: test() });
        assert_eq!(noticed(Verdict::TookTooMuch, test()), Outcome::TimedOut { test: test() });
    }

    #[test]
    fn modules_are_those_of_unit_tests() {
        assert_eq!(module("mem/src/a/b.rs"), "a::b::");
        assert_eq!(module("mem/src/a/mod.rs"), "a::");
    }

    #[test]
    fn the_cheapest_that_fit_run_together_by_binary() {
        let folder = zrt_needs::TemporaryFolder::new("grouped");
        let mut all = vec![case(0, "a", 500), case(1, "b", 10), case(0, "c", 100), case(1, "d", 900)];
        let cases_of = |all: &Vec<Case>| cases(&folder, "never", all.clone());
        let few = cases_of(&all);
        let trial = Trial::new(&few);
        let of = |ms| trial.grouped(&[0, 1, 2, 3], Duration::from_millis(ms));
        assert_eq!(of(700), Grouped { groups: vec![vec![1], vec![2, 0]], left_out: 1 });
        assert_eq!(of(2000), Grouped { groups: vec![vec![2, 0], vec![1, 3]], left_out: 0 });
        assert_eq!(of(9), Grouped { groups: vec![], left_out: 4 });
        all = vec![case(0, "a", 1); GROUP_MAX + 1];
        let many = cases_of(&all);
        let indices: Vec<usize> = (0..=GROUP_MAX).collect();
        let groups = Trial::new(&many).grouped(&indices, Duration::from_secs(9)).groups;
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [GROUP_MAX, 1]);
    }

    #[test]
    fn cases_run_until_one_fails_and_a_survivor_has_passed_all() {
        let folder = zrt_needs::TemporaryFolder::new("trial");
        let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
        let all = || names.iter().map(|name| case(0, name, 1)).collect();
        let outcome = |fails: &str, cases_of: Vec<Case>, budget_s: u64| {
            std::fs::remove_file(folder.join("ran")).ok();
            let cases = cases(&folder, fails, cases_of);
            Trial::new(&cases).run(1, &mutant("mem/src/x.rs", "f"), Duration::from_secs(budget_s)).unwrap()
        };
        assert_eq!(outcome("never", all(), 60), Outcome::Survived);
        assert_eq!(ran(&folder), ["a", "b", "c", "d", "e", "f", "g h i"]);
        assert_eq!(outcome("*' c '*", all(), 60), Outcome::Killed { test: "mem/made_up c".into() });
        assert_eq!(ran(&folder), ["a", "b", "c", "c"]);
        // The mutant's number comes behind the arguments.
        assert_eq!(
            outcome("*' h '*' 1 1'", all(), 60),
            Outcome::Killed { test: "mem/made_up, one of 3".into() }
        );
        // What fails without the mutant, or once, says nothing of it.
        assert_eq!(outcome("*' h '*", all(), 60), Outcome::OverBudget { left_out: 3, budget_s: 60.0 });
        let once = "*' c '*) test -e ../once && exit 0; touch ../once; exit 1;; never";
        assert_eq!(outcome(once, all(), 60), Outcome::OverBudget { left_out: 1, budget_s: 60.0 });
        // The first runs whatever it takes.
        let over = Outcome::OverBudget { left_out: 8, budget_s: 0.0 };
        assert_eq!(outcome("never", all(), 0), over);
        assert_eq!(ran(&folder), ["a"]);
        assert_eq!(outcome("never", vec![], 60), Outcome::Unreached);
        // A case that was not run might have noticed it.
        let unused = |verdict| vec![Case { verdict, ..case(0, "j", 1) }];
        let over = Outcome::OverBudget { left_out: 1, budget_s: 60.0 };
        assert_eq!(outcome("never", unused(Verdict::TookTooMuch), 60), over);
        let over = Outcome::OverBudget { left_out: 1, budget_s: 60.0 };
        assert_eq!(outcome("never", unused(Verdict::Failed), 60), over);
    }

    #[test]
    fn a_case_that_takes_just_the_budget_runs_in_its_turn() {
        let folder = zrt_needs::TemporaryFolder::new("budget");
        let all = vec![case(0, "x::first", 1), case(0, "x::long", 5000), case(0, "short", 1)];
        let cases = cases(&folder, "never", all);
        let outcome =
            Trial::new(&cases).run(1, &mutant("mem/src/x.rs", "f"), Duration::from_secs(5)).unwrap();
        assert_eq!(outcome, Outcome::Survived);
        assert_eq!(ran(&folder), ["x::first", "x::long", "short"]);
    }

    /// The budget is less than a process can take, and more than what the cases are said to take.
    #[test]
    fn what_cases_take_behind_the_first_is_taken_from_the_budget() {
        let folder = zrt_needs::TemporaryFolder::new("spent");
        let short = |name| Case { time: Duration::from_nanos(1), ..case(0, name, 0) };
        let cases = cases(&folder, "never", ["a", "b", "c"].map(short).into());
        let trial = Trial::new(&cases);
        let over = Outcome::OverBudget { left_out: 1, budget_s: 1e-6 };
        let outcome = trial.run(1, &mutant("mem/src/x.rs", "f"), Duration::from_micros(1)).unwrap();
        assert_eq!(outcome, over);
        assert_eq!(ran(&folder), ["a", "b"]);
    }
}
