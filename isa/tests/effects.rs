//! Registers that instructions read and write, in cases that the words do not show plainly. Words are llvm-mc 19's
//! for the text next to them.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use zrt_isa::decode_for;
use zrt_isa::effects::{Counter, Effects, Part, Registers, Role};
use zrt_isa::resources::WaveSize;

fn effects(wave_size: WaveSize, words: &[u32]) -> Effects {
    let instruction = decode_for(words, wave_size).unwrap();
    assert_eq!(usize::from(instruction.dword_count), words.len());
    Effects::of(&instruction, wave_size)
}

fn names(registers: &[Registers]) -> String {
    registers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
}

fn read_names(effects: &Effects) -> String {
    names(&effects.reads.iter().map(|read| read.registers).collect::<Vec<_>>())
}

/// What the words read and write in wave32.
fn compare(reads: &str, writes: &str, words: &[u32]) {
    let effects = effects(WaveSize::Wave32, words);
    assert_eq!(
        (read_names(&effects).as_str(), names(&effects.writes).as_str()),
        (reads, writes),
        "{words:x?}"
    );
}

#[test]
fn lanes_to_scalars_and_back() {
    compare(
        "v1 s2",
        "s4",
        &[
            0xd7600004, 0x00000501, // v_readlane_b32 s4, v1, s2
        ],
    );
    compare(
        "s4 m0",
        "v1",
        &[
            0xd7610001, 0x0000fa04, // v_writelane_b32 v1, s4, m0
        ],
    );
    compare(
        "v1",
        "vcc_lo",
        &[
            0x7ed40501, // v_readfirstlane_b32 vcc_lo, v1
        ],
    );
    compare(
        "v1 v2",
        "v2 v1",
        &[
            0x7e04cb01, // v_swap_b32 v2, v1
        ],
    );
}

#[test]
fn two_addresses_of_lds() {
    compare(
        "v0",
        "v[2:5]",
        &[
            0xd9dc0100, 0x02000000, // ds_load_2addr_b64 v[2:5], v0 offset1:1
        ],
    );
    compare(
        "v0 v[2:3] v[4:5]",
        "LDS",
        &[
            0xd9380100, 0x00040200, // ds_store_2addr_b64 v0, v[2:3], v[4:5] offset1:1
        ],
    );
    compare(
        "v0 v2 v3",
        "v[4:5] LDS",
        &[
            0xd8b80100, 0x04030200, // ds_storexchg_2addr_rtn_b32 v[4:5], v0, v2, v3 offset1:1
        ],
    );
    compare(
        "m0",
        "v1",
        &[
            0xdac40000, 0x01000000, // ds_load_addtid_b32 v1
        ],
    );
}

#[test]
fn widths_of_memory() {
    compare(
        "s[0:1]",
        "s[4:6]",
        &[
            0xf400a100, 0xf8000000, // s_load_b96 s[4:6], s[0:1], 0x0
        ],
    );
    compare(
        "s[0:3] s8",
        "s[16:31]",
        &[
            0xf4028400, 0x10000000, // s_buffer_load_b512 s[16:31], s[0:3], s8 offset:0x0
        ],
    );
    compare(
        "v0 s[8:11] s4",
        "v[2:3]",
        &[
            0xc4450004, 0x40801002, 0x00000000, // buffer_load_b32 v[2:3], v0, s[8:11], s4 offen tfe
        ],
    );
    compare(
        "v[0:1] s[8:11]",
        "v[2:3]",
        &[
            0xc405407c, 0xc0801002,
            0x00000000, // buffer_load_b64 v[2:3], v[0:1], s[8:11], null idxen offen
        ],
    );
    compare(
        "v0 s[4:5]",
        "v[2:5]",
        &[
            0xee05c004, 0x00000002, 0x00000000, // global_load_b128 v[2:5], v0, s[4:5]
        ],
    );
    compare(
        "v[0:1] v[2:3]",
        "v4",
        &[
            0xee0d007c, 0x01100004,
            0x00000000, // global_atomic_cmpswap_b32 v4, v[0:1], v[2:3], off th:TH_ATOMIC_RETURN
        ],
    );
}

