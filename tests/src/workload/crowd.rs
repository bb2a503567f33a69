//! The clients of a workload: how they behave, what each has asked for, has been told, and may still be told.
//!
//! Contract: what they do is drawn from the seed. An event that a client must not see is a panic that says what is
//! wrong with it.

use super::shape::Shape;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;
use zrt_engine::session::{Event, Handle, Request, Session, SessionError};
use zrt_needs::Random;
use zrt_protocol::FinishReason;

/// Looks of PLAN after which what was asked for before the first is seen, and what that look produced is in the ring.
const LOOKS: u64 = 3;
/// Longest that a client stays parked, held or deaf, in looks.
const PARKED_LOOKS_MAX: u32 = 40;
const HELD_LOOKS_MAX: u32 = 40;
const DEAF_LOOKS_MAX: u32 = 60;
/// With whims that are no rarer, a request may be cancelled before its first token.
const WHIM_LOOKS_FREQUENT: u32 = 2;
/// Events that are taken at a time where nobody takes their time.
pub const PLACES_MAX: usize = 32;

/// How clients behave.
#[derive(Clone, Copy, Debug)]
pub struct Clients {
    /// Total number of requests.
    pub requests: usize,
    /// Maximum number of requests that have not ended at a time.
    pub at_once: usize,
    /// Mean number of PLAN's looks after which one of them cancels, parks or holds; with any, they take their events
    /// slowly, too. 0: none does.
    pub whim_looks: u32,
    /// Longest that all may take.
    pub deadline: Duration,
}

/// What happened.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// Requests that have ended.
    pub requests: usize,
    /// Tokens that were delivered.
    pub tokens: u64,
    /// Ends by a stop token.
    pub stopped: u64,
    /// Ends by length.
    pub full: u64,
    /// Ends by a cancel.
    pub cancelled: u64,
    /// Requests that were parked.
    pub parked: u64,
    /// Holds.
    pub held: u64,
    /// Holds that lasted until nothing more of the request could come.
    pub quiet: u64,
    /// Times that no place was free.
    pub refused: u64,
    /// Requests that were put into a slot once more, at least.
    pub requeued: u64,
    /// Steps.
    pub steps: u32,
    /// Unsuccessful polls by workgroups.
    pub spins: u64,
    /// How long it took.
    pub took: Duration,
}

/// All clients of a session.
pub struct Crowd<'a> {
    shapes: &'a [Shape],
    clients: Clients,
    seed: u64,
    random: Random,
    live: BTreeMap<Handle, Client>,
    report: Report,
    submitted: usize,
    next_shape: usize,
    /// PLAN's looks so far.
    round: u64,
    /// Nobody polls before this round.
    deaf_until: u64,
}

/// A request that has not ended.
#[derive(Default)]
struct Client {
    shape: usize,
    told: usize,
    is_parked: bool,
    /// Round in which it is resumed.
    parked_until: Option<u64>,
    held_until: Option<u64>,
    cancelled: Option<Quiet>,
    held: Option<Quiet>,
}

/// What a client asks of the session.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Deed {
    Resume,
    Release,
    Cancel,
    Park,
    Hold,
}

/// What must no longer come after something was asked for. PLAN may be in the middle of a look and the ring full of
/// tokens, so this counts only from the second empty ring on, each found [`LOOKS`] looks after the asking or after the
/// other.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Quiet {
    /// Asked for in this round.
    Asked(u64),
    /// The ring was empty in this round, at least [`LOOKS`] looks later.
    Empty(u64),
    /// It counts.
    Yes,
}

impl Quiet {
    fn note_empty(&mut self, round: u64) {
        *self = match *self {
            Quiet::Asked(since) if round >= since + LOOKS => Quiet::Empty(round),
            Quiet::Empty(since) if round >= since + LOOKS => Quiet::Yes,
            same => same,
        };
    }
}

