//! Source lines of code, shared by all sections of a file.
//!
//! Contract: the rows are in ascending order of offset, and stand once in memory, however many sections look at them. A
//! look-up is a binary search.

use super::names::Name;
use std::collections::HashMap;
use std::sync::Arc;
use zrt_loader::{LineRow, Program};

#[derive(Debug, PartialEq, Eq)]
struct Table {
    files: Vec<Name>,
    rows: Vec<LineRow>,
}

/// The source lines of a section: rows of a table, from an offset on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLines {
    table: Arc<Table>,
    /// Where the section begins, in the offsets of the rows.
    start: u64,
}

impl SourceLines {
    /// A table of rows in ascending order, of a section that begins at offset 0. A row that names no file ends the one
    /// before it.
    pub fn new(files: Vec<Name>, rows: Vec<LineRow>) -> SourceLines {
        SourceLines { table: Arc::new(Table { files, rows }), start: 0 }
    }

    /// File and line of a dword: those of the last row that begins at it or before it in the section.
    pub fn find(&self, dword: usize) -> Option<(&Name, u32)> {
        let end = self.start.saturating_add(dword as u64 * 4).saturating_add(4);
        let after = self.table.rows.partition_point(|row| row.offset < end);
        let row = self.table.rows.get(after.checked_sub(1)?).filter(|row| row.offset >= self.start)?;
        Some((self.table.files.get(row.file as usize)?, row.line))
    }
}

/// What the loader knows of a file's lines, and where its kernels lie among them.
pub(super) struct LoadedLines {
    lines: SourceLines,
    kernels: HashMap<String, u64>,
}

impl LoadedLines {
    /// Reads them; `None` if there are none. A program that cannot be launched can still be listed; it has no lines
    /// then. Nothing else of the program is kept.
    pub fn read(bytes: &[u8]) -> Option<LoadedLines> {
        let program = Program::parse(bytes).ok().filter(|program| !program.lines().is_empty())?;
        let files = program.lines().files().iter().map(|file| Name::from(file.as_str())).collect();
        let lines = SourceLines::new(files, program.lines().rows().to_vec());
        let kernels = program.kernels().iter().map(|kernel| (kernel.name.clone(), kernel.entry_offset));
        Some(LoadedLines { lines, kernels: kernels.collect() })
    }

    /// The lines of a section: one of its kernels, each with the dword of its entry, says where the section lies among
    /// the rows.
    pub fn of_section<'a>(&self, mut kernels: impl Iterator<Item = (&'a str, usize)>) -> Option<SourceLines> {
        let start = kernels
            .find_map(|(name, dword)| self.kernels.get(name).copied()?.checked_sub(dword as u64 * 4))?;
        Some(SourceLines { start, ..self.lines.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(offset: u64, file: u32, line: u32) -> LineRow {
        LineRow { offset, file, line }
    }

    /// Rows before a section are not its own; those within a dword are the dword's.
    #[test]
    fn a_section_has_the_rows_from_its_start_on() {
        let rows = vec![row(4, 0, 1), row(10, 0, 2), row(14, 0, 3), row(15, 0, 4), row(20, LineRow::NONE, 0)];
        let whole = SourceLines::new(vec!["k.c".into()], rows);
        let found = |lines: &SourceLines| [0, 1, 2, 3, 4, 5].map(|at| lines.find(at).map(|(_, line)| line));
        assert_eq!(found(&whole), [None, Some(1), Some(2), Some(4), Some(4), None]);
        let part = |start| SourceLines { start, ..whole.clone() };
        assert_eq!(found(&part(8)), [Some(2), Some(4), Some(4), None, None, None]);
        assert_eq!(found(&part(12))[..3], [Some(4), Some(4), None]);
        assert_eq!(found(&part(u64::MAX)), [None; 6]);
    }

    #[test]
    fn a_kernel_says_where_its_section_lies() {
        let lines = SourceLines::new(vec!["k.c".into()], vec![row(0x100, 0, 7)]);
        let loaded = LoadedLines { lines, kernels: HashMap::from([("k".to_owned(), 0x108)]) };
        let start = |kernels: &[(&'static str, usize)]| {
            loaded.of_section(kernels.iter().copied()).map(|lines| lines.start)
        };
        assert_eq!(start(&[("k", 2)]), Some(0x100));
        assert_eq!(start(&[("other", 1), ("k", 0)]), Some(0x108));
        // A kernel that lies before its own section says nothing.
        assert_eq!((start(&[("k", 0x43)]), start(&[("other", 1)]), start(&[])), (None, None, None));
    }
}
