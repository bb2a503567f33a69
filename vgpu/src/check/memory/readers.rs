//! Sets of readers: who has read a dword since it was last written.
//!
//! Contract: a set is a number. Sets are lists that share their tails, so that dwords read by the same instructions
//! cost one number each. 0 is the empty set. A reader leaves a set when a later reader is ordered after it and
//! covers its bytes: anyone ordered after the later one is ordered after it too. Cost: an instruction's change to a
//! set, and its verdict on a set, are cached per instruction; otherwise a walk of the list. Memory: 20 bytes per
//! change, reclaimed by [`ReaderSets::collect`].

use super::access::{Conflict, Current, Earlier};
use super::clock::Order;
use super::finding::Sites;

/// Slots of the per-instruction caches; a power of two.
const CACHE_SLOTS: usize = 64;
/// Longest prefix of a list that is rewritten to remove readers.
const PRUNE_STEPS: usize = 64;
/// Minimum number of nodes before unused ones are reclaimed.
pub(super) const COLLECT_NODES: usize = 1 << 22;
/// All bytes of a dword.
pub(super) const WHOLE: u8 = 0xf;

/// One reader and the set that it was added to.
#[derive(Clone, Copy, Debug)]
struct Node {
    parent: u32,
    earlier: Earlier,
    /// Bytes read.
    mask: u8,
}

/// Two numbers and the instruction for which they are valid.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    stamp: u32,
    from: u32,
    mask: u8,
    to: u32,
}

/// All sets of one memory.
#[derive(Debug)]
pub(super) struct ReaderSets {
    /// The first node is the empty set.
    nodes: Vec<Node>,
    additions: [Slot; CACHE_SLOTS],
    verdicts: [Slot; CACHE_SLOTS],
    /// Number of nodes from which on unused ones are reclaimed.
    pub(super) collect_at: usize,
    /// Nodes of a list being rewritten; empty otherwise.
    kept: Vec<Node>,
}

const EMPTY: Node =
    Node { parent: 0, earlier: Earlier { wave: super::access::NOBODY, sequence: 0, site: 0 }, mask: 0 };

impl Default for ReaderSets {
    fn default() -> ReaderSets {
        ReaderSets {
            nodes: vec![EMPTY],
            additions: [Slot::default(); CACHE_SLOTS],
            verdicts: [Slot::default(); CACHE_SLOTS],
            collect_at: collect_after(0),
            kept: Vec::new(),
        }
    }
}

impl ReaderSets {
    /// Forgets all sets.
    pub(super) fn clear(&mut self) {
        self.nodes.truncate(1);
        self.forget_answers();
    }

    fn forget_answers(&mut self) {
        self.additions = [Slot::default(); CACHE_SLOTS];
        self.verdicts = [Slot::default(); CACHE_SLOTS];
    }

    fn push(&mut self, parent: u32, earlier: Earlier, mask: u8) -> u32 {
        self.nodes.push(Node { parent, earlier, mask });
        (self.nodes.len() - 1) as u32
    }

    /// The set with the current access added as a reader of the bytes in `mask`.
    #[inline]
    pub(super) fn add(&mut self, set: u32, mask: u8, current: &mut Current, sites: &Sites) -> u32 {
        let slot = &self.additions[set as usize % CACHE_SLOTS];
        if slot.stamp == current.stamp && slot.from == set && slot.mask == mask {
            return slot.to;
        }
        self.add_slow(set, mask, current, sites)
    }

    #[inline(never)]
    fn add_slow(&mut self, set: u32, mask: u8, current: &mut Current, sites: &Sites) -> u32 {
        let me = Earlier { wave: current.wave, sequence: current.sequence, site: current.site };
        let head = self.nodes[set as usize];
        let to = if set != 0 && head.earlier == me {
            // Another lane of the same instruction.
            if head.mask | mask == head.mask { set } else { self.push(head.parent, me, head.mask | mask) }
        } else {
            let tail = self.without_covered(set, mask, current, sites);
            self.push(tail, me, mask)
        };
        self.additions[set as usize % CACHE_SLOTS] = Slot { stamp: current.stamp, from: set, mask, to };
        to
    }

