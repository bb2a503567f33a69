//! Machine code launched by packets: order, instruction cache, faults, hangs, several queues. The words are those
//! that llvm-mc 19 assembles from the text next to them.

use crate::client::*;
use zrt_kmd::Errno;
use zrt_vgpu::{Config, VirtualGpu};

/// One dword per work-item: `buffer[i] = i + 7`, 32 work-items in a group.
///
/// ```text
/// v_and_b32 v0, 0x3ff, v0
/// s_lshl_b32 s2, ttmp9, 5
/// v_add_nc_u32 v0, s2, v0
/// v_lshlrev_b32 v1, 2, v0
/// v_add_nc_u32 v0, 7, v0
/// global_store_b32 v1, v0, s[0:1]
/// s_endpgm
/// ```
pub const STORE: [u32; 10] = [
    0x3600_00FF,
    0x0000_03FF,
    0x8402_8575,
    0x4A00_0002,
    0x3002_0082,
    0x4A00_0087,
    0xEE06_8000,
    0,
    1,
    0xBFB0_0000,
];

/// `buffer[i] = 3 * buffer[i] + 1`: as above with `global_load_b32 v2, v1, s[0:1]`, `s_wait_loadcnt 0`,
/// `v_mad_u32_u24 v2, v2, 3, 1`, `global_store_b32 v1, v2, s[0:1]`.
pub const TRIPLE: [u32; 15] = [
    0x3600_00FF,
    0x0000_03FF,
    0x8402_8575,
    0x4A00_0002,
    0x3002_0082,
    0xEE05_0000,
    2,
    1,
    0xBFC0_0000,
    0xD60B_0002,
    0x0205_0702,
    0xEE06_8000,
    0x0100_0000,
    1,
    0xBFB0_0000,
];

/// `again: s_sleep 1; s_branch again`.
pub const FOREVER: [u32; 2] = [0xBF83_0001, 0xBFA0_FFFE];

/// Polls `buffer[0]` with `global_load_b32 v1, v0, s[0:1] scope:SCOPE_SYS` until it is not 0, then stores 5 to
/// `buffer[1]`.
const POLL: [u32; 12] = [
    0x7E00_0280,
    0x7E04_0285,
    0xEE05_0000,
    0x000C_0001,
    0,
    0xBFC0_0000,
    0x7C9A_0280,
    0xBFA3_FFFA,
    0xEE06_8000,
    0x0100_0000,
    0x0000_0400,
    0xBFB0_0000,
];

pub fn code(client: &Client, words: &[u32]) -> Buffer {
    let buffer = client.buffer_with(4096, VRAM | PUBLIC | EXECUTABLE | WRITABLE, true);
    buffer.fill(words);
    buffer
}

/// Registers and packet of a dispatch of `groups` groups of 32 with the buffer's address in s[0:1]: 8 VGPRs,
/// denormals kept, 2 user SGPRs, TGID_X.
pub fn dispatch(code_va: u64, buffer_va: u64, groups: u32) -> Vec<u32> {
    let mut stream = vec![0xC002_7600, 0x20C, (code_va >> 8) as u32, (code_va >> 40) as u32];
    stream.extend([0xC002_7600, 0x212, 0x600F_0000, 0x84]);
    stream.extend([0xC001_7600, 0x228, 0]);
    stream.extend([0xC002_7600, 0x240, buffer_va as u32, (buffer_va >> 32) as u32]);
    stream.extend([0xC003_7600, 0x207, 32, 1, 1]);
    stream.extend([0xC003_1500, groups, 1, 1, 0x8005]);
    stream
}

const PARTIAL_FLUSH: [u32; 2] = [0xC000_4600, 0x407];
/// ACQUIRE_MEM with the kernel's GCR value: instruction, scalar and vector caches, GL2.
const ACQUIRE: [u32; 8] = [0xC006_5800, 0, !0, 0xFF_FFFF, 0, 0, 0xA, 0xC3B1];

