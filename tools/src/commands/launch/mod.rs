//! `zrt launch`: any kernel, once, with files for its buffers.
//!
//! Contract: everything about the request is looked at before the device is opened. Outputs are written behind
//! temporary names and renamed when all of them are complete and the kernel has succeeded. Bad input is one sentence
//! and exit code 2.

mod arguments;
mod outputs;

use super::{write_json, write_text};
use crate::device_choice::DeviceOption;
use crate::error::ToolError;
use crate::launch::{self, LaunchArgument, LaunchReport, LaunchRequest, Observation};
use arguments::{ArgumentSpec, bad, three};
use clap::Args;
use outputs::OutputFile;
use serde::Serialize;
use std::path::{Path, PathBuf};
use zrt_device::OpenOptions;
use zrt_isa::resources::WaveSize;
use zrt_loader::{Format, Geometry, Program, RawOptions};

/// What raw code ends in; everything else says itself what it is.
const RAW_EXTENSION: &str = "bin";

/// Runs one kernel of an ELF code object, a .zrt or a raw .bin
#[derive(Debug, Args)]
pub struct Arguments {
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
    /// Argument of the kernel, in its order: in:FILE, out:BYTES:FILE, inout:FILE, u32:N, u64:N or f32:X
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub arguments: Vec<String>,
    /// LDS in bytes beyond what the kernel declares
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    pub lds: Option<String>,
    /// Lanes of a wave: 32 or 64 (raw code; checked for others)
    #[arg(long, value_name = "LANES", allow_negative_numbers = true)]
    pub wave: Option<String>,
    /// Vector registers of raw code, 1 to 256
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub vgprs: Option<String>,
    /// User SGPRs of raw code, 2 to 16; s[0:1] is the address of the arguments
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub user_sgprs: Option<String>,
    /// Watch for mistakes while it runs
    #[arg(long)]
    pub check: bool,
    /// Explore so many schedules
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub seeds: Option<String>,
    /// Print what it did and where that would be on the card's roofline
    #[arg(long)]
    pub profile: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceOption,
    /// Write one JSON document
    #[arg(long)]
    pub json: bool,
}

/// The JSON document.
#[derive(Debug, Serialize)]
struct Summary<'a> {
    device: &'a str,
    kernel: &'a str,
    dispatches: u64,
    packets: u64,
    submissions: u64,
    wave_instructions: Option<u64>,
    outputs: Vec<OutputSummary>,
}

/// One output file.
#[derive(Debug, Serialize)]
struct OutputSummary {
    argument: usize,
    path: String,
    bytes: usize,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let observation = Observation {
        check: arguments.check,
        seeds: number(arguments.seeds.as_deref(), "--seeds", 1, u32::MAX)?,
        profile: arguments.profile,
    };
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
    let program = load(arguments, wave_size)?;
    let mut request = LaunchRequest::new(&program, Geometry::new(groups, [1; 3]));
    request.kernel = arguments.kernel.as_deref();
    request.wave_size = wave_size;
    request.observation = observation;
    let kernel = request.find_kernel()?;
    let group = match (&arguments.block, kernel.required_workgroup) {
        (Some(text), _) => three("--block", text)?,
        (None, Some(required)) => required,
        (None, None) => {
            return Err(bad(format!("--block is needed: kernel {} requires no size", kernel.name)));
        }
    };
    request.geometry = Geometry { dynamic_lds_bytes, ..Geometry::new(groups, group) };
    let files = outputs::plan(&specs)?;
    let launch_arguments =
        specs.iter().map(ArgumentSpec::read).collect::<Result<Vec<LaunchArgument>, _>>()?;
    request.arguments = &launch_arguments;

    let report = launch::run(&request, arguments.device.device, &OpenOptions::default())?;
    let contents: Vec<&[u8]> = report.outputs.iter().map(|output| output.bytes.as_slice()).collect();
    outputs::write(&files, &contents)?;
    show(&report, &files, arguments.json)?;
    Ok(true)
}

/// Reads the program; flags that only raw code needs are refused for others.
fn load(arguments: &Arguments, wave_size: Option<WaveSize>) -> Result<Program, ToolError> {
    let path = &arguments.file;
    let bytes = read(path)?;
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

fn read(path: &Path) -> Result<Vec<u8>, ToolError> {
    std::fs::read(path).map_err(|error| bad(format!("{} cannot be read: {error}", path.display())))
}

/// A number from a flag.
fn number(text: Option<&str>, flag: &str, min: u32, max: u32) -> Result<Option<u32>, ToolError> {
    let Some(text) = text else { return Ok(None) };
    match text.parse::<u32>() {
        Ok(value) if (min..=max).contains(&value) => Ok(Some(value)),
        _ => Err(bad(format!("{flag} is {text:?}, but must be a number from {min} to {max}"))),
    }
}

fn show(report: &LaunchReport, files: &[OutputFile], json: bool) -> Result<(), ToolError> {
    let counters = &report.counters;
    let outputs: Vec<OutputSummary> = files
        .iter()
        .zip(&report.outputs)
        .map(|(file, output)| OutputSummary {
            argument: output.argument,
            path: file.path.display().to_string(),
            bytes: output.bytes.len(),
        })
        .collect();
    if json {
        return write_json(&Summary {
            device: &report.device,
            kernel: &report.kernel,
            dispatches: counters.dispatches,
            packets: counters.packets,
            submissions: counters.submissions,
            wave_instructions: counters.wave_instructions,
            outputs,
        });
    }
    let instructions = match counters.wave_instructions {
        Some(count) => format!(", {count} wave instructions"),
        None => String::new(),
    };
    let mut text = format!("{} ran on {}{instructions}\n", report.kernel, report.device);
    for output in &outputs {
        text.push_str(&format!("argument {}: {} bytes in {}\n", output.argument, output.bytes, output.path));
    }
    write_text(&text)
}
