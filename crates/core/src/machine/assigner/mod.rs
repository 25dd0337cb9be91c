//! Which waiting job goes to which worker, and when.
//!
//! The assigner knows what waits (`pending`), who has room (`capacity`) and picks by a [`Strategy`]. It
//! gives back multis, each behind the epoch's fence and the versions of the workers that it names, so that
//! ZooKeeper itself refuses to assign after another leader has claimed, to a worker that has left or drains,
//! or a job that is no longer queued. What it believes may be stale at any moment; it can only waste a write.
//!
//! | what comes back | what happens to the batch's jobs |
//! | --- | --- |
//! | applied | assigned: they count against their worker until its inbox is listed |
//! | rejected: epoch | the term is over: [`Effect::FencedOut`], nothing more is planned |
//! | rejected: a worker's check, or its inbox | that worker is out until the registry tells of a registration that was not checked; all wait again |
//! | rejected: an entry is gone | that job is forgotten (cancelled, or assigned by a write thought lost); the rest wait again |
//! | rejected: a turn is gone | that job waits for its turn anew (`gate`); the rest wait again |
//! | rejected: a turn is another version | that job, and its lane, wait for the next sweep; the rest wait again |
//! | not sent, or refused as a whole | all wait again, until the session is back or the next sweep |
//! | unknown | in limbo: counted, not planned; after the session is back their entries are read |
//!
//! An unknown write may be applied even after its entries were read and the jobs were planned anew. Then the
//! second plan is rejected, because the entry is gone. So a job is never in two inboxes.
//!
//! Of a *paused* kind nothing is assigned; what is under way goes on. A new leader assigns nothing before it knows what is
//! paused, as before it knows every worker's inbox.
//!
//! A job whose expiry has passed is given back as [`Effect::Overdue`] and forgotten: somebody ends it
//! ([`expirer`](super::expirer)). What was sent to a worker in time and arrives late is refused there.
//!
//! A batch is sent at once when none is in flight; while one is, jobs gather until a full batch is there.
//! Limits: [`BATCH`] jobs a batch, [`WINDOW`] batches in flight.

mod capacity;
mod event;
mod gate;
mod overdue;
mod pauses;
mod pending;
mod strategy;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::budget::DEFAULT_LEASE;
use crate::job::{Assignment, QueueEntry};
use crate::name::{JobId, WorkerId};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Batch, Locus, Op, Subject};

use capacity::Capacity;
pub use capacity::SHUNNED;
pub use event::{Effect, Event, Job};
use gate::Gate;
pub use gate::{Order, Spot};
use overdue::Overdue;
use pauses::Pauses;
use pending::{Pending, PendingJob};
pub use strategy::Strategy;

/// Jobs a batch: at the knee of ZooKeeper's throughput, and small enough that one rejection wastes little.
pub const BATCH: usize = 100;

/// Batches in flight: one on the wire, one in the server, two behind them.
pub const WINDOW: usize = 4;

/// The machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assigner {
    epoch: i32,
    picker: strategy::Picker,
    gate: Gate,
    pending: Pending,
    overdue: Overdue,
    pauses: Pauses,
    workers: BTreeMap<WorkerId, Capacity>,
    limbo: BTreeMap<JobId, (Box<PendingJob>, WorkerId)>,
    in_flight: usize,
    acting: bool,
}

impl Assigner {
    /// A machine for the term of `epoch`. `seed` is any 64 random bits, for [`Strategy::Random`].
    #[must_use]
    pub fn new(epoch: i32, strategy: Strategy, seed: u64) -> Self {
        Self {
            epoch,
            picker: strategy::Picker::new(strategy, seed),
            gate: Gate::default(),
            pending: Pending::default(),
            overdue: Overdue::default(),
            pauses: Pauses::default(),
            workers: BTreeMap::new(),
            limbo: BTreeMap::new(),
            in_flight: 0,
            acting: true,
        }
    }

