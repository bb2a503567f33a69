//! Small kernels under the checking mode: what is told of wrong ones, as whole lines, and nothing of right ones.
//!
//! Code is at 0x100000 and the first buffer at 0x102000, in decimal in the lines: 1048576 and 1056768.

use super::code;
use super::*;
use crate::check::debug::{Action, Debugger, Stop};
use crate::check::memory::AllocationUse;
use crate::config::Inspection;
use std::sync::Mutex;

const CHECK: Inspection = Inspection { check: true, trusts_compilers: false, profile: false, debug: false };

fn device(inspection: Inspection) -> Device {
    Device::new(Config { inspection, seed: 9, ..Config::default() })
}

#[rustfmt::skip]
mod words {
    use super::Code;

    const fn code(name: &'static str, source: &'static str, words: &'static [u32]) -> Code {
        Code { name, source, words }
    }

    pub const STORE: Code = code(
        "store",
        "v_mov_b32_e32 v0, 0\nv_mov_b32_e32 v1, 7\nglobal_store_b32 v0, v1, s[0:1]\ns_endpgm\n",
        &[
            0x7E00_0280, 0x7E02_0287, 0xEE06_8000, 0x0080_0000, 0x0000_0000, 0xBFB0_0000,
        ],
    );
    pub const LDS_STORE: Code = code(
        "lds_store",
        "v_mov_b32_e32 v0, 0\nv_mov_b32_e32 v1, 7\nds_store_b32 v0, v1\ns_endpgm\n",
        &[
            0x7E00_0280, 0x7E02_0287, 0xD834_0000, 0x0000_0100, 0xBFB0_0000,
        ],
    );
    pub const FLAT_STORE: Code = code(
        "flat_store",
        "v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 0x10000\nflat_store_b32 v[2:3], v0\ns_endpgm\n",
        &[
            0x7E04_0280, 0x7E06_02FF, 0x0001_0000, 0xEC06_807C, 0x0000_0000, 0x0000_0002, 0xBFB0_0000,
        ],
    );
    pub const FLAT_LOAD: Code = code(
        "flat_load",
        "v_mov_b32_e32 v2, 0\nv_mov_b32_e32 v3, 0x10000\nflat_load_b32 v1, v[2:3]\ns_endpgm\n",
        &[
            0x7E04_0280, 0x7E06_02FF, 0x0001_0000, 0xEC05_007C, 0x0000_0001, 0x0000_0002, 0xBFB0_0000,
        ],
    );
    pub const PREFETCH: Code = code(
        "prefetch",
        "s_prefetch_data s[0:1], 0x0, null, 0\ns_endpgm\n",
        &[
            0xF404_C000, 0xF800_0000, 0xBFB0_0000,
        ],
    );
    pub const FOLLOW: Code = code(
        "follow",
        concat!(
            "v_mov_b32_e32 v0, 0\nglobal_load_b32 v1, v0, s[0:1]\ns_wait_loadcnt 0x0\n",
            "global_load_b32 v2, v1, s[0:1]\ns_endpgm\n",
        ),
        &[
            0x7E00_0280, 0xEE05_0000, 0x0000_0001, 0x0000_0000, 0xBFC0_0000, 0xEE05_0000, 0x0000_0002, 0x0000_0001,
            0xBFB0_0000,
        ],
    );

    pub const HAZARD: Code = code(
        "hazard",
        "v_mov_b32_e32 v1, s4\ns_mov_b32 s4, 1\nv_mov_b32_e32 v2, s4\ns_endpgm\n",
        &[
            0x7E02_0204, 0xBE84_0081, 0x7E04_0204, 0xBFB0_0000,
        ],
    );
    pub const SYSTEM_STORE: Code = code(
        "system_store",
        concat!(
            "v_mov_b32_e32 v0, 0\nv_mov_b32_e32 v1, 7\nglobal_load_b32 v2, v0, s[0:1]\n",
            "global_store_b32 v0, v1, s[0:1] offset:64 scope:SCOPE_SYS\ns_endpgm\n",
        ),
        &[
            0x7E00_0280, 0x7E02_0287, 0xEE05_0000, 0x0000_0002, 0x0000_0000, 0xEE06_8000, 0x008C_0000, 0x0000_4000,
            0xBFB0_0000,
        ],
    );

    pub const ALL: &[Code] = &[STORE, LDS_STORE, FLAT_STORE, FLAT_LOAD, PREFETCH, FOLLOW, HAZARD, SYSTEM_STORE];
}
use words::*;

