//! Writes all mutants of a file into it, each as a branch on the switch.
//!
//! Contract: with no mutant chosen the text computes what it computed before, and with one chosen what that mutant
//! does. A construct with mutants becomes a choice between them and itself. What it is made of may have mutants in
//! turn, which are not there again in the branches of the outer ones. The result says where each mutant is, so that
//! what the compiler refuses can be laid to one.

use super::list::{Genre, Mutant};
use super::places::{Kind, Place, Places, Planted};
use std::ops::Range;

/// Where a mutant is in the new text, in bytes.
#[derive(Clone, Debug)]
pub struct Branch {
    pub number: u32,
    /// What only this mutant has.
    pub own: Range<usize>,
    /// The construct that it is one of.
    pub whole: Range<usize>,
    /// It returns a value in place of the function's.
    pub is_value: bool,
}

/// A file with its mutants.
#[derive(Debug)]
pub struct Written {
    pub text: String,
    pub branches: Vec<Branch>,
    /// The bodies of all functions, in the new text.
    pub functions: Vec<Range<usize>>,
    /// Mutants that have no place.
    pub unmatched: Vec<u32>,
}

/// `text` with mutants in it, each by its number.
pub fn write(text: &str, mutants: &[(u32, &Mutant)]) -> Result<Written, syn::Error> {
    let Places { places, functions, unmatched } = Places::find(text, mutants)?;
    let mut writer = Writer { text, places, new: String::new(), branches: Vec::new(), copied: Vec::new() };
    writer.copy(0..text.len());
    let Writer { new, branches, mut copied, .. } = writer;
    copied.sort_unstable();
    let moved = |at: usize| {
        let next = copied.partition_point(|(from, _)| *from <= at);
        next.checked_sub(1).map_or(0, |index| copied[index].1 + (at - copied[index].0))
    };
    let functions = functions.into_iter().map(|body| moved(body.start)..moved(body.end)).collect();
    Ok(Written { text: new, branches, functions, unmatched })
}

struct Writer<'a> {
    text: &'a str,
    /// A place that is written has no mutants any more.
    places: Vec<Place>,
    new: String,
    branches: Vec<Branch>,
    /// What was copied as it is: from where, to where.
    copied: Vec<(usize, usize)>,
}

