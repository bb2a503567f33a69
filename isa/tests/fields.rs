//! The decoded form, field by field, for encodings assembled with llvm-mc 19 and read by the reference's tables.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use proptest::prelude::*;
use zrt_isa::Operand::{Inline, Literal, None, Scalar, Special, Vector};
use zrt_isa::decode::Reason;
use zrt_isa::opcode::{DataType, OPCODES, Properties, RegisterFile};
use zrt_isa::{DecodeError, Encoding, Instruction, LaneSelect, Opcode, decode};

fn check(words: &[u32]) -> Instruction {
    let instruction = decode(words).unwrap();
    assert_eq!(instruction.dword_count as usize, words.len());
    instruction
}

#[test]
fn scalar_memory_has_base_offset_and_immediate() {
    // s_load_b128 s[4:7], s[0:1], 0x0
    let load = check(&[0xf400_4100, 0xf800_0000]);
    assert_eq!((load.opcode, load.encoding), (Opcode::SLoadB128, Encoding::Smem));
    assert_eq!((load.destination, load.sources), (Scalar(4), [Scalar(0), Scalar(124), None]));
    // s_load_b512 s[16:31], s[2:3], s5 offset:-0x8
    let load = check(&[0xf400_8401, 0x0aff_fff8]);
    assert_eq!((load.sources, load.immediate), ([Scalar(2), Scalar(5), None], -8));
    // s_prefetch_data s[2:3], 0x100, s4, 7
    let prefetch = check(&[0xf404_c1c1, 0x0800_0100]);
    assert_eq!((prefetch.destination, prefetch.sources), (None, [Scalar(2), Scalar(4), Inline(135)]));
}

#[test]
fn global_address_depends_on_the_scalar_base() {
    // global_load_b32 v1, v0, s[4:5]
    let load = check(&[0xee05_0004, 0x0000_0001, 0x0000_0000]);
    assert_eq!((load.destination, load.sources), (Vector(1), [Vector(0), None, Scalar(4)]));
    // global_store_b32 v[0:1], v2, off th:TH_STORE_BYPASS scope:SCOPE_SYS
    let store = check(&[0xee06_807c, 0x013c_0000, 0x0000_0000]);
    assert_eq!((store.destination, store.sources), (None, [Vector(0), Vector(2), None]));
    assert_eq!((store.scope, store.temporal_hint), (3, 3));
    // Atomics have a destination only if the hint requests the old value.
    let atomic = check(&[0xee0d_4002, 0x0088_0000, 0]);
    assert_eq!((atomic.opcode, atomic.destination, atomic.scope), (Opcode::GlobalAtomicAddU32, None, 2));
    assert!(atomic.opcode.operands().properties.contains(Properties::ATOMIC));
    let atomic = check(&[0xee0d_4002, 0x0098_0005, 0]);
    assert_eq!((atomic.destination, atomic.sources), (Vector(5), [Vector(0), Vector(1), Scalar(2)]));
}

/// Scratch says in the word whether it has a vector offset.
#[test]
fn scratch_addresses_have_a_flag_and_global_ones_none() {
    // scratch_load_b32 v1, v2, s4; scratch_load_b32 v1, off, s4; global_load_b32 v1, v0, s[4:5]
    let load = |words: [u32; 3]| {
        let load = check(&words);
        (load.address_flags, load.sources[0])
    };
    assert_eq!(load([0xed05_0004, 0x0002_0001, 2]), (1, Vector(2)));
    assert_eq!(load([0xed05_0004, 0x0000_0001, 2]), (0, None));
    assert_eq!(load([0xee05_0004, 0x0000_0001, 0]), (0, Vector(0)));
}

