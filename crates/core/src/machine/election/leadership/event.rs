//! Events, replies, requests, effects and states of the leadership.

use std::time::Duration;

use uuid::Uuid;

use super::Term;
use crate::failover::Failover;
use crate::machine::election::campaign::{self, Ticket};
use crate::outcome::{Outcome, Rejection};
use crate::time::Millis;
use crate::txn::Claim;
use crate::wire::{WireError, decode};
use crate::worker::EpochRecord;

/// Input of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A session is connected: a new one, or the known one again.
    Connected {
        /// The session.
        session: i64,
        /// Its timeout, as granted by the server.
        timeout: Duration,
        /// The times of the namespace.
        failover: Failover,
    },
    /// The connection is lost; the session may live.
    Disconnected {
        /// The session.
        session: i64,
    },
    /// The session has ended.
    Expired {
        /// The session.
        session: i64,
    },
    /// The session is proven to live until then. From the first such event on, these are the only source of trust in the
    /// session. A host that sends none has a single server, which hears of a session itself: then an applied beat proves
    /// it.
    Trust {
        /// The session.
        session: i64,
        /// See `bellwether_core::contact`.
        until: Millis,
    },
    /// Take part in the election. This is the initial mode.
    Stand,
    /// Give up leadership and candidacy, and stay out until [`Event::Stand`].
    StepDown,
    /// A leader's write was rejected by its fence.
    FencedOut {
        /// The epoch in the fence.
        epoch: i32,
    },
    /// Time passed.
    Tick,
    /// The answer to a request.
    Reply(Ticket, Reply),
}

/// The answer to a [`Request`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Reply {
    /// To a campaign's request.
    Campaign(campaign::Reply),
    /// To [`Request::Read`].
    Read(Outcome<Findings>),
    /// To [`Request::Claim`].
    Claimed(Outcome<()>),
    /// To [`Request::Beat`].
    Beaten(Outcome<()>),
    /// To [`Request::WatchBeats`]: the watch is set, or not.
    Watched(Outcome<()>),
    /// A later answer to [`Request::WatchBeats`]: `/leading` was changed. A hint, not a fact.
    Changed,
}

/// The content of `/epoch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sighting {
    /// Its version.
    pub version: i32,
    /// The token of the claim. `None` if this build cannot decode the data as a claim: only the version counts.
    pub token: Option<Uuid>,
}

impl Sighting {
    /// Decodes the znode's data, which may be arbitrary: empty in a new namespace, overwritten by an operator, or
    /// written by a newer build. In these cases it is not our claim.
    #[must_use]
    pub fn new(version: i32, data: &[u8]) -> (Self, Option<WireError>) {
        let read = decode::<EpochRecord>(data);
        let token = read.as_ref().ok().map(|record| record.token);
        let error = read.err().filter(|_| !data.is_empty());
        (Self { version, token }, error)
    }
}

/// A state of `/leading`. No two states are equal: the transactions that wrote them differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Beat {
    /// The version of the znode, for the check in a claim. It starts again if an operator deletes the znode.
    pub version: i32,
    /// The transaction that wrote it.
    pub written: i64,
    /// The epoch that it names: see [`claimed_epoch`](crate::txn::claimed_epoch).
    pub epoch: i32,
}

/// The result of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Findings {
    /// The session that owns the candidate (0: not ephemeral), or `None` if the candidate is absent. Read after the
    /// epoch: if a claim replaced the candidate before the epoch was read, this is its new owner.
    pub owner: Option<i64>,
    /// The content of `/epoch`.
    pub epoch: Option<Sighting>,
    /// The state of `/leading`, or `None` if it is absent.
    pub beat: Option<Beat>,
}

