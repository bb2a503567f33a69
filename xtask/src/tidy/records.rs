//! Records of decisions have one form, and the indexes of documents are complete.
//!
//! Contract: each file of `docs/decisions` but the index is `NNNN-name.md` and begins with its number and title, a
//! status and a date; its headings are [`HEADINGS`], in this order. The index has one row for each record, with the
//! same title, date and status, and no other. `docs/README.md` names every document of `docs` and of `docs/reference`.
//! Reads, never writes.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::Path;

/// Folder of the records.
const RECORDS: &str = "docs/decisions";
/// Its index, and the name of any index.
const INDEX: &str = "README.md";
/// Folders of which `docs/README.md` names the documents.
const DOCUMENTS: &[&str] = &["docs", "docs/reference"];
/// What a record has, in this order.
const HEADINGS: &[&str] = &["## Context", "## Decision", "## Consequences"];
/// What a status may be, or `superseded by N`.
const STATUSES: &[&str] = &["proposed", "accepted"];

/// What the index says about a record.
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    number: u32,
    title: String,
    date: String,
    status: String,
}

/// Findings in the tree.
pub fn check(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut findings = Vec::new();
    let mut records = BTreeMap::new();
    for name in names(&root.join(RECORDS))? {
        if name != INDEX {
            let text = fs::read_to_string(root.join(RECORDS).join(&name))?;
            records.insert(name, text);
        }
    }
    let index = fs::read_to_string(root.join(RECORDS).join(INDEX))?;
    check_records(&records, &index, &mut findings);
    let contents = fs::read_to_string(root.join("docs").join(INDEX))?;
    for folder in DOCUMENTS {
        for name in names(&root.join(folder))?.into_iter().filter(|name| name != INDEX) {
            let link = format!("{folder}/{name}");
            let link = link.trim_start_matches("docs/");
            if !contents.contains(&format!("({link})")) {
                findings.push(format!("docs/{INDEX}: no link to {link}"));
            }
        }
    }
    Ok(findings)
}

