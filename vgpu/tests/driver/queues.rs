//! CREATE, UPDATE, DESTROY_QUEUE, CU masks: hardware reference §2.6, §2.8.

use crate::client::*;
use zrt_kmd::syscalls::{Nested, ioctl_bytes};
use zrt_kmd::{Errno, Protection, Syscalls};
use zrt_vgpu::config::KernelRelease;

#[test]
fn create_checks_every_row_of_the_table() {
    let client = Client::open_under(KernelRelease::Newest);
    let (good, _buffers) = Queue::fields(&client, 8192);
    let large_page = client.buffer(8192);
    let eop_two_pages = client.private(8192);
    let cwsr_short = client.private(CWSR_BUFFER - 4096);
    let cwsr_long = client.private(CWSR_BUFFER + 4096);
    let bad = 0xFFFF_8000_0000_0000;
    let check = |expected: Errno, what: &str, change: &dyn Fn(&mut CreateQueue)| {
        let mut fields = good;
        change(&mut fields);
        assert_eq!(client.create_queue(&fields), Err(expected), "{what}");
    };
    let invalid = |what: &str, change: &dyn Fn(&mut CreateQueue)| check(Errno::EINVAL, what, change);
    invalid("percentage", &|q| q.percentage = 101);
    invalid("priority", &|q| q.priority = 16);
    invalid("gpu", &|q| q.gpu_id = 5);
    invalid("ring size 3·2^k", &|q| q.ring_size = 3 << 11);
    check(Errno::EFAULT, "ring pointer", &|q| q.ring = bad);
    check(Errno::EFAULT, "rptr pointer", &|q| q.rptr = bad);
    check(Errno::EFAULT, "wptr pointer", &|q| q.wptr = bad);
    check(Errno::EFAULT, "eop pointer", &|q| q.eop = bad);
    check(Errno::EFAULT, "cwsr pointer", &|q| q.cwsr = bad);
    check(Errno::ENOTSUPP, "type", &|q| q.kind = 5);
    check(Errno::ENOTSUPP, "AQL", &|q| q.kind = 2);
    invalid("wptr unmapped", &|q| q.wptr = 0x30_0000_0000);
    invalid("rptr in two pages", &|q| q.rptr = large_page.va);
    invalid("wptr in two pages", &|q| q.wptr = large_page.va + 8);
    invalid("wptr not on 8 bytes", &|q| q.wptr += 4);
    invalid("rptr not on 8 bytes", &|q| q.rptr += 2);
    invalid("ring larger than its size", &|q| q.ring_size = 4096);
    invalid("ring smaller than its size", &|q| q.ring_size = 16384);
    invalid("ring not at its mapping", &|q| q.ring += 4096);
    invalid("ring size 0", &|q| q.ring_size = 0);
    invalid("EOP of 8192", &|q| (q.eop, q.eop_size) = (eop_two_pages.va, 8192));
    invalid("EOP mapping of 8192", &|q| q.eop = eop_two_pages.va);
    invalid("EOP of 256", &|q| q.eop_size = 256);
    invalid("ctl stack short", &|q| q.ctl_stack -= 4096);
    invalid("ctl stack long", &|q| q.ctl_stack += 4096);
    invalid("ctx size short", &|q| q.cwsr_size -= 4096);
    invalid("CWSR object short", &|q| q.cwsr = cwsr_short.va);
    invalid("CWSR object long", &|q| q.cwsr = cwsr_long.va);
    invalid("no CWSR", &|q| q.cwsr = 0);
    // Values are checked before the device is looked up.
    check(Errno::EFAULT, "order", &|q| (q.ring, q.gpu_id) = (bad, 5));
    check(Errno::ENOTSUPP, "order of type", &|q| (q.kind, q.gpu_id) = (9, 5));
    let (id, doorbell) = client.create_queue(&good).unwrap();
    assert_eq!(doorbell >> 62, 3);
    assert_eq!(doorbell >> 46 & 0xFFFF, client.gpu_id as u64);
    assert_eq!(doorbell & 0x3FFF_FFFF_E007, 0);
    client.destroy_queue(id).unwrap();
    // Creating a queue without an EOP buffer is allowed.
    let (id, _) = client.create_queue(&CreateQueue { eop: 0, eop_size: 0, ..good }).unwrap();
    client.destroy_queue(id).unwrap();
    assert_eq!(client.text("faults"), "");
}

