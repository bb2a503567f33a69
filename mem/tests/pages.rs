//! The page allocator against a naive model: arbitrary sequences of right and wrong calls, and every state of small
//! allocators.

#[path = "pages/every_state.rs"]
mod every_state;

use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use zrt_mem::pages::{self, Exhausted, Leak, Owner, PageAllocator, PageError};
use zrt_needs::Random;

fn owner(slot: u32, serial: u32) -> Owner {
    Owner { slot, serial }
}

// ----------------------------------------------------------------------------------------------------- model

/// The holders of a page that is held.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Held {
    owner: Owner,
    /// Later holders, the newest last.
    others: Vec<Owner>,
}

/// The allocator as its documentation describes it, by search through all pages.
#[derive(Clone, Debug)]
struct Model {
    pages: u32,
    share_limit: u32,
    held: BTreeMap<u32, Held>,
}

impl Model {
    fn shares(&self) -> usize {
        self.held.values().map(|held| held.others.len()).sum()
    }

    fn free(&self) -> u32 {
        self.pages - self.held.len() as u32
    }

    fn get(&mut self, page: u32) -> Result<&mut Held, PageError> {
        if page >= self.pages {
            return Err(PageError::Unknown { page, pages: self.pages });
        }
        self.held.get_mut(&page).ok_or(PageError::Free { page })
    }

    /// The allocator may grant any free pages.
    fn grant(&mut self, owner: Owner, granted: &[u32]) {
        for page in granted {
            assert!(*page < self.pages, "page {page} does not exist");
            let before = self.held.insert(*page, Held { owner, others: Vec::new() });
            assert_eq!(before, None, "page {page} is granted while it is held");
        }
    }

    fn share(&mut self, page: u32, owner: Owner) -> Result<(), PageError> {
        let is_full = self.shares() == self.share_limit as usize;
        let limit = self.share_limit;
        let held = self.get(page)?;
        if is_full {
            return Err(PageError::SharesExhausted { limit });
        }
        held.others.push(owner);
        Ok(())
    }

    fn release(&mut self, page: u32, by: Owner) -> Result<(), PageError> {
        let held = self.get(page)?;
        if let Some(index) = held.others.iter().rposition(|other| *other == by) {
            held.others.remove(index);
        } else if held.owner != by {
            return Err(PageError::NotOwner { page, by, owner: held.owner });
        } else if let Some(heir) = held.others.pop() {
            held.owner = heir;
        } else {
            self.held.remove(&page);
        }
        Ok(())
    }

    /// Room for one more share is needed meanwhile, and a call that is refused changes nothing.
    fn hand_over(&mut self, page: u32, from: Owner, to: Owner) -> Result<(), PageError> {
        let mut after = self.clone();
        after.share(page, to)?;
        after.release(page, from)?;
        *self = after;
        Ok(())
    }

    fn release_all(&mut self, by: Owner) -> u32 {
        let mut released = 0;
        for page in 0..self.pages {
            while self.release(page, by).is_ok() {
                released += 1;
            }
        }
        released
    }

    fn held(&self, page: u32) -> Option<pages::Held> {
        let held = self.held.get(&page)?;
        Some(pages::Held { owner: held.owner, references: 1 + held.others.len() as u32 })
    }

    fn leaks(&self) -> Vec<Leak> {
        let mut counts = BTreeMap::new();
        for held in self.held.values() {
            for owner in held.others.iter().chain([&held.owner]) {
                *counts.entry(*owner).or_default() += 1;
            }
        }
        counts.into_iter().map(|(owner, references)| Leak { owner, references }).collect()
    }
}

// ----------------------------------------------------------------------------------------------------- calls

#[derive(Clone, Debug)]
enum Call {
    Grant(Owner, u32),
    Share(u32, Owner),
    Release(u32, Owner),
    HandOver(u32, Owner, Owner),
    ReleaseAll(Owner),
}

/// Allocator and model.
struct Pair {
    allocator: PageAllocator,
    model: Model,
}

impl Pair {
    fn new(pages: u32, share_limit: u32, seed: Option<u64>) -> Pair {
        let mut allocator = PageAllocator::with_share_limit(pages, share_limit).expect("a small number");
        if let Some(seed) = seed {
            allocator = allocator.with_order_seed(seed);
        }
        Pair { allocator, model: Model { pages, share_limit, held: BTreeMap::new() } }
    }

