//! `zrt lint`: the static check of machine code, before it ever runs.

use super::{WaveChoice, disasm, write_document, write_text};
use crate::error::ToolError;
use crate::machine_code::{CodePlace, Entry, Format, Section};
use crate::source_text::SourceText;
use crate::table::{Alignment, Table};
use clap::Args;
use serde::Serialize;
use std::path::Path;
use zrt_isa::lint::{self, Function, Rule};
use zrt_isa::resources::WaveSize;
use zrt_isa::{Opcode, decode_for};

/// Checks machine code for missing waits and other broken rules of the hardware, without running it
#[derive(Debug, Args)]
pub struct Arguments {
    /// A kernel inside the program, or a file: .zrt, ELF code object, raw code
    pub file: String,
    /// Only the kernel or function of this name
    #[arg(long)]
    pub kernel: Option<String>,
    /// Lanes of a wave: 32, or 64; without it what the file says, and 32 where it says nothing
    #[arg(long)]
    pub wave: Option<WaveChoice>,
    /// Every finding, also where the compiler as a whole does not know a rule
    #[arg(long)]
    pub all: bool,
    /// The scalar hazard: trust nothing that only one compiler relies on (always so for .zrt)
    #[arg(long)]
    pub strict: bool,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// One broken rule at one instruction.
#[derive(Debug, Serialize)]
struct Finding {
    rule: &'static str,
    kernel: String,
    #[serde(flatten)]
    place: CodePlace,
    instruction: String,
    registers: Option<String>,
    /// The instruction that it collides with.
    cause: Option<CodePlace>,
    remedy: String,
    source: Option<(String, u32)>,
    /// The text of that line, where the file can be read.
    source_text: Option<String>,
}

/// A rule that the whole file's code ignores.
#[derive(Debug, Serialize)]
struct Summary {
    rule: &'static str,
    places: usize,
    remedy: String,
}

/// What was found.
#[derive(Debug, Serialize)]
struct Report {
    file: String,
    kernels: usize,
    /// Functions that they call.
    functions: usize,
    findings: Vec<Finding>,
    summaries: Vec<Summary>,
}

/// Runs the command. False where something was found.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let report = examine(arguments)?;
    if arguments.json {
        write_document(&report)?;
    } else {
        write_text(&text(&report))?;
    }
    Ok(report.findings.is_empty() && report.summaries.is_empty())
}

fn examine(arguments: &Arguments) -> Result<Report, ToolError> {
    let code = disasm::read(&arguments.file, arguments.wave.map(WaveSize::from), |_| ()).map_err(no_file)?;
    let is_wanted = |entry: &Entry| arguments.kernel.as_ref().is_none_or(|name| *name == entry.name);
    let is_strict = arguments.strict || code.format == Format::Zrt;
    let mut sources = SourceText::of(Path::new(&arguments.file));
    let mut report = Report {
        file: arguments.file.clone(),
        kernels: 0,
        functions: 0,
        findings: Vec::new(),
        summaries: Vec::new(),
    };
    for section in &code.sections {
        let is_program = code.format == Format::Elf;
        let program = program(section, is_strict);
        for entry in section.entries.iter().filter(|entry| is_wanted(entry)) {
            report.kernels += 1;
            let found = match is_program {
                true => program.check(entry.dword),
                false => lint::check_entry(&section.words, &launch(entry, false, is_strict)),
            };
            report.findings.extend(check(section, entry, found, &mut sources));
        }
        for entry in section.called.iter().filter(|entry| is_wanted(entry)) {
            report.functions += 1;
            report.findings.extend(check(section, entry, program.check(entry.dword), &mut sources));
        }
    }
    if report.kernels + report.functions == 0 {
        let entries = code.sections.iter().flat_map(|section| section.entries.iter().chain(&section.called));
        let names = entries.map(|entry| entry.name.clone());
        return Err(ToolError::NoKernel {
            path: arguments.file.clone(),
            name: arguments.kernel.clone(),
            kernels: names.collect::<Vec<_>>().join(", "),
        });
    }
    if code.format == Format::Elf && !arguments.all && !code.sections.iter().any(waits_for_scalars) {
        summarise(&mut report);
    }
    Ok(report)
}

/// A missing file is bad input here, as a damaged one is: exit code 1 says that there are findings.
fn no_file(error: ToolError) -> ToolError {
    match error {
        ToolError::Kernel { name } => ToolError::Code {
            path: name,
            source: crate::machine_code::CodeError::Read(std::io::ErrorKind::NotFound.into()),
        },
        error => error,
    }
}

/// The functions of a section, as the lint takes them. What is no ELF file has no functions but its entries.
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

fn check(
    section: &Section,
    entry: &Entry,
    found: Vec<lint::Finding>,
    sources: &mut SourceText,
) -> Vec<Finding> {
    let finding = |found: lint::Finding| {
        let source = section.source_line(found.dword);
        Finding {
            rule: found.rule.name(),
            kernel: entry.name.clone(),
            place: section.place(found.dword),
            instruction: found.instruction,
            registers: found.registers.map(|registers| registers.to_string()),
            cause: found.cause.map(|dword| section.place(dword)),
            remedy: found.remedy,
            source: source.map(|(file, line)| (file.to_owned(), line)),
            source_text: source.and_then(|(file, line)| sources.line(file, line)),
        }
    };
    found.into_iter().map(finding).collect()
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
fn summarise(report: &mut Report) {
    let before = report.findings.len();
    report.findings.retain(|finding| finding.rule != Rule::ScalarHazard.name());
    let places = before - report.findings.len();
    if places > 0 {
        let remedy = format!(
            "compiled by a compiler that does not insert s_wait_alu; {places} places; use clang 22 or later (--all \
             lists the places)"
        );
        report.summaries.push(Summary { rule: Rule::ScalarHazard.name(), places, remedy });
    }
}

fn text(report: &Report) -> String {
    let mut text = String::new();
    if !report.findings.is_empty() {
        let headings = ["rule", "place", "instruction", "registers", "remedy", "source"];
        let mut table = Table::new(&headings.map(|heading| (heading, Alignment::Left)));
        for finding in &report.findings {
            let cause = finding.cause.as_ref().map(|cause| format!(" (from {cause})")).unwrap_or_default();
            let text = finding.source_text.as_ref().map(|text| format!("  {text}")).unwrap_or_default();
            let source = finding.source.as_ref().map(|(file, line)| format!("{file}:{line}{text}"));
            table.row(vec![
                finding.rule.to_owned(),
                finding.place.to_string(),
                finding.instruction.clone(),
                finding.registers.clone().unwrap_or_default(),
                format!("{}{cause}", finding.remedy),
                source.unwrap_or_default(),
            ]);
        }
        text += &table.to_string();
    }
    for summary in &report.summaries {
        text += &format!("{}: {}\n", summary.rule, summary.remedy);
    }
    let count = report.findings.len() + report.summaries.len();
    let counted = |count: usize, name: &str| format!("{count} {name}{}", if count == 1 { "" } else { "s" });
    let functions = match report.functions {
        0 => String::new(),
        some => format!("{}, ", counted(some, "function")),
    };
    text + &format!("{}, {functions}{}\n", counted(report.kernels, "kernel"), counted(count, "finding"))
}
