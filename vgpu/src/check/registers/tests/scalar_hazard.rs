//! The scalar hazard (instruction set reference §5.1): which registers are tracked, what each wait ends, and when
//! compilers trust that a write is visible.

use super::*;

const SALU_READ_BY_VALU: u32 = 0x7e020204; // v_mov_b32_e32 v1, s4
const SALU_WRITE: u32 = 0xbe840081; // s_mov_b32 s4, 1
const VALU_WRITE: u32 = 0x7e080500; // v_readfirstlane_b32 s4, v0
const VALU_READ: u32 = 0x7e040204; // v_mov_b32_e32 v2, s4
const VCC_COMPARE: u32 = 0x7c940081; // v_cmp_eq_u32_e32 vcc_lo, 1, v0
const VCC_SELECT: u32 = 0x02040300; // v_cndmask_b32_e32 v2, v0, v1, vcc_lo
const OTHER_SALU: u32 = 0xbe940081; // s_mov_b32 s20, 1
const JUMP: u32 = 0xbe80481e; // s_setpc_b64 s[30:31]

/// The texts of the findings, without what all have in common.
fn found(strictness: Strictness, words: &[u32]) -> Vec<String> {
    let mut walk = Walk::new(&LaunchState { strictness, ..launch(WaveSize::Wave32) });
    walk.run(words);
    let shorten = |finding: &RegisterFinding| {
        let text = finding.to_string();
        let text = text.strip_prefix("hazards: pc ").unwrap();
        let [what, remedy] = text.split_once("; needs s_wait_alu depctr_").map(<[&str; 2]>::from).unwrap();
        let place = what.split(' ').take(2).collect::<Vec<_>>().join(" ");
        format!("{place} {}", remedy.strip_suffix(" before it").unwrap())
    };
    walk.ordered().iter().map(shorten).collect()
}

/// Each field of `s_wait_alu` ends the writes that it names, at 0 and at no other value.
#[test]
fn each_field_ends_its_writes() {
    let scalar = [SALU_READ_BY_VALU, SALU_WRITE];
    let vector = [SALU_READ_BY_VALU, VALU_WRITE];
    let vcc = [VCC_COMPARE, VCC_SELECT, VCC_COMPARE];
    let ended = |writes: &[u32], wait: u32, read: u32| {
        found(Strictness::Strict, &[writes, &[wait, read]].concat()).is_empty()
    };
    for (wait, expected) in [
        (0xbf88ff9e, [true, false, false]),  // depctr_sa_sdst(0)
        (0xbf88f19f, [false, true, false]),  // depctr_va_sdst(0)
        (0xbf88ff9d, [false, false, true]),  // depctr_va_vcc(0)
        (0xbf88f39f, [false, false, false]), // depctr_va_sdst(1)
        (0xbf88f99f, [false, false, false]), // depctr_va_sdst(4)
        (0xbf880f83, [false, false, false]), // depctr_va_vdst(0) depctr_vm_vsrc(0)
        (0xbf88f19c, [true, true, true]),    // depctr_sa_sdst(0) depctr_va_sdst(0) depctr_va_vcc(0)
        (0xbf88f19d, [false, true, true]),   // depctr_va_sdst(0) depctr_va_vcc(0)
        (0xbf880000, [true, true, true]),
    ] {
        let told =
            [ended(&scalar, wait, VALU_READ), ended(&vector, wait, VALU_READ), ended(&vcc, wait, VCC_SELECT)];
        assert_eq!(told, expected, "{wait:#x}");
    }
}

