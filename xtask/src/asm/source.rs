//! A kernel's source: its text with the includes in place, where each line came from, and its directives.
//!
//! Contract: reads files below `asm/gfx1201` only. Directives are comments of the `.s` file that start with `//!`:
//! `parameters NAME`, `workgroup X Y Z`, `vgprs N`, `sgprs N`, `lds BYTES`; each exactly once. A file with the word
//! FORMAT in its name has lines `formats NAME=N ...` for `vgprs N`: it is the source of a kernel for each of them, with
//! the format's name wherever FORMAT stands.

use super::AsmError;
use std::fs;
use std::path::Path;

/// What stands for a format, in names of files and in their text.
const FORMAT: &str = "FORMAT";
/// Includes may nest this deep.
const INCLUDE_DEPTH_MAX: usize = 4;

/// One line with its origin.
#[derive(Debug)]
struct SourceLine {
    file: usize,
    number: usize,
    text: String,
}

/// The text of one kernel.
#[derive(Debug)]
pub struct Source {
    /// Files by number, relative to the repository; the `.s` file first.
    pub files: Vec<String>,
    lines: Vec<SourceLine>,
}

/// What the source says about itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Directives {
    /// Name of the parameter block's type.
    pub parameters: String,
    /// Work-items of a group.
    pub workgroup: [u16; 3],
    /// Vector registers.
    pub vgprs: u16,
    /// Scalar registers.
    pub sgprs: u16,
    /// LDS of a group.
    pub lds_bytes: u32,
}

/// Where a kernel comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Name of the `.s` file.
    stem: String,
    /// Of a file for many formats, which one.
    format: Option<Format>,
}

/// A format in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Format {
    name: String,
    vgprs: String,
}

impl Kernel {
    /// The kernels of `asm/gfx1201/STEM.s`.
    pub fn all_of(root: &Path, stem: &str) -> Result<Vec<Kernel>, AsmError> {
        if !stem.contains(FORMAT) {
            return Ok(vec![Kernel { name: stem.into(), stem: stem.into(), format: None }]);
        }
        let path = root.join(format!("asm/gfx1201/{stem}.s"));
        let text = fs::read_to_string(&path).map_err(|source| AsmError::File { path, source })?;
        let words = text
            .lines()
            .filter(|line| is_of_formats(line))
            .flat_map(|line| line.trim_start_matches("//!").split_whitespace().skip(1));
        words
            .map(|word| {
                let (name, vgprs) = word.split_once('=').ok_or_else(|| AsmError::Source {
                    path: format!("asm/gfx1201/{stem}.s"),
                    reason: format!("`//! formats` takes NAME=VGPRS, not {word:?}"),
                })?;
                let format = Format { name: name.into(), vgprs: vgprs.into() };
                Ok(Kernel { name: stem.replace(FORMAT, name), stem: stem.into(), format: Some(format) })
            })
            .collect()
    }
}

fn is_of_formats(line: &str) -> bool {
    line.strip_prefix("//! formats").is_some_and(|rest| rest.starts_with(' '))
}

impl Source {
    /// Reads the source of a kernel and what it includes.
    pub fn read(root: &Path, kernel: &Kernel) -> Result<Source, AsmError> {
        let mut source = Source { files: Vec::new(), lines: Vec::new() };
        source.add_file(root, &format!("{}.s", kernel.stem), 0)?;
        if let Some(format) = &kernel.format {
            source.lines.retain(|line| line.file != 0 || !is_of_formats(&line.text));
            for line in source.lines.iter_mut().filter(|line| line.file == 0) {
                line.text = line.text.replace(FORMAT, &format.name.to_uppercase());
            }
            let text = format!("//! vgprs {}", format.vgprs);
            source.lines.insert(0, SourceLine { file: 0, number: 1, text });
        }
        Ok(source)
    }

    fn add_file(&mut self, root: &Path, path: &str, depth: usize) -> Result<(), AsmError> {
        let relative = format!("asm/gfx1201/{path}");
        let full = root.join(&relative);
        let text = fs::read_to_string(&full).map_err(|source| AsmError::File { path: full, source })?;
        let file = self.files.len();
        self.files.push(relative);
        if depth > INCLUDE_DEPTH_MAX {
            return Err(self.error(format!("includes nest deeper than {INCLUDE_DEPTH_MAX}")));
        }
        for (index, line) in text.lines().enumerate() {
            match line.trim().strip_prefix(".include") {
                Some(rest) => self.add_file(root, rest.trim().trim_matches('"'), depth + 1)?,
                None => self.lines.push(SourceLine { file, number: index + 1, text: line.to_owned() }),
            }
        }
        Ok(())
    }

