//! The parts that packets and requests can access: memory, the shader engine, events, clocks, counters, the fault
//! log.
//!
//! Contract: shared by the command processor's thread and the kernel side. Methods take at most short locks, with
//! two exceptions: [`Hardware::help`] executes waves for a bounded time, and those that cancel dispatches wait
//! until running waves have reached the end of their turn.

use crate::check::inspector::Inspection;
use crate::check::memory::CacheActions;
use crate::command_processor::faults::{FaultKind, FaultLog, FaultRecord};
use crate::command_processor::injection::{FaultInjection, Injector};
use crate::command_processor::launch::Launch;
use crate::command_processor::packet::CacheControl;
use crate::command_processor::queue::HardwareQueue;
use crate::config::Config;
use crate::counters::ShaderCounters;
use crate::kernel::board::GPU_ID;
use crate::kernel::events::{Events, HardwareException, MemoryException};
use crate::kernel::user_memory::UserMemory;
use crate::memory::{AddressSpace, Cause, Fault};
use crate::shader::dispatch::{Dispatch, DispatchError, PacketOrigin};
use crate::shader::fault::{WaveFault, WaveFaultKind};
use crate::workgroups::{DispatchTicket, ShaderEngine};
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use zrt_kmd::Errno;

/// The command processor's counters.
#[derive(Debug, Default)]
struct Counters {
    doorbells: AtomicU64,
    packets: AtomicU64,
    dispatches: AtomicU64,
    submissions: AtomicU64,
    interrupts: AtomicU64,
}

/// The board, as the kernel side sees it.
#[derive(Debug)]
pub(crate) struct Hardware {
    memory: Arc<AddressSpace>,
    user_memory: UserMemory,
    engine: ShaderEngine,
    events: Events,
    faults: FaultLog,
    injector: Injector,
    counters: Counters,
    shader_counters: Arc<ShaderCounters>,
    powered_up: Instant,
    /// The process's queues were evicted after a page fault, or stopped by a reset.
    is_evicted: AtomicBool,
    /// A reset took the process's memory.
    is_lost: AtomicBool,
    resets: AtomicU32,
    last_page_fault: Mutex<Option<Fault>>,
}

impl Hardware {
    /// Powers up. Fails if the system cannot provide threads.
    pub fn new(config: &Config, injection: FaultInjection) -> Result<Hardware, Errno> {
        let shader_counters = Arc::new(ShaderCounters::default());
        Ok(Hardware {
            memory: Arc::new(AddressSpace::default()),
            user_memory: UserMemory::default(),
            engine: ShaderEngine::new(config, shader_counters.clone())?,
            events: Events::default(),
            faults: FaultLog::default(),
            injector: Injector::new(injection),
            counters: Counters::default(),
            shader_counters,
            powered_up: Instant::now(),
            is_evicted: AtomicBool::new(false),
            is_lost: AtomicBool::new(false),
            resets: AtomicU32::new(0),
            last_page_fault: Mutex::new(None),
        })
    }

    /// The process's address space.
    pub fn memory(&self) -> &AddressSpace {
        &self.memory
    }

    /// The process's own pages in that address space.
    pub fn user_memory(&self) -> &UserMemory {
        &self.user_memory
    }

    /// Removes from the address space pages that the process has unmapped itself, and restores those that are
    /// mapped again.
    pub fn follow_process(&self) {
        self.user_memory.follow(&self.memory);
    }

    /// The process's events.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The fault log.
    pub fn faults(&self) -> &FaultLog {
        &self.faults
    }

    /// The positions of the waves.
    pub fn waves_text(&self) -> String {
        self.engine.waves_text()
    }

    /// The inspection of waves, if enabled.
    pub fn inspection(&self) -> Option<&Arc<Inspection>> {
        self.engine.inspection()
    }

    /// Injected misbehaviour.
    pub fn injector(&self) -> &Injector {
        &self.injector
    }

    /// Whether the process's queues may not run.
    pub fn is_evicted(&self) -> bool {
        self.is_evicted.load(Ordering::Acquire)
    }

