//! The examination over the virtual card, whose files are those of a card, with host files and faults planted over
//! them.

use super::*;
use std::collections::BTreeMap;
use std::sync::Arc;
use zrt_kmd::{Errno, Fd, Mapping, Protection, Reservation, UserPointer};
use zrt_vgpu::VirtualGpu;
use zrt_vgpu::config::Config;

const NODE: &str = "/sys/class/kfd/kfd/topology/nodes/1/properties";
const LINK: &str = "/sys/class/kfd/kfd/topology/nodes/1/io_links/0/properties";
const DEVICE: &str = "/sys/class/drm/renderD128/device";
/// Everything that the doctor reads about a card.
const CARD_FILES: &[&str] = &[
    "/sys/class/kfd/kfd/topology/generation_id",
    "/sys/class/kfd/kfd/topology/nodes/1/gpu_id",
    NODE,
    LINK,
    "/sys/class/kfd/kfd/topology/nodes/1/mem_banks/0/properties",
    "/sys/class/drm/renderD128/device/resource",
    "/sys/class/drm/renderD128/device/fw_version/me_fw_version",
    "/sys/class/drm/renderD128/device/fw_version/pfp_fw_version",
    "/sys/class/drm/renderD128/device/fw_version/mec_fw_version",
    "/sys/class/drm/renderD128/device/fw_version/mes_fw_version",
    "/sys/class/drm/renderD128/device/fw_version/mes_kiq_fw_version",
    "/sys/class/drm/renderD128/device/fw_version/rlc_fw_version",
    "/sys/class/drm/renderD128/device/drm/card0/card0-DP-1/status",
    "/sys/class/drm/renderD128/device/iommu_group/type",
    "/sys/module/amdgpu/parameters/user_queue",
    "/proc/sys/kernel/osrelease",
    "/proc/self/status",
    "/proc/self/limits",
    "/etc/group",
];

/// A machine: the virtual card, if there is one, under planted files and answers.
#[derive(Default)]
struct Machine {
    card: Option<Arc<VirtualGpu>>,
    files: BTreeMap<String, Vec<u8>>,
    folders: BTreeMap<&'static str, Result<Vec<String>, Errno>>,
    refused: BTreeMap<&'static str, Errno>,
}

impl Machine {
    fn with(mut self, path: &str, text: impl AsRef<[u8]>) -> Machine {
        self.files.insert(path.to_owned(), text.as_ref().to_owned());
        self
    }

    fn folder(mut self, path: &'static str, answer: Result<&[&str], Errno>) -> Machine {
        self.folders.insert(path, answer.map(|names| names.iter().map(|name| (*name).to_owned()).collect()));
        self
    }

    fn refusing(mut self, path: &'static str, errno: Errno) -> Machine {
        self.refused.insert(path, errno);
        self
    }
}

impl Syscalls for Machine {
    fn open(&self, path: &str) -> Result<Fd, Errno> {
        match (self.refused.get(path), &self.card) {
            (Some(errno), _) => Err(*errno),
            (None, Some(card)) => card.open(path),
            (None, None) => Err(Errno::ENOENT),
        }
    }

    fn close(&self, fd: Fd) -> Result<(), Errno> {
        self.card.as_ref().ok_or(Errno::EBADF)?.close(fd)
    }

    fn ioctl(&self, fd: Fd, request: u32, argument: UserPointer<'_>) -> Result<i32, Errno> {
        self.card.as_ref().ok_or(Errno::EBADF)?.ioctl(fd, request, argument)
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
        match (self.files.get(path), &self.card) {
            (Some(text), _) => Ok(text.clone()),
            (None, Some(card)) => card.read_file(path),
            (None, None) => Err(Errno::ENOENT),
        }
    }

    fn read_directory(&self, path: &str) -> Result<Vec<String>, Errno> {
        match (self.folders.get(path), &self.card) {
            (Some(answer), _) => answer.clone(),
            (None, Some(card)) => card.read_directory(path),
            (None, None) => Err(Errno::ENOENT),
        }
    }
}

/// The virtual card on a host that is as it should be. Its firmware is that of an old capture, so the scheduler's is
/// planted.
fn machine_on(config: Config) -> Machine {
    let machine = Machine { card: Some(VirtualGpu::new(config).unwrap()), ..Machine::default() };
    machine
        .with("/proc/sys/kernel/osrelease", "7.0.4-arch1-1\n")
        .with("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nGroups:\t44 992 1000\n")
        .with(
            "/proc/self/limits",
            "Max locked memory         unlimited            unlimited            bytes\n",
        )
        .with("/etc/group", "root:x:0:\nvideo:x:44:ann\nrender:x:992:ann\n")
        .with("/sys/module/amdgpu/initstate", "live\n")
        .with(&format!("{DEVICE}/fw_version/mes_fw_version"), "0x0000008b\n")
}

