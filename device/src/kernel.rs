//! Kernels in device memory.
//!
//! Contract: the code lies in executable memory at a multiple of 256 bytes (PGM_LO holds address >> 8, hardware
//! reference §5), followed by padding that the instruction prefetcher may run into. The resource words are the
//! container's own, taken apart and put together again by `zrt-pm4`, which refuses what does not fit. Set-up only.

use crate::error::DeviceError;
use crate::memory::{Buffer, Space};
use zrt_isa::zrt;
use zrt_mem::{ByteLen, GpuVa, Heap};
use zrt_pm4::registers::{ResourceLimits, Rsrc1, Rsrc2, Rsrc2Flags, Rsrc3, WaveSize};
use zrt_pm4::{KernelParameters, KernelState};

/// What follows the code: `s_code_end` (instruction set reference §4.2), as far as the prefetcher reads.
pub(crate) const CODE_END: [u8; 4] = 0xbf9f_0000_u32.to_le_bytes();
/// Padding in bytes: 64 instructions, which is what compilers put there too.
pub(crate) const CODE_PADDING_BYTES: usize = 256;

/// A kernel that can be dispatched. Keep it as long as any graph that dispatches it.
#[derive(Debug)]
pub struct Kernel {
    pub(crate) state: KernelState,
    name: String,
    entry: GpuVa,
    code: Buffer,
    code_len: ByteLen,
    workgroup: [u32; 3],
    parameter_bytes: u32,
}

impl Kernel {
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

    /// Work-items of a group in x, y, z.
    pub fn workgroup(&self) -> [u32; 3] {
        self.workgroup
    }

    /// Length of its parameter block.
    pub fn parameter_bytes(&self) -> u32 {
        self.parameter_bytes
    }

    /// Allocates executable memory for the container's code and puts the kernel together. The code itself,
    /// [`image`], is written by the caller.
    ///
    /// `heap` is [`Heap::DeviceLocal`] but for the kernel that copies to device-local memory.
    pub(crate) fn new(space: &Space, container: &zrt::Kernel<'_>, heap: Heap) -> Result<Kernel, DeviceError> {
        let len = ByteLen((container.code.len() + CODE_PADDING_BYTES) as u64);
        let code = space.allocate(heap, len, container.name, true)?;
        space.registry.name_kernel(code.entry(), container);
        let entry = GpuVa(code.va.0 + u64::from(container.entry));
        let workgroup = container.workgroup.map(u32::from);
        let parameters = KernelParameters {
            code_address: entry.0,
            rsrc1: word(container, "RSRC1", Rsrc1::from_word(container.rsrc1))?,
            rsrc2: word(container, "RSRC2", Rsrc2::from_word(container.rsrc2))?,
            rsrc3: word(container, "RSRC3", Rsrc3::from_word(container.rsrc3))?,
            workgroup,
            limits: ResourceLimits::default(),
            wave: match container.wave_size {
                zrt_isa::resources::WaveSize::Wave32 => WaveSize::Wave32,
                zrt_isa::resources::WaveSize::Wave64 => WaveSize::Wave64,
            },
        };
        if parameters.rsrc2.flags.contains(Rsrc2Flags::SCRATCH_EN) || container.scratch_bytes > 0 {
            return Err(needs(container, "it uses scratch memory, which the queue does not set up"));
        }
        if container.user_sgprs > USER_DATA_DWORDS as u8 {
            return Err(needs(container, "it wants more user SGPRs than the address of its parameter block"));
        }
        Ok(Kernel {
            state: KernelState::new(&parameters)?,
            name: container.name.into(),
            entry,
            code,
            code_len: ByteLen(container.code.len() as u64),
            workgroup,
            parameter_bytes: container.parameter_bytes,
        })
    }
}

/// Dwords of user data: the 64-bit address of the parameter block, the number of workgroups (docs/kernels.md).
pub(crate) const USER_DATA_DWORDS: usize = 3;

/// The bytes that go to device memory: code and padding.
pub(crate) fn image(container: &zrt::Kernel<'_>) -> Vec<u8> {
    let mut image = Vec::with_capacity(container.code.len() + CODE_PADDING_BYTES);
    image.extend_from_slice(container.code);
    while image.len() < container.code.len() + CODE_PADDING_BYTES {
        image.extend_from_slice(&CODE_END);
    }
    image
}

fn word<T, E>(
    container: &zrt::Kernel<'_>,
    name: &'static str,
    parsed: Result<T, E>,
) -> Result<T, DeviceError> {
    let reason = match name {
        "RSRC1" => "its RSRC1 sets bits that gfx12 reserves",
        "RSRC2" => "its RSRC2 sets bits that gfx12 reserves",
        _ => "its RSRC3 sets bits that gfx12 reserves",
    };
    parsed.map_err(|_| needs(container, reason))
}

fn needs(container: &zrt::Kernel<'_>, reason: &'static str) -> DeviceError {
    DeviceError::KernelNeeds { kernel: container.name.into(), reason }
}
