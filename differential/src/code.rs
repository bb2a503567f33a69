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
        let mut rest = words.as_slice();
        while !rest.is_empty() {
            let decoded = decode_for(rest, wave_size);
            let length = decoded.map_or(1, |instruction| usize::from(instruction.dword_count));
            let (head, after) = rest.split_at(length);
            if let Ok(instruction) = decoded {
                let mut own = [0; 4];
                own[..length].copy_from_slice(head);
                let before = words.len() - rest.len();
                placed.push(Placed { offset: segment.offset + 4 * before as u64, words: own, instruction });
            }
            rest = after;
        }
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::{Needs, object};

    /// The code begins at 0x100 of the image, behind a segment without code. Words of llvm-mc 22.
    #[test]
    fn instructions_follow_each_other_and_other_words_are_passed_over() {
        let words = [
            0xEE05_0004,
            0x0008_0001,
            0x0000_0000, // global_load_b32 v1, v0, s[4:5] scope:SCOPE_DEV
            0xBF80_0000, // s_nop 0
            0xFFFF_FFFF, // no instruction
            0xF400_2100,
            0xF800_0008, // s_load_b64 s[4:5], s[0:1], 0x8
            0xBFB0_0000, // s_endpgm
            0xEE05_0004, // global_load_b32 without its other words
        ];
        let loaded = Program::parse(&object(1, &words, Needs::default())).unwrap();
        let placed = instructions(&loaded, WaveSize::Wave32);
        let told = |one: &Placed| (one.offset, one.words, one.instruction.to_string());
        let told: Vec<(u64, [u32; 4], String)> = placed.iter().map(told).collect();
        let load = "global_load_b32 v1, v0, s[4:5] scope:SCOPE_DEV";
        assert_eq!(
            told,
            [
                (0x100, [0xEE05_0004, 0x0008_0001, 0, 0], load.to_owned()),
                (0x10C, [0xBF80_0000, 0, 0, 0], "s_nop 0".to_owned()),
                (0x114, [0xF400_2100, 0xF800_0008, 0, 0], "s_load_b64 s[4:5], s[0:1], 0x8".to_owned()),
                (0x11C, [0xBFB0_0000, 0, 0, 0], "s_endpgm".to_owned()),
            ]
        );
    }
}
