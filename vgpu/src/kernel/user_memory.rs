//! USERPTR: memory of the process that the GPU reaches at the process's own addresses.
//!
//! Contract: the kernel follows the process by its MMU notifier (`amdgpu_amdkfd_evict_userptr`): what the process
//! unmaps is taken from the GPU, whose accesses then fault; what it maps there again comes back. Here the process is
//! looked at instead: at every request and at every doorbell, before packets run. A dispatch that is already running
//! reaches the old pages to its end. Each object is a second mapping of the process's shared pages, so that nothing
//! the process does leaves a hole; private pages are shared for as long as the object lives ([`Loan`]), and those that
//! cannot be are refused, and the diary reports that. Objects may overlap, as in the kernel, where each has a notifier
//! of its own. Cost: nothing while no object is mapped; else one read of the process's map per look.

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
    /// What the GPU reaches; `None` while the process has nothing there.
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

    /// Makes `now` what the GPU reaches.
    fn replace(&mut self, now: Option<SharedRange>, space: &AddressSpace) {
        if self.current.take().is_some() {
            // It was mapped with these very numbers.
            let _ = space.unmap(self.va, self.byte_len());
        }
        // A range that the process takes away at this moment stays away until the next look.
        let Some(range) = now else { return };
        let Ok(backing) = self.backing(&range) else { return };
        if space.map_backing(self.va, self.byte_len(), backing).is_ok() {
            self.current = Some(range);
        }
    }
}

impl UserMemory {
    fn lock(&self) -> MutexGuard<'_, Vec<UserRange>> {
        // An entry is changed by whole steps, so the list is valid after any panic.
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps the lent pages into the GPU's address space at `va`. What the process does not have there now is for a later
    /// look, as in the kernel (`map_bo_to_gpuvm` of an object whose pages are invalid).
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

    /// Takes it away again; it may be gone already.
    pub fn unmap(&self, space: &AddressSpace, va: GpuVa) {
        let mut mapped = self.lock();
        if let Some(at) = mapped.iter().position(|range| range.va == va) {
            mapped.swap_remove(at).replace(None, space);
        }
    }

    /// Looks at what the process has done since.
    pub fn follow(&self, space: &AddressSpace) {
        let mut mapped = self.lock();
        if mapped.is_empty() {
            return;
        }
        // Without the map nothing is known to have changed.
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
