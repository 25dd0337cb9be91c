//! Trust of a term, and the beats that renew it.

use super::resuming::verify;
use super::state::{After, Asked, Beating, Resuming, State, Tenure};
use super::{Effect, Event, Leadership, Reply, Request, Why};
use crate::machine::election::campaign::{self, Campaign, Ticket};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;
use crate::txn::BeatStep;

impl Leadership {
    /// Extends the trust if the event proves that the session lives, or that a beat was applied. Shortens it if the session is
    /// proven for a shorter time than before.
    pub(super) fn learn(&mut self, now: Millis, event: &Event) {
        let Some(session) = self.session.known() else { return };
        match event {
            Event::Trust { session: id, until } if session.id == *id => {
                self.session.prove(*id, *until);
                if let Some(tenure) = self.state.tenure_mut() {
                    let assumed = session.proven.is_none().then_some(tenure.session_until);
                    tenure.session_until = assumed.map_or(*until, |assumed| assumed.max(*until));
                }
            }
            // The trust counts from the sending: the beat was applied later. Trust that has lapsed is not extended, so
            // that the leader pauses and reads whether it has been replaced.
            Event::Reply(ticket, Reply::Beaten(Outcome::Applied(()))) => {
                let asked = self.state.asked().filter(|asked| asked.ticket == *ticket);
                if let Some((asked, tenure)) = asked.zip(self.state.tenure_mut()) {
                    if now < tenure.beat_until {
                        tenure.beaten(asked.at, session.failover.trust);
                    }
                    if session.proven.is_none() {
                        tenure.session_until = tenure.session_until.max(asked.at + session.lease);
                    }
                }
            }
            // Belongs to another session.
            Event::Trust { .. } => {}
            // Does not show when the server last received a request.
            Event::Connected { .. }
            | Event::Disconnected { .. }
            | Event::Expired { .. }
            | Event::Stand
            | Event::StepDown
            | Event::FencedOut { .. }
            | Event::Tick
            | Event::Reply(_, _) => {}
        }
    }

    /// Ends a term whose session may have ended, and pauses one whose leader may have been replaced for its silence.
    pub(super) fn lapse(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let Some(tenure) = self.state.tenure() else { return };
        if now >= tenure.session_until {
            self.fall_back(Why::TrustLapsed, out);
            return self.feed(now, campaign::Event::Again, out);
        }
        if now >= tenure.beat_until {
            self.pause(now, out);
        }
    }

    pub(super) fn beat_answered(
        &mut self,
        now: Millis,
        ticket: Ticket,
        outcome: Outcome<()>,
        out: &mut Vec<Effect>,
    ) {
        let Some(asked) = self.state.asked().filter(|asked| asked.ticket == ticket) else {
            // Belongs to an ended term, or to a connection that was lost.
            return;
        };
        match outcome {
            Outcome::Applied(()) => self.beaten(asked, out),
            Outcome::Unknown => self.beat_later(now, out),
            Outcome::Rejected(rejection) => self.beat_rejected(now, rejection, out),
        }
    }

    /// A leader that stayed trusted remains active; a paused leader reads whether it has been replaced.
    fn beaten(&mut self, asked: Asked, out: &mut Vec<Effect>) {
        let Some(session) = self.session.known() else {
            // Without a session there is no term.
            return;
        };
        match &mut self.state {
            State::Active(_, _, beating) => *beating = Beating::Due(asked.at + session.failover.beat),
            State::Paused(campaign, tenure, resuming) => {
                tenure.beaten(asked.at, session.failover.trust);
                *resuming = verify(campaign, tenure, asked, out);
            }
            // There is no term.
            State::Idle(_)
            | State::Campaigning(_)
            | State::Standby(_, _)
            | State::Claiming(_, _)
            | State::Leaving(_, _) => {}
        }
    }

    fn beat_rejected(&mut self, now: Millis, rejection: Rejection, out: &mut Vec<Effect>) {
        match (BeatStep::at(rejection.at), &rejection.reason) {
            (BeatStep::CheckEpoch, Reason::NoNode | Reason::BadVersion) => {
                self.leave(now, Why::EpochMoved, After::Afresh, out);
            }
            (BeatStep::CheckCandidate, Reason::NoNode | Reason::BadVersion) => {
                self.fall_back(Why::CandidateGone, out);
                self.feed(now, campaign::Event::Look, out);
            }
            // The next claim creates it again.
            (BeatStep::Set, Reason::NoNode) => {
                self.fall_back(Why::BeatRefused, out);
                self.feed(now, campaign::Event::Look, out);
            }
            // Nothing was sent: the event of the lost connection follows.
            (_, Reason::NotSent) => self.beat_later(now, out),
            (
                _,
                Reason::BadVersion
                | Reason::NodeExists
                | Reason::NotEmpty
                | Reason::NoAuth
                | Reason::OverBudget(_)
                | Reason::Refused(_)
                | Reason::Other(_),
            ) => {
                out.push(Effect::Refused(rejection));
                if matches!(self.state, State::Paused(_, _, _)) {
                    self.fall_back(Why::BeatRefused, out);
                }
                self.beat_later(now, out);
            }
        }
    }

    /// A beat without a result does not end a term before its trust lapses.
    fn beat_later(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let Some(session) = self.session.known() else {
            // Without a session there is no term.
            return;
        };
        match &mut self.state {
            State::Active(_, _, beating) => *beating = Beating::Due(now + session.failover.beat),
            State::Paused(_, _, resuming) => {
                *resuming = Resuming::Looking;
                self.feed(now, campaign::Event::Again, out);
            }
            // The term has just ended.
            State::Campaigning(_) => self.feed(now, campaign::Event::Again, out),
            // There is no term.
            State::Idle(_) | State::Standby(_, _) | State::Claiming(_, _) | State::Leaving(_, _) => {}
        }
    }
}

pub(super) fn beat(now: Millis, campaign: &mut Campaign, tenure: &Tenure, out: &mut Vec<Effect>) -> Asked {
    let ticket = campaign.ticket();
    let (epoch, candidate) = (tenure.term.epoch(), tenure.term.candidate().to_owned());
    out.push(Effect::Send(ticket, Request::Beat { epoch, candidate }));
    Asked { ticket, at: now }
}
