//! Control of the wave: branches, calls, barriers, sleep, waits, messages, hardware registers.
//!
//! Contract: loads and stores complete when they are issued, so waits have nothing to wait for; those for stores
//! order the host's memory. Branch targets are micro-op indices that the program fills in. Operations that user
//! code may not use on gfx1201 (named barriers, privileged messages and registers) are not translated.

use std::sync::atomic::{Ordering, fence};

use zrt_isa::{Instruction, Opcode, Operand};

use crate::shader::fault::WaveFaultKind;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::valu::operand::{destination, read_scalar};
use crate::shader::wave::{EXEC_LO, VCC_LO, Wave};
use crate::simd::{Executor, Operation};

/// simm16 of `s_barrier_wait` and operand of `s_barrier_signal` for the workgroup barrier (instruction set
/// reference §4.2).
const WORKGROUP_BARRIER: i32 = -1;
/// Messages (LLVM's `SIDefines.h`): give up the vector registers early, read the reference clock.
const MESSAGE_DEALLOC_VGPRS: i32 = 3;
const MESSAGE_RETURN_REALTIME: i32 = 131;
/// Hardware registers (instruction set reference §3).
const REGISTER_MODE: u32 = 1;
const REGISTER_STATUS: u32 = 2;
const REGISTER_GPR_ALLOC: u32 = 5;
const REGISTER_LDS_ALLOC: u32 = 6;
const REGISTER_SCRATCH_BASE_LOW: u32 = 20;
const REGISTER_SCRATCH_BASE_HIGH: u32 = 21;
const REGISTER_HARDWARE_ID1: u32 = 23;
const REGISTER_HARDWARE_ID2: u32 = 24;
const REGISTER_SHADER_CYCLES_LOW: u32 = 29;
const REGISTER_SHADER_CYCLES_HIGH: u32 = 30;
/// HW_ID2 of every wave: micro-engine 1, the first compute one, at bits 9:8 (as public code for RDNA reads it);
/// queue, pipe and VMID are not distinguished.
const HARDWARE_ID2: u32 = 1 << 8;
/// SHADER_CYCLES counts at the shader clock; this is a round number of its cycles per tick of the reference clock.
const SHADER_CYCLES_PER_TICK: u64 = 23;

/// What the program has to know about an instruction's successors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Successors {
    /// The next instruction.
    Next,
    /// The next instruction, and one at this distance from it in dwords.
    NextAndTarget(i32),
    /// Only the one at this distance from the next instruction in dwords.
    Target(i32),
    /// No known successor.
    Nowhere,
}

/// Where control may continue after an instruction.
pub(crate) fn successors(instruction: &Instruction) -> Successors {
    use Opcode::*;
    let distance = i32::from(instruction.immediate as u16 as i16);
    match instruction.opcode {
        SBranch => Successors::Target(distance),
        SCbranchScc0 | SCbranchScc1 | SCbranchVccz | SCbranchVccnz | SCbranchExecz | SCbranchExecnz
        | SCallB64 => Successors::NextAndTarget(distance),
        SSetpcB64 | SRfeB64 | SEndpgm | SEndpgmSaved | SCodeEnd => Successors::Nowhere,
        // The instruction after s_swappc is where the callee returns.
        _ => Successors::Next,
    }
}

/// Whether the instruction has no effect here, so that it can be omitted and only counted.
pub(crate) fn is_without_effect(instruction: &Instruction) -> bool {
    use Opcode::*;
    matches!(
        instruction.opcode,
        SNop | SClause
            | SDelayAlu
            | SWaitAlu
            | SSingleuseVdst
            | SWaitcnt
            | SWaitLoadcnt
            | SWaitSamplecnt
            | SWaitBvhcnt
            | SWaitExpcnt
            | SWaitDscnt
            | SWaitKmcnt
            | SWaitLoadcntDscnt
            | SWaitEvent
            | SSetprio
            | SVersion
            | SWakeup
            | SIncperflevel
            | SDecperflevel
            | STtracedata
            | STtracedataImm
            | SDcacheInv
            | DsNop
            | VNop
    )
}

/// The micro operation of a control instruction.
pub(crate) fn translate(instruction: &Instruction) -> Option<MicroOp> {
    let executor = function(instruction)?;
    let mut op = blank(executor);
    op.destination = destination(instruction.destination);
    op.immediate = instruction.immediate;
    op.sources[0] = match instruction.sources[0] {
        Operand::Scalar(code) | Operand::Special(code) => Source::Scalar(code),
        Operand::Literal(value) => Source::Constant(value),
        _ => Source::Constant(0),
    };
    Some(op)
}

