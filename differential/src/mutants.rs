//! A campaign against the checking mode: mutants of correct synchronising programs, each of which it has to find.
//!
//! Contract: the programs are those of the generator in which waves or workgroups meet, from a first seed on; clang
//! 22 compiles them, with a line table. A mutant is caught if it has a finding that its program does not have. A
//! mutant without one whose results differ on some schedule is missed: a failure of the checking mode. For the
//! others, a reason why the change had no effect is reported if one can be determined. The same seeds produce the
//! same mutants and verdicts, whatever the number of threads.

use crate::alarms::Alarm;
use crate::batch::compare;
use crate::code::{Placed, instructions};
use crate::error::DifferentialError;
use crate::generate::{self, inputs};
use crate::mutate::{Class, Mutant, UNEXPLAINED, explain, mutants};
use crate::program::{Program, Step};
use crate::random::Random;
use crate::runner::{Checked, Plant, Runner, kernel_of, load};
use crate::session::Outcome;
use crate::share::Share;
use crate::text::kernel_name;
use crate::toolchain::{Build, Compiler, Shape, Toolchain};
use std::collections::{BTreeMap, BTreeSet};
use zrt_bringup::Finding;
use zrt_loader::Kernel;

/// Programs compiled together.
const BATCH_PROGRAMS: usize = 8;
/// Mutants per program.
const MUTANTS_PER_PROGRAM: u64 = 8;
/// `s_trap 2`: stops a wave that executes the mutant's instruction.
const TRAP: u32 = 0xBF90_0002;

/// The parameters of a campaign.
#[derive(Clone, Copy, Debug)]
pub struct MutantCampaign {
    /// Number of mutants.
    pub mutants: u64,
    /// Seed of the first program.
    pub first_seed: u64,
    /// Whether to compile for waves of 64 lanes.
    pub is_wave64: bool,
    /// Schedules per mutant.
    pub schedules: u64,
    /// Threads.
    pub jobs: usize,
    /// A further change of every mutant that breaks no rule, for tests: the wrong results it causes are missed.
    pub plant: Option<Plant>,
}

/// The fate of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The first finding's rule.
    Caught(String),
    /// No finding, but different results or none: what is wrong.
    Missed(String),
    /// No finding and the same results: the reason, as far as it can be determined.
    Benign(&'static str),
}

/// A mutant and its fate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// Seed of the program.
    pub seed: u64,
    /// How it was compiled.
    pub build: Build,
    /// The kind of change.
    pub class: Class,
    /// Position and instruction, source line included.
    pub place: String,
    /// Its fate.
    pub fate: Fate,
}

/// Counts of one class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All mutants.
    pub mutants: u64,
    /// Mutants with a finding.
    pub caught: u64,
    /// Mutants without a finding and with wrong results.
    pub missed: u64,
    /// Mutants without a finding and with correct results.
    pub benign: u64,
}

/// The result of all mutants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MutantReport {
    /// All mutants, by seed and class.
    pub judged: Vec<Judged>,
    /// Programs that were not correct to begin with: seed and finding.
    pub unfit: Vec<(u64, String)>,
}

impl MutantReport {
    /// Counts by class.
    pub fn tallies(&self) -> BTreeMap<Class, Tally> {
        let mut tallies = BTreeMap::<Class, Tally>::new();
        for judged in &self.judged {
            let tally = tallies.entry(judged.class).or_default();
            tally.mutants += 1;
            match judged.fate {
                Fate::Caught(_) => tally.caught += 1,
                Fate::Missed(_) => tally.missed += 1,
                Fate::Benign(_) => tally.benign += 1,
            }
        }
        tallies
    }

    /// Benign mutants by class and reason.
    pub fn reasons(&self) -> BTreeMap<(Class, &'static str), u64> {
        let mut reasons = BTreeMap::new();
        for judged in &self.judged {
            if let Fate::Benign(reason) = judged.fate {
                *reasons.entry((judged.class, reason)).or_default() += 1;
            }
        }
        reasons
    }

    /// True if every program was correct, no mutant was missed, and no benign mutant is unexplained.
    pub fn is_clean(&self) -> bool {
        self.unfit.is_empty() && self.missed().next().is_none() && self.unexplained().next().is_none()
    }

    /// Benign mutants that use a result for which the changed wait was needed.
    pub fn unexplained(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|judged| judged.fate == Fate::Benign(UNEXPLAINED))
    }

    /// Mutants that were missed.
    pub fn missed(&self) -> impl Iterator<Item = &Judged> {
        self.judged.iter().filter(|judged| matches!(judged.fate, Fate::Missed(_)))
    }
}

/// A program and what is known about it before it is changed.
struct Subject<'a> {
    program: &'a Program,
    index: usize,
    build: Build,
    loaded: &'a zrt_loader::Program,
    kernel: &'a Kernel,
    code: Vec<Placed>,
    input: Vec<u8>,
    host: &'a [u8],
    /// Findings of the unchanged program.
    known: BTreeSet<Key>,
}

/// The identity of a finding.
type Key = (String, Option<u64>, Option<String>);

