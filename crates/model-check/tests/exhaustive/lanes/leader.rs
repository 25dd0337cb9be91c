//! A leader's assigner with its gate, and its requests and replies in flight.
//!
//! A read of the lanes has the state of the time when it was requested, and is handled at any later time: every list
//! may be stale.

use std::collections::VecDeque;

use bellwether_core::job::{Turn, TurnIndex};
use bellwether_core::machine::assigner::{
    Assigner, Effect, Event, InboxContents, Job, Order, Settings, Spot,
};
use bellwether_core::name::Lane;
use bellwether_core::outcome::{Outcome, Reason, Rejection};
use bellwether_core::path;
use bellwether_core::placement::OwnStrategies;
use bellwether_core::ready::ReadyEntry;
use bellwether_core::time::Millis;
use bellwether_core::txn::Batch;

use super::stage::{self, WALL};
use crate::fixture;
use crate::zookeeper::ZooKeeper;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Leader {
    machine: Assigner,
    pub(crate) up: bool,
    pub(crate) sent: VecDeque<Batch<Job>>,
    /// Replies to reads.
    pub(crate) replies: VecDeque<Event>,
    pub(crate) hints: VecDeque<Hint>,
    pub(crate) fenced_out: bool,
}

/// A watch event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Hint {
    Ready(ReadyEntry),
    TurnGone(Lane, Spot),
    Emptied,
}

impl Leader {
    pub(crate) fn new(zk: &ZooKeeper) -> Self {
        let mut leader = Self {
            machine: Assigner::new(stage::EPOCH, OwnStrategies::default(), 0),
            up: true,
            sent: VecDeque::new(),
            replies: VecDeque::new(),
            hints: VecDeque::new(),
            fenced_out: false,
        };
        leader.hear(zk, Event::Settings(Some(Settings::default())));
        leader.hear(zk, Event::Worker(stage::worker(), stage::info(), 0));
        leader.look(zk);
        leader
    }

    /// Lists the queue.
    fn look(&mut self, zk: &ZooKeeper) {
        let waiting = fixture::entries(zk).filter_map(|at| fixture::waiting(zk, at)).collect();
        self.hear(zk, Event::Queued(waiting));
    }

    pub(crate) fn hint(&mut self, hint: Hint) {
        if self.up && !self.hints.contains(&hint) {
            self.hints.push_back(hint);
        }
    }

    pub(crate) fn hear_hint(&mut self, zk: &ZooKeeper) {
        let event = match self.hints.pop_front().expect("there is a hint") {
            Hint::Ready(at) => match fixture::waiting(zk, at.clone()) {
                Some(waiting) => Event::Queued(vec![waiting]),
                None => Event::Unqueued(at),
            },
            Hint::TurnGone(lane, spot) => Event::TurnGone(lane, spot),
            Hint::Emptied => Event::InboxChanged(stage::worker()),
        };
        self.hear(zk, event);
    }

    pub(crate) fn hear_reply(&mut self, zk: &ZooKeeper) {
        let event = self.replies.pop_front().expect("there is a reply");
        self.hear(zk, event);
    }

    pub(crate) fn answered(&mut self, zk: &ZooKeeper, batch: Batch<Job>, outcome: Outcome<()>) {
        self.hear(zk, Event::Committed(batch, outcome));
    }

    /// The connection breaks: requests in flight become unknown, and reads are lost.
    pub(crate) fn cut(&mut self, zk: &ZooKeeper) {
        self.up = false;
        self.hints.clear();
        // The first answer that was not sent shows that the session is disturbed.
        self.hear(zk, Event::InboxRead(crate::fixture::worker(usize::from(u8::MAX)), None));
        for reply in std::mem::take(&mut self.replies) {
            let lost = match reply {
                Event::LanesListed { ticket, lanes, .. } => Event::LanesListed { ticket, lanes, lists: None },
                Event::TurnsRead { ticket, turns, .. } => Event::TurnsRead { ticket, turns, found: None },
                other => other,
            };
            self.hear(zk, lost);
        }
        for batch in std::mem::take(&mut self.sent) {
            self.hear(zk, Event::Committed(batch, Outcome::Unknown));
        }
    }

