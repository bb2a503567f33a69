//! DWARF line tables: `.debug_line` of versions 2 to 5.
//!
//! Contract: a table that cannot be read is no error: lines are a convenience. At most [`ROWS_MAX`] rows and
//! [`FILES_MAX`] files are kept. Units are read one behind the other, so that the cost follows the section's length.

use super::layout::Layout;
use super::relocation::kind;
use super::{ENDIAN, File};
use crate::lines::{LineRow, LineTable};
use gimli::{
    AttributeValue, DebugLine, DebugLineOffset, DebugLineStr, DebugStr, Dwarf, EndianSlice, LineProgramHeader,
};
use object::SymbolIndex;
use object::elf::SHF_COMPRESSED;
use object::read::elf::{Rela, SectionHeader};
use std::borrow::Cow;
use std::collections::HashMap;

/// Most rows that are kept.
const ROWS_MAX: usize = 1 << 22;
/// Most files that are kept, and the longest path in bytes.
const FILES_MAX: usize = 1 << 14;
const PATH_BYTES_MAX: usize = 4096;
/// Length of a unit's length field in the 32-bit format, which is the only one that is read.
const LENGTH_FIELD_BYTES: usize = 4;

type Slice<'data> = EndianSlice<'data, gimli::LittleEndian>;

/// Reads the line table; empty where there is none or it is malformed.
pub(crate) fn read(file: &File<'_>, layout: &Layout) -> LineTable {
    let section = |name: &str| section(file, layout, name).unwrap_or_default();
    let (line, line_str, str) = (section(".debug_line"), section(".debug_line_str"), section(".debug_str"));
    let dwarf = Dwarf {
        debug_line: DebugLine::new(&line, gimli::LittleEndian),
        debug_line_str: DebugLineStr::from(EndianSlice::new(&line_str, gimli::LittleEndian)),
        debug_str: DebugStr::new(&str, gimli::LittleEndian),
        ..Dwarf::default()
    };
    let mut table = Builder { dwarf, base_address: layout.base_address, ..Builder::default() };
    let mut offset = 0;
    while let Some(length) = table.unit(offset) {
        offset += length;
    }
    LineTable::new(table.files, table.rows)
}

#[derive(Default)]
struct Builder<'data> {
    dwarf: Dwarf<Slice<'data>>,
    base_address: u64,
    files: Vec<String>,
    rows: Vec<LineRow>,
    by_path: HashMap<String, u32>,
}

impl<'data> Builder<'data> {
    /// The text of a name, which stands in the table or in a section of strings.
    fn text(&self, value: AttributeValue<Slice<'data>>) -> Option<Slice<'data>> {
        match value {
            AttributeValue::String(text) => Some(text),
            AttributeValue::DebugLineStrRef(offset) => self.dwarf.debug_line_str.get_str(offset).ok(),
            AttributeValue::DebugStrRef(offset) => self.dwarf.debug_str.get_str(offset).ok(),
            _ => None,
        }
    }

    /// Reads the unit at an offset; its length, or `None` where the table ends or goes wrong.
    fn unit(&mut self, offset: usize) -> Option<usize> {
        const ADDRESS_BYTES: u8 = 8;
        let program =
            self.dwarf.debug_line.program(DebugLineOffset(offset), ADDRESS_BYTES, None, None).ok()?;
        let length = program.header().unit_length();
        if program.header().format() != gimli::Format::Dwarf32 || length == 0 {
            return None;
        }
        let mut known: HashMap<u64, u32> = HashMap::new();
        let mut rows = program.rows();
        // A program that goes wrong keeps the rows before.
        while let Ok(Some((header, row))) = rows.next_row() {
            if self.rows.len() == ROWS_MAX {
                return None;
            }
            let Some(offset) = row.address().checked_sub(self.base_address) else { continue };
            if row.end_sequence() {
                self.rows.push(LineRow { offset, file: LineRow::NONE, line: 0 });
                continue;
            }
            let number = row.file_index();
            let file = match known.get(&number) {
                Some(file) => *file,
                None => {
                    let file = self.file(header, number).unwrap_or(LineRow::NONE);
                    known.insert(number, file);
                    file
                }
            };
            let line = row.line().map_or(0, |line| u32::try_from(line.get()).unwrap_or(0));
            self.rows.push(LineRow { offset, file, line });
        }
        length.checked_add(LENGTH_FIELD_BYTES)
    }

    /// Index of a file of a unit; its folder is written where it is not the unit's own.
    fn file(&mut self, header: &LineProgramHeader<Slice<'data>>, number: u64) -> Option<u32> {
        let entry = header.file(number)?;
        let text = |value| Some(self.text(value)?.to_string_lossy().into_owned());
        let name = text(entry.path_name())?;
        let path = match entry.directory_index() {
            0 => name,
            _ if name.starts_with('/') => name,
            _ => match entry.directory(header).and_then(text) {
                Some(folder) => format!("{folder}/{name}"),
                None => name,
            },
        };
        if path.len() > PATH_BYTES_MAX {
            return None;
        }
        if let Some(file) = self.by_path.get(&path) {
            return Some(*file);
        }
        if self.files.len() == FILES_MAX {
            return None;
        }
        let file = self.files.len() as u32; // At most FILES_MAX.
        self.files.push(path.clone());
        self.by_path.insert(path, file);
        Some(file)
    }
}

/// A section's bytes with its relocations applied where the file is not linked.
fn section<'data>(file: &File<'data>, layout: &Layout, name: &str) -> Option<Cow<'data, [u8]>> {
    let (index, section) = file.sections.section_by_name(ENDIAN, name.as_bytes())?;
    if section.sh_flags(ENDIAN) & u64::from(SHF_COMPRESSED) != 0 {
        return None;
    }
    let bytes = section.data(ENDIAN, file.bytes).ok()?;
    if file.is_linked {
        return Some(Cow::Borrowed(bytes));
    }
    let mut changed = Cow::Borrowed(bytes);
    for relocations in file.sections.iter().filter(|section| section.sh_info(ENDIAN) as usize == index.0) {
        let Ok(Some((list, _))) = relocations.rela(ENDIAN, file.bytes) else { continue };
        for relocation in list {
            let symbol_index = SymbolIndex(relocation.r_sym(ENDIAN, false) as usize);
            let symbol = file.symbols.symbol(symbol_index).ok()?;
            // Sections that are not loaded begin at 0.
            let target = layout.symbol_offset(file, symbol_index, symbol).unwrap_or(0);
            let value = target.wrapping_add_signed(relocation.r_addend(ENDIAN)).to_le_bytes();
            let bytes = match relocation.r_type(ENDIAN, false) {
                kind::ABS64 => 8,
                kind::ABS32 => 4,
                _ => continue,
            };
            let start = usize::try_from(relocation.r_offset(ENDIAN)).ok()?;
            let place = changed.to_mut().get_mut(start..start.checked_add(bytes)?)?;
            place.copy_from_slice(value.get(..bytes)?);
        }
    }
    Some(changed)
}
