//! Finds what the hardware accepts in a stream but what breaks the next submission.
//!
//! Contract: any words may be linted; nothing panics or allocates; findings come in the order of the stream. A stream
//! that this crate's [`Writer`](crate::Writer) records with `acquire_everything`, `dispatch` and `barrier` has none.

use crate::error::ParseError;
use crate::opcode::Opcode;
use crate::packet::release_mem::{DataSelect, ReleaseFlags};
use crate::packet::{Event, Repr, copy_data, set_sh_reg, write_data};
use crate::reader::{ItemKind, Reader, StreamError};
use crate::registers::{InitiatorFlags, Register, WriteClass};
use core::fmt;

/// Registers that must have been written before a dispatch (hardware reference §5.3).
const NEEDED: [Register; 15] = [
    Register::START_X,
    Register::START_Y,
    Register::START_Z,
    Register::NUM_THREAD_X,
    Register::NUM_THREAD_Y,
    Register::NUM_THREAD_Z,
    Register::PGM_LO,
    Register::PGM_HI,
    Register::PGM_RSRC1,
    Register::PGM_RSRC2,
    Register::RESOURCE_LIMITS,
    Register::RESTART_X,
    Register::RESTART_Y,
    Register::RESTART_Z,
    Register::PGM_RSRC3,
];

/// One problem in a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Dwords from the start of the stream to the packet.
    pub offset: usize,
    /// What is wrong with it.
    pub kind: FindingKind,
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FindingKind {
    /// The stream cannot be followed further.
    Broken(ParseError),
    /// The packet's body is not valid.
    Malformed(ParseError),
    /// The opcode is not one that this crate writes.
    UnknownOpcode(Opcode),
    /// The one-dword filler of type 2, which a compute ring does not accept.
    Filler,
    /// A register that a dispatch may not write; `class` is `None` for an unknown register.
    NotOwned {
        /// The register.
        register: Register,
        /// Who may write it.
        class: Option<WriteClass>,
    },
    /// The same in a run that begins or continues with registers that a dispatch may write: the run crosses this
    /// one.
    RunCrosses {
        /// First register of the run.
        first: Register,
        /// The register crossed.
        register: Register,
        /// Who may write it.
        class: Option<WriteClass>,
    },
    /// A register written by a packet other than SET_SH_REG.
    RegisterDestination {
        /// Absolute dword offset.
        register: u32,
    },
    /// A dispatch before this register was written.
    MissingRegister(Register),
    /// A dispatch whose initiator lacks a bit that it needs.
    MissingInitiator(InitiatorFlags),
    /// A dispatch before any ACQUIRE_MEM: it may read stale cached lines.
    DispatchBeforeAcquire,
    /// An ACQUIRE_MEM while waves may still run: it does not wait for them (hardware reference §4.5).
    AcquireWhileRunning,
    /// A value is released to others without a GL2 write-back (hardware reference §6.3).
    ReleaseWithoutWriteBack,
    /// The stream ends with a dispatch that nothing waits for.
    EndsRunning,
}

struct Walk<'f> {
    offset: usize,
    report: &'f mut dyn FnMut(Finding),
    written: [bool; NEEDED.len()],
    acquired: bool,
    running: bool,
}

/// Walks `words` and passes every finding to `report`.
pub fn lint(words: &[u32], report: &mut dyn FnMut(Finding)) {
    let mut walk =
        Walk { offset: 0, report, written: [false; NEEDED.len()], acquired: false, running: false };
    for item in Reader::new(words) {
        let item = match item {
            Ok(item) => item,
            Err(StreamError { offset, error }) => {
                walk.offset = offset;
                return walk.find(FindingKind::Broken(error));
            }
        };
        walk.offset = item.offset;
        match (item.kind, item.parse()) {
            (ItemKind::Filler, _) => walk.find(FindingKind::Filler),
            (ItemKind::Unknown(header), _) => walk.find(FindingKind::UnknownOpcode(header.opcode())),
            (ItemKind::Known(_), Err(error)) => walk.find(FindingKind::Malformed(error)),
            (ItemKind::Known(_), Ok(None)) => {}
            (ItemKind::Known(_), Ok(Some(packet))) => walk.packet(&packet),
        }
    }
    walk.offset = words.len();
    if walk.running {
        walk.find(FindingKind::EndsRunning);
    }
}

