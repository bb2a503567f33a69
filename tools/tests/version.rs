//! `--version`: name, version, commit and the day of the commit; and how the build finds them.

#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

#[path = "../build.rs"]
#[allow(dead_code)]
mod build_script;
mod kernel_files;

use build_script::{Repository, build_text};
use kernel_files::Folder;
use std::path::Path;
use std::process::Command;

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

fn version(program: &str) -> String {
    let output = Command::new(program).arg("--version").output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

/// What git says about the checkout that this test was built from.
fn git(arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-C", concat!(env!("CARGO_MANIFEST_DIR"), "/..")]).args(arguments).env("TZ", "UTC0");
    let output = git.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn both_programs_say_name_version_commit_and_day() {
    let expected = match Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.git")).exists() {
        false => "unknown".to_owned(),
        true if zrt_needs::programs(&["git"]) => {
            let day = git(&["log", "-1", "--date=format-local:%Y-%m-%d", "--format=%cd"]);
            format!("{} {day}", &git(&["rev-parse", "HEAD"])[..8])
        }
        true => return,
    };
    for (name, program) in
        [("zrt", env!("CARGO_BIN_EXE_zrt")), ("zrt-bench", env!("CARGO_BIN_EXE_zrt-bench"))]
    {
        assert_eq!(version(program), format!("{name} 0.1.0 ({expected})\n"));
    }
}

/// A checkout made of files.
fn checkout(name: &str, files: &[(&str, &str)]) -> Option<String> {
    let folder = Folder::new(name);
    for (path, text) in files {
        let path = folder.path(path);
        std::fs::create_dir_all(Path::new(&path).parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    Repository::of(Path::new(&folder.path("checkout"))).and_then(|repository| repository.head())
}

#[test]
fn the_commit_is_found_wherever_it_is_kept() {
    let commit = format!("{COMMIT}\n");
    let packed = format!("# pack-refs with: peeled\n{} refs/heads/other\n{commit}", "f".repeat(40));
    let packed = packed.replace(&commit, &format!("{COMMIT} refs/heads/main\n"));
    let on_main = "ref: refs/heads/main\n";
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("version-detached", &[("checkout/.git/HEAD", &commit)]),
        ("version-loose", &[("checkout/.git/HEAD", on_main), ("checkout/.git/refs/heads/main", &commit)]),
        ("version-packed", &[("checkout/.git/HEAD", on_main), ("checkout/.git/packed-refs", &packed)]),
        (
            "version-worktree",
            &[
                ("checkout/.git", "gitdir: ../main/.git/worktrees/one\n"),
                ("main/.git/worktrees/one/HEAD", on_main),
                ("main/.git/worktrees/one/commondir", "../..\n"),
                ("main/.git/refs/heads/main", &commit),
            ],
        ),
    ];
    for (name, files) in cases {
        assert_eq!(checkout(name, files).as_deref(), Some("01234567"), "{name}");
    }
}

#[test]
fn what_is_no_checkout_has_no_commit() {
    let cases: [(&str, &[(&str, &str)]); 4] = [
        ("version-archive", &[("checkout/Cargo.toml", "")]),
        // A source archive that was unpacked inside of another repository.
        ("version-inside", &[(".git/HEAD", COMMIT), ("checkout/Cargo.toml", "")]),
        ("version-unborn", &[("checkout/.git/HEAD", "ref: refs/heads/main\n")]),
        (
            "version-damaged",
            &[
                ("checkout/.git/HEAD", "ref: refs/heads/main\n"),
                ("checkout/.git/refs/heads/main", "no commit\n"),
            ],
        ),
    ];
    for (name, files) in cases {
        assert_eq!(checkout(name, files), None, "{name}");
    }
    assert_eq!(build_text(None, None), "unknown");
    assert_eq!(build_text(Some("01234567"), None), "01234567");
    assert_eq!(build_text(Some("01234567"), Some("2026-11-22")), "01234567 2026-11-22");
}