    /// The same session is connected again: all watches are set and everything is listed again.
    pub(crate) fn connect(&mut self, zk: &ZooKeeper) {
        self.up = true;
        self.hear(zk, Event::Resume);
        self.hear(zk, Event::LanesWatched);
        self.look(zk);
    }

    /// Handles an event. The timer for lists fires immediately.
    fn hear(&mut self, zk: &ZooKeeper, first: Event) {
        self.handle(zk, first);
        if self.machine.awaits_relist() {
            self.handle(zk, Event::Relist);
        }
    }

    fn handle(&mut self, zk: &ZooKeeper, first: Event) {
        let mut todo = VecDeque::from([first]);
        while let Some(event) = todo.pop_front() {
            let mut effects = Vec::new();
            self.machine.handle(Millis(0), WALL, event, &mut effects);
            for effect in effects {
                todo.extend(self.carry_out(zk, effect));
            }
        }
    }

    fn carry_out(&mut self, zk: &ZooKeeper, effect: Effect) -> Option<Event> {
        match effect {
            Effect::Commit(batch) if self.up => {
                self.sent.push_back(batch);
                None
            }
            Effect::Commit(batch) => {
                let not_sent = Rejection { at: 0, reason: Reason::NotSent };
                Some(Event::Committed(batch, Outcome::Rejected(not_sent)))
            }
            Effect::ReadInbox(worker) => {
                // No job of this model has a loss.
                let contents = InboxContents {
                    names: zk.names(&path::inbox(worker)).map(|(name, _)| name.to_owned()).collect(),
                    ..InboxContents::default()
                };
                Some(Event::InboxRead(worker, self.up.then_some(contents)))
            }
            Effect::ListInbox(worker) => {
                let names = zk.names(&path::inbox(worker)).map(|(name, _)| name.to_owned()).collect();
                Some(Event::Inbox(worker, self.up.then_some(names)))
            }
            Effect::Resolve(entries) => {
                let look = |at: ReadyEntry| {
                    let exists = zk.get(&path::ready_entry(&at)).is_some();
                    (at, exists)
                };
                Some(Event::Resolved(self.up.then(|| entries.into_iter().map(look).collect())))
            }
            Effect::ListLanes { ticket, lanes } => {
                let list = |lane: &Lane| {
                    zk.names(&path::lane(lane)).filter_map(|(name, _)| path::parse_turn(name)).collect()
                };
                let lists = self.up.then(|| lanes.iter().map(list).collect());
                self.reply(Event::LanesListed { ticket, lanes, lists })
            }
            Effect::ReadTurns { ticket, turns } => {
                let found = self.up.then(|| turns.iter().map(|(lane, spot)| order(zk, lane, spot)).collect());
                self.reply(Event::TurnsRead { ticket, turns, found })
            }
            Effect::FencedOut => {
                self.fenced_out = true;
                None
            }
            Effect::ReadSettings | Effect::Fallback(_) | Effect::Overdue(_) => {
                unreachable!("no job expires and the settings do not change")
            }
            Effect::Assigned { .. } => None,
        }
    }

    fn reply(&mut self, reply: Event) -> Option<Event> {
        if self.up {
            self.replies.push_back(reply);
            return None;
        }
        Some(reply)
    }
}

fn order(zk: &ZooKeeper, lane: &Lane, (generation, job): &Spot) -> Option<Order> {
    let turn = path::turn(&Turn { lane: lane.clone(), generation: *generation }, job);
    let created = zk.znodes.get(&turn)?.created;
    let (TurnIndex(index), _) = zk.value(&turn)?;
    Some((created, index))
}
