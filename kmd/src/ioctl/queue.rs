//! Commands about queues.

use super::{Command, CommandError, GROUP, common_remedy, issue, request};
use crate::bindings::kfd::*;
use crate::errno::Errno;
use crate::syscalls::{Fd, Nested, Syscalls};
use core::mem::offset_of;
use rustix::ioctl::opcode;
use zerocopy::IntoBytes;
use zrt_mem::GpuVa;

/// CREATE_QUEUE for raw PM4 (type COMPUTE). Buffer rules: hardware reference §2.6.
#[derive(Clone, Copy, Debug)]
pub struct CreateQueue {
    /// The GPU.
    pub gpu_id: u32,
    /// Start of the ring. Its mapping covers exactly the ring.
    pub ring_va: GpuVa,
    /// Ring length in bytes, a power of two.
    pub ring_bytes: u32,
    /// 64-bit write pointer inside a mapping of one page. An input, despite what the header says.
    pub write_pointer_va: GpuVa,
    /// 64-bit read pointer inside a mapping of one page.
    pub read_pointer_va: GpuVa,
    /// End-of-pipe buffer.
    pub eop_va: GpuVa,
    /// Its length, 4096.
    pub eop_bytes: u64,
    /// Context save area.
    pub save_area_va: GpuVa,
    /// Control stack and wave data, without debug memory.
    pub save_area_bytes: u32,
    /// Control stack alone.
    pub control_stack_bytes: u32,
}

/// What CREATE_QUEUE returns.
#[derive(Clone, Copy, Debug)]
pub struct CreatedQueue {
    /// Identifies the queue in later calls.
    pub queue_id: u32,
    /// Location of the doorbell: an mmap offset on `/dev/kfd` plus the byte in that page.
    pub doorbell_offset: u64,
}

/// The queue's share in percent (hardware reference §2.3).
const QUEUE_PERCENTAGE: u32 = 100;
/// Normal priority, of 0..=15 (hardware reference §2.3).
const QUEUE_PRIORITY: u32 = 7;

impl Command for CreateQueue {
    type Structure = kfd_ioctl_create_queue_args;
    type Output = CreatedQueue;
    const NAME: &'static str = "CREATE_QUEUE";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x02));

    fn structure(&self) -> Self::Structure {
        Self::Structure {
            ring_base_address: self.ring_va.0,
            write_pointer_address: self.write_pointer_va.0,
            read_pointer_address: self.read_pointer_va.0,
            ring_size: self.ring_bytes,
            gpu_id: self.gpu_id,
            queue_type: KFD_IOC_QUEUE_TYPE_COMPUTE,
            queue_percentage: QUEUE_PERCENTAGE,
            queue_priority: QUEUE_PRIORITY,
            eop_buffer_address: self.eop_va.0,
            eop_buffer_size: self.eop_bytes,
            ctx_save_restore_address: self.save_area_va.0,
            ctx_save_restore_size: self.save_area_bytes,
            ctl_stack_size: self.control_stack_bytes,
            ..Default::default()
        }
    }

    fn output(structure: Self::Structure) -> CreatedQueue {
        CreatedQueue { queue_id: structure.queue_id, doorbell_offset: structure.doorbell_offset }
    }

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::EFAULT => "the driver cannot reach a queue buffer; this is a bug of zrt",
            Errno::ENOTSUPP => "this kernel does not know compute queues of type 0; use a newer kernel",
            Errno::ESRCH => "the process cannot bind to the GPU; close other compute processes",
            Errno::ENOSPC => "the process has 127 queues already; close some",
            Errno::EPERM => "the GPU's hardware queues are all taken; close other compute processes",
            other => common_remedy(other),
        }
    }
}

/// DESTROY_QUEUE. On a hung queue it may take seconds and fail; the queue is gone even then.
#[derive(Clone, Copy, Debug)]
pub struct DestroyQueue {
    /// The queue.
    pub queue_id: u32,
}

impl Command for DestroyQueue {
    type Structure = kfd_ioctl_destroy_queue_args;
    type Output = ();
    const NAME: &'static str = "DESTROY_QUEUE";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x03));

    fn structure(&self) -> Self::Structure {
        Self::Structure { queue_id: self.queue_id, ..Default::default() }
    }

    fn output(_: Self::Structure) {}

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::ETIME | Errno::EIO => "the queue was hung; it is gone, and the GPU may have been reset",
            other => common_remedy(other),
        }
    }
}

/// UPDATE_QUEUE: changes ring, share or priority. A ring length of zero stops the queue.
#[derive(Clone, Copy, Debug)]
pub struct UpdateQueue {
    /// The queue.
    pub queue_id: u32,
    /// Start of the ring.
    pub ring_va: GpuVa,
    /// Ring length in bytes.
    pub ring_bytes: u32,
    /// 0..=100.
    pub percentage: u32,
    /// 0..=15.
    pub priority: u32,
}

impl Command for UpdateQueue {
    type Structure = kfd_ioctl_update_queue_args;
    type Output = ();
    const NAME: &'static str = "UPDATE_QUEUE";
    const REQUEST: u32 = request(opcode::write::<Self::Structure>(GROUP, 0x07));

    fn structure(&self) -> Self::Structure {
        Self::Structure {
            ring_base_address: self.ring_va.0,
            queue_id: self.queue_id,
            ring_size: self.ring_bytes,
            queue_percentage: self.percentage,
            queue_priority: self.priority,
        }
    }

    fn output(_: Self::Structure) {}

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::EFAULT => "there is no such queue; this is a bug of zrt",
            other => common_remedy(other),
        }
    }
}

/// SET_CU_MASK: restricts the compute units that a queue may use. On gfx12 they are enabled in pairs.
#[derive(Clone, Copy, Debug)]
pub struct SetCuMask<'a> {
    /// The queue.
    pub queue_id: u32,
    /// One bit per compute unit, 32 to a word.
    pub mask: &'a [u32],
}

impl Command for SetCuMask<'_> {
    type Structure = kfd_ioctl_set_cu_mask_args;
    type Output = ();
    const NAME: &'static str = "SET_CU_MASK";
    const REQUEST: u32 = request(opcode::write::<Self::Structure>(GROUP, 0x1A));

    fn structure(&self) -> Self::Structure {
        Self::Structure {
            queue_id: self.queue_id,
            num_cu_mask: self.mask.len() as u32 * 32,
            ..Default::default()
        }
    }

    fn output(_: Self::Structure) {}

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::EINVAL => "compute units go in pairs (both bits of a WGP), in whole words",
            other => common_remedy(other),
        }
    }

    fn call(&self, syscalls: &dyn Syscalls, fd: Fd) -> Result<(), CommandError> {
        let mut structure = self.structure();
        let mut mask = self.mask.to_vec();
        let bytes = mask.as_mut_slice().as_mut_bytes();
        let field_offset = offset_of!(Self::Structure, cu_mask_ptr);
        issue::<Self>(syscalls, fd, &mut structure, &mut [Nested { field_offset, bytes }])
    }
}
