//! Registers and constants as text.
//!
//! Contract: no allocation. A constant is written for the operand's type: in a 16-bit integer operand a float
//! constant is written as its bits, elsewhere as its value. A literal that equals an inline constant is written
//! like the constant.

use crate::instruction::Operand;
use crate::opcode::{DataType, OperandKind};
use crate::resources::WaveSize;
use core::fmt::{Display, Formatter, Result};

/// Code of `null` (instruction set reference §2).
const NULL: u8 = 124;

/// An operand in a position of some kind.
pub(super) struct Value {
    pub(super) operand: Operand,
    pub(super) kind: OperandKind,
    pub(super) wave_size: WaveSize,
}

/// Consecutive registers of one file.
pub(super) struct Registers {
    pub(super) file: &'static str,
    pub(super) first: u32,
    pub(super) dwords: u32,
}

impl Display for Registers {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let Self { file, first, dwords } = self;
        match dwords {
            0 | 1 => write!(out, "{file}{first}"),
            _ => write!(out, "{file}[{first}:{}]", first + dwords - 1),
        }
    }
}

impl Value {
    /// Whether this is the `null` register.
    pub(super) fn is_null(&self) -> bool {
        self.operand == Operand::Scalar(NULL)
    }
}

impl Display for Value {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let dwords = self.kind.dwords_for(self.wave_size);
        match self.operand {
            Operand::None => Ok(()),
            Operand::Vector(first) => {
                write!(out, "{}", Registers { file: "v", first: first.into(), dwords })
            }
            Operand::Scalar(code) => scalar(out, code, dwords),
            Operand::Special(code) => out.write_str(match code {
                235 => "src_shared_base",
                236 => "src_shared_limit",
                237 => "src_private_base",
                238 => "src_private_limit",
                239 => "src_pops_exiting_wave_id",
                251 => "src_vccz",
                252 => "src_execz",
                253 => "src_scc",
                254 => "src_lds_direct",
                _ => "src_unknown",
            }),
            Operand::Inline(code) => inline(out, code, self.kind.data),
            Operand::Literal(value) => literal(out, value, self.kind.data),
        }
    }
}

fn scalar(out: &mut Formatter<'_>, code: u8, dwords: u32) -> Result {
    let first = u32::from(code);
    match (code, dwords) {
        (0..=105, _) => write!(out, "{}", Registers { file: "s", first, dwords }),
        (108..=123, _) => write!(out, "{}", Registers { file: "ttmp", first: first - 108, dwords }),
        (106, 2) => out.write_str("vcc"),
        (126, 2) => out.write_str("exec"),
        (106, _) => out.write_str("vcc_lo"),
        (107, _) => out.write_str("vcc_hi"),
        (NULL, _) => out.write_str("null"),
        (125, _) => out.write_str("m0"),
        (126, _) => out.write_str("exec_lo"),
        _ => out.write_str("exec_hi"),
    }
}

/// A float inline constant 240..=248 (instruction set reference §2).
struct Float {
    text: &'static str,
    half: u32,
    brain: u32,
    single: u32,
    /// The high dword of the f64 whose low dword is 0; 1/(2π) has none.
    double: Option<u32>,
}

const fn float(text: &'static str, half: u32, brain: u32, single: u32, double: Option<u32>) -> Float {
    Float { text, half, brain, single, double }
}

const FLOATS: [Float; 9] = [
    float("0.5", 0x3800, 0x3f00, 0x3f00_0000, Some(0x3fe0_0000)),
    float("-0.5", 0xb800, 0xbf00, 0xbf00_0000, Some(0xbfe0_0000)),
    float("1.0", 0x3c00, 0x3f80, 0x3f80_0000, Some(0x3ff0_0000)),
    float("-1.0", 0xbc00, 0xbf80, 0xbf80_0000, Some(0xbff0_0000)),
    float("2.0", 0x4000, 0x4000, 0x4000_0000, Some(0x4000_0000)),
    float("-2.0", 0xc000, 0xc000, 0xc000_0000, Some(0xc000_0000)),
    float("4.0", 0x4400, 0x4080, 0x4080_0000, Some(0x4010_0000)),
    float("-4.0", 0xc400, 0xc080, 0xc080_0000, Some(0xc010_0000)),
    float("0.15915494", 0x3118, 0x3e22, 0x3e22_f983, None),
];

fn inline(out: &mut Formatter<'_>, code: u8, data: DataType) -> Result {
    if let Some(number) = Operand::Inline(code).inline_integer() {
        return write!(out, "{number}");
    }
    match (FLOATS.get(usize::from(code.wrapping_sub(240))), data) {
        (None, _) => out.write_str("src_unknown"),
        (Some(float), DataType::B16 | DataType::I16 | DataType::U16) => write!(out, "{:#x}", float.half),
        (Some(_), _) if code == 248 && data.bits() == 64 => out.write_str("0.15915494309189532"),
        (Some(float), _) => out.write_str(float.text),
    }
}

fn literal(out: &mut Formatter<'_>, value: u32, data: DataType) -> Result {
    let half = value & 0xffff;
    match data {
        DataType::B16 | DataType::I16 | DataType::U16 => {
            constant(out, value as i32, |float| float.single == value, half)
        }
        DataType::F16 => constant(out, i32::from(value as i16), |float| float.half == half, half),
        DataType::Bf16 => constant(out, i32::from(value as i16), |float| float.brain == half, value),
        DataType::PkF16 => constant(out, value as i32, |float| float.half == value, value),
        DataType::PkBf16 => constant(out, value as i32, |float| float.brain == value, value),
        // The literal is the high dword, and the low one is 0.
        DataType::F64 if value == 0 => out.write_str("0"),
        DataType::F64 => match FLOATS.iter().find(|float| float.double == Some(value)) {
            Some(float) => out.write_str(float.text),
            None => write!(out, "{value:#x}"),
        },
        // Only the low dword is the literal: no negative number is an inline constant.
        DataType::B64 | DataType::I64 | DataType::U64 if value > 64 => write!(out, "{value:#x}"),
        _ => constant(out, value as i32, |float| float.single == value, value),
    }
}

/// Written like the inline constant if there is one, else as hexadecimal bits.
fn constant(out: &mut Formatter<'_>, integer: i32, is_float: impl Fn(&Float) -> bool, bits: u32) -> Result {
    if matches!(integer, -16..=64) {
        return write!(out, "{integer}");
    }
    match FLOATS.iter().find(|float| is_float(float)) {
        Some(float) => out.write_str(float.text),
        None => write!(out, "{bits:#x}"),
    }
}
