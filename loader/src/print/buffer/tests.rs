//! Buffers as kernels leave them, and malformed ones.

use super::super::formats::PrintFormats;
use super::super::{PRINTED_BYTES_MAX, WORK_BYTES_MAX};
use super::*;
use proptest::prelude::*;

/// A program with these format strings, in the form of its metadata.
fn parsed(entries: &[&str]) -> Result<PrintFormats, crate::error::LoadError> {
    // MessagePack: a map of one entry, whose list has texts of 16-bit lengths.
    let mut bytes = vec![0x81, 0xAD];
    bytes.extend_from_slice(b"amdhsa.printf");
    bytes.push(0x90 | entries.len() as u8);
    for entry in entries {
        bytes.push(0xDA);
        bytes.extend_from_slice(&(entry.len() as u16).to_be_bytes());
        bytes.extend_from_slice(entry.as_bytes());
    }
    let root = crate::elf::Value::parse(&bytes).unwrap();
    super::super::parse_formats(&root)
}

fn formats(entries: &[&str]) -> PrintFormats {
    parsed(entries).unwrap()
}

/// A buffer with these dwords used.
fn buffer(dwords: &[u32]) -> Vec<u8> {
    let mut bytes = initial();
    bytes[..4].copy_from_slice(&(4 * dwords.len() as u32).to_le_bytes());
    for (place, dword) in bytes[HEADER_BYTES..].chunks_exact_mut(4).zip(dwords) {
        place.copy_from_slice(&dword.to_le_bytes());
    }
    bytes
}

fn text(dwords: &[u32], formats: &PrintFormats) -> (String, Result<(), PrintError>) {
    let mut printed = Printed::default();
    let outcome = read(&buffer(dwords), formats, &mut printed);
    (String::from_utf8(printed.text().to_vec()).unwrap(), outcome)
}

const ABCD: u32 = u32::from_le_bytes(*b"abcd");
const EFG: u32 = u32::from_le_bytes(*b"efg\0");
const NOBODY: u32 = 0xEEEE_EEEE;

#[test]
fn numbered_messages_are_read() {
    let formats = formats(&["1:2:4:4:%d %u\\n", "7:0:plain\\n"]);
    let (text, outcome) = text(&[1, u32::MAX, u32::MAX, 7, 1, 5, 6], &formats);
    assert_eq!((text.as_str(), outcome), ("-1 4294967295\nplain\n5 6\n", Ok(())));
}

/// Strings of 4, 8, … bytes without a NUL: as LLVM 22 stores them (the sizes count the NUL) and as later versions
/// do (they do not).
#[test]
fn strings_without_a_nul_are_read() {
    let older = formats(&["1:3:8:4:4:%s %s %d\\n", "2:3:8:8:4:%s %s %d\\n"]);
    assert_eq!(text(&[1, ABCD, EFG, 5, NOBODY], &older).0, "abcd efg 5\n");
    assert_eq!(text(&[2, ABCD, ABCD, 5, NOBODY, NOBODY], &older).0, "abcd abcd 5\n");
    // The first string is shorter in the file than the second: `abcdefg` and `abcd`, then the reverse.
    assert_eq!(text(&[2, ABCD, EFG, ABCD, 5, NOBODY], &older).0, "abcdefg abcd 5\n");
    assert_eq!(text(&[2, ABCD, ABCD, EFG, 5, NOBODY], &older).0, "abcd abcdefg 5\n");
    let newer = formats(&["1:3:4:4:4:%s %s %d\\n"]);
    assert_eq!(text(&[1, ABCD, EFG, 5], &newer).0, "abcd efg 5\n");
}

/// What ends with the fill byte was not always left unwritten.
#[test]
fn unwritten_space_is_that_of_strings_alone() {
    // Two numbers are what the fill bytes say, and one string leaves one dword at most.
    let two = formats(&["1:3:8:4:4:%s %d %d\\n"]);
    assert_eq!(text(&[1, ABCD, EFG, NOBODY, NOBODY], &two).0, "abcdefg -286331154 -286331154\n");
    // A zero after a string of four bytes is the next argument, not the string's NUL.
    let zero = formats(&["1:3:8:4:8:%s %d %s\\n"]);
    assert_eq!(text(&[1, ABCD, 0, ABCD, EFG, NOBODY], &zero).0, "abcd 0 abcdefg\n");
    // When the unwritten dwords are dealt out, later strings are as long as declared.
    let full = formats(&["1:3:8:8:4:%s %s %d\\n"]);
    assert_eq!(text(&[1, ABCD, ABCD, 0, 5, NOBODY], &full).0, "abcd abcd 5\n");
}

