//! USERPTR: the process's own pages on the GPU, and what the process may do to them meanwhile.

use crate::client::*;
use crate::dispatch::{TRIPLE, code, dispatch};
use std::sync::atomic::{AtomicBool, Ordering};
use zrt_kmd::syscalls::{LendError, Loan};
use zrt_kmd::{Errno, Mapping, MemoryFile, Protection, Reservation, Syscalls};

/// The flags that tinygrad uses for its staging buffers.
const STAGING_FLAGS: u32 = USERPTR | 1 << 28 | PUBLIC | EXECUTABLE | WRITABLE;

/// Shared memory of the process, as `mmap` with MAP_SHARED makes it, at a place where it can be mapped again.
fn own_pages(place: &Reservation) -> Mapping {
    let file = MemoryFile::new("client", 8192).unwrap();
    file.map(0, 8192, Protection::ReadWrite, Some((place, 0))).unwrap()
}

fn lend(client: &Client, pages: &Mapping) -> u64 {
    let (handle, _) = client.alloc_at(pages.address(), 8192, STAGING_FLAGS, pages.address()).unwrap();
    assert_eq!(client.map(handle), Ok(1));
    handle
}

/// A client that has lent its own pages to the GPU: with their place and the object's handle.
fn lent() -> (Client, Reservation, Mapping, u64) {
    let client = Client::open();
    let place = Reservation::new(8192, 4096).unwrap();
    let pages = own_pages(&place);
    let handle = lend(&client, &pages);
    (client, place, pages, handle)
}

#[test]
fn both_sides_see_the_same_bytes() {
    let (client, _place, pages, handle) = lent();
    let va = pages.address();
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&write_data(va + 4096, 77));
    wait_value(pages.view(), 4096, 77);
    // And the reverse: a packet waits for a dword that the process writes.
    let wait = [0xC005_3C00, 0x13, (va + 8) as u32, (va >> 32) as u32, 5, u32::MAX, 4];
    queue.submit(&wait);
    queue.submit(&write_data(va + 16, 6));
    pause();
    assert_eq!(pages.view().load_u32(16), 0);
    pages.view().store_u32(8, 5);
    wait_value(pages.view(), 16, 6);
    assert_eq!((client.unmap(handle), client.free(handle)), (Ok(1), Ok(0)));
    assert_eq!(client.text("faults"), "");
}

#[test]
fn pages_that_the_process_unmaps_are_gone_for_the_gpu_too() {
    let (client, _place, pages, handle) = lent();
    let va = pages.address();
    let memory_event = client.create_event(0, 8, false).unwrap();
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&write_data(va, 1));
    wait_value(pages.view(), 0, 1);
    drop(pages);
    queue.submit(&write_data(va, 2));
    client.wait_for_fault(&["kind=page-fault", &format!("{va:#x}")]);
    let (result, entries) = client.wait_events(&[memory_event], true, 5000).unwrap();
    assert_eq!((result, get32(&entries, 0), get64(&entries, 16)), (0, 1, va));
    // tinygrad's order: unmapped on the GPU, then by the process, then freed; here the process was first.
    assert_eq!((client.unmap(handle), client.free(handle)), (Ok(1), Ok(0)));
}

#[test]
fn pages_that_the_process_maps_again_come_back() {
    let (client, place, first, handle) = lent();
    let va = first.address();
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&write_data(va, 1));
    wait_value(first.view(), 0, 1);
    drop(first);
    let second = own_pages(&place);
    assert_eq!((second.address(), second.view().load_u32(0)), (va, 0));
    queue.submit(&write_data(va, 2));
    wait_value(second.view(), 0, 2);
    assert_eq!((client.unmap(handle), client.free(handle)), (Ok(1), Ok(0)));
    assert_eq!(client.text("faults"), "");
}

#[test]
fn pages_that_are_unmapped_on_the_gpu_fault_there_and_can_be_mapped_again() {
    let (client, _place, pages, handle) = lent();
    let va = pages.address();
    let mut queue = Queue::new(&client, 4096);
    assert_eq!((client.unmap(handle), client.map(handle)), (Ok(1), Ok(1)));
    queue.submit(&write_data(va, 1));
    wait_value(pages.view(), 0, 1);
    assert_eq!(client.unmap(handle), Ok(1));
    queue.submit(&write_data(va, 2));
    client.wait_for_fault(&["kind=page-fault", &format!("va={va:#x} not mapped")]);
    assert_eq!((pages.view().load_u32(0), client.free(handle)), (1, Ok(0)));
}

