//! Drives one machine step by step: answers its requests and describes its effects as text.

use std::time::Duration;

use uuid::Uuid;

use crate::failover::Failover;
use crate::machine::election::campaign::{self, Strategy, Ticket};
use crate::machine::election::leadership::*;
use crate::name::NodeId;
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;
use crate::txn::Seat;

pub(super) const SESSION: i64 = 7;
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// [`lease`] of [`TIMEOUT`] in milliseconds, counted from 0.
pub(super) const LEASE: u64 = 9_000;
/// The default times of a namespace, in milliseconds.
pub(super) const BEAT: u64 = 1_000;
pub(super) const TRUST: u64 = 2_700;
pub(super) const WAIT: u64 = 3_000;

pub(super) struct Driver {
    pub(super) machine: Leadership,
    pub(super) now: Millis,
    pub(super) effects: Vec<Effect>,
    /// The last request, which awaits its answer.
    pub(super) asked: Option<(Ticket, Request)>,
    /// The last watch on `/leading`.
    pub(super) watch: Option<Ticket>,
    /// The candidate's name without its sequence number.
    prefix: String,
}

pub(super) fn rejected<T>(at: usize, reason: Reason) -> Outcome<T> {
    Outcome::Rejected(Rejection { at, reason })
}

pub(super) fn connected(session: i64) -> Event {
    Event::Connected { session, timeout: TIMEOUT, failover: Failover::default() }
}

/// A beat that was written by the transaction of this number.
pub(super) fn beat_of(written: i64) -> Option<Beat> {
    Some(Beat { version: 3, written, epoch: 0 })
}

impl Driver {
    pub(super) fn new() -> Self {
        Self::with(Policy::AtMostOne)
    }

    pub(super) fn with(policy: Policy) -> Self {
        let node = NodeId::new("a").unwrap();
        let identity = Uuid::from_u128(1);
        let config = Config { node, strategy: Strategy::Queue, policy, identity, seed: Uuid::from_u128(2) };
        Self {
            machine: Leadership::new(config),
            now: Millis(0),
            effects: Vec::new(),
            asked: None,
            watch: None,
            prefix: String::new(),
        }
    }

    pub(super) fn on(mut self, event: Event) -> Self {
        self.effects.clear();
        self.machine.handle(self.now, event, &mut self.effects);
        for effect in &self.effects {
            let Effect::Send(ticket, request) = effect else { continue };
            if let Request::Campaign(campaign::Request::CreateSequential { prefix, .. }) = request {
                self.prefix = prefix.strip_prefix("/election/").unwrap().to_owned();
            }
            match request {
                Request::Campaign(campaign::Request::Watch { .. }) => {}
                Request::WatchBeats => self.watch = Some(*ticket),
                request => self.asked = Some((*ticket, request.clone())),
            }
        }
        self
    }

    pub(super) fn at(mut self, now: u64) -> Self {
        self.now = Millis(now);
        self
    }

    /// Answers an earlier request next.
    pub(super) fn awaiting(self, asked: Option<(Ticket, Request)>) -> Self {
        Self { asked, ..self }
    }

    pub(super) fn answer(self, reply: Reply) -> Self {
        let (ticket, _) = self.asked.clone().expect("a request is awaited");
        self.on(Event::Reply(ticket, reply))
    }

    pub(super) fn connected(self) -> Self {
        self.on(connected(SESSION))
    }

    pub(super) fn disconnected(self) -> Self {
        self.on(Event::Disconnected { session: SESSION })
    }

    /// Answers a look with this node's candidate, if `ours`, and another one before or after it.
    pub(super) fn looked(self, ours: Option<u32>, other: Option<u32>) -> Self {
        let foreign = format!("{}-n-", Uuid::from_u128(99).hyphenated());
        let names = [(&self.prefix, ours), (&foreign, other)];
        let names = names.iter().filter_map(|(name, n)| n.map(|n| format!("{name}{n:010}"))).collect();
        self.answer(Reply::Campaign(campaign::Reply::Listed(Outcome::Applied(names))))
    }

    /// Connected, with candidate number `n` just created.
    pub(super) fn ran(self, n: u32, other: Option<u32>) -> Self {
        let created = Reply::Campaign(campaign::Reply::Created(Outcome::Applied(())));
        self.looked(None, other).answer(created).looked(Some(n), other)
    }

    /// Connected, with so many candidates before its own.
    pub(super) fn behind(self, others: u32) -> Self {
        let created = Reply::Campaign(campaign::Reply::Created(Outcome::Applied(())));
        self.looked(None, None).answer(created).looked_behind(others)
    }

