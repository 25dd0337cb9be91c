//! The plan of a simulation: everything that the seed decides in advance, as lists that can be shortened.
//!
//! The behaviour of the network (delays, the order of two messages) is drawn while the simulation runs, from the same
//! seed. So a plan with one fault less gives another run, but always the same one.

mod generate;
mod shrink;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use bellwether::client::{Ended, IfExists};
use bellwether::{Group, Job};
use bellwether_actors::node::Part;
use bellwether_core::backoff::Backoff;
use bellwether_core::group::GroupRecord;
use bellwether_core::job::{Payload, Policy};
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::name::{GroupId, JobId, Kind, Lane, StrategyName, Tag};
use bellwether_core::schedule::ScheduleRecord;
use bellwether_core::segment::SegmentId;
use bellwether_core::time::WallMillis;
use uuid::Uuid;

pub use self::shrink::shrink;
use crate::workload::{Generation, Wish};

/// Upper limits of a simulation. Each plan draws its own numbers up to these.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Nodes, at least one.
    pub nodes: usize,
    /// Clients, at least one.
    pub clients: usize,
    /// Jobs, at least one.
    pub jobs: usize,
    /// The ZooKeeper servers.
    pub servers: Servers,
}

/// The ZooKeeper servers of simulations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Servers {
    /// One server.
    One,
    /// An ensemble of three.
    Three,
    /// Half of the plans have one server, the others an ensemble.
    Drawn,
}

impl Default for Size {
    fn default() -> Self {
        Self { nodes: 4, clients: 3, jobs: 24, servers: Servers::One }
    }
}

/// The plan of one simulation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Seed of everything that is drawn while the simulation runs.
    pub seed: u64,
    /// The session timeout that every client asks for.
    pub session_timeout_ms: u64,
    /// The server's `tickTime`.
    pub tick_ms: u64,
    /// For an ensemble: how many ticks a server answers without hearing from its leader, ZooKeeper's `syncLimit`. `None`
    /// for a single server.
    pub sync_limit: Option<u64>,
    /// The election strategy.
    pub campaign: Strategy,
    /// The nodes.
    pub nodes: Vec<NodePlan>,
    /// Each client's wall-clock offset in milliseconds; positive is ahead.
    pub clients: Vec<i64>,
    /// The jobs that clients submit: first the single jobs, then the members of groups.
    pub jobs: Vec<JobPlan>,
    /// The groups that clients submit. Their members are in `jobs`.
    pub groups: Vec<GroupPlan>,
    /// The schedules that exist from the start. Their expressions name seconds of the few minutes that a simulation
    /// lasts, so that they end.
    pub schedules: Vec<ScheduleRecord>,
    /// How long records are kept; `None` keeps them without limit. Longer than the time for which a client looks for
    /// its submission.
    pub retention_ms: Option<u64>,
    /// The calls of the clients.
    pub actions: Vec<Action>,
    /// The faults.
    pub faults: Vec<Fault>,
    /// The time at which all faults are healed.
    pub heal_ms: u64,
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub struct NodePlan {
    /// Offset of its wall clock in milliseconds; positive is ahead.
    pub skew_ms: i64,
    /// Number of jobs that it runs at a time.
    pub slots: u32,
    /// Whether its worker has the tag of [`JobPlan::tagged`].
    pub tagged: bool,
}

/// The only tag of simulations.
const TAG: &str = "big";

/// Returns the tags of a worker.
pub(crate) fn tags(tagged: bool) -> Vec<Tag> {
    tagged.then(|| Tag::new(TAG).expect("letters")).into_iter().collect()
}

/// When the total of a group is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// At creation: the group's record has it.
    First,
    /// With the last member.
    Last,
    /// After all members are accepted.
    After,
    /// Not by this client.
    Never,
}

/// A group.
#[derive(Debug, Clone)]
pub struct GroupPlan {
    /// Its name.
    pub id: GroupId,
    /// The kind of its members.
    pub kind: Kind,
    /// Whether the first member that does not succeed ends the group.
    pub fail_fast: bool,
    /// Whether the group has a join.
    pub join: bool,
    /// When the total is set, by a client that submits all members.
    pub seal: Seal,
    /// The members, as positions in [`Plan::jobs`].
    pub members: Range<usize>,
}

