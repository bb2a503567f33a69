//! Happens-before: what each wave knows about the memory operations of the others.
//!
//! Contract: a [`Clock`] says, for each other wave, which of its operations happen before the owner: those whose
//! completion the wave had waited for when it signalled (`completed`, by counter class), and those that it had only
//! issued. Whoever has seen a flag's value knows that the flag's own operation is done (`observed`), without any
//! wait. No other operation of that wave is known to be done, so the last few flag operations are kept one by one.
//! Cost: a look-up is a binary search; a join is linear in the larger clock, or one insertion per entry if the
//! joined clock is small.

use super::finding::Class;
use std::sync::Arc;

/// A clock with fewer entries than this is joined entry by entry.
const FEW_ENTRIES: usize = 4;

/// Sequence numbers up to which all memory operations of a wave are complete, by counter class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Completed {
    /// LOADcnt: vector loads and returning atomics.
    pub loads: u32,
    /// STOREcnt: vector stores and other atomics.
    pub stores: u32,
    /// DScnt.
    pub lds: u32,
    /// KMcnt: scalar loads.
    pub scalar: u32,
}

/// Flag operations of a wave that are remembered as observed: the last ones. Waits cover the others.
const OBSERVED_MAX: usize = 4;

/// Flag operations of one wave whose values were observed: sequence numbers, descending; 0 for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Observed([u32; OBSERVED_MAX]);

/// What is known about one wave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) completed: Completed,
    /// The last operation issued before the signal.
    pub(super) issued: u32,
    pub(super) observed: Observed,
}

/// How an earlier access relates to the current one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It comes before, and is complete.
    Before,
    /// It was issued before, but nobody has waited for it.
    Unwaited,
    /// Nothing orders the two.
    None,
}

/// What is known about all other waves; sorted by wave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Clock {
    entries: Vec<(u32, Known)>,
}

/// A value with a clock was loaded; the clock takes effect when the load completes.
#[derive(Clone, Debug)]
struct PendingAcquire {
    sequence: u32,
    class: Class,
    clock: Arc<Clock>,
}

/// One live wave.
#[derive(Debug, Default)]
pub(super) struct WaveState {
    wave: u32,
    /// What it knows about others.
    clock: Arc<Clock>,
    /// What others would learn about it now.
    own: Known,
    pending: Vec<PendingAcquire>,
    /// The clock joined last: a polling loop sees the same one repeatedly.
    last_joined: Option<Arc<Clock>>,
    /// What it would publish now, if already computed.
    snapshot: Option<Arc<Clock>>,
    /// Sequence number of its last global_wb; 0 for none.
    pub(super) write_back: u32,
}

impl Completed {
    fn of(&self, class: Class) -> u32 {
        match class {
            Class::Load => self.loads,
            Class::Store => self.stores,
            Class::Lds => self.lds,
            Class::Scalar => self.scalar,
        }
    }

    fn join(&mut self, other: &Completed) {
        self.loads = self.loads.max(other.loads);
        self.stores = self.stores.max(other.stores);
        self.lds = self.lds.max(other.lds);
        self.scalar = self.scalar.max(other.scalar);
    }
}

impl Observed {
    fn insert(&mut self, sequence: u32) {
        let at = self.0.partition_point(|&known| known > sequence);
        if at < OBSERVED_MAX && self.0[at] != sequence {
            self.0.copy_within(at..OBSERVED_MAX - 1, at + 1);
            self.0[at] = sequence;
        }
    }

    fn contains(&self, sequence: u32) -> bool {
        self.0.contains(&sequence)
    }
}

impl Known {
    fn join(&mut self, other: &Known) {
        self.completed.join(&other.completed);
        self.issued = self.issued.max(other.issued);
        other.observed.0.into_iter().for_each(|sequence| self.observed.insert(sequence));
    }

    /// How an operation of the wave relates to an owner of this knowledge.
    fn order(&self, sequence: u32, class: Class, is_flag: bool) -> Order {
        if sequence <= self.completed.of(class) || (is_flag && self.observed.contains(sequence)) {
            Order::Before
        } else if sequence <= self.issued {
            Order::Unwaited
        } else {
            Order::None
        }
    }
}

impl Clock {
    /// How an operation of `wave` relates to the owner of the clock.
    pub(super) fn order(&self, wave: u32, sequence: u32, class: Class, is_flag: bool) -> Order {
        match self.entries.binary_search_by_key(&wave, |entry| entry.0) {
            Ok(index) => self.entries[index].1.order(sequence, class, is_flag),
            Err(_) => Order::None,
        }
    }

