//! `zrt disasm`: machine code as assembly text.

use super::{WaveChoice, write_document, write_text};
use crate::byte_lines;
use crate::error::ToolError;
use crate::listing::{Line, Lines, Listing, instruction_text};
use crate::machine_code::{Format, MachineCode, Section};
use clap::Args;
use serde::{Serialize, Serializer};
use std::fmt::{self, Write as _};
use std::io::{BufRead, Write};
use std::path::Path;
use zrt_isa::decode_like_llvm;
use zrt_isa::resources::WaveSize;
use zrt_isa::zrt::Kernel;

/// The argument that means standard input.
const STANDARD_INPUT: &str = "-";

/// Disassembles gfx1201 machine code, or lists the embedded kernels
#[derive(Debug, Args)]
pub struct Arguments {
    /// Embedded kernel, file (.zrt, ELF code object, raw code), or - to read lines of bytes from standard input as
    /// llvm-mc does (0x00,0x00,0xb0,0xbf); lists the embedded kernels if omitted
    pub kernel: Option<String>,
    /// Wave size [default: what the file states, else 32]
    #[arg(long)]
    pub wave: Option<WaveChoice>,
    /// Write JSON
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let wave_size = arguments.wave.map(WaveSize::from);
    match arguments.kernel.as_deref() {
        None => write_text(&catalogue()?)?,
        Some(STANDARD_INPUT) => {
            lines(std::io::stdin().lock(), wave_size.unwrap_or(WaveSize::Wave32), arguments.json)?;
        }
        Some(name) => file(name, wave_size, arguments.json)?,
    }
    Ok(true)
}

/// Reads one instruction a line, and writes one line of text for each.
fn lines(input: impl BufRead, wave_size: WaveSize, json: bool) -> Result<(), ToolError> {
    let mut output = std::io::BufWriter::new(std::io::stdout().lock());
    let mut all = Vec::new();
    let mut offset = 0;
    for (index, line) in input.split(b'\n').enumerate() {
        let line = line.map_err(|source| ToolError::Read { path: "standard input".to_owned(), source })?;
        let words = match byte_lines::words(&String::from_utf8_lossy(&line)) {
            Ok(Some(words)) => words,
            Ok(None) => continue,
            Err(source) => {
                // The lines before the error are written, as with any filter.
                output.flush()?;
                return Err(ToolError::Bytes { line: index + 1, source });
            }
        };
        let (text, count) = instruction_text(&words, &decode_like_llvm(&words, wave_size), wave_size);
        if json {
            let words = words[..count].iter().map(|word| format!("{word:08x}")).collect();
            all.push(Line { offset, labels: Vec::new(), words, text, target: None, source: None });
        } else {
            writeln!(output, "{text}")?;
        }
        offset += count as u64 * 4;
    }
    if json {
        serde_json::to_writer(&mut output, &all)?;
        writeln!(output)?;
    }
    Ok(output.flush()?)
}

/// The code of a file in JSON.
#[derive(Serialize)]
struct Code<'a> {
    format: Format,
    sections: Vec<CodeSection<'a>>,
}

#[derive(Serialize)]
struct CodeSection<'a> {
    name: &'a str,
    #[serde(serialize_with = "lines_of")]
    lines: &'a Section,
}

/// One line after the other, of which none is kept.
fn lines_of<S: Serializer>(section: &Section, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(Lines::of(section))
}

fn file(name: &str, wave_size: Option<WaveSize>, json: bool) -> Result<(), ToolError> {
    let mut text = String::new();
    let code = read(name, wave_size, |kernel| text = header(kernel))?;
    if json {
        let sections = code.sections.iter().map(|one| CodeSection { name: &one.name, lines: one });
        let sections = sections.collect();
        return write_document(&Code { format: code.format, sections });
    }
    write_text(&format_args!("{text}{}", Sections(&code.sections)))
}

/// The listings of sections, each under its name.
struct Sections<'a>(&'a [Section]);

impl fmt::Display for Sections<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, section) in self.0.iter().enumerate() {
            if index > 0 {
                formatter.write_char('\n')?;
            }
            if !section.name.is_empty() {
                writeln!(formatter, "section {}", section.name.shown(usize::MAX))?;
            }
            write!(formatter, "{}", Listing(section))?;
        }
        Ok(())
    }
}