/// The header as AMD's device libraries read it: nothing used, and 4 MiB less the header available.
#[test]
fn the_initial_buffer_is_empty() {
    let bytes = initial();
    assert_eq!(bytes.len(), 0x40_0000);
    assert_eq!(bytes[..8], [0, 0, 0, 0, 0xF8, 0xFF, 0x3F, 0]);
    assert!(bytes[8..].iter().all(|byte| *byte == 0xEE));
}

/// Whether the last message is cut off by the buffer's end or by the kernel.
#[test]
fn a_full_buffer_is_told_from_a_damaged_one() {
    let numbers = formats(&["1:2:4:4:%d %d\\n"]);
    // Room for a message of 12 bytes and 8 more.
    let with = |used: u32, dwords: &[u32]| {
        let mut bytes = [used, 20].map(u32::to_le_bytes).concat();
        dwords.iter().for_each(|dword| bytes.extend(dword.to_le_bytes()));
        let mut printed = Printed::default();
        let outcome = read(&bytes, &numbers, &mut printed);
        (String::from_utf8(printed.text().to_vec()).unwrap(), outcome)
    };
    let cut = [1, 2, 3, 1, 4];
    let damaged = PrintError::Record { offset: 12, what: "a message of 12 bytes goes beyond the end".into() };
    assert_eq!(
        with(20, &cut),
        ("2 3\n".into(), Err(damaged)),
        "as much as there is room for, but no message"
    );
    assert_eq!(with(24, &cut), ("2 3\n".into(), Err(PrintError::Full { bytes: 20 })));
    let whole = [1, 2, 3, 1, 4, 5];
    assert_eq!(with(24, &whole), ("2 3\n4 5\n".into(), Ok(())), "filled to the last byte");
    assert_eq!(with(25, &whole), ("2 3\n4 5\n".into(), Err(PrintError::Full { bytes: 24 })));
}

#[test]
fn a_message_may_be_its_control_word_alone() {
    let none = PrintFormats::default();
    let plain = [12 << 2, u32::from_le_bytes(*b"out\n"), 0];
    let mut printed = Printed::default();
    read(&buffer(&[&[4 << 2][..], &plain].concat()), &none, &mut printed).unwrap();
    assert_eq!((printed.text(), printed.complaint()), (&b"out\n"[..], None), "not to standard error");
    for length in [0, 3, 5, 6, 7] {
        let expected = format!("the control word {:#x} states {length} bytes", length << 2);
        assert_eq!(text(&[length << 2, 0], &none).1, Err(PrintError::Record { offset: 0, what: expected }));
    }
}

#[test]
fn messages_with_control_words_are_read() {
    let formats = formats(&["0:0:1234,%s %d!\n"]);
    let hashed = [36 << 2 | 2, 0x1234, 0, ABCD, EFG, 9, 0, NOBODY, NOBODY];
    let spelled = [16 << 2 | 1, u32::from_le_bytes(*b"err%"), u32::from_le_bytes(*b"%\n\0\0"), 0];
    let mut printed = Printed::default();
    read(&buffer(&[&hashed[..], &spelled].concat()), &formats, &mut printed).unwrap();
    assert_eq!(printed.text(), b"abcdefg 9!\nerr%\n");
    assert_eq!(printed.complaint(), Some(&b"err%\n"[..]));
}

