//! One opened virtual device with the buffers of one kernel at a time.
//!
//! Contract: a session without a schedule runs as fast as it can. A session with a schedule uses the checking mode
//! in the same way as `zrt launch --check`: waves are interleaved by that seed, and the device knows what the
//! kernel may access (input, arguments and code to read; output and accumulator to write; LDS and scratch as
//! declared), and that the host is silent. Output and accumulator count as written, because their contents are part
//! of the results. It is opened for one launch, so that its findings depend on the program and the seed alone. A
//! kernel's error is an [`Outcome`], not an error.

use crate::error::DifferentialError;
use crate::toolchain::{ACCUMULATOR_FILL, GROUP, Shape};
use std::time::{Duration, Instant};
use zrt_bringup::{DeviceChoice, Finding, Inspect, OpenError, OpenOptions, VirtualOptions, virtual_config};
use zrt_device::{
    Attachment, Buffer, Code, CodeLabel, Device, DeviceError, Heap, LaunchParameters, StopCause,
};
use zrt_loader::{ARGUMENT_BYTES_MAX, ArgumentValue, DISPATCH_PACKET_BYTES, Geometry, LaunchAddresses};
use zrt_mem::{ByteLen, GpuVa};
use zrt_vgpu::VirtualGpu;

/// Time limit of a kernel. The slowest generated kernel takes a small part of it; an endless wait is reported
/// earlier.
const KERNEL_MS_MAX: u64 = 60_000;
/// Interval at which the device's log is polled: a wave that faulted never ends.
const POLL_MS: u64 = 20;
/// Bytes of scratch for called functions, if the compiler did not count them.
const CALL_SCRATCH_BYTES: u32 = 4096;

/// The result of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended; these are its results.
    Ran(Vec<u8>),
    /// It faulted or did not finish; the device's message.
    Fault(String),
}

/// Changes machine code before it runs; called for each executable segment with its offset in the image.
pub type Change<'a> = &'a dyn Fn(u64, &mut [u32]);

/// An opened device.
pub struct Session {
    device: Device,
    /// The board below it, if it is checking.
    board: Option<std::sync::Arc<VirtualGpu>>,
    input: Buffer,
    output: Buffer,
    accumulator: Buffer,
    arguments: Buffer,
    /// How long a kernel may take.
    kernel_limit: Duration,
}

impl Session {
    /// Opens a device; `schedule` is the seed of the schedule if it is checking.
    pub fn open(shape: Shape, schedule: Option<u64>) -> Result<Session, DifferentialError> {
        let (mut device, board) = match schedule {
            None => (open_unchecked()?, None),
            Some(seed) => {
                let (device, board) = open_checking(seed)?;
                (device, Some(board))
            }
        };
        let mut allocate =
            |bytes: usize, label: &str| device.allocate(Heap::HostVisible, ByteLen(bytes as u64), label);
        let input = allocate(shape.in_bytes(), "input")?;
        let output = allocate(shape.out_bytes(), "output")?;
        let accumulator = allocate(shape.accumulator_bytes(), "accumulator")?;
        let arguments = allocate(ARGUMENT_BYTES_MAX as usize + DISPATCH_PACKET_BYTES, "arguments")?;
        let kernel_limit = Duration::from_millis(KERNEL_MS_MAX);
        Ok(Session { device, board, input, output, accumulator, arguments, kernel_limit })
    }

