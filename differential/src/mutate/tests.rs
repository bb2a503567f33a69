//! Changes of single instructions, and explanations of waits by what stands around them.

use super::*;

/// Words of llvm-mc 19.
const PROGRAM: &[&[u32]] = &[
    &[0xF400_2100, 0xF800_0000],              // s_load_b64 s[4:5], s[0:1], 0x0
    &[0xBFC7_0000],                           // s_wait_kmcnt 0x0
    &[0xEE05_0004, 0x0008_0001, 0x0000_0000], // global_load_b32 v1, v0, s[4:5] scope:SCOPE_DEV
    &[0xBFC0_0000],                           // s_wait_loadcnt 0x0
    &[0xEE0A_C07C, 0x0008_0000, 0x0000_0000], // global_inv scope:SCOPE_DEV
    &[0xD834_0010, 0x0000_0100],              // ds_store_b32 v0, v1 offset:16
    &[0xBFC6_0000],                           // s_wait_dscnt 0x0
    &[0xBE80_4EC1],                           // s_barrier_signal -1
    &[0xBF94_FFFF],                           // s_barrier_wait 0xffff
    &[0xBFC6_0000],                           // s_wait_dscnt 0x0
    &[0xBFB0_0000],                           // s_endpgm
];

fn program() -> Vec<Placed> {
    placed(PROGRAM)
}

fn placed(words: &[&[u32]]) -> Vec<Placed> {
    let mut offset = 0x100;
    let place = |words: &&[u32]| {
        let mut own = [0; 4];
        own[..words.len()].copy_from_slice(words);
        let instruction = zrt_isa::decode(&own).unwrap();
        assert_eq!(usize::from(instruction.dword_count), words.len());
        let placed = Placed { offset, words: own, instruction };
        offset += 4 * words.len() as u64;
        placed
    };
    words.iter().map(place).collect()
}

fn edits(class: Class) -> Vec<Vec<(u64, u32)>> {
    let all = mutants(&program(), class, WaveSize::Wave32, 0x1_0000, 0x200);
    all.into_iter().map(|mutant| mutant.edits).collect()
}

#[test]
fn each_class_changes_what_it_says() {
    assert_eq!(edits(Class::WaitRemoved).len(), 4);
    assert_eq!(edits(Class::WaitRemoved)[1], [(0x118, NOP)]);
    assert_eq!(edits(Class::WaitRaised)[1], [(0x118, 0xBFC0_0001)]);
    assert_eq!(edits(Class::InvalidateRemoved), [[(0x11C, NOP), (0x120, NOP), (0x124, NOP)]]);
    assert_eq!(edits(Class::BarrierRemoved), [[(0x134, NOP), (0x138, NOP)]]);
    assert_eq!(edits(Class::ScopeLowered), [[(0x110, 0x0000_0001)]]);
    let moved = edits(Class::OffsetMoved);
    assert_eq!(moved, [[(0x104, 0xF801_0000)], [(0x114, 0x0100_0000)], [(0x128, 0xD834_0210)]]);
    assert!(edits(Class::WriteBackRemoved).is_empty() && edits(Class::AluWaitRemoved).is_empty());
}

/// Three loads, and a wait for the oldest two: raising it concerns the second, removing it the first two.
#[test]
fn a_wait_with_a_count_is_about_the_older_operations() {
    let load = |register: u32| [0xEE05_0004, register, 0x0000_0000]; // global_load_b32 vN, v0, s[4:5]
    let copy = |register: u32| [0x7E00_0300 | 9 << 17 | register]; // v_mov_b32_e32 v9, vN
    let reason = |class, used: u32| {
        let words: [&[u32]; 5] = [&load(1), &load(2), &load(3), &[0xBFC0_0001], &copy(used)];
        let code = placed(&words);
        let all = mutants(&code, class, WaveSize::Wave32, 0, 0);
        explain(&code, &all[0], WaveSize::Wave32, &BTreeSet::new())
    };
    assert_eq!([1, 2, 3].map(|used| reason(Class::WaitRemoved, used)), [UNEXPLAINED, UNEXPLAINED, UNKNOWN]);
    assert_eq!([1, 2, 3].map(|used| reason(Class::WaitRaised, used)), [UNKNOWN, UNEXPLAINED, UNKNOWN]);
}

