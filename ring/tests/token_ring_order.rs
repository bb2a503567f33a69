//! The token rings over memory whose only order is that of the fences.
//!
//! A writer runs over memory that records its stores and fences. The record is then replayed while a reader runs:
//! before each load more of it is issued, and any part of what was issued, and not yet pushed out by a fence,
//! becomes visible in any order (for one dword in the order of its stores). A load may be answered from any moment
//! since the reader's last fence. That is weaker than write-combined memory on x86-64 and than what the device's
//! memory model permits.

#[path = "model/said.rs"]
mod said;

use said::{Said, line, said};
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use zrt_needs::Random;
use zrt_ring::token_ring::mock::{DeviceInput, DeviceOutput};
use zrt_ring::token_ring::{InputRing, OutputRing, RingMemory};

/// Entries of the rings here, and runs per direction and kind of fault.
const ENTRIES: usize = 4;
const SEEDS: u64 = 400;
/// A first entry whose successors pass 2^32 - 1, with its tag: number + 1.
const FIRST: u64 = (1 << 32) - 7;
const FIRST_TAG: u32 = 0xffff_fffa;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    Store(usize, u32),
    Fence,
}

/// Ordered memory that records its accesses.
#[derive(Clone)]
struct Recorded {
    words: Rc<RefCell<Vec<u32>>>,
    operations: Rc<RefCell<Vec<Operation>>>,
}

impl Recorded {
    fn new(dwords: usize) -> Recorded {
        Recorded { words: Rc::new(RefCell::new(vec![0; dwords])), operations: Rc::default() }
    }
}

impl RingMemory for Recorded {
    fn dwords(&self) -> usize {
        self.words.borrow().len()
    }
    fn load(&self, dword: usize) -> u32 {
        self.words.borrow()[dword]
    }
    fn store(&self, dword: usize, value: u32) {
        self.words.borrow_mut()[dword] = value;
        self.operations.borrow_mut().push(Operation::Store(dword, value));
    }
    fn fence_loads(&self) {}
    fn fence_stores(&self) {
        self.operations.borrow_mut().push(Operation::Fence);
    }
}

/// The planted fault.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The writer stores the header before the rest, with the fences unchanged.
    HeaderFirst,
    /// The writer's fences have no effect.
    NoStoreFence,
    /// The reader's fences have no effect.
    NoLoadFence,
    /// The writer's fences have no effect, and a line travels as two parts, each whole, in either order.
    Halves,
    /// The same, and the reader accepts any trailer.
    HalvesUnchecked,
}

impl Fault {
    fn halves(self) -> bool {
        matches!(self, Fault::Halves | Fault::HalvesUnchecked)
    }
}

struct State {
    fault: Fault,
    /// First dword of the second part of a line that travels as two.
    split: usize,
    dice: Random,
    /// Not yet issued.
    operations: VecDeque<Operation>,
    /// Issued, but perhaps not visible yet.
    pending: Vec<(usize, u32)>,
    /// The value of each dword at each moment.
    history: Vec<Vec<(u64, u32)>>,
    now: u64,
    /// No load is answered from before this moment.
    floor: u64,
    /// The latest moment that a load was answered from.
    latest: u64,
    /// The same per dword: a dword is never seen going back.
    seen: Vec<u64>,
}

impl State {
    fn show(&mut self, at: usize) {
        let (dword, value) = self.pending.remove(at);
        self.now += 1;
        self.history[dword].push((self.now, value));
    }

    fn issue(&mut self, count: u32) {
        for _ in 0..count {
            match self.operations.pop_front() {
                Some(Operation::Store(dword, value)) => self.pending.push((dword, value)),
                Some(Operation::Fence) if self.fault == Fault::NoStoreFence => {}
                Some(Operation::Fence) => self.show_all(),
                None => return,
            }
        }
    }

    fn show_all(&mut self) {
        while !self.pending.is_empty() {
            self.show(0);
        }
    }

    /// Makes one pending store visible, chosen at random: the oldest of its dword.
    fn show_any(&mut self) {
        let any = self.dice.below(self.pending.len() as u32) as usize;
        let dword = self.pending[any].0;
        let oldest = self.pending.iter().position(|(at, _)| *at == dword).expect("it is there");
        self.show(oldest);
    }

