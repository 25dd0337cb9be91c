//! Schemas of OpenAPI for the values of requests that are one text.

use std::borrow::Cow;

use clap::ValueEnum;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::change::ChangeKind;
use crate::duration::DurationText;
use crate::instant::InstantText;
use crate::job::AttemptOutcome;
use crate::job::identity::IfExists;
use crate::name::{GroupId, JobId, Kind, Lane, ScheduleId, StrategyName, Tag};
use crate::schedule::{CronExpression, Overlap, SkipReason, Zone};

/// A name that the caller chooses. It describes a field that is a string until it is checked.
#[derive(Debug)]
#[non_exhaustive]
pub struct Name;

macro_rules! schemas {
    ($($type:ty = $name:literal, $description:literal, $examples:expr, $more:expr;)*) => {$(
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                let more: fn(ObjectBuilder) -> ObjectBuilder = $more;
                let text = ObjectBuilder::new().schema_type(Type::String).description(Some($description));
                more(text).examples($examples).into()
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }
    )*};
}

schemas! {
    DurationText = "Duration", "A whole number and a unit: ms, s, m, h or d. At most 64 bits of milliseconds.",
        ["500ms", "30s", "5m", "1h", "1d"], |text| text.pattern(Some("^[0-9]+(ms|s|m|h|d)$"));
    InstantText = "Instant", "RFC 3339 with an offset.", ["2026-11-21T11:33:00Z", "2026-11-21T12:33:00+01:00"],
        |text| text.format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)));
    CronExpression = "CronExpression", "A cron expression with five fields (minute, hour, day of month, month, day of \
        week), or with six of which the first is the second.", ["0 3 * * *"], |text| text;
    Zone = "Zone", "The name of an IANA time zone.", ["Europe/Berlin", "UTC"], |text| text;
    Name = "Name", "A name that the caller chooses.", ["sum-1", "2026-11-21"],
        |text| text.pattern(Some(Kind::pattern()));
    JobId = "JobId", "Id of a job, chosen or composed.", ["sum-1", "sum:2026-11-21"],
        |text| text.pattern(Some(JobId::pattern()));
    Kind = "KindName", "Name of a kind.", ["sum"], |text| text.pattern(Some(Kind::pattern()));
    Lane = "LaneName", "Name of a lane.", ["frames"], |text| text.pattern(Some(Lane::pattern()));
    GroupId = "GroupId", "Id of a group.", ["2026-11-21"], |text| text.pattern(Some(GroupId::pattern()));
    ScheduleId = "ScheduleId", "Id of a schedule.", ["nightly"], |text| text.pattern(Some(ScheduleId::pattern()));
    StrategyName = "StrategyName", "Name of a placement strategy.", ["rendezvous"],
        |text| text.pattern(Some(StrategyName::pattern()));
    Tag = "Tag", "A tag of workers.", ["gpu"], |text| text.pattern(Some(Tag::pattern()));
}

/// Returns the schema of a closed list of values, with the meaning of each: its documentation.
#[must_use]
pub fn values<T: ValueEnum>(description: &str) -> RefOr<Schema> {
    let values = T::value_variants().iter().filter_map(T::to_possible_value).collect::<Vec<_>>();
    let meanings = values.iter().map(|value| {
        let meaning = value.get_help().map(ToString::to_string).unwrap_or_default();
        format!("* `{}`: {}.", value.get_name(), meaning.trim_end_matches('.'))
    });
    let text = [description.to_owned(), String::new()].into_iter().chain(meanings).collect::<Vec<_>>();
    let names = values.iter().map(|value| value.get_name().to_owned());
    let schema = ObjectBuilder::new().schema_type(Type::String).description(Some(text.join("\n")));
    schema.enum_values(Some(names)).into()
}

/// Implements the schema of a closed list of values.
#[macro_export]
#[doc(hidden)]
macro_rules! impl_values {
    ($($type:ident, $description:literal;)*) => {$(
        impl utoipa::PartialSchema for $type {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                $crate::describe::values::<Self>($description)
            }
        }

        impl utoipa::ToSchema for $type {
            fn name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }
        }
    )*};
}

impl_values! {
    AttemptOutcome, "How an attempt ended.";
    ChangeKind, "What the author of a change did.";
    IfExists, "What to do if a job with this id exists.";
    Overlap, "What to do with a tick while the job of the last tick has not ended.";
    SkipReason, "Why ticks got no job.";
}
