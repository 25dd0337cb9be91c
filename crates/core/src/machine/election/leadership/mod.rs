//! Leadership: from being first to being allowed to act, and back.
//!
//! # Why
//!
//! The first candidate is not yet a leader: its predecessor may be frozen with writes on the way. So it first raises
//! `/epoch`, in one multi that also checks its candidate znode, and fences every write of the [`Term`] with that
//! version (S3). From then on nothing that a predecessor sends can commit.
//!
//! That makes stale *writes* harmless. Two *actors* at a time (S5) are prevented by trust: a session certainly lives
//! for its timeout after the server last heard of it, so a leader trusts itself until the sending of its last
//! answered request plus a [`lease`], and no longer. It renews that trust by verifying its two znodes four times per
//! lease. It never waits to be told that the session has expired: the client tells that late.
//!
//! # States and events
//!
//! | state | Connected | Disconnected | Expired | first | claim applied | trust lapsed | StepDown | FencedOut |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | Idle | campaign, unless out | – | – | – | – | – | stay out | – |
//! | Campaigning | look | stay | Idle | Claiming | – | – | Leaving | – |
//! | Claiming | – | Campaigning | Idle | – | **Active** | – | Leaving | – |
//! | Active | – | **Paused** | Idle | other candidate: Claiming | – | Campaigning | Leaving | Leaving, then afresh |
//! | Paused | look | – | Idle | verify ⇒ **Active**, same term | – | Campaigning | Leaving | Leaving, then afresh |
//! | Leaving | look | stay | Idle | – | – | – | stay out after | – |
//!
//! To the outside, Idle, Campaigning, Claiming and Leaving are [`LeadershipState::Inactive`]. *First* is the campaign's word
//! ([`Candidacy::First`]), told after each look. When the campaign finds its candidate gone or preceded, Claiming, Active and
//! Paused fall back to Campaigning. A session that changes without an Expired is taken as expired.
//!
//! A claim: read `/epoch`, write ([`crate::txn::Claim`]), and
//!
//! * applied ⇒ Active; unknown ⇒ read back: our token ⇒ Active, else look again and decide anew;
//! * the candidate's check failed ⇒ the candidate is gone or was written to: leave it, campaign afresh;
//! * the epoch's version moved ⇒ look again, and claim again while still first.
//!
//! # Time
//!
//! Every event is preceded by the question whether trust has lapsed, so an actor that wakes from a freeze (SIGSTOP)
//! ends its term whatever event it handles first; only evidence in that event itself (an answered verification) counts
//! before. Between events [`Leadership::may_act`] asks the clock as well.
//!
//! # Recovery and limits
//!
//! * A term that lapsed is never resumed, even when the session turns out to live: the epoch is claimed anew.
//! * `/epoch` deleted by an operator ends the term at the next verification or write. The next claim creates it and passes
//!   over every epoch that its process has seen. Another process may use an epoch again that it has not seen; until the old
//!   leader's next verification or write finds that out, the fence does not tell the two apart.
//! * A candidate znode deleted by an operator makes the next candidate lead. The old leader's watch on its own znode
//!   ends its term as soon as the event arrives, which no clock bounds; its writes are rejected from the new claim on.
//! * Times are compared with this process's monotonic clock only.

mod claiming;
mod event;
mod state;
mod term;
mod verifying;

use std::mem;
use std::time::Duration;

use uuid::Uuid;
use xxhash_rust::xxh3::xxh3_128;

pub use self::event::{Effect, Event, Findings, Inactive, LeadershipState, Reply, Request, Sighting, Why};
use self::state::{After, Idle, KnownSession, Renewal, Session, State};
pub use self::term::Term;
use self::verifying::verify;
use crate::machine::election::campaign::{self, Campaign, Campaigner, Candidacy, Strategy};
use crate::name::NodeId;
use crate::time::Millis;

/// How often trust is renewed per lease: three verifications may be lost before it lapses.
const RENEWALS_PER_LEASE: u32 = 4;

/// How long after the sending of an answered request its session is trusted to live. The tenth that is kept back
/// covers clocks that run at different speeds, and the time from the decision to stop until the last act.
#[must_use]
pub fn lease(session_timeout: Duration) -> Duration {
    session_timeout - session_timeout / 10
}

/// Whether a leader that is cut off acts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Policy {
    /// It does not: never do two nodes act at once.
    #[default]
    AtMostOne,
    /// It does, until it is told that it is not the leader: two nodes may act at once, rather than none. Its
    /// fenced writes are rejected all the same.
    AtLeastOne,
}

/// What leadership is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Config {
    /// The node's name, for people.
    pub node: NodeId,
    /// How candidates are ordered.
    pub strategy: Strategy,
    /// Whether a leader that is cut off acts.
    pub policy: Policy,
    /// Random, made once per process: a machine that is started again on the same session finds the candidate of
    /// the one before it, and does not queue behind it.
    pub identity: Uuid,
    /// Random, made for this machine alone: the tokens of its claims are drawn from it.
    pub seed: Uuid,
}

