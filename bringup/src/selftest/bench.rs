//! What the cases share: a page of system memory, submitting, comparing.

use std::time::Duration;
use zrt_device::{Buffer, Device, DeviceError, WORDS_MAX};
use zrt_mem::{ByteLen, GpuVa, Heap, SharedView};
use zrt_pm4::{EmitError, Writer};

/// Deadline of every wait: generous for a virtual device on a loaded host.
pub(super) const CASE_DEADLINE: Duration = Duration::from_secs(10);
/// What memory holds before the device writes to it.
pub(super) const POISON: u32 = 0xdead_beef;
/// Length of the shared page.
const PAGE_BYTES: u64 = 64 << 10;

/// A measured time.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// What was measured.
    pub name: &'static str,
    /// How long it took, in nanoseconds.
    pub nanoseconds: f64,
}

/// What was observed instead of what should be.
pub(super) struct Failure {
    pub(super) text: String,
    /// True if a wait ended at its deadline or the device is lost: no later case can pass.
    pub(super) is_stop: bool,
}

impl Failure {
    /// A value or a state that is not what it should be.
    pub(super) fn wrong(text: String) -> Failure {
        Failure { text, is_stop: false }
    }

    /// A wait that ended at its deadline.
    pub(super) fn stop(text: String) -> Failure {
        Failure { text, is_stop: true }
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Failure {
        match error {
            DeviceError::Stopped(_) | DeviceError::Lost => Failure::stop(error.to_string()),
            _ => Failure::wrong(error.to_string()),
        }
    }
}

impl From<EmitError> for Failure {
    fn from(error: EmitError) -> Failure {
        Failure::wrong(error.to_string())
    }
}

/// A device and memory that both sides see.
pub(super) struct Bench<'a> {
    pub(super) device: &'a mut Device,
    pub(super) page: Buffer,
    view: SharedView,
    timings: &'a mut Vec<Timing>,
    /// The deadline of every wait.
    pub(super) deadline: Duration,
}

impl<'a> Bench<'a> {
    /// A bench whose page holds [`POISON`] everywhere.
    pub(super) fn new(
        device: &'a mut Device,
        timings: &'a mut Vec<Timing>,
        deadline: Duration,
    ) -> Result<Bench<'a>, Failure> {
        let page = device.allocate(Heap::Host, ByteLen(PAGE_BYTES), "self-test page")?;
        let view = page.view()?.clone();
        for offset in (0..view.len()).step_by(4) {
            view.store_u32(offset, POISON);
        }
        Ok(Bench { device, page, view, timings, deadline })
    }

    /// The GPU's address of a byte of the page.
    pub(super) fn va(&self, offset: usize) -> GpuVa {
        GpuVa(self.page.va.0 + offset as u64)
    }

    /// A dword of the page.
    pub(super) fn get(&self, offset: usize) -> u32 {
        self.view.load_u32_acquire(offset)
    }

    /// A quadword of the page.
    pub(super) fn get_u64(&self, offset: usize) -> u64 {
        self.view.load_u64_acquire(offset)
    }

    /// Sets a dword of the page.
    pub(super) fn set(&self, offset: usize, value: u32) {
        self.view.store_u32_release(offset, value);
    }

    /// Sets a quadword of the page.
    pub(super) fn set_u64(&self, offset: usize, value: u64) {
        self.view.store_u64_release(offset, value);
    }

    /// Submits packets and waits for them.
    pub(super) fn submit(
        &mut self,
        write: impl FnOnce(&mut Writer<'_>) -> Result<(), EmitError>,
    ) -> Result<(), Failure> {
        let mut words = [0; WORDS_MAX];
        let mut writer = Writer::new(&mut words);
        write(&mut writer)?;
        let used = writer.len();
        let ticket = self.device.submit_words(&words[..used])?;
        Ok(self.device.wait(ticket, self.deadline)?)
    }

    /// Compares a dword of the page.
    pub(super) fn expect(&self, what: &str, offset: usize, expected: u32) -> Result<(), Failure> {
        equal(what, self.get(offset), expected)
    }

    /// Records a measured time.
    pub(super) fn time(&mut self, name: &'static str, total: Duration, count: u64) {
        let nanoseconds = total.as_nanos() as f64 / count.max(1) as f64;
        self.timings.push(Timing { name, nanoseconds });
    }
}

/// Compares a dword.
pub(super) fn equal(what: &str, observed: u32, expected: u32) -> Result<(), Failure> {
    if observed == expected {
        return Ok(());
    }
    let untouched = if observed == POISON { " (untouched)" } else { "" };
    Err(Failure::wrong(format!("{what} is {observed:#010x}{untouched}, expected {expected:#010x}")))
}

/// Checks a condition.
pub(super) fn check(condition: bool, observed: impl FnOnce() -> String) -> Result<(), Failure> {
    if condition { Ok(()) } else { Err(Failure::wrong(observed())) }
}
