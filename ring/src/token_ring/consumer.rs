//! The output ring: the device writes entries, the host takes them.
//!
//! What was consumed the host stores into a dword that the device reads, through the BAR: a store fence and
//! perhaps a flush. It does so after every `publish_every` entries, and whenever it finds nothing more to
//! take, so that a device which waits for room never waits for a host that waits for entries. A host that
//! stops polling in between owes the device at most `publish_every` - 1 entries, or says so by
//! [`OutputRing::publish_consumed`].
//!
//! Cost of a poll: one load where nothing has come, 17 where something has; no allocation.

use super::error::{TakeError, TokenRingError};
use super::line::{self, Line, LineState};
use super::memory::RingMemory;
use super::{Flush, capacity_of, check_first, line_of, need_word};
use crate::clock::{Clock, poll_until};
use core::marker::PhantomData;
use zrt_mem::SharedView;

/// The output ring of entries `E`, as its one consumer holds it.
#[derive(Debug)]
pub struct OutputRing<E, M = SharedView> {
    ring: M,
    consumed: M,
    flush: Flush<M>,
    capacity: u32,
    publish_every: u32,
    /// Entries taken since the ring was made; never wraps.
    taken: u64,
    /// Of these, the ones that the device was not told of.
    owed: u32,
    entries: PhantomData<fn() -> E>,
}

impl<E: TryFrom<Line>, M: RingMemory> OutputRing<E, M> {
    /// The ring in `ring`, whose producer reads in dword 0 of `consumed` how many entries were taken (low 32
    /// bits). With `flush`, each time that this is told a store to its dword 0 follows: the HDP flush.
    ///
    /// Clears both memories, so it must be made before the device looks at them.
    pub fn new(
        ring: M,
        consumed: M,
        flush: Option<M>,
        publish_every: u32,
    ) -> Result<OutputRing<E, M>, TokenRingError> {
        OutputRing::starting_at(ring, consumed, flush, publish_every, 0)
    }

    /// As [`new`](OutputRing::new), where the first entry has the number `first`, at most
    /// [`FIRST_ENTRY_MAX`](super::FIRST_ENTRY_MAX): a session that goes on.
    pub fn starting_at(
        ring: M,
        consumed: M,
        flush: Option<M>,
        publish_every: u32,
        first: u64,
    ) -> Result<OutputRing<E, M>, TokenRingError> {
        let capacity = capacity_of(&ring)?;
        check_first(first)?;
        need_word("count of consumed entries", &consumed)?;
        if !(1..=capacity).contains(&publish_every) {
            return Err(TokenRingError::PublishEvery { every: publish_every, capacity });
        }
        let flush = Flush::new(flush)?;
        line::clear(&ring);
        let (taken, owed, entries) = (first, 0, PhantomData);
        let mut ring = OutputRing { ring, consumed, flush, capacity, publish_every, taken, owed, entries };
        ring.publish_consumed();
        Ok(ring)
    }

    /// The next entry, if it has come whole. A torn or foreign line is "not yet" here; whoever waits with a
    /// deadline of its own asks [`state`](OutputRing::state) when it has passed.
    ///
    /// A line that came whole and is no `E` is [`TakeError::Entry`], the same one at every further call: nothing after it
    /// counts. No other error comes from here.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<E>, TakeError<E::Error>> {
        let number = self.taken;
        let first = line_of(number, self.capacity);
        let (state, dwords) = line::read_line(&self.ring, first, number, u64::from(self.capacity));
        if state != LineState::Ready {
            if self.owed > 0 {
                self.publish_consumed();
            }
            return Ok(None);
        }
        let entry = E::try_from(dwords).map_err(|error| TakeError::Entry { number, error })?;
        self.taken += 1;
        self.owed += 1;
        if self.owed >= self.publish_every {
            self.publish_consumed();
        }
        Ok(Some(entry))
    }

    /// The next entry, waiting for it at most `timeout_ns`. What lies there after that is in the error:
    /// [`TokenRingError::Nothing`] may be an idle device, torn and foreign lines are a broken one.
    pub fn wait<C: Clock>(&mut self, clock: &C, timeout_ns: u64) -> Result<E, TakeError<E::Error>> {
        let waited_ns = match poll_until(clock, timeout_ns, || self.poll().transpose()) {
            Ok(answer) => return answer,
            Err(waited_ns) => waited_ns,
        };
        let number = self.taken;
        let nothing = TokenRingError::Nothing { number, waited_ns };
        match self.state() {
            // Whole between the last poll and now: as good as in time.
            LineState::Ready => self.poll()?.ok_or(TakeError::Ring(nothing)),
            _ => Err(TakeError::Ring(self.broken(waited_ns).unwrap_or(nothing))),
        }
    }

    /// Why the next entry will not come: its line is torn or foreign, which is so for a moment at most while a device
    /// writes it. For who has waited `waited_ns` meanwhile.
    pub fn broken(&self, waited_ns: u64) -> Option<TokenRingError> {
        let number = self.taken;
        match self.state() {
            LineState::Ready | LineState::Empty => None,
            LineState::Torn { trailer } => Some(TokenRingError::Torn { number, trailer, waited_ns }),
            LineState::Foreign { found } => {
                Some(TokenRingError::Foreign { number, expected: line::tag(number), found, waited_ns })
            }
        }
    }

    /// What the line of the next entry holds now.
    pub fn state(&self) -> LineState {
        let first = line_of(self.taken, self.capacity);
        line::read_line(&self.ring, first, self.taken, u64::from(self.capacity)).0
    }

    /// Tells the device of all entries taken so far.
    pub fn publish_consumed(&mut self) {
        // What was taken has been loaded before the device may write over it.
        self.consumed.fence_stores();
        self.consumed.store(0, self.taken as u32);
        self.consumed.fence_stores();
        self.flush.flush();
        self.owed = 0;
    }

    /// Entries of the ring.
    pub const fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Number of the next entry.
    pub const fn taken(&self) -> u64 {
        self.taken
    }
}
