//! One node and its connection.

use std::collections::VecDeque;

use bellwether_core::machine::election::campaign::{self, Strategy, Ticket};
use bellwether_core::machine::election::leadership::{Config, Event, Leadership, Policy, Reply, Request};
use bellwether_core::name::NodeId;
use bellwether_core::outcome::Outcome;
use bellwether_core::time::Millis;
use uuid::Uuid;

/// On its way to ZooKeeper.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Sent {
    Request(Ticket, Request),
    /// A leader's write, fenced with its epoch.
    Write(i32),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Node {
    pub(crate) machine: Leadership,
    /// The session on the server; 0 before the first.
    pub(crate) session: i64,
    pub(crate) alive: bool,
    /// When the server heard of the session last.
    pub(crate) heard: Millis,
    pub(crate) up: bool,
    pub(crate) sent: VecDeque<Sent>,
    /// What a broken connection left in the network.
    pub(crate) late: VecDeque<Sent>,
    /// What the machine has not heard yet.
    pub(crate) mailbox: VecDeque<Event>,
    pub(crate) watch: Option<(Ticket, String)>,
    /// When the machine handled its last event.
    pub(crate) handled: Millis,
}

impl Node {
    pub(crate) fn new(n: usize, strategy: Strategy) -> Self {
        let identity = Uuid::from_u128(n as u128 + 1);
        let node = NodeId::new(format!("n{n}")).expect("a name");
        let config = Config { node, strategy, policy: Policy::AtMostOne, identity, seed: identity };
        Self {
            machine: Leadership::new(config),
            session: 0,
            alive: false,
            heard: Millis(0),
            up: false,
            sent: VecDeque::new(),
            late: VecDeque::new(),
            mailbox: VecDeque::new(),
            watch: None,
            handled: Millis(0),
        }
    }

    /// The connection breaks: what the machine hears. Whatever is unanswered is unknown, which it may be told before
    /// it is told of the break, or after.
    pub(crate) fn cut(&mut self, news: News) -> Vec<Event> {
        (self.up, self.watch) = (false, None);
        let unheard = std::mem::take(&mut self.mailbox);
        let sent = std::mem::take(&mut self.sent);
        let lost: Vec<_> =
            unheard.into_iter().filter_map(unheard_of).chain(sent.iter().filter_map(unserved)).collect();
        let broken = [Event::Disconnected { session: self.session }];
        self.late.extend(sent.into_iter().filter(writes));
        match news {
            News::First => broken.into_iter().chain(lost).collect(),
            News::Last => lost.into_iter().chain(broken).collect(),
        }
    }

    /// Whether a claim is the next to be served.
    pub(crate) fn claims(&self) -> bool {
        matches!(self.sent.front(), Some(Sent::Request(_, Request::Claim(_))))
    }

    /// Whether a reply is outstanding that the machine makes much of.
    pub(crate) fn awaits(&self) -> bool {
        let sent =
            self.sent.iter().any(|sent| matches!(sent, Sent::Request(_, request) if is_grave(request)));
        sent || !self.mailbox.is_empty()
    }

    /// The machine sends something, if there is anybody to send it to: else it hears at once what became of it.
    pub(crate) fn send(&mut self, ticket: Ticket, request: Request) -> Option<Event> {
        if self.up {
            self.sent.push_back(Sent::Request(ticket, request));
            return None;
        }
        Some(Event::Reply(ticket, unknown(&request)))
    }
}

/// When the machine is told that the connection broke: before or after it is told what is unknown because of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    First,
    Last,
}

/// Whether the reply means something by itself, when the world has gone on. That to any other request only leads to the
/// next request, so that it may as well be that one which is slow.
pub(crate) fn is_grave(request: &Request) -> bool {
    matches!(request, Request::Claim(_) | Request::Verify { .. })
}

/// Whether it changes anything when it is served late.
fn writes(sent: &Sent) -> bool {
    match sent {
        Sent::Write(_) | Sent::Request(_, Request::Claim(_)) => true,
        Sent::Request(_, Request::ReadEpoch | Request::Verify { .. }) => false,
        Sent::Request(_, Request::Campaign(request)) => match request {
            campaign::Request::CreateParent { .. }
            | campaign::Request::CreateSequential { .. }
            | campaign::Request::CreateEphemeral { .. }
            | campaign::Request::Delete { .. } => true,
            campaign::Request::List { .. }
            | campaign::Request::Owner { .. }
            | campaign::Request::Watch { .. } => false,
        },
    }
}

/// Whether it may be served after a reconnection, and after the end of its session. ZooKeeper does neither, but nothing
/// that a fence protects may depend on that; a request of the campaign does.
pub(crate) fn outlives_connection(sent: &Sent) -> bool {
    matches!(sent, Sent::Write(_) | Sent::Request(_, Request::Claim(_)))
}

/// What is left of an event that was on its way when the connection broke.
fn unheard_of(event: Event) -> Option<Event> {
    match event {
        Event::Reply(ticket, reply) => {
            let reply = match reply {
                Reply::Epoch(_) => Reply::Epoch(Outcome::Unknown),
                Reply::Claimed(_) => Reply::Claimed(Outcome::Unknown),
                Reply::Verified(_) => Reply::Verified(Outcome::Unknown),
                Reply::Campaign(reply) => Reply::Campaign(match reply {
                    campaign::Reply::Created(_) => campaign::Reply::Created(Outcome::Unknown),
                    campaign::Reply::Listed(_) => campaign::Reply::Listed(Outcome::Unknown),
                    campaign::Reply::Owner(_) => campaign::Reply::Owner(Outcome::Unknown),
                    campaign::Reply::Watched(_) => campaign::Reply::Watched(Outcome::Unknown),
                    campaign::Reply::Deleted(_) => campaign::Reply::Deleted(Outcome::Unknown),
                    campaign::Reply::Changed => return None,
                }),
            };
            Some(Event::Reply(ticket, reply))
        }
        Event::FencedOut { .. }
        | Event::Connected { .. }
        | Event::Disconnected { .. }
        | Event::Expired { .. }
        | Event::Trust { .. }
        | Event::Stand
        | Event::StepDown
        | Event::Tick => None,
    }
}

fn unserved(sent: &Sent) -> Option<Event> {
    match sent {
        Sent::Request(ticket, request) => Some(Event::Reply(*ticket, unknown(request))),
        Sent::Write(_) => None,
    }
}

fn unknown(request: &Request) -> Reply {
    match request {
        Request::ReadEpoch => Reply::Epoch(Outcome::Unknown),
        Request::Claim(_) => Reply::Claimed(Outcome::Unknown),
        Request::Verify { .. } => Reply::Verified(Outcome::Unknown),
        Request::Campaign(request) => Reply::Campaign(match request {
            campaign::Request::CreateParent { .. }
            | campaign::Request::CreateSequential { .. }
            | campaign::Request::CreateEphemeral { .. } => campaign::Reply::Created(Outcome::Unknown),
            campaign::Request::List { .. } => campaign::Reply::Listed(Outcome::Unknown),
            campaign::Request::Owner { .. } => campaign::Reply::Owner(Outcome::Unknown),
            campaign::Request::Watch { .. } => campaign::Reply::Watched(Outcome::Unknown),
            campaign::Request::Delete { .. } => campaign::Reply::Deleted(Outcome::Unknown),
        }),
    }
}
