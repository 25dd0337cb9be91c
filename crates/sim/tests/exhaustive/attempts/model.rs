//! The states, the steps between them, and what must hold.

use std::collections::BTreeSet;

use bellwether_core::job::{AttemptEndKind, Payload};
use bellwether_core::machine::worker::executor::Run;
use bellwether_core::machine::worker::inbox;
use bellwether_core::machine::worker::reporter::Settled;
use bellwether_core::name::{NodeId, WorkerId};
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Place};
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Claim, Lifetime, Op, Waiting};
use stateright::{Model, Property};
use uuid::Uuid;

use super::law::View;
use super::leader::{Hint, Leader, Write};
use super::stage::{self, DELAYED, MINUTE, NOBODY, WALL, job, worker};
use super::steps;
use super::worker::{Deed, Sent, Worker};
use crate::explore::{Seen, laws, sights};
use crate::part::Part;
use crate::zookeeper::ZooKeeper;

const LEADERS: usize = 2;
const WORKERS: usize = 2;

/// How often what may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// The second leader claims.
    pub(crate) claims: u8,
    /// The first leader's connection breaks.
    pub(crate) leader_cuts: u8,
    /// The first worker's connection breaks.
    pub(crate) worker_cuts: u8,
    /// The first worker's session ends.
    pub(crate) expiries: u8,
    /// A handler fails.
    pub(crate) failures: u8,
    /// A client cancels.
    pub(crate) cancels: u8,
    /// A strange hand deletes the ephemeral of a worker that lives.
    pub(crate) strange: u8,
    /// A handler renews its lease.
    pub(crate) renewals: u8,
    /// A leader finds that the lease of what is assigned is over.
    pub(crate) revocations: u8,
}

pub(crate) struct Attempts {
    bounds: Bounds,
    expected: &'static [Sight],
    seen: Seen,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) zk: Part<ZooKeeper>,
    pub(super) leaders: [Part<Leader>; LEADERS],
    pub(super) workers: [Part<Worker>; WORKERS],
    /// Writes that were lost on the way, and may be applied yet: by a leader under this epoch, or by a worker.
    pub(super) late: Part<Vec<(Author, Vec<Op>)>>,
    /// Who was given which attempt.
    pub(super) given: Part<BTreeSet<(u32, WorkerId)>>,
    /// Which attempts were run.
    pub(super) launched: Part<BTreeSet<u32>>,
    pub(super) left: Bounds,
    pub(crate) broken: Option<Law>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Author {
    Leader(i32),
    Worker,
    Client,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// The second leader claims the epoch and begins.
    Claim,
    /// ZooKeeper takes a leader's next write, which hears of it.
    ServeLeader(usize),
    /// A leader hears a hint.
    Hint(usize),
    /// The connection breaks, after all requests on the way were served, or before.
    CutLeader {
        served: bool,
    },
    ConnectLeader,
    /// ZooKeeper takes a worker's next request.
    ServeWorker(usize),
    /// A worker hears a reply or a hint.
    Hear(usize),
    CutWorker {
        served: bool,
    },
    ConnectWorker,
    /// A session ends on the server.
    Expire,
    /// The worker hears of that.
    Learn,
    /// A handler ends with a result.
    Succeed(usize),
    Fail(usize),
    /// The grace of a signalled handler is over.
    Abort(usize),
    /// A handler renews its lease.
    Renew(usize),
    /// A leader finds that the lease of what is assigned is over.
    Revoke(usize),
    /// A client cancels the job where it is.
    Cancel,
    /// The present leader queues a job whose backoff is over.
    Promote(usize),
    /// A write that was lost is applied after all.
    Late(usize),
    DeleteEphemeral,
}

laws! { Attempts {
    Kept = "S1: a record stays",
    OneEnd = "S2: a job ends once",
    Fence = "S3: what a leader writes is applied while its epoch is the present one, or not at all",
    Attempts = "S9: attempts are 1, 2, …, each closed once, for the worker that had it, within the bounds",
    OnePlace = "S1, S10: an open job is in exactly one place",
    Over = "S10: a job that is over is in no place",
    Begins = "S10, S14: a run is of an attempt that was given to this very worker",
    Once = "S9: no attempt runs twice",
    Cancel = "S12: an attempt that a client cancelled ends the job, or has succeeded",
    Truth = "S9: a worker believes that it closed an attempt if it did, and only then",
    Pause = "S5: a leader that knows it is cut off plans nothing",
}}

