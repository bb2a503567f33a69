//! Random programs of four waves against a model that keeps every access and every set of known accesses in full.

use super::rig::{BASE, Host, LEN};
use crate::check::memory::{
    Access, AccessKind, Completed, Defect, GroupShadow, MemoryChecker, Scope, WaveId,
};
use crate::memory::MemoryType;
use std::collections::{BTreeMap, BTreeSet};
use zrt_needs::Random;

const WAVES: u32 = 4;
const WAVES_OF_GROUP: u32 = 2;
/// Locations in use at a time: first the data, then the flags.
const SLOTS: usize = 8;
const DATA_SLOTS: usize = 6;
const STEPS: usize = 100;
const PROGRAMS: u64 = 20_000;

/// Somebody's knowledge: numbers of accesses.
#[derive(Clone, Default)]
struct Knowledge {
    issued: BTreeSet<usize>,
    completed: BTreeSet<usize>,
    /// Flag accesses whose value was seen.
    observed: BTreeSet<usize>,
}

impl Knowledge {
    fn join(&mut self, other: &Knowledge) {
        self.issued.extend(&other.issued);
        self.completed.extend(&other.completed);
        self.observed.extend(&other.observed);
    }
}

struct Event {
    wave: usize,
    kind: AccessKind,
    scope: Scope,
    location: usize,
    /// Bytes that no later plain write of the same wave has covered.
    mask: u8,
    is_completed: bool,
}

impl Event {
    fn is_flag(&self) -> bool {
        matches!(self.kind, AccessKind::Atomic { .. }) || self.scope != Scope::Cu
    }

    fn is_write(&self) -> bool {
        self.kind != AccessKind::Load
    }

    fn counts_as_load(&self) -> bool {
        matches!(self.kind, AccessKind::Load | AccessKind::Atomic { returns: true })
    }
}

/// Waves 0 and 1 share a WGP, 0 and 2 do not; 2 and 3 share a compute unit.
fn cu(wave: usize) -> u16 {
    [0, 1, 2, 2][wave]
}

/// True if both waves are within this scope of each other.
fn reaches(scope: Scope, one: usize, other: usize) -> bool {
    match scope {
        Scope::Cu => cu(one) == cu(other),
        Scope::Se => cu(one) / 2 == cu(other) / 2,
        Scope::Device | Scope::System => true,
    }
}

#[derive(Default)]
struct Model {
    events: Vec<Event>,
    knows: [Knowledge; WAVES as usize],
    /// Acquires that wait for their load: event and knowledge.
    pending: [Vec<(usize, Knowledge)>; WAVES as usize],
    /// What flag writes have published, by location: writer, scope, knowledge.
    published: BTreeMap<usize, Vec<(usize, Scope, Knowledge)>>,
    arriving: [Knowledge; (WAVES / WAVES_OF_GROUP) as usize],
    complete: [Knowledge; (WAVES / WAVES_OF_GROUP) as usize],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    Fine,
    Unwaited,
    Race,
}

impl Model {
    fn published_by(&self, wave: usize) -> Knowledge {
        let mut knowledge = self.knows[wave].clone();
        for (number, event) in self.events.iter().enumerate().filter(|(_, event)| event.wave == wave) {
            knowledge.issued.insert(number);
            if event.is_completed {
                knowledge.completed.insert(number);
            }
        }
        knowledge
    }

