//! A duration as text: a whole number and a unit, such as `1500ms`, `30s`, `5m`, `1h` or `1d`.
//!
//! The command line, files, HTTP and the options of a job have this one form.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::time::as_millis;

/// The units, largest first, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The most days whose milliseconds 64 bits can count.
const MAX_DAYS: u64 = u64::MAX / UNITS[0].1;

/// Longest text that an error repeats, in bytes. The longest valid text has 22.
const MAX_REPEATED: usize = 64;

/// A duration that is read and written as text, with a resolution of a millisecond.
///
/// The text is exact: parsing the printed text gives the same number of milliseconds. A duration that was not parsed
/// is printed in whole milliseconds, of which `u64` has the maximum.
///
/// ```
/// # use std::time::Duration;
/// # use bellwether_core::duration::DurationText;
/// let lease = "90s".parse::<DurationText>()?;
/// assert_eq!(Duration::from(lease), Duration::from_secs(90));
/// assert_eq!(DurationText(Duration::from_secs(300)).to_string(), "5m");
/// # Ok::<(), bellwether_core::duration::DurationError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DurationText(pub Duration);

/// A text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DurationError {
    /// It is not a whole number with a unit.
    #[error("{given} is not a duration: give a whole number and a unit, such as 500ms, 10s, 2m, 1h or 1d")]
    Malformed {
        /// The text, in quotes; of a long text only its length.
        given: String,
    },
    /// It has more milliseconds than 64 bits can count.
    #[error("{given} is too long for a duration: give at most {MAX_DAYS}d, such as 500ms, 10s, 2m, 1h or 1d")]
    TooLong {
        /// The text, in quotes; of a long text only its length.
        given: String,
    },
}

impl DurationText {
    /// Returns whether a value is within bounds, and otherwise the bounds as errors name them: `1s to 7d`.
    ///
    /// # Errors
    /// The bounds, if the value is outside of them.
    pub fn within(self, least: Duration, most: Duration) -> Result<(), String> {
        if (least..=most).contains(&self.0) {
            Ok(())
        } else {
            Err(format!("{} to {}", Self(least), Self(most)))
        }
    }
}

impl From<Duration> for DurationText {
    fn from(duration: Duration) -> Self {
        Self(duration)
    }
}

impl From<DurationText> for Duration {
    fn from(text: DurationText) -> Self {
        text.0
    }
}

impl FromStr for DurationText {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, DurationError> {
        let malformed = || DurationError::Malformed { given: repeated(text) };
        let too_long = || DurationError::TooLong { given: repeated(text) };
        let (number, unit) = text.split_at(text.bytes().take_while(u8::is_ascii_digit).count());
        let (_, millis) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?;
        if number.is_empty() {
            return Err(malformed());
        }
        // Only digits: what remains is an overflow.
        let number = number.parse::<u64>().map_err(|_| too_long())?;
        let millis = number.checked_mul(millis).ok_or_else(too_long)?;
        Ok(Self(Duration::from_millis(millis)))
    }
}

/// Returns a text as an error repeats it.
fn repeated(text: &str) -> String {
    if text.len() > MAX_REPEATED { format!("a text of {} bytes", text.len()) } else { format!("{text:?}") }
}

/// In the largest unit that is exact: `90s`, but `2m`.
impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = as_millis(self.0);
        if millis == 0 {
            return f.pad("0s");
        }
        let exact = UNITS.into_iter().find(|(_, unit)| millis.is_multiple_of(*unit));
        let (name, unit) = exact.expect("every number of milliseconds is a multiple of one");
        f.pad(&format!("{}{name}", millis / unit))
    }
}

crate::text::impl_serde!(
    DurationText,
    "a duration as text, such as \"500ms\", \"10s\", \"2m\", \"1h\" or \"1d\""
);

/// Parses the text of a duration.
///
/// # Errors
/// [`DurationError`].
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    text.parse::<DurationText>().map(Duration::from)
}

/// A field of type [`Duration`] as text: `#[serde(with = "text")]`.
pub mod text {
    use super::*;

    /// Writes the text.
    ///
    /// # Errors
    /// The errors of the serializer.
    pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        DurationText(*duration).serialize(serializer)
    }

    /// Reads the text.
    ///
    /// # Errors
    /// The text is not a duration, or an error of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        DurationText::deserialize(deserializer).map(Duration::from)
    }
}

/// A field of type `Option<Duration>` as text or null: `#[serde(with = "optional_text")]`.
pub mod optional_text {
    use super::*;

