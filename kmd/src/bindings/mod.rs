//! What bindgen generates from the kernel's headers, committed; `cargo xtask uapi` writes it and `--check` finds
//! drift.
//!
//! Contract: plain structures without padding (zerocopy proves it at compile time), names as in the headers, no
//! `unsafe`. Request numbers (`REQUEST_*`) are computed by the C compiler from the headers themselves.

#[allow(missing_docs, non_camel_case_types, non_snake_case, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
pub mod amdgpu;
#[allow(missing_docs, non_camel_case_types, non_snake_case, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
pub mod kfd;

#[cfg(test)]
mod tests {
    use super::{amdgpu::*, kfd::*};
    use memoffset::span_of;

    /// Hardware reference §2.1: name, number from the header, number in the table, size of our structure.
    #[test]
    fn request_numbers_are_those_of_the_reference() {
        let table: &[(&str, u32, u32, usize)] = &[
            ("GET_VERSION", REQUEST_GET_VERSION, 0x8008_4B01, size_of::<kfd_ioctl_get_version_args>()),
            ("CREATE_QUEUE", REQUEST_CREATE_QUEUE, 0xC060_4B02, size_of::<kfd_ioctl_create_queue_args>()),
            ("DESTROY_QUEUE", REQUEST_DESTROY_QUEUE, 0xC008_4B03, size_of::<kfd_ioctl_destroy_queue_args>()),
            (
                "SET_MEMORY_POLICY",
                REQUEST_SET_MEMORY_POLICY,
                0x4020_4B04,
                size_of::<kfd_ioctl_set_memory_policy_args>(),
            ),
            (
                "GET_CLOCK_COUNTERS",
                REQUEST_GET_CLOCK_COUNTERS,
                0xC028_4B05,
                size_of::<kfd_ioctl_get_clock_counters_args>(),
            ),
            ("UPDATE_QUEUE", REQUEST_UPDATE_QUEUE, 0x4018_4B07, size_of::<kfd_ioctl_update_queue_args>()),
            ("CREATE_EVENT", REQUEST_CREATE_EVENT, 0xC020_4B08, size_of::<kfd_ioctl_create_event_args>()),
            ("DESTROY_EVENT", REQUEST_DESTROY_EVENT, 0x4008_4B09, size_of::<kfd_ioctl_destroy_event_args>()),
            ("SET_EVENT", REQUEST_SET_EVENT, 0x4008_4B0A, size_of::<kfd_ioctl_set_event_args>()),
            ("RESET_EVENT", REQUEST_RESET_EVENT, 0x4008_4B0B, size_of::<kfd_ioctl_reset_event_args>()),
            ("WAIT_EVENTS", REQUEST_WAIT_EVENTS, 0xC018_4B0C, size_of::<kfd_ioctl_wait_events_args>()),
            (
                "SET_TRAP_HANDLER",
                REQUEST_SET_TRAP_HANDLER,
                0x4018_4B13,
                size_of::<kfd_ioctl_set_trap_handler_args>(),
            ),
            (
                "GET_PROCESS_APERTURES_NEW",
                REQUEST_GET_PROCESS_APERTURES_NEW,
                0xC010_4B14,
                size_of::<kfd_ioctl_get_process_apertures_new_args>(),
            ),
            ("ACQUIRE_VM", REQUEST_ACQUIRE_VM, 0x4008_4B15, size_of::<kfd_ioctl_acquire_vm_args>()),
            (
                "ALLOC_MEMORY_OF_GPU",
                REQUEST_ALLOC_MEMORY_OF_GPU,
                0xC028_4B16,
                size_of::<kfd_ioctl_alloc_memory_of_gpu_args>(),
            ),
            (
                "FREE_MEMORY_OF_GPU",
                REQUEST_FREE_MEMORY_OF_GPU,
                0x4008_4B17,
                size_of::<kfd_ioctl_free_memory_of_gpu_args>(),
            ),
            (
                "MAP_MEMORY_TO_GPU",
                REQUEST_MAP_MEMORY_TO_GPU,
                0xC018_4B18,
                size_of::<kfd_ioctl_map_memory_to_gpu_args>(),
            ),
            (
                "UNMAP_MEMORY_FROM_GPU",
                REQUEST_UNMAP_MEMORY_FROM_GPU,
                0xC018_4B19,
                size_of::<kfd_ioctl_unmap_memory_from_gpu_args>(),
            ),
            ("SET_CU_MASK", REQUEST_SET_CU_MASK, 0x4010_4B1A, size_of::<kfd_ioctl_set_cu_mask_args>()),
            (
                "GET_QUEUE_WAVE_STATE",
                REQUEST_GET_QUEUE_WAVE_STATE,
                0xC018_4B1B,
                size_of::<kfd_ioctl_get_queue_wave_state_args>(),
            ),
            ("SMI_EVENTS", REQUEST_SMI_EVENTS, 0xC008_4B1F, size_of::<kfd_ioctl_smi_events_args>()),
            ("SVM", REQUEST_SVM, 0xC018_4B20, size_of::<kfd_ioctl_svm_args>()),
            (
                "SET_XNACK_MODE",
                REQUEST_SET_XNACK_MODE,
                0xC004_4B21,
                size_of::<kfd_ioctl_set_xnack_mode_args>(),
            ),
            (
                "AVAILABLE_MEMORY",
                REQUEST_AVAILABLE_MEMORY,
                0xC010_4B23,
                size_of::<kfd_ioctl_get_available_memory_args>(),
            ),
            ("EXPORT_DMABUF", REQUEST_EXPORT_DMABUF, 0xC010_4B24, size_of::<kfd_ioctl_export_dmabuf_args>()),
            (
                "RUNTIME_ENABLE",
                REQUEST_RUNTIME_ENABLE,
                0xC010_4B25,
                size_of::<kfd_ioctl_runtime_enable_args>(),
            ),
        ];
        for (name, header, reference, size) in table {
            assert_eq!(header, reference, "{name}");
            // Bits 29:16 of a request number are the structure's size (asm-generic/ioctl.h).
            assert_eq!((reference >> 16) as usize & 0x3fff, *size, "{name}");
        }
    }

