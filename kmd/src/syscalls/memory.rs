//! Address space and mappings as owned objects.
//!
//! Contract: [`Reservation`] is inaccessible address space, followed by a guard in which nothing is ever placed.
//! [`Mapping`] is a live shared mapping of a file. [`MemoryFile`] is sparse memory of our own that can be mapped
//! many times (the virtual device's VRAM). Each releases its resources when dropped, in any order. A mapping, and
//! its place with it, stays for as long as a view of it does, and may be lent to a device meanwhile (`lending`).
//! Lengths are rounded up to pages. Set-up only.

use super::lending::lending;
use crate::errno::Errno;
use core::any::Any;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};
use rustix::fs::{FallocateFlags, MemfdFlags};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use zrt_mem::SharedView;

/// The page size of x86-64, which KFD uses there as well (hardware reference §2.4).
pub const PAGE_BYTES: usize = 4096;
/// Inaccessible address space that belongs to every reservation, after its end. The system places reservations
/// directly next to each other: without the guard, an overrun of a buffer of whole pages would land in the next
/// one.
pub const GUARD_BYTES: usize = 64 << 10;

/// Access rights of a mapping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// Address space only: nothing can be read or written.
    None,
    /// Reads only.
    Read,
    /// Reads and writes.
    ReadWrite,
}

/// Reserved address space, followed by [`GUARD_BYTES`] of guard. Both return to the system when the last clone and
/// the last mapping in it are dropped.
#[derive(Clone, Debug)]
pub struct Reservation {
    inner: Arc<ReservedRange>,
}

/// A live mapping of a file, or of private memory. It is taken down when it and every view of it are dropped; if it
/// was placed in a reservation, its range becomes reserved space again.
#[derive(Debug)]
pub struct Mapping {
    view: SharedView,
    protection: Protection,
    range: Arc<MappedRange>,
}

/// The shared part of a [`Mapping`] and its views: a range of whole pages that is mapped until this is dropped.
#[derive(Debug)]
pub(super) struct MappedRange {
    address: usize,
    len: usize,
    /// True if it is entered in `lending`.
    is_offered: AtomicBool,
    /// Dropped after the range is taken down: lets a driver observe that a mapping is gone.
    guard: OnceLock<Guard>,
    /// Dropped last: the address space that the range returns to.
    place: Option<Place>,
}

/// Sparse memory that belongs to this process: zero until written, freed page by page, mappable several times.
#[derive(Debug)]
pub struct MemoryFile {
    file: OwnedFd,
    len: usize,
}

#[derive(Debug)]
struct ReservedRange {
    base: NonNull<u8>,
    /// Length without the guard.
    len: usize,
    /// Start and length of every placed mapping, in bytes from `base`, and of what was lost: a call that fails may
    /// leave a gap, and whatever lies there since may be another's. It is never used again, nor given back.
    occupied: Mutex<Vec<(usize, usize)>>,
}

// SAFETY: the range is a pair of numbers describing address space; it is never dereferenced through this type.
unsafe impl Send for ReservedRange {}
// SAFETY: as for `Send`; the list inside is behind a lock.
unsafe impl Sync for ReservedRange {}

/// A mapping's place in a reservation.
#[derive(Debug)]
struct Place {
    reservation: Reservation,
    offset: usize,
}

/// Source of the bytes of a new mapping.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// A file from this byte on, shared with everyone who maps it.
    File(BorrowedFd<'a>, u64),
    /// Private zeros.
    Anonymous,
}

struct Guard {
    _value: Box<dyn Any + Send + Sync>,
}

impl core::fmt::Debug for Guard {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("Guard")
    }
}

impl Protection {
    fn flags(self) -> ProtFlags {
        match self {
            Protection::None => ProtFlags::empty(),
            Protection::Read => ProtFlags::READ,
            Protection::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
        }
    }
}

/// `len` rounded up to pages. `EINVAL` if it is zero or exceeds the address space.
fn pages(len: usize) -> Result<usize, Errno> {
    match len.checked_next_multiple_of(PAGE_BYTES) {
        Some(rounded) if rounded > 0 && rounded < 1 << 47 => Ok(rounded),
        _ => Err(Errno::EINVAL),
    }
}

fn reserved_flags() -> MapFlags {
    MapFlags::PRIVATE | MapFlags::NORESERVE
}

impl Source<'_> {
    /// Maps `len` bytes, whole pages, at an address of the kernel's choice.
    fn map(self, len: usize, protection: Protection) -> Result<*mut c_void, Errno> {
        let (anywhere, rights) = (core::ptr::null_mut(), protection.flags());
        // SAFETY: without an address a new mapping goes to unused address space and touches nothing that exists.
        let raw = unsafe {
            match self {
                Source::File(file, offset) => {
                    rustix::mm::mmap(anywhere, len, rights, MapFlags::SHARED, file, offset)
                }
                Source::Anonymous => rustix::mm::mmap_anonymous(anywhere, len, rights, MapFlags::PRIVATE),
            }
        };
        Ok(raw?)
    }
}

