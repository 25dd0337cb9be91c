//! The effect of each step.

use std::time::Duration;

use bellwether_core::budget::{DEFAULT_LEASE, MIN_RETENTION};
use bellwether_core::job::{Assignment, AttemptOutcome, ClosedAttempt, JobRecord, Payload};
use bellwether_core::machine::lease_watcher::LEASE_MARGIN;
use bellwether_core::machine::worker::Lookup;
use bellwether_core::machine::worker::executor_pool::Run;
use bellwether_core::machine::worker::inbox_watcher;
use bellwether_core::machine::worker::status_reporter::reporter::Settled;
use bellwether_core::name::NodeId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Bucket, Place};
use bellwether_core::takeover::{self, Decision, HeldAttempt, Seen};
use bellwether_core::time::WallMillis;
use bellwether_core::txn::{self, Claim, EntryLocation, Found, Op, Seat};
use bellwether_core::worker::WorkerInfo;
use uuid::Uuid;

use super::client::Call;
use super::invariants::{Life, View};
use super::leader::{Hint, Leader, Write};
use super::model::{Action, Attempts, Author, CLIENT, Invariant, Milestone, State};
use super::stage::{self, EXPIRED, NOBODY, WALL, delayed, job, worker};
use super::worker::{Deed, Sent, Worker};
use crate::fixture;
use crate::shared_part::Part;
use crate::zookeeper::ZooKeeper;

impl Attempts {
    /// Applies a transaction, checks it, and sends hints to the watchers.
    pub(super) fn commit(&self, state: &mut State, author: Author, session: i64, ops: &[Op]) -> Outcome<()> {
        let after = match state.zk.after(session, ops) {
            Ok(after) => after,
            Err(rejection) => {
                self.rejected(state, author, ops, rejection.at, &rejection.reason);
                return Outcome::Rejected(rejection);
            }
        };
        let (was, is) = (View::of(&state.zk), View::of(&after));
        let mut broken = was.broken_by(&is);
        if self.bounds.drains > 0 && stage::drains(&state.zk) {
            let first = path::worker(worker(0));
            let serves_again = after.znodes.contains_key(&first) && !stage::drains(&after);
            let has = |view: &View| view.assigned.iter().any(|(to, _)| *to == worker(0));
            let gets = !has(&was) && has(&is);
            broken = broken.or((serves_again || gets).then_some(Invariant::Drains));
        }
        if let Author::Leader(epoch) = author
            && state.zk.get(path::EPOCH).map(|(_, version)| version) != Some(epoch)
        {
            broken = Some(Invariant::Fence);
        }
        if let Some((record, _)) = &is.record {
            let token = record.token == Uuid::from_u128(CLIENT);
            if token && was.record.as_ref().is_none_or(|(before, _)| before.token != record.token) {
                state.made += 1;
                broken = broken.or((state.made > 1).then_some(Invariant::MadeOnce));
            }
            if let [(worker, assignment)] = &is.assigned[..]
                && was.assigned.iter().all(|(from, _)| from != worker)
            {
                state.given.insert((Life::of(record), assignment.attempt, *worker));
                let expired = record.is_overdue(assignment.assigned_at);
                broken = broken.or(expired.then_some(Invariant::Expiry));
            }
            state.aged &= record.is_terminal();
        }
        state.broken = state.broken.or(broken);
        self.applied(state, author, &was, &is);
        state.zk = Part::new(after);
        for op in ops {
            tell(state, op);
        }
        Outcome::Applied(())
    }

