//! Buffer objects: allocation, GPU mapping, CPU mapping.
//!
//! Contract: the checks, their order and their errors are those of hardware reference §2.8. Memory is a sparse file
//! of this process: untouched pages cost nothing. VRAM is not zeroed ([`super::fill`]). Nothing here is called on
//! the path of a token.

use crate::command_processor::injection::Injector;
use crate::config::{Config, KernelRelease};
use crate::kernel::board::{self, PAGE_BYTES, page_align};
use crate::kernel::fill;
use crate::kernel::requests::alloc;
use crate::kernel::sizes::MemorySizes;
use crate::kernel::user_memory::UserMemory;
use crate::memory::{AddressSpace, Backing, Fill, MemoryType, Rights};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use zrt_kmd::syscalls::{LendError, Loan};
use zrt_kmd::{Errno, Mapping, MemoryFile, Protection, Reservation};
use zrt_mem::{ByteLen, GpuVa};

/// First mmap offset that the render node hands out, and the distance between objects. Any page-aligned numbers
/// work; the gap makes wrong offsets invalid.
const MMAP_OFFSET_FIRST: u64 = 1 << 32;
/// Most buffer objects of a process (the kernel's limit is its memory).
pub(crate) const OBJECTS_MAX: usize = 1 << 16;

/// The kind of memory of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Domain {
    Vram,
    Gtt,
    /// Pages of the process: see [`UserMemory`].
    User,
    Doorbell,
    MmioRemap,
}

/// The parameters of ALLOC_MEMORY_OF_GPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocRequest {
    pub va: u64,
    pub size: u64,
    pub flags: u32,
    /// Address of the pages of a USERPTR object.
    pub user_address: u64,
}

/// Why an object cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AllocError {
    /// The kernel refuses it with this error.
    Refused(Errno),
    /// The kernel would accept this memory of the process, but this device cannot.
    NotLent(LendError),
}

/// The rules that depend on the board and the kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryRules {
    pub sizes: MemorySizes,
    /// The initial contents of VRAM.
    pub vram_fill: u32,
    /// Allocation flags, each of which makes memory uncached.
    uncached_vram_flags: u32,
    uncached_system_flags: u32,
}

/// Bytes in use, shared with the files that report them.
#[derive(Debug, Default)]
pub(crate) struct Usage {
    vram: AtomicU64,
    /// The same with each object rounded up to [`board::AVAILABILITY_BYTES`].
    vram_aligned: AtomicU64,
    gtt: AtomicU64,
    /// The client's CPU mappings of any of our memory.
    client_mappings: Arc<AtomicUsize>,
}

/// One buffer object.
#[derive(Debug)]
pub(crate) struct MemoryObject {
    pub va: u64,
    /// Length in whole pages.
    pub size: u64,
    pub flags: u32,
    pub domain: Domain,
    pub mmap_offset: u64,
    /// Number of queues that refer to it; it cannot be unmapped while there are any.
    pub queue_users: u32,
    pub is_mapped: bool,
    store: Store,
}

/// The location of an object's bytes.
#[derive(Debug)]
enum Store {
    /// A file of the device, with its own view of it and, for VRAM, its initial contents.
    File { file: Arc<MemoryFile>, mapping: Arc<Mapping>, fill: Option<Arc<Fill>> },
    /// Memory lent by the process.
    Process { loan: Arc<Loan> },
}

/// All buffer objects of the process.
#[derive(Debug)]
pub(crate) struct Objects {
    by_index: BTreeMap<u32, MemoryObject>,
    next_mmap_offset: u64,
    usage: Arc<Usage>,
    rules: MemoryRules,
}

/// Counts one CPU mapping for as long as it lives.
struct ClientMapping(Arc<AtomicUsize>);

impl ClientMapping {
    fn new(count: &Arc<AtomicUsize>) -> ClientMapping {
        count.fetch_add(1, Ordering::Relaxed);
        ClientMapping(count.clone())
    }
}

