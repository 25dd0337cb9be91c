//! The rule by which a schedule ticks, and how it handles late and overlapping ticks.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use bellwether_core::duration::DurationText;
use bellwether_core::instant::InstantText;
use bellwether_core::schedule as stored;
use bellwether_core::schedule::{CronExpression, SpecError, Zone};
use bellwether_core::time::WallMillis;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::schedule::{Misfire, When};

/// The limits of [`Misfire::CatchUp`] if none are given.
const DEFAULT_CATCH_UP: (u32, Duration) = (10, Duration::from_secs(24 * 3600));

/// Reads an optional text, and checks that it parses as `T`.
pub(super) fn valid<'de, T: FromStr<Err = SpecError>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let given = Option::<String>::deserialize(deserializer)?;
    given.as_deref().map(str::parse::<T>).transpose().map_err(D::Error::custom)?;
    Ok(given)
}

/// Checks that an argument parses as `T`.
#[cfg(feature = "describe")]
pub(super) fn argument<T: FromStr<Err = SpecError>>(text: &str) -> Result<String, SpecError> {
    text.parse::<T>().map(|_| text.to_owned())
}

/// Defines a struct with the fields of a rule and its own fields. With serde's `flatten` instead, an error would not name
/// the field or the line. The first argument is the attribute with which utoipa describes a field.
macro_rules! with_rule {
    ([$about:ident] $(#[$attribute:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $(#[$attribute])*
        pub struct $name {
            /// Tick at the times of a cron expression with five fields (minute, hour, day of month, month, day of week), or
            /// with six of which the first is the second.
            #[cfg_attr(
                feature = "describe",
                arg(
                    long,
                    value_name = "EXPRESSION",
                    conflicts_with_all = ["every", "at"],
                    value_parser = $crate::client::schedule::rule::argument::<CronExpression>
                ),
                $about(value_type = Option<CronExpression>)
            )]
            #[serde(default, deserialize_with = "crate::client::schedule::rule::valid::<CronExpression, _>")]
            pub(super) cron: Option<String>,
            /// IANA zone of the cron expression, such as Europe/Berlin. Default: UTC.
            #[cfg_attr(
                feature = "describe",
                arg(long, requires = "cron", value_parser = $crate::client::schedule::rule::argument::<Zone>),
                $about(value_type = Option<Zone>)
            )]
            #[serde(default, deserialize_with = "crate::client::schedule::rule::valid::<Zone, _>")]
            pub(super) zone: Option<String>,
            /// Tick at this interval, 1s to 366d.
            #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION", conflicts_with = "at"))]
            pub(super) every: Option<DurationText>,
            /// Instant at which the interval starts. Default: 1970-01-01T00:00:00Z.
            #[cfg_attr(feature = "describe", arg(long, value_name = "INSTANT", requires = "every"))]
            pub(super) anchor: Option<InstantText>,
            /// Tick once, at this instant.
            #[cfg_attr(feature = "describe", arg(long, value_name = "INSTANT"))]
            pub(super) at: Option<InstantText>,
            $($fields)*
        }

        impl $name {
            /// Sets the IANA time zone of a cron expression, such as `Europe/Berlin`. An error for other rules.
            #[must_use]
            pub fn zone(self, zone: &str) -> Self {
                Self { zone: Some(zone.to_owned()), ..self }
            }

            /// Sets the start of an interval. An error for other rules.
            #[must_use]
            pub fn anchor(self, at: std::time::SystemTime) -> Self {
                Self { anchor: Some(at.into()), ..self }
            }

            /// Returns the checked rule; `None` if none is given.
            fn checked_rule(&self) -> Result<Option<bellwether_core::schedule::When>, SpecError> {
                let zoned = (self.cron.as_deref(), self.zone.as_deref());
                $crate::client::schedule::rule::when(zoned, (self.every, self.anchor), self.at)
            }
        }
    };
}

