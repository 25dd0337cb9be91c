//! From first candidate to leader: reads, claims and reads back the epoch.

use super::state::{After, Claiming, Renewal, State, Tenure};
use super::verifying::is_ours;
use super::{Effect, Leadership, RENEWALS_PER_LEASE, Request, Sighting, Term, Why};
use crate::machine::election::campaign::{self, Ticket};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;
use crate::txn::{Claim, ClaimStep};

impl Leadership {
    pub(super) fn read_epoch(&mut self, candidate: String, out: &mut Vec<Effect>) {
        self.state = match self.take() {
            State::Campaigning(mut campaign) | State::Claiming(mut campaign, _) => {
                let ticket = campaign.ticket();
                out.push(Effect::Send(ticket, Request::ReadEpoch));
                State::Claiming(campaign, Claiming::Reading { ticket, candidate })
            }
            // These states do not lead to a claim.
            state @ (State::Idle(_)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _)) => state,
        };
    }

    pub(super) fn epoch_read(
        &mut self,
        now: Millis,
        ticket: Ticket,
        outcome: Outcome<Option<Sighting>>,
        out: &mut Vec<Effect>,
    ) {
        let State::Claiming(_, claiming) = &self.state else {
            // The claim is no longer wanted.
            return;
        };
        let (candidate, sent) = match claiming {
            Claiming::Reading { ticket: asked, candidate } if *asked == ticket => (candidate.clone(), None),
            Claiming::ReadingBack { ticket: asked, claim, sent_at } if *asked == ticket => {
                (claim.candidate().to_owned(), Some((claim.clone(), *sent_at)))
            }
            // Belongs to an earlier claim.
            Claiming::Reading { .. } | Claiming::Writing { .. } | Claiming::ReadingBack { .. } => return,
        };
        let seen = match outcome {
            Outcome::Applied(seen) => seen,
            Outcome::Rejected(rejection) => return self.claim_refused(now, rejection, out),
            Outcome::Unknown => return self.claim_again(now, campaign::Event::Again, out),
        };
        self.note(seen);
        match sent {
            None => self.write_claim(now, candidate, seen, out),
            Some((claim, sent_at)) if is_ours(seen, claim.epoch(), claim.token()) => {
                self.claimed(now, claim, sent_at, out);
            }
            Some(_) => self.claim_again(now, campaign::Event::Again, out),
        }
    }

    fn write_claim(&mut self, now: Millis, candidate: String, seen: Option<Sighting>, out: &mut Vec<Effect>) {
        let token = self.draw();
        let found = seen.map(|seen| seen.version);
        let highest = self.highest;
        let Some(session) = self.session.known() else {
            // Without a session there is no claim; `Expired` was handled already.
            return;
        };
        let Some(claim) = Claim::plan(candidate, session.id, token, found, highest) else {
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
                let ticket = campaign.ticket();
                out.push(Effect::Send(ticket, Request::ReadEpoch));
                *claiming = Claiming::ReadingBack { ticket, claim, sent_at };
            }
            Outcome::Rejected(rejection) => self.claim_refused(now, rejection, out),
        }
    }

    fn claim_refused(&mut self, now: Millis, rejection: Rejection, out: &mut Vec<Effect>) {
        match (Claim::step(rejection.at), &rejection.reason) {
            // The candidate was deleted or modified: it can never claim.
            (ClaimStep::CheckCandidate, Reason::NoNode | Reason::BadVersion) => {
                self.leave(now, Why::CandidateGone, After::Afresh, out);
            }
            // The epoch has changed since it was read.
            (_, Reason::NoNode | Reason::BadVersion | Reason::NodeExists) => {
                self.claim_again(now, campaign::Event::Look, out);
            }
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
            return self.read_epoch(claim.candidate().to_owned(), out);
        }
        let Some(session) = self.session.known() else {
            // Without a session there is no term; `Expired` was handled already.
            return;
        };
        // An answered claim does not show from when ZooKeeper's leader counts the timeout.
        let trusted_until = session.proven.unwrap_or(sent_at + session.lease);
        if now >= trusted_until {
            // The reply took so long that the session may have ended.
            return self.claim_again(now, campaign::Event::Again, out);
        }
        self.state = match self.take() {
            State::Claiming(campaign, _) => {
                let renewal = Renewal::Due(sent_at + session.lease / RENEWALS_PER_LEASE);
                let term = Term::claimed(claim);
                State::Active(campaign, Tenure { term, trusted_until }, renewal)
            }
            // The machine is not claiming.
            state @ (State::Idle(_)
            | State::Campaigning(_)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _)) => state,
        };
    }
}