/// One request to ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    /// A request of the campaign.
    Campaign(campaign::Request),
    /// Read `/epoch`, `/leading` and the owner of a candidate, in this order and after a `sync`: a claim whose reply was
    /// lost may have been applied on another server.
    Read {
        /// The candidate.
        candidate: String,
    },
    /// One multi of [`Claim::ops`].
    Claim(Claim),
    /// One multi of [`beat`](crate::txn::beat).
    Beat {
        /// The epoch of the term.
        epoch: i32,
        /// The leader's candidate.
        candidate: String,
    },
    /// Watch for the next change of `/leading`, whether it exists or not. Replaces the earlier watch.
    WatchBeats,
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Send a request. Requests must reach ZooKeeper in the order of the effects.
    Send(Ticket, Request),
    /// The state changed; sent once per change. Sent again to a leader that may act again, although its term did not pause,
    /// so that its members repeat the requests that were refused in between.
    Tell(LeadershipState),
    /// A term ended or paused. For the log.
    Lost {
        /// Its epoch.
        epoch: i32,
        /// Why.
        why: Why,
    },
    /// ZooKeeper unexpectedly refused a request, which is tried again. For the log.
    Refused(Rejection),
    /// No epoch is left to claim: the namespace has had 2³¹ leaders. For the log.
    EpochsUsedUp,
}

/// The leadership state of a node. The machine uses it with the term, the host with the resources of an active leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeadershipState<A = Term> {
    /// Not the leader.
    Inactive(Inactive),
    /// The leader, cut off from ZooKeeper or without an applied beat for too long; the term may still be valid.
    Paused {
        /// The term, which continues if the session lives.
        term: Term,
        /// The latest end of the pause, by this process's monotonic clock; `None` if nothing limits it.
        until: Option<Millis>,
    },
    /// The leader, with a new term, or with the same term after a pause.
    Active(A),
}

impl<A> LeadershipState<A> {
    /// Returns the name used in logs and metric labels.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Inactive(_) => "inactive",
            Self::Paused { .. } => "paused",
            Self::Active(_) => "active",
        }
    }

    /// Maps the content of an active state.
    pub fn map<B>(self, f: impl FnOnce(A) -> B) -> LeadershipState<B> {
        match self {
            Self::Inactive(inactive) => LeadershipState::Inactive(inactive),
            Self::Paused { term, until } => LeadershipState::Paused { term, until },
            Self::Active(active) => LeadershipState::Active(f(active)),
        }
    }
}

impl LeadershipState {
    /// Returns the term, if active or paused.
    #[must_use]
    pub fn term(&self) -> Option<&Term> {
        match self {
            Self::Inactive(_) => None,
            Self::Paused { term, .. } | Self::Active(term) => Some(term),
        }
    }
}

/// Why a node is not the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Inactive {
    /// There is no session, or the node stays out of the election.
    Idle,
    /// Creating the candidate znode, or claiming the epoch.
    Campaigning,
    /// Another candidate comes first.
    Standby,
    /// Deleting its candidate.
    Leaving,
}

/// Why a term ended or paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The connection was lost.
    Disconnected,
    /// The session has ended.
    Expired,
    /// No request was answered for so long that the session may have ended.
    TrustLapsed,
    /// No beat was applied for so long that another candidate may have replaced the leader.
    BeatsLapsed,
    /// ZooKeeper refused a beat: `/leading` was deleted, or may not be written.
    BeatRefused,
    /// The candidate was deleted, or is no longer first.
    CandidateGone,
    /// The epoch was claimed by another candidate, or deleted.
    EpochMoved,
    /// A write was rejected by its fence.
    FencedOut,
    /// The node was asked to step down.
    SteppedDown,
    /// The pause lasted for as long as the policy permits.
    PausedTooLong,
}

impl Why {
    /// Returns the name used in logs and metric labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::Expired => "expired",
            Self::TrustLapsed => "trust-lapsed",
            Self::BeatsLapsed => "beats-lapsed",
            Self::BeatRefused => "beat-refused",
            Self::CandidateGone => "candidate-gone",
            Self::EpochMoved => "epoch-moved",
            Self::FencedOut => "fenced-out",
            Self::SteppedDown => "stepped-down",
            Self::PausedTooLong => "paused-too-long",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_a_name_for_logs_and_labels() {
        assert_eq!(LeadershipState::Active(()).as_str(), "active");
        assert_eq!(LeadershipState::<()>::Inactive(Inactive::Idle).as_str(), "inactive");
    }
}
