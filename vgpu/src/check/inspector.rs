//! The inspection of waves: combines its parts, and attributes their findings to a place.
//!
//! Contract: one per device, used by one thread at a time. The engine, the command processor and the driver's files
//! share an [`Inspection`]; a [`WaveInspector`](super::wave::WaveInspector) handles one wave's turn.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::check::circles::SeenLoad;
use crate::check::debug::Debugger;
use crate::check::finding::{Finding, FindingLog, Rule};
use crate::check::memory::{
    AllocationUse, CacheActions, MemoryChecker, MemoryFinding, MemoryRule, Path, WaveId,
};
use crate::check::noted::Noted;
use crate::check::profile::Profile;
use crate::check::watch::{Watch, WatchedPort};
use crate::config;
use crate::memory::{AddressSpace, Mapped, MemoryPort};
use crate::shader::fault::{WaveFault, WaveFaultKind};
use crate::shader::program::Program;
use zrt_isa::resources::WaveSize;

/// The inspection of a device.
pub(crate) struct Inspection {
    pub(super) options: config::Inspection,
    seed: u64,
    log: FindingLog,
    inspector: Mutex<Inspector>,
}

/// The state that changes while waves run.
pub(crate) struct Inspector {
    pub(super) profile: Profile,
    pub(super) debugger: Option<Box<dyn Debugger>>,
    /// Bytes of LDS declared for the code at an address, if known.
    declared_lds: HashMap<u64, u32>,
    /// Bytes of private memory of a lane, likewise.
    declared_private: HashMap<u64, u32>,
    /// LDS addresses of the current instruction.
    pub(super) lds_addresses: Vec<(u32, u32)>,
    /// The LDS contents at those addresses, if the instruction may change them and that matters.
    pub(super) lds_before: Vec<u8>,
    /// The memory checker while no group runs; otherwise the running group's port holds it.
    watch: Option<Box<Watch>>,
    /// All waves below this number have ended, and a queue has waited for them.
    ordered_before: WaveId,
}

/// The place of a finding.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Site {
    pub code_va: u64,
    pub launched_at: u64,
    pub workgroup: [u32; 3],
    pub wave: u32,
}

impl Inspection {
    /// The inspection for a device with something enabled; `None` if nothing is.
    pub fn new(config: &config::Config) -> Option<Arc<Inspection>> {
        config.inspection.is_on().then(|| {
            Arc::new(Inspection {
                options: config.inspection,
                seed: config.seed,
                log: FindingLog::default(),
                inspector: Mutex::new(Inspector {
                    profile: Profile::default(),
                    debugger: None,
                    declared_lds: HashMap::new(),
                    declared_private: HashMap::new(),
                    lds_addresses: Vec::new(),
                    lds_before: Vec::new(),
                    watch: config.inspection.check.then(|| Box::new(Watch::new())),
                    ordered_before: WaveId(0),
                }),
            })
        })
    }

    /// Whether the checking mode is on.
    pub fn is_checking(&self) -> bool {
        self.options.check
    }

    /// Whether behaviour that only one compiler relies on is trusted (see [`config::Inspection`]).
    pub fn trusts_compilers(&self) -> bool {
        self.options.trusts_compilers
    }

    /// Calls a debugger before every instruction from now on.
    pub fn attach(&self, debugger: Box<dyn Debugger>) {
        self.lock().debugger = Some(debugger);
    }

    /// For the thread that executes waves.
    pub fn lock(&self) -> MutexGuard<'_, Inspector> {
        // A debugger that panics ends its own run; the counts stay usable.
        self.inspector.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Distinct findings so far.
    pub fn finding_count(&self) -> usize {
        self.log.len()
    }

    /// The text of the findings file.
    pub fn findings_text(&self) -> String {
        self.log.text()
    }

    /// The text of the profile file.
    pub fn profile_text(&self) -> String {
        if self.options.profile { self.lock().profile.text() } else { String::new() }
    }

    /// Numbers the waves of a dispatch. Returns the first number.
    pub fn begin_dispatch(&self, waves: u64, waves_per_group: u32) -> u32 {
        let waves = u32::try_from(waves).unwrap_or(u32::MAX);
        let mut inspector = self.lock();
        let ordered_before = inspector.ordered_before;
        let Some(watch) = &mut inspector.watch else { return 0 };
        watch.progress.circles.restart();
        watch.checker.begin_dispatch(waves, waves_per_group, ordered_before).0
    }

