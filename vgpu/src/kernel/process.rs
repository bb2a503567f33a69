//! The one client process: its VM, objects, queues and switches, and the requests on them.
//!
//! Contract: each method is one request on typed values, checked in the kernel's order (hardware reference §2.6,
//! §2.8); the byte layouts are in `ioctl`. State belongs to the process's memory map and lives until the process
//! ends: closing `/dev/kfd`, even its last descriptor, tears nothing down (Linux `kfd_release` only drops a
//! reference; `kfd_process_notifier_release` is the end). After a reset of the GPU the process is no longer served.

use crate::command_processor::faults::FaultKind;
use crate::command_processor::hardware::Hardware;
use crate::command_processor::{CommandProcessor, Preemption};
use crate::config::KernelRelease;
use crate::kernel::board::{self, GPU_ID};
use crate::kernel::objects::{AllocError, AllocRequest, Domain, MemoryRules, Objects, Usage};
use crate::kernel::queues::{CreateRequest, Queues, UpdateRequest};
use crate::kernel::requests::mmap_offset;
use std::fmt::Write;
use std::sync::Arc;
use zrt_kmd::{Errno, Mapping, MemoryFile, Protection, Reservation};

/// Identity of an open file, never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileSerial(pub u64);

/// The process.
#[derive(Debug)]
pub(crate) struct Process {
    pub objects: Objects,
    kernel: KernelRelease,
    queues: Queues,
    hardware: Arc<Hardware>,
    usage: Arc<Usage>,
    /// The render node file whose VM was acquired. It stays bound after its descriptor is closed: the kernel holds
    /// a reference to the file until the process ends.
    vm: Option<FileSerial>,
    runtime_is_enabled: bool,
    /// The HDP remap page: word 0 flushes memory, word 1 registers (hardware reference §2.5). Host memory is
    /// coherent here, so stores to it have no effect.
    mmio: Arc<MemoryFile>,
    /// The kernel's own signal page, if the process did not supply one.
    kernel_event_page: Option<MemoryFile>,
}

/// The object that a handle refers to.
#[derive(Clone, Copy)]
struct Handle {
    gpu_id: u32,
    index: u32,
}

impl From<u64> for Handle {
    /// gpu_id in the upper half, index in the lower (hardware reference §2.8).
    fn from(handle: u64) -> Handle {
        Handle { gpu_id: (handle >> 32) as u32, index: handle as u32 }
    }
}

/// A resumable MAP or UNMAP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MapRequest {
    pub handle: u64,
    pub device_count: u32,
    pub success_count: u32,
}

fn check_gpu(gpu_id: u32) -> Result<(), Errno> {
    if gpu_id == GPU_ID { Ok(()) } else { Err(Errno::EINVAL) }
}

impl Process {
    pub fn new(
        hardware: Arc<Hardware>,
        usage: Arc<Usage>,
        rules: MemoryRules,
        kernel: KernelRelease,
    ) -> Result<Process, Errno> {
        Ok(Process {
            objects: Objects::new(usage.clone(), rules),
            kernel,
            queues: Queues::new(kernel)?,
            hardware,
            usage,
            vm: None,
            runtime_is_enabled: false,
            mmio: Arc::new(MemoryFile::new("zrt-vgpu-mmio", board::PAGE_BYTES as usize)?),
            kernel_event_page: None,
        })
    }

    /// Requires a bound VM, as most requests do; returns `error` if there is none.
    fn bound(&self, error: Errno) -> Result<(), Errno> {
        if self.vm.is_some() { Ok(()) } else { Err(error) }
    }

    /// ACQUIRE_VM; `render` is the file behind the descriptor, if it is an open render node.
    pub fn acquire_vm(&mut self, render: Option<FileSerial>, gpu_id: u32) -> Result<(), Errno> {
        let render = render.ok_or(Errno::EINVAL)?;
        check_gpu(gpu_id)?;
        match self.vm {
            Some(bound) if bound != render => Err(Errno::EBUSY),
            _ => {
                self.vm = Some(render);
                Ok(())
            }
        }
    }

    /// ALLOC_MEMORY_OF_GPU. Returns handle and mmap offset.
    pub fn alloc(&mut self, gpu_id: u32, request: &AllocRequest) -> Result<(u64, u64), Errno> {
        if request.size == 0 {
            return Err(Errno::EINVAL);
        }
        check_gpu(gpu_id)?;
        self.objects.check_alloc(request)?;
        self.bound(Errno::ENODEV)?;
        let made = self.objects.alloc(request, [&self.queues.doorbells.file, &self.mmio]);
        let index = made.map_err(|error| match error {
            AllocError::Refused(errno) => errno,
            AllocError::NotLent(why) => {
                let text = format!("USERPTR at {:#x} : {why}", request.user_address);
                self.hardware.record(FaultKind::UnmodelledRequest, None, None, text);
                Errno::EINVAL
            }
        })?;
        let object = self.objects.get(index).ok_or(Errno::ENOMEM)?;
        let offset = match object.domain {
            Domain::MmioRemap => mmap_offset::TYPE_MMIO << mmap_offset::TYPE_SHIFT | kfd_gpu_bits(),
            Domain::Doorbell => doorbell_mmap_offset(),
            Domain::Vram | Domain::Gtt | Domain::User => object.mmap_offset,
        };
        Ok((u64::from(GPU_ID) << 32 | u64::from(index), offset))
    }