/// The last wait of the program has nothing to wait for. The others guard what directly follows them: an
/// address, the value of a store, or data announced by a barrier signal.
#[test]
fn waits_are_explained_by_what_stands_around_them() {
    let code = program();
    let all = mutants(&code, Class::WaitRemoved, WaveSize::Wave32, 0, 0);
    let reasons: Vec<&str> =
        all.iter().map(|mutant| explain(&code, mutant, WaveSize::Wave32, &BTreeSet::new())).collect();
    assert_eq!(reasons, [UNEXPLAINED, UNEXPLAINED, NOBODYS, NOTHING_OUTSTANDING]);
}

/// Words of llvm-mc 22. `s[4:5]` is the base of all accesses.
fn load(register: u32) -> Vec<u32> {
    vec![0xEE05_0004, register, 0] // global_load_b32 vN, v0, s[4:5]
}

fn load_pair(register: u32) -> Vec<u32> {
    vec![0xEE05_4004, register, 0] // global_load_b64 v[N:N+1], v0, s[4:5]
}

fn load_low(register: u32) -> Vec<u32> {
    vec![0xEE08_0004, register, 0] // global_load_d16_b16 vN, v0, s[4:5]
}

fn load_high(register: u32) -> Vec<u32> {
    vec![0xEE08_C004, register, 0] // global_load_d16_hi_b16 vN, v0, s[4:5]
}

fn store(register: u32, scope: u32) -> Vec<u32> {
    vec![0xEE06_8004, register << 23 | scope << 18, 0] // global_store_b32 v0, vN, s[4:5] scope
}

fn store_low(address: u32, register: u32) -> Vec<u32> {
    vec![0xEE06_4004, register << 23, address] // global_store_b16 vA, vN, s[4:5]
}

fn store_high(address: u32, register: u32) -> Vec<u32> {
    vec![0xEE09_4004, register << 23, address] // global_store_d16_hi_b16 vA, vN, s[4:5]
}

fn copy(register: u32) -> Vec<u32> {
    vec![0x7E00_0300 | 9 << 17 | register] // v_mov_b32 v9, vN
}

fn set(register: u32) -> Vec<u32> {
    vec![0x7E00_0280 | register << 17] // v_mov_b32 vN, 0
}

fn lds_load(register: u32) -> Vec<u32> {
    vec![0xD8D8_0000, register << 24] // ds_load_b32 vN, v0
}

fn scalar_load(register: u32) -> Vec<u32> {
    vec![0xF400_0000 | register << 6, 0xF800_0000] // s_load_b32 sN, s[0:1], 0x0
}

fn scalar_copy(register: u32) -> Vec<u32> {
    vec![0xBE89_0000 | register] // s_mov_b32 s9, sN
}

const WAIT_LOAD: u32 = 0xBFC0_0000;
const WAIT_STORE: u32 = 0xBFC1_0000;
const WAIT_LDS: u32 = 0xBFC6_0000;
const WAIT_SCALAR: u32 = 0xBFC7_0000;
const WAIT_LOAD_LDS: u32 = 0xBFC8_0000;
const WAIT_STORE_LDS: u32 = 0xBFC9_0000;
const WAIT_IDLE: u32 = 0xBF8A_0000;
const SIGNAL: u32 = 0xBE80_4EC1;
const BARRIER_WAIT: u32 = 0xBF94_FFFF;
const BRANCH: u32 = 0xBFA0_0000;

fn code_of(words: &[Vec<u32>]) -> Vec<Placed> {
    placed(&words.iter().map(Vec::as_slice).collect::<Vec<&[u32]>>())
}

/// Why a change of `wait`, which stands between the others, has no effect.
fn reason_of(class: Class, before: &[Vec<u32>], wait: u32, after: &[Vec<u32>]) -> &'static str {
    let code = code_of(&[before, &[vec![wait]], after].concat());
    let mutant = Mutant { class, index: before.len(), edits: Vec::new() };
    explain(&code, &mutant, WaveSize::Wave32, &BTreeSet::new())
}

