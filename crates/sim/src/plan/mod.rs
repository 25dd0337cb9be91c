//! What is going to happen: everything that the seed decides in advance, as lists that can be cut down.
//!
//! What the network does in between (delays, which of two messages comes first) is drawn while the simulation runs, from
//! the same seed. So a plan with a fault less is another run, and it is the same run each time.

mod generate;
mod shrink;

use std::fmt;
use std::ops::Range;
use std::time::Duration;

use bellwether::client::{Ended, IfExists};
use bellwether::{Group, Job};
use bellwether_actors::node::Part;
use bellwether_core::group::GroupRecord;
use bellwether_core::machine::assigner;
use bellwether_core::machine::election::campaign::Strategy;
use bellwether_core::name::{GroupId, JobId, Kind, Lane};
use bellwether_core::schedule::ScheduleRecord;
use bellwether_core::time::WallMillis;
use uuid::Uuid;

pub use self::shrink::shrink;
use crate::workload::{Generation, Wish};

/// How large simulations are; each draws its own numbers up to these.
#[derive(Debug, Clone, Copy)]
pub struct Size {
    /// Nodes, at least one.
    pub nodes: usize,
    /// Clients, at least one.
    pub clients: usize,
    /// Jobs, at least one.
    pub jobs: usize,
}

impl Default for Size {
    fn default() -> Self {
        Self { nodes: 4, clients: 3, jobs: 24 }
    }
}

/// One simulation.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where everything that is drawn while it runs comes from.
    pub seed: u64,
    /// The session timeout that all ask for.
    pub session_timeout_ms: u64,
    /// The server's tick.
    pub tick_ms: u64,
    /// How candidates are ordered.
    pub campaign: Strategy,
    /// How workers are chosen.
    pub strategy: assigner::Strategy,
    /// By how much each node's wall clock is ahead, and how many slots it has.
    pub nodes: Vec<NodePlan>,
    /// By how much each client's wall clock is ahead.
    pub clients: Vec<i64>,
    /// The jobs that clients submit: by themselves, then as members of groups.
    pub jobs: Vec<JobPlan>,
    /// The groups that clients submit. Their members are among the jobs.
    pub groups: Vec<GroupPlan>,
    /// The schedules that are there from the beginning. Their expressions name seconds of the few minutes that a
    /// simulation lasts, so that they come to an end.
    pub schedules: Vec<ScheduleRecord>,
    /// How long records are kept; without it, for ever. Longer than a client looks for what it submitted.
    pub retention_ms: Option<u64>,
    /// What clients do.
    pub actions: Vec<Action>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// When all is mended.
    pub heal_ms: u64,
}

/// A node.
#[derive(Debug, Clone, Copy)]
pub struct NodePlan {
    /// By how many milliseconds its wall clock is ahead.
    pub skew_ms: i64,
    /// How many jobs it runs at a time.
    pub slots: u32,
}

/// When a group's total is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seal {
    /// When it is made: its record has it.
    First,
    /// With the last member.
    Last,
    /// When all members are accepted.
    After,
    /// Not by this one.
    Never,
}

/// A group.
#[derive(Debug, Clone)]
pub struct GroupPlan {
    /// Its name.
    pub id: GroupId,
    /// The kind of its members.
    pub kind: Kind,
    /// Whether the first member that ends without success ends it.
    pub fail_fast: bool,
    /// Whether it has a join.
    pub join: bool,
    /// When its total is said, by a generation that comes to its end.
    pub seal: Seal,
    /// Its members, by their positions among the jobs.
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
    /// How urgent it is, 0 to 9.
    pub priority: u8,
    /// How long after its submission it may start.
    pub delay_ms: Option<u64>,
    /// How long after its submission it expires, or after it may start.
    pub expires_ms: Option<u64>,
    /// How often it may fail.
    pub max_attempts: u32,
    /// How many workers it may lose.
    pub max_losses: u32,
    /// Its backoff's first wait; the longest is four times that.
    pub backoff_ms: u64,
    /// Per attempt.
    pub timeout_ms: Option<u64>,
    /// Its lease, unless it is the ordinary one.
    pub lease_ms: Option<u64>,
    /// Whether it is renewed automatically.
    pub renews: bool,
}

/// Something that a client does.
#[derive(Debug, Clone)]
pub struct Action {
    /// When.
    pub at_ms: u64,
    /// Which client, by its position.
    pub client: usize,
    /// What.
    pub call: PlannedCall,
}

