//! Faults, and how the process learns of them: hardware reference §8.

use crate::client::*;
use crate::dispatch::{STORE, code, dispatch};
use zrt_vgpu::{FaultInjection, PlantedFault};

/// A stopped queue does not reach the next fence.
fn assert_stuck(queue: &mut Queue, target: &Buffer) {
    queue.submit(&fence(target.va + 1024, 1));
    pause();
    assert_eq!(target.view().load_u32(1024), 0);
}

#[test]
fn malformed_packets_stop_the_queue_without_an_event() {
    let cases: [(&str, &[u32]); 9] = [
        ("unknown opcode 0x23", &[0xC000_2300, 0]),
        ("unknown opcode 0x69", &[0xC001_6900, 0, 0]),
        ("is not of packet type 3", &[0x8000_0000]),
        ("is not of packet type 3", &[0x0000_0001, 0]),
        ("RELEASE_MEM with 6 body dwords", &[0xC005_4900, 0x514, 0, 0, 0, 0, 0]),
        ("register is 0x3ff", &[0xC002_7600, 0x3FF, 1, 2]),
        ("privileged register 0x214", &[0xC001_7600, 0x214, 1]),
        ("in the ring may not chain", &[0xC002_3F00, 0x1234_5000, 0, 4 | 1 << 20 | 1 << 23]),
        ("COMPUTE_SHADER_EN is clear", &[0xC003_1500, 1, 1, 1, 0]),
    ];
    for (message, packet) in cases {
        let client = Client::open();
        let memory = client.create_event(0, 8, false).unwrap();
        let target = client.buffer(4096);
        let mut queue = Queue::new(&client, 4096);
        queue.submit(packet);
        client.wait_for_fault(&["queue=0", message]);
        assert_stuck(&mut queue, &target);
        assert_eq!(client.wait_events(&[memory], true, 0).unwrap().0, 1, "{message}");
        queue.destroy(&client).unwrap();
    }
}

#[test]
fn indirect_buffers_end_where_they_say_and_do_not_nest() {
    for (message, dwords) in [
        ("INDIRECT_BUFFER inside an indirect buffer", indirect(0x1000_0000, 4).to_vec()),
        ("4 body dwords follow the header, 1 are left", write_data(0x1000_0000, 1)[..2].to_vec()),
    ] {
        let client = Client::open();
        let code = client.buffer(4096);
        code.fill(&dwords);
        let mut queue = Queue::new(&client, 4096);
        queue.submit(&indirect(code.va, dwords.len() as u32));
        client.wait_for_fault(&["kind=packet", message, "indirect buffer"]);
    }
}

#[test]
fn a_page_fault_signals_the_memory_event_and_stops_all_queues() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let hardware = client.create_event(0, 3, false).unwrap();
    let target = client.buffer(4096);
    let mut other = Queue::new(&client, 4096);
    let mut queue = Queue::new(&client, 4096);
    let hole = 0x40_0000_0000u64;
    queue.submit(&write_data(hole + 0x1234, 1));
    let (result, entries) = client.wait_events(&[hardware, memory], false, 5000).unwrap();
    assert_eq!(result, 0);
    let entry = &entries[48..];
    // NotPresent, ReadOnly, NoExecute, imprecise; address of the page; gpu_id; ErrorType.
    assert_eq!([0, 4, 8, 12].map(|at| get32(entry, at)), [1, 0, 0, 0]);
    assert_eq!(get64(entry, 16), hole + 0x1000);
    assert_eq!((get32(entry, 24), get32(entry, 28)), (client.gpu_id, 0));
    assert_eq!(entries[..40], [0; 40]);
    client.wait_for_fault(&[
        "kind=page-fault",
        "queue=1",
        "packet=WRITE_DATA",
        "va=0x4000001234",
        "not mapped",
    ]);
    assert_stuck(&mut other, &target);
    // Not auto-reset: it stays signalled.
    assert_eq!(client.wait_events(&[memory], true, 0).unwrap().0, 0);
}

#[test]
fn rights_of_a_mapping_are_kept() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let read_only = client.buffer_with(4096, GTT | PUBLIC, true);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&write_data(read_only.va, 1));
    let (result, entry) = client.wait_events(&[memory], true, 5000).unwrap();
    assert_eq!(result, 0);
    assert_eq!([0, 4, 8].map(|at| get32(&entry, at)), [0, 1, 0]);
    assert_eq!(read_only.view().load_u32(0), 0);
}

