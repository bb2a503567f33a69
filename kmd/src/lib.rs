//! The Linux kernel side of zrt: KFD and amdgpu structures, ioctls, topology, memory, queues, events.
//!
//! Contract: every system call goes through [`Syscalls`], which carries raw bytes; the same code drives the real
//! `/dev/kfd` and a virtual device. `unsafe` exists in [`syscalls`] only. Everything here is set-up: after it, a
//! queue is memory ([`Queue::ring`], [`Queue::doorbell`]). Everything made here is torn down in order when dropped.
#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod attachment;
pub mod bindings;
#[cfg(test)]
mod driver_tests;
pub mod errno;
pub mod error;
pub mod event;
pub mod ioctl;
pub mod memory;
pub mod process_loss;
pub mod queue;
pub mod queue_refusal;
pub mod queue_size;
#[cfg(test)]
mod scripted;
pub mod syscalls;
pub mod topology;
pub mod vm;

pub use attachment::Attachment;
pub use errno::Errno;
pub use error::KmdError;
pub use event::{EventReport, Events, HardwareException, MemoryFault};
pub use memory::{AllocationRequest, Buffer, MemoryKind};
pub use process_loss::ProcessLoss;
pub use queue::Queue;
pub use queue_refusal::QueueRefusal;
pub use queue_size::QueueBufferSizes;
pub use syscalls::{
    Fd, LinuxSyscalls, MappedFile, Mapping, MemoryFile, Protection, Reservation, Syscalls, UserPointer,
};
pub use topology::{GpuNode, Topology, TopologyError};
pub use vm::{Process, Vm};
