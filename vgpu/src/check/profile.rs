//! What waves did: instructions by opcode and by place, bytes by class of memory, sectors, LDS conflicts.
//!
//! Contract: exact counts of what was executed. Bytes are those requested by active lanes (scalar loads: by the
//! wave), before any cache; for a flat access, by the target of each lane's address. LDS cycles follow a model,
//! described at [`lds_cycles`].

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use zrt_isa::{Encoding, Instruction, Opcode};

use crate::check::lds_access::LdsKind;

/// Banks of LDS, each a dword wide (instruction set reference §9).
const LDS_BANKS: usize = 32;
/// Instructions listed by address: those executed most.
pub const PLACES_MAX: usize = 4096;

/// The counts of a device.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    by_opcode: BTreeMap<&'static str, u64>,
    /// By instruction address.
    by_place: HashMap<u64, PlaceCounts>,
    bytes: Bytes,
    lds: LdsCounts,
}

/// Bytes requested, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bytes {
    /// Global, flat and buffer loads.
    pub vector_load: u64,
    /// Global, flat and buffer stores.
    pub vector_store: u64,
    /// Atomics on memory.
    pub atomic: u64,
    /// Scalar loads.
    pub scalar_load: u64,
    /// Scratch loads and stores.
    pub scratch: u64,
    /// LDS loads.
    pub lds_load: u64,
    /// LDS stores and atomics.
    pub lds_store: u64,
}

/// The counts of one instruction.
#[derive(Clone, Copy, Debug)]
struct PlaceCounts {
    instruction: Instruction,
    count: u64,
    lanes: u64,
    /// Set for a vector memory instruction.
    sectors: Option<u64>,
    /// Set for an instruction that accessed LDS.
    lds: Option<LdsPasses>,
}

/// LDS passes of an access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LdsPasses {
    /// Cycles of the model ([`lds_cycles`]).
    cycles: u64,
    /// Cycles without bank conflicts.
    ideal: u64,
}

/// One instruction's counts as reported.
#[derive(Debug, Serialize)]
struct PlaceReport {
    /// Address of the instruction.
    pc: u64,
    /// The instruction in assembly.
    instruction: String,
    /// Number of executions, summed over waves.
    count: u64,
    /// Lanes enabled in EXEC, summed over executions.
    lanes: u64,
    /// Sectors of memory that were accessed, counted once per execution; `null` if not counted
    /// ([`crate::check::sectors`]).
    sectors: Option<u64>,
    /// LDS cycles in the model; `null` if LDS was not accessed.
    lds_passes: Option<u64>,
    /// How many of these cycles are due to bank conflicts.
    lds_conflicts: Option<u64>,
}

/// LDS accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LdsCounts {
    /// Number of instructions.
    pub accesses: u64,
    /// Cycles of the model.
    pub cycles: u64,
    /// Cycles without bank conflicts.
    pub cycles_without_conflict: u64,
}

/// The counts as reported.
#[derive(Debug, Serialize)]
struct Report<'a> {
    wave_instructions: u64,
    opcodes: &'a BTreeMap<&'static str, u64>,
    places: Vec<PlaceReport>,
    bytes: Bytes,
    lds: LdsCounts,
}

/// A class of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    None,
    VectorLoad,
    VectorStore,
    Atomic,
    Scalar,
    Scratch,
}

/// What is counted for an instruction, known before it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    mnemonic: &'static str,
    class: Class,
    /// Bytes per lane; for scalar loads, of the wave.
    pub width_bytes: u64,
}

/// The part of an access that goes to LDS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LdsLanes<'a> {
    pub kind: LdsKind,
    /// Bytes of an element.
    pub width_bytes: u32,
    /// Lane and address of each element.
    pub addresses: &'a [(u32, u32)],
}

