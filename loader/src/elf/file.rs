//! The ELF file with its tables, of a machine that we know.
//!
//! Contract: nothing is copied. Whatever is refused, the error says what was found.

use crate::error::LoadError;
use object::elf::{
    ELFCLASS64, ELFDATA2LSB, EM_AMDGPU, ET_DYN, ET_REL, FileHeader64, SHT_DYNSYM, SHT_SYMTAB, SectionHeader64,
};
use object::read::elf::{FileHeader, SectionHeader, SectionTable, SymbolTable};
use object::{LittleEndian, SectionIndex};
use std::ffi::CStr;

/// EI_OSABI of HSA code objects.
const OS_ABI_HSA: u8 = 64;
/// EI_ABIVERSION of code object versions 4, 5 and 6.
const ABI_VERSIONS: std::ops::RangeInclusive<u8> = 2..=4;
/// EI_ABIVERSION of code object version 6, the first with generic processors.
const ABI_VERSION_GENERIC: u8 = 4;
/// e_flags: the machine, the version of a generic one, and the rest, which is 0 for gfx12 (it has neither XNACK nor
/// SRAM ECC). gfx1201 has belonged to gfx12-generic since its first version.
const FLAGS_MACHINE: u32 = 0xFF;
const FLAGS_GENERIC_VERSION: u32 = 0xFF << 24;
const MACHINE_GFX1201: u32 = 0x4E;
const MACHINE_GFX12_GENERIC: u32 = 0x59;
/// Other machines, for the message.
const MACHINES: [(u32, &str); 7] = [
    (0x36, "gfx1030"),
    (0x3F, "gfx90a"),
    (0x41, "gfx1100"),
    (0x48, "gfx1200"),
    (0x4C, "gfx942"),
    (0x4E, "gfx1201"),
    (0x59, "gfx12-generic"),
];
/// Most sections that an ELF file may have: three per kernel, and some for debugging.
pub const SECTIONS_MAX: usize = 1 << 14;

/// Everything is little-endian.
pub(crate) const ENDIAN: LittleEndian = LittleEndian;

/// The file's own form.
pub(crate) type Header = FileHeader64<LittleEndian>;

/// The file with its tables.
pub(crate) struct File<'data> {
    pub bytes: &'data [u8],
    pub header: &'data Header,
    pub sections: SectionTable<'data, Header>,
    pub symbols: SymbolTable<'data, Header>,
    /// The strings of section names and symbol names.
    pub section_strings: &'data [u8],
    pub symbol_strings: &'data [u8],
    pub is_linked: bool,
}

/// Reads the header and finds the tables.
pub(super) fn open(bytes: &[u8]) -> Result<File<'_>, LoadError> {
    check_ident(bytes)?;
    let header = Header::parse(bytes).map_err(damaged)?;
    let target = |found: String| Err(LoadError::Target { found });
    let machine = header.e_machine(ENDIAN);
    if machine != EM_AMDGPU {
        return target(format!("machine {machine}, which is not an AMD GPU"));
    }
    let flags = header.e_flags(ENDIAN);
    let is_generic = flags & !FLAGS_GENERIC_VERSION == MACHINE_GFX12_GENERIC
        && flags & FLAGS_GENERIC_VERSION != 0
        && header.e_ident().abi_version == ABI_VERSION_GENERIC;
    if flags != MACHINE_GFX1201 && !is_generic {
        let found = MACHINES.iter().find(|(number, _)| *number == flags & FLAGS_MACHINE);
        let name = found.map_or("an AMD GPU", |(_, name)| name);
        return target(format!("{name} (e_flags {flags:#x})"));
    }
    let is_linked = match header.e_type(ENDIAN) {
        ET_DYN => true,
        ET_REL => false,
        other => return Err(LoadError::Damaged { what: format!("its type is {other}, not REL or DYN") }),
    };
    let sections = header.sections(ENDIAN, bytes).map_err(damaged)?;
    if sections.is_empty() {
        return Err(LoadError::Damaged { what: "it has no section table".into() });
    }
    if sections.len() > SECTIONS_MAX {
        let entry_bytes = size_of::<SectionHeader64<LittleEndian>>();
        let (bytes, limit) = ((sections.len() * entry_bytes) as u64, (SECTIONS_MAX * entry_bytes) as u64);
        return Err(LoadError::TooLarge { what: "the section table", bytes, limit });
    }
    let strings = |index: SectionIndex| {
        let section = sections.section(index).ok()?;
        section.data(ENDIAN, bytes).ok()
    };
    let section_strings = header.shstrndx(ENDIAN, bytes).map_err(damaged)?;
    let section_strings = strings(SectionIndex(section_strings as usize)).unwrap_or_default();
    let mut symbols = sections.symbols(ENDIAN, bytes, SHT_SYMTAB).map_err(damaged)?;
    if symbols.is_empty() {
        symbols = sections.symbols(ENDIAN, bytes, SHT_DYNSYM).map_err(damaged)?;
    }
    let symbol_strings = strings(symbols.string_section()).unwrap_or_default();
    Ok(File { bytes, header, sections, symbols, section_strings, symbol_strings, is_linked })
}

