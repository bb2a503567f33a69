//! The process's file on the driver and the address space of one GPU.
//!
//! Contract: hardware reference §2.2 steps 1 to 8. One [`Process`] per process and one [`Vm`] per GPU, which an
//! [`Attachment`](crate::Attachment) makes once and keeps; everything made from a [`Vm`] holds it. Closing the
//! files releases nothing: buffers, events and queues are released by their own calls. `drop` cannot return
//! failures of teardown: they are kept in the process and read with [`Process::take_teardown_failures`]. Set-up
//! only: every function here enters the kernel and may block.

use crate::errno::Errno;
use crate::error::KmdError;
use crate::ioctl::{
    AcquireVm, AvailableMemory, Command, CommandError, GetProcessApertures, GetVersion, RuntimeDisable,
    Version,
};
use crate::process_loss::ProcessLoss;
use crate::syscalls::{Fd, Mapping, PAGE_BYTES, Protection, Reservation, Syscalls};
use crate::topology::GpuNode;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use zrt_mem::{ByteLen, GpuVa, SharedView};

/// Path of the driver's file.
pub const KFD_PATH: &str = "/dev/kfd";
/// The doorbell slice of a process on one GPU: 1024 doorbells of 8 bytes (hardware reference §2.5).
pub const DOORBELL_SLICE_BYTES: u64 = 8192;
/// First interface minor with RUNTIME_ENABLE in the form that we use (hardware reference §2.1).
const VERSION_MINOR_RUNTIME_ENABLE: u32 = 14;
/// Bits 61:46 of an mmap offset on `/dev/kfd` hold the gpu_id, bits 63:62 the type (hardware reference §2.5).
const MMAP_GPU_ID_SHIFT: u32 = 46;
const MMAP_TYPE_SHIFT: u32 = 62;
const MMAP_TYPE_DOORBELL: u64 = 3;
const MMAP_TYPE_MMIO_REMAP: u64 = 0;
/// Length of the register window with the HDP flush.
const MMIO_REMAP_BYTES: usize = 4096;
/// Allocations of at least this length are aligned to 2 MiB, so that the GPU's page table can use large fragments
/// (hardware reference §2.4).
const LARGE_ALIGNMENT: usize = 2 << 20;
/// Teardown failures kept for [`Process::take_teardown_failures`]; the oldest say the most.
const TEARDOWN_FAILURES_MAX: usize = 64;

/// This process's open file on the driver.
pub struct Process {
    syscalls: Arc<dyn Syscalls>,
    kfd: Fd,
    version: Version,
    teardown_failures: Mutex<Vec<KmdError>>,
    loss: OnceLock<ProcessLoss>,
}

/// The address space of one GPU, bound to KFD.
pub struct Vm {
    process: Arc<Process>,
    node: GpuNode,
    render_node: Fd,
    lowest: GpuVa,
    highest: GpuVa,
    doorbells: Mutex<Option<Mapping>>,
    /// Absent if the driver offers no remap page; then only GTT can safely be shared with the CPU.
    mmio_remap: Option<Mapping>,
}

impl Process {
    /// Opens the driver and checks its interface version.
    pub fn open(syscalls: Arc<dyn Syscalls>) -> Result<Arc<Process>, KmdError> {
        let kfd = syscalls.open(KFD_PATH).map_err(|errno| KmdError::Open {
            path: KFD_PATH.into(),
            errno,
            remedy: open_remedy(errno),
        })?;
        let version = match GetVersion.call(syscalls.as_ref(), kfd) {
            Ok(version) => version,
            Err(error) => {
                let _ = syscalls.close(kfd);
                return Err(error.into());
            }
        };
        let (teardown_failures, loss) = (Mutex::new(Vec::new()), OnceLock::new());
        let process = Arc::new(Process { syscalls, kfd, version, teardown_failures, loss });
        // From here on, dropping the process closes the file.
        if version.major != 1 {
            return Err(KmdError::Version { major: version.major, minor: version.minor });
        }
        Ok(process)
    }

    /// The seam that everything goes through.
    pub fn syscalls(&self) -> &dyn Syscalls {
        self.syscalls.as_ref()
    }

    /// Interface version of the driver.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Issues a command on the driver's file.
    pub fn call<C: Command>(&self, command: &C) -> Result<C::Output, CommandError> {
        command.call(self.syscalls(), self.kfd)
    }

