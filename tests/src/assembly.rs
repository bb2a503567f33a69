//! Kernels assembled during a test.
//!
//! Contract: needs `llvm-mc-19` and `llvm-objcopy-19`; without them a case is recorded as skipped, and with
//! `ZRT_REQUIRE_LLVM` set it fails.

use std::process::Command;
use zrt_isa::resources::WaveSize;
use zrt_isa::zrt;
use zrt_needs::TemporaryFolder;

/// What a launch of assembled code needs to know about it.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Name in reports.
    pub name: &'static str,
    /// Work-items of a group.
    pub work_items: u16,
    /// LDS in bytes.
    pub lds_bytes: u32,
}

/// Vector registers that [`container`] asks for.
const VECTOR_REGISTERS: u16 = 64;

/// Whether LLVM's tools are installed; panics if they are required.
pub fn has_tools() -> bool {
    zrt_needs::programs(&["llvm-mc-19", "llvm-objcopy-19"])
}

fn run(command: &mut Command, source: &str) {
    let output = command.output().expect("the tool starts");
    assert!(output.status.success(), "{}\n{source}", String::from_utf8_lossy(&output.stderr));
}

/// Assembled code and where its source lines begin.
#[derive(Clone, Debug)]
pub struct Code {
    /// The instructions, padding not included.
    pub bytes: Vec<u8>,
    /// Ascending by offset; the file is the container's only one.
    pub lines: Vec<zrt::Line>,
}

/// The code of a source text. Each line is given a label, and a section of their offsets is the line table: it also
/// knows lines of data, which the assembler's own leaves out. Not for sources that define macros.
pub fn assemble(source: &str) -> Code {
    let scratch = TemporaryFolder::new("assembly");
    let [text, object, binary] = ["k.s", "k.o", "k.bin"].map(|name| scratch.join(name));
    let (mut labelled, mut table) = (String::new(), String::new());
    for (index, line) in source.lines().enumerate() {
        labelled.push_str(&format!(".Lline_{index}:\n{line}\n"));
        table.push_str(&format!(".long .Lline_{index} - .Lline_0\n"));
    }
    std::fs::write(&text, format!("{labelled}.section .zrt_lines,\"a\",@progbits\n{table}"))
        .expect("writable");
    let target = ["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1201", "-filetype=obj"];
    run(Command::new("llvm-mc-19").args(target).arg(&text).arg("-o").arg(&object), source);
    let section = |name: &str| {
        let only = ["-O", "binary", "-j", name];
        run(Command::new("llvm-objcopy-19").args(only).args([&object, &binary]), source);
        std::fs::read(&binary).expect("a section")
    };
    let bytes = section(".text");
    let lines = line_table(&section(".zrt_lines"), bytes.len());
    Code { bytes, lines }
}

/// The line table of the offsets of all lines. Of lines at one offset only the last holds code.
fn line_table(offsets: &[u8], code_bytes: usize) -> Vec<zrt::Line> {
    let mut lines: Vec<zrt::Line> = Vec::new();
    for (index, offset) in offsets.chunks_exact(4).enumerate() {
        let code_offset = u32::from_le_bytes([offset[0], offset[1], offset[2], offset[3]]);
        lines.pop_if(|last| last.code_offset == code_offset);
        lines.push(zrt::Line { code_offset, file: 0, line: index as u32 + 1 });
    }
    lines.retain(|line| (line.code_offset as usize) < code_bytes);
    lines
}

/// A container for the code, from a source `kernel.s`: wave32, CU mode, denormals kept, `s[0:1]` the parameter block of
/// 32 bytes.
pub fn container(shape: &Shape, code: &Code) -> Vec<u8> {
    let kernel = zrt::Kernel {
        name: shape.name,
        code: &code.bytes,
        entry: 0,
        // Denormals kept, MEM_ORDERED, FWD_PROGRESS, CU mode (instruction set reference §10), and the vector registers
        // in eights.
        rsrc1: 0xC00F_0000 | (u32::from(VECTOR_REGISTERS) / 8 - 1),
        // Two user SGPRs and the workgroup id in X; LDS in units of 512 bytes.
        rsrc2: 0x84 | shape.lds_bytes.div_ceil(512) << 15,
        rsrc3: 0,
        wave_size: WaveSize::Wave32,
        user_sgprs: 2,
        vgprs: VECTOR_REGISTERS,
        sgprs: 106,
        workgroup: [shape.work_items, 1, 1],
        lds_bytes: shape.lds_bytes,
        scratch_bytes: 0,
        parameter_version: 1,
        parameter_opcode: 0x7fff,
        parameter_bytes: 32,
        files: vec!["kernel.s"],
        lines: code.lines.clone(),
        constants: Vec::new(),
    };
    kernel.write().expect("a sound container")
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_isa::resources::{Rsrc1, Rsrc2};

    /// Whether a program of this name is in a folder of the search path.
    fn is_installed(name: &str) -> bool {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(name).is_file())
    }

    #[test]
    fn tools_are_those_that_are_installed() {
        assert_eq!(has_tools(), is_installed("llvm-mc-19") && is_installed("llvm-objcopy-19"));
    }

    #[test]
    fn the_last_line_at_an_offset_holds_its_code() {
        let offsets: Vec<u8> = [0u32, 0, 4, 12, 12, 16, 16].into_iter().flat_map(u32::to_le_bytes).collect();
        let found: Vec<(u32, u32)> =
            line_table(&offsets, 16).iter().map(|line| (line.code_offset, line.line)).collect();
        // Lines 6 and 7 are after the code.
        assert_eq!(found, [(0, 2), (4, 3), (12, 5)]);
    }

    #[test]
    fn a_container_says_of_its_registers_what_it_holds() {
        let shape = Shape { name: "k", work_items: 96, lds_bytes: 1025 };
        // s_endpgm (instruction set reference §1).
        let code = Code {
            bytes: vec![0, 0, 0xb0, 0xbf],
            lines: vec![zrt::Line { code_offset: 0, file: 0, line: 3 }],
        };
        let bytes = container(&shape, &code);
        let kernel = zrt::Kernel::parse(&bytes).expect("a container");
        let (rsrc1, rsrc2) =
            (Rsrc1::parse(kernel.rsrc1).expect("sound"), Rsrc2::parse(kernel.rsrc2).expect("sound"));
        assert_eq!(rsrc1.vgprs(WaveSize::Wave32), u32::from(VECTOR_REGISTERS));
        assert_eq!((rsrc1.memory_ordered, rsrc1.forward_progress, rsrc1.wgp_mode), (true, true, false));
        assert_eq!((rsrc2.user_sgprs, rsrc2.workgroup_id, rsrc2.lds_blocks), (2, [true, false, false], 3));
        assert_eq!((kernel.work_items(), kernel.source_line(0)), (96, Some(("kernel.s", 3))));
    }
}
