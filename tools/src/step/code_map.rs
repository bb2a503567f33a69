//! What is known about the code that is stepped through: functions, lines, the texts of the lines.
//!
//! Contract: places are those of findings and of disassemblers: a function and bytes from its first instruction.
//! Offsets here count from the image's start. Made once per run.

use super::command::Location;
use crate::source_text::SourceText;
use std::path::Path;
use zrt_loader::{Geometry, Kernel, LineTable, Program};

/// The code of a launch.
#[derive(Debug)]
pub struct CodeMap {
    kernel: Kernel,
    functions: Vec<(u64, String)>,
    lines: LineTable,
    image_bytes: u64,
    sources: SourceText,
    /// Workgroups, and waves of each.
    pub(super) groups: [u32; 3],
    pub(super) waves: u32,
}

impl CodeMap {
    /// The map of a kernel, launched in this shape, of a program in a file.
    pub fn new(program: &Program, kernel: &Kernel, geometry: &Geometry, file: &Path) -> CodeMap {
        let functions = program.functions().into_iter().map(|(offset, name)| (offset, name.to_owned()));
        let waves = geometry.group_items().div_ceil(kernel.wave_size.lanes().into());
        CodeMap {
            functions: functions.collect(),
            lines: program.lines().clone(),
            image_bytes: program.image().bytes().len() as u64,
            sources: SourceText::of(file),
            groups: geometry.groups,
            // A workgroup has at most 1024 work-items.
            waves: waves as u32,
            kernel: kernel.clone(),
        }
    }

    /// The offset of an instruction, given its address and that of the kernel's first one.
    pub(super) fn offset(&self, pc: u64, code_va: u64) -> u64 {
        pc.wrapping_sub(code_va).wrapping_add(self.kernel.entry_offset)
    }

    /// The place as text.
    pub(super) fn place(&self, offset: u64) -> String {
        let after = self.functions.partition_point(|(start, _)| *start <= offset);
        match after.checked_sub(1).and_then(|index| self.functions.get(index)) {
            Some((start, name)) => format!("{name}+{:#x}", offset - start),
            None => format!("{}+{offset:#x}", self.kernel.name),
        }
    }

    /// File, line and, if the file can be read, the text of the line.
    pub(super) fn source(&mut self, offset: u64) -> Option<String> {
        let (file, line) = self.lines.lookup(offset)?;
        let text = self.sources.line(file, line).map(|text| format!("  {text}")).unwrap_or_default();
        Some(format!("{file}:{line}{text}"))
    }

    /// The offsets that a location stands for, and its name; a complaint if there are none.
    pub(super) fn find(&self, location: &Location) -> Result<(Vec<u64>, String), String> {
        match location {
            Location::Offset(offset) => {
                let Kernel { name, code_bytes, entry_offset, .. } = &self.kernel;
                if *code_bytes > 0 && offset >= code_bytes {
                    return Err(format!(
                        "kernel {name} has {code_bytes:#x} bytes of code; FUNCTION+OFFSET is elsewhere"
                    ));
                }
                self.at(entry_offset.saturating_add(*offset))
            }
            Location::Function(wanted, offset) => {
                let known = self.functions.iter().find(|(_, name)| name == wanted);
                let (start, _) = known.ok_or_else(|| format!("there is no function {wanted:?}"))?;
                self.at(start.saturating_add(*offset))
            }
            Location::Line(file, line) => self.find_line(file.as_deref(), *line),
        }
    }

    fn at(&self, offset: u64) -> Result<(Vec<u64>, String), String> {
        if offset >= self.image_bytes {
            return Err(format!(
                "the program has {:#x} bytes, and {offset:#x} is past their end",
                self.image_bytes
            ));
        }
        Ok((vec![offset], self.place(offset)))
    }

    fn find_line(&self, file: Option<&str>, line: u32) -> Result<(Vec<u64>, String), String> {
        let files = self.lines.files();
        let is_wanted = |path: &str| match file.and_then(|file| path.strip_suffix(file)) {
            // The end of a path is a whole name, or more.
            Some(before) => before.is_empty() || before.ends_with('/'),
            None => file.is_none(),
        };
        let rows = self.lines.rows().iter().filter(|row| {
            row.line == line && files.get(row.file as usize).is_some_and(|path| is_wanted(path))
        });
        let offsets: Vec<u64> = rows.map(|row| row.offset).collect();
        let name = match file {
            Some(file) => format!("{file}:{line}"),
            None => format!("line {line}"),
        };
        match offsets.is_empty() {
            true if self.lines.is_empty() => Err("the code has no line table: compile it with -g".to_owned()),
            true => Err(format!("no code comes from {name}")),
            false => Ok((offsets, name)),
        }
    }
}
