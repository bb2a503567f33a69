//! Commands about memory objects.

use super::{Command, CommandError, GROUP, common_remedy, issue, request};
use crate::bindings::kfd::*;
use crate::errno::Errno;
use crate::syscalls::{Fd, Nested, Syscalls};
use core::mem::offset_of;
use rustix::ioctl::opcode;
use zrt_mem::{ByteLen, GpuVa};

bitflags::bitflags! {
    /// Where memory comes from and what may be done with it (`KFD_IOC_ALLOC_MEM_FLAGS_*`).
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct AllocationFlags: u32 {
        /// The card's memory.
        const VRAM = KFD_IOC_ALLOC_MEM_FLAGS_VRAM;
        /// System memory that the kernel allocates.
        const GTT = KFD_IOC_ALLOC_MEM_FLAGS_GTT;
        /// The one-page register window with the HDP flush (hardware reference §2.5).
        const MMIO_REMAP = KFD_IOC_ALLOC_MEM_FLAGS_MMIO_REMAP;
        /// Hint: memory type UC.
        const UNCACHED = KFD_IOC_ALLOC_MEM_FLAGS_UNCACHED;
        /// Hint: fine-grained coherence.
        const COHERENT = KFD_IOC_ALLOC_MEM_FLAGS_COHERENT;
        /// Do not fall back to another domain.
        const NO_SUBSTITUTE = KFD_IOC_ALLOC_MEM_FLAGS_NO_SUBSTITUTE;
        /// CPU-visible VRAM.
        const PUBLIC = KFD_IOC_ALLOC_MEM_FLAGS_PUBLIC;
        /// The GPU may fetch instructions from it.
        const EXECUTABLE = KFD_IOC_ALLOC_MEM_FLAGS_EXECUTABLE;
        /// The GPU may write to it.
        const WRITABLE = KFD_IOC_ALLOC_MEM_FLAGS_WRITABLE;
    }
}

/// A memory object of the driver, valid for the process that allocated it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryHandle(pub u64);

/// ALLOC_MEMORY_OF_GPU: allocates a memory object to be mapped at an address of our choice.
#[derive(Clone, Copy, Debug)]
pub struct AllocateMemory {
    /// Its address on the GPU.
    pub va: GpuVa,
    /// Its length; the driver rounds up to pages.
    pub len: ByteLen,
    /// The GPU.
    pub gpu_id: u32,
    /// Memory domain and permissions.
    pub flags: AllocationFlags,
}

/// What ALLOC_MEMORY_OF_GPU returns.
#[derive(Clone, Copy, Debug)]
pub struct AllocatedMemory {
    /// Identifies the object in later calls.
    pub handle: MemoryHandle,
    /// Offset to mmap it at, on the render node.
    pub mmap_offset: u64,
}

impl Command for AllocateMemory {
    type Structure = kfd_ioctl_alloc_memory_of_gpu_args;
    type Output = AllocatedMemory;
    const NAME: &'static str = "ALLOC_MEMORY_OF_GPU";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x16));

    fn structure(&self) -> Self::Structure {
        Self::Structure {
            va_addr: self.va.0,
            size: self.len.0,
            gpu_id: self.gpu_id,
            flags: self.flags.bits(),
            ..Default::default()
        }
    }

    fn output(structure: Self::Structure) -> AllocatedMemory {
        AllocatedMemory { handle: MemoryHandle(structure.handle), mmap_offset: structure.mmap_offset }
    }

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::ENOMEM => "not enough VRAM or system memory; close other users of the GPU or ask for less",
            Errno::EADDRINUSE => "the address is used by shared virtual memory; this is a bug of zrt",
            Errno::EINVAL => "the driver refused size or flags (CPU-visible VRAM needs a large BAR)",
            other => common_remedy(other),
        }
    }
}

/// FREE_MEMORY_OF_GPU: frees an unmapped object.
#[derive(Clone, Copy, Debug)]
pub struct FreeMemory {
    /// The object.
    pub handle: MemoryHandle,
}

