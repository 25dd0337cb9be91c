//! The states, the steps between them, and the properties.

use std::collections::BTreeSet;

use bellwether_core::group::End;
use bellwether_core::job::{Assignment, JobRecord};
use bellwether_core::name::WorkerId;
use bellwether_core::path;
use bellwether_core::txn::{self, Op};
use stateright::{Model, Property};

use super::client::Client;
use super::invariants::{Life, View};
use super::leader::Leader;
use super::stage::{self, NOBODY, WALL, job, worker};
use super::steps;
use super::worker::Worker;
use crate::explore::{Milestones, invariants, milestones};
use crate::shared_part::Part;
use crate::zookeeper::ZooKeeper;

/// The token of the client that submits the job again.
pub(super) const CLIENT: u128 = 7;

const LEADERS: usize = 2;
const WORKERS: usize = 2;

/// How often each adversity may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// There is only one worker.
    pub(crate) lone: bool,
    /// Claims of the second leader.
    pub(crate) claims: u8,
    /// Lost connections of the first leader.
    pub(crate) leader_cuts: u8,
    /// Lost connections of the first worker.
    pub(crate) worker_cuts: u8,
    /// Expired sessions of the first worker.
    pub(crate) expiries: u8,
    /// Failures of a handler.
    pub(crate) failures: u8,
    /// Cancels by a client.
    pub(crate) cancels: u8,
    /// Deletions of the first worker's ephemeral by an operator, while the worker lives.
    pub(crate) strange: u8,
    /// Lease renewals by a handler.
    pub(crate) renewals: u8,
    /// Revocations, as if the lease of an assignment were over.
    pub(crate) revocations: u8,
    /// Whether the job expires: each leader's clock, and that of the workers, reaches the expiry at any time.
    pub(crate) expires: bool,
    /// Resubmissions by a client, which open a terminal job.
    pub(crate) submissions: u8,
    /// Whether the client submits only after the removal of the record.
    pub(crate) after_removal: bool,
    /// Lost replies to resubmissions.
    pub(crate) lost_replies: u8,
    /// Retries by an operator.
    pub(crate) retries: u8,
    /// Minutes that pass after the job's end.
    pub(crate) minutes: u8,
    /// Removals of the record by a leader's janitor.
    pub(crate) tidies: u8,
    /// Purges by an operator.
    pub(crate) purges: u8,
    /// Drains of the first worker by an operator.
    pub(crate) drains: u8,
    /// Takeovers of the attempt by the other worker.
    pub(crate) moves: u8,
}

pub(crate) struct Attempts {
    pub(super) bounds: Bounds,
    milestones: Milestones<Milestone>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) zk: Part<ZooKeeper>,
    pub(super) leaders: [Part<Leader>; LEADERS],
    pub(super) workers: [Part<Worker>; WORKERS],
    /// Lost writes that may still be applied, with their author: a leader with its epoch, or a worker.
    pub(super) late: Part<Vec<(Author, Vec<Op>)>>,
    /// The attempts that were assigned, and to which worker.
    pub(super) given: Part<BTreeSet<(Life, u32, WorkerId)>>,
    /// The attempts that were run, and by which worker: an attempt that is taken over has a handler on each of its workers.
    pub(super) launched: Part<BTreeSet<(Life, u32, WorkerId)>>,
    /// The client that submits the job again.
    pub(super) client: Part<Client>,
    /// How many of that client's submissions were applied.
    pub(super) made: u8,
    /// Whether a minute has passed since the job's end.
    pub(super) aged: bool,
    pub(super) left: Bounds,
    pub(crate) broken: Option<Invariant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Author {
    Leader(i32),
    Worker,
    Client,
    /// A gateway, for a process that runs the attempt.
    Gateway,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// The second leader claims the epoch and begins.
    Claim,
    /// ZooKeeper serves a leader's next write, and the leader handles the reply.
    ServeLeader(usize),
    /// A leader handles a hint.
    Hint(usize),
    /// The connection breaks, after all requests in flight were served, or before.
    CutLeader {
        served: bool,
    },
    ConnectLeader,
    /// ZooKeeper serves a worker's next request.
    ServeWorker(usize),
    /// A worker handles a reply or a hint.
    Hear(usize),
    CutWorker {
        served: bool,
    },
    ConnectWorker,
    /// A session ends on the server.
    Expire,
    /// The worker learns that its session has ended.
    Learn,
    /// A handler ends with a result.
    Succeed(usize),
    Fail(usize),
    /// The grace of a signalled handler is over.
    Abort(usize),
    /// A handler renews its lease.
    Renew(usize),
    /// A leader revokes the assignments, as if their leases were over.
    Revoke(usize),
    /// A client cancels the job in its current place.
    Cancel,
    /// The current leader queues a job whose backoff is over.
    Promote(usize),
    /// A lost write is applied.
    Late(usize),
    DeleteEphemeral,
    /// A slot of a worker is free.
    Grant(usize),
    /// A leader's clock reaches the job's expiry.
    PassLeader(usize),
    /// The workers' clocks reach the job's expiry.
    PassWorkers,
    /// A client submits the job again.
    Submit,
    /// ZooKeeper serves the client's request, and the client handles the reply.
    ServeClient,
    /// The client's connection breaks, after the request was served or before.
    LoseReply {
        served: bool,
    },
    /// The client re-reads the record.
    LookBack,
    /// An operator retries a cancelled or dead job. The write may be applied at any later time.
    Retry,
    /// An operator purges a terminal job. The write may be applied at any later time.
    Purge,
    /// A leader's janitor decides to remove the record.
    Tidy(usize),
    /// A minute passes. All messages in flight have arrived, but need not be handled.
    Minute,
    /// An operator marks the first worker's registration.
    Drain,
    /// The grace of a worker's drain is over.
    EndGrace(usize),
    /// A gateway decides that this worker takes over the attempt. The write may be applied at any later time.
    TakeOver(usize),
}

