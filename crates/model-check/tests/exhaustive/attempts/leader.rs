//! The leader wing: membership, recovery and assignment.
//!
//! A read is answered immediately. Its result may still be stale when it is used, because the resulting write may be
//! served at any later time ([`Leader::sent`]), and so may the hint that causes a read ([`Leader::hints`]).

use std::collections::VecDeque;
use std::time::Duration;

use bellwether_core::budget::DEFAULT_LEASE;
use bellwether_core::job::{Assignment, Isolation};
use bellwether_core::machine::assigner::{self, Assigner, InboxContents, Settings};
use bellwether_core::machine::expirer::{self, Expirer};
use bellwether_core::machine::janitor::{self, Janitor};
use bellwether_core::machine::lease_watcher::{
    self, LEASE_MARGIN, LeaseWatcher, READ_AFTER, Revocation, Stamp,
};
use bellwether_core::machine::worker_registry::membership::{self, Membership};
use bellwether_core::machine::worker_registry::recovery::{self, Item, Orphan, Recovery, Stored};
use bellwether_core::name::{JobId, WorkerId};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::placement::OwnStrategies;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::time::{Millis, WallMillis};
use bellwether_core::txn::{Batch, Op};
use bellwether_core::wire;

use super::removal;
use super::stage::{self, WALL};
use crate::fixture;
use crate::shared_part::Part;
use crate::zookeeper::ZooKeeper;

/// A request in flight.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Write {
    Assign(Batch<assigner::Job>),
    Recover(WorkerId, Batch<Item>),
    Remove(WorkerId, Vec<Op>),
    Revoke(Batch<Revocation>),
    Expire(Batch<expirer::Item>),
    Tidy(Batch<String>),
}

impl Write {
    pub(crate) fn ops(&self) -> Vec<Op> {
        match self {
            Self::Assign(batch) => batch.ops().cloned().collect(),
            Self::Recover(_, batch) => batch.ops().cloned().collect(),
            Self::Remove(_, ops) => ops.clone(),
            Self::Revoke(batch) => batch.ops().cloned().collect(),
            Self::Expire(batch) => batch.ops().cloned().collect(),
            Self::Tidy(batch) => batch.ops().cloned().collect(),
        }
    }

    fn answered(self, outcome: Outcome<()>) -> Heard {
        match self {
            Self::Assign(batch) => Heard::Assigner(assigner::Event::Committed(batch, outcome)),
            Self::Recover(worker, batch) => {
                Heard::Recovery(recovery::Event::Committed(worker, batch, outcome))
            }
            Self::Remove(worker, _) => Heard::Recovery(recovery::Event::Removed(worker, outcome)),
            Self::Revoke(batch) => Heard::LeaseWatcher(lease_watcher::Event::Committed(batch, outcome)),
            Self::Expire(batch) => Heard::Expirer(expirer::Event::Committed(batch, outcome)),
            Self::Tidy(batch) => Heard::Janitor(janitor::Event::Committed(batch, outcome)),
        }
    }
}

/// A watch event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Hint {
    /// An entry was created or deleted.
    Ready(ReadyEntry),
    /// An ephemeral was set.
    Changed(WorkerId),
    /// An ephemeral was deleted.
    Gone(WorkerId),
    /// An assignment was deleted from an inbox.
    Emptied(WorkerId),
}

