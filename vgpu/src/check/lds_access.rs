//! Which LDS bytes an instruction accesses.
//!
//! Contract: computed from the decoded instruction and the registers before it executes, independently of the code that
//! executes it. Cross-lane instructions of the same encoding access nothing.

use zrt_isa::{Instruction, Opcode, Operand};

use crate::shader::wave::{LANES, M0, Wave};

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LdsKind {
    Load,
    Store,
    /// Read-modify-write.
    Atomic,
}

/// What an LDS instruction does, known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LdsShape {
    pub kind: LdsKind,
    /// Bytes of one element.
    pub width_bytes: u32,
    /// Byte offsets of the one element, or of the two of `2addr` forms.
    offsets: [u32; 2],
    element_count: usize,
    base: Base,
}

/// What the offset is added to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// A vector register.
    Register(u8),
    /// m0, and four times the lane's number.
    LaneNumber,
    /// m0: one access for all lanes.
    Wave,
}

impl LdsShape {
    /// Of a VDS instruction; `None` where it accesses no LDS.
    pub fn of(instruction: &Instruction) -> Option<LdsShape> {
        use Opcode::*;
        let name = instruction.opcode.mnemonic().strip_prefix("ds_")?;
        let is_elsewhere = matches!(instruction.opcode, DsSwizzleB32 | DsNop);
        if is_elsewhere || name.contains("permute") || name.starts_with("bvh") {
            return None;
        }
        let kind = if name.starts_with("load") {
            LdsKind::Load
        } else if name.starts_with("store_") || name.starts_with("store2") {
            LdsKind::Store
        } else {
            LdsKind::Atomic
        };
        let width_bytes = width(name);
        let offset = instruction.immediate as u32 & 0xFFFF;
        let (offsets, element_count) = if name.contains("2addr") {
            let scale = if name.contains("stride64") { 64 * width_bytes } else { width_bytes };
            ([(offset & 0xFF) * scale, (offset >> 8) * scale], 2)
        } else {
            ([offset, 0], 1)
        };
        let base = match (instruction.opcode, instruction.sources[0]) {
            (DsAppend | DsConsume, _) => Base::Wave,
            (_, Operand::Vector(register)) if !name.contains("addtid") => Base::Register(register),
            _ => Base::LaneNumber,
        };
        Some(LdsShape { kind, width_bytes, offsets, element_count, base })
    }

    /// Lane and first byte of every element that a wave32, or one half of a wave64 whose registers are in place,
    /// accesses: lanes ascending within an element.
    pub fn addresses(&self, wave: &Wave, addresses: &mut Vec<(u32, u32)>) {
        addresses.clear();
        let exec = wave.exec();
        // An access of the whole wave is the first active lane's.
        let exec = if self.base == Base::Wave { exec & exec.wrapping_neg() } else { exec };
        let first_lane = if wave.is_high { LANES } else { 0 };
        let m0 = wave.scalar[M0 as usize] & 0xFFFF;
        for offset in &self.offsets[..self.element_count] {
            for lane in (0..LANES).filter(|lane| exec >> lane & 1 != 0) {
                let base = match self.base {
                    Base::Register(register) => wave.vector[register as usize].0[lane],
                    Base::LaneNumber => m0 + 4 * (first_lane + lane) as u32,
                    Base::Wave => m0,
                };
                addresses.push((lane as u32, base.wrapping_add(*offset)));
            }
        }
    }
}

/// Bytes of an element, from the end of the name.
fn width(name: &str) -> u32 {
    let name = name.trim_end_matches("_d16").trim_end_matches("_d16_hi");
    match name.rsplit('_').next().unwrap_or_default() {
        "b8" | "u8" | "i8" => 1,
        "b16" | "u16" | "i16" => 2,
        "b64" | "u64" | "i64" | "f64" => 8,
        "b96" => 12,
        "b128" => 16,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Accesses = (LdsKind, u32, Vec<(u32, u32)>);

    fn of(words: &[u32]) -> Option<Accesses> {
        let mut wave = Wave::new();
        wave.scalar[126] = 0b101;
        wave.scalar[M0 as usize] = 0xABCD_0020;
        wave.vector[0].0[0] = 16;
        wave.vector[0].0[2] = 64;
        let shape = LdsShape::of(&zrt_isa::decode(words).unwrap())?;
        let mut addresses = Vec::new();
        shape.addresses(&wave, &mut addresses);
        Some((shape.kind, shape.width_bytes, addresses))
    }

    /// Words of llvm-mc 19.
    #[test]
    fn widths_offsets_and_kinds_follow_the_instruction() {
        // ds_load_b64 v[2:3], v0 offset:8
        let load = of(&[0xD9D8_0008, 0x0200_0000]).unwrap();
        assert_eq!(load, (LdsKind::Load, 8, vec![(0, 24), (2, 72)]));
        // ds_store_2addr_b32 v0, v1, v2 offset0:1 offset1:3
        let store = of(&[0xD838_0301, 0x0002_0100]).unwrap();
        assert_eq!(store, (LdsKind::Store, 4, vec![(0, 20), (2, 68), (0, 28), (2, 76)]));
        // ds_add_u32 v0, v1
        assert_eq!(of(&[0xD800_0000, 0x0000_0100]).unwrap().0, LdsKind::Atomic);
        // ds_append v3 offset:8, at m0: once for all lanes.
        assert_eq!(of(&[0xD8F8_0008, 0x0300_0000]).unwrap(), (LdsKind::Atomic, 4, vec![(0, 40)]));
        // ds_store_addtid_b32 v1 offset:4
        assert_eq!(of(&[0xDAC0_0004, 0x0000_0100]).unwrap().2, [(0, 36), (2, 44)]);
        // ds_bpermute_b32 v1, v0, v2
        assert_eq!(of(&[0xDACC_0000, 0x0100_0200]), None);
    }
}