    /// Makes the call on both, with the same result. Returns whether the call was valid.
    fn call(&mut self, call: &Call) -> bool {
        match *call {
            Call::Grant(owner, count) => {
                let (free, mut out) = (self.model.free(), vec![u32::MAX]);
                let found = self.allocator.grant(owner, count, &mut out);
                let is_possible = count <= free;
                assert_eq!(found, if is_possible { Ok(()) } else { Err(Exhausted { wanted: count, free }) });
                assert_eq!(out.len(), if is_possible { 1 + count as usize } else { 1 });
                assert_eq!(out[0], u32::MAX, "what the vector held stays");
                self.model.grant(owner, &out[1..]);
                is_possible
            }
            Call::Share(page, owner) => {
                let expected = self.model.share(page, owner);
                assert_eq!(self.allocator.share(page, owner), expected);
                expected.is_ok()
            }
            Call::Release(page, owner) => {
                let expected = self.model.release(page, owner);
                assert_eq!(self.allocator.release(page, owner), expected);
                expected.is_ok()
            }
            Call::HandOver(page, from, to) => {
                let expected = self.model.hand_over(page, from, to);
                assert_eq!(self.allocator.hand_over(page, from, to), expected);
                expected.is_ok()
            }
            Call::ReleaseAll(owner) => {
                let expected = self.model.release_all(owner);
                assert_eq!(self.allocator.release_all(owner), expected);
                expected > 0
            }
        }
    }

    /// Compares everything observable of the allocator with the model, also after a wrong call.
    fn compare(&self) {
        let audit = self.allocator.audit();
        assert_eq!((audit.free, audit.held), (self.model.free(), self.model.held.len() as u32));
        assert_eq!((audit.leaks.as_slice(), audit.broken), (self.model.leaks().as_slice(), 0));
        assert_eq!(audit.is_clean(), self.model.held.is_empty());
        assert_eq!(self.allocator.free_count(), self.model.free());
        for page in 0..self.model.pages {
            assert_eq!(self.allocator.held(page), self.model.held(page), "page {page}");
        }
        assert_eq!(self.allocator.held(self.model.pages), None);
    }

    /// Afterwards the audit is clean, and each page is free once.
    fn release_everything(mut self) {
        for Leak { owner, references } in self.model.leaks() {
            assert_eq!(self.allocator.release_all(owner), references);
        }
        let audit = self.allocator.audit();
        assert!(audit.is_clean() && audit.free == self.model.pages, "{audit:?}");
        let mut all = Vec::new();
        self.allocator.grant(owner(0, 1), self.model.pages, &mut all).expect("all are free");
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "each page once");
    }
}

/// Few pages and few owners, of which two share a slot and two share a list, so that calls interact.
fn any_owner() -> impl Strategy<Value = Owner> {
    prop::sample::select(vec![owner(0, 1), owner(1, 1), owner(1, 2), owner(65, 1), owner(u32::MAX, u32::MAX)])
}

fn any_page() -> impl Strategy<Value = u32> {
    prop_oneof![20 => 0..10u32, 1 => Just(u32::MAX)]
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        3 => (any_owner(), 0..6u32).prop_map(|(owner, count)| Call::Grant(owner, count)),
        3 => (any_page(), any_owner()).prop_map(|(page, owner)| Call::Share(page, owner)),
        6 => (any_page(), any_owner()).prop_map(|(page, owner)| Call::Release(page, owner)),
        2 => (any_page(), any_owner(), any_owner()).prop_map(|(page, from, to)| Call::HandOver(page, from, to)),
        1 => any_owner().prop_map(Call::ReleaseAll),
    ]
}

proptest! {
    #[test]
    fn any_calls_agree_with_the_model(
        (pages, share_limit) in (0..9u32, 0..6u32),
        seed in any::<Option<u64>>(),
        calls in prop::collection::vec(any_call(), 0..80),
    ) {
        let mut pair = Pair::new(pages, share_limit, seed);
        for call in &calls {
            pair.call(call);
            pair.compare();
        }
        pair.release_everything();
    }
}

// -------------------------------------------------------------------------------------------- long sequences

/// 5000 calls over 200 pages and 64 slots, as requests come and go; one call in four names a random page. The
/// result of each call is compared, and the whole state every 100 calls.
fn long_sequence(seed: u64) {
    let (pages, slots) = (200, 64);
    let mut random = Random::new(seed);
    let mut pair = Pair::new(pages, 100, (seed % 2 == 0).then_some(seed));
    let mut serials = vec![1u32; slots];
    let (mut right, mut wrong) = (0, 0);
    for number in 0..5000 {
        let slot = random.below(slots as u32);
        let who = owner(slot, serials[slot as usize]);
        let (any_page, kind) = (random.below(pages + 3), random.below(40));
        // A page that is held, and one of its holders.
        let held = pair.model.held.iter().cycle().nth(any_page as usize);
        let (page, holder) = held.map_or((any_page, who), |(page, held)| {
            let count = held.others.len() as u32;
            let holder = held.others.get(random.below(count + 1) as usize);
            (*page, *holder.unwrap_or(&held.owner))
        });
        let call = match kind {
            0..=11 => Call::Grant(who, random.below(9)),
            12..=16 => Call::Share(page, who),
            17..=19 => Call::Share(any_page, who),
            20..=29 => Call::Release(page, holder),
            30..=36 => Call::Release(any_page, who),
            _ => {
                serials[slot as usize] += 1;
                Call::ReleaseAll(who)
            }
        };
        match pair.call(&call) {
            true => right += 1,
            false => wrong += 1,
        }
        if number % 100 == 0 {
            pair.compare();
        }
    }
    assert!(right > 1000 && wrong > 500, "seed {seed}: {right} right calls, {wrong} wrong ones");
    pair.compare();
    pair.release_everything();
}

