//! USERPTR: the process's own pages on the GPU, and what the process may do to them meanwhile.

use crate::client::*;
use zrt_kmd::{Errno, Mapping, MemoryFile, Protection, Reservation, Syscalls};

/// What TG gives its staging buffers.
const STAGING_FLAGS: u32 = USERPTR | 1 << 28 | PUBLIC | EXECUTABLE | WRITABLE;

/// Shared memory of the process, as `mmap` with MAP_SHARED makes it, at a place that it can make again.
fn own_pages(place: &Reservation) -> Mapping {
    let file = MemoryFile::new("client", 8192).unwrap();
    file.map(0, 8192, Protection::ReadWrite, Some((place, 0))).unwrap()
}

fn lend(client: &Client, pages: &Mapping) -> u64 {
    let (handle, _) = client.alloc_at(pages.address(), 8192, STAGING_FLAGS, pages.address()).unwrap();
    assert_eq!(client.map(handle), Ok(1));
    handle
}

#[test]
fn both_sides_see_the_same_bytes() {
    let client = Client::open();
    let place = Reservation::new(8192, 4096).unwrap();
    let pages = own_pages(&place);
    let va = pages.address();
    let handle = lend(&client, &pages);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&write_data(va + 4096, 77));
    wait_value(pages.view(), 4096, 77);
    // And the other way: a packet waits for a dword that the process writes.
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
    let client = Client::open();
    let memory_event = client.create_event(0, 8, false).unwrap();
    let place = Reservation::new(8192, 4096).unwrap();
    let pages = own_pages(&place);
    let va = pages.address();
    let handle = lend(&client, &pages);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&write_data(va, 1));
    wait_value(pages.view(), 0, 1);
    drop(pages);
    queue.submit(&write_data(va, 2));
    client.wait_for_fault(&["kind=page-fault", &format!("{va:#x}")]);
    let (result, entries) = client.wait_events(&[memory_event], true, 5000).unwrap();
    assert_eq!((result, get32(&entries, 0), get64(&entries, 16)), (0, 1, va));
    // TG's order: unmapped on the GPU, by the process, then freed; here the process was first.
    assert_eq!((client.unmap(handle), client.free(handle)), (Ok(1), Ok(0)));
}

#[test]
fn pages_that_the_process_maps_again_come_back() {
    let client = Client::open();
    let place = Reservation::new(8192, 4096).unwrap();
    let first = own_pages(&place);
    let va = first.address();
    let handle = lend(&client, &first);
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
fn addresses_without_pages_are_refused() {
    let client = Client::open();
    let place = Reservation::new(8192, 4096).unwrap();
    let pages = own_pages(&place);
    let va = pages.address();
    let alloc = |size: u64, user: u64| client.alloc_at(va, size, STAGING_FLAGS, user).err();
    assert_eq!(alloc(8192, 0), Some(Errno::EINVAL));
    assert_eq!(alloc(4096, va + 8), Some(Errno::EINVAL));
    assert_eq!(alloc(12288, va), Some(Errno::EFAULT), "past the end");
    assert_eq!(client.text("faults"), "");
    // The kernel would take private pages; this device says that it cannot.
    let heap = vec![1u8; 1 << 20];
    let inside = (heap.as_ptr().addr() as u64).next_multiple_of(4096);
    assert_eq!(alloc(4096, inside), Some(Errno::EINVAL));
    client.wait_for_fault(&["kind=unmodelled-request", "USERPTR"]);
    // Nobody maps them a second time through the render node.
    let (_, offset) = client.alloc_at(va, 8192, STAGING_FLAGS, va).unwrap();
    let again = client.gpu.map(client.render, offset, 8192, Protection::ReadWrite, None);
    assert_eq!(again.err(), Some(Errno::EPERM));
}