impl Walk<'_> {
    fn find(&mut self, kind: FindingKind) {
        (self.report)(Finding { offset: self.offset, kind });
    }

    fn packet(&mut self, packet: &Repr<'_>) {
        match packet {
            Repr::SetShReg(run) => self.registers(run),
            Repr::DispatchDirect(dispatch) => self.dispatch(dispatch.initiator.flags),
            Repr::AcquireMem(_) => {
                if self.running {
                    self.find(FindingKind::AcquireWhileRunning);
                }
                self.acquired = true;
            }
            Repr::EventWrite(event) => {
                if event.event == Event::CS_PARTIAL_FLUSH {
                    self.running = false;
                }
            }
            Repr::ReleaseMem(release) => {
                let publishes = matches!(release.data, DataSelect::Low32 | DataSelect::Full64);
                if self.running && publishes && !release.flags.contains(ReleaseFlags::GL2_WB) {
                    self.find(FindingKind::ReleaseWithoutWriteBack);
                }
                self.running = false;
            }
            Repr::WriteData(write_data::Repr {
                destination: write_data::Destination::Register(register),
                ..
            })
            | Repr::CopyData(copy_data::Repr {
                destination: copy_data::Destination::Register(register),
                ..
            }) => self.find(FindingKind::RegisterDestination { register: *register }),
            Repr::Nop(_)
            | Repr::WaitRegMem(_)
            | Repr::WriteData(_)
            | Repr::CopyData(_)
            | Repr::IndirectBuffer(_) => {}
        }
    }

    fn registers(&mut self, run: &set_sh_reg::Repr<'_>) {
        let first = run.first;
        let count = run.values.len() as u32;
        let registers = || (first.relative()..first.relative() + count).filter_map(Register::new);
        let owned = |register: Register| register.class() == Some(WriteClass::PerDispatch);
        let mixed = registers().any(owned);
        for register in registers() {
            if let Some(written) = NEEDED.iter().position(|needed| *needed == register) {
                self.written[written] = true;
            }
            let class = register.class();
            match (owned(register), mixed) {
                (true, _) => {}
                (false, true) => self.find(FindingKind::RunCrosses { first, register, class }),
                (false, false) => self.find(FindingKind::NotOwned { register, class }),
            }
        }
    }

    fn dispatch(&mut self, flags: InitiatorFlags) {
        for (at, register) in NEEDED.iter().enumerate() {
            if !self.written[at] {
                self.find(FindingKind::MissingRegister(*register));
            }
        }
        for needed in [InitiatorFlags::COMPUTE_SHADER_EN, InitiatorFlags::FORCE_START_AT_000] {
            if !flags.contains(needed) {
                self.find(FindingKind::MissingInitiator(needed));
            }
        }
        if !self.acquired {
            self.find(FindingKind::DispatchBeforeAcquire);
        }
        self.running = true;
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "at dword {:#x}, ", self.offset)?;
        let owner = |class: Option<WriteClass>| match class {
            Some(WriteClass::PerDispatch) => "a dispatch's",
            Some(WriteClass::DispatchPacket) => "the dispatch packet's",
            Some(WriteClass::QueueOwned) => "the queue's",
            Some(WriteClass::Privileged) => "privileged",
            None => "unknown",
        };
        match self.kind {
            FindingKind::Broken(error) => write!(formatter, "the stream breaks off: {error}"),
            FindingKind::Malformed(error) => write!(formatter, "the packet has no meaning: {error}"),
            FindingKind::UnknownOpcode(opcode) => write!(formatter, "{opcode} is not a packet of ours"),
            FindingKind::Filler => write!(formatter, "a type 2 filler, which a compute ring does not take"),
            FindingKind::NotOwned { register, class } => {
                write!(formatter, "{register} is written, which is {}", owner(class))
            }
            FindingKind::RunCrosses { first, register, class } => {
                write!(formatter, "the run from {first} crosses {register}, which is {}", owner(class))
            }
            FindingKind::RegisterDestination { register } => {
                write!(formatter, "register {register:#x} is written by a packet that checks no owner")
            }
            FindingKind::MissingRegister(register) => {
                write!(formatter, "a dispatch before {register} was ever written")
            }
            FindingKind::MissingInitiator(flags) => {
                write!(formatter, "a dispatch whose initiator lacks {:#x}", flags.bits())
            }
            FindingKind::DispatchBeforeAcquire => write!(formatter, "a dispatch before any ACQUIRE_MEM"),
            FindingKind::AcquireWhileRunning => {
                write!(formatter, "an ACQUIRE_MEM that does not wait for the waves that may still run")
            }
            FindingKind::ReleaseWithoutWriteBack => {
                write!(formatter, "a value is released without GL2 written back")
            }
            FindingKind::EndsRunning => {
                write!(formatter, "the stream ends and nothing waits for its dispatches")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::{dispatch_direct, release_mem};
    use crate::registers::{ResourceLimits, WaveSize};
    use crate::writer::{KernelParameters, KernelState, Writer};

    fn findings(words: &[u32]) -> Vec<FindingKind> {
        let mut found = Vec::new();
        lint(words, &mut |finding| found.push(finding.kind));
        found
    }

    fn recorded(record: impl FnOnce(&mut Writer<'_>)) -> Vec<FindingKind> {
        let mut words = [0; 512];
        let mut writer = Writer::new(&mut words);
        record(&mut writer);
        let len = writer.len();
        findings(&words[..len])
    }

    fn state() -> KernelState {
        KernelState::new(&KernelParameters {
            code_address: 0x1000,
            rsrc1: 0,
            rsrc2: 2 << 1,
            rsrc3: 0,
            workgroup: [32, 1, 1],
            limits: ResourceLimits::default(),
            wave: WaveSize::Wave32,
        })
        .unwrap()
    }

    #[test]
    fn a_stream_as_recorded_has_no_findings() {
        let found = recorded(|writer| {
            writer.acquire_everything().unwrap();
            writer.dispatch(&state(), &[0, 0], [1, 1, 1]).unwrap();
            writer.barrier().unwrap();
            writer.dispatch(&state(), &[0, 0], [1, 1, 1]).unwrap();
            writer.release_mem(&release_mem::Repr::fence(0x1000, 1)).unwrap();
        });
        assert_eq!(found, []);
    }

    #[test]
    fn registers_of_others_are_found() {
        let write =
            |register, count| recorded(|writer| writer.set_sh_reg(register, &[0; 8][..count]).unwrap());
        let not_owned = |register, class| vec![FindingKind::NotOwned { register, class: Some(class) }];
        assert_eq!(
            write(Register::STATIC_THREAD_MGMT_SE8, 1),
            not_owned(Register::STATIC_THREAD_MGMT_SE8, WriteClass::QueueOwned)
        );
        assert_eq!(
            write(Register::TMPRING_SIZE, 1),
            not_owned(Register::TMPRING_SIZE, WriteClass::QueueOwned)
        );
        assert_eq!(write(Register::VMID, 1), not_owned(Register::VMID, WriteClass::Privileged));
        let unknown = Register::new(0x234).unwrap();
        assert_eq!(write(unknown, 1), [FindingKind::NotOwned { register: unknown, class: None }]);
        // RSRC1, RSRC2, VMID, RESOURCE_LIMITS in one run.
        assert_eq!(
            write(Register::PGM_RSRC1, 4),
            [FindingKind::RunCrosses {
                first: Register::PGM_RSRC1,
                register: Register::VMID,
                class: Some(WriteClass::Privileged),
            }]
        );
        assert_eq!(write(Register::START_X, 8), []);
    }

    #[test]
    fn a_bare_dispatch_misses_everything() {
        let found = recorded(|writer| {
            let mut launch = dispatch_direct::Repr::wave32([1, 1, 1]);
            launch.initiator.flags = InitiatorFlags::CS_W32_EN;
            writer.dispatch_direct(&launch).unwrap();
        });
        assert_eq!(found.len(), NEEDED.len() + 4);
        assert!(found.contains(&FindingKind::MissingRegister(Register::PGM_RSRC3)));
        assert!(found.contains(&FindingKind::MissingInitiator(InitiatorFlags::COMPUTE_SHADER_EN)));
        assert!(found.contains(&FindingKind::MissingInitiator(InitiatorFlags::FORCE_START_AT_000)));
        assert!(found.contains(&FindingKind::DispatchBeforeAcquire));
        assert_eq!(found.last(), Some(&FindingKind::EndsRunning));
    }

    #[test]
    fn orders_that_do_not_hold_are_found() {
        let found = recorded(|writer| {
            writer.acquire_everything().unwrap();
            writer.dispatch(&state(), &[0, 0], [1, 1, 1]).unwrap();
            writer.acquire_everything().unwrap();
            let silent =
                release_mem::Repr { flags: ReleaseFlags::empty(), ..release_mem::Repr::fence(0x1000, 1) };
            writer.release_mem(&silent).unwrap();
        });
        assert_eq!(found, [FindingKind::AcquireWhileRunning, FindingKind::ReleaseWithoutWriteBack]);
    }

    /// Stores made before any wave ran are outside the scope of the stream.
    #[test]
    fn a_release_that_no_dispatch_came_before_needs_no_write_back() {
        let found = recorded(|writer| {
            let fence = release_mem::Repr::fence(0x1000, 1);
            writer.release_mem(&release_mem::Repr { flags: ReleaseFlags::empty(), ..fence }).unwrap();
        });
        assert_eq!(found, []);
    }

    #[test]
    fn each_finding_says_where_it_is_and_what_it_is_about() {
        let error = ParseError::Truncated { needed: 5, given: 3 };
        let (register, first) = (Register::VMID, Register::PGM_RSRC1);
        let not_owned = |class| FindingKind::NotOwned { register, class };
        for (kind, text) in [
            (FindingKind::Broken(error), "the stream breaks off: the packet needs 5 dwords and 3 are there"),
            (
                FindingKind::Malformed(error),
                "the packet has no meaning: the packet needs 5 dwords and 3 are there",
            ),
            (FindingKind::UnknownOpcode(Opcode(0xfe)), "opcode 0xfe is not a packet of ours"),
            (FindingKind::Filler, "a type 2 filler, which a compute ring does not take"),
            (not_owned(None), "COMPUTE_VMID is written, which is unknown"),
            (
                not_owned(Some(WriteClass::DispatchPacket)),
                "COMPUTE_VMID is written, which is the dispatch packet's",
            ),
            (not_owned(Some(WriteClass::QueueOwned)), "COMPUTE_VMID is written, which is the queue's"),
            (
                FindingKind::RunCrosses { first, register, class: Some(WriteClass::Privileged) },
                "the run from COMPUTE_PGM_RSRC1 crosses COMPUTE_VMID, which is privileged",
            ),
            (
                FindingKind::RegisterDestination { register: 0x2e18 },
                "register 0x2e18 is written by a packet that checks no owner",
            ),
            (FindingKind::MissingRegister(first), "a dispatch before COMPUTE_PGM_RSRC1 was ever written"),
            (
                FindingKind::MissingInitiator(InitiatorFlags::FORCE_START_AT_000),
                "a dispatch whose initiator lacks 0x4",
            ),
            (FindingKind::DispatchBeforeAcquire, "a dispatch before any ACQUIRE_MEM"),
            (
                FindingKind::AcquireWhileRunning,
                "an ACQUIRE_MEM that does not wait for the waves that may still run",
            ),
            (FindingKind::ReleaseWithoutWriteBack, "a value is released without GL2 written back"),
            (FindingKind::EndsRunning, "the stream ends and nothing waits for its dispatches"),
        ] {
            let finding = Finding { offset: 0x2a, kind };
            assert_eq!(finding.to_string(), format!("at dword 0x2a, {text}"));
        }
    }

    #[test]
    fn other_findings() {
        assert_eq!(findings(&[0x8000_0000]), [FindingKind::Filler]);
        assert_eq!(findings(&[0xc000_fe00, 1]), [FindingKind::UnknownOpcode(Opcode(0xfe))]);
        assert!(matches!(findings(&[0xc000_4600, 0x40])[..], [FindingKind::Malformed(_)]));
        assert!(matches!(findings(&[0xc000_4600])[..], [FindingKind::Broken(_)]));
        // WRITE_DATA and COPY_DATA of an immediate, both to a register.
        assert_eq!(
            findings(&[0xc003_3700, 0, 0x2e18, 0, 1, 0xc004_4000, 5, 7, 0, 0x2e14, 0]),
            [
                FindingKind::RegisterDestination { register: 0x2e18 },
                FindingKind::RegisterDestination { register: 0x2e14 }
            ]
        );
    }
}
