//! Heaps, flushes, copies, names of memory.

use super::seam::Seam;
use super::{
    END, ENDLESS, PATIENCE, board, container, load, one_dispatch, open, open_over, options, resources,
};
use crate::code::Code;
use crate::memory::Space;
use crate::{Attachment, CODE_BYTES_MAX, CodeLabel, Device, DeviceError, DeviceOptions, Heap};
use zrt_kmd::{MemoryKind, Topology};
use zrt_mem::{ByteLen, GpuVa};

/// What the prefetcher may run into: `s_code_end` (instruction set reference §4.2).
const CODE_END: [u8; 4] = [0, 0, 0x9f, 0xbf];

#[test]
fn heaps_lie_where_the_options_and_the_bar_say() {
    use MemoryKind::{Gtt, GttCached, Vram, VramPublic, VramShared};
    let heaps = [Heap::DeviceLocal, Heap::HostVisible, Heap::HostShared, Heap::Host, Heap::HostCached];
    for (large_bar, gtt_only, kinds) in [
        (true, false, [VramPublic, VramPublic, VramShared, Gtt, GttCached]),
        (false, false, [Vram, Gtt, Gtt, Gtt, GttCached]),
        (true, true, [Gtt, Gtt, Gtt, Gtt, GttCached]),
        (false, true, [Gtt, Gtt, Gtt, Gtt, GttCached]),
    ] {
        let mut device = open_over(board(large_bar), &DeviceOptions { gtt_only, ..options() });
        assert_eq!(device.has_visible_vram(), large_bar && !gtt_only);
        assert_eq!(device.available_vram().is_none(), gtt_only);
        for (heap, kind) in heaps.into_iter().zip(kinds) {
            let found = device.allocate(heap, ByteLen(4096), "some").unwrap().kind();
            assert_eq!(found, kind, "{heap}: large BAR {large_bar}, all in system memory {gtt_only}");
            assert_eq!(device.is_vram(heap), !matches!(kind, Gtt | GttCached), "{heap}");
        }
    }
}

#[test]
fn available_vram_is_what_allocations_leave() {
    let mut device = open(true);
    let before = device.available_vram().unwrap().0;
    assert!(before > 0 && before <= device.info().vram.0, "{before}");
    let _held = device.allocate(Heap::DeviceLocal, ByteLen(64 << 20), "held").unwrap();
    assert_eq!(before - device.available_vram().unwrap().0, 64 << 20);
}

#[test]
fn memory_has_the_names_that_were_given() {
    let mut device = open(true);
    let buffer = device.allocate(Heap::Host, ByteLen(5000), "five thousand").unwrap();
    let named = ("five thousand".to_owned(), buffer.va, ByteLen(5000));
    assert!(device.allocations().contains(&named));
    let place = GpuVa(buffer.va.0 + 0x10);
    assert_eq!(device.registry().describe(place).as_deref(), Some("five thousand+0x10"));
    drop(buffer);
    assert!(!device.allocations().contains(&named));
}

/// A store to the first dword of the remap page flushes the host data path (hardware reference §2.5); the value is 0.
#[test]
fn what_goes_through_the_bar_is_flushed() {
    const MARK: u32 = 0x5a5a_5a5a;
    let seam = Seam::new(("", ""));
    let mut device = open_over(seam.clone(), &options());
    let page = seam.remap_page();
    let flushes = |what: &mut dyn FnMut()| {
        page.store_u32(0, MARK);
        what();
        page.load_u32(0) == 0
    };
    assert!(!flushes(&mut || ()));
    assert!(flushes(&mut || device.flush()));
    let visible = device.allocate(Heap::HostVisible, ByteLen(4096), "visible").unwrap();
    let system = device.allocate(Heap::Host, ByteLen(4096), "system").unwrap();
    let mut byte = [0];
    assert!(flushes(&mut || device.upload(&visible, ByteLen(0), &[1]).unwrap()));
    assert!(flushes(&mut || device.download(&visible, ByteLen(0), &mut byte).unwrap()));
    assert!(!flushes(&mut || device.upload(&system, ByteLen(0), &[1]).unwrap()));
    assert!(!flushes(&mut || device.download(&system, ByteLen(0), &mut byte).unwrap()));
    let kernel = load(&mut device, "end", END);
    let mut recorder = Some(device.recorder(1).unwrap());
    recorder.as_mut().unwrap().dispatch(&kernel, visible.va, [1, 1, 1]).unwrap();
    assert!(flushes(&mut || drop(recorder.take().unwrap().finish().unwrap())), "a graph lies in VRAM");
}

