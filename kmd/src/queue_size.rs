//! Sizes of the buffers that a queue needs on gfx12.
//!
//! Contract: pure arithmetic, hardware reference §2.6. The node's exported value takes precedence over the formula,
//! because the driver compares with its own value exactly.

use crate::topology::GpuNode;
use zrt_mem::ByteLen;

/// End-of-pipe buffer of gfx12.
pub const EOP_BYTES: u32 = 4096;
/// Waves that the driver counts for one CU.
const WAVES_PER_CU: u64 = 32;
/// Bytes per CU that a context save stores: VGPRs.
const VGPR_BYTES_PER_CU: u64 = 0x6_0000;
/// SGPRs.
const SGPR_BYTES_PER_CU: u64 = 0x4000;
/// LDS.
const LDS_BYTES_PER_CU: u64 = 0x1_0000;
/// Hardware registers.
const HARDWARE_REGISTER_BYTES_PER_CU: u64 = 0x1000;
/// Header at the start of the save area.
const HEADER_BYTES: u64 = 40;
/// Control stack per wave.
const CONTROL_STACK_BYTES_PER_WAVE: u64 = 12;
/// Tail of the control stack.
const CONTROL_STACK_TAIL_BYTES: u64 = 8;
/// Debug memory per wave.
const DEBUG_BYTES_PER_WAVE: u64 = 32;

/// Sizes of one queue's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueBufferSizes {
    /// Control stack of a context save.
    pub control_stack_bytes: u32,
    /// Control stack and wave data: the size passed to CREATE_QUEUE.
    pub save_area_bytes: u32,
    /// The whole buffer, debug memory included: exactly the size to allocate.
    pub save_area_total: ByteLen,
}

impl QueueBufferSizes {
    /// Sizes for a node. `None` if a size does not fit 32 bits, which no gfx12 chip comes near.
    pub fn of(node: &GpuNode) -> Option<QueueBufferSizes> {
        let properties = &node.properties;
        let computed = QueueBufferSizes::computed(node.compute_units(), properties.num_xcc)?;
        let control_stack = properties.control_stack_bytes.unwrap_or(computed.control_stack_bytes);
        let save_area = properties.cwsr_bytes.unwrap_or(computed.save_area_bytes);
        let debug = debug_bytes(u64::from(node.compute_units()) * WAVES_PER_CU);
        let total = (u64::from(save_area) + debug).checked_mul(u64::from(properties.num_xcc))?;
        Some(QueueBufferSizes {
            control_stack_bytes: control_stack,
            save_area_bytes: save_area,
            save_area_total: ByteLen(total).align_up(4096)?,
        })
    }

    /// The formula alone, for `compute_units` per compute die.
    pub fn computed(compute_units: u32, num_xcc: u32) -> Option<QueueBufferSizes> {
        let units = u64::from(compute_units);
        let waves = units * WAVES_PER_CU;
        let per_unit =
            VGPR_BYTES_PER_CU + SGPR_BYTES_PER_CU + LDS_BYTES_PER_CU + HARDWARE_REGISTER_BYTES_PER_CU;
        let wave_data = (units * per_unit).next_multiple_of(4096);
        let control_stack = (HEADER_BYTES + waves * CONTROL_STACK_BYTES_PER_WAVE + CONTROL_STACK_TAIL_BYTES)
            .next_multiple_of(4096);
        let save_area = control_stack + wave_data;
        let total = (save_area + debug_bytes(waves)).checked_mul(u64::from(num_xcc))?;
        Some(QueueBufferSizes {
            control_stack_bytes: u32::try_from(control_stack).ok()?,
            save_area_bytes: u32::try_from(save_area).ok()?,
            save_area_total: ByteLen(total).align_up(4096)?,
        })
    }
}

fn debug_bytes(waves: u64) -> u64 {
    (waves * DEBUG_BYTES_PER_WAVE).next_multiple_of(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hardware reference §2.6, both columns.
    #[test]
    fn sizes_are_those_of_the_table() {
        let of_64 = QueueBufferSizes::computed(64, 1).unwrap();
        assert_eq!(of_64.control_stack_bytes, 28_672);
        assert_eq!(of_64.save_area_bytes, 30_699_520);
        assert_eq!(of_64.save_area_total, ByteLen(30_765_056));
        let of_56 = QueueBufferSizes::computed(56, 1).unwrap();
        assert_eq!(of_56.control_stack_bytes, 24_576);
        assert_eq!(of_56.save_area_bytes, 26_861_568);
        assert_eq!(of_56.save_area_total, ByteLen(26_918_912));
    }

    #[test]
    fn what_the_node_says_wins() {
        let properties = crate::topology::GpuProperties {
            simd_count: 128,
            simd_per_cu: 2,
            num_xcc: 1,
            cwsr_bytes: Some(40_960),
            control_stack_bytes: Some(8192),
            ..Default::default()
        };
        let node = GpuNode { node: 1, gpu_id: 1, name: String::new(), properties, memory_banks: Vec::new() };
        let sizes = QueueBufferSizes::of(&node).unwrap();
        assert_eq!((sizes.control_stack_bytes, sizes.save_area_bytes), (8192, 40_960));
        assert_eq!(sizes.save_area_total, ByteLen(40_960 + 0x1_0000));
    }
}
