//! From a pause back to the term.
//!
//! A leader whose beats have lapsed may have been replaced. Normally its next beat shows that: the epoch is another one, and
//! the beat is rejected. But if an operator has deleted `/epoch` meanwhile, a successor that never saw this epoch may have
//! claimed it again, and with the strategy `single` both own a znode of the same name and version. So a paused leader beats
//! and then reads. If the epoch has its token and its session owns the candidate, no other node had claimed when the read was
//! served, and the applied beat makes every candidate wait again. While the trust does not lapse between two beats, no
//! candidate can claim, so nothing needs to be read.

use super::beating::beat;
use super::claiming::is_ours;
use super::state::{After, Asked, Beating, Resuming, State, Tenure};
use super::{Effect, Findings, Leadership, Request, Why};
use crate::machine::election::campaign::{self, Campaign, Ticket};
use crate::outcome::Outcome;
use crate::time::Millis;

impl Leadership {
    /// Pauses an active leader. A beat in flight, or a new one, is the first step back.
    pub(super) fn pause(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.state = match self.take() {
            State::Active(mut campaign, tenure, beating) => {
                let (epoch, why) = (tenure.term.epoch(), Why::BeatsLapsed);
                out.push(Effect::Lost { epoch, why });
                let asked = match beating {
                    Beating::Asked(asked) => asked,
                    Beating::Due(_) => beat(now, &mut campaign, &tenure, out),
                };
                State::Paused(campaign, tenure, Resuming::Beating(asked))
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

    /// Returns whether the read is that of a paused leader.
    pub(super) fn resumes(&self, ticket: Ticket) -> bool {
        matches!(&self.state, State::Paused(_, _, Resuming::Reading { ticket: asked, .. }) if *asked == ticket)
    }

    pub(super) fn resume_read(&mut self, now: Millis, outcome: Outcome<Findings>, out: &mut Vec<Effect>) {
        let found = match outcome {
            Outcome::Applied(found) => found,
            Outcome::Rejected(rejection) => {
                out.push(Effect::Refused(rejection));
                return self.look_again(now, out);
            }
            Outcome::Unknown => return self.look_again(now, out),
        };
        self.note(found, out);
        let (Some(tenure), Some(session)) = (self.state.tenure(), self.session.known()) else {
            // There is no term.
            return;
        };
        if !is_ours(found.epoch, tenure.term.epoch(), tenure.term.token()) {
            return self.leave(now, Why::EpochMoved, After::Afresh, out);
        }
        if found.owner != Some(tenure.term.session()) {
            self.fall_back(Why::CandidateGone, out);
            return self.feed(now, campaign::Event::Look, out);
        }
        self.state = match self.take() {
            State::Paused(campaign, tenure, Resuming::Reading { beaten, .. }) if now < tenure.beat_until => {
                State::Active(campaign, tenure, Beating::Due(beaten + session.failover.beat))
            }
            // The answers took longer than the trust.
            State::Paused(mut campaign, tenure, _) => {
                let asked = beat(now, &mut campaign, &tenure, out);
                State::Paused(campaign, tenure, Resuming::Beating(asked))
            }
            // It is not paused.
            state @ (State::Idle(_)
            | State::Campaigning(_)
            | State::Standby(_, _)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Leaving(_, _)) => state,
        };
    }

    /// The session may be lost: the next look shows whether the candidate is still first.
    fn look_again(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if let State::Paused(_, _, resuming) = &mut self.state {
            *resuming = Resuming::Looking;
        }
        self.feed(now, campaign::Event::Again, out);
    }
}

/// Reads after an applied beat. Requests of a session are served in their order, so the answer is not older than the beat.
pub(super) fn verify(
    campaign: &mut Campaign,
    tenure: &Tenure,
    beat: Asked,
    out: &mut Vec<Effect>,
) -> Resuming {
    let ticket = campaign.ticket();
    out.push(Effect::Send(ticket, Request::Read { candidate: tenure.term.candidate().to_owned() }));
    Resuming::Reading { ticket, beaten: beat.at }
}
