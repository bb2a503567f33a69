//! A naive model of the roster, and a made-up device between the two.
//!
//! Contract: written with a flag for each thing that can be asked, and with lists that are searched; it shares nothing
//! with the roster but the types of the events. The device is honest: it does what it is told, at a time of its own.

use super::{keeping, newcomer, slot};
use crate::session::request::{Event, Handle};
use crate::session::roster::{Newcomer, Roster};
use crate::session::stage::{Seat, Stage};
use zrt_protocol::{Event as Told, FinishReason};

/// Tokens that a slot's pages hold.
const PAGE: usize = 16;

/// Rounds within which every request ends: each has at most 64 tokens, and one of the requests advances in each round.
const ROUNDS_MAX: usize = 2000;

/// A call of the user, a turn of the device, or a turn of the session.
#[derive(Clone, Debug)]
pub enum Call {
    Submit {
        tokens: u32,
        more: u32,
        holds: bool,
        parks: bool,
        ended: bool,
    },
    Cancel(usize),
    Park(usize),
    Resume(usize),
    Hold(usize, bool),
    /// The device advances this slot.
    Device(u32),
    /// What a poll does: pages, resumes, admissions, with room for this many commands.
    Serve(u32),
    TellEnded(usize),
}

/// A request, as the model has it.
#[derive(Clone, Debug, Default)]
struct One {
    handle: u64,
    age: u64,
    tokens: Vec<u32>,
    limit: usize,
    pages: usize,
    /// Slot and number on the device.
    seat: Option<(u32, u32)>,
    is_parked: bool,
    is_held: bool,
    position: u32,
    was_cancelled: bool,
    was_parked: bool,
    is_requeued: bool,
    parks_at_once: bool,
    resumes: bool,
    end: Option<FinishReason>,
    /// Tokens known, and positions found, when it got its slot.
    began: (usize, usize),
}

/// An ended request that is kept: who held its pages, its tokens as far as they are ready, their pages.
#[derive(Clone, Debug)]
struct Kept {
    seat: (u32, u32),
    tokens: Vec<u32>,
}

impl Kept {
    fn pages(&self) -> usize {
        self.tokens.len().div_ceil(PAGE)
    }
}

impl One {
    fn is_leaving(&self) -> bool {
        self.was_cancelled || self.was_parked || self.is_requeued || self.end.is_some()
    }

    fn runs(&self) -> bool {
        self.seat.is_some() && !self.is_parked
    }

    fn waits(&self) -> bool {
        self.seat.is_none() && !self.is_leaving()
    }

    fn is_starved(&self) -> bool {
        self.pages * PAGE < self.tokens.len()
    }
}

/// A slot of the device.
#[derive(Clone, Debug)]
struct Running {
    serial: u32,
    known: usize,
    limit: usize,
    pages: usize,
    is_parked: bool,
    cancels: bool,
    preempts: bool,
}

/// Roster, model and device.
pub struct World {
    roster: Roster,
    slots: u32,
    records: usize,
    pages: usize,
    all: Vec<One>,
    /// The oldest first.
    kept: Vec<Kept>,
    kept_max: usize,
    ages: u64,
    serials: u32,
    device: [Option<Running>; 4],
    handles: Vec<Handle>,
    ends: Vec<u32>,
}

impl World {
    pub fn new([slots, waiting_max, kept_max]: [u32; 3], pages: u32) -> World {
        World {
            roster: keeping([slots, waiting_max, kept_max], pages),
            slots,
            records: (slots + waiting_max) as usize,
            pages: pages as usize,
            all: Vec::new(),
            kept: Vec::new(),
            kept_max: kept_max as usize,
            ages: 0,
            serials: 0,
            device: Default::default(),
            handles: Vec::new(),
            ends: Vec::new(),
        }
    }

    fn free(&self) -> usize {
        let held = self.all.iter().map(|one| one.pages).sum::<usize>();
        self.pages - held - self.kept.iter().map(Kept::pages).sum::<usize>()
    }

    /// Kept requests make room.
    fn make_room(&mut self, pages: usize) {
        while self.free() < pages && !self.kept.is_empty() {
            self.kept.remove(0);
        }
    }

