//! `strftime_now`: the time in the words of C's `strftime`, in UTC and English.
//!
//! Contract: a pure function. A conversion that is not in the list stays as it is. Cost: proportional to the format.

use std::fmt::Write;
use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAY_SECONDS: u64 = 86_400;

/// `format` with its conversions replaced: `%a %A %b %B %d %e %H %I %j %m %M %p %S %y %Y %%`, and `%-d` and the like
/// for a number without its leading zeros. A time before 1970 counts as 1970.
pub(super) fn format_time(format: &str, time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (days, of_day) = (seconds / DAY_SECONDS, seconds % DAY_SECONDS);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let hour_of_12 = if hour % 12 == 0 { 12 } else { hour % 12 };
    let (week_day, month_name) = (DAYS[(days + 4) as usize % 7], MONTHS[month as usize - 1]);
    let mut text = String::new();
    let mut chars = format.chars();
    while let Some(char) = chars.next() {
        if char != '%' {
            text.push(char);
            continue;
        }
        let mut rest = chars.clone();
        let bare = rest.clone().next() == Some('-');
        if bare {
            rest.next();
        }
        let conversion = rest.next();
        let mut number = |value: u64, width: usize| {
            let width = if bare { 0 } else { width };
            // Writing to a String cannot fail.
            let _ = write!(text, "{value:0width$}");
        };
        match conversion {
            Some('Y') => number(year, 4),
            Some('y') => number(year % 100, 2),
            Some('m') => number(month, 2),
            Some('d') => number(day, 2),
            Some('H') => number(hour, 2),
            Some('I') => number(hour_of_12, 2),
            Some('M') => number(minute, 2),
            Some('S') => number(second, 2),
            Some('j') => number(days - first_day(year) + 1, 3),
            Some('e') => text.push_str(&format!("{day:2}")),
            Some('B') => text.push_str(month_name),
            Some('b') => text.push_str(&month_name[..3]),
            Some('A') => text.push_str(week_day),
            Some('a') => text.push_str(&week_day[..3]),
            Some('p') => text.push_str(if hour < 12 { "AM" } else { "PM" }),
            Some('%') => text.push('%'),
            _ => {
                text.push('%');
                continue;
            }
        }
        chars = rest;
    }
    text
}

/// Days from 1 January 1970 to 1 January of a year from 1970 on.
fn first_day(year: u64) -> u64 {
    let before = year - 1;
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    (year - 1970) * 365 + leap_days(before) - leap_days(1969)
}

/// Year, month and day of a number of days since 1 January 1970.
fn date(days: u64) -> (u64, u64, u64) {
    // A year has at least 365 days, so this is the right year or a later one, by one in 1,460 years at most.
    let mut year = 1970 + days / 365;
    while first_day(year) > days {
        year -= 1;
    }
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let mut left = days - first_day(year);
    for (month, length) in (1..).zip([31, 28 + u64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30]) {
        if left < length {
            return (year, month, left + 1);
        }
        left -= length;
    }
    (year, 12, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn times_are_those_of_date() {
        // From `date -u -d @SECONDS`.
        let cases = [
            (0, "1970-01-01 Thursday 00:00:00 001"),
            (951_782_400, "2000-02-29 Tuesday 00:00:00 060"),
            (1_772_323_199, "2026-02-28 Saturday 23:59:59 059"),
            (4_102_444_800, "2100-01-01 Friday 00:00:00 001"),
        ];
        for (seconds, expected) in cases {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(format_time("%Y-%m-%d %A %H:%M:%S %j", time), expected);
        }
        // With `%I %p`: noon and midnight are 12; ends of months and of leap years.
        let cases = [
            (978_303_601, "2000-12-31 Sunday 23:00:01 366 11 PM"),
            (1_706_749_323, "2024-02-01 Thursday 01:02:03 032 01 AM"),
            (1_709_210_096, "2024-02-29 Thursday 12:34:56 060 12 PM"),
            (1_735_603_200, "2024-12-31 Tuesday 00:00:00 366 12 AM"),
            (1_769_905_800, "2026-02-01 Sunday 00:30:00 032 12 AM"),
            (1_772_370_309, "2026-03-01 Sunday 13:05:09 060 01 PM"),
            (4_107_585_599, "2100-03-01 Monday 11:59:59 060 11 AM"),
        ];
        for (seconds, expected) in cases {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            assert_eq!(format_time("%Y-%m-%d %A %H:%M:%S %j %I %p", time), expected);
        }
        let morning = UNIX_EPOCH + Duration::from_secs(1_735_710_005);
        assert_eq!(
            format_time("%d %b %Y|%-d %B|%e|%I %p|%y|%a|%%|%Q|%", morning),
            "01 Jan 2025|1 January| 1|05 AM|25|Wed|%|%Q|%"
        );
    }
}
