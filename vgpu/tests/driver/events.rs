//! Events through the bytes of their requests: hardware reference §2.3, §2.8 and §8.

use crate::client::*;
use std::time::{Duration, Instant};
use zrt_kmd::syscalls::{Nested, Reservation, ioctl_bytes};
use zrt_kmd::{Errno, Protection, Syscalls};

#[test]
fn the_signal_page_is_the_processes_own_and_set_once() {
    let client = Client::open();
    let page = client.buffer(32768);
    let vram = client.private(32768);
    assert_eq!(client.create_event(vram.handle, 0, false), Err(Errno::EINVAL));
    assert_eq!(client.create_event(page.handle + 99, 0, false), Err(Errno::EINVAL));
    assert_eq!(client.create_event(page.handle, 0, false), Ok(1));
    assert_eq!(client.create_event(page.handle, 0, false), Err(Errno::EINVAL));
    assert_eq!(client.create_event(0, 0, false), Ok(2));
    assert_eq!(page.view().load_u64(8), u64::MAX);
    client.unmap(page.handle).unwrap();
    assert_eq!(client.free(page.handle), Err(Errno::EPERM));
}

#[test]
fn a_packet_signals_an_event() {
    let client = Client::open();
    let page = client.buffer(32768);
    let event = client.create_event(page.handle, 0, true).unwrap();
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&interrupt(page.va + event as u64 * 8, event));
    let (result, _) = client.wait_events(&[event], true, 5000).unwrap();
    assert_eq!(result, 0);
    assert_eq!(client.wait_events(&[event], true, 0).unwrap().0, 1);
    // The kernel took the signal from the slot.
    assert_eq!(page.view().load_u64(event as usize * 8), u64::MAX);
}

#[test]
fn waiting_times_out_and_rejects() {
    let client = Client::open();
    let event = client.create_event(0, 0, false).unwrap();
    let start = Instant::now();
    assert_eq!(client.wait_events(&[event], false, 20).unwrap().0, 1);
    assert!(start.elapsed() >= Duration::from_millis(20));
    assert_eq!(client.wait_events(&[event, 77], false, 0).err(), Some(Errno::EINVAL));
    let mut bytes = [0; 24];
    put64(&mut bytes, 0, 8);
    put32(&mut bytes, 8, 1);
    assert_eq!(client.ioctl(0xC018_4B0C, &mut bytes), Err(Errno::EFAULT));
    put32(&mut bytes, 8, u32::MAX);
    assert_eq!(client.ioctl(0xC018_4B0C, &mut bytes), Err(Errno::ENOMEM));
    assert_eq!(get32(&bytes, 20), 2, "the result of a wait that failed");
}

#[test]
fn set_reset_and_destroy() {
    let client = Client::open();
    let signal = client.create_event(0, 0, false).unwrap();
    let memory = client.create_event(0, 8, false).unwrap();
    let only = |request: u32, id: u32| {
        let mut bytes = [0; 8];
        put32(&mut bytes, 0, id);
        client.ioctl(request, &mut bytes)
    };
    assert_eq!(only(0x4008_4B0A, signal), Ok(0));
    assert_eq!(client.wait_events(&[signal], true, 0).unwrap().0, 0);
    assert_eq!(only(0x4008_4B0B, signal), Ok(0));
    assert_eq!(client.wait_events(&[signal], true, 0).unwrap().0, 1);
    for request in [0x4008_4B0A, 0x4008_4B0B] {
        assert_eq!(only(request, memory), Err(Errno::EINVAL));
        assert_eq!(only(request, 999), Err(Errno::EINVAL));
    }
    assert_eq!(only(0x4008_4B09, memory), Ok(0));
    assert_eq!(only(0x4008_4B09, memory), Err(Errno::EINVAL));
    assert_eq!(client.wait_events(&[memory], true, 0).err(), Some(Errno::EINVAL));
}

/// The structure of CREATE_EVENT after the request: page offset, trigger data, id, slot.
fn created(client: &Client, page: u64, kind: u32) -> (Result<i32, Errno>, [u64; 4]) {
    let mut bytes = [0xEE; 32];
    put64(&mut bytes, 0, page);
    put32(&mut bytes, 12, kind);
    put32(&mut bytes, 16, 0);
    let outcome = client.ioctl(0xC020_4B08, &mut bytes);
    let [data, id, slot] = [8, 24, 28].map(|at| u64::from(get32(&bytes, at)));
    (outcome, [get64(&bytes, 0), data, id, slot])
}

