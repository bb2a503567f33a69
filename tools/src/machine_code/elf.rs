//! Code out of ELF files: code objects and object files.
//!
//! Contract: never panics on any bytes. Memory is at most eight times the file and 16 MiB, time n log n in the file:
//! sections share no bytes, so that what is kept of them adds up to the file, and names have limits of their own. What
//! exceeds a limit is an error before anything is reserved for it. Descriptor fields: hardware reference §5 (the kernel
//! descriptor of code object version 5).

use super::lines::LoadedLines;
use super::names::{Name, NamesBudget};
use super::sections::{CodeSection, check_sections, code_sections};
use super::symbols::{Symbol, Symbols};
use super::{CodeError, Entry, Format, MachineCode, Section, words};
use object::elf::{EM_AMDGPU, FileHeader64};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectKind, SectionIndex};
use std::collections::BTreeMap;
use zrt_isa::resources::WaveSize;

/// Everything is little-endian.
const ENDIAN: LittleEndian = LittleEndian;
/// Bytes of a kernel descriptor.
const DESCRIPTOR_BYTES: usize = 64;
/// Byte offsets of a descriptor's RSRC2 and code properties.
const DESCRIPTOR_RSRC2: usize = 52;
const DESCRIPTOR_PROPERTIES: usize = 56;
/// Bit of the code properties: wave32.
const PROPERTY_WAVE32: u16 = 1 << 10;
/// ELF machine flags of the chips with this instruction set: gfx1200, gfx1201, gfx12-generic.
const TARGETS: [u32; 3] = [0x48, 0x4e, 0x59];
/// The bits of the ELF flags that hold it.
const TARGET_MASK: u32 = 0xff;

/// The code of an ELF file.
pub(super) fn parse(bytes: &[u8]) -> Result<MachineCode, CodeError> {
    let file = ElfFile64::<LittleEndian>::parse(bytes).map_err(CodeError::Elf)?;
    check_target(file.elf_header())?;
    check_sections(&file)?;
    let mut names = NamesBudget::new(bytes.len());
    let code = code_sections(&file, &mut names)?;
    if code.is_empty() {
        return Err(CodeError::NoCode);
    }
    // The loader takes its memory while nothing else is kept.
    let lines = LoadedLines::read(bytes);
    let reader = Reader { symbols: Symbols::read(&file, &code, &mut names)?, file: &file };
    let sections = code.iter().map(|one| reader.section(one, lines.as_ref())).collect();
    Ok(MachineCode { format: Format::Elf, sections })
}

fn check_target(header: &FileHeader64<LittleEndian>) -> Result<(), CodeError> {
    let machine = header.e_machine(ENDIAN);
    if machine != EM_AMDGPU {
        return Err(CodeError::Machine { machine });
    }
    let target = header.e_flags(ENDIAN) & TARGET_MASK;
    if !TARGETS.contains(&target) {
        return Err(CodeError::Target { target });
    }
    Ok(())
}

/// What the sections are made from.
struct Reader<'data> {
    file: &'data ElfFile64<'data, LittleEndian>,
    symbols: Symbols<'data>,
}

/// A symbol at its dword, with the descriptor if it is a kernel.
struct Place<'data> {
    dword: usize,
    symbol: Symbol<'data>,
    descriptor: Option<&'data [u8; DESCRIPTOR_BYTES]>,
}

impl Place<'_> {
    /// The dword after the last one, if the symbol says; else the section's end.
    fn end(&self, section_dwords: usize) -> usize {
        match usize::try_from(self.symbol.bytes / 4) {
            Ok(dwords @ 1..) => self.dword.saturating_add(dwords).min(section_dwords),
            _ => section_dwords,
        }
    }

    /// The kernel of this descriptor.
    fn kernel(&self, descriptor: &[u8; DESCRIPTOR_BYTES], section_dwords: usize) -> Entry {
        let properties =
            u16::from_le_bytes([descriptor[DESCRIPTOR_PROPERTIES], descriptor[DESCRIPTOR_PROPERTIES + 1]]);
        Entry {
            name: self.symbol.name.into(),
            dword: self.dword,
            end: self.end(section_dwords),
            wave_size: match properties & PROPERTY_WAVE32 {
                0 => WaveSize::Wave64,
                _ => WaveSize::Wave32,
            },
            // RSRC2 bits 5:1.
            user_sgprs: descriptor[DESCRIPTOR_RSRC2] >> 1 & 0x1f,
        }
    }
}

