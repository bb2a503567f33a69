//! Which crate must not know which.
//!
//! Contract: [`RULES`] has a row for each member of the workspace that ARCHITECTURE.md lists, with the words of its
//! column "must not know" and the packages that these words mean. What a crate is compiled with counts, on any path
//! through the workspace; what only its tests use does not. Read from `cargo metadata`.

use crate::process;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::Path;

/// What a crate may not reach.
struct Rule {
    /// Its folder.
    folder: &'static str,
    /// The column "must not know" of ARCHITECTURE.md.
    words: &'static str,
    /// Packages that no path of dependencies may reach.
    never: &'static [&'static str],
    /// Packages that it may not name itself; what it is made of may.
    not_directly: &'static [&'static str],
}

/// Every crate of ours with code for others.
const OURS: &[&str] = &[
    "zrt-pm4",
    "zrt-isa",
    "zrt-mem",
    "zrt-kmd",
    "zrt-ring",
    "zrt-protocol",
    "zrt-asm",
    "zrt-loader",
    "zrt-script",
    "zrt-vgpu",
    "zrt-device",
    "zrt-bringup",
    "zrt-engine",
];
/// Ways to the operating system.
const LINUX: &[&str] = &["libc", "rustix"];
/// What is done with packets, devices and files: readers of bytes and text are tried without it.
const MACHINES: &[&str] = &[
    "libc",
    "rustix",
    "zrt-pm4",
    "zrt-ring",
    "zrt-kmd",
    "zrt-protocol",
    "zrt-asm",
    "zrt-vgpu",
    "zrt-device",
    "zrt-bringup",
    "zrt-engine",
];
/// Packages that nothing else may be compiled with.
const PROGRAMS: &[&str] = &["zrt-tools", "zrt-tests", "zrt-differential", "xtask"];
/// The package of test cases; `tests`, which is for tests alone, may be compiled with it.
const NEEDS: &str = "zrt-needs";

const RULES: &[Rule] = &[
    Rule { folder: "pm4", words: "Linux, rings, kernels", never: LINUX, not_directly: OURS },
    Rule { folder: "isa", words: "PM4, Linux", never: LINUX, not_directly: OURS },
    Rule { folder: "mem", words: "Linux", never: LINUX, not_directly: OURS },
    Rule {
        folder: "kmd",
        words: "PM4, kernels",
        never: &[
            "zrt-pm4",
            "zrt-isa",
            "zrt-protocol",
            "zrt-asm",
            "zrt-ring",
            "zrt-loader",
            "zrt-vgpu",
            "zrt-device",
            "zrt-bringup",
            "zrt-engine",
        ],
        not_directly: &[],
    },
    Rule {
        folder: "ring",
        words: "file descriptors, models",
        never: &[
            "libc",
            "rustix",
            "zrt-kmd",
            "zrt-protocol",
            "zrt-asm",
            "zrt-loader",
            "zrt-vgpu",
            "zrt-device",
            "zrt-bringup",
            "zrt-engine",
        ],
        not_directly: &[],
    },
    Rule { folder: "protocol", words: "everything above", never: LINUX, not_directly: OURS },
    Rule { folder: "asm", words: "everything above", never: LINUX, not_directly: OURS },
    Rule { folder: "loader", words: "packets, devices, files", never: MACHINES, not_directly: &[] },
    Rule { folder: "script", words: "packets, devices, files", never: MACHINES, not_directly: &[] },
    Rule {
        folder: "vgpu",
        words: "`ring`, `device`, `engine`, `pm4`",
        never: &[
            "zrt-ring",
            "zrt-device",
            "zrt-bringup",
            "zrt-engine",
            "zrt-pm4",
            "zrt-protocol",
            "zrt-asm",
            "zrt-loader",
        ],
        not_directly: &[],
    },
    Rule {
        folder: "device",
        words: "tiers, models, tokens",
        never: &["zrt-script", "zrt-vgpu", "zrt-bringup", "zrt-engine"],
        not_directly: &["zrt-loader"],
    },
    Rule {
        folder: "bringup",
        words: "models, tokens, code objects",
        never: &["zrt-script", "zrt-engine"],
        not_directly: &["zrt-loader", "zrt-asm"],
    },
    Rule {
        folder: "engine",
        words: "packets, ioctls, tiers",
        never: &["zrt-loader", "zrt-vgpu", "zrt-bringup"],
        // `zrt-kmd` is there for `MappedFile`: how a model file is read.
        not_directly: &["libc", "rustix", "zrt-pm4"],
    },
    Rule { folder: "tools", words: "", never: &[], not_directly: &[] },
    Rule { folder: "tests", words: "", never: &[], not_directly: &[] },
    Rule {
        folder: "differential",
        words: "kernels, models",
        never: &["zrt-engine"],
        not_directly: &["zrt-protocol", "zrt-asm", "zrt-pm4", "zrt-ring", "zrt-kmd"],
    },
    Rule { folder: "needs", words: "the project", never: OURS, not_directly: &[] },
    // It is compiled before everything else, and alone.
    Rule {
        folder: "xtask",
        words: "the virtual card",
        never: &["zrt-vgpu", "zrt-bringup", "zrt-engine"],
        not_directly: &[],
    },
];

