//! Many requests at once on one device: what a server calls.
//!
//! [`Session::submit`] hands a request over, [`Session::poll`] takes events, [`Session::cancel`] ends one early;
//! [`Session::drain`], [`Session::stop`] and [`Session::close`] end the session. There is no step call, no global state and
//! no thread. The device plans its own steps from the slot table (`docs/megakernel.md`); the host admits, grants pages ahead,
//! cancels and parks.
//!
//! Contract and cost: [`Session::open`] allocates everything. After it `submit`, `poll`, `cancel`, `park`, `resume` and `hold`
//! allocate nothing, take no lock and make no system call: they read and write mapped memory
//! (`tests/tests/token_path_unchecked.rs` counts). (With [`Mode::Dispatch`] and [`Mode::Graph`] `poll` also submits, which
//! is mapped memory too unless the ring is full.) `poll` does not wait. Errors allocate. A session is driven by one thread
//! at a time.
//!
//! Every request ends in exactly one [`Event::Finished`]. A token is delivered once. Nothing that a request is told
//! depends on other requests, on pages, on chunks or on workgroups.

mod admission;
mod drive;
mod ending;
mod error;
mod options;
mod recovery;
mod request;
mod tape;
mod watch;

pub use drive::MegaParts;
pub use ending::NotClosed;
pub use error::{SessionError, Standing};
pub use options::{Mode, SessionOptions};
pub use recovery::Unfinished;
pub use request::{Handle, Request};
pub use zrt_protocol::FinishReason;

use crate::executor::lowering::{Planning, task_count};
use crate::executor::resident::{Progress, Resident};
use crate::memory_plan::{AllocationId, Capacity};
use crate::model::Model;
use crate::plan::ExecutionPlan;
use crate::sampling::Sampling;
use drive::{Drive, prepare_drive};
use ending::Ending;
use request::{Leaving, Place, Record};
use std::mem::offset_of;
use std::num::NonZeroU32;
use watch::Watch;
use zerocopy::FromZeros;
use zrt_device::{Buffer, Device};
use zrt_mem::SharedView;
use zrt_mem::pages::{Audit, Owner, PageAllocator};
use zrt_protocol::{
    self as protocol, Command, Control, PAGE_TOKENS, ROWS_MAX, SLOTS_MAX, STOP_TOKENS_MAX, Slot, Status,
};
use zrt_ring::{ControlDwords, ControlLines, InputRing, OutputRing};

/// Events after which the device is told that they were taken.
const PUBLISH_EVERY: u32 = 16;

/// Where a control line holds its words.
const CONTROL_DWORDS: ControlDwords = ControlDwords {
    cancel_serial: offset_of!(Control, cancel_serial) / 4,
    preempt_serial: offset_of!(Control, preempt_serial) / 4,
    hold_serial: offset_of!(Control, hold_serial) / 4,
    granted_pages: offset_of!(Control, granted_pages) / 4,
    granted_serial: offset_of!(Control, granted_serial) / 4,
};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A token.
    Token {
        /// Whose.
        handle: Handle,
        /// The token.
        token: u32,
        /// Its index in the sequence, the prompt counted.
        index: u32,
    },
    /// The request has ended: the last event of every request.
    Finished {
        /// Whose.
        handle: Handle,
        /// Why.
        reason: FinishReason,
    },
    /// The request is parked, as was asked.
    Parked {
        /// Whose.
        handle: Handle,
    },
}

impl Default for Event {
    fn default() -> Event {
        Event::Parked { handle: Handle(0) }
    }
}

/// A model and its requests.
pub struct Session {
    // What holds views of the resident buffers goes before them.
    input: InputRing<Command>,
    output: OutputRing<protocol::Event>,
    control: ControlLines,
    pages: PageAllocator,
    resident: Resident,
    drive: Drive,
    options: SessionOptions,
    records: Vec<Record>,
    /// Record of each slot.
    slots: [Option<u32>; SLOTS_MAX],
    granted: Vec<u32>,
    next_handle: u64,
    next_serial: u32,
    next_age: u64,
    watch: Watch,
    ending: Ending,
    /// What went wrong behind events that were told first.
    failed: Option<SessionError>,
}

impl Session {
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

