//! gfx12 (gfx1201) instruction tables, decoder, disassembler, the `.zrt` kernel container, resource words, occupancy.
//!
//! Contract: no `unsafe`, no knowledge of PM4 or Linux. Decoding arbitrary bytes never panics, never allocates.
#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod decode;
pub mod encoding;
pub mod instruction;
pub mod lint;
pub mod opcode;
pub mod resources;
mod text;
pub mod zrt;

pub use decode::{DecodeError, decode, decode_for, decode_like_llvm};
pub use encoding::Encoding;
pub use instruction::{Instruction, LaneSelect, Modifiers, Operand};
pub use lint::effects;
pub use opcode::Opcode;
pub use text::Text;
