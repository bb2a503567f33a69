//! Leaves out the mutants that the compiler refuses, until the rest compiles.
//!
//! Contract: each error is laid to the mutants that can have caused it, the narrowest first: the branch that it points
//! into; else the branches of the construct that it points into; else those of the function, values before others.
//! A mutant whose own branch is refused is not viable; one that is left out for a guess was not placed. An error that
//! points at none of them, after which nothing more can be left out, ends the command.

use super::compile::Compiled;
use super::copy::Copy;
use super::list::{Genre, Mutant};
use super::results::Outcome;
use super::rewrite::{Branch, Written};
use crate::test::TestBinary;
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::ops::Range;

/// Compilations after which no more mutants are left out.
const ROUNDS_MAX: usize = 60;
/// Errors that are shown.
const ERRORS_SHOWN_MAX: usize = 3;

/// What compiles.
pub struct Pruned {
    /// What became of mutants that are not in the copy, by number.
    pub left_out: BTreeMap<u32, Outcome>,
    /// The tests.
    pub binaries: Vec<TestBinary>,
}

/// A place that an error names.
#[derive(Clone, Debug, PartialEq)]
struct Pointer {
    file: String,
    bytes: Range<usize>,
    is_primary: bool,
}

/// How an error was laid to mutants, the narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Blame {
    Own,
    Construct,
    Values,
    Function,
}

/// Mutants that an error is laid to.
type Blamed = (Blame, Vec<u32>);

/// A way to find them: what is laid to whom for an error at these bytes of a file.
type Way = fn(&Written, &Range<usize>) -> Option<Blamed>;

/// Compiles the copy with as many of the mutants as can be: first the mutated packages, then the tests.
pub fn prune(
    copy: &Copy,
    mutants: &[(u32, &Mutant)],
    mutated: &[&str],
    tested: &[&str],
) -> Result<Pruned, Box<dyn Error>> {
    let mut left_out = BTreeMap::new();
    let mut are_libraries_whole = false;
    for round in 1..=ROUNDS_MAX {
        let placed: Vec<(u32, &Mutant)> =
            mutants.iter().filter(|(number, _)| !left_out.contains_key(number)).copied().collect();
        let written = copy.write(&placed)?;
        let unmatched = written.values().flat_map(|file| file.unmatched.iter().copied());
        left_out.extend(unmatched.map(|number| (number, not_placed("no such construct in the file"))));
        let compiled = if are_libraries_whole { copy.compile_tests(tested)? } else { copy.check(mutated)? };
        match compiled.failure {
            None if are_libraries_whole => {
                not_refused_alone(mutants, &mut left_out);
                return Ok(Pruned { left_out, binaries: compiled.binaries() });
            }
            None => are_libraries_whole = true,
            Some(_) => {
                let more = leave_out(&written, &compiled, &mut left_out)?;
                let (errors, all) = (compiled.errors().count(), left_out.len());
                println!("   round {round}: {errors} errors, {more} mutants left out, {all} in all");
            }
        }
    }
    Err(format!(
        "after {ROUNDS_MAX} compilations some mutants still do not compile: try fewer crates at once"
    )
    .into())
}

/// A value in place of a body that gives `impl Trait` is of another type than the body beside it. Alone it may compile.
fn not_refused_alone(mutants: &[(u32, &Mutant)], left_out: &mut BTreeMap<u32, Outcome>) {
    for (number, mutant) in mutants {
        let is_beside = mutant.genre == Genre::FnValue && mutant.name.contains("-> impl ");
        if let (true, Some(outcome @ Outcome::Unviable { .. })) = (is_beside, left_out.get_mut(number)) {
            *outcome = not_placed("the body gives another type that is not named");
        }
    }
}

fn not_placed(reason: &str) -> Outcome {
    Outcome::NotPlaced { reason: reason.to_owned() }
}

