//! The device: opening, memory, submission, waiting.
//!
//! Contract: see the crate's documentation. [`Device::submit`] and the spinning part of [`Device::wait`] touch mapped
//! memory only. After [`DeviceOptions::spin_us`] a wait sleeps in short steps, and after [`EVENT_POLL_US`] it asks the
//! driver for faults now and then; both are system calls, and on a card the wait for a token reaches neither.

use crate::copy::{CopyEngine, Direction, Piece, pieces};
use crate::counters::Counters;
use crate::diagnosis::{Diagnosis, StopCause};
use crate::error::DeviceError;
use crate::graph::{Graph, Recorder};
use crate::info::DeviceInfo;
use crate::kernel::{Kernel, image};
use crate::memory::{Buffer, Space};
use crate::options::DeviceOptions;
use crate::pace::Pace;
use crate::registry::{Place, Registry};
use crate::submit::SubmissionQueue;
use crate::waves::Waves;
use crate::witness::Witness;
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zrt_isa::zrt;
use zrt_kmd::{Attachment, EventReport, Events, KmdError, Queue, Syscalls, Topology};
use zrt_mem::{ByteLen, GpuVa, Heap};
use zrt_ring::{RingError, Watchdog};

/// How often a long wait asks the driver for faults.
const EVENT_POLL_US: u64 = 50_000;
/// Time without progress after which a diagnosis calls a queue stuck.
const WATCHDOG_QUIET_NS: u64 = 20_000_000;
/// How long a submission waits for room in the ring.
const RING_ROOM_MS_MAX: u64 = 30_000;
/// Deadline of set-up's own small submissions (staging copies).
const SETUP_DEADLINE: Duration = Duration::from_secs(30);
/// Lines of the device's log that a diagnosis keeps.
const LOG_LINES_MAX: usize = 8;

/// A submission to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "nothing waits for the work by itself"]
pub struct Ticket {
    pub(crate) fence_value: u64,
}

/// A wait that failed.
struct Stop {
    fence_value: u64,
    waited: Duration,
    report: EventReport,
    progress: zrt_ring::Diagnosis,
}

/// An opened GPU.
pub struct Device {
    // Fields are dropped in this order: the queue before the memory that its packets name.
    queue: SubmissionQueue,
    /// What unfinished work may still touch.
    kept: Vec<Box<dyn Any + Send>>,
    copy: Option<CopyEngine>,
    events: Events,
    info: DeviceInfo,
    /// How long a wait spins before it sleeps.
    spin: Duration,
    witness: Option<&'static dyn Witness>,
    lost: bool,
    /// The last graph that runs until it is told to end.
    resident: Option<Ticket>,
    pace: Pace,
    space: Space,
    /// Outlives the device: on a card it belongs to the process, and other devices may be open over it.
    attachment: Arc<Attachment>,
}

impl Device {
    /// Opens the first gfx1201 that the process sees: as the only device of this process or as a further one, on a card
    /// or on whatever else answers below the attachment. Any number may be open, at the same time or one after the
    /// other. Opening runs nothing on it.
    ///
    /// # Errors
    /// [`KmdError::ProcessLost`] after a page fault or a reset: no device of this process will ever run again.
    pub fn open(attachment: &Arc<Attachment>, options: &DeviceOptions) -> Result<Device, DeviceError> {
        let topology = Topology::read(attachment.process().syscalls()).map_err(KmdError::from)?;
        let node = topology.first_supported().map_err(KmdError::from)?;
        let vm = attachment.vm(node)?;
        let info = DeviceInfo::of(&vm, options);
        let events = attachment.events(&vm)?;
        let space = Space::new(&vm, options.gtt_only)?;
        let queue = SubmissionQueue::new(&space, Queue::create(&vm, options.ring_bytes)?)?;
        Ok(Device {
            queue,
            kept: Vec::new(),
            copy: None,
            events,
            info,
            spin: Duration::from_micros(options.spin_us),
            witness: options.witness,
            lost: false,
            resident: None,
            pace: Pace::default(),
            space,
            attachment: attachment.clone(),
        })
    }

