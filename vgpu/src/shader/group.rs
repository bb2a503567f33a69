//! One resident workgroup, and running its waves in turns.
//!
//! Contract: one thread runs a group at a time. A turn is bounded, and so is [`Group::run`]: within its budget it
//! goes round the waves until all have ended, all sleep, or none can go on. Groups are reused, so that a dispatch
//! allocates nothing once the engine is warm.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::memory::MemoryPort;
use crate::shader::dispatch::{Dispatch, Resources};
use crate::shader::fault::{WaveFault, WaveFaultKind};
use crate::shader::interpreter::{self, Code, Turn};
use crate::shader::launch::{Poison, Template, mix};
use crate::shader::machine::{Barrier, Clock, Lds, Machine, Scratch};
use crate::shader::program::{Program, ProgramCache};
use crate::shader::residency::{Need, Placement};
use crate::shader::wave::Wave;
use crate::shader::wave64;

/// Instructions of one turn of a wave, where others are waiting.
const TURN_INSTRUCTIONS: u64 = 4096;
/// Most instructions of one turn, and of one run of a group, under a seeded schedule.
const SEEDED_TURN_INSTRUCTIONS: u64 = 128;
const SEEDED_RUN_INSTRUCTIONS: u64 = 2048;

/// Register files that a worker keeps for reuse: those of the largest group.
const SPARE_WAVES_MAX: usize = 32;

/// A dispatch in the engine.
#[derive(Debug)]
pub(crate) struct ActiveDispatch {
    /// Never given twice.
    pub id: u64,
    pub dispatch: Dispatch,
    pub resources: Resources,
    pub program: ProgramHandle,
    pub template: Template,
    pub need: Need,
    /// Workgroups in all.
    pub group_count: u64,
    /// Workgroups that have not ended.
    pub remaining: AtomicU64,
    /// All groups have ended.
    pub is_done: AtomicBool,
    /// Nothing of it shall run any more.
    pub is_cancelled: AtomicBool,
}

/// A program, printable.
pub(crate) struct ProgramHandle(pub Arc<Program>);

impl std::fmt::Debug for ProgramHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Program({:#x}, {} operations)", self.0.base_va, self.0.ops.len())
    }
}

/// What all groups share.
pub(crate) struct Services<'a> {
    pub programs: &'a ProgramCache,
    pub poison: &'a Poison,
    pub clock: &'a Clock,
}

/// Whether a wave can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaveState {
    /// It has not begun: its registers are set up at its first turn, in memory that an ended wave has just left.
    Fresh,
    Ready,
    /// At the barrier.
    Waiting,
    Ended,
    /// After a fault.
    Halted,
}

struct Slot {
    /// The registers, from the first turn to the end.
    wave: Option<Box<Wave>>,
    state: WaveState,
    far: Option<Arc<Program>>,
}

/// How [`Group::run`] left the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    /// All waves have ended.
    Finished,
    /// It can go on later.
    Preempted,
    /// No wave of it will ever go on.
    Stuck,
}

/// In which order waves take turns.
pub(crate) enum Order<'a> {
    /// One after the other, each as far as it gets; at most so many instructions in all.
    Plain(u64),
    /// Drawn from a seed.
    Seeded(&'a mut u64),
}

/// Register files for reuse.
#[derive(Default)]
#[allow(clippy::vec_box, reason = "waves are large and move between the pool and groups")]
pub(crate) struct WavePool(Vec<Box<Wave>>);

impl WavePool {
    /// The one that was used last: the nearest to the processor.
    fn take(&mut self) -> Box<Wave> {
        self.0.pop().unwrap_or_default()
    }

    fn put(&mut self, wave: Box<Wave>) {
        if self.0.len() < SPARE_WAVES_MAX {
            self.0.push(wave);
        }
    }
}

/// A resident workgroup.
pub(crate) struct Group {
    dispatch: Option<Arc<ActiveDispatch>>,
    placement: Option<Placement>,
    id: [u32; 3],
    /// Work-items per dimension.
    size: [u32; 3],
    slots: Vec<Slot>,
    /// Waves that have not ended.
    live: usize,
    /// Instructions executed.
    executed: u64,
    barrier: Barrier,
    lds: Lds,
}

