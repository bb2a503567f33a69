//! Results of memory and messages may be used only after the wait that guarantees them (instruction set reference
//! §4.1, §4.2).
//!
//! Contract: for each register and counter, the state is how many later instructions have raised that counter since
//! the youngest one that delivers to the register. A wait for `n` guarantees the register if that number is at
//! least `n` and everything on the counter returns in order; otherwise only a wait for 0 does. Overwriting a
//! register with an outstanding delivery is allowed only for LDS over LDS
//! ([`super::effects::Effects::in_order_counter`]). Legacy `s_waitcnt` does not count as a wait. A load or store of
//! one half of a register waits for that half alone. Every other use waits for both halves, since a delivery to one
//! half may write the whole register (instruction set reference §4.1).
//!
//! Functions ([`super::convention`]): at the entry, any delivery may be outstanding from before the call; at the
//! return, none may be; after a call, none is. Of the registers that m0 selects, the first counts as used, together
//! with those after it that are outstanding with it.

use super::analysis::{Analysis, Call, Dword};
use super::effects::{
    Counter, LDS, Part, REGISTER_COUNT, Read, Registers, Role, SCC, VCC_LO, VECTOR_FIRST, runs,
};
use super::finding::{Finding, Rule};
use super::step::{Callee, Step};
use crate::opcode::Opcode;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use core::array;

/// Largest count that a wait instruction can name; higher ones need no distinction.
const LATER_MAX: u8 = 63;
/// What one outstanding delivery takes in a map, with its part of nodes that are not full.
const DELIVERY_BYTES: usize = 24;

pub(super) struct Counters {
    /// Whether the code is entered by a call.
    pub(super) is_called: bool,
}

/// An outstanding result.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Delivery {
    /// The instruction that requested it; `None` means a caller.
    dword: Option<Dword>,
    /// Later instructions on the same counter.
    later: u8,
}

#[derive(Clone)]
struct Queue {
    /// The youngest delivery, by register and half ([`slot`]): most code has few outstanding, and states are
    /// kept wherever paths meet.
    deliveries: BTreeMap<u16, Delivery>,
    /// The counter's results return in any order.
    is_unordered: bool,
}

/// By [`Counter`].
#[derive(Clone)]
pub(super) struct State {
    queues: Box<[Queue; 4]>,
}

/// A half of a register.
fn slot(register: usize, half: usize) -> u16 {
    (2 * register + half) as u16
}

impl Queue {
    fn new(counter: Counter) -> Self {
        // SMEM and messages always return in any order.
        Self { deliveries: BTreeMap::new(), is_unordered: counter == Counter::Km }
    }

    fn wait(&mut self, counter: Counter, count: u8) {
        if count == 0 {
            *self = Self::new(counter);
        } else if !self.is_unordered {
            self.deliveries.retain(|_, delivery| delivery.later < count);
        }
    }

    fn raise(&mut self) {
        for delivery in self.deliveries.values_mut() {
            delivery.later = (delivery.later + 1).min(LATER_MAX);
        }
    }

    /// The deliveries that a caller may have left outstanding.
    fn from_caller(counter: Counter) -> Self {
        let (registers, has_lds) = match counter {
            Counter::Load => (VECTOR_FIRST..SCC, false),
            Counter::Ds => (VECTOR_FIRST..SCC, true),
            Counter::Km => (0..VCC_LO + 2, false),
            // Loads of parameters, which only graphics uses.
            Counter::Exp => (0..0, false),
        };
        let mut queue = Self::new(counter);
        for register in registers.chain(has_lds.then_some(LDS)) {
            queue.deliver(register, Part::Whole, Delivery { dword: None, later: 0 });
        }
        queue
    }

    /// Forgets the outstanding deliveries of a caller.
    fn forget_caller(&mut self) {
        self.deliveries.retain(|_, delivery| delivery.dword.is_some());
    }

    /// The youngest delivery to a part of a register.
    fn youngest(&self, register: usize, part: Part) -> Option<Delivery> {
        let halves = part.halves().filter_map(|half| self.deliveries.get(&slot(register, half)));
        halves.min_by_key(|delivery| delivery.later).copied()
    }

