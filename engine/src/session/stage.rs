//! The stage of a request: one value that cannot express an invalid state.
//!
//! ```text
//!  Free -> Waiting -> Running <-> Parked
//!   ^         |  ^       |           |
//!   |         |  +-------+ requeued  |
//!   +- Ended <+          |           |
//!   +--------------------+-----------+  the device reports the end
//!   +- Kept <------------+-----------+  likewise, in a session that keeps sequences
//! ```
//!
//! Contract: plain values. What the user asks is a function from stage to stage here; what the device reports is in
//! [`Roster::take`](super::roster::Roster::take).

use std::num::NonZeroU32;
use zrt_protocol::{FinishReason, Slot};

/// The slot that a request holds, and its serial number there: a new one each time it gets a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seat {
    pub slot: Slot,
    pub serial: NonZeroU32,
}

/// What was asked of a running request, and has not happened yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// Nothing.
    Nothing,
    /// The user parks it; if it `resumes`, it continues as soon as it is parked.
    Park { resumes: bool },
    /// The user has cancelled it.
    Cancel,
    /// It gives back slot and pages and waits again; if it `parks`, it is parked as soon as it has a slot again.
    Requeue { parks: bool },
}

/// What was asked of a parked request, and has not happened yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Nothing.
    Stay,
    /// It continues as soon as the device accepts commands.
    Resume,
    /// The user has cancelled it.
    Cancel,
}

/// The stage of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is no request.
    Free,
    /// It waits for a slot; if it `parks`, it is parked as soon as it has one.
    Waiting { parks: bool },
    /// It has ended without a slot, and the end is still to be reported.
    Ended(FinishReason),
    /// It holds a slot and takes part in steps.
    Running { seat: Seat, asked: Asked },
    /// It holds a slot and its pages and takes no part in steps. Its next row consumes `position`.
    Parked { seat: Seat, position: u32, wish: Wish },
    /// It has ended, and its end was reported. The pages that it was given as `seat` hold keys and values of its first
    /// `ready` positions, for a request that begins with the same tokens.
    Kept { seat: Seat, ready: u32 },
}

impl Stage {
    /// True for a request that the user has been told no end of.
    pub fn is_live(self) -> bool {
        !matches!(self, Stage::Free | Stage::Kept { .. })
    }

    /// The slot that it holds.
    pub fn seat(self) -> Option<Seat> {
        match self {
            Stage::Running { seat, .. } | Stage::Parked { seat, .. } => Some(seat),
            Stage::Free | Stage::Waiting { .. } | Stage::Ended(_) | Stage::Kept { .. } => None,
        }
    }

    /// True if it is parked or is to be.
    pub fn is_parked(self) -> bool {
        match self {
            Stage::Waiting { parks } | Stage::Running { asked: Asked::Requeue { parks }, .. } => parks,
            Stage::Running { asked: Asked::Park { .. }, .. } | Stage::Parked { .. } => true,
            Stage::Running { asked: Asked::Nothing | Asked::Cancel, .. }
            | Stage::Free
            | Stage::Ended(_)
            | Stage::Kept { .. } => false,
        }
    }

    /// True if the user has cancelled it and its end has not been reported yet.
    pub fn is_cancelled(self) -> bool {
        matches!(
            self,
            Stage::Ended(FinishReason::Cancelled)
                | Stage::Running { asked: Asked::Cancel, .. }
                | Stage::Parked { wish: Wish::Cancel, .. }
        )
    }

    /// The stage after the user has cancelled it.
    pub fn cancelled(self) -> Stage {
        match self {
            Stage::Waiting { .. } => Stage::Ended(FinishReason::Cancelled),
            Stage::Running { seat, .. } => Stage::Running { seat, asked: Asked::Cancel },
            Stage::Parked { seat, position, .. } => Stage::Parked { seat, position, wish: Wish::Cancel },
            Stage::Free | Stage::Ended(_) | Stage::Kept { .. } => self,
        }
    }

    /// The stage after the user has parked it.
    pub fn parked(self) -> Stage {
        match self {
            Stage::Waiting { .. } => Stage::Waiting { parks: true },
            Stage::Running { seat, asked } => Stage::Running {
                seat,
                asked: match asked {
                    Asked::Nothing | Asked::Park { .. } => Asked::Park { resumes: false },
                    Asked::Requeue { .. } => Asked::Requeue { parks: true },
                    Asked::Cancel => Asked::Cancel,
                },
            },
            Stage::Parked { seat, position, wish: Wish::Resume } => {
                Stage::Parked { seat, position, wish: Wish::Stay }
            }
            Stage::Parked { wish: Wish::Stay | Wish::Cancel, .. }
            | Stage::Free
            | Stage::Ended(_)
            | Stage::Kept { .. } => self,
        }
    }

    /// The stage after the user has let it continue.
    pub fn resumed(self) -> Stage {
        match self {
            Stage::Waiting { .. } => Stage::Waiting { parks: false },
            Stage::Running { seat, asked } => Stage::Running {
                seat,
                asked: match asked {
                    Asked::Park { .. } => Asked::Park { resumes: true },
                    Asked::Requeue { .. } => Asked::Requeue { parks: false },
                    Asked::Nothing | Asked::Cancel => asked,
                },
            },
            Stage::Parked { seat, position, wish: Wish::Stay } => {
                Stage::Parked { seat, position, wish: Wish::Resume }
            }
            Stage::Parked { wish: Wish::Resume | Wish::Cancel, .. }
            | Stage::Free
            | Stage::Ended(_)
            | Stage::Kept { .. } => self,
        }
    }
}