    /// Places the image of a program, with the requested changes if there are any.
    pub fn load(
        &mut self,
        loaded: &zrt_loader::Program,
        name: &str,
        change: Option<Change<'_>>,
    ) -> Result<Code, DifferentialError> {
        let image = loaded.image();
        let table = loaded.lines();
        let lines: Vec<(u64, usize, u32)> =
            table.rows().iter().map(|row| (row.offset, row.file as usize, row.line)).collect();
        let label = CodeLabel { name, functions: &[], files: table.files(), lines: &lines };
        let code = self.device.load_code(&label, ByteLen(image.bytes().len() as u64), |va| {
            let mut bytes = image.placed_at(va.0);
            if let Some(change) = change {
                for segment in image.segments().iter().filter(|segment| segment.executable) {
                    let range = segment.offset as usize..(segment.offset + segment.bytes) as usize;
                    let place = &mut bytes.to_mut()[range];
                    let mut words = words_of(place);
                    change(segment.offset, &mut words);
                    for (word, changed) in place.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                        *word = changed.to_le_bytes();
                    }
                }
            }
            bytes
        })?;
        Ok(code)
    }

    /// Runs a kernel of the program with `seed` on an input.
    pub fn launch(
        &mut self,
        shape: Shape,
        kernel: &zrt_loader::Kernel,
        code: &Code,
        seed: u64,
        input: &[u8],
    ) -> Result<Outcome, DifferentialError> {
        let refuse = |reason: String| DifferentialError::Launch { seed, reason };
        let geometry = Geometry::new([shape.items() / GROUP, 1, 1], [GROUP, 1, 1]);
        let values =
            [&self.input, &self.output, &self.accumulator].map(|buffer| ArgumentValue::Buffer(buffer.va));
        let segment = kernel.pack(&values, geometry).map_err(|error| refuse(error.to_string()))?;
        let arguments_va = self.arguments.va.0;
        let packet_at = ARGUMENT_BYTES_MAX;
        let packet = kernel.dispatch_packet(&geometry, arguments_va, code.va().0 + kernel.entry_offset);
        let words = kernel.resource_words(0).map_err(|error| refuse(error.to_string()))?;
        let device = &mut self.device;
        device.upload(&self.arguments, ByteLen(0), &segment)?;
        device.upload(&self.arguments, ByteLen(packet_at), &packet)?;
        device.upload(&self.input, ByteLen(0), input)?;
        device.upload(&self.output, ByteLen(0), &vec![0; shape.out_bytes()])?;
        device.upload(&self.accumulator, ByteLen(0), &vec![ACCUMULATOR_FILL; shape.accumulator_bytes()])?;
        let extra = if kernel.dynamic_stack { CALL_SCRATCH_BYTES } else { 0 };
        let launch = device.prepare_launch(&LaunchParameters {
            name: &kernel.name,
            entry: GpuVa(code.va().0 + kernel.entry_offset),
            rsrc1: words.rsrc1,
            rsrc2: words.rsrc2,
            rsrc3: words.rsrc3,
            wave_size: kernel.wave_size,
            workgroup: geometry.group,
            scratch_bytes: kernel.scratch_bytes.saturating_add(extra),
        })?;
        let addresses = LaunchAddresses {
            arguments_va,
            dispatch_packet_va: arguments_va + packet_at,
            ..LaunchAddresses::default()
        };
        // A launch takes the space of two dispatches.
        let mut recorder = device.recorder(2)?;
        recorder.launch(&launch, &kernel.user_data(&addresses), geometry.groups)?;
        let graph = recorder.finish()?;
        self.name_regions(kernel, code, launch.scratch());
        let ticket = self.device.submit(&graph)?;
        match self.wait(ticket)? {
            Some(fault) => Ok(Outcome::Fault(fault)),
            None => Ok(Outcome::Ran(self.results(shape)?)),
        }
    }

    /// What the checking mode has found so far.
    pub fn findings(&self) -> Result<Vec<Finding>, DifferentialError> {
        Ok(self.device.findings()?)
    }

    /// Tells a checking device what memory the kernel may access.
    fn name_regions(&self, kernel: &zrt_loader::Kernel, code: &Code, scratch: Option<&Buffer>) {
        let Some(board) = &self.board else { return };
        let entry_va = code.va().0 + kernel.entry_offset;
        board.silence_host(true);
        board.watch_lds(entry_va, kernel.lds_bytes);
        if !kernel.dynamic_stack {
            board.watch_private(entry_va, kernel.scratch_bytes);
        }
        if let Some(buffer) = scratch {
            board.watch_private_region(buffer.label(), buffer.va.0, buffer.len.0);
        }
        for buffer in [&self.output, &self.accumulator] {
            board.watch_region(buffer.label(), buffer.va.0, buffer.len.0);
        }
        for buffer in [&self.input, &self.arguments, code.buffer()] {
            board.watch_read_only_region(buffer.label(), buffer.va.0, buffer.len.0);
        }
    }

    /// Waits for the end. Returns the device's message if it does not arrive.
    fn wait(&mut self, ticket: zrt_device::Ticket) -> Result<Option<String>, DifferentialError> {
        let start = Instant::now();
        loop {
            match self.device.wait(ticket, Duration::from_millis(POLL_MS)) {
                Ok(()) => return Ok(None),
                Err(DeviceError::Stopped(diagnosis)) => {
                    let waits_on = diagnosis.cause == StopCause::Deadline && diagnosis.device_log.is_empty();
                    if !waits_on {
                        let log = diagnosis.device_log.join("; ");
                        return Ok(Some(if log.is_empty() { diagnosis.to_string() } else { log }));
                    }
                    if start.elapsed() > self.kernel_limit {
                        return Ok(Some(diagnosis.to_string()));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn results(&mut self, shape: Shape) -> Result<Vec<u8>, DifferentialError> {
        let mut results = vec![0; shape.result_bytes()];
        let (output, accumulator) = results.split_at_mut(shape.out_bytes());
        self.device.download(&self.output, ByteLen(0), output)?;
        self.device.download(&self.accumulator, ByteLen(0), accumulator)?;
        Ok(results)
    }
}

/// Bytes of code as words.
pub(crate) fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect()
}

fn open_unchecked() -> Result<Device, DifferentialError> {
    // No worker threads besides the command processor's: several runners share the host's cores.
    let virtual_device = VirtualOptions { threads: Some(0), ..VirtualOptions::default() };
    let options = OpenOptions { virtual_device, ..OpenOptions::default() };
    Ok(zrt_bringup::open(DeviceChoice::Virtual, &options)?)
}

fn open_checking(seed: u64) -> Result<(Device, std::sync::Arc<VirtualGpu>), DifferentialError> {
    let virtual_device = VirtualOptions {
        check: true,
        trusts_compilers: true,
        scheduler_seed: Some(seed),
        // Every buffer is written before a launch, and scratch is large; its initial content is tested by the other
        // mode.
        vram_fill: Some(0),
        ..VirtualOptions::default()
    };
    // The self-test runs kernels of its own, which are not part of the schedule.
    let options = OpenOptions { virtual_device, self_test: false, ..OpenOptions::default() };
    let board =
        VirtualGpu::new(virtual_config(&options)).map_err(|errno| OpenError::VirtualDevice { errno })?;
    let process = Attachment::over(board.clone()).map_err(OpenError::from)?;
    let device = zrt_bringup::open_over(&process, &options)?;
    Ok((device, board))
}

#[cfg(test)]
mod tests;