    /// Its name, for example `Virtual R9700 (gfx1201)`.
    pub fn name(&self) -> &str {
        &self.info.name
    }

    /// The attachment over which further devices of the same process are opened, this one's successor too.
    pub fn attachment(&self) -> &Arc<Attachment> {
        &self.attachment
    }

    /// What is known about it.
    pub fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// Allocates device memory. `label` appears in reports.
    pub fn allocate(&mut self, heap: Heap, len: ByteLen, label: &str) -> Result<Buffer, DeviceError> {
        self.space.allocate(heap, len, label, false)
    }

    /// The same for memory that the GPU fetches from: instructions, or packets of an indirect buffer.
    pub fn allocate_executable(
        &mut self,
        heap: Heap,
        len: ByteLen,
        label: &str,
    ) -> Result<Buffer, DeviceError> {
        self.space.allocate(heap, len, label, true)
    }

    /// VRAM that could still be allocated, as the driver counts it. `None` if the driver does not say, and where
    /// everything lies in system memory. A system call.
    pub fn available_vram(&self) -> Option<ByteLen> {
        if self.info.gtt_only { None } else { self.space.available_vram() }
    }

    /// Whether a heap is in VRAM here: on a small BAR, and where everything lies in system memory, more heaps are not
    /// than [`Heap::is_vram`] says.
    pub fn is_vram(&self, heap: Heap) -> bool {
        self.space.is_vram(heap)
    }

    /// Whether the host can access VRAM: only through a large BAR, and only if its writes can be flushed to the GPU.
    pub fn has_visible_vram(&self) -> bool {
        self.space.has_visible_vram()
    }

    /// Writes into a buffer, through its mapping or else by staging copies on the GPU. Blocks until the bytes are where
    /// the next submission sees them. No submission in flight may use them.
    ///
    /// # Errors
    /// [`DeviceError::Occupied`] if the host cannot access the buffer and a resident kernel holds the queue.
    pub fn upload(&mut self, buffer: &Buffer, offset: ByteLen, bytes: &[u8]) -> Result<(), DeviceError> {
        let start = buffer.check_range(offset, bytes.len())?;
        if !self.space.write_mapped(buffer, start, bytes) {
            self.upload_staged(buffer, start, bytes)?;
        }
        Ok(())
    }

    /// Reads from a buffer what finished submissions left there. Errors are those of [`Device::upload`].
    pub fn download(
        &mut self,
        buffer: &Buffer,
        offset: ByteLen,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let start = buffer.check_range(offset, bytes.len())?;
        if !self.space.read_mapped(buffer, start, bytes) {
            self.download_staged(buffer, start, bytes)?;
        }
        Ok(())
    }

    fn upload_staged(&mut self, buffer: &Buffer, start: usize, bytes: &[u8]) -> Result<(), DeviceError> {
        self.with_copy_engine(buffer, |engine, device| {
            for piece in pieces(start, bytes.len()) {
                if !piece.is_whole() {
                    device.copy(engine, buffer, piece, Direction::ToStaging)?;
                }
                engine.write(&device.space, piece, &bytes[piece.start - start..piece.end - start]);
                device.copy(engine, buffer, piece, Direction::FromStaging)?;
            }
            Ok(())
        })
    }

    fn download_staged(
        &mut self,
        buffer: &Buffer,
        start: usize,
        bytes: &mut [u8],
    ) -> Result<(), DeviceError> {
        let len = bytes.len();
        self.with_copy_engine(buffer, |engine, device| {
            for piece in pieces(start, len) {
                device.copy(engine, buffer, piece, Direction::ToStaging)?;
                engine.read(&device.space, piece, &mut bytes[piece.start - start..piece.end - start]);
            }
            Ok(())
        })
    }

