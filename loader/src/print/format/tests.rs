//! Formats with their expected texts. Those of [`numbers_are_as_in_c`] were written by glibc 2.36's `snprintf`.

use super::*;

/// The text of a format and one slot.
fn one(format: &str, slot: u64) -> String {
    text(format, &slot.to_le_bytes()).unwrap()
}

/// The text of a format and slots.
fn text(format: &str, slots: &[u8]) -> Result<String, PrintError> {
    let mut text = Vec::new();
    render(format.as_bytes(), Values::Slots(slots), &mut text)?;
    Ok(String::from_utf8(text).unwrap())
}

/// The text of a format and fields of OpenCL.
fn fields(format: &str, sizes: &[u32], bytes: &[u8]) -> Result<String, PrintError> {
    let mut text = Vec::new();
    render(format.as_bytes(), Values::Fields { bytes, sizes }, &mut text)?;
    Ok(String::from_utf8(text).unwrap())
}

#[test]
fn numbers_are_as_in_c() {
    let integers: &[(&str, i64, &str)] = &[
        ("%d", -5, "-5"),
        ("%5d", 42, "   42"),
        ("%-5d|", 42, "42   |"),
        ("%+d", 42, "+42"),
        ("% d", 42, " 42"),
        ("%05d", -42, "-0042"),
        ("%.3d", 7, "007"),
        ("%8.3d", -7, "    -007"),
        ("%08.3d", 7, "     007"),
        ("%.0d", 0, ""),
        ("%.0d", 7, "7"),
        ("%.0u", 10, "10"),
        ("%+.0d", 0, "+"),
        ("%-08d|", 7, "7       |"),
        ("%u", 4000000000, "4000000000"),
        ("%x", 255, "ff"),
        ("%#x", 255, "0xff"),
        ("%#X", 255, "0XFF"),
        ("%#010x", 255, "0x000000ff"),
        ("%#x", 0, "0"),
        ("%o", 8, "10"),
        ("%#o", 8, "010"),
        ("%#o", 0, "0"),
        ("%#.0o", 0, "0"),
        ("%#.3o", 8, "010"),
        ("%#.1o", 8, "010"),
        ("%hhd", 300, "44"),
        ("%hd", 70000, "4464"),
        ("%hhu", -1, "255"),
        ("%ld", -9000000000, "-9000000000"),
        ("%llx", 0x0123_4567_89ab_cdef, "123456789abcdef"),
        ("%i", 7, "7"),
        ("%c", b'x' as i64, "x"),
        ("%3c|", b'x' as i64, "  x|"),
        ("%-3c|", b'x' as i64, "x  |"),
        ("%p", 0, "(nil)"),
        ("%p", 0x1234, "0x1234"),
        ("%12p|", 0x1234, "      0x1234|"),
        ("%%%d", 1, "%1"),
    ];
    for (format, value, expected) in integers {
        assert_eq!(one(format, *value as u64), *expected, "{format} of {value}");
    }
    let floats: &[(&str, f64, &str)] = &[
        ("%f", 1.5, "1.500000"),
        ("%.0f", 0.5, "0"),
        ("%.0f", 1.5, "2"),
        ("%.0f", 2.5, "2"),
        ("%#.0f", 2.0, "2."),
        ("%8.2f|", 3.1425, "    3.14|"),
        ("%-8.2f|", 3.1425, "3.14    |"),
        ("%08.2f", -3.1425, "-0003.14"),
        ("%+f", 0.0, "+0.000000"),
        ("%f", -0.0, "-0.000000"),
        ("%f", f64::INFINITY, "inf"),
        ("%5.1f", f64::NEG_INFINITY, " -inf"),
        ("%08f", f64::INFINITY, "     inf"),
        ("%f", f64::NAN, "nan"),
        ("%F", f64::INFINITY, "INF"),
        ("%e", f64::INFINITY, "inf"),
        ("%.3e", f64::NEG_INFINITY, "-inf"),
        ("%g", f64::INFINITY, "inf"),
        ("%#g", f64::NEG_INFINITY, "-inf"),
        ("%a", f64::INFINITY, "inf"),
        ("%E", f64::NAN, "NAN"),
        ("%G", f64::NEG_INFINITY, "-INF"),
        ("%A", f64::NEG_INFINITY, "-INF"),
        ("%.20f", 0.1, "0.10000000000000000555"),
        ("%f", 1e22, "10000000000000000000000.000000"),
        ("%e", 0.0, "0.000000e+00"),
        ("%e", 12345.678, "1.234568e+04"),
        ("%.2e", 9.999, "1.00e+01"),
        ("%E", 1e-300, "1.000000E-300"),
        ("%.0e", 5.0, "5e+00"),
        ("%#.0e", 5.0, "5.e+00"),
        ("%e", 5e-324, "4.940656e-324"),
        ("%g", 0.0001, "0.0001"),
        ("%g", 0.00001, "1e-05"),
        ("%g", 123456.0, "123456"),
        ("%g", 1234567.0, "1.23457e+06"),
        ("%g", 100000.0, "100000"),
        ("%g", 1e6, "1e+06"),
        ("%.3g", 0.00012345, "0.000123"),
        ("%#g", 1.0, "1.00000"),
        ("%#.3g", 100.0, "100."),
        ("%G", 1e-10, "1E-10"),
        ("%g", 0.0, "0"),
        ("%.0g", 15.0, "2e+01"),
        ("%g", 999999.5, "1e+06"),
        ("%.10g", 0.1, "0.1"),
        ("%a", 1.0, "0x1p+0"),
        ("%a", 1.5, "0x1.8p+0"),
        ("%a", 0.0, "0x0p+0"),
        ("%a", -0.1, "-0x1.999999999999ap-4"),
        ("%.2a", 1.0 / 3.0, "0x1.55p-2"),
        ("%.0a", 1.5, "0x2p+0"),
        ("%.0a", 2.5, "0x1p+1"),
        ("%.0a", 1.9, "0x2p+0"),
        ("%#.0a", 1.0, "0x1.p+0"),
        ("%A", 3.7, "0X1.D99999999999AP+1"),
        ("%a", 5e-324, "0x0.0000000000001p-1022"),
        ("%.15a", 1.0, "0x1.000000000000000p+0"),
        ("%12a|", 1.0, "      0x1p+0|"),
        ("%012a|", 1.0, "0x0000001p+0|"),
        ("%.1a", 1.96875, "0x2.0p+0"),
        ("%.1a", 1.03125, "0x1.0p+0"),
        ("%.1a", 1.09375, "0x1.2p+0"),
        ("%.3a", 15.999_992_370_605_469, "0x2.000p+3"),
    ];
    for (format, value, expected) in floats {
        assert_eq!(one(format, value.to_bits()), *expected, "{format} of {value}");
    }
    let strings: &[(&str, &str, &str)] = &[
        ("%s", "abc", "abc"),
        ("%5s|", "abc", "  abc|"),
        ("%-5s|", "abc", "abc  |"),
        ("%.2s|", "abc", "ab|"),
    ];
    for (format, value, expected) in strings {
        assert_eq!(text(format, &[value.as_bytes(), &[0; 5]].concat()).unwrap(), *expected, "{format}");
    }
}

