//! Durations and instants as text.

use std::borrow::Cow;
use std::time::SystemTime;

use bellwether::DurationText;
use serde::de::{Deserialize, Deserializer, Error as _};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// The schema of [`DurationText`].
pub struct DurationSchema;

impl PartialSchema for DurationSchema {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some(
                "A whole number and a unit: ms, s, m, h or d. At most 64 bits of milliseconds.",
            ))
            .pattern(Some("^[0-9]+(ms|s|m|h|d)$"))
            .examples(["500ms", "30s", "5m", "1h", "1d"]);
        text.into()
    }
}

impl ToSchema for DurationSchema {
    fn name() -> Cow<'static, str> {
        "Duration".into()
    }
}

/// Parses a duration such as `10s`, `500ms`, `2m`, `1h` or `1d`.
pub fn duration(text: &str) -> Result<std::time::Duration, String> {
    text.parse()
        .map(|DurationText(duration)| duration)
        .map_err(|error: bellwether::DurationError| error.to_string())
}

/// An instant in RFC 3339 with an offset: `2026-11-21T11:33:00Z`, `2026-11-21T12:33:00+01:00`.
#[derive(Debug, Clone, Copy)]
pub struct InstantText(pub SystemTime);

impl<'de> Deserialize<'de> for InstantText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        instant(&text).map(Self).map_err(D::Error::custom)
    }
}

impl PartialSchema for InstantText {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("RFC 3339 with an offset."))
            .examples(["2026-11-21T11:33:00Z", "2026-11-21T12:33:00+01:00"]);
        text.into()
    }
}

impl ToSchema for InstantText {
    fn name() -> Cow<'static, str> {
        "Instant".into()
    }
}

/// Parses RFC 3339 with an offset.
pub fn instant(text: &str) -> Result<SystemTime, String> {
    let at = text.parse::<jiff::Timestamp>().map_err(|_| {
        // The longest valid instant is shorter; a body may contain a much longer text.
        let given: String = text.chars().take(64).collect();
        format!("{given:?} is not an instant: give date, time and offset, such as 2026-11-21T11:33:00Z")
    })?;
    Ok(at.into())
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    #[test]
    fn an_instant_has_an_offset() {
        let noon = UNIX_EPOCH + Duration::from_secs(12 * 3600);
        for text in ["1970-01-01T12:00:00Z", "1970-01-01T13:00:00+01:00", "1970-01-01T12:00:00.000Z"] {
            assert_eq!(instant(text), Ok(noon), "{text}");
        }
        for refused in ["", "now", "12:00", "1970-01-01", "1970-01-01T12:00:00", "1970-02-30T12:00:00Z"] {
            assert!(instant(refused).unwrap_err().contains("such as 2026"), "{refused}");
        }
        assert!(instant(&"9".repeat(100_000)).unwrap_err().len() < 200);
    }
}