    /// The kept request that a new one takes over, and the positions that it finds there.
    fn found(&self, tokens: &[u32]) -> Option<(usize, usize)> {
        let mut best = None;
        for (place, kept) in self.kept.iter().enumerate() {
            let mut same = 0;
            while same + 1 < tokens.len() && kept.tokens.get(same) == Some(&tokens[same]) {
                same += 1;
            }
            let is_worth_it = same > 0 && 2 * same >= kept.tokens.len();
            if is_worth_it && best.is_none_or(|(_, most)| same >= most) {
                best = Some((place, same));
            }
        }
        best
    }

    pub fn call(&mut self, call: &Call) {
        match *call {
            Call::Submit { tokens, more, holds, parks, ended } => {
                self.submit(tokens, more, holds, parks, ended)
            }
            Call::Cancel(which) => self.cancel(which),
            Call::Park(which) => self.park(which),
            Call::Resume(which) => self.resume(which),
            Call::Hold(which, is_held) => self.hold(which, is_held),
            Call::Device(slot) => self.go_on(slot),
            Call::Serve(room) => self.serve(room),
            Call::TellEnded(room) => self.tell_ended(room),
        }
    }

    // --------------------------------------------------------------------------------------------- the user

    fn submit(&mut self, tokens: u32, more: u32, is_held: bool, parks: bool, ended: bool) {
        let tokens: Vec<u32> = (0..tokens).map(|at| at * 3 + 1).collect();
        let limit = (tokens.len() as u32 + more).min(self.pages as u32 * PAGE as u32);
        let stage = if ended { Stage::Ended(FinishReason::Length) } else { Stage::Waiting { parks } };
        let asked = Newcomer { is_held, stage, ..newcomer(&tokens, limit) };
        let handle = self.roster.enqueue(&asked);
        assert_eq!(handle.is_some(), self.all.len() < self.records);
        let Some(handle) = handle else { return };
        self.handles.push(handle);
        self.ends.push(0);
        assert_eq!(handle, Handle(self.handles.len() as u64), "handles are never used twice");
        self.all.push(One {
            handle: handle.0,
            age: self.ages,
            tokens,
            limit: limit as usize,
            is_held,
            parks_at_once: parks && !ended,
            end: ended.then_some(FinishReason::Length),
            ..One::default()
        });
        self.ages += 1;
    }

    /// The request of the `which`-th newest handle; both know it, or neither.
    fn pick(&mut self, which: usize) -> Option<(Handle, usize)> {
        let handle = *self.handles.iter().rev().nth(which)?;
        let place = self.all.iter().position(|one| one.handle == handle.0);
        assert_eq!(self.roster.tokens(handle).is_ok(), place.is_some());
        Some((handle, place?))
    }

    fn cancel(&mut self, which: usize) {
        let Some((handle, place)) = self.pick(which) else { return };
        let seat = self.roster.cancel(handle).expect("it is known");
        let one = &mut self.all[place];
        if one.end.is_none() {
            (one.was_cancelled, one.was_parked, one.is_requeued) = (true, false, false);
            if one.seat.is_none() {
                one.end = Some(FinishReason::Cancelled);
            }
        }
        assert_eq!(seat.map(pair), one.seat);
        self.say(seat.map(pair), |running| running.cancels = true);
    }

    fn park(&mut self, which: usize) {
        let Some((handle, place)) = self.pick(which) else { return };
        let seat = self.roster.park(handle).expect("it is known");
        let one = &mut self.all[place];
        one.resumes = false;
        let mut expected = None;
        if one.runs() && !one.is_leaving() {
            one.was_parked = true;
            expected = one.seat;
        } else if one.waits() || one.is_requeued {
            one.parks_at_once = true;
        }
        assert_eq!(seat.map(pair), expected);
        self.say(seat.map(pair), |running| running.preempts = true);
    }

    fn resume(&mut self, which: usize) {
        let Some((handle, place)) = self.pick(which) else { return };
        self.roster.resume(handle).expect("it is known");
        let one = &mut self.all[place];
        one.parks_at_once = false;
        one.resumes = one.was_parked || one.is_parked;
    }

