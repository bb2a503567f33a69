//! `zrt completions` and `zrt man` know every subcommand, and every option of both programs.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod kernel_files;

use kernel_files::Folder;
use std::collections::BTreeSet;
use std::process::Command;

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "elvish", "powershell"];

#[track_caller]
fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).env("NO_COLOR", "1").output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn zrt(arguments: &[&str]) -> String {
    run(env!("CARGO_BIN_EXE_zrt"), arguments)
}

/// The subcommands, as `zrt --help` lists them.
fn subcommands() -> Vec<String> {
    let help = zrt(&["--help"]);
    let (_, list) = help.split_once("Commands:\n").unwrap();
    let lines = list.lines().take_while(|line| !line.is_empty());
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names: Vec<String> =
        names.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
    let names: Vec<String> = names.into_iter().filter(|name| name != "help").collect();
    assert!(names.len() >= 11 && names.iter().any(|name| name == "pm4-test"), "{names:?}");
    names
}

/// The long options that a help text lists. Two blanks end a line's options; the description follows them.
fn options(help: &str) -> BTreeSet<String> {
    let lines = help.lines().map(str::trim_start).filter(|line| line.starts_with('-'));
    let words = lines.filter_map(|line| line.split("  ").next()).flat_map(|line| line.split([' ', ',']));
    let options: BTreeSet<String> = words.filter(|word| word.starts_with("--")).map(str::to_owned).collect();
    assert!(options.contains("--help"), "{help}");
    options
}

#[test]
fn completions_of_every_shell_know_every_subcommand_and_option() {
    let names = subcommands();
    for shell in SHELLS {
        let script = zrt(&["completions", shell]);
        for name in &names {
            assert!(script.contains(name.as_str()), "{shell} does not complete {name}");
            for option in options(&zrt(&[name, "--help"])) {
                // Fish writes `-l grid`.
                let is_there = script.contains(&option) || script.contains(&format!("-l {}", &option[2..]));
                assert!(is_there, "{shell} does not complete {name} {option}");
            }
        }
        let bench = zrt(&["completions", shell, "--program", "zrt-bench"]);
        assert!(bench.contains("zrt-bench") && bench.contains("workload"), "{shell}: {bench}");
    }
}

#[test]
fn bash_takes_its_script_and_completes_a_subcommand() {
    if !zrt_needs::programs(&["bash"]) {
        return;
    }
    let folder = Folder::new("pages-bash");
    folder.write("zrt.bash", zrt(&["completions", "bash"]).as_bytes());
    let ask = ". ./zrt.bash; COMP_WORDS=(zrt pm4); COMP_CWORD=1; _zrt zrt pm4 zrt; echo \"${COMPREPLY[@]}\"";
    let mut bash = Command::new("bash");
    let output = bash.args(["--norc", "-c", ask]).current_dir(folder.path(".")).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "pm4-test\n");
}

#[test]
fn manual_pages_are_one_for_each_program_and_subcommand() {
    let folder = Folder::new("pages-man");
    let said = zrt(&["man", &folder.path("man1")]);
    let (mut expected, names) = (vec!["zrt-bench.1".to_owned(), "zrt.1".to_owned()], subcommands());
    expected.extend(names.iter().map(|name| format!("zrt-{name}.1")));
    expected.sort();
    let pages = Folder::at(&folder.path("man1"));
    assert_eq!(pages.names(), expected);
    assert!(said.starts_with(&format!("{} pages in ", expected.len())), "{said}");
    // In roff a hyphen that is one is written `\-`.
    let page = |name: &str| std::fs::read_to_string(pages.path(name)).unwrap().replace("\\-", "-");
    for name in &names {
        let text = page(&format!("zrt-{name}.1"));
        assert!(text.contains(&format!("zrt {name}")), "{name}: {text}");
        for option in options(&zrt(&[name, "--help"])) {
            assert!(text.contains(&option), "the page of {name} lacks {option}");
        }
        assert!(page("zrt.1").contains(&format!("zrt-{name}(1)")), "the page of zrt lacks {name}");
    }
    for option in options(&run(env!("CARGO_BIN_EXE_zrt-bench"), &["--help"])) {
        assert!(page("zrt-bench.1").contains(&option), "the page of zrt-bench lacks {option}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_told() {
    let folder = Folder::new("pages-refused");
    let file = folder.write("file", b"");
    let output =
        Command::new(env!("CARGO_BIN_EXE_zrt")).args(["man", &format!("{file}/man1")]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && error.contains("cannot be written"), "{error}");
}
