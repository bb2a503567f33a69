//! The copy of the repository that has all mutants in it.
//!
//! Contract: the copy equals the repository, but for the files that have mutants and for the manifests of their crates,
//! which depend on the switch. The switch is a crate beside the copy. Whatever else was changed in the copy is undone.

use super::compile::Compiled;
use super::list::Mutant;
use super::rewrite::{self, Written};
use crate::mirror::{self, Mirror};
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The source of the switch, which is compiled as part of the copy and not of the workspace.
pub const SWITCH: &str = include_str!("switch.rs.txt");
const SWITCH_MANIFEST: &str =
    "[package]\nname = \"zrt-switch\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n";
/// How a crate of the copy, one folder below its root, depends on it.
const DEPENDENCY: &str = "[dependencies]\nzrt-switch = { path = \"../../switch\" }\n";
/// Longest that a compilation may take.
const COMPILE_LIMIT: Duration = Duration::from_secs(3600);

/// The copy.
pub struct Copy {
    mirror: Mirror,
    /// Where what cargo says is kept.
    output: PathBuf,
    /// The files that have mutants, as they are in the repository.
    sources: BTreeMap<String, String>,
}

impl Copy {
    /// Makes the copy, for mutants of the crates in these folders, or brings an existing one up to date. The mutants
    /// are not in it yet.
    pub fn new(
        root: &Path,
        scratch: &Path,
        folders: &[String],
        mutants: &[(u32, &Mutant)],
    ) -> Result<Copy, Box<dyn Error>> {
        let mirror = Mirror::new(root, scratch)?;
        let mut sources = BTreeMap::new();
        for (_, mutant) in mutants {
            if !sources.contains_key(&mutant.file) {
                sources.insert(mutant.file.clone(), fs::read_to_string(mirror.root.join(&mutant.file))?);
            }
        }
        let manifests: Vec<PathBuf> =
            folders.iter().map(|folder| Path::new(folder).join("Cargo.toml")).collect();
        // What is written anew below keeps its time if it is the same.
        let is_ours = |path: &Path| path.to_str().is_some_and(|path| sources.contains_key(path));
        mirror.update(&|path| is_ours(path) || manifests.iter().any(|manifest| manifest == path))?;
        for manifest in manifests {
            let text = fs::read_to_string(mirror.root.join(&manifest))?;
            mirror::write_if_new(&mirror.copy.join(&manifest), with_switch(&text).as_bytes())?;
        }
        fs::create_dir_all(scratch.join("switch/src"))?;
        mirror::write_if_new(&scratch.join("switch/Cargo.toml"), SWITCH_MANIFEST.as_bytes())?;
        mirror::write_if_new(&scratch.join("switch/src/lib.rs"), SWITCH.as_bytes())?;
        Ok(Copy { mirror, output: scratch.join("output"), sources })
    }

    /// Writes these mutants into the copy, and no others.
    pub fn write(&self, mutants: &[(u32, &Mutant)]) -> Result<BTreeMap<String, Written>, Box<dyn Error>> {
        let mut written = BTreeMap::new();
        for (file, text) in &self.sources {
            let of_file: Vec<(u32, &Mutant)> =
                mutants.iter().filter(|(_, mutant)| mutant.file == *file).copied().collect();
            let rewritten = rewrite::write(text, &of_file).map_err(|error| format!("{file}: {error}"))?;
            mirror::write_if_new(&self.mirror.copy.join(file), rewritten.text.as_bytes())?;
            written.insert(file.clone(), rewritten);
        }
        Ok(written)
    }

    /// Checks libraries and programs of packages.
    pub fn check(&self, packages: &[&str]) -> Result<Compiled, Box<dyn Error>> {
        self.compile(&["check", "--keep-going", "--message-format=json"], packages)
    }

    /// Compiles the tests of packages.
    pub fn compile_tests(&self, packages: &[&str]) -> Result<Compiled, Box<dyn Error>> {
        self.compile(&["test", "--no-run", "--tests", "--message-format=json"], packages)
    }

    fn compile(&self, arguments: &[&str], packages: &[&str]) -> Result<Compiled, Box<dyn Error>> {
        let mut command = self.mirror.cargo(arguments);
        command.args(packages.iter().flat_map(|package| ["--package", package]));
        // A question that constants may ask too is not in stable Rust.
        command.env("RUSTC_BOOTSTRAP", "zrt_switch").env("CARGO_INCREMENTAL", "0");
        Compiled::by(&mut command, &self.output.join("compile"), COMPILE_LIMIT)
    }
}

/// A manifest with the dependency.
fn with_switch(manifest: &str) -> String {
    match manifest.contains("[dependencies]\n") {
        true => manifest.replacen("[dependencies]\n", DEPENDENCY, 1),
        false => format!("{manifest}\n{DEPENDENCY}"),
    }
}