/// Whether an object can be mapped has nothing to do with whether its pages are there.
#[test]
fn objects_without_their_pages_are_mapped_by_the_same_rules() {
    let (client, _place, pages, handle) = lent();
    let va = pages.address();
    let (shifted, _) = client.alloc_at(va + 2048, 8192, STAGING_FLAGS, va).unwrap();
    drop(pages);
    let refused = Err(Errno::EINVAL);
    assert_eq!((client.map(handle), client.map(shifted)), (refused, refused), "mapped, and not at a page");
    assert_eq!((client.unmap(handle), client.map(handle), client.map(handle)), (Ok(1), Ok(1), refused));
}

#[test]
fn addresses_without_pages_are_refused() {
    let client = Client::open();
    let place = Reservation::new(8192, 4096).unwrap();
    let pages = own_pages(&place);
    let va = pages.address();
    let alloc = |size: u64, user: u64| client.alloc_at(va, size, STAGING_FLAGS, user).err();
    assert_eq!(alloc(8192, 0), Some(Errno::EINVAL));
    // That there is no address is found first (`-EINVAL` without an offset in
    // `amdgpu_amdkfd_gpuvm_alloc_memory_of_gpu`), and only then that there is not so much memory.
    assert_eq!((alloc(40 << 30, 0), alloc(40 << 30, va)), (Some(Errno::EINVAL), Some(Errno::ENOMEM)));
    assert_eq!(alloc(4096, va + 8), Some(Errno::EINVAL));
    assert_eq!(alloc(12288, va), Some(Errno::EFAULT), "past the end");
    assert_eq!(client.text("faults"), "");
    // As in the kernel: pages are requested with write permission.
    let read_only = Mapping::private(4096, Protection::Read, None).unwrap();
    assert_eq!(alloc(4096, read_only.address()), Some(Errno::EPERM));
    assert_eq!(client.text("faults"), "");
    // Nobody can map them a second time through the render node.
    let (_, offset) = client.alloc_at(va, 8192, STAGING_FLAGS, va).unwrap();
    let again = client.gpu.map(client.render, offset, 8192, Protection::ReadWrite, None);
    assert_eq!(again.err(), Some(Errno::EPERM));
}

#[test]
fn memory_that_this_device_cannot_lend_is_named_in_the_diary() {
    let client = Client::open();
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let stack = maps.lines().find(|line| line.ends_with("[stack]")).unwrap();
    let end = u64::from_str_radix(stack.split(['-', ' ']).nth(1).unwrap(), 16).unwrap();
    let va = end - 4096;
    assert_eq!(client.alloc_at(va, 4096, STAGING_FLAGS, va).err(), Some(Errno::EINVAL));
    client.wait_for_fault(&["kind=unmodelled-request", "USERPTR", "a stack at"]);
}

