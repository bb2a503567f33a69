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

#[cfg(test)]
mod tests {
    use zrt_isa::resources::WaveSize;

    use super::*;
    use crate::memory::{Cause, Rights};

    #[test]
    fn what_went_wrong_is_told_in_words_and_numbers() {
        use WaveFaultKind::*;
        let words = [0xBE80_4E7D, 0x1F, 0, 0];
        for (kind, text) in [
            (
                Page(Fault { va: 0x1_2340, cause: Cause::NotPresent, access: Rights::READ }),
                "page fault at 0x12340: not mapped",
            ),
            (UnknownInstruction(words), "unknown instruction [be804e7d, 0000001f, 00000000, 00000000]"),
            (
                NotExecuted { opcode: Opcode::SBarrierSignal, words },
                "s_barrier_signal [be804e7d, 0000001f, 00000000, 00000000] is not executed by this device",
            ),
            (
                DualInWave64(words),
                "VOPD [be804e7d, 0000001f, 00000000, 00000000] does not exist in wave64: compile for wave64, or \
                 launch with CS_W32_EN",
            ),
            (PastEnd, "s_code_end: the program ran past its end"),
            (Trap(7), "s_trap 7 without a trap handler"),
            (Halted, "the wave halted itself"),
            (
                LdsOutOfRange { address: 500, width: 16, allocated: 512 },
                "LDS access of 16 bytes at 500, of 512 allocated",
            ),
            (
                VectorRegister { register: 64, allocated: 24 },
                "v64 is used, but only 24 vector registers are allocated",
            ),
            (Misaligned { va: 0x101, width: 4 }, "atomic of 4 bytes at 0x101, which is not a multiple of it"),
            (MisalignedJump(0x40_0002), "jump to 0x400002"),
            (Scratch { offset: 0x20, allocated: 16 }, "scratch access at 0x20, of 16 bytes that a lane has"),
            (
                BufferDescriptor([1, 0x20, 0x300, 0x4000]),
                "buffer descriptor [00000001, 00000020, 00000300, 00004000]: its format is not modelled",
            ),
        ] {
            assert_eq!(kind.to_string(), text);
        }
    }

    #[test]
    fn waves_that_wait_for_ever_are_counted() {
        use WaveFaultKind::*;
        let circles = |circling_waves, waiting_waves| GoesInCircles { circling_waves, waiting_waves };
        for (kind, text) in [
            (BarrierNeverCompletes, "the waves left wait at a barrier that cannot complete"),
            (circles(1, 0), "1 wave loops forever: nothing that they poll ever changes"),
            (
                circles(2, 1),
                "2 waves loop forever: nothing that they poll ever changes, while 1 wave waits at a barrier",
            ),
            (
                circles(3, 2),
                "3 waves loop forever: nothing that they poll ever changes, while 2 wait at barriers",
            ),
            (
                SpinsForever { waiting_groups: 5 },
                "the resident waves wait for something that none of them does, and 5 groups of the dispatch cannot \
                 become resident",
            ),
        ] {
            assert_eq!(kind.to_string(), text);
        }
    }

    #[test]
    fn a_fault_says_where_its_wave_stands_and_who_launched_it() {
        let fault = WaveFault {
            origin: PacketOrigin { queue_id: 3, packet_va: 0x7_0040 },
            code_va: 0x40_0000,
            instruction_va: 0x40_0018,
            workgroup: [1, 2, 3],
            wave: 4,
            lane: None,
            kind: WaveFaultKind::Trap(7),
            code: CodeWords::new(&[0xBF90_0007], WaveSize::Wave32),
        };
        assert_eq!(
            fault.to_string(),
            "code=0x400000 pc=0x400018 (+0x18) workgroup=1,2,3 wave=4 launched-at=0x70040 : s_trap 7 without a trap \
             handler : s_trap 7"
        );
        let text = WaveFault { lane: Some(45), ..fault }.to_string();
        assert!(text.contains(" wave=4 lane=45 launched-at="), "{text}");
    }
}
