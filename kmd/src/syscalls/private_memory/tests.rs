//! Tests of lending: bytes, writers, rights, overlaps, refusals. If the system forbids userfaultfd, they test the
//! refusal.

use super::super::lending;
use super::super::memory::{Protection, Reservation};
use super::*;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const PAGE: usize = PAGE_BYTES;

/// What holds writers back; `None` where the system forbids it, and the case is recorded.
fn userfaultfd() -> Option<Userfaultfd> {
    match Userfaultfd::open() {
        Err(LendError::Unavailable { step: "userfaultfd", errno: Errno::EPERM | Errno::ENOSYS }) => {
            zrt_needs::refused_by_the_system("the system forbids userfaultfd");
            None
        }
        opened => Some(opened.unwrap()),
    }
}

/// Lends memory for a test, if the system allows holding back writers; otherwise checks that the refusal says so.
fn lend(address: u64, len: usize) -> Option<Loan> {
    match (Loan::new(address, len), Userfaultfd::open()) {
        (Ok(loan), _) => Some(loan),
        (Err(LendError::Unavailable { step: "userfaultfd", errno }), Err(_)) => {
            assert!([Errno::EPERM, Errno::ENOSYS].contains(&errno), "{errno}");
            None
        }
        (Err(error), _) => panic!("{error}"),
    }
}

/// Access rights and sharing of the mapping that holds an address, from the process map.
fn rights(address: u64) -> String {
    ProcessMap::read().unwrap().lines(address, PAGE).unwrap()[0].rights.to_owned()
}

