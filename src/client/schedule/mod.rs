//! Schedules: adding, changing, listing and triggering them.
//!
//! Each call reads, decides, and writes with a check of the version that it read. If the write is rejected, the
//! schedule has changed (for example, it ticked). If the reply is lost, the outcome is unknown. In both cases the
//! schedule is read and decided again. Adding, pausing and similar calls are done when the schedule has the requested
//! state, whichever client wrote it. A trigger's job has an id that only this call knows, so the call can find it
//! again. If the schedule has a job id, a trigger is a submission of that id, which opens an ended job again.

mod builder;
mod change;
mod encoding;
mod error;
mod list;
mod rule;
mod ticks;
mod view;

use bellwether_core::budget::MAX_SCHEDULES;
use bellwether_core::change::ChangeKind;
use bellwether_core::name::{JobId, ScheduleId};
use bellwether_core::path;
use bellwether_core::schedule::{ScheduleRecord, ScheduleSpec, SpecError, When};
use bellwether_core::time::WallMillis;
use bellwether_core::txn;
use bellwether_core::wire::{self, WireError};
use bellwether_zk::Node;
use futures::FutureExt as _;
use futures::future::BoxFuture;

pub use builder::Schedule;
pub use change::ScheduleChange;
pub use error::ScheduleError;
pub use rule::Rule;
pub use ticks::{PastTick, ScheduleTicks};
pub use view::{ScheduleRecordView, ScheduleState, ScheduleView};

use serde::Serialize;

use super::Client;
use super::error::Error;
use super::session::{Deadline, Written};
use super::submit::JobHandle;

/// Limit of attempts for a schedule that changes concurrently. Each lost attempt means that it ticked, or that
/// another client changed it.
const TRIES: u32 = 16;

/// The outcome of adding a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Added {
    /// The schedule was created.
    Created,
    /// The same schedule existed already.
    Unchanged,
    /// A different schedule of this id existed and was replaced.
    Replaced,
}

bellwether_core::impl_names!(Added {
    Created = "created",
    Unchanged = "unchanged",
    Replaced = "replaced",
});

/// The schedules of a client's namespace; see [`Client::schedules`].
#[derive(Debug, Clone)]
pub struct Schedules(Client);

impl Client {
    /// Returns the schedules of the namespace.
    #[must_use]
    pub fn schedules(&self) -> Schedules {
        Schedules(self.clone())
    }
}

/// The znode of a schedule.
struct Stored {
    version: i32,
    record: Result<ScheduleRecord, WireError>,
}

impl Schedules {
    /// Adds a schedule. Its first tick is the first one after now.
    ///
    /// Adding the same name and spec again is the same schedule. Another spec is a conflict, unless the schedule
    /// [replaces](Schedule::replace) the existing one. Then the existing schedule gets this spec and its spec version
    /// grows by one; ticks that were due but not made yet are recorded as skipped, and a pause continues.
    ///
    /// With a [codec](crate::codec), the payload is encoded once, for all jobs of the schedule. An existing schedule with the same
    /// plain payload is the same schedule if that is encoded too.
    ///
    /// # Errors
    /// [`ScheduleError`]. For all except [`ScheduleError::Unknown`], nothing was written. After that error, adding
    /// the schedule again is safe.
    ///
    /// # Cancellation
    /// A dropped call may or may not have added the schedule: add it again.
    ///
    /// # Connection loss
    /// A lost reply is resolved by reading back, until the client's deadline.
    pub fn add<'a>(&'a self, schedule: &'a Schedule) -> BoxFuture<'a, Result<Added, ScheduleError>> {
        async move {
            let (id, spec) = schedule.spec()?;
            let by = self.0.by();
            let plain = spec.template.payload.clone();
            // Compared as it is stored: without fractions of a millisecond.
            let mut spec = as_stored(self.encoded(&id, spec, by).await?)?;
            let mut sent = None;
            let added = async {
                for _ in 0..TRIES {
                    let now = self.0.0.session.wall();
                    let found = self.read(&id, by).await?;
                    if let Some(Stored { record: Ok(there), .. }) = &found {
                        self.adopt_payload(&id, &mut spec, &plain, there, by).await?;
                    }
                    let (ops, done) = match found {
                        None => {
                            will_tick(&id, &spec, now)?;
                            self.has_room(by).await?;
                            let changed = self.0.change(ChangeKind::Added);
                            let record = ScheduleRecord { changed, ..ScheduleRecord::new(spec.clone(), now) };
                            (txn::add_schedule(&id, &record), Added::Created)
                        }
                        Some(Stored { record: Ok(record), .. }) if record.spec == spec => {
                            // This call's own write, if its reply was lost.
                            return Ok(sent.unwrap_or(Added::Unchanged));
                        }
                        Some(Stored { record: Ok(record), .. }) if !schedule.replaces() => {
                            let differs = difference(&record.spec, &spec);
                            return Err(ScheduleError::Conflict { id: id.clone(), differs });
                        }
                        Some(Stored { version, record }) => {
                            let record = replaced(&id, readable(&id, record)?, spec.clone(), now)?;
                            let changed = self.0.change(ChangeKind::Replaced);
                            let record = ScheduleRecord { changed, ..record };
                            (txn::set_schedule(&id, version, &record), Added::Replaced)
                        }
                    };
                    match self.0.0.session.commit(by, ops).await? {
                        Written::Applied => return Ok(done),
                        Written::Rejected => {}
                        Written::Unknown => sent = Some(done),
                    }
                }
                Err(ScheduleError::Contended { id: id.clone(), tries: TRIES })
            };
            let added = added.await;
            added.map_err(|error| unsure(error, &id, by, sent.is_some()))
        }
        .boxed()
    }

