//! Packets through a real queue: ring, wrap, indirect buffers, waits, several queues.

use crate::client::*;

#[test]
fn packets_do_what_they_say_in_order() {
    let client = Client::open();
    let mut queue = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    let (view, va) = (target.view(), target.va);
    let (low, high) = (va as u32, (va >> 32) as u32);
    let mut stream = vec![0xFFFF_1000, 0xC000_1000, 0xDEAD_BEEF];
    stream.extend(write_data(va + 8, 0x1111));
    // Three dwords with increment, then two to the same place.
    stream.extend([0xC005_3700, 0x0000_0500, low + 16, high, 1, 2, 3]);
    stream.extend([0xC004_3700, 0x0001_0500, low + 32, high, 4, 5]);
    // COPY_DATA: memory to memory, 64-bit; immediate, 32-bit; GPU clock, 64-bit.
    stream.extend([0xC004_4000, 0x0001_0202, low + 16, high, low + 40, high]);
    stream.extend([0xC004_4000, 0x0000_0205, 0x77, 0, low + 48, high]);
    stream.extend([0xC004_4000, 0x0001_0209, 0, 0, low + 56, high]);
    // RELEASE_MEM with 64-bit data and with the GPU clock.
    stream.extend([0xC006_4900, 0x0660_0514, 0x4000_0000, low + 64, high, 8, 9, 0]);
    stream.extend([0xC006_4900, 0x514, 0x6000_0000, low + 72, high, 0, 0, 0]);
    // HDP flush, acquire and partial flush have no visible effect.
    stream.extend([0xC005_3C00, 0x40 | 3, 0xE26, 0xE27, !0, !0, 0x20]);
    stream.extend([0xC006_5800, 0, !0, 0xFF_FFFF, 0, 0, 0xA, 0xC3B1]);
    stream.extend([0xC000_4600, 0x407]);
    stream.extend(fence(va, 1));
    queue.submit(&stream);
    wait_value(view, 0, 1);
    let words = [8, 16, 20, 24, 32, 36, 40, 44, 48, 52, 64, 68].map(|at| view.load_u32(at));
    assert_eq!(words, [0x1111, 1, 2, 3, 5, 0, 1, 2, 0x77, 0, 8, 9]);
    let (first, second) = (view.load_u64(56), view.load_u64(72));
    assert!(first > 0 && second >= first);
    queue.wait_idle();
    assert_eq!(client.counter("doorbells"), 1);
    assert_eq!(client.counter("packets"), 14);
    assert_eq!(client.text("faults"), "");
}

/// Source 1 and destination 5 of COPY_DATA select GL2 by obsolete numbers: they work, and the fault log notes them.
#[test]
fn obsolete_selectors_of_copy_data_work_and_are_noted() {
    let client = Client::open();
    let mut queue = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    let (low, high) = (target.va as u32, (target.va >> 32) as u32);
    target.view().store_u32(16, 0x1234);
    for (round, control) in [(1, 0x0000_0201), (2, 0x0000_0502)] {
        let mut stream = vec![0xC004_4000, control, low + 16, high, low + 32 * round, high];
        stream.extend(fence(target.va, round));
        queue.submit(&stream);
        wait_value(target.view(), 0, round);
        assert_eq!(target.view().load_u32(32 * round as usize), 0x1234);
        let text = client.text("faults");
        assert_eq!(text.lines().count(), round as usize, "{text}");
        assert!(text.contains("kind=obsolete-selector queue=0 packet=COPY_DATA at=0x"), "{text}");
        assert!(text.contains(&format!("control={control:#x} : ")), "{text}");
    }
}

#[test]
fn a_small_ring_wraps_hundreds_of_times_and_packets_straddle_its_end() {
    let client = Client::open();
    let mut queue = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    for value in 1..=40_000u32 / 9 {
        // 9 does not divide 1024: every position in a packet meets the end of the ring.
        let mut stream = vec![0xFFFF_1000];
        stream.extend(fence(target.va, value));
        let free = |queue: &Queue| 1024 - (queue.written - queue.rptr()) as usize;
        eventually("room in the ring", || (free(&queue) >= 9).then_some(()));
        queue.submit(&stream);
    }
    wait_value(target.view(), 0, 40_000 / 9);
    queue.wait_idle();
    assert!(queue.written > 39 * 1024 - 1);
    assert_eq!(client.text("faults"), "");
}

