//! Points in time as text: ISO 8601, UTC, whole seconds, as llama-bench writes `test_time`.
//!
//! Contract: pure except for [`now`], which reads the clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// The current time.
pub fn now() -> String {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    iso8601(since_epoch.map_or(0, |duration| duration.as_secs()))
}

/// Seconds since 1970-01-01T00:00:00Z as text.
pub fn iso8601(seconds: u64) -> String {
    let (days, second_of_day) = (seconds / 86_400, seconds % 86_400);
    let (hour, minute, second) = (second_of_day / 3600, second_of_day / 60 % 60, second_of_day % 60);
    let (year, month, day) = civil_date(days);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Year, month and day of the Gregorian calendar, `days` after 1970-01-01.
fn civil_date(days: u64) -> (u64, u64, u64) {
    // Count from 1 March of the year 0, so that a leap day ends its year; 719,468 days lie between.
    let days = days + 719_468;
    // 146,097 days are 400 years.
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // Months from March on take turns of 31 and 30 days: 153 days are five of them.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates() {
        // Values of `date -u -d @N`.
        assert_eq!(iso8601(0), "1970-01-01T00:00:00Z");
        assert_eq!(iso8601(951_782_399), "2000-02-28T23:59:59Z");
        assert_eq!(iso8601(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(iso8601(951_827_696), "2000-02-29T12:34:56Z");
        assert_eq!(iso8601(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(iso8601(1_735_689_599), "2024-12-31T23:59:59Z");
        assert_eq!(iso8601(4_107_542_400), "2100-03-01T00:00:00Z");
    }

    #[test]
    fn now_is_between_before_and_after() {
        let seconds = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        let before = seconds();
        let text = now();
        assert!((before..=seconds()).any(|second| iso8601(second) == text), "{text}");
    }

    /// Both ends of a year, of February and of the 400 years after which the calendar repeats.
    #[test]
    fn days_follow_each_other() {
        // Values of `date -u -d @N`.
        for (seconds, date) in [
            (68_169_600, "1972-02-29"),
            (68_256_000, "1972-03-01"),
            (94_608_000, "1972-12-31"),
            (94_694_400, "1973-01-01"),
            (951_868_800, "2000-03-01"),
            (13_574_563_200, "2400-02-29"),
            (13_574_649_600, "2400-03-01"),
        ] {
            assert_eq!(iso8601(seconds), format!("{date}T00:00:00Z"));
        }
    }
}
