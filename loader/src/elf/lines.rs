//! DWARF line tables: `.debug_line` of versions 2 to 5.
//!
//! Contract: an unreadable table is no error, because lines are a convenience. At most [`ROWS_MAX`] rows are kept,
//! one for each [`FILE_BYTES_PER_ROW`] of the file and [`ROWS_FREE`] more; and at most [`FILES_MAX`] files, of
//! [`PATHS_BYTES_MAX`] in all. The rest is left out. Units are read sequentially, so the cost is proportional to
//! the section's length. Compressed sections are left out, and never inflated.

use super::file::{ENDIAN, File};
use super::layout::Layout;
use super::line_unit::{self, Name, Row, Slice, Text, Unit};
use super::relocation::{Budget, kind};
use crate::error::LoadError;
use crate::image::vec_of;
use crate::lines::{LineRow, LineTable};
use gimli::{EndianSlice, LittleEndian};
use object::SymbolIndex;
use object::elf::SHF_COMPRESSED;
use object::read::elf::{Rela, SectionHeader};
use std::borrow::Cow;
use std::collections::HashMap;

/// Most rows that are kept.
const ROWS_MAX: usize = 1 << 22;
/// A row stands for an instruction of at least four bytes and takes further bytes of the table; not every
/// instruction has a row.
const FILE_BYTES_PER_ROW: usize = 8;
/// Rows that every file may have.
const ROWS_FREE: usize = 1 << 16;
/// Most files that are kept, and most files of one unit.
const FILES_MAX: usize = 1 << 14;
/// Longest name of a file or folder, and the sum of the paths that are kept, in bytes.
const NAME_BYTES_MAX: usize = 2048;
const PATHS_BYTES_MAX: usize = 2 << 20;
/// Most bytes of names that are read for paths, including paths that turn out to be known already and names that turn
/// out to be none.
const NAMES_READ_BYTES_MAX: usize = 64 << 20;

/// Reads the line table; empty if there is none or it is malformed.
pub(crate) fn read(file: &File<'_>, layout: &Layout, budget: &mut Budget) -> Result<LineTable, LoadError> {
    let mut section = |name: &str| section(file, layout, budget, name);
    let (line, line_strings) = (section(".debug_line")?, section(".debug_line_str")?);
    let strings = section(".debug_str")?;
    let rows_max = ROWS_MAX.min(file.bytes.len() / FILE_BYTES_PER_ROW + ROWS_FREE);
    let mut table = Builder {
        line_strings: &line_strings,
        strings: &strings,
        base_address: layout.base_address,
        image_bytes: layout.image.bytes.len() as u64,
        // A row takes at least one byte of the program.
        rows: vec_of("the line table", rows_max.min(line.len()))?,
        rows_max,
        folders: Vec::new(),
        names: Vec::new(),
        files: Vec::new(),
        by_path: HashMap::new(),
        paths_bytes: 0,
        names_read_bytes: 0,
    };
    let mut rest: Slice<'_> = EndianSlice::new(&line, LittleEndian);
    while let Some(unit) = line_unit::next(&mut rest) {
        if let Some(unit) = unit {
            table.unit(&unit);
        }
    }
    table.rows.shrink_to_fit();
    Ok(LineTable::new(table.files, table.rows))
}

/// A file of the current unit.
#[derive(Clone, Copy)]
struct UnitFile<'data> {
    name: Name<'data>,
    /// Its index in the table, once it has been looked up; [`LineRow::NONE`] if it has none.
    index: Option<u32>,
}

struct Builder<'data> {
    line_strings: &'data [u8],
    strings: &'data [u8],
    base_address: u64,
    image_bytes: u64,
    rows_max: usize,
    rows: Vec<LineRow>,
    /// Folders and files of the current unit.
    folders: Vec<Text<'data>>,
    names: Vec<UnitFile<'data>>,
    files: Vec<String>,
    by_path: HashMap<String, u32>,
    paths_bytes: usize,
    names_read_bytes: usize,
}

impl<'data> Builder<'data> {
    /// Appends the rows of a unit.
    fn unit(&mut self, unit: &Unit<'data>) {
        let (mut folders, mut names) = (std::mem::take(&mut self.folders), std::mem::take(&mut self.names));
        folders.clear();
        names.clear();
        let tables = unit.names(
            |folder| {
                if folders.len() < FILES_MAX {
                    folders.push(folder);
                }
            },
            |name| {
                if names.len() < FILES_MAX {
                    names.push(UnitFile { name, index: None });
                }
            },
        );
        (self.folders, self.names) = (folders, names);
        if tables.is_some() {
            unit.rows(|row| self.row(unit, row));
        }
    }

    /// Adds a row; returns false if there is no space for further rows. Of several rows for one offset the last
    /// counts, and an end never hides a beginning.
    fn row(&mut self, unit: &Unit<'data>, row: Row) -> bool {
        let Some(offset) = row.address.checked_sub(self.base_address) else { return true };
        if offset > self.image_bytes {
            return true;
        }
        let row = match row.is_end {
            true => LineRow { offset, file: LineRow::NONE, line: 0 },
            false => {
                let line = u32::try_from(row.line).unwrap_or(0);
                LineRow { offset, file: self.file(unit, row.file), line }
            }
        };
        let has_room = self.rows.len() < self.rows_max;
        match self.rows.last_mut() {
            Some(last) if last.offset == offset => {
                if row.replaces(last) {
                    *last = row;
                }
                true
            }
            _ => {
                if has_room {
                    self.rows.push(row);
                }
                has_room
            }
        }
    }

