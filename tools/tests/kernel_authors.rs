//! docs/kernel-authors.md does what it says: its files are written out, its commands run, its answers compared.
//!
//! Contract: a block with `name=FILE` is a file. A block ````
//! ```sh ```` is run by `sh` in one folder, in the document's order; all its commands but the last must succeed, the last ends with `exit=CODE`, by default 0. A block
//! ```` ```text ```` is what the commands before it print: its lines in this order, others between them, `…` for anything
//! within a line. Blocks with `needs=rust` are run where a nightly Rust can build `core`, in a folder of their own.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::Folder;
use std::process::Command;

const DOCUMENT: &str = include_str!("../../docs/kernel-authors.md");
/// Programs that the commands start.
const COMPILERS: &[&str] = &["clang-22", "ld.lld-22", "llvm-mc-19"];
/// What is left out of an answer.
const ELLIPSIS: char = '…';

/// One fenced block.
#[derive(Debug)]
struct Block {
    /// Line of its opening fence, from 1.
    line: usize,
    language: &'static str,
    /// `key=value` after the language.
    options: Vec<(&'static str, &'static str)>,
    text: String,
}

impl Block {
    fn option(&self, key: &str) -> Option<&'static str> {
        self.options.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }

    fn is_of_rust(&self) -> bool {
        self.option("needs") == Some("rust")
    }

    fn exit_code(&self) -> i32 {
        self.option("exit").map_or(0, |code| code.parse().unwrap())
    }

    fn is_commands(&self) -> bool {
        self.language == "sh" && self.option("name").is_none()
    }
}

fn blocks() -> Vec<Block> {
    let (mut blocks, mut open): (Vec<Block>, Option<Block>) = (Vec::new(), None);
    for (index, line) in DOCUMENT.lines().enumerate() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(""), Some(_)) => blocks.extend(open.take()),
            (Some(words), None) => {
                let mut words = words.split_whitespace();
                let language = words.next().unwrap_or_else(|| panic!("line {}: no language", index + 1));
                let options = words.map(|word| word.split_once('=').unwrap()).collect();
                open = Some(Block { line: index + 1, language, options, text: String::new() });
            }
            (Some(_), Some(block)) => panic!("line {}: {} is not closed", index + 1, block.line),
            (None, Some(block)) => block.text.extend([line, "\n"]),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{open:?} is not closed");
    blocks
}

/// Commands with the answer that the document quotes, which is empty if it quotes none.
fn dialogues(blocks: &[Block]) -> Vec<(&Block, &str)> {
    let answer = |index: usize| match blocks.get(index + 1) {
        Some(next) if next.language == "text" => next.text.as_str(),
        _ => "",
    };
    let commands = blocks.iter().enumerate().filter(|(_, block)| block.is_commands());
    commands.map(|(index, block)| (block, answer(index))).collect()
}

/// Writes the document's files.
fn write_files(folder: &Folder, blocks: &[Block]) {
    for block in blocks {
        if let Some(name) = block.option("name") {
            folder.write(name, block.text.as_bytes());
        }
    }
}

/// Runs commands in a folder; returns their code and what they wrote, errors too.
fn run(folder: &Folder, block: &Block) -> (Option<i32>, String) {
    let programs = std::path::Path::new(env!("CARGO_BIN_EXE_zrt")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths([programs.to_owned()].into_iter().chain(std::env::split_paths(&path)));
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &format!("exec 2>&1\n{}", block.text)]).current_dir(folder.path("."));
    // What cargo sets for a test must not reach the cargo of a command.
    let of_cargo = std::env::vars_os().map(|(name, _)| name).filter(|name| {
        let name = name.to_string_lossy();
        name.starts_with("CARGO") && name != "CARGO_HOME" || name == "RUSTUP_TOOLCHAIN" || name == "RUSTFLAGS"
    });
    for name in of_cargo {
        shell.env_remove(name);
    }
    let output = shell.env("PATH", path.unwrap()).env("ZRT_DEVICE", "virtual").output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

/// Whether a line is what the document quotes, `…` being anything.
fn is_quoted(quoted: &str, line: &str) -> bool {
    let mut parts = quoted.split(ELLIPSIS);
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = line.strip_prefix(first) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, inner)) = parts.split_last() else { return rest.is_empty() };
    for part in inner {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The first quoted line that does not occur, in order, among the lines of an answer.
fn missing<'a>(quoted: &'a str, answer: &str) -> Option<&'a str> {
    let mut lines = answer.lines();
    quoted.lines().find(|quoted| !lines.any(|line| is_quoted(quoted, line)))
}

