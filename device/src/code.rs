//! Code that is not in a container of ours: any image with any entry, resource words and scratch.
//!
//! Contract: as for [`Kernel`](crate::Kernel), but the caller provides the registers: `zrt-pm4` refuses what does not
//! fit gfx12. Scratch memory belongs to the kernel and is shared by its dispatches, so two of them may not overlap.
//! Set-up only. Scratch sizes: hardware reference §7.

use crate::error::DeviceError;
use crate::info::DeviceInfo;
use crate::kernel::{padded, padded_len};
use crate::memory::{Buffer, Space};
use crate::registry::CodeLabel;
use zrt_isa::resources::{Rsrc1, Rsrc2, Rsrc3};
use zrt_mem::{ByteLen, GpuVa, Heap};
use zrt_pm4::registers::{ResourceLimits, TmpringSize, WaveSize};
use zrt_pm4::{KernelParameters, KernelState};

/// Lanes that scratch is sized for: those of a wave64, whatever the kernel's wave is.
const SCRATCH_LANES: u64 = 64;
/// Unit of TMPRING_SIZE.WAVESIZE in bytes.
const SCRATCH_UNIT_BYTES: u64 = 256;
/// Waves that can be resident on one compute unit.
const WAVES_PER_CU: u64 = 32;
/// Waves of the largest workgroup, 1024 work-items in wave32: with scratch for fewer waves it could not start.
const WAVES_PER_GROUP_MAX: u64 = 32;
/// Scratch memory to stay within, if possible: beyond it, fewer waves run at once.
const SCRATCH_BUFFER_BYTES_AIM: u64 = 256 << 20;

/// Maximum size of code, in bytes, that can be loaded as one piece, as for a container
/// (`zrt_isa::zrt::FILE_BYTES_MAX`).
pub const CODE_BYTES_MAX: ByteLen = ByteLen(64 << 20);

/// Code in device memory, at a multiple of 4096 bytes. Keep it as long as any graph that runs it.
#[derive(Debug)]
pub struct Code {
    buffer: Buffer,
    len: ByteLen,
}

/// What a launch needs to know about its kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchParameters<'a> {
    /// Name, for reports.
    pub name: &'a str,
    /// First instruction: a multiple of 256.
    pub entry: GpuVa,
    /// PGM_RSRC1.
    pub rsrc1: u32,
    /// PGM_RSRC2. If SCRATCH_EN is set, scratch is allocated.
    pub rsrc2: u32,
    /// PGM_RSRC3.
    pub rsrc3: u32,
    /// Lanes of a wave.
    pub wave_size: zrt_isa::resources::WaveSize,
    /// Work-items of a group in x, y, z; at most 1024 together.
    pub workgroup: [u32; 3],
    /// Scratch of a lane in bytes.
    pub scratch_bytes: u32,
}

/// A kernel with explicit registers, ready for [`Recorder::launch`](crate::Recorder::launch). Keep it as long as any
/// graph that dispatches it.
#[derive(Debug)]
pub struct LaunchKernel {
    pub(crate) state: KernelState,
    pub(crate) name: String,
    pub(crate) scratch: Option<Scratch>,
}

/// Scratch memory of a kernel.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) size: TmpringSize,
    pub(crate) buffer: Buffer,
}

impl Code {
    pub(crate) fn allocate(space: &Space, label: &CodeLabel<'_>, len: ByteLen) -> Result<Code, DeviceError> {
        if len.0 > CODE_BYTES_MAX.0 {
            return Err(DeviceError::CodeLength { name: label.name.into(), len, most: CODE_BYTES_MAX });
        }
        let whole = ByteLen(padded_len(len.0));
        let buffer = space.allocate(Heap::DeviceLocal, whole, label.name, true)?;
        space.registry.name_code(buffer.entry(), label);
        Ok(Code { buffer, len })
    }

    /// The bytes, then the padding that the prefetcher may run into; if the image is too short, padding fills the rest.
    pub(crate) fn padded(&self, image: &[u8]) -> Vec<u8> {
        padded(image, self.len.0 as usize)
    }

    /// Address of the image's first byte.
    pub fn va(&self) -> GpuVa {
        self.buffer.va
    }

