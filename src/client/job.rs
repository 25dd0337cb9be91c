//! What to submit.
//!
//! A builder whose setters never fail: what is wrong is kept and told by [`Job::check`], which every submission
//! calls before anything is written. So a bad job costs no round trip, and a chain of setters reads as one.

mod error;
mod kind;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bellwether_core::backoff::Backoff;
use bellwether_core::budget::MAX_TAGS;
use bellwether_core::job::{ContentType, JobRecord, JobState, Payload, Placement, Policy, Priority};
use bellwether_core::name::{AffinityKey, JobId, Kind, Lane, NameError, Tag};
use bellwether_core::time::WallMillis;
use bellwether_core::trace::TraceContext;
use bellwether_host::clock;
use serde::Serialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

use super::timing::{Moment, Times, Timing};
use bellwether_core::job::identity::IfExists;

pub use self::error::JobError;
pub use self::kind::{JobKind, Untyped};

/// A job to submit. `K` is its [`JobKind`], or [`Untyped`].
#[derive(Debug)]
pub struct Job<K = Untyped> {
    id: Option<JobId>,
    kind: Kind,
    payload: Payload,
    policy: Policy,
    placement: Placement,
    priority: Priority,
    timing: Timing,
    if_exists: IfExists,
    trace: Option<TraceContext>,
    problem: Option<JobError>,
    typed: PhantomData<fn() -> K>,
}

impl Job {
    /// A job of `kind` whose payload is serialized as JSON.
    ///
    /// # Errors
    /// When the payload does not serialize or is over 64 KiB, or the kind is not a name.
    pub fn new<P: Serialize + ?Sized>(kind: impl AsRef<str>, payload: &P) -> Result<Self, JobError> {
        Self::build(kind, payload)
    }

    /// A job whose payload is JSON text, kept byte for byte.
    ///
    /// # Errors
    /// As [`Job::new`]; malformed JSON is told with line and column.
    pub fn json(kind: impl AsRef<str>, text: impl Into<String>) -> Result<Self, JobError> {
        let text = text.into();
        serde_json::from_str::<IgnoredAny>(&text).map_err(|error| JobError::Json(error.to_string()))?;
        Self::of(kind, Payload::json(text.into_bytes()).map_err(JobError::Payload)?)
    }

    /// A job whose payload is any bytes.
    ///
    /// # Errors
    /// When they are over 64 KiB, the content type is malformed, or the kind is not a name.
    pub fn raw(
        kind: impl AsRef<str>,
        content_type: &str,
        bytes: impl Into<Arc<[u8]>>,
    ) -> Result<Self, JobError> {
        Self::of(kind, Payload::new(ContentType::new(content_type)?, bytes).map_err(JobError::Payload)?)
    }
}

impl<K> Job<K> {
    fn build<P: Serialize + ?Sized>(kind: impl AsRef<str>, payload: &P) -> Result<Self, JobError> {
        let text = serde_json::to_vec(payload).map_err(|error| JobError::Json(error.to_string()))?;
        Self::of(kind, Payload::json(text).map_err(JobError::Payload)?)
    }

    fn of(kind: impl AsRef<str>, payload: Payload) -> Result<Self, JobError> {
        Ok(Self {
            id: None,
            kind: Kind::new(kind)?,
            payload,
            policy: Policy::default(),
            placement: Placement::default(),
            priority: Priority::default(),
            timing: Timing::default(),
            if_exists: IfExists::default(),
            trace: None,
            problem: None,
            typed: PhantomData,
        })
    }

    /// Gives the job this id. Submitting the same id, kind and payload again is the same job, so a job with an id can be
    /// submitted again after any doubt. Without one it gets a UUIDv7.
    ///
    /// `:` and `@` are refused: they stand between the parts of composed ids ([`Job::named`], members of groups, ticks of
    /// schedules), which no other job may meet by chance.
    #[must_use]
    pub fn id(mut self, id: impl AsRef<str>) -> Self {
        self.id = self.note(JobId::plain(id)).or(self.id.take());
        self
    }