sights! { Attempts {
    Succeeded = "a job succeeds",
    Second = "a job succeeds at its second attempt",
    Dead = "a job is dead of its losses or failures",
    ZombieRejected = "a zombie's completion is rejected",
    ZombieLate = "a completion that was lost on the way meets a job that went on",
    Beside = "a zombie runs beside the next attempt",
    StaleAssign = "a stale leader's assignment is rejected",
    StaleRecovery = "a stale leader's recovery is rejected",
    Gone = "an assignment to a worker that has left is rejected",
    AppliedUnheard = "a close whose reply was lost turns out to be applied",
    NotApplied = "a close whose reply was lost turns out not to be applied",
    Requeued = "an assignment by what a leader knew of old is handed back",
    LateAssign = "an assignment that was lost on the way is applied after all",
    CancelledRunning = "a cancelled run ends its job",
    CancelledLost = "a cancelled run whose worker is lost ends its job",
    CancelTooLate = "a run succeeds although it was cancelled",
    Promoted = "a failed job is queued again after its backoff",
    Recovered = "a lost worker's job is queued again",
    Raced = "a worker and a leader close the same attempt, and one is rejected",
    Dropped = "a zombie's end is dropped by its own worker",
    Removed = "a lost worker's inbox is removed",
    Revoked = "a silent worker's job is queued again",
    RenewedInTime = "a renewal that came meanwhile rejects a revocation",
    RevokedInTime = "a revocation that came meanwhile rejects a renewal",
    DoneInTime = "a completion that came meanwhile rejects a revocation",
    CancelledSilent = "a silent worker's job that was cancelled ends",
}}

impl Attempts {
    pub(crate) fn new(bounds: Bounds, expected: &'static [Sight]) -> Self {
        Self { bounds, expected, seen: Seen::default() }
    }

    pub(super) fn note(&self, sight: Sight) {
        self.seen.note(sight as u32);
    }

    /// Applies a transaction, checks it, and tells whoever watches.
    fn commit(&self, state: &mut State, author: Author, session: i64, ops: &[Op]) -> Outcome<()> {
        let after = match state.zk.after(session, ops) {
            Ok(after) => after,
            Err(rejection) => {
                self.rejected(state, author, ops, rejection.at, &rejection.reason);
                return Outcome::Rejected(rejection);
            }
        };
        let (was, is) = (View::of(&state.zk), View::of(&after));
        let mut broken = was.broken_by(&is);
        if let Author::Leader(epoch) = author
            && state.zk.get(path::EPOCH).map(|(_, version)| version) != Some(epoch)
        {
            broken = Some(Law::Fence);
        }
        state.broken = state.broken.or(broken);
        self.applied(state, author, &was, &is);
        if let [(worker, assignment)] = &is.assigned[..]
            && was.assigned.is_empty()
        {
            state.given.insert((assignment.attempt, *worker));
        }
        state.zk = Part::new(after);
        for op in ops {
            tell(state, op);
        }
        Outcome::Applied(())
    }

    fn deeds(&self, state: &mut State, n: usize, deeds: Vec<Deed>) {
        for deed in deeds {
            match deed {
                Deed::Launched(attempt) => {
                    if !state.given.contains(&(attempt, worker(n))) {
                        state.broken.get_or_insert(Law::Begins);
                    }
                    if !state.launched.insert(attempt) {
                        state.broken.get_or_insert(Law::Once);
                    }
                }
                Deed::Settled(attempt, settled) => {
                    let record = View::of(&state.zk).record.map(|(record, _)| record);
                    let last = record.and_then(|record| record.last);
                    // Who closed an attempt that is not the last one stands nowhere any more.
                    let last = last.filter(|last| last.attempt.number == attempt);
                    let truth = last.is_none_or(|last| match settled {
                        Settled::Closed { how, .. } => {
                            !by_leader(how) && last.how == how && last.attempt.worker == worker(n)
                        }
                        Settled::Zombie => by_leader(last.how) || last.attempt.worker != worker(n),
                    });
                    if !truth {
                        state.broken.get_or_insert(Law::Truth);
                    }
                }
                Deed::Resolved { applied: true } => self.note(Sight::AppliedUnheard),
                Deed::Resolved { applied: false } => self.note(Sight::NotApplied),
                Deed::Requeued => self.note(Sight::Requeued),
                Deed::DroppedZombie => self.note(Sight::Dropped),
            }
        }
    }

    fn lead(&self, state: &mut State, n: usize, act: impl FnOnce(&mut Leader, &ZooKeeper)) {
        let zk = state.zk.clone();
        act(&mut state.leaders[n], &zk);
        if state.leaders[n].overstepped {
            state.broken.get_or_insert(Law::Pause);
        }
    }

    fn work<T>(&self, state: &mut State, n: usize, act: impl FnOnce(&mut Worker, &mut Vec<Deed>) -> T) -> T {
        let mut deeds = Vec::new();
        let done = act(&mut state.workers[n], &mut deeds);
        self.deeds(state, n, deeds);
        done
    }