    /// Hardware reference §3.1.
    #[test]
    fn render_node_requests_are_those_of_the_reference() {
        for (name, header, reference) in [
            ("USERQ", REQUEST_USERQ, 0xC048_6456),
            ("USERQ_SIGNAL", REQUEST_USERQ_SIGNAL, 0xC030_6457),
            ("USERQ_WAIT", REQUEST_USERQ_WAIT, 0xC048_6458),
            ("GEM_CREATE", REQUEST_GEM_CREATE, 0xC020_6440),
            ("GEM_MMAP", REQUEST_GEM_MMAP, 0xC008_6441),
            ("INFO", REQUEST_INFO, 0x4020_6445),
            ("GEM_VA", REQUEST_GEM_VA, 0x4040_6448),
        ] {
            assert_eq!(header, reference, "{name}");
        }
        assert_eq!(size_of::<drm_amdgpu_userq_in>(), 72);
        assert_eq!(size_of::<drm_amdgpu_userq_signal>(), 48);
        assert_eq!(size_of::<drm_amdgpu_userq_wait>(), 72);
        assert_eq!(size_of::<drm_amdgpu_gem_create_in>(), 32);
        assert_eq!(size_of::<drm_amdgpu_gem_mmap_in>(), 8);
        assert_eq!(size_of::<drm_amdgpu_gem_va>(), 64);
        assert_eq!(size_of::<drm_amdgpu_userq_mqd_compute_gfx11>(), 8);
        assert_eq!(size_of::<drm_amdgpu_userq_fence_info>(), 16);
        assert_eq!(span_of!(drm_amdgpu_userq_in, queue_va), 24..32);
        assert_eq!(span_of!(drm_amdgpu_userq_in, mqd_size), 64..72);
    }

