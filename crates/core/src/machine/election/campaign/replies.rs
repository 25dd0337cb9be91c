//! Handles the replies to requests.

use super::{Campaign, Effect, Reply, Request, State, Strategy, Ticket};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::time::Millis;

impl Campaign {
    pub(super) fn reply(&mut self, now: Millis, ticket: Ticket, reply: Reply, out: &mut Vec<Effect>) {
        if self.awaited() != Some(ticket) {
            // The reply to an abandoned request: the next look shows its effect, if any.
            return;
        }
        match reply {
            Reply::Created(outcome) => self.created(now, outcome, out),
            Reply::Deleted(outcome) => self.deleted(now, outcome, out),
            Reply::Watched(outcome) => self.watched(now, outcome, out),
            Reply::Changed => self.look(out),
            Reply::Listed(Outcome::Applied(children)) => self.decide(now, &children, out),
            Reply::Owner(Outcome::Applied(found)) => self.decide_single(now, found, out),
            Reply::Listed(Outcome::Rejected(rejection)) if rejection.reason == Reason::NoNode => {
                // Without its parent the candidate is absent, too.
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
            // Whether the create was applied, and by which node, is shown by the look.
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
                // The znode was deleted, or a claim or a beat was applied since the look.
                Reason::NoNode | Reason::NodeExists | Reason::BadVersion => self.look(out),
                Reason::NotEmpty
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
            // The watch is set and will fire.
            Outcome::Applied(true) => {}
            // The znode was deleted between the look and the watch.
            Outcome::Applied(false) => self.look(out),
            Outcome::Unknown => self.rest(now),
            Outcome::Rejected(rejection) => self.refused(now, rejection, out),
        }
    }

    /// Creates the parent, which an operator deleted. The parent of `/leader` is the root of the namespace, which is
    /// not created here.
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
