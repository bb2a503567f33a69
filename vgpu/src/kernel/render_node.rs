//! The render node's requests: the driver's version, the AMDGPU_INFO subset, and refusal of user queues.
//!
//! Contract: DRM dispatch rules (`drm_ioctl.c`): another magic is `ENOTTY`, an unknown number `EINVAL`, a request
//! of the DRM core that is not allowed on render nodes `EACCES`. Structures by byte offset (`drm.h`,
//! `amdgpu_drm.h`); an answer is truncated to the caller's size, as by snprintf.

use crate::config::KernelRelease;
use crate::kernel::arguments::{Arguments, store_u32, store_u64};
use crate::kernel::board;
use crate::kernel::requests::{device_info, drm, hw_ip, request_magic, request_number, request_size};
use crate::kernel::sizes::MemorySizes;
use zrt_kmd::{Errno, UserPointer};

/// Registers of one READ_MMR_REG (`amdgpu_kms.c`).
const REGISTERS_MAX: usize = 128;
/// The texts in the VERSION answer (`amdgpu_drv.h`).
const DRIVER_NAME: &[u8] = b"amdgpu";
const DRIVER_DATE: &[u8] = b"20150101";
const DRIVER_DESCRIPTION: &[u8] = b"AMD GPU";
const DRIVER_MAJOR: u32 = 3;
/// Required alignment of the start and of the length.
const INDIRECT_BUFFER_ALIGNMENT_BYTES: u32 = 32;

/// Facts that change while the device runs.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RenderFacts {
    pub vram_used_bytes: u64,
    pub gtt_used_bytes: u64,
    pub sizes: MemorySizes,
    pub kernel: KernelRelease,
    pub gpu_clock: u64,
    /// Page address of the last GPU page fault.
    pub last_fault_va: u64,
    pub last_fault_status: u32,
    pub vram_lost_count: u32,
}

/// Answers a request.
pub(crate) fn answer(request: u32, pointer: UserPointer<'_>, facts: &RenderFacts) -> Result<(), Errno> {
    if request_magic(request) != drm::MAGIC {
        return Err(Errno::ENOTTY);
    }
    let size = request_size(request);
    let read = |bytes: usize| {
        let mut arguments = Arguments::zeroed(size.max(bytes), pointer);
        arguments.copy_in(size).map(|()| arguments)
    };
    match request_number(request) {
        drm::VERSION => {
            let mut arguments = read(drm::VERSION_BYTES)?;
            let outcome = version(&mut arguments, facts.kernel);
            arguments.copy_out(size).and(outcome)
        }
        drm::AMDGPU_INFO => info(&read(drm::AMDGPU_INFO_BYTES)?, facts),
        // No firmware support: hardware reference §3.2 and §3.3 rule 5.
        drm::USERQ | drm::USERQ_SIGNAL | drm::USERQ_WAIT => Err(Errno::ENOTSUPP),
        // The core allows it only on primary nodes: it has no DRM_RENDER_ALLOW.
        drm::GET_CLIENT => Err(Errno::EACCES),
        _ => Err(Errno::EINVAL),
    }
}

/// `drm_version`: numbers, and as much of each text as fits the caller's buffer; the returned lengths are those of
/// the full texts.
fn version(arguments: &mut Arguments<'_>, kernel: KernelRelease) -> Result<(), Errno> {
    for (index, number) in [DRIVER_MAJOR, kernel.drm_minor(), 0].into_iter().enumerate() {
        arguments.set_u32(drm::VERSION_NUMBERS_AT + index * 4, number);
    }
    for (at, text) in [
        (drm::VERSION_NAME_AT, DRIVER_NAME),
        (drm::VERSION_DATE_AT, DRIVER_DATE),
        (drm::VERSION_DESCRIPTION_AT, DRIVER_DESCRIPTION),
    ] {
        let (room, address) = (arguments.u64(at), arguments.u64(at + drm::VERSION_TEXT_POINTER));
        arguments.set_u64(at, text.len() as u64);
        let count = text.len().min(usize::try_from(room).unwrap_or(usize::MAX));
        if address != 0 {
            arguments.pointer.nested(address).write(&text[..count])?;
        }
    }
    Ok(())
}

