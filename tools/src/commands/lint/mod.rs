//! `zrt lint`: the static check of machine code, before it ever runs.
//!
//! Contract: every file is checked, even after one that cannot be read: that one ends the command with exit code 2,
//! after the others have been reported. A file is read, checked and released before the next one.

mod report;

use super::{WaveChoice, disasm, write_document, write_text};
use crate::commands::error_document::ErrorReport;
use crate::error::ToolError;
use crate::machine_code::{Entry, Format, MachineCode, Name, Section};
use crate::source_text::SourceText;
use crate::suppression::{Filter, SilenceOptions};
use clap::Args;
use report::{FileReport, Finding, Report, Summary};
use std::collections::HashSet;
use std::path::Path;
use zrt_isa::lint::{self, Function, Rule};
use zrt_isa::resources::WaveSize;
use zrt_isa::{Opcode, decode_for};

/// Most findings of a file that are reported: more is not read by anyone, and takes memory.
const FINDINGS_MAX: usize = 65_536;

/// Checks machine code for missing waits, hazards, unwritten registers and broken control flow, without running it
#[derive(Debug, Args)]
pub struct Arguments {
    /// Embedded kernels, or files: .zrt, ELF code object, raw code
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<String>,
    /// Check only this kernel or function, and the functions that it calls
    #[arg(long)]
    pub kernel: Option<String>,
    /// Wave size [default: what the file states, else 32]
    #[arg(long)]
    pub wave: Option<WaveChoice>,
    /// Report every finding, even of a rule that the file's compiler never follows
    #[arg(long)]
    pub all: bool,
    /// Judge the scalar hazard without the assumptions of a single compiler (always on for .zrt)
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub silence: SilenceOptions,
    /// Write one JSON document
    #[arg(long)]
    pub json: bool,
}

/// Runs the command. Returns false if something was found.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let mut filter = arguments.silence.open()?;
    let mut report = Report::default();
    let (mut failed, mut seen) = (None, HashSet::new());
    for file in arguments.files.iter().filter(|file| seen.insert(*file)) {
        match examine(file, arguments, &mut filter, &mut report) {
            Ok(row) => report.files.push(row),
            // With a single file there is nothing else to report.
            Err(error) if arguments.files.len() == 1 => return Err(error),
            Err(error) => {
                report.files.push(FileReport::failed(file, ErrorReport::of(&error)));
                failed.get_or_insert(error);
            }
        }
    }
    report.finish(filter.finish()?);
    if arguments.json {
        write_document(&report)?;
    } else {
        write_text(&report)?;
    }
    match failed {
        Some(error) => Err(ToolError::Told(Box::new(error))),
        None => Ok(report.is_clean()),
    }
}

/// Whether scalar waits are held to the stricter rule: asked for, or of a kernel of ours.
fn is_strict(is_asked: bool, format: Format) -> bool {
    is_asked || format == Format::Zrt
}

/// Checks a file: adds its findings to the report, and returns its row.
fn examine(
    file: &str,
    arguments: &Arguments,
    filter: &mut Filter,
    report: &mut Report,
) -> Result<FileReport, ToolError> {
    let code = disasm::read(file, arguments.wave.map(WaveSize::from), |_| ()).map_err(no_file)?;
    let is_strict = is_strict(arguments.strict, code.format);
    let is_summarised =
        code.format == Format::Elf && !arguments.all && !code.sections.iter().any(waits_for_scalars);
    let mut row = FileReport::new(file);
    let mut found = Found::new(file, filter, is_summarised);
    for section in &code.sections {
        // A file that is not ELF has no functions, and calls of its own kind.
        let program = (code.format == Format::Elf).then(|| program(section, is_strict));
        let wanted = arguments.kernel.as_ref().map(|name| {
            let all = section.entries.iter().chain(&section.called);
            let named = all.filter(|entry| *entry.name == **name).map(|entry| entry.dword);
            match &program {
                Some(program) => program.reached_from(named),
                None => named.collect(),
            }
        });
        let is_wanted = |entry: &&Entry| wanted.as_ref().is_none_or(|dwords| dwords.contains(&entry.dword));
        for entry in section.entries.iter().filter(is_wanted) {
            row.kernels += 1;
            found.check(section, entry, || match &program {
                Some(program) => program.check(entry.dword),
                None => lint::check_entry(&section.words, &launch(entry, false, is_strict)),
            });
        }
        let Some(program) = program else { continue };
        for entry in section.called.iter().filter(is_wanted) {
            row.functions += 1;
            found.check(section, entry, || program.check(entry.dword));
        }
    }
    if row.kernels + row.functions == 0 {
        return Err(no_kernel(file, arguments.kernel.as_ref(), &code));
    }
    let summary = summary(file, found.places);
    row.count(&found.findings, usize::from(summary.is_some()));
    report.summaries.extend(summary);
    report.findings.append(&mut found.findings);
    Ok(row)
}

