//! Assigns waiting jobs to workers.
//!
//! The assigner tracks waiting jobs (`pending`) and free slots (`capacity`) and picks a worker by the strategy of the namespace
//! ([`placement`](crate::placement)). It
//! emits multis that check the epoch and the version of each named worker's registration. So ZooKeeper itself rejects
//! an assignment after another leader has claimed, to a worker that has left or drains, or of a job that is no longer
//! queued. The assigner's state may be stale at any time; a stale state only wastes a write.
//!
//! | outcome of a batch | effect on its jobs |
//! | --- | --- |
//! | applied | assigned: they count against their worker until its inbox is listed |
//! | rejected: epoch | the term is over: [`Effect::FencedOut`], no further planning |
//! | rejected: a worker's check, or its inbox | no jobs for that worker until the registry reports another registration; all jobs wait again |
//! | rejected: an entry is absent | that job is forgotten (cancelled, or assigned by a lost write); the rest wait again |
//! | rejected: a turn is absent | that job waits for its turn again (`gate`); the rest wait again |
//! | rejected: a turn has another version | that job and its lane wait for the next sweep; the rest wait again |
//! | not sent, or rejected as a whole | all wait again, until the session is back or the next sweep |
//! | unknown | in limbo: counted but not planned; once the session is back their entries are read |
//!
//! An unknown write may be applied even after its entries were read and the jobs were planned again. Then the second
//! assignment is rejected, because the entry is absent. So a job is never in two inboxes.
//!
//! Jobs of a *paused* kind are not assigned; running attempts continue. A new leader assigns nothing until it knows the
//! paused kinds and the strategy (`settings`) and has listed every worker's inbox. A worker whose inbox cannot be listed gets no jobs (`capacity`).
//!
//! A job that has lost workers is isolated from other jobs (`isolate`), so that no job dies of its neighbours (S20).
//!
//! An expired job is returned as [`Effect::Overdue`] and forgotten; the [`expirer`](super::expirer) ends it. A worker
//! rejects a job that was assigned in time but arrives late.
//!
//! A [segment](crate::segment) is assigned like a job, under its own id. A worker holds two of them at most (`capacity`).
//!
//! A batch is sent immediately when no other is in flight; otherwise jobs accumulate until a batch is full. Limits:
//! [`BATCH`] jobs per batch, [`WINDOW`] batches in flight.

mod capacity;
mod depth;
mod event;
mod gate;
mod isolate;
mod overdue;
mod pending;
mod settings;
mod strategy;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::budget::DEFAULT_LEASE;
use crate::job::Assignment;
use crate::name::{JobId, Kind, WorkerId};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::placement::OwnStrategies;
use crate::ready::{ReadyEntry, Waiting};
use crate::segment::jobs_under;
use crate::time::{Millis, WallMillis};
use crate::txn::{self, Batch, Locus, Op, Subject};

use capacity::Capacity;
use capacity::List;
pub use capacity::SHUNNED;
pub use event::{Effect, Event, InboxContents, Job};
use gate::Gate;
pub use gate::{Order, Spot};
pub use isolate::APART_WAIT;
use isolate::Reservations;
use overdue::Overdue;
use pending::Pending;
use settings::Known;
pub use settings::{Settings, StrategySetting};

/// Jobs per batch: at the knee of ZooKeeper's throughput curve, and small enough that one rejection wastes little.
pub const BATCH: usize = 100;

/// Batches in flight: one on the network, one in the server, two queued.
pub const WINDOW: usize = 4;

/// How long the change of an inbox may stay unseen while its worker has many free slots and no assignment is on its way. A list
/// for each job that ends would compete with the next job for the processor.
pub const RELIST_AFTER: Duration = Duration::from_secs(1);

/// State machine of one term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Assigner {
    epoch: i32,
    picker: strategy::Picker,
    gate: Gate,
    pending: Pending,
    overdue: Overdue,
    settings: Known,
    reservations: Reservations,
    workers: BTreeMap<WorkerId, Capacity>,
    limbo: BTreeMap<JobId, Job>,
    /// The numbers of waiting jobs that it does not know.
    beyond: BTreeMap<Kind, usize>,
    in_flight: usize,
    acting: bool,
}

