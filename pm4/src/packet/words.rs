//! What all packets check, join and write.
//!
//! Contract: pure; nothing here knows a particular packet.

use crate::error::{EmitError, ParseError};
use crate::field::Field;
use crate::header::{Header, HeaderFlags};
use crate::opcode::Opcode;

/// The check used by every `Packet::check_len`.
pub(crate) fn check_len(words: &[u32], opcode: Opcode, least: usize, exact: bool) -> Result<(), ParseError> {
    let header = Header(*words.first().ok_or(ParseError::Empty)?);
    if header.packet_type() != 3 {
        return Err(ParseError::PacketType { packet_type: header.packet_type() });
    }
    if header.opcode() != opcode {
        return Err(ParseError::Opcode { expected: opcode, found: header.opcode() });
    }
    let found = header.body_dwords().ok_or(ParseError::BodyLength {
        opcode,
        least,
        found: header.count() as usize + 1,
    })?;
    if found < least || (exact && found != least) {
        return Err(ParseError::BodyLength { opcode, least, found });
    }
    if found + 1 > words.len() {
        return Err(ParseError::Truncated { needed: found + 1, given: words.len() });
    }
    Ok(())
}

/// Refuses bits of header and body that belong to no field.
pub(crate) fn check_reserved(
    opcode: Opcode,
    reserved: &[u32],
    header: Header,
    body: &[u32],
) -> Result<(), ParseError> {
    if header.reserved_bits() != 0 {
        return Err(ParseError::HeaderReserved { bits: header.reserved_bits() });
    }
    for (dword, (mask, word)) in reserved.iter().zip(body).enumerate() {
        if mask & word != 0 {
            return Err(ParseError::Reserved { opcode, dword, bits: mask & word });
        }
    }
    Ok(())
}

/// Copies a whole packet into a slice of exactly its length.
pub(crate) fn emit_words(packet: &[u32], words: &mut [u32]) -> Result<(), EmitError> {
    if words.len() != packet.len() {
        return Err(EmitError::Length { needed: packet.len(), given: words.len() });
    }
    words.copy_from_slice(packet);
    Ok(())
}

/// The meaning of a field, or an error if it is undefined.
pub(crate) fn value_of<V>(field: Field, bits: u32, from_bits: fn(u32) -> Option<V>) -> Result<V, ParseError> {
    from_bits(bits).ok_or(ParseError::Value { field, value: bits })
}

/// An address from its two dwords.
pub(crate) const fn join(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

/// The two dwords of an address or value.
pub(crate) const fn split(value: u64) -> (u32, u32) {
    (value as u32, (value >> 32) as u32)
}

/// Refuses an address that is not a multiple of `alignment`, when writing.
#[inline(always)]
pub(crate) const fn check_aligned(address: u64, alignment: u32) -> Result<(), EmitError> {
    if address & (alignment as u64 - 1) != 0 {
        return Err(EmitError::Misaligned { address, alignment });
    }
    Ok(())
}

/// The same check for reading.
pub(crate) const fn parse_aligned(address: u64, alignment: u32) -> Result<u64, ParseError> {
    if address & (alignment as u64 - 1) != 0 {
        return Err(ParseError::Misaligned { address, alignment });
    }
    Ok(address)
}

/// The start of every `Display` output: the name and the header's flags.
pub(crate) fn print_header(formatter: &mut core::fmt::Formatter<'_>, header: Header) -> core::fmt::Result {
    write!(formatter, "{}", header.opcode())?;
    for (name, _) in header.flags().iter_names() {
        write!(formatter, " {name}")?;
    }
    if header.reserved_bits() != 0 {
        write!(formatter, " header_reserved={:#x}", header.reserved_bits())?;
    }
    Ok(())
}

/// Declares `Display` for a view whose body consists of fields only.
macro_rules! display_fields {
    () => {
        impl<T: AsRef<[u32]>> core::fmt::Display for Packet<T> {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                if let Err(error) = self.check_len() {
                    return write!(formatter, "{OPCODE} ({error})");
                }
                $crate::packet::words::print_header(formatter, self.header())?;
                $crate::field::print_fields(formatter, field::ALL, &RESERVED, self.body())
            }
        }
    };
}
pub(crate) use display_fields;

/// The header word of a packet with a fixed body length.
pub(crate) const fn fixed_header(opcode: Opcode, body_dwords: usize, flags: HeaderFlags) -> u32 {
    Header::fixed(opcode, body_dwords, flags).0
}
