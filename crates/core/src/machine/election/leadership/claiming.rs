//! From candidate to leader: reads, claims and reads back the epoch.

use uuid::Uuid;

use super::standby::read;
use super::state::{After, Beating, Claiming, State, Tenure};
use super::{Effect, Findings, Leadership, Request, Sighting, Term, Why};
use crate::machine::election::campaign::{self, Ticket};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;
use crate::txn::{Claim, ClaimStep, Found, Seat};

impl Leadership {
    /// The first candidate reads what its claim needs.
    pub(super) fn read_to_claim(&mut self, seat: Seat, out: &mut Vec<Effect>) {
        self.state = match self.take() {
            State::Campaigning(mut campaign) | State::Claiming(mut campaign, _) => {
                let ticket = read(&mut campaign, &seat, out);
                State::Claiming(campaign, Claiming::Reading { ticket, seat })
            }
            // These states do not lead to a claim.
            state @ (State::Idle(_)
            | State::Standby(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _)) => state,
        };
    }

    pub(super) fn read_answered(
        &mut self,
        now: Millis,
        ticket: Ticket,
        outcome: Outcome<Findings>,
        out: &mut Vec<Effect>,
    ) {
        if self.held_read(now, ticket, &outcome, out) {
            return;
        }
        if self.awaits_beat(ticket) {
            return self.beat_read(now, outcome, out);
        }
        if self.resumes(ticket) {
            return self.resume_read(now, outcome, out);
        }
        let State::Claiming(_, claiming) = &self.state else {
            // The claim is no longer wanted.
            return;
        };
        let sent = match claiming {
            Claiming::Reading { ticket: asked, .. } if *asked == ticket => None,
            Claiming::ReadingBack { ticket: asked, claim, sent_at } if *asked == ticket => {
                Some((claim.clone(), *sent_at))
            }
            // Belongs to an earlier claim.
            Claiming::Reading { .. } | Claiming::Writing { .. } | Claiming::ReadingBack { .. } => return,
        };
        let found = match outcome {
            Outcome::Applied(found) => found,
            Outcome::Rejected(rejection) => {
                out.push(Effect::Refused(rejection));
                return self.claim_again(now, campaign::Event::Again, out);
            }
            Outcome::Unknown => return self.claim_again(now, campaign::Event::Again, out),
        };
        self.note(found, out);
        match sent {
            Some((claim, sent_at)) if is_ours(found.epoch, claim.epoch(), claim.token()) => {
                self.claimed(now, claim, sent_at, out);
            }
            Some(_) => self.claim_again(now, campaign::Event::Again, out),
            // Another node has replaced the candidate, or an operator has.
            None if found.owner != self.session.known().map(|session| session.id) => {
                self.claim_again(now, campaign::Event::Again, out);
            }
            None => self.write_claim(now, found, out),
        }
    }

    /// Sends the claim from the seat of the state.
    pub(super) fn write_claim(&mut self, now: Millis, found: Findings, out: &mut Vec<Effect>) {
        let State::Claiming(_, claiming) = &self.state else {
            // The claim is no longer wanted.
            return;
        };
        let seat = claiming.seat().clone();
        let token = self.draw();
        let found = Found {
            epoch: found.epoch.map(|seen| seen.version),
            leading: found.beat.map(|beat| beat.version),
        };
        let highest = self.highest;
        let Some(session) = self.session.known() else {
            // Without a session there is no claim; `Expired` was handled already.
            return;
        };
        if session.proven.is_some_and(|until| until <= now) {
            // After a long disconnection the trust returns with a later proof. Until then a claim would only raise the epoch.
            return self.claim_again(now, campaign::Event::Again, out);
        }
        let Some(claim) = Claim::plan(seat, session.id, token, found, highest) else {
            out.push(Effect::EpochsUsedUp);
            return self.claim_again(now, campaign::Event::Again, out);
        };
        // The epoch counts as claimed even if the reply is lost.
        self.highest = self.highest.max(claim.epoch());
        if let State::Claiming(campaign, claiming) = &mut self.state {
            let ticket = campaign.ticket();
            out.push(Effect::Send(ticket, Request::Claim(claim.clone())));
            *claiming = Claiming::Writing { ticket, claim, sent_at: now };
        }
    }

