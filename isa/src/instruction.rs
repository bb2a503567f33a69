//! The decoded form of one gfx12 instruction, used by the executor, the printer and the lints.
//!
//! Contract: a plain value, `Copy`, no allocation. Field meanings follow the instruction set reference §1, §2 and §6.
//! The decoder fills every field; a field that the encoding does not have is `Operand::None`, zero or `false`.

use crate::encoding::Encoding;
use crate::opcode::Opcode;

/// A source or destination as encoded. Its width follows from the opcode's operand description.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Operand {
    /// The encoding has no such operand.
    #[default]
    None,
    /// Scalar register code 0..=127: s0..s105, vcc_lo 106, vcc_hi 107, ttmp0..15 108..=123, null 124, m0 125,
    /// exec_lo 126, exec_hi 127. The first register of wider operands.
    Scalar(u8),
    /// 235..=238 (apertures), 251 vccz, 252 execz, 253 scc.
    Special(u8),
    /// An inline constant by its code: 128..=208 integers, 240..=248 floats (of the operand's width).
    Inline(u8),
    /// The 32-bit literal.
    Literal(u32),
    /// Vector register 0..=255. The first register of wider operands.
    Vector(u8),
}

impl Operand {
    /// The integer of an inline constant, 0 to 64 or -1 to -16; `None` for its floats and for every other operand.
    pub const fn inline_integer(self) -> Option<i32> {
        match self {
            Self::Inline(code @ 128..=192) => Some(code as i32 - 128),
            Self::Inline(code @ 193..=208) => Some(192 - code as i32),
            _ => None,
        }
    }
}

/// Source and result modifiers. Bit `i` belongs to source `i`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Modifiers {
    /// Negate (VOP3P: of the low half).
    pub negate: u8,
    /// Absolute value; for VOP3P this is `neg_hi`.
    pub absolute: u8,
    /// Half select: bits 0..=2 sources, bit 3 destination. For e32 encodings of 16-bit operands the decoder moves
    /// register bit 7 here (instruction set reference §6, 16-bit).
    pub op_sel: u8,
    /// VOP3P: the half of each source that feeds the high result.
    pub op_sel_hi: u8,
    /// Clamp the result.
    pub clamp: bool,
    /// 0 none, 1 ×2, 2 ×4, 3 ÷2.
    pub omod: u8,
}

/// Data-parallel primitives: the lane from which source 0 is fetched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum LaneSelect {
    /// Lane i reads lane i.
    #[default]
    None,
    /// DPP16. `control` is the 9-bit dpp_ctrl.
    Dpp16 {
        /// 9-bit dpp_ctrl (instruction set reference §1).
        control: u16,
        /// FI: read inactive lanes.
        fetch_inactive: bool,
        /// BC: an invalid source reads 0 and still writes.
        bound_control: bool,
        /// Banks of 4 lanes within a row that may write.
        bank_mask: u8,
        /// Rows of 16 lanes that may write.
        row_mask: u8,
    },
    /// DPP8: eight 3-bit selectors, lane 0's in the low bits.
    Dpp8 {
        /// 24 bits of selectors.
        selectors: u32,
        /// FI: read inactive lanes.
        fetch_inactive: bool,
    },
}

/// The second operation of a VOPD pair (`Y`); the first is in the [`Instruction`] itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DualHalf {
    /// The operation, by its plain VOP2/VOP1 name (`v_dual_mul_f32` is [`Opcode::VMulF32`]).
    pub opcode: Opcode,
    /// Destination vector register.
    pub destination: Operand,
    /// `src0`, `vsrc1`, and for fmaak/fmamk the literal in the operation's own position.
    pub sources: [Operand; 3],
}

/// One decoded instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Instruction {
    /// Encoding of the words.
    pub encoding: Encoding,
    /// The operation.
    pub opcode: Opcode,
    /// Length in dwords, literal and lane-select dword included (1..=4).
    pub dword_count: u8,
    /// `sdst`, `vdst`, `vdata` of loads. VOPC: the mask destination (vcc in e32; exec for cmpx).
    pub destination: Operand,
    /// The mask destination of VOP3SD and `v_add_co` (e32 carry forms: vcc).
    pub destination2: Operand,
    /// ALU sources in assembler order. Implicit vcc of e32 carry and cndmask forms is source 2, as in e64. fmaak and
    /// fmamk carry the literal in the assembler's position. SMEM: `[sbase, soffset, None]`. Memory: `[vaddr, data,
    /// data1 or None]` for VDS; `[vaddr, data, saddr]` for VFLAT/VGLOBAL/VSCRATCH (`off` is None); `[vaddr, data,
    /// rsrc]` for VBUFFER (its soffset is [`Instruction::soffset`]). SMEM prefetches and probes have their 5-bit
    /// length as the inline integer of source 2.
    pub sources: [Operand; 3],
    /// VBUFFER's soffset.
    pub soffset: Operand,
    /// Modifiers.
    pub modifiers: Modifiers,
    /// DPP.
    pub lanes: LaneSelect,
    /// SOPK/SOPP simm16 zero-extended; SMEM/VMEM signed 24-bit ioffset sign-extended; VDS offset0 | offset1 << 8.
    /// `s_setreg_imm32_b32`: the simm16; its literal is source 0. `s_sendmsg_rtn`: the message. VDSDIR: bits 23:8 of
    /// the word. Graphics classes: the opcode number.
    pub immediate: i32,
    /// Memory scope 0..=3 (CU, SE, DEV, SYS).
    pub scope: u8,
    /// Temporal hint, raw bits (VMEM 3, SMEM 2). For atomics bit 0 is RETURN.
    pub temporal_hint: u8,
    /// VSCRATCH: vaddr is used (sve). VBUFFER: bit 0 offen, bit 1 idxen, bit 2 tfe, bits 14:8 format.
    pub address_flags: u16,
    /// VOPD's second operation.
    pub dual: Option<DualHalf>,
}