/// Implicit: the condition code, vcc, m0.
#[test]
fn what_no_operand_says() {
    compare(
        "s1 s2",
        "s0",
        &[
            0x96000201, // s_mul_i32 s0, s1, s2
        ],
    );
    compare(
        "s1 s2",
        "s0",
        &[
            0xa0000201, // s_add_f32 s0, s1, s2
        ],
    );
    compare(
        "s1 s2",
        "s0 scc",
        &[
            0x89000201, // s_min_i32 s0, s1, s2
        ],
    );
    compare(
        "s0",
        "s0",
        &[
            0xb8000007, // s_mulk_i32 s0, 0x7
        ],
    );
    compare(
        "s0",
        "s0 scc",
        &[
            0xb7800007, // s_addk_co_i32 s0, 0x7
        ],
    );
    compare(
        "s1",
        "s0",
        &[
            0xbe800401, // s_brev_b32 s0, s1
        ],
    );
    compare(
        "s1",
        "s0 scc",
        &[
            0xbe801e01, // s_not_b32 s0, s1
        ],
    );
    compare(
        "s1",
        "s0 scc",
        &[
            0xbe802001, // s_and_saveexec_b32 s0, s1
        ],
    );
    compare(
        "s1 s2 scc",
        "s0",
        &[
            0x98000201, // s_cselect_b32 s0, s1, s2
        ],
    );
    compare(
        "s1 s2 scc",
        "s0 scc",
        &[
            0x82000201, // s_add_co_ci_u32 s0, s1, s2
        ],
    );
    compare(
        "v1 v2 v3 vcc_lo",
        "v0",
        &[
            0xd6370000, 0x040e0501, // v_div_fmas_f32 v0, v1, v2, v3
        ],
    );
    compare(
        "",
        "s0",
        &[
            0xb880f801, // s_getreg_b32 s0, hwreg(HW_REG_MODE)
        ],
    );
    compare(
        "m0",
        "",
        &[
            0xbfb60001, // s_sendmsg sendmsg(MSG_INTERRUPT)
        ],
    );
    compare(
        "",
        "",
        &[
            0xbfb60003, // s_sendmsg sendmsg(MSG_DEALLOC_VGPRS)
        ],
    );
    compare(
        "v0 v1 v2",
        "v2",
        &[
            0x56040300, // v_fmac_f32_e32 v2, v0, v1
        ],
    );
    compare(
        "v1 v2 v3 v4 vcc_lo",
        "v0 v5",
        &[
            0xc8d20501, 0x00040903, // v_dual_mul_f32 v0, v1, v2 :: v_dual_cndmask_b32 v5, v3, v4
        ],
    );
    // A sparse product adds to its destination, which is none of its sources.
    compare(
        "v[0:3] v[8:15] v4 v[16:19]",
        "v[16:19]",
        &[
            0xcc524010, 0x1c121100, // v_swmmac_f16_16x16x32_f16 v[16:19], v[0:3], v[8:15], v4
        ],
    );
    compare(
        "vcc_lo",
        "s0",
        &[
            0xbe8000fb, // s_mov_b32 s0, src_vccz, which llvm-mc does not assemble
        ],
    );
    compare(
        "scc",
        "s0",
        &[
            0xbe8000fd, // s_mov_b32 s0, src_scc
        ],
    );
}

/// The target of a flat store or atomic may be in LDS.
#[test]
fn flat_stores_may_write_lds() {
    compare(
        "v[0:1] v2",
        "LDS",
        &[
            0xec06807c, 0x01000000, 0x00000000, // flat_store_b32 v[0:1], v2
        ],
    );
    compare(
        "v[0:1] v2",
        "v3 LDS",
        &[
            0xec0d407c, 0x01100003, 0x00000000, // flat_atomic_add_u32 v3, v[0:1], v2 th:TH_ATOMIC_RETURN
        ],
    );
    compare(
        "v[0:1]",
        "v2",
        &[
            0xec05007c, 0x00000002, 0x00000000, // flat_load_b32 v2, v[0:1]
        ],
    );
    compare(
        "v0 v2 s[6:7]",
        "",
        &[
            0xee068006, 0x01000000, 0x00000000, // global_store_b32 v0, v2, s[6:7]
        ],
    );
}

/// Every file, and every register with a name of its own.
#[test]
fn registers_by_their_names() {
    for (first, count, name) in [
        (0, 1, "s0"),
        (104, 2, "s[104:105]"),
        (106, 1, "vcc_lo"),
        (107, 1, "vcc_hi"),
        (106, 2, "vcc"),
        (108, 1, "ttmp0"),
        (117, 1, "ttmp9"),
        (122, 2, "ttmp[14:15]"),
        (123, 1, "ttmp15"),
        (125, 1, "m0"),
        (128, 1, "v0"),
        (128 + 252, 4, "v[252:255]"),
        (128 + 256, 1, "scc"),
        (128 + 257, 1, "LDS"),
    ] {
        assert_eq!(Registers::new(first, count).to_string(), name);
    }
}

