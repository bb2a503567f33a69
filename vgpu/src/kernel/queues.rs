//! Queues as the kernel sees them: the checks of CREATE and UPDATE, buffers held, doorbell slots.
//!
//! Contract: checks, order and errors of hardware reference §2.6 and §2.8, as far as the emulated kernel makes them
//! ([`KernelRelease`]). A created queue is handed to the command processor; from 6.12 on the objects that it refers
//! to stay mapped until it is destroyed.

use crate::command_processor::{CommandProcessor, HardwareQueue, Preemption, QueueDescription};
use crate::config::{KernelRelease, SaveAreaCheck};
use crate::kernel::board::{self, PAGE_BYTES};
use crate::kernel::objects::Objects;
use crate::kernel::requests::create_queue::TYPE_COMPUTE;
use std::collections::BTreeMap;
use std::sync::Arc;
use zrt_kmd::{Errno, Mapping, MemoryFile, Protection};

/// Highest user address + 1 on x86-64, as used by the kernel's `access_ok`.
const USER_SPACE_END: u64 = 0x7FFF_FFFF_F000;
/// Largest CU mask in bits that the kernel reads; the rest is ignored.
const CU_MASK_BITS_MAX: usize = 1024;
/// The first bit of each pair of compute units in a dword of a CU mask.
const FIRST_OF_PAIRS: u32 = 0x5555_5555;
/// Bits of the percentage; bits 15:8 name a target XCC, of which there is one.
const PERCENTAGE_BITS: u32 = 0xFF;
/// KFD_MAX_QUEUE_PRIORITY.
const PRIORITY_LAST: u32 = 15;
/// Ring pointers have this alignment.
const POINTER_BYTES: u64 = 8;

/// The parameters of CREATE_QUEUE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CreateRequest {
    pub ring_base: u64,
    pub ring_bytes: u32,
    pub write_pointer: u64,
    pub read_pointer: u64,
    pub queue_type: u32,
    pub percentage: u32,
    pub priority: u32,
    pub eop_address: u64,
    pub eop_bytes: u64,
    pub cwsr_address: u64,
    pub cwsr_bytes: u32,
    pub ctl_stack_bytes: u32,
}

/// The parameters of UPDATE_QUEUE.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UpdateRequest {
    pub queue_id: u32,
    pub ring_base: u64,
    pub ring_bytes: u32,
    pub percentage: u32,
    pub priority: u32,
}

/// The doorbell slice of the process and the slots in use.
#[derive(Debug)]
pub(crate) struct Doorbells {
    pub file: Arc<MemoryFile>,
    pub mapping: Arc<Mapping>,
    used: Vec<bool>,
}

/// One queue of the process.
#[derive(Debug)]
struct Queue {
    hardware: Arc<HardwareQueue>,
    slot: usize,
    /// Objects that it keeps mapped.
    objects: Vec<u32>,
    /// The ring's object among them.
    ring_object: Option<u32>,
}

/// All queues of the process.
#[derive(Debug)]
pub(crate) struct Queues {
    by_id: BTreeMap<u32, Queue>,
    kernel: KernelRelease,
    pub doorbells: Doorbells,
}

impl Doorbells {
    fn new() -> Result<Doorbells, Errno> {
        let len = board::DOORBELL_SLICE_BYTES as usize;
        let file = Arc::new(MemoryFile::new("zrt-vgpu-doorbells", len)?);
        let mapping = Arc::new(file.map(0, len, Protection::ReadWrite, None)?);
        let slots = board::DOORBELL_SLICE_BYTES / board::DOORBELL_BYTES;
        Ok(Doorbells { file, mapping, used: vec![false; slots as usize] })
    }

    fn take(&mut self) -> Result<usize, Errno> {
        let slot = self.used.iter().position(|used| !used).ok_or(Errno::ENOSPC)?;
        self.used[slot] = true;
        Ok(slot)
    }
}

impl CreateRequest {
    /// The checks before the device is looked up (hardware reference §2.6, first three rows).
    pub fn check(&self) -> Result<(), Errno> {
        check_scheduling(self.percentage, self.priority)?;
        check_accessible(self.ring_base, 8)?;
        check_ring_size(self.ring_bytes)?;
        check_accessible(self.read_pointer, 4)?;
        check_accessible(self.write_pointer, 4)?;
        for address in [self.eop_address, self.cwsr_address] {
            check_accessible(address, 4)?;
        }
        // SDMA and AQL queues exist on the board; this device has only the PM4 compute type.
        if self.queue_type == TYPE_COMPUTE { Ok(()) } else { Err(Errno::ENOTSUPP) }
    }
}