    /// A queue has waited until its dispatches are done; `first_active_wave` is the first wave of other queues'
    /// unfinished dispatches.
    pub fn flushed(&self, first_active_wave: Option<u32>) {
        let mut inspector = self.lock();
        let Some(watch) = &mut inspector.watch else { return };
        watch.progress.change();
        let next_wave = watch.checker.next_wave();
        inspector.ordered_before = first_active_wave.map_or(next_wave, WaveId);
    }

    /// ACQUIRE_MEM.
    pub fn acquire(&self, actions: CacheActions, space: &AddressSpace) {
        self.change();
        self.with_checker(space, |checker, host| checker.acquire_mem(actions, host));
    }

    /// RELEASE_MEM, before its write; `fence_va` is set if it writes a value that somebody waits for.
    pub fn release(&self, actions: CacheActions, fence_va: Option<u64>, space: &AddressSpace) {
        self.change();
        self.with_checker(space, |checker, host| checker.release_mem(actions, fence_va, host));
    }

    /// A write of the command processor that bypasses the caches.
    pub fn packet_write(&self, va: u64, bytes: &[u8], space: &AddressSpace) {
        self.change();
        self.with_checker(space, |checker, host| checker.cp_write(va, bytes, Path::Memory, host));
    }

    /// A data read of the command processor: it sees waves' writes in GL2, whether or not they were written back.
    pub fn packet_read(&self, va: u64, bytes: &mut [u8], space: &AddressSpace) {
        self.with_checker(space, |checker, host| checker.cp_read(va, bytes, Path::Memory, host));
    }

    /// The driver is about to unmap a range: regions named there may not be accessed any more, whatever is mapped
    /// at the same addresses later.
    pub fn forget(&self, va: u64, len: u64, space: &AddressSpace) {
        self.change();
        {
            let mut inspector = self.lock();
            let is_elsewhere = |code_va: &u64, _: &mut u32| !(va..va.saturating_add(len)).contains(code_va);
            inspector.declared_lds.retain(is_elsewhere);
            inspector.declared_private.retain(is_elsewhere);
        }
        self.with_checker(space, |checker, host| {
            checker.forget(va, len, host);
            checker.remove_allocations(va, len);
        });
    }

    /// The process is gone, together with its memory.
    pub fn reset(&self) {
        let mut inspector = self.lock();
        if let Some(watch) = &mut inspector.watch {
            **watch = Watch::new();
        }
        inspector.declared_lds.clear();
        inspector.declared_private.clear();
        inspector.ordered_before = WaveId(0);
    }

    /// A new dispatch is about to run code; `is_stale`: the host has changed it since it was last fetched.
    pub fn fetch(&self, program: &Program<Noted>, wave_size: WaveSize, is_stale: bool, space: &AddressSpace) {
        let text = |pc| program.code_at(pc, wave_size).to_string();
        self.with_checker_in(space, text, |checker, _| {
            program.parts().for_each(|(va, len)| checker.fetch_instructions(va, len));
        });
        if is_stale && self.options.check {
            self.log(Site { code_va: program.base_va, ..Site::default() }, |finding| Finding {
                rule: Rule::Visibility,
                what: "the instruction cache holds the code that was here before, and it is run".to_owned(),
                remedy: "ACQUIRE_MEM with GLI_INV after the code is written".to_owned(),
                pc: program.base_va,
                instruction: text(program.base_va),
                ..finding
            });
        }
    }

    /// Names a range that shaders may access. Once one is named, they may access only named ones.
    pub fn add_region(&self, name: &str, va: u64, len: u64, usage: AllocationUse) {
        if let Some(watch) = &mut self.lock().watch {
            watch.checker.add_allocation(name, va, len, usage);
        }
    }

    /// Declares the LDS bytes of the kernel at `code_va`; LDS that its launch allocates beyond them belongs to
    /// nobody.
    pub fn declare_lds(&self, code_va: u64, bytes: u32) {
        self.lock().declared_lds.insert(code_va, bytes);
    }

    /// Bytes of the allocated LDS that a group of the kernel at `code_va` may use.
    pub fn declared_lds(&self, code_va: u64, allocated_bytes: u32) -> u32 {
        self.lock().declared_lds.get(&code_va).map_or(allocated_bytes, |bytes| allocated_bytes.min(*bytes))
    }

    /// Declares the bytes of private memory per lane of the kernel at `code_va`.
    pub fn declare_private(&self, code_va: u64, bytes: u32) {
        self.lock().declared_private.insert(code_va, bytes);
    }

    /// Bytes that lanes have loaded from each named range.
    pub fn region_read_bytes(&self) -> Vec<(String, u64)> {
        self.lock().watch.as_ref().map_or_else(Vec::new, |watch| watch.checker.read_bytes())
    }

