//! The checker as the watcher of a memory port.
//!
//! Contract: a [`Watch`] performs the accesses of waves on the checker's copy of memory, and reports them to the
//! search for endless waits. [`WatchedPort`] retrieves it from its port: nobody else watches a port. Cost: a type
//! comparison per retrieval.

use crate::check::memory::MemoryChecker;
use crate::check::progress::Progress;
use crate::memory::{Mapped, MemoryPort, PageTable, Watcher};
use std::any::Any;

/// The checking mode's knowledge of memory.
#[derive(Debug)]
pub(crate) struct Watch {
    pub checker: MemoryChecker,
    pub progress: Progress,
}

impl Watch {
    /// For a device without history.
    pub fn new() -> Watch {
        Watch { checker: MemoryChecker::new(), progress: Progress::default() }
    }
}

impl Watcher for Watch {
    fn load(&mut self, lane: u32, va: u64, host: &mut Mapped<'_>, destination: &mut [u8]) {
        self.checker.load(lane, va, host, destination);
        self.progress.load(va, destination);
    }

    fn store(&mut self, lane: u32, va: u64, source: &[u8], host: &mut Mapped<'_>) {
        self.checker.store(lane, va, source, host);
        self.progress.change();
    }

    fn atomic(
        &mut self,
        lane: u32,
        va: u64,
        host: &mut Mapped<'_>,
        old: &mut [u8],
        next: &dyn Fn(u64) -> u64,
    ) {
        let width = old.len();
        let mut is_change = false;
        self.checker.atomic(lane, va, host, old, |bytes| {
            let mut value = [0; 8];
            value[..width].copy_from_slice(bytes);
            let before = u64::from_le_bytes(value);
            let after = next(before);
            is_change = after != before;
            bytes.copy_from_slice(&after.to_le_bytes()[..width]);
        });
        if is_change {
            self.progress.change();
        }
        self.progress.load(va, old);
    }

    fn prefetch(&mut self, va: u64, len: u64, is_data: bool, host: &mut Mapped<'_>) {
        self.checker.prefetch(va, len, is_data, host);
    }
}

/// A port that may have a [`Watch`].
pub(crate) trait WatchedPort {
    /// The watch of this port, if it has one.
    fn watch(&mut self) -> Option<&mut Watch> {
        self.watch_of_table().map(|(watch, _)| watch)
    }

    /// The watch together with the port's page table.
    fn watch_of_table(&mut self) -> Option<(&mut Watch, &PageTable)>;

    /// Puts a watch on the port.
    fn lend_watch(&mut self, watch: Option<Box<Watch>>);

    /// Removes the watch from the port.
    fn take_watch(&mut self) -> Option<Box<Watch>>;
}

impl WatchedPort for MemoryPort {
    #[inline]
    fn watch_of_table(&mut self) -> Option<(&mut Watch, &PageTable)> {
        let (watcher, table) = self.watcher()?;
        let watcher: &mut dyn Any = watcher;
        let watch = watcher.downcast_mut();
        assert!(watch.is_some(), "a port is watched by the checker alone");
        watch.map(|watch| (watch, table))
    }

    fn lend_watch(&mut self, watch: Option<Box<Watch>>) {
        self.set_watcher(watch.map(|watch| watch as Box<dyn Watcher>));
    }

    fn take_watch(&mut self) -> Option<Box<Watch>> {
        let watcher: Box<dyn Any> = self.set_watcher(None)?;
        let watch = watcher.downcast().ok();
        assert!(watch.is_some(), "a port is watched by the checker alone");
        watch
    }
}