#[test]
fn what_a_queue_names_stays_mapped() {
    let client = Client::open_under(KernelRelease::V6_12);
    let queue = Queue::new(&client, 4096);
    let handles = [&queue.ring, &queue.wptr, &queue.rptr, &queue.cwsr, queue.eop.as_ref().unwrap()];
    for handle in handles.map(|buffer| buffer.handle) {
        assert_eq!(client.unmap(handle), Err(Errno::EBUSY));
        assert_eq!(client.free(handle), Err(Errno::EBUSY));
    }
    assert_eq!(client.destroy_queue(queue.id + 1), Err(Errno::EINVAL));
    let id = queue.id;
    queue.destroy(&client).unwrap();
    assert_eq!(client.destroy_queue(id), Err(Errno::EINVAL));
    assert_eq!(client.text("objects"), "");
}

#[test]
fn queues_are_limited_and_share_nothing_but_the_slice() {
    let client = Client::open();
    let (fields, _buffers) = Queue::fields(&client, 4096);
    let mut doorbells = std::collections::BTreeSet::new();
    let mut ids = Vec::new();
    for _ in 0..127 {
        let (id, doorbell) = client.create_queue(&fields).unwrap();
        assert!(doorbells.insert(doorbell));
        ids.push(id);
    }
    assert_eq!(client.create_queue(&fields), Err(Errno::ENOSPC));
    for id in ids {
        client.destroy_queue(id).unwrap();
    }
    client.create_queue(&fields).unwrap();
}

fn update(client: &Client, id: u32, ring: u64, size: u32, percentage: u32) -> Result<i32, Errno> {
    update_with(client, id, ring, size, percentage, 7)
}

fn update_with(
    client: &Client,
    id: u32,
    ring: u64,
    size: u32,
    percentage: u32,
    priority: u32,
) -> Result<i32, Errno> {
    let mut bytes = [0; 24];
    put64(&mut bytes, 0, ring);
    for (at, value) in [(8, id), (12, size), (16, percentage), (20, priority)] {
        put32(&mut bytes, at, value);
    }
    client.ioctl(0x4018_4B07, &mut bytes)
}

#[test]
fn a_disabled_queue_waits_and_an_enabled_one_goes_on() {
    let client = Client::open_under(KernelRelease::Newest);
    let mut queue = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    let (ring, size) = (queue.ring.va, 4096);
    assert_eq!(update(&client, 99, ring, size, 100), Err(Errno::EFAULT));
    assert_eq!(update(&client, queue.id, ring, size, 101), Err(Errno::EINVAL));
    assert_eq!(update(&client, queue.id, ring, 5000, 100), Err(Errno::EINVAL));
    assert_eq!(update(&client, queue.id, ring, 8192, 100), Err(Errno::EFAULT));
    for (ring_off, size_off, percentage) in [(0, 0, 100), (ring, size, 0)] {
        update(&client, queue.id, ring_off, size_off, percentage).unwrap();
        target.view().store_u32(0, 0);
        queue.submit(&fence(target.va, 9));
        pause();
        assert_eq!(target.view().load_u32(0), 0);
        update(&client, queue.id, ring, size, 100).unwrap();
        wait_value(target.view(), 0, 9);
    }
}

/// Queues are served in turns: when two fences of one queue have passed, every other queue has had a turn.
#[test]
fn a_queue_that_is_made_with_a_percentage_of_0_waits_until_it_gets_a_higher_one() {
    let client = Client::open_under(KernelRelease::Newest);
    let (fields, buffers) = Queue::fields(&client, 4096);
    let mut queue = Queue::from_parts(&client, CreateQueue { percentage: 0, ..fields }, buffers);
    let mut other = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    queue.submit(&fence(target.va, 9));
    for round in 1..3 {
        other.submit(&fence(target.va + 8, round));
        wait_value(target.view(), 8, round);
    }
    assert_eq!(target.view().load_u32(0), 0);
    assert_eq!(update(&client, queue.id, queue.ring.va, 4096, 1), Ok(0));
    wait_value(target.view(), 0, 9);
}

#[test]
fn cu_masks_come_in_pairs() {
    let client = Client::open();
    let queue = Queue::new(&client, 4096);
    let set = |id: u32, bit_count: u32, mask: u64| {
        let mut bytes = [0; 16];
        put32(&mut bytes, 0, id);
        put32(&mut bytes, 4, bit_count);
        let mut words = mask.to_le_bytes();
        let nested = &mut [Nested { field_offset: 8, bytes: &mut words }];
        ioctl_bytes(&*client.gpu, client.kfd, 0x4010_4B1A, &mut bytes, nested)
    };
    assert_eq!(set(queue.id, 0, 0), Err(Errno::EINVAL));
    assert_eq!(set(queue.id, 33, 0), Err(Errno::EINVAL));
    assert_eq!(set(queue.id, 64, 0x1), Err(Errno::EINVAL));
    assert_eq!(set(queue.id, 64, 0x3 << 32), Ok(0));
    assert_eq!(set(queue.id + 1, 64, 3), Err(Errno::EFAULT));
    let mut bytes = [0; 16];
    put32(&mut bytes, 4, 32);
    put64(&mut bytes, 8, 8);
    assert_eq!(client.ioctl(0x4010_4B1A, &mut bytes), Err(Errno::EFAULT));
}

