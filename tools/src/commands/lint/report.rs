//! The report of `zrt lint`, as text or as one JSON document (`docs/lint.schema.json`).

use crate::commands::error_document::ErrorReport;
use crate::machine_code::{CodePlace, Entry, Name, Section};
use crate::source_text::SourceText;
use crate::suppression::{Silenced, Subject};
use crate::table::{Alignment, Table};
use serde::Serialize;
use std::fmt;
use zrt_isa::lint;

/// Characters of a name that the text shows; the document has all. A file can give one long name to many places.
const NAME_CHARACTERS_MAX: usize = 256;

/// One broken rule at one instruction.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    file: Name,
    pub(super) rule: &'static str,
    /// The kernel or function that was checked.
    kernel: Name,
    #[serde(flatten)]
    place: CodePlace,
    instruction: String,
    registers: Option<String>,
    /// The instruction that it collides with.
    cause: Option<CodePlace>,
    pub(super) remedy: String,
    source: Option<(Name, u32)>,
    /// The text of that line, if the file can be read.
    source_text: Option<String>,
}

/// A rule that the whole file's code ignores.
#[derive(Debug, Serialize)]
pub(super) struct Summary {
    pub(super) file: String,
    pub(super) rule: &'static str,
    pub(super) places: usize,
    pub(super) remedy: String,
}

/// What was found in a file, in numbers.
#[derive(Debug, Serialize)]
pub(super) struct FileReport {
    file: String,
    pub(super) kernels: usize,
    pub(super) functions: usize,
    /// Findings that are reported; a summary counts as one.
    findings: usize,
    /// Why it was not checked.
    error: Option<ErrorReport>,
}

/// What was found.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// The only file; nothing if there are several.
    file: Option<String>,
    kernels: usize,
    /// Functions that they call.
    functions: usize,
    pub(super) findings: Vec<Finding>,
    pub(super) summaries: Vec<Summary>,
    pub(super) files: Vec<FileReport>,
    silenced: Silenced,
}

impl Finding {
    /// A finding of the lint in the function `entry` of a section.
    pub(super) fn new(
        file: &Name,
        section: &Section,
        entry: &Entry,
        found: lint::Finding,
        sources: &mut SourceText,
    ) -> Finding {
        let source = section.source(found.dword);
        Finding {
            file: file.clone(),
            rule: found.rule.name(),
            kernel: entry.name.clone(),
            place: section.place(found.dword),
            instruction: found.instruction,
            registers: found.registers.map(|registers| registers.to_string()),
            cause: found.cause.map(|dword| section.place(dword)),
            remedy: found.remedy,
            source: source.map(|(file, line)| (file.clone(), line)),
            source_text: source.and_then(|(file, line)| sources.line(file, line)),
        }
    }

    /// What identifies it.
    pub(super) fn subject(&self) -> Subject<'_> {
        Subject {
            rule: self.rule,
            function: &self.place.function,
            offset: Some(self.place.offset),
            instruction: &self.instruction,
            source: self.source.as_ref().map(|(file, line)| (&**file, *line)),
        }
    }

    fn cells(&self) -> Vec<String> {
        let place =
            |place: &CodePlace| format!("{}+{:#x}", place.function.shown(NAME_CHARACTERS_MAX), place.offset);
        let cause = self.cause.as_ref().map(|cause| format!(" (from {})", place(cause))).unwrap_or_default();
        let text = self.source_text.as_ref().map(|text| format!("  {text}")).unwrap_or_default();
        let source = self
            .source
            .as_ref()
            .map(|(file, line)| format!("{}:{line}{text}", file.shown(NAME_CHARACTERS_MAX)));
        vec![
            self.rule.to_owned(),
            place(&self.place),
            self.instruction.clone(),
            self.registers.clone().unwrap_or_default(),
            format!("{}{cause}", self.remedy),
            source.unwrap_or_default(),
        ]
    }
}

