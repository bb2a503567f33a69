//! Runs one wave for a bounded time.
//!
//! Contract: [`run`] executes slightly more than `budget` instructions at most, and returns why it stopped. Jumps
//! to addresses outside the program continue in other programs; nothing is decoded twice for that.
//! Cost: about 2 ns per instruction on top of its own work; with [`Uninspected`] the inspection is compiled out.

use std::sync::Arc;

use crate::shader::fault::WaveFaultKind;
use crate::shader::machine::{Machine, Stop};
use crate::shader::micro::Flow;
use crate::shader::program::{Fetch, Note, Program, ProgramCache};
use crate::shader::wave::Wave;

/// Why a wave's turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The budget is used up.
    Budget,
    /// It sleeps.
    Yield,
    /// It waits at the barrier; the wait is executed again.
    Barrier,
    /// It has ended.
    End,
    /// It cannot continue.
    Fault { stop: Stop, instruction_va: u64 },
}

/// The code that a wave runs: the dispatch's program, and the one it jumped to.
pub(crate) struct Code<'a, N> {
    pub main: &'a Arc<Program<N>>,
    pub far: &'a mut Option<Arc<Program<N>>>,
    pub cache: &'a ProgramCache<N>,
}

/// Why the inner loop was left.
enum Exit {
    Turn(Turn),
    Jump(u64),
    Refetch(u64),
}

/// Inspects every instruction; `N` is what the programs keep for that.
pub(crate) trait Inspect<N> {
    /// Whether inspection is enabled.
    const IS_ON: bool;

    /// Called before the operation at an index; returning false ends the wave's turn there.
    fn before(&mut self, wave: &mut Wave, program: &Program<N>, at: usize, machine: &mut Machine<'_>)
    -> bool;

    /// Called after the operation.
    fn after(&mut self, wave: &Wave, program: &Program<N>, at: usize, flow: Flow, machine: &mut Machine<'_>);
}

/// No inspection.
pub(crate) struct Uninspected;
impl<N> Inspect<N> for Uninspected {
    const IS_ON: bool = false;

    #[inline(always)]
    fn before(&mut self, _: &mut Wave, _: &Program<N>, _: usize, _: &mut Machine<'_>) -> bool {
        true
    }

    #[inline(always)]
    fn after(&mut self, _: &Wave, _: &Program<N>, _: usize, _: Flow, _: &mut Machine<'_>) {}
}

/// Executes the wave from `wave.next` on. Returns the end of the turn and the number of instructions.
pub(crate) fn run<N: Note, I: Inspect<N>>(
    wave: &mut Wave,
    code: Code<'_, N>,
    machine: &mut Machine<'_>,
    budget: u64,
    inspect: &mut I,
) -> (Turn, u64) {
    let mut executed = 0;
    let turn = loop {
        let program = code.far.as_deref().unwrap_or(code.main);
        machine.code_va = program.base_va;
        match run_program(wave, program, machine, budget, &mut executed, inspect) {
            Exit::Turn(turn) => break turn,
            Exit::Jump(va) if va % 4 != 0 => {
                let stop = Stop { kind: WaveFaultKind::MisalignedJump(va), lane: None };
                break Turn::Fault { stop, instruction_va: va };
            }
            Exit::Jump(va) => jump(wave, code.main, code.far, code.cache, machine, va),
            Exit::Refetch(va) => {
                code.cache.invalidate();
                // The programs known to the wave may be outdated now.
                let program = get(wave, code.cache, machine, va);
                wave.next = program.entry;
                *code.far = Some(program);
            }
        }
        if executed >= budget {
            break Turn::Budget;
        }
    };
    wave.executed += executed;
    (turn, executed)
}

#[inline(always)]
fn run_program<N, I: Inspect<N>>(
    wave: &mut Wave,
    program: &Program<N>,
    machine: &mut Machine<'_>,
    budget: u64,
    executed: &mut u64,
    inspect: &mut I,
) -> Exit {
    let ops = program.ops.as_slice();
    let mut at = wave.next as usize;
    let mut count = *executed;
    let exit = loop {
        let op = &ops[at];
        if I::IS_ON && !inspect.before(wave, program, at, machine) {
            break Exit::Turn(Turn::Budget);
        }
        let flow = op.executor.call(wave, op, machine);
        if I::IS_ON {
            inspect.after(wave, program, at, flow, machine);
        }
        count += u64::from(op.weight);
        if flow == Flow::Next {
            at += 1;
        } else if flow == Flow::Jump {
            at = wave.next as usize;
        } else {
            let after = program.address(op).wrapping_add(4 * u64::from(op.dword_count));
            match flow {
                Flow::Yield => {
                    at += 1;
                    break Exit::Turn(Turn::Yield);
                }
                Flow::Barrier => {
                    // It has not been executed yet.
                    count -= u64::from(op.weight);
                    break Exit::Turn(Turn::Barrier);
                }
                Flow::Indirect => break Exit::Jump(machine.jump_va),
                Flow::Refetch => break Exit::Refetch(after),
                Flow::End => break Exit::Turn(Turn::End),
                Flow::Fault | Flow::Next | Flow::Jump => {
                    let known = program.stop(op).map(|kind| Stop { kind, lane: None });
                    let halted = Stop { kind: WaveFaultKind::Halted, lane: None };
                    let stop = machine.stop.take().or(known).unwrap_or(halted);
                    break Exit::Turn(Turn::Fault { stop, instruction_va: program.address(op) });
                }
            }
        }
        if count >= budget {
            break Exit::Turn(Turn::Budget);
        }
    };
    wave.next = at as u32;
    *executed = count;
    exit
}

fn get<N: Note>(wave: &Wave, cache: &ProgramCache<N>, machine: &Machine<'_>, va: u64) -> Arc<Program<N>> {
    let fetch = Fetch {
        space_id: machine.memory.space_id(),
        table: machine.memory.table(),
        vector_registers: wave.vector_count,
        is_wave64: wave.is_wave64(),
    };
    cache.get(fetch, va)
}

/// Continues at an address: in the wave's current program, in the dispatch's, or in one that starts there.
fn jump<N: Note>(
    wave: &mut Wave,
    main: &Arc<Program<N>>,
    far: &mut Option<Arc<Program<N>>>,
    cache: &ProgramCache<N>,
    machine: &Machine<'_>,
    va: u64,
) {
    if let Some(index) = far.as_ref().and_then(|program| program.index_of(va)) {
        wave.next = index;
    } else if let Some(index) = main.index_of(va) {
        *far = None;
        wave.next = index;
    } else {
        let program = get(wave, cache, machine, va);
        wave.next = program.entry;
        *far = Some(program);
    }
}

#[cfg(test)]
mod tests;
