//! Operands of ALU instructions, resolved when the instruction is translated.
//!
//! Contract: constants have the width and interpretation of the operand (instruction set reference §2, "Literal
//! rules" of instruction set reference §1); scalar operands stay codes; `null` as a destination becomes the sink.

use zrt_isa::opcode::DataType;
use zrt_isa::{Instruction, LaneSelect, Operand};

use crate::shader::micro::{MicroOp, Source};
use crate::shader::wave::{EXEC_LO, NULL, NULL_SINK, VCC_LO, Wave};
use crate::simd::Executor;

/// Operand codes whose value is computed when they are read.
pub(crate) const VCCZ: u8 = 251;
pub(crate) const EXECZ: u8 = 252;
const SCC: u8 = 253;
/// The wave64 counterparts of [`VCCZ`] and [`EXECZ`]; no decoded operand has these codes.
pub(crate) const VCCZ_WAVE64: u8 = 249;
pub(crate) const EXECZ_WAVE64: u8 = 250;

/// Source and result modifiers, packed into [`MicroOp::modifiers`].
///
/// | bits | meaning |
/// |---|---|
/// | 2:0, 5:3 | negate, absolute |
/// | 9:6, 12:10 | op_sel, op_sel_hi |
/// | 13, 15:14 | clamp, omod |
/// | 17:16 | lane select: 0 none, 1 DPP16, 2 DPP8 |
/// | 20:18 | source is 16 bits wide |
/// | 21 | result is 16 bits wide |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Packed(pub u32);

/// Lane select of [`Packed`]: none.
pub(crate) const LANES_NONE: u32 = 0;
/// Lane select of [`Packed`]: DPP16; control word in [`MicroOp::immediate2`].
pub(crate) const LANES_DPP16: u32 = 1;
/// Lane select of [`Packed`]: DPP8; selectors in [`MicroOp::immediate2`], fetch-inactive at bit 24.
pub(crate) const LANES_DPP8: u32 = 2;

impl Packed {
    /// Everything that the plain functions do not support.
    const NOT_PLAIN: u32 = 0x3 << 16 | 0x1 << 13 | 0xF << 6 | 0x3F;

    #[inline(always)]
    pub fn negate(self, source: usize) -> bool {
        self.0 >> source & 1 != 0
    }

    #[inline(always)]
    pub fn absolute(self, source: usize) -> bool {
        self.0 >> (3 + source) & 1 != 0
    }

    #[inline(always)]
    pub fn selects_high(self, source: usize) -> bool {
        self.0 >> (6 + source) & 1 != 0
    }

    #[inline(always)]
    pub fn result_high(self) -> bool {
        self.0 >> 9 & 1 != 0
    }

    /// VOP3P: the high result uses the high half of the source.
    #[inline(always)]
    pub fn high_selects_high(self, source: usize) -> bool {
        self.0 >> (10 + source) & 1 != 0
    }

    #[inline(always)]
    pub fn clamp(self) -> bool {
        self.0 >> 13 & 1 != 0
    }

    #[inline(always)]
    pub fn omod(self) -> u32 {
        self.0 >> 14 & 3
    }

    #[inline(always)]
    pub fn lanes(self) -> u32 {
        self.0 >> 16 & 3
    }

    #[inline(always)]
    pub fn half_source(self, source: usize) -> bool {
        self.0 >> (18 + source) & 1 != 0
    }

    #[inline(always)]
    pub fn half_result(self) -> bool {
        self.0 >> 21 & 1 != 0
    }

    /// True if no modifier changes a source, a result or a lane (omod needs a MODE for which plain functions are
    /// not used anyway).
    pub fn is_plain(self) -> bool {
        self.0 & Self::NOT_PLAIN == 0
    }

    fn new(instruction: &Instruction) -> Self {
        let modifiers = &instruction.modifiers;
        let operands = instruction.opcode.operands();
        let lanes = match instruction.lanes {
            LaneSelect::None => LANES_NONE,
            LaneSelect::Dpp16 { .. } => LANES_DPP16,
            LaneSelect::Dpp8 { .. } => LANES_DPP8,
        };
        let mut packed = (modifiers.negate & 7) as u32
            | ((modifiers.absolute & 7) as u32) << 3
            | ((modifiers.op_sel & 15) as u32) << 6
            | ((modifiers.op_sel_hi & 7) as u32) << 10
            | (modifiers.clamp as u32) << 13
            | ((modifiers.omod & 3) as u32) << 14
            | lanes << 16;
        for (index, source) in operands.sources.iter().enumerate() {
            packed |= ((source.bits() == 16) as u32) << (18 + index);
        }
        packed |= ((operands.destination.bits() == 16) as u32) << 21;
        Packed(packed)
    }
}

/// Everything in a micro operation except its function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    pub destination: u8,
    pub destination2: u8,
    pub sources: [Source; 3],
    pub wide: [u32; 3],
    pub modifiers: Packed,
    pub immediate: i32,
    pub immediate2: u32,
}

