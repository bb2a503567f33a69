//! Which room of the virtual card may name which.
//!
//! Contract: the rooms of [`ROOMS`] are layers, the lowest first, and every module of `vgpu` is in one. A file names
//! (`crate::…`) modules of its own room and of lower ones only, in its tests too. What a comment names does not count.
//! The list of ARCHITECTURE.md is the same.

use std::error::Error;
use std::path::Path;

/// The sources.
const FOLDER: &str = "vgpu/src/";

/// Rooms and their modules.
const ROOMS: &[(&str, &[&str])] = &[
    ("settings", &["config", "counters"]),
    ("memory", &["memory"]),
    ("shader", &["shader", "simd", "coverage"]),
    ("check", &["check"]),
    ("workgroups", &["workgroups"]),
    ("board", &["command_processor", "kernel"]),
];

/// Findings of one file, which is none unless it is in a room.
pub fn check(path: &str, text: &str, findings: &mut Vec<String>) {
    let Some(inside) = path.strip_prefix(FOLDER).and_then(|path| path.strip_suffix(".rs")) else { return };
    let modules: Vec<&str> = inside.split('/').filter(|name| *name != "mod").collect();
    let Some(own) = room_of(modules[0]) else { return };
    for (index, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
        let mut forbid = |what: String| findings.push(format!("{path}:{}: {what}", index + 1));
        for named in named(line, modules.len()) {
            match room_of(named) {
                Some(room) if room > own => {
                    forbid(format!(
                        "`{}` names `{named}` of `{}`, which lies above it",
                        ROOMS[own].0, ROOMS[room].0
                    ));
                }
                Some(_) => {}
                None if named.is_empty() => {
                    forbid("several rooms in one path: one `use` for each".to_owned());
                }
                None => forbid(format!("`{named}` by way of the library: by that of its module")),
            }
        }
    }
}

/// Findings about the list of rooms.
pub fn check_lists(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let library = std::fs::read_to_string(root.join(FOLDER).join("lib.rs"))?;
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md"))?;
    let mut findings = check_modules(&library);
    findings.extend(check_map(&architecture));
    Ok(findings)
}

/// The place of the room of a module.
fn room_of(module: &str) -> Option<usize> {
    ROOMS.iter().position(|(_, modules)| modules.contains(&module))
}

/// What follows `crate::` in a line, empty for a group of paths; and what follows as many `super::` as lead there from
/// a module `depth` below the root.
fn named(line: &str, depth: usize) -> impl Iterator<Item = &str> {
    let up = "super::".repeat(depth);
    let by_name = line.split("crate::").skip(1).map(first_word);
    let up_bytes = up.len();
    let by_steps = line.match_indices(&up).map(|(at, _)| at).collect::<Vec<_>>();
    let by_steps =
        by_steps.into_iter().map(move |at| first_word(line[at + up_bytes..].trim_start_matches("super::")));
    // Steps that end inside the room may end at anything.
    by_name.chain(by_steps.filter(|word| room_of(word).is_some()))
}

/// The letters, digits and underscores that a text begins with.
fn first_word(text: &str) -> &str {
    let end = text.find(|character: char| !character.is_alphanumeric() && character != '_');
    &text[..end.unwrap_or(text.len())]
}

/// Whether the modules of the library and those of the rooms are the same.
fn check_modules(library: &str) -> Vec<String> {
    let modules: Vec<&str> = library
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'))
        .collect();
    let known = ROOMS.iter().flat_map(|(_, modules)| modules.iter().copied());
    let homeless = modules.iter().filter(|module| room_of(module).is_none());
    let homeless = homeless.map(|module| format!("{FOLDER}lib.rs: module {module} is in no room"));
    let missing = known.filter(|module| !modules.contains(module));
    homeless.chain(missing.map(|module| format!("rooms: {module} is no module of {FOLDER}lib.rs"))).collect()
}

