//! `cargo xtask mutants`: mistakes planted by hand, each of which a named test must notice.
//!
//! They are of kinds that a tool which mutates Rust cannot make: orders, assembly, packets, rules of the checking mode.
//! Contract: the rows of [`table`], [`assembly`] and [`products`] are planted one at a time into a copy of the
//! repository under `target/mutants`, which has its own build outputs; no file outside that folder is written. A row
//! whose text is not found exactly once, or whose mutant does not compile, is an error. Every test must first pass
//! without a mutant, and none may be skipped for want of what `ZRT_MODELS` and the like name. Cost: a build of what
//! the tests need, then for each row a build of what it touches.

mod assembly;
mod products;
mod runs;
mod table;
mod tree;

use crate::process;
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
    plant(&Tree::new(&root, process::cargo_program())?, &chosen)
}

/// Plants rows one after the other. The tests must first pass without them.
fn plant(tree: &Tree, chosen: &[&Mutant]) -> Result<(), Box<dyn Error>> {
    let commands: BTreeSet<&[&str]> = chosen.iter().map(|mutant| mutant.test).collect();
    for command in commands {
        without_mutant(tree, command)?;
    }
    // A refused mutant counts as killed, so the assembler must be there and take the sources as they are.
    if chosen.iter().any(|mutant| is_assembly(mutant)) && tree.assemble("without")? != Assembled::Taken {
        return Err(
            "the kernels cannot be assembled without a mutant: `cargo xtask asm` needs LLVM 19".into()
        );
    }
    let mut wrong = 0;
    let mut lines = Vec::new();
    for mutant in chosen {
        let started = Instant::now();
        let outcome = with_mutant(tree, mutant)?;
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
        Run { outcome: Outcome::Survived, tests: 0 } => {
            Err(format!("cargo test {shown}: no test ran").into())
        }
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
        (Outcome::DoesNotCompile | Outcome::Skipped(_), _) => (outcome.to_string(), false),
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
    use zrt_needs::TemporaryFolder;
    use zrt_needs::write_program;

    const TEST: &[&str] = &["-p", "zrt-lib", "--", "one"];
    const LIBRARY: &str = "lib/src/lib.rs";
    const KERNEL: &str = "asm/gfx1201/kernel.s";
    /// Instead of cargo: the library and the kernel say by words what becomes of them.
    const CARGO: &str = r#"echo "$*" >> ../ran
        case "$*" in
            "xtask asm") ! grep -q refused asm/gfx1201/kernel.s; exit;;
            "test --no-run"*) ! grep -q misspelt lib/src/lib.rs; exit;;
            *) grep -q "without tests" lib/src/lib.rs && exit 0
               grep -q "without models" lib/src/lib.rs && echo "skipped: one: no model" >&2;;
        esac
        if grep -q wrong lib/src/lib.rs asm/gfx1201/kernel.s; then
            echo "test one ... FAILED"; echo "test result: FAILED. 3 passed; 1 failed; 0 ignored"; exit 1
        fi
        echo "test result: ok. 4 passed; 0 failed; 0 ignored""#;

    /// A row that writes a word over the text of a file.
    fn row(name: &'static str, file: &'static str, replace: &'static str, expected: Expected) -> Mutant {
        Mutant { name, file, find: "right", replace, test: TEST, expected }
    }

    fn equivalent() -> Expected {
        Expected::Equivalent("the same")
    }

    /// Plants rows into a repository of these two files: what is told, and what cargo was asked for.
    fn planted(library: &str, kernel: &str, rows: &[Mutant]) -> (Result<(), String>, Vec<String>) {
        let root = TemporaryFolder::new("mutants");
        for (file, text) in [(LIBRARY, library), (KERNEL, kernel)] {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), text).unwrap();
        }
        write_program(&root.join("cargo"), CARGO);
        let tree = Tree::new(&root, root.join("cargo").to_str().unwrap().to_owned()).unwrap();
        let told = plant(&tree, &rows.iter().collect::<Vec<_>>()).map_err(|error| error.to_string());
        let ran = std::fs::read_to_string(root.join("target/mutants/ran")).unwrap();
        for (file, text) in [(LIBRARY, library), (KERNEL, kernel)] {
            assert_eq!(std::fs::read_to_string(root.join(file)).unwrap(), text);
        }
        (told, ran.lines().map(str::to_owned).collect())
    }

    #[test]
    fn each_row_is_planted_alone_and_the_harness_gets_what_is_behind_the_dashes() {
        let rows = [
            row("killed", LIBRARY, "wrong", Expected::Killed),
            row("same", LIBRARY, "the same", equivalent()),
            row("killed-kernel", KERNEL, "wrong", Expected::Killed),
            row("refused", KERNEL, "refused", Expected::Killed),
            row("same-kernel", KERNEL, "the same", equivalent()),
        ];
        let (told, ran) = planted("right", "right", &rows);
        assert_eq!(told, Ok(()));
        let (build, test) = ("test --no-run -p zrt-lib", "test -p zrt-lib -- one");
        let mut expected = vec![build, test, "xtask asm"];
        expected.extend([build, test].repeat(2));
        expected.extend(["xtask asm", build, test, "xtask asm", "xtask asm", build, test]);
        assert_eq!(ran, expected);
    }

    #[test]
    fn rows_that_are_not_as_the_table_says_are_counted() {
        let rows = [
            row("killed", LIBRARY, "wrong", equivalent()),
            row("same", LIBRARY, "the same", Expected::Killed),
            row("misspelt", LIBRARY, "misspelt", Expected::Killed),
            row("right", LIBRARY, "the same", equivalent()),
        ];
        let told = "3 of 4 rows are not as the table says";
        assert_eq!(planted("right", "right", &rows).0, Err(told.into()));
    }

    #[test]
    fn nothing_is_planted_where_tests_or_kernels_fail_without_a_mutant() {
        let rust = || [row("rust", LIBRARY, "the same", equivalent())];
        let kernel = [row("kernel", KERNEL, "the same", equivalent())];
        let command = "cargo test -p zrt-lib -- one";
        for (library, told) in [
            ("right, wrong", "without a mutant: killed by one"),
            ("right, misspelt", "without a mutant: does not compile"),
            (
                "right without models",
                "without a mutant: not held against all its tests: skipped: one: no model",
            ),
        ] {
            assert_eq!(planted(library, "", &rust()).0, Err(format!("{command} {told}")));
        }
        let told = format!("{command}: no test ran");
        assert_eq!(planted("right without tests", "", &rust()).0, Err(told));
        let told = "the kernels cannot be assembled without a mutant: `cargo xtask asm` needs LLVM 19";
        assert_eq!(planted("", "right, refused", &kernel).0, Err(told.into()));
        // Rows in Rust need no assembler.
        assert_eq!(planted("right", "refused", &rust()).0, Ok(()));
    }

    #[test]
    fn rows_are_chosen_by_how_their_name_or_file_begins() {
        let mutant = row("ring-order", "mem/src/lib.rs", "", Expected::Killed);
        let takes = |beginnings: &[&str]| {
            let beginnings = beginnings.iter().map(|one| (*one).to_owned()).collect();
            MutantsArguments { beginnings, list: false }.take(&mutant)
        };
        assert!(takes(&[]) && takes(&["ring-"]) && takes(&["mem/"]) && takes(&["pm4/", "mem/"]));
        assert!(!takes(&["pm4/"]) && !takes(&["order", "src/lib.rs"]));
    }

    #[test]
    fn a_beginning_of_no_row_is_refused() {
        let run = |beginning: &str| run(&MutantsArguments { beginnings: vec![beginning.into()], list: true });
        assert_eq!(
            run("no-such-row").unwrap_err().to_string(),
            "no row begins with that; `cargo xtask mutants --list` prints them"
        );
        run("ring-").unwrap();
    }

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
        for neither in [Outcome::DoesNotCompile, Outcome::Skipped("one: no model".into())] {
            assert!(!judge(&neither, &Expected::Killed).1 && !judge(&neither, &reason).1);
        }
    }
}
