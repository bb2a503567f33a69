//! Small command rings in every state, and every call in each of them.
//!
//! A submission depends on the write pointer modulo the ring, on how far the reader is known to lag, on what it
//! reports now, and on the length. All of these are tried for rings of 4, 8 and 16 dwords, twice round the ring, at
//! pointers that begin at 0, pass 2^32 and come near 2^63. A ring of another length differs only in its mask. A
//! call leaves a state of the same kind, so what is true after each call is true after any number of them.

use crate::command_ring::CommandRing;
use crate::error::RingError;
use crate::publish::NOT_A_PACKET;
use alloc::vec::Vec;
use zrt_mem::SharedView;

/// First write pointers; the ring's length is added to each if the reader lags.
const BASES: &[u64] = if cfg!(miri) { &[0] } else { &[0, (1 << 32) - 20, (1 << 63) - 20] };
/// Miri is some thousand times slower, and sees accesses alone, which the smallest ring has all of.
const SIZES: &[u64] = if cfg!(miri) { &[4] } else { &[4, 8, 16] };

/// A packet of `dwords` without effect; each dword of its body is different.
fn packet(dwords: u64) -> Vec<u32> {
    match dwords {
        0 => Vec::new(),
        1 => vec![0xffff_1000],
        _ => {
            let header = 0xc000_1000 | (dwords as u32 - 2) << 16;
            [header].into_iter().chain(1..dwords as u32).collect()
        }
    }
}

/// The memory of a queue.
struct Memory {
    ring: SharedView,
    pointers: [SharedView; 3],
}

impl Memory {
    fn new(dwords: u64) -> Memory {
        Memory {
            ring: SharedView::zeroed(dwords as usize * 4).expect("memory"),
            pointers: [(); 3].map(|()| SharedView::zeroed(8).expect("memory")),
        }
    }

    /// Initial contents of the slots: valid packets, all different.
    fn old(slot: u64) -> u32 {
        0xa000_0000 | slot as u32
    }

    fn dwords(&self) -> u64 {
        self.ring.len() as u64 / 4
    }

    /// A ring with these pointers, over slots with old contents.
    fn ring(&self, write: u64, read: u64) -> Result<CommandRing, RingError> {
        let [write_pointer, read_pointer, doorbell] = &self.pointers;
        (0..self.dwords()).for_each(|slot| self.ring.store_u32(slot as usize * 4, Memory::old(slot)));
        write_pointer.store_u64(0, write);
        read_pointer.store_u64(0, read);
        doorbell.store_u64(0, write);
        let whole = |view: &SharedView| view.slice(0, view.len());
        CommandRing::over(whole(&self.ring), whole(write_pointer), whole(read_pointer), whole(doorbell))
    }

    /// Slots, write pointer and doorbell.
    fn image(&self) -> (Vec<u32>, [u64; 2]) {
        let slots = (0..self.dwords()).map(|slot| self.ring.load_u32(slot as usize * 4)).collect();
        (slots, [self.pointers[0].load_u64(0), self.pointers[2].load_u64(0)])
    }
}

#[test]
fn a_ring_starts_where_the_reader_is_at_most_a_ring_less_one_behind() {
    for &size in SIZES {
        let memory = Memory::new(size);
        for (write, read) in (0..3 * size).flat_map(|write| (0..3 * size).map(move |read| (write, read))) {
            let behind = write.checked_sub(read).filter(|behind| *behind < size);
            match (memory.ring(write, read), behind) {
                (Ok(mut ring), Some(behind)) => {
                    assert_eq!(ring.free_dwords(), Ok((size - 1 - behind) as usize));
                    assert_eq!((ring.write_pointer(), ring.capacity_dwords() as u64), (write, size - 1));
                    let mut slots: Vec<u32> = (0..size).map(Memory::old).collect();
                    slots[(write % size) as usize] = NOT_A_PACKET;
                    assert_eq!(memory.image(), (slots, [write, write]));
                }
                (Err(error), None) => assert_eq!(error, RingError::StartPointers { read, write }),
                (made, _) => panic!("{read} to {write} of {size}: {made:?}"),
            }
        }
    }
}