fn machine_with_card() -> Machine {
    machine_on(Config::default())
}

fn finding<'a>(report: &'a Report, subject: &str) -> &'a Finding {
    let finding = report.findings.iter().find(|finding| finding.subject == subject);
    finding.unwrap_or_else(|| panic!("nothing about {subject} in\n{report}"))
}

fn verdict(report: &Report, subject: &str) -> Verdict {
    finding(report, subject).verdict
}

#[test]
fn a_machine_with_everything_is_ready_and_nothing_is_warned_of() {
    let report = examine(&machine_with_card());
    assert!(report.card_is_usable, "{report}");
    // About the host's own processor and memory nothing is known here.
    let of_host = ["processor", "host memory"];
    for finding in report.findings.iter().filter(|finding| !of_host.contains(&finding.subject)) {
        assert_eq!(finding.verdict, Verdict::Ok, "{report}");
    }
    for subject in [
        "kernel",
        "virtual driver",
        "amdgpu driver",
        "other compute clients",
        "/dev/kfd",
        "gfx1201 GPU",
        "render node",
        "BAR",
        "PCIe atomics",
        "IOMMU",
        "displays",
        "firmware",
        "groups",
    ] {
        assert_eq!(verdict(&report, subject), Verdict::Ok, "{report}");
    }
}

#[test]
fn the_virtual_card_tells_the_firmware_of_its_captures() {
    let card = VirtualGpu::new(Config::default()).unwrap();
    let report = examine(card.as_ref());
    // MEC: hardware reference §1.2. The others: an R9700 of ROCm issue 6155, comment 2.
    let expected =
        "ME 2840, PFP 2900, MEC 3010, MES 0x81, MES_KIQ 0x81, RLC 0xbe7da0; too old for user queues";
    assert_eq!(finding(&report, "firmware").found, expected);
    assert!(finding(&report, "known problem").found.contains("MES 0x8b"), "{report}");
}

#[test]
fn a_machine_without_a_card_says_what_is_missing_and_what_works() {
    let report = examine(&Machine::default().with("/proc/sys/kernel/osrelease", "6.1.0\n"));
    assert!(!report.card_is_usable);
    assert_eq!(verdict(&report, "kernel"), Verdict::Warn);
    assert_eq!(verdict(&report, "/dev/kfd"), Verdict::Bad);
    assert_eq!(verdict(&report, "gfx1201 GPU"), Verdict::Bad);
    let text = report.to_string();
    assert!(text.contains("the virtual device and the CPU can"), "{text}");
    let remedied = |finding: &Finding| finding.remedy.is_some() || finding.verdict == Verdict::Ok;
    assert!(report.findings.iter().all(remedied), "{text}");
}

#[test]
fn kernels_below_6_16_are_warned_of() {
    for (release, expected) in [
        ("6.8.0-31-generic\n", Verdict::Warn),
        ("6.15.11\n", Verdict::Warn),
        ("6.16.0\n", Verdict::Ok),
        ("7.0.0-30-generic\n", Verdict::Ok),
        ("mainline\n", Verdict::Warn),
    ] {
        let report = examine(&machine_with_card().with("/proc/sys/kernel/osrelease", release));
        assert_eq!(verdict(&report, "kernel"), expected, "{report}");
        assert!(report.card_is_usable, "{report}");
    }
}

#[test]
fn no_permission_names_the_group_to_join() {
    let machine = machine_with_card()
        .refusing("/dev/kfd", Errno::EACCES)
        .refusing("/dev/dri/renderD128", Errno::EACCES)
        .with("/proc/self/status", "Uid:\t1000\t1000\t1000\t1000\nGroups:\t1000\n");
    let report = examine(&machine);
    assert_eq!(verdict(&report, "/dev/kfd"), Verdict::Bad);
    assert_eq!(verdict(&report, "render node"), Verdict::Bad);
    assert!(report.to_string().contains("usermod -aG render,video"), "{report}");
}

#[test]
fn a_small_bar_is_warned_of_with_both_sizes() {
    let report = examine(&machine_on(Config { large_bar: false, ..Config::default() }));
    assert_eq!(verdict(&report, "BAR"), Verdict::Warn, "{report}");
    let text = report.to_string();
    assert!(
        text.contains("256.00 MiB") && text.contains("31.86 GiB") && text.contains("Resizable BAR"),
        "{text}"
    );
}

