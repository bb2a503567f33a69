//! Many requests at once on one device: what a server calls.
//!
//! [`Session::submit`] submits a request, [`Session::poll`] returns events, [`Session::cancel`] ends a request early;
//! [`Session::drain`], [`Session::stop`] and [`Session::close`] end the session. There is no step call, no global state
//! and no thread. The device plans its own steps from the slot table (`docs/megakernel.md`); the host admits, grants
//! pages ahead, cancels and parks. `docs/token.md` follows one token through the files.
//!
//! A session owns four parts that do not know it: `roster` decides which requests run, with which slots and pages;
//! `link` sends that to the device and receives events; `drive` runs steps if the host runs them; `watch` detects
//! hangs. This file holds what concerns more than one of them.
//!
//! Contract and cost: [`Session::open`] allocates everything. After it `submit`, `poll`, `cancel`, `park`, `resume` and
//! `hold` allocate nothing, take no lock and make no system call: they read and write mapped memory
//! (`tests/tests/token_path_unchecked.rs` counts). With [`Mode::Dispatch`] and [`Mode::Graph`], `poll` also submits,
//! which touches only mapped memory too unless the ring is full. `poll` does not wait. Errors allocate. A session is
//! driven by one thread at a time.
//!
//! Every request ends in exactly one [`Event::Finished`]. A token is delivered once. Nothing that a request receives
//! depends on other requests, on pages, on chunks or on workgroups.

mod drive;
mod error;
mod fit;
mod limits;
mod link;
mod options;
mod recovery;
mod request;
mod roster;
mod stage;
mod tape;
mod watch;

pub use drive::MegaParts;
pub use error::{SessionError, Standing};
pub use fit::CONTEXT_MIN;
pub use options::{CHUNK_ROWS_MAX, Mode, SessionOptions};
pub use recovery::Unfinished;
pub use request::{Event, Handle, Request};
pub use tape::{first_groups, waits};
pub use zrt_protocol::FinishReason;

use crate::executor::lowering::Planning;
use crate::executor::resident::Resident;
use crate::executor::upload::{Loading, Progress};
use crate::log_probabilities::LogProbabilities;
use crate::model::Model;
use drive::{Drive, prepare_drive};
use limits::Limits;
use link::{Link, Word};
use roster::{Newcomer, Roster};
use stage::Stage;
use std::collections::HashMap;
use std::fmt;
use std::time::{Duration, Instant};
use watch::Watch;
use zrt_device::{Device, DeviceError};
use zrt_mem::pages::{Audit, PageAllocator};
use zrt_protocol::{self as protocol, Command, PAGE_TOKENS, Slot, Status};

/// How long [`Session::close`] sleeps between two checks for room in the input ring.
const ROOM_PAUSE: Duration = Duration::from_micros(50);

/// How far the end of a session has progressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    /// It accepts requests.
    No,
    /// It accepts no more requests.
    Draining,
    /// The device was told to leave.
    Stopped,
}

/// A model and its requests.
pub struct Session {
    // What holds views of the resident buffers goes before them.
    link: Link,
    resident: Resident,
    drive: Drive,
    roster: Roster,
    watch: Watch,
    options: SessionOptions,
    ending: Ending,
    /// Log-probabilities of the last poll's tokens, by request and index; at most as many as the output ring has
    /// entries, so that nothing is allocated.
    log_probabilities: HashMap<(Handle, u32), LogProbabilities>,
    /// An error that is reported after the events that preceded it.
    failed: Option<SessionError>,
}

/// A session that could not be closed, and why: it can be polled, and closed again.
pub struct NotClosed {
    /// The session.
    pub session: Box<Session>,
    /// Why it could not be closed.
    pub error: SessionError,
}

impl fmt::Debug for NotClosed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, formatter)
    }
}

impl fmt::Display for NotClosed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, formatter)
    }
}

impl std::error::Error for NotClosed {}

impl From<NotClosed> for SessionError {
    fn from(not_closed: NotClosed) -> SessionError {
        not_closed.error
    }
}

impl Session {
    // ------------------------------------------------------------------------------------------ opening

    /// Makes the model resident and starts.
    pub fn open(
        device: Device,
        model: &Model,
        options: &SessionOptions,
        progress: Progress<'_>,
    ) -> Result<Session, SessionError> {
        let mut session = Session::prepare(device, model, options, progress)?;
        session.start()?;
        Ok(session)
    }