    /// Gives the job the id `{kind}:{name}`: a name of its own within its kind.
    #[must_use]
    pub fn named(mut self, name: impl AsRef<str>) -> Self {
        let id = JobId::named(&self.kind, name);
        self.id = self.note(id).or(self.id.take());
        self
    }

    /// What its submission does when there is a job with its id. Default [`IfExists::Same`]. [`IfExists::Again`] does not
    /// go with [`Job::run_at`] and [`Job::delay`].
    #[must_use]
    pub fn if_exists(mut self, if_exists: IfExists) -> Self {
        self.if_exists = if_exists;
        self
    }

    /// How urgent it is: 0 to 9, 9 goes first. Default 5.
    ///
    /// Of the jobs that wait for the same workers, each step counts for an hour of waiting: so a job of priority 9 is
    /// assigned before those of priority 5 that were submitted up to four hours earlier, and none waits for ever.
    #[must_use]
    pub fn priority(mut self, priority: u8) -> Self {
        match Priority::new(priority) {
            Ok(priority) => self.priority = priority,
            Err(error) => self.wrong(error.into()),
        }
        self
    }

    /// Not to be started before this instant, by the leader's wall clock; at most ten years ahead. One in the past means
    /// at once. The last of this and [`Job::delay`] that is called stands.
    ///
    /// In a [lane](Job::lane) it takes its turn at its submission: those behind it wait for it.
    #[must_use]
    pub fn run_at(mut self, at: SystemTime) -> Self {
        self.timing.start = Some(Moment::At(at));
        self
    }

