//! One resident workgroup, and running its waves in turns.
//!
//! Contract: one thread runs a group at a time. A turn is bounded, and so is [`Group::run`]: within its budget it
//! cycles through the waves until all have ended, all sleep, or none can continue. Groups are reused, so that a
//! dispatch allocates nothing once the engine is warm.

mod examine;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use crate::check::circles::Place;
use crate::check::inspector::{Inspection, Inspector};
use crate::check::memory::GroupShadow;
use crate::check::noted::Noted;
use crate::check::registers::{LaunchState, Strictness};
use crate::check::watch::WatchedPort;
use crate::check::wave::{WaveInspector, WaveShadow};
use crate::memory::{MemoryPort, Rights};
use crate::shader::code_words::CodeWords;
use crate::shader::dispatch::{Dispatch, Resources};
use crate::shader::fault::{WaveFault, WaveFaultKind};
use crate::shader::interpreter::{self, Code, Turn, Uninspected};
use crate::shader::launch::{Poison, Template, mix};
use crate::shader::machine::{Barrier, Clock, Lds, Machine, Scratch};
use crate::shader::program::{Program, ProgramCache};
use crate::shader::wave::{EXEC_LO, Wave};
use crate::workgroups::residency::{Need, Placement};
use zrt_isa::resources::WaveSize;

/// Instructions of one turn of a wave while others are waiting.
const TURN_INSTRUCTIONS: u64 = 4096;
/// Most instructions of one turn, and of one run of a group, under a seeded schedule.
const SEEDED_TURN_INSTRUCTIONS: u64 = 128;
const SEEDED_RUN_INSTRUCTIONS: u64 = 2048;

/// Register files that a worker keeps for reuse: those of the largest group.
const SPARE_WAVES_MAX: usize = 32;

/// A dispatch in the engine.
#[derive(Debug)]
pub(crate) struct ActiveDispatch {
    /// Never reused.
    pub id: u64,
    pub dispatch: Dispatch,
    pub resources: Resources,
    pub program: ProgramHandle,
    pub template: Template,
    pub need: Need,
    /// Number of workgroups.
    pub group_count: u64,
    /// Number of its first wave among all waves of an inspected device; the others follow in order.
    pub first_wave: u32,
    /// Workgroups that have not ended.
    pub remaining: AtomicU64,
    /// All groups have ended.
    pub is_done: AtomicBool,
    /// Set once none of it may run any more.
    pub is_cancelled: AtomicBool,
}

/// A program, printable.
pub(crate) struct ProgramHandle(pub Arc<Program<Noted>>);

impl std::fmt::Debug for ProgramHandle {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Program({:#x}, {} operations)", self.0.base_va, self.0.ops.len())
    }
}

/// The parts that all groups share.
pub(crate) struct Services<'a> {
    pub programs: &'a ProgramCache<Noted>,
    pub poison: &'a Poison,
    pub clock: &'a Clock,
    pub inspection: Option<&'a Inspection>,
}

/// Whether a wave can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WaveState {
    /// It has not begun: its registers are set up at its first turn, in memory just released by an ended wave.
    Fresh,
    Ready,
    /// Waiting at the barrier.
    Waiting,
    Ended,
    /// Stopped by a fault.
    Halted,
}

struct Slot {
    /// The registers, from the first turn until the end.
    wave: Option<Box<Wave>>,
    state: WaveState,
    far: Option<Arc<Program<Noted>>>,
    /// Present if waves are inspected.
    shadow: Option<Box<WaveShadow>>,
}

impl Default for Slot {
    fn default() -> Slot {
        Slot { wave: None, state: WaveState::Fresh, far: None, shadow: None }
    }
}

impl Slot {
    fn program<'a>(&'a self, dispatch: &'a ActiveDispatch) -> &'a Program<Noted> {
        self.far.as_deref().unwrap_or(&dispatch.program.0)
    }

    /// The instruction at an address in the wave's current code.
    fn code_at(&self, dispatch: &ActiveDispatch, va: u64) -> CodeWords {
        self.program(dispatch).code_at(va, dispatch.dispatch.wave_size())
    }

