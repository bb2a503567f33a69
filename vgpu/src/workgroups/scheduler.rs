//! Scheduling of workgroups.
//!
//! Contract: groups of a queue's dispatches become resident in order, as resources permit. Every resident group
//! gets its turn repeatedly, so groups that wait for each other all make progress. One lock, taken once per handful
//! of groups; an idle worker polls one atomic word.
//! Cost: about 100 ns per claim; a dispatch allocates nothing but its own record.

mod examine;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::check::inspector::Inspection;
use crate::check::noted::Noted;
use crate::config::{Config, Scheduler};
use crate::counters::ShaderCounters;
use crate::memory::MemoryPort;
use crate::shader::fault::WaveFault;
use crate::shader::launch::{Poison, mix};
use crate::shader::machine::Clock;
use crate::shader::program::ProgramCache;
use crate::workgroups::group::{ActiveDispatch, Group, GroupState, Order, Services, WavePool};
use crate::workgroups::residency::{Placement, Residency};

/// Most groups that a worker, or a helping thread, claims at once.
pub(crate) const WORKER_CLAIM_GROUPS_MAX: u64 = 32;
pub(crate) const HELPER_CLAIM_GROUPS_MAX: u64 = 8;
/// A worker claims this fraction of its fair share, so that all end at about the same time.
const CLAIM_DIVISOR: u64 = 4;
/// Instructions after which a group yields to others.
const GROUP_INSTRUCTIONS: u64 = 65_536;
/// Groups that a worker keeps for reuse.
const SPARE_GROUPS_MAX: usize = 8;
/// Faults that are kept until they are taken.
const FAULTS_MAX: usize = 256;
/// Longest sleep of a worker that nobody wakes: a safety net, not a poll.
const SLEEP_MS_MAX: u64 = 100;

/// The state that the workers share.
pub(crate) struct Shared {
    pub programs: ProgramCache<Noted>,
    pub poison: Poison,
    pub clock: Clock,
    pub counters: Arc<ShaderCounters>,
    pub inspection: Option<Arc<Inspection>>,
    scheduler: Scheduler,
    thread_count: u64,
    spin: Duration,
    state: Mutex<State>,
    /// Claims that may succeed: the word that an idle worker polls.
    available: AtomicUsize,
    wake: Condvar,
    stop: AtomicBool,
    /// Nothing may be claimed: another thread examines all groups.
    pauses: AtomicUsize,
    faults: Mutex<VecDeque<WaveFault>>,
    has_fault: AtomicBool,
}

struct State {
    /// Dispatches with groups that are not resident yet, and the index of the next group.
    pending: VecDeque<Pending>,
    preempted: VecDeque<Box<Group>>,
    /// Groups whose waves will never continue: they keep their resources until they are cancelled.
    stuck: VecDeque<Box<Group>>,
    active: Vec<Arc<ActiveDispatch>>,
    /// Groups held by workers, by dispatch; none is 0.
    held: Vec<(u64, u64)>,
    residency: Residency,
    /// The last claim found no resources: there is nothing to try until some are released.
    is_full: bool,
    sleepers: usize,
}

struct Pending {
    dispatch: Arc<ActiveDispatch>,
    next: u64,
}

/// The state of one thread.
pub(crate) struct Worker {
    memory: MemoryPort,
    #[allow(clippy::vec_box, reason = "groups are large and move between workers as boxes")]
    spare: Vec<Box<Group>>,
    waves: WavePool,
    /// Claimed but not begun: dispatch, index of the first, and the placements of all, last first.
    dispatch: Option<Arc<ActiveDispatch>>,
    next: u64,
    placements: Vec<Placement>,
    /// A preempted group to resume.
    resumed: Option<Box<Group>>,
    /// Groups that have ended since the last claim.
    ended: Vec<(Arc<ActiveDispatch>, Placement)>,
    tally: Tally,
    claim_groups_max: u64,
    /// Whether the last claim was of new groups: the next one then tries preempted groups first.
    was_fresh: bool,
    random: u64,
}

#[derive(Clone, Copy, Default)]
struct Tally {
    workgroups: u64,
    waves: u64,
    instructions: u64,
}

impl Worker {
    pub fn new(seed: u64, claim_groups_max: u64) -> Worker {
        Worker {
            memory: MemoryPort::default(),
            spare: Vec::new(),
            waves: WavePool::default(),
            dispatch: None,
            next: 0,
            placements: Vec::new(),
            resumed: None,
            ended: Vec::new(),
            tally: Tally::default(),
            claim_groups_max,
            was_fresh: false,
            random: seed,
        }
    }

    fn has_work(&self) -> bool {
        self.resumed.is_some() || !self.placements.is_empty()
    }
}

