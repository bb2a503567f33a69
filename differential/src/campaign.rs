//! Many programs on several threads.
//!
//! Contract: program `i` has the seed `first_seed + i`, which decides its text, its inputs, its optimisation level
//! and whether it has a line table; each compiler compiles all programs. The result does not depend on the number
//! of threads. Failing programs are minimised afterwards, one by one.

use crate::alarms::Alarm;
use crate::batch::{Comparison, Judgement, Verdict};
use crate::error::DifferentialError;
use crate::generate;
use crate::minimise::minimise;
use crate::program::Program;
use crate::runner::Plant;
use crate::share::Share;
use crate::toolchain::{Build, Compiler, Shape};
use std::collections::BTreeMap;

/// Programs that are compiled together.
const BATCH_PROGRAMS: usize = 16;

/// The parameters of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct Campaign {
    /// Number of programs.
    pub programs: u64,
    /// Seed of the first program.
    pub first_seed: u64,
    /// Inputs and lanes.
    pub shape: Shape,
    /// Compilers of the device's side.
    pub compilers: &'static [Compiler],
    /// Schedules per program under the checking mode; 0 for no checking.
    pub schedules: u64,
    /// Threads.
    pub jobs: usize,
    /// Most failing programs to minimise, one per kind of fault and finding.
    pub minimised_max: usize,
    /// Planted error, for tests.
    pub plant: Option<Plant>,
}

/// A program that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The program.
    pub program: Program,
    /// How it was compiled.
    pub build: Build,
    /// How it failed.
    pub verdict: Verdict,
    /// A smaller program that also fails, and its verdict, if one was searched for.
    pub smaller: Option<(Program, Verdict)>,
}

/// The result of a campaign.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Programs by build and kind of verdict.
    pub counts: BTreeMap<(Build, String), u64>,
    /// Programs with findings that were set aside, by compiler and reason.
    pub alarms: BTreeMap<(Compiler, Alarm), u64>,
    /// Failures in the order of their seeds.
    pub failures: Vec<Failure>,
    /// Wrong results attributed to a compiler bug ([`Alarm::OwnResults`]), in the order of their seeds. A device
    /// bug that only this compiler's code triggers looks the same, so each one needs review.
    pub own_results: Vec<Failure>,
}

impl Campaign {
    /// Number of programs that are run: each compiler's of each seed.
    pub fn runs(&self) -> u64 {
        self.programs * self.compilers.len() as u64
    }

    /// Runs the campaign. `progress` is called with the number of finished programs, from any thread.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<Report, DifferentialError> {
        let batches = self.batches();
        let work = |share: &Share<Report>| self.work(&batches, share, progress);
        let mut report = Share::run(self.jobs, batches.len(), work)?;
        for failures in [&mut report.failures, &mut report.own_results] {
            failures.sort_by_key(|failure| (failure.program.seed, failure.build));
        }
        self.minimise(&mut report)?;
        Ok(report)
    }

    /// Groups of seeds with the same build.
    fn batches(&self) -> Vec<(Build, Vec<u64>)> {
        let mut by_build = BTreeMap::<Build, Vec<u64>>::new();
        for index in 0..self.programs {
            let seed = self.first_seed.wrapping_add(index);
            for compiler in self.compilers {
                by_build.entry(Build::of_seed(*compiler, seed)).or_default().push(seed);
            }
        }
        let of_build = |(build, seeds): (&Build, &Vec<u64>)| {
            seeds.chunks(BATCH_PROGRAMS).map(|chunk| (*build, chunk.to_vec())).collect::<Vec<_>>()
        };
        by_build.iter().flat_map(of_build).collect()
    }

    fn work(
        &self,
        batches: &[(Build, Vec<u64>)],
        share: &Share<Report>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), DifferentialError> {
        let mut comparison = Comparison::new(self.shape, self.schedules, self.plant)?;
        while let Some((build, seeds)) = share.next().and_then(|place| batches.get(place)) {
            let programs: Vec<Program> = seeds.iter().map(|seed| generate::program(*seed)).collect();
            let mut judgements = comparison.run(&programs, *build)?;
            let mut own_results = Vec::new();
            for (program, judgement) in programs.iter().zip(&mut judgements) {
                if is_own_result(&mut comparison, program, *build, &judgement.verdict)? {
                    let verdict = std::mem::replace(&mut judgement.verdict, Verdict::Same);
                    own_results.push(Failure {
                        program: program.clone(),
                        build: *build,
                        verdict,
                        smaller: None,
                    });
                    judgement.alarms.insert(Alarm::OwnResults);
                }
            }
            share.add(|report| {
                report.own_results.append(&mut own_results);
                for (program, Judgement { verdict, alarms }) in programs.into_iter().zip(judgements) {
                    *report.counts.entry((*build, verdict.kind())).or_default() += 1;
                    for alarm in alarms {
                        *report.alarms.entry((build.compiler, alarm)).or_default() += 1;
                    }
                    if verdict != Verdict::Same {
                        report.failures.push(Failure { program, build: *build, verdict, smaller: None });
                    }
                }
            });
            progress(seeds.len() as u64);
        }
        Ok(())
    }

    fn minimise(&self, report: &mut Report) -> Result<(), DifferentialError> {
        let mut comparison = Comparison::new(self.shape, self.schedules, self.plant)?;
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
            let build = failure.build;
            let small = minimise(&failure.program, &mut |programs| {
                let judgements = comparison.run(programs, build)?;
                Ok::<_, DifferentialError>(judgements.iter().map(|one| one.verdict.kind() == kind).collect())
            })?;
            let judgement = comparison.run(std::slice::from_ref(&small), build)?.remove(0);
            failure.smaller = Some((small, judgement.verdict));
        }
        Ok(())
    }
}

/// Whether other builds are to be asked about a result. Without optimisation one of them would be the same build.
fn may_be_own_result(build: Build, verdict: &Verdict) -> bool {
    build.compiler == Compiler::Clang19 && build.optimisation > 0 && matches!(verdict, Verdict::Differs(_))
}

/// Whether wrong results are a bug of clang 19 ([`Alarm::OwnResults`]).
fn is_own_result(
    comparison: &mut Comparison,
    program: &Program,
    build: Build,
    verdict: &Verdict,
) -> Result<bool, DifferentialError> {
    if !may_be_own_result(build, verdict) {
        return Ok(false);
    }
    for other in [Build { optimisation: 0, ..build }, Build { compiler: Compiler::Clang22, ..build }] {
        if comparison
            .run(std::slice::from_ref(program), other)?
            .iter()
            .any(|one| one.verdict != Verdict::Same)
        {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Difference;

    #[test]
    fn other_builds_are_asked_about_wrong_results_of_an_optimised_build_of_clang_19() {
        let differs =
            Verdict::Differs(Difference { item: None, what: "w".into(), device: 1, host: 2, count: 1 });
        let may_be = |compiler, optimisation, verdict: &Verdict| {
            may_be_own_result(Build { compiler, optimisation, has_lines: false }, verdict)
        };
        assert!([1, 2, 3].iter().all(|level| may_be(Compiler::Clang19, *level, &differs)));
        assert!(!may_be(Compiler::Clang19, 0, &differs));
        assert!(!may_be(Compiler::Clang22, 2, &differs));
        assert!(!may_be(Compiler::Clang19, 2, &Verdict::Same));
        assert!(!may_be(Compiler::Clang19, 2, &Verdict::Fault("w".into())));
    }
}
