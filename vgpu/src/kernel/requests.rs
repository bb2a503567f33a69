//! Request numbers, structure sizes, field offsets and flags of the kernel interface, as this side reads them.
//!
//! Contract: written by hand from hardware reference §2.1 and §2.3, byte offset by byte offset. Nothing here is
//! shared with the client's bindings, so the two cannot agree on an error. `_AT` constants are byte offsets in the
//! argument structure.

/// What the kernel knows about one KFD request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestShape {
    /// Bytes of the structure in the newest kernel. CREATE_QUEUE had 8 fewer before KFD 1.17; they are not read here.
    pub size: usize,
    /// Whether the kernel reads the structure.
    pub copies_in: bool,
    /// Whether the kernel writes the structure back, even if the request failed.
    pub copies_out: bool,
}

/// Byte length of the request's argument as the caller's header had it (bits 29:16, `asm-generic/ioctl.h`).
pub(crate) const fn request_size(request: u32) -> usize {
    (request >> 16 & 0x3FFF) as usize
}

/// Number of the request (bits 7:0).
pub(crate) const fn request_number(request: u32) -> u32 {
    request & 0xFF
}

/// Magic of the request (bits 15:8).
pub(crate) const fn request_magic(request: u32) -> u32 {
    request >> 8 & 0xFF
}

pub(crate) const KFD_VERSION_MAJOR: u32 = 1;

