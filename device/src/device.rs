//! The device: opening, memory, submission, waiting.
//!
//! Contract: see the crate's documentation. [`Device::submit`] and the spinning part of [`Device::wait`] touch mapped
//! memory only. After [`SPIN_US_CARD`] (or [`SPIN_US_VIRTUAL`]) a wait sleeps in short steps, and after
//! [`EVENT_POLL_US`] it asks the driver for faults now and then; both are system calls, and neither is reached by a
//! token on a card.

use crate::choice::{DeviceChoice, OpenOptions};
use crate::copy::CopyEngine;
use crate::counters::{Counters, read_virtual_counters};
use crate::diagnosis::{Diagnosis, StopCause};
use crate::error::DeviceError;
use crate::faults::{self, DeviceFault};
use crate::findings::{self, Finding, Place};
use crate::graph::{Graph, Recorder};
use crate::info::DeviceInfo;
use crate::kernel::{Kernel, image};
use crate::memory::{Buffer, Space};
use crate::pace::Pace;
use crate::selftest::{self, Extent};
use crate::submit::SubmissionQueue;
use crate::virtual_tier::{FAULTS_PATH, PROFILE_PATH, virtual_process};
use crate::waves::{self, Waves};
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zrt_isa::zrt;
use zrt_kmd::{Attachment, EventReport, Events, KmdError, Queue, Syscalls, Topology};
use zrt_mem::{ByteLen, GpuVa, Heap};
use zrt_ring::{RingError, Watchdog};

/// How long a wait spins before it sleeps, on a card: about the shortest step of a small model.
const SPIN_US_CARD: u64 = 200;
/// The same on the virtual device, which needs the host's cores for itself.
const SPIN_US_VIRTUAL: u64 = 3;
/// How often a wait that takes long asks the driver for faults.
const EVENT_POLL_US: u64 = 50_000;
/// Time without any movement after which a queue is called stuck in a diagnosis.
const WATCHDOG_QUIET_NS: u64 = 20_000_000;
/// How long a submission waits for room in the ring.
const RING_ROOM_MS_MAX: u64 = 30_000;
/// Deadline of set-up's own small submissions (staging copies).
pub(crate) const SETUP_DEADLINE: Duration = Duration::from_secs(30);
/// Lines of the device's log that a diagnosis keeps.
const LOG_LINES_MAX: usize = 8;

/// A submission to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "nothing waits for the work by itself"]
pub struct Ticket {
    pub(crate) fence_value: u64,
}

/// A wait that did not end well.
struct Stop {
    fence_value: u64,
    waited: Duration,
    report: EventReport,
    progress: zrt_ring::Diagnosis,
}

/// An opened GPU.
pub struct Device {
    // Fields drop in this order: the queue goes before the memory that its packets name.
    queue: SubmissionQueue,
    /// What work may still touch that was not waited for to its end.
    kept: Vec<Box<dyn Any + Send>>,
    copy: Option<CopyEngine>,
    events: Events,
    info: DeviceInfo,
    fallback: Option<String>,
    lost: bool,
    /// The last graph that runs until it is told to end.
    resident: Option<Ticket>,
    pace: Pace,
    space: Space,
    /// Outlives the device: on a card it is the process's, and others may be open over it.
    attachment: Arc<Attachment>,
}

impl Device {
    /// Opens a device and runs the short self-test. [`DeviceChoice::Auto`] takes a card that passes it, else the
    /// virtual device, and [`Device::fallback_reason`] says why.
    pub fn open(choice: DeviceChoice, options: &OpenOptions) -> Result<Device, DeviceError> {
        let refuse = |reason| Err(DeviceError::NotOpenable { choice: choice.name(), reason });
        match choice {
            DeviceChoice::Virtual => Device::open_virtual(options),
            DeviceChoice::Kfd => Device::open_over(&Attachment::of_this_process()?, false, options),
            DeviceChoice::Auto => match Device::open(DeviceChoice::Kfd, options) {
                Ok(device) => Ok(device),
                // A card that this process has lost is not one that the machine lacks.
                Err(error @ DeviceError::Kmd(KmdError::ProcessLost { .. })) => Err(error),
                Err(error) => {
                    let mut device = Device::open_virtual(options)?;
                    device.fallback = Some(error.to_string());
                    Ok(device)
                }
            },
            DeviceChoice::Cpu => refuse("it is the oracle of the engine, not a device"),
            DeviceChoice::Userq => refuse("user queues are not driven yet; use kfd or virtual"),
        }
    }

