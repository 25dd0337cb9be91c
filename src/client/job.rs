//! The job builder.
//!
//! No call on it fails: [`Job::check`] returns the first error, and every submission calls it before anything is
//! written. So an invalid job costs no round trip, and calls can be chained.

mod error;
mod kind;
mod options;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bellwether_core::job::{ContentType, JobRecord, JobState, Payload, dead_letter_kind};
use bellwether_core::name::{JobId, Kind, NameError};
use bellwether_core::time::WallMillis;
use bellwether_core::trace::TraceContext;
use bellwether_host::clock;
use serde::Serialize;
use serde::de::IgnoredAny;
use uuid::Uuid;

use super::timing::{Moment, Times, Timing};
use bellwether_core::job::identity::IfExists;

pub use self::error::JobError;
pub use self::kind::{AnyKind, JobKind, JoinKind, ParentKind, Untyped};
pub use self::options::JobOptions;

use self::options::Checked;

/// A job to submit. `K` is its [`JobKind`], or [`Untyped`].
#[derive(Debug)]
pub struct Job<K = Untyped> {
    id: Option<JobId>,
    /// Or why there is none.
    content: Result<(Kind, Payload), JobError>,
    options: JobOptions,
    timing: Timing,
    if_exists: IfExists,
    trace: Option<TraceContext>,
    problem: Option<JobError>,
    typed: PhantomData<fn() -> K>,
}

impl Job {
    /// Creates a job of `kind` whose payload is serialized as JSON.
    ///
    /// The stored payload may have 64 KiB. A client with a [`PayloadCodec`](crate::codec::PayloadCodec) can store up to 16 MiB
    /// in fewer bytes.
    #[must_use]
    pub fn new<P: Serialize + ?Sized>(kind: impl AsRef<str>, payload: &P) -> Self {
        Self::build(kind, payload)
    }

    /// Creates a job whose payload is JSON text, stored byte for byte. Malformed JSON is reported with line and column.
    #[must_use]
    pub fn json(kind: impl AsRef<str>, text: impl Into<String>) -> Self {
        let text = text.into();
        let valid =
            serde_json::from_str::<IgnoredAny>(&text).map_err(|error| JobError::Json(error.to_string()));
        Self::of(
            kind,
            valid.and_then(|_| {
                Payload::plain(ContentType::json(), text.into_bytes()).map_err(JobError::Payload)
            }),
        )
    }

    /// Creates a job whose payload is bytes of any content type. For the bounds of the payload see [`Job::new`].
    #[must_use]
    pub fn raw(kind: impl AsRef<str>, content_type: &str, bytes: impl Into<Arc<[u8]>>) -> Self {
        let content_type = ContentType::new(content_type).map_err(JobError::from);
        let payload = |content_type| Payload::plain(content_type, bytes).map_err(JobError::Payload);
        Self::of(kind, content_type.and_then(payload))
    }
}

impl<K> Job<K> {
    fn build<P: Serialize + ?Sized>(kind: impl AsRef<str>, payload: &P) -> Self {
        let text = serde_json::to_vec(payload).map_err(|error| JobError::Json(error.to_string()));
        Self::of(
            kind,
            text.and_then(|text| Payload::plain(ContentType::json(), text).map_err(JobError::Payload)),
        )
    }

    fn of(kind: impl AsRef<str>, payload: Result<Payload, JobError>) -> Self {
        let kind = Kind::new(kind).map_err(JobError::Name);
        Self {
            id: None,
            content: kind.and_then(|kind| Ok((kind, payload?))),
            options: JobOptions::default(),
            timing: Timing::default(),
            if_exists: IfExists::default(),
            trace: None,
            problem: None,
            typed: PhantomData,
        }
    }

    /// Sets the job's id. Submitting the same id, kind and payload again is the same job, so a job with an id can be
    /// submitted again whenever the outcome is in doubt. By default the client generates an id when it sends the job.
    ///
    /// `:` and `@` are refused: they separate the parts of composed ids ([`Job::named`], members of groups, ticks of
    /// schedules), so no explicit id can collide with one of those.
    #[must_use]
    pub fn id(mut self, id: impl AsRef<str>) -> Self {
        self.id = self.note(JobId::plain(id)).or(self.id.take());
        self
    }

