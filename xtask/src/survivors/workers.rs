//! Work that is done by several threads, with a bar that shows how far it is.

use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What `work` gives for each number below `count`, in their order. After an error no further one is begun.
pub fn each<T: Send>(
    workers: usize,
    count: usize,
    what: &'static str,
    work: impl Fn(usize) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let bar = ProgressBar::new(count as u64).with_message(what);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos} of {len}, {elapsed}") {
        bar.set_style(style);
    }
    let next = AtomicUsize::new(0);
    let (done, failure) = (Mutex::new(Vec::new()), Mutex::new(None));
    std::thread::scope(|scope| {
        for _ in 0..workers.max(1) {
            scope.spawn(|| {
                while lock(&failure).is_none() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    match work(number) {
                        Ok(given) => lock(&done).push((number, given)),
                        Err(error) => *lock(&failure) = Some(error),
                    }
                    bar.inc(1);
                }
            });
        }
    });
    bar.finish_and_clear();
    if let Some(error) = lock(&failure).take() {
        return Err(error);
    }
    let mut done = std::mem::take(&mut *lock(&done));
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
        let squares = each(3, 100, "squares", |number| Ok(number * number)).unwrap();
        assert!(squares.into_iter().eq((0..100).map(|number| number * number)));
        assert_eq!(each(3, 0, "nothing", Ok).unwrap(), [0; 0]);
    }

    #[test]
    fn nothing_is_begun_after_an_error() {
        let begun = AtomicUsize::new(0);
        let fail = |number| {
            begun.fetch_add(1, Ordering::Relaxed);
            if number == 2 { Err("two".to_owned()) } else { Ok(()) }
        };
        assert_eq!(each(1, 100, "failing", fail), Err("two".to_owned()));
        assert_eq!(begun.into_inner(), 3);
    }
}
