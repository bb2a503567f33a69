//! The virtual driver seen by a client that writes its structures byte by byte (hardware reference §10, checks 11 to
//! 13, 16 and 17).

mod client;
mod events;
mod execution;
mod faults;
mod memory;
mod queues;
mod requests;
