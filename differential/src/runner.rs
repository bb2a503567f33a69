//! The device's side: a code object loaded and its kernels launched one after the other.
//!
//! Contract: a kernel that faults or hangs loses only its own result: the device is reopened for the next one.
//! Under the checking mode every launch has a device of its own. Results are bytes in the host's layout
//! (`Shape::result_bytes`).

use crate::error::DifferentialError;
use crate::program::Program;
use crate::session::{Change, Outcome, Session};
use crate::text::kernel_name;
use crate::toolchain::{Shape, seeds};
use zrt_bringup::Finding;
use zrt_loader::Kernel;

/// Changes machine code before it runs: a planted error, as if the device executed another instruction.
pub type Plant = fn(&mut [u32]);

/// The result of one launch under the checking mode.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// Seed of the schedule.
    pub schedule: u64,
    /// Its results.
    pub outcome: Outcome,
    /// Broken rules and advice.
    pub findings: Vec<Finding>,
}

/// A device that runs batches.
pub struct Runner {
    shape: Shape,
    plant: Option<Plant>,
    session: Option<Session>,
}

impl Runner {
    /// A runner; the device is opened when it is first needed.
    pub fn new(shape: Shape, plant: Option<Plant>) -> Runner {
        Runner { shape, plant, session: None }
    }

    /// Runs every program of a code object on its inputs.
    pub fn run(
        &mut self,
        code_object: &[u8],
        programs: &[Program],
        inputs: &[Vec<u8>],
    ) -> Result<Vec<Outcome>, DifferentialError> {
        let loaded = load(code_object, programs)?;
        let plant = self.plant;
        let change = |_: u64, words: &mut [u32]| plant.iter().for_each(|plant| plant(words));
        let mut outcomes = Vec::with_capacity(programs.len());
        let mut code = None;
        for (index, (program, input)) in programs.iter().zip(inputs).enumerate() {
            let session = match &mut self.session {
                Some(session) => session,
                empty => {
                    code = None;
                    empty.insert(Session::open(self.shape, None)?)
                }
            };
            let code = match &code {
                Some(code) => code,
                None => code.insert(session.load(&loaded, "programs", Some(&change))?),
            };
            let kernel = kernel_of(&loaded, index, program.seed)?;
            let outcome = session.launch(self.shape, kernel, code, program.seed, input)?;
            if matches!(outcome, Outcome::Fault(_)) {
                self.session = None;
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    /// Runs the program at an index of a code object under the checking mode, once for each of `schedules`, until a
    /// launch satisfies `is_enough`.
    pub fn check(
        &self,
        loaded: &zrt_loader::Program,
        (index, seed): (usize, u64),
        input: &[u8],
        schedules: std::ops::Range<u64>,
        change: Option<Change<'_>>,
        is_enough: &dyn Fn(&Checked) -> bool,
    ) -> Result<Vec<Checked>, DifferentialError> {
        let kernel = kernel_of(loaded, index, seed)?;
        let plant = self.plant.map(|plant| move |_: u64, words: &mut [u32]| plant(words));
        let change = change.or(plant.as_ref().map(|plant| plant as Change<'_>));
        let mut launches = Vec::new();
        for schedule in schedules {
            let mut session = Session::open(self.shape, Some(schedule))?;
            let code = session.load(loaded, &kernel.name, change)?;
            let outcome = session.launch(self.shape, kernel, &code, seed, input)?;
            let checked = Checked { schedule, outcome, findings: session.findings()? };
            let is_last = is_enough(&checked);
            launches.push(checked);
            if is_last {
                break;
            }
        }
        Ok(launches)
    }
}

/// Reads a code object.
pub fn load(code_object: &[u8], programs: &[Program]) -> Result<zrt_loader::Program, DifferentialError> {
    zrt_loader::Program::parse(code_object)
        .map_err(|source| DifferentialError::Load { seeds: seeds(programs), source })
}

/// The kernel of the program at an index.
pub fn kernel_of(
    loaded: &zrt_loader::Program,
    index: usize,
    seed: u64,
) -> Result<&Kernel, DifferentialError> {
    let name = kernel_name(index);
    let missing =
        || DifferentialError::Launch { seed, reason: format!("the code object has no kernel {name}") };
    loaded.kernel(&name).ok_or_else(missing)
}
