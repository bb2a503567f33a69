//! Reservations, mappings and files, seen through `/proc/self/maps` and through each other.

use super::super::process_memory::Line;
use super::*;
use std::os::fd::FromRawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the process can read `address` now, according to the kernel.
fn readable(address: u64) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.lines().any(|line| {
        let (range, rest) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|number| u64::from_str_radix(number, 16).unwrap());
        (start..end).contains(&address) && rest.starts_with('r')
    })
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn reservations_are_aligned_and_without_access() {
    for alignment in [4096, 1 << 16, 2 << 20, 1 << 30] {
        let reservation = Reservation::new(5000, alignment).unwrap();
        assert_eq!(reservation.address() % alignment as u64, 0);
        assert_eq!((reservation.len(), reservation.is_empty()), (8192, false));
        assert!(!readable(reservation.address()));
    }
    assert_eq!(Reservation::new(0, 4096).err(), Some(Errno::EINVAL));
    assert_eq!(Reservation::new(4096, 2048).err(), Some(Errno::EINVAL));
    assert_eq!(Reservation::new(4096, 12288).err(), Some(Errno::EINVAL));
    assert_eq!(Reservation::new(usize::MAX, 4096).err(), Some(Errno::EINVAL));
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn what_the_address_space_cannot_hold_is_an_invalid_length() {
    // 2^47 is all of it. One page less is asked for, though there is hardly room.
    assert_eq!(Reservation::new(1 << 47, 4096).err(), Some(Errno::EINVAL));
    assert_eq!(Reservation::new((1 << 47) - 4095, 4096).err(), Some(Errno::EINVAL), "in whole pages");
    assert_ne!(Reservation::new((1 << 47) - 4096, 4096).err(), Some(Errno::EINVAL));
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_dropped_reservation_is_given_back_with_its_guard() {
    // So long that nothing else of this process is placed around its middle meanwhile.
    let len = 1 << 42;
    let reservation = Reservation::new(len, 4096).unwrap();
    let start = reservation.address();
    let (middle, guard) = (start + len as u64 / 2, start + len as u64);
    let ranges = || -> Vec<std::ops::Range<u64>> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        maps.lines().filter_map(Line::parse).map(|line| line.start..line.end).collect()
    };
    let holds_both = |range: &std::ops::Range<u64>| range.contains(&middle) && range.contains(&guard);
    let clone = reservation.clone();
    drop(reservation);
    assert!(ranges().iter().any(holds_both), "a clone of it is left");
    drop(clone);
    assert!(!ranges().iter().any(|range| range.contains(&middle)));
    // Another thread may map something there meanwhile, from the end of the gap downwards: never at just this address.
    assert!(!ranges().iter().any(|range| range.start == guard), "the guard is left");
}

/// Whether all of a range is address space without access.
fn is_reserved(start: u64, len: usize) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mut at = start;
    for line in maps.lines().filter_map(Line::parse) {
        if line.start <= at && at < line.end && line.rights == "---p" {
            at = line.end;
        }
    }
    at >= start + len as u64
}

/// A driver refuses in its own `mmap`, when the kernel has made room for a fixed mapping already. So does a socket of
/// TCP, which lets pages be read only (`tcp_mmap`).
#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_mapping_that_its_driver_refuses_leaves_its_place_reserved() {
    // SAFETY: a new descriptor is nobody else's.
    let socket = unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        assert!(socket >= 0);
        OwnedFd::from_raw_fd(socket)
    };
    let reservation = Reservation::new(16384, 4096).unwrap();
    let place = Some((&reservation, 4096));
    let refused = Mapping::of_file(socket.as_fd(), 0, 8192, Protection::ReadWrite, place);
    assert_eq!(refused.err(), Some(Errno::EPERM));
    assert!(is_reserved(reservation.address(), 16384) && reservation.is_vacant());
    let file = MemoryFile::new("placed", 8192).unwrap();
    let placed = file.map(0, 8192, Protection::ReadWrite, place).unwrap();
    assert_eq!(placed.address(), reservation.address() + 4096);
}

