//! Workgroups and their scheduling: the shader engine as the command processor sees it.
//!
//! Reading order: `group` (the waves of one group), `residency` (where a group fits), `scheduler`, then the engine
//! below; `positions` lists waves for people who wait.
//!
//! Contract: [`ShaderEngine::submit`] returns at once; groups run on the engine's threads and on every thread that
//! calls [`ShaderEngine::help`]. With [`Scheduler::Deterministic`](crate::config::Scheduler) there are no threads
//! of its own: the command processor helps whenever it has nothing else to do. A dispatch with a faulty wave never
//! completes, as on hardware; [`ShaderEngine::cancel_queue`] removes it.

pub(crate) mod group;
pub(crate) mod positions;
pub(crate) mod residency;
pub(crate) mod scheduler;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::check::inspector::Inspection;
use crate::check::memory::CacheActions;
use crate::config::Config;
use crate::counters::ShaderCounters;
use crate::memory::AddressSpace;
use crate::shader::dispatch::{Dispatch, DispatchError, Resources};
use crate::shader::fault::WaveFault;
use crate::shader::launch::Template;
use crate::shader::program::Fetch;
use crate::shader::wave::LANES;
use crate::simd::Level;
use crate::workgroups::group::{ActiveDispatch, ProgramHandle};
use crate::workgroups::residency::{Need, Residency};
use crate::workgroups::scheduler::{HELPER_CLAIM_GROUPS_MAX, Shared, WORKER_CLAIM_GROUPS_MAX, Worker};

/// Shader engines of the board: TMPRING_SIZE.WAVES counts the waves of one (hardware reference §5).
const SHADER_ENGINES: u32 = 4;
/// How long cancelling waits for workers, in milliseconds.
pub const CANCEL_MS_MAX: u64 = 5000;

/// The engine.
pub struct ShaderEngine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// For helping threads, one at a time.
    helper: Mutex<Worker>,
    next_id: AtomicU64,
    compute_units: u32,
}

/// One submitted dispatch.
#[derive(Clone, Debug)]
pub struct DispatchTicket(Arc<ActiveDispatch>);

impl DispatchTicket {
    /// Whether all its workgroups have ended. Never true after a fault. One atomic load.
    #[inline]
    pub fn is_done(&self) -> bool {
        self.0.is_done.load(Ordering::Acquire)
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled.load(Ordering::Acquire)
    }

    /// A number unique among the engine's dispatches.
    pub fn id(&self) -> u64 {
        self.0.id
    }

    /// The queue it came from.
    pub fn queue_id(&self) -> u32 {
        self.0.dispatch.origin.queue_id
    }
}

impl std::fmt::Debug for ShaderEngine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("ShaderEngine").field("threads", &self.threads.len()).finish_non_exhaustive()
    }
}

impl ShaderEngine {
    /// Starts the engine's threads. Vector code is that of the host's best level.
    ///
    /// # Errors
    /// The system's error if a thread cannot be started.
    pub fn new(config: &Config, counters: Arc<ShaderCounters>) -> std::io::Result<ShaderEngine> {
        ShaderEngine::with_level(config, counters, Level::detect())
    }

    /// Like [`ShaderEngine::new`], with a given vector level, for tests that compare levels.
    ///
    /// # Errors
    /// The system's error if a thread cannot be started.
    pub fn with_level(
        config: &Config,
        counters: Arc<ShaderCounters>,
        level: Level,
    ) -> std::io::Result<ShaderEngine> {
        let shared = Arc::new(Shared::new(config, counters, level));
        let mut engine = ShaderEngine {
            shared,
            threads: Vec::new(),
            helper: Mutex::new(Worker::new(config.seed, HELPER_CLAIM_GROUPS_MAX)),
            next_id: AtomicU64::new(1),
            compute_units: config.compute_units,
        };
        for index in 0..config.effective_scheduler().worker_count() {
            let shared = engine.shared.clone();
            let worker = Worker::new(config.seed.wrapping_add(index as u64 + 1), WORKER_CLAIM_GROUPS_MAX);
            let builder = std::thread::Builder::new().name(format!("zrt-vgpu-cu{index}"));
            engine.threads.push(builder.spawn(move || shared.run_worker(worker))?);
        }
        Ok(engine)
    }

    /// Starts a dispatch. Its groups begin after those of earlier dispatches of the same queue have begun, not
    /// after they have ended.
    ///
    /// # Errors
    /// Why it cannot be launched; nothing has been started then.
    pub fn submit(&self, dispatch: Dispatch) -> Result<DispatchTicket, DispatchError> {
        let resources = Resources::parse(&dispatch)?;
        let group_count = dispatch.group_count();
        let is_empty = group_count == 0;
        let waves = if is_empty { 1 } else { dispatch.waves_per_group()? };
        let need = self.need(&dispatch, &resources, waves)?;
        let table = dispatch.address_space.snapshot();
        let fetch = Fetch {
            space_id: dispatch.address_space.id(),
            table: &table,
            vector_registers: resources.vector_registers,
            is_wave64: dispatch.is_wave64,
        };
        let is_stale = self.inspection().is_some() && self.shared.programs.is_stale(fetch, dispatch.code_va);
        let program = ProgramHandle(self.shared.programs.get(fetch, dispatch.code_va));
        if let Some(inspection) = self.inspection() {
            inspection.fetch(&program.0, dispatch.wave_size(), is_stale, &dispatch.address_space);
        }
        let template = Template::new(&dispatch, &resources, &self.shared.poison);
        // More groups than this would take centuries.
        let group_count = u64::try_from(group_count).unwrap_or(u64::MAX);
        self.shared.counters.dispatches.fetch_add(1, Ordering::Relaxed);
        let wave_count = group_count.saturating_mul(u64::from(waves));
        let first_wave =
            self.inspection().map_or(0, |inspection| inspection.begin_dispatch(wave_count, waves));
        let active = Arc::new(ActiveDispatch {
            id: self.next_id.fetch_add(1, Ordering::Relaxed),
            dispatch,
            resources,
            program,
            template,
            need,
            group_count,
            first_wave,
            remaining: AtomicU64::new(group_count),
            is_done: AtomicBool::new(is_empty),
            is_cancelled: AtomicBool::new(false),
        });
        if !is_empty {
            self.shared.submit(active.clone());
        }
        Ok(DispatchTicket(active))
    }

