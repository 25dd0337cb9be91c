//! The rule by which a schedule ticks, and how it handles late and overlapping ticks.

use bellwether::schedule::{Misfire, When, Zone};

use super::invalid::Invalid;
use super::text::{CronText, DurationText, InstantText, Text, ZoneText};

/// Defines a struct with the fields of a rule and its own fields. With serde's `flatten` instead, an error would not name
/// the field or the line.
macro_rules! with_rule {
    ($(#[$attribute:meta])* pub struct $name:ident $(<$job:ident: $bound:ident>)? { $($fields:tt)* }) => {
        $(#[$attribute])*
        pub struct $name $(<$job: $bound>)? {
            /// Tick at the times of a cron expression with five fields (minute, hour, day of month, month, day of week), or
            /// with six of which the first is the second.
            #[arg(long, value_name = "EXPRESSION", conflicts_with_all = ["every", "at"])]
            cron: Option<$crate::text::CronText>,
            /// IANA zone of the cron expression, such as Europe/Berlin. Default: UTC.
            #[arg(long, requires = "cron")]
            zone: Option<$crate::text::ZoneText>,
            /// Tick at this interval, 1s to 366d.
            #[arg(long, value_name = "DURATION", conflicts_with = "at")]
            every: Option<$crate::text::DurationText>,
            /// Instant at which the interval starts. Default: 1970-01-01T00:00:00Z.
            #[arg(long, value_name = "INSTANT", requires = "every")]
            anchor: Option<$crate::text::InstantText>,
            /// Tick once, at this instant.
            #[arg(long, value_name = "INSTANT")]
            at: Option<$crate::text::InstantText>,
            $($fields)*
        }

        impl $(<$job: $bound>)? $name $(<$job>)? {
            /// Returns when it ticks, or `None` if no rule is given.
            pub fn when(&self) -> Result<Option<bellwether::schedule::When>, $crate::invalid::Invalid> {
                let zoned = (self.cron.as_ref(), self.zone.as_ref());
                $crate::rule::when(zoned, (self.every, self.anchor), self.at)
            }
        }
    };
}

/// Defines a struct with the fields of a rule, the fields that say how ticks are handled, and its own fields.
macro_rules! with_ticks {
    ($(#[$attribute:meta])* pub struct $name:ident $(<$job:ident: $bound:ident>)? { $($fields:tt)* }) => {
        $crate::rule::with_rule! {
            $(#[$attribute])*
            pub struct $name $(<$job: $bound>)? {
                /// What to do with ticks that were missed because there was no leader. Default for a new schedule: once.
                #[arg(long)]
                misfire: Option<$crate::word::MisfireWord>,
                /// With misfire catch_up: maximum number of missed ticks that get a job, 1 to 100. Default if
                /// misfire is given: 10.
                #[arg(long, value_name = "N")]
                #[schema(minimum = 1, maximum = 100)]
                catch_up_limit: Option<u32>,
                /// With misfire catch_up: maximum age of missed ticks that get a job, 1s to 366d. Default if
                /// misfire is given: 1d.
                #[arg(long, value_name = "DURATION")]
                catch_up_within: Option<$crate::text::DurationText>,
                /// How late a tick may be without being missed, 1s to 7d. Default for a new schedule: 1m.
                #[arg(long, value_name = "DURATION")]
                grace: Option<$crate::text::DurationText>,
                /// What to do with a tick while the job of the last tick has not ended. Default for a new schedule: allow.
                #[arg(long)]
                overlap: Option<$crate::word::OverlapWord>,
                $($fields)*
            }
        }

        impl $(<$job: $bound>)? $name $(<$job>)? {
            /// Returns the given values. The schedule that they result in is not checked yet.
            pub fn change(&self) -> Result<bellwether::client::ScheduleChange, $crate::invalid::Invalid> {
                let (most, oldest) = (self.catch_up_limit, self.catch_up_within);
                let change = bellwether::client::ScheduleChange::default().when(self.when()?);
                let change = match self.misfire {
                    Some($crate::word::Word(policy)) => {
                        change.misfire($crate::rule::with_limits(policy, most, oldest)?)
                    }
                    None => change.catch_up_limit(most).catch_up_within(oldest.map(|$crate::text::Text(age)| age)),
                };
                let change = change.grace(self.grace.map(|$crate::text::Text(grace)| grace));
                Ok(change.overlap(self.overlap.map(|$crate::word::Word(overlap)| overlap)))
            }
        }
    };
}

pub(crate) use {with_rule, with_ticks};

/// Returns the rule of at most one of these times.
pub(crate) fn when(
    (cron, zone): (Option<&CronText>, Option<&ZoneText>),
    (every, anchor): (Option<DurationText>, Option<InstantText>),
    at: Option<InstantText>,
) -> Result<Option<When>, Invalid> {
    if zone.is_some() && cron.is_none() {
        return Err(Invalid("zone needs cron".to_owned()));
    }
    if anchor.is_some() && every.is_none() {
        return Err(Invalid("anchor needs every".to_owned()));
    }
    match (cron, every, at) {
        (None, None, None) => Ok(None),
        (Some(Text(expression)), None, None) => {
            let zone = zone.map_or_else(Zone::utc, |Text(zone)| zone.clone());
            let when = When::cron(expression.as_str(), zone.as_str());
            when.map(Some).map_err(|error| Invalid(error.to_string()))
        }
        (None, Some(Text(interval)), None) => {
            let mut when = When::every(interval).map_err(|error| Invalid(error.to_string()))?;
            if let (When::Every { anchor, .. }, Some(Text(given))) = (&mut when, anchor) {
                *anchor = given;
            }
            Ok(Some(when))
        }
        (None, None, Some(Text(at))) => Ok(Some(When::At(at))),
        (_, _, _) => Err(no_rule()),
    }
}

/// The error for a rule with no time, or with several.
pub(crate) fn no_rule() -> Invalid {
    Invalid("give one of cron, every and at".to_owned())
}

/// Returns a policy for missed ticks with the given limits, which only `catch_up` has.
pub(crate) fn with_limits(
    policy: Misfire,
    most: Option<u32>,
    oldest: Option<DurationText>,
) -> Result<Misfire, Invalid> {
    match policy {
        Misfire::CatchUp { limit, within } => Ok(Misfire::CatchUp {
            limit: most.unwrap_or(limit),
            within: oldest.map_or(within, |Text(oldest)| oldest),
        }),
        Misfire::Skip | Misfire::Once if most.is_some() => {
            Err(Invalid("catch_up_limit needs misfire catch_up".to_owned()))
        }
        Misfire::Skip | Misfire::Once if oldest.is_some() => {
            Err(Invalid("catch_up_within needs misfire catch_up".to_owned()))
        }
        Misfire::Skip | Misfire::Once => Ok(policy),
    }
}
