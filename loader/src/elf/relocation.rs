//! Relocations: those that can be resolved inside the image are resolved, addresses become base relocations, the
//! rest is refused.
//!
//! Contract: every write lies inside the image. At most as many relocations are read as the file has bytes for,
//! even if several sections name the same bytes. Source: LLVM's "User Guide for AMDGPU Backend", relocation
//! records.

use super::file::{ENDIAN, File, Header, damaged};
use super::layout::Layout;
use crate::error::LoadError;
use crate::image::BaseRelocation;
use object::elf::{Rela64, SHF_ALLOC, SHN_ABS, SHT_REL, SHT_RELA};
use object::read::elf::{Rela, SectionHeader, Sym, SymbolTable};
use object::{LittleEndian, SectionIndex, SymbolIndex};

/// Numbers of the relocations, by their names in the documentation.
pub(crate) mod kind {
    pub const NONE: u32 = 0;
    pub const ABS32_LO: u32 = 1;
    pub const ABS32_HI: u32 = 2;
    pub const ABS64: u32 = 3;
    pub const REL32: u32 = 4;
    pub const REL64: u32 = 5;
    pub const ABS32: u32 = 6;
    pub const REL32_LO: u32 = 10;
    pub const REL32_HI: u32 = 11;
    pub const RELATIVE64: u32 = 13;
    pub const REL16: u32 = 14;

    /// The name for a report.
    pub fn name(kind: u32) -> String {
        const NAMES: [&str; 15] = [
            "NONE",
            "ABS32_LO",
            "ABS32_HI",
            "ABS64",
            "REL32",
            "REL64",
            "ABS32",
            "GOTPCREL",
            "GOTPCREL32_LO",
            "GOTPCREL32_HI",
            "REL32_LO",
            "REL32_HI",
            "12",
            "RELATIVE64",
            "REL16",
        ];
        match NAMES.get(kind as usize) {
            Some(name) => format!("R_AMDGPU_{name}"),
            None => format!("number {kind}"),
        }
    }
}

/// What a relocation refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// Offset from the image's start.
    Image(u64),
    /// An absolute number.
    Absolute(u64),
}

/// The value to write.
enum Value {
    Bits16(u16),
    Bits32(u32),
    Bits64(u64),
    /// Offset from the image's start, to be added to its address.
    Address(u64),
}

/// How many more relocations may be read: as many as the file has bytes for.
pub(crate) struct Budget {
    left: usize,
    limit: usize,
}

impl Budget {
    pub fn new(file_bytes: usize) -> Budget {
        let limit = file_bytes / size_of::<Rela64<LittleEndian>>();
        Budget { left: limit, limit }
    }

    /// Uses up `count` of them.
    pub fn take(&mut self, count: usize) -> Result<(), LoadError> {
        let entry_bytes = size_of::<Rela64<LittleEndian>>();
        let wanted = self.limit - self.left + count;
        self.left = self.left.checked_sub(count).ok_or(LoadError::TooLarge {
            what: "the list of relocations",
            bytes: (wanted * entry_bytes) as u64,
            limit: (self.limit * entry_bytes) as u64,
        })?;
        Ok(())
    }
}

/// Resolves all relocations of the image.
pub(crate) fn apply(file: &File<'_>, layout: &mut Layout, budget: &mut Budget) -> Result<(), LoadError> {
    for section in file.sections.iter() {
        let base = match place_of(file, layout, section) {
            Some(base) => base,
            None => continue,
        };
        if section.sh_type(ENDIAN) == SHT_REL {
            return Err(LoadError::Damaged { what: "it has relocations without addends".into() });
        }
        let Some((list, link)) = section.rela(ENDIAN, file.bytes).map_err(damaged)? else { continue };
        if list.is_empty() {
            continue;
        }
        budget.take(list.len())?;
        let symbols = table(file, link)?;
        for relocation in list {
            one(file, layout, &symbols, section, base, relocation)?;
        }
    }
    layout.image.base_relocations.sort_by_key(|relocation| relocation.offset);
    let mut pairs = layout.image.base_relocations.windows(2);
    if pairs.any(|pair| matches!(pair, [first, second] if second.offset - first.offset < 8)) {
        return Err(LoadError::Damaged { what: "two of its relocations overlap".into() });
    }
    Ok(())
}

