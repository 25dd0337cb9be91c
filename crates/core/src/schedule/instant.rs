//! Instants as people, files and job ids have them: RFC 3339.

use jiff::Timestamp;

use crate::time::WallMillis;

/// Where every calendar ends, 2500-01-01T00:00:00Z: what nobody here will see. It bounds the search for the next tick of
/// an expression that has none.
pub const END: WallMillis = WallMillis(16_725_225_600_000);

/// A text that is no instant of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "instant {given:?} must be RFC 3339 between 1970 and 2499, in whole milliseconds, such as 2026-11-21T02:00:00Z"
)]
pub struct InstantError {
    /// What was given.
    pub given: String,
}

/// RFC 3339 in UTC, with as many digits of a second as it takes: `2026-11-21T02:00:00Z`. One instant has one text.
#[must_use]
pub fn text(at: WallMillis) -> String {
    let at = WallMillis(at.0.min(END.0));
    stamp(at).to_string()
}

/// Reads RFC 3339 with any offset.
///
/// # Errors
/// When it is another form, outside 1970 to 2499, or has parts of a millisecond.
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
    fn an_instant_has_one_text_and_is_read_back_from_it() {
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
    fn what_is_no_instant_is_refused() {
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
