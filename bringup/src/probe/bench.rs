//! What the questions share: memory, launches, waiting.
//!
//! Contract: every wait ends by the bench's deadline. A device that has stopped, or on which work is still running,
//! ends the probe ([`Stop::Device`]); anything else ends only the question. What a question allocates lives as long as
//! the question or, if work may still run on it, as long as the queue.

use super::kernels::ProbeKernel;
use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};
use zrt_device::{Buffer, Device, DeviceError, Graph, Kernel, Ticket};
use zrt_mem::{ByteLen, GpuVa, Heap};

/// Length of a parameter block.
const PARAMETER_BYTES: u64 = 32;
/// What memory holds before a kernel writes to it.
pub(super) const POISON: u32 = 0xdead_beef;
/// How long a kernel itself waits for the other side, in ticks of the 100 MHz reference clock: 2 s.
pub(super) const PATIENCE_TICKS: u32 = 200_000_000;
/// Nanoseconds of one tick of the reference clock (hardware reference §4.9).
pub(super) const TICK_NS: f64 = 10.0;

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Stop {
    /// This question has none.
    Question(String),
    /// The device accepts no more work.
    Device(String),
}

impl From<DeviceError> for Stop {
    fn from(error: DeviceError) -> Stop {
        match error {
            DeviceError::Stopped(_) | DeviceError::Lost | DeviceError::Ring(_) => {
                Stop::Device(error.to_string())
            }
            _ => Stop::Question(error.to_string()),
        }
    }
}

/// A parameter block: two addresses and two numbers, as the kernels' sources name them.
#[derive(Clone, Copy, Default)]
pub(super) struct Parameters {
    pub first: GpuVa,
    pub second: GpuVa,
    pub numbers: [u32; 2],
}

/// The device and the deadline of a question.
pub(super) struct Bench<'a> {
    pub device: &'a mut Device,
    pub deadline: Duration,
    /// What the device may touch for this question.
    held: Vec<Box<dyn Any + Send>>,
}

/// A launched kernel, with what it needs to live.
pub(super) struct Launch {
    _kernel: Kernel,
    _parameters: Arc<Buffer>,
    graph: Graph,
}

impl<'a> Bench<'a> {
    /// For one question; nothing is allocated yet.
    pub fn new(device: &'a mut Device, deadline: Duration) -> Bench<'a> {
        Bench { device, deadline, held: Vec::new() }
    }

    /// The question's end. After a stop its memory stays until the queue is gone: its kernel may still run.
    pub fn finish(self, has_stopped: bool) {
        if has_stopped {
            self.device.keep(self.held);
        }
    }

    /// Keeps what the device may touch.
    pub fn hold<T: Send + Sync + 'static>(&mut self, what: T) -> Arc<T> {
        let what = Arc::new(what);
        self.held.push(Box::new(what.clone()));
        what
    }

    /// Memory of a heap, with whatever it holds.
    pub fn allocate(&mut self, heap: Heap, len: ByteLen, label: &str) -> Result<Arc<Buffer>, Stop> {
        let buffer = self.device.allocate(heap, len, label)?;
        Ok(self.hold(buffer))
    }

    /// System memory that both sides see, full of [`POISON`].
    pub fn page(&mut self, bytes: usize, label: &str) -> Result<Arc<Buffer>, Stop> {
        let page = self.allocate(Heap::Host, ByteLen(bytes as u64), label)?;
        let view = page.view()?;
        for offset in (0..bytes).step_by(4) {
            view.store_u32(offset, POISON);
        }
        Ok(page)
    }

    /// Device memory with these dwords.
    pub fn upload(&mut self, words: &[u32], label: &str) -> Result<Arc<Buffer>, Stop> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let buffer = self.allocate(Heap::DeviceLocal, ByteLen(bytes.len() as u64), label)?;
        self.device.upload(&buffer, ByteLen(0), &bytes)?;
        Ok(buffer)
    }

    /// The first `count` dwords of a buffer.
    pub fn download(&mut self, buffer: &Buffer, count: usize) -> Result<Vec<u32>, Stop> {
        let mut bytes = vec![0; 4 * count];
        self.device.download(buffer, ByteLen(0), &mut bytes)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }

    /// Records `count` dispatches of a kernel, with a barrier after each if requested.
    pub fn record(
        &mut self,
        kernel: &ProbeKernel,
        parameters: Parameters,
        groups: u32,
        count: usize,
        has_barriers: bool,
    ) -> Result<Arc<Launch>, Stop> {
        let kernel = kernel.load(self.device)?;
        let block = self.allocate(Heap::Host, ByteLen(PARAMETER_BYTES), "probe parameters")?;
        let view = block.view()?;
        view.store_u64_release(0, parameters.first.0);
        view.store_u64_release(8, parameters.second.0);
        view.store_u64_release(16, 0);
        view.store_u32_release(24, parameters.numbers[0]);
        view.store_u32_release(28, parameters.numbers[1]);
        let mut recorder = self.device.recorder(count)?;
        for _ in 0..count {
            recorder.dispatch(&kernel, block.va, [groups, 1, 1])?;
            if has_barriers {
                recorder.barrier()?;
            }
        }
        let graph = recorder.finish()?;
        Ok(self.hold(Launch { _kernel: kernel, _parameters: block, graph }))
    }

    /// Submits a launch without waiting.
    pub fn submit(&mut self, launch: &Launch) -> Result<Ticket, Stop> {
        Ok(self.device.submit(&launch.graph)?)
    }

    /// Waits for a submission.
    pub fn wait(&mut self, ticket: Ticket) -> Result<(), Stop> {
        Ok(self.device.wait(ticket, self.deadline)?)
    }

    /// Submits a launch and waits; returns how long both took by the host's clock.
    pub fn time(&mut self, launch: &Launch) -> Result<Duration, Stop> {
        let start = Instant::now();
        let ticket = self.submit(launch)?;
        self.wait(ticket)?;
        Ok(start.elapsed())
    }

    /// Runs a kernel once.
    pub fn run(&mut self, kernel: &ProbeKernel, parameters: Parameters, groups: u32) -> Result<(), Stop> {
        let launch = self.record(kernel, parameters, groups, 1, false)?;
        self.time(&launch).map(|_| ())
    }

    /// Runs this many groups of a kernel over input words; returns the first `count` words of its output.
    pub fn map(
        &mut self,
        kernel: &ProbeKernel,
        input: &[u32],
        count: usize,
        groups: u32,
    ) -> Result<Vec<u32>, Stop> {
        let input = self.upload(input, "probe input")?;
        let output = self.upload(&vec![POISON; count], "probe output")?;
        self.run(kernel, Parameters { first: input.va, second: output.va, numbers: [0; 2] }, groups)?;
        self.download(&output, count)
    }
}