/// Compares commands with the document.
fn check(folder: &Folder, (block, quoted): (&Block, &str)) {
    let (code, answer) = run(folder, block);
    let at = format!("docs/kernel-authors.md:{}\n{}", block.line, block.text);
    assert_eq!(code, Some(block.exit_code()), "{at}\n{answer}");
    if let Some(line) = missing(quoted, &answer) {
        panic!("{at}\ndoes not print\n{line}\nbut\n{answer}");
    }
}

#[test]
fn commands_print_what_the_document_quotes() {
    if !zrt_needs::programs(COMPILERS) {
        return;
    }
    let folder = Folder::new("kernel-authors");
    let blocks = blocks();
    write_files(&folder, &blocks);
    let dialogues = dialogues(&blocks);
    dialogues.into_iter().filter(|(block, _)| !block.is_of_rust()).for_each(|one| check(&folder, one));
}

#[test]
fn a_kernel_in_rust_compiles_and_runs() {
    if !zrt_needs::nightly_core() {
        return;
    }
    let folder = Folder::new("kernel-authors-rust");
    let blocks = blocks();
    write_files(&folder, &blocks);
    let dialogues: Vec<(&Block, &str)> =
        dialogues(&blocks).into_iter().filter(|(block, _)| block.is_of_rust()).collect();
    assert!(!dialogues.is_empty());
    dialogues.into_iter().for_each(|one| check(&folder, one));
}

/// Every rule has a heading, a wrong kernel whose finding is quoted, and a right one.
#[test]
fn every_rule_is_broken_and_kept() {
    let section = |rule: &str| {
        let (_, rest) = DOCUMENT.split_once(&format!("\n### `{rule}`: ")).unwrap_or_else(|| panic!("{rule}"));
        rest.split("\n##").next().unwrap().to_owned()
    };
    for rule in RULES {
        let text = section(rule);
        assert!(text.contains(&format!("```text\n{rule}: ")), "no finding of {rule} is quoted");
        // What keeps `bounds` is the first example of the document.
        let text = if *rule == "bounds" { DOCUMENT } else { &text };
        let kept = text.split("```sh\n").skip(1).any(|block| block.starts_with("sh compile -DRIGHT "));
        assert!(kept, "no kernel keeps {rule}");
    }
    let checking = include_str!("../../docs/checking.md");
    for line in checking.lines().filter_map(|line| line.strip_prefix("| `")) {
        let rule = line.split('`').next().unwrap();
        assert!(RULES.contains(&rule), "{rule} is in docs/checking.md and not in docs/kernel-authors.md");
    }
}

/// The rules, by the names that findings print.
const RULES: &[&str] =
    &["counters", "hazard", "uninitialised", "race", "visibility", "bounds", "progress", "advice"];

/// Forms of `--arg` as `zrt` itself lists them when it refuses one.
#[test]
fn every_form_of_an_argument_is_in_the_table() {
    let folder = Folder::new("kernel-authors-forms");
    let object = folder.words("double.o", &kernel_files::DOUBLE_OBJECT);
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    let output = command.args(["launch", &object, "--grid", "1", "--block", "32", "--arg", "x"]).output();
    let error = String::from_utf8(output.unwrap().stderr).unwrap();
    let (_, forms) = error.split_once("must be ").unwrap();
    let names = forms.split(|one: char| !one.is_ascii_alphanumeric()).filter(|word| {
        forms.contains(&format!("{word}:")) && word.starts_with(|first: char| first.is_ascii_lowercase())
    });
    let names: Vec<&str> = names.collect();
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        assert!(DOCUMENT.contains(&format!("`{name}:")), "{name} is in no table");
    }
}

#[test]
fn quotations_are_compared_line_by_line() {
    assert!(is_quoted("at a+…(b.c:4): x …", "at a+0x1c (b.c:4): x v1"));
    assert!(!is_quoted("at a+…(b.c:4): x", "at a+0x1c (b.c:4): x v1"));
    assert!(!is_quoted("v1", "at v1"));
    assert_eq!(missing("one\nthree\n", "one\ntwo\nthree\n"), None);
    assert_eq!(missing("three\none\n", "one\ntwo\nthree\n"), Some("one"));
}
