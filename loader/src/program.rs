//! A program: kernels with everything that they refer to, whatever it was read from.
//!
//! Contract: plain data, bounded by what its reader accepts.

use crate::image::{Image, Symbol};
use crate::kernel::Kernel;
use crate::lines::LineTable;
use crate::print::PrintFormats;

/// Most kernels of one file.
pub const KERNELS_MAX: usize = 4096;

/// The format a program came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// A linked code object.
    CodeObject,
    /// An object file that the assembler or compiler wrote, not linked.
    Object,
    /// A `.zrt` container.
    Zrt,
    /// Bare machine code.
    Raw,
}

/// Kernels with everything that they refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    pub(crate) format: Format,
    pub(crate) image: Image,
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) symbols: Vec<Symbol>,
    pub(crate) lines: LineTable,
    pub(crate) print_formats: PrintFormats,
}

impl Program {
    /// The format it came from.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The contents of device memory.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Kernels in the order of their code.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The kernel with a name.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Functions, labels and data in ascending order of offset.
    pub fn symbols(&self) -> &[Symbol] {
        &self.symbols
    }

    /// Kernels and functions: offset of the first instruction from the image's start, and name; ascending, one per
    /// offset. Labels, which have no length, are not included. Tools that disassemble count offsets from the last
    /// function before a position.
    pub fn functions(&self) -> Vec<(u64, &str)> {
        let kernels = self.kernels.iter().map(|kernel| (kernel.entry_offset, kernel.name.as_str()));
        let is_function = |symbol: &&Symbol| symbol.is_code && symbol.bytes > 0;
        let others = self.symbols.iter().filter(is_function);
        let mut functions: Vec<(u64, &str)> =
            kernels.chain(others.map(|symbol| (symbol.offset, symbol.name.as_str()))).collect();
        // Stable: a kernel's name comes before other names at the same offset.
        functions.sort_by_key(|(offset, _)| *offset);
        functions.dedup_by_key(|(offset, _)| *offset);
        functions
    }

    /// Source lines; empty if the file has none.
    pub fn lines(&self) -> &LineTable {
        &self.lines
    }

    /// Format strings that messages in a printf buffer refer to.
    pub fn print_formats(&self) -> &PrintFormats {
        &self.print_formats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RawOptions;

    #[test]
    fn functions_are_kernels_and_code_with_a_length_one_for_each_place() {
        let options = RawOptions { name: "k".into(), ..RawOptions::default() };
        let mut program = Program::raw(&[0; 32], &options).expect("code");
        let symbol =
            |name: &str, offset, bytes, is_code| Symbol { name: name.into(), offset, bytes, is_code };
        program.symbols = vec![
            symbol("same place", 0, 4, true),
            symbol("label", 4, 0, true),
            symbol("f", 8, 4, true),
            symbol("data", 12, 4, false),
            symbol("start of nothing", 16, 0, false),
            symbol("g", 20, 1, true),
        ];
        assert_eq!(program.functions(), [(0, "k"), (8, "f"), (20, "g")]);
    }
}
