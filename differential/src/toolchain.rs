//! The compiler for both sides, and the host's side.
//!
//! Contract: starts the clang that a [`Build`] names, `clang-22` for the host's side, and nothing else except the
//! linker that these start (`lld-22`). Floating point is strict: no contraction, no fast mathematics, denormals
//! kept; in C, division and square root are correctly rounded on gfx1201 without flags. A toolchain has a folder of
//! its own, which is removed when it is dropped. Starting a process costs about 50 ms, hence the batches.

use crate::error::DifferentialError;
use crate::program::Program;
use crate::text::{HEADER, HEADER_NAME, source};
use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// The compiler of the host's side.
const HOST_COMPILER: Compiler = Compiler::Clang22;
/// Optimisation levels, 0 to 3.
const OPTIMISATION_LEVELS: u64 = 4;
/// Work-items of a workgroup, as defined in the header.
pub const GROUP: u32 = 64;
/// Bytes of input per item.
pub const IN_BYTES_PER_ITEM: usize = 64;
/// Bytes of output per item, as defined in the header.
pub const OUT_BYTES_PER_ITEM: usize = 256;
/// Most steps of a program, as defined in the header.
pub const STEPS_MAX: usize = 10;
/// Bytes that all items change together and that are compared, as defined in the header: for atomics, 9 kinds of 16
/// words each of 8 and of 4 bytes; and 64 words that each step of the whole grid writes.
pub const ACCUMULATOR_BYTES: usize = 9 * 16 * 12 + STEPS_MAX * 64 * 4;
/// Initial value of each of those bytes.
pub const ACCUMULATOR_FILL: u8 = 0x5A;
/// Most inputs of a program.
pub const INPUTS_MAX: u32 = 1 << 16;

/// Flags of both sides.
const FLAGS: &[&str] =
    &["-x", "c", "-std=gnu23", "-w", "-ffp-contract=off", "-fno-strict-aliasing", "-fuse-ld=lld-22"];
/// Flags of the device's side.
const DEVICE_FLAGS: &[&str] = &["--target=amdgcn-amd-amdhsa", "-mcpu=gfx1201", "-nogpulib", "-ffreestanding"];
/// Flags of the host's side: operations on float and double only, never x87 or a wider intermediate.
#[cfg(target_arch = "x86_64")]
const HOST_FLAGS: &[&str] = &["-O1", "-march=x86-64-v3", "-fno-math-errno"];
#[cfg(not(target_arch = "x86_64"))]
const HOST_FLAGS: &[&str] = &["-O1", "-fno-math-errno"];

/// Compilers of the device's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Compiler {
    /// Supports gfx1201, but places no `s_wait_alu`.
    Clang19,
    /// The reference compiler for the virtual device.
    Clang22,
}

impl Compiler {
    /// Every compiler.
    pub const ALL: [Compiler; 2] = [Compiler::Clang19, Compiler::Clang22];

    /// The executable that is started.
    pub const fn program(self) -> &'static str {
        match self {
            Compiler::Clang19 => "clang-19",
            Compiler::Clang22 => "clang-22",
        }
    }
}

/// How the device's side of a program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Build {
    /// The compiler.
    pub compiler: Compiler,
    /// Optimisation level, 0 to 3.
    pub optimisation: u8,
    /// Whether it has a line table (`-g`).
    pub has_lines: bool,
}

impl Build {
    /// The build for the program of a seed: the seed decides level and line table.
    pub fn of_seed(compiler: Compiler, seed: u64) -> Build {
        let optimisation = (seed % OPTIMISATION_LEVELS) as u8;
        Build { compiler, optimisation, has_lines: seed / OPTIMISATION_LEVELS % 2 == 1 }
    }
}

impl fmt::Display for Build {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = if self.has_lines { " -g" } else { "" };
        write!(formatter, "{} -O{}{lines}", self.compiler.program(), self.optimisation)
    }
}

/// Number of inputs and lanes of a wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    items: u32,
    wave_lanes: u32,
}

impl Shape {
    /// `inputs` is a power of two from 64 to [`INPUTS_MAX`]; `is_wave64` compiles for waves of 64 lanes.
    pub fn new(inputs: u32, is_wave64: bool) -> Result<Shape, DifferentialError> {
        if !inputs.is_power_of_two() || !(GROUP..=INPUTS_MAX).contains(&inputs) {
            return Err(DifferentialError::Inputs { inputs, max: INPUTS_MAX });
        }
        Ok(Shape { items: inputs, wave_lanes: if is_wave64 { 64 } else { 32 } })
    }

