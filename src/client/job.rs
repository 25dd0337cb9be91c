//! The job builder.
//!
//! No call on it fails: [`Job::check`] returns the first error, and every submission calls it before anything is
//! written. So an invalid job costs no round trip, and calls can be chained.

pub(crate) mod content;
mod error;
mod kind;
mod options;
mod template;

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

#[cfg(feature = "describe")]
use bellwether_core::describe::Name;
use bellwether_core::duration::DurationText;
use bellwether_core::instant::InstantText;
use bellwether_core::job::{JobRecord, JobState, Payload};
use bellwether_core::name::{JobId, Kind};
use bellwether_core::time::WallMillis;
use bellwether_core::trace::TraceContext;
use bellwether_host::clock;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::timing::{EXPIRY, Moment, START, Times, Timing};
use bellwether_core::job::identity::IfExists;

pub use self::error::JobError;
pub use self::kind::{AnyKind, JobKind, JoinKind, ParentKind, Untyped};
pub use self::options::JobOptions;
pub use self::template::JobTemplate;

use self::content::{Input, content, with_content};
pub(crate) use self::kind::Typed;
pub(crate) use self::options::Checked;

with_content! {
    ["Payload for the handler, at most 64 KiB: JSON, kept byte for byte. With a `content_type` other than JSON it is a string \
      with the text."]
    /// A job to submit. `K` is its [`JobKind`], or [`Untyped`].
    ///
    /// An untyped job can be read from JSON, in the form that HTTP has. Only `serde_json` can read a payload, because it is kept byte
    /// for byte; a program that reads another format sets it with [`Job::json_payload`].
    ///
    /// ```
    /// use bellwether::Job;
    ///
    /// let text = r#"{"kind": "sum", "payload": [1, 2, 3], "id": "sum-1", "options": {"max_attempts": 3}}"#;
    /// let job = serde_json::from_str::<Job>(text)?;
    /// assert!(job.check().is_ok());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    #[derive(Debug, Deserialize)]
    #[cfg_attr(feature = "describe", derive(clap::Args, utoipa::ToSchema), schema(as = NewJob, bound = "", description = "A job to submit."))]
    // Only an untyped job can be read: its kind is data.
    #[serde(deny_unknown_fields, bound(deserialize = "PhantomData<K>: Into<PhantomData<Untyped>>"))]
    #[non_exhaustive]
    pub struct Job<K = Untyped> {
        /// Id of the job: letters, digits, `.`, `_` and `-`, at most 128 characters. The same id, kind and payload is the same
        /// job, so submitting a job with an id again is safe. Default: a generated id.
        #[cfg_attr(feature = "describe", arg(long), schema(value_type = Option<Name>))]
        id: Option<String>,
        /// Name of the job within its kind, instead of an id: the id is KIND:NAME.
        #[cfg_attr(
            feature = "describe",
            arg(long, value_name = "NAME", conflicts_with = "id"),
            schema(value_type = Option<Name>)
        )]
        named: Option<String>,
        /// What to do if a job with this id exists. Default: same.
        #[cfg_attr(
            feature = "describe",
            arg(long, value_name = "MODE", default_value = "same", hide_default_value = true)
        )]
        #[serde(default)]
        if_exists: IfExists,
        /// Do not start the job before this instant, such as 2026-11-21T11:33:00Z, at most ten years ahead.
        #[cfg_attr(feature = "describe", arg(long, value_name = "INSTANT"))]
        run_at: Option<InstantText>,
        /// Do not start the job before this time has passed.
        #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION", conflicts_with = "run_at"))]
        delay: Option<DurationText>,
        /// Do not start the job after this instant: it is dead then.
        #[cfg_attr(feature = "describe", arg(long, value_name = "INSTANT"))]
        expires_at: Option<InstantText>,
        /// Do not start the job after this time has passed: it is dead then.
        #[cfg_attr(feature = "describe", arg(long, value_name = "DURATION", conflicts_with = "expires_at"))]
        expires_in: Option<DurationText>,
        #[cfg_attr(feature = "describe", arg(skip))]
        #[serde(skip)]
        trace: Option<TraceContext>,
        #[cfg_attr(feature = "describe", arg(skip))]
        #[serde(skip)]
        typed: Typed<K>,
    }
}

