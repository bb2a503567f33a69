//! The machine code of a program: its instructions in order.
//!
//! Contract: undecodable words are skipped one at a time; offsets count from the image's start. Cost: decodes each
//! executable segment once.

use crate::session::words_of;
use zrt_isa::resources::WaveSize;
use zrt_isa::{Instruction, decode_for};
use zrt_loader::Program;

/// An instruction and its position.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placed {
    /// Bytes from the image's start.
    pub offset: u64,
    /// Its words; the rest is zero.
    pub words: [u32; 4],
    /// The instruction.
    pub instruction: Instruction,
}

/// The instructions of all executable segments.
pub fn instructions(loaded: &Program, wave_size: WaveSize) -> Vec<Placed> {
    let mut placed = Vec::new();
    for segment in loaded.image().segments().iter().filter(|segment| segment.executable) {
        let words = words_of(loaded.image().segment_bytes(segment));
        let mut at = 0;
        while at < words.len() {
            let decoded = decode_for(&words[at..], wave_size);
            let length = decoded.map_or(1, |instruction| usize::from(instruction.dword_count));
            if let Ok(instruction) = decoded {
                let mut own = [0; 4];
                own[..length].copy_from_slice(&words[at..at + length]);
                placed.push(Placed { offset: segment.offset + 4 * at as u64, words: own, instruction });
            }
            at += length;
        }
    }
    placed
}
