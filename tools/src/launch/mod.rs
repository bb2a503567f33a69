//! One kernel, run once: what `zrt launch` does, with byte buffers instead of files.
//!
//! Contract: [`run_on`] takes the ordinary path of a device: allocate, upload, load, record, submit, wait, download.
//! Bad input is refused before the device is touched ([`check`]), and [`LaunchError::is_bad_input`] tells it apart
//! from what went wrong while the kernel ran. Buffers that are outputs begin as zeros.

mod labels;
mod placement;
mod printing;
mod regions;
mod wait;

pub use labels::{argument_label, argument_name};
pub use placement::{PlacedBuffer, Placement};
pub use wait::{KernelFault, Pauses, Unfinished};

use crate::roofline::Profile;
use printing::Printing;
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use zrt_device::{
    Attachment, Buffer, Code, CodeLabel, Counters, Device, DeviceChoice, DeviceError, Finding, Heap,
    LaunchParameters, OpenOptions, virtual_config,
};
use zrt_isa::resources::{ResourceError, WaveSize};
use zrt_loader::print::Printed;
use zrt_loader::{
    ArgumentError, ArgumentValue, DISPATCH_PACKET_BYTES, Geometry, Kernel, LaunchAddresses, LineTable,
    Program,
};
use zrt_mem::{ByteLen, GpuVa};
use zrt_vgpu::VirtualGpu;

/// Most bytes of one buffer.
pub const BUFFER_BYTES_MAX: u64 = 4 << 30;
/// How long a kernel may run unless said otherwise: the virtual device is slow.
pub const DEADLINE_DEFAULT: Duration = Duration::from_secs(600);
/// Alignment of an AQL dispatch packet, which stands behind the arguments.
const DISPATCH_PACKET_ALIGNMENT: usize = 64;
/// Room for the one launch: [`zrt_device::Recorder::launch`] takes that of two dispatches.
const RECORDER_CAPACITY: usize = 2;

/// One launch.
#[derive(Clone, Debug)]
pub struct LaunchRequest<'a> {
    /// The program.
    pub program: &'a Program,
    /// Name of the kernel; may be absent where there is only one.
    pub kernel: Option<&'a str>,
    /// Shape of the launch.
    pub geometry: Geometry,
    /// Lanes of a wave that the caller expects; another of the kernel is an error.
    pub wave_size: Option<WaveSize>,
    /// Arguments in the kernel's order.
    pub arguments: &'a [LaunchArgument],
    /// Indices of further arguments whose buffers are read back, for [`LaunchReport::dumps`].
    pub dumped: &'a [usize],
    /// How long it may run.
    pub deadline: Duration,
    /// Times that do not count: a debugger holds the waves.
    pub pauses: Option<&'a Pauses>,
    /// Told where the buffers lie before the kernel runs.
    pub placement: Option<&'a Placement>,
}

/// One argument.
#[derive(Clone, Debug, PartialEq)]
pub enum LaunchArgument {
    /// A buffer with these bytes, for reading: a store to it is a finding.
    In(Vec<u8>),
    /// A buffer with these bytes, which the kernel may change and nobody reads back.
    Work(Vec<u8>),
    /// A buffer of zeros, so many bytes, read back.
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
    /// Buffers that are no outputs and were read back because somebody asked, in the order of the arguments.
    pub dumps: Vec<LaunchOutput>,
    /// Broken rules; empty without checking mode.
    pub findings: Vec<Finding>,
    /// What the waves did; `None` unless it was asked for.
    pub profile: Option<Profile>,
    /// What the kernel printed.
    pub printed: Printed,
}

/// A buffer read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchOutput {
    /// Index of its argument.
    pub argument: usize,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// Why a launch failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No kernel of that name, or no name where there are several.
    #[error("{asked}; the kernels are {names}")]
    Kernel {
        /// What was asked, in words.
        asked: String,
        /// Those that are there.
        names: String,
    },
    /// Arguments or shape do not fit the kernel.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    /// The kernel's waves have another size.
    #[error("kernel {kernel} is made for wave{actual}, not wave{asked}")]
    WaveSize {
        /// The kernel.
        kernel: String,
        /// Its lanes.
        actual: u32,
        /// The lanes asked for.
        asked: u32,
    },
    /// A buffer is empty or too large.
    #[error("argument {argument} is a buffer of {bytes} bytes, but must have 1 to {BUFFER_BYTES_MAX}")]
    BufferLength {
        /// Index of the argument.
        argument: usize,
        /// Its length.
        bytes: u64,
    },
    /// The resources of the launch cannot be expressed.
    #[error("the launch cannot be expressed: {0}")]
    Resources(#[from] ResourceError),
    /// The device could not be opened.
    #[error("--device {choice} gives none: {source}")]
    Open {
        /// What was asked.
        choice: &'static str,
        /// Why.
        source: Box<DeviceError>,
    },
    /// The device failed, or the kernel did.
    #[error("kernel {kernel} did not run to its end: {source}")]
    Device {
        /// The kernel.
        kernel: String,
        /// Why.
        source: Unfinished,
        /// Broken rules, under the checking mode.
        findings: Vec<Finding>,
        /// What the kernel printed until then.
        printed: Printed,
    },
    /// Only the virtual device can be looked into.
    #[error(
        "--check, --seeds, --profile and step look into the virtual device; --device {choice} cannot be looked into"
    )]
    NotVirtual {
        /// What was asked.
        choice: &'static str,
    },
}

