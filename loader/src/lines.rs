//! Source lines of machine code.
//!
//! Contract: rows are in ascending order of offset; a row applies up to the next one. Compiler-generated code,
//! which has line 0, counts as part of the line before it, or of none if nothing precedes it. A lookup is a binary
//! search.

/// A program's line table; empty if the file has none.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineTable {
    files: Vec<String>,
    rows: Vec<LineRow>,
}

/// From `offset` up to the next row, the code comes from this line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineRow {
    /// Bytes from the image's start.
    pub offset: u64,
    /// Index into the files; [`LineRow::NONE`] if a sequence ends here.
    pub file: u32,
    /// Line, from 1; 0 if the code comes from no line. No row of a [`LineTable`] has line 0 of a file.
    pub line: u32,
}

impl LineRow {
    /// File index of a row that only ends the row before it.
    pub const NONE: u32 = u32::MAX;
}

impl LineRow {
    /// Whether the code is compiler-generated: it belongs to a file but to no line of it.
    fn is_own(&self) -> bool {
        self.file != LineRow::NONE && self.line == 0
    }

    fn is_end(&self) -> bool {
        self.file == LineRow::NONE
    }

    /// Of two rows for one offset, whether this later one counts: an end hides no beginning, and a row of line 0, which
    /// is left out, hides no end.
    pub(crate) fn replaces(&self, before: &LineRow) -> bool {
        match (self.is_end(), before.is_end()) {
            (true, before_is_end) => before_is_end,
            (false, true) => !self.is_own(),
            (false, false) => true,
        }
    }
}

impl LineTable {
    /// Sorts the rows. Of several rows for one offset the last counts, but an end never hides a beginning. A row of
    /// line 0 is left out, so that the row or the end before it continues.
    pub fn new(files: Vec<String>, mut rows: Vec<LineRow>) -> LineTable {
        // Stable, ends first: the last of equal offsets is then a beginning if there is one.
        rows.sort_by_key(|row| (row.offset, row.file != LineRow::NONE));
        rows.dedup_by(|row, last| {
            let is_same = row.offset == last.offset;
            if is_same && row.replaces(last) {
                *last = *row;
            }
            is_same
        });
        rows.retain(|row| !row.is_own());
        LineTable { files, rows }
    }

    /// File and line of the instruction at `offset` (bytes from the image's start), if known.
    pub fn lookup(&self, offset: u64) -> Option<(&str, u32)> {
        let after = self.rows.partition_point(|row| row.offset <= offset);
        let row = self.rows[..after].last()?;
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

    /// True if the table has no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_two_rows_for_one_offset_the_later_counts_unless_it_hides_a_beginning_or_an_end() {
        let [end, own, real] =
            [(LineRow::NONE, 0), (1, 0), (1, 7)].map(|(file, line)| LineRow { offset: 4, file, line });
        let later = |row: LineRow| [end, own, real].map(|before| row.replaces(&before));
        assert_eq!(later(end), [true, false, false]);
        assert_eq!(later(own), [false, true, true]);
        assert_eq!(later(real), [true, true, true]);
    }

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
        assert!(!table.is_empty());
        assert!(LineTable::default().is_empty());
        assert_eq!(table.lookup(0xF), None);
        assert_eq!(table.lookup(0x10), Some(("a.c", 5)));
        assert_eq!(table.lookup(0x17), Some(("a.c", 5)));
        assert_eq!(table.lookup(0x18), Some(("a.c", 5)), "line 0 is the compiler's own");
        assert_eq!(table.lookup(0x2F), Some(("b.c", 9)));
        assert_eq!((table.lookup(0x30), table.lookup(0x34)), (None, None), "nothing goes on before it");
        assert_eq!(table.lookup(0x38), Some(("b.c", 12)));
        for row in table.rows() {
            let known = table.files().get(row.file as usize).filter(|_| row.line != 0);
            assert_eq!(table.lookup(row.offset), known.map(|file| (file.as_str(), row.line)), "{row:?}");
        }
    }

    /// A function's line does not continue into the next function, whose first code is compiler-generated.
    #[test]
    fn a_row_of_line_zero_does_not_hide_the_end_at_its_offset() {
        let row = |offset, file, line| LineRow { offset, file, line };
        let rows = vec![row(0, 0, 5), row(0x20, LineRow::NONE, 0), row(0x20, 1, 0), row(0x28, 1, 9)];
        let table = LineTable::new(vec!["a.c".into(), "b.c".into()], rows);
        assert_eq!((table.lookup(0x1f), table.lookup(0x28)), (Some(("a.c", 5)), Some(("b.c", 9))));
        assert_eq!((table.lookup(0x20), table.lookup(0x24)), (None, None));
    }

    /// Any number of consecutive compiler-generated rows.
    #[test]
    fn any_number_of_rows_of_line_zero_is_passed_by() {
        let own = (1..1000).map(|index| LineRow { offset: 4 * index, file: 0, line: 0 });
        let rows = std::iter::once(LineRow { offset: 0, file: 0, line: 7 }).chain(own);
        let table = LineTable::new(vec!["a.c".into()], rows.collect());
        for offset in [0, 4 * 63, 4 * 64, 4 * 65, 4 * 999, u64::MAX] {
            assert_eq!(table.lookup(offset), Some(("a.c", 7)), "{offset}");
        }
    }
}
