//! The passes of the suite: all of it once, then small parts of it in other surroundings.
//!
//! Contract: a pass is a row of [`PASSES`]: its name, its environment, the test targets in which the environment can
//! make a difference. [`check`] reads the sources and refuses a table that does not name exactly the targets that read
//! what [`BARE`] takes away; `cargo xtask tidy` calls it.

use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Part of the suite in an environment of its own.
pub struct Pass {
    /// What `--pass` calls it.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// Variables and what becomes of them.
    pub environment: &'static [(&'static str, Value)],
    /// The targets, as `folder/target`, and arguments of their harness.
    pub targets: &'static [(&'static str, &'static [&'static str])],
}

/// Variables that a pass sets, or removes where there is no value.
pub type Environment = Vec<(&'static str, Option<OsString>)>;

/// What becomes of a variable.
pub enum Value {
    /// It is set.
    Is(&'static str),
    /// It is removed.
    Absent,
    /// It names a folder with [`ORDINARY_PROGRAMS`] and nothing else.
    OrdinaryPrograms,
}

/// Programs of every machine that cases start.
const ORDINARY_PROGRAMS: &[&str] = &["mkfifo"];

/// The pass on a machine with nothing but the repository.
const BARE: &str = "bare";

/// All passes after the first, which is the whole suite in the environment as it is.
pub const PASSES: &[Pass] = &[BARE_PASS, FILL_PASS, KERNEL_6_8_PASS, KERNEL_6_12_PASS, KERNEL_6_17_PASS];

const BARE_PASS: Pass = Pass {
    name: BARE,
    about: "nothing but the repository: no extra inputs, no LLVM",
    environment: &[
        ("ZRT_MODELS", Value::Absent),
        ("ZRT_UAPI", Value::Absent),
        ("ZRT_REQUIRE_LLVM", Value::Absent),
        ("PATH", Value::OrdinaryPrograms),
    ],
    targets: &[
        ("differential/programs", &[]),
        ("engine/gguf", &[]),
        ("engine/tokenizer", &[]),
        ("isa/llvm", &[]),
        ("loader/code_objects", &[]),
        ("tests/fresh_kernel", &[]),
        // Both of the repository's models ran in the first pass, with the same inputs.
        ("tests/golden_unchecked", &["--skip", "tales_qwen3_q4_0", "--skip", "tales_llama_q4_k_m"]),
        ("tests/judge", &[]),
        ("tests/megakernel", &[]),
        ("tests/soak_unchecked", &[]),
        ("tests/stress_unchecked", &[]),
        ("tools/check", &[]),
        ("tools/launch", &[]),
        ("tools/step", &[]),
        ("tools/text", &[]),
        ("tools/unfinished", &[]),
    ],
};

const FILL_PASS: Pass = Pass {
    name: "fill",
    about: "VRAM holds the number 1, not NaN, before anything is written to it",
    environment: &[("ZRT_VIRTUAL_FILL", Value::Is("00000001"))],
    targets: &[("device/zrt_device", &[]), ("tests/sessions", &[])],
};

const KERNEL_6_8_PASS: Pass = kernel_pass("kernel-6.8", &[("ZRT_VIRTUAL_KERNEL", Value::Is("6.8"))]);
const KERNEL_6_12_PASS: Pass = kernel_pass("kernel-6.12", &[("ZRT_VIRTUAL_KERNEL", Value::Is("6.12"))]);
const KERNEL_6_17_PASS: Pass = kernel_pass("kernel-6.17", &[("ZRT_VIRTUAL_KERNEL", Value::Is("6.17"))]);

/// The suites that meet the driver, by the rules of an older kernel than the default.
const fn kernel_pass(name: &'static str, environment: &'static [(&'static str, Value)]) -> Pass {
    Pass {
        name,
        about: "the virtual driver keeps an older kernel's rules",
        environment,
        targets: &[
            ("vgpu/driver", &[]),
            ("kmd/zrt_kmd", &[]),
            ("device/zrt_device", &[]),
            ("tests/sessions", &[]),
        ],
    }
}

/// Code that reads a variable of [`BARE`] for targets that use it: the file, and what names it in their sources.
const HELPERS: &[(&str, &[&str])] = &[
    ("tests/src/lib.rs", &["find_model(", "golden("]),
    ("tests/src/assembly.rs", &["assembly::"]),
    ("tools/tests/kernel_files/mod.rs", &["mod kernel_files;"]),
];

/// Folders that are not sources of test targets. `xtask` holds these names itself and its cases read none of them.
const SKIPPED: &[&str] = &["target", ".git", "xtask"];

/// A pass by its name.
pub fn named(name: &str) -> Result<&'static Pass, Box<dyn Error>> {
    let names: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
    let found = PASSES.iter().find(|pass| pass.name == name);
    found.ok_or_else(|| format!("no pass is called {name}; there is: {}", names.join(", ")).into())
}

impl Pass {
    /// The environment, with folders made where it needs them, below `scratch`.
    pub fn surroundings(&self, scratch: &Path) -> Result<Environment, Box<dyn Error>> {
        let value = |value: &Value| match value {
            Value::Is(text) => Ok(Some(OsString::from(text))),
            Value::Absent => Ok(None),
            Value::OrdinaryPrograms => ordinary_programs(scratch).map(|folder| Some(folder.into())),
        };
        self.environment.iter().map(|(name, of)| Ok((*name, value(of)?))).collect()
    }
}

/// A folder of links to [`ORDINARY_PROGRAMS`].
fn ordinary_programs(scratch: &Path) -> Result<PathBuf, Box<dyn Error>> {
    let folder = scratch.join("programs");
    std::fs::create_dir_all(&folder)?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    for program in ORDINARY_PROGRAMS {
        let found = std::env::split_paths(&path).map(|place| place.join(program)).find(|file| file.exists());
        let found = found.ok_or_else(|| format!("{program} is not installed, and a case starts it"))?;
        let link = folder.join(program);
        if !link.exists() {
            std::os::unix::fs::symlink(found, link)?;
        }
    }
    Ok(folder)
}

/// What is wrong with the tables, a line each: targets that read what the bare pass takes away and are not in it, and
/// entries that do not.
pub fn check(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let Some(bare) = PASSES.iter().find(|pass| pass.name == BARE) else {
        return Ok(vec![format!("passes: none is called {BARE}")]);
    };
    let variables: Vec<&str> =
        bare.environment.iter().map(|(name, _)| *name).filter(|name| name.starts_with("ZRT_")).collect();
    let listed: BTreeSet<String> = bare.targets.iter().map(|(name, _)| (*name).to_owned()).collect();
    let (mut reading, mut findings) = (BTreeSet::new(), Vec::new());
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    for (path, text) in &files {
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let reads_itself = variables.iter().any(|name| code.contains(&format!("\"{name}\"")));
        let is_helper = HELPERS.iter().any(|(file, _)| file == path);
        let uses_helper = HELPERS.iter().any(|(file, names)| {
            shares_crate(path, file) && file != path && names.iter().any(|name| code.contains(name))
        });
        match target_of(path) {
            _ if is_helper && !reads_itself => {
                findings.push(format!("passes: {path} reads no such variable"))
            }
            _ if is_helper => {}
            Some(target) if reads_itself || uses_helper => {
                reading.insert(target);
            }
            None if reads_itself => {
                findings.push(format!(
                    "passes: {path} reads one of {variables:?} and is neither helper nor test"
                ));
            }
            _ => {}
        }
    }
    for target in reading.difference(&listed) {
        findings.push(format!("passes: {target} reads one of {variables:?} and is not in the pass {BARE}"));
    }
    for target in listed.difference(&reading) {
        findings.push(format!("passes: {target} is in the pass {BARE} and reads none of {variables:?}"));
    }
    Ok(findings)
}

/// Whether two files are of one crate: the first component of their paths.
fn shares_crate(one: &str, other: &str) -> bool {
    one.split('/').next() == other.split('/').next()
}

/// The test target that a file belongs to, as `folder/target`.
fn target_of(path: &str) -> Option<String> {
    let (folder, rest) = path.split_once("/tests/")?;
    let first = rest.split('/').next()?;
    Some(format!("{folder}/{}", first.strip_suffix(".rs").unwrap_or(first)))
}

/// Rust sources below `folder`, by their path from `root`.
fn collect(root: &Path, folder: &Path, files: &mut Vec<(String, String)>) -> Result<(), Box<dyn Error>> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if SKIPPED.iter().any(|skipped| path.file_name().is_some_and(|name| name == *skipped)) {
            continue;
        }
        if path.is_dir() {
            collect(root, &path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root)?.to_string_lossy().replace('\\', "/");
            files.push((name, std::fs::read_to_string(&path)?));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn the_table_names_the_targets_that_read_the_variables() {
        assert_eq!(check(&repository()).unwrap(), Vec::<String>::new());
    }

    /// A tree with the files of the tables, each as the table says it is.
    fn made_up_tree(name: &str) -> PathBuf {
        let root = std::env::temp_dir().join(format!("zrt-passes-{name}-{}", std::process::id()));
        std::fs::remove_dir_all(&root).ok();
        for (target, _) in PASSES[0].targets {
            let (folder, target) = target.split_once('/').unwrap();
            put(&root, &format!("{folder}/tests/{target}.rs"), "let v = env(\"ZRT_MODELS\");");
        }
        for (helper, _) in HELPERS {
            put(&root, helper, "var_os(\"ZRT_REQUIRE_LLVM\")");
        }
        root
    }

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_target_that_reads_a_variable_or_uses_a_helper_must_be_listed() {
        let root = made_up_tree("unlisted");
        assert_eq!(check(&root).unwrap(), Vec::<String>::new());
        put(&root, "kmd/tests/reads.rs", "var_os(\"ZRT_UAPI\")");
        put(&root, "tests/tests/uses.rs", "let model = find_model(name);");
        put(&root, "tests/tests/part/of_many.rs", "use zrt_tests::assembly::assemble;");
        put(&root, "engine/tests/mentions.rs", "//! Without \"ZRT_MODELS\" nothing runs.\nlist.find(name)");
        put(&root, "device/src/reads.rs", "var_os(\"ZRT_MODELS\")");
        let findings = check(&root).unwrap().join("\n");
        for unlisted in ["kmd/reads", "tests/uses", "tests/part", "device/src/reads.rs"] {
            assert!(findings.contains(&format!("{unlisted} reads one of")), "{unlisted}\n{findings}");
        }
        assert_eq!(findings.lines().count(), 4, "{findings}");
    }

    #[test]
    fn an_entry_that_reads_nothing_is_told() {
        let root = made_up_tree("stale");
        put(&root, "engine/tests/gguf.rs", "// \"ZRT_MODELS\"");
        put(&root, "tests/src/assembly.rs", "nothing");
        let findings = check(&root).unwrap().join("\n");
        assert!(findings.contains("engine/gguf is in the pass bare and reads none"), "{findings}");
        assert!(findings.contains("tests/src/assembly.rs reads no such variable"), "{findings}");
    }

    #[test]
    fn the_bare_path_has_ordinary_programs_and_no_compiler() {
        let scratch = std::env::temp_dir().join(format!("zrt-bare-{}", std::process::id()));
        let environment = named(BARE).unwrap().surroundings(&scratch).unwrap();
        let (_, path) = environment.iter().find(|(name, _)| *name == "PATH").unwrap();
        let folder = PathBuf::from(path.clone().unwrap());
        let names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ORDINARY_PROGRAMS);
        assert!(named("unheard-of").is_err());
    }
}
