//! Why the kernel side failed: which call, which errno, and what to do about it.
//!
//! Contract: one sentence per error, with the remedy at its end. No variant is a catch-all.

use crate::errno::Errno;
use crate::ioctl::CommandError;
use crate::process_loss::ProcessLoss;
use crate::queue_refusal::QueueRefusal;
use crate::topology::TopologyError;
use zrt_mem::{ByteLen, GpuVa};

/// Everything that can go wrong between this crate and the driver.
#[derive(Debug, thiserror::Error)]
pub enum KmdError {
    /// The driver refused a request.
    #[error(transparent)]
    Ioctl(#[from] CommandError),
    /// A device file could not be opened.
    #[error("cannot open {path}: {errno}; {remedy}")]
    Open {
        /// The file.
        path: String,
        /// The system's reason.
        errno: Errno,
        /// What to do.
        remedy: &'static str,
    },
    /// Reserving address space or making a mapping failed.
    #[error("cannot map {what} ({len:?}): {errno}; {remedy}")]
    Map {
        /// What was to be mapped.
        what: &'static str,
        /// Its length.
        len: ByteLen,
        /// The system's reason.
        errno: Errno,
        /// What to do.
        remedy: &'static str,
    },
    /// The topology could not be read, or holds no supported device.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The driver uses another major version of its interface.
    #[error(
        "the KFD interface is version {major}.{minor}, and zrt speaks version 1: use a kernel whose KFD is 1.x"
    )]
    Version {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// The driver lists no address range for this GPU.
    #[error(
        "the driver reports no apertures for gpu_id {gpu_id}: another process may hide it (device cgroup)"
    )]
    ApertureMissing {
        /// The node's id.
        gpu_id: u32,
    },
    /// The system gave us address space that the GPU cannot use.
    #[error(
        "address {va} with {len:?} lies outside the GPU's range {base}..={limit}: raise vm.mmap_min_addr"
    )]
    OutsideAperture {
        /// The address received.
        va: GpuVa,
        /// Its length.
        len: ByteLen,
        /// Lowest usable address.
        base: GpuVa,
        /// Highest usable address.
        limit: GpuVa,
    },
    /// A length that cannot be allocated.
    #[error("cannot allocate {len:?}: a buffer has at least one byte and fewer than 2^47")]
    Length {
        /// The length requested.
        len: ByteLen,
    },
    /// The driver refused a queue as invalid.
    #[error("{0}")]
    QueueRefused(Box<QueueRefusal>),
    /// A ring size that the driver would refuse.
    #[error("a ring of {len:?} is not possible: its size is a power of two from 4096 to 2^31 bytes")]
    RingLength {
        /// The size requested.
        len: ByteLen,
    },
    /// CPU-visible VRAM on a card whose BAR does not cover it.
    #[error(
        "VRAM is not CPU-visible on this machine (small BAR): use GTT, or enable Resizable BAR in the firmware"
    )]
    SmallBar,
    /// The driver mapped memory on fewer GPUs than requested.
    #[error("MAP_MEMORY_TO_GPU succeeded on {mapped} of 1 device: see the kernel log")]
    MappedPartly {
        /// How many GPUs it reports.
        mapped: u32,
    },
    /// The driver no longer serves this process.
    #[error("{loss}")]
    ProcessLost {
        /// Why, and what to do.
        loss: ProcessLoss,
    },
    /// CREATE_QUEUE returned an offset outside this GPU's doorbell slice.
    #[error(
        "CREATE_QUEUE returned doorbell offset {offset:#x}, which is not in the slice of gpu_id {gpu_id}"
    )]
    DoorbellOffset {
        /// The offset returned.
        offset: u64,
        /// The node's id.
        gpu_id: u32,
    },
}

impl KmdError {
    /// The errno, if the system returned one.
    pub fn errno(&self) -> Option<Errno> {
        match self {
            KmdError::Ioctl(CommandError { errno, .. })
            | KmdError::Open { errno, .. }
            | KmdError::Map { errno, .. } => Some(*errno),
            KmdError::Topology(TopologyError::Read { errno, .. }) => Some(*errno),
            KmdError::QueueRefused(_) => Some(Errno::EINVAL),
            _ => None,
        }
    }
}