/// A job.
#[derive(Debug, Clone)]
pub struct JobPlan {
    /// Its name.
    pub id: JobId,
    /// Its kind.
    pub kind: Kind,
    /// Its lane.
    pub lane: Option<Lane>,
    /// Its priority, 0 to 9.
    pub priority: u8,
    /// Delay from submission until it may start.
    pub delay_ms: Option<u64>,
    /// Time from submission, or from the start time of a delayed job, until it expires.
    pub expires_ms: Option<u64>,
    /// Maximum number of attempts that fail.
    pub max_attempts: u32,
    /// Maximum number of lost workers.
    pub max_losses: u32,
    /// Initial backoff. The maximum is four times this.
    pub backoff_ms: u64,
    /// Timeout of each attempt.
    pub timeout_ms: Option<u64>,
    /// Lease; `None` is the default lease.
    pub lease_ms: Option<u64>,
    /// Whether the lease is renewed automatically.
    pub renews: bool,
    /// Whether its death creates a dead-letter job.
    pub dead_letter: bool,
    /// Whether only a worker with the tag may run it.
    pub tagged: bool,
}

/// A call of a client.
#[derive(Debug, Clone)]
pub struct Action {
    /// When the client makes it.
    pub at_ms: u64,
    /// Position of the client.
    pub client: usize,
    /// The call.
    pub call: PlannedCall,
}

/// A call. Jobs and groups are given by their positions.
#[derive(Debug, Clone)]
pub enum PlannedCall {
    /// Submits these jobs in one round.
    Submit(Vec<usize>),
    /// Submits these jobs as the members of this segment.
    SubmitPacked(SegmentId, Range<usize>),
    /// Submits a different job under this job's id.
    SubmitOther(usize),
    /// Submits a different job under this job's id, with [`IfExists::Ignore`].
    SubmitIgnoring(usize),
    /// Submits this job again, with [`IfExists::Again`]: a terminal job starts a new generation.
    SubmitAgain(usize),
    /// Submits the first members of a group.
    Generate {
        /// Position of the group.
        group: usize,
        /// Number of members.
        members: usize,
        /// Whether the total is set.
        seal: bool,
        /// Pause between rounds.
        pace_ms: u64,
    },
    /// Cancels the join of this group.
    CancelJoin(usize),
    /// Retries the join of this group.
    RetryJoin(usize),
    /// Pauses this kind for this many milliseconds.
    Pause(Kind, u64),
    /// Sets the placement strategy.
    SetStrategy(StrategyName),
    /// Changes a worker that exists at this time, by its position among them, and undoes that after this many
    /// milliseconds.
    SetWorker {
        /// The position.
        which: usize,
        /// The number of slots.
        slots: Option<u32>,
        /// Whether it has the tag.
        tagged: Option<bool>,
        /// A kind to pause.
        paused: Option<Kind>,
        /// The time until it is undone.
        ms: u64,
    },
    /// Undoes all changes of workers, repeatedly.
    ResetWorkers,
    /// Drains one of the workers that exist at this time, by its position among them.
    DrainWorker(usize),
    /// Purges the records of jobs that ended this way.
    Purge(Ended),
    /// Cancels this job.
    Cancel(usize),
    /// Retries this job.
    Retry(usize),
    /// Retries this job as soon as it is terminal.
    RetryAtEnd(usize),
    /// Waits until this job is terminal.
    Wait(usize),
}

/// A fault.
#[derive(Debug, Clone)]
pub struct Fault {
    /// When it happens.
    pub at_ms: u64,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// The target of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The node at this position.
    Node(usize),
    /// The leader at that time. Without a leader the fault has no effect.
    Leader,
    /// The client at this position.
    Client(usize),
}

/// A server of an ensemble.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Server {
    /// The one at this position.
    At(usize),
    /// The leader at that time.
    Leading,
    /// The first (0) or the second (1) follower at that time.
    Following(usize),
}

