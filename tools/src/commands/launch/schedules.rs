//! A task on one schedule after another, and the result of all of them.
//!
//! Contract: each schedule has a device of its own. A schedule that does not end is a result like any other: the
//! results of earlier ones are kept; after one that took all its time, no more are run.

use super::arguments::number;
use super::printed::Live;
use super::show::{self, Failure, Format, Outcome};
use super::task::Task;
use super::waves;
use crate::commands::error_document::ErrorReport;
use crate::device_choice::DeviceOption;
use crate::error::{ToolError, bad};
use crate::launch::{self, LaunchError};
use crate::source_text::SourceText;
use crate::suppression::{SilenceOptions, Subject};
use clap::Args;
use zrt_bringup::{DeviceChoice, OpenOptions, VirtualOptions};

/// Schedules that the checking mode explores by default.
const SEEDS_DEFAULT: u32 = 1;

/// How kernels are looked at while they run, and how that is told.
#[derive(Debug, Args)]
pub struct LookArguments {
    /// Check every instruction and access against the rules of docs/checking.md (virtual device)
    #[arg(long)]
    pub check: bool,
    /// Explore this many schedules; implies --check
    #[arg(long, value_name = "COUNT", allow_negative_numbers = true)]
    pub seeds: Option<String>,
    /// Seed of the first schedule; the seed in a finding repeats it; implies --check
    #[arg(long, value_name = "SEED")]
    pub seed: Option<u64>,
    /// Fail on advice too; implies --check
    #[arg(long)]
    pub strict: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub silence: SilenceOptions,
    /// Count instructions and memory traffic, and predict the time on the card (virtual device)
    #[arg(long)]
    pub profile: bool,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub device: DeviceOption,
    /// Write one JSON document
    #[arg(long)]
    pub json: bool,
}

impl LookArguments {
    /// The schedules that are asked for.
    ///
    /// # Errors
    /// What is not a number, and a device that cannot be inspected.
    pub(in crate::commands) fn validate(&self) -> Result<Schedules, ToolError> {
        let seeds = number(self.seeds.as_deref(), "--seeds", 1, u32::MAX)?;
        let check = self.check || seeds.is_some() || self.seed.is_some() || self.strict;
        let check = check || self.silence.is_given();
        let choice = self.device.device;
        if (check || self.profile) && !matches!(choice, DeviceChoice::Auto | DeviceChoice::Virtual) {
            return Err(LaunchError::NotVirtual { choice: choice.name() }.into());
        }
        let first = self.seed.unwrap_or(0);
        if first.checked_add(u64::from(seeds.unwrap_or(SEEDS_DEFAULT)) - 1).is_none() {
            return Err(bad(format!(
                "--seed {first} is too large for that many schedules: start with a smaller one"
            )));
        }
        Ok(Schedules { check, first, count: seeds.unwrap_or(SEEDS_DEFAULT).into() })
    }
}

/// Which schedules are run.
#[derive(Clone, Copy, Debug)]
pub(in crate::commands) struct Schedules {
    check: bool,
    first: u64,
    count: u64,
}