    /// Writes the text.
    ///
    /// # Errors
    /// The errors of the serializer.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        duration.map(DurationText).serialize(serializer)
    }

    /// Reads the text.
    ///
    /// # Errors
    /// The text is not a duration, or an error of the deserializer.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<DurationText>::deserialize(deserializer)?.map(Duration::from))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Duration, String> {
        text.parse().map(|DurationText(duration)| duration).map_err(|error: DurationError| error.to_string())
    }

    #[test]
    fn a_duration_is_a_whole_number_and_a_unit() {
        for (text, millis) in [
            ("500ms", 500),
            ("0s", 0),
            ("007s", 7_000),
            ("2m", 120_000),
            ("1h", 3_600_000),
            ("1d", 86_400_000),
        ] {
            assert_eq!(read(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for refused in [
            "", "10", "s", "-1s", "+1s", "1.5s", "10 s", " 1s", "1s ", "10sec", "1S", "1µs", "1é", "٣s",
            "1s1s", "\0",
        ] {
            let error = read(refused).unwrap_err();
            assert_eq!(
                error,
                format!(
                    "{refused:?} is not a duration: give a whole number and a unit, such as 500ms, 10s, 2m, 1h or 1d"
                )
            );
        }
    }

    #[test]
    fn an_overflow_is_refused_with_the_longest_duration() {
        assert_eq!(read(&format!("{}ms", u64::MAX)), Ok(Duration::from_millis(u64::MAX)));
        assert!(read(&format!("{MAX_DAYS}d")).is_ok());
        for text in
            [format!("{}d", MAX_DAYS + 1), format!("{}s", u64::MAX), "18446744073709551616ms".to_owned()]
        {
            assert!(
                read(&text).unwrap_err().contains("is too long for a duration: give at most 213503982334d"),
                "{text}"
            );
        }
    }

    #[test]
    fn an_error_does_not_repeat_a_long_text() {
        let long = "é".repeat(100_000);
        assert!(read(&long).unwrap_err().starts_with("a text of 200000 bytes is not a duration"));
        let digits = "9".repeat(100_000) + "s";
        assert!(read(&digits).unwrap_err().starts_with("a text of 100001 bytes is too long"));
    }

    #[test]
    fn a_duration_is_printed_in_the_largest_exact_unit() {
        for text in ["0s", "1ms", "1500ms", "61s", "90m", "36h", "1d", "18446744073709551615ms"] {
            assert_eq!(text.parse::<DurationText>().unwrap().to_string(), text);
        }
        assert_eq!(DurationText(Duration::from_micros(1_999)).to_string(), "1ms");
        assert_eq!(DurationText(Duration::MAX).to_string(), "18446744073709551615ms");
    }

    proptest! {
        #[test]
        fn parsing_a_printed_duration_is_the_identity(
            number in any::<u64>(),
            (_, unit) in proptest::sample::select(&UNITS[..]),
        ) {
            let duration = Duration::from_millis(number / unit * unit);
            prop_assert_eq!(read(&DurationText(duration).to_string()), Ok(duration));
        }

        #[test]
        fn an_accepted_text_is_its_number_times_its_unit(text in "[0-9]{0,21}(ms|s|m|h|d|é|x)?|\\PC*") {
            if let Ok(duration) = read(&text) {
                let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap());
                let (_, unit) = UNITS.into_iter().find(|(name, _)| *name == unit).unwrap();
                prop_assert_eq!(duration.as_millis(), number.parse::<u128>().unwrap() * u128::from(unit));
            }
        }
    }

    #[test]
    fn fields_are_read_from_text_and_written_as_text() {
        #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Settings {
            #[serde(with = "text")]
            wait: Duration,
            #[serde(with = "optional_text")]
            limit: Option<Duration>,
        }
        for (limit, stored) in [
            (None, r#"{"wait":"90s","limit":null}"#),
            (Some(Duration::from_secs(120)), r#"{"wait":"90s","limit":"2m"}"#),
        ] {
            let settings = Settings { wait: Duration::from_secs(90), limit };
            assert_eq!(serde_json::to_string(&settings).unwrap(), stored);
            assert_eq!(serde_json::from_str::<Settings>(stored).unwrap(), settings);
        }
        let error = serde_json::from_str::<DurationText>("5").unwrap_err().to_string();
        assert!(error.contains("expected a duration as text, such as \"500ms\""), "{error}");
        let error = serde_json::from_str::<DurationText>("\"5\"").unwrap_err().to_string();
        assert!(error.starts_with("\"5\" is not a duration"), "{error}");
        assert_eq!(DurationText::from(Duration::from_secs(3)), DurationText(Duration::from_secs(3)));
    }

    #[test]
    fn an_error_repeats_a_text_of_up_to_64_bytes() {
        assert!(read(&"x".repeat(64)).unwrap_err().starts_with("\"xxx"));
        assert!(read(&"x".repeat(65)).unwrap_err().starts_with("a text of 65 bytes"));
    }
}