#[test]
fn the_words_are_what_the_assembler_makes_of_the_sources() {
    for Code { name, source, words } in ALL {
        let Some(assembled) = assembled::assemble(source) else { return };
        assert_eq!(assembled, *words, "{name}");
    }
}

/// What is told of a kernel of `groups` groups of `group` work-items.
fn told(code: &Code, groups: u32, group: u32, is_wave64: bool) -> String {
    told_by(CHECK, code, groups, group, is_wave64)
}

fn told_by(inspection: Inspection, code: &Code, groups: u32, group: u32, is_wave64: bool) -> String {
    let mut device = device(inspection);
    let code = device.code(code);
    let out = device.buffer(4096);
    let dispatch = device.dispatch(&code, groups, group, &[out.va]);
    device.run(Dispatch { rsrc2: RSRC2_LDS, is_wave64, ..dispatch });
    device.engine.findings_text()
}

#[test]
fn waves_of_two_groups_that_store_to_one_place_race() {
    let store = "global_store_b32 v0, v1, s[0:1]";
    let what =
        "two waves access the same bytes and nothing orders them; the other is a store by wave 0 of group 0";
    let remedy = "order them: a barrier, or a flag with scope (release by the producer, acquire by the consumer), or \
                  make both atomic with a scope that covers both";
    let line = format!(
        concat!(
            r#"{{"rule":"race","what":"{what}","remedy":"{remedy}","pc":1048584,"code_va":1048576,"#,
            r#""launched_at":28672,"instruction":"{store}","other_pc":1048584,"workgroup":[1,0,0],"wave":0,"#,
            r#""lane":0,"register":null,"address":1056768,"seed":9,"count":1}}"#,
        ),
        what = what,
        remedy = remedy,
        store = store,
    );
    assert_eq!(told(&STORE, 2, 1, false), line + "\n");
    assert_eq!(told(&STORE, 1, 32, false), "", "lanes that store one value");
}

#[test]
fn waves_of_one_group_race_in_lds() {
    let what = "two waves access the same bytes and nothing orders them; the other is an LDS store by wave 0 of group 0";
    let remedy = "order them: a barrier, or a flag with scope (release by the producer, acquire by the consumer), or \
                  make both atomic with a scope that covers both";
    let line = format!(
        concat!(
            r#"{{"rule":"race","what":"{what}","remedy":"{remedy}","pc":1048584,"code_va":1048576,"#,
            r#""launched_at":28672,"instruction":"ds_store_b32 v0, v1","other_pc":1048584,"workgroup":[0,0,"#,
            r#"0],"wave":1,"lane":0,"register":null,"address":0,"seed":9,"count":1}}"#,
        ),
        what = what,
        remedy = remedy,
    );
    assert_eq!(told(&LDS_STORE, 1, 64, false), line + "\n");
    assert_eq!(told(&LDS_STORE, 1, 64, true), "", "one wave of 64 lanes");
    assert_eq!(told(&LDS_STORE, 2, 32, false), "", "each group has its own");
}

#[test]
fn lanes_of_a_flat_store_clash_in_lds() {
    let what = "two lanes of one instruction store different values to the same bytes; which one remains is undefined; \
                lane 0 stores 0x0, lane 1 stores 0x1";
    let line = format!(
        concat!(
            r#"{{"rule":"race","what":"{what}","remedy":"let one lane store, give each lane its own place,"#,
            r#" or use an atomic","pc":1048588,"code_va":1048576,"launched_at":28672,"#,
            r#""instruction":"flat_store_b32 v[2:3], v0","other_pc":null,"workgroup":[0,0,0],"wave":0,"#,
            r#""lane":1,"register":null,"address":0,"seed":9,"count":1}}"#,
        ),
        what = what,
    );
    assert_eq!(told(&FLAT_STORE, 1, 32, false), line + "\n");
    assert_eq!(told(&FLAT_STORE, 1, 1, false), "");
}

#[test]
fn a_flat_load_of_lds_that_nobody_wrote_is_told_lane_by_lane() {
    for (is_wave64, lanes) in [(false, 5), (true, 40)] {
        let line = format!(
            concat!(
                r#"{{"rule":"uninitialised","#,
                r#""what":"the access reads LDS that no wave of the group has written","#,
                r#""remedy":"store to the bytes first, and order the store before the load","pc":1048588,"#,
                r#""code_va":1048576,"launched_at":28672,"instruction":"flat_load_b32 v1, v[2:3]","#,
                r#""other_pc":null,"workgroup":[0,0,0],"wave":0,"lane":0,"register":null,"address":0,"#,
                r#""seed":9,"count":{lanes}}}"#,
            ),
            lanes = lanes,
        );
        assert_eq!(told(&FLAT_LOAD, 1, lanes, is_wave64), line + "\n");
    }
}

