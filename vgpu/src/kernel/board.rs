//! The figures of the modelled board: Radeon AI PRO R9700.
//!
//! Contract: constants only. Sources: hardware reference §1.2 to §1.4 and §2.4 to §2.6; the few values that the
//! reference leaves open are marked "chosen".

/// KFD's id of the GPU: a 16-bit hash on a real system (it fits mmap offset bits 61:46); this value is chosen.
pub const GPU_ID: u32 = 0x9D4B;
/// Minor number of the render node (hardware reference §1.2).
pub const RENDER_MINOR: u32 = 128;
/// Character devices of the DRM have this major number (`Documentation/admin-guide/devices.txt`).
pub(crate) const DRM_MAJOR: u32 = 226;
/// Name of the render node.
pub(crate) const RENDER_NAME: &str = "renderD128";
/// Path of the KFD character device.
pub const KFD_PATH: &str = "/dev/kfd";
/// Path of the render node.
pub const RENDER_PATH: &str = "/dev/dri/renderD128";

/// VRAM as the topology reports it (hardware reference §1.3).
pub const VRAM_BYTES: u64 = 34_208_743_424;
/// The part of VRAM that the CPU can access with a small BAR: the usual 256 MiB window (chosen).
pub const SMALL_BAR_BYTES: u64 = 256 << 20;
/// System memory that the GPU may map (chosen: 16 GiB).
pub const GTT_BYTES: u64 = 16 << 30;

pub(crate) const COMPUTE_UNITS: u32 = 64;
pub(crate) const SIMD_PER_CU: u32 = 2;
pub(crate) const SIMD_COUNT: u32 = COMPUTE_UNITS * SIMD_PER_CU;
pub(crate) const SHADER_ENGINES: u32 = 4;
pub(crate) const SHADER_ARRAYS_PER_ENGINE: u32 = 2;
pub(crate) const ARRAY_COUNT: u32 = SHADER_ENGINES * SHADER_ARRAYS_PER_ENGINE;
pub(crate) const CU_PER_ARRAY: u32 = COMPUTE_UNITS / ARRAY_COUNT;
pub(crate) const MAX_WAVES_PER_SIMD: u32 = 16;
pub(crate) const MAX_SLOTS_SCRATCH_CU: u32 = 32;
pub(crate) const LDS_KIB: u32 = 64;
pub(crate) const WAVE_LANES: u32 = 32;
pub(crate) const GFX_TARGET_VERSION: u32 = 120_001;
pub(crate) const VENDOR_ID: u32 = 0x1002;
pub(crate) const DEVICE_ID: u32 = 0x7551;
/// Bus 05, device 0, function 0.
pub(crate) const LOCATION_ID: u32 = 0x0500;
/// PCI address in the form of sysfs.
pub(crate) const PCI_ADDRESS: &str = "0000:05:00.0";
pub(crate) const ENGINE_CLOCK_MHZ: u32 = 2350;
/// MEC firmware of the captured board: below 3050, so user queues are not available (hardware reference §3.2).
pub(crate) const MEC_FIRMWARE: u32 = 3010;
/// Further firmware versions, as named by `fw_version`. No capture of a board with that MEC version lists them;
/// these are from an R9700 with MEC 3140 (ROCm issue 6155, comment 2).
pub(crate) const OTHER_FIRMWARE: [(&str, u32); 5] =
    [("me", 2840), ("pfp", 2900), ("rlc", 0x00BE_7DA0), ("mes", 0x81), ("mes_kiq", 0x81)];
/// `capability` without the kernel-dependent bits: derived from `kfd_topology.c` for GC 12.0.1 and equal to a
/// published R9700 configuration (ROCm/rocm-systems, `gfx1201_r9700.json`, 1745068672), with the ASIC revision 1 of
/// the same source and of rocminfo's dumps in bits 25:22. Four watch points, doorbells of type 2, SVM, trap
/// debugging with precise ALU operations.
pub(crate) const CAPABILITY: u32 = 0x6803_A280 | 1 << 22;
/// `HSA_CAP_TRAP_DEBUG_PRECISE_MEMORY_OPERATIONS_SUPPORTED`.
pub(crate) const CAPABILITY_PRECISE_MEMORY: u32 = 1 << 18;
/// Address bits that a watch point compares (7 to 29), and dispatch information always valid (same sources: 1495).
pub(crate) const DEBUG_PROPERTIES: u64 = 7 | 29 << 4 | 1 << 10;
/// From the published configuration; every card has its own.
pub(crate) const UNIQUE_ID: u64 = 7_607_916_237_085_355_008;
/// Chosen: no public dump of gfx1201 contains it.
pub(crate) const SDMA_FIRMWARE: u32 = 700;
/// A kernel with MES keeps two of the eight for itself (`kfd_device.c`; the published configuration says 6).
pub(crate) const SDMA_QUEUES_PER_ENGINE: u32 = 6;
/// Engines that copy (the published configuration).
pub(crate) const SDMA_ENGINES: u32 = 2;
/// Compute queues of the kernel's scheduler (the published configuration).
pub(crate) const CP_QUEUES: u32 = 4;
/// Chosen: no public dump of gfx1201 contains it. Fields of the register as `gfx12` address libraries read them: 32
/// pipes, interleaved by 256 bytes.
pub(crate) const GB_ADDR_CONFIG: u32 = 0x545;
/// Dword offset of GB_ADDR_CONFIG (libdrm reads it when it opens a device).
pub(crate) const GB_ADDR_CONFIG_REGISTER: u32 = 0x263E;
pub(crate) const GL2_KIB: u32 = 8192;
pub(crate) const MALL_KIB: u32 = 65_536;
pub(crate) const L0_KIB: u32 = 32;
pub(crate) const GL2_LINE_BYTES: u32 = 256;

