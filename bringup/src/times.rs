//! What is told of measured times.
//!
//! Contract: plain arithmetic; the cases and the questions that measure share it.

use std::time::Duration;

/// The shortest of some times and the middle one: of an even number the longer of the two in the middle. Both are zero
/// if there are none.
pub(crate) fn least_and_median(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort_unstable();
    [0, times.len() / 2].map(|at| times.get(at).copied().unwrap_or_default())
}

/// What each of `count` repetitions took beyond one, in nanoseconds: `all` is the time of one more than `count`.
pub(crate) fn each_ns(all: Duration, alone: Duration, count: usize) -> f64 {
    all.saturating_sub(alone).as_nanos() as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle_of_the_sorted_times() {
        let of = |times: &[u64]| {
            least_and_median(times.iter().copied().map(Duration::from_nanos).collect())
                .map(|time| time.as_nanos())
        };
        assert_eq!(of(&[]), [0, 0]);
        assert_eq!(of(&[7]), [7, 7]);
        assert_eq!(of(&[9, 3]), [3, 9]);
        assert_eq!(of(&[50, 10, 40, 20, 30]), [10, 30]);
        assert_eq!(of(&[6, 5, 4, 3, 2, 1]), [1, 4]);
    }

    #[test]
    fn a_repetition_is_a_share_of_what_more_of_them_took() {
        let of = |all, alone, count| each_ns(Duration::from_nanos(all), Duration::from_nanos(alone), count);
        assert_eq!(of(1100, 100, 4), 250.0);
        assert_eq!(of(10, 3, 2), 3.5);
        // Noise may make one look longer than many.
        assert_eq!(of(100, 130, 4), 0.0);
    }
}
