//! The public record: kernels and firmware with which gfx12 owners and driver authors have reported harm.
//!
//! Contract: as [`super`]. Each row is a pure function of the versions, with its source. What is not known matches
//! nothing: a row warns of what was read, never of what could not be. A distribution may have taken a fix without
//! raising the number, so a row is a warning.

use super::finding::Finding;
use super::firmware::Firmware;
use super::kernel::KernelVersion;

/// What the rows check.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Versions {
    pub kernel: Option<KernelVersion>,
    pub firmware: Firmware,
}

/// One entry.
struct Entry {
    /// Whether it concerns these versions.
    concerns: fn(&Versions) -> bool,
    /// What was reported, and what it harms.
    harm: &'static str,
    /// What to do.
    remedy: &'static str,
    /// Where it was reported.
    source: &'static str,
}

/// Releases of a stable series before its `patch`.
fn before(kernel: KernelVersion, fixed: &[(u32, u32, u32)], first_whole: (u32, u32)) -> bool {
    let in_series = fixed.iter().find(|(major, minor, _)| kernel.is_of(*major, *minor));
    match in_series {
        Some((_, _, patch)) => kernel.patch < *patch,
        None => (kernel.major, kernel.minor) < first_whole,
    }
}

const RECORD: &[Entry] = &[
    Entry {
        concerns: |versions| {
            versions.kernel.is_some_and(|kernel| before(kernel, &[(6, 12, 17), (6, 13, 5)], (6, 14)))
        },
        harm: "a wave that is preempted at a barrier may be restored in another state: a hang, or wrong results",
        remedy: "Linux 6.12.17, 6.13.5, 6.14 or later",
        source: "Linux commit d584198a6fe4, \"Ensure consistent barrier state saved in gfx12 trap handler\"",
    },
    Entry {
        concerns: |versions| {
            versions.kernel.is_some_and(|kernel| before(kernel, &[(6, 12, 21), (6, 13, 9)], (6, 14)))
        },
        harm: "the handler that saves preempted waves has an instruction hazard: saved state may be wrong",
        remedy: "Linux 6.12.21, 6.13.9, 6.14 or later",
        source: "Linux commit 424648c38381, \"Fix instruction hazard in gfx12 trap handler\"",
    },
    Entry {
        concerns: |versions| {
            let has_it = |kernel: KernelVersion| {
                (kernel.is_of(6, 17) && kernel.patch >= 2)
                    || (kernel.is_of(6, 18) && kernel.patch < 19)
                    || (kernel.is_of(6, 19) && kernel.patch < 9)
            };
            versions.kernel.is_some_and(has_it) && versions.firmware.mes.is_some_and(|mes| mes >= 0x82)
        },
        harm: "the kernel switches on a workaround of the scheduler for long compute work, which it later took back for \
               reports of instability",
        remedy: "Linux 6.18.19, 6.19.9, 7.0 or later",
        source: "Linux commits 1fb710793ce2 (on) and 6b0d81297137 (\"Disable MES LR compute W/A\")",
    },
    Entry {
        concerns: |versions| versions.firmware.mes.is_some_and(|mes| mes < 0x8b),
        harm: "scheduler firmware older than the one that AMD names for the R9700 (MES 0x8b): the card stays busy and \
               warm while nothing runs",
        remedy: "a newer linux-firmware (gc_12_0_1_uni_mes.bin), then rebuild the initramfs and reboot",
        source: "ROCm issue 6155, answers of 4 and 5 May 2026",
    },
];

/// The rows that concern these versions.
pub(super) fn examine(versions: &Versions) -> Vec<Finding> {
    let rows = RECORD.iter().filter(|entry| (entry.concerns)(versions));
    rows.map(|entry| {
        Finding::warn("known problem", entry.harm, format!("{}; source: {}", entry.remedy, entry.source))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Harms that concern a kernel and a scheduler firmware, by a word of each.
    fn told(kernel: &str, mes: Option<u32>) -> Vec<&'static str> {
        let firmware = Firmware { mes, ..Firmware::default() };
        let found = examine(&Versions { kernel: KernelVersion::parse(kernel), firmware });
        let words = ["barrier", "hazard", "workaround", "busy"];
        let word_of =
            |finding: &Finding| words.into_iter().find(|word| finding.found.contains(word)).unwrap();
        found.iter().map(word_of).collect()
    }

    #[test]
    fn trap_handler_fixes_are_looked_for_in_each_stable_series() {
        for (kernel, expected) in [
            ("6.11.11", vec!["barrier", "hazard"]),
            ("6.12.16", vec!["barrier", "hazard"]),
            ("6.12.17", vec!["hazard"]),
            ("6.12.20", vec!["hazard"]),
            ("6.12.21", vec![]),
            ("6.13.4", vec!["barrier", "hazard"]),
            ("6.13.8", vec!["hazard"]),
            ("6.13.9", vec![]),
            ("6.14.0", vec![]),
            ("6.16.0", vec![]),
            ("7.0.0", vec![]),
        ] {
            assert_eq!(told(kernel, None), expected, "{kernel}");
        }
    }

    #[test]
    fn the_scheduler_workaround_is_told_where_both_kernel_and_firmware_have_it() {
        for (kernel, mes, expected) in [
            ("6.17.1", 0x8b, vec![]),
            ("6.17.2", 0x8b, vec!["workaround"]),
            ("6.17.13", 0x82, vec!["workaround", "busy"]),
            ("6.17.13", 0x81, vec!["busy"]),
            ("6.18.0", 0x8b, vec!["workaround"]),
            ("6.18.18", 0x8b, vec!["workaround"]),
            ("6.18.19", 0x8b, vec![]),
            ("6.19.8", 0x8b, vec!["workaround"]),
            ("6.19.9", 0x8b, vec![]),
            ("7.0.0", 0x8b, vec![]),
            ("7.0.0", 0x8a, vec!["busy"]),
        ] {
            assert_eq!(told(kernel, Some(mes)), expected, "{kernel}, MES {mes:#x}");
        }
    }

    #[test]
    fn what_could_not_be_read_is_no_problem_and_every_row_says_what_to_do_and_who_says_so() {
        assert!(examine(&Versions::default()).is_empty());
        for entry in RECORD {
            assert!(!entry.remedy.is_empty() && !entry.source.is_empty(), "{}", entry.harm);
        }
    }
}
