//! The checking mode: what a forgiving device would let pass.
//!
//! Contract: nothing here runs with checking off. [`registers`] judges what a wave does with its registers.

pub mod registers;
