//! The states, the steps between them, and the properties.

use std::collections::BTreeSet;

use bellwether_core::job::{Ending, Next};
use bellwether_core::outcome::Outcome;
use bellwether_core::path;
use bellwether_core::segment::{ChunkEnd, Members, SliceName};
use bellwether_core::txn::segment::{self, AssignedSlice, WaitingEntry};
use bellwether_core::txn::{self, Op};
use stateright::{Model, Property};

use super::invariants::broken;
use super::stage::{self, MEMBERS, SESSION, WALL, WORKERS, worker};
use super::worker::{Worker, closed, extracted, record};
use crate::explore::{Milestones, invariants, milestones};
use crate::shared_part::Part;
use crate::zookeeper::ZooKeeper;

/// How often each step may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Bounds {
    /// Slices.
    pub(super) assigns: u8,
    /// Slices of single members, instead of the whole entry.
    pub(super) splits: u8,
    /// Replies that are lost after the write was applied.
    pub(super) replies: u8,
    /// Writes that are applied at any later time.
    pub(super) late: u8,
    /// Workers whose session ends.
    pub(super) losses: u8,
    /// Slices that are taken from a live worker.
    pub(super) revocations: u8,
    pub(super) give_backs: u8,
    pub(super) failures: u8,
    /// Extractions of a running member.
    pub(super) extractions: u8,
    /// Flags in slices, and cancels of waiting members.
    pub(super) cancels: u8,
    /// Whole entries that are cancelled or expire.
    pub(super) ends: u8,
    pub(super) retries: u8,
    pub(super) removals: u8,
    /// Claims by a second leader.
    pub(super) claims: u8,
}

pub(super) struct Segments {
    bounds: Bounds,
    milestones: Milestones<Milestone>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    pub(super) zk: Part<ZooKeeper>,
    workers: [Part<Worker>; WORKERS],
    /// The epochs of the leaders, and the request of each.
    leaders: Vec<(i32, Option<Vec<Op>>)>,
    client: Option<Vec<Op>>,
    /// Lost writes that may still be applied.
    late: Part<Vec<Vec<Op>>>,
    seq: u64,
    /// The members whose first attempt has begun.
    pub(super) begun: Members,
    /// The members whose record was removed.
    pub(super) forgotten: Members,
    /// The paths of all entries and slices that were created.
    names: Part<BTreeSet<String>>,
    left: Bounds,
    broken: Option<Invariant>,
}

/// Who sent a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sender {
    Worker(usize),
    Leader(usize),
    Client,
}

/// What happens to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Answered,
    ReplyLost,
    Late,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// ZooKeeper serves a request, or it is lost.
    Serve(Sender, Fate),
    /// A lost write is applied.
    Late(usize),
    Look(usize),
    Begin(usize),
    Raise(usize),
    Succeed(usize, u8),
    Fail(usize, u8),
    Report(usize),
    GiveBack(usize),
    Extract(usize, u8),
    /// The session of a worker ends.
    Lose(usize),
    /// A leader assigns an entry to a worker: all of its members, or the first.
    Assign(usize, usize, bool),
    Recover(usize, usize),
    Revoke(usize, usize),
    Expire(usize),
    Claim,
    Flag(u8),
    CancelMember(u8),
    CancelEntry,
    Retry(u8),
    Remove,
    /// The record of a member that was opened again is removed.
    RemoveRecord(u8),
}

invariants! { Segments {
    OnePlace = "S22, S1: a member is in one place",
    Once = "S22, S9: a first attempt runs once",
    Closed = "S22, S9: an attempt that ran is closed when its member gets a record",
    Names = "no name of an entry or a slice occurs twice",
    Record = "a member has a record if and only if it was extracted and its record was not removed",
    Flagged = "S22, S12: a member that a client asked to cancel does not wait again",
    Fence = "S3: a stale leader changes nothing",
}}

milestones! { Segments {
    Succeeded = "all members succeed",
    Requeued = "a member that was not begun waits again and is assigned again",
    Lost = "a member that may have begun gets a record with a lost attempt",
    Zombie = "a report is rejected because the slice was taken away",
    LateApplied = "a lost write is applied late",
    LateRejected = "a lost write is rejected late",
    GivenBack = "a worker gives members back",
    Failed = "a failed member gets a record",
    Continued = "a running member gets a record",
    Flagged = "a flagged member ends cancelled",
    CancelledWaiting = "a waiting member is cancelled",
    Ended = "a whole entry ends",
    Retried = "an ended member is opened again",
    RetriedTwice = "a second opening is rejected",
    Removed = "the segment is removed",
    RemovedBeside = "the segment is removed and the record of a member is kept",
    Kept = "a removal is rejected because a member was opened again",
    Stale = "a stale leader is rejected",
}}