    /// Address of the wave's next instruction.
    fn position(&self, dispatch: &ActiveDispatch) -> u64 {
        let program = self.program(dispatch);
        let next = self.wave.as_ref().and_then(|wave| program.ops.get(wave.next as usize));
        next.map_or(program.base_va, |op| program.address(op))
    }
}

/// The state in which [`Group::run`] left the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GroupState {
    /// All waves have ended.
    Finished,
    /// It can continue later.
    Preempted,
    /// None of its waves will ever continue.
    Stuck,
}

/// The order in which waves take turns.
pub(crate) enum Order<'a> {
    /// In sequence, each as far as it can run; at most this many instructions in all.
    Plain(u64),
    /// Drawn from a seed.
    Seeded(&'a mut u64),
}

/// Register files for reuse, and their shadows if waves are inspected.
#[derive(Default)]
#[allow(clippy::vec_box, reason = "waves are large and move between the pool and groups")]
pub(crate) struct WavePool {
    waves: Vec<Box<Wave>>,
    shadows: Vec<Box<WaveShadow>>,
}

impl WavePool {
    /// The file used last, which is most likely in the CPU's cache.
    fn take(&mut self) -> Box<Wave> {
        self.waves.pop().unwrap_or_default()
    }

    fn put(&mut self, wave: Box<Wave>) {
        if self.waves.len() < SPARE_WAVES_MAX {
            self.waves.push(wave);
        }
    }

    fn put_shadow(&mut self, shadow: Option<Box<WaveShadow>>) {
        if self.shadows.len() < SPARE_WAVES_MAX {
            self.shadows.extend(shadow);
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
    /// Index in the dispatch.
    index: u64,
    /// Present if waves are inspected.
    shadow: Option<Box<GroupShadow>>,
}

impl Group {
    /// An empty group, to be reused.
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
            index: 0,
            shadow: None,
        }
    }

    /// Starts the workgroup at an index of the dispatch.
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
        self.slots.resize_with(wave_count, Slot::default);
        if let Some(inspection) = services.inspection.filter(|inspection| inspection.is_checking()) {
            let lds_bytes = inspection.declared_lds(dispatch.dispatch.code_va, dispatch.resources.lds_bytes);
            match &mut self.shadow {
                Some(shadow) => shadow.begin(lds_bytes),
                None => self.shadow = Some(Box::new(GroupShadow::new(lds_bytes))),
            }
        }
        self.index = index;
        self.dispatch = Some(dispatch);
        self.placement = Some(placement);
    }

    /// The dispatch it belongs to, while it runs.
    pub fn dispatch(&self) -> Option<&Arc<ActiveDispatch>> {
        self.dispatch.as_ref()
    }

    /// Waves of the group.
    pub fn wave_count(&self) -> u64 {
        self.slots.len() as u64
    }

    /// Instructions executed since the last call.
    pub fn take_executed(&mut self) -> u64 {
        std::mem::take(&mut self.executed)
    }

    /// Releases the dispatch. Returns it with the group's placement.
    pub fn end(&mut self) -> Option<(Arc<ActiveDispatch>, Placement)> {
        self.slots.clear();
        Some((self.dispatch.take()?, self.placement.take()?))
    }

    /// Runs waves; faults are passed to `report`.
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
        let mut inspector = services.inspection.map(Inspection::lock);
        let mut inspector = inspector.as_deref_mut();
        if let Some(inspector) = &mut inspector {
            inspector.lend_watch(memory);
        }
        let mut run = Run { group: self, dispatch: &dispatch, memory, waves, services, inspector, report };
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

/// Tells a watcher that a turn has ended after which the wave can continue. `scratch`: address and bytes of the
/// wave's scratch.
fn tell_circles(
    memory: &mut MemoryPort,
    number: u32,
    place: Place,
    executed: u64,
    wave: &Wave,
    (scratch_va, scratch_bytes): (u64, u32),
) {
    let Some((watch, table)) = memory.watch_of_table() else { return };
    watch.progress.circles.turn_ended(number, place, executed, wave, || {
        let mut bytes = vec![0; scratch_bytes as usize];
        table.read_bytes(scratch_va, &mut bytes, Rights::READ).ok().map(|()| bytes)
    });
}

