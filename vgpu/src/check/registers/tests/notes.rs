//! What is noted of an instruction before it runs.

use super::*;
use crate::check::registers::note::{HazardClass, NO_WAIT};
use HazardClass::{Clear, Idle, Leave, Other, Salu, Valu};

fn note(words: &[u32]) -> Note {
    Note::new(&decode_for(words, WaveSize::Wave32).unwrap(), WaveSize::Wave32)
}

/// Instruction set reference §5.1: what reads and writes SGPRs, what waits, and what ends the hazard. Hints and waits
/// (SOPP) are not among the instructions after which a write is visible.
#[test]
fn each_instruction_has_its_class_for_the_scalar_hazard() {
    let classes: [(&[u32], HazardClass); 21] = [
        (&[0x7e040300], Valu),                          // v_mov_b32_e32 v2, v0
        (&[0x7e080500], Valu),                          // v_readfirstlane_b32 s4, v0
        (&[0xbe840080], Salu { counts: true }),         // s_mov_b32 s4, 0
        (&[0xbf068004], Salu { counts: true }),         // s_cmp_eq_u32 s4, 0
        (&[0xb0040001], Salu { counts: true }),         // s_movk_i32 s4, 1
        (&[0xbf800000], Salu { counts: false }),        // s_nop 0
        (&[0xbfa00000], Salu { counts: false }),        // s_branch 0
        (&[0xbfc00000], Salu { counts: false }),        // s_wait_loadcnt 0x0
        (&[0xbf88ff9e], HazardClass::Wait(0xff9e)),     // s_wait_alu depctr_sa_sdst(0)
        (&[0xbe80481e], Leave),                         // s_setpc_b64 s[30:31]
        (&[0xbe9e4900], Leave),                         // s_swappc_b64 s[30:31], s[0:1]
        (&[0xba1e0000], Leave),                         // s_call_b64 s[30:31], 0
        (&[0xbe804a00], Leave),                         // s_rfe_b64 s[0:1]
        (&[0xf4000100, 0xf8000000], Clear),             // s_load_b32 s4, s[0:1], 0x0
        (&[0xf4042000, 0x00000000], Clear),             // s_dcache_inv
        (&[0xc405007c, 0x40801002, 0x00000000], Clear), // buffer_load_b32 v2, v0, s[8:11], null offen
        (&[0xd8500000, 0x00000000], Idle),              // ds_nop
        (&[0xd8d80000, 0x02000000], Other),             // ds_load_b32 v2, v0
        (&[0xee050000, 0x00000002, 0x00000000], Other), // global_load_b32 v2, v0, s[0:1]
        (&[0xec06807c, 0x010c0000, 0x00000000], Other), // flat_store_b32 v[0:1], v2 scope:SCOPE_SYS
        (&[0xed050000, 0x00000002, 0x00000000], Other), // scratch_load_b32 v2, off, s0
    ];
    for (words, class) in classes {
        assert_eq!(note(words).hazard, class, "{words:#x?}");
    }
}