    fn open_virtual(options: &OpenOptions) -> Result<Device, DeviceError> {
        Device::open_over(&virtual_process(options)?, true, options)
    }

    /// Opens the first gfx1201 that a process sees: a further device of this process, or one over a virtual board that the
    /// caller keeps. Any number may be open at a time and one after the other.
    ///
    /// # Errors
    /// [`KmdError::ProcessLost`] after a page fault or a reset: no device of this process will ever run again.
    pub fn open_over(
        attachment: &Arc<Attachment>,
        is_virtual: bool,
        options: &OpenOptions,
    ) -> Result<Device, DeviceError> {
        let mut device = Device::open_untested(attachment, is_virtual, options)?;
        let reports = selftest::run(&mut device, Extent::Short);
        match selftest::refusal(&device, &reports) {
            None => Ok(device),
            Some(refusal) => Err(refusal),
        }
    }

    /// The same without the self-test: for the self-test's own front end.
    pub fn open_untested(
        attachment: &Arc<Attachment>,
        is_virtual: bool,
        options: &OpenOptions,
    ) -> Result<Device, DeviceError> {
        let topology = Topology::read(attachment.process().syscalls()).map_err(KmdError::from)?;
        let node = topology.first_supported().map_err(KmdError::from)?;
        let vm = attachment.vm(node)?;
        let info = DeviceInfo::of(&vm, is_virtual, options);
        let events = attachment.events(&vm)?;
        let space = Space::new(&vm, options.gtt_only)?;
        let queue = SubmissionQueue::new(&space, Queue::create(&vm, options.ring_bytes)?)?;
        Ok(Device {
            queue,
            kept: Vec::new(),
            copy: None,
            events,
            info,
            fallback: None,
            lost: false,
            resident: None,
            pace: Pace::default(),
            space,
            attachment: attachment.clone(),
        })
    }

    /// Opens the device of `choice` without the self-test.
    pub fn open_for_test(choice: DeviceChoice, options: &OpenOptions) -> Result<Device, DeviceError> {
        match choice {
            DeviceChoice::Kfd => Device::open_untested(&Attachment::of_this_process()?, false, options),
            DeviceChoice::Virtual => Device::open_untested(&virtual_process(options)?, true, options),
            _ => Err(DeviceError::NotOpenable {
                choice: choice.name(),
                reason: "the packet test runs on virtual or kfd",
            }),
        }
    }

    /// What it is called, for example `Virtual R9700 (gfx1201)`.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// True for the virtual device: nothing it does is a speed of a card.
    pub fn is_virtual(&self) -> bool {
        self.info.is_virtual
    }

    /// What further devices of the same process are opened over, this one's successor too.
    pub fn attachment(&self) -> &Arc<Attachment> {
        &self.attachment
    }

    /// What is known of it.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Why [`DeviceChoice::Auto`] took the virtual device.
    pub fn fallback_reason(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// Allocates device memory. `label` appears in reports.
    pub fn allocate(&mut self, heap: Heap, len: ByteLen, label: &str) -> Result<Buffer, DeviceError> {
        self.space.allocate(heap, len, label, false)
    }

    /// Writes into a buffer: through its mapping, else by staging copies on the GPU. Blocks until the bytes are
    /// where the next submission sees them. No submission in flight may use them.
    ///
    /// # Errors
    /// [`DeviceError::Occupied`] where the host does not see the buffer and a resident kernel holds the queue.
    pub fn upload(&mut self, buffer: &Buffer, offset: ByteLen, bytes: &[u8]) -> Result<(), DeviceError> {
        let start = buffer.check_range(offset, bytes.len())?;
        if !self.space.write_mapped(buffer, start, bytes) {
            CopyEngine::upload(self, buffer, start, bytes)?;
        }
        Ok(())
    }

    /// Reads from a buffer what finished submissions left there. Errors as [`Device::upload`].
    pub fn download(
        &mut self,
        buffer: &Buffer,
        offset: ByteLen,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let start = buffer.check_range(offset, bytes.len())?;
        if !self.space.read_mapped(buffer, start, bytes) {
            CopyEngine::download(self, buffer, start, bytes)?;
        }
        Ok(())
    }

    /// Loads a kernel from the bytes of its `.zrt` container.
    pub fn load_kernel(&mut self, container: &[u8]) -> Result<Kernel, DeviceError> {
        self.load_kernel_into(&zrt::Kernel::parse(container)?, Heap::DeviceLocal)
    }

    /// Loads a kernel from its container, which must keep the container's rules.
    pub fn load_parsed_kernel(&mut self, container: &zrt::Kernel<'_>) -> Result<Kernel, DeviceError> {
        container.check()?;
        self.load_kernel_into(container, Heap::DeviceLocal)
    }

    /// The same with the code in `heap`.
    pub(crate) fn load_kernel_into(
        &mut self,
        container: &zrt::Kernel<'_>,
        heap: Heap,
    ) -> Result<Kernel, DeviceError> {
        let kernel = Kernel::new(&self.space, container, heap)?;
        self.upload(kernel.code(), ByteLen(0), &image(container))?;
        Ok(kernel)
    }

    /// Puts code from elsewhere into executable memory: see [`crate::Code`]. `image` is asked for the bytes once their
    /// address is known, and must give `len` of them, at most [`CODE_BYTES_MAX`](crate::CODE_BYTES_MAX).
    pub fn load_code<'b>(
        &mut self,
        label: &crate::CodeLabel<'_>,
        len: ByteLen,
        image: impl FnOnce(zrt_mem::GpuVa) -> std::borrow::Cow<'b, [u8]>,
    ) -> Result<crate::Code, DeviceError> {
        let code = crate::Code::allocate(&self.space, label, len)?;
        self.upload(code.buffer(), ByteLen(0), &code.padded(&image(code.va())))?;
        Ok(code)
    }

