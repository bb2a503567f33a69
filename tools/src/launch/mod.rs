//! Kernels on a device: what `zrt launch` and `zrt run` do, with byte buffers instead of files.
//!
//! Contract: a [`Sequence`] says what is done, `execute` does it; one kernel, run once, is a [`LaunchRequest`] and a
//! sequence of one launch. Bad input is refused before the device is touched ([`check`]), and
//! [`LaunchError::is_bad_input`] distinguishes it from what went wrong while kernels ran. Buffers that are outputs
//! begin as zeros.

mod error;
mod execute;
mod labels;
mod placement;
mod printing;
mod regions;
mod report;
mod resident;
mod sequence;
mod wait;

#[cfg(test)]
mod tests;

pub use error::LaunchError;
pub use labels::{argument_label, argument_name};
pub use placement::{PlacedBuffer, Placement};
pub use report::{Located, Report, Seen};
pub use sequence::{Action, Content, Dispatch, Given, LAUNCHES_MAX, Sequence, SharedBuffer};
pub use wait::{KernelFault, Pauses, Unfinished};

use crate::profile::Profile;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use zrt_bringup::{DeviceChoice, Finding, OpenError, OpenOptions, virtual_config};
use zrt_device::{Attachment, Counters, Device};
use zrt_isa::resources::WaveSize;
use zrt_loader::print::{PrintError, Printed};
use zrt_loader::{ArgumentValue, Geometry, Kernel, Program};
pub use zrt_script::BUFFER_BYTES_MAX;
use zrt_vgpu::VirtualGpu;

/// Default for how long a kernel may run: the virtual device is slow.
pub const DEADLINE_DEFAULT: Duration = Duration::from_secs(600);

/// One launch.
#[derive(Clone, Debug)]
pub struct LaunchRequest<'a> {
    /// The program.
    pub program: &'a Program,
    /// Name of the kernel; may be absent if there is only one.
    pub kernel: Option<&'a str>,
    /// Shape of the launch.
    pub geometry: Geometry,
    /// Lanes of a wave that the caller expects; it is an error if the kernel has another number.
    pub wave_size: Option<WaveSize>,
    /// Arguments in the kernel's order.
    pub arguments: &'a [LaunchArgument],
    /// Indices of further arguments whose buffers are read back, for [`LaunchReport::dumps`].
    pub dumped: &'a [usize],
    /// How long it may run.
    pub deadline: Duration,
    /// Times that do not count, because a debugger holds the waves.
    pub pauses: Option<&'a Pauses>,
    /// Receives the addresses of the buffers before the kernel runs.
    pub placement: Option<&'a Placement>,
}

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchArgument {
    /// A buffer with these bytes, for reading: a store to it is a finding.
    In(Vec<u8>),
    /// A buffer with these bytes, which the kernel may change and nobody reads back.
    Work(Vec<u8>),
    /// A buffer of this many zero bytes, read back.
    Out(u64),
    /// A buffer with these bytes, read back.
    InOut(Vec<u8>),
    /// A value.
    Value(ArgumentValue),
}

/// What a launch did.
#[derive(Clone, Debug, PartialEq)]
pub struct LaunchReport {
    /// Name of the device.
    pub device: String,
    /// True for the virtual one.
    pub is_virtual: bool,
    /// Name of the kernel.
    pub kernel: String,
    /// What the device did for this launch, without uploads and downloads.
    pub counters: Counters,
    /// Buffers read back, in the order of the arguments.
    pub outputs: Vec<LaunchOutput>,
    /// Buffers that are not outputs and were read back on request, in the order of the arguments.
    pub dumps: Vec<LaunchOutput>,
    /// Broken rules; empty without checking mode.
    pub findings: Vec<Finding>,
    /// What the waves did; `None` unless it was asked for.
    pub profile: Option<Profile>,
    /// What the kernel printed.
    pub printed: Printed,
    /// Why that text is incomplete, although the kernel ran to its end.
    pub unprinted: Option<PrintError>,
}

/// A buffer read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchOutput {
    /// Index of its argument.
    pub argument: usize,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl LaunchReport {
    /// The bytes of an argument's buffer at the end, if it was read back.
    pub fn buffer(&self, argument: usize) -> Option<&[u8]> {
        let mut all = self.outputs.iter().chain(&self.dumps);
        all.find(|output| output.argument == argument).map(|output| output.bytes.as_slice())
    }
}