impl Writer<'_> {
    /// Writes a range, with the mutants of all places in it.
    fn copy(&mut self, range: Range<usize>) {
        let mut at = range.start;
        loop {
            // The outermost place that begins at or after `at`.
            let first = self.places.partition_point(|place| place.range.start < at);
            let inside = |place: &Place| !place.mutants.is_empty() && place.range.end <= range.end;
            let Some(index) = (first..self.places.len()).find(|&index| inside(&self.places[index])) else {
                break;
            };
            let Place { range: within, kind, mutants } = self.places[index].clone();
            self.places[index].mutants.clear();
            self.plain(at..within.start);
            at = within.end;
            self.place(within, kind, &mutants);
        }
        self.plain(at..range.end);
    }

    /// Writes a range as it is.
    fn plain(&mut self, range: Range<usize>) {
        self.copied.push((range.start, self.new.len()));
        self.new.push_str(&self.text[range]);
    }

    fn place(&mut self, range: Range<usize>, kind: Kind, mutants: &[Planted]) {
        let (start, first) = (self.new.len(), self.branches.len());
        match kind {
            Kind::Body => self.body(mutants),
            Kind::Binary { left, right } => {
                let (one, other) = (&self.text[left.clone()], &self.text[right.clone()]);
                let branch = |mutant: &Planted| format!("({one}) {} ({other})", mutant.replacement);
                self.choice(mutants, branch, |writer| {
                    // An operand that ends in a brace would be a statement.
                    writer.new.push('(');
                    writer.copy(left.clone());
                    writer.new.push(')');
                    writer.plain(left.end..right.start);
                    writer.copy(right);
                });
            }
            Kind::Unary { operand } => {
                let text = &self.text[operand.clone()];
                self.choice(
                    mutants,
                    |_| format!("({text})"),
                    |writer| {
                        writer.plain(range.start..operand.start);
                        writer.copy(operand);
                    },
                );
            }
            Kind::Field { name, path, value, base } => {
                let [name, path, base] = [name, path, base].map(|part| &self.text[part]);
                self.new.push_str(&format!("{name}: "));
                let branch = |_: &Planted| format!("let base: {path} = {base}; base.{name}");
                self.choice(mutants, branch, |writer| writer.copy(value));
            }
            Kind::Arm { pattern, guard } => self.arm(mutants, pattern, guard),
        }
        let end = self.new.len();
        let own = |branch: &&mut Branch| mutants.iter().any(|mutant| mutant.number == branch.number);
        self.branches[first..].iter_mut().filter(own).for_each(|branch| branch.whole = start..end);
    }

    /// Returns before the body.
    fn body(&mut self, mutants: &[Planted]) {
        for mutant in mutants {
            self.new.push_str(&format!(" if {} {{ return ", on(mutant.number)));
            self.branch(mutant, &mutant.replacement);
            self.new.push_str("; }");
        }
    }

    /// An expression: that of the mutant which is chosen, else what `otherwise` writes.
    fn choice(
        &mut self,
        mutants: &[Planted],
        branch: impl Fn(&Planted) -> String,
        otherwise: impl FnOnce(&mut Self),
    ) {
        self.new.push('(');
        for mutant in mutants {
            self.new.push_str(&format!("if {} {{ ", on(mutant.number)));
            self.branch(mutant, &branch(mutant));
            self.new.push_str(" } else ");
        }
        self.new.push_str("{ ");
        otherwise(self);
        self.new.push_str(" })");
    }

    /// A guard that is as before, true, or false: without its guard an arm that is left out is one that never matches.
    fn arm(&mut self, mutants: &[Planted], pattern: Range<usize>, guard: Option<Range<usize>>) {
        let is_true =
            |mutant: &&Planted| mutant.genre == Genre::MatchArmGuard && mutant.replacement == "true";
        self.copy(pattern);
        self.new.push_str(" if ");
        for mutant in mutants.iter().filter(is_true) {
            self.branch(mutant, &format!("{} || ", on(mutant.number)));
        }
        self.new.push('(');
        match guard {
            Some(guard) => self.copy(guard),
            None => self.new.push_str("true"),
        }
        self.new.push(')');
        for mutant in mutants.iter().filter(|mutant| !is_true(mutant)) {
            self.branch(mutant, &format!(" && !{}", on(mutant.number)));
        }
    }

    /// Writes what only one mutant has. Its construct is not known yet.
    fn branch(&mut self, mutant: &Planted, text: &str) {
        let start = self.new.len();
        self.new.push_str(text);
        let own = start..self.new.len();
        let is_value = mutant.genre == Genre::FnValue;
        self.branches.push(Branch { number: mutant.number, own, whole: 0..0, is_value });
    }
}

/// The question whether a mutant is chosen.
fn on(number: u32) -> String {
    format!("::zrt_switch::on({number})")
}

#[cfg(test)]
pub mod tests {
    use super::super::list::{Extent, Position};
    use super::*;

    /// A mutant of the place at which `mark` begins, which is in `text` once.
    pub fn mutant(text: &str, genre: Genre, mark: &str, replacement: &str) -> Mutant {
        assert_eq!(text.matches(mark).count(), 1, "{mark}");
        let before = &text[..text.find(mark).unwrap()];
        let line = before.lines().count().max(1);
        let column = before.lines().last().unwrap_or("").chars().count() + 1;
        Mutant {
            name: format!("{mark} with {replacement}"),
            file: "mem/src/a.rs".into(),
            function: None,
            genre,
            replacement: replacement.into(),
            extent: Extent {
                start: Position { line, column },
                end: Position { line, column: column + mark.chars().count() },
            },
        }
    }

