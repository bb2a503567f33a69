//! Why a launch failed.
//!
//! Contract: one sentence; [`LaunchError::is_bad_input`] distinguishes bad input from what went wrong while kernels
//! ran.

use super::report::Located;
use super::wait::Unfinished;
use thiserror::Error;
use zrt_bringup::OpenError;
use zrt_device::Waves;
use zrt_isa::resources::ResourceError;
use zrt_loader::ArgumentError;
use zrt_loader::print::Printed;
use zrt_script::BUFFER_BYTES_MAX;

/// Why a launch failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LaunchError {
    /// No kernel of that name, or no name although there are several.
    #[error("{asked}; the kernels are {names}")]
    Kernel {
        /// What was requested, in words.
        asked: String,
        /// The kernels that exist.
        names: String,
    },
    /// Arguments or shape do not fit the kernel.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    /// The kernel's waves have another size.
    #[error("kernel {kernel} is made for wave{actual}, not wave{asked}")]
    WaveSize {
        /// The kernel.
        kernel: String,
        /// Its lanes.
        actual: u32,
        /// The requested lanes.
        asked: u32,
    },
    /// A buffer is empty or too large.
    #[error("{buffer} is a buffer of {bytes} bytes, but must have 1 to {BUFFER_BYTES_MAX}")]
    BufferLength {
        /// Its name.
        buffer: String,
        /// Its length.
        bytes: u64,
    },
    /// An address or an access of the host is outside of its buffer.
    #[error("{bytes} byte(s) from offset {offset} on are outside of {buffer}, which has {length} bytes")]
    Range {
        /// Its name.
        buffer: String,
        /// Its length.
        length: u64,
        /// The first requested byte.
        offset: u64,
        /// How many.
        bytes: u64,
    },
    /// More launches than one graph can hold.
    #[error("{launches} launches are requested, but at most {limit} are possible: repeat less")]
    Launches {
        /// Launches.
        launches: usize,
        /// How many it can hold.
        limit: usize,
    },
    /// Launches of a kernel share its scratch memory.
    #[error(
        "kernel {kernel} uses scratch memory, which its launches share: it cannot be launched without waiting"
    )]
    SharedScratch {
        /// The kernel.
        kernel: String,
    },
    /// The resources of the launch cannot be expressed.
    #[error("the launch cannot be expressed: {0}")]
    Resources(#[from] ResourceError),
    /// The device could not be opened.
    #[error("--device {choice} failed: {source}")]
    Open {
        /// The requested device.
        choice: &'static str,
        /// Why.
        source: Box<OpenError>,
    },
    /// The device failed, or the kernel did.
    #[error("{work} did not run to its end: {source}")]
    Device {
        /// What was running, such as `kernel add`.
        work: String,
        /// Why.
        source: Unfinished,
        /// Broken rules, under the checking mode.
        findings: Vec<Located>,
        /// What kernels printed until then.
        printed: Box<Printed>,
        /// Where the virtual device's waves were then.
        waves: Box<Waves>,
    },
    /// Only the virtual device can be inspected.
    #[error(
        "--check, --seeds, --profile and step inspect the virtual device; --device {choice} cannot be inspected"
    )]
    NotVirtual {
        /// The requested device.
        choice: &'static str,
    },
}

impl LaunchError {
    /// True if the request is at fault, and nothing ran.
    pub fn is_bad_input(&self) -> bool {
        !matches!(self, LaunchError::Open { .. } | LaunchError::Device { .. })
    }
}
