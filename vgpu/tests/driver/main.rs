//! The virtual driver seen by a client that writes its structures byte by byte (hardware reference §2, §8).
// Test helpers also fail by panicking.
#![allow(clippy::unwrap_used)]

mod checking;
mod client;
mod clients;
mod dispatch;
mod events;
mod execution;
mod faults;
mod memory;
mod queues;
mod releases;
mod render;
mod requests;
mod user_memory;