/// What is found in a file.
struct Found<'a> {
    file: Name,
    sources: SourceText,
    filter: &'a mut Filter,
    findings: Vec<Finding>,
    /// Whether scalar hazards are counted instead.
    is_summarised: bool,
    /// Scalar hazards that were counted.
    places: usize,
    /// Whether there are more findings than are kept.
    is_full: bool,
}

impl<'a> Found<'a> {
    fn new(file: &str, filter: &'a mut Filter, is_summarised: bool) -> Found<'a> {
        let sources = SourceText::of(Path::new(file));
        Found {
            file: Name::from(file),
            sources,
            filter,
            findings: Vec::new(),
            is_summarised,
            places: 0,
            is_full: false,
        }
    }

    /// Adds what is found in the code at an entry, as long as there is room for findings.
    fn check(&mut self, section: &Section, entry: &Entry, found: impl FnOnce() -> Vec<lint::Finding>) {
        if self.is_full {
            return;
        }
        for one in found() {
            let finding = Finding::new(&self.file, section, entry, one, &mut self.sources);
            if !self.filter.keeps(&finding.subject()) {
                continue;
            }
            if self.is_summarised && finding.rule == Rule::ScalarHazard.name() {
                self.places += 1;
            } else if self.findings.len() < FINDINGS_MAX {
                self.findings.push(finding);
            } else {
                self.is_full = true;
                break;
            }
        }
        if self.is_full {
            let remedy =
                format!("the file has more than {FINDINGS_MAX} findings: what follows is not checked");
            let said = lint::Finding::at(Rule::NotAnalysed, entry.dword, remedy);
            self.findings.push(Finding::new(&self.file, section, entry, said, &mut self.sources));
        }
    }
}

/// A missing file is bad input here, as a damaged one is: exit code 1 says that there are findings.
fn no_file(error: ToolError) -> ToolError {
    match error {
        ToolError::Kernel { name } => ToolError::Code {
            path: name,
            source: crate::machine_code::CodeError::Read(std::io::Error::new(
                std::io::ErrorKind::NotFound,
                "there is no such file, and no embedded kernel has this name",
            )),
        },
        error => error,
    }
}

fn no_kernel(file: &str, name: Option<&String>, code: &MachineCode) -> ToolError {
    let entries = code.sections.iter().flat_map(|section| section.entries.iter().chain(&section.called));
    let kernels = entries.map(|entry| &*entry.name).collect::<Vec<_>>().join(", ");
    ToolError::NoKernel { path: file.to_owned(), name: name.cloned(), kernels }
}

/// The functions of a section, as the lint takes them.
fn program(section: &Section, is_strict: bool) -> lint::Program<'_> {
    let function =
        |entry: &Entry, is_called| Function { entry: launch(entry, is_called, is_strict), end: entry.end };
    let kernels = section.entries.iter().map(|entry| function(entry, false));
    let called = section.called.iter().map(|entry| function(entry, true));
    lint::Program::new(&section.words, &kernels.chain(called).collect::<Vec<_>>(), section.is_linked)
}

fn launch(entry: &Entry, is_called: bool, is_strict: bool) -> lint::Entry {
    lint::Entry {
        dword: entry.dword,
        user_sgprs: entry.user_sgprs,
        is_called,
        wave_size: entry.wave_size,
        runs_again: false,
        is_strict,
    }
}

/// Whether the code has any `s_wait_alu`, the wait of the scalar hazard.
fn waits_for_scalars(section: &Section) -> bool {
    let mut at = 0;
    while at < section.words.len() {
        at += match decode_for(&section.words[at..], section.wave_size(at)) {
            Ok(instruction) if instruction.opcode == Opcode::SWaitAlu => return true,
            Ok(instruction) => usize::from(instruction.dword_count).max(1),
            Err(_) => 1,
        };
    }
    false
}

