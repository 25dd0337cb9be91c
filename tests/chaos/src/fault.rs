//! The faults of `docs/invariants.md` that can be injected on one machine.
//!
//! | left out | reason |
//! | --- | --- |
//! | full disk of ZooKeeper or of a node | needs a file system and privileges; the keeper's own tests cover it; nodes write no files |
//! | clock jump, DST | the run cannot set the machine's clock, and safety does not depend on it |
//! | hostile HTTP | no node of the run is a gateway; `crates/server/tests/http` covers it |
//! | an actor killed or panicking at a message | needs injection inside the process; `tests/actors` covers it |

use std::fmt;
use std::time::Duration;

use bellwether_testkit::{Cut, Direction, Request};

use crate::servers::Kind;
use crate::step;

/// The session timeout of nodes, unless the run has another one: short, so that a run has many faults.
pub(crate) const SESSION: Duration = Duration::from_millis(1_500);

/// The target of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The leading node or server.
    Leader,
    /// Another node or server.
    Other,
}

/// A transaction at which a leader is killed or whose reply is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Submit,
    Claim,
    Assign,
    Close,
    Recover,
    Promote,
    /// The transition of a group from one stage to the next.
    Join,
}

/// Before or after the transaction commits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum When {
    Before,
    After,
}

/// The data with which a record is overwritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Garbage {
    Random,
    Truncated,
    Future,
}

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    Killed(Target),
    KilledAt(Step, When),
    /// The duration is in tenths of the session timeout.
    Frozen(Target, u32),
    Drained(Target),
    /// An operator drains the worker; its node continues without it.
    WorkerDrained,
    Poison,
    Hang,
    Cut(Cut),
    Refused,
    BlackHole(Direction),
    /// Delay in milliseconds in each direction.
    Slow(u64),
    Flapping,
    LostReply(Step),
    LateRequests,
    EventsLost,
    EventsLate,
    StaleWrite,
    Expired(Target),
    ServerKilled(Target),
    ServerFrozen(Target),
    /// A member is cut off from the others, but not from its clients.
    ServerCutOff(Target),
    /// A following member applies transactions late.
    ServerLags,
    MajorityDown,
    AllServersKilled,
    AllServersFrozen,
    CandidateDeleted,
    WorkerDeleted,
    WorkersParentDeleted,
    EpochDeleted,
    Overwritten(Garbage),
    Oversize,
    ClientKilled,
}

impl Step {
    pub(crate) fn matches(self) -> fn(&Request<'_>) -> bool {
        match self {
            Self::Submit => step::submit,
            Self::Claim => step::claim,
            Self::Assign => step::assign,
            Self::Close => step::close,
            Self::Recover => step::recover,
            Self::Promote => step::promote,
            Self::Join => step::join,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Submit => "submit",
            Self::Claim => "claim",
            Self::Assign => "assign",
            Self::Close => "close",
            Self::Recover => "recover",
            Self::Promote => "promote",
            Self::Join => "join",
        }
    }
}

impl Fault {
    /// Returns all faults that are possible with these servers.
    pub(crate) fn all(servers: Kind) -> Vec<Self> {
        use Target::{Leader, Other};
        let mut all = vec![Self::Killed(Leader), Self::Killed(Other)];
        for step in [Step::Claim, Step::Assign, Step::Recover, Step::Promote, Step::Join] {
            all.extend([When::Before, When::After].map(|when| Self::KilledAt(step, when)));
        }
        for tenths in [3, 9, 11, 30] {
            all.extend([Leader, Other].map(|target| Self::Frozen(target, tenths)));
        }
        all.extend([Leader, Other].map(Self::Drained));
        all.push(Self::WorkerDrained);
        all.extend([Self::Poison, Self::Hang]);
        all.extend([Cut::Fin, Cut::Reset, Cut::Silence].map(Self::Cut));
        all.push(Self::Refused);
        all.extend([Direction::Both, Direction::ToServer, Direction::ToClient].map(Self::BlackHole));
        // 50 ms, and round trips of a third and of nine tenths of the usual session timeout.
        all.extend([25, 250, 675].map(Self::Slow));
        all.push(Self::Flapping);
        all.extend([Step::Submit, Step::Assign, Step::Close, Step::Join].map(Self::LostReply));
        all.extend([Self::LateRequests, Self::EventsLost, Self::EventsLate, Self::StaleWrite]);
        all.extend([Leader, Other].map(Self::Expired));
        all.extend([Self::AllServersKilled, Self::AllServersFrozen]);
        if servers == Kind::Ensemble {
            all.extend([Leader, Other].map(Self::ServerKilled));
            all.extend([Leader, Other].map(Self::ServerFrozen));
            all.extend([Leader, Other].map(Self::ServerCutOff));
            all.extend([Self::ServerLags, Self::MajorityDown]);
        }
        all.extend([Self::CandidateDeleted, Self::WorkerDeleted, Self::WorkersParentDeleted]);
        all.push(Self::EpochDeleted);
        all.extend([Garbage::Random, Garbage::Truncated, Garbage::Future].map(Self::Overwritten));
        all.extend([Self::Oversize, Self::ClientKilled]);
        all
    }
}