    fn join_one(&mut self, wave: u32, known: &Known) {
        match self.entries.binary_search_by_key(&wave, |entry| entry.0) {
            Ok(index) => self.entries[index].1.join(known),
            Err(index) => self.entries.insert(index, (wave, *known)),
        }
    }

    /// Merges another clock into this one, so that it knows what both know.
    pub(super) fn join(&mut self, other: &Clock) {
        if other.entries.len() < FEW_ENTRIES {
            for (wave, known) in &other.entries {
                self.join_one(*wave, known);
            }
            return;
        }
        let mut merged = Vec::with_capacity(self.entries.len().max(other.entries.len()));
        let (mut left, mut right) = (self.entries.iter().peekable(), other.entries.iter().peekable());
        loop {
            match (left.peek(), right.peek()) {
                (Some(mine), Some(theirs)) if mine.0 == theirs.0 => {
                    let mut known = mine.1;
                    known.join(&theirs.1);
                    merged.push((mine.0, known));
                    left.next();
                    right.next();
                }
                (Some(mine), Some(theirs)) if mine.0 < theirs.0 => merged.extend(left.next().copied()),
                (Some(_), Some(_)) | (None, Some(_)) => merged.extend(right.next().copied()),
                (Some(_), None) => merged.extend(left.next().copied()),
                (None, None) => break,
            }
        }
        self.entries = merged;
    }

    /// Joins a shared clock into a shared clock; shares the other if this one is empty.
    pub(super) fn join_shared(this: &mut Arc<Clock>, other: &Arc<Clock>) {
        if this.entries.is_empty() {
            *this = other.clone();
        } else if !Arc::ptr_eq(this, other) {
            Arc::make_mut(this).join(other);
        }
    }
}

impl WaveState {
    pub(super) fn new(wave: u32) -> WaveState {
        WaveState { wave, ..WaveState::default() }
    }

    pub(super) fn clock(&self) -> &Arc<Clock> {
        &self.clock
    }

    pub(super) fn completed(&self) -> &Completed {
        &self.own.completed
    }

    /// Records that a memory operation is issued.
    pub(super) fn issue(&mut self, sequence: u32) {
        if sequence > self.own.issued {
            self.own.issued = sequence;
            self.snapshot = None;
        }
    }

    /// What a barrier signal publishes.
    pub(super) fn publish(&mut self) -> Arc<Clock> {
        if let Some(snapshot) = &self.snapshot {
            return snapshot.clone();
        }
        let mut clock = Clock::clone(&self.clock);
        clock.join_one(self.wave, &self.own);
        let clock = Arc::new(clock);
        self.snapshot = Some(clock.clone());
        clock
    }

    /// What a flag operation with this sequence number publishes: anyone who sees the flag knows that it is
    /// written.
    pub(super) fn publish_flag(&self, sequence: u32) -> Arc<Clock> {
        let mut clock = Clock::clone(&self.clock);
        let mut own = self.own;
        own.observed.insert(sequence);
        clock.join_one(self.wave, &own);
        Arc::new(clock)
    }

    /// Records that a value with this clock was loaded.
    pub(super) fn acquire(&mut self, sequence: u32, class: Class, clock: &Arc<Clock>) {
        let is_known = self.last_joined.as_ref().is_some_and(|last| Arc::ptr_eq(last, clock));
        let is_pending = self.pending.iter().any(|pending| Arc::ptr_eq(&pending.clock, clock));
        if !is_known && !is_pending {
            self.pending.push(PendingAcquire { sequence, class, clock: clock.clone() });
        }
    }

    /// True while a loaded flag has not been waited for.
    pub(super) fn has_pending_acquire(&self) -> bool {
        !self.pending.is_empty()
    }

    /// Joins a clock immediately.
    pub(super) fn join(&mut self, clock: &Arc<Clock>) {
        Clock::join_shared(&mut self.clock, clock);
        self.snapshot = None;
    }

