//! Events through the bytes of their requests: hardware reference §2.3, §2.8 and §8.

use crate::client::*;
use std::time::{Duration, Instant};
use zrt_kmd::Errno;

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
