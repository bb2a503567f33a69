//! The one place where packets become visible to the device.
//!
//! Order (hardware reference §6.4): the header slot of the *next* submission is made invalid, then come the bodies,
//! the first header (release), the write pointer, a store fence, and one 64-bit doorbell store. Because the slot at
//! the write pointer always holds a word that is no packet, a reader that runs ahead of the write pointer finds
//! nothing there until the whole submission is present.

use crate::queue_memory::QueueMemory;

/// The contents of the slot at the write pointer: a header of type 0, which no compute ring accepts (hardware
/// reference §4.1).
pub(crate) const NOT_A_PACKET: u32 = 0;

/// The stores that a submission makes, so that tests can inspect the memory between any two of them.
pub(crate) trait RingStores {
    /// A dword of the ring, by slot.
    fn store_dword(&mut self, slot: usize, value: u32);
    /// The first header, after everything before it.
    fn store_header(&mut self, slot: usize, value: u32);
    /// The write pointer, after everything before it.
    fn store_write_pointer(&mut self, dwords: u64);
    /// The doorbell, after everything before it has reached memory.
    fn store_doorbell(&mut self, dwords: u64);
}

/// The real stores.
#[derive(Debug)]
pub(crate) struct SharedRing<M> {
    pub ring: M,
    pub write_pointer: M,
    pub doorbell: M,
}

impl<M: QueueMemory> RingStores for SharedRing<M> {
    #[inline(always)]
    fn store_dword(&mut self, slot: usize, value: u32) {
        self.ring.store_u32(slot * 4, value);
    }

    #[inline(always)]
    fn store_header(&mut self, slot: usize, value: u32) {
        self.ring.store_u32_release(slot * 4, value);
    }

    #[inline(always)]
    fn store_write_pointer(&mut self, dwords: u64) {
        self.write_pointer.store_u64_release(0, dwords);
    }

    #[inline(always)]
    fn store_doorbell(&mut self, dwords: u64) {
        // The doorbell is a different kind of memory from the ring. Stores still in write-combining buffers must go
        // out first, which neither a release nor a full fence of ordinary memory guarantees.
        self.doorbell.fence_stores();
        self.doorbell.store_u64_release(0, dwords);
    }
}