    fn serve_leader(&self, state: &mut State, n: usize) -> (Write, Outcome<()>) {
        let write = state.leaders[n].sent.pop_front().expect("something was sent");
        let author = Author::Leader(state.leaders[n].epoch);
        let outcome = self.commit(state, author, NOBODY, &write.ops());
        if matches!(&write, Write::Remove(..)) && outcome == Outcome::Applied(()) {
            self.note(Sight::Removed);
        }
        (write, outcome)
    }

    fn serve_worker(&self, state: &mut State, n: usize) {
        let sent = state.workers[n].sent.pop_front().expect("something was sent");
        let outcome = match &sent {
            Sent::MakeMinute(minute) => {
                let lifetime = Lifetime::Persistent;
                let container =
                    Op::Create { path: path::delayed_minute(*minute), data: Vec::new(), lifetime };
                self.commit(state, Author::Worker, stage::session(n), &[container])
            }
            Sent::Close(_) | Sent::Write(_) | Sent::Beat(_) => {
                self.commit(state, Author::Worker, stage::session(n), &sent.ops())
            }
            Sent::List | Sent::Read(_) | Sent::ReadBack(_) | Sent::ReadAssignments(_) => Outcome::Applied(()),
        };
        let zk = state.zk.clone();
        let worker = &mut *state.workers[n];
        let heard = worker.answer(&zk, sent, outcome);
        worker.mailbox.extend(heard);
    }

    fn lose(&self, state: &mut State, author: Author, ops: Vec<Op>) {
        if !ops.is_empty() {
            state.late.push((author, ops));
        }
    }

    fn claim(&self, state: &mut State, n: usize) {
        let found = state.zk.get(path::EPOCH).map(|(_, version)| version);
        let token = Uuid::from_u128(n as u128);
        let claim = Claim::plan(stage::candidate(n), NOBODY, token, found, 0).expect("an epoch is left");
        let node = NodeId::new("n").expect("a name");
        let outcome = self.commit(state, Author::Client, NOBODY, &claim.ops(&node, WallMillis(0)));
        assert_eq!(outcome, Outcome::Applied(()), "nobody claims at the same time");
        self.lead(state, n, |leader, zk| leader.begin(claim.epoch(), zk));
    }

    fn cancel(&self, state: &mut State) {
        let job = job();
        let view = View::of(&state.zk);
        let (record, version) = view.record.expect("a record stays");
        let waits = |path: String| state.zk.znodes.contains_key(&path);
        let waiting = if waits(path::queue_entry(&job)) {
            Some(Waiting::Queued)
        } else {
            waits(DELAYED.clone()).then_some(Waiting::Delayed(MINUTE))
        };
        let ops = match (waiting, view.assigned.first()) {
            (Some(waiting), _) => txn::cancel(&job, version, &record.cancel(WALL), waiting),
            (None, Some((worker, assignment))) => {
                let (_, version) = state.zk.get(&path::assignment(*worker, &job)).expect("it is there");
                vec![txn::flag_cancel(&job, *worker, version, assignment)]
            }
            (None, None) => return,
        };
        self.commit(state, Author::Client, NOBODY, &ops);
    }

