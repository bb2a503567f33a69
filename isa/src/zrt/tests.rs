//! The container's layout, its limits, and the errors for containers that break them.

use super::*;
use proptest::prelude::*;

const CODE: [u8; 12] = [1, 2, 3, 4, 5, 6, 7, 8, 0x00, 0x00, 0xB0, 0xBF];

fn sample() -> Kernel<'static> {
    Kernel {
        name: "sample",
        code: &CODE,
        entry: 0,
        rsrc1: 0x400F_0001,
        rsrc2: 0x84 | 2 << 15,
        rsrc3: 0,
        wave_size: WaveSize::Wave32,
        user_sgprs: 2,
        vgprs: 10,
        sgprs: 40,
        workgroup: [128, 1, 1],
        lds_bytes: 600,
        scratch_bytes: 0,
        parameter_version: 1,
        parameter_opcode: 4,
        parameter_bytes: 72,
        files: vec!["asm/gfx1201/a.s", "asm/gfx1201/b.inc"],
        lines: vec![Line { code_offset: 0, file: 0, line: 7 }, Line { code_offset: 8, file: 1, line: 20 }],
        constants: vec![Constant { name: "bias", code_offset: 4, value: 0x0807_0605 }],
    }
}

/// Every header field is at the byte given in docs/zrt-format.md.
#[test]
fn layout_is_the_documented_one() {
    let bytes = sample().write().expect("valid");
    let at = |offset: usize| u32::from_le_bytes(bytes[offset..offset + 4].try_into().expect("4"));
    assert_eq!(&bytes[..16], b"ZRT\0\x02\x00\x80\x00\x0c\x01\x00\x00\x0c\x00\x01\x00");
    assert_eq!([at(16), at(20), at(24)], [256, 12, 0]);
    assert_eq!([at(28), at(32), at(36)], [0x400F_0001, 0x10084, 0]);
    assert_eq!([at(40), at(44), at(48)], [0x000A_0220, 0x0080_0028, 0x0001_0001]);
    assert_eq!([at(52), at(56), at(60), at(64)], [600, 0, 0x0004_0001, 72]);
    assert_eq!([at(76), at(80)], [128, 2]);
    assert_eq!([at(84), at(88)], [144, 2]);
    assert_eq!([at(92), at(96)], [168, 1]);
    assert_eq!([at(144), at(148), at(152), at(156)], [0, 0, 7, 8]);
    assert_eq!([at(176), at(180)], [4, 0x0807_0605]);
    assert_eq!(&bytes[184..190], b"sample");
    assert_eq!(&bytes[256..], &CODE);
    assert_eq!(bytes.len(), 268);
}

#[test]
fn reads_what_it_wrote() {
    let bytes = sample().write().expect("valid");
    let kernel = Kernel::parse(&bytes).expect("parses");
    assert_eq!(kernel, sample());
    assert_eq!(kernel.source_line(4), Some(("asm/gfx1201/a.s", 7)));
    assert_eq!(kernel.source_line(8), Some(("asm/gfx1201/b.inc", 20)));
    assert_eq!(kernel.code_dwords().last(), Some(0xBFB0_0000));
}

#[test]
fn says_what_is_wrong() {
    let bytes = sample().write().expect("valid");
    let with = |offset: usize, value: u8| {
        let mut changed = bytes.clone();
        changed[offset] = value;
        Kernel::parse(&changed).err()
    };
    assert_eq!(with(0, b'X'), Some(ZrtError::Magic { found: *b"XRT\0" }));
    assert_eq!(with(4, 1), Some(ZrtError::Version { found: 1 }));
    assert_eq!(with(14, 0), Some(ZrtError::Target { found: [12, 0, 0, 0] }));
    assert_eq!(with(100, 1), Some(ZrtError::Reserved { offset: 100 }));
    assert!(matches!(with(28, 0), Some(ZrtError::Disagreement { what: "VGPRs", .. })));
    assert!(matches!(with(41, 3), Some(ZrtError::Disagreement { what: "user SGPRs", .. })));
    assert!(matches!(with(24, 4), Some(ZrtError::Misaligned { part: "entry", .. })));
    assert!(matches!(with(23, 1), Some(ZrtError::OutOfBounds { part: "code", .. })));
    assert_eq!(
        with(144, 12),
        Some(ZrtError::OutOfBounds { part: "line table entry", offset: 12, bytes: 4, limit: 12 })
    );
    assert_eq!(with(160, 2), Some(ZrtError::Line { index: 1 }));
    assert!(matches!(Kernel::parse(&bytes[..267]), Err(ZrtError::Length { actual_bytes: 267, .. })));
    // Three dwords of code.
    let constants = Kernel { constants: vec![sample().constants[0]; 4], ..sample() };
    assert!(matches!(constants.write(), Err(ZrtError::Range { part: "constant table", max: 3, .. })));
    assert_eq!(with(88, 4), Some(ZrtError::Range { part: "line table", value: 4, min: 0, max: 3 }));
    assert_eq!(with(96, 4), Some(ZrtError::Range { part: "constant table", value: 4, min: 0, max: 3 }));
    // A name inside the header.
    assert_eq!(
        with(68, 100),
        Some(ZrtError::OutOfBounds { part: "kernel name", offset: 100, bytes: 6, limit: 268 })
    );
    let absolute = Kernel { files: vec!["/absolute/a.s", "b"], ..sample() };
    assert_eq!(absolute.write(), Err(ZrtError::Path { path: "/absolute/a.s".into() }));
}

