//! Which operations of the instruction set the shader engine executes, and why it does not execute the others.
//!
//! Contract: the answer comes from the translator itself, queried with one plain instruction per operation (with
//! workgroup barrier, MODE register, real-time message, or `BUF_FMT_32_FLOAT` if an operation exists for some
//! operands only), so it cannot differ from what a kernel encounters. A kernel that uses an unsupported operation
//! stops with the fault that names it. Cost: well under a millisecond for all operations.

use core::fmt;

use zrt_isa::opcode::{OPCODES, RegisterFile};
use zrt_isa::{Encoding, Instruction, LaneSelect, Modifiers, Opcode, Operand};

use crate::shader::translate::translate;
use crate::simd::Level;

/// Inline constant -1: the workgroup barrier (instruction set reference §4.2).
const MINUS_ONE: Operand = Operand::Inline(193);
/// simm16 of -1.
const WORKGROUP_BARRIER: i32 = 0xFFFF;
/// simm16 that selects all 32 bits of MODE.
const ALL_OF_MODE: i32 = 31 << 11 | 1;
/// Message that gives up the vector registers.
const MESSAGE_DEALLOC_VGPRS: i32 = 3;
/// Message that returns the reference clock.
const MESSAGE_RETURN_REALTIME: i32 = 131;
/// VBUFFER flags: an offset per lane, and `BUF_FMT_32_FLOAT` for typed operations.
const BUFFER_FLAGS: u16 = 22 << 8 | 1;

/// Why an operation is not executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NotExecuted {
    /// Images, samplers, exports, interpolation and parameter loads: there is no graphics pipeline.
    Graphics,
    /// Named barriers, which a gfx1201 workgroup cannot allocate.
    NamedBarrier,
    /// For trap handlers and the debugger, which run at a privilege that kernels do not have.
    Privileged,
    /// Probes of the address translation cache, which is not modelled.
    AddressProbe,
    /// No public document or compiler defines its behaviour.
    Undocumented,
    /// Not implemented yet.
    Missing,
}

impl fmt::Display for NotExecuted {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            NotExecuted::Graphics => "graphics: no image, export or interpolation hardware is modelled",
            NotExecuted::NamedBarrier => "named barrier: not usable on gfx1201",
            NotExecuted::Privileged => "privileged: for trap handlers only",
            NotExecuted::AddressProbe => "address probe: no translation cache is modelled",
            NotExecuted::Undocumented => "undocumented: what it does is not public",
            NotExecuted::Missing => "not built yet",
        })
    }
}

/// The coverage of one operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpcodeCoverage {
    /// The operation.
    pub opcode: Opcode,
    /// Why it is not executed; `None` if it is.
    pub not_executed: Option<NotExecuted>,
}

/// Every operation of [`OPCODES`], in its order.
pub fn opcode_coverage() -> impl Iterator<Item = OpcodeCoverage> {
    OPCODES.iter().map(|opcode| OpcodeCoverage { opcode: *opcode, not_executed: not_executed(*opcode) })
}

/// The operations that the engine executes.
pub fn executed_opcodes() -> impl Iterator<Item = Opcode> {
    opcode_coverage().filter(|row| row.not_executed.is_none()).map(|row| row.opcode)
}

/// Why an operation is not executed; `None` if it is.
pub fn not_executed(opcode: Opcode) -> Option<NotExecuted> {
    use Opcode::*;
    if translate(&representative(opcode), Level::BASELINE).is_some() {
        return None;
    }
    Some(match (opcode.encoding(), opcode) {
        (
            Encoding::Vimage | Encoding::Vsample | Encoding::Vexport | Encoding::Vinterp | Encoding::Vdsdir,
            _,
        ) => NotExecuted::Graphics,
        (_, SBarrierInit | SBarrierJoin | SBarrierLeave | SWakeupBarrier) => NotExecuted::NamedBarrier,
        (_, SRfeB64 | SEndpgmSaved) => NotExecuted::Privileged,
        (_, SAtcProbe | SAtcProbeBuffer) => NotExecuted::AddressProbe,
        (_, GlobalAtomicOrderedAddB64) => NotExecuted::Undocumented,
        _ => NotExecuted::Missing,
    })
}

