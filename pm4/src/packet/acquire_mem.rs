//! ACQUIRE_MEM: invalidates and writes back caches (hardware reference §4.5).
//!
//! It acts when earlier packets have reached the sync point; it does **not** wait for running waves. A CS_PARTIAL_FLUSH
//! or a wait for a fence must come first.

use super::words::{emit_words, fixed_header, join, split};
use crate::error::{EmitError, ParseError};
use crate::field::FieldOverflow;
use crate::header::HeaderFlags;

packet_view!(ACQUIRE_MEM, exact 7);

/// Fields of the body (hardware reference §4.5).
pub mod field {
    fields! {
        /// Which engine; clear on a compute ring.
        ENGINE = 0 [31 : 31];
        /// Size of the range, low dword.
        SIZE_LO = 1 [31 : 0];
        /// Size of the range, high dword.
        SIZE_HI = 2 [31 : 0];
        /// Start of the range, low dword.
        BASE_LO = 3 [31 : 0];
        /// Start of the range, high dword.
        BASE_HI = 4 [31 : 0];
        /// Clocks between polls.
        POLL_INTERVAL = 5 [15 : 0];
        /// Invalidate the instruction cache; 1 is all of it.
        GLI_INV = 6 [1 : 0];
        /// Range of the GL1 operation.
        GL1_RANGE = 6 [3 : 2];
        /// Write back the metadata cache.
        GLM_WB = 6 [4 : 4];
        /// Invalidate the metadata cache.
        GLM_INV = 6 [5 : 5];
        /// Write back the scalar cache.
        GLK_WB = 6 [6 : 6];
        /// Invalidate the scalar cache.
        GLK_INV = 6 [7 : 7];
        /// Invalidate the vector L0.
        GLV_INV = 6 [8 : 8];
        /// Invalidate GL1, a pass-through buffer on gfx12.
        GL1_INV = 6 [9 : 9];
        /// GL2 operation without synchronisation.
        GL2_US = 6 [10 : 10];
        /// Range of the GL2 operation.
        GL2_RANGE = 6 [12 : 11];
        /// Discard GL2 lines.
        GL2_DISCARD = 6 [13 : 13];
        /// Invalidate GL2.
        GL2_INV = 6 [14 : 14];
        /// Write back GL2.
        GL2_WB = 6 [15 : 15];
        /// Order of the operations.
        SEQ = 6 [17 : 16];
        /// The range is physical.
        RANGE_IS_PA = 6 [18 : 18];
    }
}

flags_of_fields! {
    /// The single bits of GCR_CNTL, in place (hardware reference §4.5).
    AcquireFlags of field {
        GLM_WB
        GLM_INV
        GLK_WB
        GLK_INV
        GLV_INV
        GL1_INV
        GL2_US
        GL2_DISCARD
        GL2_INV
        GL2_WB
        RANGE_IS_PA
    }
}

/// GCR_CNTL: the operation for each cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AcquireControl {
    /// The single bits.
    pub flags: AcquireFlags,
    /// Instruction cache: 0 leaves it, 1 invalidates all of it.
    pub gli_inv: u8,
    /// Range of the GL1 operation, 2 bits; 0 is everything.
    pub gl1_range: u8,
    /// Range of the GL2 operation, 2 bits; 0 is everything.
    pub gl2_range: u8,
    /// Order of the operations, 2 bits.
    pub sequence: u8,
}

impl AcquireControl {
    /// Everything: 0xC3B1, the kernel's own memory sync on gfx12 (hardware reference §4.5). Makes writes by the
    /// host and other devices visible, new code included.
    pub const EVERYTHING: AcquireControl = AcquireControl {
        flags: AcquireFlags::GLM_WB
            .union(AcquireFlags::GLM_INV)
            .union(AcquireFlags::GLK_INV)
            .union(AcquireFlags::GLV_INV)
            .union(AcquireFlags::GL1_INV)
            .union(AcquireFlags::GL2_INV)
            .union(AcquireFlags::GL2_WB),
        gli_inv: 1,
        gl1_range: 0,
        gl2_range: 0,
        sequence: 0,
    };

    /// What one dispatch needs to see the stores of another on the same device: vector L0, scalar cache and GL1
    /// invalidated, 0x380. GL2 is the device's coherence point and is not touched (hardware reference §6.1).
    pub const DEVICE: AcquireControl = AcquireControl {
        flags: AcquireFlags::GLK_INV.union(AcquireFlags::GLV_INV).union(AcquireFlags::GL1_INV),
        gli_inv: 0,
        gl1_range: 0,
        gl2_range: 0,
        sequence: 0,
    };

