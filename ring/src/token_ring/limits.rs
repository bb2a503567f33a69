//! How many entries a ring has, and with which it may begin.

/// Smallest number of entries of a ring.
pub const ENTRIES_MIN: u32 = 2;
/// Largest number of entries of a ring.
pub const ENTRIES_MAX: u32 = 4096;

/// Highest number of a ring's first entry. 2^63 entries remain after it: numbers never wrap.
pub const FIRST_ENTRY_MAX: u64 = 1 << 63;
