//! Watched accesses.
//!
//! Contract: while a [`Watcher`] is on a port, memory is accessed only through the functions here. The page table
//! permits or refuses an access as usual, and the watcher performs what it permits. Only the slow path checks
//! whether there is a watcher, since the port caches no range meanwhile.
//! Cost: with a watcher, one call through a trait object for each access of a lane.

use super::host_memory::Mapped;
use super::page_table::{Fault, PageTable, Rights};
use super::port::MemoryPort;
use super::watcher::{Watched, Watcher};

impl MemoryPort {
    /// Puts a watcher on the port, or removes it. Returns the previous one.
    pub(crate) fn set_watcher(&mut self, watcher: Option<Box<dyn Watcher>>) -> Option<Box<dyn Watcher>> {
        self.forget_ranges();
        std::mem::replace(&mut self.watched.watcher, watcher)
    }

    /// The watcher, and the snapshot that it watches.
    pub(crate) fn watcher(&mut self) -> Option<(&mut dyn Watcher, &PageTable)> {
        let (table, watched) = self.split();
        watched.watcher.as_deref_mut().map(|watcher| (watcher, table))
    }

    /// Sets the lane of the next access, counted from the first.
    #[inline(always)]
    pub(crate) fn set_lane(&mut self, lane: usize) {
        self.watched.lane = self.watched.first_lane + lane as u32;
    }

    /// Sets the first lane of the half of a wave64 that accesses next.
    pub(crate) fn set_first_lane(&mut self, lane: usize) {
        self.watched.first_lane = lane as u32;
        self.watched.lane = lane as u32;
    }

    /// Copies bytes out, across adjacent ranges and at any alignment.
    pub fn read_bytes(&mut self, va: u64, destination: &mut [u8], access: Rights) -> Result<(), Fault> {
        let (table, Watched { watcher, lane, range_hint, .. }) = self.split();
        let Some(watcher) = watcher else { return table.read_bytes(va, destination, access) };
        table.covers(va, destination.len(), access, range_hint)?;
        watcher.load(*lane, va, &mut Mapped::near(table, *range_hint), destination);
        Ok(())
    }

    /// Copies bytes in, likewise. Nothing is written if any byte cannot be.
    pub fn write_bytes(&mut self, va: u64, source: &[u8]) -> Result<(), Fault> {
        let (table, Watched { watcher, lane, range_hint, .. }) = self.split();
        let Some(watcher) = watcher else { return table.write_bytes(va, source) };
        table.covers(va, source.len(), Rights::WRITE, range_hint)?;
        watcher.store(*lane, va, source, &mut Mapped::near(table, *range_hint));
        Ok(())
    }

    /// Brings lines into a watcher's caches. Returns a fault if one of them is not mapped.
    pub(crate) fn prefetch(&mut self, va: u64, len: u64, access: Rights) -> Result<(), Fault> {
        let (table, watched) = self.split();
        table.covers(va, len as usize, access, &mut 0)?;
        if let Some(watcher) = &mut watched.watcher {
            watcher.prefetch(va, len, access == Rights::READ, &mut Mapped::new(table));
        }
        Ok(())
    }

    /// A watched read-modify-write of 4 or 8 bytes. Returns the old value; `None` without a watcher.
    pub(crate) fn watched_atomic(
        &mut self,
        va: u64,
        width: usize,
        next: impl Fn(u64) -> u64,
    ) -> Option<Result<u64, Fault>> {
        let (table, Watched { watcher, lane, .. }) = self.split();
        let watcher = watcher.as_deref_mut()?;
        Some(table.covers(va, width, Rights::READ | Rights::WRITE, &mut 0).map(|()| {
            let mut old = [0; 8];
            watcher.atomic(*lane, va, &mut Mapped::new(table), &mut old[..width], &next);
            u64::from_le_bytes(old)
        }))
    }

    /// Like [`MemoryPort::read_bytes`], bypassing any watcher.
    pub fn read_unwatched(&self, va: u64, destination: &mut [u8], access: Rights) -> Result<(), Fault> {
        self.table().read_bytes(va, destination, access)
    }

    /// Like [`MemoryPort::write_bytes`], bypassing any watcher.
    pub fn write_unwatched(&self, va: u64, source: &[u8]) -> Result<(), Fault> {
        self.table().write_bytes(va, source)
    }
}

#[cfg(test)]
mod tests {
    use super::super::page_table::{AddressSpace, Cause, GPU_PAGE_BYTES};
    use super::*;
    use std::any::Any;
    use std::sync::Arc;
    use zrt_kmd::{MemoryFile, Protection};
    use zrt_mem::{ByteLen, GpuVa};