impl<'a> Crowd<'a> {
    /// Clients that have not come yet.
    pub fn new(shapes: &'a [Shape], clients: Clients, seed: u64) -> Crowd<'a> {
        let mut random = Random::new(seed);
        let next_shape = draw(&mut random, shapes.len());
        Crowd {
            shapes,
            clients,
            seed,
            random,
            live: BTreeMap::new(),
            report: Report::default(),
            submitted: 0,
            next_shape,
            round: 0,
            deaf_until: 0,
        }
    }

    /// What has happened so far.
    pub fn report(&self) -> Report {
        self.report
    }

    /// Whether every request has come and ended.
    pub fn is_done(&self) -> bool {
        self.submitted == self.clients.requests && self.live.is_empty()
    }

    fn is_unruly(&self) -> bool {
        self.clients.whim_looks > 0
    }

    /// PLAN has looked for work so often; returns whether that is news.
    pub fn advance_to(&mut self, looks: u64) -> bool {
        std::mem::replace(&mut self.round, looks) != looks
    }

    /// New clients come, as many as may be there at once.
    pub fn submit(&mut self, session: &mut Session) {
        while self.submitted < self.clients.requests && self.live.len() < self.clients.at_once {
            let shape = &self.shapes[self.next_shape];
            let (tokens_max, sampling) = (shape.tokens_max, shape.sampling);
            let request = Request { prompt: &shape.prompt, tokens_max, sampling, stops: &shape.stops };
            match session.submit(&request) {
                Ok(handle) => self.enter(handle),
                Err(SessionError::Full { .. }) => {
                    self.report.refused += 1;
                    break;
                }
                Err(error) => panic!("seed {}: {error}", self.seed),
            }
            if self.is_unruly() && self.random.one_in(4) {
                break;
            }
        }
    }

    /// The next client's request was accepted.
    fn enter(&mut self, handle: Handle) {
        let client = Client { shape: self.next_shape, ..Client::default() };
        assert!(self.live.insert(handle, client).is_none(), "a handle was used twice");
        self.submitted += 1;
        self.next_shape = draw(&mut self.random, self.shapes.len());
    }

    /// Clients do something, now and then.
    pub fn act(&mut self, session: &mut Session) {
        for (handle, deed) in self.deeds() {
            match deed {
                Deed::Resume => session.resume(handle).expect("a parked request is resumed"),
                Deed::Release => session.hold(handle, false).expect("a held request is released"),
                Deed::Cancel => session.cancel(handle).expect("a live request is cancelled"),
                // A parked one is parked again, too: nothing happens.
                Deed::Park => session.park(handle).expect("a live request is parked"),
                Deed::Hold => session.hold(handle, true).expect("a live request is held"),
            }
        }
    }

    /// What they do in this round: what is due, and at times one whim.
    fn deeds(&mut self) -> Vec<(Handle, Deed)> {
        let mut deeds = Vec::new();
        let round = self.round;
        for (handle, client) in &mut self.live {
            if client.is_parked && client.parked_until.is_some_and(|until| until <= round) {
                deeds.push((*handle, Deed::Resume));
                (client.is_parked, client.parked_until) = (false, None);
            }
            if client.held_until.is_some_and(|until| until <= round) {
                deeds.push((*handle, Deed::Release));
                (client.held_until, client.held) = (None, None);
            }
        }
        if self.is_unruly() && !self.live.is_empty() && self.random.one_in(self.clients.whim_looks) {
            deeds.extend(self.whim());
        }
        deeds
    }

    /// What one of them, which is there, suddenly does.
    fn whim(&mut self) -> Option<(Handle, Deed)> {
        let chosen = draw(&mut self.random, self.live.len());
        let (handle, client) = self.live.iter_mut().nth(chosen)?;
        let deed = match self.random.range(0, 9) {
            // If whims are rare, requests that go back to the queue are counted: nobody is cancelled before it has had
            // a slot.
            0 if self.clients.whim_looks <= WHIM_LOOKS_FREQUENT || client.told > 0 => {
                client.cancelled.get_or_insert(Quiet::Asked(self.round));
                Deed::Cancel
            }
            1..=5 => Deed::Park,
            _ => {
                let looks = self.random.range(1, HELD_LOOKS_MAX);
                client.held_until = Some(self.round + u64::from(looks));
                client.held.get_or_insert(Quiet::Asked(self.round));
                self.report.held += 1;
                Deed::Hold
            }
        };
        Some((*handle, deed))
    }

    /// Once in a while nobody takes an event for some looks.
    pub fn go_deaf(&mut self) {
        if self.is_unruly() && self.round >= self.deaf_until && self.random.one_in(20) {
            self.deaf_until = self.round + u64::from(self.random.range(1, DEAF_LOOKS_MAX));
        }
    }

    /// How many events are taken at most now; `None`: nobody polls.
    pub fn places_to_poll(&mut self) -> Option<usize> {
        match self.is_unruly() {
            false => Some(PLACES_MAX),
            true if self.round < self.deaf_until => None,
            true if self.random.one_in(4) => Some(PLACES_MAX),
            true => Some(1),
        }
    }

    /// What one poll gave.
    pub fn hear(&mut self, events: &[Event]) {
        for event in events {
            self.hear_one(*event);
        }
        if events.is_empty() {
            self.note_empty();
        }
    }

    /// The ring was empty in this round.
    fn note_empty(&mut self) {
        for (handle, client) in &mut self.live {
            if let Some(quiet) = &mut client.cancelled {
                quiet.note_empty(self.round);
                assert!(*quiet != Quiet::Yes, "{handle:?}: no end after a cancel");
            }
            if let Some(quiet) = &mut client.held {
                let before = *quiet;
                quiet.note_empty(self.round);
                self.report.quiet += u64::from(before != *quiet && *quiet == Quiet::Yes);
            }
        }
    }

    /// A client receives an event.
    fn hear_one(&mut self, event: Event) {
        match event {
            Event::Token { handle, token, index } => self.hear_token(handle, token, index),
            Event::Parked { handle } => {
                let client = self.live.get_mut(&handle).expect("a request that has not ended is parked");
                assert!(!client.is_parked, "{handle:?}: parked twice");
                client.is_parked = true;
                let looks = self.random.range(1, PARKED_LOOKS_MAX);
                client.parked_until = Some(self.round + u64::from(looks));
                self.report.parked += 1;
            }
            Event::Finished { handle, reason } => self.hear_end(handle, reason),
        }
    }

    fn hear_token(&mut self, handle: Handle, token: u32, index: u32) {
        let client = self.live.get_mut(&handle).expect("a token of a request that has not ended");
        let shape = &self.shapes[client.shape];
        let expected_index = shape.prompt.len() + client.told;
        assert_eq!(index as usize, expected_index, "{handle:?}: a gap, or told twice");
        let expected = shape.expected.get(client.told);
        assert_eq!(Some(&token), expected, "{handle:?}: token {} of {shape:?}", client.told);
        assert!(!client.is_parked, "{handle:?}: a token while it is parked");
        assert!(client.held != Some(Quiet::Yes), "{handle:?}: a token while it is held");
        client.told += 1;
        self.report.tokens += 1;
    }

    fn hear_end(&mut self, handle: Handle, reason: FinishReason) {
        let client = self.live.remove(&handle).expect("one end of each request");
        let shape = &self.shapes[client.shape];
        let is_stop = shape.expected.last().is_some_and(|token| shape.stops.contains(token));
        match reason {
            FinishReason::Cancelled => {
                assert!(client.cancelled.is_some(), "{handle:?}: nobody has cancelled it");
                self.report.cancelled += 1;
            }
            FinishReason::Stop => {
                assert!(is_stop, "{handle:?}: no stop token in {shape:?}");
                self.report.stopped += 1;
            }
            FinishReason::Length => {
                assert!(!is_stop, "{handle:?}: a stop token ends {shape:?}");
                self.report.full += 1;
            }
        }
        if reason != FinishReason::Cancelled {
            assert_eq!(client.told, shape.expected.len(), "{handle:?}: tokens are missing");
        }
        self.report.requests += 1;
    }
}

impl fmt::Display for Crowd<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} live after {:?}", self.live.len(), self.report)
    }
}

/// An index below `count`, which is not 0.
fn draw(random: &mut Random, count: usize) -> usize {
    random.range(0, count as u32 - 1) as usize
}

#[cfg(test)]
mod tests;
