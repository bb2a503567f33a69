//! `zrt doctor`: what this machine has for running models, and what to do about what is missing.
//!
//! Contract: reads files and opens devices through [`Syscalls`], so that a machine can be made up in tests; changes
//! nothing, allocates no device memory, and never fails: what cannot be read is itself a finding.

mod card;
mod host;
pub mod isa;

pub use host::processor_name;

use serde::Serialize;
use std::fmt;
use zrt_kmd::Syscalls;

/// What a finding means for running on the card.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// As it should be.
    Good,
    /// Works, but not as well as it could; or cannot be told.
    Note,
    /// The card cannot be used until this is mended.
    Missing,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub subject: &'static str,
    /// What was found.
    pub found: String,
    /// What it means.
    pub verdict: Verdict,
    /// What to do about it, where something should be done.
    pub remedy: Option<String>,
}

/// Everything that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// In the order of looking.
    pub findings: Vec<Finding>,
    /// True where nothing that the card needs is missing.
    pub card_is_usable: bool,
}

impl Finding {
    fn good(subject: &'static str, found: impl Into<String>) -> Finding {
        Finding { subject, found: found.into(), verdict: Verdict::Good, remedy: None }
    }

    fn note(subject: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { subject, found: found.into(), verdict: Verdict::Note, remedy: Some(remedy.into()) }
    }

