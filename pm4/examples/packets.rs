//! Records a dispatch and its fence, prints the packets, and lints the stream. Nothing is executed.
//!
//! `cargo run -p zrt-pm4 --example packets`

use std::error::Error;
use zrt_pm4::packet::release_mem;
use zrt_pm4::registers::{ResourceLimits, WaveSize};
use zrt_pm4::{KernelParameters, KernelState, Listing, Writer, lint};

/// Address of the code: a multiple of 256.
const CODE_ADDRESS: u64 = 0x7f00_0001_0000;
/// Address of the fence.
const FENCE_ADDRESS: u64 = 0x7f00_0000_1000;
/// The argument block's address, as loaded into the two user SGPRs s0 and s1.
const ARGUMENTS: [u32; 2] = [0x0000_2000, 0x0000_7f00];

/// Records, prints, lints.
pub fn main() -> Result<(), Box<dyn Error>> {
    let kernel = KernelState::new(&KernelParameters {
        code_address: CODE_ADDRESS,
        // The words of instruction set reference §10: 8 VGPRs, denormals kept, WGP mode; 2 user SGPRs, TGID_X.
        rsrc1: 0x600F_0000,
        rsrc2: 0x84,
        rsrc3: 0,
        workgroup: [256, 1, 1],
        limits: ResourceLimits::default(),
        wave: WaveSize::Wave32,
    })?;
    let mut words = [0; 96];
    let mut writer = Writer::new(&mut words);
    writer.acquire_everything()?;
    writer.dispatch(&kernel, &ARGUMENTS, [4, 1, 1])?;
    writer.release_mem(&release_mem::Repr::fence(FENCE_ADDRESS, 1))?;
    let len = writer.len();
    let stream = &words[..len];
    print!("{}", Listing(stream));
    let mut findings = 0;
    lint(stream, &mut |finding| {
        findings += 1;
        println!("{finding}");
    });
    println!("{len} dwords, {findings} findings");
    if findings == 0 { Ok(()) } else { Err("a stream of ours has findings".into()) }
}
