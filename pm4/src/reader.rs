//! Walking a stream of packets.
//!
//! Contract: any words may be walked and nothing panics. Every dword of the stream up to the first error is in
//! exactly one item. After an error the walk ends, because the start of the next packet is unknown.

use crate::error::ParseError;
use crate::header::Header;
use crate::packet::{self, Repr};
use core::fmt;

/// The one-dword filler of type 2 (hardware reference §4.1). Not valid on a compute ring.
const FILLER: u32 = 0x8000_0000;

/// An iterator over the packets of a stream.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    words: &'a [u32],
    offset: usize,
}

/// One packet of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item<'a> {
    /// Dwords from the start of the stream.
    pub offset: usize,
    /// The packet, header included.
    pub words: &'a [u32],
    /// The kind of packet.
    pub kind: ItemKind,
}

/// The kind of a packet in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    /// One of the packets that [`Repr`] knows, by its opcode. Its body may still be invalid.
    Known(Header),
    /// A type-3 packet with another opcode.
    Unknown(Header),
    /// The one-dword filler of type 2.
    Filler,
}

/// The position at which a stream stops making sense, and the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamError {
    /// Dwords from the start of the stream.
    pub offset: usize,
    /// [`ParseError::Truncated`], [`ParseError::PacketType`] or [`ParseError::BodyLength`].
    pub error: ParseError,
}

impl<'a> Reader<'a> {
    /// A walk over `words` from their start.
    pub const fn new(words: &'a [u32]) -> Reader<'a> {
        Reader { words, offset: 0 }
    }

    fn step(&mut self, first: u32) -> Result<Item<'a>, ParseError> {
        let left = self.words.get(self.offset..).unwrap_or_default();
        let header = Header(first);
        let (dwords, kind) = match header.packet_type() {
            3 => {
                let opcode = header.opcode();
                let dwords = header.packet_dwords().ok_or(ParseError::BodyLength {
                    opcode,
                    least: 0,
                    found: header.count() as usize + 1,
                })?;
                let known = packet::is_known(opcode);
                (dwords, if known { ItemKind::Known(header) } else { ItemKind::Unknown(header) })
            }
            2 if first == FILLER => (1, ItemKind::Filler),
            packet_type => return Err(ParseError::PacketType { packet_type }),
        };
        let words = left.get(..dwords).ok_or(ParseError::Truncated { needed: dwords, given: left.len() })?;
        let offset = self.offset;
        self.offset += dwords;
        Ok(Item { offset, words, kind })
    }
}

impl<'a> Item<'a> {
    /// The packet's meaning; `Ok(None)` for an unknown opcode or filler.
    pub fn parse(&self) -> Result<Option<Repr<'a>>, ParseError> {
        match self.kind {
            ItemKind::Known(_) => Repr::parse(self.words),
            ItemKind::Unknown(_) | ItemKind::Filler => Ok(None),
        }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<Item<'a>, StreamError>;

    fn next(&mut self) -> Option<Result<Item<'a>, StreamError>> {
        let first = *self.words.get(self.offset)?;
        let offset = self.offset;
        Some(self.step(first).map_err(|error| {
            self.offset = self.words.len();
            StreamError { offset, error }
        }))
    }
}

impl fmt::Display for StreamError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at dword {:#x} of the stream, {}", self.offset, self.error)
    }
}

impl core::error::Error for StreamError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::opcode::Opcode;

    #[test]
    fn walks_known_unknown_filler_and_stops_at_the_torn_end() {
        let words = [0xffff_1000, 0xc000_4600, 0x407, 0xc001_fe00, 1, 2, 0x8000_0000, 0xc003_1500, 1, 1];
        let items: Vec<_> = Reader::new(&words).collect();
        let known = |word| ItemKind::Known(Header(word));
        assert_eq!(items[0], Ok(Item { offset: 0, words: &words[..1], kind: known(0xffff_1000) }));
        assert_eq!(items[1], Ok(Item { offset: 1, words: &words[1..3], kind: known(0xc000_4600) }));
        let unknown = ItemKind::Unknown(Header(0xc001_fe00));
        assert_eq!(items[2], Ok(Item { offset: 3, words: &words[3..6], kind: unknown }));
        assert_eq!(items[3], Ok(Item { offset: 6, words: &words[6..7], kind: ItemKind::Filler }));
        let error = ParseError::Truncated { needed: 5, given: 3 };
        assert_eq!(items[4], Err(StreamError { offset: 7, error }));
        assert_eq!(items.len(), 5);
        assert_eq!(
            StreamError { offset: 17, error }.to_string(),
            "at dword 0x11 of the stream, the packet needs 5 dwords and 3 are there"
        );
    }

    #[test]
    fn other_types_and_the_reserved_count_end_the_walk() {
        let end = |words: &[u32]| Reader::new(words).last().unwrap().unwrap_err();
        assert_eq!(end(&[0xffff_1000, 0, 0]).error, ParseError::PacketType { packet_type: 0 });
        assert_eq!(end(&[0x4000_0000]).error, ParseError::PacketType { packet_type: 1 });
        assert_eq!(end(&[0x8000_0001]).error, ParseError::PacketType { packet_type: 2 });
        assert_eq!(
            end(&[0xffff_1500]).error,
            ParseError::BodyLength { opcode: Opcode::DISPATCH_DIRECT, least: 0, found: 0x4000 }
        );
        assert_eq!(Reader::new(&[]).next(), None);
    }
}