/// Units of 16 bytes that are written in part are read first, which costs a submission.
#[test]
fn a_copy_through_the_queue_changes_the_bytes_asked_for_and_no_others() {
    let mut device = open(false);
    let hidden = device.allocate(Heap::DeviceLocal, ByteLen(128), "hidden").unwrap();
    let mut expected: Vec<u8> = (0..128).collect();
    let submissions = |device: &Device| device.counters().unwrap().submissions;
    let mut put = |device: &mut Device, start: usize, bytes: &[u8], cost: u64| {
        let before = submissions(device);
        device.upload(&hidden, ByteLen(start as u64), bytes).unwrap();
        assert_eq!(submissions(device) - before, cost, "{start} + {}", bytes.len());
        expected[start..start + bytes.len()].copy_from_slice(bytes);
        let before = submissions(device);
        let mut found = [0; 128];
        device.download(&hidden, ByteLen(0), &mut found).unwrap();
        assert_eq!(found[..], expected[..], "{start} + {}", bytes.len());
        assert_eq!(submissions(device) - before, 1);
    };
    let all: Vec<u8> = (0..128).collect();
    put(&mut device, 0, &all, 1);
    put(&mut device, 32, &[0xaa; 48], 1);
    put(&mut device, 33, &[0xbb; 15], 2);
    put(&mut device, 64, &[0xcc; 15], 2);
    put(&mut device, 3, &[0xdd; 50], 2);
    put(&mut device, 127, &[0xee], 2);
    let mut found = [0; 4];
    device.download(&hidden, ByteLen(2), &mut found).unwrap();
    assert_eq!(found, [2, 0xdd, 0xdd, 0xdd]);
}

#[test]
fn a_kernel_lies_in_memory_as_its_container_has_it() {
    let mut device = open(true);
    let mut code = vec![0; 256];
    code.extend(super::bytes_of(END));
    let parsed = zrt_isa::zrt::Kernel { entry: 256, ..container("late", &code) };
    let kernel = device.load_parsed_kernel(&parsed, Heap::DeviceLocal).unwrap();
    assert_eq!((kernel.name(), kernel.code_len()), ("late", ByteLen(260)));
    assert_eq!(kernel.entry(), GpuVa(kernel.code().va.0 + 256));
    assert_eq!(device.place(kernel.entry()).to_string(), "late+0x100");
    let mut found = vec![0; 896];
    assert_eq!(kernel.code().len.0, 896, "260 + 512, up to a multiple of 128");
    device.download(kernel.code(), ByteLen(0), &mut found).unwrap();
    assert_eq!(found[..260], code[..]);
    assert!(found[260..].chunks(4).all(|word| word == CODE_END));
}

#[test]
fn foreign_code_is_written_where_it_was_told_that_it_lies() {
    let mut device = open(true);
    let functions = [(0, "first"), (8, "second")];
    let label = CodeLabel { name: "image", functions: &functions, files: &[], lines: &[] };
    let mut told = GpuVa(0);
    let code = device.load_code(&label, ByteLen(12), |va| {
        told = va;
        vec![7; 8].into()
    });
    let code = code.unwrap();
    assert_eq!((code.va(), code.buffer().va, code.len()), (told, told, ByteLen(12)));
    assert!(told.0 != 0 && told.0 % 4096 == 0, "{told}");
    let mut found = vec![0; code.buffer().len.0 as usize];
    assert_eq!(found.len(), 640);
    device.download(code.buffer(), ByteLen(0), &mut found).unwrap();
    assert_eq!(found[..8], [7; 8]);
    assert!(found[8..].chunks(4).all(|word| word == CODE_END), "what the image lacks is padding");
    assert_eq!(device.place(GpuVa(told.0 + 12)).to_string(), "second+0x4");
}