    fn deeds(&self, state: &mut State, n: usize, deeds: Vec<Deed>) {
        for deed in deeds {
            match deed {
                Deed::Launched { life, attempt, expired, drains } => {
                    if drains {
                        state.broken.get_or_insert(Invariant::Drains);
                    }
                    if !state.given.contains(&(life, attempt, worker(n))) {
                        state.broken.get_or_insert(Invariant::Begins);
                    }
                    let elsewhere = state.launched.contains(&(life, attempt, worker(1 - n)));
                    let again = !state.launched.insert((life, attempt, worker(n)));
                    if again || (elsewhere && self.bounds.moves == 0) {
                        state.broken.get_or_insert(Invariant::Once);
                    }
                    if expired {
                        state.broken.get_or_insert(Invariant::Expiry);
                    }
                }
                Deed::Settled(life, attempt, settled) => {
                    let record = View::of(&state.zk).record.map(|(record, _)| record);
                    if settled == Settled::Zombie && record.as_ref().is_some_and(|it| Life::of(it) != life) {
                        self.note(Milestone::Haunted);
                    }
                    let last =
                        record.filter(|record| Life::of(record) == life).and_then(|record| record.last);
                    // If another attempt was closed since, ZooKeeper no longer shows how this one ended.
                    let last = last.filter(|last| last.attempt.number == attempt);
                    let truth = last.is_none_or(|last| match settled {
                        Settled::Closed(ClosedAttempt { how, .. }) => {
                            how != AttemptOutcome::Lost && last.how == how && last.attempt.worker == worker(n)
                        }
                        Settled::Zombie => by_leader(last.how) || last.attempt.worker != worker(n),
                    });
                    if !truth {
                        state.broken.get_or_insert(Invariant::Truth);
                    }
                }
                Deed::Resolved { applied: true } => self.note(Milestone::AppliedUnheard),
                Deed::Resolved { applied: false } => self.note(Milestone::NotApplied),
                Deed::DroppedZombie => self.note(Milestone::Dropped),
                Deed::Retired => self.note(Milestone::Retired),
            }
        }
    }

    fn lead(&self, state: &mut State, n: usize, act: impl FnOnce(&mut Leader, &ZooKeeper)) {
        let zk = state.zk.clone();
        act(&mut state.leaders[n], &zk);
        if state.leaders[n].overstepped {
            state.broken.get_or_insert(Invariant::Pause);
        }
    }

    fn work<T>(&self, state: &mut State, n: usize, act: impl FnOnce(&mut Worker, &mut Vec<Deed>) -> T) -> T {
        let mut deeds = Vec::new();
        let done = act(&mut state.workers[n], &mut deeds);
        self.deeds(state, n, deeds);
        done
    }

    fn serve_leader(&self, state: &mut State, n: usize) -> (Write, Outcome<()>) {
        let write = state.leaders[n].sent.pop_front().expect("a request was sent");
        let author = Author::Leader(state.leaders[n].epoch);
        let outcome = self.commit(state, author, NOBODY, &write.ops());
        if matches!(&write, Write::Remove(..)) && outcome == Outcome::Applied(()) {
            self.note(Milestone::Removed);
        }
        (write, outcome)
    }

