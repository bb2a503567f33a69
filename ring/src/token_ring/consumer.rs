//! The output ring: the device writes entries, the host consumes them.
//!
//! The host stores the count of consumed entries into a dword that the device reads, through the BAR: a store fence
//! and perhaps a flush. It does so after every `publish_every` entries, and whenever it finds no further entry. A
//! device that waits for space therefore never waits for a host that waits for entries. A host that stops polling
//! in between leaves at most `publish_every` - 1 entries unreported, unless it calls
//! [`OutputRing::publish_consumed`].
//!
//! Cost of a poll: one load if no entry has arrived, 17 if one has; no allocation.

use super::error::{TakeError, TokenRingError};
use super::line::{self, Line, LineState};
use super::memory::RingMemory;
use super::{Flush, capacity_of, check_first, line_of, need_word};
use crate::clock::{Clock, poll_until};
use core::marker::PhantomData;
use zrt_mem::SharedView;

/// The output ring of entries `E`, owned by its one consumer.
#[derive(Debug)]
pub struct OutputRing<E, M = SharedView> {
    ring: M,
    consumed: M,
    flush: Flush<M>,
    capacity: u32,
    publish_every: u32,
    /// Entries taken since the ring was made; never wraps.
    taken: u64,
    /// Of these, the entries not yet reported to the device.
    owed: u32,
    entries: PhantomData<fn() -> E>,
}

impl<E: TryFrom<Line>, M: RingMemory> OutputRing<E, M> {
    /// An output ring in `ring`. Its producer reads the number of entries taken (low 32 bits) in dword 0 of
    /// `consumed`. With `flush`, a store to its dword 0, the HDP flush, follows each such report.
    ///
    /// Clears both memories, so it must be called before the device reads them.
    pub fn new(
        ring: M,
        consumed: M,
        flush: Option<M>,
        publish_every: u32,
    ) -> Result<OutputRing<E, M>, TokenRingError> {
        OutputRing::starting_at(ring, consumed, flush, publish_every, 0)
    }

    /// Like [`new`](OutputRing::new), but the first entry has the number `first`, at most
    /// [`FIRST_ENTRY_MAX`](super::FIRST_ENTRY_MAX): for a resumed session.
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

    /// The next entry, if it has arrived whole. A torn or foreign line counts as "not yet" here; a caller with its
    /// own deadline calls [`state`](OutputRing::state) when it has passed.
    ///
    /// A line that arrived whole but is no `E` is [`TakeError::Entry`], and every further call returns the same
    /// error: nothing after it counts. This method returns no other error.
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

    /// Waits at most `timeout_ns` for the next entry. The error says what is there after that:
    /// [`TokenRingError::Nothing`] may be an idle device, while a torn or foreign line means a broken one.
    pub fn wait<C: Clock>(&mut self, clock: &C, timeout_ns: u64) -> Result<E, TakeError<E::Error>> {
        let waited_ns = match poll_until(clock, timeout_ns, || self.poll().transpose()) {
            Ok(answer) => return answer,
            Err(waited_ns) => waited_ns,
        };
        let number = self.taken;
        let nothing = TokenRingError::Nothing { number, waited_ns };
        match self.state() {
            // The line became whole between the last poll and now, which still counts as in time.
            LineState::Ready => self.poll()?.ok_or(TakeError::Ring(nothing)),
            _ => Err(TakeError::Ring(self.broken(waited_ns).unwrap_or(nothing))),
        }
    }

    /// Why the next entry will not arrive: its line is torn or foreign, a state that lasts only a moment while a
    /// device writes it. For a caller that has waited `waited_ns`.
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

    /// Reports all entries taken so far to the device.
    pub fn publish_consumed(&mut self) {
        // Entries must be loaded before the device may overwrite them.
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