/// A micro operation that has only its function.
pub(crate) fn blank(executor: Executor) -> MicroOp {
    MicroOp {
        executor,
        destination: 0,
        destination2: 0,
        sources: [Source::Constant(0); 3],
        wide: [0; 3],
        modifiers: 0,
        immediate: 0,
        immediate2: 0,
        code_dword: 0,
        dword_count: 0,
        weight: 1,
    }
}

fn function(instruction: &Instruction) -> Option<Executor> {
    use Opcode::*;
    if is_without_effect(instruction) {
        return Some(bind::<Nothing>());
    }
    let is_workgroup_barrier = instruction.sources[0] == Operand::Inline(193);
    Some(match instruction.opcode {
        SWaitStorecnt | SWaitStorecntDscnt | SWaitIdle => bind::<WaitForStores>(),
        SBranch => bind::<Branch>(),
        SCbranchScc0 => bind::<BranchIf<ScCode, false>>(),
        SCbranchScc1 => bind::<BranchIf<ScCode, true>>(),
        SCbranchVccz => bind::<BranchIf<Vcc, false>>(),
        SCbranchVccnz => bind::<BranchIf<Vcc, true>>(),
        SCbranchExecz => bind::<BranchIf<Exec, false>>(),
        SCbranchExecnz => bind::<BranchIf<Exec, true>>(),
        SGetpcB64 => bind::<GetProgramCounter>(),
        SSetpcB64 => bind::<SetProgramCounter>(),
        SSwappcB64 => bind::<SwapProgramCounter>(),
        SCallB64 => bind::<Call>(),
        SEndpgm => bind::<End>(),
        SCodeEnd => bind::<PastEnd>(),
        STrap => bind::<Trap>(),
        SSethalt | SSetkill if instruction.immediate & 1 == 0 => bind::<Nothing>(),
        SSetkill => bind::<End>(),
        SSethalt | SSendmsghalt => bind::<Halt>(),
        SSleep if instruction.immediate & 0x7F == 0 => bind::<Nothing>(),
        SSleep | SSleepVar => bind::<Sleep>(),
        SBarrierWait if instruction.immediate as i16 as i32 == WORKGROUP_BARRIER => bind::<BarrierWait>(),
        SBarrierSignal if is_workgroup_barrier => bind::<BarrierSignal<false>>(),
        SBarrierSignalIsfirst if is_workgroup_barrier => bind::<BarrierSignal<true>>(),
        SGetBarrierState if is_workgroup_barrier => bind::<BarrierState>(),
        SSendmsg if instruction.immediate & 0xFF == MESSAGE_DEALLOC_VGPRS => bind::<Nothing>(),
        SSendmsgRtnB32 if instruction.immediate == MESSAGE_RETURN_REALTIME => bind::<ReadClock<false>>(),
        SSendmsgRtnB64 if instruction.immediate == MESSAGE_RETURN_REALTIME => bind::<ReadClock<true>>(),
        SGetregB32 if is_readable(register_of(instruction.immediate)) => bind::<GetRegister>(),
        SSetregB32 | SSetregImm32B32 if register_of(instruction.immediate) == REGISTER_MODE => {
            bind::<SetMode>()
        }
        SRoundMode => bind::<SetModeField<0>>(),
        SDenormMode => bind::<SetModeField<4>>(),
        SIcacheInv => bind::<InvalidateInstructions>(),
        _ => return None,
    })
}

/// The function of a branch on vcc or exec in a wave64.
pub(crate) fn wave64_branch(opcode: Opcode) -> Option<Executor> {
    Some(match opcode {
        Opcode::SCbranchVccz => bind::<BranchIf<VccPair, false>>(),
        Opcode::SCbranchVccnz => bind::<BranchIf<VccPair, true>>(),
        Opcode::SCbranchExecz => bind::<BranchIf<ExecPair, false>>(),
        Opcode::SCbranchExecnz => bind::<BranchIf<ExecPair, true>>(),
        _ => return None,
    })
}

fn bind<O: Operation>() -> Executor {
    Executor::baseline::<O>()
}

fn register_of(simm16: i32) -> u32 {
    simm16 as u32 & 0x3F
}

fn is_readable(register: u32) -> bool {
    matches!(
        register,
        REGISTER_MODE
            | REGISTER_STATUS
            | REGISTER_GPR_ALLOC
            | REGISTER_LDS_ALLOC
            | REGISTER_SCRATCH_BASE_LOW
            | REGISTER_SCRATCH_BASE_HIGH
            | REGISTER_HARDWARE_ID1
            | REGISTER_HARDWARE_ID2
            | REGISTER_SHADER_CYCLES_LOW
            | REGISTER_SHADER_CYCLES_HIGH
    )
}

