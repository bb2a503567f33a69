//! A compute queue of raw PM4 on KFD.
//!
//! Contract: hardware reference §0 facts 1 to 5, §2.6. The ring's mapping is exactly the ring; both pointers are in
//! one mapping of exactly one page; EOP buffer and context save area have exactly the driver's lengths. The queue
//! is destroyed before anything that it refers to is freed. After creation the ring, the pointers and the doorbell
//! are memory: submitting makes no call here.

use crate::errno::Errno;
use crate::error::KmdError;
use crate::ioctl::{CreateQueue, DestroyQueue};
use crate::memory::{AllocationRequest, Buffer, MemoryKind};
use crate::queue_refusal::QueueRefusal;
use crate::queue_size::{EOP_BYTES, QueueBufferSizes};
use crate::topology::TopologyError;
use crate::vm::Vm;
use std::sync::Arc;
use zrt_mem::{ByteLen, GpuVa, SharedView};

/// Smallest ring (hardware reference §2.6).
pub const RING_BYTES_MIN: u64 = 4096;
/// Largest ring: the length is a power of two in 32 bits.
pub const RING_BYTES_MAX: u64 = 1 << 31;
/// Offset of the read pointer in the pointer page. The two pointers are on different GL2 lines (256 bytes, hardware
/// reference §1.4).
const READ_POINTER_OFFSET: usize = 0;
/// Offset of the write pointer in the pointer page.
const WRITE_POINTER_OFFSET: usize = 256;
/// The pointer page.
const POINTER_PAGE_BYTES: u64 = 4096;

/// A queue that the hardware scheduler knows.
pub struct Queue {
    vm: Arc<Vm>,
    id: u32,
    // Views are dropped before the buffers they refer to.
    ring_view: SharedView,
    pointers_view: SharedView,
    doorbell: SharedView,
    ring: Buffer,
    pointers: Buffer,
    _eop: Buffer,
    _save_area: Buffer,
}

impl Queue {
    /// Creates a queue with a ring of `ring_len` bytes, a power of two of at least [`RING_BYTES_MIN`].
    pub fn create(vm: &Arc<Vm>, ring_len: ByteLen) -> Result<Queue, KmdError> {
        if !ring_len.0.is_power_of_two() || ring_len.0 < RING_BYTES_MIN || ring_len.0 > RING_BYTES_MAX {
            return Err(KmdError::RingLength { len: ring_len });
        }
        let sizes = QueueBufferSizes::of(vm.node()).ok_or_else(|| TopologyError::Impossible {
            path: format!("node {}", vm.node().node),
            name: "simd_count",
            value: u64::from(vm.node().properties.simd_count),
        })?;
        let allocate = |kind, len| Buffer::allocate(vm, AllocationRequest { kind, len, executable: true });
        let ring = allocate(MemoryKind::Gtt, ring_len)?;
        let pointers = allocate(MemoryKind::Gtt, ByteLen(POINTER_PAGE_BYTES))?;
        let eop = allocate(MemoryKind::Vram, ByteLen(u64::from(EOP_BYTES)))?;
        let save_area = allocate(MemoryKind::Vram, sizes.save_area_total)?;
        // GTT is always mapped on the CPU; a failed mapping would have been reported above.
        let (Some(ring_view), Some(pointers_view)) = (ring.view().cloned(), pointers.view().cloned()) else {
            return Err(KmdError::SmallBar);
        };
        pointers_view.store_u64(READ_POINTER_OFFSET, 0);
        pointers_view.store_u64_release(WRITE_POINTER_OFFSET, 0);
        let request = CreateQueue {
            gpu_id: vm.node().gpu_id,
            ring_va: ring.va(),
            ring_bytes: ring_len.0 as u32,
            write_pointer_va: GpuVa(pointers.va().0 + WRITE_POINTER_OFFSET as u64),
            read_pointer_va: GpuVa(pointers.va().0 + READ_POINTER_OFFSET as u64),
            eop_va: eop.va(),
            eop_bytes: u64::from(EOP_BYTES),
            save_area_va: save_area.va(),
            save_area_bytes: sizes.save_area_bytes,
            control_stack_bytes: sizes.control_stack_bytes,
        };
        let created = vm.process().call(&request).map_err(|error| match error.errno {
            // The errno does not say which buffer it was.
            Errno::EINVAL => {
                let refusal = QueueRefusal::of(&request, sizes, ByteLen(POINTER_PAGE_BYTES), vm.node());
                KmdError::QueueRefused(Box::new(refusal))
            }
            _ => error.into(),
        })?;
        let id = created.queue_id;
        let doorbell = vm
            .doorbell(created.doorbell_offset)
            .inspect_err(|_| vm.process().tear_down(&DestroyQueue { queue_id: id }))?;
        Ok(Queue {
            vm: vm.clone(),
            id,
            ring_view,
            pointers_view,
            doorbell,
            ring,
            pointers,
            _eop: eop,
            _save_area: save_area,
        })
    }

    /// The driver's id of the queue.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Start of the ring on the GPU.
    pub fn ring_va(&self) -> GpuVa {
        self.ring.va()
    }

    /// Length of the ring.
    pub fn ring_len(&self) -> ByteLen {
        self.ring.len()
    }

    /// The ring. Its views may outlive the queue; nobody reads what is stored there after that.
    pub fn ring(&self) -> SharedView {
        self.ring_view.clone()
    }

    /// 8 bytes: dwords that the command processor has consumed. Advances lazily (hardware reference §6.4).
    pub fn read_pointer(&self) -> SharedView {
        self.pointers_view.slice(READ_POINTER_OFFSET, 8)
    }

    /// 8 bytes: dwords that we have published. Never wraps (hardware reference §0 fact 2).
    pub fn write_pointer(&self) -> SharedView {
        self.pointers_view.slice(WRITE_POINTER_OFFSET, 8)
    }

    /// 8 bytes: one aligned 64-bit store of the write pointer's value starts the command processor.
    pub fn doorbell(&self) -> SharedView {
        self.doorbell.clone()
    }

    /// The page with both pointers, on the GPU; for reports.
    pub fn pointers_va(&self) -> GpuVa {
        self.pointers.va()
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Destroyed before the fields: the driver refuses to unmap what a live queue uses.
        self.vm.process().tear_down(&DestroyQueue { queue_id: self.id });
    }
}
