//! The passes of the suite: all of it once, then small parts of it in other environments or compiled in another way.
//!
//! Contract: a pass is a row of [`PASSES`]: its name, and its environment with the test targets in which the
//! environment can make a difference, or something else that it does. [`check`] reads the sources and refuses a table
//! that does not name exactly the targets that ask for what [`BARE`] takes away, which they do by `zrt_needs` alone;
//! `cargo xtask tidy` calls it.

use super::builds;
use super::skips::Skips;
use std::collections::BTreeSet;
use std::error::Error;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One pass.
pub struct Pass {
    /// Its name for `--pass`.
    pub name: &'static str,
    /// What it shows.
    pub about: &'static str,
    /// What it does.
    pub does: Does,
}

/// A test target, as `folder/target`, and arguments of its harness.
pub type Target = (&'static str, &'static [&'static str]);

/// Work that records what it cannot do.
pub type Work = fn(&mut Skips) -> Result<(), Box<dyn Error>>;

/// What a pass does.
pub enum Does {
    /// Part of the suite again, in an environment of its own.
    Again {
        /// Variables and what becomes of them.
        environment: &'static [(&'static str, Value)],
        /// What runs in it.
        targets: &'static [Target],
    },
    /// Something else.
    Else(Work),
    /// The same, beside the suite: in a folder of its own, or where it compiles the same.
    Apart(Work),
}

/// Variables that a pass sets, or removes if there is no value.
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

/// Programs that every machine has and that cases start.
const ORDINARY_PROGRAMS: &[&str] = &["mkfifo"];

/// The pass on a machine with nothing but the repository.
const BARE: &str = "bare";

/// All passes after the first, which is the whole suite in the environment as it is.
pub const PASSES: &[Pass] = &[
    BARE_PASS,
    FILL_PASS,
    KERNEL_6_8_PASS,
    KERNEL_6_12_PASS,
    KERNEL_6_17_PASS,
    BENCHES_PASS,
    RELEASE_PASS,
    MINIMUM_RUST_PASS,
    FUZZ_PASS,
    MIRI_PASS,
];

const BENCHES_PASS: Pass = Pass {
    name: "benches",
    about: "every benchmark once, without measuring",
    does: Does::Else(builds::benches),
};

const RELEASE_PASS: Pass = Pass {
    name: "release",
    about: "what computes, optimised as it is delivered, overflow unchecked",
    does: Does::Else(builds::release),
};

const MINIMUM_RUST_PASS: Pass = Pass {
    name: "minimum-rust",
    about: "the oldest compiler that Cargo.toml promises",
    does: Does::Apart(builds::minimum_rust),
};

/// Seconds for each fuzz target. A long run has 600.
const FUZZ_SECONDS: u32 = 30;

const FUZZ_PASS: Pass = Pass {
    name: "fuzz",
    about: "the fuzz targets from their seeds, for a short time",
    does: Does::Apart(|skips| crate::fuzz::pass(&Command::output, FUZZ_SECONDS, skips)),
};

const MIRI_PASS: Pass = Pass {
    name: "miri",
    about: "the tests beside `unsafe` that need no system calls, run by Miri",
    does: Does::Apart(crate::miri::pass),
};

const BARE_PASS: Pass = Pass {
    name: BARE,
    about: "nothing but the repository: no extra inputs, no LLVM",
    does: Does::Again { environment: BARE_ENVIRONMENT, targets: BARE_TARGETS },
};

const BARE_ENVIRONMENT: &[(&str, Value)] = &[
    ("ZRT_MODELS", Value::Absent),
    ("ZRT_UAPI", Value::Absent),
    ("ZRT_REQUIRE_LLVM", Value::Absent),
    ("PATH", Value::OrdinaryPrograms),
];