    /// Makes a kernel of explicit resource words ready to be dispatched; scratch memory is allocated where it needs it.
    pub fn prepare_launch(
        &mut self,
        parameters: &crate::LaunchParameters<'_>,
    ) -> Result<crate::LaunchKernel, DeviceError> {
        crate::LaunchKernel::new(&self.space, &self.info, parameters)
    }

    /// Starts a graph with room for `capacity` dispatches and as many barriers, at most 171,195 of them.
    pub fn recorder(&mut self, capacity: usize) -> Result<Recorder, DeviceError> {
        Recorder::new(self.space.clone(), capacity)
    }

    /// Submits a graph: one indirect buffer, one fence, one doorbell. Waits only where the ring is full.
    pub fn submit(&mut self, graph: &Graph) -> Result<Ticket, DeviceError> {
        self.submit_with(|queue| queue.submit_graph(graph))
    }

    /// Submits a graph whose kernel runs until the host tells it by memory to end. As long as it does, whatever is submitted
    /// behind it waits; uploads and downloads that need the queue are [`DeviceError::Occupied`].
    pub fn submit_resident(&mut self, graph: &Graph) -> Result<Ticket, DeviceError> {
        let ticket = self.submit(graph)?;
        self.resident = Some(ticket);
        Ok(ticket)
    }

    /// An error where a copy of `buffer` by the queue would stand behind a resident kernel.
    pub(crate) fn check_queue_is_free(&self, buffer: &Buffer) -> Result<(), DeviceError> {
        match self.resident {
            Some(ticket) if !self.is_done(ticket) => {
                Err(DeviceError::Occupied { label: buffer.label().into() })
            }
            _ => Ok(()),
        }
    }

    /// Submits packets as they stand, followed by a fence.
    pub(crate) fn submit_words(&mut self, words: &[u32]) -> Result<Ticket, DeviceError> {
        self.submit_with(|queue| queue.submit_words(words))
    }

    fn submit_with(
        &mut self,
        submit: impl Fn(&mut SubmissionQueue) -> Result<u64, DeviceError>,
    ) -> Result<Ticket, DeviceError> {
        if self.lost {
            return Err(self.lost_error());
        }
        let fence_value = match submit(&mut self.queue) {
            Err(DeviceError::Ring(RingError::Full { needed, .. })) => {
                self.wait_for_room(needed)?;
                submit(&mut self.queue)?
            }
            outcome => outcome?,
        };
        Ok(Ticket { fence_value })
    }

    /// True where the submission has finished; its stores are visible to the host.
    pub fn is_done(&self, ticket: Ticket) -> bool {
        self.queue.is_done(ticket.fence_value)
    }

    /// A number that grows whenever a submission is done.
    pub fn progress(&self) -> u64 {
        self.queue.progress()
    }

