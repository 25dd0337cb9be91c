//! Drives one machine step by step: answers its requests and describes its effects as text.

use std::time::Duration;

use uuid::Uuid;

use crate::machine::election::campaign::{self, Strategy, Ticket};
use crate::machine::election::leadership::*;
use crate::name::NodeId;
use crate::outcome::{Outcome, Reason, Rejection};
use crate::time::Millis;

pub(super) const SESSION: i64 = 7;
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);
/// [`lease`] of [`TIMEOUT`] in milliseconds, counted from 0.
pub(super) const LEASE: u64 = 9_000;

pub(super) struct Driver {
    pub(super) machine: Leadership,
    pub(super) now: Millis,
    pub(super) effects: Vec<Effect>,
    /// The last request, which awaits its answer.
    pub(super) asked: Option<(Ticket, Request)>,
    /// The candidate's name without its sequence number.
    prefix: String,
}

pub(super) fn rejected<T>(at: usize, reason: Reason) -> Outcome<T> {
    Outcome::Rejected(Rejection { at, reason })
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
            if !matches!(request, Request::Campaign(campaign::Request::Watch { .. })) {
                self.asked = Some((*ticket, request.clone()));
            }
        }
        self
    }

    pub(super) fn at(mut self, now: u64) -> Self {
        self.now = Millis(now);
        self
    }

    pub(super) fn answer(self, reply: Reply) -> Self {
        let (ticket, _) = self.asked.clone().expect("a request is awaited");
        self.on(Event::Reply(ticket, reply))
    }

    pub(super) fn connected(self) -> Self {
        self.on(Event::Connected { session: SESSION, timeout: TIMEOUT })
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

    pub(super) fn epoch(self, version: i32, token: Option<Uuid>) -> Self {
        self.answer(Reply::Epoch(Outcome::Applied(Some(Sighting { version, token }))))
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

    /// Answers a verification of `term` without any change.
    pub(super) fn confirmed(self, term: &Term) -> Self {
        let epoch = Some(Sighting { version: term.epoch(), token: Some(term.token()) });
        self.answer(Reply::Verified(Outcome::Applied(Findings { owner: Some(SESSION), epoch })))
    }

    /// `state: effect, effect`
    pub(super) fn seen(&self) -> String {
        let state = match self.machine.state() {
            LeadershipState::Inactive(Inactive::Idle) => "idle".to_owned(),
            LeadershipState::Inactive(Inactive::Campaigning) => "campaigning".to_owned(),
            LeadershipState::Inactive(Inactive::Standby) => "standby".to_owned(),
            LeadershipState::Inactive(Inactive::Leaving) => "leaving".to_owned(),
            LeadershipState::Active(term) => format!("active {}", term.epoch()),
            LeadershipState::Paused { term, until } => format!("paused {} until {}", term.epoch(), until.0),
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
        Effect::Send(_, Request::ReadEpoch) => "read epoch".to_owned(),
        Effect::Send(_, Request::Claim(claim)) => format!("claim {}", claim.epoch()),
        Effect::Send(_, Request::Verify { .. }) => "verify".to_owned(),
        Effect::Send(_, Request::Campaign(request)) => match request {
            campaign::Request::CreateParent { .. } => "create parent",
            campaign::Request::CreateSequential { .. } => "create candidate",
            campaign::Request::CreateEphemeral { .. } => "create leader",
            campaign::Request::List { .. } => "look",
            campaign::Request::Owner { .. } => "owner",
            campaign::Request::Watch { .. } => "watch",
            campaign::Request::Delete { .. } => "delete",
        }
        .to_owned(),
    }
}
