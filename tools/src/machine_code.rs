//! Machine code from a file: a `.zrt` container, an ELF code object or object file, alone or in a clang bundle, or raw
//! words.
//!
//! Contract: the first bytes decide the format; a file with neither magic is raw code. Never panics on any bytes;
//! allocates in proportion to the file. Descriptor fields: hardware reference §5 (the kernel descriptor of code object
//! version 5).

use crate::bounded_read::{self, ReadError};
use object::read::elf::{ElfFile64, FileHeader};
use object::{
    LittleEndian, Object, ObjectKind, ObjectSection, ObjectSymbol, SectionFlags, SectionIndex, SymbolKind,
    elf,
};
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use thiserror::Error;
use zrt_isa::resources::WaveSize;
use zrt_isa::zrt::{self, Kernel, ZrtError};
use zrt_isa::{DecodeError, decode_for};
use zrt_loader::{LineRow, LoadError, Program, RawOptions};

/// Largest file that is read, in bytes.
pub const FILE_BYTES_MAX: u64 = 256 << 20;
/// Bytes of a kernel descriptor.
const DESCRIPTOR_BYTES: usize = 64;
/// Byte offsets of a descriptor's RSRC2 and code properties.
const DESCRIPTOR_RSRC2: usize = 52;
const DESCRIPTOR_PROPERTIES: usize = 56;
/// Bit of the code properties: wave32.
const PROPERTY_WAVE32: u16 = 1 << 10;
/// Suffix of the name of a kernel's descriptor, after the kernel's name.
const DESCRIPTOR_SUFFIX: &str = ".kd";
/// User SGPRs of a kernel whose descriptor cannot be read: all that a launch can have.
const USER_SGPRS_MAX: u8 = 16;
/// ELF machine flags of the chips with this instruction set: gfx1200, gfx1201, gfx12-generic.
const TARGETS: [u32; 3] = [0x48, 0x4e, 0x59];
/// The bits of the ELF flags that hold it.
const TARGET_MASK: u32 = 0xff;

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
    pub name: String,
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
    pub name: String,
    /// Address of the first word in the file's own counting, in bytes.
    pub address: u64,
    /// The code; bytes after the last whole word are left out.
    pub words: Vec<u32>,
    /// Names by dword.
    pub symbols: BTreeMap<usize, Vec<String>>,
    /// Kernels in the order of their code.
    pub entries: Vec<Entry>,
    /// Functions that others call, in the order of their code; their waves are those of the kernel that they follow.
    pub called: Vec<Entry>,
    /// Whether a linker has filled in the distances between functions.
    pub is_linked: bool,
    /// Kernels and functions by dword: what offsets count from.
    pub functions: BTreeMap<usize, String>,
    /// Source file and line from a dword on, ascending; no file where a range ends.
    pub lines: Vec<(usize, Option<Arc<str>>, u32)>,
}

/// An instruction as reports, disassemblers and debuggers name it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct CodePlace {
    /// The kernel or function that it is in.
    pub function: String,
    /// Bytes from that one's first instruction.
    pub offset: u64,
    /// Address in the file's counting, in bytes.
    pub address: u64,
}

