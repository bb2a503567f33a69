//! Lines of source files, by the names that line tables have for them.
//!
//! Contract: a name is looked for from the current folder, then from the folder of the code. Only regular files are
//! read, at most `FILES_MAX` of them, none of more than `FILE_BYTES_MAX` bytes and no more once they have
//! `ALL_BYTES_MAX` together: names come from outside. A line is returned without surrounding blanks and control
//! characters, and cut after `LINE_CHARACTERS_MAX`. Each file is read once; a line is found at once, wherever it is.

use crate::bounded_read;
use crate::launch::{LaunchError, Unfinished};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use zrt_bringup::Finding;
use zrt_device::Place;

/// Largest source file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Bytes of all source files, and of where their lines begin, after which no more are read.
const ALL_BYTES_MAX: usize = 16_777_216;
/// Maximum number of source files that are read.
const FILES_MAX: usize = 64;
/// Bytes of a line that are looked at; blanks before its text count.
const LINE_BYTES_MAX: usize = 4096;
/// Longest line that is returned, in characters.
const LINE_CHARACTERS_MAX: usize = 160;

/// Source files, as far as they were requested.
#[derive(Debug, Default)]
pub struct SourceText {
    /// The folder of the code.
    folder: PathBuf,
    /// Each requested file; `None` if it cannot be read.
    files: HashMap<String, Option<Source>>,
    /// The bytes of all.
    bytes: usize,
}

/// The text of a file.
#[derive(Debug)]
struct Source {
    text: String,
    /// Where each line begins. A text has at most three times [`FILE_BYTES_MAX`] bytes.
    starts: Vec<u32>,
}

impl Source {
    fn new(text: String) -> Source {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at as u32 + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        Source { text, starts }
    }

    /// A line, counted from 1, with its end, or its first `LINE_BYTES_MAX` bytes.
    fn line(&self, number: u32) -> Option<&str> {
        let start = *self.starts.get((number as usize).checked_sub(1)?)? as usize;
        let end = self.starts.get(number as usize).map_or(self.text.len(), |end| *end as usize);
        // A character has four bytes at most.
        let cut = end.min(start + LINE_BYTES_MAX);
        (0..4).find_map(|less| self.text.get(start..cut.checked_sub(less)?)).filter(|line| !line.is_empty())
    }

    /// What is kept of it.
    fn bytes(&self) -> usize {
        self.text.len() + size_of_val(&*self.starts)
    }
}

impl SourceText {
    /// The sources of the code in a file.
    pub fn of(code: &Path) -> SourceText {
        let folder = code.parent().unwrap_or(Path::new("")).to_owned();
        SourceText { folder, ..SourceText::default() }
    }

    /// A line, counted from 1; `None` if the file cannot be read, has no such line, or the line is blank.
    pub fn line(&mut self, file: &str, line: u32) -> Option<String> {
        if !self.files.contains_key(file) {
            if self.files.len() == FILES_MAX || self.bytes >= ALL_BYTES_MAX {
                return None;
            }
            let text = read(Path::new(file)).or_else(|| read(&self.folder.join(file)));
            let source = text.map(Source::new);
            self.bytes += source.as_ref().map_or(0, Source::bytes);
            self.files.insert(file.to_owned(), source);
        }
        let line = self.files.get(file)?.as_ref()?.line(line)?.trim();
        let shown = line.chars().map(|one| if one.is_control() { ' ' } else { one });
        (!line.is_empty()).then(|| shown.take(LINE_CHARACTERS_MAX).collect())
    }

    /// Fills in the text of a place's line.
    pub fn fill(&mut self, place: &mut Place) {
        place.source_text = place.source.as_ref().and_then(|(file, line)| self.line(file, *line));
    }

    /// The same for what a kernel that did not end leaves.
    pub fn fill_error(&mut self, error: &mut LaunchError) {
        let LaunchError::Device { source, findings, .. } = error else { return };
        self.fill_all(findings.iter_mut().map(|located| &mut located.finding));
        if let Unfinished::Fault(fault) = source
            && let Some(wave) = &mut fault.fault.wave
        {
            self.fill(&mut wave.place);
        }
    }

    /// The same for both places of each finding.
    pub fn fill_all<'f>(&mut self, findings: impl IntoIterator<Item = &'f mut Finding>) {
        for finding in findings {
            finding.place.iter_mut().chain(&mut finding.other).for_each(|place| self.fill(place));
        }
    }
}

