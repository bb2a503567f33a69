//! Units of bytes written by hand, against the rows and names that DWARF 5 says they have.

use super::*;

/// Version 2 and 3: minimum instruction length 4, is_stmt 1, line base -3, line range 12, opcode base 16, and the
/// operands of opcodes 1 to 15. Those of 1 to 12 are the standard's; it does not know 13, 14 and 15.
const PARAMETERS: [u8; 20] = [4, 1, 0xFD, 12, 16, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 0, 1];
/// Version 4 and 5: the second byte is the number of operations of an instruction.
const PARAMETERS_4: [u8; 21] = [4, 1, 1, 0xFD, 12, 16, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 2, 0, 1];
/// No folders and no files, in version 5 and before.
const NO_NAMES_5: [u8; 4] = [0; 4];
const NO_NAMES: [u8; 2] = [0; 2];

/// A unit, of which only the two lengths are computed.
fn unit(version: u16, parameters: &[u8], tables: &[u8], program: &[u8]) -> Vec<u8> {
    let version_bytes = version.to_le_bytes();
    // Addresses of eight bytes, without segment selectors.
    let version_and_sizes =
        if version >= 5 { [&version_bytes[..], &[8, 0]].concat() } else { version_bytes.into() };
    let header_bytes = (parameters.len() + tables.len()) as u32;
    let body = [&version_and_sizes, &header_bytes.to_le_bytes()[..], parameters, tables, program].concat();
    [&(body.len() as u32).to_le_bytes()[..], &body].concat()
}

fn parse(bytes: &[u8]) -> Option<Unit<'_>> {
    next(&mut EndianSlice::new(bytes, LittleEndian)).flatten()
}

fn rows(bytes: &[u8]) -> Vec<Row> {
    let mut rows = Vec::new();
    parse(bytes).unwrap().rows(|row| {
        rows.push(row);
        true
    });
    rows
}

fn names(bytes: &[u8]) -> Option<(Vec<Text<'_>>, Vec<Name<'_>>)> {
    let (mut folders, mut files) = (Vec::new(), Vec::new());
    parse(bytes).unwrap().names(|folder| folders.push(folder), |file| files.push(file))?;
    Some((folders, files))
}

const fn row(address: u64, file: u64, line: u64) -> Option<Row> {
    Some(Row { address, file, line, is_end: false })
}

/// Instructions and the rows that they make (DWARF 5 §6.2.5), by the parameters above. Operands that are skipped
/// would make rows if they were taken for opcodes.
const INSTRUCTIONS: [(&[u8], Option<Row>); 40] = [
    (&[1], row(0, 1, 1)),                             // copy: the initial state
    (&[0, 9, 2, 0x00, 0x10, 0, 0, 0, 0, 0, 0], None), // set_address 0x1000
    (&[2, 0xAC, 0x02], None),                         // advance_pc by 300 instructions of 4 bytes
    (&[3, 0xE4, 0x00], None),                         // advance_line by 100
    (&[1], row(0x14B0, 1, 101)),
    (&[3, 0x7E], None),       // advance_line by -2
    (&[4, 0xC8, 0x01], None), // set_file 200
    (&[5, 0xFF, 0x01], None), // set_column 255
    (&[6], None),             // negate_stmt
    (&[7], None),             // set_basic_block
    (&[1], row(0x14B0, 200, 99)),
    (&[8], None), // const_add_pc: as opcode 255, (255 - 16) / 12 * 4 bytes
    (&[1], row(0x14FC, 200, 99)),
    (&[9, 0x34, 0x12], None),              // fixed_advance_pc by 0x1234 bytes
    (&[10], None),                         // set_prologue_end
    (&[11], None),                         // set_epilogue_begin
    (&[12, 0x81, 0x01], None),             // set_isa 129
    (&[13, 0x90, 0x01, 0x91, 0x01], None), // unknown, two operands
    (&[14], None),                         // unknown, none
    (&[15, 0x92, 0x01], None),             // unknown, one
    (&[1], row(0x2730, 200, 99)),
    (&[16], row(0x2730, 200, 96)),        // the first special opcode: line base
    (&[45], row(0x2738, 200, 98)),        // 29 = 2 * 12 + 5: two instructions, line + 5 - 3
    (&[255], row(0x2784, 200, 106)),      // 239 = 19 * 12 + 11
    (&[0, 2, 4, 0x55], None),             // set_discriminator
    (&[0, 6, 3, b'a', 0, 1, 1, 1], None), // define_file
    (&[0, 4, 0x80, 1, 1, 1], None),       // the first opcode that is a vendor's
    (&[0, 0x81, 0x00, 4], None),          // a length in two bytes
    (&[0, 5, 2, 0x40, 0x00, 0x00, 0x80], None), // set_address of four bytes
    (&[1], row(0x8000_0040, 200, 106)),
    (&[0, 1, 1], Some(Row { address: 0x8000_0040, file: 200, line: 106, is_end: true })), // end_sequence
    (&[1], row(0, 1, 1)), // the initial state again
    (&[3, 0x7E], None),   // nonsense, and no harm
    (&[1], row(0, 1, u64::MAX)),
    (&[2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01], None), // advance_pc by 2^64 - 1
    (&[1], row(4u64.wrapping_neg(), 1, u64::MAX)),
    (&[3, 2], None),
    (&[2, 1], None),
    (&[1], row(0, 1, 1)),
    (&[0, 1, 1], Some(Row { address: 0, file: 1, line: 1, is_end: true })),
];