/// Names of the files of a folder, in order.
fn names(folder: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn check_records(records: &BTreeMap<String, String>, index: &str, findings: &mut Vec<String>) {
    let mut rows: BTreeMap<String, Entry> = BTreeMap::new();
    for (name, entry) in index.lines().filter_map(row) {
        if rows.insert(name.clone(), entry).is_some() {
            findings.push(format!("{RECORDS}/{INDEX}: two rows for {name}"));
        }
    }
    for (name, text) in records {
        match record(name, text) {
            Err(fault) => findings.push(format!("{RECORDS}/{name}: {fault}")),
            Ok(entry) if rows.get(name) != Some(&entry) => {
                let Entry { number, title, date, status } = entry;
                let row = format!("| [{number}]({name}) | {title} | {date} | {status} |");
                findings.push(format!("{RECORDS}/{INDEX}: lacks the row {row}"));
            }
            Ok(_) => (),
        }
    }
    for name in rows.keys().filter(|name| !records.contains_key(*name)) {
        findings.push(format!("{RECORDS}/{INDEX}: a row for {name}, which is no record"));
    }
}

/// A row of the index: the file and what is said about it.
fn row(line: &str) -> Option<(String, Entry)> {
    let cells: Vec<&str> = line.strip_prefix("| [")?.strip_suffix(" |")?.split(" | ").collect();
    let [link, title, date, status] = cells[..] else { return None };
    let (number, name) = link.strip_suffix(')')?.split_once("](")?;
    let number = number.parse().ok()?;
    Some((name.into(), Entry { number, title: title.into(), date: date.into(), status: status.into() }))
}

/// What a record says about itself, or what is wrong with it.
fn record(name: &str, text: &str) -> Result<Entry, String> {
    let lines: Vec<&str> = text.lines().collect();
    let [heading, "", status, date, "", ..] = lines[..] else {
        return Err(
            "begins with `# N. Title`, a blank line, `- Status: `, `- Date: ` and a blank line".into()
        );
    };
    let (number, title) = heading
        .strip_prefix("# ")
        .and_then(|heading| heading.split_once(". "))
        .and_then(|(number, title)| Some((number.parse().ok()?, title)))
        .ok_or("the heading is `# N. Title`")?;
    if !name.starts_with(&format!("{number:04}-")) || !name.ends_with(".md") {
        return Err(format!("the file of record {number} is called {number:04}-….md"));
    }
    let status = status.strip_prefix("- Status: ").filter(|status| is_status(status));
    let status = status.ok_or("the status is `- Status: proposed`, `accepted` or `superseded by N`")?;
    let date = date.strip_prefix("- Date: ").filter(|date| is_date(date));
    let date = date.ok_or("the date is `- Date: YYYY-MM-DD`")?;
    let headings: Vec<&str> = lines.iter().copied().filter(|line| line.starts_with("## ")).collect();
    if headings != HEADINGS {
        return Err(format!("the headings are {}", HEADINGS.join(", ")));
    }
    Ok(Entry { number, title: title.into(), date: date.into(), status: status.into() })
}

fn is_status(text: &str) -> bool {
    let successor = text.strip_prefix("superseded by ").is_some_and(|number| number.parse::<u32>().is_ok());
    successor || STATUSES.contains(&text)
}

/// Whether a text is a date by its form: `2026-11-21`.
fn is_date(text: &str) -> bool {
    let form = text.chars().map(|one| if one.is_ascii_digit() { '0' } else { one });
    form.eq("0000-00-00".chars())
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = "# 7. A title\n\n- Status: accepted\n- Date: 2026-11-21\n\n\
        ## Context\nA.\n\n## Decision\nB.\n\n## Consequences\nC.\n";
    const ROW: &str = "| [7](0007-name.md) | A title | 2026-11-21 | accepted |\n";
    /// What is said where the index has no such row.
    const LACKING: &str =
        "docs/decisions/README.md: lacks the row | [7](0007-name.md) | A title | 2026-11-21 | accepted |";

    fn findings(name: &str, text: &str, index: &str) -> Vec<String> {
        let records = BTreeMap::from([(name.to_owned(), text.to_owned())]);
        let mut findings = Vec::new();
        check_records(&records, index, &mut findings);
        findings
    }

    #[test]
    fn the_records_of_a_folder_are_held_against_its_index_and_documents_against_theirs() {
        let root = zrt_needs::TemporaryFolder::new("records");
        let put = |path: &str, text: &str| {
            let file = root.join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        put("docs/README.md", "[a](a.md) [b](reference/b.md)\n");
        put("docs/a.md", "");
        put("docs/reference/README.md", "");
        put("docs/reference/b.md", "");
        put("docs/decisions/README.md", ROW);
        put("docs/decisions/0007-name.md", RECORD);
        assert_eq!(check(&root).unwrap(), [""; 0]);
        put("docs/README.md", "a.md [c](c.md)\n");
        put("docs/decisions/README.md", "");
        put("docs/decisions/0008-name.md", "");
        let record = "docs/decisions/0008-name.md: begins with `# N. Title`, a blank line, `- Status: `, `- Date: ` \
                      and a blank line";
        let documents = ["a.md", "reference/b.md"].map(|link| format!("docs/README.md: no link to {link}"));
        assert_eq!(check(&root).unwrap(), [LACKING, record, &documents[0], &documents[1]]);
    }

    #[test]
    fn a_record_of_the_form_that_is_in_the_index_is_right() {
        assert_eq!(findings("0007-name.md", RECORD, ROW), [""; 0]);
        let superseded = |text: &str| text.replace("accepted", "superseded by 12");
        assert_eq!(findings("0007-name.md", &superseded(RECORD), &superseded(ROW)), [""; 0]);
    }

    #[test]
    fn a_record_of_another_form_is_a_finding() {
        for (from, to, fault) in [
            ("# 7. A title", "# A title", "the heading is"),
            ("# 7. ", "# 8. ", "is called 0008-….md"),
            ("accepted", "agreed", "the status is"),
            ("accepted", "superseded by", "the status is"),
            ("2026-11-21", "21.11.2026", "the date is"),
            ("- Date: 2026-11-21\n", "", "begins with"),
            ("## Context\n", "", "the headings are"),
            ("## Decision", "## Decisions", "the headings are"),
            ("## Context\nA.\n\n## Decision\n", "## Decision\n\n## Context\n", "the headings are"),
        ] {
            let text = RECORD.replace(from, to);
            assert_ne!(text, RECORD, "{from}");
            let found = findings("0007-name.md", &text, ROW);
            assert!(found.len() == 1 && found[0].contains(fault), "{from} -> {to}: {found:?}");
        }
    }

    #[test]
    fn the_index_has_each_record_once_and_as_it_is() {
        assert_eq!(findings("0007-name.md", RECORD, ""), [LACKING]);
        for (from, to) in [("A title", "Another"), ("21", "22"), ("accepted", "proposed"), ("[7]", "[8]")] {
            assert_eq!(findings("0007-name.md", RECORD, &ROW.replace(from, to)), [LACKING], "{from}");
        }
        assert_eq!(
            findings("0007-name.md", RECORD, &ROW.repeat(2)),
            ["docs/decisions/README.md: two rows for 0007-name.md"]
        );
        let further = "| [8](0008-name.md) | A title | 2026-11-21 | accepted |\n";
        assert_eq!(
            findings("0007-name.md", RECORD, &format!("{ROW}{further}")),
            ["docs/decisions/README.md: a row for 0008-name.md, which is no record"]
        );
    }
}