    fn missing(subject: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Finding {
        Finding { subject, found: found.into(), verdict: Verdict::Missing, remedy: Some(remedy.into()) }
    }
}

/// Looks at the machine.
pub fn examine(syscalls: &dyn Syscalls) -> Report {
    let mut findings = host::examine(syscalls);
    findings.extend(card::examine(syscalls));
    let card_is_usable = findings.iter().all(|finding| finding.verdict != Verdict::Missing);
    Report { findings, card_is_usable }
}

/// A small text file, without what surrounds the text; `None` where it cannot be read.
fn read_text(syscalls: &dyn Syscalls, path: &str) -> Option<String> {
    let bytes = syscalls.read_file(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.findings.iter().map(|finding| finding.subject.len()).max().unwrap_or(0);
        for finding in &self.findings {
            let mark = match finding.verdict {
                Verdict::Good => "ok",
                Verdict::Note => "note",
                Verdict::Missing => "MISSING",
            };
            writeln!(formatter, "{mark:<8}{:<width$}  {}", finding.subject, finding.found)?;
            if let Some(remedy) = &finding.remedy {
                writeln!(formatter, "{:<8}{:<width$}  -> {remedy}", "", "")?;
            }
        }
        writeln!(formatter)?;
        if self.card_is_usable {
            writeln!(formatter, "The card can be used: `--device auto` takes it if it passes its self-test.")
        } else {
            writeln!(formatter, "The card cannot be used here yet; the virtual device and the CPU can.")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use zrt_kmd::{Errno, Fd, Mapping, Protection, Reservation, UserPointer};

    /// A machine made of files.
    #[derive(Default)]
    pub(super) struct Files {
        files: BTreeMap<&'static str, String>,
        devices: BTreeMap<&'static str, Errno>,
    }

    impl Files {
        fn with(mut self, path: &'static str, text: &str) -> Files {
            self.files.insert(path, text.to_owned());
            self
        }

        fn device(mut self, path: &'static str, answer: Errno) -> Files {
            self.devices.insert(path, answer);
            self
        }
    }

    impl Syscalls for Files {
        fn open(&self, path: &str) -> Result<Fd, Errno> {
            match self.devices.get(path) {
                Some(Errno(0)) => Ok(Fd(3)),
                Some(errno) => Err(*errno),
                None => Err(Errno::ENOENT),
            }
        }

        fn close(&self, _: Fd) -> Result<(), Errno> {
            Ok(())
        }

        fn ioctl(&self, _: Fd, _: u32, _: UserPointer<'_>) -> Result<i32, Errno> {
            Err(Errno::ENOTTY)
        }

        fn reserve(&self, _: usize, _: usize) -> Result<Reservation, Errno> {
            Err(Errno::ENOMEM)
        }

        fn map(
            &self,
            _: Fd,
            _: u64,
            _: usize,
            _: Protection,
            _: Option<(&Reservation, usize)>,
        ) -> Result<Mapping, Errno> {
            Err(Errno::ENOMEM)
        }

        fn read_file(&self, path: &str) -> Result<Vec<u8>, Errno> {
            self.files.get(path).map(|text| text.clone().into_bytes()).ok_or(Errno::ENOENT)
        }

        fn read_directory(&self, path: &str) -> Result<Vec<String>, Errno> {
            let prefix = format!("{path}/");
            let inside = self.files.keys().filter_map(|file| file.strip_prefix(&prefix));
            let mut names: Vec<String> =
                inside.map(|rest| rest.split('/').next().unwrap_or(rest).to_owned()).collect();
            names.sort();
            names.dedup();
            if names.is_empty() { Err(Errno::ENOENT) } else { Ok(names) }
        }
    }

    const NODE: &str = "/sys/class/kfd/kfd/topology/nodes/1/properties";
    const BANK: &str = "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties";

    /// A machine with a card that works, as the hardware reference §1.1–1.3 describes its files.
    fn machine_with_card() -> Files {
        Files::default()
            .with("/proc/sys/kernel/osrelease", "6.14.0-33-generic\n")
            .with("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nGroups:\t44 992 1000\n")
            .with("/proc/self/limits", "Max locked memory         unlimited            unlimited            bytes\n")
            .with("/etc/group", "root:x:0:\nvideo:x:44:ann\nrender:x:992:ann\n")
            .with("/sys/module/amdgpu/initstate", "live\n")
            .with("/sys/module/amdgpu/parameters/user_queue", "-1\n")
            .with("/sys/class/kfd/kfd/topology/generation_id", "2\n")
            .with("/sys/class/kfd/kfd/topology/nodes/0/gpu_id", "0\n")
            .with("/sys/class/kfd/kfd/topology/nodes/0/properties", "cpu_cores_count 16\nsimd_count 0\n")
            .with("/sys/class/kfd/kfd/topology/nodes/1/gpu_id", "51545\n")
            .with("/sys/class/kfd/kfd/topology/nodes/1/name", "ip discovery\n")
            .with(
                NODE,
                "cpu_cores_count 0\nsimd_count 128\nmem_banks_count 1\nmax_waves_per_simd 16\nlds_size_in_kb 64\n\
                 wave_front_size 32\narray_count 8\nsimd_arrays_per_engine 2\ncu_per_simd_array 8\nsimd_per_cu 2\n\
                 max_slots_scratch_cu 32\ngfx_target_version 120001\nvendor_id 4098\ndevice_id 30033\n\
                 location_id 1280\ndomain 0\ndrm_render_minor 128\nmax_engine_clk_fcompute 2350\nlocal_mem_size 0\n\
                 fw_version 3010\nnum_xcc 1\n",
            )
            .with(BANK, "heap_type 1\nsize_in_bytes 34208743424\nflags 0\n")
            .with(
                "/sys/class/drm/renderD128/device/resource",
                "0x0000007800000000 0x0000007fffffffff 0x000000000014220c\n\
                 0x0000000000000000 0x0000000000000000 0x0000000000000000\n",
            )
            .device("/dev/kfd", Errno(0))
            .device("/dev/dri/renderD128", Errno(0))
    }

    fn verdict(report: &Report, subject: &str) -> Verdict {
        let finding = report.findings.iter().find(|finding| finding.subject == subject);
        finding.unwrap_or_else(|| panic!("nothing about {subject} in\n{report}")).verdict
    }

    #[test]
    fn a_machine_with_everything_is_ready() {
        let report = examine(&machine_with_card());
        assert!(report.card_is_usable, "{report}");
        for subject in ["kernel", "amdgpu driver", "/dev/kfd", "gfx1201 GPU", "render node", "BAR", "groups"]
        {
            assert_eq!(verdict(&report, subject), Verdict::Good, "{report}");
        }
        // MEC 3010 is below the floor of user queues.
        assert_eq!(verdict(&report, "firmware"), Verdict::Note, "{report}");
    }

    #[test]
    fn a_machine_without_a_card_says_what_is_missing_and_what_works() {
        let report = examine(&Files::default().with("/proc/sys/kernel/osrelease", "6.1.0\n"));
        assert!(!report.card_is_usable);
        assert_eq!(verdict(&report, "kernel"), Verdict::Note);
        assert_eq!(verdict(&report, "/dev/kfd"), Verdict::Missing);
        assert_eq!(verdict(&report, "gfx1201 GPU"), Verdict::Missing);
        let text = report.to_string();
        assert!(text.contains("the virtual device and the CPU can"), "{text}");
        let remedied = |finding: &Finding| finding.remedy.is_some() || finding.verdict == Verdict::Good;
        assert!(report.findings.iter().all(remedied), "{text}");
    }

    #[test]
    fn no_permission_names_the_group_to_join() {
        let machine = machine_with_card()
            .device("/dev/kfd", Errno::EACCES)
            .device("/dev/dri/renderD128", Errno::EACCES)
            .with("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nGroups:\t1000\n");
        let report = examine(&machine);
        assert_eq!(verdict(&report, "/dev/kfd"), Verdict::Missing);
        assert_eq!(verdict(&report, "render node"), Verdict::Missing);
        assert!(report.to_string().contains("usermod -aG render,video"), "{report}");
    }

    #[test]
    fn a_small_bar_is_noted_with_both_sizes() {
        let machine = machine_with_card().with(BANK, "heap_type 2\nsize_in_bytes 34208743424\n").with(
            "/sys/class/drm/renderD128/device/resource",
            "0x000000e000000000 0x000000e00fffffff 0x000000000014220c\n",
        );
        let report = examine(&machine);
        assert_eq!(verdict(&report, "BAR"), Verdict::Note, "{report}");
        let text = report.to_string();
        assert!(
            text.contains("256.00 MiB") && text.contains("31.86 GiB") && text.contains("Resizable BAR"),
            "{text}"
        );
    }

    #[test]
    fn another_gpu_is_named_and_refused() {
        let machine = machine_with_card().with(
            NODE,
            "simd_count 96\nmax_waves_per_simd 16\nlds_size_in_kb 64\nwave_front_size 32\narray_count 6\n\
             simd_arrays_per_engine 1\nsimd_per_cu 2\nmax_slots_scratch_cu 32\ngfx_target_version 110000\n\
             vendor_id 4098\ndevice_id 29772\nlocation_id 768\ndomain 0\ndrm_render_minor 128\n\
             max_engine_clk_fcompute 2300\nfw_version 550\n",
        );
        let report = examine(&machine);
        assert_eq!(verdict(&report, "gfx1201 GPU"), Verdict::Missing);
        assert!(report.to_string().contains("110000"), "{report}");
    }
}
