//! Values with one form as text, in JSON and on the command line: durations, instants, cron expressions, zones and names.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;
use std::time::{Duration, SystemTime};

use bellwether::client::rfc3339;
use bellwether::placement::StrategyName;
use bellwether::schedule::{CronExpression, Zone};
use bellwether::{GroupId, JobId, Kind, Lane, ScheduleId, Tag};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// A type whose values are written as text.
pub trait Textual: Clone + Send + Sync + 'static {
    /// Its name in the OpenAPI document.
    const NAME: &'static str;
    /// What an error for another type of value expects.
    const EXPECTED: &'static str;

    /// Reads a text.
    fn parse(text: &str) -> Result<Self, String>;

    /// Adds the form of the text to its schema.
    fn describe(schema: ObjectBuilder) -> ObjectBuilder;
}

/// A value that is read from its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text<T>(pub T);

/// A duration, such as `30s`.
pub type DurationText = Text<Duration>;
/// An instant, such as `2026-11-21T11:33:00Z`.
pub type InstantText = Text<SystemTime>;
/// A cron expression, such as `0 3 * * *`.
pub(crate) type CronText = Text<CronExpression>;
/// A zone, such as `Europe/Berlin`.
pub(crate) type ZoneText = Text<Zone>;
/// The id of a group.
pub type GroupIdText = Text<GroupId>;
/// The id of a job, chosen or composed.
pub type JobIdText = Text<JobId>;
/// The name of a kind.
pub type KindText = Text<Kind>;
/// The name of a lane.
pub type LaneText = Text<Lane>;
/// The id of a schedule.
pub(crate) type ScheduleText = Text<ScheduleId>;
/// The name of a placement strategy.
pub(crate) type StrategyText = Text<StrategyName>;
/// A tag of workers.
pub type TagText = Text<Tag>;

impl Textual for Duration {
    const NAME: &'static str = "Duration";
    const EXPECTED: &'static str = "a duration as text";

    fn parse(text: &str) -> Result<Self, String> {
        let read = text.parse::<bellwether::DurationText>();
        read.map(Into::into).map_err(|error| error.to_string())
    }

    fn describe(schema: ObjectBuilder) -> ObjectBuilder {
        let text = "A whole number and a unit: ms, s, m, h or d. At most 64 bits of milliseconds.";
        let schema = schema.description(Some(text)).pattern(Some("^[0-9]+(ms|s|m|h|d)$"));
        schema.examples(["500ms", "30s", "5m", "1h", "1d"])
    }
}

/// RFC 3339 with an offset.
impl Textual for SystemTime {
    const NAME: &'static str = "Instant";
    const EXPECTED: &'static str = "an instant as text";

    fn parse(text: &str) -> Result<Self, String> {
        let at = text.parse::<jiff::Timestamp>().map_err(|_| {
            // The longest valid instant is shorter; a body may contain a much longer text.
            let given: String = text.chars().take(64).collect();
            format!("{given:?} is not an instant: give date, time and offset, such as 2026-11-21T11:33:00Z")
        })?;
        Ok(at.into())
    }

    fn describe(schema: ObjectBuilder) -> ObjectBuilder {
        let schema = schema.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
        let schema = schema.description(Some("RFC 3339 with an offset."));
        schema.examples(["2026-11-21T11:33:00Z", "2026-11-21T12:33:00+01:00"])
    }
}

impl Textual for CronExpression {
    const NAME: &'static str = "CronExpression";
    const EXPECTED: &'static str = "a cron expression";

    fn parse(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }

    fn describe(schema: ObjectBuilder) -> ObjectBuilder {
        let text = "A cron expression with five fields (minute, hour, day of month, month, day of week), or with six \
                    of which the first is the second.";
        schema.description(Some(text)).examples(["0 3 * * *"])
    }
}

impl Textual for Zone {
    const NAME: &'static str = "Zone";
    const EXPECTED: &'static str = "the name of a zone";

