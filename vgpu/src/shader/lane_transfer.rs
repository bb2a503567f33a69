//! What a load or a store of a lane moves: its width, its extension and its place in the register.
//!
//! Contract: read off the mnemonic once, when the instruction is translated; execution finds it in the micro operation.
//! The checker (`check::registers::transfer`) reads mnemonics by itself, so that a mistake here does not hide there.

use zrt_isa::Opcode;

use crate::shader::micro::MicroOp;
use crate::shader::wave::LANES;

/// What a load or a store moves, packed into [`MicroOp::modifiers`]: one function serves all widths, since its
/// addresses are most of its work.
///
/// | bits | meaning |
/// |---|---|
/// | 4:0 | bytes per lane: 1, 2, 4, 8, 12 or 16 |
/// | 5 | sign-extended |
/// | 7:6 | place of a narrow value in the register: 0 all of it, 1 low half, 2 high half |
/// | 8 | store |
#[derive(Clone, Copy)]
pub(crate) struct LaneTransfer(u32);

impl LaneTransfer {
    const SIGNED: u32 = 1 << 5;
    const LOW: u32 = 1 << 6;
    const HIGH: u32 = 2 << 6;
    const STORE: u32 = 1 << 8;

    /// Of an opcode; `None` if it neither loads nor stores. The four families use the same names.
    pub fn of(opcode: Opcode) -> Option<LaneTransfer> {
        let (_, operation) = opcode.mnemonic().split_once('_')?;
        let (direction, rest) = match operation.strip_prefix("load_") {
            Some(rest) => (0, rest),
            None => (Self::STORE, operation.strip_prefix("store_")?),
        };
        let (place, datum) = match (rest.strip_prefix("d16_hi_"), rest.strip_prefix("d16_")) {
            (Some(datum), _) => (Self::HIGH, datum),
            (None, Some(datum)) => (Self::LOW, datum),
            (None, None) => (0, rest),
        };
        let bytes = match datum {
            "u8" | "b8" => 1,
            "i8" => 1 | Self::SIGNED,
            "u16" | "b16" => 2,
            "i16" => 2 | Self::SIGNED,
            "b32" | "addtid_b32" => 4,
            "b64" => 8,
            "b96" => 12,
            "b128" => 16,
            _ => return None,
        };
        Some(LaneTransfer(bytes | place | direction))
    }

    /// Writes it into a micro operation.
    pub fn describe(self, op: &mut MicroOp) {
        op.modifiers = self.0;
    }

    /// What [`LaneTransfer::describe`] wrote.
    #[inline(always)]
    pub fn in_op(op: &MicroOp) -> LaneTransfer {
        LaneTransfer(op.modifiers)
    }

    /// From a register to memory.
    pub fn is_store(self) -> bool {
        self.0 & Self::STORE != 0
    }

    /// Less than a dword per lane.
    pub fn is_narrow(self) -> bool {
        self.bytes() < 4
    }

    /// Bytes that a lane moves.
    #[inline(always)]
    pub fn bytes(self) -> usize {
        (self.0 & 0x1F) as usize
    }

    /// Registers that hold the dwords of a lane: 1 to 4.
    #[inline(always)]
    pub fn rows(self) -> usize {
        self.bytes() / 4
    }

    /// The value is the high half of its register.
    #[inline(always)]
    pub fn is_in_high_half(self) -> bool {
        self.0 & Self::HIGH != 0
    }

    /// Puts zero-extended narrow values into the register whose value is `old`.
    #[inline(always)]
    pub fn place(self, raw: &mut [u32; LANES], old: &[u32; LANES]) {
        let extension = if self.0 & Self::SIGNED != 0 { 32 - 8 * (self.0 & 0x1F) } else { 0 };
        let (keep, up) = match self.0 & (Self::LOW | Self::HIGH) {
            0 => (0, 0),
            Self::LOW => (0xFFFF_0000, 0),
            _ => (0xFFFF, 16),
        };
        for lane in 0..LANES {
            let value = (raw[lane] << extension) as i32 >> extension;
            raw[lane] = old[lane] & keep | (value as u32) << up & !keep;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mnemonic_says_what_moves() {
        let moves =
            |opcode: Opcode| LaneTransfer::of(opcode).map(|of| (of.is_store(), of.bytes(), of.is_narrow()));
        assert_eq!(moves(Opcode::GlobalLoadB96), Some((false, 12, false)));
        assert_eq!(moves(Opcode::ScratchStoreB128), Some((true, 16, false)));
        assert_eq!(moves(Opcode::BufferLoadD16HiI8), Some((false, 1, true)));
        assert_eq!(moves(Opcode::FlatStoreD16HiB16), Some((true, 2, true)));
        assert_eq!(moves(Opcode::GlobalLoadAddtidB32), Some((false, 4, false)));
        let is_high = |opcode: Opcode| LaneTransfer::of(opcode).is_some_and(LaneTransfer::is_in_high_half);
        assert!(is_high(Opcode::GlobalStoreD16HiB8) && !is_high(Opcode::GlobalStoreB8));
        for other in [Opcode::GlobalAtomicAddU32, Opcode::GlobalLoadTrB128, Opcode::GlobalInv] {
            assert_eq!(moves(other), None, "{}", other.mnemonic());
        }
    }

    #[test]
    fn a_narrow_value_is_extended_and_keeps_the_other_half() {
        let old = [0x1234_5678; LANES];
        for (opcode, raw, expected) in [
            (Opcode::GlobalLoadU8, 0x80, 0x80),
            (Opcode::GlobalLoadI8, 0x80, 0xFFFF_FF80),
            (Opcode::GlobalLoadI16, 0x8001, 0xFFFF_8001),
            (Opcode::GlobalLoadD16U8, 0x80, 0x1234_0080),
            (Opcode::GlobalLoadD16I8, 0x80, 0x1234_FF80),
            (Opcode::GlobalLoadD16B16, 0x8001, 0x1234_8001),
            (Opcode::GlobalLoadD16HiU8, 0x80, 0x0080_5678),
            (Opcode::GlobalLoadD16HiI8, 0x80, 0xFF80_5678),
            (Opcode::GlobalLoadD16HiB16, 0x8001, 0x8001_5678),
        ] {
            let mut row = [raw; LANES];
            LaneTransfer::of(opcode).unwrap().place(&mut row, &old);
            assert_eq!(row, [expected; LANES], "{}", opcode.mnemonic());
        }
    }
}
