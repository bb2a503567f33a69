//! Many requests at once on one device: what a server calls.
//!
//! [`Session::submit`] hands a request over, [`Session::poll`] takes events, [`Session::cancel`] ends one early. There is
//! no step call, no global state and no thread. The device plans its own steps from the slot table (`docs/megakernel.md`);
//! the host admits, grants pages ahead, cancels and parks.
//!
//! Contract and cost: [`Session::open`] allocates everything. After it `submit`, `poll`, `cancel`, `park`, `resume` and `hold`
//! allocate nothing, take no lock and make no system call: they read and write mapped memory. (With [`Mode::Dispatch`] and
//! [`Mode::Graph`] `poll` also submits, which is mapped memory too unless the ring is full.) `poll` does not wait. Errors
//! allocate. A session is driven by one thread at a time.
//!
//! Every request ends in exactly one [`Event::Finished`]. A token is delivered once. Nothing that a request is told
//! depends on other requests, on pages, on chunks or on workgroups.

mod error;
mod options;
mod recovery;
mod request;
mod tape;

pub use error::{SessionError, Standing};
pub use options::{Mode, SessionOptions};
pub use recovery::Unfinished;
pub use request::{Handle, Request};
pub use zrt_asm::session::FinishReason;

use crate::executor::lowering::Planning;
use crate::executor::resident::{Progress, Resident};
use crate::memory_plan::{AllocationId, Capacity};
use crate::model::Model;
use crate::plan::ExecutionPlan;
use crate::sampling::Sampling;
use request::{Leaving, Place, Record};
use std::mem::offset_of;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};
use zerocopy::{FromBytes, FromZeros, IntoBytes};
use zrt_asm::params::{self, PARAMETER_BYTES_MAX, RowSet};
use zrt_asm::session::{
    Breadcrumb, COUNTERS_OFFSET, PAGE_TOKENS, ROWS_MAX, SLOTS_MAX, STOP_TOKENS_MAX, Status,
    TapeEntry,
};
use zrt_device::{Buffer, Device, Graph, Kernel, Ticket};
use zrt_isa::resources::{GroupNeeds, WaveSize};
use zrt_mem::pages::{Audit, Owner, PageAllocator};
use zrt_mem::{ByteLen, Heap, SharedView};
use zrt_ring::token_ring::{
    ControlLines, InputEntry, InputKind, InputRing, OutputEntry, OutputKind, OutputRing,
};

/// Pages that a request holds beyond those that its known tokens fill.
const PAGES_AHEAD: usize = 1;
/// How long a hung or faulted device is asked for what the driver knows.
const DIAGNOSIS_DEADLINE: Duration = Duration::from_millis(10);

/// Entries of the output ring at least: PLAN keeps one for the end of every slot's request.
const OUTPUT_ENTRIES_MIN: u32 = 2 * SLOTS_MAX as u32;
/// Events after which the device is told that they were taken.
const PUBLISH_EVERY: u32 = 16;

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

/// What the megakernel needs besides the resident model.
struct Mega {
    // Named by packets in flight: they live as long as the session.
    tape: Buffer,
    counters: Buffer,
    breadcrumbs: Buffer,
    _block: Buffer,
    kernel: Kernel,
    graph: Graph,
    /// `None` until the kernel is started.
    ticket: Option<Ticket>,
}

/// What the megakernel reads, and the device that holds it: for tests that change it.
pub struct MegaParts<'a> {
    /// The tape: a [`TapeEntry`] for each task but PLAN, in the order of [`Resident::tasks`] from the second on.
    pub tape: &'a Buffer,
    /// Workgroups that have ended steps, then, from [`COUNTERS_OFFSET`], a counter for each task.
    pub counters: &'a Buffer,
    /// The kernel.
    pub kernel: &'a Kernel,
    /// The device.
    pub device: &'a mut Device,
}

/// How steps are run.
enum Drive {
    Dispatch { graphs: Vec<Graph>, in_flight: Option<Ticket> },
    Graph { graph: Graph, in_flight: Option<Ticket> },
    Mega(Box<Mega>),
}