/// The text of a regular file; bytes that are not UTF-8 are replaced.
fn read(path: &Path) -> Option<String> {
    // A pipe would wait for its writer.
    std::fs::metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    let bytes = bounded_read::read(path, FILE_BYTES_MAX).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_from_regular_files_only() {
        let folder = zrt_needs::TemporaryFolder::new("source-text");
        std::fs::write(folder.join("k.c"), "  int a;\t\n\n\x1b[31mint\tb;\nend").unwrap();
        std::fs::write(folder.join("long.c"), "x".repeat(1000)).unwrap();
        std::fs::File::create(folder.join("huge.c")).unwrap().set_len(FILE_BYTES_MAX + 1).unwrap();
        let mut text = SourceText::of(&folder.join("k.co"));
        assert_eq!(text.line("k.c", 1).as_deref(), Some("int a;"));
        assert_eq!(text.line("k.c", 2), None, "blank");
        assert_eq!(text.line("k.c", 3).as_deref(), Some(" [31mint b;"));
        assert_eq!(text.line("k.c", 4).as_deref(), Some("end"));
        assert_eq!((text.line("k.c", 0), text.line("k.c", 5)), (None, None));
        assert_eq!(text.line("long.c", 1).map(|line| line.len()), Some(LINE_CHARACTERS_MAX));
        for name in ["absent.c", "huge.c", "/dev/zero", "."] {
            assert_eq!(text.line(name, 1), None, "{name}");
        }
        (0..FILES_MAX).for_each(|index| assert_eq!(text.line(&format!("{index}"), 1), None));
        assert_eq!(text.files.len(), FILES_MAX);
        assert_eq!(text.line("k.c", 1).as_deref(), Some("int a;"), "it was read before");
    }

    /// Bytes that are not UTF-8 become three each, and each line has four more.
    #[test]
    fn no_more_files_are_read_after_16_mebibytes() {
        let folder = zrt_needs::TemporaryFolder::new("source-text-bytes");
        let name = |index: usize| format!("{index}.c");
        let whole = 4 << 20;
        let files = [(0xff, whole), (b'x', whole - 9), (b'x', whole - 8), (b'x', 4), (b'\n', whole)];
        for (index, (byte, bytes)) in files.into_iter().enumerate() {
            std::fs::write(folder.join(name(index)), vec![byte; bytes]).unwrap();
        }
        let read = |order: [usize; 4]| {
            let mut text = SourceText::of(&folder.join("k.co"));
            order.map(|index| text.line(&name(index), 1).is_some())
        };
        assert_eq!(read([0, 1, 3, 2]), [true, true, true, false]);
        assert_eq!(read([0, 2, 3, 0]), [true, true, false, true]);
        assert_eq!(read([4, 3, 2, 1]), [false; 4]);
    }

    #[test]
    fn the_beginning_of_a_line_is_enough() {
        let source = |blanks: usize| Source::new(" ".repeat(blanks) + "é\nb");
        let shown = |blanks| source(blanks).line(1).map(|line| (line.len(), line.trim_start().len()));
        assert_eq!(shown(0), Some((3, 3)));
        assert_eq!(shown(4094), Some((4096, 2)));
        assert_eq!([4095, 4096].map(shown), [Some((4095, 0)), Some((4096, 0))]);
        assert_eq!(source(5000).line(2), Some("b"));
    }

    /// Lines are told apart wherever they are, and their ends are no part of them.
    #[test]
    fn a_line_is_found_by_where_it_begins() {
        let source = Source::new("a\n\nbc\r\nd".to_owned());
        let lines = [0, 1, 2, 3, 4, 5].map(|number| source.line(number));
        assert_eq!(lines, [None, Some("a\n"), Some("\n"), Some("bc\r\n"), Some("d"), None]);
        let ended = Source::new("a\n".to_owned());
        assert_eq!([1, 2, 3].map(|number| ended.line(number)), [Some("a\n"), None, None]);
    }

    /// Both places of a finding, and the wave that a fault stopped.
    #[test]
    fn places_get_the_text_of_their_line() {
        let folder = zrt_needs::TemporaryFolder::new("source-text-places");
        std::fs::write(folder.join("k.c"), "one\ntwo\n").unwrap();
        let mut text = SourceText::of(&folder.join("k.co"));
        let place = |line| Place {
            pc: 0,
            kernel: None,
            offset: None,
            source: Some(("k.c".to_owned(), line)),
            source_text: None,
        };
        let finding = Finding { place: Some(place(1)), other: Some(place(2)), ..Finding::default() };
        let wave = zrt_bringup::FaultedWave {
            place: place(2),
            instruction: String::new(),
            workgroup: [0; 3],
            wave: 0,
            lane: None,
            launched_at: None,
        };
        let fault = zrt_bringup::DeviceFault {
            what: String::new(),
            address: None,
            wave: Some(wave),
            place: String::new(),
            is_final: true,
        };
        let mut error = LaunchError::Device {
            work: String::new(),
            source: Unfinished::Fault(Box::new(crate::launch::KernelFault { fault, remark: None })),
            findings: vec![crate::launch::Located { finding, action: None, number: 0 }],
            printed: Box::default(),
            waves: Box::default(),
        };
        text.fill_error(&mut error);
        let LaunchError::Device { source, findings, .. } = &error else { unreachable!() };
        let told = |place: &Place| place.source_text.clone();
        let found = &findings[0].finding;
        assert_eq!(found.place.as_ref().and_then(told).as_deref(), Some("one"));
        assert_eq!(found.other.as_ref().and_then(told).as_deref(), Some("two"));
        let wave = source.fault().and_then(|fault| fault.fault.wave.as_ref()).unwrap();
        assert_eq!(told(&wave.place).as_deref(), Some("two"));
    }
}
