//! The part of the examination that concerns the card: driver and its options, device files, topology, BAR, PCIe,
//! firmware.
//!
//! Contract: as [`super`]; a device file is opened and closed at once, nothing is asked of it.

use super::finding::Finding;
use super::host::JOIN_GROUPS;
use super::kernel::{self, KernelVersion};
use super::record::{self, Versions};
use super::small_file::read_text;
use super::{firmware, sharing};
use crate::units;
use zrt_kmd::topology::{GpuNode, TOPOLOGY_ROOT, Topology};
use zrt_kmd::{Errno, Syscalls};

/// A link of the topology is without atomic operations of 32 or 64 bits: bits 2 and 3 of its `flags` (kfd_crat.h,
/// CRAT_IOLINK_FLAGS_NO_ATOMICS_32_BIT and _64_BIT).
const LINK_WITHOUT_ATOMICS: u64 = 0b1100;

pub(super) fn examine(syscalls: &dyn Syscalls) -> Vec<Finding> {
    // Before /dev/kfd is opened here.
    let others = sharing::other_processes(syscalls);
    let mut findings = vec![driver(syscalls)];
    findings.extend(options(syscalls));
    findings.extend([kfd(syscalls), others]);
    match find_gpu(syscalls) {
        Ok(node) => findings.extend(of_gpu(syscalls, &node)),
        Err(finding) => findings.push(finding),
    }
    findings
}

fn of_gpu(syscalls: &dyn Syscalls, node: &GpuNode) -> Vec<Finding> {
    let device = format!("/sys/class/drm/renderD{}/device", node.properties.drm_render_minor);
    let firmware = firmware::read(syscalls, &device);
    let kernel = kernel::release(syscalls).and_then(|release| KernelVersion::parse(&release));
    let mut findings = vec![
        gpu(node),
        render_node(syscalls, node),
        bar(syscalls, &device, node),
        atomics(syscalls, node),
        iommu(syscalls, &device),
        sharing::displays(syscalls, &device),
        firmware::examine(syscalls, &firmware),
    ];
    findings.extend(record::examine(&Versions { kernel, firmware }));
    findings
}

/// Options of the driver that cause harm.
fn options(syscalls: &dyn Syscalls) -> Vec<Finding> {
    let value = |name: &str| read_text(syscalls, &format!("/sys/module/amdgpu/parameters/{name}"));
    let mut findings = Vec::new();
    if value("cwsr_enable").as_deref() == Some("0") {
        let remedy = "remove amdgpu.cwsr_enable=0 from the kernel's command line";
        let found =
            "cwsr_enable is 0: a kernel that never ends cannot be preempted, and the card is reset instead";
        findings.push(Finding::warn("driver option", found, remedy));
    }
    if value("gpu_recovery").as_deref() == Some("0") {
        let remedy = "boot with amdgpu.gpu_recovery=1";
        let found = "gpu_recovery is 0: after a hang only a reboot brings the card back";
        findings.push(Finding::warn("driver option", found, remedy));
    }
    findings
}

fn driver(syscalls: &dyn Syscalls) -> Finding {
    const SUBJECT: &str = "amdgpu driver";
    match read_text(syscalls, "/sys/module/amdgpu/initstate") {
        Some(state) => Finding::ok(SUBJECT, state),
        // A driver that is part of the kernel has no state file, but its parameters are visible.
        None if syscalls.read_directory("/sys/module/amdgpu/parameters").is_ok() => {
            Finding::ok(SUBJECT, "built into the kernel")
        }
        None => Finding::bad(
            SUBJECT,
            "not loaded",
            "`sudo modprobe amdgpu`; inside a container or virtual machine, load it on the host and pass the devices in",
        ),
    }
}

/// Opens and closes a device file.
fn can_open(syscalls: &dyn Syscalls, subject: &'static str, path: &str, absent: &str) -> Finding {
    match syscalls.open(path) {
        Ok(fd) => match syscalls.close(fd) {
            Ok(()) => Finding::ok(subject, format!("{path} opens for reading and writing")),
            Err(errno) => {
                Finding::warn(subject, format!("{path} opens, closing it gives {errno}"), "report this")
            }
        },
        Err(errno @ (Errno::EACCES | Errno::EPERM)) => {
            Finding::bad(subject, format!("{path} may not be opened: {errno}"), JOIN_GROUPS)
        }
        Err(errno @ (Errno::ENOENT | Errno::ENODEV | Errno::ENXIO)) => {
            Finding::bad(subject, format!("{path} does not exist: {errno}"), absent)
        }
        Err(errno) => Finding::bad(
            subject,
            format!("{path} does not open: {errno}"),
            "see `dmesg` for what the amdgpu driver says",
        ),
    }
}

