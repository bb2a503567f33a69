//! Which memory of the process may be lent by address.
//!
//! Contract: a request names lent memory (USERPTR) by a number, and a number proves nothing. Memory is mapped
//! twice, or its pages are exchanged, only if each byte of it was offered: either by a [`Mapping`](super::Mapping),
//! reachable through views alone, for as long as it is mapped; or by [`offer`], whose caller vouches for all its
//! users. Offered memory stays in place while `lending` is held. Cost: a lock and an entry for each writable
//! mapping; set-up only.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Memory that may be lent and memory that is lent, as first byte and length.
#[derive(Debug)]
pub(super) struct Lending {
    pub offered: Vec<(u64, usize)>,
    pub loans: Vec<(u64, usize)>,
}

static LENDING: Mutex<Lending> = Mutex::new(Lending { offered: Vec::new(), loans: Vec::new() });

/// Offers memory outside any [`Mapping`](super::Mapping) for the rest of the process, such as a C library's heap.
///
/// # Safety
/// From now on, every access to the `len` bytes at `address`, whatever is mapped there, must be valid for memory
/// that others read and write at any time: by atomics, or from outside of Rust.
pub unsafe fn offer(address: u64, len: usize) {
    lending().offered.push((address, len));
}

pub(super) fn lending() -> MutexGuard<'static, Lending> {
    // Every change is a single call, so the lists are valid after any panic.
    LENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Lending {
    /// True if every byte was offered.
    pub fn allows(&self, address: u64, len: usize) -> bool {
        address.checked_add(len as u64).is_some_and(|end| uncovered(address, end, &self.offered).is_empty())
    }

    /// Withdraws an offer.
    pub fn withdraw(&mut self, address: u64, len: usize) {
        if let Some(at) = self.offered.iter().position(|offer| *offer == (address, len)) {
            self.offered.swap_remove(at);
        }
    }
}

/// The parts of `start..end` covered by none of the ranges.
pub(super) fn uncovered(start: u64, end: u64, ranges: &[(u64, usize)]) -> Vec<(u64, u64)> {
    let mut free = vec![(start, end)];
    let ranges = ranges.iter().map(|(address, len)| (*address, address.saturating_add(*len as u64)));
    for (from, to) in ranges {
        let cut = |(start, end): (u64, u64)| [(start, end.min(from)), (start.max(to), end)];
        free = free.into_iter().flat_map(cut).filter(|(start, end)| start < end).collect();
    }
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_outside_of_other_ranges() {
        assert_eq!(uncovered(10, 20, &[]), [(10, 20)]);
        assert_eq!(uncovered(10, 20, &[(0, 10), (20, 5)]), [(10, 20)]);
        assert_eq!(uncovered(10, 20, &[(5, 7), (18, 9)]), [(12, 18)]);
        assert_eq!(uncovered(10, 20, &[(12, 2), (16, 2)]), [(10, 12), (14, 16), (18, 20)]);
        assert_eq!(uncovered(10, 20, &[(12, 2), (5, 100)]), []);
        assert_eq!(uncovered(10, 20, &[(15, usize::MAX)]), [(10, 15)], "past the end of the address space");
    }

    #[test]
    fn every_byte_must_have_been_offered() {
        let lending = |offered: &[(u64, usize)]| Lending { offered: offered.to_vec(), loans: Vec::new() };
        let side_by_side = lending(&[(0x3000, 0x1000), (0x1000, 0x2000)]);
        assert!(side_by_side.allows(0x1000, 0x3000) && side_by_side.allows(0x2fff, 2));
        assert!(!side_by_side.allows(0xfff, 2) && !side_by_side.allows(0x3fff, 2));
        assert!(!lending(&[(0x1000, 0x1000), (0x3000, 0x1000)]).allows(0x1000, 0x3000), "a gap");
        assert!(!lending(&[(0, usize::MAX)]).allows(u64::MAX, 2), "past the end of the address space");
        let mut withdrawn = lending(&[(0x1000, 0x1000), (0x1000, 0x2000)]);
        withdrawn.withdraw(0x1000, 0x2000);
        withdrawn.withdraw(0x7000, 0x1000);
        assert_eq!(withdrawn.offered, [(0x1000, 0x1000)]);
    }
}
