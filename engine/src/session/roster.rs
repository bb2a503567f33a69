//! Requests, slots and pages: who waits, who runs in which slot, and with how many pages.
//!
//! Contract: pure values. Nothing here knows a device: a call takes what changed and returns what the device must
//! learn, which [`Link`](super::link::Link) sends. All memory is reserved when the roster is made; no later call
//! allocates, except [`Roster::unfinished`], and [`Roster::enqueue`] for a request of a session with a longer context,
//! of which only the end is left to report.
//!
//! A request holds the pages of its known tokens and [`PAGES_AHEAD`] more, as long as any are free. A request that
//! finds none stalls alone; if every running request stalls, the youngest gives back its pages and waits again.
//!
//! Ended requests are kept, as many as the session is to keep: a request whose tokens begin like those of a kept one
//! takes over its pages (`kept`). Otherwise the pages of kept requests are as good as free: whoever lacks pages gets
//! them, the oldest first.
//!
//! Cost: each call visits every record or every slot at most once, and once more for each kept request that it forgets.

mod kept;

use super::error::SessionError;
use super::recovery::Unfinished;
use super::request::{Event, Handle};
use super::stage::{Asked, Seat, Stage, Wish};
use crate::sampling::Sampling;
use std::num::NonZeroU32;
use zrt_mem::pages::{Audit, Owner, PageAllocator};
use zrt_protocol::{self as protocol, FinishReason, PAGE_TOKENS, SLOTS_MAX, STOP_TOKENS_MAX, Slot};

/// Pages that a request holds beyond those that its known tokens fill.
const PAGES_AHEAD: usize = 1;

/// A request that is to wait for a slot, or whose end is to be reported.
pub(super) struct Newcomer<'a> {
    /// Every known token.
    pub tokens: &'a [u32],
    /// How many of them are the prompt.
    pub prompt_length: u32,
    /// The sequence ends when this many tokens are known.
    pub limit: u32,
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Tokens that end the sequence: at most [`STOP_TOKENS_MAX`].
    pub stops: &'a [u32],
    /// Its client is slow.
    pub is_held: bool,
    /// [`Stage::Waiting`] or [`Stage::Ended`].
    pub stage: Stage,
}

/// One request.
#[derive(Debug)]
struct Record {
    stage: Stage,
    handle: Handle,
    tokens: Vec<u32>,
    prompt_length: u32,
    limit: u32,
    sampling: Sampling,
    stops: [u32; STOP_TOKENS_MAX],
    pages: Vec<u32>,
    /// Order of submission: the youngest is the first to give its pages back. Of kept requests the order of their ends.
    age: u64,
    is_held: bool,
    /// Tokens that were known when it got its slot.
    known_at_admission: u32,
    /// Positions that it found in the pages of a kept request.
    found: u32,
}

/// The request that gets a slot next: see [`Roster::next_admission`].
#[derive(Clone, Copy, Debug)]
pub(super) struct NextAdmission {
    index: usize,
    slot: Slot,
}

/// A request that has received a slot: what to tell the device, in the order of the fields.
#[derive(Debug)]
pub(super) struct Admission<'a> {
    pub seat: Seat,
    pub tokens: &'a [u32],
    pub stops: &'a [u32; STOP_TOKENS_MAX],
    pub is_held: bool,
    /// Its first pages; none if no page is free.
    pub grant: Option<Grant<'a>>,
    /// It is to be parked at once.
    pub parks: bool,
    pub limit: u32,
    /// The position that its first row consumes: the pages hold those before it.
    pub position: u32,
    pub sampling: &'a Sampling,
}

/// Pages granted to a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Grant<'a> {
    pub seat: Seat,
    /// Index of the first new page in the slot's table.
    pub first: usize,
    /// The new pages; with those before them, the request has `first` + their number.
    pub pages: &'a [u32],
}

/// A parked request that is to continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NextResume {
    index: usize,
    pub seat: Seat,
    /// The position that its next row consumes.
    pub position: u32,
}

/// All requests of a session.
#[derive(Debug)]
pub(super) struct Roster {
    records: Vec<Record>,
    /// Record of each slot.
    slots: [Option<u32>; SLOTS_MAX],
    slot_count: u32,
    /// Maximum number of requests that run or wait.
    live_max: u32,
    /// Maximum number of requests that are kept.
    kept_max: u32,
    pages: PageAllocator,
    next_handle: u64,
    next_serial: NonZeroU32,
    next_age: u64,
}

impl Seat {
    fn owner(self) -> Owner {
        Owner { slot: self.slot.number(), serial: self.serial.get() }
    }
}