impl Assigner {
    /// Creates the machine for the term of `epoch`. `seed` is any 64 random bits, for
    /// [`BuiltInStrategy::Random`](crate::placement::BuiltInStrategy::Random).
    #[must_use]
    pub fn new(epoch: i32, own: OwnStrategies, seed: u64) -> Self {
        Self {
            epoch,
            picker: strategy::Picker::new(own, seed),
            gate: Gate::default(),
            pending: Pending::default(),
            overdue: Overdue::default(),
            settings: Known::default(),
            reservations: Reservations::default(),
            workers: BTreeMap::new(),
            limbo: BTreeMap::new(),
            beyond: BTreeMap::new(),
            in_flight: 0,
            acting: true,
        }
    }

    /// Handles one event. `wall` is stored for display, and decides the order of jobs and which are overdue.
    pub fn handle(&mut self, now: Millis, wall: WallMillis, event: Event, out: &mut Vec<Effect>) {
        let due = event == Event::Relist;
        match event {
            Event::Queued(jobs) => {
                for waiting in jobs {
                    // A job in limbo or in flight stays so: its own outcome decides, and a stale event costs one write.
                    self.queued(waiting, now, wall);
                }
            }
            Event::Unqueued(at) => {
                if self.gate.remove_entry(&at) || self.pending.remove_entry(&at) {
                    self.overdue.forget(at.job());
                }
            }
            Event::Beyond(counts) => self.beyond.extend(counts),
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
            Event::InboxRead(id, held) => {
                // No answer: the session is disturbed, and an immediate retry would spin.
                self.acting &= held.is_some();
                if let Some(capacity) = self.workers.get_mut(&id) {
                    capacity.read(held);
                }
            }
            Event::Inbox(id, held) => {
                self.acting &= held.is_some();
                if let Some(capacity) = self.workers.get_mut(&id) {
                    capacity.listed(held.as_deref());
                }
            }
            Event::InboxRefused(id) => {
                if let Some(capacity) = self.workers.get_mut(&id) {
                    capacity.refused();
                }
            }
            Event::Committed(batch, outcome) => self.committed(batch, outcome, out),
            Event::Resolved(entries) => self.resolved(entries),
            Event::LanesWatched => {
                for (_, waiting) in self.pending.take_laned() {
                    self.queued(waiting.into_waiting(), now, wall);
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
            Event::SettingsChanged => self.settings.changed(),
            Event::Settings(settings) => {
                self.acting &= settings.is_some();
                let (paused, strategy) = settings.map(|read| (read.paused, read.strategy)).unzip();
                self.settings.read(paused);
                out.extend(strategy.and_then(|set| self.picker.follow(set)).map(Effect::Fallback));
            }
            Event::Tick | Event::Relist => {}
            Event::Resume => {
                self.acting = true;
                self.gate.sweep();
                for capacity in self.workers.values_mut() {
                    capacity.forgive(now);
                    capacity.relist();
                }
                if !self.limbo.is_empty() {
                    out.push(Effect::Resolve(
                        self.limbo.values().map(|job| job.waiting.at.clone()).collect(),
                    ));
                }
            }
        }
        for waiting in self.gate.ready() {
            // The waiting time at this leader starts now; until now the job waited for other jobs of its lane.
            self.pending.insert(waiting, now, wall);
        }
        self.expire(wall, out);
        self.plan(now, wall, out);
        self.list(due, out);
        if self.acting {
            self.gate.ask(out);
        }
    }

    fn queued(&mut self, waiting: Waiting, now: Millis, wall: WallMillis) {
        let id = waiting.at.job();
        self.overdue.note(id, waiting.entry.expires_at);
        match waiting.entry.turn() {
            Some(turn) => {
                self.pending.remove(id);
                self.gate.insert(turn, waiting);
            }
            None => {
                self.gate.remove(id);
                self.pending.insert(waiting, now, wall);
            }
        }
    }

    /// Returns the earliest expiry of the waiting jobs.
    #[must_use]
    pub fn next_overdue(&self) -> Option<WallMillis> {
        self.overdue.next()
    }

    /// Takes out expired jobs.
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

    /// Returns the number of waiting jobs.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.pending.len()
            + self.limbo.keys().map(jobs_under).sum::<usize>()
            + self.gate.len()
            + self.beyond.values().sum::<usize>()
    }

    /// Returns the kinds of the waiting jobs, a kind up to four times.
    pub fn waiting_kinds(&self) -> impl Iterator<Item = &Kind> {
        let limbo = self.limbo.values().map(Job::kind);
        let known = self.pending.counts().kinds().chain(self.gate.counts().kinds()).chain(limbo);
        known.chain(self.beyond.iter().filter(|(_, count)| **count > 0).map(|(kind, _)| kind))
    }

    /// Returns the number of waiting jobs of a kind.
    #[must_use]
    pub fn waiting_of(&self, kind: &Kind) -> usize {
        let limbo = self
            .limbo
            .values()
            .filter(|job| job.kind() == kind)
            .map(|job| jobs_under(&job.id))
            .sum::<usize>();
        let beyond = self.beyond.get(kind).copied().unwrap_or(0);
        self.pending.counts().get(kind) + self.gate.counts().get(kind) + limbo + beyond
    }

    /// Returns the number of waiting jobs that are isolated.
    #[must_use]
    pub fn isolated(&self) -> usize {
        self.pending.isolated()
    }

    /// Whether the default strategy replaces the one that is set.
    #[must_use]
    pub fn uses_fallback(&self) -> bool {
        self.picker.is_fallback()
    }

    /// Whether an inbox has changed that is not listed before [`Event::Relist`].
    #[must_use]
    pub fn awaits_relist(&self) -> bool {
        self.acting && self.workers.values().any(Capacity::is_stale)
    }

    /// Returns the number of slots of the live workers, and how many of them are used.
    #[must_use]
    pub fn slots(&self) -> (usize, usize) {
        // A segment is also assigned if fewer slots are free than it has members.
        let slots = self.workers.values().map(|w| (w.slots(), w.used().min(w.slots())));
        slots.fold((0, 0), |(slots, used), (s, u)| (slots + s, used + u))
    }

    /// Returns the number of live workers.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.workers.len()
    }