fn kfd(syscalls: &dyn Syscalls) -> Finding {
    let absent = "load amdgpu on a kernel with CONFIG_HSA_AMD; in a container add `--device /dev/kfd --device /dev/dri`";
    can_open(syscalls, "/dev/kfd", "/dev/kfd", absent)
}

fn find_gpu(syscalls: &dyn Syscalls) -> Result<GpuNode, Finding> {
    const SUBJECT: &str = "gfx1201 GPU";
    let topology = Topology::read(syscalls).map_err(|error| {
        Finding::bad(
            SUBJECT,
            error.to_string(),
            "the topology appears when the amdgpu driver starts with KFD",
        )
    })?;
    match topology.first_supported() {
        Ok(node) => Ok(node.clone()),
        Err(error) => {
            let remedy = "the kernels are made for gfx1201 (Radeon AI PRO R9700, RX 9070, RX 9070 XT)";
            Err(Finding::bad(SUBJECT, error.to_string(), remedy))
        }
    }
}

fn gpu(node: &GpuNode) -> Finding {
    let properties = &node.properties;
    let found = format!(
        "node {}, gpu_id {}, device {:04x}:{:04x}, {} CU, {} of VRAM, {} MHz",
        node.node,
        node.gpu_id,
        properties.vendor_id,
        properties.device_id,
        node.compute_units(),
        units::bytes(node.vram_bytes()),
        properties.max_engine_clk_fcompute_mhz,
    );
    Finding::ok("gfx1201 GPU", found)
}

fn render_node(syscalls: &dyn Syscalls, node: &GpuNode) -> Finding {
    let absent = "the amdgpu driver makes it; in a container add `--device /dev/dri`";
    can_open(syscalls, "render node", &node.render_node_path(), absent)
}

/// Size of the PCI BAR that shows VRAM: the first line of `resource` is begin, end and flags of BAR 0.
fn bar_bytes(syscalls: &dyn Syscalls, device: &str) -> Option<u64> {
    let resources = read_text(syscalls, &format!("{device}/resource"))?;
    let mut numbers = resources.lines().next()?.split_whitespace();
    let mut number = || u64::from_str_radix(numbers.next()?.strip_prefix("0x")?, 16).ok();
    let (begin, end) = (number()?, number()?);
    (end > begin).then(|| (end - begin).saturating_add(1))
}

fn bar(syscalls: &dyn Syscalls, device: &str, node: &GpuNode) -> Finding {
    const SUBJECT: &str = "BAR";
    let vram = units::bytes(node.vram_bytes());
    let size = bar_bytes(syscalls, device).map_or("of unknown size".to_owned(), units::bytes);
    let found = format!("{size} for {vram} of VRAM");
    if node.has_large_bar() {
        return Finding::ok(SUBJECT, format!("{found}: all of it is visible to the CPU"));
    }
    let remedy = "rings and parameters go to host memory instead, which is slower: switch on Above 4G Decoding and \
                  Resizable BAR in the firmware set-up";
    Finding::warn(SUBJECT, format!("{found}: not all of it is visible to the CPU"), remedy)
}

/// Whether the card's atomic operations reach host memory, from the flags of its links.
fn atomics(syscalls: &dyn Syscalls, node: &GpuNode) -> Finding {
    const SUBJECT: &str = "PCIe atomics";
    let links = format!("{TOPOLOGY_ROOT}/nodes/{}/io_links", node.node);
    let flags = |link: &String| -> Option<u64> {
        let text = read_text(syscalls, &format!("{links}/{link}/properties"))?;
        text.lines().find_map(|line| line.strip_prefix("flags "))?.trim().parse().ok()
    };
    let names = syscalls.read_directory(&links).unwrap_or_default();
    let flags: Vec<u64> = names.iter().filter_map(flags).collect();
    let remedy = "kernels that count in host memory fail; ours count in VRAM. Another slot may have them";
    match flags[..] {
        [] => Finding::warn(SUBJECT, "the topology shows no link", remedy),
        _ if flags.iter().any(|flags| flags & LINK_WITHOUT_ATOMICS != 0) => {
            Finding::warn(SUBJECT, "not on the way to host memory", remedy)
        }
        _ => Finding::ok(SUBJECT, "on the way to host memory"),
    }
}

/// The domain that the card's accesses to host memory go through.
fn iommu(syscalls: &dyn Syscalls, device: &str) -> Finding {
    const SUBJECT: &str = "IOMMU";
    let found = match read_text(syscalls, &format!("{device}/iommu_group/type")).as_deref() {
        Some("identity") => "passes through".to_owned(),
        Some(kind @ ("DMA" | "DMA-FQ")) => format!("translates ({kind})"),
        Some(kind) => format!("of type {kind:?}"),
        None => "none, or not shown".to_owned(),
    };
    Finding::ok(SUBJECT, found)
}
