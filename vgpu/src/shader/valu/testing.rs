//! Shared by the tests of both ALUs: a wave, and running words on it.
//!
//! The words in the tests were assembled with llvm-mc 19 (`-mcpu=gfx1201`) from the text next to them.

use zrt_isa::{Instruction, decode};

use crate::shader::machine::with_machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::wave::{EXEC_LO, LANES, Row, SCALAR_SLOTS, Wave};
use crate::shader::{salu, valu};
use crate::simd::Level;

/// MODE with denormals kept and rounding to nearest.
pub(crate) const MODE_USUAL: u32 = 0xF0;

/// Random numbers, and operands made of them.
pub(crate) struct Random(zrt_needs::Random);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(zrt_needs::Random::new(seed))
    }

    pub fn next(&mut self) -> u32 {
        self.0.word()
    }

    /// Random bits that include many boundary values of integers and of each float format.
    pub fn bits(&mut self) -> u32 {
        const SPECIAL: [u32; 24] = [
            0,
            1,
            0x7FFF_FFFF,
            0x8000_0000,
            0xFFFF_FFFF,
            0x3F80_0000,
            0xBF80_0000,
            0x7F80_0000,
            0xFF80_0000,
            0x7FC0_0000,
            0x7F80_0001,
            0x0080_0000,
            0x007F_FFFF,
            0x8000_0001,
            0x7F7F_FFFF,
            0x3C00_BC00,
            0x7C00_FC00,
            0x7E00_0001,
            0x03FF_0400,
            0x8000_7BFF,
            31,
            16,
            0x4F00_0000,
            0x3F00_0000,
        ];
        let value = self.next();
        match self.next() % 8 {
            0 => SPECIAL[value as usize % SPECIAL.len()],
            1 => value % 64,
            // Floats of moderate size.
            2 | 3 => value & 0x807F_FFFF | (118 + value % 20) << 23,
            _ => value,
        }
    }

    pub fn row(&mut self) -> Row {
        let mut row = Row([0; LANES]);
        row.0.fill_with(|| self.bits());
        row
    }
}

/// A wave with all lanes active and every register a different value.
pub(crate) fn wave() -> Wave {
    let mut random = Random::new(99);
    let mut wave = Wave {
        other_half: None,
        is_high: false,
        vector: Box::new([Row([0; LANES]); 256]),
        scalar: [0; SCALAR_SLOTS],
        scc: false,
        mode: MODE_USUAL,
        approximation_bias: 0,
        next: 0,
        index_in_group: 0,
        vector_count: 256,
        executed: 0,
    };
    for row in wave.vector.iter_mut() {
        *row = random.row();
    }
    for scalar in &mut wave.scalar[..108] {
        *scalar = random.bits();
    }
    wave.scalar[EXEC_LO as usize] = u32::MAX;
    wave
}

/// Makes the sources in some lanes of v1, v2 and v3 (and of the pairs that begin at v2, v4 and v6) equal, or
/// different in the sign only: random values hardly ever are.
pub(crate) fn relate(wave: &mut Wave) {
    const ZEROS: [(u32, u32); 4] = [(0, 0), (0, 1 << 31), (1 << 31, 0), (1 << 31, 1 << 31)];
    for lane in 0..12 {
        let flip = if lane % 2 == 0 { 0 } else { 1 << 31 };
        wave.vector[2].0[lane] = wave.vector[1].0[lane] ^ flip;
        if let Some(zeros) = ZEROS.get(lane) {
            (wave.vector[1].0[lane], wave.vector[2].0[lane]) = *zeros;
            wave.vector[3].0[lane] = 1 << 31;
        }
        wave.vector[4].0[lane] = wave.vector[2].0[lane];
        wave.vector[5].0[lane] = wave.vector[3].0[lane] ^ flip;
    }
    for lane in 12..16 {
        wave.vector[3].0[lane] = wave.vector[1].0[lane];
        wave.vector[6].0[lane] = wave.vector[2].0[lane];
        wave.vector[7].0[lane] = wave.vector[3].0[lane];
    }
}

pub(crate) fn translate(instruction: &Instruction, level: Level) -> Option<MicroOp> {
    salu::translate(instruction, level).or_else(|| valu::translate(instruction, level))
}

/// Runs one micro operation.
pub(crate) fn run_one(wave: &mut Wave, op: &MicroOp) {
    let flow = with_machine(|machine| op.executor.call(wave, op, machine));
    assert_eq!(flow, Flow::Next);
}

/// Decodes, translates and runs a sequence of ALU instructions.
pub(crate) fn run(wave: &mut Wave, mut words: &[u32], level: Level) {
    while !words.is_empty() {
        let instruction = decode(words).unwrap();
        let op = translate(&instruction, level)
            .unwrap_or_else(|| panic!("{} is not translated", instruction.opcode.mnemonic()));
        run_one(wave, &op);
        words = &words[instruction.dword_count as usize..];
    }
}

/// The words for an assembly text.
pub(crate) const fn code<'a>(_text: &str, words: &'a [u32]) -> &'a [u32] {
    words
}

/// Runs words on copies of the wave at every level, asserts that they agree, and returns the outcome.
pub(crate) fn run_all(wave: &Wave, words: &[u32]) -> Wave {
    let mut outcomes = Level::supported().into_iter().map(|level| {
        let mut copy = wave.clone();
        run(&mut copy, words, level);
        (level, copy)
    });
    let (best, first) = outcomes.next().unwrap();
    for (level, other) in outcomes {
        assert_same(&first, &other, &format!("{} and {}", best.name(), level.name()));
    }
    first
}

/// Asserts that two waves have the same registers.
pub(crate) fn assert_same(left: &Wave, right: &Wave, what: &str) {
    assert_eq!(left.scc, right.scc, "scc: {what}");
    for code in 0..128 {
        let (l, r) = (left.scalar[code], right.scalar[code]);
        assert!(l == r, "{what}: scalar {code}: {l:#010x} {r:#010x}");
    }
    for register in 0..256 {
        for lane in 0..LANES {
            let (l, r) = (left.vector[register].0[lane], right.vector[register].0[lane]);
            assert!(l == r, "{what}: v{register} lane {lane}: {l:#010x} {r:#010x}");
        }
    }
}

/// The value of an f16, from its fields.
pub(crate) fn half_value(bits: u16) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 31) as i32, (bits & 1023) as f64);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 => {
            if fraction == 0.0 {
                f64::INFINITY
            } else {
                f64::NAN
            }
        }
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 != 0 { -magnitude } else { magnitude }
}