    /// The same without starting the megakernel: for tests that watch or change its memory before it runs. Requests may
    /// be submitted; they run from [`Session::start`] on.
    pub fn prepare(
        device: Device,
        model: &Model,
        options: &SessionOptions,
        progress: Progress<'_>,
    ) -> Result<Session, SessionError> {
        let (plan, capacity) = options.plan(model)?;
        let (context, pages_per_slot) = (options.context, options.context.div_ceil(PAGE_TOKENS));
        let planning = Planning {
            input_entries: options.input_entries,
            output_entries: options.output_entries,
            chunk_rows: options.chunk_rows,
            waits: options.mode == Mode::Mega,
        };
        let loading = Loading { threads: options.load_threads, ..Loading::new(progress) };
        let mut resident = Resident::new(device, model, plan, capacity, &planning, loading)?;
        let link = Link::new(&resident)?;
        let mut pages = PageAllocator::new(capacity.pages)?;
        if let Some(seed) = options.page_order_seed {
            pages = pages.with_order_seed(seed);
        }
        let drive = prepare_drive(&mut resident, options)?;
        Ok(Session {
            link,
            resident,
            drive,
            roster: Roster::new(
                [options.slots, options.waiting_max, options.kept],
                context,
                pages_per_slot,
                pages,
            ),
            watch: Watch::new(options.hang_after),
            options: options.clone(),
            ending: Ending::No,
            log_probabilities: HashMap::with_capacity(options.output_entries as usize),
            failed: None,
        })
    }

    /// Starts the megakernel if it runs the steps and was not started yet. Waits until its workgroups have begun, two
    /// seconds longer if some have no room. [`SessionError::NotStarted`] if none begins within
    /// [`hang_after`](SessionOptions::hang_after): the session can then be closed, and not be started again.
    pub fn start(&mut self) -> Result<(), SessionError> {
        if self.drive.start(&mut self.resident.device, self.options.hang_after)? {
            self.watch = Watch::new(self.options.hang_after);
        }
        Ok(())
    }

    // ----------------------------------------------------------------------------------------- requests

    /// Submits a request. Returns [`SessionError::Full`] if it can neither run nor wait now.
    pub fn submit(&mut self, request: &Request<'_>) -> Result<Handle, SessionError> {
        let sampling = request.sampling.validate()?;
        let limit = self.limits().check(request)?;
        self.take_in(&Newcomer {
            tokens: request.prompt,
            prompt_length: request.prompt.len() as u32,
            limit,
            sampling,
            stops: request.stops,
            is_held: false,
            stage: Stage::Waiting { parks: false },
        })
    }

    /// Continues a request of a lost session in this one, from its last known token. If it had ended and only the
    /// [`Finished`](Event::Finished) was missing, that event is all that follows. A request that was held is held
    /// again; one that was parked is parked as soon as it has a slot, which [`Parked`](Event::Parked) reports. A
    /// request that no session of this model can have left is refused. Allocates.
    pub fn resubmit(&mut self, left: &Unfinished) -> Result<Handle, SessionError> {
        let end = left.end();
        let limit = self.limits().check_unfinished(left, end)?;
        self.take_in(&Newcomer {
            tokens: &left.tokens,
            prompt_length: left.prompt_length as u32,
            limit,
            sampling: left.sampling,
            stops: &left.stops,
            is_held: left.is_held,
            stage: end.map_or(Stage::Waiting { parks: left.is_parked }, Stage::Ended),
        })
    }

    fn limits(&self) -> Limits {
        let config = &self.resident.plan.config;
        Limits {
            context: self.options.context,
            trained: config.context,
            vocabulary: config.vocabulary,
            pages: self.roster.page_count(),
        }
    }

    fn take_in(&mut self, newcomer: &Newcomer<'_>) -> Result<Handle, SessionError> {
        if self.ending != Ending::No {
            return Err(SessionError::Leaving);
        }
        let full = SessionError::Full { waiting_max: self.options.waiting_max };
        let handle = self.roster.enqueue(newcomer).ok_or(full)?;
        self.admit()?;
        Ok(handle)
    }

    /// Ends a request early: within one layer it drops out of the steps. Its [`Event::Finished`] still comes.
    pub fn cancel(&mut self, handle: Handle) -> Result<(), SessionError> {
        match self.roster.cancel(handle)? {
            Some(seat) => self.link.say(&self.resident, seat, Word::Cancel),
            None => Ok(()),
        }
    }

    /// Takes a request out of the steps, within one layer. It keeps its slot and pages; a waiting request gets them
    /// first. [`Event::Parked`] reports when it is parked. A request that ends before that reports only its end. A
    /// parked request that was resumed but has not continued, for want of room in the ring, stays parked without a
    /// further event.
    pub fn park(&mut self, handle: Handle) -> Result<(), SessionError> {
        match self.roster.park(handle)? {
            Some(seat) => self.link.say(&self.resident, seat, Word::Preempt),
            None => Ok(()),
        }
    }