impl Reservation {
    /// Reserves `len` bytes with no access, aligned to `alignment` (a power of two ≥ [`PAGE_BYTES`], else
    /// `EINVAL`).
    pub fn new(len: usize, alignment: usize) -> Result<Reservation, Errno> {
        let len = pages(len)?;
        if !alignment.is_power_of_two() || alignment < PAGE_BYTES {
            return Err(Errno::EINVAL);
        }
        let guarded = len + GUARD_BYTES;
        let asked = guarded.checked_add(alignment - PAGE_BYTES).ok_or(Errno::EINVAL)?;
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice touches nothing that exists.
        let raw = unsafe {
            rustix::mm::mmap_anonymous(core::ptr::null_mut(), asked, ProtFlags::empty(), reserved_flags())
        }?;
        let start = raw.addr();
        let before = start.next_multiple_of(alignment) - start;
        let after = asked - before - guarded;
        // SAFETY: head and tail lie inside the mapping just made, which nobody else knows of; cutting them off
        // leaves exactly `guarded` bytes at `before`. Unmapping page-aligned parts of one's own mapping can fail
        // only at the kernel's limit on the number of mappings; the part then stays reserved, which is harmless.
        let base = unsafe {
            if before > 0 {
                let _ = rustix::mm::munmap(raw, before);
            }
            if after > 0 {
                let _ = rustix::mm::munmap(raw.byte_add(before + guarded), after);
            }
            NonNull::new_unchecked(raw.byte_add(before).cast::<u8>())
        };
        Ok(Reservation { inner: Arc::new(ReservedRange { base, len, occupied: Mutex::new(Vec::new()) }) })
    }

    /// The address of the first byte.
    pub fn address(&self) -> u64 {
        self.inner.base.as_ptr().expose_provenance() as u64
    }

    /// Length in bytes, whole pages, without the guard.
    pub fn len(&self) -> usize {
        self.inner.len
    }

    /// Always false: a reservation has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// True if no mapping is placed in it.
    pub fn is_vacant(&self) -> bool {
        self.occupied().is_empty()
    }

