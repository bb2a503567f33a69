//! Sessions of a made model of one or two layers: what they write and read, on a virtual device whose part a case plays
//! itself, and what they promise where the device runs.
#![allow(clippy::unwrap_used)] // Helpers of tests panic as tests do.

mod ends;
mod fits;
#[path = "../made/mod.rs"]
mod made;
mod played;
mod runs;
mod tape;
mod told;
mod watched;
mod written;