    /// Every line with its file and number.
    pub fn numbered_lines(&self) -> impl Iterator<Item = (String, &str)> {
        self.lines
            .iter()
            .map(|line| (format!("{}:{}", self.files[line.file], line.number), line.text.as_str()))
    }

    /// Fingerprint of the whole text.
    pub fn fingerprint(&self) -> u64 {
        let text: String = self.lines.iter().map(|line| format!("{}\n", line.text)).collect();
        zrt_asm::source::fingerprint(text.as_bytes())
    }

    /// The text for the assembler: every instruction is preceded by a `.loc` that names its place, so that the line
    /// table points into the body and not at the macro's use.
    pub fn with_locations(&self) -> String {
        let mut text = String::new();
        for (index, file) in self.files.iter().enumerate() {
            text.push_str(&format!(".file {} \"{file}\"\n", index + 1));
        }
        for line in &self.lines {
            let is_code =
                line.text.trim_start().starts_with(|first: char| first.is_ascii_lowercase() || first == '\\');
            if is_code {
                text.push_str(&format!(".loc {} {}\n", line.file + 1, line.number));
            }
            text.push_str(&line.text);
            text.push('\n');
        }
        text
    }

    /// The directives.
    pub fn directives(&self) -> Result<Directives, AsmError> {
        Ok(Directives {
            parameters: self.directive("parameters")?.to_owned(),
            workgroup: self.workgroup()?,
            vgprs: self.number("vgprs")?,
            sgprs: self.number("sgprs")?,
            lds_bytes: self.number("lds")?,
        })
    }

    fn directive(&self, key: &str) -> Result<&str, AsmError> {
        let mut values = self.lines.iter().filter(|line| line.file == 0).filter_map(|line| {
            line.text.strip_prefix("//!")?.trim().strip_prefix(key)?.strip_prefix(' ').map(str::trim)
        });
        match (values.next(), values.next()) {
            (Some(value), None) => Ok(value),
            (None, _) => Err(self.error(format!("the directive `//! {key}` is missing"))),
            (Some(_), Some(_)) => Err(self.error(format!("the directive `//! {key}` stands twice"))),
        }
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Result<T, AsmError> {
        let value = self.directive(key)?;
        value.parse().map_err(|_| self.error(format!("`//! {key}` takes a number, not {value:?}")))
    }

    fn workgroup(&self) -> Result<[u16; 3], AsmError> {
        let value = self.directive("workgroup")?;
        let sizes: Result<Vec<u16>, _> = value.split_whitespace().map(str::parse).collect();
        let sizes: Option<[u16; 3]> = sizes.ok().and_then(|sizes| sizes.try_into().ok());
        sizes.ok_or_else(|| self.error(format!("`//! workgroup` takes three numbers, not {value:?}")))
    }

    /// An error about this source.
    pub fn error(&self, reason: String) -> AsmError {
        AsmError::Source { path: self.files.first().cloned().unwrap_or_default(), reason }
    }
}

#[cfg(test)]
impl Source {
    /// A source of one file.
    pub fn made_up(text: &str) -> Source {
        let line =
            |(index, text): (usize, &str)| SourceLine { file: 0, number: index + 1, text: text.into() };
        let lines = text.lines().enumerate().map(line).collect();
        Source { files: vec!["asm/gfx1201/made_up.s".into()], lines }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made_up(name: &str, text: &str) -> zrt_needs::TemporaryFolder {
        let root = zrt_needs::TemporaryFolder::new(name);
        fs::create_dir_all(root.join("asm/gfx1201")).unwrap();
        fs::write(root.join("asm/gfx1201/a_FORMAT_b.s"), text).unwrap();
        root
    }

    #[test]
    fn a_file_for_formats_is_a_kernel_for_each() {
        let root = made_up("formats", "//! formats q1=8\n//! formats q2_k=16\n\tFORMAT_BODY FORMAT\n");
        let kernels = Kernel::all_of(&root, "a_FORMAT_b").unwrap();
        let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name.as_str()).collect();
        assert_eq!(names, ["a_q1_b", "a_q2_k_b"]);
        let source = Source::read(&root, &kernels[1]).unwrap();
        let lines: Vec<(String, &str)> = source.numbered_lines().collect();
        let at = |number: u32| format!("asm/gfx1201/a_FORMAT_b.s:{number}");
        assert_eq!(lines, [(at(1), "//! vgprs 16"), (at(3), "\tQ2_K_BODY Q2_K")]);
        assert_eq!(source.number::<u16>("vgprs").unwrap(), 16);
    }