    /// Lets a parked request continue where it stopped; one that is still to be parked continues as soon as it is
    /// parked.
    pub fn resume(&mut self, handle: Handle) -> Result<(), SessionError> {
        self.roster.resume(handle)?;
        self.resume_parked()
    }

    /// Holds back a slow client's request, or releases it: a held request keeps everything and gets no row.
    pub fn hold(&mut self, handle: Handle, is_held: bool) -> Result<(), SessionError> {
        let word = if is_held { Word::Hold } else { Word::Release };
        match self.roster.hold(handle, is_held)? {
            Some(seat) => self.link.say(&self.resident, seat, word),
            None => Ok(()),
        }
    }

    /// Positions of a request's prompt that are not computed for it, because an ended request
    /// [was kept](SessionOptions::kept) that began with the same tokens. 0 while it waits.
    pub fn found_positions(&self, handle: Handle) -> Result<u32, SessionError> {
        self.roster.found_positions(handle)
    }

    /// Forgets all kept requests.
    pub fn forget_kept(&mut self) {
        self.roster.forget_kept();
    }

    // ------------------------------------------------------------------------------------------- polling

    /// Writes events to `events`, as many as fit, and returns their number. Does not wait. An error that occurs after
    /// some events is returned by the next poll, so that no event is lost.
    pub fn poll(&mut self, events: &mut [Event]) -> Result<usize, SessionError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut count = 0;
        self.log_probabilities.clear();
        match self.poll_into(events, &mut count) {
            Err(error) if count == 0 => Err(error),
            result => {
                self.failed = result.err();
                Ok(count)
            }
        }
    }

    fn poll_into(&mut self, events: &mut [Event], count: &mut usize) -> Result<(), SessionError> {
        let tops_max = self.options.output_entries as usize;
        while *count < events.len() && self.log_probabilities.len() < tops_max {
            let Some(told) = self.link.poll()? else { break };
            if let Some(event) = self.roster.take(&told)? {
                // The token is known from here on, whatever comes with it.
                events[*count] = event;
                *count += 1;
                self.take_tops(&told, &event)?;
            }
        }
        *count += self.roster.tell_ended(&mut events[*count..]);
        self.link.consumed();
        if self.ending == Ending::Stopped {
            return Ok(());
        }
        self.grant()?;
        self.resume_parked()?;
        self.admit()?;
        self.link.settle(&self.resident);
        let active = self.roster.active_count();
        if self.drive.run(&mut self.resident.device, active > 0)? {
            self.watch.note_submission();
        }
        self.watch.look(&mut self.link, &self.drive, &mut self.resident, active, *count > 0)
    }

    /// The log-probabilities that came with a token of the last poll, if the request asked for them.
    pub fn log_probabilities(&self, handle: Handle, index: u32) -> Option<&LogProbabilities> {
        self.log_probabilities.get(&(handle, index))
    }

    fn take_tops(&mut self, told: &protocol::Event, event: &Event) -> Result<(), SessionError> {
        let (protocol::Event::Token { has_tops: true, .. }, Event::Token { handle, token, index }) =
            (told, event)
        else {
            return Ok(());
        };
        let (slot, serial) = told.request();
        let unknown = SessionError::Protocol { slot: slot.number(), serial };
        let values = LogProbabilities::new(*token, &self.link.last_tops()).ok_or(unknown)?;
        self.log_probabilities.insert((*handle, *index), values);
        Ok(())
    }

    /// Gives every running request the pages for its known tokens and some ahead.
    fn grant(&mut self) -> Result<(), SessionError> {
        for slot in Slot::first(self.options.slots) {
            if let Some(grant) = self.roster.grant(slot) {
                self.link.grant(&mut self.resident, &grant)?;
            }
        }
        match self.roster.evict() {
            Some(seat) => self.link.say(&self.resident, seat, Word::Cancel),
            None => Ok(()),
        }
    }

    /// Resumes the parked requests that are to continue, as far as the device accepts commands.
    fn resume_parked(&mut self) -> Result<(), SessionError> {
        while let Some(next) = self.roster.next_resume() {
            if !self.link.has_room()? {
                break;
            }
            self.link.resume(&self.resident, &next)?;
            self.roster.resumed(next);
        }
        Ok(())
    }

    /// Gives slots to waiting requests, as far as the device accepts commands.
    fn admit(&mut self) -> Result<(), SessionError> {
        while let Some(next) = self.roster.next_admission() {
            if !self.link.has_room()? {
                break;
            }
            self.link.admit(&mut self.resident, &self.roster.admit(next))?;
        }
        Ok(())
    }

    // -------------------------------------------------------------------------------------------- ending

    /// Refuses new requests from now on. Existing ones run to their ends: poll until
    /// [`unfinished_count`](Session::unfinished_count) is 0, then close.
    pub fn drain(&mut self) {
        if self.ending == Ending::No {
            self.ending = Ending::Draining;
        }
    }

    /// Tells the device to leave after the current step. Poll until it [has left](Session::has_left) and there are no
    /// events; then [`unfinished`](Session::unfinished) lists what has not ended, for another session. If the input
    /// ring is full, nothing happens: poll, then try again.
    pub fn stop(&mut self) -> Result<(), SessionError> {
        if self.ending != Ending::Stopped && self.drive.is_resident_kernel() {
            self.link.send(&self.resident, &Command::Stop)?;
        }
        self.ending = Ending::Stopped;
        Ok(())
    }

    /// True if no step runs and none will unless requests are submitted.
    pub fn has_left(&self) -> bool {
        self.drive.ticket().is_none_or(|ticket| self.resident.device.is_done(ticket))
    }

    /// Tells the device to leave and waits for it; the device can then be used again. Every request must have ended, or
    /// the session must have been stopped. A device that stays longer than the deadline counts as hung only after
    /// [`hang_after`](SessionOptions::hang_after).
    pub fn close(mut self, deadline: Duration) -> Result<Device, NotClosed> {
        match self.leave(deadline) {
            Ok(()) => Ok(self.resident.device),
            Err(error) => Err(NotClosed { session: Box::new(self), error }),
        }
    }

    fn leave(&mut self, deadline: Duration) -> Result<(), SessionError> {
        let live = self.unfinished_count();
        if live > 0 && self.ending != Ending::Stopped {
            return Err(SessionError::Live { live });
        }
        let start = Instant::now();
        if self.drive.is_resident_kernel() && self.ending != Ending::Stopped {
            while !self.link.has_room()? {
                if start.elapsed() > deadline {
                    return Err(SessionError::NotLeft { waited: start.elapsed() });
                }
                std::thread::sleep(ROOM_PAUSE);
            }
            self.link.send(&self.resident, &Command::Drain)?;
        }
        self.ending = Ending::Stopped;
        // In the other modes the step that reported the last end is still running, on memory that is freed with the
        // session.
        let Some(ticket) = self.drive.ticket() else { return Ok(()) };
        let device = &mut self.resident.device;
        match device.wait(ticket, deadline.saturating_sub(start.elapsed())) {
            // Before `hang_after` a device is slow at worst: no kernel is blamed.
            Err(DeviceError::Stopped(_))
                if !device.is_lost() && start.elapsed() < self.options.hang_after =>
            {
                Err(SessionError::NotLeft { waited: start.elapsed() })
            }
            result => Ok(result?),
        }
    }

    // ------------------------------------------------------------------------------------------- reading

    /// Requests that have not ended.
    pub fn unfinished_count(&self) -> usize {
        self.roster.unfinished_count()
    }

    /// Requests that have not ended, with what is needed to continue them elsewhere, the oldest first. Allocates.
    pub fn unfinished(&self) -> Vec<Unfinished> {
        self.roster.unfinished()
    }

    /// Every token of a request that is known, prompt included.
    pub fn tokens(&self, handle: Handle) -> Result<&[u32], SessionError> {
        self.roster.tokens(handle)
    }

    /// Recounts all pages. When no request is left and [none is kept](Session::forget_kept), it is clean unless a page
    /// has leaked. Allocates.
    pub fn audit(&self) -> Audit {
        self.roster.audit()
    }

    /// The status that PLAN last reported: how far the device has come.
    pub fn status(&self) -> Result<Status, SessionError> {
        Ok(self.link.status())
    }

    /// Workgroups of the megakernel that take part, once it has started. `None` in the other modes.
    pub fn groups(&self) -> Option<u32> {
        self.drive.groups()
    }

    /// Where the megakernel's workgroups were last seen. Allocates.
    pub fn standings(&mut self) -> Result<Vec<Standing>, SessionError> {
        self.drive.standings(&mut self.resident)
    }

    /// Total number of unsuccessful polls by waiting workgroups of the megakernel. Allocates.
    pub fn spins(&mut self) -> Result<u64, SessionError> {
        self.drive.spins(&mut self.resident.device)
    }

    /// The resident model and its device: for reports and tests.
    pub fn resident(&mut self) -> &mut Resident {
        &mut self.resident
    }

    /// What the megakernel reads; `None` in the other modes.
    pub fn mega_parts(&mut self) -> Option<MegaParts<'_>> {
        self.drive.parts(&mut self.resident.device)
    }
}