#[test]
fn code_may_be_as_long_as_the_limit_and_no_longer() {
    let process = Attachment::over(board(true)).unwrap();
    let topology = Topology::read(process.process().syscalls()).unwrap();
    let vm = process.vm(topology.first_supported().unwrap()).unwrap();
    let space = Space::new(&vm, false).unwrap();
    let label = CodeLabel { name: "long", functions: &[], files: &[], lines: &[] };
    assert_eq!(CODE_BYTES_MAX.0 as usize, zrt_isa::zrt::FILE_BYTES_MAX);
    let code = Code::allocate(&space, &label, CODE_BYTES_MAX).unwrap();
    assert_eq!(code.buffer().len.0, (64 << 20) + 512);
    let error = Code::allocate(&space, &label, ByteLen(CODE_BYTES_MAX.0 + 1)).unwrap_err();
    assert!(matches!(error, DeviceError::CodeLength { len: ByteLen(67_108_865), .. }), "{error}");
}

/// The R9700's example of hardware reference §7: 64 bytes of a lane are 8 MiB.
#[test]
fn a_kernel_that_needs_scratch_has_it() {
    let mut device = open(true);
    let [rsrc1, rsrc2, rsrc3] = resources(4);
    let parameters = |rsrc2| crate::LaunchParameters {
        name: "spills",
        entry: GpuVa(0x10_0000),
        rsrc1,
        rsrc2,
        rsrc3,
        wave_size: zrt_isa::resources::WaveSize::Wave32,
        workgroup: [32, 1, 1],
        scratch_bytes: 64,
    };
    let with = device.prepare_launch(&parameters(rsrc2 | 1)).unwrap();
    let scratch = with.scratch().unwrap();
    assert_eq!((scratch.label(), scratch.len), ("scratch of spills", ByteLen(8 << 20)));
    assert!(scratch.kind() == MemoryKind::VramPublic);
    assert!(device.prepare_launch(&parameters(rsrc2)).unwrap().scratch().is_none());
}

#[test]
fn a_hidden_buffer_has_no_view_and_says_what_would() {
    let mut device = open(false);
    let hidden = device.allocate(Heap::DeviceLocal, ByteLen(64), "hidden").unwrap();
    assert_eq!(
        hidden.view().unwrap_err().to_string(),
        "the buffer hidden is not mapped on the host: allocate it from the heap host_visible or host"
    );
}

/// On a small BAR copies go through the queue.
#[test]
fn a_copy_waits_for_no_resident_kernel() {
    let mut device = open(false);
    let hidden = device.allocate(Heap::DeviceLocal, ByteLen(64), "hidden").unwrap();
    let (short, _kernel) = one_dispatch(&mut device, "end", END, GpuVa(0));
    let ticket = device.submit_resident(&short).unwrap();
    device.wait(ticket, PATIENCE).unwrap();
    assert!(device.is_done(ticket));
    device.upload(&hidden, ByteLen(0), &[7; 64]).unwrap();
    let (endless, _kernel) = one_dispatch(&mut device, "endless", ENDLESS, GpuVa(0));
    let _ = device.submit_resident(&endless).unwrap();
    for error in [
        device.upload(&hidden, ByteLen(0), &[1]).unwrap_err(),
        device.download(&hidden, ByteLen(0), &mut [1]).unwrap_err(),
    ] {
        assert!(matches!(&error, DeviceError::Occupied { label } if label == "hidden"), "{error}");
    }
}

#[test]
fn a_range_ends_with_its_buffer() {
    let mut device = open(true);
    let buffer = device.allocate(Heap::Host, ByteLen(100), "hundred").unwrap();
    for (offset, len) in [(0, 0), (0, 100), (99, 1), (100, 0)] {
        device.upload(&buffer, ByteLen(offset), &vec![0; len]).unwrap();
        device.download(&buffer, ByteLen(offset), &mut vec![0; len]).unwrap();
    }
    for (offset, len) in [(0, 101), (100, 1), (101, 0), (u64::MAX, 2)] {
        let errors = [
            device.upload(&buffer, ByteLen(offset), &vec![0; len]).unwrap_err(),
            device.download(&buffer, ByteLen(offset), &mut vec![0; len]).unwrap_err(),
        ];
        for error in errors {
            let text = error.to_string();
            assert!(text.ends_with("lie outside the buffer hundred of 100 B"), "{text}");
        }
    }
}