impl Counted {
    pub fn new(instruction: &Instruction) -> Counted {
        let mnemonic = instruction.opcode.mnemonic();
        let is_cache_operation =
            matches!(instruction.opcode, Opcode::GlobalInv | Opcode::GlobalWb | Opcode::GlobalWbinv);
        let class = match instruction.encoding {
            _ if is_cache_operation => Class::None,
            Encoding::Smem if mnemonic.contains("load") => Class::Scalar,
            Encoding::Vscratch => Class::Scratch,
            Encoding::Vglobal | Encoding::Vflat | Encoding::Vbuffer => {
                if mnemonic.contains("atomic") {
                    Class::Atomic
                } else if mnemonic.contains("load") {
                    Class::VectorLoad
                } else {
                    Class::VectorStore
                }
            }
            _ => Class::None,
        };
        Counted { mnemonic, class, width_bytes: width_bytes(instruction) }
    }
}

/// Bytes per lane. The suffix of the name is the width in memory, which the register width is not for narrow
/// accesses.
fn width_bytes(instruction: &Instruction) -> u64 {
    let name = instruction.opcode.mnemonic();
    let suffix = name.rsplit('_').next().unwrap_or_default();
    match suffix {
        // A pair of them.
        "f16" | "bf16" => 4,
        _ => {
            let digits = suffix.trim_start_matches(|one: char| !one.is_ascii_digit());
            let bits: Option<u64> = digits.parse().ok();
            // Formatted accesses, as wide as their registers.
            let operands = instruction.opcode.operands();
            let data = if name.contains("store") { operands.sources[1] } else { operands.destination };
            bits.unwrap_or(u64::from(data.bits())) / 8
        }
    }
}

impl Profile {
    /// Counts one instruction, or (not `is_first`) the second half of one; `lanes` are those that access memory.
    /// Returns its LDS passes.
    pub fn count(
        &mut self,
        counted: &Counted,
        is_first: bool,
        lanes: u32,
        lds: Option<LdsLanes<'_>>,
    ) -> Option<LdsPasses> {
        *self.by_opcode.entry(counted.mnemonic).or_default() += u64::from(is_first);
        let all = u64::from(lanes) * counted.width_bytes;
        match counted.class {
            Class::None => {}
            Class::VectorLoad => self.bytes.vector_load += all,
            Class::VectorStore => self.bytes.vector_store += all,
            Class::Atomic => self.bytes.atomic += all,
            Class::Scalar if is_first => self.bytes.scalar_load += counted.width_bytes,
            Class::Scalar => {}
            Class::Scratch => self.bytes.scratch += all,
        }
        let LdsLanes { kind, width_bytes, addresses } = lds?;
        let (cycles, ideal) = lds_cycles(width_bytes, addresses);
        self.lds.accesses += u64::from(is_first);
        self.lds.cycles += cycles;
        self.lds.cycles_without_conflict += ideal;
        let bytes = addresses.len() as u64 * u64::from(width_bytes);
        match kind {
            LdsKind::Load => self.bytes.lds_load += bytes,
            LdsKind::Store | LdsKind::Atomic => self.bytes.lds_store += bytes,
        }
        Some(LdsPasses { cycles, ideal })
    }

    /// Counts the same instruction by address; `lanes` are those enabled in EXEC.
    pub fn count_place(&mut self, pc: u64, instruction: &Instruction, is_first: bool, lanes: u32) {
        let place = self.place(pc, instruction);
        place.count += u64::from(is_first);
        place.lanes += u64::from(lanes);
    }

    /// Counts its memory and LDS traffic by address.
    pub fn count_traffic(
        &mut self,
        pc: u64,
        instruction: &Instruction,
        sectors: Option<u64>,
        lds: Option<LdsPasses>,
    ) {
        if sectors.is_none() && lds.is_none() {
            return;
        }
        let place = self.place(pc, instruction);
        if let Some(sectors) = sectors {
            *place.sectors.get_or_insert(0) += sectors;
        }
        if let Some(passes) = lds {
            let all = place.lds.get_or_insert_default();
            all.cycles += passes.cycles;
            all.ideal += passes.ideal;
        }
    }

