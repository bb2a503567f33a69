//! What the host says to a slot while its request runs: one line a slot, written by the host, read by the
//! device.
//!
//! Dwords: 0 request to cancel, 1 request to preempt, 2 request that is held back because its client does not
//! read, 3 pages granted, 4 the request that they are granted to; the rest is zero. A request is named by its
//! serial number, so a word that comes late, when another request has the slot, means nothing to it. 0 names
//! none.
//!
//! Contract: words of one line are in no order but this: pages are stored before the serial that makes them
//! count, and never shrink for one serial. So a device loads the serial, waits for it, then loads the pages,
//! and takes them only where the serial is its own. Pages of a new request may be granted only when the
//! request before it has ended.
//!
//! Cost: one or two stores, a store fence after each, one flush store where there is one.

use super::entry::{ENTRY_DWORDS, RING_SLOTS_MAX};
use super::error::ControlError;
use super::memory::RingMemory;
use super::{Flush, line};
use core::num::NonZeroU32;
use zrt_mem::SharedView;

/// Dwords of a control line by field.
pub mod control_dword {
    /// Serial of the request to cancel.
    pub const CANCEL_SERIAL: usize = 0;
    /// Serial of the request to preempt.
    pub const PREEMPT_SERIAL: usize = 1;
    /// Serial of the request that is held back.
    pub const HOLD_SERIAL: usize = 2;
    /// Pages granted.
    pub const GRANTED_PAGES: usize = 3;
    /// Serial of the request that they are granted to.
    pub const GRANTED_SERIAL: usize = 4;
}

use control_dword as at;

/// The control lines of all slots, as the host writes them.
#[derive(Debug)]
pub struct ControlLines<M = SharedView> {
    lines: M,
    flush: Flush<M>,
    /// Serial and pages of the last grant, by slot. Kept here: reading back through the BAR costs a round
    /// trip.
    granted: [(u32, u32); RING_SLOTS_MAX as usize],
}

/// The control line of one slot.
#[derive(Debug)]
pub struct ControlLine<'lines, M = SharedView> {
    lines: &'lines mut ControlLines<M>,
    slot: u32,
}

impl<M: RingMemory> ControlLines<M> {
    /// The lines in `lines`, one of 64 bytes for each of [`RING_SLOTS_MAX`] slots. Clears them, so they must
    /// be made before the device looks at them.
    pub fn new(lines: M, flush: Option<M>) -> Result<ControlLines<M>, ControlError> {
        if lines.dwords() < RING_SLOTS_MAX as usize * ENTRY_DWORDS {
            return Err(ControlError::Length { dwords: lines.dwords() });
        }
        let flush = Flush::new(flush).map_err(|_| ControlError::NoWord { name: super::FLUSH_NAME })?;
        line::clear(&lines);
        flush.flush();
        Ok(ControlLines { lines, flush, granted: [(0, 0); RING_SLOTS_MAX as usize] })
    }

    /// The line of a slot.
    pub fn slot(&mut self, slot: u32) -> Result<ControlLine<'_, M>, ControlError> {
        if slot >= RING_SLOTS_MAX {
            return Err(ControlError::Slot { slot });
        }
        Ok(ControlLine { lines: self, slot })
    }
}

