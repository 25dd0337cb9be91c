//! The states, the steps between them, and the properties.

use bellwether_core::job::{Attempt, Ending, JobRecord, Payload, TurnIndex};
use bellwether_core::machine::assigner::Job;
use bellwether_core::name::JobId;
use bellwether_core::outcome::Outcome;
use bellwether_core::path::{self, Place};
use bellwether_core::txn::{self, Batch, EntryLocation, Op};
use stateright::{Model, Property};

use super::leader::{Hint, Leader};
use super::stage::{self, JOBS, SESSION, WALL, delayed, job, paths, ready, worker};
use crate::explore::{Milestones, invariants, milestones};
use crate::shared_part::Part;
use crate::zookeeper::ZooKeeper;

/// How often each adversity may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// Number of leaders at the same time.
    pub(crate) leaders: usize,
    /// Lost connections of the first leader.
    pub(crate) cuts: u8,
    /// Attempts that fail.
    pub(crate) failures: u8,
    /// Attempts that end as lost.
    pub(crate) losses: u8,
    /// Cancels of a waiting job by a client.
    pub(crate) cancels: u8,
    /// Retries of a cancelled job by an operator.
    pub(crate) retries: u8,
    /// Submissions of a third job.
    pub(crate) submissions: u8,
}

pub(crate) struct Lanes {
    bounds: Bounds,
    milestones: Milestones<Milestone>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    zk: Part<ZooKeeper>,
    leaders: Vec<Part<Leader>>,
    /// Lost assignments that may still be applied.
    late: Part<Vec<Vec<Op>>>,
    left: Bounds,
    broken: Option<Invariant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// ZooKeeper serves a leader's next assignment, and the leader handles the reply.
    Serve(usize),
    /// A leader handles the next reply to a read.
    Hear(usize),
    /// A leader handles the next hint.
    Hint(usize),
    Cut {
        served: bool,
    },
    Connect,
    Late(usize),
    Succeed(usize),
    Fail(usize),
    Lose(usize),
    Promote(usize),
    Cancel(usize),
    Retry(usize),
    Submit,
}

invariants! { Lanes {
    OneAtATime = "S6: jobs of a lane are assigned one at a time",
    InOrder = "S6: no job of a lane is assigned before an earlier one has ended",
    Turn = "S6: a turn exists while its job is open",
    OnePlace = "S1, S10: an open job is in exactly one place, a terminal job in none",
    Fence = "S3: an assignment within its epoch is not treated as stale",
}}

milestones! { Lanes {
    Second = "the second job is assigned after the first ended",
    EntryRejected = "an assignment is rejected because its entry was deleted",
    LateApplied = "a lost assignment is applied late",
    Retried = "a retried job is assigned at its new turn",
    Waits = "a job waits while the job ahead of it is in its backoff",
    Empty = "all jobs have ended and no turn is left",
}}

impl Lanes {
    pub(crate) fn new(bounds: Bounds, expected: &'static [Milestone]) -> Self {
        Self { bounds, milestones: Milestones::expecting(expected) }
    }

    /// Applies a transaction, checks it, and sends hints to the watchers.
    fn commit(&self, state: &mut State, ops: &[Op]) -> Outcome<()> {
        let after = match state.zk.after(SESSION, ops) {
            Ok(after) => after,
            Err(rejection) => {
                if ops.get(rejection.at).is_some_and(|op| matches!(path::parse(op.path()), Place::Ready(_))) {
                    self.note(Milestone::EntryRejected);
                }
                return Outcome::Rejected(rejection);
            }
        };
        state.broken = state.broken.or(broken(&after, ops));
        state.zk = Part::new(after);
        self.look_around(&state.zk, ops);
        for op in ops {
            tell(state, op);
        }
        Outcome::Applied(())
    }

    fn look_around(&self, zk: &ZooKeeper, ops: &[Op]) {
        let assigned =
            ops.iter().filter(|op| matches!(op, Op::Create { .. })).find_map(|op| {
                match path::parse(op.path()) {
                    Place::Assignment(_, job) => Some(job),
                    _ => None,
                }
            });
        if let Some(id) = assigned {
            if record(zk, &id).is_some_and(|(record, _)| record.generation > 1) {
                self.note(Milestone::Retried);
            }
            if id == job(1) && record(zk, &job(0)).is_some_and(|(record, _)| record.is_terminal()) {
                self.note(Milestone::Second);
            }
        }
        if delayed(zk, &job(0)).is_some() && ready(zk, &job(1)).is_some() {
            self.note(Milestone::Waits);
        }
        if zk.names(&path::lane(&stage::lane())).next().is_none() {
            self.note(Milestone::Empty);
        }
    }

