//! The life of a worker incarnation: register, serve, drain, retire, or be replaced.
//!
//! ```text
//!          connected            applied
//!   Away ────────────▶ Registering ────▶ Serving ──drain──▶ Draining ──empty, retired──▶ Over
//!    ▲                     ▲                │ │                │
//!    │                     └─no ephemeral───┘ └─child died──┐  │ child died, deadline
//!    └── expired (from anywhere) ──                         ▼  ▼
//!                          ▲                               Leaving ──then: again, over, fail──▶
//!                          └──────ephemeral deleted───────────┘
//! ```
//!
//! The node requests a drain, or an operator sets the draining mark in the ephemeral. The incarnation reads the
//! ephemeral when a watch reports a change, at every reconnection, and periodically, because watches are hints. A mark
//! that is set while the session ends is deleted with the ephemeral.
//!
//! A worker that takes over attempts does this between its registration, which offers no slot, and `Serving`. The offer
//! follows: see [`takeover`](crate::takeover).
//!
//! ```text
//!   Registering ──applied──▶ TakingOver ──done──▶ Registering (reads the ephemeral) ──▶ Serving
//! ```
//!
//! When a child dies, the attempts handed to it are lost, so it is unknown which of them have run. Then the whole
//! incarnation leaves: its ephemeral is deleted, the leader closes its attempts as lost, and a new incarnation
//! registers, up to [`MAX_RESTARTS`] times within [`RESTART_WINDOW`].
//!
//! | lost reply of | resolved by |
//! | --- | --- |
//! | registration | reading the ephemeral: ours ⇒ registered; absent ⇒ register again; foreign ⇒ a new id |
//! | the draining mark | reading the ephemeral: marked ⇒ done; unmarked ⇒ set again, at the version read |
//! | an updated offer | reading the ephemeral, then writing again, possibly the same content |
//! | retiring, leaving | repeating it: absent ⇒ done |
//! | a move in a takeover | repeating the takeover, which recognises what was moved |
//!
//! If a registration without a reply is applied after the read-back, the second registration fails because the inbox
//! exists, and the next read-back finds the first one. After any failed registration the wing waits for [`RETRY`],
//! because the cause may last long: an inbox without its ephemeral until a leader removes it, or a parent that an
//! operator deleted. Missing parents are created in the meantime.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Millis;

mod answers;
mod drain;
mod event;
mod state;

pub use event::{Drained, Effect, Ephemeral, Event, Stage};

use state::{Check, Children, Drain, Draining, State, Step, Then, Update};

/// Maximum restarts within [`RESTART_WINDOW`]; more indicate a fault that a restart does not fix.
pub const MAX_RESTARTS: usize = 5;

/// See [`MAX_RESTARTS`].
pub const RESTART_WINDOW: Duration = Duration::from_secs(60);

/// Delay before an unapplied write or unanswered read is tried again.
pub const RETRY: Duration = Duration::from_millis(100);

/// Added to the grace period of a drain, for reports in flight and the last transaction.
pub const DRAIN_MARGIN: Duration = Duration::from_secs(5);

/// State machine of a node's worker role.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkerWing {
    state: State,
    /// Requested before the incarnation was serving.
    drain: Option<Drain>,
    update: Update,
    restarts: VecDeque<Millis>,
    grace: Duration,
    /// Whether the first incarnation that registers takes over attempts.
    takes_over: bool,
}

impl WorkerWing {
    /// Creates the machine, which waits for a session. A drain by an operator has the grace period `grace`.
    #[must_use]
    pub fn new(grace: Duration) -> Self {
        Self {
            state: State::Away,
            drain: None,
            update: Update::Nothing,
            restarts: VecDeque::new(),
            grace,
            takes_over: false,
        }
    }

    /// Makes the first incarnation that registers take over attempts before it serves. A later one does not, because the
    /// first one may have had them.
    #[must_use]
    pub fn taking_over(self) -> Self {
        Self { takes_over: true, ..self }
    }

    /// Whether the next registration offers no slot, because a takeover follows.
    #[must_use]
    pub fn takes_over(&self) -> bool {
        self.takes_over
    }

