//! What a case is: one rule broken once, and the right twin.
//!
//! Contract: every line of the wrong kernel on which a finding is expected ends with a mark (`mark.rs`) that says the
//! rest of the finding. The right twin's marks are not looked at.

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
    /// What dword 1 of the buffer `other` holds afterwards, wrong and right: what a reader was given.
    pub received: Option<[u32; 2]>,
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
    wrong: "",
    right: "",
};
/// Two waves of one group with LDS.
pub const GROUP: Case = Case { work_items: 64, lds_bytes: 1024, ..WAVE };
/// Two groups of one wave.
pub const PAIR: Case = Case { groups: 2, ..WAVE };
