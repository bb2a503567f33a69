//! Counts the memory sectors that the lanes of one vector memory instruction access together.
//!
//! Contract: computed before the instruction executes, from the addresses of the active lanes. Lanes in LDS, in
//! private memory or outside their buffer do not count, nor do cache operations, scratch and formatted buffer
//! accesses. The halves of a wave64 are counted separately. Cost: a pass over 32 addresses and a sort, with the
//! profile enabled.

use zrt_isa::{Encoding, Instruction, Opcode, Operand};

use crate::shader::address::{AddressMode, Buffer, Flat, LaneIndex, ScalarBase, Target, VectorPair};
use crate::shader::micro::MicroOp;
use crate::shader::wave::{LANES, Wave};

/// Bytes of a sector, aligned to its size: a line of the path between a compute unit and GL2, where a GL2 line is
/// two of them (hardware reference §1.4; instruction set reference §4.2: prefetches count lines of 128 bytes).
pub(crate) const SECTOR_BYTES: u64 = 128;

/// Computes the target of a lane's memory access.
type LaneTarget = fn(&Wave, &MicroOp, usize, u32) -> Target;

/// How an instruction forms the addresses of its lanes; `None` if sectors are not counted.
fn lane_target(instruction: &Instruction) -> Option<LaneTarget> {
    let mode: LaneTarget = match (instruction.encoding, instruction.opcode, instruction.sources[2]) {
        (_, Opcode::GlobalInv | Opcode::GlobalWb | Opcode::GlobalWbinv, _) => return None,
        (
            Encoding::Vglobal,
            Opcode::GlobalLoadAddtidB32 | Opcode::GlobalStoreAddtidB32,
            Operand::Scalar(_),
        ) => LaneIndex::lane,
        (Encoding::Vglobal, _, Operand::Scalar(_)) => ScalarBase::lane,
        (Encoding::Vglobal, ..) => VectorPair::lane,
        (Encoding::Vflat, ..) => Flat::lane,
        (Encoding::Vbuffer, opcode, _) if !opcode.mnemonic().contains("format") => Buffer::lane,
        _ => return None,
    };
    Some(mode)
}