/// The same of a removed wait.
fn reason(before: &[Vec<u32>], wait: u32, after: &[Vec<u32>]) -> &'static str {
    reason_of(Class::WaitRemoved, before, wait, after)
}

#[test]
fn every_class_has_a_name() {
    let names = Class::ALL.map(|class| format!("[{class:20}]"));
    assert_eq!(
        names,
        [
            "[wait removed        ]",
            "[wait raised by one  ]",
            "[s_wait_alu removed  ]",
            "[barrier removed     ]",
            "[scope lowered       ]",
            "[global_inv removed  ]",
            "[global_wb removed   ]",
            "[offset moved        ]",
        ]
    );
}

/// Edits of the mutants of a class, with buffers of 64 KiB and 512 bytes of LDS.
fn changes(class: Class, words: &[Vec<u32>]) -> Vec<Vec<(u64, u32)>> {
    let all = mutants(&code_of(words), class, WaveSize::Wave32, 0x1_0000, 0x200);
    all.into_iter().map(|mutant| mutant.edits).collect()
}

#[test]
fn waits_for_memory_are_removed() {
    let waits = [WAIT_LOAD, WAIT_STORE, WAIT_LDS, WAIT_SCALAR, WAIT_LOAD_LDS | 0x302, WAIT_STORE_LDS | 0x102];
    for wait in waits {
        assert_eq!(changes(Class::WaitRemoved, &[vec![wait]]), [[(0x100, NOP)]], "{wait:#x}");
    }
    for other in [SIGNAL, BARRIER_WAIT, BRANCH, WAIT_IDLE, 0xBF88_FF9E] {
        assert!(changes(Class::WaitRemoved, &[vec![other]]).is_empty(), "{other:#x}");
    }
    assert_eq!(changes(Class::AluWaitRemoved, &[vec![0xBF88_FF9E], vec![WAIT_LOAD]]), [[(0x100, NOP)]]);
    let write_back = vec![0xEE0B_007C, 0x0008_0000, 0];
    let removed = [(0x100, NOP), (0x104, NOP), (0x108, NOP)];
    assert_eq!(changes(Class::WriteBackRemoved, std::slice::from_ref(&write_back)), [removed]);
    assert!(changes(Class::InvalidateRemoved, &[write_back]).is_empty());
}

/// Counts have six bits; both of two rise.
#[test]
fn waits_are_raised_by_one_as_far_as_they_can_count() {
    for (wait, raised) in [
        (WAIT_LOAD, Some(WAIT_LOAD | 1)),
        (WAIT_LOAD | 62, Some(WAIT_LOAD | 63)),
        (WAIT_LOAD | 63, None),
        (WAIT_STORE | 7, Some(WAIT_STORE | 8)),
        (WAIT_LDS | 63, None),
        (WAIT_SCALAR, Some(WAIT_SCALAR | 1)),
        (WAIT_LOAD_LDS | 0x302, Some(WAIT_LOAD_LDS | 0x403)),
        (WAIT_LOAD_LDS | 0x3E3E, Some(WAIT_LOAD_LDS | 0x3F3F)),
        (WAIT_LOAD_LDS | 0x3F00, None),
        (WAIT_STORE_LDS | 0x003F, None),
        (WAIT_STORE_LDS | 0x0100, Some(WAIT_STORE_LDS | 0x0201)),
        (BARRIER_WAIT, None),
    ] {
        let expected: Vec<Vec<(u64, u32)>> = raised.iter().map(|word| vec![(0x100, *word)]).collect();
        assert_eq!(changes(Class::WaitRaised, &[vec![wait]]), expected, "{wait:#x}");
    }
}

#[test]
fn a_barrier_is_a_signal_and_a_wait_soon_after_it() {
    let apart =
        |count: usize| [vec![vec![SIGNAL]], vec![vec![NOP]; count], vec![vec![BARRIER_WAIT]]].concat();
    assert_eq!(changes(Class::BarrierRemoved, &apart(0)), [[(0x100, NOP), (0x104, NOP)]]);
    assert_eq!(changes(Class::BarrierRemoved, &apart(63)), [[(0x100, NOP), (0x200, NOP)]]);
    assert!(changes(Class::BarrierRemoved, &apart(64)).is_empty());
    assert!(changes(Class::BarrierRemoved, &[vec![BARRIER_WAIT], vec![BARRIER_WAIT]]).is_empty());
    assert!(changes(Class::BarrierRemoved, &[vec![BARRIER_WAIT], vec![SIGNAL]]).is_empty());
}