impl Job {
    /// Creates a job of `kind` whose payload is serialized as JSON.
    ///
    /// The stored payload may have 64 KiB. A client with a [`PayloadCodec`](crate::codec::PayloadCodec) can store up to 16 MiB
    /// in fewer bytes. JSON may nest 100 levels deep.
    #[must_use]
    pub fn new<P: Serialize + ?Sized>(kind: impl AsRef<str>, payload: &P) -> Self {
        Self::build(kind, payload)
    }

    /// Creates a job whose payload is JSON text, stored byte for byte. Malformed JSON is reported with line and column.
    #[must_use]
    pub fn json(kind: impl AsRef<str>, text: impl Into<String>) -> Self {
        Self::of(kind, Input::checked_bytes(None, text.into().into_bytes()))
    }

    /// Creates a job whose payload is bytes of any content type. JSON need not be valid. For the bounds of the payload see [`Job::new`].
    #[must_use]
    pub fn raw(kind: impl AsRef<str>, content_type: &str, bytes: impl Into<Arc<[u8]>>) -> Self {
        let job = Self::of(kind, Input::bytes(content_type, bytes));
        Self { content_type: Some(content_type.to_owned()), ..job }
    }
}

impl<K> Job<K> {
    fn build<P: Serialize + ?Sized>(kind: impl AsRef<str>, payload: &P) -> Self {
        Self::of(kind, Input::of(payload))
    }

    fn of(kind: impl AsRef<str>, payload: Input) -> Self {
        Self {
            kind: kind.as_ref().to_owned(),
            payload,
            content_type: None,
            options: JobOptions::default(),
            id: None,
            named: None,
            if_exists: IfExists::default(),
            run_at: None,
            delay: None,
            expires_at: None,
            expires_in: None,
            trace: None,
            typed: PhantomData,
        }
    }

    /// Sets the job's id. Submitting the same id, kind and payload again is the same job, so a job with an id can be
    /// submitted again whenever the outcome is in doubt. By default the client generates an id when it sends the job.
    ///
    /// `:` and `@` are refused: they separate the parts of composed ids ([`Job::named`], members of groups, ticks of
    /// schedules), so no explicit id can collide with one of those.
    #[must_use]
    pub fn id(self, id: impl AsRef<str>) -> Self {
        Self { id: Some(id.as_ref().to_owned()), named: None, ..self }
    }