    fn lead(state: &mut State, n: usize, act: impl FnOnce(&mut Leader, &ZooKeeper)) {
        let zk = state.zk.clone();
        act(&mut state.leaders[n], &zk);
        if state.leaders[n].fenced_out {
            state.broken.get_or_insert(Invariant::Fence);
        }
    }

    fn serve(&self, state: &mut State, n: usize) -> (Batch<Job>, Outcome<()>) {
        let batch = state.leaders[n].sent.pop_front().expect("a request was sent");
        let ops: Vec<_> = batch.ops().cloned().collect();
        let outcome = self.commit(state, &ops);
        (batch, outcome)
    }

    fn close(&self, state: &mut State, n: usize, ending: Ending) {
        let id = job(n);
        let (record, version) = record(&state.zk, &id).expect("the job was submitted");
        let attempt = Attempt { number: record.attempts + 1, worker: worker() };
        let (closed, next) = record.close(attempt, ending, WALL, 0);
        let ops = txn::close(&id, worker(), version, None, &closed, &next);
        assert_eq!(self.commit(state, &ops), Outcome::Applied(()), "no other close is in flight");
    }

    fn step(&self, before: &State, action: Action) -> State {
        let mut state = before.clone();
        match action {
            Action::Serve(n) => {
                let (batch, outcome) = self.serve(&mut state, n);
                Self::lead(&mut state, n, |leader, zk| leader.answered(zk, batch, outcome));
            }
            Action::Hear(n) => Self::lead(&mut state, n, Leader::hear_reply),
            Action::Hint(n) => Self::lead(&mut state, n, Leader::hear_hint),
            Action::Cut { served } => {
                state.left.cuts -= 1;
                let mut unheard = Vec::new();
                while served && !state.leaders[0].sent.is_empty() {
                    unheard.push(self.serve(&mut state, 0).0);
                }
                let lost: Vec<_> =
                    state.leaders[0].sent.iter().map(|batch| batch.ops().cloned().collect()).collect();
                state.late.extend(lost);
                state.leaders[0].sent.extend(unheard);
                Self::lead(&mut state, 0, Leader::cut);
            }
            Action::Connect => Self::lead(&mut state, 0, Leader::connect),
            Action::Late(at) => {
                let ops = state.late.remove(at);
                if self.commit(&mut state, &ops) == Outcome::Applied(()) {
                    self.note(Milestone::LateApplied);
                }
            }
            Action::Succeed(n) => {
                self.close(&mut state, n, Ending::Succeeded(Payload::json(*b"2").expect("small")));
            }
            Action::Fail(n) => {
                state.left.failures -= 1;
                self.close(&mut state, n, Ending::Failed("no".into()));
            }
            Action::Lose(n) => {
                state.left.losses -= 1;
                self.close(&mut state, n, Ending::Lost);
            }
            Action::Promote(n) => {
                let delay = delayed(&state.zk, &job(n)).expect("the job is delayed");
                let entry = state.zk.value(&path::delayed_entry(delay, &job(n))).expect("it has an entry").0;
                let ops = txn::promote(&job(n), delay, &entry);
                self.commit(&mut state, &ops);
            }
            Action::Cancel(n) => {
                state.left.cancels -= 1;
                let (record, version) = record(&state.zk, &job(n)).expect("the job was submitted");
                let entry = EntryLocation::Ready(ready(&state.zk, &job(n)).expect("the job waits"));
                let ops = txn::cancel(&job(n), version, &record.cancel(WALL), &entry);
                self.commit(&mut state, &ops);
            }
            Action::Retry(n) => {
                state.left.retries -= 1;
                let (record, version) = record(&state.zk, &job(n)).expect("the job was submitted");
                let ops = txn::reopen(&job(n), version, &record.reopen(), 0);
                self.commit(&mut state, &ops);
            }
            Action::Submit => {
                state.left.submissions -= 1;
                let ops = txn::submit(&job(2), &stage::record(), 0);
                self.commit(&mut state, &ops);
            }
        }
        state
    }
}

fn record(zk: &ZooKeeper, job: &JobId) -> Option<(JobRecord, i32)> {
    zk.value(&path::record(job))
}

/// Returns the turns with their positions in the order.
fn turns(zk: &ZooKeeper) -> impl Iterator<Item = ((i64, u32), JobId)> {
    zk.znodes.iter().filter_map(|(path, znode)| {
        let Place::Turn(_, job) = path::parse(path) else { return None };
        let (TurnIndex(index), _) = zk.value(path)?;
        Some(((znode.created, index), job))
    })
}

