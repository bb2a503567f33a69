//! Memory that the process mapped by itself, seen through a second mapping of the same pages: what USERPTR lends a
//! device.
//!
//! Contract: only memory that is mapped *shared* can be seen twice (`mremap` of length 0, mremap(2)); private memory is
//! `ENOTSUPP`. The second mapping is ours: it stays readable when the process unmaps its own, so no access through it
//! meets a hole. [`ProcessMap`] tells afterwards whether the process still maps the same bytes there. Where the bytes
//! are a file's, a file that is shortened raises `SIGBUS`, as for the process itself. Cost: [`ProcessMap::read`] reads
//! `/proc/self/maps`, some microseconds per hundred mappings; set-up and doorbells of the virtual device only.

use super::memory::{Mapping, PAGE_BYTES, Protection};
use crate::errno::Errno;
use rustix::mm::MremapFlags;
use std::fs::File;
use std::io::Read;

/// Most bytes of `/proc/self/maps` that are looked at: some 65,530 mappings (`vm.max_map_count`) of 256 bytes each.
const MAPS_BYTES_MAX: u64 = 16 << 20;

/// Bytes of one shared mapping of the process. Two are equal where the same bytes of the same file lie at the same
/// address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedRange {
    address: u64,
    len: usize,
    /// Device, inode and byte in it, as `/proc/self/maps` has them.
    device: String,
    inode: u64,
    offset: u64,
}

/// What the process has mapped, at one moment.
#[derive(Debug)]
pub struct ProcessMap {
    text: String,
}

/// One line of `/proc/self/maps`: `start-end rights offset device inode path`.
struct Line<'a> {
    start: u64,
    end: u64,
    rights: &'a str,
    offset: u64,
    device: &'a str,
    inode: u64,
}

impl<'a> Line<'a> {
    fn parse(line: &'a str) -> Option<Line<'a>> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let hexadecimal = |word| u64::from_str_radix(word, 16).ok();
        let rights = words.next()?;
        let offset = hexadecimal(words.next()?)?;
        let (device, inode) = (words.next()?, words.next()?.parse().ok()?);
        Some(Line { start: hexadecimal(start)?, end: hexadecimal(end)?, rights, offset, device, inode })
    }
}

impl ProcessMap {
    /// Reads it. `EFBIG` past `MAPS_BYTES_MAX`.
    pub fn read() -> Result<ProcessMap, Errno> {
        let mut bytes = Vec::new();
        File::open("/proc/self/maps")?.take(MAPS_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAPS_BYTES_MAX {
            return Err(Errno::EFBIG);
        }
        // Names of files may be in any encoding; what is looked at is ASCII.
        Ok(ProcessMap { text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// `len` bytes from `address` on, whole pages of one shared mapping that can be read and written. `EFAULT` where a
    /// page is not mapped so, `ENOTSUPP` where it is private, `EINVAL` where the range is not whole pages.
    pub fn shared_range(&self, address: u64, len: usize) -> Result<SharedRange, Errno> {
        let page = PAGE_BYTES as u64;
        let end = address.checked_add(len as u64).ok_or(Errno::EINVAL)?;
        if address == 0 || len == 0 || address % page != 0 || end % page != 0 {
            return Err(Errno::EINVAL);
        }
        let holds = |line: &Line<'_>| line.start <= address && address < line.end;
        let line = self.text.lines().filter_map(Line::parse).find(holds).ok_or(Errno::EFAULT)?;
        if !line.rights.starts_with("rw") {
            return Err(Errno::EFAULT);
        }
        if !line.rights.ends_with('s') {
            return Err(Errno::ENOTSUPP);
        }
        if line.end < end {
            return Err(Errno::EFAULT);
        }
        let offset = line.offset.wrapping_add(address - line.start);
        Ok(SharedRange { address, len, device: line.device.into(), inode: line.inode, offset })
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

    /// Never: a range has at least one page.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The same pages once more, at an address of the kernel's choice. `EFAULT` or `EINVAL` where the process has
    /// unmapped or replaced them since it was asked.
    pub fn map_again(&self) -> Result<Mapping, Errno> {
        let pointer = core::ptr::with_exposed_provenance_mut(self.address as usize);
        // SAFETY: with an old length of 0 and without MREMAP_FIXED, mremap leaves the old mapping as it is, whatever
        // lies there, and makes a new one at an address that nobody uses; a bad address is an error. No memory that
        // Rust knows of is touched or moved.
        let raw = unsafe { rustix::mm::mremap(pointer, 0, self.len, MremapFlags::MAYMOVE) }?;
        let mapping = Mapping::of_new_range(raw, self.len, Protection::ReadWrite);
        // The process may have replaced the mapping since it was looked at: what was mapped must be what was meant.
        let copy = ProcessMap::read()?.shared_range(mapping.address(), self.len)?;
        let is_meant = copy.device == self.device && copy.inode == self.inode && copy.offset == self.offset;
        if is_meant { Ok(mapping) } else { Err(Errno::EFAULT) }
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
        assert_eq!((found.address(), found.len(), found.inode), (0x5000, 0x2000, u64::MAX));
        assert_eq!(found.offset, 0, "past the end of 64 bits");
        assert_eq!(map.shared_range(0x1000, 0x1000), Err(Errno::EFAULT));
        assert_eq!(map.shared_range(0x9000, 0x1000), Err(Errno::ENOTSUPP));
        assert_eq!(map.shared_range(0xa000, 0x1000), Err(Errno::EFAULT));
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
        // Reserved address space is mapped, without rights.
        assert_eq!(find(range.address(), 4096), Err(Errno::EFAULT));
        let _second = map("second");
        assert_ne!(find(range.address(), 4096), Ok(range));
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
        assert_eq!(find(read_only.address(), 4096), Err(Errno::EFAULT));
        // Memory of the heap is private; a large piece has whole pages of its own.
        let heap = vec![1u8; 1 << 20];
        let inside = (heap.as_ptr().addr() as u64).next_multiple_of(4096);
        assert_eq!(find(inside, 4096), Err(Errno::ENOTSUPP));
    }
}
