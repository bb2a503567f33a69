//! Buffers of a device.
//!
//! Contract: a [`Buffer`] owns device memory and releases it when dropped; it may outlive the [`crate::Device`] it came
//! from. Set-up only: allocation makes system calls.

use crate::error::DeviceError;
use crate::registry::{EntryId, Registry};
use std::sync::Arc;
use zrt_kmd::syscalls::PAGE_BYTES;
use zrt_kmd::{AllocationRequest, MemoryKind, Vm};
use zrt_mem::{ByteLen, GpuVa, Heap, SharedView};

/// Device memory.
#[derive(Debug)]
pub struct Buffer {
    /// Address on the GPU.
    pub va: GpuVa,
    /// The requested length.
    pub len: ByteLen,
    /// The requested heap.
    pub heap: Heap,
    /// The bytes, if the host can access them. A clone keeps them mapped after the buffer is gone.
    pub view: Option<SharedView>,
    label: String,
    entry: EntryId,
    registry: Arc<Registry>,
    memory: zrt_kmd::Buffer,
}

/// What a device and everything made from it share: the address space and the names in it.
#[derive(Clone)]
pub(crate) struct Space {
    pub(crate) vm: Arc<Vm>,
    pub(crate) registry: Arc<Registry>,
    /// True if every heap is system memory.
    gtt_only: bool,
    /// VRAM behind the BAR for the read that ends a flush; absent if nothing is written through the BAR.
    behind_bar: Option<Arc<zrt_kmd::Buffer>>,
}

impl Space {
    /// The space over `vm`, whose names no other device shares; `gtt_only` if every heap is system memory.
    pub(crate) fn new(vm: &Arc<Vm>, gtt_only: bool) -> Result<Space, DeviceError> {
        let registry = Arc::new(Registry::default());
        let mut space = Space { vm: vm.clone(), registry, behind_bar: None, gtt_only };
        if space.has_visible_vram() {
            let kind = MemoryKind::VramPublic;
            let request = AllocationRequest { kind, len: ByteLen(PAGE_BYTES as u64), executable: false };
            space.behind_bar = Some(Arc::new(zrt_kmd::Buffer::allocate(vm, request)?));
        }
        Ok(space)
    }

    /// Allocates from a heap; `executable` if the GPU fetches instructions or packets from it.
    pub(crate) fn allocate(
        &self,
        heap: Heap,
        len: ByteLen,
        label: &str,
        executable: bool,
    ) -> Result<Buffer, DeviceError> {
        let kind = self.kind(heap);
        let memory = zrt_kmd::Buffer::allocate(&self.vm, AllocationRequest { kind, len, executable })?;
        let (va, view) = (memory.va(), memory.view().cloned());
        let entry = self.registry.add_buffer(va, len, label);
        let registry = self.registry.clone();
        Ok(Buffer { va, len, heap, view, label: label.into(), entry, registry, memory })
    }

    /// What a heap is made of on this machine.
    fn kind(&self, heap: Heap) -> MemoryKind {
        match heap {
            // If the BAR covers all VRAM, visible memory costs nothing and saves the staging copies.
            Heap::DeviceLocal | Heap::HostVisible if self.has_visible_vram() => MemoryKind::VramPublic,
            Heap::HostShared if self.has_visible_vram() => MemoryKind::VramShared,
            Heap::DeviceLocal if !self.gtt_only => MemoryKind::Vram,
            Heap::HostCached => MemoryKind::GttCached,
            Heap::DeviceLocal | Heap::HostVisible | Heap::HostShared | Heap::Host => MemoryKind::Gtt,
        }
    }

    /// Whether a heap is in VRAM on this machine.
    pub(crate) fn is_vram(&self, heap: Heap) -> bool {
        match self.kind(heap) {
            MemoryKind::Vram | MemoryKind::VramPublic | MemoryKind::VramShared => true,
            MemoryKind::Gtt | MemoryKind::GttCached => false,
        }
    }

    /// Whether the host can access VRAM: only through a large BAR, and only if its writes can be flushed to the GPU
    /// (hardware reference §6.4).
    pub(crate) fn has_visible_vram(&self) -> bool {
        !self.gtt_only && self.vm.node().has_large_bar() && self.vm.has_hdp_flush()
    }

    /// VRAM that an allocation could still get, as the driver counts it; `None` if it does not say.
    pub(crate) fn available_vram(&self) -> Option<ByteLen> {
        self.vm.available_memory().ok()
    }

    /// Writes through the mapping. Returns false if the buffer has none.
    pub(crate) fn write_mapped(&self, buffer: &Buffer, offset: usize, bytes: &[u8]) -> bool {
        let Some(view) = &buffer.view else { return false };
        view.write_bytes(offset, bytes);
        self.flush_writes(buffer);
        true
    }

    /// Makes all writes through mappings visible to the GPU; writes to VRAM need a flush of the host data path.
    pub(crate) fn flush(&self) {
        match self.behind_bar.as_ref().and_then(|buffer| buffer.view()) {
            Some(behind_bar) => self.vm.flush_hdp(behind_bar),
            None => zrt_mem::shared::fence_stores(),
        }
    }

    /// Makes writes through the mapping visible to the GPU.
    pub(crate) fn flush_writes(&self, buffer: &Buffer) {
        if buffer.kind().is_behind_bar() {
            self.flush();
        }
    }

    /// Reads through the mapping. Returns false if the buffer has none.
    pub(crate) fn read_mapped(&self, buffer: &Buffer, offset: usize, bytes: &mut [u8]) -> bool {
        let Some(view) = &buffer.view else { return false };
        if buffer.kind().is_behind_bar() {
            self.flush();
        }
        view.read_bytes(offset, bytes);
        true
    }
}

impl Buffer {
    /// What it was allocated for; appears in reports.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Where it really is: a [`Heap::HostVisible`] or [`Heap::HostShared`] buffer is VRAM or, on a small BAR, system
    /// memory.
    pub fn kind(&self) -> MemoryKind {
        self.memory.kind()
    }

    /// The host's view of a buffer in a heap that it can access. After writing through it, call
    /// [`crate::Device::flush`] before the device is to see what was written.
    pub fn view(&self) -> Result<&SharedView, DeviceError> {
        self.view.as_ref().ok_or_else(|| DeviceError::NotMapped { label: self.label.clone() })
    }

    pub(crate) fn entry(&self) -> EntryId {
        self.entry
    }

    /// Checks that a range lies inside and returns its start.
    pub(crate) fn check_range(&self, offset: ByteLen, len: usize) -> Result<usize, DeviceError> {
        let len = ByteLen(len as u64);
        match offset.0.checked_add(len.0) {
            Some(end) if end <= self.len.0 => Ok(offset.0 as usize),
            _ => Err(DeviceError::Range { label: self.label.clone(), offset, len, buffer_len: self.len }),
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        self.registry.remove(self.entry);
    }
}
