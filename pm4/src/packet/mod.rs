//! The packets of a compute ring, one file each.
//!
//! Every file has the same order: the view (`Packet<T>`), its fields, its accessors, the representation (`Repr`),
//! `Display`, tests. The contract of both levels is the crate's. [`Repr`] here is any one of the representations.

use crate::error::{EmitError, ParseError};
use crate::header::Header;
use crate::opcode::Opcode;

/// Declares `Packet<T>`, the view of one packet whose body has at least (`least`) or exactly (`exact`) that many
/// dwords.
macro_rules! packet_view {
    (@is_exact exact) => {
        true
    };
    (@is_exact least) => {
        false
    };
    ($opcode:ident, $length:ident $dwords:literal) => {
        /// The packet in the words that hold it. Words after its end are ignored.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Packet<T: AsRef<[u32]>> {
            words: T,
        }

        /// This packet's opcode.
        pub const OPCODE: $crate::Opcode = $crate::Opcode::$opcode;

        const RESERVED: [u32; $dwords] = $crate::field::reserved_masks(field::ALL);

        impl<T: AsRef<[u32]>> Packet<T> {
            /// A view without a check, only for words that this program emitted. On other words the accessors may
            /// panic.
            pub const fn new_unchecked(words: T) -> Packet<T> {
                Packet { words }
            }

            /// A view of any words, or the reason why they are not this packet.
            pub fn new_checked(words: T) -> Result<Packet<T>, $crate::ParseError> {
                let packet = Packet { words };
                packet.check_len()?;
                Ok(packet)
            }

            /// Checks header and length. After `Ok`, no accessor panics.
            pub fn check_len(&self) -> Result<(), $crate::ParseError> {
                let exact = packet_view!(@is_exact $length);
                $crate::packet::words::check_len(self.words.as_ref(), OPCODE, $dwords, exact)
            }

            /// The words given.
            pub fn into_inner(self) -> T {
                self.words
            }

            /// The header.
            pub fn header(&self) -> $crate::Header {
                $crate::Header(self.words.as_ref()[0])
            }

            /// The dwords after the header, as many as the header counts.
            pub fn body(&self) -> &[u32] {
                let dwords = self.header().body_dwords().unwrap_or(0);
                &self.words.as_ref()[1..1 + dwords]
            }

            #[allow(dead_code)]
            fn get(&self, field: $crate::Field) -> u32 {
                field.get(self.words.as_ref()[1 + usize::from(field.dword)])
            }

            fn check_reserved(&self) -> Result<(), $crate::ParseError> {
                $crate::packet::words::check_reserved(OPCODE, &RESERVED, self.header(), self.body())
            }
        }
    };
}

