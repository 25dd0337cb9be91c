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
//! | Standby | look | Offline | – | look | rest | look | watch fired or nothing to watch: look; failed: rest |
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
mod event;

use uuid::Uuid;

pub use self::event::{Effect, Event, Reply, Request, Standing, Ticket};
use crate::backoff::Backoff;
use crate::name::NodeId;
use crate::outcome::{Outcome, Reason, Rejection};
use crate::path;
use crate::time::Millis;
use candidate::Candidate;

/// How long a campaign rests before it looks again. The first rest is short against the second that a
/// takeover may take; the longest keeps a namespace that refuses everything from being hammered.
const REST: Backoff =
    Backoff { initial: std::time::Duration::from_millis(100), max: std::time::Duration::from_secs(2) };

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
#[derive(Debug, Clone, PartialEq, Eq)]
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
#[derive(Debug)]
pub struct Campaign {
    who: Campaigner,
    goal: Goal,
    state: State,
    requests: u64,
    /// Rests since the last look that was answered.
    rests: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Goal {
    Stand,
    Leave,
}

#[derive(Debug, Clone, PartialEq, Eq)]
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
    Standby { ticket: Ticket },
    /// We are first; our own znode is watched.
    First { ticket: Ticket },
    /// Over.
    Left,
}

impl Campaign {
    /// A campaign that begins with the first [`Event::Connected`].
    #[must_use]
    pub fn new(who: Campaigner) -> Self {
        Self { who, goal: Goal::Stand, state: State::Offline, requests: 0, rests: 0 }
    }

    /// Whether it waits behind another candidate.
    #[must_use]
    pub fn is_standby(&self) -> bool {
        matches!(self.state, State::Standby { .. })
    }

