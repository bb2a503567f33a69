//! Submits packets through a ring to the model of a command processor and waits for their fence. The memory belongs
//! to the process; a real device maps it instead.
//!
//! `cargo run -p zrt-ring --example submission`

use std::error::Error;
use zrt_mem::{GpuVa, SharedView};
use zrt_pm4::packet::{event_write, release_mem};
use zrt_pm4::{Listing, Writer};
use zrt_ring::mock::{CommandProcessor, Mapping};
use zrt_ring::{CommandRing, Fence};

/// Device address of the fence.
const FENCE_ADDRESS: GpuVa = GpuVa(0x7f00_0000_1000);
/// Value that the device writes there.
const FENCE_VALUE: u64 = 1;
/// Packets that the model consumes per step.
const PACKETS_MAX: usize = 16;
const RING_BYTES: usize = 4096;

/// Submits, plays the other side, and waits.
pub fn main() -> Result<(), Box<dyn Error>> {
    let [ring, write, read, doorbell, fence] =
        [RING_BYTES, 8, 8, 8, 8].map(|bytes| SharedView::zeroed(bytes).expect("memory"));
    let mut device = CommandProcessor::new(ring.clone(), write.clone(), read.clone(), doorbell.clone());
    device.map(Mapping { address: FENCE_ADDRESS, view: fence.clone() });
    let fence = Fence::new(fence, FENCE_ADDRESS)?;
    let mut ring = CommandRing::new(ring, write, read, doorbell)?;

    let mut words = [0; 16];
    let mut writer = Writer::new(&mut words);
    writer.event_write(&event_write::Repr::CS_PARTIAL_FLUSH)?;
    writer.release_mem(&release_mem::Repr::fence(FENCE_ADDRESS.0, FENCE_VALUE))?;
    let len = writer.len();
    let submission = ring.submit(&words[..len])?;
    println!("submitted {} dwords with one doorbell", submission.end);

    let taken = device.step(PACKETS_MAX, &mut |packet| print!("{}", Listing(packet)))?;
    // A stopped clock: the fence is already there, so nothing waits.
    let value = fence.wait(FENCE_VALUE, &|| 0_u64, 0)?;
    println!("{taken} packets taken, the fence holds {value}");
    Ok(())
}