impl LaunchError {
    /// True where the request is at fault, and nothing ran.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, LaunchError::Open { .. } | LaunchError::Device { .. })
    }
}

impl LaunchReport {
    /// The bytes of an argument's buffer at the end, where it was read back.
    pub fn buffer(&self, argument: usize) -> Option<&[u8]> {
        let mut all = self.outputs.iter().chain(&self.dumps);
        all.find(|output| output.argument == argument).map(|output| output.bytes.as_slice())
    }
}

impl LaunchArgument {
    /// Length of the buffer in bytes; `None` for values.
    fn buffer_bytes(&self) -> Option<u64> {
        match self {
            LaunchArgument::In(bytes) | LaunchArgument::Work(bytes) | LaunchArgument::InOut(bytes) => {
                Some(bytes.len() as u64)
            }
            LaunchArgument::Out(bytes) => Some(*bytes),
            LaunchArgument::Value(_) => None,
        }
    }
}

impl<'a> LaunchRequest<'a> {
    /// A launch of the program's only kernel without arguments, checks or hurry.
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

    /// The kernel that is meant.
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
}

/// Looks the request over without a device: the kernel, its arguments, the launch's shape.
pub fn check<'a>(request: &LaunchRequest<'a>) -> Result<&'a Kernel, LaunchError> {
    let kernel = request.find_kernel()?;
    if let Some(asked) = request.wave_size
        && asked != kernel.wave_size
    {
        let (actual, asked) = (kernel.wave_size.lanes(), asked.lanes());
        return Err(LaunchError::WaveSize { kernel: kernel.name.clone(), actual, asked });
    }
    for (argument, value) in request.arguments.iter().enumerate() {
        if let Some(bytes) = value.buffer_bytes()
            && (bytes == 0 || bytes > BUFFER_BYTES_MAX)
        {
            return Err(LaunchError::BufferLength { argument, bytes });
        }
    }
    let nowhere = |_: usize| GpuVa(0);
    kernel.pack(&values(request.arguments, nowhere), request.geometry)?;
    kernel.resource_words(request.geometry.dynamic_lds_bytes)?;
    Ok(kernel)
}

/// Opens a device and runs the kernel there.
pub fn run(
    request: &LaunchRequest<'_>,
    choice: DeviceChoice,
    options: &OpenOptions,
) -> Result<LaunchReport, LaunchError> {
    check(request)?;
    let open = |source| LaunchError::Open { choice: choice.name(), source: Box::new(source) };
    if options.virtual_device.check || options.virtual_device.profile {
        let gpu = VirtualGpu::new(virtual_config(options))
            .map_err(|errno| open(DeviceError::VirtualDevice { errno }))?;
        return run_over(request, choice, gpu, options);
    }
    let mut device = Device::open(choice, options).map_err(open)?;
    run_on(&mut device, request, None)
}

/// Runs the kernel on a virtual board that the caller keeps, to look into it.
pub fn run_over(
    request: &LaunchRequest<'_>,
    choice: DeviceChoice,
    gpu: Arc<VirtualGpu>,
    options: &OpenOptions,
) -> Result<LaunchReport, LaunchError> {
    check(request)?;
    if !matches!(choice, DeviceChoice::Auto | DeviceChoice::Virtual) {
        return Err(LaunchError::NotVirtual { choice: choice.name() });
    }
    let opened = Attachment::over(gpu.clone())
        .map_err(DeviceError::from)
        .and_then(|process| Device::open_untested(&process, true, options));
    let mut device =
        opened.map_err(|source| LaunchError::Open { choice: choice.name(), source: Box::new(source) })?;
    run_on(&mut device, request, Some(&gpu))
}