/// Packages of the workspace by folder, each with its name and the packages it is compiled with.
type Workspace = BTreeMap<String, (String, BTreeSet<String>)>;

/// Findings for the repository at `root`.
pub fn check(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let workspace = read(&process::cargo_metadata(root)?)?;
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let mut findings = check_workspace(&workspace);
    findings.extend(check_columns(&architecture));
    Ok(findings)
}

/// The workspace from cargo's description of it.
fn read(metadata: &Value) -> Result<Workspace, String> {
    let form = || "the form of cargo metadata has changed".to_owned();
    let mut workspace = Workspace::new();
    for package in metadata["packages"].as_array().ok_or_else(form)? {
        let manifest = Path::new(package["manifest_path"].as_str().ok_or_else(form)?);
        let folder =
            manifest.parent().and_then(Path::file_name).and_then(|name| name.to_str()).ok_or_else(form)?;
        let name = package["name"].as_str().ok_or_else(form)?;
        let dependencies = package["dependencies"].as_array().ok_or_else(form)?.iter();
        let compiled = dependencies.filter(|dependency| dependency["kind"] != "dev");
        let names =
            compiled.map(|dependency| dependency["name"].as_str().map(str::to_owned).ok_or_else(form));
        workspace.insert(folder.to_owned(), (name.to_owned(), names.collect::<Result<_, _>>()?));
    }
    Ok(workspace)
}

fn check_workspace(workspace: &Workspace) -> Vec<String> {
    let mut findings = Vec::new();
    for (folder, (_, direct)) in workspace {
        let Some(rule) = RULES.iter().find(|rule| rule.folder == folder) else {
            findings
                .push(format!("{folder}/Cargo.toml: the table of dependencies has no row for this crate"));
            continue;
        };
        let reached = reach(workspace, direct);
        let mut forbid = |name: &str, how: &str| {
            findings.push(format!("{folder}/Cargo.toml: {how} {name}, which it must not know"));
        };
        reached
            .iter()
            .filter(|name| rule.never.contains(&name.as_str()))
            .for_each(|name| forbid(name, "reaches"));
        direct
            .iter()
            .filter(|name| rule.not_directly.contains(&name.as_str()))
            .for_each(|name| forbid(name, "names"));
        direct.iter().filter(|name| PROGRAMS.contains(&name.as_str())).for_each(|name| forbid(name, "names"));
        if direct.contains(NEEDS) && folder != "tests" {
            forbid(NEEDS, "is compiled with");
        }
    }
    for rule in RULES.iter().filter(|rule| !workspace.contains_key(rule.folder)) {
        findings.push(format!("dependencies: {} has a row and is no crate of the workspace", rule.folder));
    }
    findings
}

/// Packages on any path from `direct` through the workspace.
fn reach(workspace: &Workspace, direct: &BTreeSet<String>) -> BTreeSet<String> {
    let mut reached = BTreeSet::new();
    let mut waiting: Vec<&String> = direct.iter().collect();
    while let Some(name) = waiting.pop() {
        if reached.insert(name.clone()) {
            let package = workspace.values().find(|(own, _)| own == name);
            waiting.extend(package.into_iter().flat_map(|(_, further)| further));
        }
    }
    reached
}