    /// Not to be started before this time has passed since its submission, as [`Job::run_at`].
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.timing.start = Some(Moment::In(delay));
        self
    }

    /// Never to be started after this instant: no attempt begins after it, by the wall clocks of the leader and of the
    /// worker, and the job is dead then. An attempt that has begun goes on; when it fails after that, no other begins.
    #[must_use]
    pub fn expires_at(mut self, at: SystemTime) -> Self {
        self.timing.expiry = Some(Moment::At(at));
        self
    }

    /// Never to be started after this time has passed since its submission, as [`Job::expires_at`].
    #[must_use]
    pub fn expires_in(mut self, wait: Duration) -> Self {
        self.timing.expiry = Some(Moment::In(wait));
        self
    }

    /// How many attempts may fail before the job is dead. Default 5.
    #[must_use]
    pub fn max_attempts(mut self, attempts: u32) -> Self {
        self.policy.max_attempts = attempts;
        self
    }

    /// How many workers may be lost under the job before it is dead. Default 3.
    #[must_use]
    pub fn max_losses(mut self, losses: u32) -> Self {
        self.policy.max_losses = losses;
        self
    }

    /// The wait after the first failure, doubled after each further one up to `max`, with jitter. Default 1 s
    /// to 5 min.
    #[must_use]
    pub fn backoff(mut self, initial: Duration, max: Duration) -> Self {
        self.policy.backoff = Backoff { initial, max };
        self
    }

    /// How long one attempt may run. Default: no bound.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.policy.timeout = Some(timeout);
        self
    }

    /// How long the leader waits for a sign of life of an attempt before it gives the job to another worker. 1 s to a
    /// week. Default: what the handler's kind says, else 5 min. See [`JobContext::renew_lease`](crate::JobContext::renew_lease).
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.policy.lease = Some(lease);
        self
    }

    /// Whether the worker renews the lease for as long as the handler runs. Default: what the handler's kind says, else
    /// not.
    #[must_use]
    pub fn renew_lease_automatically(mut self, renew: bool) -> Self {
        self.policy.auto_renew = Some(renew);
        self
    }

    /// Requires a worker with this tag. May be called again for more.
    #[must_use]
    pub fn tag(mut self, tag: impl AsRef<str>) -> Self {
        if let Some(tag) = self.note(Tag::new(tag))
            && let Err(at) = self.placement.tags.binary_search(&tag)
        {
            self.placement.tags.insert(at, tag);
        }
        self
    }

    /// Prefers, under the rendezvous strategy, the worker that other jobs of this key run on.
    #[must_use]
    pub fn affinity(mut self, key: impl AsRef<str>) -> Self {
        self.placement.affinity = self.note(AffinityKey::new(key)).or(self.placement.affinity.take());
        self
    }

    /// Puts the job into a lane: its jobs run one at a time, in the order of their submission. The next begins when this
    /// one is over: succeeded, cancelled or dead. While it waits out a backoff, so do those behind it. A lane
    /// costs nothing to make and goes away when it is empty. Its name is seen by operators: never put a secret in it.
    #[must_use]
    pub fn lane(mut self, lane: impl AsRef<str>) -> Self {
        self.placement.lane = self.note(Lane::new(lane)).or(self.placement.lane.take());
        self
    }

    /// Makes the job part of this trace: a W3C `traceparent`, such as the one of the request that leads to its submission.
    /// It is stored with the job, and every attempt, join and sub-job belongs to it. Default: in a process with OpenTelemetry,
    /// the span in which it is submitted; otherwise none.
    #[must_use]
    pub fn trace_context(mut self, context: impl Into<Option<TraceContext>>) -> Self {
        self.trace = context.into();
        self
    }

    pub(crate) fn kind(&self) -> &Kind {
        &self.kind
    }

    /// Whether somebody named it.
    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// Whether it can be submitted; nothing is sent.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self) -> Result<(), JobError> {
        self.check_at(clock::wall())
    }

    /// As [`Job::check`], at this time.
    pub(crate) fn check_at(&self, now: WallMillis) -> Result<(), JobError> {
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        let given = self.placement.tags.len();
        if given > MAX_TAGS {
            return Err(JobError::Tags { given });
        }
        // A delayed entry that another of the same minute could replace unseen would be promoted in its stead.
        if self.if_exists == IfExists::Again && self.timing.start.is_some() {
            return Err(JobError::AgainLater);
        }
        self.timing.at(now)?;
        Ok(self.policy.check()?)
    }

    fn note<T>(&mut self, made: Result<T, NameError>) -> Option<T> {
        match made {
            Ok(value) => Some(value),
            Err(error) => {
                self.wrong(JobError::Name(error));
                None
            }
        }
    }

    /// The first thing that is wrong is told.
    fn wrong(&mut self, error: JobError) {
        self.problem.get_or_insert(error);
    }

    pub(crate) fn mode(&self) -> IfExists {
        self.if_exists
    }

    /// Whether it was given an id.
    pub(crate) fn is_named(&self) -> bool {
        self.id.is_some()
    }

    /// The id and record to store: checked, with an id and a token of their own.
    pub(crate) fn into_record(
        self,
        submitted_at: WallMillis,
        uuid: impl Fn() -> Uuid,
    ) -> Result<(JobId, JobRecord), JobError> {
        self.check_at(submitted_at)?;
        let Times { not_before, expires_at } = self.timing.at(submitted_at)?;
        let id = self.id.unwrap_or_else(|| JobId::from_uuid(uuid()));
        let record = JobRecord {
            policy: self.policy,
            placement: self.placement,
            priority: self.priority,
            expires_at,
            trace: self.trace,
            state: JobState::Open { not_before },
            ..JobRecord::new(self.kind, self.payload, uuid(), submitted_at)
        };
        Ok((id, record))
    }
}

impl<K> Clone for Job<K> {
    fn clone(&self) -> Self {
        Self {
            id: self.id.clone(),
            kind: self.kind.clone(),
            payload: self.payload.clone(),
            policy: self.policy.clone(),
            placement: self.placement.clone(),
            priority: self.priority,
            timing: self.timing,
            if_exists: self.if_exists,
            trace: self.trace,
            problem: self.problem.clone(),
            typed: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests;