    /// When it wants a [`Event::Tick`] at the latest.
    #[must_use]
    pub fn next_wake(&self) -> Option<Millis> {
        match self.state {
            State::Resting { until } => Some(until),
            State::Offline
            | State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. }
            | State::Standby { .. }
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
            | State::First { .. } => self.state = State::Offline,
            // Over.
            State::Left => {}
        }
    }

    fn tick(&mut self, now: Millis, out: &mut Vec<Effect>) {
        match self.state {
            State::Resting { until } if now >= until => self.look(out),
            // Not yet.
            State::Resting { .. } => {}
            // Waits for the connection, a reply or a watch, and not for time.
            State::Offline
            | State::Looking { .. }
            | State::Creating { .. }
            | State::Repairing { .. }
            | State::Deleting { .. }
            | State::Standby { .. }
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

    fn reply(&mut self, now: Millis, ticket: Ticket, reply: Reply, out: &mut Vec<Effect>) {
        if self.awaited() != Some(ticket) {
            // The answer to a question that is no longer asked: its effect, if any, is seen by the next look.
            return;
        }
        match reply {
            Reply::Created(outcome) => self.created(now, outcome, out),
            Reply::Deleted(outcome) => self.deleted(now, outcome, out),
            Reply::Watched(outcome) => self.watched(now, outcome, out),
            Reply::Changed => self.look(out),
            Reply::Listed(Outcome::Applied(children)) => self.decide(&children, out),
            Reply::Owner(Outcome::Applied(owner)) => self.decide_single(owner, out),
            Reply::Listed(Outcome::Rejected(rejection)) if rejection.reason == Reason::NoNode => {
                // Without its parent the candidate is gone as well.
                self.decide(&[], out);
            }
            Reply::Listed(Outcome::Rejected(rejection)) | Reply::Owner(Outcome::Rejected(rejection)) => {
                self.refused(now, rejection, out);
            }
            Reply::Listed(Outcome::Unknown) | Reply::Owner(Outcome::Unknown) => self.rest(now),
        }
    }

    fn awaited(&self) -> Option<Ticket> {
        match self.state {
            State::Looking { ticket }
            | State::Creating { ticket }
            | State::Repairing { ticket }
            | State::Deleting { ticket }
            | State::Standby { ticket }
            | State::First { ticket } => Some(ticket),
            State::Offline | State::Resting { .. } | State::Left => None,
        }
    }

    fn created(&mut self, now: Millis, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        match outcome {
            // Ours, another's, or perhaps ours: the look tells.
            Outcome::Applied(()) | Outcome::Unknown => self.look(out),
            Outcome::Rejected(rejection) => match rejection.reason {
                Reason::NodeExists => self.look(out),
                Reason::NoNode => self.repair(now, rejection, out),
                Reason::BadVersion
                | Reason::NotEmpty
                | Reason::NoAuth
                | Reason::NotSent
                | Reason::OverBudget(_)
                | Reason::Other(_) => self.refused(now, rejection, out),
            },
        }
    }

    fn deleted(&mut self, now: Millis, outcome: Outcome<()>, out: &mut Vec<Effect>) {
        match outcome {
            Outcome::Applied(()) | Outcome::Unknown => self.look(out),
            Outcome::Rejected(rejection) => match rejection.reason {
                Reason::NoNode => self.look(out),
                Reason::NodeExists
                | Reason::BadVersion
                | Reason::NotEmpty
                | Reason::NoAuth
                | Reason::NotSent
                | Reason::OverBudget(_)
                | Reason::Other(_) => self.refused(now, rejection, out),
            },
        }
    }

    fn watched(&mut self, now: Millis, outcome: Outcome<bool>, out: &mut Vec<Effect>) {
        match outcome {
            // The watch stands and will tell.
            Outcome::Applied(true) => {}
            // It went between the look and the watch.
            Outcome::Applied(false) => self.look(out),
            Outcome::Unknown => self.rest(now),
            Outcome::Rejected(rejection) => self.refused(now, rejection, out),
        }
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

    fn decide(&mut self, children: &[String], out: &mut Vec<Effect>) {
        self.rests = 0;
        let mut candidates: Vec<_> = children.iter().filter_map(|name| Candidate::parse(name)).collect();
        candidates.sort();
        let ours: Vec<usize> =
            (0..candidates.len()).filter(|at| candidates[*at].uuid == self.who.uuid).collect();
        let path_of = |at: usize| path::candidate(&candidates[at].name);
        match (self.goal, ours.as_slice()) {
            (Goal::Leave, []) => self.left(out),
            (Goal::Leave, [.., last]) | (Goal::Stand, [_, .., last]) => self.delete(path_of(*last), out),
            (Goal::Stand, []) => self.create(out),
            (Goal::Stand, [0]) => self.first(path_of(0), out),
            (Goal::Stand, [own]) => self.stand_by(path_of(own - 1), out),
        }
    }

    fn decide_single(&mut self, owner: Option<i64>, out: &mut Vec<Effect>) {
        self.rests = 0;
        let ours = owner == Some(self.who.session);
        match (self.goal, owner) {
            (Goal::Leave, Some(_)) if ours => self.delete(path::LEADER.to_owned(), out),
            (Goal::Leave, Some(_) | None) => self.left(out),
            (Goal::Stand, None) => self.create(out),
            (Goal::Stand, Some(_)) if ours => self.first(path::LEADER.to_owned(), out),
            (Goal::Stand, Some(_)) => self.stand_by(path::LEADER.to_owned(), out),
        }
    }

    fn create(&mut self, out: &mut Vec<Effect>) {
        let ticket = self.ticket();
        let data = self.who.node.as_str().as_bytes().to_vec();
        let request = match self.who.strategy {
            Strategy::Queue => {
                Request::CreateSequential { prefix: path::candidate_prefix(self.who.uuid), data }
            }
            Strategy::Single => Request::CreateEphemeral { path: path::LEADER, data },
        };
        out.push(Effect::Standing(Standing::Running));
        out.push(Effect::Send(ticket, request));
        self.state = State::Creating { ticket };
    }

    /// The create found no parent: an operator deleted it. `/leader` has none but the namespace's root, which
    /// is not ours to make.
    fn repair(&mut self, now: Millis, rejection: Rejection, out: &mut Vec<Effect>) {
        let creating = matches!(self.state, State::Creating { .. });
        if !creating || self.who.strategy != Strategy::Queue {
            return self.refused(now, rejection, out);
        }
        let ticket = self.ticket();
        let request = Request::CreateParent { path: path::ELECTION };
        out.push(Effect::Send(ticket, request));
        self.state = State::Repairing { ticket };
    }

    fn delete(&mut self, path: String, out: &mut Vec<Effect>) {
        let ticket = self.ticket();
        out.push(Effect::Send(ticket, Request::Delete { path }));
        self.state = State::Deleting { ticket };
    }

    fn first(&mut self, candidate: String, out: &mut Vec<Effect>) {
        let ticket = self.ticket();
        let path = candidate.clone();
        out.push(Effect::Send(ticket, Request::Watch { path }));
        out.push(Effect::Standing(Standing::First { candidate }));
        self.state = State::First { ticket };
    }

    fn stand_by(&mut self, predecessor: String, out: &mut Vec<Effect>) {
        let ticket = self.ticket();
        let path = predecessor.clone();
        out.push(Effect::Send(ticket, Request::Watch { path }));
        out.push(Effect::Standing(Standing::Behind { predecessor }));
        self.state = State::Standby { ticket };
    }

    fn left(&mut self, out: &mut Vec<Effect>) {
        out.push(Effect::Standing(Standing::Left));
        self.state = State::Left;
    }

    fn refused(&mut self, now: Millis, rejection: Rejection, out: &mut Vec<Effect>) {
        out.push(Effect::Refused(rejection));
        self.rest(now);
    }

    fn rest(&mut self, now: Millis) {
        self.rests = self.rests.saturating_add(1);
        let (random, _) = self.who.uuid.as_u64_pair();
        self.state =
            State::Resting { until: now + REST.delay(self.rests, random.wrapping_add(self.requests)) };
    }
}

#[cfg(test)]
mod tests;