const BARE_TARGETS: &[Target] = &[
    ("bringup/zrt_bringup", &["selftest::kernels"]),
    ("differential/programs", &[]),
    ("engine/chat", &[]),
    ("engine/gguf", &[]),
    ("engine/safetensors_tokenizer", &["vocabularies_encode"]),
    ("engine/tokenizer", &[]),
    ("isa/llvm", &[]),
    ("kmd/c_layout", &[]),
    ("loader/bundles", &[]),
    ("loader/code_objects", &[]),
    ("tests/architectures_unchecked", &["gemma3_gets"]),
    ("tests/fresh_kernel", &[]),
    // Both of the repository's models ran in the first pass, with the same inputs.
    ("tests/golden_unchecked", &["--skip", "tales_qwen3_q4_0", "--skip", "tales_llama_q4_k_m"]),
    ("tests/integers_unchecked", &["formats"]),
    ("tests/judge", &[]),
    ("tests/megakernel", MEGAKERNEL_ASKING),
    ("tests/smollm2_unchecked", &[]),
    ("tests/soak_unchecked", &[]),
    ("tests/stress_unchecked", &[]),
    ("tools/arguments", &[]),
    ("tools/chat", &[]),
    ("tools/check", &[]),
    ("tools/check_memory", &[]),
    ("tools/code_objects", &[]),
    ("tools/findings", &[]),
    ("tools/hip", &[]),
    ("tools/json", &[]),
    ("tools/kernel_authors", &[]),
    ("tools/launch", &[]),
    ("tools/lds", &[]),
    ("tools/lint", &[]),
    ("tools/pages", &[]),
    ("tools/pm4_test", &[]),
    ("tools/printing", &[]),
    ("tools/run", &[]),
    ("tools/step", &[]),
    ("tools/text", &[]),
    ("tools/unfinished", &[]),
    ("tools/version", &[]),
    // The modules that assemble or compile.
    (
        "vgpu/zrt_vgpu",
        &["tests::assembled", "tests::compiled", "tests::kernels", "tests::prefetch", "tests::wave64"],
    ),
];

/// The cases of the megakernel that ask for a model; the others have all that they need.
const MEGAKERNEL_ASKING: &[&str] = &[
    "a_launch_with_prefetches",
    "one_submission",
    "one_workgroup",
    "prompts_of_slots",
    "six_workgroups",
    "steps_of_several_bands_are",
    "steps_of_tiles",
    "three_workgroups",
    "weights_that_end",
];

type Settings = &'static [(&'static str, Value)];

const FILLED: Settings = &[("ZRT_VIRTUAL_FILL", Value::Is("00000001"))];
const KERNEL_6_8: Settings = &[("ZRT_VIRTUAL_KERNEL", Value::Is("6.8"))];
const KERNEL_6_12: Settings = &[("ZRT_VIRTUAL_KERNEL", Value::Is("6.12"))];
const KERNEL_6_17: Settings = &[("ZRT_VIRTUAL_KERNEL", Value::Is("6.17"))];

/// What the passes of the same names leave to a long run.
pub const REST: &[Pass] = &[
    rest("fill", FILLED, &[FAULTS]),
    rest("kernel-6.8", KERNEL_6_8, &[FAULTS]),
    rest("kernel-6.12", KERNEL_6_12, &[FAULTS, OTHER_SESSIONS]),
    rest("kernel-6.17", KERNEL_6_17, &[FAULTS, OTHER_SESSIONS]),
];

const FAULTS: Target = ("bringup/zrt_bringup", &["each_planted_fault"]);
const OTHER_SESSIONS: Target = ("tests/sessions", &["--skip", "a_draining_session"]);

const fn rest(name: &'static str, environment: Settings, targets: &'static [Target]) -> Pass {
    Pass { name, about: "what the short pass leaves out", does: Does::Again { environment, targets } }
}

const FILL_PASS: Pass = Pass {
    name: "fill",
    about: "VRAM holds the number 1, not NaN, before anything is written to it",
    does: Does::Again {
        environment: FILLED,
        targets: &[("bringup/zrt_bringup", NO_FAULTS), ("tests/sessions", &[])],
    },
};

/// All of the self-test but its planted faults, which take half of its time.
const NO_FAULTS: &[&str] = &["--skip", "each_planted_fault"];

/// What a session asks of the driver from its beginning to its end.
const ONE_SESSION: &[&str] = &["a_draining_session"];

const KERNEL_6_8_PASS: Pass =
    kernel_pass("kernel-6.8", KERNEL_6_8, &[DRIVER, KMD, BRINGUP, ("tests/sessions", &[])]);
const KERNEL_6_12_PASS: Pass =
    kernel_pass("kernel-6.12", KERNEL_6_12, &[DRIVER, KMD, BRINGUP, ("tests/sessions", ONE_SESSION)]);
