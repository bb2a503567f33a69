//! From a choice on the command line to an opened device.
//!
//! Contract: blocks while the device passes its self-test. Choices that are no device are errors.

use crate::error::ToolError;
use zrt_device::{Device, DeviceChoice, OpenOptions};

/// An opened device and what it turned out to be (`auto` chooses).
pub struct OpenedDevice {
    /// The device.
    pub device: Device,
    /// Its name.
    pub name: String,
    /// True for the virtual one.
    pub is_virtual: bool,
}

/// Opens the device. Where `auto` takes the virtual one, standard error says why.
pub fn open_device(choice: DeviceChoice) -> Result<OpenedDevice, ToolError> {
    let device = Device::open(choice, &OpenOptions::default())
        .map_err(|source| ToolError::Device { device: choice.name(), source })?;
    if let Some(reason) = device.fallback_reason() {
        eprintln!("[no card: {reason}; using {}]", device.name());
    }
    Ok(OpenedDevice { name: device.name().to_owned(), is_virtual: device.is_virtual(), device })
}