    /// Returns and clears the failures of teardown so far.
    pub fn take_teardown_failures(&self) -> Vec<KmdError> {
        core::mem::take(&mut *self.teardown_failures.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Issues a command whose failure cannot be returned to a caller.
    pub(crate) fn tear_down<C: Command>(&self, command: &C) {
        if let Err(error) = self.call(command) {
            let mut failures = self.teardown_failures.lock().unwrap_or_else(PoisonError::into_inner);
            if failures.len() < TEARDOWN_FAILURES_MAX {
                failures.push(error.into());
            }
        }
    }

    /// Why the driver no longer serves this process, as far as its events have reported.
    pub fn loss(&self) -> Option<ProcessLoss> {
        self.loss.get().copied()
    }

    /// Fails if the driver no longer serves this process.
    pub(crate) fn check_served(&self) -> Result<(), KmdError> {
        self.loss().map_or(Ok(()), |loss| Err(KmdError::ProcessLost { loss }))
    }

    /// Records what an event reported; the first report stays.
    pub(crate) fn note_loss(&self, loss: ProcessLoss) {
        let _ = self.loss.set(loss);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Releases the descriptor, but none of the driver's state, which ends with the process.
        let _ = self.syscalls.close(self.kfd);
    }
}

impl Vm {
    /// Opens the node's render file and binds its address space. No step after the binding, which cannot be undone,
    /// can fail.
    pub(crate) fn open(process: &Arc<Process>, node: &GpuNode) -> Result<Arc<Vm>, KmdError> {
        let path = node.render_node_path();
        let opened = process.syscalls.open(&path);
        let render_node =
            opened.map_err(|errno| KmdError::Open { path, errno, remedy: open_remedy(errno) })?;
        // Dropping the value closes the file, so any of the steps below may fail.
        let mut vm = Vm {
            process: process.clone(),
            node: node.clone(),
            render_node,
            lowest: GpuVa(0),
            highest: GpuVa(0),
            doorbells: Mutex::new(None),
            mmio_remap: None,
        };
        let apertures = process.call(&GetProcessApertures)?;
        let aperture = apertures
            .iter()
            .find(|aperture| aperture.gpu_id == node.gpu_id)
            .ok_or(KmdError::ApertureMissing { gpu_id: node.gpu_id })?;
        vm.lowest = GpuVa(aperture.gpuvm_base);
        vm.highest = GpuVa(aperture.gpuvm_limit);
        process.call(&AcquireVm { drm_fd: render_node, gpu_id: node.gpu_id })?;
        if process.version.minor >= VERSION_MINOR_RUNTIME_ENABLE {
            // Optional: it only clears what a debugger may have left behind, and a refusal does not matter to us.
            let _ = process.call(&RuntimeDisable);
        }
        vm.mmio_remap = vm.map_mmio_remap();
        Ok(Arc::new(vm))
    }

    /// The process's file.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The GPU.
    pub fn node(&self) -> &GpuNode {
        &self.node
    }

    /// VRAM that an allocation could still get.
    pub fn available_memory(&self) -> Result<ByteLen, KmdError> {
        Ok(self.process.call(&AvailableMemory { gpu_id: self.node.gpu_id })?)
    }

    /// Makes CPU writes to VRAM through the BAR visible to the GPU (hardware reference §6.4). `behind_bar` is any
    /// mapped VRAM of this GPU; one dword of it is read. No system call. Without a remap page it does nothing; then
    /// [`Vm::has_hdp_flush`] is false.
    pub fn flush_hdp(&self, behind_bar: &SharedView) {
        if let Some(remap) = &self.mmio_remap {
            zrt_mem::hdp::flush(remap.view(), behind_bar);
        }
    }

    /// True if [`Vm::flush_hdp`] reaches the device.
    pub fn has_hdp_flush(&self) -> bool {
        self.mmio_remap.is_some()
    }

    /// Address space for `len` bytes that both sides can use at the same address.
    ///
    /// The CPU's address is also the GPU's. That is one policy for both, and it avoids the LDS and scratch
    /// apertures, which lie above 2^47 (hardware reference §2.4).
    pub(crate) fn reserve(&self, len: ByteLen) -> Result<Reservation, KmdError> {
        let bytes = usize::try_from(len.0).ok().filter(|bytes| *bytes > 0 && *bytes < 1 << 47);
        let bytes = bytes.ok_or(KmdError::Length { len })?;
        let alignment = if bytes >= LARGE_ALIGNMENT { LARGE_ALIGNMENT } else { PAGE_BYTES };
        let reservation = self.process.syscalls.reserve(bytes, alignment).map_err(|errno| KmdError::Map {
            what: "address space",
            len,
            errno,
            remedy: "raise the address-space limit (ulimit -v) or vm.max_map_count",
        })?;
        let va = GpuVa(reservation.address());
        let last = va.offset(ByteLen(reservation.len() as u64 - 1));
        if va < self.lowest || last.is_none_or(|last| last > self.highest) {
            return Err(KmdError::OutsideAperture { va, len, base: self.lowest, limit: self.highest });
        }
        Ok(reservation)
    }

    /// Maps a memory object over the start of its reservation.
    pub(crate) fn map_object(
        &self,
        mmap_offset: u64,
        len: ByteLen,
        reservation: &Reservation,
    ) -> Result<Mapping, KmdError> {
        let place = Some((reservation, 0));
        let mapped = self.process.syscalls.map(
            self.render_node,
            mmap_offset,
            len.0 as usize,
            Protection::ReadWrite,
            place,
        );
        mapped.map_err(|errno| KmdError::Map {
            what: "device memory",
            len,
            errno,
            remedy: "check vm.max_map_count and the kernel log",
        })
    }

    /// The bytes of one queue's doorbell, in the doorbell slice, which is mapped at the first call.
    pub(crate) fn doorbell(&self, doorbell_offset: u64) -> Result<SharedView, KmdError> {
        let gpu_id = self.node.gpu_id;
        let slice_offset = doorbell_offset & !(DOORBELL_SLICE_BYTES - 1);
        let slot = doorbell_offset & (DOORBELL_SLICE_BYTES - 1);
        let expected = MMAP_TYPE_DOORBELL << MMAP_TYPE_SHIFT | u64::from(gpu_id) << MMAP_GPU_ID_SHIFT;
        if slice_offset != expected || !slot.is_multiple_of(8) {
            return Err(KmdError::DoorbellOffset { offset: doorbell_offset, gpu_id });
        }
        let mut doorbells = self.doorbells.lock().unwrap_or_else(PoisonError::into_inner);
        let mapping = match &*doorbells {
            Some(mapping) => mapping,
            None => {
                let len = DOORBELL_SLICE_BYTES as usize;
                let mapped = self.process.syscalls.map(
                    self.process.kfd,
                    slice_offset,
                    len,
                    Protection::ReadWrite,
                    None,
                );
                let mapped = mapped.map_err(|errno| KmdError::Map {
                    what: "the doorbell slice",
                    len: ByteLen(DOORBELL_SLICE_BYTES),
                    errno,
                    remedy: "the driver offers another slice length; report the kernel version",
                })?;
                doorbells.insert(mapped)
            }
        };
        Ok(mapping.view().slice(slot as usize, 8))
    }

    fn map_mmio_remap(&self) -> Option<Mapping> {
        let offset =
            MMAP_TYPE_MMIO_REMAP << MMAP_TYPE_SHIFT | u64::from(self.node.gpu_id) << MMAP_GPU_ID_SHIFT;
        let syscalls = &self.process.syscalls;
        // Some platforms have none (large pages, virtualisation); then VRAM is not used through the BAR.
        syscalls.map(self.process.kfd, offset, MMIO_REMAP_BYTES, Protection::ReadWrite, None).ok()
    }
}

impl Drop for Vm {
    fn drop(&mut self) {
        // Mappings of the driver's files are dropped before the files. A mapping with a remaining view outlives
        // them, as the kernel permits.
        *self.doorbells.get_mut().unwrap_or_else(PoisonError::into_inner) = None;
        self.mmio_remap = None;
        let _ = self.process.syscalls.close(self.render_node);
    }
}

fn open_remedy(errno: Errno) -> &'static str {
    match errno {
        Errno::ENOENT | Errno::ENODEV | Errno::ENXIO => {
            "load the amdgpu driver with KFD support, or use --device virtual"
        }
        Errno::EACCES | Errno::EPERM => "add the user to the groups render and video, and log in again",
        Errno::EMFILE => "raise the limit of open files (ulimit -n)",
        Errno::EBUSY => "the GPU is being reset; try again",
        _ => "see the kernel log",
    }
}