impl<'data> Reader<'data> {
    fn section(&self, code: &CodeSection<'data>, lines: Option<&LoadedLines>) -> Section {
        let mut section = Section {
            name: code.name.into(),
            address: code.address,
            words: words(code.data),
            symbols: exact(|| self.labels(code)).into_iter().collect(),
            functions: BTreeMap::new(),
            entries: Vec::new(),
            called: Vec::new(),
            is_linked: self.file.kind() != ObjectKind::Relocatable,
            lines: Vec::new(),
        };
        section.functions = exact(|| self.functions(code, &section.symbols)).into_iter().collect();
        section.entries = exact(|| self.kernels(code));
        section.called = exact(|| self.called(code, &section));
        let kernels = section.entries.iter().map(|entry| (&*entry.name, entry.dword));
        section.lines = lines.and_then(|lines| lines.of_section(kernels)).into_iter().collect();
        section
    }

    /// The symbols of each dword of a section that has any, ascending, by place and name.
    fn groups(&self, code: &CodeSection<'data>) -> impl Iterator<Item = (usize, &[u32])> {
        let dword = |number: &u32| code.dword(self.symbols.place(*number)?.1);
        let groups =
            self.symbols.in_section(code.index).chunk_by(move |one, other| dword(one) == dword(other));
        groups.filter_map(move |group| Some((dword(group.first()?)?, group)))
    }

    /// All names of each dword.
    fn labels(&self, code: &CodeSection<'data>) -> impl Iterator<Item = (usize, Vec<Name>)> {
        let name = |number: &u32| Name::from(self.symbols.get(*number).map_or("", |symbol| symbol.name));
        self.groups(code).map(move |(dword, group)| (dword, group.iter().map(name).collect()))
    }

    /// The name of each dword where a kernel or function begins: a kernel's goes before others of its place.
    fn functions(
        &self,
        code: &CodeSection<'data>,
        labels: &BTreeMap<usize, Vec<Name>>,
    ) -> impl Iterator<Item = (usize, Name)> {
        self.groups(code).zip(labels).filter_map(|((dword, group), (_, names))| {
            let places = || {
                group.iter().zip(names).filter_map(|(number, name)| Some((self.place(dword, *number)?, name)))
            };
            let kernel = places().rfind(|(place, _)| place.descriptor.is_some());
            let (_, name) = kernel.or_else(|| places().find(|(place, _)| place.symbol.bytes > 0))?;
            Some((dword, name.clone()))
        })
    }

    fn kernels(&self, code: &CodeSection<'data>) -> impl Iterator<Item = Entry> {
        self.groups(code).flat_map(move |(dword, group)| {
            let places = group.iter().filter_map(move |number| self.place(dword, *number));
            places.filter_map(|place| Some(place.kernel(place.descriptor?, code.dwords())))
        })
    }

    /// Functions that others call, one for each place where no kernel begins. Their waves are those of the kernel that
    /// they follow.
    fn called(&self, code: &CodeSection<'data>, section: &Section) -> impl Iterator<Item = Entry> {
        self.groups(code).filter_map(|(dword, group)| {
            let places = || group.iter().filter_map(|number| self.place(dword, *number));
            let is_kernel = places().any(|place| place.descriptor.is_some());
            let place = places().find(|place| place.symbol.is_function && place.symbol.bytes > 0)?;
            let name = place.symbol.name.into();
            let (end, wave_size) = (place.end(code.dwords()), section.wave_size(dword));
            (!is_kernel).then_some(Entry { name, dword, end, wave_size, user_sgprs: 0 })
        })
    }

    fn place(&self, dword: usize, number: u32) -> Option<Place<'data>> {
        let symbol = self.symbols.get(number)?;
        Some(Place { dword, descriptor: self.descriptor(symbol.name), symbol })
    }

    /// The descriptor of the kernel that begins at the function `name`, if that is a kernel.
    fn descriptor(&self, name: &str) -> Option<&'data [u8; DESCRIPTOR_BYTES]> {
        let (section, address) = self.symbols.descriptor(name)?;
        let section = self.file.elf_section_table().section(SectionIndex(section)).ok()?;
        let start = usize::try_from(address.checked_sub(section.sh_addr(ENDIAN))?).ok()?;
        section.data(ENDIAN, self.file.data()).ok()?.get(start..)?.first_chunk()
    }
}

/// The items in a vector without space for more: one that grows holds three times as much for a moment.
fn exact<T, I: Iterator<Item = T>>(items: impl Fn() -> I) -> Vec<T> {
    let mut exact = Vec::with_capacity(items().count());
    exact.extend(items());
    exact
}
