//! From bytes to a launchable program: ELF code objects for gfx1201, alone or in a bundle from clang, `.zrt`
//! containers, raw machine code.
//!
//! # Contract
//! - [`Program::parse`] and [`Program::raw`] never panic on any bytes. They use at most eight times the file plus
//!   16 MiB of memory, and time in proportion to the file (`tests/bounded.rs`). An image is at most
//!   [`IMAGE_BYTES_MAX`] long, and at most [`IMAGE_BYTES_BEYOND_FILE`] longer than its file.
//! - What they accept is consistent: entries lie inside executable segments at multiples of 256 bytes, resource words
//!   have no reserved bits, arguments lie inside their segment.
//! - Features that cannot be launched on gfx1201 are refused by name, never ignored.
//! - It knows nothing of packets, devices or files.
//!
//! Set-up only; one pass over the file and one copy of its segments.
//!
//! ```no_run
//! use zrt_loader::{ArgumentValue, Geometry, Program};
//! use zrt_mem::GpuVa;
//!
//! let program = Program::parse(&std::fs::read("add.co")?)?;
//! let kernel = program.kernel("add").ok_or("no such kernel")?;
//! let geometry = Geometry::new([4, 1, 1], [256, 1, 1]);
//! let segment = kernel.pack(&[ArgumentValue::Buffer(GpuVa(0x1000)), ArgumentValue::U32(1000)], geometry)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod bundle;
mod container;
mod dynamic_lds;
mod elf;
mod error;
mod image;
mod kernarg;
mod kernel;
mod lines;
pub mod print;

pub use bundle::code_object;
pub use container::RawOptions;
pub use dynamic_lds::{DynamicLds, LDS_SIZES_MAX};
pub use error::{ArgumentError, LoadError};
pub use image::{
    BaseRelocation, IMAGE_ALIGNMENT_BYTES, IMAGE_BYTES_BEYOND_FILE, IMAGE_BYTES_MAX, Image, Segment, Symbol,
};
pub use kernarg::{ARGUMENT_BYTES_MAX, ArgumentValue, DISPATCH_PACKET_BYTES, Geometry, ServiceAddresses};
pub use kernel::{
    AddressSpace, Argument, Arguments, Hidden, Kernel, LaunchAddresses, ResourceWords, UserSgpr, ValueKind,
};
pub use lines::{LineRow, LineTable};
use print::PrintFormats;

/// Longest file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 256 << 20;
/// Most kernels of one file.
pub const KERNELS_MAX: usize = 4096;

/// The format a program came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A linked code object.
    CodeObject,
    /// An object file that the assembler or compiler wrote, not linked.
    Object,
    /// A `.zrt` container.
    Zrt,
    /// Bare machine code.
    Raw,
}

/// Kernels with everything that they refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(crate) format: Format,
    pub(crate) image: Image,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) lines: LineTable,
    pub(crate) print_formats: PrintFormats,
}

impl Program {
    /// Reads an ELF code object, a bundle that contains one, or a `.zrt`, depending on the first bytes.
    pub fn parse(bytes: &[u8]) -> Result<Program, LoadError> {
        let file_bytes = bytes.len() as u64;
        if file_bytes > FILE_BYTES_MAX {
            return Err(LoadError::TooLarge { what: "the file", bytes: file_bytes, limit: FILE_BYTES_MAX });
        }
        let bytes = code_object(bytes)?;
        match bytes.first_chunk::<4>() {
            Some(b"\x7fELF") => elf::parse(bytes),
            Some(&zrt_isa::zrt::MAGIC) => container::parse(bytes),
            _ => Err(LoadError::Unknown { found: bytes.iter().take(4).copied().collect() }),
        }
    }

    /// Takes machine code as one kernel; the options replace what a file would say.
    pub fn raw(code: &[u8], options: &RawOptions) -> Result<Program, LoadError> {
        container::raw(code, options)
    }

    /// The format it came from.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The contents of device memory.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Kernels in the order of their code.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The kernel with a name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Functions, labels and data in ascending order of offset.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Kernels and functions: offset of the first instruction from the image's start, and name; ascending, one per
    /// offset. Labels, which have no length, are not included. Tools that disassemble count offsets from the last
    /// function before a position.
    pub fn functions(&self) -> Vec<(u64, &str)> {
        let kernels = self.kernels.iter().map(|kernel| (kernel.entry_offset, kernel.name.as_str()));
        let is_function = |symbol: &&Symbol| symbol.is_code && symbol.bytes > 0;
        let others = self.symbols.iter().filter(is_function);
        let mut functions: Vec<(u64, &str)> =
            kernels.chain(others.map(|symbol| (symbol.offset, symbol.name.as_str()))).collect();
        // Stable: a kernel's name comes before other names at the same offset.
        functions.sort_by_key(|(offset, _)| *offset);
        functions.dedup_by_key(|(offset, _)| *offset);
        functions
    }

    /// Source lines; empty if the file has none.
    pub fn lines(&self) -> &LineTable {
        &self.lines
    }

    /// Format strings that messages in a printf buffer refer to.
    pub fn print_formats(&self) -> &PrintFormats {
        &self.print_formats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_kernels_and_code_with_a_length_one_for_each_place() {
        let options = RawOptions { name: "k".into(), ..RawOptions::default() };
        let mut program = Program::raw(&[0; 32], &options).expect("code");
        let symbol =
            |name: &str, offset, bytes, is_code| Symbol { name: name.into(), offset, bytes, is_code };
        program.symbols = vec![
            symbol("same place", 0, 4, true),
            symbol("label", 4, 0, true),
            symbol("f", 8, 4, true),
            symbol("data", 12, 4, false),
            symbol("start of nothing", 16, 0, false),
            symbol("g", 20, 1, true),
        ];
        assert_eq!(program.functions(), [(0, "k"), (8, "f"), (20, "g")]);
    }
}