    fn parse(text: &str) -> Result<Self, String> {
        Self::new(text).map_err(|error| error.to_string())
    }

    fn describe(schema: ObjectBuilder) -> ObjectBuilder {
        schema.description(Some("The name of an IANA time zone.")).examples(["Europe/Berlin", "UTC"])
    }
}

/// A name that a user chooses, such as the id of a job or a group.
#[derive(Debug, Clone)]
pub struct ChosenName;

/// The text of a chosen name. It describes a field that is a string until the library has checked it.
pub type NameText = Text<ChosenName>;

impl Textual for ChosenName {
    const NAME: &'static str = "Name";
    const EXPECTED: &'static str = "a name as text";

    fn parse(text: &str) -> Result<Self, String> {
        JobId::plain(text).map(|_| Self).map_err(|error| error.to_string())
    }

    fn describe(schema: ObjectBuilder) -> ObjectBuilder {
        let schema =
            schema.description(Some("A name that the caller chooses.")).pattern(Some(Kind::pattern()));
        schema.examples(["sum-1", "2026-11-21"])
    }
}

macro_rules! names {
    ($($type:ident, $name:literal, $text:literal, $examples:expr;)*) => {$(
        impl Textual for $type {
            const NAME: &'static str = $name;
            const EXPECTED: &'static str = "a name as text";

            fn parse(text: &str) -> Result<Self, String> {
                Self::new(text).map_err(|error| error.to_string())
            }

            fn describe(schema: ObjectBuilder) -> ObjectBuilder {
                schema.description(Some($text)).pattern(Some(Self::pattern())).examples($examples)
            }
        }
    )*};
}

names! {
    JobId, "JobId", "Id of a job, chosen or composed.", ["sum-1", "sum:2026-11-21"];
    Kind, "KindName", "Name of a kind.", ["sum"];
    Lane, "LaneName", "Name of a lane.", ["frames"];
    GroupId, "GroupId", "Id of a group.", ["2026-11-21"];
    ScheduleId, "ScheduleId", "Id of a schedule.", ["nightly"];
    StrategyName, "StrategyName", "Name of a placement strategy.", ["rendezvous"];
    Tag, "Tag", "A tag of workers.", ["gpu"];
}

impl<T: Textual> FromStr for Text<T> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        T::parse(text).map(Self)
    }
}

impl<'de, T: Textual> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read<T>(PhantomData<T>);

        impl<T: Textual> Visitor<'_> for Read<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<T>, E> {
                text.parse().map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Read(PhantomData))
    }
}

impl Serialize for InstantText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&rfc3339(self.0))
    }
}

impl Serialize for CronText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl Serialize for ZoneText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0.as_str())
    }
}

impl fmt::Display for DurationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        bellwether::DurationText(self.0).fmt(f)
    }
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        bellwether::DurationText(self.0).serialize(serializer)
    }
}

impl<T: Textual> PartialSchema for Text<T> {
    fn schema() -> RefOr<Schema> {
        T::describe(ObjectBuilder::new().schema_type(Type::String)).into()
    }
}

impl<T: Textual> ToSchema for Text<T> {
    fn name() -> Cow<'static, str> {
        T::NAME.into()
    }
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use super::*;

    #[test]
    fn an_instant_has_an_offset() {
        let noon = UNIX_EPOCH + Duration::from_secs(12 * 3600);
        for text in ["1970-01-01T12:00:00Z", "1970-01-01T13:00:00+01:00", "1970-01-01T12:00:00.000Z"] {
            assert_eq!(SystemTime::parse(text), Ok(noon), "{text}");
        }
        for refused in ["", "now", "12:00", "1970-01-01", "1970-01-01T12:00:00", "1970-02-30T12:00:00Z"] {
            assert!(SystemTime::parse(refused).unwrap_err().contains("such as 2026"), "{refused}");
        }
        assert!(SystemTime::parse(&"9".repeat(100_000)).unwrap_err().len() < 200);
    }
}