    /// Answers a look with this node's candidate behind so many others.
    pub(super) fn looked_behind(self, others: u32) -> Self {
        let other = |n: u32| format!("{}-n-{n:010}", Uuid::from_u128(90 + u128::from(n)).hyphenated());
        let own = format!("{}{others:010}", self.prefix);
        let names = (0..others).map(other).chain([own]).collect();
        self.answer(Reply::Campaign(campaign::Reply::Listed(Outcome::Applied(names))))
    }

    pub(super) fn epoch(self, version: i32, token: Option<Uuid>) -> Self {
        self.read(Some(Sighting { version, token }))
    }

    /// Answers a read with this content of `/epoch`.
    pub(super) fn read(self, epoch: Option<Sighting>) -> Self {
        let found = Findings { owner: Some(SESSION), epoch, beat: beat_of(1) };
        self.answer(Reply::Read(Outcome::Applied(found)))
    }

    /// Answers a read with an epoch, and the session that owns the candidate.
    pub(super) fn read_of(self, owner: i64, epoch: Option<Sighting>) -> Self {
        let found = Findings { owner: Some(owner), epoch, beat: None };
        self.answer(Reply::Read(Outcome::Applied(found)))
    }

    /// Answers a read of the next candidate with this beat.
    pub(super) fn heard(self, beat: Option<Beat>) -> Self {
        let epoch = Some(Sighting { version: 4, token: None });
        self.answer(Reply::Read(Outcome::Applied(Findings { owner: Some(SESSION), epoch, beat })))
    }

    pub(super) fn claim(&self) -> crate::txn::Claim {
        match &self.asked {
            Some((_, Request::Claim(claim))) => claim.clone(),
            other => panic!("expected a claim, got {other:?}"),
        }
    }

    /// Active with epoch 1 and candidate 1 at time 0.
    pub(super) fn active(self) -> Self {
        let run = self.connected().ran(1, None).epoch(0, None);
        let run = run.answer(Reply::Claimed(Outcome::Applied(())));
        assert!(matches!(run.machine.state(), LeadershipState::Active(_)), "{}", run.seen());
        run
    }

    pub(super) fn term(&self) -> Term {
        self.machine.term().expect("the machine has a term").clone()
    }

    /// Applies the beat in flight.
    /// Answers the read of a paused leader that was not replaced.
    pub(super) fn ours(self) -> Self {
        let (version, token) = (self.term().epoch(), self.term().token());
        self.epoch(version, Some(token))
    }

    pub(super) fn beaten(self) -> Self {
        self.answer(Reply::Beaten(Outcome::Applied(())))
    }

    /// `state: effect, effect`
    pub(super) fn seen(&self) -> String {
        let state = match self.machine.state() {
            LeadershipState::Inactive(Inactive::Idle) => "idle".to_owned(),
            LeadershipState::Inactive(Inactive::Campaigning) => "campaigning".to_owned(),
            LeadershipState::Inactive(Inactive::Standby) => "standby".to_owned(),
            LeadershipState::Inactive(Inactive::Leaving) => "leaving".to_owned(),
            LeadershipState::Active(term) => format!("active {}", term.epoch()),
            LeadershipState::Paused { term, until: Some(until) } => {
                format!("paused {} until {}", term.epoch(), until.0)
            }
            LeadershipState::Paused { term, until: None } => format!("paused {}", term.epoch()),
        };
        let effects: Vec<_> = self.effects.iter().map(word).collect();
        if effects.is_empty() { state } else { format!("{state}: {}", effects.join(", ")) }
    }
}

fn word(effect: &Effect) -> String {
    match effect {
        Effect::Tell(_) => "tell".to_owned(),
        Effect::Lost { epoch, why } => format!("lost {epoch} ({})", why.as_str()),
        Effect::Refused(rejection) => format!("refused ({})", rejection.reason),
        Effect::EpochsUsedUp => "epochs used up".to_owned(),
        Effect::Send(_, Request::Read { .. }) => "read".to_owned(),
        Effect::Send(_, Request::Claim(claim)) => match claim.seat() {
            Seat::First { .. } => format!("claim {}", claim.epoch()),
            Seat::Queued { .. } | Seat::Replacement => format!("replace by {}", claim.epoch()),
        },
        Effect::Send(_, Request::Beat { epoch, .. }) => format!("beat {epoch}"),
        Effect::Send(_, Request::WatchBeats) => "watch beats".to_owned(),
        Effect::Send(_, Request::Campaign(request)) => match request {
            campaign::Request::CreateParent { .. } => "create parent",
            campaign::Request::CreateSequential { .. } => "create candidate",
            campaign::Request::CreateEphemeral { .. } => "create leader",
            campaign::Request::List { .. } => "look",
            campaign::Request::Owner => "owner",
            campaign::Request::Watch { .. } => "watch",
            campaign::Request::Delete { .. } => "delete",
        }
        .to_owned(),
    }
}