impl Drop for ClientMapping {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl From<Errno> for AllocError {
    fn from(errno: Errno) -> AllocError {
        AllocError::Refused(errno)
    }
}

impl From<LendError> for AllocError {
    fn from(error: LendError) -> AllocError {
        match error {
            LendError::Refused(errno) => AllocError::Refused(errno),
            error => AllocError::NotLent(error),
        }
    }
}

impl MemoryRules {
    /// The rules of a configuration. `EINVAL` if the environment names an unknown fill or kernel.
    pub fn new(config: &Config, kernel: KernelRelease) -> Result<MemoryRules, Errno> {
        Ok(MemoryRules {
            sizes: MemorySizes::new(config),
            vram_fill: fill::pattern(config.vram_fill, kernel)?,
            uncached_vram_flags: kernel.uncached_vram_flags(),
            uncached_system_flags: config.uncached_system_flags().map_err(|_| Errno::EINVAL)?,
        })
    }
}

impl Usage {
    /// VRAM and GTT bytes in use.
    pub fn bytes(&self) -> (u64, u64) {
        (self.vram.load(Ordering::Relaxed), self.gtt.load(Ordering::Relaxed))
    }

    /// CPU mappings that the client holds.
    pub fn client_mappings(&self) -> usize {
        self.client_mappings.load(Ordering::Relaxed)
    }

    /// Maps a file of the device for the client, counted.
    pub fn map_for_client(
        &self,
        file: &MemoryFile,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        let mapping = file.map(0, len, protection, place)?;
        Ok(mapping.with_guard(Box::new(ClientMapping::new(&self.client_mappings))))
    }

    /// Bytes in use of a domain that has a limit, and the limit.
    fn of(&self, domain: Domain, sizes: MemorySizes) -> Option<(&AtomicU64, u64)> {
        match domain {
            Domain::Vram => Some((&self.vram, sizes.objects_bytes())),
            Domain::Gtt => Some((&self.gtt, sizes.gtt_bytes)),
            Domain::User | Domain::Doorbell | Domain::MmioRemap => None,
        }
    }
}

impl MemoryObject {
    /// The device's own lasting mapping; memory of the process has none.
    pub fn mapping(&self) -> Option<&Arc<Mapping>> {
        match &self.store {
            Store::File { mapping, .. } => Some(mapping),
            Store::Process { .. } => None,
        }
    }

    fn rights(&self) -> Rights {
        let mut rights = Rights::READ;
        if self.flags & alloc::FLAG_WRITABLE != 0 {
            rights |= Rights::WRITE;
        }
        if self.flags & alloc::FLAG_EXECUTABLE != 0 {
            rights |= Rights::EXECUTE;
        }
        rights
    }

    /// The memory type for GL2 (hardware reference §6.3): UC if the emulated kernel maps it so.
    fn memory_type(&self, rules: MemoryRules) -> MemoryType {
        let is_local = self.domain == Domain::Vram;
        let uncached = if is_local { rules.uncached_vram_flags } else { rules.uncached_system_flags };
        MemoryType { is_local, is_uncached: self.flags & uncached != 0 }
    }

    /// VRAM can be mapped with and without PUBLIC, since "drm/amdkfd: Allow CPU access for all VRAM BOs" (July
    /// 2021). On a small BAR too: pages outside the window are moved into it at the first access
    /// (`amdgpu_bo_fault_reserve_notify`). The move is not modelled, nor the SIGBUS if it fails. Doorbells and MMIO
    /// are mapped through `/dev/kfd`.
    fn is_cpu_visible(&self) -> bool {
        match self.domain {
            Domain::Vram | Domain::Gtt => true,
            Domain::User | Domain::Doorbell | Domain::MmioRemap => false,
        }
    }
}

impl Objects {
    pub fn new(usage: Arc<Usage>, rules: MemoryRules) -> Objects {
        Objects { by_index: BTreeMap::new(), next_mmap_offset: MMAP_OFFSET_FIRST, usage, rules }
    }

    /// VRAM that could still be allocated, as `amdgpu_amdkfd_get_available_memory` counts it: every object may need
    /// its last piece for itself.
    pub fn available_vram_bytes(&self) -> u64 {
        let used = self.usage.vram_aligned.load(Ordering::Relaxed) + board::PAGE_TABLE_RESERVE_BYTES;
        self.rules.sizes.vram_bytes.saturating_sub(used) & !(board::AVAILABILITY_BYTES - 1)
    }

    /// Every object with its index.
    pub fn iter(&self) -> impl Iterator<Item = (u32, &MemoryObject)> {
        self.by_index.iter().map(|(index, object)| (*index, object))
    }

    /// The object with an index.
    pub fn get(&self, index: u32) -> Option<&MemoryObject> {
        self.by_index.get(&index)
    }

    /// The checks that need no VM (hardware reference §2.8): zero size, VRAM visible on a small BAR.
    pub fn check_alloc(&self, request: &AllocRequest) -> Result<(), Errno> {
        let public_vram = alloc::FLAG_VRAM | alloc::FLAG_PUBLIC;
        if request.size == 0 || request.flags & public_vram == public_vram && !self.rules.sizes.large_bar {
            return Err(Errno::EINVAL);
        }
        Ok(())
    }