impl<M: RingMemory> ControlLine<'_, M> {
    /// Forgets what was said to the request before, so that a serial number that comes round again finds nothing. Before
    /// anything is said to the next one.
    pub fn renew(&mut self) {
        for dword in [at::CANCEL_SERIAL, at::PREEMPT_SERIAL, at::HOLD_SERIAL] {
            self.store(dword, 0);
        }
        self.lines.flush.flush();
    }

    /// Ends the request within a layer.
    pub fn cancel(&mut self, serial: NonZeroU32) {
        self.store(at::CANCEL_SERIAL, serial.get());
        self.lines.flush.flush();
    }

    /// Takes the request out of the steps within a layer.
    pub fn preempt(&mut self, serial: NonZeroU32) {
        self.store(at::PREEMPT_SERIAL, serial.get());
        self.lines.flush.flush();
    }

    /// Takes back what [`preempt`](ControlLine::preempt) said, so that the request can be resumed.
    pub fn run(&mut self) {
        self.store(at::PREEMPT_SERIAL, 0);
        self.lines.flush.flush();
    }

    /// Has the request make no further token until it is released.
    pub fn hold(&mut self, serial: NonZeroU32) {
        self.store(at::HOLD_SERIAL, serial.get());
        self.lines.flush.flush();
    }

    /// Lets whatever was held go on.
    pub fn release(&mut self) {
        self.store(at::HOLD_SERIAL, 0);
        self.lines.flush.flush();
    }

    /// Says how many pages of the slot's page table the request may use.
    pub fn grant(&mut self, serial: NonZeroU32, pages: u32) -> Result<(), ControlError> {
        let last = &mut self.lines.granted[self.slot as usize];
        let (last_serial, granted) = *last;
        if last_serial == serial.get() && pages < granted {
            return Err(ControlError::PagesShrink { slot: self.slot, serial: last_serial, granted, pages });
        }
        *last = (serial.get(), pages);
        self.store(at::GRANTED_PAGES, pages);
        if last_serial != serial.get() {
            self.store(at::GRANTED_SERIAL, serial.get());
        }
        self.lines.flush.flush();
        Ok(())
    }

    fn store(&self, dword: usize, value: u32) {
        // The page table and the tokens that a word speaks of were stored before it.
        self.lines.lines.fence_stores();
        self.lines.lines.store(self.slot as usize * ENTRY_DWORDS + dword, value);
        self.lines.lines.fence_stores();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn serial(serial: u32) -> NonZeroU32 {
        NonZeroU32::new(serial).expect("not zero")
    }

    #[test]
    fn each_word_goes_where_the_device_looks() {
        let (memory, flush) = (SharedView::zeroed(64 * 64 + 64), SharedView::zeroed(4096));
        memory.fill(0, memory.len(), 0xee);
        flush.store_u32(0, 0xffff_ffff);
        let mut lines = ControlLines::new(memory.clone(), Some(flush.clone())).unwrap();
        let mut expected = [0u32; 17 * 64];
        let words = || -> Vec<u32> { (0..65 * 16).map(|dword| memory.load_u32(dword * 4)).collect() };
        assert_eq!(words(), expected[..65 * 16]);
        for slot in [0, 7, 63] {
            let mut line = lines.slot(slot).unwrap();
            line.cancel(serial(10 + slot));
            line.preempt(serial(20 + slot));
            line.hold(serial(30 + slot));
            flush.store_u32(0, 0xffff_ffff);
            line.grant(serial(40 + slot), 50 + slot).unwrap();
            assert_eq!(flush.load_u32(0), 0, "what was said is flushed");
            let dwords = [10, 20, 30, 50, 40].map(|value| value + slot);
            expected[slot as usize * 16..][..5].copy_from_slice(&dwords);
        }
        assert_eq!(words(), expected[..65 * 16]);
        lines.slot(7).unwrap().release();
        expected[7 * 16 + 2] = 0;
        assert_eq!(words(), expected[..65 * 16]);
        flush.store_u32(0, 0xffff_ffff);
        lines.slot(63).unwrap().renew();
        assert_eq!(flush.load_u32(0), 0, "what was said is flushed");
        expected[63 * 16..][..3].fill(0);
        assert_eq!(words(), expected[..65 * 16]);
    }

    #[test]
    fn pages_only_grow_while_a_request_runs() {
        let memory = SharedView::zeroed(64 * 64);
        let mut lines = ControlLines::new(memory.clone(), None).unwrap();
        let mut line = lines.slot(1).unwrap();
        line.grant(serial(5), 3).unwrap();
        line.grant(serial(5), 3).unwrap();
        line.grant(serial(5), 8).unwrap();
        let shrinks = ControlError::PagesShrink { slot: 1, serial: 5, granted: 8, pages: 7 };
        assert_eq!(line.grant(serial(5), 7), Err(shrinks));
        assert_eq!([memory.load_u32(64 + 12), memory.load_u32(64 + 16)], [8, 5]);
        line.grant(serial(6), 1).unwrap();
        assert_eq!([memory.load_u32(64 + 12), memory.load_u32(64 + 16)], [1, 6]);
    }

    #[test]
    fn what_cannot_hold_the_lines_is_refused() {
        let refused = ControlLines::new(SharedView::zeroed(64 * 64 - 8), None).unwrap_err();
        assert_eq!(refused, ControlError::Length { dwords: 1022 });
        let memory = SharedView::zeroed(64 * 64);
        let refused = ControlLines::new(memory.clone(), Some(SharedView::zeroed(0))).unwrap_err();
        assert_eq!(refused, ControlError::NoWord { name: "flush" });
        let mut lines = ControlLines::new(memory, None).unwrap();
        assert_eq!(lines.slot(64).unwrap_err(), ControlError::Slot { slot: 64 });
    }
}