    fn serve_worker(&self, state: &mut State, n: usize) {
        let sent = state.workers[n].sent.pop_front().expect("something was sent");
        let outcome = match &sent {
            Sent::Close(_)
            | Sent::HandBack(..)
            | Sent::Write(_)
            | Sent::Beat(_)
            | Sent::UpdateRegistration(_)
            | Sent::Retire(_) => self.commit(state, Author::Worker, stage::session(n), &sent.ops()),
            Sent::List | Sent::Read(_) | Sent::ReadBack(_) | Sent::ReadAssignments(_) | Sent::Look => {
                Outcome::Applied(())
            }
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

    pub(super) fn claim(&self, state: &mut State, n: usize) {
        let version = |path| state.zk.get(path).map(|(_, version)| version);
        let found = Found { epoch: version(path::EPOCH), leading: version(path::LEADING) };
        let token = Uuid::from_u128(n as u128);
        let seat = Seat::First { candidate: stage::candidate(n) };
        let claim = Claim::plan(seat, NOBODY, token, found, 0).expect("the epoch can be increased");
        let node = NodeId::new("n").expect("a valid name");
        let outcome = self.commit(state, Author::Client, NOBODY, &claim.ops(&node, WallMillis(0)));
        assert_eq!(outcome, Outcome::Applied(()), "no other claim is in flight");
        self.lead(state, n, |leader, zk| leader.begin(claim.epoch(), zk));
    }

    fn cancel(&self, state: &mut State) {
        let job = job();
        let view = View::of(&state.zk);
        let Some((record, version)) = view.record else { return };
        let ready = fixture::ready(&state.zk, &job).map(EntryLocation::Ready);
        let waiting = ready.or_else(|| delayed(&state.zk, &job).map(EntryLocation::Delayed));
        let ops = match (waiting, view.assigned.first()) {
            (Some(waiting), _) => txn::cancel(&job, version, &record.cancel(WALL), &waiting),
            (None, Some((worker, assignment))) => {
                let (_, version) =
                    state.zk.get(&path::assignment(*worker, &job)).expect("the assignment exists");
                vec![txn::flag_cancel(&job, *worker, version, assignment)]
            }
            (None, None) => return,
        };
        self.commit(state, Author::Client, NOBODY, &ops);
    }

    /// Passes the outcome of its submission to the client.
    fn tell_client(&self, state: &mut State, outcome: &Outcome<()>) {
        let zk = state.zk.clone();
        state.client.answered(&zk, outcome);
        self.accepted(state);
    }

    fn accepted(&self, state: &mut State) {
        if state.client.call == Call::Accepted && View::of(&state.zk).record.is_none() {
            state.broken.get_or_insert(Invariant::Accepted);
        }
    }

    /// Sends a write that an operator decides now; it may be applied at any later time.
    fn operate(&self, state: &mut State, decide: fn(JobRecord, i32) -> Vec<Op>) {
        if let Some((record, version)) = View::of(&state.zk).record {
            self.lose(state, Author::Client, decide(record, version));
        }
    }

    /// Decides about the takeover of the attempt by a worker, for the process that has its token.
    fn take_over(&self, state: &mut State, n: usize) {
        let (from, to) = (worker(1 - n), worker(n));
        let Some((assignment, _)) = state.zk.value::<Assignment>(&path::assignment(from, &job())) else {
            return;
        };
        let Assignment { generation, attempt, fencing_token: token, .. } = assignment;
        // A worker takes over before it offers a slot. The workers of this model offer one from the start.
        let offers_none = |info: WorkerInfo| WorkerInfo { slots: 0, ..info };
        let seen = Seen {
            registration: match Lookup::of(state.zk.get(&path::worker(to))) {
                Lookup::Found(info, version) => Lookup::Found(offers_none(info), version),
                other => other,
            },
            new: Lookup::of(state.zk.get(&path::assignment(to, &job()))),
            old: Lookup::of(state.zk.get(&path::assignment(from, &job()))),
            record: Lookup::of(state.zk.get(&path::record(&job()))),
        };
        let submission = View::of(&state.zk).record.map_or_else(Uuid::nil, |(record, _)| record.token);
        let held = HeldAttempt { job: job(), submission, generation, attempt, fencing_token: token };
        if let Decision::Commit(_, ops) = takeover::decide(&held, from, to, &seen) {
            self.lose(state, Author::Gateway, ops);
        }
    }

    /// Advances the clocks of all processes.
    fn pass(&self, state: &mut State, time: Duration) {
        state.workers.iter_mut().for_each(|worker| worker.pass(time));
        for n in 0..state.leaders.len() {
            self.lead(state, n, |leader, zk| leader.pass(zk, time));
        }
    }

    pub(super) fn step(&self, before: &State, action: Action) -> State {
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
                if self.bounds.minutes > 0 {
                    state.workers.iter_mut().for_each(|worker| worker.pass(DEFAULT_LEASE + LEASE_MARGIN));
                }
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
                let delay = delayed(&state.zk, &job()).expect("the job is delayed");
                let entry = state.zk.value(&path::delayed_entry(delay, &job())).expect("it has an entry").0;
                let ops = [vec![txn::fence(epoch)], txn::promote(&job(), delay, &entry)].concat();
                if self.commit(&mut state, Author::Leader(epoch), NOBODY, &ops) == Outcome::Applied(()) {
                    self.note(Milestone::Promoted);
                }
            }
            Action::Late(at) => {
                let (author, ops) = state.late.remove(at);
                let outcome = self.commit(&mut state, author, NOBODY, &ops);
                match (author, outcome) {
                    (Author::Leader(_), Outcome::Applied(())) => self.note(Milestone::LateAssign),
                    (Author::Worker, Outcome::Rejected(_)) => self.note(Milestone::ZombieLate),
                    _ => {}
                }
            }
            Action::DeleteEphemeral => {
                state.left.strange -= 1;
                let path = path::worker(worker(0));
                state.zk.znodes.remove(&path);
                tell(&mut state, &Op::Delete { path, version: None });
            }
            Action::Grant(n) => self.work(&mut state, n, Worker::grant),
            Action::PassLeader(n) => self.lead(&mut state, n, Leader::pass_expiry),
            Action::PassWorkers => state.workers.iter_mut().for_each(|worker| worker.wall = EXPIRED),
            Action::Submit => {
                state.left.submissions -= 1;
                state.client.call = Call::Sent;
            }
            Action::ServeClient => {
                let outcome = self.commit(&mut state, Author::Client, NOBODY, &before.client.ops());
                self.tell_client(&mut state, &outcome);
            }
            Action::LoseReply { served } => {
                state.left.lost_replies -= 1;
                let ops = state.client.ops();
                if served {
                    self.commit(&mut state, Author::Client, NOBODY, &ops);
                } else {
                    self.lose(&mut state, Author::Client, ops);
                }
                self.tell_client(&mut state, &Outcome::Unknown);
            }
            Action::LookBack => {
                let zk = state.zk.clone();
                state.client.look(&zk);
                self.accepted(&mut state);
            }
            Action::Retry => {
                state.left.retries -= 1;
                self.operate(&mut state, |record, version| txn::reopen(&job(), version, &record.reopen(), 0));
            }
            Action::Purge => {
                state.left.purges -= 1;
                let bucket = Bucket::of(&job());
                let removals = state.zk.get(&bucket.jobs()).map_or(0, |(_, version)| version);
                if let Some((_, version)) = View::of(&state.zk).record {
                    let ops =
                        vec![txn::count_removal(bucket, removals, None), txn::remove_record(&job(), version)];
                    self.lose(&mut state, Author::Client, ops);
                }
            }
            Action::Tidy(n) => {
                state.left.tidies -= 1;
                self.lead(&mut state, n, Leader::tidy);
            }
            Action::Drain => {
                state.left.drains -= 1;
                let first = worker(0);
                if let Some((info, version)) = state.zk.value::<WorkerInfo>(&path::worker(first)) {
                    let ops = txn::mark_draining(first, &info, version);
                    self.commit(&mut state, Author::Client, NOBODY, &ops);
                }
            }
            Action::EndGrace(n) => self.work(&mut state, n, Worker::end_grace),
            Action::TakeOver(n) => {
                state.left.moves -= 1;
                self.take_over(&mut state, n);
            }
            Action::Minute => {
                state.left.minutes -= 1;
                state.aged = true;
                self.pass(&mut state, MIN_RETENTION);
            }
        }
        state
    }
}

