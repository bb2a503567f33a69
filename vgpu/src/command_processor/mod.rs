//! The command processor: polls doorbells, executes packets, and starts dispatches.
//!
//! Contract: one thread per virtual GPU. It learns of work only from the doorbell pages. While queues exist it
//! spins for `SPIN_US` after the last activity and then sleeps, at most `SLEEP_US_MAX` between two polls; without
//! queues it sleeps until there is one. It helps to execute waves while a queue waits for them. Queues are served
//! in turns.
//! Reading order: `bits` (the reference's tables), `packet` and `launch` (typed commands), `queue` (state),
//! `service`, `stream` and `execute` (behaviour).

mod bits;
mod execute;
pub mod faults;
pub(crate) mod hardware;
pub mod injection;
mod launch;
mod packet;
mod queue;
mod service;
mod stream;
#[cfg(test)]
mod tests;

pub use launch::LaunchError;
pub use packet::PacketError;
pub(crate) use queue::{HardwareQueue, QueueDescription};

use crate::command_processor::faults::FaultKind;
use crate::command_processor::hardware::Hardware;
use crate::command_processor::queue::Health;
use crate::command_processor::stream::Slice;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long the thread spins after the last activity: about the time that a host takes from a fence to the next
/// doorbell.
const SPIN_US: u64 = 50;
/// Longest sleep between two polls of the doorbells.
const SLEEP_US_MAX: u64 = 50;
/// First sleep after spinning; it doubles up to the longest.
const SLEEP_US_FIRST: u64 = 5;
/// Permitted delay of the thread's wake-up.
const TIMER_SLACK_NS: u64 = 1_000;
/// Time allowed for a hung queue to drain when it is destroyed, before the device is reset.
const HUNG_DRAIN_MS: u64 = 200;
/// How long the thread yields, rather than sleeps, while a queue waits for waves that other threads execute.
const DISPATCH_SPIN_US: u64 = 2_000;

/// The result of removing a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Preemption {
    Drained,
    /// Its waves did not stop: the device was reset.
    Reset,
}

/// The thread and what the kernel side needs of it.
#[derive(Debug)]
pub(crate) struct CommandProcessor {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    hardware: Arc<Hardware>,
    queues: Mutex<Vec<Arc<HardwareQueue>>>,
    /// Changes whenever the list of queues changes.
    generation: AtomicU64,
    queues_changed: Condvar,
    stop: AtomicBool,
}

impl CommandProcessor {
    /// Starts the thread.
    pub fn start(hardware: Arc<Hardware>) -> std::io::Result<CommandProcessor> {
        let shared = Arc::new(Shared {
            hardware,
            queues: Mutex::new(Vec::new()),
            generation: AtomicU64::new(0),
            queues_changed: Condvar::new(),
            stop: AtomicBool::new(false),
        });
        let of_thread = shared.clone();
        let builder = std::thread::Builder::new().name("zrt-vgpu-cp".to_owned());
        let thread = Some(builder.spawn(move || run(&of_thread))?);
        Ok(CommandProcessor { shared, thread })
    }

    /// Takes a queue into service.
    pub fn add_queue(&self, queue: Arc<HardwareQueue>) {
        self.shared.lock().push(queue);
        self.shared.list_changed();
    }

    /// Takes a queue out of service and stops its waves. Hung waves cannot be stopped: after [`HUNG_DRAIN_MS`] the
    /// device is reset, as the kernel does (hardware reference §8).
    pub fn remove_queue(&self, queue: &Arc<HardwareQueue>) -> Preemption {
        let hardware = &self.shared.hardware;
        let id = queue.description().id;
        hardware.collect_faults(&self.shared.lock());
        let health = queue.remove();
        self.shared.lock().retain(|other| !Arc::ptr_eq(other, queue));
        self.shared.list_changed();
        let is_hung = health == Health::Hung && !hardware.is_evicted();
        if is_hung {
            std::thread::sleep(Duration::from_millis(HUNG_DRAIN_MS));
        }
        let is_stopped = hardware.cancel_queue(id);
        // Faults of the removed queue are reported now, not under the name of the next queue with this id.
        hardware.collect_faults(&self.shared.lock());
        if is_stopped && !is_hung {
            return Preemption::Drained;
        }
        let text = "the queue did not drain when it was destroyed; whole-GPU reset, memory lost".to_owned();
        hardware.record(FaultKind::Reset, Some(id), None, text);
        hardware.reset();
        Preemption::Reset
    }
}

