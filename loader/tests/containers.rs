//! Kernels of a `.zrt` and of raw code: values missing from the file are those that the launch of every kernel here
//! expects.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

use zrt_isa::resources::WaveSize;
use zrt_isa::zrt;
use zrt_loader::{FILE_BYTES_MAX, Format, LoadError, Program, RawOptions, UserSgpr};

/// s_endpgm.
const END: [u8; 4] = [0x00, 0x00, 0xb0, 0xbf];

/// Resource words by instruction set reference §10: 600 bytes of LDS are two blocks of 512, 400 bytes of code four
/// lines of 128.
#[test]
fn raw_code_gets_all_that_the_options_say() {
    let options = RawOptions {
        name: "k".into(),
        wave_size: WaveSize::Wave32,
        vgprs: 100,
        user_sgprs: 5,
        lds_bytes: 600,
        scratch_bytes: 16,
    };
    let program = Program::raw(&END.repeat(100), &options).unwrap();
    assert_eq!((program.format(), program.functions()), (Format::Raw, vec![(0, "k")]));
    let kernel = program.kernel("k").unwrap();
    // Round to even, keep denormals, memory in order, forward progress; 13 blocks of 8 registers.
    assert_eq!(kernel.rsrc1, 0xc00f_0000 | 12);
    // Scratch, user registers, three group numbers, three lane numbers, LDS.
    assert_eq!(kernel.rsrc2, 1 | 5 << 1 | 7 << 7 | 2 << 11 | 2 << 15);
    assert_eq!(kernel.rsrc3, 4 << 4);
    assert_eq!(kernel.user_sgprs, [[UserSgpr::Arguments].as_slice(), &[UserSgpr::Unused; 3]].concat());
    assert_eq!((kernel.lds_bytes, kernel.scratch_bytes, kernel.code_bytes), (600, 16, 400));
    let plain = Program::raw(&END, &RawOptions::default()).unwrap();
    let kernel = plain.kernel("raw").unwrap();
    assert_eq!((kernel.rsrc1, kernel.rsrc2), (0xc00f_0000 | 31, 2 << 1 | 7 << 7 | 2 << 11));
    assert_eq!(kernel.user_sgprs, [UserSgpr::Arguments]);
}

#[test]
fn raw_code_has_limits() {
    let with = |user_sgprs| Program::raw(&END, &RawOptions { user_sgprs, ..RawOptions::default() });
    for (count, is_legal) in [(0, false), (1, false), (2, true), (16, true), (17, false)] {
        assert_eq!(with(count).is_ok(), is_legal, "{count} user SGPRs");
    }
    for bytes in [0, 1, 3, 5] {
        let refused = Program::raw(&[0; 8][..bytes], &RawOptions::default());
        assert!(matches!(refused, Err(LoadError::Raw { .. })), "{bytes} bytes");
    }
    // Zero pages that are never touched.
    let code = vec![0; (64 << 20) + 4];
    let refused = Program::raw(&code, &RawOptions::default());
    let expected = LoadError::TooLarge { what: "the code", bytes: (64 << 20) + 4, limit: 64 << 20 };
    assert_eq!(refused, Err(expected));
    let longest = Program::raw(&code[4..], &RawOptions::default()).unwrap();
    assert_eq!(longest.image().bytes().len(), 64 << 20);
    let file = vec![0; FILE_BYTES_MAX as usize + 1];
    assert!(matches!(Program::parse(&file), Err(LoadError::TooLarge { what: "the file", .. })));
    assert!(matches!(Program::parse(&file[1..]), Err(LoadError::Unknown { .. })));
}

/// A container with this many user SGPRs and its entry at `entry`.
fn container(user_sgprs: u8, entry: u32) -> Vec<u8> {
    let code = END.repeat(128);
    let kernel = zrt::Kernel {
        name: "z",
        code: &code,
        entry,
        rsrc1: 0xc00f_0001,
        rsrc2: u32::from(user_sgprs) << 1,
        rsrc3: 0,
        wave_size: WaveSize::Wave32,
        user_sgprs,
        vgprs: 16,
        sgprs: 40,
        workgroup: [32, 2, 1],
        lds_bytes: 0,
        scratch_bytes: 0,
        parameter_version: 1,
        parameter_opcode: 2,
        parameter_bytes: 8,
        files: vec![],
        lines: vec![],
        constants: vec![],
    };
    kernel.write().unwrap()
}

#[test]
fn the_third_register_of_a_container_is_the_number_of_groups() {
    use UserSgpr::{Arguments, GroupCount, Unused};
    for (count, expected) in [
        (0, &[][..]),
        (1, &[Unused]),
        (2, &[Arguments]),
        (3, &[Arguments, GroupCount]),
        (5, &[Arguments, GroupCount, Unused, Unused]),
    ] {
        let program = Program::parse(&container(count, 0)).unwrap();
        let kernel = program.kernel("z").unwrap();
        assert_eq!(kernel.user_sgprs, expected, "{count} registers");
        assert_eq!((kernel.required_workgroup, kernel.workgroup_items_max), (Some([32, 2, 1]), 64));
    }
    let program = Program::parse(&container(2, 256)).unwrap();
    let kernel = program.kernel("z").unwrap();
    assert_eq!((kernel.entry_offset, kernel.code_bytes), (256, 256));
    assert_eq!(program.functions(), [(256, "z")]);
}
