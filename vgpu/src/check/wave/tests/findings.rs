//! What is told of small programs, of which wave and lane, and what is counted of them.

use super::*;
use crate::check::debug::Debugger;
use crate::check::memory::AllocationUse;
use crate::shader::address::SHARED_APERTURE_HIGH;
use std::sync::Mutex;

const UNORDERED: &str = "two waves access the same bytes and nothing orders them; the other is an LDS";
const UNWRITTEN_LDS: &str = "the access reads LDS that no wave of the group has written";

/// A group of two waves that are about to execute `stores` and `loads`, and the dword of the body at which the latter
/// begins.
fn two_waves(stores: &[u32], loads: &[u32]) -> (Bench, [Member; 2], u64) {
    // s_cbranch_scc1, over the first part: it makes both reachable.
    let body = [&[0xBFA2_0000 | stores.len() as u32], stores, loads].concat();
    let second = 1 + stores.len() as u64;
    let mut bench = Bench::new(CHECK, WaveSize::Wave32, 2, &body);
    let mut members = [bench.wave(0), bench.wave(1)];
    bench.enter(&mut members[0], 1);
    bench.enter(&mut members[1], second);
    (bench, members, second)
}

/// Wave 0 stores and signals last.
#[test]
fn a_barrier_orders_what_was_stored_before_it() {
    let stores = [&[0x7E02_0287][..], &DS_STORE, &[WAIT_LDS, SIGNAL, WAIT, END]].concat(); // v_mov_b32_e32 v1, 7
    let loads = [&[SIGNAL, WAIT][..], &DS_LOAD, &[WAIT_LDS, END]].concat();
    let (mut bench, [mut storing, mut loading], _) = two_waves(&stores, &loads);
    assert_eq!(bench.turn(&mut loading, 100).0, Turn::Barrier);
    bench.finish(&mut storing);
    bench.finish(&mut loading);
    assert_eq!(bench.told(), [""; 0]);
}

/// The loading wave passes its first wait when the other one has signalled for the second time.
#[test]
fn a_barrier_orders_nothing_that_was_stored_after_it() {
    let stores = [&[SIGNAL, WAIT][..], &DS_STORE, &[WAIT_LDS, SIGNAL, WAIT, END]].concat();
    let loads = [&[SIGNAL, WAIT][..], &DS_LOAD, &[WAIT_LDS, SIGNAL, WAIT, END]].concat();
    let (mut bench, [mut storing, mut loading], second) = two_waves(&stores, &loads);
    assert_eq!(bench.turn(&mut loading, 1), (Turn::Budget, 1));
    assert_eq!(bench.turn(&mut storing, 100).0, Turn::Barrier);
    bench.finish(&mut loading);
    let pc = BODY - CODE + 4 * (second + 2);
    let told = format!("race at {pc:#x}: wave 1, lane 0, 32: {UNORDERED} store by wave 0 of group 0");
    assert_eq!(bench.told(), [told]);
}

/// A counter in LDS tells a wave that has its old value what was done before; one that does not ask for it learns
/// nothing.
#[test]
fn an_lds_atomic_that_returns_is_a_flag() {
    const FLAG: [u32; 2] = [0x7E06_02FF, 0x100]; // v_mov_b32_e32 v3, 0x100
    const SET: [u32; 2] = [0xD834_0000, 0x0000_0103]; // ds_store_b32 v3, v1
    const ADD: [u32; 2] = [0xD800_0000, 0x0000_0103]; // ds_add_u32 v3, v1
    const ADD_AND_RETURN: [u32; 2] = [0xD880_0000, 0x0200_0103]; // ds_add_rtn_u32 v2, v3, v1
    for (add, is_flag) in [(ADD, false), (ADD_AND_RETURN, true)] {
        let set_up = [&FLAG[..], &SET, &[WAIT_LDS, SIGNAL, WAIT]].concat();
        let stores = [&set_up[..], &DS_STORE, &[WAIT_LDS], &ADD, &[END]].concat();
        let loads = [&FLAG[..], &[SIGNAL, WAIT], &add, &[WAIT_LDS], &DS_LOAD, &[WAIT_LDS, END]].concat();
        let (mut bench, [mut storing, mut loading], second) = two_waves(&stores, &loads);
        assert_eq!(bench.turn(&mut loading, 100).0, Turn::Barrier);
        bench.finish(&mut storing);
        bench.finish(&mut loading);
        let pc = BODY - CODE + 4 * (second + 7);
        let told = format!("race at {pc:#x}: wave 1, lane 0, 32: {UNORDERED} store by wave 0 of group 0");
        assert_eq!(bench.told(), vec![told; usize::from(!is_flag)], "{add:x?}");
    }
}

