//! The device over the virtual R9700: what a caller is told, and what a driver is asked. `zrt-bringup` has the cases
//! that need its self-test, its kernels or the virtual device's reports.

mod launching;
mod memory;
mod seam;
mod waiting;

use crate::{Attachment, Device, DeviceError, DeviceOptions, Diagnosis, Graph, Heap, Kernel};
use std::sync::Arc;
use std::time::Duration;
use zrt_isa::resources::{Rsrc1, Rsrc2, Rsrc3, WaveSize, instruction_prefetch_field, vgpr_field};
use zrt_isa::zrt;
use zrt_kmd::Syscalls;
use zrt_mem::{ByteLen, GpuVa};
use zrt_vgpu::{Config, VirtualGpu};

/// Deadline of work that must finish on a loaded host.
const PATIENCE: Duration = Duration::from_secs(30);

/// `s_endpgm`
const END: &[u32] = &[0xbfb0_0000];
/// `s_sleep 1`, `s_branch` to itself.
const ENDLESS: &[u32] = &[0xbf83_0001, 0xbfa0_fffe];
/// Stores 0x600df00d at the address of its parameter block, as `store.s` of the self-test does.
const STORE: &[u32] =
    &[0xbefe_0081, 0x7e02_0280, 0x7e04_02ff, 0x600d_f00d, 0xee06_8000, 0x0100_0000, 0x0000_0001, 0xbfb0_0000];

fn board(large_bar: bool) -> Arc<VirtualGpu> {
    VirtualGpu::new(Config { large_bar, ..Config::default() }).unwrap()
}

/// What a card gets, on a ring of one page.
fn options() -> DeviceOptions {
    DeviceOptions { ring_bytes: ByteLen(4096), ..DeviceOptions::default() }
}

fn open_over(syscalls: Arc<dyn Syscalls>, options: &DeviceOptions) -> Device {
    Device::open(&Attachment::over(syscalls).unwrap(), options).unwrap()
}

fn open(large_bar: bool) -> Device {
    open_over(board(large_bar), &options())
}

fn bytes_of(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The resource words of a kernel with 8 VGPRs and the address of its block.
fn resources(code_bytes: usize) -> [u32; 3] {
    let vgpr_blocks_minus_one = vgpr_field(8, WaveSize::Wave32).unwrap();
    let rsrc1 = Rsrc1 { vgpr_blocks_minus_one, ..Rsrc1::default() };
    let rsrc2 = Rsrc2 { user_sgprs: 2, ..Rsrc2::default() };
    let instruction_prefetch = instruction_prefetch_field(code_bytes as u32);
    let rsrc3 = Rsrc3 { instruction_prefetch, ..Rsrc3::default() };
    [rsrc1.word().unwrap(), rsrc2.word().unwrap(), rsrc3.word().unwrap()]
}

fn container<'a>(name: &'a str, code: &'a [u8]) -> zrt::Kernel<'a> {
    let [rsrc1, rsrc2, rsrc3] = resources(code.len());
    zrt::Kernel {
        name,
        code,
        entry: 0,
        rsrc1,
        rsrc2,
        rsrc3,
        wave_size: WaveSize::Wave32,
        user_sgprs: 2,
        vgprs: 8,
        sgprs: 52,
        workgroup: [32, 1, 1],
        lds_bytes: 0,
        scratch_bytes: 0,
        parameter_version: 1,
        parameter_opcode: 0,
        parameter_bytes: 16,
        files: Vec::new(),
        lines: Vec::new(),
        constants: Vec::new(),
    }
}

fn load(device: &mut Device, name: &str, words: &[u32]) -> Kernel {
    device.load_parsed_kernel(&container(name, &bytes_of(words)), Heap::DeviceLocal).unwrap()
}

/// A graph of one dispatch of one workgroup, and its kernel.
fn one_dispatch(device: &mut Device, name: &str, words: &[u32], parameters: GpuVa) -> (Graph, Kernel) {
    let kernel = load(device, name, words);
    let mut recorder = device.recorder(1).unwrap();
    recorder.dispatch(&kernel, parameters, [1, 1, 1]).unwrap();
    (recorder.finish().unwrap(), kernel)
}

fn stopped(error: DeviceError) -> Box<Diagnosis> {
    match error {
        DeviceError::Stopped(diagnosis) => diagnosis,
        other => panic!("expected a stopped device: {other}"),
    }
}