    /// Runs `work` with the copy engine, which is made at its first use. While a resident kernel holds the queue, a
    /// copy of `buffer` fails at once.
    fn with_copy_engine(
        &mut self,
        buffer: &Buffer,
        work: impl FnOnce(&CopyEngine, &mut Device) -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        self.check_queue_is_free(buffer)?;
        // Taken out, so that it can be used next to the device.
        let engine = match self.copy.take() {
            Some(engine) => engine,
            None => CopyEngine::new(&self.space)?,
        };
        let outcome = work(&engine, self);
        self.copy = Some(engine);
        outcome
    }

    /// Copies a piece's units one way and waits.
    fn copy(
        &mut self,
        engine: &CopyEngine,
        buffer: &Buffer,
        piece: Piece,
        direction: Direction,
    ) -> Result<(), DeviceError> {
        let packets = engine.packets(&self.space, buffer, piece, direction)?;
        let ticket = self.submit_words(packets.words())?;
        self.wait(ticket, SETUP_DEADLINE)
    }

    /// Loads a kernel from the bytes of its `.zrt` container.
    pub fn load_kernel(&mut self, container: &[u8]) -> Result<Kernel, DeviceError> {
        self.load_kernel_into(&zrt::Kernel::parse(container)?, Heap::DeviceLocal)
    }

    /// Loads a kernel from its container, which must obey the container's rules, with the code in `heap`.
    pub fn load_parsed_kernel(
        &mut self,
        container: &zrt::Kernel<'_>,
        heap: Heap,
    ) -> Result<Kernel, DeviceError> {
        container.check()?;
        self.load_kernel_into(container, heap)
    }

    fn load_kernel_into(&mut self, container: &zrt::Kernel<'_>, heap: Heap) -> Result<Kernel, DeviceError> {
        let kernel = Kernel::new(&self.space, container, heap)?;
        self.upload(kernel.code(), ByteLen(0), &image(container))?;
        Ok(kernel)
    }

    /// Puts foreign code into executable memory: see [`crate::Code`]. `image` is called for the bytes once their
    /// address is known, and must return `len` of them, at most [`CODE_BYTES_MAX`](crate::CODE_BYTES_MAX).
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

    /// Makes a kernel of explicit resource words ready to be dispatched; allocates scratch memory if it needs any.
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

    /// Submits a graph: one indirect buffer, one fence, one doorbell. Waits only if the ring is full.
    pub fn submit(&mut self, graph: &Graph) -> Result<Ticket, DeviceError> {
        self.submit_with(|queue| queue.submit_graph(graph))
    }

    /// Submits a graph whose kernel runs until the host tells it, through memory, to end. While it runs, later
    /// submissions wait; uploads and downloads that need the queue fail with [`DeviceError::Occupied`].
    pub fn submit_resident(&mut self, graph: &Graph) -> Result<Ticket, DeviceError> {
        let ticket = self.submit(graph)?;
        self.resident = Some(ticket);
        Ok(ticket)
    }

    /// Returns an error if a copy of `buffer` by the queue would wait for a resident kernel.
    fn check_queue_is_free(&self, buffer: &Buffer) -> Result<(), DeviceError> {
        match self.resident {
            Some(ticket) if !self.is_done(ticket) => {
                Err(DeviceError::Occupied { label: buffer.label().into() })
            }
            _ => Ok(()),
        }
    }

