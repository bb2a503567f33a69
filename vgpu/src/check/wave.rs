//! Inspects one wave's turn, instruction by instruction.
//!
//! Contract: before an instruction executes, registers and LDS are checked, and the memory checker learns which
//! instruction accesses global memory next; the accesses themselves reach it through the memory port. After the
//! instruction, barriers and the wave's end are reported. Cost: some tens of nanoseconds per instruction without
//! memory access.

mod lds_change;

use zrt_isa::{Instruction, Operand};

use crate::check::circles::Place;
use crate::check::debug::{Action, Stop};
use crate::check::finding::{Finding, Rule};
use crate::check::inspector::{Inspection, Inspector, Site, take};
use crate::check::lds_access::{LdsKind, flat_clash};
use crate::check::memory::{Access, AccessKind, Completed, GroupShadow, Issue, LaneElement, Scope, WaveId};
use crate::check::noted::{Control, Noted, scope};
use crate::check::profile::LdsLanes;
use crate::check::registers::{self, Defect, LaunchState, Note, RegisterFinding, RegisterShadow};
use crate::check::sectors;
use crate::check::trial::Trial;
use crate::check::undefined::Source;
use crate::check::watch::WatchedPort;
use crate::memory::Mapped;
use crate::shader::address::{Target, flat_address, flat_target};
use crate::shader::dispatch::Dispatch;
use crate::shader::interpreter::Inspect;
use crate::shader::machine::Machine;
use crate::shader::micro::{Flow, MicroOp};
use crate::shader::program::Program;
use crate::shader::wave::{EXEC_LO, LANES, SCALAR_PREFETCH_EN, Wave};

/// The state kept for one wave.
pub(crate) struct WaveShadow {
    wave: WaveId,
    compute_unit: u16,
    registers: RegisterShadow,
    /// The operations already reported complete to the memory checker.
    told: Completed,
    /// The current flat access, if it goes to memory.
    global: Option<Access>,
    /// The next instruction is a barrier wait that was checked before and did not pass.
    is_retry: bool,
}

impl WaveShadow {
    /// Prepares for a new wave.
    pub fn begin(&mut self, wave: u32, compute_unit: u32, launch: &LaunchState) {
        self.wave = WaveId(wave);
        self.compute_unit = compute_unit as u16;
        self.registers.begin(launch);
        self.told = Completed::default();
        self.global = None;
        self.is_retry = false;
    }

    /// The wave's number on the device.
    pub fn number(&self) -> u32 {
        self.wave.0
    }
}

impl Default for WaveShadow {
    fn default() -> WaveShadow {
        WaveShadow {
            wave: WaveId(0),
            compute_unit: 0,
            registers: RegisterShadow::default(),
            told: Completed::default(),
            global: None,
            is_retry: false,
        }
    }
}

/// The inspection of one wave's turn.
pub(crate) struct WaveInspector<'a> {
    pub inspection: &'a Inspection,
    pub inspector: &'a mut Inspector,
    pub shadow: &'a mut WaveShadow,
    pub group: &'a mut GroupShadow,
    pub dispatch: &'a Dispatch,
    /// The program of the dispatch; a wave may have jumped out of it.
    pub main: &'a Program<Noted>,
    pub workgroup: [u32; 3],
    pub index: u32,
    /// Start of the circle that the wave may be in.
    pub circle_start: Option<Place>,
    /// The operation at that start until the wave passes it in this turn; then `u32::MAX`.
    pub circle_next: u32,
    /// Whether the turn begins there.
    pub is_at_start: bool,
}

