//! From a choice on the command line to an opened device.
//!
//! Contract: blocks while the device passes its self-test. Choices that are not a device are errors.

use crate::error::ToolError;
use zrt_bringup::{DeviceChoice, Inspect, OpenOptions, Opened};
use zrt_device::Device;

/// An opened device and what it turned out to be (`auto` chooses).
pub struct OpenedDevice {
    /// The device.
    pub device: Device,
    /// Its name.
    pub name: String,
    /// True for the virtual one.
    pub is_virtual: bool,
}

/// Opens the device. If `auto` takes the virtual one, standard error says why.
pub fn open_device(choice: DeviceChoice) -> Result<OpenedDevice, ToolError> {
    let options = OpenOptions::default();
    let opened = match choice {
        DeviceChoice::Auto => zrt_bringup::open_auto(&options),
        named => zrt_bringup::open(named, &options).map(|device| Opened { device, no_card: None }),
    };
    let Opened { device, no_card } =
        opened.map_err(|source| ToolError::Device { device: choice.name(), source })?;
    if let Some(reason) = no_card {
        eprintln!("[no card: {reason}; using {}]", device.name());
    }
    Ok(OpenedDevice { name: device.name().to_owned(), is_virtual: device.is_virtual(), device })
}