impl Drop for CommandProcessor {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.shared.list_changed();
        if let Some(thread) = self.thread.take() {
            // The thread's own hook has reported its panic; there is nobody left to report it to.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<HardwareQueue>>> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn list_changed(&self) {
        self.generation.fetch_add(1, Ordering::Release);
        // A waiter holds the lock between its check and its sleep, so this lock acquisition cannot fall in between.
        drop(self.lock());
        self.queues_changed.notify_all();
    }

    /// Waits while there is no queue, then copies the list.
    fn wait_for_queues(&self) -> (Vec<Arc<HardwareQueue>>, u64) {
        let mut queues = self.lock();
        while queues.is_empty() && !self.stop.load(Ordering::Acquire) {
            queues = self.queues_changed.wait(queues).unwrap_or_else(PoisonError::into_inner);
        }
        (queues.clone(), self.generation.load(Ordering::Acquire))
    }
}

/// The thread.
fn run(shared: &Shared) {
    // Sleeps of microseconds need a timer that does not round them up to 50; if the request is refused, they are
    // longer.
    let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(TIMER_SLACK_NS));
    let mut pace = Pace::new();
    let (mut queues, mut generation) = (Vec::new(), u64::MAX);
    while !shared.stop.load(Ordering::Acquire) {
        if generation != shared.generation.load(Ordering::Acquire) {
            // Drops the references to removed queues before sleeping.
            queues.clear();
            (queues, generation) = shared.wait_for_queues();
        }
        match round(&shared.hardware, &queues) {
            Round::Progress => pace.active(),
            Round::WaitingForDispatch => pace.give_way(),
            Round::Idle => pace.rest(),
        }
    }
}

/// The result of polling every queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Progress,
    WaitingForDispatch,
    Idle,
}

fn round(hardware: &Hardware, queues: &[Arc<HardwareQueue>]) -> Round {
    let mut outcome = Round::Idle;
    for queue in queues {
        match queue.service(hardware) {
            Slice::Progress => outcome = Round::Progress,
            Slice::Waiting { for_dispatch: true } if outcome == Round::Idle => {
                outcome = Round::WaitingForDispatch;
            }
            Slice::Idle | Slice::Waiting { .. } => {}
        }
    }
    // Even if no queue waits: a dispatch without a fence must also run, whoever executes it.
    if outcome != Round::Progress && hardware.help() {
        outcome = Round::Progress;
    }
    hardware.collect_faults(queues);
    outcome
}

/// When to spin and how long to sleep.
struct Pace {
    last_active: Instant,
    sleep_us: u64,
}

impl Pace {
    fn new() -> Pace {
        Pace { last_active: Instant::now(), sleep_us: SLEEP_US_FIRST }
    }

    fn active(&mut self) {
        self.last_active = Instant::now();
        self.sleep_us = SLEEP_US_FIRST;
    }

    /// Yields to waves that other threads execute.
    fn give_way(&mut self) {
        match self.sleep_after(self.last_active.elapsed(), DISPATCH_SPIN_US) {
            None => std::thread::yield_now(),
            Some(sleep) => std::thread::sleep(sleep),
        }
    }

    /// Waits for a doorbell.
    fn rest(&mut self) {
        match self.sleep_after(self.last_active.elapsed(), SPIN_US) {
            None => std::hint::spin_loop(),
            Some(sleep) => std::thread::sleep(sleep),
        }
    }

    /// How long to sleep, if nothing has happened for `idle`; `None` before `spin_us`. Sleeps double.
    fn sleep_after(&mut self, idle: Duration, spin_us: u64) -> Option<Duration> {
        if idle < Duration::from_micros(spin_us) {
            return None;
        }
        let sleep = Duration::from_micros(self.sleep_us);
        self.sleep_us = (self.sleep_us * 2).min(SLEEP_US_MAX);
        Some(sleep)
    }
}
