//! Memory that the process itself mapped, accessed through a second mapping of the same pages: what USERPTR lends
//! to a device.
//!
//! Contract: only memory that is mapped *shared* can be mapped a second time (`mremap` of length 0, mremap(2)); for
//! private memory see [`Loan`](super::private_memory::Loan). It is also required that its owner has offered it
//! ([`lending`](super::lending)): a second view of memory to which a reference exists would be undefined behaviour,
//! and an address proves nothing. The second mapping is ours: it stays readable when the process unmaps its own, so
//! no access through it faults. [`ProcessMap`] shows afterwards whether the process still maps the same bytes
//! there. If the bytes belong to a file, shortening the file raises `SIGBUS`, as for the process itself. Cost:
//! [`ProcessMap::read`] reads `/proc/self/maps`, some microseconds per hundred mappings; for set-up and doorbells
//! of the virtual device only.

use super::lending::lending;
use super::memory::{Mapping, PAGE_BYTES, Protection};
use crate::errno::Errno;
use core::ffi::c_void;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};
use std::fs::File;
use std::io::Read;

/// Most bytes read of `/proc/self/maps`: some 65,530 mappings (`vm.max_map_count`) of 256 bytes each.
const MAPS_BYTES_MAX: u64 = 16 << 20;

/// Memory of the process that is mapped shared, by one mapping or by several adjacent ones. Two are equal if the
/// same bytes of the same files lie at the same addresses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRange {
    address: u64,
    len: usize,
    /// In order, together `len` bytes; adjacent pieces are never one contiguous stretch of a file.
    pieces: Vec<Piece>,
}

/// A contiguous stretch of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    len: usize,
    /// Device, inode and file offset, as in `/proc/self/maps`.
    device: String,
    inode: u64,
    offset: u64,
}

/// The mappings of the process at one moment.
#[derive(Debug)]
pub struct ProcessMap {
    text: String,
}

/// One line of `/proc/self/maps`: `start-end rights offset device inode path`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'a> {
    pub start: u64,
    pub end: u64,
    /// `rwxp`: the last letter is `s` for a shared mapping; a missing right is a dash.
    pub rights: &'a str,
    offset: u64,
    device: &'a str,
    pub inode: u64,
    /// Empty for memory without a file or a name.
    pub name: &'a str,
}

impl<'a> Line<'a> {
    pub fn parse(line: &'a str) -> Option<Line<'a>> {
        // The fifth word is the inode; the name after it may contain blanks.
        let name = line.match_indices(' ').nth(4).map_or("", |(at, _)| line[at..].trim_start());
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |word| u64::from_str_radix(word, 16).ok();
        let rights = words.next()?;
        let offset = hexadecimal(words.next()?)?;
        let (device, inode) = (words.next()?, words.next()?.parse().ok()?);
        let (start, end) = (hexadecimal(start)?, hexadecimal(end)?);
        Some(Line { start, end, rights, offset, device, inode, name })
    }

    pub fn is_shared(&self) -> bool {
        self.rights.ends_with('s')
    }

    /// `EFAULT` if the process itself could not read there, `EPERM` if it could not write (Linux `hmm_vma_fault`:
    /// the driver requests writable pages, whatever the object's rights).
    pub fn check_rights(&self) -> Result<(), Errno> {
        match self.rights.as_bytes() {
            [b'r', b'w', ..] => Ok(()),
            [b'r', ..] => Err(Errno::EPERM),
            _ => Err(Errno::EFAULT),
        }
    }
}

/// `address + len`, both in whole pages; else, or for a length of zero, `EINVAL`.
pub(super) fn end_of_pages(address: u64, len: usize) -> Result<u64, Errno> {
    let page = PAGE_BYTES as u64;
    let end = address.checked_add(len as u64).ok_or(Errno::EINVAL)?;
    if address == 0 || len == 0 || address % page != 0 || end % page != 0 {
        Err(Errno::EINVAL)
    } else {
        Ok(end)
    }
}

impl ProcessMap {
    /// Reads the map. `EFBIG` past `MAPS_BYTES_MAX`.
    pub fn read() -> Result<ProcessMap, Errno> {
        ProcessMap::read_from(File::open("/proc/self/maps")?)
    }

