//! States of the leadership, each with the data it owns.

use std::time::Duration;

use super::{Beat, Inactive, LeadershipState, Term};
use crate::failover::Failover;
use crate::machine::election::campaign::{Campaign, Ticket};
use crate::time::Millis;
use crate::txn::{Claim, Seat};

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
    /// The times of the namespace.
    pub(super) failover: Failover,
}

impl KnownSession {
    pub(super) fn known(self) -> Option<Session> {
        match self {
            Self::Gone => None,
            Self::Down(session) | Self::Up(session) => Some(session),
        }
    }

    /// Records until when the session of this id is proven to live. The last proof counts: it is earlier than the one before
    /// if a server grants a shorter session timeout.
    pub(super) fn prove(&mut self, id: i64, until: Millis) {
        if let Self::Down(session) | Self::Up(session) = self
            && session.id == id
        {
            session.proven = Some(until);
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
    /// The position is not known yet.
    Campaigning(Campaign),
    /// Behind another candidate. The next candidate watches for beats of the leader.
    Standby(Campaign, Option<Next>),
    /// First, or behind a silent leader; claiming the epoch.
    Claiming(Campaign, Claiming),
    /// The leader.
    Active(Campaign, Tenure, Beating),
    /// Cut off from ZooKeeper, or without an applied beat for too long.
    Paused(Campaign, Tenure, Resuming),
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

/// The next candidate's view of the leader.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Next {
    /// The place from which it claims when the leader is silent.
    pub(super) seat: Seat,
    /// The watch on `/leading`.
    pub(super) watch: Ticket,
    pub(super) read: NextRead,
}

/// The next read of `/leading`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum NextRead {
    Due(Millis),
    Asked(Ticket),
}

/// The last beat that was seen: the content of `/leading`, `None` if it was absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Heard {
    pub(super) beat: Option<Beat>,
    /// When it was seen first.
    pub(super) since: Millis,
}

/// Progress of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Claiming {
    /// Reading `/epoch` and `/leading`.
    Reading { ticket: Ticket, seat: Seat },
    /// The claim was sent.
    Writing { ticket: Ticket, claim: Claim, sent_at: Millis },
    /// The reply was lost: reading `/epoch` back.
    ReadingBack { ticket: Ticket, claim: Claim, sent_at: Millis },
}

impl Claiming {
    pub(super) fn seat(&self) -> &Seat {
        match self {
            Self::Reading { seat, .. } => seat,
            Self::Writing { claim, .. } | Self::ReadingBack { claim, .. } => claim.seat(),
        }
    }
}

/// A term and its trust.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Tenure {
    pub(super) term: Term,
    /// Until then the session is certain to live.
    pub(super) session_until: Millis,
    /// Until then no candidate replaces this leader for its silence.
    pub(super) beat_until: Millis,
}

impl Tenure {
    /// The time until which no other node leads.
    pub(super) fn trusted_until(&self) -> Millis {
        self.session_until.min(self.beat_until)
    }

    /// Notes that the beat that was sent at `sent_at` was applied. No candidate claims within the trust that follows.
    pub(super) fn beaten(&mut self, sent_at: Millis, trust: Duration) {
        self.beat_until = self.beat_until.max(sent_at + trust);
    }
}

/// A beat in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Asked {
    pub(super) ticket: Ticket,
    pub(super) at: Millis,
}

/// The next beat. At most one is in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Beating {
    Due(Millis),
    Asked(Asked),
}

/// The next step from a pause back to the term.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Resuming {
    /// The campaign looks whether the candidate is still first.
    Looking,
    /// A beat is in flight.
    Beating(Asked),
    /// The beat was applied: reading whether the epoch and the candidate are still ours.
    Reading {
        ticket: Ticket,
        /// When the beat was sent.
        beaten: Millis,
    },
}

impl State {
    pub(super) fn campaign_mut(&mut self) -> Option<&mut Campaign> {
        match self {
            Self::Idle(_) => None,
            Self::Campaigning(campaign)
            | Self::Standby(campaign, _)
            | Self::Claiming(campaign, _)
            | Self::Active(campaign, _, _)
            | Self::Paused(campaign, _, _)
            | Self::Leaving(campaign, _) => Some(campaign),
        }
    }

    pub(super) fn tenure(&self) -> Option<&Tenure> {
        match self {
            Self::Active(_, tenure, _) | Self::Paused(_, tenure, _) => Some(tenure),
            Self::Idle(_)
            | Self::Campaigning(_)
            | Self::Standby(_, _)
            | Self::Claiming(_, _)
            | Self::Leaving(_, _) => None,
        }
    }

    pub(super) fn tenure_mut(&mut self) -> Option<&mut Tenure> {
        match self {
            Self::Active(_, tenure, _) | Self::Paused(_, tenure, _) => Some(tenure),
            Self::Idle(_)
            | Self::Campaigning(_)
            | Self::Standby(_, _)
            | Self::Claiming(_, _)
            | Self::Leaving(_, _) => None,
        }
    }

    /// Returns the beat in flight.
    pub(super) fn asked(&self) -> Option<Asked> {
        match self {
            Self::Active(_, _, Beating::Asked(asked)) => Some(*asked),
            Self::Paused(_, _, Resuming::Beating(asked)) => Some(*asked),
            Self::Paused(_, _, Resuming::Looking | Resuming::Reading { .. })
            | Self::Active(_, _, Beating::Due(_))
            | Self::Idle(_)
            | Self::Campaigning(_)
            | Self::Standby(_, _)
            | Self::Claiming(_, _)
            | Self::Leaving(_, _) => None,
        }
    }

    pub(super) fn told(&self) -> LeadershipState {
        match self {
            Self::Idle(_) => LeadershipState::Inactive(Inactive::Idle),
            Self::Campaigning(_) | Self::Claiming(_, _) => LeadershipState::Inactive(Inactive::Campaigning),
            Self::Standby(_, _) => LeadershipState::Inactive(Inactive::Standby),
            Self::Active(_, tenure, _) => LeadershipState::Active(tenure.term.clone()),
            Self::Paused(_, tenure, _) => {
                LeadershipState::Paused { term: tenure.term.clone(), until: Some(tenure.session_until) }
            }
            Self::Leaving(_, _) => LeadershipState::Inactive(Inactive::Leaving),
        }
    }

    pub(super) fn next_wake(&self) -> Option<Millis> {
        let (campaign, at) = match self {
            Self::Idle(_) => return None,
            Self::Campaigning(campaign) | Self::Claiming(campaign, _) | Self::Leaving(campaign, _) => {
                (campaign, None)
            }
            Self::Standby(campaign, next) => {
                let due = next.as_ref().and_then(|next| match next.read {
                    NextRead::Due(at) => Some(at),
                    NextRead::Asked(_) => None,
                });
                (campaign, due)
            }
            Self::Active(campaign, tenure, Beating::Due(at)) => {
                (campaign, Some(tenure.trusted_until().min(*at)))
            }
            Self::Active(campaign, tenure, Beating::Asked(_)) => (campaign, Some(tenure.trusted_until())),
            Self::Paused(campaign, tenure, _) => (campaign, Some(tenure.session_until)),
        };
        [campaign.next_wake(), at].into_iter().flatten().min()
    }
}
