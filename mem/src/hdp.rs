//! The HDP flush: makes what the host stored in VRAM through the BAR visible to the GPU.
//!
//! The host data path (HDP) lies between the BAR and VRAM and may hold back the host's stores. A store to the flush
//! word of the driver's remap page (hardware reference §2.5, §6.4) empties it. That store is posted, like the
//! stores before it: it may still be in flight when the instruction retires. A read from the device pushes all
//! earlier posted stores ahead of it, so the flush has arrived once the read returns.
//!
//! Contract: [`flush`] returns when the stores before it and the flush have reached the device. It never reads the
//! flush word (docs/decisions, "The flush word is not read"). Cost: a store fence, a store and one read across PCIe;
//! no system call.

use crate::shared::{SharedView, fence_all, fence_stores};

/// Offset of the flush word in the remap page (`kfd_ioctl.h`, `KFD_MMIO_REMAP_HDP_MEM_FLUSH_CNTL`).
pub const FLUSH_OFFSET: usize = 0;
/// The value stored there; the kernel stores the same (amdgpu's `hdp_v7_0_flush_hdp`). ROCclr and rocSHMEM store 1;
/// any value flushes.
pub const FLUSH_VALUE: u32 = 0;

/// Device memory as the host reaches it across PCIe.
pub trait HostPath {
    /// Loads one dword.
    fn load_u32(&self, offset: usize) -> u32;

    /// Stores one dword.
    fn store_u32(&self, offset: usize, value: u32);

    /// Orders stores: those before it leave the processor before any store after it.
    fn fence_stores(&self);

    /// Orders stores against loads: stores before it leave the processor before any load after it.
    fn fence_all(&self);
}

impl HostPath for SharedView {
    #[inline(always)]
    fn load_u32(&self, offset: usize) -> u32 {
        SharedView::load_u32(self, offset)
    }

    #[inline(always)]
    fn store_u32(&self, offset: usize, value: u32) {
        SharedView::store_u32(self, offset, value);
    }

    #[inline(always)]
    fn fence_stores(&self) {
        fence_stores();
    }

    #[inline(always)]
    fn fence_all(&self) {
        fence_all();
    }
}