    /// Index of a file of the current unit; [`LineRow::NONE`] if it has none.
    fn file(&mut self, unit: &Unit<'data>, number: u64) -> u32 {
        let first = u64::from(!unit.counts_from_zero());
        let at = number.checked_sub(first).and_then(|index| usize::try_from(index).ok());
        let Some((at, file)) = at.and_then(|at| Some((at, *self.names.get(at)?))) else {
            return LineRow::NONE;
        };
        if let Some(index) = file.index {
            return index;
        }
        let index = self.path(unit, file.name).and_then(|path| self.index(path)).unwrap_or(LineRow::NONE);
        self.names[at].index = Some(index);
        index
    }

    /// The path of a file; includes its folder if that is not the unit's own.
    fn path(&mut self, unit: &Unit<'data>, file: Name<'data>) -> Option<String> {
        if self.names_read_bytes > NAMES_READ_BYTES_MAX {
            return None;
        }
        let name = self.text(file.text)?;
        let folder = match file.directory {
            0 => None,
            _ if name.starts_with(b"/") => None,
            number => {
                let index = number - u64::from(!unit.counts_from_zero());
                let folder = self.folders.get(usize::try_from(index).ok()?).copied();
                folder.and_then(|folder| self.text(folder))
            }
        };
        let name = String::from_utf8_lossy(name);
        Some(match folder.map(String::from_utf8_lossy) {
            Some(folder) => format!("{folder}/{name}"),
            None => name.into_owned(),
        })
    }

    /// A name's bytes; `None` if it is too long or its location is invalid. What was looked at for its end counts even
    /// so.
    fn text(&mut self, text: Text<'data>) -> Option<&'data [u8]> {
        let (strings, offset) = match text {
            Text::Inline(text) => {
                let text = Some(text).filter(|text| text.len() <= NAME_BYTES_MAX)?;
                self.names_read_bytes += text.len();
                return Some(text);
            }
            Text::LineStrings(offset) => (self.line_strings, offset),
            Text::Strings(offset) => (self.strings, offset),
            Text::Unknown => return None,
        };
        let rest = strings.get(offset as usize..)?;
        let reach = rest.get(..rest.len().min(NAME_BYTES_MAX + 1))?;
        let text = reach.split(|byte| *byte == 0).next()?;
        self.names_read_bytes += text.len();
        Some(text).filter(|text| text.len() < reach.len())
    }

    /// The index of a path, which is added if it is new and there is space.
    fn index(&mut self, path: String) -> Option<u32> {
        if let Some(file) = self.by_path.get(&path) {
            return Some(*file);
        }
        if self.files.len() == FILES_MAX || self.paths_bytes + path.len() > PATHS_BYTES_MAX {
            return None;
        }
        let file = self.files.len() as u32; // At most FILES_MAX.
        self.paths_bytes += path.len();
        self.files.push(path.clone());
        self.by_path.insert(path, file);
        Some(file)
    }
}

/// A section's bytes, with its relocations applied if the file is not linked; empty if it cannot be read.
fn section<'data>(
    file: &File<'data>,
    layout: &Layout,
    budget: &mut Budget,
    name: &str,
) -> Result<Cow<'data, [u8]>, LoadError> {
    let Some((index, section)) = file.section_by_name(name) else { return Ok(Cow::default()) };
    if section.sh_flags(ENDIAN) & u64::from(SHF_COMPRESSED) != 0 {
        return Ok(Cow::default());
    }
    let Ok(bytes) = section.data(ENDIAN, file.bytes) else { return Ok(Cow::default()) };
    let mut changed = Cow::Borrowed(bytes);
    if file.is_linked {
        return Ok(changed);
    }
    for relocations in file.sections.iter().filter(|section| section.sh_info(ENDIAN) as usize == index) {
        let Ok(Some((list, _))) = relocations.rela(ENDIAN, file.bytes) else { continue };
        if list.is_empty() {
            continue;
        }
        budget.take(list.len())?;
        if matches!(changed, Cow::Borrowed(_)) {
            let mut copy = vec_of("a debug section", bytes.len())?;
            copy.extend_from_slice(bytes);
            changed = Cow::Owned(copy);
        }
        if relocate(file, layout, changed.to_mut(), list).is_none() {
            return Ok(Cow::default());
        }
    }
    Ok(changed)
}

/// Applies relocations to a section that is not loaded; `None` if one is malformed.
fn relocate(
    file: &File<'_>,
    layout: &Layout,
    section: &mut [u8],
    list: &[object::elf::Rela64<object::LittleEndian>],
) -> Option<()> {
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
        let place = section.get_mut(start..start.checked_add(bytes)?)?;
        place.copy_from_slice(value.get(..bytes)?);
    }
    Some(())
}