    fn occupied(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        // Every change to the list is a single call, so it is valid after any panic.
        self.inner.occupied.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReservedRange {
    fn pointer(&self, start: usize) -> *mut c_void {
        self.base.as_ptr().wrapping_add(start).cast()
    }

    /// Reserves a range anew from which a failed call may have taken the pages. If something is there, the pages or
    /// what another thread has mapped since, the range is lost.
    fn refill(&self, occupied: &mut Vec<(usize, usize)>, start: usize, len: usize) {
        // SAFETY: the kernel refuses to map over anything that exists.
        let raw = unsafe {
            let flags = reserved_flags() | MapFlags::FIXED_NOREPLACE;
            rustix::mm::mmap_anonymous(self.pointer(start), len, ProtFlags::empty(), flags)
        };
        if raw.is_err() {
            occupied.push((start, len));
        }
    }
}

impl Drop for ReservedRange {
    fn drop(&mut self) {
        let mut occupied = core::mem::take(self.occupied.get_mut().unwrap_or_else(PoisonError::into_inner));
        occupied.sort_unstable();
        let mut start = 0;
        for (end, len) in occupied.into_iter().chain([(self.len + GUARD_BYTES, 0)]) {
            if start < end {
                // SAFETY: `Reservation::new` mapped the range and the guard after it. Every placed mapping held a
                // clone and is gone, so what is occupied still has been lost; that is left out. Nothing else unmaps
                // the rest. On failure it stays reserved.
                let _ = unsafe { rustix::mm::munmap(self.pointer(start), end - start) };
            }
            start = end + len;
        }
    }
}

impl Mapping {
    /// Maps a file; see [`super::Syscalls::map`].
    pub(super) fn of_file(
        file: BorrowedFd<'_>,
        offset: u64,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        Ok(Mapping::of_source(Source::File(file, offset), len, protection, place)?.offered())
    }

    /// Private memory, as an allocator gets it from the system: zero until written, copied by a fork. `place` as in
    /// [`super::Syscalls::map`].
    pub fn private(
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        Ok(Mapping::of_source(Source::Anonymous, len, protection, place)?.offered())
    }

    /// Private memory at an address of the kernel's choice that is not offered.
    pub(super) fn private_alone(len: usize) -> Result<Mapping, Errno> {
        Mapping::of_source(Source::Anonymous, len, Protection::ReadWrite, None)
    }

    /// Allows anyone who knows its address to lend it to a device, until it is taken down: only views access it.
    fn offered(self) -> Mapping {
        let range = &self.range;
        if self.protection == Protection::ReadWrite && !range.is_offered.swap(true, Ordering::Relaxed) {
            lending().offered.push((range.address as u64, range.len));
        }
        self
    }

    fn of_source(
        source: Source<'_>,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        let rounded = pages(len)?;
        let Some((reservation, start)) = place else {
            let raw = source.map(rounded, protection)?;
            return Ok(Mapping::new(raw, len, protection, MappedRange::of_new(raw, rounded)));
        };
        if !start.is_multiple_of(PAGE_BYTES) {
            return Err(Errno::EINVAL);
        }
        if reservation.len().checked_sub(start).is_none_or(|left| rounded > left) {
            return Err(Errno::ENOMEM);
        }
        // Held across the call, so that two placements cannot both find the range vacant.
        let mut occupied = reservation.occupied();
        if occupied.iter().any(|(at, bytes)| *at < start + rounded && start < at + bytes) {
            return Err(Errno::EEXIST);
        }
        // Mapped elsewhere at first: where a driver refuses a fixed mapping, the kernel has taken away what lay at its
        // place (mmap(2)), and the gap is open to every thread.
        let from = source.map(rounded, protection)?;
        // SAFETY: the target lies inside the reservation, which owns that address space and has just verified that
        // nothing is placed there: only pages without access are replaced. What moves was just mapped, and nobody
        // else knows of it.
        let moved = unsafe {
            let to = reservation.inner.pointer(start);
            rustix::mm::mremap_fixed(from, rounded, rounded, MremapFlags::MAYMOVE, to)
        };
        let raw = match moved {
            Ok(raw) => raw,
            Err(errno) => {
                // SAFETY: it has not moved, and is no one else's. On failure it stays mapped.
                let _ = unsafe { rustix::mm::munmap(from, rounded) };
                reservation.inner.refill(&mut occupied, start, rounded);
                return Err(errno.into());
            }
        };
        occupied.push((start, rounded));
        drop(occupied);
        let place = Place { reservation: reservation.clone(), offset: start };
        Ok(Mapping::new(raw, len, protection, MappedRange::new(raw, rounded, Some(place))))
    }

    /// Moves an unplaced mapping to `address`, over what is mapped there; from then on it belongs to the owner of
    /// that address space. `EINVAL` if the mapping is placed, offered, guarded or has other views; `ENOMEM` if the
    /// process has too many mappings. Both leave everything unchanged. A kernel that has no memory left may have taken
    /// away what was mapped there (before Linux 6.17), which is `ENOMEM` too.
    ///
    /// # Safety
    /// For every user of the memory at `address`, the bytes of this mapping must be a valid replacement for those
    /// there.
    pub(super) unsafe fn move_over(self, address: u64) -> Result<(), Errno> {
        // The mapping itself, and the view in it.
        const OWN_COUNTS: usize = 2;
        let Mapping { view, range, .. } = self;
        let is_offered = range.is_offered.load(Ordering::Relaxed);
        let is_free = range.place.is_none() && range.guard.get().is_none() && !is_offered;
        if !is_free || Arc::strong_count(&range) != OWN_COUNTS {
            return Err(Errno::EINVAL);
        }
        let from = core::ptr::with_exposed_provenance_mut::<c_void>(range.address);
        let to = core::ptr::with_exposed_provenance_mut::<c_void>(address as usize);
        // SAFETY: the old place belongs to this mapping, and the only view of it left is the one here, which is no
        // longer used; the caller vouches for the new place.
        unsafe { rustix::mm::mremap_fixed(from, range.len, range.len, MremapFlags::MAYMOVE, to) }?;
        drop(view);
        if let Some(range) = Arc::into_inner(range) {
            // Nothing is left to take down: the range has moved.
            core::mem::forget(range);
        }
        Ok(())
    }

    /// Takes ownership of a range of whole pages that was just mapped at an address of the kernel's choice, for
    /// nobody else.
    pub(super) fn of_new_range(raw: *mut c_void, len: usize, protection: Protection) -> Mapping {
        Mapping::new(raw, len, protection, MappedRange::of_new(raw, len))
    }

    fn new(raw: *mut c_void, len: usize, protection: Protection, range: Arc<MappedRange>) -> Mapping {
        // SAFETY: mmap succeeded, so the address is not null. The range is page-aligned, no Rust allocation, and
        // mapped until `range`, which the view counts, is dropped. The view is handed out only if the range is
        // readable and writable.
        let view = unsafe { SharedView::new(NonNull::new_unchecked(raw.cast()), len, range.clone()) };
        Mapping { view, protection, range }
    }

    /// The mapped bytes; a clone of the view keeps them mapped. Panics unless the mapping is
    /// [`Protection::ReadWrite`], because a view can also store.
    pub fn view(&self) -> &SharedView {
        assert!(
            self.protection == Protection::ReadWrite,
            "a view of a mapping that is {:?}",
            self.protection
        );
        &self.view
    }

    /// The address as the host sees it.
    pub fn address(&self) -> u64 {
        self.view.host_address() as u64
    }

    /// Bytes requested.
    pub fn len(&self) -> usize {
        self.view.len()
    }

    /// Always false: a mapping has at least one byte.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The access rights it was made with.
    pub fn protection(&self) -> Protection {
        self.protection
    }

    /// Attaches a value that is dropped after the range is taken down, so that a driver can count live mappings.
    /// Panics if one is attached already.
    pub fn with_guard(self, guard: Box<dyn Any + Send + Sync>) -> Mapping {
        let is_first = self.range.guard.set(Guard { _value: guard }).is_ok();
        assert!(is_first, "a mapping has one guard");
        self
    }
}

impl MappedRange {
    /// Takes ownership of whole pages that were just mapped at an address of the kernel's choice, for nobody else.
    pub(super) fn of_new(raw: *mut c_void, len: usize) -> Arc<MappedRange> {
        MappedRange::new(raw, len, None)
    }

    fn new(raw: *mut c_void, len: usize, place: Option<Place>) -> Arc<MappedRange> {
        let (address, is_offered) = (raw.expose_provenance(), AtomicBool::new(false));
        Arc::new(MappedRange { address, len, is_offered, guard: OnceLock::new(), place })
    }
}

impl Drop for MappedRange {
    fn drop(&mut self) {
        // Held to the end, so that nobody lends what is being taken down.
        let _lending = self.is_offered.get_mut().then(|| {
            let mut lending = lending();
            lending.withdraw(self.address as u64, self.len);
            lending
        });
        let pointer = core::ptr::with_exposed_provenance_mut::<c_void>(self.address);
        let Some(Place { reservation, offset }) = &self.place else {
            // SAFETY: the range was mapped for this value alone, and this is its last owner: no view is left.
            let _ = unsafe { rustix::mm::munmap(pointer, self.len) };
            return;
        };
        let mut occupied = reservation.occupied();
        // SAFETY: the range belongs to the reservation, which is alive in `self.place`; only this mapping is placed
        // there, and no view of it is left. The fixed mapping restores the previous state.
        let restored = unsafe {
            let flags = reserved_flags() | MapFlags::FIXED;
            rustix::mm::mmap_anonymous(pointer, self.len, ProtFlags::empty(), flags)
        };
        // If the kernel has no memory for it, the range stays occupied: its pages may be gone.
        if restored.is_ok() {
            occupied.retain(|(start, _)| start != offset);
        }
    }
}

impl MemoryFile {
    /// A sparse file of `len` bytes (rounded up to pages) in memory; `name` appears in `/proc/self/maps`.
    pub fn new(name: &str, len: usize) -> Result<MemoryFile, Errno> {
        let len = pages(len)?;
        let file = rustix::fs::memfd_create(name, MemfdFlags::CLOEXEC)?;
        rustix::fs::ftruncate(&file, len as u64)?;
        Ok(MemoryFile { file, len })
    }

    /// Length in bytes, whole pages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: a file has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Maps a part of it; `EINVAL` outside the file. See [`super::Syscalls::map`] for `place`.
    pub fn map(
        &self,
        offset: u64,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        // Accessing pages past the end of a file would kill the process.
        let rounded = pages(len)? as u64;
        if (self.len as u64).checked_sub(offset).is_none_or(|left| rounded > left) {
            return Err(Errno::EINVAL);
        }
        Mapping::of_file(self.file.as_fd(), offset, len, protection, place)
    }

    /// Maps its beginning at an address of the kernel's choice without offering it. `EINVAL` past its end.
    pub(super) fn map_alone(&self, len: usize) -> Result<Mapping, Errno> {
        if pages(len)? > self.len {
            return Err(Errno::EINVAL);
        }
        Mapping::of_source(Source::File(self.file.as_fd(), 0), len, Protection::ReadWrite, None)
    }

    /// Returns pages to the system; they then read as zero in every mapping.
    pub fn release(&self, offset: u64, len: u64) -> Result<(), Errno> {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        Ok(rustix::fs::fallocate(&self.file, flags, offset, len)?)
    }

    /// Bytes of host memory that it currently occupies.
    pub fn resident_bytes(&self) -> Result<u64, Errno> {
        // st_blocks counts units of 512 bytes whatever the block size (stat(2)).
        Ok(rustix::fs::fstat(&self.file)?.st_blocks as u64 * 512)
    }
}

#[cfg(test)]
mod tests;
