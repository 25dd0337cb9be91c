//! The states, the steps between them, and what must hold.

use std::collections::BTreeSet;

use bellwether_core::group::End;
use bellwether_core::job::JobRecord;
use bellwether_core::name::WorkerId;
use bellwether_core::txn::{self, Op};
use stateright::{Model, Property};

use super::client::Client;
use super::law::{Life, View};
use super::leader::Leader;
use super::stage::{self, NOBODY, WALL, job, worker};
use super::steps;
use super::worker::Worker;
use crate::explore::{Sights, laws, sights};
use crate::part::Part;
use crate::zookeeper::ZooKeeper;

/// The token of who submits the job again.
pub(super) const CLIENT: u128 = 7;

const LEADERS: usize = 2;
const WORKERS: usize = 2;

/// How often what may happen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Bounds {
    /// There is one worker only.
    pub(crate) lone: bool,
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
    /// The job expires: each leader's clock, and that of the workers, comes to that at any time.
    pub(crate) expires: bool,
    /// A client submits the job again, to have it opened if it is over.
    pub(crate) submissions: u8,
    /// It does so only once the record was removed.
    pub(crate) anew: bool,
    /// The reply to that is lost.
    pub(crate) lost_replies: u8,
    /// An operator retries the job.
    pub(crate) retries: u8,
    /// A minute passes after the job's end.
    pub(crate) minutes: u8,
    /// A leader's janitor removes the job's record.
    pub(crate) tidies: u8,
    /// An operator purges it.
    pub(crate) purges: u8,
    /// An operator has the first worker drain.
    pub(crate) drains: u8,
}

pub(crate) struct Attempts {
    pub(super) bounds: Bounds,
    sights: Sights<Sight>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct State {
    pub(super) zk: Part<ZooKeeper>,
    pub(super) leaders: [Part<Leader>; LEADERS],
    pub(super) workers: [Part<Worker>; WORKERS],
    /// Writes that were lost on the way, and may be applied yet: by a leader under this epoch, or by a worker.
    pub(super) late: Part<Vec<(Author, Vec<Op>)>>,
    /// Who was given which attempt.
    pub(super) given: Part<BTreeSet<(Life, u32, WorkerId)>>,
    /// Which attempts were run.
    pub(super) launched: Part<BTreeSet<(Life, u32)>>,
    /// Who submits the job again.
    pub(super) client: Part<Client>,
    /// How often what that client sent was applied.
    pub(super) made: u8,
    /// A minute has passed since the job's end.
    pub(super) aged: bool,
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
    /// A slot of a worker is free.
    Grant(usize),
    /// A leader's clock comes to the job's expiry.
    PassLeader(usize),
    /// The workers' clocks do.
    PassWorkers,
    /// A client submits the job again.
    Submit,
    /// ZooKeeper takes what the client sent, which hears of it.
    ServeClient,
    /// The client's connection breaks, after that or before.
    LoseReply {
        served: bool,
    },
    /// The client looks what became of it.
    LookBack,
    /// An operator retries what is cancelled or dead. It is applied at any later time.
    Retry,
    /// An operator purges what is over. The same.
    Purge,
    /// A leader's janitor finds that the record is to be removed.
    Tidy(usize),
    /// A minute passes, and all that is on its way has arrived, but not been heard.
    Minute,
    /// An operator marks the first worker's registration.
    Drain,
    /// The grace of a worker's drain is over.
    EndGrace(usize),
}

laws! { Attempts {
    Kept = "S1: a record stays until its job is over",
    Accepted = "S1: who was told that a submission was accepted finds the record",
    OneEnd = "S2: a job ends once, and only a new generation goes on",
    Fence = "S3: what a leader writes is applied while its epoch is the present one, or not at all",
    Attempts = "S9: attempts are 1, 2, …, each closed once, for the worker that had it, within the bounds",
    Own = "S9: an attempt closes the job that it was of, not one that has its id now",
    OnePlace = "S1, S10: an open job is in exactly one place",
    Over = "S10: a job that is over is in no place",
    Begins = "S10, S14: a run is of an attempt that was given to this very worker",
    Once = "S9: no attempt runs twice",
    MadeOnce = "S11: a submission makes its job once",
    Expiry = "S16: nothing is assigned that has expired by its leader's clock, or begins that has by its worker's",
    Cancel = "S12: an attempt that a client cancelled ends the job, or has succeeded",
    Truth = "S9: a worker believes that it closed an attempt if it did, and only then",
    Drains = "S18: a worker that drains gets nothing, begins nothing once it knows, and drains on",
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
    Expired = "a job that waits ends because it has expired",
    Overdue = "an attempt is not begun because its job has expired",
    StaleExpiry = "a stale leader's end of a job that has expired is rejected",
    StaleRemoval = "a stale leader's removal is rejected",
    Again = "a job that was over is opened by a submission",
    Retried = "a job that was over is opened by an operator",
    ClientTooLate = "what a client sent is rejected, because the job has moved on",
    Deleted = "a record is removed",
    KeptAfterAll = "a removal is rejected, because the job was opened or removed before",
    Anew = "an id whose record was removed is submitted again",
    Haunted = "a run of a removed job ends while another has its id",
    Marked = "an assignment to a worker that was told to drain meanwhile is rejected",
    HandedBack = "a worker that drains hands a job back",
    NotEmpty = "a worker that is about to leave is stopped by a job in its inbox",
    Retired = "a worker that drains leaves",
    SaidLate = "what a worker offers is rejected, because it was told to drain meanwhile",
}}

impl Attempts {
    pub(crate) fn new(bounds: Bounds, expected: &'static [Sight]) -> Self {
        Self { bounds, sights: Sights::expecting(expected) }
    }

    fn worker(&self, n: usize) -> Worker {
        Worker::new(worker(n), self.bounds.expires, self.bounds.drains > 0 && n == 0)
    }
}

impl State {
    fn record(&self) -> Option<JobRecord> {
        Some(View::of(&self.zk).record?.0)
    }

    /// Nothing of it is to be done.
    pub(super) fn is_over(&self) -> bool {
        self.record().is_none_or(|record| record.is_terminal())
    }

    pub(super) fn can_be_retried(&self) -> bool {
        let verdict = self.record().and_then(|record| End::of(&record.state));
        verdict.is_some_and(|end| end != End::Succeeded)
    }

    /// The job is over, everybody is connected, and nothing is on its way: what was sent before is younger than a
    /// minute. What has arrived need not have been heard.
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
            // Its leader hears of it when it likes, at its expiry or before.
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
        let mut properties = laws();
        properties.push(Property::<Self>::always(
            "L3: where nothing more comes of itself, the job is over",
            |_, state| state.broken.is_some() || steps::goes_on(state) || state.is_over(),
        ));
        properties.push(Property::<Self>::always(
            "L9: where nothing more comes of itself, no worker drains",
            |_, state| state.broken.is_some() || !stage::drains(&state.zk) || steps::goes_on(state),
        ));
        properties.extend(self.sights());
        properties
    }
}