    /// The shape for mutants. The number of inputs is such that no buffer is longer than the output, and none is
    /// longer than the unmapped space after each.
    pub const fn of_mutants(is_wave64: bool) -> Shape {
        Shape { items: 256, wave_lanes: if is_wave64 { 64 } else { 32 } }
    }

    /// Inputs of a program, one per work-item.
    pub fn items(&self) -> u32 {
        self.items
    }

    /// Lanes of a wave.
    pub fn wave_lanes(&self) -> u32 {
        self.wave_lanes
    }

    /// Bytes of the input buffer.
    pub fn in_bytes(&self) -> usize {
        self.items as usize * IN_BYTES_PER_ITEM
    }

    /// Bytes of the output buffer.
    pub fn out_bytes(&self) -> usize {
        self.items as usize * OUT_BYTES_PER_ITEM
    }

    /// Bytes that all items change together: those that are compared; then for each step 64 words, a flag for each
    /// item, and 16 bytes for each item.
    pub fn accumulator_bytes(&self) -> usize {
        ACCUMULATOR_BYTES + STEPS_MAX * (64 * 4 + self.items as usize * (4 + 16))
    }

    /// Bytes of all results of a program: output, then the data changed by atomics.
    pub fn result_bytes(&self) -> usize {
        self.out_bytes() + ACCUMULATOR_BYTES
    }
}

/// The compilers with a working folder.
#[derive(Debug)]
pub struct Toolchain {
    folder: PathBuf,
    shape: Shape,
}

impl Toolchain {
    /// Makes the folder.
    pub fn new(shape: Shape) -> Result<Toolchain, DifferentialError> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name =
            format!("zrt-differential-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)
            .map_err(|source| DifferentialError::File { path: folder.clone(), source })?;
        let toolchain = Toolchain { folder, shape };
        write(&toolchain.folder.join(HEADER_NAME), HEADER.as_bytes())?;
        Ok(toolchain)
    }

    /// The shape that programs are compiled for.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Compiles programs for the device. Returns a linked code object.
    pub fn code_object(&self, programs: &[Program], build: Build) -> Result<Vec<u8>, DifferentialError> {
        let mut command = self.command(build.compiler, "device", DEVICE_FLAGS);
        command.arg(format!("-O{}", build.optimisation));
        if build.has_lines {
            command.arg("-g");
        }
        if self.shape.wave_lanes == 64 {
            command.arg("-mwavefrontsize64");
        }
        let path = self.compile(command, build.compiler, "device", programs)?;
        std::fs::read(&path).map_err(|source| DifferentialError::File { path, source })
    }

    /// Compiles programs for the host and runs them. Returns the results of each program.
    pub fn run_on_host(
        &self,
        programs: &[Program],
        inputs: &[Vec<u8>],
    ) -> Result<Vec<Vec<u8>>, DifferentialError> {
        let mut command = self.command(HOST_COMPILER, "host", HOST_FLAGS);
        command.arg("-lm");
        let path = self.compile(command, HOST_COMPILER, "host", programs)?;
        let missing = |source| DifferentialError::ToolMissing { tool: path.display().to_string(), source };
        let mut child =
            Command::new(&path).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().map_err(missing)?;
        let mut output = Vec::new();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        std::thread::scope(|scope| {
            // A program that ends early breaks the pipe: its exit status is more informative.
            scope.spawn(move || {
                stdin.map(|mut stdin| inputs.iter().try_for_each(|input| stdin.write_all(input)))
            });
            stdout.map(|mut stdout| stdout.read_to_end(&mut output)).transpose()
        })?;
        let status = child.wait()?;
        let expected = programs.len() * self.shape.result_bytes();
        if !status.success() || output.len() != expected {
            let (seeds, status, bytes) = (seeds(programs), status.to_string(), output.len());
            return Err(DifferentialError::Host { seeds, status, bytes, expected });
        }
        Ok(output.chunks_exact(self.shape.result_bytes()).map(<[u8]>::to_vec).collect())
    }

    fn command(&self, compiler: Compiler, name: &str, flags: &[&str]) -> Command {
        let mut command = Command::new(compiler.program());
        command.args(FLAGS).args(flags);
        command.arg(format!("-DWAVE={}", self.shape.wave_lanes));
        command.arg(format!("-DIN_BYTES={}", self.shape.in_bytes()));
        command.arg(format!("-DITEMS={}", self.shape.items));
        command.arg("-o").arg(self.folder.join(name)).arg(self.folder.join(format!("{name}.c")));
        command
    }