    /// GCR_CNTL as a dword.
    #[inline(always)]
    pub const fn to_word(&self) -> Result<u32, FieldOverflow> {
        let parts = [
            field::GLI_INV.put(self.gli_inv as u32),
            field::GL1_RANGE.put(self.gl1_range as u32),
            field::GL2_RANGE.put(self.gl2_range as u32),
            field::SEQ.put(self.sequence as u32),
        ];
        let mut word = self.flags.bits();
        let mut at = 0;
        while at < parts.len() {
            match parts[at] {
                Ok(bits) => word |= bits,
                Err(overflow) => return Err(overflow),
            }
            at += 1;
        }
        Ok(word)
    }

    fn from_fields(word: u32) -> AcquireControl {
        AcquireControl {
            flags: AcquireFlags::from_bits_truncate(word),
            gli_inv: field::GLI_INV.get(word) as u8,
            gl1_range: field::GL1_RANGE.get(word) as u8,
            gl2_range: field::GL2_RANGE.get(word) as u8,
            sequence: field::SEQ.get(word) as u8,
        }
    }
}

impl<T: AsRef<[u32]>> Packet<T> {
    /// Which engine; clear on a compute ring.
    pub fn engine(&self) -> bool {
        self.get(field::ENGINE) != 0
    }

    /// Size of the range, in the unit of the field.
    pub fn size(&self) -> u64 {
        join(self.get(field::SIZE_LO), self.get(field::SIZE_HI))
    }

    /// Start of the range, in the unit of the field.
    pub fn base(&self) -> u64 {
        join(self.get(field::BASE_LO), self.get(field::BASE_HI))
    }

    /// Clocks between polls.
    pub fn poll_interval(&self) -> u16 {
        self.get(field::POLL_INTERVAL) as u16
    }

    /// GCR_CNTL.
    pub fn control(&self) -> AcquireControl {
        AcquireControl::from_fields(self.body()[6])
    }
}

/// A cache operation as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// Which engine; clear on a compute ring.
    pub engine: bool,
    /// Size of the range.
    pub size: u64,
    /// Start of the range.
    pub base: u64,
    /// Clocks between polls.
    pub poll_interval: u16,
    /// The cache operations.
    pub control: AcquireControl,
}

impl Repr {
    /// Dwords of the packet.
    pub const DWORDS: usize = 8;

    /// `control` over all addresses, with the kernel's size and poll interval (hardware reference §4.5).
    pub const fn all_addresses(control: AcquireControl) -> Repr {
        Repr {
            header_flags: HeaderFlags::empty(),
            engine: false,
            size: 0x00ff_ffff_ffff_ffff,
            base: 0,
            poll_interval: 10,
            control,
        }
    }

    /// Reads the packet.
    pub fn parse<T: AsRef<[u32]>>(packet: &Packet<T>) -> Result<Repr, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        Ok(Repr {
            header_flags: packet.header().flags(),
            engine: packet.engine(),
            size: packet.size(),
            base: packet.base(),
            poll_interval: packet.poll_interval(),
            control: packet.control(),
        })
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        Repr::DWORDS
    }

    /// The packet's words.
    #[inline(always)]
    pub fn words(&self) -> Result<[u32; Repr::DWORDS], EmitError> {
        let (size_low, size_high) = split(self.size);
        let (base_low, base_high) = split(self.base);
        Ok([
            fixed_header(OPCODE, 7, self.header_flags),
            field::ENGINE.flag(self.engine),
            size_low,
            size_high,
            base_low,
            base_high,
            u32::from(self.poll_interval),
            self.control.to_word()?,
        ])
    }

    /// Writes the packet into a slice of exactly its length.
    pub fn emit(&self, words: &mut [u32]) -> Result<(), EmitError> {
        emit_words(&self.words()?, words)
    }
}

super::words::display_fields!();

#[cfg(test)]
mod tests {
    use super::super::testing::{check_fields, check_golden, check_reserved_bits};
    use super::*;

    const KERNEL_SYNC: [u32; 8] = [0xc006_5800, 0, 0xffff_ffff, 0x00ff_ffff, 0, 0, 0xa, 0xc3b1];

