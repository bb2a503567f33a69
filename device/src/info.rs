//! What is known about an opened device.

use crate::options::DeviceOptions;
use std::sync::Arc;
use zrt_kmd::Vm;
use zrt_mem::ByteLen;

/// PCI device numbers of Navi 48 boards (hardware reference §1.2).
const DEVICE_R9700: u32 = 0x7551;
const DEVICE_RX9070: u32 = 0x7550;

/// What is known about an opened device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its name, for example `Radeon R9700 (gfx1201)`.
    pub name: String,
    /// The driver's number for it.
    pub gpu_id: u32,
    /// PCI vendor and device.
    pub pci_id: (u32, u32),
    /// The render node's file.
    pub render_node: String,
    /// Compute units that are enabled.
    pub compute_units: u32,
    /// Shader engines: the unit in which scratch is counted.
    pub shader_engines: u32,
    /// Total VRAM.
    pub vram: ByteLen,
    /// True if all VRAM is CPU-visible.
    pub has_large_bar: bool,
    /// Interface version of the driver.
    pub kfd_version: (u32, u32),
    /// MEC firmware.
    pub firmware: u32,
    /// Engine clock that the driver reports, in MHz.
    pub engine_clock_mhz: u32,
    /// Length of the command ring.
    pub ring_bytes: ByteLen,
    /// True if everything was requested to lie in system memory.
    pub gtt_only: bool,
    /// False if the GPU's clock counts the device's own work instead of time.
    pub has_real_clock: bool,
}

impl DeviceInfo {
    pub(crate) fn of(vm: &Arc<Vm>, options: &DeviceOptions) -> DeviceInfo {
        let node = vm.node();
        let properties = &node.properties;
        let board = match properties.device_id {
            DEVICE_R9700 => "R9700",
            DEVICE_RX9070 => "RX 9070",
            _ => "Navi 48",
        };
        let version = vm.process().version();
        DeviceInfo {
            name: format!("{} {board} (gfx1201)", options.brand),
            gpu_id: node.gpu_id,
            pci_id: (properties.vendor_id, properties.device_id),
            render_node: node.render_node_path(),
            compute_units: node.compute_units(),
            shader_engines: (properties.array_count / properties.simd_arrays_per_engine.max(1)).max(1),
            vram: ByteLen(node.vram_bytes()),
            has_large_bar: node.has_large_bar(),
            kfd_version: (version.major, version.minor),
            firmware: properties.fw_version,
            engine_clock_mhz: properties.max_engine_clk_fcompute_mhz,
            ring_bytes: options.ring_bytes,
            gtt_only: options.gtt_only,
            has_real_clock: options.has_real_clock,
        }
    }
}
