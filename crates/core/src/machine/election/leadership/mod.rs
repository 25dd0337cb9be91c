//! Leadership: from the first candidate to an active leader, and back.
//!
//! # Purpose
//!
//! The first candidate is not yet a leader, because its predecessor may be frozen with writes in flight. So it first
//! raises `/epoch`, in one multi that also checks its candidate znode, and fences every write of the [`Term`] with that
//! version (S3). After that no write of a predecessor can commit.
//!
//! The fence makes stale *writes* harmless. Trust prevents two leaders from *acting* at the same time (S5). A leader is
//! followed by another one in two ways, and trusts itself for the shorter of two times:
//!
//! * **Its session ends**, and ZooKeeper deletes its candidate. A session is certain to live for its timeout after the
//!   server last heard of it, so a leader trusts its session for a [`lease`] after that. It never relies on the expiry event,
//!   because the client library reports it late.
//! * **It is silent**, because its process died, is frozen, or hangs while the client library keeps the session alive. The
//!   leader *beats*: it sets `/leading` once per period, behind a check of its epoch, at most one beat in flight. The next
//!   candidate that sees no new beat for the wait claims, in one multi that also deletes the silent candidate. The leader
//!   trusts itself for less than the wait from the sending of its last applied beat ([`crate::failover`] has the proof).
//!
//! # States and events
//!
//! | state | Connected | Disconnected | Expired | first | behind | claim applied | session lapsed | beats lapsed | StepDown | FencedOut |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | Idle | campaign, unless out of the election | – | – | – | – | – | – | – | stay out | – |
//! | Campaigning | look | stay | Idle | Claiming | Standby | – | – | – | Leaving | – |
//! | Standby | look | Campaigning | Idle | Claiming | stay | – | – | – | Leaving | – |
//! | Claiming | – | Campaigning | Idle | – | Standby, unless it replaces the first | **Active** | – | – | Leaving | – |
//! | Active | – | **Paused** | Idle | other candidate: Claiming | Standby | – | Campaigning | **Paused**, beat | Leaving | Leaving, then campaign |
//! | Paused | look | – | Idle | beat, then read; ours ⇒ **Active**, same term | Standby | – | Campaigning | stay | Leaving | Leaving, then campaign |
//! | Leaving | look | stay | Idle | – | – | – | – | – | stay out afterwards | – |
//!
//! Externally, Idle, Campaigning, Standby, Claiming and Leaving are [`LeadershipState::Inactive`]. *First* and *behind* are
//! reported by the campaign ([`Candidacy`]) after each look. When the campaign finds its candidate deleted, Standby,
//! Claiming, Active and Paused fall back to Campaigning. A new session without an Expired event counts as an expiry of the
//! old one.
//!
//! In Standby the next candidate ([`Candidacy::Behind`]) watches `/leading` and reads it, after a `sync`, when it changes
//! and when the wait is over. If the last read shows no new beat, it claims. The one after it does the same, waits a little
//! longer, and replaces both ([`crate::failover::Failover::wait_after`]): the next candidate may have died with the leader, or
//! may be the candidate of a process that was killed and started again, whose session lives on.
//!
//! A claim reads `/epoch` and `/leading` and writes both ([`crate::txn::Claim`]). Outcomes of the write:
//!
//! * applied ⇒ Active; unknown ⇒ read back: our token ⇒ Active, else look and decide again;
//! * the candidate's check failed ⇒ the candidate was deleted or modified: delete it and campaign again;
//! * the epoch or the beat has changed, or the silent candidate was deleted ⇒ look again, and decide again.
//!
//! Outcomes of a beat:
//!
//! * applied ⇒ Active, trusted from its sending; unknown ⇒ it extends nothing, and the next beat follows;
//! * applied after the trust had lapsed or the connection was lost ⇒ read `/epoch` and the candidate; both ours ⇒ Active
//!   (`resuming.rs` has the reason);
//! * the epoch has changed ⇒ another node leads: leave and campaign again, at the end of the queue;
//! * the candidate or `/leading` was deleted ⇒ the term ends; look, and claim again if still first.
//!
//! # Time
//!
//! Before it handles an event, the machine checks whether trust has lapsed. So an actor that wakes from a freeze
//! (SIGSTOP) ends or pauses its term whatever event comes first. Between events [`Leadership::may_act`] compares with the
//! clock as well.
//!
//! # At least one
//!
//! Under [`Policy::AtLeastOne`] a term that ends without a sign of a successor is *held* (`held_term.rs`): Idle, Campaigning, Standby
//! and Claiming are then externally [`LeadershipState::Paused`] with that term, and the node may act.
//!
//! # Recovery and limits
//!
//! * A term whose session lapsed is never resumed, even if the session is still alive: the epoch is claimed again.
//! * If an operator deletes `/epoch`, the term ends at the next beat or write. The next claim creates `/epoch` and skips every
//!   used epoch: `/leading` names the highest one. If the operator deletes both, another process may reuse an epoch that it
//!   has not seen; until the old leader's next beat or write, the fence does not distinguish the two.
//! * If an operator deletes a candidate znode, the next candidate becomes the leader. The old leader watches its own
//!   znode and ends its term when the event arrives, or at its next beat; its writes are rejected once the new claim
//!   is applied.
//! * If the leader and the next two candidates hang, all with live sessions, no other candidate replaces them.
//! * Times are compared with this process's monotonic clock only.