impl Inspect<Noted> for WaveInspector<'_> {
    const IS_ON: bool = true;

    fn before(
        &mut self,
        wave: &mut Wave,
        program: &Program<Noted>,
        at: usize,
        machine: &mut Machine<'_>,
    ) -> bool {
        if at as u32 == self.circle_next && self.closes_circle(wave, program, machine) {
            return false;
        }
        let Some(noted) = program.noted(at) else { return true };
        if std::mem::take(&mut self.shadow.is_retry) {
            return true;
        }
        let pc = program.address(&program.ops[at]);
        let options = self.inspection.options;
        if self.inspector.debugger.is_some() && noted.registers.is_some() {
            self.ask(wave, noted, pc, machine);
        }
        if let Some(shape) = &noted.lds {
            shape.addresses(wave, &mut self.inspector.lds_addresses);
        }
        if !noted.is_local {
            machine.memory.set_first_lane(if wave.is_high { LANES } else { 0 });
        }
        if options.profile {
            self.count(wave, noted, &program.ops[at], pc);
        }
        if options.check {
            if let Some(note) = &noted.registers {
                if !self.shadow.registers.passes(note, pc, wave.scalar_pair(EXEC_LO)) {
                    let knows_hazard = program.knows_scalar_hazard || self.main.knows_scalar_hazard;
                    let ops = &program.ops[at..];
                    self.check_registers(&mut Trial { wave, ops, machine }, note, noted, pc, knows_hazard);
                }
                if !noted.is_local {
                    self.check_order(noted, pc, machine);
                    self.advise_prefetch(wave, noted, pc);
                }
            }
            if !noted.is_local {
                self.check_lds(wave, noted, machine);
                self.note_lds(noted, pc, machine);
            }
        }
        true
    }

    fn after(
        &mut self,
        wave: &Wave,
        program: &Program<Noted>,
        at: usize,
        flow: Flow,
        machine: &mut Machine<'_>,
    ) {
        let Some(noted) = program.noted(at) else { return };
        if noted.is_local && flow != Flow::End {
            return;
        }
        let pc = program.address(&program.ops[at]);
        self.shadow.is_retry = flow == Flow::Barrier;
        self.note_lds_change(machine);
        let Some(watch) = machine.memory.watch() else { return };
        if watch.checker.has_undefined_loads() {
            let loaded = watch.checker.take_undefined_loads();
            noted.transfer.iter().for_each(|transfer| self.shadow.registers.load(transfer, &loaded));
        }
        match noted.control {
            Control::BarrierSignal => watch.progress.change(),
            Control::Outside => watch.progress.circles.change(),
            _ => {}
        }
        // In a wave64, the lanes are complete after the high half.
        if noted.memory.is_some() && (noted.registers.is_none() || !wave.is_wave64()) {
            watch.checker.end_access();
        }
        match noted.control {
            Control::BarrierSignal if machine.barrier.signals == 0 => self.group.barrier_completed(),
            // A wave that does not pass yet learns the rest when it does.
            Control::BarrierWait => watch.checker.barrier_wait(self.group, self.shadow.wave),
            _ => {}
        }
        if flow == Flow::End {
            watch.checker.end_of_wave(self.shadow.wave);
            watch.progress.change();
        }
        let found = take(watch);
        if !found.is_empty() {
            let site = self.site();
            for finding in found {
                debug_assert_eq!(finding.pc, pc, "what is told of an instruction is taken before the next");
                self.inspection.log_memory(finding, site, noted.instruction.to_string());
            }
        }
    }
}