#[test]
fn every_opcode_does_what_the_standard_says_up_to_the_byte_where_the_program_is_cut() {
    let program = INSTRUCTIONS.map(|(bytes, _)| bytes).concat();
    for version in 2..=5 {
        let (parameters, tables) = match version {
            2 | 3 => (&PARAMETERS[..], &NO_NAMES[..]),
            4 => (&PARAMETERS_4[..], &NO_NAMES[..]),
            _ => (&PARAMETERS_4[..], &NO_NAMES_5[..]),
        };
        for cut in 0..=program.len() {
            let mut end = 0;
            let whole = INSTRUCTIONS.iter().take_while(|(bytes, _)| {
                end += bytes.len();
                end <= cut
            });
            let expected: Vec<Row> = whole.filter_map(|(_, row)| *row).collect();
            let bytes = unit(version, parameters, tables, &program[..cut]);
            assert_eq!(rows(&bytes), expected, "version {version}, {cut} bytes");
        }
    }
}

#[test]
fn a_program_ends_at_its_first_error_or_when_no_more_rows_are_wanted() {
    let errors: [&[u8]; 4] = [
        &[0, 0],                                // an extended opcode without an opcode
        &[0, 4, 2, 1, 1, 1],                    // an address of three bytes
        &[0, 10, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1], // of nine
        &[0, 3, 0x80],                          // longer than the program
    ];
    for error in errors {
        let program = [&[1, 45][..], error, &[1]].concat();
        let made: Vec<Row> = [row(0, 1, 1), row(8, 1, 3)].into_iter().flatten().collect();
        assert_eq!(rows(&unit(4, &PARAMETERS_4, &NO_NAMES, &program)), made, "{error:?}");
    }
    let bytes = unit(4, &PARAMETERS_4, &NO_NAMES, &[45; 9]);
    let mut lines = Vec::new();
    parse(&bytes).unwrap().rows(|row| {
        lines.push(row.line);
        lines.len() < 3
    });
    assert_eq!(lines, [3, 5, 7]);
}

/// With opcode base 10, opcodes 10 to 12 are special; with 1, all but 0 are.
#[test]
fn special_opcodes_begin_at_the_opcode_base() {
    let ten = [4, 1, 1, 0xFD, 12, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1];
    let expected: Vec<Row> = [row(0, 1, 7), row(0, 1, 4), row(80, 1, 6)].into_iter().flatten().collect();
    // Line 7, then the line base; (255 - 10) / 12 = 20 instructions, 245 % 12 = 5.
    assert_eq!(rows(&unit(4, &ten, &NO_NAMES, &[3, 6, 1, 10, 255])), expected);
    let one = [1, 1, 1, 0, 1, 1];
    let expected: Vec<Row> = [row(0, 1, 1), row(1, 1, 1), row(255, 1, 1)].into_iter().flatten().collect();
    assert_eq!(rows(&unit(4, &one, &NO_NAMES, &[1, 2, 255])), expected);
}