impl MutantCampaign {
    /// Runs the campaign. `progress` is called with the number of finished mutants, from any thread.
    pub fn run(&self, progress: &(dyn Fn(u64) + Sync)) -> Result<MutantReport, DifferentialError> {
        let batches = self.batches();
        let work = |share: &Share<MutantReport>| self.work(&batches, share, progress);
        let mut report = Share::run(self.jobs, batches.len(), work)?;
        report.judged.sort_by(|one, other| {
            (one.seed, one.class, &one.place).cmp(&(other.seed, other.class, &other.place))
        });
        report.unfit.sort();
        Ok(report)
    }

    fn shape(&self) -> Shape {
        Shape::of_mutants(self.is_wave64)
    }

    /// Programs in which waves meet, each with the number of its mutants, grouped by build.
    fn batches(&self) -> Vec<(Build, Vec<(Program, u64)>)> {
        let mut by_build = BTreeMap::<Build, Vec<(Program, u64)>>::new();
        let mut left = self.mutants;
        let mut seed = self.first_seed;
        while left > 0 {
            let program = generate::program(seed);
            if program.steps.iter().any(meets) {
                let count = left.min(MUTANTS_PER_PROGRAM);
                let build = Build { has_lines: true, ..Build::of_seed(Compiler::Clang22, seed) };
                by_build.entry(build).or_default().push((program, count));
                left -= count;
            }
            seed = seed.wrapping_add(1);
        }
        let of_build = |(build, programs): (&Build, &Vec<(Program, u64)>)| {
            programs.chunks(BATCH_PROGRAMS).map(|chunk| (*build, chunk.to_vec())).collect::<Vec<_>>()
        };
        by_build.iter().flat_map(of_build).collect()
    }

    fn work(
        &self,
        batches: &[(Build, Vec<(Program, u64)>)],
        share: &Share<MutantReport>,
        progress: &(dyn Fn(u64) + Sync),
    ) -> Result<(), DifferentialError> {
        let shape = self.shape();
        let toolchain = Toolchain::new(shape)?;
        let runner = Runner::new(shape, None);
        while let Some((build, batch)) = share.next().and_then(|place| batches.get(place)) {
            let programs: Vec<Program> = batch.iter().map(|(program, _)| program.clone()).collect();
            let inputs: Vec<Vec<u8>> =
                programs.iter().map(|program| inputs(program.seed, shape.in_bytes())).collect();
            let host = toolchain.run_on_host(&programs, &inputs)?;
            let loaded = load(&toolchain.code_object(&programs, *build)?, &programs)?;
            for (index, (program, count)) in batch.iter().enumerate() {
                let input = inputs[index].clone();
                let subject = self.subject((program, index), *build, &loaded, input, &host[index])?;
                let MutantReport { judged, unfit } = self.judge(&runner, subject, *count)?;
                share.add(|report| {
                    report.judged.extend(judged);
                    report.unfit.extend(unfit);
                });
                progress(*count);
            }
        }
        Ok(())
    }