/// Lays the errors to mutants, and says to how many. Guesses wait until no error points into a branch: it may have
/// caused the others.
fn leave_out(
    written: &BTreeMap<String, Written>,
    compiled: &Compiled,
    left_out: &mut BTreeMap<u32, Outcome>,
) -> Result<usize, Box<dyn Error>> {
    let blamed: Vec<(Blame, Vec<u32>, String)> = compiled
        .errors()
        .map(|error| {
            let (blame, numbers) = blame(written, &pointers(error, true));
            (blame, numbers, error["message"].as_str().unwrap_or_default().to_owned())
        })
        .filter(|(_, numbers, _)| !numbers.is_empty())
        .collect();
    let before = left_out.len();
    let narrowest = blamed.iter().map(|(blame, ..)| *blame).min();
    for (blame, numbers, reason) in blamed.into_iter().filter(|(blame, ..)| Some(*blame) == narrowest) {
        for number in numbers {
            let reason = reason.clone();
            let outcome = match blame {
                Blame::Own => Outcome::Unviable { reason },
                Blame::Construct | Blame::Values | Blame::Function => Outcome::NotPlaced { reason },
            };
            left_out.entry(number).or_insert(outcome);
        }
    }
    match left_out.len() - before {
        0 => Err(unblamed(compiled).into()),
        more => Ok(more),
    }
}

/// What is said of errors that are no mutant's.
fn unblamed(compiled: &Compiled) -> String {
    let rendered = compiled.errors().filter_map(|error| error["rendered"].as_str());
    let shown: String = rendered.take(ERRORS_SHOWN_MAX).collect();
    let failure = compiled.failure.as_deref().unwrap_or_default();
    let text = if shown.is_empty() { &compiled.said } else { &shown };
    format!(
        "the copy does not compile ({failure}), and no mutant seems to be the cause: does the source?\n{text}"
    )
}

/// All places of an error and of its notes, and where the macros in them are used.
fn pointers(message: &Value, is_primary: bool) -> Vec<Pointer> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut found = Vec::new();
    for span in list(&message["spans"]) {
        let is_primary = is_primary && span["is_primary"] == true;
        let mut span = &span;
        while let Some(file) = span["file_name"].as_str() {
            let [start, end] = ["byte_start", "byte_end"].map(|key| span[key].as_u64().unwrap_or(0) as usize);
            found.push(Pointer { file: file.to_owned(), bytes: start..end, is_primary });
            span = &span["expansion"]["span"];
        }
    }
    found.extend(list(&message["children"]).iter().flat_map(|child| pointers(child, false)));
    found
}

/// The mutants that an error is laid to; none if it points at no file of theirs.
fn blame(written: &BTreeMap<String, Written>, pointers: &[Pointer]) -> Blamed {
    let ways: [Way; 3] = [in_own, in_construct, in_function];
    for way in ways {
        for is_primary in [true, false] {
            for pointer in pointers.iter().filter(|pointer| pointer.is_primary == is_primary) {
                let file = written.get(&pointer.file);
                if let Some(found) = file.and_then(|file| way(file, &pointer.bytes)) {
                    return found;
                }
            }
        }
    }
    (Blame::Function, Vec::new())
}

/// The mutant of the branch around an error; branches have no other ones in them.
fn in_own(file: &Written, bytes: &Range<usize>) -> Option<Blamed> {
    let around = file.branches.iter().find(|branch| contains(&branch.own, bytes))?;
    Some((Blame::Own, vec![around.number]))
}

/// All mutants of the narrowest construct around an error.
fn in_construct(file: &Written, bytes: &Range<usize>) -> Option<Blamed> {
    let around = file.branches.iter().filter(|branch| contains(&branch.whole, bytes));
    let narrowest = around.map(|branch| branch.whole.clone()).min_by_key(ExactSizeIterator::len)?;
    Some((Blame::Construct, numbers(file, |branch| branch.whole == narrowest)))
}

/// The mutants of the narrowest function around an error: those that return a value, or else all.
fn in_function(file: &Written, bytes: &Range<usize>) -> Option<Blamed> {
    let around = file.functions.iter().filter(|body| contains(body, bytes));
    let body = around.min_by_key(|body| body.len())?;
    let values = numbers(file, |branch| contains(body, &branch.own) && branch.is_value);
    if !values.is_empty() {
        return Some((Blame::Values, values));
    }
    let all = numbers(file, |branch| contains(body, &branch.own));
    (!all.is_empty()).then_some((Blame::Function, all))
}

