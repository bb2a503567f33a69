//! A virtual Radeon AI PRO R9700 (gfx1201) behind the kernel driver's ioctl seam.
//!
//! Contract: it implements [`zrt_kmd::Syscalls`] and nothing more; it never checks which kernel it runs. It has its
//! own field constants of packets and registers, written from the hardware reference, so that encoder and decoder
//! cannot agree on an error. `unsafe` exists in [`simd`] only.
#![doc = include_str!("../README.md")]
#![deny(unsafe_code)]

pub mod check;
pub mod command_processor;
pub mod config;
pub mod counters;
pub mod coverage;
pub mod kernel;
pub mod memory;
pub mod shader;
pub mod simd;
pub mod workgroups;

pub use command_processor::injection::{FaultInjection, Misreading, PlantedFault, READ_POINTER_NEVER_DWORDS};
pub use config::Config;
pub use kernel::VirtualGpu;
