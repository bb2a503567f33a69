//! The shader engine: decodes gfx12 machine code once and executes it wave by wave.
//!
//! Read in this order: `wave`, `micro`, `machine` (what an instruction sees), `dispatch` and `launch` (how a wave
//! begins), `program` and `translate` (decoding; `code_words` for reports, `wave64` for 64 lanes), `interpreter` and `group` (running),
//! `residency`, `scheduler` and `engine` (who runs when). Instructions: `valu`, `salu`, `lanes`, `control`, `smem`,
//! `address` with `vmem`, `atomics`, `format` with `formatted`, `tiles`, `lds`.

pub(crate) mod address;
pub(crate) mod atomics;
pub mod code_words;
pub(crate) mod control;
pub mod dispatch;
pub mod engine;
pub mod fault;
pub mod float;
pub(crate) mod format;
pub(crate) mod formatted;
pub(crate) mod group;
pub(crate) mod interpreter;
pub mod lanes;
pub(crate) mod launch;
pub(crate) mod lds;
pub mod machine;
pub mod micro;
pub(crate) mod positions;
pub(crate) mod prefetch;
pub(crate) mod program;
pub(crate) mod residency;
pub mod salu;
pub(crate) mod scheduler;
pub(crate) mod smem;
#[cfg(test)]
mod tests;
pub(crate) mod tiles;
pub(crate) mod translate;
pub mod valu;
pub(crate) mod vmem;
pub mod wave;
pub(crate) mod wave64;
