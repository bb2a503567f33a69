//! Misbehaviour of the device on purpose: what a client must survive or diagnose.
//!
//! Contract: plain settings, fixed when the board is powered up; everything off by default.

use std::sync::atomic::{AtomicU64, Ordering};

/// For [`FaultInjection::read_pointer_block_dwords`]: more than any queue ever consumes.
pub const READ_POINTER_NEVER_DWORDS: u64 = 1 << 63;

/// What the device does wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultInjection {
    /// This doorbell, counted from 1 over all queues, is not heard; a later one of its queue is.
    pub dropped_doorbell: Option<u64>,
    /// A doorbell is heard so many microseconds after it was rung.
    pub doorbell_delay_us: u64,
    /// The read pointer in memory is brought up to date only each time that so many dwords were consumed, and not
    /// when the ring is empty. A power of two; one beyond the ring's length lags by more than the ring, and
    /// [`READ_POINTER_NEVER_DWORDS`] never tells.
    pub read_pointer_block_dwords: Option<u64>,
}

/// The settings at work.
#[derive(Debug)]
pub(crate) struct Injector {
    settings: FaultInjection,
    doorbells: AtomicU64,
}

impl Injector {
    pub fn new(settings: FaultInjection) -> Injector {
        Injector { settings, doorbells: AtomicU64::new(0) }
    }

    pub fn settings(&self) -> &FaultInjection {
        &self.settings
    }

    /// Counts a doorbell; whether it goes unheard.
    pub fn drops_doorbell(&self) -> bool {
        let Some(dropped) = self.settings.dropped_doorbell else { return false };
        self.doorbells.fetch_add(1, Ordering::Relaxed) + 1 == dropped
    }
}
