//! Slots and pages: which requests run, and with how many pages.
//!
//! Contract: allocates nothing. A request holds the pages of its known tokens and [`PAGES_AHEAD`] more, as long as there are
//! any; one that finds none stands still alone. Where every running request does, the youngest gives its pages back.

use super::request::{Leaving, Place};
use super::{Session, SessionError};
use crate::memory_plan::AllocationId;
use std::num::NonZeroU32;
use zerocopy::IntoBytes;
use zrt_mem::pages::Owner;
use zrt_protocol::{Command, PAGE_TOKENS, STOP_TOKENS_MAX, Slot};

/// Pages that a request holds beyond those that its known tokens fill.
const PAGES_AHEAD: usize = 1;

impl Session {
    /// Gives every running request the pages of its known tokens and some ahead. A request that finds none stands
    /// still alone; where all do, the youngest gives its pages back and waits anew.
    pub(super) fn grant(&mut self) -> Result<(), SessionError> {
        for slot in 0..self.options.slots {
            if let Some(index) = self.slots[slot as usize] {
                self.grant_slot(slot, index as usize)?;
            }
        }
        let running = || self.records.iter().filter(|one| matches!(one.place, Place::Running { .. }));
        // Whoever is about to leave frees pages soon: one at a time.
        if running().any(|one| one.leaving != Leaving::No) {
            return Ok(());
        }
        let is_stuck =
            running().any(|one| one.is_starved) && running().all(|one| one.is_starved || one.is_held);
        let parked = self.records.iter().any(|one| matches!(one.place, Place::Parked { .. }));
        if is_stuck && (running().count() > 1 || parked) {
            let youngest = (0..self.records.len())
                .filter(|at| matches!(self.records[*at].place, Place::Running { .. }))
                .filter(|at| self.records[*at].leaving == Leaving::No)
                .max_by_key(|at| self.records[*at].age);
            if let Some(index) = youngest {
                self.requeue(index)?;
            }
        }
        Ok(())
    }

    fn grant_slot(&mut self, slot: u32, index: usize) -> Result<(), SessionError> {
        let record = &mut self.records[index];
        if !matches!(record.place, Place::Running { .. }) || record.leaving != Leaving::No {
            return Ok(());
        }
        let page_tokens = PAGE_TOKENS as usize;
        let last = (record.limit as usize).div_ceil(page_tokens);
        let needed = (record.tokens.len().div_ceil(page_tokens) + PAGES_AHEAD).min(last);
        let Some(missing) = needed.checked_sub(record.pages.len()).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let count = missing.min(self.pages.free_count() as usize);
        let first = record.pages.len();
        // Starved: it cannot even take in its last known token.
        record.is_starved = (first + count) * page_tokens < record.tokens.len();
        let owner = Owner { slot, serial: record.serial };
        self.granted.clear();
        if count == 0 || self.pages.grant(owner, count as u32, &mut self.granted).is_err() {
            return Ok(());
        }
        record.pages.extend_from_slice(&self.granted);
        let offset = u64::from(slot * self.resident.memory.pages_per_slot) * 4 + first as u64 * 4;
        self.resident.upload(AllocationId::HostPages, offset, self.granted.as_bytes())?;
        if let Some(serial) = NonZeroU32::new(record.serial) {
            self.control.slot(slot)?.grant(serial, record.pages.len() as u32)?;
        }
        Ok(())
    }

    /// Takes slot and pages from a running request; it goes back to the queue and is computed again from its tokens.
    fn requeue(&mut self, index: usize) -> Result<(), SessionError> {
        let record = &mut self.records[index];
        record.leaving = Leaving::Requeued;
        if let (Some(slot), Some(serial)) = (record.slot(), NonZeroU32::new(record.serial)) {
            self.control.slot(slot)?.cancel(serial);
        }
        Ok(())
    }

    /// Lets parked requests go on that are to, as far as the device takes commands.
    pub(super) fn resume_parked(&mut self) -> Result<(), SessionError> {
        for record in &mut self.records {
            let Place::Parked { slot } = record.place else { continue };
            if !record.resumes || record.leaving != Leaving::No {
                continue;
            }
            if self.input.free()? == 0 {
                return Ok(());
            }
            self.control.slot(slot)?.run();
            // Where it stood may be in the middle of its prompt.
            let (serial, position) = (record.serial, record.parked_position);
            self.input.push(&Command::Resume { slot: protocol_slot(slot)?, serial, position })?;
            record.resumes = false;
            record.place = Place::Running { slot };
            self.resident.device.flush();
        }
        Ok(())
    }

    /// Gives slots to waiting requests, the oldest first, as long as there is a page for each.
    pub(super) fn admit(&mut self) -> Result<(), SessionError> {
        loop {
            let slot = (0..self.options.slots).find(|slot| self.slots[*slot as usize].is_none());
            let oldest = (0..self.records.len())
                .filter(|at| self.records[*at].place == Place::Waiting)
                .filter(|at| self.records[*at].leaving == Leaving::No)
                .min_by_key(|at| self.records[*at].age);
            let (Some(slot), Some(index)) = (slot, oldest) else { return Ok(()) };
            // Room for all that is known, so that a request that gave its pages back does not take them again at once.
            let known_pages = self.records[index].tokens.len().div_ceil(PAGE_TOKENS as usize);
            if (self.pages.free_count() as usize) < known_pages {
                return Ok(());
            }
            if self.input.free()? == 0 {
                return Ok(());
            }
            self.admit_to(slot, index)?;
        }
    }

    fn admit_to(&mut self, slot: u32, index: usize) -> Result<(), SessionError> {
        let record = &mut self.records[index];
        record.serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1).max(1);
        record.place = Place::Running { slot };
        record.is_starved = false;
        self.slots[slot as usize] = Some(index as u32);
        let first_token = u64::from(slot) * u64::from(self.options.context);
        self.resident.upload(AllocationId::Tokens, first_token * 4, record.tokens.as_bytes())?;
        let stops_offset = u64::from(slot) * STOP_TOKENS_MAX as u64 * 4;
        self.resident.upload(AllocationId::Stops, stops_offset, record.stops.as_bytes())?;
        let command = Command::Admit {
            slot: protocol_slot(slot)?,
            serial: record.serial,
            known: record.tokens.len() as u32,
            limit: record.limit,
            draws: record.sampling.draws(),
        };
        let mut line = self.control.slot(slot)?;
        line.renew();
        if let (true, Some(serial)) = (record.is_held, NonZeroU32::new(record.serial)) {
            line.hold(serial);
        }
        self.grant_slot(slot, index)?;
        let record = &mut self.records[index];
        if let (true, Some(serial)) = (record.parks_at_once, NonZeroU32::new(record.serial)) {
            record.parks_at_once = false;
            record.leaving = Leaving::Parking;
            self.control.slot(slot)?.preempt(serial);
        }
        self.input.push(&command)?;
        self.resident.device.flush();
        Ok(())
    }
}

fn protocol_slot(slot: u32) -> Result<Slot, SessionError> {
    Slot::new(slot).ok_or(SessionError::Protocol { slot, serial: 0 })
}
