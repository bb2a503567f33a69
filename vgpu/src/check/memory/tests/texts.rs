//! Whole texts of findings: one wrong program of the scenarios for each defect.

use super::rig::Rig;
use super::scenarios::PAIRS;

/// A program, and what is told of it. Waves 0 and 1 are groups of one dispatch, wave 2 is of the next one; instructions
/// are eight bytes from 0x1008 on, the data are at 0x10000 and flags at 0x10200.
const TEXTS: &[(&str, &str)] = &[
    (
        "flag without release wait",
        "rule 1: wave 1 of group 1, pc 0x1020, lane 0, address 0x10000: the other wave signalled before its store \
         had completed; other side: store by wave 0 of group 0, pc 0x1008; remedy: the other wave needs \
         s_wait_storecnt 0 before its signal or flag",
    ),
    (
        "flag without acquire wait",
        "rule 4: wave 1 of group 1, pc 0x1020, lane 0, address 0x10000: two waves access the same bytes and nothing \
         orders them; other side: store by wave 0 of group 0, pc 0x1008; remedy: order them: a barrier, or a flag \
         with scope (release by the producer, acquire by the consumer), or make both atomic with a scope that \
         covers both",
    ),
    (
        "flag without invalidation",
        "rule 5: wave 1 of group 1, pc 0x1020, lane 0, address 0x10000: the vector cache may hold an older value, \
         which this load returns; other side: store by wave 0 of group 0, pc 0x1008; remedy: inside a dispatch: \
         global_inv with a scope that covers both waves, after the wait for the flag or barrier; between \
         dispatches: ACQUIRE_MEM with GLV_INV",
    ),
    (
        "overwriting what another wave still loads",
        "rule 1: wave 1 of group 1, pc 0x1020, lane 0, address 0x10000: the other wave signalled before its load \
         had completed; other side: load by wave 0 of group 0, pc 0x1008; remedy: the other wave needs \
         s_wait_loadcnt 0 before its signal or flag",
    ),
    (
        "overwriting what a scalar load still reads",
        "rule 1: wave 1 of group 1, pc 0x1020, lane 0, address 0x10000: the other wave signalled before its scalar \
         load had completed; other side: scalar load by wave 0 of group 0, pc 0x1008; remedy: the other wave needs \
         s_wait_kmcnt 0 before its signal or flag",
    ),
    (
        "LDS barrier without wait",
        "rule 1: wave 1 of group 1, pc 0x1010, lane 0, address 0x10: the other wave signalled before its LDS \
         operation had completed; other side: LDS store by wave 0 of group 0, pc 0x1008; remedy: the other wave \
         needs s_wait_dscnt 0 before its signal or flag",
    ),
    (
        "uninitialised LDS",
        "rule 3: wave 0 of group 0, pc 0x1010, lane 0, address 0x8: the access reads LDS that no wave of the group \
         has written; remedy: store to the bytes first, and order the store before the load",
    ),
    (
        "LDS out of bounds",
        "rule 6: wave 0 of group 0, pc 0x1008, lane 0, address 0x400: the access is beyond the LDS allocation of \
         the group; 8 bytes at 1024 of 1024 bytes; remedy: ask for more LDS, or check the address computation",
    ),
    (
        "misaligned LDS",
        "rule 7: wave 0 of group 0, pc 0x1008, lane 0, address 0x8: the LDS address is not a multiple of the access \
         width: the access is split; address 8, 16 bytes expected; remedy: align the address: 8 for b64, 16 for b96 \
         and b128, the element for 2addr",
    ),
    (
        "misaligned atomic on LDS",
        "rule 6: wave 0 of group 0, pc 0x1018, lane 0, address 0x6: the address of an atomic is not a multiple of \
         its width; address 6, 4 bytes expected; remedy: align the address: an atomic is never split",
    ),
    (
        "misaligned global",
        "rule 7: wave 0 of group 0, pc 0x1008, lane 0, address 0x10002: the address is not a multiple of the \
         element, at most 4 bytes: the access is split; 4 bytes expected; remedy: align the address",
    ),
    (
        "outside the allocations",
        "rule 6: wave 0 of group 0, pc 0x1008, lane 0, address 0x10040: the access is not inside an allocation; 4 \
         bytes, 0 bytes past the end of x (64 bytes at 0x10000); remedy: check the address computation and the \
         guard of the last group",
    ),
    (
        "a prefetch outside the allocations",
        "rule 6: wave 0 of group 0, pc 0x1008, address 0x11000: the prefetch leaves the pages of all allocations; \
         128 bytes, 4032 bytes past the end of x (64 bytes at 0x10000); remedy: prefetch no line past the end: \
         where it is not mapped, the fault may end the process",
    ),
    (
        "a store to what is for reads",
        "rule 6: wave 0 of group 0, pc 0x1008, lane 0, address 0x10000: the kernel writes to memory that it may \
         only read; 4 bytes, 0 bytes into code (64 bytes at 0x10000); remedy: check the address computation: write \
         to buffers, not to code or arguments",
    ),
    (
        "ACQUIRE_MEM without GLK_INV",
        "rule 5: wave 2 of group 0, pc 0x1010, lane 0, address 0x10000: the scalar cache may hold an older value, \
         which this load returns; other side: store by wave 0 of group 0, pc 0x1008; remedy: ACQUIRE_MEM with \
         GLK_INV before the dispatch",
    ),
    (
        "ACQUIRE_MEM without GLI_INV",
        "rule 5: the command processor, pc 0x10000, address 0x10000: the instruction cache may hold the code that \
         was here before; other side: store by wave 0 of group 0, pc 0x1008; remedy: ACQUIRE_MEM with GLI_INV, or \
         s_icache_inv, after the write",
    ),
    (
        "a scalar load of data of the dispatch",
        "rule 6: wave 1 of group 1, pc 0x1010, lane 0, address 0x10000: a scalar load reads data that the same \
         dispatch stores; other side: store by wave 0 of group 0, pc 0x1008; remedy: use a vector load, or move the \
         load to a later dispatch",
    ),
    (
        "a fence without GL2_WB",
        "rule 5: the command processor, pc 0x0, address 0x10200: a fence is written while GL2 holds data that the \
         host cannot see; other side: store by wave 0 of group 0, pc 0x1008; 4 bytes in 1 ranges: 0x10000..0x10004; \
         remedy: RELEASE_MEM with GL2_WB",
    ),
    (
        "the host writes what GL2 has cached",
        "rule 5: wave 2 of group 0, pc 0x1010, lane 0, address 0x10000: the host wrote after GL2 had cached the \
         line; the load returns the older value; other side: write by the host, pc 0x0; remedy: ACQUIRE_MEM with \
         GL2_INV after the host's write; inside a dispatch a load of system scope, or global_inv scope:SCOPE_SYS \
         after the flag",
    ),
    (
        "a message to the host",
        "rule 1: wave 0 of group 0, pc 0x1010, lane 0, address 0x10200: a flag of system scope is written before \
         global_wb has completed; remedy: put s_wait_storecnt 0 between global_wb and the flag",
    ),
    (
        "a line for the host that is not written back",
        "rule 5: wave 0 of group 0, pc 0x1010, lane 0, address 0x10000: a write of system scope goes to a line of \
         which GL2 holds older stores that the host cannot see; other side: store by wave 0 of group 0, pc 0x1008; \
         remedy: global_wb scope:SCOPE_SYS and s_wait_storecnt 0 before it, or system scope for all of the line",
    ),
];

#[test]
fn each_text_says_what_it_must() {
    for (name, expected) in TEXTS {
        let pair = PAIRS.iter().find(|pair| pair.name == *name).unwrap();
        let mut rig = Rig::new();
        (pair.program)(&mut rig, false);
        assert_eq!(rig.checker.findings()[0].to_string(), *expected, "{name}");
    }
    let of_texts = |pair: &super::scenarios::Pair| {
        let named = |(name, _): &&(&str, &str)| {
            PAIRS.iter().any(|one| one.name == *name && one.defect == pair.defect)
        };
        TEXTS.iter().filter(named).count()
    };
    assert!(PAIRS.iter().all(|pair| of_texts(pair) == 1), "each defect has one text");
}