/// LDS has no scopes. Of a wave's atomics on one place the last is told, which is the flat one.
#[test]
fn a_flat_atomic_on_lds_is_one_like_others() {
    const ADD: [u32; 2] = [0xD800_0000, 0x0000_0100]; // ds_add_u32 v0, v1
    const FLAT_ADD: [u32; 3] = [0xEC0D_407C, 0x0088_0000, 2]; // flat_atomic_add_u32 v[2:3], v1 scope:SCOPE_DEV
    let stores = [&DS_STORE[..], &[WAIT_LDS, SIGNAL, WAIT], &ADD, &FLAT_ADD, &[END]].concat();
    let loads = [&[SIGNAL, WAIT][..], &DS_LOAD, &[WAIT_LDS, END]].concat();
    let (mut bench, [mut storing, mut loading], _) = two_waves(&stores, &loads);
    storing.set(2, |lane| 4 * lane);
    storing.set(3, |_| SHARED_APERTURE_HIGH);
    assert_eq!(bench.turn(&mut loading, 100).0, Turn::Barrier);
    bench.finish(&mut storing);
    bench.finish(&mut loading);
    let text = bench.inspection.findings_text();
    let [line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    let finding: serde_json::Value = serde_json::from_str(line).unwrap();
    // Behind the branch, both words of the store, three more, and both of the first atomic.
    assert_eq!(
        (&finding["rule"], finding["other_pc"].as_u64()),
        (&"race".into(), Some(BODY + 4 * 8)),
        "{text}"
    );
}

/// Lane 3 is in memory, the other active lane in LDS.
#[test]
fn lanes_of_a_flat_access_are_told_by_their_numbers() {
    for (wave_size, in_lds) in [(WaveSize::Wave32, 31), (WaveSize::Wave64, 40)] {
        let mut bench = Bench::new(CHECK, wave_size, 1, &[&FLAT_LOAD[..], &[END]].concat());
        let mut member = bench.wave(0);
        member.set_exec(1 << 3 | 1 << in_lds);
        member.set(2, |lane| if lane == 3 { DATA as u32 } else { 4 * lane });
        member.set(3, |lane| if lane == 3 { 0 } else { SHARED_APERTURE_HIGH });
        bench.finish(&mut member);
        let told = format!("uninitialised at 0x20: wave 0, lane {in_lds}, 1: {UNWRITTEN_LDS}");
        assert_eq!(bench.told(), [told]);
    }
}

/// Misaligned by two bytes, in a lane of the low or of the high half.
#[test]
fn lanes_of_a_wave64_are_told_by_their_numbers() {
    for lane in [3, 40] {
        let mut bench = Bench::new(CHECK, WaveSize::Wave64, 1, &[&STORE[..], &[END]].concat());
        let mut member = bench.wave(0);
        member.set_exec(1 << lane);
        member.set(0, |lane| 4 * lane + 2);
        bench.finish(&mut member);
        let told = format!(
            "advice at 0x20: wave 0, lane {lane}, 1: the address is not a multiple of the element, at most 4 bytes: \
             the access is split; 4 bytes expected"
        );
        assert_eq!(bench.told(), [told]);
    }
}

/// All lanes store a dword of a line, wait, and write the next one for the host. Both halves of a wave64 are one
/// access.
#[test]
fn a_line_that_the_host_cannot_see_is_told_once_for_each_instruction() {
    // global_store_b32 v0, v1, s[0:1] offset:4 scope:SCOPE_SYS
    let body = [&STORE[..], &[WAIT_STORES, 0xEE06_8000, 0x008C_0000, 0x400, END]].concat();
    for wave_size in [WaveSize::Wave32, WaveSize::Wave64] {
        let mut bench = Bench::new(CHECK, wave_size, 1, &body);
        let mut member = bench.wave(0);
        member.set(0, |_| 0);
        bench.finish(&mut member);
        let told = "visibility at 0x30: wave 0, lane 0, 1: a write of system scope goes to a line of which GL2 holds \
                    older stores that the host cannot see; the other is a store by wave 0 of group 0";
        assert_eq!(bench.told(), [told], "{wave_size:?}");
    }
}

/// What is told of a wave64 in which v9 is unwritten in lane 41.
fn told_of_lane_41(body: &[u32]) -> Vec<String> {
    let body = [&[0x7E12_0280], body].concat(); // v_mov_b32_e32 v9, 0
    let mut bench = Bench::new(CHECK, WaveSize::Wave64, 1, &body);
    let mut member = bench.wave(0);
    member.set_exec(!(1 << 41));
    assert_eq!(bench.turn(&mut member, 1), (Turn::Budget, 1));
    member.set_exec(1 << 3 | 1 << 40 | 1 << 41);
    bench.finish(&mut member);
    bench.told()
}

/// The second of two elements is unwritten.
#[test]
fn each_element_and_lane_of_lds_keeps_what_is_undefined() {
    let body = [
        0xD838_4000,
        0x0009_0100, // ds_store_2addr_b32 v0, v1, v9 offset1:64
        WAIT_LDS,
        0xD8DC_4000,
        0x0300_0000, // ds_load_2addr_b32 v[3:4], v0 offset1:64
        WAIT_LDS,
        0xD834_0000,
        0x0000_0300, // ds_store_b32 v0, v3
        0xD834_0000,
        0x0000_0400, // ds_store_b32 v0, v4
        END,
    ];
    let expected = [
        "uninitialised at 0x24: wave 0, lane 41, 1: v9 is read, but nothing has written it",
        "uninitialised at 0x44: wave 0, lane 41, 1: v4 is used, but was computed from v9, which nothing has written",
    ];
    assert_eq!(told_of_lane_41(&body), expected);
}

/// Stored by one instruction for each, and loaded by one for both: the first element is unwritten.
#[test]
fn each_element_that_is_loaded_has_what_was_stored_there() {
    let body = [
        0xD834_0000,
        0x0000_0900, // ds_store_b32 v0, v9
        0xD834_0100,
        0x0000_0100, // ds_store_b32 v0, v1 offset:256
        WAIT_LDS,
        0xD8DC_4000,
        0x0300_0000, // ds_load_2addr_b32 v[3:4], v0 offset1:64
        WAIT_LDS,
        0xD834_0000,
        0x0000_0400, // ds_store_b32 v0, v4
        0xD834_0000,
        0x0000_0300, // ds_store_b32 v0, v3
        END,
    ];
    let expected = [
        "uninitialised at 0x24: wave 0, lane 41, 1: v9 is read, but nothing has written it",
        "uninitialised at 0x4c: wave 0, lane 41, 1: v3 is used, but was computed from v9, which nothing has written",
    ];
    assert_eq!(told_of_lane_41(&body), expected);
}

#[test]
fn memory_keeps_what_was_stored_undefined() {
    let body = [
        &[0xEE06_8000, 0x0480_0000, 0, WAIT_STORES][..], // global_store_b32 v0, v9, s[0:1]
        &LOAD,
        &[WAIT_LOADS, 0xEE06_8000, 0x0100_0000, 0x8000, END], // global_store_b32 v0, v2, s[0:1] offset:128
    ]
    .concat();
    let mut bench = Bench::checked(&body);
    let mut member = bench.wave(0);
    bench.finish(&mut member);
    let expected = [
        "uninitialised at 0x20: wave 0, lane 0, 1: v9 is read, but nothing has written it",
        "uninitialised at 0x40: wave 0, lane 0, 1: v2 is used, but was computed from v9, which nothing has written",
    ];
    assert_eq!(bench.told(), expected);
}

/// The main program or the one that it jumps to has an s_wait_alu, or neither has. The other rules hold in any case.
#[test]
fn a_compiler_knows_the_scalar_hazard_if_any_code_of_the_wave_does() {
    const WAIT_ALU: u32 = 0xBF88_FFFE; // s_wait_alu depctr_sa_sdst(0)
    let trusting = config::Inspection { trusts_compilers: true, ..CHECK };
    let late = "hazard at 0x1008: wave 0, lane null, 1: s4 was read by the VALU, then written by the SALU; this read \
                may return the old value";
    let unaware = "hazard at 0x0: wave 0, lane null, 1: the compiler does not know the scalar hazard of gfx1201: the \
                   code has no s_wait_alu";
    let unwritten = "uninitialised at 0x1010: wave 0, lane 0, 1: v9 is read, but nothing has written it";
    for (in_main, in_far, expected) in
        [(NOP, NOP, unaware), (WAIT_ALU, NOP, late), (NOP, WAIT_ALU, late), (WAIT_ALU, WAIT_ALU, late)]
    {
        let main = [in_main, 0xBE80_4802]; // s_setpc_b64 s[2:3]
        let far = [
            0x7E02_0204, // v_mov_b32_e32 v1, s4
            0xBE84_0081, // s_mov_b32 s4, 1
            0x7E04_0204, // v_mov_b32_e32 v2, s4
            in_far,
            0xEE06_8000,
            0x0480_0000,
            0, // global_store_b32 v0, v9, s[0:1]
            END,
        ];
        let mut bench = Bench::with_far(trusting, WaveSize::Wave32, 1, &main, &far);
        let mut member = bench.wave(0);
        bench.finish(&mut member);
        assert_eq!(bench.told(), [expected, unwritten], "{in_main:#x} {in_far:#x}");
    }
}

#[test]
fn a_prefetch_is_seen_by_the_checker() {
    let mut bench = Bench::checked(&[0xF404_C000, 0xF800_0000, END]); // s_prefetch_data s[0:1], 0x0, null, 0
    bench.inspection.add_region("x", DATA - GPU_PAGE_BYTES, 64, AllocationUse::Written);
    let mut member = bench.wave(0);
    member.wave.mode |= SCALAR_PREFETCH_EN;
    bench.finish(&mut member);
    let told = "bounds at 0x20: wave 0, lane null, 1: the prefetch leaves the pages of all allocations; 128 bytes, \
                4032 bytes past the end of x (64 bytes at 0x1ff000)";
    assert_eq!(bench.told(), [told]);
}

/// Lanes 0 to 2 of the first flat load are in LDS, none of the second; v[2:3] of the last load are no address.
#[test]
fn lanes_are_counted_where_they_access() {
    let last = [0xEE05_0006, 4, 2]; // global_load_b32 v4, v2, s[6:7]
    let body = [&DS_LOAD[..], &FLAT_LOAD, &FLAT_LOAD, &last, &[END]].concat();
    let profile = config::Inspection { check: false, profile: true, ..CHECK };
    let mut bench = Bench::new(profile, WaveSize::Wave32, 1, &body);
    let mut member = bench.wave(0);
    let in_memory = |lane: u32| DATA as u32 + 4 * lane;
    assert_eq!(bench.turn(&mut member, 1).1, 1);
    member.set(2, |lane| if lane < 3 { 4 * lane } else { in_memory(lane) });
    member.set(3, |lane| if lane < 3 { SHARED_APERTURE_HIGH } else { 0 });
    assert_eq!(bench.turn(&mut member, 1).1, 1);
    member.set(2, in_memory);
    member.set(3, |_| 0);
    assert_eq!(bench.turn(&mut member, 1).1, 1);
    member.set(3, |_| SHARED_APERTURE_HIGH);
    bench.finish(&mut member);
    let text: serde_json::Value = serde_json::from_str(&bench.inspection.profile_text()).unwrap();
    let figures = |value: &serde_json::Value, names: &[&str]| {
        names.iter().map(|name| value[name].as_u64()).collect::<Vec<_>>()
    };
    // 29 lanes, and twice 32; 32 lanes, and three.
    assert_eq!(figures(&text["bytes"], &["vector_load", "lds_load"]), [Some(372), Some(140)]);
    let names = ["accesses", "cycles", "cycles_without_conflict"];
    assert_eq!(figures(&text["lds"], &names), [Some(2), Some(2), Some(2)]);
    let places = text["places"].as_array().unwrap();
    let names = ["lanes", "sectors", "lds_passes", "lds_conflicts"];
    for (dword, expected) in [
        (0, [Some(32), None, Some(1), Some(0)]),
        (2, [Some(32), Some(1), Some(1), Some(0)]),
        (5, [Some(32), Some(1), None, None]),
        (8, [Some(32), Some(1), None, None]),
    ] {
        let place = places.iter().find(|place| place["pc"] == BODY + 4 * dword).unwrap();
        assert_eq!(figures(place, &names), expected, "{place}");
    }
}

/// Notes where it stops.
struct Notes(Arc<Mutex<Vec<u64>>>);

impl Debugger for Notes {
    fn before(&mut self, stop: &mut Stop<'_>) -> Action {
        self.0.lock().unwrap().push(stop.pc - BODY);
        Action::Continue
    }
}

#[test]
fn a_debugger_stops_once_before_each_instruction_of_a_wave64() {
    let debug = config::Inspection { check: false, debug: true, ..CHECK };
    let mut bench =
        Bench::new(debug, WaveSize::Wave64, 1, &[&[NOP, 0x7E02_0280], &STORE[..], &[END]].concat());
    let mut member = bench.wave(0);
    let stops = Arc::new(Mutex::new(Vec::new()));
    bench.inspection.attach(Box::new(Notes(stops.clone())));
    bench.finish(&mut member);
    assert_eq!(*stops.lock().unwrap(), [0, 4, 8, 20]);
}
