//! The host's allocator of fixed-size pages, such as those of the key-value cache.
//!
//! A page is either free or held by owners. An owner is a slot and the serial number of the request in it. A grant
//! gives pages to one owner. Sharing lets further owners hold the same page, each with its own reference. A page
//! becomes free when its last reference is released. An owner may hold several references to one page and must
//! release each. A held page belongs to one of its holders: first to the owner it was granted to and, once that
//! owner's last reference is released, to the most recent other holder.
//!
//! Contract: a call either does all that it says, or returns an error and changes nothing. Nothing allocates after
//! construction, except [`PageAllocator::audit`], and [`PageAllocator::grant`] if the caller's vector lacks room.
//!
//! Cost: grant O(1) per page; share O(1); release O(references of the page); release_all O(references of the owners
//! in the slot, and in slots equal to it modulo 64) plus, for each reference released, O(references of its page);
//! audit O(pages + references). Host memory: 36 bytes per page and 24 per possible share.

use crate::random::Random;
use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;

/// Marks the absence of a page or a holding.
const NONE: u32 = u32::MAX;
/// Lists of holdings by slot. With at most this many slots, each list belongs to one slot.
const LISTS: usize = 64;
/// Upper limit of an allocator's pages and, separately, of its shares: 1 GiB of host memory at 36 bytes per page
/// and 24 per share. A card of 32 GiB has that many pages of 2 KiB.
pub const COUNT_MAX: u32 = 1 << 24;

/// Who holds a page: the request with this serial number, in this slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Owner {
    /// Slot.
    pub slot: u32,
    /// Serial number of the request, never 0.
    pub serial: u32,
}

/// A page that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The owner that the page belongs to.
    pub owner: Owner,
    /// References of all owners together, at least 1.
    pub references: u32,
}

/// Why an allocator of the requested size cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CountError {
    /// More pages or shares than an allocator can have.
    #[error("{pages} pages and {shares} shares: an allocator has at most {COUNT_MAX} of each")]
    TooMany {
        /// Pages requested.
        pages: u32,
        /// Shares requested.
        shares: u32,
    },
    /// The host has no memory for the allocator's lists.
    #[error("the host has no memory for the lists of {pages} pages and {shares} shares")]
    Memory {
        /// Pages requested.
        pages: u32,
        /// Shares requested.
        shares: u32,
    },
}

/// A grant requested more pages than are free.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wanted} pages are wanted, {free} are free")]
pub struct Exhausted {
    /// Pages requested.
    pub wanted: u32,
    /// Pages that were free, and still are.
    pub free: u32,
}

/// A call about a page was wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PageError {
    /// The page does not exist.
    #[error("page {page} does not exist: there are {pages}")]
    Unknown {
        /// The number given.
        page: u32,
        /// Number of pages.
        pages: u32,
    },
    /// Nobody holds the page: it was released before, or never granted.
    #[error("page {page} is free")]
    Free {
        /// The page.
        page: u32,
    },
    /// Others hold the page.
    #[error("page {page} is not held by {by:?}, but by {owner:?}")]
    NotOwner {
        /// The page.
        page: u32,
        /// The owner given.
        by: Owner,
        /// The owner that the page belongs to.
        owner: Owner,
    },
    /// The allocator's limit of shares is reached.
    #[error("{limit} shares exist already")]
    SharesExhausted {
        /// Shares that may exist.
        limit: u32,
    },
}

/// References of one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leak {
    /// The owner.
    pub owner: Owner,
    /// References that the owner holds.
    pub references: u32,
}

/// What [`PageAllocator::audit`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Audit {
    /// Pages that are free.
    pub free: u32,
    /// Pages that are held.
    pub held: u32,
    /// Owners that hold references, ascending.
    pub leaks: Vec<Leak>,
    /// Inconsistent pages: neither free nor held, both, or with a wrong count. Always 0.
    pub broken: u32,
}

impl Audit {
    /// True if nobody holds anything and every page is free.
    pub fn is_clean(&self) -> bool {
        self.held == 0 && self.leaks.is_empty() && self.broken == 0
    }
}

/// One reference of one owner to one page.
#[derive(Clone, Copy, Debug)]
struct Holding {
    owner: Owner,
    page: u32,
    /// The page's next holding.
    next_of_page: u32,
    /// Neighbours in the list of the owner's slot. Unused holdings are chained by `next`.
    next: u32,
    previous: u32,
}