    /// Waits for a submission, at most `deadline`. A fault that the driver reports ends the wait early. After a
    /// deadline the submission may be waited for again; after a fault the device is lost.
    pub fn wait(&mut self, ticket: Ticket, deadline: Duration) -> Result<(), DeviceError> {
        match self.wait_for(ticket, deadline)? {
            None => Ok(()),
            Some(over) => Err(self.stop(over)),
        }
    }

    /// The same for a wait in slices: whether it is done. A time that is over is no failure, and costs no diagnosis.
    pub fn wait_at_most(&mut self, ticket: Ticket, slice: Duration) -> Result<bool, DeviceError> {
        match self.wait_for(ticket, slice)? {
            None => Ok(true),
            Some(over) if over.report.has_fault() => Err(self.stop(over)),
            Some(_) => Ok(false),
        }
    }

    fn wait_for(&mut self, ticket: Ticket, deadline: Duration) -> Result<Option<Stop>, DeviceError> {
        self.wait_until(deadline, ticket.fence_value, |queue| Ok(queue.is_done(ticket.fence_value)))
    }

    /// What the device has done since it was opened, counted by its own side where it has one.
    pub fn counters(&self) -> Result<Counters, DeviceError> {
        if self.info.is_virtual { read_virtual_counters(self.syscalls()) } else { Ok(self.queue.counters()) }
    }

    /// Gives back by call what the device made (queue, events, memory of its own) and says what of this process could not
    /// be given back so far. Buffers, kernels and graphs that are still alive give their memory back when they are dropped.
    pub fn close(self) -> Result<(), DeviceError> {
        let attachment = self.attachment.clone();
        drop(self);
        match attachment.process().take_teardown_failures().into_iter().next() {
            None => Ok(()),
            Some(failure) => Err(DeviceError::Teardown(failure)),
        }
    }

    /// Makes what was written through the views of VRAM buffers visible to the device: a store to mapped memory
    /// and a read across PCIe.
    pub fn flush(&self) {
        self.space.flush();
    }

    /// True after a fault: nothing can be submitted any more.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Pointers and fence as they are now.
    pub(crate) fn observe(&self) -> zrt_ring::Observation {
        self.queue.observe(0)
    }

    /// Drops these when the queue is gone, and not before.
    pub(crate) fn keep(&mut self, what: Vec<Box<dyn Any + Send>>) {
        self.kept.extend(what);
    }

    pub(crate) fn space(&self) -> &Space {
        &self.space
    }

    pub(crate) fn syscalls(&self) -> &dyn Syscalls {
        self.attachment.process().syscalls()
    }

