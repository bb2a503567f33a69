//! The choice of a device, a card or the virtual R9700, its self-test, its probe, and its reports.
//!
//! This crate stands above [`zrt_device`] and links the simulator. A server that has a card and wants neither the
//! choice nor the self-test links `zrt-device` alone.
//!
//! # Contract
//! - [`open`] and [`open_over`] run the short self-test unless [`OpenOptions::self_test`] says not to; a device that
//!   fails is refused with the name of the failing case.
//! - A device learns of its tier once, through its [`zrt_device::DeviceOptions`]. Everything else that the virtual
//!   device reports about itself is read from its driver's files, by [`Inspect`], and is empty for a card.
//! - Nothing here sends the virtual device anything that a card would not receive.
//!
//! ```no_run
//! use std::time::Duration;
//! use zrt_bringup::{DeviceChoice, OpenOptions};
//! use zrt_device::Heap;
//! use zrt_mem::ByteLen;
//!
//! let mut device = zrt_bringup::open(DeviceChoice::Auto, &OpenOptions::default())?;
//! let kernel = device.load_kernel(&std::fs::read("add.zrt")?)?;
//! let parameters = device.allocate(Heap::HostVisible, ByteLen(256), "parameters")?;
//! let mut recorder = device.recorder(1)?;
//! recorder.dispatch(&kernel, parameters.va, [64, 1, 1])?;
//! let graph = recorder.finish()?;
//! let ticket = device.submit(&graph)?;
//! device.wait(ticket, Duration::from_secs(1))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod choice;
mod counters;
mod error;
mod faults;
mod findings;
mod inspect;
mod open;
pub mod probe;
pub mod selftest;
#[cfg(test)]
mod tests;
mod times;
mod virtual_files;
mod virtual_tier;
mod waves;

pub use choice::{DEVICE_VARIABLE, DeviceChoice, OpenOptions, VIRTUAL_THREADS_MAX, VirtualOptions};
pub use error::OpenError;
pub use faults::{DeviceFault, FaultedWave};
pub use findings::Finding;
pub use inspect::Inspect;
pub use open::{Opened, open, open_auto, open_over};
pub use virtual_tier::virtual_config;
pub use zrt_vgpu::PlantedFault;
pub use zrt_vgpu::config::KernelRelease;