#[derive(Clone, Copy, Debug)]
struct Page {
    /// The holding of the page's owner; the others follow, newest first. [`NONE`] for a free page.
    first: u32,
    references: u32,
}

/// The allocator. See the module documentation.
#[derive(Debug)]
pub struct PageAllocator {
    pages: Vec<Page>,
    /// Free pages; the next to be granted is the last.
    free: Vec<u32>,
    holdings: Vec<Holding>,
    unused_holding: u32,
    lists: [u32; LISTS],
    /// References beyond the first of each page.
    shares: u32,
    share_limit: u32,
    /// The shuffled order, if any.
    order: Option<Random>,
}

impl PageAllocator {
    /// An allocator with `pages` free pages, at most [`COUNT_MAX`]. Pages are granted from 0 upwards, and the page
    /// released last is granted first. There may be as many shares as pages.
    pub fn new(pages: u32) -> Result<PageAllocator, CountError> {
        PageAllocator::with_share_limit(pages, pages)
    }

    /// Like [`PageAllocator::new`], with a limit of `share_limit` shares (references beyond the first of each
    /// page), at most [`COUNT_MAX`].
    pub fn with_share_limit(pages: u32, share_limit: u32) -> Result<PageAllocator, CountError> {
        let count = holding_count(pages, share_limit)?;
        let memory = |_| CountError::Memory { pages, shares: share_limit };
        let (mut all, mut free, mut holdings) = (Vec::new(), Vec::new(), Vec::new());
        all.try_reserve_exact(pages as usize).map_err(memory)?;
        free.try_reserve_exact(pages as usize).map_err(memory)?;
        holdings.try_reserve_exact(count as usize).map_err(memory)?;
        let unused = |index| Holding {
            owner: Owner { slot: 0, serial: 0 },
            page: NONE,
            next_of_page: NONE,
            // The last holding's link points past the end and is never followed: there is a holding for each
            // reference.
            next: index + 1,
            previous: NONE,
        };
        all.resize(pages as usize, Page { first: NONE, references: 0 });
        free.extend((0..pages).rev());
        holdings.extend((0..count).map(unused));
        Ok(PageAllocator {
            pages: all,
            free,
            holdings,
            unused_holding: 0,
            lists: [NONE; LISTS],
            shares: 0,
            share_limit,
            order: None,
        })
    }

    /// Grants pages in an order that looks random and depends only on the seed. This produces the layouts of long
    /// runs from the start. Must be called before the first grant.
    #[must_use]
    pub fn with_order_seed(mut self, seed: u64) -> PageAllocator {
        let mut order = Random::new(seed);
        for index in (1..self.free.len()).rev() {
            self.free.swap(index, order.below(index as u32 + 1) as usize);
        }
        self.order = Some(order);
        self
    }

    /// Number of pages.
    pub fn page_count(&self) -> u32 {
        self.pages.len() as u32
    }

    /// Number of free pages.
    pub fn free_count(&self) -> u32 {
        self.free.len() as u32
    }

    /// Who holds a page; `None` if it is free or does not exist.
    pub fn held(&self, page: u32) -> Option<Held> {
        let Page { first, references } = *self.pages.get(page as usize)?;
        let owner = self.holdings.get(first as usize)?.owner;
        Some(Held { owner, references })
    }

    /// Grants `count` pages to `owner` and appends them to `out`, or grants none.
    pub fn grant(&mut self, owner: Owner, count: u32, out: &mut Vec<u32>) -> Result<(), Exhausted> {
        let free = self.free_count();
        let Some(rest) = free.checked_sub(count) else {
            return Err(Exhausted { wanted: count, free });
        };
        out.reserve(count as usize);
        for index in (rest..free).rev() {
            let page = self.free[index as usize];
            self.attach(page, owner);
            out.push(page);
        }
        self.free.truncate(rest as usize);
        Ok(())
    }

    /// Gives `owner` a reference to a page that is held.
    pub fn share(&mut self, page: u32, owner: Owner) -> Result<(), PageError> {
        self.first_owner(page)?;
        if self.shares == self.share_limit {
            return Err(PageError::SharesExhausted { limit: self.share_limit });
        }
        self.shares += 1;
        self.attach(page, owner);
        Ok(())
    }