    #[test]
    fn a_format_without_registers_is_an_error() {
        let root = made_up("word", "//! formats q1\n");
        let error = Kernel::all_of(&root, "a_FORMAT_b").unwrap_err().to_string();
        assert!(error.contains("NAME=VGPRS"), "{error}");
    }

    #[test]
    fn an_instruction_is_preceded_by_its_place() {
        let root =
            made_up("places", ".set SIZE, 4\n.include \"body.inc\"\nLABEL:\n\tBODY v1\n  s_endpgm\n\n");
        fs::write(root.join("asm/gfx1201/body.inc"), "// A body.\n.macro BODY r\n\tv_nop\n\\r v2\n.endm\n")
            .unwrap();
        let kernel = Kernel { name: "one".into(), stem: "a_FORMAT_b".into(), format: None };
        assert_eq!(
            Source::read(&root, &kernel).unwrap().with_locations(),
            ".file 1 \"asm/gfx1201/a_FORMAT_b.s\"\n.file 2 \"asm/gfx1201/body.inc\"\n\
             .set SIZE, 4\n\
             // A body.\n.macro BODY r\n.loc 2 3\n\tv_nop\n.loc 2 4\n\\r v2\n.endm\n\
             LABEL:\n\tBODY v1\n.loc 1 5\n  s_endpgm\n\n"
        );
    }

    #[test]
    fn includes_nest_four_deep() {
        let root = made_up("deep", ".include \"1.inc\"\n");
        let kernel = Kernel { name: "one".into(), stem: "a_FORMAT_b".into(), format: None };
        for number in 1..=5 {
            let path = root.join(format!("asm/gfx1201/{number}.inc"));
            fs::write(path, format!(".include \"{}.inc\"\n", number + 1)).unwrap();
        }
        let refused = Source::read(&root, &kernel).unwrap_err().to_string();
        assert_eq!(refused, "asm/gfx1201/a_FORMAT_b.s: includes nest deeper than 4");
        fs::write(root.join("asm/gfx1201/4.inc"), "\ts_endpgm\n").unwrap();
        let source = Source::read(&root, &kernel).unwrap();
        let lines: Vec<(String, &str)> = source.numbered_lines().collect();
        assert_eq!(lines, [("asm/gfx1201/4.inc:1".to_owned(), "\ts_endpgm")]);
    }

    #[test]
    fn directives_are_read_or_told() {
        let text = "//! parameters Copy\n//! workgroup 64 2 1\n//! vgprs 10\n//! sgprs 98\n//! lds 512\n";
        let parameters = "Copy".to_owned();
        let read = Directives { parameters, workgroup: [64, 2, 1], vgprs: 10, sgprs: 98, lds_bytes: 512 };
        assert_eq!(Source::made_up(text).directives().unwrap(), read);
        for (find, replace, reason) in [
            ("64 2 1", "64 2", "`//! workgroup` takes three numbers, not \"64 2\""),
            ("64 2 1", "64 2 1 1", "`//! workgroup` takes three numbers, not \"64 2 1 1\""),
            ("64 2 1", "64 2 x", "`//! workgroup` takes three numbers, not \"64 2 x\""),
            ("vgprs 10", "vgprs ten", "`//! vgprs` takes a number, not \"ten\""),
            ("sgprs 98", "sgprs98", "the directive `//! sgprs` is missing"),
            ("//! sgprs", "//! lds 4\n//! sgprs", "the directive `//! lds` stands twice"),
        ] {
            let error = Source::made_up(&text.replace(find, replace)).directives().unwrap_err();
            assert_eq!(error.to_string(), format!("asm/gfx1201/made_up.s: {reason}"));
        }
    }
}