/// The code of a kernel inside the program, or of a file. `wave_size`, if given, overrides what is said there. `see`
/// gets the container of a kernel inside the program.
pub(super) fn read(
    name: &str,
    wave_size: Option<WaveSize>,
    see: impl FnOnce(&Kernel<'_>),
) -> Result<MachineCode, ToolError> {
    let mut code = if let Some(bytes) = zrt_asm::blob(name) {
        let kernel = parse(name, bytes)?;
        see(&kernel);
        MachineCode::from_kernel(&kernel)
    } else {
        let path = Path::new(name);
        if matches!(path.try_exists(), Ok(false)) {
            return Err(ToolError::Kernel { name: name.to_owned() });
        }
        MachineCode::read(path, wave_size.unwrap_or(WaveSize::Wave32))
            .map_err(|source| ToolError::Code { path: name.to_owned(), source })?
    };
    if let Some(wave_size) = wave_size {
        code.set_wave_size(wave_size);
    }
    Ok(code)
}

fn parse<'a>(name: &str, bytes: &'a [u8]) -> Result<Kernel<'a>, ToolError> {
    Kernel::parse(bytes).map_err(|source| ToolError::Container { path: name.to_owned(), source })
}

/// One line per kernel inside the program.
fn catalogue() -> Result<String, ToolError> {
    zrt_asm::KERNELS.iter().map(|(name, bytes)| Ok(header(&parse(name, bytes)?))).collect()
}

/// What a loader must know, in one line.
fn header(kernel: &Kernel<'_>) -> String {
    let [x, y, z] = kernel.workgroup;
    format!(
        "{}: {} bytes, workgroup {x}x{y}x{z}, wave{}, {} VGPRs, {} SGPRs, {} bytes of LDS, parameters {} bytes\n",
        kernel.name,
        kernel.code.len(),
        kernel.wave_size.lanes(),
        kernel.vgprs,
        kernel.sgprs,
        kernel.lds_bytes,
        kernel.parameter_bytes,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_of_the_program_is_listed_and_decodes_to_its_end() {
        assert_eq!(catalogue().unwrap().lines().count(), zrt_asm::KERNELS.len());
        for (name, _) in zrt_asm::KERNELS {
            let code = read(name, None, |_| ()).unwrap();
            let text = Listing(&code.sections[0]).to_string();
            assert!(!text.contains(".long"), "{name}:\n{text}");
            assert!(text.starts_with(&format!("{name}:\n")) && text.contains("s_endpgm"), "{name}:\n{text}");
        }
    }

    #[test]
    fn an_unknown_kernel_is_an_error() {
        let missing = Arguments { kernel: Some("no_such_kernel".into()), wave: None, json: false };
        assert!(matches!(run(&missing), Err(ToolError::Kernel { .. })));
    }

    /// Raw code has a section without a name.
    #[test]
    fn sections_are_listed_under_their_names_with_a_line_between() {
        let raw = 0xbfb0_0000u32.to_le_bytes();
        let code = MachineCode::parse(&raw, WaveSize::Wave32).unwrap();
        let mut sections = [code.sections.clone(), code.sections].concat();
        sections[1].name = ".text\x07".into();
        let line = "000000  bfb00000                    s_endpgm\n";
        assert_eq!(Sections(&sections).to_string(), format!("{line}\nsection .text \n{line}"));
        assert_eq!(Sections(&sections[1..]).to_string(), format!("section .text \n{line}"));
    }

    #[test]
    fn a_kernel_is_a_line_of_what_a_loader_must_know() {
        let code = [0; 12];
        let kernel = Kernel {
            name: "k",
            code: &code,
            entry: 0,
            rsrc1: 0,
            rsrc2: 0,
            rsrc3: 0,
            wave_size: WaveSize::Wave64,
            user_sgprs: 4,
            vgprs: 24,
            sgprs: 16,
            workgroup: [64, 2, 1],
            lds_bytes: 512,
            scratch_bytes: 0,
            parameter_version: 1,
            parameter_opcode: 1,
            parameter_bytes: 40,
            files: Vec::new(),
            lines: Vec::new(),
            constants: Vec::new(),
        };
        let expected = "k: 12 bytes, workgroup 64x2x1, wave64, 24 VGPRs, 16 SGPRs, 512 bytes of LDS, \
                        parameters 40 bytes\n";
        assert_eq!(header(&kernel), expected);
        // A wave size that is given goes before the file's.
        let wave_size = |asked| read("mega", asked, |_| ()).unwrap().sections[0].entries[0].wave_size;
        assert_eq!(
            (wave_size(None), wave_size(Some(WaveSize::Wave64))),
            (WaveSize::Wave32, WaveSize::Wave64)
        );
    }
}