invariants! { Attempts {
    Kept = "S1: a record exists until its job is terminal",
    Accepted = "S1: an accepted submission has a record",
    OneEnd = "S2: a job ends once per generation",
    Fence = "S3: a leader's write is applied only in its own epoch",
    Attempts = "S9: attempts are 1, 2, …, each closed once, for its worker, within the policy",
    Moves = "S9: a takeover keeps the attempt, and its token is the version of the record",
    Own = "S9: an attempt closes its own job, not a later job with the same id",
    OnePlace = "S1, S10: an open job is in exactly one place",
    Over = "S10: a terminal job is in no place",
    Begins = "S10, S14: a worker runs only attempts that were assigned to it",
    Once = "S9: no attempt runs twice",
    MadeOnce = "S11: a submission creates its job once",
    Expiry = "S16: no expired job is assigned by the leader's clock, or started by the worker's clock",
    Cancel = "S12: a cancelled attempt ends the job, or has succeeded",
    Truth = "S9: a worker reports an attempt as closed by itself exactly if it closed it",
    Drains = "S18: a draining worker gets no jobs, starts none once it knows, and continues to drain",
    Pause = "S5: a leader that has noticed its lost connection plans nothing",
}}

milestones! { Attempts {
    Succeeded = "a job succeeds",
    Second = "a job succeeds at its second attempt",
    Dead = "a job is dead after its losses or failures",
    ZombieRejected = "a zombie's completion is rejected",
    ZombieLate = "a lost completion is rejected because the job has changed",
    Beside = "a zombie runs at the same time as the next attempt",
    StaleAssign = "a stale leader's assignment is rejected",
    StaleRecovery = "a stale leader's recovery is rejected",
    Gone = "an assignment to a worker that has left is rejected",
    AppliedUnheard = "a close with a lost reply was applied",
    NotApplied = "a close with a lost reply was not applied",
    LateAssign = "a lost assignment is applied late",
    CancelledRunning = "a cancelled run ends its job",
    CancelledLost = "a cancelled run whose worker is lost ends its job",
    CancelTooLate = "a cancelled run succeeds",
    Promoted = "a failed job is queued again after its backoff",
    Recovered = "a lost worker's job is queued again",
    Raced = "a worker and a leader close the same attempt, and one is rejected",
    Dropped = "a worker drops the end of its own zombie",
    Removed = "a lost worker's inbox is removed",
    Revoked = "a silent worker's job is queued again",
    RenewedInTime = "a revocation is rejected because of a concurrent renewal",
    RevokedInTime = "a renewal is rejected because of a concurrent revocation",
    DoneInTime = "a revocation is rejected because of a concurrent completion",
    CancelledSilent = "a silent worker's cancelled job ends",
    Expired = "a waiting job ends because it has expired",
    Overdue = "an attempt is not started because its job has expired",
    StaleExpiry = "a stale leader's end of an expired job is rejected",
    StaleRemoval = "a stale leader's removal is rejected",
    Again = "a terminal job is opened by a submission",
    Retried = "a terminal job is opened by an operator",
    ClientTooLate = "a client's request is rejected because the job has changed",
    Deleted = "a record is removed",
    KeptAfterAll = "a removal is rejected because the job was opened or removed before",
    SubmittedAfterRemoval = "an id whose record was removed is submitted again",
    Haunted = "a run of a removed job ends while another job has its id",
    Marked = "an assignment is rejected because its worker was marked as draining",
    HandedBack = "a draining worker hands a job back",
    NotEmpty = "a worker cannot leave because of a job in its inbox",
    Retired = "a draining worker leaves",
    Moved = "an attempt that was taken over succeeds",
    MovedTooLate = "a takeover is rejected",
    LeftBehind = "a close by the former worker is rejected after a takeover",
    SaidLate = "an update of a registration is rejected because of a concurrent draining mark",
}}

