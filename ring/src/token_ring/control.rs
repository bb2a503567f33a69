//! What the host signals to a slot while its request runs: one line per slot, written by the host, read by the
//! device.
//!
//! A line has five words: the request to cancel, the request to preempt, the request on hold because its client
//! does not read, the number of pages granted, and the request they are granted to. The caller says which dwords
//! they are. A request is named by its serial number, so a word that arrives late, when another request has the
//! slot, has no effect on that request. 0 names none.
//!
//! Contract: the words of one line are unordered, with one exception: pages are stored before the serial that
//! validates them, and never shrink for one serial. So a device loads the serial, waits for the load, then loads
//! the pages, and uses them only if the serial is its own. Pages may be granted to a new request only after the
//! previous request has ended.
//!
//! Cost: one or two stores, a store fence after each, and a flush store if there is one. Making the lines
//! allocates.

use super::error::ControlError;
use super::line::LINE_DWORDS;
use super::memory::RingMemory;
use super::{Flush, line};
use alloc::vec;
use alloc::vec::Vec;
use core::num::NonZeroU32;
use zrt_mem::SharedView;

/// Which dwords of a control line hold its words; each below 16, no two the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ControlDwords {
    /// Serial of the request to cancel.
    pub cancel_serial: usize,
    /// Serial of the request to preempt.
    pub preempt_serial: usize,
    /// Serial of the request on hold.
    pub hold_serial: usize,
    /// Pages granted.
    pub granted_pages: usize,
    /// Serial of the request that they are granted to.
    pub granted_serial: usize,
}

/// The control lines of all slots, as the host writes them.
#[derive(Debug)]
pub struct ControlLines<M = SharedView> {
    lines: M,
    at: ControlDwords,
    flush: Flush<M>,
    /// Serial and pages of the last grant, by slot. Kept here because reading back through the BAR costs a round
    /// trip.
    granted: Vec<(u32, u32)>,
}

/// The control line of one slot.
#[derive(Debug)]
pub struct ControlLine<'lines, M = SharedView> {
    lines: &'lines mut ControlLines<M>,
    slot: u32,
}

impl<M: RingMemory> ControlLines<M> {
    /// The lines in `lines`, one of 64 bytes per slot, with their words at `at`. Clears them, so it must be called
    /// before the device reads them.
    pub fn new(lines: M, at: ControlDwords, flush: Option<M>) -> Result<ControlLines<M>, ControlError> {
        let words =
            [at.cancel_serial, at.preempt_serial, at.hold_serial, at.granted_pages, at.granted_serial];
        for (place, dword) in words.into_iter().enumerate() {
            if dword >= LINE_DWORDS || words[..place].contains(&dword) {
                return Err(ControlError::Dword { dword });
            }
        }
        let dwords = lines.dwords();
        if dwords == 0 || dwords % LINE_DWORDS != 0 || u32::try_from(dwords / LINE_DWORDS).is_err() {
            return Err(ControlError::Length { dwords });
        }
        let flush = Flush::new(flush).map_err(|_| ControlError::NoWord { name: super::FLUSH_NAME })?;
        line::clear(&lines);
        flush.flush();
        Ok(ControlLines { lines, at, flush, granted: vec![(0, 0); dwords / LINE_DWORDS] })
    }

    /// The line of a slot.
    pub fn slot(&mut self, slot: u32) -> Result<ControlLine<'_, M>, ControlError> {
        let slots = self.granted.len() as u32;
        if slot >= slots {
            return Err(ControlError::Slot { slot, last: slots - 1 });
        }
        Ok(ControlLine { lines: self, slot })
    }
}

