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

#[cfg(test)]
mod tests {
    use super::*;

    /// `double` of `double.s`, whose 52 bytes begin with the image, launched with 33 work-items in each group.
    fn map() -> CodeMap {
        let bytes: Vec<u8> =
            crate::double_object::DOUBLE_OBJECT.iter().flat_map(|word| word.to_le_bytes()).collect();
        let program = Program::parse(&bytes).unwrap();
        let geometry = Geometry::new([2, 3, 4], [33, 1, 1]);
        let mut map = CodeMap::new(&program, &program.kernels()[0], &geometry, Path::new("double.o"));
        map.functions = vec![(0x10, "double".to_owned()), (0x20, "helper".to_owned())];
        map.kernel.entry_offset = 0x10;
        (map.kernel.code_bytes, map.image_bytes) = (0x18, 0x30);
        map
    }

    #[test]
    fn a_launch_has_its_groups_and_whole_waves() {
        let map = map();
        assert_eq!((map.groups, map.waves), ([2, 3, 4], 2));
        // The kernel's first instruction lies at its entry in the image.
        assert_eq!([0x5000, 0x5008].map(|pc| map.offset(pc, 0x5000)), [0x10, 0x18]);
    }

    #[test]
    fn places_are_named_by_the_function_that_begins_before_them() {
        let places = [0xc, 0x10, 0x1c, 0x20, 0x2c].map(|offset| map().place(offset));
        assert_eq!(places, ["double+0xc", "double+0x0", "double+0xc", "helper+0x0", "helper+0xc"]);
    }

    #[test]
    fn locations_are_found_inside_of_the_code() {
        let map = map();
        let function = |name: &str, offset| Location::Function(name.to_owned(), offset);
        let found = |offset, name: &str| Ok((vec![offset], name.to_owned()));
        for (location, expected) in [
            (Location::Offset(0), found(0x10, "double+0x0")),
            (Location::Offset(0x14), found(0x24, "helper+0x4")),
            (function("helper", 0xc), found(0x2c, "helper+0xc")),
            (
                Location::Offset(0x18),
                Err("kernel double has 0x18 bytes of code; FUNCTION+OFFSET is elsewhere".to_owned()),
            ),
            (
                function("helper", 0x10),
                Err("the program has 0x30 bytes, and 0x30 is past their end".to_owned()),
            ),
            (function("other", 0), Err("there is no function \"other\"".to_owned())),
            (Location::Line(None, 3), Err("the code has no line table: compile it with -g".to_owned())),
        ] {
            assert_eq!(map.find(&location), expected, "{location:?}");
        }
        // Code of unknown length ends where the image does.
        let unknown = CodeMap { kernel: Kernel { code_bytes: 0, ..map.kernel.clone() }, ..map };
        assert_eq!(unknown.find(&Location::Offset(0x1f)).map(|(offsets, _)| offsets), Ok(vec![0x2f]));
        assert!(unknown.find(&Location::Offset(0x20)).is_err());
    }
}