/// Whether the map has the rooms in this order.
fn check_map(architecture: &str) -> Vec<String> {
    let rows = architecture.lines().skip_while(|line| !line.starts_with("| room |")).skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let told: Vec<&str> = rows.filter_map(|row| row.split('|').nth(1)).map(str::trim).collect();
    let rooms: Vec<&str> = ROOMS.iter().map(|(room, _)| *room).collect();
    let differs = told != rooms;
    differs.then(|| format!("ARCHITECTURE.md: rooms {told:?}, and the rule {rooms:?}")).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(path: &str, text: &str) -> Vec<String> {
        let mut findings = Vec::new();
        check(path, text, &mut findings);
        findings
    }

    #[test]
    fn an_arrow_up_is_refused_and_one_down_is_not() {
        let up = findings("vgpu/src/memory/port.rs", "//! Port.\nuse crate::check::memory::Scope;\n");
        assert_eq!(up, ["vgpu/src/memory/port.rs:2: `memory` names `check` of `check`, which lies above it"]);
        assert_eq!(findings("vgpu/src/check/watch.rs", "use crate::memory::Rights;\n"), [""; 0]);
        for (path, line) in [
            ("vgpu/src/shader/program.rs", "use crate::command_processor::injection::Defects;"),
            ("vgpu/src/simd.rs", "pub(in crate::workgroups) fn f() {}"),
            ("vgpu/src/shader/valu/macros.rs", "    $crate::check::switch::is_off()"),
            ("vgpu/src/check/wave/lds_change.rs", "    let x = crate::kernel::board::GPU_ID;"),
            ("vgpu/src/config.rs", "use super::memory::Rights;"),
            ("vgpu/src/memory/mod.rs", "use super::check::Finding;"),
            ("vgpu/src/memory/port.rs", "use super::super::check::Finding;"),
            ("vgpu/src/memory/port.rs", "    use super::super::super::check::Finding;"),
            ("vgpu/src/memory/port.rs", "use crate::VirtualGpu;"),
            ("vgpu/src/memory/port.rs", "use crate::{check::Finding, config::Config};"),
        ] {
            assert_eq!(findings(path, line).len(), 1, "{path}: {line}");
        }
    }

    #[test]
    fn each_fault_of_a_path_is_told_by_its_name() {
        let several = findings("vgpu/src/memory/port.rs", "use crate::{check::Finding, config::Config};");
        assert_eq!(several, ["vgpu/src/memory/port.rs:1: several rooms in one path: one `use` for each"]);
        let library = findings("vgpu/src/memory/port.rs", "use crate::VirtualGpu;");
        let told = "vgpu/src/memory/port.rs:1: `VirtualGpu` by way of the library: by that of its module";
        assert_eq!(library, [told]);
    }

    #[test]
    fn comments_own_modules_and_other_crates_are_free() {
        for (path, line) in [
            ("vgpu/src/config.rs", "    /// See [`check`](crate::check)."),
            ("vgpu/src/shader/group.rs", "// crate::kernel"),
            ("vgpu/src/kernel/mod.rs", "use crate::command_processor::CommandProcessor;"),
            ("vgpu/src/command_processor/mod.rs", "use crate::kernel::board;"),
            // The `kernel` of `check`, if it had one.
            ("vgpu/src/check/registers/tests/mod.rs", "use super::super::kernel;"),
            ("vgpu/src/lib.rs", "pub use kernel::VirtualGpu;"),
            ("vgpu/tests/driver/main.rs", "use crate::check::x;"),
            ("ring/src/lib.rs", "use crate::kernel::x;"),
        ] {
            assert_eq!(findings(path, line), [""; 0], "{path}: {line}");
        }
    }

    #[test]
    fn every_module_has_a_room_and_the_map_has_every_room() {
        assert_eq!(check_lists(&super::super::repository()).unwrap(), [""; 0]);
        let library = "pub mod check;\nmod extra;\n";
        let findings = check_modules(library).join("\n");
        assert!(findings.contains("lib.rs: module extra is in no room"), "{findings}");
        assert!(findings.contains("rooms: memory is no module"), "{findings}");
        assert_eq!(check_map("| room | knows |\n|---|---|\n| memory | x |\n").len(), 1);
        assert_eq!(check_map("").len(), 1);
    }
}
