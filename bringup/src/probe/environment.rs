//! Where the answers come from: driver, firmware, the board as the driver describes it.
//!
//! Contract: read through the seam, like everything from the driver; a file that does not exist is left out. Names the
//! model of the machine's parts and versions, nothing that identifies this machine: no serial, no address on the bus,
//! no path. Set-up only.

use crate::inspect::Inspect;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use zrt_device::Device;

/// The kernel's release.
const RELEASE_PATH: &str = "/proc/sys/kernel/osrelease";
/// The driver's options that are in effect.
const OPTIONS_FOLDER: &str = "/sys/module/amdgpu/parameters";
/// Those that affect compute queues.
const OPTIONS: [&str; 8] = [
    "cwsr_enable",
    "gpu_recovery",
    "halt_if_hws_hang",
    "mes",
    "mes_kiq",
    "no_queue_eviction_on_vm_fault",
    "sched_policy",
    "user_queue",
];
/// Firmware versions below the render node's device folder (Linux, `amdgpu_ucode.c`, attribute group `fw_version`).
const FIRMWARE: [&str; 11] = [
    "imu_fw_version",
    "mec_fw_version",
    "me_fw_version",
    "mes_fw_version",
    "mes_kiq_fw_version",
    "pfp_fw_version",
    "rlc_fw_version",
    "sdma_fw_version",
    "smc_fw_version",
    "ta_ras_fw_version",
    "vcn_fw_version",
];
/// Longest word that is taken from a file, in bytes.
const WORD_BYTES_MAX: usize = 64;

/// What is known about the machine, by topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    /// Name of the device.
    pub device: String,
    /// True for the virtual device: its times mean nothing.
    pub is_virtual: bool,
    /// Kernel release; empty if the seam shows none.
    pub kernel: String,
    /// Firmware versions by file name, as the driver writes them.
    pub firmware: BTreeMap<String, String>,
    /// Options of the driver.
    pub driver_options: BTreeMap<String, String>,
    /// What the topology says: numbers by name.
    pub topology: BTreeMap<String, u64>,
}

/// Reads the environment.
pub fn environment(device: &Device) -> Environment {
    let read = |path: &str| {
        let bytes = device.syscalls().read_file(path).ok()?;
        let text = String::from_utf8_lossy(&bytes);
        let word = text.split_whitespace().next()?;
        let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "+-._~x".contains(letter);
        Some(word.chars().filter(|letter| is_plain(*letter)).take(WORD_BYTES_MAX).collect::<String>())
    };
    let files = |folder: &str, names: &[&str]| {
        let file = |name: &&str| Some(((*name).to_owned(), read(&format!("{folder}/{name}"))?));
        names.iter().filter_map(file).collect::<BTreeMap<String, String>>()
    };
    let info = device.info();
    let node = info.render_node.rsplit('/').next().unwrap_or_default();
    let mut firmware = files(&format!("/sys/class/drm/{node}/device/fw_version"), &FIRMWARE);
    firmware.insert("mec_of_topology".into(), info.firmware.to_string());
    let topology = [
        ("compute_units", u64::from(info.compute_units)),
        ("engine_clock_mhz", u64::from(info.engine_clock_mhz)),
        ("has_large_bar", u64::from(info.has_large_bar)),
        ("kfd_version_major", u64::from(info.kfd_version.0)),
        ("kfd_version_minor", u64::from(info.kfd_version.1)),
        ("pci_device", u64::from(info.pci_id.1)),
        ("pci_vendor", u64::from(info.pci_id.0)),
        ("ring_bytes", info.ring_bytes.0),
        ("shader_engines", u64::from(info.shader_engines)),
        ("vram_bytes", info.vram.0),
    ];
    Environment {
        device: info.name.clone(),
        is_virtual: device.is_virtual(),
        kernel: read(RELEASE_PATH).unwrap_or_default(),
        firmware,
        driver_options: files(OPTIONS_FOLDER, &OPTIONS),
        topology: topology.into_iter().map(|(name, value)| (name.into(), value)).collect(),
    }
}
