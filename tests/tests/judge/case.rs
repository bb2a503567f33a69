//! What a case is: one rule broken once, and the right twin.
//!
//! Contract: every line of the wrong kernel on which a finding is expected ends with a mark (`mark.rs`) that says the
//! rest of the finding. The right twin's marks are ignored.

/// One rule broken once.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub rule: &'static str,
    /// Work-items per group and groups.
    pub work_items: u16,
    pub groups: u32,
    pub lds_bytes: u32,
    pub compute_units: u32,
    /// Bytes of each of the four buffers.
    pub buffer_bytes: u64,
    /// What dword 1 of the buffer `other` holds afterwards, wrong and right: what a reader received.
    pub received: Option<[u32; 2]>,
    /// Buffers that the host writes, or waits for, while the kernel runs.
    pub shared: &'static [&'static str],
    pub wrong: &'static str,
    pub right: &'static str,
}

/// One wave.
pub const WAVE: Case = Case {
    name: "",
    rule: "",
    work_items: 32,
    groups: 1,
    lds_bytes: 0,
    compute_units: 64,
    // Not whole pages: the end of the buffer is not the end of what is mapped.
    buffer_bytes: 4000,
    received: None,
    shared: &[],
    wrong: "",
    right: "",
};
/// Two waves of one group with LDS.
pub const GROUP: Case = Case { work_items: 64, lds_bytes: 1024, ..WAVE };
/// Two groups of one wave.
pub const PAIR: Case = Case { groups: 2, ..WAVE };

/// A producer and a consumer. The producer's data is `complete` before its flag, or still `under_way`; what comes
/// between flag and data at the consumer is up to the case. The marked load is that of the data.
macro_rules! handover {
    (complete, $acquire:literal) => {
        handover!(@ "\n    s_wait_storecnt 0x0", $acquire)
    };
    (complete_with_scope, $acquire:literal) => {
        handover!(@ " scope:SCOPE_DEV\n    s_wait_storecnt 0x0", $acquire)
    };
    (under_way, $acquire:literal) => {
        handover!(@ "", $acquire)
    };
    (under_way_with_scope, $acquire:literal) => {
        handover!(@ " scope:SCOPE_DEV", $acquire)
    };
    (@ $release:literal, $acquire:literal) => {
        concat!(
            "
    v_mov_b32_e32 v4, 0
    v_mov_b32_e32 v5, 1
    s_cmp_eq_u32 ttmp9, 0
    s_cbranch_scc0 .Lconsumer
    global_store_b32 v1, v1, s[6:7]",
            $release,
            "
    s_mov_b32 exec_lo, 1
    global_atomic_add_u32 v4, v5, s[8:9] scope:SCOPE_DEV
    s_endpgm
.Lconsumer:
    global_load_b32 v6, v4, s[8:9] scope:SCOPE_DEV
    s_wait_loadcnt 0x0
    v_readfirstlane_b32 s20, v6
    s_sleep 1
    s_cmp_eq_u32 s20, 0
    s_cbranch_scc1 .Lconsumer
",
            $acquire,
            "
    global_load_b32 v7, v1, s[6:7]  // caught group 1 lane 0 at output+0x0
    s_wait_loadcnt 0x0
    global_store_b32 v1, v7, s[10:11]"
        )
    };
}
pub(crate) use handover;