#[cfg(test)]
pub mod tests {
    use super::super::cases::tests::artifact;
    use super::super::list::Genre;
    use super::super::rewrite::tests::mutant;
    use super::*;
    use crate::test::TestBinary;

    fn put(root: &Path, path: &str, text: &str) {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    }

    /// The copy of a repository whose crate `mem` has one file, and where a script takes the place of cargo.
    pub fn copy(folder: &Path, source: &str, mutants: &[(u32, &Mutant)], cargo: &str) -> Copy {
        let (root, scratch) = (folder.join("root"), folder.join("scratch"));
        put(&root, "mem/src/a.rs", source);
        put(&root, "mem/Cargo.toml", "[package]\n");
        fs::create_dir_all(scratch.join("output")).unwrap();
        zrt_needs::write_program(&folder.join("cargo"), cargo);
        let mut copy = Copy::new(&root, &scratch, &["mem".into()], mutants).unwrap();
        copy.mirror.program = folder.join("cargo").to_str().unwrap().to_owned();
        copy
    }

    #[test]
    fn a_manifest_gets_one_dependency_wherever_it_has_others() {
        let beside = with_switch("[package]\nname = \"a\"\n\n[dependencies]\nb = \"1\"\n");
        let alone = with_switch("[package]\nname = \"a\"\n\n[dev-dependencies]\nb = \"1\"\n");
        for manifest in [beside, alone] {
            let dependencies = manifest.split("[dependencies]\n").nth(1).unwrap();
            assert!(dependencies.starts_with("zrt-switch = "), "{manifest}");
            assert_eq!(manifest.matches("zrt-switch").count(), 1);
        }
    }

    #[test]
    fn the_copy_has_the_mutants_that_were_written_last_and_is_otherwise_the_repository() {
        let folder = zrt_needs::TemporaryFolder::new("copy");
        let (root, scratch) = (folder.join("root"), folder.join("scratch"));
        let source = "fn f() -> u8 { 1 + 2 }\n";
        for (path, text) in
            [("mem/src/a.rs", source), ("mem/src/b.rs", "b"), ("mem/Cargo.toml", "[package]\n")]
        {
            put(&root, path, text);
        }
        let planted = mutant(source, Genre::BinaryOperator, "+", "-");
        let copy = Copy::new(&root, &scratch, &["mem".into()], &[(3, &planted)]).unwrap();
        let read = |path: &str| fs::read_to_string(scratch.join("tree").join(path)).unwrap();
        assert_eq!(copy.write(&[(3, &planted)]).unwrap()["mem/src/a.rs"].branches[0].number, 3);
        assert!(
            read("mem/src/a.rs").contains("::zrt_switch::on(3)") && read("mem/Cargo.toml").contains("switch")
        );
        assert_eq!(read("mem/src/b.rs"), "b");
        copy.write(&[]).unwrap();
        assert_eq!(read("mem/src/a.rs"), source);
        // Mutants of an earlier run are taken out.
        copy.write(&[(3, &planted)]).unwrap();
        Copy::new(&root, &scratch, &[], &[]).unwrap();
        assert_eq!((read("mem/src/a.rs").as_str(), read("mem/Cargo.toml").as_str()), (source, "[package]\n"));
    }

    #[test]
    fn cargo_gets_the_packages_and_what_rustc_needs_and_its_messages_are_read() {
        let folder = zrt_needs::TemporaryFolder::new("compile");
        let cargo = r#"echo "$*" >&2
            echo "$RUSTFLAGS ${CARGO_ENCODED_RUSTFLAGS-none} $RUSTC_BOOTSTRAP $CARGO_INCREMENTAL" >&2
            echo "no message"
            cat ../messages
            test "$1" = check"#;
        let copy = copy(&folder, "", &[], cargo);
        let message = artifact(Path::new("/r/mem"));
        fs::write(folder.join("scratch/messages"), format!("{message}\n")).unwrap();
        let environment = "--cap-lints=warn none zrt_switch 0";
        let checked = copy.check(&["zrt-mem", "zrt-ring"]).unwrap();
        let packages = "--message-format=json --package zrt-mem --package zrt-ring";
        assert_eq!(checked.said, format!("check --keep-going {packages}\n{environment}\n"));
        assert_eq!((checked.failure.as_deref(), checked.messages.as_slice()), (None, &[message][..]));
        assert!(checked.binaries().iter().map(TestBinary::name).eq(["mem/made_up"]));
        let tested = copy.compile_tests(&["zrt-mem"]).unwrap();
        let arguments = "test --no-run --tests --message-format=json --package zrt-mem";
        assert_eq!(tested.said, format!("{arguments}\n{environment}\n"));
        assert_eq!(tested.failure.as_deref(), Some("exit status: 1"));
    }
}