fn numbers(file: &Written, of: impl Fn(&Branch) -> bool) -> Vec<u32> {
    file.branches.iter().filter(|branch| of(branch)).map(|branch| branch.number).collect()
}

fn contains(outer: &Range<usize>, inner: &Range<usize>) -> bool {
    outer.start <= inner.start && inner.end <= outer.end
}

#[cfg(test)]
mod tests {
    use super::super::cases::tests::artifact;
    use super::super::copy::tests::copy;
    use super::super::rewrite::tests::mutant;
    use super::*;
    use serde_json::json;
    use std::path::Path;

    /// A function at 0..100 with a value at 10..20, and a construct at 30..60 with two branches.
    fn written() -> BTreeMap<String, Written> {
        let branch = |number, own, whole, is_value| Branch { number, own, whole, is_value };
        let branches = vec![
            branch(1, 10..20, 5..25, true),
            branch(2, 35..40, 30..60, false),
            branch(3, 45..50, 30..60, false),
            branch(4, 210..220, 205..225, false),
        ];
        let functions = vec![0..100, 200..300, 400..500];
        let file = Written { text: String::new(), branches, functions, unmatched: Vec::new() };
        [("a.rs".to_owned(), file)].into()
    }

    fn blamed(places: &[(&str, Range<usize>, bool)]) -> (Blame, Vec<u32>) {
        let pointer = |(file, bytes, is_primary): &(&str, Range<usize>, bool)| Pointer {
            file: (*file).to_owned(),
            bytes: bytes.clone(),
            is_primary: *is_primary,
        };
        blame(&written(), &places.iter().map(pointer).collect::<Vec<_>>())
    }

    #[test]
    fn an_error_is_laid_to_the_narrowest_that_can_have_caused_it() {
        assert_eq!(blamed(&[("a.rs", 36..38, true)]), (Blame::Own, vec![2]));
        assert_eq!(blamed(&[("a.rs", 52..55, true)]), (Blame::Construct, vec![2, 3]));
        assert_eq!(blamed(&[("a.rs", 70..75, true)]), (Blame::Values, vec![1]));
        assert_eq!(blamed(&[("a.rs", 250..251, true)]), (Blame::Function, vec![4]));
        for nowhere in [("a.rs", 450..451, true), ("a.rs", 350..351, true), ("b.rs", 36..38, true)] {
            assert_eq!(blamed(&[nowhere]), (Blame::Function, vec![]));
        }
    }

    #[test]
    fn a_note_counts_where_the_error_itself_points_at_nothing_as_narrow() {
        assert_eq!(blamed(&[("a.rs", 70..75, true), ("a.rs", 36..38, false)]), (Blame::Own, vec![2]));
        assert_eq!(blamed(&[("a.rs", 46..47, true), ("a.rs", 36..38, false)]), (Blame::Own, vec![3]));
    }

    #[test]
    fn pointers_are_those_of_notes_and_of_the_users_of_macros_too() {
        let span = |start: usize, is_primary: bool, expansion: Value| {
            json!({ "file_name": "a.rs", "byte_start": start, "byte_end": start + 1, "is_primary": is_primary,
                "expansion": expansion })
        };
        let user = json!({ "span": span(7, false, Value::Null) });
        let child = json!({ "spans": [span(9, true, Value::Null)], "children": [] });
        let message =
            json!({ "spans": [span(5, true, user), span(6, false, Value::Null)], "children": [child] });
        let found =
            pointers(&message, true).into_iter().map(|pointer| (pointer.bytes.start, pointer.is_primary));
        assert_eq!(found.collect::<Vec<_>>(), [(5, true), (7, true), (6, false), (9, false)]);
    }

