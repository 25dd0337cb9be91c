//! The drain: requested by the node or by an operator, marked in the ephemeral, and complete when the executor is
//! empty. A second request with a shorter grace period shortens the first one; a longer one changes nothing.

use std::time::Duration;

use super::state::{Check, Children, Drain, Draining, State, Step, Then};
use super::{DRAIN_MARGIN, Drained, Effect, RETRY, WorkerWing};
use crate::time::Millis;

impl WorkerWing {
    pub(super) fn drain(&mut self, now: Millis, grace: Duration, out: &mut Vec<Effect>) {
        let until = now + grace;
        let drain = Drain { until, give_up: until + DRAIN_MARGIN };
        match &mut self.state {
            State::Away | State::Over => self.over(Drained::Empty, out),
            State::Registering(_) | State::TakingOver(_) => self.drain = Some(drain),
            State::Serving { .. } => self.begin_drain(now, drain, out),
            State::Draining { drain: present, step } => {
                if drain.until < present.until {
                    *present = drain;
                    match step {
                        Draining::Emptying => out.push(Effect::Drain(drain.until)),
                        // The executor learns the new time with the mark, or is empty already.
                        Draining::Marking(..) | Draining::Retiring(_) => {}
                    }
                    out.push(Effect::WakeAt(drain.give_up));
                }
            }
            State::Leaving { then, .. } => match then {
                Then::Again => *then = Then::Over,
                Then::Over | Then::Fail => {}
            },
        }
    }

    pub(super) fn begin_drain(&mut self, now: Millis, drain: Drain, out: &mut Vec<Effect>) {
        let State::Serving { version, check } = self.state else { return };
        let marking = match check {
            Check::Seen => {
                out.push(Effect::MarkDraining(version));
                Draining::Marking(Step::Sent, Children::Live)
            }
            // The answer in flight decides whether the children may continue.
            Check::Asked => Draining::Marking(Step::Sent, Children::Held),
            Check::Again | Check::Down => Draining::Marking(Step::Again, Children::Held),
        };
        self.state = State::Draining { drain, step: marking };
        out.extend([Effect::WakeAt(drain.give_up), Effect::WakeAt(now + RETRY)]);
    }

    /// Starts the drain after an operator has set the mark.
    pub(super) fn told_to_drain(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let State::Serving { .. } = self.state else { return };
        let until = now + self.grace;
        let drain = Drain { until, give_up: until + DRAIN_MARGIN };
        self.state = State::Draining { drain, step: Draining::Emptying };
        out.extend([Effect::Drain(until), Effect::Relist, Effect::WakeAt(drain.give_up)]);
    }

    pub(super) fn idle(&mut self, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Draining {
                step: step @ (Draining::Emptying | Draining::Retiring(Step::Again)), ..
            } => {
                *step = Draining::Retiring(Step::Sent);
                out.push(Effect::Retire);
            }
            // A request is in flight, or the executor belongs to an earlier state.
            State::Draining { .. }
            | State::Away
            | State::Registering(_)
            | State::TakingOver(_)
            | State::Serving { .. }
            | State::Leaving { .. }
            | State::Over => {}
        }
    }
}
