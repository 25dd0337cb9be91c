//! Answers to writes and reads of the ephemeral: implements the table of the [parent module](super). An answer that no
//! state waits for has no effect.

use super::state::{Check, Children, Draining, State, Step, Then, Update};
use super::{Drained, Effect, Ephemeral, RETRY, WorkerWing};
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;

impl WorkerWing {
    pub(super) fn registration_updated(&mut self, now: Millis, outcome: &Outcome<()>, out: &mut Vec<Effect>) {
        let sent = match self.update {
            Update::Sent(version) | Update::SentBefore(version) => Some(version),
            Update::Nothing | Update::Wanted => None,
        };
        let applied = sent.filter(|_| *outcome == Outcome::Applied(()));
        self.update = match (applied, self.update) {
            (Some(_), Update::Sent(_)) => Update::Nothing,
            (_, Update::Nothing | Update::Wanted | Update::Sent(_) | Update::SentBefore(_)) => Update::Wanted,
        };
        match (&mut self.state, applied) {
            // A read may have seen this write already. Then `sent + 1` must not be added again: the next version may be
            // an operator's mark, which the next write would overwrite (S18).
            (State::Serving { version, .. }, Some(sent)) => *version = (*version).max(sent + 1),
            // The version is unknown now.
            (State::Serving { check: check @ Check::Seen, .. }, None) => {
                *check = Check::Again;
                out.push(Effect::WakeAt(now + RETRY));
            }
            (
                State::Serving { check: Check::Asked | Check::Again | Check::Down, .. }
                | State::Draining { .. }
                | State::Leaving { .. }
                | State::Registering(_)
                | State::TakingOver(_)
                | State::Away
                | State::Over,
                Some(_) | None,
            ) => {}
        }
    }

    /// The registration is read before the worker serves: the moves took time, and an operator may have changed it. The offer
    /// of its slots follows.
    pub(super) fn taken_over(&mut self, out: &mut Vec<Effect>) {
        if let State::TakingOver(_) = self.state {
            (self.state, self.update) = (State::Registering(Step::Sent), Update::Wanted);
            out.push(Effect::Read);
        }
    }

    pub(super) fn takeover_interrupted(&mut self, now: Millis, out: &mut Vec<Effect>) {
        if let State::TakingOver(step) = &mut self.state {
            *step = Step::Again;
            out.push(Effect::WakeAt(now + RETRY));
        }
    }

    pub(super) fn committed(&mut self, now: Millis, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        let absent = matches!(outcome, Outcome::Rejected(Rejection { reason: Reason::NoNode, .. }));
        let applied = outcome == Outcome::Applied(());
        match &mut self.state {
            State::Registering(_) if applied => self.serve(now, 0, out),
            State::Registering(step) => {
                *step = Step::Again;
                if absent {
                    out.push(Effect::MakeParents);
                }
                out.push(Effect::WakeAt(now + RETRY));
            }
            State::Draining { step: Draining::Marking(step, _), .. } if !applied => {
                *step = Step::Again;
                self.look_or_wait(now, &outcome, out);
            }
            State::Draining { drain, step: step @ Draining::Marking(..) } => {
                *step = Draining::Emptying;
                out.extend([Effect::Drain(drain.until), Effect::Relist]);
            }
            State::Draining { step: Draining::Retiring(_), .. } if applied || absent => {
                out.push(Effect::Stop);
                self.over(Drained::Empty, out);
            }
            State::Draining { step: Draining::Retiring(step), .. } => {
                *step = Step::Again;
                if matches!(outcome, Outcome::Rejected(Rejection { reason: Reason::NotEmpty, .. })) {
                    out.push(Effect::Relist);
                }
                out.push(Effect::WakeAt(now + RETRY));
            }
            State::Leaving { then, .. } if applied || absent => match *then {
                Then::Again => self.register_anew(out),
                Then::Over => self.over(Drained::Abandoned, out),
                Then::Fail => out.push(Effect::Fail),
            },
            State::Leaving { step, .. } => {
                *step = Step::Again;
                out.push(Effect::WakeAt(now + RETRY));
            }
            // The answer to a write that no state waits for.
            State::Draining { step: Draining::Emptying, .. }
            | State::Away
            | State::TakingOver(_)
            | State::Serving { .. }
            | State::Over => {}
        }
    }

    /// After a rejected mark the ephemeral is read immediately: it shows the mark, the end of the session, or the current
    /// version. After an unsent or unanswered mark it is read later.
    pub(super) fn look_or_wait(&mut self, now: Millis, outcome: &Outcome<()>, out: &mut Vec<Effect>) {
        match outcome {
            Outcome::Rejected(Rejection {
                reason: Reason::NodeExists | Reason::BadVersion | Reason::NoNode,
                ..
            }) => self.step(now, out),
            Outcome::Rejected(_) | Outcome::Unknown | Outcome::Applied(()) => {
                out.push(Effect::WakeAt(now + RETRY));
            }
        }
    }

    pub(super) fn read(&mut self, now: Millis, ephemeral: Option<Ephemeral>, out: &mut Vec<Effect>) {
        let Some(ephemeral) = ephemeral else {
            return self.unread(now, out);
        };
        match (&mut self.state, ephemeral) {
            (State::Registering(_), Ephemeral::Ours { version, draining }) => {
                self.serve(now, version, out);
                if draining {
                    self.told_to_drain(now, out);
                }
            }
            (State::Registering(_), Ephemeral::Absent) => out.push(Effect::Register),
            (State::Registering(_), Ephemeral::Foreign) => self.register_anew(out),
            (State::Serving { version, check }, Ephemeral::Ours { version: seen, draining }) => {
                *version = seen;
                if *check == Check::Asked {
                    *check = Check::Seen;
                    out.push(Effect::Resume);
                }
                if draining && *check == Check::Seen {
                    self.told_to_drain(now, out);
                }
            }
            (State::Serving { .. }, Ephemeral::Absent | Ephemeral::Foreign) => {
                out.push(Effect::Stop);
                self.register_anew(out);
            }
            (
                State::Draining { drain, step: step @ Draining::Marking(..) },
                Ephemeral::Ours { version, draining },
            ) => {
                if *step == Draining::Marking(Step::Sent, Children::Held) {
                    *step = Draining::Marking(Step::Sent, Children::Live);
                    out.push(Effect::Resume);
                }
                if draining {
                    *step = Draining::Emptying;
                    out.extend([Effect::Drain(drain.until), Effect::Relist]);
                } else {
                    out.push(Effect::MarkDraining(version));
                }
            }
            (State::Draining { step: Draining::Marking(..), .. }, Ephemeral::Absent | Ephemeral::Foreign) => {
                out.push(Effect::Stop);
                self.over(Drained::Abandoned, out);
            }
            // A read that was sent in an earlier state.
            (
                State::Draining { step: Draining::Emptying | Draining::Retiring(_), .. }
                | State::TakingOver(_)
                | State::Leaving { .. }
                | State::Away
                | State::Over,
                Ephemeral::Absent | Ephemeral::Foreign | Ephemeral::Ours { .. },
            ) => {}
        }
    }

    pub(super) fn unread(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Registering(step) | State::Draining { step: Draining::Marking(step, _), .. } => {
                *step = Step::Again;
            }
            State::Serving { check: check @ Check::Asked, .. } => *check = Check::Again,
            // A read that was sent in an earlier state, or one that the next reconnection repeats.
            State::TakingOver(_)
            | State::Serving { .. }
            | State::Draining { .. }
            | State::Leaving { .. }
            | State::Away
            | State::Over => return,
        }
        out.push(Effect::WakeAt(now + RETRY));
    }
}
