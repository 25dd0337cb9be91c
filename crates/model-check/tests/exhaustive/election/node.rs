//! One node and its connection.

use std::collections::{BTreeMap, VecDeque};

use bellwether_core::machine::election::campaign::{self, Strategy, Ticket, WatchTarget};
use bellwether_core::machine::election::leadership::{Config, Event, Leadership, Policy, Reply, Request};
use bellwether_core::name::NodeId;
use bellwether_core::outcome::Outcome;
use bellwether_core::time::Millis;
use uuid::Uuid;

/// A request in flight.
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
    /// When the server last heard from the session.
    pub(crate) heard: Millis,
    pub(crate) up: bool,
    pub(crate) sent: VecDeque<Sent>,
    /// Requests of a broken connection that are still in flight.
    pub(crate) late: VecDeque<Sent>,
    /// Events that the machine has not handled yet.
    pub(crate) mailbox: VecDeque<Event>,
    /// The watches of the campaign.
    pub(crate) watches: BTreeMap<WatchTarget, (Ticket, String)>,
    /// The watch on `/leading`.
    pub(crate) beats: Option<Ticket>,
    /// When the machine handled its last event.
    pub(crate) handled: Millis,
    /// Under `AtLeastOne`: it has led, and has not learned of a successor since then.
    pub(crate) leads_on: bool,
}

impl Node {
    pub(crate) fn new(n: usize, strategy: Strategy, policy: Policy) -> Self {
        let identity = Uuid::from_u128(n as u128 + 1);
        let node = NodeId::new(format!("n{n}")).expect("a valid name");
        let config = Config { node, strategy, policy, identity, seed: identity };
        Self {
            machine: Leadership::new(config),
            session: 0,
            alive: false,
            heard: Millis(0),
            up: false,
            sent: VecDeque::new(),
            late: VecDeque::new(),
            mailbox: VecDeque::new(),
            watches: BTreeMap::new(),
            beats: None,
            handled: Millis(0),
            leads_on: false,
        }
    }

    /// The connection breaks. Returns the events for the machine: every request without a reply becomes unknown, and
    /// the machine may see that before or after the event of the break.
    pub(crate) fn cut(&mut self, news: News) -> Vec<Event> {
        (self.up, self.beats) = (false, None);
        self.watches.clear();
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

    /// Returns whether the next request is a claim.
    pub(crate) fn claims(&self) -> bool {
        matches!(self.sent.front(), Some(Sent::Request(_, Request::Claim(_))))
    }

    /// Returns whether the first request is served in one step with the one after it; `None` without a request. These are the
    /// watches of a candidate that stands by, and the read after them: a change in between is seen by that read, or causes a
    /// look or another read, whether a watch fires or finds no znode.
    pub(crate) fn joins_the_next(&self) -> Option<bool> {
        let watches_predecessor = |sent: &Sent| {
            let Sent::Request(_, Request::Campaign(request)) = sent else { return false };
            matches!(request, campaign::Request::Watch { target, .. } if *target != WatchTarget::Own)
        };
        let watches_beats = |sent: &Sent| matches!(sent, Sent::Request(_, Request::WatchBeats));
        let first = self.sent.front()?;
        let next = self.sent.get(1);
        let joins = watches_beats(first)
            || watches_predecessor(first)
                && next.is_some_and(|next| watches_predecessor(next) || watches_beats(next));
        Some(joins && next.is_some())
    }

    /// Returns whether a reply with a lasting effect is outstanding.
    pub(crate) fn awaits(&self) -> bool {
        let sent =
            self.sent.iter().any(|sent| matches!(sent, Sent::Request(_, request) if is_grave(request)));
        sent || !self.mailbox.is_empty()
    }

    /// Sends a request. If the node is not connected, returns the event of the failure.
    pub(crate) fn send(&mut self, ticket: Ticket, request: Request) -> Option<Event> {
        if self.up {
            self.sent.push_back(Sent::Request(ticket, request));
            return None;
        }
        Some(Event::Reply(ticket, unknown(&request)))
    }
}

/// The order of the event of the break and the events of the unknown requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    First,
    Last,
}

/// Returns whether the reply has an effect even if it is late. A reply to any other request only causes the next
/// request, so a delay of that one covers it.
pub(crate) fn is_grave(request: &Request) -> bool {
    matches!(request, Request::Claim(_) | Request::Beat { .. })
}

/// Returns whether the request changes anything when it is served late.
fn writes(sent: &Sent) -> bool {
    match sent {
        Sent::Write(_) | Sent::Request(_, Request::Claim(_) | Request::Beat { .. }) => true,
        Sent::Request(_, Request::Read { .. } | Request::WatchBeats) => false,
        Sent::Request(_, Request::Campaign(request)) => match request {
            campaign::Request::CreateParent { .. }
            | campaign::Request::CreateSequential { .. }
            | campaign::Request::CreateEphemeral { .. }
            | campaign::Request::Delete { .. } => true,
            campaign::Request::List { .. } | campaign::Request::Owner | campaign::Request::Watch { .. } => {
                false
            }
        },
    }
}

/// Returns whether the request may be served after a reconnection, and after the end of its session. ZooKeeper does
/// neither, but the safety of fenced writes must not depend on it. The requests of the campaign do depend on it.
pub(crate) fn outlives_connection(sent: &Sent) -> bool {
    matches!(sent, Sent::Write(_) | Sent::Request(_, Request::Claim(_) | Request::Beat { .. }))
}

/// Returns what remains of an event that was in flight when the connection broke.
fn unheard_of(event: Event) -> Option<Event> {
    match event {
        Event::Reply(ticket, reply) => {
            let reply = match reply {
                Reply::Read(_) => Reply::Read(Outcome::Unknown),
                Reply::Claimed(_) => Reply::Claimed(Outcome::Unknown),
                Reply::Beaten(_) => Reply::Beaten(Outcome::Unknown),
                Reply::Watched(_) => Reply::Watched(Outcome::Unknown),
                Reply::Changed => return None,
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
        Request::Read { .. } => Reply::Read(Outcome::Unknown),
        Request::Claim(_) => Reply::Claimed(Outcome::Unknown),
        Request::Beat { .. } => Reply::Beaten(Outcome::Unknown),
        Request::WatchBeats => Reply::Watched(Outcome::Unknown),
        Request::Campaign(request) => Reply::Campaign(match request {
            campaign::Request::CreateParent { .. }
            | campaign::Request::CreateSequential { .. }
            | campaign::Request::CreateEphemeral { .. } => campaign::Reply::Created(Outcome::Unknown),
            campaign::Request::List { .. } => campaign::Reply::Listed(Outcome::Unknown),
            campaign::Request::Owner => campaign::Reply::Owner(Outcome::Unknown),
            campaign::Request::Watch { .. } => campaign::Reply::Watched(Outcome::Unknown),
            campaign::Request::Delete { .. } => campaign::Reply::Deleted(Outcome::Unknown),
        }),
    }
}