macro_rules! numbers {
    ($($name:ident = $number:literal, $size:literal, $direction:ident;)*) => {
        // Some numbers are only in the table: known to the kernel, but not modelled here.
        $(#[allow(dead_code)] pub(crate) const $name: u32 = $number;)*

        /// The shape of KFD request `number`, or `None` for a number that the kernel does not know.
        pub(crate) const fn kfd_shape(number: u32) -> Option<RequestShape> {
            match number {
                $($number => Some(shape($size, Direction::$direction)),)*
                _ => None,
            }
        }
    };
}

enum Direction {
    N,
    R,
    W,
    WR,
}

const fn shape(size: usize, direction: Direction) -> RequestShape {
    let copies_in = matches!(direction, Direction::W | Direction::WR);
    let copies_out = matches!(direction, Direction::R | Direction::WR);
    RequestShape { size, copies_in, copies_out }
}

// Hardware reference §2.1. The numbers that it omits (deprecated debugger requests, tile configuration, scratch
// backing, buffer sharing, GWS, CRIU) are listed so that they are refused as known numbers, not as unknown ones.
numbers! {
    GET_VERSION = 0x01, 8, R;
    CREATE_QUEUE = 0x02, 96, WR;
    DESTROY_QUEUE = 0x03, 8, WR;
    SET_MEMORY_POLICY = 0x04, 32, W;
    GET_CLOCK_COUNTERS = 0x05, 40, WR;
    GET_PROCESS_APERTURES = 0x06, 400, R;
    UPDATE_QUEUE = 0x07, 24, W;
    CREATE_EVENT = 0x08, 32, WR;
    DESTROY_EVENT = 0x09, 8, W;
    SET_EVENT = 0x0A, 8, W;
    RESET_EVENT = 0x0B, 8, W;
    WAIT_EVENTS = 0x0C, 24, WR;
    DEBUG_REGISTER = 0x0D, 8, W;
    DEBUG_UNREGISTER = 0x0E, 8, W;
    DEBUG_ADDRESS_WATCH = 0x0F, 16, W;
    DEBUG_WAVE_CONTROL = 0x10, 16, W;
    SET_SCRATCH_BACKING = 0x11, 16, WR;
    GET_TILE_CONFIG = 0x12, 40, WR;
    SET_TRAP_HANDLER = 0x13, 24, W;
    GET_PROCESS_APERTURES_NEW = 0x14, 16, WR;
    ACQUIRE_VM = 0x15, 8, W;
    ALLOC_MEMORY = 0x16, 40, WR;
    FREE_MEMORY = 0x17, 8, W;
    MAP_MEMORY = 0x18, 24, WR;
    UNMAP_MEMORY = 0x19, 24, WR;
    SET_CU_MASK = 0x1A, 16, W;
    GET_QUEUE_WAVE_STATE = 0x1B, 24, WR;
    GET_DMABUF_INFO = 0x1C, 32, WR;
    IMPORT_DMABUF = 0x1D, 24, WR;
    ALLOC_QUEUE_GWS = 0x1E, 16, WR;
    SMI_EVENTS = 0x1F, 8, WR;
    SVM = 0x20, 24, WR;
    SET_XNACK_MODE = 0x21, 4, WR;
    CRIU = 0x22, 56, WR;
    AVAILABLE_MEMORY = 0x23, 16, WR;
    EXPORT_DMABUF = 0x24, 16, WR;
    RUNTIME_ENABLE = 0x25, 16, WR;
    DEBUG_TRAP = 0x26, 32, WR;
    CREATE_PROCESS = 0x27, 0, N;
    PROFILER = 0x28, 16, WR;
}

/// Whether a process whose GPU was reset may still make request `number`: those about files, clocks and its own
/// events, one of which reports the reset. All others access the device (hardware reference §8).
pub(crate) const fn outlives_reset(number: u32) -> bool {
    matches!(
        number,
        GET_VERSION
            | GET_CLOCK_COUNTERS
            | GET_PROCESS_APERTURES_NEW
            | WAIT_EVENTS
            | DESTROY_EVENT
            | SET_EVENT
            | RESET_EVENT
    )
}

/// GET_VERSION.
pub(crate) mod version {
    pub const MAJOR_AT: usize = 0;
    pub const MINOR_AT: usize = 4;
}

/// ACQUIRE_VM.
pub(crate) mod acquire_vm {
    pub const DRM_FD_AT: usize = 0;
    pub const GPU_ID_AT: usize = 4;
}

/// GET_PROCESS_APERTURES_NEW and its 56-byte entries.
pub(crate) mod apertures {
    pub const ARRAY_AT: usize = 0;
    pub const NODE_COUNT_AT: usize = 8;
    pub const ENTRY_BYTES: usize = 56;
    pub const LDS_BASE_AT: usize = 0;
    pub const LDS_LIMIT_AT: usize = 8;
    pub const SCRATCH_BASE_AT: usize = 16;
    pub const SCRATCH_LIMIT_AT: usize = 24;
    pub const GPUVM_BASE_AT: usize = 32;
    pub const GPUVM_LIMIT_AT: usize = 40;
    pub const GPU_ID_AT: usize = 48;
}

/// ALLOC_MEMORY_OF_GPU and its flags.
pub(crate) mod alloc {
    pub const VA_AT: usize = 0;
    pub const SIZE_AT: usize = 8;
    pub const HANDLE_AT: usize = 16;
    pub const MMAP_OFFSET_AT: usize = 24;
    pub const GPU_ID_AT: usize = 32;
    pub const FLAGS_AT: usize = 36;

    /// In: address of the USERPTR pages. Out: the offset for `mmap`.
    pub const USER_ADDRESS_AT: usize = MMAP_OFFSET_AT;

    pub const FLAG_VRAM: u32 = 1 << 0;
    pub const FLAG_GTT: u32 = 1 << 1;
    pub const FLAG_USERPTR: u32 = 1 << 2;
    pub const FLAG_DOORBELL: u32 = 1 << 3;
    pub const FLAG_MMIO_REMAP: u32 = 1 << 4;
    pub const FLAG_AQL_QUEUE_MEM: u32 = 1 << 27;
    pub const FLAG_PUBLIC: u32 = 1 << 29;
    pub const FLAG_EXECUTABLE: u32 = 1 << 30;
    pub const FLAG_WRITABLE: u32 = 1 << 31;
}

/// FREE_MEMORY_OF_GPU.
pub(crate) mod free {
    pub const HANDLE_AT: usize = 0;
}

/// MAP_MEMORY_TO_GPU and UNMAP_MEMORY_FROM_GPU.
pub(crate) mod map {
    pub const HANDLE_AT: usize = 0;
    pub const DEVICES_AT: usize = 8;
    pub const DEVICE_COUNT_AT: usize = 16;
    pub const SUCCESS_COUNT_AT: usize = 20;
}

/// CREATE_QUEUE.
pub(crate) mod create_queue {
    pub const RING_BASE_AT: usize = 0;
    pub const WRITE_POINTER_AT: usize = 8;
    pub const READ_POINTER_AT: usize = 16;
    pub const DOORBELL_OFFSET_AT: usize = 24;
    pub const RING_SIZE_AT: usize = 32;
    pub const GPU_ID_AT: usize = 36;
    pub const TYPE_AT: usize = 40;
    pub const PERCENTAGE_AT: usize = 44;
    pub const PRIORITY_AT: usize = 48;
    pub const QUEUE_ID_AT: usize = 52;
    pub const EOP_ADDRESS_AT: usize = 56;
    pub const EOP_SIZE_AT: usize = 64;
    pub const CWSR_ADDRESS_AT: usize = 72;
    pub const CWSR_SIZE_AT: usize = 80;
    pub const CTL_STACK_SIZE_AT: usize = 84;

    pub const TYPE_COMPUTE: u32 = 0;
}

/// UPDATE_QUEUE.
pub(crate) mod update_queue {
    pub const RING_BASE_AT: usize = 0;
    pub const QUEUE_ID_AT: usize = 8;
    pub const RING_SIZE_AT: usize = 12;
    pub const PERCENTAGE_AT: usize = 16;
    pub const PRIORITY_AT: usize = 20;
}

/// DESTROY_QUEUE.
pub(crate) mod destroy_queue {
    pub const QUEUE_ID_AT: usize = 0;
}

/// SET_CU_MASK.
pub(crate) mod cu_mask {
    pub const QUEUE_ID_AT: usize = 0;
    pub const BIT_COUNT_AT: usize = 4;
    pub const MASK_AT: usize = 8;
}

/// CREATE_EVENT, its types, and the one-word requests DESTROY, SET and RESET_EVENT.
pub(crate) mod event {
    pub const PAGE_OFFSET_AT: usize = 0;
    pub const TRIGGER_DATA_AT: usize = 8;
    pub const TYPE_AT: usize = 12;
    pub const AUTO_RESET_AT: usize = 16;
    pub const EVENT_ID_AT: usize = 24;
    pub const SLOT_INDEX_AT: usize = 28;

    pub const ONLY_ID_AT: usize = 0;

    pub const TYPE_SIGNAL: u32 = 0;
    pub const TYPE_HW_EXCEPTION: u32 = 3;
    pub const TYPE_DEBUG: u32 = 5;
    pub const TYPE_MEMORY: u32 = 8;
}

/// WAIT_EVENTS and its 48-byte entries.
pub(crate) mod wait_events {
    pub const EVENTS_AT: usize = 0;
    pub const EVENT_COUNT_AT: usize = 8;
    pub const WAIT_FOR_ALL_AT: usize = 12;
    pub const TIMEOUT_AT: usize = 16;
    pub const RESULT_AT: usize = 20;

    pub const ENTRY_BYTES: usize = 48;
    pub const ENTRY_EVENT_ID_AT: usize = 40;
    pub const ENTRY_AGE_AT: usize = 0;

    pub const MEMORY_NOT_PRESENT_AT: usize = 0;
    pub const MEMORY_READ_ONLY_AT: usize = 4;
    pub const MEMORY_NO_EXECUTE_AT: usize = 8;
    pub const MEMORY_VA_AT: usize = 16;
    pub const MEMORY_GPU_ID_AT: usize = 24;
    pub const MEMORY_BYTES: usize = 32;

    pub const HW_RESET_TYPE_AT: usize = 0;
    pub const HW_RESET_CAUSE_AT: usize = 4;
    pub const HW_MEMORY_LOST_AT: usize = 8;
    pub const HW_GPU_ID_AT: usize = 12;
    pub const HW_BYTES: usize = 16;
    pub const HW_RESET_WHOLE_GPU: u32 = 0;
    pub const HW_RESET_BY_HANG: u32 = 0;

    pub const TIMEOUT_FOREVER: u32 = 0xFFFF_FFFF;
    pub const RESULT_COMPLETE: u32 = 0;
    pub const RESULT_TIMEOUT: u32 = 1;
    pub const RESULT_FAIL: u32 = 2;
}

/// SET_MEMORY_POLICY (fields of KUAPI, hardware reference §2.3 gives the size).
pub(crate) mod memory_policy {
    pub const GPU_ID_AT: usize = 16;
    pub const DEFAULT_POLICY_AT: usize = 20;
    pub const ALTERNATE_POLICY_AT: usize = 24;
    pub const POLICY_LAST: u32 = 1;
}

/// GET_CLOCK_COUNTERS.
pub(crate) mod clock_counters {
    pub const GPU_AT: usize = 0;
    pub const CPU_AT: usize = 8;
    pub const SYSTEM_AT: usize = 16;
    pub const FREQUENCY_AT: usize = 24;
    pub const GPU_ID_AT: usize = 32;
}

/// AVAILABLE_MEMORY.
pub(crate) mod available_memory {
    pub const AVAILABLE_AT: usize = 0;
    pub const GPU_ID_AT: usize = 8;
}

/// SET_XNACK_MODE.
pub(crate) mod xnack_mode {
    pub const ENABLED_AT: usize = 0;
}

/// SET_TRAP_HANDLER.
pub(crate) mod trap_handler {
    pub const GPU_ID_AT: usize = 16;
}

/// SET_SCRATCH_BACKING_VA.
pub(crate) mod scratch_backing {
    pub const GPU_ID_AT: usize = 8;
}

/// GET_TILE_CONFIG.
pub(crate) mod tile_config {
    pub const TILES_AT: usize = 0;
    pub const MACRO_TILES_AT: usize = 8;
    pub const TILE_COUNT_AT: usize = 16;
    pub const MACRO_TILE_COUNT_AT: usize = 20;
    pub const GPU_ID_AT: usize = 24;
    pub const GB_ADDR_CONFIG_AT: usize = 28;
    pub const BANK_COUNT_AT: usize = 32;
    pub const RANK_COUNT_AT: usize = 36;

    /// Entries of the kernel's tables, which are unused since gfx9 (`struct amdgpu_gfx_config`).
    pub const TILE_COUNT_MAX: u32 = 32;
    pub const MACRO_TILE_COUNT_MAX: u32 = 16;
}

/// RUNTIME_ENABLE.
pub(crate) mod runtime_enable {
    pub const MODE_MASK_AT: usize = 8;
    pub const CAPABILITIES_AT: usize = 12;
    pub const MODE_ENABLE: u32 = 1;
}

/// Offsets given to `mmap` on `/dev/kfd` (hardware reference §2.5).
pub(crate) mod mmap_offset {
    pub const TYPE_SHIFT: u32 = 62;
    pub const TYPE_MMIO: u64 = 0;
    pub const TYPE_EVENTS: u64 = 2;
    pub const TYPE_DOORBELL: u64 = 3;
    pub const GPU_ID_SHIFT: u32 = 46;
    pub const GPU_ID_MASK: u64 = 0xFFFF;
}

/// The render node: DRM requests (hardware reference §3.1; `drm.h`, `amdgpu_drm.h`).
pub(crate) mod drm {
    pub const MAGIC: u32 = 0x64;
    pub const VERSION: u32 = 0x00;
    pub const GET_CLIENT: u32 = 0x05;

    /// `drm_version`: three numbers, then length and pointer of each of three texts.
    pub const VERSION_BYTES: usize = 64;
    pub const VERSION_NUMBERS_AT: usize = 0;
    /// Offset of a text's pointer from its length.
    pub const VERSION_TEXT_POINTER: usize = 8;
    pub const VERSION_NAME_AT: usize = 16;
    pub const VERSION_DATE_AT: usize = 32;
    pub const VERSION_DESCRIPTION_AT: usize = 48;

    pub const AMDGPU_INFO: u32 = 0x45;
    pub const AMDGPU_INFO_BYTES: usize = 32;
    pub const USERQ: u32 = 0x56;
    pub const USERQ_SIGNAL: u32 = 0x57;
    pub const USERQ_WAIT: u32 = 0x58;

    pub const RETURN_POINTER_AT: usize = 0;
    pub const RETURN_SIZE_AT: usize = 8;
    pub const QUERY_AT: usize = 12;
    pub const IP_TYPE_AT: usize = 16;
    pub const IP_INSTANCE_AT: usize = 20;
    pub const REGISTER_AT: usize = 16;
    pub const REGISTER_COUNT_AT: usize = 20;

    pub const QUERY_ACCEL_WORKING: u32 = 0x00;
    pub const QUERY_HW_IP_INFO: u32 = 0x02;
    pub const QUERY_HW_IP_COUNT: u32 = 0x03;
    pub const QUERY_TIMESTAMP: u32 = 0x05;
    pub const QUERY_VRAM_USAGE: u32 = 0x10;
    pub const QUERY_GTT_USAGE: u32 = 0x11;
    pub const QUERY_READ_MMR_REG: u32 = 0x15;
    pub const QUERY_DEV_INFO: u32 = 0x16;
    pub const QUERY_MEMORY: u32 = 0x19;
    pub const QUERY_VRAM_LOST_COUNTER: u32 = 0x1F;
    pub const QUERY_GPUVM_FAULT: u32 = 0x23;

    pub const IP_GFX: u32 = 0;
    pub const IP_COMPUTE: u32 = 1;
    pub const IP_DMA: u32 = 2;
    /// AMDGPU_HW_IP_VPE.
    pub const IP_LAST: u32 = 9;
}

/// `drm_amdgpu_info_hw_ip` with the `userq_num_slots` appended in newer releases, and padding.
pub(crate) mod hw_ip {
    pub const BYTES: usize = 40;
    pub const VERSION_MAJOR_AT: usize = 0;
    pub const VERSION_MINOR_AT: usize = 4;
    pub const IB_START_ALIGNMENT_AT: usize = 16;
    pub const IB_SIZE_ALIGNMENT_AT: usize = 20;
    pub const AVAILABLE_RINGS_AT: usize = 24;
    pub const DISCOVERY_VERSION_AT: usize = 28;
}

/// `drm_amdgpu_info_device`.
pub(crate) mod device_info {
    pub const BYTES: usize = 440;
    pub const DEVICE_ID_AT: usize = 0;
    pub const EXTERNAL_REVISION_AT: usize = 8;
    pub const PCI_REVISION_AT: usize = 12;
    pub const FAMILY_AT: usize = 16;
    pub const SHADER_ENGINES_AT: usize = 20;
    pub const SHADER_ARRAYS_AT: usize = 24;
    pub const COUNTER_FREQUENCY_AT: usize = 28;
    pub const ENGINE_CLOCK_MAX_AT: usize = 32;
    pub const MEMORY_CLOCK_MAX_AT: usize = 40;
    pub const ACTIVE_UNITS_AT: usize = 48;
    /// A dword for each of four arrays of each of four engines.
    pub const UNIT_BITMAP_AT: usize = 56;
    pub const UNIT_BITMAP_ARRAYS: usize = 4;
    pub const PCIE_GENERATION_AT: usize = 132;
    pub const VA_OFFSET_AT: usize = 144;
    pub const VA_MAX_AT: usize = 152;
    pub const VA_ALIGNMENT_AT: usize = 160;
    pub const PTE_FRAGMENT_AT: usize = 164;
    pub const GART_PAGE_AT: usize = 168;
    pub const VRAM_TYPE_AT: usize = 176;
    pub const VRAM_BUS_WIDTH_AT: usize = 180;
    pub const WAVE_LANES_AT: usize = 240;
    pub const VISIBLE_VGPRS_AT: usize = 244;
    pub const UNITS_PER_ARRAY_AT: usize = 248;
    pub const PCIE_LANES_AT: usize = 268;
    pub const VECTOR_CACHE_KIB_AT: usize = 384;
    pub const GL2_BYTES_AT: usize = 404;
    pub const MALL_BYTES_AT: usize = 408;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_the_request_numbers_of_the_reference() {
        // Request words of hardware reference §2.1.
        let words = [
            0x8008_4B01u32,
            0xC060_4B02,
            0xC008_4B03,
            0x4020_4B04,
            0xC028_4B05,
            0x4018_4B07,
            0xC020_4B08,
            0x4008_4B09,
            0x4008_4B0A,
            0x4008_4B0B,
            0xC018_4B0C,
            0x4018_4B13,
            0xC010_4B14,
            0x4008_4B15,
            0xC028_4B16,
            0x4008_4B17,
            0xC018_4B18,
            0xC018_4B19,
            0x4010_4B1A,
            0xC018_4B1B,
            0xC008_4B1F,
            0xC018_4B20,
            0xC004_4B21,
            0xC010_4B23,
            0xC010_4B24,
            0xC010_4B25,
            0xC020_4B26,
        ];
        for word in words {
            let shape = kfd_shape(request_number(word)).expect("a number of the table");
            assert_eq!(shape.size, request_size(word), "{word:#x}");
            assert_eq!(shape.copies_in, word & 0x4000_0000 != 0, "{word:#x}");
            assert_eq!(shape.copies_out, word & 0x8000_0000 != 0, "{word:#x}");
        }
        assert!(kfd_shape(0).is_none() && kfd_shape(0x29).is_none());
    }
}