impl Attempts {
    pub(crate) fn new(bounds: Bounds, expected: &'static [Milestone]) -> Self {
        Self { bounds, milestones: Milestones::expecting(expected) }
    }

    fn worker(&self, n: usize) -> Worker {
        Worker::new(worker(n), self.bounds.expires, self.bounds.drains > 0 && n == 0)
    }
}

impl State {
    fn record(&self) -> Option<JobRecord> {
        Some(View::of(&self.zk).record?.0)
    }

    /// Whether the job needs no further work.
    pub(super) fn is_over(&self) -> bool {
        self.record().is_none_or(|record| record.is_terminal())
    }

    /// Whether the other worker has an attempt that this worker never had: a worker takes over attempts only at its
    /// registration.
    pub(super) fn may_take_over(&self, n: usize) -> bool {
        let other = path::assignment(worker(1 - n), &job());
        let Some((assignment, _)) = self.zk.value::<Assignment>(&other) else { return false };
        let Some(record) = self.record() else { return false };
        !self.given.contains(&(Life::of(&record), assignment.attempt, worker(n)))
    }

    pub(super) fn can_be_retried(&self) -> bool {
        let verdict = self.record().and_then(|record| End::of(&record.state));
        verdict.is_some_and(|end| end != End::Succeeded)
    }

    /// Whether the job is terminal, all processes are connected, and no request is in flight: earlier requests are
    /// younger than a minute. Messages that have arrived need not be handled.
    pub(super) fn is_quiet(&self) -> bool {
        let over = self.record().is_some_and(|record| record.is_terminal());
        let leaders = self.leaders.iter().all(|leader| leader.up && leader.sent.is_empty());
        let workers = self.workers.iter().all(|it| !it.alive || (it.up && it.sent.is_empty()));
        over && leaders && workers && self.late.is_empty() && !self.client.is_calling()
    }
}

impl Model for Attempts {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        let mut state = State {
            zk: Part::new(stage::zookeeper(if self.bounds.lone { 1 } else { WORKERS })),
            leaders: std::array::from_fn(|_| Part::new(Leader::new())),
            workers: std::array::from_fn(|n| Part::new(self.worker(n))),
            late: Part::new(Vec::new()),
            given: Part::new(BTreeSet::new()),
            launched: Part::new(BTreeSet::new()),
            client: Part::new(Client::new(CLIENT)),
            made: 0,
            aged: false,
            left: self.bounds,
            broken: None,
        };
        let record = stage::record(0);
        if self.bounds.expires {
            // The leader may see the job late, at its expiry or before.
            self.claim(&mut state, 0);
            let record = JobRecord { expires_at: Some(WALL), ..record };
            self.commit(&mut state, Author::Client, NOBODY, &txn::submit(&job(), &record, 0));
        } else {
            self.commit(&mut state, Author::Client, NOBODY, &txn::submit(&job(), &record, 0));
            self.claim(&mut state, 0);
        }
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
        let mut properties = invariants();
        properties.push(Property::<Self>::always(
            "L3: when no automatic step is left, the job is terminal",
            |_, state| state.broken.is_some() || steps::goes_on(state) || state.is_over(),
        ));
        properties.push(Property::<Self>::always(
            "L9: when no automatic step is left, no worker drains",
            |_, state| state.broken.is_some() || !stage::drains(&state.zk) || steps::goes_on(state),
        ));
        properties.extend(self.milestones());
        properties
    }
}
