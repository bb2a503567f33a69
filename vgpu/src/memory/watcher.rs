//! Who performs the accesses through a watched port, and what a port knows of it.
//!
//! Contract: the page table has permitted every access that a [`Watcher`] is given.

use super::host_memory::Mapped;
use std::any::Any;
use std::fmt::Debug;

/// Performs every access through a port, on the memory behind the caches; the bytes are mapped.
pub(crate) trait Watcher: Any + Debug + Send {
    /// A lane loads: `destination` receives what it sees.
    fn load(&mut self, lane: u32, va: u64, host: &mut Mapped<'_>, destination: &mut [u8]);

    /// A lane stores.
    fn store(&mut self, lane: u32, va: u64, source: &[u8], host: &mut Mapped<'_>);

    /// A lane replaces the old value by `next` of it; `old`, 4 or 8 bytes, receives the old value.
    fn atomic(
        &mut self,
        lane: u32,
        va: u64,
        host: &mut Mapped<'_>,
        old: &mut [u8],
        next: &dyn Fn(u64) -> u64,
    );

    /// A wave prefetches lines of data or code.
    fn prefetch(&mut self, va: u64, len: u64, is_data: bool, host: &mut Mapped<'_>);
}

/// The watcher of a port, and what it is told.
#[derive(Debug, Default)]
pub(super) struct Watched {
    pub watcher: Option<Box<dyn Watcher>>,
    /// The lane of the next access.
    pub lane: u32,
    pub first_lane: u32,
    /// Index of the range found last.
    pub range_hint: usize,
}

impl Watched {
    /// Whether there is a watcher.
    pub(super) fn is_on(&self) -> bool {
        self.watcher.is_some()
    }
}
