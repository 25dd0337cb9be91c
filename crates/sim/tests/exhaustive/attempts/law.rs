//! What must hold of each transaction that changes the job.

use bellwether_core::job::{Assignment, AttemptEndKind, JobRecord, JobState, Verdict};
use bellwether_core::name::WorkerId;
use bellwether_core::path::{self, Place};

use super::model::Law;
use super::stage::job;
use crate::zookeeper::ZooKeeper;

/// The job, as it stands in ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct View {
    pub(crate) record: Option<(JobRecord, i32)>,
    /// Queue, delayed, inboxes, quarantine.
    places: usize,
    pub(crate) assigned: Vec<(WorkerId, Assignment)>,
}

impl View {
    pub(crate) fn of(zk: &ZooKeeper) -> Self {
        let (mut places, mut assigned) = (0, Vec::new());
        for path in zk.znodes.keys() {
            match path::parse(path) {
                Place::QueueEntry(_) | Place::DelayedEntry(..) => places += 1,
                Place::Assignment(worker, _) => {
                    places += 1;
                    assigned.push((worker, zk.value(path).expect("it is there").0));
                }
                Place::Worker(_)
                | Place::Inbox(_)
                | Place::Turn(..)
                | Place::Schedule(_)
                | Place::Group(_)
                | Place::Other => {}
            }
        }
        Self { record: zk.value(&path::record(&job())), places, assigned }
    }

    /// What a transaction that led from here to `after` broke.
    pub(crate) fn broken_by(&self, after: &Self) -> Option<Law> {
        let Some((before, version)) = &self.record else { return Some(Law::Kept) };
        let Some((record, next)) = &after.record else { return Some(Law::Kept) };
        if after.places != usize::from(!record.is_terminal()) {
            return Some(if record.is_terminal() { Law::Over } else { Law::OnePlace });
        }
        if next == version {
            return None;
        }
        if before.is_terminal() {
            return Some(Law::OneEnd);
        }
        let closed = record.attempts != before.attempts;
        if !closed {
            // Cancelled where it waited.
            let cancelled = matches!(record.state, JobState::Terminal { verdict: Verdict::Cancelled, .. });
            return (!cancelled || !self.assigned.is_empty()).then_some(Law::Attempts);
        }
        let assigned = match (record.last, &self.assigned[..]) {
            (Some(last), [(worker, assigned)]) if last.attempt.worker == *worker => (last, assigned),
            _ => return Some(Law::Attempts),
        };
        let (last, assignment) = assigned;
        let in_order = record.attempts == before.attempts + 1 && last.attempt.number == record.attempts;
        let ran = matches!(last.how, AttemptEndKind::Succeeded | AttemptEndKind::Failed);
        let policy = &record.policy;
        if !in_order
            || (ran && assignment.attempt != record.attempts)
            || record.failures > policy.max_attempts
            || record.losses > policy.max_losses
        {
            return Some(Law::Attempts);
        }
        (assignment.cancel && !record.is_terminal()).then_some(Law::Cancel)
    }
}