#[test]
fn scopes_of_accesses_are_lowered_to_the_smallest() {
    for (words, lowered) in [
        (vec![0xEE05_0004, 0x000C_0001, 0], Some(0x0000_0001)), // global_load_b32 scope:SCOPE_SYS
        (vec![0xEE05_0004, 0x0014_0001, 0], Some(0x0010_0001)), // the same with th:TH_LOAD_NT scope:SCOPE_SE
        (store(1, 2), Some(0x0080_0000)),
        (vec![0xEE0D_4004, 0x0088_0000, 0x0000_0400], Some(0x0080_0000)), // global_atomic_add_u32 scope:SCOPE_DEV
        (vec![0xEC06_807C, 0x0088_0000, 2], Some(0x0080_0000)),           // flat_store_b32 scope:SCOPE_DEV
        (load(1), None),
        (vec![0xC405_007C, 0x4088_1001, 0], None), // buffer_load_b32 scope:SCOPE_DEV
        (vec![0xEE0A_C07C, 0x0008_0000, 0], None), // global_inv scope:SCOPE_DEV
        (vec![0xEE0B_007C, 0x0008_0000, 0], None), // global_wb scope:SCOPE_DEV
        (vec![0xEE13_C07C, 0x000C_0000, 0], None), // global_wbinv scope:SCOPE_SYS
        (lds_load(1), None),
    ] {
        let expected: Vec<Vec<(u64, u32)>> = lowered.iter().map(|word| vec![(0x104, *word)]).collect();
        assert_eq!(changes(Class::ScopeLowered, std::slice::from_ref(&words)), expected, "{words:x?}");
    }
}

/// By the size of what they may access, if the field has room: 24 bits with a sign, and 16 bits for LDS.
#[test]
fn offsets_are_moved_past_all_memory() {
    for (words, moved) in [
        (load(1), Some((0x108, 0x0100_0000))),
        (vec![0xEE05_0004, 1, 0x0123_4505], Some((0x108, 0x0223_4505))), // v5, offset:0x12345
        (vec![0xEE05_0004, 1, 0xFFFF_F000], Some((0x108, 0x00FF_F000))), // offset:-16
        (vec![0xEE05_0004, 1, 0x7EFF_FF00], Some((0x108, 0x7FFF_FF00))), // offset:0x7effff
        (vec![0xEE05_0004, 1, 0x7F00_0000], None),                       // offset:0x7f0000
        (store(1, 0), Some((0x108, 0x0100_0000))),
        (vec![0xEE0D_4004, 0x0088_0000, 0x0000_0400], Some((0x108, 0x0100_0400))), // global_atomic_add_u32
        (scalar_load(4), Some((0x104, 0xF801_0000))),
        (vec![0xF400_0100, 0xF8FF_FFF8], Some((0x104, 0xF800_FFF8))), // -0x8
        (vec![0xF400_0100, 0xF87E_FFFC], Some((0x104, 0xF87F_FFFC))),
        (vec![0xF400_0100, 0xF87F_0000], None),
        (vec![0xD8D8_FDFC, 0x0100_0000], Some((0x100, 0xD8D8_FFFC))), // ds_load_b32 offset:65020
        (vec![0xD8D8_FDFF, 0x0100_0000], Some((0x100, 0xD8D8_FFFF))),
        (vec![0xD8D8_FE00, 0x0100_0000], None),
        (vec![0xD834_0010, 0x0000_0100], Some((0x100, 0xD834_0210))), // ds_store_b32 offset:16
        (vec![0xD800_0008, 0x0000_0100], Some((0x100, 0xD800_0208))), // ds_add_u32 offset:8
        (vec![0xD804_0000, 0x0000_0100], Some((0x100, 0xD804_0200))), // ds_sub_u32
        (vec![0xD824_0000, 0x0000_0100], Some((0x100, 0xD824_0200))), // ds_and_b32
        (vec![0xD828_0000, 0x0000_0100], Some((0x100, 0xD828_0200))), // ds_or_b32
        (vec![0xD82C_0000, 0x0000_0100], Some((0x100, 0xD82C_0200))), // ds_xor_b32
        (vec![0xD81C_0000, 0x0000_0100], Some((0x100, 0xD81C_0200))), // ds_min_u32
        (vec![0xD820_000C, 0x0000_0100], Some((0x100, 0xD820_020C))), // ds_max_u32 offset:12
    ] {
        let expected: Vec<Vec<(u64, u32)>> = moved.iter().map(|edit| vec![*edit]).collect();
        assert_eq!(changes(Class::OffsetMoved, std::slice::from_ref(&words)), expected, "{words:x?}");
    }
}

