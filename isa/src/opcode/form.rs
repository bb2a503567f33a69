//! Which modifier bits the 64-bit VALU encodings of an operation have.
//!
//! Contract: constant data, one value per pattern found by flipping every bit of every operation and testing it
//! with llvm-mc 19. A bit outside `used` and `ignored` must be zero (for `op_sel_hi` of VOP3P: one).

/// Modifier bits of a VOP3, VOP3SD or VOP3P operation. Masks have bit `i` for source `i`; `op_sel` bit 3 is the
/// destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ModifierForm {
    /// Has `clamp`.
    pub clamp: bool,
    /// Has `omod`.
    pub omod: bool,
    /// Sources with negation (VOP3P: of the low half).
    pub negate: u8,
    /// Sources with absolute value (VOP3P: `neg_hi`).
    pub absolute: u8,
    /// Sources whose negate and absolute bits exist without effect.
    pub inert: u8,
    /// Half selects.
    pub op_sel: u8,
    /// Half selects that assemblers write for 16-bit operands only.
    pub op_sel_inert: u8,
    /// VOP3P: sources with a second half select; the bit of any other source must be set.
    pub op_sel_hi: u8,
    /// VOP3P: second half selects without effect.
    pub op_sel_hi_inert: u8,
}

const NOTHING: ModifierForm = ModifierForm {
    clamp: false,
    omod: false,
    negate: 0,
    absolute: 0,
    inert: 0,
    op_sel: 0,
    op_sel_inert: 0,
    op_sel_hi: 0,
    op_sel_hi_inert: 0,
};

impl ModifierForm {
    const fn clamp(self) -> Self {
        Self { clamp: true, ..self }
    }

    const fn omod(self) -> Self {
        Self { omod: true, ..self }
    }

    /// Both negation and absolute value of the sources in the mask.
    const fn float(self, sources: u8) -> Self {
        Self { negate: sources, absolute: sources, ..self }
    }

    const fn negate(self, sources: u8) -> Self {
        Self { negate: sources, ..self }
    }

    const fn inert(self, sources: u8) -> Self {
        Self { inert: sources, ..self }
    }

    const fn op_sel(self, used: u8, inert: u8) -> Self {
        Self { op_sel: used, op_sel_inert: inert, ..self }
    }

    const fn op_sel_hi(self, used: u8, inert: u8) -> Self {
        Self { op_sel_hi: used, op_sel_hi_inert: inert, ..self }
    }
}

pub(super) const PLAIN: ModifierForm = NOTHING.op_sel(0, 0b1111);
pub(super) const SATURATE: ModifierForm = PLAIN.clamp();
pub(super) const CONVERT: ModifierForm = SATURATE.omod();
pub(super) const FLOAT1: ModifierForm = CONVERT.float(0b001);
pub(super) const FLOAT2: ModifierForm = CONVERT.float(0b011);
pub(super) const FLOAT3: ModifierForm = CONVERT.float(0b111);
pub(super) const DIVIDE_SCALE: ModifierForm = CONVERT.negate(0b111);
pub(super) const FLOAT1_TO_INTEGER: ModifierForm = SATURATE.float(0b001);
pub(super) const COMPARE: ModifierForm = SATURATE.float(0b011);
pub(super) const CLASSIFY: ModifierForm = PLAIN.float(0b001);
/// The 64-bit form as in LLVM 22 (`real-true16`); version 19 does not know it.
pub(super) const MOVE_HALF: ModifierForm = NOTHING.inert(0b001).op_sel(0b1001, 0);
pub(super) const SELECT: ModifierForm = PLAIN.float(0b011);
pub(super) const SCALE: ModifierForm = CONVERT.float(0b001).inert(0b010);
pub(super) const BYTE_TO_FLOAT: ModifierForm = NOTHING.op_sel(0b0011, 0);
pub(super) const BYTES_TO_FLOATS: ModifierForm = NOTHING.clamp().omod().op_sel(0b1001, 0);
pub(super) const FLOATS_TO_BYTES: ModifierForm = NOTHING.float(0b011).op_sel(0b1011, 0);
pub(super) const FLOAT_TO_BYTE: ModifierForm = NOTHING.float(0b001).inert(0b010).op_sel(0b1100, 0);
pub(super) const PACK_BYTE: ModifierForm = SATURATE.float(0b001).inert(0b110);
pub(super) const FMAC_HALF: ModifierForm = NOTHING.clamp().omod().float(0b011).op_sel(0b1011, 0);
pub(super) const HALF2: ModifierForm = NOTHING.clamp().float(0b011).op_sel(0b1011, 0);
pub(super) const HALF3: ModifierForm = NOTHING.clamp().omod().float(0b111).op_sel(0b1111, 0);
pub(super) const INTEGER_HALF2: ModifierForm = NOTHING.clamp().inert(0b011).op_sel(0b1011, 0);
pub(super) const INTEGER_HALF3: ModifierForm = NOTHING.clamp().inert(0b111).op_sel(0b1111, 0);
pub(super) const DOT_HALF: ModifierForm = NOTHING.float(0b111).op_sel(0b1100, 0b0011);
pub(super) const PERMLANE: ModifierForm = NOTHING.inert(0b111).op_sel(0b0011, 0b1100);
pub(super) const PERMLANE_VAR: ModifierForm = NOTHING.inert(0b011).op_sel(0b0011, 0b1000);
pub(super) const PACKED3: ModifierForm = NOTHING.clamp().float(0b111).op_sel(0b0111, 0).op_sel_hi(0b111, 0);
pub(super) const PACKED2: ModifierForm =
    NOTHING.clamp().float(0b011).op_sel(0b0011, 0).op_sel_hi(0b011, 0b100);
pub(super) const MATRIX_BYTE: ModifierForm = NOTHING.float(0b100);
pub(super) const MATRIX_FLOAT: ModifierForm = NOTHING.float(0b111);
pub(super) const MATRIX_INTEGER: ModifierForm = NOTHING.clamp().negate(0b011);
pub(super) const SPARSE_FLOAT: ModifierForm = NOTHING.float(0b011).op_sel(0b0001, 0);
pub(super) const SPARSE_INTEGER: ModifierForm = NOTHING.clamp().negate(0b011).op_sel(0b0001, 0);
pub(super) const SPARSE_BYTE: ModifierForm = NOTHING.op_sel(0b0001, 0);
