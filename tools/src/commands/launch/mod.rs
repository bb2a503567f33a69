//! `zrt launch`: any kernel, once, with files for its buffers.
//!
//! Contract: everything about the request is checked before the device is opened. Outputs are written under temporary
//! names and renamed when all of them are complete and the kernel has succeeded; with several schedules they are those
//! of the first that ended. Bad input is one sentence and exit code 2.

mod arguments;
mod dump;
mod expect;
mod load;
mod npy;
pub(crate) mod outputs;
pub(super) mod printed;
mod schedules;
pub(super) mod script;
mod show;
mod task;
pub(super) mod waves;

pub use schedules::LookArguments;
pub(super) use schedules::explore;

use crate::error::{ToolError, bad};
use crate::launch::{Action, DEADLINE_DEFAULT, LaunchArgument, LaunchRequest};
use arguments::{load_argument, number, three};
use clap::Args;
use dump::Dump;
use expect::Expectation;
use outputs::OutputFile;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
pub(super) use task::Task;
use task::{Of, Purpose, Subject};
use zrt_isa::resources::WaveSize;
use zrt_loader::{DynamicLds, Geometry, LDS_SIZES_MAX, Program};
use zrt_script::{ArgumentSpec, ProgramFile, Refused, USER_SGPRS, VGPRS};

/// What the user states about raw code, as flags.
const RAW_FLAGS: [&str; 2] = ["--vgprs", "--user-sgprs"];

/// Longest time that can be requested: a week.
const TIMEOUT_SECONDS_MAX: u32 = 7 * 24 * 3600;

/// Runs one kernel of an ELF code object, a .zrt or a raw .bin
#[derive(Debug, Args)]
pub struct Arguments {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub kernel: KernelArguments,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub look: LookArguments,
}

/// Which kernel, in which shape, with which arguments.
#[derive(Debug, Args)]
pub struct KernelArguments {
    /// ELF code object for gfx1201, .zrt, or raw machine code (.bin)
    pub file: PathBuf,
    /// Name of the kernel (optional if there is only one)
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// Workgroups in x, y, z
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub grid: String,
    /// Work-items of a workgroup in x, y, z (optional if the kernel requires a size)
    #[arg(long, value_name = "X,Y,Z", allow_hyphen_values = true)]
    pub block: Option<String>,
    /// Argument of the kernel; repeat it in the kernel's order. Buffers: in:FILE, out:SIZE:FILE (zeros that --check
    /// takes as unwritten), inout:FILE, expect:FILE or expect:FILE,TOLERANCE, zero:SIZE, fill:SIZE:VALUE,
    /// rand:SIZE:SEED. A FILE.npy has NumPy's format; a SIZE is 4096, 4k or 1024*f32. Values: i8 to u64, f16, bf16, f32
    /// and f64 as in u32:7, bytes:HEX, value:FILE
    #[arg(long = "arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    pub arguments: Vec<String>,
    /// Write an argument's buffer to a file after the kernel has ended; ARGUMENT is its number or its name
    #[arg(long = "dump", value_name = "ARGUMENT=FILE")]
    pub dumps: Vec<String>,
    /// LDS bytes beyond what the kernel declares; with several LDS pointers one size for each, in their order, as in
    /// 256,64
    #[arg(long, value_name = "BYTES", allow_hyphen_values = true)]
    pub lds: Option<String>,
    /// Wave size of raw code, 32 or 64; other files must agree with it
    #[arg(long, value_name = "LANES", allow_negative_numbers = true)]
    pub wave: Option<String>,
    /// Vector registers of raw code, 1 to 256
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub vgprs: Option<String>,
    /// User SGPRs of raw code, 2 to 16; s0 and s1 hold the address of the arguments
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub user_sgprs: Option<String>,
    /// Most seconds that the kernel may run [default: 600]; the virtual device stops it at once where it can show that
    /// it never ends
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
    /// Arguments whose buffer is written although it is not an output.
    dumped: Vec<usize>,
    /// What buffers are to hold at the end: indices of arguments, names of files, numbers.
    expectations: Vec<(usize, String, Arc<Expectation>)>,
    /// The files with their headers, and the argument of each.
    files: Vec<(OutputFile, Vec<u8>)>,
    file_arguments: Vec<usize>,
    deadline: Duration,
    code: PathBuf,
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
            .map(|(index, text)| ArgumentSpec::parse(&format!("argument {index}"), text))
            .collect::<Result<Vec<ArgumentSpec>, Refused>>()?;
        let dynamic_lds = arguments.lds.as_deref().map_or(Ok(DynamicLds::NONE), lds_sizes)?;
        let deadline = deadline(arguments.timeout.as_deref())?;
        let within =
            |text: &Option<String>, flag, [min, max]: [u32; 2]| number(text.as_deref(), flag, min, max);
        let file = ProgramFile {
            path: arguments.file.clone(),
            kernel: arguments.kernel.clone(),
            wave_size,
            vgprs: within(&arguments.vgprs, RAW_FLAGS[0], VGPRS)?,
            user_sgprs: within(&arguments.user_sgprs, RAW_FLAGS[1], USER_SGPRS)?,
        };
        let here = Path::new("");
        let mut prepared = Prepared {
            program: load::load_program(&file, here, RAW_FLAGS)?,
            kernel: file.kernel,
            wave_size,
            geometry: Geometry::new(groups, [1; 3]),
            arguments: Vec::new(),
            dumped: Vec::new(),
            expectations: Vec::new(),
            files: Vec::new(),
            file_arguments: Vec::new(),
            deadline,
            code: file.path,
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
        prepared.geometry = Geometry { dynamic_lds, ..Geometry::new(groups, group) };
        let outputs = specs.iter().enumerate().filter_map(|(index, spec)| Some((index, spec.output()?)));
        let written: Vec<(usize, &Path)> =
            outputs.chain(dumps.iter().map(|dump| (dump.argument, dump.path))).collect();
        let files = outputs::plan(written.iter().map(|(_, path)| *path))?;
        prepared.dumped = dumps.iter().map(|dump| dump.argument).collect();
        let mut headers = Vec::new();
        for (index, spec) in specs.iter().enumerate() {
            let loaded = load_argument(spec, here)?;
            if let (Some(expectation), ArgumentSpec::Expect(path, _)) = (loaded.expectation, spec) {
                prepared.expectations.push((index, path.display().to_string(), Arc::new(expectation)));
            }
            prepared.arguments.push(loaded.argument);
            headers.push(loaded.header);
        }
        for (file, (argument, _)) in files.into_iter().zip(written) {
            let header = if arguments::is_npy(&file.path) { headers[argument].clone() } else { Vec::new() };
            prepared.files.push((file, header));
            prepared.file_arguments.push(argument);
        }
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

    /// The launch as a task, which is checked when it is carried out, before the device is opened.
    pub fn task(&self) -> Result<Task<'_>, ToolError> {
        let request = self.request();
        let sequence = request.sequence()?;
        let mut purposes = Vec::new();
        for (action, what) in sequence.actions.iter().enumerate() {
            let Action::Read { buffer } = what else { continue };
            let argument = sequence.buffers[*buffer].number;
            let purpose = || Purpose {
                action,
                of: Of::Argument(argument),
                file: None,
                is_compared: self.arguments[argument].is_output(),
                expectation: None,
            };
            purposes.push(purpose());
            let files = self.file_arguments.iter().enumerate().filter(|(_, of)| **of == argument);
            purposes.extend(files.map(|(file, _)| Purpose { file: Some(file), ..purpose() }));
            let expected = self.expectations.iter().filter(|(of, ..)| *of == argument);
            purposes.extend(expected.map(|(_, name, expectation)| Purpose {
                expectation: Some((name.clone(), expectation.clone())),
                ..purpose()
            }));
        }
        Ok(Task {
            subject: Subject::Launch(request.find_kernel()?.name.clone()),
            sequence,
            purposes,
            files: self.files.clone(),
            code: self.code.clone(),
            trusts_compilers: load::trusts_compilers(&self.program),
        })
    }
}

