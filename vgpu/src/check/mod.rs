//! The checking mode: what a forgiving device would let pass.
//!
//! Contract: nothing here runs with checking off. [`memory`] judges what waves do to each other through memory.

pub mod memory;