/// The kind of a fault.
#[derive(Debug, Clone)]
pub enum FaultKind {
    /// The connection breaks, and new connections are refused for a while.
    Cut {
        /// The target.
        target: Target,
        /// How long connections are refused.
        refused_ms: u64,
        /// Whether requests in flight still arrive.
        requests_arrive: bool,
    },
    /// Nothing arrives for a while, in one or both directions, without an error. The frames arrive afterwards.
    Silence {
        /// The target.
        target: Target,
        /// Duration.
        ms: u64,
        /// Whether frames to the server are held.
        up: bool,
        /// Whether frames from the server are held.
        down: bool,
    },
    /// Frames are slow for a while.
    Slow {
        /// The target.
        target: Target,
        /// Duration.
        ms: u64,
        /// Maximum delay per frame.
        delay_ms: u64,
    },
    /// The connection breaks at the next write.
    LoseWrite {
        /// The target.
        target: Target,
        /// `true`: the write is applied and its reply is lost. `false`: the write never arrives.
        applied: bool,
    },
    /// The connection breaks at the next transaction that a record fences (a close, a submission, a cancel, a retry),
    /// and the write is applied later, possibly after the client's requests on its next connection. ZooKeeper does not
    /// do that within a session, and these transactions do not rely on it. Promotions and registrations do.
    LateWrite {
        /// The target.
        target: Target,
        /// How much later it is applied.
        ms: u64,
    },
    /// The server ends the session.
    Expire {
        /// The target.
        target: Target,
    },
    /// The process is killed, and restarted later.
    Crash {
        /// The node.
        target: Target,
        /// How long it is down.
        down_ms: u64,
    },
    /// The process is frozen.
    Freeze {
        /// The node.
        target: Target,
        /// Duration.
        ms: u64,
    },
    /// The process is stopped gracefully, and restarted later.
    Drain {
        /// The node.
        target: Target,
        /// Grace period of running attempts.
        grace_ms: u64,
        /// How long it is down afterwards.
        down_ms: u64,
    },
    /// An actor of the worker dies.
    ChildDies {
        /// The node.
        target: Target,
    },
    /// An actor of the leader wing dies.
    MemberDies,
    /// A part of a node dies.
    PartDies {
        /// The node.
        target: Target,
        /// The part.
        part: Part,
    },
    /// A part of a node handles no message for a while.
    PartStalls {
        /// The node.
        target: Target,
        /// The part.
        part: Part,
        /// Duration.
        ms: u64,
    },
    /// The runtime of a node hangs: no part handles a message for a while, but the client library keeps the session alive.
    Hang {
        /// The node.
        target: Target,
        /// Duration.
        ms: u64,
    },
    /// A server of an ensemble is cut off from the other servers, but not from its clients.
    ServerCutOff {
        /// The server.
        which: Server,
        /// Duration.
        ms: u64,
    },
    /// A server of an ensemble receives the leader's messages late.
    ServerLags {
        /// The server.
        which: Server,
        /// Duration.
        ms: u64,
        /// Maximum delay per message.
        delay_ms: u64,
    },
    /// A server of an ensemble is killed, and restarted later.
    ServerDies {
        /// The server.
        which: Server,
        /// How long it is down.
        down_ms: u64,
    },
    /// Every server is killed, and restarted later with all its data.
    ServerRestart {
        /// How long it is down.
        down_ms: u64,
    },
}

impl FaultKind {
    /// Returns the name under which the fault is counted.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Cut { .. } => "cut",
            Self::Silence { .. } => "silence",
            Self::Slow { .. } => "slow",
            Self::LoseWrite { applied: true, .. } => "reply-lost",
            Self::LoseWrite { applied: false, .. } => "write-lost",
            Self::LateWrite { .. } => "late-write",
            Self::Expire { .. } => "expire",
            Self::Crash { .. } => "crash",
            Self::Freeze { .. } => "freeze",
            Self::Drain { .. } => "drain",
            Self::ChildDies { .. } => "child-dies",
            Self::MemberDies => "member-dies",
            Self::PartDies { part: Part::Session, .. } => "session-dies",
            Self::PartDies { part: Part::Election, .. } => "election-dies",
            Self::PartDies { part: Part::LeaderWing, .. } => "leader-wing-dies",
            Self::PartDies { part: Part::WorkerWing, .. } => "worker-wing-dies",
            Self::PartStalls { part: Part::Session, .. } => "session-stalls",
            Self::PartStalls { part: Part::Election, .. } => "election-stalls",
            Self::PartStalls { part: Part::LeaderWing, .. } => "leader-wing-stalls",
            Self::PartStalls { part: Part::WorkerWing, .. } => "worker-wing-stalls",
            Self::Hang { .. } => "hang",
            Self::ServerCutOff { .. } => "server-cut-off",
            Self::ServerLags { .. } => "server-lags",
            Self::ServerDies { .. } => "server-dies",
            Self::ServerRestart { .. } => "server-restart",
        }
    }
}

