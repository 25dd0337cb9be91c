//! A point in time in the format of Java's `Date`, which `dump` prints.

use std::fmt;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [(&str, i64); 12] = [
    ("Jan", 31),
    ("Feb", 28),
    ("Mar", 31),
    ("Apr", 30),
    ("May", 31),
    ("Jun", 30),
    ("Jul", 31),
    ("Aug", 31),
    ("Sep", 30),
    ("Oct", 31),
    ("Nov", 30),
    ("Dec", 31),
];

/// Milliseconds since 1970, printed as `Sat Nov 21 14:16:05 UTC 2026`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Date(pub(super) i64);

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = self.0.max(0);
        let (mut day, second) = (ms / DAY_MS, ms % DAY_MS / 1_000);
        let weekday = DAYS[usize::try_from(day % 7).expect("a remainder of 7")];
        let mut year = 1970;
        while day >= days_of(year) {
            day -= days_of(year);
            year += 1;
        }
        let mut name = "Jan";
        for (month, days) in MONTHS {
            let days = if month == "Feb" { days + days_of(year) - 365 } else { days };
            name = month;
            if day < days {
                break;
            }
            day -= days;
        }
        let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
        write!(f, "{weekday} {name} {:02} {hour:02}:{minute:02}:{second:02} UTC {year}", day + 1)
    }
}

fn days_of(year: i64) -> i64 {
    365 + i64::from(year % 4 == 0 && (year % 100 != 0 || year % 400 == 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_printed_as_java_prints_them() {
        // `TZ=UTC date -d @… '+%a %b %d %H:%M:%S %Z %Y'`
        let known = [
            (0, "Thu Jan 01 00:00:00 UTC 1970"),
            (951_782_399_999, "Mon Feb 28 23:59:59 UTC 2000"),
            (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000"),
            (1_709_251_200_000, "Fri Mar 01 00:00:00 UTC 2024"),
            (1_795_270_565_000, "Sat Nov 21 14:16:05 UTC 2026"),
            (4_102_444_799_000, "Thu Dec 31 23:59:59 UTC 2099"),
        ];
        for (ms, text) in known {
            assert_eq!(Date(ms).to_string(), text);
        }
    }
}
