//! Waiting for a kernel: until it has ended, the device knows that it never will, or its time is up.
//!
//! Contract: the virtual device says at once that a wave has stopped for good (a barrier that cannot complete, a trap, an
//! access that is refused). A card says nothing of the kind: there only the time ends the wait. Neither ends it while
//! somebody looks at a wave that stands still ([`Pauses`]). Costs a look at the virtual device's diary every [`SLICE`],
//! and nothing for a kernel that is done before.

use super::LaunchRequest;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;
use zrt_device::{Device, DeviceError, DeviceFault, Diagnosis, StopCause, Ticket};

/// How long the device's own wait lasts before its diary is looked at.
const SLICE: Duration = Duration::from_millis(50);

/// Why a kernel did not run to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unfinished {
    /// The device knows of a fault after which it never ends.
    #[error("{0}")]
    Fault(DeviceFault),
    /// The time was over.
    #[error("{0}; --timeout gives it more time")]
    Timeout(Box<Diagnosis>),
    /// The device failed, or the driver reported a fault.
    #[error(transparent)]
    Device(Box<DeviceError>),
}

/// Times at which a debugger holds the waves of a kernel. Shared by its thread and the one that waits.
#[derive(Debug, Default)]
pub struct Pauses {
    /// Begun and ended pauses: odd within one.
    changes: AtomicU64,
}

impl Pauses {
    /// The waves stand still until `work` is done.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.changes.fetch_add(1, Ordering::AcqRel);
        let result = work();
        self.changes.fetch_add(1, Ordering::AcqRel);
        result
    }

    /// Whether the waves have stood still since `seen`, which is brought up to date.
    fn is_new(&self, seen: &mut u64) -> bool {
        let changes = self.changes.load(Ordering::Acquire);
        std::mem::replace(seen, changes) != changes || changes % 2 == 1
    }
}

impl From<DeviceError> for Unfinished {
    fn from(error: DeviceError) -> Unfinished {
        Unfinished::Device(Box::new(error))
    }
}

/// Waits for the submission of a request. `faults_before`: lines that the diary had before it.
pub(super) fn wait(
    device: &mut Device,
    ticket: Ticket,
    request: &LaunchRequest<'_>,
    faults_before: usize,
) -> Result<(), Unfinished> {
    let mut start = Instant::now();
    let mut pauses_seen = 0;
    loop {
        let left = request.deadline.saturating_sub(start.elapsed());
        let mut diagnosis = match device.wait(ticket, SLICE.min(left)) {
            Ok(()) => return Ok(()),
            Err(DeviceError::Stopped(diagnosis)) if diagnosis.cause == StopCause::Deadline => diagnosis,
            Err(error) => return Err(error.into()),
        };
        if request.pauses.is_some_and(|pauses| pauses.is_new(&mut pauses_seen)) {
            start = Instant::now();
            continue;
        }
        let mut new_faults = device.faults().into_iter().skip(faults_before);
        if let Some(fault) = new_faults.find(|fault| fault.is_final) {
            return Err(Unfinished::Fault(fault));
        }
        if start.elapsed() >= request.deadline {
            // The device knows of the last slice only.
            diagnosis.waited = start.elapsed();
            return Err(Unfinished::Timeout(diagnosis));
        }
    }
}
