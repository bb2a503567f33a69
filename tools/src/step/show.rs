//! What the commands of `zrt step` print.

use super::command::{Format, MemoryPlace, Registers};
use super::wave::{EXEC_LO, M0, VCC_LO, wave_size};
use super::{Outcome, Stepper, name};
use std::io::{BufRead, Result, Write};
use zrt_script::ElementType;
use zrt_vgpu::check::debug::Stop;

/// Instructions that `list` prints.
const LIST_INSTRUCTIONS: usize = 8;
/// Dwords of the longest instruction.
const INSTRUCTION_DWORDS_MAX: usize = 4;
/// Values in a row of output.
pub(super) const COLUMNS: usize = 8;

/// Dwords as numbers of a type, one after the other; in hexadecimal without a type.
fn numbers(words: &[u32], element: Option<ElementType>) -> String {
    let Some(element) = element else {
        return words.iter().map(|word| format!("{word:08x}")).collect::<Vec<_>>().join(" ");
    };
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let texts: Vec<String> = bytes.chunks(element.bytes()).map(|number| element.text(number)).collect();
    texts.join(",")
}

/// Registers that a number of a type takes.
fn registers_of(element: Option<ElementType>) -> usize {
    element.map_or(1, |element| element.bytes().div_ceil(4))
}

impl<R: BufRead, W: Write> Stepper<R, W> {
    pub(super) fn show_place(&mut self, stop: &Stop<'_>) -> Result<()> {
        let offset = self.code.offset(stop.pc, stop.code_va);
        let source = self.code.source(offset).map(|source| format!("  {source}")).unwrap_or_default();
        let (place, text) = (self.code.place(offset), stop.instruction.text(wave_size(stop)));
        writeln!(self.output, "{}  {place}  {text}{source}", name(stop))
    }

    pub(super) fn show_list(&mut self, stop: &mut Stop<'_>) -> Result<()> {
        let mut va = stop.pc;
        let mut last_source = None;
        for _ in 0..LIST_INSTRUCTIONS {
            let mut bytes = [0; 4 * INSTRUCTION_DWORDS_MAX];
            let readable = (1..=INSTRUCTION_DWORDS_MAX)
                .rev()
                .find(|dwords| stop.read_memory(va, &mut bytes[..4 * dwords]));
            let Some(dwords) = readable else { break };
            let words: Vec<u32> =
                bytes[..4 * dwords].as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
            let offset = self.code.offset(va, stop.code_va);
            let source = self.code.source(offset);
            if source != last_source
                && let Some(source) = &source
            {
                writeln!(self.output, "   ; {source}")?;
            }
            last_source = source;
            let mark = if va == stop.pc { "=>" } else { "  " };
            let (place, wave_size) = (self.code.place(offset), wave_size(stop));
            match zrt_isa::decode_for(&words, wave_size) {
                Ok(instruction) => {
                    writeln!(self.output, "{mark} {place}  {}", instruction.text(wave_size))?;
                    va += 4 * u64::from(instruction.dword_count);
                }
                Err(_) => {
                    writeln!(self.output, "{mark} {place}  .long {:#010x}", words[0])?;
                    va += 4;
                }
            }
        }
        Ok(())
    }

    pub(super) fn show_registers(
        &mut self,
        stop: &Stop<'_>,
        what: Registers,
        element: Option<ElementType>,
    ) -> Result<Outcome> {
        let wave = &stop.wave;
        let (first, last, is_vector) = match what {
            Registers::Scalar(first, last) => (usize::from(first), usize::from(last), false),
            Registers::Vector(first, last) => (usize::from(first), usize::from(last), true),
            _ => {
                match what {
                    Registers::Exec => writeln!(self.output, "exec = {:#018x}", wave.scalar_pair(EXEC_LO)),
                    Registers::Vcc => writeln!(self.output, "vcc = {:#018x}", wave.scalar_pair(VCC_LO)),
                    Registers::Scc => writeln!(self.output, "scc = {}", u8::from(wave.scc)),
                    Registers::M0 => writeln!(self.output, "m0 = {:#010x}", wave.scalar[usize::from(M0)]),
                    _ => writeln!(self.output, "mode = {:#04x}", wave.mode),
                }?;
                return Ok(Outcome::Stay);
            }
        };
        let width = registers_of(element);
        let registers = first..last + 1;
        if registers.len() % width != 0 {
            return Ok(Outcome::Complain("a 64-bit number takes two registers, as v[0:1]".to_owned()));
        }
        for register in registers.step_by(width) {
            let label = match (is_vector, width) {
                (true, 1) => format!("v{register}"),
                (true, _) => format!("v[{register}:{}]", register + 1),
                (false, 1) => format!("s{register}"),
                (false, _) => format!("s[{register}:{}]", register + 1),
            };
            match is_vector {
                true => self.show_vector(stop, &label, register, element)?,
                false => {
                    let words = &wave.scalar[register..register + width];
                    let value = match element {
                        None => words[0].to_string(),
                        Some(_) => numbers(words, element),
                    };
                    writeln!(self.output, "{label} = {}  {value}", hexadecimal(words))?;
                }
            }
        }
        Ok(Outcome::Stay)
    }