#[test]
fn another_compute_process_is_named_and_this_one_is_not() {
    let own = std::process::id().to_string();
    let processes = "/sys/class/kfd/kfd/proc";
    let report = examine(&machine_with_card().folder(processes, Ok(&[&own])));
    assert_eq!(verdict(&report, "other compute clients"), Verdict::Ok, "{report}");
    let names = ["4000000017", &own, "not a number", "17", "4000000016", "1"];
    let machine = machine_with_card().folder(processes, Ok(&names)).with("/proc/17/comm", "ollama\x1b[2J\n");
    let report = examine(&machine);
    assert_eq!(verdict(&report, "other compute clients"), Verdict::Warn, "{report}");
    let found = &finding(&report, "other compute clients").found;
    assert_eq!(found, "/dev/kfd is open in process 1, 17 (ollama\\u{1b}[2J), 4000000016, 4000000017");
    let report = examine(&machine_with_card().folder(processes, Err(Errno::EACCES)));
    assert_eq!(verdict(&report, "other compute clients"), Verdict::Warn, "{report}");
}

#[test]
fn a_display_on_the_card_is_named() {
    let status = format!("{DEVICE}/drm/card0/card0-DP-1/status");
    let report = examine(&machine_with_card().with(&status, "connected\n"));
    assert_eq!(verdict(&report, "displays"), Verdict::Warn, "{report}");
    assert_eq!(finding(&report, "displays").found, "connected at card0-DP-1");
}

#[test]
fn links_without_atomics_are_told() {
    for (flags, expected) in
        [("1", Verdict::Ok), ("5", Verdict::Warn), ("9", Verdict::Warn), ("13", Verdict::Warn)]
    {
        let report = examine(&machine_with_card().with(LINK, format!("type 2\nflags {flags}\n")));
        assert_eq!(verdict(&report, "PCIe atomics"), expected, "{report}");
    }
}

#[test]
fn harmful_driver_options_are_told() {
    for (name, value, word) in [("cwsr_enable", "0", "preempted"), ("gpu_recovery", "0", "reboot")] {
        let path = format!("/sys/module/amdgpu/parameters/{name}");
        let report = examine(&machine_with_card().with(&path, value));
        assert!(finding(&report, "driver option").found.contains(word), "{report}");
        let report = examine(&machine_with_card().with(&path, "1"));
        assert!(report.findings.iter().all(|finding| finding.subject != "driver option"), "{report}");
    }
}

#[test]
fn firmware_that_is_hidden_or_garbled_is_told() {
    for text in ["", "0x\n", "-1\n", "0x123456789\n", "\u{0}"] {
        let report = examine(&machine_with_card().with(&format!("{DEVICE}/fw_version/me_fw_version"), text));
        assert_eq!(verdict(&report, "firmware"), Verdict::Warn, "{report}");
        assert!(finding(&report, "firmware").found.starts_with("ME ?, PFP 2900"), "{report}");
    }
}

#[test]
fn the_public_record_is_held_against_kernel_and_firmware() {
    let report = examine(&machine_with_card().with("/proc/sys/kernel/osrelease", "6.12.12+bpo-amd64\n"));
    let rows = report.findings.iter().filter(|finding| finding.subject == "known problem").count();
    assert_eq!(rows, 2, "{report}");
    assert!(report.to_string().contains("d584198a6fe4"), "{report}");
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
    assert_eq!(verdict(&report, "gfx1201 GPU"), Verdict::Bad);
    assert!(report.to_string().contains("110000"), "{report}");
}

#[test]
fn no_content_of_a_file_panics() {
    let long = vec![b'9'; 1 << 16];
    let contents: [&[u8]; 9] = [
        b"",
        b"\n\n\n",
        b"\xff\xfe\x00\x80",
        b"0x",
        b"flags\nflags \nflags 99999999999999999999\n",
        b"18446744073709551616",
        b"0x8000000000000000 0x7fffffffffffffff 0x0",
        b"simd_count 4294967295\nGroups:\t99999999999\nMax locked memory -1\n",
        &long,
    ];
    for path in CARD_FILES {
        for content in contents {
            let report = examine(&machine_with_card().with(path, content));
            let remedied = |finding: &Finding| finding.remedy.is_some() || finding.verdict == Verdict::Ok;
            assert!(report.findings.iter().all(remedied), "{path} {content:?}\n{report}");
        }
    }
    // The list is the doctor's: each of these is read, so a fault planted in it can show.
    for path in CARD_FILES.iter().filter(|path| path.starts_with("/sys/class")) {
        assert!(machine_with_card().read_file(path).is_ok(), "the virtual card has no {path}");
    }
}
