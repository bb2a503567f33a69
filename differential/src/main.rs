//! `zrt-differential`: a campaign from the command line.
//!
//! Contract: exit status 0 if all programs had the same results or are set aside by a row of `alarms`; for mutants,
//! if no mutant was missed or is unexplained and every original program was correct. Exit status 1 otherwise; 2 if
//! the comparison could not be made. Failures are listed on standard output, smallest program first.

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use std::path::PathBuf;
use std::process::ExitCode;
use zrt_differential::campaign::Campaign;
use zrt_differential::error::DifferentialError;
use zrt_differential::mutants::MutantCampaign;
use zrt_differential::report;
use zrt_differential::toolchain::{Compiler, Shape};

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
    fn campaign(&self) -> Result<Campaign, DifferentialError> {
        Ok(Campaign {
            programs: self.programs,
            first_seed: self.seed,
            shape: Shape::new(self.inputs, self.is_wave64())?,
            compilers: match self.clang.as_str() {
                "19" => &[Compiler::Clang19],
                "both" => &Compiler::ALL,
                _ => &[Compiler::Clang22],
            },
            schedules: if self.check { self.schedules } else { 0 },
            jobs: self.jobs,
            minimised_max: self.minimise,
            plant: None,
        })
    }

    fn mutant_campaign(&self, mutants: u64) -> MutantCampaign {
        let (first_seed, schedules, jobs) = (self.seed, self.schedules, self.jobs);
        MutantCampaign { mutants, first_seed, is_wave64: self.is_wave64(), schedules, jobs, plant: None }
    }

    fn is_wave64(&self) -> bool {
        self.wave == "64"
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    let is_clean = match options.mutants {
        Some(mutants) => run_mutants(&options.mutant_campaign(mutants)),
        None => options.campaign().and_then(|campaign| run(&campaign, &options)),
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

/// Returns whether nothing failed.
fn run(campaign: &Campaign, options: &Options) -> Result<bool, DifferentialError> {
    let bar = progress_bar(campaign.runs(), "programs");
    let found = campaign.run(&|done| bar.inc(done))?;
    bar.finish_and_clear();
    for failure in found.failures.iter().take(PRINTED_MAX) {
        print!("{}", report::failure(failure, campaign.shape));
    }
    if let Some(folder) = &options.keep {
        let mut kept = found.failures.iter().chain(&found.own_results);
        kept.try_for_each(|failure| report::keep(folder, failure))?;
    }
    print!("{}", report::summary(&found, campaign.programs, campaign.first_seed, campaign.shape));
    Ok(found.failures.is_empty())
}

/// Returns whether the checking mode found all mutants that had to be found.
fn run_mutants(campaign: &MutantCampaign) -> Result<bool, DifferentialError> {
    let bar = progress_bar(campaign.mutants, "mutants");
    let found = campaign.run(&|done| bar.inc(done))?;
    bar.finish_and_clear();
    print!("{}", report::mutants(&found));
    Ok(found.is_clean())
}

fn progress_bar(length: u64, what: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len}, {eta} left") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(arguments: &[&str]) -> Options {
        Options::try_parse_from([&["zrt-differential"], arguments].concat()).unwrap()
    }

    #[test]
    fn options_are_those_of_the_campaign() {
        let campaign = options(&["--jobs", "3"]).campaign().unwrap();
        assert_eq!((campaign.programs, campaign.first_seed, campaign.runs()), (200, 1, 200));
        assert_eq!(campaign.shape, Shape::new(1024, false).unwrap());
        assert_eq!((campaign.schedules, campaign.jobs, campaign.minimised_max), (0, 3, 3));
        let list = ["--programs", "7", "--seed", "5", "--inputs", "64", "--wave", "64", "--minimise", "0"];
        let campaign = options(&list).campaign().unwrap();
        assert_eq!((campaign.programs, campaign.first_seed, campaign.minimised_max), (7, 5, 0));
        assert_eq!(campaign.shape, Shape::new(64, true).unwrap());
        let schedules = |list: &[&str]| options(list).campaign().unwrap().schedules;
        assert_eq!(schedules(&["--schedules", "5"]), 0);
        assert_eq!(schedules(&["--check"]), 2);
        assert_eq!(schedules(&["--check", "--schedules", "5"]), 5);
    }

    #[test]
    fn a_compiler_is_chosen_by_its_release() {
        let chosen = |list: &[&str]| {
            let campaign = options(list).campaign().unwrap();
            (campaign.compilers.to_vec(), campaign.runs())
        };
        assert_eq!(chosen(&["--programs", "3"]), (vec![Compiler::Clang22], 3));
        assert_eq!(chosen(&["--programs", "3", "--clang", "22"]), (vec![Compiler::Clang22], 3));
        assert_eq!(chosen(&["--programs", "3", "--clang", "19"]), (vec![Compiler::Clang19], 3));
        let both = vec![Compiler::Clang19, Compiler::Clang22];
        assert_eq!(chosen(&["--programs", "3", "--clang", "both"]), (both, 6));
    }

    #[test]
    fn a_campaign_of_mutants_has_options_of_its_own() {
        let list = ["--mutants", "9", "--seed", "4", "--wave", "64", "--schedules", "3", "--jobs", "2"];
        let options_of_mutants = options(&list);
        let MutantCampaign { mutants, first_seed, is_wave64, schedules, jobs, plant } =
            options_of_mutants.mutant_campaign(options_of_mutants.mutants.unwrap());
        assert_eq!((mutants, first_seed, is_wave64, schedules, jobs), (9, 4, true, 3, 2));
        assert!(plant.is_none() && !options(&[]).mutant_campaign(1).is_wave64);
    }

    #[test]
    fn options_that_mean_nothing_are_refused() {
        let refused =
            |list: &[&str]| Options::try_parse_from([&["zrt-differential"], list].concat()).is_err();
        for list in [
            &["--wave", "16"][..],
            &["--clang", "20"],
            &["--schedules", "0"],
            &["--mutants", "1", "--check"],
            &["--mutants", "1", "--inputs", "64"],
        ] {
            assert!(refused(list), "{list:?}");
        }
        for inputs in ["32", "65", "131072"] {
            let error = options(&["--inputs", inputs]).campaign().unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("{inputs} inputs: it must be a power of two from 64 to 65536")
            );
        }
    }

    #[test]
    fn a_bar_is_as_long_as_the_work() {
        let bar = progress_bar(12, "programs");
        assert_eq!((bar.length(), bar.message().as_str()), (Some(12), "programs"));
    }
}
