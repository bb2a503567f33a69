//! SentencePiece's normalisation: which stretches of a text are replaced, and by what.
//!
//! A model stores it as one array of bytes: the length of a trie in bytes (u32), the trie, then the replacements, each
//! ended by a zero byte. The trie is a compressed double array (the project darts-clone made the form): a node is a
//! dword that holds, in bits 7:0 and 31, the byte that leads to it (bit 31 is clear), in bit 8 whether a stretch ends
//! here, in bits 31:10 the offset of its children (8 bits further up if bit 9 is set). A node that is reached after the
//! last byte of a stretch holds, in bits 30:0, where the replacement begins.
//!
//! Contract: any bytes make a map or an error, and any map and text a result: whatever points outside ends the search.
//! A replacement has at most [`REPLACEMENT_BYTES_MAX`] bytes, and a stretch at most [`STRETCH_BYTES_MAX`] count.

use super::TokenizerError;

/// Longest replacement. Unicode's compatibility forms replace one character by 33 bytes at most (U+FDFA).
const REPLACEMENT_BYTES_MAX: usize = 256;
/// Longest stretch that is looked for.
const STRETCH_BYTES_MAX: usize = 256;
/// Bytes of the length in front.
const LENGTH_BYTES: usize = 4;

/// A map; one without nodes replaces nothing.
#[derive(Debug, Default)]
pub(super) struct Charsmap {
    nodes: Vec<u32>,
    replacements: Vec<u8>,
}

impl Charsmap {
    /// Reads a map; no bytes are one that replaces nothing.
    pub(super) fn new(bytes: &[u8]) -> Result<Charsmap, TokenizerError> {
        if bytes.is_empty() {
            return Ok(Charsmap::default());
        }
        let (length, rest) =
            bytes.split_first_chunk::<LENGTH_BYTES>().ok_or(TokenizerError::Charsmap { why: "it is cut" })?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > rest.len() || !length.is_multiple_of(4) {
            return Err(TokenizerError::Charsmap { why: "its trie does not end where its length says" });
        }
        let (trie, replacements) = rest.split_at(length);
        if replacements.split(|byte| *byte == 0).any(|one| one.len() > REPLACEMENT_BYTES_MAX) {
            return Err(TokenizerError::Charsmap { why: "a replacement is longer than 256 bytes" });
        }
        let nodes = trie.as_chunks().0.iter().map(|node| u32::from_le_bytes(*node)).collect();
        Ok(Charsmap { nodes, replacements: replacements.to_vec() })
    }

    /// The longest stretch at the beginning of `text` that is replaced: its length in bytes, and the replacement.
    pub(super) fn replacement(&self, text: &str) -> Option<(usize, &str)> {
        let mut found = None;
        let mut place = children(*self.nodes.first()?);
        for (at, byte) in text.bytes().take(STRETCH_BYTES_MAX).enumerate() {
            place ^= usize::from(byte);
            let Some(node) =
                self.nodes.get(place).filter(|node| byte != 0 && leads(**node) == u32::from(byte))
            else {
                break;
            };
            place ^= children(*node);
            if node & 1 << 8 != 0 {
                found = self.nodes.get(place).map(|end| (at + 1, end & !(1 << 31)));
            }
        }
        let (bytes, begin) = found?;
        // A stretch ends where a character ends, unless the map is broken.
        let is_whole = text.is_char_boundary(bytes);
        let replacement = self.replacements.get(begin as usize..)?.split(|byte| *byte == 0).next()?;
        Some((bytes, str::from_utf8(replacement).ok()?)).filter(|_| is_whole)
    }
}

/// Where a node's children lie, less the byte that leads to each.
fn children(node: u32) -> usize {
    ((node >> 10) << ((node & 1 << 9) >> 6)) as usize
}

