//! The effect of each step.

use bellwether_core::group::{GroupRecord, Stage, Stop};
use bellwether_core::job::{Assignment, Attempt, Ending, JobRecord, Payload};
use bellwether_core::machine::group_joiner::Event;
use bellwether_core::outcome::{Outcome, Reason};
use bellwether_core::path::{self, GroupPlace, Place};
use bellwether_core::txn::{self, Op};

use super::calls::{Phase, What};
use super::invariants;
use super::leader::{Leader, Write};
use super::model::{Action, Groups, Invariant, Milestone, State};
use super::stage::{self, SESSION, worker};
use crate::fixture::{WALL, ready};
use crate::shared_part::Part;
use crate::zookeeper::ZooKeeper;

impl Groups {
    /// Applies a transaction, checks it, and sends hints to the watchers. `epoch` is that of the leader that sent it.
    fn commit(&self, state: &mut State, epoch: Option<i32>, ops: &[Op]) -> Outcome<()> {
        let after = match state.zk.after(SESSION, ops) {
            Ok(after) => after,
            Err(rejection) => return Outcome::Rejected(rejection),
        };
        let mut broken = invariants::broken(&self.cast, &state.zk, &after, ops);
        if epoch.is_some_and(|epoch| state.zk.get(path::EPOCH).map(|(_, version)| version) != Some(epoch)) {
            broken = Some(Invariant::Fence);
        }
        for (at, part) in self.cast.jobs.iter().enumerate() {
            let comes =
                !state.zk.znodes.contains_key(&part.record) && after.znodes.contains_key(&part.record);
            if comes && !state.made.insert(at) {
                broken = broken.or(Some(Invariant::Once));
            }
        }
        state.broken = state.broken.or(broken);
        self.look_around(&state.zk, &after, ops);
        state.zk = Part::new(after);
        ops.iter().for_each(|op| tell(state, op));
        Outcome::Applied(())
    }

    fn look_around(&self, was: &ZooKeeper, is: &ZooKeeper, ops: &[Op]) {
        for op in ops {
            match (op, path::parse(op.path())) {
                (Op::Set { path, .. }, Place::Group(GroupPlace::Record(group))) => {
                    let (before, after) = (was.value::<GroupRecord>(path), is.value::<GroupRecord>(path));
                    let (Some((before, _)), Some((after, _))) = (before, after) else { continue };
                    if group == stage::further() && before.stage != after.stage && after.is_done() {
                        self.note(Milestone::FurtherDone);
                    }
                    self.taken_on(&before, &after, group == stage::inner());
                }
                (Op::Set { path, .. }, Place::Assignment(..))
                    if is.value::<Assignment>(path).is_some_and(|(assignment, _)| assignment.cancel) =>
                {
                    self.note(Milestone::Asked);
                }
                _ => {}
            }
        }
    }

    fn taken_on(&self, before: &GroupRecord, after: &GroupRecord, sub_jobs: bool) {
        let done = matches!(after.stage, Stage::Done { .. });
        match (after.stopped, done) {
            (Some(Stop::Member(_)), true) => self.note(Milestone::Stopped),
            (Some(Stop::Parent), true) => self.note(Milestone::StoppedByParent),
            (None, true) if sub_jobs => self.note(Milestone::ParentMarked),
            (None, true) => self.note(Milestone::Joined),
            _ => {}
        }
        if sub_jobs && before.stage == Stage::Open && after.stage == Stage::Joining && after.closed {
            self.note(Milestone::Counted);
        }
    }

    fn lead(&self, state: &mut State, n: usize, act: impl FnOnce(&mut Leader, &ZooKeeper)) {
        let zk = state.zk.clone();
        act(&mut state.leaders[n], &zk);
    }