/// Origin of the offsets in a relocation section, as an image offset; `None` if it is no such section or applies to
/// a section that is not loaded.
fn place_of(
    file: &File<'_>,
    layout: &Layout,
    section: &object::elf::SectionHeader64<LittleEndian>,
) -> Option<u64> {
    if !matches!(section.sh_type(ENDIAN), SHT_RELA | SHT_REL) {
        return None;
    }
    if file.is_linked {
        let is_loaded = section.sh_flags(ENDIAN) & u64::from(SHF_ALLOC) != 0;
        return is_loaded.then_some(layout.base_address.wrapping_neg());
    }
    layout.section_offset(section.sh_info(ENDIAN) as usize)
}

/// The symbol table that a relocation section refers to; an empty one for index 0.
fn table<'data>(file: &File<'data>, link: SectionIndex) -> Result<SymbolTable<'data, Header>, LoadError> {
    if link.0 == 0 {
        return Ok(SymbolTable::default());
    }
    file.sections.symbol_table_by_index(ENDIAN, file.bytes, link).map_err(damaged)
}

fn one(
    file: &File<'_>,
    layout: &mut Layout,
    symbols: &SymbolTable<'_, Header>,
    section: &object::elf::SectionHeader64<LittleEndian>,
    base: u64,
    relocation: &Rela64<LittleEndian>,
) -> Result<(), LoadError> {
    let number = relocation.r_type(ENDIAN, false);
    let index = SymbolIndex(relocation.r_sym(ENDIAN, false) as usize);
    let place = relocation.r_offset(ENDIAN).wrapping_add(base);
    let refuse = || {
        let symbol = symbols.symbol(index).ok();
        let name = symbol.and_then(|symbol| symbols.symbol_name(ENDIAN, symbol).ok()).unwrap_or_default();
        let of = file.sections.section_name(ENDIAN, section).unwrap_or_default();
        let short = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes.get(..bytes.len().min(256)).unwrap_or_default()).into_owned()
        };
        LoadError::Relocation {
            kind: kind::name(number),
            symbol: short(name),
            section: short(of),
            offset: relocation.r_offset(ENDIAN),
        }
    };
    let addend = relocation.r_addend(ENDIAN);
    let target = match number {
        kind::NONE => return Ok(()),
        // The addend is an address in the file.
        kind::RELATIVE64 => Target::Image((addend as u64).wrapping_sub(layout.base_address)),
        _ => {
            if index.0 == 0 {
                return Err(refuse());
            }
            let symbol = symbols.symbol(index).map_err(damaged)?;
            match layout.symbol_offset(file, index, symbol) {
                Some(offset) => Target::Image(offset.wrapping_add_signed(addend)),
                None if symbol.st_shndx(ENDIAN) == SHN_ABS => {
                    Target::Absolute(symbol.st_value(ENDIAN).wrapping_add_signed(addend))
                }
                None => return Err(refuse()),
            }
        }
    };
    let value = resolve(number, target, place).ok_or_else(refuse)?;
    write(layout, place, value).ok_or_else(|| LoadError::Damaged {
        what: format!("the relocation at {:#x} lies outside of the program", relocation.r_offset(ENDIAN)),
    })
}