impl GroupPlan {
    /// Returns the id of the group's join, whether the group has one or not.
    pub(crate) fn join_id(&self) -> JobId {
        let record = GroupRecord::new(self.kind.clone(), Uuid::nil(), WallMillis(0));
        record.join_id(&self.id).expect("short names")
    }

    /// Returns one submission of the group: its first members. Without a seal the client stops before the end.
    pub(crate) fn generation(
        &self,
        jobs: &[JobPlan],
        members: usize,
        seal: bool,
        pace_ms: u64,
    ) -> Generation {
        let seal = if seal || self.seal == Seal::First { self.seal } else { Seal::Never };
        let all = &jobs[self.members.clone()];
        let group = Group::new(self.kind.as_str(), self.id.as_str());
        let mut group = group.fail_fast(self.fail_fast).join(self.join);
        if seal == Seal::First {
            group = group.total(u32::try_from(all.len()).expect("few members"));
        }
        let members = all.iter().take(members).map(|job| job.wish(false, IfExists::Same)).collect();
        Generation { group, members, seal, pace: Duration::from_millis(pace_ms) }
    }
}

impl JobPlan {
    fn text(&self) -> String {
        format!("{} as planned", self.id)
    }

    /// The payload of its submissions.
    pub(crate) fn payload(&self) -> Payload {
        // The text needs no escapes.
        Payload::json(format!("\"{}\"", self.text()).into_bytes()).expect("a short text")
    }

    /// Its limits, as its submissions have them.
    pub(crate) fn policy(&self) -> Policy {
        let initial = Duration::from_millis(self.backoff_ms);
        Policy {
            max_attempts: self.max_attempts,
            max_losses: self.max_losses,
            backoff: Backoff { initial, max: initial * 4 },
            auto_renew: Some(self.renews),
            ..Policy::default()
        }
    }