    /// Sets the id `{kind}:{name}`: the name is unique within the kind.
    #[must_use]
    pub fn named(self, name: impl AsRef<str>) -> Self {
        Self { id: None, named: Some(name.as_ref().to_owned()), ..self }
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
    pub fn run_at(self, at: SystemTime) -> Self {
        Self { run_at: Some(at.into()), delay: None, ..self }
    }

    /// Sets the earliest start relative to the submission, by ZooKeeper's clock, so this machine's may be wrong. See
    /// [`Job::run_at`].
    #[must_use]
    pub fn delay(self, delay: Duration) -> Self {
        Self { run_at: None, delay: Some(delay.into()), ..self }
    }

    /// Sets the expiry. No attempt begins after this instant, by ZooKeeper's wall clock; the
    /// job is then dead. A running attempt continues, but if it fails after the expiry, it is not retried.
    #[must_use]
    pub fn expires_at(self, at: SystemTime) -> Self {
        Self { expires_at: Some(at.into()), expires_in: None, ..self }
    }

    /// Sets the expiry relative to the submission. See [`Job::expires_at`].
    #[must_use]
    pub fn expires_in(self, wait: Duration) -> Self {
        Self { expires_at: None, expires_in: Some(wait.into()), ..self }
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

    /// Returns the id that is set.
    #[must_use]
    pub fn given_id(&self) -> Option<&str> {
        self.id.as_deref()
    }

    /// Returns the name within the kind that is set.
    #[must_use]
    pub fn given_name(&self) -> Option<&str> {
        self.named.as_deref()
    }

    /// Returns what the submission does if a job with this id exists.
    #[must_use]
    pub fn given_if_exists(&self) -> IfExists {
        self.if_exists
    }

    /// Whether it has an id of its own.
    pub(crate) fn has_id(&self) -> bool {
        self.id.is_some() || self.named.is_some()
    }

    /// Returns the field that a schedule determines, and the alternative; `None` if a schedule can submit the job.
    pub(crate) fn field_of_schedule(&self) -> Option<(&'static str, &'static str)> {
        let id = "each tick has its own job, unless job_id of the schedule sets one id for all of them";
        let again = "with job_id of the schedule, a tick opens an ended job again";
        let tick = "it runs at the tick";
        let expiry = "use expires_after of the schedule";
        let fields = [
            (self.id.is_some(), "id", id),
            (self.named.is_some(), "named", id),
            (self.if_exists != IfExists::default(), "if_exists", again),
            (self.trace.is_some(), "traceparent", "the jobs of ticks belong to no trace"),
            (self.run_at.is_some(), "run_at", tick),
            (self.delay.is_some(), "delay", tick),
            (self.expires_at.is_some(), "expires_at", expiry),
            (self.expires_in.is_some(), "expires_in", expiry),
        ];
        fields.into_iter().find_map(|(given, field, instead)| given.then_some((field, instead)))
    }

    /// Returns what it has in common with the jobs of other ticks of a schedule.
    pub(crate) fn template(&self) -> JobTemplate {
        JobTemplate::of(self)
    }
}

impl<K: AnyKind> Job<K> {
    /// Checks whether a client without a [codec](crate::codec) can submit the job, without sending anything.
    ///
    /// # Errors
    /// The first error.
    pub fn check(&self) -> Result<(), JobError> {
        let parts = self.parts(clock::local())?;
        parts.payload.check_stored().map_err(JobError::Payload)
    }

    /// Like [`Job::check`], at the given time, and without the size of the payload.
    pub(crate) fn check_at(&self, now: WallMillis) -> Result<(), JobError> {
        self.parts(now).map(drop)
    }

    fn parts(&self, now: WallMillis) -> Result<Parts, JobError> {
        let (kind, payload) = content(&self.kind, &self.payload, self.content_type.as_deref())?;
        if let Some(expected) = K::KIND.filter(|expected| *expected != kind.as_str()) {
            return Err(JobError::Kind { given: kind, expected });
        }
        let options = self.options.checked_for(&kind)?;
        let id = match (&self.id, &self.named) {
            (None, None) => None,
            (Some(id), None) => Some(JobId::plain(id)?),
            (None, Some(name)) => Some(JobId::named(&kind, name)?),
            (Some(_), Some(_)) => return Err(JobError::Both { first: "id", second: "named" }),
        };
        let start = Moment::of(self.run_at, self.delay, START)?;
        let expiry = Moment::of(self.expires_at, self.expires_in, EXPIRY)?;
        // A delayed entry could be replaced by another one of the same minute unseen, which would then be promoted
        // instead.
        if let Some(start) = start.filter(|_| self.if_exists == IfExists::Again) {
            return Err(JobError::AgainWithStart { field: start.field(START) });
        }
        let times = Timing { start, expiry }.at(now)?;
        Ok(Parts { id, kind, payload, options, times })
    }

    /// Checks the job and returns its id and the record to store, with a new token and, if no id was set, a new id. The
    /// payload is plain: the caller encodes it or checks its size.
    pub(crate) fn into_record(
        self,
        submitted_at: WallMillis,
        uuid: impl Fn() -> Uuid,
    ) -> Result<(JobId, JobRecord), JobError> {
        let Parts { id, kind, payload, options, times } = self.parts(submitted_at)?;
        let Checked { policy, placement, priority } = options;
        let Times { not_before, expires_at } = times;
        let id = id.unwrap_or_else(|| JobId::from_uuid(uuid()));
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

/// The checked parts of a job.
struct Parts {
    id: Option<JobId>,
    kind: Kind,
    payload: Payload,
    options: Checked,
    times: Times,
}

impl<K> Clone for Job<K> {
    fn clone(&self) -> Self {
        Self {
            kind: self.kind.clone(),
            payload: self.payload.clone(),
            content_type: self.content_type.clone(),
            options: self.options.clone(),
            id: self.id.clone(),
            named: self.named.clone(),
            if_exists: self.if_exists,
            run_at: self.run_at,
            delay: self.delay,
            expires_at: self.expires_at,
            expires_in: self.expires_in,
            trace: self.trace,
            typed: PhantomData,
        }
    }
}

#[cfg(test)]
mod tests;
