//! Time for people and for programs.

use std::time::{SystemTime, UNIX_EPOCH};

/// Unix time of this machine in milliseconds.
pub fn now_millis() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

/// Year to second of seconds since 1970.
pub fn calendar(seconds: i64) -> [i64; 6] {
    let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Counted from 0000-03-01, so that the day of a leap year comes last.
    let days = days + 719_468;
    let (era, day) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    [era * 400 + year + next, month, day, rest / 3600, rest / 60 % 60, rest % 60]
}

/// `2026-11-30T01:02:03.004Z` of Unix milliseconds.
pub fn rfc3339(millis: u64) -> String {
    let [year, month, day, hour, minute, second] = calendar(i64::try_from(millis / 1000).unwrap_or(i64::MAX));
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", millis % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_164_800_042), "2024-02-29T00:00:00.042Z");
        assert_eq!(calendar(-1), [1969, 12, 31, 23, 59, 59]);
    }
}