/// A call, with jobs by their positions.
#[derive(Debug, Clone)]
pub enum PlannedCall {
    /// Submits these in one round.
    Submit(Vec<usize>),
    /// Submits another job under this one's id.
    SubmitOther(usize),
    /// Submits another job under this one's id, and lets be what is there.
    SubmitIgnoring(usize),
    /// Submits this one, and opens it again if it is over.
    SubmitAgain(usize),
    /// Generates the members of this group: so many of them.
    Generate {
        /// Which.
        group: usize,
        /// Members, from the first one on.
        members: usize,
        /// Whether its total is said.
        seal: bool,
        /// How long between rounds.
        pace_ms: u64,
    },
    /// Cancels the join of this group.
    CancelJoin(usize),
    /// Opens the join of this group again.
    RetryJoin(usize),
    /// Pauses this kind for so long.
    Pause(Kind, u64),
    /// Has one of the workers drain that there are then, by its position among them.
    DrainWorker(usize),
    /// Purges the records of jobs that ended so.
    Purge(Ended),
    /// Cancels this one.
    Cancel(usize),
    /// Opens this one again.
    Retry(usize),
    /// Opens this one again as soon as it is over.
    RetryAtEnd(usize),
    /// Waits for this one's end.
    Wait(usize),
}

/// Something that goes wrong.
#[derive(Debug, Clone)]
pub struct Fault {
    /// When.
    pub at_ms: u64,
    /// What.
    pub kind: FaultKind,
}

/// Whom a fault is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// The node at this position.
    Node(usize),
    /// Whoever leads then; nobody if nobody does.
    Leader,
    /// The client at this position.
    Client(usize),
}

/// What goes wrong.
#[derive(Debug, Clone)]
pub enum FaultKind {
    /// The connection breaks, and no other is made for a while.
    Cut {
        /// Whose.
        target: Target,
        /// For how long.
        refused_ms: u64,
        /// Whether what is on its way to the server still arrives.
        requests_arrive: bool,
    },
    /// Nothing arrives for a while, in one direction or in both, and nobody is told. What was sent arrives afterwards.
    Silence {
        /// Whose.
        target: Target,
        /// For how long.
        ms: u64,
        /// To the server.
        up: bool,
        /// From the server.
        down: bool,
    },
    /// Everything takes longer for a while.
    Slow {
        /// Whose.
        target: Target,
        /// For how long.
        ms: u64,
        /// Up to so much per message.
        delay_ms: u64,
    },
    /// The connection breaks at the next write.
    LoseWrite {
        /// Whose.
        target: Target,
        /// Whether it is applied and the reply is lost, or it never arrives.
        applied: bool,
    },
    /// The connection breaks at the next transaction that a record fences (a close, a submission, a cancel, a retry), and it
    /// is applied later: also after what its client asks on the next connection. ZooKeeper does not do that to a session, and
    /// these do not rely on it. Promotions and registrations do.
    LateWrite {
        /// Whose.
        target: Target,
        /// How much later.
        ms: u64,
    },
    /// The server ends the session.
    Expire {
        /// Whose.
        target: Target,
    },
    /// The process is killed, and started again later.
    Crash {
        /// Which node.
        target: Target,
        /// How long it is down.
        down_ms: u64,
    },
    /// The process stands still.
    Freeze {
        /// Which node.
        target: Target,
        /// For how long.
        ms: u64,
    },
    /// The process is stopped gracefully, and started again later.
    Drain {
        /// Which node.
        target: Target,
        /// For what runs.
        grace_ms: u64,
        /// How long it is down afterwards.
        down_ms: u64,
    },
    /// An actor of the worker dies.
    ChildDies {
        /// Of which node.
        target: Target,
    },
    /// An actor of the leader wing dies.
    MemberDies,
    /// A part of a node dies.
    PartDies {
        /// Of which node.
        target: Target,
        /// Which part.
        part: Part,
    },
    /// A part of a node handles no message for a while.
    PartStalls {
        /// Of which node.
        target: Target,
        /// Which part.
        part: Part,
        /// For how long.
        ms: u64,
    },
    /// The server is killed, and started again later with all that it had.
    ServerRestart {
        /// How long it is down.
        down_ms: u64,
    },
}

impl FaultKind {
    /// What it is called, for counting.
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
            Self::ServerRestart { .. } => "server-restart",
        }
    }
}

