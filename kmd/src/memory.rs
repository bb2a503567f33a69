//! Memory that a GPU reaches, and the processor where it may.
//!
//! Contract: a [`Buffer`] is allocated, mapped on the GPU at its final address, and mapped on the processor at the
//! same number where its kind allows that. Dropping it unmaps it from the GPU, then from the processor, frees it, and
//! gives the address space back, in this order; while somebody else holds a view of it, the processor's mapping and the
//! address space stay, as the kernel permits: a mapping keeps the object's pages. Set-up only: no function here is on the
//! path of a token, except the view, which is memory.

use crate::error::KmdError;
use crate::ioctl::{AllocateMemory, AllocationFlags, FreeMemory, MapMemory, MemoryHandle, UnmapMemory};
use crate::syscalls::{Mapping, Reservation};
use crate::vm::Vm;
use std::sync::Arc;
use zrt_mem::{ByteLen, GpuVa, SharedView};

/// Where memory lies and who reaches it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryKind {
    /// VRAM that only the GPU reaches.
    Vram,
    /// VRAM that the processor reaches through the BAR, write-combined. Needs a large BAR. GL2 keeps lines of it: what the
    /// processor writes while a kernel runs, the kernel may miss.
    VramPublic,
    /// The same, mapped uncached on the GPU (MTYPE UC): for what the processor writes while kernels run. A load of system
    /// scope sees it. Not run on a card.
    VramShared,
    /// System memory of the kernel's, reached by both, snooped on x86-64.
    Gtt,
}

/// What to allocate.
#[derive(Clone, Copy, Debug)]
pub struct AllocationRequest {
    /// Where.
    pub kind: MemoryKind,
    /// How much; rounded up to pages by the driver, not in [`Buffer::len`].
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
    /// The driver's until the process ends: the signal page.
    is_kept: bool,
    mapping: Option<Mapping>,
    /// Dropped last: it holds the address.
    _reservation: Reservation,
}

impl MemoryKind {
    /// The processor reaches it through the BAR: what it writes has to be flushed to the GPU.
    pub fn is_behind_bar(self) -> bool {
        matches!(self, MemoryKind::VramPublic | MemoryKind::VramShared)
    }
}

impl AllocationRequest {
    fn flags(&self) -> AllocationFlags {
        // Hardware reference §2.6, table of buffers; hardware reference §6.3 for shared VRAM: with both flags every
        // known kernel maps it UC.
        let coherent = AllocationFlags::COHERENT | AllocationFlags::UNCACHED;
        let domain = match self.kind {
            MemoryKind::Vram => AllocationFlags::VRAM,
            MemoryKind::VramPublic => AllocationFlags::VRAM | AllocationFlags::PUBLIC,
            MemoryKind::VramShared => AllocationFlags::VRAM | AllocationFlags::PUBLIC | coherent,
            MemoryKind::Gtt => AllocationFlags::GTT | coherent,
        };
        let executable = if self.executable { AllocationFlags::EXECUTABLE } else { AllocationFlags::empty() };
        domain | executable | AllocationFlags::WRITABLE | AllocationFlags::NO_SUBSTITUTE
    }
}

impl Buffer {
    /// Allocates and maps. VRAM behind the BAR on a small BAR is [`KmdError::SmallBar`] before any call.
    pub fn allocate(vm: &Arc<Vm>, request: AllocationRequest) -> Result<Buffer, KmdError> {
        if request.kind.is_behind_bar() && !vm.node().has_large_bar() {
            return Err(KmdError::SmallBar);
        }
        let reservation = vm.reserve(request.len)?;
        let va = GpuVa(reservation.address());
        let gpu_id = vm.node().gpu_id;
        // The object covers whole pages: the driver compares some lengths with the mapping exactly.
        let len = ByteLen(reservation.len() as u64);
        let flags = request.flags();
        let allocated = vm.process().call(&AllocateMemory { va, len, gpu_id, flags })?;
        // From here on dropping the buffer undoes what was done so far.
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

    /// The length that was asked for.
    pub fn len(&self) -> ByteLen {
        self.len
    }

    /// Never: a buffer has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.len.0 == 0
    }

    /// Where it lies.
    pub fn kind(&self) -> MemoryKind {
        self.kind
    }

    /// What the processor sees, where it sees anything. A clone keeps it mapped when the buffer is gone; then nobody else
    /// reaches these bytes any more.
    pub fn view(&self) -> Option<&SharedView> {
        self.mapping.as_ref().map(Mapping::view)
    }

    /// Names the object to the driver.
    pub fn handle(&self) -> MemoryHandle {
        self.handle
    }

    /// For the signal page: the driver uses it until the process ends and does not free it by call (`EPERM`). Dropping it
    /// asks nothing of the driver.
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