    /// Reads one schedule.
    ///
    /// # Errors
    /// [`ScheduleError::NotFound`], or no answer within the client's deadline.
    pub fn get<'a>(&'a self, id: &'a ScheduleId) -> BoxFuture<'a, Result<ScheduleView, ScheduleError>> {
        async move {
            let stored = self.found(id, self.0.by()).await?;
            Ok(ScheduleView::of(id.clone(), stored.record))
        }
        .boxed()
    }

    /// Changes a schedule and keeps the rest of its spec, above all the job of its ticks. The first tick by the new spec is the
    /// first one after now; ticks that were due but not made yet are recorded as skipped, and a pause continues. The
    /// spec version grows by one, unless nothing changes.
    ///
    /// # Errors
    /// [`ScheduleError`]. After [`ScheduleError::Unknown`] the schedule may have been changed; changing it again is safe.
    ///
    /// # Connection loss
    /// A lost reply is resolved by reading back, until the client's deadline.
    pub fn change<'a>(
        &'a self,
        id: &'a ScheduleId,
        change: &'a ScheduleChange,
    ) -> BoxFuture<'a, Result<ScheduleView, ScheduleError>> {
        async move {
            change.check()?;
            self.rewrite(id, ChangeKind::Replaced, |record| {
                let spec = change.of(record.spec.clone())?;
                spec.check()?;
                // Compared as it is stored, so that this call's own write is recognised if its reply was lost.
                let spec = as_stored(spec)?;
                Ok(if spec == record.spec {
                    None
                } else {
                    Some(replaced(id, record, spec, self.0.0.session.wall())?)
                })
            })
            .await
        }
        .boxed()
    }

    /// Pauses a schedule. Jobs of ticks that were already made are not affected.
    ///
    /// # Errors
    /// [`ScheduleError`]. After [`ScheduleError::Unknown`] the schedule may be paused; pausing again is safe.
    pub fn pause<'a>(&'a self, id: &'a ScheduleId) -> BoxFuture<'a, Result<ScheduleView, ScheduleError>> {
        async move {
            self.rewrite(id, ChangeKind::Paused, |record| Ok((!record.paused).then(|| record.pause()))).await
        }
        .boxed()
    }

    /// Resumes a schedule with the first tick after now. Ticks that fell into the pause are not made up; they are
    /// recorded as skipped.
    ///
    /// # Errors
    /// The errors of [`Schedules::pause`].
    pub fn resume<'a>(&'a self, id: &'a ScheduleId) -> BoxFuture<'a, Result<ScheduleView, ScheduleError>> {
        async move {
            self.rewrite(id, ChangeKind::Resumed, |record| {
                Ok(if record.paused { Some(record.resume(self.0.0.session.wall())?) } else { None })
            })
            .await
        }
        .boxed()
    }

    /// Submits the schedule's job now, in addition to its ticks. The cursor, the ticks and a pause are not affected,
    /// and a schedule that forbids overlap ignores this job. If its ticks queue, this job queues with them.
    ///
    /// If the schedule has a [job id](Schedule::job_id), this opens that job again once it has ended. While it is open,
    /// nothing is changed, and the handle is a [duplicate](JobHandle::is_duplicate).
    ///
    /// # Errors
    /// [`ScheduleError`]. After [`ScheduleError::TriggerUnknown`] the job may have been submitted.
    ///
    /// # Cancellation
    /// A dropped call may have submitted the job.
    pub fn trigger<'a>(&'a self, id: &'a ScheduleId) -> BoxFuture<'a, Result<JobHandle, ScheduleError>> {
        async move {
            let by = self.0.by();
            let session = &self.0.0.session;
            let token = session.uuid();
            let (mut sent, mut unknown) = (None::<JobId>, false);
            let triggered = async {
                for _ in 0..TRIES {
                    if let Some(job) = &sent
                        && session.read(by, |zk| zk.get(path::record(job))).await?.is_some()
                    {
                        return Ok(JobHandle::made(self.0.clone(), job.clone()));
                    }
                    let Stored { version, record } = self.found(id, by).await?;
                    let record = readable(id, record)?;
                    let (job, made) = record.triggered_job(id, token, session.wall());
                    if let Some(job) = record.spec.template.job_id.clone().filter(|_| !unknown) {
                        let opened = self.0.submit_again(job, made).await;
                        return opened.map_err(|error| ScheduleError::Submit(Box::new(error)));
                    }
                    match session.commit(by, txn::trigger(id, version, &job, &made)).await? {
                        Written::Applied => return Ok(JobHandle::made(self.0.clone(), job)),
                        // A rejection may also mean that an earlier copy was applied after the read: then the next read
                        // finds the job.
                        Written::Rejected => sent = Some(job),
                        Written::Unknown => (sent, unknown) = (Some(job), true),
                    }
                }
                Err(ScheduleError::Contended { id: id.clone(), tries: TRIES })
            };
            let triggered = triggered.await;
            triggered.map_err(|error| match (unsure(error, id, by, unknown), sent) {
                (ScheduleError::Unknown { id, within }, Some(job)) => {
                    ScheduleError::TriggerUnknown { id, job, within }
                }
                (error, _) => error,
            })
        }
        .boxed()
    }

    /// Removes a schedule, even if it cannot be read. Its jobs are kept. Returns `false` if it did not exist.
    ///
    /// # Errors
    /// [`ScheduleError`]. After [`ScheduleError::Unknown`] the schedule may be removed; removing it again is safe.
    pub fn remove<'a>(&'a self, id: &'a ScheduleId) -> BoxFuture<'a, Result<bool, ScheduleError>> {
        async move {
            let by = self.0.by();
            let mut sent = false;
            let removed = async {
                for _ in 0..TRIES {
                    let Some(stored) = self.read(id, by).await? else { return Ok(sent) };
                    let change = self.0.change(ChangeKind::Removed);
                    let ops = txn::remove_schedule(id, stored.version, change.as_ref());
                    match self.0.0.session.commit(by, ops).await? {
                        Written::Applied => return Ok(true),
                        Written::Rejected => {}
                        Written::Unknown => sent = true,
                    }
                }
                Err(ScheduleError::Contended { id: id.clone(), tries: TRIES })
            };
            let removed = removed.await;
            removed.map_err(|error| unsure(error, id, by, sent))
        }
        .boxed()
    }

    /// Writes the record that `make` returns. `None` means that nothing has to be changed.
    async fn rewrite(
        &self,
        id: &ScheduleId,
        what: ChangeKind,
        make: impl Fn(ScheduleRecord) -> Result<Option<ScheduleRecord>, ScheduleError>,
    ) -> Result<ScheduleView, ScheduleError> {
        let by = self.0.by();
        let mut sent = false;
        let written = async {
            for _ in 0..TRIES {
                let Stored { version, record } = self.found(id, by).await?;
                let record = readable(id, record)?;
                let Some(changed) = make(record.clone())? else {
                    return Ok(ScheduleView::of(id.clone(), Ok(record)));
                };
                let changed = ScheduleRecord { changed: self.0.change(what), ..changed };
                match self.0.0.session.commit(by, txn::set_schedule(id, version, &changed)).await? {
                    Written::Applied => return Ok(ScheduleView::of(id.clone(), Ok(changed))),
                    Written::Rejected => {}
                    Written::Unknown => sent = true,
                }
            }
            Err(ScheduleError::Contended { id: id.clone(), tries: TRIES })
        };
        let written = written.await;
        written.map_err(|error| unsure(error, id, by, sent))
    }

    async fn found(&self, id: &ScheduleId, by: Deadline) -> Result<Stored, ScheduleError> {
        self.read(id, by).await?.ok_or_else(|| ScheduleError::NotFound(id.clone()))
    }

    async fn read(&self, id: &ScheduleId, by: Deadline) -> Result<Option<Stored>, ScheduleError> {
        let node = self.0.0.session.read(by, |zk| zk.get(path::schedule(id))).await?;
        Ok(node.map(|Node { data, version, .. }| Stored { version, record: wire::decode(&data) }))
    }

    /// The limit protects third-party tools, so exceeding it slightly with many concurrent clients does no harm.
    async fn has_room(&self, by: Deadline) -> Result<(), ScheduleError> {
        let parent = self.0.0.session.read(by, |zk| zk.get(path::SCHEDULES.to_owned())).await?;
        let schedules = parent.map_or(0, |parent| parent.children);
        if schedules >= MAX_SCHEDULES {
            return Err(ScheduleError::TooMany { schedules });
        }
        Ok(())
    }
}