/// A pair is tracked when one of its registers was read by the VALU; vcc is one, exec and temporaries are none.
#[test]
fn pairs_that_the_valu_has_read_are_tracked() {
    let none: &[&str] = &[];
    let cases: [(&[u32], &[&str]); 10] = [
        // v_mov_b32 v1, s4; s_mov_b32 s5, 1; v_mov_b32 v2, s5
        (&[0x7e020204, 0xbe850081, 0x7e040205], &["0x8: s5 sa_sdst(0)"]),
        // v_mov_b32 v1, s6; s_mov_b32 s5, 1; v_mov_b32 v2, s5
        (&[0x7e020206, 0xbe850081, 0x7e040205], none),
        // v_mov_b32 v1, s6; s_mov_b32 s7, 1; v_mov_b32 v2, s7
        (&[0x7e020206, 0xbe870081, 0x7e040207], &["0x8: s7 sa_sdst(0)"]),
        // v_mov_b32 v1, s3; s_mov_b32 s2, 1; v_mov_b32 v2, s2
        (&[0x7e020203, 0xbe820081, 0x7e040202], &["0x8: s2 sa_sdst(0)"]),
        // v_mov_b32 v1, s3; s_mov_b32 s4, 1; v_mov_b32 v2, s4
        (&[0x7e020203, SALU_WRITE, VALU_READ], none),
        // v_mov_b32 v1, s104; s_mov_b32 s105, 1; v_mov_b32 v1, s105
        (&[0x7e020268, 0xbee90081, 0x7e020269], &["0x8: s105 sa_sdst(0)"]),
        // v_mov_b32 v1, s105; s_mov_b32 vcc_lo, 1; v_mov_b32 v6, vcc_lo
        (&[0x7e020269, 0xbeea0081, 0x7e0c026a], none),
        // v_mov_b32 v1, vcc_hi; s_mov_b32 vcc_lo, 1; v_mov_b32 v6, vcc_lo
        (&[0x7e02026b, 0xbeea0081, 0x7e0c026a], &["0x8: vcc sa_sdst(0)"]),
        // v_mov_b32 v1, ttmp0; s_mov_b32 ttmp0, 1; v_mov_b32 v1, ttmp0
        (&[0x7e02026c, 0xbeec0081, 0x7e02026c], none),
        // v_mov_b32 v1, m0; s_mov_b32 m0, 1; v_mov_b32 v1, m0
        (&[0x7e02027d, 0xbefd0081, 0x7e02027d], none),
    ];
    for (words, expected) in cases {
        assert_eq!(found(Strictness::Strict, words), expected, "{words:x?}");
    }
}

/// A write is reported at the first read, and is as good as visible afterwards.
#[test]
fn a_write_is_reported_once_and_each_run_of_registers_on_its_own() {
    let once = [SALU_READ_BY_VALU, SALU_WRITE, VALU_READ, VALU_READ];
    assert_eq!(found(Strictness::Strict, &once), ["0x8: s4 sa_sdst(0)"]);
    let again = [SALU_READ_BY_VALU, SALU_WRITE, VALU_READ, SALU_WRITE, VALU_READ];
    assert_eq!(found(Strictness::Strict, &again), ["0x8: s4 sa_sdst(0)", "0x10: s4 sa_sdst(0)"]);
    // Both may be missed where both have written.
    let by_both = [SALU_READ_BY_VALU, SALU_WRITE, VALU_WRITE, VALU_READ];
    assert_eq!(found(Strictness::Strict, &by_both), ["0xc: s4 sa_sdst(0)", "0xc: s4 va_sdst(0)"]);
    // v_mov_b32 v1, s4; s_mov_b32 s5, 1; s_mov_b32 s4, 1; s_mov_b64 s[20:21], s[4:5]
    let pair = [SALU_READ_BY_VALU, 0xbe850081, SALU_WRITE, 0xbe940104];
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    walk.run(&pair);
    let texts: Vec<String> = walk.ordered().iter().map(ToString::to_string).collect();
    // The write of the first register of the run is the one that is named.
    let text = "hazards: pc 0xc: s[4:5] was read by the VALU, then written by the SALU; this read may return the old \
                value, from pc 0x8; needs s_wait_alu depctr_sa_sdst(0) before it";
    assert_eq!(texts, [text]);
    // A SALU read says nothing of a VALU write, but ends it for the register that it reads.
    let salu_reads = [SALU_READ_BY_VALU, VALU_WRITE, 0xbe860004, VALU_READ]; // s_mov_b32 s6, s4
    assert_eq!(found(Strictness::Strict, &salu_reads), [""; 0]);
    let reads_other = [SALU_READ_BY_VALU, VALU_WRITE, 0xbe860005, VALU_READ]; // s_mov_b32 s6, s5
    assert_eq!(found(Strictness::Strict, &reads_other), ["0xc: s4 va_sdst(0)"]);
    assert_eq!(found(Strictness::Compiler, &reads_other), [""; 0], "any SGPR, for compilers");
    let reads_vcc = [SALU_READ_BY_VALU, VALU_WRITE, 0xbe94006a, VALU_READ]; // s_mov_b32 s20, vcc_lo
    for strictness in [Strictness::Strict, Strictness::Compiler] {
        assert_eq!(found(strictness, &reads_vcc), ["0xc: s4 va_sdst(0)"], "{strictness:?}");
        let reads_none = [SALU_READ_BY_VALU, VALU_WRITE, OTHER_SALU, VALU_READ];
        assert_eq!(found(strictness, &reads_none), ["0xc: s4 va_sdst(0)"], "{strictness:?}");
    }
}

