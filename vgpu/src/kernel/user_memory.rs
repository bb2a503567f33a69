//! USERPTR: memory of the process that the GPU reaches at the process's own addresses.
//!
//! Contract: the kernel follows the process by its MMU notifier (`amdgpu_amdkfd_evict_userptr`): what the process
//! unmaps is taken from the GPU, whose accesses then fault; what it maps there again comes back. Here the process is
//! looked at instead: at every request and at every doorbell, before packets run. A dispatch that is already running
//! reaches the old pages to its end. Each object is a second mapping of the process's shared pages, so that nothing
//! the process does leaves a hole; private pages cannot be mapped twice and are refused, which the diary tells. Cost:
//! nothing while no object is mapped; else one read of the process's map per look.

use crate::memory::{AddressSpace, Rights};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use zrt_kmd::Errno;
use zrt_kmd::syscalls::{ProcessMap, SharedRange};
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
    /// Where the process's pages are.
    address: u64,
    len: usize,
    /// What the GPU reaches; `None` while the process has nothing there.
    current: Option<SharedRange>,
}

impl UserRange {
    fn byte_len(&self) -> ByteLen {
        ByteLen(self.len as u64)
    }

    /// Makes `now` what the GPU reaches.
    fn replace(&mut self, now: Option<SharedRange>, space: &AddressSpace) {
        if self.current.take().is_some() {
            // It was mapped with these very numbers.
            let _ = space.unmap(self.va, self.byte_len());
        }
        // A range that the process takes away at this moment stays away until the next look.
        let Some(range) = now else { return };
        let Ok(mapping) = range.map_again() else { return };
        if space.map(self.va, self.byte_len(), self.rights, Arc::new(mapping)).is_ok() {
            self.current = Some(range);
        }
    }
}

impl UserMemory {
    fn lock(&self) -> MutexGuard<'_, Vec<UserRange>> {
        // An entry is changed by whole steps, so the list is valid after any panic.
        self.mapped.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether `len` bytes at `address` can be lent: `EFAULT` where the process has no memory there, `ENOTSUPP`
    /// where it is private, which the kernel can lend and this device cannot, `EINVAL` where it is not whole pages.
    pub fn check(address: u64, len: u64) -> Result<(), Errno> {
        let len = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
        ProcessMap::read().map_err(|_| Errno::ENOMEM)?.shared_range(address, len).map(|_| ())
    }

    /// Maps the process's pages at `address` into the GPU's address space at `va`.
    pub fn map(
        &self,
        space: &AddressSpace,
        va: GpuVa,
        rights: Rights,
        address: u64,
        len: u64,
    ) -> Result<(), Errno> {
        let len = usize::try_from(len).map_err(|_| Errno::EINVAL)?;
        let range = ProcessMap::read().map_err(|_| Errno::ENOMEM)?.shared_range(address, len)?;
        let mapping = range.map_again()?;
        space.map(va, ByteLen(len as u64), rights, Arc::new(mapping)).map_err(|_| Errno::EINVAL)?;
        self.lock().push(UserRange { va, rights, address, len, current: Some(range) });
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
            let now = map.shared_range(range.address, range.len).ok();
            if now != range.current {
                range.replace(now, space);
            }
        }
    }
}
