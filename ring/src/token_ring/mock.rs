//! The device's side of the token rings, as a model of its rules, for tests here and in crates above.
//!
//! It is written as the device has to do it, not with the host's code: entries are counted in 32 bits that wrap,
//! and the tag is counted separately and skips 0. It accesses memory in the device's order, with a fence where a
//! kernel waits.

use super::memory::RingMemory;
use alloc::vec::Vec;

/// The position of one side of the device: the count's low 32 bits and the tag of the next entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    count: u32,
    tag: u32,
}

impl Place {
    fn step(&mut self) {
        self.count = self.count.wrapping_add(1);
        self.tag = match self.tag.wrapping_add(1) {
            0 => 1,
            tag => tag,
        };
    }

    fn line<M: RingMemory>(&self, ring: &M) -> usize {
        self.count as usize % (ring.dwords() / 16) * 16
    }
}

/// The reader of the input ring.
#[derive(Debug)]
pub struct DeviceInput<M> {
    ring: M,
    consumed: M,
    place: Place,
}

impl<M: RingMemory> DeviceInput<M> {
    /// A reader whose next entry has the number `count` (low 32 bits) and the tag `tag`.
    pub fn new(ring: M, consumed: M, count: u32, tag: u32) -> DeviceInput<M> {
        DeviceInput { ring, consumed, place: Place { count, tag } }
    }

    /// The next line, if it has arrived. Does not count it: see [`tell`](DeviceInput::tell).
    pub fn take(&mut self) -> Option<Vec<u32>> {
        let first = self.place.line(&self.ring);
        if self.ring.load(first) != self.place.tag || self.ring.load(first + 15) != !self.place.tag {
            return None;
        }
        // Both ends must have arrived before the rest is read.
        self.ring.fence_loads();
        let line: Vec<u32> = (0..16).map(|dword| self.ring.load(first + dword)).collect();
        self.place.step();
        Some(line)
    }

    /// Reports all lines taken to the host.
    pub fn tell(&self) {
        self.consumed.fence_stores();
        self.consumed.store(0, self.place.count);
    }
}

/// The writer of the output ring.
#[derive(Debug)]
pub struct DeviceOutput<M> {
    ring: M,
    consumed: M,
    place: Place,
}

impl<M: RingMemory> DeviceOutput<M> {
    /// A writer whose next entry has the number `count` (low 32 bits) and the tag `tag`.
    pub fn new(ring: M, consumed: M, count: u32, tag: u32) -> DeviceOutput<M> {
        DeviceOutput { ring, consumed, place: Place { count, tag } }
    }

    /// Writes dwords 1 to 14 of `line` as the next entry if more than `reserve` lines are free; else returns false.
    pub fn put(&mut self, line: &[u32; 16], reserve: u32) -> bool {
        let lines = (self.ring.dwords() / 16) as u32;
        let waiting = self.place.count.wrapping_sub(self.consumed.load(0));
        if waiting + reserve >= lines {
            return false;
        }
        // The host loaded the line before it counted it.
        self.consumed.fence_loads();
        let first = self.place.line(&self.ring);
        self.ring.store(first + 15, !self.place.tag);
        for dword in (1..15).rev() {
            self.ring.store(first + dword, line[dword]);
        }
        self.ring.fence_stores();
        self.ring.store(first, self.place.tag);
        self.place.step();
        true
    }
}