    /// Issues one line of 16 stores without its fences, and makes its halves visible, one per call.
    fn show_half(&mut self) {
        if self.pending.is_empty() {
            while self.pending.len() < 16 {
                match self.operations.pop_front() {
                    Some(Operation::Store(dword, value)) => self.pending.push((dword, value)),
                    Some(Operation::Fence) => {}
                    None => return,
                }
            }
        }
        let any = self.dice.below(self.pending.len() as u32) as usize;
        let is_second = |dword: usize| dword % 16 >= self.split;
        let second = is_second(self.pending[any].0);
        self.now += 1;
        let (shown, rest): (Vec<_>, Vec<_>) =
            self.pending.drain(..).partition(|(dword, _)| is_second(*dword) == second);
        self.pending = rest;
        shown.iter().for_each(|(dword, value)| self.history[*dword].push((self.now, *value)));
    }

    fn load(&mut self, dword: usize) -> u32 {
        if self.fault.halves() {
            // The reader's loads are in order here; only the halves are unordered.
            if self.dice.one_in(8) {
                self.show_half();
            }
            self.floor = self.now;
        } else {
            let count = self.dice.below(4);
            self.issue(count);
            for _ in 0..self.dice.below(4) {
                if !self.pending.is_empty() {
                    self.show_any();
                }
            }
        }
        let least = if self.fault == Fault::NoLoadFence { 0 } else { self.floor }.max(self.seen[dword]);
        let moment = match self.dice.below(3) {
            0 => least,
            1 => self.now,
            _ => least + self.dice.bits() % (self.now - least + 1),
        };
        self.seen[dword] = moment;
        self.latest = self.latest.max(moment);
        let answer = self.history[dword].iter().rev().find(|(shown, _)| *shown <= moment);
        answer.expect("each dword has a value from the start").1
    }
}

/// The reader's side of the replay.
#[derive(Clone)]
struct Replayed(Rc<RefCell<State>>);

impl RingMemory for Replayed {
    fn dwords(&self) -> usize {
        self.0.borrow().history.len()
    }
    fn load(&self, dword: usize) -> u32 {
        let mut state = self.0.borrow_mut();
        let value = state.load(dword);
        let is_trailer = dword % 16 == 15;
        if state.fault == Fault::HalvesUnchecked && is_trailer {
            // The value with which a reader without the check would continue.
            return !state.history[dword - 15].last().expect("a value").1;
        }
        value
    }
    fn store(&self, dword: usize, value: u32) {
        // Only the reader's constructor stores, before anything is written.
        self.0.borrow_mut().history[dword] = vec![(0, value)];
    }
    fn fence_loads(&self) {
        let mut state = self.0.borrow_mut();
        state.floor = state.latest;
    }
    fn fence_stores(&self) {}
}

impl Replayed {
    fn new(fault: Fault, seed: u64) -> Replayed {
        let dwords = ENTRIES * 16;
        Replayed(Rc::new(RefCell::new(State {
            fault,
            split: 8,
            dice: Random::new(seed),
            operations: VecDeque::new(),
            pending: Vec::new(),
            history: vec![vec![(0, 0)]; dwords],
            now: 0,
            floor: 0,
            latest: 0,
            seen: vec![0; dwords],
        })))
    }

    /// Adds what a writer did, with the planted fault applied.
    fn write(&self, recorded: &Recorded) {
        let mut state = self.0.borrow_mut();
        let mut operations: Vec<Operation> = recorded.operations.borrow_mut().drain(..).collect();
        if state.fault == Fault::HeaderFirst {
            let is_header =
                |operation: &Operation| matches!(operation, Operation::Store(dword, _) if dword % 16 == 0);
            let header = operations.iter().position(is_header).expect("an entry has a header");
            let header = operations.remove(header);
            operations.splice(0..0, [header, Operation::Fence]);
        }
        state.operations.extend(operations);
    }

    /// True if nothing more can change.
    fn settled(&self) -> bool {
        let mut state = self.0.borrow_mut();
        let quiet = state.operations.is_empty() && state.pending.is_empty();
        if quiet {
            state.floor = state.now;
        } else if state.operations.is_empty() && !state.fault.halves() && state.dice.one_in(8) {
            state.show_all(); // a buffer that nothing pushes out is emptied eventually
        }
        quiet
    }
}

/// The fate of the entries of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    Sound,
    Torn,
    Lost,
}