/// Answers AMDGPU_INFO.
fn info(arguments: &Arguments<'_>, facts: &RenderFacts) -> Result<(), Errno> {
    let (pointer, size) =
        (arguments.u64(drm::RETURN_POINTER_AT), arguments.u32(drm::RETURN_SIZE_AT) as usize);
    if pointer == 0 || size == 0 {
        return Err(Errno::EINVAL);
    }
    let answer = match arguments.u32(drm::QUERY_AT) {
        drm::QUERY_ACCEL_WORKING => dwords(&[1]),
        drm::QUERY_HW_IP_INFO => {
            if arguments.u32(drm::IP_INSTANCE_AT) != 0 {
                return Err(Errno::EINVAL);
            }
            ip_info(arguments.u32(drm::IP_TYPE_AT))?
        }
        // A block that the device does not have is refused, where its description is zeros (`amdgpu_info_ioctl`).
        drm::QUERY_HW_IP_COUNT => match arguments.u32(drm::IP_TYPE_AT) {
            drm::IP_DMA => dwords(&[board::SDMA_ENGINES]),
            ip_type => dwords(&[ip_version(ip_type).map(|_| 1).ok_or(Errno::EINVAL)?]),
        },
        drm::QUERY_TIMESTAMP => facts.gpu_clock.to_le_bytes().to_vec(),
        drm::QUERY_VRAM_USAGE => facts.vram_used_bytes.to_le_bytes().to_vec(),
        drm::QUERY_GTT_USAGE => facts.gtt_used_bytes.to_le_bytes().to_vec(),
        drm::QUERY_READ_MMR_REG => registers(arguments)?,
        drm::QUERY_DEV_INFO => device_info(),
        drm::QUERY_MEMORY => memory_info(facts),
        drm::QUERY_VRAM_LOST_COUNTER => dwords(&[facts.vram_lost_count]),
        drm::QUERY_GPUVM_FAULT => fault_info(facts),
        _ => return Err(Errno::EINVAL),
    };
    arguments.pointer.nested(pointer).write(&answer[..answer.len().min(size)])
}

/// Registers that user space may read: of those in the kernel's list (`soc24.c`), only the one that libdrm reads.
fn registers(arguments: &Arguments<'_>) -> Result<Vec<u8>, Errno> {
    let (first, count) = (arguments.u32(drm::REGISTER_AT), arguments.u32(drm::REGISTER_COUNT_AT) as usize);
    if count > REGISTERS_MAX {
        return Err(Errno::EINVAL);
    }
    if count > 1 || count == 1 && first != board::GB_ADDR_CONFIG_REGISTER {
        return Err(Errno::EFAULT);
    }
    Ok(dwords(&[board::GB_ADDR_CONFIG][..count]))
}

fn dwords(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Major and minor version of a hardware block that has kernel queues here.
fn ip_version(ip_type: u32) -> Option<(u32, u32, u32)> {
    match ip_type {
        // version word: bits 23:16 major, 15:8 minor, 7:0 revision.
        drm::IP_GFX | drm::IP_COMPUTE => Some((12, 0, 0x0C_00_01)),
        drm::IP_DMA => Some((7, 0, 0x07_00_01)),
        _ => None,
    }
}

/// A bit for each kernel queue of a block: one of each engine that copies (`amdgpu_hw_ip_info`).
fn available_rings(ip_type: u32) -> u32 {
    match ip_type {
        drm::IP_COMPUTE => 0xF,
        drm::IP_DMA => (1 << board::SDMA_ENGINES) - 1,
        _ => 1,
    }
}

/// `drm_amdgpu_info_hw_ip`: without capabilities or slots, so without user queues.
fn ip_info(ip_type: u32) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; hw_ip::BYTES];
    if let Some((major, minor, version)) = ip_version(ip_type) {
        for (at, value) in [
            (hw_ip::VERSION_MAJOR_AT, major),
            (hw_ip::VERSION_MINOR_AT, minor),
            (hw_ip::IB_START_ALIGNMENT_AT, INDIRECT_BUFFER_ALIGNMENT_BYTES),
            (hw_ip::IB_SIZE_ALIGNMENT_AT, INDIRECT_BUFFER_ALIGNMENT_BYTES),
            (hw_ip::AVAILABLE_RINGS_AT, available_rings(ip_type)),
            (hw_ip::DISCOVERY_VERSION_AT, version),
        ] {
            store_u32(&mut bytes, at, value);
        }
    } else if ip_type > drm::IP_LAST {
        return Err(Errno::EINVAL);
    }
    Ok(bytes)
}