/// Runs the kernel on an opened device. `gpu`: the virtual board below it, which is told what the kernel may touch.
pub fn run_on(
    device: &mut Device,
    request: &LaunchRequest<'_>,
    gpu: Option<&VirtualGpu>,
) -> Result<LaunchReport, LaunchError> {
    let kernel = check(request)?;
    // Findings are named by what is still there when they are read.
    let mut resident = Resident::default();
    let outcome = launch(device, request, kernel, gpu, &mut resident);
    let findings = match (device.findings(), &outcome) {
        (Ok(findings), _) => findings,
        // The launch's own failure is the news.
        (Err(_), Err(_)) => Vec::new(),
        (Err(source), Ok(_)) => {
            let kernel = kernel.name.clone();
            let printed = resident.printing.into_printed();
            return Err(LaunchError::Device { kernel, source: source.into(), findings: Vec::new(), printed });
        }
    };
    let printed = resident.printing.into_printed();
    match outcome {
        Ok((counters, [outputs, dumps])) => Ok(LaunchReport {
            device: device.name().into(),
            is_virtual: device.is_virtual(),
            kernel: kernel.name.clone(),
            counters,
            outputs,
            dumps,
            findings,
            profile: device.profile().and_then(|text| serde_json::from_str(&text).ok()),
            printed,
        }),
        Err(Failure::Unfinished(source)) => {
            Err(LaunchError::Device { kernel: kernel.name.clone(), source, findings, printed })
        }
        Err(Failure::Arguments(error)) => Err(error.into()),
    }
}

/// What a launch has in device memory.
#[derive(Default)]
struct Resident {
    /// By argument; `None` for values.
    buffers: Vec<Option<Buffer>>,
    code: Option<Code>,
    segment: Option<Buffer>,
    printing: Printing,
}

/// Why a launch did not come to its end.
enum Failure {
    Unfinished(Unfinished),
    Arguments(ArgumentError),
}

impl<E: Into<Unfinished>> From<E> for Failure {
    fn from(error: E) -> Failure {
        Failure::Unfinished(error.into())
    }
}

fn launch(
    device: &mut Device,
    request: &LaunchRequest<'_>,
    kernel: &Kernel,
    gpu: Option<&VirtualGpu>,
    resident: &mut Resident,
) -> Result<(Counters, [Vec<LaunchOutput>; 2]), Failure> {
    resident.buffers = buffers(device, kernel, request.arguments)?;
    let buffers = &resident.buffers;
    let va_of = |argument: usize| buffers.get(argument).and_then(Option::as_ref).map_or(GpuVa(0), |at| at.va);
    resident.printing = Printing::new(device, kernel, &request.geometry)?;
    let geometry = Geometry { services: resident.printing.addresses(), ..request.geometry };
    let segment = kernel.pack(&values(request.arguments, va_of), geometry).map_err(Failure::Arguments)?;
    let counters = submit(device, request, kernel, segment, gpu, resident)?;
    let is_output =
        |index: usize| matches!(request.arguments[index], LaunchArgument::Out(_) | LaunchArgument::InOut(_));
    let outputs = read_back(device, &resident.buffers, is_output)?;
    let dumps =
        read_back(device, &resident.buffers, |index| !is_output(index) && request.dumped.contains(&index))?;
    Ok((counters, [outputs, dumps]))
}

/// The arguments as the kernel's segment holds them.
fn values(arguments: &[LaunchArgument], va_of: impl Fn(usize) -> GpuVa) -> Vec<ArgumentValue> {
    let value = |(index, argument): (usize, &LaunchArgument)| match argument {
        LaunchArgument::Value(value) => value.clone(),
        _ => ArgumentValue::Buffer(va_of(index)),
    };
    arguments.iter().enumerate().map(value).collect()
}

/// Allocates and fills the buffers; `None` for values.
fn buffers(
    device: &mut Device,
    kernel: &Kernel,
    arguments: &[LaunchArgument],
) -> Result<Vec<Option<Buffer>>, DeviceError> {
    let mut buffers = Vec::with_capacity(arguments.len());
    for (index, argument) in arguments.iter().enumerate() {
        let Some(bytes) = argument.buffer_bytes() else {
            buffers.push(None);
            continue;
        };
        let buffer = device.allocate(Heap::DeviceLocal, ByteLen(bytes), &argument_label(kernel, index))?;
        match argument {
            LaunchArgument::In(content) | LaunchArgument::Work(content) | LaunchArgument::InOut(content) => {
                device.upload(&buffer, ByteLen(0), content)?;
            }
            _ => device.upload(&buffer, ByteLen(0), &vec![0; bytes as usize])?,
        }
        buffers.push(Some(buffer));
    }
    Ok(buffers)
}