    fn written(text: &str, mutants: &[(Genre, &str, &str)]) -> Written {
        let mutants: Vec<Mutant> =
            mutants.iter().map(|(genre, mark, with)| mutant(text, *genre, mark, with)).collect();
        let numbered: Vec<(u32, &Mutant)> = (1..).zip(&mutants).collect();
        let written = write(text, &numbered).unwrap();
        syn::parse_file(&written.text).unwrap_or_else(|error| panic!("{error}: {}", written.text));
        assert_eq!(written.unmatched, [0; 0]);
        let mut placed: Vec<u32> = written.branches.iter().map(|branch| branch.number).collect();
        placed.sort_unstable();
        assert!(placed.into_iter().eq(1..=mutants.len() as u32), "{}", written.text);
        for branch in &written.branches {
            assert!(branch.whole.start <= branch.own.start && branch.own.end <= branch.whole.end);
        }
        written
    }

    #[test]
    fn a_range_of_a_branch_is_the_text_that_only_it_has() {
        let text = "fn f(a: u8, b: u8) -> u8 { a + b }\nfn g() {}\n";
        let written = written(text, &[(Genre::FnValue, "a + b", "1"), (Genre::BinaryOperator, "+", "-")]);
        let own: Vec<&str> = written.branches.iter().map(|one| &written.text[one.own.clone()]).collect();
        assert_eq!(own, ["1", "(a) - (b)"]);
        let bodies: Vec<&str> = written.functions.iter().map(|body| &written.text[body.clone()]).collect();
        assert!(bodies[0].starts_with("{ if ") && bodies[0].ends_with(" }"), "{bodies:?}");
        assert_eq!(bodies[1], "{}");
        assert!(written.branches[0].is_value && !written.branches[1].is_value);
    }

    #[test]
    fn without_mutants_a_file_is_as_it_was_and_what_has_no_place_is_told() {
        let text = "fn f() -> bool { 1 < 2 }\n";
        assert_eq!(written(text, &[]).text, text);
        let other = mutant(text, Genre::Other, "<", ">");
        assert_eq!(write(text, &[(7, &other)]).unwrap().unmatched, [7]);
        assert!(write("fn", &[]).is_err());
    }

    #[test]
    fn an_operand_that_begins_where_its_construct_does_keeps_its_mutants() {
        let text = "fn f() -> u8 { 1 + 2 * 3 + 4 }";
        let mutants = ["+ 2", "* 3", "+ 4"].map(|mark| (Genre::BinaryOperator, mark, "-"));
        let product = "(if ::zrt_switch::on(2) { (2) - (3) } else { (2) * 3 })";
        let sum = format!("(if ::zrt_switch::on(1) {{ (1) - (2 * 3) }} else {{ (1) + {product} }})");
        let whole = format!("(if ::zrt_switch::on(3) {{ (1 + 2 * 3) - (4) }} else {{ ({sum}) + 4 }})");
        assert_eq!(written(text, &mutants).text, format!("fn f() -> u8 {{ {whole} }}"));
    }

