//! The whole workspace: which crates are compiled together, and whose tests run.
//!
//! Contract: every crate of the workspace is in one group. A group is as large as one copy of the repository can hold
//! without compiling for long, and no larger where its tests are slow. Its mutants meet the tests of its own crates,
//! and those of others that come by code that no test of its own does.

/// Crates whose mutants are tried together.
pub struct Group {
    /// Their folders.
    pub folders: &'static [&'static str],
    /// Folders of further crates whose tests run.
    pub tests_also_of: &'static [&'static str],
}

impl Group {
    const fn new(folders: &'static [&'static str], tests_also_of: &'static [&'static str]) -> Group {
        Group { folders, tests_also_of }
    }

    /// Folders of all crates whose tests run.
    pub fn tests_of(&self) -> impl Iterator<Item = &'static str> {
        self.folders.iter().chain(self.tests_also_of).copied()
    }
}

/// All crates. `bringup` attaches to devices and walks through what `device` and `kmd` answer.
pub const GROUPS: [Group; 9] = [
    Group::new(&["device", "isa", "kmd", "loader", "mem", "pm4", "protocol", "ring", "script"], &["bringup"]),
    Group::new(&["asm"], &[]),
    Group::new(&["vgpu"], &[]),
    Group::new(&["engine"], &[]),
    Group::new(&["bringup"], &[]),
    Group::new(&["tools"], &[]),
    Group::new(&["differential"], &[]),
    Group::new(&["tests"], &[]),
    Group::new(&["needs", "xtask"], &[]),
];

#[cfg(test)]
mod tests {
    use super::super::crates::Workspace;
    use super::*;
    use std::path::Path;

    #[test]
    fn every_crate_of_the_workspace_is_in_one_group() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let workspace = Workspace::read(&root).unwrap();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|group| group.folders).copied().collect();
        grouped.sort_unstable();
        assert!(workspace.folders().eq(grouped.iter().copied()), "{grouped:?}");
        for group in &GROUPS {
            let tests_of: Vec<String> = group.tests_of().map(str::to_owned).collect();
            workspace.packages(&tests_of).unwrap();
        }
    }

    #[test]
    fn own_tests_run_and_those_of_others() {
        let group = Group::new(&["mem", "pm4"], &["ring"]);
        assert!(group.tests_of().eq(["mem", "pm4", "ring"]));
    }
}
