//! The fingerprint that ties a blob to the source text it was assembled from.
//!
//! Contract: a pure function of the bytes. It finds forgotten assembly runs where no assembler is installed; it does
//! not protect against tampering.

/// FNV-1a, 64 bits, over the source text with its includes in place.
pub const fn fingerprint(text: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    let mut index = 0;
    while index < text.len() {
        hash = (hash ^ text[index] as u64).wrapping_mul(0x0000_0100_0000_01B3);
        index += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    /// Test vectors of the function's authors (draft-eastlake-fnv).
    #[test]
    fn published_vectors() {
        assert_eq!(fingerprint(b""), 0xCBF2_9CE4_8422_2325);
        assert_eq!(fingerprint(b"a"), 0xAF63_DC4C_8601_EC8C);
        assert_eq!(fingerprint(b"foobar"), 0x8594_4171_F739_67E8);
    }
}
