//! What the commands of `zrt step` print.

use super::command::Registers;
use super::{Stepper, name};
use std::io::{BufRead, Result, Write};
use zrt_isa::resources::WaveSize;
use zrt_vgpu::check::debug::Stop;

/// Instructions that `list` prints.
const LIST_INSTRUCTIONS: usize = 8;
/// Dwords of the longest instruction.
const INSTRUCTION_DWORDS_MAX: usize = 4;
/// Operand codes (instruction set reference §2).
const VCC_LO: usize = 106;
const M0: usize = 125;
const EXEC_LO: usize = 126;
/// Values in a row of output.
const COLUMNS: usize = 8;

impl<R: BufRead, W: Write> Stepper<R, W> {
    pub(super) fn show_place(&mut self, stop: &Stop<'_>) -> Result<()> {
        let offset = stop.pc.wrapping_sub(stop.code_va);
        let source = self.line_at(offset).map(|(file, line)| format!("  {file}:{line}"));
        writeln!(
            self.output,
            "{}  +{offset:#06x}  {}{}",
            name(stop),
            stop.instruction.text(if stop.wave.is_wave64() { WaveSize::Wave64 } else { WaveSize::Wave32 }),
            source.unwrap_or_default()
        )
    }

    pub(super) fn show_list(&mut self, stop: &mut Stop<'_>) -> Result<()> {
        let mut va = stop.pc;
        for _ in 0..LIST_INSTRUCTIONS {
            let mut bytes = [0; 4 * INSTRUCTION_DWORDS_MAX];
            let readable = (1..=INSTRUCTION_DWORDS_MAX)
                .rev()
                .find(|dwords| stop.read_memory(va, &mut bytes[..4 * dwords]));
            let Some(dwords) = readable else { break };
            let words: Vec<u32> =
                bytes[..4 * dwords].as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
            let mark = if va == stop.pc { "=>" } else { "  " };
            let offset = va.wrapping_sub(stop.code_va);
            let wave_size = if stop.wave.is_wave64() { WaveSize::Wave64 } else { WaveSize::Wave32 };
            match zrt_isa::decode_for(&words, wave_size) {
                Ok(instruction) => {
                    writeln!(self.output, "{mark} +{offset:#06x}  {}", instruction.text(wave_size))?;
                    va += 4 * u64::from(instruction.dword_count);
                }
                Err(_) => {
                    writeln!(self.output, "{mark} +{offset:#06x}  .long {:#010x}", words[0])?;
                    va += 4;
                }
            }
        }
        Ok(())
    }

    pub(super) fn show_registers(&mut self, stop: &Stop<'_>, what: Registers) -> Result<()> {
        let wave = &stop.wave;
        let pair = |code: usize| u64::from(wave.scalar[code]) | u64::from(wave.scalar[code + 1]) << 32;
        match what {
            Registers::Exec => writeln!(self.output, "exec = {:#018x}", pair(EXEC_LO)),
            Registers::Vcc => writeln!(self.output, "vcc = {:#018x}", pair(VCC_LO)),
            Registers::Scc => writeln!(self.output, "scc = {}", u8::from(wave.scc)),
            Registers::M0 => writeln!(self.output, "m0 = {:#010x}", wave.scalar[M0]),
            Registers::Mode => writeln!(self.output, "mode = {:#04x}", wave.mode),
            Registers::Scalar(first, last) => {
                for code in first..=last {
                    let value = wave.scalar[usize::from(code)];
                    writeln!(self.output, "s{code} = {value:#010x}  {value}")?;
                }
                Ok(())
            }
            Registers::Vector(first, last) => {
                for register in first..=last {
                    writeln!(self.output, "v{register}")?;
                    let row = wave.vector[usize::from(register)].0;
                    self.show_dwords(0, &row, "lane ")?;
                    if let Some(high) = &wave.other_half {
                        let row = high[usize::from(register)].0;
                        self.show_dwords(row.len(), &row, "lane ")?;
                    }
                }
                Ok(())
            }
        }
    }

    pub(super) fn show_memory(&mut self, stop: &mut Stop<'_>, va: u64, dwords: u32) -> Result<()> {
        let mut bytes = vec![0; 4 * dwords as usize];
        if !stop.read_memory(va, &mut bytes) {
            return writeln!(self.output, "{va:#x} is not mapped, or not as far as that");
        }
        let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
        for (index, row) in words.chunks(COLUMNS).enumerate() {
            write!(self.output, "{:#014x}:", va + (4 * COLUMNS * index) as u64)?;
            row.iter().try_for_each(|word| write!(self.output, " {word:08x}"))?;
            writeln!(self.output)?;
        }
        Ok(())
    }

    pub(super) fn show_lds(&mut self, stop: &Stop<'_>, offset: u32, dwords: u32) -> Result<()> {
        let first = offset as usize / 4;
        let allocated = stop.lds.len();
        let Some(words) = stop.lds.get(first..(first + dwords as usize).min(allocated)) else {
            return writeln!(self.output, "the workgroup has {} bytes of LDS", 4 * allocated);
        };
        self.show_dwords(4 * first, words, "+")
    }

    /// Rows of dwords, each with the number of its first: lanes count by one, bytes by four.
    fn show_dwords(&mut self, first: usize, words: &[u32], label: &str) -> Result<()> {
        let unit = if label == "+" { 4 } else { 1 };
        for (index, row) in words.chunks(COLUMNS).enumerate() {
            write!(self.output, "  {label}{:<4}", first + unit * COLUMNS * index)?;
            row.iter().try_for_each(|word| write!(self.output, " {word:08x}"))?;
            writeln!(self.output)?;
        }
        Ok(())
    }
}
