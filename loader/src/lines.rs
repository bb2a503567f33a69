//! Source lines of machine code.
//!
//! Contract: rows in ascending order of offset; a row holds until the next one. A lookup is a binary search.

/// Most rows of line 0 in a row that a lookup passes by; compilers write one or two.
const OWN_ROWS_MAX: usize = 64;

/// A program's line table; empty where the file has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineTable {
    files: Vec<String>,
    rows: Vec<LineRow>,
}

/// From `offset` on, until the next row, the code comes from this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// Bytes from the image's start.
    pub offset: u64,
    /// Index into the files; [`LineRow::NONE`] where a sequence ends.
    pub file: u32,
    /// Line, from 1; 0 where the code comes from no line.
    pub line: u32,
}

impl LineRow {
    /// File index of a row that only ends the row before it.
    pub const NONE: u32 = u32::MAX;
}

impl LineRow {
    /// Whether the code comes from a file and from no line of it.
    fn is_own(&self) -> bool {
        self.file != LineRow::NONE && self.line == 0
    }
}

impl LineTable {
    /// Sorts the rows. Of several rows for one offset the last counts, but an end never hides a beginning.
    pub fn new(files: Vec<String>, mut rows: Vec<LineRow>) -> LineTable {
        // Stable, ends first: the last of equal offsets is then a beginning where there is one.
        rows.sort_by_key(|row| (row.offset, row.file != LineRow::NONE));
        rows.dedup_by(|row, last| {
            let is_same = row.offset == last.offset;
            if is_same {
                *last = *row;
            }
            is_same
        });
        LineTable { files, rows }
    }

    /// File and line of the instruction at `offset` (bytes from the image's start), where known. Code of line 0, which is the
    /// compiler's own, counts to the line before it.
    pub fn lookup(&self, offset: u64) -> Option<(&str, u32)> {
        let after = self.rows.partition_point(|row| row.offset <= offset);
        let before = self.rows[..after].iter().rev().take(OWN_ROWS_MAX);
        let row = before.into_iter().find(|row| !row.is_own())?;
        Some((self.files.get(row.file as usize)?, row.line))
    }

    /// The rows, those of line 0 with the line before them, as [`LineTable::lookup`] has it.
    pub fn continued(&self) -> impl Iterator<Item = LineRow> + '_ {
        let mut last = LineRow { offset: 0, file: LineRow::NONE, line: 0 };
        self.rows.iter().map(move |row| {
            if !row.is_own() {
                last = *row;
            }
            LineRow { offset: row.offset, ..last }
        })
    }

    /// The files.
    pub fn files(&self) -> &[String] {
        &self.files
    }

    /// The rows.
    pub fn rows(&self) -> &[LineRow] {
        &self.rows
    }

    /// True where nothing is known.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_until_the_next() {
        let row = |offset, file, line| LineRow { offset, file, line };
        let rows = vec![
            row(0x20, 1, 9),
            row(0x10, 0, 4),
            row(0x10, 0, 5),
            row(0x18, 0, 0),
            row(0x20, LineRow::NONE, 0),
            row(0x30, LineRow::NONE, 0),
            row(0x34, 1, 0),
            row(0x38, 1, 12),
        ];
        let table = LineTable::new(vec!["a.c".into(), "b.c".into()], rows);
        assert_eq!(table.lookup(0xF), None);
        assert_eq!(table.lookup(0x10), Some(("a.c", 5)));
        assert_eq!(table.lookup(0x17), Some(("a.c", 5)));
        assert_eq!(table.lookup(0x18), Some(("a.c", 5)), "line 0 is the compiler's own");
        assert_eq!(table.lookup(0x2F), Some(("b.c", 9)));
        assert_eq!((table.lookup(0x30), table.lookup(0x34)), (None, None), "nothing goes on before it");
        assert_eq!(table.lookup(0x38), Some(("b.c", 12)));
        for row in table.continued() {
            let known = table.files().get(row.file as usize).filter(|_| row.line != 0);
            assert_eq!(table.lookup(row.offset), known.map(|file| (file.as_str(), row.line)), "{row:?}");
        }
    }
}
