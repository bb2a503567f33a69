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
        "b8" | "u8" | "i8" => 1,
        "b16" | "u16" | "i16" => 2,
        "f16" | "bf16" => 4,
        _ => {
            let digits = suffix.trim_start_matches(|one: char| !one.is_ascii_digit());
            let bits: Option<u64> = digits.parse().ok();
            bits.map_or_else(
                || u64::from(instruction.opcode.operands().destination.bits()) / 8,
                |bits| bits / 8,
            )
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

    /// Words of llvm-mc 19.
    #[test]
    fn bytes_are_those_of_memory() {
        let width = |words: &[u32]| Counted::new(&zrt_isa::decode(words).unwrap()).width_bytes;
        // global_load_b128 v[0:3], v0, s[4:5]
        assert_eq!(width(&[0xEE05_C004, 0, 0]), 16);
        // global_load_u8 v1, v0, s[4:5]
        assert_eq!(width(&[0xEE04_0004, 1, 0]), 1);
        // s_load_b128 s[4:7], s[0:1], 0x0
        assert_eq!(width(&[0xF400_4100, 0xF800_0000]), 16);
    }
}