/// Class, byte order and operating system: the first bytes.
fn check_ident(bytes: &[u8]) -> Result<(), LoadError> {
    let Some([_, _, _, _, class, order, _, os_abi, abi_version]) = bytes.first_chunk::<9>() else {
        return Err(LoadError::Damaged { what: format!("{} bytes are no header", bytes.len()) });
    };
    let found = if (*class, *order) != (ELFCLASS64, ELFDATA2LSB) {
        "a machine that is not 64-bit little-endian".into()
    } else if *os_abi != OS_ABI_HSA {
        format!("OS ABI {os_abi}, which is not HSA")
    } else if !ABI_VERSIONS.contains(abi_version) {
        format!("HSA with ABI version {abi_version}; 2 to 4 (code objects 4 to 6) are read")
    } else {
        return Ok(());
    };
    Err(LoadError::Target { found })
}

impl<'data> File<'data> {
    /// The section with a name, and its index.
    pub fn section_by_name(&self, name: &str) -> Option<(usize, &'data SectionHeader64<LittleEndian>)> {
        let is_it = |section: &SectionHeader64<LittleEndian>| {
            let text = self.section_strings.get(section.sh_name(ENDIAN) as usize..);
            let rest = text.and_then(|text| text.strip_prefix(name.as_bytes()));
            rest.is_some_and(|rest| rest.first() == Some(&0))
        };
        self.sections.iter().enumerate().find(|(_, section)| is_it(section))
    }

    /// The name of a section, truncated to `bytes_max`.
    pub fn section_name(&self, section: &SectionHeader64<LittleEndian>, bytes_max: usize) -> &'data [u8] {
        let name = name_at(self.section_strings, section.sh_name(ENDIAN), bytes_max).unwrap_or_default();
        name.get(..bytes_max).unwrap_or(name)
    }
}

/// The text from an offset up to its NUL; if it exceeds `bytes_max`, one byte more than that. `None` if the strings
/// end first.
pub fn name_at(strings: &[u8], offset: u32, bytes_max: usize) -> Option<&[u8]> {
    let rest = strings.get(offset as usize..)?;
    let reach = rest.get(..bytes_max + 1).unwrap_or(rest);
    let name = CStr::from_bytes_until_nul(reach).map_or(reach, CStr::to_bytes);
    (name.len() < rest.len()).then_some(name)
}

/// The error for damage that the ELF reader found.
pub(crate) fn damaged(error: object::read::Error) -> LoadError {
    LoadError::Damaged { what: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_at_their_nul_or_one_byte_after_the_limit() {
        for (strings, offset, bytes_max, expected) in [
            (&b"ab\0cd\0"[..], 0, 2, Some(&b"ab"[..])),
            (b"ab\0cd\0", 3, 9, Some(b"cd")),
            (b"ab\0cd\0", 4, 9, Some(b"d")),
            (b"ab\0cd\0", 5, 9, Some(b"")),
            (b"ab\0cd\0", 6, 9, None),
            (b"ab\0cd\0", 7, 9, None),
            (b"ab\0cd\0", u32::MAX, 9, None),
            (b"abcdef\0", 0, 2, Some(b"abc")),
            (b"abcdef\0", 0, 6, Some(b"abcdef")),
            (b"ab", 0, 2, None),
            (b"ab", 0, 9, None),
            (b"", 0, 9, None),
        ] {
            let name = name_at(strings, offset, bytes_max);
            assert_eq!(name, expected, "{strings:?} from {offset}, at most {bytes_max}");
        }
    }
}