    /// Whether a reset took the process's memory.
    pub fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Resets since power-up.
    pub fn reset_count(&self) -> u32 {
        self.resets.load(Ordering::Relaxed)
    }

    /// The last page fault.
    pub fn last_page_fault(&self) -> Option<Fault> {
        *self.last_page_fault.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reference clock of 100 MHz, as waves read it too (hardware reference §4.9).
    pub fn gpu_clock(&self) -> u64 {
        self.engine.gpu_clock()
    }

    /// Nanoseconds since power-up.
    pub fn system_clock_ns(&self) -> u64 {
        u64::try_from(self.powered_up.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Adds a record to the fault log.
    pub fn record(&self, kind: FaultKind, queue: Option<u32>, packet: Option<&'static str>, detail: String) {
        self.faults.record(FaultRecord { kind, queue, packet, detail });
    }

    /// A page fault as the driver handles it: all queues of the process stop, and its MEMORY events are signalled
    /// with the address of the page (hardware reference §8).
    pub fn page_fault(&self, fault: Fault) {
        self.is_evicted.store(true, Ordering::Release);
        *self.last_page_fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
        self.cancel_all();
        self.events.memory_exception(MemoryException {
            not_present: fault.cause == Cause::NotPresent,
            read_only: fault.cause == Cause::ReadOnly,
            no_execute: fault.cause == Cause::NoExecute,
            page_va: fault.page_va(),
            gpu_id: GPU_ID,
        });
    }

    /// A whole-GPU reset: everything stops, memory is lost.
    pub fn reset(&self) {
        self.resets.fetch_add(1, Ordering::Relaxed);
        self.is_lost.store(true, Ordering::Release);
        self.is_evicted.store(true, Ordering::Release);
        self.cancel_all();
        self.events.hardware_exception(HardwareException { memory_lost: true, gpu_id: GPU_ID });
    }

    /// The process is gone: the board is like new for the next one.
    pub fn process_ended(&self) {
        self.cancel_all();
        self.engine.forget_address_space(self.memory.id());
        if let Some(inspection) = self.inspection() {
            inspection.reset();
        }
        self.is_lost.store(false, Ordering::Release);
        self.is_evicted.store(false, Ordering::Release);
    }

    /// Starts a dispatch.
    pub fn submit(&self, launch: &Launch, origin: PacketOrigin) -> Result<DispatchTicket, DispatchError> {
        self.engine.submit(Dispatch {
            code_va: launch.code_va,
            rsrc1: launch.rsrc1,
            rsrc2: launch.rsrc2,
            rsrc3: launch.rsrc3,
            user_data: launch.user_data,
            first: launch.first,
            count: launch.count,
            group: launch.group,
            last_group: launch.last_group,
            scratch_base_va: launch.scratch_base_va,
            tmpring_size: launch.tmpring_size,
            is_wave64: launch.is_wave64,
            address_space: self.memory.clone(),
            origin,
        })
    }

    /// Stops a queue's waves, wherever they are, like a preemption that is never resumed. Returns false if one did
    /// not stop.
    #[must_use]
    pub fn cancel_queue(&self, queue_id: u32) -> bool {
        self.engine.cancel_queue(queue_id)
    }

    fn cancel_all(&self) {
        if !self.engine.cancel_all() {
            self.record(
                FaultKind::Reset,
                None,
                None,
                "waves did not stop: a mistake of this device".to_owned(),
            );
        }
    }

    /// Executes waves for a bounded time. Returns false if there was nothing to run.
    pub fn help(&self) -> bool {
        self.engine.help()
    }

    /// ACQUIRE_MEM. Without the checking mode the data caches of this device are always coherent.
    pub fn acquire(&self, caches: CacheControl) {
        if caches.invalidates_instructions {
            self.engine.invalidate_instruction_cache();
        }
        if let Some(inspection) = self.inspection() {
            inspection.acquire(actions(caches), &self.memory);
        }
    }

    /// RELEASE_MEM's cache actions, before it writes a value that somebody waits for at `fence_va`.
    pub fn release(&self, caches: CacheControl, fence_va: Option<u64>) {
        if let Some(inspection) = self.inspection() {
            inspection.release(actions(caches), fence_va, &self.memory);
        }
    }

    /// Reports that a packet has written these bytes to memory.
    pub fn packet_wrote(&self, va: u64, bytes: &[u8]) {
        if let Some(inspection) = self.inspection() {
            inspection.packet_write(va, bytes, &self.memory);
        }
    }

    /// Replaces words that a packet has read from memory by GL2's content, under the checking mode.
    pub fn read_through_gl2(&self, va: u64, words: &mut [u32]) {
        let Some(inspection) = self.inspection() else { return };
        for (index, word) in words.iter_mut().enumerate() {
            let mut bytes = word.to_le_bytes();
            inspection.packet_read(va.wrapping_add(4 * index as u64), &mut bytes, &self.memory);
            *word = u32::from_le_bytes(bytes);
        }
    }

    /// A queue has observed that its dispatches are done.
    pub fn flushed(&self) {
        if let Some(inspection) = self.inspection() {
            inspection.flushed(self.engine.first_active_wave());
        }
    }

    /// Handles the engine's faults: a bad address is reported to the process; anything else hangs the wave's queue.
    pub fn collect_faults(&self, queues: &[Arc<HardwareQueue>]) {
        while self.engine.has_fault() {
            let Some(fault) = self.engine.take_fault() else { return };
            self.wave_fault(&fault, queues);
        }
    }

    fn wave_fault(&self, fault: &WaveFault, queues: &[Arc<HardwareQueue>]) {
        let queue_id = fault.origin.queue_id;
        let kind = match fault.kind {
            WaveFaultKind::Page(_) => FaultKind::PageFault,
            _ => FaultKind::Wave,
        };
        self.record(kind, Some(queue_id), Some("DISPATCH_DIRECT"), fault.to_string());
        match fault.kind {
            // Waves that were running when the first one faulted may fault too; the fault is reported once.
            WaveFaultKind::Page(page) if !self.is_evicted() => self.page_fault(page),
            WaveFaultKind::Page(_) => {}
            _ => queues
                .iter()
                .filter(|queue| queue.description().id == queue_id)
                .for_each(|queue| queue.hang()),
        }
    }

    /// An end-of-pipe interrupt.
    pub fn interrupt(&self, context_id: u32) {
        self.counters.interrupts.fetch_add(1, Ordering::Relaxed);
        self.events.interrupt(context_id);
    }

    /// Counts a doorbell that was seen.
    pub fn count_doorbell(&self) {
        self.counters.doorbells.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an executed packet.
    pub fn count_packet(&self) {
        self.counters.packets.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an executed dispatch packet.
    pub fn count_dispatch(&self) {
        self.counters.dispatches.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an entered indirect buffer.
    pub fn count_submission(&self) {
        self.counters.submissions.fetch_add(1, Ordering::Relaxed);
    }

    /// The text of the counters file.
    pub fn counters_text(&self) -> String {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let shader = self.shader_counters.snapshot();
        let lines = [
            ("doorbells", load(&self.counters.doorbells)),
            ("packets", load(&self.counters.packets)),
            ("dispatches", load(&self.counters.dispatches)),
            ("submissions", load(&self.counters.submissions)),
            ("interrupts", load(&self.counters.interrupts)),
            ("workgroups", shader.workgroups),
            ("waves", shader.waves),
            ("wave_instructions", shader.wave_instructions),
        ];
        lines.iter().fold(String::new(), |mut text, (name, value)| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{name} {value}");
            text
        })
    }
}

/// A packet's cache actions in the checking mode's form.
fn actions(caches: CacheControl) -> CacheActions {
    let mut actions = CacheActions::empty();
    actions.set(CacheActions::VECTOR_INVALIDATE, caches.invalidates_vectors);
    actions.set(CacheActions::SCALAR_INVALIDATE, caches.invalidates_scalars);
    actions.set(CacheActions::INSTRUCTION_INVALIDATE, caches.invalidates_instructions);
    actions.set(CacheActions::LEVEL_TWO_INVALIDATE, caches.invalidates_gl2);
    actions.set(CacheActions::LEVEL_TWO_WRITE_BACK, caches.writes_gl2_back);
    actions
}
