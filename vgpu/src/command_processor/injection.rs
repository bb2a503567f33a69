//! Deliberate misbehaviour of the device, which a client must survive or diagnose.
//!
//! Contract: plain settings, fixed when the board is powered up; everything is off by default. A planted fault is
//! as silent as on a card: the fault log does not show the fault itself, only its consequences.

use crate::memory::Defects;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use thiserror::Error;

/// For [`FaultInjection::read_pointer_block_dwords`]: more than any queue ever consumes.
pub const READ_POINTER_NEVER_DWORDS: u64 = 1 << 63;

/// What the command processor takes a packet for: changes the opcode and the body that it has read.
pub type Misreading = fn(opcode: &mut u32, body: &mut Vec<u32>);

/// The misbehaviour of the device.
#[derive(Clone, Copy, Debug, Default)]
pub struct FaultInjection {
    /// The number of a doorbell, counted from 1 over all queues, that is not seen; a later one of its queue is.
    pub dropped_doorbell: Option<u64>,
    /// Delay in microseconds until a doorbell is seen.
    pub doorbell_delay_us: u64,
    /// The read pointer in memory is updated only each time this many dwords were consumed, and not when the ring
    /// is empty. A power of two. A block longer than the ring lags by more than the ring, and
    /// [`READ_POINTER_NEVER_DWORDS`] never reports.
    pub read_pointer_block_dwords: Option<u64>,
    /// One part of the device that does not work at all.
    pub planted: Option<PlantedFault>,
    /// Packets are taken for others, by this: for tests of what notices it. How many dwords of the stream a packet
    /// takes stays as it is.
    #[doc(hidden)]
    pub misreads: Option<Misreading>,
}

/// A part of a board or of its set-up that does not work, as a first boot may encounter it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlantedFault {
    /// No packet is ever read: the queue is not mapped, or its doorbell is routed nowhere.
    QueueNeverReads,
    /// RELEASE_MEM executes, but neither its data nor its interrupt arrives.
    EndOfPipeNeverWrites,
    /// INDIRECT_BUFFER silently stops the queue at the packet, as firmware does with an indirect buffer that it
    /// does not accept.
    IndirectBufferRefused,
    /// Instructions fetched from VRAM are not what was written there: the fetch sees the memory's previous content,
    /// here words that are no instruction. The wave stops at its first one and no event arrives, as on a card
    /// without a trap handler. Loads and stores see the memory as it is.
    CodeNotVisible,
    /// Scalar loads return zero, whatever the memory holds.
    ScalarLoadsZero,
    /// The root port does not route AtomicOps: a read-modify-write of system memory is lost and returns zero. On a
    /// card this is no fault: the kernel driver treats their support as optional (hardware reference §2.6,
    /// `cp_hqd_hq_status0`). Not modelled under the checking mode.
    NoPcieAtomics,
}

/// No planted fault has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("there is no fault {0:?} to plant: {names}", names = PlantedFault::ALL.map(PlantedFault::name).join(", "))]
pub struct UnknownPlantedFault(String);

impl PlantedFault {
    /// Every fault, in the order of the help text.
    pub const ALL: [PlantedFault; 6] = [
        PlantedFault::QueueNeverReads,
        PlantedFault::EndOfPipeNeverWrites,
        PlantedFault::IndirectBufferRefused,
        PlantedFault::CodeNotVisible,
        PlantedFault::ScalarLoadsZero,
        PlantedFault::NoPcieAtomics,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            PlantedFault::QueueNeverReads => "queue-never-reads",
            PlantedFault::EndOfPipeNeverWrites => "end-of-pipe-never-writes",
            PlantedFault::IndirectBufferRefused => "indirect-buffer-refused",
            PlantedFault::CodeNotVisible => "code-not-visible",
            PlantedFault::ScalarLoadsZero => "scalar-loads-zero",
            PlantedFault::NoPcieAtomics => "no-pcie-atomics",
        }
    }

    /// Its effect on memory: on VRAM, or on system memory.
    pub(crate) fn defects(self, is_vram: bool) -> Defects {
        match self {
            PlantedFault::CodeNotVisible if is_vram => Defects::HIDES_CODE,
            PlantedFault::NoPcieAtomics if !is_vram => Defects::LOSES_ATOMICS,
            PlantedFault::ScalarLoadsZero => Defects::ZERO_TO_SCALARS,
            _ => Defects::empty(),
        }
    }
}