/// A buffer full of the shortest messages, with a long format that yields little text: processing stops when the
/// allowed work is used up.
#[test]
fn hostile_messages_are_counted_when_they_cost_too_much() {
    let mut printed = Printed::default();
    let flags = format!("1:1:4:%{}d", "-".repeat(60_000));
    let hostile = formats(&[&flags]);
    let messages = (BUFFER_BYTES - HEADER_BYTES) / 8;
    let start = std::time::Instant::now();
    read(&buffer(&[1, 5].repeat(messages)), &hostile, &mut printed).unwrap();
    // All of them would amount to 30 GB of format text.
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
    let made = printed.text().len();
    assert_eq!(made, WORK_BYTES_MAX.div_ceil(60_003));
    assert_eq!(printed.dropped_messages(), (messages - made) as u64);
    // The text is full: no further text is made.
    let (mut printed, long) = (Printed::default(), formats(&[&format!("1:0:{}", "x".repeat(60_000))]));
    let messages = (BUFFER_BYTES - HEADER_BYTES) / 4;
    read(&buffer(&vec![1; messages]), &long, &mut printed).unwrap();
    assert_eq!(printed.text().len(), PRINTED_BYTES_MAX);
    assert_eq!(printed.dropped_messages(), (messages - PRINTED_BYTES_MAX.div_ceil(60_000)) as u64);
}

/// Strings are found once for each format, and their sizes adapted in one pass.
#[test]
fn many_strings_are_adapted_in_one_pass() {
    let count = 4096;
    let entry = format!("1:{count}:{}{}", "8:".repeat(count), "%s".repeat(count));
    let formats = formats(&[&entry]);
    // Every second string is 4 bytes shorter than declared.
    let mut dwords = vec![1];
    for index in 0..count {
        dwords.extend(if index % 2 == 0 { &[ABCD, EFG][..] } else { &[ABCD] });
    }
    dwords.resize(1 + 2 * count, NOBODY);
    let (text, outcome) = text(&dwords, &formats);
    assert_eq!((text, outcome), ("abcdefgabcd".repeat(count / 2), Ok(())));
}

proptest! {
    /// Formats with numbers and with hashes that no compiler writes, over dwords that may name them.
    #[test]
    fn any_formats_and_dwords_end(
        entries in proptest::collection::vec(
            prop_oneof![
                "[1-3]:[0-4](:(0|4|8|12|4294967295|x))*:(%[-+0]?[0-9.*]{0,3}[dscnf%]|[a-z\\\\]){0,8}",
                "0:0:[0-3],(%[-+0]?[0-9.*]{0,3}[dscnf%]|[a-z]){0,8}",
            ],
            1..4,
        ),
        dwords in proptest::collection::vec(
            prop_oneof![0_u32..4, Just(NOBODY), Just(ABCD), Just(EFG), (1_u32..12).prop_map(|units| units << 4 | 2), any::<u32>()],
            0..60,
        ),
        used in prop_oneof![Just(None), any::<u32>().prop_map(Some)],
    ) {
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        let Ok(formats) = parsed(&entries) else { return Ok(()) };
        let mut bytes = buffer(&dwords);
        if let Some(used) = used {
            bytes[..4].copy_from_slice(&used.to_le_bytes());
        }
        let mut printed = Printed::default();
        let outcome = read(&bytes, &formats, &mut printed);
        prop_assert!(printed.text().len() <= PRINTED_BYTES_MAX);
        // A second read has the same result.
        let mut again = Printed::default();
        prop_assert_eq!(read(&bytes, &formats, &mut again), outcome);
        prop_assert_eq!(again, printed);
    }
}

#[test]
fn damage_is_told_with_its_place() {
    let (numbers, hashes) = (formats(&["1:1:4:%d\\n"]), formats(&["0:0:1234,x"]));
    let cases: [(&[u32], &PrintFormats, &str); 6] = [
        (&[1, 5, 9], &numbers, "byte 8: there is no format string 0x9"),
        (&[1], &numbers, "a message of 8 bytes goes beyond the end"),
        (&[0], &hashes, "states 0 bytes"),
        (&[7 << 2], &hashes, "states 7 bytes"),
        (&[400 << 2], &hashes, "a message of 400 bytes"),
        (&[12 << 2 | 2, 0x99, 0], &hashes, "no format string with the hash 0x99"),
    ];
    for (dwords, formats, part) in cases {
        let error = text(dwords, formats).1.unwrap_err().to_string();
        assert!(error.contains(part), "{part:?} in {error:?}");
    }
    let mut full = buffer(&[1, 5]);
    full[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    let mut printed = Printed::default();
    assert!(read(&full, &numbers, &mut printed).is_err());
    assert_eq!(printed.text(), b"5\n", "what came before stays");
    assert_eq!(read(&[1, 2, 3], &numbers, &mut Printed::default()), Ok(()), "no header, no messages");
}