/// They have two offsets, or none that is an address, or access nothing.
#[test]
fn offsets_of_other_instructions_stay() {
    for words in [
        vec![0xD8DC_0201, 0x0200_0000], // ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:2
        vec![0xD838_0201, 0x0002_0100], // ds_store_2addr_b32 v0, v1, v2 offset0:1 offset1:2
        vec![0xDAC4_0010, 0x0100_0000], // ds_load_addtid_b32 v1 offset:16
        vec![0xDAC0_0010, 0x0000_0100], // ds_store_addtid_b32 v1 offset:16
        vec![0xDACC_0000, 0x0100_0200], // ds_bpermute_b32 v1, v0, v2
        vec![0xDAC8_0000, 0x0100_0200], // ds_permute_b32 v1, v0, v2
        vec![0xD8D4_041F, 0x0100_0000], // ds_swizzle_b32 v1, v0 offset:swizzle(SWAP,1)
        vec![0xF404_C100, 0xF800_0100], // s_prefetch_data s[0:1], 0x100, null, 4
        vec![0xF404_2000, 0x0000_0000], // s_dcache_inv
        vec![0xEE0A_C07C, 0x0008_0000, 0], // global_inv
        vec![0xEE0B_007C, 0x0008_0000, 0], // global_wb
        vec![0xC405_007C, 0x4080_1001, 0], // buffer_load_b32 v1, v0, s[8:11], null offen
        vec![0xEC05_007C, 0x000C_0001, 2], // flat_load_b32 v1, v[2:3]
        copy(1),
    ] {
        assert!(changes(Class::OffsetMoved, std::slice::from_ref(&words)).is_empty(), "{words:x?}");
    }
}

#[test]
fn what_is_no_wait_is_explained_by_its_class() {
    for (class, text) in [
        (Class::AluWaitRemoved, "a wait that the path or the lenient rule does not need"),
        (Class::BarrierRemoved, "no conflict between its sides, or another barrier"),
        (Class::ScopeLowered, "sides on one compute unit, or ordered by what stands beside it"),
        (Class::InvalidateRemoved, "nothing stale is loaded behind it, or another one"),
        (Class::WriteBackRemoved, "no host looks on"),
        (Class::OffsetMoved, "never executed by a lane, or unexplained"),
    ] {
        assert_eq!(reason_of(class, &[], NOP, &[]), text);
    }
}

/// A wait before it for all but the youngest leaves that one to it.
#[test]
fn operations_that_an_earlier_wait_left_open_are_guarded() {
    let before = [load(1), load(2), load(3), vec![WAIT_LOAD | 1], load(4)];
    let used = |register| reason(&before, WAIT_LOAD, &[copy(register)]);
    assert_eq!([1, 2, 3, 4].map(used), [UNKNOWN, UNKNOWN, UNEXPLAINED, UNEXPLAINED]);
    let idle = |register| reason(&[load(1), vec![WAIT_IDLE], load(2)], WAIT_LOAD, &[copy(register)]);
    assert_eq!([1, 2].map(idle), [UNKNOWN, UNEXPLAINED]);
    // A wait for something else leaves all.
    let other = |register| reason(&[load(1), vec![WAIT_LDS], load(2)], WAIT_LOAD, &[copy(register)]);
    assert_eq!([1, 2].map(other), [UNEXPLAINED, UNEXPLAINED]);
}