/// A long reservation that has lost its upper half. Other threads map into the highest gap, so that one in the lower
/// half stays as it is.
fn below_a_gap() -> Reservation {
    let reservation = Reservation::new(1 << 42, 4096).unwrap();
    let (half, rest) = (1 << 41, (1 << 41) + GUARD_BYTES);
    // SAFETY: address space that nothing is placed in, which is no longer the reservation's from here on.
    unsafe { rustix::mm::munmap(reservation.inner.pointer(half), rest) }.unwrap();
    reservation.occupied().push((half, rest));
    reservation
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_gap_is_reserved_anew_and_nothing_is_mapped_over() {
    let reservation = below_a_gap();
    let range = &reservation.inner;
    let lost = |start, len| {
        let mut occupied = vec![(0, 4096)];
        range.refill(&mut occupied, start, len);
        occupied.split_off(1)
    };
    assert_eq!(lost(4096, 4096), [(4096, 4096)], "it is there");
    // SAFETY: a page of address space that nothing is placed in.
    unsafe { rustix::mm::munmap(range.pointer(4096), 4096) }.unwrap();
    assert_eq!(lost(0, 8192), [(0, 8192)], "a part of it is there");
    assert_eq!(lost(4096, 4096), []);
    assert!(is_reserved(reservation.address(), 16384));
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn what_was_lost_is_not_given_back_with_the_reservation() {
    let reservation = below_a_gap();
    let page = |index: u64| reservation.address() + index * 4096;
    let pages = [0, 1, 2, 3, 4, 5, 6, 7, 8].map(page);
    reservation.occupied().extend([(20480, 8192), (4096, 4096)]);
    drop(reservation);
    let left = pages.map(|page| is_reserved(page, 4096));
    assert_eq!(left, [false, true, false, false, false, true, true, false, false]);
    for (page, len) in [(pages[1], 4096), (pages[5], 8192)] {
        let lost = core::ptr::with_exposed_provenance_mut(page as usize);
        // SAFETY: nothing but this test knows of these pages.
        unsafe { rustix::mm::munmap(lost, len) }.unwrap();
    }
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_file_says_how_long_it_is_and_how_much_of_it_is_there() {
    let file = MemoryFile::new("sparse", (1 << 30) - 5).unwrap();
    assert_eq!((file.len(), file.is_empty()), (1 << 30, false));
    assert_eq!(file.resident_bytes(), Ok(0));
    let mapping = file.map(0, 1 << 30, Protection::ReadWrite, None).unwrap();
    assert_eq!((mapping.len(), mapping.is_empty()), (1 << 30, false));
    mapping.view().store_u32(0, 1);
    mapping.view().store_u32((1 << 30) - 4, 1);
    // The system may give more than a page at a time, if it has huge ones for shared memory.
    let resident = file.resident_bytes().unwrap();
    assert!(resident >= 8192 && resident % 4096 == 0, "the first page and the last: {resident}");
    file.release(0, 4096).unwrap();
    assert_eq!(file.resident_bytes(), Ok(resident - 4096));
    assert_eq!(mapping.view().load_u32((1 << 30) - 4), 1, "as long as before");
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_file_is_mapped_up_to_its_end() {
    let file = MemoryFile::new("end", 8192).unwrap();
    for (offset, len, refused) in [
        (0, 8192, false),
        (0, 8193, true),
        (4096, 4096, false),
        (4096, 4097, true),
        (8192, 1, true),
        (12288, 1, true),
    ] {
        let mapped = file.map(offset, len, Protection::Read, None).err();
        assert_eq!(mapped, refused.then_some(Errno::EINVAL), "{len} at {offset}");
    }
    let alone = |len| file.map_alone(len).map(|mapping| mapping.len());
    assert_eq!([alone(1), alone(8192)], [Ok(1), Ok(8192)]);
    assert_eq!([alone(0), alone(8193), alone(12288)], [Err(Errno::EINVAL); 3]);
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn what_is_printed_of_a_mapping_says_that_it_is_guarded() {
    let mapping = MemoryFile::new("printed", 4096).unwrap().map(0, 4096, Protection::Read, None).unwrap();
    assert!(format!("{:?}", mapping.with_guard(Box::new(7))).contains("Guard"));
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn no_two_reservations_are_closer_than_a_guard() {
    for (len, alignment) in [(4096, 4096), (2 << 20, 2 << 20)] {
        let mut reservations: Vec<_> = (0..8).map(|_| Reservation::new(len, alignment).unwrap()).collect();
        reservations.sort_unstable_by_key(Reservation::address);
        for pair in reservations.windows(2) {
            let end = pair[0].address() + pair[0].len() as u64;
            assert!(pair[1].address() - end >= 64 << 10, "{pair:x?}");
        }
        let file = MemoryFile::new("guarded", len).unwrap();
        let place = Some((&reservations[0], PAGE_BYTES));
        assert_eq!(file.map(0, len, Protection::Read, place).err(), Some(Errno::ENOMEM));
    }
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn one_file_seen_through_several_mappings() {
    let file = MemoryFile::new("twice", 32 << 30).unwrap();
    let reservation = Reservation::new(1 << 20, 2 << 20).unwrap();
    let placed = file.map(1 << 34, 8192, Protection::ReadWrite, Some((&reservation, 4096))).unwrap();
    let loose = file.map(1 << 34, 8192, Protection::ReadWrite, None).unwrap();
    assert_eq!(placed.address(), reservation.address() + 4096);
    placed.view().store_u32(4096, 0x1234_5678);
    assert_eq!(loose.view().load_u32(4096), 0x1234_5678);
    assert!(file.resident_bytes().unwrap() <= 8192);
    file.release(1 << 34, 8192).unwrap();
    assert_eq!(loose.view().load_u32(4096), 0);
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_dropped_mapping_becomes_reserved_space_again() {
    let file = MemoryFile::new("drop", 8192).unwrap();
    let reservation = Reservation::new(16384, 4096).unwrap();
    let dropped = Arc::new(AtomicBool::new(false));
    struct Flag(Arc<AtomicBool>);
    impl Drop for Flag {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let mapping = file.map(0, 8192, Protection::ReadWrite, Some((&reservation, 4096))).unwrap();
    let mapping = mapping.with_guard(Box::new(Flag(dropped.clone())));
    let address = mapping.address();
    let overlapping = file.map(0, 4096, Protection::Read, Some((&reservation, 8192)));
    assert_eq!(overlapping.err(), Some(Errno::EEXIST));
    assert!(readable(address) && !reservation.is_vacant());
    drop(mapping);
    assert!(!readable(address) && reservation.is_vacant() && dropped.load(Ordering::Relaxed));
    let again = file.map(0, 4096, Protection::Read, Some((&reservation, 8192))).unwrap();
    // The reservation outlives its handle while something is placed in it.
    drop(reservation);
    assert!(readable(again.address()));
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_mapping_and_its_place_stay_while_a_view_of_it_does() {
    let file = MemoryFile::new("kept", 8192).unwrap();
    let reservation = Reservation::new(8192, 4096).unwrap();
    let mapping = file.map(0, 8192, Protection::ReadWrite, Some((&reservation, 0))).unwrap();
    mapping.view().store_u32(4096, 0x1234_5678);
    let (address, part) = (mapping.address(), mapping.view().slice(4096, 64));
    drop(mapping);
    drop(file);
    assert_eq!(part.load_u32(0), 0x1234_5678, "the old bytes");
    let other = MemoryFile::new("other", 8192).unwrap();
    let place = |start| other.map(0, 4096, Protection::ReadWrite, Some((&reservation, start))).err();
    assert_eq!([place(0), place(4096)], [Some(Errno::EEXIST); 2], "nothing takes the place meanwhile");
    let weak = Arc::downgrade(&reservation.inner);
    drop(reservation);
    assert!(weak.strong_count() == 1 && readable(address), "nor the reservation's address space");
    drop(part);
    assert_eq!(weak.strong_count(), 0);
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn views_are_of_what_can_be_read_and_written() {
    let file = MemoryFile::new("rights", 4096).unwrap();
    for protection in [Protection::None, Protection::Read] {
        let mapping = file.map(0, 4096, protection, None).unwrap();
        let asked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| mapping.view().len()));
        assert!(asked.is_err(), "{protection:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn no_mapping_is_placed_over_another_from_either_side() {
    let file = MemoryFile::new("overlap", 16384).unwrap();
    let reservation = Reservation::new(32768, 4096).unwrap();
    let map = |start, len| file.map(0, len, Protection::ReadWrite, Some((&reservation, start)));
    let middle = map(12288, 8192).unwrap();
    middle.view().fill(0, 8192, 0x5a);
    // Its beginning, its end, around it, inside it, and exactly it.
    for (start, len) in [(8192, 8192), (16384, 8192), (8192, 16384), (16384, 4096), (12288, 8192)] {
        assert_eq!(map(start, len).err(), Some(Errno::EEXIST), "{len} at {start}");
    }
    let (before, behind) = (map(8192, 4096).unwrap(), map(20480, 4096).unwrap());
    assert_eq!([before, behind].map(|mapping| mapping.view().load_u32(0)), [0x5a5a_5a5a; 2], "one file");
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn places_outside_are_refused() {
    let file = MemoryFile::new("outside", 8192).unwrap();
    let reservation = Reservation::new(8192, 4096).unwrap();
    let at = |offset, len, start| file.map(offset, len, Protection::Read, Some((&reservation, start))).err();
    assert_eq!(at(0, 8192, 4096), Some(Errno::ENOMEM));
    assert_eq!(at(0, 8192, 0), None);
    assert_eq!(at(0, 4096, 4096), None);
    assert_eq!(at(0, 4096, 8192), Some(Errno::ENOMEM), "the guard's");
    assert_eq!(at(0, 4096, 12288), Some(Errno::ENOMEM), "the guard's");
    assert_eq!(at(0, 4096, 8), Some(Errno::EINVAL));
    assert_eq!(at(4096, 8192, 0), Some(Errno::EINVAL));
    assert_eq!(at(u64::MAX, 4096, 0), Some(Errno::EINVAL));
    assert_eq!(at(0, 0, 0), Some(Errno::EINVAL));
    assert!(reservation.is_vacant());
}