#[test]
fn carry_and_select_name_vcc() {
    // v_add_co_ci_u32_e32 v5, vcc_lo, v1, v2, vcc_lo
    let add = check(&[0x400a_0501]);
    assert_eq!((add.destination, add.destination2), (Vector(5), Scalar(106)));
    assert_eq!(add.sources, [Vector(1), Vector(2), Scalar(106)]);
    // v_cmp_lt_f32_e32 vcc_lo, s0, v1; v_cmpx_eq_u32_e32 v1, v2
    assert_eq!(check(&[0x7c22_0200]).destination, Scalar(106));
    assert_eq!(check(&[0x7d94_0501]).destination, Scalar(126));
}

#[test]
fn fused_constants_stand_where_the_assembler_has_them() {
    // v_fmaak_f32 v0, v1, v2, 0x3f800000; v_fmamk_f32 v0, s1, 0xff, v2
    assert_eq!(check(&[0x5a00_0501, 0x3f80_0000]).sources, [Vector(1), Vector(2), Literal(0x3f80_0000)]);
    assert_eq!(check(&[0x5800_0401, 0xff]).sources, [Scalar(1), Literal(0xff), Vector(2)]);
    // v_add_f32_e32 v0, 0x12345678, v1: one literal, last.
    assert_eq!(check(&[0x0600_02ff, 0x1234_5678]).sources, [Literal(0x1234_5678), Vector(1), None]);
    // s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 4), 0xff
    let set = check(&[0xb980_1901, 0xff]);
    assert_eq!((set.sources[0], set.immediate), (Literal(0xff), 0x1901));
}

#[test]
fn halves_come_from_register_numbers_in_short_encodings() {
    // v_add_f16_e32 v1.h, v2.l, v3.h: bit 7 of vdst and vsrc1.
    let add = check(&[50 << 25 | 0x81 << 17 | 0x83 << 9 | 0x102]);
    assert_eq!((add.destination, add.sources), (Vector(1), [Vector(2), Vector(3), None]));
    assert_eq!(add.modifiers.op_sel, 0b1010);
    assert_eq!(add.to_string(), "v_add_f16_e32 v1.h, v2.l, v3.h");
    // A 32-bit operand keeps all its bits.
    assert_eq!(check(&[3 << 25 | 0x81 << 17 | 0x83 << 9 | 0x1ff]).sources, [Vector(255), Vector(131), None]);
    // v_cvt_f32_f16_e32 v200, v1.h: only the source is a half.
    let convert = check(&[0x7e00_0000 | 200 << 17 | 11 << 9 | 0x181]);
    assert_eq!((convert.destination, convert.sources[0]), (Vector(200), Vector(1)));
    assert_eq!(convert.modifiers.op_sel, 0b0001);
}

/// Encodings of llvm-mc 22 with `real-true16`.
#[test]
fn halves_are_moved_exchanged_and_selected() {
    let cases: [(&[u32], u8, &str); 5] = [
        (&[0x7e00_3981], 0b0001, "v_mov_b16_e32 v0.l, v1.h"),
        (&[0xd59c_4000, 0x0000_0101], 0b1000, "v_mov_b16_e64 v0, v1 op_sel:[0,1]"),
        (&[0xd59c_40c8, 0x0000_00ff, 0x1234], 0b1000, "v_mov_b16_e64 v200, 0x1234 op_sel:[0,1]"),
        (&[0x7e00_cd81], 0b0001, "v_swap_b16 v0.l, v1.h"),
        (&[0xd65d_5000, 0x000e_0501], 0b1010, "v_cndmask_b16 v0, v1, v2, s3 op_sel:[0,1,0,1]"),
    ];
    for (words, op_sel, text) in cases {
        let instruction = check(words);
        assert_eq!((instruction.modifiers.op_sel, instruction.to_string().as_str()), (op_sel, text));
    }
}