#[test]
fn each_instruction_has_its_class_for_the_other_hazards() {
    use Special::{Compare, Exchange, Matrix, None, Nop, Scratch, SystemStore, Valu};
    let classes: [(&[u32], Special); 25] = [
        (&[0x7e000000], Nop),                                 // v_nop
        (&[0x7e040300], Valu),                                // v_mov_b32_e32 v2, v0
        (&[0x7c920083], Valu),                                // v_cmp_lt_u32_e32 vcc_lo, 3, v0
        (&[0x7d920083], Compare),                             // v_cmpx_lt_u32_e32 3, v0
        (&[0xd4c9007e, 0x00020101], Compare),                 // v_cmpx_lt_u32_e64 v1, v0
        (&[0xd65b0001, 0x000c0500], Exchange),                // v_permlane16_b32 v1, v0, s2, s3
        (&[0xd65c0001, 0x000c0500], Exchange),                // v_permlanex16_b32 v1, v0, s2, s3
        (&[0x7e02cf00], Exchange),                            // v_permlane64_b32 v1, v0
        (&[0xd7600004, 0x00010700], Valu),                    // v_readlane_b32 s4, v0, 3
        (&[0xd7610001, 0x00010600], Valu),                    // v_writelane_b32 v1, s0, 3
        (&[0xcc404010, 0x1c220900], Matrix), // v_wmma_f32_16x16x16_f16 v[16:23], v[0:3], v[4:7], v[8:15]
        (&[0xcc504018, 0x1c420900], Matrix), // v_swmmac_f32_16x16x32_f16 v[24:31], v[0:3], v[4:11], v16
        (&[0xbe840080], None),               // s_mov_b32 s4, 0
        (&[0xed050000, 0x00000002, 0x00000000], Scratch), // scratch_load_b32 v2, off, s0
        (&[0xed068000, 0x010c0000, 0x00000000], Scratch), // scratch_store_b32 off, v2, s0 scope:SCOPE_SYS
        (&[0xee068000, 0x010c0000, 0x00000000], SystemStore), // global_store_b32 v0, v2, s[0:1] scope:SCOPE_SYS
        (&[0xec06807c, 0x010c0000, 0x00000000], SystemStore), // flat_store_b32 v[0:1], v2 scope:SCOPE_SYS
        // buffer_store_b32 v2, v0, s[8:11], null offen scope:SCOPE_SYS
        (&[0xc406807c, 0x408c1002, 0x00000000], SystemStore),
        (&[0xee068000, 0x01080000, 0x00000000], None), // global_store_b32 v0, v2, s[0:1] scope:SCOPE_DEV
        (&[0xee050000, 0x000c0002, 0x00000000], None), // global_load_b32 v2, v0, s[0:1] scope:SCOPE_SYS
        (&[0xee0d4000, 0x010c0000, 0x00000000], None), // global_atomic_add_u32 v0, v2, s[0:1] scope:SCOPE_SYS
        // buffer_atomic_add_u32 v2, v0, s[8:11], null offen scope:SCOPE_SYS
        (&[0xc40d407c, 0x408c1002, 0x00000000], None),
        (&[0xee0b007c, 0x000c0000, 0x00000000], None), // global_wb scope:SCOPE_SYS
        (&[0xd8340000, 0x00000200], None),             // ds_store_b32 v0, v2
        (&[0xd8d40001, 0x02000000], None),             // ds_swizzle_b32 v2, v0 offset:1
    ];
    for (words, class) in classes {
        assert_eq!(note(words).special, class, "{words:#x?}");
    }
}

/// Instruction set reference §4.1: a combined wait has dscnt in bits 5:0 and the other counter in bits 13:8.
#[test]
fn each_wait_is_for_its_counters() {
    const NO: u8 = NO_WAIT;
    // LOADcnt, DScnt, KMcnt, EXPcnt, STOREcnt.
    let waits: [(u32, [u8; 5]); 11] = [
        (0xbfc00025, [0x25, NO, NO, NO, NO]),   // s_wait_loadcnt 0x25
        (0xbfc0ffc1, [0x01, NO, NO, NO, NO]),   // the same with what lies above the count
        (0xbfc60025, [NO, 0x25, NO, NO, NO]),   // s_wait_dscnt 0x25
        (0xbfc70015, [NO, NO, 0x15, NO, NO]),   // s_wait_kmcnt 0x15
        (0xbfc40005, [NO, NO, NO, 0x05, NO]),   // s_wait_expcnt 0x5
        (0xbfc10025, [NO, NO, NO, NO, 0x25]),   // s_wait_storecnt 0x25
        (0xbfc81203, [0x12, 0x03, NO, NO, NO]), // s_wait_loadcnt_dscnt 0x1203
        (0xbfc9d2c3, [NO, 0x03, NO, NO, 0x12]), // s_wait_storecnt_dscnt 0x1203, with what lies between
        (0xbf8a0000, [0; 5]),                   // s_wait_idle
        (0xbfc20000, [NO; 5]),                  // s_wait_samplecnt 0x0
        (0xbf800000, [NO; 5]),                  // s_nop 0
    ];
    for (word, expected) in waits {
        let note = note(&[word]);
        assert_eq!((note.waits, note.has_waits), (expected, expected != [NO; 5]), "{word:#x}");
        assert_eq!(note.moves_counters(), expected != [NO; 5]);
    }
    assert!(note(&[0xee050000, 0x00000002, 0x00000000]).moves_counters()); // global_load_b32 v2, v0, s[0:1]
    assert!(note(&[0xee068000, 0x01080000, 0x00000000]).moves_counters()); // global_store_b32 v0, v2, s[0:1]
}

