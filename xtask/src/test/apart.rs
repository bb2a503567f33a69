//! Passes that stand apart, beside the rest of the suite.
//!
//! Contract: a pass that compiles into a folder of its own shares nothing with the suite but the processors. The suite
//! leaves a part of them idle wherever one compilation waits for another, and at the end of each stage; what runs here
//! takes that part. A pass is started only while the suite has not failed; the first failure of either is the outcome.
//! Processor times that the suite prints meanwhile include those of what ends here.

use super::passes::{Does, PASSES, Pass, Work};
use super::skips::Skips;
use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Runs `suite`, and beside it the passes that stand apart.
pub fn beside(
    skips: &mut Skips,
    suite: impl FnOnce(&mut Skips) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let has_failed = AtomicBool::new(false);
    thread::scope(|scope| {
        let apart = scope.spawn(|| {
            let mut skips = Skips::default();
            let outcome = passes_apart(&has_failed, &mut skips).map_err(|error| error.to_string());
            // The suite goes on, and may fail too: its error would be the only one that is told.
            if let Err(error) = &outcome {
                println!("   FAILED beside the others: {error}");
            }
            (skips, outcome)
        });
        let outcome = suite(skips);
        has_failed.store(outcome.is_err(), Ordering::Relaxed);
        let Ok((own, of_passes)) = apart.join() else {
            return Err("a pass that stands apart panicked".into());
        };
        skips.join(own);
        outcome.and(of_passes.map_err(Into::into))
    })
}

fn passes_apart(has_failed: &AtomicBool, skips: &mut Skips) -> Result<(), Box<dyn Error>> {
    for pass in PASSES {
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