/// Offset and mask of the field that `s_getreg` and `s_setreg` name.
fn register_field(simm16: i32) -> (u32, u32) {
    let offset = simm16 as u32 >> 6 & 31;
    let bits = (simm16 as u32 >> 11 & 31) + 1;
    (offset, u32::MAX >> (32 - bits))
}

#[inline(always)]
fn source(wave: &Wave, op: &MicroOp) -> u32 {
    match op.sources[0] {
        Source::Scalar(code) => read_scalar(wave, code),
        Source::Constant(value) => value,
        Source::Vector(_) => 0,
    }
}

fn source_pair(wave: &Wave, op: &MicroOp) -> u64 {
    match op.sources[0] {
        Source::Scalar(code) => wave.scalar_pair(code),
        _ => 0,
    }
}

macro_rules! operations {
    ($($(#[$doc:meta])* $name:ident($wave:ident, $op:ident, $machine:ident) $body:block)*) => {
        $($(#[$doc])* pub(crate) struct $name;
        impl Operation for $name {
            #[inline(always)]
            fn execute($wave: &mut Wave, $op: &MicroOp, $machine: &mut Machine<'_>) -> Flow $body
        })*
    };
}

operations! {
    Nothing(_wave, _op, _machine) { Flow::Next }

    /// Earlier stores are visible to everyone before any later access.
    WaitForStores(_wave, _op, _machine) {
        fence(Ordering::SeqCst);
        Flow::Next
    }

    /// Cache operations: keep earlier and later accesses apart. There is no cache to invalidate or write back.
    OrderAccesses(_wave, _op, _machine) {
        fence(Ordering::AcqRel);
        Flow::Next
    }

    /// To the micro operation that the immediate names.
    Branch(wave, op, _machine) {
        wave.next = op.immediate as u32;
        Flow::Jump
    }

    GetProgramCounter(wave, op, machine) {
        wave.set_scalar_pair(op.destination, address_after(op, machine));
        Flow::Next
    }

    SetProgramCounter(wave, op, machine) {
        machine.jump_va = source_pair(wave, op);
        Flow::Indirect
    }

    SwapProgramCounter(wave, op, machine) {
        machine.jump_va = source_pair(wave, op);
        wave.set_scalar_pair(op.destination, address_after(op, machine));
        Flow::Indirect
    }

    Call(wave, op, machine) {
        wave.set_scalar_pair(op.destination, address_after(op, machine));
        wave.next = op.immediate as u32;
        Flow::Jump
    }

    /// To a known address outside the program.
    FarBranch(_wave, op, machine) {
        machine.jump_va = op.wide[0] as u64 | (op.wide[1] as u64) << 32;
        Flow::Indirect
    }

    End(_wave, _op, _machine) { Flow::End }

    PastEnd(_wave, _op, machine) { machine.fail(WaveFaultKind::PastEnd) }

    Trap(_wave, op, machine) { machine.fail(WaveFaultKind::Trap(op.immediate as u32 & 0xFF)) }

    Halt(_wave, _op, machine) { machine.fail(WaveFaultKind::Halted) }

    Sleep(_wave, _op, _machine) { Flow::Yield }

    /// Executed again until the barrier passes.
    BarrierWait(wave, _op, machine) {
        if machine.barrier.wait(wave.index_in_group) { Flow::Next } else { Flow::Barrier }
    }

    BarrierState(wave, op, machine) {
        let barrier = &machine.barrier;
        wave.scalar[op.destination as usize] = 1 | barrier.members.count_ones() << 4 | barrier.signals << 16;
        Flow::Next
    }

    GetRegister(wave, op, machine) {
        let value = match register_of(op.immediate) {
            REGISTER_MODE => wave.mode,
            REGISTER_STATUS => status(wave),
            // Size in granules of 8 (wave64: 4) at bits 19:12, encoded as the field of RSRC1.
            REGISTER_GPR_ALLOC => (wave.vector_count / if wave.is_wave64() { 4 } else { 8 } - 1) << 12,
            // Size in units of 512 bytes at bits 20:12.
            REGISTER_LDS_ALLOC => (machine.lds.bytes / 512) << 12,
            REGISTER_SCRATCH_BASE_LOW => machine.scratch.wave_va as u32,
            REGISTER_SCRATCH_BASE_HIGH => (machine.scratch.wave_va >> 32) as u32,
            REGISTER_HARDWARE_ID1 => machine.hardware_id,
            REGISTER_HARDWARE_ID2 => HARDWARE_ID2,
            REGISTER_SHADER_CYCLES_LOW => (machine.clock.ticks() * SHADER_CYCLES_PER_TICK) as u32,
            _ => ((machine.clock.ticks() * SHADER_CYCLES_PER_TICK) >> 32) as u32,
        };
        let (offset, mask) = register_field(op.immediate);
        wave.scalar[op.destination as usize] = value >> offset & mask;
        Flow::Next
    }

    SetMode(wave, op, _machine) {
        let (offset, mask) = register_field(op.immediate);
        let value = source(wave, op);
        wave.mode = wave.mode & !(mask << offset) | (value & mask) << offset;
        Flow::Next
    }

    InvalidateInstructions(_wave, _op, _machine) { Flow::Refetch }
}

/// Address of the instruction after this one.
pub(crate) fn address_after(op: &MicroOp, machine: &Machine<'_>) -> u64 {
    let dwords = i64::from(op.code_dword as i32) + i64::from(op.dword_count);
    machine.code_va.wrapping_add_signed(4 * dwords)
}

/// STATUS, as far as user code can know it: SCC 0, EXECZ 9, VCCZ 10, WAVE64 29 (Linux 6.13,
/// `cwsr_trap_handler_gfx12.asm`).
fn status(wave: &Wave) -> u32 {
    let is_wave64 = wave.is_wave64();
    let [execz, vccz] = match is_wave64 {
        true => [ExecPair::holds(wave), VccPair::holds(wave)],
        false => [Exec::holds(wave), Vcc::holds(wave)],
    }
    .map(|has_any| u32::from(!has_any));
    wave.scc as u32 | execz << 9 | vccz << 10 | u32::from(is_wave64) << 29
}

/// What a conditional branch tests.
trait Condition {
    fn holds(wave: &Wave) -> bool;
}

struct ScCode;
impl Condition for ScCode {
    #[inline(always)]
    fn holds(wave: &Wave) -> bool {
        wave.scc
    }
}

struct Vcc;
impl Condition for Vcc {
    #[inline(always)]
    fn holds(wave: &Wave) -> bool {
        wave.scalar[VCC_LO as usize] != 0
    }
}

struct Exec;
impl Condition for Exec {
    #[inline(always)]
    fn holds(wave: &Wave) -> bool {
        wave.scalar[EXEC_LO as usize] != 0
    }
}

struct VccPair;
impl Condition for VccPair {
    #[inline(always)]
    fn holds(wave: &Wave) -> bool {
        wave.scalar_pair(VCC_LO) != 0
    }
}

struct ExecPair;
impl Condition for ExecPair {
    #[inline(always)]
    fn holds(wave: &Wave) -> bool {
        wave.scalar_pair(EXEC_LO) != 0
    }
}

/// Branches if the condition is `EXPECTED`.
struct BranchIf<C, const EXPECTED: bool>(core::marker::PhantomData<C>);
impl<C: Condition, const EXPECTED: bool> Operation for BranchIf<C, EXPECTED> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        if C::holds(wave) == EXPECTED {
            wave.next = op.immediate as u32;
            return Flow::Jump;
        }
        Flow::Next
    }
}

struct BarrierSignal<const TELLS_FIRST: bool>;
impl<const TELLS_FIRST: bool> Operation for BarrierSignal<TELLS_FIRST> {
    #[inline(always)]
    fn execute(wave: &mut Wave, _op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let is_first = machine.barrier.signal();
        if TELLS_FIRST {
            wave.scc = is_first;
        }
        Flow::Next
    }
}

struct ReadClock<const WIDE: bool>;
impl<const WIDE: bool> Operation for ReadClock<WIDE> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        let ticks = machine.clock.ticks();
        wave.scalar[op.destination as usize] = ticks as u32;
        if WIDE {
            wave.scalar[op.destination as usize + 1] = (ticks >> 32) as u32;
        }
        Flow::Next
    }
}

/// `s_round_mode` (bit 0) and `s_denorm_mode` (bit 4).
struct SetModeField<const LOW: u32>;
impl<const LOW: u32> Operation for SetModeField<LOW> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        wave.mode = wave.mode & !(0xF << LOW) | (op.immediate as u32 & 0xF) << LOW;
        Flow::Next
    }
}

/// Stops the wave for a reason known at decode time: `wide[0]` is an index into the program's list of stops.
pub(crate) struct KnownStop;
impl Operation for KnownStop {
    #[inline(always)]
    fn execute(_wave: &mut Wave, _op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        // If `stop` is unset, the interpreter asks the program.
        Flow::Fault
    }
}

#[cfg(test)]
mod tests;