    /// Records that operations have completed.
    pub(super) fn complete(&mut self, completed: &Completed) {
        let before = self.own.completed;
        self.own.completed.join(completed);
        if self.own.completed != before {
            self.snapshot = None;
        }
        let mut index = 0;
        while index < self.pending.len() {
            let pending = &self.pending[index];
            if pending.sequence <= self.own.completed.of(pending.class) {
                let pending = self.pending.swap_remove(index);
                self.join(&pending.clock);
                self.last_joined = Some(pending.clock);
            } else {
                index += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(loads: u32, issued: u32) -> Known {
        Known {
            completed: Completed { loads, ..Completed::default() },
            issued,
            observed: Observed::default(),
        }
    }

    fn clock(entries: &[(u32, Known)]) -> Clock {
        Clock { entries: entries.to_vec() }
    }

    #[test]
    fn both_ways_of_joining_agree() {
        let many: Vec<_> = (0..10).map(|wave| (wave * 2, known(wave, wave + 1))).collect();
        let few = [(2, known(9, 3)), (3, known(1, 1)), (99, known(4, 7))];
        let mut left = clock(&many);
        left.join(&clock(&few));
        let mut right = clock(&few);
        right.join(&clock(&many));
        assert_eq!(left, right);
        assert_eq!(left.entries.len(), 12);
        assert_eq!(left.entries[1], (2, known(9, 3)));
        assert!(left.entries.is_sorted_by_key(|entry| entry.0));
    }

    #[test]
    fn an_acquire_counts_when_its_load_is_complete() {
        let mut wave = WaveState::new(1);
        let flag = Arc::new(clock(&[(0, known(5, 8))]));
        wave.acquire(3, Class::Load, &flag);
        wave.complete(&Completed { loads: 2, stores: 9, lds: 9, scalar: 9 });
        assert_eq!(wave.clock().order(0, 5, Class::Load, false), Order::None);
        wave.complete(&Completed { loads: 3, ..Completed::default() });
        assert_eq!(wave.clock().order(0, 5, Class::Load, false), Order::Before);
        assert_eq!(wave.clock().order(0, 6, Class::Load, false), Order::Unwaited);
        assert_eq!(wave.clock().order(0, 9, Class::Load, false), Order::None);
        assert!(!wave.has_pending_acquire());
    }

    #[test]
    fn the_last_flags_are_remembered() {
        let mut one = Known::default();
        [5, 3, 5, 9].into_iter().for_each(|sequence| one.observed.insert(sequence));
        assert_eq!(one.observed, Observed([9, 5, 3, 0]));
        let mut other = Known::default();
        [4, 7, 9].into_iter().for_each(|sequence| other.observed.insert(sequence));
        one.join(&other);
        assert_eq!(one.observed, Observed([9, 7, 5, 4]));
        assert!(one.observed.contains(4) && !one.observed.contains(3));
    }

    #[test]
    fn only_the_flag_itself_is_observed_without_a_wait() {
        let mut producer = WaveState::new(0);
        producer.issue(4);
        let clock = producer.publish_flag(4);
        assert_eq!(clock.order(0, 4, Class::Store, true), Order::Before);
        // Nor does an earlier flag operation.
        assert_eq!(clock.order(0, 3, Class::Store, true), Order::Unwaited);
        assert_eq!(clock.order(0, 4, Class::Store, false), Order::Unwaited);
        assert_eq!(producer.publish().order(0, 4, Class::Store, true), Order::Unwaited);
    }

    #[test]
    fn what_is_published_is_what_is_known_by_then() {
        let mut wave = WaveState::new(0);
        let orders = |wave: &mut WaveState| {
            let clock = wave.publish();
            [(0, 1, Class::Store), (0, 2, Class::Store), (7, 3, Class::Load)]
                .map(|(wave, sequence, class)| clock.order(wave, sequence, class, false))
        };
        let (before, unwaited, none) = (Order::Before, Order::Unwaited, Order::None);
        wave.issue(1);
        assert_eq!(orders(&mut wave), [unwaited, none, none]);
        wave.issue(2);
        assert_eq!(orders(&mut wave), [unwaited, unwaited, none]);
        let completed = Completed { stores: 1, ..Completed::default() };
        wave.complete(&completed);
        assert_eq!(orders(&mut wave), [before, unwaited, none]);
        wave.join(&Arc::new(clock(&[(7, known(3, 3))])));
        assert_eq!(orders(&mut wave), [before, unwaited, before]);
        // Where nothing is new, it is not computed anew.
        let published = wave.publish();
        wave.issue(2);
        wave.complete(&completed);
        assert!(Arc::ptr_eq(&published, &wave.publish()));
    }
}