/// Whether the rows of ARCHITECTURE.md say what the table says.
fn check_columns(architecture: &str) -> Vec<String> {
    let mut findings = Vec::new();
    for rule in RULES {
        let start = format!("| [`{0}`]({0}) |", rule.folder);
        let row = architecture.lines().find(|line| line.starts_with(&start));
        let cell = row.and_then(|row| row.trim_end().trim_end_matches('|').rsplit('|').next()).map(str::trim);
        if cell != Some(rule.words) {
            let folder = rule.folder;
            findings.push(format!(
                "ARCHITECTURE.md: row {folder}: {cell:?}, and the table of dependencies {:?}",
                rule.words
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::repository;
    use super::*;

    #[test]
    fn the_workspace_keeps_the_table() {
        assert_eq!(check(&repository()).unwrap(), [""; 0]);
    }

    /// A workspace with the table's crates, in which one has further dependencies.
    fn made_up(folder: &str, dependencies: &[&str]) -> Workspace {
        let package = |rule: &Rule| {
            let name = if rule.folder == "xtask" { "xtask".into() } else { format!("zrt-{}", rule.folder) };
            let own = if rule.folder == folder { dependencies } else { &[] };
            (rule.folder.to_owned(), (name, own.iter().map(|name| (*name).to_owned()).collect()))
        };
        RULES.iter().map(package).collect()
    }

    #[test]
    fn each_rule_has_a_wrong_case_and_a_right_one() {
        let right = [
            ("loader", ["zrt-isa", "zrt-mem"]),
            ("script", ["zrt-loader", "toml"]),
            ("vgpu", ["zrt-kmd", "rustix"]),
            ("ring", ["zrt-pm4", "zrt-mem"]),
            ("tests", ["zrt-needs", "zrt-engine"]),
            ("kmd", ["rustix", "zrt-mem"]),
            ("engine", ["zrt-device", "zrt-kmd"]),
            ("bringup", ["zrt-device", "zrt-vgpu"]),
        ];
        for (folder, dependencies) in right {
            assert_eq!(check_workspace(&made_up(folder, &dependencies)), [""; 0], "{folder}");
        }
        for rule in RULES {
            for name in rule.never.iter().chain(rule.not_directly) {
                let findings = check_workspace(&made_up(rule.folder, &[name])).join("\n");
                assert!(findings.contains(&format!("{}/Cargo.toml", rule.folder)), "{}: {name}", rule.folder);
                assert!(findings.contains(name), "{findings}");
            }
        }
        for (folder, name) in [("engine", "zrt-needs"), ("device", "xtask"), ("mem", "zrt-tools")] {
            assert_eq!(check_workspace(&made_up(folder, &[name])).len(), 1, "{folder}");
        }
    }

    #[test]
    fn a_path_through_another_crate_is_followed() {
        let mut workspace = made_up("vgpu", &["zrt-kmd"]);
        workspace.get_mut("kmd").unwrap().1.insert("zrt-pm4".into());
        let findings = check_workspace(&workspace);
        let expected = ["kmd", "vgpu"]
            .map(|folder| format!("{folder}/Cargo.toml: reaches zrt-pm4, which it must not know"));
        assert_eq!(findings, expected);
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_told() {
        let mut workspace = made_up("mem", &[]);
        let package = workspace.remove("ring").unwrap();
        workspace.insert("extra".into(), package);
        let findings = check_workspace(&workspace).join("\n");
        assert!(findings.contains("extra/Cargo.toml: the table of dependencies has no row"), "{findings}");
        assert!(findings.contains("dependencies: ring has a row"), "{findings}");
    }

    #[test]
    fn what_tests_alone_use_does_not_count() {
        let described = |kind: &str| {
            let text = format!(
                r#"{{"packages": [{{"name": "zrt-mem", "manifest_path": "/r/mem/Cargo.toml",
                    "dependencies": [{{"name": "libc", "kind": {kind}}}]}}]}}"#
            );
            read(&serde_json::from_str(&text).unwrap()).unwrap()["mem"].1.len()
        };
        assert_eq!((described("\"dev\""), described("null"), described("\"build\"")), (0, 1, 1));
        assert!(read(&Value::Null).is_err());
    }

    #[test]
    fn the_map_has_the_same_columns() {
        let architecture = std::fs::read_to_string(repository().join("ARCHITECTURE.md")).unwrap();
        assert_eq!(check_columns(&architecture), [""; 0]);
        let changed = architecture.replace("| PM4, kernels |", "| kernels |");
        assert!(check_columns(&changed)[0].starts_with("ARCHITECTURE.md: row kmd"));
    }
}
