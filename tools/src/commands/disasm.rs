//! `zrt disasm`: the machine code of a kernel as assembly text.

use super::write_text;
use crate::error::ToolError;
use clap::Args;
use std::fmt::Write;
use zrt_isa::decode;
use zrt_isa::zrt::Kernel;

/// Shows a kernel's machine code as assembly, or lists the kernels
#[derive(Debug, Args)]
pub struct Arguments {
    /// Name of a kernel inside the program, or a .zrt file; without it the kernels are listed
    pub kernel: Option<String>,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<bool, ToolError> {
    let Some(name) = &arguments.kernel else {
        return list().and_then(|text| write_text(&text)).map(|()| true);
    };
    let read;
    let bytes = match zrt_asm::blob(name) {
        Some(bytes) => bytes,
        None => {
            read = read_file(name)?;
            &read
        }
    };
    let kernel = parse(name, bytes)?;
    write_text(&(header(&kernel) + &listing(&kernel)))?;
    Ok(true)
}

fn read_file(path: &str) -> Result<Vec<u8>, ToolError> {
    std::fs::read(path).map_err(|source| match source.kind() {
        std::io::ErrorKind::NotFound => ToolError::Kernel { name: path.to_owned() },
        _ => ToolError::Read { path: path.to_owned(), source },
    })
}

fn parse<'a>(name: &str, bytes: &'a [u8]) -> Result<Kernel<'a>, ToolError> {
    Kernel::parse(bytes).map_err(|source| ToolError::Container { path: name.to_owned(), source })
}

/// One line per kernel inside the program.
fn list() -> Result<String, ToolError> {
    zrt_asm::KERNELS.iter().map(|(name, bytes)| Ok(header(&parse(name, bytes)?))).collect()
}

/// What a loader must know, in one line.
fn header(kernel: &Kernel<'_>) -> String {
    let [x, y, z] = kernel.workgroup;
    format!(
        "{}: {} bytes, workgroup {x}x{y}x{z}, wave{}, {} VGPRs, {} SGPRs, {} bytes of LDS, parameters {} bytes\n",
        kernel.name,
        kernel.code.len(),
        if kernel.wave_size == zrt_isa::resources::WaveSize::Wave32 { 32 } else { 64 },
        kernel.vgprs,
        kernel.sgprs,
        kernel.lds_bytes,
        kernel.parameter_bytes,
    )
}

/// One line per instruction: offset, text, and the source line where it changes. Words that are no instruction are
/// shown as such.
fn listing(kernel: &Kernel<'_>) -> String {
    let words: Vec<u32> = kernel.code_dwords().collect();
    let mut text = String::new();
    let mut source = None;
    let mut at = 0;
    while at < words.len() {
        let offset = (at * 4) as u32; // A container is at most 64 MiB.
        let line = kernel.source_line(offset);
        if line != source
            && let Some((file, number)) = line
        {
            push(&mut text, format_args!("; {file}:{number}"));
        }
        source = line;
        let length = match decode(&words[at..]) {
            Ok(instruction) => {
                push(&mut text, format_args!("{offset:06x}  {instruction}"));
                usize::from(instruction.dword_count).max(1)
            }
            Err(error) => {
                push(&mut text, format_args!("{offset:06x}  .long {:#010x}  ; {error}", words[at]));
                1
            }
        };
        at += length;
    }
    text
}

fn push(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_isa::resources::WaveSize;

    #[test]
    fn code_is_listed_with_its_source_lines() {
        // s_nop 0; s_endpgm; and a word that is no instruction.
        let words: [u32; 3] = [0xbf80_0000, 0xbfb0_0000, 0xffff_ffff];
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let line = |code_offset, line| zrt_isa::zrt::Line { code_offset, file: 0, line };
        let kernel = Kernel {
            name: "nothing",
            code: &code,
            entry: 0,
            rsrc1: 0,
            rsrc2: 0,
            rsrc3: 0,
            wave_size: WaveSize::Wave32,
            user_sgprs: 2,
            vgprs: 8,
            sgprs: 8,
            workgroup: [32, 1, 1],
            lds_bytes: 0,
            scratch_bytes: 0,
            parameter_version: 1,
            parameter_opcode: 1,
            parameter_bytes: 8,
            files: vec!["nothing.s"],
            lines: vec![line(0, 3), line(4, 4)],
            constants: vec![],
        };
        let text = listing(&kernel);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[..4], ["; nothing.s:3", "000000  s_nop 0", "; nothing.s:4", "000004  s_endpgm"]);
        assert!(lines[4].starts_with("000008  .long 0xffffffff"), "{text}");
        assert!(header(&kernel).starts_with("nothing: 12 bytes, workgroup 32x1x1, wave32, 8 VGPRs"));
    }

    #[test]
    fn every_kernel_of_the_program_is_listed_and_decodes_to_its_end() {
        let list = list().unwrap();
        assert_eq!(list.lines().count(), zrt_asm::KERNELS.len());
        for (name, bytes) in zrt_asm::KERNELS {
            let kernel = parse(name, bytes).unwrap();
            let text = listing(&kernel);
            assert!(!text.contains(".long"), "{name}:\n{text}");
            assert!(text.contains("s_endpgm"), "{name}:\n{text}");
        }
    }

    #[test]
    fn an_unknown_kernel_is_an_error() {
        let missing = Arguments { kernel: Some("no_such_kernel".into()) };
        assert!(matches!(run(&missing), Err(ToolError::Kernel { .. })));
    }
}