#[test]
fn a_slot_used_again_does_not_fire() {
    // Hardware reference §6.4.
    let client = Client::open();
    let mut first = Queue::new(&client, 4096);
    let target = client.buffer(4096);
    first.submit(&fence(target.va, 1));
    wait_value(target.view(), 0, 1);
    let slice = 3 << 62 | (client.gpu_id as u64) << 46;
    let doorbells = client.gpu.map(client.kfd, slice, 8192, Protection::ReadWrite, None).unwrap();
    let slot = first.slot;
    first.destroy(&client).unwrap();
    // A late store by the old owner.
    doorbells.view().store_u64(slot, 4);
    let (fields, buffers) = Queue::fields(&client, 4096);
    buffers[0].view().store_u32(0, 0xFFFF_1000);
    let second = Queue::from_parts(&client, fields, buffers);
    assert_eq!(second.slot, slot);
    assert_eq!(doorbells.view().load_u64(slot), u64::MAX);
    pause();
    assert_eq!((second.rptr(), client.text("faults").as_str()), (0, ""));
}

/// Values at the edge of what CREATE and UPDATE accept before they look anything up.
#[test]
fn limits_of_the_values_of_a_queue() {
    let client = Client::open_under(KernelRelease::Newest);
    let (good, _buffers) = Queue::fields(&client, 4096);
    // The lower byte is the percentage, the next the XCC; 15 is the highest priority.
    for (percentage, priority) in [(0, 0), (100, 15), (0x164, 7), (0xFF00, 7)] {
        let (id, _) = client.create_queue(&CreateQueue { percentage, priority, ..good }).unwrap();
        assert_eq!(update_with(&client, id, good.ring, 4096, percentage, priority), Ok(0));
        client.destroy_queue(id).unwrap();
    }
    let (id, _) = client.create_queue(&good).unwrap();
    for (percentage, priority) in [(101, 7), (0x165, 7), (0xFF, 7), (100, 16), (100, u32::MAX)] {
        let refused = Err(Errno::EINVAL);
        assert_eq!(client.create_queue(&CreateQueue { percentage, priority, ..good }).map(|_| 0), refused);
        assert_eq!(update_with(&client, id, good.ring, 4096, percentage, priority), refused);
    }
    // The last user address is below 2^47 - 4096. Eight bytes of the ring must be accessible, four of the others;
    // those that are have nothing mapped there.
    let end: u64 = (1 << 47) - 4096;
    let create = |change: &dyn Fn(&mut CreateQueue)| {
        let mut fields = good;
        change(&mut fields);
        client.create_queue(&fields).unwrap_err()
    };
    for (distance, expected) in [(8, Errno::EINVAL), (7, Errno::EFAULT), (0, Errno::EFAULT)] {
        assert_eq!(create(&|queue| queue.ring = end - distance), expected, "ring {distance}");
    }
    for (distance, expected) in [(4, Errno::EINVAL), (3, Errno::EFAULT), (0, Errno::EFAULT)] {
        assert_eq!(create(&|queue| queue.wptr = end - distance), expected, "wptr {distance}");
        assert_eq!(create(&|queue| queue.rptr = end - distance), expected, "rptr {distance}");
        assert_eq!(create(&|queue| queue.eop = end - distance), expected, "eop {distance}");
        assert_eq!(create(&|queue| queue.cwsr = end - distance), expected, "cwsr {distance}");
    }
    for beyond in [1 << 47, u64::MAX - 7, u64::MAX] {
        assert_eq!(create(&|queue| queue.ring = beyond), Errno::EFAULT, "{beyond:#x}");
        assert_eq!(update(&client, id, beyond, 4096, 100), Err(Errno::EFAULT), "{beyond:#x}");
    }
}

#[test]
fn doorbells_are_eight_bytes_apart_and_the_lowest_is_taken() {
    let client = Client::open();
    let (fields, _buffers) = Queue::fields(&client, 4096);
    let create = || client.create_queue(&fields).map(|(id, doorbell)| (id, doorbell & 0x1FFF));
    assert_eq!([create(), create(), create()], [Ok((0, 0)), Ok((1, 8)), Ok((2, 16))]);
    client.destroy_queue(1).unwrap();
    assert_eq!([create(), create()], [Ok((1, 8)), Ok((3, 24))]);
}