/// What a later wait still leaves open, counted with operations since then, is not guarded by it.
#[test]
fn a_later_wait_guards_what_it_does_not_leave_open() {
    let used = |later: &[Vec<u32>], register| {
        reason(&[load(1), load(2)], WAIT_LOAD, &[later, &[copy(register)]].concat())
    };
    let both = |later: &[Vec<u32>]| [used(later, 1), used(later, 2)];
    assert_eq!(both(&[vec![WAIT_LOAD]]), [LATER_WAIT; 2]);
    assert_eq!(both(&[vec![WAIT_LOAD | 1]]), [UNKNOWN, UNEXPLAINED]);
    assert_eq!(both(&[vec![WAIT_LOAD | 2]]), [UNEXPLAINED; 2]);
    assert_eq!(both(&[load(3), vec![WAIT_LOAD | 1]]), [LATER_WAIT; 2]);
    assert_eq!(both(&[load(3), vec![WAIT_LOAD | 2]]), [UNKNOWN, UNEXPLAINED]);
    assert_eq!(both(&[load(3), load(4), vec![WAIT_LOAD | 2]]), [LATER_WAIT; 2]);
    assert_eq!(both(&[load(3), load(4), vec![WAIT_LOAD | 3]]), [UNKNOWN, UNEXPLAINED]);
    assert_eq!(both(&[load(3), load(4), vec![WAIT_LOAD | 4]]), [UNEXPLAINED; 2]);
    assert_eq!(both(&[lds_load(3), vec![WAIT_LOAD | 1]]), [UNKNOWN, UNEXPLAINED]);
    assert_eq!(both(&[vec![WAIT_LDS]]), [UNEXPLAINED; 2]);
    assert_eq!(both(&[vec![WAIT_LOAD_LDS | 63]]), [LATER_WAIT; 2]);
    assert_eq!(both(&[vec![WAIT_IDLE]]), [LATER_WAIT; 2]);
}

/// Scalar loads end in any order: only a wait for all of them says anything of one.
#[test]
fn a_wait_that_leaves_scalar_loads_open_guards_none() {
    let after = |wait| reason(&[scalar_load(4)], WAIT_SCALAR, &[scalar_load(8), vec![wait], scalar_copy(4)]);
    assert_eq!([WAIT_SCALAR, WAIT_SCALAR | 1].map(after), [LATER_WAIT, UNEXPLAINED]);
    let before = |wait| reason(&[scalar_load(4), vec![wait], scalar_load(8)], WAIT_SCALAR, &[scalar_copy(4)]);
    assert_eq!([WAIT_SCALAR, WAIT_SCALAR | 1].map(before), [UNKNOWN, UNEXPLAINED]);
    // Nor does a wait that leaves one open say which.
    let raised =
        |class| reason_of(class, &[scalar_load(4), scalar_load(8)], WAIT_SCALAR | 1, &[scalar_copy(8)]);
    assert_eq!([Class::WaitRemoved, Class::WaitRaised].map(raised), [UNEXPLAINED; 2]);
}

#[test]
fn stores_are_guarded_for_those_who_are_told_of_them() {
    let after = |after: &[Vec<u32>]| reason(&[store(1, 0)], WAIT_STORE, after);
    assert_eq!(after(&[]), NO_SIGNAL);
    assert_eq!(after(&[set(1)]), NO_SIGNAL);
    assert_eq!(after(&[store(2, 0)]), NO_SIGNAL);
    assert_eq!([1, 2, 3].map(|scope| after(&[store(2, scope)])), [NOBODYS; 3]);
    assert_eq!(after(&[vec![0xEE05_0004, 0x000C_0003, 0]]), NOBODYS);
    assert_eq!(after(&[vec![SIGNAL]]), NOBODYS);
    assert_eq!(after(&[vec![BRANCH], store(2, 2)]), NO_SIGNAL);
    // Of a load, a flag says nothing.
    let of_load = |after: &[Vec<u32>]| reason(&[load(1)], WAIT_LOAD, after);
    assert_eq!([0, 2].map(|scope| of_load(&[store(2, scope)])), [UNKNOWN; 2]);
    assert_eq!([0, 2].map(|scope| of_load(&[store(1, scope)])), [UNEXPLAINED; 2]);
    assert_eq!(of_load(&[vec![SIGNAL], copy(1)]), NOBODYS);
}

