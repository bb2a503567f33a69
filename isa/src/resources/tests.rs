//! Words, fields, granules and occupancy, against the tables of the references.

use super::*;
use proptest::prelude::*;

/// The words of instruction set reference §10.
#[test]
fn reference_words() {
    let rsrc1 = Rsrc1 { wgp_mode: true, ..Rsrc1::default() };
    assert_eq!(Rsrc1 { forward_progress: false, ..rsrc1 }.word(), Ok(0x600F_0000));
    assert_eq!(rsrc1.word(), Ok(0xE00F_0000));
    assert_eq!(Rsrc1::default().word(), Ok(0xC00F_0000));
    let rsrc2 = Rsrc2 { user_sgprs: 2, workgroup_id: [true, false, false], ..Rsrc2::default() };
    assert_eq!(rsrc2.word(), Ok(0x84));
    let with_lds = Rsrc2 { lds_blocks: lds_field(1025).expect("fits"), ..rsrc2 };
    assert_eq!(with_lds.word(), Ok(0x84 | 3 << 15));
    let rsrc3 = Rsrc3 { instruction_prefetch: instruction_prefetch_field(1000), ..Rsrc3::default() };
    assert_eq!(rsrc3.word(), Ok(8 << 4));
}

/// The examples of hardware reference §7.
#[test]
fn counts_become_granules() {
    for (vgprs, field) in [(1, 0), (8, 0), (9, 1), (96, 11), (256, 31)] {
        assert_eq!(vgpr_field(vgprs, WaveSize::Wave32), Ok(field));
    }
    assert_eq!([4, 5, 256].map(|vgprs| vgpr_field(vgprs, WaveSize::Wave64)), [Ok(0), Ok(1), Ok(63)]);
    assert_eq!([0, 1, 512, 513, 65536].map(lds_field), [Ok(0), Ok(1), Ok(1), Ok(2), Ok(128)]);
}

#[test]
fn a_field_that_does_not_fit_is_an_error() {
    let vgprs = Rsrc1 { vgpr_blocks_minus_one: 64, ..Rsrc1::default() };
    assert_eq!(vgprs.word(), Err(ResourceError::FieldTooLarge { field: "VGPRs", value: 64, max: 63 }));
    let sgprs = Rsrc2 { user_sgprs: 17, ..Rsrc2::default() };
    assert_eq!(sgprs.word(), Err(ResourceError::FieldTooLarge { field: "USER_SGPR", value: 17, max: 16 }));
    assert!(Rsrc2::parse(17 << 1).is_err());
    assert!(Rsrc2::parse(3 << 11).is_err());
    assert_eq!(Rsrc1::parse(1 << 6), Err(ResourceError::ReservedBits { word: "PGM_RSRC1", bits: 1 << 6 }));
    assert_eq!(lds_field(65537).is_err(), lds_field(65536).is_ok());
    assert!(vgpr_field(0, WaveSize::Wave32).is_err());
    assert!(vgpr_field(257, WaveSize::Wave32).is_err());
}

/// Fields of several bits, at the positions of instruction set reference §10.
#[test]
fn fields_are_where_the_reference_has_them() {
    use DenormalMode::{FlushInputs, FlushInputsAndOutputs, FlushOutputs, Keep};
    use RoundMode::{NearestEven, TowardsNegative, TowardsPositive, TowardsZero};
    let rounds = [NearestEven, TowardsPositive, TowardsNegative, TowardsZero];
    let denormals = [FlushInputsAndOutputs, FlushOutputs, FlushInputs, Keep];
    for code in 0..4 {
        let (round, denormal) = (rounds[code as usize], denormals[code as usize]);
        let parsed = |shift: u32| Rsrc1::parse(code << shift).expect("no reserved bit");
        assert_eq!((parsed(12).round_f32, parsed(14).round_f16_f64), (round, round));
        assert_eq!((parsed(16).denormal_f32, parsed(18).denormal_f16_f64), (denormal, denormal));
        assert_eq!(parsed(10).priority, code);
    }
    let rsrc2 = Rsrc2::parse(0x7F << 24 | 0x1FF << 15 | 3 << 13 | 2 << 11 | 16 << 1).expect("legal");
    let expected = Rsrc2 {
        user_sgprs: 16,
        workgroup_id: [false; 3],
        work_item_components: 2,
        exceptions_high: 3,
        lds_blocks: 0x1FF,
        exceptions: 0x7F,
        ..Rsrc2::parse(0).expect("legal")
    };
    assert_eq!(rsrc2, expected);
    let expected = Rsrc3 {
        shared_vgpr_blocks: 15,
        instruction_prefetch: 255,
        group_launch_guarantee: true,
        image_operations: true,
    };
    assert_eq!(Rsrc3::parse(0x8000_2FFF), Ok(expected));
    let guarantee = Rsrc3 { group_launch_guarantee: true, ..Rsrc3::parse(0).expect("legal") };
    assert_eq!(Rsrc3::parse(1 << 13), Ok(guarantee));
}