#[test]
fn dispatches_run_in_the_order_that_flushes_give_them() {
    let client = Client::open();
    let (store, triple) = (code(&client, &STORE), code(&client, &TRIPLE));
    let data = client.buffer_with(65_536, VRAM | PUBLIC | WRITABLE, true);
    let signal = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    let groups = 512;
    // A recorded indirect buffer, replayed: the host only rings the doorbell.
    let recorded = client.buffer(4096);
    let mut stream = dispatch(store.va, data.va, groups);
    for _ in 0..3 {
        stream.extend(PARTIAL_FLUSH);
        stream.extend(dispatch(triple.va, data.va, groups));
    }
    stream.iter().enumerate().for_each(|(index, dword)| recorded.view().store_u32(index * 4, *dword));
    for round in 1..=20 {
        data.view().fill(0, 65_536, 0);
        let mut submission = indirect(recorded.va, stream.len() as u32).to_vec();
        submission.extend(fence(signal.va, round));
        queue.submit(&submission);
        wait_value(signal.view(), 0, round);
        for index in 0..groups * 32 {
            // ((x·3+1)·3+1)·3+1
            assert_eq!(data.view().load_u32(index as usize * 4), (index + 7) * 27 + 13, "{round} {index}");
        }
    }
    assert_eq!((client.counter("dispatches"), client.counter("submissions")), (80, 20));
    assert_eq!((client.counter("doorbells"), client.counter("waves")), (20, 80 * 512));
    // 7 instructions in the first kernel, 9 in the other.
    assert_eq!(client.counter("wave_instructions"), 20 * 512 * (7 + 3 * 9));
    assert_eq!(client.text("faults"), "");
}

#[test]
fn changed_code_is_seen_after_an_acquire() {
    let client = Client::open();
    let store = code(&client, &STORE);
    let data = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    let mut run = |round: u32| {
        let mut stream = ACQUIRE.to_vec();
        stream.extend(dispatch(store.va, data.va, 1));
        stream.extend(fence(data.va + 2048, round));
        queue.submit(&stream);
        wait_value(data.view(), 2048, round);
        data.view().load_u32(31 * 4)
    };
    assert_eq!(run(1), 38);
    // v_add_nc_u32 v0, 9, v0
    store.view().store_u32(5 * 4, 0x4A00_0089);
    assert_eq!(run(2), 40);
}

#[test]
fn a_bad_address_in_a_wave_is_told_with_its_place() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let store = code(&client, &STORE);
    let data = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    // 32 groups fit into the page; the 33rd goes past it. Nothing is mapped after it: the buffer has its own
    // reservation.
    let mut stream = dispatch(store.va, data.va + 4096 - 128, 2);
    stream.extend(fence(data.va, 1));
    queue.submit(&stream);
    let (result, entry) = client.wait_events(&[memory], true, 5000).unwrap();
    assert_eq!(result, 0);
    assert_eq!([0, 4, 8].map(|at| get32(&entry, at)), [1, 0, 0]);
    let va = get64(&entry, 16);
    assert_eq!((va, get32(&entry, 24)), (data.va + 4096, client.gpu_id));
    let line =
        client.wait_for_fault(&["kind=page-fault", "packet=DISPATCH_DIRECT", "workgroup=1,0,0", "wave=0"]);
    let pc = format!("code={:#x} pc={:#x}", store.va, store.va + 24);
    assert!(line.contains(&pc) && line.contains("lane=0") && line.contains("queue=0"), "{line}");
    pause();
    assert_ne!(data.view().load_u32(0), 1, "the fence after a fault never comes");
    queue.destroy(&client).unwrap();
}

#[test]
fn code_must_be_mapped_executable() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let data = client.buffer_with(4096, GTT | WRITABLE, true);
    data.view().store_u32(0, 0xBFB0_0000);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&dispatch(data.va, data.va, 1));
    let (_, entry) = client.wait_events(&[memory], true, 5000).unwrap();
    assert_eq!([0, 4, 8].map(|at| get32(&entry, at)), [0, 0, 1]);
    assert_eq!(get64(&entry, 16), data.va);
}

/// INST_PREF_SIZE is in lines of 128 bytes: 32 of them are a page.
#[test]
fn the_prefetch_of_instructions_must_stay_inside_the_mapping() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let store = code(&client, &STORE);
    let data = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    // The register is written again after the helper's zero and before the launch, which is the last five dwords.
    let with_lines = |lines: u32| {
        let mut stream = dispatch(store.va, data.va, 1);
        let launch = stream.split_off(stream.len() - 5);
        stream.extend([0xC001_7600, 0x228, lines << 4]);
        stream.extend(launch);
        stream
    };
    let mut stream = with_lines(32);
    stream.extend(fence(data.va + 2048, 1));
    queue.submit(&stream);
    wait_value(data.view(), 2048, 1);
    assert_eq!((data.view().load_u32(0), client.text("faults")), (7, String::new()));
    queue.submit(&with_lines(33));
    let (_, entry) = client.wait_events(&[memory], true, 5000).unwrap();
    assert_eq!(get64(&entry, 16), store.va + 4096);
    client.wait_for_fault(&[
        "kind=page-fault",
        "packet=DISPATCH_DIRECT",
        &format!("va={:#x}", store.va + 4096),
    ]);
}