/// One node's part in the election.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Leadership {
    config: Config,
    /// Tokens drawn from the seed.
    drawn: u64,
    campaigns: u64,
    /// The highest version of `/epoch` that was ever seen, or that a claim of ours may have made.
    highest: i32,
    session: KnownSession,
    state: State,
}

impl Leadership {
    /// Takes part with the first [`Event::Connected`].
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            drawn: 0,
            campaigns: 0,
            highest: 0,
            session: KnownSession::Gone,
            state: State::Idle(Idle::NoSession),
        }
    }

    /// The state as the outside sees it.
    #[must_use]
    pub fn state(&self) -> LeadershipState {
        self.state.told()
    }

    /// The term, in Active and Paused.
    #[must_use]
    pub fn term(&self) -> Option<&Term> {
        self.state.tenure().map(|tenure| &tenure.term)
    }

    /// Until when the term is trusted without further news.
    #[must_use]
    pub fn trusted_until(&self) -> Option<Millis> {
        self.state.tenure().map(|tenure| tenure.trusted_until)
    }

    /// Whether the node may act as the leader now.
    #[must_use]
    pub fn may_act(&self, now: Millis) -> bool {
        self.may_act_until().is_some_and(|until| now < until)
    }

    /// Until when the node may act as the leader, should nothing more be heard.
    #[must_use]
    pub fn may_act_until(&self) -> Option<Millis> {
        match (&self.state, self.config.policy) {
            (State::Active(_, tenure, _), Policy::AtMostOne) => Some(tenure.trusted_until),
            (State::Active(_, _, _) | State::Paused(_, _, _), Policy::AtLeastOne) => Some(Millis(u64::MAX)),
            (State::Paused(_, _, _), Policy::AtMostOne) => None,
            (
                State::Idle(_) | State::Campaigning(_) | State::Claiming(_, _) | State::Leaving(_, _),
                Policy::AtMostOne | Policy::AtLeastOne,
            ) => None,
        }
    }

    /// When it wants an [`Event::Tick`] at the latest. Ask again after every event.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        self.state.next_wake()
    }

    /// Takes an event and pushes what should happen. A change of the state stands before any request, so that whoever
    /// must stop acting hears of it before anything is given up.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        let before = self.state();
        let start = out.len();
        self.learn(&event);
        self.lapse(now, out);
        match event {
            Event::Connected { session, timeout } => self.connected(now, session, timeout, out),
            Event::Disconnected { session } => self.disconnected(now, session, out),
            Event::Expired { session } => self.expired(session, out),
            // Learnt already.
            Event::Trust { .. } => {}
            Event::Stand => self.join(now, out),
            Event::StepDown => self.step_down(now, out),
            Event::FencedOut { epoch } => self.fenced_out(now, epoch, out),
            Event::Tick => self.tick(now, out),
            Event::Reply(ticket, Reply::Campaign(reply)) => {
                self.feed(now, campaign::Event::Reply(ticket, reply), out);
            }
            Event::Reply(ticket, Reply::Epoch(outcome)) => self.epoch_read(now, ticket, outcome, out),
            Event::Reply(ticket, Reply::Claimed(outcome)) => self.claim_answered(now, ticket, outcome, out),
            Event::Reply(ticket, Reply::Verified(outcome)) => self.verified(now, ticket, outcome, out),
        }
        let after = self.state();
        if after != before {
            out.insert(start, Effect::Tell(after));
        }
    }

    fn connected(&mut self, now: Millis, id: i64, timeout: Duration, out: &mut Vec<Effect>) {
        if let Some(old) = self.session.known().filter(|session| session.id != id) {
            self.expired(old.id, out);
        }
        let lease = lease(timeout);
        self.session = KnownSession::Up(Session { id, lease });
        match self.state {
            State::Idle(Idle::NoSession) => self.campaign(now, out),
            // Stays out until asked.
            State::Idle(Idle::Out) => {}
            State::Campaigning(_)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _) => self.feed(now, campaign::Event::Connected, out),
        }
    }

    fn disconnected(&mut self, now: Millis, id: i64, out: &mut Vec<Effect>) {
        match self.session {
            KnownSession::Up(session) if session.id == id => self.session = KnownSession::Down(session),
            // Of another session, or known.
            KnownSession::Up(_) | KnownSession::Down(_) | KnownSession::Gone => return,
        }
        self.state = match self.take() {
            // The reply may be lost; what became of the claim is seen when we look again.
            State::Claiming(campaign, _) => State::Campaigning(campaign),
            State::Active(campaign, tenure, _) => {
                let (epoch, why) = (tenure.term.epoch(), Why::Disconnected);
                out.push(Effect::Lost { epoch, why });
                State::Paused(campaign, tenure, None)
            }
            // The verification is asked again after the next look.
            State::Paused(campaign, tenure, _) => State::Paused(campaign, tenure, None),
            // Has nothing to lose.
            state @ (State::Idle(_) | State::Campaigning(_) | State::Leaving(_, _)) => state,
        };
        self.feed(now, campaign::Event::Disconnected, out);
    }

    fn expired(&mut self, id: i64, out: &mut Vec<Effect>) {
        if !self.session.is_of(id) {
            // Of another session.
            return;
        }
        self.session = KnownSession::Gone;
        self.fall_back(Why::Expired, out);
        self.state = State::Idle(match self.take() {
            State::Idle(idle) => idle,
            State::Leaving(_, After::Out) => Idle::Out,
            State::Campaigning(_)
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
            // Takes part already.
            State::Idle(Idle::NoSession)
            | State::Campaigning(_)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _) => {}
        }
    }

    fn step_down(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match &mut self.state {
            State::Idle(idle) => *idle = Idle::Out,
            State::Leaving(_, after) => *after = After::Out,
            State::Campaigning(_)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _) => self.leave(now, Why::SteppedDown, After::Out, out),
        }
    }

    fn fenced_out(&mut self, now: Millis, epoch: i32, out: &mut Vec<Effect>) {
        if self.term().is_some_and(|term| term.epoch() == epoch) {
            self.leave(now, Why::FencedOut, After::Afresh, out);
        }
        // Else a write of an earlier term: no news.
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Effect>) {
        self.feed(now, campaign::Event::Tick, out);
        if let State::Active(campaign, tenure, renewal) = &mut self.state
            && let Renewal::Due(at) = *renewal
            && now >= at
        {
            *renewal = Renewal::Asked(verify(now, campaign, tenure, out));
        }
    }

    /// Hands an event to the campaign, if there is one, and acts on what it says.
    fn feed(&mut self, now: Millis, event: campaign::Event, out: &mut Vec<Effect>) {
        let Some(campaign) = self.state.campaign_mut() else {
            // A reply to a campaign that is over.
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
            Candidacy::Running | Candidacy::Behind { .. } => self.fall_back(Why::CandidateGone, out),
            Candidacy::First { candidate } => self.first(now, candidate, out),
            Candidacy::Left => match self.state {
                State::Leaving(_, After::Out) => self.state = State::Idle(Idle::Out),
                State::Leaving(_, After::Afresh) => self.campaign(now, out),
                // Only Leaving tells a campaign to leave.
                State::Idle(_)
                | State::Campaigning(_)
                | State::Claiming(_, _)
                | State::Active(_, _, _)
                | State::Paused(_, _, _) => {}
            },
        }
    }

    fn first(&mut self, now: Millis, candidate: String, out: &mut Vec<Effect>) {
        if self.term().is_some_and(|term| term.candidate() != candidate) {
            self.fall_back(Why::CandidateGone, out);
        }
        match &mut self.state {
            State::Campaigning(_) => self.read_epoch(candidate, out),
            State::Paused(campaign, tenure, asked @ None) => {
                *asked = Some(verify(now, campaign, tenure, out));
            }
            // The claim under way checks the candidate itself.
            State::Claiming(_, _) => {}
            // As it should be.
            State::Active(_, _, _) | State::Paused(_, _, Some(_)) => {}
            // On its way out: the campaign deletes what it finds.
            State::Idle(_) | State::Leaving(_, _) => {}
        }
    }

    /// Ends a claim or a term; the candidacy goes on.
    fn fall_back(&mut self, why: Why, out: &mut Vec<Effect>) {
        self.state = match self.take() {
            State::Claiming(campaign, _) => State::Campaigning(campaign),
            State::Active(campaign, tenure, _) | State::Paused(campaign, tenure, _) => {
                let epoch = tenure.term.epoch();
                out.push(Effect::Lost { epoch, why });
                State::Campaigning(campaign)
            }
            // Has neither.
            state @ (State::Idle(_) | State::Campaigning(_) | State::Leaving(_, _)) => state,
        };
    }

    /// Ends the candidacy, and what was built on it.
    fn leave(&mut self, now: Millis, why: Why, after: After, out: &mut Vec<Effect>) {
        self.fall_back(why, out);
        self.state = match self.take() {
            State::Campaigning(campaign) => State::Leaving(campaign, after),
            // Has no candidacy, or leaves already; the rest has just fallen back.
            state @ (State::Idle(_)
            | State::Claiming(_, _)
            | State::Active(_, _, _)
            | State::Paused(_, _, _)
            | State::Leaving(_, _)) => state,
        };
        self.feed(now, campaign::Event::Leave, out);
    }

    /// Begins a candidacy, if there is a session for it.
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
            // Begins when it is connected.
            KnownSession::Down(_) | KnownSession::Gone => {}
        }
    }

    fn note(&mut self, seen: Option<Sighting>) {
        self.highest = seen.map_or(self.highest, |seen| self.highest.max(seen.version));
    }

    fn draw(&mut self) -> Uuid {
        self.drawn += 1;
        hashed(self.config.seed, self.drawn.cast_signed())
    }

    /// The caller puts the next state in its place at once.
    fn take(&mut self) -> State {
        mem::replace(&mut self.state, State::Idle(Idle::NoSession))
    }
}

/// A UUID of its own for each number.
fn hashed(seed: Uuid, number: i64) -> Uuid {
    let mut bytes = seed.into_bytes().to_vec();
    bytes.extend_from_slice(&number.to_le_bytes());
    uuid::Builder::from_random_bytes(xxh3_128(&bytes).to_le_bytes()).into_uuid()
}

#[cfg(test)]
mod tests;