    fn read_from(maps: impl Read) -> Result<ProcessMap, Errno> {
        let mut bytes = Vec::new();
        maps.take(MAPS_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAPS_BYTES_MAX {
            return Err(Errno::EFBIG);
        }
        // File names may be in any encoding; the parts that are read are ASCII.
        Ok(ProcessMap { text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// The mappings that overlap the range, in order. `EFAULT` at a gap, else the result of [`Line::check_rights`].
    pub(super) fn lines(&self, address: u64, len: usize) -> Result<Vec<Line<'_>>, Errno> {
        let end = end_of_pages(address, len)?;
        let (mut found, mut at) = (Vec::new(), address);
        for line in self.text.lines().filter_map(Line::parse).filter(|line| line.end > address) {
            if at >= end {
                break;
            }
            if line.start > at {
                return Err(Errno::EFAULT);
            }
            line.check_rights()?;
            at = line.end;
            found.push(line);
        }
        if at >= end { Ok(found) } else { Err(Errno::EFAULT) }
    }

    /// `len` bytes from `address` on, whole pages that are mapped shared, readable and writable. `EFAULT` if
    /// nothing is mapped, `EPERM` if it is not writable, `ENOTSUPP` if it is private, `EINVAL` if the range is not
    /// whole pages.
    pub fn shared_range(&self, address: u64, len: usize) -> Result<SharedRange, Errno> {
        let end = end_of_pages(address, len)?;
        let mut pieces: Vec<Piece> = Vec::new();
        for line in self.lines(address, len)? {
            if !line.is_shared() {
                return Err(Errno::ENOTSUPP);
            }
            let start = line.start.max(address);
            let len = (line.end.min(end) - start) as usize;
            let offset = line.offset.wrapping_add(start - line.start);
            match pieces.last_mut() {
                Some(last) if last.goes_on_with(&line, offset) => last.len += len,
                _ => pieces.push(Piece { len, device: line.device.into(), inode: line.inode, offset }),
            }
        }
        Ok(SharedRange { address, len, pieces })
    }
}

impl Piece {
    fn goes_on_with(&self, line: &Line<'_>, offset: u64) -> bool {
        let end = self.offset.wrapping_add(self.len as u64);
        (self.device.as_str(), self.inode, end) == (line.device, line.inode, offset)
    }
}

impl SharedRange {
    /// First byte, as the process sees it.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Length in bytes, whole pages.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: a range has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Maps the same pages a second time, contiguously at an address of the kernel's choice. `EPERM` if a part of
    /// them was not offered, `EFAULT` or `EINVAL` if the process has unmapped or replaced them since the map was
    /// read.
    pub fn map_again(&self) -> Result<Mapping, Errno> {
        // Held to the end, so that offered memory stays in place meanwhile.
        let lending = lending();
        if !lending.allows(self.address, self.len) {
            return Err(Errno::EPERM);
        }
        // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
        let raw = unsafe {
            let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
            rustix::mm::mmap_anonymous(core::ptr::null_mut(), self.len, ProtFlags::empty(), flags)
        }?;
        let mapping = Mapping::of_new_range(raw, self.len, Protection::ReadWrite);
        let mut done = 0;
        for piece in &self.pieces {
            let from = core::ptr::with_exposed_provenance_mut::<c_void>(self.address as usize + done);
            // SAFETY: with an old length of 0 mremap leaves the old mapping as it is, whatever lies there, and maps
            // its pages once more, in unused address space; a bad address is an error.
            let copy = unsafe { rustix::mm::mremap(from, 0, piece.len, MremapFlags::MAYMOVE) }?;
            // SAFETY: the new place is a part of the range that was made above and that nobody else knows of;
            // `done + piece.len` is at most its length. The copy was just made, and is known to nobody either.
            let moved = unsafe {
                rustix::mm::mremap_fixed(copy, piece.len, piece.len, MremapFlags::MAYMOVE, raw.byte_add(done))
            };
            if let Err(errno) = moved {
                // SAFETY: it has not moved. On failure it stays mapped.
                let _ = unsafe { rustix::mm::munmap(copy, piece.len) };
                // The kernel had no memory, and may have left a gap that is another's now: nothing is taken down.
                core::mem::forget(mapping);
                return Err(errno.into());
            }
            done += piece.len;
        }
        // The process may have replaced the mapping since the map was read: what was mapped must be what was meant.
        let copy = ProcessMap::read()?.shared_range(mapping.address(), self.len)?;
        if copy.pieces == self.pieces { Ok(mapping) } else { Err(Errno::EFAULT) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::{MemoryFile, Reservation};
    use super::*;

    fn find(address: u64, len: usize) -> Result<SharedRange, Errno> {
        ProcessMap::read().unwrap().shared_range(address, len)
    }

    #[test]
    fn lines_are_read_whatever_stands_in_them() {
        let text = "nonsense\n1000-\n-2000 rw-s 0 0:1 5\n1000-zz rw-s 0 0:1 5\n1000-2000 rw-s\n\
                    ffffffffffffffffff-1 rw-s 0 0:1 5\n3000-1000 rw-s 0 0:1 5\n\
                    4000-8000 rw-s fffffffffffff000 00:01 18446744073709551615 /a name\u{fffd} with blanks\n\
                    9000-a000 rw-p 0 0:1 5\na000-b000 r--s 0 0:1 5";
        let map = ProcessMap { text: text.into() };
        let found = map.shared_range(0x5000, 0x2000).unwrap();
        assert_eq!((found.address(), found.len()), (0x5000, 0x2000));
        let [piece] = &found.pieces[..] else { panic!("one piece: {found:?}") };
        assert_eq!((piece.inode, piece.offset), (u64::MAX, 0), "past the end of 64 bits");
        assert_eq!(map.shared_range(0x1000, 0x1000), Err(Errno::EFAULT));
        assert_eq!(map.shared_range(0x9000, 0x1000), Err(Errno::ENOTSUPP));
        assert_eq!(map.shared_range(0xa000, 0x1000), Err(Errno::EPERM));
    }

    #[test]
    fn lines_that_go_on_in_the_same_file_are_one_piece() {
        // Line 2 goes on where line 1 ends; the others have another device, inode or offset.
        let text = "1000-3000 rw-s 00005000 00:01 7 /a\n3000-4000 rwxs 00007000 00:01 7 /a\n\
                    4000-5000 rw-s 00008000 00:02 7 /b\n5000-6000 rw-s 00009000 00:02 8 /c\n\
                    6000-7000 rw-s 0000b000 00:02 8 /c\n7000-8000 rw-s 0000b000 00:02 8 /c";
        let range = ProcessMap { text: text.into() }.shared_range(0x2000, 0x6000).unwrap();
        assert_eq!((range.address(), range.len(), range.is_empty()), (0x2000, 0x6000, false));
        let pieces: Vec<_> =
            range.pieces.iter().map(|piece| (piece.len, piece.inode, piece.offset)).collect();
        assert_eq!(
            pieces,
            [
                (0x2000, 7, 0x6000),
                (0x1000, 7, 0x8000),
                (0x1000, 8, 0x9000),
                (0x1000, 8, 0xb000),
                (0x1000, 8, 0xb000)
            ]
        );
        assert_eq!(range.pieces[1].device, "00:02");
    }

    #[test]
    #[cfg_attr(miri, ignore = "reads many megabytes")]
    fn a_map_is_read_up_to_its_limit() {
        let read =
            |len| ProcessMap::read_from(std::io::repeat(b'x').take(len)).map(|map| map.text.len() as u64);
        assert_eq!(read(MAPS_BYTES_MAX - 1), Ok(MAPS_BYTES_MAX - 1));
        assert_eq!(read(MAPS_BYTES_MAX), Ok(MAPS_BYTES_MAX));
        assert_eq!(read(MAPS_BYTES_MAX + 1), Err(Errno::EFBIG));
        assert_eq!(read(u64::MAX), Err(Errno::EFBIG));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn the_second_mapping_has_the_same_bytes_and_outlives_the_first() {
        let file = MemoryFile::new("lent", 16384).unwrap();
        let own = file.map(0, 16384, Protection::ReadWrite, None).unwrap();
        let range = find(own.address() + 4096, 8192).unwrap();
        let again = range.map_again().unwrap();
        assert_ne!(again.address(), range.address());
        own.view().store_u32(4096, 17);
        again.view().store_u32(4092, 18);
        assert_eq!((again.view().load_u32(0), own.view().load_u32(8188)), (17, 18));
        assert_eq!(find(range.address(), 8192), Ok(range.clone()));
        drop(own);
        assert_eq!(find(range.address(), 8192), Err(Errno::EFAULT));
        assert_eq!((again.view().load_u32(0), again.view().load_u32(4092)), (17, 18));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn other_bytes_at_the_same_address_are_another_range() {
        let place = Reservation::new(4096, 4096).unwrap();
        let map = |name| {
            let file = MemoryFile::new(name, 4096).unwrap();
            file.map(0, 4096, Protection::ReadWrite, Some((&place, 0))).unwrap()
        };
        let first = map("first");
        let range = find(first.address(), 4096).unwrap();
        drop(first);
        // Reserved address space is mapped, but without access rights.
        assert_eq!(find(range.address(), 4096), Err(Errno::EFAULT));
        let _second = map("second");
        assert_ne!(find(range.address(), 4096), Ok(range));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn mappings_side_by_side_are_one_range() {
        let files = ["left", "right"].map(|name| MemoryFile::new(name, 8192).unwrap());
        let place = Reservation::new(16384, 4096).unwrap();
        let own: Vec<_> = (0..2)
            .map(|at| files[at].map(0, 8192, Protection::ReadWrite, Some((&place, at * 8192))).unwrap())
            .collect();
        let range = find(own[0].address() + 4096, 8192).unwrap();
        assert_eq!(range.pieces.len(), 2);
        let again = range.map_again().unwrap();
        own[0].view().store_u32(8188, 1);
        own[1].view().store_u32(0, 2);
        assert_eq!((again.view().load_u32(4092), again.view().load_u32(4096)), (1, 2));
        // The reverse order is another range, and a gap is an error.
        drop(own);
        let _left = files[1].map(0, 8192, Protection::ReadWrite, Some((&place, 0))).unwrap();
        assert_eq!(find(range.address(), 8192), Err(Errno::EFAULT));
        let _right = files[0].map(0, 8192, Protection::ReadWrite, Some((&place, 8192))).unwrap();
        assert_ne!(find(range.address(), 8192), Ok(range));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn memory_to_which_somebody_holds_a_reference_is_not_seen_twice() {
        const BYTES: usize = 8192;
        let flags = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
        let raw = unsafe {
            rustix::mm::mmap_anonymous(core::ptr::null_mut(), BYTES, flags, MapFlags::SHARED).unwrap()
        };
        // SAFETY: the mapping belongs to this test and stays: what a crate for mapped files hands out.
        let theirs = unsafe { core::slice::from_raw_parts_mut(raw.cast::<u8>(), BYTES) };
        let range = find(raw.addr() as u64, BYTES).unwrap();
        assert_eq!(range.map_again().err(), Some(Errno::EPERM));
        theirs.fill(1);
        // Offered in part first, and then whole.
        let file = MemoryFile::new("beside", BYTES).unwrap();
        let place = Reservation::new(2 * BYTES, 4096).unwrap();
        let ours = file.map(0, BYTES, Protection::ReadWrite, Some((&place, BYTES))).unwrap();
        let in_front = (ours.address() as usize - BYTES) as *mut c_void;
        // SAFETY: the pages are reserved by this test, which places nothing else there.
        unsafe { rustix::mm::mmap_anonymous(in_front, BYTES, flags, MapFlags::SHARED | MapFlags::FIXED) }
            .unwrap();
        let both = find(ours.address() - BYTES as u64, 2 * BYTES).unwrap();
        assert_eq!(both.map_again().err(), Some(Errno::EPERM));
        assert!(find(ours.address(), BYTES).unwrap().map_again().is_ok());
        // SAFETY: nobody holds a reference to these pages.
        unsafe { super::super::lending::offer(ours.address() - BYTES as u64, BYTES) };
        assert!(both.map_again().is_ok());
        drop(ours);
        assert_eq!(both.map_again().err(), Some(Errno::EPERM), "taken down and no longer offered");
        // An offer lasts forever, so nothing else may be placed there.
        core::mem::forget(place);
    }

    #[test]
    fn names_of_mappings_may_hold_blanks() {
        let line = "7f00-8f00 rw-s 00002000 00:01 42                         /memfd:a b (deleted)";
        let parsed = Line::parse(line).unwrap();
        assert_eq!((parsed.start, parsed.end, parsed.inode), (0x7f00, 0x8f00, 42));
        assert_eq!((parsed.name, parsed.is_shared()), ("/memfd:a b (deleted)", true));
        assert_eq!(Line::parse("1000-2000 rw-p 00000000 00:00 0 ").map(|line| line.name), Some(""));
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn what_cannot_be_lent_is_refused() {
        let file = MemoryFile::new("part", 8192).unwrap();
        let place = Reservation::new(16384, 4096).unwrap();
        let own = file.map(0, 8192, Protection::ReadWrite, Some((&place, 0))).unwrap();
        assert_eq!(find(own.address(), 12288), Err(Errno::EFAULT), "past its end");
        assert_eq!(find(own.address() + 8, 4096), Err(Errno::EINVAL));
        assert_eq!(find(own.address(), 0), Err(Errno::EINVAL));
        assert_eq!(find(0, 4096), Err(Errno::EINVAL));
        assert_eq!(find(u64::MAX - 4095, 8192), Err(Errno::EINVAL));
        let read_only = file.map(0, 4096, Protection::Read, None).unwrap();
        assert_eq!(find(read_only.address(), 4096), Err(Errno::EPERM));
        // Heap memory is private; a large block has whole pages of its own.
        let heap = vec![1u8; 1 << 20];
        let inside = (heap.as_ptr().addr() as u64).next_multiple_of(4096);
        assert_eq!(find(inside, 4096), Err(Errno::ENOTSUPP));
    }
}
