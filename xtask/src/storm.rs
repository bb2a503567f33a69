//! `cargo xtask storm`: everything that draws at random, in turn, each time from a new seed.
//!
//! Contract: runs the jobs of [`jobs`] one after the other until the time is up; a failure does not stop the storm,
//! only [`FAILURES_MAX`] of them do. The ledger is under `target/storm/seed-S`: a line of JSON for each job when it has
//! ended, and the output of each job that failed or was late: had not ended in its time. At the end a table says what
//! ran, and how to repeat these. The same seed gives the same jobs with the same seeds; if they run threads, what they
//! find depends on time too. A job that was begun is finished, so a storm may last longer than requested, at most by
//! [`jobs::JOB_LIMIT`]. Fails if a job failed or was late: nobody but its user knows whether the machine had other
//! work. A job that cannot run here is recorded as skipped, with its reason.

mod jobs;
mod ledger;

use crate::test::skips::Skips;
use indicatif::{ProgressBar, ProgressStyle};
use jobs::{Job, Programs};
use ledger::{Entry, Ledger};
use std::collections::VecDeque;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use zrt_mem::Random;

/// Arguments of `cargo xtask storm`.
#[derive(clap::Args)]
pub struct StormArguments {
    /// Duration in hours
    #[arg(long, conflicts_with = "minutes", required_unless_present = "minutes")]
    hours: Option<f64>,
    /// Duration in minutes
    #[arg(long)]
    minutes: Option<f64>,
    /// Seed that all other seeds are drawn from [default: the clock's second]
    #[arg(long)]
    seed: Option<u64>,
    /// Run only jobs whose names begin with this: fuzz, stress, differential, faults, conformance, plant
    #[arg(long, value_name = "NAME")]
    only: Option<String>,
}

/// Longest storm, in hours.
const HOURS_MAX: f64 = 1000.0;
/// Jobs that failed or were late after which a storm ends early: what fails at once would fill the disk.
const FAILURES_MAX: usize = 100;

/// Runs the command.
pub fn run(arguments: &StormArguments) -> Result<(), Box<dyn Error>> {
    let lasts = lasts(arguments)?;
    let seed = arguments.seed.unwrap_or_else(clock);
    let chosen: Vec<Job> = Job::all()
        .into_iter()
        .filter(|job| arguments.only.as_deref().is_none_or(|name| job.name().starts_with(name)))
        .collect();
    if chosen.is_empty() {
        return Err("no job has a name that begins with that".into());
    }
    println!("== storm from seed {seed}: compiling");
    let mut skips = Skips::default();
    let programs = Programs::build(&mut skips)?;
    print!("{skips}");
    let folder = folder(seed);
    let ledger = storm(&chosen, &programs, lasts, seed, &folder)?;
    print!("{ledger}");
    Ok(judge(&ledger, &folder)?)
}

/// How long a storm lasts.
fn lasts(arguments: &StormArguments) -> Result<Duration, String> {
    let hours = arguments.hours.or(arguments.minutes.map(|minutes| minutes / 60.0)).unwrap_or_default();
    if !(hours > 0.0 && hours <= HOURS_MAX) {
        return Err(format!("a storm lasts more than 0 and at most {HOURS_MAX} hours"));
    }
    Ok(Duration::from_secs_f64(hours * 3600.0))
}

/// Whether a storm found nothing; the output of its jobs is in `folder`.
fn judge(ledger: &Ledger, folder: &Path) -> Result<(), String> {
    match ledger.failures() {
        0 if ledger.has_run_nothing() => Err("every job was skipped: nothing ran".into()),
        0 if ledger.late() == 0 => Ok(()),
        failed => Err(format!(
            "{failed} jobs failed, and {} did not end in their time (they hang, or the machine has other work: repeat \
             them alone); their output is in {}",
            ledger.late(),
            folder.display()
        )),
    }
}

/// Seconds since 1970.
fn clock() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs())
}

fn folder(seed: u64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/storm").join(format!("seed-{seed}"))
}

