//! Kernels in device memory.
//!
//! Contract: the code lies in executable memory at a multiple of 256 bytes (PGM_LO holds address >> 8, hardware
//! reference §5), followed by padding that the instruction prefetcher may run into. The resource words are the
//! container's own; `zrt-pm4` refuses bits that the registers do not have. Set-up only.

use crate::error::DeviceError;
use crate::memory::{Buffer, Space};
use zrt_isa::resources::Rsrc2;
use zrt_isa::zrt;
use zrt_mem::{ByteLen, GpuVa, Heap};
use zrt_pm4::registers::{ResourceLimits, WaveSize};
use zrt_pm4::{KernelParameters, KernelState};

/// What follows the code: `s_code_end` (instruction set reference §4.2), as far as the prefetcher reads.
const CODE_END: [u8; 4] = 0xbf9f_0000_u32.to_le_bytes();
/// A line of the instruction cache on gfx11 and later (`EmitCodeEnd` of LLVM's AMDGPU backend).
const CODE_LINE_BYTES: u64 = 128;
/// Least padding after code: the rest of its last line and three lines more, which is as far as compilers let the
/// prefetcher run (`EmitCodeEnd` again: three lines after the aligned end, at most 511 bytes).
const CODE_PADDING_BYTES: u64 = 512;

/// Bytes of memory for `code_bytes` of code: whole lines, the padding included.
pub(crate) const fn padded_len(code_bytes: u64) -> u64 {
    code_bytes.saturating_add(CODE_PADDING_BYTES + CODE_LINE_BYTES - 1) / CODE_LINE_BYTES * CODE_LINE_BYTES
}

/// A kernel that can be dispatched. Keep it as long as any graph that dispatches it.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) state: KernelState,
    name: String,
    entry: GpuVa,
    code: Buffer,
    code_len: ByteLen,
}

impl Kernel {
    /// Its registers, for packets that the caller writes.
    pub fn state(&self) -> &KernelState {
        &self.state
    }

    /// Its name in the container.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Address of the first instruction.
    pub fn entry(&self) -> GpuVa {
        self.entry
    }

    /// The memory that holds the code: instructions first, padding after. Tests change it.
    pub fn code(&self) -> &Buffer {
        &self.code
    }

    /// Length of the code without padding.
    pub fn code_len(&self) -> ByteLen {
        self.code_len
    }

    /// Allocates executable memory for the container's code and puts the kernel together. The code itself,
    /// [`image`], is written by the caller.
    ///
    /// `heap` is [`Heap::DeviceLocal`] except for the kernel that copies to device-local memory.
    pub(crate) fn new(space: &Space, container: &zrt::Kernel<'_>, heap: Heap) -> Result<Kernel, DeviceError> {
        let len = ByteLen(padded_len(container.code.len() as u64));
        let code = space.allocate(heap, len, container.name, true)?;
        space.registry.name_kernel(code.entry(), container);
        let entry = GpuVa(code.va.0 + u64::from(container.entry));
        let parameters = KernelParameters {
            code_address: entry.0,
            rsrc1: container.rsrc1,
            rsrc2: container.rsrc2,
            rsrc3: container.rsrc3,
            workgroup: container.workgroup.map(u32::from),
            limits: ResourceLimits::default(),
            wave: match container.wave_size {
                zrt_isa::resources::WaveSize::Wave32 => WaveSize::Wave32,
                zrt_isa::resources::WaveSize::Wave64 => WaveSize::Wave64,
            },
        };
        let rsrc2 = Rsrc2::parse(container.rsrc2).map_err(zrt::ZrtError::from)?;
        if rsrc2.scratch || container.scratch_bytes > 0 {
            return Err(needs(container, "it uses scratch memory, which the queue does not set up"));
        }
        if container.user_sgprs > USER_DATA_DWORDS as u8 {
            return Err(needs(container, "it needs more user SGPRs than the address of its parameter block"));
        }
        Ok(Kernel {
            state: KernelState::new(&parameters)?,
            name: container.name.into(),
            entry,
            code,
            code_len: ByteLen(container.code.len() as u64),
        })
    }
}

/// Dwords of user data: the 64-bit address of the parameter block, the number of workgroups (docs/kernels.md).
pub(crate) const USER_DATA_DWORDS: usize = 3;

/// The bytes that go to device memory: code and padding.
pub(crate) fn image(container: &zrt::Kernel<'_>) -> Vec<u8> {
    padded(container.code, container.code.len())
}

/// `code_bytes` of code, then padding; if `code` is shorter than that, padding fills the rest too.
pub(crate) fn padded(code: &[u8], code_bytes: usize) -> Vec<u8> {
    let whole = padded_len(code_bytes as u64) as usize;
    let mut image = Vec::with_capacity(whole);
    image.extend(code.iter().take(code_bytes));
    image.extend(CODE_END.iter().cycle().take(whole - image.len()));
    image
}

fn needs(container: &zrt::Kernel<'_>, reason: &'static str) -> DeviceError {
    DeviceError::KernelNeeds { kernel: container.name.into(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What LLVM puts after code: the end aligned to a line, and three lines.
    #[test]
    fn padding_holds_three_lines_behind_the_line_of_the_last_instruction() {
        for code_bytes in [4, 124, 128, 132, 3584, 3840, 4092, 4096] {
            let image = padded(&vec![1; code_bytes], code_bytes);
            assert_eq!(image.len() % 128, 0);
            assert!(
                image.len() >= code_bytes.next_multiple_of(128) + 3 * 128,
                "{code_bytes}: {}",
                image.len()
            );
            assert!(image[..code_bytes].iter().all(|byte| *byte == 1));
            assert_eq!(image[image.len() - 4..], CODE_END);
        }
        assert_eq!(padded(&[1; 4], 8)[4..8], CODE_END, "what the code lacks is padding");
    }

    /// Not more lines than the 512 bytes need.
    #[test]
    fn padding_ends_with_the_line_of_its_last_byte() {
        let lengths = [0, 1, 4, 124, 128, 129, 132, 3584, 3585, 4096];
        assert_eq!(
            lengths.map(padded_len),
            [512, 640, 640, 640, 640, 768, 768, 4096, 4224, 4608],
            "512 more, up to a multiple of 128"
        );
        assert_eq!(padded_len(u64::MAX), u64::MAX - 127, "for a caller that refuses it");
    }
}