impl Parts {
    /// Resolves the operands by the types in the operation's table row.
    pub fn new(instruction: &Instruction) -> Self {
        let operands = instruction.opcode.operands();
        let mut parts = Parts {
            destination: destination(instruction.destination),
            destination2: destination(instruction.destination2),
            sources: [Source::Constant(0); 3],
            wide: [0; 3],
            modifiers: Packed::new(instruction),
            immediate: instruction.immediate,
            immediate2: lane_control(&instruction.lanes),
        };
        for index in 0..3 {
            parts.set_source(index, instruction.sources[index], operands.sources[index].data);
        }
        parts
    }

    /// Sets the operand at a position.
    pub fn set_source(&mut self, index: usize, operand: Operand, data: DataType) {
        let (source, high) = source(operand, data);
        self.sources[index] = source;
        self.wide[index] = high;
    }

    /// Makes the destination's old value the third source.
    pub fn accumulate(&mut self) {
        self.sources[2] = Source::Vector(self.destination);
        // A 16-bit accumulator is the half that the result replaces.
        let result_high = self.modifiers.0 >> 9 & 1;
        self.modifiers.0 |= (result_high << 8) | (self.modifiers.0 >> 21 & 1) << 20;
    }

    /// Bit `i`: source `i` is the same in every lane.
    pub fn uniform_mask(&self) -> u8 {
        let bit = |index: usize| (!matches!(self.sources[index], Source::Vector(_)) as u8) << index;
        bit(0) | bit(1) | bit(2)
    }

    /// True if a source is a code whose value is computed when read.
    pub fn reads_special(&self) -> bool {
        self.sources.iter().any(|source| matches!(source, Source::Scalar(code) if *code >= VCCZ))
    }

    /// The micro operation. The caller fills offset and length in the code.
    pub fn finish(self, executor: Executor) -> MicroOp {
        MicroOp {
            executor,
            destination: self.destination,
            destination2: self.destination2,
            sources: self.sources,
            wide: self.wide,
            modifiers: self.modifiers.0,
            immediate: self.immediate,
            immediate2: self.immediate2,
            code_dword: 0,
            dword_count: 0,
            weight: 1,
        }
    }
}

/// Register number of a destination; `null` and absent destinations become the sink.
pub(crate) fn destination(operand: Operand) -> u8 {
    match operand {
        Operand::Vector(register) => register,
        Operand::Scalar(NULL) => NULL_SINK,
        Operand::Scalar(code) => code,
        _ => NULL_SINK,
    }
}

/// A source and the high dword of a 64-bit constant.
pub(crate) fn source(operand: Operand, data: DataType) -> (Source, u32) {
    let value = match operand {
        Operand::Vector(register) => return (Source::Vector(register), 0),
        Operand::Scalar(code) | Operand::Special(code) => return (Source::Scalar(code), 0),
        Operand::None => 0,
        Operand::Inline(code) => inline_constant(code, data),
        Operand::Literal(literal) => extend_literal(literal, data),
    };
    (Source::Constant(value as u32), (value >> 32) as u32)
}

/// The value of an inline constant (instruction set reference §2), as an operand of the type.
fn inline_constant(code: u8, data: DataType) -> u64 {
    use DataType::*;
    let integer = match code {
        128..=192 => code as i64 - 128,
        193..=208 => 192 - code as i64,
        _ => return float_constant(code, data),
    };
    match data {
        B64 | I64 | U64 | F64 => integer as u64,
        _ => integer as u32 as u64,
    }
}

/// Of the codes 240 to 248: there are no others.
fn float_constant(code: u8, data: DataType) -> u64 {
    use DataType::*;
    // 0.5, 1, 2, 4 are 2^-1..2^2; odd codes are negative; 248 is 1/(2π).
    let power = |bias: u64, fraction_bits: u32, sign_bit: u32| {
        let step = (code as u64).wrapping_sub(240);
        (bias - 1 + step / 2) << fraction_bits | (step & 1) << sign_bit
    };
    match data {
        // An integer of 16 bits gets the lower half of the f32 constant: the chip's description as LLVM's developers
        // cite it (its change 84106, "OPF_INV2PI_16"). No compiler writes such an operand.
        I16 | U16 => float_constant(code, F32) & 0xFFFF,
        F16 | PkF16 | B16 => {
            if code == 248 {
                0x3118
            } else {
                power(15, 10, 15)
            }
        }
        Bf16 | PkBf16 => {
            if code == 248 {
                0x3E22
            } else {
                power(127, 7, 15)
            }
        }
        F64 | B64 | I64 | U64 => {
            if code == 248 {
                0x3FC4_5F30_6DC9_C882
            } else {
                power(1023, 52, 63)
            }
        }
        _ => {
            if code == 248 {
                0x3E22_F983
            } else {
                power(127, 23, 31)
            }
        }
    }
}

/// A literal becomes the high half of an f64, and is sign-extended for a signed 64-bit integer.
fn extend_literal(literal: u32, data: DataType) -> u64 {
    match data {
        DataType::F64 => (literal as u64) << 32,
        DataType::I64 => literal as i32 as i64 as u64,
        _ => literal as u64,
    }
}

