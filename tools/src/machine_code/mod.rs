//! Machine code from a file: a `.zrt` container, an ELF code object or object file, alone or in a clang bundle, or raw
//! words.
//!
//! Contract: the first bytes decide the format; a file with neither magic is raw code. Never panics on any bytes.
//! [`MachineCode::parse`] takes at most eight times the file and 16 MiB of memory and time n log n in the file
//! (`tests/bounded.rs`); what a file repeats is shared, and what exceeds a limit is an error that names the limit.
//! Looking up a place, a line or a wave size is a binary search.

mod elf;
mod lines;
mod names;
mod sections;
mod symbols;

use crate::bounded_read::{self, ReadError};
use std::collections::BTreeMap;
use std::path::Path;
use thiserror::Error;
use zrt_isa::resources::WaveSize;
use zrt_isa::zrt::{self, Kernel, ZrtError};
use zrt_isa::{DecodeError, decode_for};
use zrt_loader::{FILE_BYTES_MAX, LineRow, LoadError, RawOptions, SYMBOL_BYTES_MAX};

pub use lines::SourceLines;
pub use names::Name;

/// User SGPRs of a kernel whose descriptor cannot be read: all that a launch can have.
const USER_SGPRS_MAX: u8 = 16;

/// Why a file has no machine code for us.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The system could not read it.
    #[error("it cannot be read: {0}; check the path and its permissions")]
    Read(std::io::Error),
    /// Too large to be a kernel.
    #[error("it has more than the {FILE_BYTES_MAX} bytes that are read; give a single code object")]
    Size,
    /// It is empty.
    #[error("it is empty; give a .zrt file, an ELF code object or raw gfx1201 code")]
    Empty,
    /// A clang bundle that has nothing for us, or is damaged.
    #[error("{0}")]
    Bundle(LoadError),
    /// A damaged container.
    #[error("it is not a complete .zrt container: {0}; assemble it again")]
    Container(ZrtError),
    /// A damaged ELF file.
    #[error("it is not a complete ELF file: {0}; compile or copy it again")]
    Elf(object::read::Error),
    /// Another architecture.
    #[error(
        "it is an ELF file for machine {machine}, not for AMD GPUs (224); compile it for amdgcn and gfx1201"
    )]
    Machine {
        /// ELF's number.
        machine: u16,
    },
    /// Another chip.
    #[error(
        "it is code for the GPU with ELF number {target:#x}, not gfx1201 (0x4e); compile it with -mcpu=gfx1201"
    )]
    Target {
        /// ELF's number of the chip.
        target: u32,
    },
    /// A part that is larger than what is read.
    #[error("{what} has {bytes} bytes, but at most {limit} are read; strip or split it")]
    TooLarge {
        /// The part.
        what: &'static str,
        /// Its length, or that of what was counted so far.
        bytes: u64,
        /// The most that is read.
        limit: u64,
    },
    /// A name that is longer than what is read.
    #[error(
        "the name of {what} {index} has more than {SYMBOL_BYTES_MAX} bytes, and at most {SYMBOL_BYTES_MAX} are read; rename it"
    )]
    LongName {
        /// A symbol or a section.
        what: &'static str,
        /// Its number in the file.
        index: usize,
    },
    /// Bytes that two sections name.
    #[error(
        "its sections {first} and {second} share bytes, and at most one section has a byte; compile or copy it again"
    )]
    SharedBytes {
        /// The number of one.
        first: usize,
        /// The number of the other.
        second: usize,
    },
    /// A section that reaches around the end of all addresses.
    #[error(
        "its section {section} has {bytes} bytes at {address:#x}, which reach beyond the last address; compile or copy \
         it again"
    )]
    Address {
        /// Its number.
        section: usize,
        /// Where it begins.
        address: u64,
        /// Its length.
        bytes: u64,
    },
    /// No executable section.
    #[error("it is an ELF file without code; give the one that has the kernels")]
    NoCode,
    /// Raw code that is not made of words.
    #[error(
        "it is neither .zrt nor ELF, and raw code of {bytes} bytes is cut: instructions are words of 4 bytes"
    )]
    RawLength {
        /// Its length.
        bytes: usize,
    },
    /// Raw code that does not begin with an instruction.
    #[error("it is neither .zrt nor ELF nor raw gfx1201 code: {0}")]
    RawStart(DecodeError),
    /// Raw code whose last instruction is not whole.
    #[error("it is raw code that ends inside of its last instruction, at byte {offset:#x}: {error}")]
    RawEnd {
        /// Where the instruction begins.
        offset: usize,
        /// What is missing.
        error: DecodeError,
    },
}

