//! When the thread spins and how long it sleeps.

use crate::command_processor::{Pace, SLEEP_US_FIRST, SLEEP_US_MAX};
use std::time::{Duration, Instant};

#[test]
fn sleeps_begin_after_a_time_of_spinning_and_double_up_to_the_longest() {
    let now = Instant::now();
    for act in [Pace::rest, Pace::give_way] {
        // An activity that lies ahead is one of this moment, however long the test takes.
        let mut pace = Pace { last_active: now + Duration::from_secs(3600), sleep_us: SLEEP_US_FIRST };
        (0..3).for_each(|_| act(&mut pace));
        assert_eq!(pace.sleep_us, SLEEP_US_FIRST);
        let mut pace = Pace { last_active: now - Duration::from_secs(1), sleep_us: SLEEP_US_FIRST };
        let slept: Vec<u64> = (0..6)
            .map(|_| {
                act(&mut pace);
                pace.sleep_us
            })
            .collect();
        let doubled = [2, 4, 8, 16, 32, 64].map(|times| (times * SLEEP_US_FIRST).min(SLEEP_US_MAX));
        assert_eq!(slept, doubled);
        pace.active();
        assert!(pace.last_active >= now && pace.sleep_us == SLEEP_US_FIRST);
    }
}