/// Compilers do not wait between a VALU write of vcc and a SALU read, nor after a read of another SGPR.
#[test]
fn vcc_is_waited_for_as_each_rule_says() {
    let branch = [VCC_COMPARE, VCC_SELECT, VCC_COMPARE, 0xbfa30000]; // s_cbranch_vccz 0
    assert_eq!(found(Strictness::Strict, &branch), ["0xc: vcc va_vcc(0)"]);
    assert_eq!(found(Strictness::Compiler, &branch), [""; 0]);
    // s_mov_b32 s6, s5 is in between.
    let select = [VCC_COMPARE, VCC_SELECT, VCC_COMPARE, 0xbe860005, VCC_SELECT];
    for strictness in [Strictness::Strict, Strictness::Compiler] {
        assert_eq!(found(strictness, &select), ["0x10: vcc va_vcc(0)"]);
    }
}

#[test]
fn jumps_need_each_write_done_and_leave_none_open() {
    let cases: [(&[u32], &[&str]); 4] = [
        (&[SALU_READ_BY_VALU, SALU_WRITE, JUMP, VALU_READ], &["0x8: s4 sa_sdst(0)"]),
        (&[SALU_READ_BY_VALU, VALU_WRITE, JUMP, VALU_READ], &["0x8: s4 va_sdst(0)"]),
        (&[VCC_COMPARE, VCC_SELECT, VCC_COMPARE, JUMP, VCC_SELECT], &["0xc: vcc va_vcc(0)"]),
        (&[SALU_READ_BY_VALU, OTHER_SALU, JUMP, VALU_READ], &[]),
    ];
    for (words, expected) in cases {
        for strictness in [Strictness::Strict, Strictness::Compiler] {
            assert_eq!(found(strictness, words), expected, "{words:x?} {strictness:?}");
        }
    }
    // For compilers, a SALU write is visible after eleven SALU instructions, of which hints are none.
    for (others, other, is_found) in [(10, OTHER_SALU, true), (11, OTHER_SALU, false), (30, 0xbf800000, true)]
    {
        // The first write and instruction are there so that counts do not begin at 0.
        let mut words = vec![OTHER_SALU, SALU_READ_BY_VALU, OTHER_SALU, SALU_WRITE];
        words.resize(4 + others, other);
        words.push(JUMP);
        let expected = vec![format!("{:#x}: s4 sa_sdst(0)", 4 * (4 + others)); usize::from(is_found)];
        assert_eq!(found(Strictness::Compiler, &words), expected);
        assert_eq!(found(Strictness::Strict, &words).len(), 1);
    }
}

/// Only what came last is forgotten: a write that is open stays open.
#[test]
fn idle_runs_end_the_tracking_and_not_the_writes() {
    const DS_NOP: [u32; 2] = [0xd8500000, 0x00000000];
    let idle = |count: usize| DS_NOP.repeat(count);
    let open = |count| [&[SALU_READ_BY_VALU, SALU_WRITE][..], &idle(count), &[VALU_READ]].concat();
    assert_eq!(found(Strictness::Strict, &open(6)), ["0x38: s4 sa_sdst(0)"]);
    for (before, between, after, count) in
        [(4, 0, 0, 0), (7, 0, 0, 0), (3, 0, 0, 1), (3, 1, 3, 1), (3, 1, 4, 0)]
    {
        let words = [
            &[SALU_READ_BY_VALU][..],
            &idle(before),
            &[OTHER_SALU].repeat(between),
            &idle(after),
            &[SALU_WRITE, VALU_READ],
        ];
        assert_eq!(found(Strictness::Strict, &words.concat()).len(), count, "{before} {between} {after}");
    }
}

#[test]
fn a_new_wave_has_read_and_written_nothing() {
    let mut walk = Walk::new(&launch(WaveSize::Wave32));
    walk.run(&[SALU_READ_BY_VALU, SALU_WRITE, VCC_COMPARE, VCC_SELECT, VCC_COMPARE]);
    walk.shadow.begin(&launch(WaveSize::Wave32));
    walk.run(&[VALU_READ, VCC_SELECT, SALU_WRITE, VALU_READ]);
    assert_eq!(walk.ordered().iter().map(|finding| finding.pc).collect::<Vec<_>>(), [0x20]);
}
