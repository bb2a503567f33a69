//! Passes that stand apart, beside the rest of the suite.
//!
//! Contract: a pass that compiles into a folder of its own shares no file with the suite; one that shares the suite's
//! folder waits for cargo's lock on it. The suite leaves a part of the processors idle wherever one compilation waits
//! for another, and at the end of each stage; what runs here takes that part. A failure here is printed at once, and
//! the suite goes on; after a failure of the suite no further pass is started. The outcome has the errors of both.
//! Processor times that the suite prints meanwhile include those of what ends here.

use super::passes::{Does, Pass, Work};
use super::skips::Skips;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// How far these passes stand back: with a third of the suite's weight they take what it leaves idle, and still end
/// before it.
const NICENESS: i32 = 5;

/// Runs `suite`, and beside it those of `passes` that stand apart.
pub fn beside(
    passes: &[Pass],
    skips: &mut Skips,
    suite: impl FnOnce(&mut Skips) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let has_failed = AtomicBool::new(false);
    let outcomes = thread::scope(|scope| {
        let apart = scope.spawn(|| {
            // On Linux a priority is a thread's, and what it starts inherits it. Refused, all share alike.
            let _ = rustix::process::setpriority_process(None, NICENESS);
            let mut skips = Skips::default();
            let outcome = passes_apart(passes, &has_failed, &mut skips).map_err(|error| error.to_string());
            if let Err(error) = &outcome {
                println!("   FAILED beside the others: {error}");
            }
            (skips, outcome)
        });
        let of_suite = suite(skips).map_err(|error| error.to_string());
        has_failed.store(of_suite.is_err(), Ordering::Relaxed);
        let panicked = |_| (Skips::default(), Err("a pass that stands apart panicked".into()));
        let (own, of_passes) = apart.join().unwrap_or_else(panicked);
        skips.join(own);
        [of_suite, of_passes]
    });
    let errors: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n").into()) }
}

fn passes_apart(passes: &[Pass], has_failed: &AtomicBool, skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    for pass in passes {
        if let Does::Apart(work) = &pass.does
            && !has_failed.load(Ordering::Relaxed)
        {
            run(pass, *work, skips)?;
        }
    }
    Ok(())
}

/// Runs such a pass.
pub fn run(pass: &Pass, work: Work, skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    println!("== pass {}: {}", pass.name, pass.about);
    let started = Instant::now();
    work(skips)?;
    // No processor time: what else ends meanwhile would be in it.
    println!("   {} took {:.1} s", pass.name, started.elapsed().as_secs_f64());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const fn apart(work: Work) -> Pass {
        Pass { name: "made-up", about: "stands apart", does: Does::Apart(work) }
    }

    #[test]
    fn the_outcome_has_the_errors_of_both_and_the_record_what_both_skipped() {
        static HAS_STARTED: AtomicBool = AtomicBool::new(false);
        let passes = [apart(|skips| {
            HAS_STARTED.store(true, Ordering::Relaxed);
            skips.stage("one", "of the pass");
            Err("the pass fails".into())
        })];
        let mut skips = Skips::default();
        let error = beside(&passes, &mut skips, |skips| {
            // A suite that failed before would keep it from starting.
            let begun = Instant::now();
            while !HAS_STARTED.load(Ordering::Relaxed) {
                assert!(begun.elapsed() < Duration::from_secs(60), "the pass is not beside the suite");
                thread::yield_now();
            }
            skips.stage("two", "of the suite");
            Err("the suite fails".into())
        });
        assert_eq!(error.unwrap_err().to_string(), "the suite fails\nthe pass fails");
        let record = skips.to_string();
        assert!(record.contains("one: of the pass") && record.contains("two: of the suite"), "{record}");
    }

    #[test]
    fn either_alone_fails_the_run_and_a_panic_does_too() {
        let run = |work: Work, suite: Result<(), Box<dyn Error>>| {
            beside(&[apart(work)], &mut Skips::default(), |_| suite).map_err(|error| error.to_string())
        };
        assert_eq!(run(|_| Ok(()), Ok(())), Ok(()));
        assert_eq!(run(|_| Err("wrong".into()), Ok(())), Err("wrong".into()));
        assert!(run(|_| panic!("meant"), Ok(())).unwrap_err().contains("panicked"));
        assert!(run(|_| Ok(()), Err("suite".into())).unwrap_err().contains("suite"));
    }

    #[test]
    fn no_pass_is_started_after_a_failure_of_the_suite() {
        let has_failed = AtomicBool::new(true);
        let passes = [apart(|_| Err("started".into()))];
        assert!(passes_apart(&passes, &has_failed, &mut Skips::default()).is_ok());
    }
}