    fn deliver(&mut self, register: usize, part: Part, delivery: Delivery) {
        self.deliveries.extend(part.halves().map(|half| (slot(register, half), delivery)));
    }

    /// The register, and those after it in its file that are outstanding with it. scc and LDS have no file.
    fn run_from(&self, first: usize) -> Registers {
        let end = if first < VECTOR_FIRST { VECTOR_FIRST } else { SCC };
        let count =
            (first..end).take_while(|&register| self.youngest(register, Part::Whole).is_some()).count();
        Registers::new(first, count.max(1))
    }

    /// The instruction that requested the youngest delivery to a part of a register; `None` means a caller.
    fn cause(&self, register: usize, part: Part) -> Option<usize> {
        self.youngest(register, part).and_then(|delivery| delivery.dword).map(Dword::number)
    }

    /// The wait that a part of a register needs.
    fn needed(&self, register: usize, part: Part) -> u8 {
        match self.youngest(register, part) {
            Some(delivery) if !self.is_unordered => delivery.later,
            _ => 0,
        }
    }
}

impl State {
    fn queue(&mut self, counter: Counter) -> &mut Queue {
        &mut self.queues[counter as usize]
    }

    fn wait(&mut self, step: &Step) {
        let immediate = step.instruction.immediate as u32;
        let low = (immediate & 0x3f) as u8;
        let high = (immediate >> 8 & 0x3f) as u8;
        match step.instruction.opcode {
            Opcode::SWaitLoadcnt => self.queue(Counter::Load).wait(Counter::Load, low),
            Opcode::SWaitDscnt => self.queue(Counter::Ds).wait(Counter::Ds, low),
            Opcode::SWaitKmcnt => self.queue(Counter::Km).wait(Counter::Km, low),
            Opcode::SWaitExpcnt => self.queue(Counter::Exp).wait(Counter::Exp, low),
            Opcode::SWaitLoadcntDscnt => {
                self.queue(Counter::Load).wait(Counter::Load, high);
                self.queue(Counter::Ds).wait(Counter::Ds, low);
            }
            Opcode::SWaitStorecntDscnt => self.queue(Counter::Ds).wait(Counter::Ds, low),
            Opcode::SWaitIdle => Counter::ALL.into_iter().for_each(|one| self.queue(one).wait(one, 0)),
            _ => {}
        }
    }

    /// Reports what `registers` still wait for. `part`: the used part of each. `allowed`: a counter that may order
    /// the use.
    fn demand(
        &mut self,
        registers: Registers,
        part: Part,
        allowed: Option<Counter>,
        use_name: &str,
        step: &Step,
        report: &mut dyn FnMut(Finding),
    ) {
        for counter in Counter::ALL {
            let queue = &mut self.queues[counter as usize];
            if allowed == Some(counter) || queue.deliveries.is_empty() {
                continue;
            }
            let mut is_from_caller = false;
            runs(
                registers,
                |register| queue.youngest(register, part).is_some(),
                |hit| {
                    let count = hit.range().map(|register| queue.needed(register, part)).min().unwrap_or(0);
                    let cause = queue.cause(hit.range().start, part);
                    is_from_caller |= cause.is_none();
                    let remedy = needed_wait(counter, count, use_name, cause);
                    let rule = if hit.range().start == LDS { Rule::BarrierWait } else { Rule::MemoryWait };
                    report(step.finding(rule, Some(hit), cause, remedy));
                },
            );
            // Reported only once.
            if is_from_caller {
                queue.forget_caller();
            }
        }
    }

    /// Registers that m0 selects.
    fn demand_relative(
        &mut self,
        first: Option<Registers>,
        use_name: &str,
        step: &Step,
        report: &mut dyn FnMut(Finding),
    ) {
        let Some(first) = first else { return };
        // All begin at the same register: the longest contains the others.
        let runs = self.queues.iter().map(|queue| queue.run_from(first.range().start));
        let longest = runs.fold(first, Ord::max);
        self.demand(longest, Part::Whole, None, use_name, step, report);
        self.forget(longest, Part::Whole);
    }

