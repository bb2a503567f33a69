//! Why a device could not be opened or used.
//!
//! Contract: one sentence per error with what to do; a wait that failed carries its whole diagnosis.

use crate::diagnosis::Diagnosis;
use zrt_isa::resources::ResourceError;
use zrt_isa::zrt::ZrtError;
use zrt_kmd::KmdError;
use zrt_mem::ByteLen;
use zrt_pm4::EmitError;
use zrt_ring::{FenceError, GraphError, RingError};

/// Everything that can go wrong with a device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The kernel's side failed.
    #[error(transparent)]
    Kmd(#[from] KmdError),
    /// A packet could not be written.
    #[error("cannot encode a packet: {0}")]
    Emit(#[from] EmitError),
    /// Bytes are not a kernel for this device.
    #[error("the kernel cannot be loaded: {0}")]
    Kernel(#[from] ZrtError),
    /// A resource word of a kernel is not valid on gfx12.
    #[error("kernel {kernel} cannot be loaded: {source}")]
    KernelResources {
        /// Its name.
        kernel: String,
        /// Which word, and why.
        source: ResourceError,
    },
    /// A kernel needs something that this device layer does not set up.
    #[error("kernel {kernel} cannot be loaded: {reason}")]
    KernelNeeds {
        /// Its name.
        kernel: String,
        /// What it needs.
        reason: &'static str,
    },
    /// More code than can be loaded as one piece.
    #[error("{name} has {len:?} of code, and at most {most:?} are loaded")]
    CodeLength {
        /// Its name.
        name: String,
        /// Its length.
        len: ByteLen,
        /// The maximum.
        most: ByteLen,
    },
    /// A range outside a buffer.
    #[error("bytes {offset:?} + {len:?} lie outside the buffer {label} of {buffer_len:?}")]
    Range {
        /// The buffer.
        label: String,
        /// Start.
        offset: ByteLen,
        /// Length.
        len: ByteLen,
        /// The buffer's length.
        buffer_len: ByteLen,
    },
    /// The host cannot access the buffer.
    #[error("the buffer {label} is not mapped on the host: allocate it from the heap host_visible or host")]
    NotMapped {
        /// The buffer.
        label: String,
    },
    /// A copy by the queue would wait for a resident kernel, which ends when it is told to.
    #[error(
        "the host does not see the buffer {label}, and a copy of it would wait behind the resident kernel on this queue: \
         end that kernel first, or allocate the buffer from the heap host_visible or host"
    )]
    Occupied {
        /// The buffer.
        label: String,
    },
    /// The command ring refused a submission.
    #[error("the command ring refused a submission: {0}")]
    Ring(#[from] RingError),
    /// The fence is not what it should be.
    #[error("the fence is unusable: {0}")]
    Fence(#[from] FenceError),
    /// A graph could not be recorded.
    #[error("cannot record a graph: {0}")]
    Graph(#[from] GraphError),
    /// A graph is empty.
    #[error("the graph is empty: record at least one dispatch")]
    EmptyGraph,
    /// A recorder for more dispatches than a graph can hold.
    #[error("a recorder cannot have {capacity} dispatches: a graph has at most {most}")]
    RecorderCapacity {
        /// The requested capacity.
        capacity: usize,
        /// Maximum number of dispatches, as a recorder counts them.
        most: usize,
    },
    /// The recorder's capacity is used up.
    #[error("the recorder holds {capacity} dispatches: make a larger one")]
    RecorderFull {
        /// The requested capacity.
        capacity: usize,
    },
    /// Work did not end in time, or the device reported a fault.
    #[error("{0}")]
    Stopped(Box<Diagnosis>),
    /// An earlier failure left the queue unusable, and the process has not lost the GPU.
    #[error("the device stopped earlier and takes no more work: open it again")]
    Lost,
    /// What a witness wrote cannot be understood.
    #[error("cannot read the device's own account from {path}: {reason}")]
    Evidence {
        /// The file.
        path: &'static str,
        /// Why.
        reason: String,
    },
    /// Something was not released.
    #[error("closing the device failed: {0}")]
    Teardown(KmdError),
}