/// `drm_amdgpu_info_device` (byte offsets counted from `amdgpu_drm.h`).
fn device_info() -> Vec<u8> {
    let mut bytes = vec![0; device_info::BYTES];
    for (at, value) in [
        (device_info::DEVICE_ID_AT, board::DEVICE_ID),
        (device_info::EXTERNAL_REVISION_AT, 0x50), // of Navi 48
        (device_info::PCI_REVISION_AT, 0xC0),
        (device_info::FAMILY_AT, 152), // AMDGPU_FAMILY_GC_12_0_0
        (device_info::SHADER_ENGINES_AT, board::SHADER_ENGINES),
        (device_info::SHADER_ARRAYS_AT, board::SHADER_ARRAYS_PER_ENGINE),
        (device_info::COUNTER_FREQUENCY_AT, (board::GPU_CLOCK_HZ / 1000) as u32),
        (device_info::ACTIVE_UNITS_AT, board::COMPUTE_UNITS),
        (device_info::PCIE_GENERATION_AT, 5),
        (device_info::VA_ALIGNMENT_AT, 4096),
        (device_info::PTE_FRAGMENT_AT, 2 << 20),
        (device_info::GART_PAGE_AT, 4096),
        (device_info::VRAM_TYPE_AT, 9), // AMDGPU_VRAM_TYPE_GDDR6
        (device_info::VRAM_BUS_WIDTH_AT, 256),
        (device_info::WAVE_LANES_AT, board::WAVE_LANES),
        (device_info::VISIBLE_VGPRS_AT, 1536), // rows of a SIMD
        (device_info::UNITS_PER_ARRAY_AT, board::CU_PER_ARRAY),
        (device_info::PCIE_LANES_AT, 16),
        (device_info::VECTOR_CACHE_KIB_AT, board::L0_KIB),
        (device_info::GL2_BYTES_AT, board::GL2_KIB * 1024),
    ] {
        store_u32(&mut bytes, at, value);
    }
    for (at, value) in [
        (device_info::ENGINE_CLOCK_MAX_AT, u64::from(board::ENGINE_CLOCK_MHZ) * 1000),
        (device_info::MEMORY_CLOCK_MAX_AT, 1_258_000),
        (device_info::VA_OFFSET_AT, board::GPUVM_BASE),
        (device_info::VA_MAX_AT, board::GPUVM_LIMIT),
        (device_info::MALL_BYTES_AT, u64::from(board::MALL_KIB) * 1024),
    ] {
        store_u64(&mut bytes, at, value);
    }
    // All compute units of the eight arrays are active. `userq_ip_mask` at the end is 0.
    for engine in 0..board::SHADER_ENGINES as usize {
        for array in 0..board::SHADER_ARRAYS_PER_ENGINE as usize {
            let entry = engine * device_info::UNIT_BITMAP_ARRAYS + array;
            let at = device_info::UNIT_BITMAP_AT + entry * size_of::<u32>();
            store_u32(&mut bytes, at, (1 << board::CU_PER_ARRAY) - 1);
        }
    }
    bytes
}

/// `drm_amdgpu_memory_info`: VRAM, CPU-visible VRAM, GTT; each total, usable, used, largest allocation.
fn memory_info(facts: &RenderFacts) -> Vec<u8> {
    let visible = facts.sizes.visible_bytes();
    let heaps = [
        (facts.sizes.vram_bytes, facts.vram_used_bytes),
        (visible, facts.vram_used_bytes.min(visible)),
        (facts.sizes.gtt_bytes, facts.gtt_used_bytes),
    ];
    let words = heaps.iter().flat_map(|(total, used)| [*total, *total, *used, *total - *total / 4]);
    words.flat_map(u64::to_le_bytes).collect()
}

/// `drm_amdgpu_info_gpuvm_fault`.
fn fault_info(facts: &RenderFacts) -> Vec<u8> {
    let mut bytes = facts.last_fault_va.to_le_bytes().to_vec();
    bytes.extend(dwords(&[facts.last_fault_status, 0]));
    bytes
}
