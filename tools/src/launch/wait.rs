//! Waiting for a kernel: until it has ended, the device knows that it never will, or its time is up.
//!
//! Contract: the virtual device says at once that a wave has stopped for good (a barrier that cannot complete, a trap,
//! an access that is refused), and where. A card reports bad addresses only: for everything else the deadline ends the
//! wait, and the error says what the host sees of the queue. Neither ends it while somebody inspects a stopped wave
//! ([`Pauses`]). Costs one read of the virtual device's diary every [`SLICE`], and nothing for a kernel that ends
//! sooner.

use super::printing::Printing;
use super::report::Seen;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use thiserror::Error;
use zrt_bringup::{DeviceFault, Inspect};
use zrt_device::{Device, DeviceError, Diagnosis, Ticket};
use zrt_loader::print::hostcall::HostcallError;

/// How long the device's own wait lasts before its diary is read.
const SLICE: Duration = Duration::from_millis(50);
/// Pause between two polls of a hostcall buffer if nothing was asked: waves wait for the answer.
const CALL_PAUSE: Duration = Duration::from_micros(20);

/// Why a kernel did not run to its end.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Unfinished {
    /// The device knows of a fault after which it never ends.
    #[error("{0}")]
    Fault(Box<KernelFault>),
    /// The time was up on the virtual device, which knows of no fault: the kernel computes. What all kernels took
    /// together.
    #[error("the device did not finish within {} ms; --timeout gives it more time", .0.as_millis())]
    Endless(Duration),
    /// The time was up on a card.
    #[error("{0}; --timeout gives it more time")]
    Timeout(Box<Diagnosis>),
    /// The device failed, or the driver reported a fault.
    #[error(transparent)]
    Device(Box<DeviceError>),
    /// The kernel asked the host for something that it does not do, or printed something that has no text.
    #[error(transparent)]
    Hostcall(Box<HostcallError>),
}

/// A fault of the virtual device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelFault {
    /// What the device says.
    pub fault: DeviceFault,
    /// What may have led to it, if that is known.
    pub remark: Option<String>,
}

impl Unfinished {
    /// Whether the time was up.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Unfinished::Endless(_) | Unfinished::Timeout(_))
    }

    /// The fault, if the device knows of one.
    pub fn fault(&self) -> Option<&KernelFault> {
        if let Unfinished::Fault(fault) = self { Some(fault) } else { None }
    }
}

impl KernelFault {
    /// A fault of a kernel that was given null for some services. `complaint`: its last message about what went wrong.
    pub(super) fn new(fault: DeviceFault, services: &[&str], complaint: Option<&[u8]>) -> KernelFault {
        /// Addresses below this one are null pointers with an offset.
        const NULL_BYTES_MAX: u64 = 64 << 10;
        let null_remark = fault.address.filter(|va| *va < NULL_BYTES_MAX).map(|_| match services {
            [] => "the address is a null pointer's".to_owned(),
            _ => format!(
                "the address is a null pointer's, and these implicit arguments are null, because their services do \
                 not exist here: {}; compile without malloc and device-side launches",
                services.join(", ")
            ),
        });
        // A failed assertion says why, and traps.
        let remark = null_remark.or_else(|| {
            let complaint = String::from_utf8_lossy(complaint.filter(|_| fault.address.is_none())?);
            Some(format!("the kernel printed before: {}", complaint.trim_end()))
        });
        KernelFault { fault, remark }
    }
}

impl fmt::Display for KernelFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.fault)?;
        self.remark.as_ref().map_or(Ok(()), |remark| write!(formatter, "; {remark}"))
    }
}

/// Times at which a debugger holds the waves of a kernel. Shared by its thread and the one that waits.
#[derive(Debug, Default)]
pub struct Pauses {
    /// Begun and ended pauses: odd within one.
    changes: AtomicU64,
}

impl Pauses {
    /// The waves are stopped until `work` is done.
    pub fn during<T>(&self, work: impl FnOnce() -> T) -> T {
        self.changes.fetch_add(1, Ordering::AcqRel);
        let result = work();
        self.changes.fetch_add(1, Ordering::AcqRel);
        result
    }

    /// Whether the waves have been stopped since `seen`, which is brought up to date.
    fn is_new(&self, seen: &mut u64) -> bool {
        let changes = self.changes.load(Ordering::Acquire);
        std::mem::replace(seen, changes) != changes || changes % 2 == 1
    }
}

impl From<HostcallError> for Unfinished {
    fn from(error: HostcallError) -> Unfinished {
        Unfinished::Hostcall(Box::new(error))
    }
}

impl From<DeviceError> for Unfinished {
    fn from(error: DeviceError) -> Unfinished {
        Unfinished::Device(Box::new(error))
    }
}

/// How long to wait.
pub(super) struct Limits<'a> {
    /// The time that all kernels together may take.
    total: Duration,
    /// What is left of it.
    left: Duration,
    /// Times that do not count.
    pauses: Option<&'a Pauses>,
}