    /// A vector register, or as many as a number takes: the chosen lane, or rows of all.
    pub(super) fn show_vector(
        &mut self,
        stop: &Stop<'_>,
        label: &str,
        register: usize,
        element: Option<ElementType>,
    ) -> Result<()> {
        let halves = [Some(&*stop.wave.vector), stop.wave.other_half.as_deref()];
        let lane_words = |lane: usize| -> Vec<u32> {
            let registers = (register..register + registers_of(element)).filter_map(|register| {
                let row = &halves[lane / 32]?[register];
                Some(row.0[lane % 32])
            });
            registers.collect()
        };
        if let Some(lane) = self.lane {
            let words = lane_words(lane as usize);
            let value = element.map(|_| format!("  {}", numbers(&words, element))).unwrap_or_default();
            return writeln!(self.output, "{label} lane {lane} = {}{value}", hexadecimal(&words));
        }
        writeln!(self.output, "{label}")?;
        let lanes = wave_size(stop).lanes() as usize;
        let values: Vec<String> = (0..lanes).map(|lane| numbers(&lane_words(lane), element)).collect();
        self.show_rows(&values, |row| format!("  lane {:<4}", COLUMNS * row))
    }

    pub(super) fn show_arguments(&mut self) -> Result<()> {
        let attention = self.attention();
        for buffer in attention.placement.buffers() {
            let name = buffer.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
            writeln!(
                self.output,
                "arg{}{name}: {} bytes at {:#x}",
                buffer.argument, buffer.bytes, buffer.va
            )?;
        }
        Ok(())
    }

    pub(super) fn show_memory(
        &mut self,
        stop: &mut Stop<'_>,
        place: &MemoryPlace,
        format: Format,
    ) -> Result<Outcome> {
        let width = format.element.map_or(4, ElementType::bytes);
        let mut len = width as u64 * u64::from(format.count);
        let va = match self.address(place, width as u64) {
            Ok((va, left)) => {
                len = len.min(left.unwrap_or(u64::MAX) / width as u64 * width as u64);
                va
            }
            Err(complaint) => return Ok(Outcome::Complain(complaint)),
        };
        let mut bytes = vec![0; len as usize];
        if !stop.read_memory(va, &mut bytes) {
            return Ok(Outcome::Complain(format!("{va:#x} is not mapped, or not as far as that")));
        }
        let values = values(&bytes, format.element);
        self.show_rows(&values, |row| format!("{:#014x}:", va + (width * COLUMNS * row) as u64))?;
        Ok(Outcome::Stay)
    }

    pub(super) fn show_lds(&mut self, stop: &Stop<'_>, offset: u32, format: Format) -> Result<Outcome> {
        let width = format.element.map_or(4, ElementType::bytes);
        let bytes: Vec<u8> = stop.lds.iter().flat_map(|word| word.to_le_bytes()).collect();
        // Dwords are at multiples of their size.
        let first = offset as usize / width.min(4) * width.min(4);
        let end = bytes.len().min(first.saturating_add(width * format.count as usize));
        let Some(wanted) = bytes.get(first..end).filter(|wanted| wanted.len() >= width || bytes.is_empty())
        else {
            return Ok(Outcome::Complain(format!("the workgroup has {} bytes of LDS", bytes.len())));
        };
        let values = values(&wanted[..wanted.len() / width * width], format.element);
        self.show_rows(&values, |row| format!("  +{:<4}", first + width * COLUMNS * row))?;
        Ok(Outcome::Stay)
    }

    /// Values in rows, each after the label of its number.
    pub(super) fn show_rows(&mut self, values: &[String], label: impl Fn(usize) -> String) -> Result<()> {
        for (index, row) in values.chunks(COLUMNS).enumerate() {
            writeln!(self.output, "{} {}", label(index), row.join(" "))?;
        }
        Ok(())
    }
}

/// Words as one number in hexadecimal.
fn hexadecimal(words: &[u32]) -> String {
    words.iter().rev().fold("0x".to_owned(), |text, word| format!("{text}{word:08x}"))
}

/// Bytes as dwords in hexadecimal, or as numbers of a type.
fn values(bytes: &[u8], element: Option<ElementType>) -> Vec<String> {
    match element {
        Some(element) => bytes.chunks_exact(element.bytes()).map(|number| element.text(number)).collect(),
        None => {
            let words = bytes.as_chunks::<4>().0.iter();
            words.map(|word| format!("{:08x}", u32::from_le_bytes(*word))).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1.0 and -2.0 as f32; 1.0 as f64 in two dwords, the lower one first; pairs of u16.
    #[test]
    fn words_are_shown_as_numbers_of_a_type() {
        let words = [0x3f80_0000, 0xc000_0000];
        assert_eq!(numbers(&words, None), "3f800000 c0000000");
        assert_eq!(numbers(&words, Some(ElementType::F32)), "1,-2");
        assert_eq!(numbers(&[0, 0x3ff0_0000], Some(ElementType::F64)), "1");
        assert_eq!(numbers(&[0x0002_0001], Some(ElementType::U16)), "1,2");
        assert_eq!(hexadecimal(&[0x89ab_cdef, 0x0123_4567]), "0x0123456789abcdef");
        assert_eq!(hexadecimal(&[5]), "0x00000005");
    }

    #[test]
    fn bytes_are_dwords_or_numbers() {
        let bytes = [0x01, 0x02, 0x03, 0x04, 0x05, 0x00, 0x00, 0x00];
        assert_eq!(values(&bytes, None), ["04030201", "00000005"]);
        assert_eq!(values(&bytes, Some(ElementType::U16)), ["513", "1027", "5", "0"]);
        // What is cut off at the end is not shown.
        assert_eq!(values(&bytes[..6], None), ["04030201"]);
        assert_eq!(values(&bytes[..7], Some(ElementType::U32)), ["67305985"]);
    }

    #[test]
    fn numbers_of_64_bits_take_two_registers() {
        let all = [None, Some(ElementType::U8), Some(ElementType::F32), Some(ElementType::I64)];
        assert_eq!(all.map(registers_of), [1, 1, 1, 2]);
    }
}
