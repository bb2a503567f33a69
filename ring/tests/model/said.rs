//! What the tests of the rings send: an entry whose every dword depends on one mark.
//!
//! Contract: written as a caller of the crate has to write it, by the standard conversions alone. A line whose
//! dword 14 is [`NONSENSE`] is no entry.

use zrt_ring::token_ring::Line;

/// In dword 14, marks a line that is no entry.
pub const NONSENSE: u32 = 0xbad0_0000;

/// An entry: dwords 1 to 14 of a line, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Said(pub [u32; 14]);

/// Why a line is no entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Nonsense;

impl std::fmt::Display for Nonsense {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("nonsense")
    }
}

impl From<&Said> for Line {
    fn from(said: &Said) -> Line {
        let mut line = [0; 16];
        line[1..15].copy_from_slice(&said.0);
        line
    }
}

impl TryFrom<Line> for Said {
    type Error = Nonsense;

    fn try_from(line: Line) -> Result<Said, Nonsense> {
        let said = std::array::from_fn(|at| line[at + 1]);
        if line[14] == NONSENSE { Err(Nonsense) } else { Ok(Said(said)) }
    }
}

/// The entry of a mark: the mark in dword 2, and in every other dword a number of that mark.
pub fn said(mark: u32) -> Said {
    Said(std::array::from_fn(|at| mark.wrapping_mul(if at == 1 { 1 } else { 100 + at as u32 })))
}

/// The same entry in a line; tag and trailer are zero.
#[allow(dead_code, reason = "one of the test programs sends in one direction only")]
pub fn line(mark: u32) -> Line {
    Line::from(&said(mark))
}
