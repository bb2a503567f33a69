//! Float operations: those of the vector ALU, applied to one value.

use core::marker::PhantomData;

use zrt_isa::Opcode;

use super::access::read;
use crate::shader::float::{HALF, Mode, SINGLE};
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::valu::compare::{Half, Single, relations::*};
use crate::shader::valu::shell::{Lane, ResultKind, Test};
use crate::shader::valu::{convert, half, single};
use crate::shader::wave::Wave;
use crate::simd::{Executor, Level, Operation};

/// The position of the third source.
const NO_THIRD: u8 = 0;
const THIRD_IS_OLD: u8 = 1;
const THIRD_IS_SOURCE: u8 = 2;

/// Which bits of a source are used.
const WORD: u8 = 0;
const LOW_HALF: u8 = 1;
const HIGH_HALF: u8 = 2;

struct Shell<L, const THIRD: u8, const SOURCE: u8>(PhantomData<L>);
impl<L: Lane, const THIRD: u8, const SOURCE: u8> Operation for Shell<L, THIRD, SOURCE> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let part = |value: u32| match SOURCE {
            LOW_HALF => value & 0xFFFF,
            HIGH_HALF => value >> 16,
            _ => value,
        };
        let source = |index: usize| part(read::<true>(wave, op, index, false) as u32);
        let (a, b) = (source(0), if L::SOURCES > 1 { source(1) } else { 0 });
        let c = match THIRD {
            THIRD_IS_OLD => part(wave.scalar[op.destination as usize]),
            THIRD_IS_SOURCE => source(2),
            _ => 0,
        };
        let value = if L::MODE.deviates(wave.mode) {
            L::exact(a, b, c, Mode(wave.mode))
        } else {
            L::compute(a, b, c)
        };
        // A 16-bit result has a zero high half.
        let is_half = matches!(L::RESULT, ResultKind::Half);
        wave.scalar[op.destination as usize] = if is_half { value & 0xFFFF } else { value };
        Flow::Next
    }
}

/// A comparison that sets SCC.
struct TestShell<T, const HALVES: bool>(PhantomData<T>);
impl<T: Test, const HALVES: bool> Operation for TestShell<T, HALVES> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let mode = Mode(wave.mode);
        let source = |index: usize| {
            let value = read::<true>(wave, op, index, false);
            if HALVES {
                HALF.flush_source(value & 0xFFFF, mode.half())
            } else {
                SINGLE.flush_source(value, mode.single())
            }
        };
        wave.scc = T::test(source(0), source(1));
        Flow::Next
    }
}

fn word<L: Lane>(level: Level) -> Executor {
    level.bind::<Shell<L, NO_THIRD, WORD>>()
}

fn halves<L: Lane>(level: Level) -> Executor {
    level.bind::<Shell<L, NO_THIRD, LOW_HALF>>()
}

fn test<T: Test>() -> Executor {
    Executor::baseline::<TestShell<T, false>>()
}

fn test_half<T: Test>() -> Executor {
    Executor::baseline::<TestShell<T, true>>()
}

