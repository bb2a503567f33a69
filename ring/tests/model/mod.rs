//! How the models are checked: by loom, in every interleaving up to a bound on preemptions, and with every value
//! that a relaxed load may return.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Runs model checks one at a time: each needs a stack and a history of its own and loads the whole machine.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Runs `model` in every execution with at most `preemptions_max` preemptions. Returns the number of executions, or
/// the message of the first bad one.
pub fn check(preemptions_max: usize, model: impl Fn() + Sync + Send + 'static) -> Result<usize, String> {
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let executions = std::sync::Arc::new(AtomicUsize::new(0));
    let counter = executions.clone();
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions_max);
    builder.max_branches = 20_000;
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        builder.check(move || {
            counter.fetch_add(1, Ordering::Relaxed);
            model();
        });
    }));
    match outcome {
        Ok(()) => Ok(executions.load(Ordering::Relaxed)),
        Err(panic) => Err(panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| text.to_string()))
            .unwrap_or_default()),
    }
}