#[test]
fn long_sequences_agree_with_the_model() {
    (1..=20).for_each(long_sequence);
}

// ------------------------------------------------------------------------------------------------ properties

proptest! {
    /// Without sharing, a page has one holder, and no other owner can release it.
    #[test]
    fn pages_that_are_not_shared_have_one_owner(
        counts in prop::collection::vec(0..7u32, 1..12),
        seed in any::<Option<u64>>(),
    ) {
        let mut allocator = PageAllocator::new(64).expect("a small number");
        if let Some(seed) = seed {
            allocator = allocator.with_order_seed(seed);
        }
        let mut granted = BTreeMap::new();
        for (slot, count) in counts.iter().enumerate() {
            let mut out = Vec::new();
            let who = owner(slot as u32, 7);
            if allocator.grant(who, *count, &mut out).is_ok() {
                for page in out {
                    prop_assert_eq!(granted.insert(page, who), None);
                }
            }
        }
        for (page, who) in &granted {
            for slot in 0..counts.len() as u32 {
                let other = owner(slot, 7);
                if other != *who {
                    let refusal = PageError::NotOwner { page: *page, by: other, owner: *who };
                    prop_assert_eq!(allocator.release(*page, other), Err(refusal));
                }
            }
        }
        for (page, who) in granted {
            prop_assert_eq!(allocator.release(page, who), Ok(()));
            prop_assert_eq!(allocator.release(page, who), Err(PageError::Free { page }));
        }
        prop_assert!(allocator.audit().is_clean());
    }
}

#[test]
fn the_page_last_released_is_granted_first() {
    let mut allocator = PageAllocator::new(6).expect("a small number");
    let (who, mut out) = (owner(1, 1), Vec::new());
    allocator.grant(who, 5, &mut out).expect("free");
    assert_eq!(out, [0, 1, 2, 3, 4]);
    for page in [1, 3] {
        allocator.release(page, who).expect("held");
    }
    out.clear();
    allocator.grant(who, 3, &mut out).expect("free");
    assert_eq!(out, [3, 1, 5]);
}

#[test]
fn a_seed_shuffles_and_repeats() {
    let order = |seed| {
        let mut allocator = PageAllocator::new(100).expect("a small number").with_order_seed(seed);
        let (who, mut out) = (owner(0, 1), Vec::new());
        allocator.grant(who, 100, &mut out).expect("free");
        (0..100).for_each(|page| allocator.release(page, who).expect("held"));
        allocator.grant(who, 100, &mut out).expect("free");
        out
    };
    let (one, other) = (order(1), order(2));
    assert_eq!(one, order(1));
    for orders in [[&one[..100], &other[..100]], [&one[..100], &one[100..]], [&one[100..], &other[100..]]] {
        let same = orders[0].iter().zip(orders[1]).filter(|(one, other)| one == other).count();
        assert!(same < 10, "{same} of 100 in the same place");
        assert!(orders[0].windows(2).filter(|pair| pair[0].abs_diff(pair[1]) == 1).count() < 10);
        let sorted: BTreeSet<_> = orders[0].iter().copied().collect();
        assert_eq!(sorted, (0..100).collect());
    }
}

#[test]
fn a_page_belongs_to_its_newest_holder_when_its_owner_leaves() {
    let mut allocator = PageAllocator::with_share_limit(1, 3).expect("a small number");
    let [first, second, third] = [1, 2, 3].map(|slot| owner(slot, 1));
    allocator.grant(first, 1, &mut Vec::new()).expect("free");
    for who in [first, second, third] {
        allocator.share(0, who).expect("held, and a share is left");
    }
    let limit = Err(PageError::SharesExhausted { limit: 3 });
    assert_eq!(allocator.share(0, second), limit);
    for (who, left) in [(first, Some(first)), (first, Some(third)), (third, Some(second)), (second, None)] {
        allocator.release(0, who).expect("held");
        assert_eq!(allocator.held(0).map(|held| held.owner), left);
    }
}