impl LaunchArgument {
    /// Whether it is a buffer that is an output.
    pub fn is_output(&self) -> bool {
        matches!(self, LaunchArgument::Out(_) | LaunchArgument::InOut(_))
    }
}

impl<'a> LaunchRequest<'a> {
    /// A launch of the program's only kernel, without arguments and with the default deadline.
    pub fn new(program: &'a Program, geometry: Geometry) -> LaunchRequest<'a> {
        LaunchRequest {
            program,
            kernel: None,
            geometry,
            wave_size: None,
            arguments: &[],
            dumped: &[],
            deadline: DEADLINE_DEFAULT,
            pauses: None,
            placement: None,
        }
    }

    /// The requested kernel.
    pub fn find_kernel(&self) -> Result<&'a Kernel, LaunchError> {
        let names = || {
            let names: Vec<&str> = self.program.kernels().iter().map(|kernel| kernel.name.as_str()).collect();
            names.join(", ")
        };
        match (self.kernel, self.program.kernels()) {
            (Some(name), _) => self.program.kernel(name).ok_or_else(|| LaunchError::Kernel {
                asked: format!("there is no kernel {name:?}"),
                names: names(),
            }),
            (None, [kernel]) => Ok(kernel),
            (None, kernels) => Err(LaunchError::Kernel {
                asked: format!("--kernel is needed where there are {} kernels", kernels.len()),
                names: names(),
            }),
        }
    }

    /// Whether the kernel's waves are as the caller expects.
    pub(crate) fn check_wave_size(&self, kernel: &Kernel) -> Result<(), LaunchError> {
        match self.wave_size {
            Some(asked) if asked != kernel.wave_size => {
                let (actual, asked) = (kernel.wave_size.lanes(), asked.lanes());
                Err(LaunchError::WaveSize { kernel: kernel.name.clone(), actual, asked })
            }
            _ => Ok(()),
        }
    }

    /// The launch as a sequence of one; then the buffers that are read back, in the order of the arguments.
    ///
    /// # Errors
    /// [`LaunchError::Kernel`] and [`LaunchError::WaveSize`]; [`Sequence::check`] checks the rest.
    pub fn sequence(&self) -> Result<Sequence<'a>, LaunchError> {
        let kernel = self.find_kernel()?;
        self.check_wave_size(kernel)?;
        let mut buffers = Vec::new();
        let mut arguments = Vec::with_capacity(self.arguments.len());
        let mut reads = Vec::new();
        for (number, argument) in self.arguments.iter().enumerate() {
            let content = match argument {
                LaunchArgument::Value(value) => {
                    arguments.push(Given::Value(value.clone()));
                    continue;
                }
                LaunchArgument::Out(bytes) => Content::Zeros(*bytes),
                LaunchArgument::In(bytes) | LaunchArgument::Work(bytes) | LaunchArgument::InOut(bytes) => {
                    Content::Bytes(Cow::Borrowed(bytes))
                }
            };
            if argument.is_output() || self.dumped.contains(&number) {
                reads.push(Action::Read { buffer: buffers.len() });
            }
            arguments.push(Given::Buffer { buffer: buffers.len(), offset: 0 });
            buffers.push(SharedBuffer {
                label: argument_label(kernel, number),
                name: argument_name(kernel, number).map(str::to_owned),
                number,
                content,
                is_read_only: matches!(argument, LaunchArgument::In(_)),
            });
        }
        let index = self.program.kernels().iter().position(|other| std::ptr::eq(other, kernel));
        let launch = Action::Dispatch(Dispatch {
            label: format!("kernel {}", kernel.name),
            program: 0,
            kernel: index.unwrap_or(usize::MAX),
            geometry: self.geometry,
            arguments,
            waits: true,
        });
        Ok(Sequence {
            programs: vec![Cow::Borrowed(self.program)],
            buffers,
            actions: [vec![launch], reads].concat(),
            deadline: self.deadline,
            pauses: self.pauses,
            placement: self.placement,
        })
    }

    /// Runs the sequence with `run`, and sorts what was read back.
    fn run_by(
        &self,
        run: impl FnOnce(&Sequence<'a>, &mut dyn FnMut(Seen<'_>)) -> Result<Report, LaunchError>,
    ) -> Result<LaunchReport, LaunchError> {
        let kernel = self.find_kernel()?.name.clone();
        let sequence = self.sequence()?;
        let (mut outputs, mut dumps) = (Vec::new(), Vec::new());
        let report = run(&sequence, &mut |seen| {
            let Seen::Read { action, bytes } = seen else { return };
            let Some(Action::Read { buffer }) = sequence.actions.get(action) else { return };
            let argument = sequence.buffers[*buffer].number;
            let to = if self.arguments[argument].is_output() { &mut outputs } else { &mut dumps };
            to.push(LaunchOutput { argument, bytes });
        })?;
        let Report { device, is_virtual, counters, findings, profile, printed, unprinted } = report;
        let findings = findings.into_iter().map(|located| located.finding).collect();
        Ok(LaunchReport {
            device,
            is_virtual,
            kernel,
            counters,
            outputs,
            dumps,
            findings,
            profile,
            printed,
            unprinted,
        })
    }
}