impl WaveInspector<'_> {
    /// Whether the wave has returned to the start of its circle in the same state, so that its turn must end; the
    /// circle is then closed. A wave that counts passes there in every round of its loop, and is compared every time.
    #[cold]
    #[inline(never)]
    fn closes_circle(&mut self, wave: &Wave, program: &Program<Noted>, machine: &mut Machine<'_>) -> bool {
        let is_there = self.circle_start.is_some_and(|start| start.program_va == program.base_va);
        if !is_there || std::mem::take(&mut self.is_at_start) {
            return false;
        }
        let number = self.shadow.number();
        let is_back =
            machine.memory.watch().is_some_and(|watch| watch.progress.circles.is_back(number, wave));
        if is_back {
            self.circle_next = u32::MAX;
        }
        is_back
    }

    fn site(&self) -> Site {
        let dispatch = self.dispatch;
        Site {
            code_va: dispatch.code_va,
            launched_at: dispatch.origin.packet_va,
            workgroup: self.workgroup,
            wave: self.index,
        }
    }

    /// Counts the instruction; the LDS addresses of a non-flat one have been computed already.
    fn count(&mut self, wave: &Wave, noted: &Noted, op: &MicroOp, pc: u64) {
        let Inspector { profile, lds_addresses: addresses, .. } = &mut *self.inspector;
        let mut lanes = wave.exec().count_ones();
        let lds = match (&noted.lds, noted.memory) {
            (Some(shape), _) => Some((shape.kind, shape.width_bytes)),
            (None, Some(global))
                if global.is_flat && flat_lds_addresses(wave, &noted.instruction, addresses) =>
            {
                lanes -= addresses.len() as u32;
                Some((global.lds_kind(), noted.counted.width_bytes as u32))
            }
            _ => None,
        };
        let lds = lds.map(|(kind, width_bytes)| LdsLanes { kind, width_bytes, addresses });
        let is_first = noted.registers.is_some();
        let passes = profile.count(&noted.counted, is_first, lanes, lds);
        let sectors = sectors::touched(wave, &noted.instruction, op, noted.counted.width_bytes);
        profile.count_traffic(pc, &noted.instruction, sectors, passes);
        profile.count_place(pc, &noted.instruction, is_first, wave.exec().count_ones());
    }

    fn ask(&mut self, wave: &mut Wave, noted: &Noted, pc: u64, machine: &mut Machine<'_>) {
        let Some(debugger) = &mut self.inspector.debugger else { return };
        let lds_dwords = machine.lds.bytes as usize / 4;
        let action = debugger.before(&mut Stop {
            pc,
            code_va: self.dispatch.code_va,
            instruction: &noted.instruction,
            workgroup: self.workgroup,
            wave_index: self.index,
            wave,
            lds: &machine.lds.words[..lds_dwords],
            findings: self.inspection.finding_count(),
            memory: machine.memory,
        });
        if action == Action::Detach {
            self.inspector.debugger = None;
        }
    }

    fn check_registers(
        &mut self,
        trial: &mut Trial<'_, '_>,
        note: &Note,
        noted: &Noted,
        pc: u64,
        knows_hazard: bool,
    ) {
        let (inspection, site) = (self.inspection, self.site());
        let mut unwritten = Vec::new();
        self.shadow.registers.before(note, pc, trial, &mut |found: RegisterFinding| {
            // Compilers wait before such a store unless it is an atomic one (LLVM,
            // SIGfx12CacheControl::finalizeStore), and its words do not show which it is.
            if inspection.options.trusts_compilers && found.defect == Defect::SystemStore {
                return;
            }
            if inspection.options.trusts_compilers && !knows_hazard && is_scalar_hazard(found.defect) {
                let (program, wave_size) = (self.main, self.dispatch.wave_size());
                return inspection.log(site, |finding| Finding {
                    instruction: program.code_at(site.code_va, wave_size).to_string(),
                    ..unaware_compiler(finding)
                });
            }
            if let Defect::Undefined(Source::Memory(va)) = found.defect {
                return unwritten.push((found, va));
            }
            inspection.log(site, |finding| told(found, noted, finding));
        });
        for (found, va) in unwritten {
            let place = trial.machine.memory.watch().map(|watch| watch.checker.describe(va, 1));
            inspection.log(site, |finding| {
                let finding = told(found, noted, finding);
                let place = place
                    .filter(|place| !place.is_empty())
                    .map_or(String::new(), |place| format!("; {place}"));
                Finding { what: format!("{}{place}", finding.what), address: Some(va), ..finding }
            });
        }
    }

    /// Tells the memory checker what has completed, which access comes next, and what orders others.
    fn check_order(&mut self, noted: &Noted, pc: u64, machine: &mut Machine<'_>) {
        let registers = &self.shadow.registers;
        let completed = Completed {
            loads: registers.completed_loads(),
            stores: registers.completed_stores(),
            lds: registers.completed_ds(),
            scalar: registers.completed_scalar(),
        };
        let sequence = registers.issued();
        let Some((watch, table)) = machine.memory.watch_of_table() else { return };
        let checker = &mut watch.checker;
        let (id, cu) = (self.shadow.wave, self.shadow.compute_unit);
        if completed != self.shadow.told {
            self.shadow.told = completed;
            checker.waited(id, completed);
        }
        // An instruction without a known transfer stores nothing undefined, and none of the previous store's data.
        checker.set_undefined_data(self.shadow.registers.take_stored());
        let access = |kind, scope| Access { wave: id, sequence, pc, cu, scope, kind };
        if let Some(global) = noted.memory {
            // Stores are changes. A poll may be a scalar load or lack its scope; then it waits forever all the
            // more.
            if !matches!(global.kind, AccessKind::Store | AccessKind::Prefetch) {
                watch.progress.poll(id.0, pc, global.scope == Scope::System);
            }
            let access = access(global.kind, global.scope);
            self.shadow.global = global.is_flat.then_some(access);
            checker.begin_access(access);
        }
        if let Some(shape) = &noted.lds {
            let kind = match shape.kind {
                LdsKind::Load => AccessKind::LdsLoad,
                LdsKind::Store => AccessKind::LdsStore,
                LdsKind::Atomic => {
                    AccessKind::LdsAtomic { returns: noted.instruction.destination != Operand::None }
                }
            };
            checker.begin_access(access(kind, Scope::Cu));
        }
        match noted.control {
            Control::BarrierSignal => checker.barrier_signal(self.group, id),
            Control::Cache(control) => {
                let issue = Issue { wave: id, sequence, cu, scope: scope(noted.instruction.scope) };
                checker.cache_control(issue, control, &mut Mapped::new(table));
            }
            Control::ScalarInvalidate => checker.scalar_cache_invalidate(cu),
            Control::InstructionInvalidate => checker.instruction_cache_invalidate(),
            Control::None | Control::BarrierWait | Control::Outside => {}
        }
    }

    /// A prefetch without effect is no error, but it does not bring the intended speed.
    fn advise_prefetch(&self, wave: &Wave, noted: &Noted, pc: u64) {
        let is_prefetch = noted.memory.is_some_and(|global| global.kind == AccessKind::Prefetch);
        if is_prefetch && wave.mode & SCALAR_PREFETCH_EN == 0 {
            self.inspection.log(self.site(), |finding| Finding {
                rule: Rule::Advice,
                what: "the prefetch does nothing: MODE.SCALAR_PREFETCH_EN is clear".to_owned(),
                remedy: "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 24, 1), 1 before it; from then on every line \
                         that it asks for must be mapped"
                    .to_owned(),
                pc,
                instruction: noted.instruction.to_string(),
                ..finding
            });
        }
    }

    /// Checks the lanes' accesses to LDS; those to memory arrive through the port.
    fn check_lds(&mut self, wave: &Wave, noted: &Noted, machine: &mut Machine<'_>) {
        let Some(watch) = machine.memory.watch() else { return };
        let checker = &mut watch.checker;
        let first_lane = if wave.is_high { LANES as u32 } else { 0 };
        if let (Some(global), Some(access)) = (noted.memory, self.shadow.global)
            && global.is_flat
            && flat_lds_addresses(wave, &noted.instruction, &mut self.inspector.lds_addresses)
        {
            let width = noted.counted.width_bytes as u32;
            checker.begin_access(Access { kind: global.in_lds(), scope: Scope::Cu, ..access });
            for (lane, address) in self.inspector.lds_addresses.iter().copied() {
                checker.lds_access(self.group, first_lane + lane, address, width, width.min(4));
            }
            if checker.take_lanes_in_lds()
                && let Some(clash) =
                    flat_clash(wave, &noted.instruction, width, &self.inspector.lds_addresses)
            {
                checker.report_lanes(&clash);
            }
            // The other lanes' accesses arrive through the port.
            checker.begin_access(access);
        }
        let Some(shape) = &noted.lds else { return };
        let (width, element) = (shape.width_bytes, AccessKind::lds_alignment_bytes(shape.width_bytes));
        let lanes = self.inspector.lds_addresses.len() / shape.element_count();
        for (index, (lane, address)) in self.inspector.lds_addresses.iter().copied().enumerate() {
            let (lane, element_number) = (first_lane + lane, (index / lanes) as u32);
            let of = LaneElement { lane, element: element_number };
            checker.lds_access(self.group, of, address, width, element);
            if shape.forgets {
                checker.define_lds(self.group, address, width);
            }
        }
        if checker.take_lanes_in_lds()
            && let Some(clash) = shape.clash(wave, &noted.instruction)
        {
            checker.report_lanes(&clash);
        }
    }
}