/// Publishes `packets` at `write`, a count of dwords that never wraps, in a ring of `mask + 1` dwords. The caller
/// has checked that there is space for the packets and one more dword. Returns the new write pointer.
#[inline]
pub(crate) fn publish<S: RingStores>(stores: &mut S, mask: usize, write: u64, packets: &[u32]) -> u64 {
    let Some((header, bodies)) = packets.split_first() else { return write };
    debug_assert!(packets.len() <= mask, "one slot stays free for the next header");
    let end = write + packets.len() as u64;
    stores.store_dword(end as usize & mask, NOT_A_PACKET);
    for (at, body) in (write + 1..).zip(bodies) {
        stores.store_dword(at as usize & mask, *body);
    }
    stores.store_header(write as usize & mask, *header);
    stores.store_write_pointer(end);
    stores.store_doorbell(end);
    end
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_pm4::{ItemKind, Reader};

    /// A ring that is inspected after every store, as a device would that ignores the write pointer.
    struct Watched {
        words: Vec<u32>,
        start: u64,
        packets: Vec<u32>,
        header_stored: bool,
        write_pointer: u64,
        doorbell: u64,
        stores: usize,
    }

    impl Watched {
        fn look(&mut self) {
            self.stores += 1;
            let mask = self.words.len() - 1;
            let visible: Vec<u32> = (0..self.packets.len() as u64 + 1)
                .map(|at| self.words[(self.start + at) as usize & mask])
                .collect();
            let first = Reader::new(&visible).next();
            if self.header_stored {
                assert_eq!(&visible[..self.packets.len()], &self.packets[..], "torn submission");
                let last = Reader::new(&visible).last().expect("the stream is not empty");
                assert!(last.is_err(), "behind the submission there is no packet: {last:?}");
            } else {
                let packet = first.expect("there is a word").ok();
                assert!(
                    !packet
                        .is_some_and(|item| matches!(item.kind, ItemKind::Known(_) | ItemKind::Unknown(_))),
                    "a packet is visible before its header was stored"
                );
                assert_eq!(self.write_pointer, self.start);
            }
            assert!(
                self.doorbell <= self.write_pointer,
                "the doorbell never runs ahead of the write pointer"
            );
        }
    }

    impl RingStores for Watched {
        fn store_dword(&mut self, slot: usize, value: u32) {
            assert!(!self.header_stored, "bodies come before the header");
            self.words[slot] = value;
            self.look();
        }
        fn store_header(&mut self, slot: usize, value: u32) {
            self.words[slot] = value;
            self.header_stored = true;
            self.look();
        }
        fn store_write_pointer(&mut self, dwords: u64) {
            assert!(self.header_stored, "the header comes before the write pointer");
            self.write_pointer = dwords;
            self.look();
        }
        fn store_doorbell(&mut self, dwords: u64) {
            assert_eq!(dwords, self.write_pointer);
            self.doorbell = dwords;
            self.look();
        }
    }

    /// A fence, a flush, a jump: sixteen dwords.
    const PACKETS: [u32; 14] = [
        0xc002_3f00,
        0x1000,
        0,
        0x80_0040,
        0xc006_4900,
        0x60_0514,
        0x4000_0000,
        0x2000,
        0,
        9,
        0,
        0,
        0xc000_4600,
        0x407,
    ];

    #[test]
    fn no_packet_is_visible_before_its_header() {
        // The old words are one-dword NOPs: valid packets wherever a reader starts. Every start is tried, the wrap
        // included.
        for start in (0..64).chain([(1 << 32) - 7, (1 << 32) - 1, u64::from(u32::MAX) * 3]) {
            let mut words = vec![0xffff_1000; 32];
            words[start as usize & 31] = NOT_A_PACKET;
            let mut watched = Watched {
                words,
                start,
                packets: PACKETS.to_vec(),
                header_stored: false,
                write_pointer: start,
                doorbell: start,
                stores: 0,
            };
            let end = publish(&mut watched, 31, start, &PACKETS);
            assert_eq!((end, watched.doorbell), (start + 14, start + 14));
            assert_eq!(watched.stores, PACKETS.len() + 1 + 2, "every store was looked at");
            assert_eq!(watched.words[end as usize & 31], NOT_A_PACKET);
        }
    }

    /// What the watch reports of `breaking`, on a ring of at least the packets' length.
    fn said_of(breaking: fn(&mut Watched)) -> String {
        let torn = std::panic::catch_unwind(|| {
            breaking(&mut Watched {
                words: vec![NOT_A_PACKET; 32],
                start: 0,
                packets: PACKETS.to_vec(),
                header_stored: false,
                write_pointer: 0,
                doorbell: 0,
                stores: 0,
            });
        });
        let panic = torn.expect_err("the watch notices");
        let text = panic.downcast_ref::<String>().cloned();
        text.or(panic.downcast_ref::<&str>().map(|text| text.to_string())).expect("a message")
    }

    /// The checks must be able to fail, each for its own reason.
    #[test]
    fn the_watch_sees_a_header_that_comes_first() {
        let said = said_of(|watched| watched.store_header(0, PACKETS[0]));
        assert!(said.contains("torn submission"), "{said}");
    }

    #[test]
    fn the_watch_sees_a_packet_before_its_header() {
        let said = said_of(|watched| watched.store_dword(0, 0xffff_1000));
        assert!(said.contains("a packet is visible before its header was stored"), "{said}");
    }

    #[test]
    fn the_watch_sees_pointers_that_come_early() {
        let said = said_of(|watched| watched.store_write_pointer(14));
        assert!(said.contains("the header comes before the write pointer"), "{said}");
        let said = said_of(|watched| watched.store_doorbell(14));
        assert!(said.contains("left: 14"), "{said}");
    }
}