#[test]
fn a_prefetch_that_is_not_enabled_is_told_as_advice() {
    let line = concat!(
        r#"{"rule":"advice","what":"the prefetch does nothing: MODE.SCALAR_PREFETCH_EN is clear","#,
        r#""remedy":"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1),"#,
        r#" 1 before it; from then on every line that it asks for must be mapped","pc":1048576,"#,
        r#""code_va":1048576,"launched_at":28672,"instruction":"s_prefetch_data s[0:1], 0x0, null, 0","#,
        r#""other_pc":null,"workgroup":[0,0,0],"wave":0,"lane":null,"register":null,"address":null,"seed":9,"#,
        r#""count":1}"#,
    );
    assert_eq!(told(&PREFETCH, 1, 1, false), format!("{line}\n"));
    let inspection = Inspection { check: true, ..CHECK };
    let mut device = Device::new(Config { inspection, scalar_prefetch_at_launch: true, ..Config::default() });
    let code = device.code(&PREFETCH);
    let data = device.buffer(4096);
    device.run(device.dispatch(&code, 1, 1, &[data.va]));
    assert_eq!(device.engine.findings_text(), "");
}

/// An address made of what was loaded; nobody has written it.
#[test]
fn memory_that_nobody_wrote_is_named_by_its_region() {
    for (usage, is_told) in [(AllocationUse::Unwritten, true), (AllocationUse::Written, false)] {
        let mut device = device(CHECK);
        let code = device.code(&FOLLOW);
        let data = device.buffer(4096);
        device.engine.inspection().unwrap().add_region("x", data.va, 64, usage);
        device.run(device.dispatch(&code, 1, 1, &[data.va]));
        let line = concat!(
            r#"{"rule":"uninitialised","what":"v1 is used, but was computed from memory at 0x102000,"#,
            r#" which nothing has written; 1 bytes, 0 bytes into x (64 bytes at 0x102000)","#,
            r#""remedy":"write it first","pc":1048596,"code_va":1048576,"launched_at":28672,"#,
            r#""instruction":"global_load_b32 v2, v1, s[0:1]","other_pc":1048580,"workgroup":[0,0,0],"#,
            r#""wave":0,"lane":0,"register":"v1","address":1056768,"seed":9,"count":1}"#,
        );
        let expected = if is_told { format!("{line}\n") } else { String::new() };
        assert_eq!(device.engine.findings_text(), expected);
        let read = device.engine.inspection().unwrap().region_read_bytes();
        assert_eq!(read, [("x".to_owned(), 8)], "two loads of a dword");
    }
}

/// Rules that compilers follow less strictly, or not at all.
#[test]
fn compiled_code_is_judged_as_its_compiler_means_it() {
    let trusting = Inspection { trusts_compilers: true, ..CHECK };
    let wrong = concat!(
        r#"{"rule":"hazard","what":"s4 was read by the VALU,"#,
        r#" then written by the SALU; this read may return the old value","#,
        r#""remedy":"needs s_wait_alu depctr_sa_sdst(0) before it","pc":1048584,"code_va":1048576,"#,
        r#""launched_at":28672,"instruction":"v_mov_b32_e32 v2, s4","other_pc":1048580,"workgroup":[0,0,0],"#,
        r#""wave":0,"lane":null,"register":"s4","address":null,"seed":9,"count":1}"#,
    );
    let unaware = concat!(
        r#"{"rule":"hazard","#,
        r#""what":"the compiler does not know the scalar hazard of gfx1201: the code has no s_wait_alu","#,
        r#""remedy":"compile with clang 22 or later","pc":1048576,"code_va":1048576,"launched_at":28672,"#,
        r#""instruction":"v_mov_b32_e32 v1, s4","other_pc":null,"workgroup":[0,0,0],"wave":0,"lane":null,"#,
        r#""register":null,"address":null,"seed":9,"count":1}"#,
    );
    assert_eq!(told_by(CHECK, &HAZARD, 1, 1, false), format!("{wrong}\n"));
    assert_eq!(told_by(trusting, &HAZARD, 1, 1, false), format!("{unaware}\n"));
    let store = concat!(
        r#"{"rule":"hazard","what":"a store of system scope while earlier accesses are outstanding","#,
        r#""remedy":"needs s_wait_loadcnt 0x0, s_wait_kmcnt 0x0 and s_wait_storecnt 0x0 before it","#,
        r#""pc":1048596,"code_va":1048576,"launched_at":28672,"instruction":"global_store_b32 v0, v1,"#,
        r#" s[0:1] offset:64 scope:SCOPE_SYS","other_pc":null,"workgroup":[0,0,0],"wave":0,"lane":null,"#,
        r#""register":null,"address":null,"seed":9,"count":1}"#,
    );
    assert_eq!(told_by(CHECK, &SYSTEM_STORE, 1, 1, false), format!("{store}\n"));
    assert_eq!(told_by(trusting, &SYSTEM_STORE, 1, 1, false), "");
}