impl Command for FreeMemory {
    type Structure = kfd_ioctl_free_memory_of_gpu_args;
    type Output = ();
    const NAME: &'static str = "FREE_MEMORY_OF_GPU";
    const REQUEST: u32 = request(opcode::write::<Self::Structure>(GROUP, 0x17));

    fn structure(&self) -> Self::Structure {
        Self::Structure { handle: self.handle.0 }
    }

    fn output(_: Self::Structure) {}

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::EBUSY => "the memory is still mapped on a GPU; this is a bug of zrt",
            other => common_remedy(other),
        }
    }
}

/// MAP_MEMORY_TO_GPU: enters an object into the GPU's page table, at the address it was allocated with.
#[derive(Clone, Copy, Debug)]
pub struct MapMemory {
    /// The object.
    pub handle: MemoryHandle,
    /// The GPU.
    pub gpu_id: u32,
}

impl Command for MapMemory {
    type Structure = kfd_ioctl_map_memory_to_gpu_args;
    /// Number of devices on which it is mapped.
    type Output = u32;
    const NAME: &'static str = "MAP_MEMORY_TO_GPU";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x18));

    fn structure(&self) -> Self::Structure {
        Self::Structure { handle: self.handle.0, n_devices: 1, ..Default::default() }
    }

    fn output(structure: Self::Structure) -> u32 {
        structure.n_success
    }

    fn call(&self, syscalls: &dyn Syscalls, fd: Fd) -> Result<u32, CommandError> {
        let mut structure = self.structure();
        let mut devices = self.gpu_id.to_ne_bytes();
        let field_offset = offset_of!(Self::Structure, device_ids_array_ptr);
        issue::<Self>(syscalls, fd, &mut structure, &mut [Nested { field_offset, bytes: &mut devices }])?;
        Ok(Self::output(structure))
    }
}

/// UNMAP_MEMORY_FROM_GPU: removes an object from the GPU's page table.
#[derive(Clone, Copy, Debug)]
pub struct UnmapMemory {
    /// The object.
    pub handle: MemoryHandle,
    /// The GPU.
    pub gpu_id: u32,
}

impl Command for UnmapMemory {
    type Structure = kfd_ioctl_unmap_memory_from_gpu_args;
    /// Number of devices from which it was unmapped.
    type Output = u32;
    const NAME: &'static str = "UNMAP_MEMORY_FROM_GPU";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x19));

    fn structure(&self) -> Self::Structure {
        Self::Structure { handle: self.handle.0, n_devices: 1, ..Default::default() }
    }

    fn output(structure: Self::Structure) -> u32 {
        structure.n_success
    }

    fn remedy(errno: Errno) -> &'static str {
        match errno {
            Errno::EBUSY => "a live queue uses this memory; destroy the queue first (a bug of zrt)",
            other => common_remedy(other),
        }
    }

    fn call(&self, syscalls: &dyn Syscalls, fd: Fd) -> Result<u32, CommandError> {
        let mut structure = self.structure();
        let mut devices = self.gpu_id.to_ne_bytes();
        let field_offset = offset_of!(Self::Structure, device_ids_array_ptr);
        issue::<Self>(syscalls, fd, &mut structure, &mut [Nested { field_offset, bytes: &mut devices }])?;
        Ok(Self::output(structure))
    }
}

/// AVAILABLE_MEMORY: bytes of VRAM that an allocation could still get.
#[derive(Clone, Copy, Debug)]
pub struct AvailableMemory {
    /// The GPU.
    pub gpu_id: u32,
}

impl Command for AvailableMemory {
    type Structure = kfd_ioctl_get_available_memory_args;
    type Output = ByteLen;
    const NAME: &'static str = "AVAILABLE_MEMORY";
    const REQUEST: u32 = request(opcode::read_write::<Self::Structure>(GROUP, 0x23));

    fn structure(&self) -> Self::Structure {
        Self::Structure { gpu_id: self.gpu_id, ..Default::default() }
    }

    fn output(structure: Self::Structure) -> ByteLen {
        ByteLen(structure.available)
    }
}
