//! Typed addresses and lengths, heaps, the memory plan, pages with owners, the one view of memory shared with a
//! device, the HDP flush after writes through the BAR, and random numbers.
//!
//! Contract: this crate knows nothing of Linux. `unsafe` exists in [`shared`] only, and each block there
//! states its proof. Nothing here allocates after construction unless its documentation says so.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod address;
pub mod hdp;
pub mod heap;
pub mod pages;
pub mod random;
pub mod shared;

pub use address::{ByteLen, DwordLen, GpuVa};
pub use heap::Heap;
pub use pages::PageAllocator;
pub use random::Random;
pub use shared::SharedView;
