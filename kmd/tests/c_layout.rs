//! The driver's structures as the host's C compiler lays them out, based on the kernel's own headers.
//!
//! The committed structures come from libclang. This test asks another compiler, which has to agree on every byte
//! that the kernel reads. Needs the headers (`ZRT_UAPI`) and a C compiler (`cc`).

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use memoffset::span_of;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use zrt_kmd::bindings::kfd::*;

/// Each structure with its fields: the query for C, and Rust's answer.
macro_rules! structures {
    ($($structure:ident { $($field:ident)* })*) => {
        const ASKED: &[(&str, &[&str])] = &[$((stringify!($structure), &[$(stringify!($field)),*])),*];

        /// A line for each structure with its size, then a line for each field with its byte range.
        fn said_by_rust() -> String {
            let mut said = String::new();
            $(
                writeln!(said, "{} {}", stringify!($structure), size_of::<$structure>()).unwrap();
                $(writeln!(said, "  {} {:?}", stringify!($field), span_of!($structure, $field)).unwrap();)*
            )*
            said
        }
    };
}

structures! {
    kfd_ioctl_get_version_args { major_version minor_version }
    kfd_ioctl_create_queue_args {
        ring_base_address write_pointer_address read_pointer_address doorbell_offset ring_size gpu_id queue_type
        queue_percentage queue_priority queue_id eop_buffer_address eop_buffer_size ctx_save_restore_address
        ctx_save_restore_size ctl_stack_size sdma_engine_id
    }
    kfd_ioctl_destroy_queue_args { queue_id }
    kfd_ioctl_update_queue_args { ring_base_address queue_id ring_size queue_percentage queue_priority }
    kfd_ioctl_set_cu_mask_args { queue_id num_cu_mask cu_mask_ptr }
    kfd_ioctl_get_clock_counters_args {
        gpu_clock_counter cpu_clock_counter system_clock_counter system_clock_freq gpu_id
    }
    kfd_process_device_apertures {
        lds_base lds_limit scratch_base scratch_limit gpuvm_base gpuvm_limit gpu_id
    }
    kfd_ioctl_get_process_apertures_new_args { kfd_process_device_apertures_ptr num_of_nodes }
    kfd_ioctl_create_event_args {
        event_page_offset event_trigger_data event_type auto_reset node_id event_id event_slot_index
    }
    kfd_ioctl_destroy_event_args { event_id }
    kfd_ioctl_set_event_args { event_id }
    kfd_ioctl_reset_event_args { event_id }
    kfd_ioctl_wait_events_args { events_ptr num_events wait_for_all timeout wait_result }
    kfd_ioctl_set_trap_handler_args { tba_addr tma_addr gpu_id }
    kfd_ioctl_acquire_vm_args { drm_fd gpu_id }
    kfd_ioctl_alloc_memory_of_gpu_args { va_addr size handle mmap_offset gpu_id flags }
    kfd_ioctl_free_memory_of_gpu_args { handle }
    kfd_ioctl_map_memory_to_gpu_args { handle device_ids_array_ptr n_devices n_success }
    kfd_ioctl_unmap_memory_from_gpu_args { handle device_ids_array_ptr n_devices n_success }
    kfd_ioctl_get_available_memory_args { available gpu_id }
    kfd_ioctl_set_xnack_mode_args { xnack_enabled }
    kfd_ioctl_runtime_enable_args { r_debug mode_mask capabilities_mask }
}

/// A program that prints what [`said_by_rust`] does.
fn program() -> String {
    let mut program = "#include <stddef.h>\n#include <stdio.h>\n#include <linux/kfd_ioctl.h>\n".to_owned();
    program.push_str("#define FIELD(S, F) printf(\"  \" #F \" %zu..%zu\\n\", offsetof(struct S, F), \\\n");
    program.push_str("    offsetof(struct S, F) + sizeof(((struct S *)0)->F))\n");
    program.push_str("int main(void) {\n");
    for (structure, fields) in ASKED {
        writeln!(program, "printf(\"{structure} %zu\\n\", sizeof(struct {structure}));").unwrap();
        for field in *fields {
            writeln!(program, "FIELD({structure}, {field});").unwrap();
        }
    }
    program.push_str("}\n");
    program
}

/// Compiles the program against the headers, and runs it.
fn said_by_c(headers: &Path) -> String {
    let folder = zrt_needs::TemporaryFolder::new("c-layout");
    let (source, executable) = (folder.join("layout.c"), folder.join("layout"));
    std::fs::write(&source, program()).unwrap();
    // A build script would receive these variables.
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut build = cc::Build::new();
    build.target(&target).host(&target).opt_level(0).debug(false).cargo_metadata(false).include(headers);
    let compiled =
        build.get_compiler().to_command().arg(&source).arg("-o").arg(&executable).output().unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&executable).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
#[cfg_attr(miri, ignore = "starts a compiler")]
fn structures_are_those_of_the_hosts_c_compiler() {
    let Some(headers) = zrt_needs::headers() else { return };
    if zrt_needs::programs(&["cc"]) {
        assert_eq!(said_by_rust(), said_by_c(&headers));
    }
}