    #[test]
    fn both_directions() {
        let everything = Repr::all_addresses(AcquireControl::EVERYTHING);
        check_golden(super::super::Repr::AcquireMem(everything), &KERNEL_SYNC);
        let full_with_scalar_write_back = AcquireControl {
            flags: AcquireControl::EVERYTHING.flags | AcquireFlags::GLK_WB,
            ..AcquireControl::EVERYTHING
        };
        check_golden(
            super::super::Repr::AcquireMem(Repr {
                size: u64::MAX,
                poll_interval: 0,
                control: full_with_scalar_write_back,
                ..everything
            }),
            &[0xc006_5800, 0, 0xffff_ffff, 0xffff_ffff, 0, 0, 0, 0xc3f1],
        );
        check_golden(
            super::super::Repr::AcquireMem(Repr {
                engine: true,
                base: 0x1122_3344_5566_7788,
                control: AcquireControl::DEVICE,
                ..everything
            }),
            &[0xc006_5800, 1 << 31, 0xffff_ffff, 0x00ff_ffff, 0x5566_7788, 0x1122_3344, 0xa, 0x380],
        );
        check_reserved_bits(&KERNEL_SYNC, &[0x7fff_ffff, 0, 0, 0, 0, 0xffff_0000, 0xfff8_0000]);
    }

    #[test]
    fn fields_are_where_the_reference_puts_them() {
        check_fields(
            field::ALL,
            &[
                ("ENGINE", 0, 1 << 31),
                ("SIZE_LO", 1, u32::MAX),
                ("SIZE_HI", 2, u32::MAX),
                ("BASE_LO", 3, u32::MAX),
                ("BASE_HI", 4, u32::MAX),
                ("POLL_INTERVAL", 5, 0xffff),
                ("GLI_INV", 6, 0x3),
                ("GL1_RANGE", 6, 0xc),
                ("GLM_WB", 6, 0x10),
                ("GLM_INV", 6, 0x20),
                ("GLK_WB", 6, 0x40),
                ("GLK_INV", 6, 0x80),
                ("GLV_INV", 6, 0x100),
                ("GL1_INV", 6, 0x200),
                ("GL2_US", 6, 0x400),
                ("GL2_RANGE", 6, 0x1800),
                ("GL2_DISCARD", 6, 0x2000),
                ("GL2_INV", 6, 0x4000),
                ("GL2_WB", 6, 0x8000),
                ("SEQ", 6, 0x3_0000),
                ("RANGE_IS_PA", 6, 0x4_0000),
            ],
        );
        let none = AcquireControl::default();
        for (control, word) in [
            (AcquireControl { gli_inv: 3, ..none }, 0x3),
            (AcquireControl { gl1_range: 3, ..none }, 0xc),
            (AcquireControl { gl2_range: 3, ..none }, 0x1800),
            (AcquireControl { sequence: 3, ..none }, 0x3_0000),
            (AcquireControl { flags: AcquireFlags::all(), ..none }, 0x4_e7f0),
            (AcquireControl { flags: AcquireFlags::GLM_WB, ..none }, 0x10),
            (AcquireControl { flags: AcquireFlags::GLM_INV, ..none }, 0x20),
            (AcquireControl { flags: AcquireFlags::GLK_WB, ..none }, 0x40),
            (AcquireControl { flags: AcquireFlags::GLK_INV, ..none }, 0x80),
            (AcquireControl { flags: AcquireFlags::GLV_INV, ..none }, 0x100),
            (AcquireControl { flags: AcquireFlags::GL1_INV, ..none }, 0x200),
            (AcquireControl { flags: AcquireFlags::GL2_US, ..none }, 0x400),
            (AcquireControl { flags: AcquireFlags::GL2_DISCARD, ..none }, 0x2000),
            (AcquireControl { flags: AcquireFlags::GL2_INV, ..none }, 0x4000),
            (AcquireControl { flags: AcquireFlags::GL2_WB, ..none }, 0x8000),
            (AcquireControl { flags: AcquireFlags::RANGE_IS_PA, ..none }, 0x4_0000),
        ] {
            let mut golden = KERNEL_SYNC;
            golden[7] = word;
            check_golden(super::super::Repr::AcquireMem(Repr::all_addresses(control)), &golden);
        }
    }

    #[test]
    fn overflow_is_an_error() {
        let none = AcquireControl::default();
        for control in [
            AcquireControl { gli_inv: 4, ..none },
            AcquireControl { gl1_range: 4, ..none },
            AcquireControl { gl2_range: 4, ..none },
            AcquireControl { sequence: 4, ..none },
        ] {
            let words = Repr::all_addresses(control).words();
            assert!(matches!(words, Err(EmitError::Field(overflow)) if overflow.value == 4), "{words:?}");
        }
    }

    #[test]
    fn prints() {
        assert_eq!(
            Packet::new_unchecked(KERNEL_SYNC).to_string(),
            "ACQUIRE_MEM SIZE_LO=0xffffffff SIZE_HI=0xffffff POLL_INTERVAL=0xa GLI_INV=0x1 GLM_WB GLM_INV GLK_INV \
             GLV_INV GL1_INV GL2_INV GL2_WB"
        );
    }
}
