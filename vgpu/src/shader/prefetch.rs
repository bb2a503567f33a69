//! Scalar prefetches: `s_prefetch_data`, `s_buffer_prefetch_data`, `s_prefetch_inst` and the forms relative to the PC
//! (RDNA4 instruction set guide §8.5).
//!
//! Contract: with MODE.SCALAR_PREFETCH_EN clear, such an instruction is an `s_nop`. With it set, it requests 1 to
//! 32 lines of 128 bytes, which are fetched into the scalar cache (or the instruction cache) through GL2. No
//! register and no counter changes. An unmapped line is a page fault, as for a load: on the card the wave does not
//! learn of it, but the driver may end the process ("S_PREFETCH_* instructions may cause host to terminate process
//! in case of the invalid address", LLVM pull request 130050). Cost: one bit test if it is clear; a page table
//! look-up if it is set.

use zrt_isa::{Instruction, Opcode, Operand};

use crate::memory::Rights;
use crate::shader::control::{address_after, blank};
use crate::shader::fault::WaveFaultKind;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp, Source};
use crate::shader::valu::operand::read_scalar;
use crate::shader::wave::{NULL, SCALAR_PREFETCH_EN, Wave};
use crate::simd::{Executor, Operation};

/// Bytes of a line that a prefetch requests.
const LINE_BYTES: u64 = 128;
/// Most lines of one instruction; the length operands are added modulo this.
const LINES_MAX: u32 = 32;
/// Operand code of the inline constant 0; the codes of the lengths follow it.
const INLINE_ZERO: u8 = 128;
/// Bits of a buffer descriptor's base address.
const BUFFER_BASE_MASK: u64 = 0xFFFF_FFFF_FFFF;

/// The source of the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Base {
    /// A pair of scalars.
    Address,
    /// The base of a buffer descriptor. Its length is ignored.
    Buffer,
    /// The instruction after this one.
    ProgramCounter,
}

/// The micro operation of a prefetch.
pub(crate) fn translate(instruction: &Instruction) -> Option<MicroOp> {
    let mut op = blank(function(instruction.opcode)?);
    let scalar = |operand| match operand {
        Operand::Scalar(code) | Operand::Special(code) => Source::Scalar(code),
        _ => Source::Scalar(NULL),
    };
    op.sources = [scalar(instruction.sources[0]), scalar(instruction.sources[1]), Source::Constant(0)];
    if let Operand::Inline(code) = instruction.sources[2] {
        op.sources[2] = Source::Constant(u32::from(code.saturating_sub(INLINE_ZERO)));
    }
    op.immediate = instruction.immediate;
    Some(op)
}

/// Whether the instruction is a prefetch.
pub(crate) fn is_prefetch(opcode: Opcode) -> bool {
    function(opcode).is_some()
}

fn function(opcode: Opcode) -> Option<Executor> {
    use Opcode::*;
    const ADDRESS: u8 = Base::Address as u8;
    const BUFFER: u8 = Base::Buffer as u8;
    const PROGRAM_COUNTER: u8 = Base::ProgramCounter as u8;
    Some(match opcode {
        SPrefetchData => bind::<Prefetch<ADDRESS, false>>(),
        SBufferPrefetchData => bind::<Prefetch<BUFFER, false>>(),
        SPrefetchDataPcRel => bind::<Prefetch<PROGRAM_COUNTER, false>>(),
        SPrefetchInst => bind::<Prefetch<ADDRESS, true>>(),
        SPrefetchInstPcRel => bind::<Prefetch<PROGRAM_COUNTER, true>>(),
        _ => return None,
    })
}

fn bind<O: Operation>() -> Executor {
    Executor::baseline::<O>()
}

fn value(wave: &Wave, source: Source) -> u32 {
    match source {
        Source::Scalar(code) => read_scalar(wave, code),
        Source::Constant(value) => value,
        Source::Vector(_) => 0,
    }
}

fn pair(wave: &Wave, source: Source) -> u64 {
    match source {
        Source::Scalar(code) => wave.scalar_pair(code),
        _ => 0,
    }
}

/// The first byte and the length in bytes; `None` if the request is dropped.
fn request<const BASE: u8>(wave: &Wave, op: &MicroOp, machine: &Machine<'_>) -> Option<(u64, u64)> {
    let base = if BASE == Base::ProgramCounter as u8 {
        address_after(op, machine)
    } else if BASE == Base::Buffer as u8 {
        // A buffer does not support a negative offset: the request is silently dropped (RDNA4 instruction set guide
        // §8.5.1).
        if op.immediate < 0 {
            return None;
        }
        pair(wave, op.sources[0]) & BUFFER_BASE_MASK
    } else {
        pair(wave, op.sources[0])
    };
    // The two low bits of base and offset count as zero (RDNA4 instruction set guide §8.5), then the low seven of
    // the sum.
    let va = (base & !3).wrapping_add_signed(i64::from(op.immediate & !3)) & !(LINE_BYTES - 1);
    let lines = value(wave, op.sources[1]).wrapping_add(value(wave, op.sources[2])) % LINES_MAX + 1;
    Some((va, u64::from(lines) * LINE_BYTES))
}

struct Prefetch<const BASE: u8, const INSTRUCTIONS: bool>;
impl<const BASE: u8, const INSTRUCTIONS: bool> Operation for Prefetch<BASE, INSTRUCTIONS> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, machine: &mut Machine<'_>) -> Flow {
        if wave.mode & SCALAR_PREFETCH_EN == 0 {
            return Flow::Next;
        }
        let Some((va, len)) = request::<BASE>(wave, op, machine) else { return Flow::Next };
        let access = if INSTRUCTIONS { Rights::EXECUTE } else { Rights::READ };
        match machine.memory.prefetch(va, len, access) {
            Ok(()) => Flow::Next,
            Err(fault) => machine.fail(WaveFaultKind::Page(fault)),
        }
    }
}