/// Runs the command; returns false if a rule was broken.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let schedules = arguments.look.validate()?;
    let prepared = Prepared::new(&arguments.kernel)?;
    explore(&prepared.task()?, &arguments.look, schedules)
}

/// How long kernels may run, by `--timeout`.
pub(super) fn deadline(text: Option<&str>) -> Result<Duration, ToolError> {
    let seconds = number(text, "--timeout", 1, TIMEOUT_SECONDS_MAX)?;
    Ok(seconds.map_or(DEADLINE_DEFAULT, |seconds| Duration::from_secs(seconds.into())))
}

/// What `--lds` says.
fn lds_sizes(text: &str) -> Result<DynamicLds, ToolError> {
    let size = |part| number(Some(part), "--lds", 0, u32::MAX);
    let sizes = text.split(',').map(size).collect::<Result<Vec<Option<u32>>, ToolError>>()?;
    let sizes: Vec<u32> = sizes.into_iter().flatten().collect();
    DynamicLds::new(&sizes)
        .ok_or_else(|| bad(format!("--lds has {} sizes, but at most {LDS_SIZES_MAX} are taken", sizes.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A second to a week.
    #[test]
    fn kernels_may_run_a_second_to_a_week() {
        let seconds = |text| deadline(text).ok().map(|deadline| deadline.as_secs());
        assert_eq!(
            [None, Some("1"), Some("604800")].map(seconds),
            [Some(600), Some(1), Some(7 * 24 * 60 * 60)]
        );
        assert_eq!([Some("0"), Some("604801"), Some("x")].map(seconds), [None; 3]);
    }

    #[test]
    fn sizes_of_lds_are_numbers_with_commas() {
        let sizes =
            |text: &str| lds_sizes(text).map(|lds| lds.sizes().to_vec()).map_err(|error| error.to_string());
        assert_eq!(sizes("0"), Ok(vec![0]));
        assert_eq!(sizes("256,64"), Ok(vec![256, 64]));
        for text in ["", "256,", "-1", "256;64", "4294967296"] {
            assert!(sizes(text).is_err_and(|told| told.contains("--lds is")), "{text}");
        }
        let most = vec!["4"; LDS_SIZES_MAX].join(",");
        assert_eq!(sizes(&most), Ok(vec![4; LDS_SIZES_MAX]));
        let told = format!("--lds has {} sizes, but at most {LDS_SIZES_MAX} are taken", LDS_SIZES_MAX + 1);
        assert_eq!(sizes(&format!("{most},4")), Err(told));
    }
}