    /// Returns the number of live workers that get no jobs because their inboxes cannot be listed.
    #[must_use]
    pub fn unlisted(&self) -> usize {
        self.workers.values().filter(|capacity| capacity.is_refused()).count()
    }

    /// Sends as many batches as possible. Workers that are discovered together are reported one by one: without waiting
    /// for the inbox list of each, a new leader would assign all jobs to the first one and move affinity keys to others.
    fn plan(&mut self, now: Millis, wall: WallMillis, out: &mut Vec<Effect>) {
        if self.workers.values().any(Capacity::is_new) {
            return;
        }
        while self.acting && self.in_flight < WINDOW {
            if self.in_flight > 0 && self.pending.len() < BATCH {
                return;
            }
            let picked = self.pick(now, out);
            if picked.is_empty() {
                return;
            }
            self.send(picked, wall, out);
        }
    }

    fn pick(&mut self, now: Millis, out: &mut Vec<Effect>) -> Vec<Job> {
        let mut picked = Vec::new();
        let mut closed = BTreeSet::new();
        // Nothing is picked until the settings are known.
        let Some(paused) = self.settings.paused() else { return picked };
        let mut round = self.reservations.round(now);
        while picked.len() < BATCH
            && let Some((id, waiting)) = self.pending.next(&closed, paused)
        {
            let class = &waiting.class;
            let able = round.able(id, waiting, &self.workers);
            let (worker, why) = self.picker.pick(id, waiting, &able);
            out.extend(why.map(Effect::Fallback));
            match worker {
                Some(worker) => {
                    let id = id.clone();
                    let waiting = self.pending.remove(&id).expect("the next waiting job waits");
                    self.overdue.forget(&id);
                    let capacity = self.workers.get_mut(&worker).expect("the strategy picked it among these");
                    let plan = capacity.take(&id, waiting.class.isolation());
                    picked.push(Job { id, waiting, worker, plan });
                }
                // No worker can take this class now: continue with the other classes.
                None => {
                    closed.insert(Arc::clone(class));
                }
            }
        }
        round.end(picked.len() < BATCH);
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
            let assignment = Assignment {
                generation: job.waiting.at.name.generation,
                fencing_token: job.waiting.fencing_token,
                lease,
                isolation: job.waiting.class.isolation(),
                ..Assignment::new(job.attempt(), self.epoch, wall)
            };
            let ops = txn::assign(&job.waiting.at, job.worker, &assignment, job.waiting.turn.as_deref());
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
            capacity.give_back(job.plan);
        }
        if self.gate.holds(&job.id) || self.pending.holds(&job.id) {
            // Reported again in the meantime.
            return;
        }
        self.overdue.note(&job.id, job.waiting.expires_at);
        match job.waiting.turn.as_deref().cloned() {
            // A reconnection may have come in between, so the job passes the gate again.
            Some(turn) => self.gate.insert(turn, job.waiting.into_waiting()),
            None => self.pending.put_back(job.id, job.waiting),
        }
    }

    fn committed(&mut self, mut batch: Batch<Job>, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        self.in_flight -= 1;
        match outcome {
            Outcome::Applied(()) => {
                let jobs = batch.into_groups().into_iter();
                out.extend(jobs.map(|(job, _)| Effect::Assigned {
                    kind: job.kind().clone(),
                    jobs: jobs_under(&job.id),
                    since: job.waiting.since,
                }));
            }
            Outcome::Unknown => {
                self.acting = false;
                let jobs = batch.into_groups().into_iter();
                self.limbo.extend(jobs.map(|(job, _)| (job.id.clone(), job)));
            }
            Outcome::Rejected(rejection) => {
                self.rejected(&mut batch, &rejection, out);
                batch.into_groups().into_iter().for_each(|(job, _)| self.put_back(job));
            }
        }
    }

    /// Takes the job that cannot be assigned out of the batch; the rest waits again.
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
            // The worker has left or set its registration. The registry may have reported the new one already.
            Some(Locus::Fence(Subject::Worker(worker))) => {
                let checked = batch.ops().nth(rejection.at).and_then(Op::version);
                Some(worker).filter(|id| self.workers.get(id).map(Capacity::version) == checked)
            }
            // The entry is absent: this job cannot be assigned.
            Some(Locus::Group { group, subject: Subject::Entry, .. }) => {
                let (job, _) = batch.remove(group);
                if let Some(capacity) = self.workers.get_mut(&job.worker) {
                    capacity.give_back(job.plan);
                }
                None
            }
            // The turn was deleted (a cancel and retry may be unseen) or modified.
            Some(Locus::Group { group, subject: Subject::Turn, .. }) => {
                let (job, _) = batch.remove(group);
                if let Some(capacity) = self.workers.get_mut(&job.worker) {
                    capacity.give_back(job.plan);
                }
                if let Some(turn) = job.waiting.turn.as_deref().cloned()
                    && !self.gate.holds(&job.id)
                {
                    self.overdue.note(&job.id, job.waiting.expires_at);
                    let waiting = job.waiting.into_waiting();
                    if rejection.reason == Reason::NoNode {
                        self.gate.turn_was_gone(turn, waiting);
                    } else {
                        self.gate.turn_was_set(turn, waiting);
                    }
                }
                None
            }
            // The inbox is absent, or already contains the job; only an operator can cause either.
            Some(Locus::Group { group, .. }) => batch.keys().nth(group).map(|job| job.worker),
            // A batch contains no other checks.
            Some(Locus::Fence(_)) | None => None,
        };
        if let Some(capacity) = out_of_service.and_then(|id| self.workers.get_mut(&id)) {
            capacity.close();
        }
    }

    fn resolved(&mut self, entries: Option<Vec<(ReadyEntry, bool)>>) {
        let Some(entries) = entries else {
            // The session broke again: the next resume sends the read again.
            self.acting = false;
            return;
        };
        for (at, exists) in entries {
            if self.limbo.get(at.job()).is_some_and(|job| job.waiting.at == at) {
                let job = self.limbo.remove(at.job()).expect("it was found");
                // The write was not applied. If it was, the inbox was listed since then and counts the job.
                if exists {
                    self.put_back(job);
                }
            } else if !exists && self.gate.remove_entry(&at) {
                self.overdue.forget(at.job());
            }
        }
    }

    fn list(&mut self, due: bool, out: &mut Vec<Effect>) {
        if !self.acting {
            return;
        }
        if self.settings.wants_read() {
            out.push(Effect::ReadSettings);
        }
        // List immediately if a worker is at least half full, or if an isolated job waits for an empty worker. The lists of other
        // workers must not delay an assignment.
        let eager = (due && self.in_flight == 0) || self.pending.isolated() > 0;
        for (id, capacity) in &mut self.workers {
            out.extend(capacity.wants_list(eager).map(|list| match list {
                List::Read => Effect::ReadInbox(*id),
                List::Names => Effect::ListInbox(*id),
            }));
        }
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod isolation_tests;
#[cfg(test)]
mod lane_model;
#[cfg(test)]
mod lane_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod segment_tests;
#[cfg(test)]
mod strategy_tests;