    /// Releases the newest reference of `owner` to a page. The page is free after the last one.
    pub fn release(&mut self, page: u32, owner: Owner) -> Result<(), PageError> {
        let first = self.first_owner(page)?;
        let first_holding = self.pages[page as usize].first;
        let mut holding = self.holdings[first_holding as usize].next_of_page;
        while holding != NONE && self.holdings[holding as usize].owner != owner {
            holding = self.holdings[holding as usize].next_of_page;
        }
        if holding == NONE && first != owner {
            return Err(PageError::NotOwner { page, by: owner, owner: first });
        }
        self.detach(if holding == NONE { first_holding } else { holding });
        Ok(())
    }

    /// Makes a reference of `from` to a page one of `to`. Needs room for one more share meanwhile.
    pub fn hand_over(&mut self, page: u32, from: Owner, to: Owner) -> Result<(), PageError> {
        self.share(page, to)?;
        self.release(page, from).inspect_err(|_| {
            // The newest reference of `to` is the one just added.
            let undone = self.release(page, to);
            debug_assert!(undone.is_ok());
        })
    }

    /// Releases every reference of `owner`. Returns their number.
    pub fn release_all(&mut self, owner: Owner) -> u32 {
        let mut released = 0;
        let mut holding = self.lists[list_of(owner)];
        while holding != NONE {
            let next = self.holdings[holding as usize].next;
            if self.holdings[holding as usize].owner == owner {
                self.detach(holding);
                released += 1;
            }
            holding = next;
        }
        released
    }

    /// Recounts everything from the pages, the free list and the holdings, and compares.
    pub fn audit(&self) -> Audit {
        let mut by_owner: BTreeMap<Owner, u32> = BTreeMap::new();
        let mut listed = vec![0u32; self.pages.len()];
        for first in self.lists {
            let mut holding = first;
            while let Some(Holding { owner, page, next, .. }) = self.holdings.get(holding as usize) {
                *by_owner.entry(*owner).or_default() += 1;
                if let Some(count) = listed.get_mut(*page as usize) {
                    *count += 1;
                }
                holding = *next;
            }
        }
        let mut times_free = vec![0u32; self.pages.len()];
        for page in &self.free {
            times_free[*page as usize] += 1;
        }
        let (mut held, mut broken) = (0, 0);
        for (page, Page { first, references }) in self.pages.iter().enumerate() {
            let mut chained = 0;
            let mut holding = *first;
            while let Some(Holding { next_of_page, .. }) = self.holdings.get(holding as usize) {
                chained += 1;
                holding = *next_of_page;
            }
            held += u32::from(*references > 0);
            let agrees = *references == chained && *references == listed[page];
            broken += u32::from(!agrees || times_free[page] != u32::from(*references == 0));
        }
        let leaks = by_owner.into_iter().map(|(owner, references)| Leak { owner, references }).collect();
        Audit { free: self.free_count(), held, leaks, broken }
    }

    /// The owner that the page belongs to.
    fn first_owner(&self, page: u32) -> Result<Owner, PageError> {
        if page >= self.page_count() {
            return Err(PageError::Unknown { page, pages: self.page_count() });
        }
        self.held(page).map(|held| held.owner).ok_or(PageError::Free { page })
    }

    /// Adds a reference. An unused holding always exists: there are as many as pages and shares together.
    fn attach(&mut self, page: u32, owner: Owner) {
        let index = self.unused_holding;
        let (list, first) = (list_of(owner), self.pages[page as usize].first);
        let neighbour = self.lists[list];
        // The new holding goes after the first, which stays first for as long as its owner holds the page.
        let next_of_page = match first {
            NONE => NONE,
            _ => core::mem::replace(&mut self.holdings[first as usize].next_of_page, index),
        };
        let unused = core::mem::replace(
            &mut self.holdings[index as usize],
            Holding { owner, page, next_of_page, next: neighbour, previous: NONE },
        );
        self.unused_holding = unused.next;
        if neighbour != NONE {
            self.holdings[neighbour as usize].previous = index;
        }
        self.lists[list] = index;
        let state = &mut self.pages[page as usize];
        state.references += 1;
        if first == NONE {
            state.first = index;
        }
    }

    /// Ends a holding, and frees its page if it was the last one.
    fn detach(&mut self, index: u32) {
        let Holding { owner, page, next_of_page, next, previous } = self.holdings[index as usize];
        match previous {
            NONE => self.lists[list_of(owner)] = next,
            _ => self.holdings[previous as usize].next = next,
        }
        if next != NONE {
            self.holdings[next as usize].previous = previous;
        }
        if self.pages[page as usize].first == index {
            self.pages[page as usize].first = next_of_page;
        } else {
            let mut before = self.pages[page as usize].first;
            while self.holdings[before as usize].next_of_page != index {
                before = self.holdings[before as usize].next_of_page;
            }
            self.holdings[before as usize].next_of_page = next_of_page;
        }
        self.holdings[index as usize].next = self.unused_holding;
        self.unused_holding = index;
        self.pages[page as usize].references -= 1;
        if self.pages[page as usize].references == 0 {
            self.put_back(page);
        } else {
            self.shares -= 1;
        }
    }

