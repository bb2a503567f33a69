//! What the checking mode keeps of an instruction: everything that can be known before it runs.
//!
//! Contract: made once per instruction of a program; nothing here depends on a wave.

use zrt_isa::resources::WaveSize;
use zrt_isa::{Encoding, Instruction, Opcode, Operand};

use crate::check::lds_access::{LdsKind, LdsShape};
use crate::check::memory::{AccessKind, CacheControl, Scope};
use crate::check::profile::Counted;
use crate::check::registers::{Note, Transfer};
use crate::shader::prefetch::is_prefetch;
use crate::shader::program;

/// What is known about an instruction before it runs.
pub(crate) struct Noted {
    pub instruction: Instruction,
    pub counted: Counted,
    pub lds: Option<LdsShape>,
    pub(super) memory: Option<GlobalAccess>,
    pub(super) control: Control,
    /// The data it moves between registers and memory.
    pub transfer: Option<Box<Transfer>>,
    /// `None` for the high half of a wave64: its registers were checked with the low half.
    pub registers: Option<Note>,
    /// True if it accesses nothing but registers, orders nothing, and leaves the counters unchanged.
    pub is_local: bool,
}

/// A memory access through the port.
#[derive(Clone, Copy, Debug)]
pub(super) struct GlobalAccess {
    pub kind: AccessKind,
    pub scope: Scope,
    /// Whether it may go to LDS.
    pub is_flat: bool,
}

/// Instructions that order other instructions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Control {
    None,
    BarrierSignal,
    BarrierWait,
    Cache(CacheControl),
    ScalarInvalidate,
    InstructionInvalidate,
    /// May read a clock, or notify the host.
    Outside,
}

impl program::Note for Noted {
    fn new(instruction: &Instruction, wave_size: WaveSize) -> Noted {
        let lds = if instruction.encoding == Encoding::Vds { LdsShape::of(instruction) } else { None };
        let memory = GlobalAccess::of(instruction);
        let control = Control::of(instruction.opcode);
        let registers = Note::new(instruction, wave_size);
        let is_local = lds.is_none()
            && memory.is_none()
            && control == Control::None
            && !has_memory_encoding(instruction.encoding)
            && !registers.moves_counters();
        Noted {
            instruction: *instruction,
            counted: Counted::new(instruction),
            lds,
            memory,
            control,
            transfer: Transfer::of(instruction).map(Box::new),
            registers: Some(registers),
            is_local,
        }
    }

    fn of_high_half(instruction: &Instruction) -> Noted {
        Noted { registers: None, ..Noted::new(instruction, WaveSize::Wave64) }
    }
}

/// Whether instructions of an encoding may access the memory port or LDS, whatever else is known about them.
fn has_memory_encoding(encoding: Encoding) -> bool {
    use Encoding::*;
    matches!(encoding, Smem | Vds | Vglobal | Vflat | Vscratch | Vbuffer)
}

impl Control {
    fn of(opcode: Opcode) -> Control {
        match opcode {
            Opcode::SBarrierSignal | Opcode::SBarrierSignalIsfirst => Control::BarrierSignal,
            Opcode::SBarrierWait => Control::BarrierWait,
            Opcode::GlobalInv => Control::Cache(CacheControl::Invalidate),
            Opcode::GlobalWb => Control::Cache(CacheControl::WriteBack),
            Opcode::GlobalWbinv => Control::Cache(CacheControl::WriteBackInvalidate),
            Opcode::SDcacheInv => Control::ScalarInvalidate,
            Opcode::SIcacheInv => Control::InstructionInvalidate,
            Opcode::SGetregB32 | Opcode::SSendmsg | Opcode::SSendmsgRtnB32 | Opcode::SSendmsgRtnB64 => {
                Control::Outside
            }
            _ => Control::None,
        }
    }
}

impl GlobalAccess {
    fn of(instruction: &Instruction) -> Option<GlobalAccess> {
        let name = instruction.opcode.mnemonic();
        let is_flat = instruction.encoding == Encoding::Vflat;
        let kind = match instruction.encoding {
            Encoding::Smem if name.contains("_load_") => AccessKind::ScalarLoad,
            Encoding::Smem if is_prefetch(instruction.opcode) => AccessKind::Prefetch,
            Encoding::Vglobal | Encoding::Vbuffer | Encoding::Vflat => {
                if name.contains("_atomic_") {
                    AccessKind::Atomic { returns: instruction.destination != Operand::None }
                } else if name.contains("_load_") {
                    AccessKind::Load
                } else if name.contains("_store_") {
                    AccessKind::Store
                } else {
                    return None;
                }
            }
            _ => return None,
        };
        Some(GlobalAccess { kind, scope: scope(instruction.scope), is_flat })
    }

    /// The kind under which the profile counts a flat access to LDS.
    pub fn lds_kind(self) -> LdsKind {
        match self.kind {
            AccessKind::Store => LdsKind::Store,
            AccessKind::Atomic { .. } => LdsKind::Atomic,
            _ => LdsKind::Load,
        }
    }

    /// The access kind of a flat access to LDS.
    pub fn in_lds(self) -> AccessKind {
        match self.kind {
            AccessKind::Store => AccessKind::LdsStore,
            AccessKind::Atomic { returns } => AccessKind::LdsAtomic { returns },
            _ => AccessKind::LdsLoad,
        }
    }
}

/// The scope field (instruction set reference §4.3).
pub(super) fn scope(field: u8) -> Scope {
    match field {
        0 => Scope::Cu,
        1 => Scope::Se,
        2 => Scope::Device,
        _ => Scope::System,
    }
}
