//! DISPATCH_DIRECT: launches a grid of workgroups (hardware reference §4.4).
//!
//! The packet does not wait for the shader. x, y, z count workgroups if the initiator has FORCE_START_AT_000, are
//! end values if START_X/Y/Z are in use, and count threads if it has USE_THREAD_DIMENSIONS.

use super::words::{emit_words, fixed_header};
use crate::error::{EmitError, ParseError};
use crate::header::HeaderFlags;
use crate::registers::DispatchInitiator;

packet_view!(DISPATCH_DIRECT, exact 4);

/// Fields of the body (hardware reference §4.2, §5.1).
pub mod field {
    fields! {
        /// Workgroups in x.
        DIM_X = 0 [31 : 0];
        /// Workgroups in y.
        DIM_Y = 1 [31 : 0];
        /// Workgroups in z.
        DIM_Z = 2 [31 : 0];
        /// COMPUTE_SHADER_EN to ORDER_MODE.
        INITIATOR_LOW = 3 [6 : 0];
        /// SCALAR_L1_INV_VOL to INTERLEAVE_2D_EN.
        INITIATOR_HIGH = 3 [18 : 10];
        /// TTRACE_QUEUE_ID.
        TTRACE_QUEUE_ID = 3 [31 : 29];
    }
}

impl<T: AsRef<[u32]>> Packet<T> {
    /// Workgroups in x, y and z.
    pub fn groups(&self) -> [u32; 3] {
        [self.get(field::DIM_X), self.get(field::DIM_Y), self.get(field::DIM_Z)]
    }

    /// The raw value for DISPATCH_INITIATOR.
    pub fn initiator(&self) -> u32 {
        self.body()[3]
    }
}

/// A launch as a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repr {
    /// Bits 2:0 of the header.
    pub header_flags: HeaderFlags,
    /// Workgroups in x, y and z.
    pub groups: [u32; 3],
    /// The initiator: what starts, and how.
    pub initiator: DispatchInitiator,
}

impl Repr {
    /// Dwords of the packet.
    pub const DWORDS: usize = 5;

    /// A grid of workgroups of wave32 (initiator 0x8005).
    pub const fn wave32(groups: [u32; 3]) -> Repr {
        Repr { header_flags: HeaderFlags::COMPUTE, groups, initiator: DispatchInitiator::WAVE32 }
    }

    /// Reads the packet.
    pub fn parse<T: AsRef<[u32]>>(packet: &Packet<T>) -> Result<Repr, ParseError> {
        packet.check_len()?;
        packet.check_reserved()?;
        Ok(Repr {
            header_flags: packet.header().flags(),
            groups: packet.groups(),
            initiator: DispatchInitiator::from_word(packet.initiator())?,
        })
    }

    /// Dwords of the packet, header included.
    pub const fn dword_len(&self) -> usize {
        Repr::DWORDS
    }

    /// The packet's words.
    #[inline(always)]
    pub fn words(&self) -> Result<[u32; Repr::DWORDS], EmitError> {
        let [x, y, z] = self.groups;
        Ok([fixed_header(OPCODE, 4, self.header_flags), x, y, z, self.initiator.to_word()?])
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
    use crate::registers::InitiatorFlags;

    const GOLDEN: [u32; 5] = [0xc003_1500, 7, 3, 2, 0x8005];

    #[test]
    fn both_directions() {
        let initiator = DispatchInitiator {
            flags: InitiatorFlags::COMPUTE_SHADER_EN
                | InitiatorFlags::FORCE_START_AT_000
                | InitiatorFlags::CS_W32_EN,
            trace_queue: 0,
        };
        let repr = Repr { header_flags: HeaderFlags::empty(), groups: [7, 3, 2], initiator };
        check_golden(super::super::Repr::DispatchDirect(repr), &GOLDEN);
        check_golden(
            super::super::Repr::DispatchDirect(Repr::wave32([0xffff_ffff, 1, 1])),
            &[0xc003_1502, 0xffff_ffff, 1, 1, 0x8005],
        );
        let full = DispatchInitiator { flags: InitiatorFlags::all(), trace_queue: 7 };
        check_golden(
            super::super::Repr::DispatchDirect(Repr { initiator: full, ..repr }),
            &[0xc003_1500, 7, 3, 2, 0xe007_fc7f],
        );
        check_fields(
            field::ALL,
            &[
                ("DIM_X", 0, u32::MAX),
                ("DIM_Y", 1, u32::MAX),
                ("DIM_Z", 2, u32::MAX),
                ("INITIATOR_LOW", 3, 0x7f),
                ("INITIATOR_HIGH", 3, 0x7fc00),
                ("TTRACE_QUEUE_ID", 3, 0xe000_0000),
            ],
        );
        check_reserved_bits(&GOLDEN, &[0, 0, 0, 0x1ff8_0380]);
    }

    #[test]
    fn a_field_that_overflows_is_an_error() {
        let initiator = DispatchInitiator { flags: InitiatorFlags::empty(), trace_queue: 8 };
        let repr = Repr { initiator, ..Repr::wave32([1, 1, 1]) };
        assert!(matches!(repr.words(), Err(EmitError::Field(overflow)) if overflow.value == 8));
    }

    #[test]
    fn prints() {
        assert_eq!(
            Packet::new_unchecked(GOLDEN).to_string(),
            "DISPATCH_DIRECT DIM_X=0x7 DIM_Y=0x3 DIM_Z=0x2 INITIATOR_LOW=0x5 INITIATOR_HIGH=0x20"
        );
    }
}
