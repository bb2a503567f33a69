//! Kernels that are in no blob of the repository: assembled or compiled during the test and launched by packets.

use std::time::Duration;
use zrt_bringup::{DeviceChoice, Inspect, OpenOptions, VirtualOptions};
use zrt_mem::{ByteLen, Heap};
use zrt_tests::assembly::{Shape, assemble, container, has_tools};

/// y[i] = x[i] * 3 + i over one wave; s[0:1] points at {x, y}.
const SCALE_AND_COUNT: &str = "
    s_load_b128 s[4:7], s[0:1], 0x0
    v_and_b32_e32 v0, 0x3ff, v0
    v_lshlrev_b32_e32 v1, 2, v0
    s_wait_kmcnt 0x0
    global_load_b32 v2, v1, s[4:5]
    v_cvt_f32_u32_e32 v3, v0
    s_wait_loadcnt 0x0
    v_fmamk_f32 v2, v2, 0x40400000, v3
    global_store_b32 v1, v2, s[6:7]
    s_endpgm
    .fill 64, 4, 0xbf9f0000
";

#[test]
fn a_kernel_from_source_text_of_this_test_runs_right() {
    if !has_tools() {
        return;
    }
    let shape = Shape { name: "scale_and_count", work_items: 32, lds_bytes: 0 };
    let bytes = container(&shape, &assemble(SCALE_AND_COUNT));
    let virtual_device = VirtualOptions { check: true, ..VirtualOptions::default() };
    let options = OpenOptions { virtual_device, ..OpenOptions::default() };
    let mut device = zrt_bringup::open(DeviceChoice::Virtual, &options).expect("opens");
    let kernel = device.load_kernel(&bytes).expect("loads");
    let memory = device.allocate(Heap::HostVisible, ByteLen(4096), "operands").expect("allocates");
    let input: Vec<u8> = (0..32u32).flat_map(|i| (i as f32 / 4.0).to_le_bytes()).collect();
    let (x, y) = (memory.va.0 + 1024, memory.va.0 + 2048);
    let parameters: Vec<u8> = [x, y].iter().flat_map(|va| va.to_le_bytes()).collect();
    device.upload(&memory, ByteLen(0), &parameters).expect("uploads");
    device.upload(&memory, ByteLen(1024), &input).expect("uploads");
    let mut recorder = device.recorder(1).expect("records");
    recorder.dispatch(&kernel, memory.va, [1, 1, 1]).expect("records");
    let graph = recorder.finish().expect("records");
    let ticket = device.submit(&graph).expect("submits");
    device.wait(ticket, Duration::from_secs(5)).expect("finishes");
    let mut output = [0; 128];
    device.download(&memory, ByteLen(2048), &mut output).expect("downloads");
    for (i, word) in output.as_chunks::<4>().0.iter().enumerate() {
        assert_eq!(f32::from_le_bytes(*word), i as f32 / 4.0 * 3.0 + i as f32, "lane {i}");
    }
    assert_eq!(device.findings().expect("readable"), [], "the checking mode finds nothing");
}
