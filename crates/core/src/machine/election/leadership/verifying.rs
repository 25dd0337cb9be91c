//! Trust of a term, and the verifications that renew it.

use std::time::Duration;

use uuid::Uuid;

use super::state::{After, Asked, Renewal, State, Tenure};
use super::{Effect, Event, Findings, Leadership, RENEWALS_PER_LEASE, Reply, Request, Sighting, Why};
use crate::machine::election::campaign::{self, Campaign, Ticket};
use crate::outcome::Outcome;
use crate::time::Millis;

impl Leadership {
    /// Extends the trust if the event proves that the session lives.
    pub(super) fn learn(&mut self, event: &Event) {
        let until = match event {
            Event::Trust { session, until } if self.session.is_of(*session) => {
                self.session.prove(*session, *until);
                Some(*until)
            }
            // Belongs to another session.
            Event::Trust { .. } => None,
            Event::Reply(ticket, Reply::Verified(Outcome::Applied(_))) => self
                .state
                .asked()
                .filter(|asked| asked.ticket == *ticket)
                .zip(self.session.known().filter(|session| session.proven.is_none()))
                .map(|(asked, session)| asked.at + session.lease),
            // Does not show when the server last received a request.
            Event::Connected { .. }
            | Event::Disconnected { .. }
            | Event::Expired { .. }
            | Event::Stand
            | Event::StepDown
            | Event::FencedOut { .. }
            | Event::Tick
            | Event::Reply(_, _) => None,
        };
        if let (Some(until), Some(tenure)) = (until, self.state.tenure_mut()) {
            tenure.trusted_until = tenure.trusted_until.max(until);
        }
    }

    pub(super) fn lapse(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if self.trusted_until().is_some_and(|until| now >= until) {
            self.fall_back(Why::TrustLapsed, out);
            self.feed(now, campaign::Event::Again, out);
        }
    }

    pub(super) fn verified(
        &mut self,
        now: Millis,
        ticket: Ticket,
        outcome: Outcome<Findings>,
        out: &mut Vec<Effect>,
    ) {
        let Some(asked) = self.state.asked().filter(|asked| asked.ticket == ticket) else {
            // Belongs to an ended term, or a newer verification was sent.
            return;
        };
        let Some(session) = self.session.known() else {
            // Without a session there is no term.
            return;
        };
        let every = session.lease / RENEWALS_PER_LEASE;
        let found = match outcome {
            Outcome::Applied(found) => found,
            Outcome::Rejected(rejection) => {
                out.push(Effect::Refused(rejection));
                return self.verify_later(now, every, out);
            }
            Outcome::Unknown => return self.verify_later(now, every, out),
        };
        self.note(found.epoch);
        let Some(term) = self.term() else {
            return;
        };
        if found.owner != Some(session.id) {
            self.fall_back(Why::CandidateGone, out);
            return self.feed(now, campaign::Event::Look, out);
        }
        if !is_ours(found.epoch, term.epoch(), term.token()) {
            return self.leave(now, Why::EpochMoved, After::Afresh, out);
        }
        self.state = match self.take() {
            State::Active(campaign, tenure, _) | State::Paused(campaign, tenure, _) => {
                State::Active(campaign, tenure, Renewal::Due(asked.at + every))
            }
            // There is no term to verify.
            state @ (State::Idle(_)
            | State::Campaigning(_)
            | State::Claiming(_, _)
            | State::Leaving(_, _)) => state,
        };
    }

    /// A verification without a result does not end a term before its trust lapses.
    fn verify_later(&mut self, now: Millis, every: Duration, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Active(_, _, renewal) => *renewal = Renewal::Due(now + every),
            State::Paused(_, _, asked) => {
                *asked = None;
                self.feed(now, campaign::Event::Again, out);
            }
            // There is no term to verify.
            State::Idle(_) | State::Campaigning(_) | State::Claiming(_, _) | State::Leaving(_, _) => {}
        }
    }
}

pub(super) fn is_ours(seen: Option<Sighting>, epoch: i32, token: Uuid) -> bool {
    seen == Some(Sighting { version: epoch, token: Some(token) })
}

pub(super) fn verify(now: Millis, campaign: &mut Campaign, tenure: &Tenure, out: &mut Vec<Effect>) -> Asked {
    let ticket = campaign.ticket();
    let candidate = tenure.term.candidate().to_owned();
    out.push(Effect::Send(ticket, Request::Verify { candidate }));
    Asked { ticket, at: now }
}