impl Shared {
    pub fn new(config: &Config, counters: Arc<ShaderCounters>, level: crate::simd::Level) -> Shared {
        Shared {
            programs: ProgramCache::new(level, config.inspection.is_on()),
            poison: Poison::new(config),
            clock: Clock::new(config.effective_scheduler() == Scheduler::Deterministic),
            counters,
            inspection: Inspection::new(config),
            scheduler: config.effective_scheduler(),
            thread_count: config.effective_scheduler().worker_count() as u64 + 1,
            spin: Duration::from_micros(config.worker_spin_us),
            state: Mutex::new(State {
                pending: VecDeque::new(),
                preempted: VecDeque::new(),
                stuck: VecDeque::new(),
                active: Vec::new(),
                held: Vec::new(),
                residency: Residency::new(config.compute_units),
                is_full: false,
                sleepers: 0,
            }),
            available: AtomicUsize::new(0),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
            pauses: AtomicUsize::new(0),
            faults: Mutex::default(),
            has_fault: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A worker's panic is our bug and ends the process's use of the device; others may still clean up.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update_available(&self, state: &State) {
        let fresh = usize::from(!state.pending.is_empty() && !state.is_full);
        self.available.store(state.preempted.len() + fresh, Ordering::Release);
    }

    /// Whether anything can be claimed.
    pub fn has_available(&self) -> bool {
        self.available.load(Ordering::Acquire) > 0 && self.pauses.load(Ordering::Acquire) == 0
    }

    /// Accepts a dispatch.
    pub fn submit(&self, dispatch: Arc<ActiveDispatch>) {
        let groups = dispatch.group_count;
        let mut state = self.lock();
        state.active.push(dispatch.clone());
        state.pending.push_back(Pending { dispatch, next: 0 });
        // It may need fewer resources than the group that did not fit.
        state.is_full = false;
        self.update_available(&state);
        let sleepers = state.sleepers;
        drop(state);
        // The submitting thread is about to help, so one group needs no other thread.
        for _ in 0..sleepers.min(groups.saturating_sub(1).min(64) as usize) {
            self.wake.notify_one();
        }
    }

    /// The first wave of unfinished dispatches; only inspected devices number waves.
    pub fn first_active_wave(&self) -> Option<u32> {
        self.lock().active.iter().map(|dispatch| dispatch.first_wave).min()
    }

    /// Whether no dispatch is active.
    pub fn is_idle(&self) -> bool {
        self.lock().active.is_empty()
    }

    /// Hands in the groups that the worker has ended and claims more. Returns true if there is something to run.
    fn claim(&self, worker: &mut Worker) -> bool {
        let mut state = self.hand_over(worker);
        // Under the lock, so that a pause that found no group held stays valid.
        if self.pauses.load(Ordering::Acquire) > 0 {
            self.update_available(&state);
            return false;
        }
        let deterministic = self.scheduler == Scheduler::Deterministic;
        let resume_first = if deterministic { mix(&mut worker.random) & 1 == 0 } else { worker.was_fresh };
        let groups = self.claim_groups(&state, worker.claim_groups_max);
        #[allow(
            clippy::if_same_then_else,
            reason = "the order of the two matters: the first that finds something wins"
        )]
        let found = if resume_first {
            state.resume(worker, deterministic) || state.begin(worker, groups)
        } else {
            state.begin(worker, groups) || state.resume(worker, deterministic)
        };
        worker.was_fresh = !worker.placements.is_empty();
        self.update_available(&state);
        found
    }

    /// How many groups to claim of the first pending dispatch.
    fn claim_groups(&self, state: &State, claim_groups_max: u64) -> u64 {
        if self.scheduler == Scheduler::Deterministic {
            return 1;
        }
        let left = state.pending.front().map_or(0, |pending| pending.dispatch.group_count - pending.next);
        (left / (CLAIM_DIVISOR * self.thread_count)).clamp(1, claim_groups_max)
    }