#[test]
fn the_half_of_a_multiplicand_follows_it() {
    // v_fmamk_f16 v1.h, v2.l, 0x1234, v3.h: vsrc1 is the addend.
    let fused = check(&[55 << 25 | 0x81 << 17 | 0x83 << 9 | 0x102, 0x1234]);
    assert_eq!((fused.opcode, fused.destination), (Opcode::VFmamkF16, Vector(1)));
    assert_eq!(fused.sources, [Vector(2), Literal(0x1234), Vector(3)]);
    assert_eq!(fused.modifiers.op_sel, 0b1100);
    // v_fmamk_f16 v1.l, v2.h, 0x1234, v3.l
    let fused = check(&[55 << 25 | 1 << 17 | 3 << 9 | 0x182, 0x1234]);
    assert_eq!(fused.modifiers.op_sel, 0b0001);
}

/// VINTERP, VIMAGE, VSAMPLE and VEXPORT have a length and a number; their registers are not decoded.
#[test]
fn graphics_have_a_length_and_a_number() {
    for (word, encoding, length, number) in [
        (0xcd00_0000 | 0x55 << 16, Encoding::Vinterp, 2, 0x55),
        (0b11_0100 << 26 | 0xa5 << 14, Encoding::Vimage, 3, 0xa5),
        (0b11_1001 << 26 | 0x3c << 14, Encoding::Vsample, 3, 0x3c),
        (0b11_1110 << 26 | 0x2a << 4, Encoding::Vexport, 2, 0x2a),
    ] {
        let instruction = check(&[word, u32::MAX, u32::MAX][..length]);
        assert_eq!((instruction.encoding, instruction.immediate), (encoding, number));
        let name = instruction.opcode.mnemonic();
        assert_eq!(instruction.to_string(), format!("{name} {number}"));
    }
}

#[test]
fn sources_of_other_chips_are_no_operands() {
    // s_mov_b32 s0, src_pops_exiting_wave_id; v_mov_b32 v0, src_lds_direct; s_barrier_signal src_lds_direct
    let like_llvm = |word| zrt_isa::decode_like_llvm(&[word], zrt_isa::resources::WaveSize::Wave32);
    for word in [0xbe80_00ef, 0x7e00_02fe, 0xbe80_4efe] {
        assert!(matches!(decode(&[word]), Err(DecodeError::Unknown { .. })), "{word:#x}");
        assert_eq!(like_llvm(word).unwrap().sources[0], Special(word as u8), "{word:#x}");
    }
    // s_mov_b32 s0, src_lds_direct: of the scalar operations, llvm-mc reads it in those of a barrier alone.
    assert!(like_llvm(0xbe80_00fe).is_err());
}

#[test]
fn modifiers_of_long_encodings() {
    // v_rcp_f32_e64 v1, -|v2| clamp mul:2
    let rcp = check(&[0xd5aa_8101, 0x2800_0102]);
    let modifiers = rcp.modifiers;
    assert_eq!((modifiers.negate, modifiers.absolute, modifiers.clamp, modifiers.omod), (1, 1, true, 1));
    // v_pk_add_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]
    let add = check(&[0xcc0f_0800, 0x1002_0501]);
    assert_eq!((add.modifiers.op_sel, add.modifiers.op_sel_hi), (0b01, 0b10));
    // v_div_scale_f32 v0, vcc_lo, v1, v2, v3
    let scale = check(&[0xd6fc_6a00, 0x040e_0501]);
    assert_eq!((scale.encoding, scale.destination2), (Encoding::Vop3sd, Scalar(106)));
    // v_cmp_lt_f32_e64 s5, |v0|, -v1 clamp
    let compare = check(&[0xd411_8105, 0x4002_0300]);
    assert_eq!((compare.destination, compare.modifiers.negate), (Scalar(5), 0b10));
    // v_mov_b32_e64 v1, src_scc
    assert_eq!(check(&[0xd581_0001, 0xfd]).sources[0], Special(253));
}

/// The codes of instruction set reference §2: integers, then floats.
#[test]
fn inline_constants_are_integers_or_floats() {
    let integers = [(128, 0), (129, 1), (192, 64), (193, -1), (208, -16)];
    for (code, number) in integers {
        assert_eq!(Inline(code).inline_integer(), Some(number), "{code}");
    }
    for other in [Inline(127), Inline(209), Inline(240), Inline(248), Scalar(128), Literal(1), Vector(130)] {
        assert_eq!(other.inline_integer(), Option::None, "{other:?}");
    }
}