#[test]
#[cfg_attr(miri, ignore = "writes and reads 4,096 names")]
fn a_container_names_4096_files_at_most() {
    let files = Kernel { files: vec!["a"; FILES_MAX + 1], lines: vec![], ..sample() };
    let too_many = ZrtError::Range { part: "file table", value: 4097, min: 0, max: 4096 };
    assert_eq!(files.write(), Err(too_many));
    let most = Kernel { files: vec!["a"; FILES_MAX], lines: vec![], ..sample() };
    assert!(Kernel::parse(&most.write().expect("valid")).is_ok());
}

/// Names, one for every dword of code, that together are far longer than a container may be.
#[test]
#[cfg_attr(miri, ignore = "writes 64 MiB")]
fn a_container_that_would_be_too_long_is_refused_by_its_length() {
    const DWORDS: usize = 1 << 20;
    let name = "n".repeat(NAME_BYTES_MAX);
    let code = CODE[..4].repeat(DWORDS);
    let constants = |count| vec![Constant { name: &name, code_offset: 0, value: 0 }; count];
    let kernel = |count| Kernel { code: &code, lines: vec![], constants: constants(count), ..sample() };
    let names = 6 + 16 + 18 + NAME_BYTES_MAX * DWORDS;
    let before_code = (128 + 2 * 8 + DWORDS * 16 + names).next_multiple_of(256);
    let refused = ZrtError::Range {
        part: "file length",
        value: (before_code + 4 * DWORDS) as u64,
        min: 128,
        max: 64 << 20,
    };
    assert_eq!(kernel(DWORDS).write(), Err(refused));
    // The longest that fits, and one more.
    let fitting = ((64 << 20) - 4 * DWORDS - (128 + 2 * 8 + 6 + 16 + 18)) / (16 + NAME_BYTES_MAX);
    let written = kernel(fitting).write().expect("fits");
    assert!(written.len() <= 64 << 20 && written.len() > (64 << 20) - 256 - 16 - NAME_BYTES_MAX);
    assert_eq!(written.len(), written.capacity(), "its length is known before it is allocated");
    assert!(matches!(kernel(fitting + 1).write(), Err(ZrtError::Range { part: "file length", .. })));
}

/// Each header field with a least or greatest value, at the limit and one beyond.
#[test]
fn limits_are_where_they_are_said_to_be() {
    let range = |kernel: Kernel<'_>| match kernel.check() {
        Err(ZrtError::Range { part, .. }) => Some(part),
        Err(other) => panic!("{other}"),
        Ok(()) => None,
    };
    // VGPRs are granted in eights: 2 blocks are 9 to 16 registers.
    for (vgprs, granted) in [(8, false), (9, true), (16, true), (17, false)] {
        let checked = Kernel { vgprs, ..sample() }.check();
        assert_eq!(checked.is_ok(), granted, "{vgprs}: {checked:?}");
    }
    // Two blocks of LDS.
    for (lds_bytes, granted) in [(0, true), (1024, true), (1025, false)] {
        assert_eq!(Kernel { lds_bytes, ..sample() }.check().is_ok(), granted, "{lds_bytes}");
    }
    for (workgroup, part) in [
        ([1024, 1, 1], None),
        ([32, 8, 4], None),
        ([1025, 1, 1], Some("workgroup size")),
        ([32, 8, 5], Some("workgroup size")),
        ([1, 1, 0], Some("workgroup size")),
        ([65535, 65535, 65535], Some("workgroup size")),
    ] {
        assert_eq!(range(Kernel { workgroup, ..sample() }), part, "{workgroup:?}");
    }
    let name = "n".repeat(NAME_BYTES_MAX + 1);
    assert_eq!(range(Kernel { name: &name[1..], ..sample() }), None);
    assert_eq!(range(Kernel { name: &name, ..sample() }), Some("kernel name"));
    assert_eq!(range(Kernel { name: "", ..sample() }), Some("kernel name"));
}