    /// Returns one submission of the job; with `other`, of a different job under the same id.
    pub(crate) fn wish(&self, other: bool, if_exists: IfExists) -> Wish {
        let text = if other { format!("{} of another", self.id) } else { self.text() };
        let initial = Duration::from_millis(self.backoff_ms);
        let mut job = Job::new(self.kind.as_str(), &text)
            .if_exists(if_exists)
            .priority(self.priority)
            .max_attempts(self.max_attempts)
            .max_losses(self.max_losses)
            .backoff(initial, initial * 4)
            .auto_renew(self.renews)
            .dead_letter(self.dead_letter);
        // The client rejects a delay with [`IfExists::Again`].
        let delay = self.delay_ms.filter(|_| if_exists != IfExists::Again);
        if let Some(delay) = delay {
            job = job.delay(Duration::from_millis(delay));
        }
        if let Some(expires) = self.expires_ms {
            // The client rejects an expiry before the start time.
            job = job.expires_in(Duration::from_millis(delay.unwrap_or(0) + expires));
        }
        if let Some(timeout) = self.timeout_ms {
            job = job.timeout(Duration::from_millis(timeout));
        }
        if let Some(lease) = self.lease_ms {
            job = job.lease(Duration::from_millis(lease));
        }
        if let Some(lane) = &self.lane {
            job = job.lane(lane.as_str());
        }
        if self.tagged {
            job = job.tags([TAG]);
        }
        Wish::new(self.kind.clone(), self.lane.clone(), &text, job)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {:?}, session timeout {} ms, tick {} ms, healed at {} ms",
            self.seed, self.campaign, self.session_timeout_ms, self.tick_ms, self.heal_ms
        )?;
        if let Some(limit) = self.sync_limit {
            writeln!(f, "  an ensemble of three servers, syncLimit {limit}")?;
        }
        if let Some(retention_ms) = self.retention_ms {
            writeln!(f, "  records are kept for {retention_ms} ms")?;
        }
        for (at, schedule) in self.schedules.iter().enumerate() {
            let spec = &schedule.spec;
            let (when, misfire, overlap, kind) =
                (&spec.when, spec.misfire, spec.overlap, &spec.template.kind);
            writeln!(
                f,
                "  schedule s{at}: {when}, {misfire:?}, {overlap:?}, grace {:?}, {kind}",
                spec.grace
            )?;
            if let Some(job) = &spec.template.job_id {
                writeln!(f, "    as job {job}")?;
            }
        }
        for GroupPlan { id, kind, fail_fast, join, seal, members } in &self.groups {
            let (fails, joins) =
                (if *fail_fast { ", fail-fast" } else { "" }, if *join { ", join" } else { "" });
            writeln!(f, "  group {id}: {} of {kind}, total {seal:?}{fails}{joins}", members.len())?;
        }
        for (at, node) in self.nodes.iter().enumerate() {
            let tag = if node.tagged { ", tagged" } else { "" };
            writeln!(f, "  n{at}: {} slots, clock {:+} ms{tag}", node.slots, node.skew_ms)?;
        }
        for action in &self.actions {
            let name = |at: &usize| self.jobs[*at].id.to_string();
            let call = match &action.call {
                PlannedCall::Submit(jobs) => {
                    let told = |at: &usize| {
                        let job = &self.jobs[*at];
                        let lane = job.lane.as_ref().map_or(String::new(), |lane| format!(" in {lane}"));
                        let delay = job.delay_ms.map_or(String::new(), |ms| format!(" in {ms} ms"));
                        let expiry = job.expires_ms.map_or(String::new(), |ms| format!(" within {ms} ms"));
                        let tag = if job.tagged { ", tagged" } else { "" };
                        format!("{} ({}{lane}, p{}{delay}{expiry}{tag})", job.id, job.kind, job.priority)
                    };
                    format!("submits {}", jobs.iter().map(told).collect::<Vec<_>>().join(", "))
                }
                PlannedCall::SubmitPacked(id, jobs) => {
                    format!("submits {} jobs of {} as {id}", jobs.len(), self.jobs[jobs.start].kind)
                }
                PlannedCall::SubmitOther(job) => format!("submits another {}", name(job)),
                PlannedCall::SubmitIgnoring(job) => {
                    format!("submits another {}, ignoring an existing one", name(job))
                }
                PlannedCall::SubmitAgain(job) => format!("submits {} again", name(job)),
                PlannedCall::Generate { group, members, seal, .. } => {
                    let group = &self.groups[*group].id;
                    let seal = if *seal { "" } else { ", and stops before the end" };
                    format!("generates {members} members of {group}{seal}")
                }
                PlannedCall::CancelJoin(group) => format!("cancels {}", self.groups[*group].join_id()),
                PlannedCall::RetryJoin(group) => format!("retries {}", self.groups[*group].join_id()),
                PlannedCall::Pause(kind, ms) => format!("pauses {kind} for {ms} ms"),
                PlannedCall::SetWorker { which, slots, tagged, paused, ms } => format!(
                    "sets worker {which} of the live ones for {ms} ms: slots {slots:?}, tagged {tagged:?}, paused {paused:?}"
                ),
                PlannedCall::ResetWorkers => "resets all workers".to_owned(),
                PlannedCall::SetStrategy(strategy) => format!("sets the strategy {strategy}"),
                PlannedCall::DrainWorker(which) => format!("drains worker {which} of the live ones"),
                PlannedCall::Purge(ended) => format!("purges jobs that ended as {ended:?}"),
                PlannedCall::Cancel(job) => format!("cancels {}", name(job)),
                PlannedCall::Retry(job) => format!("retries {}", name(job)),
                PlannedCall::RetryAtEnd(job) => format!("retries {} as soon as it is terminal", name(job)),
                PlannedCall::Wait(job) => format!("waits for {}", name(job)),
            };
            writeln!(f, "  {:>7} ms  c{} {call}", action.at_ms, action.client)?;
        }
        for fault in &self.faults {
            writeln!(f, "  {:>7} ms  {:?}", fault.at_ms, fault.kind)?;
        }
        Ok(())
    }
}
