//! The life of a worker incarnation: registered, serving, drained, retired, or replaced.
//!
//! ```text
//!          connected            applied
//!   Away ────────────▶ Registering ────▶ Serving ──drain──▶ Draining ──empty, retired──▶ Over
//!    ▲                     ▲                │ │                │
//!    │                     └─ephemeral gone─┘ └─child died──┐  │ child died, deadline
//!    └── expired (from anywhere) ──                         ▼  ▼
//!                          ▲                               Leaving ──then: again, over, fail──▶
//!                          └──────ephemeral deleted───────────┘
//! ```
//!
//! A drain is asked for by the node, or by an operator, who sets the mark in the ephemeral: the incarnation looks at it
//! when a watch says that it has changed, at every reconnection, and from time to time, as watches are hints. A mark that
//! is set while the session ends is gone with it.
//!
//! A child's death loses what was handed to it, so nobody could tell any more which attempts have run. Then the
//! whole incarnation leaves: its ephemeral is deleted, the leader closes its attempts as lost, and a fresh
//! incarnation registers, up to [`MAX_RESTARTS`] within [`RESTART_WINDOW`].
//!
//! | lost reply of | resolved by |
//! | --- | --- |
//! | registration | reading the ephemeral: ours ⇒ registered; absent ⇒ again; foreign ⇒ a fresh id |
//! | the draining mark | reading the ephemeral: marked ⇒ done; not ⇒ again, on the version read |
//! | what it offers now | reading the ephemeral, then doing it again: it may say the same twice |
//! | retiring, leaving | doing it again: absent ⇒ done |
//!
//! A registration whose reply was lost and which is applied after the read-back lets the second one fail on the
//! inbox that exists; the read-back after that finds it ours. Whatever a registration fails on, [`RETRY`] lies
//! between it and the next: what refuses it (an inbox without its ephemeral until a leader removes it, a parent
//! that an operator deleted) may refuse it for long. Missing parents are made meanwhile.

use std::collections::VecDeque;
use std::time::Duration;

use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;

mod event;

pub use event::{Drained, Effect, Ephemeral, Event, Stage};

/// Restarts within [`RESTART_WINDOW`] beyond which something is wrong that no restart mends.
pub const MAX_RESTARTS: usize = 5;

/// See [`MAX_RESTARTS`].
pub const RESTART_WINDOW: Duration = Duration::from_secs(60);

/// Until a write that was not applied, or a read that was not answered, is tried again.
pub const RETRY: Duration = Duration::from_millis(100);

/// Beyond the grace of a drain, for reports on their way and the last transaction.
pub const DRAIN_MARGIN: Duration = Duration::from_secs(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum State {
    Away,
    Registering(Step),
    Serving { version: i32, check: Check },
    Draining { drain: Drain, step: Draining },
    Leaving { then: Then, step: Step },
    Over,
}

/// How a request of ours fares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    Sent,
    /// Not answered, or not sent: look or try again at the next wake or reconnection.
    Again,
}

/// Whether the ephemeral was seen since the last reconnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Check {
    Seen,
    Asked,
    Again,
    Down,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Draining {
    Marking(Step, Children),
    Emptying,
    Retiring(Step),
}

/// Whether the children were told to go on since the last reconnection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Children {
    Live,
    Held,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Drain {
    until: Millis,
    give_up: Millis,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Then {
    Again,
    Over,
    Fail,
}

/// What the worker offers, on its way into its registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Say {
    Nothing,
    Wanted,
    Sent,
    /// And it has changed again.
    SentBefore,
}

/// The machine of a node's worker role.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Incarnation {
    state: State,
    /// Asked for before there was anything to drain.
    drain: Option<Drain>,
    say: Say,
    restarts: VecDeque<Millis>,
    grace: Duration,
}