#[test]
fn names_and_paths_have_no_control_characters_and_do_not_climb() {
    for name in ["a\nb", "\0", "\u{7f}", "\u{85}"] {
        assert_eq!(Kernel { name, ..sample() }.check(), Err(ZrtError::Name { part: "kernel name" }));
        let files = Kernel { files: vec!["a.s", name], ..sample() };
        assert_eq!(files.check(), Err(ZrtError::Name { part: "path" }));
        let constants = vec![Constant { name, code_offset: 4, value: 0 }];
        let constants = Kernel { constants, ..sample() };
        assert_eq!(constants.check(), Err(ZrtError::Name { part: "constant name" }));
    }
    for path in ["../a.s", "a/../b.s", "a//b.s", "a/", "C:a.s", "a\\b.s"] {
        let files = Kernel { files: vec!["a.s", path], ..sample() };
        assert_eq!(files.check(), Err(ZrtError::Path { path: path.into() }));
    }
}

#[test]
fn lines_are_in_order_and_each_dword_has_one() {
    let with = |lines: &[(u32, u32)]| {
        let line = |&(code_offset, file)| Line { code_offset, file, line: 1 };
        Kernel { lines: lines.iter().map(line).collect(), ..sample() }.check()
    };
    assert_eq!(with(&[(0, 1), (4, 0), (8, 1)]), Ok(()));
    for (lines, index) in [(&[(4, 0), (4, 1)][..], 1), (&[(4, 0), (0, 0)], 1), (&[(0, 2)], 0)] {
        assert_eq!(with(lines), Err(ZrtError::Line { index }), "{lines:?}");
    }
}

/// A container that ends inside its header reports its length, wherever it ends, even inside the magic.
#[test]
fn a_cut_header_is_told_by_its_length() {
    let bytes = sample().write().expect("valid");
    for length in 0..HEADER_BYTES {
        let short = ZrtError::Length { actual_bytes: length, needed_bytes: 128 };
        assert_eq!(Kernel::parse(&bytes[..length]), Err(short));
    }
    // A header that is whole and says that nothing follows it: only its parts are missing.
    let mut header = bytes[..HEADER_BYTES].to_vec();
    header[8..12].copy_from_slice(&128u32.to_le_bytes());
    let outside = ZrtError::OutOfBounds { part: "code", offset: 256, bytes: 12, limit: 128 };
    assert_eq!(Kernel::parse(&header), Err(outside));
}

/// What is checked before a field is read makes this impossible; a field past the end is an error all the same.
#[test]
fn a_field_past_the_end_is_told_by_the_length_that_it_needs() {
    let bytes = [1, 2, 3, 4, 5, 6, 7, 8];
    assert_eq!((byte(&bytes, 7), word(&bytes, 6), dword(&bytes, 4)), (Ok(8), Ok(0x0807), Ok(0x0807_0605)));
    let short = |needed_bytes| ZrtError::Length { actual_bytes: 8, needed_bytes };
    assert_eq!(byte(&bytes, 8), Err(short(9)));
    assert_eq!((word(&bytes, 7), word(&bytes, 8)), (Err(short(9)), Err(short(10))));
    assert_eq!((dword(&bytes, 5), dword(&bytes, 8)), (Err(short(9)), Err(short(12))));
}

proptest! {
    #[test]
    fn any_bytes_do_not_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = Kernel::parse(&bytes);
    }

    /// Starts from a valid container, so that the deeper checks are reached.
    #[test]
    fn changed_bytes_do_not_panic(
        changes in proptest::collection::vec((0usize..268, any::<u8>()), 1..6),
        length in 0usize..=268,
    ) {
        let mut bytes = sample().write().expect("valid");
        for (offset, value) in changes {
            bytes[offset] = value;
        }
        bytes.truncate(length);
        if length >= 12 {
            bytes[8..12].copy_from_slice(&(length as u32).to_le_bytes());
        }
        if let Ok(kernel) = Kernel::parse(&bytes) {
            let again = kernel.write().expect("what parses can be written");
            prop_assert_eq!(Kernel::parse(&again), Ok(kernel));
        }
    }
}

/// `Vec` refuses more than `isize::MAX` bytes.
#[test]
fn values_that_find_no_room_are_an_error_that_says_how_many_bytes() {
    let error = room::<u64>("lines", 1 << 60).unwrap_err();
    assert!(matches!(error, ZrtError::Memory { part: "lines", bytes: 0x8000_0000_0000_0000 }), "{error}");
    let some = room::<u64>("lines", 3).unwrap();
    assert!(some.is_empty() && some.capacity() >= 3);
}
