//! A list of work shared by several threads, and the report that they write together.
//!
//! Contract: the first error is the result, and ends the work of the other threads.

use crate::error::DifferentialError;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// The state that the threads share.
pub(crate) struct Share<T> {
    places: Range<usize>,
    taken: AtomicUsize,
    report: Mutex<Result<T, DifferentialError>>,
}

impl<T: Default + Send> Share<T> {
    /// Does the work of a list of that length on `jobs` threads (at least one). `work` takes indices with
    /// [`Share::next`] until none are left.
    pub fn run(
        jobs: usize,
        len: usize,
        work: impl Fn(&Share<T>) -> Result<(), DifferentialError> + Sync,
    ) -> Result<T, DifferentialError> {
        let share =
            Share { places: 0..len, taken: AtomicUsize::new(0), report: Mutex::new(Ok(T::default())) };
        std::thread::scope(|scope| {
            for _ in 0..jobs.max(1) {
                scope.spawn(|| {
                    if let Err(error) = work(&share) {
                        share.fail(error);
                    }
                });
            }
        });
        share.report.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next index of the list that no thread has taken.
    pub fn next(&self) -> Option<usize> {
        let place = self.taken.fetch_add(1, Ordering::Relaxed);
        self.places.contains(&place).then_some(place)
    }

    /// Adds to the report, unless there is an error already.
    pub fn add(&self, act: impl FnOnce(&mut T)) {
        if let Ok(report) = self.report.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            act(report);
        }
    }

    fn fail(&self, error: DifferentialError) {
        self.taken.store(self.places.end, Ordering::Relaxed);
        let mut report = self.report.lock().unwrap_or_else(PoisonError::into_inner);
        if report.is_ok() {
            *report = Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_is_taken_once_and_the_first_error_is_the_outcome() {
        for jobs in [0, 1, 3] {
            let work = |share: &Share<Vec<usize>>| {
                while let Some(place) = share.next() {
                    share.add(|report| report.push(place));
                }
                Ok(())
            };
            let mut report = Share::run(jobs, 100, work).unwrap();
            report.sort_unstable();
            assert_eq!(report, (0..100).collect::<Vec<usize>>());
        }
        let fails = |share: &Share<u32>| match share.next() {
            Some(_) => Err(DifferentialError::Inputs { inputs: 3, max: 4 }),
            None => Ok(()),
        };
        assert!(Share::run(2, 100, fails).is_err());
    }
}
