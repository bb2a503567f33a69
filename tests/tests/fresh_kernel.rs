//! Kernels that are in no blob of the repository: assembled or compiled during the test and launched by packets.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use zrt_device::{Device, DeviceChoice, OpenOptions};
use zrt_isa::resources::WaveSize;
use zrt_isa::zrt;
use zrt_mem::{ByteLen, Heap};

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

/// LLVM's tools of this test, or `None` where they may be absent.
fn tools() -> Option<(&'static str, &'static str)> {
    let present =
        |tool: &str| Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if present("llvm-mc-19") && present("llvm-objcopy-19") {
        return Some(("llvm-mc-19", "llvm-objcopy-19"));
    }
    assert!(std::env::var_os("ZRT_REQUIRE_LLVM").is_none(), "LLVM 19 is required here and not installed");
    eprintln!("not run: LLVM 19 is not installed");
    None
}

fn run(command: &mut Command) {
    let output = command.output().expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A folder of this process's own, removed when dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("zrt-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Scratch(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn assemble(source: &str, scratch: &Scratch) -> Option<Vec<u8>> {
    let (assembler, object_copy) = tools()?;
    let (text, object, binary) = (scratch.path("k.s"), scratch.path("k.o"), scratch.path("k.bin"));
    std::fs::write(&text, source).expect("writable");
    let target = ["-triple=amdgcn-amd-amdhsa", "-mcpu=gfx1201", "-filetype=obj"];
    run(Command::new(assembler).args(target).arg(&text).arg("-o").arg(&object));
    run(Command::new(object_copy).args(["-O", "binary", "-j", ".text"]).args([&object, &binary]));
    Some(std::fs::read(Path::new(&binary)).expect("the code"))
}

#[test]
fn a_kernel_from_source_text_of_this_test_runs_right() {
    let scratch = Scratch::new("fresh-kernel");
    let Some(code) = assemble(SCALE_AND_COUNT, &scratch) else { return };
    let container = zrt::Kernel {
        name: "scale_and_count",
        code: &code,
        entry: 0,
        // 8 VGPRs, denormals kept, MEM_ORDERED, CU mode; two user SGPRs and the workgroup id (reference §10).
        rsrc1: 0x400F_0000,
        rsrc2: 0x84,
        rsrc3: 0,
        wave_size: WaveSize::Wave32,
        user_sgprs: 2,
        vgprs: 4,
        sgprs: 8,
        workgroup: [32, 1, 1],
        lds_bytes: 0,
        scratch_bytes: 0,
        parameter_version: 1,
        parameter_opcode: 0x7fff,
        parameter_bytes: 16,
        files: Vec::new(),
        lines: Vec::new(),
        constants: Vec::new(),
    };
    let bytes = container.write().expect("a sound container");
    let mut device = Device::open(DeviceChoice::Virtual, &OpenOptions::default()).expect("opens");
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
}
