//! An instant as text: RFC 3339.
//!
//! The command line, files and HTTP have this one form.

use std::fmt;
use std::str::FromStr;
use std::time::SystemTime;

use jiff::Timestamp;

use crate::time::WallMillis;

/// Longest part of a text that an error repeats, in characters. The longest valid text is shorter.
const MAX_REPEATED: usize = 64;

/// An instant that is read as RFC 3339 with any offset, and written in UTC with milliseconds.
///
/// ```
/// # use bellwether_core::instant::InstantText;
/// let at = "2026-11-21T12:33:00+01:00".parse::<InstantText>()?;
/// assert_eq!(at.to_string(), "2026-11-21T11:33:00.000Z");
/// # Ok::<(), bellwether_core::instant::InstantTextError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstantText(pub SystemTime);

/// A text is not an instant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is not an instant: give date, time and offset, such as 2026-11-21T11:33:00Z")]
#[non_exhaustive]
pub struct InstantTextError {
    /// The text; of a long text only its beginning.
    given: String,
}

impl From<SystemTime> for InstantText {
    fn from(at: SystemTime) -> Self {
        Self(at)
    }
}

impl From<InstantText> for SystemTime {
    fn from(text: InstantText) -> Self {
        text.0
    }
}

impl FromStr for InstantText {
    type Err = InstantTextError;

    fn from_str(text: &str) -> Result<Self, InstantTextError> {
        let at = text.parse::<Timestamp>();
        at.map(|at| Self(at.into()))
            .map_err(|_| InstantTextError { given: text.chars().take(MAX_REPEATED).collect() })
    }
}

/// An instant before 1970 is written as 1970.
impl fmt::Display for InstantText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&WallMillis::from(self.0).to_string())
    }
}

crate::text::impl_serde!(InstantText, "an instant as text, such as \"2026-11-21T11:33:00Z\"");

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn an_instant_has_an_offset() {
        let noon = UNIX_EPOCH + Duration::from_secs(12 * 3600);
        for text in ["1970-01-01T12:00:00Z", "1970-01-01T13:00:00+01:00", "1970-01-01T12:00:00.000Z"] {
            assert_eq!(text.parse(), Ok(InstantText(noon)), "{text}");
        }
        for refused in ["", "now", "12:00", "1970-01-01", "1970-01-01T12:00:00", "1970-02-30T12:00:00Z"] {
            let error = refused.parse::<InstantText>().unwrap_err().to_string();
            assert!(error.contains("such as 2026"), "{error}");
        }
        assert!("9".repeat(100_000).parse::<InstantText>().unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn an_instant_is_a_string_in_a_document() {
        let noon = serde_json::from_str::<InstantText>("\"1970-01-01T12:00:00Z\"").unwrap();
        assert_eq!(serde_json::to_string(&noon).unwrap(), "\"1970-01-01T12:00:00.000Z\"");
        let error = serde_json::from_str::<InstantText>("5").unwrap_err().to_string();
        assert!(error.contains("expected an instant as text"), "{error}");
    }
}
