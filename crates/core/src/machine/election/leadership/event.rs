//! Events, replies, requests, effects and states of the leadership.

use std::time::Duration;

use uuid::Uuid;

use super::Term;
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
    /// The session is proven to live until then. From the first such event on, these are the only source of trust. A host
    /// that sends none has a single server, which hears of a session itself: then an answered verification renews the
    /// trust.
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
    /// To [`Request::ReadEpoch`]: the content of `/epoch`, or `None` if it is absent.
    Epoch(Outcome<Option<Sighting>>),
    /// To [`Request::Claim`].
    Claimed(Outcome<()>),
    /// To [`Request::Verify`].
    Verified(Outcome<Findings>),
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

/// The state of a leader's two znodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Findings {
    /// The session that owns the candidate (0: not ephemeral), or `None` if the candidate is absent.
    pub owner: Option<i64>,
    /// The content of `/epoch`.
    pub epoch: Option<Sighting>,
}

/// One request to ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    /// A request of the campaign.
    Campaign(campaign::Request),
    /// Read `/epoch` after a `sync`: a claim whose reply was lost may have been applied on another server.
    ReadEpoch,
    /// One multi of [`Claim::ops`].
    Claim(Claim),
    /// Read the owner of a candidate and `/epoch`, after a `sync`.
    Verify {
        /// The candidate.
        candidate: String,
    },
}

/// Output of the machine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Send a request. Requests must reach ZooKeeper in the order of the effects.
    Send(Ticket, Request),
    /// The state changed; sent once per change.
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
    /// The leader, cut off from ZooKeeper; the term may still be valid.
    Paused {
        /// The term, which continues if the session lives.
        term: Term,
        /// The latest end of the pause, by this process's monotonic clock.
        until: Millis,
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
    /// The candidate was deleted, or is no longer first.
    CandidateGone,
    /// The epoch was claimed by another candidate, or deleted.
    EpochMoved,
    /// A write was rejected by its fence.
    FencedOut,
    /// The node was asked to step down.
    SteppedDown,
}

impl Why {
    /// Returns the name used in logs and metric labels.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Disconnected => "disconnected",
            Self::Expired => "expired",
            Self::TrustLapsed => "trust-lapsed",
            Self::CandidateGone => "candidate-gone",
            Self::EpochMoved => "epoch-moved",
            Self::FencedOut => "fenced-out",
            Self::SteppedDown => "stepped-down",
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
