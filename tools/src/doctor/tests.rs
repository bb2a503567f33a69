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

/// The findings that do not depend on the machine that runs the test, as lines.
fn lines(report: &Report) -> Vec<String> {
    let told = report.findings.iter().filter(|one| !["processor", "virtual driver"].contains(&one.subject));
    told.map(|one| format!("{}: {}", one.subject, one.found)).collect()
}

#[test]
fn everything_about_the_virtual_card_is_said_in_order() {
    let machine = machine_with_card().with("/proc/meminfo", "MemTotal: 9 kB\nMemAvailable:  524288 kB\n");
    let machine = machine.with(
        "/proc/self/limits",
        "Max locked memory  67108864 67108864 bytes\nMax address space  unlimited  unlimited  bytes\n",
    );
    let report = examine(&machine);
    assert!(report.findings.iter().skip(1).all(|finding| finding.verdict == Verdict::Ok), "{report}");
    // The numbers are those of hardware reference §1.
    let expected = [
        "host memory: 512.00 MiB available",
        "kernel: Linux 7.0.4-arch1-1",
        "locked memory limit: 64.00 MiB",
        "address space limit: unlimited",
        "groups: member of render and video",
        "amdgpu driver: live",
        "/dev/kfd: /dev/kfd opens for reading and writing",
        "other compute clients: none",
        "gfx1201 GPU: node 1, gpu_id 40267, device 1002:7551, 64 CU, 31.86 GiB of VRAM, 2350 MHz",
        "render node: /dev/dri/renderD128 opens for reading and writing",
        "BAR: 32.00 GiB for 31.86 GiB of VRAM: all of it is visible to the CPU",
        "PCIe atomics: on the way to host memory",
        "IOMMU: passes through",
        "displays: none connected: headless",
        "firmware: ME 2840, PFP 2900, MEC 3010, MES 0x8b, MES_KIQ 0x81, RLC 0xbe7da0; too old for user queues",
    ];
    assert_eq!(lines(&report), expected);
}

/// One under each limit is warned of.
#[test]
fn small_limits_of_the_host_are_warned_of() {
    for (path, text, subject, found) in [
        ("/proc/meminfo", "MemAvailable: 524287 kB\n", "host memory", "512.00 MiB available"),
        ("/proc/self/limits", "Max locked memory 67108863 1 bytes\n", "locked memory limit", "64.00 MiB"),
        ("/proc/self/limits", "Max address space 8589934592 1 bytes\n", "address space limit", "8.00 GiB"),
        ("/proc/sys/kernel/osrelease", "rolling\n", "kernel", "release \"rolling\" has an unknown form"),
    ] {
        let report = examine(&machine_with_card().with(path, text));
        assert_eq!(
            (verdict(&report, subject), finding(&report, subject).found.as_str()),
            (Verdict::Warn, found)
        );
    }
    let report = examine(&Machine::default());
    assert_eq!(finding(&report, "kernel").found, "the release cannot be read");
    for (path, text) in
        [("/proc/meminfo", "MemAvailable: many kB"), ("/proc/self/limits", "Max locked memory x")]
    {
        let report = examine(&Machine::default().with(path, text));
        let of = ["host memory", "locked memory limit", "address space limit"];
        assert!(report.findings.iter().all(|finding| !of.contains(&finding.subject)), "{report}");
    }
}

#[test]
fn the_processor_is_called_what_the_kernel_calls_it() {
    let machine = Machine::default()
        .with("/proc/cpuinfo", "processor\t: 0\nmodel name\t: Some: CPU 9 \nflags\t: fpu\n");
    assert_eq!(processor_name(&machine), "Some: CPU 9");
    assert!(finding(&examine(&machine), "processor").found.starts_with("Some: CPU 9, "));
    assert_eq!(processor_name(&Machine::default()), std::env::consts::ARCH);
}

