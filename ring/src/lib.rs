//! The host's side of a compute queue: command ring, doorbell, fences, recorded graphs, watchdog.
//!
//! - [`CommandRing`] writes packets into a mapped ring and rings the doorbell: bodies, then the first header, then the
//!   write pointer, then one 64-bit doorbell store (hardware reference §6.4).
//! - [`Fence`] and [`Timeline`] show the device's progress, by a 64-bit value in shared memory that RELEASE_MEM
//!   writes.
//! - [`GraphRecorder`] records dispatches into an indirect buffer once; [`CommandRing::submit_graph`] replays the
//!   [`Graph`] with one submission and one doorbell.
//! - [`Watchdog`] turns pointers and fence seen over time into a diagnosis.
//! - [`token_ring`] is the host's side of a resident kernel: requests go in by one ring, tokens come out by the
//!   other.
//! - [`mock`] is the other side as a model of its rules, for tests here and in crates above.
//!
//! # Contract
//! Nothing here makes a system call, takes a lock, or allocates on the path of a submission ([`GraphRecorder`]
//! allocates when it is made). Whatever the other side writes into pointers and fences causes an error or a wait,
//! never a panic and never the overwriting of an unread packet. Every wait ends by the caller's [`Clock`].
//!
//! A command ring has one producer: the methods take `&mut self`, and nothing else may write the ring, the write
//! pointer or the doorbell.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod clock;
mod command_ring;
mod error;
#[cfg(test)]
mod every_state;
mod fence;
mod graph;
pub mod mock;
mod publish;
mod queue_memory;
mod read_proof;
pub mod token_ring;
mod watchdog;

pub use clock::Clock;
pub use command_ring::{
    CommandRing, Counters, EventSlot, FenceSignal, RING_BYTES_MIN, START_POINTER_MAX, Submission,
};
pub use error::{FenceError, GraphError, RingError};
pub use fence::{Fence, Timeline};
pub use graph::{GRAPH_DWORDS_MAX, GRAPH_PARTS_MAX, Graph, GraphRecorder};
pub use queue_memory::QueueMemory;
pub use token_ring::{ControlDwords, ControlLines, InputRing, OutputRing, TakeError, TokenRingError};
pub use watchdog::{Diagnosis, Observation, ReadProgress, Watchdog};
