//! From a choice to an opened device.
//!
//! Contract: [`open_over`] is the only entry point: a device over an attachment, tested unless the options say not to.
//! The files of its driver show which tier lies below; this is checked once, here, and the device itself does not know
//! it. Blocks while the self-test runs (milliseconds).

use crate::choice::{DeviceChoice, OpenOptions};
use crate::error::OpenError;
use crate::inspect::{self, VirtualWitness};
use crate::selftest::{self, Extent};
use crate::virtual_tier::virtual_process;
use std::sync::Arc;
use zrt_device::{Attachment, Device, DeviceError, DeviceOptions};
use zrt_kmd::{KmdError, Syscalls};

/// How long a wait spins over the virtual device, which needs the host's cores for itself.
const SPIN_US_VIRTUAL: u64 = 3;
/// What precedes the board's name of the virtual device.
const BRAND_VIRTUAL: &str = "Virtual";

/// Opens the device of a choice. [`DeviceChoice::Auto`] is [`open_auto`].
pub fn open(choice: DeviceChoice, options: &OpenOptions) -> Result<Device, OpenError> {
    let refuse = |reason| Err(OpenError::NotOpenable { choice: choice.name(), reason });
    match choice {
        DeviceChoice::Virtual => open_over(&virtual_process(options)?, options),
        DeviceChoice::Kfd => open_over(&Attachment::of_this_process()?, options),
        DeviceChoice::Auto => Ok(open_auto(options)?.device),
        DeviceChoice::Cpu => {
            refuse("it is the oracle of the engine, not a device; choose auto, virtual or kfd")
        }
        DeviceChoice::Userq => refuse("user queues are not driven yet; use kfd or virtual"),
    }
}

/// What [`open_auto`] opened.
#[derive(Debug)]
pub struct Opened {
    /// The device.
    pub device: Device,
    /// Why it is not a card.
    pub no_card: Option<OpenError>,
}

/// Opens a card that passes its self-test, else the virtual device.
///
/// # Errors
/// [`KmdError::ProcessLost`] if this process has lost its card, which is not the same as a machine without one.
/// Otherwise the reason why the virtual device could not be made.
pub fn open_auto(options: &OpenOptions) -> Result<Opened, OpenError> {
    card_or_virtual(open(DeviceChoice::Kfd, options), options)
}

/// The card if it was opened, else the virtual device.
pub(crate) fn card_or_virtual(
    card: Result<Device, OpenError>,
    options: &OpenOptions,
) -> Result<Opened, OpenError> {
    match card {
        Ok(device) => Ok(Opened { device, no_card: None }),
        Err(error @ OpenError::Device(DeviceError::Kmd(KmdError::ProcessLost { .. }))) => Err(error),
        Err(error) => Ok(Opened { device: open(DeviceChoice::Virtual, options)?, no_card: Some(error) }),
    }
}

/// Opens the first gfx1201 over an attachment: a further device of this process, or one over a virtual board that the
/// caller keeps. Any number may be open, at the same time or one after the other.
///
/// # Errors
/// [`OpenError::SelfTest`] names the case that a device failed; [`KmdError::ProcessLost`] follows a page fault or a
/// reset, after which no device of the process will ever run again.
pub fn open_over(attachment: &Arc<Attachment>, options: &OpenOptions) -> Result<Device, OpenError> {
    let tier = device_options(attachment.process().syscalls(), options);
    let mut device = Device::open(attachment, &tier)?;
    if !options.self_test {
        return Ok(device);
    }
    let reports = selftest::run(&mut device, Extent::Short);
    selftest::refusal(&device, &reports).map_or(Ok(device), Err)
}

/// The options for a device, according to the tier below the seam.
fn device_options(syscalls: &dyn Syscalls, options: &OpenOptions) -> DeviceOptions {
    let OpenOptions { ring_bytes, gtt_only, virtual_device: asked, .. } = *options;
    let card = DeviceOptions { ring_bytes, gtt_only, ..DeviceOptions::default() };
    if !inspect::is_virtual(syscalls) {
        return card;
    }
    DeviceOptions {
        spin_us: SPIN_US_VIRTUAL,
        brand: BRAND_VIRTUAL,
        // A device that runs waves one after another counts instructions.
        has_real_clock: !(asked.scheduler_seed.is_some() || asked.check || asked.profile),
        witness: Some(&VirtualWitness),
        ..card
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_vgpu::{Config, VirtualGpu};

    /// A wait that spins for longer takes the cores on which the virtual device runs.
    #[test]
    fn a_wait_spins_longer_for_a_card_than_for_the_virtual_device() {
        let virtual_device = VirtualGpu::new(Config::default()).unwrap();
        let tier = device_options(&*virtual_device, &OpenOptions::default());
        assert_eq!((tier.spin_us, tier.brand), (SPIN_US_VIRTUAL, BRAND_VIRTUAL));
        assert!(tier.spin_us < DeviceOptions::default().spin_us);
    }
}