    fn step(&self, before: &State, action: Action) -> State {
        let mut state = before.clone();
        match action {
            Action::Claim => {
                state.left.claims -= 1;
                self.claim(&mut state, 1);
            }
            Action::ServeLeader(n) => {
                let (write, outcome) = self.serve_leader(&mut state, n);
                self.lead(&mut state, n, |leader, zk| leader.answered(zk, write, outcome));
            }
            Action::Hint(n) => self.lead(&mut state, n, Leader::hear_hint),
            Action::CutLeader { served } => {
                state.left.leader_cuts -= 1;
                let mut unheard = Vec::new();
                while served && !state.leaders[0].sent.is_empty() {
                    unheard.push(self.serve_leader(&mut state, 0).0);
                }
                state.leaders[0].sent.extend(unheard);
                let epoch = state.leaders[0].epoch;
                let mut lost = Vec::new();
                self.lead(&mut state, 0, |leader, zk| lost = leader.cut(zk));
                for write in lost.into_iter().filter(|_| !served) {
                    self.lose(&mut state, Author::Leader(epoch), write.ops());
                }
            }
            Action::ConnectLeader => self.lead(&mut state, 0, Leader::connect),
            Action::ServeWorker(n) => self.serve_worker(&mut state, n),
            Action::Hear(n) => self.work(&mut state, n, Worker::hear_next),
            Action::CutWorker { served } => {
                state.left.worker_cuts -= 1;
                while served && !state.workers[0].sent.is_empty() {
                    self.serve_worker(&mut state, 0);
                }
                let late = self.work(&mut state, 0, Worker::cut);
                self.lose(&mut state, Author::Worker, late);
            }
            Action::ConnectWorker => {
                if state.zk.znodes.contains_key(&path::worker(worker(0))) {
                    self.work(&mut state, 0, Worker::resume);
                } else {
                    state.workers[0].stop();
                }
            }
            Action::Expire => {
                state.left.expiries -= 1;
                let worker = &mut *state.workers[0];
                worker.alive = false;
                for path in state.zk.end_session(stage::session(0)) {
                    tell(&mut state, &Op::Delete { path, version: None });
                }
            }
            Action::Learn => {
                let late = state.workers[0].stop();
                self.lose(&mut state, Author::Worker, late);
            }
            Action::Succeed(n) => {
                let result = Run::Succeeded(Payload::json(*b"2").expect("small"));
                self.work(&mut state, n, |worker, deeds| worker.end(result, deeds));
            }
            Action::Fail(n) => {
                state.left.failures -= 1;
                self.work(&mut state, n, |worker, deeds| worker.end(Run::Failed("no".into()), deeds));
            }
            Action::Abort(n) => self.work(&mut state, n, |worker, deeds| worker.end(Run::Aborted, deeds)),
            Action::Renew(n) => {
                state.left.renewals -= 1;
                self.work(&mut state, n, Worker::renew);
            }
            Action::Revoke(n) => {
                state.left.revocations -= 1;
                let held = View::of(&state.zk).assigned.into_iter().map(|(worker, _)| (worker, job()));
                let held = held.collect();
                self.lead(&mut state, n, |leader, zk| leader.revoke(zk, held));
            }
            Action::Cancel => {
                state.left.cancels -= 1;
                self.cancel(&mut state);
            }
            Action::Promote(n) => {
                let epoch = state.leaders[n].epoch;
                let (entry, _) = state.zk.value(&DELAYED).expect("it is delayed");
                let ops = [vec![txn::fence(epoch)], txn::promote(&job(), MINUTE, &entry)].concat();
                if self.commit(&mut state, Author::Leader(epoch), NOBODY, &ops) == Outcome::Applied(()) {
                    self.note(Sight::Promoted);
                }
            }
            Action::Late(at) => {
                let (author, ops) = state.late.remove(at);
                let outcome = self.commit(&mut state, author, NOBODY, &ops);
                match (author, outcome) {
                    (Author::Leader(_), Outcome::Applied(())) => self.note(Sight::LateAssign),
                    (Author::Worker, Outcome::Rejected(_)) => self.note(Sight::ZombieLate),
                    _ => {}
                }
            }
            Action::DeleteEphemeral => {
                state.left.strange -= 1;
                let path = path::worker(worker(0));
                state.zk.znodes.remove(&path);
                tell(&mut state, &Op::Delete { path, version: None });
            }
        }
        state
    }
}

/// Here no worker finds that its own lease is over.
fn by_leader(how: AttemptEndKind) -> bool {
    matches!(how, AttemptEndKind::Lost | AttemptEndKind::LeaseExpired)
}

/// Hints to whoever watches what an operation changed.
fn tell(state: &mut State, op: &Op) {
    let deleted = matches!(op, Op::Delete { .. });
    match (path::parse(op.path()), op) {
        (_, Op::Check { .. }) => {}
        (Place::QueueEntry(job), _) => {
            state.leaders.iter_mut().for_each(|leader| leader.hint(Hint::Queue(job.clone())));
        }
        (Place::Worker(worker), _) if deleted => {
            state.leaders.iter_mut().for_each(|leader| leader.hint(Hint::Gone(worker)));
        }
        (Place::Assignment(worker, job), _) => {
            if deleted {
                state.leaders.iter_mut().for_each(|leader| leader.hint(Hint::Emptied(worker)));
            }
            let event = match op {
                Op::Create { .. } => inbox::Event::Created(vec![job]),
                Op::Set { .. } => inbox::Event::Changed(vec![job]),
                Op::Check { .. } | Op::Delete { .. } => inbox::Event::Deleted(vec![job]),
            };
            let to = state.workers.iter_mut().find(|to| to.id == worker);
            if let Some(to) = to {
                to.hint(event);
            }
        }
        _ => {}
    }
}

impl Model for Attempts {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            zk: Part::new(stage::zookeeper(WORKERS)),
            leaders: std::array::from_fn(|_| Part::new(Leader::new())),
            workers: std::array::from_fn(|n| Part::new(Worker::new(worker(n)))),
            late: Part::new(Vec::new()),
            given: Part::new(BTreeSet::new()),
            launched: Part::new(BTreeSet::new()),
            left: self.bounds,
            broken: None,
        };
        self.claim(&mut state, 0);
        vec![state]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        actions.extend(steps::all().filter(|action| steps::enabled(state, action)));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(self.step(state, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = laws();
        properties.extend(self.expected.iter().map(|sight| sight.property()));
        properties
    }
}