impl Segments {
    pub(super) fn new(bounds: Bounds, expected: &'static [Milestone]) -> Self {
        Self { bounds, milestones: Milestones::expecting(expected) }
    }

    /// Applies a transaction and checks it.
    fn commit(&self, state: &mut State, ops: &[Op]) -> Outcome<()> {
        let after = match state.zk.after(SESSION, ops) {
            Ok(after) => after,
            Err(rejection) => return Outcome::Rejected(rejection),
        };
        let stale = ops.iter().any(|op| {
            op.path() == path::EPOCH && op.version().is_some_and(|version| Some(version) != epoch(&state.zk))
        });
        let mut names = state.names.clone();
        let moves = ops.iter().filter(|op| matches!(op, Op::Create { .. }) && is_named_once(op.path()));
        let repeated = moves.filter(|op| !names.insert(op.path().to_owned())).count() > 0;
        state.names = names;
        self.look_around(&state.zk, &after, ops);
        let flagged = (0..WORKERS).flat_map(|n| stage::slices(&state.zk, worker(n)));
        let flagged = flagged.fold(Members::NONE, |all, held| all.with(held.slice.cancel));
        let requeued = stage::entries(&after).iter().any(|entry| !entry.members.within(flagged).is_empty());
        state.zk = Part::new(after);
        let found = if stale {
            Some(Invariant::Fence)
        } else if repeated {
            Some(Invariant::Names)
        } else if requeued {
            Some(Invariant::Flagged)
        } else {
            broken(&state.zk, state.begun, state.forgotten, ops)
        };
        state.broken = state.broken.or(found);
        Outcome::Applied(())
    }

    fn look_around(&self, before: &ZooKeeper, after: &ZooKeeper, ops: &[Op]) {
        let (_, ends) = stage::chunks(after);
        let all = Members::below(MEMBERS);
        if ends.get(&ChunkEnd::Succeeded) == Some(&all) {
            self.note(Milestone::Succeeded);
        }
        let assigned =
            ops.iter().filter(|op| matches!(op, Op::Create { .. }) && op.path().starts_with("/assignments"));
        if assigned.count() > 0 && stage::entries(before).iter().any(|entry| entry.name.nonce.is_some()) {
            self.note(Milestone::Requeued);
        }
        let records = (0..MEMBERS).filter_map(|number| stage::record(after, number));
        if records.into_iter().any(|record| record.losses > 0) {
            self.note(Milestone::Lost);
        }
        if !after.znodes.contains_key(&path::segment(stage::id())) {
            self.note(Milestone::Removed);
            if stage::is_named(0) && stage::record(after, 0).is_some() {
                self.note(Milestone::RemovedBeside);
            }
        }
    }

    fn serve(&self, state: &mut State, from: Sender, fate: Fate) {
        let ops = match from {
            Sender::Worker(n) => state.workers[n].sent.as_ref().map(|sent| sent.ops.clone()),
            Sender::Leader(n) => state.leaders[n].1.take(),
            Sender::Client => state.client.take(),
        };
        let ops = ops.expect("a request was sent");
        let outcome = match fate {
            Fate::Answered => self.commit(state, &ops),
            Fate::ReplyLost => {
                state.left.replies -= 1;
                self.commit(state, &ops);
                Outcome::Unknown
            }
            Fate::Late => {
                state.left.late -= 1;
                state.late.push(ops.clone());
                Outcome::Unknown
            }
        };
        if let Outcome::Rejected(rejection) = &outcome {
            self.note_rejection(from, &ops[rejection.at], rejection.at + 1 == ops.len());
        }
        if let Sender::Worker(n) = from {
            state.workers[n].answered(&outcome);
        }
    }

    fn note_rejection(&self, from: Sender, op: &Op, is_last: bool) {
        match (from, op) {
            (Sender::Worker(_), _) => self.note(Milestone::Zombie),
            (Sender::Leader(_), Op::Check { .. }) => self.note(Milestone::Stale),
            (Sender::Client, Op::Delete { .. }) if is_last => self.note(Milestone::Kept),
            (Sender::Client, Op::Create { .. } | Op::Set { .. }) => self.note(Milestone::RetriedTwice),
            (Sender::Client | Sender::Leader(_), _) => {}
        }
    }

