//! The invariants for each transaction that changes the job.

use bellwether_core::job::{Assignment, AttemptOutcome, JobRecord, JobState, Verdict};
use bellwether_core::name::WorkerId;
use bellwether_core::path::{self, Place};
use uuid::Uuid;

use super::model::Invariant;
use super::stage::{JOB, job};
use crate::zookeeper::ZooKeeper;

/// Identifies one of the jobs that successively have the id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Life {
    token: Uuid,
    generation: u32,
}

impl Life {
    pub(crate) fn of(record: &JobRecord) -> Self {
        Self { token: record.token, generation: record.generation }
    }
}

/// The job's state in ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) record: Option<(JobRecord, i32)>,
    /// Number of places: queue, delayed, inboxes and quarantine.
    places: usize,
    pub(crate) assigned: Vec<(WorkerId, Assignment)>,
}

impl View {
    pub(crate) fn of(zk: &ZooKeeper) -> Self {
        let (mut places, mut assigned) = (0, Vec::new());
        // All other paths of the job end with its name, so the rest need not be parsed.
        let may_be = |path: &&String| path.ends_with(JOB) || path.starts_with(path::READY);
        for path in zk.znodes.keys().filter(may_be) {
            match path::parse(path) {
                Place::Ready(_) | Place::DelayedEntry(..) => places += 1,
                Place::Assignment(worker, _) => {
                    places += 1;
                    assigned.push((worker, zk.value(path).expect("the assignment exists").0));
                }
                Place::ReadyClass(_)
                | Place::ReadySlot(..)
                | Place::Worker(_)
                | Place::Inbox(_)
                | Place::Turn(..)
                | Place::Schedule(_)
                | Place::Group(_)
                | Place::SegmentChunk(..)
                | Place::Other => {}
            }
        }
        Self { record: zk.value(&path::record(&job())), places, assigned }
    }

    /// Returns the invariant that the transaction from `self` to `after` broke.
    pub(crate) fn broken_by(&self, after: &Self) -> Option<Invariant> {
        let Some((record, next)) = &after.record else {
            let open = self.record.as_ref().is_some_and(|(before, _)| !before.is_terminal());
            return if open { Some(Invariant::Kept) } else { (after.places > 0).then_some(Invariant::Over) };
        };
        if after.places != usize::from(!record.is_terminal()) {
            return Some(if record.is_terminal() { Invariant::Over } else { Invariant::OnePlace });
        }
        let Some((before, version)) = &self.record else {
            return (record.is_terminal() || record.generation != 1).then_some(Invariant::OneEnd);
        };
        if next == version {
            return None;
        }
        let (was, is) = (Life::of(before), Life::of(record));
        if before.is_terminal() {
            let opened = !record.is_terminal() && is.generation == was.generation + 1;
            return (!opened).then_some(Invariant::OneEnd);
        }
        if was != is {
            return Some(Invariant::Own);
        }
        if before == record
            && let ([(from, was)], [(to, is)]) = (&self.assigned[..], &after.assigned[..])
        {
            let moved = Assignment { fencing_token: *next, moved_from: Some(*version), ..was.clone() };
            return (from == to || was.fencing_token != *version || *is != moved).then_some(Invariant::Moves);
        }
        if record.attempts == before.attempts {
            return self.ended_where_it_waited(before, record);
        }
        self.closed(before, record)
    }

    fn ended_where_it_waited(&self, before: &JobRecord, record: &JobRecord) -> Option<Invariant> {
        let ended = match record.state {
            JobState::Terminal { verdict: Verdict::Cancelled, .. } => true,
            JobState::Terminal { verdict: Verdict::Dead, .. } => before.expires_at.is_some(),
            JobState::Terminal { verdict: Verdict::Succeeded(_), .. } | JobState::Open { .. } => false,
        };
        (!ended || !self.assigned.is_empty()).then_some(Invariant::Attempts)
    }

    fn closed(&self, before: &JobRecord, record: &JobRecord) -> Option<Invariant> {
        let assigned = match (record.last, &self.assigned[..]) {
            (Some(last), [(worker, assigned)]) if last.attempt.worker == *worker => (last, assigned),
            _ => return Some(Invariant::Attempts),
        };
        let (last, assignment) = assigned;
        let in_order = record.attempts == before.attempts + 1 && last.attempt.number == record.attempts;
        let ran = matches!(last.how, AttemptOutcome::Succeeded | AttemptOutcome::Failed);
        let policy = &record.policy;
        if !in_order
            || (ran && assignment.attempt != record.attempts)
            || record.failures > policy.max_attempts
            || record.losses > policy.max_losses
        {
            return Some(Invariant::Attempts);
        }
        (assignment.cancel && !record.is_terminal()).then_some(Invariant::Cancel)
    }
}
