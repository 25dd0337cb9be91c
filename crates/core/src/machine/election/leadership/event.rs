//! What leadership hears, what it asks for, and what it tells.

use std::time::Duration;

use uuid::Uuid;

use super::Term;
use crate::machine::election::campaign::{self, Ticket};
use crate::outcome::{Outcome, Rejection};
use crate::time::Millis;
use crate::txn::Claim;
use crate::wire::{WireError, decode};
use crate::worker::EpochRecord;

/// What leadership hears.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Event {
    /// A session is connected: a new one, or the known one again.
    Connected {
        /// Which session.
        session: i64,
        /// Its timeout, as the server granted it.
        timeout: Duration,
    },
    /// The connection is lost; the session may live.
    Disconnected {
        /// Which session.
        session: i64,
    },
    /// The session is over.
    Expired {
        /// Which session.
        session: i64,
    },
    /// Somebody's request on the session was answered: the session is known to live until then.
    /// Optional: leadership renews its own trust.
    Trust {
        /// Which session.
        session: i64,
        /// When the answered request was sent, plus [`super::lease`] of the session timeout.
        until: Millis,
    },
    /// Take part in the election. It is so from the start.
    Stand,
    /// Give leadership and candidacy up, and stay out until [`Event::Stand`].
    StepDown,
    /// A leader's write was rejected by its fence.
    FencedOut {
        /// The epoch that it was fenced with.
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
    /// To [`Request::ReadEpoch`]: what is in `/epoch`, or `None` without a znode.
    Epoch(Outcome<Option<Sighting>>),
    /// To [`Request::Claim`].
    Claimed(Outcome<()>),
    /// To [`Request::Verify`].
    Verified(Outcome<Findings>),
}

/// What was seen in `/epoch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Sighting {
    /// Its version.
    pub version: i32,
    /// Whose claim it is; `None` when the data is not a claim that this build reads: only its version counts.
    pub token: Option<Uuid>,
}

impl Sighting {
    /// Reads the znode's data, which may be anything: a namespace is laid out with it empty, an operator may
    /// have overwritten it, a newer build may have written it. None of them is our claim.
    #[must_use]
    pub fn new(version: i32, data: &[u8]) -> (Self, Option<WireError>) {
        let read = decode::<EpochRecord>(data);
        let token = read.as_ref().ok().map(|record| record.token);
        let error = read.err().filter(|_| !data.is_empty());
        (Self { version, token }, error)
    }
}

/// What was seen of a leader's two znodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Findings {
    /// The session that owns the candidate (0: none does), or `None` without a znode.
    pub owner: Option<i64>,
    /// What is in `/epoch`.
    pub epoch: Option<Sighting>,
}

/// One request to ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Request {
    /// The campaign's.
    Campaign(campaign::Request),
    /// Read `/epoch`, after a `sync`: this may follow a claim on another server whose reply was lost.
    ReadEpoch,
    /// One multi of [`Claim::ops`].
    Claim(Claim),
    /// Read the owner of a candidate, and `/epoch`, after a `sync`.
    Verify {
        /// The candidate.
        candidate: String,
    },
}

/// What leadership pushes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Send a request. Requests must reach ZooKeeper in the order in which they were pushed.
    Send(Ticket, Request),
    /// The state changed; it is told once per change.
    Tell(LeadershipState),
    /// A term ended or paused. To be logged.
    Lost {
        /// Its epoch.
        epoch: i32,
        /// Why.
        why: Why,
    },
    /// ZooKeeper refused something that it should not refuse; it is tried again. To be logged.
    Refused(Rejection),
    /// No epoch is left to claim: the namespace has had 2³¹ leaders. To be logged.
    EpochsUsedUp,
}

/// The state of a node's leadership. The machine tells it with the term, the host with what a leader acts with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LeadershipState<A = Term> {
    /// Not the leader.
    Inactive(Inactive),
    /// The leader, cut off from ZooKeeper: it may still be the leader.
    Paused {
        /// The term, which goes on if the session lives.
        term: Term,
        /// Until when it may last at most, by this process's monotonic clock.
        until: Millis,
    },
    /// The leader: of a new term, or of the same one again after a pause.
    Active(A),
}

impl<A> LeadershipState<A> {
    /// As it stands in logs and metric labels.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Inactive(_) => "inactive",
            Self::Paused { .. } => "paused",
            Self::Active(_) => "active",
        }
    }

    /// The same state with something else of an active term.
    pub fn map<B>(self, f: impl FnOnce(A) -> B) -> LeadershipState<B> {
        match self {
            Self::Inactive(inactive) => LeadershipState::Inactive(inactive),
            Self::Paused { term, until } => LeadershipState::Paused { term, until },
            Self::Active(active) => LeadershipState::Active(f(active)),
        }
    }
}

impl LeadershipState {
    /// The term, when active or paused.
    #[must_use]
    pub fn term(&self) -> Option<&Term> {
        match self {
            Self::Inactive(_) => None,
            Self::Paused { term, .. } | Self::Active(term) => Some(term),
        }
    }
}

/// How a node is not the leader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Inactive {
    /// Has no session, or stays out of the election.
    Idle,
    /// On the way to a candidate znode, or to the epoch.
    Campaigning,
    /// Another candidate is before it.
    Standby,
    /// Gives its candidate up.
    Leaving,
}

/// Why a term ended or paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Why {
    /// The connection was lost.
    Disconnected,
    /// The session is over.
    Expired,
    /// Nothing was heard of the session for so long that it may be over.
    TrustLapsed,
    /// The candidate is gone, or no longer first.
    CandidateGone,
    /// The epoch is another's, or gone.
    EpochMoved,
    /// A write was rejected by its fence.
    FencedOut,
    /// It was asked to.
    SteppedDown,
}

impl Why {
    /// As it stands in logs and metric labels.
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
