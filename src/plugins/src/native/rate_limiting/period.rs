//! Windows of rate limits, aligned to the UTC calendar.

/// Length of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Period {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Year,
}

const DAY: u64 = 86_400;

impl Period {
    /// Name in counters.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day",
            Self::Month => "month",
            Self::Year => "year",
        }
    }

    /// Seconds as told to clients: 30 days a month, 365 a year.
    /// Source: Kong 3.9.1 `kong/plugins/rate-limiting/expiration.lua`.
    pub(super) const fn seconds(self) -> u64 {
        match self {
            Self::Second => 1,
            Self::Minute => 60,
            Self::Hour => 3600,
            Self::Day => DAY,
            Self::Month => 30 * DAY,
            Self::Year => 365 * DAY,
        }
    }

    /// Beginning and end of the window that holds `now`, all in Unix seconds.
    pub(super) fn window(self, now: u64) -> (u64, u64) {
        match self {
            Self::Month => {
                let (year, month) = civil(now / DAY);
                let (next_year, next) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
                (first_day(year, month) * DAY, first_day(next_year, next) * DAY)
            }
            Self::Year => {
                let (year, _) = civil(now / DAY);
                (first_day(year, 1) * DAY, first_day(year + 1, 1) * DAY)
            }
            fixed => {
                let start = now - now % fixed.seconds();
                (start, start + fixed.seconds())
            }
        }
    }
}

/// Year and month of a day since 1970, in the Gregorian calendar. Counts years from March, so that the leap day is
/// the last of its year.
fn civil(day: u64) -> (u64, u64) {
    let day = day + 719_468; // from 0000-03-01
    let (era, day) = (day / 146_097, day % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // from March
    let year = era * 400 + year;
    if month < 10 { (year, month + 3) } else { (year + 1, month - 9) }
}

/// The first day of a month, in days since 1970.
fn first_day(year: u64, month: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (era, year) = (year / 400, year % 400);
    let day = (153 * month + 2) / 5;
    era * 146_097 + 365 * year + year / 4 - year / 100 + day - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_follow_the_clock_and_the_calendar() {
        let now = 1_709_210_096; // 2024-02-29 12:34:56
        for (period, start, end) in [
            (Period::Second, 1_709_210_096, 1_709_210_097),
            (Period::Minute, 1_709_210_040, 1_709_210_100),
            (Period::Hour, 1_709_208_000, 1_709_211_600),
            (Period::Day, 1_709_164_800, 1_709_251_200),
            (Period::Month, 1_706_745_600, 1_709_251_200),
            (Period::Year, 1_704_067_200, 1_735_689_600),
        ] {
            assert_eq!(period.window(now), (start, end), "{period:?}");
        }
    }

    #[test]
    fn windows_of_months_and_years_follow_each_other_without_a_gap() {
        for period in [Period::Month, Period::Year] {
            let mut at = 0;
            for _ in 0..1500 {
                let (start, end) = period.window(at);
                assert_eq!(start, at);
                assert_eq!(period.window(end - 1), (start, end));
                at = end;
            }
        }
        assert_eq!(Period::Year.window(946_684_799), (915_148_800, 946_684_800), "the last second of 1999");
    }
}