#[test]
fn what_registers_are_read_for() {
    use Role::{Control, Data, Value};
    let roles = |words: &[u32]| {
        let effects = effects(WaveSize::Wave32, words);
        effects.reads.iter().map(|read| (read.registers.to_string(), read.role)).collect::<Vec<_>>()
    };
    let expected = |roles: &[(&str, Role)]| {
        roles.iter().map(|(name, role)| (name.to_string(), *role)).collect::<Vec<_>>()
    };
    // global_store_b64 v0, v[1:2], s[0:1]
    assert_eq!(
        roles(&[0xee06c000, 0x00800000, 0x00000000]),
        expected(&[("v0", Control), ("v[1:2]", Data), ("s[0:1]", Control)])
    );
    // v_readlane_b32 s4, v1, s2
    assert_eq!(roles(&[0xd7600004, 0x00000501]), expected(&[("v1", Value), ("s2", Control)]));
    // s_cbranch_scc1 1
    assert_eq!(roles(&[0xbfa20001]), expected(&[("scc", Control)]));
    // s_add_co_u32 s2, s0, s1
    assert_eq!(roles(&[0x80020100]), expected(&[("s0", Value), ("s1", Value)]));
    // s_setpc_b64 s[0:1]
    assert_eq!(roles(&[0xbe804800]), expected(&[("s[0:1]", Control)]));
    // ds_bpermute_b32 v1, v2, v3
    assert_eq!(roles(&[0xdacc0000, 0x01000302]), expected(&[("v2", Control), ("v3", Value)]));
    // ds_swizzle_b32 v1, v2
    assert_eq!(roles(&[0xd8d40000, 0x01000002]), expected(&[("v2", Value)]));
    // v_writelane_b32 v1, s4, s5
    assert_eq!(roles(&[0xd7610001, 0x00000a04]), expected(&[("s4", Value), ("s5", Control)]));
    // v_add_f32_e64 v1, v2, v3
    assert_eq!(roles(&[0xd5030001, 0x00020702]), expected(&[("v2", Value), ("v3", Value)]));
    // ds_store_b32 v0, v1
    assert_eq!(roles(&[0xd8340000, 0x00000100]), expected(&[("v0", Control), ("v1", Data)]));
    // s_load_b64 s[4:5], s[0:1], 0x0
    assert_eq!(roles(&[0xf4002100, 0xf8000000]), expected(&[("s[0:1]", Control)]));
    // s_setreg_b32 hwreg(HW_REG_MODE), s2
    assert_eq!(roles(&[0xb902f801]), expected(&[("s2", Control)]));
}

#[test]
fn wave64_masks_and_matrices() {
    let of = |words: &[u32]| {
        let effects = effects(WaveSize::Wave64, words);
        (read_names(&effects), names(&effects.writes))
    };
    // v_cmp_eq_u32_e64 s[4:5], v0, v1
    assert_eq!(of(&[0xd44a0004, 0x00020300]), ("v0 v1".into(), "s[4:5]".into()));
    // s_cbranch_vccz 0
    assert_eq!(of(&[0xbfa30000]), ("vcc".into(), String::new()));
    // s_mov_b32 s0, src_vccz
    assert_eq!(of(&[0xbe8000fb]), ("vcc".into(), "s0".into()));
    // v_wmma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]
    assert_eq!(of(&[0xcc404008, 0x1c120500]), ("v[0:1] v[2:3] v[4:7]".into(), "v[8:11]".into()));
}

/// A register that m0 selects does not count as a read or write of the base register.
#[test]
fn relative_moves() {
    let of = |words: &[u32]| {
        let effects = effects(WaveSize::Wave32, words);
        let relative = effects.relative.unwrap();
        let [source, destination] = [relative.source, relative.destination]
            .map(|registers| registers.map(|registers| registers.to_string()).unwrap_or_default());
        (read_names(&effects), names(&effects.writes), source, destination, relative.is_split)
    };
    let expect = |reads: &str, writes: &str, source: &str, destination: &str, is_split| {
        (reads.to_string(), writes.to_string(), source.to_string(), destination.to_string(), is_split)
    };
    assert_eq!(
        of(&[
            0x7e048701, // v_movrels_b32_e32 v2, v1
        ]),
        expect("m0", "v2", "v1", "", false)
    );
    assert_eq!(
        of(&[
            0x7e048401, // v_movreld_b32_e32 v2, s1
        ]),
        expect("s1 m0", "", "", "v2", false)
    );
    assert_eq!(
        of(&[
            0x7e049101, // v_movrelsd_2_b32_e32 v2, v1
        ]),
        expect("m0", "", "v1", "v2", true)
    );
    assert_eq!(
        of(&[
            0xbe824104, // s_movrels_b64 s[2:3], s[4:5]
        ]),
        expect("m0", "s[2:3]", "s[4:5]", "", false)
    );
    // v_swaprel_b32 v2, v1; v_movrelsd_b32 v2, v1; v_movrelsd_2_b32 v2, v1; v_movreld_b32 v2, s1
    let exchanges =
        [0x7e04d101, 0x7e048901, 0x7e049101, 0x7e048401].map(|word| effects(WaveSize::Wave32, &[word]));
    let exchanges = exchanges.map(|effects| effects.relative.unwrap().exchanges);
    assert_eq!(exchanges, [true, false, false, false]);
}