/// Code from a compiler that does not know the scalar hazard has it everywhere: one finding instead of all.
fn summary(file: &str, places: usize) -> Option<Summary> {
    let remedy = format!(
        "compiled by a compiler that does not insert s_wait_alu; {places} places; use clang 22 or later (--all lists \
         the places)"
    );
    (places > 0).then(|| Summary { file: file.to_owned(), rule: Rule::ScalarHazard.name(), places, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn section(words: &[u32]) -> Section {
        Section {
            name: Name::default(),
            address: 0,
            words: words.to_vec(),
            symbols: BTreeMap::new(),
            entries: Vec::new(),
            called: Vec::new(),
            is_linked: true,
            functions: BTreeMap::new(),
            lines: Vec::new(),
        }
    }

    /// `s_wait_alu 0xfffe` as llvm-mc 19 encodes it.
    const WAIT_ALU: u32 = 0xbf88_fffe;

    /// The wait counts as an instruction, not as a word of another one; words that are none are passed over.
    #[test]
    fn code_that_waits_for_scalars_is_told_from_code_that_does_not() {
        // s_nop 0; s_mov_b32 s0, a literal; s_endpgm; no instruction.
        let (nop, literal, end, none) = (0xbf80_0000, 0xbe80_00ff, 0xbfb0_0000, 0xffff_ffff);
        for (words, expected) in [
            (&[WAIT_ALU][..], true),
            (&[nop, literal, 5, WAIT_ALU, end], true),
            (&[none, WAIT_ALU], true),
            (&[nop, end], false),
            (&[literal, WAIT_ALU, end], false),
            (&[], false),
        ] {
            assert_eq!(waits_for_scalars(&section(words)), expected, "{words:x?}");
        }
    }

    fn named_entry() -> Entry {
        Entry { name: Name::from("k"), dword: 0, end: 1, wave_size: WaveSize::Wave32, user_sgprs: 0 }
    }

    fn of_rule(rule: Rule, count: usize) -> Vec<lint::Finding> {
        vec![lint::Finding::at(rule, 0, "mend it".to_owned()); count]
    }

    /// The last says so, and nothing is checked any more.
    #[test]
    fn a_file_has_65536_findings_at_most() {
        let mut filter = SilenceOptions::default().open().unwrap();
        let (section, entry) = (section(&[WAIT_ALU]), named_entry());
        let mut found = Found::new("k.bin", &mut filter, false);
        for count in [65_000, 536] {
            found.check(&section, &entry, || of_rule(Rule::ScalarHazard, count));
        }
        assert_eq!((found.findings.len(), found.is_full), (65_536, false));
        found.check(&section, &entry, || of_rule(Rule::Unwritten, 5));
        found.check(&section, &entry, || panic!("it is full"));
        let last = found.findings.pop().unwrap();
        let expected = "the file has more than 65536 findings: what follows is not checked";
        assert_eq!((last.rule, last.remedy.as_str()), ("not-analysed", expected));
        assert_eq!((found.findings.len(), found.places), (65_536, 0));
        assert!(found.findings.iter().all(|one| one.rule == "scalar-hazard"));
    }

    /// They take no room of others.
    #[test]
    fn hazards_that_are_summarised_are_counted_alone() {
        let mut filter = SilenceOptions::default().open().unwrap();
        let (section, entry) = (section(&[WAIT_ALU]), named_entry());
        let mut found = Found::new("k.o", &mut filter, true);
        found.check(&section, &entry, || of_rule(Rule::ScalarHazard, 65_537));
        found.check(&section, &entry, || of_rule(Rule::Unwritten, 2));
        assert_eq!((found.findings.len(), found.places, found.is_full), (2, 65_537, false));
        let summary = summary("k.o", found.places).unwrap();
        assert_eq!((summary.places, summary.rule), (65_537, "scalar-hazard"));
        assert!(super::summary("k.o", 0).is_none());
    }

    #[test]
    fn compiled_code_is_held_to_the_stricter_rule_where_it_is_asked_for() {
        let of = |format| [is_strict(false, format), is_strict(true, format)];
        assert_eq!([of(Format::Elf), of(Format::Zrt)], [[false, true], [true, true]]);
    }

    #[test]
    fn a_file_that_is_not_there_is_bad_input() {
        let error = no_file(ToolError::Kernel { name: "k.o".to_owned() });
        assert_eq!(error.exit_code(), 2);
        assert!(crate::error::sentence(&error).contains("there is no such file"), "{error}");
        let other = no_file(ToolError::NoToken);
        assert!(matches!(other, ToolError::NoToken), "{other}");
    }
}
