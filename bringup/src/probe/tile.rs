//! Element formats and the layout of 16 x 16 tiles in registers (instruction set reference §7.3, wave32).
//!
//! Contract: plain functions over arrays; a tile of the kernels is [`TILE_DWORDS`] of input: A and B, four dwords a
//! lane each, then C, eight dwords a lane.

/// Side of a tile, and its inner dimension.
pub(super) const SIDE: usize = 16;
/// Dwords of a tile's input and output.
pub(super) const TILE_DWORDS: usize = 512;
pub(super) const RESULT_DWORDS: usize = 256;
/// Dwords of a lane of A or B, and where C starts.
const LANE_DWORDS: usize = 4;
const B_START: usize = 128;
const C_START: usize = 256;
const C_LANE_DWORDS: usize = 8;

/// What an element of A and B is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    F16,
    Bf16,
    /// OCP E4M3.
    Fp8,
    /// An integer of 8 bits: the layout only.
    Byte,
}

impl Format {
    pub const fn bits(self) -> usize {
        match self {
            Format::F16 | Format::Bf16 => 16,
            Format::Fp8 | Format::Byte => 8,
        }
    }

    /// Bits of exponent and fraction, and the exponent's bias.
    const fn fields(self) -> (u32, u32, i32) {
        match self {
            Format::F16 => (5, 10, 15),
            Format::Bf16 => (8, 7, 127),
            Format::Fp8 | Format::Byte => (4, 3, 7),
        }
    }

    /// The value of finite bits, and whether they are a denormal.
    pub fn value(self, bits: u32) -> (f64, bool) {
        let (exponent_bits, fraction_bits, bias) = self.fields();
        let fraction = f64::from(bits & ((1 << fraction_bits) - 1));
        let field = bits >> fraction_bits & ((1 << exponent_bits) - 1);
        let scale = |exponent: i32| 2f64.powi(exponent - bias - fraction_bits as i32);
        let magnitude = match field {
            0 => fraction * scale(1),
            _ => (fraction + f64::from(1 << fraction_bits)) * scale(field as i32),
        };
        let negative = bits >> (exponent_bits + fraction_bits) & 1 == 1;
        (if negative { -magnitude } else { magnitude }, field == 0 && fraction != 0.0)
    }

    /// Bits of sign, exponent (unbiased, normal) and fraction.
    pub fn bits_of(self, negative: bool, exponent: i32, fraction: u32) -> u32 {
        let (exponent_bits, fraction_bits, bias) = self.fields();
        let field = (exponent + bias) as u32 & ((1 << exponent_bits) - 1);
        u32::from(negative) << (exponent_bits + fraction_bits)
            | field << fraction_bits
            | fraction & ((1 << fraction_bits) - 1)
    }
}

/// Lane and element of a lane that hold inner index `k` of line `line` of A or B.
pub(super) fn place(element_bits: usize, line: usize, k: usize) -> (usize, usize) {
    match element_bits {
        16 => (line + SIDE * (k / 4 % 2), k / 8 * 4 + k % 4),
        _ => (line + SIDE * (k / 8), k % 8),
    }
}

/// Puts A (rows), B (columns) and C (rows) into the kernels' input.
pub(super) fn pack(
    format: Format,
    a: &[[u32; SIDE]; SIDE],
    b: &[[u32; SIDE]; SIDE],
    c: &[[u32; SIDE]; SIDE],
) -> [u32; TILE_DWORDS] {
    let mut words = [0; TILE_DWORDS];
    let bits = format.bits();
    for (start, lines) in [(0, a), (B_START, b)] {
        for (line, elements) in lines.iter().enumerate() {
            for (k, element) in elements.iter().enumerate() {
                let (lane, slot) = place(bits, line, k);
                let at = start + LANE_DWORDS * lane + slot * bits / 32;
                words[at] |= element << (slot * bits % 32);
            }
        }
    }
    for (row, elements) in c.iter().enumerate() {
        for (column, element) in elements.iter().enumerate() {
            words[C_START + result_place(row, column)] = *element;
        }
    }
    words
}

/// The dword of D[row][column] in a tile's output.
pub(super) fn result_place(row: usize, column: usize) -> usize {
    C_LANE_DWORDS * (column + SIDE * (row / 8)) + row % 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        assert_eq!(Format::F16.value(0x3c00), (1.0, false));
        assert_eq!(Format::F16.value(0x8001), (-(2f64.powi(-24)), true));
        assert_eq!(Format::Bf16.value(0xc040), (-3.0, false));
        assert_eq!(Format::Fp8.value(0x7e), (448.0, false));
        assert_eq!(Format::Fp8.value(0x01), (2f64.powi(-9), true));
        assert_eq!(Format::F16.bits_of(true, 1, 0x200), 0xc200);
        assert_eq!(Format::Fp8.bits_of(false, 0, 0), 0x38);
    }

    /// The worked example of instruction set reference §7.3.
    #[test]
    fn layout() {
        let lanes: Vec<(usize, usize)> = (0..16).map(|k| place(16, 0, k)).collect();
        let expected = [(0, 0), (0, 1), (0, 2), (0, 3), (16, 0), (16, 1), (16, 2), (16, 3)];
        assert_eq!(lanes[..8], expected);
        assert_eq!((lanes[8], lanes[12], lanes[15]), ((0, 4), (16, 4), (16, 7)));
        assert_eq!((place(8, 3, 7), place(8, 3, 8)), ((3, 7), (19, 0)));
        assert_eq!(result_place(8, 5), 8 * 21);
        assert_eq!(result_place(15, 0), 8 * 16 + 7);
    }
}
