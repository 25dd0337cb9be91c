//! The options of a job: how often it is tried, for how long, where and in which order it runs.

use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::budget::MAX_TAGS;
#[cfg(feature = "describe")]
use bellwether_core::describe::Name;
use bellwether_core::duration;
#[cfg(feature = "describe")]
use bellwether_core::duration::DurationText;
use bellwether_core::job::{Placement, Policy, Priority, dead_letter_kind};
use bellwether_core::name::{AffinityKey, Kind, Lane, Tag};
use bellwether_core::schedule::LANE_PREFIX;
use serde::{Deserialize, Serialize};

use super::JobError;

/// The options of a job. An option that is not set has its default.
///
/// Each field documents its meaning, bounds and default, and has a setter with the same name. A [`JobKind`](super::JobKind) has options for all of its jobs, which [`Job`](super::Job)'s setters override. The
/// setters never fail: [`JobOptions::check`] reports the first value that is out of bounds, as each submission does.
///
/// The serialized form is the same in HTTP, in files and in what the command prints: the names of the fields, and
/// [durations as text](crate::DurationText). An option that is not set is left out.
///
/// ```
/// use std::time::Duration;
///
/// use bellwether::client::JobOptions;
///
/// let options = JobOptions::new().max_attempts(10).timeout(Duration::from_secs(300)).tags(["gpu"]);
/// let text = r#"{"max_attempts": 10, "timeout": "5m", "tags": ["gpu"]}"#;
/// assert_eq!(serde_json::from_str::<JobOptions>(text)?, options);
/// # Ok::<(), serde_json::Error>(())
/// ```
///
/// A later version may have more options, so there is no struct literal:
///
/// ```compile_fail,E0639
/// # use bellwether::client::JobOptions;
/// let options = JobOptions { max_attempts: Some(10), ..JobOptions::new() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(
    feature = "describe",
    derive(clap::Args, utoipa::ToSchema),
    schema(
        description = "Options of a job. In a request, an option that is left out has its default. An answer has the effective values; an option \
                       that is left out is not set."
    )
)]
#[serde(deny_unknown_fields)]
#[must_use]
#[non_exhaustive]
pub struct JobOptions {
    /// Number of failed attempts after which the job is dead, 1 to 1000. Default: 5.
    #[cfg_attr(
        feature = "describe",
        arg(long, value_name = "N"),
        schema(minimum = 1, maximum = 1000, default = 5)
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// Number of lost attempts (worker lost or lease expired) after which the job is dead, 1 to 1000. Default: 3.
    #[cfg_attr(
        feature = "describe",
        arg(long, value_name = "N"),
        schema(minimum = 1, maximum = 1000, default = 3)
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_losses: Option<u32>,
    /// Wait after the first failure, doubled after each further failure up to the longest wait, with jitter. Each is 1ms to
    /// 7d. Default: 1s..5m.
    #[cfg_attr(feature = "describe", arg(long, value_name = "INITIAL..MAX"), schema(default = json!({"initial": "1s", "max": "5m"})))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// Time limit of each attempt, 1ms to 7d. Default: none.
    #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION", value_parser = duration::parse), schema(value_type = Option<DurationText>))]
    #[serde(default, with = "duration::optional_text", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// Lease of each attempt, 1s to 7d: without a renewal for this long, the job moves to another worker. Default: that of its
    /// kind, else 5m.
    #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION", value_parser = duration::parse), schema(value_type = Option<DurationText>))]
    #[serde(default, with = "duration::optional_text", skip_serializing_if = "Option::is_none")]
    pub lease: Option<Duration>,
    /// Whether the worker renews the lease while the handler runs. Default: the setting of its kind, else false.
    #[cfg_attr(feature = "describe", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_renew: Option<bool>,
    /// Whether the death of the job creates a job of kind KIND.dead. Default: false.
    #[cfg_attr(feature = "describe", arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_missing_value = "true"), schema(default = false))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<bool>,
    /// Priority, 0 to 9; 9 runs first. Default: 5.
    #[cfg_attr(
        feature = "describe",
        arg(long, value_name = "N"),
        schema(minimum = 0, maximum = 9, default = 5)
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// Tags that the worker must have, at most 32. An empty list removes those of the kind.
    #[cfg_attr(feature = "describe", arg(long, value_name = "TAG,…", value_delimiter = ','), schema(value_type = Option<Vec<Tag>>, max_items = 32, default = json!([])))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Affinity key: with the strategy rendezvous, jobs with the same key prefer the same worker.
    #[cfg_attr(feature = "describe", arg(long, value_name = "NAME"), schema(value_type = Option<Name>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<String>,
    /// Lane of the job: jobs of one lane run one at a time, in the order of their submission.
    #[cfg_attr(feature = "describe", arg(long, value_name = "NAME"), schema(value_type = Option<Lane>))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
}

/// Options as they are stored in a record.
pub(crate) struct Checked {
    pub(crate) policy: Policy,
    pub(crate) placement: Placement,
    pub(crate) priority: Priority,
}

impl JobOptions {
    /// Returns options of which none is set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the defaults of all options that have one, whatever the kind.
    pub fn defaults() -> Self {
        Self::effective(&Policy::default(), &Placement::default(), Priority::default())
    }

