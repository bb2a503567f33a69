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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::program::Note as _;

    /// Words of llvm-mc 19.
    #[test]
    fn accesses_of_memory_have_kinds_scopes_and_apertures() {
        let atomic = |returns| AccessKind::Atomic { returns };
        for (words, kind, scope, is_flat) in [
            (&[0xEE05_0004, 1, 0][..], AccessKind::Load, Scope::Cu, false), // global_load_b32 v1, v0, s[4:5]
            (&[0xEE05_0004, 4 << 16 | 1, 0], AccessKind::Load, Scope::Se, false), // the same, scope:SCOPE_SE
            (&[0xEE05_0004, 8 << 16 | 1, 0], AccessKind::Load, Scope::Device, false),
            (&[0xEE05_0004, 12 << 16 | 1, 0], AccessKind::Load, Scope::System, false),
            (&[0xEE06_8004, 0x80_0000, 0], AccessKind::Store, Scope::Cu, false), // global_store_b32 v0, v1, s[4:5]
            (&[0xEE0D_4004, 0x80_0000, 0], atomic(false), Scope::Cu, false), // global_atomic_add_u32 v0, v1, s[4:5]
            // global_atomic_swap_b64 v[6:7], v0, v[2:3], s[4:5] th:TH_ATOMIC_RETURN
            (&[0xEE10_4004, 0x110_0006, 0], atomic(true), Scope::Cu, false),
            (&[0xEC05_007C, 2, 0], AccessKind::Load, Scope::Cu, true), // flat_load_b32 v2, v[0:1]
            (&[0xEC06_C07C, 0x100_0000, 0], AccessKind::Store, Scope::Cu, true), // flat_store_b64 v[0:1], v[2:3]
            (&[0xEC0D_407C, 0x100_0000, 0], atomic(false), Scope::Cu, true), // flat_atomic_add_u32 v[0:1], v2
            (&[0xC405_007C, 0x4080_0801, 0], AccessKind::Load, Scope::Cu, false), // buffer_load_b32
            (&[0xC406_407C, 0x4080_0801, 0], AccessKind::Store, Scope::Cu, false), // buffer_store_b16
            (&[0xC40D_407C, 0x4080_0801, 0], atomic(false), Scope::Cu, false), // buffer_atomic_add_u32
            (&[0xC420_407C, 0x9900_0801, 0], AccessKind::Load, Scope::Cu, false), // tbuffer_load_format_xy
            (&[0xF400_0100, 0xF800_0000], AccessKind::ScalarLoad, Scope::Cu, false), // s_load_b32 s4, s[0:1], 0x0
            (&[0xF402_0100, 0xF800_0000], AccessKind::ScalarLoad, Scope::Cu, false), // s_buffer_load_b32
            (&[0xF404_C000, 0xF800_0000], AccessKind::Prefetch, Scope::Cu, false), // s_prefetch_data s[0:1], 0x0
        ] {
            let instruction = zrt_isa::decode(words).unwrap();
            let noted = Noted::new(&instruction, WaveSize::Wave32);
            let access = noted.memory.unwrap();
            assert_eq!((access.kind, access.scope, access.is_flat), (kind, scope, is_flat), "{instruction}");
            assert!(
                !noted.is_local && noted.control == Control::None && noted.lds.is_none(),
                "{instruction}"
            );
            let in_lds = match kind {
                AccessKind::Store => (AccessKind::LdsStore, LdsKind::Store),
                AccessKind::Atomic { returns } => (AccessKind::LdsAtomic { returns }, LdsKind::Atomic),
                _ => (AccessKind::LdsLoad, LdsKind::Load),
            };
            assert_eq!((access.in_lds(), access.lds_kind()), in_lds, "{instruction}");
        }
    }

    /// Whatever orders others, or may access memory or LDS, is looked at; the rest is not.
    #[test]
    fn what_accesses_nothing_orders_or_is_local() {
        let cache = Control::Cache;
        for (words, control, is_local) in [
            (&[0xBE80_4EC1][..], Control::BarrierSignal, false), // s_barrier_signal -1
            (&[0xBE80_4FC1], Control::BarrierSignal, false),     // s_barrier_signal_isfirst -1
            (&[0xBF94_FFFF], Control::BarrierWait, false),       // s_barrier_wait -1
            (&[0xEE0A_C07C, 0x8_0000, 0], cache(CacheControl::Invalidate), false), // global_inv scope:SCOPE_DEV
            (&[0xEE0B_007C, 0xC_0000, 0], cache(CacheControl::WriteBack), false), // global_wb scope:SCOPE_SYS
            (&[0xEE13_C07C, 0x4_0000, 0], cache(CacheControl::WriteBackInvalidate), false), // global_wbinv
            (&[0xF404_2000, 0], Control::ScalarInvalidate, false),                // s_dcache_inv
            (&[0xBFBC_0000], Control::InstructionInvalidate, false),              // s_icache_inv
            (&[0xB884_0601], Control::Outside, false), // s_getreg_b32 s4, hwreg(HW_REG_MODE, 24, 1)
            (&[0xBFB6_0001], Control::Outside, false), // s_sendmsg sendmsg(MSG_INTERRUPT)
            (&[0xBE84_4C83], Control::Outside, false), // s_sendmsg_rtn_b32 s4, sendmsg(MSG_RTN_GET_REALTIME)
            (&[0xBE84_4D83], Control::Outside, false), // s_sendmsg_rtn_b64 s[4:5], sendmsg(MSG_RTN_GET_REALTIME)
            (&[0xBFC0_0000], Control::None, false),    // s_wait_loadcnt 0x0
            (&[0xED05_007C, 0x2_0002, 0], Control::None, false), // scratch_load_b32 v2, v0, off
            (&[0xD8D4_0000, 0x0100_0000], Control::None, false), // ds_swizzle_b32 v1, v0
            (&[0xD850_0000, 0], Control::None, false), // ds_nop
            (&[0xBF80_0000], Control::None, true),     // s_nop 0
            (&[0x7E00_0301], Control::None, true),     // v_mov_b32_e32 v0, v1
        ] {
            let instruction = zrt_isa::decode(words).unwrap();
            let noted = Noted::new(&instruction, WaveSize::Wave32);
            assert_eq!((noted.control, noted.is_local), (control, is_local), "{instruction}");
            assert!(noted.memory.is_none() && noted.lds.is_none(), "{instruction}");
            assert!(noted.registers.is_some());
            let high = Noted::of_high_half(&instruction);
            assert!(high.registers.is_none(), "the low half has been checked");
            assert_eq!((high.control, high.is_local), (control, is_local), "{instruction}");
        }
    }
}