impl FileReport {
    /// A file of which nothing is counted yet.
    pub(super) fn new(file: &str) -> FileReport {
        FileReport { file: file.to_owned(), kernels: 0, functions: 0, findings: 0, error: None }
    }

    /// A file that could not be checked.
    pub(super) fn failed(file: &str, error: ErrorReport) -> FileReport {
        FileReport { error: Some(error), ..FileReport::new(file) }
    }

    /// Counts what is reported about it.
    pub(super) fn count(&mut self, findings: &[Finding], summaries: usize) {
        self.findings = findings.len() + summaries;
    }
}

impl Report {
    /// Adds up the results of the files.
    pub(super) fn finish(&mut self, silenced: Silenced) {
        self.file = match &self.files[..] {
            [only] => Some(only.file.clone()),
            _ => None,
        };
        self.kernels = self.files.iter().map(|file| file.kernels).sum();
        self.functions = self.files.iter().map(|file| file.functions).sum();
        self.silenced = silenced;
    }

    /// Whether nothing was found.
    pub(super) fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.summaries.is_empty()
    }

    /// The rows of the files, if there are several.
    fn overview(&self) -> Option<Table> {
        if self.files.len() < 2 {
            return None;
        }
        let left = ["file", "result"].map(|heading| (heading, Alignment::Left));
        let right = ["kernels", "functions", "findings"].map(|heading| (heading, Alignment::Right));
        let mut table = Table::new(&[left[0], right[0], right[1], right[2], left[1]]);
        for file in &self.files {
            let result = match (&file.error, file.findings) {
                (Some(_), _) => "not checked",
                (None, 0) => "clean",
                _ => "findings",
            };
            let counts = [file.kernels, file.functions, file.findings].map(|count| count.to_string());
            let [kernels, functions, findings] = counts;
            table.row(vec![file.file.clone(), kernels, functions, findings, result.to_owned()]);
        }
        Some(table)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_one = self.files.len() < 2;
        let headings = ["rule", "place", "instruction", "registers", "remedy", "source"];
        for file in &self.files {
            let findings: Vec<&Finding> =
                self.findings.iter().filter(|one| *one.file == *file.file).collect();
            let summaries = self.summaries.iter().filter(|one| one.file == file.file);
            let summaries: Vec<&Summary> = summaries.collect();
            let is_silent = findings.is_empty() && summaries.is_empty() && file.error.is_none();
            if !is_one && !is_silent {
                writeln!(formatter, "{}:", file.file)?;
            }
            if !findings.is_empty() {
                let mut table = Table::new(&headings.map(|heading| (heading, Alignment::Left)));
                findings.iter().for_each(|finding| table.row(finding.cells()));
                write!(formatter, "{table}")?;
            }
            for summary in &summaries {
                writeln!(formatter, "{}: {}", summary.rule, summary.remedy)?;
            }
            if let Some(error) = &file.error {
                writeln!(formatter, "{}", error.message())?;
            }
            if !is_one && !is_silent {
                writeln!(formatter)?;
            }
        }
        if let Some(table) = self.overview() {
            write!(formatter, "{table}")?;
        }
        write!(formatter, "{}", self.silenced)?;
        let counted =
            |count: usize, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
        if !is_one {
            write!(formatter, "{}, ", counted(self.files.len(), "file"))?;
        }
        write!(formatter, "{}, ", counted(self.kernels, "kernel"))?;
        if self.functions > 0 {
            write!(formatter, "{}, ", counted(self.functions, "function"))?;
        }
        writeln!(formatter, "{}", counted(self.findings.len() + self.summaries.len(), "finding"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(function: &str, offset: u64) -> CodePlace {
        CodePlace { function: function.into(), offset, address: offset }
    }

    fn finding(file: &str, cause: Option<CodePlace>, source_text: Option<&str>) -> Finding {
        Finding {
            file: file.into(),
            rule: "hazard",
            kernel: "k".into(),
            place: place("k", 8),
            instruction: "s_nop 0".to_owned(),
            registers: cause.as_ref().map(|_| "s0".to_owned()),
            source: source_text.map(|_| ("k.c".into(), 3)),
            source_text: source_text.map(str::to_owned),
            cause,
            remedy: "wait".to_owned(),
        }
    }

    fn file(file: &str, kernels: usize, functions: usize, findings: usize) -> FileReport {
        FileReport { kernels, functions, findings, ..FileReport::new(file) }
    }

    fn report(findings: Vec<Finding>, summaries: Vec<Summary>, files: Vec<FileReport>) -> Report {
        let mut report = Report { findings, summaries, files, ..Report::default() };
        report.finish(Silenced::default());
        report
    }

    /// Of one file its name is not repeated, and ones and many have their own words.
    #[test]
    fn the_text_of_one_file_is_its_findings_and_a_count() {
        let findings = vec![finding("a.o", Some(place("k", 4)), Some("x = y;")), finding("a.o", None, None)];
        let one = report(findings, Vec::new(), vec![file("a.o", 1, 0, 2)]);
        let expected = "\
| rule   | place | instruction | registers | remedy            | source        |
| ------ | ----- | ----------- | --------- | ----------------- | ------------- |
| hazard | k+0x8 | s_nop 0     | s0        | wait (from k+0x4) | k.c:3  x = y; |
| hazard | k+0x8 | s_nop 0     |           | wait              |               |
1 kernel, 2 findings
";
        assert_eq!(
            (one.to_string().as_str(), one.file.as_deref(), one.is_clean()),
            (expected, Some("a.o"), false)
        );
        let clean = report(Vec::new(), Vec::new(), vec![file("a.o", 2, 1, 0)]);
        assert_eq!(
            (clean.to_string().as_str(), clean.is_clean()),
            ("2 kernels, 1 function, 0 findings\n", true)
        );
    }

    #[test]
    fn long_names_are_cut_in_the_text_alone() {
        let [whole, long] = [256, 257].map(|characters| "é".repeat(characters));
        let cells = |name: &str| {
            let mut found = finding("a.o", Some(place(name, 4)), Some("x"));
            (found.place.function, found.source) = (name.into(), Some((name.into(), 3)));
            (found.cells(), serde_json::to_value(&found).unwrap()["function"] == name)
        };
        let expected = |name: &str| {
            let [place, remedy, source] =
                [format!("{name}+0x8"), format!("wait (from {name}+0x4)"), format!("{name}:3  x")];
            vec!["hazard".to_owned(), place, "s_nop 0".to_owned(), "s0".to_owned(), remedy, source]
        };
        assert_eq!(cells(&whole), (expected(&whole), true));
        assert_eq!(cells(&long), (expected(&format!("{whole}…")), true));
    }

    /// Of several files each that has something to say is named, and a table has all of them.
    #[test]
    fn the_text_of_several_files_names_them() {
        let summary =
            Summary { file: "b.o".to_owned(), rule: "advice", places: 9, remedy: "do so".to_owned() };
        let failed = FileReport::failed("c.o", ErrorReport::of_command_line("error: it is empty"));
        let files = vec![file("a.o", 1, 2, 0), file("b.o", 1, 0, 1), failed];
        let several = report(Vec::new(), vec![summary], files);
        let expected = "\
b.o:
advice: do so

c.o:
it is empty

| file | kernels | functions | findings | result      |
| ---- | ------: | --------: | -------: | ----------- |
| a.o  |       1 |         2 |        0 | clean       |
| b.o  |       1 |         0 |        1 | findings    |
| c.o  |       0 |         0 |        0 | not checked |
3 files, 2 kernels, 2 functions, 1 finding
";
        assert_eq!((several.to_string().as_str(), several.file.is_none()), (expected, true));
        assert!(!several.is_clean());
    }

    #[test]
    fn a_files_findings_and_summaries_are_counted_together() {
        let mut counted = file("a.o", 0, 0, 0);
        counted.count(&[finding("a.o", None, None), finding("a.o", None, None)], 3);
        assert_eq!(counted.findings, 5);
    }
}