    /// Handles one event. `wall` is written down, for people, and tells who comes first and what is overdue.
    pub fn handle(&mut self, now: Millis, wall: WallMillis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Queued(jobs) => {
                for (id, entry) in jobs {
                    // One in limbo or in flight stays so: its own outcome tells, and a stale hint costs a write.
                    self.queued(id, entry, now, wall);
                }
            }
            Event::Unqueued(job) => {
                self.overdue.forget(&job);
                self.gate.remove(&job);
                self.pending.remove(&job);
            }
            Event::Worker(id, info, version) => {
                self.workers.entry(id).or_insert_with(Capacity::unknown).register(info, version);
            }
            Event::WorkerGone(id) => {
                self.workers.remove(&id);
            }
            Event::InboxChanged(id) => {
                if let Some(capacity) = self.workers.get_mut(&id) {
                    capacity.changed();
                }
            }
            Event::Inbox(id, held) => {
                // Not answered: the session is disturbed, and asking again at once would spin.
                self.acting &= held.is_some();
                if let Some(capacity) = self.workers.get_mut(&id) {
                    capacity.listed(held);
                }
            }
            Event::Committed(batch, outcome) => self.committed(batch, outcome, out),
            Event::Resolved(entries) => self.resolved(entries, now, wall),
            Event::LanesWatched => {
                for (id, waiting) in self.pending.take_laned() {
                    self.queued(id, waiting.into_entry(), now, wall);
                }
                self.gate.forget();
            }
            Event::TurnGone(lane, spot) => self.gate.turn_gone(&lane, spot),
            Event::LanesListed { ticket, lanes, lists } => self.gate.listed(ticket, lanes, lists),
            Event::TurnsRead { ticket, turns, found } => self.gate.read(ticket, turns, found),
            Event::Hangs(id) => {
                if let Some(capacity) = self.workers.get_mut(&id) {
                    capacity.hangs(now);
                }
            }
            Event::PausesChanged => self.pauses.changed(),
            Event::Paused(kinds) => {
                self.acting &= kinds.is_some();
                self.pauses.listed(kinds);
            }
            Event::Tick => {}
            Event::Pause => self.acting = false,
            Event::Resume => {
                self.acting = true;
                self.gate.sweep();
                for capacity in self.workers.values_mut() {
                    capacity.forgive(now);
                    capacity.changed();
                }
                if !self.limbo.is_empty() {
                    out.push(Effect::Resolve(self.limbo.keys().cloned().collect()));
                }
            }
        }
        for (id, entry) in self.gate.ready() {
            // It waited for others, not for this leader, until now.
            self.pending.insert(id, entry, now, wall);
        }
        self.expire(wall, out);
        self.plan(wall, out);
        self.list(out);
        if self.acting {
            self.gate.ask(out);
        }
    }

    fn queued(&mut self, id: JobId, entry: QueueEntry, now: Millis, wall: WallMillis) {
        self.overdue.note(&id, entry.expires_at);
        match entry.turn() {
            Some(turn) => {
                self.pending.remove(&id);
                self.gate.insert(id, turn, entry);
            }
            None => self.pending.insert(id, entry, now, wall),
        }
    }

    /// Until when the first waiting job that expires may be started.
    #[must_use]
    pub fn next_overdue(&self) -> Option<WallMillis> {
        self.overdue.next()
    }

    /// Takes out what may not be started any more.
    fn expire(&mut self, wall: WallMillis, out: &mut Vec<Effect>) {
        let mut jobs = Vec::new();
        while let Some((job, at)) = self.overdue.pop(wall) {
            let held = self.gate.remove(&job);
            if self.pending.remove(&job).is_some() || held {
                jobs.push((job, at));
            }
        }
        if !jobs.is_empty() {
            out.push(Effect::Overdue(jobs));
        }
    }

    /// How many jobs wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pending.len() + self.limbo.len() + self.gate.len()
    }

    /// How many slots the live workers have, and how many of them hold a job.
    #[must_use]
    pub fn slots(&self) -> (usize, usize) {
        let slots = self.workers.values().map(|w| (w.slots(), w.used()));
        slots.fold((0, 0), |(slots, used), (s, u)| (slots + s, used + u))
    }

    /// How many workers are live.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Sends what can be sent. Workers that were found together come one by one: until the inbox of each is listed, a
    /// new leader would give all that waits to the first, and an affinity key's jobs to others than before.
    fn plan(&mut self, wall: WallMillis, out: &mut Vec<Effect>) {
        if self.workers.values().any(Capacity::is_new) {
            return;
        }
        while self.acting && self.in_flight < WINDOW {
            if self.in_flight > 0 && self.pending.len() < BATCH {
                return;
            }
            let picked = self.pick();
            if picked.is_empty() {
                return;
            }
            self.send(picked, wall, out);
        }
    }

    fn pick(&mut self) -> Vec<Job> {
        let mut picked = Vec::new();
        let mut closed = BTreeSet::new();
        // Nothing is picked before it is known what is paused.
        let Some(paused) = self.pauses.kinds() else { return picked };
        while picked.len() < BATCH
            && let Some((id, waiting)) = self.pending.next(&closed, paused)
        {
            let class = &waiting.class;
            let able = self.workers.iter().filter(|(_, w)| w.can_take(class.kind(), class.tags()));
            match self.picker.pick(id, waiting.affinity.as_ref(), able) {
                Some(worker) => {
                    let id = id.clone();
                    let waiting = self.pending.remove(&id).expect("the next waiting job waits");
                    self.overdue.forget(&id);
                    if let Some(capacity) = self.workers.get_mut(&worker) {
                        capacity.take(id.clone());
                    }
                    picked.push(Job { id, waiting, worker });
                }
                // Nobody takes this class now: the other classes go on.
                None => {
                    closed.insert(Arc::clone(class));
                }
            }
        }
        picked
    }

    fn send(&mut self, picked: Vec<Job>, wall: WallMillis, out: &mut Vec<Effect>) {
        let named = picked.iter().map(|job| job.worker).collect::<BTreeSet<_>>();
        let checks =
            named.iter().filter_map(|id| Some(txn::check_worker(*id, self.workers.get(id)?.version())));
        let mut batch = Batch::new([txn::fence(self.epoch)].into_iter().chain(checks).collect());
        let mut left = picked.into_iter();
        for job in left.by_ref() {
            let of_kind = || self.workers.get(&job.worker)?.lease(job.kind());
            let lease = job.waiting.lease.or_else(of_kind).unwrap_or(DEFAULT_LEASE);
            let assignment = Assignment { lease, ..Assignment::new(job.waiting.attempt, self.epoch, wall) };
            let ops = txn::assign(&job.id, job.worker, &assignment, job.waiting.turn.as_deref());
            if let Err((job, _)) = batch.push(job, ops) {
                self.put_back(job);
                break;
            }
        }
        left.for_each(|job| self.put_back(job));
        self.in_flight += 1;
        out.push(Effect::Commit(batch));
    }

    fn put_back(&mut self, job: Job) {
        if let Some(capacity) = self.workers.get_mut(&job.worker) {
            capacity.give_back(&job.id);
        }
        self.overdue.note(&job.id, job.waiting.expires_at);
        match job.waiting.turn.as_deref().cloned() {
            // A reconnection may have come between: it is let through anew.
            Some(turn) => self.gate.insert(job.id, turn, job.waiting.into_entry()),
            None => self.pending.put_back(job.id, job.waiting),
        }
    }

    fn committed(&mut self, mut batch: Batch<Job>, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        self.in_flight -= 1;
        match outcome {
            Outcome::Applied(()) => {
                let jobs = batch.into_groups().into_iter();
                out.extend(
                    jobs.map(|(job, _)| Effect::Assigned {
                        kind: job.kind().clone(),
                        since: job.waiting.since,
                    }),
                );
            }
            Outcome::Unknown => {
                self.acting = false;
                let jobs = batch.into_groups().into_iter();
                self.limbo.extend(jobs.map(|(job, _)| (job.id, (job.waiting, job.worker))));
            }
            Outcome::Rejected(rejection) => {
                self.rejected(&mut batch, &rejection, out);
                batch.into_groups().into_iter().for_each(|(job, _)| self.put_back(job));
            }
        }
    }

    /// Takes out of the batch what cannot be assigned; what is left of it will wait again.
    fn rejected(&mut self, batch: &mut Batch<Job>, rejection: &Rejection, out: &mut Vec<Effect>) {
        if rejection.is_whole() {
            self.acting = false;
            return;
        }
        let out_of_service = match batch.locate(rejection.at) {
            Some(Locus::Fence(Subject::Epoch)) => {
                self.acting = false;
                if rejection.is_fence() {
                    out.push(Effect::FencedOut);
                }
                return;
            }
            // It has left, or has written its registration anew. The registry may have told of the new one already.
            Some(Locus::Fence(Subject::Worker(worker))) => {
                let checked = batch.ops().nth(rejection.at).and_then(Op::version);
                Some(worker).filter(|id| self.workers.get(id).map(Capacity::version) == checked)
            }
            // The entry is gone: not ours to assign.
            Some(Locus::Group { group, subject: Subject::Entry, .. }) => {
                let (job, _) = batch.remove(group);
                if let Some(capacity) = self.workers.get_mut(&job.worker) {
                    capacity.give_back(&job.id);
                }
                None
            }
            // Its turn: cancelled and retried unseen, taken away, or set.
            Some(Locus::Group { group, subject: Subject::Turn, .. }) => {
                let (job, _) = batch.remove(group);
                if let Some(capacity) = self.workers.get_mut(&job.worker) {
                    capacity.give_back(&job.id);
                }
                if let Some(turn) = job.waiting.turn.as_deref().cloned() {
                    self.overdue.note(&job.id, job.waiting.expires_at);
                    let entry = job.waiting.into_entry();
                    if rejection.reason == Reason::NoNode {
                        self.gate.turn_was_gone(job.id, turn, entry);
                    } else {
                        self.gate.turn_was_set(job.id, turn, entry);
                    }
                }
                None
            }
            // The inbox is gone, or holds the job already, which only an operator's hand can bring about.
            Some(Locus::Group { group, .. }) => batch.keys().nth(group).map(|job| job.worker),
            // No other check is made.
            Some(Locus::Fence(_)) | None => None,
        };
        if let Some(capacity) = out_of_service.and_then(|id| self.workers.get_mut(&id)) {
            capacity.close();
        }
    }

    fn resolved(&mut self, entries: Option<Vec<(JobId, Option<QueueEntry>)>>, now: Millis, wall: WallMillis) {
        let Some(entries) = entries else {
            // The session broke again: the next resume asks again.
            self.acting = false;
            return;
        };
        for (id, entry) in entries {
            let Some((waiting, worker)) = self.limbo.remove(&id) else {
                self.overdue.note(&id, entry.as_ref().and_then(|entry| entry.expires_at));
                self.gate.read_again(id, entry);
                continue;
            };
            match entry {
                // Not applied.
                Some(entry)
                    if entry.attempt == waiting.attempt
                        && entry.turn().as_ref() == waiting.turn.as_deref() =>
                {
                    self.put_back(Job { id, waiting, worker });
                }
                // Applied, ended, and queued again meanwhile: another attempt.
                Some(entry) => self.queued(id, entry, now, wall),
                // Applied: the inbox, listed since, counts it.
                None => {}
            }
        }
    }

    fn list(&mut self, out: &mut Vec<Effect>) {
        if !self.acting {
            return;
        }
        if self.pauses.wants_list() {
            out.push(Effect::ListPauses);
        }
        // While jobs flow, only a worker that fills up is worth a list; when they do not, the truth is cheap.
        let idle = self.in_flight == 0 && self.pending.len() == 0;
        let wanted =
            self.workers.iter_mut().filter_map(|(id, capacity)| capacity.wants_list(idle).then_some(*id));
        out.extend(wanted.map(Effect::ListInbox));
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod lane_model;
#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod order_tests;