/// By the effective user and the numbers that /etc/group gives the groups.
#[test]
fn groups_are_those_of_this_process() {
    let of = |uids: &str, groups: &str, file: &str| {
        let status = format!("Name:\tzrt\nUid:\t{uids}\nGroups:\t{groups}\n");
        let machine = machine_with_card().with("/proc/self/status", status).with("/etc/group", file);
        let report = examine(&machine);
        (verdict(&report, "groups"), finding(&report, "groups").found.clone())
    };
    let file = "root:x:0:\n\nvideo:x:44:ann\nrender:x:992:ann\n";
    for (uids, groups, file, verdict, found) in [
        ("1000\t0\t0\t0", "", file, Verdict::Ok, "root, which may open every device"),
        ("0\t1000\t1000\t1000", "992 44", file, Verdict::Ok, "member of render and video"),
        ("1\t1\t1\t1", "44", file, Verdict::Warn, "member of video, not of render"),
        ("1\t1\t1\t1", "9 992", file, Verdict::Warn, "member of render, not of video"),
        ("1\t1\t1\t1", "9", file, Verdict::Warn, "member of neither render nor video"),
        ("1\t1\t1\t1", "44 992", "video:x:x:\nrender\n", Verdict::Warn, "member of neither render nor video"),
    ] {
        assert_eq!(of(uids, groups, file), (verdict, found.to_owned()), "{uids} {groups}");
    }
}

#[test]
fn each_way_in_which_a_device_does_not_open_is_told() {
    for (errno, found, remedy) in [
        (Errno::EACCES, "/dev/kfd may not be opened: EACCES", "usermod"),
        (Errno::EPERM, "/dev/kfd may not be opened: EPERM", "usermod"),
        (Errno::ENOENT, "/dev/kfd does not exist: ENOENT", "CONFIG_HSA_AMD"),
        (Errno::ENODEV, "/dev/kfd does not exist: ENODEV", "CONFIG_HSA_AMD"),
        (Errno::ENXIO, "/dev/kfd does not exist: ENXIO", "CONFIG_HSA_AMD"),
        (Errno::EBUSY, "/dev/kfd does not open: EBUSY", "dmesg"),
    ] {
        let report = examine(&machine_with_card().refusing("/dev/kfd", errno));
        let kfd = finding(&report, "/dev/kfd");
        assert!(kfd.found.starts_with(found), "{report}");
        assert!(kfd.remedy.as_ref().is_some_and(|told| told.contains(remedy)), "{report}");
        assert!(!report.card_is_usable && kfd.verdict == Verdict::Bad);
    }
}

#[test]
fn the_driver_is_loaded_or_part_of_the_kernel_or_missing() {
    let parameters = "/sys/module/amdgpu/parameters";
    let of = |machine: Machine| {
        let report = examine(&machine);
        (verdict(&report, "amdgpu driver"), finding(&report, "amdgpu driver").found.clone())
    };
    assert_eq!(of(Machine::default()), (Verdict::Bad, "not loaded".to_owned()));
    let built_in = Machine::default().folder(parameters, Ok(&[]));
    assert_eq!(of(built_in), (Verdict::Ok, "built into the kernel".to_owned()));
}

/// The kind of the IOMMU's domain as the kernel has it (Documentation/ABI/testing/sysfs-kernel-iommu_groups), the first
/// line of `resource`, and the flags of all links.
#[test]
fn the_way_to_host_memory_is_told_from_its_files() {
    let domain = format!("{DEVICE}/iommu_group/type");
    for (text, found) in [
        ("DMA\n", "translates (DMA)"),
        ("DMA-FQ\n", "translates (DMA-FQ)"),
        ("identity\n", "passes through"),
        ("blocked\n", "of type \"blocked\""),
    ] {
        assert_eq!(finding(&examine(&machine_with_card().with(&domain, text)), "IOMMU").found, found);
    }
    let resource = format!("{DEVICE}/resource");
    for (text, size) in [
        ("0x0000000800000000 0x00000008ffffffff 0x000000000014220c\n0x0 0x1 0x0\n", "4.00 GiB"),
        ("0x1000 0x1000 0x0\n", "of unknown size"),
        ("0x1000 0x0fff 0x0\n", "of unknown size"),
        ("0x1000\n", "of unknown size"),
        ("1000 2000\n", "of unknown size"),
        ("0x0 0xffffffffffffffff 0x0\n", "17179869184.00 GiB"),
    ] {
        let report = examine(&machine_with_card().with(&resource, text));
        assert!(finding(&report, "BAR").found.starts_with(&format!("{size} for 31.86 GiB")), "{report}");
    }
    let links = "/sys/class/kfd/kfd/topology/nodes/1/io_links";
    let report = examine(&machine_with_card().folder(links, Ok(&[])));
    assert_eq!(finding(&report, "PCIe atomics").found, "the topology shows no link");
    assert_eq!(verdict(&report, "PCIe atomics"), Verdict::Warn);
    let second = "/sys/class/kfd/kfd/topology/nodes/1/io_links/1/properties";
    let two = machine_with_card().folder(links, Ok(&["0", "1"])).with(second, "flags 4\n");
    assert_eq!(verdict(&examine(&two), "PCIe atomics"), Verdict::Warn);
}

