//! The page allocator in every state of a few pages, and every call in each of them, against the model.
//!
//! A state is everything the allocator holds, down to the last index, so all states are distinct; they are followed
//! until no call leads to a new one. That covers sequences of any length. More pages bring no new case: a call
//! accesses one page, the chain of its holders and the list of its slot. The sizes here produce each chain and each
//! list with no entry, with one, and with a first, a middle and a last; one list with two slots; one slot with two
//! requests; and a grant of no, some, all and too many of the free pages. The shuffled order is not covered,
//! because its generator never repeats a state.

use super::{Call, Model, Pair, owner};
use std::collections::{BTreeMap, HashSet};
use zrt_mem::pages::{Owner, PageAllocator};

/// Pages, shares and owners of one exploration.
struct Size<'a> {
    pages: u32,
    share_limit: u32,
    owners: &'a [Owner],
}

impl Size<'_> {
    /// Every distinct call, right or wrong.
    fn calls(&self) -> Vec<Call> {
        let mut calls = Vec::new();
        for who in self.owners {
            calls.extend((0..=self.pages + 1).map(|count| Call::Grant(*who, count)));
            calls.extend((0..=self.pages).map(|page| Call::Share(page, *who)));
            calls.extend((0..=self.pages).map(|page| Call::Release(page, *who)));
            for to in self.owners {
                calls.extend((0..=self.pages).map(|page| Call::HandOver(page, *who, *to)));
            }
            calls.push(Call::ReleaseAll(*who));
        }
        calls
    }

    /// Allocator and model after `calls`.
    fn after(&self, calls: &[Call]) -> Pair {
        let allocator =
            PageAllocator::with_share_limit(self.pages, self.share_limit).expect("a small number");
        let (pages, share_limit) = (self.pages, self.share_limit);
        let mut pair = Pair { allocator, model: Model { pages, share_limit, held: BTreeMap::new() } };
        calls.iter().for_each(|call| _ = pair.call(call));
        pair
    }

    /// Makes every call in every state. Returns states and calls.
    fn explore(&self) -> (usize, usize) {
        let calls = self.calls();
        let state = |pair: &Pair| format!("{:?}", pair.allocator);
        // The shortest path to each state; those from `next` on still await their calls.
        let mut ways: Vec<Vec<Call>> = vec![Vec::new()];
        let mut known = HashSet::from([state(&self.after(&[]))]);
        let mut next = 0;
        while let Some(way) = ways.get(next).cloned() {
            for call in &calls {
                let mut pair = self.after(&way);
                pair.call(call);
                pair.compare();
                if known.insert(state(&pair)) {
                    ways.push(way.iter().chain([call]).cloned().collect());
                }
            }
            self.after(&way).release_everything();
            next += 1;
        }
        (ways.len(), ways.len() * calls.len())
    }
}

#[test]
fn every_call_in_every_state_agrees_with_the_model() {
    // The first two share a slot, the third is in their list.
    let owners = [owner(1, 1), owner(1, 2), owner(65, 1)];
    for (pages, share_limit, owners) in [
        (0, 0, &owners[..1]),
        (1, 0, &owners[..]),
        (1, 2, &owners[..]),
        (1, 3, &owners[..1]),
        (2, 1, &owners[..2]),
        (3, 0, &owners[..2]),
    ] {
        let (states, calls) = Size { pages, share_limit, owners }.explore();
        println!(
            "{pages} pages, {share_limit} shares, {} owners: {states} states, {calls} calls",
            owners.len()
        );
        assert!(states > pages as usize, "{states} states");
    }
}