/// Runs jobs until the time is up; the ledger goes to `folder`.
fn storm(
    chosen: &[Job],
    programs: &Programs,
    lasts: Duration,
    seed: u64,
    folder: &Path,
) -> Result<Ledger, Box<dyn Error>> {
    std::fs::create_dir_all(folder)?;
    let mut ledger = Ledger::create(&folder.join("ledger.jsonl"))?;
    let started = Instant::now();
    let bar = ProgressBar::new(lasts.as_secs());
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {elapsed} of {len} s") {
        bar.set_style(style);
    }
    let mut seeds = Random::new(seed);
    // A short storm does not always get to the same jobs.
    let first = (seed % chosen.len() as u64) as usize;
    let mut turn: VecDeque<&Job> = chosen.iter().collect();
    turn.rotate_left(first);
    for number in 0_u32.. {
        let Some(job) = turn.pop_front() else { break };
        let Some(left) = lasts.checked_sub(started.elapsed()).filter(|left| !left.is_zero()) else { break };
        let job_seed = next_seed(&mut seeds);
        bar.set_message(format!("{} from {job_seed}", job.name()));
        bar.set_position(started.elapsed().as_secs());
        let began = Instant::now();
        let log = folder.join(format!("{number:05}-{}.txt", job.name().replace('/', "-")));
        let report = job.run(programs, job_seed, left, &log)?;
        let entry = Entry::new(job, job_seed, began.elapsed(), report);
        if !entry.ended_badly() {
            std::fs::remove_file(&log).ok();
        }
        bar.suspend(|| println!("{entry}"));
        // What cannot run here cannot run later either.
        if !entry.was_skipped() {
            turn.push_back(job);
        }
        ledger.enter(entry)?;
        if ledger.ended_badly() == FAILURES_MAX {
            println!("   {FAILURES_MAX} jobs failed or were late: the storm ends");
            break;
        }
    }
    bar.finish_and_clear();
    Ok(ledger)
}

/// The next seed of a storm, from 1 to 2^32 - 1.
fn next_seed(seeds: &mut Random) -> u32 {
    seeds.word().max(1)
}

#[cfg(test)]
mod tests {
    use super::jobs::Verdict;
    use super::*;
    use std::collections::BTreeSet;
    use zrt_needs::TemporaryFolder;
    use zrt_needs::write_program;

    #[test]
    fn seeds_repeat_and_differ() {
        let of = |seed| {
            let mut seeds = Random::new(seed);
            (0..1000).map(|_| next_seed(&mut seeds)).collect::<Vec<u32>>()
        };
        assert_eq!(of(7), of(7));
        assert_ne!(of(7), of(8));
        let seeds: BTreeSet<u32> = of(7).into_iter().collect();
        assert_eq!(seeds.len(), 1000);
        assert!(!seeds.contains(&0));
    }

    #[test]
    fn a_storm_goes_on_after_a_failure_and_says_how_to_repeat_it() {
        // The programs do not exist: each job fails at once.
        let programs = Programs::of(Path::new("/no/such/folder"));
        let folder = TemporaryFolder::new("storm");
        let ledger = storm(&[Job::Differential], &programs, Duration::from_secs(600), 3, &folder).unwrap();
        assert_eq!(ledger.failures(), FAILURES_MAX, "{ledger}");
        let lines = std::fs::read_to_string(folder.join("ledger.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), ledger.failures());
        assert!(ledger.to_string().contains("zrt-differential -- --programs"), "{ledger}");
    }

    #[test]
    fn a_storm_of_jobs_that_cannot_run_ends_at_once() {
        // Nothing was built, so there is no fuzz target.
        let programs = Programs::of(Path::new("/no/such/folder"));
        let chosen: Vec<Job> = Job::all().into_iter().filter(|job| job.name().starts_with("fuzz")).collect();
        let folder = TemporaryFolder::new("storm-skipped");
        let ledger = storm(&chosen, &programs, Duration::from_secs(600), 3, &folder).unwrap();
        assert!(ledger.has_run_nothing() && ledger.failures() == 0, "{ledger}");
        let lines = std::fs::read_to_string(folder.join("ledger.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), chosen.len());
    }

    #[test]
    fn output_is_kept_of_a_job_that_failed_and_of_no_other() {
        // Passes, then fails, and then says that it cannot compare, after which no job is left.
        let programs = TemporaryFolder::new("storm-programs");
        let script = r#"cd "$(dirname "$0")"; echo run >> runs; case $(wc -l < runs) in
               1) echo fine;; 2) echo wrong; exit 1;; *) echo could not be started; exit 2;;
            esac"#;
        write_program(&programs.join("zrt-differential"), script);
        let folder = TemporaryFolder::new("storm-output");
        let lasts = Duration::from_secs(600);
        let ledger = storm(&[Job::Differential], &Programs::of(&programs), lasts, 3, &folder).unwrap();
        assert!(ledger.to_string().contains("| differential | 3 | 400 |"), "{ledger}");
        let left: BTreeSet<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().eq(["00001-differential.txt", "ledger.jsonl"]), "{left:?}");
        assert_eq!(std::fs::read_to_string(folder.join("00001-differential.txt")).unwrap(), "wrong\n");
    }