pub(crate) const PAGE_BYTES: u64 = 4096;
/// Lowest GPU address for user space (hardware reference §2.4).
pub(crate) const GPUVM_BASE: u64 = 0x100_0000;
/// Highest GPU address for user space: the lower half of the 48-bit canonical space.
pub(crate) const GPUVM_LIMIT: u64 = 0x7FFF_FFFF_FFFF;
pub(crate) const LDS_APERTURE_BASE: u64 = 1 << 48;
pub(crate) const SCRATCH_APERTURE_BASE: u64 = 2 << 48;
pub(crate) const APERTURE_BYTES: u64 = 1 << 32;

/// Doorbells of one process on one device (hardware reference §2.5): 1024 of 8 bytes.
pub(crate) const DOORBELL_SLICE_BYTES: u64 = 8192;
pub(crate) const DOORBELL_BYTES: u64 = 8;
/// Queues of one process on one device (hardware reference §2.6).
pub(crate) const QUEUES_MAX: usize = 127;
/// VRAM that the kernel reserves for page tables: at least this, and a 16,384th of all memory if that is more
/// (`ESTIMATE_PT_SIZE` and `AMDGPU_VM_RESERVED_VRAM` of `amdgpu_amdkfd_gpuvm.c`, the same in 6.8 to 7.2). This
/// value is right for a host of up to 96 GiB.
pub(crate) const PAGE_TABLE_RESERVE_BYTES: u64 = 8 << 20;
/// AVAILABLE_MEMORY counts each object in whole pieces of this length, and its answer as well
/// (`VRAM_AVAILABILITY_ALIGN`).
pub(crate) const AVAILABILITY_BYTES: u64 = 2 << 20;
/// Signal page: 4096 slots of 8 bytes (hardware reference §2.8).
pub(crate) const EVENT_SLOTS: u32 = 4096;
pub(crate) const EVENT_SLOT_BYTES: usize = 8;
pub(crate) const EVENT_PAGE_BYTES: u64 = EVENT_SLOTS as u64 * EVENT_SLOT_BYTES as u64;
/// Value of a slot while its event is not signalled (hardware reference §2.8).
pub(crate) const EVENT_SLOT_UNSIGNALLED: u64 = u64::MAX;

/// EOP buffer of a queue (hardware reference §1.2: never exported, always this size).
pub(crate) const EOP_BYTES: u64 = 4096;

/// Reference clock of GPU timestamps (hardware reference §4.6, §4.9).
pub(crate) const GPU_CLOCK_HZ: u64 = 100_000_000;

/// Most resident waves: cu × 32 (hardware reference §2.6).
const WAVES: u64 = COMPUTE_UNITS as u64 * 32;
/// Control stack of a queue (hardware reference §2.6).
pub(crate) const CTL_STACK_BYTES: u32 = page_align(40 + WAVES * 12 + 8) as u32;
/// Register, LDS and hardware state of all waves (hardware reference §2.6).
const WAVE_DATA_BYTES: u64 = page_align(COMPUTE_UNITS as u64 * (0x60000 + 0x4000 + 0x10000 + 0x1000));
/// Context save area without debug memory (hardware reference §2.6).
pub(crate) const CWSR_BYTES: u32 = CTL_STACK_BYTES + WAVE_DATA_BYTES as u32;
const DEBUG_MEMORY_BYTES: u64 = WAVES * 32;

/// Length of the buffer object that holds a context save area of `save_bytes` (hardware reference §2.6).
pub(crate) const fn cwsr_buffer_bytes(save_bytes: u32) -> u64 {
    page_align(save_bytes as u64 + DEBUG_MEMORY_BYTES)
}

pub(crate) const fn page_align(bytes: u64) -> u64 {
    (bytes + PAGE_BYTES - 1) & !(PAGE_BYTES - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_give_the_captured_values() {
        // Hardware reference §2.6, column "64 CU"; hardware reference §1.2.
        assert_eq!(CTL_STACK_BYTES, 28_672);
        assert_eq!(CWSR_BYTES, 30_699_520);
        assert_eq!(cwsr_buffer_bytes(CWSR_BYTES), 30_765_056);
        assert_eq!((SIMD_COUNT, ARRAY_COUNT, CU_PER_ARRAY), (128, 8, 8));
    }
}