    fn lead(state: &mut State, n: usize, mut ops: Vec<Op>) {
        ops.insert(0, txn::fence(state.leaders[n].0));
        state.leaders[n].1 = Some(ops);
    }

    fn step(&self, before: &State, action: Action) -> State {
        let mut state = before.clone();
        match action {
            Action::Serve(from, fate) => self.serve(&mut state, from, fate),
            Action::Late(at) => {
                let ops = state.late.remove(at);
                match self.commit(&mut state, &ops) {
                    Outcome::Applied(()) => self.note(Milestone::LateApplied),
                    Outcome::Rejected(_) | Outcome::Unknown => self.note(Milestone::LateRejected),
                }
            }
            Action::Look(n) => {
                let zk = state.zk.clone();
                state.workers[n].look(&zk, n);
            }
            Action::Begin(n) => {
                let number = state.workers[n].next().expect("a member to begin");
                state.workers[n].begin(number);
                if state.begun.contains(number) {
                    state.broken.get_or_insert(Invariant::Once);
                }
                state.begun = state.begun.with(Members::one(number));
            }
            Action::Raise(n) => state.workers[n].raise(),
            Action::Succeed(n, number) => state.workers[n].finish(number, true),
            Action::Fail(n, number) => {
                state.left.failures -= 1;
                self.note(Milestone::Failed);
                state.workers[n].finish(number, false);
            }
            Action::Report(n) => {
                if state.workers[n].view.as_ref().is_some_and(|held| !held.slice.cancel.is_empty()) {
                    self.note(Milestone::Flagged);
                }
                state.workers[n].report();
            }
            Action::GiveBack(n) => {
                state.left.give_backs -= 1;
                self.note(Milestone::GivenBack);
                state.workers[n].give_back();
            }
            Action::Extract(n, number) => {
                state.left.extractions -= 1;
                self.note(Milestone::Continued);
                state.workers[n].extract(number);
            }
            Action::Lose(n) => {
                state.left.losses -= 1;
                state.workers[n].is_lost = true;
            }
            Action::Assign(leader, n, whole) => {
                let entry = first_entry(&state).expect("an entry");
                state.left.assigns -= 1;
                state.left.splits -= u8::from(!whole);
                let first = Members::one(entry.members.iter().next().expect("not empty"));
                let given = if whole { entry.members } else { first };
                state.seq += 1;
                let name = SliceName { segment: stage::id(), epoch: state.leaders[leader].0, seq: state.seq };
                let ops = segment::assign(&entry, &[(worker(n), name, stage::slice(given))]);
                Self::lead(&mut state, leader, ops);
            }
            Action::Recover(leader, n) => self.take_away(&mut state, leader, n),
            Action::Revoke(leader, n) => {
                state.left.revocations -= 1;
                self.take_away(&mut state, leader, n);
            }
            Action::Expire(leader) => {
                state.left.ends -= 1;
                self.note(Milestone::Ended);
                let ops = segment::end_entry(&first_entry(&state).expect("an entry"), ChunkEnd::Expired);
                Self::lead(&mut state, leader, ops);
            }
            Action::Claim => {
                state.left.claims -= 1;
                let version = epoch(&state.zk).expect("an epoch");
                let claim = Op::Set { path: path::EPOCH.into(), data: vec![], version };
                self.commit(&mut state, &[claim]);
                state.leaders.push((version + 1, None));
            }
            Action::Flag(number) => {
                state.left.cancels -= 1;
                let held = holder(&state, number).expect("a slice");
                state.client = Some(vec![segment::flag(&held, Members::one(number))]);
            }
            Action::CancelMember(number) => {
                state.left.cancels -= 1;
                self.note(Milestone::CancelledWaiting);
                let entry = waiting(&state, number).expect("an entry");
                let member = extracted(number, record(number).cancel(WALL), Next::Terminal);
                state.client = Some(segment::cancel_member(&entry, &member));
            }
            Action::CancelEntry => {
                state.left.ends -= 1;
                self.note(Milestone::Ended);
                let entry = first_entry(&state).expect("an entry");
                state.client = Some(segment::end_entry(&entry, ChunkEnd::Cancelled));
            }
            Action::Retry(number) => {
                state.left.retries -= 1;
                self.note(Milestone::Retried);
                let member = extracted(number, record(number).reopen(), Next::Queue);
                state.client = Some(segment::reopen(stage::id(), &member));
            }
            Action::Remove => {
                state.left.removals -= 1;
                let (names, _) = stage::chunks(&state.zk);
                state.client = Some(segment::remove(stage::id(), &stage::segment(), &names));
            }
            Action::RemoveRecord(number) => {
                state.left.removals -= 1;
                let delete = |path| Op::Delete { path, version: None };
                let job = stage::job(number);
                // The job has ended in between, which takes its entry with it.
                let entry = crate::fixture::ready(&state.zk, &job).expect("the job waits");
                let ops = [path::ready_entry(&entry), path::record(&job)].map(delete);
                state.forgotten = state.forgotten.with(Members::one(number));
                assert_eq!(self.commit(&mut state, &ops), Outcome::Applied(()));
            }
        }
        state
    }