    /// The set without the readers near its head that the current one covers.
    fn without_covered(&mut self, set: u32, mask: u8, current: &mut Current, sites: &Sites) -> u32 {
        let mut kept = std::mem::take(&mut self.kept);
        let (mut at, mut unchanged_from, mut kept_until) = (set, set, 0);
        for _ in 0..PRUNE_STEPS {
            if at == 0 {
                break;
            }
            let node = self.nodes[at as usize];
            let is_covered = node.mask & !mask == 0 && is_covered_by(node.earlier, current, sites);
            if is_covered {
                unchanged_from = node.parent;
                kept_until = kept.len();
            } else {
                kept.push(node);
            }
            at = node.parent;
        }
        let mut tail = unchanged_from;
        for node in kept[..kept_until].iter().rev() {
            tail = self.push(tail, node.earlier, node.mask);
        }
        kept.clear();
        self.kept = kept;
        tail
    }

    /// The first reader of bytes in `mask` that conflicts with the current write.
    #[inline]
    pub(super) fn conflict(
        &mut self,
        set: u32,
        mask: u8,
        current: &mut Current,
        sites: &Sites,
    ) -> Option<Conflict> {
        if set == 0 {
            return None;
        }
        let slot = &self.verdicts[set as usize % CACHE_SLOTS];
        if slot.stamp == current.stamp && slot.from == set && slot.mask == mask {
            return None;
        }
        let mut worst: Option<Conflict> = None;
        let mut at = set;
        while at != 0 {
            let node = self.nodes[at as usize];
            if node.mask & mask != 0 {
                let found = current.conflict(node.earlier, sites);
                worst = worse(worst, found);
            }
            at = node.parent;
        }
        if worst.is_none() {
            self.verdicts[set as usize % CACHE_SLOTS] = Slot { stamp: current.stamp, from: set, mask, to: 0 };
        }
        worst
    }

    /// The set of the readers of bytes outside `mask`, after a write has replaced the bytes inside it.
    pub(super) fn outside(&mut self, set: u32, mask: u8) -> u32 {
        if mask == WHOLE {
            return 0;
        }
        let mut kept = Vec::new();
        let (mut at, mut dropped) = (set, false);
        while at != 0 {
            let node = self.nodes[at as usize];
            dropped |= node.mask & mask != 0;
            if node.mask & !mask != 0 {
                kept.push(Node { mask: node.mask & !mask, ..node });
            }
            at = node.parent;
        }
        if !dropped {
            return set;
        }
        kept.iter().rev().fold(0, |tail, node| self.push(tail, node.earlier, node.mask))
    }

    /// True if unused nodes should be reclaimed.
    pub(super) fn is_full(&self) -> bool {
        self.nodes.len() >= self.collect_at
    }

    /// Keeps only the nodes that the given sets need, and renumbers the sets.
    pub(super) fn collect<'a>(&mut self, sets: impl Iterator<Item = &'a mut u32>) {
        let mut renumbered = vec![0_u32; self.nodes.len()];
        let mut nodes = vec![EMPTY];
        let mut chain = Vec::new();
        for set in sets {
            let mut at = *set;
            while at != 0 && renumbered[at as usize] == 0 {
                chain.push(at);
                at = self.nodes[at as usize].parent;
            }
            while let Some(old) = chain.pop() {
                let mut node = self.nodes[old as usize];
                node.parent = renumbered[node.parent as usize];
                renumbered[old as usize] = nodes.len() as u32;
                nodes.push(node);
            }
            *set = renumbered[*set as usize];
        }
        self.nodes = nodes;
        self.collect_at = collect_after(self.nodes.len());
        self.forget_answers();
    }
}

/// Where to reclaim next if so many nodes are in use: not before as many again have come.
fn collect_after(nodes: usize) -> usize {
    COLLECT_NODES.max(2 * nodes)
}

/// True if anyone ordered after the current read is also ordered after the earlier one.
fn is_covered_by(earlier: Earlier, current: &mut Current, sites: &Sites) -> bool {
    // Reads of one wave complete in order only within a class.
    if earlier.wave == current.wave && sites.get(earlier.site).kind.class() != current.kind.class() {
        return false;
    }
    current.order(earlier, sites) == Order::Before
}

