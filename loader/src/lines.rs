//! Source lines of machine code.
//!
//! Contract: rows in ascending order of offset; a row holds until the next one. A lookup is a binary search.

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

    /// File and line of the instruction at `offset` (bytes from the image's start), where known.
    pub fn lookup(&self, offset: u64) -> Option<(&str, u32)> {
        let after = self.rows.partition_point(|row| row.offset <= offset);
        let row = self.rows.get(after.checked_sub(1)?)?;
        if row.line == 0 {
            return None;
        }
        Some((self.files.get(row.file as usize)?, row.line))
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
        ];
        let table = LineTable::new(vec!["a.c".into(), "b.c".into()], rows);
        assert_eq!(table.lookup(0xF), None);
        assert_eq!(table.lookup(0x10), Some(("a.c", 5)));
        assert_eq!(table.lookup(0x17), Some(("a.c", 5)));
        assert_eq!(table.lookup(0x18), None);
        assert_eq!(table.lookup(0x2F), Some(("b.c", 9)));
        assert_eq!(table.lookup(0x30), None);
    }
}