impl fmt::Display for PlantedFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for PlantedFault {
    type Err = UnknownPlantedFault;

    fn from_str(name: &str) -> Result<PlantedFault, UnknownPlantedFault> {
        let found = PlantedFault::ALL.into_iter().find(|fault| fault.name() == name);
        found.ok_or_else(|| UnknownPlantedFault(name.to_owned()))
    }
}

/// The settings in effect.
#[derive(Debug)]
pub(crate) struct Injector {
    settings: FaultInjection,
    doorbells: AtomicU64,
}

impl Injector {
    pub fn new(settings: FaultInjection) -> Injector {
        Injector { settings, doorbells: AtomicU64::new(0) }
    }

    pub fn settings(&self) -> &FaultInjection {
        &self.settings
    }

    /// Whether this fault is planted.
    pub fn has(&self, fault: PlantedFault) -> bool {
        self.settings.planted == Some(fault)
    }

    /// The planted defects of memory that is mapped now.
    pub fn defects(&self, is_vram: bool) -> Defects {
        self.settings.planted.map_or(Defects::empty(), |fault| fault.defects(is_vram))
    }

    /// Counts a doorbell. Returns whether it is dropped.
    pub fn drops_doorbell(&self) -> bool {
        let Some(dropped) = self.settings.dropped_doorbell else { return false };
        self.doorbells.fetch_add(1, Ordering::Relaxed) + 1 == dropped
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_both_ways() {
        for fault in PlantedFault::ALL {
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        let error = "flood".parse::<PlantedFault>().unwrap_err().to_string();
        let text = "there is no fault \"flood\" to plant: queue-never-reads, end-of-pipe-never-writes, \
                    indirect-buffer-refused, code-not-visible, scalar-loads-zero, no-pcie-atomics";
        assert_eq!(error, text);
    }

    #[test]
    fn each_planted_fault_is_in_its_memory_only() {
        let none = Defects::empty();
        for (fault, of_vram, of_system) in [
            (PlantedFault::QueueNeverReads, none, none),
            (PlantedFault::EndOfPipeNeverWrites, none, none),
            (PlantedFault::IndirectBufferRefused, none, none),
            (PlantedFault::CodeNotVisible, Defects::HIDES_CODE, none),
            (PlantedFault::ScalarLoadsZero, Defects::ZERO_TO_SCALARS, Defects::ZERO_TO_SCALARS),
            (PlantedFault::NoPcieAtomics, none, Defects::LOSES_ATOMICS),
        ] {
            let injector =
                Injector::new(FaultInjection { planted: Some(fault), ..FaultInjection::default() });
            assert_eq!((injector.defects(true), injector.defects(false)), (of_vram, of_system), "{fault}");
            assert!(PlantedFault::ALL.iter().all(|other| injector.has(*other) == (*other == fault)));
        }
        let working = Injector::new(FaultInjection::default());
        assert_eq!((working.defects(true), working.defects(false)), (none, none));
        assert!(!PlantedFault::ALL.iter().any(|fault| working.has(*fault)));
    }

    #[test]
    fn one_doorbell_is_dropped() {
        let drops = |dropped_doorbell| {
            let injector = Injector::new(FaultInjection { dropped_doorbell, ..FaultInjection::default() });
            [(); 4].map(|()| injector.drops_doorbell())
        };
        assert_eq!(drops(None), [false; 4]);
        assert_eq!(drops(Some(1)), [true, false, false, false]);
        assert_eq!(drops(Some(3)), [false, false, true, false]);
    }
}