/// Checks the request without a device: the kernel, its arguments, the launch's shape.
pub fn check<'a>(request: &LaunchRequest<'a>) -> Result<&'a Kernel, LaunchError> {
    request.sequence()?.check()?;
    request.find_kernel()
}

/// Opens a device and runs the kernel there.
pub fn run(
    request: &LaunchRequest<'_>,
    choice: DeviceChoice,
    options: &OpenOptions,
) -> Result<LaunchReport, LaunchError> {
    request.run_by(|sequence, observe| run_sequence(sequence, choice, options, observe))
}

/// Runs the kernel on an opened device. `gpu`: the virtual board below it, which is told what the kernel may touch.
pub fn run_on(
    device: &mut Device,
    request: &LaunchRequest<'_>,
    gpu: Option<&VirtualGpu>,
) -> Result<LaunchReport, LaunchError> {
    request.run_by(|sequence, observe| {
        sequence.check()?;
        execute::run(device, sequence, gpu, observe)
    })
}

/// Opens a device and executes a sequence. `observe` gets what the sequence produces, as it arrives.
pub fn run_sequence(
    sequence: &Sequence<'_>,
    choice: DeviceChoice,
    options: &OpenOptions,
    observe: &mut dyn FnMut(Seen<'_>),
) -> Result<Report, LaunchError> {
    sequence.check()?;
    let open = |source| LaunchError::Open { choice: choice.name(), source: Box::new(source) };
    if options.virtual_device.check || options.virtual_device.profile {
        let gpu = VirtualGpu::new(virtual_config(options))
            .map_err(|errno| open(OpenError::VirtualDevice { errno }))?;
        return run_checked_over(sequence, choice, gpu, options, observe);
    }
    let mut device = zrt_bringup::open(choice, options).map_err(open)?;
    execute::run(&mut device, sequence, None, observe)
}

/// The same on a virtual board that the caller keeps, to inspect it.
pub fn run_sequence_over(
    sequence: &Sequence<'_>,
    choice: DeviceChoice,
    gpu: Arc<VirtualGpu>,
    options: &OpenOptions,
    observe: &mut dyn FnMut(Seen<'_>),
) -> Result<Report, LaunchError> {
    sequence.check()?;
    run_checked_over(sequence, choice, gpu, options, observe)
}

fn run_checked_over(
    sequence: &Sequence<'_>,
    choice: DeviceChoice,
    gpu: Arc<VirtualGpu>,
    options: &OpenOptions,
    observe: &mut dyn FnMut(Seen<'_>),
) -> Result<Report, LaunchError> {
    if !matches!(choice, DeviceChoice::Auto | DeviceChoice::Virtual) {
        return Err(LaunchError::NotVirtual { choice: choice.name() });
    }
    // The self-test runs kernels of its own, which are of no interest to whoever inspects the board.
    let options = OpenOptions { self_test: false, ..options.clone() };
    let opened = Attachment::over(gpu.clone())
        .map_err(OpenError::from)
        .and_then(|process| zrt_bringup::open_over(&process, &options));
    let mut device =
        opened.map_err(|source| LaunchError::Open { choice: choice.name(), source: Box::new(source) })?;
    execute::run(&mut device, sequence, Some(&gpu), observe)
}