    /// Makes an object. Returns its index. `files` are the doorbell slice and the MMIO page.
    pub fn alloc(&mut self, request: &AllocRequest, files: [&Arc<MemoryFile>; 2]) -> Result<u32, AllocError> {
        let domain = domain_of(request)?;
        if request.size > self.rules.sizes.vram_bytes.max(self.rules.sizes.gtt_bytes) {
            return Err(Errno::ENOMEM.into());
        }
        let size = page_align(request.size);
        let index =
            (0..OBJECTS_MAX as u32).find(|index| !self.by_index.contains_key(index)).ok_or(Errno::ENOMEM)?;
        let file = match domain {
            Domain::User => None,
            Domain::Doorbell => Some(files[0].clone()),
            Domain::MmioRemap => Some(files[1].clone()),
            Domain::Vram | Domain::Gtt => {
                // The host has no descriptor or memory for it, which the kernel would report as out of memory.
                let file = MemoryFile::new("zrt-vgpu-object", size as usize).map_err(|_| Errno::ENOMEM)?;
                Some(Arc::new(file))
            }
        };
        let store = match file {
            Some(file) => {
                let mapping = file.map(0, size as usize, Protection::ReadWrite, None);
                let mapping = Arc::new(mapping.map_err(|_| Errno::ENOMEM)?);
                // The file holds zeros already.
                let is_filled = domain == Domain::Vram && self.rules.vram_fill != 0;
                let fill = is_filled.then(|| Arc::new(Fill::new(self.rules.vram_fill, mapping.clone())));
                Store::File { file, mapping, fill }
            }
            None => {
                let len = usize::try_from(size).map_err(|_| Errno::EINVAL)?;
                Store::Process { loan: Arc::new(Loan::new(request.user_address, len)?) }
            }
        };
        if let Some((used, limit)) = self.usage.of(domain, self.rules.sizes) {
            // The process lock is held, so nobody else adds concurrently.
            if used.load(Ordering::Relaxed) + size > limit {
                return Err(Errno::ENOMEM.into());
            }
            used.fetch_add(size, Ordering::Relaxed);
        }
        if domain == Domain::Vram {
            let pieces = size.next_multiple_of(board::AVAILABILITY_BYTES);
            self.usage.vram_aligned.fetch_add(pieces, Ordering::Relaxed);
        }
        let mmap_offset = self.next_mmap_offset;
        self.next_mmap_offset += size + PAGE_BYTES;
        let object = MemoryObject {
            va: request.va,
            size,
            flags: request.flags,
            domain,
            mmap_offset,
            queue_users: 0,
            is_mapped: false,
            store,
        };
        self.by_index.insert(index, object);
        Ok(index)
    }

    /// Frees an object that is not mapped.
    pub fn free(&mut self, index: u32) -> Result<(), Errno> {
        let object = self.by_index.get(&index).ok_or(Errno::EINVAL)?;
        if object.is_mapped {
            return Err(Errno::EBUSY);
        }
        self.remove(index);
        Ok(())
    }

    fn remove(&mut self, index: u32) {
        if let Some(object) = self.by_index.remove(&index)
            && let Some((used, _)) = self.usage.of(object.domain, self.rules.sizes)
        {
            used.fetch_sub(object.size, Ordering::Relaxed);
            if object.domain == Domain::Vram {
                let pieces = object.size.next_multiple_of(board::AVAILABILITY_BYTES);
                self.usage.vram_aligned.fetch_sub(pieces, Ordering::Relaxed);
            }
        }
    }

    /// Maps an object at its address into the GPU's address space.
    pub fn map(
        &mut self,
        index: u32,
        space: &AddressSpace,
        user: &UserMemory,
        injector: &Injector,
    ) -> Result<(), Errno> {
        let object = self.by_index.get_mut(&index).ok_or(Errno::ENOMEM)?;
        let last = object.va.checked_add(object.size - 1).ok_or(Errno::EINVAL)?;
        if object.is_mapped
            || object.va % PAGE_BYTES != 0
            || object.va < board::GPUVM_BASE
            || last > board::GPUVM_LIMIT
        {
            return Err(Errno::EINVAL);
        }
        let (va, len, rights) = (GpuVa(object.va), ByteLen(object.size), object.rights());
        // Overlap with another object's mapping is refused by the page table.
        let memory_type = object.memory_type(self.rules);
        match &object.store {
            Store::File { mapping, fill, .. } => {
                let defects = injector.defects(object.domain == Domain::Vram);
                let (mapping, fill) = (mapping.clone(), fill.clone());
                let backing = Backing { rights, memory_type, mapping, fill, defects };
                space.map_backing(va, len, backing).map_err(|_| Errno::EINVAL)?;
            }
            Store::Process { loan } => user.map(space, va, rights, memory_type, loan)?,
        }
        object.is_mapped = true;
        Ok(())
    }

