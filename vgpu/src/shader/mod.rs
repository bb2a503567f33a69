//! How a wave executes: decodes gfx12 machine code once and runs it wave by wave.
//!
//! Reading order: `wave`, `micro`, `machine` (what an instruction sees), `dispatch` and `launch` (how a wave
//! begins), `program` and `translate` (decoding; `code_words` for reports, `wave64` for 64 lanes), `interpreter`
//! (running). Instructions: `valu`, `salu`, `lanes`, `control`, `smem`, `address` with `vmem`, `atomics`, `format`
//! with `formatted`, `tiles`, `lds`. Groups of waves and their scheduling are in [`workgroups`](crate::workgroups).

pub(crate) mod address;
pub(crate) mod atomics;
#[cfg(test)]
mod binding;
pub mod code_words;
pub(crate) mod control;
pub mod dispatch;
pub mod fault;
pub mod float;
pub(crate) mod format;
pub(crate) mod formatted;
pub(crate) mod interpreter;
pub(crate) mod lane_access;
pub(crate) mod lane_transfer;
pub mod lanes;
pub(crate) mod launch;
pub(crate) mod lds;
pub mod machine;
pub mod micro;
pub(crate) mod prefetch;
pub(crate) mod program;
pub mod salu;
pub(crate) mod smem;
pub(crate) mod tiles;
pub(crate) mod translate;
pub mod valu;
pub(crate) mod vmem;
pub mod wave;
pub(crate) mod wave64;
