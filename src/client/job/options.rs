//! The options of a job: how often it is tried, for how long, where and in which order it runs.

use std::time::Duration;

use bellwether_core::backoff::Backoff;
use bellwether_core::budget::MAX_TAGS;
use bellwether_core::duration;
use bellwether_core::job::{Placement, Policy, Priority};
use bellwether_core::name::{AffinityKey, Lane, Tag};
use bellwether_core::schedule::LANE_PREFIX;
use serde::{Deserialize, Serialize};

use super::JobError;

/// The options of a job. An option that is not set has its default.
///
/// A [`JobKind`](super::JobKind) has options for all of its jobs, which [`Job`](super::Job)'s setters override. The
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
#[serde(default, deny_unknown_fields)]
#[must_use]
#[non_exhaustive]
pub struct JobOptions {
    /// How many attempts may fail: [`JobOptions::max_attempts()`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
    /// How many times a worker may be lost: [`JobOptions::max_losses()`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_losses: Option<u32>,
    /// The waits after failures: [`JobOptions::backoff()`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff: Option<Backoff>,
    /// The timeout of one attempt: [`JobOptions::timeout()`].
    #[serde(with = "duration::optional_text", skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Duration>,
    /// How long an attempt may go without a renewal: [`JobOptions::lease()`].
    #[serde(with = "duration::optional_text", skip_serializing_if = "Option::is_none")]
    pub lease: Option<Duration>,
    /// Whether the worker renews the lease: [`JobOptions::auto_renew()`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_renew: Option<bool>,
    /// Whether its death creates another job: [`JobOptions::dead_letter()`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter: Option<bool>,
    /// The priority: [`JobOptions::priority()`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,
    /// The tags that the worker must have: [`JobOptions::tags()`]. An empty list means none, also if the kind has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// Jobs with the same key prefer the same worker: [`JobOptions::affinity()`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<String>,
    /// The lane: [`JobOptions::lane()`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lane: Option<String>,
}

/// Options as they are stored in a record.
pub(super) struct Checked {
    pub(super) policy: Policy,
    pub(super) placement: Placement,
    pub(super) priority: Priority,
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

    /// Sets how many attempts may fail before the job is dead: 1 to 1000. Default 5.
    pub fn max_attempts(self, attempts: u32) -> Self {
        Self { max_attempts: Some(attempts), ..self }
    }

    /// Sets how many times a worker may be lost while it runs the job before the job is dead: 1 to 1000. Default 3.
    pub fn max_losses(self, losses: u32) -> Self {
        Self { max_losses: Some(losses), ..self }
    }

    /// Sets the retry backoff: the wait after the first failure, doubled after each further one up to `max`, with
    /// jitter. 1 ms to a week. Default 1 s to 5 min.
    pub fn backoff(self, initial: Duration, max: Duration) -> Self {
        Self { backoff: Some(Backoff { initial, max }), ..self }
    }

    /// Sets the timeout of one attempt: 1 ms to a week. Default: none.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..self }
    }

    /// Sets the lease: how long an attempt may go without a renewal before the job goes to another worker. 1 s to a
    /// week. Default: the lease of the kind's handler, else 5 min. See
    /// [`JobContext::renew_lease`](crate::JobContext::renew_lease).
    pub fn lease(self, lease: Duration) -> Self {
        Self { lease: Some(lease), ..self }
    }

    /// Sets whether the worker renews the lease for as long as the handler runs. Default: the setting of the kind's
    /// handler, else no.
    pub fn auto_renew(self, renew: bool) -> Self {
        Self { auto_renew: Some(renew), ..self }
    }

    /// Sets whether a dead job creates a job of kind `KIND.dead`, in the same transaction that ends it. See
    /// [`handler::dead_letter`](crate::handler::dead_letter). Default: no.
    pub fn dead_letter(self, dead_letter: bool) -> Self {
        Self { dead_letter: Some(dead_letter), ..self }
    }

    /// Sets the priority: 0 to 9, 9 goes first. Default 5. See [`Job::priority`](super::Job::priority).
    pub fn priority(self, priority: u8) -> Self {
        Self { priority: Some(priority), ..self }
    }

    /// Requires a worker with these tags, at most 32. They replace the tags that were set before, so an empty list removes those of
    /// the kind.
    pub fn tags(self, tags: impl IntoIterator<Item: Into<String>>) -> Self {
        Self { tags: Some(tags.into_iter().map(Into::into).collect()), ..self }
    }

    /// Prefers, under the rendezvous strategy, the worker that runs other jobs with this key.
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

    pub(super) fn checked(&self) -> Result<Checked, JobError> {
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
