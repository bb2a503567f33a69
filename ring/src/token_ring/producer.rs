//! The input ring: the host writes entries, the device consumes them.
//!
//! The ring is in VRAM behind the BAR, where stores are combined and reads cost a round trip, so the host never
//! reads it. The device writes the number of consumed entries into host memory, as a 32-bit count.
//!
//! Cost of a push: 16 stores, 2 store fences, and a flush store if there is one; no allocation. The count of
//! consumed entries is loaded only when the space known to be free is used up.

use super::error::TokenRingError;
use super::line::{self, Line};
use super::memory::RingMemory;
use super::{Flush, capacity_of, check_first, line_of, need_word};
use crate::clock::{Clock, poll_until};
use core::marker::PhantomData;
use zrt_mem::SharedView;

/// The input ring of entries `E`, owned by its one producer.
#[derive(Debug)]
pub struct InputRing<E, M = SharedView> {
    ring: M,
    consumed: M,
    flush: Flush<M>,
    capacity: u32,
    /// Entries written since the ring was made; never wraps.
    produced: u64,
    /// Entries that the device is known to have consumed.
    consumed_known: u64,
    entries: PhantomData<fn(&E)>,
}

impl<E, M: RingMemory> InputRing<E, M>
where
    for<'entry> Line: From<&'entry E>,
{
    /// An input ring in `ring`. Its consumer reports in dword 0 of `consumed` how many entries it took. With
    /// `flush`, each push ends with a store to its dword 0: the HDP flush (hardware reference §6.4).
    ///
    /// Clears both memories, so it must be called before the device reads them.
    pub fn new(ring: M, consumed: M, flush: Option<M>) -> Result<InputRing<E, M>, TokenRingError> {
        InputRing::starting_at(ring, consumed, flush, 0)
    }

    /// Like [`new`](InputRing::new), but the first entry has the number `first`, at most
    /// [`FIRST_ENTRY_MAX`](super::FIRST_ENTRY_MAX): for a resumed session.
    pub fn starting_at(
        ring: M,
        consumed: M,
        flush: Option<M>,
        first: u64,
    ) -> Result<InputRing<E, M>, TokenRingError> {
        let capacity = capacity_of(&ring)?;
        check_first(first)?;
        need_word("count of consumed entries", &consumed)?;
        let flush = Flush::new(flush)?;
        line::clear(&ring);
        consumed.store(0, first as u32);
        consumed.fence_stores();
        flush.flush();
        let (produced, consumed_known) = (first, first);
        Ok(InputRing { ring, consumed, flush, capacity, produced, consumed_known, entries: PhantomData })
    }

    /// Writes an entry; its dwords 0 and 15 are ignored. Returns [`TokenRingError::Full`], and writes nothing, if
    /// there is no space now.
    #[inline]
    pub fn push(&mut self, entry: &E) -> Result<(), TokenRingError> {
        let number = self.produced;
        if self.free_known() == 0 {
            self.refresh()?;
            if self.free_known() == 0 {
                return Err(TokenRingError::Full { capacity: self.capacity });
            }
        }
        line::write_line(&self.ring, line_of(number, self.capacity), number, &Line::from(entry));
        self.flush.flush();
        self.produced += 1;
        Ok(())
    }

    /// Like [`push`](InputRing::push), but waits at most `timeout_ns` for space.
    pub fn push_within<C: Clock>(
        &mut self,
        entry: &E,
        clock: &C,
        timeout_ns: u64,
    ) -> Result<(), TokenRingError> {
        let waited = poll_until(clock, timeout_ns, || match self.push(entry) {
            Err(TokenRingError::Full { .. }) => None,
            answer => Some(answer),
        });
        match waited {
            Ok(answer) => answer,
            Err(waited_ns) => Err(TokenRingError::FullTimeout { capacity: self.capacity, waited_ns }),
        }
    }

    /// Entries that can be pushed now.
    pub fn free(&mut self) -> Result<u32, TokenRingError> {
        self.refresh()?;
        Ok(self.free_known())
    }

    /// Number of the oldest entry not yet consumed; `None` if all were.
    pub fn oldest_waiting(&mut self) -> Result<Option<u64>, TokenRingError> {
        self.refresh()?;
        Ok((self.consumed_known < self.produced).then_some(self.consumed_known))
    }

    /// Entries of the ring.
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Number of the next entry.
    pub const fn produced(&self) -> u64 {
        self.produced
    }

    const fn free_known(&self) -> u32 {
        self.capacity - (self.produced - self.consumed_known) as u32
    }

    /// Updates the count of consumed entries from the device: at least the previous one, at most the number
    /// produced.
    fn refresh(&mut self) -> Result<(), TokenRingError> {
        let told = self.consumed.load(0);
        // The device loads an entry before it counts it, and we overwrite the entry only after this fence.
        self.consumed.fence_loads();
        let (least, most) = (self.consumed_known as u32, self.produced as u32);
        let waiting = most.wrapping_sub(told);
        if waiting > most.wrapping_sub(least) {
            return Err(TokenRingError::Consumed { consumed: told, least, most });
        }
        self.consumed_known = self.produced - u64::from(waiting);
        Ok(())
    }
}