impl<'a> Limits<'a> {
    /// All of the time is left.
    pub fn new(total: Duration, pauses: Option<&'a Pauses>) -> Limits<'a> {
        Limits { total, left: total, pauses }
    }

    /// Subtracts the time of a submission.
    fn take(&mut self, waited: Duration) {
        self.left = self.left.saturating_sub(waited);
    }

    /// The time of all submissions, the last of which took `waited`.
    fn taken(&self, waited: Duration) -> Duration {
        self.total - self.left + waited
    }
}

/// Waits for a submission, and subtracts its time from what is left. `faults_before`: lines that the diary had before
/// it; `tell` makes one of them a fault of its kernel; `observe` gets what it prints meanwhile.
pub(super) fn wait(
    device: &mut Device,
    ticket: Ticket,
    limits: &mut Limits<'_>,
    faults_before: usize,
    printing: &mut Printing,
    tell: impl Fn(DeviceFault, &Printing) -> KernelFault,
    observe: &mut dyn FnMut(Seen<'_>),
) -> Result<(), Unfinished> {
    let mut start = Instant::now();
    let mut pauses_seen = 0;
    let final_fault =
        |device: &Device| device.faults().into_iter().skip(faults_before).find(|fault| fault.is_final);
    loop {
        let left = limits.left.saturating_sub(start.elapsed());
        let slice = serve(device, ticket, SLICE.min(left), printing, observe)?;
        match device.wait_at_most(ticket, slice) {
            Ok(true) => {
                limits.take(start.elapsed());
                return Ok(());
            }
            Ok(false) => {}
            // What the driver reports has no place in code; the device's own line does.
            Err(error) => {
                return Err(match final_fault(device).filter(|_| matches!(error, DeviceError::Stopped(_))) {
                    Some(fault) => Unfinished::Fault(Box::new(tell(fault, printing))),
                    None => error.into(),
                });
            }
        }
        if limits.pauses.is_some_and(|pauses| pauses.is_new(&mut pauses_seen)) {
            start = Instant::now();
            continue;
        }
        if let Some(fault) = final_fault(device) {
            return Err(Unfinished::Fault(Box::new(tell(fault, printing))));
        }
        let waited = start.elapsed();
        if waited < limits.left {
            continue;
        }
        let taken = limits.taken(waited);
        if device.is_virtual() {
            return Err(Unfinished::Endless(taken));
        }
        match device.wait(ticket, Duration::ZERO) {
            Ok(()) => return Ok(()),
            Err(DeviceError::Stopped(mut diagnosis)) => {
                // The device knows only of its last slice.
                diagnosis.waited = taken;
                return Err(Unfinished::Timeout(diagnosis));
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Answers the kernel, if it may ask, for `slice` or until it has ended, and reports what it prints; returns what is
/// left of the slice to wait.
fn serve(
    device: &Device,
    ticket: Ticket,
    slice: Duration,
    printing: &mut Printing,
    observe: &mut dyn FnMut(Seen<'_>),
) -> Result<Duration, HostcallError> {
    if !printing.has_calls() {
        return Ok(slice);
    }
    let start = Instant::now();
    while start.elapsed() < slice && !device.is_done(ticket) {
        if !printing.serve()? {
            std::thread::sleep(CALL_PAUSE);
        }
        printing.tell_news(observe);
    }
    Ok(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submissions_share_the_time() {
        let mut limits = Limits::new(Duration::from_secs(10), None);
        limits.take(Duration::from_secs(3));
        assert_eq!(
            (limits.left, limits.taken(Duration::ZERO)),
            (Duration::from_secs(7), Duration::from_secs(3))
        );
        limits.take(Duration::from_secs(4));
        assert_eq!(
            limits.taken(limits.left),
            Duration::from_secs(10),
            "all of it, when what is left is over"
        );
        limits.take(Duration::from_secs(9));
        assert_eq!(limits.left, Duration::ZERO);
    }

    fn fault(address: Option<u64>) -> DeviceFault {
        DeviceFault {
            what: "it stopped".to_owned(),
            address,
            wave: None,
            place: String::new(),
            is_final: true,
        }
    }

    /// Below 64 KiB an address is a null pointer's; what a kernel printed says why it trapped, not why it read there.
    #[test]
    fn a_fault_is_told_with_what_may_have_led_to_it() {
        let told = |address, services: &[&str], complaint: Option<&[u8]>| {
            KernelFault::new(fault(address), services, complaint).to_string()
        };
        assert_eq!(told(Some(0xffff), &[], None), "it stopped; the address is a null pointer's");
        assert_eq!(told(Some(0x1_0000), &["heap"], Some(b"x")), "it stopped");
        let services = "it stopped; the address is a null pointer's, and these implicit arguments are null, because \
                        their services do not exist here: heap, queue; compile without malloc and device-side launches";
        assert_eq!(told(Some(0), &["heap", "queue"], Some(b"x")), services);
        let printed = "it stopped; the kernel printed before: assertion failed";
        assert_eq!(told(None, &["heap"], Some(b"assertion failed\n")), printed);
        assert_eq!(told(None, &["heap"], None), "it stopped");
    }

    #[test]
    fn a_fault_ends_a_kernel_for_another_reason_than_its_time() {
        let fault = Unfinished::Fault(Box::new(KernelFault::new(fault(None), &[], None)));
        assert!(!fault.is_timeout() && fault.fault().is_some());
        assert_eq!(fault.to_string(), "it stopped");
    }

    /// A pause that lasts, and one that has passed since the last look; then nothing.
    #[test]
    fn pauses_are_noticed_while_they_last_and_once_afterwards() {
        let (pauses, mut seen) = (Pauses::default(), 0);
        assert!(!pauses.is_new(&mut seen));
        let during = pauses.during(|| [pauses.is_new(&mut seen), pauses.is_new(&mut seen)]);
        assert_eq!(during, [true, true]);
        assert_eq!([pauses.is_new(&mut seen), pauses.is_new(&mut seen)], [true, false]);
        pauses.during(|| ());
        assert_eq!([pauses.is_new(&mut seen), pauses.is_new(&mut seen)], [true, false]);
    }
}