    fn access(&mut self, wave: usize, kind: AccessKind, scope: Scope, location: usize, mask: u8) -> Verdict {
        let number = self.events.len();
        let event = Event { wave, kind, scope, location, mask, is_completed: false };
        let knows = &self.knows[wave];
        let is_known = |number: &usize| knows.completed.contains(number) || knows.observed.contains(number);
        let verdict = |(other_number, other): (usize, &Event)| {
            let meets = other.wave != wave
                && other.location == location
                && other.mask & mask != 0
                && (other.is_write() || event.is_write());
            let is_atomic_to =
                other.is_flag() && event.is_flag() && reaches(scope.min(other.scope), wave, other.wave);
            // A wave's accesses to a flag complete in order; the last access of each kind is remembered.
            let is_alike = |one: &Event, two: &Event| {
                one.is_flag()
                    && two.is_flag()
                    && (one.wave, one.location, one.scope) == (two.wave, two.location, two.scope)
                    && (one.is_write(), one.counts_as_load()) == (two.is_write(), two.counts_as_load())
            };
            let vouches = |(number, later): (usize, &Event)| {
                number > other_number
                    && later.wave == other.wave
                    && later.location == location
                    && later.is_flag()
                    && is_known(&number)
                    && !self.events[number + 1..].iter().any(|last| is_alike(last, later))
            };
            let is_done =
                is_known(&other_number) || other.is_flag() && self.events.iter().enumerate().any(vouches);
            match () {
                () if !meets || is_atomic_to || is_done => Verdict::Fine,
                () if knows.issued.contains(&other_number) => Verdict::Unwaited,
                () => Verdict::Race,
            }
        };
        let worst = self.events.iter().enumerate().map(verdict).max().unwrap_or(Verdict::Fine);
        if event.is_write() && !event.is_flag() {
            // The memory pipeline keeps the accesses of one wave to one address in order.
            for own in self.events.iter_mut().filter(|own| own.wave == wave && own.location == location) {
                own.mask &= !mask;
            }
            self.published.remove(&location);
        }
        let is_load = event.counts_as_load();
        let (is_flag, is_write) = (event.is_flag(), event.is_write());
        self.events.push(event);
        if is_flag && is_load {
            let mut acquired = Knowledge::default();
            for (from, their_scope, knowledge) in self.published.entry(location).or_default().iter() {
                if reaches(scope.min(*their_scope), wave, *from) {
                    acquired.join(knowledge);
                }
            }
            self.pending[wave].push((number, acquired));
        }
        if is_flag && is_write {
            let mut knowledge = self.published_by(wave);
            knowledge.observed.insert(number);
            if kind == AccessKind::Store {
                self.published.remove(&location);
            }
            self.published.entry(location).or_default().push((wave, scope, knowledge));
        }
        worst
    }

    fn wait(&mut self, wave: usize, loads: bool, stores: bool) {
        for event in self.events.iter_mut().filter(|event| event.wave == wave) {
            event.is_completed |= if event.counts_as_load() { loads } else { stores };
        }
        if loads {
            for (_, knowledge) in std::mem::take(&mut self.pending[wave]) {
                self.knows[wave].join(&knowledge);
            }
        }
    }
}