#[test]
fn arguments_stand_in_slots_with_their_strings() {
    let mut slots = Vec::new();
    for number in [8_u64, 2, 3.1425_f64.to_bits()] {
        slots.extend_from_slice(&number.to_le_bytes());
    }
    slots.extend_from_slice(b"eight ch\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    slots.extend_from_slice(&(-1_i64).to_le_bytes());
    assert_eq!(text("%*.*f|%s|%s|%d", &slots).unwrap(), "    3.14|eight ch||-1");
    let negative = [(-6_i64).to_le_bytes(), 7_i64.to_le_bytes()].concat();
    assert_eq!(text("%*d|", &negative).unwrap(), "7     |");
    assert_eq!(text("%.*d|", &negative).unwrap(), "7|", "a negative precision is none");
}

#[test]
fn fields_have_the_sizes_of_the_metadata() {
    let floats: Vec<u8> = [1.0_f32, -2.5, 3.0, 4.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(fields("(%v4hlf)", &[16], &floats).unwrap(), "(1.000000,-2.500000,3.000000,4.000000)");
    assert_eq!(fields("%6.1v2f", &[8], &floats[..8]).unwrap(), "   1.0,  -2.5");
    // Three elements take the space of four, the last of which is unused.
    let shorts: Vec<u8> = [1_i16, -2, 3, 99].iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(fields("%v3hd", &[8], &shorts).unwrap(), "1,-2,3");
    assert_eq!(fields("%v4hhx", &[4], &[1, 0xAB, 3, 0xFF]).unwrap(), "1,ab,3,ff");
    // 1, 65504 (the largest), the smallest, and infinity as halves.
    let halves: Vec<u8> =
        [0x3C00_u16, 0x7BFF, 0x8001, 0x7C00].iter().flat_map(|half| half.to_le_bytes()).collect();
    assert_eq!(fields("%v4hg", &[8], &halves).unwrap(), "1,65504,-5.96046e-08,inf");
    // Of exponent 31: a quiet NaN, one with the lowest bit of the fraction, the other infinity.
    let halves: Vec<u8> = [0x7E00_u16, 0x7C01, 0xFC00].iter().flat_map(|half| half.to_le_bytes()).collect();
    assert_eq!(fields("%v2hg", &[4], &halves[..4]).unwrap(), "nan,nan");
    assert_eq!(fields("%g", &[2], &halves[4..]).unwrap(), "-inf");
    let mixed =
        [&7_u32.to_le_bytes()[..], b"abc\0", &(-9_i64).to_le_bytes(), &2.5_f32.to_le_bytes()].concat();
    assert_eq!(fields("%u %s %ld %g", &[4, 4, 8, 4], &mixed).unwrap(), "7 abc -9 2.5");
    // A long without its length is printed whole; LLVM's marker of an empty string prints as one.
    assert_eq!(fields("%d", &[8], &(1_i64 << 40).to_le_bytes()).unwrap(), "1099511627776");
    assert_eq!(fields("[%s]", &[4], &0xFFFF_FF00_u32.to_le_bytes()).unwrap(), "[]");
}

#[test]
fn what_cannot_be_followed_is_an_error() {
    let slots = [0; 16];
    let cases = [
        ("%n", "%n"),
        ("%d %d %d", "more conversions"),
        ("%", "ends inside"),
        ("%5.", "ends inside"),
        ("%v5d", "vector of 5"),
        ("%v4s", "numbers alone"),
        ("%y", "unknown conversion %y"),
        ("%5000d", "more than 4096"),
        ("%.99999999999999999999d", "more than 4096"),
        ("%v4d", ""),
    ];
    for (format, part) in cases {
        match text(format, &slots) {
            Err(error) => assert!(error.to_string().contains(part), "{format}: {error}"),
            Ok(text) => assert_eq!((format, text.as_str()), ("%v4d", "0,0,0,0")),
        }
    }
    let amount = i64::from(i32::MIN).to_le_bytes();
    assert!(text("%*d", &[amount, amount].concat()).is_err());
    assert!(fields("%v4d", &[2], &[0; 4]).is_err());
    assert!(fields("%f", &[1], &[0; 4]).is_err());
    assert!(fields("%d", &[400], &[0; 4]).is_err(), "a field beyond the message");
}

/// The text of one message is bounded, however short its format.
#[test]
fn text_is_bounded() {
    let format = "%4096d".repeat(300);
    let error = text(&format, &vec![0; 300 * 8]).unwrap_err();
    assert!(error.to_string().contains("more than 1048576 bytes"), "{error}");
    assert_eq!(text(&"%4096d".repeat(200), &vec![0; 200 * 8]).unwrap().len(), 200 * 4096);
}

/// 256 fields of 4,096 bytes are a mebibyte; one byte more is refused, whether a directive or plain text brings it.
/// What was there before does not count.
#[test]
fn a_message_has_a_mebibyte_of_text_at_most() {
    let slots = vec![0; 256 * 8];
    let full = "%4096d".repeat(256);
    for (more, is_accepted) in [("", true), ("x", false), ("%%", false), ("%%%d", false)] {
        let format = format!("{full}{more}");
        let mut text = b"before".to_vec();
        let outcome = render(format.as_bytes(), Values::Slots(&slots), &mut text);
        match is_accepted {
            true => assert_eq!((outcome, text.len()), (Ok(()), 6 + (1 << 20))),
            false => {
                let what = "gives more than 1048576 bytes".into();
                assert_eq!(outcome, Err(PrintError::Format { format, what }), "with {more:?}");
                assert_eq!(text.len(), 6 + (1 << 20) + 1, "with {more:?}: the first byte too much ends it");
            }
        }
    }
}

#[test]
fn strings_are_counted_by_their_arguments() {
    assert_eq!(string_arguments(b"%d %s %*.*s %% %v4f %s"), [1, 4, 6]);
    assert_eq!(string_arguments(b"%s %y %s"), [0], "what cannot be read ends the list");
}
