//! The rules that differ between kernels, each in every column of the table.

use crate::client::*;
use zrt_kmd::syscalls::{Nested, ioctl_bytes};
use zrt_kmd::{Errno, Syscalls};
use zrt_vgpu::Config;
use zrt_vgpu::config::{KernelRelease, VramFill};

/// The results of `look` under 6.8, 6.12, 6.17 and the newest kernel.
fn columns<T: std::fmt::Debug>(look: impl Fn(&Client) -> T) -> [T; 4] {
    KernelRelease::ALL.map(|kernel| look(&Client::open_under(kernel)))
}

#[test]
fn versions_and_the_last_request() {
    let minor = columns(|client| {
        let mut bytes = [0; 8];
        client.ioctl(0x8008_4B01, &mut bytes).unwrap();
        get32(&bytes, 4)
    });
    assert_eq!(minor, [14, 17, 18, 23]);
    let drm = columns(|client| {
        let mut bytes = [0; 64];
        ioctl_bytes(&*client.gpu, client.render, 0xC040_6400, &mut bytes, &mut []).unwrap();
        (get32(&bytes, 0), get32(&bytes, 4))
    });
    assert_eq!(drm, [(3, 57), (3, 59), (3, 64), (3, 64)]);
    let (unknown, known) = (Err(Errno::ENOTTY), Err(Errno::EINVAL));
    assert_eq!(columns(|client| client.ioctl(0x4B27, &mut [])), [unknown, unknown, unknown, known]);
    assert_eq!(columns(|client| client.ioctl(0x4B29, &mut [])), [unknown; 4]);
}

#[test]
fn a_save_area_of_another_length() {
    let longer = columns(|client| {
        let (mut fields, _buffers) = Queue::fields(client, 4096);
        let area = client.private(CWSR_BUFFER + 4096);
        (fields.cwsr, fields.cwsr_size) = (area.va, CWSR_SIZE + 4096);
        client.create_queue(&fields).map(|_| ())
    });
    assert_eq!(longer, [Ok(()), Err(Errno::EINVAL), Err(Errno::EINVAL), Ok(())]);
    let shorter = columns(|client| {
        let (mut fields, _buffers) = Queue::fields(client, 4096);
        fields.cwsr_size -= 4096;
        client.create_queue(&fields).map(|_| ())
    });
    assert_eq!(shorter, [Ok(()), Err(Errno::EINVAL), Err(Errno::EINVAL), Err(Errno::EINVAL)]);
}

#[test]
fn buffers_that_are_not_exact() {
    let refused = Err(Errno::EINVAL);
    let ring = columns(|client| {
        let (mut fields, _buffers) = Queue::fields(client, 8192);
        fields.ring_size = 4096;
        client.create_queue(&fields).map(|_| ())
    });
    assert_eq!(ring, [Ok(()), refused, refused, refused]);
    // All of them look up the page of the write pointer.
    let pointer = columns(|client| {
        let (mut fields, _buffers) = Queue::fields(client, 4096);
        let pages = client.buffer(8192);
        fields.wptr = pages.va;
        client.create_queue(&fields).map(|_| ())
    });
    assert_eq!(pointer, [refused; 4]);
}

#[test]
fn memory_of_a_live_queue() {
    let busy = Err(Errno::EBUSY);
    let unmapped = columns(|client| {
        let queue = Queue::new(client, 4096);
        let handles = [&queue.ring, &queue.wptr, &queue.rptr, &queue.cwsr].map(|buffer| buffer.handle);
        handles.map(|handle| client.unmap(handle))
    });
    assert_eq!(unmapped, [[Ok(1); 4], [busy; 4], [busy; 4], [busy; 4]]);
}

#[test]
fn queues_run_under_every_kernel_with_the_request_of_either_header() {
    let ran = columns(|client| {
        let mut queue = Queue::new(client, 4096);
        let target = client.buffer(4096);
        queue.submit(&fence(target.va, 3));
        wait_value(target.view(), 0, 3);
        let bytes = &mut queue.fields.bytes()[..88];
        let older = client.ioctl(0xC058_4B02, bytes);
        older.and_then(|_| client.destroy_queue(get32(bytes, 52))).and_then(|_| queue.destroy(client))
    });
    assert_eq!(ran, [Ok(0); 4]);
}

#[test]
fn the_topology_names_the_save_area_only_where_the_kernel_does() {
    let told = columns(|client| {
        let path = "/sys/class/kfd/kfd/topology/nodes/1/properties";
        let text = String::from_utf8(client.gpu.read_file(path).unwrap()).unwrap();
        ["cwsr_size 30699520\n", "ctl_stack_size 28672\n"].map(|line| text.contains(line))
    });
    assert_eq!(told, [[false; 2], [false; 2], [false; 2], [true; 2]]);
}

#[test]
fn a_signal_page_without_room_for_all_slots() {
    let refused = Err(Errno::EINVAL);
    let made = columns(|client| {
        let page = client.buffer(4096);
        client.create_event(page.handle, 0, false)
    });
    assert_eq!(made, [Ok(1), Ok(1), Ok(1), refused]);
    // If it is accepted, it has only as many slots as fit; slot 0 belongs to the kernel.
    let client = Client::open_under(KernelRelease::V6_17);
    let page = client.buffer(4096);
    client.create_event(page.handle, 0, false).unwrap();
    let ids: Vec<_> = (0..511).map(|_| client.create_event(0, 0, false)).collect();
    assert_eq!(ids[..510].last(), Some(&Ok(511)));
    assert_eq!(ids[510], Err(Errno::ENOSPC));
    client.wait_for_fault(&["signal page of 4096 bytes"]);
}

#[test]
fn waits_for_more_events_than_there_can_be() {
    let waited = columns(|client| {
        let event = client.create_event(0, 0, false).unwrap();
        [4096, 4097, 74_899].map(|count: usize| {
            let mut entries = vec![0; count * 48];
            (0..count).for_each(|index| put32(&mut entries, index * 48 + 40, event));
            let mut bytes = [0; 24];
            put32(&mut bytes, 8, count as u32);
            let nested = &mut [Nested { field_offset: 0, bytes: &mut entries }];
            let answer = ioctl_bytes(&*client.gpu, client.kfd, 0xC018_4B0C, &mut bytes, nested);
            answer.map(|_| get32(&bytes, 20))
        })
    });
    let (timeout, refused) = (Ok(1), Err(Errno::ENOMEM));
    let before = [timeout, timeout, refused];
    assert_eq!(waited, [before, before, before, [timeout, refused, refused]]);
}

#[test]
fn vram_is_cleared_where_the_kernel_does_it_and_nobody_wants_a_pattern() {
    let first_dword = |vram_fill| {
        KernelRelease::ALL.map(|kernel| {
            let client = Client::open_with(Config { kernel: Some(kernel), vram_fill, ..Config::default() });
            client.acquire(client.render, client.gpu_id).unwrap();
            client.buffer_with(4096, VRAM | PUBLIC | WRITABLE, true).view().load_u32(0)
        })
    };
    const NAN: u32 = 0x7fc0_dead;
    assert_eq!(first_dword(Some(VramFill::AsKernel)), [NAN, NAN, NAN, 0]);
    assert_eq!(first_dword(Some(VramFill::Pattern(6))), [6; 4]);
}
