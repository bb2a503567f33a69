//! `zrt launch`: any kernel, once, with files for its buffers.
//!
//! Contract: everything about the request is looked at before the device is opened. Outputs are written behind
//! temporary names and renamed when all of them are complete and the kernel has succeeded; of several schedules they are
//! those of the first that ended. Bad input is one sentence and exit code 2.

mod arguments;
mod content;
mod dump;
mod expect;
mod npy;
mod outputs;
pub(super) mod printed;
mod show;
mod size;

use crate::bounded_read::{self, ReadError};
use crate::commands::error_document::ErrorReport;
use crate::device_choice::DeviceOption;
use crate::error::ToolError;
use crate::launch::{self, DEADLINE_DEFAULT, LaunchArgument, LaunchError, LaunchReport, LaunchRequest};
use crate::machine_code::FILE_BYTES_MAX;
use crate::source_text::SourceText;
use arguments::{ArgumentSpec, bad, three};
use clap::Args;
use dump::Dump;
use expect::Expectation;
use outputs::OutputFile;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zrt_device::{DeviceChoice, OpenOptions, VirtualOptions};
use zrt_isa::resources::WaveSize;
use zrt_loader::{Format, Geometry, Program, RawOptions};

/// What raw code ends in; everything else says itself what it is.
const RAW_EXTENSION: &str = "bin";

/// Schedules that the checking mode explores unless told.
const SEEDS_DEFAULT: u32 = 1;

/// Longest time that can be asked for: a week.
const TIMEOUT_SECONDS_MAX: u32 = 7 * 24 * 3600;

/// Runs one kernel of an ELF code object, a .zrt or a raw .bin
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub kernel: KernelArguments,
    /// Hold every access and instruction against the rules of docs/checking.md (virtual device)
    #[arg(long)]
    pub check: bool,
    /// Explore so many schedules; implies --check
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub seeds: Option<String>,
    /// First schedule, implies --check: the seed that a finding names repeats it
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Fail for advice too; implies --check
    #[arg(long)]
    pub strict: bool,
    /// Print what it did and where that would be on the card's roofline (virtual device)
    #[arg(long)]
    pub profile: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceOption,
    /// Write one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Which kernel, in which shape, with which arguments.
#[derive(Debug, Args)]
pub struct KernelArguments {
    /// ELF code object for gfx1201, .zrt, or raw machine code (.bin)
    pub file: PathBuf,
    /// Name of the kernel; not needed where there is only one
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Workgroups in x, y, z
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub grid: String,
    /// Work-items of a workgroup in x, y, z; a kernel that requires a size needs none
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub block: Option<String>,
    /// Argument of the kernel, in its order. Buffers: in:FILE, out:SIZE:FILE, inout:FILE, expect:FILE or
    /// expect:FILE,TOLERANCE, zero:SIZE, fill:SIZE:VALUE, rand:SIZE:SEED; a FILE.npy as NumPy has it; a SIZE as 4096, 4k or
    /// 1024*f32. Values: i8 to u64, f16, bf16, f32 and f64 as in u32:7, bytes:HEX, value:FILE
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub arguments: Vec<String>,
    /// Write the buffer of an argument, given by its number or its name, to a file when the kernel has ended
    #[arg(long = "dump", value_name = "ARGUMENT=FILE")]
    pub dumps: Vec<String>,
    /// LDS in bytes beyond what the kernel declares
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    pub lds: Option<String>,
    /// Lanes of a wave: 32 or 64 (raw code; checked for others)
    #[arg(long, value_name = "LANES", allow_negative_numbers = true)]
    pub wave: Option<String>,
    /// Vector registers of raw code, 1 to 256
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub vgprs: Option<String>,
    /// User SGPRs of raw code, 2 to 16; s0 and s1 are the address of the arguments
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub user_sgprs: Option<String>,
    /// Seconds that the kernel may run, 600 unless told; one that the virtual device knows never to end is stopped at once
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    pub timeout: Option<String>,
}

/// A request that owns what it needs.
pub(super) struct Prepared {
    program: Program,
    kernel: Option<String>,
    wave_size: Option<WaveSize>,
    geometry: Geometry,
    arguments: Vec<LaunchArgument>,
    /// Arguments of which the buffer is written though it is no output.
    dumped: Vec<usize>,
    /// What each of the files begins with.
    headers: Vec<Vec<u8>>,
    /// What buffers are to hold at the end: indices of arguments, names of files, numbers.
    expectations: Vec<(usize, String, Expectation)>,
    files: Vec<OutputFile>,
    deadline: Duration,
}

