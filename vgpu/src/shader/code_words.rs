//! The words of one instruction, kept for reports.
//!
//! Contract: plain values. The text is assembly, with `.long` for a word that begins no instruction. If nothing
//! could be fetched it says so, so that a report is never empty.

use std::fmt;

use zrt_isa::decode_for;
use zrt_isa::resources::WaveSize;

/// Dwords of an instruction that are kept for the report.
pub const FAULT_WORDS: usize = 4;

/// Up to [`FAULT_WORDS`] words from an address on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeWords {
    words: [u32; FAULT_WORDS],
    count: u8,
    wave_size: WaveSize,
}

impl CodeWords {
    /// The first words of `words`, as waves of `wave_size` execute them.
    pub fn new(words: &[u32], wave_size: WaveSize) -> CodeWords {
        let mut kept = [0; FAULT_WORDS];
        let count = words.len().min(FAULT_WORDS);
        kept[..count].copy_from_slice(&words[..count]);
        CodeWords { words: kept, count: count as u8, wave_size }
    }
}

impl fmt::Display for CodeWords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = &self.words[..usize::from(self.count)];
        match (decode_for(words, self.wave_size), words.first()) {
            (Ok(instruction), _) => write!(formatter, "{}", instruction.text(self.wave_size)),
            (Err(_), Some(word)) => write!(formatter, ".long {word:#010x}"),
            (Err(_), None) => formatter.write_str("(no code is there)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_has_a_text() {
        let text = |words: &[u32], wave_size| CodeWords::new(words, wave_size).to_string();
        assert_eq!(text(&[0xBFB0_0000, 7], WaveSize::Wave32), "s_endpgm");
        assert_eq!(text(&[0x0202_0301], WaveSize::Wave32), "v_cndmask_b32_e32 v1, v1, v1, vcc_lo");
        assert_eq!(text(&[0x0202_0301], WaveSize::Wave64), "v_cndmask_b32_e32 v1, v1, v1, vcc");
        assert_eq!(text(&[0xFFFF_FFFF; 6], WaveSize::Wave32), ".long 0xffffffff");
        assert_eq!(text(&[], WaveSize::Wave32), "(no code is there)");
    }
}
