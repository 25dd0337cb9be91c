//! Jobs with their places, workers with their inboxes, lanes with their turns.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_core::job::{Delay, Turn};
use bellwether_core::name::{JobId, Lane, NodeId, WorkerId};
use bellwether_core::path::Place;

use super::{Change, Spot, Value};

/// The place of an open job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobPlace {
    /// In the queue.
    Queue,
    /// Among the delayed jobs of a minute.
    Delayed(Delay),
    /// In an inbox.
    Inbox(WorkerId),
    /// In quarantine.
    Quarantine,
}

/// The position of a turn in its lane: the transaction that created it, and its index in that transaction.
pub type TurnOrder = (i64, u32);

/// The znodes of a job other than its record.
#[derive(Debug, Default)]
pub struct Job {
    /// Its places: one if it is open, none if it is terminal.
    pub places: BTreeSet<JobPlace>,
    /// Its turns.
    pub turns: BTreeMap<Turn, TurnOrder>,
    /// Whether a record of it was ever removed. The rules decide whether that was allowed.
    pub removed: bool,
}

/// A worker that has registered.
#[derive(Debug)]
pub struct Worker {
    /// Its node; unknown if its registration cannot be read.
    pub node: Option<NodeId>,
    /// The session that registered it.
    pub session: i64,
    /// Whether its ephemeral exists.
    pub registered: bool,
    /// Whether its inbox exists.
    pub inbox: bool,
    /// The jobs assigned to it.
    pub jobs: BTreeSet<JobId>,
}

/// All jobs, workers and lanes.
#[derive(Debug, Default)]
pub struct Jobs {
    jobs: BTreeMap<JobId, Job>,
    workers: BTreeMap<WorkerId, Worker>,
    lanes: BTreeMap<Lane, BTreeMap<TurnOrder, (JobId, Turn)>>,
    inboxes: BTreeSet<WorkerId>,
}

impl Jobs {
    /// Iterates over every job that has, or had, a record or a place.
    pub fn all(&self) -> impl Iterator<Item = (&JobId, &Job)> {
        self.jobs.iter()
    }

    /// Returns one job.
    #[must_use]
    pub fn get(&self, job: &JobId) -> Option<&Job> {
        self.jobs.get(job)
    }

    /// Iterates over every worker that ever registered.
    pub fn workers(&self) -> impl Iterator<Item = (WorkerId, &Worker)> {
        self.workers.iter().map(|(id, worker)| (*id, worker))
    }

    /// Returns one worker.
    #[must_use]
    pub fn worker(&self, worker: WorkerId) -> Option<&Worker> {
        self.workers.get(&worker)
    }

    /// Iterates over the existing inboxes.
    pub fn inboxes(&self) -> impl Iterator<Item = WorkerId> {
        self.inboxes.iter().copied()
    }

    /// Iterates over the turns of a lane, in order.
    pub fn lane(&self, lane: &Lane) -> impl Iterator<Item = (TurnOrder, &JobId)> {
        self.lanes.get(lane).into_iter().flatten().map(|(order, (job, _))| (*order, job))
    }

    /// Iterates over all turns.
    pub fn turns(&self) -> impl Iterator<Item = (&Turn, &JobId)> {
        self.lanes.values().flat_map(BTreeMap::values).map(|(job, turn)| (turn, job))
    }

    pub(super) fn note(&mut self, change: &Change) {
        match &change.spot {
            Spot::Record(job) => {
                self.jobs.entry(job.clone()).or_default().removed |= change.after.is_none();
            }
            Spot::Quarantine(job) => self.place(job, JobPlace::Quarantine, change),
            Spot::Place(Place::Ready(entry)) => self.place(entry.job(), JobPlace::Queue, change),
            Spot::Place(Place::DelayedEntry(delay, job)) => {
                self.place(job, JobPlace::Delayed(*delay), change);
            }
            Spot::Place(Place::Assignment(worker, job)) => {
                self.place(job, JobPlace::Inbox(*worker), change);
                if let Some(worker) = self.workers.get_mut(worker) {
                    present(&mut worker.jobs, job, change);
                }
            }
            Spot::Place(Place::Worker(id)) => self.worker_changed(*id, change),
            Spot::Place(Place::Inbox(id)) => {
                present(&mut self.inboxes, id, change);
                if let Some(worker) = self.workers.get_mut(id) {
                    worker.inbox = change.after.is_some();
                }
            }
            Spot::Place(Place::Turn(turn, job)) => self.turn_changed(turn, job, change),
            Spot::Epoch
            | Spot::Candidate
            | Spot::Retention
            | Spot::Place(
                Place::ReadyClass(_)
                | Place::ReadySlot(..)
                | Place::Schedule(_)
                | Place::Group(_)
                | Place::SegmentChunk(..)
                | Place::Other,
            ) => {}
        }
    }

    fn place(&mut self, job: &JobId, place: JobPlace, change: &Change) {
        present(&mut self.jobs.entry(job.clone()).or_default().places, &place, change);
    }

    fn worker_changed(&mut self, id: WorkerId, change: &Change) {
        let inbox = self.inboxes.contains(&id);
        match (&change.after, self.workers.get_mut(&id)) {
            (after, Some(worker)) => worker.registered = after.is_some(),
            (Some(after), None) => {
                let node = after.worker().map(|info| info.node.clone());
                let jobs = BTreeSet::new();
                let worker = Worker { node, session: after.owner, registered: true, inbox, jobs };
                self.workers.insert(id, worker);
            }
            (None, None) => {}
        }
    }

    fn turn_changed(&mut self, turn: &Turn, job: &JobId, change: &Change) {
        let entry = self.jobs.entry(job.clone()).or_default();
        let lane = self.lanes.entry(turn.lane.clone()).or_default();
        if let Some(order) = entry.turns.remove(turn) {
            lane.remove(&order);
        }
        if let Some(after) = &change.after {
            let index = match &*after.value {
                Value::Turn(index) => index.0,
                // An unreadable turn is ordered last within its transaction, as in the state machines.
                _ => u32::MAX,
            };
            entry.turns.insert(turn.clone(), (after.czxid, index));
            lane.insert((after.czxid, index), (job.clone(), turn.clone()));
        }
    }
}

fn present<T: Ord + Clone>(set: &mut BTreeSet<T>, value: &T, change: &Change) {
    if change.after.is_some() {
        set.insert(value.clone());
    } else {
        set.remove(value);
    }
}