/// Completes a finding of the register rules.
fn told(found: RegisterFinding, noted: &Noted, finding: Finding) -> Finding {
    Finding {
        rule: match found.rule() {
            registers::Rule::Counters => Rule::Counters,
            registers::Rule::Hazards => Rule::Hazard,
            registers::Rule::Uninitialised => Rule::Uninitialised,
            registers::Rule::Advice => Rule::Advice,
            registers::Rule::Bounds => Rule::Bounds,
        },
        what: match found.registers {
            Some(registers) => format!("{registers} {}", found.defect),
            None => found.defect.to_string(),
        },
        remedy: found.remedy.to_string(),
        pc: found.pc,
        instruction: noted.instruction.to_string(),
        other_pc: found.cause_pc,
        lane: found.lane,
        register: found.registers.map(|registers| registers.to_string()),
        ..finding
    }
}

/// Defects of the VALU-read-SGPR hazard (instruction set reference §5.1).
fn is_scalar_hazard(defect: Defect) -> bool {
    matches!(defect, Defect::ScalarWrite | Defect::VectorWrite | Defect::OpenAtJump)
}

/// A finding reported once for code whose compiler inserts no wait at all.
fn unaware_compiler(finding: Finding) -> Finding {
    Finding {
        rule: Rule::Hazard,
        what: "the compiler does not know the scalar hazard of gfx1201: the code has no s_wait_alu"
            .to_owned(),
        remedy: "compile with clang 22 or later".to_owned(),
        pc: finding.code_va,
        ..finding
    }
}

/// Lanes and LDS addresses of a flat instruction. Returns false if no active lane's address is in the LDS aperture.
fn flat_lds_addresses(wave: &Wave, instruction: &Instruction, addresses: &mut Vec<(u32, u32)>) -> bool {
    addresses.clear();
    let Operand::Vector(register) = instruction.sources[0] else { return false };
    let high = &wave.vector[usize::from(register.wrapping_add(1))].0;
    let low = &wave.vector[usize::from(register)].0;
    let exec = wave.exec();
    for lane in (0..LANES).filter(|lane| exec >> lane & 1 != 0) {
        let va = flat_address(low[lane], high[lane], instruction.immediate);
        if let Target::Lds(address) = flat_target(va) {
            addresses.push((lane as u32, address));
        }
    }
    !addresses.is_empty()
}

#[cfg(test)]
mod tests;