/// Returns whether a leader may have written this end. That the lease is over may also be found by a worker.
fn by_leader(how: AttemptOutcome) -> bool {
    matches!(how, AttemptOutcome::Lost | AttemptOutcome::LeaseExpired)
}

/// Sends hints about an operation to the watchers.
fn tell(state: &mut State, op: &Op) {
    let deleted = matches!(op, Op::Delete { .. });
    match (path::parse(op.path()), op) {
        (_, Op::Check { .. }) => {}
        (Place::Ready(entry), _) => {
            state.leaders.iter_mut().for_each(|leader| leader.hint(Hint::Ready(entry.clone())));
        }
        (Place::Worker(worker), _) => {
            let hint = if deleted { Hint::Gone(worker) } else { Hint::Changed(worker) };
            state.leaders.iter_mut().for_each(|leader| leader.hint(hint.clone()));
            if let Some(to) = state.workers.iter_mut().find(|to| to.id == worker) {
                to.hint_life();
            }
        }
        (Place::Assignment(worker, job), _) => {
            if deleted {
                state.leaders.iter_mut().for_each(|leader| leader.hint(Hint::Emptied(worker)));
            }
            let event = match op {
                Op::Create { .. } => inbox_watcher::Event::Created(vec![job]),
                Op::Set { .. } => inbox_watcher::Event::Changed(vec![job]),
                Op::Check { .. } | Op::Delete { .. } => inbox_watcher::Event::Deleted(vec![job]),
            };
            let to = state.workers.iter_mut().find(|to| to.id == worker);
            if let Some(to) = to {
                to.hint(event);
            }
        }
        _ => {}
    }
}