    #[test]
    fn a_storm_that_ran_something_and_found_nothing_is_good() {
        let folder = TemporaryFolder::new("storm-judged");
        let judged = |verdicts: Vec<Verdict>| {
            judge(&ledger::tests::ledger(&folder.join("ledger"), verdicts), Path::new("a/folder"))
        };
        let (failed, late) = (|| Verdict::Failed("wrong".into()), || Verdict::Late("hangs".into()));
        let skipped = || Verdict::Skipped("no tool".into());
        assert_eq!(judged(vec![Verdict::Passed, skipped()]), Ok(()));
        assert_eq!(judged(vec![skipped(), skipped()]), Err("every job was skipped: nothing ran".into()));
        let bad = |counts: &str| {
            let why = "(they hang, or the machine has other work: repeat them alone)";
            Err(format!("{counts} did not end in their time {why}; their output is in a/folder"))
        };
        assert_eq!(judged(vec![Verdict::Passed, late()]), bad("0 jobs failed, and 1"));
        assert_eq!(judged(vec![failed(), Verdict::Passed]), bad("1 jobs failed, and 0"));
        assert_eq!(judged(vec![failed(), late(), skipped(), failed()]), bad("2 jobs failed, and 1"));
    }

    #[test]
    fn a_storm_lasts_as_long_as_asked_within_its_limits() {
        let of = |hours, minutes| lasts(&StormArguments { hours, minutes, seed: None, only: None });
        assert_eq!(of(Some(1.5), None), Ok(Duration::from_secs(5400)));
        assert_eq!(of(None, Some(90.0)), Ok(Duration::from_secs(5400)));
        assert_eq!(of(Some(1000.0), None), Ok(Duration::from_secs(3_600_000)));
        let refused = Err("a storm lasts more than 0 and at most 1000 hours".to_owned());
        for hours in [0.0, -1.0, 1000.01, f64::NAN, f64::INFINITY] {
            assert_eq!(of(Some(hours), None), refused, "{hours}");
        }
    }

    #[test]
    fn jobs_that_nobody_knows_are_refused_before_anything_is_compiled() {
        let only = Some("no such job".into());
        let arguments = StormArguments { hours: Some(1.0), minutes: None, seed: None, only };
        let error = run(&arguments).unwrap_err().to_string();
        assert_eq!(error, "no job has a name that begins with that");
    }

    #[test]
    fn a_ledger_is_under_target_by_its_seed() {
        let folder = folder(7);
        assert!(folder.ends_with("target/storm/seed-7"), "{}", folder.display());
        assert!(folder.ancestors().nth(3).unwrap().join("Cargo.lock").is_file());
    }

    #[test]
    fn the_seed_of_the_clock_is_the_time_since_1970() {
        let folder = TemporaryFolder::new("storm-clock");
        std::fs::write(folder.join("file"), "").unwrap();
        let written = std::fs::metadata(folder.join("file")).unwrap().modified().unwrap();
        assert!(clock() >= written.duration_since(UNIX_EPOCH).unwrap().as_secs());
    }
}