    pub(super) fn claim_answered(
        &mut self,
        now: Millis,
        ticket: Ticket,
        outcome: Outcome<()>,
        out: &mut Vec<Effect>,
    ) {
        let State::Claiming(campaign, claiming) = &mut self.state else {
            // The claim is no longer wanted. If it was applied, the next claim finds its version and continues from
            // there.
            return;
        };
        let (claim, sent_at) = match claiming {
            Claiming::Writing { ticket: asked, claim, sent_at } if *asked == ticket => {
                (claim.clone(), *sent_at)
            }
            // Belongs to an earlier claim.
            Claiming::Reading { .. } | Claiming::Writing { .. } | Claiming::ReadingBack { .. } => return,
        };
        match outcome {
            Outcome::Applied(()) => self.claimed(now, claim, sent_at, out),
            Outcome::Unknown => {
                let ticket = read(campaign, claim.seat(), out);
                *claiming = Claiming::ReadingBack { ticket, claim, sent_at };
            }
            Outcome::Rejected(rejection) => self.claim_refused(now, &claim, rejection, out),
        }
    }

    fn claim_refused(&mut self, now: Millis, claim: &Claim, rejection: Rejection, out: &mut Vec<Effect>) {
        match (claim.step(rejection.at), &rejection.reason) {
            // The candidate was deleted or modified: it can never claim.
            (ClaimStep::CheckCandidate, Reason::NoNode | Reason::BadVersion) => {
                self.leave(now, Why::CandidateGone, After::Afresh, out);
            }
            // The epoch, the leader's beat or the first candidate has changed since it was read.
            (
                ClaimStep::ReplaceSilent
                | ClaimStep::RaiseEpoch
                | ClaimStep::Beat
                | ClaimStep::CheckCandidate,
                Reason::NoNode | Reason::BadVersion | Reason::NodeExists,
            ) => self.claim_again(now, campaign::Event::Look, out),
            (
                _,
                Reason::NotEmpty
                | Reason::NoAuth
                | Reason::NotSent
                | Reason::OverBudget(_)
                | Reason::Refused(_)
                | Reason::Other(_),
            ) => {
                out.push(Effect::Refused(rejection));
                self.claim_again(now, campaign::Event::Again, out);
            }
        }
    }

    /// Makes the campaign check whether the candidate is still first, and claims again if so.
    fn claim_again(&mut self, now: Millis, how: campaign::Event, out: &mut Vec<Effect>) {
        self.fall_back(Why::EpochMoved, out);
        self.feed(now, how, out);
    }

    fn claimed(&mut self, now: Millis, claim: Claim, sent_at: Millis, out: &mut Vec<Effect>) {
        if !claim.is_complete() {
            return self.read_to_claim(claim.seat().after(), out);
        }
        let Some(session) = self.session.known() else {
            // Without a session there is no term; `Expired` was handled already.
            return;
        };
        // An answered claim does not show from when ZooKeeper's leader counts the timeout.
        let session_until = session.proven.unwrap_or(sent_at + session.lease);
        // It is the first beat of its term.
        let beat_until = sent_at + session.failover.trust;
        let tenure = Tenure { term: Term::claimed(claim), session_until, beat_until };
        if now >= tenure.trusted_until() {
            // The reply took so long that another node may lead.
            return self.claim_again(now, campaign::Event::Again, out);
        }
        self.state = match self.take() {
            State::Claiming(campaign, _) => {
                State::Active(campaign, tenure, Beating::Due(sent_at + session.failover.beat))
            }
            // The machine is not claiming.
            state @ (State::Idle(_)
            | State::Campaigning(_)
            | State::Standby(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _)) => state,
        };
    }
}

pub(super) fn is_ours(seen: Option<Sighting>, epoch: i32, token: Uuid) -> bool {
    seen == Some(Sighting { version: epoch, token: Some(token) })
}