#[test]
fn nothing_is_read_beyond_the_write_pointer() {
    let client = Client::open();
    let mut queue = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    queue.write(&fence(target.va, 1));
    let first = queue.written;
    queue.write(&fence(target.va + 8, 2));
    pause();
    assert_eq!(target.view().load_u32(0), 0, "no doorbell was rung");
    queue.store_wptr(first);
    queue.ring(first);
    wait_value(target.view(), 0, 1);
    pause();
    assert_eq!(target.view().load_u32(8), 0);
    // The limit is in the middle of the second packet: the packet waits for its rest, and the fault log says so.
    queue.store_wptr(first + 3);
    queue.ring(first + 3);
    client.wait_for_fault(&["kind=torn-packet", "packet=RELEASE_MEM"]);
    assert_eq!(target.view().load_u32(8), 0);
    queue.store_wptr(queue.written);
    queue.ring(queue.written);
    wait_value(target.view(), 8, 2);
}

#[test]
fn indirect_buffers_run_and_chain() {
    let client = Client::open();
    let mut queue = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    let code = client.buffer(8192);
    let put = |at: usize, dwords: &[u32]| {
        dwords.iter().enumerate().for_each(|(index, dword)| code.view().store_u32(at + index * 4, *dword));
    };
    put(0, &write_data(target.va, 1));
    // The chain is the last packet of its buffer.
    let mut chain = indirect(code.va + 4096, 10);
    chain[3] |= 1 << 20;
    put(20, &chain);
    put(4096, &write_data(target.va + 4, 2));
    put(4116, &write_data(target.va + 8, 3));
    let mut stream = indirect(code.va, 9).to_vec();
    stream.extend(fence(target.va + 12, 4));
    queue.submit(&stream);
    wait_value(target.view(), 12, 4);
    assert_eq!([0, 4, 8].map(|at| target.view().load_u32(at)), [1, 2, 3]);
    queue.wait_idle();
    assert_eq!((client.counter("submissions"), client.counter("packets")), (2, 6));
    assert_eq!(client.text("faults"), "");
}

#[test]
fn waits_of_one_queue_do_not_hold_up_another() {
    let client = Client::open();
    let mut waiting = Queue::new(&client, 4096);
    let mut other = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    let (low, high) = (target.va as u32, (target.va >> 32) as u32);
    let mut stream = vec![0xC005_3C00, 0x13, low, high, 0x50, 0xF0, 4];
    stream.extend(fence(target.va + 8, 1));
    waiting.submit(&stream);
    pause();
    assert_eq!(target.view().load_u32(8), 0);
    let mut stream = fence(target.va + 16, 2).to_vec();
    stream.extend(write_data(target.va, 0x15F));
    other.submit(&stream);
    wait_value(target.view(), 16, 2);
    wait_value(target.view(), 8, 1);
}

#[test]
fn the_host_releases_a_waiting_queue() {
    let client = Client::open();
    let mut queue = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    for round in 1..20u32 {
        let (low, high) = (target.va as u32, (target.va >> 32) as u32);
        let mut stream = vec![0xC005_3C00, 0x15, low, high, round, !0, 4];
        stream.extend(fence(target.va + 8, round));
        queue.submit(&stream);
        target.view().store_u32_release(0, round);
        wait_value(target.view(), 8, round);
    }
}

#[test]
fn read_pointers_are_written_in_blocks_and_when_idle() {
    let client = Client::open();
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&[0xFFFF_1000; 5]);
    eventually("an exact read pointer when idle", || (queue.rptr() == 5).then_some(()));
    let (low, high) = (queue.ring.va as u32, (queue.ring.va >> 32) as u32);
    // 200 NOPs, then a wait that never ends: only whole blocks are reported.
    queue.write(&[0xFFFF_1000; 200]);
    let wait = [0xC005_3C00, 0x13, low, high, 1, 0, 4];
    queue.submit(&wait);
    eventually("a block of the read pointer", || (queue.rptr() >= 192).then_some(()));
    pause();
    assert!(queue.rptr() <= 205 && queue.rptr() >= 192, "{}", queue.rptr());
}
