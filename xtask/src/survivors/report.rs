//! What is said at the end: a table of crates, and what no test notices.

use super::judged::{Judged, Reason};
use super::list::Mutant;
use super::results::Outcome;
use std::collections::BTreeMap;
use std::iter::Sum;

/// The table's head. "Tried" are the seven columns behind it.
const HEAD: &str = "\
| crate | tried | killed | timed out | equivalent | constant | survived | over budget | unreached | unviable | not placed |
|---|---|---|---|---|---|---|---|---|---|---|
";

/// How many mutants each column has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts([usize; COLUMNS]);

impl Counts {
    /// How many no test notices and nobody has judged.
    pub fn left(&self) -> usize {
        LEFT.into_iter().map(|(column, _)| self.0[column as usize]).sum()
    }

    /// The cells of a row: what was tried, then each column.
    fn cells(&self) -> String {
        let tried: usize = self.0[..TRIED].iter().sum();
        let cells = [tried].into_iter().chain(self.0).map(|count| count.to_string());
        cells.collect::<Vec<_>>().join(" | ")
    }
}

impl Sum for Counts {
    fn sum<I: Iterator<Item = Counts>>(counts: I) -> Counts {
        counts.fold(Counts::default(), |sum, one| {
            Counts(std::array::from_fn(|column| sum.0[column] + one.0[column]))
        })
    }
}

/// The mutants of a crate with what became of them.
#[derive(Debug, Default)]
pub struct Settled<'a> {
    mutants: Vec<(&'a Mutant, Column)>,
    /// Lines of the ledger that judge none of these.
    judged_without_need: Vec<&'a str>,
}

impl<'a> Settled<'a> {
    /// What no test has noticed is what the ledger says of it. `alone` has what became of a mutant that was compiled
    /// alone; that counts for what was not placed, and for constants.
    pub fn new(
        outcomes: impl Iterator<Item = (&'a Mutant, &'a Outcome)>,
        alone: impl Fn(&Mutant) -> Option<Column>,
        mut judged: Judged<'a>,
    ) -> Settled<'a> {
        let mut column = |mutant: &Mutant, outcome: &Outcome| match placed(column(outcome), &alone, mutant) {
            left @ (Column::Survived | Column::OverBudget | Column::Unreached) => match judged.take(mutant) {
                Some(Reason::Equivalent) => Column::Equivalent,
                Some(Reason::Constant) => alone(mutant).unwrap_or(Column::Constant),
                None => left,
            },
            settled => settled,
        };
        let mutants = outcomes.map(|(mutant, outcome)| (mutant, column(mutant, outcome))).collect();
        Settled { mutants, judged_without_need: judged.rest().collect() }
    }

    fn of(&self, column: Column) -> impl Iterator<Item = &'a str> {
        self.mutants.iter().filter(move |(_, its)| *its == column).map(|(mutant, _)| mutant.name.as_str())
    }

    /// Those that tell nothing until they are compiled alone.
    pub fn only_alone(&self) -> impl Iterator<Item = &'a Mutant> {
        let is_wanted = |column: &Column| matches!(column, Column::Constant | Column::NotPlaced);
        self.mutants.iter().filter(move |(_, column)| is_wanted(column)).map(|(mutant, _)| *mutant)
    }

    /// How many each column has.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        self.mutants.iter().for_each(|(_, column)| counts.0[*column as usize] += 1);
        counts
    }
}

/// A column of the table, behind those of the crate and of what was tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    Killed,
    TimedOut,
    Equivalent,
    Constant,
    Survived,
    OverBudget,
    Unreached,
    Unviable,
    NotPlaced,
}

const COLUMNS: usize = 9;
/// The first columns, which are what was tried.
const TRIED: usize = 7;
/// What no test notices, with the headings of the lists.
const LEFT: [(Column, &str); 3] = [
    (Column::Survived, "survived: all tests that come by pass"),
    (Column::OverBudget, "over budget: the tests that were run pass"),
    (Column::Unreached, "unreached: no test comes by"),
];

/// What was not placed is what it is alone.
fn placed(column: Column, alone: impl Fn(&Mutant) -> Option<Column>, mutant: &Mutant) -> Column {
    match column {
        Column::NotPlaced => alone(mutant).unwrap_or(column),
        placed => placed,
    }
}

