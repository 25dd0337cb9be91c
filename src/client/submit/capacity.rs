//! The capacity of the namespace for the submissions of a client.

use bellwether_zk::ReadResult;
use futures::future::try_join;

use super::super::error::SubmitError;
use super::super::runtime::Zk;
use super::super::session::Session;
use super::Submission;
use super::load::Load;
use super::minutes::{Full, Minutes};
use super::occupancy::Occupancy;
use super::packed::Packed;
use super::parts::Parts;

/// Capacity of the buckets and minutes that submissions go to, and the parts of their slots.
#[derive(Debug, Default)]
pub(super) struct Capacity {
    buckets: Occupancy,
    minutes: Minutes,
    pub(super) parts: Parts,
}

impl Capacity {
    pub(super) async fn refresh(&self, session: &Session, zk: &Zk, load: &Load) -> ReadResult<()> {
        let minutes = load.jobs.iter().filter_map(|job| Some(job.record.delay()?.minute)).collect();
        let now = session.now();
        let segments = load.segments.iter().map(Packed::job).collect::<Vec<_>>();
        let ids = load.jobs.iter().map(|job| &job.id).chain(&segments);
        try_join(self.buckets.refresh(zk, now, ids), self.minutes.refresh(zk, now, minutes)).await?;
        Ok(())
    }

    /// Takes the places of a job, or returns why it cannot. A reopened job keeps the place of its record.
    pub(super) fn take(&self, job: &Submission) -> Result<(), SubmitError> {
        let id = || job.id.clone();
        if let Some(delay) = job.record.delay() {
            self.minutes.take(delay.minute).map_err(|full| match full {
                Full::Minute(entries) => SubmitError::MinuteFull { id: id(), entries },
                Full::Minutes(minutes) => SubmitError::TooManyMinutes { id: id(), minutes },
            })?;
        }
        if job.reopens.is_none() {
            self.buckets.take(&job.id).map_err(|entries| SubmitError::Overloaded { id: id(), entries })?;
        }
        Ok(())
    }

    /// Takes the place of a segment, or returns how many entries its bucket has. Its chunks are below it, and records of its members
    /// are counted when the bucket is read again.
    pub(super) fn take_segment(&self, segment: &Packed) -> Result<(), usize> {
        self.buckets.take(&segment.job())
    }
}