    fn subject<'a>(
        &self,
        (program, index): (&'a Program, usize),
        build: Build,
        loaded: &'a zrt_loader::Program,
        input: Vec<u8>,
        host: &'a [u8],
    ) -> Result<Subject<'a>, DifferentialError> {
        let kernel = kernel_of(loaded, index, program.seed)?;
        let functions = format!("{}_", kernel_name(index));
        let own = |offset: u64| {
            let is_kernel = (kernel.entry_offset..kernel.entry_offset + kernel.code_bytes).contains(&offset);
            let mut symbols = loaded.symbols().iter().filter(|symbol| symbol.name.starts_with(&functions));
            is_kernel || symbols.any(|symbol| (symbol.offset..symbol.offset + symbol.bytes).contains(&offset))
        };
        let mut code = instructions(loaded, kernel.wave_size);
        code.retain(|placed| own(placed.offset));
        Ok(Subject { program, index, build, loaded, kernel, code, input, host, known: BTreeSet::new() })
    }

    /// The fates of a program's mutants, or what is wrong with the program.
    fn judge(
        &self,
        runner: &Runner,
        mut subject: Subject<'_>,
        count: u64,
    ) -> Result<MutantReport, DifferentialError> {
        let seed = subject.program.seed;
        let unfit = |what: String| MutantReport { judged: Vec::new(), unfit: vec![(seed, what)] };
        for checked in self.launch(runner, &subject, &[], &|_| false)? {
            if let Some(difference) = self.difference(&checked, subject.host) {
                return Ok(unfit(difference));
            }
            let failure = |finding: &&Finding| Alarm::of(finding, Compiler::Clang22).is_none();
            if let Some(finding) = checked.findings.iter().find(failure) {
                return Ok(unfit(finding.to_string()));
            }
            subject.known.extend(checked.findings.iter().map(key));
        }
        let chosen = self.choose(&subject, count);
        let judge = |mutant: &Mutant| self.fate(runner, &subject, mutant);
        let judged = chosen.iter().map(judge).collect::<Result<Vec<Judged>, DifferentialError>>()?;
        Ok(MutantReport { judged, unfit: Vec::new() })
    }

    /// Mutants of a program, taken from the classes in turn, as long as there are any.
    fn choose(&self, subject: &Subject<'_>, count: u64) -> Vec<Mutant> {
        let mut random = Random::new(subject.program.seed ^ 0x006D_7574_616E_7473);
        let buffer_bytes = self.shape().out_bytes() as u64;
        let lds_bytes = u64::from(subject.kernel.lds_bytes);
        let wave_size = subject.kernel.wave_size;
        let of_class = |class| mutants(&subject.code, class, wave_size, buffer_bytes, lds_bytes);
        let mut classes: Vec<Vec<Mutant>> = Class::ALL.map(of_class).into();
        let mut chosen = Vec::new();
        let first = random.below(Class::ALL.len() as u32) as usize;
        classes.rotate_left(first);
        while (chosen.len() as u64) < count && classes.iter().any(|class| !class.is_empty()) {
            for class in classes.iter_mut().filter(|class| !class.is_empty()) {
                if (chosen.len() as u64) < count {
                    chosen.push(class.swap_remove(random.below(class.len() as u32) as usize));
                }
            }
        }
        chosen
    }

    fn fate(
        &self,
        runner: &Runner,
        subject: &Subject<'_>,
        mutant: &Mutant,
    ) -> Result<Judged, DifferentialError> {
        let new = |checked: &Checked| {
            let found = checked.findings.iter().find(|finding| is_new(finding, &subject.known));
            found.map(|finding| finding.rule.clone())
        };
        let launches = self.launch(runner, subject, &mutant.edits, &|checked| new(checked).is_some())?;
        let different = || launches.iter().find_map(|checked| self.difference(checked, subject.host));
        let known = || subject.known.iter().filter_map(|(_, place, _)| *place).collect();
        let fate = match launches.last().and_then(new) {
            Some(rule) => Fate::Caught(rule),
            None => match different() {
                Some(difference) => Fate::Missed(difference),
                None if !self.is_executed(runner, subject, mutant)? => Fate::Benign("never executed"),
                None => Fate::Benign(explain(&subject.code, mutant, subject.kernel.wave_size, &known())),
            },
        };
        let placed = &subject.code[mutant.index];
        let line = subject.loaded.lines().lookup(placed.offset);
        let line = line.map_or_else(String::new, |(_, line)| format!(" (line {line})"));
        let distance = placed.offset.wrapping_sub(subject.kernel.entry_offset) as i64;
        let place = format!("entry {distance:+}{line}: {}", placed.instruction);
        Ok(Judged { seed: subject.program.seed, build: subject.build, class: mutant.class, place, fate })
    }

    /// Whether a wave reaches the changed instruction: a trap in its place stops the wave.
    fn is_executed(
        &self,
        runner: &Runner,
        subject: &Subject<'_>,
        mutant: &Mutant,
    ) -> Result<bool, DifferentialError> {
        let stops = |checked: &Checked| matches!(checked.outcome, Outcome::Fault(_));
        let edits = [(subject.code[mutant.index].offset, TRAP)];
        Ok(self.launch(runner, subject, &edits, &stops)?.iter().any(stops))
    }

    fn launch(
        &self,
        runner: &Runner,
        subject: &Subject<'_>,
        edits: &[(u64, u32)],
        is_enough: &dyn Fn(&Checked) -> bool,
    ) -> Result<Vec<Checked>, DifferentialError> {
        let change = |start: u64, words: &mut [u32]| {
            for (offset, word) in edits {
                let place = offset.checked_sub(start).and_then(|at| words.get_mut(at as usize / 4));
                place.into_iter().for_each(|place| *place = *word);
            }
            if let Some(plant) = self.plant.filter(|_| !edits.is_empty()) {
                plant(words);
            }
        };
        let place = (subject.index, subject.program.seed);
        runner.check(subject.loaded, place, &subject.input, 0..self.schedules, Some(&change), is_enough)
    }

    /// What is wrong with the results of a launch, if anything.
    fn difference(&self, checked: &Checked, host: &[u8]) -> Option<String> {
        let what = match &checked.outcome {
            Outcome::Fault(text) => format!("it does not end: {text}"),
            Outcome::Ran(results) => compare(self.shape(), results, host)?.to_string(),
        };
        Some(format!("schedule {}: {what}", checked.schedule))
    }
}

/// Whether waves or workgroups meet in a step.
fn meets(step: &Step) -> bool {
    matches!(step, Step::Together { .. } | Step::Share { .. } | Step::ShareAtomic { .. })
}

/// Whether a finding is of the mistake: no advice, and not the program's own.
fn is_new(finding: &Finding, known: &BTreeSet<Key>) -> bool {
    !finding.is_advice() && !known.contains(&key(finding))
}

fn key(finding: &Finding) -> Key {
    let offset = finding.place.as_ref().and_then(|place| place.offset);
    (finding.rule.clone(), offset, finding.register.clone())
}

#[cfg(test)]
mod tests;
