//! The election actor: feeds [`Leadership`], as `actors/host/src/election` does.

use bellwether_core::machine::campaign::{self, Ticket};
use bellwether_core::machine::leadership::{
    Config, Effect, Event, Findings, Inactive, Leadership, Reply, Request, Sighting, Status,
};
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::time::Millis;
use bellwether_core::txn::{Lifetime, Op};

use super::context::{Context, Out, Route};
use super::leader::LeaderMsg;
use super::{Msg, leader};
use crate::history::Leading;
use crate::zk::ask::{self, Answer};
use crate::zk::{ReadResult, SessionEvent, Zk, Znode};

pub(crate) enum ElectionMsg {
    Session(SessionEvent),
    StepDown,
    FencedOut(i32),
    Reply(Ticket, Reply),
    /// The timer with this number.
    Tick(u64),
}

pub(crate) struct Election {
    machine: Leadership,
    zk: Option<Zk>,
    session: i64,
    timer: Option<Millis>,
    timers: u64,
    /// Whether the node leaves: it is told when the candidate is gone.
    leaving: bool,
    told: (Leading, i32, Option<Millis>),
}

impl Election {
    pub(crate) fn new(config: Config) -> Self {
        Self {
            machine: Leadership::new(config),
            zk: None,
            session: 0,
            timer: None,
            timers: 0,
            leaving: false,
            told: (Leading::Inactive, 0, None),
        }
    }

    pub(crate) fn handle(&mut self, cx: &mut Context<'_>, msg: ElectionMsg) {
        self.trust(cx);
        match msg {
            ElectionMsg::Session(event) => self.session(cx, event),
            ElectionMsg::StepDown => {
                self.leaving = true;
                self.feed(cx, Event::StepDown);
            }
            ElectionMsg::FencedOut(epoch) => self.feed(cx, Event::FencedOut { epoch }),
            ElectionMsg::Reply(ticket, reply) => self.feed(cx, Event::Reply(ticket, reply)),
            ElectionMsg::Tick(number) if number == self.timers => {
                self.timer = None;
                self.feed(cx, Event::Tick);
            }
            // One that was replaced.
            ElectionMsg::Tick(_) => {}
        }
        self.arm(cx);
    }

    fn session(&mut self, cx: &mut Context<'_>, event: SessionEvent) {
        if let SessionEvent::Connected(zk) = event {
            self.zk = Some(zk);
            self.session = cx.view.session;
        }
        if self.zk.is_none() {
            return;
        }
        let (session, timeout) = (self.session, std::time::Duration::from_micros(cx.view.timeout_us));
        match event {
            SessionEvent::Connected(_) | SessionEvent::Reconnected => {
                self.feed(cx, Event::Connected { session, timeout });
            }
            SessionEvent::Disconnected => self.feed(cx, Event::Disconnected { session }),
            SessionEvent::Expired => {
                self.zk = None;
                self.feed(cx, Event::Expired { session });
            }
        }
    }

    /// Any answered request on the session is evidence that it lives.
    fn trust(&mut self, cx: &mut Context<'_>) {
        if self.zk == Some(Zk(cx.view.generation)) {
            let until = Millis(cx.view.trusted_until_us() / 1_000);
            self.feed(cx, Event::Trust { session: self.session, until });
        }
    }

    fn feed(&mut self, cx: &mut Context<'_>, event: Event) {
        let mut effects = Vec::new();
        self.machine.handle(cx.now(), event, &mut effects);
        self.publish(cx);
        for effect in effects {
            match effect {
                Effect::Send(ticket, request) => self.send(cx, ticket, request),
                Effect::Tell(status) => self.tell(cx, status),
                Effect::Lost { .. } | Effect::Refused(_) | Effect::EpochsUsedUp => {}
            }
        }
        if self.leaving && self.machine.status() != Status::Inactive(Inactive::Leaving) {
            self.leaving = false;
            cx.out.push(Out::Left);
        }
    }

    /// The permit, and what it is for: whoever acts compares it with the clock.
    fn publish(&mut self, cx: &mut Context<'_>) {
        let until = self.machine.may_act_until();
        let epoch = self.machine.term().map_or(0, |term| term.epoch());
        let now = match self.machine.status() {
            Status::Active(_) => (Leading::Active, epoch, until),
            Status::Paused(_, until) => (Leading::Paused, epoch, Some(until)),
            Status::Inactive(_) => (Leading::Inactive, 0, None),
        };
        if self.told != now {
            self.told = now;
            cx.leads(self.session, now.1, now.0, now.2);
        }
    }