impl Record {
    fn new(context: u32, pages_per_slot: u32) -> Record {
        Record {
            stage: Stage::Free,
            handle: Handle(0),
            tokens: Vec::with_capacity(context as usize),
            prompt_length: 0,
            limit: 0,
            sampling: Sampling::default(),
            stops: [u32::MAX; STOP_TOKENS_MAX],
            pages: Vec::with_capacity(pages_per_slot as usize),
            age: 0,
            is_held: false,
            known_at_admission: 0,
            found: 0,
        }
    }

    /// True if it has no page for its last known token.
    fn is_starved(&self) -> bool {
        self.pages.len() * (PAGE_TOKENS as usize) < self.tokens.len()
    }

    /// Pages that its known tokens fill.
    fn known_pages(&self) -> usize {
        self.tokens.len().div_ceil(PAGE_TOKENS as usize)
    }

    /// Pages that it lacks: those of its known tokens and some ahead, but none beyond its end.
    fn missing_pages(&self) -> usize {
        let last = (self.limit as usize).div_ceil(PAGE_TOKENS as usize);
        (self.known_pages() + PAGES_AHEAD).min(last).saturating_sub(self.pages.len())
    }

    fn unfinished(&self) -> Unfinished {
        Unfinished {
            handle: self.handle,
            tokens: self.tokens.clone(),
            prompt_length: self.prompt_length as usize,
            tokens_left: self.limit.saturating_sub(self.tokens.len() as u32),
            sampling: self.sampling,
            stops: self.stops.iter().copied().filter(|stop| *stop != u32::MAX).collect(),
            is_cancelled: self.stage.is_cancelled(),
            is_held: self.is_held,
            is_parked: self.stage.is_parked(),
        }
    }
}

impl Roster {
    /// A roster of `slots` that run, `waiting_max` that wait and `kept_max` that are kept, each with at most `context`
    /// tokens and `pages_per_slot` of `pages`.
    pub fn new(
        [slots, waiting_max, kept_max]: [u32; 3],
        context: u32,
        pages_per_slot: u32,
        pages: PageAllocator,
    ) -> Roster {
        Roster {
            records: (0..slots + waiting_max + kept_max)
                .map(|_| Record::new(context, pages_per_slot))
                .collect(),
            slots: [None; SLOTS_MAX],
            slot_count: slots,
            live_max: slots + waiting_max,
            kept_max,
            pages,
            next_handle: 1,
            next_serial: NonZeroU32::MIN,
            next_age: 0,
        }
    }

    // ------------------------------------------------------------------------------------------------- reads

    /// Requests that have not ended.
    pub fn unfinished_count(&self) -> usize {
        self.records.iter().filter(|record| record.stage.is_live()).count()
    }

    /// Slots that a request holds.
    pub fn active_count(&self) -> u32 {
        self.slots.iter().filter(|slot| slot.is_some()).count() as u32
    }

    /// Pages of the cache.
    pub fn page_count(&self) -> u32 {
        self.pages.page_count()
    }

    /// Every known token of a request.
    pub fn tokens(&self, handle: Handle) -> Result<&[u32], SessionError> {
        Ok(&self.records[self.find(handle)?].tokens)
    }

    /// Positions of a running request that were not computed for it, because the pages of a kept request held them.
    pub fn found_positions(&self, handle: Handle) -> Result<u32, SessionError> {
        Ok(self.records[self.find(handle)?].found)
    }