    fn hold(&mut self, which: usize, is_held: bool) {
        let Some((handle, place)) = self.pick(which) else { return };
        let seat = self.roster.hold(handle, is_held).expect("it is known");
        self.all[place].is_held = is_held;
        assert_eq!(seat.map(pair), self.all[place].seat);
    }

    // ------------------------------------------------------------------------------------------- the session

    /// A control word reaches the request in the slot, if the slot still holds that request.
    fn say(&mut self, seat: Option<(u32, u32)>, word: impl Fn(&mut Running)) {
        let Some((slot, serial)) = seat else { return };
        self.device[slot as usize].iter_mut().filter(|running| running.serial == serial).for_each(word);
    }

    fn serve(&mut self, mut room: u32) {
        for number in 0..self.slots {
            self.grant(number);
        }
        self.evict();
        while let Some(next) = self.roster.next_resume() {
            let wanted = |one: &&mut One| one.is_parked && one.resumes && !one.was_cancelled;
            let handles: Vec<_> = self.all.iter_mut().filter(wanted).map(|one| one.seat).collect();
            assert!(handles.contains(&Some(pair(next.seat))));
            if room == 0 {
                return;
            }
            room -= 1;
            let one = self.all.iter_mut().find(|one| one.seat == Some(pair(next.seat))).expect("just seen");
            assert_eq!(next.position, one.position);
            (one.is_parked, one.resumes) = (false, false);
            self.roster.resumed(next);
            self.say(Some(pair(next.seat)), |running| (running.is_parked, running.preempts) = (false, false));
        }
        assert!(!self.all.iter().any(|one| one.is_parked && one.resumes && !one.was_cancelled));
        while self.admit(&mut room) {}
    }

    fn grant(&mut self, number: u32) {
        let grant = self
            .roster
            .grant(slot(number))
            .map(|grant| (pair(grant.seat), grant.first, grant.pages.to_vec()));
        let here = |one: &One| one.seat.is_some_and(|(slot, _)| slot == number) && !one.is_parked;
        let wanted = self.all.iter().find(|one| here(one)).filter(|one| !one.is_leaving()).map_or(0, missing);
        self.make_room(wanted);
        let free = self.free();
        let one = self.all.iter_mut().find(|one| here(one)).filter(|one| !one.is_leaving());
        let count = one.as_ref().map_or(0, |one| missing(one).min(free));
        let Some((seat, first, pages)) = grant else {
            assert_eq!(count, 0, "pages are free and none is granted");
            return;
        };
        let one = one.expect("a request runs there");
        assert_eq!((Some(seat), first, pages.len()), (one.seat, one.pages, count));
        one.pages += count;
        let total = one.pages;
        self.say(Some(seat), |running| running.pages = total);
    }

    fn evict(&mut self) {
        let found = self.roster.evict().map(pair);
        let running: Vec<usize> = (0..self.all.len()).filter(|at| self.all[*at].runs()).collect();
        let one = |at: &usize| &self.all[*at];
        let none_leaves = running.iter().all(|at| !one(at).is_leaving());
        let is_stuck = running.iter().any(|at| one(at).is_starved())
            && running.iter().all(|at| one(at).is_starved() || one(at).is_held);
        let others = running.len() > 1 || self.all.iter().any(|one| one.is_parked);
        let youngest = running.iter().max_by_key(|at| one(at).age).copied();
        let expected = youngest.filter(|_| none_leaves && is_stuck && others);
        assert_eq!(found, expected.and_then(|at| self.all[at].seat));
        if let Some(at) = expected {
            self.all[at].is_requeued = true;
        }
        self.say(found, |running| running.cancels = true);
    }