    fn compile(
        &self,
        mut command: Command,
        compiler: Compiler,
        name: &str,
        programs: &[Program],
    ) -> Result<PathBuf, DifferentialError> {
        write(&self.folder.join(format!("{name}.c")), source(programs).as_bytes())?;
        let output = command
            .output()
            .map_err(|source| DifferentialError::ToolMissing { tool: compiler.program().into(), source })?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr).into_owned();
            let tool = format!("{} ({name})", compiler.program());
            return Err(DifferentialError::Tool { tool, seeds: seeds(programs), output: text });
        }
        Ok(self.folder.join(name))
    }
}

impl Drop for Toolchain {
    fn drop(&mut self) {
        // Anything that cannot be removed stays in the folder for temporary files.
        std::fs::remove_dir_all(&self.folder).unwrap_or_default();
    }
}

/// The programs' seeds, for reports.
pub(crate) fn seeds(programs: &[Program]) -> String {
    let list: Vec<String> = programs.iter().map(|program| program.seed.to_string()).collect();
    list.join(", ")
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), DifferentialError> {
    std::fs::write(path, bytes).map_err(|source| DifferentialError::File { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four levels in turn, each without a line table, then each with one.
    #[test]
    fn a_seed_decides_how_its_program_is_compiled() {
        let texts = (0..9).map(|seed| Build::of_seed(Compiler::Clang22, seed).to_string());
        let expected = ["-O0", "-O1", "-O2", "-O3", "-O0 -g", "-O1 -g", "-O2 -g", "-O3 -g", "-O0"];
        assert_eq!(texts.collect::<Vec<String>>(), expected.map(|flags| format!("clang-22 {flags}")));
        let build = Build::of_seed(Compiler::Clang19, u64::MAX);
        assert_eq!(build, Build { compiler: Compiler::Clang19, optimisation: 3, has_lines: true });
    }

    /// The number behind `NAME = ` of the header.
    fn of_header(name: &str) -> usize {
        let (_, rest) = HEADER.split_once(&format!(" {name} = ")).unwrap();
        rest.split(|one: char| !one.is_ascii_digit()).next().unwrap().parse().unwrap()
    }

    /// Buffers are as long as the header says: results, then for each step of the grid its results, words for control,
    /// flags and data.
    #[test]
    fn a_shape_has_the_sizes_of_the_header() {
        let (steps, group) = (of_header("STEPS_MAX"), of_header("GROUP"));
        // The last name of the list of kinds is their number. Each has words of 8 and of 4 bytes.
        let kinds =
            HEADER.split_once(", ACC_KINDS }").unwrap().0.rsplit('{').next().unwrap().split(',').count();
        let sums = kinds * of_header("ACC_WORDS") * (8 + 4);
        let compared = sums + steps * group * 4;
        for (items, is_wave64, lanes) in [(64, false, 32), (256, true, 64), (65_536, false, 32)] {
            let shape = Shape::new(items, is_wave64).unwrap();
            let items = items as usize;
            assert_eq!((shape.items() as usize, shape.wave_lanes()), (items, lanes));
            assert_eq!((shape.in_bytes(), shape.out_bytes()), (64 * items, of_header("OUT_BYTES") * items));
            assert_eq!(shape.result_bytes(), shape.out_bytes() + compared);
            let of_step = of_header("CONTROL_WORDS") * 4 + items * 4 + items * 16;
            assert_eq!(shape.accumulator_bytes(), compared + steps * of_step);
        }
        let of_mutants = [false, true].map(|is_wave64| Shape::of_mutants(is_wave64).wave_lanes());
        assert_eq!(of_mutants, [32, 64]);
    }

    #[test]
    fn numbers_of_inputs_are_powers_of_two_that_fill_groups() {
        for inputs in [64, 128, 65_536] {
            assert!(Shape::new(inputs, false).is_ok(), "{inputs}");
        }
        for inputs in [0, 1, 32, 63, 65, 96, 65_535, 131_072] {
            let error = Shape::new(inputs, false).unwrap_err().to_string();
            assert_eq!(error, format!("{inputs} inputs: it must be a power of two from 64 to 65536"));
        }
    }

    #[test]
    fn a_folder_with_the_header_is_there_as_long_as_its_toolchain() {
        let shape = Shape::new(64, false).unwrap();
        let [one, other] = [(); 2].map(|()| Toolchain::new(shape).unwrap());
        let (folder, others) = (one.folder.clone(), other.folder.clone());
        assert_ne!(folder, others);
        assert_eq!(std::fs::read_to_string(folder.join("differential.h")).unwrap(), HEADER);
        drop(one);
        assert!(!folder.exists() && others.exists());
        drop(other);
        assert!(!others.exists());
    }

    #[test]
    fn seeds_are_listed_in_order() {
        let program = |seed| Program { seed, steps: Vec::new() };
        assert_eq!(seeds(&[3, 1, 20].map(program)), "3, 1, 20");
        assert_eq!(seeds(&[]), "");
    }
}
