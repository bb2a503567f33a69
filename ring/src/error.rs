//! What can go wrong between the host and its queue.

use zrt_mem::GpuVa;
use zrt_pm4::{EmitError, Finding, StreamError};

/// Why a command ring cannot be made or cannot accept packets now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// A queue cannot have a ring of this length.
    #[error("a ring of {bytes} bytes is not a power of two of at least {least} bytes")]
    RingLength {
        /// Bytes of the view.
        bytes: usize,
        /// Smallest length in bytes.
        least: usize,
    },
    /// A view is too short for the 64-bit word in it.
    #[error("the view of the {name} has {bytes} bytes and needs 8")]
    ViewLength {
        /// Which view.
        name: &'static str,
        /// Its length in bytes.
        bytes: usize,
    },
    /// The submission is empty.
    #[error("a submission needs at least one packet")]
    Empty,
    /// The words are not whole packets.
    #[error("the words to submit are not whole packets: {0}")]
    NotPackets(#[from] StreamError),
    /// The submission can never fit.
    #[error("a submission of {dwords} dwords cannot fit a ring that takes {capacity}")]
    TooLong {
        /// Dwords of the submission.
        dwords: usize,
        /// Most dwords that the ring holds.
        capacity: usize,
    },
    /// There is not enough space now.
    #[error("the ring has {free} dwords free, but the submission needs {needed}")]
    Full {
        /// Dwords of the submission.
        needed: usize,
        /// Dwords free.
        free: usize,
    },
    /// Space did not become free in time.
    #[error(
        "after {waited_ns} ns the ring has only {free} of {needed} dwords free: the device stopped reading it"
    )]
    Timeout {
        /// Dwords of the submission.
        needed: usize,
        /// Dwords free.
        free: usize,
        /// Time waited.
        waited_ns: u64,
    },
    /// The other side claims to have read more than was written.
    #[error("the device reports read pointer {read:#x}, beyond write pointer {write:#x}")]
    ReadPointerAhead {
        /// Its read pointer.
        read: u64,
        /// Our write pointer.
        write: u64,
    },
    /// No ring can continue from the pointers in memory.
    #[error("a ring cannot start with read pointer {read:#x} and write pointer {write:#x}")]
    StartPointers {
        /// Read pointer found.
        read: u64,
        /// Write pointer found.
        write: u64,
    },
    /// A packet of the submission cannot be written.
    #[error("the submission cannot be encoded: {0}")]
    Emit(#[from] EmitError),
}

/// Why a fence cannot be used, or did not arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FenceError {
    /// The view is too short for the 64-bit word in it.
    #[error("the view of the fence has {bytes} bytes and needs 8")]
    ViewLength {
        /// Its bytes.
        bytes: usize,
    },
    /// RELEASE_MEM writes 64 bits only to multiples of 8.
    #[error("the fence's address {0} is not a multiple of 8")]
    Misaligned(GpuVa),
    /// The value was never requested from the device, so a wait for it would never end.
    #[error("fence value {value} was never submitted; the last one is {last}")]
    NeverSubmitted {
        /// The value to wait for.
        value: u64,
        /// The last value submitted.
        last: u64,
    },
    /// The device did not write the value in time.
    #[error("the fence reads {seen} after {waited_ns} ns and should have reached {value}")]
    Timeout {
        /// The value waited for.
        value: u64,
        /// The value found.
        seen: u64,
        /// Time waited.
        waited_ns: u64,
    },
    /// The memory holds a value that was never requested.
    #[error("the fence reads {seen}, beyond the last value {last} that was submitted")]
    Ahead {
        /// The value found.
        seen: u64,
        /// The last value submitted.
        last: u64,
    },
    /// All 2^64 values are used up.
    #[error("the timeline has no more values")]
    Exhausted,
}

/// Why a graph cannot be recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GraphError {
    /// A packet cannot be written; [`EmitError::Full`] if the recorder's memory is used up.
    #[error("a packet of the graph cannot be recorded: {0}")]
    Emit(#[from] EmitError),
    /// A graph cannot be as long as the requested capacity.
    #[error("a recorder cannot have {dwords} dwords: a graph has at most {most}")]
    Capacity {
        /// Dwords requested.
        dwords: u32,
        /// Most dwords.
        most: u32,
    },
    /// The graph has no dispatch.
    #[error("a graph without a dispatch does nothing")]
    Empty,
    /// The memory for the indirect buffer is too short.
    #[error("the graph has {needed} bytes and the memory for it {given}")]
    MemoryLength {
        /// Bytes of the graph.
        needed: usize,
        /// Bytes of the view.
        given: usize,
    },
    /// Indirect buffers start at multiples of 4.
    #[error("the graph's address {0} is not a multiple of 4")]
    Misaligned(GpuVa),
    /// The memory range wraps around the address space.
    #[error("a graph of {bytes} bytes does not fit behind address {address}")]
    AddressRange {
        /// Start of the range.
        address: GpuVa,
        /// Its length.
        bytes: usize,
    },
    /// The graph needs more indirect buffers than one submission can call.
    #[error("the graph needs more than {most} indirect buffers")]
    TooManyParts {
        /// Most parts.
        most: usize,
    },
    /// The recorded stream would harm the queue.
    #[error("the graph must not be submitted: {0}")]
    Lint(Finding),
}
