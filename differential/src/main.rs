//! `zrt-differential`: a campaign from the command line.
//!
//! Contract: exit status 0 if all programs had the same results or are set aside by a row of `alarms`; for mutants,
//! if no mutant was missed or is unexplained and every original program was correct. Exit status 1 otherwise; 2 if
//! the comparison could not be made. Failures are listed on standard output, smallest program first.

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;
use zrt_differential::batch::Verdict;
use zrt_differential::campaign::{Campaign, Failure, Report};
use zrt_differential::error::DifferentialError;
use zrt_differential::generate::inputs;
use zrt_differential::mutants::{Fate, Judged, MutantCampaign, MutantReport, Tally};
use zrt_differential::mutate::UNEXPLAINED;
use zrt_differential::program::Program;
use zrt_differential::text::{HEADER, HEADER_NAME, source};
use zrt_differential::toolchain::{Compiler, IN_BYTES_PER_ITEM, Shape};

/// Most failures that are printed.
const PRINTED_MAX: usize = 20;

/// Runs random programs on the virtual R9700 and on the host, and compares.
#[derive(Parser)]
struct Options {
    /// Number of programs
    #[arg(long, default_value_t = 200)]
    programs: u64,
    /// Seed of the first program; program i has seed + i
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Inputs of each program, a power of two from 64
    #[arg(long, default_value_t = 1024)]
    inputs: u32,
    /// Folder that receives the sources of failing programs
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Wave size
    #[arg(long, default_value = "32", value_parser = ["32", "64"])]
    wave: String,
    /// Number of threads
    #[arg(long, default_value_t = std::thread::available_parallelism().map_or(1, |count| count.get()))]
    jobs: usize,
    /// Most failing programs to minimise
    #[arg(long, default_value_t = 3)]
    minimise: usize,
    /// clang release that compiles for the device
    #[arg(long, default_value = "22", value_parser = ["19", "22", "both"])]
    clang: String,
    /// Run under the checking mode, where a finding is a failure
    #[arg(long)]
    check: bool,
    /// Schedules of each program under the checking mode
    #[arg(long, default_value_t = 2, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    schedules: u64,
    /// Run this many mutants of programs under the checking mode, which must report each
    #[arg(long, value_name = "COUNT", conflicts_with_all = ["check", "programs", "clang", "inputs", "keep", "minimise"])]
    mutants: Option<u64>,
}