/// Writes and reads three times round the ring: `write` writes one entry by its mark, `read` returns whether one
/// arrived and was whole.
fn run(
    replay: &Replayed,
    recorded: &Recorded,
    mut write: impl FnMut(u32),
    mut read: impl FnMut(u32) -> Option<bool>,
) -> Outcome {
    let (mut written, mut taken) = (0, 0);
    while written < 3 * ENTRIES as u32 {
        // A burst of everything that fits, so that several entries are in flight at once.
        let burst = 1 + replay.0.borrow_mut().dice.below(ENTRIES as u32);
        for _ in 0..burst {
            write(written);
            replay.write(recorded);
            written += 1;
        }
        while taken < written {
            let settled = replay.settled();
            match read(taken) {
                Some(true) => taken += 1,
                Some(false) => return Outcome::Torn,
                None if settled => return Outcome::Lost,
                None => {}
            }
        }
    }
    Outcome::Sound
}

fn host_to_device(fault: Fault, seed: u64) -> Outcome {
    let (recorded, consumed) = (Recorded::new(ENTRIES * 16), Recorded::new(1));
    let mut host =
        InputRing::<Said, _>::starting_at(recorded.clone(), consumed.clone(), None, FIRST).expect("valid");
    recorded.operations.borrow_mut().clear();
    let replay = Replayed::new(fault, seed);
    let mut device = DeviceInput::new(replay.clone(), replay.clone(), FIRST as u32, FIRST_TAG);
    let write = |mark| host.push(&said(mark)).expect("all before it was consumed");
    let read = |mark| {
        let came = device.take()?;
        consumed.store(0, (FIRST as u32).wrapping_add(mark + 1));
        Some(came[1..15] == line(mark)[1..15])
    };
    run(&replay, &recorded, write, read)
}

fn device_to_host(fault: Fault, seed: u64) -> Outcome {
    let (recorded, consumed) = (Recorded::new(ENTRIES * 16), Recorded::new(1));
    let mut device = DeviceOutput::new(recorded.clone(), consumed.clone(), FIRST as u32, FIRST_TAG);
    let replay = Replayed::new(fault, seed);
    // The count goes through ordered memory; its effect on the entries is tested elsewhere.
    let mut host = OutputRing::<Said, _>::starting_at(
        Either::Weak(replay.clone()),
        Either::Strong(consumed),
        None,
        1,
        FIRST,
    )
    .expect("valid");
    let write = |mark| assert!(device.put(&line(mark), 0), "all before it was consumed");
    let read = |mark| match host.poll() {
        Ok(None) => None,
        answer => Some(answer == Ok(Some(said(mark)))),
    };
    run(&replay, &recorded, write, read)
}

/// The two memories of one ring.
enum Either {
    Weak(Replayed),
    Strong(Recorded),
}

impl RingMemory for Either {
    fn dwords(&self) -> usize {
        match self {
            Either::Weak(memory) => memory.dwords(),
            Either::Strong(memory) => memory.dwords(),
        }
    }
    fn load(&self, dword: usize) -> u32 {
        match self {
            Either::Weak(memory) => memory.load(dword),
            Either::Strong(memory) => memory.load(dword),
        }
    }
    fn store(&self, dword: usize, value: u32) {
        match self {
            Either::Weak(memory) => memory.store(dword, value),
            Either::Strong(memory) => memory.store(dword, value),
        }
    }
    fn fence_loads(&self) {
        if let Either::Weak(memory) = self {
            memory.fence_loads();
        }
    }
    fn fence_stores(&self) {}
}

/// Runs of both directions that end as `outcome`.
fn count(fault: Fault, outcome: Outcome) -> [u64; 2] {
    let count = |run: fn(Fault, u64) -> Outcome| {
        (0..SEEDS).map(|seed| u64::from(run(fault, seed) == outcome)).sum::<u64>()
    };
    [count(host_to_device), count(device_to_host)]
}

#[test]
fn no_entry_is_torn_or_lost_whatever_the_order() {
    assert_eq!(count(Fault::None, Outcome::Sound), [SEEDS; 2]);
}

#[test]
fn no_entry_is_torn_where_its_halves_come_in_any_order() {
    assert_eq!(count(Fault::Halves, Outcome::Sound), [SEEDS; 2]);
}

#[test]
fn each_fault_is_seen_in_both_directions() {
    for fault in [Fault::HeaderFirst, Fault::NoStoreFence, Fault::NoLoadFence, Fault::HalvesUnchecked] {
        let seen = count(fault, Outcome::Torn);
        println!("{fault:?}: {seen:?} of {SEEDS} runs");
        assert!(seen.iter().all(|runs| *runs > SEEDS / 100), "{fault:?}: {seen:?} of {SEEDS} runs");
    }
}
