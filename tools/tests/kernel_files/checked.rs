//! Launching compiled kernels under the checking mode.

use super::{Folder, compile_with};
use serde_json::Value as Json;
use std::process::Command;

/// Levels of optimisation at which compilers write the most different code: all in memory, all in registers, unrolled.
pub const LEVELS: [&str; 3] = ["-O0", "-O2", "-O3"];

/// What compilers of one source make of a rule: for each level, the findings of `rule` of a launch of one group of 32
/// with these arguments; `None` if clang-22 is not installed. `flags` are the compiler's.
pub fn findings_by_level(
    name: &str,
    source: &str,
    rule: &str,
    flags: &[&str],
    arguments: &[&str],
) -> Option<Vec<Vec<Json>>> {
    LEVELS
        .into_iter()
        .map(|level| {
            let folder = Folder::new(&format!("{name}{level}"));
            let object = compile_with(&folder, source, &[&["-mcpu=gfx1201", level], flags].concat())?;
            let arguments: Vec<String> =
                arguments.iter().map(|one| one.replace('@', &folder.path("data"))).collect();
            let all = launch(&object, &arguments);
            Some(all.into_iter().filter(|finding| finding["rule"] == rule).collect())
        })
        .collect()
}

/// The findings of a launch of one group of 32, which must not fail for another reason.
pub fn launch(object: &str, arguments: &[String]) -> Vec<Json> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_zrt"));
    command.args(["launch", object, "--grid", "1", "--block", "32", "--check", "--json"]);
    command.args(arguments.iter().flat_map(|argument| ["--arg", argument]));
    let output = command.env("ZRT_DEVICE", "virtual").output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{complaint}");
    let report: Json = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{complaint}"));
    report["findings"].as_array().unwrap().clone()
}

/// What a finding says.
pub fn told(finding: &Json) -> &str {
    finding["what"].as_str().unwrap()
}
