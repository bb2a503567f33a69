//! What ends a wait, and what a wave reads that goes in circles.

use super::*;
use crate::check::circles::SeenLoad;
use crate::shader::address::SHARED_APERTURE_HIGH;

/// Begins a search for circles.
fn look(bench: &mut Bench) {
    tell(bench, &Member { index: 0, far: None, shadow: WaveShadow::default(), wave: Wave::new() }, 1_000_000);
    assert!(is_looking(bench));
}

/// A wave's turn has ended after so many instructions.
fn tell(bench: &mut Bench, member: &Member, instructions: u64) {
    let place = member.place(bench);
    bench.watch(|watch| {
        let circles = &mut watch.progress.circles;
        circles.turn_ended(member.shadow.number(), place, instructions, &member.wave, || Some(Vec::new()));
    });
}

fn is_looking(bench: &mut Bench) -> bool {
    bench.watch(|watch| watch.progress.circles.is_looking())
}

/// So does reading a clock, which is different each time. Three lanes store to the last three dwords of LDS, which are
/// 1, 2 and 3.
#[test]
fn what_another_wave_may_see_ends_the_search_for_circles() {
    const ATOMIC: [u32; 3] = [0xEE0D_4000, 0x0080_0000, 0]; // global_atomic_add_u32 v0, v1, s[0:1]
    let cases: [(&[u32], [u32; 3], bool); 18] = [
        (&[NOP], [0; 3], false),
        (&[0x7E12_0280], [0; 3], false), // v_mov_b32_e32 v9, 0
        (&[SIGNAL], [0; 3], true),
        (&[0xB884_0601], [0; 3], true), // s_getreg_b32 s4, hwreg(HW_REG_MODE, 24, 1)
        (&[0xBE84_4C83], [0; 3], true), // s_sendmsg_rtn_b32 s4, sendmsg(MSG_RTN_GET_REALTIME)
        (&[END], [0; 3], true),
        (&LOAD, [0; 3], false),
        (&STORE, [0; 3], true),
        (&ATOMIC, [0; 3], false),
        (&ATOMIC, [0, 0, 1], true),
        (&DS_LOAD, [7; 3], false),
        (&DS_STORE, [1, 2, 3], false),
        (&DS_STORE, [1, 2, 9], true),
        (&DS_STORE, [9, 2, 3], true),
        (&FLAT_LOAD, [7; 3], false),
        (&FLAT_STORE, [1, 2, 3], false),
        (&FLAT_STORE, [1, 2, 9], true),
        (&FLAT_STORE, [9, 2, 3], true),
    ];
    for (words, data, is_change) in cases {
        let mut bench = Bench::checked(&[words, &[END]].concat());
        let mut member = bench.wave(0);
        let first = LDS_BYTES - 12;
        [1, 2, 3]
            .into_iter()
            .enumerate()
            .for_each(|(at, word)| bench.lds.words[first as usize / 4 + at] = word);
        member.set_exec(0b111);
        member.set(0, |lane| first + 4 * lane);
        member.set(1, |lane| data.get(lane as usize).copied().unwrap_or_default());
        member.set(2, |lane| first + 4 * lane);
        member.set(3, |_| SHARED_APERTURE_HIGH);
        look(&mut bench);
        assert_eq!(bench.turn(&mut member, 1).1, 1);
        assert_eq!(is_looking(&mut bench), !is_change, "{words:x?} {data:?}");
    }
}

/// A wave that is back where its circle began, as it was, ends its turn there; its loads are listed, each with what
/// its first lane read.
#[test]
fn a_circle_is_closed_where_it_began_and_tells_what_it_reads() {
    let body = [
        0xD8D8_0000,
        0x0200_0000, // ds_load_b32 v2, v0
        0xEE05_0000,
        3,
        1, // global_load_b32 v3, v1, s[0:1]
        0xEC05_007C,
        4,
        6,           // flat_load_b32 v4, v[6:7]
        0xBFA0_FFF7, // s_branch, back to the first load
    ];
    let mut bench = Bench::new(CHECK, WaveSize::Wave32, 8, &body);
    let mut member = bench.wave(5);
    bench.lds.words[..3].copy_from_slice(&[11, 12, 33]);
    bench.data.store_u32(0, 22);
    member.set(6, |_| 8);
    member.set(7, |_| SHARED_APERTURE_HIGH);
    // From the second round on, the registers are the same in each.
    assert_eq!(bench.turn(&mut member, 4), (Turn::Budget, 4));
    look(&mut bench);
    for is_proved in [false, true] {
        tell(&mut bench, &member, 0);
        let start = member.place(&bench);
        assert_eq!(bench.turn(&mut member, 1_000), (Turn::Budget, 4));
        assert_eq!(member.place(&bench), start);
        tell(&mut bench, &member, 4);
        bench.watch(|watch| {
            assert!(watch.progress.circles.is_closed(5));
            assert_eq!(watch.progress.circles.confirm(), is_proved);
        });
    }
    let loads = bench.watch(|watch| watch.progress.circles.loads(5).to_vec());
    let expected = [
        SeenLoad { pc: BODY, address: 0, is_lds: true, value: 11 },
        SeenLoad { pc: BODY + 8, address: DATA, is_lds: false, value: 22 },
        SeenLoad { pc: BODY + 20, address: 8, is_lds: true, value: 33 },
    ];
    assert_eq!(loads, expected);
}

#[test]
fn a_wave_that_counts_goes_on_where_its_circle_began() {
    let body = [
        0x8004_8104, // s_add_co_u32 s4, s4, 1
        0xBFA0_FFFE, // s_branch, back to it
    ];
    let mut bench = Bench::checked(&body);
    let mut member = bench.wave(0);
    look(&mut bench);
    tell(&mut bench, &member, 0);
    assert_eq!(bench.turn(&mut member, 10), (Turn::Budget, 10));
    assert_eq!(member.wave.scalar[4], 5);
}

/// A thousand loads. The host may have stored what a load of system scope reads.
#[test]
fn polling_below_system_scope_waits_for_waves() {
    for (scope, is_waiting) in [(0, true), (3, false)] {
        let body = [
            0xB004_07D0, // s_movk_i32 s4, 2000
            0xEE05_0000,
            scope << 18 | 2,
            1,           // global_load_b32 v2, v1, s[0:1]
            0x8084_8104, // s_sub_co_u32 s4, s4, 1
            0xBF07_8004, // s_cmp_lg_u32 s4, 0
            0xBFA2_FFFA, // s_cbranch_scc1, back to the load
            END,
        ];
        let mut bench = Bench::checked(&body);
        bench.inspection.silence_host(false);
        let mut member = bench.wave(0);
        assert_eq!(bench.turn(&mut member, 4_000), (Turn::Budget, 4_000));
        let is_told = bench.watch(|watch| watch.progress.is_waiting_for_ever(1_000_000, 1, 1));
        assert_eq!(is_told, is_waiting, "scope {scope}");
    }
}