    const VA: u64 = 0x10_0000;

    /// Records the calls; loads return the lane, and nothing is stored.
    #[derive(Debug, Default)]
    struct Notes(Vec<String>);

    impl Watcher for Notes {
        fn load(&mut self, lane: u32, va: u64, _: &mut Mapped<'_>, destination: &mut [u8]) {
            self.0.push(format!("load {lane} {va:#x} {}", destination.len()));
            destination.fill(lane as u8);
        }

        fn store(&mut self, lane: u32, va: u64, source: &[u8], _: &mut Mapped<'_>) {
            self.0.push(format!("store {lane} {va:#x} {source:?}"));
        }

        fn atomic(
            &mut self,
            lane: u32,
            va: u64,
            _: &mut Mapped<'_>,
            old: &mut [u8],
            next: &dyn Fn(u64) -> u64,
        ) {
            self.0.push(format!("atomic {lane} {va:#x} {} to {}", old.len(), next(6)));
            old.fill(1);
        }

        fn prefetch(&mut self, va: u64, len: u64, is_data: bool, _: &mut Mapped<'_>) {
            self.0.push(format!("prefetch {va:#x} {len} {is_data}"));
        }
    }

    fn port() -> MemoryPort {
        port_of(Rights::READ | Rights::WRITE)
    }

    /// A port to one page with these rights.
    fn port_of(rights: Rights) -> MemoryPort {
        let len = GPU_PAGE_BYTES as usize;
        let mapping = MemoryFile::new("test", len).unwrap().map(0, len, Protection::ReadWrite, None).unwrap();
        let space = AddressSpace::default();
        space.map(GpuVa(VA), ByteLen(GPU_PAGE_BYTES), rights, Arc::new(mapping)).unwrap();
        let mut port = MemoryPort::default();
        port.refresh(&space);
        port
    }

    #[test]
    fn a_watcher_carries_out_every_access_that_the_table_permits() {
        let mut port = port();
        assert!(port.range(VA, VA + 3, Rights::READ).is_some());
        assert!(port.set_watcher(Some(Box::new(Notes::default()))).is_none());
        assert!(port.range(VA, VA + 3, Rights::READ).is_none(), "the fast way is closed");
        let mut bytes = [9; 4];
        port.set_first_lane(32);
        port.set_lane(3);
        port.read_bytes(VA, &mut bytes, Rights::READ).unwrap();
        assert_eq!(bytes, [35; 4]);
        port.write_bytes(VA + 4, &[1, 2]).unwrap();
        assert_eq!(port.watched_atomic(VA + 8, 4, |old| old + 1), Some(Ok(0x0101_0101)));
        port.prefetch(VA, 128, Rights::READ).unwrap();
        let beyond = VA + GPU_PAGE_BYTES - 2;
        let refused = Fault { va: VA + GPU_PAGE_BYTES, cause: Cause::NotPresent, access: Rights::READ };
        assert_eq!(port.read_bytes(beyond, &mut bytes, Rights::READ), Err(refused));
        assert!(port.write_bytes(beyond, &[0; 4]).is_err());
        assert!(port.watched_atomic(beyond, 4, |old| old).unwrap().is_err());
        assert!(port.prefetch(beyond, 128, Rights::EXECUTE).is_err());
        port.read_unwatched(VA + 4, &mut bytes, Rights::READ).unwrap();
        assert_eq!(bytes, [0; 4], "the watcher has stored nothing");
        let watcher: Box<dyn Any> = port.set_watcher(None).unwrap();
        let expected = [
            "load 35 0x100000 4",
            "store 35 0x100004 [1, 2]",
            "atomic 35 0x100008 4 to 7",
            "prefetch 0x100000 128 true",
        ];
        assert_eq!(watcher.downcast::<Notes>().unwrap().0, expected);
        assert!(port.range(VA, VA + 3, Rights::READ).is_some());
        assert_eq!(port.watched_atomic(VA, 4, |old| old), None);
    }

    #[test]
    fn an_atomic_must_be_allowed_to_read_and_to_write() {
        let access = Rights::READ | Rights::WRITE;
        for (rights, cause) in [(Rights::READ, Cause::ReadOnly), (Rights::WRITE, Cause::NotPresent)] {
            let mut port = port_of(rights);
            port.set_watcher(Some(Box::new(Notes::default())));
            let refused = Err(Fault { va: VA + 8, cause, access });
            assert_eq!(port.watched_atomic(VA + 8, 4, |old| old), Some(refused));
        }
    }
}
