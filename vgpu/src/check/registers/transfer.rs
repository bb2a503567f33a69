//! The bytes of memory that an instruction moves, and the register bits they move to or from.
//!
//! Contract: computed from the decoded instruction alone. Forms that convert data (formatted buffer accesses) or
//! move it between lanes (transposing loads) have no transfer: what they load counts as defined.

use zrt_isa::effects::VECTOR_FIRST;
use zrt_isa::{Encoding, Instruction, Operand};

use crate::check::undefined::LANE_DWORDS_MAX;
use crate::shader::address::{Target, flat_address, flat_target};

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
    /// Low register of a flat address, or the vector offset, if there is one.
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
        let private = match instruction.encoding {
            Vscratch => {
                Some(PrivateAddress { vector, scalar, immediate: instruction.immediate, is_flat: false })
            }
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
        if self.vector.is_none() {
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
mod tests;