#[test]
fn registers_meet_where_their_ranges_do() {
    let pair = |after: Vec<u32>| reason(&[load_pair(2)], WAIT_LOAD, &[after]);
    assert_eq!(
        [1, 2, 3, 4].map(|register| pair(copy(register))),
        [UNKNOWN, UNEXPLAINED, UNEXPLAINED, UNKNOWN]
    );
    assert_eq!(
        [1, 2, 3, 4].map(|register| pair(set(register))),
        [UNKNOWN, UNEXPLAINED, UNEXPLAINED, UNKNOWN]
    );
    let pairs = |first| pair(load_pair(first));
    assert_eq!([0, 1, 2, 3, 4].map(pairs), [UNKNOWN, UNEXPLAINED, UNEXPLAINED, UNEXPLAINED, UNKNOWN]);
}

/// Halves of a register are moved by themselves; an address is all of it.
#[test]
fn halves_of_registers_meet_their_own_kind() {
    let after = |load: Vec<u32>, after: Vec<u32>| reason(&[load], WAIT_LOAD, &[after]);
    assert_eq!(after(load_low(1), store_low(9, 1)), UNEXPLAINED);
    assert_eq!(after(load_low(1), store_high(9, 1)), UNKNOWN);
    assert_eq!(after(load_high(1), store_low(9, 1)), UNKNOWN);
    assert_eq!(after(load_high(1), store_high(9, 1)), UNEXPLAINED);
    for load in [load_low(1), load_high(1)] {
        assert_eq!(after(load.clone(), store(1, 0)), UNEXPLAINED);
        assert_eq!(after(load.clone(), copy(1)), UNEXPLAINED);
        for store in [store_low(1, 9), store_high(1, 9)] {
            assert_eq!(after(load.clone(), store), UNEXPLAINED);
        }
    }
    assert_eq!(after(load(1), store_low(9, 1)), UNEXPLAINED);
    assert_eq!(after(load(1), store_high(9, 1)), UNEXPLAINED);
    assert_eq!(after(load_low(1), load_low(1)), UNEXPLAINED);
    assert_eq!(after(load_low(1), load_high(1)), UNKNOWN);
}

/// LDS writes registers in order, so one of its loads may follow another; loads from memory do not.
#[test]
fn a_register_may_be_loaded_again_by_lds_only() {
    let lds = |after: Vec<u32>| reason(&[lds_load(1)], WAIT_LDS, &[after]);
    assert_eq!(lds(lds_load(1)), UNKNOWN);
    assert_eq!(lds(load(1)), UNEXPLAINED);
    assert_eq!(lds(set(1)), UNEXPLAINED);
    assert_eq!(lds(copy(1)), UNEXPLAINED);
    // Its address, of course, is read: ds_load_b32 v2, v1.
    assert_eq!(lds(vec![0xD8D8_0000, 2 << 24 | 1]), UNEXPLAINED);
    let memory = |after: Vec<u32>| reason(&[load(1)], WAIT_LOAD, &[after]);
    assert_eq!([load(1), lds_load(1), set(1)].map(memory), [UNEXPLAINED; 3]);
}

/// Words that leave: s_branch, s_cbranch_scc0 and s_cbranch_vccz, s_swappc_b64, s_setpc_b64, s_call_b64, s_endpgm.
const LEAVING: [u32; 7] =
    [BRANCH | 0x40, 0xBFA1_0040, 0xBFA3_0040, 0xBE82_4904, 0xBE80_4802, 0xBA02_0040, 0xBFB0_0000];

#[test]
fn beyond_a_branch_or_a_call_nothing_is_known() {
    for leaving in LEAVING {
        assert_eq!(reason(&[load(1), vec![leaving]], WAIT_LOAD, &[copy(1)]), UNKNOWN, "{leaving:#x}");
        assert_eq!(reason(&[load(1)], WAIT_LOAD, &[vec![leaving], copy(1)]), UNKNOWN, "{leaving:#x}");
    }
    assert_eq!(reason(&[load(1), set(2)], WAIT_LOAD, &[set(3), copy(1)]), UNEXPLAINED);
    assert_eq!(reason(&[set(2)], WAIT_LOAD, &[copy(1)]), NOTHING_OUTSTANDING);
    assert_eq!(reason(&[vec![BRANCH | 0x40], load(1)], WAIT_LOAD, &[copy(1)]), UNEXPLAINED);
}