/// The function of a float operation.
pub(super) fn bind(opcode: Opcode, _special: bool, level: Level) -> Option<Executor> {
    use Opcode::*;
    use half::{arithmetic as half_arithmetic, selection as half_selection};
    use single::{arithmetic, selection};
    Some(match opcode {
        SCeilF32 => word::<arithmetic::VCeilF32>(level),
        SFloorF32 => word::<arithmetic::VFloorF32>(level),
        STruncF32 => word::<arithmetic::VTruncF32>(level),
        SRndneF32 => word::<arithmetic::VRndneF32>(level),
        SCvtF32I32 => word::<convert::VCvtF32I32>(level),
        SCvtF32U32 => word::<convert::VCvtF32U32>(level),
        SCvtI32F32 => word::<convert::VCvtI32F32>(level),
        SCvtU32F32 => word::<convert::VCvtU32F32>(level),
        SCvtF16F32 => word::<convert::VCvtF16F32>(level),
        SCvtF32F16 => halves::<convert::VCvtF32F16>(level),
        SCvtHiF32F16 => level.bind::<Shell<convert::VCvtF32F16, NO_THIRD, HIGH_HALF>>(),
        SCvtPkRtzF16F32 => word::<convert::VCvtPkRtzF16F32>(level),
        SCeilF16 => halves::<half_arithmetic::VCeilF16>(level),
        SFloorF16 => halves::<half_arithmetic::VFloorF16>(level),
        STruncF16 => halves::<half_arithmetic::VTruncF16>(level),
        SRndneF16 => halves::<half_arithmetic::VRndneF16>(level),
        SAddF32 => word::<arithmetic::VAddF32>(level),
        SSubF32 => word::<arithmetic::VSubF32>(level),
        SMulF32 => word::<arithmetic::VMulF32>(level),
        SMinNumF32 => word::<selection::VMinNumF32>(level),
        SMaxNumF32 => word::<selection::VMaxNumF32>(level),
        SMinimumF32 => word::<selection::VMinimumF32>(level),
        SMaximumF32 => word::<selection::VMaximumF32>(level),
        SFmacF32 => level.bind::<Shell<arithmetic::VFmaF32, THIRD_IS_OLD, WORD>>(),
        SFmaakF32 | SFmamkF32 => level.bind::<Shell<arithmetic::VFmaF32, THIRD_IS_SOURCE, WORD>>(),
        SAddF16 => halves::<half_arithmetic::VAddF16>(level),
        SSubF16 => halves::<half_arithmetic::VSubF16>(level),
        SMulF16 => halves::<half_arithmetic::VMulF16>(level),
        SMinNumF16 => halves::<half_selection::VMinNumF16>(level),
        SMaxNumF16 => halves::<half_selection::VMaxNumF16>(level),
        SMinimumF16 => halves::<half_selection::VMinimumF16>(level),
        SMaximumF16 => halves::<half_selection::VMaximumF16>(level),
        SFmacF16 => level.bind::<Shell<half_arithmetic::VFmaF16, THIRD_IS_OLD, LOW_HALF>>(),
        SCmpLtF32 => test::<Single<LESS>>(),
        SCmpEqF32 => test::<Single<EQUAL>>(),
        SCmpLeF32 => test::<Single<LESS_OR_EQUAL>>(),
        SCmpGtF32 => test::<Single<GREATER>>(),
        SCmpLgF32 => test::<Single<LESS_OR_GREATER>>(),
        SCmpGeF32 => test::<Single<GREATER_OR_EQUAL>>(),
        SCmpOF32 => test::<Single<ORDERED>>(),
        SCmpUF32 => test::<Single<UNORDERED>>(),
        SCmpNgeF32 => test::<Single<NOT_GREATER_OR_EQUAL>>(),
        SCmpNlgF32 => test::<Single<NOT_LESS_OR_GREATER>>(),
        SCmpNgtF32 => test::<Single<NOT_GREATER>>(),
        SCmpNleF32 => test::<Single<NOT_LESS_OR_EQUAL>>(),
        SCmpNeqF32 => test::<Single<NOT_EQUAL>>(),
        SCmpNltF32 => test::<Single<NOT_LESS>>(),
        SCmpLtF16 => test_half::<Half<LESS>>(),
        SCmpEqF16 => test_half::<Half<EQUAL>>(),
        SCmpLeF16 => test_half::<Half<LESS_OR_EQUAL>>(),
        SCmpGtF16 => test_half::<Half<GREATER>>(),
        SCmpLgF16 => test_half::<Half<LESS_OR_GREATER>>(),
        SCmpGeF16 => test_half::<Half<GREATER_OR_EQUAL>>(),
        SCmpOF16 => test_half::<Half<ORDERED>>(),
        SCmpUF16 => test_half::<Half<UNORDERED>>(),
        SCmpNgeF16 => test_half::<Half<NOT_GREATER_OR_EQUAL>>(),
        SCmpNlgF16 => test_half::<Half<NOT_LESS_OR_GREATER>>(),
        SCmpNgtF16 => test_half::<Half<NOT_GREATER>>(),
        SCmpNleF16 => test_half::<Half<NOT_LESS_OR_EQUAL>>(),
        SCmpNeqF16 => test_half::<Half<NOT_EQUAL>>(),
        SCmpNltF16 => test_half::<Half<NOT_LESS>>(),
        _ => return None,
    })
}
