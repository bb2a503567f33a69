//! Why a wave cannot continue.
//!
//! Contract: plain values. After a fault the wave is halted and its dispatch never completes, as on hardware
//! (hardware reference §8); the fault contains everything needed to find the instruction.

use std::fmt;

use zrt_isa::Opcode;

use crate::memory::Fault;
use crate::shader::code_words::{CodeWords, FAULT_WORDS};
use crate::shader::dispatch::PacketOrigin;

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaveFaultKind {
    /// A load, store, atomic or instruction fetch that the page table refuses; it is reported to the driver.
    Page(Fault),
    /// No gfx1201 instruction begins with these words.
    UnknownInstruction([u32; FAULT_WORDS]),
    /// A gfx1201 instruction that this device does not execute.
    NotExecuted {
        /// The operation.
        opcode: Opcode,
        /// Its words.
        words: [u32; FAULT_WORDS],
    },
    /// A dual instruction (VOPD) in a wave64: it exists in wave32 only.
    DualInWave64([u32; FAULT_WORDS]),
    /// `s_code_end`: the program ran past its end.
    PastEnd,
    /// `s_trap` without a trap handler.
    Trap(u32),
    /// `s_sethalt 1` or a message that halts: the wave stops for good.
    Halted,
    /// An LDS access beyond the group's allocation.
    LdsOutOfRange {
        /// First byte.
        address: u32,
        /// Bytes.
        width: u32,
        /// Bytes that the group has allocated.
        allocated: u32,
    },
    /// A vector register beyond the wave's allocation.
    VectorRegister {
        /// The first missing register.
        register: u32,
        /// Registers that the wave has allocated.
        allocated: u32,
    },
    /// An atomic whose address is not a multiple of its width.
    Misaligned {
        /// The address.
        va: u64,
        /// Bytes.
        width: u32,
    },
    /// A jump to an address that is not a multiple of 4.
    MisalignedJump(u64),
    /// A scratch access by a wave that has none, or beyond its allocation.
    Scratch {
        /// Offset in the lane's private segment.
        offset: u64,
        /// Bytes that a lane has.
        allocated: u32,
    },
    /// A buffer descriptor whose format is not modelled.
    BufferDescriptor([u32; 4]),
    /// All running waves of the group wait at a barrier that cannot complete.
    BarrierNeverCompletes,
    /// All running waves repeat the same steps forever, each by itself (found in the checking mode).
    GoesInCircles {
        /// Number of waves in circles.
        circling_waves: u64,
        /// Waves waiting at barriers.
        waiting_waves: u64,
    },
    /// No resident wave changes anything any more, and groups that could are not resident (found in the checking
    /// mode).
    SpinsForever {
        /// Groups of the dispatch that have not begun.
        waiting_groups: u64,
    },
}

/// A wave that stopped, and its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaveFault {
    /// The packet that launched it.
    pub origin: PacketOrigin,
    /// Address of the dispatch's first instruction.
    pub code_va: u64,
    /// Address of the instruction.
    pub instruction_va: u64,
    /// Workgroup id.
    pub workgroup: [u32; 3],
    /// Index of the wave in the workgroup.
    pub wave: u32,
    /// The first lane concerned, for faults about lanes.
    pub lane: Option<u32>,
    /// What went wrong.
    pub kind: WaveFaultKind,
    /// The instruction.
    pub code: CodeWords,
}

impl fmt::Display for WaveFaultKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            WaveFaultKind::Page(fault) => write!(formatter, "{fault}"),
            WaveFaultKind::UnknownInstruction(words) => write!(formatter, "unknown instruction {words:08x?}"),
            WaveFaultKind::NotExecuted { opcode, words } => {
                write!(formatter, "{} {words:08x?} is not executed by this device", opcode.mnemonic())
            }
            WaveFaultKind::DualInWave64(words) => write!(
                formatter,
                "VOPD {words:08x?} does not exist in wave64: compile for wave64, or launch with CS_W32_EN"
            ),
            WaveFaultKind::PastEnd => formatter.write_str("s_code_end: the program ran past its end"),
            WaveFaultKind::Trap(number) => write!(formatter, "s_trap {number} without a trap handler"),
            WaveFaultKind::Halted => formatter.write_str("the wave halted itself"),
            WaveFaultKind::LdsOutOfRange { address, width, allocated } => {
                write!(formatter, "LDS access of {width} bytes at {address}, of {allocated} allocated")
            }
            WaveFaultKind::VectorRegister { register, allocated } => {
                write!(formatter, "v{register} is used, but only {allocated} vector registers are allocated")
            }
            WaveFaultKind::Misaligned { va, width } => {
                write!(formatter, "atomic of {width} bytes at {va:#x}, which is not a multiple of it")
            }
            WaveFaultKind::MisalignedJump(va) => write!(formatter, "jump to {va:#x}"),
            WaveFaultKind::Scratch { offset, allocated } => {
                write!(formatter, "scratch access at {offset:#x}, of {allocated} bytes that a lane has")
            }
            WaveFaultKind::BufferDescriptor(words) => {
                write!(formatter, "buffer descriptor {words:08x?}: its format is not modelled")
            }
            WaveFaultKind::BarrierNeverCompletes => {
                formatter.write_str("the waves left wait at a barrier that cannot complete")
            }
            WaveFaultKind::GoesInCircles { circling_waves, waiting_waves } => {
                let (waves, go) = if circling_waves == 1 { ("wave", "loops") } else { ("waves", "loop") };
                write!(
                    formatter,
                    "{circling_waves} {waves} {go} forever: nothing that they poll ever changes"
                )?;
                match waiting_waves {
                    0 => Ok(()),
                    1 => formatter.write_str(", while 1 wave waits at a barrier"),
                    _ => write!(formatter, ", while {waiting_waves} wait at barriers"),
                }
            }
            WaveFaultKind::SpinsForever { waiting_groups } => write!(
                formatter,
                "the resident waves wait for something that none of them does, and {waiting_groups} groups of the \
                 dispatch cannot become resident"
            ),
        }
    }
}

impl fmt::Display for WaveFault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [x, y, z] = self.workgroup;
        write!(
            formatter,
            "code={:#x} pc={:#x} (+{:#x}) workgroup={x},{y},{z} wave={}",
            self.code_va,
            self.instruction_va,
            self.instruction_va.wrapping_sub(self.code_va),
            self.wave
        )?;
        if let Some(lane) = self.lane {
            write!(formatter, " lane={lane}")?;
        }
        write!(formatter, " launched-at={:#x} : {} : {}", self.origin.packet_va, self.kind, self.code)
    }
}
