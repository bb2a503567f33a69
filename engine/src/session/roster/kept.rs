//! Ended requests that are kept: their pages serve a request that begins with the same tokens.
//!
//! Contract: as the roster's. A kept request has one successor or none: its pages are handed over, not shared, because
//! the successor writes on in the last of them. What a request receives does not depend on it: keys and values are the
//! same bits in whatever steps they were computed.
//!
//! Cost: a request that gets a slot is compared with each kept one up to the first token that differs. Forgetting one
//! visits every record.

use super::{Record, Roster, Seat, Stage};
use zrt_mem::pages::PageAllocator;
use zrt_protocol::PAGE_TOKENS;

impl Record {
    /// Positions whose keys and values its pages hold, when it ends. The last token's row was not computed; before the
    /// first choice is delivered, only what was found is certain.
    fn ready(&self) -> u32 {
        let known = self.tokens.len() as u32;
        if known > self.known_at_admission { known - 1 } else { self.found }
    }

    /// Positions of a kept request that serve a request with these tokens, whose last row is always computed.
    fn common(&self, ready: u32, tokens: &[u32]) -> u32 {
        let most = (ready as usize).min(tokens.len().saturating_sub(1));
        self.tokens[..most].iter().zip(tokens).take_while(|(own, other)| own == other).count() as u32
    }
}

impl Roster {
    /// Keeps an ended request with the pages of what it has ready, or forgets it if there is nothing to keep.
    pub(super) fn keep(&mut self, index: usize, seat: Seat) {
        let ready = self.records[index].ready();
        if self.kept_max == 0 || ready == 0 {
            self.give_back(index, seat);
            self.records[index].stage = Stage::Free;
            return;
        }
        if self.kept().count() == self.kept_max as usize {
            self.forget_oldest();
        }
        let record = &mut self.records[index];
        release_from(&mut self.pages, record, seat, ready);
        record.stage = Stage::Kept { seat, ready };
        record.age = self.next_age;
        self.next_age += 1;
    }

    /// Gives a request the pages of the kept one that it has most tokens in common with, of those for which that is
    /// worth what is lost: at least half of the kept one. Returns the position from which on it has to be computed.
    pub(super) fn take_over(&mut self, index: usize, seat: Seat) -> u32 {
        let tokens = &self.records[index].tokens;
        let common = |(place, from, ready): (usize, Seat, u32)| {
            let kept = &self.records[place];
            (kept.common(ready, tokens), kept.age, ready, place, from)
        };
        // What is kept has at least one position that is ready.
        let is_worth_it =
            |(common, _, ready, ..): &(u32, u64, u32, usize, Seat)| *common >= ready.div_ceil(2);
        // Of equals the one that ended last.
        let best =
            self.kept().map(common).filter(is_worth_it).max_by_key(|(common, age, ..)| (*common, *age));
        let Some((common, _, _, place, from)) = best else { return 0 };
        let Ok([kept, record]) = self.records.get_disjoint_mut([place, index]) else { return 0 };
        release_from(&mut self.pages, kept, from, common);
        for page in &kept.pages {
            let handed = self.pages.hand_over(*page, from.owner(), seat.owner());
            debug_assert!(handed.is_ok(), "a kept request holds its pages");
        }
        std::mem::swap(&mut kept.pages, &mut record.pages);
        kept.stage = Stage::Free;
        common
    }

    /// Forgets kept requests until `count` pages are free, the oldest first.
    pub(super) fn make_room(&mut self, count: usize) {
        while (self.pages.free_count() as usize) < count && self.forget_oldest() {}
    }

    /// Forgets all kept requests; their pages are free.
    pub(in super::super) fn forget_kept(&mut self) {
        while self.forget_oldest() {}
    }

    /// Forgets the kept request that ended first; false if there is none.
    fn forget_oldest(&mut self) -> bool {
        let oldest = self.kept().min_by_key(|(index, ..)| self.records[*index].age);
        let Some((index, seat, _)) = oldest else { return false };
        self.give_back(index, seat);
        self.records[index].stage = Stage::Free;
        true
    }

    /// The kept requests: record, owner of their pages, positions that are ready.
    fn kept(&self) -> impl Iterator<Item = (usize, Seat, u32)> {
        self.records.iter().enumerate().filter_map(|(index, record)| match record.stage {
            Stage::Kept { seat, ready } => Some((index, seat, ready)),
            _ => None,
        })
    }

    /// Pages that a request can get: free ones, and those of kept requests.
    pub(super) fn free_pages(&self) -> usize {
        let kept: usize = self.kept().map(|(index, ..)| self.records[index].pages.len()).sum();
        self.pages.free_count() as usize + kept
    }

    pub(super) fn give_back(&mut self, index: usize, seat: Seat) {
        self.pages.release_all(seat.owner());
        self.records[index].pages.clear();
    }
}

/// Gives back the pages beyond those of the first `ready` positions.
fn release_from(pages: &mut PageAllocator, record: &mut Record, seat: Seat, ready: u32) {
    let rest = ready.div_ceil(PAGE_TOKENS) as usize;
    for page in record.pages.drain(rest.min(record.pages.len())..) {
        let released = pages.release(page, seat.owner());
        debug_assert!(released.is_ok(), "a request holds its pages");
    }
}
