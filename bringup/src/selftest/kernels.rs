//! The machine code of the self-test's kernels. Sources: `kernels/*.s`, assembled by llvm-mc of LLVM 19 for gfx1201; a
//! test compares the two if llvm-mc is installed.
//!
//! Contract: data only. The code is small enough to be read, and is ours, so the self-test needs no file.

use zrt_device::{Device, DeviceError, Kernel};
use zrt_isa::resources::{Rsrc1, Rsrc2, Rsrc3, WaveSize, instruction_prefetch_field, lds_field, vgpr_field};
use zrt_isa::zrt;
use zrt_mem::Heap;

/// One kernel of the self-test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestKernel {
    /// File name of its source.
    pub(crate) name: &'static str,
    words: &'static [u32],
    workgroup: u16,
    lds_bytes: u32,
}

/// VGPRs that each of them may use.
const VGPRS: u16 = 8;
/// SGPRs that each of them may use.
const SGPRS: u16 = 52;
/// Dwords of user data: the parameter block's address.
const USER_SGPRS: u8 = 2;

/// Does nothing.
pub(crate) const END: TestKernel =
    TestKernel { name: "end", words: &[0xbfb0_0000], workgroup: 32, lds_bytes: 0 };

/// Stores a constant.
pub(crate) const STORE: TestKernel = TestKernel {
    name: "store",
    words: &[
        0xbefe_0081,
        0x7e02_0280,
        0x7e04_02ff,
        0x600d_f00d,
        0xee06_8000,
        0x0100_0000,
        0x0000_0001,
        0xbfb0_0000,
    ],
    workgroup: 32,
    lds_bytes: 0,
};

/// Stores the workgroup id.
pub(crate) const GROUP: TestKernel = TestKernel {
    name: "group",
    words: &[
        0x8430_8275,
        0xbefe_0081,
        0x7e04_0275,
        0xbf88_ff9e,
        0x7e02_0230,
        0xee06_8000,
        0x0100_0000,
        0x0000_0001,
        0xbfb0_0000,
    ],
    workgroup: 32,
    lds_bytes: 0,
};

/// Copies a dword that a scalar load reads.
pub(crate) const LOAD: TestKernel = TestKernel {
    name: "load",
    words: &[
        0xf400_0c00,
        0xf800_0000,
        0xbefe_0081,
        0x7e02_02c0,
        0xbfc7_0000,
        0x7e04_0230,
        0xee06_8000,
        0x0100_0000,
        0x0000_0001,
        0xbfb0_0000,
    ],
    workgroup: 32,
    lds_bytes: 0,
};

/// Stores key ^ index.
pub(crate) const PATTERN: TestKernel = TestKernel {
    name: "pattern",
    words: &[
        0xf400_4100,
        0xf800_0000,
        0x8430_8575,
        0x3600_00ff,
        0x0000_03ff,
        0xbfc7_0000,
        0xbeb2_0006,
        0xbf88_ff9e,
        0x4a02_0030,
        0x3a04_0232,
        0x3002_0282,
        0xee06_8004,
        0x0100_0000,
        0x0000_0001,
        0xbfb0_0000,
    ],
    workgroup: 32,
    lds_bytes: 0,
};

/// data = data * 5 + key.
pub(crate) const STEP: TestKernel = TestKernel {
    name: "step",
    words: &[
        0xf400_4100,
        0xf800_0000,
        0x8430_8575,
        0x3600_00ff,
        0x0000_03ff,
        0xbfc7_0000,
        0xbeb2_0006,
        0xbf88_ff9e,
        0x4a02_0030,
        0x3002_0282,
        0xee05_0004,
        0x0000_0002,
        0x0000_0001,
        0xbfc0_0000,
        0xd72c_0002,
        0x0001_0b02,
        0x4a04_0432,
        0xee06_8004,
        0x0100_0000,
        0x0000_0001,
        0xbfb0_0000,
    ],
    workgroup: 32,
    lds_bytes: 0,
};