    fn admit(&mut self, room: &mut u32) -> bool {
        let taken: Vec<u32> = self.all.iter().filter_map(|one| one.seat).map(|(slot, _)| slot).collect();
        let number = (0..self.slots).find(|slot| !taken.contains(slot));
        let free = self.free() + self.kept.iter().map(Kept::pages).sum::<usize>();
        let oldest = self.all.iter_mut().filter(|one| one.waits()).min_by_key(|one| one.age);
        let oldest = oldest.filter(|one| one.tokens.len().div_ceil(PAGE) <= free);
        let expected = number.zip(oldest);
        let next = self.roster.next_admission();
        assert_eq!(next.is_some(), expected.is_some());
        let (Some(next), Some((number, one))) = (next, expected) else { return false };
        if *room == 0 {
            return false;
        }
        let (handle, mut one) = (one.handle, one.clone());
        let taken = self.found(&one.tokens);
        let found = taken.map_or(0, |(_, same)| same);
        if let Some((place, same)) = taken {
            self.kept.remove(place);
            one.pages = same.div_ceil(PAGE);
            self.all.iter_mut().filter(|other| other.handle == handle).for_each(|own| own.pages = one.pages);
        }
        self.make_room(missing(&one));
        let free = self.free();
        one.began = (one.tokens.len(), found);
        *room -= 1;
        self.serials += 1;
        let admission = self.roster.admit(next);
        assert_eq!(pair(admission.seat), (number, self.serials));
        assert_eq!((admission.tokens, admission.limit as usize), (one.tokens.as_slice(), one.limit));
        assert_eq!((admission.is_held, admission.parks), (one.is_held, one.parks_at_once));
        assert_eq!(admission.position as usize, found);
        let count = one.pages + missing(&one).min(free);
        assert_eq!(admission.grant.map_or(0, |grant| grant.pages.len()), count);
        one.pages = count;
        one.seat = Some((number, self.serials));
        one.was_parked = std::mem::take(&mut one.parks_at_once);
        let (known, limit) = (one.tokens.len(), one.limit);
        let (serial, preempts) = (self.serials, one.was_parked);
        self.device[number as usize] =
            Some(Running { serial, known, limit, pages: count, is_parked: false, cancels: false, preempts });
        *self.all.iter_mut().find(|own| own.handle == handle).expect("it waited") = one;
        true
    }

    fn tell_ended(&mut self, room: usize) {
        let mut events = vec![Event::default(); room];
        let count = self.roster.tell_ended(&mut events);
        let ended = |one: &&One| one.end.is_some() && one.seat.is_none();
        assert_eq!(count, self.all.iter().filter(ended).count().min(room));
        for event in &events[..count] {
            let Event::Finished { handle, reason } = *event else { panic!("{event:?}") };
            let place = self.all.iter().position(|one| one.handle == handle.0).expect("it has not ended");
            assert_eq!(self.all[place].end, Some(reason));
            self.forget(place);
        }
    }

    fn forget(&mut self, place: usize) {
        let one = self.all.remove(place);
        self.ends[one.handle as usize - 1] += 1;
    }

    // -------------------------------------------------------------------------------------------- the device

    fn go_on(&mut self, number: u32) {
        let Some(running) = &mut self.device[number as usize] else { return };
        let (slot, serial) = (slot(number), running.serial);
        // A park may have been done before the cancel comes.
        let parks_first = running.preempts && !running.is_parked && running.known % 2 == 0;
        let known = running.known as u32;
        if running.cancels && !parks_first {
            self.device[number as usize] = None;
            return self.finished(Told::Finished { slot, serial, reason: FinishReason::Cancelled, known });
        }
        if running.is_parked {
            return;
        }
        if running.known == running.limit && !running.cancels {
            self.device[number as usize] = None;
            return self.finished(Told::Finished { slot, serial, reason: FinishReason::Length, known });
        }
        if running.preempts {
            running.is_parked = true;
            let position = known - 1;
            return self.preempted(Told::Preempted { slot, serial, position, index: known - 1 }, position);
        }
        if running.pages * PAGE < running.known {
            return;
        }
        running.known += 1;
        let (token, index) = (number * 1000 + running.known as u32, running.known as u32 - 1);
        let event =
            self.roster.take(&Told::Token { slot, serial, token, index, has_tops: false }).expect("it runs");
        let one = self.all.iter_mut().find(|one| one.seat == Some((number, serial))).expect("it runs");
        one.tokens.push(token);
        assert_eq!(event, Some(Event::Token { handle: Handle(one.handle), token, index }));
    }

    fn preempted(&mut self, told: Told, position: u32) {
        let (slot, serial) = told.request();
        let event = self.roster.take(&told).expect("it was asked");
        let seat = Some((slot.number(), serial));
        let one = self.all.iter_mut().find(|one| one.seat == seat).expect("it runs");
        (one.is_parked, one.position) = (true, position);
        let expected = std::mem::take(&mut one.was_parked);
        assert_eq!(event, expected.then_some(Event::Parked { handle: Handle(one.handle) }));
    }