    /// Submits packets as they are, at most [`WORDS_MAX`](crate::WORDS_MAX) dwords including those of the fence that
    /// follows.
    pub fn submit_words(&mut self, words: &[u32]) -> Result<Ticket, DeviceError> {
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

    /// True if the submission has finished; its stores are visible to the host.
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

    /// The same for a wait in slices: returns whether the submission is done. The end of a slice is not a failure and
    /// costs no diagnosis.
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

    /// What the device has done since it was opened: counted by its witness, else what was submitted.
    ///
    /// # Errors
    /// [`DeviceError::Evidence`] if the witness cannot be understood.
    pub fn counters(&self) -> Result<Counters, DeviceError> {
        self.witness.map_or_else(|| Ok(self.queue.counters()), |witness| witness.counters(self.syscalls()))
    }

    /// Releases by call what the device made (queue, events, memory of its own) and reports what of this process could
    /// not be released so far. Buffers, kernels and graphs that are still alive release their memory when they are
    /// dropped.
    pub fn close(self) -> Result<(), DeviceError> {
        let attachment = self.attachment.clone();
        drop(self);
        match attachment.process().take_teardown_failures().into_iter().next() {
            None => Ok(()),
            Some(failure) => Err(DeviceError::Teardown(failure)),
        }
    }

    /// Makes writes through the views of VRAM buffers visible to the device: a store to mapped memory and a read across
    /// PCIe.
    pub fn flush(&self) {
        self.space.flush();
    }

    /// True after a fault: nothing can be submitted any more.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// The current pointers and fence.
    pub fn observe(&self) -> zrt_ring::Observation {
        self.queue.observe(0)
    }

    /// Keeps these until the queue is gone, because unfinished work may still touch them.
    pub fn keep(&mut self, what: Vec<Box<dyn Any + Send>>) {
        self.kept.extend(what);
    }

    /// The seam that the device was opened over.
    pub fn syscalls(&self) -> &dyn Syscalls {
        self.attachment.process().syscalls()
    }

    /// Why nothing can be submitted any more: the loss of the whole process, if that is the reason.
    fn lost_error(&self) -> DeviceError {
        match self.attachment.process().loss() {
            Some(loss) => DeviceError::Kmd(KmdError::ProcessLost { loss }),
            None => DeviceError::Lost,
        }
    }

    /// The driver's events of this device.
    pub fn events(&self) -> &Events {
        &self.events
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
        let spin = self.spin.min(deadline);
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
            let left = deadline.saturating_sub(waited);
            if left.is_zero() {
                let progress = watchdog.observe(self.queue.observe(waited.as_nanos() as u64));
                let report = self.events.wait(Duration::ZERO).unwrap_or_default();
                return Ok(Some(Stop { fence_value, waited, report, progress }));
            }
            if waited >= next_poll {
                next_poll = waited + Duration::from_micros(EVENT_POLL_US);
                let progress = watchdog.observe(self.queue.observe(waited.as_nanos() as u64));
                let report = self.events.wait(Duration::ZERO)?;
                if report.has_fault() {
                    // The fence may have been signalled in between; a fault still means that memory is not what it
                    // should be.
                    return Err(self.stop(Stop { fence_value, waited, report, progress }));
                }
            }
            std::thread::sleep(naps.next(left));
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
        let registry = &self.space.registry;
        let log = self.witness.map_or_else(Vec::new, |witness| witness.log(self.syscalls()));
        let waves =
            self.witness.filter(|_| cause == StopCause::Deadline).map_or_else(Waves::default, |witness| {
                witness.waves(self.syscalls(), registry).unwrap_or_default()
            });
        DeviceError::Stopped(Box::new(Diagnosis {
            cause,
            waited,
            work: registry.annotate(&self.queue.describe(fence_expected)),
            fence_expected,
            observation: self.queue.observe(waited.as_nanos() as u64),
            ring: self.queue.excerpt(fence_expected),
            progress,
            place,
            device_log: log.iter().take(LOG_LINES_MAX).map(|line| registry.annotate(line)).collect(),
            waves,
        }))
    }

    /// The function of an address in code, and the line if it is known.
    pub fn place(&self, va: GpuVa) -> Place {
        self.space.registry.place(va)
    }

    /// The names of everything on the device.
    pub fn registry(&self) -> &Registry {
        &self.space.registry
    }

    /// Everything that is allocated on the device: label, address, length.
    pub fn allocations(&self) -> Vec<(String, GpuVa, ByteLen)> {
        self.space.registry.allocations()
    }
}

impl core::fmt::Debug for Device {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "Device {{ {} }}", self.info.name)
    }
}
