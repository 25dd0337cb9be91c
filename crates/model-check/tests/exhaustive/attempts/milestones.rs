//! The milestones of each transaction.

use bellwether_core::job::{AttemptOutcome, JobState, Verdict};
use bellwether_core::outcome::Reason;
use bellwether_core::path::{self, Place};
use bellwether_core::txn::{Op, Subject};

use super::invariants::View;
use super::model::{Attempts, Author, Milestone, State};
use super::stage;

impl Attempts {
    pub(super) fn applied(&self, state: &State, author: Author, was: &View, is: &View) {
        let (before, record) = match (&was.record, &is.record) {
            (Some((before, _)), Some((record, _))) => (before, record),
            (Some(_), None) => return self.note(Milestone::Deleted),
            (None, Some(_)) => return self.note(Milestone::SubmittedAfterRemoval),
            (None, None) => return,
        };
        if record.generation > before.generation {
            self.note(if record.token == before.token { Milestone::Retried } else { Milestone::Again });
        }
        let expired = matches!(record.state, JobState::Terminal { verdict: Verdict::Dead, .. });
        if record.attempts == before.attempts && !before.is_terminal() && expired {
            self.note(Milestone::Expired);
        }
        let Some(last) = record.last.filter(|_| before.attempts != record.attempts) else { return };
        let cancelled = was.assigned.iter().any(|(_, assignment)| assignment.cancel);
        match last.how {
            AttemptOutcome::Succeeded if cancelled => self.note(Milestone::CancelTooLate),
            AttemptOutcome::Succeeded if was.assigned.iter().any(|(_, it)| it.moved_from.is_some()) => {
                self.note(Milestone::Moved);
            }
            AttemptOutcome::Succeeded if record.attempts > 1 => self.note(Milestone::Second),
            AttemptOutcome::Succeeded => self.note(Milestone::Succeeded),
            AttemptOutcome::Cancelled if matches!(author, Author::Leader(_)) => {
                let lost = !state.workers.iter().any(|it| it.alive && it.id == last.attempt.worker);
                self.note(if lost { Milestone::CancelledLost } else { Milestone::CancelledSilent });
            }
            AttemptOutcome::Cancelled => self.note(Milestone::CancelledRunning),
            AttemptOutcome::Lost | AttemptOutcome::Failed if record.is_terminal() => {
                self.note(Milestone::Dead)
            }
            AttemptOutcome::Lost => self.note(Milestone::Recovered),
            AttemptOutcome::LeaseExpired => self.note(Milestone::Revoked),
            AttemptOutcome::Released if stage::drains(&state.zk) => self.note(Milestone::HandedBack),
            AttemptOutcome::Failed
            | AttemptOutcome::Released
            | AttemptOutcome::Invalid
            | AttemptOutcome::Snoozed => {}
            AttemptOutcome::Expired => self.note(Milestone::Overdue),
        }
        if record.attempts > 1
            && state.workers.iter().any(|worker| worker.run.as_ref().is_some_and(|run| run.attempt == 1))
        {
            self.note(Milestone::Beside);
        }
    }

    pub(super) fn rejected(&self, state: &State, author: Author, ops: &[Op], at: usize, reason: &Reason) {
        let removal = ops.iter().any(|op| op.subject() == Subject::Removals);
        match (author, ops.get(at).map(|op| path::parse(op.path()))) {
            (Author::Leader(_), _) if at == 0 => {
                let about = |what: fn(&Op) -> bool| ops.iter().any(what);
                let assigns = about(
                    |op| matches!(op, Op::Create { path, .. } if matches!(path::parse(path), Place::Assignment(..))),
                );
                let takes = about(|op| matches!(path::parse(op.path()), Place::Assignment(..)));
                self.note(match (assigns, takes, removal) {
                    (true, _, _) => Milestone::StaleAssign,
                    (false, true, _) => Milestone::StaleRecovery,
                    (false, false, true) => Milestone::StaleRemoval,
                    (false, false, false) => Milestone::StaleExpiry,
                });
            }
            (Author::Leader(_), Some(Place::Worker(_))) if *reason == Reason::BadVersion => {
                self.note(Milestone::Marked);
            }
            (Author::Leader(_), Some(Place::Worker(_))) => self.note(Milestone::Gone),
            (Author::Worker, Some(Place::Inbox(_))) if *reason == Reason::NotEmpty => {
                self.note(Milestone::NotEmpty);
            }
            (Author::Worker, Some(Place::Worker(_))) if *reason == Reason::BadVersion => {
                self.note(Milestone::SaidLate);
            }
            (Author::Leader(_) | Author::Client, _) if removal => self.note(Milestone::KeptAfterAll),
            (Author::Client, _) => self.note(Milestone::ClientTooLate),
            (Author::Leader(_), Some(Place::Assignment(..))) if *reason == Reason::BadVersion => {
                self.note(Milestone::RenewedInTime);
            }
            (Author::Leader(_), _) if *reason == Reason::BadVersion => {
                let succeeded = View::of(&state.zk).record.and_then(|(record, _)| record.last);
                let done = succeeded.is_some_and(|last| last.how == AttemptOutcome::Succeeded);
                if done {
                    self.note(Milestone::DoneInTime);
                }
                self.note(Milestone::Raced);
            }
            (Author::Worker, Some(Place::Assignment(..))) if ops.len() == 1 => {
                self.note(Milestone::RevokedInTime)
            }
            (Author::Gateway, _) => self.note(Milestone::MovedTooLate),
            (Author::Worker, _) if at == 0 && *reason == Reason::BadVersion => {
                let view = View::of(&state.zk);
                if view.assigned.iter().any(|(_, assignment)| assignment.moved_from.is_some()) {
                    self.note(Milestone::LeftBehind);
                }
                let lost = view.record.and_then(|(record, _)| record.last);
                if lost.is_some_and(|last| {
                    matches!(last.how, AttemptOutcome::Lost | AttemptOutcome::LeaseExpired)
                }) {
                    self.note(Milestone::ZombieRejected);
                }
            }
            _ => {}
        }
    }
}