/// DPP16: control 8:0, fetch-inactive 9, bound control 10, bank mask 14:11, row mask 18:15. DPP8: selectors 23:0,
/// fetch-inactive 24.
fn lane_control(lanes: &LaneSelect) -> u32 {
    match *lanes {
        LaneSelect::None => 0,
        LaneSelect::Dpp16 { control, fetch_inactive, bound_control, bank_mask, row_mask } => {
            (control as u32 & 0x1FF)
                | (fetch_inactive as u32) << 9
                | (bound_control as u32) << 10
                | (bank_mask as u32 & 15) << 11
                | (row_mask as u32 & 15) << 15
        }
        LaneSelect::Dpp8 { selectors, fetch_inactive } => {
            (selectors & 0xFF_FFFF) | (fetch_inactive as u32) << 24
        }
    }
}

/// The value of a scalar operand code, the computed ones included.
#[inline]
pub(crate) fn read_scalar(wave: &Wave, code: u8) -> u32 {
    match code {
        VCCZ => (wave.scalar[VCC_LO as usize] == 0) as u32,
        EXECZ => (wave.scalar[EXEC_LO as usize] == 0) as u32,
        SCC => wave.scc as u32,
        VCCZ_WAVE64 => (wave.scalar_pair(VCC_LO) == 0) as u32,
        EXECZ_WAVE64 => (wave.scalar_pair(EXEC_LO) == 0) as u32,
        _ => wave.scalar[code as usize],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inline_constants_have_the_operand_width() {
        use DataType::*;
        let value = |code, data| inline_constant(code, data);
        assert_eq!(value(128, I32), 0);
        assert_eq!(value(192, U32), 64);
        assert_eq!(value(193, I32), 0xFFFF_FFFF);
        assert_eq!(value(208, I64), 0xFFFF_FFFF_FFFF_FFF0);
        assert_eq!(value(129, F64), 1, "an integer constant is raw bits in a float operand");
        let floats = [0.5, -0.5, 1.0, -1.0, 2.0, -2.0, 4.0, -4.0f32];
        let halves = [0x3800, 0xB800, 0x3C00, 0xBC00, 0x4000, 0xC000, 0x4400, 0xC400u64];
        for (index, (&single, &half)) in floats.iter().zip(&halves).enumerate() {
            let code = 240 + index as u8;
            assert_eq!(value(code, F32), single.to_bits() as u64);
            assert_eq!(value(code, B32), single.to_bits() as u64);
            assert_eq!(value(code, F16), half);
            assert_eq!(value(code, PkF16), half, "the high half of a packed constant is zero");
            assert_eq!([I16, U16].map(|data| value(code, data)), [0; 2], "the lower half of the f32");
            assert_eq!(value(code, F64), (single as f64).to_bits());
            assert_eq!(value(code, Bf16), single.to_bits() as u64 >> 16);
        }
        assert_eq!([F16, I16, U16].map(|data| value(248, data)), [0x3118, 0xF983, 0xF983]);
        assert_eq!(value(248, F32), (core::f32::consts::FRAC_1_PI * 0.5).to_bits() as u64);
        assert_eq!(value(248, F64), (core::f64::consts::FRAC_1_PI * 0.5).to_bits() - 1);
    }

    /// vccz, execz and scc have the codes 251 to 253; the two of a wave64 are about both halves of the mask.
    #[test]
    fn computed_codes_say_whether_a_mask_is_zero() {
        let values = [(0, 0), (1, 0), (0, 1 << 31), (u32::MAX, 7)];
        let mut wave = Wave::new();
        for ((vcc, vcc_high), (exec, exec_high)) in
            values.iter().flat_map(|a| values.iter().map(move |b| (*a, *b)))
        {
            for (register, value) in [(106, vcc), (107, vcc_high), (126, exec), (127, exec_high)] {
                wave.scalar[register] = value;
            }
            wave.scc = vcc != 0;
            assert_eq!(
                [251, 252, 253, VCCZ_WAVE64, EXECZ_WAVE64].map(|code| read_scalar(&wave, code) != 0),
                [vcc == 0, exec == 0, vcc != 0, vcc == 0 && vcc_high == 0, exec == 0 && exec_high == 0],
                "{vcc_high:#x} {vcc:#x}, {exec_high:#x} {exec:#x}"
            );
            assert_eq!([106, 107].map(|code| read_scalar(&wave, code)), [vcc, vcc_high]);
        }
    }

    #[test]
    fn literals_are_extended_by_type() {
        assert_eq!(extend_literal(0x4000_0000, DataType::F64), 0x4000_0000_0000_0000);
        assert_eq!(extend_literal(0x8000_0000, DataType::I64), 0xFFFF_FFFF_8000_0000);
        assert_eq!(extend_literal(0x8000_0000, DataType::B64), 0x8000_0000);
        assert_eq!(extend_literal(0x8000_0000, DataType::U64), 0x8000_0000);
    }
}
