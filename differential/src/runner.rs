//! The device's side: a code object loaded and its kernels launched one after the other.
//!
//! Contract: a kernel that faults or hangs costs its own result only: the device is opened again for the next one.
//! Results are bytes in the host's layout (`Shape::result_bytes`).

use crate::error::DifferentialError;
use crate::program::Program;
use crate::text::kernel_name;
use crate::toolchain::{ACCUMULATOR_BYTES, ACCUMULATOR_FILL, GROUP, Shape, seeds};
use std::time::{Duration, Instant};
use zrt_device::{
    Buffer, Code, CodeLabel, Device, DeviceChoice, DeviceError, Heap, LaunchParameters, OpenOptions,
    StopCause, VirtualOptions,
};
use zrt_loader::{ARGUMENT_BYTES_MAX, ArgumentValue, DISPATCH_PACKET_BYTES, Geometry, LaunchAddresses};
use zrt_mem::{ByteLen, GpuVa};

/// How long a kernel may run. The slowest that is generated takes a small part of it.
const KERNEL_MS_MAX: u64 = 60_000;
/// After each such time the device's log is looked at: a wave that faulted never ends.
const POLL_MS: u64 = 20;
/// Bytes of scratch for functions that are called, where the compiler did not count them.
const CALL_SCRATCH_BYTES: u32 = 4096;

/// What became of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended; these are its results.
    Ran(Vec<u8>),
    /// It faulted or did not end; the device's words.
    Fault(String),
}

/// Changes machine code before it is run: a planted error, as if the device executed another instruction.
pub type Plant = fn(&mut [u32]);

/// A device that runs batches.
pub struct Runner {
    shape: Shape,
    plant: Option<Plant>,
    session: Option<Session>,
}

/// One opened device with buffers for one kernel.
struct Session {
    device: Device,
    input: Buffer,
    output: Buffer,
    accumulator: Buffer,
    arguments: Buffer,
}

impl Runner {
    /// A runner; the device is opened when it is needed.
    pub fn new(shape: Shape, plant: Option<Plant>) -> Runner {
        Runner { shape, plant, session: None }
    }

    /// Runs every program of a code object on its inputs.
    pub fn run(
        &mut self,
        code_object: &[u8],
        programs: &[Program],
        inputs: &[Vec<u8>],
    ) -> Result<Vec<Outcome>, DifferentialError> {
        let loaded = zrt_loader::Program::parse(code_object)
            .map_err(|source| DifferentialError::Load { seeds: seeds(programs), source })?;
        let mut outcomes = Vec::with_capacity(programs.len());
        let mut code = None;
        for (index, (program, input)) in programs.iter().zip(inputs).enumerate() {
            let session = match &mut self.session {
                Some(session) => session,
                empty => {
                    code = None;
                    empty.insert(Session::open(self.shape)?)
                }
            };
            let code = match &code {
                Some(code) => code,
                None => code.insert(session.load(&loaded, self.plant)?),
            };
            let kernel = loaded.kernel(&kernel_name(index)).ok_or_else(|| DifferentialError::Launch {
                seed: program.seed,
                reason: format!("the code object has no kernel {}", kernel_name(index)),
            })?;
            let outcome = session.launch(self.shape, kernel, code, program.seed, input)?;
            if matches!(outcome, Outcome::Fault(_)) {
                self.session = None;
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }
}

impl Session {
    fn open(shape: Shape) -> Result<Session, DifferentialError> {
        // No worker besides the command processor's thread: several runners share the host's cores.
        let virtual_device = VirtualOptions { threads: Some(0), ..VirtualOptions::default() };
        let options = OpenOptions { virtual_device, ..OpenOptions::default() };
        let mut device = Device::open(DeviceChoice::Virtual, &options)?;
        let mut allocate =
            |bytes: usize, label: &str| device.allocate(Heap::HostVisible, ByteLen(bytes as u64), label);
        let input = allocate(shape.in_bytes(), "input")?;
        let output = allocate(shape.out_bytes(), "output")?;
        let accumulator = allocate(ACCUMULATOR_BYTES, "accumulator")?;
        let arguments = allocate(ARGUMENT_BYTES_MAX as usize + DISPATCH_PACKET_BYTES, "arguments")?;
        Ok(Session { device, input, output, accumulator, arguments })
    }

    fn load(
        &mut self,
        loaded: &zrt_loader::Program,
        plant: Option<Plant>,
    ) -> Result<Code, DifferentialError> {
        let image = loaded.image();
        let label = CodeLabel { name: "programs", files: &[], lines: &[] };
        let code = self.device.load_code(&label, ByteLen(image.bytes().len() as u64), |va| {
            let mut bytes = image.placed_at(va.0);
            if let Some(plant) = plant {
                for segment in image.segments().iter().filter(|segment| segment.executable) {
                    let range = segment.offset as usize..(segment.offset + segment.bytes) as usize;
                    let place = &mut bytes.to_mut()[range];
                    let mut words: Vec<u32> =
                        place.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
                    plant(&mut words);
                    for (word, changed) in place.as_chunks_mut::<4>().0.iter_mut().zip(words) {
                        *word = changed.to_le_bytes();
                    }
                }
            }
            bytes
        })?;
        Ok(code)
    }

    fn launch(
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
        let packet = kernel.dispatch_packet(&geometry, arguments_va, code.va().0);
        let words = kernel.resource_words(0).map_err(|error| refuse(error.to_string()))?;
        let device = &mut self.device;
        device.upload(&self.arguments, ByteLen(0), &segment)?;
        device.upload(&self.arguments, ByteLen(packet_at), &packet)?;
        device.upload(&self.input, ByteLen(0), input)?;
        device.upload(&self.output, ByteLen(0), &vec![0; shape.out_bytes()])?;
        device.upload(&self.accumulator, ByteLen(0), &[ACCUMULATOR_FILL; ACCUMULATOR_BYTES])?;
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
        // A launch takes the room of two dispatches.
        let mut recorder = device.recorder(2)?;
        recorder.launch(&launch, &kernel.user_data(&addresses), geometry.groups)?;
        let graph = recorder.finish()?;
        let ticket = device.submit(&graph)?;
        let start = Instant::now();
        loop {
            match device.wait(ticket, Duration::from_millis(POLL_MS)) {
                Ok(()) => break,
                Err(DeviceError::Stopped(diagnosis)) => {
                    let waits_on = diagnosis.cause == StopCause::Deadline && diagnosis.device_log.is_empty();
                    if !waits_on {
                        let log = diagnosis.device_log.join("; ");
                        return Ok(Outcome::Fault(if log.is_empty() { diagnosis.to_string() } else { log }));
                    }
                    if start.elapsed() > Duration::from_millis(KERNEL_MS_MAX) {
                        return Ok(Outcome::Fault(diagnosis.to_string()));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        let mut results = vec![0; shape.result_bytes()];
        let (output, accumulator) = results.split_at_mut(shape.out_bytes());
        device.download(&self.output, ByteLen(0), output)?;
        device.download(&self.accumulator, ByteLen(0), accumulator)?;
        Ok(Outcome::Ran(results))
    }
}