    fn place(&mut self, pc: u64, instruction: &Instruction) -> &mut PlaceCounts {
        let new = PlaceCounts { instruction: *instruction, count: 0, lanes: 0, sectors: None, lds: None };
        self.by_place.entry(pc).or_insert(new)
    }

    /// The most executed instructions; equal counts by address.
    fn places(&self) -> Vec<PlaceReport> {
        let mut places: Vec<(&u64, &PlaceCounts)> = self.by_place.iter().collect();
        places.sort_by_key(|(pc, place)| (Reverse(place.count), **pc));
        let report = |(pc, place): (&u64, &PlaceCounts)| PlaceReport {
            pc: *pc,
            instruction: place.instruction.to_string(),
            count: place.count,
            lanes: place.lanes,
            sectors: place.sectors,
            lds_passes: place.lds.map(|lds| lds.cycles),
            lds_conflicts: place.lds.map(|lds| lds.cycles.saturating_sub(lds.ideal)),
        };
        places.into_iter().take(PLACES_MAX).map(report).collect()
    }

    /// The counts as JSON.
    pub fn text(&self) -> String {
        let report = Report {
            wave_instructions: self.by_opcode.values().sum(),
            opcodes: &self.by_opcode,
            places: self.places(),
            bytes: self.bytes,
            lds: self.lds,
        };
        // Serialising plain data cannot fail.
        serde_json::to_string(&report).unwrap_or_default()
    }
}

