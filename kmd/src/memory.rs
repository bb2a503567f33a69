//! Memory accessible to a GPU, and to the CPU if its kind allows.
//!
//! Contract: a [`Buffer`] is allocated, mapped on the GPU at its final address, and mapped on the CPU at the same
//! address if its kind allows that. Dropping it does the following in order: it unmaps the buffer from the GPU and
//! from the CPU, frees it, and releases the address space. While another view of it exists, the CPU mapping and the
//! address space stay, as the kernel permits: a mapping keeps the object's pages. For set-up only: no function here
//! is on the path of a token, except the view, which is memory.

use crate::error::KmdError;
use crate::ioctl::{AllocateMemory, AllocationFlags, FreeMemory, MapMemory, MemoryHandle, UnmapMemory};
use crate::syscalls::{Mapping, Reservation};
use crate::vm::Vm;
use std::sync::Arc;
use zrt_mem::{ByteLen, GpuVa, SharedView};

/// Location of memory and who can access it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// VRAM that only the GPU can access.
    Vram,
    /// VRAM that the CPU accesses through the BAR, write-combined. Needs a large BAR. GL2 caches its lines: a
    /// running kernel may miss what the CPU writes.
    VramPublic,
    /// The same, mapped uncached on the GPU (MTYPE UC), for data that the CPU writes while kernels run. A load of
    /// system scope sees it. Never run on a card.
    VramShared,
    /// System memory allocated by the kernel, accessible to both, snooped on x86-64.
    Gtt,
    /// The same, mapped cached on the GPU (MTYPE NC): GL2 keeps its lines until a packet drops them. For data that the
    /// CPU writes before the submission that reads it.
    GttCached,
}

/// What to allocate.
#[derive(Clone, Copy, Debug)]
pub struct AllocationRequest {
    /// The kind of memory.
    pub kind: MemoryKind,
    /// The length. The driver rounds it up to pages; [`Buffer::len`] is not rounded.
    pub len: ByteLen,
    /// Whether the GPU may fetch instructions or packets from it.
    pub executable: bool,
}

/// Allocated and mapped memory.
pub struct Buffer {
    vm: Arc<Vm>,
    handle: MemoryHandle,
    va: GpuVa,
    len: ByteLen,
    kind: MemoryKind,
    gpu_mapped: bool,
    /// True if the driver keeps it until the process ends: the signal page.
    is_kept: bool,
    mapping: Option<Mapping>,
    /// Dropped last: it owns the address range.
    _reservation: Reservation,
}

impl MemoryKind {
    /// True if the CPU accesses it through the BAR, so that its writes have to be flushed to the GPU.
    pub fn is_behind_bar(self) -> bool {
        matches!(self, MemoryKind::VramPublic | MemoryKind::VramShared)
    }
}

impl AllocationRequest {
    fn flags(&self) -> AllocationFlags {
        // Hardware reference §2.6, table of buffers; for shared VRAM hardware reference §6.3: with both flags every
        // known kernel maps it UC.
        let coherent = AllocationFlags::COHERENT | AllocationFlags::UNCACHED;
        let domain = match self.kind {
            MemoryKind::Vram => AllocationFlags::VRAM,
            MemoryKind::VramPublic => AllocationFlags::VRAM | AllocationFlags::PUBLIC,
            MemoryKind::VramShared => AllocationFlags::VRAM | AllocationFlags::PUBLIC | coherent,
            MemoryKind::Gtt => AllocationFlags::GTT | coherent,
            MemoryKind::GttCached => AllocationFlags::GTT,
        };
        let executable = if self.executable { AllocationFlags::EXECUTABLE } else { AllocationFlags::empty() };
        domain | executable | AllocationFlags::WRITABLE | AllocationFlags::NO_SUBSTITUTE
    }
}

impl Buffer {
    /// Allocates and maps. VRAM behind the BAR returns [`KmdError::SmallBar`] on a small BAR, before any call.
    pub fn allocate(vm: &Arc<Vm>, request: AllocationRequest) -> Result<Buffer, KmdError> {
        if request.kind.is_behind_bar() && !vm.node().has_large_bar() {
            return Err(KmdError::SmallBar);
        }
        let reservation = vm.reserve(request.len)?;
        let va = GpuVa(reservation.address());
        let gpu_id = vm.node().gpu_id;
        // The object covers whole pages: the driver requires some lengths to match the mapping exactly.
        let len = ByteLen(reservation.len() as u64);
        let flags = request.flags();
        let allocated = vm.process().call(&AllocateMemory { va, len, gpu_id, flags })?;
        // From here on, dropping the buffer undoes the steps completed so far.
        let mut buffer = Buffer {
            vm: vm.clone(),
            handle: allocated.handle,
            va,
            len: request.len,
            kind: request.kind,
            gpu_mapped: false,
            is_kept: false,
            mapping: None,
            _reservation: reservation.clone(),
        };
        if request.kind != MemoryKind::Vram {
            buffer.mapping = Some(vm.map_object(allocated.mmap_offset, request.len, &reservation)?);
        }
        let mapped = vm.process().call(&MapMemory { handle: buffer.handle, gpu_id })?;
        if mapped != 1 {
            return Err(KmdError::MappedPartly { mapped });
        }
        buffer.gpu_mapped = true;
        Ok(buffer)
    }

    /// The address on the GPU.
    pub fn va(&self) -> GpuVa {
        self.va
    }

    /// The length requested.
    pub fn len(&self) -> ByteLen {
        self.len
    }

    /// Always false: a buffer has at least one byte.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The kind of memory.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// The CPU's view, if the CPU can access the buffer. A clone keeps the memory mapped after the buffer is gone;
    /// then nobody else can access these bytes.
    pub fn view(&self) -> Option<&SharedView> {
        self.mapping.as_ref().map(Mapping::view)
    }

    /// Identifies the object to the driver.
    pub fn handle(&self) -> MemoryHandle {
        self.handle
    }

    /// For the signal page: the driver uses it until the process ends, and no call frees it (`EPERM`). Dropping the
    /// buffer makes no call to the driver.
    pub(crate) fn keep_until_exit(&mut self) {
        self.is_kept = true;
    }
}

impl core::fmt::Debug for Buffer {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Buffer {{ {:?}, {:?}, {:?} }}", self.va, self.len, self.kind)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        let process = self.vm.process();
        if self.gpu_mapped {
            process.tear_down(&UnmapMemory { handle: self.handle, gpu_id: self.vm.node().gpu_id });
        }
        self.mapping = None;
        process.tear_down(&FreeMemory { handle: self.handle });
    }
}