/// A model and its requests.
pub struct Session {
    resident: Resident,
    drive: Drive,
    options: SessionOptions,
    input: InputRing,
    output: OutputRing,
    control: ControlLines,
    pages: PageAllocator,
    records: Vec<Record>,
    /// Record of each slot.
    slots: [Option<u16>; SLOTS_MAX],
    granted: Vec<u32>,
    next_handle: u64,
    next_serial: u32,
    next_age: u64,
    moved: Instant,
    last_seen: (u32, u32),
    last_standings: Vec<Standing>,
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
        check_options(options)?;
        let rows = (options.slots + options.chunk_rows).min(ROWS_MAX as u32);
        let plan = ExecutionPlan::step(model, options.context, rows)
            .map_err(crate::executor::ExecutorError::from)?;
        let pages_per_slot = options.context.div_ceil(PAGE_TOKENS);
        let capacity = Capacity {
            slots: options.slots,
            pages: options.pages.unwrap_or(options.slots * pages_per_slot),
            kv_format: options.kv_format,
            tasks: plan.instructions.len() as u32 + plan.config.layers + 1,
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
        let view = |resident: &Resident, id| mapped(resident.buffer(id));
        let status = view(&resident, AllocationId::Status)?;
        let input = InputRing::new(view(&resident, AllocationId::InputRing)?, status, None)?;
        let output = OutputRing::new(
            view(&resident, AllocationId::OutputRing)?,
            view(&resident, AllocationId::Consumed)?,
            None,
            PUBLISH_EVERY.min(options.output_entries),
        )?;
        let control = ControlLines::new(view(&resident, AllocationId::Control)?, None)?;
        let mut pages = PageAllocator::new(capacity.pages);
        if let Some(seed) = options.page_order_seed {
            pages = pages.with_order_seed(seed);
        }
        let meta = view(&resident, AllocationId::PageMeta)?;
        pages.mirror(meta).map_err(|_| crate::executor::ExecutorError::Overflow { what: "page metadata" })?;
        resident.device.flush();
        let records = options.slots + options.waiting_max;
        let drive = drive(&mut resident, options)?;
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
            moved: Instant::now(),
            last_seen: (0, 0),
            last_standings: Vec::new(),
            options: options.clone(),
            resident,
        })
    }

    /// Starts the megakernel, where it is the one that runs steps and was not started yet.
    pub fn start(&mut self) -> Result<(), SessionError> {
        if let Drive::Mega(mega) = &mut self.drive
            && mega.ticket.is_none()
        {
            mega.ticket = Some(self.resident.device.submit(&mega.graph)?);
            self.moved = Instant::now();
        }
        Ok(())
    }

    /// Hands a request over. [`SessionError::Full`] where it can neither run nor wait now.
    pub fn submit(&mut self, request: &Request<'_>) -> Result<Handle, SessionError> {
        let sampling = request.sampling.validate()?;
        self.check_request(request)?;
        let prompt_length = request.prompt.len();
        let limit = (prompt_length as u32).saturating_add(request.tokens_max);
        let index = self.enqueue(request.prompt, prompt_length, limit, sampling, request.stops)?;
        let handle = self.records[index].handle;
        self.admit()?;
        Ok(Handle(handle))
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
        let free = self.records.iter().position(|record| record.place == Place::Nowhere);
        let index = free.ok_or(SessionError::Full { waiting_max: self.options.waiting_max })?;
        let record = &mut self.records[index];
        record.handle = self.next_handle;
        self.next_handle += 1;
        record.tokens.clear();
        record.tokens.extend_from_slice(tokens);
        record.prompt_length = prompt_length as u32;
        record.limit = limit.min(self.options.context);
        record.sampling = sampling;
        record.stops = [u32::MAX; STOP_TOKENS_MAX];
        record.stops[..stops.len()].copy_from_slice(stops);
        record.leaving = Leaving::No;
        record.place = Place::Waiting;
        record.age = self.next_age;
        self.next_age += 1;
        Ok(index)
    }

    /// Takes events, at most as many as fit; the answer is their number. Does not wait.
    pub fn poll(&mut self, events: &mut [Event]) -> Result<usize, SessionError> {
        let mut count = 0;
        while count < events.len() {
            let Some(entry) = self.output.poll()? else { break };
            if let Some(event) = self.take(&entry)? {
                events[count] = event;
                count += 1;
            }
        }
        count += self.finish_waiting(&mut events[count..]);
        self.output.publish_consumed();
        self.grant()?;
        self.admit()?;
        self.resident.device.flush();
        self.drive()?;
        self.watch(count > 0)?;
        Ok(count)
    }

    /// Ends a request early: within one layer it takes part in no step. Its [`Event::Finished`] still comes.
    pub fn cancel(&mut self, handle: Handle) -> Result<(), SessionError> {
        let index = self.find(handle)?;
        let record = &mut self.records[index];
        record.leaving = Leaving::Cancelled;
        if let (Some(slot), Some(serial)) = (record.slot(), NonZeroU32::new(record.serial)) {
            self.control.slot(slot)?.cancel(serial);
            self.resident.device.flush();
        }
        Ok(())
    }

    /// Takes a running request out of the steps. It keeps slot and pages; [`Event::Parked`] tells when. Nothing happens
    /// to a request that has no slot or is about to leave it.
    pub fn park(&mut self, handle: Handle) -> Result<(), SessionError> {
        let index = self.find(handle)?;
        let record = &mut self.records[index];
        if record.leaving != Leaving::No {
            return Ok(());
        }
        if let (Place::Running { slot }, Some(serial)) = (record.place, NonZeroU32::new(record.serial)) {
            record.leaving = Leaving::Parking;
            self.control.slot(slot)?.preempt(serial);
            self.resident.device.flush();
        }
        Ok(())
    }

    /// Lets a parked request go on where it stopped.
    pub fn resume(&mut self, handle: Handle) -> Result<(), SessionError> {
        let index = self.find(handle)?;
        let Place::Parked { slot } = self.records[index].place else { return Ok(()) };
        let record = &mut self.records[index];
        self.control.slot(slot)?.run();
        // Where it stood may be in the middle of its prompt.
        let known = record.parked_position;
        let entry = InputEntry { slot, serial: record.serial, known, ..InputEntry::new(InputKind::Resume) };
        self.input.push(&entry)?;
        record.place = Place::Running { slot };
        self.resident.device.flush();
        Ok(())
    }

    /// Holds a slow client's request back, or lets it go on: it keeps everything and gets no row.
    pub fn hold(&mut self, handle: Handle, is_held: bool) -> Result<(), SessionError> {
        let index = self.find(handle)?;
        let record = &self.records[index];
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

    /// What the megakernel reads; `None` in the other modes.
    pub fn mega_parts(&mut self) -> Option<MegaParts<'_>> {
        let Drive::Mega(mega) = &self.drive else { return None };
        let (tape, counters, kernel) = (&mega.tape, &mega.counters, &mega.kernel);
        Some(MegaParts { tape, counters, kernel, device: &mut self.resident.device })
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

    /// Lets the device leave when every request has ended, and waits for it; the device can then be used again.
    pub fn close(mut self, deadline: Duration) -> Result<Device, SessionError> {
        if matches!(&self.drive, Drive::Mega(mega) if mega.ticket.is_some()) {
            self.input.push(&InputEntry::new(InputKind::Drain))?;
            self.resident.device.flush();
        }
        // The step that told the last end still runs, on memory that goes with the session.
        if let Some(ticket) = self.ticket() {
            self.resident.device.wait(ticket, deadline)?;
        }
        Ok(self.resident.device)
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
            0..=STOP_TOKENS_MAX => Ok(()),
            count => Err(SessionError::Stops { count, max: STOP_TOKENS_MAX }),
        }
    }

    fn check_tokens(&self, tokens: &[u32]) -> Result<(), SessionError> {
        let max = self.options.context - 1;
        if tokens.is_empty() || tokens.len() > max as usize {
            return Err(SessionError::Prompt { tokens: tokens.len(), max });
        }
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

    /// One entry of the output ring.
    fn take(&mut self, entry: &OutputEntry) -> Result<Option<Event>, SessionError> {
        let unknown = SessionError::Protocol { slot: entry.slot, serial: entry.serial };
        let Some(index) = self.slots[entry.slot as usize].map(usize::from) else { return Err(unknown) };
        let record = &mut self.records[index];
        if record.serial != entry.serial {
            return Err(unknown);
        }
        let handle = Handle(record.handle);
        match entry.kind {
            OutputKind::Token => {
                if entry.index as usize != record.tokens.len() || record.tokens.len() >= record.limit as usize
                {
                    return Err(unknown);
                }
                record.tokens.push(entry.token);
                Ok(Some(Event::Token { handle, token: entry.token, index: entry.index }))
            }
            OutputKind::Preempted => {
                record.place = Place::Parked { slot: entry.slot };
                record.parked_position = entry.token;
                let is_told = record.leaving == Leaving::Parking;
                record.leaving = if is_told { Leaving::No } else { record.leaving };
                Ok(is_told.then_some(Event::Parked { handle }))
            }
            OutputKind::Finished => self.finished(index, entry),
            OutputKind::Drained => Err(unknown),
        }
    }

    fn finished(&mut self, index: usize, entry: &OutputEntry) -> Result<Option<Event>, SessionError> {
        let record = &mut self.records[index];
        let handle = Handle(record.handle);
        let reason = match entry.reason {
            1 => FinishReason::Stop,
            2 => FinishReason::Length,
            3 => FinishReason::Cancelled,
            _ => return Err(SessionError::Protocol { slot: entry.slot, serial: entry.serial }),
        };
        self.pages.release_all(Owner { slot: entry.slot, serial: record.serial });
        record.pages.clear();
        record.is_starved = false;
        self.slots[entry.slot as usize] = None;
        if record.leaving == Leaving::Requeued && reason == FinishReason::Cancelled {
            record.leaving = Leaving::No;
            record.place = Place::Waiting;
            return Ok(None);
        }
        record.place = Place::Nowhere;
        Ok(Some(Event::Finished { handle, reason }))
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

    /// Gives every running request the pages of its known tokens and some ahead. A request that finds none stands
    /// still alone; where all do, the youngest gives its pages back and waits anew.
    fn grant(&mut self) -> Result<(), SessionError> {
        for slot in 0..self.options.slots {
            if let Some(index) = self.slots[slot as usize] {
                self.grant_slot(slot, usize::from(index))?;
            }
        }
        let running = || self.records.iter().filter(|one| matches!(one.place, Place::Running { .. }));
        // Whoever is about to leave frees pages soon: one at a time.
        if running().any(|one| one.leaving != Leaving::No) {
            return Ok(());
        }
        let is_stuck = running().next().is_some() && running().all(|one| one.is_starved);
        let parked = self.records.iter().any(|one| matches!(one.place, Place::Parked { .. }));
        if is_stuck && (running().count() > 1 || parked) {
            let youngest = (0..self.records.len())
                .filter(|at| matches!(self.records[*at].place, Place::Running { .. }))
                .filter(|at| self.records[*at].leaving == Leaving::No)
                .max_by_key(|at| self.records[*at].age);
            if let Some(index) = youngest {
                self.requeue(index)?;
            }
        }
        Ok(())
    }

    fn grant_slot(&mut self, slot: u32, index: usize) -> Result<(), SessionError> {
        let record = &mut self.records[index];
        if !matches!(record.place, Place::Running { .. }) || record.leaving != Leaving::No {
            return Ok(());
        }
        let page_tokens = PAGE_TOKENS as usize;
        let last = (record.limit as usize).div_ceil(page_tokens);
        let needed = (record.tokens.len().div_ceil(page_tokens) + PAGES_AHEAD).min(last);
        let Some(missing) = needed.checked_sub(record.pages.len()).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let count = missing.min(self.pages.free_count() as usize);
        let first = record.pages.len();
        // Starved: it cannot even take in its last known token.
        record.is_starved = (first + count) * page_tokens < record.tokens.len();
        let owner = Owner { slot, serial: record.serial };
        self.granted.clear();
        if count == 0 || self.pages.grant(owner, count as u32, &mut self.granted).is_err() {
            return Ok(());
        }
        record.pages.extend_from_slice(&self.granted);
        let offset = u64::from(slot * self.resident.memory.pages_per_slot) * 4 + first as u64 * 4;
        self.resident.upload(AllocationId::HostPages, offset, self.granted.as_bytes())?;
        if let Some(serial) = NonZeroU32::new(record.serial) {
            self.control.slot(slot)?.grant(serial, record.pages.len() as u32)?;
        }
        Ok(())
    }

    /// Takes slot and pages from a running request; it goes back to the queue and is computed again from its tokens.
    fn requeue(&mut self, index: usize) -> Result<(), SessionError> {
        let record = &mut self.records[index];
        record.leaving = Leaving::Requeued;
        if let (Some(slot), Some(serial)) = (record.slot(), NonZeroU32::new(record.serial)) {
            self.control.slot(slot)?.cancel(serial);
        }
        Ok(())
    }

    /// Gives slots to waiting requests, the oldest first, as long as there is a page for each.
    fn admit(&mut self) -> Result<(), SessionError> {
        loop {
            let slot = (0..self.options.slots).find(|slot| self.slots[*slot as usize].is_none());
            let oldest = (0..self.records.len())
                .filter(|at| self.records[*at].place == Place::Waiting)
                .filter(|at| self.records[*at].leaving == Leaving::No)
                .min_by_key(|at| self.records[*at].age);
            let (Some(slot), Some(index)) = (slot, oldest) else { return Ok(()) };
            // Room for all that is known, so that a request that gave its pages back does not take them again at once.
            let known_pages = self.records[index].tokens.len().div_ceil(PAGE_TOKENS as usize);
            let whole_pool = known_pages >= self.pages.page_count() as usize;
            if (self.pages.free_count() as usize) < known_pages && !whole_pool {
                return Ok(());
            }
            if self.input.free()? == 0 {
                return Ok(());
            }
            self.admit_to(slot, index)?;
        }
    }

    fn admit_to(&mut self, slot: u32, index: usize) -> Result<(), SessionError> {
        let record = &mut self.records[index];
        record.serial = self.next_serial;
        self.next_serial = self.next_serial.wrapping_add(1).max(1);
        record.place = Place::Running { slot };
        record.is_starved = false;
        self.slots[slot as usize] = Some(index as u16);
        let first_token = u64::from(slot) * u64::from(self.options.context);
        self.resident.upload(AllocationId::Tokens, first_token * 4, record.tokens.as_bytes())?;
        let stops_offset = u64::from(slot) * STOP_TOKENS_MAX as u64 * 4;
        self.resident.upload(AllocationId::Stops, stops_offset, record.stops.as_bytes())?;
        let sampling = &record.sampling;
        let entry = InputEntry {
            slot,
            serial: record.serial,
            known: record.tokens.len() as u32,
            limit: record.limit,
            tokens_offset: first_token as u32,
            seed: sampling.seed,
            inverse_temperature: sampling.inverse_temperature.to_bits(),
            top_k: sampling.top_k,
            top_p: sampling.top_p,
            penalty: sampling.penalty.to_bits(),
            inverse_penalty: sampling.inverse_penalty.to_bits(),
            penalty_window: sampling.penalty_window,
            stop_count: record.stops.iter().filter(|stop| **stop != u32::MAX).count() as u32,
            ..InputEntry::new(InputKind::Admit)
        };
        self.grant_slot(slot, index)?;
        self.input.push(&entry)?;
        self.resident.device.flush();
        Ok(())
    }

    /// Submits the next step where the host drives steps and there may be something to do.
    fn drive(&mut self) -> Result<(), SessionError> {
        let device = &mut self.resident.device;
        let has_work = self.slots.iter().any(Option::is_some);
        match &mut self.drive {
            Drive::Mega(_) => {}
            Drive::Graph { graph, in_flight } => {
                if in_flight.is_none_or(|ticket| device.is_done(ticket)) {
                    *in_flight = if has_work { Some(device.submit(graph)?) } else { None };
                }
            }
            Drive::Dispatch { graphs, in_flight } => {
                if in_flight.is_none_or(|ticket| device.is_done(ticket)) {
                    *in_flight = None;
                    if has_work {
                        for graph in graphs.iter() {
                            *in_flight = Some(device.submit(graph)?);
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Tells a hang from idleness: requests run, and neither events nor steps nor PLAN's looks nor workgroups go on.
    fn watch(&mut self, has_events: bool) -> Result<(), SessionError> {
        let view = mapped(self.resident.buffer(AllocationId::Status))?;
        let seen = (view.load_u32(offset_of!(Status, heartbeat)), view.load_u32(offset_of!(Status, epoch)));
        let active = self.slots.iter().filter(|slot| slot.is_some()).count() as u32;
        if has_events || active == 0 || seen != self.last_seen {
            self.last_seen = seen;
            self.moved = Instant::now();
            return Ok(());
        }
        let waited = self.moved.elapsed();
        if waited < self.options.hang_after {
            return Ok(());
        }
        if let Some(ticket) = self.ticket()
            && let Err(error) = self.resident.device.wait(ticket, DIAGNOSIS_DEADLINE)
            && self.resident.device.is_lost()
        {
            return Err(error.into());
        }
        // A long step is no hang: its workgroups come from task to task.
        let groups = self.standings()?;
        if groups != self.last_standings {
            self.last_standings = groups;
            self.moved = Instant::now();
            return Ok(());
        }
        Err(SessionError::Hang { waited, active, groups })
    }

    /// The submission that is waited for, where there is one.
    fn ticket(&self) -> Option<Ticket> {
        match &self.drive {
            Drive::Mega(mega) => mega.ticket,
            Drive::Graph { in_flight, .. } | Drive::Dispatch { in_flight, .. } => *in_flight,
        }
    }

    /// Where the megakernel's workgroups were last seen. Allocates.
    pub fn standings(&mut self) -> Result<Vec<Standing>, SessionError> {
        let Drive::Mega(mega) = &self.drive else { return Ok(Vec::new()) };
        let mut bytes = vec![0; mega.breadcrumbs.len.0 as usize];
        self.resident.device.download(&mega.breadcrumbs, ByteLen(0), &mut bytes)?;
        let crumbs = bytes.chunks_exact(size_of::<Breadcrumb>()).enumerate();
        let standing = |(group, bytes): (usize, &[u8])| {
            let crumb = Breadcrumb::read_from_bytes(bytes).ok()?;
            let task = self.resident.tasks.get(crumb.task as usize)?;
            let (epoch, task, kernel) = (crumb.epoch, crumb.task, task.kernel);
            (epoch > 0).then_some(Standing { group: group as u32, epoch, task, kernel })
        };
        Ok(crumbs.filter_map(standing).collect())
    }

    /// Times that the megakernel's workgroups have looked in vain while they waited, in all.
    pub fn spins(&mut self) -> Result<u64, SessionError> {
        let Drive::Mega(mega) = &self.drive else { return Ok(0) };
        let mut bytes = vec![0; mega.breadcrumbs.len.0 as usize];
        self.resident.device.download(&mega.breadcrumbs, ByteLen(0), &mut bytes)?;
        let crumbs = bytes.chunks_exact(size_of::<Breadcrumb>());
        Ok(crumbs
            .filter_map(|one| Breadcrumb::read_from_bytes(one).ok())
            .map(|one| u64::from(one.spins))
            .sum())
    }
}

fn mapped(buffer: &Buffer) -> Result<SharedView, SessionError> {
    Ok(buffer.view()?)
}

fn check_options(options: &SessionOptions) -> Result<(), SessionError> {
    let check = |what, value: u64, is_right: bool, range| match is_right {
        true => Ok(()),
        false => Err(SessionError::Option { what, value, range }),
    };
    let (slots, output) = (options.slots, options.output_entries);
    check("slots", slots.into(), (1..=SLOTS_MAX as u32).contains(&slots), "1 to 64")?;
    check("context", options.context.into(), options.context >= 2, "at least 2")?;
    let chunk_max = ROWS_MAX as u32 - 1;
    check(
        "chunk rows",
        options.chunk_rows.into(),
        (1..=chunk_max).contains(&options.chunk_rows),
        "1 to 127",
    )?;
    let is_ring = |entries: u32| entries.is_power_of_two() && (2..=4096).contains(&entries);
    let input = options.input_entries;
    check("input entries", input.into(), is_ring(input), "a power of two from 2 to 4096")?;
    let is_output = is_ring(output) && output >= OUTPUT_ENTRIES_MIN;
    check("output entries", output.into(), is_output, "a power of two from 128 to 4096")?;
    let pages = options.pages.unwrap_or(1);
    check("pages", pages.into(), pages >= 1, "at least 1")?;
    let is_mapped = options.output_heap != Heap::DeviceLocal;
    check("output ring", 0, is_mapped, "in memory that the host reads")
}

fn drive(resident: &mut Resident, options: &SessionOptions) -> Result<Drive, SessionError> {
    let units = resident.device.info().compute_units;
    let groups = options.groups.unwrap_or(units);
    if groups == 0 {
        return Err(SessionError::Option { what: "groups", value: 0, range: "at least 1" });
    }
    match options.mode {
        Mode::Graph => {
            let tasks = resident.tasks.len();
            Ok(Drive::Graph { graph: resident.record(0..tasks, groups)?, in_flight: None })
        }
        Mode::Dispatch => {
            let each = (0..resident.tasks.len()).map(|task| resident.record(task..task + 1, groups));
            let graphs = each.collect::<Result<Vec<_>, _>>()?;
            Ok(Drive::Dispatch { graphs, in_flight: None })
        }
        Mode::Mega => Ok(Drive::Mega(Box::new(prepare_mega(resident, groups, units)?))),
    }
}

/// Refuses more workgroups than are resident at once: they wait for each other.
fn check_groups(needs: &GroupNeeds, groups: u32, units: u32) -> Result<(), SessionError> {
    let per_unit = needs.occupancy().map_or(0, |occupancy| occupancy.groups_per_cu);
    let resident = per_unit.saturating_mul(units);
    if groups <= resident {
        return Ok(());
    }
    Err(SessionError::Groups { groups, resident, per_unit, units })
}

fn prepare_mega(resident: &mut Resident, groups: u32, units: u32) -> Result<Mega, SessionError> {
    let container = zrt_asm::blob("mega").unwrap_or_default();
    let parsed = zrt_isa::zrt::Kernel::parse(container).map_err(zrt_device::DeviceError::from)?;
    let needs = GroupNeeds {
        wave_size: WaveSize::Wave32,
        vgprs: parsed.vgprs.into(),
        lds_bytes: parsed.lds_bytes,
        work_items: parsed.work_items(),
    };
    check_groups(&needs, groups, units)?;
    let tasks = resident.tasks.len() as u32;
    let parameters_va = resident.buffer(AllocationId::Parameters).va;
    let entries = tape::tape(&resident.plan, &resident.tasks, parameters_va.0)?;
    let device = &mut resident.device;
    let kernel = device.load_kernel(container)?;
    let tape_len = ByteLen((entries.len() * size_of::<TapeEntry>()) as u64);
    let tape = device.allocate(Heap::DeviceLocal, tape_len, "tape")?;
    device.upload(&tape, ByteLen(0), entries.as_bytes())?;
    let counters_len = ByteLen(u64::from(COUNTERS_OFFSET) + u64::from(tasks) * 4);
    let counters = device.allocate(Heap::DeviceLocal, counters_len, "counters")?;
    device.upload(&counters, ByteLen(0), &vec![0; counters_len.0 as usize])?;
    let breadcrumbs_len = ByteLen(u64::from(groups) * size_of::<Breadcrumb>() as u64);
    let breadcrumbs = device.allocate(Heap::HostVisible, breadcrumbs_len, "breadcrumbs")?;
    device.upload(&breadcrumbs, ByteLen(0), &vec![0; breadcrumbs_len.0 as usize])?;
    let step_va = resident.tasks[0].header.step_va;
    let block = params::Mega {
        header: params::Mega::header(step_va, 1, RowSet::Once),
        tape_va: tape.va.0,
        counters_va: counters.va.0,
        breadcrumbs_va: breadcrumbs.va.0,
        plan_va: parameters_va.0,
        tasks,
        reserved: 0,
    };
    let device = &mut resident.device;
    let parameters = device.allocate(Heap::DeviceLocal, ByteLen(PARAMETER_BYTES_MAX as u64), "mega")?;
    device.upload(&parameters, ByteLen(0), block.as_bytes())?;
    let mut recorder = device.recorder(1)?;
    recorder.dispatch(&kernel, parameters.va, [groups, 1, 1])?;
    let graph = recorder.finish()?;
    Ok(Mega { tape, counters, breadcrumbs, _block: parameters, kernel, graph, ticket: None })
}