    /// Returns the options of a stored job: those that it was submitted with, and the defaults of the others.
    pub(crate) fn effective(policy: &Policy, placement: &Placement, priority: Priority) -> Self {
        let Policy { max_attempts, max_losses, backoff, timeout, lease, auto_renew, dead_letter } = *policy;
        let Placement { tags, affinity, lane } = placement;
        Self {
            max_attempts: Some(max_attempts),
            max_losses: Some(max_losses),
            backoff: Some(backoff),
            timeout,
            lease,
            auto_renew,
            dead_letter: Some(dead_letter),
            priority: Some(priority.get()),
            tags: Some(tags.iter().map(ToString::to_string).collect()),
            affinity: affinity.as_ref().map(ToString::to_string),
            lane: lane.as_ref().map(ToString::to_string),
        }
    }

    /// Sets the number of failed attempts after which the job is dead.
    pub fn max_attempts(self, attempts: u32) -> Self {
        Self { max_attempts: Some(attempts), ..self }
    }

    /// Sets the number of lost attempts after which the job is dead.
    pub fn max_losses(self, losses: u32) -> Self {
        Self { max_losses: Some(losses), ..self }
    }

    /// Sets the waits after failures.
    pub fn backoff(self, initial: Duration, max: Duration) -> Self {
        Self { backoff: Some(Backoff { initial, max }), ..self }
    }

    /// Sets the time limit of each attempt.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Sets the lease of each attempt. See [`JobContext::renew_lease`](crate::JobContext::renew_lease).
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Sets whether the worker renews the lease while the handler runs.
    pub fn auto_renew(self, renew: bool) -> Self {
        Self { auto_renew: Some(renew), ..self }
    }

    /// Sets whether the job's death creates another job, in the same transaction that ends it. See
    /// [`handler::dead_letter`](crate::handler::dead_letter).
    pub fn dead_letter(self, dead_letter: bool) -> Self {
        Self { dead_letter: Some(dead_letter), ..self }
    }

    /// Sets the priority. See [`Job::priority`](super::Job::priority).
    pub fn priority(self, priority: u8) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Requires a worker with these tags instead of those that were set before.
    pub fn tags(self, tags: impl IntoIterator<Item: Into<String>>) -> Self {
        Self { tags: Some(tags.into_iter().map(Into::into).collect()), ..self }
    }

    /// Sets the affinity key.
    pub fn affinity(self, key: impl AsRef<str>) -> Self {
        Self { affinity: Some(key.as_ref().to_owned()), ..self }
    }

    /// Puts the job into a lane. See [`Job::lane`](super::Job::lane).
    pub fn lane(self, lane: impl AsRef<str>) -> Self {
        Self { lane: Some(lane.as_ref().to_owned()), ..self }
    }

    /// Takes the options that are not set here from `defaults`.
    pub fn or(self, defaults: Self) -> Self {
        Self {
            max_attempts: self.max_attempts.or(defaults.max_attempts),
            max_losses: self.max_losses.or(defaults.max_losses),
            backoff: self.backoff.or(defaults.backoff),
            timeout: self.timeout.or(defaults.timeout),
            lease: self.lease.or(defaults.lease),
            auto_renew: self.auto_renew.or(defaults.auto_renew),
            dead_letter: self.dead_letter.or(defaults.dead_letter),
            priority: self.priority.or(defaults.priority),
            tags: self.tags.or(defaults.tags),
            affinity: self.affinity.or(defaults.affinity),
            lane: self.lane.or(defaults.lane),
        }
    }

    /// Checks the bounds of all options.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), JobError> {
        self.checked().map(drop)
    }

    /// Checks the options of a job of this kind.
    pub(super) fn checked_for(&self, kind: &Kind) -> Result<Checked, JobError> {
        let checked = self.checked()?;
        if checked.policy.dead_letter {
            dead_letter_kind(kind)?;
        }
        Ok(checked)
    }

    fn checked(&self) -> Result<Checked, JobError> {
        let mut tags = self.tags.iter().flatten().map(Tag::new).collect::<Result<Vec<_>, _>>()?;
        tags.sort();
        tags.dedup();
        if tags.len() > MAX_TAGS {
            return Err(JobError::Tags { given: tags.len() });
        }
        let placement = Placement {
            tags,
            affinity: self.affinity.as_ref().map(AffinityKey::new).transpose()?,
            lane: self.lane.as_ref().map(Lane::new).transpose()?,
        };
        if placement.lane.as_ref().is_some_and(|lane| lane.as_str().starts_with(LANE_PREFIX)) {
            return Err(JobError::ReservedLane);
        }
        let priority = self.priority.map(Priority::new).transpose()?.unwrap_or_default();
        let default = Policy::default();
        let policy = Policy {
            max_attempts: self.max_attempts.unwrap_or(default.max_attempts),
            max_losses: self.max_losses.unwrap_or(default.max_losses),
            backoff: self.backoff.unwrap_or(default.backoff),
            timeout: self.timeout,
            lease: self.lease,
            auto_renew: self.auto_renew,
            dead_letter: self.dead_letter.unwrap_or(default.dead_letter),
        };
        policy.check()?;
        Ok(Checked { policy, placement, priority })
    }
}