/// An instruction that was not decoded may have any code. No number stands for one that is no constant.
#[test]
fn codes_that_are_no_constants_print_as_unknown() {
    let mut load = check(&[0x7e02_02f8]);
    assert_eq!(load.to_string(), "v_mov_b32_e32 v1, 0.15915494");
    for code in (0..128).chain(209..240).chain(249..=255) {
        load.sources[0] = Inline(code);
        assert_eq!(load.to_string(), "v_mov_b32_e32 v1, src_unknown", "{code}");
    }
}

#[test]
fn lane_selects() {
    // v_mov_b32_dpp v1, v2 row_shr:1 row_mask:0xa bank_mask:0xf bound_ctrl:1
    let lanes = LaneSelect::Dpp16 {
        control: 0x111,
        fetch_inactive: false,
        bound_control: true,
        bank_mask: 15,
        row_mask: 10,
    };
    let shift = check(&[0x7e02_02fa, 0xaf09_1102]);
    assert_eq!((shift.lanes, shift.sources[0]), (lanes, Vector(2)));
    // v_mov_b32_dpp v1, v2 dpp8:[7,6,5,4,3,2,1,0] fi:1
    let reverse = check(&[0x7e02_02ea, 0x0539_7702]);
    assert_eq!(reverse.lanes, LaneSelect::Dpp8 { selectors: 0x05_3977, fetch_inactive: true });
}

/// The exponent of v_ldexp_f16 is an integer: its modifier bits may be set and do nothing.
#[test]
fn lane_selects_negate_floats_and_no_exponent() {
    // v_ldexp_f16_dpp v1, v2, v3 row_shr:1 row_mask:0xf bank_mask:0xf, with neg and abs of each source.
    for (bits, negate, absolute) in
        [(0, 0, 0), (1 << 20, 1, 0), (1 << 21, 0, 1), (1 << 22, 0, 0), (1 << 23, 0, 0), (0xf << 20, 1, 1)]
    {
        let scaled = check(&[0x7602_06fa, 0xff01_1102 | bits]);
        assert_eq!(scaled.opcode, Opcode::VLdexpF16);
        assert_eq!((scaled.modifiers.negate, scaled.modifiers.absolute), (negate, absolute), "{bits:#x}");
    }
}

/// Operands that are integers have no modifiers at all.
#[test]
fn lane_selects_negate_no_integers() {
    // v_cmp_lt_i16_dpp vcc_lo, v2, v8 row_shr:1 row_mask:0xf bank_mask:0xf
    assert_eq!(check(&[0x7c62_10fa, 0xff01_1102]).opcode, Opcode::VCmpLtI16);
    for bit in 20..24 {
        let refused = decode(&[0x7c62_10fa, 0xff01_1102 | 1 << bit]);
        assert!(matches!(refused, Err(DecodeError::Unknown { reason: Reason::Modifier, .. })), "{bit}");
    }
}

#[test]
fn dual_operations() {
    // v_dual_fmaak_f32 v0, s1, v2, 0x40490fdb :: v_dual_mov_b32 v1, 0x40490fdb
    let pair = check(&[0xc850_0401, 0x0000_00ff, 0x4049_0fdb]);
    let second = pair.dual.unwrap();
    assert_eq!((pair.opcode, second.opcode), (Opcode::VFmaakF32, Opcode::VMovB32));
    assert_eq!((pair.destination, second.destination), (Vector(0), Vector(1)));
    assert_eq!(pair.sources, [Scalar(1), Vector(2), Literal(0x4049_0fdb)]);
    assert_eq!(second.sources, [Literal(0x4049_0fdb), None, None]);
}