/// What kind of file the code came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// A `.zrt` container.
    Zrt,
    /// An ELF code object or object file.
    Elf,
    /// Words.
    Raw,
}

/// A place where execution begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The kernel's name; empty for raw code.
    pub name: Name,
    /// Dword of its first instruction in the section.
    pub dword: usize,
    /// Dword after its last one, if the file says; else the section's end.
    pub end: usize,
    /// Lanes of a wave.
    pub wave_size: WaveSize,
    /// Scalar registers that the launch writes.
    pub user_sgprs: u8,
}

/// Contiguous code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// Name; empty for raw code.
    pub name: Name,
    /// Address of the first word in the file's own counting, in bytes.
    pub address: u64,
    /// The code; bytes after the last whole word are left out.
    pub words: Vec<u32>,
    /// Names by dword.
    pub symbols: BTreeMap<usize, Vec<Name>>,
    /// Kernels in the order of their code.
    pub entries: Vec<Entry>,
    /// Functions that others call, in the order of their code; their waves are those of the kernel that they follow.
    pub called: Vec<Entry>,
    /// Whether a linker has filled in the distances between functions.
    pub is_linked: bool,
    /// Kernels and functions by dword: what offsets count from.
    pub functions: BTreeMap<usize, Name>,
    /// Source lines, if the file has any. Of several tables the first that knows a dword counts.
    pub lines: Vec<SourceLines>,
}

/// An instruction as reports, disassemblers and debuggers name it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CodePlace {
    /// The kernel or function that it is in.
    pub function: Name,
    /// Bytes from that one's first instruction.
    pub offset: u64,
    /// Address in the file's counting, in bytes.
    pub address: u64,
}

/// The code of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineCode {
    /// Kind of file.
    pub format: Format,
    /// At least one.
    pub sections: Vec<Section>,
}

impl Section {
    /// The source line of a dword.
    pub fn source_line(&self, dword: usize) -> Option<(&str, u32)> {
        self.source(dword).map(|(file, line)| (&**file, line))
    }

    /// The same with the file's name as all places share it.
    pub fn source(&self, dword: usize) -> Option<(&Name, u32)> {
        self.lines.iter().find_map(|lines| lines.find(dword))
    }

    /// The address of a dword. Those behind the section wrap, as a program counter does.
    pub fn address_of(&self, dword: usize) -> u64 {
        self.address.wrapping_add((dword as u64).wrapping_mul(4))
    }

    /// The place of a dword: in the function that begins at it or before it, else in the section.
    pub fn place(&self, dword: usize) -> CodePlace {
        let function = self.functions.range(..=dword).next_back();
        let (start, function) = function.map_or((0, &self.name), |(start, name)| (*start, name));
        // Raw code has this name when it is launched, too.
        let function = if function.is_empty() { RawOptions::default().name.into() } else { function.clone() };
        let offset = (dword - start) as u64 * 4;
        CodePlace { function, offset, address: self.address_of(dword) }
    }

    /// Lanes of the waves that execute a dword: those of the kernel that it follows.
    pub fn wave_size(&self, dword: usize) -> WaveSize {
        let after = self.entries.partition_point(|entry| entry.dword <= dword);
        self.entries.get(after.saturating_sub(1)).map_or(WaveSize::Wave32, |entry| entry.wave_size)
    }
}