impl Options {
    fn compilers(&self) -> &'static [Compiler] {
        match self.clang.as_str() {
            "19" => &[Compiler::Clang19],
            "both" => &Compiler::ALL,
            _ => &[Compiler::Clang22],
        }
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let is_clean = match options.mutants {
        Some(mutants) => run_mutants(&options, mutants).map(|report| report.is_clean()),
        None => run(&options).map(|report| report.failures.is_empty()),
    };
    match is_clean {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<Report, DifferentialError> {
    let shape = Shape::new(options.inputs, options.wave == "64")?;
    let bar = progress_bar(options.programs * options.compilers().len() as u64, "programs");
    let campaign = Campaign {
        programs: options.programs,
        first_seed: options.seed,
        shape,
        compilers: options.compilers(),
        schedules: if options.check { options.schedules } else { 0 },
        jobs: options.jobs,
        minimised_max: options.minimise,
        plant: None,
    };
    let report = campaign.run(&|done| bar.inc(done))?;
    bar.finish_and_clear();
    for failure in report.failures.iter().take(PRINTED_MAX) {
        print_failure(failure, shape);
    }
    if let Some(folder) = &options.keep {
        let mut kept = report.failures.iter().chain(&report.own_results);
        kept.try_for_each(|failure| keep(folder, failure))?;
    }
    print_summary(&report, options, shape);
    Ok(report)
}

fn run_mutants(options: &Options, mutants: u64) -> Result<MutantReport, DifferentialError> {
    let bar = progress_bar(mutants, "mutants");
    let (first_seed, schedules, jobs) = (options.seed, options.schedules, options.jobs);
    let is_wave64 = options.wave == "64";
    let campaign = MutantCampaign { mutants, first_seed, is_wave64, schedules, jobs, plant: None };
    let report = campaign.run(&|done| bar.inc(done))?;
    bar.finish_and_clear();
    for (seed, what) in &report.unfit {
        println!("seed {seed} is no correct program: {what}");
    }
    for Judged { seed, build, class, place, fate } in &report.judged {
        match fate {
            Fate::Missed(what) => println!("MISSED: seed {seed}, {build}, {class} at {place}\n  {what}"),
            Fate::Benign(reason) if *reason == UNEXPLAINED => {
                println!("UNEXPLAINED, {reason}: seed {seed}, {build}, {class} at {place}");
            }
            Fate::Benign(_) | Fate::Caught(_) => {}
        }
    }
    println!("| class              | mutants | caught | missed | benign |");
    println!("| ------------------ | ------: | -----: | -----: | -----: |");
    for (class, Tally { mutants, caught, missed, benign }) in report.tallies() {
        println!("| {class:18} | {mutants:>7} | {caught:>6} | {missed:>6} | {benign:>6} |");
    }
    for ((class, reason), count) in report.reasons() {
        println!("benign: {class}, {count}: {reason}");
    }
    Ok(report)
}

fn progress_bar(length: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

fn print_failure(failure: &Failure, shape: Shape) {
    let seed = failure.program.seed;
    let build = failure.build;
    match (&failure.smaller, &failure.verdict) {
        (Some((smaller, verdict)), _) => {
            println!(
                "seed {seed}, {build}, made smaller from {} to {} nodes",
                failure.program.size(),
                smaller.size()
            );
            print_verdict(smaller, verdict, shape);
            println!("{}", source(std::slice::from_ref(smaller)));
        }
        (None, verdict) => {
            println!("seed {seed}, {build}");
            print_verdict(&failure.program, verdict, shape);
        }
    }
}

fn print_verdict(program: &Program, verdict: &Verdict, shape: Shape) {
    match verdict {
        Verdict::Same => println!("  same results"),
        Verdict::Fault(text) => println!("  fault: {text}"),
        Verdict::Breaks(breach) => println!("  {breach}"),
        Verdict::Differs(difference) => {
            println!("  {difference}");
            if let Some(item) = difference.item {
                let inputs = inputs(program.seed, shape.in_bytes());
                let own = &inputs[item * IN_BYTES_PER_ITEM..(item + 1) * IN_BYTES_PER_ITEM];
                let words: Vec<String> = own
                    .as_chunks::<4>()
                    .0
                    .iter()
                    .map(|word| format!("{:08x}", u32::from_le_bytes(*word)))
                    .collect();
                println!("  words of input {item}: {}", words.join(" "));
            }
        }
    }
}

fn keep(folder: &std::path::Path, failure: &Failure) -> Result<(), DifferentialError> {
    let write = |name: String, text: &str| {
        let path = folder.join(name);
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&path, text))
            .map_err(|source| DifferentialError::File { path, source })
    };
    let seed = failure.program.seed;
    write(HEADER_NAME.into(), HEADER)?;
    write(format!("seed-{seed}.c"), &source(std::slice::from_ref(&failure.program)))?;
    match &failure.smaller {
        Some((smaller, _)) => write(format!("seed-{seed}-smaller.c"), &source(std::slice::from_ref(smaller))),
        None => Ok(()),
    }
}

fn print_summary(report: &Report, options: &Options, shape: Shape) {
    println!("| build            | programs | inputs | lanes | result |");
    println!("| ---------------- | -------: | -----: | ----: | ------ |");
    for ((build, kind), count) in &report.counts {
        let build = build.to_string();
        println!("| {build:16} | {count:>8} | {:>6} | {:>5} | {kind} |", shape.items(), shape.wave_lanes());
    }
    for ((compiler, alarm), count) in &report.alarms {
        println!("set aside: {}, {count} programs: {alarm}", compiler.program());
    }
    for Failure { program, build, .. } in &report.own_results {
        println!("set aside: seed {}, {build}: taken for an error of the compiler; look at it", program.seed);
    }
    let again = "again with: --programs 1 --seed";
    match report.failures.first() {
        None => println!("{} programs from seed {}: no failure", options.programs, options.seed),
        Some(first) => println!(
            "{} of {} programs failed; the first {again} {}",
            report.failures.len(),
            options.programs,
            first.program.seed
        ),
    }
}
