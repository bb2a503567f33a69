//! Why bytes are no valid program, or a kernel cannot be given its arguments.
//!
//! Contract: one sentence per error, with a remedy if it is not obvious.

use thiserror::Error;
use zrt_isa::resources::ResourceError;
use zrt_isa::zrt::ZrtError;

/// Why bytes cannot be loaded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum LoadError {
    /// The first bytes match no known format.
    #[error(
        "the file starts with {found:02x?}, which is neither an ELF code object nor a .zrt; raw code is a .bin file"
    )]
    Unknown { found: Vec<u8> },
    /// A bundle without code for this processor.
    #[error(
        "the bundle has code for {found}, but for neither gfx1201 nor gfx12-generic: compile with --offload-arch=gfx1201"
    )]
    Bundle { found: String },
    /// A compressed bundle.
    #[error(
        "the bundle is compressed, which is not read: compile with --no-offload-compress, or take the code object out \
         with clang-offload-bundler --unbundle --type=o --targets=hipv4-amdgcn-amd-amdhsa--gfx1201"
    )]
    CompressedBundle,
    /// The `.zrt` is invalid.
    #[error(transparent)]
    Zrt(#[from] ZrtError),
    /// The ELF file is damaged or truncated.
    #[error("the ELF file is damaged or cut off: {what}")]
    Damaged { what: String },
    /// The file is not for AMD GPUs under HSA.
    #[error(
        "the ELF file is for {found}, but amdgcn-amd-amdhsa for gfx1201 is needed: compile with \
         --target=amdgcn-amd-amdhsa -mcpu=gfx1201"
    )]
    Target { found: String },
    /// A file, or the memory that it requests, is too large.
    #[error("{what} has {bytes} bytes, but at most {limit} are loaded")]
    TooLarge { what: &'static str, bytes: u64, limit: u64 },
    /// The system has no memory for a part of the program.
    #[error("there is no memory for {what}, which takes {bytes} bytes")]
    Memory { what: &'static str, bytes: u64 },
    /// The file has no kernel to launch.
    #[error("there is no kernel in the file: no kernel descriptor (a symbol NAME.kd) was found")]
    NoKernel,
    /// A relocation that cannot be resolved here.
    #[error(
        "the relocation {kind} to {symbol:?} at {section}+{offset:#x} cannot be resolved: link the object with ld.lld"
    )]
    Relocation { kind: String, symbol: String, section: String, offset: u64 },
    /// The kernel requires something that gfx1201 (or this loader) does not have.
    #[error("kernel {kernel} needs {what}, which {reason}")]
    Unsupported { kernel: String, what: &'static str, reason: &'static str },
    /// The kernel descriptor contradicts itself or the rest of the file.
    #[error("the descriptor of kernel {kernel} is wrong: {what}")]
    Descriptor { kernel: String, what: String },
    /// A resource word is malformed.
    #[error("a resource word of kernel {kernel} is wrong: {source}")]
    Resource { kernel: String, source: ResourceError },
    /// The metadata note is malformed.
    #[error("the metadata note is wrong: {what}")]
    Metadata { what: String },
    /// Raw code or its options are invalid.
    #[error("raw code: {what}")]
    Raw { what: String },
}

/// Why a kernel's argument segment cannot be written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
#[allow(missing_docs)]
pub enum ArgumentError {
    /// More or fewer arguments than the kernel takes.
    #[error("kernel {kernel} takes {expected} arguments ({list}), but {given} were given")]
    Count { kernel: String, expected: usize, given: usize, list: String },
    /// A value has the wrong size.
    #[error("argument {index} of kernel {kernel} ({argument}) has {expected} bytes, but {given} were given")]
    Size { kernel: String, index: usize, argument: String, expected: u64, given: u64 },
    /// A number was given for an address, or the reverse.
    #[error("argument {index} of kernel {kernel} ({argument}) is {expected}, but {given} was given")]
    Kind { kernel: String, index: usize, argument: String, expected: &'static str, given: &'static str },
    /// The values do not fill the parameter block.
    #[error(
        "the parameter block of kernel {kernel} has {expected} bytes after its header, but the arguments make {given}"
    )]
    Block { kernel: String, expected: u64, given: u64 },
    /// The segment would be too large.
    #[error("the arguments of kernel {kernel} take {bytes} bytes, but at most {limit} fit")]
    TooLarge { kernel: String, bytes: u64, limit: u64 },
    /// The number of LDS sizes differs from the number of LDS pointers.
    #[error(
        "kernel {kernel} has {pointers} LDS pointers ({list}), but {given} sizes of LDS were given: one is needed for each \
         pointer, and one at most where there is none"
    )]
    LdsSizes { kernel: String, pointers: usize, list: String, given: usize },
    /// An implicit argument that cannot be provided here.
    #[error("kernel {kernel} needs the implicit argument {what}, which cannot be provided")]
    Hidden { kernel: String, what: String },
    /// The launch's shape is invalid.
    #[error("the {what} of {value} is not {wanted}")]
    Geometry { what: &'static str, value: String, wanted: String },
}