impl MachineCode {
    /// Reads a file. Raw code is taken as one kernel of `raw_wave_size`.
    pub fn read(path: &Path, raw_wave_size: WaveSize) -> Result<MachineCode, CodeError> {
        let bytes = bounded_read::read(path, FILE_BYTES_MAX).map_err(|error| match error {
            ReadError::System(error) => CodeError::Read(error),
            ReadError::TooLong => CodeError::Size,
        })?;
        MachineCode::parse(&bytes, raw_wave_size)
    }

    /// Extracts the code from the bytes of a file.
    pub fn parse(bytes: &[u8], raw_wave_size: WaveSize) -> Result<MachineCode, CodeError> {
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(CodeError::Size);
        }
        let bytes = zrt_loader::code_object(bytes).map_err(CodeError::Bundle)?;
        match bytes.first_chunk::<4>() {
            _ if bytes.is_empty() => Err(CodeError::Empty),
            Some(&zrt::MAGIC) => container(bytes),
            Some(b"\x7fELF") => elf::parse(bytes),
            _ => raw(bytes, raw_wave_size),
        }
    }

    /// Executes everything in waves of this size, whatever the file says.
    pub fn set_wave_size(&mut self, wave_size: WaveSize) {
        for section in &mut self.sections {
            for entry in section.entries.iter_mut().chain(&mut section.called) {
                entry.wave_size = wave_size;
            }
        }
    }

    /// The code of a parsed container.
    pub fn from_kernel(kernel: &Kernel<'_>) -> MachineCode {
        let dword = kernel.entry as usize / 4;
        let name = Name::from(kernel.name);
        let files = kernel.files.iter().map(|file| Name::from(*file)).collect();
        let row =
            |line: &zrt::Line| LineRow { offset: line.code_offset.into(), file: line.file, line: line.line };
        let lines = SourceLines::new(files, kernel.lines.iter().map(row).collect());
        let entry = Entry {
            name: name.clone(),
            dword,
            end: kernel.code_dwords().count(),
            wave_size: kernel.wave_size,
            user_sgprs: kernel.user_sgprs,
        };
        let section = Section {
            name: Name::default(),
            address: 0,
            words: kernel.code_dwords().collect(),
            symbols: BTreeMap::from([(dword, vec![name.clone()])]),
            functions: BTreeMap::from([(dword, name)]),
            entries: vec![entry],
            called: Vec::new(),
            is_linked: true,
            lines: vec![lines],
        };
        MachineCode { format: Format::Zrt, sections: vec![section] }
    }
}

fn container(bytes: &[u8]) -> Result<MachineCode, CodeError> {
    Kernel::parse(bytes).map(|kernel| MachineCode::from_kernel(&kernel)).map_err(CodeError::Container)
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// Words, of which the first must begin an instruction and the last must end one.
fn raw(bytes: &[u8], wave_size: WaveSize) -> Result<MachineCode, CodeError> {
    if bytes.len() % 4 != 0 {
        return Err(CodeError::RawLength { bytes: bytes.len() });
    }
    let words = words(bytes);
    if let Err(error @ DecodeError::Unknown { .. }) = decode_for(&words, wave_size) {
        return Err(CodeError::RawStart(error));
    }
    let mut at = 0;
    while at < words.len() {
        at += match decode_for(&words[at..], wave_size) {
            Ok(instruction) => usize::from(instruction.dword_count).max(1),
            Err(DecodeError::Unknown { .. }) => 1,
            Err(error) => return Err(CodeError::RawEnd { offset: at * 4, error }),
        };
    }
    let entry =
        Entry { name: Name::default(), dword: 0, end: words.len(), wave_size, user_sgprs: USER_SGPRS_MAX };
    let section = Section {
        name: Name::default(),
        address: 0,
        words,
        symbols: BTreeMap::new(),
        functions: BTreeMap::new(),
        entries: vec![entry],
        called: Vec::new(),
        is_linked: true,
        lines: Vec::new(),
    };
    Ok(MachineCode { format: Format::Raw, sections: vec![section] })
}

#[cfg(test)]
mod tests;
