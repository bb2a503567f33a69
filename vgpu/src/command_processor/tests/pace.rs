//! When the thread spins and how long it sleeps.

use crate::command_processor::Pace;
use std::time::{Duration, Instant};

#[test]
fn sleeps_begin_after_a_time_of_spinning_and_double_up_to_the_longest() {
    let mut pace = Pace::new();
    let us = Duration::from_micros;
    assert_eq!([0, 49].map(|idle| pace.sleep_after(us(idle), 50)), [None; 2]);
    let slept = [50, 51, 1_000, 1_000, 1_000, 1_000].map(|idle| pace.sleep_after(us(idle), 50));
    assert_eq!(slept, [5, 10, 20, 40, 50, 50].map(|sleep| Some(us(sleep))));
    // After an activity it begins anew.
    pace.active();
    assert_eq!([1_999, 2_000].map(|idle| pace.sleep_after(us(idle), 2_000)), [None, Some(us(5))]);
}

/// An activity that lies ahead is one of this moment, however long the test takes; one of an hour ago is over.
#[test]
fn rest_and_giving_way_sleep_when_they_have_spun() {
    let now = Instant::now();
    for act in [Pace::rest, Pace::give_way] {
        let mut pace = Pace { last_active: now + Duration::from_secs(3600), sleep_us: 5 };
        act(&mut pace);
        assert_eq!(pace.sleep_us, 5);
        pace.last_active = now.checked_sub(Duration::from_secs(1)).unwrap();
        act(&mut pace);
        assert_eq!(pace.sleep_us, 10);
        pace.active();
        assert!(pace.last_active >= now && pace.sleep_us == 5);
    }
}