/// A run of a group, with everything it needs.
struct Run<'a> {
    group: &'a mut Group,
    dispatch: &'a ActiveDispatch,
    memory: &'a mut MemoryPort,
    waves: &'a mut WavePool,
    services: &'a Services<'a>,
    inspector: Option<&'a mut Inspector>,
    report: &'a mut dyn FnMut(WaveFault),
}

impl Drop for Run<'_> {
    /// Returns the checker to its owner, even if a debugger has panicked.
    fn drop(&mut self) {
        if let Some(inspector) = &mut self.inspector {
            inspector.take_watch_back(self.memory);
        }
    }
}

impl Run<'_> {
    fn is_ready(&self, at: usize) -> bool {
        match self.group.slots[at].state {
            WaveState::Fresh | WaveState::Ready => true,
            WaveState::Waiting => self.group.barrier.is_open_for(at as u32),
            WaveState::Ended | WaveState::Halted => false,
        }
    }

    /// Sets up a new wave.
    fn begin_wave(&mut self, at: usize) -> Box<Wave> {
        let mut wave = self.waves.take();
        let (id, size) = (self.group.id, self.group.size);
        self.dispatch.template.begin(&mut wave, self.services.poison, id, size, at as u32);
        wave.next = self.dispatch.program.0.entry;
        if self.inspector.is_some() {
            self.begin_shadow(at, &wave);
        }
        wave
    }

    fn begin_shadow(&mut self, at: usize, wave: &Wave) {
        let dispatch = self.dispatch;
        let waves_per_group = dispatch.need.waves;
        let number = self.group.index.wrapping_mul(u64::from(waves_per_group)) as u32;
        let compute_unit = self.group.placement.as_ref().map_or(0, |place| place.compute_unit(at as u32));
        let trusts_compilers = self.services.inspection.is_some_and(Inspection::trusts_compilers);
        let private_bytes = dispatch.resources.scratch_wave_bytes / dispatch.dispatch.lanes();
        let launch = LaunchState {
            user_sgprs: dispatch.resources.user_sgprs as u8,
            has_group_id: dispatch.resources.has_group_id,
            lanes_mask: wave.scalar_pair(EXEC_LO),
            private_bytes,
            declared_private_bytes: self.inspector.as_ref().map_or(private_bytes, |inspector| {
                inspector.declared_private(dispatch.dispatch.code_va, private_bytes)
            }),
            wave_size: if wave.is_wave64() { WaveSize::Wave64 } else { WaveSize::Wave32 },
            strictness: if trusts_compilers { Strictness::Compiler } else { Strictness::Strict },
        };
        let pool = &mut self.waves.shadows;
        let shadow = self.group.slots[at].shadow.get_or_insert_with(|| pool.pop().unwrap_or_default());
        shadow.begin(dispatch.first_wave.wrapping_add(number).wrapping_add(at as u32), compute_unit, &launch);
    }

    fn scratch(&self, at: usize) -> Scratch {
        let slots = self.group.placement.as_ref().map(|placement| &placement.scratch_slots);
        let Some(slot) = slots.and_then(|slots| slots.get(at)) else { return Scratch::default() };
        let wave_bytes = self.dispatch.resources.scratch_wave_bytes;
        let lanes = self.dispatch.dispatch.lanes();
        let offset = u64::from(*slot) * u64::from(wave_bytes);
        Scratch {
            wave_va: self.dispatch.dispatch.scratch_base_va.wrapping_add(offset),
            lane_bytes: wave_bytes / lanes,
            lanes_log2: lanes.trailing_zeros(),
        }
    }

    /// Executes one turn. Returns the instructions executed, and whether the wave did more than sleep.
    fn turn(&mut self, at: usize, budget: u64) -> (u64, bool) {
        let mut wave = match self.group.slots[at].wave.take() {
            Some(wave) => wave,
            None => self.begin_wave(at),
        };
        debug_assert!(!wave.is_high, "a turn ends with the low half of a wave64 in place");
        let scratch = self.scratch(at);
        let scratch_va = scratch.wave_va;
        let hardware_id = self.group.placement.as_ref().map_or(0, |place| place.hardware_id(at as u32));
        let group = &mut *self.group;
        let slot = &mut group.slots[at];
        let mut machine = Machine {
            memory: self.memory,
            lds: &mut group.lds,
            barrier: &mut group.barrier,
            clock: self.services.clock,
            scratch,
            hardware_id,
            code_va: 0,
            jump_va: 0,
            stop: None,
        };
        let code = Code { main: &self.dispatch.program.0, far: &mut slot.far, cache: self.services.programs };
        let program_va = code.far.as_deref().unwrap_or(code.main).base_va;
        let begin = Place { program_va, next: wave.next };
        let (turn, executed) = match (self.services.inspection, &mut self.inspector) {
            (Some(inspection), Some(inspector)) => {
                let shadow = slot.shadow.get_or_insert_default();
                let circles = machine.memory.watch().map(|watch| &watch.progress.circles);
                let circle_start = circles.and_then(|circles| circles.start(shadow.number()));
                let mut inspect = WaveInspector {
                    inspection,
                    inspector,
                    circle_start,
                    circle_next: circle_start.map_or(u32::MAX, |start| start.next),
                    is_at_start: circle_start == Some(begin),
                    shadow,
                    group: group.shadow.get_or_insert_with(|| Box::new(GroupShadow::new(0))),
                    dispatch: &self.dispatch.dispatch,
                    main: &self.dispatch.program.0,
                    workgroup: group.id,
                    index: at as u32,
                };
                interpreter::run(&mut wave, code, &mut machine, budget, &mut inspect)
            }
            _ => interpreter::run(&mut wave, code, &mut machine, budget, &mut Uninspected),
        };
        if matches!(turn, Turn::Budget | Turn::Yield)
            && let Some(shadow) = &slot.shadow
        {
            let program = slot.far.as_deref().unwrap_or(&self.dispatch.program.0);
            let place = Place { program_va: program.base_va, next: wave.next };
            let scratch = (scratch_va, self.dispatch.resources.scratch_wave_bytes);
            tell_circles(self.memory, shadow.number(), place, executed, &wave, scratch);
        }
        // The halves of a stopped wave are put back, so that it can be inspected.
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
            self.waves.put_shadow(slot.shadow.take());
            let had_signals = group.barrier.signals > 0;
            group.barrier.leave(at as u32);
            if let Some(shadow) = &mut group.shadow
                && had_signals
                && group.barrier.signals == 0
            {
                shadow.barrier_completed();
            }
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
            code: self.group.slots[at].code_at(self.dispatch, instruction_va),
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

    /// A group that is stuck without a fault waits at a barrier that never completes.
    fn explain(&mut self) {
        let slots = &self.group.slots;
        if slots.iter().any(|slot| slot.state == WaveState::Halted) {
            return;
        }
        let Some(at) = slots.iter().position(|slot| slot.state == WaveState::Waiting) else { return };
        let instruction_va = slots[at].position(self.dispatch);
        self.fault(at, WaveFaultKind::BarrierNeverCompletes, None, instruction_va);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pool_gives_what_was_used_last_and_keeps_as_many_as_a_group_has() {
        let mut pool = WavePool::default();
        for number in 0..SPARE_WAVES_MAX as u32 + 2 {
            pool.put(Box::new(Wave { index_in_group: number, ..Wave::new() }));
            pool.put_shadow(Some(Box::default()));
            pool.put_shadow(None);
        }
        assert_eq!((pool.waves.len(), pool.shadows.len()), (SPARE_WAVES_MAX, SPARE_WAVES_MAX));
        assert_eq!(
            [(); 2].map(|()| pool.take().index_in_group as usize),
            [SPARE_WAVES_MAX - 1, SPARE_WAVES_MAX - 2]
        );
    }
}