/// The more serious of two conflicts: a race before a missing wait.
pub(super) fn worse(one: Option<Conflict>, other: Option<Conflict>) -> Option<Conflict> {
    use super::finding::Defect;
    match (one, other) {
        (Some(first), Some(second)) if first.defect != Defect::Race && second.defect == Defect::Race => {
            Some(second)
        }
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::memory::finding::Defect;

    fn reads(current: &mut Current, wave: u32) {
        current.renew();
        (current.wave, current.sequence) = (wave, current.sequence + 1);
    }

    /// The waves of a set, newest first.
    fn waves(sets: &ReaderSets, set: u32) -> Vec<u32> {
        let next = |at: &u32| Some(sets.nodes[*at as usize].parent);
        let nodes = std::iter::successors(Some(set), next).take_while(|at| *at != 0);
        nodes.map(|at| sets.nodes[at as usize].earlier.wave).collect()
    }

    #[test]
    fn lanes_of_one_instruction_share_sets_and_rereads_do_not_grow_them() {
        let (mut sets, mut current, sites) = (ReaderSets::default(), Current::default(), Sites::default());
        reads(&mut current, 1);
        let one = sets.add(0, WHOLE, &mut current, &sites);
        assert_eq!(sets.add(0, WHOLE, &mut current, &sites), one);
        assert_eq!(sets.add(one, WHOLE, &mut current, &sites), one);
        reads(&mut current, 2);
        let two = sets.add(one, WHOLE, &mut current, &sites);
        reads(&mut current, 1);
        let again = sets.add(two, WHOLE, &mut current, &sites);
        assert_eq!(waves(&sets, again), [1, 2]);
        // A read of fewer bytes does not cover a read of all.
        reads(&mut current, 2);
        let part = sets.add(again, 1, &mut current, &sites);
        assert_eq!(waves(&sets, part), [2, 1, 2]);
    }

    #[test]
    fn unused_nodes_are_reclaimed_and_sets_keep_their_readers() {
        let (mut sets, mut current, sites) = (ReaderSets::default(), Current::default(), Sites::default());
        let mut set = 0;
        for round in 0..50 {
            reads(&mut current, round % 5);
            set = sets.add(set, WHOLE, &mut current, &sites);
        }
        let before = waves(&sets, set);
        let (mut first, mut second, mut empty) = (set, set, 0);
        sets.collect([&mut first, &mut second, &mut empty].into_iter());
        assert_eq!((first, empty), (second, 0));
        assert_eq!(waves(&sets, first), before);
        assert_eq!(sets.nodes.len(), 6, "five readers and the empty set");
        reads(&mut current, 4);
        let conflict = sets.conflict(first, WHOLE, &mut current, &sites);
        assert_eq!(conflict.map(|conflict| conflict.defect), Some(Defect::Race));
        assert_eq!(sets.outside(first, WHOLE), 0);
        assert_eq!(sets.outside(0, 1), 0);
    }

    /// A reader: its wave, its instruction, and the bytes that it has read.
    type Reader = (u32, u32, u8);

    fn readers(sets: &ReaderSets, set: u32) -> Vec<Reader> {
        let next = |at: &u32| Some(sets.nodes[*at as usize].parent);
        let nodes = std::iter::successors(Some(set), next).take_while(|at| *at != 0);
        let node = |at: u32| (sets.nodes[at as usize].earlier, sets.nodes[at as usize].mask);
        nodes.map(node).map(|(earlier, mask)| (earlier.wave, earlier.sequence, mask)).collect()
    }

    /// What a list becomes with a reader that is ordered after all waves below `ordered_before` and after its own.
    fn with_reader(list: &[Reader], (wave, sequence, mask): Reader, ordered_before: u32) -> Vec<Reader> {
        if let Some((_, _, known)) = list.first().filter(|first| (first.0, first.1) == (wave, sequence)) {
            return [&[(wave, sequence, known | mask)][..], &list[1..]].concat();
        }
        let is_covered =
            |reader: &&Reader| (reader.0 == wave || reader.0 < ordered_before) && reader.2 & !mask == 0;
        let kept = list.iter().filter(|reader| !is_covered(reader)).copied();
        std::iter::once((wave, sequence, mask)).chain(kept).collect()
    }

    proptest::proptest! {
        /// Reads, and at last a write, against plain lists; fewer readers than are looked at.
        #[test]
        fn sets_are_lists_without_what_later_reads_cover(
            steps in proptest::collection::vec((0_u32..6, 1_u8..16, 0_u32..6, 0_u8..3), 1..40),
            write in (0_u32..6, 1_u8..16, 0_u32..6),
        ) {
            let (mut sets, mut current, sites) = (ReaderSets::default(), Current::default(), Sites::default());
            let (mut set, mut list) = (0, Vec::new());
            for (wave, mask, ordered_before, same) in steps {
                // Most steps are new instructions, the others further lanes of the last one.
                if same != 0 || list.is_empty() {
                    reads(&mut current, wave);
                    current.ordered_before = ordered_before;
                }
                let reader = (current.wave, current.sequence, mask);
                list = with_reader(&list, reader, current.ordered_before);
                let from = set;
                set = sets.add(from, mask, &mut current, &sites);
                proptest::prop_assert_eq!(readers(&sets, set), list.clone());
                proptest::prop_assert_eq!(sets.add(from, mask, &mut current, &sites), set, "another lane");
            }
            let (wave, mask, ordered_before) = write;
            reads(&mut current, wave);
            current.ordered_before = ordered_before;
            let meets = |reader: &&Reader| {
                reader.0 != wave && reader.0 >= ordered_before && reader.2 & mask != 0
            };
            let expected = list.iter().find(meets).map(|reader| (reader.0, reader.1));
            for _ in 0..2 {
                let found = sets.conflict(set, mask, &mut current, &sites);
                let found = found.map(|found| (found.earlier.wave, found.earlier.sequence));
                proptest::prop_assert_eq!(found, expected);
            }
            let rest = list.iter().map(|reader| (reader.0, reader.1, reader.2 & !mask));
            let rest: Vec<_> = rest.filter(|reader| reader.2 != 0).collect();
            let outside = sets.outside(set, mask);
            proptest::prop_assert_eq!(readers(&sets, outside), rest);
            let mut kept = outside;
            let before = readers(&sets, kept);
            sets.collect(std::iter::once(&mut kept));
            proptest::prop_assert_eq!(readers(&sets, kept), before);
        }
    }

    /// An answer is remembered for its own set, bytes and instruction, in one of few places.
    #[test]
    fn answers_about_other_sets_and_bytes_are_not_mixed_up() {
        let (mut sets, mut current, sites) = (ReaderSets::default(), Current::default(), Sites::default());
        reads(&mut current, 1);
        let own = sets.add(0, 0b0010, &mut current, &sites);
        // So many that the numbers of sets are far beyond the places, and one that shares the place of the first.
        let mut others = Vec::new();
        while others.last().is_none_or(|set| *set < 100 * CACHE_SLOTS as u32 + own) {
            reads(&mut current, 2);
            others.push(sets.add(0, 0b1100, &mut current, &sites));
        }
        let other = *others.last().unwrap();
        assert_eq!((other - own) % CACHE_SLOTS as u32, 0);
        reads(&mut current, 1);
        for (set, mask, is_race) in [
            (own, 0b0010, false),
            (other, 0b0010, false),
            (own, 0b1111, false),
            (other, 0b1111, true),
            (own, 0b1111, false),
            (other, 0b0100, true),
        ] {
            let found = sets.conflict(set, mask, &mut current, &sites);
            assert_eq!(found.is_some(), is_race, "{set}, {mask:#b}");
        }
        let whole = sets.add(own, 0b0001, &mut current, &sites);
        let far = sets.add(other, 0b0001, &mut current, &sites);
        assert_eq!((waves(&sets, whole), waves(&sets, far)), (vec![1, 1], vec![1, 2]));
        let wider = sets.add(own, 0b0011, &mut current, &sites);
        assert_eq!((readers(&sets, wider).len(), readers(&sets, wider)[0].2), (1, 0b0011));
        // The next instruction is another wave's.
        reads(&mut current, 2);
        assert!(sets.conflict(own, 0b0010, &mut current, &sites).is_some());
        assert!(sets.conflict(other, 0b1111, &mut current, &sites).is_none());
    }

    #[test]
    fn a_race_is_worse_than_a_missing_wait_and_the_first_of_equals_is_kept() {
        let conflict =
            |defect, wave| Some(Conflict { earlier: Earlier { wave, sequence: 1, site: 0 }, defect });
        let (race, other_race) = (conflict(Defect::Race, 1), conflict(Defect::Race, 2));
        let (wait, other_wait) = (conflict(Defect::UnwaitedLoad, 3), conflict(Defect::UnwaitedStore, 4));
        for (one, other, expected) in [
            (None, None, None),
            (race, None, race),
            (None, wait, wait),
            (wait, race, race),
            (race, wait, race),
            (race, other_race, race),
            (wait, other_wait, wait),
        ] {
            assert_eq!(worse(one, other), expected);
        }
    }

    /// Within one instruction, whose answers are remembered.
    #[test]
    fn no_answer_outlives_the_sets_that_it_names() {
        let (mut sets, mut current, sites) = (ReaderSets::default(), Current::default(), Sites::default());
        reads(&mut current, 1);
        sets.add(0, WHOLE, &mut current, &sites);
        sets.clear();
        assert_eq!(sets.nodes.len(), 1, "the empty set");
        let mut first = sets.add(0, WHOLE, &mut current, &sites);
        assert_eq!(waves(&sets, first), [1]);
        reads(&mut current, 2);
        let mut second = sets.add(0, WHOLE, &mut current, &sites);
        assert!(sets.conflict(second, WHOLE, &mut current, &sites).is_none(), "its own");
        // The two exchange their numbers.
        sets.collect([&mut second, &mut first].into_iter());
        assert!(sets.conflict(first, WHOLE, &mut current, &sites).is_some());
        assert!(sets.conflict(second, WHOLE, &mut current, &sites).is_none());
        sets.collect(std::iter::once(&mut first));
        let other = sets.add(0, WHOLE, &mut current, &sites);
        assert_eq!((waves(&sets, first), waves(&sets, other)), (vec![1], vec![2]));
    }

    #[test]
    fn a_verdict_holds_for_its_bytes_and_its_instruction_alone() {
        let (mut sets, mut current, sites) = (ReaderSets::default(), Current::default(), Sites::default());
        reads(&mut current, 1);
        let set = sets.add(0, 0b0010, &mut current, &sites);
        reads(&mut current, 2);
        let set = sets.add(set, 0b0100, &mut current, &sites);
        let mut is_met = |mask| sets.conflict(set, mask, &mut current, &sites).is_some();
        assert_eq!([0b0100, 0b0010, 0b0100, 0b1111].map(&mut is_met), [false, true, false, true]);
        reads(&mut current, 3);
        assert!(sets.conflict(set, 0b0100, &mut current, &sites).is_some());
    }

    #[test]
    fn a_set_without_readers_of_the_bytes_is_kept_as_it_is() {
        let (mut sets, mut current, sites) = (ReaderSets::default(), Current::default(), Sites::default());
        reads(&mut current, 1);
        let set = sets.add(0, 0b0100, &mut current, &sites);
        assert_eq!(sets.outside(set, 0b0011), set);
        assert_eq!(readers(&sets, sets.nodes.len() as u32 - 1), [(1, 1, 0b0100)], "no node is new");
    }

    #[test]
    fn sets_are_full_at_their_limit_until_nodes_are_reclaimed() {
        let (mut sets, mut current, sites) = (ReaderSets::default(), Current::default(), Sites::default());
        sets.collect_at = 3;
        reads(&mut current, 1);
        let mut set = sets.add(0, WHOLE, &mut current, &sites);
        assert!(!sets.is_full(), "the empty set and one more");
        reads(&mut current, 2);
        sets.add(0, WHOLE, &mut current, &sites);
        assert!(sets.is_full());
        sets.collect(std::iter::once(&mut set));
        assert!(!sets.is_full());
        assert_eq!(collect_after(COLLECT_NODES), 2 * COLLECT_NODES, "half of them are new at least");
    }
}
