//! Why the test of packets failed.
//!
//! Contract: one sentence.

use super::report::ReportError;
use zrt_bringup::{DeviceChoice, OpenError};
use zrt_device::DeviceError;

/// Why the test failed.
#[derive(Debug, thiserror::Error)]
pub enum Pm4TestError {
    /// An option that only the virtual device has.
    #[error(
        "{option} configures the virtual device and has no effect on \"{device}\": leave it out, or use --device \
         virtual"
    )]
    VirtualOnly {
        /// Its name on the command line.
        option: &'static str,
        /// The device that was to be tested.
        device: DeviceChoice,
    },
    /// The device did not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The device did not close.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// Cases failed; the rest may not have run.
    #[error(
        "{failed} of {all} cases failed and {not_run} were not run; first \"{first}\"; new in that case: {suspect}"
    )]
    Cases {
        /// How many failed.
        failed: usize,
        /// How many there are.
        all: usize,
        /// How many were not run.
        not_run: usize,
        /// The first that failed.
        first: &'static str,
        /// What is new in it.
        suspect: &'static str,
    },
    /// The report could not be made.
    #[error(transparent)]
    Report(#[from] ReportError),
}

impl Pm4TestError {
    /// Whether nothing ran because the request makes no sense.
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Pm4TestError::VirtualOnly { .. })
    }
}