/// Whether the system allows lending private memory; if it does not, the refusal must name what is missing.
fn can_lend(client: &Client, address: u64) -> bool {
    match Loan::new(address, 4096) {
        Ok(_) => true,
        Err(LendError::Unavailable { step, .. }) => {
            assert_eq!(client.alloc_at(address, 4096, STAGING_FLAGS, address).err(), Some(Errno::EINVAL));
            client.wait_for_fault(&["kind=unmodelled-request", "USERPTR", step]);
            false
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_vector_whose_owner_offered_nothing_is_refused_and_named() {
    let client = Client::open();
    let vector = vec![7u8; 1 << 20];
    let address = (vector.as_ptr().addr() as u64).next_multiple_of(4096);
    assert_eq!(client.alloc_at(address, 8192, STAGING_FLAGS, address).err(), Some(Errno::EINVAL));
    client.wait_for_fault(&["kind=unmodelled-request", "USERPTR", "has not offered"]);
    assert!(vector.iter().all(|byte| *byte == 7));
}

/// Private pages whose dwords count up.
fn private_pages(pages: usize) -> Mapping {
    let own = Mapping::private(pages * 4096, Protection::ReadWrite, None).unwrap();
    (0..pages * 1024).for_each(|index| own.view().store_u32(index * 4, index as u32));
    own
}

#[test]
fn a_kernel_reads_and_writes_private_memory() {
    const FIRST: usize = 1024;
    const LENT: usize = 8 * 1024;
    let client = Client::open();
    // One page before and one page after the lent pages are not lent.
    let own = private_pages(10);
    let address = own.address() + 4 * FIRST as u64;
    if !can_lend(&client, address) {
        return;
    }
    let (handle, _) = client.alloc_at(address, 32768, STAGING_FLAGS, address).unwrap();
    assert_eq!(client.map(handle), Ok(1));
    let (triple, signal) = (code(&client, &TRIPLE), client.buffer(4096));
    let mut queue = Queue::new(&client, 4096);
    let mut stream = dispatch(triple.va, address, 256);
    stream.extend(fence(signal.va, 1));
    let is_over = AtomicBool::new(false);
    // Another thread continues to use the dwords next to the lent pages.
    let rounds = std::thread::scope(|scope| {
        let neighbour = scope.spawn(|| {
            let mut rounds = 0;
            while !is_over.load(Ordering::Relaxed) || rounds == 0 {
                for index in (0..FIRST).chain(FIRST + LENT..10 * 1024) {
                    own.view().store_u32(index * 4, own.view().load_u32(index * 4) + 1);
                }
                rounds += 1;
            }
            rounds
        });
        queue.submit(&stream);
        wait_value(signal.view(), 0, 1);
        assert_eq!((client.unmap(handle), client.free(handle)), (Ok(1), Ok(0)));
        is_over.store(true, Ordering::Relaxed);
        neighbour.join().unwrap()
    });
    for index in 0..10 * 1024 {
        let is_lent = (FIRST..FIRST + LENT).contains(&index);
        let expected = if is_lent { 3 * index as u32 + 1 } else { index as u32 + rounds };
        assert_eq!(own.view().load_u32(index * 4), expected, "{index}");
    }
    assert_eq!(client.text("faults"), "");
}

#[test]
fn private_pages_that_the_process_unmaps_fault_and_come_back() {
    let open = || {
        let place = Reservation::new(8192, 4096).unwrap();
        let own = Mapping::private(8192, Protection::ReadWrite, Some((&place, 0))).unwrap();
        (Client::open(), place, own)
    };
    let (client, place, own) = open();
    let va = own.address();
    if !can_lend(&client, va) {
        return;
    }
    let handle = lend(&client, &own);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&write_data(va, 1));
    wait_value(own.view(), 0, 1);
    drop(own);
    let again = Mapping::private(8192, Protection::ReadWrite, Some((&place, 0))).unwrap();
    assert_eq!((again.address(), again.view().load_u32(0)), (va, 0));
    queue.submit(&write_data(va, 2));
    wait_value(again.view(), 0, 2);
    assert_eq!(client.text("faults"), "");
    drop(again);
    queue.submit(&write_data(va, 3));
    client.wait_for_fault(&["kind=page-fault", &format!("{va:#x}")]);
    assert_eq!((client.unmap(handle), client.free(handle)), (Ok(1), Ok(0)));
}

/// What HIP does with two registrations that share a page: one object each, at separate GPU addresses.
#[test]
fn overlapping_loans_are_objects_of_their_own() {
    let client = Client::open();
    let own = private_pages(3);
    let address = own.address();
    if !can_lend(&client, address) {
        return;
    }
    let places: Vec<_> = (0..2).map(|_| Reservation::new(8192, 4096).unwrap()).collect();
    let handles: Vec<_> = (0..2)
        .map(|index| {
            let user = address + index as u64 * 4096;
            let (handle, _) = client.alloc_at(places[index].address(), 8192, STAGING_FLAGS, user).unwrap();
            assert_eq!(client.map(handle), Ok(1));
            handle
        })
        .collect();
    let mut queue = Queue::new(&client, 4096);
    let wait = |index: usize, value: u32| wait_value(own.view(), 4 * index, value);
    queue.submit(&write_data(places[0].address() + 4096, 91));
    wait(1024, 91);
    queue.submit(&write_data(places[1].address() + 4, 92));
    wait(1025, 92);
    assert_eq!((client.unmap(handles[0]), client.free(handles[0])), (Ok(1), Ok(0)));
    queue.submit(&write_data(places[1].address() + 8, 93));
    wait(1026, 93);
    assert_eq!((client.unmap(handles[1]), client.free(handles[1])), (Ok(1), Ok(0)));
    let values = [1023, 1024, 1025, 1026, 1027].map(|at| own.view().load_u32(4 * at));
    assert_eq!(values, [1023, 91, 92, 93, 1027]);
    assert_eq!(client.text("faults"), "");
}