    fn take_away(&self, state: &mut State, leader: usize, n: usize) {
        let held = stage::slices(&state.zk, worker(n)).into_iter().next().expect("a slice");
        let member = |number| {
            let flagged = held.slice.cancel.contains(number);
            let ending = if flagged { Ending::Cancelled } else { Ending::Lost };
            closed(number, worker(n), ending)
        };
        let lost = held.slice.may_have_begun().iter().map(member).collect::<Vec<_>>();
        Self::lead(state, leader, segment::recover(&held, &lost, &stage::to()));
    }
}

fn epoch(zk: &ZooKeeper) -> Option<i32> {
    zk.get(path::EPOCH).map(|(_, version)| version)
}

/// Whether the znode's name must occur once: entries of segments, and slices.
fn is_named_once(path: &str) -> bool {
    path.starts_with("/ready/")
        || path.rsplit('/').next().is_some_and(|name| name.parse::<SliceName>().is_ok())
}

fn first_entry(state: &State) -> Option<WaitingEntry> {
    stage::entries(&state.zk).into_iter().next()
}

fn waiting(state: &State, number: u8) -> Option<WaitingEntry> {
    stage::entries(&state.zk).into_iter().find(|entry| entry.members.contains(number))
}

fn holder(state: &State, number: u8) -> Option<AssignedSlice> {
    let slices = (0..WORKERS).flat_map(|n| stage::slices(&state.zk, worker(n)));
    slices.into_iter().find(|held| held.slice.open().contains(number))
}

fn enabled(state: &State, action: Action) -> bool {
    let left = &state.left;
    let idle = |n: usize| state.workers[n].sent.is_none();
    let leads = |n: usize| state.leaders.get(n).is_some_and(|(_, sent)| sent.is_none());
    let calls = state.client.is_none();
    let has_slice = |n: usize| !stage::slices(&state.zk, worker(n)).is_empty();
    match action {
        Action::Serve(from, fate) => {
            let sent = match from {
                Sender::Worker(n) => !idle(n),
                Sender::Leader(n) => state.leaders.get(n).is_some_and(|(_, sent)| sent.is_some()),
                Sender::Client => !calls,
            };
            sent && match fate {
                Fate::Answered => true,
                Fate::ReplyLost => left.replies > 0,
                Fate::Late => left.late > 0,
            }
        }
        Action::Late(at) => at < state.late.len(),
        // A worker whose session has ended reads nothing more.
        Action::Look(n) => {
            let seen = &state.workers[n].view;
            let there = stage::slices(&state.zk, worker(n)).into_iter().next();
            idle(n) && !state.workers[n].is_lost && *seen != there
        }
        Action::Begin(n) => {
            let one_slot = state.workers[n].running.is_empty();
            one_slot && state.workers[n].next().is_some()
        }
        Action::Raise(n) => {
            let more = |held: &AssignedSlice| !held.slice.unbegun().without(held.slice.cancel).is_empty();
            let busy = !state.workers[n].running.is_empty() || state.workers[n].next().is_some();
            idle(n) && !busy && state.workers[n].view.as_ref().is_some_and(more)
        }
        Action::Succeed(n, number) => state.workers[n].running.contains(number),
        Action::Fail(n, number) => left.failures > 0 && state.workers[n].running.contains(number),
        Action::Report(n) => idle(n) && state.workers[n].can_report(),
        Action::GiveBack(n) => left.give_backs > 0 && idle(n) && !state.workers[n].spare().is_empty(),
        Action::Extract(n, number) => {
            let open = |held: &AssignedSlice| held.slice.open().contains(number);
            let held = state.workers[n].view.as_ref().is_some_and(open);
            left.extractions > 0 && idle(n) && held && state.workers[n].running.contains(number)
        }
        Action::Lose(n) => left.losses > 0 && !state.workers[n].is_lost,
        Action::Assign(leader, n, whole) => {
            let entry = first_entry(state);
            let parts = entry.as_ref().is_some_and(|entry| whole || entry.members.len() > 1);
            let bounded = left.assigns > 0 && (whole || left.splits > 0);
            bounded && parts && leads(leader) && !state.workers[n].is_lost && !has_slice(n)
        }
        Action::Recover(leader, n) => leads(leader) && state.workers[n].is_lost && has_slice(n),
        Action::Revoke(leader, n) => {
            left.revocations > 0 && leads(leader) && !state.workers[n].is_lost && has_slice(n)
        }
        Action::Expire(leader) => left.ends > 0 && leads(leader) && first_entry(state).is_some(),
        Action::Claim => left.claims > 0,
        Action::Flag(number) => left.cancels > 0 && calls && holder(state, number).is_some(),
        Action::CancelMember(number) => left.cancels > 0 && calls && waiting(state, number).is_some(),
        Action::CancelEntry => left.ends > 0 && calls && first_entry(state).is_some(),
        Action::Retry(number) => {
            let (_, ends) = stage::chunks(&state.zk);
            let has = |end| ends.get(&end).is_some_and(|members: &Members| members.contains(number));
            let over = has(ChunkEnd::Cancelled) || has(ChunkEnd::Expired) || has(ChunkEnd::Succeeded);
            left.retries > 0 && calls && over && !has(ChunkEnd::Extracted)
        }
        Action::Remove => {
            let (_, ends) = stage::chunks(&state.zk);
            let over = ends.values().fold(Members::NONE, |all, members| all.with(*members));
            left.removals > 0 && calls && over == Members::below(MEMBERS)
        }
        Action::RemoveRecord(number) => {
            let reopened = stage::record(&state.zk, number).is_some_and(|record| record.generation > 1);
            left.removals > 0 && reopened
        }
    }
}

