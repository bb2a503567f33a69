//! Shapes and register layouts of the matrix operations (instruction set reference §7.2 to §7.4).
//!
//! Contract: pure functions of numbers. All tiles have 16 rows and 16 columns; `depth` is the number of stored elements
//! of a row of A, half of the inner dimension for the sparse operations.
//!
//! One rule produces every row of the two layout tables. Lane `l` belongs to line `l % 16` (a row of A, a column of
//! B, C or D) and half `l / 16 % 2`. The elements of a line that belong to a half are in ascending order, starting
//! at bit 0 of the lane's first register. For 8-bit and 4-bit operands the half is the upper bit of k, for 16-bit
//! operands the bit below that, for results the upper bit of the row. A wave64 keeps the upper half of those
//! registers in lanes 32 to 63; an operand of one register keeps its position, and lanes 32 to 63 are not used.

use zrt_isa::Opcode;
use zrt_isa::opcode::DataType;

/// Rows of A, C and D; columns of B, C and D.
pub(crate) const SIDE: usize = 16;
/// Bits of a register in one lane.
const DWORD_BITS: usize = 32;

/// The type of an element of A or B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Element {
    /// binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// OCP E4M3.
    Fp8,
    /// OCP E5M2.
    Bf8,
    /// An 8-bit integer; `neg_lo` makes it signed.
    Byte,
    /// A 4-bit integer; `neg_lo` makes it signed.
    Nibble,
}

impl Element {
    /// Width in bits.
    pub const fn bits(self) -> usize {
        match self {
            Element::F16 | Element::Bf16 => 16,
            Element::Fp8 | Element::Bf8 | Element::Byte => 8,
            Element::Nibble => 4,
        }
    }
}

/// The type of an element of C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sum {
    F32,
    F16,
    Bf16,
    I32,
}

impl Sum {
    /// Width in bits.
    pub const fn bits(self) -> usize {
        match self {
            Sum::F16 | Sum::Bf16 => 16,
            Sum::F32 | Sum::I32 => 32,
        }
    }

    /// The per-element type of an inline constant as addend.
    pub const fn data_type(self) -> DataType {
        match self {
            Sum::F32 => DataType::F32,
            Sum::F16 => DataType::F16,
            Sum::Bf16 => DataType::Bf16,
            Sum::I32 => DataType::I32,
        }
    }
}

/// One operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub a: Element,
    pub b: Element,
    pub sum: Sum,
    /// Inner dimension: columns of A, rows of B.
    pub inner: usize,
    /// Whether A holds two of every four elements, with a register that says which.
    pub is_sparse: bool,
}

impl Shape {
    /// Stored elements of a row of A.
    pub const fn depth(self) -> usize {
        if self.is_sparse { self.inner / 2 } else { self.inner }
    }

    /// Whether f32 represents every product of two elements exactly. It does except for bfloat16: the significands
    /// of the other formats have at most 11 bits, and their products are between 2^-48 and 2^32.
    pub const fn has_exact_products(self) -> bool {
        !matches!((self.a, self.b), (Element::Bf16, _) | (_, Element::Bf16))
    }
}

const fn dense(a: Element, b: Element, sum: Sum, inner: usize) -> Shape {
    Shape { a, b, sum, inner, is_sparse: false }
}

const fn sparse(a: Element, b: Element, sum: Sum, inner: usize) -> Shape {
    Shape { a, b, sum, inner, is_sparse: true }
}