    /// Sets whether the host changes nothing that waves read until they have ended.
    pub fn silence_host(&self, is_silent: bool) {
        if let Some(watch) = &mut self.lock().watch {
            watch.progress.circles.silence_host(is_silent);
        }
    }

    /// A packet or the driver may have changed a value that waves wait for.
    fn change(&self) {
        if let Some(watch) = &mut self.lock().watch {
            watch.progress.change();
        }
    }

    fn with_checker(&self, space: &AddressSpace, act: impl FnOnce(&mut MemoryChecker, &mut Mapped<'_>)) {
        // A packet has no instruction.
        self.with_checker_in(space, |_| String::new(), act);
    }

    /// The same for findings that may concern code; `text` returns the instruction at an address.
    fn with_checker_in(
        &self,
        space: &AddressSpace,
        text: impl Fn(u64) -> String,
        act: impl FnOnce(&mut MemoryChecker, &mut Mapped<'_>),
    ) {
        let mut inspector = self.lock();
        let Some(watch) = &mut inspector.watch else { return };
        let table = space.snapshot();
        act(&mut watch.checker, &mut Mapped::new(&table));
        for finding in take(watch) {
            let instruction = text(finding.pc);
            self.log_memory(finding, Site::default(), instruction);
        }
    }

    /// Called after a group has run and can continue. Returns whether no resident group ever will, because what
    /// they wait for would have to be done by groups that are not resident.
    pub fn is_spinning(&self, instructions: u64, resident_groups: u64, waiting_groups: u64) -> bool {
        let mut inspector = self.lock();
        let Some(watch) = &mut inspector.watch else { return false };
        #[cfg(test)]
        if crate::check::switch::is_off(&"SpinsForever") {
            return false;
        }
        watch.progress.is_waiting_for_ever(instructions, resident_groups, waiting_groups)
    }

    /// Called after such a run. Returns whether all waves that can run are in circles. `are_all_closed` is asked
    /// whether those of every resident group are closed, given a test for one wave.
    pub fn go_in_circles(&self, are_all_closed: impl FnOnce(&dyn Fn(u32) -> bool) -> bool) -> bool {
        let mut inspector = self.lock();
        let Some(watch) = &mut inspector.watch else { return false };
        #[cfg(test)]
        if crate::check::switch::is_off(&"GoesInCircles") {
            return false;
        }
        let circles = &mut watch.progress.circles;
        circles.has_news() && are_all_closed(&|wave| circles.is_closed(wave)) && circles.confirm()
    }

    /// What a wave that goes in circles reads.
    pub fn circle_loads(&self, wave: u32) -> Vec<SeenLoad> {
        let inspector = self.lock();
        inspector.watch.as_ref().map_or_else(Vec::new, |watch| watch.progress.circles.loads(wave).to_vec())
    }

    /// A fault is a finding too, if the kernel is to blame and the instruction has no finding yet.
    pub fn fault(&self, fault: &WaveFault) {
        if !self.options.check {
            return;
        }
        let Some((rule, remedy)) = blame(&fault.kind) else { return };
        // A launch without scratch has been reported for the instruction already.
        let lacks_scratch = matches!(fault.kind, WaveFaultKind::Scratch { allocated: 0, .. });
        let told = [Some(rule), lacks_scratch.then_some(Rule::Uninitialised)];
        if told.into_iter().flatten().any(|rule| self.log.has(rule, fault.instruction_va)) {
            return;
        }
        let site = Site {
            code_va: fault.code_va,
            launched_at: fault.origin.packet_va,
            workgroup: fault.workgroup,
            wave: fault.wave,
        };
        self.log(site, |finding| Finding {
            rule,
            what: fault.kind.to_string(),
            remedy: remedy.to_owned(),
            pc: fault.instruction_va,
            instruction: fault.code.to_string(),
            lane: fault.lane,
            address: address_of(&fault.kind),
            ..finding
        });
    }

    /// Logs a finding of the memory checker.
    pub(super) fn log_memory(&self, memory: MemoryFinding, site: Site, instruction: String) {
        let rule = match memory.rule() {
            MemoryRule::Waits => Rule::Counters,
            MemoryRule::Uninitialised => Rule::Uninitialised,
            MemoryRule::Races => Rule::Race,
            MemoryRule::Visibility => Rule::Visibility,
            MemoryRule::Bounds => Rule::Bounds,
            MemoryRule::Advice => Rule::Advice,
        };
        let mut what = memory.defect.what().to_owned();
        if let Some(other) = &memory.other {
            let kind = other.kind.map_or("write", |kind| kind.name());
            let article = if kind.starts_with(['L', 'a']) { "an" } else { "a" };
            what.push_str(&format!("; the other is {article} {kind} by {}", other.actor));
        }
        if !memory.detail.is_empty() {
            what.push_str(&format!("; {}", memory.detail));
        }
        self.log(site, |finding| Finding {
            rule,
            what,
            remedy: memory.defect.remedy().to_owned(),
            pc: memory.pc,
            instruction,
            other_pc: memory.other.map(|other| other.pc).filter(|pc| *pc != 0),
            lane: memory.lane,
            address: Some(memory.address),
            count: memory.count,
            ..finding
        });
    }

    /// Logs a finding at a place.
    pub(super) fn log(&self, site: Site, fill: impl FnOnce(Finding) -> Finding) {
        self.log.add(fill(Finding {
            rule: Rule::Progress,
            what: String::new(),
            remedy: String::new(),
            pc: 0,
            code_va: site.code_va,
            launched_at: site.launched_at,
            instruction: String::new(),
            other_pc: None,
            workgroup: site.workgroup,
            wave: site.wave,
            lane: None,
            register: None,
            address: None,
            seed: self.seed,
            count: 1,
        }));
    }
}

impl Inspector {
    /// Bytes of the allocated private memory that a lane of the kernel at `code_va` may use.
    pub fn declared_private(&self, code_va: u64, allocated_bytes: u32) -> u32 {
        self.declared_private.get(&code_va).map_or(allocated_bytes, |bytes| allocated_bytes.min(*bytes))
    }

    /// Lends the memory checker to the port of the running group.
    pub fn lend_watch(&mut self, port: &mut MemoryPort) {
        port.lend_watch(self.watch.take());
    }

    /// Takes the memory checker back.
    pub fn take_watch_back(&mut self, port: &mut MemoryPort) {
        self.watch = port.take_watch();
    }
}

/// Findings of the memory checker since the last call.
pub(super) fn take(watch: &mut Watch) -> Vec<MemoryFinding> {
    if watch.checker.findings().is_empty() { Vec::new() } else { watch.checker.take_findings() }
}

/// The address in memory or LDS that a fault concerns.
fn address_of(kind: &WaveFaultKind) -> Option<u64> {
    match kind {
        WaveFaultKind::Page(fault) => Some(fault.va),
        WaveFaultKind::Misaligned { va, .. } | WaveFaultKind::MisalignedJump(va) => Some(*va),
        WaveFaultKind::LdsOutOfRange { address, .. } => Some(u64::from(*address)),
        _ => None,
    }
}

/// The rule that a fault breaks, and what would satisfy it.
fn blame(kind: &WaveFaultKind) -> Option<(Rule, &'static str)> {
    Some(match kind {
        WaveFaultKind::Page(_) => (Rule::Bounds, "an address inside of a mapped buffer"),
        WaveFaultKind::PastEnd | WaveFaultKind::UnknownInstruction(_) => {
            (Rule::Bounds, "s_endpgm, or a branch, before the end of the code")
        }
        WaveFaultKind::MisalignedJump(_) => (Rule::Bounds, "a target that is a multiple of 4"),
        WaveFaultKind::LdsOutOfRange { .. } => {
            (Rule::Bounds, "an address below the LDS size of the dispatch")
        }
        WaveFaultKind::VectorRegister { .. } => (Rule::Bounds, "more vector registers in RSRC1"),
        WaveFaultKind::Misaligned { .. } => (Rule::Bounds, "an address that is a multiple of the width"),
        WaveFaultKind::Scratch { .. } => {
            (Rule::Bounds, "an index inside of the array, or a larger private segment")
        }
        WaveFaultKind::BarrierNeverCompletes => {
            (Rule::Progress, "every wave of the group signals the barrier as often as any waits for it")
        }
        WaveFaultKind::GoesInCircles { .. } => {
            (Rule::Progress, "some wave that can still run must store what the loop polls")
        }
        WaveFaultKind::SpinsForever { .. } => (
            Rule::Progress,
            "launch no more groups than fit the chip together, or do not wait for groups that come later",
        ),
        WaveFaultKind::NotExecuted { .. }
        | WaveFaultKind::DualInWave64(_)
        | WaveFaultKind::Trap(_)
        | WaveFaultKind::Halted
        | WaveFaultKind::BufferDescriptor(_) => return None,
    })
}

#[cfg(test)]
mod tests;
