//! The crates of the workspace: their packages, and what they are made of.

use crate::mirror;
use crate::process::{self, Limits};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Longest that cargo may take to describe the workspace.
const METADATA_LIMIT: Duration = Duration::from_secs(5 * 60);
/// Files at the root that decide how every crate is compiled.
const FILES_OF_ALL: &[&str] = &["Cargo.lock", "Cargo.toml"];

/// A crate of the workspace.
struct Member {
    package: String,
    /// Folders of the crates of the workspace that it depends on, in its tests too.
    needs: Vec<String>,
}

/// All of them, by folder.
pub struct Workspace {
    root: PathBuf,
    members: BTreeMap<String, Member>,
}

impl Workspace {
    /// Asks cargo. `output` is a folder for what it says.
    pub fn read(root: &Path, output: &Path) -> Result<Workspace, Box<dyn Error>> {
        let root = root.canonicalize()?;
        let mut command = Command::new(mirror::cargo());
        command.args(["metadata", "--no-deps", "--format-version", "1"]).current_dir(&root);
        let limits = Limits { time: METADATA_LIMIT, memory_bytes: u64::MAX };
        let said = process::listen(&mut command, &output.join("metadata"), limits)?;
        match said.ended.failure() {
            None => Ok(Workspace { members: members(&serde_json::from_str(&said.output)?, &root), root }),
            Some(reason) => Err(format!("cargo metadata: {reason}: {}", said.errors).into()),
        }
    }

    /// The packages of these folders.
    pub fn packages(&self, folders: &[String]) -> Result<Vec<&str>, String> {
        let package = |folder: &String| {
            let member = self.members.get(folder).map(|member| member.package.as_str());
            member.ok_or_else(|| {
                let known: Vec<&str> = self.members.keys().map(String::as_str).collect();
                format!("no crate is in the folder {folder}; there are {}", known.join(", "))
            })
        };
        folders.iter().map(package).collect()
    }

    /// A number that changes with any file of these crates, or of those of the workspace that they depend on.
    pub fn fingerprint(&self, folders: &BTreeSet<&str>) -> Result<u64, Box<dyn Error>> {
        let mut paths: Vec<PathBuf> = FILES_OF_ALL.iter().map(|file| self.root.join(file)).collect();
        for folder in self.with_needs(folders) {
            paths.extend(mirror::files(&self.root.join(folder))?);
        }
        let mut hasher = DefaultHasher::new();
        for path in paths {
            path.strip_prefix(&self.root)?.hash(&mut hasher);
            fs::read(&path)?.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }

    fn with_needs<'a>(&'a self, folders: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&str> = folders.iter().copied().collect();
        while let Some(folder) = open.pop() {
            if let Some(member) = self.members.get(folder)
                && found.insert(folder)
            {
                open.extend(member.needs.iter().map(String::as_str));
            }
        }
        found
    }
}

fn members(metadata: &Value, root: &Path) -> BTreeMap<String, Member> {
    let folder = |path: &str| Some(Path::new(path).strip_prefix(root).ok()?.to_str()?.to_owned());
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let member = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?).parent()?;
        let needs = list(&package["dependencies"]);
        let needs = needs.iter().filter_map(|one| folder(one["path"].as_str()?)).collect();
        Some((folder(manifest.to_str()?)?, Member { package: package["name"].as_str()?.to_owned(), needs }))
    };
    list(&metadata["packages"]).iter().filter_map(member).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn workspace(root: &Path) -> Workspace {
        let package = |folder: &str, needs: &[&str]| {
            let needs: Vec<Value> = needs.iter().map(|need| json!({ "path": root.join(need) })).collect();
            json!({ "name": format!("zrt-{folder}"), "manifest_path": root.join(folder).join("Cargo.toml"),
                "dependencies": needs })
        };
        let packages =
            json!({ "packages": [package("ring", &["mem"]), package("mem", &[]), package("pm4", &[])] });
        Workspace { root: root.to_owned(), members: members(&packages, root) }
    }

    #[test]
    fn a_folder_has_a_package_and_a_name_that_is_none_is_refused() {
        let workspace = workspace(Path::new("/r"));
        assert_eq!(workspace.packages(&["ring".into(), "mem".into()]).unwrap(), ["zrt-ring", "zrt-mem"]);
        let error = workspace.packages(&["rign".into()]).unwrap_err();
        assert!(error.contains("rign") && error.contains("mem, pm4, ring"), "{error}");
    }

    #[test]
    fn a_fingerprint_follows_the_crate_and_what_it_needs_only() {
        let root = zrt_needs::TemporaryFolder::new("fingerprint");
        let put = |path: &str, text: &str| {
            fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            fs::write(root.join(path), text).unwrap();
        };
        let files = ["Cargo.lock", "Cargo.toml", "ring/src/lib.rs", "mem/src/lib.rs", "pm4/src/lib.rs"];
        files.iter().for_each(|path| put(path, "first"));
        let workspace = workspace(&root);
        let of_ring = || workspace.fingerprint(&["ring"].into()).unwrap();
        let first = of_ring();
        put("pm4/src/lib.rs", "second");
        put("ring/target/output", "second");
        assert_eq!(of_ring(), first);
        for path in ["Cargo.lock", "ring/src/lib.rs", "mem/src/lib.rs"] {
            put(path, "second");
            assert_ne!(of_ring(), first, "{path}");
            put(path, "first");
            assert_eq!(of_ring(), first);
        }
        put("mem/src/new.rs", "");
        assert_ne!(of_ring(), first);
    }
}
