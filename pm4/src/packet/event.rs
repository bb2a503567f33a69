//! The events that packets send into the pipe.

/// An event for the pipe and the index that says how the command processor handles it (hardware reference §4.6, §4.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Event type, 6 bits.
    pub kind: u8,
    /// Event index, 4 bits.
    pub index: u8,
}

impl Event {
    /// Waits until all compute waves of the queue have ended.
    pub const CS_PARTIAL_FLUSH: Event = Event { kind: 0x07, index: 4 };
    /// End of pipe with caches flushed: the compute fence.
    pub const CACHE_FLUSH_AND_INV_TS: Event = Event { kind: 0x14, index: 5 };
    /// End of pipe, caches flushed and not invalidated.
    pub const CACHE_FLUSH_TS: Event = Event { kind: 0x04, index: 5 };
    /// End of pipe.
    pub const BOTTOM_OF_PIPE_TS: Event = Event { kind: 0x28, index: 5 };
    /// Shader done.
    pub const CS_DONE: Event = Event { kind: 0x2f, index: 6 };
}
