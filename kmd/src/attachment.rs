//! What a process has exactly once per driver: its file, the address space of each GPU, the signal page.
//!
//! Contract: KFD keys its state by the process's memory map, not by the file. Closing `/dev/kfd` tears nothing
//! down; the end of the process does. A VM can be bound only once per GPU (a second render file gets `EBUSY`). A
//! signal page can be set only once (`EINVAL`), and no call frees it (`EPERM`). So there is one [`Attachment`] per
//! process and driver. Code that opens a device makes it from that attachment, and releases through calls what it
//! made ([decision 16](../../docs/decisions/0016-one-attachment-per-process.md)). On Linux the attachment is
//! [`Attachment::of_this_process`] and is never dropped. A virtual board stands in for a process and has its own.
//!
//! An attachment owns; nothing that it owns holds it. For set-up only: it locks and enters the kernel.

use crate::error::KmdError;
use crate::event::Events;
use crate::ioctl::{CreateEvent, CreatedEvent, EventKind, MapMemory};
use crate::memory::{AllocationRequest, Buffer, MemoryKind};
use crate::syscalls::{LinuxSyscalls, Syscalls};
use crate::topology::GpuNode;
use crate::vm::{Process, Vm};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zrt_mem::{ByteLen, GpuVa};

/// Length of the signal page: 4096 slots of 8 bytes (hardware reference §2.2 step 9, §2.8).
const SIGNAL_PAGE_BYTES: u64 = 32768;
/// Bytes of one slot.
const SIGNAL_SLOT_BYTES: u64 = 8;

/// The attachment of this process to the machine's driver.
static OF_THIS_PROCESS: Mutex<Option<Arc<Attachment>>> = Mutex::new(None);

/// What a process has at one driver for as long as it lives.
pub struct Attachment {
    // Fields are dropped in this order; on Linux they never are.
    signal_page: Mutex<Option<SignalPage>>,
    vms: Mutex<Vec<Arc<Vm>>>,
    process: Arc<Process>,
}

/// The page of the process's signal events.
struct SignalPage {
    buffer: Buffer,
    /// The GPUs that can write into it.
    gpu_ids: Vec<u32>,
}

impl Attachment {
    /// The attachment of this process on Linux, made by the first call that succeeds. A forked child has none: it
    /// must execute another program first.
    pub fn of_this_process() -> Result<Arc<Attachment>, KmdError> {
        let mut slot = lock(&OF_THIS_PROCESS);
        match &*slot {
            Some(attachment) => Ok(attachment.clone()),
            None => {
                let attachment = Attachment::over(Arc::new(LinuxSyscalls::new()))?;
                Ok(slot.insert(attachment).clone())
            }
        }
    }

    /// The attachment of the process that `syscalls` stands for: a virtual board. A second one over the same board
    /// meets what it would meet in a process: the VM is bound and the signal page is set.
    pub fn over(syscalls: Arc<dyn Syscalls>) -> Result<Arc<Attachment>, KmdError> {
        let process = Process::open(syscalls)?;
        Ok(Arc::new(Attachment { signal_page: Mutex::new(None), vms: Mutex::new(Vec::new()), process }))
    }

    /// The process's file.
    pub fn process(&self) -> &Arc<Process> {
        &self.process
    }

    /// The address space of a GPU, bound at the first call for that GPU.
    ///
    /// # Errors
    /// [`KmdError::ProcessLost`] if the driver no longer serves this process.
    pub fn vm(&self, node: &GpuNode) -> Result<Arc<Vm>, KmdError> {
        self.process.check_served()?;
        let mut vms = lock(&self.vms);
        if let Some(vm) = vms.iter().find(|vm| vm.node().gpu_id == node.gpu_id) {
            return Ok(vm.clone());
        }
        let vm = Vm::open(&self.process, node)?;
        vms.push(vm.clone());
        Ok(vm)
    }

    /// Events for one user of a GPU. The first call in the process also creates its signal page.
    pub fn events(&self, vm: &Arc<Vm>) -> Result<Events, KmdError> {
        let (signal, slot_va) = self.create_signal(vm)?;
        Events::around(vm, signal.id, slot_va)
    }

    /// A signal event, and the address where the GPU stores its id.
    fn create_signal(&self, vm: &Arc<Vm>) -> Result<(CreatedEvent, GpuVa), KmdError> {
        let create =
            |page| self.process.call(&CreateEvent { kind: EventKind::Signal, page, auto_reset: true });
        let gpu_id = vm.node().gpu_id;
        let mut slot = lock(&self.signal_page);
        let (signal, page) = match &mut *slot {
            Some(page) => {
                page.map_on(&self.process, gpu_id)?;
                (create(None)?, page)
            }
            empty => {
                let len = ByteLen(SIGNAL_PAGE_BYTES);
                let request = AllocationRequest { kind: MemoryKind::Gtt, len, executable: false };
                let mut buffer = Buffer::allocate(vm, request)?;
                let signal = create(Some(buffer.handle()))?;
                // It belongs to the driver from here on.
                buffer.keep_until_exit();
                (signal, empty.insert(SignalPage { buffer, gpu_ids: vec![gpu_id] }))
            }
        };
        let slot_va = GpuVa(page.buffer.va().0 + u64::from(signal.slot_index) * SIGNAL_SLOT_BYTES);
        Ok((signal, slot_va))
    }
}

impl SignalPage {
    /// Maps the page on a further GPU of the process, at the same address.
    fn map_on(&mut self, process: &Process, gpu_id: u32) -> Result<(), KmdError> {
        if self.gpu_ids.contains(&gpu_id) {
            return Ok(());
        }
        match process.call(&MapMemory { handle: self.buffer.handle(), gpu_id })? {
            1 => self.gpu_ids.push(gpu_id),
            mapped => return Err(KmdError::MappedPartly { mapped }),
        }
        Ok(())
    }
}

impl core::fmt::Debug for Attachment {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("Attachment")
    }
}

/// Every change under these locks is a single call, so the guarded values are valid after any panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
