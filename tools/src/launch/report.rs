//! What a sequence produces: as it arrives, and at its end.
//!
//! Contract: plain data.

use crate::profile::Profile;
use zrt_bringup::Finding;
use zrt_device::Counters;
use zrt_loader::print::{PrintError, Printed};

/// The result of a sequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Name of the device.
    pub device: String,
    /// True for the virtual one.
    pub is_virtual: bool,
    /// What the device did for the launches, without uploads and downloads.
    pub counters: Counters,
    /// Broken rules; empty without checking mode.
    pub findings: Vec<Located>,
    /// What the waves did; `None` unless it was asked for.
    pub profile: Option<Profile>,
    /// What the kernels printed.
    pub printed: Printed,
    /// Why that text is incomplete, although every kernel ran to its end.
    pub unprinted: Option<PrintError>,
}

/// A finding, and the launch that it was made in.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The finding.
    pub finding: Finding,
    /// Index of the action; `None` for what no wave did.
    pub action: Option<usize>,
    /// Its number in the device's list, counted from 0 in the order of discovery, including those that are not
    /// reported.
    pub number: usize,
}

/// What a sequence produces while it is executed.
#[derive(Debug)]
pub enum Seen<'a> {
    /// What an [`Action::Read`](super::Action::Read) read.
    Read {
        /// Number of the action.
        action: usize,
        /// The buffer's bytes.
        bytes: Vec<u8>,
    },
    /// Text that kernels printed since the last of these; the report has all of it.
    Printed(&'a [u8]),
}