impl Prepared {
    /// Reads the program and the files of the arguments.
    pub fn new(arguments: &KernelArguments) -> Result<Prepared, ToolError> {
        let wave_size = match arguments.wave.as_deref() {
            None => None,
            Some("32") => Some(WaveSize::Wave32),
            Some("64") => Some(WaveSize::Wave64),
            Some(other) => return Err(bad(format!("--wave is {other:?}, but must be 32 or 64"))),
        };
        let groups = three("--grid", &arguments.grid)?;
        let specs = arguments
            .arguments
            .iter()
            .enumerate()
            .map(|(index, text)| ArgumentSpec::parse(index, text))
            .collect::<Result<Vec<ArgumentSpec>, ToolError>>()?;
        let dynamic_lds_bytes = number(arguments.lds.as_deref(), "--lds", 0, u32::MAX)?.unwrap_or(0);
        let timeout = number(arguments.timeout.as_deref(), "--timeout", 1, TIMEOUT_SECONDS_MAX)?;
        let program = load(arguments, wave_size)?;
        let mut prepared = Prepared {
            program,
            kernel: arguments.kernel.clone(),
            wave_size,
            geometry: Geometry::new(groups, [1; 3]),
            arguments: Vec::new(),
            dumped: Vec::new(),
            headers: Vec::new(),
            expectations: Vec::new(),
            files: Vec::new(),
            deadline: timeout.map_or(DEADLINE_DEFAULT, |seconds| Duration::from_secs(seconds.into())),
        };
        let kernel = prepared.request().find_kernel()?;
        let buffers: Vec<bool> = specs.iter().map(ArgumentSpec::is_buffer).collect();
        let dumps = arguments.dumps.iter().map(|text| Dump::parse(text, kernel, &buffers));
        let dumps = dumps.collect::<Result<Vec<Dump<'_>>, ToolError>>()?;
        let group = match (&arguments.block, kernel.required_workgroup) {
            (Some(text), _) => three("--block", text)?,
            (None, Some(required)) => required,
            (None, None) => {
                return Err(bad(format!("--block is needed: kernel {} requires no size", kernel.name)));
            }
        };
        prepared.geometry = Geometry { dynamic_lds_bytes, ..Geometry::new(groups, group) };
        let outputs = specs.iter().enumerate().filter_map(|(index, spec)| Some((index, spec.output()?)));
        let files = outputs::plan(outputs.chain(dumps.iter().map(|dump| (dump.argument, dump.path))))?;
        prepared.dumped = dumps.iter().map(|dump| dump.argument).collect();
        let mut headers = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            let loaded = spec.load()?;
            if let (Some(expectation), ArgumentSpec::Expect(path, _)) = (loaded.expectation, spec) {
                prepared.expectations.push((index, path.display().to_string(), expectation));
            }
            prepared.arguments.push(loaded.argument);
            headers.push(loaded.header);
        }
        let header = |file: &OutputFile| match arguments::is_npy(&file.path) {
            true => headers[file.argument].clone(),
            false => Vec::new(),
        };
        prepared.headers = files.iter().map(header).collect();
        prepared.files = files;
        Ok(prepared)
    }

    /// The request.
    pub fn request(&self) -> LaunchRequest<'_> {
        let mut request = LaunchRequest::new(&self.program, self.geometry);
        request.kernel = self.kernel.as_deref();
        request.wave_size = self.wave_size;
        request.arguments = &self.arguments;
        request.dumped = &self.dumped;
        request.deadline = self.deadline;
        request
    }

    /// Whether what one compiler takes for granted is taken for granted.
    pub fn trusts_compilers(&self) -> bool {
        matches!(self.program.format(), Format::CodeObject | Format::Object)
    }

    /// Writes what the kernel wrote.
    pub fn write_outputs(&self, report: &LaunchReport) -> Result<(), ToolError> {
        let parts = self
            .files
            .iter()
            .zip(&self.headers)
            .map(|(file, header)| [header.as_slice(), report.buffer(file.argument).unwrap_or_default()]);
        let contents: Vec<[&[u8]; 2]> = parts.collect();
        outputs::write(&self.files, &contents)
    }

    /// A line for each buffer that does not hold what is expected.
    pub fn unexpected(&self, report: &LaunchReport) -> Vec<String> {
        let compare = |(argument, name, expectation): &(usize, String, Expectation)| {
            let difference = expectation.compare(report.buffer(*argument)?)?;
            Some(format!("argument {argument} is not {name}: {difference}"))
        };
        self.expectations.iter().filter_map(compare).collect()
    }
}