#[test]
fn an_unknown_instruction_hangs_the_queue_and_its_end_resets_the_device() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let hardware = client.create_event(0, 3, false).unwrap();
    let mut words = STORE;
    words[4] = 0xFFFF_FFFF;
    let (broken, store) = (code(&client, &words), code(&client, &STORE));
    let data = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    let mut other = Queue::new(&client, 4096);
    let mut stream = dispatch(broken.va, data.va, 1);
    stream.extend(fence(data.va + 2048, 1));
    queue.submit(&stream);
    let line = client.wait_for_fault(&["kind=wave", "queue=0", "workgroup=0,0,0 wave=0"]);
    assert!(line.contains(&format!("pc={:#x}", broken.va + 16)), "{line}");
    // No event; the other queue continues.
    assert_eq!(client.wait_events(&[memory, hardware], false, 5).unwrap().0, 1);
    let mut stream = dispatch(store.va, data.va, 1);
    stream.extend(fence(data.va + 1024, 2));
    other.submit(&stream);
    wait_value(data.view(), 1024, 2);
    assert_eq!(data.view().load_u32(2048), 0);
    // Its waves do not drain: slow, ETIME, and a reset of everything.
    let start = std::time::Instant::now();
    assert_eq!(client.destroy_queue(queue.id), Err(Errno::ETIME));
    assert!(start.elapsed().as_millis() >= 100);
    let (result, entry) = client.wait_events(&[hardware], true, 5000).unwrap();
    // reset_type, reset_cause, memory_lost, gpu_id.
    assert_eq!((result, [0, 4, 8, 12].map(|at| get32(&entry, at))), (0, [0, 0, 1, client.gpu_id]));
    let mut losses = [0; 4];
    client.info(0x1F, &[], &mut losses).unwrap();
    assert_eq!(losses, [1, 0, 0, 0], "times that memory was lost");
    other.submit(&fence(data.va + 1024, 3));
    pause();
    assert_eq!(data.view().load_u32(1024), 2);
    // The process is no longer served, not even through new files, until another takes its place.
    let fresh = Client::on(client.gpu.clone());
    for files in [&client, &fresh] {
        assert_eq!(files.acquire(client.render, client.gpu_id), Err(Errno::EIO));
        assert_eq!(files.alloc(0x10_0000_0000, 4096, RING_FLAGS), Err(Errno::EIO));
        assert_eq!(files.map(data.handle), Err(Errno::EIO));
        assert_eq!(files.unmap(data.handle), Err(Errno::EIO));
        assert_eq!(files.free(data.handle), Err(Errno::EIO));
        assert_eq!(files.create_event(0, 8, false), Err(Errno::EIO));
        assert_eq!(files.create_queue(&queue.fields), Err(Errno::EIO));
        assert_eq!(files.destroy_queue(other.id), Err(Errno::EIO));
        assert_eq!(files.wait_events(&[hardware], true, 0).unwrap().0, 0, "the reset is still told");
    }
    client.gpu.replace_process();
    let again = Client::on(client.gpu.clone());
    again.acquire(again.render, again.gpu_id).unwrap();
    again.alloc(0x10_0000_0000, 4096, RING_FLAGS).unwrap();
}

#[test]
fn a_wave_that_has_stopped_is_listed_with_its_place() {
    let client = Client::open();
    assert_eq!(client.text("waves"), "");
    // s_nop 0; s_trap 1
    let kernel = code(&client, &[0xBF80_0000, 0xBF90_0001]);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&dispatch(kernel.va, kernel.va, 1));
    client.wait_for_fault(&["kind=wave", "s_trap 1 without a trap handler"]);
    let expected = format!(
        concat!(
            r#"{{"workgroup":[0,0,0],"wave":0,"state":"halted","pc":{pc},"code_va":{code},"#,
            r#""instruction":"s_trap 1","loads":[]}}"#,
        ),
        pc = kernel.va + 4,
        code = kernel.va,
    );
    // The fault is told before the wave's group is put aside.
    let what = format!("the list being {expected}");
    eventually(&what, || (client.text("waves").trim_end() == expected).then_some(()));
}