#[test]
fn release_without_eop_faults_at_address_zero() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let target = client.buffer(4096);
    let (fields, buffers) = Queue::fields(&client, 4096);
    let fields = CreateQueue { eop: 0, eop_size: 0, ..fields };
    let mut queue = Queue::from_parts(&client, fields, buffers);
    queue.submit(&fence(target.va, 1));
    let (result, entry) = client.wait_events(&[memory], true, 5000).unwrap();
    assert_eq!((result, get64(&entry, 16)), (0, 0));
    assert_eq!(target.view().load_u32(0), 0);
    client.wait_for_fault(&["kind=page-fault", "packet=RELEASE_MEM", "va=0x0"]);
}

#[test]
fn unmapped_indirect_buffers_and_rings_that_overrun() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&indirect(0x50_0000_0000, 1_048_575));
    assert_eq!(client.wait_events(&[memory], true, 5000).unwrap().0, 0);
    client.wait_for_fault(&["kind=page-fault", "va=0x5000000000"]);

    let client = Client::open();
    let queue = Queue::new(&client, 4096);
    queue.store_wptr(1025);
    queue.ring(1025);
    client.wait_for_fault(&["kind=packet", "1025 dwords ahead of a ring of 1024"]);
}

#[test]
fn doorbells_are_held_to_their_rules() {
    let client = Client::open();
    let target = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&fence(target.va, 1));
    wait_value(target.view(), 0, 1);
    queue.ring(4);
    client.wait_for_fault(&["kind=doorbell", "went backwards"]);
    // The write pointer in memory must be there before the doorbell.
    queue.write(&fence(target.va, 2));
    queue.ring(queue.written);
    client.wait_for_fault(&["kind=write-pointer", "doorbell=16 wptr=8"]);
    wait_value(target.view(), 0, 2);
    assert_eq!(client.counter("doorbells"), 2);

    // A 32-bit store into a fresh slot.
    let mut fresh = Queue::new(&client, 4096);
    fresh.write(&fence(target.va, 3));
    fresh.store_wptr(8);
    fresh.doorbells.view().store_u32(fresh.slot, 8);
    client.wait_for_fault(&["kind=doorbell", "only 32 bits"]);
    pause();
    assert_eq!(target.view().load_u32(0), 2);
}

#[test]
fn queue_owned_registers_are_noted() {
    let client = Client::open();
    let target = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    let mut stream = vec![0xC001_7600, 0x223, 0];
    stream.extend(fence(target.va, 1));
    queue.submit(&stream);
    wait_value(target.view(), 0, 1);
    client.wait_for_fault(&["kind=queue-register", "register=0x223"]);
}

#[test]
fn code_in_system_memory_runs_on_a_board_that_does_not_see_code_in_vram() {
    let planted = FaultInjection { planted: Some(PlantedFault::CodeNotVisible), ..FaultInjection::default() };
    let client = Client::open_injected(planted);
    let (seen, hidden) = (client.buffer(4096), code(&client, &STORE));
    seen.fill(&STORE);
    let data = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    let mut stream = dispatch(seen.va, data.va, 1);
    stream.extend(fence(data.va + 2048, 1));
    queue.submit(&stream);
    wait_value(data.view(), 2048, 1);
    assert_eq!((data.view().load_u32(124), client.text("faults")), (31 + 7, String::new()));
    queue.submit(&dispatch(hidden.va, data.va, 1));
    client.wait_for_fault(&["kind=wave", &format!("pc={:#x}", hidden.va)]);
}

#[test]
fn injected_misbehaviour_shows() {
    let dropped = FaultInjection { dropped_doorbell: Some(2), ..FaultInjection::default() };
    let client = Client::open_injected(dropped);
    let target = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&fence(target.va, 1));
    wait_value(target.view(), 0, 1);
    queue.submit(&fence(target.va, 2));
    pause();
    assert_eq!(target.view().load_u32(0), 1);
    queue.submit(&fence(target.va, 3));
    wait_value(target.view(), 0, 3);

    let delay = FaultInjection { doorbell_delay_us: 20_000, ..FaultInjection::default() };
    let client = Client::open_injected(delay);
    let target = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    let start = std::time::Instant::now();
    queue.submit(&fence(target.va, 1));
    wait_value(target.view(), 0, 1);
    assert!(start.elapsed().as_micros() >= 20_000);

    let stale = FaultInjection { read_pointer_block_dwords: Some(512), ..FaultInjection::default() };
    let client = Client::open_injected(stale);
    let target = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&fence(target.va, 1));
    wait_value(target.view(), 0, 1);
    pause();
    assert_eq!(queue.rptr(), 0);
    queue.submit(&[0xFFFF_1000; 600]);
    eventually("a coarse read pointer", || (queue.rptr() == 512).then_some(()));
}