impl fmt::Display for CodePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}+{:#x}", self.function, self.offset)
    }
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
        let next = self.lines.partition_point(|(from, ..)| *from <= dword);
        let (_, file, line) = self.lines.get(next.checked_sub(1)?)?;
        Some((file.as_deref()?, *line))
    }

    /// The place of a dword: in the function that begins at it or before it, else in the section.
    pub fn place(&self, dword: usize) -> CodePlace {
        let function = self.functions.range(..=dword).next_back();
        let (start, function) = function.map_or((0, &self.name), |(start, name)| (*start, name));
        // Raw code has this name when it is launched, too.
        let function = if function.is_empty() { RawOptions::default().name } else { function.clone() };
        let offset = (dword - start) as u64 * 4;
        CodePlace { function, offset, address: self.address + dword as u64 * 4 }
    }

    /// Lanes of the waves that execute a dword: those of the kernel that it follows.
    pub fn wave_size(&self, dword: usize) -> WaveSize {
        let before = self.entries.iter().rev().find(|entry| entry.dword <= dword);
        before.or(self.entries.first()).map_or(WaveSize::Wave32, |entry| entry.wave_size)
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
        let bytes = zrt_loader::code_object(bytes).map_err(CodeError::Bundle)?;
        match bytes.first_chunk::<4>() {
            _ if bytes.is_empty() => Err(CodeError::Empty),
            Some(&zrt::MAGIC) => container(bytes),
            Some(b"\x7fELF") => elf_file(bytes),
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
        let files: Vec<Arc<str>> = kernel.files.iter().map(|file| Arc::from(*file)).collect();
        let entry = Entry {
            name: kernel.name.to_owned(),
            dword,
            end: kernel.code_dwords().count(),
            wave_size: kernel.wave_size,
            user_sgprs: kernel.user_sgprs,
        };
        let section = Section {
            name: String::new(),
            address: 0,
            words: kernel.code_dwords().collect(),
            symbols: BTreeMap::from([(dword, vec![kernel.name.to_owned()])]),
            functions: BTreeMap::from([(dword, kernel.name.to_owned())]),
            entries: vec![entry],
            called: Vec::new(),
            is_linked: true,
            lines: kernel
                .lines
                .iter()
                .map(|line| {
                    (line.code_offset as usize / 4, files.get(line.file as usize).cloned(), line.line)
                })
                .collect(),
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
        Entry { name: String::new(), dword: 0, end: words.len(), wave_size, user_sgprs: USER_SGPRS_MAX };
    let section = Section {
        name: String::new(),
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

fn elf_file(bytes: &[u8]) -> Result<MachineCode, CodeError> {
    let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(CodeError::Elf)?;
    let header = file.elf_header();
    let machine = header.e_machine(LittleEndian);
    if machine != elf::EM_AMDGPU {
        return Err(CodeError::Machine { machine });
    }
    let target = header.e_flags(LittleEndian) & TARGET_MASK;
    if !TARGETS.contains(&target) {
        return Err(CodeError::Target { target });
    }
    let mut names = names(&file);
    names.sort_by(|one, other| {
        (one.section.0, one.address, &one.name).cmp(&(other.section.0, other.address, &other.name))
    });
    names.dedup();
    // A program that cannot be launched can still be listed; it has no lines then.
    let program = Program::parse(bytes).ok();
    let mut sections = Vec::new();
    for section in file.sections() {
        let SectionFlags::Elf { sh_flags } = section.flags() else { continue };
        if sh_flags & u64::from(elf::SHF_EXECINSTR) == 0 || section.size() == 0 {
            continue;
        }
        let words = words(section.data().map_err(CodeError::Elf)?);
        let here = names.iter().filter(|name| name.section == section.index());
        let here = here.filter(|name| name.address >= section.address());
        let mut symbols = BTreeMap::<usize, Vec<String>>::new();
        let (mut functions, mut entries, mut called) = (BTreeMap::new(), Vec::new(), BTreeMap::new());
        for name in here {
            let dword = ((name.address - section.address()) / 4) as usize;
            if dword >= words.len() {
                continue;
            }
            symbols.entry(dword).or_default().push(name.name.clone());
            let descriptor = descriptor(&file, &names, &name.name);
            if name.bytes > 0 || descriptor.is_some() {
                functions.entry(dword).or_insert_with(|| name.name.clone());
            }
            let end = match usize::try_from(name.bytes / 4) {
                Ok(dwords @ 1..) => dword.saturating_add(dwords).min(words.len()),
                _ => words.len(),
            };
            match descriptor {
                Some(descriptor) => entries.push(entry(name.name.clone(), dword..end, &descriptor)),
                None if name.is_function && name.bytes > 0 => {
                    called.entry(dword).or_insert((name.name.clone(), end));
                }
                None => {}
            }
        }
        entries.sort_by_key(|entry| entry.dword);
        // The name of a kernel goes before other names of its place.
        functions.extend(entries.iter().map(|entry: &Entry| (entry.dword, entry.name.clone())));
        let lines = program.as_ref().map_or_else(Vec::new, |program| lines(program, &entries));
        entries.iter().for_each(|entry| drop(called.remove(&entry.dword)));
        let mut section = Section {
            name: section.name().unwrap_or_default().to_owned(),
            address: section.address(),
            words,
            symbols,
            functions,
            entries,
            called: Vec::new(),
            is_linked: file.kind() != ObjectKind::Relocatable,
            lines,
        };
        let called = called.into_iter().map(|(dword, (name, end))| Entry {
            name,
            dword,
            end,
            wave_size: section.wave_size(dword),
            user_sgprs: 0,
        });
        section.called = called.collect();
        sections.push(section);
    }
    match sections.is_empty() {
        true => Err(CodeError::NoCode),
        false => Ok(MachineCode { format: Format::Elf, sections }),
    }
}

/// The lines of a section: a kernel in it, which the loader knows too, says where the section lies in the image.
/// Rows behind the section are nobody's.
fn lines(program: &Program, entries: &[Entry]) -> Vec<(usize, Option<Arc<str>>, u32)> {
    let start = entries
        .iter()
        .find_map(|entry| program.kernel(&entry.name)?.entry_offset.checked_sub(entry.dword as u64 * 4));
    let Some(start) = start else { return Vec::new() };
    let table = program.lines();
    let files: Vec<Arc<str>> = table.files().iter().map(|file| Arc::from(file.as_str())).collect();
    let line = |row: &LineRow| {
        let dword = usize::try_from(row.offset.checked_sub(start)? / 4).ok()?;
        let file = files.get(row.file as usize).filter(|_| row.line != 0).cloned();
        Some((dword, file, row.line))
    };
    table.rows().iter().filter_map(line).collect()
}

/// A symbol of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Name {
    section: SectionIndex,
    address: u64,
    name: String,
    /// Its length; 0 for a label.
    bytes: u64,
    is_function: bool,
}

/// Named places, of the symbol table and of the dynamic one, which stripping leaves.
fn names(file: &ElfFile64<'_, LittleEndian>) -> Vec<Name> {
    let symbols = file.symbols().chain(file.dynamic_symbols());
    let named = symbols.filter_map(|symbol| {
        let is_place = matches!(
            symbol.kind(),
            SymbolKind::Text | SymbolKind::Label | SymbolKind::Data | SymbolKind::Unknown
        );
        let name = symbol.name().ok().filter(|name| is_place && !name.is_empty())?;
        let (section, address) = (symbol.section_index()?, symbol.address());
        let is_function = symbol.kind() == SymbolKind::Text;
        Some(Name { section, address, name: name.to_owned(), bytes: symbol.size(), is_function })
    });
    named.collect()
}

/// The descriptor of the kernel that begins at the function `name`, if that is a kernel.
fn descriptor(
    file: &ElfFile64<'_, LittleEndian>,
    names: &[Name],
    name: &str,
) -> Option<[u8; DESCRIPTOR_BYTES]> {
    let is_descriptor = |other: &&Name| other.name.strip_suffix(DESCRIPTOR_SUFFIX) == Some(name);
    let place = names.iter().find(is_descriptor)?;
    let section = file.section_by_index(place.section).ok()?;
    let start = usize::try_from(place.address.checked_sub(section.address())?).ok()?;
    section.data().ok()?.get(start..)?.first_chunk().copied()
}

fn entry(name: String, dwords: Range<usize>, descriptor: &[u8; DESCRIPTOR_BYTES]) -> Entry {
    let properties =
        u16::from_le_bytes([descriptor[DESCRIPTOR_PROPERTIES], descriptor[DESCRIPTOR_PROPERTIES + 1]]);
    let wave_size = match properties & PROPERTY_WAVE32 {
        0 => WaveSize::Wave64,
        _ => WaveSize::Wave32,
    };
    // RSRC2 bits 5:1.
    let user_sgprs = descriptor[DESCRIPTOR_RSRC2] >> 1 & 0x1f;
    Entry { name, dword: dwords.start, end: dwords.end, wave_size, user_sgprs }
}

#[cfg(test)]
mod tests;
