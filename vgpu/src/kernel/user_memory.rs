//! USERPTR: memory of the process that the GPU accesses at the process's own addresses.
//!
//! Contract: the kernel follows the process with an MMU notifier (`amdgpu_amdkfd_evict_userptr`): memory that the
//! process unmaps is removed from the GPU, whose accesses then fault; memory mapped there again comes back. This
//! device polls the process's map instead, at every request and at every doorbell, before packets run. A dispatch
//! that is already running accesses the old pages until it ends. Each object is a second mapping of the process's
//! shared pages, so nothing that the process does can leave a hole. Private pages are shared for as long as the
//! object lives ([`Loan`]); if that is not possible they are refused, and the fault log reports it. Objects may
//! overlap, as in the kernel, where each has its own notifier. Cost: nothing while no object is mapped; else one
//! read of the process's map per poll.

use crate::memory::{AddressSpace, Backing, Defects, MemoryType, Rights};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zrt_kmd::Errno;
use zrt_kmd::syscalls::{Loan, ProcessMap, SharedRange};
use zrt_mem::{ByteLen, GpuVa};

/// The objects that are mapped on the GPU.
#[derive(Debug, Default)]
pub(crate) struct UserMemory {
    mapped: Mutex<Vec<UserRange>>,
}

#[derive(Debug)]
struct UserRange {
    va: GpuVa,
    rights: Rights,
    memory_type: MemoryType,
    loan: Arc<Loan>,
    /// The memory that the GPU accesses; `None` while the process has nothing mapped there.
    current: Option<SharedRange>,
}

impl UserRange {
    fn byte_len(&self) -> ByteLen {
        ByteLen(self.loan.len() as u64)
    }

    fn backing(&self, range: &SharedRange) -> Result<Backing, Errno> {
        let mapping = Arc::new(range.map_again()?);
        let (rights, memory_type) = (self.rights, self.memory_type);
        Ok(Backing { rights, memory_type, mapping, fill: None, defects: Defects::empty() })
    }

    /// Makes `now` the memory that the GPU accesses.
    fn replace(&mut self, now: Option<SharedRange>, space: &AddressSpace) {
        if self.current.take().is_some() {
            // It was mapped with exactly these arguments.
            let _ = space.unmap(self.va, self.byte_len());
        }
        // A range that the process unmaps at this moment stays unmapped until the next poll.
        let Some(range) = now else { return };
        let Ok(backing) = self.backing(&range) else { return };
        if space.map_backing(self.va, self.byte_len(), backing).is_ok() {
            self.current = Some(range);
        }
    }
}

impl UserMemory {
    fn lock(&self) -> MutexGuard<'_, Vec<UserRange>> {
        // Each change of an entry is a complete step, so the list is valid after any panic.
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps the lent pages into the GPU's address space at `va`. Pages that the process does not have there now are
    /// left to a later poll, as in the kernel (`map_bo_to_gpuvm` of an object whose pages are invalid).
    pub fn map(
        &self,
        space: &AddressSpace,
        va: GpuVa,
        rights: Rights,
        memory_type: MemoryType,
        loan: &Arc<Loan>,
    ) -> Result<(), Errno> {
        let mut range = UserRange { va, rights, memory_type, loan: loan.clone(), current: None };
        if let Ok(pages) = loan.pages() {
            let backing = range.backing(&pages)?;
            space.map_backing(va, range.byte_len(), backing).map_err(|_| Errno::EINVAL)?;
            range.current = Some(pages);
        }
        self.lock().push(range);
        Ok(())
    }

    /// Unmaps them again; they may be gone already.
    pub fn unmap(&self, space: &AddressSpace, va: GpuVa) {
        let mut mapped = self.lock();
        if let Some(at) = mapped.iter().position(|range| range.va == va) {
            mapped.swap_remove(at).replace(None, space);
        }
    }

    /// Applies what the process has changed since the last call.
    pub fn follow(&self, space: &AddressSpace) {
        let mut mapped = self.lock();
        if mapped.is_empty() {
            return;
        }
        // Without the map, no change is known.
        let Ok(map) = ProcessMap::read() else { return };
        for range in mapped.iter_mut() {
            let now = match map.shared_range(range.loan.address(), range.loan.len()) {
                // The process has mapped private memory there.
                Err(Errno::ENOTSUPP) => range.loan.pages().ok(),
                seen => seen.ok(),
            };
            if now != range.current {
                range.replace(now, space);
            }
        }
    }
}