/// A plain instruction of an operation: registers for all operands, all modifiers 0, and a valid immediate.
pub(crate) fn representative(opcode: Opcode) -> Instruction {
    use Opcode::*;
    let info = opcode.operands();
    let mut sources = [Operand::None; 3];
    for (index, (operand, kind)) in sources.iter_mut().zip(info.sources).enumerate() {
        *operand = match kind.file {
            RegisterFile::Absent => Operand::None,
            RegisterFile::Scalar | RegisterFile::ScalarRegister => Operand::Scalar(16 * index as u8),
            _ => Operand::Vector(16 * index as u8),
        };
    }
    let mut immediate = 0;
    match opcode {
        SBarrierSignal | SBarrierSignalIsfirst | SGetBarrierState => sources[0] = MINUS_ONE,
        SBarrierWait => immediate = WORKGROUP_BARRIER,
        SSendmsg => immediate = MESSAGE_DEALLOC_VGPRS,
        SSendmsgRtnB32 | SSendmsgRtnB64 => immediate = MESSAGE_RETURN_REALTIME,
        SGetregB32 | SSetregB32 | SSetregImm32B32 => immediate = ALL_OF_MODE,
        _ => {}
    }
    Instruction {
        encoding: opcode.encoding(),
        opcode,
        dword_count: 2,
        destination: match info.destination.file {
            RegisterFile::Absent => Operand::None,
            RegisterFile::Vector => Operand::Vector(64),
            RegisterFile::Exec => Operand::Scalar(126),
            _ => Operand::Scalar(64),
        },
        destination2: if info.destination2.is_present() { Operand::Scalar(106) } else { Operand::None },
        sources,
        soffset: Operand::None,
        modifiers: Modifiers::default(),
        lanes: LaneSelect::None,
        immediate,
        scope: 0,
        temporal_hint: 0,
        address_flags: if opcode.encoding() == Encoding::Vbuffer { BUFFER_FLAGS } else { 1 },
        dual: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_executed_is_known_by_name_and_reason() {
        use NotExecuted::*;
        let refused: Vec<(&str, NotExecuted)> =
            opcode_coverage().filter_map(|row| Some((row.opcode.mnemonic(), row.not_executed?))).collect();
        let expected = [
            ("s_rfe_b64", Privileged),
            ("s_barrier_init", NamedBarrier),
            ("s_barrier_join", NamedBarrier),
            ("s_wakeup_barrier", NamedBarrier),
            ("s_barrier_leave", NamedBarrier),
            ("s_endpgm_saved", Privileged),
            ("s_atc_probe", AddressProbe),
            ("s_atc_probe_buffer", AddressProbe),
            ("v_interpolate", Graphics),
            ("ds_param_load", Graphics),
            ("ds_direct_load", Graphics),
            ("global_atomic_ordered_add_b64", Undocumented),
            ("image_access", Graphics),
            ("image_sample", Graphics),
            ("export", Graphics),
        ];
        assert_eq!(refused, expected);
    }

    #[test]
    fn every_operation_is_counted_once() {
        let (executed, refused): (Vec<_>, Vec<_>) =
            opcode_coverage().partition(|row| row.not_executed.is_none());
        assert_eq!(executed.len() + refused.len(), OPCODES.len());
        assert_eq!(executed_opcodes().count(), executed.len());
        assert!(executed_opcodes().any(|opcode| opcode == Opcode::VSwmmacI3216x16x64Iu4));
    }

    /// Destinations and sources of one operation of each kind, in registers that are far enough apart.
    #[test]
    fn a_plain_instruction_has_a_register_for_each_operand() {
        use Operand::{None as Nothing, Scalar as S, Vector as V};
        for (opcode, destinations, sources) in [
            (Opcode::VFmaF32, [V(64), Nothing], [V(0), V(16), V(32)]),
            (Opcode::VAddCoCiU32, [V(64), S(106)], [V(0), V(16), S(32)]),
            (Opcode::VCmpxLtF32, [S(126), Nothing], [V(0), V(16), Nothing]),
            (Opcode::VReadlaneB32, [S(64), Nothing], [V(0), S(16), Nothing]),
            (Opcode::SAddCoU32, [S(64), Nothing], [S(0), S(16), Nothing]),
            (Opcode::GlobalLoadB32, [V(64), Nothing], [V(0), Nothing, S(32)]),
            (Opcode::SGetBarrierState, [S(64), Nothing], [Operand::Inline(193), Nothing, Nothing]),
            (Opcode::GlobalStoreB32, [Nothing, Nothing], [V(0), V(16), S(32)]),
            (Opcode::SCmpEqI32, [Nothing, Nothing], [S(0), S(16), Nothing]),
        ] {
            let plain = representative(opcode);
            let found = ([plain.destination, plain.destination2], plain.sources);
            assert_eq!(found, (destinations, sources), "{}", opcode.mnemonic());
        }
    }

    #[test]
    fn an_immediate_is_one_that_the_operation_has() {
        for (opcode, immediate) in [
            (Opcode::SBarrierWait, 0xFFFF),
            (Opcode::SSendmsg, 3),
            (Opcode::SSendmsgRtnB32, 131),
            (Opcode::SSendmsgRtnB64, 131),
            // Register 1, from bit 0, 32 bits.
            (Opcode::SGetregB32, 0xF801),
            (Opcode::SSetregB32, 0xF801),
            (Opcode::SSetregImm32B32, 0xF801),
            (Opcode::SMovB64, 0),
        ] {
            assert_eq!(representative(opcode).immediate, immediate, "{}", opcode.mnemonic());
        }
        // BUF_FMT_32_FLOAT is 22; bit 0 is an offset for each lane.
        let flags =
            [Opcode::BufferLoadB32, Opcode::GlobalLoadB32].map(|one| representative(one).address_flags);
        assert_eq!(flags, [0x1601, 1]);
    }

    #[test]
    fn each_reason_is_told_in_its_own_words() {
        let expected = [
            (NotExecuted::Graphics, "graphics: no image, export or interpolation hardware is modelled"),
            (NotExecuted::NamedBarrier, "named barrier: not usable on gfx1201"),
            (NotExecuted::Privileged, "privileged: for trap handlers only"),
            (NotExecuted::AddressProbe, "address probe: no translation cache is modelled"),
            (NotExecuted::Undocumented, "undocumented: what it does is not public"),
            (NotExecuted::Missing, "not built yet"),
        ];
        for (reason, text) in expected {
            assert_eq!(reason.to_string(), text);
        }
    }
}
