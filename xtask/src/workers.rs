//! Work that is done by several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What `work` gives for each number below `count`, in their order. After an error no further one is begun; the error
/// has a line for each that failed meanwhile.
pub fn each<T: Send>(
    workers: usize,
    count: usize,
    work: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let next = AtomicUsize::new(0);
    let (done, failures) = (Mutex::new(Vec::new()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while lock(&failures).is_empty() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    match work(number) {
                        Ok(given) => lock(&done).push((number, given)),
                        Err(error) => lock(&failures).push(error),
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failures.is_empty() {
        return Err(failures.join("\n"));
    }
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(number, _)| *number);
    Ok(done.into_iter().map(|(_, given)| given).collect())
}

/// What a mutex holds, also after a panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_in_order() {
        let squares = each(3, 100, |number| Ok(number * number)).unwrap();
        assert!(squares.into_iter().eq((0..100).map(|number| number * number)));
        assert_eq!(each(3, 0, Ok).unwrap(), [0; 0]);
    }

    #[test]
    fn nothing_is_begun_after_an_error() {
        let begun = AtomicUsize::new(0);
        let fail = |number| {
            begun.fetch_add(1, Ordering::Relaxed);
            if number == 2 { Err("two".to_owned()) } else { Ok(()) }
        };
        assert_eq!(each(1, 100, fail), Err("two".to_owned()));
        assert_eq!(begun.into_inner(), 3);
    }

    #[test]
    fn all_that_failed_are_named() {
        let both = std::sync::Barrier::new(2);
        let fail = |number: usize| -> Result<(), String> {
            both.wait();
            Err(format!("number {number}"))
        };
        let error = each(2, 2, fail).unwrap_err();
        let lines: std::collections::BTreeSet<&str> = error.lines().collect();
        assert!(lines.into_iter().eq(["number 0", "number 1"]), "{error}");
    }
}