    /// Reports what a return may not leave outstanding, only the first delivery for each counter.
    fn demand_all(&mut self, step: &Step, report: &mut dyn FnMut(Finding)) {
        for counter in Counter::ALL {
            let queue = &mut self.queues[counter as usize];
            let is_pending = |&register: &usize| queue.youngest(register, Part::Whole).is_some();
            let Some(first) = (0..REGISTER_COUNT).find(is_pending) else { continue };
            let cause = queue.cause(first, Part::Whole);
            let remedy = needed_wait(counter, 0, "return", cause);
            let rule = if first == LDS { Rule::BarrierWait } else { Rule::MemoryWait };
            report(step.finding(rule, Some(queue.run_from(first)), cause, remedy));
            *queue = Queue::new(counter);
        }
    }

    fn forget(&mut self, registers: Registers, part: Part) {
        for queue in self.queues.iter_mut().filter(|queue| !queue.deliveries.is_empty()) {
            for register in registers.range() {
                for half in part.halves() {
                    queue.deliveries.remove(&slot(register, half));
                }
            }
        }
    }
}

/// The wait missing before a use. `cause`: the instruction that requested the outstanding result; `None` means a
/// caller.
fn needed_wait(counter: Counter, count: u8, use_name: &str, cause: Option<usize>) -> String {
    let wait = format!("needs {} {count:#x} before this {use_name}", counter.wait());
    match cause {
        Some(_) => wait,
        None => wait + ": the caller may have left loads under way",
    }
}

impl Analysis for Counters {
    type State = State;

    fn entry_state(&self) -> State {
        let queue = if self.is_called { Queue::from_caller } else { Queue::new };
        State { queues: Box::new(array::from_fn(|index| queue(Counter::ALL[index]))) }
    }

    fn is_kept_at_end(&self) -> bool {
        true
    }

    fn after_call(&self, state: &mut State, call: &Call) {
        if call.callee != Callee::Free {
            Counter::ALL.into_iter().for_each(|one| state.queue(one).wait(one, 0));
        }
    }

    fn step(&self, state: &mut State, step: &Step, report: &mut dyn FnMut(Finding)) {
        let effects = &step.effects;
        for &Read { registers, role } in &effects.reads {
            let part = if role == Role::Data { effects.moved } else { Part::Whole };
            state.demand(registers, part, None, "read", step, report);
            state.forget(registers, part);
        }
        if let Some(relative) = effects.relative {
            state.demand_relative(relative.source, "read", step, report);
            state.demand_relative(relative.destination, "overwrite", step, report);
        }
        let allowed = effects.in_order_counter();
        for &registers in &effects.writes {
            if registers.range().start < SCC {
                state.demand(registers, effects.moved, allowed, "overwrite", step, report);
                state.forget(registers, effects.moved);
            }
        }
        state.wait(step);
        if step.is_return() {
            state.demand_all(step, report);
        }
        for &counter in &effects.counters {
            let queue = state.queue(counter);
            queue.raise();
            for register in effects.writes.iter().flat_map(|registers| registers.range()) {
                queue.deliver(
                    register,
                    effects.moved,
                    Delivery { dword: Some(Dword::new(step.dword)), later: 0 },
                );
            }
        }
    }

    fn join(&self, state: &mut State, other: &State) -> bool {
        let mut has_grown = false;
        for (queue, other) in state.queues.iter_mut().zip(other.queues.iter()) {
            for (&slot, delivery) in &other.deliveries {
                let known = queue.deliveries.get(&slot);
                if known.is_none_or(|known| delivery.later < known.later) {
                    queue.deliveries.insert(slot, *delivery);
                    has_grown = true;
                }
            }
        }
        has_grown
    }

    fn bytes(&self, state: &State) -> usize {
        let deliveries: usize = state.queues.iter().map(|queue| queue.deliveries.len()).sum();
        size_of_val(&*state.queues) + DELIVERY_BYTES * deliveries
    }
}
