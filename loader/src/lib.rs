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
#[cfg(test)]
#[path = "../tests/data/message_pack.rs"]
mod message_pack;
pub mod print;
mod program;

pub use bundle::code_object;
pub use container::RawOptions;
pub use dynamic_lds::{DynamicLds, LDS_SIZES_MAX};
pub use elf::{SECTIONS_MAX, SYMBOL_BYTES_MAX, SYMBOLS_BYTES_MORE, name_at};
pub use error::{ArgumentError, LoadError};
pub use image::{
    BaseRelocation, IMAGE_ALIGNMENT_BYTES, IMAGE_BYTES_BEYOND_FILE, IMAGE_BYTES_MAX, Image, Segment, Symbol,
};
pub use kernarg::{ARGUMENT_BYTES_MAX, ArgumentValue, DISPATCH_PACKET_BYTES, Geometry, ServiceAddresses};
pub use kernel::{
    AddressSpace, Argument, Arguments, Hidden, Kernel, LaunchAddresses, ResourceWords, UserSgpr, ValueKind,
};
pub use lines::{LineRow, LineTable};
pub use program::{Format, KERNELS_MAX, Program};

/// Longest file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 256 << 20;
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
}
