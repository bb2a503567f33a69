//! Lists the kernels of a code object, a bundle or a `.zrt`. Nothing is launched.
//!
//! `cargo run -p zrt-loader --example code_object [FILE]`; without a file it loads eight bytes of machine code.

use std::error::Error;
use zrt_isa::resources::WaveSize;
use zrt_loader::{ArgumentValue, Geometry, Program, RawOptions};
use zrt_mem::GpuVa;

/// `s_nop 0` and `s_endpgm` (instruction set reference §1).
const CODE: [u32; 2] = [0xBF80_0000, 0xBFB0_0000];
/// Four workgroups of 256 work-items each.
const GEOMETRY: Geometry = Geometry::new([4, 1, 1], [256, 1, 1]);

/// Lists the kernels of a program.
pub fn list(program: &Program) -> Result<(), Box<dyn Error>> {
    println!("{:?}, an image of {} bytes", program.format(), program.image().bytes().len());
    for kernel in program.kernels() {
        println!("{} at {:#x}, {} bytes of code", kernel.name, kernel.entry_offset, kernel.code_bytes);
        println!(
            "  {} VGPRs, {} bytes of LDS, {} of scratch",
            kernel.vgprs()?,
            kernel.lds_bytes,
            kernel.scratch_bytes
        );
        for argument in kernel.explicit_arguments().unwrap_or_default() {
            println!("  {}", argument.describe());
        }
    }
    Ok(())
}

/// Machine code alone, as a program with one kernel.
pub fn raw() -> Result<Program, Box<dyn Error>> {
    let code: Vec<u8> = CODE.iter().flat_map(|word| word.to_le_bytes()).collect();
    let options = RawOptions {
        name: "nothing".into(),
        wave_size: WaveSize::Wave32,
        vgprs: 8,
        user_sgprs: 2,
        lds_bytes: 0,
        scratch_bytes: 0,
    };
    let program = Program::raw(&code, &options)?;
    let kernel = program.kernel("nothing").ok_or("the kernel has another name")?;
    let arguments = kernel.pack(&[ArgumentValue::Buffer(GpuVa(0x1000)), ArgumentValue::U32(7)], GEOMETRY)?;
    println!("arguments: {arguments:02x?}");
    Ok(program)
}

/// Loads the file given as the argument, or [`CODE`].
pub fn main() -> Result<(), Box<dyn Error>> {
    match std::env::args_os().nth(1) {
        Some(path) => list(&Program::parse(&std::fs::read(path)?)?),
        None => list(&raw()?),
    }
}