#[test]
fn counters() {
    let of = |words: &[u32]| {
        let effects = effects(WaveSize::Wave32, words);
        (effects.counters.clone(), effects.is_store)
    };
    assert_eq!(
        of(&[
            0xee05007c, 0x00000002, 0x00000000, // global_load_b32 v2, v[0:1], off
        ]),
        (vec![Counter::Load], false)
    );
    assert_eq!(
        of(&[
            0xee06807c, 0x01000000, 0x00000000, // global_store_b32 v[0:1], v2, off
        ]),
        (vec![], true)
    );
    assert_eq!(
        of(&[
            0xee0d407c, 0x01000000, 0x00000000, // global_atomic_add_u32 v[0:1], v2, off
        ]),
        (vec![], true)
    );
    assert_eq!(
        of(&[
            0xee0ac07c, 0x00080000, 0x00000000, // global_inv scope:SCOPE_DEV
        ]),
        (vec![Counter::Load], false)
    );
    assert_eq!(
        of(&[
            0xee0b007c, 0x000c0000, 0x00000000, // global_wb scope:SCOPE_SYS
        ]),
        (vec![], true)
    );
    assert_eq!(
        of(&[
            0xec06807c, 0x01000000, 0x00000000, // flat_store_b32 v[0:1], v2
        ]),
        (vec![Counter::Ds], true)
    );
    assert_eq!(
        of(&[
            0xbfb60001, // s_sendmsg sendmsg(MSG_INTERRUPT)
        ]),
        (vec![Counter::Km], false)
    );
    assert_eq!(
        of(&[
            0xd8500000, 0x00000000, // ds_nop
        ]),
        (vec![], false)
    );
    for direct in [
        [0xce100001], // ds_direct_load v1
        [0xce000001], // ds_param_load v1, attr0.x
    ] {
        assert_eq!(of(&direct), (vec![Counter::Exp], false));
    }
    assert_eq!(
        of(&[
            0xf4002100, 0xf8000000, // s_load_b64 s[4:5], s[0:1], 0x0
        ]),
        (vec![Counter::Km], false)
    );
    // Without a result there is nothing to wait for.
    for quiet in [
        [0xf4042000, 0x00000000], // s_dcache_inv
        [0xf404c002, 0xf8000000], // s_prefetch_data s[4:5], 0x0, null, 0
    ] {
        assert_eq!(of(&quiet), (vec![], false));
    }
}