#[test]
fn an_endless_wave_holds_up_no_other_queue_and_is_preempted_at_the_end() {
    let client = Client::open();
    let (forever, store) = (code(&client, &FOREVER), code(&client, &STORE));
    let data = client.buffer(65_536);
    let mut endless = Queue::new(&client, 4096);
    let mut other = Queue::new(&client, 4096);
    let mut stream = dispatch(forever.va, data.va, 4);
    stream.extend(fence(data.va + 61_440, 1));
    endless.submit(&stream);
    for round in 1..10 {
        let mut stream = dispatch(store.va, data.va, 64);
        stream.extend(fence(data.va + 61_444, round));
        other.submit(&stream);
        wait_value(data.view(), 61_444, round);
    }
    assert_eq!(data.view().load_u32(61_440), 0);
    endless.destroy(&client).unwrap();
    other.submit(&fence(data.va + 61_444, 100));
    wait_value(data.view(), 61_444, 100);
    assert_eq!(client.text("faults"), "");
}

#[test]
fn a_resident_wave_talks_with_the_host() {
    let client = Client::open();
    let poll = code(&client, &POLL);
    let data = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    let mut stream = dispatch(poll.va, data.va, 1);
    stream.extend(fence(data.va + 8, 1));
    queue.submit(&stream);
    pause();
    assert_eq!((data.view().load_u32(4), data.view().load_u32(8)), (0, 0));
    data.view().store_u32_release(0, 1);
    wait_value(data.view(), 8, 1);
    assert_eq!(data.view().load_u32(4), 5);
}

#[test]
fn the_deterministic_scheduler_runs_the_same_packets() {
    let config = Config { scheduler: zrt_vgpu::config::Scheduler::Deterministic, ..Config::default() };
    let client = Client::on(VirtualGpu::new(config).unwrap());
    client.acquire(client.render, client.gpu_id).unwrap();
    let store = code(&client, &STORE);
    let data = client.buffer(65_536);
    let mut queue = Queue::new(&client, 4096);
    // No fence after the first: it still runs.
    queue.submit(&dispatch(store.va, data.va, 100));
    eventually("the last group", || (data.view().load_u32(3199 * 4) == 3206).then_some(()));
    let mut stream = dispatch(store.va, data.va + 16_384, 1);
    stream.extend(fence(data.va + 61_440, 1));
    queue.submit(&stream);
    wait_value(data.view(), 61_440, 1);
    assert_eq!(data.view().load_u32(16_384), 7);
}

#[test]
fn a_clear_wave32_bit_launches_waves_of_64() {
    let client = Client::open();
    let store = code(&client, &STORE);
    let data = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    let mut stream = dispatch(store.va, data.va, 1);
    // Groups of 64 in one wave: `STORE` places groups 32 apart. RSRC1: one block of 4 vector registers.
    let last = stream.len() - 1;
    (stream[last - 7], stream[last]) = (64, 5);
    stream.extend(fence(data.va + 2048, 1));
    queue.submit(&stream);
    wait_value(data.view(), 2048, 1);
    for index in 0..64 {
        assert_eq!(data.view().load_u32(4 * index), index as u32 + 7);
    }
    assert_eq!(data.view().load_u32(256), 0);
}

#[test]
fn what_cannot_be_launched_stops_the_queue() {
    for (message, rsrc2, control) in [
        ("17 user SGPRs", 17 << 1, 0x8005),
        ("66048 bytes of LDS", 129 << 15, 0x8005),
        ("dynamic vector registers", 1 << 6, 0x8005),
    ] {
        let client = Client::open();
        let store = code(&client, &STORE);
        let mut queue = Queue::new(&client, 4096);
        let mut stream = dispatch(store.va, store.va, 1);
        stream[7] = rsrc2;
        *stream.last_mut().unwrap() = control;
        queue.submit(&stream);
        client.wait_for_fault(&["kind=launch", "packet=DISPATCH_DIRECT", message]);
        queue.destroy(&client).unwrap();
    }
}

#[test]
fn unmapping_under_a_running_wave_is_a_fault_and_not_a_crash() {
    let client = Client::open();
    let memory = client.create_event(0, 8, false).unwrap();
    let poll = code(&client, &POLL);
    let data = client.buffer(4096);
    let mut queue = Queue::new(&client, 4096);
    queue.submit(&dispatch(poll.va, data.va, 8));
    pause();
    let va = data.va;
    client.release(data);
    let (result, entry) = client.wait_events(&[memory], true, 5000).unwrap();
    assert_eq!((result, get64(&entry, 16)), (0, va));
    queue.destroy(&client).unwrap();
}
