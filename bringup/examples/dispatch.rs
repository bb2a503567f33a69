//! Opens a device, copies a buffer with a kernel, and reads the result.
//!
//! `cargo run -p zrt-bringup --example dispatch`: on the virtual device; `ZRT_DEVICE` names another.

use std::error::Error;
use std::time::Duration;
use zerocopy::IntoBytes;
use zrt_bringup::{DeviceChoice, OpenOptions};
use zrt_device::Heap;
use zrt_mem::ByteLen;
use zrt_protocol::params::{Copy, RowSet};

/// 16 bytes for each of the work-items of one workgroup.
const BYTES: usize = 256 * 16;
const DEADLINE: Duration = Duration::from_secs(10);

/// Copies and compares.
pub fn main() -> Result<(), Box<dyn Error>> {
    let choice = match DeviceChoice::from_environment()? {
        DeviceChoice::Auto => DeviceChoice::Virtual,
        named => named,
    };
    let mut device = zrt_bringup::open(choice, &OpenOptions::default())?;
    println!("{}", device.name());

    let kernel = device.load_kernel(zrt_asm::blob("copy").ok_or("no blob of this name")?)?;
    let len = ByteLen(BYTES as u64);
    let source = device.allocate(Heap::HostVisible, len, "source")?;
    let destination = device.allocate(Heap::DeviceLocal, len, "destination")?;
    let parameters = device.allocate(Heap::HostVisible, ByteLen(256), "parameters")?;
    let text: Vec<u8> = (0..BYTES).map(|index| index as u8).collect();
    device.upload(&source, ByteLen(0), &text)?;
    let block = Copy {
        header: Copy::header(0, 1, RowSet::Once),
        source_va: source.va.0,
        destination_va: destination.va.0,
        count: (BYTES / 16) as u32,
        reserved: 0,
    };
    device.upload(&parameters, ByteLen(0), block.as_bytes())?;

    let mut recorder = device.recorder(1)?;
    recorder.dispatch(&kernel, parameters.va, [1, 1, 1])?;
    let graph = recorder.finish()?;
    let ticket = device.submit(&graph)?;
    device.wait(ticket, DEADLINE)?;

    let mut copied = vec![0; BYTES];
    device.download(&destination, ByteLen(0), &mut copied)?;
    println!("{} packets, {BYTES} bytes copied", graph.packets());
    if copied == text { Ok(()) } else { Err("the copy differs from its source".into()) }
}