#[test]
fn what_reaches_other_lanes_or_keeps_a_part_is_known() {
    // Whether it crosses lanes, and whether it keeps a part of its destination.
    let forms: [(&[u32], bool, bool); 20] = [
        (&[0x7e0402fa, 0xff011101], true, true), // v_mov_b32_dpp v2, v1 row_shr:1 row_mask:0xf bank_mask:0xf
        (&[0x7e0402e9, 0x05397701], true, true), // v_mov_b32_dpp v2, v1 dpp8:[7,6,5,4,3,2,1,0]
        (&[0xd65b0001, 0x000c0500], true, true), // v_permlane16_b32 v1, v0, s2, s3
        (&[0x7e02cf00], true, true),             // v_permlane64_b32 v1, v0
        (&[0xd7600004, 0x00010700], true, true), // v_readlane_b32 s4, v0, 3
        (&[0x7e080500], true, true),             // v_readfirstlane_b32 s4, v0
        (&[0xd7610001, 0x00010600], true, true), // v_writelane_b32 v1, s0, 3
        (&[0xd8d40001, 0x02000000], true, false), // ds_swizzle_b32 v2, v0 offset:1
        (&[0xdac80000, 0x02000100], true, false), // ds_permute_b32 v2, v0, v1
        (&[0xdacc0000, 0x02000100], true, false), // ds_bpermute_b32 v2, v0, v1
        (&[0x64020702], false, true),            // v_add_f16_e32 v1.l, v2.l, v3.l
        (&[0x7e043901], false, true),            // v_mov_b16_e32 v2.l, v1.l
        (&[0xcc210001, 0x04120702], false, true), // v_fma_mixlo_f16 v1, v2, v3, v4
        (&[0xd76b0001, 0x00020702], false, true), // v_cvt_sr_fp8_f32 v1, v2, v3: it writes a byte
        (&[0x06020702], false, false),           // v_add_f32_e32 v1, v2, v3
        (&[0xcc134001, 0x1c120702], false, false), // v_dot2_f32_f16 v1, v2, v3, v4
        (&[0x56020702], false, false),           // v_fmac_f32_e32 v1, v2, v3: all of it is read
        (&[0xd8d80000, 0x02000000], false, false), // ds_load_b32 v2, v0
        (&[0xbe840080], false, false),           // s_mov_b32 s4, 0
        (&[0xee080000, 0x00000002, 0x00000000], false, false), // global_load_d16_b16 v2, v0, s[0:1]
    ];
    for (words, crosses_lanes, keeps) in forms {
        let note = note(words);
        assert_eq!((note.crosses_lanes, note.keeps), (crosses_lanes, keeps), "{words:#x?}");
    }
}

#[test]
fn stores_read_the_bits_that_they_store() {
    let stores: [(&[u32], u32); 6] = [
        (&[0xee060004, 0x01000000, 0x00000001], 0x0000_00ff), // global_store_b8 v1, v2, s[4:5]
        (&[0xee090004, 0x01000000, 0x00000001], 0x00ff_0000), // global_store_d16_hi_b8 v1, v2, s[4:5]
        (&[0xee064004, 0x01000000, 0x00000001], 0x0000_ffff), // global_store_b16 v1, v2, s[4:5]
        (&[0xee094004, 0x01000000, 0x00000001], 0xffff_0000), // global_store_d16_hi_b16 v1, v2, s[4:5]
        (&[0xee068000, 0x01000000, 0x00000000], 0xffff_ffff), // global_store_b32 v0, v2, s[0:1]
        (&[0xee070004, 0x01000000, 0x00000001], 0xffff_ffff), // global_store_b96 v1, v[2:4], s[4:5]
    ];
    for (words, bits) in stores {
        assert_eq!(note(words).stored_bits, bits, "{words:#x?}");
    }
}