#[test]
fn which_half_of_its_data_an_access_moves() {
    use Part::{High, Low, Whole};
    let words: &[(Part, &[u32])] = &[
        (Whole, &[0xee050006, 0x00000002, 0x00000000]), // global_load_b32 v2, v0, s[6:7]
        (Whole, &[0xee040006, 0x00000002, 0x00000000]), // global_load_u8 v2, v0, s[6:7]
        (Whole, &[0xee048006, 0x00000002, 0x00000000]), // global_load_u16 v2, v0, s[6:7]
        (Low, &[0xee078006, 0x00000002, 0x00000000]),   // global_load_d16_u8 v2, v0, s[6:7]
        (High, &[0xee084006, 0x00000002, 0x00000000]),  // global_load_d16_hi_u8 v2, v0, s[6:7]
        (Low, &[0xee080006, 0x00000002, 0x00000000]),   // global_load_d16_b16 v2, v0, s[6:7]
        (High, &[0xee08c006, 0x00000002, 0x00000000]),  // global_load_d16_hi_b16 v2, v0, s[6:7]
        (High, &[0xed08c000, 0x00000002, 0x00000000]),  // scratch_load_d16_hi_b16 v2, off, s0
        (High, &[0xec08c07c, 0x00000002, 0x00000000]),  // flat_load_d16_hi_b16 v2, v[0:1]
        (Whole, &[0xee068006, 0x01000000, 0x00000000]), // global_store_b32 v0, v2, s[6:7]
        (Low, &[0xee060006, 0x01000000, 0x00000000]),   // global_store_b8 v0, v2, s[6:7]
        (Low, &[0xee064006, 0x01000000, 0x00000000]),   // global_store_b16 v0, v2, s[6:7]
        (High, &[0xee090006, 0x01000000, 0x00000000]),  // global_store_d16_hi_b8 v0, v2, s[6:7]
        (High, &[0xee094006, 0x01000000, 0x00000000]),  // global_store_d16_hi_b16 v0, v2, s[6:7]
        (Whole, &[0xd8d80000, 0x02000000]),             // ds_load_b32 v2, v0
        (Whole, &[0xd8f00000, 0x02000000]),             // ds_load_u16 v2, v0
        (Low, &[0xda880000, 0x02000000]),               // ds_load_u8_d16 v2, v0
        (High, &[0xda8c0000, 0x02000000]),              // ds_load_u8_d16_hi v2, v0
        (Whole, &[0xd8340000, 0x00000200]),             // ds_store_b32 v0, v2
        (Whole, &[0xd9340000, 0x00000200]),             // ds_store_b64 v0, v[2:3]
        (Low, &[0xd8780000, 0x00000200]),               // ds_store_b8 v0, v2
        (Low, &[0xd87c0000, 0x00000200]),               // ds_store_b16 v0, v2
        (High, &[0xda800000, 0x00000200]),              // ds_store_b8_d16_hi v0, v2
        (High, &[0xda840000, 0x00000200]),              // ds_store_b16_d16_hi v0, v2
        (Whole, &[0xc406807c, 0x00801002, 0x00000000]), // buffer_store_b32 v2, off, s[8:11], null
        (Low, &[0xc406007c, 0x00801002, 0x00000000]),   // buffer_store_b8 v2, off, s[8:11], null
        (Low, &[0xc408007c, 0x00801002, 0x00000000]),   // buffer_load_d16_b16 v2, off, s[8:11], null
        (Low, &[0xc408007c, 0x40801002, 0x00000000]),   // buffer_load_d16_b16 v2, v0, s[8:11], null offen
        (Low, &[0xc408007c, 0xc0801002, 0x00000000]), // buffer_load_d16_b16 v2, v[0:1], s[8:11], null idxen offen
        (High, &[0xc408c07c, 0x00801002, 0x00000000]), // buffer_load_d16_hi_b16 v2, off, s[8:11], null
        (Whole, &[0xc400007c, 0x00801002, 0x00000000]), // buffer_load_format_x v2, off, s[8:11], null
        (Low, &[0xc402007c, 0x00801002, 0x00000000]), // buffer_load_d16_format_x v2, off, s[8:11], null
        (High, &[0xc409807c, 0x00801002, 0x00000000]), // buffer_load_d16_hi_format_x v2, off, s[8:11], null
        (Low, &[0xc403007c, 0x00801002, 0x00000000]), // buffer_store_d16_format_x v2, off, s[8:11], null
        (High, &[0xc409c07c, 0x00801002, 0x00000000]), // buffer_store_d16_hi_format_x v2, off, s[8:11], null
        (Low, &[0xc422007c, 0x00801002, 0x00000000]), // tbuffer_load_d16_format_x v2, off, s[8:11], null
        // Two elements in each register.
        (Whole, &[0xc402407c, 0x00801002, 0x00000000]), // buffer_load_d16_format_xy v2, off, s[8:11], null
        (Whole, &[0xc402807c, 0x00801002, 0x00000000]), // buffer_load_d16_format_xyz v[2:3], off, s[8:11], null
        (Whole, &[0xc403c07c, 0x00801002, 0x00000000]), // buffer_store_d16_format_xyzw v[2:3], off, s[8:11], null
        (Whole, &[0xc422407c, 0x00801002, 0x00000000]), // tbuffer_load_d16_format_xy v2, off, s[8:11], null
        // The last register is a flag of 32 bits.
        (Whole, &[0xc448007c, 0x00801002, 0x00000000]), // buffer_load_d16_b16 v[2:3], off, s[8:11], null tfe
        (Whole, &[0xc448c07c, 0x00801002, 0x00000000]), // buffer_load_d16_hi_b16 v[2:3], off, s[8:11], null tfe
        // No access: arithmetic always concerns all of a register here.
        (Whole, &[0x7f043903]), // v_mov_b16_e32 v2.h, v3.l
    ];
    for (part, words) in words {
        assert_eq!(
            effects(WaveSize::Wave32, words).moved,
            *part,
            "{}",
            decode_for(words, WaveSize::Wave32).unwrap()
        );
    }
}