#[test]
fn buffer_flags() {
    // tbuffer_load_format_x v0, v1, s[4:7], s8 format:[BUF_FMT_32_FLOAT] idxen
    let load = check(&[0xc420_0008, 0x8b00_0800, 0x0000_0001]);
    assert_eq!((load.address_flags, load.soffset), (22 << 8 | 2, Scalar(8)));
    assert_eq!(load.sources, [Vector(1), None, Scalar(4)]);
    // buffer_atomic_add_u32 v1, v2, s[4:7], s8 idxen, which returns the old value only if its hint has bit 0.
    let destination = |hint: u32| check(&[0xc40d_4008, 0x8080_0801 | hint << 20, 2]).destination;
    assert_eq!([0, 1, 2, 3].map(destination), [None, Vector(1), None, Vector(1)]);
    // A load returns a value whatever its hint.
    assert_eq!(check(&[0xc405_0008, 0x8080_0801, 2]).destination, Vector(1));
}

#[test]
fn types_of_operands() {
    let kinds = |opcode: Opcode| opcode.operands().sources.map(|kind| kind.data);
    assert_eq!(kinds(Opcode::VLdexpF64), [DataType::F64, DataType::I32, DataType::Absent]);
    assert_eq!(kinds(Opcode::VMadCoU64U32), [DataType::U32, DataType::U32, DataType::U64]);
    assert_eq!(kinds(Opcode::VCndmaskB32), [DataType::B32, DataType::B32, DataType::Mask]);
    assert_eq!(Opcode::VCvtF64I32.operands().destination.bits(), 64);
    assert_eq!(Opcode::DsLoadB128.operands().destination.bits(), 128);
    assert_eq!(Opcode::VReadlaneB32.operands().destination.file, RegisterFile::Scalar);
    assert_eq!(Opcode::VReadlaneB32.operands().sources[0].file, RegisterFile::Vector);
    assert!(Opcode::VFmacF32.operands().properties.contains(Properties::ACCUMULATES));
    assert_eq!(Opcode::VWmmaF3216x16x16F16.mnemonic(), "v_wmma_f32_16x16x16_f16");
}

/// The variant's name is the mnemonic in camel case: other crates rely on this rule.
#[test]
fn names_follow_mnemonics() {
    for opcode in OPCODES {
        let camel: String =
            opcode.mnemonic().split('_').map(|part| part[..1].to_uppercase() + &part[1..]).collect();
        assert_eq!(format!("{opcode:?}"), camel);
    }
}

#[test]
fn no_two_operations_share_a_number() {
    let mut seen = std::collections::HashSet::new();
    for opcode in OPCODES {
        assert!(seen.insert((opcode.encoding(), opcode.number())), "{opcode:?}");
    }
}

#[test]
fn errors_say_what_and_where() {
    let error = decode(&[]).unwrap_err();
    assert_eq!(error, DecodeError::Truncated { needed: 1, available: 0 });
    let error = decode(&[0xe000_0000]).unwrap_err();
    assert_eq!(error.to_string(), "0xe0000000 begins no gfx1201 instruction: no encoding class");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20_000))]

    /// Any words: no panic, a length of at most four available dwords, and text.
    #[test]
    fn arbitrary_words_do_no_harm(words in proptest::collection::vec(any::<u32>(), 0..6)) {
        if let Ok(instruction) = decode(&words) {
            prop_assert!((1..=4.min(words.len())).contains(&(instruction.dword_count as usize)));
            prop_assert!(!instruction.to_string().is_empty());
        }
    }

    /// The same with the leading bits of classes that random words rarely hit.
    #[test]
    fn arbitrary_fields_do_no_harm(class in 0_u32..64, mut words in proptest::collection::vec(any::<u32>(), 1..6)) {
        words[0] = words[0] & 0x03ff_ffff | class << 26;
        if let Ok(instruction) = decode(&words) {
            prop_assert!((1..=4.min(words.len())).contains(&(instruction.dword_count as usize)));
            prop_assert!(!instruction.to_string().is_empty());
        }
    }
}
