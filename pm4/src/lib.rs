//! PM4 packets and compute registers of GC 12.0, in the form that the compute engine of gfx12 (the MEC) accepts.
//!
//! Each packet has two levels, in one file under [`packet`]:
//! - a *view* (`Packet<T>` over any dwords) reads the fields in place;
//! - a *representation* (`Repr`) is the packet's meaning as a plain value, with `parse`, `dword_len` and `emit`.
//!
//! # Contract
//! - Nothing here panics on any words. After `check_len` (or `new_checked`) has succeeded, no accessor of a view
//!   panics, and `parse` returns a value or a [`ParseError`]. `new_unchecked` is for words this program has just
//!   emitted; on other words its accessors may panic.
//! - `parse` accepts exactly what `emit` can produce: undefined bits are [`ParseError::Reserved`], so emit ∘ parse
//!   reproduces the words.
//! - `emit` writes every dword of a slice exactly as long as [`dword_len`](packet::Repr::dword_len), or returns an
//!   [`EmitError`] and writes none. A value too wide for its field is an error, never cut to fit.
//! - No allocation, no `unsafe`, no knowledge of Linux, rings or kernels.
//!
//! [`Writer`] records a stream into a caller's buffer, [`Reader`] walks one, [`Listing`] prints one, and [`lint()`]
//! finds writes and orders that the hardware accepts but that break the next submission.
//!
//! Numbers come from the hardware reference §4 and §5; each constant names its section.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

#[macro_use]
mod field;
mod error;
pub mod header;
pub mod lint;
pub mod opcode;
pub mod packet;
mod print;
mod reader;
pub mod registers;
mod writer;

pub use error::{EmitError, ParseError};
pub use field::{Field, FieldOverflow};
pub use header::{Header, HeaderFlags};
pub use lint::{Finding, lint};
pub use opcode::Opcode;
pub use print::Listing;
pub use reader::{Item, ItemKind, Reader, StreamError};
pub use registers::{Register, WriteClass};
pub use writer::{KernelParameters, KernelState, Writer};

pub use packet::acquire_mem::{AcquireControl, AcquireFlags};
pub use packet::release_mem::{DataSelect, InterruptSelect, ReleaseFlags};
