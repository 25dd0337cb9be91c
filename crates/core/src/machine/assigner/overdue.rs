//! Until when the waiting jobs that expire may be started.
//!
//! Jobs without an expiry, nearly all, are not in it and cost nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::name::JobId;
use crate::time::WallMillis;

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Overdue {
    due: BTreeSet<(WallMillis, JobId)>,
    jobs: BTreeMap<JobId, WallMillis>,
}

impl Overdue {
    /// A job waits; what was known of it is of the past.
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

    /// Until when the first of them may be started.
    pub(super) fn next(&self) -> Option<WallMillis> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Takes out one that may not be started any more, with when it expired.
    pub(super) fn pop(&mut self, now: WallMillis) -> Option<(JobId, WallMillis)> {
        if self.next().is_none_or(|at| at >= now) {
            return None;
        }
        let (at, job) = self.due.pop_first()?;
        self.jobs.remove(&job);
        Some((job, at))
    }
}
