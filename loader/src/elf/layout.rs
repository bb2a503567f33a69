//! Where the parts of an ELF file lie in the image.
//!
//! Contract: segments are copied once, inside [`IMAGE_BYTES_MAX`]; relocations are resolved (`relocation`) or refused.
//! A linked file keeps its own distances; the sections of an object follow each other at their alignment.

use super::{ENDIAN, File, damaged, relocation};
use crate::error::LoadError;
use crate::image::{IMAGE_ALIGNMENT_BYTES, IMAGE_BYTES_MAX, Image, Segment};
use object::elf::{
    PF_W, PF_X, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHN_ABS, SHN_UNDEF, SHT_NOBITS, SHT_PROGBITS,
    Sym64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{LittleEndian, SymbolIndex};
use zrt_isa::zrt::CODE_ALIGNMENT_BYTES;

/// The image and how the file's addresses lead into it.
pub(crate) struct Layout {
    pub image: Image,
    /// Linked files: the address that is offset 0.
    pub base_address: u64,
    /// Objects: offset of each section that is in the image.
    pub section_offsets: Vec<Option<u64>>,
}

/// A part to be placed.
struct Part<'data> {
    name: String,
    offset: u64,
    /// Bytes from the file; what lies behind them up to `bytes` is zero.
    content: &'data [u8],
    bytes: u64,
    executable: bool,
    writable: bool,
}

impl Layout {
    /// Places everything and resolves relocations.
    pub fn new(file: &File<'_>) -> Result<Layout, LoadError> {
        let mut layout = if file.is_linked { linked(file)? } else { sections(file)? };
        relocation::apply(file, &mut layout)?;
        Ok(layout)
    }

    /// Where a symbol lies in the image; `None` for undefined and absolute ones, and for what is not loaded.
    pub fn symbol_offset(
        &self,
        file: &File<'_>,
        index: SymbolIndex,
        symbol: &Sym64<LittleEndian>,
    ) -> Option<u64> {
        let value = symbol.st_value(ENDIAN);
        let section = symbol.st_shndx(ENDIAN);
        if section == SHN_UNDEF || section == SHN_ABS {
            return None;
        }
        if file.is_linked {
            return value.checked_sub(self.base_address);
        }
        let section = file.symbols.symbol_section(ENDIAN, symbol, index).ok()??;
        self.section_offset(section.0)?.checked_add(value)
    }

    /// Where an object's section lies in the image.
    pub fn section_offset(&self, section: usize) -> Option<u64> {
        self.section_offsets.get(section).copied().flatten()
    }
}

fn too_large(bytes: u64) -> LoadError {
    LoadError::TooLarge { what: "the program in memory", bytes, limit: IMAGE_BYTES_MAX }
}

/// Copies the parts, which are in ascending order, into one block.
fn place(parts: Vec<Part<'_>>) -> Result<Image, LoadError> {
    let mut image = Image::default();
    for part in parts {
        let end = part.offset.saturating_add(part.bytes);
        if end > IMAGE_BYTES_MAX {
            return Err(too_large(end));
        }
        if part.offset < image.bytes.len() as u64 {
            return Err(LoadError::Damaged { what: format!("{} overlaps the one before it", part.name) });
        }
        image.bytes.resize(part.offset as usize, 0);
        let kept = part.content.len().min(part.bytes as usize);
        image.bytes.extend(part.content.iter().take(kept));
        image.bytes.resize(end as usize, 0);
        let Part { name, offset, bytes, executable, writable, .. } = part;
        image.segments.push(Segment { name, offset, bytes, executable, writable });
    }
    Ok(image)
}

fn linked(file: &File<'_>) -> Result<Layout, LoadError> {
    let headers = file.header.program_headers(ENDIAN, file.bytes).map_err(damaged)?;
    let mut base_address = None;
    let mut parts = Vec::new();
    for header in headers.iter().filter(|header| header.p_type(ENDIAN) == PT_LOAD) {
        let name = format!("LOAD {}", parts.len());
        let cut = || LoadError::Damaged { what: format!("{name} lies outside of the file") };
        let content = header.data(ENDIAN, file.bytes).map_err(|()| cut())?;
        let address = header.p_vaddr(ENDIAN);
        let base = *base_address.get_or_insert(address - address % IMAGE_ALIGNMENT_BYTES);
        let offset = address
            .checked_sub(base)
            .ok_or_else(|| LoadError::Damaged { what: format!("{name} lies below the one before it") })?;
        let flags = header.p_flags(ENDIAN);
        parts.push(Part {
            offset,
            content,
            bytes: header.p_memsz(ENDIAN),
            executable: flags & PF_X != 0,
            writable: flags & PF_W != 0,
            name,
        });
    }
    let base_address =
        base_address.ok_or_else(|| LoadError::Damaged { what: "nothing in it is loaded".into() })?;
    Ok(Layout { image: place(parts)?, base_address, section_offsets: Vec::new() })
}

fn sections(file: &File<'_>) -> Result<Layout, LoadError> {
    let mut section_offsets = vec![None; file.sections.len()];
    let mut parts: Vec<Part<'_>> = Vec::new();
    let mut end = 0u64;
    for ((_, section), place) in file.sections.enumerate().zip(&mut section_offsets) {
        let flags = section.sh_flags(ENDIAN);
        let kind = section.sh_type(ENDIAN);
        let is_loaded = flags & u64::from(SHF_ALLOC) != 0 && matches!(kind, SHT_PROGBITS | SHT_NOBITS);
        if !is_loaded {
            continue;
        }
        let name = file.sections.section_name(ENDIAN, section).map_err(damaged)?;
        let name = String::from_utf8_lossy(name.get(..name.len().min(64)).unwrap_or_default()).into_owned();
        let executable = flags & u64::from(SHF_EXECINSTR) != 0;
        let least = if executable { CODE_ALIGNMENT_BYTES as u64 } else { 1 };
        let alignment = section.sh_addralign(ENDIAN).max(least);
        if !alignment.is_power_of_two() || alignment > IMAGE_ALIGNMENT_BYTES {
            return Err(LoadError::Damaged { what: format!("{name} is aligned to {alignment}") });
        }
        let bytes = section.sh_size(ENDIAN);
        let offset = end.next_multiple_of(alignment); // `end` is at most IMAGE_BYTES_MAX.
        end = offset
            .checked_add(bytes)
            .filter(|end| *end <= IMAGE_BYTES_MAX)
            .ok_or_else(|| too_large(bytes))?;
        *place = Some(offset);
        let content = section.data(ENDIAN, file.bytes).map_err(damaged)?;
        let writable = flags & u64::from(SHF_WRITE) != 0;
        parts.push(Part { name, offset, content, bytes, executable, writable });
    }
    Ok(Layout { image: place(parts)?, base_address: 0, section_offsets })
}