/// The value for a place; `None` if it depends on the image's final address without being a whole address.
fn resolve(number: u32, target: Target, place: u64) -> Option<Value> {
    let distance = match target {
        Target::Image(offset) => Some(offset.wrapping_sub(place)),
        Target::Absolute(_) => None,
    };
    let absolute = match target {
        Target::Image(_) => None,
        Target::Absolute(value) => Some(value),
    };
    Some(match number {
        kind::REL64 => Value::Bits64(distance?),
        kind::REL32 | kind::REL32_LO => Value::Bits32(distance? as u32),
        kind::REL32_HI => Value::Bits32((distance? >> 32) as u32),
        // A branch counts dwords from the instruction after it.
        kind::REL16 => Value::Bits16((distance?.wrapping_sub(4) as i64 >> 2) as u16),
        kind::ABS32 | kind::ABS32_LO => Value::Bits32(absolute? as u32),
        kind::ABS32_HI => Value::Bits32((absolute? >> 32) as u32),
        kind::ABS64 | kind::RELATIVE64 => match target {
            Target::Image(offset) => Value::Address(offset),
            Target::Absolute(value) => Value::Bits64(value),
        },
        _ => return None,
    })
}

fn write(layout: &mut Layout, place: u64, value: Value) -> Option<()> {
    let image = &mut layout.image;
    let image_bytes = image.bytes.len() as u64;
    let mut put = |bytes: &[u8]| {
        let start = usize::try_from(place).ok()?;
        image.bytes.get_mut(start..start.checked_add(bytes.len())?)?.copy_from_slice(bytes);
        Some(())
    };
    match value {
        Value::Bits16(value) => put(&value.to_le_bytes()),
        Value::Bits32(value) => put(&value.to_le_bytes()),
        Value::Bits64(value) => put(&value.to_le_bytes()),
        Value::Address(target) => {
            // Holds the offset from the start until the image is placed.
            put(&target.to_le_bytes())?;
            if target > image_bytes {
                return None;
            }
            image.base_relocations.push(BaseRelocation { offset: place, target });
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(number: u32, target: Target) -> Option<u64> {
        Some(match resolve(number, target, 0x1000)? {
            Value::Bits16(value) => value.into(),
            Value::Bits32(value) => value.into(),
            Value::Bits64(value) | Value::Address(value) => value,
        })
    }

    #[test]
    fn formulas_are_the_documented_ones() {
        let image = Target::Image(0xFF0);
        let absolute = Target::Absolute(0x1_2345_6789);
        assert_eq!(bits(kind::REL64, image), Some((-16i64) as u64));
        assert_eq!(bits(kind::REL32_LO, image), Some(0xFFFF_FFF0));
        assert_eq!(bits(kind::REL32_HI, image), Some(0xFFFF_FFFF));
        assert_eq!(bits(kind::REL16, image), Some(0xFFFB), "five dwords back from the next instruction");
        assert_eq!(bits(kind::ABS64, image), Some(0xFF0));
        assert_eq!(bits(kind::ABS32_LO, absolute), Some(0x2345_6789));
        assert_eq!(bits(kind::ABS32_HI, absolute), Some(1));
        assert_eq!(bits(kind::ABS64, absolute), Some(0x1_2345_6789));
        for refused in [kind::ABS32_LO, kind::ABS32_HI, kind::ABS32, 7, 8, 9, 12, 99] {
            assert_eq!(bits(refused, image), None, "{}", kind::name(refused));
        }
        assert_eq!(bits(kind::REL32, absolute), None);
    }

    /// A relocation has 24 bytes: a file of 100 bytes has space for four.
    #[test]
    fn as_many_are_read_as_the_file_has_bytes_for() {
        let mut budget = Budget::new(100);
        assert_eq!(budget.take(3), Ok(()));
        let what = "the list of relocations";
        assert_eq!(budget.take(2), Err(LoadError::TooLarge { what, bytes: 120, limit: 96 }));
    }

    #[test]
    fn what_the_budget_grants_may_be_used_up() {
        let mut budget = Budget::new(96);
        assert_eq!(budget.take(4), Ok(()));
        assert_eq!(budget.take(0), Ok(()));
        let what = "the list of relocations";
        assert_eq!(budget.take(1), Err(LoadError::TooLarge { what, bytes: 120, limit: 96 }));
    }
}