/// A branch counts words from the instruction behind it. The one here ends at 0x11c.
#[test]
fn beyond_the_target_of_a_branch_nothing_is_known() {
    let back = |words: i16| vec![BRANCH | u32::from(words as u16)];
    // 0x100: load, 0x10c: v_mov, 0x110: the wait, 0x114: v_mov v9, 0x118: the branch.
    let before = |words| reason(&[load(1), set(5)], WAIT_LOAD, &[copy(1), back(words)]);
    assert_eq!([-7, -4, -3].map(before), [UNEXPLAINED, UNKNOWN, UNEXPLAINED]);
    // 0x100: load, 0x10c: the wait, 0x110: v_mov, 0x114: v_mov v9, 0x118: the branch.
    let after = |words| reason(&[load(1)], WAIT_LOAD, &[set(5), copy(1), back(words)]);
    assert_eq!([-4, -3, -2].map(after), [UNEXPLAINED, UNKNOWN, UNEXPLAINED]);
    // 0x100: the branch, forward to 0x110, where v_mov v5 is.
    let forward = |words| reason(&[vec![BRANCH | words], load(1), set(5)], WAIT_LOAD, &[copy(1)]);
    assert_eq!([3, 4].map(forward), [UNKNOWN, UNEXPLAINED]);
}

/// The most serious reason of both counters; what the program's own finding is at is not for the wait to explain.
#[test]
fn a_wait_for_two_counters_has_the_more_serious_reason() {
    let of = |before: &[Vec<u32>], after: &[Vec<u32>]| reason(before, WAIT_LOAD_LDS, after);
    assert_eq!(of(&[], &[]), NOTHING_OUTSTANDING);
    assert_eq!(of(&[load(1)], &[copy(1)]), UNEXPLAINED);
    assert_eq!(of(&[lds_load(1)], &[copy(1)]), UNEXPLAINED);
    assert_eq!(of(&[load(1), lds_load(2)], &[vec![WAIT_LOAD], copy(2)]), UNEXPLAINED);
    assert_eq!(of(&[load(1), lds_load(2)], &[vec![WAIT_LOAD], vec![WAIT_LDS]]), LATER_WAIT);
    assert_eq!(of(&[load(1), lds_load(2)], &[vec![WAIT_LDS]]), UNKNOWN);
    assert_eq!(reason(&[store(1, 0), lds_load(2)], WAIT_STORE_LDS, &[vec![WAIT_LDS]]), NO_SIGNAL);
}

#[test]
fn a_use_where_the_program_has_a_finding_is_shadowed() {
    let words = [load(1), vec![WAIT_LOAD], set(2), copy(1)];
    let known = |known: u64| {
        let mutant = Mutant { class: Class::WaitRemoved, index: 1, edits: Vec::new() };
        explain(&code_of(&words), &mutant, WaveSize::Wave32, &[0x100, known].into())
    };
    // 0x100: load, 0x10c: the wait, 0x110: v_mov v2, 0x114: v_mov v9.
    assert_eq!([0x10C, 0x110, 0x114].map(known), [UNEXPLAINED, UNEXPLAINED, SHADOWED]);
    // Other reasons stay what they are.
    let unused = [load(1), vec![WAIT_LOAD], set(2)];
    let mutant = Mutant { class: Class::WaitRemoved, index: 1, edits: Vec::new() };
    assert_eq!(explain(&code_of(&unused), &mutant, WaveSize::Wave32, &(0..0x200).collect()), UNKNOWN);
}

#[test]
fn words_are_an_instruction_if_they_decode_to_it() {
    let [load, wait, nothing] = [[0xF400_2100, 0xF800_0000, 0, 0], [0xBFC7_0000, 0, 0, 0], [0xFFFF_FFFF; 4]];
    let expected = zrt_isa::decode(&load).unwrap();
    let found = [load, wait, nothing].map(|words| is_instruction(&words, WaveSize::Wave32, &expected));
    assert_eq!(found, [true, false, false]);
}