const KERNEL_6_17_PASS: Pass =
    kernel_pass("kernel-6.17", KERNEL_6_17, &[DRIVER, KMD, BRINGUP, ("tests/sessions", ONE_SESSION)]);

const DRIVER: Target = ("vgpu/driver", &[]);
const KMD: Target = ("kmd/zrt_kmd", &[]);
const BRINGUP: Target = ("bringup/zrt_bringup", NO_FAULTS);

/// The suites that use the driver, under the rules of an older kernel than the default: all sessions under those of the
/// oldest one, one session under those of each other.
const fn kernel_pass(name: &'static str, environment: Settings, targets: &'static [Target]) -> Pass {
    let about = "the virtual driver keeps an older kernel's rules";
    Pass { name, about, does: Does::Again { environment, targets } }
}

/// The file that reads the variables of [`BARE`], for everything that asks for what they promise.
const READER: &str = "needs/src/lib.rs";
/// How sources ask it.
const ASKS: &str = "zrt_needs::";
/// What asks for nothing.
const ASKS_NOTHING: &[&str] =
    &["zrt_needs::Random", "zrt_needs::TemporaryFolder", "zrt_needs::refused_by_the_system"];

/// Code that asks for other targets: the file, and what names it in their sources.
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
    found.ok_or_else(|| format!("no pass is called {name}; the passes are: {}", names.join(", ")).into())
}

