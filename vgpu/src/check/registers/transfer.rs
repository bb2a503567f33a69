//! The bytes of memory that an instruction moves, and the register bits they move to or from.
//!
//! Contract: computed from the decoded instruction alone. Forms that convert data (formatted buffer accesses) or
//! move it between lanes (transposing loads) have no transfer: what they load counts as defined.

use zrt_isa::effects::VECTOR_FIRST;
use zrt_isa::{Encoding, Instruction, Operand};

use crate::check::undefined::LANE_DWORDS_MAX;
use crate::shader::address::{SCRATCH_VECTOR_OFFSET, Target, flat_address, flat_target};

use super::subject::{LANES_MAX, Subject};

/// The bytes that an instruction moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Whether it moves them to registers.
    pub is_load: bool,
    /// Bytes of an element in memory.
    pub width_bytes: u32,
    /// First register of each element.
    registers: [Option<u16>; 2],
    is_signed: bool,
    /// Bit position in the register of an element narrower than a dword.
    shift: u32,
    /// Whether a narrow load writes only half of its register.
    is_half: bool,
    /// Set if the access targets, or may target, the private segment.
    pub(super) private: Option<PrivateAddress>,
}

/// The formation of an offset in the private segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PrivateAddress {
    /// Low register of a flat address, or the vector offset.
    pub(super) vector: Option<u8>,
    pub(super) scalar: Option<u8>,
    pub(super) immediate: i32,
    /// Whether the lane's high dword decides if private memory is meant.
    pub(super) is_flat: bool,
}

impl Transfer {
    /// The transfer of an instruction; `None` if it moves nothing, or not byte by byte.
    pub fn of(instruction: &Instruction) -> Option<Self> {
        use Encoding::{Smem, Vbuffer, Vds, Vflat, Vglobal, Vscratch};
        if !matches!(instruction.encoding, Smem | Vds | Vbuffer | Vflat | Vglobal | Vscratch) {
            return None;
        }
        let mnemonic = instruction.opcode.mnemonic();
        let (is_load, name) = match (mnemonic.split_once("_load_"), mnemonic.split_once("_store_")) {
            (Some((_, name)), _) => (true, name),
            (None, Some((_, name))) => (false, name),
            // The value that an atomic returns; what it stores is handled elsewhere.
            (None, None) if instruction.destination != Operand::None => {
                (true, if mnemonic.ends_with("64") { "b64" } else { "b32" })
            }
            (None, None) => return None,
        };
        let is_pair = name.starts_with("2addr_");
        let mut form =
            name.trim_start_matches("2addr_").trim_start_matches("stride64_").trim_start_matches("addtid_");
        let (is_half, is_high) = (form.contains("d16"), form.contains("d16_hi"));
        for part in ["d16_hi_", "d16_", "_d16_hi", "_d16"] {
            form = form.trim_start_matches(part).trim_end_matches(part);
        }
        let width_bytes = match form {
            "u8" | "i8" | "b8" => 1,
            "u16" | "i16" | "b16" => 2,
            "b32" => 4,
            "b64" => 8,
            "b96" => 12,
            "b128" => 16,
            "b256" => 32,
            "b512" => 64,
            _ => return None,
        };
        let number = |operand| match operand {
            Operand::Vector(register) => Some((VECTOR_FIRST + usize::from(register)) as u16),
            Operand::Scalar(code) => Some(u16::from(code)),
            _ => None,
        };
        let registers = match (is_load, is_pair) {
            (true, _) => {
                let first = number(instruction.destination);
                [first, first.filter(|_| is_pair).map(|first| first + (width_bytes / 4) as u16)]
            }
            (false, true) => [number(instruction.sources[1]), number(instruction.sources[2])],
            (false, false) if name.starts_with("addtid") && instruction.encoding == Vds => return None,
            (false, false) => [number(instruction.sources[1]), None],
        };
        let vector = match instruction.sources[0] {
            Operand::Vector(register) => Some(register),
            _ => None,
        };
        let scalar = match instruction.sources[2] {
            Operand::Scalar(code) => Some(code),
            _ => None,
        };
        let has_vector = u32::from(instruction.address_flags) & SCRATCH_VECTOR_OFFSET != 0;
        let private = match instruction.encoding {
            Vscratch => Some(PrivateAddress {
                vector: vector.filter(|_| has_vector),
                scalar,
                immediate: instruction.immediate,
                is_flat: false,
            }),
            Vflat => {
                Some(PrivateAddress { vector, scalar: None, immediate: instruction.immediate, is_flat: true })
            }
            _ => None,
        };
        Some(Self {
            is_load,
            width_bytes,
            registers,
            is_signed: matches!(form, "i8" | "i16"),
            shift: if is_high { 16 } else { 0 },
            is_half,
            private,
        })
    }

    /// Data registers of each element.
    pub fn elements(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let count = self.width_bytes.div_ceil(4) as usize;
        self.registers.into_iter().flatten().map(move |first| usize::from(first)..usize::from(first) + count)
    }