    fn serve(&self, state: &mut State, n: usize) -> (Write, Outcome<()>) {
        let write = state.leaders[n].sent.pop_front().expect("a request was sent");
        let epoch = state.leaders[n].epoch;
        let outcome = self.commit(state, Some(epoch), &write.ops());
        match (&write, &outcome) {
            (_, Outcome::Rejected(rejection)) if rejection.is_fenced_out() => self.note(Milestone::Stale),
            (Write::Advance(..), Outcome::Rejected(rejection)) if rejection.reason == Reason::BadVersion => {
                self.note(Milestone::Raced);
            }
            (Write::Cancel(_, batch), Outcome::Applied(())) => {
                let waited = batch.ops().any(|op| matches!(path::parse(op.path()), Place::Ready(_)));
                if waited {
                    self.note(Milestone::Cancelled);
                }
            }
            _ => {}
        }
        (write, outcome)
    }

    fn answer(&self, state: &mut State, n: usize, outcome: &Outcome<()>) {
        let zk = state.zk.clone();
        state.calls[n].answered(&zk, outcome);
        self.accepted(state, n);
    }

    /// Makes all calls, one after the other.
    pub(super) fn submit_all(&self, state: &mut State) {
        for n in 0..state.calls.len() {
            let zk = state.zk.clone();
            state.calls[n].make(&self.bounds, &zk);
            let Phase::Sent(ops) = state.calls[n].phase.clone() else {
                unreachable!("the call has sent its request")
            };
            let outcome = self.commit(state, None, &ops);
            self.answer(state, n, &outcome);
        }
    }

    /// Creates the chunk once the group of sub-jobs exists, unless a lost copy of the request has created it.
    fn accepted(&self, state: &mut State, n: usize) {
        let group = match state.calls[n].what {
            What::Spawn => stage::inner(),
            What::Extend => stage::further(),
            What::Member(..) | What::Seal(_) => return,
        };
        if state.calls[n].phase == Phase::Accepted {
            self.commit(state, None, &txn::make_chunk(&group, 0));
        }
    }

    fn begin(&self, state: &mut State, job: usize) {
        let assignment = Assignment::new(1, 0, WALL);
        let entry = ready(&state.zk, &self.cast.jobs[job].id).expect("the job waits");
        let ops = txn::assign(&entry, worker(), &assignment, None);
        assert_eq!(self.commit(state, None, &ops), Outcome::Applied(()), "no other assignment is in flight");
    }

    /// Assigns a waiting job and ends it.
    pub(super) fn end_at_once(&self, state: &mut State, job: usize, well: bool) {
        if ready(&state.zk, &self.cast.jobs[job].id).is_some() {
            self.begin(state, job);
        }
        let ops = self.end(state, job, well);
        assert_eq!(self.commit(state, None, &ops), Outcome::Applied(()), "the worker has the assignment");
    }

    /// Returns the transaction with which the worker ends the job.
    fn end(&self, state: &State, job: usize, well: bool) -> Vec<Op> {
        let part = &self.cast.jobs[job];
        let (assignment, at) = state.zk.value::<Assignment>(&part.assigned).expect("the job is assigned");
        let (record, version) = state.zk.value::<JobRecord>(&part.record).expect("the record exists");
        let ending = match (well, assignment.cancel) {
            (true, _) => Ending::Succeeded(Payload::json(*b"2").expect("small")),
            (false, true) => Ending::Cancelled,
            (false, false) => Ending::Failed("no".into()),
        };
        let attempt = Attempt { number: 1, worker: worker() };
        let (closed, next) = record.carry(&assignment).close(attempt, ending, WALL, 0);
        txn::close(&part.id, worker(), version, Some(at), &closed, &next)
    }

    fn late(&self, state: &mut State, at: usize) {
        let (epoch, ops) = state.late.remove(at);
        let outcome = self.commit(state, epoch, &ops);
        let about_group = |op: &Op| matches!(path::parse(op.path()), Place::Group(GroupPlace::Record(_)));
        match (epoch, outcome) {
            (Some(_), Outcome::Applied(())) => self.note(Milestone::LateApplied),
            (Some(_), Outcome::Rejected(_)) => self.note(Milestone::LateAdvance),
            (None, Outcome::Rejected(_)) if ops.len() == 1 => self.note(Milestone::LateSeal),
            (None, Outcome::Rejected(rejection)) if ops.get(rejection.at).is_some_and(about_group) => {
                self.note(Milestone::LateMember);
            }
            (None, Outcome::Rejected(_)) if matches!(ops[0], Op::Set { .. }) => self.note(Milestone::LateEnd),
            _ => {}
        }
    }