/// Runs one program on both. The first difference is an error.
fn run(seed: u64) -> Result<[usize; 3], String> {
    let mut random = Random::new(seed);
    let mut checker = MemoryChecker::new();
    let mut host = Host(vec![0; LEN], MemoryType::default());
    checker.begin_dispatch(WAVES, WAVES_OF_GROUP, WaveId(0));
    let mut shadows = [GroupShadow::new(0), GroupShadow::new(0)];
    let mut model = Model::default();
    let mut sequences = [0_u32; WAVES as usize];
    let mut completed = [Completed::default(); WAVES as usize];
    // Whether a wave has signalled and not yet passed the wait; whether the phase is complete.
    let (mut has_signalled, mut may_pass) = ([false; WAVES as usize], [false; WAVES as usize]);
    let mut slots: [usize; SLOTS] = std::array::from_fn(|slot| slot);
    let mut fresh = SLOTS;
    let mut counts = [0; 3];
    let mut trace = String::new();
    for step in 0..STEPS {
        let wave = random.below(WAVES) as usize;
        let group = wave / WAVES_OF_GROUP as usize;
        let id = WaveId(wave as u32);
        match random.below(16) {
            0..=3 if !has_signalled[wave] => {
                trace += &format!("{step}: wave {wave} signals\n");
                checker.barrier_signal(&mut shadows[group], id);
                let published = model.published_by(wave);
                model.arriving[group].join(&published);
                has_signalled[wave] = true;
                let members = group * WAVES_OF_GROUP as usize..(group + 1) * WAVES_OF_GROUP as usize;
                if members.clone().all(|member| has_signalled[member] && !may_pass[member]) {
                    shadows[group].barrier_completed();
                    model.complete[group] = std::mem::take(&mut model.arriving[group]);
                    members.for_each(|member| may_pass[member] = true);
                }
            }
            0..=3 if may_pass[wave] => {
                trace += &format!("{step}: wave {wave} passes\n");
                checker.barrier_wait(&shadows[group], id);
                let complete = model.complete[group].clone();
                model.knows[wave].join(&complete);
                (has_signalled[wave], may_pass[wave]) = (false, false);
            }
            4 | 5 => {
                let (loads, stores) = [(true, false), (false, true), (true, true)][random.below(3) as usize];
                trace += &format!("{step}: wave {wave} waits, loads {loads}, stores {stores}\n");
                if loads {
                    completed[wave].loads = sequences[wave];
                }
                if stores {
                    completed[wave].stores = sequences[wave];
                }
                checker.waited(id, completed[wave]);
                model.wait(wave, loads, stores);
            }
            _ => {
                let is_flag_slot = random.below(2) == 0;
                let slot = if is_flag_slot {
                    DATA_SLOTS + random.below((SLOTS - DATA_SLOTS) as u32) as usize
                } else {
                    random.below(DATA_SLOTS as u32) as usize
                };
                let location = slots[slot];
                let is_flag = random.below(8) < if is_flag_slot { 7 } else { 1 };
                let scopes =
                    [Scope::Cu, Scope::Se, Scope::Device, Scope::Device, Scope::Device, Scope::Device];
                let scope = if is_flag { scopes[random.below(6) as usize] } else { Scope::Cu };
                let kinds = [
                    AccessKind::Load,
                    AccessKind::Store,
                    AccessKind::Atomic { returns: true },
                    AccessKind::Atomic { returns: false },
                ];
                let kind = kinds[random.below(if is_flag { 4 } else { 2 }) as usize];
                let is_flag = is_flag && (scope != Scope::Cu || kind.is_atomic());
                let (mask, offset, len) = match random.below(4) {
                    0 if !is_flag => (0b0011, 0, 2),
                    1 if !is_flag => (0b1100, 2, 2),
                    _ => (0b1111, 0, 4),
                };
                trace += &format!("{step}: wave {wave} {kind:?} {scope:?} at {location}, mask {mask:04b}\n");
                sequences[wave] += 1;
                let pc = 0x100 + step as u64;
                let sequence = sequences[wave];
                checker.begin_access(Access { wave: id, sequence, pc, cu: cu(wave), scope, kind });
                let va = BASE + 4 * location as u64 + offset;
                let mut bytes = [0; 4];
                match kind {
                    AccessKind::Load => checker.load(0, va, &mut host, &mut bytes[..len]),
                    AccessKind::Store => checker.store(0, va, &bytes[..len], &mut host),
                    _ => checker.atomic(0, va, &mut host, &mut bytes, |_| {}),
                }
                let findings = checker.take_findings();
                let found = findings.iter().map(|finding| match finding.defect {
                    Defect::Race => Verdict::Race,
                    Defect::UnwaitedLoad | Defect::UnwaitedStore => Verdict::Unwaited,
                    _ => Verdict::Fine,
                });
                let found = found.max().unwrap_or(Verdict::Fine);
                let expected = model.access(wave, kind, scope, location, mask);
                if found != expected {
                    return Err(format!("seed {seed}: {found:?}, expected {expected:?}\n{trace}"));
                }
                counts[expected as usize] += 1;
                // After a conflict the checker keeps only the newest access.
                if expected != Verdict::Fine {
                    (slots[slot], fresh) = (fresh, fresh + 1);
                }
            }
        }
    }
    Ok(counts)
}

#[test]
fn random_programs_are_judged_as_by_the_model() {
    let mut total = [0; 3];
    for seed in 1..=PROGRAMS {
        let counts = run(seed).unwrap_or_else(|error| panic!("{error}"));
        for (total, count) in total.iter_mut().zip(counts) {
            *total += count;
        }
    }
    // All verdicts must occur often, or the comparison means nothing.
    assert!(total.iter().all(|count| *count > PROGRAMS as usize / 10), "{total:?}");
}