mod beating;
mod claiming;
mod event;
mod held_term;
mod resuming;
mod standby;
mod state;
mod term;

use std::mem;
use std::time::Duration;

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

use self::beating::beat;
pub use self::event::{
    Beat, Effect, Event, Findings, Inactive, LeadershipState, Reply, Request, Sighting, Why,
};
use self::held_term::Held;
use self::state::{After, Beating, Heard, Idle, KnownSession, Resuming, Session, State, Tenure};
pub use self::term::Term;
use crate::machine::election::campaign::{self, Campaign, Campaigner, Candidacy, Strategy};
use crate::name::NodeId;
use crate::time::Millis;
use crate::txn::Seat;

/// How long a session is trusted after the sending of an answered request. The reserved tenth covers clocks of
/// different speeds, and the time from the decision to stop until the last action.
#[must_use]
pub fn lease(session_timeout: Duration) -> Duration {
    session_timeout - session_timeout / 10
}

/// Whether a leader acts while it is cut off from ZooKeeper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// It does not act: two nodes never act at the same time.
    #[default]
    AtMostOne,
    /// It stays paused and acts until it learns that another node has claimed, even if its session may have ended: two
    /// nodes may act at the same time, rather than none. If no other node has claimed when it is connected again, it
    /// continues or claims again, without a moment in which it may not act. Its fenced writes are rejected as soon as
    /// another node has claimed.
    AtLeastOne {
        /// How long a pause lasts at most; `None` for no limit. Then the leader stops acting, and campaigns again.
        paused_at_most: Option<Duration>,
    },
}

/// Configuration of the leadership.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Config {
    /// The node's name, for display.
    pub node: NodeId,
    /// How candidates are ordered.
    pub strategy: Strategy,
    /// Whether the leader acts while it is cut off.
    pub policy: Policy,
    /// Random, one per process. A machine that is restarted on the same session finds the candidate of its predecessor,
    /// and does not queue behind it.
    pub identity: Uuid,
    /// Random, unique to this machine: the tokens of its claims are derived from it.
    pub seed: Uuid,
}

/// One node's part in the election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leadership {
    config: Config,
    /// Number of tokens derived from the seed.
    drawn: u64,
    campaigns: u64,
    /// The highest epoch that was seen, in `/epoch` or in `/leading`, or that a claim of this machine may have written.
    highest: i32,
    session: KnownSession,
    /// The last beat that this process has seen. Also valid for later sessions, because only its own clock counts.
    heard: Option<Heard>,
    /// A term that has ended, but whose node may act on.
    held: Option<Held>,
    /// Since when the node is paused, if its policy limits the time of a pause.
    paused: Option<Millis>,
    state: State,
}

