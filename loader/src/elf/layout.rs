//! The placement of the parts of an ELF file in the image.
//!
//! Contract: segments are copied once, into one allocation within [`IMAGE_BYTES_MAX`] that is at most
//! [`IMAGE_BYTES_BEYOND_FILE`] longer than the file. A linked file keeps its own distances; the sections of an object
//! follow each other at their alignment. What `relocation` writes comes afterwards.

use super::file::{ENDIAN, File, damaged};
use crate::error::LoadError;
use crate::image::{IMAGE_ALIGNMENT_BYTES, IMAGE_BYTES_BEYOND_FILE, IMAGE_BYTES_MAX, Image, Segment, vec_of};
use object::elf::{
    PF_W, PF_X, PT_LOAD, SHF_ALLOC, SHF_EXECINSTR, SHF_WRITE, SHN_ABS, SHN_UNDEF, SHT_NOBITS, SHT_PROGBITS,
    Sym64,
};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use object::{LittleEndian, SymbolIndex};
use zrt_isa::zrt::CODE_ALIGNMENT_BYTES;

/// Longest name of a segment, in bytes; longer ones are cut off.
const SEGMENT_NAME_BYTES_MAX: usize = 64;
/// Most program headers read; linkers write about ten.
const PROGRAM_HEADERS_MAX: usize = 1024;

/// The image and the mapping from the file's addresses into it.
pub(crate) struct Layout {
    pub image: Image,
    /// For linked files: the address that corresponds to offset 0.
    pub base_address: u64,
    /// For objects: the offset of each section that is in the image.
    pub section_offsets: Vec<Option<u64>>,
}

/// A part to be placed.
struct Part<'data> {
    name: String,
    offset: u64,
    /// Bytes from the file; the rest up to `bytes` is zero.
    content: &'data [u8],
    bytes: u64,
    executable: bool,
    writable: bool,
}

impl Layout {
    /// Places everything; relocations are not resolved yet.
    pub fn new(file: &File<'_>) -> Result<Layout, LoadError> {
        if file.is_linked { linked(file) } else { sections(file) }
    }

    /// A symbol's offset in the image; `None` for undefined and absolute symbols, and for those in parts that are
    /// not loaded.
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

    /// Offset of an object's section in the image.
    pub fn section_offset(&self, section: usize) -> Option<u64> {
        self.section_offsets.get(section).copied().flatten()
    }
}

/// Longest image of a file.
fn image_bytes_max(file: &File<'_>) -> u64 {
    IMAGE_BYTES_MAX.min(file.bytes.len() as u64 + IMAGE_BYTES_BEYOND_FILE)
}

fn too_large(bytes: u64, limit: u64) -> LoadError {
    LoadError::TooLarge { what: "the program in memory", bytes, limit }
}

/// Copies the parts, which are in ascending order, into one block.
fn place(parts: Vec<Part<'_>>, limit: u64) -> Result<Image, LoadError> {
    let mut image = Image::default();
    let end = parts.iter().map(|part| part.offset.saturating_add(part.bytes)).max().unwrap_or(0);
    if end > limit {
        return Err(too_large(end, limit));
    }
    image.bytes = vec_of("the program", end as usize)?;
    for part in parts {
        let end = part.offset + part.bytes;
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
    if headers.len() > PROGRAM_HEADERS_MAX {
        let entry_bytes = size_of_val(headers) / headers.len();
        let (bytes, limit) = (size_of_val(headers) as u64, (PROGRAM_HEADERS_MAX * entry_bytes) as u64);
        return Err(LoadError::TooLarge { what: "the program header table", bytes, limit });
    }
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
    Ok(Layout { image: place(parts, image_bytes_max(file))?, base_address, section_offsets: Vec::new() })
}

fn sections(file: &File<'_>) -> Result<Layout, LoadError> {
    let mut section_offsets = vec![None; file.sections.len()];
    let mut parts: Vec<Part<'_>> = Vec::new();
    let (mut end, limit) = (0u64, image_bytes_max(file));
    for ((_, section), place) in file.sections.enumerate().zip(&mut section_offsets) {
        let flags = section.sh_flags(ENDIAN);
        let kind = section.sh_type(ENDIAN);
        let is_loaded = flags & u64::from(SHF_ALLOC) != 0 && matches!(kind, SHT_PROGBITS | SHT_NOBITS);
        if !is_loaded {
            continue;
        }
        let name = file.section_name(section, SEGMENT_NAME_BYTES_MAX);
        let name = String::from_utf8_lossy(name).into_owned();
        let executable = flags & u64::from(SHF_EXECINSTR) != 0;
        let least = if executable { CODE_ALIGNMENT_BYTES as u64 } else { 1 };
        let alignment = section.sh_addralign(ENDIAN).max(least);
        if !alignment.is_power_of_two() || alignment > IMAGE_ALIGNMENT_BYTES {
            return Err(LoadError::Damaged { what: format!("{name} is aligned to {alignment}") });
        }
        let bytes = section.sh_size(ENDIAN);
        let offset = end.next_multiple_of(alignment); // `end` is at most `limit`.
        end = offset.saturating_add(bytes);
        if end > limit {
            return Err(too_large(end, limit));
        }
        *place = Some(offset);
        let content = section.data(ENDIAN, file.bytes).map_err(damaged)?;
        let writable = flags & u64::from(SHF_WRITE) != 0;
        parts.push(Part { name, offset, content, bytes, executable, writable });
    }
    Ok(Layout { image: place(parts, limit)?, base_address: 0, section_offsets })
}