/// Returns the invariant that a transaction broke.
fn broken(zk: &ZooKeeper, ops: &[Op]) -> Option<Invariant> {
    let there = |path: &str| usize::from(zk.znodes.contains_key(path));
    let mut assigned = 0;
    for n in 0..JOBS {
        let at = paths(n);
        let Some((record, _)) = zk.value::<JobRecord>(&at.record) else { continue };
        let open = usize::from(!record.is_terminal());
        assigned += there(&at.assigned);
        let waits = usize::from(ready(zk, &job(n)).is_some()) + usize::from(delayed(zk, &job(n)).is_some());
        if there(&at.assigned) + waits != open {
            return Some(Invariant::OnePlace);
        }
        let turn = record.turn().expect("every job has the lane");
        if there(&path::turn(&turn, &job(n))) != open {
            return Some(Invariant::Turn);
        }
    }
    if assigned > 1 {
        return Some(Invariant::OneAtATime);
    }
    let first = turns(zk).min().map(|(_, job)| job);
    let out_of_order = ops.iter().any(|op| match (op, path::parse(op.path())) {
        (Op::Create { .. }, Place::Assignment(_, job)) => first.as_ref() != Some(&job),
        _ => false,
    });
    out_of_order.then_some(Invariant::InOrder)
}

/// Sends hints about an operation to the leaders.
fn tell(state: &mut State, op: &Op) {
    let hint = match (path::parse(op.path()), op) {
        (_, Op::Check { .. }) => return,
        (Place::Ready(entry), _) => Hint::Ready(entry),
        (Place::Turn(turn, job), Op::Delete { .. }) => Hint::TurnGone(turn.lane, (turn.generation, job)),
        (Place::Assignment(..), Op::Delete { .. }) => Hint::Emptied,
        _ => return,
    };
    state.leaders.iter_mut().for_each(|leader| leader.hint(hint.clone()));
}

fn enabled(state: &State, action: Action) -> bool {
    let there = |path: &str| state.zk.znodes.contains_key(path);
    let assigned = |n: usize| there(&paths(n).assigned);
    let waits = |n: usize| delayed(&state.zk, &job(n)).is_some();
    let is_ready = |n: usize| ready(&state.zk, &job(n)).is_some();
    let over = |n: usize| !assigned(n) && !is_ready(n) && !waits(n);
    let left = &state.left;
    match action {
        Action::Serve(n) => !state.leaders[n].sent.is_empty(),
        Action::Hear(n) => !state.leaders[n].replies.is_empty(),
        Action::Hint(n) => !state.leaders[n].hints.is_empty(),
        Action::Cut { served } => {
            left.cuts > 0 && state.leaders[0].up && (!served || !state.leaders[0].sent.is_empty())
        }
        Action::Connect => !state.leaders[0].up,
        Action::Late(at) => at < state.late.len(),
        Action::Succeed(n) => assigned(n),
        Action::Fail(n) => left.failures > 0 && assigned(n),
        Action::Lose(n) => left.losses > 0 && assigned(n),
        Action::Promote(n) => waits(n),
        Action::Cancel(n) => left.cancels > 0 && is_ready(n),
        Action::Retry(n) => {
            let cancelled = |(record, _): (JobRecord, i32)| record.last.is_none();
            left.retries > 0 && over(n) && record(&state.zk, &job(n)).is_some_and(cancelled)
        }
        Action::Submit => left.submissions > 0,
    }
}

impl Model for Lanes {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let zk = stage::zookeeper();
        vec![State {
            leaders: (0..self.bounds.leaders).map(|_| Part::new(Leader::new(&zk))).collect(),
            zk: Part::new(zk),
            late: Part::new(Vec::new()),
            left: self.bounds,
            broken: None,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.broken.is_some() {
            return;
        }
        let leaders =
            (0..state.leaders.len()).flat_map(|n| [Action::Serve(n), Action::Hear(n), Action::Hint(n)]);
        let cuts = [Action::Cut { served: false }, Action::Cut { served: true }, Action::Connect];
        let late = (0..state.late.len()).map(Action::Late);
        let jobs = (0..JOBS).flat_map(|n| {
            [
                Action::Succeed(n),
                Action::Fail(n),
                Action::Lose(n),
                Action::Promote(n),
                Action::Cancel(n),
                Action::Retry(n),
            ]
        });
        let all = leaders.chain(cuts).chain(late).chain(jobs).chain([Action::Submit]);
        actions.extend(all.filter(|action| enabled(state, *action)));
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        Some(self.step(state, action))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        invariants().into_iter().chain(self.milestones()).collect()
    }
}