/// Defines a struct with the fields of a rule, the fields that say how ticks are handled, and its own fields.
macro_rules! with_ticks {
    ($(#[$attribute:meta])* pub struct $name:ident { $($fields:tt)* }) => {
        $crate::client::schedule::rule::with_rule! {
            [schema]
            $(#[$attribute])*
            pub struct $name {
                /// What to do with ticks that were missed because there was no leader. Default for a new schedule: once.
                #[cfg_attr(feature = "describe", arg(long))]
                misfire: Option<$crate::schedule::Misfire>,
                /// With misfire catch_up: maximum number of missed ticks that get a job, 1 to 100. Default if
                /// misfire is given: 10.
                #[cfg_attr(feature = "describe", arg(long, value_name = "N"), schema(minimum = 1, maximum = 100))]
                catch_up_limit: Option<u32>,
                /// With misfire catch_up: maximum age of missed ticks that get a job, 1s to 366d. Default if
                /// misfire is given: 1d.
                #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION"))]
                catch_up_within: Option<DurationText>,
                /// How late a tick may be without being missed, 1s to 7d. Default for a new schedule: 1m.
                #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION"))]
                grace: Option<DurationText>,
                /// What to do with a tick while the job of the last tick has not ended. Default for a new schedule: allow.
                #[cfg_attr(feature = "describe", arg(long))]
                overlap: Option<bellwether_core::schedule::Overlap>,
                $($fields)*
            }
        }

        impl $name {
            /// Sets how missed ticks are handled. Default for a new schedule: [`Misfire::Once`](crate::schedule::Misfire::Once).
            #[must_use]
            pub fn misfire(self, misfire: $crate::schedule::Misfire) -> Self {
                Self { misfire: Some(misfire), ..self }
            }

            /// Sets how many missed ticks get a job: 1 to 100. Default: 10. An error unless the policy is
            /// [`Misfire::CatchUp`](crate::schedule::Misfire::CatchUp).
            #[must_use]
            pub fn catch_up_limit(self, limit: u32) -> Self {
                Self { catch_up_limit: Some(limit), ..self }
            }

            /// Sets how old missed ticks that get a job may be: 1 s to 366 d. Default: 1 d. An error unless the policy is
            /// [`Misfire::CatchUp`](crate::schedule::Misfire::CatchUp).
            #[must_use]
            pub fn catch_up_within(self, age: std::time::Duration) -> Self {
                Self { catch_up_within: Some(age.into()), ..self }
            }

            /// Sets how late a tick may be and still count as on time: 1 s to 7 d. Default for a new schedule: 1 min. It covers a change of leader: within the grace every tick is
            /// made, whatever the misfire policy.
            #[must_use]
            pub fn grace(self, grace: std::time::Duration) -> Self {
                Self { grace: Some(grace.into()), ..self }
            }

            /// Sets how a tick is handled while the job of the last tick has not ended. Default for a new schedule:
            /// [`Overlap::Allow`](crate::schedule::Overlap::Allow).
            #[must_use]
            pub fn overlap(self, overlap: bellwether_core::schedule::Overlap) -> Self {
                Self { overlap: Some(overlap), ..self }
            }

            /// Returns the spec with the given values. Its bounds are not checked.
            pub(super) fn of(
                &self,
                spec: bellwether_core::schedule::ScheduleSpec,
            ) -> Result<bellwether_core::schedule::ScheduleSpec, SpecError> {
                let limits = (self.catch_up_limit, self.catch_up_within);
                let misfire = $crate::client::schedule::rule::misfire(spec.misfire, self.misfire, limits)?;
                Ok(bellwether_core::schedule::ScheduleSpec {
                    when: self.checked_rule()?.unwrap_or(spec.when),
                    misfire,
                    grace: self.grace.map_or(spec.grace, Into::into),
                    overlap: self.overlap.unwrap_or(spec.overlap),
                    ..spec
                })
            }
        }
    };
}

pub(super) use {with_rule, with_ticks};

/// Returns the rule of at most one of these times.
pub(super) fn when(
    (cron, zone): (Option<&str>, Option<&str>),
    (every, anchor): (Option<DurationText>, Option<InstantText>),
    at: Option<InstantText>,
) -> Result<Option<stored::When>, SpecError> {
    let instant = |InstantText(at)| crate::schedule::stored(at);
    let when = match (cron, every, at) {
        (Some(expression), None, None) => {
            let zone = zone.map_or_else(|| Ok(Zone::utc()), Zone::new)?;
            Some(stored::When::Cron { expression: CronExpression::new(expression)?, zone })
        }
        (None, Some(DurationText(interval)), None) => {
            Some(stored::When::Every { interval, anchor: anchor.map_or(WallMillis(0), instant) })
        }
        (None, None, Some(at)) => Some(stored::When::At(instant(at))),
        (None, None, None) => None,
        (_, _, _) => return Err(SpecError::OneRule),
    };
    if zone.is_some() && cron.is_none() {
        return Err(SpecError::Needs { field: "zone", needs: "cron" });
    }
    if anchor.is_some() && every.is_none() {
        return Err(SpecError::Needs { field: "anchor", needs: "every" });
    }
    when.iter().try_for_each(stored::When::check)?;
    Ok(when)
}

/// Returns the present policy, or the given one, with the given limits.
pub(super) fn misfire(
    present: stored::Misfire,
    given: Option<Misfire>,
    (limit, within): (Option<u32>, Option<DurationText>),
) -> Result<stored::Misfire, SpecError> {
    let policy = match given {
        None => present,
        Some(Misfire::Skip) => stored::Misfire::Skip,
        Some(Misfire::Once) => stored::Misfire::Once,
        Some(Misfire::CatchUp) => {
            let (limit, within) = DEFAULT_CATCH_UP;
            stored::Misfire::CatchUp { limit, within }
        }
    };
    let needs = |field| Err(SpecError::Needs { field, needs: "misfire catch_up" });
    match policy {
        stored::Misfire::CatchUp { limit: most, within: oldest } => Ok(stored::Misfire::CatchUp {
            limit: limit.unwrap_or(most),
            within: within.map_or(oldest, Duration::from),
        }),
        stored::Misfire::Skip | stored::Misfire::Once if limit.is_some() => needs("catch_up_limit"),
        stored::Misfire::Skip | stored::Misfire::Once if within.is_some() => needs("catch_up_within"),
        stored::Misfire::Skip | stored::Misfire::Once => Ok(policy),
    }
}

with_rule! {
    [param]
    /// A rule by which a schedule could tick: one of `cron`, `every` and `at`.
    #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
    #[cfg_attr(feature = "describe", derive(clap::Args, utoipa::IntoParams), into_params(parameter_in = Query))]
    #[serde(deny_unknown_fields)]
    pub struct Rule {}
}

impl Rule {
    /// Creates a rule that ticks at the times of a cron expression: five fields, or six with the second first. In UTC, unless a
    /// [zone](Rule::zone) is set.
    #[must_use]
    pub fn cron(expression: &str) -> Self {
        Self { cron: Some(expression.to_owned()), ..Self::default() }
    }

    /// Creates a rule that ticks at an interval from 1 s to 366 d, aligned to the Unix epoch unless an [anchor](Rule::anchor) is set.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self { every: Some(interval.into()), ..Self::default() }
    }

    /// Creates a rule that ticks once, at this instant.
    #[must_use]
    pub fn at(at: SystemTime) -> Self {
        Self { at: Some(at.into()), ..Self::default() }
    }

    /// Checks the rule, and returns when it ticks.
    ///
    /// # Errors
    /// [`SpecError`] if not exactly one rule is given, or a value is out of bounds.
    pub fn when(&self) -> Result<When, SpecError> {
        Ok(When::of(self.checked_rule()?.ok_or(SpecError::OneRule)?))
    }
}

/// The rule of an existing schedule.
impl From<When> for Rule {
    fn from(when: When) -> Self {
        match when {
            When::Cron { expression, zone } => Self::cron(expression.as_str()).zone(zone.as_str()),
            When::Every { interval, anchor } => Self::every(interval).anchor(anchor),
            When::At(at) => Self::at(at),
        }
    }
}