impl Leadership {
    /// Creates the machine. It campaigns after the first [`Event::Connected`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            drawn: 0,
            campaigns: 0,
            highest: 0,
            session: KnownSession::Gone,
            heard: None,
            held: None,
            paused: None,
            state: State::Idle(Idle::NoSession),
        }
    }

    /// Returns the externally visible state.
    #[must_use]
    pub fn state(&self) -> LeadershipState {
        let paused = match (&self.held, &self.state) {
            (Some(held), _) => Some(&held.term),
            (None, State::Paused(_, tenure, _)) => Some(&tenure.term),
            (None, _) => None,
        };
        match (paused, self.config.policy) {
            (Some(term), Policy::AtLeastOne { .. }) => {
                LeadershipState::Paused { term: term.clone(), until: self.paused_until() }
            }
            (_, Policy::AtMostOne) | (None, Policy::AtLeastOne { .. }) => self.state.told(),
        }
    }

    /// Returns the term, in Active and Paused.
    #[must_use]
    pub fn term(&self) -> Option<&Term> {
        let held = self.held.as_ref().map(|held| &held.term);
        self.state.tenure().map(|tenure| &tenure.term).or(held)
    }

    /// Returns the end of the term's trust: an active leader pauses then.
    #[must_use]
    pub fn trusted_until(&self) -> Option<Millis> {
        self.state.tenure().map(Tenure::trusted_until)
    }

    /// Returns the end of the term, if the session is not proven to live longer.
    #[must_use]
    pub fn term_until(&self) -> Option<Millis> {
        self.state.tenure().map(|tenure| tenure.session_until)
    }

    /// Returns whether the node may act as the leader now.
    #[must_use]
    pub fn may_act(&self, now: Millis) -> bool {
        self.may_act_until().is_some_and(|until| now < until)
    }

    /// Returns until when the node may act as the leader if no further event arrives.
    #[must_use]
    pub fn may_act_until(&self) -> Option<Millis> {
        match (&self.state, self.config.policy) {
            (State::Active(_, tenure, _), Policy::AtMostOne) => Some(tenure.trusted_until()),
            (State::Active(_, _, _) | State::Paused(_, _, _), Policy::AtLeastOne { .. }) => {
                Some(self.paused_until().unwrap_or(Millis(u64::MAX)))
            }
            (State::Paused(_, _, _), Policy::AtMostOne) => None,
            (
                State::Idle(_)
                | State::Campaigning(_)
                | State::Standby(_, _)
                | State::Claiming(_, _)
                | State::Leaving(_, _),
                Policy::AtMostOne | Policy::AtLeastOne { .. },
            ) => self.held.as_ref().map(|_| self.paused_until().unwrap_or(Millis(u64::MAX))),
        }
    }

    /// Returns when the machine needs the next [`Event::Tick`]. Check again after every event.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        [self.state.next_wake(), self.held_read_at(), self.paused_until()].into_iter().flatten().min()
    }

    /// Handles an event and emits effects. A state change comes before any request, so that the code that must stop
    /// acting learns of it before the candidate is given up.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        let before = self.state();
        let lapsed = matches!(self.state, State::Active(_, _, _)) && !self.may_act(now);
        let start = out.len();
        self.learn(now, &event);
        self.paused_too_long(now, out);
        self.lapse(now, out);
        match event {
            Event::Connected { session, timeout, failover } => {
                let lease = lease(timeout);
                self.connected(now, Session { id: session, lease, proven: None, failover }, out);
            }
            Event::Disconnected { session } => self.disconnected(now, session, out),
            Event::Expired { session } => self.expired(session, out),
            // `learn` has handled it.
            Event::Trust { .. } => {}
            Event::Stand => self.join(now, out),
            Event::StepDown => self.step_down(now, out),
            Event::FencedOut { epoch } => self.fenced_out(now, epoch, out),
            Event::Tick => self.tick(now, out),
            Event::Reply(ticket, Reply::Campaign(reply)) => {
                self.feed(now, campaign::Event::Reply(ticket, reply), out);
            }
            Event::Reply(ticket, Reply::Read(outcome)) => self.read_answered(now, ticket, outcome, out),
            Event::Reply(ticket, Reply::Claimed(outcome)) => self.claim_answered(now, ticket, outcome, out),
            Event::Reply(ticket, Reply::Beaten(outcome)) => self.beat_answered(now, ticket, outcome, out),
            Event::Reply(_, Reply::Watched(outcome)) => self.beats_watched(outcome, out),
            Event::Reply(ticket, Reply::Changed) => self.beat_changed(ticket, out),
        }
        if matches!(self.state, State::Active(_, _, _)) {
            // The new term continues the held one.
            self.held = None;
        }
        self.note_pause(now);
        let after = self.state();
        // A proof that the session lived may arrive after the permission to act has lapsed, and before the term ends.
        let extended = lapsed && self.may_act(now);
        if after != before || extended {
            out.insert(start, Effect::Tell(after));
        }
    }

    fn connected(&mut self, now: Millis, session: Session, out: &mut Vec<Effect>) {
        if let Some(old) = self.session.known().filter(|known| known.id != session.id) {
            self.expired(old.id, out);
        }
        let proven = self.session.known().and_then(|known| known.proven);
        self.session = KnownSession::Up(Session { proven, ..session });
        match self.state {
            State::Idle(Idle::NoSession) => self.campaign(now, out),
            // Stays out of the election until [`Event::Stand`].
            State::Idle(Idle::Out) => {}
            State::Campaigning(_)
            | State::Standby(_, _)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _) => self.feed(now, campaign::Event::Connected, out),
        }
    }

    fn disconnected(&mut self, now: Millis, id: i64, out: &mut Vec<Effect>) {
        match self.session {
            KnownSession::Up(session) if session.id == id => self.session = KnownSession::Down(session),
            // Belongs to another session, or is already known.
            KnownSession::Up(_) | KnownSession::Down(_) | KnownSession::Gone => return,
        }
        self.state = match self.take() {
            // The reply may be lost; the next look shows the outcome of the claim, or the position.
            State::Claiming(campaign, _) | State::Standby(campaign, _) => State::Campaigning(campaign),
            State::Active(campaign, tenure, _) => {
                let (epoch, why) = (tenure.term.epoch(), Why::Disconnected);
                out.push(Effect::Lost { epoch, why });
                State::Paused(campaign, tenure, Resuming::Looking)
            }
            // A beat follows the next look.
            State::Paused(campaign, tenure, _) => State::Paused(campaign, tenure, Resuming::Looking),
            // There is no claim or term to lose.
            state @ (State::Idle(_) | State::Campaigning(_) | State::Leaving(_, _)) => state,
        };
        self.forget_held_read();
        self.feed(now, campaign::Event::Disconnected, out);
    }

    fn expired(&mut self, id: i64, out: &mut Vec<Effect>) {
        if !self.session.is_of(id) {
            // Belongs to another session.
            return;
        }
        self.session = KnownSession::Gone;
        self.fall_back(Why::Expired, out);
        self.forget_held_read();
        self.state = State::Idle(match self.take() {
            State::Idle(idle) => idle,
            State::Leaving(_, After::Out) => Idle::Out,
            State::Campaigning(_)
            | State::Standby(_, _)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, After::Afresh) => Idle::NoSession,
        });
    }

    fn join(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Idle(Idle::Out) => self.campaign(now, out),
            State::Leaving(_, after) => *after = After::Afresh,
            // Already takes part.
            State::Idle(Idle::NoSession)
            | State::Campaigning(_)
            | State::Standby(_, _)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _) => {}
        }
    }

    fn step_down(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.release(Why::SteppedDown, out);
        match &mut self.state {
            State::Idle(idle) => *idle = Idle::Out,
            State::Leaving(_, after) => *after = After::Out,
            State::Campaigning(_)
            | State::Standby(_, _)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _) => self.leave(now, Why::SteppedDown, After::Out, out),
        }
    }

    fn fenced_out(&mut self, now: Millis, epoch: i32, out: &mut Vec<Effect>) {
        if self.held.as_ref().is_some_and(|held| held.term.epoch() == epoch) {
            self.release(Why::FencedOut, out);
        } else if self.term().is_some_and(|term| term.epoch() == epoch) {
            self.leave(now, Why::FencedOut, After::Afresh, out);
        }
        // Otherwise the write belongs to an earlier term.
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.feed(now, campaign::Event::Tick, out);
        self.read_when_due(now, out);
        self.read_held_when_due(now, out);
        if let State::Active(campaign, tenure, beating) = &mut self.state
            && let Beating::Due(at) = *beating
            && now >= at
        {
            *beating = Beating::Asked(beat(now, campaign, tenure, out));
        }
    }

    /// Passes an event to the campaign, if there is one, and handles the campaign's effects.
    fn feed(&mut self, now: Millis, event: campaign::Event, out: &mut Vec<Effect>) {
        let Some(campaign) = self.state.campaign_mut() else {
            // The reply belongs to an ended campaign.
            return;
        };
        let mut effects = Vec::new();
        campaign.handle(now, event, &mut effects);
        for effect in effects {
            match effect {
                campaign::Effect::Send(ticket, request) => {
                    out.push(Effect::Send(ticket, Request::Campaign(request)));
                }
                campaign::Effect::Refused(rejection) => out.push(Effect::Refused(rejection)),
                campaign::Effect::Candidacy(candidacy) => self.candidacy(now, candidacy, out),
            }
        }
    }

    fn candidacy(&mut self, now: Millis, candidacy: Candidacy, out: &mut Vec<Effect>) {
        match candidacy {
            Candidacy::Running => self.fall_back(Why::CandidateGone, out),
            Candidacy::Behind { next } => self.stand_by(next, out),
            Candidacy::First { candidate } => self.first(now, candidate, out),
            Candidacy::Left => match self.state {
                State::Leaving(_, After::Out) => self.state = State::Idle(Idle::Out),
                State::Leaving(_, After::Afresh) => self.campaign(now, out),
                // Only `Leaving` makes a campaign leave.
                State::Idle(_)
                | State::Campaigning(_)
                | State::Standby(_, _)
                | State::Claiming(_, _)
                | State::Active(_, _, _)
                | State::Paused(_, _, _) => {}
            },
        }
    }

    fn first(&mut self, now: Millis, candidate: String, out: &mut Vec<Effect>) {
        let gone = self.state.tenure().is_some_and(|tenure| tenure.term.candidate() != candidate);
        if gone || matches!(self.state, State::Standby(_, _)) {
            self.fall_back(Why::CandidateGone, out);
        }
        match &mut self.state {
            State::Campaigning(_) => self.read_to_claim(Seat::First { candidate }, out),
            State::Paused(campaign, tenure, resuming @ Resuming::Looking) => {
                *resuming = Resuming::Beating(beat(now, campaign, tenure, out));
            }
            // The claim in progress checks the candidate itself.
            State::Claiming(_, _) => {}
            // Already leads, or is about to resume.
            State::Active(_, _, _) | State::Paused(_, _, Resuming::Beating(_) | Resuming::Reading { .. }) => {
            }
            // A candidate that waited has just fallen back.
            State::Standby(_, _) => {}
            // Leaving: the campaign deletes the candidate that it finds.
            State::Idle(_) | State::Leaving(_, _) => {}
        }
    }

    /// Ends a wait, a claim or a term; the candidacy continues.
    fn fall_back(&mut self, why: Why, out: &mut Vec<Effect>) {
        self.state = match self.take() {
            State::Claiming(campaign, _) | State::Standby(campaign, _) => State::Campaigning(campaign),
            State::Active(campaign, tenure, _) | State::Paused(campaign, tenure, _) => {
                let epoch = tenure.term.epoch();
                out.push(Effect::Lost { epoch, why });
                self.hold(tenure.term, why);
                State::Campaigning(campaign)
            }
            // There is no wait, no claim and no term.
            state @ (State::Idle(_) | State::Campaigning(_) | State::Leaving(_, _)) => state,
        };
    }

    /// Ends the candidacy, and the claim or term.
    fn leave(&mut self, now: Millis, why: Why, after: After, out: &mut Vec<Effect>) {
        self.fall_back(why, out);
        self.state = match self.take() {
            State::Campaigning(campaign) => State::Leaving(campaign, after),
            // There is no candidacy, or it is ending; the other states have just fallen back.
            state @ (State::Idle(_)
            | State::Standby(_, _)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _)) => state,
        };
        self.feed(now, campaign::Event::Leave, out);
    }

    /// Starts a candidacy, if there is a session.
    fn campaign(&mut self, now: Millis, out: &mut Vec<Effect>) {
        let Some(session) = self.session.known() else {
            self.state = State::Idle(Idle::NoSession);
            return;
        };
        self.campaigns += 1;
        let who = Campaigner {
            strategy: self.config.strategy,
            node: self.config.node.clone(),
            session: session.id,
            uuid: hashed(self.config.identity, session.id),
            number: self.campaigns,
        };
        self.state = State::Campaigning(Campaign::new(who));
        match self.session {
            KnownSession::Up(_) => self.feed(now, campaign::Event::Connected, out),
            // Starts when the session is connected.
            KnownSession::Down(_) | KnownSession::Gone => {}
        }
    }

    fn note(&mut self, found: Findings, out: &mut Vec<Effect>) {
        self.compare_held(found.epoch, out);
        let seen = [found.epoch.map(|seen| seen.version), found.beat.map(|beat| beat.epoch)];
        self.highest = seen.into_iter().flatten().fold(self.highest, i32::max);
    }

    fn draw(&mut self) -> Uuid {
        self.drawn += 1;
        hashed(self.config.seed, self.drawn.cast_signed())
    }

    /// The caller must set the next state immediately.
    fn take(&mut self) -> State {
        mem::replace(&mut self.state, State::Idle(Idle::NoSession))
    }
}

/// Derives a distinct UUID for each number.
fn hashed(seed: Uuid, number: i64) -> Uuid {
    let mut bytes = seed.into_bytes().to_vec();
    bytes.extend_from_slice(&number.to_le_bytes());
    uuid::Builder::from_random_bytes(xxh3_128(&bytes).to_le_bytes()).into_uuid()
}

#[cfg(test)]
mod tests;