/// Runs a task, reports the outcome and writes its files; returns false if a rule was broken.
pub(in crate::commands) fn explore(
    task: &Task<'_>,
    look: &LookArguments,
    schedules: Schedules,
) -> Result<bool, ToolError> {
    let mut filter = look.silence.open()?;
    let mut outcome = Outcome::default();
    let mut sources = SourceText::of(&task.code);
    let mut shown = Ok(());
    for index in 0..schedules.count {
        let seed = schedules.check.then_some(schedules.first + index);
        let virtual_device = VirtualOptions {
            check: schedules.check,
            trusts_compilers: task.trusts_compilers,
            profile: look.profile && outcome.report.is_none(),
            scheduler_seed: seed,
            ..VirtualOptions::default()
        };
        let options = OpenOptions { virtual_device, ..OpenOptions::default() };
        // A document contains the text; otherwise the text of the first schedule is shown as it arrives.
        let mut live = Live::new(!look.json && index == 0);
        let (mut result, left) = task.carry_out(
            |text| live.write(text),
            |sequence, observe| launch::run_sequence(sequence, look.device.device, &options, observe),
        );
        shown = shown.and(live.finish(&result));
        match &mut result {
            Ok(report) => {
                sources.fill_all(report.findings.iter_mut().map(|located| &mut located.finding));
                let places = report.profile.iter_mut().flat_map(|profile| &mut profile.places);
                places.filter_map(|counts| counts.place.as_mut()).for_each(|place| sources.fill(place));
            }
            Err(error) => sources.fill_error(error),
        }
        match (result, seed) {
            (Ok(report), _) => outcome.add(task, report, left, seed),
            (Err(LaunchError::Device { work, findings, source, printed, waves }), Some(seed)) => {
                let is_timeout = source.is_timeout();
                let failure = || Failure::new(task, seed, (&work, &source), &printed, *waves);
                outcome.add_failed(seed, failure, findings, left);
                if is_timeout {
                    // Each of the others might take as long again.
                    outcome.skipped = schedules.count - index - 1;
                    break;
                }
            }
            (Err(error), _) => {
                if !look.json {
                    waves::show_before(&error)?;
                }
                return Err(error.into());
            }
        }
    }
    outcome.filter(|finding| filter.keeps(&Subject::of(finding)));
    outcome.silenced = filter.finish()?;
    // Findings are reported even if the outputs cannot be written.
    let written = outcome.report.as_ref().map_or(Ok(()), |(_, left)| task.write_files(left));
    let refused = written.as_ref().err().map(ErrorReport::of);
    show::show(task, &outcome, Format { json: look.json, strict: look.strict }, refused.as_ref())?;
    match look.json {
        true => written.map_err(|error| ToolError::Told(Box::new(error)))?,
        false => written?,
    }
    shown?;
    Ok(outcome.is_clean(look.strict))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        look: LookArguments,
    }

    /// Whether rules are checked, the first seed, and how many there are; or the complaint.
    fn validated(words: &str) -> Result<(bool, u64, u64), String> {
        let words = ["zrt", "--device", "virtual"].into_iter().chain(words.split_whitespace());
        let look = Line::try_parse_from(words).unwrap().look;
        let found = look.validate().map_err(|error| error.to_string())?;
        Ok((found.check, found.first, found.count))
    }

    #[test]
    fn what_asks_for_schedules_asks_for_checks() {
        for (words, expected) in [
            ("", (false, 0, 1)),
            ("--profile", (false, 0, 1)),
            ("--json", (false, 0, 1)),
            ("--check", (true, 0, 1)),
            ("--strict", (true, 0, 1)),
            ("--seeds 3", (true, 0, 3)),
            ("--seed 7", (true, 7, 1)),
            ("--seed 7 --seeds 2", (true, 7, 2)),
            ("--suppress file", (true, 0, 1)),
            ("--write-baseline file", (true, 0, 1)),
            ("--seeds 4294967295", (true, 0, u32::MAX.into())),
            ("--seed 18446744073709551615", (true, u64::MAX, 1)),
            ("--seed 18446744073709551614 --seeds 2", (true, u64::MAX - 1, 2)),
        ] {
            assert_eq!(validated(words), Ok(expected), "{words}");
        }
        for words in ["--seeds 0", "--seeds x", "--seeds 4294967296", "--seeds -1"] {
            assert!(validated(words).is_err_and(|told| told.contains("--seeds is")), "{words}");
        }
        let told = validated("--seed 18446744073709551615 --seeds 2").unwrap_err();
        assert_eq!(
            told,
            "--seed 18446744073709551615 is too large for that many schedules: start with a smaller one"
        );
    }

    #[test]
    fn only_the_virtual_device_is_looked_into() {
        let of = |words: &[&str]| {
            let line = Line::try_parse_from([&["zrt", "--device"], words].concat()).unwrap();
            line.look.validate().map(|_| ()).map_err(|error| error.to_string())
        };
        for words in [&["kfd"][..], &["auto", "--check"], &["virtual", "--profile"], &["kfd", "--json"]] {
            assert_eq!(of(words), Ok(()), "{words:?}");
        }
        for words in [["kfd", "--check"], ["kfd", "--profile"], ["userq", "--strict"]] {
            let told = of(&words).unwrap_err();
            assert!(told.ends_with(&format!("--device {} cannot be inspected", words[0])), "{told}");
        }
    }
}
