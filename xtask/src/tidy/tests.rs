//! What the rules say of made-up files and of a whole made-up repository.

use super::*;
use zrt_needs::TemporaryFolder;

fn put(root: &Path, path: &str, text: &str) {
    let file = root.join(path);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

/// A workspace of which `xtask` alone has a dependency without the feature that another crate gives it.
fn put_workspace(root: &Path) {
    put(root, "Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"other\", \"shared\", \"xtask\"]\n");
    let mut lock = "version = 4\n".to_owned();
    for (name, rest) in [
        ("other", "[dependencies]\nshared = { path = \"../shared\", features = [\"more\"] }\n"),
        ("shared", "[features]\nmore = []\n"),
        ("xtask", "[dependencies]\nshared = { path = \"../shared\" }\n"),
    ] {
        let package = format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n");
        put(root, &format!("{name}/Cargo.toml"), &(package + rest));
        put(root, &format!("{name}/src/lib.rs"), "//! Nothing.\n");
        let depends = if name == "shared" { "" } else { "dependencies = [\n \"shared\",\n]\n" };
        lock.push_str(&format!("\n[[package]]\nname = \"{name}\"\nversion = \"0.1.0\"\n{depends}"));
    }
    put(root, "Cargo.lock", &lock);
}

/// A repository in which each rule finds something.
fn made_up() -> TemporaryFolder {
    let root = TemporaryFolder::new("tidy");
    put_workspace(&root);
    let long = "word ".repeat(30);
    for (path, text) in [
        ("ARCHITECTURE.md", "# Map\n"),
        ("docs/README.md", "# Documents\n"),
        ("docs/decisions/README.md", "# Records\n"),
        ("docs/reference/hardware.md", ""),
        ("docs/reference/instruction-set.md", ""),
        ("docs/a.md", &format!("As \u{a7}1 says.\n[a](none.md)\n{long}x\n")),
        ("a/src/lib.rs", &format!("fn f() {{}} \nfn g() {{ unsafe {{ h() }} }}\n// {long}\n")),
        ("a/src/x.rs", "//! X.\nuse crate::y::Y;\n"),
        ("a/src/y.rs", "//! Y.\nuse crate::x::X;\n"),
        ("vgpu/src/lib.rs", "//! Card.\nmod extra;\n"),
        ("vgpu/src/config.rs", "//! Settings.\nuse crate::memory::Rights;\n"),
        ("kmd/tests/asks.rs", "//! Asks.\nfn f() { zrt_needs::models(); }\n"),
        ("target/made.rs", "fn f() {} \n"),
    ] {
        put(&root, path, text);
    }
    root
}

#[test]
fn every_rule_is_asked_about_every_file() {
    let root = made_up();
    let found = findings(&root).unwrap();
    for expected in [
        "a/src/lib.rs:1: white space at the end of the line",
        "a/src/lib.rs: no module documentation at the top",
        "a/src/lib.rs:2: unsafe outside its 3 places: kmd::syscalls, mem::shared, vgpu::simd",
        "a/src/lib.rs:3: a comment of 153 columns, at most 120",
        "ARCHITECTURE.md: does not say: `unsafe` exists in `kmd::syscalls`, `mem::shared`, `vgpu::simd` ",
        "files name each other in a circle: a/src/x.rs, a/src/y.rs",
        "other/Cargo.toml: the table of dependencies has no row for this crate",
        "dependencies: pm4 has a row and is no crate of the workspace",
        "ARCHITECTURE.md: row mem: None, and the table of dependencies \"Linux\"",
        "vgpu/src/config.rs:2: `settings` names `memory` of `memory`, which lies above it",
        "vgpu/src/lib.rs: module extra is in no room",
        "passes: kmd/asks asks for what the pass bare takes away and is not in it",
        "docs/a.md:1: \u{a7}1 of which document?",
        "docs/a.md:2: a link to none.md, which does not exist",
        "docs/a.md:3: 151 columns, at most 100",
        "docs/README.md: no link to a.md",
    ] {
        assert!(found.iter().any(|finding| finding == expected), "{expected:?} in {found:#?}");
    }
    let shared = root.canonicalize().unwrap().join("shared");
    let features = format!(
        "Cargo.toml: xtask alone has shared v0.1.0 ({}), the workspace other features",
        shared.display()
    );
    assert!(found.contains(&features), "{features:?} in {found:#?}");
    assert!(!found.iter().any(|finding| finding.starts_with("target/")), "{found:#?}");
    let refused = run(&root).unwrap_err().to_string();
    assert_eq!(refused, format!("tidy: {} findings", found.len()));
}

#[test]
fn files_of_all_folders_are_read_but_of_those_that_are_not_ours() {
    let root = TemporaryFolder::new("collect");
    for path in ["a.md", "a/b/c.rs", "a/target/made.rs", "a/targets/d.rs", ".git/e", ".ci/run", "f/models"] {
        put(&root, path, "");
    }
    for folder in ["models", "fuzz/corpus", "fuzz/artifacts"] {
        put(&root, &format!("{folder}/g.rs"), "");
    }
    let mut files = Vec::new();
    collect(&root, &mut files).unwrap();
    files.sort();
    assert_eq!(files, [".ci/run", "a/b/c.rs", "a/targets/d.rs", "a.md"].map(|path| root.join(path)));
}

#[test]
fn no_line_ends_in_white_space_or_names_a_place_of_one_machine() {
    let space = |line: usize| format!("a.rs:{line}: white space at the end of the line");
    let mut cases = vec![
        ("a.rs", "a \nb\nc\t\n".to_owned(), vec![space(1), space(3)]),
        ("a.json", "a \nb\n".to_owned(), vec![]),
        ("a.rs", "target/a\n".to_owned(), vec![]),
    ];
    for root in ["work", "root", "home"] {
        let folder = format!("/{root}/");
        let told = vec![format!("a.rs:2: a path of one machine ({folder})")];
        cases.push(("a.rs", format!("a\n{folder}b\n"), told));
    }
    for (path, text, expected) in cases {
        let mut findings = Vec::new();
        check_text(path, &text, &mut findings);
        assert_eq!(findings, expected, "{path}: {text}");
    }
}

/// Rust of so many lines.
fn of_lines(lines: usize) -> String {
    format!("//! Lines.{}", "\n".repeat(lines))
}

/// Rust with a line of so many characters, most of which have two bytes.
fn of_characters(characters: usize) -> String {
    format!("//! Characters.\nconst A: &str = \"{}\";\n", "é".repeat(characters - 19))
}

#[test]
fn sources_have_documentation_and_are_short_but_for_tests_and_generated_ones() {
    let (ordinary, test, generated) = ("a/src/b.rs", "a/tests/b.rs", "kmd/src/bindings/b.rs");
    let comment = format!("//! Comment.\n// {}x\n", "word ".repeat(24));
    let bare = "fn f() {}\n".to_owned();
    for (path, text, expected) in [
        (ordinary, of_lines(900), ""),
        (ordinary, of_lines(901), ": 901 lines, at most 900"),
        (ordinary, of_lines(990), ": 990 lines, at most 900"),
        (test, of_lines(1000), ""),
        (test, of_lines(1001), ": 1001 lines, at most 1000"),
        (generated, of_lines(1100), ""),
        (ordinary, of_characters(140), ""),
        (ordinary, of_characters(141), ":2: 141 characters"),
        (ordinary, of_characters(150), ":2: 150 characters"),
        (test, of_characters(150), ""),
        (generated, of_characters(150), ""),
        (ordinary, bare.clone(), ": no module documentation at the top"),
        (test, bare.clone(), ": no module documentation at the top"),
        (generated, bare, ""),
        (ordinary, comment.clone(), ":2: a comment of 124 columns, at most 120"),
        (generated, comment, ""),
    ] {
        let mut findings = Vec::new();
        check_rust(path, &text, &mut findings);
        let told = if expected.is_empty() { vec![] } else { vec![format!("{path}{expected}")] };
        assert_eq!(findings, told, "{text}");
    }
}
