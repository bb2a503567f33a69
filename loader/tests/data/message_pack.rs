//! Writes MessagePack, as the metadata of code objects is written.

/// A text, with a length of 16 bits.
pub fn text(text: &str) -> Vec<u8> {
    assert!(text.len() < 0x1_0000);
    [&[0xDA][..], &(text.len() as u16).to_be_bytes(), text.as_bytes()].concat()
}

/// A number of 32 bits.
pub fn number(number: u32) -> Vec<u8> {
    [&[0xCE][..], &number.to_be_bytes()].concat()
}

/// A list, with a length of 32 bits.
pub fn list(values: &[Vec<u8>]) -> Vec<u8> {
    [&[0xDD][..], &(values.len() as u32).to_be_bytes(), &values.concat()].concat()
}

/// A map of at most 15 entries.
pub fn map(entries: &[(&str, Vec<u8>)]) -> Vec<u8> {
    assert!(entries.len() < 0x10);
    let pairs = entries.iter().flat_map(|(key, value)| [text(key), value.clone()].concat());
    [0x80 | entries.len() as u8].into_iter().chain(pairs).collect()
}
