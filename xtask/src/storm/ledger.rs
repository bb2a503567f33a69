//! What a storm did: a line of JSON for each job, a table at the end.

use super::jobs::{Job, Report, Verdict};
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// One job that has ended.
pub struct Entry {
    job: String,
    seed: u32,
    seconds: f64,
    report: Report,
}

/// All entries, and the file that has them too.
pub struct Ledger {
    file: File,
    entries: Vec<Entry>,
}

impl Entry {
    /// The entry of a job.
    pub fn new(job: &Job, seed: u32, took: Duration, report: Report) -> Entry {
        Entry { job: job.name(), seed, seconds: took.as_secs_f64(), report }
    }

    /// Whether the job failed.
    pub fn has_failed(&self) -> bool {
        matches!(self.report.verdict, Verdict::Failed(_))
    }

    /// Whether the job did not end in its time.
    pub fn was_late(&self) -> bool {
        matches!(self.report.verdict, Verdict::Late(_))
    }

    /// Whether the job failed or did not end in its time.
    pub fn ended_badly(&self) -> bool {
        self.has_failed() || self.was_late()
    }

    /// Whether the job could not run here.
    pub fn was_skipped(&self) -> bool {
        matches!(self.report.verdict, Verdict::Skipped(_))
    }

    /// The line of the file: `job`, `seed`, `seconds`, `cases`, `result`, `reason` (null if it passed), `again`.
    fn to_json(&self) -> serde_json::Value {
        json!({
            "job": self.job,
            "seed": self.seed,
            "seconds": self.seconds,
            "cases": self.report.cases,
            "result": self.report.verdict.word(),
            "reason": self.report.verdict.reason(),
            "again": self.report.again,
        })
    }
}

impl fmt::Display for Entry {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Entry { job, seed, seconds, report } = self;
        let word = report.verdict.word();
        write!(
            formatter,
            "   {job:<32} seed {seed:>10} {:>10} cases {seconds:>7.1} s  {word}",
            report.cases
        )?;
        if let Some(reason) = report.verdict.reason() {
            write!(formatter, ": {}", reason.lines().last().unwrap_or_default())?;
        }
        Ok(())
    }
}

impl Ledger {
    /// An empty ledger, with a new file.
    pub fn create(path: &Path) -> std::io::Result<Ledger> {
        Ok(Ledger { file: File::create(path)?, entries: Vec::new() })
    }

    /// Adds an entry, to the file at once.
    pub fn enter(&mut self, entry: Entry) -> std::io::Result<()> {
        writeln!(self.file, "{}", entry.to_json())?;
        self.entries.push(entry);
        Ok(())
    }

    /// Whether no job ran.
    pub fn has_run_nothing(&self) -> bool {
        self.entries.iter().all(Entry::was_skipped)
    }

    /// Jobs that did not end in their time.
    pub fn late(&self) -> usize {
        self.entries.iter().filter(|entry| entry.was_late()).count()
    }

    /// Jobs that failed.
    pub fn failures(&self) -> usize {
        self.entries.iter().filter(|entry| entry.has_failed()).count()
    }

    /// Jobs that failed or did not end in their time.
    pub fn ended_badly(&self) -> usize {
        self.entries.iter().filter(|entry| entry.ended_badly()).count()
    }
}

/// The sums of one job.
#[derive(Default)]
struct Sums {
    runs: u64,
    cases: u64,
    seconds: f64,
    skipped: u64,
    late: u64,
    failed: u64,
}

impl fmt::Display for Ledger {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut jobs: BTreeMap<&str, Sums> = BTreeMap::new();
        for entry in &self.entries {
            let sums = jobs.entry(&entry.job).or_default();
            sums.runs += 1;
            sums.cases += entry.report.cases;
            sums.seconds += entry.seconds;
            sums.skipped += u64::from(matches!(entry.report.verdict, Verdict::Skipped(_)));
            sums.late += u64::from(entry.was_late());
            sums.failed += u64::from(entry.has_failed());
        }
        writeln!(formatter, "| job | runs | cases | seconds | skipped | late | failed |")?;
        writeln!(formatter, "|---|---:|---:|---:|---:|---:|---:|")?;
        for (job, Sums { runs, cases, seconds, skipped, late, failed }) in &jobs {
            writeln!(
                formatter,
                "| {job} | {runs} | {cases} | {seconds:.0} | {skipped} | {late} | {failed} |"
            )?;
        }
        for entry in self.entries.iter().filter(|entry| entry.ended_badly()) {
            let Entry { job, seed, report, .. } = entry;
            let word = report.verdict.word();
            writeln!(formatter, "{word}: {job} from seed {seed}; again with:\n  {}", report.again)?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// The ledger at `path` of jobs that ended so, from seed 5 on, in a second and a half each.
    pub fn ledger(path: &Path, verdicts: impl IntoIterator<Item = Verdict>) -> Ledger {
        let mut ledger = Ledger::create(path).unwrap();
        for (seed, verdict) in (5..).zip(verdicts) {
            let report = Report { cases: 10, verdict, again: format!("run {seed}") };
            ledger.enter(Entry::new(&Job::Stress, seed, Duration::from_millis(1500), report)).unwrap();
        }
        ledger
    }

    #[test]
    fn the_file_and_the_table_say_what_ran() {
        let folder = zrt_needs::TemporaryFolder::new("ledger");
        let path = folder.join("ledger.jsonl");
        let verdicts = [
            Verdict::Passed,
            Verdict::Failed("first\nlast".into()),
            Verdict::Skipped("no model".into()),
            Verdict::Late("ended after 1200 s".into()),
        ];
        let ledger = ledger(&path, verdicts);
        assert_eq!((ledger.failures(), ledger.late(), ledger.ended_badly()), (1, 1, 2));
        assert!(!ledger.has_run_nothing());
        let text = "\
| job | runs | cases | seconds | skipped | late | failed |
|---|---:|---:|---:|---:|---:|---:|
| stress | 4 | 40 | 6 | 1 | 1 | 1 |
failed: stress from seed 6; again with:
  run 6
late: stress from seed 8; again with:
  run 8
";
        assert_eq!(ledger.to_string(), text);
        assert!(ledger.entries[1].to_string().ends_with("failed: last"));
        let lines = std::fs::read_to_string(&path).unwrap();
        let second: serde_json::Value = serde_json::from_str(lines.lines().nth(1).unwrap()).unwrap();
        let expected = json!({"job": "stress", "seed": 6, "seconds": 1.5, "cases": 10, "result": "failed",
            "reason": "first\nlast", "again": "run 6"});
        assert_eq!(second, expected);
    }
}