/// Sectors that the active lanes access, each counted once; `None` if they are not counted.
pub(crate) fn touched(wave: &Wave, instruction: &Instruction, op: &MicroOp, width_bytes: u64) -> Option<u64> {
    let target = lane_target(instruction)?;
    let exec = wave.exec();
    let bytes = width_bytes.max(1);
    let mut sectors = Vec::with_capacity(2 * LANES);
    for lane in (0..LANES).filter(|lane| exec >> lane & 1 != 0) {
        if let Target::Global(va) = target(wave, op, lane, bytes as u32) {
            sectors.extend([va / SECTOR_BYTES, va.wrapping_add(bytes - 1) / SECTOR_BYTES]);
        }
    }
    sectors.sort_unstable();
    sectors.dedup();
    Some(sectors.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Level;

    /// Sectors of an instruction (words of llvm-mc 19) in a wave whose v0 and v1 hold an address for each lane.
    fn sectors(words: &[u32], exec: u32, address: impl Fn(u64) -> u64) -> Option<u64> {
        let mut wave = Wave::new();
        wave.scalar[126] = exec;
        for lane in 0..LANES {
            let va = address(lane as u64);
            wave.vector[0].0[lane] = va as u32;
            wave.vector[1].0[lane] = (va >> 32) as u32;
        }
        // s[4:5]: a base for the instructions that have one.
        wave.scalar[5] = 1;
        // s[4:7]: a buffer of 256 bytes, to which byte offsets are compared.
        (wave.scalar[6], wave.scalar[7]) = (256, 3 << 28);
        let instruction = zrt_isa::decode(words).unwrap();
        let op = crate::shader::translate::translate(&instruction, Level::BASELINE).unwrap();
        touched(&wave, &instruction, &op, crate::check::profile::Counted::new(&instruction).width_bytes)
    }

    #[test]
    fn each_sector_counts_once() {
        // global_load_b32 v2, v[0:1], off
        let load = &[0xEE05_007C, 0x0000_0002, 0];
        assert_eq!(sectors(load, !0, |lane| 0x1_0000_0000 + 4 * lane), Some(1));
        assert_eq!(sectors(load, !0, |lane| 0x1_0000_0040 + 4 * lane), Some(2));
        assert_eq!(sectors(load, !0, |lane| 0x1_0000_0000 + 4 * (31 - lane)), Some(1));
        assert_eq!(sectors(load, !0, |lane| 0x1_0000_0000 + 128 * lane), Some(32));
        assert_eq!(sectors(load, 0b101, |lane| 0x1_0000_0000 + 128 * lane), Some(2), "two lanes are on");
        assert_eq!(sectors(load, 0, |lane| lane), Some(0));
        assert_eq!(sectors(load, 1, |_| 0x1_0000_007E), Some(2), "one access in two sectors");
    }

    #[test]
    fn lanes_go_where_the_instruction_says() {
        // global_load_b128 v[4:7], v0, s[4:5]: 16 bytes of each lane.
        assert_eq!(sectors(&[0xEE05_C004, 4, 0], !0, |lane| 16 * lane), Some(4));
        // flat_load_b32 v2, v[0:1]: every other lane is in LDS.
        let flat =
            |lane: u64| if lane % 2 == 0 { (1 << 48) | (4 * lane) } else { 0x1_0000_0000 + 128 * lane };
        assert_eq!(sectors(&[0xEC05_007C, 2, 0], !0, flat), Some(16));
        // scratch_load_b32 v2, v0, off; global_inv scope:SCOPE_SE
        assert_eq!(sectors(&[0xED05_007C, 0x0002_0002, 0], !0, |lane| 4 * lane), None);
        assert_eq!(sectors(&[0xEE0A_C07C, 0x0004_0000, 0], !0, |lane| lane), None);
    }

    #[test]
    fn every_form_has_its_addresses_or_is_not_counted() {
        let apart = |lane: u64| 128 * lane;
        for (words, expected) in [
            (&[0xEE0A_0004, 1, 0][..], Some(1)), // global_load_addtid_b32 v1, s[4:5]
            (&[0xEE0A_4004, 0x80_0000, 0], Some(1)), // global_store_addtid_b32 v1, s[4:5]
            (&[0xEE05_0004, 1, 0], Some(32)),    // global_load_b32 v1, v0, s[4:5]
            (&[0xEE0D_4004, 0x80_0000, 0], Some(32)), // global_atomic_add_u32 v0, v1, s[4:5]
            (&[0xEC05_407C, 2, 0x1000], Some(32)), // flat_load_b64 v[2:3], v[0:1] offset:16
            (&[0xC405_007C, 0x4080_0801, 0], Some(2)), // buffer_load_b32 v1, v0, s[4:7], null offen
            (&[0xC400_807C, 0x8080_0801, 0], None), // buffer_load_format_xyz v[1:3], v0, s[4:7], null idxen
            (&[0xC420_407C, 0x9900_0801, 0], None), // tbuffer_load_format_xy
            (&[0xEE0A_C07C, 0x8_0000, 0], None), // global_inv scope:SCOPE_DEV
            (&[0xEE0B_007C, 0xC_0000, 0], None), // global_wb scope:SCOPE_SYS
            (&[0xEE13_C07C, 0x4_0000, 0], None), // global_wbinv scope:SCOPE_SE
            (&[0xED07_407C, 0x200_0000, 0], None), // scratch_store_b128 off, v[4:7], off
            (&[0xF400_0100, 0xF800_0000], None), // s_load_b32 s4, s[0:1], 0x0
            (&[0xD8D8_0000, 0x0100_0000], None), // ds_load_b32 v1, v0
        ] {
            assert_eq!(sectors(words, !0, apart), expected, "{}", zrt_isa::decode(words).unwrap());
        }
        // global_load_b32 v1, v0, s[4:5]: the register after that of the offset is no part of the address.
        assert_eq!(sectors(&[0xEE05_0004, 1, 0], !0, |lane| lane << 32), Some(1));
        let buffer = &[0xC405_007C, 0x4080_0801, 0];
        assert_eq!(sectors(buffer, !0, |lane| 252 + lane), Some(1), "the last dword, and nothing beyond");
        assert_eq!(sectors(buffer, !0, |lane| 253 + lane), Some(0));
        let load = &[0xEE05_007C, 0x0000_0002, 0];
        assert_eq!(sectors(load, 1, |_| u64::MAX), Some(2), "the last sector and the first one");
        // flat_load_b32 v2, v[0:1]: private memory is not counted.
        assert_eq!(sectors(&[0xEC05_007C, 2, 0], !0, |lane| (2 << 48) | (128 * lane)), Some(0));
        // global_load_u8 v2, v[0:1], off: one byte.
        assert_eq!(sectors(&[0xEE04_007C, 2, 0], 1, |_| 127), Some(1));
        assert_eq!(sectors(&[0xEE04_807C, 2, 0], 1, |_| 127), Some(2), "global_load_u16 has two");
    }
}