impl UpdateRequest {
    /// The checks before the queue is looked up.
    pub fn check(&self) -> Result<(), Errno> {
        check_scheduling(self.percentage, self.priority)?;
        check_accessible(self.ring_base, 8)?;
        check_ring_size(self.ring_bytes)
    }
}

fn check_scheduling(percentage: u32, priority: u32) -> Result<(), Errno> {
    if percentage & PERCENTAGE_BITS > 100 || priority > PRIORITY_LAST { Err(Errno::EINVAL) } else { Ok(()) }
}

fn check_accessible(address: u64, len: u64) -> Result<(), Errno> {
    match address.checked_add(len) {
        Some(end) if end <= USER_SPACE_END => Ok(()),
        _ => Err(Errno::EFAULT),
    }
}

fn check_ring_size(bytes: u32) -> Result<(), Errno> {
    if bytes == 0 || bytes.is_power_of_two() { Ok(()) } else { Err(Errno::EINVAL) }
}

/// The object mapped exactly at `address` with `len` bytes.
fn exact_object(objects: &Objects, address: u64, len: u64) -> Result<u32, Errno> {
    let page = address & !(PAGE_BYTES - 1);
    let index = objects.mapped_at(page).ok_or(Errno::EINVAL)?;
    match objects.get(index) {
        Some(object) if object.va == page && object.size == len => Ok(index),
        _ => Err(Errno::EINVAL),
    }
}

/// The object mapped at `address`, one page long: MES requires that for the write pointer in every release.
fn page_object(objects: &Objects, address: u64) -> Result<u32, Errno> {
    let index = objects.mapped_at(address).ok_or(Errno::EINVAL)?;
    match objects.get(index) {
        Some(object) if object.size == PAGE_BYTES => Ok(index),
        _ => Err(Errno::EINVAL),
    }
}

/// The ring's object: it starts at the ring and has exactly its size.
fn ring_object(objects: &Objects, base: u64, bytes: u32) -> Result<u32, Errno> {
    if base % PAGE_BYTES != 0 {
        return Err(Errno::EINVAL);
    }
    exact_object(objects, base, bytes as u64)
}

/// Objects that the kernel holds for the queue, with the ring's third, in the order of its checks; none before
/// 6.12.
fn acquire_buffers(
    objects: &Objects,
    request: &CreateRequest,
    kernel: KernelRelease,
) -> Result<Vec<u32>, Errno> {
    // The hardware has no bits for the low part of these addresses (hardware reference §6.4: any 8-byte aligned
    // location).
    if [request.write_pointer, request.read_pointer].iter().any(|va| va % POINTER_BYTES != 0) {
        return Err(Errno::EINVAL);
    }
    let write_pointer = page_object(objects, request.write_pointer)?;
    if !kernel.validates_queue_buffers() {
        return Ok(Vec::new());
    }
    let mut held = vec![
        write_pointer,
        exact_object(objects, request.read_pointer, PAGE_BYTES)?,
        ring_object(objects, request.ring_base, request.ring_bytes)?,
    ];
    if request.eop_address != 0 {
        if request.eop_bytes != board::EOP_BYTES {
            return Err(Errno::EINVAL);
        }
        held.push(exact_object(objects, request.eop_address, board::EOP_BYTES)?);
    }
    let is_refused = match kernel.save_area_check() {
        SaveAreaCheck::Unchecked => false,
        SaveAreaCheck::Exact => request.cwsr_bytes != board::CWSR_BYTES,
        SaveAreaCheck::AtLeast => request.cwsr_bytes < board::CWSR_BYTES,
    };
    if request.ctl_stack_bytes != board::CTL_STACK_BYTES || is_refused {
        return Err(Errno::EINVAL);
    }
    held.push(exact_object(objects, request.cwsr_address, board::cwsr_buffer_bytes(request.cwsr_bytes))?);
    Ok(held)
}

impl Queues {
    pub fn new(kernel: KernelRelease) -> Result<Queues, Errno> {
        Ok(Queues { by_id: BTreeMap::new(), kernel, doorbells: Doorbells::new()? })
    }

    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// One line per queue for the debug file.
    pub fn describe(&self) -> String {
        self.by_id
            .values()
            .map(|queue| format!("queue {} slot {}\n", queue.hardware.description().id, queue.slot))
            .collect()
    }