    /// Returns the stage of the incarnation.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.state {
            State::Away => Stage::Away,
            State::Registering(_) | State::TakingOver(_) => Stage::Registering,
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
                // Handled like the death of a child: this incarnation cannot receive jobs.
                State::Serving { .. } => self.child_died(now, out),
                // Deleted by our own retirement, or belongs to an ended incarnation.
                State::Draining { .. }
                | State::Away
                | State::Registering(_)
                | State::TakingOver(_)
                | State::Leaving { .. }
                | State::Over => {}
            },
            Event::TakenOver => self.taken_over(out),
            Event::TakeoverInterrupted => self.takeover_interrupted(now, out),
            Event::Idle => self.idle(out),
            Event::Drain(grace) => self.drain(now, grace, out),
            Event::Refresh => self.refresh(),
            Event::RegistrationUpdated(outcome) => self.registration_updated(now, &outcome, out),
            Event::Look => match self.state {
                State::Serving { check: Check::Seen, .. } => out.push(Effect::Read),
                // A read is in flight or will be sent for another reason.
                State::Serving { check: Check::Asked | Check::Again | Check::Down, .. }
                | State::Registering(_)
                | State::TakingOver(_)
                | State::Draining { .. }
                | State::Leaving { .. }
                | State::Away
                | State::Over => {}
            },
            Event::Wake => self.wake(now, out),
        }
        self.update(out);
    }

    fn refresh(&mut self) {
        self.update = match self.update {
            Update::Nothing | Update::Wanted => Update::Wanted,
            Update::Sent(version) | Update::SentBefore(version) => Update::SentBefore(version),
        }
    }

    fn update(&mut self, out: &mut Vec<Effect>) {
        // A new registration contains the current offer, and a leaving worker offers nothing.
        if let (State::Serving { version, check: Check::Seen }, Update::Wanted) = (self.state, self.update) {
            self.update = Update::Sent(version);
            out.push(Effect::UpdateRegistration(version));
        }
    }

    fn connected(&mut self, out: &mut Vec<Effect>) {
        match self.state {
            State::Away => self.register_anew(out),
            // `Over` is final; the other states receive `Expired` before another session connects.
            State::Over
            | State::Registering(_)
            | State::TakingOver(_)
            | State::Serving { .. }
            | State::Draining { .. }
            | State::Leaving { .. } => {}
        }
    }

    fn register_anew(&mut self, out: &mut Vec<Effect>) {
        (self.state, self.update) = (State::Registering(Step::Sent), Update::Nothing);
        out.extend([Effect::Renew, Effect::Register]);
    }

    fn disconnected(&mut self, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Serving { check, .. } => {
                *check = Check::Down;
                out.push(Effect::Hold);
            }
            State::Draining { .. } => out.push(Effect::Hold),
            // Requests in flight will be answered as unknown or not sent.
            State::Registering(_)
            | State::TakingOver(_)
            | State::Leaving { .. }
            | State::Away
            | State::Over => {}
        }
    }

    fn reconnected(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Serving { check, .. } => {
                *check = Check::Asked;
                out.push(Effect::Read);
                // The worker never sees an assignment that was made and revoked while it was disconnected. A leader
                // that considers it hung waits for a new write of the registration.
                self.refresh();
            }
            State::Draining { step, .. } => {
                if let Draining::Marking(_, children) = step {
                    *children = Children::Live;
                }
                out.push(Effect::Resume);
                self.step(now, out);
            }
            State::Registering(_) | State::TakingOver(_) | State::Leaving { .. } => self.step(now, out),
            State::Away | State::Over => {}
        }
    }

    fn expired(&mut self, out: &mut Vec<Effect>) {
        match self.state {
            State::Away | State::Over => {}
            State::Registering(_) | State::TakingOver(_) => self.away(out),
            State::Serving { .. } => {
                out.push(Effect::Stop);
                self.away(out);
            }
            State::Draining { .. } => {
                out.push(Effect::Stop);
                self.over(Drained::Abandoned, out);
            }
            // The ephemeral was deleted with the session.
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

    /// Repeats the request of the current state, if the last one failed.
    fn step(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Registering(step @ Step::Again) => {
                *step = Step::Sent;
                out.push(Effect::Read);
            }
            State::TakingOver(step @ Step::Again) => {
                *step = Step::Sent;
                out.push(Effect::TakeOver);
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
                // Answer the drain request now; the ephemeral must be deleted anyway, however long that takes.
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
            // Nothing to repeat: a request is in flight, or the state waits for an event.
            State::Registering(Step::Sent)
            | State::TakingOver(Step::Sent)
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
        if std::mem::take(&mut self.takes_over) {
            self.state = State::TakingOver(Step::Sent);
            out.push(Effect::TakeOver);
            return;
        }
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
            // There are no children in these states.
            State::Away
            | State::Registering(_)
            | State::TakingOver(_)
            | State::Leaving { .. }
            | State::Over => return,
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