    pub(super) fn step(&self, before: &State, action: Action) -> State {
        let mut state = before.clone();
        let groups = &self.cast.groups;
        match action {
            Action::Claim => {
                state.left.claims -= 1;
                let claim = Op::Set { path: path::EPOCH.to_owned(), data: Vec::new(), version: 0 };
                assert_eq!(self.commit(&mut state, None, &[claim]), Outcome::Applied(()), "once");
                state.leaders[0].replaced();
                self.lead(&mut state, 1, |leader, zk| leader.begin(1, zk, groups));
            }
            Action::Serve(n) => {
                let (write, outcome) = self.serve(&mut state, n);
                self.lead(&mut state, n, |leader, zk| leader.answered(zk, write, outcome));
            }
            Action::Look(n) => self.lead(&mut state, n, Leader::look),
            Action::Hint(n) => self.lead(&mut state, n, Leader::hear_hint),
            Action::Cut { served } => {
                state.left.cuts -= 1;
                let mut unheard = Vec::new();
                while served && !state.leaders[0].sent.is_empty() {
                    unheard.push(self.serve(&mut state, 0).0);
                }
                state.leaders[0].sent.extend(unheard);
                let epoch = state.leaders[0].epoch;
                let mut lost = Vec::new();
                self.lead(&mut state, 0, |leader, zk| lost = leader.cut(zk));
                if !served {
                    state.late.extend(lost.into_iter().map(|write| (Some(epoch), write.ops())));
                }
            }
            Action::Connect => self.lead(&mut state, 0, |leader, zk| leader.connect(zk, groups)),
            Action::Make(n) => {
                let zk = state.zk.clone();
                state.calls[n].make(&self.bounds, &zk);
                if state.calls[n].phase == Phase::Refused {
                    self.note(match state.calls[n].what {
                        What::Spawn => Milestone::NoSubJobs,
                        What::Extend => Milestone::NoFurther,
                        What::Member(..) | What::Seal(_) => Milestone::Refused,
                    });
                }
            }
            Action::Answer(n) => {
                let Phase::Sent(ops) = &before.calls[n].phase else { unreachable!("the request was sent") };
                let outcome = self.commit(&mut state, None, ops);
                self.answer(&mut state, n, &outcome);
            }
            Action::Lose { call, served } => {
                state.left.lost_replies -= 1;
                let Phase::Sent(ops) = &before.calls[call].phase else {
                    unreachable!("the request was sent")
                };
                if served {
                    self.commit(&mut state, None, ops);
                } else {
                    state.late.push((None, ops.clone()));
                }
                self.answer(&mut state, call, &Outcome::Unknown);
            }
            Action::LookBack(n) => {
                let zk = state.zk.clone();
                state.calls[n].look_back(&zk);
                self.accepted(&mut state, n);
            }
            Action::Begin(job) => {
                state.left.begins -= 1;
                self.begin(&mut state, job);
            }
            Action::End { job, well } => {
                state.left.failures -= u8::from(!well);
                self.end_at_once(&mut state, job, well);
            }
            Action::LoseEnd(job) => {
                state.left.lost_ends -= 1;
                let ops = self.end(&state, job, true);
                state.late.push((None, ops));
            }
            Action::Late(at) => self.late(&mut state, at),
        }
        state
    }
}

/// Sends hints to the leaders about an operation. They watch the groups, not the places.
fn tell(state: &mut State, op: &Op) {
    let hint = match (path::parse(op.path()), op) {
        (Place::Group(GroupPlace::Record(group)), Op::Create { .. } | Op::Set { .. }) => {
            Event::Changed(group)
        }
        (Place::Group(GroupPlace::Mark(group, mark, end)), Op::Create { .. }) => {
            Event::Ended(group, mark, end)
        }
        _ => return,
    };
    state.leaders.iter_mut().for_each(|leader| leader.hint(hint.clone()));
}
