//! The addresses of a launch's buffers, for whoever inspects the kernel while it runs.
//!
//! Contract: set once, before the kernel runs; shared by the thread that launches and the one that executes waves.

use std::sync::OnceLock;

/// The buffer of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedBuffer {
    /// Index of the argument.
    pub argument: usize,
    /// Its name, if the kernel has one.
    pub name: Option<String>,
    /// Address in device memory.
    pub va: u64,
    /// Length in bytes.
    pub bytes: u64,
}

/// All of them; empty until they are placed.
#[derive(Debug, Default)]
pub struct Placement(OnceLock<Vec<PlacedBuffer>>);

impl Placement {
    /// The buffers in the order of the arguments.
    pub fn buffers(&self) -> &[PlacedBuffer] {
        self.0.get().map_or(&[], Vec::as_slice)
    }

    /// The buffer of an argument, by its name or `argN`.
    pub fn find(&self, name: &str) -> Option<&PlacedBuffer> {
        let number = name.strip_prefix("arg").and_then(|number| number.parse().ok());
        let buffers = self.buffers();
        let by_name = buffers.iter().find(|buffer| buffer.name.as_deref() == Some(name));
        by_name.or_else(|| buffers.iter().find(|buffer| Some(buffer.argument) == number))
    }

    /// Records where they are; a second sequence changes nothing.
    pub(super) fn tell(&self, placed: Vec<PlacedBuffer>) {
        // Only the first sequence of a board can be inspected.
        let _ = self.0.set(placed);
    }
}
