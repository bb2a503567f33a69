//! The device's log of faults, hangs and breaches of the submission rules, for people and tests.
//!
//! Contract: the first [`RECORDS_MAX`] records are kept; further ones are counted. One line each. Recording takes a
//! lock and allocates; it happens only on faults.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Records kept.
pub const RECORDS_MAX: usize = 1024;

/// The kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FaultKind {
    /// An access outside any mapping or without permission; the MEMORY event was signalled, and all queues stopped.
    PageFault,
    /// A wave cannot continue (unknown instruction, trap, unmodelled state). No event: the queue hangs.
    Wave,
    /// A packet that the command processor does not accept. No event: the queue stops.
    Packet,
    /// A dispatch that the hardware would not launch as requested. No event: the queue stops.
    Launch,
    /// The doorbell went backwards, or was written with a 32-bit store. The ring continues.
    Doorbell,
    /// The write pointer in memory was behind the doorbell when it rang. The ring continues.
    WritePointer,
    /// A packet that was not complete when the doorbell rang. The ring waits for the rest.
    TornPacket,
    /// A packet wrote a register that belongs to the queue. The ring continues.
    QueueRegister,
    /// A packet selects memory by a number that the header calls obsolete. It took effect, and the ring continues.
    ObsoleteSelector,
    /// A queue did not drain when it was destroyed; the device was reset.
    Reset,
    /// A known request of the kernel interface that this device does not implement.
    UnmodelledRequest,
}

/// One record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultRecord {
    /// The kind of event.
    pub kind: FaultKind,
    /// The queue, if there is one.
    pub queue: Option<u32>,
    /// The packet that was executed, or that launched the wave.
    pub packet: Option<&'static str>,
    /// Further details, as `name=value` and words.
    pub detail: String,
}

/// The log.
#[derive(Debug, Default)]
pub struct FaultLog {
    records: Mutex<Records>,
}

#[derive(Debug, Default)]
struct Records {
    kept: Vec<FaultRecord>,
    dropped: u64,
}

impl FaultKind {
    /// The word used in the log.
    pub fn name(self) -> &'static str {
        match self {
            FaultKind::PageFault => "page-fault",
            FaultKind::Wave => "wave",
            FaultKind::Packet => "packet",
            FaultKind::Launch => "launch",
            FaultKind::Doorbell => "doorbell",
            FaultKind::WritePointer => "write-pointer",
            FaultKind::TornPacket => "torn-packet",
            FaultKind::QueueRegister => "queue-register",
            FaultKind::ObsoleteSelector => "obsolete-selector",
            FaultKind::Reset => "reset",
            FaultKind::UnmodelledRequest => "unmodelled-request",
        }
    }
}

impl fmt::Display for FaultRecord {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "kind={}", self.kind.name())?;
        if let Some(queue) = self.queue {
            write!(formatter, " queue={queue}")?;
        }
        if let Some(packet) = self.packet {
            write!(formatter, " packet={packet}")?;
        }
        write!(formatter, " {}", self.detail)
    }
}

impl FaultLog {
    fn lock(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record.
    pub fn record(&self, record: FaultRecord) {
        let mut records = self.lock();
        if records.kept.len() < RECORDS_MAX {
            records.kept.push(record);
        } else {
            records.dropped += 1;
        }
    }

    /// The records so far.
    pub fn records(&self) -> Vec<FaultRecord> {
        self.lock().kept.clone()
    }

    /// The text of the debug file: a line per record, empty if there are none.
    pub fn text(&self) -> String {
        let records = self.lock();
        let mut text: String = records.kept.iter().map(|record| format!("{record}\n")).collect();
        if records.dropped > 0 {
            text += &format!("and {} more\n", records.dropped);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: FaultKind, queue: Option<u32>, packet: Option<&'static str>) -> FaultRecord {
        FaultRecord { kind, queue, packet, detail: "va=0x1 : why".to_owned() }
    }

    #[test]
    fn records_are_lines_and_bounded() {
        let log = FaultLog::default();
        assert_eq!(log.text(), "");
        let expected: String =
            (0..RECORDS_MAX).map(|index| format!("kind=packet queue={index} va=0x1 : why\n")).collect();
        (0..RECORDS_MAX).for_each(|index| log.record(record(FaultKind::Packet, Some(index as u32), None)));
        assert_eq!((log.records().len(), log.text()), (RECORDS_MAX, expected.clone()));
        for count in 1..4 {
            log.record(record(FaultKind::Wave, None, None));
            assert_eq!(log.text(), format!("{expected}and {count} more\n"));
        }
        assert_eq!(
            log.records().last(),
            Some(&record(FaultKind::Packet, Some(RECORDS_MAX as u32 - 1), None))
        );
    }

    #[test]
    fn a_record_says_what_it_knows() {
        use FaultKind::{
            Doorbell, Launch, ObsoleteSelector, Packet, PageFault, QueueRegister, Reset, TornPacket,
            UnmodelledRequest, Wave, WritePointer,
        };
        for (kind, queue, packet, text) in [
            (PageFault, None, None, "kind=page-fault va=0x1 : why"),
            (Wave, Some(3), None, "kind=wave queue=3 va=0x1 : why"),
            (Packet, Some(3), Some("NOP"), "kind=packet queue=3 packet=NOP va=0x1 : why"),
            (Launch, None, Some("NOP"), "kind=launch packet=NOP va=0x1 : why"),
            (Doorbell, None, None, "kind=doorbell va=0x1 : why"),
            (WritePointer, None, None, "kind=write-pointer va=0x1 : why"),
            (TornPacket, None, None, "kind=torn-packet va=0x1 : why"),
            (QueueRegister, None, None, "kind=queue-register va=0x1 : why"),
            (ObsoleteSelector, None, None, "kind=obsolete-selector va=0x1 : why"),
            (Reset, None, None, "kind=reset va=0x1 : why"),
            (UnmodelledRequest, None, None, "kind=unmodelled-request va=0x1 : why"),
        ] {
            assert_eq!(record(kind, queue, packet).to_string(), text);
        }
    }
}