#[test]
fn headers_that_this_reader_does_not_know_are_passed_over() {
    let known = |version, parameters: &[u8]| parse(&unit(version, parameters, &NO_NAMES_5, &[1])).is_some();
    for version in [0, 1, 6, 0x100, 0x105, u16::MAX] {
        assert!(!known(version, &PARAMETERS_4), "version {version}");
    }
    for (at, wrong) in [(1, 0), (1, 2), (4, 0), (5, 0)] {
        let mut parameters = PARAMETERS_4;
        parameters[at] = wrong;
        assert!(!known(4, &parameters) && !known(5, &parameters), "{wrong} at {at}");
    }
    // A line range of 1: 239 instructions forward, and the line base.
    let mut parameters = PARAMETERS_4;
    parameters[4] = 1;
    let forward = Row { address: 956, file: 1, line: 2, is_end: false };
    assert_eq!(rows(&unit(5, &parameters, &NO_NAMES_5, &[3, 4, 0xFF]))[..], [forward]);
    let mut segmented = unit(5, &PARAMETERS_4, &NO_NAMES_5, &[]);
    assert!(parse(&segmented).is_some());
    segmented[7] = 1;
    assert!(parse(&segmented).is_none());
}

/// After a unit that cannot be read comes the next one; a unit that the section does not hold whole ends it.
#[test]
fn units_follow_each_other_up_to_the_first_that_is_cut() {
    for (version, parameters, tables) in [(4, &PARAMETERS_4[..], &NO_NAMES[..]), (3, &PARAMETERS, &NO_NAMES)]
    {
        let whole = unit(version, parameters, tables, &[1]);
        let unknown = unit(1, parameters, tables, &[1]);
        let empty = [0; 4];
        let bytes = [&whole[..], &unknown, &empty, &whole].concat();
        for cut in 0..=bytes.len() {
            let mut section: Slice<'_> = EndianSlice::new(&bytes[..cut], LittleEndian);
            let mut found = Vec::new();
            while let Some(unit) = next(&mut section) {
                found.push(unit.is_some());
            }
            let ends = [whole.len(), 2 * whole.len(), 2 * whole.len() + 4, bytes.len()];
            let count = ends.iter().filter(|end| **end <= cut).count();
            assert_eq!(found, [true, false, false, true][..count], "{cut} bytes");
        }
        // The unit's own length is too short for its header.
        for cut in 4..whole.len() - 1 {
            let mut short = whole[..cut].to_vec();
            short[..4].copy_from_slice(&(cut as u32 - 4).to_le_bytes());
            assert!(matches!(next(&mut EndianSlice::new(&short, LittleEndian)), Some(None)), "{cut} bytes");
        }
    }
    // Escapes to the 64-bit format.
    let long = [&[0xFF; 4][..], &16u64.to_le_bytes(), &[0; 16]].concat();
    assert!(next(&mut EndianSlice::new(&long, LittleEndian)).is_none());
}

#[test]
fn older_tables_are_read_whole_or_not_at_all() {
    let folders = b"inc\0/usr/x\0\0";
    // Folder, time and length; the numbers have two bytes and one.
    let files = b"a.c\0\xC8\x01\x90\x01\x05b.h\0\x00\x01\x81\x02\0";
    let tables = [&folders[..], files].concat();
    let expected = (
        vec![Text::Inline(b"inc"), Text::Inline(b"/usr/x")],
        vec![
            Name { text: Text::Inline(b"a.c"), directory: 200 },
            Name { text: Text::Inline(b"b.h"), directory: 0 },
        ],
    );
    for (version, parameters) in [(2, &PARAMETERS[..]), (3, &PARAMETERS), (4, &PARAMETERS_4)] {
        let bytes = unit(version, parameters, &tables, &[]);
        assert!(!parse(&bytes).unwrap().counts_from_zero(), "version {version}");
        assert_eq!(names(&bytes), Some(expected.clone()), "version {version}");
        for cut in 0..tables.len() {
            // The program is not part of the tables.
            let bytes = unit(version, parameters, &tables[..cut], b"\0\0\0\0\0\0");
            assert_eq!(names(&bytes), None, "version {version}, {cut} bytes");
        }
    }
}