    /// Length without padding.
    pub fn len(&self) -> ByteLen {
        self.len
    }

    /// The memory.
    pub fn buffer(&self) -> &Buffer {
        &self.buffer
    }
}

impl LaunchKernel {
    pub(crate) fn new(
        space: &Space,
        info: &DeviceInfo,
        parameters: &LaunchParameters<'_>,
    ) -> Result<LaunchKernel, DeviceError> {
        let needs = |reason| DeviceError::KernelNeeds { kernel: parameters.name.into(), reason };
        let refused = |source| DeviceError::KernelResources { kernel: parameters.name.into(), source };
        let rsrc2 = Rsrc2::parse(parameters.rsrc2).map_err(refused)?;
        Rsrc1::parse(parameters.rsrc1).map_err(refused)?;
        Rsrc3::parse(parameters.rsrc3).map_err(refused)?;
        let state = KernelState::with_scratch(&KernelParameters {
            code_address: parameters.entry.0,
            rsrc1: parameters.rsrc1,
            rsrc2: parameters.rsrc2,
            rsrc3: parameters.rsrc3,
            workgroup: parameters.workgroup,
            limits: ResourceLimits::default(),
            wave: match parameters.wave_size {
                zrt_isa::resources::WaveSize::Wave32 => WaveSize::Wave32,
                zrt_isa::resources::WaveSize::Wave64 => WaveSize::Wave64,
            },
        })?;
        let scratch = match rsrc2.scratch {
            false => None,
            true => {
                let (size, len) =
                    scratch_size(info.compute_units, info.shader_engines, parameters.scratch_bytes)
                        .ok_or_else(|| needs("it uses more scratch memory than TMPRING_SIZE can say"))?;
                let label = format!("scratch of {}", parameters.name);
                let buffer = space.allocate(Heap::DeviceLocal, len, &label, false)?;
                Some(Scratch { size, buffer })
            }
        };
        Ok(LaunchKernel { state, name: parameters.name.into(), scratch })
    }

    /// Its scratch memory.
    pub fn scratch(&self) -> Option<&Buffer> {
        self.scratch.as_ref().map(|scratch| &scratch.buffer)
    }
}

/// TMPRING_SIZE and the memory that it needs, for this many bytes per lane.
fn scratch_size(compute_units: u32, shader_engines: u32, lane_bytes: u32) -> Option<(TmpringSize, ByteLen)> {
    let lane_bytes = u64::from(lane_bytes).max(4).next_multiple_of(4);
    let wave_bytes = (lane_bytes * SCRATCH_LANES).next_multiple_of(SCRATCH_UNIT_BYTES);
    let engines = u64::from(shader_engines);
    let resident = WAVES_PER_CU * u64::from(compute_units) / engines;
    let affordable = SCRATCH_BUFFER_BYTES_AIM / (wave_bytes * engines);
    let waves = resident.min(affordable).max(WAVES_PER_GROUP_MAX);
    let size = TmpringSize {
        waves: u16::try_from(waves).ok()?,
        wave_size: u32::try_from(wave_bytes / SCRATCH_UNIT_BYTES).ok()?,
    };
    size.to_word().ok()?;
    Some((size, ByteLen(wave_bytes * waves * engines)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The R9700's example of hardware reference §7, and kernels that want far more.
    #[test]
    fn scratch_is_sized_as_the_reference_says() {
        let word = |bytes| {
            let (size, len) = scratch_size(64, 4, bytes)?;
            Some((size.to_word().unwrap(), len.0))
        };
        assert_eq!(word(64), Some((0x0001_0200, 8 << 20)));
        assert_eq!(word(61), Some((0x0001_0200, 8 << 20)));
        // 16 KiB of a lane are 1 MiB of a wave: 64 waves of each of four engines make 256 MiB.
        assert_eq!(word(16 << 10), Some((4096 << 12 | 64, 256 << 20)));
        // Never fewer waves than a group may have.
        assert_eq!(word(64 << 10), Some((16384 << 12 | 32, 512 << 20)));
        assert_eq!(word(u32::MAX), None);
    }
}
