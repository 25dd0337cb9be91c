//! A term that is kept while its node is cut off, under [`Policy::AtLeastOne`].
//!
//! The trust in a term ends with its session. Under `AtLeastOne` its node acts all the same, until it *learns* that it was
//! replaced: so the term is held while the node campaigns again, with the same session or with a new one. To others it is
//! paused. The hold ends
//!
//! * when this node's next claim is applied: it is active under a new epoch, without a moment in between without a permission;
//! * when a read of `/epoch` shows the claim of another node, or a write is rejected by its fence;
//! * when the node steps down;
//! * when the pause has lasted for `paused_at_most`.
//!
//! A candidate that may claim, or replace a silent leader, reads `/epoch` anyway. One that is further behind reads it once
//! per beat while it holds a term.
//!
//! A claim of this node whose reply was lost is not the claim of another node. Its token is one of those that were drawn since
//! the term is held.

use super::state::{NextRead, State};
use super::{Effect, Findings, Leadership, Policy, Request, Sighting, Term, Why, hashed};
use crate::machine::election::campaign;
use crate::machine::election::campaign::Ticket;
use crate::outcome::Outcome;
use crate::time::Millis;

/// A held term.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Held {
    pub(super) term: Term,
    /// Number of tokens that were drawn before.
    drawn: u64,
    /// The next read of `/epoch` by a candidate that has no other reason to read it.
    read: NextRead,
}

impl Leadership {
    /// Holds the term that ends, unless its end shows that another node leads, or is wanted.
    pub(super) fn hold(&mut self, term: Term, why: Why) {
        let replaced = match why {
            Why::Disconnected
            | Why::Expired
            | Why::TrustLapsed
            | Why::BeatsLapsed
            | Why::BeatRefused
            | Why::CandidateGone => false,
            Why::EpochMoved | Why::FencedOut | Why::SteppedDown | Why::PausedTooLong => true,
        };
        if self.config.policy != Policy::AtMostOne && !replaced {
            self.held = Some(Held { term, drawn: self.drawn, read: NextRead::Due(Millis(0)) });
        }
    }

    /// Ends the hold.
    pub(super) fn release(&mut self, why: Why, out: &mut Vec<Effect>) {
        if let Some(held) = self.held.take() {
            out.push(Effect::Lost { epoch: held.term.epoch(), why });
        }
    }

    /// The time at which a pause must end; `None` while the node is not paused, or if nothing limits the pause.
    pub(super) fn paused_until(&self) -> Option<Millis> {
        match self.config.policy {
            Policy::AtMostOne | Policy::AtLeastOne { paused_at_most: None } => None,
            Policy::AtLeastOne { paused_at_most: Some(limit) } => self.paused.map(|since| since + limit),
        }
    }

    /// Notes since when the node is paused.
    pub(super) fn note_pause(&mut self, now: Millis) {
        let paused = self.held.is_some() || matches!(self.state, State::Paused(_, _, _));
        self.paused = match self.config.policy {
            Policy::AtLeastOne { .. } if paused => self.paused.or(Some(now)),
            Policy::AtLeastOne { .. } | Policy::AtMostOne => None,
        };
    }

    /// Ends a pause that has lasted for too long.
    pub(super) fn paused_too_long(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if self.paused_until().is_none_or(|until| now < until) {
            return;
        }
        self.release(Why::PausedTooLong, out);
        if matches!(self.state, State::Paused(_, _, _)) {
            self.fall_back(Why::PausedTooLong, out);
            self.feed(now, campaign::Event::Again, out);
        }
    }

    /// Ends the hold if `/epoch` contains the claim of another node. An absent `/epoch` shows no claim.
    pub(super) fn compare_held(&mut self, seen: Option<Sighting>, out: &mut Vec<Effect>) {
        let (Some(held), Some(seen)) = (&self.held, seen) else { return };
        let same = seen.version == held.term.epoch() && seen.token == Some(held.term.token());
        let drawn = held.drawn + 1..=self.drawn;
        let own = || drawn.clone().any(|n| seen.token == Some(hashed(self.config.seed, n.cast_signed())));
        if !same && !own() {
            self.release(Why::EpochMoved, out);
        }
    }

    /// Reads `/epoch` for a candidate that is too far behind to read it for a claim.
    pub(super) fn read_held_when_due(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if let (State::Standby(campaign, None), Some(held)) = (&mut self.state, &mut self.held)
            && let NextRead::Due(at) = held.read
            && now >= at
        {
            let ticket = campaign.ticket();
            held.read = NextRead::Asked(ticket);
            out.push(Effect::Send(ticket, Request::Read { candidate: held.term.candidate().to_owned() }));
        }
    }

    /// Returns when [`Leadership::read_held_when_due`] reads.
    pub(super) fn held_read_at(&self) -> Option<Millis> {
        let State::Standby(_, None) = self.state else { return None };
        match self.held.as_ref()?.read {
            NextRead::Due(at) => Some(at),
            NextRead::Asked(_) => None,
        }
    }

    /// Handles the answer, if it is the one to a read for the held term. Returns whether it was.
    pub(super) fn held_read(
        &mut self,
        now: Millis,
        ticket: Ticket,
        outcome: &Outcome<Findings>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let (Some(held), Some(session)) = (&mut self.held, self.session.known()) else { return false };
        if held.read != NextRead::Asked(ticket) {
            return false;
        }
        // A lost or refused read is repeated.
        held.read = NextRead::Due(now + session.failover.beat);
        if let Outcome::Applied(found) = outcome {
            self.note(*found, out);
        }
        true
    }

    /// A read in flight is lost with the connection.
    pub(super) fn forget_held_read(&mut self) {
        if let Some(held) = &mut self.held {
            held.read = NextRead::Due(Millis(0));
        }
    }
}
