//! One opened GPU: heaps, kernels, graphs, a queue and fences, over the kernel driver.
//!
//! This is what an engine, or another server, links against. It is opened over an [`Attachment`], below which a card's
//! driver or something else answers. Which of them it is, and what to test before trusting it, is up to whoever opens
//! it (`zrt-bringup`).
//!
//! # Contract
//! - What the device cannot know about itself is passed in once, with [`DeviceOptions`]; no code here branches on a
//!   tier.
//! - Set-up (allocate, load, record, upload) makes system calls and allocates. [`Device::submit`] and a
//!   [`Device::wait`] that finds its fence while spinning touch mapped memory only: no lock, no allocation, no
//!   system call.
//! - Every wait has a deadline, and one that fails says why ([`Diagnosis`]), naming kernels and buffers.
//! - Buffers, kernels and graphs own their memory and may outlive the device; dropping them releases everything by
//!   call, in the driver's order. Closing files releases nothing: the driver's state belongs to the process.
//! - Any number of devices may be open in a process, at the same time or one after the other. They share what exists
//!   once per process, an [`Attachment`]. After a page fault or a reset of the GPU the driver no longer serves the
//!   process, and opening says so.
//! - It knows nothing of models and tokens.
//!
//! ```no_run
//! use std::time::Duration;
//! use zrt_device::{Attachment, Device, DeviceOptions};
//! use zrt_mem::{ByteLen, Heap};
//!
//! let mut device = Device::open(&Attachment::of_this_process()?, &DeviceOptions::default())?;
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

mod code;
mod copy;
mod counters;
mod device;
mod diagnosis;
mod error;
mod graph;
mod info;
mod kernel;
mod memory;
mod options;
mod pace;
mod registry;
mod submit;
#[cfg(test)]
mod tests;
mod waves;
mod witness;

pub use code::{CODE_BYTES_MAX, Code, LaunchKernel, LaunchParameters};
pub use counters::Counters;
pub use device::{Device, Ticket};
pub use diagnosis::{Diagnosis, RingExcerpt, StopCause};
pub use error::DeviceError;
pub use graph::{Graph, Recorder};
pub use info::DeviceInfo;
pub use kernel::Kernel;
pub use memory::Buffer;
pub use options::{DeviceOptions, RING_BYTES_DEFAULT, SPIN_US_DEFAULT};
pub use registry::{CodeLabel, EntryId, Place, Registry};
pub use submit::WORDS_MAX;
pub use waves::{WaveLoad, WavePosition, WaveState, Waves};
pub use witness::Witness;
pub use zrt_kmd::{Attachment, ProcessLoss};
pub use zrt_mem::Heap;
