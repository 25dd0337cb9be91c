//! Trust of a term, and the beats that renew it.

use super::state::{After, Asked, Beating, State, Tenure};
use super::{Effect, Event, Leadership, Reply, Request, Why};
use crate::machine::election::campaign::{self, Campaign, Ticket};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;
use crate::txn::BeatStep;

impl Leadership {
    /// Extends the trust if the event proves that the session lives, or that a beat was applied.
    pub(super) fn learn(&mut self, event: &Event) {
        let Some(session) = self.session.known() else { return };
        match event {
            Event::Trust { session: id, until } if session.id == *id => {
                self.session.prove(*id, *until);
                if let Some(tenure) = self.state.tenure_mut() {
                    tenure.session_until = tenure.session_until.max(*until);
                }
            }
            // The trust counts from the sending: the beat was applied later.
            Event::Reply(ticket, Reply::Beaten(Outcome::Applied(()))) => {
                let asked = self.state.asked().filter(|asked| asked.ticket == *ticket);
                if let Some((asked, tenure)) = asked.zip(self.state.tenure_mut()) {
                    tenure.beat_until = tenure.beat_until.max(asked.at + session.failover.trust);
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

    /// Pauses until a beat is applied.
    fn pause(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.state = match self.take() {
            State::Active(mut campaign, tenure, beating) => {
                let (epoch, why) = (tenure.term.epoch(), Why::BeatsLapsed);
                out.push(Effect::Lost { epoch, why });
                let asked = match beating {
                    Beating::Asked(asked) => asked,
                    Beating::Due(_) => beat(now, &mut campaign, &tenure, out),
                };
                State::Paused(campaign, tenure, Some(asked))
            }
            // It does not lead, or is already paused.
            state @ (State::Idle(_)
            | State::Campaigning(_)
            | State::Standby(_, _)
            | State::Claiming(_, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _)) => state,
        };
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
            Outcome::Applied(()) => self.beaten(now, asked, out),
            Outcome::Unknown => self.beat_later(now, out),
            Outcome::Rejected(rejection) => self.beat_rejected(now, rejection, out),
        }
    }

    /// An applied beat resumes a paused term: no other candidate had claimed, and the next one waits again.
    fn beaten(&mut self, now: Millis, asked: Asked, out: &mut Vec<Effect>) {
        let Some(session) = self.session.known() else {
            // Without a session there is no term.
            return;
        };
        self.state = match self.take() {
            State::Active(campaign, tenure, _) | State::Paused(campaign, tenure, _)
                if now < tenure.beat_until =>
            {
                State::Active(campaign, tenure, Beating::Due(asked.at + session.failover.beat))
            }
            // Its reply took longer than the trust.
            State::Active(mut campaign, tenure, _) | State::Paused(mut campaign, tenure, _) => {
                let asked = beat(now, &mut campaign, &tenure, out);
                State::Paused(campaign, tenure, Some(asked))
            }
            // There is no term.
            state @ (State::Idle(_)
            | State::Campaigning(_)
            | State::Standby(_, _)
            | State::Claiming(_, _)
            | State::Leaving(_, _)) => state,
        };
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
            State::Paused(_, _, asked) => {
                *asked = None;
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
