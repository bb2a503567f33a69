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
        let columns = || self.columns.iter().enumerate();
        let headings = columns().map(|(index, (name, side))| pad(name, self.width(index), *side));
        line(formatter, headings.collect())?;
        let rules = columns().map(|(index, (_, side))| match side {
            Alignment::Left => "-".repeat(self.width(index)),
            Alignment::Right => format!("{}:", "-".repeat(self.width(index).saturating_sub(1))),
        });
        line(formatter, rules.collect())?;
        for row in &self.rows {
            let cells = columns().map(|(index, (_, side))| pad(&row[index], self.width(index), *side));
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
