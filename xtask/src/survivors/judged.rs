//! The mutants that no test can tell from the source, as the ledger keeps them.
//!
//! Contract: `docs/mutants/CRATE.txt` has a heading `# equivalent: REASON` or `# constant: REASON` for each reason, and
//! under it a line for each mutant, as the lists of this command have it. A mutant is known by its file and by what it
//! does, wherever it is now: where several do the same in one function, the ledger tells how many of them.

use super::list::{Mutant, without_place};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::ErrorKind;
use std::path::Path;

/// Why no test notices a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No test can tell it from the source.
    Equivalent,
    /// It is computed when the crate is compiled, where no mutant can be chosen.
    Constant,
}

/// A line of the ledger.
#[derive(Debug)]
struct Entry<'a> {
    line: &'a str,
    reason: Reason,
}

/// What the ledger says of a crate, by file and change.
#[derive(Debug, Default)]
pub struct Judged<'a> {
    entries: BTreeMap<(String, String), Vec<Entry<'a>>>,
}

impl<'a> Judged<'a> {
    /// Reads the text of a file of the ledger, which is called `name` in errors.
    pub fn parse(name: &str, text: &'a str) -> Result<Judged<'a>, String> {
        let mut judged = Judged::default();
        let mut reason = None;
        for (number, line) in (1..).zip(text.lines()) {
            let refused = |what: &str| format!("{name}:{number}: {what}: {line}");
            if let Some(heading) = line.strip_prefix("# ") {
                reason = Some(match heading.split_once(": ") {
                    Some(("equivalent", _)) => Reason::Equivalent,
                    Some(("constant", _)) => Reason::Constant,
                    _ => return Err(refused("neither `# equivalent: REASON` nor `# constant: REASON`")),
                });
            } else if !line.is_empty() {
                let (file, change) =
                    without_place(line).ok_or_else(|| refused("not FILE:LINE:COLUMN: CHANGE"))?;
                let key = (file.to_owned(), change.to_owned());
                let reason = reason.ok_or_else(|| refused("there is no reason above it"))?;
                judged.entries.entry(key).or_default().push(Entry { line, reason });
            }
        }
        for entries in judged.entries.values_mut() {
            entries.reverse();
        }
        Ok(judged)
    }

    /// The reason for a mutant that no test has noticed, unless as many that do the same have been asked for before as
    /// the ledger has.
    pub fn take(&mut self, mutant: &Mutant) -> Option<Reason> {
        let (file, change) = without_place(&mutant.name)?;
        let entries = self.entries.get_mut(&(file.to_owned(), change.to_owned()))?;
        entries.pop().map(|entry| entry.reason)
    }

    /// The lines of those that nobody has asked for.
    pub fn rest(&self) -> impl Iterator<Item = &'a str> {
        self.entries.values().flatten().map(|entry| entry.line)
    }
}

/// The text of a crate's file in the ledger; none if there is no such file.
pub fn read(root: &Path, folder: &str) -> Result<String, Box<dyn Error>> {
    let path = root.join("docs/mutants").join(format!("{folder}.txt"));
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("{}: {error}", path.display()).into()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::list::Genre;
    use super::super::rewrite::tests::mutant;
    use super::*;

    const LEDGER: &str = "\
# equivalent: bits that are joined have none in common
mem/src/a.rs:2:5: replace | with ^ in f
mem/src/a.rs:3:5: replace | with ^ in f

# constant: a limit
mem/src/a.rs:1:20: replace << with >>
";

    fn named(name: &str) -> Mutant {
        Mutant { name: name.into(), ..mutant("|", Genre::Other, "|", "^") }
    }

    #[test]
    fn as_many_of_a_kind_are_judged_as_the_ledger_has_wherever_they_are() {
        let mut judged = Judged::parse("mem.txt", LEDGER).unwrap();
        let mut take = |name: &str| judged.take(&named(name));
        let equivalent = Some(Reason::Equivalent);
        assert_eq!(take("mem/src/a.rs:7:7: replace << with >>"), Some(Reason::Constant));
        assert_eq!(take("mem/src/b.rs:7:7: replace | with ^ in f"), None);
        assert_eq!(take("mem/src/a.rs:7:7: replace | with ^ in g"), None);
        let of_a_kind =
            ["7:7", "8:7", "9:7"].map(|place| take(&format!("mem/src/a.rs:{place}: replace | with ^ in f")));
        assert_eq!(of_a_kind, [equivalent, equivalent, None]);
    }

    #[test]
    fn what_nobody_asks_for_is_left_in_the_order_of_the_ledger() {
        let mut judged = Judged::parse("mem.txt", LEDGER).unwrap();
        judged.take(&named("mem/src/a.rs:7:7: replace | with ^ in f")).unwrap();
        let rest: Vec<&str> = judged.rest().collect();
        assert_eq!(
            rest,
            ["mem/src/a.rs:1:20: replace << with >>", "mem/src/a.rs:3:5: replace | with ^ in f"]
        );
    }

    #[test]
    fn lines_that_say_nothing_are_refused() {
        let refused = |text: &str| Judged::parse("mem.txt", text).map(|_| ()).unwrap_err();
        assert_eq!(
            ["# other: x", "# equivalent", "a.rs:1:1: b", "# constant: x\nnothing"].map(refused),
            [
                "mem.txt:1: neither `# equivalent: REASON` nor `# constant: REASON`: # other: x",
                "mem.txt:1: neither `# equivalent: REASON` nor `# constant: REASON`: # equivalent",
                "mem.txt:1: there is no reason above it: a.rs:1:1: b",
                "mem.txt:2: not FILE:LINE:COLUMN: CHANGE: nothing",
            ]
        );
    }

    #[test]
    fn a_crate_without_a_file_has_nothing_judged() {
        let root = zrt_needs::TemporaryFolder::new("judged");
        assert_eq!(read(&root, "mem").unwrap(), "");
        std::fs::create_dir_all(root.join("docs/mutants/ring.txt")).unwrap();
        let error = read(&root, "ring").unwrap_err().to_string();
        assert!(error.contains("docs/mutants/ring.txt: "), "{error}");
        std::fs::write(root.join("docs/mutants/pm4.txt"), "text").unwrap();
        assert_eq!(read(&root, "pm4").unwrap(), "text");
    }
}