/// Runs the command; false where a rule was broken.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let seeds = number(arguments.seeds.as_deref(), "--seeds", 1, u32::MAX)?;
    let check = arguments.check || seeds.is_some() || arguments.seed.is_some() || arguments.strict;
    let prepared = Prepared::new(&arguments.kernel)?;
    let choice = arguments.device.device;
    if (check || arguments.profile) && !matches!(choice, DeviceChoice::Auto | DeviceChoice::Virtual) {
        return Err(LaunchError::NotVirtual { choice: choice.name() }.into());
    }
    let mut outcome = show::Outcome::default();
    let mut sources = SourceText::of(&arguments.kernel.file);
    let schedules = u64::from(seeds.unwrap_or(SEEDS_DEFAULT));
    for index in 0..schedules {
        let seed = check.then_some(arguments.seed.unwrap_or(0).wrapping_add(index));
        let virtual_device = VirtualOptions {
            check,
            trusts_compilers: prepared.trusts_compilers(),
            profile: arguments.profile && outcome.report.is_none(),
            scheduler_seed: seed,
            ..VirtualOptions::default()
        };
        let options = OpenOptions { virtual_device, ..OpenOptions::default() };
        let mut result = launch::run(&prepared.request(), choice, &options);
        match &mut result {
            Ok(report) => sources.fill_all(&mut report.findings),
            Err(error) => sources.fill_error(error),
        }
        match (result, seed) {
            (Ok(report), _) => {
                outcome.add_unexpected(prepared.unexpected(&report), seed);
                outcome.add(report, seed);
            }
            // A schedule that does not end is a result as others are: those before it keep what they gave.
            (Err(LaunchError::Device { findings, source, printed, .. }), Some(seed)) => {
                outcome.add_failed(seed, findings, &source, &printed);
                if source.is_timeout() {
                    // Each of the others might take as long again.
                    outcome.skipped = schedules - index - 1;
                    break;
                }
            }
            (Err(error), _) => {
                if !arguments.json {
                    printed::show_before(&error)?;
                }
                return Err(error.into());
            }
        }
    }
    // What was found is told even where the outputs cannot be written.
    let written = outcome.report.as_ref().map_or(Ok(()), |report| prepared.write_outputs(report));
    let refused = written.as_ref().err().map(ErrorReport::of);
    let format = show::Format { json: arguments.json, strict: arguments.strict };
    show::show(&outcome, &prepared.files, format, refused.as_ref())?;
    match arguments.json {
        true => written.map_err(|error| ToolError::Told(Box::new(error)))?,
        false => written?,
    }
    Ok(outcome.is_clean(arguments.strict))
}

/// Reads the program; flags that only raw code needs are refused for others.
fn load(arguments: &KernelArguments, wave_size: Option<WaveSize>) -> Result<Program, ToolError> {
    let path = &arguments.file;
    let bytes = read(path, FILE_BYTES_MAX, "a program")?;
    let name = path.display();
    if path.extension().is_some_and(|extension| extension == RAW_EXTENSION) {
        let defaults = RawOptions::default();
        let options = RawOptions {
            name: arguments.kernel.clone().unwrap_or(defaults.name),
            wave_size: wave_size.unwrap_or(defaults.wave_size),
            vgprs: number(arguments.vgprs.as_deref(), "--vgprs", 1, 256)?.unwrap_or(defaults.vgprs),
            user_sgprs: number(arguments.user_sgprs.as_deref(), "--user-sgprs", 2, 16)?
                .unwrap_or(defaults.user_sgprs),
            ..defaults
        };
        return Program::raw(&bytes, &options)
            .map_err(|error| bad(format!("{name} cannot be loaded: {error}")));
    }
    let program = Program::parse(&bytes).map_err(|error| bad(format!("{name} cannot be loaded: {error}")))?;
    let of_raw = [("--vgprs", &arguments.vgprs), ("--user-sgprs", &arguments.user_sgprs)];
    if let Some((flag, _)) = of_raw.iter().find(|(_, value)| value.is_some()) {
        let what = match program.format() {
            Format::Zrt => "a .zrt",
            _ => "a code object",
        };
        return Err(bad(format!(
            "{flag} is for raw code (.bin), but {name} is {what}, which says it itself"
        )));
    }
    Ok(program)
}

/// The bytes of a file that are to be `what`, at most `limit` of them.
fn read(path: &Path, limit: u64, what: &str) -> Result<Vec<u8>, ToolError> {
    let name = path.display();
    bounded_read::read(path, limit).map_err(|error| match error {
        ReadError::System(error) => bad(format!("{name} cannot be read: {error}")),
        ReadError::TooLong => bad(format!("{name} has more bytes than {what} may have, which are {limit}")),
    })
}

/// A number from a flag.
fn number(text: Option<&str>, flag: &str, min: u32, max: u32) -> Result<Option<u32>, ToolError> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<u32>() {
        Ok(value) if (min..=max).contains(&value) => Ok(Some(value)),
        _ => Err(bad(format!("{flag} is {text:?}, but must be a number from {min} to {max}"))),
    }
}