/// The environment of a pass, with folders made if it needs them, below `scratch`.
pub fn surroundings(
    environment: &[(&'static str, Value)],
    scratch: &Path,
) -> Result<Environment, Box<dyn Error>> {
    let value = |value: &Value| match value {
        Value::Is(text) => Ok(Some(OsString::from(text))),
        Value::Absent => Ok(None),
        Value::OrdinaryPrograms => ordinary_programs(scratch).map(|folder| Some(folder.into())),
    };
    environment.iter().map(|(name, of)| Ok((*name, value(of)?))).collect()
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

/// What is wrong with the tables, a line each: targets that ask for what the bare pass takes away and are not in it,
/// entries that do not, and code that looks into the environment by itself.
pub fn check(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let variables: Vec<&str> =
        BARE_ENVIRONMENT.iter().map(|(name, _)| *name).filter(|name| name.starts_with("ZRT_")).collect();
    let listed: BTreeSet<String> = BARE_TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let (mut asking, mut findings) = (BTreeSet::new(), Vec::new());
    let mut files = Vec::new();
    collect(root, root, &mut files)?;
    for (path, text) in files.iter().filter(|(path, _)| path != READER) {
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        if variables.iter().any(|name| code.contains(&format!("\"{name}\""))) {
            findings.push(format!("passes: {path} reads one of {variables:?}, which {READER} does for all"));
        }
        let asks_itself =
            ASKS_NOTHING.iter().fold(code.clone(), |code, of| code.replace(of, "")).contains(ASKS);
        let is_helper = HELPERS.iter().any(|(file, _)| file == path);
        let uses_helper = HELPERS.iter().any(|(file, names)| {
            shares_crate(path, file) && file != path && names.iter().any(|name| code.contains(name))
        });
        if is_helper && !asks_itself {
            findings.push(format!("passes: {path} asks for nothing"));
        } else if !is_helper && (asks_itself || uses_helper) {
            asking.insert(target_of(path));
        }
    }
    for target in asking.difference(&listed) {
        findings.push(format!("passes: {target} asks for what the pass {BARE} takes away and is not in it"));
    }
    for target in listed.difference(&asking) {
        findings.push(format!("passes: {target} is in the pass {BARE} and asks for nothing"));
    }
    Ok(findings)
}

/// Whether two files are of one crate: the first component of their paths.
fn shares_crate(one: &str, other: &str) -> bool {
    one.split('/').next() == other.split('/').next()
}

/// The test target that a file belongs to, as `folder/target`: a file or folder of `tests/`, or the unit tests of the
/// library.
fn target_of(path: &str) -> String {
    let folder = path.split('/').next().unwrap_or(path);
    let target = path.strip_prefix(folder).and_then(|rest| rest.strip_prefix("/tests/"));
    match target.and_then(|rest| rest.split('/').next()) {
        Some(first) => format!("{folder}/{}", first.strip_suffix(".rs").unwrap_or(first)),
        None => format!("{folder}/zrt_{folder}"),
    }
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
    use zrt_needs::TemporaryFolder;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn the_table_names_the_targets_that_ask() {
        assert_eq!(check(&repository()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn the_hosted_run_has_every_pass() {
        let file = std::fs::read_to_string(repository().join(".github/workflows/ci.yml")).unwrap();
        let list = file.lines().find_map(|line| line.trim().strip_prefix("pass: [")).unwrap();
        let named: Vec<&str> = list.trim_end_matches(']').split(", ").collect();
        let passes: Vec<&str> = PASSES.iter().map(|pass| pass.name).collect();
        assert_eq!(named, passes);
    }

    /// A tree with the files of the tables, each as the table says it is.
    fn made_up_tree(name: &str) -> TemporaryFolder {
        let root = TemporaryFolder::new(name);
        for (target, _) in BARE_TARGETS {
            let (folder, target) = target.split_once('/').unwrap();
            let path = match target.strip_prefix("zrt_") {
                Some(library) => format!("{library}/src/part/tests/one.rs"),
                None => format!("{folder}/tests/{target}.rs"),
            };
            put(&root, &path, "let folder = zrt_needs::models();");
        }
        for (helper, _) in HELPERS {
            put(&root, helper, "zrt_needs::programs(&[])");
        }
        put(&root, READER, "const MODELS: &str = \"ZRT_MODELS\";");
        root
    }

    fn put(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn a_target_that_asks_or_uses_a_helper_must_be_listed() {
        let root = made_up_tree("unlisted");
        assert_eq!(check(&root).unwrap(), Vec::<String>::new());
        put(&root, "kmd/tests/asks.rs", "zrt_needs::models()");
        put(&root, "tests/tests/uses.rs", "let model = find_model(name);");
        put(&root, "tests/tests/part/of_many.rs", "use zrt_tests::assembly::assemble;");
        put(
            &root,
            "engine/tests/mentions.rs",
            "//! Without zrt_needs::models() nothing runs.\nlist.find(name)",
        );
        put(&root, "device/src/tests.rs", "zrt_needs::models()");
        put(
            &root,
            "device/tests/draws.rs",
            "zrt_needs::Random::new(1); zrt_needs::TemporaryFolder::new(\"a\"); \
             zrt_needs::refused_by_the_system(\"a\")",
        );
        let findings = check(&root).unwrap().join("\n");
        for unlisted in ["kmd/asks", "tests/uses", "tests/part", "device/zrt_device"] {
            assert!(findings.contains(&format!("{unlisted} asks for what")), "{unlisted}\n{findings}");
        }
        assert_eq!(findings.lines().count(), 4, "{findings}");
    }

    #[test]
    fn code_that_reads_a_variable_itself_is_told() {
        let root = made_up_tree("reading");
        put(&root, "kmd/tests/reads.rs", "var_os(\"ZRT_UAPI\")");
        put(&root, "device/src/reads.rs", "var_os(\"ZRT_MODELS\")");
        put(&root, "device/src/mentions.rs", "// \"ZRT_MODELS\"");
        let findings = check(&root).unwrap().join("\n");
        for reading in ["kmd/tests/reads.rs", "device/src/reads.rs"] {
            assert!(findings.contains(&format!("{reading} reads one of")), "{reading}\n{findings}");
        }
        assert_eq!(findings.lines().count(), 2, "{findings}");
    }

    #[test]
    fn an_entry_that_asks_for_nothing_is_told() {
        let root = made_up_tree("stale");
        put(&root, "engine/tests/gguf.rs", "// zrt_needs::models()");
        put(&root, "tests/src/assembly.rs", "nothing");
        let findings = check(&root).unwrap().join("\n");
        assert!(findings.contains("engine/gguf is in the pass bare and asks for nothing"), "{findings}");
        assert!(findings.contains("tests/src/assembly.rs asks for nothing"), "{findings}");
    }

    #[test]
    fn the_bare_path_has_ordinary_programs_and_no_compiler() {
        let scratch = TemporaryFolder::new("bare");
        let environment = surroundings(BARE_ENVIRONMENT, &scratch).unwrap();
        let (_, path) = environment.iter().find(|(name, _)| *name == "PATH").unwrap();
        let folder = PathBuf::from(path.clone().unwrap());
        let names: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ORDINARY_PROGRAMS);
        assert!(named("unheard-of").is_err());
    }
}
