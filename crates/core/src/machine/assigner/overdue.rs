//! Expiry times of the waiting jobs.
//!
//! Jobs without an expiry, nearly all, are not stored here.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::JobId;
use crate::time::WallMillis;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Overdue {
    due: BTreeSet<(WallMillis, JobId)>,
    jobs: BTreeMap<JobId, WallMillis>,
}

impl Overdue {
    /// Records the expiry of a waiting job and replaces an earlier one.
    pub(super) fn note(&mut self, job: &JobId, expires_at: Option<WallMillis>) {
        self.forget(job);
        if let Some(at) = expires_at {
            self.due.insert((at, job.clone()));
            self.jobs.insert(job.clone(), at);
        }
    }

    pub(super) fn forget(&mut self, job: &JobId) {
        if let Some(at) = self.jobs.remove(job) {
            self.due.remove(&(at, job.clone()));
        }
    }

    /// Returns the earliest expiry.
    pub(super) fn next(&self) -> Option<WallMillis> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes out one expired job, with the time of its expiry.
    pub(super) fn pop(&mut self, now: WallMillis) -> Option<(JobId, WallMillis)> {
        if self.next().is_none_or(|at| at >= now) {
            return None;
        }
        let (at, job) = self.due.pop_first()?;
        self.jobs.remove(&job);
        Some((job, at))
    }
}
