//! Tables as llama-bench prints them: Markdown with padded columns.
//!
//! Contract: pure text; widths count characters, not bytes.

use std::fmt;

/// The side of its column that a cell is aligned to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alignment {
    /// Text.
    Left,
    /// Numbers.
    Right,
}

/// A table under construction.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<(&'static str, Alignment)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table with these headings.
    pub fn new(columns: &[(&'static str, Alignment)]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Appends a row; its length is that of the headings.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a row has one cell per column");
        self.rows.push(cells);
    }

    fn width(&self, column: usize) -> usize {
        let heading = self.columns[column].0.chars().count();
        self.rows.iter().map(|row| row[column].chars().count()).fold(heading, usize::max)
    }
}

fn pad(text: &str, width: usize, alignment: Alignment) -> String {
    match alignment {
        Alignment::Left => format!("{text:<width$}"),
        Alignment::Right => format!("{text:>width$}"),
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |formatter: &mut fmt::Formatter<'_>, cells: Vec<String>| {
            writeln!(formatter, "| {} |", cells.join(" | "))
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(|column| self.width(column)).collect();
        let columns = || self.columns.iter().zip(&widths);
        let headings = columns().map(|((name, side), width)| pad(name, *width, *side));
        line(formatter, headings.collect())?;
        let rules = columns().map(|((_, side), width)| match side {
            Alignment::Left => "-".repeat(*width),
            Alignment::Right => format!("{}:", "-".repeat(width.saturating_sub(1))),
        });
        line(formatter, rules.collect())?;
        for row in &self.rows {
            let cells = row.iter().zip(columns()).map(|(cell, ((_, side), width))| pad(cell, *width, *side));
            line(formatter, cells.collect())?;
        }
        Ok(())
    }
}

/// The cells of the tables in a text, row by row, without what pads them.
#[cfg(test)]
pub(crate) fn cells(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    rows.map(|row| row.split(" | ").map(str::trim).collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// If each cell looked at all rows, this would take minutes.
    #[test]
    fn a_long_table_is_written_in_proportion() {
        let mut table = Table::new(&[("place", Alignment::Left), ("count", Alignment::Right)]);
        (0..100_000).for_each(|index| table.row(vec![format!("k+{index:#x}"), index.to_string()]));
        let text = table.to_string();
        assert_eq!((text.lines().count(), text.len()), (100_002, 100_002 * 22));
    }

    #[test]
    fn columns_are_padded_to_the_widest_cell() {
        let mut table = Table::new(&[("test", Alignment::Left), ("t/s", Alignment::Right)]);
        table.row(vec!["pp512".into(), "1.00 ± 0.50".into()]);
        table.row(vec!["tg".into(), "2".into()]);
        let expected = "\
| test  |         t/s |
| ----- | ----------: |
| pp512 | 1.00 ± 0.50 |
| tg    |           2 |
";
        assert_eq!(table.to_string(), expected);
    }
}
