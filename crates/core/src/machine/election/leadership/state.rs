//! States of the leadership, each with the data it owns.

use std::time::Duration;

use super::{LeadershipState, Term};
use crate::machine::election::campaign::{Campaign, Ticket};
use crate::machine::election::leadership::Inactive;
use crate::time::Millis;
use crate::txn::Claim;

/// The known state of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum KnownSession {
    /// There is no session.
    Gone,
    /// The session may live, and is not connected.
    Down(Session),
    /// The session is connected.
    Up(Session),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Session {
    pub(super) id: i64,
    /// How long after a contact the session is certain to live.
    pub(super) lease: Duration,
    /// The time until which the session is proven to live, if the host passes it on ([`Event::Trust`](super::Event::Trust)).
    pub(super) proven: Option<Millis>,
}

impl KnownSession {
    pub(super) fn known(self) -> Option<Session> {
        match self {
            Self::Gone => None,
            Self::Down(session) | Self::Up(session) => Some(session),
        }
    }

    /// Records a proof that the session of this id lives.
    pub(super) fn prove(&mut self, id: i64, until: Millis) {
        if let Self::Down(session) | Self::Up(session) = self
            && session.id == id
        {
            session.proven = session.proven.max(Some(until));
        }
    }

    pub(super) fn is_of(self, id: i64) -> bool {
        self.known().is_some_and(|session| session.id == id)
    }
}

/// Leaving a state drops what it owns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum State {
    /// There is no candidacy.
    Idle(Idle),
    /// Not first yet, or behind another candidate.
    Campaigning(Campaign),
    /// First; claiming the epoch.
    Claiming(Campaign, Claiming),
    /// The leader.
    Active(Campaign, Tenure, Renewal),
    /// Cut off from ZooKeeper, or reconnected and verifying that the term is still valid.
    Paused(Campaign, Tenure, Option<Asked>),
    /// Deleting the candidate.
    Leaving(Campaign, After),
}

/// Why there is no candidacy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Idle {
    /// The candidacy starts with the next session.
    NoSession,
    /// The candidacy starts on request.
    Out,
}

/// What follows the deletion of the candidate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum After {
    /// Stay out.
    Out,
    /// Campaign again, at the end of the queue.
    Afresh,
}

/// Progress of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Claiming {
    /// Reading `/epoch`.
    Reading { ticket: Ticket, candidate: String },
    /// The claim was sent.
    Writing { ticket: Ticket, claim: Claim, sent_at: Millis },
    /// The reply was lost: reading `/epoch` back.
    ReadingBack { ticket: Ticket, claim: Claim, sent_at: Millis },
}

/// A term and the end of its trust.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Tenure {
    pub(super) term: Term,
    pub(super) trusted_until: Millis,
}

/// A verification in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) ticket: Ticket,
    pub(super) at: Millis,
}

/// When trust is renewed next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Renewal {
    Due(Millis),
    Asked(Asked),
}

impl State {
    pub(super) fn campaign_mut(&mut self) -> Option<&mut Campaign> {
        match self {
            Self::Idle(_) => None,
            Self::Campaigning(campaign)
            | Self::Claiming(campaign, _)
            | Self::Active(campaign, _, _)
            | Self::Paused(campaign, _, _)
            | Self::Leaving(campaign, _) => Some(campaign),
        }
    }

    pub(super) fn tenure(&self) -> Option<&Tenure> {
        match self {
            Self::Active(_, tenure, _) | Self::Paused(_, tenure, _) => Some(tenure),
            Self::Idle(_) | Self::Campaigning(_) | Self::Claiming(_, _) | Self::Leaving(_, _) => None,
        }
    }

    pub(super) fn tenure_mut(&mut self) -> Option<&mut Tenure> {
        match self {
            Self::Active(_, tenure, _) | Self::Paused(_, tenure, _) => Some(tenure),
            Self::Idle(_) | Self::Campaigning(_) | Self::Claiming(_, _) | Self::Leaving(_, _) => None,
        }
    }

    /// Returns the verification in flight.
    pub(super) fn asked(&self) -> Option<Asked> {
        match self {
            Self::Active(_, _, Renewal::Asked(asked)) => Some(*asked),
            Self::Paused(_, _, asked) => *asked,
            Self::Active(_, _, Renewal::Due(_))
            | Self::Idle(_)
            | Self::Campaigning(_)
            | Self::Claiming(_, _)
            | Self::Leaving(_, _) => None,
        }
    }

    pub(super) fn told(&self) -> LeadershipState {
        match self {
            Self::Idle(_) => LeadershipState::Inactive(Inactive::Idle),
            Self::Campaigning(campaign) if campaign.is_standby() => {
                LeadershipState::Inactive(Inactive::Standby)
            }
            Self::Campaigning(_) | Self::Claiming(_, _) => LeadershipState::Inactive(Inactive::Campaigning),
            Self::Active(_, tenure, _) => LeadershipState::Active(tenure.term.clone()),
            Self::Paused(_, tenure, _) => {
                LeadershipState::Paused { term: tenure.term.clone(), until: tenure.trusted_until }
            }
            Self::Leaving(_, _) => LeadershipState::Inactive(Inactive::Leaving),
        }
    }

    pub(super) fn next_wake(&self) -> Option<Millis> {
        let (campaign, trusted_until, renewal) = match self {
            Self::Idle(_) => return None,
            Self::Campaigning(campaign) | Self::Claiming(campaign, _) | Self::Leaving(campaign, _) => {
                (campaign, None, None)
            }
            Self::Active(campaign, tenure, Renewal::Due(at)) => {
                (campaign, Some(tenure.trusted_until), Some(*at))
            }
            Self::Active(campaign, tenure, Renewal::Asked(_)) | Self::Paused(campaign, tenure, _) => {
                (campaign, Some(tenure.trusted_until), None)
            }
        };
        [campaign.next_wake(), trusted_until, renewal].into_iter().flatten().min()
    }
}
