//! The probes' kernels: `kernels/*.s`, assembled by `cargo xtask asm` to `kernels/*.bin`, both committed.
//!
//! Contract: data only. The table lists registers and LDS; tests check the code against the static rules.

use zrt_device::{Device, DeviceError, Kernel};
use zrt_isa::resources::{Rsrc1, Rsrc2, Rsrc3, WaveSize, instruction_prefetch_field, lds_field, vgpr_field};
use zrt_isa::zrt;
use zrt_mem::Heap;

/// SGPRs that each kernel may use.
const SGPRS: u16 = 32;
/// Dwords of user data: the parameter block's address.
pub(super) const USER_SGPRS: u8 = 2;

/// One kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeKernel {
    /// File name of its source.
    pub name: &'static str,
    /// Machine code.
    pub code: &'static [u8],
    /// Work-items of a group.
    pub workgroup: u16,
    /// Vector registers of a wave.
    pub vgprs: u16,
    /// LDS of a group.
    pub lds_bytes: u32,
}

macro_rules! kernels {
    ($($name:ident = $file:literal, $workgroup:literal items, $vgprs:literal vgprs, $lds:expr;)*) => {
        $(pub(super) const $name: ProbeKernel = ProbeKernel {
            name: $file,
            code: include_bytes!(concat!("kernels/", $file, ".bin")),
            workgroup: $workgroup,
            vgprs: $vgprs,
            lds_bytes: $lds,
        };)*
        /// Every kernel.
        #[cfg(test)]
        pub(super) const ALL: &[ProbeKernel] = &[$($name),*];
    };
}

kernels! {
    APPROXIMATE = "approximate", 32 items, 16 vgprs, 0;
    BARRIER = "barrier", 256 items, 8 vgprs, 0;
    BYTES = "bytes", 32 items, 16 vgprs, 0;
    CHAIN = "chain", 256 items, 8 vgprs, 0;
    CHASE = "chase", 32 items, 8 vgprs, 0;
    COPY = "copy", 256 items, 24 vgprs, 0;
    DOT = "dot", 32 items, 16 vgprs, 0;
    EMPTY = "empty", 32 items, 8 vgprs, 0;
    HANDOVER = "handover", 32 items, 8 vgprs, 0;
    MATRIX_BF16 = "matrix_bf16", 32 items, 24 vgprs, 0;
    MATRIX_F16 = "matrix_f16", 32 items, 24 vgprs, 0;
    MATRIX_FP8 = "matrix_fp8", 32 items, 24 vgprs, 0;
    MATRIX_I8 = "matrix_i8", 32 items, 24 vgprs, 0;
    MATRIX_U8 = "matrix_u8", 32 items, 24 vgprs, 0;
    MODE = "mode", 32 items, 8 vgprs, 0;
    ORDER = "order", 32 items, 8 vgprs, 0;
    // The megakernel's footprint: its groups have 256 items, 192 vector registers and 40 KiB of LDS.
    PLACEMENT = "placement", 256 items, 192 vgprs, 40 << 10;
    SPIN = "spin", 32 items, 8 vgprs, 0;
    TRANSPOSE = "transpose", 32 items, 16 vgprs, 0;
}

impl ProbeKernel {
    /// Puts the kernel onto the device.
    pub fn load(&self, device: &mut Device) -> Result<Kernel, DeviceError> {
        let rsrc1 = Rsrc1 {
            vgpr_blocks_minus_one: vgpr_field(self.vgprs.into(), WaveSize::Wave32)
                .map_err(zrt::ZrtError::from)?,
            ..Rsrc1::default()
        };
        let rsrc2 = Rsrc2 {
            user_sgprs: USER_SGPRS.into(),
            workgroup_id: [true, false, false],
            lds_blocks: lds_field(self.lds_bytes).map_err(zrt::ZrtError::from)?,
            ..Rsrc2::default()
        };
        let rsrc3 = Rsrc3 {
            instruction_prefetch: instruction_prefetch_field(self.code.len() as u32),
            ..Rsrc3::default()
        };
        let container = zrt::Kernel {
            name: self.name,
            code: self.code,
            entry: 0,
            rsrc1: rsrc1.word().map_err(zrt::ZrtError::from)?,
            rsrc2: rsrc2.word().map_err(zrt::ZrtError::from)?,
            rsrc3: rsrc3.word().map_err(zrt::ZrtError::from)?,
            wave_size: WaveSize::Wave32,
            user_sgprs: USER_SGPRS,
            vgprs: self.vgprs,
            sgprs: SGPRS,
            workgroup: [self.workgroup, 1, 1],
            lds_bytes: self.lds_bytes,
            scratch_bytes: 0,
            parameter_version: 1,
            parameter_opcode: 0,
            parameter_bytes: 32,
            files: Vec::new(),
            lines: Vec::new(),
            constants: Vec::new(),
        };
        device.load_parsed_kernel(&container, Heap::DeviceLocal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use zrt_isa::lint::{Entry, check_entry};

    #[test]
    fn the_static_rules_hold() {
        for kernel in ALL {
            let code: Vec<u32> =
                kernel.code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
            let entry = Entry { user_sgprs: USER_SGPRS, is_strict: true, ..Entry::at(0) };
            let findings = check_entry(&code, &entry);
            assert!(findings.is_empty(), "{}: {findings:#?}", kernel.name);
        }
    }
}