/// Declares an enumeration of a field's values, with `bits` and `from_bits`.
macro_rules! field_values {
    ($(#[$meta:meta])* $name:ident { $($(#[$value_meta:meta])* $variant:ident = $value:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$value_meta])* $variant = $value,)*
        }

        impl $name {
            /// Every defined value.
            pub const ALL: &[$name] = &[$($name::$variant),*];

            /// The field's value.
            pub const fn bits(self) -> u32 {
                self as u32
            }

            /// The meaning of a field's value, if it is defined.
            pub const fn from_bits(bits: u32) -> Option<$name> {
                match bits {
                    $($value => Some($name::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

pub mod acquire_mem;
pub mod copy_data;
pub mod dispatch_direct;
mod event;
pub mod event_write;
pub mod indirect_buffer;
pub mod nop;
pub mod release_mem;
pub mod set_sh_reg;
mod temporal_hint;
pub mod wait_reg_mem;
pub(crate) mod words;
pub mod write_data;

pub use event::Event;
pub use temporal_hint::TemporalHint;

/// Any packet that this crate writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Repr<'a> {
    Nop(nop::Repr<'a>),
    SetShReg(set_sh_reg::Repr<'a>),
    DispatchDirect(dispatch_direct::Repr),
    AcquireMem(acquire_mem::Repr),
    ReleaseMem(release_mem::Repr),
    WaitRegMem(wait_reg_mem::Repr),
    WriteData(write_data::Repr<'a>),
    CopyData(copy_data::Repr),
    EventWrite(event_write::Repr),
    IndirectBuffer(indirect_buffer::Repr),
}

/// True if [`Repr::parse`] knows the packet.
pub const fn is_known(opcode: Opcode) -> bool {
    matches!(
        opcode,
        Opcode::NOP
            | Opcode::SET_SH_REG
            | Opcode::DISPATCH_DIRECT
            | Opcode::ACQUIRE_MEM
            | Opcode::RELEASE_MEM
            | Opcode::WAIT_REG_MEM
            | Opcode::WRITE_DATA
            | Opcode::COPY_DATA
            | Opcode::EVENT_WRITE
            | Opcode::INDIRECT_BUFFER
    )
}

impl<'a> Repr<'a> {
    /// The packet at the start of `words`, or `None` if its opcode is not one of the ten.
    pub fn parse(words: &'a [u32]) -> Result<Option<Repr<'a>>, ParseError> {
        let header = Header(*words.first().ok_or(ParseError::Empty)?);
        if header.packet_type() != 3 {
            return Err(ParseError::PacketType { packet_type: header.packet_type() });
        }
        Ok(Some(match header.opcode() {
            Opcode::NOP => Repr::Nop(nop::Repr::parse(&nop::Packet::new_checked(words)?)?),
            Opcode::SET_SH_REG => {
                Repr::SetShReg(set_sh_reg::Repr::parse(&set_sh_reg::Packet::new_checked(words)?)?)
            }
            Opcode::DISPATCH_DIRECT => Repr::DispatchDirect(dispatch_direct::Repr::parse(
                &dispatch_direct::Packet::new_checked(words)?,
            )?),
            Opcode::ACQUIRE_MEM => {
                Repr::AcquireMem(acquire_mem::Repr::parse(&acquire_mem::Packet::new_checked(words)?)?)
            }
            Opcode::RELEASE_MEM => {
                Repr::ReleaseMem(release_mem::Repr::parse(&release_mem::Packet::new_checked(words)?)?)
            }
            Opcode::WAIT_REG_MEM => {
                Repr::WaitRegMem(wait_reg_mem::Repr::parse(&wait_reg_mem::Packet::new_checked(words)?)?)
            }
            Opcode::WRITE_DATA => {
                Repr::WriteData(write_data::Repr::parse(&write_data::Packet::new_checked(words)?)?)
            }
            Opcode::COPY_DATA => {
                Repr::CopyData(copy_data::Repr::parse(&copy_data::Packet::new_checked(words)?)?)
            }
            Opcode::EVENT_WRITE => {
                Repr::EventWrite(event_write::Repr::parse(&event_write::Packet::new_checked(words)?)?)
            }
            Opcode::INDIRECT_BUFFER => Repr::IndirectBuffer(indirect_buffer::Repr::parse(
                &indirect_buffer::Packet::new_checked(words)?,
            )?),
            _ => return Ok(None),
        }))
    }

    /// Dwords of the packet, header included.
    pub fn dword_len(&self) -> usize {
        match self {
            Repr::Nop(repr) => repr.dword_len(),
            Repr::SetShReg(repr) => repr.dword_len(),
            Repr::DispatchDirect(repr) => repr.dword_len(),
            Repr::AcquireMem(repr) => repr.dword_len(),
            Repr::ReleaseMem(repr) => repr.dword_len(),
            Repr::WaitRegMem(repr) => repr.dword_len(),
            Repr::WriteData(repr) => repr.dword_len(),
            Repr::CopyData(repr) => repr.dword_len(),
            Repr::EventWrite(repr) => repr.dword_len(),
            Repr::IndirectBuffer(repr) => repr.dword_len(),
        }
    }

    /// Writes the packet into a slice of exactly [`dword_len`](Repr::dword_len) dwords; writes nothing on an error.
    pub fn emit(&self, words: &mut [u32]) -> Result<(), EmitError> {
        match self {
            Repr::Nop(repr) => repr.emit(words),
            Repr::SetShReg(repr) => repr.emit(words),
            Repr::DispatchDirect(repr) => repr.emit(words),
            Repr::AcquireMem(repr) => repr.emit(words),
            Repr::ReleaseMem(repr) => repr.emit(words),
            Repr::WaitRegMem(repr) => repr.emit(words),
            Repr::WriteData(repr) => repr.emit(words),
            Repr::CopyData(repr) => repr.emit(words),
            Repr::EventWrite(repr) => repr.emit(words),
            Repr::IndirectBuffer(repr) => repr.emit(words),
        }
    }
}

#[cfg(test)]
pub(crate) mod testing {
    //! Checks shared by the tests of every packet.

    use super::*;
    use crate::field::Field;

    /// Initial words that a packet must overwrite completely.
    pub const DIRTY: u32 = 0xa5a5_a5a5;

    /// Compares a field table with (name, body dword, mask) as the hardware reference gives them.
    pub fn check_fields(fields: &[Field], golden: &[(&str, u8, u32)]) {
        let found: Vec<_> = fields.iter().map(|field| (field.name, field.dword, field.mask())).collect();
        assert_eq!(found, golden);
    }

    /// Emits onto dirty words and compares; reads the same words back; refuses slices of any other length, fewer
    /// words, another opcode, and reserved header bits.
    pub fn check_golden(repr: Repr<'_>, golden: &[u32]) {
        let mut words = vec![DIRTY; golden.len()];
        assert_eq!(repr.dword_len(), golden.len());
        repr.emit(&mut words).unwrap();
        assert_eq!(words, golden, "emitted words differ");
        assert_eq!(Repr::parse(golden), Ok(Some(repr)));

        let mut longer = golden.to_vec();
        longer.push(DIRTY);
        assert_eq!(Repr::parse(&longer), Ok(Some(repr)), "words after the packet do not matter");
        let given = longer.len();
        assert_eq!(repr.emit(&mut longer), Err(EmitError::Length { needed: golden.len(), given }));

        for short in 0..golden.len() {
            let error = Repr::parse(&golden[..short]).unwrap_err();
            if short == 0 {
                assert_eq!(error, ParseError::Empty);
            } else {
                assert_eq!(error, ParseError::Truncated { needed: golden.len(), given: short });
            }
        }
        let mut reserved = golden.to_vec();
        reserved[0] |= 0x80;
        assert_eq!(Repr::parse(&reserved), Err(ParseError::HeaderReserved { bits: 0x80 }));
        let mut other_type = golden.to_vec();
        other_type[0] &= 0x7fff_ffff;
        assert_eq!(Repr::parse(&other_type), Err(ParseError::PacketType { packet_type: 1 }));
    }

    /// Sets every bit of the body in turn: a reserved one must be refused, and nothing may panic.
    pub fn check_reserved_bits(golden: &[u32], reserved: &[u32]) {
        for (dword, mask) in reserved.iter().enumerate() {
            for bit in 0..32 {
                let mut words = golden.to_vec();
                words[1 + dword] |= 1 << bit;
                let parsed = Repr::parse(&words);
                if mask >> bit & 1 == 1 {
                    let Err(ParseError::Reserved { dword: found, bits, .. }) = parsed else {
                        panic!("reserved bit {bit} of body dword {dword} was accepted: {parsed:?}");
                    };
                    assert_eq!((found, bits), (dword, 1 << bit));
                } else {
                    assert!(!matches!(parsed, Err(ParseError::Reserved { .. })), "bit {bit} of {dword}");
                }
            }
        }
    }
}