    /// Operators, guards and fields of every form, with what `main` prints: one line of outcomes.
    const PROGRAM: &str = r#"
#[derive(Clone, Copy)]
struct Three { a: u8, b: u8, c: u8 }
const BASE: Three = Three { a: 1, b: 2, c: 3 };
fn value() -> u8 { #![allow(unused)] 9 }
fn nested(a: u8) -> u8 { a + 2 * 3 }
fn block(a: u8) -> u8 { let b = match a { 0 => 1, _ => 2 } - 1; b }
fn compound(mut a: u8) -> u8 { a += 4; a }
fn negated(a: bool) -> bool { !a }
fn guarded(a: u8) -> u8 { match a { one if one == 5 => 50, _ => 60 } }
fn armed(a: u8) -> u8 { match a { 7 => 70, _ => 80 } }
fn field() -> u8 { let b = 20; let all = Three { a: 10, b, ..BASE }; all.a + all.b + all.c }
const fn constant(a: u8) -> u8 { a | 8 }
const EIGHT: u8 = constant(0);
fn main() {
    println!("{} {} {} {} {} {} {} {} {} {} {} {}", value(), nested(1), block(0), compound(1), negated(true),
        guarded(5), guarded(6), armed(7), armed(8), field(), constant(1), EIGHT);
}
"#;
    const OUTCOME: &str = "9 7 0 5 false 50 60 70 80 33 9 8";

    /// Mutants of [`PROGRAM`], each with what is printed then.
    const MUTANTS: &[(Genre, &str, &str, &str)] = &[
        (Genre::FnValue, "9 }", "3", "3 7 0 5 false 50 60 70 80 33 9 8"),
        (Genre::BinaryOperator, "+ 2 *", "-", "9 251 0 5 false 50 60 70 80 33 9 8"),
        (Genre::BinaryOperator, "* 3", "+", "9 6 0 5 false 50 60 70 80 33 9 8"),
        (Genre::BinaryOperator, "- 1", "+", "9 7 2 5 false 50 60 70 80 33 9 8"),
        (Genre::BinaryOperator, "+= 4", "*=", "9 7 0 4 false 50 60 70 80 33 9 8"),
        (Genre::UnaryOperator, "!a", "", "9 7 0 5 true 50 60 70 80 33 9 8"),
        (Genre::MatchArmGuard, "one == 5", "true", "9 7 0 5 false 50 50 70 80 33 9 8"),
        (Genre::MatchArmGuard, "one == 5", "false", "9 7 0 5 false 60 60 70 80 33 9 8"),
        (Genre::BinaryOperator, "== 5", "!=", "9 7 0 5 false 60 50 70 80 33 9 8"),
        (Genre::MatchArm, "one if", "", "9 7 0 5 false 60 60 70 80 33 9 8"),
        (Genre::MatchArm, "7 =>", "", "9 7 0 5 false 50 60 80 80 33 9 8"),
        (Genre::StructField, "a: 10", "", "9 7 0 5 false 50 60 70 80 24 9 8"),
        (Genre::StructField, "b, ..", "", "9 7 0 5 false 50 60 70 80 15 9 8"),
        (Genre::BinaryOperator, "| 8", "&", "9 7 0 5 false 50 60 70 80 33 0 8"),
    ];

    /// Compiles [`PROGRAM`] with all of [`MUTANTS`] and the switch, and runs it as the source and as each of them.
    #[test]
    fn each_mutant_is_there_when_it_is_chosen_and_none_otherwise() {
        let folder = zrt_needs::TemporaryFolder::new("rewrite");
        let mutants: Vec<_> = MUTANTS.iter().map(|(genre, mark, with, _)| (*genre, *mark, *with)).collect();
        std::fs::write(folder.join("main.rs"), written(PROGRAM, &mutants).text).unwrap();
        std::fs::write(folder.join("switch.rs"), super::super::copy::SWITCH).unwrap();
        let rustc = |arguments: &[&str]| {
            let mut command = std::process::Command::new("rustc");
            command.args(["--edition", "2024", "--cap-lints", "allow"]).args(arguments);
            let status = command.env("RUSTC_BOOTSTRAP", "zrt_switch").current_dir(&*folder).status();
            assert!(status.unwrap().success());
        };
        rustc(&["switch.rs", "--crate-type", "lib", "--crate-name", "zrt_switch"]);
        rustc(&["main.rs", "-C", "overflow-checks=no", "--extern", "zrt_switch=libzrt_switch.rlib"]);
        let record = folder.join("record");
        let print = |variable: &str, value: &str| {
            let mut command = std::process::Command::new(folder.join("main"));
            command.env_remove("ZRT_SWITCH").env_remove("ZRT_SWITCH_RECORD").env(variable, value);
            String::from_utf8(command.output().unwrap().stdout).unwrap().trim().to_owned()
        };
        assert_eq!(print("ZRT_SWITCH", "0"), OUTCOME);
        assert_eq!(print("ZRT_SWITCH_RECORD", record.to_str().unwrap()), OUTCOME);
        let reached = super::super::cases::reached(&std::fs::read(record).unwrap());
        assert!(reached.into_iter().eq(1..=MUTANTS.len() as u32));
        for (number, (_, mark, with, outcome)) in (1..).zip(MUTANTS) {
            let number: u32 = number;
            assert_eq!(print("ZRT_SWITCH", &number.to_string()), *outcome, "{mark} with {with}");
        }
    }
}
