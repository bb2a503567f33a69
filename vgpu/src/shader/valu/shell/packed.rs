//! 16-bit lane functions on both halves of their sources (VOP3P).

use core::marker::PhantomData;

use super::{Lane, ResultKind};
use crate::shader::float::Mode;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::valu::access::{Adjust, clamp_half_lane, commit, raw_sources};
use crate::shader::valu::operand::{Packed, Parts};
use crate::shader::wave::{LANES, Row, Wave};
use crate::simd::{Executor, Level, Operation};

/// A 16-bit [`Lane`] applied to both halves of its sources (VOP3P).
pub(in crate::shader::valu) struct Halves<L>(PhantomData<L>);

/// The function for packed operands.
pub(in crate::shader::valu) fn packed<L: Lane>(parts: &Parts, level: Level) -> Option<Executor> {
    if parts.modifiers.clamp() && L::RESULT == ResultKind::Bits {
        return None;
    }
    Some(level.bind::<Halves<L>>())
}

/// The packed function of a saturating form.
pub(in crate::shader::valu) fn saturating_halves<L: Lane>(level: Level) -> Executor {
    level.bind::<Halves<L>>()
}

impl<L: Lane> Operation for Halves<L> {
    #[inline(always)]
    fn execute(wave: &mut Wave, op: &MicroOp, _machine: &mut Machine<'_>) -> Flow {
        let modifiers = Packed(op.modifiers);
        let mut result = Row([0; LANES]);
        {
            let mut rooms = [Row([0; LANES]); 3];
            let [a, b, c] = raw_sources(wave, op, L::SOURCES, &mut rooms);
            let float = matches!(L::RESULT, ResultKind::Half);
            let adjust = |high: bool| [0, 1, 2].map(|index| Adjust::of_half(modifiers, index, high, float));
            let (low, high) = (adjust(false), adjust(true));
            if L::MODE.deviates(wave.mode) {
                exact_halves::<L>([a, b, c], low, high, Mode(wave.mode), &mut result);
            } else {
                // Two loops: the compiler vectorises each of them, but not a combined one.
                let mut upper = Row([0; LANES]);
                for lane in 0..LANES {
                    result.0[lane] =
                        L::compute(low[0].apply(a.0[lane]), low[1].apply(b.0[lane]), low[2].apply(c.0[lane]));
                }
                for lane in 0..LANES {
                    upper.0[lane] = L::compute(
                        high[0].apply(a.0[lane]),
                        high[1].apply(b.0[lane]),
                        high[2].apply(c.0[lane]),
                    );
                }
                for lane in 0..LANES {
                    result.0[lane] = result.0[lane] & 0xFFFF | upper.0[lane] << 16;
                }
            }
        }
        finish_halves(wave, op, result, L::RESULT)
    }
}

/// Clamps and writes a result.
#[inline(never)]
fn finish_halves(wave: &mut Wave, op: &MicroOp, mut result: Row, kind: ResultKind) -> Flow {
    if Packed(op.modifiers).clamp() && kind == ResultKind::Half {
        for value in &mut result.0 {
            *value = clamp_half_lane(*value) | clamp_half_lane(*value >> 16) << 16;
        }
    }
    commit(wave, op, &result);
    Flow::Next
}

#[cold]
#[inline(never)]
fn exact_halves<L: Lane>(
    sources: [&Row; 3],
    low: [Adjust; 3],
    high: [Adjust; 3],
    mode: Mode,
    result: &mut Row,
) {
    for lane in 0..LANES {
        let half = |adjust: [Adjust; 3]| {
            let source = |index: usize| adjust[index].apply(sources[index].0[lane]);
            L::exact(source(0), source(1), source(2), mode)
        };
        result.0[lane] = half(low) & 0xFFFF | half(high) << 16;
    }
}
