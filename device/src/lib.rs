//! One opened GPU: heaps, kernels, graphs, a queue and fences, over the kernel driver.
//!
//! This is what an engine, or another server, links against. The same code drives a card through KFD and the virtual
//! R9700; which one it is shows in [`Device::is_virtual`] and nowhere else.
//!
//! # Contract
//! - [`Device::open`] runs a self-test; a device that fails is refused by the name of the failing case.
//! - Set-up (allocate, load, record, upload) makes system calls and allocates. [`Device::submit`] and a
//!   [`Device::wait`] that finds its fence while spinning touch mapped memory only: no lock, no allocation, no
//!   system call.
//! - Every wait has a deadline, and one that ends badly says why ([`Diagnosis`]), naming kernels and buffers.
//! - Buffers, kernels and graphs own their memory and may outlive the device; dropping gives everything back by call, in
//!   the driver's order. Closing files gives nothing back: the driver's state is the process's.
//! - Any number of devices may be open in a process, at a time and one after the other. They share what a process has
//!   once, an [`Attachment`]. After a page fault or a reset of the GPU the driver is done with the process, and opening
//!   says so.
//! - It knows nothing of models and tokens.
//!
//! ```no_run
//! use std::time::Duration;
//! use zrt_device::{Device, DeviceChoice, OpenOptions};
//! use zrt_mem::{ByteLen, Heap};
//!
//! let mut device = Device::open(DeviceChoice::Auto, &OpenOptions::default())?;
//! let kernel = device.load_kernel(&std::fs::read("add.zrt")?)?;
//! let parameters = device.allocate(Heap::HostVisible, ByteLen(256), "parameters")?;
//! let mut recorder = device.recorder(1)?;
//! recorder.dispatch(&kernel, parameters.va, [64, 1, 1])?;
//! let graph = recorder.finish()?;
//! let ticket = device.submit(&graph)?;
//! device.wait(ticket, Duration::from_secs(1))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod choice;
mod code;
mod copy;
mod counters;
mod device;
mod diagnosis;
mod error;
mod faults;
mod findings;
mod graph;
mod info;
mod kernel;
mod memory;
mod pace;
pub mod probe;
mod registry;
pub mod selftest;
mod submit;
#[cfg(test)]
mod tests;
mod virtual_tier;
mod waves;

pub use choice::{
    DEVICE_VARIABLE, DeviceChoice, OpenOptions, RING_BYTES_DEFAULT, VIRTUAL_THREADS_MAX, VirtualOptions,
};
pub use code::{CODE_BYTES_MAX, Code, CodeLabel, LaunchKernel, LaunchParameters};
pub use counters::Counters;
pub use device::{Device, Ticket};
pub use diagnosis::{Diagnosis, StopCause};
pub use error::DeviceError;
pub use faults::{DeviceFault, FaultedWave};
pub use findings::{Finding, Place};
pub use graph::{Graph, Recorder};
pub use info::DeviceInfo;
pub use kernel::Kernel;
pub use memory::Buffer;
pub use virtual_tier::virtual_config;
pub use waves::{WaveLoad, WavePosition, WaveState, Waves};
pub use zrt_kmd::{Attachment, ProcessLoss};
pub use zrt_mem::Heap;
pub use zrt_vgpu::PlantedFault;
pub use zrt_vgpu::config::KernelRelease;
