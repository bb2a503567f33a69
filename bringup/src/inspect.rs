//! The virtual device's reports about itself, read from an opened device.
//!
//! Contract: five files of the virtual driver, read through the seam on request: findings, faults, waves, profile,
//! kernel. For a card all of it is empty. It reads files and allocates: never on the path of a token. Nothing is sent
//! to the device.

use crate::faults::{self, DeviceFault};
use crate::findings::{self, Finding};
use crate::virtual_files::{self, KERNEL_PATH, PROFILE_PATH};
use crate::{counters, waves};
use zrt_device::{Counters, Device, DeviceError, Registry, Waves, Witness};
use zrt_kmd::Syscalls;

/// Questions for a device that may be the virtual one.
pub trait Inspect {
    /// True for the virtual device, whose times say nothing about the speed of a card.
    fn is_virtual(&self) -> bool;

    /// The kernel release whose rules the virtual device's driver follows; `None` on a card.
    fn virtual_kernel(&self) -> Option<String>;

    /// What the checking mode found so far; empty if it is off, and on a card.
    ///
    /// # Errors
    /// [`DeviceError::Evidence`] if the file does not have the expected form.
    fn findings(&self) -> Result<Vec<Finding>, DeviceError>;

    /// What the virtual device knows to have gone wrong so far, oldest first; empty on a card. A wave that stops for
    /// good is listed at once, while a wait learns of it only at its deadline, as on a card.
    fn faults(&self) -> Vec<DeviceFault>;

    /// The positions of the waves that have not ended; the virtual device is paused meanwhile. Nothing is known about a
    /// card's waves.
    ///
    /// # Errors
    /// [`DeviceError::Evidence`] if the file does not have the expected form.
    fn waves(&self) -> Result<Waves, DeviceError>;

    /// What waves did, as a JSON object; `None` if it is not counted, and on a card.
    fn profile(&self) -> Option<String>;
}

impl Inspect for Device {
    fn is_virtual(&self) -> bool {
        is_virtual(self.syscalls())
    }

    fn virtual_kernel(&self) -> Option<String> {
        kernel(self.syscalls())
    }

    fn findings(&self) -> Result<Vec<Finding>, DeviceError> {
        findings::read(self.syscalls(), self.registry())
    }

    fn faults(&self) -> Vec<DeviceFault> {
        faults::read(self.syscalls(), self.registry())
    }

    fn waves(&self) -> Result<Waves, DeviceError> {
        waves::read(self.syscalls(), self.registry())
    }

    fn profile(&self) -> Option<String> {
        let text = virtual_files::read(self.syscalls(), PROFILE_PATH).ok()??;
        (!text.is_empty()).then_some(text)
    }
}

/// Whether the virtual driver answers below a seam: it names the kernel release that it follows.
pub(crate) fn is_virtual(syscalls: &dyn Syscalls) -> bool {
    kernel(syscalls).is_some()
}

fn kernel(syscalls: &dyn Syscalls) -> Option<String> {
    Some(virtual_files::read(syscalls, KERNEL_PATH).ok()??.trim_ascii().to_owned())
}

/// The virtual driver's files as the device's witness.
pub(crate) struct VirtualWitness;

impl Witness for VirtualWitness {
    fn counters(&self, syscalls: &dyn Syscalls) -> Result<Counters, DeviceError> {
        counters::read(syscalls)
    }

    fn log(&self, syscalls: &dyn Syscalls) -> Vec<String> {
        faults::lines(syscalls)
    }

    fn waves(&self, syscalls: &dyn Syscalls, registry: &Registry) -> Result<Waves, DeviceError> {
        waves::read(syscalls, registry)
    }
}
