//! The crates of the workspace, and what the outcome of a mutant depends on.

use crate::mirror;
use crate::process::{self, Limits};
use serde_json::Value;
use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest that the compiler may take to say which it is: rustup may fetch it first.
const VERSION_LIMIT: Duration = Duration::from_secs(300);
/// The folder of this crate, on which no other depends.
const OWN_FOLDER: &str = "xtask";
/// What no test of another crate reads: this crate, the ledger of mutants, and the list of changes.
const OWN: [&str; 4] = [OWN_FOLDER, "docs/mutants", "docs/mutants.md", "CHANGELOG.md"];

/// The packages of the workspace, by folder.
#[derive(Clone)]
pub struct Workspace {
    root: PathBuf,
    packages: BTreeMap<String, String>,
}

impl Workspace {
    /// Asks cargo.
    pub fn read(root: &Path) -> Result<Workspace, Box<dyn Error>> {
        let root = root.canonicalize()?;
        Ok(Workspace { packages: packages(&process::cargo_metadata(&root)?, &root), root })
    }

    /// The folders of all crates, sorted.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.packages.keys().map(String::as_str)
    }

    /// The packages of these folders.
    pub fn packages(&self, folders: &[String]) -> Result<Vec<&str>, String> {
        let package = |folder: &String| {
            self.packages.get(folder).map(String::as_str).ok_or_else(|| {
                let known: Vec<&str> = self.folders().collect();
                format!("no crate is in the folder {folder}; there are {}", known.join(", "))
            })
        };
        folders.iter().map(package).collect()
    }

    /// A number that changes with the compiler, the crates whose tests run, and any file of the repository: tests read
    /// files of crates that they do not depend on. What only the tests of this crate read counts if they run.
    pub fn fingerprint(&self, compiler: &str, tests_of: &[String]) -> Result<u64, Box<dyn Error>> {
        let is_own_crate_tested = tests_of.iter().any(|folder| folder == OWN_FOLDER);
        let mut hasher = DefaultHasher::new();
        (compiler, tests_of).hash(&mut hasher);
        for path in mirror::files(&self.root)? {
            let file = path.strip_prefix(&self.root)?;
            if !is_own_crate_tested && OWN.iter().any(|own| file.starts_with(own)) {
                continue;
            }
            file.hash(&mut hasher);
            fs::read(&path)?.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }
}

/// What the compiler says of itself. `output` is a folder for that.
pub fn compiler(output: &Path) -> Result<String, Box<dyn Error>> {
    let limits = Limits { time: VERSION_LIMIT, memory_bytes: u64::MAX };
    let said = process::listen(Command::new("rustc").arg("-vV"), &output.join("compiler"), limits)?;
    match said.ended.failure() {
        None => Ok(said.output),
        Some(reason) => Err(format!("rustc -vV: {reason}: {}", said.errors).into()),
    }
}

fn packages(metadata: &Value, root: &Path) -> BTreeMap<String, String> {
    let folder = |path: &Path| Some(path.strip_prefix(root).ok()?.to_str()?.to_owned());
    let package = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?).parent()?;
        Some((folder(manifest)?, package["name"].as_str()?.to_owned()))
    };
    metadata["packages"].as_array().into_iter().flatten().filter_map(package).collect()
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use serde_json::json;

    /// The crates `ring`, `mem` and `pm4` of a repository.
    pub fn workspace(root: &Path) -> Workspace {
        let package = |folder: &str| json!({ "name": format!("zrt-{folder}"), "manifest_path": root.join(folder).join("Cargo.toml") });
        let packages_of_all = ["ring", "mem", "pm4"].map(package);
        let metadata = json!({ "packages": packages_of_all });
        Workspace { root: root.to_owned(), packages: packages(&metadata, root) }
    }

    #[test]
    fn a_folder_has_a_package_and_a_name_that_is_none_is_refused() {
        let workspace = workspace(Path::new("/r"));
        assert_eq!(workspace.packages(&["ring".into(), "mem".into()]).unwrap(), ["zrt-ring", "zrt-mem"]);
        let error = workspace.packages(&["rign".into()]).unwrap_err();
        assert!(error.contains("rign") && error.contains("mem, pm4, ring"), "{error}");
    }

    #[test]
    fn the_compiler_says_its_version_and_for_what_it_compiles() {
        let folder = zrt_needs::TemporaryFolder::new("compiler");
        let said = compiler(&folder).unwrap();
        assert!(said.starts_with("rustc 1."), "{said}");
        assert!(said.lines().any(|line| line.starts_with("host: ")), "{said}");
    }

    #[test]
    fn a_fingerprint_follows_all_files_the_compiler_and_the_tests() {
        let root = zrt_needs::TemporaryFolder::new("fingerprint");
        let put = |path: &str, text: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        };
        let files = ["Cargo.lock", "ring/src/lib.rs", "models/data", "docs/prediction.md"];
        files.iter().for_each(|path| put(path, "first"));
        let workspace = workspace(&root);
        let print = |compiler: &str, tests_of: &[&str]| {
            let tests_of: Vec<String> = tests_of.iter().map(|name| (*name).to_owned()).collect();
            workspace.fingerprint(compiler, &tests_of).unwrap()
        };
        let first = print("1", &["ring"]);
        put("target/output", "second");
        assert_eq!(print("1", &["ring"]), first);
        assert_ne!(print("2", &["ring"]), first);
        assert_ne!(print("1", &["mem", "ring"]), first);
        for path in files {
            put(path, "second");
            assert_ne!(print("1", &["ring"]), first, "{path}");
            put(path, "first");
            assert_eq!(print("1", &["ring"]), first);
        }
        let with_own = print("1", &["ring", "xtask"]);
        for path in ["xtask/src/lib.rs", "docs/mutants/ring.txt", "docs/mutants.md", "CHANGELOG.md"] {
            put(path, "");
            assert_eq!(print("1", &["ring"]), first, "{path}");
            assert_ne!(print("1", &["ring", "xtask"]), with_own, "{path}");
            fs::remove_file(root.join(path)).unwrap();
        }
        put("mem/src/new.rs", "");
        assert_ne!(print("1", &["ring"]), first);
    }
}