    /// Hardware reference §2.3, field by field: the bytes of each.
    #[test]
    fn places_and_widths_are_those_of_the_reference() {
        type Queue = kfd_ioctl_create_queue_args;
        let queue = [
            (span_of!(Queue, ring_base_address), 0..8),
            (span_of!(Queue, write_pointer_address), 8..16),
            (span_of!(Queue, read_pointer_address), 16..24),
            (span_of!(Queue, doorbell_offset), 24..32),
            (span_of!(Queue, ring_size), 32..36),
            (span_of!(Queue, gpu_id), 36..40),
            (span_of!(Queue, queue_type), 40..44),
            (span_of!(Queue, queue_percentage), 44..48),
            (span_of!(Queue, queue_priority), 48..52),
            (span_of!(Queue, queue_id), 52..56),
            (span_of!(Queue, eop_buffer_address), 56..64),
            (span_of!(Queue, eop_buffer_size), 64..72),
            (span_of!(Queue, ctx_save_restore_address), 72..80),
            (span_of!(Queue, ctx_save_restore_size), 80..84),
            (span_of!(Queue, ctl_stack_size), 84..88),
            (span_of!(Queue, sdma_engine_id), 88..92),
        ];
        for (ours, reference) in queue {
            assert_eq!(ours, reference);
        }
        type Allocation = kfd_ioctl_alloc_memory_of_gpu_args;
        assert_eq!(span_of!(Allocation, va_addr), 0..8);
        assert_eq!(span_of!(Allocation, size), 8..16);
        assert_eq!(span_of!(Allocation, handle), 16..24);
        assert_eq!(span_of!(Allocation, mmap_offset), 24..32);
        assert_eq!(span_of!(Allocation, gpu_id), 32..36);
        assert_eq!(span_of!(Allocation, flags), 36..40);
        assert_eq!(span_of!(kfd_ioctl_map_memory_to_gpu_args, device_ids_array_ptr), 8..16);
        assert_eq!(span_of!(kfd_ioctl_map_memory_to_gpu_args, n_devices), 16..20);
        assert_eq!(span_of!(kfd_ioctl_map_memory_to_gpu_args, n_success), 20..24);
        assert_eq!(span_of!(kfd_ioctl_get_process_apertures_new_args, num_of_nodes), 8..12);
        assert_eq!(size_of::<kfd_process_device_apertures>(), 56);
        assert_eq!(span_of!(kfd_process_device_apertures, gpuvm_base), 32..40);
        assert_eq!(span_of!(kfd_process_device_apertures, gpu_id), 48..52);
        type Event = kfd_ioctl_create_event_args;
        assert_eq!(span_of!(Event, event_page_offset), 0..8);
        assert_eq!(span_of!(Event, event_trigger_data), 8..12);
        assert_eq!(span_of!(Event, event_type), 12..16);
        assert_eq!(span_of!(Event, auto_reset), 16..20);
        assert_eq!(span_of!(Event, node_id), 20..24);
        assert_eq!(span_of!(Event, event_id), 24..28);
        assert_eq!(span_of!(Event, event_slot_index), 28..32);
        assert_eq!(size_of::<kfd_event_data_plain>(), 48);
        assert_eq!(span_of!(kfd_event_data_plain, kfd_event_data_ext), 32..40);
        assert_eq!(span_of!(kfd_event_data_plain, event_id), 40..44);
        assert_eq!(size_of::<kfd_hsa_memory_exception_data>(), 32);
        assert_eq!(span_of!(kfd_hsa_memory_exception_data, va), 16..24);
        assert_eq!(span_of!(kfd_hsa_memory_exception_data, gpu_id), 24..28);
        assert_eq!(size_of::<kfd_hsa_hw_exception_data>(), 16);
        assert_eq!(span_of!(kfd_ioctl_wait_events_args, timeout), 16..20);
        assert_eq!(span_of!(kfd_ioctl_wait_events_args, wait_result), 20..24);
        assert_eq!(span_of!(kfd_ioctl_update_queue_args, queue_id), 8..12);
        assert_eq!(span_of!(kfd_ioctl_runtime_enable_args, capabilities_mask), 12..16);
        assert_eq!(size_of::<kfd_context_save_area_header>(), 40);
    }

    /// Hardware reference §2.3: bit numbers of the allocation flags.
    #[test]
    fn flags_are_those_of_the_reference() {
        for (flag, bit) in [
            (KFD_IOC_ALLOC_MEM_FLAGS_VRAM, 0),
            (KFD_IOC_ALLOC_MEM_FLAGS_GTT, 1),
            (KFD_IOC_ALLOC_MEM_FLAGS_USERPTR, 2),
            (KFD_IOC_ALLOC_MEM_FLAGS_DOORBELL, 3),
            (KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP, 4),
            (KFD_IOC_ALLOC_MEM_FLAGS_CONTIGUOUS, 23),
            (KFD_IOC_ALLOC_MEM_FLAGS_EXT_COHERENT, 24),
            (KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED, 25),
            (KFD_IOC_ALLOC_MEM_FLAGS_COHERENT, 26),
            (KFD_IOC_ALLOC_MEM_FLAGS_AQL_QUEUE_MEM, 27),
            (KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE, 28),
            (KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC, 29),
            (KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE, 30),
            (KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE, 31),
        ] {
            assert_eq!(flag, 1u32 << bit);
        }
        assert_eq!((KFD_IOC_QUEUE_TYPE_COMPUTE, KFD_IOC_QUEUE_TYPE_COMPUTE_AQL), (0, 2));
        assert_eq!((KFD_IOC_EVENT_SIGNAL, KFD_IOC_EVENT_HW_EXCEPTION, KFD_IOC_EVENT_MEMORY), (0, 3, 8));
    }
}
