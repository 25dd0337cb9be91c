//! The election recipe: from a session to the first candidate.
//!
//! # Why it reads so often
//!
//! A campaign is a loop around one question: what is the position of this candidate? It looks (reads the candidates),
//! and the result decides the next single request. After that request's reply, whatever it is, it looks again. So a
//! lost reply is not a special case: the create may or may not have been applied, and the look shows it, because the
//! candidate's name contains a UUID of this process and session ([`Strategy::Queue`]), or because the znode names its
//! owner ([`Strategy::Single`]).
//!
//! Two creates of one campaign may both be applied: the first one's reply was lost, the look did not see its effect
//! yet, and a second create followed. ZooKeeper applies no request of a session's older connection after one of its
//! newer connection, so the look after the second create sees both, and the surplus candidate is deleted. No candidate
//! is leaked, and the lowest one stays.
//!
//! * `Queue`: `/election/{uuid}-n-{sequence}`. The lowest sequence is first. Every other candidate watches its three
//!   nearest predecessors, so the end of a leader wakes three candidates instead of all. Fewer watches are not enough: the second
//!   and the third candidate may claim, so a candidate must learn that it became third although two predecessors still exist.
//! * `Single`: `/leader`. The creator is first; all others watch the znode and wake when it is deleted. This needs
//!   fewer requests and suits a handful of candidates.
//!
//! Being first is a hint, not a permission: [`super::leadership`] must claim the epoch first. It also replaces a first
//! candidate that is silent: the second or third one in the queue, or any other of the strategy `single`, may claim then
//! ([`Candidacy::Behind`]).
//!
//! # States and events
//!
//! | state | Connected | Disconnected | Tick | Look | Again | Leave | its reply |
//! | --- | --- | --- | --- | --- | --- | --- | --- |
//! | Offline | look | – | – | – | – | leave later | – |
//! | Resting | look | Offline | look when due | look | – | look | – |
//! | Looking | – | Offline | – | – | – | leave afterwards | decide; unknown: rest |
//! | Creating | – | Offline | – | – | – | leave afterwards | look; no parent: Repairing; refused: rest |
//! | Repairing | – | Offline | – | – | – | leave afterwards | look; refused: rest |
//! | Deleting | – | Offline | – | – | – | leave afterwards | look; refused: rest |
//! | Standby | look | Offline | look after `SWEEP` | look | rest | look | watch fired or znode absent: look; failed: rest |
//! | First | look | Offline | – | look | rest | look | own znode changed: look; failed: rest |
//! | Left | – | – | – | – | – | – | – |
//!
//! Decision after a look. To leave: no candidate ⇒ Left; a candidate ⇒ Deleting. To stand: no candidate ⇒ Creating; two
//! candidates ⇒ Deleting the later one; another one precedes it ⇒ Standby; else ⇒ First.
//!
//! # Recovery and limits
//!
//! A disconnection forgets every outstanding request: a late reply has a ticket that is no longer awaited. If an
//! operator deletes the candidate, it is created again. A missing `/election` is created again. The end of the session
//! ends the campaign: its owner drops it, and ZooKeeper deletes the znode. `Single` deletes `/leader` only
//! after a look that showed this session as its owner, and only if no node has claimed since ([`crate::txn::unclaimed_since`]):
//! the znode of a leader that has replaced it has the same path and version. If in between an operator deletes the znode and
//! another node creates it, that node's znode may be deleted before it claims, and the node campaigns again.

mod candidate;
mod decide;
mod event;
mod replies;

use std::fmt;
use std::time::Duration;

use uuid::Uuid;

pub use self::candidate::in_order;
pub use self::event::{Candidacy, Effect, Event, Ownership, Reply, Request, Ticket, WatchTarget};
use crate::backoff::Backoff;
use crate::name::NodeId;
use crate::path;
use crate::time::Millis;

/// The rest before the next look. The first rest is short compared with the second that a takeover may take; the
/// longest one limits the load on a namespace that refuses every request.
const REST: Backoff =
    Backoff { initial: std::time::Duration::from_millis(100), max: std::time::Duration::from_secs(2) };

/// How long a candidate waits for its watch before it looks without an event: a watch is a hint, and a lost one must
/// not leave a namespace without a leader forever. It is long, because every candidate pays for it.
const SWEEP: Duration = Duration::from_secs(15);

/// How candidates are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[cfg_attr(feature = "describe", derive(clap::ValueEnum), value(rename_all = "snake_case"))]
pub enum Strategy {
    /// A queue: each candidate watches those before it.
    ///
    /// Candidates are ordered by the sequence number of one znode each, and watch their three nearest predecessors.
    #[default]
    Queue,
    /// One znode: the first candidate to create it leads.
    Single,
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue => "queue",
            Self::Single => "single",
        })
    }
}