    /// Counts and returns the worker's ended groups. Counting comes first, so that anyone who sees a dispatch done
    /// sees its counts.
    fn hand_over(&self, worker: &mut Worker) -> MutexGuard<'_, State> {
        let tally = std::mem::take(&mut worker.tally);
        if tally.instructions > 0 {
            self.counters.workgroups.fetch_add(tally.workgroups, Ordering::Relaxed);
            self.counters.waves.fetch_add(tally.waves, Ordering::Relaxed);
            self.counters.wave_instructions.fetch_add(tally.instructions, Ordering::Relaxed);
        }
        let mut state = self.lock();
        state.hand_in(worker);
        state
    }

    /// Claims and runs once. Returns false if there was nothing. Leaves nothing claimed or mapped.
    pub fn work_once(&self, worker: &mut Worker) -> bool {
        if !self.has_available() || !self.claim(worker) {
            return false;
        }
        while worker.has_work() {
            self.run_one(worker);
        }
        let state = self.hand_over(worker);
        self.update_available(&state);
        drop(state);
        worker.memory.release();
        true
    }

    /// Runs one of the worker's groups.
    fn run_one(&self, worker: &mut Worker) {
        let services = Services {
            programs: &self.programs,
            poison: &self.poison,
            clock: &self.clock,
            inspection: self.inspection.as_deref(),
        };
        let mut group = match worker.resumed.take() {
            Some(group) => group,
            None => {
                let (Some(placement), Some(dispatch)) = (worker.placements.pop(), worker.dispatch.as_ref())
                else {
                    return;
                };
                let index = worker.next;
                worker.next += 1;
                if dispatch.is_cancelled.load(Ordering::Acquire) {
                    worker.ended.push((dispatch.clone(), placement));
                    return;
                }
                let mut group = worker.spare.pop().unwrap_or_else(|| Box::new(Group::new()));
                group.begin(dispatch.clone(), index, placement, &services);
                group
            }
        };
        let is_cancelled =
            group.dispatch().is_none_or(|dispatch| dispatch.is_cancelled.load(Ordering::Acquire));
        let state = if is_cancelled {
            GroupState::Finished
        } else {
            let order = match self.scheduler {
                Scheduler::Parallel { .. } => Order::Plain(GROUP_INSTRUCTIONS),
                Scheduler::Deterministic => Order::Seeded(&mut worker.random),
            };
            group
                .run(&mut worker.memory, &mut worker.waves, &services, order, &mut |fault| self.report(fault))
        };
        self.put_away(worker, group, state);
    }

    /// Disposes of a group after its run.
    fn put_away(&self, worker: &mut Worker, mut group: Box<Group>, after: GroupState) {
        let executed = group.take_executed();
        worker.tally.instructions += executed;
        let stands_still = after == GroupState::Preempted && self.stands_still(&group, executed);
        if after == GroupState::Preempted && !stands_still {
            let mut state = self.lock();
            state.held_by(&group, -1);
            state.preempted.push_back(group);
            self.update_available(&state);
            return;
        }
        worker.tally.workgroups += 1;
        worker.tally.waves += group.wave_count();
        if after != GroupState::Finished {
            let mut state = self.lock();
            state.held_by(&group, -1);
            state.stuck.push_back(group);
            return;
        }
        worker.ended.extend(group.end());
        if worker.spare.len() < SPARE_GROUPS_MAX {
            worker.spare.push(group);
        }
    }

    fn report(&self, fault: WaveFault) {
        if let Some(inspection) = &self.inspection {
            inspection.fault(&fault);
        }
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        if faults.len() < FAULTS_MAX {
            faults.push_back(fault);
        }
        self.has_fault.store(true, Ordering::Release);
    }

    /// Whether a fault can be taken.
    pub fn has_fault(&self) -> bool {
        self.has_fault.load(Ordering::Acquire)
    }

    /// The oldest fault.
    pub fn take_fault(&self) -> Option<WaveFault> {
        let mut faults = self.faults.lock().unwrap_or_else(PoisonError::into_inner);
        let fault = faults.pop_front();
        self.has_fault.store(!faults.is_empty(), Ordering::Release);
        fault
    }

    /// Marks dispatches as cancelled and drops their groups that no worker holds. Returns true if no worker holds
    /// any.
    pub fn cancel(&self, concerns: impl Fn(&ActiveDispatch) -> bool) -> bool {
        let mut state = self.lock();
        let state = &mut *state;
        for dispatch in state.active.iter().filter(|dispatch| concerns(dispatch)) {
            dispatch.is_cancelled.store(true, Ordering::Release);
        }
        state.pending.retain(|pending| !concerns(&pending.dispatch));
        for groups in [&mut state.preempted, &mut state.stuck] {
            let (dropped, kept): (VecDeque<Box<Group>>, _) = std::mem::take(groups)
                .into_iter()
                .partition(|group| group.dispatch().is_none_or(|dispatch| concerns(dispatch)));
            *groups = kept;
            for (dispatch, placement) in dropped.into_iter().filter_map(|mut group| group.end()) {
                state.residency.release(&dispatch.need, &placement);
            }
        }
        state.is_full = false;
        let held = &state.held;
        let is_held = |dispatch: &ActiveDispatch| held.iter().any(|(id, _)| *id == dispatch.id);
        let any_held = state.active.iter().any(|dispatch| concerns(dispatch) && is_held(dispatch));
        state.active.retain(|dispatch| !concerns(dispatch) || is_held(dispatch));
        self.update_available(state);
        !any_held
    }

    /// Ends the workers.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        // A worker holds the lock between its check and its sleep, so the call below cannot fall in between.
        drop(self.lock());
        self.wake.notify_all();
    }

    /// A worker's main loop.
    pub fn run_worker(&self, mut worker: Worker) {
        while !self.stop.load(Ordering::Acquire) {
            if self.has_available() && self.claim(&mut worker) {
                while worker.has_work() {
                    self.run_one(&mut worker);
                }
                continue;
            }
            // An idle worker keeps nothing claimed or mapped.
            if !worker.ended.is_empty() {
                let state = self.hand_over(&mut worker);
                self.update_available(&state);
                continue;
            }
            worker.memory.release();
            if !self.spin_for_work() {
                self.sleep(Duration::from_millis(SLEEP_MS_MAX));
            }
        }
    }

    /// Waits for work without a system call except to yield. Returns true if there is some.
    fn spin_for_work(&self) -> bool {
        let start = Instant::now();
        loop {
            for _ in 0..64 {
                if self.has_available() || self.stop.load(Ordering::Relaxed) {
                    return true;
                }
                std::hint::spin_loop();
            }
            if start.elapsed() >= self.spin {
                return false;
            }
            std::thread::yield_now();
        }
    }

    /// Waits until somebody wakes the worker, at most for `limit`.
    fn sleep(&self, limit: Duration) {
        let mut state = self.lock();
        if self.has_available() || self.stop.load(Ordering::Acquire) {
            return;
        }
        state.sleepers += 1;
        let (mut state, _) = self.wake.wait_timeout(state, limit).unwrap_or_else(PoisonError::into_inner);
        state.sleepers -= 1;
    }
}