    #[test]
    fn mutants_are_left_out_with_the_reason_and_an_error_of_nobody_ends_it() {
        let error = |start: usize| {
            json!({ "reason": "compiler-message", "message": { "level": "error", "message": "mismatched",
                "rendered": "error: mismatched", "children": [],
                "spans": [{ "file_name": "a.rs", "byte_start": start, "byte_end": start, "is_primary": true }] } })
        };
        let compiled = |starts: &[usize]| Compiled {
            failure: Some("exit status: 101".into()),
            took_too_long: false,
            messages: starts.iter().map(|start| error(*start)).collect(),
            said: String::new(),
        };
        let mut left_out = BTreeMap::new();
        assert_eq!(leave_out(&written(), &compiled(&[52, 36, 350]), &mut left_out).unwrap(), 1);
        assert_eq!(left_out[&2], Outcome::Unviable { reason: "mismatched".into() });
        assert_eq!(leave_out(&written(), &compiled(&[52, 70]), &mut left_out).unwrap(), 1);
        assert_eq!(left_out[&3], not_placed("mismatched"));
        assert!(!left_out.contains_key(&1));
        let stuck = leave_out(&written(), &compiled(&[350]), &mut left_out).unwrap_err().to_string();
        assert!(stuck.contains("exit status: 101") && stuck.contains("error: mismatched"), "{stuck}");
    }

    /// Instead of cargo: refuses each place where a word that begins with `bad` stands in the file, and in tests also
    /// `worse`. The words are only in branches of mutants.
    const CARGO: &str = r#"
        words=bad_[a-z]*; test "$1" = test && words='bad_[a-z]*\|worse' && cat ../messages
        for found in $(grep -bo "$words" mem/src/a.rs); do
            at=${found%:*}
            echo '{"reason": "compiler-message", "message": {"level": "error", "message": "'"${found#*:}"'",
                "children": [], "spans": [{"file_name": "mem/src/a.rs", "is_primary": true,
                "byte_start": '$at', "byte_end": '$at'}]}}' | tr '\n' ' '; echo
        done
        ! grep -q "$words" mem/src/a.rs"#;

    #[test]
    fn what_is_refused_is_left_out_until_libraries_and_tests_compile() {
        let source = "fn f() -> u8 { 1 + 2 }\nfn g() -> impl Sized { 3 * 4 }\n";
        let mutants = [
            (Genre::BinaryOperator, "+ 2", "-", "f"),
            (Genre::FnValue, "1 +", "bad_value", "f -> u8"),
            (Genre::FnValue, "1 +", "worse", "f -> u8"),
            (Genre::FnValue, "3 *", "bad_type", "g -> impl Sized"),
            (Genre::BinaryOperator, "* 4", "bad_operator", "g -> impl Sized"),
            (Genre::Other, "fn f", "", "f"),
        ];
        let mutants = mutants.map(|(genre, mark, with, function)| Mutant {
            name: format!("replace {function} with {with}"),
            ..mutant(source, genre, mark, with)
        });
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(&mutants).collect();
        let folder = zrt_needs::TemporaryFolder::new("prune");
        let copy = copy(&folder, source, &numbered, CARGO);
        let message = artifact(Path::new("/r/mem"));
        std::fs::write(folder.join("scratch/messages"), format!("{message}\n")).unwrap();
        let pruned = prune(&copy, &numbered, &["zrt-mem"], &["zrt-mem"]).unwrap();
        let unviable = |reason: &str| Outcome::Unviable { reason: reason.into() };
        let expected = [
            (2, unviable("bad_value")),
            (3, unviable("worse")),
            (4, not_placed("the body gives another type that is not named")),
            (5, unviable("bad_operator")),
            (6, not_placed("no such construct in the file")),
        ];
        assert_eq!(pruned.left_out, expected.into());
        assert!(pruned.binaries.iter().map(TestBinary::name).eq(["mem/made_up"]));
        let text = std::fs::read_to_string(folder.join("scratch/tree/mem/src/a.rs")).unwrap();
        assert_eq!(text.matches("::zrt_switch::on").count(), 1, "{text}");
    }
}
