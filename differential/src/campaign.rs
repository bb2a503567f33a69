//! Many programs on several threads.
//!
//! Contract: program `i` has the seed `first_seed + i`, which decides its text, its inputs and its optimisation level;
//! the result does not depend on the number of threads. Failing programs are made smaller afterwards, one by one.

use crate::batch::{Comparison, Verdict};
use crate::error::DifferentialError;
use crate::generate;
use crate::minimise::minimise;
use crate::program::Program;
use crate::runner::Plant;
use crate::toolchain::Shape;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Programs that are compiled together.
const BATCH_PROGRAMS: usize = 16;
/// Optimisation levels, 0 to 3.
const OPTIMISATION_LEVELS: u64 = 4;

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// Number of programs.
    pub programs: u64,
    /// Seed of the first.
    pub first_seed: u64,
    /// Inputs and lanes.
    pub shape: Shape,
    /// Threads.
    pub jobs: usize,
    /// Failing programs that are made smaller, each kind of fault once.
    pub minimised_max: usize,
    /// Planted error, for tests.
    pub plant: Option<Plant>,
}

/// A program that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The program.
    pub program: Program,
    /// How.
    pub verdict: Verdict,
    /// A smaller one that fails too, and how, where it was looked for.
    pub smaller: Option<(Program, Verdict)>,
}

/// What came of a campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Programs by level and kind of verdict.
    pub counts: BTreeMap<(u8, String), u64>,
    /// Failures in the order of their seeds.
    pub failures: Vec<Failure>,
}

/// The optimisation level of a seed.
pub fn optimisation(seed: u64) -> u8 {
    (seed % OPTIMISATION_LEVELS) as u8
}

impl Campaign {
    /// Runs it; `progress` is told the number of programs that are done, from any thread.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Report, DifferentialError> {
        let batches = self.batches();
        let next = AtomicUsize::new(0);
        let report = Mutex::new(Ok(Report::default()));
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.max(1) {
                scope.spawn(|| {
                    let outcome = self.work(&batches, &next, &report, progress);
                    if let (Err(error), Ok(mut report)) = (outcome, report.lock())
                        && report.is_ok()
                    {
                        *report = Err(error);
                        next.store(batches.len(), Ordering::Relaxed);
                    }
                });
            }
        });
        let mut report = report.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)?;
        report.failures.sort_by_key(|failure| failure.program.seed);
        self.minimise(&mut report)?;
        Ok(report)
    }

    /// Seeds of one level each.
    fn batches(&self) -> Vec<Vec<u64>> {
        let seeds = || (0..self.programs).map(|index| self.first_seed.wrapping_add(index));
        (0..OPTIMISATION_LEVELS)
            .flat_map(|level| {
                let of_level: Vec<u64> = seeds().filter(|seed| seed % OPTIMISATION_LEVELS == level).collect();
                of_level.chunks(BATCH_PROGRAMS).map(<[u64]>::to_vec).collect::<Vec<_>>()
            })
            .collect()
    }

    fn work(
        &self,
        batches: &[Vec<u64>],
        next: &AtomicUsize,
        report: &Mutex<Result<Report, DifferentialError>>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), DifferentialError> {
        let mut comparison = Comparison::new(self.shape, self.plant)?;
        while let Some(seeds) = batches.get(next.fetch_add(1, Ordering::Relaxed)) {
            let programs: Vec<Program> = seeds.iter().map(|seed| generate::program(*seed)).collect();
            let level = optimisation(seeds[0]);
            let verdicts = comparison.run(&programs, level)?;
            let mut report = report.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let Ok(report) = report.as_mut() else { return Ok(()) };
            for (program, verdict) in programs.into_iter().zip(verdicts) {
                *report.counts.entry((level, verdict.kind())).or_default() += 1;
                if verdict != Verdict::Same {
                    report.failures.push(Failure { program, verdict, smaller: None });
                }
            }
            progress(seeds.len() as u64);
        }
        Ok(())
    }

    fn minimise(&self, report: &mut Report) -> Result<(), DifferentialError> {
        let mut comparison = Comparison::new(self.shape, self.plant)?;
        let (mut differing, mut kinds) = (0, std::collections::BTreeSet::new());
        for failure in &mut report.failures {
            let kind = failure.verdict.kind();
            let is_wanted = match failure.verdict {
                Verdict::Differs(_) => {
                    differing += 1;
                    differing <= self.minimised_max
                }
                _ => self.minimised_max > 0 && kinds.insert(kind.clone()),
            };
            if !is_wanted {
                continue;
            }
            let level = optimisation(failure.program.seed);
            let small = minimise(&failure.program, &mut |programs| {
                let verdicts = comparison.run(programs, level)?;
                Ok::<_, DifferentialError>(verdicts.iter().map(|verdict| verdict.kind() == kind).collect())
            })?;
            let verdict = comparison.run(std::slice::from_ref(&small), level)?.remove(0);
            failure.smaller = Some((small, verdict));
        }
        Ok(())
    }
}