#[test]
fn memory_that_two_queues_name_stays_mapped_until_both_are_gone() {
    let client = Client::open_under(KernelRelease::V6_12);
    let (fields, buffers) = Queue::fields(&client, 4096);
    let [first, second] = [(); 2].map(|()| client.create_queue(&fields).unwrap().0);
    let unmap = || buffers.each_ref().map(|buffer| client.unmap(buffer.handle));
    client.destroy_queue(first).unwrap();
    assert_eq!(unmap(), [Err(Errno::EBUSY); 5]);
    client.destroy_queue(second).unwrap();
    assert_eq!(unmap(), [Ok(1); 5]);
}

#[test]
fn a_queue_that_gets_another_ring_holds_that_one() {
    let client = Client::open_under(KernelRelease::Newest);
    let (fields, buffers) = Queue::fields(&client, 4096);
    let (id, _) = client.create_queue(&fields).unwrap();
    let (old, other, larger) = (&buffers[0], client.buffer(4096), client.buffer(8192));
    let refused = Err(Errno::EFAULT);
    for (ring, size) in [
        (other.va + 256, 4096),
        (other.va, 8192),
        (larger.va, 4096),
        (larger.va + 4096, 4096),
        (0x30_0000_0000, 4096),
    ] {
        assert_eq!(update(&client, id, ring, size, 100), refused, "{ring:#x} {size}");
    }
    let held = || [old, &other, &larger].map(|buffer| client.unmap(buffer.handle) == Err(Errno::EBUSY));
    let map_all = || {
        for buffer in [old, &other, &larger] {
            // Those that are held are mapped already.
            let _ = client.map(buffer.handle);
        }
    };
    assert_eq!(held(), [true, false, false]);
    map_all();
    // The same ring again, one without address, one without length: nothing changes hands.
    for (ring, size) in [(old.va, 4096), (0, 4096), (old.va, 0)] {
        assert_eq!(update(&client, id, ring, size, 100), Ok(0));
        assert_eq!(held(), [true, false, false]);
        map_all();
    }
    assert_eq!(update(&client, id, larger.va, 8192, 100), Ok(0));
    assert_eq!(held(), [false, false, true]);
    map_all();
    assert_eq!(update(&client, id, other.va, 4096, 100), Ok(0));
    assert_eq!(held(), [false, true, false]);
    client.destroy_queue(id).unwrap();
    assert_eq!(client.unmap(other.handle), Ok(1));
    // Everything else that it held is free too.
    let left = buffers[1..].iter().map(|buffer| client.unmap(buffer.handle)).collect::<Vec<_>>();
    assert_eq!(left, [Ok(1); 4]);
    // Before 6.12 nothing is looked up.
    let client = Client::open_under(KernelRelease::V6_8);
    let queue = Queue::new(&client, 4096);
    assert_eq!(update(&client, queue.id, 0x30_0000_0000, 8192, 0), Ok(0));
}

#[test]
fn a_cu_mask_may_not_split_a_pair_in_its_first_1024_bits() {
    let client = Client::open();
    let queue = Queue::new(&client, 4096);
    let set = |mask: &[u32]| {
        let mut bytes = [0; 16];
        put32(&mut bytes, 0, queue.id);
        put32(&mut bytes, 4, mask.len() as u32 * 32);
        let mut words: Vec<u8> = mask.iter().flat_map(|word| word.to_le_bytes()).collect();
        let nested = &mut [Nested { field_offset: 8, bytes: &mut words }];
        ioctl_bytes(&*client.gpu, client.kfd, 0x4010_4B1A, &mut bytes, nested)
    };
    for whole in [0, 0x3, 0xC, 0xC000_0000, 0x3C3C_3C3C, u32::MAX] {
        assert_eq!(set(&[whole]), Ok(0), "{whole:#x}");
    }
    for split in [0x1, 0x2, 0x6, 0x4, 0x8000_0000, 0x4000_0000, 0x7FFF_FFFF, 0x5555_5555, 0xAAAA_AAAA] {
        assert_eq!(set(&[split]), Err(Errno::EINVAL), "{split:#x}");
        assert_eq!(set(&[3, split]), Err(Errno::EINVAL), "{split:#x}");
    }
    let mut long = [3; 33];
    long[32] = 1;
    assert_eq!(set(&long), Ok(0));
    long[31] = 1;
    assert_eq!(set(&long), Err(Errno::EINVAL));
}