impl<M: RingMemory> ControlLine<'_, M> {
    /// Clears what was signalled to the previous request, so that a reused serial number finds nothing. Call it
    /// before anything is signalled to the next request.
    pub fn renew(&mut self) {
        let at = self.lines.at;
        for dword in [at.cancel_serial, at.preempt_serial, at.hold_serial] {
            self.store(dword, 0);
        }
        self.lines.flush.flush();
    }

    /// Ends the request within a layer.
    pub fn cancel(&mut self, serial: NonZeroU32) {
        self.store(self.lines.at.cancel_serial, serial.get());
        self.lines.flush.flush();
    }

    /// Takes the request out of the steps within a layer.
    pub fn preempt(&mut self, serial: NonZeroU32) {
        self.store(self.lines.at.preempt_serial, serial.get());
        self.lines.flush.flush();
    }

    /// Withdraws a [`preempt`](ControlLine::preempt), so that the request can be resumed.
    pub fn run(&mut self) {
        self.store(self.lines.at.preempt_serial, 0);
        self.lines.flush.flush();
    }

    /// Keeps the request from producing further tokens until it is released.
    pub fn hold(&mut self, serial: NonZeroU32) {
        self.store(self.lines.at.hold_serial, serial.get());
        self.lines.flush.flush();
    }

    /// Releases a held request.
    pub fn release(&mut self) {
        self.store(self.lines.at.hold_serial, 0);
        self.lines.flush.flush();
    }

    /// Sets how many pages of the slot's page table the request may use.
    pub fn grant(&mut self, serial: NonZeroU32, pages: u32) -> Result<(), ControlError> {
        let last = &mut self.lines.granted[self.slot as usize];
        let (last_serial, granted) = *last;
        if last_serial == serial.get() && pages < granted {
            return Err(ControlError::PagesShrink { slot: self.slot, serial: last_serial, granted, pages });
        }
        *last = (serial.get(), pages);
        let at = self.lines.at;
        self.store(at.granted_pages, pages);
        if last_serial != serial.get() {
            self.store(at.granted_serial, serial.get());
        }
        self.lines.flush.flush();
        Ok(())
    }

    fn store(&self, dword: usize, value: u32) {
        // The page table and the tokens that a word refers to must be stored before it.
        self.lines.lines.fence_stores();
        self.lines.lines.store(self.slot as usize * LINE_DWORDS + dword, value);
        self.lines.lines.fence_stores();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: ControlDwords = ControlDwords {
        cancel_serial: 0,
        preempt_serial: 1,
        hold_serial: 2,
        granted_pages: 3,
        granted_serial: 4,
    };

    fn serial(serial: u32) -> NonZeroU32 {
        NonZeroU32::new(serial).expect("not zero")
    }

    #[test]
    fn each_word_goes_where_the_device_looks() {
        let (memory, flush) =
            (SharedView::zeroed(64 * 64 + 64).expect("memory"), SharedView::zeroed(4096).expect("memory"));
        memory.fill(0, memory.len(), 0xee);
        flush.store_u32(0, 0xffff_ffff);
        let mut lines = ControlLines::new(memory.clone(), AT, Some(flush.clone())).unwrap();
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
        let memory = SharedView::zeroed(64 * 64).expect("memory");
        let mut lines = ControlLines::new(memory.clone(), AT, None).unwrap();
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

    /// Each word goes to the dword that the caller names.
    #[test]
    fn words_may_lie_anywhere_in_a_line() {
        let memory = SharedView::zeroed(2 * 64).expect("memory");
        let at = ControlDwords {
            cancel_serial: 9,
            preempt_serial: 15,
            hold_serial: 0,
            granted_pages: 7,
            granted_serial: 3,
        };
        let mut lines = ControlLines::new(memory.clone(), at, None).unwrap();
        let mut line = lines.slot(1).unwrap();
        line.cancel(serial(1));
        line.preempt(serial(2));
        line.hold(serial(3));
        line.grant(serial(4), 5).unwrap();
        let words: Vec<u32> = (16..32).map(|dword| memory.load_u32(dword * 4)).collect();
        assert_eq!(words, [3, 0, 0, 4, 0, 0, 0, 5, 0, 1, 0, 0, 0, 0, 0, 2]);
    }

    #[test]
    fn what_cannot_hold_the_lines_is_refused() {
        for dwords in [0, 8, 1022] {
            let refused =
                ControlLines::new(SharedView::zeroed(dwords * 4).expect("memory"), AT, None).unwrap_err();
            assert_eq!(refused, ControlError::Length { dwords });
        }
        let memory = SharedView::zeroed(64 * 64).expect("memory");
        let refused =
            ControlLines::new(memory.clone(), AT, Some(SharedView::zeroed(0).expect("memory"))).unwrap_err();
        assert_eq!(refused, ControlError::NoWord { name: "flush" });
        for at in [ControlDwords { hold_serial: 16, ..AT }, ControlDwords { hold_serial: 0, ..AT }] {
            let refused = ControlLines::new(memory.clone(), at, None).unwrap_err();
            let dword = if at.hold_serial == 16 { 16 } else { 0 };
            assert_eq!(refused, ControlError::Dword { dword });
        }
        let mut lines = ControlLines::new(memory, AT, None).unwrap();
        assert_eq!(lines.slot(64).unwrap_err(), ControlError::Slot { slot: 64, last: 63 });
    }
}