/// The column of an outcome, before the ledger is asked.
pub fn column(outcome: &Outcome) -> Column {
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

/// The table, a row for each crate, and one for all if they are several.
pub fn table(crates: &BTreeMap<String, Counts>) -> String {
    let mut text = HEAD.to_owned();
    for (name, counts) in crates {
        text += &format!("| `{name}` | {} |\n", counts.cells());
    }
    if crates.len() > 1 {
        text += &format!("| all | {} |\n", crates.values().copied().sum::<Counts>().cells());
    }
    text
}

/// The mutants that no test notices and nobody has judged, a line each, under a heading for each kind; nothing if there
/// are none.
pub fn survivors(settled: &Settled<'_>) -> String {
    let list = |(column, heading)| list(heading, &settled.of(column).collect::<Vec<_>>());
    LEFT.into_iter().map(list).collect()
}

/// The lines of the ledger that judge no mutant of the run.
pub fn judged_without_need(settled: &Settled<'_>) -> String {
    list("judged without need: noticed by now, or gone", &settled.judged_without_need)
}

fn list(heading: &str, lines: &[&str]) -> String {
    match lines {
        [] => String::new(),
        lines => format!("# {heading} ({})\n{}\n", lines.len(), lines.join("\n")),
    }
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
        // Four of the first kind, five of the second, and so on; each place has a change of its own.
        let mutants: Vec<(Mutant, &Outcome)> = (0..)
            .zip(&outcomes)
            .flat_map(|(place, outcome)| (0..place + 4).map(move |copy| (place, copy, outcome)))
            .map(|(place, copy, outcome)| {
                let name = format!("mem/src/a.rs:{place}:{copy}: replace + with - in f{place}");
                (Mutant { name, ..mutant("+", Genre::Other, "+", "-") }, outcome)
            })
            .collect();
        let line = |place: usize| format!("mem/src/a.rs:9:9: replace + with - in f{place}\n");
        let ledger = format!(
            "# equivalent: x\n{}{}{}# constant: x\n{}{}{}",
            line(2),
            line(2),
            line(3),
            line(4),
            line(0),
            line(5)
        );
        let outcomes = mutants.iter().map(|(mutant, outcome)| (mutant, *outcome));
        let settled = Settled::new(outcomes.clone(), |_| None, Judged::parse("mem.txt", &ledger).unwrap());
        let counts = settled.counts();
        assert_eq!(counts.left(), 4 + 6 + 7);
        let listed = survivors(&settled);
        let lines: Vec<&str> = listed.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(lines.len(), 4 + 6 + 7, "{listed}");
        assert_eq!(lines[0], "mem/src/a.rs:2:2: replace + with - in f2");
        assert!(
            listed.contains("# over budget: the tests that were run pass (6)\nmem/src/a.rs:3:1"),
            "{listed}"
        );
        // What is noticed, or does not compile, needs no reason.
        assert_eq!(
            judged_without_need(&settled),
            format!("# judged without need: noticed by now, or gone (2)\n{}{}", line(0), line(5))
        );
        let one = table(&[("mem".into(), counts)].into());
        assert_eq!(one.lines().last(), Some("| `mem` | 30 | 4 | 5 | 3 | 1 | 4 | 6 | 7 | 9 | 10 |"));
        let columns = one.lines().map(|line| line.matches('|').count());
        assert!(columns.eq([12, 12, 12]), "{one}");
        let two = table(&[("mem".into(), counts), ("ring".into(), counts)].into());
        assert_eq!(two.lines().nth(2), one.lines().last());
        assert_eq!(two.lines().last(), Some("| all | 60 | 8 | 10 | 6 | 2 | 8 | 12 | 14 | 18 | 20 |"));
        let only_alone: Vec<&Mutant> = settled.only_alone().collect();
        assert_eq!(only_alone.len(), 1 + 10);
        // Alone one constant is noticed, and what was not placed does not compile.
        let alone = |mutant: &Mutant| match mutant.name.contains("in f6") {
            true => Some(Column::Unviable),
            false => Some(Column::Killed),
        };
        let settled = Settled::new(outcomes, alone, Judged::parse("mem.txt", &ledger).unwrap());
        let alone = table(&[("mem".into(), settled.counts())].into());
        assert_eq!(alone.lines().last(), Some("| `mem` | 30 | 5 | 5 | 3 | 0 | 4 | 6 | 7 | 19 | 0 |"));
        assert_eq!(settled.only_alone().count(), 0);
        let nothing = Settled::default();
        assert_eq!(
            (survivors(&nothing), judged_without_need(&nothing), nothing.counts()),
            Default::default()
        );
    }
}