#[test]
fn an_event_is_told_with_its_id_and_its_slot() {
    let client = Client::open();
    let page = client.buffer(32768);
    const UNTOUCHED: u64 = 0xEEEE_EEEE;
    // Events of an exception have no slot; the page is set all the same. Those with a slot name the page's offset.
    let first_other = 1 << 30;
    assert_eq!(created(&client, page.handle, 8), (Ok(0), [0, first_other, first_other, UNTOUCHED]));
    assert_eq!(page.view().load_u64(32760), u64::MAX);
    assert_eq!(created(&client, 0, 0), (Ok(0), [2 << 62, 1, 1, 1]));
    assert_eq!(created(&client, 0, 5), (Ok(0), [2 << 62, 2, 2, 2]));
    let next = first_other + 1;
    assert_eq!(created(&client, 0, 3), (Ok(0), [0, next, next, UNTOUCHED]));
    // What is refused before an event is made is given back as it was.
    let refused = (Err(Errno::EINVAL), [page.handle, UNTOUCHED, UNTOUCHED, UNTOUCHED]);
    assert_eq!(created(&client, page.handle, 0), refused);
}

#[test]
fn the_kernels_page_gives_more_slots_once_it_is_mapped() {
    let client = Client::open();
    let create = || client.create_event(0, 0, false);
    (1..256).for_each(|id| assert_eq!(create(), Ok(id)));
    assert_eq!(create(), Err(Errno::ENOSPC));
    // A mapping that fails gives none.
    let small = Reservation::new(4096, 4096).unwrap();
    let outcome = client.gpu.map(client.kfd, 2 << 62, 32768, Protection::ReadWrite, Some((&small, 0)));
    assert!(outcome.is_err());
    assert_eq!(create(), Err(Errno::ENOSPC));
    let map = |len| client.gpu.map(client.kfd, 2 << 62, len, Protection::ReadWrite, None);
    let page = map(4096).unwrap();
    (256..512).for_each(|id| assert_eq!(create(), Ok(id)));
    assert_eq!(create(), Err(Errno::ENOSPC));
    let larger = map(32768).unwrap();
    assert_eq!(create(), Ok(512));
    // Both are the page of the slots.
    larger.view().store_u64(8, 5);
    assert_eq!(page.view().load_u64(8), 5);
}

/// The entries of a wait: of each the union's bytes before the id, as given and as they come back.
#[test]
fn entries_of_a_wait_are_written_if_they_have_data() {
    let client = Client::open();
    let [signal, other] = [0, 0].map(|kind| client.create_event(0, kind, false).unwrap());
    let hardware = client.create_event(0, 3, false).unwrap();
    let mut set = [0; 8];
    put32(&mut set, 0, signal);
    client.ioctl(0x4008_4B0A, &mut set).unwrap();
    let wait = |ages: [u64; 3], all: u32| {
        let mut entries = [0xEE; 144];
        for (at, (id, age)) in [signal, other, hardware].into_iter().zip(ages).enumerate() {
            put64(&mut entries, at * 48, age);
            put32(&mut entries, at * 48 + 40, id);
        }
        let before = entries;
        let mut bytes = [0; 24];
        for (at, value) in [(8, 3), (12, all), (20, 0xEE)] {
            put32(&mut bytes, at, value);
        }
        let nested = &mut [Nested { field_offset: 0, bytes: &mut entries }];
        ioctl_bytes(&*client.gpu, client.kfd, 0xC018_4B0C, &mut bytes, nested).unwrap();
        let ages = [0, 48, 96].map(|at| get64(&entries, at));
        let others = |bytes: &[u8; 144]| [8..48, 56..96, 104..144].map(|range| bytes[range].to_vec());
        assert_eq!(others(&entries), others(&before), "only ages were written");
        (get32(&bytes, 20), ages)
    };
    // One of three; those that use no age, or were not signalled, keep what was there.
    assert_eq!(wait([1, 1, 7], 0), (0, [2, 1, 7]));
    assert_eq!(wait([0, 5, 7], 0), (0, [0, 1, 7]));
    assert_eq!(wait([1, 1, 7], 1), (1, [1, 1, 7]));
}

#[test]
fn a_wait_that_fails_says_so_in_its_structure() {
    let client = Client::open();
    let mut entry = [0; 48];
    put32(&mut entry, 40, 77);
    let mut bytes = [0; 24];
    put32(&mut bytes, 8, 1);
    let nested = &mut [Nested { field_offset: 0, bytes: &mut entry }];
    let outcome = ioctl_bytes(&*client.gpu, client.kfd, 0xC018_4B0C, &mut bytes, nested);
    assert_eq!((outcome, get32(&bytes, 20)), (Err(Errno::EINVAL), 2));
}