    /// FREE_MEMORY_OF_GPU.
    pub fn free(&mut self, handle: u64) -> Result<(), Errno> {
        if self.hardware.events().page_handle() == Some(handle) {
            return Err(Errno::EPERM);
        }
        let handle = Handle::from(handle);
        check_gpu(handle.gpu_id)?;
        self.objects.free(handle.index)
    }

    /// MAP_MEMORY_TO_GPU on the devices of the list from `success_count` on; adds each success to the count.
    pub fn map(&mut self, request: &mut MapRequest, devices: &[u32]) -> Result<(), Errno> {
        self.for_devices(request, devices, |process, index| {
            let hardware = &process.hardware;
            process.objects.map(index, hardware.memory(), hardware.user_memory(), hardware.injector())
        })
    }

    /// UNMAP_MEMORY_FROM_GPU, likewise.
    pub fn unmap(&mut self, request: &mut MapRequest, devices: &[u32]) -> Result<(), Errno> {
        self.for_devices(request, devices, |process, index| {
            if let (Some(inspection), Some((va, len))) =
                (process.hardware.inspection(), process.objects.mapped_range(index))
            {
                inspection.forget(va, len, process.hardware.memory());
            }
            process.objects.unmap(index, process.hardware.memory(), process.hardware.user_memory())
        })
    }

    fn for_devices(
        &mut self,
        request: &mut MapRequest,
        devices: &[u32],
        mut apply: impl FnMut(&mut Process, u32) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let handle = Handle::from(request.handle);
        check_gpu(handle.gpu_id)?;
        self.bound(Errno::ENODEV)?;
        self.objects.get(handle.index).ok_or(Errno::ENOMEM)?;
        while let Some(device) = devices.get(request.success_count as usize) {
            check_gpu(*device)?;
            apply(self, handle.index)?;
            request.success_count += 1;
        }
        Ok(())
    }

    /// CREATE_QUEUE. Returns the queue id and the mmap-style doorbell offset.
    pub fn create_queue(
        &mut self,
        processor: &CommandProcessor,
        gpu_id: u32,
        request: &CreateRequest,
    ) -> Result<(u32, u64), Errno> {
        request.check()?;
        check_gpu(gpu_id)?;
        self.bound(Errno::ESRCH)?;
        let (id, slot_offset) = self.queues.create(&mut self.objects, processor, request)?;
        Ok((id, doorbell_mmap_offset() | slot_offset))
    }

    /// UPDATE_QUEUE.
    pub fn update_queue(&mut self, request: &UpdateRequest) -> Result<(), Errno> {
        request.check()?;
        self.queues.update(&mut self.objects, request)
    }

    /// DESTROY_QUEUE. `ETIME` if its waves did not stop; the queue is gone nevertheless.
    pub fn destroy_queue(&mut self, processor: &CommandProcessor, queue_id: u32) -> Result<(), Errno> {
        match self.queues.destroy(&mut self.objects, processor, queue_id)? {
            Preemption::Drained => Ok(()),
            Preemption::Reset => Err(Errno::ETIME),
        }
    }

    /// SET_CU_MASK on a mask already read.
    pub fn set_cu_mask(&self, queue_id: u32, mask: &[u32]) -> Result<(), Errno> {
        self.queues.check_cu_mask(queue_id, mask)
    }

    /// Makes a GTT object the signal page (first CREATE_EVENT of a dGPU process).
    pub fn set_event_page(&mut self, handle: u64) -> Result<(), Errno> {
        let parts = Handle::from(handle);
        if self.hardware.events().has_page() {
            return Err(Errno::EINVAL);
        }
        check_gpu(parts.gpu_id)?;
        let object = self.objects.get(parts.index).ok_or(Errno::EINVAL)?;
        if object.domain != Domain::Gtt {
            return Err(Errno::EINVAL);
        }
        let mapping = object.mapping().ok_or(Errno::EINVAL)?.clone();
        let is_short = mapping.len() < board::EVENT_PAGE_BYTES as usize;
        if is_short && self.kernel.checks_event_page() {
            return Err(Errno::EINVAL);
        }
        if is_short {
            let text = format!("a signal page of {} bytes : the kernel writes past its end", mapping.len());
            self.hardware.record(FaultKind::UnmodelledRequest, None, None, text);
        }
        self.hardware.events().set_page(mapping, Some(handle))
    }