    /// Makes a queue after [`CreateRequest::check`]. Returns its id and its doorbell's byte offset in the slice.
    pub fn create(
        &mut self,
        objects: &mut Objects,
        processor: &CommandProcessor,
        request: &CreateRequest,
    ) -> Result<(u32, u64), Errno> {
        let held = acquire_buffers(objects, request, self.kernel)?;
        let ring_object = held.get(2).copied();
        if self.by_id.len() >= board::QUEUES_MAX {
            return Err(Errno::ENOSPC);
        }
        let id = (0..).find(|id| !self.by_id.contains_key(id)).ok_or(Errno::ENOSPC)?;
        let slot = self.doorbells.take()?;
        let hardware = Arc::new(HardwareQueue::new(
            QueueDescription {
                id,
                write_pointer_va: request.write_pointer,
                read_pointer_va: request.read_pointer,
                has_eop: request.eop_address != 0,
                doorbell_at: slot * board::DOORBELL_BYTES as usize,
                doorbells: self.doorbells.mapping.clone(),
            },
            request.ring_base,
            request.ring_bytes,
            request.percentage & PERCENTAGE_BITS != 0,
        ));
        for index in &held {
            objects.add_queue_user(*index, 1);
        }
        processor.add_queue(hardware.clone());
        self.by_id.insert(id, Queue { hardware, slot, objects: held, ring_object });
        Ok((id, slot as u64 * board::DOORBELL_BYTES))
    }

    /// Changes ring, percentage or priority after [`UpdateRequest::check`].
    pub fn update(&mut self, objects: &mut Objects, request: &UpdateRequest) -> Result<(), Errno> {
        let queue = self.by_id.get_mut(&request.queue_id).ok_or(Errno::EFAULT)?;
        if request.ring_base != 0
            && request.ring_bytes != 0
            && let Some(old) = queue.ring_object
        {
            // CREATE refuses the same with EINVAL (`pqm_update_queue_properties`).
            let ring = ring_object(objects, request.ring_base, request.ring_bytes);
            let ring = ring.map_err(|_| Errno::EFAULT)?;
            if ring != old {
                objects.add_queue_user(ring, 1);
                objects.add_queue_user(old, -1);
                for held in queue.objects.iter_mut().filter(|held| **held == old) {
                    *held = ring;
                }
                queue.ring_object = Some(ring);
            }
        }
        queue.hardware.update(
            request.ring_base,
            request.ring_bytes,
            request.percentage & PERCENTAGE_BITS != 0,
        );
        Ok(())
    }

    /// Applies a CU mask: read, checked, and without further effect on this device.
    pub fn check_cu_mask(&self, queue_id: u32, mask: &[u32]) -> Result<(), Errno> {
        if !self.by_id.contains_key(&queue_id) {
            return Err(Errno::EFAULT);
        }
        // On gfx10 and later compute units come in pairs (WGP), and a mask may not split a pair (hardware reference
        // §2.8).
        let splits = |word: &u32| (word ^ word >> 1) & FIRST_OF_PAIRS != 0;
        if mask.iter().take(CU_MASK_BITS_MAX / u32::BITS as usize).any(splits) {
            Err(Errno::EINVAL)
        } else {
            Ok(())
        }
    }

    /// Removes a queue. It is gone whatever the result: an error means that it did not drain.
    pub fn destroy(
        &mut self,
        objects: &mut Objects,
        processor: &CommandProcessor,
        queue_id: u32,
    ) -> Result<Preemption, Errno> {
        let queue = self.by_id.remove(&queue_id).ok_or(Errno::EINVAL)?;
        let preemption = processor.remove_queue(&queue.hardware);
        self.doorbells.used[queue.slot] = false;
        for index in queue.objects {
            objects.add_queue_user(index, -1);
        }
        Ok(preemption)
    }

    /// Removes every queue.
    pub fn release_all(&mut self, objects: &mut Objects, processor: &CommandProcessor) {
        let ids: Vec<u32> = self.by_id.keys().copied().collect();
        for id in ids {
            // The id was just listed, so only draining can fail, and the process is ending.
            let _ = self.destroy(objects, processor, id);
        }
    }
}