    fn need(&self, dispatch: &Dispatch, resources: &Resources, waves: u32) -> Result<Need, DispatchError> {
        let has_scratch = resources.scratch_wave_bytes > 0;
        let need = Need {
            waves,
            rows: resources.vector_registers * dispatch.lanes() / LANES as u32,
            lds_bytes: resources.lds_allocation(),
            is_wgp_mode: resources.is_wgp_mode,
            scratch_waves: if has_scratch { waves } else { 0 },
            scratch_limit: resources.scratch_waves * SHADER_ENGINES,
        };
        if need.scratch_waves > need.scratch_limit {
            return Err(DispatchError::Scratch(dispatch.tmpring_size));
        }
        if Residency::new(self.compute_units.min(2)).place(&need).is_none() {
            return Err(DispatchError::FitsNowhere {
                waves,
                vector_registers: resources.vector_registers,
                lds_bytes: resources.lds_bytes,
            });
        }
        Ok(need)
    }

    /// Executes waves for a bounded time. Returns false if there was nothing to run, or if another thread is
    /// helping.
    pub fn help(&self) -> bool {
        if !self.shared.has_available() {
            return false;
        }
        let mut worker = match self.helper.try_lock() {
            Ok(worker) => worker,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        self.shared.work_once(&mut worker)
    }

    /// Helps until no dispatch is active. Returns false if `deadline` passed first.
    pub fn wait_idle(&self, deadline: Instant) -> bool {
        while !self.shared.is_idle() {
            if !self.help() {
                std::thread::yield_now();
            }
            if Instant::now() >= deadline {
                return self.shared.is_idle();
            }
        }
        true
    }

    /// Makes later dispatches see code that changed in memory.
    pub fn invalidate_instruction_cache(&self) {
        self.shared.programs.invalidate();
    }

    /// Forgets everything about an address space that no longer exists.
    pub fn forget_address_space(&self, space_id: u64) {
        self.shared.programs.forget(space_id);
    }

    /// For an inspected device without a command processor, has the effect of a fence with every cache action:
    /// orders what follows after all completed dispatches, and makes host and waves see each other's writes.
    pub fn synchronise(&self, space: &AddressSpace) {
        self.invalidate_instruction_cache();
        if let Some(inspection) = self.inspection() {
            inspection.flushed(self.first_active_wave());
            inspection.acquire(CacheActions::all(), space);
        }
    }

    /// Findings of the checking mode: a JSON object per line. Empty if it is off.
    pub fn findings_text(&self) -> String {
        self.inspection().map_or_else(String::new, |inspection| inspection.findings_text())
    }

    /// Positions of all waves that have not ended: a JSON object per line. The device is paused meanwhile.
    pub fn waves_text(&self) -> String {
        self.shared.positions()
    }

    /// The first wave of unfinished dispatches.
    pub(crate) fn first_active_wave(&self) -> Option<u32> {
        self.shared.first_active_wave()
    }

    /// The inspection of waves, if enabled.
    pub(crate) fn inspection(&self) -> Option<&Arc<Inspection>> {
        self.shared.inspection.as_ref()
    }

    /// Whether [`ShaderEngine::take_fault`] has one. One atomic load.
    #[inline]
    pub fn has_fault(&self) -> bool {
        self.shared.has_fault()
    }

    /// The oldest fault that was not taken.
    pub fn take_fault(&self) -> Option<WaveFault> {
        self.shared.take_fault()
    }

    /// Removes a queue's dispatches. If it returns true, none of their waves runs, or ever will. False means that a
    /// worker did not stop within [`CANCEL_MS_MAX`], which is a bug in this crate.
    pub fn cancel_queue(&self, queue_id: u32) -> bool {
        self.cancel(|dispatch| dispatch.dispatch.origin.queue_id == queue_id)
    }

    /// Removes all dispatches, likewise.
    pub fn cancel_all(&self) -> bool {
        self.cancel(|_| true)
    }

    /// A worker checks the mark after each run of a group, which is bounded, so this takes milliseconds.
    fn cancel(&self, concerns: impl Fn(&ActiveDispatch) -> bool) -> bool {
        let deadline = Instant::now() + Duration::from_millis(CANCEL_MS_MAX);
        while !self.shared.cancel(&concerns) {
            if Instant::now() >= deadline {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    /// The reference clock of 100 MHz that waves read (hardware reference §4.9).
    pub fn gpu_clock(&self) -> u64 {
        self.shared.clock.ticks()
    }
}

impl Drop for ShaderEngine {
    fn drop(&mut self) {
        self.cancel_all();
        self.shared.stop();
        for thread in self.threads.drain(..) {
            // The thread's own hook has reported its panic; there is nobody left to report it to.
            let _ = thread.join();
        }
    }
}