    /// Calls `found` with each register that receives bits of a loaded element, and the bits there.
    pub fn place(&self, element: u32, bits: &[u32], mut found: impl FnMut(usize, u32)) {
        let Some(registers) = self.elements().nth(element as usize) else { return };
        if self.width_bytes >= 4 {
            return registers.zip(bits).for_each(|(register, bits)| found(register, *bits));
        }
        let mask = self.narrow_mask();
        let mut bits = bits.first().copied().unwrap_or_default() & mask;
        if self.is_signed && bits > mask >> 1 {
            bits |= !mask;
        }
        let bits = if self.is_half { bits & 0xffff } else { bits };
        registers.for_each(|register| found(register, bits << self.shift));
    }

    /// The part of an element's undefined register bits that is stored to memory.
    pub(super) fn stored(&self, registers: [u32; LANE_DWORDS_MAX]) -> [u32; LANE_DWORDS_MAX] {
        if self.width_bytes >= 4 {
            return registers;
        }
        [registers[0] >> self.shift & self.narrow_mask(), 0, 0, 0]
    }

    fn narrow_mask(&self) -> u32 {
        (1 << (8 * self.width_bytes)) - 1
    }
}

/// Offsets of the active lanes in their private segments.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "one at a time, on the stack")]
pub(super) enum PrivateOffsets {
    /// The same offset in all of them.
    Same(u32),
    /// A separate offset per lane, or none.
    Each([Option<u32>; LANES_MAX]),
}

impl PrivateOffsets {
    pub(super) fn of_lane(&self, lane: usize) -> Option<u32> {
        match self {
            Self::Same(offset) => Some(*offset),
            Self::Each(offsets) => offsets[lane],
        }
    }
}

impl PrivateAddress {
    /// The offsets of the active lanes; `None` if none of them accesses private memory.
    pub(super) fn offsets<S: Subject>(&self, subject: &S, exec: u64) -> Option<PrivateOffsets> {
        if !self.is_flat && self.vector.is_none() {
            return Some(PrivateOffsets::Same(self.base(subject)));
        }
        let mut offsets = [None; LANES_MAX];
        let (mut first, mut is_same) = (None, true);
        for lane in (0..LANES_MAX).filter(|lane| exec >> lane & 1 != 0) {
            let offset = self.of_lane(subject, lane);
            offsets[lane] = offset;
            first = first.or(Some(offset));
            is_same &= first == Some(offset);
        }
        match first {
            None => None,
            Some(offset) if is_same => offset.map(PrivateOffsets::Same),
            Some(_) => Some(PrivateOffsets::Each(offsets)),
        }
    }

    /// A lane's offset; `None` if it accesses something else.
    fn of_lane<S: Subject>(&self, subject: &S, lane: usize) -> Option<u32> {
        let vector = |register: u8| subject.vector(register, lane as u32);
        let own = self.vector.map_or(0, vector);
        if !self.is_flat {
            return Some(self.base(subject).wrapping_add(own));
        }
        let high = vector(self.vector?.wrapping_add(1));
        match flat_target(flat_address(own, high, self.immediate)) {
            Target::Private(offset) => Some(offset as u32),
            Target::Global(_) | Target::Lds(_) | Target::Outside => None,
        }
    }

    fn base<S: Subject>(&self, subject: &S) -> u32 {
        let scalar = self.scalar.and_then(|code| subject.scalar().get(usize::from(code)).copied());
        scalar.unwrap_or_default().wrapping_add(self.immediate as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(words: &[u32], element: u32, bits: &[u32]) -> Vec<(usize, u32)> {
        let transfer = Transfer::of(&zrt_isa::decode(words).unwrap()).unwrap();
        let mut placed = Vec::new();
        transfer.place(element, bits, |register, bits| placed.push((register, bits)));
        placed
    }

    /// Words of llvm-mc 19.
    #[test]
    fn loads_place_bytes_as_they_are_encoded() {
        let v = |register: usize| VECTOR_FIRST + register;
        let u8 = [0xee04_0004, 0x0000_0002, 0x0000_0001]; // global_load_u8 v2, v1, s[4:5]
        assert_eq!(placed(&u8, 0, &[0xffff_ff80]), [(v(2), 0x80)], "zeros above");
        let i8 = [0xee04_4004, 0x0000_0002, 0x0000_0001]; // global_load_i8
        assert_eq!(placed(&i8, 0, &[0x80]), [(v(2), 0xffff_ff80)], "the sign decides what is above");
        assert_eq!(placed(&i8, 0, &[0x7f]), [(v(2), 0x7f)]);
        let high = [0xee08_8004, 0x0000_0002, 0x0000_0001]; // global_load_d16_hi_i8
        assert_eq!(placed(&high, 0, &[0x80]), [(v(2), 0xff80_0000)]);
        let wide = [0xee05_4004, 0x0000_0002, 0x0000_0001]; // global_load_b64 v[2:3], v1, s[4:5]
        assert_eq!(placed(&wide, 0, &[1, 2]), [(v(2), 1), (v(3), 2)]);
        let scalar = [0xf400_2000, 0xf800_0000]; // s_load_b64 s[0:1], s[0:1], 0x0
        assert_eq!(placed(&scalar, 0, &[1, 2]), [(0, 1), (1, 2)]);
        let pair = [0xd8dc_0301, 0x0200_0000]; // ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:3
        assert_eq!((placed(&pair, 0, &[1]), placed(&pair, 1, &[1])), (vec![(v(2), 1)], vec![(v(3), 1)]));
    }
}