    /// Gives the process a kernel-owned signal page if it has none yet.
    pub fn ensure_event_page(&mut self) -> Result<(), Errno> {
        if self.hardware.events().has_page() {
            return Ok(());
        }
        let len = board::EVENT_PAGE_BYTES as usize;
        let file = MemoryFile::new("zrt-vgpu-events", len)?;
        let mapping = Arc::new(file.map(0, len, Protection::ReadWrite, None)?);
        self.kernel_event_page = Some(file);
        self.hardware.events().set_page(mapping, None)
    }

    /// SET_XNACK_MODE. Returns the current mode. gfx12 has no XNACK.
    pub fn set_xnack(&self, mode: i32) -> Result<i32, Errno> {
        match mode {
            ..0 => Ok(0),
            _ if !self.queues.is_empty() => Err(Errno::EBUSY),
            0 => Ok(0),
            _ => Err(Errno::EPERM),
        }
    }

    /// RUNTIME_ENABLE: enable, or the disable path.
    pub fn enable_runtime(&mut self, enable: bool) -> Result<(), Errno> {
        if enable && self.runtime_is_enabled {
            return Err(Errno::EBUSY);
        }
        if enable && !self.queues.is_empty() {
            return Err(Errno::EEXIST);
        }
        self.runtime_is_enabled = enable;
        Ok(())
    }

    /// The check of requests that name a device and need a VM on it.
    pub fn check_device(&self, gpu_id: u32) -> Result<(), Errno> {
        check_gpu(gpu_id)?;
        self.bound(Errno::ESRCH)
    }

    /// AVAILABLE_MEMORY.
    pub fn available_vram_bytes(&self, gpu_id: u32) -> Result<u64, Errno> {
        check_gpu(gpu_id)?;
        Ok(self.objects.available_vram_bytes())
    }

    /// mmap on `/dev/kfd` (hardware reference §2.5).
    pub fn map_kfd(
        &self,
        offset: u64,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        let gpu_id = (offset >> mmap_offset::GPU_ID_SHIFT & mmap_offset::GPU_ID_MASK) as u32;
        let device = || if gpu_id == GPU_ID { Ok(()) } else { Err(Errno::ENODEV) };
        let file = match offset >> mmap_offset::TYPE_SHIFT {
            mmap_offset::TYPE_DOORBELL => {
                device()?;
                if len as u64 != board::DOORBELL_SLICE_BYTES {
                    return Err(Errno::EINVAL);
                }
                &*self.queues.doorbells.file
            }
            mmap_offset::TYPE_EVENTS => {
                if len as u64 > board::EVENT_PAGE_BYTES {
                    return Err(Errno::EINVAL);
                }
                let page = self.kernel_event_page.as_ref().ok_or(Errno::EINVAL)?;
                let mapping = self.usage.map_for_client(page, len, protection, place)?;
                self.hardware.events().page_is_mapped(len);
                return Ok(mapping);
            }
            mmap_offset::TYPE_MMIO => {
                device()?;
                if len as u64 != board::PAGE_BYTES {
                    return Err(Errno::EINVAL);
                }
                &*self.mmio
            }
            _ => return Err(Errno::EFAULT),
        };
        self.usage.map_for_client(file, len, protection, place)
    }

    /// mmap on a render node: only the file whose VM was acquired may map objects.
    pub fn map_render(
        &self,
        file: FileSerial,
        offset: u64,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        if self.vm != Some(file) {
            return Err(Errno::EACCES);
        }
        self.objects.map_for_client(offset, len, protection, place)
    }

    /// Live objects, one line each: empty for a process that has made nothing yet.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (index, object) in self.objects.iter() {
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "object {index} va {:#x} bytes {} flags {:#x} mapped {} queues {}",
                object.va, object.size, object.flags, object.is_mapped as u32, object.queue_users
            );
        }
        text += &self.queues.describe();
        for (name, count) in [
            ("events", self.hardware.events().count()),
            ("client_mappings", self.usage.client_mappings()),
            ("gpu_mappings", self.objects.iter().filter(|(_, object)| object.is_mapped).count()),
        ] {
            if count > 0 {
                let _ = writeln!(text, "{name} {count}");
            }
        }
        text
    }

    /// Ends the process, in the kernel's order: queues, events, memory, VM.
    pub fn release(&mut self, processor: &CommandProcessor) {
        self.queues.release_all(&mut self.objects, processor);
        self.hardware.events().release_all();
        self.objects.release_all(self.hardware.memory(), self.hardware.user_memory());
        self.kernel_event_page = None;
        self.vm = None;
        self.runtime_is_enabled = false;
        self.hardware.process_ended();
    }
}

/// gpu_id in mmap offsets (bits 61:46).
fn kfd_gpu_bits() -> u64 {
    u64::from(GPU_ID) << mmap_offset::GPU_ID_SHIFT
}

fn doorbell_mmap_offset() -> u64 {
    mmap_offset::TYPE_DOORBELL << mmap_offset::TYPE_SHIFT | kfd_gpu_bits()
}