/// Cycles of an access, and cycles without conflicts. In the model there are 32 banks of one dword. In each cycle a
/// bank serves one dword address, to all lanes that request it. 32 lanes are served at a time for one dword each,
/// 16 for two, 8 for three and four. The order used by the chip's own arbiter is not documented.
pub(crate) fn lds_cycles(width_bytes: u32, addresses: &[(u32, u32)]) -> (u64, u64) {
    let dwords = width_bytes.div_ceil(4).max(1);
    let together = match dwords {
        1 => 32,
        2 => 16,
        _ => 8,
    };
    let (mut cycles, mut ideal) = (0, 0);
    for lanes in addresses.chunk_by(|left, right| left.0 / together == right.0 / together) {
        let mut banks: [Vec<u32>; LDS_BANKS] = Default::default();
        for (_, address) in lanes {
            for dword in (address / 4)..(address / 4 + dwords) {
                let bank = &mut banks[dword as usize % LDS_BANKS];
                if !bank.contains(&dword) {
                    bank.push(dword);
                }
            }
        }
        cycles += banks.iter().map(Vec::len).max().unwrap_or(0) as u64;
        ideal += 1;
    }
    (cycles, ideal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycles(width_bytes: u32, address: impl Fn(u32) -> u32) -> (u64, u64) {
        let addresses: Vec<(u32, u32)> = (0..32).map(|lane| (lane, address(lane))).collect();
        lds_cycles(width_bytes, &addresses)
    }

    #[test]
    fn conflicts_are_counted_by_bank() {
        assert_eq!(cycles(4, |lane| 4 * lane), (1, 1));
        assert_eq!(cycles(4, |_| 64), (1, 1), "one address is broadcast");
        assert_eq!(cycles(4, |lane| 8 * lane), (2, 1));
        assert_eq!(cycles(4, |lane| 128 * lane), (32, 1));
        assert_eq!(cycles(8, |lane| 8 * lane), (2, 2));
        assert_eq!(cycles(16, |lane| 16 * lane), (4, 4));
    }

    /// flat_load_b32 v1, v[2:3] in llvm-mc 19's words: three lanes in memory, two in LDS.
    #[test]
    fn a_flat_access_is_counted_where_its_lanes_go() {
        let counted = Counted::new(&zrt_isa::decode(&[0xEC05_007C, 1, 2]).unwrap());
        let mut profile = Profile::default();
        let addresses = [(3, 0), (4, 4)];
        let lds = LdsLanes { kind: LdsKind::Load, width_bytes: 4, addresses: &addresses };
        let passes = profile.count(&counted, true, 3, Some(lds));
        assert_eq!(passes, Some(LdsPasses { cycles: 1, ideal: 1 }));
        assert_eq!((profile.bytes.vector_load, profile.bytes.lds_load), (12, 8));
        assert_eq!((profile.lds.accesses, profile.lds.cycles), (1, 1));
    }

    /// Two waves, one of 64 lanes, execute s_nop 0 (0xBF800000); one continues to s_endpgm (0xBFB00000).
    #[test]
    fn places_are_counted_with_their_lanes() {
        let [nop, end] = [0xBF80_0000, 0xBFB0_0000].map(|word| zrt_isa::decode(&[word]).unwrap());
        let mut profile = Profile::default();
        profile.count_place(0x10, &end, true, 32);
        profile.count_place(0x8, &nop, true, 5);
        profile.count_place(0x8, &nop, true, 32);
        profile.count_place(0x8, &nop, false, 3);
        // What is counted does not depend on the kind of instruction.
        profile.count_traffic(0x8, &nop, Some(3), None);
        profile.count_traffic(0x8, &nop, Some(2), None);
        profile.count_traffic(0x10, &end, None, Some(LdsPasses { cycles: 5, ideal: 2 }));
        profile.count_traffic(0x10, &end, None, Some(LdsPasses { cycles: 2, ideal: 1 }));
        profile.count_traffic(0x18, &end, None, None);
        let text = profile.text();
        for place in [
            r#"{"pc":8,"instruction":"s_nop 0","count":2,"lanes":40,"sectors":5,"lds_passes":null,"lds_conflicts":null}"#,
            r#"{"pc":16,"instruction":"s_endpgm","count":1,"lanes":32,"sectors":null,"lds_passes":7,"lds_conflicts":4}"#,
        ] {
            assert!(text.contains(place), "{place} in {text}");
        }
        (0..2 * PLACES_MAX as u64).for_each(|pc| profile.count_place(pc, &nop, true, 1));
        assert_eq!(profile.places().len(), PLACES_MAX);
    }

    /// Words of llvm-mc 19: class, and bytes of a lane or, of a scalar load, of the wave.
    #[test]
    fn bytes_are_those_of_memory() {
        use Class::{Atomic, None as Nothing, Scalar, Scratch, VectorLoad, VectorStore};
        for (words, class, bytes) in [
            (&[0xEE04_0004, 1, 0][..], VectorLoad, 1), // global_load_u8 v1, v0, s[4:5]
            (&[0xEE04_4004, 1, 0], VectorLoad, 1),     // global_load_i8 v1, v0, s[4:5]
            (&[0xEE08_8004, 1, 0], VectorLoad, 1),     // global_load_d16_hi_i8 v1, v0, s[4:5]
            (&[0xEE04_8004, 1, 0], VectorLoad, 2),     // global_load_u16 v1, v0, s[4:5]
            (&[0xEE04_C004, 1, 0], VectorLoad, 2),     // global_load_i16 v1, v0, s[4:5]
            (&[0xEE08_C004, 1, 0], VectorLoad, 2),     // global_load_d16_hi_b16 v1, v0, s[4:5]
            (&[0xEE05_0004, 1, 0], VectorLoad, 4),     // global_load_b32 v1, v0, s[4:5]
            (&[0xEE05_8004, 2, 0], VectorLoad, 12),    // global_load_b96 v[2:4], v0, s[4:5]
            (&[0xEE05_C004, 4, 0], VectorLoad, 16),    // global_load_b128 v[4:7], v0, s[4:5]
            (&[0xEE06_0004, 0x80_0000, 0], VectorStore, 1), // global_store_b8 v0, v1, s[4:5]
            (&[0xEE09_4004, 0x80_0000, 0], VectorStore, 2), // global_store_d16_hi_b16 v0, v1, s[4:5]
            (&[0xEE07_4004, 0x200_0000, 0], VectorStore, 16), // global_store_b128 v0, v[4:7], s[4:5]
            (&[0xEE0D_4004, 0x80_0000, 0], Atomic, 4), // global_atomic_add_u32 v0, v1, s[4:5]
            (&[0xEE10_C004, 0x100_0000, 0], Atomic, 8), // global_atomic_add_u64 v0, v[2:3], s[4:5]
            (&[0xEE16_4004, 0x80_0000, 0], Atomic, 4), // global_atomic_pk_add_f16 v0, v1, s[4:5]
            (&[0xEE16_8004, 0x80_0000, 0], Atomic, 4), // global_atomic_pk_add_bf16 v0, v1, s[4:5]
            (&[0xEE10_8004, 0x200_0000, 0], Atomic, 8), // global_atomic_cmpswap_b64 v0, v[4:7], s[4:5]
            (&[0xEC05_007C, 2, 0], VectorLoad, 4),     // flat_load_b32 v2, v[0:1]
            (&[0xEC06_C07C, 0x100_0000, 0], VectorStore, 8), // flat_store_b64 v[0:1], v[2:3]
            (&[0xED05_007C, 0x2_0002, 0], Scratch, 4), // scratch_load_b32 v2, v0, off
            (&[0xED07_407C, 0x200_0000, 0], Scratch, 16), // scratch_store_b128 off, v[4:7], off
            (&[0xC404_007C, 0x4080_0801, 0], VectorLoad, 1), // buffer_load_u8 v1, v0, s[4:7], null offen
            (&[0xC400_807C, 0x8080_0801, 0], VectorLoad, 12), // buffer_load_format_xyz v[1:3], v0, s[4:7], null idxen
            (&[0xC402_407C, 0x8080_0801, 0], VectorLoad, 4), // buffer_load_d16_format_xy v1, v0, s[4:7], null idxen
            (&[0xC401_007C, 0x8080_0801, 0], VectorStore, 4), // buffer_store_format_x v1, v0, s[4:7], null idxen
            (&[0xC40D_407C, 0x4080_0801, 0], Atomic, 4), // buffer_atomic_add_u32 v1, v0, s[4:7], null offen
            (&[0xF401_0100, 0xF800_0000], Scalar, 1),    // s_load_i8 s4, s[0:1], 0x0
            (&[0xF401_6100, 0xF800_0000], Scalar, 2),    // s_load_u16 s4, s[0:1], 0x0
            (&[0xF400_A100, 0xF800_0000], Scalar, 12),   // s_load_b96 s[4:6], s[0:1], 0x0
            (&[0xF400_8100, 0xF800_0000], Scalar, 64),   // s_load_b512 s[4:19], s[0:1], 0x0
            (&[0xF402_0100, 0xF800_0000], Scalar, 4),    // s_buffer_load_b32 s4, s[0:3], 0x0
            (&[0xF404_C000, 0xF800_0000], Nothing, 0),   // s_prefetch_data s[0:1], 0x0, null, 0
            (&[0xEE0A_C07C, 0x8_0000, 0], Nothing, 0),   // global_inv scope:SCOPE_DEV
            (&[0xEE0B_007C, 0xC_0000, 0], Nothing, 0),   // global_wb scope:SCOPE_SYS
            (&[0xEE13_C07C, 0x4_0000, 0], Nothing, 0),   // global_wbinv scope:SCOPE_SE
        ] {
            let instruction = zrt_isa::decode(words).unwrap();
            let counted = Counted::new(&instruction);
            assert_eq!((counted.class, counted.width_bytes), (class, bytes), "{instruction}");
        }
        // Neither an access of LDS nor another instruction is one of memory: ds_load_b64 v[2:3], v0; s_nop 0.
        for words in [&[0xD9D8_0000, 0x0200_0000][..], &[0xBF80_0000]] {
            assert_eq!(Counted::new(&zrt_isa::decode(words).unwrap()).class, Class::None);
        }
    }

    /// Two halves of a wave64 are one instruction; a scalar load is made once, other accesses by each lane.
    #[test]
    fn every_class_has_its_sum_in_the_text() {
        let mut profile = Profile::default();
        let mut count = |words: &[u32]| {
            let instruction = zrt_isa::decode(words).unwrap();
            profile.count(&Counted::new(&instruction), true, 3, None);
            profile.count(&Counted::new(&instruction), false, 5, None);
        };
        count(&[0xEE05_C004, 4, 0]); // global_load_b128 v[4:7], v0, s[4:5]
        count(&[0xEE06_8004, 0x80_0000, 0]); // global_store_b32 v0, v1, s[4:5]
        count(&[0xEE10_C004, 0x100_0000, 0]); // global_atomic_add_u64 v0, v[2:3], s[4:5]
        count(&[0xF400_8100, 0xF800_0000]); // s_load_b512 s[4:19], s[0:1], 0x0
        count(&[0xED06_807C, 0x80_0000, 0]); // scratch_store_b32 off, v1, off
        let lds = zrt_isa::decode(&[0xD938_0201, 0x0004_0200]).unwrap(); // ds_store_2addr_b64 v0, v[2:3], v[4:5]
        for (is_first, kind) in [(true, LdsKind::Store), (false, LdsKind::Store), (true, LdsKind::Atomic)] {
            let lanes = LdsLanes { kind, width_bytes: 8, addresses: &[(0, 0), (1, 128), (17, 8)] };
            // Lanes 0 and 1 use the same two banks; lane 17 is served in another cycle.
            let passes = profile.count(&Counted::new(&lds), is_first, 3, Some(lanes));
            assert_eq!(passes, Some(LdsPasses { cycles: 3, ideal: 2 }));
        }
        let lanes = LdsLanes { kind: LdsKind::Load, width_bytes: 1, addresses: &[(0, 0)] };
        profile.count(&Counted::new(&lds), true, 1, Some(lanes));
        assert_eq!(
            profile.text(),
            concat!(
                r#"{"wave_instructions":8,"opcodes":{"ds_store_2addr_b64":3,"global_atomic_add_u64":1,"global"#,
                r#"_load_b128":1,"global_store_b32":1,"s_load_b512":1,"scratch_store_b32":1},"places":[],"byt"#,
                r#"es":{"vector_load":128,"vector_store":32,"atomic":64,"scalar_load":64,"scratch":32,"lds_lo"#,
                r#"ad":1,"lds_store":72},"lds":{"accesses":3,"cycles":10,"cycles_without_conflict":7}}"#
            )
        );
    }

    /// 12 and 16 bytes are served eight lanes at a time, and a lane of a narrow access has a dword.
    #[test]
    fn passes_depend_on_lanes_and_dwords() {
        assert_eq!(cycles(1, |lane| lane), (1, 1), "four lanes in a dword");
        assert_eq!(cycles(2, |lane| 128 * lane), (32, 1));
        assert_eq!(cycles(8, |lane| 128 * lane), (32, 2));
        assert_eq!(cycles(12, |lane| 12 * lane), (4, 4));
        assert_eq!(cycles(12, |lane| 16 * lane), (4, 4));
        assert_eq!(cycles(16, |lane| 32 * lane), (8, 4));
        assert_eq!(lds_cycles(4, &[]), (0, 0));
        assert_eq!(lds_cycles(8, &[(15, 0), (16, 128)]), (2, 2), "in two passes");
        assert_eq!(lds_cycles(8, &[(14, 0), (15, 128)]), (2, 1), "in one, with a conflict");
        assert_eq!(lds_cycles(16, &[(7, 0), (8, 128)]), (2, 2));
        assert_eq!(lds_cycles(16, &[(6, 0), (7, 128)]), (2, 1));
        // A dword's bank is its number modulo 32; both dwords of an unaligned access count.
        assert_eq!(lds_cycles(8, &[(0, 124), (1, 256)]), (2, 1));
        assert_eq!(lds_cycles(8, &[(0, 124), (1, 260)]), (1, 1));
    }
}
