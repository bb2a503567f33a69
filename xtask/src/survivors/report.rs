//! What is said at the end: a table of crates, and what no test notices.

use super::list::Mutant;
use super::results::Outcome;
use std::collections::BTreeMap;

/// The table's head. "Tried" are the five columns behind it.
const HEAD: &str = "| crate | tried | killed | timed out | survived | over budget | unreached | unviable | not placed |\n\
                    |---|---|---|---|---|---|---|---|---|\n";

/// Mutants with what became of them.
pub type Settled<'a> = Vec<(&'a Mutant, &'a Outcome)>;

/// A column of the table, behind those of the crate and of what was tried.
#[derive(Clone, Copy)]
enum Column {
    Killed,
    TimedOut,
    Survived,
    OverBudget,
    Unreached,
    Unviable,
    NotPlaced,
}

const COLUMNS: usize = 7;
/// The first columns, which are what was tried.
const TRIED: usize = 5;

fn column(outcome: &Outcome) -> Column {
    match outcome {
        Outcome::Killed { .. } => Column::Killed,
        Outcome::TimedOut { .. } => Column::TimedOut,
        Outcome::Survived => Column::Survived,
        Outcome::OverBudget { .. } => Column::OverBudget,
        Outcome::Unreached => Column::Unreached,
        Outcome::Unviable { .. } => Column::Unviable,
        Outcome::NotPlaced { .. } => Column::NotPlaced,
    }
}

/// The table, a row for each crate.
pub fn table(crates: &BTreeMap<&str, Settled<'_>>) -> String {
    let mut text = HEAD.to_owned();
    for (name, settled) in crates {
        let mut counts = [0_usize; COLUMNS];
        settled.iter().for_each(|(_, outcome)| counts[column(outcome) as usize] += 1);
        let tried: usize = counts[..TRIED].iter().sum();
        let counts = counts.map(|count| count.to_string()).join(" | ");
        text += &format!("| `{name}` | {tried} | {counts} |\n");
    }
    text
}

/// The mutants that no test notices, a line each, under a heading for each kind; nothing if there are none.
pub fn survivors(settled: &Settled<'_>) -> String {
    let mut text = String::new();
    let kinds = [
        (Column::Survived, "survived: all tests that come by pass"),
        (Column::OverBudget, "over budget: the tests that were run pass"),
        (Column::Unreached, "unreached: no test comes by"),
    ];
    for (kind, heading) in kinds {
        let of_kind = settled.iter().filter(|(_, outcome)| column(outcome) as usize == kind as usize);
        let lines: Vec<&str> = of_kind.map(|(mutant, _)| mutant.name.as_str()).collect();
        if !lines.is_empty() {
            text += &format!("# {heading} ({})\n{}\n", lines.len(), lines.join("\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::list::Genre;
    use super::super::rewrite::tests::mutant;
    use super::*;

    #[test]
    fn each_outcome_has_its_column_and_what_no_test_notices_its_line() {
        let text = || String::from("text");
        let outcomes = [
            Outcome::Killed { test: text() },
            Outcome::TimedOut { test: text() },
            Outcome::Survived,
            Outcome::OverBudget { left_out: 1, budget_s: 2.0 },
            Outcome::Unreached,
            Outcome::Unviable { reason: text() },
            Outcome::NotPlaced { reason: text() },
        ];
        // One of the first kind, two of the second, and so on.
        let settled: Vec<(Mutant, &Outcome)> = (0..)
            .zip(&outcomes)
            .flat_map(|(place, outcome)| (0..=place).map(move |copy| (place, copy, outcome)))
            .map(|(place, copy, outcome)| {
                let name = format!("mem/src/a.rs:{place}:{copy}: replace + with - in f");
                (Mutant { name, ..mutant("+", Genre::Other, "+", "-") }, outcome)
            })
            .collect();
        let settled: Settled<'_> = settled.iter().map(|(mutant, outcome)| (mutant, *outcome)).collect();
        let table = table(&[("mem", settled.clone())].into());
        assert_eq!(table.lines().last(), Some("| `mem` | 15 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |"));
        let columns = table.lines().map(|line| line.matches('|').count());
        assert!(columns.eq([10, 10, 10]), "{table}");
        let listed = survivors(&settled);
        let lines: Vec<&str> = listed.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), 3 + 4 + 5, "{listed}");
        assert_eq!(lines[0], "mem/src/a.rs:2:0: replace + with - in f");
        assert!(
            listed.contains("# over budget: the tests that were run pass (4)\nmem/src/a.rs:3:0"),
            "{listed}"
        );
        assert_eq!(survivors(&Settled::new()), "");
    }
}