    /// Address and length of an object that is mapped on the GPU.
    pub fn mapped_range(&self, index: u32) -> Option<(u64, u64)> {
        let object = self.by_index.get(&index).filter(|object| object.is_mapped)?;
        Some((object.va, object.size))
    }

    /// Removes an object from the GPU's address space.
    pub fn unmap(&mut self, index: u32, space: &AddressSpace, user: &UserMemory) -> Result<(), Errno> {
        let object = self.by_index.get_mut(&index).ok_or(Errno::ENOMEM)?;
        if !object.is_mapped {
            return Err(Errno::EINVAL);
        }
        if object.queue_users > 0 {
            return Err(Errno::EBUSY);
        }
        match &object.store {
            Store::File { .. } => {
                space.unmap(GpuVa(object.va), ByteLen(object.size)).map_err(|_| Errno::EINVAL)?;
            }
            Store::Process { .. } => user.unmap(space, GpuVa(object.va)),
        }
        object.is_mapped = false;
        Ok(())
    }

    /// The mapped object that contains address `va`.
    pub fn mapped_at(&self, va: u64) -> Option<u32> {
        let holds =
            |object: &MemoryObject| object.is_mapped && va >= object.va && va - object.va < object.size;
        self.by_index.iter().find(|(_, object)| holds(object)).map(|(index, _)| *index)
    }

    /// Adds `change` to the number of queues that use an object.
    pub fn add_queue_user(&mut self, index: u32, change: i32) {
        if let Some(object) = self.by_index.get_mut(&index) {
            object.queue_users = object.queue_users.saturating_add_signed(change);
        }
    }

    /// The CPU mapping of an object by its mmap offset.
    pub fn map_for_client(
        &self,
        offset: u64,
        len: usize,
        protection: Protection,
        place: Option<(&Reservation, usize)>,
    ) -> Result<Mapping, Errno> {
        let object =
            self.by_index.values().find(|object| object.mmap_offset == offset).ok_or(Errno::EINVAL)?;
        let Store::File { file, fill, .. } = &object.store else { return Err(Errno::EPERM) };
        if !object.is_cpu_visible() {
            return Err(Errno::EPERM);
        }
        let mapping = self.usage.map_for_client(file, len, protection, place)?;
        if let Some(fill) = fill {
            fill.ensure();
        }
        Ok(mapping)
    }

    /// Unmaps and frees everything, as the end of the process does.
    pub fn release_all(&mut self, space: &AddressSpace, user: &UserMemory) {
        let indices: Vec<u32> = self.by_index.keys().copied().collect();
        for index in indices {
            self.add_queue_user(index, i32::MIN);
            // "Not mapped" is the only possible failure, and then there is nothing to undo.
            let _ = self.unmap(index, space, user);
            self.remove(index);
        }
    }
}

/// The kernel checks the domain flags in this order.
fn domain_of(request: &AllocRequest) -> Result<Domain, Errno> {
    let flags = request.flags;
    // AQL rings map their bytes twice; no queue type of this device needs that.
    if flags & alloc::FLAG_AQL_QUEUE_MEM != 0 {
        return Err(Errno::EINVAL);
    }
    if flags & alloc::FLAG_VRAM != 0 {
        return Ok(Domain::Vram);
    }
    if flags & alloc::FLAG_GTT != 0 {
        return Ok(Domain::Gtt);
    }
    if flags & alloc::FLAG_USERPTR != 0 {
        return if request.user_address == 0 || request.user_address % PAGE_BYTES != 0 {
            Err(Errno::EINVAL)
        } else {
            Ok(Domain::User)
        };
    }
    if flags & alloc::FLAG_DOORBELL != 0 {
        return if request.size == board::DOORBELL_SLICE_BYTES {
            Ok(Domain::Doorbell)
        } else {
            Err(Errno::EINVAL)
        };
    }
    if flags & alloc::FLAG_MMIO_REMAP != 0 {
        return if request.size == PAGE_BYTES { Ok(Domain::MmioRemap) } else { Err(Errno::EINVAL) };
    }
    Err(Errno::EINVAL)
}
