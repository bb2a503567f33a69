//! The part of the examination that concerns the card: driver, device files, topology, BAR, firmware.
//!
//! Contract: as [`super`]; a device file is opened and closed at once, nothing is asked of it.

use super::host::JOIN_GROUPS;
use super::{Finding, read_text};
use crate::units;
use zrt_kmd::topology::{GpuNode, Topology};
use zrt_kmd::{Errno, Syscalls};

/// MEC firmware from which user queues exist on gfx12 (hardware reference §3.2).
const USER_QUEUE_FIRMWARE_MIN: u32 = 3050;

pub(super) fn examine(syscalls: &dyn Syscalls) -> Vec<Finding> {
    let mut findings = vec![driver(syscalls), kfd(syscalls)];
    match find_gpu(syscalls) {
        Ok(node) => {
            findings.push(gpu(&node));
            findings.push(render_node(syscalls, &node));
            findings.push(bar(syscalls, &node));
            findings.push(firmware(syscalls, &node));
        }
        Err(finding) => findings.push(finding),
    }
    findings
}

fn driver(syscalls: &dyn Syscalls) -> Finding {
    const SUBJECT: &str = "amdgpu driver";
    match read_text(syscalls, "/sys/module/amdgpu/initstate") {
        Some(state) => Finding::good(SUBJECT, state),
        // A driver that is part of the kernel has no state file, but its parameters show.
        None if syscalls.read_directory("/sys/module/amdgpu/parameters").is_ok() => {
            Finding::good(SUBJECT, "built into the kernel")
        }
        None => Finding::missing(
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
            Ok(()) => Finding::good(subject, format!("{path} opens for reading and writing")),
            Err(errno) => {
                Finding::note(subject, format!("{path} opens, closing it gives {errno}"), "report this")
            }
        },
        Err(errno @ (Errno::EACCES | Errno::EPERM)) => {
            Finding::missing(subject, format!("{path} may not be opened: {errno}"), JOIN_GROUPS)
        }
        Err(errno @ (Errno::ENOENT | Errno::ENODEV | Errno::ENXIO)) => {
            Finding::missing(subject, format!("{path} does not exist: {errno}"), absent)
        }
        Err(errno) => Finding::missing(
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
        Finding::missing(
            SUBJECT,
            error.to_string(),
            "the topology appears when the amdgpu driver starts with KFD",
        )
    })?;
    match topology.first_supported() {
        Ok(node) => Ok(node.clone()),
        Err(error) => {
            let remedy = "the kernels are made for gfx1201 (Radeon AI PRO R9700, RX 9070, RX 9070 XT)";
            Err(Finding::missing(SUBJECT, error.to_string(), remedy))
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
    Finding::good("gfx1201 GPU", found)
}

fn render_node(syscalls: &dyn Syscalls, node: &GpuNode) -> Finding {
    let absent = "the amdgpu driver makes it; in a container add `--device /dev/dri`";
    can_open(syscalls, "render node", &node.render_node_path(), absent)
}

/// Size of the PCI BAR that shows VRAM: the first line of `resource` is begin, end and flags of BAR 0.
fn bar_bytes(syscalls: &dyn Syscalls, node: &GpuNode) -> Option<u64> {
    let path = format!("/sys/class/drm/renderD{}/device/resource", node.properties.drm_render_minor);
    let resources = read_text(syscalls, &path)?;
    let mut numbers = resources.lines().next()?.split_whitespace();
    let mut number = || u64::from_str_radix(numbers.next()?.strip_prefix("0x")?, 16).ok();
    let (begin, end) = (number()?, number()?);
    (end > begin).then(|| (end - begin).saturating_add(1))
}

fn bar(syscalls: &dyn Syscalls, node: &GpuNode) -> Finding {
    const SUBJECT: &str = "BAR";
    let vram = units::bytes(node.vram_bytes());
    let size = bar_bytes(syscalls, node).map_or("of unknown size".to_owned(), units::bytes);
    let found = format!("{size} for {vram} of VRAM");
    if node.has_large_bar() {
        return Finding::good(SUBJECT, format!("{found}: all of it is visible to the CPU"));
    }
    let remedy = "rings and parameters go to host memory instead, which is slower: switch on Above 4G Decoding and \
                  Resizable BAR in the firmware set-up";
    Finding::note(SUBJECT, format!("{found}: not all of it is visible to the CPU"), remedy)
}

fn firmware(syscalls: &dyn Syscalls, node: &GpuNode) -> Finding {
    const SUBJECT: &str = "firmware";
    let version = node.properties.fw_version;
    let parameter = read_text(syscalls, "/sys/module/amdgpu/parameters/user_queue");
    let parameter = parameter.as_deref().unwrap_or("absent");
    let found = format!("MEC {version}; amdgpu.user_queue is {parameter}");
    if version < USER_QUEUE_FIRMWARE_MIN {
        let remedy = format!(
            "nothing to do for --device kfd; user queues (--device userq) need MEC {USER_QUEUE_FIRMWARE_MIN} or later"
        );
        return Finding::note(SUBJECT, found, remedy);
    }
    Finding::good(SUBJECT, found)
}