/// Stores the workgroup ids.
pub(crate) const IDS: TestKernel = TestKernel {
    name: "ids",
    words: &[
        0xf400_4100,
        0xf800_0000,
        0x8508_9073,
        0x8b09_ff73,
        0x0000_ffff,
        0xbfc7_0000,
        0x9608_0708,
        0x8008_0908,
        0x9608_0608,
        0x8008_7508,
        0x8430_8308,
        0xbefe_0081,
        0x7e04_0275,
        0x7e06_0273,
        0xbf88_ff9e,
        0x7e02_0230,
        0xee06_c004,
        0x0100_0000,
        0x0000_0001,
        0xbfb0_0000,
    ],
    workgroup: 32,
    lds_bytes: 0,
};

/// Reverses 256 dwords through LDS.
pub(crate) const REVERSE: TestKernel = TestKernel {
    name: "reverse",
    words: &[
        0xf400_4100,
        0xf800_0000,
        0x8430_8875,
        0x3600_00ff,
        0x0000_03ff,
        0xbfc7_0000,
        0xbf88_ff9e,
        0x4a02_0030,
        0x3002_0282,
        0xee05_0004,
        0x0000_0002,
        0x0000_0001,
        0x3006_0082,
        0xbfc0_0000,
        0xd834_0000,
        0x0000_0203,
        0xbfc6_0000,
        0xbe80_4ec1,
        0xbf94_ffff,
        0x4c06_06ff,
        0x0000_03fc,
        0xd8d8_0000,
        0x0200_0003,
        0xbfc6_0000,
        0xee06_8006,
        0x0100_0000,
        0x0000_0001,
        0xbfb0_0000,
    ],
    workgroup: 256,
    lds_bytes: 1024,
};

/// Adds one per lane atomically.
pub(crate) const COUNT: TestKernel = TestKernel {
    name: "count",
    words: &[
        0xf400_2100,
        0xf800_0000,
        0x7e02_0280,
        0x7e04_0281,
        0xbfc7_0000,
        0xee0d_4004,
        0x0108_0000,
        0x0000_0001,
        0xbfb0_0000,
    ],
    workgroup: 32,
    lds_bytes: 0,
};

/// Copies a dword that it reads through the scalar cache.
pub(crate) const SCALAR: TestKernel = TestKernel {
    name: "scalar",
    words: &[
        0xf400_4100,
        0xf800_0000,
        0xbfc7_0000,
        0xf400_0c03,
        0xf800_0000,
        0xbefe_0081,
        0x7e02_0280,
        0xbfc7_0000,
        0x7e04_0230,
        0xee06_8004,
        0x0100_0000,
        0x0000_0001,
        0xbfb0_0000,
    ],
    workgroup: 32,
    lds_bytes: 0,
};

/// Never ends: what a hang looks like.
#[cfg(test)]
pub(crate) const ENDLESS: TestKernel =
    TestKernel { name: "endless", words: &[0xbf83_0001, 0xbfa0_fffe], workgroup: 32, lds_bytes: 0 };

impl TestKernel {
    /// Puts the kernel into the device's own memory.
    pub(crate) fn load(&self, device: &mut Device) -> Result<Kernel, DeviceError> {
        self.load_into(device, Heap::DeviceLocal)
    }