/// Every form with its number and an example (DWARF 5 §7.5.6): as a name, as a number, and as something that is
/// skipped.
const FORMS: [(u8, &[u8], Text<'_>, u64); 22] = [
    (0x08, b"ab\0", Text::Inline(b"ab"), 0),                  // string
    (0x1F, &[1, 2, 3, 4], Text::LineStrings(0x0403_0201), 0), // line_strp
    (0x0E, &[1, 2, 3, 4], Text::Strings(0x0403_0201), 0),     // strp
    (0x0F, &[0xE5, 0x8E, 0x26], Text::Unknown, 624_485),      // udata
    (0x0B, &[0xFE], Text::Unknown, 0xFE),                     // data1
    (0x05, &[1, 2], Text::Unknown, 0x0201),                   // data2
    (0x06, &[1, 2, 3, 4], Text::Unknown, 0x0403_0201),        // data4
    (0x07, &[1, 2, 3, 4, 5, 6, 7, 8], Text::Unknown, 0x0807_0605_0403_0201), // data8
    (0x1E, &[7; 16], Text::Unknown, 0),                       // data16
    (0x0C, &[1], Text::Unknown, 0),                           // flag
    (0x0D, &[0xC0, 0xBB, 0x78], Text::Unknown, 0),            // sdata
    (0x1A, &[0x90, 0x01], Text::Unknown, 0),                  // strx
    (0x25, &[1], Text::Unknown, 0),                           // strx1
    (0x26, &[1, 2], Text::Unknown, 0),                        // strx2
    (0x27, &[1, 2, 3], Text::Unknown, 0),                     // strx3
    (0x28, &[1, 2, 3, 4], Text::Unknown, 0),                  // strx4
    (0x17, &[1, 2, 3, 4], Text::Unknown, 0),                  // sec_offset
    (0x1D, &[1, 2, 3, 4], Text::Unknown, 0),                  // strp_sup
    (0x0A, &[3, 1, 1, 1], Text::Unknown, 0),                  // block1
    (0x03, &[3, 0, 1, 1, 1], Text::Unknown, 0),               // block2
    (0x04, &[3, 0, 0, 0, 1, 1, 1], Text::Unknown, 0),         // block4
    (0x09, &[0x83, 0x00, 1, 1, 1], Text::Unknown, 0),         // block
];

#[test]
#[cfg_attr(miri, ignore = "takes a quarter of an hour there")]
fn every_form_is_read_whole_or_not_at_all() {
    for (form, example, text, directory) in FORMS {
        let name = |text, directory| Name { text, directory };
        // A field of this form between two others; 1 is a path, 2 a folder's number, 5 a checksum.
        let cases = [
            ([5, form, 1, 0x08, 2, 0x0F], [example, b"n\0", &[0x85, 0x01]], name(Text::Inline(b"n"), 133)),
            ([1, 0x08, 2, form, 5, 0x0B], [b"n\0", example, &[9]], name(Text::Inline(b"n"), directory)),
            ([2, 0x0B, 1, form, 5, 0x05], [&[9], example, &[9, 9]], name(text, 9)),
        ];
        for (fields, entry, expected) in cases {
            let entries = [entry.concat(), entry.concat()].concat();
            let table = [&[3][..], &fields, &[2], &entries].concat();
            let tables = [&table[..], &table].concat();
            let bytes = unit(5, &PARAMETERS_4, &tables, &[]);
            assert!(parse(&bytes).unwrap().counts_from_zero());
            let all = (vec![expected.text; 2], vec![expected; 2]);
            assert_eq!(names(&bytes), Some(all), "form {form:#x}, {fields:?}");
            for cut in 0..tables.len() {
                let bytes = unit(5, &PARAMETERS_4, &tables[..cut], &[0; 64]);
                assert_eq!(names(&bytes), None, "form {form:#x}, {fields:?}, {cut} bytes");
            }
        }
    }
    let known = FORMS.map(|(form, ..)| form);
    for form in (0..0x40).filter(|form| !known.contains(form)) {
        for content in [1, 2, 5] {
            let tables = [&[0, 0, 2, 1, 0x08, content, form, 1, b'n', 0][..], &[0; 32]].concat();
            assert_eq!(names(&unit(5, &PARAMETERS_4, &tables, &[])), None, "form {form:#x}, {content}");
        }
    }
}

/// Entries without a path could have no bytes at all, and their count would be free.
#[test]
fn only_an_empty_table_may_lack_paths() {
    let is_read = |table: &[u8]| {
        let bytes = unit(5, &PARAMETERS_4, &[table, &NO_NAMES_5].concat(), &[]);
        names(&bytes).is_some_and(|(folders, files)| folders.is_empty() && files.is_empty())
    };
    for empty in [&[0, 0][..], &[1, 2, 0x0B, 0], &[1, 1, 0x08, 0], &[2, 5, 0x1E, 3, 0x0F, 0]] {
        assert!(is_read(empty), "{empty:?}");
    }
    for without in [&[0, 1][..], &[0, 0xFF, 0x01], &[1, 2, 0x0B, 1, 7], &[2, 2, 0x0B, 5, 0x0B, 1, 7, 7]] {
        let bytes = unit(5, &PARAMETERS_4, &[without, &NO_NAMES_5].concat(), &[]);
        assert_eq!(names(&bytes), None, "{without:?}");
    }
}