    /// Sets the id `{kind}:{name}`: the name is unique within the kind.
    #[must_use]
    pub fn named(mut self, name: impl AsRef<str>) -> Self {
        if let Ok((kind, _)) = &self.content {
            let id = JobId::named(kind, name);
            self.id = self.note(id).or(self.id.take());
        }
        self
    }

    /// Sets what the submission does if a job with this id exists. Default [`IfExists::Same`]. [`IfExists::Again`]
    /// cannot be combined with [`Job::run_at`] or [`Job::delay`].
    #[must_use]
    pub fn if_exists(mut self, if_exists: IfExists) -> Self {
        self.if_exists = if_exists;
        self
    }

    /// Sets the priority: 0 to 9, 9 goes first. Default 5.
    ///
    /// Among the jobs that wait for the same workers, each step is worth an hour of waiting. So a job of priority 9
    /// is assigned before jobs of priority 5 that were submitted up to four hours earlier, and no job starves.
    #[must_use]
    pub fn priority(self, priority: u8) -> Self {
        self.set(|options| options.priority(priority))
    }

    /// Sets the earliest start, by ZooKeeper's wall clock; at most ten years ahead. A time in the past means
    /// immediately. Overrides [`Job::delay`] if called after it.
    ///
    /// In a [lane](Job::lane) the job takes its turn when it is submitted: the jobs behind it wait for it.
    #[must_use]
    pub fn run_at(mut self, at: SystemTime) -> Self {
        self.timing.start = Some(Moment::At(at));
        self
    }

