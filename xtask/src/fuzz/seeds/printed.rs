//! Seeds of the target `print`: what kernels leave for printf in each of its ways.
//!
//! Contract: constant bytes in the form that `loader/tests/data/printed_input.rs` reads; each has text.

#[cfg(test)]
#[allow(dead_code)]
#[path = "../../../../loader/tests/data/elf_file.rs"]
mod elf_file;
#[cfg(test)]
#[path = "../../../../loader/tests/data/printed_input.rs"]
mod printed_input;

/// Bytes of a request: the service's number, and a slot of eight quadwords.
const REQUEST_BYTES: usize = 65;

/// A message by hostcalls, in three requests of service 2: it begins, has a format, and ends with an argument.
pub fn hostcalls() -> Vec<u8> {
    let request = |control: u8, content: &[u8]| {
        let mut bytes = vec![0; REQUEST_BYTES];
        (bytes[0], bytes[1]) = (2, control);
        bytes[9..9 + content.len()].copy_from_slice(content);
        bytes
    };
    // Bit 0 begins, bit 1 ends, bits 7:5 count quadwords; the first message has number 0.
    let begins = request(1 | 1 << 5, &[0; 8]);
    let format = request(2 << 5, b"one %5.2f|%d\n\0\0\0");
    let arguments = [2.5_f64.to_le_bytes(), 7_u64.to_le_bytes()].concat();
    [&[0][..], &begins, &format, &request(2 | 2 << 5, &arguments)].concat()
}

/// A printf buffer of HIP: its format is in the message.
pub fn buffered() -> Vec<u8> {
    let content = [&b"%s %#x\n\0"[..], b"text\0\0\0\0", &255_u64.to_le_bytes()].concat();
    [&[1][..], &buffer(&controlled(0, &content))].concat()
}

/// The same with the format's hash in its place.
pub fn hashed() -> Vec<u8> {
    let content = [0x19d_b209_u64.to_le_bytes(), 42_u64.to_le_bytes()].concat();
    with_formats(b"0:0:19db209,hello %lld\n", &controlled(2, &content))
}

/// A printf buffer of OpenCL: numbers of formats, and fields of their sizes.
pub fn numbered() -> Vec<u8> {
    let first = [1_u32, 42, 0x6162].map(u32::to_le_bytes).concat();
    let second = [2_u32, 1.0_f32.to_bits(), 2.0_f32.to_bits()].map(u32::to_le_bytes).concat();
    with_formats(b"1:2:4:4:%d %s\\n\x002:1:8:%v2hlf\\n", &[first, second].concat())
}

/// Messages after the header of a buffer: bytes used, bytes available.
fn buffer(messages: &[u8]) -> Vec<u8> {
    let length = (messages.len() as u32).to_le_bytes();
    [&length[..], &length, messages].concat()
}

/// A message after its control word: flags, and the length with the word from bit 2 on.
fn controlled(flags: u32, content: &[u8]) -> Vec<u8> {
    let control = (content.len() as u32 + 4) << 2 | flags;
    [&control.to_le_bytes()[..], content].concat()
}

fn with_formats(formats: &[u8], messages: &[u8]) -> Vec<u8> {
    [&[2][..], &(formats.len() as u16).to_le_bytes(), formats, &buffer(messages)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_its_text() {
        for (seed, text) in [
            (hostcalls(), "one  2.50|7\n"),
            (buffered(), "text 0xff\n"),
            (hashed(), "hello 42\n"),
            (numbered(), "42 ba\n1.000000,2.000000\n"),
        ] {
            let printed = printed_input::printed(&seed).unwrap();
            assert_eq!(String::from_utf8_lossy(printed.text()), text);
        }
    }
}
