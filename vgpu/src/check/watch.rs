//! The checker's seat on a memory port.
//!
//! Contract: a [`Watch`] carries out the accesses of waves on the checker's copy of memory, and tells who looks for waits
//! without end. [`WatchedPort`] gives those above it back from the port that it sits on: nobody else watches one.
//! Cost: a comparison of types for each look at it.

use crate::check::memory::MemoryChecker;
use crate::check::progress::Progress;
use crate::memory::{Mapped, MemoryPort, PageTable, Watcher};
use std::any::Any;

/// What the checking mode knows of memory.
#[derive(Debug)]
pub(crate) struct Watch {
    pub checker: MemoryChecker,
    pub progress: Progress,
}

impl Watch {
    /// Of a device that has done nothing.
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

/// A port that a [`Watch`] may sit on.
pub(crate) trait WatchedPort {
    /// It, where it does.
    fn watch(&mut self) -> Option<&mut Watch> {
        self.watch_of_table().map(|(watch, _)| watch)
    }

    /// The same with the page table of the port.
    fn watch_of_table(&mut self) -> Option<(&mut Watch, &PageTable)>;

    /// Makes it sit there.
    fn lend_watch(&mut self, watch: Option<Box<Watch>>);

    /// Takes it away.
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
