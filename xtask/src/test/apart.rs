//! Passes that stand apart, beside the rest of the suite.
//!
//! Contract: a pass that compiles into a folder of its own shares no file with the suite. The suite leaves a part of
//! the processors idle wherever one compilation waits for another, and at the end of each stage; what runs here takes
//! that part. A failure here is printed at once, and the suite goes on; after a failure of the suite no further pass is
//! started. The outcome has the errors of both. Processor times that the suite prints meanwhile include those of what
//! ends here.

use super::passes::{Does, PASSES, Pass, Work};
use super::skips::Skips;
use std::error::Error;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Runs `suite`, and beside it the passes that stand apart.
pub fn beside(
    skips: &mut Skips,
    suite: impl FnOnce(&mut Skips) -> Result<(), Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let has_failed = AtomicBool::new(false);
    let own = Mutex::new(Skips::default());
    let outcomes = thread::scope(|scope| {
        let apart = scope.spawn(|| {
            let mut skips = Skips::default();
            let outcome = passes_apart(&has_failed, &mut skips).map_err(|error| error.to_string());
            if let Err(error) = &outcome {
                println!("   FAILED beside the others: {error}");
            }
            own.lock().map(|mut own| own.join(skips)).map_err(|_| "its record is lost".to_owned())?;
            outcome
        });
        let of_suite = suite(skips).map_err(|error| error.to_string());
        has_failed.store(of_suite.is_err(), Ordering::Relaxed);
        let of_passes = apart.join().unwrap_or_else(|_| Err("a pass that stands apart panicked".into()));
        [of_suite, of_passes]
    });
    skips.join(own.into_inner().unwrap_or_default());
    let errors: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    if errors.is_empty() { Ok(()) } else { Err(errors.join("\n").into()) }
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
