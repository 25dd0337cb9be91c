//! The election recipe: from a session to being first.
//!
//! # Why it looks so often
//!
//! A campaign is a loop around one question, *where do I stand?* It looks, and what it sees decides the one next
//! request; whatever that request's reply says, it looks again. So a lost reply is no special case: the create
//! may or may not have happened, and the look tells, because the candidate's name carries a UUID of this process
//! and session ([`Strategy::Queue`]), or because the znode names its owner ([`Strategy::Single`]).
//!
//! Two creates of one campaign can both have been applied: one whose reply was lost and whose effect the look
//! could not yet see, and the next one. ZooKeeper applies no request of a session's older connection after one
//! of its newer connection, so the look after the second create sees both; the surplus is deleted. No
//! candidate is leaked, and the one that stays is the lowest.
//!
//! * `Queue`: `/election/{uuid}-n-{sequence}`. The lowest sequence is first. Each other candidate watches only the
//!   one before it: a leader's end wakes one candidate, not all.
//! * `Single`: `/leader`. Whoever created it is first; every other one watches it, and all wake at its end. Fewer
//!   requests, and right for a handful of candidates.
//!
//! Being first is a hint, not a permission: [`super::leadership`] turns it into one by claiming the epoch.
//!
//! # States and events
//!
//! | state | Connected | Disconnected | Tick | Look | Again | Leave | its reply |
//! | --- | --- | --- | --- | --- | --- | --- | --- |
//! | Offline | look | – | – | – | – | leave later | – |
//! | Resting | look | Offline | look when due | look | – | look | – |
//! | Looking | – | Offline | – | – | – | then leave | decide; unknown: rest |
//! | Creating | – | Offline | – | – | – | then leave | look; no parent: Repairing; refused: rest |
//! | Repairing | – | Offline | – | – | – | then leave | look; refused: rest |
//! | Deleting | – | Offline | – | – | – | then leave | look; refused: rest |
//! | Standby | look | Offline | look when long due | look | rest | look | watch fired or nothing to watch: look; failed: rest |
//! | First | look | Offline | – | look | rest | look | own znode changed: look; failed: rest |
//! | Left | – | – | – | – | – | – | – |
//!
//! Decide, on what a look found: wants to leave and has none ⇒ Left; has one ⇒ Deleting. Wants to stand: has none ⇒
//! Creating; has two ⇒ Deleting the later; another is before it ⇒ Standby; else ⇒ First.
//!
//! # Recovery and limits
//!
//! A disconnection forgets every outstanding request: its reply, if it still comes, bears a ticket that is no longer
//! awaited. An own znode that an operator deleted is created afresh. A missing `/election` is made again. The
//! end of the session is the end of the campaign: its owner drops it, and ZooKeeper deletes the znode. `Single`
//! deletes `/leader` only right after a look that found it its own; were an operator to delete it in between and
//! another node to create it, that node's would be deleted, and it would campaign again.

mod candidate;
mod decide;
mod event;
mod replies;

use std::time::Duration;

use uuid::Uuid;

pub use self::event::{Candidacy, Effect, Event, Reply, Request, Ticket};
use crate::backoff::Backoff;
use crate::name::NodeId;
use crate::path;
use crate::time::Millis;

/// How long a campaign rests before it looks again. The first rest is short against the second that a
/// takeover may take; the longest keeps a namespace that refuses everything from being hammered.
const REST: Backoff =
    Backoff { initial: std::time::Duration::from_millis(100), max: std::time::Duration::from_secs(2) };

/// How long a candidate waits for its watch before it looks by itself: a watch is a hint, and one that was lost
/// must not leave a namespace without a leader for good. Long, because each candidate pays it.
const SWEEP: Duration = Duration::from_secs(15);

/// How candidates are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// By the sequence number of a znode each; a candidate watches the one before it only.
    #[default]
    Queue,
    /// By who creates the one znode first; all others watch it.
    Single,
}

/// Who campaigns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Campaigner {
    /// How candidates are ordered.
    pub strategy: Strategy,
    /// The node's name: the candidate's data, for people. Nothing relies on it.
    pub node: NodeId,
    /// The ZooKeeper session that the candidate belongs to.
    pub session: i64,
    /// Of this process and session alone, and the same for each of their campaigns: what a campaign before this
    /// one left is found.
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
    /// What the last answered look found, while connected.
    behind: bool,
    requests: u64,
    /// Rests since the last look that was answered.
    rests: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Goal {
    Stand,
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    /// Nothing can be sent and nothing is believed.
    Offline,
    /// Something failed; look again when it is time.
    Resting { until: Millis },
    /// The list of candidates, or the leader's owner, is being read.
    Looking { ticket: Ticket },
    /// The candidate is being made.
    Creating { ticket: Ticket },
    /// The candidates' parent is being made.
    Repairing { ticket: Ticket },
    /// The candidate, or a surplus one, is being deleted.
    Deleting { ticket: Ticket },
    /// Another is first; the one before us is watched.
    Standby { ticket: Ticket, look_at: Millis },
    /// We are first; our own znode is watched.
    First { ticket: Ticket },
    /// Over.
    Left,
}

impl Campaign {
    /// A campaign that begins with the first [`Event::Connected`].
    #[must_use]
    pub fn new(who: Campaigner) -> Self {
        Self { who, goal: Goal::Stand, state: State::Offline, behind: false, requests: 0, rests: 0 }
    }

    /// Whether it waits behind another candidate.
    #[must_use]
    pub fn is_standby(&self) -> bool {
        self.behind
    }

    /// When it wants a [`Event::Tick`] at the latest.
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

    /// A ticket that no reply bears yet.
    pub fn ticket(&mut self) -> Ticket {
        self.requests += 1;
        Ticket { campaign: self.who.number, request: self.requests }
    }

    /// Takes an event and pushes what should happen.
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
            // Its reply comes: a disconnection that we were not told of answers it as unknown.
            State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. } => {}
            // Over.
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
            | State::First { .. } => (self.state, self.behind) = (State::Offline, false),
            // Over.
            State::Left => {}
        }
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match self.state {
            State::Resting { until } | State::Standby { look_at: until, .. } if now >= until => {
                self.look(out);
            }
            // Not yet.
            State::Resting { .. } | State::Standby { .. } => {}
            // Waits for the connection, a reply or a watch, and not for time.
            State::Offline
            | State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. }
            | State::First { .. } => {}
            // Over.
            State::Left => {}
        }
    }

    fn look_now(&mut self, out: &mut Vec<Effect>) {
        match self.state {
            State::Resting { .. } | State::Standby { .. } | State::First { .. } => self.look(out),
            // Looks as soon as it is connected.
            State::Offline => {}
            // Looks already, or as soon as its reply comes.
            State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. } => {}
            // Over.
            State::Left => {}
        }
    }

    fn again(&mut self, now: Millis) {
        match self.state {
            State::Standby { .. } | State::First { .. } => self.rest(now),
            // Looks as soon as it is connected, or when its rest is over.
            State::Offline | State::Resting { .. } => {}
            // Looks already, or as soon as its reply comes.
            State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. } => {}
            // Over.
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
            Strategy::Single => Request::Owner { path: path::LEADER },
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