    /// Sets the earliest start relative to the submission, by ZooKeeper's clock, so this machine's may be wrong. See
    /// [`Job::run_at`].
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.timing.start = Some(Moment::In(delay));
        self
    }

    /// Sets the expiry. No attempt begins after this instant, by ZooKeeper's wall clock; the
    /// job is then dead. A running attempt continues, but if it fails after the expiry, it is not retried.
    #[must_use]
    pub fn expires_at(mut self, at: SystemTime) -> Self {
        self.timing.expiry = Some(Moment::At(at));
        self
    }

    /// Sets the expiry relative to the submission. See [`Job::expires_at`].
    #[must_use]
    pub fn expires_in(mut self, wait: Duration) -> Self {
        self.timing.expiry = Some(Moment::In(wait));
        self
    }

    /// Sets how many attempts may fail before the job is dead: see [`JobOptions::max_attempts`].
    #[must_use]
    pub fn max_attempts(self, attempts: u32) -> Self {
        self.set(|options| options.max_attempts(attempts))
    }

    /// Sets how many times a worker may be lost before the job is dead: see [`JobOptions::max_losses`].
    #[must_use]
    pub fn max_losses(self, losses: u32) -> Self {
        self.set(|options| options.max_losses(losses))
    }

    /// Sets the waits between failures and retries: see [`JobOptions::backoff`].
    #[must_use]
    pub fn backoff(self, initial: Duration, max: Duration) -> Self {
        self.set(|options| options.backoff(initial, max))
    }

    /// Sets the timeout of one attempt: see [`JobOptions::timeout`].
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|options| options.timeout(timeout))
    }

    /// Sets the lease: see [`JobOptions::lease`].
    #[must_use]
    pub fn lease(self, lease: Duration) -> Self {
        self.set(|options| options.lease(lease))
    }

    /// Sets whether the worker renews the lease: see [`JobOptions::auto_renew`].
    #[must_use]
    pub fn auto_renew(self, renew: bool) -> Self {
        self.set(|options| options.auto_renew(renew))
    }

    /// Sets whether its death creates a job of kind `KIND.dead`: see [`JobOptions::dead_letter()`].
    #[must_use]
    pub fn dead_letter(self, dead_letter: bool) -> Self {
        self.set(|options| options.dead_letter(dead_letter))
    }

    /// Requires a worker with these tags: see [`JobOptions::tags`].
    #[must_use]
    pub fn tags(self, tags: impl IntoIterator<Item: Into<String>>) -> Self {
        self.set(|options| options.tags(tags))
    }

    /// Prefers the worker that runs other jobs with this key: see [`JobOptions::affinity`].
    #[must_use]
    pub fn affinity(self, key: impl AsRef<str>) -> Self {
        self.set(|options| options.affinity(key))
    }

    /// Puts the job into a lane. The jobs of a lane run one at a time, in the order of their submission. The next one
    /// begins when this one has ended: succeeded, cancelled or dead. While a job waits for its backoff, the jobs
    /// behind it wait too.
    ///
    /// Lanes need no setup, and an empty lane is removed. Operators can see the name: do not put a secret in it.
    #[must_use]
    pub fn lane(self, lane: impl AsRef<str>) -> Self {
        self.set(|options| options.lane(lane))
    }

    /// Sets all options that are set in `options`. The others keep their values.
    #[must_use]
    pub fn options(self, options: JobOptions) -> Self {
        self.set(|there| options.or(there))
    }

    fn set(mut self, set: impl FnOnce(JobOptions) -> JobOptions) -> Self {
        self.options = set(self.options);
        self
    }

    /// Removes the options that were set, also those that the kind sets: [`JobKind::defaults`].
    #[must_use]
    pub fn clear_options(self) -> Self {
        Self { options: JobOptions::new(), ..self }
    }

    /// Makes the job part of this trace: a W3C `traceparent`, for example from the request that caused the
    /// submission. The trace is stored with the job, and every attempt, join and sub-job belongs to it. Default: the
    /// span in which the job is submitted, in a process with OpenTelemetry; otherwise none.
    #[must_use]
    pub fn traceparent(mut self, context: impl Into<Option<TraceContext>>) -> Self {
        self.trace = context.into();
        self
    }

    pub(crate) fn kind(&self) -> Result<&Kind, JobError> {
        self.content.as_ref().map(|(kind, _)| kind).map_err(JobError::clone)
    }

    /// Whether an id was set.
    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some()
    }

    /// Whether it has a rule for an existing job with its id.
    pub(crate) fn has_if_exists(&self) -> bool {
        self.if_exists != IfExists::default()
    }

    /// Checks whether a client without a [codec](crate::codec) can submit the job, without sending anything.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), JobError> {
        self.check_at(clock::local())?;
        let (_, payload) = self.content.as_ref().map_err(JobError::clone)?;
        payload.check_stored().map_err(JobError::Payload)
    }

    /// Like [`Job::check`], at the given time, and without the size of the payload.
    pub(crate) fn check_at(&self, now: WallMillis) -> Result<(), JobError> {
        let kind = self.kind()?;
        if let Some(problem) = &self.problem {
            return Err(problem.clone());
        }
        self.options.check()?;
        if self.options.dead_letter == Some(true) {
            dead_letter_kind(kind)?;
        }
        // A delayed entry could be replaced by another one of the same minute unseen, which would then be promoted
        // instead.
        if self.if_exists == IfExists::Again && self.timing.start.is_some() {
            return Err(JobError::AgainWithStart);
        }
        self.timing.at(now)?;
        Ok(())
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

    /// Stores the first error.
    fn wrong(&mut self, error: JobError) {
        self.problem.get_or_insert(error);
    }

    pub(crate) fn mode(&self) -> IfExists {
        self.if_exists
    }

    /// Checks the job and returns its id and the record to store, with a new token and, if no id was set, a new id. The
    /// payload is plain: the caller encodes it or checks its size.
    pub(crate) fn into_record(
        self,
        submitted_at: WallMillis,
        uuid: impl Fn() -> Uuid,
    ) -> Result<(JobId, JobRecord), JobError> {
        self.check_at(submitted_at)?;
        let (kind, payload) = self.content?;
        let Checked { policy, placement, priority } = self.options.checked()?;
        let Times { not_before, expires_at } = self.timing.at(submitted_at)?;
        let id = self.id.unwrap_or_else(|| JobId::from_uuid(uuid()));
        let record = JobRecord {
            policy,
            placement,
            priority,
            expires_at,
            trace: self.trace,
            state: JobState::Open { not_before },
            ..JobRecord::new(kind, payload, uuid(), submitted_at)
        };
        Ok((id, record))
    }
}

impl<K> Clone for Job<K> {
    fn clone(&self) -> Self {
        Self {
            id: self.id.clone(),
            content: self.content.clone(),
            options: self.options.clone(),
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
