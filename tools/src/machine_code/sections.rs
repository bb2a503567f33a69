//! The sections of an ELF file that have code.
//!
//! Contract: a file has at most [`SECTIONS_MAX`] sections, which share no bytes, so that what is kept of them adds up
//! to the file. One that reaches around the last address is an error. Time: n log n in the sections.

use super::CodeError;
use super::names::NamesBudget;
use object::elf::{SHF_EXECINSTR, SectionHeader64};
use object::read::elf::{ElfFile64, FileHeader, SectionHeader};
use object::{LittleEndian, SectionIndex};
use zrt_loader::{SECTIONS_MAX, SYMBOL_BYTES_MAX, name_at};

/// Everything is little-endian.
const ENDIAN: LittleEndian = LittleEndian;

/// A section with code.
pub(super) struct CodeSection<'data> {
    /// Its number in the file.
    pub index: usize,
    pub name: &'data str,
    pub address: u64,
    pub data: &'data [u8],
}

impl CodeSection<'_> {
    /// The dword at an address; `None` if it lies outside.
    pub fn dword(&self, address: u64) -> Option<usize> {
        let dword = usize::try_from(address.checked_sub(self.address)? / 4).ok()?;
        (dword < self.dwords()).then_some(dword)
    }

    /// Whole words.
    pub fn dwords(&self) -> usize {
        self.data.len() / 4
    }
}

/// Few enough sections, of which no two have bytes of the file in common.
pub(super) fn check_sections(file: &ElfFile64<'_, LittleEndian>) -> Result<(), CodeError> {
    let sections = file.elf_section_table();
    if sections.len() > SECTIONS_MAX {
        let header_bytes = size_of::<SectionHeader64<LittleEndian>>();
        let (bytes, limit) = ((sections.len() * header_bytes) as u64, (SECTIONS_MAX * header_bytes) as u64);
        return Err(CodeError::TooLarge { what: "the section table", bytes, limit });
    }
    let mut ranges = Vec::with_capacity(sections.len());
    for (index, section) in sections.enumerate() {
        // A section that reaches out of the file has no bytes that can be read.
        let length = section.data(ENDIAN, file.data()).map_or(0, <[u8]>::len) as u64;
        if length > 0 {
            let start = section.sh_offset(ENDIAN);
            ranges.push((start, start.saturating_add(length), index.0));
        }
    }
    ranges.sort_unstable();
    for pair in ranges.windows(2) {
        if let [(_, end, one), (start, _, other)] = pair
            && start < end
        {
            return Err(CodeError::SharedBytes { first: *one.min(other), second: *one.max(other) });
        }
    }
    Ok(())
}

/// The sections with code, in the order of the file.
pub(super) fn code_sections<'data>(
    file: &ElfFile64<'data, LittleEndian>,
    names: &mut NamesBudget,
) -> Result<Vec<CodeSection<'data>>, CodeError> {
    let (header, sections) = (file.elf_header(), file.elf_section_table());
    let strings = header.shstrndx(ENDIAN, file.data()).map_err(CodeError::Elf)?;
    let strings = sections.section(SectionIndex(strings as usize)).ok();
    let strings = strings.and_then(|strings| strings.data(ENDIAN, file.data()).ok()).unwrap_or_default();
    let mut code = Vec::new();
    for (index, section) in sections.enumerate() {
        let bytes = section.sh_size(ENDIAN);
        if section.sh_flags(ENDIAN) & u64::from(SHF_EXECINSTR) == 0 || bytes == 0 {
            continue;
        }
        let (index, address) = (index.0, section.sh_addr(ENDIAN));
        if address.checked_add(bytes - 1).is_none() {
            return Err(CodeError::Address { section: index, address, bytes });
        }
        let name = name_at(strings, section.sh_name(ENDIAN), SYMBOL_BYTES_MAX).unwrap_or_default();
        names.take(name, "section", index)?;
        let data = section.data(ENDIAN, file.data()).map_err(CodeError::Elf)?;
        code.push(CodeSection { index, name: std::str::from_utf8(name).unwrap_or_default(), address, data });
    }
    Ok(code)
}