/// Identity of a candidate.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Campaigner {
    /// How candidates are ordered.
    pub strategy: Strategy,
    /// The node's name: stored as the candidate's data, for display only.
    pub node: NodeId,
    /// The ZooKeeper session that the candidate belongs to.
    pub session: i64,
    /// Unique to this process and session, and the same for all their campaigns, so that a campaign finds the candidate
    /// of an earlier one.
    pub uuid: Uuid,
    /// Counts the process's campaigns, so that tickets never alias.
    pub number: u64,
}

/// One candidacy of one session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Campaign {
    who: Campaigner,
    goal: Goal,
    state: State,
    requests: u64,
    /// Rests since the last answered look.
    rests: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Goal {
    Stand,
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    /// Not connected: no requests, and no known position.
    Offline,
    /// A request failed; look again later.
    Resting { until: Millis },
    /// The list of candidates, or the leader's owner, is being read.
    Looking { ticket: Ticket },
    /// The candidate is being created.
    Creating { ticket: Ticket },
    /// The parent of the candidates is being created.
    Repairing { ticket: Ticket },
    /// The candidate, or a surplus one, is being deleted.
    Deleting { ticket: Ticket },
    /// Another candidate is first; the nearest predecessors are watched. The watches have the same ticket.
    Standby { ticket: Ticket, look_at: Millis },
    /// This candidate is first; its own znode is watched.
    First { ticket: Ticket },
    /// The campaign has ended.
    Left,
}

impl Campaign {
    /// Creates a campaign that starts with the first [`Event::Connected`].
    #[must_use]
    pub fn new(who: Campaigner) -> Self {
        Self { who, goal: Goal::Stand, state: State::Offline, requests: 0, rests: 0 }
    }

    /// Returns when the campaign needs the next [`Event::Tick`].
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        match self.state {
            State::Resting { until } | State::Standby { look_at: until, .. } => Some(until),
            State::Offline
            | State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. }
            | State::First { .. }
            | State::Left => None,
        }
    }

    /// Returns an unused ticket.
    pub fn ticket(&mut self) -> Ticket {
        self.requests += 1;
        Ticket { campaign: self.who.number, request: self.requests }
    }

    /// Handles an event and emits effects.
    pub fn handle(&mut self, now: Millis, event: Event, out: &mut Vec<Effect>) {
        match event {
            Event::Connected => self.connected(out),
            Event::Disconnected => self.disconnected(),
            Event::Tick => self.tick(now, out),
            Event::Look => self.look_now(out),
            Event::Again => self.again(now),
            Event::Leave => self.leave(out),
            Event::Reply(ticket, reply) => self.reply(now, ticket, reply, out),
        }
    }

    fn connected(&mut self, out: &mut Vec<Effect>) {
        match self.state {
            State::Offline => self.look(out),
            State::Resting { .. } | State::Standby { .. } | State::First { .. } => self.look(out),
            // A reply follows: a disconnection without an event answers the request as unknown.
            State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. } => {}
            // Ended.
            State::Left => {}
        }
    }

    fn disconnected(&mut self) {
        match self.state {
            State::Offline
            | State::Resting { .. }
            | State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. }
            | State::Standby { .. }
            | State::First { .. } => self.state = State::Offline,
            // Ended.
            State::Left => {}
        }
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match self.state {
            State::Resting { until } | State::Standby { look_at: until, .. } if now >= until => {
                self.look(out);
            }
            // Not due yet.
            State::Resting { .. } | State::Standby { .. } => {}
            // These states wait for the connection, a reply or a watch, not for time.
            State::Offline
            | State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. }
            | State::First { .. } => {}
            // Ended.
            State::Left => {}
        }
    }

    fn look_now(&mut self, out: &mut Vec<Effect>) {
        match self.state {
            State::Resting { .. } | State::Standby { .. } | State::First { .. } => self.look(out),
            // The next connection causes a look.
            State::Offline => {}
            // A look is in flight, or follows the reply.
            State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. } => {}
            // Ended.
            State::Left => {}
        }
    }

    fn again(&mut self, now: Millis) {
        match self.state {
            State::Standby { .. } | State::First { .. } => self.rest(now),
            // The next connection, or the end of the rest, causes a look.
            State::Offline | State::Resting { .. } => {}
            // A look is in flight, or follows the reply.
            State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. } => {}
            // Ended.
            State::Left => {}
        }
    }

    fn leave(&mut self, out: &mut Vec<Effect>) {
        self.goal = Goal::Leave;
        self.look_now(out);
    }

    fn look(&mut self, out: &mut Vec<Effect>) {
        let ticket = self.ticket();
        let request = match self.who.strategy {
            Strategy::Queue => Request::List { path: path::ELECTION },
            Strategy::Single => Request::Owner,
        };
        out.push(Effect::Send(ticket, request));
        self.state = State::Looking { ticket };
    }

    fn rest(&mut self, now: Millis) {
        self.rests = self.rests.saturating_add(1);
        let (random, _) = self.who.uuid.as_u64_pair();
        self.state =
            State::Resting { until: now + REST.delay(self.rests, random.wrapping_add(self.requests)) };
    }
}

#[cfg(test)]
pub(in crate::machine::election) mod test_server;
#[cfg(test)]
mod tests;