    fn tell(&mut self, cx: &mut Context<'_>, status: Status) {
        let msg = match (status, self.zk) {
            (Status::Active(term), Some(zk)) => LeaderMsg::Active(leader::Term { zk, epoch: term.epoch() }),
            (Status::Paused(..), _) => LeaderMsg::Paused,
            (Status::Inactive(_), _) => LeaderMsg::Inactive,
            (Status::Active(term), None) => unreachable!("{term:?} without a session"),
        };
        cx.tell(Route::ElectionToLeader, Msg::Leader(msg));
    }

    /// One timer, for the machine's next wish.
    fn arm(&mut self, cx: &mut Context<'_>) {
        let wake = self.machine.next_wake();
        if self.timer == wake {
            return;
        }
        self.timer = wake;
        self.timers += 1;
        if let Some(at) = wake {
            // The clock counts whole milliseconds: one more, so as not to wake just before it.
            let at = Millis(at.0.max(cx.now().0) + 1);
            cx.at(at, Msg::Election(ElectionMsg::Tick(self.timers)));
        }
    }

    fn send(&mut self, cx: &mut Context<'_>, ticket: Ticket, request: Request) {
        let Some(zk) = self.zk else { unreachable!("{request:?} is sent only while a session is connected") };
        let reply = move |reply| Msg::Election(ElectionMsg::Reply(ticket, reply));
        let campaigned = move |answer| reply(Reply::Campaign(answer));
        let created = move |answer: Answer| campaigned(campaign::Reply::Created(ask::written(answer)));
        match request {
            Request::Campaign(campaign::Request::Watch { path }) => {
                let there = move |answer| campaigned(campaign::Reply::Watched(outcome(ask::found(answer))));
                let changed = move || campaigned(campaign::Reply::Changed);
                cx.out.push(Out::Glance { zk, path, there: Box::new(there), changed: Box::new(changed) });
            }
            Request::Campaign(campaign::Request::CreateParent { path }) => {
                cx.ask(zk, create(path, Vec::new(), Lifetime::Persistent), created);
            }
            Request::Campaign(campaign::Request::CreateEphemeral { path, data }) => {
                cx.ask(zk, create(path, data, Lifetime::Ephemeral), created);
            }
            Request::Campaign(campaign::Request::CreateSequential { prefix, data }) => {
                cx.ask(zk, ask::create_sequential(prefix, data), created);
            }
            Request::Campaign(campaign::Request::List { path }) => {
                cx.children(zk, path.to_owned(), move |read| {
                    campaigned(campaign::Reply::Listed(present(outcome(read))))
                });
            }
            Request::Campaign(campaign::Request::Owner { path }) => {
                cx.get(zk, path.to_owned(), move |read| {
                    let owner = outcome(read).map(|node| node.map(|node| node.owner));
                    campaigned(campaign::Reply::Owner(owner))
                });
            }
            Request::Campaign(campaign::Request::Delete { path }) => {
                cx.commit(zk, &[Op::Delete { path, version: None }], move |outcome| {
                    campaigned(campaign::Reply::Deleted(outcome))
                });
            }
            Request::ReadEpoch => cx.get(zk, path::EPOCH.to_owned(), move |read| {
                reply(Reply::Epoch(outcome(read).map(|node| node.as_ref().map(sighting))))
            }),
            Request::Claim(claim) => {
                let ops = claim.ops(cx.node, cx.wall());
                cx.commit(zk, &ops, move |outcome| reply(Reply::Claimed(outcome)));
            }
            Request::Verify { candidate } => {
                let paths = [candidate, path::EPOCH.to_owned()];
                cx.get_many(zk, paths, move |read| reply(Reply::Verified(outcome(read).map(findings))));
            }
        }
    }
}

fn create(path: &str, data: Vec<u8>, lifetime: Lifetime) -> bellwether_keeper::proto::Request {
    ask::commit(&[Op::Create { path: path.to_owned(), data, lifetime }])
}

fn present(listed: Outcome<Option<Vec<String>>>) -> Outcome<Vec<String>> {
    match listed {
        Outcome::Applied(Some(children)) => Outcome::Applied(children),
        Outcome::Applied(None) => Outcome::Rejected(Rejection { at: 0, reason: Reason::NoNode }),
        Outcome::Rejected(rejection) => Outcome::Rejected(rejection),
        Outcome::Unknown => Outcome::Unknown,
    }
}

fn findings(nodes: Vec<Option<Znode>>) -> Findings {
    let [candidate, epoch] = nodes.as_slice() else { unreachable!("asked for two znodes") };
    Findings { owner: candidate.as_ref().map(|node| node.owner), epoch: epoch.as_ref().map(sighting) }
}

fn sighting(node: &Znode) -> Sighting {
    Sighting::new(node.version, &node.data).0
}

fn outcome<T>(read: ReadResult<T>) -> Outcome<T> {
    match read {
        Ok(value) => Outcome::Applied(value),
        Err(_) => Outcome::Unknown,
    }
}