/// Loads the code, records the dispatch, submits it and waits; what the device counted in between.
fn submit(
    device: &mut Device,
    request: &LaunchRequest<'_>,
    kernel: &Kernel,
    mut segment: Vec<u8>,
    gpu: Option<&VirtualGpu>,
    resident: &mut Resident,
) -> Result<Counters, Unfinished> {
    let geometry = &request.geometry;
    let image = request.program.image();
    let (functions, lines) = (request.program.functions(), lines_of(request.program.lines()));
    let label = CodeLabel {
        name: &kernel.name,
        functions: &functions,
        files: request.program.lines().files(),
        lines: &lines,
    };
    let len = ByteLen(image.bytes().len() as u64);
    let code = resident.code.insert(device.load_code(&label, len, |va| image.placed_at(va.0))?);
    let entry = GpuVa(code.va().0 + kernel.entry_offset);

    let packet_at = segment.len().next_multiple_of(DISPATCH_PACKET_ALIGNMENT);
    let room = ByteLen((packet_at + DISPATCH_PACKET_BYTES) as u64);
    let arguments = resident.segment.insert(device.allocate(Heap::HostVisible, room, "arguments")?);
    let packet_va = arguments.va.0 + packet_at as u64;
    segment.resize(packet_at, 0);
    segment.extend_from_slice(&kernel.dispatch_packet(geometry, arguments.va.0, entry.0));
    device.upload(arguments, ByteLen(0), &segment)?;

    let words = kernel.resource_words(geometry.dynamic_lds_bytes).map_err(|_| DeviceError::KernelNeeds {
        kernel: kernel.name.clone(),
        reason: "its LDS does not fit",
    })?;
    let ready = device.prepare_launch(&LaunchParameters {
        name: &kernel.name,
        entry,
        rsrc1: words.rsrc1,
        rsrc2: words.rsrc2,
        rsrc3: words.rsrc3,
        wave_size: kernel.wave_size,
        workgroup: geometry.group,
        scratch_bytes: scratch_bytes(kernel),
    })?;
    let user_data = kernel.user_data(&LaunchAddresses {
        arguments_va: arguments.va.0,
        dispatch_packet_va: packet_va,
        dispatch_id: 0,
        group_count: geometry.groups[0],
    });
    let mut recorder = device.recorder(RECORDER_CAPACITY)?;
    recorder.launch(&ready, &user_data, geometry.groups)?;
    let graph = recorder.finish()?;
    if let Some(gpu) = gpu {
        regions::name(gpu, request, kernel, resident, ready.scratch());
    }
    if let Some(placement) = request.placement {
        placement.tell(kernel, &resident.buffers);
    }
    let before = device.counters()?;
    let faults_before = device.faults().len();
    let ticket = device.submit(&graph)?;
    let outcome = wait::wait(device, ticket, request, kernel, faults_before, &mut resident.printing);
    resident.printing.finish(request.program.print_formats(), outcome.is_ok())?;
    outcome?;
    Ok(difference(&device.counters()?, &before))
}

/// Scratch of a lane: what the kernel says, and room for calls whose need the compiler could not know.
fn scratch_bytes(kernel: &Kernel) -> u32 {
    /// What compilers assume of such calls (LLVM's `amdgpu-assume-dynamic-stack-object-size` and
    /// `amdgpu-assume-external-call-stack-size`).
    const DYNAMIC_STACK_BYTES: u32 = 16 << 10;
    match kernel.dynamic_stack {
        true => kernel.scratch_bytes.saturating_add(DYNAMIC_STACK_BYTES),
        false => kernel.scratch_bytes,
    }
}

fn lines_of(table: &LineTable) -> Vec<(u64, usize, u32)> {
    table.continued().map(|row| (row.offset, row.file as usize, row.line)).collect()
}

fn difference(after: &Counters, before: &Counters) -> Counters {
    Counters {
        doorbells: after.doorbells.saturating_sub(before.doorbells),
        packets: after.packets.saturating_sub(before.packets),
        dispatches: after.dispatches.saturating_sub(before.dispatches),
        submissions: after.submissions.saturating_sub(before.submissions),
        wave_instructions: match (after.wave_instructions, before.wave_instructions) {
            (Some(after), Some(before)) => Some(after.saturating_sub(before)),
            _ => None,
        },
    }
}

/// The buffers of the arguments that `is_wanted` says yes to.
fn read_back(
    device: &mut Device,
    buffers: &[Option<Buffer>],
    is_wanted: impl Fn(usize) -> bool,
) -> Result<Vec<LaunchOutput>, DeviceError> {
    let mut outputs = Vec::new();
    for (argument, buffer) in buffers.iter().enumerate() {
        let Some(buffer) = buffer.as_ref().filter(|_| is_wanted(argument)) else { continue };
        let mut bytes = vec![0; buffer.len.0 as usize];
        device.download(buffer, ByteLen(0), &mut bytes)?;
        outputs.push(LaunchOutput { argument, bytes });
    }
    Ok(outputs)
}