/// Four are named, and of further ones the number is given; connectors are folders of a card's folder that begin with
/// its name.
#[test]
fn displays_and_processes_are_named_up_to_four() {
    let drm = "/sys/class/drm/renderD128/device/drm";
    let card = "/sys/class/drm/renderD128/device/drm/card0";
    let with = |connected: &[usize], names: &[&str]| {
        let mut machine =
            machine_with_card().folder(drm, Ok(&["renderD128", "card0"])).folder(card, Ok(names));
        for (index, name) in names.iter().enumerate() {
            let text = if connected.contains(&index) { "connected\n" } else { "disconnected\n" };
            machine = machine.with(&format!("{card}/{name}/status"), text);
        }
        finding(&examine(&machine), "displays").found.clone()
    };
    let names = ["card0-DP-2", "card0-DP-1", "power", "card0-HDMI-A-1", "card0-DP-3", "card0-DP-4"];
    assert_eq!(with(&[], &["power", "card01-DP-1"]), "no connector is shown");
    assert_eq!(with(&[2], &names), "none connected: headless");
    assert_eq!(
        with(&[0, 1, 3, 4], &names),
        "connected at card0-DP-1, card0-DP-2, card0-DP-3, card0-HDMI-A-1"
    );
    let all = "connected at card0-DP-1, card0-DP-2, card0-DP-3, card0-DP-4 and 1 more";
    assert_eq!(with(&[0, 1, 2, 3, 4, 5], &names), all);
    let processes = ["1", "2", "3", "4", "5", "6"];
    let machine = machine_with_card().folder("/sys/class/kfd/kfd/proc", Ok(&processes));
    let report = examine(&machine);
    let found = &finding(&report, "other compute clients").found;
    assert_eq!(found, "/dev/kfd is open in process 1, 2, 3, 4 and 2 more");
}

/// MEC 3050 is the first with user queues (hardware reference §3.2); of the six versions the last two may be hidden.
#[test]
fn firmware_says_whether_user_queues_may_be_used() {
    let file = |name: &str| format!("{DEVICE}/fw_version/{name}_fw_version");
    let of = |mec: u32| machine_with_card().with(&file("mec"), format!("{mec:#010x}\n"));
    let end = |machine: &Machine| {
        let report = examine(machine);
        let found = &finding(&report, "firmware").found;
        (verdict(&report, "firmware"), found.rsplit_once("; ").unwrap().1.to_owned())
    };
    assert_eq!(end(&of(3049)), (Verdict::Ok, "too old for user queues".to_owned()));
    // The virtual card's driver has the parameter at its default.
    assert_eq!(end(&of(3050)), (Verdict::Ok, "amdgpu.user_queue -1".to_owned()));
    let set = of(3050).with("/sys/module/amdgpu/parameters/user_queue", "2\n");
    assert_eq!(end(&set), (Verdict::Ok, "amdgpu.user_queue 2".to_owned()));
    let new = firmware::Firmware { mec: Some(3050), ..firmware::Firmware::default() };
    assert!(firmware::examine(&Machine::default(), &new).found.ends_with("; amdgpu.user_queue absent"));
    for (name, expected) in [
        ("me", Verdict::Warn),
        ("pfp", Verdict::Warn),
        ("mec", Verdict::Warn),
        ("mes", Verdict::Warn),
        ("mes_kiq", Verdict::Ok),
        ("rlc", Verdict::Ok),
    ] {
        assert_eq!(
            verdict(&examine(&machine_with_card().with(&file(name), "?")), "firmware"),
            expected,
            "{name}"
        );
    }
}

#[test]
fn a_report_is_a_line_for_each_finding_and_its_remedy_below() {
    let findings = vec![
        Finding::ok("kernel", "Linux"),
        Finding::warn("BAR", "small", "grow it"),
        Finding::bad("/dev/kfd", "no", "yes"),
    ];
    let text = |card_is_usable| Report { findings: findings.clone(), card_is_usable }.to_string();
    let rows = "\
ok    kernel    Linux
warn  BAR       small
                -> grow it
BAD   /dev/kfd  no
                -> yes

";
    let good = "The card can be used: `--device auto` takes it if it passes its self-test.\n";
    assert_eq!(text(true), format!("{rows}{good}"));
    let bad = "The card cannot be used here yet; the virtual device and the CPU can.\n";
    assert_eq!(text(false), format!("{rows}{bad}"));
}