/// The byte that leads to a node, or more than a byte if none does.
fn leads(node: u32) -> u32 {
    node & (1 << 31 | 0xFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bit 31 marks a node that holds a value and is nobody's child; bits 7:0 are the byte that leads to any other.
    #[test]
    fn no_byte_leads_to_a_value() {
        assert_eq!(leads(0x7fff_ff41), 0x41);
        assert!(leads(0x8000_0041) > 0xff);
    }

    #[test]
    fn what_is_no_map_is_refused() {
        for bytes in [&[1u8][..], &[4, 0, 0, 0, 1, 2, 3], &[2, 0, 0, 0, 1, 2], &[255; 8]] {
            assert!(matches!(Charsmap::new(bytes), Err(TokenizerError::Charsmap { .. })), "{bytes:?}");
        }
        let long = [&[0u8; 4][..], &[b'a'; 257], &[0]].concat();
        assert!(Charsmap::new(&long).is_err());
        Charsmap::new(&[&[0u8; 4][..], &[b'a'; 256], &[0]].concat()).expect("as long as may be");
        assert_eq!(Charsmap::new(&[]).expect("nothing is replaced").replacement("a"), None);
    }

    /// By hand: the root's children lie at 8 ^ byte; 'A' is there, and at 16 the place where `b` is the replacement.
    #[test]
    fn a_stretch_is_found_by_its_bytes() {
        let mut nodes = vec![0u32; 128];
        nodes[0] = 8 << 10;
        // It leads by 'A', a stretch ends, and its children lie at 16 ^ its own place.
        let place = 8 ^ usize::from(b'A');
        nodes[place] = u32::from(b'A') | 1 << 8 | ((place ^ 16) as u32) << 10;
        nodes[16] = 1 << 31 | 2;
        let mut bytes = (4 * nodes.len() as u32).to_le_bytes().to_vec();
        nodes.iter().for_each(|node| bytes.extend(node.to_le_bytes()));
        bytes.extend(b"x\0bc\0");
        let map = Charsmap::new(&bytes).expect("a map");
        assert_eq!(map.replacement("AB"), Some((1, "bc")));
        assert_eq!((map.replacement("B"), map.replacement(""), map.replacement("\0")), (None, None, None));
    }

    /// By hand, the two forms of an offset: the root's children lie at 1 · 256 ^ byte (bit 9 is set), those of 'A' at
    /// 8 ^ byte. After 'A' no stretch ends, after 'B' one does; where 'C' would be lies a replacement's place.
    #[test]
    fn a_stretch_ends_where_its_node_says() {
        let mut nodes = vec![0u32; 512];
        let leads_to = |node: usize, children: usize| ((node ^ children) as u32) << 10;
        let first = 256 ^ usize::from(b'A');
        nodes[0] = 1 << 10 | 1 << 9;
        nodes[first] = u32::from(b'A') | leads_to(first, 8);
        let second = 8 ^ usize::from(b'B');
        nodes[second] = u32::from(b'B') | 1 << 8 | leads_to(second, 16);
        nodes[16] = 1 << 31;
        nodes[8 ^ usize::from(b'C')] =
            1 << 31 | 1 << 8 | u32::from(b'C') | leads_to(8 ^ usize::from(b'C'), 16);
        let mut bytes = (4 * nodes.len() as u32).to_le_bytes().to_vec();
        nodes.iter().for_each(|node| bytes.extend(node.to_le_bytes()));
        bytes.extend(b"x\0");
        let map = Charsmap::new(&bytes).expect("a map");
        assert_eq!((map.replacement("AB"), map.replacement("ABA")), (Some((2, "x")), Some((2, "x"))));
        for text in ["A", "AA", "AC", "B", "BA"] {
            assert_eq!(map.replacement(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_map_and_text_have_a_result(
            nodes in prop::collection::vec(prop_oneof![any::<u32>(), 0u32..1 << 16], 0..64),
            replacements in prop::collection::vec(any::<u8>(), 0..64),
            text: String,
        ) {
            let mut bytes = (4 * nodes.len() as u32).to_le_bytes().to_vec();
            nodes.iter().for_each(|node| bytes.extend(node.to_le_bytes()));
            bytes.extend(&replacements);
            let map = Charsmap::new(&bytes).expect("short replacements");
            if let Some((bytes, replacement)) = map.replacement(&text) {
                prop_assert!(text.is_char_boundary(bytes) && bytes > 0);
                prop_assert!(replacement.len() <= REPLACEMENT_BYTES_MAX);
            }
        }
    }
}