impl Fault {
    /// Returns whether an operator takes the leadership from a node that cannot know it, by deleting its candidate or
    /// the epoch. Two nodes may then report for a moment that they lead: S5 makes no promise in this case, S3 does. (An
    /// eviction of a session with its password is recorded, so the checker handles it.)
    pub(crate) fn takes_leadership_by_hand(self) -> bool {
        matches!(self, Self::CandidateDeleted | Self::StaleWrite | Self::EpochDeleted)
    }
}

/// The name of the fault in the scorecard.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let node = |target| match target {
            Target::Leader => "leader",
            Target::Other => "worker",
        };
        let server = |target| match target {
            Target::Leader => "leading server",
            Target::Other => "following server",
        };
        match *self {
            Self::Killed(target) => write!(f, "{} killed", node(target)),
            Self::KilledAt(step, When::Before) => write!(f, "leader killed before its {}", step.name()),
            Self::KilledAt(step, When::After) => write!(f, "leader killed after its {}", step.name()),
            Self::Frozen(target, tenths) => {
                write!(f, "{} frozen for {}.{} T", node(target), tenths / 10, tenths % 10)
            }
            Self::Drained(target) => write!(f, "{} drained", node(target)),
            Self::WorkerDrained => f.write_str("worker drained by an operator"),
            Self::Poison => f.write_str("job that kills its worker"),
            Self::Hang => f.write_str("handler that hangs"),
            Self::Cut(Cut::Fin) => f.write_str("links cut (FIN)"),
            Self::Cut(Cut::Reset) => f.write_str("links cut (RST)"),
            Self::Cut(Cut::Silence) => f.write_str("links cut (silence)"),
            Self::Refused => f.write_str("links refused"),
            Self::BlackHole(Direction::Both) => f.write_str("links black-holed"),
            Self::BlackHole(Direction::ToServer) => f.write_str("links black-holed to the server"),
            Self::BlackHole(Direction::ToClient) => f.write_str("links black-holed to the node"),
            Self::Slow(ms) => write!(f, "links slow, round trip {} ms", 2 * ms),
            Self::Flapping => f.write_str("links flapping"),
            Self::LostReply(step) => write!(f, "reply to {} lost", step.name()),
            Self::LateRequests => f.write_str("requests delayed past a reconnection"),
            Self::EventsLost => f.write_str("watch events lost"),
            Self::EventsLate => f.write_str("watch events delayed"),
            Self::StaleWrite => f.write_str("stale leader's write delayed"),
            Self::Expired(target) => write!(f, "session of the {} expired", node(target)),
            Self::ServerKilled(target) => write!(f, "{} killed", server(target)),
            Self::ServerFrozen(target) => write!(f, "{} frozen", server(target)),
            Self::ServerCutOff(target) => write!(f, "{} cut off from the others", server(target)),
            Self::ServerLags => f.write_str("following server lags"),
            Self::MajorityDown => f.write_str("majority of servers killed"),
            Self::AllServersKilled => f.write_str("all servers killed"),
            Self::AllServersFrozen => f.write_str("all servers frozen"),
            Self::CandidateDeleted => f.write_str("leader's znode deleted"),
            Self::WorkerDeleted => f.write_str("worker's znode deleted"),
            Self::WorkersParentDeleted => f.write_str("/workers deleted"),
            Self::EpochDeleted => f.write_str("/epoch deleted"),
            Self::Overwritten(Garbage::Random) => f.write_str("record overwritten, random bytes"),
            Self::Overwritten(Garbage::Truncated) => f.write_str("record overwritten, truncated"),
            Self::Overwritten(Garbage::Future) => f.write_str("record overwritten, future version"),
            Self::Oversize => f.write_str("oversize payload"),
            Self::ClientKilled => f.write_str("client killed"),
        }
    }
}