/// Of three waves the last ends when the others have signalled, and so completes their barrier: the first may load
/// what the second has stored.
#[test]
fn a_wave_that_ends_completes_the_barrier_of_the_others() {
    let words = [
        0x3602_00FF, // v_and_b32 v1, 0x3ff, v0
        0x0000_03FF,
        0x7E04_0280, // v_mov_b32 v2, 0
        0x7E04_0501, // v_readfirstlane_b32 s2, v1
        0xBF88_F1FF, // s_wait_alu 0xf1ff
        0xBF0A_A002, // s_cmp_lt_u32 s2, 32
        0xBFA2_0005, // s_cbranch_scc1 signal
        0xBF0A_C002, // s_cmp_lt_u32 s2, 64
        0xBFA1_0009, // s_cbranch_scc0 delay
        0xD834_0000, // ds_store_b32 v2, v2
        0x0000_0202,
        0xBFC6_0000, // s_wait_dscnt 0
        0xBE80_4EC1, // signal: s_barrier_signal -1
        0xBF94_FFFF, // s_barrier_wait 0xffff
        0xD8D8_0000, // ds_load_b32 v4, v2
        0x0400_0002,
        0xBFC6_0000, // s_wait_dscnt 0
        0xBFB0_0000, // s_endpgm
        0xB008_03E8, // delay: s_movk_i32 s8, 1000
        0x8188_8108, // again: s_sub_co_i32 s8, s8, 1
        0xBF07_8008, // s_cmp_lg_u32 s8, 0
        0xBFA2_FFFD, // s_cbranch_scc1 again
        0xBFB0_0000, // s_endpgm
    ];
    for seed in 1..5 {
        let mut device = Device::new(Config { inspection: CHECK, seed, ..Config::default() });
        let code = device.code_words(&words);
        let dispatch = device.dispatch(&code, 1, 96, &[]);
        device.run(Dispatch { rsrc2: RSRC2_LDS, ..dispatch });
        assert_eq!(device.engine.findings_text(), "", "seed {seed}");
    }
}

/// A wave that has stopped for good has not ended.
#[test]
fn a_flush_orders_what_comes_after_it_behind_what_has_ended_and_nothing_else() {
    // s_endpgm, or s_trap 1 in its place.
    for (last, rules) in [(0xBFB0_0000, &[][..]), (0xBF90_0001, &["{\"rule\":\"race\""][..])] {
        let mut device = device(CHECK);
        let mut words = STORE.words.to_vec();
        *words.last_mut().unwrap() = last;
        let (first, second, out) = (device.code_words(&words), device.code(&STORE), device.buffer(4096));
        let ticket = device.submit(device.dispatch(&first, 1, 1, &[out.va]));
        device.until("it has ended or stopped", || ticket.is_done() || device.engine.take_fault().is_some());
        device.engine.synchronise(&device.space);
        device.run(device.dispatch(&second, 1, 1, &[out.va]));
        let text = device.engine.findings_text();
        let found: Vec<_> = text.lines().filter_map(|line| line.split(',').next()).collect();
        assert_eq!(found, rules);
    }
}