    /// Returns a page to the free list: it is granted next, or goes to a random place if the order is shuffled.
    fn put_back(&mut self, page: u32) {
        self.free.push(page);
        let count = self.free_count();
        if let Some(order) = &mut self.order {
            self.free.swap(count as usize - 1, order.below(count) as usize);
        }
    }
}

/// Most references that can exist at a time.
fn holding_count(pages: u32, share_limit: u32) -> Result<u32, CountError> {
    if pages > COUNT_MAX || share_limit > COUNT_MAX {
        return Err(CountError::TooMany { pages, shares: share_limit });
    }
    Ok(pages + share_limit)
}

fn list_of(owner: Owner) -> usize {
    owner.slot as usize % LISTS
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: Owner = Owner { slot: 3, serial: 8 };

    /// The allocator itself is not made here: at the limits it fills a gibibyte.
    #[test]
    fn there_are_at_most_2_to_the_24_pages_and_as_many_shares() {
        const MOST: u32 = 0x100_0000;
        assert_eq!(holding_count(MOST, MOST), Ok(2 * MOST));
        for (pages, shares) in [(MOST + 1, 0), (0, MOST + 1), (u32::MAX, u32::MAX)] {
            assert_eq!(holding_count(pages, shares), Err(CountError::TooMany { pages, shares }));
            let refused = PageAllocator::with_share_limit(pages, shares).err();
            assert_eq!(refused, Some(CountError::TooMany { pages, shares }));
        }
    }

    /// The audit does not trust the counters: it sees each kind of contradiction.
    #[test]
    fn audit_sees_planted_contradictions() {
        let plants: [fn(&mut PageAllocator); 5] = [
            |pages| pages.pages[1].references += 1,
            |pages| pages.pages[0].first = NONE,
            |pages| pages.lists[3] = NONE,
            |pages| pages.free.push(0),
            |pages| pages.free.truncate(1),
        ];
        for (number, plant) in plants.into_iter().enumerate() {
            let mut pages = PageAllocator::new(4).expect("a small number");
            pages.grant(OWNER, 2, &mut Vec::new()).expect("free");
            assert_eq!(pages.audit().broken, 0);
            plant(&mut pages);
            assert!(pages.audit().broken > 0, "plant {number}");
        }
    }

    /// Each of the three figures counts on its own.
    #[test]
    fn an_audit_is_clean_where_nothing_is_held_leaked_or_broken() {
        let clean = Audit { free: 1, held: 0, leaks: Vec::new(), broken: 0 };
        assert!(clean.is_clean());
        let leaks = vec![Leak { owner: OWNER, references: 1 }];
        assert!(!Audit { held: 1, ..clean.clone() }.is_clean());
        assert!(!Audit { leaks, ..clean.clone() }.is_clean());
        assert!(!Audit { broken: 1, ..clean }.is_clean());
    }

    /// Three pages have six orders; each occurs with some seed.
    #[test]
    fn every_order_can_be_drawn() {
        let orders: alloc::collections::BTreeSet<Vec<u32>> = (0..100)
            .map(|seed| {
                let mut out = Vec::new();
                PageAllocator::new(3)
                    .expect("a small number")
                    .with_order_seed(seed)
                    .grant(OWNER, 3, &mut out)
                    .expect("free");
                out
            })
            .collect();
        assert_eq!(orders.len(), 6);
    }

    #[test]
    fn nothing_allocates_after_construction() {
        let mut pages = PageAllocator::with_share_limit(100, 3).expect("a small number").with_order_seed(1);
        let rooms = |pages: &PageAllocator| {
            [pages.pages.capacity(), pages.free.capacity(), pages.holdings.capacity()]
        };
        let (before, mut out) = (rooms(&pages), Vec::with_capacity(100));
        for _ in 0..3 {
            out.clear();
            pages.grant(OWNER, 100, &mut out).expect("free");
            (0..3).for_each(|page| pages.share(page, OWNER).expect("held"));
            assert_eq!(pages.release_all(OWNER), 103);
        }
        assert_eq!((rooms(&pages), out.capacity()), (before, 100));
    }
}
