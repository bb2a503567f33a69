//! Merging neighbours, the part that both tokenizers share: a word is a row of symbols; the best pair of neighbours
//! becomes one symbol, again and again, until no pair can be merged. Of equally good pairs the leftmost is merged
//! first.
//!
//! Contract: at most n − 1 merges and 3n queue entries for n symbols; O(n log n). The work lists are kept from word
//! to word, so a long text does not allocate once they have grown.

use std::collections::BinaryHeap;

/// Which symbols join, and how urgently.
pub(super) trait Rules {
    /// One symbol of the row.
    type Symbol: Copy + PartialEq;
    /// Urgency of a merge; the greatest goes first.
    type Urgency: Ord;

    /// The symbol that `left` and `right` join to, and how urgently; `None` if they stay apart.
    fn join(&self, left: Self::Symbol, right: Self::Symbol) -> Option<(Self::Urgency, Self::Symbol)>;
}

/// Symbols in a row, linked so that joining two is quick.
struct Link<S> {
    symbol: S,
    /// Index of the neighbours; `NONE` at the ends.
    previous: usize,
    next: usize,
    /// True if joined to the one before it.
    gone: bool,
}

const NONE: usize = usize::MAX;

/// A possible merge. It is stale if either symbol has changed since.
struct Candidate<S, U> {
    urgency: U,
    left: usize,
    right: usize,
    left_symbol: S,
    right_symbol: S,
    joined: S,
}

/// The work lists.
pub(super) struct Merger<R: Rules> {
    row: Vec<Link<R::Symbol>>,
    queue: BinaryHeap<Candidate<R::Symbol, R::Urgency>>,
}

impl<R: Rules> Merger<R> {
    pub(super) fn new() -> Merger<R> {
        Merger { row: Vec::new(), queue: BinaryHeap::new() }
    }

    /// Merges `symbols` by `rules` and calls `output` with each symbol that remains, in order.
    pub(super) fn merge(
        &mut self,
        rules: &R,
        symbols: impl Iterator<Item = R::Symbol>,
        mut output: impl FnMut(R::Symbol),
    ) {
        self.row.clear();
        self.queue.clear();
        for (index, symbol) in symbols.enumerate() {
            let previous = if index == 0 { NONE } else { index - 1 };
            self.row.push(Link { symbol, previous, next: index + 1, gone: false });
        }
        if let Some(last) = self.row.last_mut() {
            last.next = NONE;
        }
        for right in 1..self.row.len() {
            self.propose(rules, right - 1, right);
        }
        while let Some(candidate) = self.queue.pop() {
            self.apply(rules, &candidate);
        }
        self.row.iter().filter(|link| !link.gone).for_each(|link| output(link.symbol));
    }

    fn propose(&mut self, rules: &R, left: usize, right: usize) {
        let (left_symbol, right_symbol) = (self.row[left].symbol, self.row[right].symbol);
        if let Some((urgency, joined)) = rules.join(left_symbol, right_symbol) {
            self.queue.push(Candidate { urgency, left, right, left_symbol, right_symbol, joined });
        }
    }

    fn apply(&mut self, rules: &R, candidate: &Candidate<R::Symbol, R::Urgency>) {
        let (left, right) = (candidate.left, candidate.right);
        let unchanged = |index: usize, symbol| !self.row[index].gone && self.row[index].symbol == symbol;
        // If both are unchanged, they are still neighbours: anything between them would have had to join one of them.
        if !unchanged(left, candidate.left_symbol) || !unchanged(right, candidate.right_symbol) {
            return;
        }
        let after = self.row[right].next;
        self.row[right].gone = true;
        self.row[left].symbol = candidate.joined;
        self.row[left].next = after;
        if after != NONE {
            self.row[after].previous = left;
            self.propose(rules, left, after);
        }
        let before = self.row[left].previous;
        if before != NONE {
            self.propose(rules, before, left);
        }
    }
}

impl<S, U: Ord> Ord for Candidate<S, U> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.urgency.cmp(&other.urgency).then_with(|| other.left.cmp(&self.left))
    }
}

impl<S, U: Ord> PartialOrd for Candidate<S, U> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<S, U: Ord> PartialEq for Candidate<S, U> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<S, U: Ord> Eq for Candidate<S, U> {}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cmp::Ordering::{Equal, Greater, Less};

    #[test]
    fn the_urgent_merge_goes_first_and_then_the_left_one() {
        let candidate = |urgency: u32, left: usize| Candidate {
            urgency,
            left,
            right: left + 1,
            left_symbol: (),
            right_symbol: (),
            joined: (),
        };
        for ((urgency, left), order) in
            [((2, 5), Equal), ((3, 9), Less), ((1, 0), Greater), ((2, 6), Greater), ((2, 4), Less)]
        {
            let (one, other) = (candidate(2, 5), candidate(urgency, left));
            assert_eq!((one.cmp(&other), one.partial_cmp(&other)), (order, Some(order)), "{urgency} {left}");
            assert_eq!(one == other, order == Equal, "{urgency} {left}");
        }
    }
}