    /// The same without starting the megakernel: for tests that watch or change its memory before it runs. Requests may be
    /// submitted; they run from [`Session::start`] on.
    pub fn prepare(
        device: Device,
        model: &Model,
        options: &SessionOptions,
        progress: Progress<'_>,
    ) -> Result<Session, SessionError> {
        options.check()?;
        let (context, trained) = (options.context, model.config.context);
        if context > trained {
            return Err(SessionError::ModelContext { context, trained });
        }
        let rows = (options.slots + options.chunk_rows).min(ROWS_MAX as u32);
        let plan = ExecutionPlan::step(model, options.context, rows)
            .map_err(crate::executor::ExecutorError::from)?;
        let pages_per_slot = options.context.div_ceil(PAGE_TOKENS);
        let capacity = Capacity {
            slots: options.slots,
            pages: options.pages.unwrap_or(options.slots * pages_per_slot),
            kv_format: options.kv_format,
            tasks: task_count(&plan),
            input_entries: options.input_entries,
            output_entries: options.output_entries,
            output_heap: options.output_heap,
        };
        let planning = Planning {
            input_entries: options.input_entries,
            output_entries: options.output_entries,
            chunk_rows: options.chunk_rows,
            waits: options.mode == Mode::Mega,
        };
        let mut resident = Resident::new(device, model, plan, capacity, &planning, progress)?;
        let view = |resident: &Resident, id| mapped(resident.buffer(id)).cloned();
        let status = view(&resident, AllocationId::Status)?;
        let input = InputRing::new(view(&resident, AllocationId::InputRing)?, status, None)?;
        let output = OutputRing::new(
            view(&resident, AllocationId::OutputRing)?,
            view(&resident, AllocationId::Consumed)?,
            None,
            PUBLISH_EVERY.min(options.output_entries),
        )?;
        let control = ControlLines::new(view(&resident, AllocationId::Control)?, CONTROL_DWORDS, None)?;
        let mut pages = PageAllocator::new(capacity.pages)?;
        if let Some(seed) = options.page_order_seed {
            pages = pages.with_order_seed(seed);
        }
        resident.device.flush();
        let records = options.slots + options.waiting_max;
        let drive = prepare_drive(&mut resident, options)?;
        Ok(Session {
            drive,
            input,
            output,
            control,
            pages,
            records: (0..records).map(|_| Record::new(options.context, pages_per_slot)).collect(),
            slots: [None; SLOTS_MAX],
            granted: Vec::with_capacity(pages_per_slot as usize),
            next_handle: 1,
            next_serial: 1,
            next_age: 0,
            watch: Watch::new(),
            ending: Ending::No,
            failed: None,
            options: options.clone(),
            resident,
        })
    }

    /// Starts the megakernel, where it is the one that runs steps and was not started yet.
    pub fn start(&mut self) -> Result<(), SessionError> {
        if let Drive::Mega(mega) = &mut self.drive
            && mega.ticket.is_none()
        {
            mega.ticket = Some(self.resident.device.submit_resident(&mega.graph)?);
            self.watch = Watch::new();
        }
        Ok(())
    }

    /// Hands a request over. [`SessionError::Full`] where it can neither run nor wait now.
    pub fn submit(&mut self, request: &Request<'_>) -> Result<Handle, SessionError> {
        let sampling = request.sampling.validate()?;
        self.check_request(request)?;
        let prompt_length = request.prompt.len();
        let limit = (prompt_length as u32).saturating_add(request.tokens_max).min(self.options.context);
        self.check_pages(limit)?;
        let index = self.enqueue(request.prompt, prompt_length, limit, sampling, request.stops)?;
        let handle = self.records[index].handle;
        self.admit()?;
        Ok(Handle(handle))
    }

    fn check_pages(&self, limit: u32) -> Result<(), SessionError> {
        let (needed, pages) = (limit.div_ceil(PAGE_TOKENS), self.pages.page_count());
        if needed > pages { Err(SessionError::Pages { needed, pages }) } else { Ok(()) }
    }

    /// Takes a record for a request that waits from now on; its index.
    fn enqueue(
        &mut self,
        tokens: &[u32],
        prompt_length: usize,
        limit: u32,
        sampling: Sampling,
        stops: &[u32],
    ) -> Result<usize, SessionError> {
        if self.ending != Ending::No {
            return Err(SessionError::Leaving);
        }
        let free = self.records.iter().position(|record| record.place == Place::Nowhere);
        let index = free.ok_or(SessionError::Full { waiting_max: self.options.waiting_max })?;
        let record = &mut self.records[index];
        record.handle = self.next_handle;
        self.next_handle += 1;
        record.tokens.clear();
        record.tokens.extend_from_slice(tokens);
        record.prompt_length = prompt_length as u32;
        record.limit = limit;
        record.is_held = false;
        (record.parks_at_once, record.resumes) = (false, false);
        record.sampling = sampling;
        record.stops = [u32::MAX; STOP_TOKENS_MAX];
        record.stops[..stops.len()].copy_from_slice(stops);
        record.leaving = Leaving::No;
        record.place = Place::Waiting;
        record.age = self.next_age;
        self.next_age += 1;
        Ok(index)
    }