    fn finished(&mut self, told: Told) {
        let (slot, serial) = told.request();
        let Told::Finished { reason, .. } = told else { panic!("{told:?}") };
        let event = self.roster.take(&told).expect("it runs");
        let seat = Some((slot.number(), serial));
        let place = self.all.iter().position(|one| one.seat == seat).expect("it runs");
        let one = &mut self.all[place];
        if one.is_requeued && reason == FinishReason::Cancelled {
            (one.is_requeued, one.seat, one.pages) = (false, None, 0);
            one.resumes = false;
            assert_eq!(event, None);
            return;
        }
        assert_eq!(event, Some(Event::Finished { handle: Handle(one.handle), reason }));
        let (began, found) = one.began;
        let ready = if one.tokens.len() == began { found } else { one.tokens.len() - 1 };
        let kept = Kept { seat: (slot.number(), serial), tokens: one.tokens[..ready].to_vec() };
        self.forget(place);
        if ready > 0 && self.kept_max > 0 {
            if self.kept.len() == self.kept_max {
                self.kept.remove(0);
            }
            self.kept.push(kept);
        }
    }

    // ------------------------------------------------------------------------------------------- comparison

    /// Checks that everything visible of the roster is as in the model.
    pub fn compare(&self) {
        let mut expected: Vec<&One> = self.all.iter().collect();
        expected.sort_by_key(|one| one.age);
        let found = self.roster.unfinished();
        assert_eq!((found.len(), self.roster.unfinished_count()), (expected.len(), expected.len()));
        for (found, one) in found.iter().zip(expected) {
            assert_eq!((found.handle, &found.tokens), (Handle(one.handle), &one.tokens));
            assert_eq!(found.tokens_left as usize, one.limit - one.tokens.len());
            assert_eq!((found.is_cancelled, found.is_held), (one.was_cancelled, one.is_held), "{one:?}");
            let parks = one.end.is_none() && one.parks_at_once && !one.was_cancelled;
            assert_eq!(found.is_parked, parks || one.was_parked || one.is_parked, "{one:?}");
        }
        let audit = self.roster.audit();
        assert_eq!((audit.free as usize, audit.broken), (self.free(), 0));
        let mut held: Vec<(u32, u32, usize)> = Vec::new();
        for one in self.all.iter().filter(|one| one.pages > 0) {
            let (slot, serial) = one.seat.expect("who holds pages holds a slot");
            held.push((slot, serial, one.pages));
        }
        held.extend(self.kept.iter().map(|kept| (kept.seat.0, kept.seat.1, kept.pages())));
        held.sort_unstable();
        let leaks = audit.leaks.iter();
        let found: Vec<_> =
            leaks.map(|leak| (leak.owner.slot, leak.owner.serial, leak.references as usize)).collect();
        assert_eq!(found, held);
        let seats = self.all.iter().filter(|one| one.seat.is_some()).count();
        assert_eq!(self.roster.active_count() as usize, seats);
    }

    /// The user steps back, and device and session carry on: the end of every request is reported once, and no page is
    /// held.
    pub fn end(mut self) {
        for _ in 0..ROUNDS_MAX {
            if self.all.is_empty() {
                break;
            }
            for which in 0..self.handles.len() {
                self.resume(which);
                self.hold(which, false);
            }
            self.serve(u32::MAX);
            (0..4).for_each(|slot| self.go_on(slot));
            self.tell_ended(8);
            self.compare();
        }
        assert_eq!(self.all.len(), 0, "{:?}", self.all);
        assert!(self.ends.iter().all(|ends| *ends == 1), "{:?}", self.ends);
        self.roster.forget_kept();
        assert!(self.roster.audit().is_clean());
    }
}

/// Pages that a request lacks: one beyond those of its known tokens, and none beyond its end.
fn missing(one: &One) -> usize {
    (one.tokens.len().div_ceil(PAGE) + 1).min(one.limit.div_ceil(PAGE)).saturating_sub(one.pages)
}

fn pair(seat: Seat) -> (u32, u32) {
    (seat.slot.number(), seat.serial.get())
}