fn readable(
    id: &ScheduleId,
    record: Result<ScheduleRecord, WireError>,
) -> Result<ScheduleRecord, ScheduleError> {
    record.map_err(|reason| ScheduleError::Unreadable { id: id.clone(), reason })
}

/// Once a write was sent whose reply was lost, it may be applied after any read, so an error must not say that nothing was written.
fn unsure(error: ScheduleError, id: &ScheduleId, by: Deadline, sent: bool) -> ScheduleError {
    match error {
        ScheduleError::Client(Error::Unavailable(_))
        | ScheduleError::Contended { .. }
        | ScheduleError::Past { .. }
        | ScheduleError::TooMany { .. }
            if sent =>
        {
            ScheduleError::Unknown { id: id.clone(), within: by.within }
        }
        error => error,
    }
}

fn will_tick(id: &ScheduleId, spec: &ScheduleSpec, now: WallMillis) -> Result<(), ScheduleError> {
    if let When::At(at) = spec.when
        && at <= now
    {
        return Err(ScheduleError::Past { id: id.clone(), at: at.into() });
    }
    Ok(())
}

/// A schedule that has ended may get another job and keep its instant.
fn replaced(
    id: &ScheduleId,
    record: ScheduleRecord,
    spec: ScheduleSpec,
    now: WallMillis,
) -> Result<ScheduleRecord, ScheduleError> {
    if spec.when != record.spec.when {
        will_tick(id, &spec, now)?;
    }
    Ok(record.replace(spec, now)?)
}

fn as_stored(spec: ScheduleSpec) -> Result<ScheduleSpec, SpecError> {
    let record = ScheduleRecord::new(spec, Default::default());
    let stored = wire::decode::<ScheduleRecord>(&wire::encode(&record));
    let refused = |error: WireError| SpecError::Bound {
        field: "schedule",
        allowed: "one that can be stored".to_owned(),
        given: error.to_string(),
    };
    Ok(stored.map_err(refused)?.spec)
}

fn difference(there: &ScheduleSpec, given: &ScheduleSpec) -> &'static str {
    if there.when != given.when {
        "time to tick"
    } else if there.misfire != given.misfire || there.grace != given.grace {
        "misfire policy"
    } else if there.overlap != given.overlap {
        "overlap policy"
    } else if there.template.kind != given.template.kind {
        "kind of job"
    } else if there.template.payload != given.template.payload {
        "payload"
    } else if there.template.job_id != given.template.job_id {
        "job id"
    } else {
        "job policy or placement"
    }
}

#[cfg(test)]
mod tests;