/// Lines of 128 bytes in a field of eight bits (hardware reference §5.2).
#[test]
fn as_much_code_is_prefetched_as_eight_bits_can_say() {
    let longest = 255 * 128;
    for (bytes, lines) in
        [(0, 0), (1, 1), (128, 1), (129, 2), (longest, 255), (longest + 1, 255), (u32::MAX, 255)]
    {
        assert_eq!(instruction_prefetch_field(bytes), lines, "{bytes} bytes");
    }
}

/// A register of a wave64 is twice as wide: 768 rows, in twelves (hardware reference §7).
#[test]
fn a_wave64_has_half_of_the_rows() {
    for (vgprs, waves) in
        [(1, 16), (48, 16), (49, 12), (60, 12), (61, 10), (84, 9), (96, 8), (192, 4), (256, 2)]
    {
        assert_eq!(waves_per_simd(vgprs, WaveSize::Wave64), waves, "{vgprs} VGPRs");
    }
}

/// The thresholds of instruction set reference §2.
#[test]
fn occupancy_thresholds() {
    let expected =
        [(96, 16), (97, 12), (120, 12), (144, 10), (168, 9), (192, 8), (216, 7), (240, 6), (256, 5)];
    for (vgprs, waves) in expected {
        assert_eq!(waves_per_simd(vgprs, WaveSize::Wave32), waves, "{vgprs} VGPRs");
    }
    assert_eq!(waves_per_simd(1, WaveSize::Wave32), 16);
    let needs =
        GroupNeeds { wave_size: WaveSize::Wave32, vgprs: 96, lds_bytes: 16 * 1024 + 1, work_items: 128 };
    let occupancy = needs.occupancy().expect("legal");
    assert_eq!(occupancy, Occupancy { waves_per_simd: 16, waves_per_group: 4, groups_per_cu: 3 });
    let without_lds = GroupNeeds { lds_bytes: 0, ..needs };
    assert_eq!(without_lds.occupancy().expect("legal").groups_per_cu, 8);
    let items = |work_items| GroupNeeds { work_items, ..needs }.occupancy();
    let beyond = ResourceError::FieldTooLarge { field: "work-items", value: 1025, max: 1024 };
    assert_eq!((items(1025), items(0)), (Err(beyond), Err(ResourceError::FieldZero { field: "work-items" })));
    assert_eq!(items(1024).expect("legal").waves_per_group, 32);
    assert_eq!(items(1).expect("legal").waves_per_group, 1);
}

proptest! {
    /// Any value in the defined bits survives; RSRC2 has counts whose range is smaller than their bits allow.
    #[test]
    fn words_survive_parsing(word: u32) {
        let words = [word & !0x1800_03C0, word, word & !0x7FFF_D000];
        prop_assert_eq!(Rsrc1::parse(words[0]).and_then(|parsed| parsed.word()), Ok(words[0]));
        prop_assert_eq!(Rsrc3::parse(words[2]).and_then(|parsed| parsed.word()), Ok(words[2]));
        match Rsrc2::parse(words[1]) {
            Ok(parsed) => prop_assert_eq!(parsed.word(), Ok(word)),
            Err(_) => prop_assert!(word >> 1 & 0x1F > 16 || word >> 11 & 3 > 2),
        }
    }

    #[test]
    fn reserved_bits_are_told(word: u32) {
        for (parsed, name, bits) in [
            (Rsrc1::parse(word).map(|_| ()), "PGM_RSRC1", word & 0x1800_03C0),
            (Rsrc3::parse(word).map(|_| ()), "PGM_RSRC3", word & 0x7FFF_D000),
        ] {
            let expected = match bits {
                0 => Ok(()),
                bits => Err(ResourceError::ReservedBits { word: name, bits }),
            };
            prop_assert_eq!(parsed, expected);
        }
    }

    #[test]
    fn vgpr_field_covers_the_request(vgprs in 1u32..=256) {
        let blocks = vgpr_field(vgprs, WaveSize::Wave32).expect("in range");
        let rsrc1 = Rsrc1 { vgpr_blocks_minus_one: blocks, ..Rsrc1::default() };
        let granted = rsrc1.vgprs(WaveSize::Wave32);
        prop_assert!(granted >= vgprs && granted < vgprs + 8);
    }
}
