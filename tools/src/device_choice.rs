//! The `--device` option: the same names everywhere, and `ZRT_DEVICE` for the default.
//!
//! Contract: pure; clap reads the variable.

use clap::Args;
use zrt_bringup::DeviceChoice;

/// The option that every command with a device has.
#[derive(Clone, Copy, Debug, Args)]
pub struct DeviceOption {
    /// Device to run on: auto, cpu, virtual, kfd or userq
    #[arg(long, value_name = "DEVICE", env = zrt_bringup::DEVICE_VARIABLE, default_value_t = DeviceChoice::Auto)]
    pub device: DeviceChoice,
}