/// The expected result of a submission of `len`, given the known and the reported position, by the rules of the
/// reference alone.
fn expected(size: u64, write: u64, known: u64, told: u64, len: u64) -> Result<u64, RingError> {
    let room = |read: u64| size - 1 - (write - read);
    if len == 0 {
        return Err(RingError::Empty);
    }
    if len >= size {
        return Err(RingError::TooLong { dwords: len as usize, capacity: size as usize - 1 });
    }
    if len <= room(known) {
        return Ok(write + len);
    }
    if told > write {
        return Err(RingError::ReadPointerAhead { read: told, write });
    }
    let free = room(known.max(told));
    if len <= free {
        Ok(write + len)
    } else {
        Err(RingError::Full { needed: len as usize, free: free as usize })
    }
}

#[test]
fn every_submission_in_every_state_goes_where_there_is_room_and_nowhere_else() {
    let mut submissions = 0;
    for &size in SIZES {
        let memory = Memory::new(size);
        let states = BASES.iter().flat_map(|base| {
            let writes = base + size..base + 3 * size;
            writes.flat_map(move |write| (write + 1 - size..=write).map(move |known| (write, known)))
        });
        for (write, known) in states {
            // Every true value, what was reported before, the shorter forms of a pointer, and false values.
            let told = (known..=write).chain([0, known - 1, write % size, write & 0xffff_ffff]);
            for told in told.chain([write + 1, write + size, u64::MAX]) {
                for len in 0..=size + 1 {
                    let mut ring = memory.ring(write, known).expect("a state that can be");
                    memory.pointers[1].store_u64(0, told);
                    let (mut slots, pointers) = memory.image();
                    let result = ring.submit(&packet(len)).map(|submission| {
                        assert_eq!(submission.start, write);
                        submission.end
                    });
                    assert_eq!(
                        result,
                        expected(size, write, known, told, len),
                        "{known} to {write}, {told}, {len}"
                    );
                    let after = match result {
                        Ok(end) => {
                            for (at, word) in (write..).zip(packet(len)) {
                                slots[(at % size) as usize] = word;
                            }
                            slots[(end % size) as usize] = NOT_A_PACKET;
                            (slots, [end, end])
                        }
                        Err(_) => (slots, pointers),
                    };
                    assert_eq!(memory.image(), after, "{known} to {write}, {told}, {len}");
                    submissions += 1;
                }
            }
        }
    }
    assert!(submissions > if cfg!(miri) { 1000 } else { 200_000 }, "{submissions}");
}

/// Space that a fence proves when nothing is reported: exactly up to the last fence reached.
#[test]
fn every_fence_in_every_state_frees_what_lies_before_it() {
    for &size in SIZES {
        let memory = Memory::new(size);
        for write in (0..2 * size).flat_map(|at| BASES.iter().map(move |base| base + at)) {
            for (first, second) in (1..size).flat_map(|first| (1..size).map(move |second| (first, second))) {
                let mut ring = memory.ring(write, write).expect("an empty ring");
                ring.submit(&packet(first)).expect("an empty ring has room");
                ring.note_fence(1);
                let both = ring.submit(&packet(second));
                assert_eq!(both.is_ok(), first + second < size);
                // A fence below the first proves nothing.
                ring.fence_reached(0);
                let outstanding = first + if both.is_ok() { second } else { 0 };
                assert_eq!(ring.free_dwords(), Ok((size - 1 - outstanding) as usize));
                ring.fence_reached(1);
                assert_eq!(ring.free_dwords(), Ok((size - 1 - (outstanding - first)) as usize));
                assert_eq!(ring.read_pointer(), Ok(write + first));
                // A late report takes nothing back.
                ring.fence_reached(0);
                assert_eq!(ring.read_pointer(), Ok(write + first));
            }
        }
    }
}
