//! What waves did, as the virtual device counted it, and sums of it by source line.
//!
//! Contract: plain data. What the counts would mean on a card is [`crate::prediction`]'s.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use zrt_device::Place;

/// Counts of the virtual device.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Profile {
    /// Instructions that waves executed.
    pub wave_instructions: u64,
    /// By mnemonic.
    pub opcodes: BTreeMap<String, u64>,
    /// By place: those executed most, in descending order.
    #[serde(rename(serialize = "instructions"))]
    pub places: Vec<PlaceCounts>,
    /// By class of memory.
    pub bytes: Bytes,
    /// LDS accesses.
    pub lds: Lds,
}

/// What one instruction did.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub struct PlaceCounts {
    /// Its address.
    #[serde(skip_serializing)]
    pub pc: u64,
    /// Where that is; filled in by whoever knows the code.
    #[serde(skip_deserializing)]
    pub place: Option<Place>,
    /// As the assembler writes it.
    pub instruction: String,
    /// How many times waves executed it.
    pub count: u64,
    /// Total of the lanes that EXEC had enabled.
    pub lanes: u64,
    /// Sectors of memory, 128 bytes each, that they touched; none if they are not counted.
    pub sectors: Option<u64>,
    /// Cycles of LDS in the model of the virtual device's profile; none if it was not accessed.
    pub lds_passes: Option<u64>,
    /// How many of them are due to lanes that met in a bank.
    pub lds_conflicts: Option<u64>,
}

/// What the instructions of one source line did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LineCounts {
    /// File and line.
    pub source: (String, u32),
    /// Its text, if the file can be read.
    pub source_text: Option<String>,
    /// Wave instructions.
    pub count: u64,
    /// Total of the lanes that EXEC had enabled.
    pub lanes: u64,
    /// Those of them that went to memory by lanes, and the sectors that they touched.
    pub memory: Option<MemoryCounts>,
    /// Those of them that went to LDS, and its cycles.
    pub lds: Option<LdsPasses>,
}

/// Vector memory instructions of a source line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MemoryCounts {
    /// Wave instructions.
    pub instructions: u64,
    /// Sectors of 128 bytes, each counted once for each instruction that touches it.
    pub sectors: u64,
}

/// LDS instructions of a source line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LdsPasses {
    /// Wave instructions.
    pub instructions: u64,
    /// Cycles.
    pub passes: u64,
    /// Cycles that are due to lanes that met in a bank.
    pub conflicts: u64,
}

/// Bytes that lanes asked for, by class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Bytes {
    pub vector_load: u64,
    pub vector_store: u64,
    pub atomic: u64,
    pub scalar_load: u64,
    pub scratch: u64,
    pub lds_load: u64,
    pub lds_store: u64,
}

/// LDS accesses and their cycles in the model of the virtual device's profile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[allow(missing_docs)]
pub struct Lds {
    pub accesses: u64,
    pub cycles: u64,
    pub cycles_without_conflict: u64,
}

impl Profile {
    /// Bytes that would go to memory if there were no cache.
    pub fn memory_bytes(&self) -> u64 {
        let bytes = &self.bytes;
        bytes.vector_load + bytes.vector_store + bytes.atomic + bytes.scalar_load + bytes.scratch
    }

    /// The source lines of [`Profile::places`], in descending order of instructions.
    pub fn lines(&self) -> Vec<LineCounts> {
        let mut lines: BTreeMap<&(String, u32), LineCounts> = BTreeMap::new();
        for place in &self.places {
            let Some(at) = &place.place else { continue };
            let Some(source) = &at.source else { continue };
            let line = lines.entry(source).or_insert_with(|| LineCounts {
                source: source.clone(),
                source_text: at.source_text.clone(),
                count: 0,
                lanes: 0,
                memory: None,
                lds: None,
            });
            line.count += place.count;
            line.lanes += place.lanes;
            if let Some(sectors) = place.sectors {
                let memory = line.memory.get_or_insert_default();
                memory.instructions += place.count;
                memory.sectors += sectors;
            }
            if let (Some(passes), Some(conflicts)) = (place.lds_passes, place.lds_conflicts) {
                let lds = line.lds.get_or_insert_default();
                lds.instructions += place.count;
                lds.passes += passes;
                lds.conflicts += conflicts;
            }
        }
        let mut lines: Vec<LineCounts> = lines.into_values().collect();
        lines.sort_by_key(|line| Reverse(line.count));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two instructions of one line and one of another; one without a line counts for none.
    #[test]
    fn lines_are_sums_of_their_instructions() {
        let place = |line: Option<u32>, count, lanes| PlaceCounts {
            pc: 0,
            place: Some(Place {
                pc: 0,
                kernel: None,
                offset: None,
                source: line.map(|line| ("k.c".to_owned(), line)),
                source_text: None,
            }),
            instruction: "s_nop 0".to_owned(),
            count,
            lanes,
            sectors: None,
            lds_passes: None,
            lds_conflicts: None,
        };
        let mut places =
            vec![place(Some(3), 9, 90), place(None, 8, 80), place(Some(2), 6, 60), place(Some(2), 4, 4)];
        (places[2].sectors, places[1].sectors) = (Some(7), Some(100));
        (places[3].lds_passes, places[3].lds_conflicts) = (Some(12), Some(8));
        let lines = Profile { wave_instructions: 27, places, ..Profile::default() }.lines();
        assert_eq!(lines[0].memory, Some(MemoryCounts { instructions: 6, sectors: 7 }));
        assert_eq!(lines[0].lds, Some(LdsPasses { instructions: 4, passes: 12, conflicts: 8 }));
        assert_eq!((lines[1].memory, lines[1].lds), (None, None));
        let told: Vec<_> = lines.iter().map(|line| (line.source.1, line.count, line.lanes)).collect();
        assert_eq!(told, [(2, 10, 64), (3, 9, 90)]);
    }

    /// LDS is no memory; everything else is.
    #[test]
    fn bytes_of_memory_are_those_outside_of_lds() {
        let bytes = Bytes {
            vector_load: 1,
            vector_store: 20,
            atomic: 300,
            scalar_load: 4000,
            scratch: 50_000,
            lds_load: 600_000,
            lds_store: 7_000_000,
        };
        assert_eq!(Profile { bytes, ..Profile::default() }.memory_bytes(), 54_321);
    }
}