    /// Requests that have not ended, the oldest first. Allocates.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        let mut left: Vec<_> = self.records.iter().filter(|record| record.stage.is_live()).collect();
        left.sort_by_key(|record| record.age);
        left.into_iter().map(Record::unfinished).collect()
    }

    /// Recounts all pages. Allocates.
    pub fn audit(&self) -> Audit {
        self.pages.audit()
    }

    fn find(&self, handle: Handle) -> Result<usize, SessionError> {
        let is_it = |record: &Record| record.stage.is_live() && record.handle == handle;
        self.records.iter().position(is_it).ok_or(SessionError::NoSuchRequest)
    }

    fn running(&self) -> impl Iterator<Item = (&Record, Asked)> {
        self.records.iter().filter_map(|record| match record.stage {
            Stage::Running { asked, .. } => Some((record, asked)),
            _ => None,
        })
    }

    // ------------------------------------------------------------------------------------ what the user asks

    /// Adds a request; `None` if as many run and wait as may.
    pub fn enqueue(&mut self, newcomer: &Newcomer<'_>) -> Option<Handle> {
        if self.unfinished_count() >= self.live_max as usize {
            return None;
        }
        let record = self.records.iter_mut().find(|record| record.stage == Stage::Free)?;
        record.stage = newcomer.stage;
        record.handle = Handle(self.next_handle);
        record.tokens.clear();
        record.tokens.extend_from_slice(newcomer.tokens);
        record.prompt_length = newcomer.prompt_length;
        record.limit = newcomer.limit;
        record.sampling = newcomer.sampling;
        record.stops = [u32::MAX; STOP_TOKENS_MAX];
        record.stops.iter_mut().zip(newcomer.stops).for_each(|(place, stop)| *place = *stop);
        record.age = self.next_age;
        record.is_held = newcomer.is_held;
        record.found = 0;
        self.next_handle += 1;
        self.next_age += 1;
        Some(record.handle)
    }

    /// The user cancels a request. Returns the seat whose request the device is to cancel.
    pub fn cancel(&mut self, handle: Handle) -> Result<Option<Seat>, SessionError> {
        let index = self.find(handle)?;
        let stage = &mut self.records[index].stage;
        *stage = stage.cancelled();
        Ok(stage.seat())
    }

    /// The user parks a request. Returns the seat whose request the device is to preempt.
    pub fn park(&mut self, handle: Handle) -> Result<Option<Seat>, SessionError> {
        let index = self.find(handle)?;
        let stage = &mut self.records[index].stage;
        let before = *stage;
        *stage = before.parked();
        Ok(match before {
            Stage::Running { seat, asked: Asked::Nothing } => Some(seat),
            _ => None,
        })
    }

    /// The user lets a request continue: see [`Roster::next_resume`].
    pub fn resume(&mut self, handle: Handle) -> Result<(), SessionError> {
        let index = self.find(handle)?;
        let stage = &mut self.records[index].stage;
        *stage = stage.resumed();
        Ok(())
    }

    /// The user holds a request back, or releases it. Returns the seat to notify the device of.
    pub fn hold(&mut self, handle: Handle, is_held: bool) -> Result<Option<Seat>, SessionError> {
        let index = self.find(handle)?;
        let record = &mut self.records[index];
        record.is_held = is_held;
        Ok(record.stage.seat())
    }

    // --------------------------------------------------------------------------------- slots, pages, resumes

    /// The request that gets a slot next: the oldest waiting one, if a slot is free and there are pages for all its
    /// known tokens. So a request that gave back its pages does not take them again at once.
    pub fn next_admission(&self) -> Option<NextAdmission> {
        let slot = Slot::first(self.slot_count).find(|slot| self.slots[slot.index()].is_none())?;
        let waits = |index: &usize| matches!(self.records[*index].stage, Stage::Waiting { .. });
        let index = (0..self.records.len()).filter(waits).min_by_key(|index| self.records[*index].age)?;
        let has_pages = self.free_pages() >= self.records[index].known_pages();
        has_pages.then_some(NextAdmission { index, slot })
    }

    /// Gives it the slot and its first pages.
    pub fn admit(&mut self, next: NextAdmission) -> Admission<'_> {
        let NextAdmission { index, slot } = next;
        let seat = Seat { slot, serial: self.next_serial };
        self.next_serial = self.next_serial.checked_add(1).unwrap_or(NonZeroU32::MIN);
        self.slots[slot.index()] = Some(index as u32);
        let position = self.take_over(index, seat);
        self.make_room(self.records[index].missing_pages());
        let record = &mut self.records[index];
        record.known_at_admission = record.tokens.len() as u32;
        record.found = position;
        let parks = record.stage.is_parked();
        let asked = if parks { Asked::Park { resumes: false } } else { Asked::Nothing };
        record.stage = Stage::Running { seat, asked };
        grant_pages(&mut self.pages, record, seat);
        let record = &self.records[index];
        Admission {
            seat,
            tokens: &record.tokens,
            stops: &record.stops,
            is_held: record.is_held,
            grant: (!record.pages.is_empty()).then_some(Grant { seat, first: 0, pages: &record.pages }),
            parks,
            limit: record.limit,
            position,
            sampling: &record.sampling,
        }
    }

    /// Gives the request in a slot, if one runs there and nothing is asked of it, the pages of its known tokens and
    /// some ahead, as long as any are free.
    pub fn grant(&mut self, slot: Slot) -> Option<Grant<'_>> {
        let index = self.slots[slot.index()]? as usize;
        let Stage::Running { seat, asked: Asked::Nothing } = self.records[index].stage else { return None };
        self.make_room(self.records[index].missing_pages());
        let first = grant_pages(&mut self.pages, &mut self.records[index], seat)?;
        Some(Grant { seat, first, pages: &self.records[index].pages[first..] })
    }

    /// If every running request has run out of pages, the youngest is to give back its own. Returns its seat, whose
    /// request the device is to cancel; it waits again when that is done.
    pub fn evict(&mut self) -> Option<Seat> {
        // A request that is about to leave frees pages soon: one at a time.
        if self.running().any(|(_, asked)| asked != Asked::Nothing) {
            return None;
        }
        let is_stuck = self.running().any(|(record, _)| record.is_starved())
            && self.running().all(|(record, _)| record.is_starved() || record.is_held);
        let has_parked = self.records.iter().any(|record| matches!(record.stage, Stage::Parked { .. }));
        if !is_stuck || (self.running().count() == 1 && !has_parked) {
            return None;
        }
        let runs = |record: &&mut Record| matches!(record.stage, Stage::Running { .. });
        let youngest = self.records.iter_mut().filter(runs).max_by_key(|record| record.age)?;
        let seat = youngest.stage.seat()?;
        youngest.stage = Stage::Running { seat, asked: Asked::Requeue { parks: false } };
        Some(seat)
    }

    /// A parked request that is to continue.
    pub fn next_resume(&self) -> Option<NextResume> {
        let next = |(index, record): (usize, &Record)| match record.stage {
            Stage::Parked { seat, position, wish: Wish::Resume } => {
                Some(NextResume { index, seat, position })
            }
            _ => None,
        };
        self.records.iter().enumerate().find_map(next)
    }

    /// The device has been told to let it continue.
    pub fn resumed(&mut self, next: NextResume) {
        self.records[next.index].stage = Stage::Running { seat: next.seat, asked: Asked::Nothing };
    }

    // ------------------------------------------------------------------------------- what the device tells

    /// Takes an event of the device and returns the user's event, if any. An event that no running request can have is
    /// an error.
    pub fn take(&mut self, told: &protocol::Event) -> Result<Option<Event>, SessionError> {
        let (slot, serial) = told.request();
        let unknown = SessionError::Protocol { slot: slot.number(), serial };
        let Some(index) = self.slots[slot.index()] else { return Err(unknown) };
        let record = &mut self.records[index as usize];
        let Some(seat) = record.stage.seat().filter(|seat| seat.serial.get() == serial) else {
            return Err(unknown);
        };
        let handle = record.handle;
        match *told {
            protocol::Event::Token { token, index, .. } => {
                if index as usize != record.tokens.len() || index >= record.limit {
                    return Err(unknown);
                }
                record.tokens.push(token);
                Ok(Some(Event::Token { handle, token, index }))
            }
            protocol::Event::Preempted { position, index, .. } => {
                let known = record.tokens.len();
                if index as usize + 1 != known || position as usize >= known {
                    return Err(unknown);
                }
                let (wish, event) = match record.stage {
                    Stage::Running { asked: Asked::Park { resumes: true }, .. } => {
                        (Wish::Resume, Some(Event::Parked { handle }))
                    }
                    Stage::Running { asked: Asked::Park { resumes: false }, .. } => {
                        (Wish::Stay, Some(Event::Parked { handle }))
                    }
                    Stage::Running { asked: Asked::Cancel, .. } => (Wish::Cancel, None),
                    _ => return Err(unknown),
                };
                record.stage = Stage::Parked { seat, position, wish };
                Ok(event)
            }
            protocol::Event::Finished { reason, known, .. } => {
                let is_short = reason == FinishReason::Length && known < record.limit;
                let delivered = record.tokens.len();
                // A slot that is cancelled may hold a token that found no place in the ring: PLAN has counted it.
                let is_undelivered = reason == FinishReason::Cancelled && known as usize == delivered + 1;
                if known as usize != delivered && !is_undelivered || is_short {
                    return Err(unknown);
                }
                Ok(self.finished(index as usize, seat, reason))
            }
        }
    }

    fn finished(&mut self, index: usize, seat: Seat, reason: FinishReason) -> Option<Event> {
        self.slots[seat.slot.index()] = None;
        let Record { stage, handle, .. } = self.records[index];
        if let Stage::Running { asked: Asked::Requeue { parks }, .. } = stage
            && reason == FinishReason::Cancelled
        {
            self.give_back(index, seat);
            self.records[index].stage = Stage::Waiting { parks };
            self.records[index].found = 0;
            return None;
        }
        self.keep(index, seat);
        Some(Event::Finished { handle, reason })
    }

    /// Reports the ends of requests that ended without a slot, as many as fit; returns their number.
    pub fn tell_ended(&mut self, events: &mut [Event]) -> usize {
        let mut places = events.iter_mut();
        let mut count = 0;
        for record in &mut self.records {
            let Stage::Ended(reason) = record.stage else { continue };
            let Some(place) = places.next() else { break };
            *place = Event::Finished { handle: record.handle, reason };
            record.stage = Stage::Free;
            count += 1;
        }
        count
    }
}

/// Gives a request the pages that it lacks, as many as are free; returns the index of the first, or `None` if it got
/// none.
fn grant_pages(pages: &mut PageAllocator, record: &mut Record, seat: Seat) -> Option<usize> {
    let first = record.pages.len();
    let count = record.missing_pages().min(pages.free_count() as usize);
    if count == 0 || pages.grant(seat.owner(), count as u32, &mut record.pages).is_err() {
        return None;
    }
    Some(first)
}

#[cfg(test)]
mod tests;
