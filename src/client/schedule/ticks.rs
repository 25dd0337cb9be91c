//! The ticks of a schedule, and the jobs of the last ones.

use std::time::SystemTime;

use bellwether_core::name::{JobId, ScheduleId};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use super::{ScheduleError, ScheduleRecordView, Schedules};
use crate::client::view::JobView;
use crate::schedule::tick_id;

/// The next and the last ticks of a schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScheduleTicks {
    /// The next ticks, the earliest first. Empty while the schedule is paused.
    pub next: Vec<SystemTime>,
    /// The last ticks by the present rule since the schedule was added, the latest first.
    pub last: Vec<PastTick>,
}

/// A tick that is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PastTick {
    /// When it was due.
    pub at: SystemTime,
    /// Its job; `None` if it got none, or if the record of its job was removed. If all ticks start the same job, only the last
    /// tick that did so has it.
    pub job: Option<JobView>,
}

impl Schedules {
    /// Returns at most `limit` next and at most `limit` last ticks, with the jobs of the last ones. Each tick costs a search in the
    /// calendar, and each last tick a read of its job.
    ///
    /// # Errors
    /// [`ScheduleError::NotFound`], [`ScheduleError::Unreadable`], or no answer within the client's deadline.
    pub fn ticks<'a>(
        &'a self,
        id: &'a ScheduleId,
        limit: usize,
    ) -> BoxFuture<'a, Result<ScheduleTicks, ScheduleError>> {
        async move {
            let record = self.get(id).await?.record;
            let record = record.map_err(|reason| ScheduleError::Unreadable { id: id.clone(), reason })?;
            let next = if record.paused { 0 } else { limit };
            let next = record.when.ticks_after(record.cursor, next)?;
            let last = record.when.ticks_through(record.cursor, limit)?.into_iter();
            let last = last.filter(|at| *at > record.created_at).map(|at| (at, job_of(id, &record, at)));
            let last = last.collect::<Vec<_>>();
            let ids = last.iter().filter_map(|(_, job)| job.clone()).collect::<Vec<_>>();
            let mut jobs = self.0.get_many(&ids).await?.into_iter();
            let past = |(at, job): (SystemTime, Option<JobId>)| {
                let job = job.and_then(|_| jobs.next().flatten());
                PastTick { at, job }
            };
            Ok(ScheduleTicks { next, last: last.into_iter().map(past).collect() })
        }
        .boxed()
    }
}

/// The id of the job that a tick has if it got one.
fn job_of(id: &ScheduleId, record: &ScheduleRecordView, at: SystemTime) -> Option<JobId> {
    match &record.job_id {
        None => Some(tick_id(id, at)),
        Some(job) => (record.last_tick == Some(at)).then(|| job.clone()),
    }
}
