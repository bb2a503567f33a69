//! The symbol tables of an ELF file, as far as they name places in code and descriptors of kernels.
//!
//! Contract: names are read where they stand, and counted before anything is kept; a name in code that is too long is
//! an error. A symbol whose name is damaged is passed over. A place costs four bytes here; the order takes n log n.

use super::CodeError;
use super::names::NamesBudget;
use super::sections::CodeSection;
use object::elf::{FileHeader64, STT_FILE, STT_FUNC, STT_GNU_IFUNC, STT_SECTION, STT_TLS, Sym64};
use object::read::elf::{ElfFile64, SectionHeader, Sym, SymbolTable};
use object::{LittleEndian, SymbolIndex};
use std::cmp::Ordering;
use std::collections::HashMap;
use zrt_loader::{SYMBOL_BYTES_MAX, name_at};

/// Suffix of the name of a kernel's descriptor, after the kernel's name.
const DESCRIPTOR_SUFFIX: &str = ".kd";

/// A named place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Symbol<'data> {
    /// Index of its section.
    pub section: usize,
    pub address: u64,
    pub name: &'data str,
    /// Its length; 0 for a label.
    pub bytes: u64,
    pub is_function: bool,
}

struct Table<'data> {
    symbols: &'data SymbolTable<'data, FileHeader64<LittleEndian>>,
    strings: &'data [u8],
}

/// The named places of a file.
pub(super) struct Symbols<'data> {
    /// The symbol table, and the dynamic one, which stripping leaves. Numbers count through both.
    tables: [Table<'data>; 2],
    /// Numbers of the symbols in code, by section, address and name.
    code: Vec<u32>,
    /// Numbers of descriptors by the kernel's name.
    descriptors: HashMap<&'data str, u32>,
}

impl<'data> Symbols<'data> {
    /// Reads the names of the code's places. A file has at most 256 MiB, so that numbers have 32 bits.
    pub fn read(
        file: &'data ElfFile64<'data, LittleEndian>,
        code: &[CodeSection<'_>],
        budget: &mut NamesBudget,
    ) -> Result<Symbols<'data>, CodeError> {
        let tables = [file.elf_symbol_table(), file.elf_dynamic_symbol_table()];
        let tables = tables.map(|symbols| Table { symbols, strings: strings(file, symbols) });
        let mut symbols = Symbols { tables, code: Vec::new(), descriptors: HashMap::new() };
        let count: usize = symbols.tables.iter().map(|table| table.symbols.len()).sum();
        for number in 0..count as u32 {
            let Some((section, address)) = symbols.place(number) else { continue };
            let Some(name) = symbols.name(number).filter(|name| !name.is_empty()) else { continue };
            match code.binary_search_by_key(&section, |one| one.index) {
                Ok(at) if code[at].dword(address).is_none() => {}
                Ok(_) => {
                    budget.take(name, "symbol", number as usize)?;
                    if std::str::from_utf8(name).is_ok() {
                        symbols.code.push(number);
                    }
                }
                Err(_) => symbols.add_descriptor(number, (section, address), name),
            }
        }
        symbols.sort();
        Ok(symbols)
    }

    /// Of several descriptors of one kernel the first in the order of places counts.
    fn add_descriptor(&mut self, number: u32, place: (usize, u64), name: &'data [u8]) {
        let kernel = name.strip_suffix(DESCRIPTOR_SUFFIX.as_bytes()).map(std::str::from_utf8);
        let Some(Ok(kernel)) = kernel else { return };
        let known = self.descriptors.get(kernel).and_then(|known| self.place(*known));
        if known.is_none_or(|known| place < known) {
            self.descriptors.insert(kernel, number);
        }
    }

    /// Puts the code's symbols in order, each once, though both tables have it.
    fn sort(&mut self) {
        let mut code = std::mem::take(&mut self.code);
        code.sort_unstable_by(|one, other| self.order(*one, *other));
        code.dedup_by(|one, before| self.get(*one) == self.get(*before));
        self.code = code;
    }

    /// Names are compared at one place only, since reading one takes time.
    fn order(&self, one: u32, other: u32) -> Ordering {
        let places = self.place(one).cmp(&self.place(other));
        places.then_with(|| self.name(one).cmp(&self.name(other))).then(one.cmp(&other))
    }

    /// Numbers of the symbols in a section with code, by address and name.
    pub fn in_section(&self, section: usize) -> &[u32] {
        let before = |wanted: usize| {
            self.code.partition_point(|number| self.place(*number).is_none_or(|(at, _)| at < wanted))
        };
        self.code.get(before(section)..before(section + 1)).unwrap_or_default()
    }

    /// A symbol in code.
    pub fn get(&self, number: u32) -> Option<Symbol<'data>> {
        let (symbol, ..) = self.entry(number)?;
        let (section, address) = self.place(number)?;
        Some(Symbol {
            section,
            address,
            name: std::str::from_utf8(self.name(number)?).ok()?,
            bytes: symbol.st_size(LittleEndian),
            is_function: matches!(symbol.st_type(), STT_FUNC | STT_GNU_IFUNC),
        })
    }

    /// Section and address of the descriptor of the kernel with a name, if it is a kernel.
    pub fn descriptor(&self, kernel: &str) -> Option<(usize, u64)> {
        self.place(*self.descriptors.get(kernel)?)
    }

    /// Section and address of a symbol, if it names a place.
    pub fn place(&self, number: u32) -> Option<(usize, u64)> {
        let (symbol, index, table) = self.entry(number)?;
        if matches!(symbol.st_type(), STT_SECTION | STT_FILE | STT_TLS) {
            return None;
        }
        let section = table.symbols.symbol_section(LittleEndian, symbol, index).ok()??;
        Some((section.0, symbol.st_value(LittleEndian)))
    }

    /// The bytes of a symbol's name; of a long one, more than a name may have.
    fn name(&self, number: u32) -> Option<&'data [u8]> {
        let (symbol, _, table) = self.entry(number)?;
        name_at(table.strings, symbol.st_name(LittleEndian), SYMBOL_BYTES_MAX + DESCRIPTOR_SUFFIX.len())
    }

    /// The entry of a table, its index there, and the table.
    fn entry(&self, number: u32) -> Option<(&'data Sym64<LittleEndian>, SymbolIndex, &Table<'data>)> {
        let [first, second] = &self.tables;
        let number = number as usize;
        let (table, index) = match number.checked_sub(first.symbols.len()) {
            None => (first, number),
            Some(index) => (second, index),
        };
        let index = SymbolIndex(index);
        Some((table.symbols.symbol(index).ok()?, index, table))
    }
}

/// The strings of a symbol table's names; none if they are damaged.
fn strings<'data>(
    file: &'data ElfFile64<'data, LittleEndian>,
    symbols: &SymbolTable<'data, FileHeader64<LittleEndian>>,
) -> &'data [u8] {
    let section = file.elf_section_table().section(symbols.string_section()).ok();
    section.and_then(|section| section.data(LittleEndian, file.data()).ok()).unwrap_or_default()
}