impl Group {
    /// An empty one, to be reused.
    pub fn new() -> Group {
        Group {
            dispatch: None,
            placement: None,
            id: [0; 3],
            size: [0; 3],
            slots: Vec::new(),
            live: 0,
            executed: 0,
            barrier: Barrier::new(1),
            lds: Lds::new(),
        }
    }

    /// Makes the workgroup of an index of the dispatch begin.
    pub fn begin(
        &mut self,
        dispatch: Arc<ActiveDispatch>,
        index: u64,
        placement: Placement,
        services: &Services<'_>,
    ) {
        (self.id, self.size) = dispatch.dispatch.workgroup(index);
        let wave_count =
            (self.size.iter().product::<u32>() as usize).div_ceil(dispatch.dispatch.lanes() as usize);
        self.live = wave_count;
        self.executed = 0;
        self.barrier = Barrier::new(wave_count as u32);
        services.poison.fill_lds(&mut self.lds, dispatch.resources.lds_bytes);
        self.slots.clear();
        self.slots.resize_with(wave_count, || Slot { wave: None, state: WaveState::Fresh, far: None });
        self.dispatch = Some(dispatch);
        self.placement = Some(placement);
    }

    /// The dispatch that it belongs to, while it runs.
    pub fn dispatch(&self) -> Option<&Arc<ActiveDispatch>> {
        self.dispatch.as_ref()
    }

    /// Waves of the group.
    pub fn wave_count(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Instructions executed since this was last asked.
    pub fn take_executed(&mut self) -> u64 {
        std::mem::take(&mut self.executed)
    }

    /// Lets go of the dispatch; where it was.
    pub fn end(&mut self) -> Option<(Arc<ActiveDispatch>, Placement)> {
        self.slots.clear();
        Some((self.dispatch.take()?, self.placement.take()?))
    }

    /// Runs waves; faults are told to `report`.
    pub fn run(
        &mut self,
        memory: &mut MemoryPort,
        waves: &mut WavePool,
        services: &Services<'_>,
        order: Order<'_>,
        report: &mut dyn FnMut(WaveFault),
    ) -> GroupState {
        let Some(dispatch) = self.dispatch.clone() else { return GroupState::Finished };
        memory.refresh(&dispatch.dispatch.address_space);
        let mut run = Run { group: self, dispatch: &dispatch, memory, waves, services, report };
        let state = match order {
            Order::Plain(budget) => run.in_order(budget),
            Order::Seeded(state) => run.seeded(state),
        };
        if state == GroupState::Stuck {
            run.explain();
        }
        state
    }
}

/// A run of a group, with what it needs.
struct Run<'a> {
    group: &'a mut Group,
    dispatch: &'a ActiveDispatch,
    memory: &'a mut MemoryPort,
    waves: &'a mut WavePool,
    services: &'a Services<'a>,
    report: &'a mut dyn FnMut(WaveFault),
}