    /// Takes events, at most as many as fit; the answer is their number. Does not wait. An error behind events that were
    /// taken already comes with the next poll, so that no event is lost.
    pub fn poll(&mut self, events: &mut [Event]) -> Result<usize, SessionError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut count = 0;
        match self.poll_into(events, &mut count) {
            Err(error) if count == 0 => Err(error),
            result => {
                self.failed = result.err();
                Ok(count)
            }
        }
    }

    fn poll_into(&mut self, events: &mut [Event], count: &mut usize) -> Result<(), SessionError> {
        while *count < events.len() {
            let Some(told) = self.output.poll()? else { break };
            if let Some(event) = self.take(&told)? {
                events[*count] = event;
                *count += 1;
            }
        }
        *count += self.finish_waiting(&mut events[*count..]);
        self.output.publish_consumed();
        if self.ending == Ending::Stopped {
            return Ok(());
        }
        self.grant()?;
        self.resume_parked()?;
        self.admit()?;
        self.resident.device.flush();
        self.drive()?;
        self.watch(*count > 0)
    }

    /// Ends a request early: within one layer it takes part in no step. Its [`Event::Finished`] still comes.
    pub fn cancel(&mut self, handle: Handle) -> Result<(), SessionError> {
        let index = self.find(handle)?;
        let record = &mut self.records[index];
        if matches!(record.leaving, Leaving::Complete(_)) {
            return Ok(());
        }
        record.leaving = Leaving::Cancelled;
        if let (Some(slot), Some(serial)) = (record.slot(), NonZeroU32::new(record.serial)) {
            self.control.slot(slot)?.cancel(serial);
            self.resident.device.flush();
        }
        Ok(())
    }

    /// Takes a request out of the steps, within one layer. It keeps slot and pages, or gets them first where it waits;
    /// [`Event::Parked`] tells when. One that ends before is told as ended only.
    pub fn park(&mut self, handle: Handle) -> Result<(), SessionError> {
        let index = self.find(handle)?;
        let record = &mut self.records[index];
        record.resumes = false;
        match (record.place, record.leaving, NonZeroU32::new(record.serial)) {
            (Place::Running { slot }, Leaving::No, Some(serial)) => {
                record.leaving = Leaving::Parking;
                self.control.slot(slot)?.preempt(serial);
                self.resident.device.flush();
            }
            (Place::Waiting, Leaving::No, _) | (Place::Running { .. }, Leaving::Requeued, _) => {
                record.parks_at_once = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// Lets a parked request go on where it stopped; one that is still to be parked goes on when it has been.
    pub fn resume(&mut self, handle: Handle) -> Result<(), SessionError> {
        let index = self.find(handle)?;
        let record = &mut self.records[index];
        record.parks_at_once = false;
        record.resumes = record.leaving == Leaving::Parking || matches!(record.place, Place::Parked { .. });
        self.resume_parked()
    }

    /// Holds a slow client's request back, or lets it go on: it keeps everything and gets no row.
    pub fn hold(&mut self, handle: Handle, is_held: bool) -> Result<(), SessionError> {
        let index = self.find(handle)?;
        let record = &mut self.records[index];
        record.is_held = is_held;
        if let (Some(slot), Some(serial)) = (record.slot(), NonZeroU32::new(record.serial)) {
            let mut line = self.control.slot(slot)?;
            if is_held {
                line.hold(serial)
            } else {
                line.release()
            }
            self.resident.device.flush();
        }
        Ok(())
    }

    /// Requests that have not ended.
    pub fn unfinished_count(&self) -> usize {
        self.records.iter().filter(|record| record.place != Place::Nowhere).count()
    }

    /// Every token of a request that is known, prompt included.
    pub fn tokens(&self, handle: Handle) -> Result<&[u32], SessionError> {
        Ok(&self.records[self.find(handle)?].tokens)
    }

    /// Counts all pages anew: clean unless a page has leaked.
    pub fn audit(&self) -> Audit {
        self.pages.audit()
    }

    /// The resident model and its device: for reports and tests.
    pub fn resident(&mut self) -> &mut Resident {
        &mut self.resident
    }

    /// What PLAN last told: how far the device is.
    pub fn status(&self) -> Result<Status, SessionError> {
        let view = mapped(self.resident.buffer(AllocationId::Status))?;
        let mut status = Status::new_zeroed();
        status.input_consumed = view.load_u32(offset_of!(Status, input_consumed));
        status.heartbeat = view.load_u32(offset_of!(Status, heartbeat));
        status.epoch = view.load_u32(offset_of!(Status, epoch));
        status.flags = view.load_u32(offset_of!(Status, flags));
        Ok(status)
    }

    fn check_request(&self, request: &Request<'_>) -> Result<(), SessionError> {
        if request.tokens_max == 0 {
            return Err(SessionError::TokensMax { tokens: 0 });
        }
        self.check_stops(request.stops)?;
        self.check_tokens(request.prompt)
    }

    fn check_stops(&self, stops: &[u32]) -> Result<(), SessionError> {
        match stops.len() {
            0..=STOP_TOKENS_MAX => self.check_vocabulary(stops),
            count => Err(SessionError::Stops { count, max: STOP_TOKENS_MAX }),
        }
    }

    fn check_tokens(&self, tokens: &[u32]) -> Result<(), SessionError> {
        let max = self.options.context - 1;
        if tokens.is_empty() || tokens.len() > max as usize {
            return Err(SessionError::Prompt { tokens: tokens.len(), max });
        }
        self.check_vocabulary(tokens)
    }

    fn check_vocabulary(&self, tokens: &[u32]) -> Result<(), SessionError> {
        let vocabulary = self.resident.plan.config.vocabulary;
        match tokens.iter().find(|token| **token >= vocabulary) {
            Some(token) => Err(SessionError::Token { token: *token, vocabulary }),
            None => Ok(()),
        }
    }

    fn find(&self, handle: Handle) -> Result<usize, SessionError> {
        let is_it = |record: &Record| record.place != Place::Nowhere && record.handle == handle.0;
        self.records.iter().position(is_it).ok_or(SessionError::NoSuchRequest)
    }

    /// One event of the device.
    fn take(&mut self, told: &protocol::Event) -> Result<Option<Event>, SessionError> {
        let (slot, serial) = told.request();
        let unknown = SessionError::Protocol { slot: slot.number(), serial };
        let Some(index) = self.slots[slot.index()].map(|index| index as usize) else {
            return Err(unknown);
        };
        let record = &mut self.records[index];
        if record.serial != serial {
            return Err(unknown);
        }
        let handle = Handle(record.handle);
        match *told {
            protocol::Event::Token { token, index, .. } => {
                if index as usize != record.tokens.len() || record.tokens.len() >= record.limit as usize {
                    return Err(unknown);
                }
                record.tokens.push(token);
                Ok(Some(Event::Token { handle, token, index }))
            }
            protocol::Event::Preempted { position, .. } => {
                if let Leaving::No = record.leaving {
                    return Err(unknown);
                }
                record.place = Place::Parked { slot: slot.number() };
                record.parked_position = position;
                let is_told = record.leaving == Leaving::Parking;
                record.leaving = if is_told { Leaving::No } else { record.leaving };
                Ok(is_told.then_some(Event::Parked { handle }))
            }
            protocol::Event::Finished { reason, .. } => Ok(self.finished(index, slot, reason)),
        }
    }

    fn finished(&mut self, index: usize, slot: Slot, reason: FinishReason) -> Option<Event> {
        let record = &mut self.records[index];
        let handle = Handle(record.handle);
        self.pages.release_all(Owner { slot: slot.number(), serial: record.serial });
        record.pages.clear();
        record.is_starved = false;
        record.resumes = false;
        self.slots[slot.index()] = None;
        if record.leaving == Leaving::Requeued && reason == FinishReason::Cancelled {
            record.leaving = Leaving::No;
            record.place = Place::Waiting;
            return None;
        }
        record.place = Place::Nowhere;
        Some(Event::Finished { handle, reason })
    }

    /// Requests that ended before they got a slot: cancelled ones, and those that were already complete.
    fn finish_waiting(&mut self, events: &mut [Event]) -> usize {
        let mut count = 0;
        for record in &mut self.records {
            let reason = match record.leaving {
                Leaving::Cancelled => FinishReason::Cancelled,
                Leaving::Complete(reason) => reason,
                _ => continue,
            };
            if count < events.len() && record.place == Place::Waiting {
                record.place = Place::Nowhere;
                events[count] = Event::Finished { handle: Handle(record.handle), reason };
                count += 1;
            }
        }
        count
    }
}

fn mapped(buffer: &Buffer) -> Result<&SharedView, SessionError> {
    Ok(buffer.view()?)
}
