//! Commands about the process and the GPU as a whole.

use super::{Command, CommandError, GROUP, common_remedy, issue, request};
use crate::bindings::kfd::*;
use crate::errno::Errno;
use crate::syscalls::{Fd, Nested, Syscalls};
use core::mem::offset_of;
use rustix::ioctl::opcode;
use zerocopy::IntoBytes;
use zrt_mem::GpuVa;

/// GET_VERSION: the driver's interface version.
#[derive(Clone, Copy, Debug)]
pub struct GetVersion;

/// Interface version of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// 1 for every known driver.
    pub major: u32,
    /// Grows with the supported features (hardware reference §2.1).
    pub minor: u32,
}

impl Command for GetVersion {
    type Structure = kfd_ioctl_get_version_args;
    type Output = Version;
    const NAME: &'static str = "GET_VERSION";
    const REQUEST: u32 = request(opcode::read::<Self::Structure>(GROUP, 0x01));

    fn structure(&self) -> Self::Structure {
        Self::Structure::default()
    }

    fn output(structure: Self::Structure) -> Version {
        Version { major: structure.major_version, minor: structure.minor_version }
    }
}

/// GET_PROCESS_APERTURES_NEW: the address ranges of every GPU that this process may see.
#[derive(Clone, Copy, Debug)]
pub struct GetProcessApertures;

/// Most GPUs that a process can see; the driver's own limit is lower.
const APERTURES_MAX: u32 = 256;

impl Command for GetProcessApertures {
    type Structure = kfd_ioctl_get_process_apertures_new_args;
    type Output = Vec<kfd_process_device_apertures>;
    const NAME: &'static str = "GET_PROCESS_APERTURES_NEW";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x14));

    fn structure(&self) -> Self::Structure {
        Self::Structure::default()
    }

    fn output(_: Self::Structure) -> Self::Output {
        Vec::new()
    }

    /// Calls twice: a count of zero asks for the number of entries.
    fn call(&self, syscalls: &dyn Syscalls, fd: Fd) -> Result<Self::Output, CommandError> {
        let mut structure = self.structure();
        issue::<Self>(syscalls, fd, &mut structure, &mut [])?;
        let count = structure.num_of_nodes.min(APERTURES_MAX);
        let mut apertures = vec![kfd_process_device_apertures::default(); count as usize];
        if count == 0 {
            return Ok(apertures);
        }
        structure = Self::Structure { num_of_nodes: count, ..Default::default() };
        let bytes = apertures.as_mut_slice().as_mut_bytes();
        let field_offset = offset_of!(Self::Structure, kfd_process_device_apertures_ptr);
        issue::<Self>(syscalls, fd, &mut structure, &mut [Nested { field_offset, bytes }])?;
        apertures.truncate(structure.num_of_nodes as usize);
        Ok(apertures)
    }
}

/// ACQUIRE_VM: binds the address space of an open render node to KFD.
#[derive(Clone, Copy, Debug)]
pub struct AcquireVm {
    /// The render node.
    pub drm_fd: Fd,
    /// The GPU.
    pub gpu_id: u32,
}

impl Command for AcquireVm {
    type Structure = kfd_ioctl_acquire_vm_args;
    type Output = ();
    const NAME: &'static str = "ACQUIRE_VM";
    const REQUEST: u32 = request(opcode::write::<Self::Structure>(GROUP, 0x15));

    fn structure(&self) -> Self::Structure {
        Self::Structure { drm_fd: self.drm_fd.0 as u32, gpu_id: self.gpu_id }
    }

    fn output(_: Self::Structure) {}

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::EBUSY => {
                "this process already bound another file of the GPU; open every device over the process's one attachment"
            }
            Errno::EINVAL => "the render node does not belong to this GPU; check drm_render_minor",
            other => common_remedy(other),
        }
    }
}

/// RUNTIME_ENABLE with mode 0: the disable path, which resets stale debugger state (hardware reference §2.2 step 7).
#[derive(Clone, Copy, Debug)]
pub struct RuntimeDisable;

impl Command for RuntimeDisable {
    type Structure = kfd_ioctl_runtime_enable_args;
    type Output = ();
    const NAME: &'static str = "RUNTIME_ENABLE";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x25));

    fn structure(&self) -> Self::Structure {
        Self::Structure::default()
    }

    fn output(_: Self::Structure) {}
}

/// GET_CLOCK_COUNTERS: samples the GPU's and the system's clocks at one moment.
#[derive(Clone, Copy, Debug)]
pub struct GetClockCounters {
    /// The GPU.
    pub gpu_id: u32,
}

impl Command for GetClockCounters {
    type Structure = kfd_ioctl_get_clock_counters_args;
    type Output = kfd_ioctl_get_clock_counters_args;
    const NAME: &'static str = "GET_CLOCK_COUNTERS";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x05));

    fn structure(&self) -> Self::Structure {
        Self::Structure { gpu_id: self.gpu_id, ..Default::default() }
    }

    fn output(structure: Self::Structure) -> Self::Output {
        structure
    }
}

/// SET_XNACK_MODE. gfx12 cannot replay page faults, so enabling it is refused (hardware reference §2.2 step 8).
#[derive(Clone, Copy, Debug)]
pub struct SetXnackMode {
    /// 0 off, 1 on; a negative value queries.
    pub mode: i32,
}

impl Command for SetXnackMode {
    type Structure = kfd_ioctl_set_xnack_mode_args;
    /// The current mode.
    type Output = i32;
    const NAME: &'static str = "SET_XNACK_MODE";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x21));

    fn structure(&self) -> Self::Structure {
        Self::Structure { xnack_enabled: self.mode }
    }

    fn output(structure: Self::Structure) -> i32 {
        structure.xnack_enabled
    }

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::EPERM => "this GPU has no XNACK; leave it off",
            Errno::EBUSY => "a queue is active; set the mode before creating queues",
            other => common_remedy(other),
        }
    }
}

/// SET_TRAP_HANDLER: a second-level handler, which makes illegal instructions reportable.
#[derive(Clone, Copy, Debug)]
pub struct SetTrapHandler {
    /// The GPU.
    pub gpu_id: u32,
    /// Address of its code.
    pub code_va: GpuVa,
    /// Address of its memory.
    pub memory_va: GpuVa,
}

impl Command for SetTrapHandler {
    type Structure = kfd_ioctl_set_trap_handler_args;
    type Output = ();
    const NAME: &'static str = "SET_TRAP_HANDLER";
    const REQUEST: u32 = request(opcode::write::<Self::Structure>(GROUP, 0x13));

    fn structure(&self) -> Self::Structure {
        Self::Structure {
            tba_addr: self.code_va.0,
            tma_addr: self.memory_va.0,
            gpu_id: self.gpu_id,
            ..Default::default()
        }
    }

    fn output(_: Self::Structure) {}
}