/// All matrix operations (instruction set reference §7.2).
pub(crate) const SHAPES: [(Opcode, Shape); 22] = {
    use Element::*;
    use Opcode::*;
    [
        (VWmmaF3216x16x16F16, dense(F16, F16, Sum::F32, 16)),
        (VWmmaF3216x16x16Bf16, dense(Bf16, Bf16, Sum::F32, 16)),
        (VWmmaF1616x16x16F16, dense(F16, F16, Sum::F16, 16)),
        (VWmmaBf1616x16x16Bf16, dense(Bf16, Bf16, Sum::Bf16, 16)),
        (VWmmaI3216x16x16Iu8, dense(Byte, Byte, Sum::I32, 16)),
        (VWmmaI3216x16x16Iu4, dense(Nibble, Nibble, Sum::I32, 16)),
        (VWmmaF3216x16x16Fp8Fp8, dense(Fp8, Fp8, Sum::F32, 16)),
        (VWmmaF3216x16x16Fp8Bf8, dense(Fp8, Bf8, Sum::F32, 16)),
        (VWmmaF3216x16x16Bf8Fp8, dense(Bf8, Fp8, Sum::F32, 16)),
        (VWmmaF3216x16x16Bf8Bf8, dense(Bf8, Bf8, Sum::F32, 16)),
        (VWmmaI3216x16x32Iu4, dense(Nibble, Nibble, Sum::I32, 32)),
        (VSwmmacF3216x16x32F16, sparse(F16, F16, Sum::F32, 32)),
        (VSwmmacF3216x16x32Bf16, sparse(Bf16, Bf16, Sum::F32, 32)),
        (VSwmmacF1616x16x32F16, sparse(F16, F16, Sum::F16, 32)),
        (VSwmmacBf1616x16x32Bf16, sparse(Bf16, Bf16, Sum::Bf16, 32)),
        (VSwmmacI3216x16x32Iu8, sparse(Byte, Byte, Sum::I32, 32)),
        (VSwmmacI3216x16x32Iu4, sparse(Nibble, Nibble, Sum::I32, 32)),
        (VSwmmacI3216x16x64Iu4, sparse(Nibble, Nibble, Sum::I32, 64)),
        (VSwmmacF3216x16x32Fp8Fp8, sparse(Fp8, Fp8, Sum::F32, 32)),
        (VSwmmacF3216x16x32Fp8Bf8, sparse(Fp8, Bf8, Sum::F32, 32)),
        (VSwmmacF3216x16x32Bf8Fp8, sparse(Bf8, Fp8, Sum::F32, 32)),
        (VSwmmacF3216x16x32Bf8Bf8, sparse(Bf8, Bf8, Sum::F32, 32)),
    ]
};

/// The position of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    /// Lane of the wave.
    pub lane: usize,
    /// Number of the element among those of the lane.
    pub slot: usize,
}

impl Place {
    /// Distance from the operand's first register.
    pub const fn register(self, element_bits: usize) -> usize {
        self.slot * element_bits / DWORD_BITS
    }

    /// Lowest bit in the register.
    pub const fn shift(self, element_bits: usize) -> usize {
        self.slot * element_bits % DWORD_BITS
    }
}

/// Moves the upper registers of a wave32 lane to lanes 32 to 63 if the wave has them.
const fn in_wave(lane: usize, slot: usize, lane_slots: usize, element_bits: usize, is_wave64: bool) -> Place {
    if !is_wave64 || lane_slots * element_bits <= DWORD_BITS {
        return Place { lane, slot };
    }
    let kept = lane_slots / 2;
    Place { lane: lane + 2 * SIDE * (slot / kept), slot: slot % kept }
}

/// Element `k` of `depth` of line `line` of A or B.
pub(crate) const fn operand_place(
    element_bits: usize,
    depth: usize,
    line: usize,
    k: usize,
    is_wave64: bool,
) -> Place {
    let lane_slots = depth / 2;
    let (half, slot) = if element_bits == 16 {
        let run = depth / 4;
        (k / run % 2, k / (2 * run) * run + k % run)
    } else {
        (k / lane_slots, k % lane_slots)
    };
    in_wave(SIDE * half + line, slot, lane_slots, element_bits, is_wave64)
}

/// The place of an element of C or D.
pub(crate) const fn sum_place(element_bits: usize, row: usize, column: usize, is_wave64: bool) -> Place {
    in_wave(SIDE * (row / 8) + column, row % 8, 8, element_bits, is_wave64)
}

/// Bits of the index register that one lane uses; the unit of `index_key`.
pub(crate) const fn index_bits(element_bits: usize, depth: usize, is_wave64: bool) -> usize {
    let lane_slots = depth / 2;
    let is_split = is_wave64 && lane_slots * element_bits > DWORD_BITS;
    2 * if is_split { lane_slots / 2 } else { lane_slots }
}