/// Flushes by the word in `remap`. `behind_bar` is any VRAM of the same device that is mapped through the BAR; its
/// first dword is read.
#[inline]
pub fn flush<R: HostPath, W: HostPath>(remap: &R, behind_bar: &W) {
    // Stores through the BAR leave the write-combining buffers before the flush does.
    behind_bar.fence_stores();
    remap.store_u32(FLUSH_OFFSET, FLUSH_VALUE);
    // The read does not overtake the store inside the processor.
    remap.fence_all();
    behind_bar.load_u32(0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::cell::RefCell;
    use std::collections::{BTreeMap, VecDeque};
    use std::rc::Rc;

    /// The path of a store from the processor to memory, at its slowest: nothing moves before it must.
    #[derive(Default)]
    struct Bridge {
        /// Write-combined stores in the processor, which any fence empties.
        combined: Vec<(usize, u32)>,
        /// A flush in the processor's store buffer. A full fence empties it, and a read of the same word waits for
        /// it.
        buffered: Option<Posted>,
        /// Stores that have left the processor, in order. A read by the processor waits until all of them have
        /// arrived.
        posted: VecDeque<Posted>,
        /// Stores through the BAR that the host data path holds.
        held: BTreeMap<usize, u32>,
        /// Memory as the GPU sees it.
        memory: BTreeMap<usize, u32>,
        /// Reads of the flush word, which cause harm on some boards (drm/amd issues 3908, 4119).
        flush_word_reads: u32,
    }

    enum Posted {
        Store(usize, u32),
        Flush,
    }

    impl Bridge {
        fn arrive(&mut self) {
            for posted in core::mem::take(&mut self.posted) {
                match posted {
                    Posted::Store(offset, value) => _ = self.held.insert(offset, value),
                    Posted::Flush => self.memory.append(&mut self.held),
                }
            }
        }

        fn leave_buffer(&mut self) {
            self.posted.extend(self.buffered.take());
        }

        fn fence(&mut self) {
            let combined = core::mem::take(&mut self.combined);
            self.posted.extend(combined.into_iter().map(|(offset, value)| Posted::Store(offset, value)));
        }
    }

    /// VRAM through the BAR.
    struct Bar(Rc<RefCell<Bridge>>);
    /// The remap page.
    struct Remap(Rc<RefCell<Bridge>>);

    impl HostPath for Bar {
        fn load_u32(&self, offset: usize) -> u32 {
            let mut bridge = self.0.borrow_mut();
            // A read does not pass posted writes, but it may pass stores still in the processor.
            bridge.arrive();
            let value = bridge.held.get(&offset).or(bridge.memory.get(&offset)).copied();
            value.unwrap_or(0)
        }
        fn store_u32(&self, offset: usize, value: u32) {
            self.0.borrow_mut().combined.push((offset, value));
        }
        fn fence_stores(&self) {
            self.0.borrow_mut().fence();
        }
        fn fence_all(&self) {
            let mut bridge = self.0.borrow_mut();
            bridge.leave_buffer();
            bridge.fence();
        }
    }

    impl HostPath for Remap {
        fn load_u32(&self, offset: usize) -> u32 {
            let mut bridge = self.0.borrow_mut();
            bridge.leave_buffer();
            bridge.arrive();
            bridge.flush_word_reads += u32::from(offset == FLUSH_OFFSET);
            u32::MAX
        }
        fn store_u32(&self, offset: usize, _: u32) {
            // Register stores are not combined: this store leaves before those still in the combining buffers.
            if offset == FLUSH_OFFSET {
                self.0.borrow_mut().buffered = Some(Posted::Flush);
            }
        }
        fn fence_stores(&self) {
            self.0.borrow_mut().fence();
        }
        fn fence_all(&self) {
            let mut bridge = self.0.borrow_mut();
            bridge.leave_buffer();
            bridge.fence();
        }
    }

    /// What the GPU sees of a store of 7 if a doorbell rings right after `flushing`, and the number of reads that
    /// may harm.
    fn seen_after(flushing: impl Fn(&Remap, &Bar)) -> (Option<u32>, u32) {
        let bridge = Rc::new(RefCell::new(Bridge::default()));
        let (remap, bar) = (Remap(bridge.clone()), Bar(bridge.clone()));
        bar.store_u32(64, 7);
        flushing(&remap, &bar);
        let bridge = bridge.borrow();
        (bridge.memory.get(&64).copied(), bridge.flush_word_reads)
    }

    #[test]
    fn what_was_stored_is_seen_and_the_flush_word_is_not_read() {
        assert_eq!(seen_after(flush), (Some(7), 0));
    }

    /// The effect of the traits' calls on the pages themselves.
    #[test]
    fn a_flush_stores_its_value_and_reads_vram() {
        let [remap, vram] = [SharedView::zeroed(8).expect("memory"), SharedView::zeroed(8).expect("memory")];
        remap.store_u32(FLUSH_OFFSET, u32::MAX);
        remap.store_u32(4, 5);
        vram.store_u32(0, 9);
        flush(&remap, &vram);
        assert_eq!([remap.load_u32(FLUSH_OFFSET), remap.load_u32(4)], [FLUSH_VALUE, 5]);
        assert_eq!(HostPath::load_u32(&vram, 0), 9);
    }

    #[test]
    fn each_step_is_needed() {
        let without_fence = |remap: &Remap, bar: &Bar| {
            remap.store_u32(FLUSH_OFFSET, FLUSH_VALUE);
            remap.fence_all();
            bar.load_u32(0);
        };
        assert_eq!(seen_after(without_fence).0, None, "a store stayed in the processor");
        let without_flush = |_: &Remap, bar: &Bar| {
            bar.fence_stores();
            bar.load_u32(0);
        };
        assert_eq!(seen_after(without_flush).0, None, "a store stayed in the host data path");
        let read_overtakes = |remap: &Remap, bar: &Bar| {
            bar.fence_stores();
            remap.store_u32(FLUSH_OFFSET, FLUSH_VALUE);
            bar.load_u32(0);
        };
        assert_eq!(seen_after(read_overtakes).0, None, "the flush was still in the processor");
        let without_read = |remap: &Remap, bar: &Bar| {
            bar.fence_stores();
            remap.store_u32(FLUSH_OFFSET, FLUSH_VALUE);
        };
        assert_eq!(seen_after(without_read).0, None, "the flush is on its way");
        let reading_the_word = |remap: &Remap, bar: &Bar| {
            without_read(remap, bar);
            remap.load_u32(FLUSH_OFFSET);
        };
        assert_eq!(seen_after(reading_the_word), (Some(7), 1), "seen, at the price of a read that may harm");
    }
}