impl Incarnation {
    /// Waits for a session. An operator's drain has `grace`.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        Self { state: State::Away, drain: None, say: Say::Nothing, restarts: VecDeque::new(), grace }
    }

    /// Where it is in its life.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.state {
            State::Away => Stage::Away,
            State::Registering(_) => Stage::Registering,
            State::Serving { .. } => Stage::Serving,
            State::Draining { .. } => Stage::Draining,
            State::Leaving { .. } => Stage::Leaving,
            State::Over => Stage::Over,
        }
    }

    /// Handles one event.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Connected => self.connected(out),
            Event::Disconnected => self.disconnected(out),
            Event::Reconnected => self.reconnected(now, out),
            Event::Expired => self.expired(out),
            Event::Committed(outcome) => self.committed(now, outcome, out),
            Event::Read(ephemeral) => self.read(now, ephemeral, out),
            Event::ChildDied => self.child_died(now, out),
            Event::InboxGone => match self.state {
                // As if a child had died: this incarnation is of no use.
                State::Serving { .. } => self.child_died(now, out),
                // Gone with our own retirement, or with an incarnation that is over.
                State::Draining { .. }
                | State::Away
                | State::Registering(_)
                | State::Leaving { .. }
                | State::Over => {}
            },
            Event::Idle => self.idle(out),
            Event::Drain(grace) => self.drain(now, grace, out),
            Event::Anew => self.anew(),
            Event::Said(outcome) => self.said(now, &outcome, out),
            Event::Look => match self.state {
                State::Serving { check: Check::Seen, .. } => out.push(Effect::Read),
                // It is read, or will be, for another reason.
                State::Serving { check: Check::Asked | Check::Again | Check::Down, .. }
                | State::Registering(_)
                | State::Draining { .. }
                | State::Leaving { .. }
                | State::Away
                | State::Over => {}
            },
            Event::Wake => self.wake(now, out),
        }
        self.say(out);
    }

    fn anew(&mut self) {
        self.say = match self.say {
            Say::Nothing | Say::Wanted => Say::Wanted,
            Say::Sent | Say::SentBefore => Say::SentBefore,
        }
    }

    fn say(&mut self, out: &mut Vec<Effect>) {
        // A new registration says it, and one that leaves has nothing to offer.
        if let (State::Serving { version, check: Check::Seen }, Say::Wanted) = (self.state, self.say) {
            self.say = Say::Sent;
            out.push(Effect::Say(version));
        }
    }

    fn said(&mut self, now: Millis, outcome: &Outcome<()>, out: &mut Vec<Effect>) {
        let applied = *outcome == Outcome::Applied(());
        self.say = if applied && self.say == Say::Sent { Say::Nothing } else { Say::Wanted };
        match &mut self.state {
            State::Serving { version, .. } if applied => *version += 1,
            // Its version is not known any more.
            State::Serving { check: check @ Check::Seen, .. } => {
                *check = Check::Again;
                out.push(Effect::WakeAt(now + RETRY));
            }
            State::Serving { check: Check::Asked | Check::Again | Check::Down, .. }
            | State::Draining { .. }
            | State::Leaving { .. }
            | State::Registering(_)
            | State::Away
            | State::Over => {}
        }
    }

    fn connected(&mut self, out: &mut Vec<Effect>) {
        match self.state {
            State::Away => self.register_anew(out),
            // Over stays over; the others hear Expired before another session connects.
            State::Over
            | State::Registering(_)
            | State::Serving { .. }
            | State::Draining { .. }
            | State::Leaving { .. } => {}
        }
    }

    fn register_anew(&mut self, out: &mut Vec<Effect>) {
        (self.state, self.say) = (State::Registering(Step::Sent), Say::Nothing);
        out.extend([Effect::Renew, Effect::Register]);
    }

    fn disconnected(&mut self, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Serving { check, .. } => {
                *check = Check::Down;
                out.push(Effect::Hold);
            }
            State::Draining { .. } => out.push(Effect::Hold),
            // What is in flight will be answered as unknown or not sent.
            State::Registering(_) | State::Leaving { .. } | State::Away | State::Over => {}
        }
    }

    fn reconnected(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Serving { check, .. } => {
                *check = Check::Asked;
                out.push(Effect::Read);
                // What was assigned and taken back meanwhile it will never hear of, and a leader that took it for hung waits
                // for its word.
                self.anew();
            }
            State::Draining { step, .. } => {
                if let Draining::Marking(_, children) = step {
                    *children = Children::Live;
                }
                out.push(Effect::Resume);
                self.step(now, out);
            }
            State::Registering(_) | State::Leaving { .. } => self.step(now, out),
            State::Away | State::Over => {}
        }
    }

    fn expired(&mut self, out: &mut Vec<Effect>) {
        match self.state {
            State::Away | State::Over => {}
            State::Registering(_) => self.away(out),
            State::Serving { .. } => {
                out.push(Effect::Stop);
                self.away(out);
            }
            State::Draining { .. } => {
                out.push(Effect::Stop);
                self.over(Drained::Abandoned, out);
            }
            // Its ephemeral is gone with the session.
            State::Leaving { then, .. } => match then {
                Then::Again => self.away(out),
                Then::Over => self.over(Drained::Abandoned, out),
                Then::Fail => out.push(Effect::Fail),
            },
        }
    }

    fn away(&mut self, out: &mut Vec<Effect>) {
        self.state = State::Away;
        if self.drain.is_some() {
            self.over(Drained::Empty, out);
        }
    }

    fn over(&mut self, how: Drained, out: &mut Vec<Effect>) {
        self.state = State::Over;
        out.push(Effect::Drained(how));
    }

    /// Sends what the state waits for, if its last request came to nothing.
    fn step(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Registering(step @ Step::Again) => {
                *step = Step::Sent;
                out.push(Effect::Read);
            }
            State::Serving { check: check @ Check::Again, .. } => {
                *check = Check::Asked;
                out.push(Effect::Read);
            }
            State::Leaving { step: step @ Step::Again, .. } => {
                *step = Step::Sent;
                out.push(Effect::Leave);
            }
            State::Draining { drain, .. } if drain.give_up <= now => {
                // Whoever waits hears now; the ephemeral must go all the same, however long that takes.
                out.extend([Effect::Stop, Effect::Leave, Effect::Drained(Drained::Abandoned)]);
                self.state = State::Leaving { then: Then::Over, step: Step::Sent };
            }
            State::Draining { step: Draining::Marking(step @ Step::Again, _), .. } => {
                *step = Step::Sent;
                out.push(Effect::Read);
            }
            State::Draining { step: Draining::Retiring(step @ Step::Again), .. } => {
                *step = Step::Sent;
                out.push(Effect::Retire);
            }
            // Nothing to repeat: the answer is on its way, or an event is waited for.
            State::Registering(Step::Sent)
            | State::Leaving { step: Step::Sent, .. }
            | State::Serving { .. }
            | State::Draining { .. }
            | State::Away
            | State::Over => {}
        }
    }

    fn wake(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.step(now, out);
    }

    fn committed(&mut self, now: Millis, outcome: Outcome<()>, out: &mut Vec<Effect>) {
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
            // The answer to a write that nobody waits for any more.
            State::Draining { step: Draining::Emptying, .. }
            | State::Away
            | State::Serving { .. }
            | State::Over => {}
        }
    }

    /// A refused mark is looked into at once, and what is found there ends it or tells the version; what was not
    /// sent or not answered is looked into later.
    fn look_or_wait(&mut self, now: Millis, outcome: &Outcome<()>, out: &mut Vec<Effect>) {
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

    fn read(&mut self, now: Millis, ephemeral: Option<Ephemeral>, out: &mut Vec<Effect>) {
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
            // Asked for in an earlier state.
            (
                State::Draining { step: Draining::Emptying | Draining::Retiring(_), .. }
                | State::Leaving { .. }
                | State::Away
                | State::Over,
                Ephemeral::Absent | Ephemeral::Foreign | Ephemeral::Ours { .. },
            ) => {}
        }
    }

    fn unread(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Registering(step) | State::Draining { step: Draining::Marking(step, _), .. } => {
                *step = Step::Again;
            }
            State::Serving { check: check @ Check::Asked, .. } => *check = Check::Again,
            // Asked for in an earlier state, or the next reconnection asks.
            State::Serving { .. }
            | State::Draining { .. }
            | State::Leaving { .. }
            | State::Away
            | State::Over => return,
        }
        out.push(Effect::WakeAt(now + RETRY));
    }

    fn serve(&mut self, now: Millis, version: i32, out: &mut Vec<Effect>) {
        self.state = State::Serving { version, check: Check::Seen };
        out.push(Effect::Start);
        if let Some(drain) = self.drain.take() {
            self.begin_drain(now, drain, out);
        }
    }

    fn drain(&mut self, now: Millis, grace: Duration, out: &mut Vec<Effect>) {
        let until = now + grace;
        let drain = Drain { until, give_up: until + DRAIN_MARGIN };
        match &mut self.state {
            State::Away | State::Over => self.over(Drained::Empty, out),
            State::Registering(_) => self.drain = Some(drain),
            State::Serving { .. } => self.begin_drain(now, drain, out),
            State::Draining { .. } => {}
            State::Leaving { then, .. } => match then {
                Then::Again => *then = Then::Over,
                Then::Over | Then::Fail => {}
            },
        }
    }

    fn begin_drain(&mut self, now: Millis, drain: Drain, out: &mut Vec<Effect>) {
        let State::Serving { version, check } = self.state else { return };
        let marking = match check {
            Check::Seen => {
                out.push(Effect::MarkDraining(version));
                Draining::Marking(Step::Sent, Children::Live)
            }
            // The answer that is on its way tells whether they may go on.
            Check::Asked => Draining::Marking(Step::Sent, Children::Held),
            Check::Again | Check::Down => Draining::Marking(Step::Again, Children::Held),
        };
        self.state = State::Draining { drain, step: marking };
        out.extend([Effect::WakeAt(drain.give_up), Effect::WakeAt(now + RETRY)]);
    }

    /// An operator has set the mark.
    fn told_to_drain(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let State::Serving { .. } = self.state else { return };
        let until = now + self.grace;
        let drain = Drain { until, give_up: until + DRAIN_MARGIN };
        self.state = State::Draining { drain, step: Draining::Emptying };
        out.extend([Effect::Drain(until), Effect::Relist, Effect::WakeAt(drain.give_up)]);
    }

    fn idle(&mut self, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Draining {
                step: step @ (Draining::Emptying | Draining::Retiring(Step::Again)), ..
            } => {
                *step = Draining::Retiring(Step::Sent);
                out.push(Effect::Retire);
            }
            // On its way already, or the executor of a state that is over.
            State::Draining { .. }
            | State::Away
            | State::Registering(_)
            | State::Serving { .. }
            | State::Leaving { .. }
            | State::Over => {}
        }
    }

    fn child_died(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let then = match self.state {
            State::Serving { .. } => {
                self.restarts.retain(|at| now.since(*at) < RESTART_WINDOW);
                self.restarts.push_back(now);
                if self.restarts.len() > MAX_RESTARTS { Then::Fail } else { Then::Again }
            }
            State::Draining { .. } => Then::Over,
            // There are no children.
            State::Away | State::Registering(_) | State::Leaving { .. } | State::Over => return,
        };
        if then == Then::Again {
            out.push(Effect::Restarted);
        }
        out.extend([Effect::Stop, Effect::Leave]);
        self.state = State::Leaving { then, step: Step::Sent };
    }
}

#[cfg(test)]
#[path = "incarnation_tests.rs"]
mod tests;