impl GroupPlan {
    /// The id of its join, whether it has one or not.
    pub(crate) fn join_id(&self) -> JobId {
        let record = GroupRecord::new(self.kind.clone(), Uuid::nil(), WallMillis(0));
        record.join_id(&self.id).expect("short names")
    }

    /// As it is submitted: its first members. Without a seal somebody was stopped on the way.
    pub(crate) fn generation(
        &self,
        jobs: &[JobPlan],
        members: usize,
        seal: bool,
        pace_ms: u64,
    ) -> Generation {
        let seal = if seal || self.seal == Seal::First { self.seal } else { Seal::Never };
        let all = &jobs[self.members.clone()];
        let mut group = Group::new(self.kind.as_str(), self.id.as_str()).expect("short names");
        if seal == Seal::First {
            group = group.total(u32::try_from(all.len()).expect("few members"));
        }
        if self.fail_fast {
            group = group.fail_fast();
        }
        if !self.join {
            group = group.without_join();
        }
        let members = all.iter().take(members).map(|job| job.wish(false, IfExists::Same)).collect();
        Generation { group, members, seal, pace: Duration::from_millis(pace_ms) }
    }
}

impl JobPlan {
    /// As it is submitted; `other` is another job under the same id.
    pub(crate) fn wish(&self, other: bool, if_exists: IfExists) -> Wish {
        let text = if other { format!("{} of another", self.id) } else { format!("{} as planned", self.id) };
        let initial = Duration::from_millis(self.backoff_ms);
        let mut job = Job::new(self.kind.as_str(), &text)
            .expect("a short text")
            .if_exists(if_exists)
            .priority(self.priority)
            .max_attempts(self.max_attempts)
            .max_losses(self.max_losses)
            .backoff(initial, initial * 4)
            .renew_lease_automatically(self.renews);
        // What is opened again is not put off: the client refuses that.
        let delay = self.delay_ms.filter(|_| if_exists != IfExists::Again);
        if let Some(delay) = delay {
            job = job.delay(Duration::from_millis(delay));
        }
        if let Some(expires) = self.expires_ms {
            // The client refuses what would expire before it may start.
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
        Wish::new(self.kind.clone(), self.lane.clone(), &text, job)
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "seed {}: {:?}, {:?}, session timeout {} ms, tick {} ms, healed at {} ms",
            self.seed, self.campaign, self.strategy, self.session_timeout_ms, self.tick_ms, self.heal_ms
        )?;
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
        }
        for GroupPlan { id, kind, fail_fast, join, seal, members } in &self.groups {
            let (fails, joins) =
                (if *fail_fast { ", fails fast" } else { "" }, if *join { ", joins" } else { "" });
            writeln!(f, "  group {id}: {} of {kind}, total {seal:?}{fails}{joins}", members.len())?;
        }
        for (at, node) in self.nodes.iter().enumerate() {
            writeln!(f, "  n{at}: {} slots, clock {:+} ms", node.slots, node.skew_ms)?;
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
                        format!("{} ({}{lane}, p{}{delay}{expiry})", job.id, job.kind, job.priority)
                    };
                    format!("submits {}", jobs.iter().map(told).collect::<Vec<_>>().join(", "))
                }
                PlannedCall::SubmitOther(job) => format!("submits another {}", name(job)),
                PlannedCall::SubmitIgnoring(job) => {
                    format!("submits another {}, ignoring what is there", name(job))
                }
                PlannedCall::SubmitAgain(job) => format!("submits {} again", name(job)),
                PlannedCall::Generate { group, members, seal, .. } => {
                    let group = &self.groups[*group].id;
                    let seal = if *seal { "" } else { ", and is stopped" };
                    format!("generates {members} members of {group}{seal}")
                }
                PlannedCall::CancelJoin(group) => format!("cancels {}", self.groups[*group].join_id()),
                PlannedCall::RetryJoin(group) => format!("retries {}", self.groups[*group].join_id()),
                PlannedCall::Pause(kind, ms) => format!("pauses {kind} for {ms} ms"),
                PlannedCall::DrainWorker(which) => format!("has worker {which} of those there drain"),
                PlannedCall::Purge(ended) => format!("purges what ended as {ended:?}"),
                PlannedCall::Cancel(job) => format!("cancels {}", name(job)),
                PlannedCall::Retry(job) => format!("retries {}", name(job)),
                PlannedCall::RetryAtEnd(job) => format!("retries {} as soon as it is over", name(job)),
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