impl State {
    /// Counts groups that workers hold; a dispatch without any has no entry.
    fn hold(&mut self, id: u64, change: i64) {
        let index = self.held.iter().position(|(held, _)| *held == id).unwrap_or_else(|| {
            self.held.push((id, 0));
            self.held.len() - 1
        });
        let count = &mut self.held[index].1;
        *count = count.saturating_add_signed(change);
        if *count == 0 {
            self.held.swap_remove(index);
        }
    }

    fn held_by(&mut self, group: &Group, change: i64) {
        if let Some(dispatch) = group.dispatch() {
            self.hold(dispatch.id, change);
        }
    }

    /// Releases the resources of ended groups, and finishes their dispatches.
    fn hand_in(&mut self, worker: &mut Worker) {
        while let Some((dispatch, placement)) = worker.ended.pop() {
            self.residency.release(&dispatch.need, &placement);
            self.is_full = false;
            self.hold(dispatch.id, -1);
            if dispatch.remaining.fetch_sub(1, Ordering::AcqRel) == 1 {
                let is_cancelled = dispatch.is_cancelled.load(Ordering::Acquire);
                dispatch.is_done.store(!is_cancelled, Ordering::Release);
                self.active.retain(|other| other.id != dispatch.id);
            }
        }
    }

    /// Resumes a preempted group.
    fn resume(&mut self, worker: &mut Worker, any: bool) -> bool {
        let count = self.preempted.len();
        let at = if any && count > 0 { mix(&mut worker.random) as usize % count } else { 0 };
        let Some(group) = self.preempted.remove(at) else { return false };
        self.held_by(&group, 1);
        worker.resumed = Some(group);
        true
    }

    /// Makes groups resident, from the first dispatch of a queue that fits. Dispatches of one queue keep their
    /// order.
    fn begin(&mut self, worker: &mut Worker, groups: u64) -> bool {
        if self.is_full {
            return false;
        }
        let mut blocked_queues: Vec<u32> = Vec::new();
        for at in 0..self.pending.len() {
            let queue_id = self.pending[at].dispatch.dispatch.origin.queue_id;
            if blocked_queues.contains(&queue_id) {
                continue;
            }
            let pending = &mut self.pending[at];
            let wanted = groups.min(pending.dispatch.group_count - pending.next);
            while (worker.placements.len() as u64) < wanted {
                let Some(placement) = self.residency.place(&pending.dispatch.need) else { break };
                worker.placements.push(placement);
            }
            let taken = worker.placements.len() as u64;
            if taken == 0 {
                blocked_queues.push(queue_id);
                continue;
            }
            worker.next = pending.next;
            pending.next += taken;
            let is_last = pending.next == pending.dispatch.group_count;
            let id = pending.dispatch.id;
            worker.dispatch = Some(pending.dispatch.clone());
            if is_last {
                self.pending.remove(at);
            }
            self.hold(id, taken as i64);
            return true;
        }
        self.is_full = !self.pending.is_empty();
        false
    }
}

#[cfg(test)]
mod tests;
