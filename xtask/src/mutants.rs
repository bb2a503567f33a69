//! `cargo xtask mutants`: mistakes planted by hand, each of which a named test must notice.
//!
//! They are of kinds that a tool which mutates Rust cannot make: orders, assembly, packets, rules of the checking mode.
//! Contract: the rows of [`table`], [`assembly`] and [`products`] are planted one at a time into a copy of the
//! repository under `target/mutants`, which has its own build outputs; no file outside that folder is written. A row
//! whose text is not found exactly once, or whose mutant does not compile, is an error. Every test must first pass
//! without a mutant. Cost: a build of what the tests need, then for each row a build of what it touches.

mod assembly;
mod products;
mod runs;
mod table;
mod tree;

use runs::{Outcome, Run};
use std::collections::BTreeSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;
use table::{Expected, Mutant};
use tree::{Assembled, Tree};

/// Options of `xtask mutants`.
#[derive(clap::Args)]
pub struct MutantsArguments {
    /// Plant only the rows whose name or file begins with this [default: all rows].
    #[arg(value_name = "BEGINNING")]
    beginnings: Vec<String>,
    /// List the rows, and plant nothing.
    #[arg(long)]
    list: bool,
}

impl MutantsArguments {
    fn take(&self, mutant: &Mutant) -> bool {
        let begins = |with: &String| mutant.name.starts_with(with) || mutant.file.starts_with(with);
        self.beginnings.is_empty() || self.beginnings.iter().any(begins)
    }
}

/// All rows.
fn all() -> impl Iterator<Item = &'static Mutant> {
    table::MUTANTS.iter().chain(assembly::MUTANTS).chain(products::MUTANTS)
}

/// Plants and runs, and prints the outcome of each.
pub fn run(arguments: &MutantsArguments) -> Result<(), Box<dyn Error>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let chosen: Vec<&Mutant> = all().filter(|mutant| arguments.take(mutant)).collect();
    if chosen.is_empty() {
        return Err("no row begins with that; `cargo xtask mutants --list` prints them".into());
    }
    for mutant in &chosen {
        tree::planted(&std::fs::read_to_string(root.join(mutant.file))?, mutant)?;
    }
    if arguments.list {
        chosen.iter().for_each(|mutant| println!("{:34} {}", mutant.name, mutant.file));
        return Ok(());
    }
    let tree = Tree::new(&root)?;
    let commands: BTreeSet<&[&str]> = chosen.iter().map(|mutant| mutant.test).collect();
    for command in commands {
        without_mutant(&tree, command)?;
    }
    // A refused mutant counts as killed, so the assembler must be there and take the sources as they are.
    if chosen.iter().any(|mutant| is_assembly(mutant)) && tree.assemble("without")? != Assembled::Taken {
        return Err(
            "the kernels cannot be assembled without a mutant: `cargo xtask asm` needs LLVM 19".into()
        );
    }
    let mut wrong = 0;
    let mut lines = Vec::new();
    for mutant in &chosen {
        let started = Instant::now();
        let outcome = with_mutant(&tree, mutant)?;
        let (verdict, is_right) = judge(&outcome, &mutant.expected);
        wrong += usize::from(!is_right);
        let seconds = started.elapsed().as_secs();
        println!("{:34} {verdict} ({seconds} s)", mutant.name);
        lines.push(format!("{:34} {:6} {}", mutant.name, if is_right { "right" } else { "WRONG" }, verdict));
    }
    println!("\n{}", lines.join("\n"));
    match wrong {
        0 => Ok(()),
        _ => Err(format!("{wrong} of {} rows are not as the table says", chosen.len()).into()),
    }
}

/// The command in the tree as it is: it must pass, and must have run a test.
fn without_mutant(tree: &Tree, command: &[&str]) -> Result<(), Box<dyn Error>> {
    let shown = command.join(" ");
    println!("== without a mutant: cargo test {shown}");
    match tree.test("without", command)? {
        Run { outcome: Outcome::Survived, tests: 1.. } => Ok(()),
        Run { tests: 0, .. } => Err(format!("cargo test {shown}: no test ran").into()),
        run => Err(format!("cargo test {shown} without a mutant: {}", run.outcome).into()),
    }
}

fn is_assembly(mutant: &Mutant) -> bool {
    mutant.file.starts_with("asm/gfx1201/")
}

fn with_mutant(tree: &Tree, mutant: &Mutant) -> Result<Outcome, Box<dyn Error>> {
    tree.plant(mutant)?;
    let assembled = if is_assembly(mutant) { tree.assemble(mutant.name)? } else { Assembled::Taken };
    let outcome = match assembled {
        Assembled::Refused => Outcome::Refused,
        Assembled::TimedOut => Outcome::TimedOut,
        Assembled::Taken => tree.test(mutant.name, mutant.test)?.outcome,
    };
    tree.restore()?;
    Ok(outcome)
}

/// What is printed, and whether the table says so.
fn judge(outcome: &Outcome, expected: &Expected) -> (String, bool) {
    match (outcome, expected) {
        (Outcome::DoesNotCompile, _) => (outcome.to_string(), false),
        (Outcome::Survived, Expected::Equivalent(reason)) => (format!("equivalent: {reason}"), true),
        (Outcome::Survived, Expected::Killed) => (outcome.to_string(), false),
        (_, Expected::Killed) => (outcome.to_string(), true),
        (_, Expected::Equivalent(_)) => (format!("{outcome}, though the table calls it equivalent"), false),
    }
}

/// The folder of the copy, its build outputs and what the tests printed.
fn scratch_folder(root: &Path) -> PathBuf {
    root.join("target/mutants")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_once_and_named_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut names = BTreeSet::new();
        for mutant in all() {
            let text = std::fs::read_to_string(root.join(mutant.file)).expect(mutant.file);
            let changed = tree::planted(&text, mutant).unwrap_or_else(|error| panic!("{error}"));
            assert_ne!(changed, text, "{} changes nothing", mutant.name);
            assert!(names.insert(mutant.name), "{} is there twice", mutant.name);
            assert!(mutant.test.first() == Some(&"-p"), "{}: the test names no package", mutant.name);
        }
    }

    #[test]
    fn what_the_table_does_not_say_is_wrong() {
        let reason = Expected::Equivalent("the same");
        assert!(judge(&Outcome::Survived, &reason).1 && !judge(&Outcome::Survived, &Expected::Killed).1);
        for killed in [Outcome::Killed(vec!["a".into()]), Outcome::TimedOut, Outcome::Refused] {
            assert!(judge(&killed, &Expected::Killed).1 && !judge(&killed, &reason).1);
        }
        assert!(!judge(&Outcome::DoesNotCompile, &Expected::Killed).1);
    }
}
