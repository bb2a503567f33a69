//! What can go wrong between the host and a token ring.

use super::limits::FIRST_ENTRY_MAX;

/// Why a token ring cannot be made, accepts no entry, or has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenRingError {
    /// The memory is not that of a ring.
    #[error("{dwords} dwords are not a ring: it has a power of two of entries, 2 to 4096, of 16 dwords each")]
    Length {
        /// Dwords of the memory.
        dwords: usize,
    },
    /// A memory is too short for the dword in it.
    #[error("the memory of the {name} holds no dword")]
    NoWord {
        /// The memory's name.
        name: &'static str,
    },
    /// Entries would be numbered past the end of 64 bits.
    #[error("a ring that starts with entry {first}: {FIRST_ENTRY_MAX} is the furthest")]
    FirstEntry {
        /// The number requested.
        first: u64,
    },
    /// The consumer would never, or always, report its progress.
    #[error(
        "the consumed count cannot be published every {every} entries: a ring of {capacity} entries needs 1 to {capacity}"
    )]
    PublishEvery {
        /// The interval requested.
        every: u32,
        /// Entries of the ring.
        capacity: u32,
    },
    /// There is no space now. Nothing was written.
    #[error("all {capacity} entries of the ring are waiting to be consumed")]
    Full {
        /// Entries of the ring.
        capacity: u32,
    },
    /// Space did not become free in time. Nothing was written.
    #[error("after {waited_ns} ns all {capacity} entries still wait: the device stopped consuming")]
    FullTimeout {
        /// Entries of the ring.
        capacity: u32,
        /// Time waited.
        waited_ns: u64,
    },
    /// The device reports a consumed count that is impossible.
    #[error(
        "the device says it consumed {consumed:#x} entries (low 32 bits); it can be {least:#x} to {most:#x}"
    )]
    Consumed {
        /// The reported count.
        consumed: u32,
        /// The count reported before, low 32 bits.
        least: u32,
        /// The count produced, low 32 bits.
        most: u32,
    },
    /// Nothing arrived in time.
    #[error("entry {number} has not come after {waited_ns} ns")]
    Nothing {
        /// Number of the entry, from 0.
        number: u64,
        /// Time waited.
        waited_ns: u64,
    },
    /// Entries are not being consumed, though there is space for more.
    #[error("entry {number} is not consumed after {waited_ns} ns: the device has not found it whole")]
    NotConsumed {
        /// Number of the oldest waiting entry, from 0.
        number: u64,
        /// Time waited.
        waited_ns: u64,
    },
    /// Half an entry arrived, and the rest did not arrive in time.
    #[error("entry {number} is torn after {waited_ns} ns: its header is there, its trailer is {trailer:#x}")]
    Torn {
        /// Number of the entry, from 0.
        number: u64,
        /// Dword 15.
        trailer: u32,
        /// Time waited.
        waited_ns: u64,
    },
    /// Another entry is in this one's place: the writer lapped the reader, or is not our writer.
    #[error("entry {number} should come with tag {expected:#x}; after {waited_ns} ns there is {found:#x}")]
    Foreign {
        /// Number of the entry, from 0.
        number: u64,
        /// Its tag.
        expected: u32,
        /// Dword 0.
        found: u32,
        /// Time waited.
        waited_ns: u64,
    },
}

/// Why no entry is taken from an output ring; `X` describes what is wrong with an invalid line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TakeError<X> {
    /// A line arrived whole but is no entry.
    #[error("entry {number}: {error}")]
    Entry {
        /// Number of the entry, from 0.
        number: u64,
        /// What is wrong with it.
        error: X,
    },
    /// No whole line arrived.
    #[error(transparent)]
    Ring(TokenRingError),
}

/// Why the host cannot signal something to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// The memory is not one line per slot.
    #[error("{dwords} dwords are not control lines: each slot has one of 16 dwords")]
    Length {
        /// Dwords of the memory.
        dwords: usize,
    },
    /// Two words of a line would share one dword, or one would lie outside the line.
    #[error("dword {dword} of a control line is in use already, or is not one of its 16")]
    Dword {
        /// The dword.
        dword: usize,
    },
    /// A memory is too short for the dword in it.
    #[error("the memory of the {name} holds no dword")]
    NoWord {
        /// The memory's name.
        name: &'static str,
    },
    /// The slot has no line.
    #[error("there is no slot {slot}: the last one is {last}")]
    Slot {
        /// The slot.
        slot: u32,
        /// The last slot that has a line.
        last: u32,
    },
    /// Pages cannot be taken back from a running request.
    #[error("slot {slot}: request {serial} was granted {granted} pages and cannot go back to {pages}")]
    PagesShrink {
        /// The slot.
        slot: u32,
        /// The request.
        serial: u32,
        /// Pages it has.
        granted: u32,
        /// Pages requested.
        pages: u32,
    },
}
