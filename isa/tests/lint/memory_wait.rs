//! Results of memory and messages, and the waits before a barrier (instruction set reference §4).

use super::compare;
use zrt_isa::lint::Rule;

twins! {
    a_load_is_waited_for: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    loads_return_in_order: Rule::MemoryWait, "v_mov_b32_e32 v3, v2", "v2", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e060302, // v_mov_b32 v3, v2
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    the_wait_says_how_many: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x1";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc00002, // s_wait_loadcnt 0x2
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc8013f, // s_wait_loadcnt_dscnt 0x13f
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    a_wait_of_two_counters: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x1";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc80200, // s_wait_loadcnt_dscnt 0x200
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc83f00, // s_wait_loadcnt_dscnt 0x3f00
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    lds_beside_stores: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_dscnt 0x0";
    [
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xbfc90001, // s_wait_storecnt_dscnt 0x1
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xbfc93f00, // s_wait_storecnt_dscnt 0x3f00
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    a_direct_load: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_expcnt 0x0";
    [
        0xbefd0004, // s_mov_b32 m0, s4
        0xce100001, // ds_direct_load v1
        0xbfc60000, // s_wait_dscnt 0x0
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xbefd0004, // s_mov_b32 m0, s4
        0xce100001, // ds_direct_load v1
        0xbfc40000, // s_wait_expcnt 0x0
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    scalar_registers_that_m0_selects: Rule::MemoryWait, "s_movrels_b32 s8, s6", "s[6:7]", "s_wait_kmcnt 0x0";
    [
        0xbefd0004, // s_mov_b32 m0, s4
        0xf4002182, 0xf8000000, // s_load_b64 s[6:7], s[4:5], 0x0
        0xbe884006, // s_movrels_b32 s8, s6
        0xbfb00000, // s_endpgm
    ]
    [
        0xbefd0004, // s_mov_b32 m0, s4
        0xf4002182, 0xf8000000, // s_load_b64 s[6:7], s[4:5], 0x0
        0xbe884008, // s_movrels_b32 s8, s8
        0xbfb00000, // s_endpgm
    ]

    vector_registers_that_m0_selects: Rule::MemoryWait, "v_movrels_b32_e32 v8, v0", "v[0:1]", "s_wait_loadcnt 0x0";
    [
        0xbefd0004, // s_mov_b32 m0, s4
        0xee054004, 0x00000000, 0x00000000, // global_load_b64 v[0:1], v0, s[4:5]
        0x7e108700, // v_movrels_b32 v8, v0
        0xbfb00000, // s_endpgm
    ]
    [
        0xbefd0004, // s_mov_b32 m0, s4
        0xee054004, 0x00000000, 0x00000000, // global_load_b64 v[0:1], v0, s[4:5]
        0x7e108702, // v_movrels_b32 v8, v2
        0xbfb00000, // s_endpgm
    ]

    stored_data_is_read: Rule::MemoryWait, "global_store_b32 v0, v1, s[6:7]", "v1", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee068006, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[6:7]
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xbf8a0000, // s_wait_idle
        0xee068006, 0x00800000, 0x00000000, // global_store_b32 v0, v1, s[6:7]
        0xbfb00000, // s_endpgm
    ]

    part_of_a_wide_load: Rule::MemoryWait, "v_add_f32_e32 v6, v0, v4", "v4", "";
    [
        0xee05c004, 0x00000002, 0x00000000, // global_load_b128 v[2:5], v0, s[4:5]
        0x060c0900, // v_add_f32 v6, v0, v4
        0xbfb00000, // s_endpgm
    ]
    [
        0xee05c004, 0x00000002, 0x00000000, // global_load_b128 v[2:5], v0, s[4:5]
        0x060c0100, // v_add_f32 v6, v0, v0
        0xbfb00000, // s_endpgm
    ]

    overwriting_what_a_load_brings: Rule::MemoryWait, "v_mov_b32_e32 v1, 0", "v1", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0x7e020280, // v_mov_b32 v1, 0
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e020280, // v_mov_b32 v1, 0
        0xbfb00000, // s_endpgm
    ]

    overwriting_by_another_counter: Rule::MemoryWait, "ds_load_b32 v1, v0", "v1", "s_wait_loadcnt 0x0";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xbfc00000, // s_wait_loadcnt 0x0
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xbfb00000, // s_endpgm
    ]

    loads_of_memory_write_in_any_order: Rule::MemoryWait, "global_load_b32 v1, v0, s[6:7]", "v1", "s_wait_loadcnt 0x1";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xee050006, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[6:7]
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbfc00001, // s_wait_loadcnt 0x1
        0xee050006, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[6:7]
        0xbfb00000, // s_endpgm
    ]

    loads_of_lds_write_in_order: Rule::MemoryWait, "global_load_b32 v1, v0, s[4:5]", "v1", "s_wait_dscnt 0x0";
    [
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xbfb00000, // s_endpgm
    ]
    [
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xd8d80004, 0x01000000, // ds_load_b32 v1, v0 offset:4
        0xbfb00000, // s_endpgm
    ]

    a_store_waits_for_its_half: Rule::MemoryWait, "global_store_d16_hi_b16 v0, v2, s[6:7]", "v2", "s_wait_loadcnt 0x0";
    [
        0xee080004, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v0, s[4:5]
        0xee08c004, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v0, s[4:5] offset:2
        0xbfc00001, // s_wait_loadcnt 0x1
        0xee094006, 0x01000000, 0x00000000, // global_store_d16_hi_b16 v0, v2, s[6:7]
        0xbfb00000, // s_endpgm
    ]
    [
        0xee080004, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v0, s[4:5]
        0xee08c004, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v0, s[4:5] offset:2
        0xbfc00001, // s_wait_loadcnt 0x1
        0xee064006, 0x01000000, 0x00000000, // global_store_b16 v0, v2, s[6:7]
        0xbfb00000, // s_endpgm
    ]

    arithmetic_waits_for_both_halves: Rule::MemoryWait, "v_mov_b16_e32 v3.l, v2.l", "v2", "s_wait_loadcnt 0x0";
    [
        0xee080004, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v0, s[4:5]
        0xee08c004, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v0, s[4:5] offset:2
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e063902, // v_mov_b16_e32 v3.l, v2.l
        0xbfb00000, // s_endpgm
    ]
    [
        0xee080004, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v0, s[4:5]
        0xee08c004, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v0, s[4:5] offset:2
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e063902, // v_mov_b16_e32 v3.l, v2.l
        0xbfb00000, // s_endpgm
    ]

    halves_by_two_counters: Rule::MemoryWait, "global_load_d16_hi_b16 v2, v0, s[4:5] offset:2", "v2", "s_wait_dscnt 0x0";
    [
        0xda9c0000, 0x02000000, // ds_load_u16_d16_hi v2, v0
        0xee08c004, 0x00000002, 0x00000200, // global_load_d16_hi_b16 v2, v0, s[4:5] offset:2
        0xbfb00000, // s_endpgm
    ]
    [
        0xda9c0000, 0x02000000, // ds_load_u16_d16_hi v2, v0
        0xee080004, 0x00000002, 0x00000000, // global_load_d16_b16 v2, v0, s[4:5]
        0xbfb00000, // s_endpgm
    ]

    atomics_that_return: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x0";
    [
        0xee0d4004, 0x00100001, 0x00000000, // global_atomic_add_u32 v1, v0, v0, s[4:5] th:TH_ATOMIC_RETURN
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xee0d4004, 0x00800000, 0x00000000, // global_atomic_add_u32 v0, v1, s[4:5]
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    lds: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_dscnt 0x0";
    [
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xd8d80000, 0x01000000, // ds_load_b32 v1, v0
        0xd8340000, 0x00000000, // ds_store_b32 v0, v0
        0xbfc60001, // s_wait_dscnt 0x1
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    flat_is_counted_twice: Rule::MemoryWait, "v_mov_b32_e32 v4, v3", "v3", "s_wait_dscnt 0x0";
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xec05007c, 0x00000003, 0x00000000, // flat_load_b32 v3, v[0:1]
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e080303, // v_mov_b32 v4, v3
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xec05007c, 0x00000003, 0x00000000, // flat_load_b32 v3, v[0:1]
        0xbfc80000, // s_wait_loadcnt_dscnt 0x0
        0x7e080303, // v_mov_b32 v4, v3
        0xbfb00000, // s_endpgm
    ]

    // In order with the other loads.
    flat_keeps_the_order: Rule::MemoryWait, "v_mov_b32_e32 v4, v2", "v2", "s_wait_loadcnt 0x1";
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xec05007c, 0x00000003, 0x00000000, // flat_load_b32 v3, v[0:1]
        0xbfc00002, // s_wait_loadcnt 0x2
        0x7e080302, // v_mov_b32 v4, v2
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020280, // v_mov_b32 v1, 0
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xec05007c, 0x00000003, 0x00000000, // flat_load_b32 v3, v[0:1]
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e080302, // v_mov_b32 v4, v2
        0xbfb00000, // s_endpgm
    ]

    scalar_loads_return_in_any_order: Rule::MemoryWait, "s_mov_b32 s10, s6", "s6", "s_wait_kmcnt 0x0";
    [
        0xf4000182, 0xf8000000, // s_load_b32 s6, s[4:5], 0x0
        0xf40001c2, 0xf8000040, // s_load_b32 s7, s[4:5], 0x40
        0xbfc70001, // s_wait_kmcnt 0x1
        0xbe8a0006, // s_mov_b32 s10, s6
        0xbfb00000, // s_endpgm
    ]
    [
        0xf4000182, 0xf8000000, // s_load_b32 s6, s[4:5], 0x0
        0xf40001c2, 0xf8000040, // s_load_b32 s7, s[4:5], 0x40
        0xbfc70000, // s_wait_kmcnt 0x0
        0xbe8a0006, // s_mov_b32 s10, s6
        0xbfb00000, // s_endpgm
    ]

    an_address_from_a_scalar_load: Rule::MemoryWait, "global_load_b32 v1, v0, s[6:7]", "s[6:7]", "s_wait_kmcnt 0x0";
    [
        0xf4002182, 0xf8000000, // s_load_b64 s[6:7], s[4:5], 0x0
        0xee050006, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[6:7]
        0xbfb00000, // s_endpgm
    ]
    [
        0xf4002182, 0xf8000000, // s_load_b64 s[6:7], s[4:5], 0x0
        0xbfc70000, // s_wait_kmcnt 0x0
        0xee050006, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[6:7]
        0xbfb00000, // s_endpgm
    ]

    messages_return_by_kmcnt: Rule::MemoryWait, "s_mov_b32 s8, s6", "s6", "s_wait_kmcnt 0x0";
    [
        0xbe864d83, // s_sendmsg_rtn_b64 s[6:7], sendmsg(MSG_RTN_GET_REALTIME)
        0xbe880006, // s_mov_b32 s8, s6
        0xbfb00000, // s_endpgm
    ]
    [
        0xbe864d83, // s_sendmsg_rtn_b64 s[6:7], sendmsg(MSG_RTN_GET_REALTIME)
        0xbfc70000, // s_wait_kmcnt 0x0
        0xbe880006, // s_mov_b32 s8, s6
        0xbfb00000, // s_endpgm
    ]

    barriers_that_set_scc: Rule::MemoryWait, "s_cbranch_scc1 1", "scc", "s_wait_kmcnt 0x0";
    [
        0xbe804fc1, // s_barrier_signal_isfirst -1
        0xbfa20001, // s_cbranch_scc1 on
        0xbf800000, // s_nop 0
        // on:
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]
    [
        0xbe804fc1, // s_barrier_signal_isfirst -1
        0xbfc70000, // s_wait_kmcnt 0x0
        0xbfa20001, // s_cbranch_scc1 on
        0xbf800000, // s_nop 0
        // on:
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]

    // Arithmetic writes scc in passing, so that only the use of scc needs the wait.
    a_barriers_answer_over_a_comparison: Rule::MemoryWait, "s_cbranch_scc1 1", "scc", "s_wait_kmcnt 0x0";
    [
        0xbe804fc1, // s_barrier_signal_isfirst -1
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbfa20001, // s_cbranch_scc1 on
        0xbf800000, // s_nop 0
        // on:
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]
    [
        0xbe804fc1, // s_barrier_signal_isfirst -1
        0xbf068004, // s_cmp_eq_u32 s4, 0
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]

    a_load_in_one_arm: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x1";
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20003, // s_cbranch_scc1 on
        0xee050004, 0x00000004, 0x00000000, // global_load_b32 v4, v0, s[4:5]
        // on:
        0xbfc00002, // s_wait_loadcnt 0x2
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]
    [
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0xee050004, 0x00000002, 0x00000000, // global_load_b32 v2, v0, s[4:5]
        0xbf068006, // s_cmp_eq_u32 s6, 0
        0xbfa20003, // s_cbranch_scc1 on
        0xee050004, 0x00000004, 0x00000000, // global_load_b32 v4, v0, s[4:5]
        // on:
        0xbfc00001, // s_wait_loadcnt 0x1
        0x7e060301, // v_mov_b32 v3, v1
        0xbfb00000, // s_endpgm
    ]

    a_load_from_the_round_before: Rule::MemoryWait, "v_mov_b32_e32 v3, v1", "v1", "s_wait_loadcnt 0x0";
    [
        0x7e020280, // v_mov_b32 v1, 0
        // again:
        0x7e060301, // v_mov_b32 v3, v1
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0x80868106, // s_sub_co_u32 s6, s6, 1
        0xbfa1fffa, // s_cbranch_scc0 again
        0xbfb00000, // s_endpgm
    ]
    [
        0x7e020280, // v_mov_b32 v1, 0
        // again:
        0xbfc00000, // s_wait_loadcnt 0x0
        0x7e060301, // v_mov_b32 v3, v1
        0xee050004, 0x00000001, 0x00000000, // global_load_b32 v1, v0, s[4:5]
        0x80868106, // s_sub_co_u32 s6, s6, 1
        0xbfa1fff9, // s_cbranch_scc0 again
        0xbfb00000, // s_endpgm
    ]

    lds_stores_before_a_barrier: Rule::BarrierWait, "s_barrier_signal -1", "LDS", "s_wait_dscnt 0x0";
    [
        0xd8340000, 0x00000000, // ds_store_b32 v0, v0
        0xbe804ec1, // s_barrier_signal -1
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]
    [
        0xd8340000, 0x00000000, // ds_store_b32 v0, v0
        0xbfc60000, // s_wait_dscnt 0x0
        0xbe804ec1, // s_barrier_signal -1
        0xbf94ffff, // s_barrier_wait -1
        0xbfb00000, // s_endpgm
    ]
}