impl Model for Segments {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let zk = stage::zookeeper();
        let names =
            stage::entries(&zk).iter().map(|entry| format!("{}/{}", entry.slot, entry.name)).collect();
        vec![State {
            workers: std::array::from_fn(|_| Part::new(Worker::default())),
            leaders: vec![(epoch(&zk).expect("an epoch"), None)],
            zk: Part::new(zk),
            client: None,
            late: Part::new(Vec::new()),
            seq: 0,
            begun: Members::NONE,
            forgotten: Members::NONE,
            names: Part::new(names),
            left: self.bounds,
            broken: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let (members, leaders) = (0..MEMBERS, 0..state.leaders.len());
        let senders = (0..WORKERS)
            .map(Sender::Worker)
            .chain(leaders.clone().map(Sender::Leader))
            .chain([Sender::Client]);
        let fates = [Fate::Answered, Fate::ReplyLost, Fate::Late];
        let served = senders.flat_map(|from| fates.map(|fate| Action::Serve(from, fate)));
        let late = (0..state.late.len()).map(Action::Late);
        let workers = (0..WORKERS).flat_map(|n| {
            let own = [
                Action::Look(n),
                Action::Begin(n),
                Action::Raise(n),
                Action::Report(n),
                Action::GiveBack(n),
                Action::Lose(n),
            ];
            let runs = members
                .clone()
                .flat_map(move |m| [Action::Succeed(n, m), Action::Fail(n, m), Action::Extract(n, m)]);
            own.into_iter().chain(runs)
        });
        let leads = leaders.flat_map(|l| {
            let each = (0..WORKERS).flat_map(move |n| {
                [
                    Action::Assign(l, n, true),
                    Action::Assign(l, n, false),
                    Action::Recover(l, n),
                    Action::Revoke(l, n),
                ]
            });
            each.chain([Action::Expire(l)])
        });
        let calls =
            members.clone().flat_map(|m| [Action::Flag(m), Action::CancelMember(m), Action::Retry(m)]);
        let calls = calls.chain(members.clone().map(Action::RemoveRecord));
        let calls = calls.chain([Action::CancelEntry, Action::Remove, Action::Claim]);
        let all = served.chain(late).chain(workers).chain(leads).chain(calls);
        actions.extend(all.filter(|action| enabled(state, *action)));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(self.step(state, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        invariants().into_iter().chain(self.milestones()).collect()
    }
}