/// Heap memory with pages of its own, and the address of the first whole one. It is offered, and therefore never
/// freed.
fn heap(pages: usize) -> (&'static [AtomicU64], u64) {
    let counters = Vec::leak((0..(pages + 1) * PAGE / 8).map(|_| AtomicU64::new(0)).collect());
    let first = (counters.as_ptr().addr() as u64).next_multiple_of(PAGE as u64);
    // SAFETY: the pages are accessed by atomics only.
    unsafe { lending::offer(first, pages * PAGE) };
    (counters, first)
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn bytes_stay_and_both_mappings_see_what_is_written() {
    let (counters, address) = heap(64);
    for (index, counter) in counters.iter().enumerate() {
        counter.store(index as u64 * 3, Ordering::Relaxed);
    }
    let before = (address as usize - counters.as_ptr().addr()) / 8;
    assert_eq!(ProcessMap::read().unwrap().shared_range(address, 64 * PAGE), Err(Errno::ENOTSUPP));
    let Some(loan) = lend(address, 64 * PAGE) else { return };
    assert_eq!(rights(address), "rw-s");
    let second = loan.pages().unwrap().map_again().unwrap();
    for index in 0..64 * PAGE / 8 {
        assert_eq!(second.view().load_u64(index * 8), (before + index) as u64 * 3);
    }
    counters[before + 1000].store(5, Ordering::Relaxed);
    second.view().store_u64(16000, 6);
    assert_eq!((second.view().load_u64(8000), counters[before + 2000].load(Ordering::Relaxed)), (5, 6));
    drop(loan);
    assert_eq!(rights(address), "rw-p");
    for (index, counter) in counters.iter().enumerate() {
        let expected = match index.wrapping_sub(before) {
            1000 => 5,
            2000 => 6,
            _ => index as u64 * 3,
        };
        assert_eq!(counter.load(Ordering::Relaxed), expected, "{index}");
    }
    // The second mapping no longer shares these pages with the process.
    second.view().store_u64(8000, 7);
    assert_eq!(counters[before + 1000].load(Ordering::Relaxed), 5);
}

/// Adds to counters all over the pages, including neighbours in the first and last page, while `disturb` runs.
/// Afterwards every addition must have arrived.
fn hammer(counters: &[AtomicU64], disturb: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    let added: Vec<u64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..3)
            .map(|thread| {
                let is_over = &is_over;
                scope.spawn(move || {
                    let mut rounds = 0;
                    while !is_over.load(Ordering::Relaxed) || rounds == 0 {
                        // A plain load and store: an addition that goes to the wrong page is lost.
                        for counter in counters.iter().skip(thread).step_by(3 * 32) {
                            counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                        }
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        disturb();
        is_over.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for (thread, rounds) in added.into_iter().enumerate() {
        for (index, counter) in counters.iter().enumerate().skip(thread).step_by(3 * 32) {
            assert_eq!(counter.load(Ordering::Relaxed), rounds, "counter {index}");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn no_write_is_lost_while_pages_are_lent_and_given_back() {
    let (counters, address) = heap(16);
    if lend(address, PAGE).is_none() {
        return;
    }
    hammer(counters, || {
        for round in 0..100 {
            let (skipped, len) = (round % 5 * PAGE, (1 + round % 11) * PAGE);
            drop(lend(address + skipped as u64, len));
        }
    });
    assert_eq!(rights(address), "rw-p");
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn first_writes_to_pages_that_nobody_touched_are_not_lost() {
    // Enough pages that the writer is still running while they are copied. It strides through them, so that it
    // reaches pages before and after the copy position.
    const PAGES: usize = 16 << 10;
    let pages = || (0..PAGES).map(|index| index * 4099 % PAGES);
    for _ in 0..4 {
        let own = Mapping::private(PAGES * PAGE, Protection::ReadWrite, None).unwrap();
        let go = AtomicBool::new(false);
        let loan = std::thread::scope(|scope| {
            scope.spawn(|| {
                go.store(true, Ordering::Relaxed);
                pages().for_each(|page| own.view().store_u32(page * PAGE, page as u32 + 1));
            });
            while !go.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            lend(own.address(), own.len())
        });
        let lost = pages().filter(|page| own.view().load_u32(page * PAGE) != *page as u32 + 1).count();
        assert_eq!(lost, 0);
        drop(loan);
    }
}

/// Bit 57 of a page's entry in `/proc/self/pagemap`: writers to it are held back (Linux pagemap.rst).
#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn pages_that_nobody_touched_are_protected_like_others() {
    const PAGES: usize = 8;
    let Some(faults) = userfaultfd() else { return };
    let own = Mapping::private(PAGES * PAGE, Protection::ReadWrite, None).unwrap();
    own.view().store_u32(3 * PAGE, 1);
    let part =
        Part { address: own.address(), len: own.len(), is_executable: false, stays_out_of_forks: false };
    let protected = || {
        let pagemap = File::open("/proc/self/pagemap").unwrap();
        [0, 1, 2, 3, 4, 5, 6, 7].map(|page| {
            let mut entry = [0; 8];
            pagemap.read_exact_at(&mut entry, (own.address() / PAGE as u64 + page) * 8).unwrap();
            u64::from_ne_bytes(entry) >> 57 & 1 == 1
        })
    };
    register(part, Kind::Shared, &faults).unwrap();
    assert_eq!(protected(), [false; PAGES]);
    faults.protect(part).unwrap();
    assert_eq!(protected(), [true; PAGES]);
    // Older kernels leave the bits when the file is closed; writers are let go by all.
    drop(faults);
    (0..PAGES).for_each(|page| own.view().store_u32(page * PAGE, 2));
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn writers_in_user_mode_are_held_back_where_that_is_all_that_is_allowed() {
    let (counters, address) = heap(8);
    if lend(address, PAGE).is_none() {
        return;
    }
    let part = Part { address, len: 8 * PAGE, is_executable: false, stays_out_of_forks: false };
    hammer(counters, || {
        for _ in 0..50 {
            let open = || Userfaultfd::open_with(Userfaultfd::USER_MODE_ONLY).unwrap();
            exchange(part, Kind::Shared, open()).unwrap();
            exchange(part, Kind::Private, open()).unwrap();
        }
    });
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn overlapping_loans_keep_their_pages_until_the_last_one_ends() {
    let (counters, address) = heap(8);
    let page = |index: u64| address + index * PAGE as u64;
    let Some(first) = lend(page(0), 4 * PAGE) else { return };
    let second = lend(page(2), 4 * PAGE).unwrap();
    let twice = lend(page(2), 4 * PAGE).unwrap();
    let views = [&first, &second].map(|loan| loan.pages().unwrap().map_again().unwrap());
    views[0].view().store_u64(2 * PAGE, 9);
    assert_eq!(views[1].view().load_u64(0), 9);
    drop(first);
    let now = |page_index| rights(page(page_index));
    assert_eq!([0, 1, 2, 5, 6].map(now), ["rw-p", "rw-p", "rw-s", "rw-s", "rw-p"]);
    drop(twice);
    views[1].view().store_u64(8, 10);
    let at = (page(2) as usize - counters.as_ptr().addr()) / 8;
    assert_eq!([0, 1].map(|index| counters[at + index].load(Ordering::Relaxed)), [9, 10]);
    drop(second);
    assert_eq!([0, 2, 5].map(now), ["rw-p"; 3]);
    assert_eq!([0, 1].map(|index| counters[at + index].load(Ordering::Relaxed)), [9, 10]);
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_loan_that_ends_first_gives_back_what_only_it_covered() {
    let (_, address) = heap(6);
    let page = |index: u64| address + index * PAGE as u64;
    let Some(first) = lend(page(0), 4 * PAGE) else { return };
    let second = lend(page(2), 4 * PAGE).unwrap();
    assert_eq!((second.address(), second.len(), second.is_empty()), (page(2), 4 * PAGE, false));
    drop(second);
    let now = |page_index| rights(page(page_index));
    assert_eq!([0, 1, 2, 3, 4, 5].map(now), ["rw-s", "rw-s", "rw-s", "rw-s", "rw-p", "rw-p"]);
    drop(first);
    assert_eq!([0, 3].map(now), ["rw-p"; 2]);
    // One whole exchange, of which another loan covers the beginning, or the end, or the middle.
    for (from, to) in [(0, 2), (4, 6), (2, 4)] {
        let whole = lend(page(0), 6 * PAGE).unwrap();
        let part = lend(page(from), (to - from) as usize * PAGE).unwrap();
        drop(whole);
        let expected = [0, 1, 2, 3, 4, 5].map(|at| if (from..to).contains(&at) { "rw-s" } else { "rw-p" });
        assert_eq!([0, 1, 2, 3, 4, 5].map(now), expected, "{from}..{to} is lent");
        drop(part);
        assert_eq!([0, 1, 2, 3, 4, 5].map(now), ["rw-p"; 6]);
    }
}

/// Bytes are copied some pages at a time; behind the last page, nothing can be read.
#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn loans_of_any_number_of_pages_hold_all_bytes() {
    for pages in 1..=9 {
        let place = Reservation::new(pages * PAGE, PAGE).unwrap();
        let own = Mapping::private(pages * PAGE, Protection::ReadWrite, Some((&place, 0))).unwrap();
        let value = |at: usize| (at as u64 + 1) * 0x0101_0101_0101;
        (0..own.len()).step_by(8).for_each(|at| own.view().store_u64(at, value(at)));
        let Some(loan) = lend(own.address(), own.len()) else { return };
        let second = loan.pages().unwrap().map_again().unwrap();
        assert_eq!(second.len(), pages * PAGE);
        for at in (0..own.len()).step_by(8) {
            assert_eq!(second.view().load_u64(at), value(at), "byte {at} of {pages} pages");
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_lent_mapping_that_the_process_extends_goes_on_with_zeros() {
    let own = Mapping::private(PAGE, Protection::ReadWrite, None).unwrap();
    own.view().store_u32(0, 5);
    let Some(_loan) = lend(own.address(), PAGE) else { return };
    let longer = Mapping::private_alone(2 * PAGE).unwrap();
    let pointer = |address: u64| std::ptr::with_exposed_provenance_mut(address as usize);
    let (from, to) = (pointer(own.address()), pointer(longer.address()));
    // SAFETY: with an old length of 0 the lent page stays, and is mapped once more, with what follows it. The new place
    // belongs to this test, which has no view of it.
    unsafe { rustix::mm::mremap_fixed(from, 0, 2 * PAGE, MremapFlags::MAYMOVE, to) }.unwrap();
    let mut bytes = vec![1; 2 * PAGE];
    assert_eq!(read_process(longer.address(), &mut bytes), Ok(()), "nothing is past the end of a file");
    assert_eq!((bytes[0], &bytes[PAGE..]), (5, [0; PAGE].as_slice()));
}

/// Only pages that a loan has exchanged are exchanged back.
#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn what_was_shared_before_a_loan_is_shared_after_it() {
    let place = Reservation::new(3 * PAGE, PAGE).unwrap();
    let file = MemoryFile::new("theirs", PAGE).unwrap();
    let _own = [0, 2]
        .map(|page| Mapping::private(PAGE, Protection::ReadWrite, Some((&place, page * PAGE))).unwrap());
    let theirs = file.map(0, PAGE, Protection::ReadWrite, Some((&place, PAGE))).unwrap();
    let elsewhere = file.map(0, PAGE, Protection::ReadWrite, None).unwrap();
    let now = || [0, 1, 2].map(|page| rights(place.address() + page * PAGE as u64));
    let Some(loan) = lend(place.address(), 3 * PAGE) else { return };
    assert_eq!(now(), ["rw-s"; 3]);
    drop(loan);
    assert_eq!(now(), ["rw-p", "rw-s", "rw-p"]);
    theirs.view().store_u32(0, 11);
    assert_eq!(elsewhere.view().load_u32(0), 11);
}

/// Lines and flags as proc_pid_smaps(5) has them.
#[test]
fn each_kind_of_memory_is_lent_or_refused_by_name() {
    let check = |rest: &str, flags: &str| {
        let line = format!("7000-9000 {rest}");
        check_private(&Line::parse(&line).unwrap(), flags)
    };
    let (stack, address) = (Err(LendError::Stack { address: 0x7000 }), 0x7000);
    assert_eq!(check("rw-p 00000000 00:00 0", " rd wr mr mw me ac"), Ok(true));
    assert_eq!(check("rw-p 00000000 00:00 0  [heap]", " rd wr mr mw me ac dc"), Ok(true));
    assert_eq!(check("rw-s 00000000 00:01 9  /memfd:a", " rd wr sh mr mw me ms"), Ok(false));
    assert_eq!(check("rw-s 00000000 00:01 9  [stack]", " rd wr sh gd wf"), Ok(false));
    // A mapping that grows, whatever it is called, and one of a thread, by its name.
    assert_eq!(check("rw-p 00000000 00:00 0", " rd wr mr mw me gd ac"), stack);
    assert_eq!(check("rw-p 00000000 00:00 0  [stack:12]", " rd wr mr mw me ac"), stack);
    assert_eq!(check("rw-p 00000000 00:00 0  [stack]", " rd wr mr mw me gd ac"), stack);
    assert_eq!(check("rw-p 00000000 08:01 9  /bin/a", " rd wr"), Err(LendError::PrivateFile { address }));
    assert_eq!(check("rw-p 00000000 00:00 0", " rd wr wf"), Err(LendError::WipedOnFork { address }));
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_copy_is_whole_or_refused() {
    let place = Reservation::new(3 * PAGE, PAGE).unwrap();
    let own = Mapping::private(2 * PAGE, Protection::ReadWrite, Some((&place, 0))).unwrap();
    own.view().fill(0, 2 * PAGE, 0x5a);
    let copy = |address: u64, len: usize| {
        let mut bytes = vec![0; len];
        read_process(address, &mut bytes).map(|()| bytes.iter().all(|byte| *byte == 0x5a))
    };
    assert_eq!(copy(own.address(), 2 * PAGE), Ok(true));
    assert_eq!(copy(own.address() + PAGE as u64, PAGE), Ok(true));
    assert_eq!(
        copy(own.address() + PAGE as u64, PAGE + 1),
        Err(Errno::EFAULT),
        "two pages, one of them unreadable"
    );
    assert_eq!(copy(own.address() + 2 * PAGE as u64, 1), Err(Errno::EFAULT));
}

#[test]
#[cfg_attr(miri, ignore = "makes a system call")]
fn what_holds_writers_back_is_for_this_process_alone() {
    // With the first mode too, if the process has the right to it.
    let every_mode = Userfaultfd::open_with(0).ok();
    for opened in every_mode.into_iter().chain(userfaultfd()) {
        assert_eq!(rustix::io::fcntl_getfd(&opened.0).unwrap(), rustix::io::FdFlags::CLOEXEC);
    }
}

/// `UFFD_FEATURE_PAGEFAULT_FLAG_WP` is bit 0 (`linux/userfaultfd.h`).
#[test]
fn a_kernel_that_cannot_hold_writers_back_is_refused() {
    let refused = LendError::Unavailable { step: "UFFDIO_API", errno: Errno::EOPNOTSUPP };
    assert_eq!([1, 0x1fff].map(Userfaultfd::check_features), [Ok(()); 2]);
    assert_eq!([0, 2, 0x1ffe].map(Userfaultfd::check_features), [Err(refused); 3]);
}

#[test]
#[cfg_attr(miri, ignore = "reads what Linux says of a thread")]
fn signals_wait_while_they_are_blocked_and_no_longer() {
    let blocked = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap();
        u64::from_str_radix(mask.trim(), 16).unwrap()
    };
    let bit = |signal: i32| 1 << (signal - 1);
    let before = blocked();
    let signals = SignalsBlocked::new();
    let all = [libc::SIGHUP, libc::SIGINT, libc::SIGALRM, libc::SIGTERM, libc::SIGUSR1, libc::SIGPROF];
    assert!(all.iter().all(|signal| blocked() & bit(*signal) != 0), "{:x}", blocked());
    drop(signals);
    assert_eq!(blocked(), before);
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn mappings_side_by_side_keep_rights_and_advice() {
    let place = Reservation::new(6 * PAGE, PAGE).unwrap();
    let own = Mapping::private(6 * PAGE, Protection::ReadWrite, Some((&place, 0))).unwrap();
    let part = |first: usize, pages: usize| Part {
        address: own.address() + (first * PAGE) as u64,
        len: pages * PAGE,
        is_executable: false,
        stays_out_of_forks: false,
    };
    part(2, 2).advise(Advice::LinuxDontFork).unwrap();
    let rwx = MprotectFlags::READ | MprotectFlags::WRITE | MprotectFlags::EXEC;
    // SAFETY: the pages belong to this test and gain a right.
    unsafe { rustix::mm::mprotect(part(4, 1).pointer(), PAGE, rwx) }.unwrap();
    for page in 0..6 {
        own.view().store_u32(page * PAGE + 12, page as u32 + 70);
    }
    let describe = || {
        let parts = find_parts(own.address(), 6 * PAGE, |_, _| Ok(true)).unwrap();
        let all = parts.iter().map(|part| (part.len / PAGE, part.is_executable, part.stays_out_of_forks));
        all.collect::<Vec<_>>()
    };
    let expected = [(2, false, false), (2, false, true), (1, true, false), (1, false, false)];
    assert_eq!(describe(), expected);
    let Some(loan) = lend(own.address(), 6 * PAGE) else { return };
    assert_eq!(describe(), expected);
    let second = loan.pages().unwrap().map_again().unwrap();
    for page in 0..6 {
        assert_eq!(second.view().load_u32(page * PAGE + 12), page as u32 + 70);
    }
    drop(loan);
    assert_eq!((describe(), rights(own.address())), (expected.to_vec(), "rw-p".to_owned()));
    assert_eq!((0..6).map(|page| own.view().load_u32(page * PAGE + 12)).sum::<u32>(), 435);
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn what_the_process_maps_anew_is_lent_at_the_next_look() {
    let place = Reservation::new(2 * PAGE, PAGE).unwrap();
    let map = || Mapping::private(2 * PAGE, Protection::ReadWrite, Some((&place, 0))).unwrap();
    let own = map();
    let Some(loan) = lend(own.address(), 2 * PAGE) else { return };
    let first = loan.pages().unwrap();
    drop(own);
    assert_eq!(loan.pages(), Err(LendError::Refused(Errno::EFAULT)));
    let own = map();
    own.view().store_u32(8, 3);
    let second = loan.pages().unwrap();
    assert_ne!(second, first);
    assert_eq!(second.map_again().unwrap().view().load_u32(8), 3);
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn pages_that_hold_nothing_take_no_memory() {
    let own = Mapping::private(256 << 20, Protection::ReadWrite, None).unwrap();
    own.view().store_u32(128 << 20, 1);
    let Some(loan) = lend(own.address(), 256 << 20) else { return };
    let second = loan.pages().unwrap().map_again().unwrap();
    assert_eq!((second.view().load_u32(128 << 20), second.view().load_u32(0)), (1, 0));
    let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
    let at = smaps.find(&format!("{:x}-", own.address())).unwrap();
    let resident = smaps[at..].lines().find_map(|line| line.strip_prefix("Rss:")).unwrap();
    let kib: u32 = resident.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kib < 1024, "{kib} KiB");
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn loans_that_cannot_be_are_refused_by_name() {
    let own = Mapping::private(4 * PAGE, Protection::ReadWrite, None).unwrap();
    let refused = |address, len| Loan::new(address, len).unwrap_err();
    assert_eq!(refused(own.address() + 8, PAGE), LendError::Refused(Errno::EINVAL));
    assert_eq!(refused(own.address(), 0), LendError::Refused(Errno::EINVAL));
    assert_eq!(refused(u64::MAX - 4095, 2 * PAGE), LendError::Refused(Errno::EINVAL));
    let unused = Reservation::new(PAGE, PAGE).unwrap();
    assert_eq!(refused(unused.address(), PAGE), LendError::Refused(Errno::EFAULT));
    let read_only = Mapping::private(PAGE, Protection::Read, None).unwrap();
    assert_eq!(refused(read_only.address(), PAGE), LendError::Refused(Errno::EPERM));
    let wiped = Mapping::private(PAGE, Protection::ReadWrite, None).unwrap();
    let there = Part { address: wiped.address(), len: PAGE, is_executable: false, stays_out_of_forks: false };
    there.advise(Advice::LinuxWipeOnFork).unwrap();
    assert!(matches!(refused(wiped.address(), PAGE), LendError::WipedOnFork { .. }));
    let text = refused(map_privately("/proc/self/exe"), PAGE).to_string();
    assert!(text.contains("private mapping of a file"), "{text}");
    // The main thread's stack; its last page holds the program's name.
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let stack = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
    let end = u64::from_str_radix(stack.split(['-', ' ']).nth(1).unwrap(), 16).unwrap();
    assert!(matches!(refused(end - PAGE as u64, PAGE), LendError::Stack { .. }));
}

/// The first page of a file, private and writable, for the rest of the process.
fn map_privately(path: &str) -> u64 {
    let file = File::open(path).unwrap();
    let rights = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a fresh mapping at an address of the kernel's choice touches nothing that exists.
    let raw = unsafe { rustix::mm::mmap(core::ptr::null_mut(), PAGE, rights, MapFlags::PRIVATE, file, 0) };
    raw.unwrap().addr() as u64
}

#[test]
#[cfg_attr(miri, ignore = "maps memory")]
fn a_vector_that_nobody_offered_is_neither_lent_nor_exchanged() {
    let vector = vec![7u8; 1 << 20];
    let address = (vector.as_ptr().addr() as u64).next_multiple_of(PAGE as u64);
    assert_eq!(Loan::new(address, 4 * PAGE).unwrap_err(), LendError::NotOffered { address });
    assert_eq!(rights(address), "rw-p");
    // Half of the range belongs to a mapping.
    let place = Reservation::new(2 * PAGE, PAGE).unwrap();
    let own = Mapping::private(PAGE, Protection::ReadWrite, Some((&place, 0))).unwrap();
    let beside = std::ptr::with_exposed_provenance_mut(own.address() as usize + PAGE);
    let flags = MapFlags::PRIVATE | MapFlags::FIXED;
    // SAFETY: the page is reserved by this test, which places nothing else there.
    unsafe { rustix::mm::mmap_anonymous(beside, PAGE, ProtFlags::READ | ProtFlags::WRITE, flags) }.unwrap();
    let address = own.address();
    assert_eq!(Loan::new(address, 2 * PAGE).unwrap_err(), LendError::NotOffered { address });
    assert_eq!([rights(address), rights(address + PAGE as u64)], ["rw-p"; 2]);
}