    /// Why nothing can be submitted any more: where the whole process is lost, that.
    fn lost_error(&self) -> DeviceError {
        match self.attachment.process().loss() {
            Some(loss) => DeviceError::Kmd(KmdError::ProcessLost { loss }),
            None => DeviceError::Lost,
        }
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    /// The staging engine, taken out so that it can use the device; [`Device::put_copy`] gives it back.
    pub(crate) fn take_copy(&mut self) -> Option<CopyEngine> {
        self.copy.take()
    }

    pub(crate) fn put_copy(&mut self, engine: CopyEngine) {
        self.copy = Some(engine);
    }

    fn wait_for_room(&mut self, dwords: usize) -> Result<(), DeviceError> {
        let deadline = Duration::from_millis(RING_ROOM_MS_MAX);
        match self.wait_until(deadline, self.queue.last_fence(), |queue| queue.has_room(dwords))? {
            None => Ok(()),
            Some(over) => Err(self.stop(over)),
        }
    }

    /// Spins, then sleeps, until `done` (`None`) or the deadline. A fault is an error.
    fn wait_until(
        &mut self,
        deadline: Duration,
        fence_value: u64,
        done: impl Fn(&mut SubmissionQueue) -> Result<bool, DeviceError>,
    ) -> Result<Option<Stop>, DeviceError> {
        if done(&mut self.queue)? {
            return Ok(None);
        }
        let start = Instant::now();
        let spin_us = if self.info.is_virtual { SPIN_US_VIRTUAL } else { SPIN_US_CARD };
        let spin = Duration::from_micros(spin_us).min(deadline);
        while start.elapsed() < spin {
            if done(&mut self.queue)? {
                return Ok(None);
            }
            core::hint::spin_loop();
        }
        let mut watchdog = Watchdog::new(WATCHDOG_QUIET_NS);
        let mut naps = self.pace.naps(start.elapsed());
        let mut next_poll = Duration::from_micros(EVENT_POLL_US);
        watchdog.observe(self.queue.observe(0));
        loop {
            let waited = start.elapsed();
            if done(&mut self.queue)? {
                self.pace.learn(&naps, waited);
                return Ok(None);
            }
            if waited >= deadline {
                let progress = watchdog.observe(self.queue.observe(waited.as_nanos() as u64));
                let report = self.events.wait(Duration::ZERO).unwrap_or_default();
                return Ok(Some(Stop { fence_value, waited, report, progress }));
            }
            if waited >= next_poll {
                next_poll = waited + Duration::from_micros(EVENT_POLL_US);
                let progress = watchdog.observe(self.queue.observe(waited.as_nanos() as u64));
                let report = self.events.wait(Duration::ZERO)?;
                if report.has_fault() {
                    // The fence may have come in between; a fault still means that memory is not what it should be.
                    return Err(self.stop(Stop { fence_value, waited, report, progress }));
                }
            }
            std::thread::sleep(naps.next(deadline - waited));
        }
    }

    /// Says why a wait ended.
    fn stop(&mut self, Stop { fence_value: fence_expected, waited, report, progress }: Stop) -> DeviceError {
        let cause = match report {
            EventReport { memory_fault: Some(fault), .. } => StopCause::MemoryFault(fault),
            EventReport { hardware_exception: Some(exception), .. } => {
                StopCause::HardwareException(exception)
            }
            _ => StopCause::Deadline,
        };
        self.lost |= cause != StopCause::Deadline;
        let place = match cause {
            StopCause::MemoryFault(fault) => self.space.registry.describe(fault.va),
            _ => None,
        };
        DeviceError::Stopped(Box::new(Diagnosis {
            cause,
            waited,
            work: self.space.registry.annotate(&self.queue.describe(fence_expected)),
            fence_expected,
            observation: self.queue.observe(waited.as_nanos() as u64),
            ring: self.queue.excerpt(fence_expected),
            progress,
            place,
            device_log: self.device_log(),
            waves: if cause == StopCause::Deadline {
                self.waves().unwrap_or_default()
            } else {
                Waves::default()
            },
        }))
    }

    /// What the virtual device's checking mode found so far; empty where it is off, and on a card.
    ///
    /// # Errors
    /// [`DeviceError::Counters`] where the virtual device's file does not have the form that this expects.
    pub fn findings(&self) -> Result<Vec<Finding>, DeviceError> {
        if !self.info.is_virtual {
            return Ok(Vec::new());
        }
        findings::read(self.syscalls(), &self.space.registry)
    }

    /// What the virtual device knows to have gone wrong so far, oldest first; empty on a card. A wave that stops for good
    /// is here at once, while a wait learns of it by its deadline only, as on a card.
    pub fn faults(&self) -> Vec<DeviceFault> {
        if !self.info.is_virtual {
            return Vec::new();
        }
        faults::read(self.syscalls(), &self.space.registry)
    }

    /// Where the virtual device's waves are that have not ended; it stands still meanwhile. Nothing is known of a card's.
    ///
    /// # Errors
    /// [`DeviceError::Counters`] where the virtual device's file does not have the form that this expects.
    pub fn waves(&self) -> Result<Waves, DeviceError> {
        if !self.info.is_virtual {
            return Ok(Waves::default());
        }
        waves::read(self.syscalls(), &self.space.registry)
    }

    /// What waves did on the virtual device, as a JSON object; `None` where it does not count, and on a card.
    pub fn profile(&self) -> Option<String> {
        if !self.info.is_virtual {
            return None;
        }
        let text = self.syscalls().read_file(PROFILE_PATH).ok()?;
        (!text.is_empty()).then(|| String::from_utf8_lossy(&text).into_owned())
    }

    /// The function, and the line where it is known, of an address in code.
    pub fn place(&self, va: GpuVa) -> Place {
        self.space.registry.place(va)
    }

    /// Everything that is allocated on the device: label, address, length.
    pub fn allocations(&self) -> Vec<(String, GpuVa, ByteLen)> {
        self.space.registry.allocations()
    }

    /// The virtual device's own log, addresses named.
    fn device_log(&self) -> Vec<String> {
        if !self.info.is_virtual {
            return Vec::new();
        }
        let text = self.syscalls().read_file(FAULTS_PATH).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        text.lines().take(LOG_LINES_MAX).map(|line| self.space.registry.annotate(line)).collect()
    }
}

impl core::fmt::Debug for Device {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Device {{ {} }}", self.info.name)
    }
}
