//! Kernels assembled during a test.
//!
//! Contract: needs `llvm-mc-19` and `llvm-objcopy-19`; without them a case says that it did not run, and with
//! `ZRT_REQUIRE_LLVM` set it fails.

use std::path::PathBuf;
use std::process::Command;
use zrt_isa::resources::WaveSize;
use zrt_isa::zrt;

/// What a launch of assembled code needs to know.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Name in reports.
    pub name: &'static str,
    /// Work-items of a group.
    pub work_items: u16,
    /// LDS in bytes.
    pub lds_bytes: u32,
}

/// Vector registers that [`container`] asks for.
const VECTOR_REGISTERS: u16 = 64;

/// Whether LLVM's tools are there; panics where they have to be.
pub fn has_tools() -> bool {
    let present =
        |tool: &str| Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if present("llvm-mc-19") && present("llvm-objcopy-19") {
        return true;
    }
    assert!(std::env::var_os("ZRT_REQUIRE_LLVM").is_none(), "LLVM 19 is required here and not installed");
    eprintln!("not run: LLVM 19 is not installed");
    false
}

/// A folder of this process's own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("zrt-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Scratch(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn run(command: &mut Command, source: &str) {
    let output = command.output().expect("the tool starts");
    assert!(output.status.success(), "{}\n{source}", String::from_utf8_lossy(&output.stderr));
}

/// The code of a source text, padding not included.
pub fn assemble(source: &str) -> Vec<u8> {
    let scratch = Scratch::new("assembly");
    let [text, object, binary] = ["k.s", "k.o", "k.bin"].map(|name| scratch.0.join(name));
    std::fs::write(&text, source).expect("writable");
    let target = ["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1201", "-filetype=obj"];
    run(Command::new("llvm-mc-19").args(target).arg(&text).arg("-o").arg(&object), source);
    let section = ["-O", "binary", "-j", ".text"];
    run(Command::new("llvm-objcopy-19").args(section).args([&object, &binary]), source);
    std::fs::read(&binary).expect("the code")
}

/// A container for the code: wave32, CU mode, denormals kept, `s[0:1]` the parameter block of 32 bytes.
pub fn container(shape: &Shape, code: &[u8]) -> Vec<u8> {
    let kernel = zrt::Kernel {
        name: shape.name,
        code,
        entry: 0,
        // Denormals kept, MEM_ORDERED, CU mode (instruction set reference §10), and the vector registers in eights.
        rsrc1: 0x400F_0000 | (u32::from(VECTOR_REGISTERS) / 8 - 1),
        // Two user SGPRs and the workgroup id in X; LDS in units of 512 bytes.
        rsrc2: 0x84 | shape.lds_bytes.div_ceil(512) << 15,
        rsrc3: 0,
        wave_size: WaveSize::Wave32,
        user_sgprs: 2,
        vgprs: VECTOR_REGISTERS,
        sgprs: 106,
        workgroup: [shape.work_items, 1, 1],
        lds_bytes: shape.lds_bytes,
        scratch_bytes: 0,
        parameter_version: 1,
        parameter_opcode: 0x7fff,
        parameter_bytes: 32,
        files: Vec::new(),
        lines: Vec::new(),
        constants: Vec::new(),
    };
    kernel.write().expect("a sound container")
}