enum Heard {
    Assigner(assigner::Event),
    Member(membership::Event),
    Recovery(recovery::Event),
    LeaseWatcher(lease_watcher::Event),
    Expirer(expirer::Event),
    Janitor(janitor::Event),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Wing {
    assigner: Assigner,
    membership: Membership,
    recovery: Recovery,
    /// Present from the check of a lease until the reply to its revocation.
    leases: Option<(Millis, LeaseWatcher)>,
    expirer: Expirer,
    /// Present from sending a removal until its reply.
    janitor: Option<Part<Janitor>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Leader {
    pub(crate) epoch: i32,
    /// Present while the leader leads, or believes so.
    pub(crate) wing: Option<Wing>,
    pub(crate) up: bool,
    pub(crate) sent: VecDeque<Write>,
    pub(crate) hints: VecDeque<Hint>,
    pub(crate) wall: WallMillis,
    now: Millis,
    /// Whether a request was planned during a pause.
    pub(crate) overstepped: bool,
}

impl Leader {
    /// Creates a node that is not leading yet.
    pub(crate) fn new() -> Self {
        Self {
            epoch: 0,
            wing: None,
            up: true,
            sent: VecDeque::new(),
            hints: VecDeque::new(),
            wall: WALL,
            now: Millis(0),
            overstepped: false,
        }
    }

    pub(crate) fn begin(&mut self, epoch: i32, zk: &ZooKeeper) {
        self.epoch = epoch;
        self.wing = Some(Wing {
            assigner: Assigner::new(epoch, OwnStrategies::default(), 0),
            membership: Membership::default(),
            recovery: Recovery::new(epoch),
            leases: None,
            expirer: Expirer::new(epoch),
            janitor: None,
        });
        self.hear(zk, Heard::Assigner(assigner::Event::Settings(Some(Settings::default()))));
        self.look(zk);
    }

    /// Lists everything, as at the start, after a pause, and at each sweep.
    pub(crate) fn look(&mut self, zk: &ZooKeeper) {
        let mut heard: Vec<_> = fixture::entries(zk).map(|entry| queued(zk, entry)).collect();
        let parents = [path::WORKERS, path::ASSIGNMENTS].into_iter();
        let workers =
            parents.flat_map(|parent| zk.names(parent)).filter_map(|(name, _)| WorkerId::parse(name));
        heard.push(Heard::Member(membership::Event::Listed(workers.collect())));
        heard.push(Heard::Recovery(recovery::Event::Sweep));
        heard.into_iter().for_each(|heard| self.hear(zk, heard));
    }

    /// Revokes the current assignments, as if their leases were over. The writes are served later.
    pub(crate) fn revoke(&mut self, zk: &ZooKeeper, held: Vec<lease_watcher::AssignmentKey>) {
        let Some(wing) = &mut self.wing else { return };
        wing.leases = Some((Millis(0), LeaseWatcher::new(self.epoch)));
        let seen = held.into_iter().map(lease_watcher::Event::Seen);
        let heard: Vec<_> = seen.chain([lease_watcher::Event::Resync]).collect();
        heard.into_iter().for_each(|event| self.hear(zk, Heard::LeaseWatcher(event)));
        for wait in [READ_AFTER, DEFAULT_LEASE + LEASE_MARGIN] {
            if let Some((now, _)) = self.wing.as_mut().and_then(|wing| wing.leases.as_mut()) {
                *now = *now + wait;
            }
            self.hear(zk, Heard::LeaseWatcher(lease_watcher::Event::Tick));
        }
    }

    pub(crate) fn is_revoking(&self) -> bool {
        self.wing.as_ref().is_some_and(|wing| wing.leases.is_some())
    }

    /// Advances its clock past the job's expiry.
    pub(crate) fn pass_expiry(&mut self, zk: &ZooKeeper) {
        self.wall = stage::EXPIRED;
        self.hear(zk, Heard::Assigner(assigner::Event::Tick));
    }

    /// Advances its clock, including a sweep.
    pub(crate) fn pass(&mut self, zk: &ZooKeeper, time: Duration) {
        self.now = self.now + time;
        if self.wing.is_some() {
            self.hear(zk, Heard::Assigner(assigner::Event::Resume));
            self.look(zk);
        }
    }

    /// The janitor finds the records to remove. The removal is served later.
    pub(crate) fn tidy(&mut self, zk: &ZooKeeper) {
        let Some(wing) = &mut self.wing else { return };
        if let Some((janitor, batch)) = removal::removal(zk, self.epoch) {
            wing.janitor = Some(Part::new(janitor));
            self.sent.push_back(Write::Tidy(batch));
        }
    }

    pub(crate) fn is_tidying(&self) -> bool {
        self.wing.as_ref().is_some_and(|wing| wing.janitor.is_some())
    }

    pub(crate) fn hint(&mut self, hint: Hint) {
        if self.wing.is_some() && self.up && !self.hints.contains(&hint) {
            self.hints.push_back(hint);
        }
    }

    pub(crate) fn hear_hint(&mut self, zk: &ZooKeeper) {
        let heard = match self.hints.pop_front().expect("there is a hint") {
            Hint::Ready(entry) => queued(zk, entry),
            Hint::Changed(worker) => Heard::Member(membership::Event::Seen(worker)),
            Hint::Gone(worker) => Heard::Member(membership::Event::Deleted(worker)),
            Hint::Emptied(worker) => Heard::Assigner(assigner::Event::InboxChanged(worker)),
        };
        self.hear(zk, heard);
    }

    pub(crate) fn answered(&mut self, zk: &ZooKeeper, write: Write, outcome: Outcome<()>) {
        self.hear(zk, write.answered(outcome));
    }

    /// The connection breaks: the leader pauses, handles the earlier hints, and every request in flight becomes
    /// unknown.
    pub(crate) fn cut(&mut self, zk: &ZooKeeper) -> Vec<Write> {
        self.up = false;
        // The first answer that was not sent shows that the session is disturbed.
        let nobody = crate::fixture::worker(usize::from(u8::MAX));
        self.hear(zk, Heard::Assigner(assigner::Event::InboxRead(nobody, None)));
        while !self.hints.is_empty() {
            self.hear_hint(zk);
        }
        let lost = Vec::from(std::mem::take(&mut self.sent));
        for write in lost.clone() {
            self.hear(zk, write.answered(Outcome::Unknown));
        }
        lost
    }

    pub(crate) fn connect(&mut self, zk: &ZooKeeper) {
        self.up = true;
        self.hear(zk, Heard::Assigner(assigner::Event::Resume));
        self.hear(zk, Heard::Expirer(expirer::Event::Resync));
        self.look(zk);
    }

    fn hear(&mut self, zk: &ZooKeeper, first: Heard) {
        let mut todo = VecDeque::from([first]);
        while let Some(heard) = todo.pop_front() {
            let Some(wing) = &mut self.wing else { return };
            match heard {
                Heard::Assigner(event) => {
                    let mut effects = Vec::new();
                    wing.assigner.handle(self.now, self.wall, event, &mut effects);
                    for effect in effects {
                        self.assigner(zk, effect, &mut todo);
                    }
                }
                Heard::Member(event) => {
                    let mut effects = Vec::new();
                    wing.membership.handle(event, &mut effects);
                    for effect in effects {
                        self.member(zk, effect, &mut todo);
                    }
                }
                Heard::LeaseWatcher(event) => {
                    let answered = matches!(event, lease_watcher::Event::Committed(..));
                    let mut effects = Vec::new();
                    let Some((now, leases)) = &mut wing.leases else { continue };
                    leases.handle(*now, self.wall, event, &mut effects);
                    if answered {
                        wing.leases = None;
                    }
                    for effect in effects {
                        self.leases(zk, effect, &mut todo);
                    }
                }
                Heard::Recovery(event) => {
                    let mut effects = Vec::new();
                    wing.recovery.handle(self.wall, event, &mut effects);
                    for effect in effects {
                        self.recovery(zk, effect, &mut todo);
                    }
                }
                Heard::Expirer(event) => {
                    let mut effects = Vec::new();
                    wing.expirer.handle(self.wall, event, &mut effects);
                    for effect in effects {
                        self.expirer(zk, effect, &mut todo);
                    }
                }
                Heard::Janitor(event) => {
                    let Some(mut janitor) = wing.janitor.take() else { continue };
                    let mut effects = Vec::new();
                    janitor.handle(Millis(0), self.wall, event, &mut effects);
                    if effects.contains(&janitor::Effect::FencedOut) {
                        self.wing = None;
                    }
                }
            }
        }
    }

    fn send(&mut self, write: Write, todo: &mut VecDeque<Heard>) {
        if self.up {
            self.sent.push_back(write);
        } else {
            todo.push_back(write.answered(Outcome::Rejected(Rejection { at: 0, reason: Reason::NotSent })));
        }
    }

    fn assigner(&mut self, zk: &ZooKeeper, effect: assigner::Effect, todo: &mut VecDeque<Heard>) {
        use assigner::{Effect, Event};
        match effect {
            Effect::Commit(batch) => {
                self.overstepped |= !self.up;
                self.send(Write::Assign(batch), todo);
            }
            Effect::ReadInbox(worker) => {
                todo.push_back(Heard::Assigner(match (self.up, zk.children(&path::inbox(worker))) {
                    (false, _) => Event::InboxRead(worker, None),
                    (true, None) => Event::WorkerGone(worker),
                    (true, Some(names)) => Event::InboxRead(worker, Some(contents(zk, worker, &names))),
                }));
            }
            Effect::ListInbox(worker) => {
                todo.push_back(Heard::Assigner(match (self.up, zk.children(&path::inbox(worker))) {
                    (false, _) => Event::Inbox(worker, None),
                    (true, None) => Event::WorkerGone(worker),
                    (true, Some(names)) => {
                        Event::Inbox(worker, Some(names.into_iter().map(str::to_owned).collect()))
                    }
                }));
            }
            Effect::Resolve(entries) => {
                let exists = |at: &ReadyEntry| zk.get(&path::ready_entry(at)).is_some();
                let entries = entries.into_iter().map(|at| (at.clone(), exists(&at))).collect();
                todo.push_back(Heard::Assigner(Event::Resolved(self.up.then_some(entries))));
            }
            Effect::FencedOut => self.wing = None,
            Effect::Assigned { .. } => {}
            Effect::ListLanes { .. } | Effect::ReadTurns { .. } => unreachable!("no job has a lane"),
            Effect::Overdue(jobs) => todo.push_back(Heard::Expirer(expirer::Event::Overdue(jobs))),
            Effect::ReadSettings | Effect::Fallback(_) => unreachable!("the settings do not change"),
        }
    }

    fn member(&mut self, zk: &ZooKeeper, effect: membership::Effect, todo: &mut VecDeque<Heard>) {
        use membership::{Effect, Event};
        match effect {
            Effect::Read(workers) if self.up => {
                let read = workers.into_iter().map(|id| Event::Read(id, stored(zk, &path::worker(id))));
                todo.extend(read.map(Heard::Member));
            }
            // The leader looks again after the reconnection.
            Effect::Read(_) => {}
            Effect::Lives(worker, info, version) => {
                todo.push_back(Heard::Assigner(assigner::Event::Worker(worker, *info, version)));
            }
            Effect::Dead(worker) => {
                todo.push_back(Heard::Assigner(assigner::Event::WorkerGone(worker)));
                todo.push_back(Heard::Recovery(recovery::Event::Lost(worker)));
            }
            Effect::Unreadable(..) => unreachable!("every registration is readable"),
        }
    }

    fn leases(&mut self, zk: &ZooKeeper, effect: lease_watcher::Effect, todo: &mut VecDeque<Heard>) {
        use lease_watcher::{Effect, Event};
        match effect {
            Effect::ReadAssignments(keys) => {
                let look = |(worker, job): lease_watcher::AssignmentKey| {
                    let stamps = zk.value::<Assignment>(&path::assignment(worker, &job));
                    let stamp = stamps.map(|(it, version)| (Stamp { created: 1, version }, it.lease));
                    ((worker, job), stamp)
                };
                todo.push_back(Heard::LeaseWatcher(Event::AssignmentsRead(
                    keys.into_iter().map(look).collect(),
                )));
            }
            Effect::ReadCases(keys) => {
                let judge = |(worker, job): lease_watcher::AssignmentKey| lease_watcher::Case {
                    created: 1,
                    assignment: stored(zk, &path::assignment(worker, &job)),
                    record: stored(zk, &path::record(&job)),
                    key: (worker, job),
                };
                todo.push_back(Heard::LeaseWatcher(Event::CasesRead(keys.into_iter().map(judge).collect())));
            }
            Effect::ReadSegment(..) => unreachable!("this model has no segments"),
            Effect::Commit(batch) => self.send(Write::Revoke(batch), todo),
            Effect::Revoked(revoked) => {
                todo.push_back(Heard::Assigner(assigner::Event::Hangs(revoked.worker)));
            }
            Effect::FencedOut => self.wing = None,
            // The assignments were already passed in.
            Effect::ListInboxes | Effect::List(_) => {}
        }
    }

    fn expirer(&mut self, zk: &ZooKeeper, effect: expirer::Effect, todo: &mut VecDeque<Heard>) {
        use expirer::{Effect, Event};
        match effect {
            Effect::Read(jobs) if self.up => {
                let read = jobs.into_iter().map(|job| {
                    let record = zk.value(&path::record(&job));
                    (job, record)
                });
                todo.push_back(Heard::Expirer(Event::Read(read.collect())));
            }
            Effect::Read(jobs) => todo.push_back(Heard::Expirer(Event::ReadFailed(jobs))),
            Effect::Commit(batch) => {
                self.overstepped |= !self.up;
                self.send(Write::Expire(batch), todo);
            }
            Effect::FencedOut => self.wing = None,
            Effect::Ended(_) => {}
        }
    }

    fn recovery(&mut self, zk: &ZooKeeper, effect: recovery::Effect, todo: &mut VecDeque<Heard>) {
        use recovery::{Effect, Event};
        match effect {
            Effect::List(worker) => {
                let inbox = path::inbox(worker);
                let jobs = zk.children(&inbox).map(|names| {
                    names.into_iter().map(|name| JobId::new(name).expect("a valid job id")).collect()
                });
                let listed = if self.up { Ok(jobs) } else { Err(()) };
                todo.push_back(Heard::Recovery(Event::Listed(worker, listed)));
            }
            Effect::Read(worker, jobs) => {
                let orphan = |job: JobId| Orphan {
                    assignment: stored(zk, &path::assignment(worker, &job)),
                    record: stored(zk, &path::record(&job)),
                    job,
                };
                let read = if self.up { Ok(jobs.into_iter().map(orphan).collect()) } else { Err(()) };
                todo.push_back(Heard::Recovery(Event::Read(worker, read)));
            }
            Effect::ReadSegment(..) => unreachable!("this model has no segments"),
            Effect::Commit(worker, batch) => self.send(Write::Recover(worker, batch), todo),
            Effect::Remove(worker, ops) => self.send(Write::Remove(worker, ops), todo),
            Effect::FencedOut => self.wing = None,
            Effect::Closed(_) => {}
        }
    }
}

fn contents(zk: &ZooKeeper, worker: WorkerId, names: &[&str]) -> InboxContents {
    let isolation = |name: &&str| {
        let job = JobId::new(*name).expect("a valid job id");
        let (assignment, _) = zk.value::<Assignment>(&path::assignment(worker, &job))?;
        (assignment.isolation != Isolation::Shared).then_some((job, assignment.isolation))
    };
    let isolated = names.iter().filter_map(isolation).collect();
    InboxContents { names: names.iter().map(ToString::to_string).collect(), isolated }
}

fn queued(zk: &ZooKeeper, at: ReadyEntry) -> Heard {
    Heard::Assigner(match fixture::waiting(zk, at.clone()) {
        Some(waiting) => assigner::Event::Queued(vec![waiting]),
        None => assigner::Event::Unqueued(at),
    })
}

fn stored<T: wire::Stored>(zk: &ZooKeeper, path: &str) -> Stored<T> {
    zk.value(path).map_or(Stored::Absent, |(value, version)| Stored::Value(value, version))
}