/// Kernels whose results other tests compare. They have no s_wait_alu, which is told, and nothing else is wrong.
#[test]
fn of_kernels_that_order_their_waves_only_the_scalar_hazard_is_told() {
    for seed in [1, 2, 3] {
        let mut device = Device::new(Config { inspection: CHECK, seed, ..Config::default() });
        let sum = device.code(&code::REDUCE_IN_LDS);
        let out = device.buffer(4096);
        let dispatch = device.dispatch(&sum, 3, 256, &[out.va]);
        device.run(Dispatch { rsrc2: RSRC2 | 2 << 15, ..dispatch });
        let ping = device.code(&code::PING_PONG);
        let word = device.buffer(4096);
        device.run(device.dispatch(&ping, 2, 32, &[word.va]));
        let text = device.engine.findings_text();
        let others: Vec<_> = text.lines().filter(|line| !line.contains(r#"{"rule":"hazard","#)).collect();
        assert_eq!(others, [""; 0], "seed {seed}");
    }
}

/// A debugger that notes where it stops, and leaves after so many stops.
struct Notes {
    stops: Arc<Mutex<Vec<String>>>,
    left: usize,
}

impl Debugger for Notes {
    fn before(&mut self, stop: &mut Stop<'_>) -> Action {
        let mut word = [0; 4];
        let is_read = stop.read_memory(stop.code_va, &mut word);
        let is_written = stop.write_memory(0x10_2000 + 64, &[1, 2, 3, 4]);
        let beyond = stop.read_memory(0x10_1000, &mut [0]) || stop.write_memory(0x10_1000, &[0]);
        let [x, y, z] = stop.workgroup;
        self.stops.lock().unwrap().push(format!(
            "{:#x} of {:#x}: {}, group {x} {y} {z}, wave {}, {} dwords, {} findings, {is_read} {:x}, {is_written}, {beyond}",
            stop.pc,
            stop.code_va,
            stop.instruction,
            stop.wave_index,
            stop.lds.len(),
            stop.findings,
            u32::from_le_bytes(word)
        ));
        // What is stored is changed on the way.
        if stop.pc == stop.code_va + 8 {
            stop.wave.vector[1].0[0] = 8;
        }
        self.left -= 1;
        if self.left == 0 { Action::Detach } else { Action::Continue }
    }
}

#[test]
fn a_debugger_is_asked_before_every_instruction_until_it_leaves() {
    for (left, expected) in [(3, 3), (9, 4)] {
        let mut device = device(Inspection { debug: true, check: false, ..CHECK });
        let stops = Arc::new(Mutex::new(Vec::new()));
        device.engine.inspection().unwrap().attach(Box::new(Notes { stops: stops.clone(), left }));
        let code = device.code(&STORE);
        let out = device.buffer(4096);
        let dispatch = device.dispatch(&code, 1, 1, &[out.va]);
        device.run(Dispatch { rsrc2: RSRC2_LDS, ..dispatch });
        let lines: Vec<_> = [
            (0, "v_mov_b32_e32 v0, 0"),
            (4, "v_mov_b32_e32 v1, 7"),
            (8, "global_store_b32 v0, v1, s[0:1]"),
            (20, "s_endpgm"),
        ]
        .iter()
        .take(expected)
        .map(|(offset, instruction)| {
            let pc = 0x10_0000 + offset;
            format!(
                "{pc:#x} of 0x100000: {instruction}, group 0 0 0, wave 0, 128 dwords, 0 findings, true 7e000280, true, \
                 false"
            )
        })
        .collect();
        assert_eq!(*stops.lock().unwrap(), lines);
        assert_eq!((out.view.load_u32(0), out.view.load_u32(64)), (8, 0x0403_0201));
    }
}

#[test]
fn a_profile_counts_waves_lanes_and_bytes() {
    let mut device = device(Inspection { check: false, profile: true, ..CHECK });
    let code = device.code(&STORE);
    let out = device.buffer(4096);
    // Waves of 32 and 8 lanes, in three groups.
    device.run(device.dispatch(&code, 3, 40, &[out.va]));
    let place = |pc, instruction, sectors| {
        format!(
            concat!(
                r#"{{"pc":{pc},"instruction":"{instruction}","count":6,"lanes":120,"sectors":{sectors},"#,
                r#""lds_passes":null,"lds_conflicts":null}}"#,
            ),
            pc = pc,
            instruction = instruction,
            sectors = sectors,
        )
    };
    let places = [
        place(1_048_576, "v_mov_b32_e32 v0, 0", "null"),
        place(1_048_580, "v_mov_b32_e32 v1, 7", "null"),
        place(1_048_584, "global_store_b32 v0, v1, s[0:1]", "6"),
        place(1_048_596, "s_endpgm", "null"),
    ]
    .join(",");
    let expected = format!(
        concat!(
            r#"{{"wave_instructions":24,"opcodes":{{"global_store_b32":6,"s_endpgm":6,"v_mov_b32":12}},"#,
            r#""places":[{places}],"bytes":{{"vector_load":0,"vector_store":480,"atomic":0,"scalar_load":0,"#,
            r#""scratch":0,"lds_load":0,"lds_store":0}},"lds":{{"accesses":0,"cycles":0,"#,
            r#""cycles_without_conflict":0}}}}"#,
        ),
        places = places,
    );
    assert_eq!(device.engine.inspection().unwrap().profile_text(), expected);
}
