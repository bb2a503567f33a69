//! Why a device could not be opened.
//!
//! Contract: one sentence per error with what to do.

use zrt_device::DeviceError;
use zrt_kmd::{Errno, KmdError};
use zrt_vgpu::config::UnknownRelease;

/// Everything that can go wrong before a device is handed over.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// No device has that name.
    #[error("there is no device {name:?}: choose auto, cpu, virtual, kfd or userq (--device, or ZRT_DEVICE)")]
    UnknownChoice {
        /// The requested name.
        name: String,
    },
    /// The choice is not something that this crate opens.
    #[error("the device \"{choice}\" cannot be opened: {reason}")]
    NotOpenable {
        /// The requested choice.
        choice: &'static str,
        /// Why, and what to do.
        reason: &'static str,
    },
    /// The virtual device could not be made.
    #[error(
        "the virtual device cannot be made: {errno}; it needs memory for a sparse file and threads, and in \
             ZRT_VIRTUAL_FILL, where that is set, eight hexadecimal digits or \"kernel\""
    )]
    VirtualDevice {
        /// The system's reason.
        errno: Errno,
    },
    /// The virtual device's kernel has no such release.
    #[error(transparent)]
    VirtualKernel(#[from] UnknownRelease),
    /// More worker threads than the virtual device starts.
    #[error("the virtual device is asked for {threads} worker threads; it takes at most {most}")]
    Threads {
        /// The requested number.
        threads: usize,
        /// The maximum.
        most: usize,
    },
    /// The device failed its self-test.
    #[error(
        "{device} failed the self-test case \"{case}\" (new in it: {suspect}) and is refused: {observed}; `zrt \
         pm4-test` on this device runs every case"
    )]
    SelfTest {
        /// The device.
        device: String,
        /// The case.
        case: &'static str,
        /// What is new in it compared with the cases before.
        suspect: &'static str,
        /// What was observed.
        observed: String,
    },
    /// The device layer, or the kernel's side below it, failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
}

impl From<KmdError> for OpenError {
    fn from(error: KmdError) -> OpenError {
        OpenError::Device(error.into())
    }
}
