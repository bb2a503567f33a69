//! The register half of the checking mode: a wave's use of its own registers.
//!
//! Contract: a pure component, one [`RegisterShadow`] per wave. The engine makes a [`Note`] of each instruction when it
//! decodes a program and calls [`RegisterShadow::before`] before each instruction that a wave executes. Nothing here
//! changes what the wave computes.
//!
//! | rule | what |
//! |---|---|
//! | [`Rule::Counters`] | results of loads, LDS, SMEM and messages used or overwritten too early |
//! | [`Rule::Hazards`] | the scalar hazard and the others; dual operations that cannot issue |
//! | [`Rule::Uninitialised`] | values never written, by bit and lane, where they matter; matrix lanes; scratch |
//! | [`Rule::Advice`] | stores of partly undefined data |
//!
//! Not checked: LDS direct loads after uses of their destination (instruction set reference §5.2), image, export and
//! interpolation instructions.
//! Cost: tens of nanoseconds per instruction without a finding; some 30 KiB per wave, reused.

mod bits;
mod defined;
mod finding;
mod hazard;
mod launch_state;
mod note;
mod outstanding;
mod private;
mod subject;
#[cfg(test)]
mod tests;
mod transfer;

pub use finding::{Defect, RegisterFinding, Remedy, Rule};
pub use launch_state::{LaunchState, Strictness};
pub use note::Note;
pub use subject::{LANES_MAX, Outcome, Subject, Undefined};
pub use transfer::Transfer;

use crate::check::undefined::{Loaded, Stored};
use defined::Defined;
use hazard::{OtherHazards, ScalarHazard};
use note::{STORE_QUEUE, Special};
use outstanding::Outstanding;
use zrt_isa::effects::{Counter, M0};

/// What is known about one wave's registers.
#[derive(Clone, Debug)]
pub struct RegisterShadow {
    outstanding: Outstanding,
    scalar_hazard: ScalarHazard,
    other_hazards: OtherHazards,
    defined: Defined,
    all_lanes: u64,
    has_scratch: bool,
}

impl Default for RegisterShadow {
    fn default() -> Self {
        Self::new()
    }
}

impl RegisterShadow {
    /// An unused shadow; call [`RegisterShadow::begin`] first.
    pub fn new() -> Self {
        Self {
            outstanding: Outstanding::new(),
            scalar_hazard: ScalarHazard::new(Strictness::Strict),
            other_hazards: OtherHazards::default(),
            defined: Defined::new(),
            all_lanes: 0,
            has_scratch: false,
        }
    }

    /// Starts a wave.
    pub fn begin(&mut self, launch: &LaunchState) {
        self.outstanding.clear();
        self.scalar_hazard.begin(launch.strictness);
        self.other_hazards = OtherHazards::default();
        self.defined.begin(launch);
        self.all_lanes = u64::MAX >> (64 - launch.wave_size.lanes());
        self.has_scratch = launch.private_bytes > 0;
    }

    /// Does all the work of [`RegisterShadow::before`] for an instruction that cannot have a finding. Returns
    /// false, with nothing done, if it may have one. `exec`: the active lanes.
    #[inline]
    pub fn passes(&mut self, note: &Note, pc: u64, exec: u64) -> bool {
        let is_quiet = note.is_plain
            && self.defined.has_seen(exec & self.all_lanes)
            && !note.touched.meets_either(self.outstanding.any(), self.defined.incomplete())
            && self.scalar_hazard.is_quiet(note);
        if is_quiet {
            self.scalar_hazard.step(note, pc, &mut |_| ());
            self.other_hazards.pass(note.special);
        }
        is_quiet
    }

    /// Called when the wave is about to execute the instruction at `pc`.
    #[inline]
    pub fn before<S: Subject>(
        &mut self,
        note: &Note,
        pc: u64,
        subject: &mut S,
        report: &mut dyn FnMut(RegisterFinding),
    ) {
        #[cfg(test)]
        let report: &mut dyn FnMut(RegisterFinding) = &mut |finding: RegisterFinding| {
            if !crate::check::switch::is_off(&finding.defect) {
                report(finding);
            }
        };
        if note.is_relative {
            let m0 = subject.scalar().get(M0).copied().unwrap_or_default();
            return self.judge(&note.resolved(m0), pc, subject, report);
        }
        self.judge(note, pc, subject, report);
    }

    /// Takes the undefined part of the data that the current instruction stores to memory or LDS.
    #[inline]
    pub fn take_stored(&mut self) -> Option<Stored> {
        self.defined.take_stored()
    }

    /// Records that the current instruction has loaded undefined data, in ascending lane order. A finding names the
    /// first lane's origin.
    pub fn load(&mut self, transfer: &Transfer, loaded: &[Loaded]) {
        loaded.iter().rev().for_each(|loaded| self.defined.load(transfer, loaded));
    }

    /// Sequence number of the last operation issued that a counter counts; 0 for none.
    pub fn issued(&self) -> u32 {
        self.outstanding.issued()
    }

    /// All vector loads and returning atomics (LOADcnt) up to this sequence number are complete.
    pub fn completed_loads(&self) -> u32 {
        self.outstanding.completed(Counter::Load as usize)
    }

    /// All vector stores and other atomics (STOREcnt) up to this sequence number are complete.
    pub fn completed_stores(&self) -> u32 {
        self.outstanding.completed(STORE_QUEUE)
    }

    /// All LDS and flat operations (DScnt) up to this sequence number are complete.
    pub fn completed_ds(&self) -> u32 {
        self.outstanding.completed(Counter::Ds as usize)
    }

    /// All scalar loads and messages (KMcnt) up to this sequence number are complete.
    pub fn completed_scalar(&self) -> u32 {
        self.outstanding.completed(Counter::Km as usize)
    }

    #[inline]
    fn judge<S: Subject>(
        &mut self,
        note: &Note,
        pc: u64,
        subject: &mut S,
        report: &mut dyn FnMut(RegisterFinding),
    ) {
        let exec = subject.exec() & self.all_lanes;
        self.outstanding.check(note, pc, report);
        self.scalar_hazard.step(note, pc, report);
        self.other_hazards.step(note, pc, &self.outstanding, report);
        match note.special {
            Special::Matrix if exec != self.all_lanes => report(RegisterFinding {
                lane: Some((self.all_lanes & !exec).trailing_zeros()),
                ..RegisterFinding::at(pc, Defect::MatrixLanes, Remedy::AllLanes)
            }),
            Special::Scratch if !self.has_scratch => {
                report(RegisterFinding::at(pc, Defect::NoScratch, Remedy::Scratch));
            }
            _ => {}
        }
        self.defined.step(note, pc, exec, subject, report);
        if note.has_waits {
            if self.outstanding.is_partial_scalar_wait(&note.waits) {
                let remedy = Remedy::Wait(Counter::Km, 0);
                report(RegisterFinding::at(pc, Defect::PartialScalarWait, remedy));
            }
            self.outstanding.wait(&note.waits);
        }
        if note.raises != 0 {
            self.outstanding.raise(note, pc);
        }
    }
}