impl Run<'_> {
    fn is_ready(&self, at: usize) -> bool {
        match self.group.slots[at].state {
            WaveState::Fresh | WaveState::Ready => true,
            WaveState::Waiting => self.group.barrier.is_open_for(at as u32),
            WaveState::Ended | WaveState::Halted => false,
        }
    }

    /// Sets up a wave that begins.
    fn begin_wave(&mut self, at: usize) -> Box<Wave> {
        let mut wave = self.waves.take();
        let (id, size) = (self.group.id, self.group.size);
        self.dispatch.template.begin(&mut wave, self.services.poison, id, size, at as u32);
        wave.next = self.dispatch.program.0.entry;
        wave
    }

    fn scratch(&self, at: usize, wave: &Wave) -> Scratch {
        let slots = self.group.placement.as_ref().map(|placement| &placement.scratch_slots);
        let Some(slot) = slots.and_then(|slots| slots.get(at)) else { return Scratch::default() };
        let wave_bytes = self.dispatch.resources.scratch_wave_bytes;
        let lanes = self.dispatch.dispatch.lanes();
        let offset = u64::from(*slot) * u64::from(wave_bytes);
        let half_bytes = if wave.is_high { u64::from(wave64::HALF_BYTES) } else { 0 };
        Scratch {
            wave_va: self.dispatch.dispatch.scratch_base_va.wrapping_add(offset + half_bytes),
            lane_bytes: wave_bytes / lanes,
            lanes_log2: lanes.trailing_zeros(),
        }
    }

    /// One turn; the instructions executed, and whether the wave did more than sleep.
    fn turn(&mut self, at: usize, budget: u64) -> (u64, bool) {
        let mut wave = match self.group.slots[at].wave.take() {
            Some(wave) => wave,
            None => self.begin_wave(at),
        };
        let scratch = self.scratch(at, &wave);
        let group = &mut *self.group;
        let slot = &mut group.slots[at];
        let mut machine = Machine {
            memory: self.memory,
            lds: &mut group.lds,
            barrier: &mut group.barrier,
            clock: self.services.clock,
            scratch,
            code_va: 0,
            jump_va: 0,
            stop: None,
        };
        let code = Code { main: &self.dispatch.program.0, far: &mut slot.far, cache: self.services.programs };
        let (turn, executed) = interpreter::run(&mut wave, code, &mut machine, budget);
        // A stopped wave can be looked at.
        let first_lane = if let Turn::Fault { .. } = turn { wave.put_halves_back() } else { 0 };
        self.services.clock.advance(executed);
        group.executed += executed;
        slot.state = match turn {
            Turn::Budget | Turn::Yield => WaveState::Ready,
            Turn::Barrier => WaveState::Waiting,
            Turn::End => WaveState::Ended,
            Turn::Fault { .. } => WaveState::Halted,
        };
        if turn == Turn::End {
            self.waves.put(wave);
            group.barrier.leave(at as u32);
            group.live -= 1;
        } else {
            slot.wave = Some(wave);
        }
        if let Turn::Fault { stop, instruction_va } = turn {
            self.fault(at, stop.kind, stop.lane.map(|lane| lane + first_lane), instruction_va);
        }
        (executed, turn != Turn::Yield)
    }

    fn fault(&mut self, at: usize, kind: WaveFaultKind, lane: Option<u32>, instruction_va: u64) {
        (self.report)(WaveFault {
            origin: self.dispatch.dispatch.origin,
            code_va: self.dispatch.dispatch.code_va,
            instruction_va,
            workgroup: self.group.id,
            wave: at as u32,
            lane,
            kind,
        });
    }

    fn state(&self) -> Option<GroupState> {
        if self.group.live == 0 {
            return Some(GroupState::Finished);
        }
        let any_ready = (0..self.group.slots.len()).any(|at| self.is_ready(at));
        (!any_ready).then_some(GroupState::Stuck)
    }

    fn in_order(&mut self, budget: u64) -> GroupState {
        let mut left = budget;
        loop {
            let mut any_progress = false;
            for at in 0..self.group.slots.len() {
                if !self.is_ready(at) {
                    continue;
                }
                let (executed, is_awake) = self.turn(at, TURN_INSTRUCTIONS.min(left));
                left = left.saturating_sub(executed);
                any_progress |= is_awake;
                if left == 0 {
                    return self.state().unwrap_or(GroupState::Preempted);
                }
            }
            if let Some(state) = self.state() {
                return state;
            }
            if !any_progress {
                return GroupState::Preempted;
            }
        }
    }

    fn seeded(&mut self, random: &mut u64) -> GroupState {
        let mut left = mix(random) % SEEDED_RUN_INSTRUCTIONS;
        loop {
            if let Some(state) = self.state() {
                return state;
            }
            let count = self.group.slots.len();
            let start = mix(random) as usize % count;
            let order = (start..count).chain(0..start);
            let Some(at) = order.into_iter().find(|at| self.is_ready(*at)) else { continue };
            let (executed, _) = self.turn(at, 1 + mix(random) % SEEDED_TURN_INSTRUCTIONS);
            if left == 0 {
                return self.state().unwrap_or(GroupState::Preempted);
            }
            left = left.saturating_sub(executed.max(1));
        }
    }

    /// A group that is stuck without a fault waits at a barrier that nobody completes.
    fn explain(&mut self) {
        let slots = &self.group.slots;
        if slots.iter().any(|slot| slot.state == WaveState::Halted) {
            return;
        }
        let Some(at) = slots.iter().position(|slot| slot.state == WaveState::Waiting) else { return };
        let slot = &slots[at];
        let program = slot.far.as_deref().unwrap_or(&self.dispatch.program.0);
        let next = slot.wave.as_ref().and_then(|wave| program.ops.get(wave.next as usize));
        let instruction_va = next.map_or(program.base_va, |op| program.address(op));
        self.fault(at, WaveFaultKind::BarrierNeverCompletes, None, instruction_va);
    }
}
