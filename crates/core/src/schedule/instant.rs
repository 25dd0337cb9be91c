//! Instants in user input, files and job ids: RFC 3339.

use jiff::Timestamp;

use crate::time::WallMillis;

/// The end of every calendar, 2500-01-01T00:00:00Z. It bounds the search for the next tick of an expression that has no
/// ticks.
pub const END: WallMillis = WallMillis(16_725_225_600_000);

/// A text is not a valid instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "instant {given:?} must be RFC 3339 between 1970 and 2499, in whole milliseconds, such as 2026-11-21T02:00:00Z"
)]
pub struct InstantError {
    /// The given text.
    pub given: String,
}

/// Formats an instant as RFC 3339 in UTC, with as few fraction digits as possible: `2026-11-21T02:00:00Z`. An
/// instant has exactly one such text.
#[must_use]
pub fn text(at: WallMillis) -> String {
    let at = WallMillis(at.0.min(END.0));
    stamp(at).to_string()
}

/// Parses RFC 3339 with any offset.
///
/// # Errors
/// If it has another form, is outside 1970 to 2499, or has fractions of a millisecond.
pub fn parse(given: &str) -> Result<WallMillis, InstantError> {
    let refused = || InstantError { given: given.chars().take(64).collect() };
    let at = given.trim().parse::<Timestamp>().map_err(|_| refused())?;
    let millis = u64::try_from(at.as_millisecond()).map_err(|_| refused())?;
    let whole = at.subsec_nanosecond() % 1_000_000 == 0;
    Some(WallMillis(millis)).filter(|at| whole && *at <= END).ok_or_else(refused)
}

pub(super) fn stamp(at: WallMillis) -> Timestamp {
    let millis = i64::try_from(at.0).unwrap_or(i64::MAX);
    Timestamp::from_millisecond(millis).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_has_one_text_and_survives_a_round_trip() {
        for (millis, written) in [
            (0, "1970-01-01T00:00:00Z"),
            (1_795_226_400_000, "2026-11-21T02:00:00Z"),
            (1_795_226_400_250, "2026-11-21T02:00:00.25Z"),
            (END.0, "2500-01-01T00:00:00Z"),
        ] {
            assert_eq!(text(WallMillis(millis)), written);
            assert_eq!(parse(written), Ok(WallMillis(millis)));
        }
        assert_eq!(parse("2026-11-21T03:00:00+01:00"), parse("2026-11-21T02:00:00Z"));
    }

    #[test]
    fn an_invalid_instant_is_refused() {
        for given in [
            "",
            "tomorrow",
            "2026-11-21",
            "2026-11-21T02:00:00",
            "1969-12-31T23:59:59Z",
            "2500-01-01T00:00:01Z",
            "2026-11-21T02:00:00.0001Z",
            "2026-02-30T00:00:00Z",
        ] {
            let error = parse(given).unwrap_err().to_string();
            assert!(error.starts_with(&format!("instant {given:?} must be RFC 3339")), "{error}");
        }
    }
}
