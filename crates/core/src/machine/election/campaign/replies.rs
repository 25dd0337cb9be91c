//! What follows from each answer.

use super::{Campaign, Effect, Reply, Request, State, Strategy, Ticket};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::time::Millis;

impl Campaign {
    pub(super) fn reply(&mut self, now: Millis, ticket: Ticket, reply: Reply, out: &mut Vec<Effect>) {
        if self.awaited() != Some(ticket) {
            // The answer to a question that is no longer asked: its effect, if any, is seen by the next look.
            return;
        }
        match reply {
            Reply::Created(outcome) => self.created(now, outcome, out),
            Reply::Deleted(outcome) => self.deleted(now, outcome, out),
            Reply::Watched(outcome) => self.watched(now, outcome, out),
            Reply::Changed => self.look(out),
            Reply::Listed(Outcome::Applied(children)) => self.decide(now, &children, out),
            Reply::Owner(Outcome::Applied(owner)) => self.decide_single(now, owner, out),
            Reply::Listed(Outcome::Rejected(rejection)) if rejection.reason == Reason::NoNode => {
                // Without its parent the candidate is gone as well.
                self.decide(now, &[], out);
            }
            Reply::Listed(Outcome::Rejected(rejection)) | Reply::Owner(Outcome::Rejected(rejection)) => {
                self.refused(now, rejection, out);
            }
            Reply::Listed(Outcome::Unknown) | Reply::Owner(Outcome::Unknown) => self.rest(now),
        }
    }

    pub(super) fn awaited(&self) -> Option<Ticket> {
        match self.state {
            State::Looking { ticket }
            | State::Creating { ticket }
            | State::Repairing { ticket }
            | State::Deleting { ticket }
            | State::Standby { ticket, .. }
            | State::First { ticket } => Some(ticket),
            State::Offline | State::Resting { .. } | State::Left => None,
        }
    }

    fn created(&mut self, now: Millis, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        match outcome {
            // Ours, another's, or perhaps ours: the look tells.
            Outcome::Applied(()) | Outcome::Unknown => self.look(out),
            Outcome::Rejected(rejection) => match rejection.reason {
                Reason::NodeExists => self.look(out),
                Reason::NoNode => self.repair(now, rejection, out),
                Reason::BadVersion
                | Reason::NotEmpty
                | Reason::NoAuth
                | Reason::NotSent
                | Reason::OverBudget(_)
                | Reason::Refused(_)
                | Reason::Other(_) => self.refused(now, rejection, out),
            },
        }
    }

    fn deleted(&mut self, now: Millis, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        match outcome {
            Outcome::Applied(()) | Outcome::Unknown => self.look(out),
            Outcome::Rejected(rejection) => match rejection.reason {
                Reason::NoNode => self.look(out),
                Reason::NodeExists
                | Reason::BadVersion
                | Reason::NotEmpty
                | Reason::NoAuth
                | Reason::NotSent
                | Reason::OverBudget(_)
                | Reason::Refused(_)
                | Reason::Other(_) => self.refused(now, rejection, out),
            },
        }
    }

    fn watched(&mut self, now: Millis, outcome: Outcome<bool>, out: &mut Vec<Effect>) {
        match outcome {
            // The watch stands and will tell.
            Outcome::Applied(true) => {}
            // It went between the look and the watch.
            Outcome::Applied(false) => self.look(out),
            Outcome::Unknown => self.rest(now),
            Outcome::Rejected(rejection) => self.refused(now, rejection, out),
        }
    }

    /// The create found no parent: an operator deleted it. `/leader` has none but the namespace's root, which
    /// is not ours to make.
    fn repair(&mut self, now: Millis, rejection: Rejection, out: &mut Vec<Effect>) {
        let creating = matches!(self.state, State::Creating { .. });
        if !creating || self.who.strategy != Strategy::Queue {
            return self.refused(now, rejection, out);
        }
        let ticket = self.ticket();
        let request = Request::CreateParent { path: path::ELECTION };
        out.push(Effect::Send(ticket, request));
        self.state = State::Repairing { ticket };
    }

    fn refused(&mut self, now: Millis, rejection: Rejection, out: &mut Vec<Effect>) {
        out.push(Effect::Refused(rejection));
        self.rest(now);
    }
}
