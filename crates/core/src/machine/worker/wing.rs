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

use crate::time::Millis;

mod answers;
mod drain;
mod event;
mod state;

pub use event::{Drained, Effect, Ephemeral, Event, Stage};

use state::{Check, Children, Drain, Draining, Say, State, Step, Then};

/// Restarts within [`RESTART_WINDOW`] beyond which something is wrong that no restart mends.
pub const MAX_RESTARTS: usize = 5;

/// See [`MAX_RESTARTS`].
pub const RESTART_WINDOW: Duration = Duration::from_secs(60);

/// Until a write that was not applied, or a read that was not answered, is tried again.
pub const RETRY: Duration = Duration::from_millis(100);

/// Beyond the grace of a drain, for reports on their way and the last transaction.
pub const DRAIN_MARGIN: Duration = Duration::from_secs(5);

/// The machine of a node's worker role.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerWing {
    state: State,
    /// Asked for before there was anything to drain.
    drain: Option<Drain>,
    say: Say,
    restarts: VecDeque<Millis>,
    grace: Duration,
}

impl WorkerWing {
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
            Say::Sent(version) | Say::SentBefore(version) => Say::SentBefore(version),
        }
    }

    fn say(&mut self, out: &mut Vec<Effect>) {
        // A new registration says it, and one that leaves has nothing to offer.
        if let (State::Serving { version, check: Check::Seen }, Say::Wanted) = (self.state, self.say) {
            self.say = Say::Sent(version);
            out.push(Effect::Say(version));
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

    fn serve(&mut self, now: Millis, version: i32, out: &mut Vec<Effect>) {
        self.state = State::Serving { version, check: Check::Seen };
        out.push(Effect::Start);
        if let Some(drain) = self.drain.take() {
            self.begin_drain(now, drain, out);
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
#[path = "wing_tests.rs"]
mod tests;