    /// Puts the kernel onto the device, its code into `heap`.
    pub(crate) fn load_into(&self, device: &mut Device, heap: Heap) -> Result<Kernel, DeviceError> {
        let code: Vec<u8> = self.words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let rsrc1 = Rsrc1 {
            vgpr_blocks_minus_one: vgpr_field(VGPRS.into(), WaveSize::Wave32).map_err(zrt::ZrtError::from)?,
            ..Rsrc1::default()
        };
        let rsrc2 = Rsrc2 {
            user_sgprs: USER_SGPRS.into(),
            workgroup_id: [true; 3],
            lds_blocks: lds_field(self.lds_bytes).map_err(zrt::ZrtError::from)?,
            ..Rsrc2::default()
        };
        let rsrc3 =
            Rsrc3 { instruction_prefetch: instruction_prefetch_field(code.len() as u32), ..Rsrc3::default() };
        let container = zrt::Kernel {
            name: self.name,
            code: &code,
            entry: 0,
            rsrc1: rsrc1.word().map_err(zrt::ZrtError::from)?,
            rsrc2: rsrc2.word().map_err(zrt::ZrtError::from)?,
            rsrc3: rsrc3.word().map_err(zrt::ZrtError::from)?,
            wave_size: WaveSize::Wave32,
            user_sgprs: USER_SGPRS,
            vgprs: VGPRS,
            sgprs: SGPRS,
            workgroup: [self.workgroup, 1, 1],
            lds_bytes: self.lds_bytes,
            scratch_bytes: 0,
            parameter_version: 1,
            parameter_opcode: 0,
            parameter_bytes: 16,
            files: Vec::new(),
            lines: Vec::new(),
            constants: Vec::new(),
        };
        device.load_parsed_kernel(&container, heap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::Command;

    const ALL: [TestKernel; 11] =
        [END, STORE, GROUP, LOAD, PATTERN, STEP, IDS, REVERSE, COUNT, SCALAR, ENDLESS];

    /// Assembles a source with LLVM 19.
    fn assemble(source: &Path) -> Vec<u8> {
        let folder = zrt_needs::TemporaryFolder::new("selftest");
        let [object, code] = ["k.o", "k.bin"].map(|name| folder.join(name));
        let status = Command::new("llvm-mc-19")
            .args(["--triple=amdgcn-amd-amdhsa", "--mcpu=gfx1201", "--filetype=obj", "-o"])
            .args([&object, &source.to_path_buf()])
            .status()
            .expect("it was asked for");
        assert!(status.success(), "{} does not assemble", source.display());
        let status = Command::new("llvm-objcopy-19")
            .args(["-O", "binary", "-j", ".text"])
            .args([&object, &code])
            .status()
            .expect("llvm-objcopy-19 comes with llvm-mc-19");
        assert!(status.success());
        std::fs::read(&code).expect("objcopy wrote it")
    }

    /// Hardware reference §5: RSRC2 has two user SGPRs in bits 5:1, the workgroup ids in 9:7 and the LDS in blocks of
    /// 512 bytes from bit 15 on; RSRC3 (0x228) the lines of code, of 128 bytes, from bit 4 on.
    #[test]
    fn kernels_ask_for_their_lds_and_their_lines_of_code() {
        let options = crate::OpenOptions { self_test: false, ..crate::OpenOptions::default() };
        let mut device = crate::open(crate::DeviceChoice::Virtual, &options).unwrap();
        for (kernel, rsrc2) in [(PATTERN, 0x384), (REVERSE, 0x384 + (2 << 15))] {
            let loaded = kernel.load(&mut device).unwrap();
            let words = loaded.state().words();
            let after = |register: u32| words.iter().skip_while(move |word| **word != register).skip(1);
            assert_eq!(after(0x212).nth(1), Some(&rsrc2), "{}", kernel.name);
            assert_eq!(after(0x228).next(), Some(&(1 << 4)), "{}", kernel.name);
        }
    }

    #[test]
    fn words_are_what_the_sources_give() {
        if !zrt_needs::programs(&["llvm-mc-19", "llvm-objcopy-19"]) {
            return;
        }
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/selftest/kernels");
        for kernel in ALL {
            let bytes = assemble(&folder.join(format!("{}.s", kernel.name)));
            let words: Vec<u32> =
                bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
            assert_eq!(words, kernel.words, "{}", kernel.name);
        }
    }
}
